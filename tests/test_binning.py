"""Bins: quantile groups of distinct values, thresholds between them, and the bin of each value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from shapetree._core.binning import bin_values, group_values, sort_values
from shapetree._core.histogram import Targets
from shapetree.data._binning import FeatureBins, bin_table, halfway
from shapetree.data._table import FeatureInfo, Table
from shapetree.grow._local_histograms import LocalHistograms

BIG = np.finfo(np.float64).max
TINY = np.nextafter(0.0, 1.0)
NAN, INF = np.nan, np.inf

reals = st.floats(allow_nan=False, allow_infinity=True)
few_values = st.integers(-3, 3).map(float)
columns = st.one_of(
    arrays(np.float64, st.integers(1, 40), elements=st.one_of(few_values, st.just(NAN))),
    arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32)),
    arrays(np.float64, st.integers(1, 40), elements=st.floats()),
)


def bin_column(column, max_bins=None, weights=None, categories=None):
    """Bins of one column: what is known of them, and the bin of each row."""
    table = Table(len(column), (FeatureInfo("x0", categories),), [column])
    binned = bin_table(table, weights, max_bins, n_threads=1)
    return binned.features[0], bins_of_rows(binned)


def bins_of_rows(binned):
    """Read the bins back through the histograms of single rows."""
    n = binned.n_rows
    targets = Targets(np.zeros((n, 1), dtype=np.int32), None, None, 1)
    source = LocalHistograms(binned, targets, n_threads=1)
    rows = np.arange(n, dtype=np.int32)
    return np.array([np.flatnonzero(source.build(rows[i : i + 1])[:, 0])[0] for i in range(n)])


def naive_bin(value, upper):
    """First bin whose upper bound is not below the value; one more than the last for NaN."""
    if np.isnan(value):
        return len(upper) + 1
    return next((b for b, bound in enumerate(upper) if value <= bound), len(upper))


# halfway


@given(reals, reals)
def test_halfway_parts_any_two_values(a, b):
    low, high = min(a, b), max(a, b)
    if low < high:
        threshold = halfway(low, high)
        assert low <= threshold < high


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 2.0, 1.5),
        (-3.0, 5.0, 1.0),
        (0.0, TINY, 0.0),
        (-TINY, TINY, 0.0),
        (-TINY, 0.0, -TINY),
        (1.0, np.nextafter(1.0, 2.0), 1.0),
        (-BIG, BIG, 0.0),
        (BIG / 2, BIG, BIG * 0.75),
        (-INF, INF, 0.0),
        (0.0, INF, BIG / 2),
        (-INF, 0.0, -BIG / 2),
        (BIG, INF, BIG),
        (-INF, -BIG, -INF),
    ],
)
def test_halfway_is_the_mean_where_floating_point_allows(low, high, expected):
    assert halfway(low, high) == expected


def test_halfway_takes_arrays():
    assert_array_equal(halfway([0.0, 1.0], [1.0, 3.0]), [0.5, 2.0])


# sort_values


@given(columns, st.sampled_from([1, 2, -1]), st.booleans())
def test_values_are_sorted_without_the_missing_ones(column, step, with_order):
    column = column[::step]
    ordered, rows = sort_values(column, with_order)
    known = np.flatnonzero(~np.isnan(column))
    assert_array_equal(ordered, np.sort(column[known]))
    assert ordered.dtype == column.dtype
    if with_order:
        assert_array_equal(np.sort(rows), known)
        assert_array_equal(column[rows], ordered)
    else:
        assert rows is None


def test_equal_values_keep_the_order_of_their_rows():
    _, rows = sort_values(np.array([2.0, 1.0, NAN, 2.0, 1.0]), True)
    assert_array_equal(rows, [1, 4, 0, 3])


# group_values


@given(arrays(np.float64, st.integers(1, 40), elements=few_values), st.integers(7, 50))
def test_distinct_values_keep_their_own_bins_where_these_suffice(values, max_bins):
    low, high = group_values(np.sort(values), None, max_bins)
    assert_array_equal(low, np.unique(values))
    assert_array_equal(high, np.unique(values))


@given(arrays(np.float64, st.integers(1, 60), elements=reals), st.integers(1, 12))
def test_bins_are_few_disjoint_and_cover_all_values(values, max_bins):
    low, high = group_values(np.sort(values), None, max_bins)
    assert 1 <= len(low) <= max_bins
    assert np.all(low <= high)
    assert np.all(high[:-1] < low[1:])
    assert all(np.any((low <= value) & (value <= high)) for value in values)
    assert {*low, *high} <= set(values)


@given(
    arrays(np.int64, st.integers(1, 20), elements=st.integers(1, 4)),
    st.integers(1, 9),
)
def test_weights_count_as_repeated_rows(repeats, max_bins):
    values = np.arange(len(repeats), dtype=float)
    weighted = group_values(values, repeats.astype(float), max_bins)
    repeated = group_values(np.repeat(values, repeats), None, max_bins)
    assert_array_equal(weighted, repeated)


@pytest.mark.parametrize("max_bins", [2, 7, 32, 255])
def test_bins_of_distinct_values_hold_about_as_many_rows_each(max_bins):
    low, high = group_values(np.arange(5000.0), None, max_bins)
    assert len(low) == max_bins
    assert np.ptp(high - low) <= 1


def test_a_value_that_fills_several_bins_leaves_the_others_their_share():
    values = np.sort(np.concatenate([np.zeros(900), np.arange(1.0, 101.0)]))
    low, high = group_values(values, None, 11)
    assert high[0] == 0.0
    assert len(low) == 11
    assert np.ptp((high - low)[1:]) <= 1


@pytest.mark.parametrize(("values", "max_bins"), [([], 5), ([1.0], 0)])
def test_nothing_to_group_gives_no_bins(values, max_bins):
    low, high = group_values(np.array(values), None, max_bins)
    assert len(low) == len(high) == 0


# bin_values


@given(
    st.one_of(
        arrays(np.float64, st.integers(0, 30), elements=st.floats()),
        arrays(np.float32, st.integers(0, 30), elements=st.floats(width=32)),
    ),
    st.lists(reals, max_size=20, unique=True).map(sorted),
    st.sampled_from([np.uint8, np.uint16, np.uint32]),
    st.sampled_from([1, 2, -1]),
)
def test_bin_of_a_value_equals_its_naive_twin(values, upper, dtype, step):
    values = values[::step]
    bins = np.empty(len(values), dtype=dtype)
    bin_values(values, np.array(upper), bins)
    assert_array_equal(bins, [naive_bin(float(value), upper) for value in values])


@pytest.mark.parametrize(
    ("n_bins", "dtype"), [(255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, "u4")]
)
def test_smallest_dtype_holds_the_missing_bin(n_bins, dtype):
    feature = FeatureBins(n_bins)
    assert feature.dtype == dtype
    bins = np.empty(2, dtype=feature.dtype)
    bin_values(np.array([NAN, INF]), np.arange(n_bins - 1.0), bins)
    assert_array_equal(bins, [n_bins, n_bins - 1])


def test_bins_that_do_not_fit_their_dtype_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        bin_values(np.zeros(1), np.arange(255.0), np.empty(1, dtype=np.uint8))


def test_bins_of_another_length_are_refused():
    with pytest.raises(ValueError, match="as long as"):
        bin_values(np.zeros(2), np.zeros(1), np.empty(3, dtype=np.uint8))


# bin_table


@given(columns, st.one_of(st.none(), st.integers(2, 9)))
def test_every_value_is_in_the_bin_that_spans_it(column, max_bins):
    feature, bins = bin_column(column, max_bins)
    missing = np.isnan(column)
    assert_array_equal(bins == feature.n_bins, missing)
    assert np.all(feature.low[bins[~missing]] <= column[~missing])
    assert np.all(column[~missing] <= feature.high[bins[~missing]])


@given(columns)
def test_without_a_limit_every_distinct_value_has_a_bin(column):
    feature, _ = bin_column(column)
    assert_array_equal(feature.low, np.unique(column[~np.isnan(column)]))
    assert_array_equal(feature.low, feature.high)


@given(arrays(np.int64, st.integers(1, 15), elements=st.integers(1, 4)), st.integers(2, 6))
def test_weighted_rows_are_binned_as_repeated_ones(repeats, max_bins):
    column = np.arange(len(repeats), dtype=float)[::-1]
    weighted, _ = bin_column(column, max_bins, repeats.astype(float))
    repeated, _ = bin_column(np.repeat(column, repeats), max_bins)
    assert_array_equal(weighted.low, repeated.low)
    assert_array_equal(weighted.high, repeated.high)


@pytest.mark.parametrize("weights", [None, np.array([2.0, 3.0])])
def test_a_column_of_missing_values_has_only_the_missing_bin(weights):
    feature, bins = bin_column(np.full(2, NAN), 255, weights)
    assert feature.n_bins == 0
    assert_array_equal(bins, [0, 0])


def test_categories_are_bins_and_unknown_ones_missing():
    codes = np.array([2, 0, -1, 1], dtype=np.int32)
    feature, bins = bin_column(codes, 2, categories=("a", "b", "c"))
    assert feature.is_categorical
    assert_array_equal(bins, [2, 0, 3, 1])


def test_threads_bin_a_long_table_alike():
    columns = list(np.random.default_rng(0).normal(size=(5, 10_000)))
    table = Table(10_000, tuple(FeatureInfo(f"x{j}") for j in range(5)), columns)
    one, two = (bin_table(table, None, 50, n_threads) for n_threads in (1, 2))
    for a, b in zip(one.features, two.features, strict=True):
        assert_array_equal(a.high, b.high)
    assert_array_equal(one.n_bins, two.n_bins)
    assert not one.categorical.any()


def test_thresholds_lie_halfway_between_bins():
    feature = FeatureBins(3, np.array([0.0, 2.0, 5.0]), np.array([1.0, 4.0, 5.0]))
    assert_array_equal(feature.threshold_between([0, 0, 1], [1, 2, 2]), [1.5, 3.0, 4.5])
