"""Sketch a tree: how rows are spread over its nodes, all nodes at once."""

from __future__ import annotations

import numpy as np

from shapetree._core.sketch import count_cells, count_targets, lay_out_axes
from shapetree._threads import threads_for
from shapetree.data._missing import is_known
from shapetree.data._sampling import first_by_hash, hash_limits
from shapetree.data._sums import bound_of_sum, exact_unit, on_grid
from shapetree.data._table import Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._sketch import (
    N_POINTS,
    RANGE_ROWS,
    SUM_DIGITS,
    Axes,
    Densities,
    Scatter,
    TreeSketches,
    drawn_range,
    finite,
    in_decimals,
    in_digits,
    starts,
)


def sketch_tree(
    tree: TreeArrays,
    leaves: np.ndarray,
    table: Table,
    y: np.ndarray,
    n_classes: int | None,
    target_edges: np.ndarray | None,
    n_threads: int,
) -> TreeSketches:
    """Sketches of a tree's nodes.

    Parameters
    ----------
    tree : TreeArrays
    leaves : int array of shape (n_rows,)
        The rows' leaves.
    table : Table
        The rows; only columns that the tree uses are read.
    y : array of shape (n_rows,)
        Classes' numbers, or targets.
    n_classes : int or None
        None for regression.
    target_edges : array or None
        Bounds of the target's cells.
    n_threads : int
    """
    return _Sketcher(tree, leaves, table, y, n_classes, target_edges, n_threads).sketches()


class _Sketcher:
    """What sketching a tree works on; the parameters are those of `sketch_tree`."""

    def __init__(
        self,
        tree: TreeArrays,
        leaves: np.ndarray,
        table: Table,
        y: np.ndarray,
        n_classes: int | None,
        target_edges: np.ndarray | None,
        n_threads: int,
    ) -> None:
        self._tree = tree
        self._leaves = leaves
        self._table = table
        self._columns = table.values
        self._y = np.ascontiguousarray(y, dtype=np.float64 if n_classes is None else np.int32)
        self._n_classes = n_classes
        self._target_edges = target_edges
        self._n_threads = n_threads
        self._missing_of: dict[int, np.ndarray | None] = {}

    def sketches(self) -> TreeSketches:
        """Sketches of all nodes."""
        counts, mean, deviation = self._targets()
        n_rows = counts.sum(axis=1)
        return TreeSketches(
            counts,
            None if mean is None else mean,
            None if mean is None else deviation,
            self._densities(n_rows),
            self._scatters(n_rows),
        )

    def _targets(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """How the targets of each node's rows are spread."""
        leaves, parent = self._leaves, self._tree.parent
        if self._n_classes is not None:
            counts, _, _ = count_targets(leaves, parent, self._y, self._n_classes, None)
            return counts, None, None
        assert self._target_edges is not None
        cells = np.searchsorted(self._target_edges[1:-1], self._y, side="left").astype(np.int32)
        return count_targets(leaves, parent, cells, len(self._target_edges) - 1, self._y)

    # --- nodes that split on one feature ---

    def _densities(self, n_rows: np.ndarray) -> Densities:
        """Where rows lie on the axes of the nodes they pass."""
        tree = self._tree
        is_coded = np.array([feature.is_categorical for feature in self._table.features])
        has_axis = (tree.feature >= 0) & (tree.second_feature < 0)
        has_codes = has_axis & is_coded[tree.feature]
        axes = self._axes(has_axis & ~has_codes, n_rows)
        n_cells = axes.n_cells()
        edges, edge_start = axes.inner_edges(n_cells)
        n_cells[has_codes] = np.diff(tree.piece_start)[has_codes]
        cell_start = starts(np.where(has_axis, n_cells + 1, 0))
        n_visits = len(self._leaves) + int(n_rows[has_axis].sum())
        y, n_threads = self._y, threads_for(n_visits, self._n_threads)
        if self._n_classes is None:
            # On a grid sums are exact, in whatever order threads make them.
            y = on_grid(y, exact_unit(bound_of_sum(y)))
        counts, totals, least, greatest = count_cells(
            self._columns,
            self._leaves,
            tree.parent,
            tree.feature,
            edge_start,
            edges,
            cell_start,
            None if self._n_classes is None else y,
            y if self._n_classes is None else None,
            self._n_classes or 1,
            n_threads,
        )
        kept = totals if self._n_classes is None else None
        return Densities(axes, cell_start, counts, kept, least, greatest)

    def _axes(self, has_axis: np.ndarray, n_rows: np.ndarray) -> Axes:
        """How to part the axes of ordered features."""
        tree = self._tree
        pieces = np.diff(tree.piece_start)
        # All bounds of a node's pieces but the last, which is infinite, are thresholds.
        is_threshold = np.repeat(has_axis, pieces)
        is_threshold[tree.piece_start[1:][pieces > 0] - 1] = False
        threshold_start = starts(np.where(has_axis, pieces - 1, 0))
        thresholds = tree.piece_upper[is_threshold]
        laid_out = lay_out_axes(
            self._columns,
            self._leaves,
            tree.parent,
            np.where(has_axis, tree.feature, -1).astype(np.int32),
            hash_limits(n_rows, RANGE_ROWS),
            threshold_start,
            thresholds,
            threads_for(len(self._leaves), self._n_threads),
        )
        return Axes(*laid_out, threshold_start, thresholds)

    # --- nodes that split on a pair ---

    def _scatters(self, n_rows: np.ndarray) -> dict[int, Scatter]:
        """Where rows lie in the planes of nodes that split on a pair."""
        tree = self._tree
        pairs = np.flatnonzero(tree.second_feature >= 0).tolist()
        if not pairs:
            return {}
        first_leaf, order = _rows_by_leaf(tree, self._leaves, n_rows)
        return {
            node: self._scatter(node, order[first_leaf[node] : first_leaf[node] + n_rows[node]])
            for node in pairs
        }

    def _scatter(self, node: int, rows: np.ndarray) -> Scatter:
        """Where a node's rows lie in the plane of its pair."""
        features = self._tree.features_of(node)
        coded = [self._table.features[feature].is_categorical for feature in features]
        known = rows
        for feature in features:
            is_missing = self._missing(feature)
            if is_missing is not None:
                known = known[~is_missing[known]]
        sample = known[first_by_hash(known, RANGE_ROWS)]
        low, high = self._plane(node, finite(self._points(features, sample)))
        drawn = sample[first_by_hash(sample, N_POINTS)]
        with np.errstate(over="ignore"):
            ranges = np.where(coded, 1.0, high - low)
        targets = self._y[drawn]
        if self._n_classes is None:
            targets = np.array([in_digits(target, SUM_DIGITS) for target in targets.tolist()])
        points = in_decimals(finite(self._points(features, drawn)), ranges)
        return Scatter(low, high, points, targets, len(rows) - len(known))

    def _missing(self, feature: int) -> np.ndarray | None:
        """Which rows lack a feature; None if none does."""
        if feature not in self._missing_of:
            is_missing = ~is_known(self._column(feature))
            self._missing_of[feature] = is_missing if is_missing.any() else None
        return self._missing_of[feature]

    def _points(self, features: list[int], rows: np.ndarray) -> np.ndarray:
        return np.stack([self._column(feature)[rows] for feature in features], axis=1)

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

    def _column(self, feature: int) -> np.ndarray:
        column = self._table.columns[feature]
        assert column is not None
        return column


def _rows_by_leaf(
    tree: TreeArrays, leaves: np.ndarray, n_rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows in such an order that each node's stand together, and where each node's start."""
    start = np.zeros(tree.node_count, dtype=np.int64)
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        children = tree.children(node)
        start[children.start : children.stop] = start[node] + starts(
            n_rows[children.start : children.stop - 1]
        )
    # Small numbers are sorted without comparisons.
    rank = np.argsort(np.argsort(start)).astype(np.min_scalar_type(tree.node_count))
    return start, np.argsort(rank[leaves], kind="stable").astype(np.int32)
