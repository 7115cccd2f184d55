"""Sketches: how a node's rows are spread, kept with the tree for pictures and words.

A sketch holds sums, not rows: counts in the cells of an axis and of the target. Only a pair's plane
keeps a few points.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, overload

import numpy as np

from shapetree.data._sampling import sampled
from shapetree.data._values import FeatureValues
from shapetree.tree._axes import TAIL, Spans, axis_of, cell_of_spans, finite, stretched

# Rows that suffice to find the range of an axis or a target.
RANGE_ROWS = 512
# Points of a pair that are kept.
N_POINTS = 150
# Numbers are far from nearly all others if they lie so many times the range of these away from it;
# these are all but this share at either end.
FAR, FAR_SHARE = 1.0, 0.05
# How much wider than without its tails a target's range may be to be drawn as a whole.
LONG_TAIL = 1.5
N_TARGET_CELLS = 24
# Numbers of a density up to which they are kept as they are.
MAX_DENSE = 4096
# Significant digits of sums that are only drawn, and decimals of points in units of their range.
SUM_DIGITS = 5
DECIMALS = 4
# A range that rounding could take numbers out of.
HUGE = 1e300


@dataclass(frozen=True, eq=False)
class PackedCounts:
    """Rows by cell and class where most cells have none: a feature of many levels, many classes."""

    # For each class, one after the other, its rows in each cell; -n stands for n cells that have
    # none, all that stand side by side (int32).
    runs: np.ndarray
    # Where the runs of each class start, and where the last end. Shape (n_classes + 1,).
    start: np.ndarray
    n_cells: int

    @classmethod
    def of(cls, counts: np.ndarray) -> PackedCounts:
        """Pack counts of shape (n_cells, n_classes)."""
        n_cells, n_classes = counts.shape
        flat = counts.T.ravel()
        is_kept = flat != 0
        is_kept[1:] |= is_kept[:-1].copy()  # a run starts after a cell with rows
        firsts = np.arange(n_classes + 1) * n_cells
        is_kept[firsts[:-1]] = True
        kept = np.flatnonzero(is_kept)
        lengths = np.diff(np.append(kept, len(flat)))
        runs = np.where(flat[kept] == 0, -lengths, flat[kept]).astype(np.int32)
        return cls(runs, np.searchsorted(kept, firsts), n_cells)

    def dense(self) -> np.ndarray:
        """Counts of shape (n_cells, n_classes)."""
        lengths = np.where(self.runs < 0, -self.runs, 1)
        flat = np.repeat(np.maximum(self.runs, 0), lengths)
        return np.ascontiguousarray(flat.reshape(-1, self.n_cells).T)


def packed(counts: np.ndarray) -> np.ndarray | PackedCounts:
    """Counts as they are kept: as they are, if they are few."""
    return counts if counts.size <= MAX_DENSE else PackedCounts.of(counts)


@dataclass(frozen=True, eq=False)
class Density:
    """Where a node's rows lie on its feature."""

    # Bounds of the cells of an ordered feature's axis, ascending; every threshold of the node is
    # one. A cell holds the values above its lower and up to its upper edge, the first and the last
    # also what lies beyond. None for a categorical feature, whose cells are its categories. Shape
    # (n_cells + 1,).
    edges: np.ndarray | None
    # Rows in each cell by class; for regression there is one column. Shape (n_cells, n_classes).
    kept: np.ndarray | PackedCounts
    # Sum of the targets in each cell, in a few digits; None for classes. Shape (n_cells,).
    totals: np.ndarray | None
    # Rows that lack the feature. Shape (n_classes,).
    missing: np.ndarray
    missing_total: float | None  # sum of their targets
    # Numbers that the rows' lie between: the bounds of the outermost bins that hold some, which are
    # the least and the greatest number where a bin has a single one. Infinite ones count as the
    # greatest finite ones; None for categories, and without rows.
    ends: tuple[float, float] | None = None

    @property
    def counts(self) -> np.ndarray:
        """Rows in each cell by class, an array of shape (n_cells, n_classes)."""
        return self.kept.dense() if isinstance(self.kept, PackedCounts) else self.kept

    @cached_property
    def n_rows(self) -> np.ndarray:
        """Rows in each cell."""
        return self.counts.sum(axis=1)


@dataclass(frozen=True, eq=False)
class Scatter:
    """Where a node's rows lie in the plane of its pair."""

    # Range of either feature that all but a few rows lie in; meaningless for categories.
    low: np.ndarray
    high: np.ndarray
    # Values, or codes of categories, of some rows that have both. Shape (n_points, 2).
    points: np.ndarray
    # Their classes' numbers, or their targets in a few digits. Shape (n_points,).
    targets: np.ndarray
    n_missing: int  # rows that lack either feature


@dataclass(frozen=True, eq=False)
class NodeSketch:
    """How the rows of a node are spread."""

    # Rows by class, or by cell of the target; steps of rows, if these have shares of classes.
    counts: np.ndarray
    # Mean and standard deviation of the target; None for classes.
    mean: float | None = None
    deviation: float | None = None
    density: Density | None = None  # of a node that splits on one feature
    scatter: Scatter | None = None  # of a node that splits on a pair
    # Of the target, where rows are so few that it matters; None for classes.
    skewness: float | None = None
    # Median of the target and its interval, if the tree predicts medians and the rows suffice.
    middle: tuple[float, float, float] | None = None
    # What weights make of the rows, if they have some: the effective number of rows of each class;
    # or the effective number of all, and the mean and standard deviation of the target. Both are
    # shares of the effective number of all rows of the table.
    weighed: np.ndarray | None = None
    # What the squares of the same weights add up to, if there are some.
    squared_weights: float | None = None

    def in_rows(self, steps: int) -> NodeSketch:
        """The same with counts of rows, if so many of what is counted make one."""
        if steps == 1:
            return self
        density = self.density
        if density is not None:
            counts, missing = density.counts / steps, density.missing / steps
            density = replace(density, kept=counts, missing=missing)
        return replace(self, counts=self.counts / steps, density=density)

    @property
    def n_effective(self) -> float:
        """Effective number of rows: of equal weights, as many would give as precise a mean."""
        if self.weighed is None:
            return float(self.counts.sum())
        total = float(self.weighed.sum() if self.mean is None else self.weighed[0])
        return total * total / self.squared_weights if self.squared_weights else total

    def as_leaf(self) -> NodeSketch:
        """The sketch without what only a node that splits has."""
        return replace(self, density=None, scatter=None)

    def joined_with(self, other: NodeSketch) -> NodeSketch:
        """The sketch of a leaf that has the rows of two nodes."""
        counts = self.counts + other.counts
        if self.mean is None or other.mean is None:
            if self.weighed is None or other.weighed is None:
                return NodeSketch(counts)
            return NodeSketch(
                counts,
                weighed=self.weighed + other.weighed,
                squared_weights=self._squares_with(other),
            )
        _, mean, deviation, skewness = joined_moments(self._moments, other._moments)
        weighed = None
        if self.weighed is not None and other.weighed is not None:
            one, two = self.weighed.tolist(), other.weighed.tolist()
            weighed = np.array(joined_moments((*one, 0.0), (*two, 0.0))[:3])
        return NodeSketch(
            *(counts, mean, deviation),
            skewness=skewness,
            weighed=weighed,
            squared_weights=self._squares_with(other),
        )

    def _squares_with(self, other: NodeSketch) -> float | None:
        if self.squared_weights is None or other.squared_weights is None:
            return None
        return self.squared_weights + other.squared_weights

    @property
    def _moments(self) -> Moments:
        assert self.mean is not None
        assert self.deviation is not None
        return float(self.counts.sum()), self.mean, self.deviation, self.skewness or 0.0


# Number of rows, and mean, standard deviation and skewness of their target.
Moments: TypeAlias = tuple[float, float, float, float]


def joined_moments(one: Moments, other: Moments) -> Moments:
    """Moments of two lots of rows together."""
    if one[0] == 0 or other[0] == 0:
        return one if one[0] else other
    n = one[0] + other[0]
    mean = one[1] * (one[0] / n) + other[1] * (other[0] / n)
    # Ratios, because squares could be too great or too small for numbers.
    greatest = max(max(s, abs(at - mean)) for _, at, s, _ in (one, other))
    if not 0 < greatest < math.inf:
        return n, mean, 0.0 if greatest == 0 else greatest, 0.0
    squares = sum(
        m / n * ((s / greatest) ** 2 + ((at - mean) / greatest) ** 2)
        for m, at, s, _ in (one, other)
    )
    deviation = greatest * math.sqrt(squares)
    if not 0 < deviation < math.inf:
        return n, mean, deviation, 0.0
    cubes = 0.0
    for m, at, s, skewness in (one, other):
        off, spread = (at - mean) / deviation, s / deviation
        cubes += m * (off * off * off + 3 * off * spread * spread + skewness * spread**3)
    return n, mean, deviation, cubes / n


@dataclass(frozen=True, eq=False)
class DataSummary:
    """What is remembered of the training rows besides the tree."""

    # Standard deviation of each ordered feature that the tree uses; 1 for all others. Shape
    # (n_features,).
    scales: np.ndarray
    target_edges: np.ndarray | None  # bounds of the target's cells; None for classes
    # Least and greatest number of each ordered feature that the tree uses; NaN for all others, and
    # where files of former versions do not say. Shape (n_features, 2).
    ranges: np.ndarray
    # How many of what sketches count make a row: 1, or the steps of its shares of classes.
    steps: int = 1

    @classmethod
    def of_values(
        cls,
        values: FeatureValues,
        ordered: Sequence[int],
        n_features: int,
        target_edges: np.ndarray | None,
    ) -> DataSummary:
        """What is remembered of rows, given the values of ordered features that are used."""
        scales, ranges = np.ones(n_features), np.full((n_features, 2), np.nan)
        scales[list(ordered)] = values.scales()
        ranges[list(ordered)] = np.stack([values.least, values.greatest], axis=1)
        return cls(scales, target_edges, ranges)

    def of_features(self, used: Collection[int]) -> DataSummary:
        """What is remembered if a tree uses no features but these."""
        is_used = np.isin(np.arange(len(self.scales)), list(used))
        scales = np.where(is_used, self.scales, 1.0)
        return replace(self, scales=scales, ranges=np.where(is_used[:, None], self.ranges, np.nan))


@dataclass(frozen=True, eq=False)
class Cells:
    """Where the rows of nodes that split on one feature are counted."""

    # Of each node that splits on a single feature; -1 for all others. Shape (n_nodes,).
    feature: np.ndarray
    spans: dict[int, Spans]  # by feature, of those that are ordered
    # Where the segments of nodes end, as in `TreeArrays`.
    piece_start: np.ndarray
    piece_upper: np.ndarray
    # The cell of each bin of a feature, from its start on: a span or a category.
    bin_start: np.ndarray
    of_bin: np.ndarray
    # A node has the cells from its start on, the last of which is for missing values. Shape
    # (n_nodes + 1,).
    start: np.ndarray


@dataclass(frozen=True, eq=False)
class TreeSketches(Sequence[NodeSketch]):
    """Sketches of a tree's nodes, which become objects on demand."""

    counts: np.ndarray  # shape (n_nodes, n_classes) or (n_nodes, n_target_cells)
    cells: Cells
    # Rows in the cells of all nodes. Shape (n_cells, n_classes).
    in_cells: np.ndarray
    scatters: dict[int, Scatter]  # by node, those that split on a pair
    # Sums of the targets in the cells of all nodes; None for classes. Shape (n_cells,).
    totals: np.ndarray | None = None
    # By node, as in `NodeSketch`.
    mean: np.ndarray | None = None
    deviation: np.ndarray | None = None
    skewness: Sequence[float] | None = None
    middle: Sequence[tuple[float, float, float] | None] | None = None
    weighed: np.ndarray | None = None
    squared_weights: Sequence[float] | None = None

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, node: int) -> NodeSketch: ...

    @overload
    def __getitem__(self, node: slice) -> Sequence[NodeSketch]: ...

    def __getitem__(self, node: int | slice) -> NodeSketch | Sequence[NodeSketch]:
        return self._all[node]

    @cached_property
    def _all(self) -> tuple[NodeSketch, ...]:
        return tuple(self._of_node(node) for node in range(len(self)))

    def _of_node(self, node: int) -> NodeSketch:
        # Of weights that only count rows, nothing is kept.
        squares = None if self.weighed is None else self.squared_weights
        return NodeSketch(
            self.counts[node],
            None if self.mean is None else float(self.mean[node]),
            None if self.deviation is None else float(self.deviation[node]),
            self._density_of(node),
            self.scatters.get(node),
            None if self.skewness is None else self.skewness[node],
            None if self.middle is None else self.middle[node],
            None if self.weighed is None else self.weighed[node],
            None if squares is None else squares[node],
        )

    def _density_of(self, node: int) -> Density | None:
        """Where a node's rows lie; None if it does not split on one feature."""
        feature = int(self.cells.feature[node])
        if feature < 0:
            return None
        mine = slice(*self.cells.start[node : node + 2].tolist())
        counts, totals = self.in_cells[mine], None if self.totals is None else self.totals[mine]
        edges, ends, spans = None, None, self.cells.spans.get(feature)
        cells = np.arange(len(counts))
        if spans is not None:
            n_rows = counts[:-1].sum(axis=1)
            pieces = slice(*self.cells.piece_start[node : node + 2].tolist())
            edges = axis_of(spans, n_rows, self.cells.piece_upper[pieces][:-1])
            cells = np.append(cell_of_spans(spans, edges), len(edges) - 1)
            held = np.flatnonzero(n_rows)
            ends = (float(spans.low[held[0]]), float(spans.high[held[-1]])) if len(held) else None
        n_cells = len(counts) if edges is None else len(edges)
        joined = np.zeros((n_cells, counts.shape[1]), dtype=counts.dtype)
        np.add.at(joined, cells, counts)
        own = missing_total = None
        if totals is not None:
            sums = np.bincount(cells, totals, n_cells)
            *rounded, missing_total = [in_digits(total, SUM_DIGITS) for total in sums.tolist()]
            own = np.array(rounded)
        return Density(edges, packed(joined[:-1]), own, joined[-1], missing_total, ends)


def _range(numbers: list[float]) -> tuple[float, float]:
    """A range that holds some numbers, with some room."""
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    margin = 0.06 * (high / 2 - low / 2) * 2
    if not margin > 0:
        margin = max(abs(low), 1.0) / 2
    return stretched(low, high, margin)


def drawn_range(values: np.ndarray, thresholds: Sequence[float]) -> tuple[float, float]:
    """A range that holds thresholds and all but the tails of numbers in ascending order."""
    return _range([*(_bulk(values) if len(values) else ()), *thresholds])


def _bulk(values: np.ndarray) -> tuple[float, float]:
    """The ends of ascending numbers, without those that lie far from nearly all others."""
    low, high = _without_tails(values)
    first, last = np.quantile(values / 4, [FAR_SHARE, 1 - FAR_SHARE]).tolist()
    reach = FAR * (last - first)
    if reach > 0:
        near = values[(values / 4 >= first - reach) & (values / 4 <= last + reach)]
        low, high = max(low, float(near[0])), min(high, float(near[-1]))
    return low, high


def _without_tails(values: np.ndarray) -> tuple[float, float]:
    tail = int(TAIL * len(values))
    return float(values[tail]), float(values[-1 - tail])


def target_edges_of(least: float, greatest: float, sample: np.ndarray) -> np.ndarray:
    """Cells of equal width from the least to the greatest target; long tails have one each."""
    least, greatest = finite(np.array([least, greatest])).tolist()
    if not least < greatest:
        return np.linspace(*_range([least]), N_TARGET_CELLS + 1)
    low, high = _without_tails(np.sort(finite(sample)))
    if not low < high or greatest / 2 - least / 2 <= LONG_TAIL * (high / 2 - low / 2):
        low, high = least, greatest
    before, after = [least] * (least < low), [greatest] * (high < greatest)
    n_inner = N_TARGET_CELLS + 1 - len(before) - len(after)
    return np.concatenate([before, np.linspace(low, high, n_inner), after])


def edges_of_targets(targets: np.ndarray) -> np.ndarray:
    """The same of all targets."""
    sample = targets[sampled(0, len(targets), len(targets), RANGE_ROWS)]
    return target_edges_of(float(targets.min()), float(targets.max()), sample)


def in_digits(number: float, digits: int) -> float:
    return float(f"{number:.{digits}g}")


def in_decimals(points: np.ndarray, ranges: np.ndarray) -> np.ndarray:
    """Points in as many decimals as can be seen in axes of these ranges."""
    columns = []
    for column, range_ in zip(points.T.tolist(), ranges.tolist(), strict=True):
        if 0 < range_ < HUGE:
            decimals = DECIMALS - math.floor(math.log10(range_))
            columns.append([round(value, decimals) for value in column])
        else:
            columns.append(column)
    return np.array(columns).T.reshape(points.shape)
