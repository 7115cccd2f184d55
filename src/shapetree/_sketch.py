"""Sketches: how a node's rows are spread, kept with the tree for whoever draws or describes it.

A sketch holds sums, not rows: counts in the cells of an axis and of the target. Only a pair's plane
keeps a few points.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.sketch import count_cells
from shapetree._table import Table

# Cells of an axis that is drawn, and distinct values up to which each has a cell of its own.
N_CELLS = 36
MAX_DISTINCT = 24
# Least share of an axis that a segment is drawn with, unless there are too many segments for it.
LEAST_SHARE = 0.14
# Rows that suffice to find the range of an axis and the scale of a feature.
RANGE_ROWS = 512
SCALE_ROWS = 65_536
# Points of a pair that are kept.
N_POINTS = 150
# Share of the rows at either end that do not stretch an axis, where there are enough of them.
TAIL = 0.01
N_TARGET_CELLS = 24
# Significant digits of sums that are only drawn, and decimals of points in units of their range.
SUM_DIGITS = 5
DECIMALS = 4
# A range that rounding could take numbers out of.
HUGE = 1e300


@dataclass(frozen=True, eq=False)
class Axis:
    """How a feature's axis is parted into cells, and where it is drawn.

    Attributes
    ----------
    bounds : array of shape (n_parts + 1,) or None
        Bounds of parts of an ordered feature's axis, ascending; every threshold of the node is one.
        None for a categorical feature, whose cells are its categories.
    cells : int array of shape (n_parts,)
        Number of cells of equal width in each part.
    places : array of shape (n_parts + 1,) or None
        Where to draw the bounds, from 0 to 1, with room for every segment.
    """

    bounds: np.ndarray | None
    cells: np.ndarray
    places: np.ndarray | None

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.cells.sum())

    @cached_property
    def edges(self) -> np.ndarray | None:
        """Bounds of the cells."""
        if self.bounds is None:
            return None
        ends = _starts(self.cells)
        edges = 4 * np.interp(np.arange(ends[-1] + 1), ends, self.bounds / 4)  # no overflow
        # Tiny numbers lose digits by the division.
        low, high = (np.repeat(side, self.cells) for side in (self.bounds[:-1], self.bounds[1:]))
        edges[:-1] = np.clip(edges[:-1], low, high)
        edges[ends] = self.bounds
        return edges

    @cached_property
    def positions(self) -> np.ndarray | None:
        """Where to draw the bounds of the cells."""
        if self.places is None:
            return None
        ends = _starts(self.cells)
        return np.interp(np.arange(ends[-1] + 1), ends, self.places)


@dataclass(frozen=True, eq=False)
class Density:
    """Where a node's rows lie on its feature.

    Attributes
    ----------
    axis : Axis
        A cell holds the values above its lower and up to its upper edge, the first and the last
        also what lies beyond.
    counts : int array of shape (n_cells, n_classes)
        Rows in each cell by class; for regression there is one column.
    totals : array of shape (n_cells,) or None
        Sum of the targets in each cell, in a few digits; None for classes.
    missing : int array of shape (n_classes,)
        Rows that lack the feature.
    missing_total : float or None
        Sum of their targets.
    """

    axis: Axis
    counts: np.ndarray
    totals: np.ndarray | None
    missing: np.ndarray
    missing_total: float | None

    @property
    def edges(self) -> np.ndarray | None:
        """Bounds of the cells; None for a categorical feature."""
        return self.axis.edges

    @property
    def positions(self) -> np.ndarray | None:
        """Where to draw these bounds, from 0 to 1; None for a categorical feature."""
        return self.axis.positions


@dataclass(frozen=True, eq=False)
class Scatter:
    """Where a node's rows lie in the plane of its pair.

    Attributes
    ----------
    low, high : arrays of shape (2,)
        Range of either feature that all but a few rows lie in; meaningless for categories.
    points : array of shape (n_points, 2)
        Values, or codes of categories, of some rows that have both.
    targets : array of shape (n_points,)
        Their classes' numbers, or their targets in a few digits.
    n_missing : int
        Rows that lack either feature.
    """

    low: np.ndarray
    high: np.ndarray
    points: np.ndarray
    targets: np.ndarray
    n_missing: int


@dataclass(frozen=True, eq=False)
class NodeSketch:
    """How the rows of a node are spread.

    Attributes
    ----------
    counts : int array
        Rows by class, or by cell of the target.
    mean, deviation : float or None
        Mean and standard deviation of the target; None for classes.
    density : Density or None
        Of a node that splits on one feature.
    scatter : Scatter or None
        Of a node that splits on a pair.
    """

    counts: np.ndarray
    mean: float | None = None
    deviation: float | None = None
    density: Density | None = None
    scatter: Scatter | None = None

    def as_leaf(self) -> NodeSketch:
        """The sketch without what only a node that splits has."""
        return replace(self, density=None, scatter=None)

    def joined_with(self, other: NodeSketch) -> NodeSketch:
        """The sketch of a leaf that has the rows of two nodes."""
        counts = self.counts + other.counts
        if self.mean is None or other.mean is None:
            return NodeSketch(counts)
        assert self.deviation is not None
        assert other.deviation is not None
        n, m = int(self.counts.sum()), int(other.counts.sum())
        if n == 0 or m == 0:
            kept = self if n else other
            return NodeSketch(counts, kept.mean, kept.deviation)
        mean = self.mean * (n / (n + m)) + other.mean * (m / (n + m))
        # Products instead of squares, because a square of Python's that is too large is an error.
        within = n * self.deviation * self.deviation + m * other.deviation * other.deviation
        between = n * (self.mean - mean) * (self.mean - mean)
        between += m * (other.mean - mean) * (other.mean - mean)
        deviation = math.sqrt((within + between) / (n + m))
        return NodeSketch(counts, mean, deviation)


@dataclass(frozen=True, eq=False)
class DataSummary:
    """What is remembered of the training rows beside the tree.

    Attributes
    ----------
    scales : array of shape (n_features,)
        Standard deviation of each ordered feature that the tree uses; 1 for all others.
    target_edges : array or None
        Bounds of the target's cells; None for classes.
    """

    scales: np.ndarray
    target_edges: np.ndarray | None


def summarise(table: Table, used: list[int], y: np.ndarray | None) -> DataSummary:
    """Summarise training rows; `y` only if it holds one number a row."""
    scales = np.ones(len(table.features))
    for feature in used:
        column = table.columns[feature]
        assert column is not None
        if not table.features[feature].is_categorical:
            scales[feature] = _deviation(_finite(_some(column, SCALE_ROWS)))
    return DataSummary(scales, None if y is None else _target_edges(y))


class Sketcher:
    """Tells how rows are spread over the nodes of a tree.

    Parameters
    ----------
    table : Table
    y : array of shape (n_rows,)
        Classes' numbers, or targets.
    n_classes : int or None
        None for regression.
    target_edges : array or None
    """

    def __init__(
        self,
        table: Table,
        y: np.ndarray,
        n_classes: int | None,
        target_edges: np.ndarray | None,
    ) -> None:
        self._table = table
        self._y = np.ascontiguousarray(y, dtype=np.float64 if n_classes is None else np.int32)
        self._n_classes = n_classes
        self._target_edges = target_edges

    def leaf(self, rows: np.ndarray) -> NodeSketch:
        """Sketch of a leaf with these rows."""
        y = self._y[rows]
        if self._n_classes is not None:
            return NodeSketch(np.bincount(y, minlength=self._n_classes).astype(np.int32))
        assert self._target_edges is not None
        cell = np.searchsorted(self._target_edges[1:-1], y, side="left")
        counts = np.bincount(cell, minlength=len(self._target_edges) - 1).astype(np.int32)
        if not len(y):
            return NodeSketch(counts, float("nan"), float("nan"))
        with np.errstate(over="ignore", invalid="ignore"):
            return NodeSketch(counts, float(y.mean()), float(y.std()))

    def axis(self, rows: np.ndarray, feature: int, thresholds: np.ndarray | None) -> Axis:
        """Cells for a node with these rows that parts them at thresholds, or by category."""
        if thresholds is None:
            categories = self._table.features[feature].categories
            assert categories is not None
            return Axis(None, np.array([len(categories)]), None)
        values = _finite(self._column(feature)[_some(rows, RANGE_ROWS)])
        return scale_axis(values[~np.isnan(values)], thresholds)

    def densities(
        self,
        axes: Sequence[Axis | None],
        leaves: np.ndarray,
        parent: np.ndarray,
        feature: np.ndarray,
    ) -> list[Density | None]:
        """Where rows lie on the axes of the nodes they pass; None for nodes without an axis."""
        inner = [
            axis.edges[1:-1] if axis and axis.edges is not None else np.empty(0) for axis in axes
        ]
        cell_start = _starts([axis.n_cells + 1 if axis else 0 for axis in axes])
        counts, totals = count_cells(
            Columns(self._table.columns, self._table.n_rows),
            leaves,
            parent,
            feature,
            _starts([len(edges) for edges in inner]),
            np.concatenate(inner),
            cell_start,
            None if self._n_classes is None else self._y,
            self._y if self._n_classes is None else None,
            self._n_classes or 1,
        )
        parts = [slice(*ends) for ends in pairwise(cell_start.tolist())]
        return [
            None if axis is None else self._density(axis, counts[part], totals[part])
            for axis, part in zip(axes, parts, strict=True)
        ]

    def _density(self, axis: Axis, counts: np.ndarray, totals: np.ndarray) -> Density:
        """The last cell is that of missing values."""
        if self._n_classes is not None:
            return Density(axis, counts[:-1], None, counts[-1], None)
        short = np.array([_in_digits(total, SUM_DIGITS) for total in totals.tolist()])
        return Density(axis, counts[:-1], short[:-1], counts[-1], float(short[-1]))

    def scatter(
        self, rows: np.ndarray, features: tuple[int, int], thresholds: tuple[np.ndarray, np.ndarray]
    ) -> Scatter:
        """Where rows lie in the plane of a node's pair; thresholds are those along the axes."""
        values = np.stack([self._column(feature)[rows] for feature in features], axis=1)
        coded = [self._table.features[feature].is_categorical for feature in features]
        known = np.ones(len(rows), dtype=bool)
        for side in range(2):
            known &= values[:, side] >= 0 if coded[side] else ~np.isnan(values[:, side])
        sample = _some(np.flatnonzero(known), N_POINTS)
        reach = _finite(values[_some(np.flatnonzero(known), RANGE_ROWS)])
        ranges = [_range(np.sort(reach[:, side]), thresholds[side]) for side in range(2)]
        low, high = np.array(ranges).T
        with np.errstate(over="ignore"):
            ranges_drawn = np.where(coded, 1.0, high - low)
        points = _rounded(_finite(values[sample]), ranges_drawn)
        targets = self._y[rows[sample]]
        if self._n_classes is None:
            targets = np.array([_in_digits(target, SUM_DIGITS) for target in targets.tolist()])
        return Scatter(low, high, points, targets, int((~known).sum()))

    def _column(self, feature: int) -> np.ndarray:
        column = self._table.columns[feature]
        assert column is not None
        return column


def scale_axis(values: np.ndarray, thresholds: np.ndarray) -> Axis:
    """Part an axis into cells, and give every segment room.

    Parameters
    ----------
    values : array
        Finite numbers, perhaps none.
    thresholds : array
        Ascending; between them are the segments.
    """
    ordered = np.sort(_some(values, RANGE_ROWS))
    distinct = ordered[np.append(True, ordered[1:] > ordered[:-1])[: len(ordered)]]
    if len(distinct) <= MAX_DISTINCT:
        edges = _edges_between(distinct, thresholds)
        in_segment = _counts_between(edges, thresholds)
        shares = _with_room(in_segment / in_segment.sum())
        widths = np.repeat(shares / in_segment, in_segment)
        return Axis(edges, np.ones(len(widths), dtype=np.int64), _places(widths))
    low, high = _range(ordered, thresholds)
    bounds = np.concatenate([[low], thresholds, [high]])
    spans = np.diff(bounds / 4)  # so that no difference overflows
    shares = _with_room(spans / spans.sum())
    cells = np.maximum(2, np.rint(shares * N_CELLS)).astype(np.int64)
    return Axis(bounds, cells, _places(shares))


def _edges_between(distinct: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """A cell for each value, with the thresholds among its edges."""
    parted = np.searchsorted(thresholds, distinct, side="left")
    free = np.flatnonzero(parted[1:] == parted[:-1])
    midpoints = distinct[free] + (distinct[free + 1] / 2 - distinct[free] / 2)
    inner = np.union1d(midpoints, thresholds)
    everything = np.union1d(inner, distinct if len(distinct) else 0.0)
    with np.errstate(over="ignore"):
        gaps = np.sort(np.diff(everything))
    margin = float(gaps[len(gaps) // 2]) if len(gaps) else max(abs(float(everything[0])), 1.0) / 2
    low, high = _stretched(float(everything[0]), float(everything[-1]), margin)
    return np.concatenate([[low], inner, [high]])


def _counts_between(edges: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Number of cells in each segment."""
    return np.diff(np.concatenate([[0], np.searchsorted(edges, thresholds), [len(edges) - 1]]))


def _places(widths: np.ndarray) -> np.ndarray:
    places = np.concatenate([[0.0], np.cumsum(widths)])
    return (places / places[-1]).round(DECIMALS)


def _with_room(wanted: np.ndarray) -> np.ndarray:
    """Shares of an axis that leave no segment too little; those with enough give it."""
    least = min(LEAST_SHARE, 0.7 / len(wanted))
    wanted = wanted / wanted.sum()
    shares, is_small = wanted, np.zeros(len(wanted), dtype=bool)
    while np.any(shares[~is_small] < least):
        is_small |= shares < least
        rest = (1 - least * is_small.sum()) / wanted[~is_small].sum()
        shares = np.where(is_small, least, wanted * rest)
    return shares


def _range(ordered: np.ndarray, thresholds: np.ndarray) -> tuple[float, float]:
    """Range of an axis that holds the thresholds, with some room, and all but the values' tails."""
    tail = int(TAIL * len(ordered))
    ends = [ordered[tail], ordered[-1 - tail]] if len(ordered) else []
    low = float(min([*ends, *thresholds], default=0.0))
    high = float(max([*ends, *thresholds], default=1.0))
    margin = 0.06 * (high / 2 - low / 2) * 2
    if not margin > 0:
        margin = max(abs(low), 1.0) / 2
    return _stretched(low, high, margin)


def _stretched(low: float, high: float, margin: float) -> tuple[float, float]:
    """A wider range, if only by a rounding error, of finite numbers."""
    limit = sys.float_info.max
    low = min(low - margin, math.nextafter(low, -limit))
    high = max(high + margin, math.nextafter(high, limit))
    return max(low, -limit), min(high, limit)


def _target_edges(y: np.ndarray) -> np.ndarray:
    low, high = _range(np.sort(_some(y, RANGE_ROWS)), np.empty(0))
    return np.linspace(low, high, N_TARGET_CELLS + 1)


def _starts(lengths: Sequence[int] | np.ndarray) -> np.ndarray:
    """Where parts of these lengths start, and where the last ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _finite(values: np.ndarray) -> np.ndarray:
    """Numbers as float64, infinite ones as the greatest finite ones; NaN stays."""
    limit = np.finfo(np.float64).max
    return np.clip(values.astype(np.float64), -limit, limit)


def _in_digits(number: float, digits: int) -> float:
    return float(f"{number:.{digits}g}")


def _rounded(points: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Points in as many decimals as can be seen in axes of these ranges."""
    columns = []
    for column, range_ in zip(points.T.tolist(), ranges.tolist(), strict=True):
        if 0 < range_ < HUGE:
            decimals = DECIMALS - math.floor(math.log10(range_))
            columns.append([round(value, decimals) for value in column])
        else:
            columns.append(column)
    return np.array(columns).T.reshape(points.shape)


def _some(items: np.ndarray, at_most: int) -> np.ndarray:
    """All items, or that many of them, spread evenly."""
    if len(items) <= at_most:
        return items
    return items[np.linspace(0, len(items) - 1, at_most).astype(np.intp)]


def _deviation(values: np.ndarray) -> float:
    """Standard deviation of the numbers among values; 1 if it is nothing to divide by."""
    with np.errstate(all="ignore"):
        numbers = values[~np.isnan(values)]
        deviation = float(numbers.std()) if len(numbers) else 1.0
    return deviation if 0 < deviation < np.inf else 1.0
