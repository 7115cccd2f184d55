"""Sums that do not depend on order: any permutation and any partition gives the same bits."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from joined_rows import in_parts
from naive import describe_rows
from numpy.testing import assert_allclose, assert_array_equal

from shapetree.data._sums import (
    bound_of,
    evidence_of,
    exact_unit,
    local_numbers,
    mean_of,
    on_grid,
    weight_of,
)
from shapetree.data._targets import ClassGoal, MeanGoal, MedianGoal

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 40)
SCALES = [5e-324, 1e-310, 1e-300, 1e-30, 1.0, 1e12, 1e150, 1e300]
scales = st.sampled_from(SCALES)
# Their squares neither overflow nor vanish.
MIDDLING_SCALES = [scale for scale in SCALES if 1e-150 < scale < 1e150]

numbers = st.integers(1, 40).flatmap(
    lambda n: arrays(np.float64, n, elements=st.floats(allow_nan=False, allow_infinity=False))
)


def exact_weights(weights):
    """Weights as evidence, and what evidence of 1 weighs."""
    evidence = evidence_of(local_numbers(weights, None))
    return evidence.of(weights, None), evidence.size


def sums_in_other_orders(values, rng):
    """The sum row by row, in another order, and by the parts of a random partition."""
    shuffled = rng.permutation(values)
    part = rng.integers(0, 4, len(values))
    return [
        sum(values.tolist()),
        sum(shuffled.tolist()),
        sum(sum(values[part == p].tolist()) for p in range(4)),
        sum(values[part == p].sum() for p in range(4)),
    ]


def assert_sums_exactly(values, rng):
    for total in sums_in_other_orders(values, rng):
        assert total == values.sum()


@given(numbers, SEEDS)
def test_numbers_on_a_grid_sum_to_the_same_bits_in_any_order(values, seed):
    bound = bound_of(local_numbers(values))
    assume(np.isfinite(bound))
    rounded = on_grid(values, exact_unit(bound))
    assert_sums_exactly(rounded, np.random.default_rng(seed))
    # Every number keeps the bits that its share of the sum has room for.
    assert_allclose(rounded, values, rtol=0, atol=bound * 2.0**-51)


@given(numbers, SEEDS, st.booleans())
def test_bounds_bound_and_do_not_depend_on_order(values, seed, weighted):
    rng = np.random.default_rng(seed)
    values = values / 2.0**40
    weights = rng.exponential(size=len(values)) if weighted else None
    bound = bound_of(local_numbers(values, weights))
    order = rng.permutation(len(values))
    assert bound == bound_of(
        local_numbers(values[order], None if weights is None else weights[order])
    )
    weighted_values = np.abs(values) * (1.0 if weights is None else weights)
    assert bound >= weighted_values.sum() * (1 - 1e-12)
    greatest = np.abs(values).max() * (1.0 if weights is None else weights.max())
    assert bound <= weighted_values.sum() + 2.0**-13 * len(values) * greatest


@pytest.mark.parametrize("bound", [0.0, np.inf, np.nan])
def test_bounds_without_a_unit_leave_numbers_as_they_are(bound):
    values = np.array([1 / 3, 0.1])
    assert_array_equal(on_grid(values, exact_unit(bound)), values)


@pytest.mark.parametrize("bound", [5e-324, 1e-310, 1e-300, 0.75, 1.0, 3.0, 1e300])
def test_units_are_powers_of_two_that_a_double_has_room_for(bound):
    unit = exact_unit(bound)
    assert np.frexp(unit)[0] == 0.5
    assert bound / unit < 2.0**52
    assert unit == 5e-324 or bound / unit >= 2.0**51


# Weights


def some_weights(rng, n, scale):
    """Weights of very unequal size."""
    with np.errstate(under="ignore"):
        weights = rng.choice([1.0, 1 / 3, 1e-30, 1e-5], n) * rng.random(n) * scale
    return np.maximum(weights, 5e-324)


@given(SEEDS, SIZES, scales)
def test_weights_sum_to_the_same_bits_and_none_vanishes(seed, n, scale):
    rng = np.random.default_rng(seed)
    weights = some_weights(rng, n, scale)
    exact, size = exact_weights(weights)
    assert np.all(exact > 0)
    assert np.isfinite(exact).all()
    assert_sums_exactly(exact, rng)
    # All have been multiplied by one factor, and rounded to a share of the greatest.
    assert_allclose(exact / exact.max(), weights / weights.max(), atol=n * 2.0**-50)
    if MIDDLING_SCALES[0] <= weights.max() <= MIDDLING_SCALES[-1]:
        assert_allclose(exact.sum() * size, weights.sum(), rtol=1e-12)


@given(SEEDS, SIZES, scales)
def test_weights_do_not_depend_on_the_order_of_rows(seed, n, scale):
    rng = np.random.default_rng(seed)
    weights, order = some_weights(rng, n, scale), rng.permutation(n)
    one, other = exact_weights(weights), exact_weights(weights[order])
    assert_array_equal(one[0][order], other[0])
    assert one[1] == other[1]


def test_a_tiny_weight_beside_a_large_one_is_kept():
    exact, _ = exact_weights(np.array([1.0, 1e-30, 0.5]))
    assert 0 < exact[1] < 1e-14
    assert exact[0] == 2 * exact[2]


@given(SEEDS, SIZES)
def test_whole_numbers_are_left_as_they_are(seed, n):
    weights = np.random.default_rng(seed).integers(0, 1000, n).astype(float)
    assume(weights.any())
    exact, size = exact_weights(weights)
    assert_array_equal(exact, weights)
    assert size == 1.0


@pytest.mark.parametrize("weight", [5e-324, 1e-300, 0.3, 1 / 3, 1e-7, 2.0**60, 1e300])
def test_equal_shares_count_as_one_row_each(weight):
    exact, size = exact_weights(np.full(7, weight))
    assert_allclose(exact, 1.0, rtol=1e-14)
    assert_allclose(size, weight, rtol=1e-14)


# Means


@given(SEEDS, SIZES, st.sampled_from(MIDDLING_SCALES), st.booleans())
def test_means_are_right_and_do_not_depend_on_order(seed, n, scale, weighted):
    rng = np.random.default_rng(seed)
    values, order = rng.normal(size=(n, 2)) * scale, rng.permutation(n)
    weights = exact_weights(some_weights(rng, n, 1.0))[0] if weighted else None
    mean = mean_of(local_numbers(values, weights))
    shuffled = mean_of(local_numbers(values[order], None if weights is None else weights[order]))
    assert_array_equal(mean, shuffled)
    largest = np.abs(values).max()
    assert_allclose(mean, np.average(values, axis=0, weights=weights), atol=1e-12 * largest)


# Goals


def goal_of(kind, rng, n, scale, weights):
    if kind is ClassGoal:
        labels = rng.integers(0, 3, (n, 1)).astype(np.int32)
        return ClassGoal(labels, [3], weights, criterion="gini")
    return kind(rng.normal(size=(n, 2)) * scale, weights)


@given(SEEDS, st.integers(2, 40), st.sampled_from(MIDDLING_SCALES), scales, st.booleans())
@pytest.mark.parametrize("kind", [ClassGoal, MeanGoal, MedianGoal])
def test_channels_sum_to_the_same_bits_in_any_order(kind, seed, n, scale, weight, weighted):
    rng = np.random.default_rng(seed)
    weights = exact_weights(some_weights(rng, n, weight))[0] if weighted else None
    targets = goal_of(kind, rng, n, scale, weights).targets
    rows = np.arange(n, dtype=np.int32)
    channels = np.array([targets.totals(rows[i : i + 1]) for i in range(n)])
    assert np.isfinite(channels).all()
    for channel in channels.T:
        assert_sums_exactly(channel, rng)
    assert_array_equal(targets.totals(rows), channels.sum(axis=0))


@given(SEEDS, st.integers(2, 40), st.sampled_from(MIDDLING_SCALES), scales)
def test_means_of_nodes_are_right_at_any_scale(seed, n, scale, weight):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(n, 1)) * scale
    weights = exact_weights(rng.uniform(0.5, 2.0, n) * weight)[0]
    goal = MeanGoal(y, weights)
    node = describe_rows(goal, np.arange(n, dtype=np.int32))
    expected = np.average(y, axis=0, weights=weights)
    assert_allclose(node.value[0], expected, atol=1e-11 * np.abs(y).max())


# Numbers in parts


@given(SEEDS, SIZES, st.sampled_from(MIDDLING_SCALES), st.booleans())
def test_parts_agree_on_what_one_holder_of_all_rows_says(seed, n, scale, weighted):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 2)) * scale
    weights = exact_weights(some_weights(rng, n, 1.0))[0] if weighted else None
    whole, parts = local_numbers(values, weights), in_parts(rng, values, weights)
    assert parts.n_rows == whole.n_rows
    assert bound_of(parts) == bound_of(whole) == bound_of(local_numbers(values, weights))
    assert weight_of(parts) == weight_of(whole)
    assert_array_equal(mean_of(parts), mean_of(whole))


@given(SEEDS, SIZES, scales, st.sampled_from(["counts", "shares", "equal"]), st.booleans())
def test_parts_agree_on_evidence(seed, n, scale, kind, has_importance):
    rng = np.random.default_rng(seed)
    weights = {
        "counts": rng.integers(1, 5, n).astype(float),
        "shares": some_weights(rng, n, scale),
        "equal": np.full(n, 0.3),
    }[kind]
    importance = rng.choice([0.25, 1.5, 3.0], n) if has_importance else None
    with np.errstate(under="ignore"):
        assume(np.all(weights * (1.0 if importance is None else importance) > 0))
    found = evidence_of(local_numbers(weights, importance))
    assert evidence_of(in_parts(rng, weights, importance)) == found
