"""Sketch a tree: how rows are spread over its nodes, from their bins, for any holder of rows.

Parts of the rows are asked as `shapetree.data._map_join` says; however rows are divided, the
sketches are the same, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shapetree._core.predictor import count_cells
from shapetree._core.sampling import row_hashes
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import LocalParts, Parts, Question, Questions, add, add_each, greatest
from shapetree.data._sampling import first_by_hash, hash_limits, places_up_to
from shapetree.data._shares import ShareParts, drawn_labels, in_steps, steps_of
from shapetree.data._sums import BOUND_BITS, exact_unit, exact_units, on_grid
from shapetree.data._table import FeatureInfo, Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._axes import Spans, finite, joined_spans, spans_of_bins
from shapetree.tree._intervals import sure_of_median
from shapetree.tree._predictor import leaves_of_bins
from shapetree.tree._shape import starts
from shapetree.tree._sketch import (
    N_POINTS,
    RANGE_ROWS,
    SUM_DIGITS,
    Cells,
    Moments,
    Scatter,
    TreeSketches,
    drawn_range,
    in_decimals,
    in_digits,
    joined_moments,
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
    """A part of the rows, and the tree that they are sent down."""

    tree: TreeArrays
    table: Table  # with the values of features that the tree's pairs have
    binned: BinnedTable  # the rows' bins, which may have been moved into another order
    # Classes' numbers (int32), or targets (float64). Shape (n_rows,).
    y: np.ndarray
    # How many rows each counts as (int32); None for one. Shape (n_rows,).
    counts: np.ndarray | None = None
    # What rows weigh, if that is not known from their number alone. Shape (n_rows,).
    weights: np.ndarray | None = None
    first_row: int = 0  # number of the first row in the whole of the data
    n_threads: int = 1
    # How many of what is counted make a row: 1, or the steps of its shares of classes.
    steps: int = 1
    # If rows have shares of classes, so that these are parts of them: the first part of each row,
    # and a class that is drawn by its shares.
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

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows of each leaf, of numbers on a grid on which they are exact."""
        weights = values if self.times is None else values * self.times
        return np.bincount(self.leaves, weights, self.tree.node_count)

    def counts_in(self, groups: np.ndarray | int, n_groups: int) -> np.ndarray:
        """Rows of each leaf by group, (n_nodes, n_groups)."""
        n_nodes = self.tree.node_count
        every = self.leaves * np.int64(n_groups) + groups
        counts = np.bincount(every, self.times, n_nodes * n_groups)
        return counts.astype(np.int32).reshape(n_nodes, n_groups)


@dataclass(frozen=True, eq=False)
class SketchedRows:
    """Rows under a finished tree, local or remote."""

    parts: Parts  # a `SketchedPart` of each
    binned: BinnedTable  # the rows' bins; their columns may be on other machines
    n_rows: int
    has_weights: bool
    steps: int = 1  # how many of what is counted make a row; see `SketchedPart`

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
    """Rows with shares of classes, given their parts.

    Counts say as how many rows each part counts, or as which share of one; None for 1.
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


# --- what is asked of each part ---


def count_in_leaves(n_classes: int | None, part: SketchedPart) -> np.ndarray:
    """Rows of each leaf by class; of numbers there is one column."""
    return part.counts_in(0 if n_classes is None else part.targets, n_classes or 1)


def count_in_cells(
    cells: Cells, n_classes: int | None, unit: float, part: SketchedPart
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the cells of all nodes by class, and sums of numbers on a grid; see the kernel."""
    n_visits = len(part.leaves) * (1 + int(part.tree.depth.max()))
    has_classes = n_classes is not None
    return count_cells(
        part.binned.columns, part.leaves, part.tree.parent, cells.feature, cells.bin_start,
        cells.of_bin, cells.start, part.targets if has_classes else None,
        None if has_classes else on_grid(part.targets, unit), n_classes or 1,
        threads_for(n_visits, part.n_threads), part.times,
    )  # fmt: skip


def ends_of_targets(part: SketchedPart) -> np.ndarray:
    """The least number of each leaf, its sign changed, and the greatest, (2, n_nodes)."""
    ends = np.full((2, part.tree.node_count), -np.inf)
    for own, numbers in zip(ends, (-part.targets, part.targets), strict=True):
        np.maximum.at(own, part.leaves, numbers)
    return ends


def some_targets(n_rows: int, part: SketchedPart) -> np.ndarray:
    """A sample of the targets of so many rows in all parts."""
    limit = int(hash_limits(np.array([n_rows]), RANGE_ROWS)[0])
    return part.targets[places_up_to(part.numbers, part.first_row, limit)]


def targets_by_leaf(part: SketchedPart) -> np.ndarray:
    """Leaves and targets of all rows, (2, n_rows): medians need them in one place."""
    both = np.stack([part.leaves, part.targets])
    return both if part.times is None else np.repeat(both, part.times, axis=1)


def heaviest_rows(part: SketchedPart) -> np.ndarray:
    """What the heaviest of each leaf's rows weighs."""
    heaviest = np.zeros(part.tree.node_count)
    np.maximum.at(heaviest, part.leaves, part.weight_of_each)
    return heaviest


def squared_weights(heaviest: np.ndarray, part: SketchedPart) -> np.ndarray:
    """What the squares of weights add up to in each leaf, if its heaviest row weighs 1."""
    share = part.weight_of_each / heaviest[part.leaves]
    # On a grid, so that sums do not depend on order.
    return part.sums(np.round(share * share * SQUARE_UNIT) / SQUARE_UNIT)


class Points(NamedTuple):
    """Some rows of a node that splits on a pair, in the order of their numbers."""

    # Numbers of the rows. Shape (n_points,).
    rows: np.ndarray
    # Their numbers, or codes of categories. Shape (n_points, 2).
    values: np.ndarray
    targets: np.ndarray  # shape (n_points,)
    n_missing: int  # rows of the node that lack either feature

    def first(self, size: int) -> Points:
        """The `size` rows whose hashes are smallest."""
        if len(self.rows) <= size:
            return self
        kept = np.sort(np.argpartition(row_hashes(self.rows), size - 1)[:size])
        return Points(self.rows[kept], self.values[kept], self.targets[kept], self.n_missing)


def points_of_pair(node: int, part: SketchedPart) -> Points:
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


def join_points(parts: Sequence[Points]) -> Points:
    """Points of several parts as one sample."""
    rows, values, targets, n_missing = zip(*parts, strict=True)
    order = np.argsort(np.concatenate(rows))
    joined = [np.concatenate(arrays)[order] for arrays in (rows, values, targets)]
    return Points(joined[0], joined[1], joined[2], sum(n_missing)).first(RANGE_ROWS)


def sum_targets(
    exponent: np.ndarray, unit: np.ndarray, edges: np.ndarray, part: SketchedPart
) -> list[np.ndarray]:
    """Sums over leaves of targets, each divided by its leaf's power of two, on the leaf's grid.

    Then what absolute ones add up to at most, in 2**-16ths, and the leaf's rows by cell.
    """
    y, leaves = part.targets, part.leaves
    share = np.ldexp(y, -exponent[leaves])
    bound = np.ceil(np.minimum(1.0, np.abs(share)) * 2.0**BOUND_BITS)
    cells = np.searchsorted(edges[1:-1], y, side="left")
    in_cells = part.counts_in(cells, len(edges) - 1)
    return [part.sums(on_grids(share, unit[leaves])), part.sums(bound), in_cells]


def sum_powers(
    exponent: np.ndarray, mean: np.ndarray, reach: np.ndarray, unit: np.ndarray, part: SketchedPart
) -> list[np.ndarray]:
    """Sums over leaves of squares and cubes of how far their targets are off the mean.

    Distances are counted in a power of two, `reach`, that none exceeds.
    """
    leaves = part.leaves
    share = np.ldexp(part.targets, -exponent[leaves])
    off = np.ldexp(share - mean[leaves], -reach[leaves])
    square = off * off
    return [part.sums(on_grids(power, unit[leaves])) for power in (square, square * off)]


def on_grids(values: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Values rounded to multiples of units of their own."""
    return np.rint(values / units) * units


# --- sketches of them ---


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

    Ranges are the least and the greatest number of each ordered feature that the tree uses, of
    shape (n_features, 2). By default, the target's cells are those of the rows.
    """
    has_classes = n_classes is not None
    cells = _cells_of(tree, features, rows.binned, ranges, n_classes or 1)
    pairs = np.flatnonzero(tree.second_feature >= 0).tolist()
    questions: dict[str | int, Question] = {
        node: Question(partial(points_of_pair, node), join_points) for node in pairs
    }
    questions["in_leaves"] = Question(partial(count_in_leaves, n_classes), add)
    if rows.has_weights:
        questions["heaviest"] = Question(heaviest_rows, greatest)
    if has_classes:
        questions["in_cells"] = Question(partial(count_in_cells, cells, n_classes, 0.0), add_each)
    else:
        questions["ends"] = Question(ends_of_targets, greatest)
        questions["targets"] = Question(partial(some_targets, rows.n_rows), np.concatenate)
    found = dict(zip(questions, Questions(tuple(questions.values())).ask(rows.parts), strict=True))
    is_coded = [feature.is_categorical for feature in features]
    scatters = {node: _scatter(tree, node, found[node], is_coded, has_classes) for node in pairs}
    squares = _squared_weights(tree, rows, found.get("heaviest"))
    if has_classes:
        in_cells, _ = found["in_cells"]
        counts = _added_up(tree, found["in_leaves"])
        return TreeSketches(counts, cells, in_cells, scatters, squared_weights=squares), None
    if target_edges is None:
        least, most = (found["ends"].max(axis=1) * (-1, 1)).tolist()
        target_edges = target_edges_of(least, most, found["targets"])
    n_rows, ends = found["in_leaves"][:, 0], found["ends"] * [[-1], [1]]
    sketches = _sketches_of_numbers(tree, rows, cells, n_rows, ends, target_edges)
    return replace(
        sketches,
        scatters=scatters,
        middle=_medians(tree, rows) if has_medians else None,
        squared_weights=squares,
    ), target_edges


def _sketches_of_numbers(
    tree: TreeArrays,
    rows: SketchedRows,
    cells: Cells,
    n_rows: np.ndarray,
    ends: np.ndarray,
    target_edges: np.ndarray,
) -> TreeSketches:
    """Counts and moments of numbers, from those of leaves, whose ends have the shape (2, n_nodes).

    A leaf's numbers are summed on a grid of their own, and squares and cubes of how far they are
    off its mean: sums of great numbers would leave nothing of small ones.
    """
    has_rows, n = n_rows > 0, np.maximum(n_rows, 1)
    exponent = _exponents(np.where(has_rows, np.abs(ends).max(axis=0), 0.0))
    ends = np.ldexp(np.where(has_rows, ends, 0.0), -exponent)
    unit = exact_units(n.astype(np.float64))
    sums, bounds, in_target_cells = rows.parts.ask(
        partial(sum_targets, exponent, unit, target_edges), add_each
    )
    # Rounding must not carry a mean beyond the rows.
    mean = np.clip(sums / n, *ends)
    reach = _exponents(np.abs(ends - mean).max(axis=0))
    with np.errstate(over="ignore"):
        unit_of_all = exact_unit(float(np.ldexp(bounds, exponent - BOUND_BITS).sum()))
    (in_cells, totals), (squares, cubes) = Questions(
        (
            Question(partial(count_in_cells, cells, None, unit_of_all), add_each),
            Question(partial(sum_powers, exponent, mean, reach, unit), add_each),
        )
    ).ask(rows.parts)
    off = np.sqrt(squares / n)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        known = np.stack([np.ldexp(mean, exponent), np.ldexp(off, exponent + reach)])
        skewness = np.nan_to_num(cubes / n / off**3, posinf=0.0, neginf=0.0)
    known[:, ~has_rows] = np.nan
    skewness[~has_rows | (n_rows > SKEW_ROWS) | (off == 0)] = 0.0
    each = [its.tolist() for its in (n_rows, *known, skewness)]
    moments: list[Moments] = list(zip(*each, strict=True))
    for node in range(len(moments) - 1, 0, -1):  # children before their parents
        above = int(tree.parent[node])
        moments[above] = joined_moments(moments[above], moments[node])
    _, means, deviations, skewnesses = zip(*moments, strict=True)
    return TreeSketches(
        _added_up(tree, in_target_cells),
        cells,
        in_cells,
        {},
        totals=totals,
        mean=np.array(means),
        deviation=np.array(deviations),
        skewness=[in_digits(its, SUM_DIGITS) if math.isfinite(its) else 0.0 for its in skewnesses],
    )


def _exponents(numbers: np.ndarray) -> np.ndarray:
    """Powers of two that are above numbers."""
    return np.frexp(numbers)[1].astype(np.int32)


def _cells_of(
    tree: TreeArrays,
    features: tuple[FeatureInfo, ...],
    binned: BinnedTable,
    ranges: np.ndarray,
    n_classes: int,
) -> Cells:
    """Where rows are counted: in the spans of a node's feature, or its categories."""
    feature = np.where(tree.second_feature < 0, tree.feature, -1).astype(np.int32)
    used = np.unique(feature[feature >= 0]).tolist()
    n_splits = max(1, int(np.count_nonzero(feature >= 0)))
    at_most = min(max(MAX_COUNTS // (n_splits * n_classes), MIN_SPANS), MAX_SPANS)
    spans, of_bin = dict[int, Spans](), [np.empty(0, dtype=np.int32)]
    n_bins, n_cells = np.zeros((2, len(features) + 1), dtype=np.int64)
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
    return Cells(
        feature,
        spans,
        tree.piece_start,
        tree.piece_upper,
        bin_start=starts(n_bins[:-1]),
        of_bin=np.concatenate(of_bin),
        start=starts(n_cells[feature]),  # that of no feature, -1, is 0
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


def _medians(tree: TreeArrays, rows: SketchedRows) -> Sequence[tuple[float, float, float] | None]:
    """Median and its interval of each node whose rows suffice."""
    leaves, targets = rows.parts.ask(targets_by_leaf, np.hstack)
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
