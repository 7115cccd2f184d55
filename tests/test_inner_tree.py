"""Inner trees: CART's pieces are scikit-learn's, the optimal ones are the best there are."""

from time import process_time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import interval_partitions, intervals_as_branches, samples
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree._core.criterion import Criterion
from shapetree._core.inner_tree import cut_into_pieces

METHODS = st.sampled_from(["cart", "optimal"])


def pieces_of(sample, **options):
    return cut_into_pieces(sample.criterion, sample.stats, sample.n_rows, **options)


def loss_of(sample, stops):
    return sample.loss(intervals_as_branches(stops))


def keeps(sample, stops, min_rows):
    return sample.branch_rows(intervals_as_branches(stops)).min() >= min_rows


def objective_of(sample, stops, least_gain):
    return loss_of(sample, stops) + least_gain * (len(stops) - 1)


def least_objective(sample, max_leaves, min_rows, least_gain=0.0):
    """Least impurity, plus the price of the cuts, of any partition that keeps the limits."""
    whole = [sample.n_pieces]
    return min(
        objective_of(sample, stops, least_gain)
        for stops in interval_partitions(sample.n_pieces, max_leaves)
        if stops == whole or keeps(sample, stops, min_rows)
    )


def rows_in_order(name, seed, n, weighted):
    """One row a bin: statistics for the kernel, y and weights for scikit-learn. Without ties."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, n) if weighted else np.ones(n)
    smooth = np.sin(np.arange(n) / n * 9)
    if name in ("gini", "entropy"):
        y = np.digitize(smooth + rng.normal(0, 1, n), [-0.4, 0.5])
        return Criterion(name, [3]), np.eye(3)[y] * weights[:, None], y, weights
    y = smooth + rng.normal(0, 0.5, n)
    if name == "squared_error":
        return Criterion(name, [1]), np.stack([weights, weights * y], axis=1), y, weights
    levels = np.sort(y)
    stats = np.eye(n)[np.searchsorted(levels, y)] * weights[:, None]
    return Criterion(name, [n], levels), stats, y, weights


@pytest.mark.parametrize(("max_leaves", "min_rows"), [(2, 1), (7, 1), (12, 5), (1000, 9)])
@pytest.mark.parametrize(
    ("name", "weighted"),
    [
        ("gini", True),
        ("entropy", True),
        ("squared_error", False),
        ("squared_error", True),
        ("absolute_error", True),
    ],
)
def test_cart_cuts_where_scikit_learn_does(name, weighted, max_leaves, min_rows):
    n = 60 if name == "absolute_error" else 250
    criterion, stats, y, weights = rows_in_order(name, 7, n, weighted)
    model = DecisionTreeClassifier if name in ("gini", "entropy") else DecisionTreeRegressor
    tree = model(criterion=name, max_leaf_nodes=max_leaves, min_samples_leaf=min_rows).fit(
        np.arange(n)[:, None], y, weights
    )
    thresholds = tree.tree_.threshold[tree.tree_.feature >= 0]
    pieces = cut_into_pieces(criterion, stats, np.ones(n), max_leaves=max_leaves, min_rows=min_rows)
    assert_array_equal(pieces[:-1], np.sort(np.floor(thresholds) + 1))


@given(samples(), METHODS, st.integers(1, 8), st.integers(1, 6))
def test_pieces_are_ascending_and_keep_their_limits(sample, method, max_leaves, min_rows):
    stops = pieces_of(sample, method=method, max_leaves=max_leaves, min_rows=min_rows)
    assert stops[-1] == sample.n_pieces
    assert np.all(np.diff(stops) > 0)
    assert len(stops) <= max_leaves
    assert len(stops) == 1 or keeps(sample, stops, min_rows)


@given(
    samples(max_pieces=8),
    st.integers(1, 9),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.1, 0.7, 5.0]),
)
def test_optimal_pieces_are_the_best_of_all(sample, max_leaves, min_rows, least_gain):
    limits = {"max_leaves": max_leaves, "min_rows": min_rows, "least_gain": least_gain}
    stops = pieces_of(sample, method="optimal", **limits)
    expected = least_objective(sample, **limits)
    assert_allclose(objective_of(sample, stops, least_gain), expected, atol=sample.tolerance)


@given(samples(max_pieces=9), st.integers(1, 6))
def test_cart_with_two_leaves_finds_the_best_threshold(sample, min_rows):
    stops = pieces_of(sample, max_leaves=2, min_rows=min_rows)
    expected = least_objective(sample, 2, min_rows)
    assert_allclose(loss_of(sample, stops), expected, atol=sample.tolerance)


@given(samples())
def test_every_further_leaf_of_cart_refines_the_pieces_before(sample):
    before = pieces_of(sample, max_leaves=1)
    for max_leaves in range(2, sample.n_pieces + 1):
        stops = pieces_of(sample, max_leaves=max_leaves)
        assert set(before) <= set(stops)
        before = stops


@given(samples(names=["gini", "entropy", "squared_error"]))
def test_unlimited_cart_parts_whatever_differs(sample):
    stops = pieces_of(sample, max_leaves=sample.n_pieces)
    apart = sample.loss(np.arange(sample.n_pieces))
    assert_allclose(loss_of(sample, stops), apart, atol=sample.tolerance)


@given(samples(), st.integers(0, 3))
def test_depth_limits_the_leaves_of_cart(sample, max_depth):
    assert len(pieces_of(sample, max_depth=max_depth)) <= 2**max_depth


@given(samples(), METHODS, st.floats(0.0, 10.0))
def test_cuts_earn_the_least_gain_each(sample, method, least_gain):
    stops = pieces_of(sample, method=method, least_gain=least_gain)
    earned = sample.loss(np.zeros(sample.n_pieces, dtype=int)) - loss_of(sample, stops)
    assert earned >= (len(stops) - 1) * least_gain - sample.tolerance


def total_loss(criterion, stats, n_rows, **options):
    stops = cut_into_pieces(criterion, stats, n_rows, **options)
    return sum(criterion.impurity(part.sum(axis=0)) for part in np.split(stats, stops[:-1]))


def test_optimal_pieces_beat_cart_where_greed_fails():
    stats = np.array([[0, 3], [1, 2], [2, 0], [0, 2.0]])
    case = Criterion("gini", [2]), stats, stats.sum(axis=1)
    cart, optimal = (total_loss(*case, method=m, max_leaves=3) for m in ("cart", "optimal"))
    assert optimal < cart - 0.5


@pytest.mark.parametrize("name", ["gini", "entropy"])
def test_optimal_pieces_of_many_bins_are_no_worse_than_carts(name):
    criterion, stats, _, _ = rows_in_order(name, 3, 700, weighted=True)

    case = criterion, stats, np.ones(700)
    cart, optimal = (total_loss(*case, method=m, max_leaves=9) for m in ("cart", "optimal"))
    assert optimal <= cart + 1e-9


@pytest.mark.parametrize(
    ("stats", "n_rows"),
    [(np.empty((0, 2)), []), (np.ones((3, 2)), [1, 1]), (np.ones((3, 1)), [1, 1, 1])],
)
def test_statistics_that_do_not_fit_are_refused(stats, n_rows):
    with pytest.raises(ValueError, match="stats must be"):
        cut_into_pieces(Criterion("gini", [2]), stats, n_rows)


@pytest.mark.parametrize("limit", [{"max_leaves": 0}, {"min_rows": 0}, {"max_depth": -1}])
def test_limits_must_be_positive(limit):
    with pytest.raises(ValueError, match="must be at least"):
        cut_into_pieces(Criterion("gini", [2]), np.ones((3, 2)), [2, 2, 2], **limit)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e300])
def test_statistics_that_cannot_be_are_cut_only_where_there_is_a_cut(value):
    stats = np.full((5, 2), value)
    stops = cut_into_pieces(Criterion("gini", [2]), stats, np.ones(5), least_gain=-np.inf)
    assert stops[-1] == 5
    assert (np.diff(stops) > 0).all()


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_classes_that_alternate_are_cut_into_all_their_bins_in_linear_time(criterion):
    n_bins = 200_000
    stats = np.eye(2)[np.arange(n_bins) % 2]
    start = process_time()
    stops = cut_into_pieces(
        Criterion(criterion, [2]), stats, np.ones(n_bins, dtype=np.int32), max_leaves=n_bins
    )
    assert_array_equal(stops, np.arange(n_bins) + 1)
    # Where every cut takes one bin off the rest, this took minutes.
    assert process_time() - start < 20.0


@pytest.mark.parametrize("min_rows", [1, 3])
def test_pieces_of_many_bins_keep_the_rows_that_they_must_have(min_rows):
    rng = np.random.default_rng(0)
    n_rows = rng.integers(1, 3, 30_000).astype(np.int32)
    stats = np.eye(3)[np.arange(len(n_rows)) % 3] * n_rows[:, None]
    stops = cut_into_pieces(
        Criterion("gini", [3]), stats, n_rows, max_leaves=len(n_rows), min_rows=min_rows
    )
    rows = np.add.reduceat(n_rows, np.append(0, stops[:-1]))
    assert stops[-1] == len(n_rows)
    assert rows.min() >= min_rows
    assert len(stops) > len(n_rows) / (6 * min_rows)
