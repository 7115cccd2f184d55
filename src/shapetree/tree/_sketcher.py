"""Sketch a tree: how rows are spread over its nodes, from their bins, for any holder of rows.

Parts of the rows are asked as `shapetree.data._map_join` says; however rows are divided, the
sketches are the same, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shapetree._core.predictor import count_cells
from shapetree._core.sampling import row_hashes
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import LocalParts, Parts, add, add_each
from shapetree.data._sampling import first_by_hash, hash_limits, places_up_to
from shapetree.data._shares import ShareParts, drawn_labels, in_steps, steps_of
from shapetree.data._sums import BOUND_BITS, exact_unit, exact_units, on_grid
from shapetree.data._table import FeatureInfo, Table
from shapetree.data._values import FeatureValues
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._axes import Spans, finite, joined_spans, spans_of_bins
from shapetree.tree._intervals import sure_of_median
from shapetree.tree._predictor import leaves_of_bins
from shapetree.tree._sketch import (
    N_POINTS,
    RANGE_ROWS,
    SUM_DIGITS,
    DataSummary,
    Densities,
    Scatter,
    TreeSketches,
    drawn_range,
    in_decimals,
    in_digits,
    joined_moments,
    starts,
    target_edges_of,
)

# Spans of a feature that rows are counted in, and how many there are of all nodes and classes.
MAX_SPANS, MIN_SPANS = 256, 48
MAX_COUNTS = 2**22
# Leaves of more rows are sure of their mean whatever its skewness.
SKEW_ROWS = 5_000
# Squares of weights, none of which is greater than 1, are multiples of its inverse.
SQUARE_UNIT = 2.0**21


# --- the rows ---


@dataclass(frozen=True, eq=False)
class SketchedPart:
    """A part of the rows, and the tree that they are sent down.

    Attributes
    ----------
    tree : TreeArrays
    table : Table
        With the values of features that the tree's pairs have.
    binned : BinnedTable
        The rows' bins, which may have been moved into another order.
    y : array of shape (n_rows,)
        Classes' numbers (int32), or targets (float64).
    counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for one.
    weights : array of shape (n_rows,) or None
        What rows weigh, if that is not known from their number alone.
    first_row : int
        Number of the first row in the whole of the data.
    n_threads : int
    steps : int
        How many of what is counted make a row: 1, or the steps of its shares of classes.
    drawn : tuple of two arrays, or None
        If rows have shares of classes, so that these are parts of them: the first part of each row,
        and a class that is drawn by its shares.
    """

    tree: TreeArrays
    table: Table
    binned: BinnedTable
    y: np.ndarray
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None
    first_row: int = 0
    n_threads: int = 1
    steps: int = 1
    drawn: tuple[np.ndarray, np.ndarray] | None = None

    @cached_property
    def numbers(self) -> np.ndarray:
        """Numbers of the rows, counted from the first on."""
        order = self.binned.columns.order
        return np.arange(self.table.n_rows, dtype=np.int32) if order is None else order

    @cached_property
    def leaves(self) -> np.ndarray:
        """The rows' leaves."""
        return leaves_of_bins(self.tree, self.table, self.binned, self.n_threads)

    @cached_property
    def targets(self) -> np.ndarray:
        """The rows' classes or targets."""
        return self._ordered(self.y)

    @cached_property
    def times(self) -> np.ndarray | None:
        """How many rows each counts as; None for one."""
        return None if self.counts is None else self._ordered(self.counts)

    @cached_property
    def weight_of_each(self) -> np.ndarray:
        """What each of the rows weighs that a row counts as."""
        assert self.weights is not None
        return self._ordered(
            self.weights if self.counts is None else self.weights / np.maximum(self.counts, 1)
        )

    def _ordered(self, array: np.ndarray) -> np.ndarray:
        order = self.binned.columns.order
        return array if order is None else array[order]

    def chosen(self, n_total: int, size: int) -> np.ndarray:
        """Places of rows that belong to a sample of about so many of all rows."""
        limit = int(hash_limits(np.array([n_total]), size)[0])
        return places_up_to(self.numbers, self.first_row, limit)

    @cached_property
    def by_leaf(self) -> RowsByLeaf:
        """The rows, leaf after leaf."""
        kind = np.min_scalar_type(self.tree.node_count)
        order = np.argsort(self.leaves.astype(kind), kind="stable")
        n_rows = np.bincount(self.leaves, minlength=self.tree.node_count)
        return RowsByLeaf(order, n_rows)


class RowsByLeaf(NamedTuple):
    """Rows, leaf after leaf.

    Attributes
    ----------
    order : int array of shape (n_rows,)
    n_rows : int array of shape (n_nodes,)
        How many each leaf has.
    """

    order: np.ndarray
    n_rows: np.ndarray

    def of_row(self, of_leaf: np.ndarray) -> np.ndarray:
        """For each row, what is known of its leaf."""
        return np.repeat(of_leaf, self.n_rows)

    def reduced(self, values: np.ndarray, join: np.ufunc, nothing: Any) -> np.ndarray:
        """Values of the rows in this order, joined by leaf; leaves without rows have nothing."""
        found = np.full(len(self.n_rows), nothing, dtype=values.dtype)
        held = np.flatnonzero(self.n_rows)
        if len(held):
            found[held] = join.reduceat(values, np.cumsum(self.n_rows)[held] - self.n_rows[held])
        return found

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums of values of the rows in this order, which must be exact."""
        return self.reduced(values, np.add, 0)


@dataclass(frozen=True, eq=False)
class SketchedRows:
    """Rows under a finished tree, local or remote.

    Attributes
    ----------
    parts : Parts
        A `SketchedPart` of each.
    binned : BinnedTable
        The rows' bins; their columns may be on other machines.
    n_rows : int
    has_weights : bool
    steps : int
        How many of what is counted make a row; see `SketchedPart`.
    """

    parts: Parts
    binned: BinnedTable
    n_rows: int
    has_weights: bool
    steps: int = 1

    @classmethod
    def of(cls, part: SketchedPart) -> SketchedRows:
        """Rows that are all in this process."""
        has_weights = part.weights is not None
        parts = LocalParts([part])
        return cls(parts, part.binned, part.table.n_rows, has_weights, part.steps)


def part_of_shares(
    tree: TreeArrays,
    table: Table,
    binned: BinnedTable,
    parts: ShareParts,
    counts: np.ndarray | None,
    weights: np.ndarray | None = None,
    n_threads: int = 1,
) -> SketchedPart:
    """Rows with shares of classes.

    Parameters
    ----------
    tree : TreeArrays
    table, binned : Table and BinnedTable
        The parts of the rows.
    parts : ShareParts
    counts : array of shape (n_parts,) or None
        As how many rows each part counts, or which share of one; None for 1.
    weights : array of shape (n_parts,) or None
    n_threads : int
    """
    first, counts = parts.first, np.ones(table.n_rows) if counts is None else counts
    steps = 1 if (counts == np.rint(counts)).all() else steps_of(int(counts.sum()))
    in_all = in_steps(counts, steps)
    if weights is not None:
        # Parts of a row are no evidence of their own: each step of it weighs the same.
        place = np.cumsum(np.diff(parts.row, prepend=-1) != 0) - 1
        each = np.add.reduceat(weights, first) / np.add.reduceat(in_all, first)
        weights = each[place] * in_all
    drawn = first, drawn_labels(parts.row, parts.label, counts)
    label = np.ascontiguousarray(parts.label, dtype=np.int32)
    return SketchedPart(tree, table, binned, label, in_all, weights, 0, n_threads, steps, drawn)


def sole_target(targets: np.ndarray, has_classes: bool) -> np.ndarray | None:
    """Targets as parts hold them, from an array of shape (n_rows, n_outputs)."""
    if targets.shape[1] > 1:
        return None
    return np.ascontiguousarray(targets[:, 0], dtype=np.int32 if has_classes else np.float64)


# --- the answers ---


class Counts(NamedTuple):
    """What is known of nodes after the first question.

    Attributes
    ----------
    in_cells : int array of shape (n_cells, n_classes)
        Rows in the cells of all nodes that split on a single feature.
    in_leaves : int array of shape (n_nodes, n_classes)
        Rows of each leaf.
    least, greatest : arrays of shape (n_nodes,) or None
        Ends of each leaf's targets; None for classes.
    targets : array or None
        A sample of all targets.
    heaviest : array of shape (n_nodes,) or None
        What the heaviest of each leaf's rows weighs.
    points : dict of Points
        By node, of those that split on a pair.
    """

    in_cells: np.ndarray
    in_leaves: np.ndarray
    least: np.ndarray | None
    greatest: np.ndarray | None
    targets: np.ndarray | None
    heaviest: np.ndarray | None
    points: dict[int, Points]


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


class Sums(NamedTuple):
    """Sums over the rows of each leaf.

    Attributes
    ----------
    targets : array of shape (n_nodes,)
        Targets in units of the leaf.
    bounds : int array of shape (n_nodes,)
        What absolute ones add up to at most, in 2**-16ths.
    in_cells : int array of shape (n_nodes, n_target_cells)
        Rows by cell of the target.
    """

    targets: np.ndarray
    bounds: np.ndarray
    in_cells: np.ndarray


class Powers(NamedTuple):
    """Sums of squares and of cubes of what targets are off a centre, and of targets by cell."""

    squares: np.ndarray
    cubes: np.ndarray
    totals: np.ndarray


def join_pairs(answers: Sequence[Any]) -> Any:
    """Join pairs of arrays, each after its own."""
    return tuple(map(np.concatenate, zip(*answers, strict=True)))


def join_counts(answers: Sequence[Counts]) -> Counts:
    """Join the answers to the first question."""
    in_cells, in_leaves, least, greatest, targets, heaviest, points = zip(*answers, strict=True)
    return Counts(
        add(in_cells),
        add(in_leaves),
        None if least[0] is None else np.min(least, axis=0),
        None if greatest[0] is None else np.max(greatest, axis=0),
        None if targets[0] is None else np.concatenate(targets),
        None if heaviest[0] is None else np.max(heaviest, axis=0),
        {node: _joined([part[node] for part in points]) for node in points[0]},
    )


def _joined(parts: list[Points]) -> Points:
    rows, values, targets, n_missing = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(rows))
    joined = [np.concatenate(arrays)[order] for arrays in (rows, values, targets)]
    return Points(joined[0], joined[1], joined[2], sum(n_missing)).first(RANGE_ROWS)


# --- the questions ---


@dataclass(frozen=True, eq=False)
class Cells:
    """Where rows are counted: the spans of a node's feature, or its categories.

    Attributes
    ----------
    feature : int32 array of shape (n_nodes,)
        Of nodes that split on a single feature; -1 for all others.
    bin_start, of_bin : arrays
        The cell of each bin of a feature, from its start on.
    start : int64 array of shape (n_nodes + 1,)
        A node has the cells from its start on, the last of which is for missing values.
    """

    feature: np.ndarray
    bin_start: np.ndarray
    of_bin: np.ndarray
    start: np.ndarray

    def count(
        self,
        part: SketchedPart,
        labels: np.ndarray | None,
        targets: np.ndarray | None,
        n_classes: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Rows, and sums of targets on a grid, in the cells of all nodes; see the kernel."""
        n_visits = len(part.leaves) * (1 + int(part.tree.depth.max()))
        return count_cells(
            part.binned.columns, part.leaves, part.tree.parent, self.feature, self.bin_start,
            self.of_bin, self.start, labels, targets, n_classes,
            threads_for(n_visits, part.n_threads), part.times,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class CountRows:
    """The first question; see `Counts`."""

    cells: Cells
    n_classes: int | None
    n_rows: int
    pairs: tuple[int, ...]

    def __call__(self, part: SketchedPart) -> Counts:
        y, n_nodes, n_classes = part.targets, part.tree.node_count, self.n_classes
        labels = None if n_classes is None else y
        in_cells, _ = self.cells.count(part, labels, None, n_classes or 1)
        groups = part.leaves if n_classes is None else part.leaves * np.int64(n_classes) + y
        times = None if part.times is None else part.times.astype(np.float64)
        in_leaves = np.bincount(groups, times, n_nodes * (n_classes or 1)).astype(np.int32)
        least = greatest = targets = heaviest = None
        if n_classes is None:
            rows = part.by_leaf
            ordered = y[rows.order]
            least = rows.reduced(ordered, np.minimum, np.inf)
            greatest = rows.reduced(ordered, np.maximum, -np.inf)
            targets = y[part.chosen(self.n_rows, RANGE_ROWS)]
        if part.weights is not None:
            heaviest = np.zeros(n_nodes)
            np.maximum.at(heaviest, part.leaves, part.weight_of_each)
        points = {node: _points(part, node) for node in self.pairs}
        in_leaves = in_leaves.reshape(n_nodes, n_classes or 1)
        return Counts(in_cells, in_leaves, least, greatest, targets, heaviest, points)


def _points(part: SketchedPart, node: int) -> Points:
    """Where some rows of a node lie in the plane of its pair."""
    tree, features = part.tree, part.tree.features_of(node)
    rows, labels, times = part.numbers, part.targets, part.times
    if part.drawn is not None:
        (rows, labels), times = part.drawn, None
    is_below = tree.is_at_or_below(node)[part.leaves[rows]]
    rows, labels = rows[is_below].astype(np.int32), labels[is_below]
    n_bins = part.binned.n_bins
    is_known = np.ones(len(rows), dtype=bool)
    for feature in features:
        is_known &= part.binned.columns.array(feature)[rows] < n_bins[feature]
    lacking, known = rows[~is_known], rows[is_known]
    places = first_by_hash(known, RANGE_ROWS, part.first_row)
    chosen = known[places]
    columns = [part.table.columns[feature] for feature in features]
    values = [column[chosen].astype(np.float64) for column in columns if column is not None]
    return Points(
        chosen.astype(np.int64) + part.first_row,
        np.stack(values, axis=1),
        labels[is_known][places],
        len(lacking) if times is None else int(times[lacking].sum()),
    )


@dataclass(frozen=True, eq=False)
class SumTargets:
    """The second question, about numbers: leaf by leaf, on grids of the leaf's own.

    Targets are counted in a power of two that none of the leaf's exceeds.
    """

    exponent: np.ndarray
    unit: np.ndarray
    edges: np.ndarray

    def __call__(self, part: SketchedPart) -> Sums:
        rows, n_nodes, n_cells = part.by_leaf, part.tree.node_count, len(self.edges) - 1
        y = part.targets[rows.order]
        share = np.ldexp(y, -rows.of_row(self.exponent))
        whole = on_grids(share, rows.of_row(self.unit))
        bound = np.ceil(np.minimum(1.0, np.abs(share)) * 2.0**BOUND_BITS).astype(np.int64)
        cells = np.searchsorted(self.edges[1:-1], y, side="left")
        groups = rows.of_row(np.arange(n_nodes)) * n_cells + cells
        times = None if part.times is None else part.times[rows.order]
        if times is not None:
            whole, bound = whole * times, bound * times
        in_cells = np.bincount(groups, times, n_nodes * n_cells).astype(np.int32)
        return Sums(rows.sums(whole), rows.sums(bound), in_cells.reshape(n_nodes, n_cells))


@dataclass(frozen=True, eq=False)
class SumPowers:
    """The third question, about numbers: how far they are off their leaf's mean.

    Distances are counted in a power of two that none exceeds.
    """

    exponent: np.ndarray
    centre: np.ndarray
    reach: np.ndarray
    unit: np.ndarray
    cells: Cells
    unit_of_all: float

    def __call__(self, part: SketchedPart) -> Powers:
        rows = part.by_leaf
        share = np.ldexp(part.targets[rows.order], -rows.of_row(self.exponent))
        off = np.ldexp(share - rows.of_row(self.centre), -rows.of_row(self.reach))
        times = 1 if part.times is None else part.times[rows.order]
        unit = rows.of_row(self.unit)
        square = off * off
        squares, cubes = (
            rows.sums(times * on_grids(power, unit)) for power in (square, square * off)
        )
        y = on_grid(part.targets, self.unit_of_all)
        return Powers(squares, cubes, self.cells.count(part, None, y, 1)[1])


def on_grids(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Values rounded to multiples of units of their own."""
    return np.rint(values / units) * units


def squared_weights(heaviest: np.ndarray, part: SketchedPart) -> np.ndarray:
    """What the squares of weights add up to in each leaf, if its heaviest row weighs 1."""
    share = part.weight_of_each / heaviest[part.leaves]
    # On a grid, so that sums do not depend on order.
    squares = np.round(share * share * SQUARE_UNIT) / SQUARE_UNIT
    if part.times is not None:
        squares *= part.times
    return np.bincount(part.leaves, weights=squares, minlength=part.tree.node_count)


def targets_by_leaf(part: SketchedPart) -> tuple[np.ndarray, np.ndarray]:
    """Leaves and targets of all rows: medians need them in one place."""
    if part.times is None:
        return part.leaves, part.targets
    return np.repeat(part.leaves, part.times), np.repeat(part.targets, part.times)


# --- sketches of them ---


def summary_of(
    values: FeatureValues, ordered: Sequence[int], n_features: int, target_edges: np.ndarray | None
) -> DataSummary:
    """What is remembered of rows, given the values of ordered features that are used."""
    scales, ranges = np.ones(n_features), np.full((n_features, 2), np.nan)
    scales[list(ordered)] = values.scales()
    ranges[list(ordered)] = np.stack([values.least, values.greatest], axis=1)
    return DataSummary(scales, target_edges, ranges)


def sketch_tree(
    tree: TreeArrays,
    features: tuple[FeatureInfo, ...],
    rows: SketchedRows,
    ranges: np.ndarray,
    n_classes: int | None,
    target_edges: np.ndarray | None = None,
    has_medians: bool = False,
) -> tuple[TreeSketches, np.ndarray | None]:
    """Sketches of a tree's nodes, of any rows, and the bounds of the target's cells.

    Parameters
    ----------
    tree : TreeArrays
    features : tuple of FeatureInfo
    rows : SketchedRows
    ranges : array of shape (n_features, 2)
        The least and the greatest number of each ordered feature that the tree uses.
    n_classes : int or None
        Classes of the only output; None for regression.
    target_edges : array, optional
        Bounds of the target's cells; by default those of the rows.
    has_medians : bool
        Whether the tree predicts medians.
    """
    spans, cells = _cells_of(tree, features, rows.binned, ranges, n_classes or 1)
    pairs = tuple(np.flatnonzero(tree.second_feature >= 0).tolist())
    found = rows.parts.ask(CountRows(cells, n_classes, rows.n_rows, pairs), join_counts)
    is_coded = [feature.is_categorical for feature in features]
    has_classes = n_classes is not None
    scatters = {
        node: _scatter(tree, node, points, is_coded, has_classes)
        for node, points in found.points.items()
    }
    squares = _squared_weights(tree, rows, found.heaviest)
    axes = cells.feature, spans, tree.piece_start, tree.piece_upper, cells.start, found.in_cells
    if has_classes:
        counts = _added_up(tree, found.in_leaves)
        densities = Densities(*axes, None)
        return TreeSketches(
            *(counts, None, None, densities, scatters), squared_weights=squares
        ), None
    assert found.least is not None
    assert found.greatest is not None
    assert found.targets is not None
    if target_edges is None:
        ends = float(found.least.min()), float(found.greatest.max())
        target_edges = target_edges_of(*ends, found.targets)
    n_rows = found.in_leaves[:, 0]
    moments = _Moments(n_rows, found.least, found.greatest)
    sums = rows.parts.ask(SumTargets(moments.exponent, moments.unit, target_edges), add_each)
    powers = rows.parts.ask(moments.powers(sums, cells), add_each)
    mean, deviation, skewness = _moments_above(tree, n_rows, *moments.of_leaves(sums, powers))
    sketches = TreeSketches(
        *(_added_up(tree, sums.in_cells), mean, deviation),
        *(Densities(*axes, powers.totals), scatters, skewness),
        _medians(tree, rows) if has_medians else None,
        squared_weights=squares,
    )
    return sketches, target_edges


def _cells_of(
    tree: TreeArrays,
    features: tuple[FeatureInfo, ...],
    binned: BinnedTable,
    ranges: np.ndarray,
    n_classes: int,
) -> tuple[dict[int, Spans], Cells]:
    """Where rows are counted: spans of ordered features by feature, and all cells."""
    feature = np.where(tree.second_feature < 0, tree.feature, -1).astype(np.int32)
    used = np.unique(feature[feature >= 0]).tolist()
    n_splits = max(1, int(np.count_nonzero(feature >= 0)))
    at_most = min(max(MAX_COUNTS // (n_splits * n_classes), MIN_SPANS), MAX_SPANS)
    spans, of_bin, n_cells = {}, list[np.ndarray](), np.zeros(len(features) + 1, dtype=np.int64)
    n_bins = np.zeros(len(features), dtype=np.int64)
    for number in used:
        bins, info = binned.features[number], features[number]
        if info.is_categorical:
            cells = np.arange(bins.n_bins + 1, dtype=np.int32)
        else:
            low, high = finite(ranges[number]).tolist()
            its, cells = spans_of_bins(bins, (low, high), info.is_whole)
            if bins.n_bins > at_most:
                nodes = np.flatnonzero(feature == number).tolist()
                thresholds = [tree.piece_upper[tree.pieces(node)][:-1] for node in nodes]
                its, cells = joined_spans(its, np.concatenate(thresholds), at_most)
            spans[number] = its
        n_bins[number], n_cells[number] = len(cells), int(cells[-1]) + 1
        of_bin.append(cells)
    return spans, Cells(
        feature,
        starts(n_bins),
        np.concatenate([np.empty(0, dtype=np.int32), *of_bin]),
        starts(n_cells[feature]),  # that of no feature, -1, is 0
    )


def _added_up(tree: TreeArrays, counts: np.ndarray) -> np.ndarray:
    """Counts of all nodes, from those of leaves."""
    found = counts.copy()
    for depth in range(int(tree.depth.max()), 0, -1):
        nodes = np.flatnonzero(tree.depth == depth)
        np.add.at(found, tree.parent[nodes], found[nodes])
    return found


def _squared_weights(
    tree: TreeArrays, rows: SketchedRows, heaviest: np.ndarray | None
) -> Sequence[float] | None:
    """What the squares of the weights of all nodes' rows add up to."""
    if heaviest is None:
        return None
    squares = rows.parts.ask(partial(squared_weights, heaviest), add)
    sums: list[float] = (rows.steps * heaviest * heaviest * squares).tolist()
    for node in range(len(sums) - 1, 0, -1):  # children before their parents
        sums[int(tree.parent[node])] += sums[node]
    return [in_digits(total, SUM_DIGITS) for total in sums]


def _moments_above(
    tree: TreeArrays,
    n_rows: np.ndarray,
    mean: np.ndarray,
    deviation: np.ndarray,
    skewness: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Mean, deviation and skewness of all nodes, from those of leaves."""
    each = (n_rows.tolist(), mean.tolist(), deviation.tolist(), skewness.tolist())
    moments = list(zip(*each, strict=True))
    for node in range(len(moments) - 1, 0, -1):  # children before their parents
        above = int(tree.parent[node])
        moments[above] = joined_moments(moments[above], moments[node])
    means, deviations = (np.array([its[i] for its in moments]) for i in (1, 2))
    return (
        means,
        deviations,
        [in_digits(its[3], SUM_DIGITS) if math.isfinite(its[3]) else 0.0 for its in moments],
    )


def _medians(tree: TreeArrays, rows: SketchedRows) -> Sequence[tuple[float, float, float] | None]:
    """Median and its interval of each node whose rows suffice."""
    leaves, targets = rows.parts.ask(targets_by_leaf, join_pairs)
    order = np.argsort(leaves, kind="stable")
    bounds = np.searchsorted(leaves[order], np.arange(tree.node_count + 1))
    values = [[targets[order[a:b]]] for a, b in pairwise(bounds.tolist())]
    medians: list[tuple[float, float, float] | None] = [None] * len(values)
    for node in range(len(values) - 1, -1, -1):  # children before their parents
        own = np.sort(np.concatenate(values[node]))
        sure = sure_of_median(own)
        medians[node] = None if sure is None else sure[:3]
        if node:
            values[int(tree.parent[node])].append(own)
        values[node] = []
    return medians


def _scatter(
    tree: TreeArrays, node: int, sample: Points, is_coded: list[bool], has_classes: bool
) -> Scatter:
    """Where a node's rows lie in the plane of its pair."""
    coded = np.array([is_coded[feature] for feature in tree.features_of(node)])
    low, high = _plane(tree, node, finite(sample.values))
    drawn = sample.first(N_POINTS)
    with np.errstate(over="ignore"):
        ranges = np.where(coded, 1.0, high - low)
    targets = drawn.targets
    if not has_classes:
        targets = np.array([in_digits(target, SUM_DIGITS) for target in targets.tolist()])
    points = in_decimals(finite(drawn.values), ranges)
    return Scatter(low, high, points, targets, drawn.n_missing)


def _plane(tree: TreeArrays, node: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Range of a pair's features that holds all cuts along the axes."""
    cuts = tree.cuts(node)
    weights, threshold = (tree.cut_b[cuts], tree.cut_a[cuts]), tree.cut_threshold[cuts]
    ranges = [
        drawn_range(np.sort(points[:, side]), threshold[weights[side] == 0].tolist())
        for side in range(2)
    ]
    return np.array([low for low, _ in ranges]), np.array([high for _, high in ranges])


class _Moments:
    """Means, deviations and skewness of each leaf's targets, from sums on grids of its own."""

    def __init__(self, n_rows: np.ndarray, least: np.ndarray, greatest: np.ndarray) -> None:
        self._n = n_rows
        self._has_rows = n_rows > 0
        largest = np.maximum(np.abs(least), np.abs(greatest))
        self.exponent = _exponents(np.where(self._has_rows, largest, 0.0))
        ends = np.array([least, greatest])
        self._ends = np.ldexp(np.where(self._has_rows, ends, 0.0), -self.exponent)
        self.unit = exact_units(np.maximum(n_rows, 1).astype(np.float64))

    def powers(self, sums: Sums, cells: Cells) -> SumPowers:
        """The questions that need the sums."""
        with np.errstate(over="ignore"):
            bounds = np.ldexp(sums.bounds.astype(np.float64), self.exponent - BOUND_BITS)
            unit = exact_unit(float(bounds.sum()))
        return SumPowers(
            *(self.exponent, self._means(sums), self._reach(sums), self.unit, cells, unit)
        )

    def of_leaves(self, sums: Sums, powers: Powers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mean, deviation and skewness of each leaf; NaN where there are no rows."""
        mean = np.ldexp(self._means(sums), self.exponent)
        n = np.maximum(self._n, 1)
        off = np.sqrt(powers.squares / n)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            deviation = np.ldexp(off, self.exponent + self._reach(sums))
            skewness = np.nan_to_num(powers.cubes / n / off**3, posinf=0.0, neginf=0.0)
        matters = self._has_rows & (self._n <= SKEW_ROWS) & (off > 0)
        return (
            np.where(self._has_rows, mean, np.nan),
            np.where(self._has_rows, deviation, np.nan),
            np.where(matters, skewness, 0.0),
        )

    def _means(self, sums: Sums) -> np.ndarray:
        # Rounding must not carry a mean beyond the rows.
        return np.clip(sums.targets / np.maximum(self._n, 1), *self._ends)

    def _reach(self, sums: Sums) -> np.ndarray:
        return _exponents(np.abs(self._ends - self._means(sums)).max(axis=0))


def _exponents(numbers: np.ndarray) -> np.ndarray:
    """Powers of two that are above numbers."""
    return np.frexp(numbers)[1].astype(np.int32)
