"""Partition brings a node's rows into order of branch and loses none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.partition import partition_rows

DTYPES = st.sampled_from([np.uint8, np.uint16, np.uint32])
THREADS = st.sampled_from([1, 2, 3])


def partition(codes, branch_of_bin, rows, n_branches, scratch=None, n_threads=1):
    """Rows in order of branch, and how many each branch has."""
    rows = np.array(rows, dtype=np.int32)
    scratch = np.empty_like(rows) if scratch is None else scratch
    branch_of_bin = np.asarray(branch_of_bin, dtype=np.uint8)
    columns = Columns([codes], len(codes))
    counts = partition_rows(columns, 0, branch_of_bin, rows, scratch, n_branches, n_threads)
    return rows, counts


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.integers(1, 6), DTYPES, THREADS)
def test_partition_equals_a_stable_sort_by_branch(seed, n_rows, n_branches, dtype, n_threads):
    rng = np.random.default_rng(seed)
    branch_of_bin = rng.integers(0, n_branches, 9)
    codes = rng.integers(0, 9, 50).astype(dtype)
    rows = rng.permutation(50)[:n_rows].astype(np.int32)
    ordered, counts = partition(codes, branch_of_bin, rows, n_branches, n_threads=n_threads)
    branch = branch_of_bin[codes[rows]]
    assert_array_equal(ordered, rows[np.argsort(branch, kind="stable")])
    assert_array_equal(counts, np.bincount(branch, minlength=n_branches))


def test_scratch_may_be_longer_than_the_rows():
    codes = np.array([1, 0, 1], dtype=np.uint8)
    ordered, _ = partition(codes, [0, 1], [0, 1, 2], 2, scratch=np.empty(9, dtype=np.int32))
    assert_array_equal(ordered, [1, 0, 2])


@pytest.mark.parametrize(
    ("branch_of_bin", "rows"),
    [([0, 1], [0, 3]), ([0, 1], [-1]), ([0], [0]), ([0, 2], [0]), ([0, 255], [0]), ([], [0])],
)
def test_rows_bins_and_branches_out_of_range_are_refused(branch_of_bin, rows):
    with pytest.raises(IndexError, match="out of range"):
        partition(np.ones(3, dtype=np.uint8), branch_of_bin, rows, 2)


def test_refused_rows_stay_as_they_were():
    rows = np.array([2, 1, 0, 9], dtype=np.int32)
    columns = Columns([np.array([0, 1, 0], dtype=np.uint8)], 3)
    with pytest.raises(IndexError):
        partition_rows(columns, 0, np.array([0, 1], np.uint8), rows, np.empty_like(rows), 2, 1)
    assert_array_equal(rows, [2, 1, 0, 9])


@pytest.mark.parametrize("column", [None, np.zeros(3), np.zeros(3, dtype=np.int32)])
def test_only_columns_of_bins_are_partitioned(column):
    rows = np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match="not a column of bins"):
        partition_rows(Columns([column], 3), 0, np.zeros(1, np.uint8), rows, rows.copy(), 2, 1)


@pytest.mark.parametrize("feature", [-1, 1])
def test_features_out_of_range_are_refused(feature):
    rows = np.arange(3, dtype=np.int32)
    columns = Columns([np.zeros(3, dtype=np.uint8)], 3)
    with pytest.raises(ValueError, match="not a column of bins"):
        partition_rows(columns, feature, np.zeros(1, np.uint8), rows, rows.copy(), 2, 1)


def test_short_scratch_is_refused():
    with pytest.raises(ValueError, match="scratch"):
        partition(np.zeros(3, np.uint8), [0], [0, 1], 2, scratch=np.empty(1, dtype=np.int32))
