"""Rows held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import (
    LevelRows,
    Targets,
    build_cells,
    build_histograms,
    room_for_sums,
    sum_nodes,
)
from shapetree._core.pieces import PairCuts
from shapetree._core.rows import NodeRows, spreads_of
from shapetree._core.search import BinSplit
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import Inquiry, LocalParts, Result, run_inquiries
from shapetree.data._sums import exact_sums
from shapetree.data._table import Table
from shapetree.data._targets import Goal, RegressionGoal, medians_of
from shapetree.grow._row_holder import Histograms
from shapetree.grow._rows_of_node import VISITS_PER_MOVE, LocalRowsOfNode, RowsOfNode
from shapetree.grow._splits import Split

# Bytes of histograms that one call should ask for; with more rows, more nodes share what a pass
# over the columns brings to the cache.
CALL_BYTES = 2**21
MAX_CALL_BYTES = 2**23
CALL_BYTES_PER_ROW = 2


class LocalRows:
    """Binned rows in memory, and which of them are at which node.

    Parameters
    ----------
    table : Table
        The rows' own values, which splits on pairs read.
    goal : Goal
        What the rows add to sums.
    coarse : BinnedTable, optional
        Bins that pairs are screened with, if `binned` has too many.
    rows : int32 array, optional
        Rows that are at the root, each as often as it counts; by default every row once.
    first_row : int
        Number of the first row in the whole data, if this is a part of it.

    Attributes
    ----------
    values : Columns
        The rows' own values.
    places : NodeRows
        Which rows are at which node.
    """

    is_remote = False

    def __init__(
        self,
        table: Table,
        binned: BinnedTable,
        goal: Goal,
        n_threads: int,
        *,
        coarse: BinnedTable | None = None,
        rows: np.ndarray | None = None,
        first_row: int = 0,
    ) -> None:
        self.table = table
        self.values = table.values
        self.binned = binned
        self.coarse = binned if coarse is None else coarse
        self.first_row = first_row
        self.goal = goal
        self.n_threads = n_threads
        self.places = NodeRows(binned.n_rows, rows)
        self._offsets = binned.offsets

    def placed(self, places: NodeRows) -> LocalRows:
        """The same rows at other nodes."""
        rows = copy(self)
        rows.places = places
        return rows

    def at_roots(self, draws: Sequence[np.ndarray]) -> LocalRows:
        """The same rows, those that are drawn for several trees at the roots of these.

        Parameters
        ----------
        draws : sequence of int32 arrays
            Numbers of rows in the whole data, ascending, each as often as it is drawn.
        """
        first, last = self.first_row, self.first_row + self.binned.n_rows
        own = [rows[slice(*np.searchsorted(rows, [first, last]))] for rows in draws]
        sizes = np.array([len(rows) for rows in own])
        return self.placed(NodeRows(self.binned.n_rows, np.concatenate(own) - first, sizes))

    def with_goal(self, goal: Goal) -> LocalRows:
        """The same rows for another goal."""
        rows = copy(self)
        rows.goal = goal
        return rows

    def in_order(self, order: np.ndarray) -> LocalRows:
        """The same rows, row order[i] numbered i; their values stay where they are."""
        rows, given = copy(self), self.binned.columns
        # Copied first, and moved then: that is faster than to index.
        columns = Columns([given.array(f).copy() for f in range(given.n_columns)], len(order))
        columns.reorder(order, self.n_threads)
        rows.binned = rows.coarse = replace(self.binned, columns=columns)
        rows.goal = self.goal.reordered(order)
        return rows

    @property
    def n_rows(self) -> int:
        """Number of rows at the root."""
        return len(self.places.order)

    @property
    def call_bytes(self) -> int:
        """Bytes of histograms that one call should ask for at most."""
        return min(max(CALL_BYTES, CALL_BYTES_PER_ROW * self.n_rows), MAX_CALL_BYTES)

    def run(self, inquiries: Sequence[Inquiry[Result]]) -> list[Result]:
        """Results of inquiries, one after another: nothing is won by asking them at once."""
        return run_inquiries(inquiries, LocalParts([self]), n_at_once=1)

    def _ranges(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.places.start[nodes], self.places.stop[nodes]

    def _threads_of(self, nodes: np.ndarray, n_visits: int = 1) -> int:
        """Threads worth starting for a number of visits to every row of some nodes."""
        n_threads = self.n_threads
        if n_threads == 1 or threads_for(n_visits * self.n_rows, n_threads) == 1:
            return 1  # whichever nodes these are
        starts, stops = self._ranges(nodes)
        return threads_for(n_visits * int((stops - starts).sum()), n_threads)

    def rows_of(self, node: int) -> np.ndarray:
        """Numbers of a node's rows."""
        return self.places.order[self.places.start[node] : self.places.stop[node]]

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        places = self.places.order, *self._ranges(nodes)
        return sum_nodes(self.goal.targets, *places, self._threads_of(nodes))

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        goal = self.goal
        assert isinstance(goal, RegressionGoal)
        return spreads_of(self.places, nodes, goal, centres, self._threads_of(nodes))

    def sums(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Sums of the targets of each node on grids of their own, (n_nodes, n_outputs)."""
        targets = map(self._targets_of, nodes.tolist())
        return np.array([exact_sums(*each, own) for each, own in zip(targets, units, strict=True)])

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        return np.array([medians_of(*self._targets_of(node)) for node in nodes.tolist()])

    def targets_of(
        self, nodes: list[int], standardised: bool
    ) -> list[tuple[np.ndarray, np.ndarray | None]]:
        """Targets of nodes' rows, as they are or centred and scaled, and their weights."""
        each = map(self._targets_of, nodes)
        if not standardised:
            return list(each)
        assert isinstance(self.goal, RegressionGoal)
        y = self.goal.standardised
        return [
            (y[self.rows_of(node)], weights) for node, (_, weights) in zip(nodes, each, strict=True)
        ]

    def _targets_of(self, node: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of a node's rows."""
        goal, rows = self.goal, self.rows_of(node)
        assert isinstance(goal, RegressionGoal)
        return goal.y[rows], None if goal.weights is None else goal.weights[rows]

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        columns, targets = self.binned.columns, self.goal.targets
        if sparse:
            rows = LevelRows(columns, targets, self.places, nodes)
            return Histograms(first, last, rows=rows)
        starts, stops = self._ranges(nodes)
        n_threads = self._threads_of(nodes, last - first)
        n_bins = self._offsets[last] - self._offsets[first]
        sums = room_for_sums(len(nodes), n_bins, targets.n_channels)
        build_histograms(
            columns, targets, self.places.order, starts, stops, self._offsets, sums, first, last,
            n_threads,
        )  # fmt: skip
        return Histograms(first, last, sums)

    def cells(self, nodes: np.ndarray, first: int, last: int) -> Histograms:
        """The same, of bins that hold rows alone."""
        places = self.places.order, *self._ranges(nodes)
        n_threads = self._threads_of(nodes, last - first)
        cells = build_cells(
            self.binned.columns, self.goal.targets, *places, self._offsets, first, last, n_threads
        )
        return Histograms(first, last, cells=cells)

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        self.places.split(
            self.binned.columns,
            nodes,
            first_child,
            np.array([split.n_branches for split in splits], dtype=np.int32),
            [
                (split.feature, split.branch_of_bin)
                if isinstance(split, BinSplit)
                else PairCuts(self.values, split.cuts)
                for split in splits
            ],
            self._threads_of(nodes, VISITS_PER_MOVE),
        )

    def after_split(
        self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]
    ) -> LocalRows:
        """The same rows when they have been sent; these stay where they are."""
        rows = self.placed(self.places.copy())
        rows.split(nodes, first_child, splits)
        return rows

    def at(self, node: int) -> LocalRowsOfNode:
        """The rows of one node."""
        return self.some(self.rows_of(node), self.goal.targets, self.goal.weights)

    def some(
        self,
        rows: np.ndarray,
        targets: Targets,
        weights: np.ndarray | None,
        in_order: bool = False,
    ) -> LocalRowsOfNode:
        """Some of the rows, with targets of their own; see `LocalRowsOfNode`."""
        return LocalRowsOfNode(
            self.table, self.values, self.binned, self.coarse, rows, self.first_row,
            targets, weights, in_order, self.n_threads,
        )  # fmt: skip


def rows_of_node(goal: Goal, node: int, n_rows: int) -> Inquiry[RowsOfNode]:
    """The rows of a node, which count as so many; how many there are is asked if need be."""
    at = partial(LocalRows.at, node=node)
    if goal.counts is None:
        return RowsOfNode(at, n_rows)
    return (yield from RowsOfNode.counted(at))
