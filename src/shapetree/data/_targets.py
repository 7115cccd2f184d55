"""Targets and weights → what a row adds to a histogram, and what a node predicts for its rows."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from copy import copy
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from shapetree._core.binning import group_values
from shapetree._core.criterion import Criterion, NodeStatistics
from shapetree._core.histogram import Targets
from shapetree.data._map_join import add, greatest
from shapetree.data._statistics import Statistics
from shapetree.data._sums import (
    MOST_UNITS,
    Numbers,
    bound_of,
    exact_unit,
    local_numbers,
    mean_of,
    on_grid,
    weight_of,
)

# Absolute error needs the distribution of y, not only its moments. It is computed from all values
# of y if there are few, and from this many quantile groups otherwise.
MAX_EXACT_LEVELS = 512
MAX_LEVELS = 64
# Units of the grid below which a node's rows are summed on a grid of their own.
SMALL_VALUES = 2.0**20
# Share of a node's weight by which half of it may be missed by rounding.
HALF_TOLERANCE = 2.0**-40

# In regression with many rows, slivers of an axis earn their price, so that segments cost more in
# nodes of more rows than this.
MANY_ROWS = 1_000.0
LOG2_E = math.log2(math.e)


class Prices(NamedTuple):
    """What a tree pays for its size, in penalty units of its goal.

    `leaf` for every leaf beyond the first, `part` for every segment or region of a node beyond two.
    """

    leaf: float
    part: float


# What leaves and parts must earn at strength 1: about what they gain where there is nothing to
# learn, so that they pay for having been chosen from many. In bits of entropy, rows of Gini mass,
# wrongly classified rows, or rows that are as far off as the average one. Where rows are few,
# resamples tell whether there is anything to learn, and prices must not forbid it: a leaf pays no
# more than a share of all that there is to explain.
PRICES = {
    "entropy": Prices(4.0, 6.0),
    "gini": Prices(3.0, 5.0),
    "error": Prices(3.0, 3.0),
    "numbers": Prices(6.0, 8.0),
}
MAX_SHARE_OF_LEAF = 0.01
# Fewest rows of a leaf by default: a value seen once or twice is no evidence,
# and among numbers a few outliers look like a pattern.
LEAST_ROWS_OF_CLASSES, LEAST_ROWS_OF_NUMBERS = 3, 5


def affordable(prices: Prices, total: float) -> Prices:
    """Prices at which a leaf costs no more than its share of all that there is to explain."""
    return Prices(min(prices.leaf, MAX_SHARE_OF_LEAF * total), prices.part)


class Goal(ABC):
    """What a tree is to learn: y and weights as additive statistics."""

    criterion: Criterion  # impurity of any set of rows, from its statistics
    criterion_name: str
    targets: Targets  # what each row adds to the statistics
    impurity_scale: float = 1.0  # brings the criterion's mean impurity to the units of y
    # What leaves and parts must earn while the tree grows unless the user says otherwise, and when
    # it is refined, if the units are others.
    prices: Prices
    refine_prices: Prices | None = None
    least_rows: int = LEAST_ROWS_OF_NUMBERS  # of a leaf unless the user says otherwise
    # What a region of a pair beyond two must earn for each bit (log2 of the rows that are cut), as
    # a share of the segment's.
    region_penalty: float = 0.1
    many_rows: float = np.inf  # weight of a node from which on parts cost more, see `parts_price`
    counts: np.ndarray | None = None  # how many rows each counts as; None where each is one
    _n_counted: int | None = None

    def __init__(self, weights: np.ndarray | None, remote: Numbers | None) -> None:
        self.weights = weights  # as evidence, see `evidence_of`; None where every row counts 1
        if remote is not None:
            self.total_weight = float(remote.n_rows) if weights is None else weight_of(remote)

    @cached_property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.targets.n_rows if self.weights is None else self.weights.sum())

    def without_rows(self) -> Self:
        """What was agreed for all rows, to be applied to parts of them by `of`."""
        self._agree()
        nothing, empty = np.zeros((0, self.targets.n_outputs)), np.zeros(0)
        return self.of(
            nothing,
            None if self.weights is None else empty,
            None if self.counts is None else empty,
        )

    def counting(self, counts: np.ndarray | None, n_counted: int) -> Self:
        """The same goal for the same rows, if each of them counts as several.

        `n_counted` is how many rows all of them count as, remote ones included.
        """
        goal = self if counts is None else self.of(self._given_targets, self.weights, counts)
        goal._n_counted = n_counted
        return goal

    @property
    def n_counted(self) -> int:
        """Number of all rows, each as often as it counts."""
        return self.targets.n_rows if self._n_counted is None else self._n_counted

    def of(
        self, targets: np.ndarray, weights: np.ndarray | None, counts: np.ndarray | None
    ) -> Self:
        """The same goal for some of the rows, on the grids that were agreed for all.

        Targets are as the goal was given them.
        """
        goal = copy(self)
        goal.weights, goal.counts = weights, counts
        goal._take_targets(targets)
        return goal

    def reordered(self, order: np.ndarray) -> Self:
        """The same goal for the same rows, if row order[i] is numbered i."""
        self._agree()
        # Not by `take`, which would copy the order in a type of twice the size.
        weights = None if self.weights is None else self.weights[order]
        counts = weights if self.counts is self.weights else None
        if self.counts is not None and counts is None:
            counts = self.counts[order]
        return self.of(self._given_targets[order], weights, counts)

    @property
    @abstractmethod
    def _given_targets(self) -> np.ndarray:
        """Targets as the goal was given them."""

    def _agree(self) -> tuple[Any, ...]:
        """What all rows must be seen for; these are cached, so copies of the goal have them."""
        return (self.total_weight,)

    @abstractmethod
    def _take_targets(self, targets: np.ndarray) -> None:
        """Note targets of rows whose weights are known, and what they add to sums."""

    @property
    def counts_rows(self) -> bool:
        """Whether the last channel counts rows; otherwise their weights do."""
        return self.targets.n_channels > self.targets.n_stats

    @abstractmethod
    def weights_behind(self, channels: np.ndarray) -> np.ndarray:
        """Weights of the rows that sums of channels are made of."""

    def penalty_unit(self, node: NodeStatistics | Statistics) -> Any:
        """Impurity mass that a penalty of 1 stands for in a node, or in each of several."""
        return 1.0

    def noise(self, node: NodeStatistics | Statistics) -> Any:
        """Impurity mass that a cut of each node takes away on average where nothing is to gain."""
        return node.impurity


class ClassGoal(Goal):
    """Learn classes.

    Parameters
    ----------
    labels : int array of shape (n_rows, n_outputs)
        Number of the class, counted from 0 in every output.
    n_classes : list of int
        Classes of each output.
    weights : array of shape (n_rows,) or None
    objective : {"log_loss", "error"}
        What the tree is to have least of: log loss, or wrong predictions.
    criterion : {"auto", "gini", "entropy"}
        What growth lowers. "auto" is entropy, for wrong predictions, too: with many classes and
        few leaves, Gini takes one class at a time.
    remote : Numbers, optional
        Classes and weights of all rows, if these are remote.

    Attributes
    ----------
    labels : int array of shape (n_rows, n_outputs)
        Number of the class, counted on from output to output.
    starts : int array of shape (n_outputs + 1,)
        Where the classes of each output start, and the end.
    totals : array
        Weight of each class in all rows.
    """

    least_rows = LEAST_ROWS_OF_CLASSES

    def __init__(
        self,
        labels: np.ndarray,
        n_classes: list[int],
        weights: np.ndarray | None,
        objective: str = "log_loss",
        criterion: str = "auto",
        remote: Numbers | None = None,
    ) -> None:
        super().__init__(weights, remote)
        if criterion == "auto":
            criterion = "entropy"
        self.objective = objective
        self.region_penalty = {"gini": 0.1, "entropy": 0.2}[criterion]
        self.criterion_name = criterion
        self.criterion = Criterion(criterion, n_classes)
        self.starts = np.cumsum([0, *n_classes])
        self._take_targets(labels)
        rows = remote or local_numbers(labels, weights)
        each = rows.ask(partial(_weights_of_classes, max(n_classes)), add)
        self.totals = np.concatenate([line[:n] for line, n in zip(each, n_classes, strict=True)])
        entropy = Criterion("entropy", n_classes)
        self.prices = affordable(PRICES[criterion], self.criterion.impurity(self.totals))
        if objective == "error":
            self.refine_prices = affordable(PRICES["error"], self.total_weight)
        elif criterion != "entropy":
            self.refine_prices = affordable(PRICES["entropy"], entropy.impurity(self.totals))

    def _take_targets(self, targets: np.ndarray) -> None:
        """Note the rows' classes."""
        self.labels = targets.astype(np.int32, copy=False)
        if len(self.starts) > 2:
            self.labels = self.labels + self.starts[:-1].astype(np.int32)
        n_stats = self.criterion.n_stats
        self.targets = Targets(self.labels, None, self.weights, n_stats, counts=self.counts)

    @property
    def _given_targets(self) -> np.ndarray:
        """Numbers of classes, counted from 0 in every output."""
        return self.labels if len(self.starts) == 2 else self.labels - self.starts[:-1]

    def weights_behind(self, channels: np.ndarray) -> np.ndarray:
        """Weights of the rows that sums of channels are made of."""
        return channels[:, : self.starts[1]].sum(axis=1)

    def statistics(self, channels: np.ndarray) -> Statistics:
        """What is known of nodes from their rows' sums of channels, (n_nodes, n_channels)."""
        return Statistics(*self.criterion.describe_classes(channels, self.counts_rows))

    def noise(self, node: NodeStatistics | Statistics) -> Any:
        """Impurity mass that a cut of each node takes away on average where nothing is to gain.

        For Gini, the mean impurity; for entropy, half a nat for each class beyond the first (by
        Wilks' theorem).
        """
        if self.criterion_name == "gini":
            return node.impurity
        n_present = np.count_nonzero(node.value, axis=(-2, -1)) / node.value.shape[-2]
        return 0.5 * LOG2_E * (n_present - 1)


class RegressionGoal(Goal):
    """Learn numbers; y is centred, and scaled to about unit variance over all outputs.

    Centre and scale are powers of two and their multiples, so that whole numbers stay whole and
    their sums exact, in whatever order they are summed.

    Attributes
    ----------
    y : array of shape (n_rows, n_outputs)
    standardised : array of shape (n_rows, n_outputs)
        The centred and scaled y, on a grid on which sums are exact.
    unit : float
        Of that grid.

    Parameters
    ----------
    y : array of shape (n_rows, n_outputs)
    weights : array of shape (n_rows,) or None
    remote : Numbers, optional
        Targets and weights of all rows, if these are remote.
    """

    many_rows = MANY_ROWS

    def __init__(
        self, y: np.ndarray, weights: np.ndarray | None, remote: Numbers | None = None
    ) -> None:
        super().__init__(weights, remote)
        rows = remote or local_numbers(np.ascontiguousarray(y), weights)
        largest = _power_of_two(float(rows.ask(_greatest, greatest).max()))
        shares = rows.map_values(partial(_standardised, largest, 0.0))
        mean = mean_of(shares)
        variance = mean_of(shares.map_values(partial(_squared_from, mean))).mean()
        least = float(np.finfo(np.float64).smallest_subnormal)
        self._scale = max(_power_of_two(float(np.sqrt(variance))) * largest, least)
        self._centre = np.rint(mean * largest / self._scale)
        standardised = rows.map_values(partial(_standardised, self._scale, self._centre))
        self.unit = exact_unit(bound_of(standardised))
        weight = float(rows.n_rows) if weights is None else weight_of(rows)
        self.prices = affordable(PRICES["numbers"], weight)
        if remote is not None:
            on_a_grid = standardised.map_values(partial(on_grid, unit=self.unit))
            self.greatest = on_a_grid.ask(_greatest, greatest)
            self.spread_unit = self._spread_unit(on_a_grid)

    def _take_numbers(self, y: np.ndarray) -> None:
        """Note the rows' numbers."""
        self.y = np.ascontiguousarray(y)
        self.standardised = on_grid(self.standardise(self.y), self.unit)

    @property
    def _given_targets(self) -> np.ndarray:
        """The numbers themselves."""
        return self.y

    def _agree(self) -> tuple[Any, ...]:
        """What all rows must be seen for; these are cached, so copies of the goal have them."""
        return (*super()._agree(), self.spread_unit, self.greatest)

    @cached_property
    def greatest(self) -> np.ndarray:
        """Greatest absolute value of each output of all rows, centred and scaled."""
        return _greatest(self.standardised, None)

    def penalty_unit(self, node: NodeStatistics | Statistics) -> Any:
        """A row that lies as far off as the node's rows do on the mean."""
        return node.impurity

    @property
    @abstractmethod
    def is_absolute(self) -> bool:
        """Whether differences count as they are, and are not squared."""

    @cached_property
    def spread_unit(self) -> float:
        """Grid for what rows differ from their node's centre, on which sums are exact."""
        return self._spread_unit(local_numbers(self.standardised, self.weights))

    def _spread_unit(self, standardised: Numbers) -> float:
        differences = standardised.map_values(np.abs if self.is_absolute else np.square)
        # No centre is further away than the middle of all rows; twice that, to be safe.
        bound = 4.0 * len(self._centre) * bound_of(differences)
        return exact_unit(bound) or float(np.finfo(np.float64).tiny)

    def weights_behind(self, channels: np.ndarray) -> np.ndarray:
        """Weights of the rows that sums of channels are made of."""
        return channels[:, 0]

    def centres(self, channels: np.ndarray) -> np.ndarray:
        """Means of nodes, centred and scaled, from their rows' sums of channels."""
        return channels[:, 1 : self.targets.n_stats] / channels[:, :1]

    def in_units_of_y(self, centres: np.ndarray) -> np.ndarray:
        """Centres that were centred and scaled, as they are."""
        return self._scale * (self._centre + centres)

    def are_small(self, largest: np.ndarray) -> np.ndarray:
        """Which nodes have rows too small for an exact mean on the grid of all rows.

        The greatest absolute value of each output is given, (n_nodes, n_outputs).
        """
        rounding = self._scale * np.maximum(self.unit, np.abs(self._centre) / MOST_UNITS)
        return np.asarray((largest < rounding * SMALL_VALUES).any(axis=1))

    def standardise(self, centres: np.ndarray) -> np.ndarray:
        """Centre and scale."""
        return _standardised(self._scale, self._centre, centres)

    def statistics(
        self,
        channels: np.ndarray,
        values: np.ndarray,
        least: np.ndarray,
        greatest: np.ndarray,
        spreads: np.ndarray,
    ) -> Statistics:
        """What is known of nodes from their rows' sums of channels, (n_nodes, n_channels).

        Values are means or medians, (n_nodes, n_outputs), which must lie between the least and the
        greatest, and spreads the weighted differences from them in sum, scaled.
        """
        weights = self.weights_behind(channels)
        # Rounding must not carry a mean beyond the rows: equal rows have their own value.
        values = np.clip(values, least, greatest)[:, :, None]
        impurities = np.where(
            (least == greatest).all(axis=1), 0.0, spreads / weights / values.shape[1]
        )
        counts = (channels[:, -1] if self.counts_rows else weights).round().astype(int)
        return Statistics(counts, weights, impurities, values)

    def standardised_medians(self, rows: np.ndarray) -> np.ndarray:
        """Medians of some rows, centred and scaled."""
        return medians_of(self.standardised[rows], self._weights_of(rows))

    def _weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.weights is None else self.weights[rows]


class MeanGoal(RegressionGoal):
    """Learn numbers by squared error: nodes predict means."""

    criterion_name = "squared_error"
    is_absolute = False

    def __init__(
        self, y: np.ndarray, weights: np.ndarray | None, remote: Numbers | None = None
    ) -> None:
        super().__init__(y, weights, remote)
        n_outputs = y.shape[1]
        limits = np.finfo(np.float64)
        self.impurity_scale = float(np.clip(self._scale * self._scale, limits.tiny, limits.max))
        self.criterion = Criterion("squared_error", [1] * n_outputs)
        self._take_targets(y)

    def _take_targets(self, targets: np.ndarray) -> None:
        """Note the rows' numbers, and that they are summed."""
        self._take_numbers(targets)
        self.targets = Targets(
            None, self.standardised, self.weights, self.criterion.n_stats, self.unit, self.counts
        )


class MedianGoal(RegressionGoal):
    """Learn numbers by absolute error: nodes predict medians."""

    criterion_name = "absolute_error"
    is_absolute = True

    def __init__(self, y: np.ndarray, weights: np.ndarray | None) -> None:
        super().__init__(y, weights)
        self.impurity_scale = self._scale
        self._take_numbers(y)
        grouped = [_levels_of(values, self.weights) for values in self.standardised.T]
        levels = [level for level, _ in grouped]
        self._lows = [low for _, low in grouped]
        sizes = [len(level) for level in levels]
        self.criterion = Criterion("absolute_error", sizes, np.concatenate(levels))
        self._starts = np.cumsum([0, *sizes])
        self._take_targets(y)

    def _take_targets(self, targets: np.ndarray) -> None:
        """Note the rows' numbers, and the groups that they are counted in."""
        self._take_numbers(targets)
        each = zip(self._lows, self.standardised.T, strict=True)
        groups = [np.searchsorted(low, values, side="right") - 1 for low, values in each]
        labels = np.stack(groups, axis=1) + self._starts[:-1]
        n_stats = self.criterion.n_stats
        self.targets = Targets(labels, None, self.weights, n_stats, counts=self.counts)

    def weights_behind(self, channels: np.ndarray) -> np.ndarray:
        """Weights of the rows that sums of channels are made of."""
        return channels[:, : self._starts[1]].sum(axis=1)


def _power_of_two(number: float) -> float:
    """The power of two nearest to a number that is not negative; 1 for 0."""
    return 2.0 ** min(round(np.log2(number)), 1023) if number > 0 else 1.0


# --- statistics of rows, local or remote ---


def _weights_of_classes(
    n_classes: int, labels: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Weight of each class, (n_outputs, n_classes)."""
    return np.array([np.bincount(column, weights, n_classes) for column in labels.T])


def _greatest(y: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Greatest absolute value of each output."""
    return np.asarray(np.abs(y).max(axis=0, initial=0.0))


def _standardised(scale: float, centre: np.ndarray | float, y: np.ndarray) -> np.ndarray:
    return y / scale - centre


def _squared_from(mean: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.square(y - mean)


def _levels_of(values: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Values that stand for groups of y, ascending, and the least value of each group."""
    distinct = np.unique(values)
    if len(distinct) <= MAX_EXACT_LEVELS:
        return distinct, distinct
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    own = np.ones(len(values)) if weights is None else weights[order]
    low, _ = group_values(ordered, own, MAX_LEVELS)
    # The row in the middle of each group's weight stands for it.
    weight_up_to = np.append(0.0, np.cumsum(own))
    ends = weight_up_to[np.append(np.searchsorted(ordered, low), len(values))]
    middle = np.searchsorted(weight_up_to, (ends[:-1] + ends[1:]) / 2, side="right") - 1
    return ordered[middle], low


def medians_of(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Median of each column."""
    return np.array([_median(column, weights) for column in values.T])


def _median(values: np.ndarray, weights: np.ndarray | None) -> float:
    """The number halfway between the two that have half of the weight on either side."""
    if weights is None:
        half = len(values) // 2
        middle = np.partition(values, [half - 1, half])[[half - 1 + len(values) % 2, half]]
    else:
        order = np.argsort(values, kind="stable")
        below = np.cumsum(weights[order])
        # Shares such as 0.1 and 0.2 are rounded: what misses half by so little is half.
        bounds = below[-1] * np.array([0.5 - HALF_TOLERANCE, 0.5 + HALF_TOLERANCE])
        middle = values[order[np.searchsorted(below, bounds)]]
    low, high = middle.tolist()
    return low if low == high else low / 2 + high / 2
