"""Rows reach the leaves that a walk by hand leads to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import path_of_row, trees
from numpy.testing import assert_array_equal

from shapetree._predictor import leaves_of, paths_to
from shapetree._table import FeatureInfo, Table

# Two ordered features and one of three categories; some codes are of no known category.
FEATURES = (FeatureInfo("a"), FeatureInfo("b"), FeatureInfo("c", ("p", "q", "r")))
VALUES = [np.nan, -np.inf, np.inf, 0.0, -0.0, 1e300, -1e300, *np.arange(-3, 3.1, 0.25)]


def random_table(seed, n_rows=30):
    """A table with a strided, a read-only float32 and a categorical column."""
    rng = np.random.default_rng(seed)
    strided = rng.choice(VALUES, 2 * n_rows)[::2]
    with np.errstate(over="ignore"):
        short = rng.choice(VALUES, n_rows).astype(np.float32)
    short.flags.writeable = False
    codes = rng.integers(-1, 5, n_rows).astype(np.int32)
    return Table(n_rows, FEATURES, [strided, short, codes])


def rows_of(table):
    """The table's rows as plain numbers: floats, and ints for categories."""
    return list(zip(*(column.tolist() for column in table.columns), strict=True))


@given(trees(), st.integers(0, 2**32 - 1))
def test_leaves_equal_those_of_a_walk_row_by_row(tree, seed):
    table = random_table(seed)
    expected = [path_of_row(tree, row)[-1] for row in rows_of(table)]
    assert_array_equal(leaves_of(tree, table, n_threads=1), expected)


@given(trees(), st.integers(0, 2**32 - 1))
def test_leaves_do_not_depend_on_the_number_of_threads(tree, seed):
    table = random_table(seed)
    one, two = (leaves_of(tree, table, n_threads) for n_threads in (1, 2))
    assert_array_equal(one, two)


@given(trees(), st.integers(0, 2**32 - 1))
def test_paths_are_the_nodes_that_a_row_passes(tree, seed):
    table = random_table(seed, n_rows=8)
    paths = paths_to(tree, leaves_of(tree, table, n_threads=1))
    assert paths.shape == (8, tree.node_count)
    assert np.all(paths.data == 1)
    for path, row in zip(paths, rows_of(table), strict=True):
        assert sorted(path.indices) == path_of_row(tree, row)


@given(trees())
def test_the_path_to_a_leaf_ends_there(tree):
    leaves = np.flatnonzero(tree.is_leaf)
    paths = paths_to(tree, leaves).toarray()
    for leaf, path in zip(leaves, paths, strict=True):
        assert_array_equal(np.flatnonzero(path), tree.path_to(leaf))


@given(trees())
def test_no_rows_have_no_leaves(tree):
    table = Table(0, FEATURES, [np.empty(0), np.empty(0), np.empty(0, dtype=np.int32)])
    leaves = leaves_of(tree, table, n_threads=2)
    assert leaves.shape == (0,)
    assert paths_to(tree, leaves).shape == (0, tree.node_count)


@given(trees(categories=(None,)), st.integers(0, 2**32 - 1))
def test_columns_that_the_tree_does_not_use_need_not_be_given(tree, seed):
    table = random_table(seed)
    alone = Table(table.n_rows, FEATURES, [table.columns[0], None, None])
    assert_array_equal(leaves_of(tree, alone, 1), leaves_of(tree, table, 1))


@pytest.mark.parametrize(
    "columns", [[], [None], [np.zeros(3, dtype=np.uint8)], [None, np.zeros(3)]]
)
def test_columns_that_the_tree_needs_must_be_given(one_split, columns):
    with pytest.raises(ValueError, match="the tree needs column 0"):
        leaves_of(one_split, Table(3, (), columns), 1)
