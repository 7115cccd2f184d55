"""Sketch a tree: how rows are spread over its nodes, all nodes at once, whoever holds the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree._core.column_ranges import deviations
from shapetree._core.sketch_axes import edges_of_cells, lay_out_axes
from shapetree._core.sketch_targets import add_up
from shapetree.data._columns import MAX_EXACT
from shapetree.data._sampling import hash_limits
from shapetree.data._sums import BOUND_BITS, exact_unit, exact_units
from shapetree.data._table import FeatureInfo
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._questions import (
    AxisValues,
    CountsOfCells,
    CountsOfLeaves,
    CubesOfLeaves,
    GreatestWeights,
    LeafCounts,
    LeafSums,
    Points,
    PointsOfPairs,
    RangeOfTargets,
    RangesOfFeatures,
    SampleOfValues,
    SquaredWeights,
    SquaresOfLeaves,
    SumsOfLeaves,
    TargetsOfLeaves,
    ValuesOfAxes,
)
from shapetree.tree._sketch import (
    MAX_WHOLE,
    N_POINTS,
    RANGE_ROWS,
    SCALE_ROWS,
    SUM_DIGITS,
    Axes,
    DataSummary,
    Densities,
    Scatter,
    TreeSketches,
    axis_of_whole_numbers,
    drawn_range,
    finite,
    in_decimals,
    in_digits,
    joined_moments,
    starts,
    target_edges_of,
)
from shapetree.tree._spread import Question, SpreadRows
from shapetree.tree._sure import sure_of_median

# Leaves of more rows are sure of their mean whatever its skewness.
SKEW_ROWS = 5_000


def describe_training_rows(
    rows: SpreadRows,
    tree: TreeArrays,
    features: tuple[FeatureInfo, ...],
    n_classes: list[int] | None,
    has_one_target: bool,
    has_medians: bool = False,
) -> tuple[DataSummary, TreeSketches | None]:
    """Summarise training rows, and sketch their tree's nodes, in as few passes as possible.

    Parameters
    ----------
    rows : SpreadRows
    tree : TreeArrays
        A tree that knows how many of these rows are in each node.
    features : tuple of FeatureInfo
    n_classes : list of int or None
        Classes of each output; None for regression.
    has_one_target : bool
        Whether a row has one target; there are no sketches otherwise.
    has_medians : bool
        Whether the tree predicts medians.
    """
    is_number = n_classes is None
    if not has_one_target:
        return summarise_rows(rows, features, tree.used_features, False), None
    summary = _Summary(features, tree.used_features, rows, is_number)
    size = None if n_classes is None else n_classes[0]
    sketcher = _Sketcher(tree, features, rows, size, has_medians)
    axes = sketcher.questions_of_axes(tree.n_node_samples)
    # The cells of numbers depend on the summary, those of classes are known.
    known = [] if is_number else [CountsOfLeaves(size, None)]
    answers = rows.ask(*summary.questions, *axes, *known)
    about = summary.of(answers[: len(summary.questions)])
    values, points, *counted = answers[len(summary.questions) :]
    (leaves,) = counted or rows.ask(CountsOfLeaves(None, about.target_edges))
    return about, sketcher.sketches(leaves, about.ranges, values, points)


def summarise_rows(
    rows: SpreadRows, features: tuple[FeatureInfo, ...], used: list[int], has_numbers: bool
) -> DataSummary:
    """Summarise training rows without a tree's sketches.

    Parameters
    ----------
    rows : SpreadRows
    features : tuple of FeatureInfo
    used : list of int
        Features that are summarised.
    has_numbers : bool
        Whether a row has one target, which is a number.
    """
    summary = _Summary(features, used, rows, has_numbers)
    return summary.of(rows.ask(*summary.questions))


def sketch_tree(
    tree: TreeArrays,
    features: tuple[FeatureInfo, ...],
    rows: SpreadRows,
    n_classes: list[int] | None,
    target_edges: np.ndarray | None,
    has_medians: bool = False,
) -> TreeSketches:
    """Sketches of a tree's nodes, of any rows.

    Parameters
    ----------
    tree : TreeArrays
    features : tuple of FeatureInfo
    rows : SpreadRows
    n_classes : list of int or None
        Classes of the only output; None for regression.
    target_edges : array or None
        Bounds of the target's cells.
    has_medians : bool
        Whether the tree predicts medians.
    """
    size = None if n_classes is None else n_classes[0]
    sketcher = _Sketcher(tree, features, rows, size, has_medians)
    (leaves,) = rows.ask(CountsOfLeaves(size, target_edges))
    n_rows = add_up(tree.parent, leaves.counts.copy(), None, None)
    summary = _Summary(features, tree.used_features, rows, has_numbers=False)
    ends, values, points = rows.ask(summary.questions[0], *sketcher.questions_of_axes(n_rows))
    return sketcher.sketches(leaves, summary.ranges(ends), values, points)


class _Summary:
    """What is asked to summarise rows, with their targets if these are numbers."""

    def __init__(
        self,
        features: tuple[FeatureInfo, ...],
        used: list[int],
        rows: SpreadRows,
        has_numbers: bool,
    ) -> None:
        self._n_features, self._steps, n_rows = len(features), rows.steps, rows.n_rows
        self._ordered = tuple(feature for feature in used if not features[feature].is_categorical)
        self.questions: tuple[Question[Any], ...] = (
            RangesOfFeatures(self._ordered),
            SampleOfValues(self._ordered, n_rows, SCALE_ROWS),
            *[RangeOfTargets(n_rows)] * has_numbers,
        )

    def of(self, answers: list[Any]) -> DataSummary:
        """The summary, from the answers."""
        ends, sample, *targets = answers
        scales = np.ones(self._n_features)
        found = deviations(sample.values, sample.counts)
        # Nothing can be divided by zero or infinity.
        scales[list(self._ordered)] = np.where((found > 0) & (found < np.inf), found, 1.0)
        edges = target_edges_of(*targets[0]) if targets else None
        return DataSummary(scales, edges, self.ranges(ends), self._steps)

    def ranges(self, ends: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Least and greatest number of each feature; NaN for those that are not used."""
        ranges = np.full((self._n_features, 2), np.nan)
        ranges[list(self._ordered)] = np.stack(ends, axis=1)
        return ranges


class _Sketcher:
    """What sketching a tree works on."""

    def __init__(
        self,
        tree: TreeArrays,
        features: tuple[FeatureInfo, ...],
        rows: SpreadRows,
        n_classes: int | None,
        has_medians: bool,
    ) -> None:
        self._tree = tree
        self._has_medians = has_medians
        self._rows = rows
        self._n_classes = n_classes
        self._is_coded = np.array([feature.is_categorical for feature in features])
        self._is_whole = np.array([feature.is_whole for feature in features])
        self._has_axis = (tree.feature >= 0) & (tree.second_feature < 0)
        self._has_codes = self._has_axis & self._is_coded[tree.feature]
        numbers = np.where(self._has_axis & ~self._has_codes, tree.feature, -1)
        self._numbers = numbers.astype(np.int32)
        self._pairs = tuple(np.flatnonzero(tree.second_feature >= 0).tolist())

    def questions_of_axes(self, n_rows: np.ndarray) -> tuple[ValuesOfAxes, PointsOfPairs]:
        """What to ask first, about nodes with so many rows."""
        # Some rows count as several: about so many does each node have.
        share = self._rows.n_rows / max(1, int(n_rows[0]))
        limits = hash_limits(np.ceil(share * n_rows).astype(np.int64), RANGE_ROWS)
        return ValuesOfAxes(self._numbers, limits), PointsOfPairs(self._pairs)

    def sketches(
        self,
        leaves: LeafCounts,
        ranges: np.ndarray,
        values: AxisValues,
        points: dict[int, Points],
    ) -> TreeSketches:
        """Sketches of all nodes, from counts of leaves, ranges of features and samples."""
        counts = leaves.counts.copy()
        n_rows = add_up(self._tree.parent, counts, None, None)
        moments = None if self._n_classes is not None else _Moments(leaves)
        sums = [] if moments is None else self._rows.ask(moments.sums())
        axes = self._axes(self._numbers, ranges, values)
        cells, cell_start = self._cells(
            axes, n_rows, 0.0 if moments is None else moments.unit(*sums)
        )
        found, *squares = self._rows.ask(
            cells, *([] if moments is None else [moments.squares(*sums)])
        )
        totals = found.totals if self._n_classes is None else None
        densities = Densities(axes, cell_start, found.counts, totals, found.least, found.greatest)
        scatters = {node: self._scatter(node, points[node]) for node in self._pairs}
        squared_weights = self._squared_weights() if self._rows.has_weights else None
        if moments is None:
            return TreeSketches(
                *(counts, None, None, densities, scatters), squared_weights=squared_weights
            )
        mean, deviation = moments.of_leaves(*sums, *squares)
        skewness = self._skewness(leaves.counts.sum(axis=1), mean, deviation)
        add_up(self._tree.parent, leaves.counts.copy(), mean, deviation)
        middle = self._medians() if self._has_medians else None
        return TreeSketches(
            *(counts, mean, deviation, densities, scatters, skewness, middle),
            squared_weights=squared_weights,
        )

    # --- how sure the nodes are ---

    def _squared_weights(self) -> Sequence[float]:
        """What the squares of the weights of all nodes' rows add up to."""
        (greatest,) = self._rows.ask(GreatestWeights())
        (squares,) = self._rows.ask(SquaredWeights(greatest))
        sums: list[float] = (self._rows.steps * greatest * greatest * squares).tolist()
        for node in range(len(sums) - 1, 0, -1):  # children before their parents
            sums[int(self._tree.parent[node])] += sums[node]
        return [in_digits(total, SUM_DIGITS) for total in sums]

    def _skewness(
        self, n_rows: np.ndarray, mean: np.ndarray, deviation: np.ndarray
    ) -> Sequence[float]:
        """Skewness of the targets of all nodes, from leaves of few rows."""
        scale = np.where(n_rows <= SKEW_ROWS, np.nan_to_num(deviation), 0.0)
        (cubes,) = self._rows.ask(CubesOfLeaves(mean, scale))
        skewness = np.nan_to_num(cubes / np.maximum(n_rows, 1))
        moments = list(
            zip(n_rows.tolist(), mean.tolist(), deviation.tolist(), skewness.tolist(), strict=True)
        )
        for node in range(len(moments) - 1, 0, -1):  # children before their parents
            above = int(self._tree.parent[node])
            moments[above] = joined_moments(moments[above], moments[node])
        return [in_digits(x, SUM_DIGITS) if math.isfinite(x) else 0.0 for *_, x in moments]

    def _medians(self) -> Sequence[tuple[float, float, float] | None]:
        """Median and its interval of each node whose rows suffice."""
        (found,) = self._rows.ask(TargetsOfLeaves())
        order = np.argsort(found.leaves, kind="stable")
        bounds = np.searchsorted(found.leaves[order], np.arange(self._tree.node_count + 1))
        targets = found.targets[order]
        values = [[targets[a:b]] for a, b in pairwise(bounds.tolist())]
        medians: list[tuple[float, float, float] | None] = [None] * len(values)
        for node in range(len(values) - 1, -1, -1):  # children before their parents
            own = np.sort(np.concatenate(values[node]))
            sure = sure_of_median(own)
            medians[node] = None if sure is None else sure[:3]
            if node:
                values[int(self._tree.parent[node])].append(own)
            values[node] = []
        return medians

    # --- nodes that split on one feature ---

    def _axes(self, numbers: np.ndarray, ranges: np.ndarray, values: AxisValues) -> Axes:
        """How to divide the axes of ordered features."""
        tree, has_numbers = self._tree, numbers >= 0
        pieces = np.diff(tree.piece_start)
        # All bounds of a node's pieces but the last, which is infinite, are thresholds.
        is_threshold = np.repeat(has_numbers, pieces)
        is_threshold[tree.piece_start[1:][pieces > 0] - 1] = False
        threshold_start = starts(np.where(has_numbers, pieces - 1, 0))
        thresholds = tree.piece_upper[is_threshold]
        start, bounds, cells = lay_out_axes(numbers, *values, threshold_start, thresholds)
        value_start, sample = values
        parts = []
        for node, feature in enumerate(numbers.tolist()):
            part = slice(start[node], start[node + 1])
            its = bounds[part], cells[part]
            if feature >= 0 and self._is_whole[feature]:
                mine = sample[value_start[node] : value_start[node + 1]]
                few = _few_whole_numbers(ranges[feature], mine)
                here = thresholds[threshold_start[node] : threshold_start[node + 1]]
                its = its if few is None else axis_of_whole_numbers(few, here)
            parts.append(its)
        sizes = np.array([len(its) for its, _ in parts])
        bounds, cells = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Axes(starts(sizes), bounds, cells, threshold_start, thresholds)

    def _cells(
        self, axes: Axes, n_rows: np.ndarray, unit: float
    ) -> tuple[CountsOfCells, np.ndarray]:
        """What to ask for how many rows are in which cells, and where each node's cells start."""
        tree = self._tree
        edge_start, edges = edges_of_cells(axes.start, axes.bounds, axes.cells)
        # One cell more than edges, and one for missing values.
        n_cells = edge_start[1:] - edge_start[:-1] + 2
        n_cells[self._has_codes] = np.diff(tree.piece_start)[self._has_codes] + 1
        cell_start = starts(np.where(self._has_axis, n_cells, 0))
        n_visits = int(n_rows[0] + n_rows[self._has_axis].sum())
        asked = CountsOfCells(
            tree.feature, edge_start, edges, cell_start, self._n_classes, unit, n_visits
        )
        return asked, cell_start

    # --- nodes that split on a pair ---

    def _scatter(self, node: int, sample: Points) -> Scatter:
        """Where a node's rows lie in the plane of its pair."""
        coded = self._is_coded[self._tree.features_of(node)]
        low, high = self._plane(node, finite(sample.values))
        drawn = sample.first(N_POINTS)
        with np.errstate(over="ignore"):
            ranges = np.where(coded, 1.0, high - low)
        targets = drawn.targets
        if self._n_classes is None:
            targets = np.array([in_digits(target, SUM_DIGITS) for target in targets.tolist()])
        points = in_decimals(finite(drawn.values), ranges)
        return Scatter(low, high, points, targets, drawn.n_missing)

    def _plane(self, node: int, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Range of a pair's features that holds all cuts along the axes."""
        cuts = self._tree.cuts(node)
        weights = self._tree.cut_b[cuts], self._tree.cut_a[cuts]
        threshold = self._tree.cut_threshold[cuts]
        ranges = [
            drawn_range(np.sort(points[:, side]), threshold[weights[side] == 0].tolist())
            for side in range(2)
        ]
        return np.array([low for low, _ in ranges]), np.array([high for _, high in ranges])


def _few_whole_numbers(ends: np.ndarray, sample: np.ndarray) -> np.ndarray | None:
    """The whole numbers between two ends, or those of a sample; None if they are many."""
    low, high = ends.tolist()
    if not (low > -MAX_EXACT and high < MAX_EXACT):
        return None
    found = np.arange(low, high + 1) if high - low < MAX_WHOLE else np.unique(sample)
    return found if 0 < len(found) <= MAX_WHOLE else None


class _Moments:
    """Means and deviations of each leaf's targets, from sums on grids of the leaf's own.

    Targets are counted in a power of two that none of the leaf's exceeds, and their distances from
    their mean in one that none is farther off.
    """

    def __init__(self, leaves: LeafCounts) -> None:
        self._n = leaves.counts.sum(axis=1)
        self._has_rows = self._n > 0
        greatest = np.maximum(np.abs(leaves.least), np.abs(leaves.greatest))
        self._exponent = _exponents(np.where(self._has_rows, greatest, 0.0))
        ends = np.array([leaves.least, leaves.greatest])
        self._ends = np.ldexp(np.where(self._has_rows, ends, 0.0), -self._exponent)
        self._unit = exact_units(np.maximum(self._n, 1).astype(np.float64))

    def sums(self) -> SumsOfLeaves:
        """What to ask first."""
        return SumsOfLeaves(self._exponent, self._unit)

    def unit(self, sums: LeafSums) -> float:
        """Unit of a grid on which the targets of all rows add up exactly."""
        with np.errstate(over="ignore"):
            bounds = np.ldexp(sums.bounds.astype(np.float64), self._exponent - BOUND_BITS)
            return exact_unit(float(bounds.sum()))

    def squares(self, sums: LeafSums) -> SquaresOfLeaves:
        """What to ask next."""
        means, reach = self._means(sums), self._reach(sums)
        return SquaresOfLeaves(self._exponent, means, reach, self._unit)

    def of_leaves(self, sums: LeafSums, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation of each leaf; NaN where there are no rows."""
        exponent, reach = self._exponent, self._reach(sums)
        mean = np.ldexp(self._means(sums), exponent)
        with np.errstate(over="ignore"):
            off = np.sqrt(squares / np.maximum(self._n, 1))
            deviation = np.ldexp(off, exponent + reach)
        return np.where(self._has_rows, mean, np.nan), np.where(self._has_rows, deviation, np.nan)

    def _means(self, sums: LeafSums) -> np.ndarray:
        # Rounding must not carry a mean beyond the rows.
        return np.clip(sums.sums / np.maximum(self._n, 1), *self._ends)

    def _reach(self, sums: LeafSums) -> np.ndarray:
        return _exponents(np.abs(self._ends - self._means(sums)).max(axis=0))


def _exponents(numbers: np.ndarray) -> np.ndarray:
    """Powers of two that are above numbers."""
    return np.frexp(numbers)[1].astype(np.int32)
