"""Bins: quantile groups of distinct values, thresholds between them, and the bin of each value."""

from fractions import Fraction

import numpy as np
import pytest
from chance import examples
from data import make_tree
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from shapetree import ShapeTreeClassifier, export_python
from shapetree._core.binning import Lookups, bin_columns, find_bins, group_values, sort_values
from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets, build_cells
from shapetree._core.pieces import thresholds_between
from shapetree.data import _binning
from shapetree.data._binning import FeatureBins, bin_table
from shapetree.data._sampling import sampled
from shapetree.data._table import FeatureInfo, Table
from shapetree.tree._shape import NO_BRANCH_MARK, shape_from_bins

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
    """Read the bins back through the cells of single rows."""
    n = binned.n_rows
    targets = Targets(np.zeros((n, 1), dtype=np.int32), None, None, 1)
    rows, places = np.arange(n, dtype=np.int32), np.arange(n)
    *_, bins, _ = build_cells(
        binned.columns, targets, rows, places, places + 1, binned.offsets, 0, 1, 1
    )
    return bins


def bin_values(values, upper, dtype, n_rows=None):
    """Bins of one column's values, given where all bins but the last end."""
    bins = np.empty(len(values), dtype=dtype)
    lookups = Lookups([np.array(upper)], len(values) if n_rows is None else n_rows)
    features = np.zeros(1, dtype=np.int32)
    bin_columns(Columns([values], len(values)), features, lookups, [bins], 0, len(values), 1)
    return bins


def bins_of_values(values, weights, max_bins):
    """Least and greatest value of each bin of one column."""
    columns = Columns([values], len(values))
    features = np.zeros(1, dtype=np.int32)
    (low,), (high,), (n,) = find_bins(columns, features, None, weights, max_bins, 1)
    return low[:n], high[:n]


def naive_groups(values, weights, max_bins):
    """The same, by walking over the distinct values."""
    known = ~np.isnan(values)
    values = values[known].astype(float)
    weights = np.ones(len(values)) if weights is None else weights[known]
    distinct = np.unique(np.maximum(values, -BIG)).tolist()
    mass = [sum(weights[np.maximum(values, -BIG) == value].tolist()) for value in distinct]
    groups, inside, share = [], 0.0, 0.0
    for i, value in enumerate(distinct):
        is_full = len(groups) < max_bins and inside + mass[i] / 2 > share
        if not groups or len(distinct) <= max_bins or is_full:
            share = sum(mass[i:]) / (max_bins - len(groups))
            groups.append([])
            inside = 0.0
        groups[-1].append(value)
        inside += mass[i]
    low, high = [group[0] for group in groups], [group[-1] for group in groups]
    if np.any(values == -INF):
        low[0] = -INF
    return low, high


def naive_bin(value, upper):
    """First bin whose upper bound is not below the value; one more than the last for NaN."""
    if np.isnan(value):
        return len(upper) + 1
    return next((b for b, bound in enumerate(upper) if value <= bound), len(upper))


# thresholds_between


def parting(low, high):
    return float(thresholds_between(np.array([low]), np.array([high]))[0])


values_of_data = st.one_of(
    reals,
    st.floats(-1e15, 1e15),
    st.integers(-(10**6), 10**6).map(lambda k: k / 100),
    st.integers(-(10**6), 10**6).map(float),
    st.floats(-1e6, 1e6, width=32),
)


@examples(1000)
@given(values_of_data, values_of_data)
def test_thresholds_part_any_two_values(a, b):
    low, high = min(a, b), max(a, b)
    if low < high and (low, high) != (-INF, -BIG):
        threshold = parting(low, high)
        assert low <= threshold < high
        assert np.isfinite(threshold)


@examples(1000)
@given(values_of_data, values_of_data)
def test_thresholds_are_the_shortest_numbers_near_the_middle(a, b):
    low, high = min(a, b), max(a, b)
    assume(low < high and 1e-15 < high - low < 1e15 and abs(low) < 1e15 and abs(high) < 1e15)
    threshold = Fraction(repr(parting(low, high)))
    middle = (Fraction(low) + Fraction(high)) / 2
    reach = (Fraction(high) - Fraction(low)) / 4
    assume(reach > abs(middle) * Fraction(1, 10**12))  # else floats are too few
    slack = reach / 10**6
    assert abs(threshold - middle) <= reach + slack
    # No number with one decimal less is as near.
    step = Fraction(1, 10**30)
    while threshold and (threshold / (10 * step)).denominator == 1:
        step *= 10
    step *= 10
    nearest = round(middle / step) * step
    assert not threshold or abs(nearest - middle) > reach - slack


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1.0, 2.0, 1.5),
        (3.0, 4.0, 3.5),
        (-3.0, 5.0, 0.0),
        (0.0, TINY, 0.0),
        (-TINY, TINY, 0.0),
        (-TINY, 0.0, -TINY),
        (1.0, np.nextafter(1.0, 2.0), 1.0),
        (-122.26, -122.25, -122.255),
        (18437.0, 18512.0, 18470.0),
        (0.14229999999999998, 0.1424, 0.14235),
        (99.0, 1001.0, 600.0),
        (-BIG, BIG, 0.0),
        (-INF, INF, 0.0),
        (BIG, INF, BIG),
    ],
)
def test_thresholds_are_those_that_people_would_choose(low, high, expected):
    assert parting(low, high) == expected


def test_thresholds_need_two_values_each():
    with pytest.raises(ValueError, match="either side"):
        thresholds_between(np.zeros(2), np.zeros(3))


# sort_values


@given(columns, st.sampled_from([1, 2, -1]))
def test_values_are_sorted_without_the_missing_ones(column, step):
    column = column[::step]
    ordered, rows = sort_values(column)
    known = np.flatnonzero(~np.isnan(column))
    assert_array_equal(ordered, np.sort(column[known]))
    assert_array_equal(rows, known[np.argsort(column[known], kind="stable")])


@pytest.mark.parametrize("n_rows", [24, 25, 700, 5000])
def test_sorts_of_any_length_keep_the_order_of_equals(n_rows):
    rng = np.random.default_rng(n_rows)
    for column in (rng.integers(0, n_rows // 3, n_rows) / 7, rng.normal(size=n_rows)):
        ordered, rows = sort_values(column)
        assert_array_equal(rows, np.argsort(column, kind="stable"))
        assert_array_equal(ordered, np.sort(column))


# find_bins


SHAPES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "heavy tails": lambda rng, n: rng.standard_cauchy(n),
    "many magnitudes": lambda rng, n: np.exp(5 * rng.normal(size=n)),
    "whole": lambda rng, n: rng.integers(-200, 300, n).astype(float),
    "few": lambda rng, n: rng.integers(0, 9, n).astype(float),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.99, 0.0, rng.normal(size=n)),
    "half zero": lambda rng, n: np.maximum(rng.normal(size=n), 0.0),
    "missing": lambda rng, n: np.where(rng.random(n) < 0.3, NAN, rng.normal(size=n)),
    "extreme": lambda rng, n: rng.choice([-INF, -BIG, BIG, INF, 0.0, -0.0, TINY, 1.0, 1e300], n),
    "huge": lambda rng, n: BIG * rng.uniform(-1, 1, n),
    "outliers": lambda rng, n: np.where(rng.random(n) < 0.1, 1e9, 1.0) * rng.normal(size=n),
}


@pytest.mark.parametrize("n_rows", [1, 7, 200, 3000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("max_bins", [1, 2, 31, 255])
@pytest.mark.parametrize("weighted", [False, True])
def test_bins_equal_those_of_a_walk_over_distinct_values(shape, n_rows, max_bins, weighted):
    rng = np.random.default_rng(n_rows + max_bins)
    column = SHAPES[shape](rng, n_rows)
    weights = rng.integers(1, 9, n_rows) / 4 if weighted else None
    low, high = bins_of_values(column, weights, max_bins)
    expected_low, expected_high = naive_groups(column, weights, max_bins)
    assert_array_equal(low, expected_low)
    assert_array_equal(high, expected_high)


@given(columns, st.integers(1, 9))
def test_bins_of_any_numbers_equal_those_of_a_walk(column, max_bins):
    low, high = bins_of_values(column, None, max_bins)
    expected_low, expected_high = naive_groups(column, None, max_bins)
    assert_array_equal(low, expected_low)
    assert_array_equal(high, expected_high)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_grouped_each_on_its_own(n_threads, dtype):
    X = np.random.default_rng(0).normal(size=(1500, 7)).astype(dtype)
    rows = np.arange(0, 1500, 3)
    chosen = np.array([6, 0, 3], dtype=np.int32)
    low, high, n = find_bins(Columns(list(X.T), 1500), chosen, rows, None, 20, n_threads)
    for i, feature in enumerate(chosen):
        alone = bins_of_values(np.ascontiguousarray(X[rows, feature]), None, 20)
        assert_array_equal([low[i, : n[i]], high[i, : n[i]]], alone)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"max_bins": 0}, "at least 1"),
        ({"n_threads": 0}, "at least 1"),
        ({"rows": np.array([3])}, "rows of the table"),
        ({"weights": np.ones(2)}, "as many as rows"),
        ({"features": np.array([1], dtype=np.int32)}, "does not hold numbers"),
        ({"features": np.array([2], dtype=np.int32)}, "no column 2"),
    ],
)
def test_what_cannot_be_grouped_is_refused(changed, message):
    arguments = {
        "columns": Columns([np.zeros(3), np.zeros(3, dtype=np.uint8)], 3),
        "features": np.zeros(1, dtype=np.int32),
        "rows": None,
        "weights": None,
        "max_bins": 5,
        "n_threads": 1,
    }
    with pytest.raises(ValueError, match=message):
        find_bins(**arguments | changed)


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
    bins = bin_values(values, upper, dtype)
    assert_array_equal(bins, [naive_bin(float(value), upper) for value in values])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n_rows", [0, 10_000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bins_of_many_values_equal_a_search(shape, n_rows, dtype):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        values = SHAPES[shape](rng, 3000).astype(dtype)
    upper = np.unique(SHAPES[shape](rng, 300))
    upper = upper[np.isfinite(upper)]
    bins = bin_values(values, upper, np.uint16, n_rows)
    expected = np.where(np.isnan(values), len(upper) + 1, np.searchsorted(upper, values))
    assert_array_equal(bins, expected)


@pytest.mark.parametrize(
    ("n_bins", "dtype"), [(255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, "u4")]
)
def test_smallest_dtype_holds_the_missing_bin(n_bins, dtype):
    feature = FeatureBins(n_bins)
    assert feature.dtype == dtype
    bins = bin_values(np.array([NAN, INF]), np.arange(n_bins - 1.0), feature.dtype)
    assert_array_equal(bins, [n_bins, n_bins - 1])


def test_bins_that_do_not_fit_their_dtype_are_refused():
    with pytest.raises(ValueError, match="do not fit"):
        bin_values(np.zeros(1), np.arange(255.0), np.uint8)


def test_more_bins_than_the_table_of_a_search_can_hold_are_found():
    bins = bin_values(np.array([-1.0, 7.5, 1e9, NAN]), np.arange(70_000.0), np.uint32)
    assert bins.tolist() == [0, 8, 70_000, 70_001]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_rows_are_binned_in_blocks_of_columns_and_rows(n_threads):
    X = np.random.default_rng(0).normal(size=(2500, 35))
    ends = [np.linspace(-1, 1, 3 + f) for f in range(35)]
    bins = [np.full(2500, 99, dtype=np.uint8) for _ in range(35)]
    features = np.arange(35, dtype=np.int32)
    columns = Columns(list(X.T), 2500)
    bin_columns(columns, features, Lookups(ends, 2500), bins, 100, 2400, n_threads)
    for f in range(35):
        assert_array_equal(bins[f][100:2400], np.searchsorted(ends[f], X[100:2400, f]))
        assert np.all(bins[f][:100] == 99)
        assert np.all(bins[f][2400:] == 99)


@pytest.mark.parametrize(
    ("bins", "start", "message"),
    [
        ([], 0, "for each feature"),
        ([np.empty(3, dtype=np.uint8)], 0, "expected"),
        ([np.empty(2, dtype=np.uint8)], 3, "out of range"),
        ([np.empty(4, dtype=np.uint8)[::2]], 0, "not contiguous"),
    ],
)
def test_bins_for_other_rows_are_refused(bins, start, message):
    features = np.zeros(1, dtype=np.int32)
    with pytest.raises(ValueError, match=message):
        bin_columns(
            Columns([np.zeros(2)], 2), features, Lookups([np.zeros(1)], 2), bins, start, 2, 1
        )


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
    distinct = np.unique(np.maximum(column[~np.isnan(column)].astype(float), -BIG))
    assert_array_equal(np.maximum(feature.low, -BIG), distinct)
    assert_array_equal(np.maximum(feature.high, -BIG), distinct)


@pytest.mark.parametrize("max_bins", [None, 5])
@pytest.mark.parametrize("least", [[-INF], [-BIG], [-INF, -BIG]])
def test_nothing_parts_minus_infinity_from_the_least_number(max_bins, least):
    feature, bins = bin_column(np.array([*least, 0.0, 1.0]), max_bins)
    assert feature.n_bins == 3
    assert bins.tolist() == [0] * len(least) + [1, 2]
    assert np.all(np.isfinite(feature.thresholds))


@pytest.mark.parametrize("params", [{}, {"max_bins": None}, {"pairs": "all"}, {"max_bins": 2}])
def test_a_column_with_the_least_numbers_has_finite_thresholds(params):
    x = np.repeat([-INF, -BIG, np.nextafter(-BIG, 0), BIG, INF], 20)
    y = np.repeat([0, 1, 0, 1, 0], 20)
    model = make_tree(
        ShapeTreeClassifier, refine=None, leaf_penalty=0.0, segment_penalty=0.0, **params
    )
    model.fit(np.column_stack([x, np.arange(100) % 7]), y)
    upper = model.tree_.piece_upper
    assert np.all(np.isfinite(upper[~np.isnan(upper)]) | (upper[~np.isnan(upper)] == INF))
    read = ShapeTreeClassifier.from_json(model.to_json())
    rows = np.column_stack([x, np.arange(100) % 5])
    assert_array_equal(read.predict(rows), model.predict(rows))
    program = {}
    exec(export_python(model), program)
    named = [dict(zip(["x0", "x1"], row, strict=True)) for row in rows.tolist()]
    assert list(map(program["predict"], named)) == model.predict(rows).tolist()


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


def test_thresholds_lie_between_bins():
    feature = FeatureBins(3, np.array([0.0, 2.0, 5.0]), np.array([1.0, 4.0, 5.0]))
    assert_array_equal(feature.thresholds, [1.5, 4.5])


# Bins from a sample


def sampled_columns():
    """Columns whose extreme and most frequent values are rare, so that a sample lacks some."""
    rng = np.random.default_rng(5)
    n = 4000
    return [
        rng.normal(size=n),
        np.round(rng.standard_cauchy(n), 1).astype(np.float32),
        rng.integers(0, 400, n).astype(float),
        np.where(rng.random(n) < 0.999, 0.0, rng.normal(size=n)),
        np.where(rng.random(n) < 0.2, NAN, rng.exponential(size=n)),
        np.full(n, NAN),
        np.where(np.arange(n) == 17, 3.0, NAN),
    ]


@pytest.mark.parametrize("weighted", [False, True])
def test_bins_of_a_large_table_are_those_of_its_sample(monkeypatch, weighted):
    monkeypatch.setattr(_binning, "MAX_BINNED_ROWS", 500)
    columns = sampled_columns()
    n = len(columns[0])
    weights = np.random.default_rng(0).random(n) if weighted else None
    table = Table(n, tuple(FeatureInfo(f"x{j}") for j in range(len(columns))), columns)
    binned = bin_table(table, weights, 40, 1)
    rows = sampled(0, n, n, 500)
    assert 400 < len(rows) < 600
    for j, column in enumerate(columns):
        alone = bins_of_values(column[rows], None if weights is None else weights[rows], 40)
        feature = binned.features[j]
        assert_array_equal([feature.low, feature.high], alone)
        if feature.n_bins:
            expected = np.searchsorted(feature.thresholds, column)
            expected[np.isnan(column)] = feature.n_bins
            assert_array_equal(binned.columns.array(j), expected)
        else:
            assert not binned.columns.array(j).any()


@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.integers(2, 60))
def test_thresholds_send_every_row_where_its_bin_goes(seed, n_branches, n_some):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_binning, "MAX_BINNED_ROWS", 300)
        for column in sampled_columns()[:5]:
            table = Table(len(column), (FeatureInfo("x0"),), [column])
            binned = bin_table(table, None, 40, 1)
            (feature,), bins = binned.features, binned.columns.array(0)
            # A node holds some rows; bins without any have no branch.
            rows = rng.choice(len(column), n_some)
            branch = np.full(feature.n_bins + 1, NO_BRANCH_MARK, dtype=np.uint8)
            branch[bins[rows]] = rng.integers(0, n_branches, feature.n_bins + 1)[bins[rows]]
            if np.all(branch[:-1] == NO_BRANCH_MARK):
                continue
            shape = shape_from_bins(0, feature, branch, n_branches, 0)
            known = rows[~np.isnan(column[rows])]
            pieces = np.searchsorted(shape.upper, column[known])
            assert_array_equal(shape.branch_of_piece[pieces], branch[bins[known]])


def test_a_tree_of_a_sampled_table_counts_the_rows_that_its_leaves_get(monkeypatch):
    monkeypatch.setattr(_binning, "MAX_BINNED_ROWS", 500)
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((5000, 3))
    y = (np.sin(X[:, 0]) + X[:, 1] > 0).astype(int)
    model = ShapeTreeClassifier(max_bins=30, max_depth=5, n_threads=1).fit(X, y)
    counts = np.bincount(model.apply(X), minlength=model.tree_.node_count)
    leaves = model.tree_.is_leaf
    assert_array_equal(counts[leaves], model.tree_.n_node_samples[leaves])


def test_wide_tables_are_binned_some_features_at_a_time():
    X = np.random.default_rng(0).normal(size=(40, 600))
    table = Table(40, tuple(FeatureInfo(f"x{j}") for j in range(600)), list(X.T))
    binned = bin_table(table, None, 255, 1)
    for j in range(600):
        assert_array_equal(binned.columns.array(j), np.argsort(np.argsort(X[:, j])))
