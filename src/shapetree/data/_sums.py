"""Sums that do not depend on order: numbers on a grid so coarse that adding them never rounds.

A double holds 53 bits. If all numbers are multiples of one power of two, the *unit*, and their sum
stays below 2**52 units, then every partial sum is exact, in any order: whichever threads, batches
or machines add them up get the same bits. The unit is agreed from a bound on the sum before
anything is summed.

What is agreed follows from greatest values and sums, so that no process has to see all rows at
once: `Numbers` may be local or remote, and are only asked for these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shapetree.data._map_join import Join, LocalParts, Parts, add, greatest

# Units that sums of numbers on a grid stay below.
MOST_UNITS = 2.0**52
# Rows that weights count at most: no more than a table can have.
MAX_COUNT = 2.0**31 - 2
# Bits to which numbers are rounded up where their sum is bounded: 2**31 rows cannot overflow.
BOUND_BITS = 16


# Numbers of rows, and what they are weighed by, if anything.
Pair = tuple[np.ndarray, np.ndarray | None]


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of rows, local or remote, and what they are weighed by."""

    parts: Parts  # a `Pair` of each
    n_rows: int

    def map(self, make: Callable[..., Pair]) -> Numbers:
        """Numbers that are made of these, row by row."""
        return replace(self, parts=self.parts.map(partial(_of_pair, make)))

    def map_values(self, make: Callable[[np.ndarray], np.ndarray]) -> Numbers:
        """Other numbers that are made of these, with the same weights."""
        return self.map(partial(_with_values, make))

    def ask(self, of: Callable[..., Any], join: Join) -> Any:
        """One answer of all rows; see `Parts.ask`."""
        return self.parts.ask(partial(_of_pair, of), join)


def _of_pair(function: Callable[..., Any], pair: Pair) -> Any:
    return function(*pair)


def _with_values(
    make: Callable[[np.ndarray], np.ndarray], values: np.ndarray, weights: np.ndarray | None
) -> Pair:
    return make(values), weights


def local_numbers(values: np.ndarray, weights: np.ndarray | None = None) -> Numbers:
    """Numbers in this process."""
    return Numbers(LocalParts([(values, weights)]), len(values))


def bound_of(numbers: Numbers) -> float:
    """A number that the sum of weighted absolute values does not exceed, the same for any order.

    A row of weight n counts as a row given n times. The bound is larger than the sum by at most
    2**-15 of the greatest value (and weight) for each row.
    """
    largest, heaviest = numbers.ask(_greatest_and_heaviest, greatest).tolist()
    if heaviest == 0.0 or not 0.0 < largest < np.inf:
        return 0.0 if heaviest == 0.0 else float(largest)
    exponent = int(np.frexp(largest)[1]) - BOUND_BITS
    weight_exponent = 0 if heaviest < 0.0 else int(np.frexp(heaviest)[1]) - BOUND_BITS
    total = numbers.ask(partial(_sum_of_shares, exponent, weight_exponent), add)
    with np.errstate(over="ignore"):
        return float(np.ldexp(float(total), exponent + weight_exponent))


def _greatest_and_heaviest(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Greatest absolute value, and greatest weight; -1 if there are none."""
    heaviest = -1.0 if weights is None else float(weights.max(initial=0.0))
    return np.array([float(np.abs(values).max(initial=0.0)), heaviest])


def _sum_of_shares(
    exponent: int, weight_exponent: int, values: np.ndarray, weights: np.ndarray | None
) -> np.int64:
    """Sum of absolute values in whole powers of two, each rounded up."""
    shares = _whole_shares(np.abs(values), exponent)
    if weights is not None:
        times = _whole_shares(weights, weight_exponent)
        shares = shares * times.reshape(-1, *[1] * (values.ndim - 1))
    return np.int64(shares.sum())


def _whole_shares(magnitude: np.ndarray, exponent: int) -> np.ndarray:
    return np.ceil(np.ldexp(magnitude, -exponent)).astype(np.int64)


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


@dataclass(frozen=True)
class WeightScaling:
    """How weights become evidence: agreed for all rows, it can be applied to any part of them."""

    # Whether weights count rows, and only what they are multiplied by are shares.
    are_counts: bool
    # Shares are divided by a power of two and multiplied by a factor; a factor of 0 if all are the
    # same, and count 1.
    exponent: int
    factor: float
    unit: float  # of the grid that evidence lies on
    size: float  # what evidence of 1 weighs, but for rounding

    def of(self, weights: np.ndarray, importance: np.ndarray | None) -> np.ndarray:
        """Evidence of some rows."""
        if self.are_counts and importance is not None:
            # Rounded before it is multiplied, so that a weight of n is n rows.
            return weights * self._rounded(self._shares(importance))
        return self._rounded(self._scaled(weights, importance))

    def _rounded(self, shares: np.ndarray) -> np.ndarray:
        """Multiples of the unit, none of which vanishes."""
        rounded = np.maximum(np.rint(shares / self.unit), 1.0)
        return np.where(shares > 0, rounded, 0.0) * self.unit

    def counts_of(self, weights: np.ndarray | None) -> np.ndarray | None:
        """How many rows each of some rows counts as; None if each counts as one."""
        return weights if self.are_counts else None

    def columns(self, weights: np.ndarray, importance: np.ndarray | None) -> Pair:
        """Evidence as numbers without weights."""
        return self.of(weights, importance), None

    def scaled_columns(self, weights: np.ndarray, importance: np.ndarray | None) -> Pair:
        """The same before it is rounded."""
        return self._scaled(weights, importance), None

    def _scaled(self, weights: np.ndarray, importance: np.ndarray | None) -> np.ndarray:
        """Evidence before it is rounded."""
        if not self.are_counts:
            return self._shares(weights if importance is None else weights * importance)
        return weights if importance is None else weights * self._shares(importance)

    def _shares(self, shares: np.ndarray) -> np.ndarray:
        if self.factor == 0.0:
            return np.ones_like(shares)
        return np.ldexp(shares, -self.exponent) * self.factor


def evidence_of(rows: Numbers) -> WeightScaling:
    """Agree on how weights become evidence, which adds up without rounding; none vanishes.

    Whole numbers count rows, if these are no more than a table can have. Others are shares: they
    are scaled to add up to the number of equally weighted rows that tell as much, (Σ w)² / Σ w²,
    so that equal weights of any size count as 1.

    The numbers of rows are their weights, and these are weighed by importance, if there is any. An
    important row is still a single row, so importance is a share even if it is whole.
    """
    has_importance, has_fractions = rows.ask(_importance_and_fractions, greatest).tolist()
    given = rows.map(weights_alone)
    are_counts = not has_fractions and bound_of(given) <= MAX_COUNT
    exponent, factor, size = 0, 1.0, 1.0
    if are_counts and has_importance:
        exponent, factor, size = _scale_of_shares(rows.map(_importance_by_weights))
    elif not are_counts:
        exponent, factor, size = _scale_of_shares(rows.map(_products) if has_importance else given)
    found = WeightScaling(are_counts, exponent, factor, 1.0, size)
    return replace(found, unit=exact_unit(bound_of(rows.map(found.scaled_columns))))


def count_rows(weights: np.ndarray | None, n_rows: int) -> int:
    """How many rows some rows count as."""
    if (
        weights is None
        or (weights != np.rint(weights)).any()
        or bound_of(local_numbers(weights)) > MAX_COUNT
    ):
        return n_rows
    return int(weights.sum())


def _importance_and_fractions(weights: np.ndarray, importance: np.ndarray | None) -> np.ndarray:
    """Whether there is importance, and whether weights are not whole."""
    return np.array([importance is not None, (weights != np.rint(weights)).any()])


def sum_of_products(weights: np.ndarray, importance: np.ndarray) -> float:
    """What weights add up to if they are multiplied, which may be more than a number can hold."""
    with np.errstate(over="ignore"):
        return float((weights * importance).sum())


def ones_and_whole(evidence: np.ndarray, nothing: None) -> np.ndarray:
    """Whether all rows count 1, and whether all count a whole number."""
    return np.array([(evidence == 1).all(), (evidence == np.rint(evidence)).all()])


def sum_of_values(values: np.ndarray, weights: np.ndarray | None) -> float:
    """What values add up to."""
    return float(values.sum())


def weights_alone(weights: np.ndarray, importance: np.ndarray | None) -> Pair:
    """Weights as numbers, without what they are multiplied by."""
    return weights, None


def _importance_by_weights(weights: np.ndarray, importance: np.ndarray) -> Pair:
    return importance, weights


def _products(weights: np.ndarray, importance: np.ndarray) -> Pair:
    return weights * importance, None


def weights_of_groups(groups: Numbers, n_groups: int) -> np.ndarray:
    """Weight of the rows of each group, (n_columns, n_groups), the same for any order.

    Numbers are those of groups, one column or more.
    """
    unit = exact_unit(bound_of(groups.map(_weights_as_values)))
    total = groups.ask(partial(_weights_by_group, unit, n_groups), add)
    return np.asarray(total)


def _weights_as_values(groups: np.ndarray, weights: np.ndarray | None) -> Pair:
    return np.ones(len(groups)) if weights is None else weights, None


def _weights_by_group(
    unit: float, n_groups: int, groups: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    own = None if weights is None else on_grid(weights, unit)
    return np.array([np.bincount(column, own, n_groups) for column in groups.T], dtype=np.float64)


def _scale_of_shares(shares: Numbers) -> tuple[int, float, float]:
    """What makes shares add up to (Σ c s)² / Σ c s² over rows that count c, and what 1 weighs."""
    largest, least = (shares.ask(_ends, greatest) * [1.0, -1.0]).tolist()
    if least == largest:
        return 0, 0.0, least
    # Powers of two, so that no square overflows or vanishes.
    exponent = int(np.frexp(largest)[1])
    relative = shares.map_values(partial(_relative, exponent))
    mean = mean_of(relative)[0]
    mean_square = mean_of(relative.map_values(np.square))[0]
    size = float(np.ldexp(mean_square / mean, exponent))
    return exponent, float(mean / mean_square), size


def _ends(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Greatest and least value, the least with the other sign."""
    return np.array([values.max(initial=-np.inf), -values.min(initial=np.inf)])


def _relative(exponent: int, values: np.ndarray) -> np.ndarray:
    """Values as a column, divided by a power of two."""
    return np.ldexp(values, -exponent)[:, None]


def mean_of(numbers: Numbers) -> np.ndarray:
    """Mean of each column, the same for any order of the rows."""
    unit = exact_unit(bound_of(numbers))
    sums = numbers.ask(partial(_sums_and_weight, unit), add)
    return np.asarray(sums[:-1] / sums[-1])


def _sums_and_weight(unit: float, values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Sum of each column on a grid, and the weight of all rows."""
    sums = exact_sums(values, weights, np.full(values.shape[1], unit))
    return np.append(sums, len(values) if weights is None else weights.sum())


def weight_of(numbers: Numbers) -> float:
    """Weight of all rows, or their number; weights must lie on a grid."""
    return float(numbers.ask(_weight, add))


def _weight(values: np.ndarray, weights: np.ndarray | None) -> float:
    return float(len(values) if weights is None else weights.sum())
