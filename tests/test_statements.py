"""What people read of a tree is what the rows are and what the tree does, wherever they read it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from data import UNRESTRAINED, make_tree, view_of
from numpy.testing import assert_array_equal
from reader import Reader, Rows, TextReader
from sklearn.datasets import load_diabetes, load_iris
from test_explain import EVERY_TREE, as_frame, fitted, random_columns
from test_html import data_of

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor, export_text
from shapetree.export import export_dot, export_html
from shapetree.tree import _words
from shapetree.tree._digits import n_digits, percent
from shapetree.tree._words import branch_words, outcome_words, readable, region_words

# What the text says


@EVERY_TREE
def test_text_read_back_sends_every_row_to_its_leaf(name, monkeypatch):
    """Also rows with fractions of whole numbers, new categories and missing values."""
    monkeypatch.setattr(_words, "MAX_REGIONS", 100)
    monkeypatch.setattr(_words, "MAX_LETTERS", 10_000)
    model, view = fitted(name)[0], view_of(fitted(name)[0])
    columns = random_columns(np.random.default_rng(7), view, 800, whole_share=0.5)
    features = {
        node.feature_words: [feature.name for feature in node.features]
        for node in view.nodes
        if node.children
    }
    reader = TextReader(export_text(model), Rows(view.features, columns), features)
    lines, leaves = reader.lines(), model.apply(as_frame(columns))
    # The same line if and only if the same leaf, and it says what the leaf predicts.
    assert len(set(zip(lines, leaves, strict=True))) == len(set(lines)) == len(set(leaves))
    for line, leaf in set(zip(lines.tolist(), leaves.tolist(), strict=True)):
        assert reader.outcomes[line] == outcome_words(view, view.nodes[leaf])


@EVERY_TREE
def test_joined_regions_say_the_same_as_the_regions(name):
    view = view_of(fitted(name)[0])
    columns = random_columns(np.random.default_rng(8), view, 600)
    rows = Rows(view.features, columns)
    reader = Reader(rows)
    for node in (node for node in view.nodes if node.regions):
        assert len(node.joined_regions) <= len(node.regions)
        known = np.all([rows.known(feature.name) for feature in node.features], axis=0)
        for side, feature in enumerate(node.features):
            if feature.is_categorical:
                known &= rows.among(feature.name, map(str, node.known_categories(side)))
        for branch in range(len(node.children)):
            said, joined = (
                sum(
                    (reader.all_of(region_words(region, node)) & known) * 1
                    for region in regions
                    if region.branch == branch and all(b.categories != () for b in region.bounds)
                )
                for regions in (node.regions, node.joined_regions)
            )
            assert_array_equal(np.asarray(said) > 0, np.asarray(joined) > 0)


def test_slivers_of_one_branch_become_one_region():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(3000, 2)), columns=["u", "v"])
    y = (X["u"] > 0.5) & (X["v"] > 0.5)
    model = ShapeTreeClassifier(
        max_depth=1,
        max_branches=2,
        pairs=[("u", "v")],
        search=SearchOptions(pair_penalty=0.0, n_orientations=2),
    ).fit(X, y)
    (node, *_) = view_of(model).nodes
    assert len(node.features) == 2
    inside = [region for region in node.joined_regions if len(region.bounds) == 2]
    outside = [region for region in node.joined_regions if len(region.bounds) == 1]
    assert (len(inside), len(outside)) == (1, 2)


# Short numbers that are the same everywhere


def thresholds_of(view):
    singles = [segment.high for node in view.nodes for segment in node.segments[:-1]]
    bounds = [bound for node in view.nodes for region in node.regions for bound in region.bounds]
    bounds = [bound for bound in bounds if bound.categories is None]
    return singles, [t for bound in bounds for t in (bound.low, bound.high) if np.isfinite(t)]


@pytest.mark.parametrize("pairs", [0, "all"])
def test_thresholds_are_short_wherever_data_allow_it(pairs):
    """No float dust: data of two decimals give thresholds of three at most."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "longitude": rng.integers(-12400, -11400, 3000) / 100,
            "income": rng.integers(5_000, 90_000, 3000),
        }
    )
    y = np.sin(X["longitude"]) + (X["income"] > 18_500) + (X["longitude"] + X["income"] / 1e4 > 0)
    model = ShapeTreeRegressor(
        max_depth=4, pairs=pairs, search=SearchOptions(pair_penalty=0.0)
    ).fit(X, y)
    view = view_of(model)
    singles, in_pairs = thresholds_of(view)
    assert singles or in_pairs
    for threshold in [*singles, *in_pairs]:
        assert n_digits(readable(threshold)) <= 8
        assert "e" not in readable(threshold)
    for node in view.nodes:
        if node.segments:
            for segment in node.segments[:-1]:
                is_whole = node.features[0].is_whole
                assert round(segment.high, 0 if is_whole else 3) == segment.high
    assert "e+" not in export_text(model)


def test_text_rules_graph_and_page_name_the_same_thresholds():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = ShapeTreeRegressor(max_depth=3).fit(X, y)
    view = view_of(model)
    page = data_of(export_html(model))
    text, graph = export_text(model), export_dot(model)
    for node in (node for node in view.nodes if node.children):
        said = page["nodes"][node.number]
        for segment, part in zip(node.segments[:-1], said["segments"], strict=False):
            assert part["upper"][1] == readable(segment.high)
        for branch in range(len(node.children)):
            words = branch_words(node, branch)
            assert said["branchWords"][branch] == words
            assert f"─ {words}: " in text
            assert f'label="{words}"' in graph
    numbers = set(re.findall(r"-?\d+\.\d+", "".join(rule.premise() for rule in model.rules())))
    assert numbers <= set(re.findall(r"-?\d+\.\d+", text))


# Shares


WEIGHTS = {"setosa": 1, "versicolor": 1, "virginica": 10}


@pytest.fixture(scope="module", params=[0, "auto", 20.0])
def weighted(request):
    """Irises, of which one kind counts ten times as much, in leaves that are shrunken or not."""
    iris = load_iris(as_frame=True)
    y = iris.target_names[iris.target]
    shape = {"max_depth": 1, "max_branches": 2, "shrinkage": request.param}
    model = make_tree(ShapeTreeClassifier, **shape, class_weight=WEIGHTS)
    return model.fit(iris.data, y), iris.data, y


@pytest.fixture(scope="module")
def irises():
    iris = load_iris(as_frame=True)
    return iris.data, iris.target_names[iris.target]


def shares_by_hand(model, X, y):
    """For each leaf, the share of the class it predicts: of rows, by weight, and as predicted."""
    leaves = model.apply(X)
    weights = np.array([(model.class_weight or {}).get(label, 1) for label in y])
    found = {}
    for leaf in np.unique(leaves).tolist():
        inside = leaves == leaf
        predicted = model.predict(X[inside])[0]
        is_right = y[inside] == predicted
        by_weight = np.average(is_right, weights=weights[inside])
        found[leaf] = is_right.mean(), by_weight, model.predict_proba(X[inside]).max(axis=1)[0]
    return found


SHARES = re.compile(
    r"\((?P<rows>\S+ %)(?: of rows)?(?:, weighted (?P<weighted>\S+ %))?"
    r", (?P<low>\S+) to (?P<high>\S+) %(?:; predicted (?P<predicted>\S+ %))?\)"
)


def said_shares(words):
    """What is said of the rows, of their weights, and of the prediction.

    What is not said is as the one before.
    """
    found = SHARES.search(words)
    rows = found["rows"]
    weighed = found["weighted"] or rows
    predicted = found["predicted"] or weighed
    assert float(found["low"]) <= float(weighed.removesuffix(" %")) <= float(found["high"])
    assert ("of rows" in words) == (len({rows, weighed, predicted}) > 1)
    return rows, weighed, predicted


def test_shares_are_those_of_rows_everywhere_and_weighted_ones_are_named(weighted):
    model, X, y = weighted
    view, page = view_of(model), data_of(export_html(model))
    text, graph = export_text(model), export_dot(model)
    rules = {rule.leaf: rule for rule in model.rules()}
    sentences = {why.leaf: str(why) for why in model.explain(X)}
    table = model.shape_table()
    is_different = False
    for leaf, shares in shares_by_hand(model, X, y).items():
        words = outcome_words(view, view.nodes[leaf])
        assert said_shares(words) == tuple(percent(share) for share in shares)
        share, by_weight, predicted = shares
        is_different |= percent(share) != percent(by_weight)
        if model.shrinkage == 0:
            assert by_weight == pytest.approx(predicted)
        assert rules[leaf].outcome == words
        assert (rules[leaf].confidence, rules[leaf].predicted) == pytest.approx((share, predicted))
        assert words in text
        assert f"Predicted {words} because" in sentences[leaf]
        assert words in table["leads_to"].tolist()
        node = page["nodes"][leaf]
        assert node["trained"] == words
        # Graphs and pages leave out how sure the shares are.
        brief = outcome_words(view, view.nodes[leaf], is_brief=True)
        (label,), word = view.nodes[leaf].prediction, page["predictedWord"]
        assert brief == (
            f"{label} ({percent(share)})"
            if percent(share) == percent(predicted)
            else f"{label} ({percent(share)} of rows, {word} {percent(predicted)})"
        )
        assert brief in graph
        assert node["outcome"] == brief
        assert node["counts"][node["predicted"]] / node["rows"] == pytest.approx(share)
        assert_array_equal(
            view.nodes[leaf].row_shares[0].argmax() == node["predicted"], share > 0.5
        )
    assert is_different
    assert page["predictedWord"] == ("weighted" if model.shrinkage == 0 else "predicted")
    frame = model.rules().to_frame()
    assert not np.allclose(frame["confidence"], frame["predicted"])


def test_shares_of_rows_survive_a_model_file(weighted):
    model, _, _ = weighted
    again = ShapeTreeClassifier.from_json(model.to_json())
    assert str(again.rules()) == str(model.rules())
    assert export_text(again) == export_text(model)


def test_shrinkage_makes_predictions_differ_from_rows(irises):
    X, y = irises
    model = ShapeTreeClassifier(max_depth=1, shrinkage=50.0).fit(X, y)
    for leaf, shares in shares_by_hand(model, X, y).items():
        words = outcome_words(view_of(model), view_of(model).nodes[leaf])
        assert said_shares(words) == tuple(percent(share) for share in shares)
        assert "predicted" in words
        assert "weighted" not in words


def test_a_prediction_is_said_beside_weighted_shares_even_if_it_is_the_share_of_rows(weighted):
    """Of rows and their weights, readers would take the latter for what is predicted."""
    view, is_different = view_of(weighted[0]), False
    for node in (node for node in view.nodes if not node.children):
        by_rows = replace(node, value=node.row_shares)
        best = view.classes[0].index(node.prediction[0])
        share = percent(float(node.row_shares[0, best]))
        rows, weighed, predicted = said_shares(outcome_words(view, by_rows))
        assert (rows, predicted) == (share, share)
        is_different |= weighed != rows
    assert is_different


def test_several_outputs_say_what_is_known(irises):
    X, y = irises
    both = np.stack([y, np.where(X["sepal length (cm)"] > 5.8, "long", "short")], axis=1)
    plain = ShapeTreeClassifier(max_depth=1, shrinkage=0).fit(X, both)
    leaves = plain.apply(X)
    for rule in plain.rules():
        inside = leaves == rule.leaf
        shares = [(both[inside, i] == label).mean() for i, label in enumerate(rule.prediction)]
        said = re.findall(r"\(.*?\)", rule.outcome)
        assert [said_shares(words)[0] for words in said] == [percent(share) for share in shares]
    weights = np.where(y == "virginica", 10.0, 0.5)  # not whole, or they would count rows
    # The rows' own shares are not known here.
    for shrinkage, weight, word in ((0, weights, "weighted"), (20.0, None, "predicted")):
        other = ShapeTreeClassifier(max_depth=1, shrinkage=shrinkage)
        other.fit(X, both, sample_weight=weight)
        for leaf, rule in {rule.leaf: rule for rule in other.rules()}.items():
            row = X[other.apply(X) == leaf].iloc[:1]
            said = re.findall(r"\((.*?)\)", rule.outcome)
            shares = [each.max() for each in other.predict_proba(row)]
            assert said == [f"{word} {percent(share)}" for share in shares]


NUMBERS = re.compile(
    r"(?P<predicted>\S+)(?: ± (?P<own_spread>\S+))?(?: \("
    r"(?:rows: (?P<mean>\S+) ± (?P<spread>[^\s,)]+))?(?:, )?"
    r"(?:(?P<weighted>weighted )?(?P<kind>mean|median) (?P<low>\S+) to (?P<high>\S+))?\))?"
)


def test_numbers_name_the_mean_of_the_rows_where_it_is_not_what_is_predicted():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    weights = np.where(y > 200, 20.0, 0.5)  # not whole, or they would count rows
    for model, weight in (
        (ShapeTreeRegressor(max_depth=2, shrinkage=0), None),
        (ShapeTreeRegressor(max_depth=2), None),
        (ShapeTreeRegressor(max_depth=2), weights),
        (ShapeTreeRegressor(max_depth=2, objective="absolute_error"), None),
        (ShapeTreeRegressor(max_depth=2, shrinkage=100.0), None),
    ):
        model.fit(X, y, sample_weight=weight)
        leaves, view = model.apply(X), view_of(model)
        for leaf in np.unique(leaves).tolist():
            words = outcome_words(view, view.nodes[leaf])
            targets = y[leaves == leaf].to_numpy()
            found = NUMBERS.fullmatch(words)
            predicted = model.predict(X[leaves == leaf])[0]
            assert float(found["predicted"]) == pytest.approx(predicted, rel=1e-3)
            mean = float(found["mean"] or found["predicted"])
            assert mean == pytest.approx(targets.mean(), rel=1e-3)
            spread = float(found["spread"] or found["own_spread"])
            assert spread == pytest.approx(targets.std(), rel=5e-3)
            # Said only where it is not what is predicted.
            assert (found["mean"] is None) == (found["predicted"] == f"{targets.mean():.4g}")
            if found["kind"] is not None:
                kind = "median" if model.objective == "absolute_error" else "mean"
                assert found["kind"] == kind
                assert found["weighted"] is None or weight is not None
                middle = np.median(targets) if kind == "median" else targets.mean()
                if found["weighted"]:
                    middle = np.average(targets, weights=weights[leaves == leaf])
                assert float(found["low"]) <= middle <= float(found["high"])


def test_a_single_row_has_no_spread():
    X, y = [[0.0]] * 9 + [[1.0]], [1.0] * 9 + [50.0]
    model = make_tree(ShapeTreeRegressor, **UNRESTRAINED).fit(X, y)
    assert [rule.outcome for rule in model.rules()] == ["1 ± 0", "50 (1 row)"]
    assert "50 (1 row)" in export_text(model)
    nine, one = model.set_params(shrinkage=10.0).fit(X, y).rules()
    assert (nine.outcome, one.outcome) == ("3.45 (rows: 1 ± 0)", "27.95 (1 row: 50)")


# Flips


@EVERY_TREE
def test_flips_read_back_flip_and_ask_for_hardly_more_than_is_needed(name):
    model, view = fitted(name)[0], view_of(fitted(name)[0])
    columns = random_columns(np.random.default_rng(9), view, 60)
    X = as_frame(columns)
    for i, why in enumerate(model.explain(X)):
        found = re.search(r"if (\S+) (?:rose|fell) from (\S+) to (\S+)$", str(why.flip))
        if found is None or not np.isfinite(columns[found[1]][i]):
            continue
        changed = X.iloc[[i]].assign(**{found[1]: [float(found[3])]})
        assert view.nodes[model.apply(changed)[0]].prediction != why.prediction
        asked, needed = float(found[3]) - why.flip.old, why.flip.new - why.flip.old
        assert abs(asked) <= 1.03 * abs(needed) + 1e-300


def test_a_flip_beside_a_threshold_asks_for_a_small_change():
    X = np.repeat([[-122.26], [-122.25]], 20, axis=0)
    model = ShapeTreeClassifier(resamples=0, shrinkage=0).fit(X, np.repeat([0, 1], 20))
    (why,) = model.explain([[-122.25]])
    assert str(why.flip) == "It would be 0 (100 %) if x0 fell from -122.25 to -122.255"
