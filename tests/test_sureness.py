"""Leaves tell how sure they are: intervals that hold, and that are said wherever a leaf is."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from data import make_tree
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_text,
    from_json,
)
from shapetree.export._html import outcome_data
from shapetree.tree._digits import percent
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._intervals import (
    sure_of_mean,
    sure_of_median,
    sure_of_node,
    sure_of_share,
    unseen_leaves,
)
from shapetree.tree._rebinning import bin_used_features
from shapetree.tree._sketch import NodeSketch, joined_moments
from shapetree.tree._sketcher import SketchedPart, SketchedRows, sketch_tree
from shapetree.tree._view import view_of
from shapetree.tree._words import range_words

N_TRIALS = 4000


# --- the intervals hold ---


@pytest.mark.parametrize("n", [1, 4, 20, 300])
def test_intervals_of_shares_are_wilsons(n):
    for k in {0, 1, n // 3, n}:
        sure = sure_of_share(k / n, n)
        expected = binomtest(k, n).proportion_ci(method="wilson")
        assert_allclose([sure.low, sure.high], [expected.low, expected.high], atol=1e-12)
        assert sure.low <= k / n <= sure.high


def test_shares_of_none_and_all_have_exact_ends():
    assert sure_of_share(0.0, 7).low == 0.0
    assert sure_of_share(1.0, 7).high == 1.0
    assert sure_of_share(0.5, 0) is None


KINDS = {
    # How to draw rows, their mean and median, and the least share of intervals that hold for few
    # (5), some (10) and many (50) rows. Student's interval holds for 82 to 95 %.
    "normal": (lambda rng, s: rng.normal(size=s), 0.0, 0.0, (0.94, 0.94, 0.94)),
    "uniform": (lambda rng, s: rng.uniform(size=s), 0.5, 0.5, (0.94, 0.94, 0.94)),
    "exponential": (
        lambda rng, s: rng.exponential(size=s),
        *(1.0, np.log(2), (0.905, 0.93, 0.95)),
    ),
    "log-normal": (
        lambda rng, s: rng.lognormal(0, 0.5, size=s),
        *(np.exp(0.125), 1.0, (0.925, 0.93, 0.94)),
    ),
    "very skewed": (
        lambda rng, s: rng.lognormal(0, 1, size=s),
        *(np.exp(0.5), 1.0, (0.86, 0.89, 0.93)),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_means_hold_in_simulation(kind):
    draw, mean, _, least = KINDS[kind]
    rng = np.random.default_rng(0)
    for n, share in zip((5, 10, 50), least, strict=True):
        rows = draw(rng, (N_TRIALS, n))
        held = 0
        for own in rows:
            deviation = own.std()
            skewness = ((own - own.mean()) ** 3).mean() / deviation**3
            sure = sure_of_mean(own.mean(), deviation, skewness, n)
            held += sure.low <= mean <= sure.high
        assert held / N_TRIALS >= share


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_of_medians_hold_in_simulation(kind):
    draw, _, median, _ = KINDS[kind]
    rng = np.random.default_rng(1)
    for n in (6, 15, 100):
        rows = np.sort(draw(rng, (N_TRIALS, n)), axis=1)
        sures = [sure_of_median(own) for own in rows]
        held = np.mean([sure.low <= median <= sure.high for sure in sures])
        assert held >= 0.94
    assert sure_of_median(rows[0, :5]) is None


def test_equal_numbers_have_no_interval():
    assert sure_of_mean(3.0, 0.0, 0.0, 10) is None
    assert sure_of_mean(3.0, 1.0, 0.0, 1) is None


def test_moments_of_joined_rows_are_those_of_all():
    rng = np.random.default_rng(2)
    parts = [rng.exponential(size=n) for n in (7, 30)]

    def moments(y):
        return len(y), y.mean(), y.std(), ((y - y.mean()) ** 3).mean() / y.std() ** 3

    assert_allclose(joined_moments(*map(moments, parts)), moments(np.concatenate(parts)))


# --- of a fitted tree ---


def classified():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    return ShapeTreeClassifier(max_depth=2).fit(X, y), X, y, X_new, y_new


def regressed(**given):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    X, X_new, y, y_new = train_test_split(X, y, random_state=0)
    return make_tree(ShapeTreeRegressor, max_depth=2, **given).fit(X, y), X, y, X_new, y_new


def test_leaves_have_the_intervals_of_their_training_rows():
    tree, X, y, _, _ = classified()
    leaves = tree.apply(X)
    for rule in tree.rules():
        own = y[leaves == rule.leaf] == rule.prediction[0]
        expected = binomtest(int(own.sum()), len(own)).proportion_ci(method="wilson")
        assert_allclose(rule.sure[:3], [own.mean(), expected.low, expected.high])


def test_leaves_have_the_intervals_of_their_mean():
    tree, X, y, _, _ = regressed()
    leaves = tree.apply(X)
    for rule in tree.rules():
        own = y[leaves == rule.leaf].to_numpy()
        skewness = ((own - own.mean()) ** 3).mean() / own.std() ** 3
        expected = sure_of_mean(own.mean(), own.std(), skewness, len(own))
        assert_allclose(rule.sure[:3], expected[:3], rtol=1e-4)


def test_leaves_have_the_intervals_of_their_median():
    tree, X, y, _, _ = regressed(criterion="absolute_error")
    leaves = tree.apply(X)
    for rule in tree.rules():
        expected = sure_of_median(np.sort(y[leaves == rule.leaf].to_numpy()))
        assert rule.sure == expected


def test_whole_weights_count_rows_and_others_make_fewer_of_them():
    _, X, y, _, _ = classified()
    twice = ShapeTreeClassifier(max_depth=2).fit(X, y, np.full(len(y), 2))
    repeated = ShapeTreeClassifier(max_depth=2).fit(pd.concat([X, X]), pd.concat([y, y]))
    assert [rule.sure for rule in twice.rules()] == [rule.sure for rule in repeated.rules()]
    weights = np.random.default_rng(0).uniform(0.1, 5, len(y))
    (rule, *_) = ShapeTreeClassifier(max_depth=1).fit(X, y, weights).rules()
    unweighted = sure_of_share(rule.confidence, rule.n_rows)
    assert rule.sure.high - rule.sure.low > unweighted.high - unweighted.low


@pytest.mark.parametrize("has_counts", [False, True])
def test_nodes_know_the_effective_number_of_their_own_rows(has_counts):
    _, X, y, _, _ = classified()
    tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
    rng, fitted = np.random.default_rng(0), fitted_tree(tree)
    # Some leaves have rows that weigh the same, and some have rows that do not.
    leaves = tree.apply(X)
    weights = np.where(leaves == leaves.min(), 1e-3, rng.gamma(0.3, size=len(y)) + 1e-6)
    counts = rng.integers(1, 4, len(y)) if has_counts else np.ones(len(y), dtype=int)
    table = fitted.read_table(X, "a test")
    part = SketchedPart(
        fitted.tree,
        table,
        bin_used_features(fitted.tree, table, 1),
        y.to_numpy(np.int32),
        counts.astype(np.int32) if has_counts else None,
        counts * weights,
    )
    about = fitted.tree, fitted.features, SketchedRows.of(part), fitted.summary.ranges
    told = sketch_tree(*about, n_classes=2)[0]
    for leaf in np.unique(leaves):
        mine = np.repeat(weights, counts)[np.repeat(leaves, counts) == leaf]
        by_class = np.array([mine.sum() / 4, mine.sum() * 3 / 4])
        sketch = replace(told, weighed=np.tile(by_class, (len(told), 1)))[int(leaf)]
        assert_allclose(sketch.n_effective, mine.sum() ** 2 / (mine**2).sum(), rtol=1e-4)
        expected = sure_of_share(0.75, sketch.n_effective)
        assert_allclose(sure_of_node(sketch, 1, is_median=False)[:3], expected[:3])


@pytest.mark.parametrize("numbers", [None, (3.0, 1.0)])
def test_joined_nodes_have_the_effective_number_of_all_their_rows(numbers):
    rows = [np.array([0.1, 2.0, 3.0]), np.array([0.5, 0.5])]
    sketches = [
        NodeSketch(
            np.array([len(own), 0]),
            *(numbers or ()),
            weighed=np.array([own.sum(), *(numbers or (0.0,))]),
            squared_weights=float((own**2).sum()),
        )
        for own in rows
    ]
    every = np.concatenate(rows)
    joined = sketches[0].joined_with(sketches[1])
    assert_allclose(joined.n_effective, every.sum() ** 2 / (every**2).sum())


def test_intervals_of_weighted_leaves_go_by_the_effective_number_of_their_own_rows():
    _, X, y, _, _ = classified()
    weights = np.random.default_rng(0).gamma(0.3, size=len(y)) + 1e-3
    tree = ShapeTreeClassifier(max_depth=1).fit(X, y, weights)
    leaves = tree.apply(X)
    for rule in tree.rules():
        own, right = weights[leaves == rule.leaf], y[leaves == rule.leaf] == rule.prediction[0]
        n = own.sum() ** 2 / (own**2).sum()
        expected = sure_of_share(right @ own / own.sum(), n)
        assert_allclose(rule.sure[:3], expected[:3], rtol=1e-3)


def test_evaluation_tells_of_each_leaf_by_new_rows():
    tree, _, _, X_new, y_new = classified()
    tree.evaluate(X_new, y_new)
    leaves = tree.apply(X_new)
    told = {rule.leaf: rule.unseen for rule in tree.rules()}
    for leaf, unseen in told.items():
        own = (y_new == tree.predict(X_new))[leaves == leaf]
        if len(own) == 0:
            assert unseen is None
            continue
        expected = binomtest(int(own.sum()), len(own)).proportion_ci(method="wilson")
        assert unseen.n_rows == len(own)
        assert_allclose(unseen[1:], [own.mean(), expected.low, expected.high])


@pytest.mark.parametrize("weights", [np.array([1.0, 2, 0, 3]), np.array([0.5, 1.5, 0, 1])])
def test_new_rows_count_by_their_weights(weights):
    leaves, y = np.zeros(4, dtype=int), np.array([1.0, 2, 9, 4])
    (found,) = unseen_leaves(leaves, y, None, weights).values()
    assert_allclose(found.value, np.average(y, weights=weights))
    is_whole = bool((weights == np.rint(weights)).all())
    n = weights.sum() if is_whole else weights.sum() ** 2 / (weights**2).sum()
    off = (y - found.value) / (
        deviation := np.sqrt(np.average((y - found.value) ** 2, weights=weights))
    )
    expected = sure_of_mean(found.value, deviation, np.average(off**3, weights=weights), n)
    assert_allclose(found[2:], expected[1:3])


# --- wherever a leaf is shown ---


def test_the_interval_of_a_page_belongs_to_the_share_beside_it():
    _, X, y, _, _ = classified()
    weights = np.where(y == 1, 0.2, 3.7)
    tree = ShapeTreeClassifier(max_depth=1).fit(X, y, weights)
    view = view_of(fitted_tree(tree))
    for node in view.nodes:
        words = outcome_data(view, node, view)
        if words["shortShare"] == percent(node.sure.value):
            assert words["sure"] == range_words(node.sure)
        else:
            weighted = f"weighted {percent(node.sure.value)}, {range_words(node.sure)}"
            assert words["sure"] == weighted
    assert any("weighted" in outcome_data(view, node, view)["sure"] for node in view.nodes)


def test_words_say_which_number_the_interval_belongs_to():
    tree, X, _, X_new, y_new = classified()
    pattern = r"\d[\d.]* % of rows, [\d.]+ to [\d.]+ %; predicted [\d.]+ %"
    assert re.search(pattern, export_text(tree))
    assert re.search(pattern, str(tree.rules()))
    assert re.search(pattern, "\n".join(map(str, tree.explain(X))))
    assert re.search(pattern, "".join(tree.shape_table()["leads_to"]))
    tree.evaluate(X_new, y_new)
    new = r"; \d+ unseen rows: [\d.]+ %, [\d.]+ to [\d.]+ %\)"
    for words in (export_text(tree), str(tree.rules()), str(tree.explain(X.iloc[:1])[0])):
        assert re.search(new, words)


def test_words_of_numbers_have_the_interval_of_the_mean():
    tree, _, _, X_new, y_new = regressed()
    assert re.search(r"\(rows: [\d.]+ ± [\d.]+, mean \d+ to \d+\)", export_text(tree))
    tree.evaluate(X_new, y_new)
    assert re.search(r", mean \d+ to \d+; \d+ unseen rows: mean [\d.]+, ", export_text(tree))
    medians = regressed(criterion="absolute_error")[0]
    assert re.search(r", median \d+ to \d+\)", export_text(medians))


def test_tables_have_columns_for_intervals():
    tree, _, _, X_new, y_new = classified()
    frame = tree.rules().to_frame()
    assert (frame["low"] <= frame["confidence"]).all()
    assert (frame["confidence"] <= frame["high"]).all()
    assert {"child_low", "child_high"} <= set(tree.shape_table().columns)
    tree.evaluate(X_new, y_new)
    frame = tree.rules().to_frame()
    assert frame["new_rows"].sum() == len(y_new)


def test_pages_tell_how_sure_nodes_are():
    tree, _, _, X_new, y_new = classified()
    tree.evaluate(X_new, y_new)
    page = export_html(tree)
    (text,) = re.findall(r'id="tree-data">(.*?)</script>', page)
    nodes = json.loads(text)["nodes"]
    assert all(re.fullmatch(r"[\d.]+ to [\d.]+ %", node["sure"]) for node in nodes)
    assert any("unseen rows: " in node.get("unseen", "") for node in nodes)


@pytest.mark.parametrize(
    "make", [classified, regressed, lambda: regressed(criterion="absolute_error")]
)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_model_files_keep_how_sure_leaves_are(make, is_weighted):
    tree, X, y, X_new, y_new = make()
    if is_weighted:
        tree.fit(X, y, np.random.default_rng(0).uniform(0.5, 2, len(y)))
    tree.evaluate(X_new, y_new)
    again = from_json(tree.to_json())
    assert export_text(again) == export_text(tree)
    assert again.to_json() == tree.to_json()


def test_joined_leaves_are_as_sure_as_all_their_rows():
    X = pd.DataFrame({"x": np.arange(300) % 30, "z": np.arange(300) % 7})
    tree = ShapeTreeClassifier(max_depth=2, strength=0, resamples=0).fit(X, X["x"] > 14)
    for made in (tree.simplify(), tree.prune([0])):
        view = view_of(fitted_tree(made))
        for node in view.nodes:
            best = int(node.value[0].argmax())
            assert node.sure == sure_of_share(node.counts[best] / node.n_rows, node.n_rows)


# --- trees of a single leaf ---


def single_leaf():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd"))
    return ShapeTreeClassifier().fit(X, rng.integers(0, 2, 80)), X


def test_a_single_leaf_says_why_wherever_it_is_shown():
    tree, X = single_leaf()
    why = tree.why_single_leaf_
    for words in (
        repr(tree),
        tree._repr_html_() if hasattr(tree, "_repr_html_") else repr(tree),
        export_text(tree),
        str(tree.rules()),
        tree.rules().to_markdown(),
        str(tree.explain(X.iloc[:1])[0]),
    ):
        assert "A single leaf: small trees did not predict rows held out" in words
    (text,) = re.findall(r'id="tree-data">(.*?)</script>', export_html(tree))
    assert json.loads(text)["whySingleLeaf"] == f"A single leaf: {why}"
    assert from_json(tree.to_json()).why_single_leaf_ == why


def test_an_estimator_with_splits_is_written_as_by_scikit_learn():
    tree = classified()[0]
    assert repr(tree) == "ShapeTreeClassifier(max_depth=2)"
    long = ShapeTreeClassifier(max_depth=2, max_branches=5, max_leaf_nodes=7, min_samples_leaf=22)
    assert repr(long).count("\n") == 1


def test_the_reason_tells_what_was_gained_and_what_was_asked():
    tree, X = single_leaf()
    found = re.search(
        r"log loss was ([\d.]+) (lower|higher) than .* more than ([\d.]+)", tree.why_single_leaf_
    )
    gain, change, needed = found.groups()
    assert change == "higher" or float(gain) <= float(needed)
    y = np.random.default_rng(0).integers(0, 2, 80)
    priced = ShapeTreeClassifier(strength=100, resamples=0).fit(X, y)
    found = re.search(
        r"on '([abcd])', gains ([\d.]+) bits .* than ([\d.]+)", priced.why_single_leaf_
    )
    name, gain, needed = found.groups()
    assert float(gain) <= float(needed)
    stump = ShapeTreeClassifier(
        max_depth=1, resamples=0, refine=None, strength=100, search=SearchOptions(leaf_penalty=0)
    ).fit(X, y)
    assert stump.rules()[0].clauses[0].features[0].name == name
    same = ShapeTreeClassifier().fit(X, np.ones(80))
    assert same.why_single_leaf_.startswith("all rows have the same target")
    limited = ShapeTreeClassifier(min_samples_leaf=50).fit(X, y)
    assert "min_samples_leaf" in limited.why_single_leaf_
