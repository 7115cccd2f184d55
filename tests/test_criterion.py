"""Impurities are what their names say, concave, homogeneous, and have supergradients."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import CRITERIA, samples, weighted_median
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import entropy

from shapetree._core.criterion import Criterion, NodeStatistics

WEIGHTS = st.one_of(st.just(0.0), st.floats(1e-6, 1e9))


@given(samples())
def test_impurity_and_weight_equal_their_naive_twins(sample):
    whole = sample.stats.sum(axis=0)
    assert_allclose(
        sample.criterion.impurity(whole), sample.impurity(whole), rtol=1e-9, atol=sample.tolerance
    )
    assert_allclose(sample.criterion.weight(whole), sample.total_weight, rtol=1e-12)


@given(samples())
def test_many_impurities_are_those_of_each_alone(sample):
    alone = [sample.criterion.impurity(stats) for stats in sample.stats]
    assert sample.criterion.impurities(sample.stats).tolist() == alone
    with pytest.raises(ValueError, match="statistics"):
        sample.criterion.impurities(sample.stats[:, 1:])


@given(arrays(np.float64, st.integers(1, 12), elements=WEIGHTS))
def test_entropy_is_exact_over_many_orders_of_magnitude(counts):
    criterion = Criterion("entropy", [len(counts)])
    expected = counts.sum() * entropy(counts, base=2) if counts.any() else 0.0
    assert_allclose(criterion.impurity(counts), expected, rtol=1e-9, atol=1e-11 * counts.sum())


@pytest.mark.parametrize("exponent", range(-300, 301, 50))
def test_entropy_of_two_equal_classes_is_one_bit_a_row_at_every_scale(exponent):
    half = 10.0**exponent
    assert_allclose(Criterion("entropy", [2]).impurity([half, half]), 2 * half, rtol=1e-9)


@given(samples(), st.sampled_from([1e-3, 0.5, 3.0, 1e6]))
def test_impurity_grows_in_proportion_to_the_rows(sample, factor):
    whole = sample.stats.sum(axis=0)
    assert_allclose(
        sample.criterion.impurity(factor * whole),
        factor * sample.criterion.impurity(whole),
        rtol=1e-9,
        atol=factor * sample.tolerance,
    )


@given(samples(least_pieces=2))
def test_splitting_rows_never_raises_the_impurity(sample):
    left, right = sample.stats[0], sample.stats[1:].sum(axis=0)
    parts = sample.criterion.impurity(left) + sample.criterion.impurity(right)
    assert parts <= sample.criterion.impurity(left + right) + sample.tolerance


@given(samples())
def test_supergradient_prices_its_own_rows_at_their_impurity(sample):
    for stats in sample.stats:
        prices = sample.criterion.supergradient(stats)
        assert_allclose(stats @ prices, sample.impurity(stats), atol=sample.tolerance)


@given(samples(least_pieces=2))
def test_supergradient_prices_no_other_rows_below_their_impurity(sample):
    for stats in sample.stats:
        prices = sample.criterion.supergradient(stats)
        for other in sample.stats:
            assert sample.impurity(other) <= other @ prices + sample.tolerance


@given(samples())
def test_supergradient_of_an_empty_branch_is_a_supergradient_too(sample):
    prices = sample.criterion.supergradient(np.zeros(sample.criterion.n_stats))
    for other in sample.stats:
        assert sample.impurity(other) <= other @ prices + sample.tolerance


@given(samples(names=["absolute_error"], max_outputs=1))
def test_absolute_error_is_priced_by_the_distance_to_the_median(sample):
    counts = sample.stats.sum(axis=0)
    median = weighted_median(sample.levels, counts)
    assert_allclose(sample.criterion.supergradient(counts), np.abs(sample.levels - median))


@pytest.mark.parametrize("name", CRITERIA)
def test_no_rows_have_no_impurity(name):
    criterion = Criterion(name, [2, 1], np.arange(3.0))
    assert criterion.impurity(np.zeros(criterion.n_stats)) == 0.0


def test_rounding_below_zero_gives_no_impurity_below_zero():
    assert Criterion("entropy", [2]).impurity([3.0, -1e-17]) >= 0.0
    assert Criterion("entropy", [3]).impurity([5e-324, 0.0, 0.0]) >= 0.0


@pytest.mark.parametrize("sizes", [[], [0], [2, -1], [[1, 2]], 3])
def test_block_sizes_must_be_positive(sizes):
    with pytest.raises(ValueError, match="block_sizes"):
        Criterion("gini", sizes)


def test_unknown_criterion_is_refused_by_name():
    with pytest.raises(ValueError, match="unknown criterion 'ginny'"):
        Criterion("ginny", [2])


@pytest.mark.parametrize("levels", [None, [], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_absolute_error_needs_a_level_for_each_statistic(levels):
    with pytest.raises((ValueError, TypeError), match="levels"):
        Criterion("absolute_error", [2], levels)


@pytest.mark.parametrize("stats", [[], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
@pytest.mark.parametrize("method", ["impurity", "weight", "supergradient"])
def test_statistics_of_another_length_are_refused(method, stats):
    with pytest.raises(ValueError, match="expected 2 statistics"):
        getattr(Criterion("gini", [2]), method)(stats)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["gini", "entropy"]), st.integers(0, 1))
def test_nodes_are_described_by_their_classes(seed, name, n_extra):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, rng.integers(1, 4)).tolist()
    criterion, stops = Criterion(name, sizes), np.cumsum(sizes)
    counts = [rng.multinomial(9, np.ones(size) / size, 5) for size in sizes]
    channels = np.hstack([*counts, rng.integers(0, 9, (5, n_extra))]).astype(float)
    n_rows, weights, impurities, shares = criterion.describe_classes(channels, n_extra > 0)
    assert_array_equal(weights, [9.0] * 5)
    assert_array_equal(n_rows, channels[:, -1] if n_extra else 9)
    masses = criterion.impurities(np.ascontiguousarray(channels[:, : stops[-1]]))
    assert_allclose(impurities, np.maximum(masses, 0.0) / 9)
    assert shares.shape == (5, len(sizes), max(sizes))
    for output, count in enumerate(counts):
        assert_allclose(shares[:, output, : sizes[output]], count / 9)
        assert not shares[:, output, sizes[output] :].any()


def test_numbers_have_no_classes_to_describe():
    with pytest.raises(ValueError, match="every class"):
        Criterion("squared_error", [1]).describe_classes(np.ones((1, 2)), False)
    with pytest.raises(ValueError, match="every class"):
        Criterion("gini", [3]).describe_classes(np.ones((1, 2)), False)


def test_what_a_node_knows_can_be_sent():
    value = np.array([[0.25, 0.75]])
    sent = pickle.loads(pickle.dumps(NodeStatistics(3, 2.5, 0.125, value)))
    assert (sent.n_rows, sent.weight, sent.impurity) == (3, 2.5, 0.125)
    assert_array_equal(sent.value, value)
    other = sent.with_value(np.ones((1, 2)))
    assert (other.n_rows, other.weight, other.impurity) == (3, 2.5, 0.125)
    assert_array_equal(other.value, np.ones((1, 2)))
