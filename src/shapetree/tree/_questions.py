"""The questions that sketches ask of rows; see `Question` in `_spread`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shapetree._core.column_ranges import extents
from shapetree._core.sampling import row_hashes
from shapetree._core.sketch_cells import count_cells
from shapetree._core.sketch_samples import sample_points, sample_values
from shapetree._core.sketch_targets import count_targets, sum_squares, sum_targets
from shapetree._threads import threads_for
from shapetree.data._sampling import GREATEST_HASH, first_by_hash, hash_limits, sampled
from shapetree.data._sums import on_grid
from shapetree.tree._sketch import RANGE_ROWS, starts
from shapetree.tree._spread import Question, SpreadPart

# Standardised targets' cubes are multiples of its inverse.
CUBE_UNIT = 2.0**16
# And squares of weights, none of which is greater than 1, those of this one.
SQUARE_UNIT = 2.0**21

# --- features ---


class Ranges(NamedTuple):
    """Least and greatest number of some features; NaN if all are missing."""

    least: np.ndarray
    greatest: np.ndarray


@dataclass(frozen=True)
class RangesOfFeatures(Question[Ranges]):
    """Between which numbers the values of ordered features lie."""

    features: tuple[int, ...]

    def of(self, part: SpreadPart) -> Ranges:
        """The answer for a part of the rows."""
        n_threads = threads_for(part.table.n_rows * len(self.features), part.n_threads)
        features = np.array(self.features, dtype=np.int32)
        return Ranges(*extents(part.table.values, features, n_threads))

    def join(self, answers: Sequence[Ranges]) -> Ranges:
        """The answer for all parts."""
        least, greatest = zip(*answers, strict=True)
        return Ranges(np.fmin.reduce(least), np.fmax.reduce(greatest))


class Neighbours(NamedTuple):
    """The greatest number up to each of some thresholds, and the least above; infinite if none."""

    below: np.ndarray
    above: np.ndarray


@dataclass(frozen=True, eq=False)
class NeighboursOfThresholds(Question[Neighbours]):
    """Between which numbers of the rows the thresholds on a feature lie."""

    feature: int
    thresholds: np.ndarray  # ascending

    def of(self, part: SpreadPart) -> Neighbours:
        """The answer for a part of the rows."""
        column = part.column(self.feature).astype(np.float64)
        column = column[~np.isnan(column)]
        segment = np.searchsorted(self.thresholds, column, side="left")
        n = len(self.thresholds)
        greatest, least = np.full(n + 1, -np.inf), np.full(n + 1, np.inf)
        np.maximum.at(greatest, segment, column)
        np.minimum.at(least, segment, column)
        below = np.maximum.accumulate(greatest)[:-1]
        above = np.minimum.accumulate(least[::-1])[::-1][1:]
        return Neighbours(below, above)

    def join(self, answers: Sequence[Neighbours]) -> Neighbours:
        """The answer for all parts."""
        below, above = zip(*answers, strict=True)
        return Neighbours(np.max(below, axis=0), np.min(above, axis=0))


class SampledValues(NamedTuple):
    """Values of features in a sample of rows, (n_features, n_sampled).

    And the rows' numbers, and how many rows each counts as.
    """

    rows: np.ndarray
    values: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class SampleOfValues(Question[SampledValues]):
    """Values of features in a sample of about `size` of all rows, in the order of the rows."""

    features: tuple[int, ...]
    n_rows: int
    size: int

    def of(self, part: SpreadPart) -> SampledValues:
        """The answer for a part of the rows."""
        rows = sampled(part.first_row, part.table.n_rows, self.n_rows, self.size, part.n_threads)
        taken = slice(None) if len(rows) == part.table.n_rows else rows - part.first_row
        values = np.empty((len(self.features), len(rows)))
        for i, feature in enumerate(self.features):
            values[i] = part.column(feature)[taken]
        counts = np.ones(len(rows)) if part.counts is None else part.counts[taken].astype(float)
        return SampledValues(rows, values, counts)

    def join(self, answers: Sequence[SampledValues]) -> SampledValues:
        """The answer for all parts."""
        rows = np.concatenate([each.rows for each in answers])
        values = np.concatenate([each.values for each in answers], axis=1)
        counts = np.concatenate([each.counts for each in answers])
        order = np.argsort(rows)
        return SampledValues(rows[order], np.take(values, order, axis=1), counts[order])


# --- targets ---


class TargetRange(NamedTuple):
    """Least and greatest target, and a sample of them."""

    least: float
    greatest: float
    sample: np.ndarray


@dataclass(frozen=True)
class RangeOfTargets(Question[TargetRange]):
    """Between which numbers the targets lie."""

    n_rows: int
    needs_values = False

    def of(self, part: SpreadPart) -> TargetRange:
        """The answer for a part of the rows."""
        y = part.targets
        rows = sampled(part.first_row, len(y), self.n_rows, RANGE_ROWS, part.n_threads)
        rows -= part.first_row
        return TargetRange(y.min(initial=np.inf), y.max(initial=-np.inf), y[rows])

    def join(self, answers: Sequence[TargetRange]) -> TargetRange:
        """The answer for all parts."""
        least, greatest, samples = zip(*answers, strict=True)
        return TargetRange(min(least), max(greatest), np.concatenate(samples))


class LeafCounts(NamedTuple):
    """Rows of each leaf by class or cell, and the least and greatest of their targets."""

    counts: np.ndarray
    least: np.ndarray
    greatest: np.ndarray


@dataclass(frozen=True, eq=False)
class CountsOfLeaves(Question[LeafCounts]):
    """How the targets of each leaf's rows are spread over classes, or over cells with edges."""

    n_classes: int | None
    edges: np.ndarray | None
    needs_values = False

    def of(self, part: SpreadPart) -> LeafCounts:
        """The answer for a part of the rows."""
        n_nodes, y, cells = part.tree.node_count, part.targets, part.targets
        if self.n_classes is not None:
            n_cells, numbers = self.n_classes, None
        else:
            assert self.edges is not None
            n_cells, numbers = len(self.edges) - 1, y
            cells = np.searchsorted(self.edges[1:-1], y, side="left").astype(np.int32)
        n_threads = threads_for(len(y), part.n_threads)
        return LeafCounts(
            *count_targets(part.leaves, cells, numbers, n_nodes, n_cells, n_threads, part.counts)
        )

    def join(self, answers: Sequence[LeafCounts]) -> LeafCounts:
        """The answer for all parts."""
        counts, least, greatest = zip(*answers, strict=True)
        total = np.sum(counts, axis=0).astype(np.int32)
        return LeafCounts(total, np.min(least, axis=0), np.max(greatest, axis=0))


class LeafSums(NamedTuple):
    """Sums of each leaf's targets, and what absolute ones add up to at most; see the kernel."""

    sums: np.ndarray
    bounds: np.ndarray


@dataclass(frozen=True, eq=False)
class SumsOfLeaves(Question[LeafSums]):
    """What the targets of each leaf's rows add up to; see `sum_targets` for the parameters."""

    exponent: np.ndarray
    unit: np.ndarray
    needs_values = False

    def of(self, part: SpreadPart) -> LeafSums:
        """The answer for a part of the rows."""
        sums = sum_targets(part.leaves, part.targets, self.exponent, self.unit, part.counts)
        return LeafSums(*sums)

    def join(self, answers: Sequence[LeafSums]) -> LeafSums:
        """The answer for all parts."""
        sums, bounds = zip(*answers, strict=True)
        return LeafSums(np.sum(sums, axis=0), np.sum(bounds, axis=0))


@dataclass(frozen=True, eq=False)
class SquaresOfLeaves(Question[np.ndarray]):
    """What the squares of what targets are off their mean add up to; see `sum_squares`."""

    exponent: np.ndarray
    centre: np.ndarray
    reach: np.ndarray
    unit: np.ndarray
    needs_values = False

    def of(self, part: SpreadPart) -> np.ndarray:
        """The answer for a part of the rows."""
        about = self.exponent, self.centre, self.reach, self.unit
        return np.asarray(sum_squares(part.leaves, part.targets, *about, part.counts))

    def join(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        """The answer for all parts."""
        return np.sum(answers, axis=0)


@dataclass(frozen=True, eq=False)
class CubesOfLeaves(Question[np.ndarray]):
    """What the cubes of standardised targets add up to, in leaves that have a scale above 0."""

    centre: np.ndarray
    scale: np.ndarray
    needs_values = False

    def of(self, part: SpreadPart) -> np.ndarray:
        """The answer for a part of the rows."""
        rows = np.flatnonzero(self.scale[part.leaves] > 0)
        leaves = part.leaves[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            off = (part.targets[rows] - self.centre[leaves]) / self.scale[leaves]
            # On a grid, so that sums do not depend on order.
            cubes = np.round(np.nan_to_num(off * off * off) * CUBE_UNIT) / CUBE_UNIT
        if part.counts is not None:
            cubes *= part.counts[rows]
        return np.bincount(leaves, weights=cubes, minlength=part.tree.node_count)

    def join(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        """The answer for all parts."""
        return np.sum(answers, axis=0)


@dataclass(frozen=True)
class GreatestWeights(Question[np.ndarray]):
    """What the heaviest of each leaf's rows weighs."""

    needs_values = False

    def of(self, part: SpreadPart) -> np.ndarray:
        """The answer for a part of the rows."""
        greatest = np.zeros(part.tree.node_count)
        np.maximum.at(greatest, part.leaves, part.weight_of_each)
        return greatest

    def join(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        """The answer for all parts."""
        return np.asarray(np.max(answers, axis=0))


@dataclass(frozen=True, eq=False)
class SquaredWeights(Question[np.ndarray]):
    """What the squares of weights add up to in each leaf, if its heaviest row weighs 1."""

    greatest: np.ndarray
    needs_values = False

    def of(self, part: SpreadPart) -> np.ndarray:
        """The answer for a part of the rows."""
        share = part.weight_of_each / self.greatest[part.leaves]
        # On a grid, so that sums do not depend on order.
        squares = np.round(share * share * SQUARE_UNIT) / SQUARE_UNIT
        if part.counts is not None:
            squares *= part.counts
        return np.bincount(part.leaves, weights=squares, minlength=part.tree.node_count)

    def join(self, answers: Sequence[np.ndarray]) -> np.ndarray:
        """The answer for all parts."""
        return np.sum(answers, axis=0)


class LeafTargets(NamedTuple):
    """Leaves and targets of all rows."""

    leaves: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True)
class TargetsOfLeaves(Question[LeafTargets]):
    """All targets: medians need them in one place."""

    needs_values = False

    def of(self, part: SpreadPart) -> LeafTargets:
        """The answer for a part of the rows."""
        if part.counts is None:
            return LeafTargets(part.leaves, part.targets)
        return LeafTargets(*(np.repeat(x, part.counts) for x in (part.leaves, part.targets)))

    def join(self, answers: Sequence[LeafTargets]) -> LeafTargets:
        """The answer for all parts."""
        leaves, targets = zip(*answers, strict=True)
        return LeafTargets(np.concatenate(leaves), np.concatenate(targets))


# --- axes ---


class AxisValues(NamedTuple):
    """Numbers of a sample of each node's rows: from its start on, in any order."""

    start: np.ndarray
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class ValuesOfAxes(Question[AxisValues]):
    """Which values the rows of a node have on its axis, for a sample of them.

    Attributes
    ----------
    feature : int32 array of shape (n_nodes,)
        The feature of each node; -1 for those that have no axis of numbers.
    limit : uint64 array of shape (n_nodes,)
        Rows with hashes up to it belong to the node's sample.
    """

    feature: np.ndarray
    limit: np.ndarray

    def of(self, part: SpreadPart) -> AxisValues:
        """The answer for a part of the rows."""
        n_threads = threads_for(part.table.n_rows, part.n_threads)
        parent, columns = part.tree.parent, part.table.values
        return AxisValues(
            *sample_values(
                columns, part.leaves, parent, self.feature, self.limit, part.first_row, n_threads
            )
        )

    def join(self, answers: Sequence[AxisValues]) -> AxisValues:
        """The answer for all parts."""
        if len(answers) == 1:
            return answers[0]
        sizes = np.array([np.diff(start) for start, _ in answers])
        node = np.concatenate([np.repeat(np.arange(len(size)), size) for size in sizes])
        values = np.concatenate([values for _, values in answers])
        return AxisValues(starts(sizes.sum(axis=0)), values[np.argsort(node, kind="stable")])


class Cells(NamedTuple):
    """Rows and sums of targets in the cells of all nodes, and the ends of their axes."""

    counts: np.ndarray
    totals: np.ndarray
    least: np.ndarray
    greatest: np.ndarray


@dataclass(frozen=True, eq=False)
class CountsOfCells(Question[Cells]):
    """How many rows are in the cells of every node that they pass; see `count_cells`.

    Attributes
    ----------
    feature : int32 array of shape (n_nodes,)
    edge_start, edges, cell_start : arrays
    n_classes : int or None
    unit : float
        On multiples of which targets are summed.
    n_visits : int
        Of nodes by rows, all in all.
    """

    feature: np.ndarray
    edge_start: np.ndarray
    edges: np.ndarray
    cell_start: np.ndarray
    n_classes: int | None
    unit: float
    n_visits: int

    def of(self, part: SpreadPart) -> Cells:
        """The answer for a part of the rows."""
        has_classes = self.n_classes is not None
        y = part.targets if has_classes else on_grid(part.targets, self.unit)
        return Cells(
            *count_cells(
                part.table.values, part.leaves, part.tree.parent, self.feature,
                self.edge_start, self.edges, self.cell_start,
                y if has_classes else None, None if has_classes else y, self.n_classes or 1,
                threads_for(self.n_visits, part.n_threads), part.counts,
            )
        )  # fmt: skip

    def join(self, answers: Sequence[Cells]) -> Cells:
        """The answer for all parts."""
        counts, totals, least, greatest = zip(*answers, strict=True)
        return Cells(
            np.sum(counts, axis=0).astype(np.int32),
            np.sum(totals, axis=0),
            np.min(least, axis=0),
            np.max(greatest, axis=0),
        )


# --- planes ---


class Points(NamedTuple):
    """Some rows of a node that splits on a pair, in the order of their numbers.

    Attributes
    ----------
    rows : int64 array of shape (n_points,)
        Numbers of the rows.
    values : array of shape (n_points, 2)
        Their numbers, or codes of categories.
    targets : array of shape (n_points,)
    n_missing : int
        Rows of the node that lack either feature.
    """

    rows: np.ndarray
    values: np.ndarray
    targets: np.ndarray
    n_missing: int

    def first(self, size: int) -> Points:
        """The `size` rows whose hashes are smallest."""
        if len(self.rows) <= size:
            return self
        kept = np.sort(np.argpartition(row_hashes(self.rows), size - 1)[:size])
        return Points(self.rows[kept], self.values[kept], self.targets[kept], self.n_missing)


@dataclass(frozen=True)
class PointsOfPairs(Question[dict[int, Points]]):
    """Where rows of nodes that split on a pair lie in its plane, by node."""

    nodes: tuple[int, ...]
    wants_rows = True

    def of(self, part: SpreadPart) -> dict[int, Points]:
        """The answer for a part of the rows."""
        tree, points, size = part.tree, dict[int, Points](), RANGE_ROWS
        # Of the node's rows in the whole of the data, about as many as of all rows.
        share = part.table.n_rows / max(1, int(tree.n_node_samples[0]))
        pending = np.array(self.nodes, dtype=np.int64)
        while len(pending):
            # Twice as many as needed will nearly always do, unless many lack a feature.
            size *= 2
            n_rows = np.ceil(share * tree.n_node_samples[pending]).astype(np.int64)
            limits = hash_limits(n_rows, size)
            start, rows, n_missing = self._sample(part, pending, limits)
            for node, limit in zip(pending.tolist(), limits.tolist(), strict=True):
                known = rows[start[node] : start[node + 1]]
                if len(known) >= RANGE_ROWS or limit == GREATEST_HASH:
                    points[node] = self._points(part, node, known, int(n_missing[node]))
            pending = pending[[node not in points for node in pending.tolist()]]
        return points

    def _sample(
        self, part: SpreadPart, nodes: np.ndarray, limits: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of nodes that have both features, with hashes up to limits; see `sample_points`."""
        n_nodes = part.tree.node_count
        pairs, limit = np.full((n_nodes, 2), -1, dtype=np.int32), np.zeros(n_nodes, dtype=np.uint64)
        pairs[nodes] = [part.tree.features_of(node) for node in nodes.tolist()]
        limit[nodes] = limits
        n_threads = threads_for(part.table.n_rows, part.n_threads)
        return sample_points(
            part.table.values, part.leaves, part.tree.parent, pairs, limit, part.first_row,
            n_threads, part.counts,
        )  # fmt: skip

    def _points(self, part: SpreadPart, node: int, known: np.ndarray, n_missing: int) -> Points:
        chosen = known[first_by_hash(known, RANGE_ROWS, part.first_row)]
        columns = [
            part.column(feature)[chosen].astype(np.float64)
            for feature in part.tree.features_of(node)
        ]
        return Points(
            chosen.astype(np.int64) + part.first_row,
            np.stack(columns, axis=1),
            part.targets[chosen],
            n_missing,
        )

    def join(self, answers: Sequence[dict[int, Points]]) -> dict[int, Points]:
        """The answer for all parts."""
        return {node: _joined([answer[node] for answer in answers]) for node in self.nodes}


def _joined(parts: list[Points]) -> Points:
    rows, values, targets, n_missing = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(rows))
    joined = [np.concatenate(arrays)[order] for arrays in (rows, values, targets)]
    return Points(joined[0], joined[1], joined[2], sum(n_missing)).first(RANGE_ROWS)
