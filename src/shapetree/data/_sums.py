"""Sums that do not depend on order: numbers on a grid so coarse that adding them never rounds.

A double holds 53 bits. If all numbers are multiples of one power of two, the *unit*, and their sum
stays below 2**52 units, then every partial sum is exact, in any order: whichever threads, batches
or machines add them up get the same bits. The unit is agreed from a bound on the sum before anything
is summed.
"""

from __future__ import annotations

import numpy as np

# Units that sums of numbers on a grid stay below.
MOST_UNITS = 2.0**52
# Bits to which numbers are rounded up where their sum is bounded; so many rows cannot overflow.
BOUND_BITS = 24


def bound_of_sum(values: np.ndarray) -> float:
    """A number that the sum of absolute values does not exceed, the same for any order.

    It is larger by at most one part in 2**23 of the greatest value for each row.
    """
    greatest = float(np.abs(values).max(initial=0.0))
    if greatest == 0.0 or not np.isfinite(greatest):
        return greatest
    exponent = int(np.frexp(greatest)[1])  # greatest < 2**exponent
    # Whole numbers of shares of that, which add up without rounding.
    shares = np.ceil(np.ldexp(np.abs(values), BOUND_BITS - exponent))
    with np.errstate(over="ignore"):
        return float(np.ldexp(shares.sum(), exponent - BOUND_BITS))


def exact_unit(bound: float) -> float:
    """The finest unit for numbers whose absolute values add up to no more than a bound."""
    if not 0.0 < bound < np.inf:
        return 0.0
    exponent = np.frexp(bound)[1]  # bound < 2**exponent
    return float(np.ldexp(1.0, max(int(exponent) - 52, -1074)))


def on_grid(values: np.ndarray, unit: float) -> np.ndarray:
    """Values rounded to multiples of a unit; a unit of 0 leaves them as they are."""
    if unit == 0.0:
        return values
    return np.rint(values / unit) * unit


def exact_weights(weights: np.ndarray) -> np.ndarray:
    """Weights that add up without rounding; none that is positive vanishes."""
    unit = exact_unit(bound_of_sum(weights))
    if unit == 0.0:
        return weights
    return np.where(weights > 0, np.maximum(np.rint(weights / unit), 1.0), 0.0) * unit


def exact_mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Mean of each column, the same for any order of the rows."""
    if weights is None:
        total, weighted = float(len(values)), values
    else:
        total, weighted = float(weights.sum()), values * weights[:, None]
    return on_grid(weighted, exact_unit(bound_of_sum(weighted))).sum(axis=0) / total
