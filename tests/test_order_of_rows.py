"""Rows that move in memory to where they stand in the tree: refinement must not notice."""

import numpy as np
import pandas as pd
import pytest
from data import make_tree
from hypothesis import given, settings
from hypothesis import strategies as st

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, refine_tree
from shapetree._core.columns import Columns
from shapetree._core.rows import NodeRows
from shapetree.data._targets import ClassGoal, MeanGoal, MedianGoal
from shapetree.refine import _refine as refining
from shapetree.refine._refined_rows import LocalRefinedRows

DTYPES = (np.uint8, np.uint16, np.uint32)


@settings(deadline=None)
@given(st.data(), st.integers(0, 60), st.integers(0, 7), st.integers(1, 3))
def test_columns_are_reordered(data, n_rows, n_columns, n_threads):
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    dtypes = [data.draw(st.sampled_from(DTYPES)) for _ in range(n_columns)]
    arrays = [rng.integers(0, 200, n_rows).astype(dtype) for dtype in dtypes]
    order = rng.permutation(n_rows).astype(np.int32)
    expected = [array[order] for array in arrays]
    Columns(arrays, n_rows).reorder(order, n_threads)
    for array, wanted in zip(arrays, expected, strict=True):
        np.testing.assert_array_equal(array, wanted)


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [0, 1, 3], [-1, 0, 1], [0, 1, 2, 0]])
def test_orders_hold_every_row_once(order):
    bins = np.arange(3, dtype=np.uint8)
    with pytest.raises(ValueError, match="every row once"):
        Columns([bins], 3).reorder(np.array(order, dtype=np.int32), 1)
    assert bins.tolist() == [0, 1, 2]


def test_only_bins_that_can_be_written_to_are_reordered():
    order = np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match="column 1 does not hold bins"):
        Columns([np.zeros(3, np.uint8), np.zeros(3)], 3).reorder(order, 1)
    with pytest.raises(ValueError, match="column 0 does not hold bins"):
        Columns([None], 3).reorder(order, 1)
    fixed = np.zeros(3, np.uint8)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        Columns([fixed], 3).reorder(order, 1)
    with pytest.raises(ValueError, match="n_threads"):
        Columns([np.zeros(3, np.uint8)], 3).reorder(order, 0)


def test_rows_are_numbered_by_their_places():
    rows = NodeRows(5, np.array([3, 1, 4, 0, 2]))
    view = rows.order
    assert rows.renumber().tolist() == [3, 1, 4, 0, 2]
    assert view.tolist() == rows.order.tolist() == [0, 1, 2, 3, 4]
    assert rows.n_rows == 5


def goals(rng, n_rows, weights):
    """Goals of every kind for some rows."""
    numbers = rng.normal(size=(n_rows, 2))
    yield ClassGoal(rng.integers(0, 3, (n_rows, 1)), [3], weights, criterion="gini")
    yield ClassGoal(rng.integers(0, 3, (n_rows, 2)), [3, 3], weights, criterion="entropy")
    yield MeanGoal(numbers, weights)
    yield MedianGoal(numbers, weights)


@pytest.mark.parametrize("has_weights", [False, True])
def test_goals_are_reordered(has_weights):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 4, 50) / 2 if has_weights else None
    order = rng.permutation(50).astype(np.int32)
    for goal in goals(rng, 50, weights):
        moved = goal.reordered(order)
        for some in (slice(0, 50), slice(3, 9)):
            places = np.arange(50, dtype=np.int32)[some]
            expected = goal.targets.totals(order[some])
            np.testing.assert_array_equal(moved.targets.totals(places), expected)
        assert moved.total_weight == goal.total_weight
        if has_weights:
            np.testing.assert_array_equal(moved.weights, weights[order])


def table_and_targets(n_rows, seed):
    """Numbers, categories and missing values, and what depends on them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 5)).round(2)).add_prefix("x")
    X.loc[rng.random(n_rows) < 0.1, "x1"] = np.nan
    X["c"] = pd.Categorical(rng.choice(["a", "b", "c", "d"], n_rows))
    score = X["x0"] ** 2 + X["x1"].fillna(1.5) * X["x2"] + (X["c"] == "b")
    return X, score + 0.3 * rng.normal(size=n_rows)


def fits(X, score, weights):
    """Fits of every kind that refinement tells apart."""
    classes = np.digitize(score, [0, 1])
    kinds = np.column_stack([classes, score > 0.5])
    usual = {"max_depth": 4, "n_threads": 2}
    yield make_tree(ShapeTreeClassifier, **usual).fit(X, classes, weights)
    yield make_tree(ShapeTreeClassifier, **usual, max_branches=2, min_samples_leaf=20).fit(
        X, kinds, weights
    )
    yield make_tree(ShapeTreeRegressor, **usual).fit(X, score, weights)
    yield make_tree(ShapeTreeRegressor, **usual, criterion="absolute_error").fit(X, score, weights)
    yield make_tree(ShapeTreeClassifier, **usual, strength="cv", cv=3).fit(X, classes, weights)
    yield ShapeTreeClassifier(max_depth=3, pairs=[("x1", "x2")]).fit(X, classes, weights)
    other, _ = table_and_targets(len(X), 5)
    yield refine_tree(
        make_tree(ShapeTreeClassifier, **usual, refine=None).fit(other, classes[::-1]),
        X,
        classes,
        weights,
    )


@pytest.mark.parametrize("has_weights", [False, True])
def test_trees_do_not_depend_on_where_rows_stand(monkeypatch, has_weights):
    X, score = table_and_targets(900, 3)
    weights = np.random.default_rng(1).integers(0, 4, 900) if has_weights else None
    monkeypatch.setattr(refining, "MANY_ROWS", 10**9)
    expected = [tree.to_json() for tree in fits(X, score, weights)]
    n_moved = 0
    move = LocalRefinedRows.reorder_rows

    def counted(rows):
        nonlocal n_moved
        n_moved += 1
        return move(rows)

    monkeypatch.setattr(LocalRefinedRows, "reorder_rows", counted)
    monkeypatch.setattr(refining, "MANY_ROWS", 0)
    assert [tree.to_json() for tree in fits(X, score, weights)] == expected
    assert n_moved > 5  # one for each fit but that of pairs, and those on folds
