"""Sums that do not depend on order: numbers on a grid so coarse that adding them never rounds.

A double holds 53 bits. If all numbers are multiples of one power of two, the *unit*, and their sum
stays below 2**52 units, then every partial sum is exact, in any order: whichever threads, batches
or machines add them up get the same bits. The unit is agreed from a bound on the sum before
anything is summed.
"""

from __future__ import annotations

import numpy as np

# Units that sums of numbers on a grid stay below.
MOST_UNITS = 2.0**52
# Rows that weights count at most; sums of greater ones would leave few bits to the targets.
MAX_COUNT = 2.0**31
# Bits to which numbers are rounded up where their sum is bounded: 2**31 rows cannot overflow.
BOUND_BITS = 16


def bound_of_sum(values: np.ndarray, weights: np.ndarray | None = None) -> float:
    """A number that the sum of weighted absolute values does not exceed, the same for any order.

    A row of weight n counts as a row given n times. The bound is larger than the sum by at most
    2**-15 of the greatest value (and weight) for each row.
    """
    shares, exponent = _shares_of_greatest(values)
    if weights is not None:
        weight_shares, weight_exponent = _shares_of_greatest(weights)
        shares = shares * weight_shares.reshape(-1, *[1] * (values.ndim - 1))
        exponent += weight_exponent
    with np.errstate(over="ignore"):
        return float(np.ldexp(float(shares.sum()), exponent))


def _shares_of_greatest(values: np.ndarray) -> tuple[np.ndarray, int]:
    """Whole numbers, and a power of two that they must be multiplied by, to bound some values."""
    magnitude = np.abs(values)
    greatest = float(magnitude.max(initial=0.0))
    if greatest == 0.0 or not np.isfinite(greatest):
        return magnitude, 0
    exponent = int(np.frexp(greatest)[1]) - BOUND_BITS
    return np.ceil(np.ldexp(magnitude, -exponent)).astype(np.int64), exponent


def exact_unit(bound: float) -> float:
    """The finest unit for numbers whose absolute values add up to no more than a bound."""
    if not 0.0 < bound < np.inf:
        return 0.0
    exponent = np.frexp(bound)[1]  # bound < 2**exponent
    return float(np.ldexp(1.0, max(int(exponent) - 52, -1074)))


def exact_units(bounds: np.ndarray) -> np.ndarray:
    """The same for many bounds."""
    return np.array([exact_unit(bound) for bound in bounds.ravel().tolist()]).reshape(bounds.shape)


def on_grid(values: np.ndarray, unit: float) -> np.ndarray:
    """Values rounded to multiples of a unit; a unit of 0 leaves them as they are."""
    if unit == 0.0:
        return values
    return np.rint(values / unit) * unit


def exact_sums(values: np.ndarray, weights: np.ndarray | None, units: np.ndarray) -> np.ndarray:
    """Sum of each column, on a grid of its own."""
    sums = []
    for column, unit in zip(values.T, units.tolist(), strict=True):
        rounded = on_grid(column, unit)
        sums.append((rounded if weights is None else on_grid(rounded * weights, unit)).sum())
    return np.array(sums)


def exact_weights(
    weights: np.ndarray, importance: np.ndarray | None = None
) -> tuple[np.ndarray, float]:
    """Weights as evidence, which add up without rounding; none that is positive vanishes.

    Whole numbers count rows, if these are no more than a table can have. Others are shares: they
    are scaled to add up to the number of equally weighted rows that tell as much, (Σ w)² / Σ w²,
    so that equal weights of any size count as 1.

    Parameters
    ----------
    weights : array of shape (n_rows,)
    importance : array of shape (n_rows,), optional
        What weights are multiplied by. An important row is still a single row, so these numbers
        are shares even if they are whole.

    Returns
    -------
    weights : array of shape (n_rows,)
    size : float
        What evidence of 1 weighs, apart from rounding.
    """
    is_count = bool((weights == np.rint(weights)).all()) and bound_of_sum(weights) <= MAX_COUNT
    if is_count:
        size = 1.0
        if importance is not None:
            shares, size = _as_evidence(importance, weights)
            weights = weights * shares
    else:
        weights, size = _as_evidence(weights if importance is None else weights * importance)
    unit = exact_unit(bound_of_sum(weights))
    return np.where(weights > 0, np.maximum(np.rint(weights / unit), 1.0), 0.0) * unit, size


def _as_evidence(shares: np.ndarray, counts: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Shares scaled to add up to (Σ c s)² / Σ c s² over rows that count c, and what 1 weighs."""
    if shares.min() == shares.max():
        return np.ones_like(shares), float(shares[0])
    # Powers of two, so that no square overflows or vanishes.
    exponent = int(np.frexp(shares.max())[1])
    relative = np.ldexp(shares, -exponent)
    mean = exact_mean(relative[:, None], counts)[0]
    mean_square = exact_mean(relative[:, None] ** 2, counts)[0]
    return relative * (mean / mean_square), float(np.ldexp(mean_square / mean, exponent))


def exact_mean(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Mean of each column, the same for any order of the rows."""
    units = np.full(values.shape[1], exact_unit(bound_of_sum(values, weights)))
    return exact_sums(values, weights, units) / (len(values) if weights is None else weights.sum())
