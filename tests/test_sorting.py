"""The sort without comparisons gives the order of a stable sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_array_equal

from shapetree._core.oblique import order_of

SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.sampled_from([0, 1, 2, 31, 32, 33, 34, 100, 257, 1000])
LARGEST = np.finfo(float).max


def assert_stable(values):
    assert_array_equal(order_of(values), np.argsort(values, kind="stable"))


@given(arrays(np.float64, st.integers(0, 80), elements=st.floats(allow_nan=False)))
def test_any_numbers(values):
    assert_stable(values)


@given(arrays(np.float64, st.integers(0, 300), elements=st.integers(-3, 3)))
def test_ties_keep_their_order(values):
    assert_stable(values)


@given(arrays(np.float64, st.integers(0, 80), elements=st.sampled_from([0.0, -0.0, 1.0, -1e301])))
def test_zeros_are_equal_whatever_their_sign(values):
    assert_stable(values)


@given(SEEDS, SIZES)
def test_infinities_and_huge_ranges(seed, n):
    rng = np.random.default_rng(seed)
    extremes = [-np.inf, np.inf, -LARGEST, LARGEST, -1e301, -1e300, 1e300, -1.0, 0.0, 1.0, 1e-300]
    values = rng.choice(extremes, n)
    assert_stable(values)
    assert_stable(values[values > -1e300])
    assert_stable(values[values > 0])


@given(SEEDS, SIZES)
def test_magnitudes_from_the_least_to_the_greatest(seed, n):
    rng = np.random.default_rng(seed)
    assert_stable(rng.choice([-1.0, 1.0], n) * 2.0 ** rng.integers(-1074, 1024, n))


@given(SEEDS, SIZES, st.sampled_from([0.0, 1.0, -1.0, -1e301]))
def test_subnormals(seed, n, outlier):
    rng = np.random.default_rng(seed)
    assert_stable(np.append(rng.integers(-50, 50, n) * 5e-324, outlier))


@given(SEEDS, SIZES, st.sampled_from([1.0, 1e10, -1e10, 1e-20]))
def test_values_that_differ_only_beyond_the_precision_of_float32(seed, n, far):
    rng = np.random.default_rng(seed)
    close = far + rng.integers(-40, 40, n) * np.spacing(far)
    assert_stable(close)
    # Next to a value far below them, all have the same rough key.
    assert_stable(np.append(close, far - abs(far)))


@pytest.mark.parametrize("n", [31, 32, 33, 64, 5000])
def test_runs_of_any_length_are_sorted_to_the_last_bit(n):
    steps = np.spacing(1.0) * np.arange(n)
    assert_stable(np.append(0.0, 1.0 + steps[::-1]))
    assert_stable(np.append(0.0, 1.0 + np.random.default_rng(n).permutation(steps // 3 * 3)))
    assert_stable(np.append(0.0, 1.0 + np.repeat(steps[::-1], 3)))


@given(SEEDS, SIZES)
def test_several_runs_side_by_side(seed, n):
    rng = np.random.default_rng(seed)
    base = rng.choice([1.0, 2.0, 3.0, 1000.0], n)
    assert_stable(np.append(0.0, base + rng.integers(0, 50, n) * np.spacing(base)))


@pytest.mark.parametrize("value", [np.inf, -np.inf, LARGEST, -LARGEST, 0.0, 5e-324])
def test_a_constant_keeps_its_order(value):
    assert_array_equal(order_of(np.full(70, value)), np.arange(70))


def test_sorted_and_reversed_values():
    values = np.linspace(-1, 1, 1001)
    assert_stable(values)
    assert_stable(values[::-1])
    assert_stable(np.repeat(values, 3)[::2])


def test_nan_is_refused():
    with pytest.raises(ValueError, match="NaN has no place in an order"):
        order_of([1.0, np.nan])
