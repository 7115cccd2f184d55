"""Shares of classes as targets."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsClassifier

from shapetree import (
    ClassShares,
    ShapeForestClassifier,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_json,
    export_text,
    from_json,
    refine_tree,
)
from shapetree.data._shares import in_steps, parts_of, steps_of
from shapetree.plot import plot_tree
from shapetree.tree._view import view_of

CLASSES = ["ill", "unclear", "well"]


def table(seed, n=200):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)).round(2), columns=list("abc"))
    X["kind"] = pd.Categorical(rng.choice(["p", "q", "r"], n))
    X.iloc[::9, 0] = np.nan
    risk = 1 / (1 + np.exp(-1.5 * X["a"].fillna(0) - (X["kind"] == "q")))
    return X, np.stack([0.8 * risk, np.full(n, 0.2), 0.8 * (1 - risk)], axis=1), rng


def judged(seed, n_raters=5, n=200):
    """A table, and the votes of some raters for each row."""
    X, chances, rng = table(seed, n)
    votes = np.array([rng.multinomial(n_raters, own) for own in chances])
    return X, votes


def one_row_for_each_vote(X, votes):
    """Rows of each class, how many votes they have, and which row they are a part of."""
    row, label = np.nonzero(votes)
    parts = X.iloc[row].reset_index(drop=True)
    return parts, np.array(CLASSES)[label], votes[row, label].astype(float), row


@pytest.mark.parametrize("seed", range(3))
def test_certain_shares_are_labels(seed):
    X, votes = judged(seed, n_raters=1)
    y = np.array(CLASSES)[votes.argmax(axis=1)]
    weights = np.random.default_rng(seed).random(len(y)) + 0.5
    for options in ({}, {"strength": "cv"}, {"class_weight": "balanced"}):
        for given in (None, weights):
            tree = ShapeTreeClassifier(**options).fit(X, y, given)
            other = ShapeTreeClassifier(**options).fit(X, ClassShares(votes, CLASSES), given)
            assert export_json(tree) == export_json(other)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"refine": None},
        {"objective": "error", "max_leaf_nodes": 6},
        {"strength": "cv"},
        {"pairs": "auto", "max_depth": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("seed", range(2))
def test_votes_that_count_are_rows_of_a_group(seed, options):
    X, votes = judged(seed)
    options = {"teacher": None, **options}
    parts, y, weights, row = one_row_for_each_vote(X, votes)
    shares, n_votes = ClassShares(votes, CLASSES), votes.sum(axis=1)
    tree = ShapeTreeClassifier(**options).fit(X, shares, sample_weight=n_votes)
    other = ShapeTreeClassifier(**options).fit(parts, y, weights, groups=row)
    assert export_json(tree) == export_json(other)


@pytest.mark.parametrize("seed", range(2))
def test_votes_that_count_are_taught_as_rows_of_a_group(seed):
    X, votes = judged(seed)
    parts, y, weights, row = one_row_for_each_vote(X, votes)
    shares, n_votes = ClassShares(votes, CLASSES), votes.sum(axis=1)
    tree = ShapeTreeClassifier().fit(X, shares, sample_weight=n_votes)
    other = ShapeTreeClassifier().fit(parts, y, weights, groups=row)
    assert tree.taught_ == other.taught_ > 0
    assert_array_equal(tree.apply(X), other.apply(X))
    assert_allclose(tree.predict_proba(X), other.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", [{"teacher": None}, {}, {"teacher": None, "pairs": "auto"}])
def test_what_nodes_show_is_what_their_rows_are(seed, options):
    X, shares, _ = table(seed)
    y = ClassShares(shares, CLASSES)
    tree = ShapeTreeClassifier(max_depth=3, resamples=20, **options).fit(X, y)
    inside = tree.decision_path(X).toarray().astype(bool)
    view = view_of(tree._fitted)
    assert_array_equal(tree.tree_.n_node_samples, inside.sum(axis=0))
    for node in view.nodes:
        own = y.values[inside[:, node.number]]
        assert node.n_rows == len(own)
        assert_allclose(node.counts, own.sum(axis=0), atol=1e-3)
        assert node.counts.sum() == len(own)
        assert node.sure.value == pytest.approx(own.mean(axis=0)[node.value[0].argmax()])
        assert node.sure.low < node.sure.value < node.sure.high or len(own) == 0
        if node.density is not None:
            counted = node.density.counts.sum(axis=0) + node.density.missing
            assert_allclose(counted, node.counts, atol=1e-9)
    if tree.taught_ == 0:
        plain = ShapeTreeClassifier(max_depth=3, resamples=20, shrinkage=0, **options).fit(X, y)
        leaves = plain.apply(X)
        for leaf in np.unique(leaves):
            said = plain.tree_.value[leaf, 0]
            assert_allclose(said, y.values[leaves == leaf].mean(axis=0), atol=1e-9)


def test_intervals_are_those_of_as_many_rows():
    X = pd.DataFrame({"a": np.arange(40.0)})
    shares = np.where(X["a"].to_numpy()[:, None] < 20, [[0.75, 0.25]], [[0.25, 0.75]])
    labels = np.array(["x"] * 15 + ["y"] * 5 + ["y"] * 15 + ["x"] * 5)
    options = {"max_depth": 1, "resamples": 0, "shrinkage": 0, "strength": 0.1}
    soft = ShapeTreeClassifier(**options).fit(X, ClassShares(shares, ["x", "y"]))
    hard = ShapeTreeClassifier(**options).fit(X, labels)
    assert soft.get_n_leaves() == hard.get_n_leaves() == 2
    mine, known = (view_of(each._fitted).nodes[0].sure for each in (soft, hard))
    assert tuple(mine)[:3] == pytest.approx(tuple(known)[:3])


def test_the_model_file_keeps_shares():
    X, shares, _ = table(0)
    y = ClassShares(shares, CLASSES, name="diagnosis")
    tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
    text = export_json(tree)
    back = from_json(text)
    assert export_json(back) == text
    assert export_text(back) == export_text(tree)
    assert export_html(back) == export_html(tree)
    assert "diagnosis" in export_html(tree)
    for node, other in zip(view_of(tree._fitted).nodes, view_of(back._fitted).nodes, strict=True):
        assert_array_equal(node.counts, other.counts)


def test_neither_the_order_of_rows_nor_of_columns_matters():
    X, shares, rng = table(1)
    tree = ShapeTreeClassifier(teacher=None, max_depth=3).fit(X, ClassShares(shares, CLASSES))
    order = rng.permutation(len(X))
    turned = pd.DataFrame(shares[:, ::-1], columns=CLASSES[::-1]).iloc[order]
    other = ShapeTreeClassifier(teacher=None, max_depth=3).fit(X.iloc[order], ClassShares(turned))
    assert_array_equal(tree.apply(X), other.apply(X))
    assert_allclose(tree.predict_proba(X), other.predict_proba(X), atol=1e-12)
    assert other.classes_.tolist() == CLASSES


def test_evaluate_scores_shares():
    X, shares, rng = table(2, n=400)
    y, weights = ClassShares(shares, CLASSES), rng.random(200) + 0.5
    tree = ShapeTreeClassifier(max_depth=2).fit(X[:200], y[:200])
    new, truth = X[200:].reset_index(drop=True), y[200:]
    for given in (None, weights):
        scores = tree.evaluate(new, truth, given)
        each = np.ones(200) if given is None else given
        row, label = np.nonzero(truth.values)
        by_label = each[row] * truth.values[row, label]
        said = tree.predict_proba(new)
        expected = log_loss(label, said[row], sample_weight=by_label, labels=[0, 1, 2])
        assert scores["log_loss"] == pytest.approx(expected)
        right = truth.values[np.arange(200), said.argmax(axis=1)]
        assert scores["accuracy"] == pytest.approx(np.average(right, weights=each))
    leaves = tree.apply(new)
    unseen = tree._fitted.held_out.leaves
    for leaf, (n_rows, value, low, high) in unseen.items():
        assert n_rows == (leaves == leaf).sum()
        assert low <= value <= high
    assert from_json(export_json(tree))._fitted.held_out.scores == scores


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeForestClassifier])
def test_score_is_the_share_of_the_predicted_class(kind):
    X, shares, rng = table(2, n=300)
    weights = rng.random(300)
    labels = np.array([rng.choice(CLASSES, p=own) for own in shares])
    model = kind(random_state=0).fit(X, labels)
    # Columns in another order.
    known = ClassShares(shares[:, ::-1], CLASSES[::-1])
    column = np.searchsorted(CLASSES, model.predict(X))
    right = shares[np.arange(300), column]
    assert model.score(X, known) == pytest.approx(right.mean())
    assert model.score(X, known, weights) == pytest.approx(np.average(right, weights=weights))
    assert model.score(X, labels) == (model.predict(X) == labels).mean()
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X[:100], known)
    with pytest.raises(ValueError, match="was not fitted on"):
        model.score(X, ClassShares(shares, ["ill", "new", "well"]))


def test_rows_of_training_are_known_again():
    X, shares, _ = table(3)
    y = ClassShares(shares, CLASSES)
    tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
    with pytest.warns(UserWarning, match="rows that the tree was fitted on"):
        tree.evaluate(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree.evaluate(X, np.array(CLASSES)[y.values.argmax(axis=1)])


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
def test_parts_of_a_row_stay_together():
    X, shares, _ = table(4)
    y = ClassShares(shares, CLASSES)
    groups = np.arange(len(X)) // 4
    for options in ({"strength": "cv"}, {"strength": "cv", "cv": KFold(3)}):
        tree = ShapeTreeClassifier(max_depth=2, **options).fit(X, y)
        assert tree.strength_ in (0.3, 1.0, 3.0)
        ShapeTreeClassifier(max_depth=2, **options).fit(X, y, groups=groups)
    found = tree.stability(X, y, n_resamples=5)
    assert len(found.rows_to_frame()) == len(X)
    path = tree.strength_path(X, y)
    assert np.isfinite(path.score).all()


def test_weights_of_zero_leave_rows_out():
    X, shares, rng = table(5)
    y, weights = ClassShares(shares, CLASSES), rng.integers(0, 2, len(X)).astype(float)
    kept = weights > 0
    tree = ShapeTreeClassifier(max_depth=3).fit(X, y, weights)
    other = ShapeTreeClassifier(max_depth=3).fit(X[kept], y[kept])
    assert_allclose(tree.predict_proba(X), other.predict_proba(X))
    found = tree.stability(X, y, weights, n_resamples=3)
    assert (found.rows_to_frame()["n_resamples"].to_numpy()[~kept] == 0).all()


def test_estimators_teach_trees_of_shares():
    X, shares, _ = table(6)
    X, y = X[["a", "b", "c"]].fillna(0), ClassShares(shares, CLASSES)
    forest = RandomForestClassifier(20, min_samples_leaf=5, random_state=0)
    tree = ShapeTreeClassifier(teacher=forest, max_depth=3).fit(X, y)
    assert tree.teacher_.classes_.tolist() == CLASSES
    assert "fidelity" in tree.evaluate(X[:150], y[:150])
    ShapeTreeClassifier(teacher=tree.teacher_, max_depth=2).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        ShapeTreeClassifier(teacher=KNeighborsClassifier()).fit(X, y)


def test_class_weights_weigh_shares():
    X, shares, _ = table(7)
    y = ClassShares(shares, CLASSES)
    tree = ShapeTreeClassifier(
        max_depth=2, teacher=None, shrinkage=0, class_weight={"ill": 4, "unclear": 1, "well": 1}
    ).fit(X, y)
    leaves, weighed = tree.apply(X), y.values * [4, 1, 1]
    for leaf in np.unique(leaves):
        own = weighed[leaves == leaf].sum(axis=0)
        assert_allclose(tree.tree_.value[leaf, 0], own / own.sum(), atol=1e-9)
    with pytest.raises(ValueError, match="class_weight must be positive"):
        ShapeTreeClassifier(class_weight={"ill": 0}).fit(X, y)


def test_pictures_are_of_other_shares_too():
    X, shares, _ = table(8)
    y = ClassShares(shares, CLASSES)
    tree = ShapeTreeClassifier(max_depth=2, pairs="auto").fit(X, y)
    plot_tree(tree)
    plot_tree(tree, X=X[:50], y=y[:50])
    view = view_of(tree._fitted, X[:50], ClassShares(shares[:50, ::-1], CLASSES[::-1]))
    assert_allclose(view.nodes[0].counts, y.values[:50].sum(axis=0), atol=1e-3)
    view = view_of(tree._fitted, X[:50], np.array(CLASSES)[y.values[:50].argmax(axis=1)])
    assert view.nodes[0].counts.dtype.kind == "i"


def test_numbers_of_votes_and_frames_are_read():
    votes = pd.DataFrame({2: [3, 0, 1], 1: [1, 4, 1]})
    y = ClassShares(votes)
    assert y.classes.tolist() == [1, 2]
    assert_allclose(y.values, [[0.25, 0.75], [1, 0], [0.5, 0.5]])
    assert_allclose(ClassShares(pl.DataFrame({"b": [1.0], "a": [3.0]})).values, [[0.75, 0.25]])
    assert_allclose(ClassShares([[1e308, 1e308]], ["a", "b"]).values, [[0.5, 0.5]])
    assert_allclose(ClassShares([[1.0, 1e-9]], ["a", "b"]).values, [[1.0, 0.0]])
    assert repr(y) == "<ClassShares of 3 rows: 1, 2>"
    assert len(y[[0, 2]]) == len(y[y.values[:, 0] < 1]) == 2


@pytest.mark.parametrize(
    ("shares", "classes", "message"),
    [
        ([[1, 2]], None, "classes must name"),
        ([[1, 2]], ["a"], "at least two classes"),
        ([[1, 2]], ["a", "a"], "distinct"),
        ([[1, 2]], ["a", "b", "c"], "shares has 2 columns, but there are 3 classes"),
        ([[1, 2], [0, 0]], ["a", "b"], "no class for row 1"),
        ([[1, 2], [1, -1]], ["a", "b"], "row 1 has -1.0 for class 'b'"),
        ([[1, np.nan]], ["a", "b"], "row 0 has nan for class 'b'"),
        ([[1, np.inf]], ["a", "b"], "finite"),
        ([[1, 2], [1]], ["a", "b"], "table of numbers"),
        ([["x", "y"]], ["a", "b"], "table of numbers"),
        ([1, 2], ["a", "b"], "got shape"),
        (np.zeros((0, 2)), ["a", "b"], "got shape"),
        ([[1, 2]], ["a", None], "classes must be a list of labels"),
        ([[1, 2]], 3, "classes must be a list of labels"),
    ],
)
def test_shares_of_no_use_are_refused(shares, classes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        ClassShares(shares, classes)


def test_shares_cannot_be_mistaken():
    X, shares, _ = table(9)
    y = ClassShares(shares, CLASSES)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ShapeTreeClassifier().fit(X[:100], y)
    with pytest.raises(ValueError, match="need a classifier"):
        ShapeTreeRegressor().fit(X, y)
    with pytest.raises(TypeError, match="a forest takes no shares"):
        ShapeForestClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="no labels"):
        np.asarray(y)
    tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
    with pytest.raises(TypeError, match="give labels here"):
        refine_tree(tree, X, y)
    with pytest.raises(ValueError, match="was not fitted on"):
        tree.evaluate(X, ClassShares(shares, ["ill", "new", "well"]))


def test_steps_add_up():
    rng = np.random.default_rng(0)
    values = rng.dirichlet(np.ones(4), size=1000)
    values[::3, 1] = 0
    values /= values.sum(axis=1, keepdims=True)
    parts, totals = parts_of(values), rng.integers(1, 5, 1000).astype(float)
    amounts = parts.amounts(values, totals)
    assert_array_equal(np.bincount(parts.row, amounts), totals)
    for steps in (2, 16, 2**20):
        counted = in_steps(amounts, steps)
        assert_array_equal(np.bincount(parts.row, counted), totals * steps)
        assert np.abs(counted / steps - amounts).max() <= 1.001 / steps
    assert steps_of(100) == 2**20
    assert steps_of(10**6) * 10**6 <= 2**30
