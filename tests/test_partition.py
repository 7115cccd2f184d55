"""Partition notes each row's branch, brings rows into order of branch and loses none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.partition import branches_by_bin, partition_rows

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = st.sampled_from([np.uint8, np.uint16, np.uint32])
THREADS = st.sampled_from([1, 2, 3, 50])


def ints(*numbers):
    return np.array(numbers, dtype=np.int32)


def branches(*numbers):
    return np.array(numbers, dtype=np.uint8)


# Branches by bin


@given(SEEDS, st.integers(0, 40), DTYPES, THREADS)
def test_branches_equal_a_look_up_row_by_row(seed, n_rows, dtype, n_threads):
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 9, 50).astype(dtype), rng.integers(0, 5, 50).astype(np.uint8)]
    branch_of_bin = rng.integers(0, 256, 9).astype(np.uint8)
    rows = rng.integers(0, 50, n_rows).astype(np.int32)
    for feature in (0, 1):
        expected = [branch_of_bin[codes[feature][row]] for row in rows]
        found = branches_by_bin(Columns(codes, 50), feature, branch_of_bin, rows, n_threads)
        assert found.dtype == np.uint8
        assert_array_equal(found, expected)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize(
    ("branch_of_bin", "rows"),
    [([0, 1], [0, 3]), ([0, 1], [0, 1, 2, -1]), ([0, 1], [2**31 - 1]), ([0], [0]), ([], [0])],
)
def test_rows_and_bins_out_of_range_are_refused(branch_of_bin, rows, n_threads):
    columns = Columns([np.ones(3, dtype=np.uint8)], 3)
    with pytest.raises(IndexError, match="a row or a bin is out of range"):
        branches_by_bin(columns, 0, branches(*branch_of_bin), ints(*rows), n_threads)


@pytest.mark.parametrize("column", [None, np.zeros(3), np.zeros(3, dtype=np.int32)])
def test_only_columns_of_bins_have_branches_by_bin(column):
    with pytest.raises(ValueError, match="not a column of bins"):
        branches_by_bin(Columns([column], 3), 0, branches(0), ints(0, 1, 2), 1)


@pytest.mark.parametrize("feature", [-1, 1])
def test_features_out_of_range_are_refused(feature):
    columns = Columns([np.zeros(3, dtype=np.uint8)], 3)
    with pytest.raises(ValueError, match="not a column of bins"):
        branches_by_bin(columns, feature, branches(0), ints(0, 1, 2), 1)


# Rows by branch


def partition(branch_of_row, rows, n_branches, n_threads=1):
    """Rows in order of branch, and how many each branch has."""
    rows = rows.copy()
    counts = partition_rows(branch_of_row, rows, np.empty_like(rows), n_branches, n_threads)
    return rows, counts


@given(SEEDS, st.integers(0, 40), st.sampled_from([1, 2, 6, 254, 255]), THREADS)
def test_partition_equals_lists_of_rows_one_for_each_branch(seed, n_rows, n_branches, n_threads):
    rng = np.random.default_rng(seed)
    branch_of_row = rng.integers(0, n_branches, n_rows).astype(np.uint8)
    rows = rng.permutation(10**9 + np.arange(n_rows)).astype(np.int32)
    lists = [[] for _ in range(n_branches)]
    for branch, row in zip(branch_of_row, rows, strict=True):
        lists[branch].append(row)
    ordered, counts = partition(branch_of_row, rows, n_branches, n_threads)
    assert_array_equal(ordered, [row for rows in lists for row in rows])
    assert_array_equal(counts, [len(rows) for rows in lists])


def test_scratch_may_be_longer_than_the_rows():
    rows = ints(7, 8, 9)
    partition_rows(branches(1, 0, 1), rows, np.empty(9, dtype=np.int32), 2, 1)
    assert_array_equal(rows, [8, 7, 9])


@pytest.mark.parametrize("n_threads", [1, 2, 4])
@pytest.mark.parametrize("branch", [2, 255])
def test_branches_out_of_range_are_refused_and_rows_stay_as_they_were(branch, n_threads):
    rows = ints(2, 1, 0, 9)
    with pytest.raises(IndexError, match="a branch is out of range"):
        partition_rows(branches(1, 0, 1, branch), rows, np.empty_like(rows), 2, n_threads)
    assert_array_equal(rows, [2, 1, 0, 9])


@pytest.mark.parametrize(
    ("branch_of_row", "scratch", "n_branches", "n_threads", "message"),
    [
        ([1, 0], 1, 2, 1, "scratch as much room"),
        ([1, 0], 0, 2, 1, "scratch as much room"),
        ([1], 2, 2, 1, "every row needs a branch"),
        ([1, 0, 0], 3, 2, 1, "every row needs a branch"),
        ([], 2, 2, 1, "every row needs a branch"),
        ([1, 0], 2, 0, 1, "n_branches between 1 and 255"),
        ([1, 0], 2, 256, 1, "n_branches between 1 and 255"),
        ([1, 0], 2, -1, 1, "n_branches between 1 and 255"),
        ([1, 0], 2, 2, 0, "n_threads must be at least 1"),
        ([1, 0], 2, 2, -1, "n_threads must be at least 1"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_and_rows_stay_as_they_were(
    branch_of_row, scratch, n_branches, n_threads, message
):
    rows, room = ints(5, 4), np.empty(scratch, dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        partition_rows(branches(*branch_of_row), rows, room, n_branches, n_threads)
    assert_array_equal(rows, [5, 4])


@pytest.mark.parametrize("n_threads", [0, -1])
def test_branches_by_bin_need_a_thread(n_threads):
    columns = Columns([np.zeros(3, dtype=np.uint8)], 3)
    with pytest.raises(ValueError, match="n_threads must be at least 1"):
        branches_by_bin(columns, 0, branches(0), ints(0, 1, 2), n_threads)
