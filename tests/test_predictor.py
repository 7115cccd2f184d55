"""Rows reach the leaves that a walk by hand leads to."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import path_of_row, trees
from numpy.testing import assert_array_equal

from shapetree.data._table import FeatureInfo, Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of, paths_to

# Two ordered features, one of three categories and one of four; some codes are of no known one.
FEATURES = (
    FeatureInfo("a"),
    FeatureInfo("b"),
    FeatureInfo("c", ("p", "q", "r")),
    FeatureInfo("d", ("s", "t", "u", "v")),
)
VALUES = [np.nan, -np.inf, np.inf, 0.0, -0.0, 1e300, -1e300, *np.arange(-3, 3.1, 0.25)]


def random_table(seed, n_rows=30):
    """Columns of every dtype, with strides forward and backward, one of them read-only."""
    rng = np.random.default_rng(seed)
    long = rng.choice(VALUES, 2 * n_rows)[::2]
    with np.errstate(over="ignore"):
        short = rng.choice(VALUES, 3 * n_rows).astype(np.float32)[::-3]
    short.flags.writeable = False
    dense = rng.integers(-1, 5, n_rows).astype(np.int32)
    sparse = rng.integers(-1, 6, (n_rows, 5)).astype(np.int32)[:, 2]
    return Table(n_rows, FEATURES, [long, short, dense, sparse])


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
    no_codes = np.empty(0, dtype=np.int32)
    table = Table(0, FEATURES, [np.empty(0), np.empty(0), no_codes, no_codes])
    leaves = leaves_of(tree, table, n_threads=2)
    assert leaves.shape == (0,)
    assert paths_to(tree, leaves).shape == (0, tree.node_count)


@given(trees(), st.integers(0, 2**32 - 1))
def test_columns_that_the_tree_does_not_use_need_not_be_given(tree, seed):
    table = random_table(seed)
    used = [column if f in tree.used_features else None for f, column in enumerate(table.columns)]
    alone = Table(table.n_rows, FEATURES, used)
    assert_array_equal(leaves_of(tree, alone, 1), leaves_of(tree, table, 1))


@pytest.mark.parametrize(
    "columns", [[], [None], [np.zeros(3, dtype=np.uint8)], [None, np.zeros(3)]]
)
@given(trees(categories=(None,), max_nodes=9).filter(lambda tree: tree.node_count > 1))
def test_columns_that_the_tree_needs_must_be_given(columns, tree):
    with pytest.raises(ValueError, match="the tree needs column 0"):
        leaves_of(tree, Table(3, (), columns), 1)


@pytest.mark.parametrize("columns", [[], [None], [np.zeros(3, dtype=np.uint16)]])
@given(trees((None, None), max_nodes=9, pair_share=1.0).filter(lambda tree: tree.node_count > 1))
def test_both_columns_of_a_pair_must_be_given(columns, tree):
    with pytest.raises(ValueError, match="the tree needs column 1"):
        leaves_of(tree, Table(3, (), [np.zeros(3), *columns]), 1)


def walk_one_pair(cuts, positions, columns):
    """Leaves under a root of a pair whose regions all have a branch of their own."""
    cut_a, cut_b, threshold, low, high = zip(*cuts, strict=True)
    n_regions = len(cuts) + 1
    n = 1 + n_regions
    tree = TreeArrays(
        parent=[-1] + [0] * n_regions,
        depth=[0] + [1] * n_regions,
        first_child=[1] + [-1] * n_regions,
        n_branches=[n_regions] + [0] * n_regions,
        feature=[0] + [-1] * n_regions,
        second_feature=[1] + [-1] * n_regions,
        missing_branch=[0] + [-1] * n_regions,
        saw_missing=[False] * n,
        piece_start=[0] + [n_regions] * n,
        piece_upper=[np.nan] * n_regions,
        piece_branch=range(n_regions),
        cut_start=[0] + [len(cuts)] * n,
        cut_a=cut_a,
        cut_b=cut_b,
        cut_threshold=threshold,
        cut_low=low,
        cut_high=high,
        position_start=[0, len(positions[0])] + [sum(map(len, positions))] * (2 * n - 1),
        position=np.concatenate(positions),
        n_node_samples=[1] * n,
        weighted_n_node_samples=[1] * n,
        impurity=[0] * n,
        value=np.zeros((n, 1, 1)),
    )
    return leaves_of(tree, Table(len(columns[0]), (), columns), 1).tolist()


def test_a_point_on_a_cut_is_not_above_it():
    u, v = np.array([1.0, 1.0, 1.5]), np.array([1.0, 1.25, 1.0])
    assert walk_one_pair([(1, -2, -1.0, -1, -2)], ([], []), [u, v]) == [1, 1, 2]


def test_infinite_values_count_as_the_greatest_finite_ones():
    most = np.finfo(float).max
    u, v = np.array([np.inf, most, -np.inf, np.inf]), np.array([-np.inf, -most, np.inf, 0.0])
    assert walk_one_pair([(1, 1, 0.0, -1, -2)], ([], []), [u, v]) == [1, 1, 1, 2]
    assert walk_one_pair([(1, 0, most, -1, -2)], ([], []), [u, v]) == [1, 1, 1, 1]


def test_an_infinite_float32_counts_as_the_greatest_float64():
    u, v = np.array([np.inf, 3e38], dtype=np.float32), np.zeros(2, dtype=np.float32)
    assert walk_one_pair([(1, 0, 1e300, -1, -2)], ([], []), [u, v]) == [2, 1]


def test_categories_stand_at_their_positions_and_those_without_count_as_missing():
    codes = np.array([0, 1, 2, 3, -1, 2**31 - 1], dtype=np.int32)
    cuts = [(1, 0, 0.5, -2, -1)]
    assert walk_one_pair(cuts, ([1.0, 0.0, np.nan], []), [codes, np.zeros(6)]) == [1, 2, 1, 1, 1, 1]
    cuts = [(0, 1, 0.5, -2, -1)]
    assert walk_one_pair(cuts, ([], [1.0, 0.0, np.nan]), [np.zeros(6), codes]) == [1, 2, 1, 1, 1, 1]


def test_two_categories_have_positions_of_their_own():
    first, second = np.array([[0, 1], [1, 0], [0, 0]], dtype=np.int32).T
    cuts = [(1, 0, 0.5, 1, -3), (0, 1, 0.5, -1, -2)]
    assert walk_one_pair(cuts, ([0.0, 1.0], [1.0, 0.0]), [first, second]) == [1, 3, 2]


def test_rows_that_lack_either_feature_take_the_missing_branch():
    u, v = np.array([np.nan, 1.0, np.nan, 1.0]), np.array([1.0, np.nan, np.nan, 1.0])
    assert walk_one_pair([(1, 0, 0.0, -1, -2)], ([], []), [u, v]) == [1, 1, 1, 2]


@pytest.mark.parametrize("column", [np.zeros(3), np.zeros(3, dtype=np.int32)])
@given(st.data())
def test_numbers_are_not_taken_for_categories(column, data):
    categories = (None,) if column.dtype == np.int32 else (3,)
    tree = data.draw(trees(categories, max_nodes=9).filter(lambda tree: tree.node_count > 1))
    with pytest.raises(ValueError, match="numbers instead of categories"):
        leaves_of(tree, Table(3, (), [column]), 1)


@given(trees(), trees(), st.integers(0, 2**32 - 1))
def test_trees_are_not_taken_for_one_another(tree, other, seed):
    table = random_table(seed, n_rows=1)
    for each in (tree, other, tree):
        assert leaves_of(each, table, 1).tolist() == [path_of_row(each, rows_of(table)[0])[-1]]
