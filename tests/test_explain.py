"""Sentences, rules and flips: what they say of a tree is what the tree does."""

import html
import re
import warnings
from copy import copy
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import PLAIN, make_tree, set_tree, view_of
from hypothesis import given
from hypothesis import strategies as st
from naive import trees
from numpy.testing import assert_array_equal
from reader import Reader, Rows
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_text,
)
from shapetree.data._table import FeatureInfo
from shapetree.explain import Change, Condition, Flip
from shapetree.plot._scene import MarkedRow
from shapetree.tree._digits import percent

INF, NAN, LARGEST = np.inf, np.nan, np.finfo(float).max
COLOURS, SIZES = ["red", "green", "blue", "grey"], ["S", "M", "L"]
seeds = st.integers(0, 2**32 - 1)
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

# Trees of all kinds


def mixed_table(rng, n_rows, missing=0.0):
    """Numbers, whole numbers and categories; some missing."""
    frame = pd.DataFrame(
        {
            "u": rng.normal(size=n_rows),
            "v": rng.normal(size=n_rows).astype(np.float32),
            "n": rng.integers(-20, 60, n_rows),
            "m": rng.integers(0, 9, n_rows),
            "colour": rng.choice(COLOURS, n_rows),
            "size": rng.choice(SIZES, n_rows),
        }
    )
    if missing:
        for name in ("u", "v", "colour", "size"):
            frame.loc[rng.random(n_rows) < missing, name] = None
        frame["n"] = frame["n"].astype("Int64").mask(rng.random(n_rows) < missing)
    return frame


def mixed_score(rng, frame):
    """A number that depends on single features, on pairs of them, and on what is missing."""
    u, v = frame["u"].fillna(0.7), frame["v"].fillna(-0.3)
    n, m = frame["n"].astype(float).fillna(3), frame["m"]
    warm = frame["colour"].isin(["red", "blue"]).to_numpy()
    score = 2.0 * ((u + v > 0) ^ (u - 0.4 * v > 0.5)) + 1.5 * (warm ^ (n > 17))
    score += ((m > 2) & (m < 6)) ^ (frame["size"] == "L")
    return np.asarray(score, dtype=float) + rng.normal(scale=0.3, size=len(frame))


def mixed_targets(rng, frame, kind):
    score = mixed_score(rng, frame)
    if kind == "numbers":
        return score
    if kind == "two numbers":
        return np.stack([score, frame["m"] > 4], axis=1).astype(float)
    two = np.array(["no", "yes"])[(score > np.median(score)) * 1]
    if kind == "two outputs":
        return np.stack([two, np.where(frame["m"] > 4, "many", "few")], axis=1)
    return two if kind == "2" else np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8]))


GRID = {
    "two classes": ("2", {"max_branches": 2}),
    "two classes, refined": ("2", {"max_branches": 3, "refine": "tao"}),
    "two classes, missing": ("2", {"max_branches": 3, "missing": 0.15}),
    "five classes": ("5", {"max_branches": 4, "refine": "tao"}),
    "five classes, missing": ("5", {"max_branches": 4, "missing": 0.15, "after": "simplify"}),
    "pairs": ("2", {"pairs": "all", "max_branches": 2}),
    "pairs, refined": ("5", {"pairs": "auto", "refine": "tao", "max_branches": 3}),
    "pairs, missing": ("2", {"pairs": "all", "missing": 0.15, "max_branches": 3}),
    "pairs, simplified": ("2", {"pairs": "all", "missing": 0.1, "after": "simplify"}),
    "pairs, pruned": ("5", {"pairs": "all", "max_branches": 4, "after": "prune"}),
    "numbers": ("numbers", {"max_branches": 3}),
    "numbers, missing": ("numbers", {"max_branches": 4, "missing": 0.15, "refine": "tao"}),
    "medians": ("numbers", {"criterion": "absolute_error", "max_branches": 2, "missing": 0.1}),
    "numbers of pairs": ("numbers", {"pairs": "all", "missing": 0.1, "refine": "tao"}),
    "medians of pairs": ("numbers", {"criterion": "absolute_error", "pairs": "auto"}),
    "pruned numbers": ("numbers", {"max_branches": 3, "after": "prune"}),
    "two outputs": ("two outputs", {"max_branches": 3, "missing": 0.1}),
    "two numbers of pairs": ("two numbers", {"pairs": "all", "max_branches": 2, "missing": 0.1}),
}
EVERY_TREE = pytest.mark.parametrize("name", GRID)
WITHOUT_PAIRS = [name for name, (_, params) in GRID.items() if "pairs" not in params]


@cache
def fitted(name):
    """A tree of the grid with its training data."""
    kind, params = GRID[name]
    free = {"leaf_penalty": 0.0, "pair_penalty": 0.0, "shrinkage": 0.0}
    params = {"refine": None, "max_depth": 4, **free} | params
    missing, after = params.pop("missing", 0.0), params.pop("after", None)
    rng = np.random.default_rng(list(GRID).index(name))
    X = mixed_table(rng, 400, missing)
    y = mixed_targets(rng, X, kind)
    make = ShapeTreeRegressor if "numbers" in kind else ShapeTreeClassifier
    model = make_tree(make, n_threads=1, **params).fit(X, y)
    if after == "prune":
        inner = np.flatnonzero(~model.tree_.is_leaf & (model.tree_.depth >= 2))
        model = model.prune(inner[::2])
    if after == "simplify":
        model = model.simplify()
    return model, X, y


def test_the_grid_has_trees_of_all_kinds():
    views = [view_of(fitted(name)[0]) for name in GRID]
    splits = [node for view in views for node in view.nodes if node.children]
    bounds = [bound for node in splits for region in node.regions for bound in region.bounds]
    assert all(len(view.nodes) > 8 for view in views)
    assert sum(len(node.features) == 2 for node in splits) > 30
    assert any(all(bound.weights) for bound in bounds)
    assert any(bound.categories is not None for bound in bounds)
    assert any(node.saw_missing and node.regions for node in splits)
    assert any(node.saw_missing and node.segments for node in splits)
    assert any(len(node.segments) > 3 for node in splits)
    assert {len(node.children) for node in splits} == {2, 3, 4}
    used = {feature for node in splits for feature in node.features}
    assert {feature.name for feature in used} == set("uvnm") | {"colour", "size"}


# Rows of all kinds


def edges_of(view, name):
    """Numbers at which a tree changes its mind about a feature alone."""
    found = set()
    for node in view.nodes:
        names = [feature.name for feature in node.features]
        if names == [name]:
            found.update(segment.high for segment in node.segments)
        for bound in [bound for region in node.regions for bound in region.bounds]:
            weights = dict(zip(names, bound.weights, strict=True))
            if bound.categories is None and weights.pop(name, 0) and not any(weights.values()):
                found |= {bound.low, bound.high}
    return sorted(edge for edge in found if np.isfinite(edge))


def oblique_cuts(view):
    """Names, weights and limit of every cut through a plane."""
    return sorted(
        {
            (tuple(feature.name for feature in node.features), bound.weights, limit)
            for node in view.nodes
            for region in node.regions
            for bound in region.bounds
            for limit in (bound.low, bound.high)
            if all(bound.weights) and np.isfinite(limit)
        }
    )


def crossings(cut, name, others):
    """About where a cut is on one of its features, given the other's values."""
    names, weights, limit = cut
    side = names.index(name)
    with np.errstate(all="ignore"):
        return (limit - weights[1 - side] * np.clip(others, -LARGEST, LARGEST)) / weights[side]


def with_neighbours(numbers):
    numbers = np.asarray(numbers, dtype=float)
    with np.errstate(over="ignore"):
        return np.concatenate([numbers, np.nextafter(numbers, INF), np.nextafter(numbers, -INF)])


def random_columns(rng, view, n_rows, whole_share=0.8):
    """Columns of odd rows: on thresholds and beside them, on cuts, infinite, missing, new."""
    columns = {}
    for feature in view.features:
        if feature.is_categorical:
            columns[feature.name] = rng.choice([*feature.categories, "new", None], n_rows)
            continue
        edges = edges_of(view, feature.name) or [0.0]
        odd = np.concatenate([with_neighbours(edges), [INF, -INF, NAN, 0.0, 1e300, -1e300]])
        middling = np.clip(edges, -1e3, 1e3)
        usual = rng.normal(size=n_rows) * max(1.0, np.ptp(middling)) + np.mean(middling)
        values = np.where(rng.random(n_rows) < 0.5, usual, rng.choice(odd, n_rows))
        if feature.is_whole:
            values = np.where(rng.random(n_rows) < whole_share, np.floor(values), values)
        columns[feature.name] = values
    whole = {feature.name for feature in view.features if feature.is_whole}
    for cut in oblique_cuts(view):
        chosen = np.flatnonzero(rng.random(n_rows) < 0.1)
        name, other = rng.permutation(cut[0]).tolist()
        at = with_neighbours(crossings(cut, name, columns[other][chosen]))
        at = at.reshape(3, -1)[rng.integers(3, size=len(chosen)), np.arange(len(chosen))]
        columns[name][chosen] = np.floor(at) if name in whole else at
    return columns


def as_frame(columns):
    return pd.DataFrame({name: pd.Series(list(values)) for name, values in columns.items()})


def reasons_of(sentence):
    assert sentence.startswith("Predicted ")
    return sentence.split(" because ")[1]


# Sentences


def assert_explained(model, columns):
    """Rows satisfy what is said of them, and what is said leads to where they are."""
    view, X = view_of(model), as_frame(columns)
    leaves, paths = model.apply(X), model.decision_path(X)
    reader, is_proper = Reader(Rows(view.features, columns)), np.ones(len(X), dtype=bool)
    if any(node.regions for node in view.nodes):
        # That both values of a pair are known goes without saying.
        is_proper &= ~counted_as_missing(model, X)
    records = X.to_dict("records")
    for i, why in enumerate(model.explain(X)):
        assert why.leaf == leaves[i]
        passed = [*(step.node for step in why.path), why.leaf]
        assert passed == sorted(paths[[i]].indices.tolist())
        for step, after in pairwise([*why.path, None]):
            next_node = why.leaf if after is None else after.node
            assert model.tree_.first_child[step.node] + step.branch == next_node
            assert step.conditions
            assert all(condition.holds(records[i]) for condition in step.conditions)
        assert all(condition.holds(records[i]) for condition in why.conditions)
        assert all(condition.holds(why.row) for condition in why.conditions)
        said_of = [(condition.names, condition.weights) for condition in why.conditions]
        assert len(set(said_of)) == len(said_of)
        held, _ = reader.sentence(reasons_of(why.sentence))
        assert held[i], (str(why), records[i])
        alike = held & is_proper if is_proper[i] else held & False
        assert_array_equal(leaves[alike], leaves[i], err_msg=str(why))


@EVERY_TREE
def test_rows_satisfy_their_sentences_and_whoever_does_ends_in_the_same_leaf(name):
    model, X, _ = fitted(name)
    rng = np.random.default_rng(1)
    assert_explained(model, random_columns(rng, view_of(model), 560))
    seen = X.sample(40, random_state=0)
    assert_explained(
        model,
        {
            name: seen[name].astype(float if name in "uvnm" else object).to_numpy()
            for name in seen.columns
        },
    )


@cache
def schema():
    """A tree of two numbers and two categorical features, whose nodes will be replaced.

    And its table.
    """
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=60),
            "b": rng.normal(size=60),
            "c": rng.permutation(["one", "two", "three"] * 20),
            "d": rng.permutation(["A", "B", "C", "D"] * 15),
        }
    )
    model = ShapeTreeClassifier(max_depth=1, refine=None, n_threads=1)
    return model.fit(X, np.arange(60) % 2), X


def as_fitted(tree):
    """An estimator with another tree, whose cuts are such as growth makes."""
    categorical = np.isin(tree.feature, (2, 3)), np.isin(tree.second_feature, (2, 3))
    coded = np.repeat(categorical[0] | categorical[1], np.diff(tree.cut_start))
    a = tree.cut_a
    b = np.where(a == 0, 1.0, np.where(coded, 0.0, tree.cut_b))
    model, X = schema()
    model = copy(model)
    threshold = np.minimum(tree.cut_threshold, 1e308)
    set_tree(model, replace(tree, cut_b=b, cut_threshold=threshold), X)
    return model


@examples(60)
@given(trees(max_nodes=14), seeds)
def test_sentences_of_any_tree_hold(tree, seed):
    model = as_fitted(tree)
    if model.tree_.node_count > 1:
        columns = random_columns(np.random.default_rng(seed), view_of(model), 25)
        assert_explained(model, columns)


def test_a_lone_leaf_speaks_of_every_row():
    model = ShapeTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    (why,) = model.explain([[3.0]])
    said = "Predicted a (100 %, 34 to 100 %) for every row"
    assert str(why) == f"{said}. A single leaf: {model.why_single_leaf_}"
    assert repr(why) == f"<Explanation: {why}>"
    assert (why.path, why.conditions, why.flip, why.leaf) == ((), (), None, 0)
    rule, reason = str(model.rules()).splitlines()
    assert rule == "every row: a (100 %, 34 to 100 %)  [2 rows, support 100 %, lift 1]"
    assert reason == f"A single leaf: {model.why_single_leaf_}"
    assert model.rules()[0].holds({})


def test_the_sentence_reads_as_in_the_paper():
    columns = np.meshgrid(np.arange(210, 260), np.arange(20), np.arange(1, 7), indexing="ij")
    names = ["regressDur", "lastSaccLen", "nWordsInTitle"]
    X = pd.DataFrame({name: c.ravel() for name, c in zip(names, columns, strict=True)})
    inside = (X["regressDur"] < 220) & (X["lastSaccLen"] < 5) & X["nWordsInTitle"].isin([4, 5])
    rank = np.cumsum(inside) * inside
    y = np.where((rank > 0) & (rank * 29 % 100 < 81), "Relevant", "Irrelevant")
    model = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=3, max_branches=2).fit(X, y)
    row = pd.DataFrame({"regressDur": [215], "lastSaccLen": [3], "nWordsInTitle": [5]})
    (why,) = model.explain(row)
    assert str(why) == (
        "Predicted Relevant (81 %, 72 to 87 %) because regressDur ≤ 219, lastSaccLen ≤ 4 and "
        "nWordsInTitle in (3, 5]"
    )
    assert str(why.flip) == "It would be Irrelevant (100 %) if regressDur rose from 215 to 220"
    assert why.prediction == ("Relevant",)
    assert why.row == {"regressDur": 215, "lastSaccLen": 3, "nWordsInTitle": 5}


def test_a_missing_value_is_said_to_be_missing():
    X = pd.DataFrame({"x": [1.0, 2.0, NAN] * 20, "c": ["k", "l", None] * 20})
    for name, words in (("x", "x is missing"), ("c", "c is missing or new")):
        model = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, max_branches=2).fit(
            X[[name]], [0, 0, 1] * 20
        )
        gone = pd.DataFrame({name: pd.Series([None], dtype=X[name].dtype)})
        (why,) = model.explain(gone)
        assert why.sentence == f"Predicted 1 (100 %, 84 to 100 %) because {words}"
        assert why.row == {name: None}
    (new,) = model.explain(pd.DataFrame({"c": ["unheard of"]}))
    assert new.sentence == "Predicted 1 (100 %, 84 to 100 %) because c is missing or new"


@pytest.mark.parametrize(
    ("labels", "word"),
    [([0, 1], "1"), ([False, True], "True"), (["no", "yes"], "yes"), ([-7, 12], "12")],
)
def test_labels_are_said_as_they_are(labels, word):
    y = np.array(labels)[(np.arange(40) >= 20) * 1]
    model = make_tree(ShapeTreeClassifier, **PLAIN).fit(np.arange(40.0)[:, None], y)
    (why,) = model.explain([[30.0]])
    assert str(why) == f"Predicted {word} (100 %, 84 to 100 %) because x0 > 19"
    assert why.prediction == (labels[1],)
    assert model.rules()[1].prediction == (labels[1],)
    assert str(why.flip).startswith(f"It would be {labels[0]} (100 %)")


@pytest.mark.parametrize(
    "name", ['a "b"', "it's", "a|b", "x\ny", "<b>&amp;</b>", "größe in °C", "", " ", "a and b", "≤"]
)
def test_names_just_pass_through(name):
    X = pd.DataFrame({name: np.arange(40.0)})
    model = make_tree(ShapeTreeClassifier, **PLAIN).fit(X, np.arange(40) >= 20)
    (why,) = model.explain(pd.DataFrame({name: [30.0]}))
    shown = name.replace("\n", "·")  # what is printed moves no cursor
    assert str(why) == f"Predicted True (100 %, 84 to 100 %) because {shown} > 19"
    assert str(why.flip) == f"It would be False (100 %) if {shown} fell from 30 to 19"
    assert model.rules()[1].premise() == f"{name} > 19"
    assert list(model.shape_table()["feature"]) == [name] * 2


def test_many_categories_are_counted_beyond_the_first():
    names = [f"k{i:02}" for i in range(30)]
    X = pd.DataFrame({"c": names * 10})
    model = make_tree(ShapeTreeClassifier, **PLAIN, max_parts=None, max_depth=1, max_branches=2)
    model.fit(X, np.arange(300) % 30 < 14)
    (why,) = model.explain(pd.DataFrame({"c": ["k03"]}))
    shown = ", ".join(names[:12])
    assert str(why) == f"Predicted True (100 %, 97 to 100 %) because c in {{{shown} and 2 more}}"


def test_numbers_have_their_spread():
    model = make_tree(ShapeTreeRegressor, **PLAIN, max_depth=1).fit(
        [[0.0], [0.0], [1.0], [1.0]] * 10, [1, 3, 7, 7] * 10
    )
    low, high = model.explain([[0.0], [1.0]])
    assert str(low) == "Predicted 2 ± 1 (mean 1.52 to 2.48) because x0 ≤ 0"
    assert str(high) == "Predicted 7 ± 0 because x0 > 0"


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_rows_and_columns_may_come_as_any_table():
    model, X, _ = fitted("two classes")
    frame = model.explain(X[:20])
    assert list(map(str, frame)) == list(map(str, model.explain(X[:20].to_numpy(dtype=object))))


# Conditions


def test_conditions_of_missing_values_hold_for_all_that_is_missing():
    number, word = FeatureInfo("x"), FeatureInfo("c", ("a", "b"))
    for feature in (number, word):
        missing, known = Condition((feature,), is_missing=True), Condition((feature,))
        for value in (None, NAN, np.float32("nan"), pd.NaT, pd.NA):
            assert missing.holds({feature.name: value})
            assert not known.holds({feature.name: value})
        assert missing.holds({})
    for one in (1, 1.0, np.int64(1), np.float32(1), np.float64(1), True):
        assert Condition((number,), low=0.5, high=1.5).holds({"x": one})
    assert Condition((word,), is_missing=True).holds({"c": "new"})
    assert not Condition((word,), categories=("a", "b")).holds({"c": "new"})


def test_a_condition_that_always_holds_is_known_to():
    word = FeatureInfo("c", ("a", "b"))
    assert Condition((FeatureInfo("x"),)).is_always
    assert Condition((word,), categories=("a", "b")).is_always
    assert not Condition((word,), categories=("a",)).is_always
    assert not Condition((word,), is_missing=True).is_always


# Rules


def counted_as_missing(model, X):
    """Which rows go where missing values go, somewhere on their path."""
    lost = [
        set(categories)
        for node in view_of(model).nodes
        for categories in node.missing_categories
        if categories
    ]

    def is_lost(condition):
        """Whether it is about categories that count as missing in a pair's node."""
        some = condition.categories
        return condition.is_missing or (some is not None and any(set(some) <= s for s in lost))

    return np.array([any(map(is_lost, why.conditions)) for why in model.explain(X)])


def assert_rules_say_the_same(model, columns):
    """A row satisfies the rule of its leaf and no other, in data and in words."""
    view, X, rules = view_of(model), as_frame(columns), model.rules()
    leaves = model.apply(X)
    assert sorted(rule.leaf for rule in rules) == np.flatnonzero(model.tree_.is_leaf).tolist()
    for row, leaf in zip(X.to_dict("records")[:150], leaves, strict=False):
        assert [rule.leaf for rule in rules if rule.holds(row)] == [leaf]
    reader = Reader(Rows(view.features, columns))
    for rule in rules:
        held = reader.premise(rule.premise())
        assert_array_equal(held, leaves == rule.leaf, err_msg=str(rule))


@EVERY_TREE
def test_rules_hold_for_exactly_the_rows_of_their_leaves(name):
    model, view = fitted(name)[0], view_of(fitted(name)[0])
    assert_rules_say_the_same(model, random_columns(np.random.default_rng(2), view, 1000, 0.5))


@examples(60)
@given(trees(max_nodes=14), seeds)
def test_rules_of_any_tree_hold_for_exactly_the_rows_of_their_leaves(tree, seed):
    model, rng = as_fitted(tree), np.random.default_rng(seed)
    assert_rules_say_the_same(model, random_columns(rng, view_of(model), 25))


def test_a_rule_that_excludes_a_category_does_not_hold_for_missing_values():
    X = pd.DataFrame({"g": ["a", "b", "c", None] * 20})
    y = ["x", "x", "y", "m"] * 20
    rules = ShapeTreeClassifier(max_depth=1).fit(X, y).rules()
    assert [rule.premise() for rule in rules] == ["g in {a, b}", "g = c", "g is missing or new"]
    many = pd.DataFrame({"g": [f"k{i:02}" for i in range(20)] * 20})
    rules = ShapeTreeClassifier(max_depth=1).fit(many, np.tile(np.arange(20) == 7, 20)).rules()
    assert rules[1].premise() == "g = k07"
    assert rules[0].premise() == "g is known but not k07 or missing or new"


def test_a_fraction_satisfies_the_rule_of_its_leaf_where_training_had_whole_numbers():
    X = pd.DataFrame({"income": np.arange(4400, 4600)})
    model = ShapeTreeClassifier(max_depth=1, max_branches=2).fit(X, X["income"] > 4500)
    premises = [rule.premise() for rule in model.rules()]
    assert premises == ["income ≤ 4500 or missing", "income > 4500"]
    for value, leaf in ((4500, 1), (4500.4, 2), (4501, 2)):
        row = pd.DataFrame({"income": [value]})
        assert model.apply(row) == [leaf]
        assert [rule.leaf for rule in model.rules() if rule.holds({"income": value})] == [leaf]


@EVERY_TREE
def test_rules_count_the_training_rows(name):
    model, X, y = fitted(name)
    leaves = model.apply(X)
    for rule in model.rules():
        inside = leaves == rule.leaf
        assert rule.n_rows == inside.sum()
        assert rule.support == inside.sum() / len(X)
        predicted = model.predict(X[inside])[0]
        assert rule.prediction == tuple(np.atleast_1d(predicted).tolist())
        if y.ndim == 2:
            assert (rule.confidence, rule.lift, rule.deviation) == (None, None, None)
        elif y.dtype.kind == "f":
            assert (rule.confidence, rule.lift) == (None, None)
            assert rule.deviation == pytest.approx(y[inside].std())
            assert_says_number(rule.outcome, float(predicted), y[inside])
        else:
            assert rule.deviation is None
            assert rule.confidence == pytest.approx((y[inside] == predicted).mean())
            assert rule.lift == pytest.approx(rule.confidence / (y == predicted).mean())
            assert re.sub(INTERVAL, "", rule.outcome) == f"{predicted} ({percent(rule.confidence)})"


INTERVAL = r", [\d.]+ to [\d.]+ %"  # of a share


def assert_says_number(words, predicted, targets):
    """The words name the prediction and the spread of the rows around their own mean."""
    number = r"(-?[\d.]+(?:e-?\d+)?)"
    interval = r"(?:mean|median) \S+ to [^\s)]+"
    words = re.sub(rf" \({interval}\)$|, {interval}(?=\)$)", "", words)
    found = re.fullmatch(
        rf"{number}(?: ± {number}| \(rows: {number} ± {number}\)| \(1 row\))", words
    )
    said, spread, mean, spread_of_mean = found.groups()
    assert float(said) == pytest.approx(predicted, rel=1e-3, abs=1e-3)
    if "row)" in words:
        assert len(targets) == 1
        return
    assert float(mean or said) == pytest.approx(targets.mean(), rel=1e-3, abs=1e-3)
    assert float(spread or spread_of_mean) == pytest.approx(targets.std(), rel=5e-3, abs=1e-9)


def test_confidence_counts_rows_and_weights_are_named_beside_it():
    X, y = [[0.0]] * 4 + [[1.0]] * 4, [0, 0, 0, 1, 1, 1, 1, 0]
    weights = [0.5, 0.5, 0.5, 2, 1, 1, 1, 1]  # not whole, or they would count rows
    model = make_tree(
        ShapeTreeClassifier,
        **PLAIN,
        max_depth=1,
        leaf_penalty=0.0,
        segment_penalty=0.0,
        refine=None,
    ).fit(X, y, weights)
    low, high = model.rules()
    assert (low.prediction, low.confidence, high.prediction, high.confidence) == (
        ((1,), 0.25, (1,), 0.75)
    )
    assert (low.predicted, high.predicted) == pytest.approx((4 / 7, 0.75))
    assert high.lift == pytest.approx(0.75 / 0.5)
    assert (low.n_rows, low.support) == (4, 0.5)
    assert low.outcome == "1 (25 % of rows, weighted 57 %, 14 to 91 %)"
    assert high.outcome == "1 (75 %, 30 to 95 %)"
    assert model.rules().to_frame()["predicted"].tolist() == pytest.approx([4 / 7, 0.75])
    equal = model.fit(X, y, [3.0] * 8).rules()
    assert [rule.outcome for rule in equal] == ["0 (75 %, 47 to 91 %)", "1 (75 %, 47 to 91 %)"]
    assert "predicted" not in equal.to_frame()


def test_rules_are_in_the_order_of_the_branches():
    model, _, _ = fitted("five classes")

    def leaves_below(node):
        children = model.tree_.children(node)
        return [leaf for child in children for leaf in leaves_below(child)] or [node]

    assert [rule.leaf for rule in model.rules()] == leaves_below(0)


def test_rules_are_a_sequence():
    rules = fitted("two classes")[0].rules()
    assert len(rules) == len(list(rules)) > 4
    assert rules[-1] is list(rules)[-1]
    assert list(rules[1:3]) == list(rules)[1:3]
    assert str(rules[1:3]) == f"{rules[1]}\n{rules[2]}"
    assert repr(rules) == f"<{len(rules)} rules>\n{rules}"


def test_slices_of_rules_keep_their_digits():
    model = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1).fit(
        np.arange(40)[:, None] / 3, np.arange(40) >= 20
    )
    exact, short = model.rules(), model.rules(digits=2)
    said = "if x0 ≤ 6.5 or missing then False (100 %, 84 to 100 %)  [20 rows, support 50 %, lift 2]"
    assert str(short[:1]) == str(exact[:1]) == said
    model = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1).fit(
        np.arange(40)[:, None] / 7, np.arange(40) >= 20
    )
    short = model.rules(digits=2)
    assert short[0].premise() == "x0 ≤ 2.8 or missing"
    assert short[0].premise(1) == "x0 ≤ 3 or missing"
    assert "x0 ≤ 2.8 or missing then" in str(short)
    assert "x0 > 2.8 then" in str(short[1:])
    assert list(short[1:].to_frame()["if"]) == ["x0 > 2.8"]
    assert "x0 > 2.8 |" in short[1:].to_markdown()


@EVERY_TREE
@pytest.mark.parametrize("digits", [1, 3, 17, 50])
def test_digits_round_what_rules_say(name, digits):
    model, _, _ = fitted(name)
    numbers = re.findall(
        r"(?<![\w·])-?\d+(?:\.\d+)?(?:e-?\d+)?",
        "".join(rule.premise(digits) for rule in model.rules(digits)),
    )
    assert numbers
    fractions = [number for number in numbers if "." in number]
    assert all(len(number.strip("-0.").replace(".", "")) <= digits for number in fractions)


@EVERY_TREE
def test_rules_become_a_frame(name):
    model, _, y = fitted(name)
    rules = model.rules()
    frame = rules.to_frame()
    assert len(frame) == len(rules)
    assert frame["if"].tolist() == [rule.premise() for rule in rules]
    assert frame["rows"].tolist() == [rule.n_rows for rule in rules]
    assert frame["support"].tolist() == [rule.support for rule in rules]
    assert frame["leaf"].tolist() == [rule.leaf for rule in rules]
    single = y.ndim == 1
    expected = [rule.prediction[0] if single else rule.prediction for rule in rules]
    assert frame["then"].tolist() == expected
    assert ("confidence" in frame) == ("lift" in frame) == (single and y.dtype.kind != "f")
    assert ("deviation" in frame) == (single and y.dtype.kind == "f")


def table_cells(markdown):
    """Cells of a Markdown table, as who draws it reads them."""
    lines = markdown.split("\n")
    return [
        [
            html.unescape(re.sub(r"\\([\\|`\[\]])", r"\1", cell.strip()))
            for cell in re.split(r"(?<!\\)\|", line)[1:-1]
        ]
        for line in lines
    ]


@EVERY_TREE
def test_rules_become_a_markdown_table(name):
    rules = fitted(name)[0].rules()
    head, dashes, *lines = table_cells(rules.to_markdown())
    assert head == list(rules.to_frame().columns)
    assert set(dashes) == {"---"}
    assert len(lines) == len(rules)
    assert all(len(line) == len(head) for line in lines)
    assert [line[0] for line in lines] == [rule.premise() for rule in rules]
    assert [line[2] for line in lines] == [str(rule.n_rows) for rule in rules]
    assert rules._repr_markdown_() == rules.to_markdown()


@pytest.mark.parametrize("name", ["a|b", "a||b", "|", "x\ny", "a\r\nb", "end|\n|"])
def test_markdown_escapes_what_would_break_its_table(name):
    X = pd.DataFrame({name: ["k|l", "m\nn"] * 20})
    markdown = (
        make_tree(ShapeTreeClassifier, **PLAIN)
        .fit(X, [f"{name}1", f"{name}2"] * 20)
        .rules()
        .to_markdown()
    )
    head, _, *lines = table_cells(markdown)
    assert "\r" not in markdown
    assert [len(line) for line in lines] == [len(head)] * 2
    assert lines[0][0] == re.sub(r"\r?\n", " ", f"{name} = k|l or missing or new")
    assert lines[1][1] == re.sub(r"\r?\n", " ", f"{name}2")


def test_no_rules_are_an_empty_table():
    nothing = fitted("two classes")[0].rules()[:0]
    assert (len(nothing), str(nothing), len(nothing.to_frame())) == (0, "", 0)
    assert isinstance(nothing.to_markdown(), str)


def test_no_option_of_a_rule_is_impossible_to_satisfy():
    for name in GRID:
        for rule in fitted(name)[0].rules():
            options = [option for clause in rule.clauses for option in clause.options]
            for condition in [condition for option in options for condition in option]:
                assert condition.categories != (), str(rule)
                assert condition.low < condition.high, str(rule)


# Flips


def scales_of(model, X):
    """Standard deviations of the features in training, computed anew."""
    return {
        feature.name: np.nanstd(X[feature.name].astype(float)) for feature in number_features(model)
    }


def number_features(model):
    used = model.tree_.used_features
    return [f for j, f in enumerate(model._fitted.features) if j in used and not f.is_categorical]


def tried_numbers(view, feature, columns, i, unseen):
    """All numbers that could be the nearest of their kind for a row, and some more."""
    own = columns[feature.name][i]
    tried = with_neighbours(edges_of(view, feature.name)).tolist()
    for cut in oblique_cuts(view):
        if feature.name in cut[0]:
            (other,) = set(cut[0]) - {feature.name}
            at = crossings(cut, feature.name, columns[other][i])
            spread = 1e-9 * (min(abs(at), 1e300) + 1e-3)
            if np.isfinite(at):
                tried += [at, at - spread, at + spread]
    tried += [0.0, *np.linspace(-4, 4, 17).tolist()]
    low, high = view.ranges[[known.name for known in view.features].index(feature.name)]
    if unseen or np.isnan(low):
        low, high = -np.inf, np.inf
    tried += [number for number in (low, high) if np.isfinite(number)]
    if feature.is_whole and (not unseen or np.isnan(own) or own == np.floor(own)):
        tried = [number for t in tried for number in (np.floor(t), np.floor(t) + 1)]
    return [number for number in tried if np.isfinite(number) and low <= number <= high]


def assert_smallest_flips(model, columns, scales):
    """Compare flips with all changes that are worth a try."""
    for unseen in (False, True):
        assert_smallest_flips_of_kind(model, columns, scales, unseen)


def assert_smallest_flips_of_kind(model, columns, scales, unseen):
    view, X = view_of(model), as_frame(columns)
    whys, leaves = model.explain(X, unseen=unseen), model.apply(X)
    used = [feature for j, feature in enumerate(view.features) if j in model.tree_.used_features]
    changed, at, sizes = {name: [] for name in columns}, [], []
    for i in range(len(X)):
        for feature in used:
            own = columns[feature.name][i]
            if feature.is_categorical:
                tried = [(category, 1.0) for category in feature.categories if category != own]
            else:
                scale, finite = scales[feature.name], np.clip(own, -LARGEST, LARGEST)
                with np.errstate(over="ignore"):
                    tried = [
                        (number, 1.0 if np.isnan(own) else abs(number - finite) / scale)
                        for number in tried_numbers(view, feature, columns, i, unseen)
                    ]
            for value, size in tried:
                for name, values in changed.items():
                    values.append(value if name == feature.name else columns[name][i])
                at.append(i)
                sizes.append(size)
    to = model.apply(as_frame(changed))
    at, sizes = np.array(at), np.array(sizes)
    differs = [will_do(view, leaves[i], leaf) for i, leaf in zip(at, to, strict=True)]
    for i, why in enumerate(whys):
        possible = sizes[differs & (at == i)]
        if why.flip is not None:
            assert_flips(model, why, X.iloc[[i]], scales)
        if why.flip is None or len(why.flip.changes) == 2:
            assert not len(possible), (str(why), X.iloc[i].to_dict(), possible)
            continue
        if len(possible):
            assert why.flip.size * (1 - 1e-12) <= possible.min()
        if not oblique_cuts(view):
            assert why.flip.size == pytest.approx(possible.min(), rel=1e-12)


@pytest.mark.filterwarnings("ignore:pairs=6 is more than")
def test_flips_of_whole_numbers_are_whole_and_within_what_training_has_seen():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(
        {
            "grade": rng.integers(1, 4, 400).astype(float),
            "nodes": rng.integers(0, 30, 400).astype(float),
            "receptors": rng.integers(0, 60, 400),
        }
    )
    y = X["grade"] * 8 - X["receptors"] + 0.5 * X["nodes"] > 0
    X.loc[rng.random(400) < 0.1, ["grade", "nodes"]] = np.nan
    tree = ShapeTreeClassifier(max_depth=4, pairs=6).fit(X, y)
    assert (tree.tree_.second_feature >= 0).any()
    n_changes = 0
    for why in tree.explain(X):
        for change in () if why.flip is None else why.flip.changes:
            n_changes += 1
            for number in (change.new, float(change.shown)):
                assert number == np.floor(number)
                assert X[change.feature].min() <= number <= X[change.feature].max()
    assert n_changes > 100
    beyond = [
        change
        for why in tree.explain(X, unseen=True)
        if why.flip is not None
        for change in why.flip.changes
        if not X[change.feature].min() <= change.new <= X[change.feature].max()
    ]
    assert beyond


def test_unseen_must_be_true_or_false():
    tree = ShapeTreeClassifier(max_depth=1).fit([[0.0], [1.0]] * 9, [0, 1] * 9)
    with pytest.raises(TypeError, match="unseen must be True or False"):
        tree.explain([[0.0]], unseen="all")


def will_do(view, old, new):
    """Whether another leaf's prediction is another one, for numbers beyond the old one's spread."""
    one, other = view.nodes[old].prediction, view.nodes[new].prediction
    if view.classes is not None or len(one) > 1:
        return one != other
    return abs(one[0] - other[0]) > view.nodes[old].deviation


def assert_flips(model, why, row, scales):
    """A flip does what it says."""
    flip, view, size = why.flip, view_of(model), 0.0
    infos = {feature.name: feature for feature in view.features}
    read = {
        change.feature: change.shown if not change.is_number else float(change.shown)
        for change in flip.changes
    }
    for changed in ({change.feature: change.new for change in flip.changes}, read):
        (leaf,) = model.apply(row.assign(**{name: [value] for name, value in changed.items()}))
        assert leaf == flip.leaf, (flip, row)
    assert will_do(view, why.leaf, flip.leaf)
    assert str(flip).startswith(f"It would be {flip.outcome} if ")
    for change in flip.changes:
        assert str(change) in str(flip)
        assert change.old == why.row[change.feature]
        assert change.is_number != infos[change.feature].is_categorical
        if not change.is_number or change.old is None:
            size += 1
            continue
        with np.errstate(over="ignore"):  # beside the greatest floats
            size += assert_moves(change, scales[change.feature])
    assert flip.size == pytest.approx(size, rel=1e-9)


def assert_moves(change, scale):
    """A number moves as words say, and hardly farther than it must; how far that is."""
    with np.errstate(over="ignore"):
        distance = abs(change.new - np.clip(change.old, -LARGEST, LARGEST))
    verb, old, new = re.search(r"(rose|fell) from (\S+) to (\S+)$", str(change)).groups()
    assert verb == ("rose" if change.new > change.old else "fell")
    assert new == change.shown
    if abs(change.old) < INF:
        assert abs(float(new) - change.new) <= distance / 49
        assert (float(old) < float(new)) == (verb == "rose"), str(change)
        assert float(old) != float(new), str(change)
    with np.errstate(over="ignore"):
        return distance / scale


@EVERY_TREE
def test_flips_are_the_smallest_changes_of_one_feature(name):
    model, X, _ = fitted(name)
    columns = random_columns(np.random.default_rng(3), view_of(model), 30)
    assert_smallest_flips(model, columns, scales_of(model, X))


@pytest.mark.filterwarnings("ignore:Column .c.. .* categories that training has not seen")
@examples(30)
@given(trees(max_nodes=14).filter(lambda tree: tree.node_count > 1), seeds)
def test_flips_of_any_tree_are_the_smallest_changes_of_one_feature(tree, seed):
    model = as_fitted(tree)
    columns = random_columns(np.random.default_rng(seed), view_of(model), 8)
    names = ["a", "b"]
    assert_smallest_flips(model, columns, dict(zip(names, view_of(model).scales, strict=False)))


@examples(25)
@given(st.floats(-1e6, 1e6), st.integers(-3, 3), st.booleans())
def test_flips_say_that_a_number_moves_as_it_does(threshold, k, upwards):
    apart = np.nextafter(threshold, INF)
    X = [[threshold], [apart]] * 20
    with np.errstate(all="ignore"):
        model = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1).fit(X, [0, 1] * 20)
    own = threshold
    for _ in range(abs(k)):
        own = np.nextafter(own, INF if upwards else -INF)
    (why,) = model.explain([[own]])
    verb, old, new = re.search(r"(rose|fell) from (\S+) to (\S+)$", str(why.flip)).groups()
    assert (float(old) < float(new)) if verb == "rose" else (float(old) > float(new))


def test_great_whole_numbers_can_flip_both_ways():
    nanoseconds = 1_700_000_000_000_000_000 + np.arange(200)[:, None] * 10**9
    model = ShapeTreeClassifier(max_depth=1).fit(nanoseconds, np.arange(200) >= 100)
    low, high = model.explain(nanoseconds[[0, 199]])
    assert low.flip is not None
    assert high.flip is not None
    for why, row in ((low, 0), (high, 199)):
        assert model.predict([[why.flip.new]]) != model.predict(nanoseconds[[row]])
        verb, old, new = re.search(r"(rose|fell) from (\S+) to (\S+)$", str(why.flip)).groups()
        assert (float(old) < float(new)) if verb == "rose" else (float(old) > float(new))


@pytest.mark.parametrize(
    "levels", [[1.5, 2.5, "a", "b"], [1.5, 2.5, 3.5, 4.5], [1, 2, 3, 4], [1, "a", 2.0, "b"]]
)
def test_flips_between_categories_of_any_type_are_other_categories(levels):
    X = pd.DataFrame({"c": np.array(levels * 20, dtype=object)})
    model = make_tree(ShapeTreeClassifier, **PLAIN, categorical_features=["c"]).fit(
        X, [1, 1, 0, 0] * 20
    )
    for why, own in zip(model.explain(X[:4]), levels, strict=True):
        assert why.flip.size == 1
        assert str(why.flip).endswith(f"if c were {why.flip.shown} instead of {own}")


def test_flips_from_a_missing_value_name_a_value():
    rng = np.random.default_rng(0)
    x = np.where(rng.random(100) < 0.5, NAN, rng.integers(0, 9, 100))
    for values in (x, pd.array(x, dtype="Int64")):
        X = pd.DataFrame({"x": values})
        model = ShapeTreeClassifier(max_depth=1).fit(X, np.isnan(x))
        (why,) = model.explain(X[np.isnan(x)][:1])
        assert why.flip is not None
        assert abs(why.flip.new) < 1e9
        assert str(why.flip).endswith(f"if x were {why.flip.shown} instead of missing")
        assert model.explain(X[~np.isnan(x)][:1])[0].flip is None


def corner():
    """Only where x and z are both high there is another class."""
    X = pd.DataFrame({"x": [0.0, 0.0, 1.0, 1.0] * 20, "z": [0.0, 1.0, 0.0, 1.0] * 20})
    y = np.array([0, 0, 0, 1] * 20)
    return make_tree(ShapeTreeClassifier, **PLAIN, max_depth=2, leaf_penalty=0.0).fit(X, y), X


def test_two_features_flip_where_no_single_one_does():
    model, X = corner()
    flips = [why.flip for why in model.explain(X[:4])]
    assert str(flips[0]) == ("It would be 1 (100 %) if x rose from 0 to 1 and z rose from 0 to 1")
    assert [flip.feature for flip in flips[1:]] == ["x", "z", "x"]
    for constraint in ({"fixed": ["x"]}, {"only": "z"}, {"direction": {"z": "down"}}):
        assert model.explain(X[:1], **constraint)[0].flip is None


def test_flips_are_sentences():
    change = Change("x", 1.0, 2.5, "2.5", is_number=True)
    assert str(Flip((change,), 1.0, 3, "yes (80 %)")) == (
        "It would be yes (80 %) if x rose from 1 to 2.5"
    )
    assert str(replace(change, old=4.0)) == "x fell from 4 to 2.5"
    assert str(replace(change, old=None)) == "x were 2.5 instead of missing"
    assert str(replace(change, old="a", new="b", shown="b", is_number=False)) == (
        "x were b instead of a"
    )


@EVERY_TREE
@pytest.mark.parametrize("seed", range(3))
def test_flips_keep_to_what_may_change(name, seed):
    model, X, _ = fitted(name)
    view, rng = view_of(model), np.random.default_rng(seed)
    names = [feature.name for feature in view.features]
    fixed, only = rng.choice(names, 2).tolist(), rng.choice(names, 4).tolist()
    numbers = [feature.name for feature in view.features if not feature.is_categorical]
    direction = {one: str(rng.choice(["up", "down"])) for one in rng.choice(numbers, 2)}
    rows = as_frame(random_columns(rng, view, 40))
    whys = model.explain(rows, fixed=fixed, only=only, direction=direction)
    for i, why in enumerate(whys):
        if why.flip is None:
            continue
        assert_flips(model, why, rows.iloc[[i]], scales_of(model, X))
        for change in why.flip.changes:
            assert change.feature in only
            assert change.feature not in fixed
            if change.feature in direction:
                assert str(change).split(" ")[1] == (
                    "rose" if direction[change.feature] == "up" else "fell"
                )


@pytest.mark.parametrize("name", ["two classes", "five classes, missing", "pairs, refined"])
def test_flips_reach_the_classes_that_are_wanted(name):
    model, _, _ = fitted(name)
    rows = as_frame(random_columns(np.random.default_rng(5), view_of(model), 60))
    before = model.predict(rows)
    for wanted in [*model.classes_.tolist(), model.classes_[:2].tolist()]:
        labels = wanted if isinstance(wanted, list) else [wanted]
        for i, why in enumerate(model.explain(rows, target=wanted)):
            if before[i] in labels:
                assert why.flip is None
            elif why.flip is not None:
                changed = {change.feature: [change.new] for change in why.flip.changes}
                assert model.predict(rows.iloc[[i]].assign(**changed))[0] in labels


@pytest.mark.parametrize("name", ["numbers", "numbers of pairs", "medians"])
def test_flips_reach_the_numbers_that_are_wanted(name):
    model, _, y = fitted(name)
    rows = as_frame(random_columns(np.random.default_rng(5), view_of(model), 60))
    before, middle = model.predict(rows), float(np.median(y))
    for wanted in (middle, (None, middle), (middle, None), (middle - 0.5, middle + 0.5)):
        low, high = wanted if isinstance(wanted, tuple) else (middle, middle)
        low, high = (-INF if low is None else low), (INF if high is None else high)
        reached = 0
        for i, why in enumerate(model.explain(rows, target=wanted)):
            if why.flip is None:
                continue
            changed = {change.feature: [change.new] for change in why.flip.changes}
            (after,) = model.predict(rows.iloc[[i]].assign(**changed))
            if isinstance(wanted, tuple):
                assert low <= after <= high
                assert not low <= before[i] <= high
            else:
                assert before[i] < middle <= after or after <= middle < before[i]
            reached += 1
        assert reached >= 5


def test_a_regression_flip_leaves_the_spread():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.repeat([0.0, 1.0, 2.0], 100)})
    y = 10 * X["x"] ** 4 + rng.normal(scale=20, size=300)
    model = ShapeTreeRegressor(
        max_depth=2, search=SearchOptions(leaf_penalty=0, segment_penalty=0)
    ).fit(X, y)
    assert len(set(model.predict(X))) == 3
    (why,) = model.explain(X[:1])
    assert why.flip.new > 1.2  # at x = 1 the prediction is another one, but within the spread
    (near,) = model.explain(X[:1], target=(5, 50))
    assert near.flip.new == 1


@pytest.mark.parametrize(
    ("constraint", "error", "words"),
    [
        ({"fixed": ["nothing"]}, ValueError, "fixed names 'nothing'"),
        ({"only": [7]}, ValueError, "only has the index 7"),
        ({"direction": ["x"]}, TypeError, "direction must map"),
        ({"direction": {"x": "sideways"}}, ValueError, "'up' or 'down' for 'x'"),
        ({"target": 5}, ValueError, "not one of the classes"),
    ],
)
def test_constraints_are_checked(constraint, error, words):
    model, X = corner()
    with pytest.raises(error, match=words):
        model.explain(X[:1], **constraint)


def test_constraints_of_numbers_are_checked():
    model, X, _ = fitted("numbers")
    for target, error in (("a", TypeError), ((2, 1), ValueError), ((1, 2, 3), TypeError)):
        with pytest.raises(error, match="target must be"):
            model.explain(X[:1], target=target)
    with pytest.raises(ValueError, match="only numbers can go up or down"):
        model.explain(X[:1], direction={"colour": "up"})
    many, X, _ = fitted("two outputs")
    with pytest.raises(ValueError, match="target needs a tree of one target"):
        many.explain(X[:1], target="yes")


# Values unlike training


def test_values_beyond_training_are_marked():
    X = pd.DataFrame({"age": np.arange(17, 91), "x": np.zeros(74)})
    model = ShapeTreeClassifier(max_depth=1).fit(X, X["age"] > 50)
    inside, above, below, missing = model.explain(
        pd.DataFrame({"age": [90, 150, 16, None], "x": [9.0] * 4})
    )
    assert inside.notes == missing.notes == ()
    assert above.notes == ("age = 150 is outside the range 17 to 90 seen in training",)
    assert str(above) == f"{above.sentence}. Note: {above.notes[0]}"
    assert below.notes == ("age = 16 is outside the range 17 to 90 seen in training",)
    assert model.from_json(model.to_json()).explain(X.assign(age=150)[:1])[0].notes == above.notes


@pytest.mark.parametrize("kind", ["pandas", "categories", "array", "polars", "pyarrow"])
def test_new_categories_are_marked(kind):
    frame = pd.DataFrame({"colour": ["red", "blue", "grey"] * 20, "x": range(60)})
    model = ShapeTreeClassifier(max_depth=1, categorical_features=["colour"])
    rows = pd.DataFrame({"colour": ["purple", None, "red"], "x": [1, 2, 3]})
    if kind == "categories":
        rows["colour"] = rows["colour"].astype("category")
    model.fit(frame, frame["colour"] == "red")
    if kind == "array":
        rows = rows.to_numpy()
    elif kind == "polars":
        rows = pytest.importorskip("polars").from_pandas(rows)
    elif kind == "pyarrow":
        rows = pytest.importorskip("pyarrow").Table.from_pandas(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new, missing, known = model.explain(rows)
    assert new.notes == ("colour = purple was never seen in training",)
    assert new.new_categories == {"colour": "purple"}
    assert missing.notes == known.notes == ()


# Tables


@EVERY_TREE
def test_tables_of_shapes_say_where_values_go(name):
    model, view = fitted(name)[0], view_of(fitted(name)[0])
    for node in view.nodes:
        if not node.children:
            continue
        table = model.shape_table(node.number)
        parts = table[: len(node.segments) + len(node.joined_regions)]
        assert set(table["feature"]) == {" and ".join(f.name for f in node.features)}
        assert parts["branch"].tolist() == [
            p.branch for p in (*node.segments, *node.joined_regions)
        ]
        assert table["child"].tolist() == [node.children[branch] for branch in table["branch"]]
        assert len(table) == len(parts) + node.saw_missing
        assert ("region" in table) == bool(node.regions)
        if node.saw_missing:
            assert table["branch"].tolist()[-1] == node.missing_branch
        for child, words in zip(table["child"], table["leads_to"], strict=True):
            used = view.nodes[child].features
            if used:
                assert words == " and ".join(feature.name for feature in used)
        if "low" in table:
            assert parts["low"].tolist() == [segment.low for segment in node.segments]
            assert parts["high"].tolist() == [segment.high for segment in node.segments]


def pooled_segments():
    """Two segments that lead to one leaf, in which shares and means differ."""
    x = np.repeat([1.0, 2.0, 3.0, np.nan], [40, 50, 25, 10])
    is_one = np.concatenate([np.arange(40) < 36, np.zeros(50), np.arange(25) < 17, np.ones(10)])
    return pd.DataFrame({"x": x}), is_one.astype(int)


def test_shares_in_tables_are_those_of_the_rows_beside_them():
    X, y = pooled_segments()
    tree = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, max_branches=2).fit(X, y)
    table = tree.shape_table()
    assert table["n_rows"].tolist() == [40, 50, 25, 10]
    assert table["share"].tolist() == pytest.approx([36 / 40, 1.0, 17 / 25, 1.0])
    pooled = table[table["child"] == table["child"][0]]
    assert len(pooled) == 3
    assert set(pooled["child_rows"]) == {75}
    assert set(pooled["leads_to"]) == {f"1 ({round(100 * 63 / 75)} %, 74 to 91 %)"}


def test_means_in_tables_are_those_of_the_rows_beside_them():
    X, y = pooled_segments()
    tree = ShapeTreeRegressor(max_depth=1, max_branches=2).fit(X, 10.0 * y)
    table = tree.shape_table()
    assert table["n_rows"].tolist() == [40, 50, 25, 10]
    assert table["mean"].tolist() == pytest.approx([9.0, 0.0, 6.8, 10.0])
    assert set(table["child_rows"][table["child"] == table["child"][0]]) == {75}


# Bad input


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.explain([[1.0]]),
        lambda model: model.rules(),
        lambda model: model.shape_table(),
        lambda model: model.prune([0]),
        lambda model: model.simplify(),
        view_of,
    ],
)
def test_trees_that_are_not_fitted_say_nothing(kind, use):
    with pytest.raises(NotFittedError):
        use(kind())


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_explain_refuses_other_columns():
    model, X, _ = fitted("two classes")
    with pytest.raises(ValueError, match="feature names"):
        model.explain(X[["u", "v"]])
    with pytest.raises(ValueError, match="feature names"):
        model.explain(X.rename(columns={"u": "w"}))
    with pytest.raises(ValueError, match="features"):
        model.explain(np.zeros((2, 7)))
    with pytest.raises(ValueError, match=r"2D|dimension"):
        model.explain(np.zeros(6))
    with pytest.raises(ValueError, match="numbers are expected"):
        model.explain(X.assign(**dict.fromkeys("uvnm", "text")))


@pytest.mark.parametrize("node", ["leaf", -1, 10_000, "0", None, True, 0.0, 1.5, [0], (0, 1)])
def test_tables_of_shapes_refuse_what_is_no_splitting_node(node):
    model, _, _ = fitted("two classes")
    node = int(np.flatnonzero(model.tree_.is_leaf)[0]) if node == "leaf" else node
    with pytest.raises((ValueError, TypeError), match="has no shape function; nodes that have"):
        model.shape_table(node)


def test_tables_of_shapes_take_integers_of_any_kind():
    model, _, _ = fitted("two classes")
    assert model.shape_table(np.int64(0)).equals(model.shape_table(0))
    with pytest.raises(ValueError, match="single leaf"):
        ShapeTreeClassifier().fit([[1.0], [2.0]], [0, 0]).shape_table()


@pytest.mark.parametrize("digits", [0, -1])
def test_rules_need_a_digit(digits):
    with pytest.raises(ValueError, match=f"digits must be at least 1, got {digits}"):
        fitted("two classes")[0].rules(digits)


@pytest.mark.parametrize("digits", [1.5, "3"])
def test_digits_are_whole(digits):
    with pytest.raises((TypeError, ValueError)):
        str(fitted("two classes")[0].rules(digits))


# Words


def test_explanations_show_themselves_in_notebooks():
    X = pd.DataFrame({"<b>": [0.5, 1.5] * 20})
    (why,) = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1).fit(X, [0, 1] * 20).explain(X[:1])
    shown = why._repr_html_()
    assert shown.startswith("<p>Predicted 0 (100 %, 84 to 100 %) because &lt;b&gt; ≤ 1.")
    assert "It would be 1 (100 %) if &lt;b&gt; rose" in shown


def test_fitted_trees_draw_themselves_in_notebooks():
    tree = ShapeTreeClassifier(max_depth=2)
    assert "<svg" not in tree._repr_mimebundle_()["text/html"]
    X, y = load_iris(return_X_y=True)
    tree.fit(X, y)
    drawn = tree._repr_mimebundle_()["text/html"]
    assert "<svg" in drawn
    assert tree._repr_html_().count("<svg") == drawn.count("<svg")
    several = ShapeTreeClassifier(max_depth=2).fit(X, np.column_stack([y, y]))
    assert "text/html" in several._repr_mimebundle_()


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_pipelines_show_the_columns_of_the_table(output):
    iris = load_iris(as_frame=True)
    first, *others = iris.data.columns
    steps = make_column_transformer((SimpleImputer(), others), ("passthrough", [first]))
    pipeline = make_pipeline(steps, ShapeTreeClassifier(max_depth=2))
    pipeline.set_output(transform=output).fit(iris.data, iris.target)
    assert export_text(pipeline).splitlines()[1].startswith(("petal", "sepal"))
    assert "__" not in export_text(pipeline)


def test_columns_of_a_pipeline_that_share_a_name_keep_their_steps():
    X = pd.DataFrame({"x": np.arange(40.0)})
    steps = make_column_transformer((SimpleImputer(), ["x"]), (StandardScaler(), ["x"]))
    pipeline = make_pipeline(steps, ShapeTreeClassifier(max_depth=1)).fit(X, X["x"] > 7)
    assert "simpleimputer__x" in export_text(pipeline)


def test_true_false_and_missing_are_categories_whatever_stands_for_missing():
    for missing in (np.nan, None, pd.NA):
        X = pd.DataFrame({"smoker": np.array([True, False, missing] * 30, dtype=object)})
        tree = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1, max_branches=2).fit(
            X, [1, 0, 0] * 30
        )
        assert (
            str(tree.explain(X[:1])[0]) == "Predicted 1 (100 %, 89 to 100 %) because smoker = yes"
        )


def test_true_and_false_are_said_as_yes_and_no():
    X = pd.DataFrame({"smoker": [True, False] * 30})
    tree = make_tree(ShapeTreeClassifier, **PLAIN, max_depth=1).fit(X, [1, 0] * 30)
    assert "├─ no: 0" in export_text(tree)
    assert "if smoker = yes then 1" in str(tree.rules())
    (explained,) = tree.explain(X[:1])
    assert str(explained.flip).endswith("if smoker were no instead of yes")
    assert explained.flip.new is False
    assert '"categories":["no","yes"],"values":[false,true]' in export_html(tree)
    marked = MarkedRow(frozenset(), {"smoker": np.True_})
    assert marked.words(view_of(tree).features[0]) == "yes"


@pytest.mark.parametrize("order", ["same", "shuffled"])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_rows_of_training_are_not_called_unseen(kind, order):
    X, y = load_iris(return_X_y=True, as_frame=True)
    make = ShapeTreeClassifier if kind == "classes" else ShapeTreeRegressor
    tree = make(max_depth=3).fit(X, y)
    rows = np.random.default_rng(0).permutation(150) if order == "shuffled" else np.arange(150)
    with pytest.warns(UserWarning, match="the rows that the tree was fitted on"):
        scores = tree.evaluate(X.iloc[rows], y.iloc[rows])
    assert next(iter(scores.values())) == pytest.approx(tree.score(X, y))
    assert "unseen" not in export_text(tree)
    half = X.index % 2 == 0  # as many rows of each class in either half
    tree.fit(X[half], y[half]).evaluate(X[~half], y[~half])
    assert "75 unseen rows" in export_text(tree)


@pytest.mark.parametrize("sign", ["\x1b", "\u2028", "\x9b", "\n", "\u202e"])
def test_explanations_and_flips_show_no_control_characters(sign):
    rng = np.random.default_rng(0)
    name, level = f"group{sign}[31m", f"red{sign}[2J"
    X = pd.DataFrame({name: rng.choice([level, "blue"], 200), "size": rng.normal(size=200)})
    y = np.where(X[name] == level, f"yes{sign}", "no")
    model = ShapeTreeClassifier(max_depth=2, resamples=0).fit(X, y)
    explanations = model.explain(X.head(20))
    shown = repr(explanations)
    assert sign not in shown
    assert "group·[31m = red·[2J" in shown
    for explanation in explanations:
        assert sign not in str(explanation)
        assert sign not in str(explanation.flip)
        assert not any(sign in str(change) for change in explanation.flip.changes)
        assert explanation.row[name] in (level, "blue")
    assert any("group·[31m were blue instead of red·[2J" in str(e.flip) for e in explanations)
    new = X.head(1).assign(**{name: f"new{sign}"})
    (explanation,) = model.explain(new)
    assert "= new· was never seen in training" in str(explanation)
