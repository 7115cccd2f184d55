"""Histograms sum what their naive twins sum, and siblings are had by subtraction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import samples
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets, build_histogram
from shapetree._threads import VISITS_PER_CALL, feature_chunks
from shapetree.data._binning import BinnedTable, FeatureBins
from shapetree.grow._local_histograms import (
    LocalHistograms,
    histograms_of_children,
)

DTYPES = [np.uint8, np.uint16, np.uint32]


@st.composite
def binned_samples(draw):
    """A sample with three columns of bins, of all dtypes."""
    sample = draw(samples())
    n = len(sample.piece)
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    n_bins = rng.integers(1, 5, 3)
    codes = [rng.integers(0, b + 1, n).astype(t) for b, t in zip(n_bins, DTYPES, strict=True)]
    return sample, n_bins, codes


def source_of(problem, n_threads=1):
    sample, n_bins, codes = problem
    table = BinnedTable(tuple(map(FeatureBins, n_bins)), Columns(codes, len(codes[0])))
    return LocalHistograms(table, sample.targets, n_threads)


def naive_histogram(problem, rows):
    sample, n_bins, codes = problem
    return np.array(
        [
            sample.channels_of([row for row in rows if codes[j][row] == b])
            for j in range(len(codes))
            for b in range(n_bins[j] + 1)
        ]
    )


def some_rows(sample, seed=0):
    rows = np.random.default_rng(seed).permutation(len(sample.piece))
    return rows[: (len(rows) + 1) // 2].astype(np.int32)


@given(binned_samples())
def test_histogram_equals_its_naive_twin(problem):
    rows = some_rows(problem[0])
    assert_allclose(source_of(problem).build(rows), naive_histogram(problem, rows), atol=1e-9)


@given(binned_samples())
def test_histogram_does_not_depend_on_the_number_of_threads(problem):
    rows = some_rows(problem[0])
    one, two = (source_of(problem, n_threads).build(rows) for n_threads in (1, 2))
    assert_array_equal(one, two)


@given(binned_samples())
def test_totals_are_the_sum_over_any_feature(problem):
    sample, n_bins, _ = problem
    rows = some_rows(sample)
    histogram = source_of(problem).build(rows)
    assert_allclose(sample.targets.totals(rows), histogram[: n_bins[0] + 1].sum(axis=0), atol=1e-9)
    assert_allclose(sample.targets.totals(rows), sample.channels_of(rows), atol=1e-9)


def test_no_rows_give_empty_histograms():
    problem = next_problem()
    none = np.empty(0, dtype=np.int32)
    assert not source_of(problem).build(none).any()
    assert not problem[0].targets.totals(none).any()


def next_problem():
    """A fixed problem: two classes, weights, one feature."""
    labels = np.array([[0], [1], [1], [0]], dtype=np.int32)
    weights = np.array([1.0, 2.0, 3.0, 4.0])

    class Fixed:
        targets = Targets(labels, None, weights, 2)
        piece = np.zeros(4)

    return Fixed, [2], [np.array([0, 1, 1, 2], dtype=np.uint8)]


def test_channels_are_statistics_then_rows():
    histogram = source_of(next_problem()).build(np.arange(4, dtype=np.int32))
    assert_array_equal(histogram, [[1, 0, 1], [0, 5, 2], [4, 0, 1]])


def test_only_the_features_asked_for_are_filled():
    codes = [np.zeros(2, dtype=np.uint8)] * 3
    targets = Targets(np.zeros((2, 1), dtype=np.int32), None, None, 1)
    histogram = np.full((6, 1), 7.0)
    build_histogram(
        Columns(codes, 2), targets, np.arange(2, dtype=np.int32), np.arange(0, 8, 2), histogram,
        1, 2, 1,
    )  # fmt: skip
    assert_array_equal(histogram[:, 0], [7, 7, 2, 0, 7, 7])


# Children


class CountingSource:
    """A source that notes the rows it was asked for."""

    def __init__(self, source):
        self.source, self.asked = source, []

    def build(self, rows):
        self.asked.append(len(rows))
        return self.source.build(rows)


def children_of(sample, n_children, seed):
    branch = np.random.default_rng(seed).integers(0, n_children, len(sample.piece))
    return [np.flatnonzero(branch == b).astype(np.int32) for b in range(n_children)]


@given(
    binned_samples(),
    st.integers(0, 9),
    st.lists(st.booleans(), min_size=2, max_size=4),
    st.booleans(),
)
def test_children_that_are_wanted_get_their_histograms(problem, seed, wanted, has_parent):
    source = source_of(problem)
    children = children_of(problem[0], len(wanted), seed)
    parent = source.build(np.concatenate(children)) if has_parent else None
    found = histograms_of_children(source, parent, children, wanted)
    for rows, want, histogram in zip(children, wanted, found, strict=True):
        if want:
            assert_allclose(histogram, naive_histogram(problem, rows), atol=1e-9)


@pytest.mark.parametrize(
    ("wanted", "has_parent", "summed"),
    [
        ([True, True], True, [1]),  # the larger one by subtraction
        ([True, False], True, [1]),
        ([False, True], True, [1]),
        ([False, False], True, []),
        ([True, True], False, [3, 1]),
        ([True, False], False, [3]),
    ],
)
def test_rows_are_summed_no_more_often_than_needed(wanted, has_parent, summed):
    source = CountingSource(source_of(next_problem()))
    rows = np.arange(4, dtype=np.int32)
    parent = source.source.build(rows) if has_parent else None
    histograms_of_children(source, parent, [rows[:3], rows[3:]], wanted)
    assert source.asked == summed


@given(st.integers(0, 50), st.sampled_from([0, 1, VISITS_PER_CALL // 7, 10 * VISITS_PER_CALL]))
def test_chunks_cover_every_feature_once(n_features, n_rows):
    covered = [f for first, last in feature_chunks(n_features, n_rows) for f in range(first, last)]
    assert covered == list(range(n_features))


# Refusals


@pytest.mark.parametrize(
    ("labels", "values", "weights", "n_stats", "message"),
    [
        (None, None, None, 2, "either labels or values"),
        ([[0]], [[0.0]], None, 2, "either labels or values"),
        ([0, 1], None, None, 2, "n_rows, n_outputs"),
        ([[2]], None, None, 2, "indices of statistics"),
        ([[-1]], None, None, 2, "indices of statistics"),
        (None, [[1.0]], None, 3, "one statistic more"),
        ([[0]], None, [1.0, 2.0], 2, "weights must be"),
    ],
)
def test_targets_that_do_not_fit_are_refused(labels, values, weights, n_stats, message):
    with pytest.raises(ValueError, match=message):
        Targets(labels, values, weights, n_stats)


@pytest.mark.parametrize("row", [-1, 4, 2**31 - 1])
def test_totals_of_rows_out_of_range_are_refused(row):
    with pytest.raises(IndexError, match="rows must lie"):
        next_problem()[0].targets.totals(np.array([0, row], dtype=np.int32))


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.zeros(3, dtype=np.int64), TypeError),
        (np.zeros(3, dtype=">u2"), TypeError),
        (np.zeros(4, dtype=np.uint8), ValueError),
        (np.zeros((3, 1), dtype=np.uint8), ValueError),
        (np.zeros(6, dtype=np.uint8)[::2], ValueError),
    ],
)
def test_columns_that_no_kernel_reads_are_refused(array, error):
    with pytest.raises(error, match="column 1"):
        Columns([None, array], 3)
