"""Rows held in memory."""

from __future__ import annotations

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import build_cells, build_histograms, sum_nodes
from shapetree._core.rows import NodeRows, spreads_of
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._table import Table
from shapetree.data._targets import Goal, RegressionGoal, medians_of
from shapetree.grow._pairs import cuts_of
from shapetree.grow._rows import Histograms
from shapetree.grow._splits import BinSplit, Split

# Moving a row to its branch takes as long as so many visits by features.
VISITS_PER_MOVE = 4


class LocalRows:
    """Binned rows in memory, and which of them are at which node.

    Parameters
    ----------
    table : Table
        The rows' own values, which splits on pairs read.
    binned : BinnedTable
    goal : Goal
        What the rows add to sums.
    n_threads : int
    rows : int32 array, optional
        Rows that are at the root, each as often as it counts; by default every row once.
    """

    def __init__(
        self,
        table: Table,
        binned: BinnedTable,
        goal: Goal,
        n_threads: int,
        rows: np.ndarray | None = None,
    ) -> None:
        self._table = table
        self._values = Columns(table.columns, table.n_rows)
        self._binned = binned
        self._goal = goal
        self._n_threads = n_threads
        self._offsets = binned.offsets
        self._places = NodeRows(binned.n_rows, rows)

    @property
    def binned(self) -> BinnedTable:
        """The rows' bins."""
        return self._binned

    @property
    def values(self) -> Columns:
        """The rows' own values."""
        return self._values

    @property
    def goal(self) -> Goal:
        """What the rows add to sums."""
        return self._goal

    @property
    def places(self) -> NodeRows:
        """Which rows are at which node."""
        return self._places

    @property
    def n_threads(self) -> int:
        """Number of threads to use."""
        return self._n_threads

    @property
    def n_rows(self) -> int:
        """Number of rows at the root."""
        return len(self._places.order)

    def _ranges(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._places.start[nodes], self._places.stop[nodes]

    def rows_of(self, node: int) -> np.ndarray:
        """Numbers of a node's rows."""
        return self._places.order[self._places.start[node] : self._places.stop[node]]

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        return sum_nodes(self._goal.targets, self._places.order, *self._ranges(nodes))

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        goal = self._goal
        assert isinstance(goal, RegressionGoal)
        return spreads_of(
            self._places, nodes, goal.y, goal.standardised, goal.weights, centres,
            goal.is_absolute, goal.spread_unit,
        )  # fmt: skip

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        goal = self._goal
        assert isinstance(goal, RegressionGoal)
        each = [self.rows_of(node) for node in nodes.tolist()]
        weights = goal.weights
        return np.array(
            [medians_of(goal.y[rows], None if weights is None else weights[rows]) for rows in each]
        )

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        starts, stops = self._ranges(nodes)
        n_rows = int((stops - starts).sum())
        n_threads = threads_for(n_rows * (last - first), self._n_threads)
        columns, targets, order = self._binned.columns, self._goal.targets, self._places.order
        if sparse:
            cells = build_cells(
                columns, targets, order, starts, stops, self._offsets, first, last, n_threads
            )
            return Histograms(first, last, None, cells)
        n_bins = self._offsets[last] - self._offsets[first]
        sums = np.empty((len(nodes), n_bins, targets.n_channels))
        build_histograms(
            columns, targets, order, starts, stops, self._offsets, sums, first, last, n_threads
        )
        return Histograms(first, last, sums)

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        starts, stops = self._ranges(nodes)
        singles = [split if isinstance(split, BinSplit) else None for split in splits]
        self._places.split(
            self._binned.columns,
            nodes,
            first_child,
            np.array([split.n_branches for split in splits], dtype=np.int32),
            np.array([single.feature if single else -1 for single in singles], dtype=np.int32),
            [single.branch_of_bin if single else None for single in singles],
            [None if isinstance(s, BinSplit) else cuts_of(s.cuts, self._values) for s in splits],
            threads_for(VISITS_PER_MOVE * int((stops - starts).sum()), self._n_threads),
        )
