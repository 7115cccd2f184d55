"""Sketch a tree: how rows are spread over its nodes, all nodes at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.sketch import count_cells
from shapetree.data._missing import is_known
from shapetree.data._table import Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._sketch import (
    N_POINTS,
    RANGE_ROWS,
    SUM_DIGITS,
    Axis,
    Density,
    NodeSketch,
    Scatter,
    cell_lows,
    drawn_range,
    finite,
    in_decimals,
    in_digits,
    packed,
    scale_axis,
    some,
    starts,
)


def sketch_tree(
    tree: TreeArrays,
    leaves: np.ndarray,
    table: Table,
    y: np.ndarray,
    n_classes: int | None,
    target_edges: np.ndarray | None,
) -> tuple[NodeSketch, ...]:
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
    """
    return _Sketcher(tree, leaves, table, y, n_classes, target_edges).sketches()


@dataclass(frozen=True)
class _NodeRows:
    """Rows in such an order that each node's are `order[start[node] : stop[node]]`."""

    order: np.ndarray
    start: np.ndarray
    stop: np.ndarray

    @classmethod
    def of(cls, tree: TreeArrays, leaves: np.ndarray) -> _NodeRows:
        """Order rows by their leaves, these from the first branch to the last."""
        n_rows = np.bincount(leaves, minlength=tree.node_count).tolist()
        for node in range(tree.node_count - 1, 0, -1):
            n_rows[tree.parent[node]] += n_rows[node]
        start = [0] * tree.node_count
        for node in range(tree.node_count):
            at = start[node]
            for child in tree.children(node):
                start[child] = at
                at += n_rows[child]
        first = np.array(start)
        leaf_nodes = np.flatnonzero(tree.is_leaf)
        # Small numbers are sorted faster.
        rank = np.zeros(tree.node_count, dtype=np.int16 if tree.n_leaves < 2**15 else np.int32)
        rank[leaf_nodes[np.argsort(first[leaf_nodes], kind="stable")]] = np.arange(len(leaf_nodes))
        order = np.argsort(rank[leaves], kind="stable")
        return cls(order, first, first + np.array(n_rows))

    def of_node(self, node: int) -> np.ndarray:
        """A node's rows."""
        return self.order[self.start[node] : self.stop[node]]

    def samples(self, nodes: np.ndarray, size: int) -> np.ndarray:
        """As many rows of each node, spread evenly, some of them more than once if it has fewer."""
        n_rows = (self.stop - self.start)[nodes, None]
        places = self.start[nodes, None] + np.arange(size) * (n_rows - 1) // (size - 1)
        return self.order[places]


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
    ) -> None:
        self._tree = tree
        self._leaves = leaves
        self._table = table
        self._y = np.ascontiguousarray(y, dtype=np.float64 if n_classes is None else np.int32)
        self._n_classes = n_classes
        self._target_edges = target_edges
        self._rows = _NodeRows.of(tree, leaves)

    def sketches(self) -> tuple[NodeSketch, ...]:
        """Sketches of all nodes."""
        densities = self._densities(self._axes())
        is_pair = self._tree.second_feature >= 0
        return tuple(
            NodeSketch(
                sketch.counts,
                sketch.mean,
                sketch.deviation,
                densities[node],
                self._scatter(node) if is_pair[node] else None,
            )
            for node, sketch in enumerate(self._targets())
        )

    # --- targets ---

    def _targets(self) -> list[NodeSketch]:
        """How the targets of each node's rows are spread."""
        tree = self._tree
        of_leaves = self._targets_of_leaves()
        sketches: list[NodeSketch] = [*of_leaves]
        for node in range(tree.node_count - 1, -1, -1):  # children before their parents
            children = tree.children(node)
            if children:
                sketches[node] = reduce(NodeSketch.joined_with, [sketches[c] for c in children])
        return sketches

    def _targets_of_leaves(self) -> list[NodeSketch]:
        """The same for leaves; other nodes have no rows yet."""
        leaves, n_nodes = self._leaves, self._tree.node_count
        if self._n_classes is not None:
            return [NodeSketch(counts) for counts in self._counts(self._y, self._n_classes)]
        assert self._target_edges is not None
        cells = np.searchsorted(self._target_edges[1:-1], self._y, side="left")
        counts = self._counts(cells, len(self._target_edges) - 1)
        with np.errstate(all="ignore"):
            n_rows = np.bincount(leaves, minlength=n_nodes)
            mean = np.bincount(leaves, self._y, minlength=n_nodes) / n_rows
            off = self._y - mean[leaves]
            deviation = np.sqrt(np.bincount(leaves, off * off, minlength=n_nodes) / n_rows)
        moments = zip(counts, mean.tolist(), deviation.tolist(), strict=True)
        return [NodeSketch(*moment) for moment in moments]

    def _counts(self, cells: np.ndarray, n_cells: int) -> np.ndarray:
        """Rows of each leaf by class or cell."""
        flat = self._leaves.astype(np.int64) * n_cells + cells
        counts = np.bincount(flat, minlength=self._tree.node_count * n_cells)
        return counts.reshape(-1, n_cells).astype(np.int32)

    # --- nodes that split on one feature ---

    def _axes(self) -> list[Axis | None]:
        """How to part the axis of each node's feature; None for leaves and pairs."""
        tree = self._tree
        axes: list[Axis | None] = [None] * tree.node_count
        nodes = np.flatnonzero(~tree.is_leaf & (tree.second_feature < 0))
        is_ordered = np.array(
            [not self._table.features[feature].is_categorical for feature in tree.feature[nodes]],
            dtype=bool,
        )
        for node in nodes[~is_ordered].tolist():
            categories = self._table.features[tree.feature[node]].categories
            assert categories is not None
            axes[node] = Axis(None, np.array([len(categories)]), None)
        ordered = nodes[is_ordered]
        samples = self._samples(ordered)
        n_known = np.count_nonzero(~np.isnan(samples), axis=1).tolist()
        for i, node in enumerate(ordered.tolist()):
            thresholds = tree.piece_upper[tree.pieces(node)][:-1]
            axes[node] = scale_axis(samples[i, : n_known[i]], thresholds)
        return axes

    def _samples(self, nodes: np.ndarray) -> np.ndarray:
        """Values of some of each node's rows, ascending, then NaN."""
        samples = np.full((len(nodes), RANGE_ROWS), np.nan)
        has_rows = self._rows.stop[nodes] > self._rows.start[nodes]
        features = self._tree.feature[nodes]
        for feature in np.unique(features).tolist():
            here = np.flatnonzero((features == feature) & has_rows)
            rows = self._rows.samples(nodes[here], RANGE_ROWS)
            samples[here] = finite(self._column(feature)[rows])
        samples.sort(axis=1)
        return samples

    def _densities(self, axes: list[Axis | None]) -> list[Density | None]:
        """Where rows lie on the axes of the nodes they pass."""
        edges, edge_start = _inner_edges(axes)
        cell_start = starts([axis.n_cells + 1 if axis else 0 for axis in axes])
        counts, totals = count_cells(
            Columns(self._table.columns, self._table.n_rows),
            self._leaves,
            self._tree.parent,
            self._tree.feature,
            edge_start,
            edges,
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
            return Density(axis, packed(counts[:-1]), None, counts[-1], None)
        short = np.array([in_digits(total, SUM_DIGITS) for total in totals.tolist()])
        return Density(axis, packed(counts[:-1]), short[:-1], counts[-1], float(short[-1]))

    # --- nodes that split on a pair ---

    def _scatter(self, node: int) -> Scatter:
        """Where rows lie in the plane of a node's pair."""
        tree, rows = self._tree, self._rows.of_node(node)
        features = tree.features_of(node)
        values = np.stack([self._column(feature)[rows] for feature in features], axis=1)
        coded = [self._table.features[feature].is_categorical for feature in features]
        known = np.ones(len(rows), dtype=bool)
        for side in range(2):
            known &= is_known(self._column(features[side])[rows])
        low, high = self._plane(node, finite(values[some(np.flatnonzero(known), RANGE_ROWS)]))
        sample = some(np.flatnonzero(known), N_POINTS)
        with np.errstate(over="ignore"):
            ranges = np.where(coded, 1.0, high - low)
        targets = self._y[rows[sample]]
        if self._n_classes is None:
            targets = np.array([in_digits(target, SUM_DIGITS) for target in targets.tolist()])
        points = in_decimals(finite(values[sample]), ranges)
        return Scatter(low, high, points, targets, int((~known).sum()))

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


def _inner_edges(axes: list[Axis | None]) -> tuple[np.ndarray, np.ndarray]:
    """Edges between the cells of each axis, one after the other, and where each one's start.

    They are those of `Axis.edges`, for all axes at once.
    """
    ordered = [axis for axis in axes if axis is not None and axis.bounds is not None]
    n_cells = [axis.n_cells if axis and axis.bounds is not None else 1 for axis in axes]
    edge_start = starts([n - 1 for n in n_cells])
    if not ordered:
        return np.empty(0), edge_start
    bounds = [axis.bounds for axis in ordered if axis.bounds is not None]
    lows = cell_lows(
        np.concatenate([its[:-1] for its in bounds]),
        np.concatenate([its[1:] for its in bounds]),
        np.concatenate([axis.cells for axis in ordered]),
    )
    return np.delete(lows, starts([axis.n_cells for axis in ordered])[:-1]), edge_start
