"""Rows held in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import singledispatch

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.grid import sum_grids
from shapetree._core.histogram import Targets, build_cells, build_histograms, sum_nodes
from shapetree._core.rows import NodeRows, spreads_of
from shapetree._core.sampling import hash_contents, places_up_to, row_hashes
from shapetree._core.search import BinSplit
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._sampling import first_by_hash
from shapetree.data._sums import exact_sums
from shapetree.data._table import Table
from shapetree.data._targets import Goal, RegressionGoal, medians_of
from shapetree.grow._rows import HeldRows, Histograms, Result, Sample
from shapetree.grow._splits import PairSplit, Split, cuts_of

# Moving a row to its branch takes as long as this many visits by features.
VISITS_PER_MOVE = 4
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
    binned : BinnedTable
    goal : Goal
        What the rows add to sums.
    n_threads : int
    coarse : BinnedTable, optional
        Bins that pairs are screened with, if `binned` has too many.
    rows : int32 array, optional
        Rows that are at the root, each as often as it counts; by default every row once.
    first_row : int
        Number of the first row in the whole data, if this is a part of it.
    """

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
        self._table = table
        self._values = table.values
        self._binned = binned
        self._coarse = binned if coarse is None else coarse
        self._first_row = first_row
        self._goal = goal
        self._n_threads = n_threads
        self._offsets = binned.offsets
        self._places = NodeRows(binned.n_rows, rows)

    def placed(self, places: NodeRows) -> LocalRows:
        """The same rows at other nodes."""
        rows = copy(self)
        rows._places = places
        return rows

    def at_roots(self, draws: Sequence[np.ndarray]) -> LocalRows:
        """The same rows, those that are drawn for several trees at the roots of these.

        Parameters
        ----------
        draws : sequence of int32 arrays
            Numbers of rows in the whole data, ascending, each as often as it is drawn.
        """
        first, last = self._first_row, self._first_row + self._binned.n_rows
        own = [rows[slice(*np.searchsorted(rows, [first, last]))] for rows in draws]
        sizes = np.array([len(rows) for rows in own])
        return self.placed(NodeRows(self._binned.n_rows, np.concatenate(own) - first, sizes))

    def with_goal(self, goal: Goal) -> LocalRows:
        """The same rows for another goal."""
        rows = copy(self)
        rows._goal = goal
        return rows

    def in_order(self, order: np.ndarray) -> LocalRows:
        """The same rows, row order[i] numbered i; their values stay where they are."""
        rows, given = copy(self), self._binned.columns
        # Copied first, and moved then: that is faster than to index.
        columns = Columns([given.array(f).copy() for f in range(given.n_columns)], len(order))
        columns.reorder(order, self._n_threads)
        rows._binned = rows._coarse = replace(self._binned, columns=columns)
        rows._goal = self._goal.reordered(order)
        return rows

    @property
    def binned(self) -> BinnedTable:
        """The rows' bins."""
        return self._binned

    @property
    def coarse(self) -> BinnedTable:
        """The bins that pairs are screened with."""
        return self._coarse

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

    @property
    def is_far(self) -> bool:
        """Rows are at hand: asking for sums is cheap."""
        return False

    @property
    def call_bytes(self) -> int:
        """Bytes of histograms that one call should ask for at most."""
        return min(max(CALL_BYTES, CALL_BYTES_PER_ROW * self.n_rows), MAX_CALL_BYTES)

    def together(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Results of jobs, one after another: nothing is won by asking them at once."""
        return [job() for job in jobs]

    def _ranges(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._places.start[nodes], self._places.stop[nodes]

    def _threads_of(self, nodes: np.ndarray, n_visits: int = 1) -> int:
        """Threads worth starting for a number of visits to every row of some nodes."""
        n_threads = self._n_threads
        if n_threads == 1 or threads_for(n_visits * self.n_rows, n_threads) == 1:
            return 1  # whichever nodes these are
        starts, stops = self._ranges(nodes)
        return threads_for(n_visits * int((stops - starts).sum()), n_threads)

    def rows_of(self, node: int) -> np.ndarray:
        """Numbers of a node's rows."""
        return self._places.order[self._places.start[node] : self._places.stop[node]]

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        places = self._places.order, *self._ranges(nodes)
        return sum_nodes(self._goal.targets, *places, self._threads_of(nodes))

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        goal = self._goal
        assert isinstance(goal, RegressionGoal)
        return spreads_of(
            self._places, nodes, goal.y, goal.standardised, goal.weights, centres,
            goal.is_absolute, goal.spread_unit, self._threads_of(nodes),
        )  # fmt: skip

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
        assert isinstance(self._goal, RegressionGoal)
        y = self._goal.standardised
        return [
            (y[self.rows_of(node)], weights) for node, (_, weights) in zip(nodes, each, strict=True)
        ]

    def _targets_of(self, node: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Targets and weights of a node's rows."""
        goal, rows = self._goal, self.rows_of(node)
        assert isinstance(goal, RegressionGoal)
        return goal.y[rows], None if goal.weights is None else goal.weights[rows]

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        starts, stops = self._ranges(nodes)
        n_threads = self._threads_of(nodes, last - first)
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
        self._places.split(
            self._binned.columns,
            nodes,
            first_child,
            np.array([split.n_branches for split in splits], dtype=np.int32),
            [
                (split.feature, split.branch_of_bin)
                if isinstance(split, BinSplit)
                else cuts_of(split.cuts, self._values)
                for split in splits
            ],
            self._threads_of(nodes, VISITS_PER_MOVE),
        )

    def at(self, node: int, n_rows: int) -> LocalRowsOfNode:
        """The rows of one node."""
        return self.some(self.rows_of(node), self._goal.targets, self._goal.weights)

    def some(
        self,
        rows: np.ndarray,
        targets: Targets,
        weights: np.ndarray | None,
        in_order: bool = False,
    ) -> LocalRowsOfNode:
        """Some of the rows, with targets of their own; see `LocalRowsOfNode`."""
        return LocalRowsOfNode(
            self._table, self._values, self._binned, self._coarse, rows, self._first_row,
            targets, weights, in_order, self._n_threads,
        )  # fmt: skip


@singledispatch
def hold_rows(
    binned: BinnedTable, table: Table, goal: Goal, n_threads: int, coarse: BinnedTable | None
) -> HeldRows:
    """Whoever has binned rows, ready to be asked; every kind of table registers its own way."""
    return LocalRows(table, binned, goal, n_threads, coarse=coarse)


@dataclass(frozen=True)
class LocalRowsOfNode:
    """Some rows in memory, as a search for pairs sees them.

    Attributes
    ----------
    table : Table
    values : Columns
        Its columns.
    binned, coarse : BinnedTable
        Bins of single features, and those that pairs are screened with.
    rows : int32 array
        Numbers of the rows.
    first_row : int
        Number of row 0 in the whole of the data.
    targets : Targets
    weights : array or None
    in_order : bool
        Whether targets and weights are those of `rows` alone, in their order.
    n_threads : int
    """

    table: Table
    values: Columns
    binned: BinnedTable
    coarse: BinnedTable
    rows: np.ndarray
    first_row: int
    targets: Targets
    weights: np.ndarray | None
    in_order: bool
    n_threads: int

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.rows)

    def size(self) -> int:
        """The same, as an answer that several holders add up."""
        return self.n_rows

    def totals(self) -> np.ndarray:
        """Sums of channels."""
        if self.in_order:
            return self.targets.totals(np.arange(self.n_rows, dtype=np.int32))
        return self.targets.totals(self.rows)

    def histogram(self, own_bins: bool = False) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with, or all features'."""
        binned = self.binned if own_bins else self.coarse
        offsets, n_features = binned.offsets, len(binned.features)
        sums = np.empty((1, int(offsets[-1]), self.targets.n_channels))
        ends = np.array([0]), np.array([self.n_rows])
        n_threads = threads_for(self.n_rows * n_features, self.n_threads)
        build_histograms(
            binned.columns, self.targets, self.rows, *ends, offsets, sums, 0, n_features,
            n_threads, self.in_order,
        )  # fmt: skip
        return sums[0]

    def grids(
        self,
        pairs: np.ndarray,
        group_of_bin: np.ndarray,
        n_groups: int,
        max_rows: int | None = None,
        greatest_hash: int | None = None,
    ) -> np.ndarray:
        """Sums of channels by the groups of each pair's features.

        A sample may be given by the greatest hash of its rows, too.
        """
        places = self._places(max_rows)
        if greatest_hash is not None:
            places = places_up_to(self.rows, self.first_row, greatest_hash)
        rows = self.rows if places is None else self.rows[places]
        targets = self.targets if places is None else self._targets_at(places)
        in_order = self.in_order or places is not None
        cells = np.empty((len(pairs), n_groups**2, targets.n_channels))
        n_threads = threads_for(len(rows) * len(pairs), self.n_threads)
        sum_grids(
            self.coarse.columns, targets, rows, self.coarse.offsets, group_of_bin, n_groups, pairs,
            cells, n_threads, in_order,
        )  # fmt: skip
        return cells

    def sample(
        self, features: tuple[int, ...], max_rows: int, binned: tuple[int, ...] | None = None
    ) -> Sample:
        """All rows, or a number of them chosen by a hash of their numbers."""
        places = self._places(max_rows)
        if places is None:
            places = np.arange(self.n_rows, dtype=np.int32)
        scale = 1.0
        if len(places) < self.n_rows:
            if self.weights is None:
                scale = float(self.n_rows / len(places))
            else:
                scale = float(self._all_weights().sum() / self._weights_at(places).sum())
        return self._sample_at(places, features, binned, scale)

    def _sample_at(
        self,
        places: np.ndarray,
        features: tuple[int, ...],
        binned: tuple[int, ...] | None,
        scale: float,
    ) -> Sample:
        rows = self.rows[places]
        columns = [self.table.columns[feature] for feature in features]
        weights = np.ones(len(rows)) if self.weights is None else self._weights_at(places)
        return Sample(
            features,
            Columns([column[rows] for column in columns if column is not None], len(rows)),
            Columns([self.binned.columns.array(f)[rows] for f in binned or ()], len(rows)),
            self._targets_at(places),
            weights,
            None if binned is None else hash_contents(self.coarse.columns, rows),
            scale,
        )

    def hashes(self, size: int, greatest_hash: int) -> np.ndarray:
        """The smallest hashes of the rows' numbers, `size` of them at most, up to the greatest."""
        places = places_up_to(self.rows, self.first_row, greatest_hash)
        hashes = row_hashes(self.rows[places].astype(np.int64) + self.first_row)
        return hashes if len(hashes) <= size else np.partition(hashes, size - 1)[:size]

    def sample_up_to(
        self, features: tuple[int, ...], binned: tuple[int, ...] | None, greatest_hash: int
    ) -> tuple[Sample, float]:
        """The rows with hashes up to the greatest, and the weight of all rows."""
        places = places_up_to(self.rows, self.first_row, greatest_hash)
        whole = self.n_rows if self.weights is None else self._all_weights().sum()
        return self._sample_at(places, features, binned, 1.0), float(whole)

    def branch_counts(self, split: Split) -> np.ndarray:
        """Rows in each branch of a split."""
        if isinstance(split, PairSplit):
            n_threads = threads_for(VISITS_PER_MOVE * self.n_rows, self.n_threads)
            branches = cuts_of(split.cuts, self.values).branches(self.rows, n_threads)
        else:
            codes = self.binned.columns.array(split.feature)[self.rows]
            branches = split.branch_of_bin[codes]
        if self.targets.n_channels > self.targets.n_stats:  # a row may count as several
            places = np.arange(self.n_rows, dtype=np.int32) if self.in_order else self.rows
            return self.targets.totals_by(places, branches, split.n_branches)[:, -1]
        return np.array([np.count_nonzero(branches == b) for b in range(split.n_branches)])

    def _places(self, max_rows: int | None) -> np.ndarray | None:
        """Which of the rows a sample holds; None for all."""
        if max_rows is None or self.n_rows <= max_rows:
            return None
        return first_by_hash(self.rows, max_rows, self.first_row, self.n_threads)

    def _targets_at(self, places: np.ndarray) -> Targets:
        return self.targets.take(places if self.in_order else self.rows[places])

    def _all_weights(self) -> np.ndarray:
        return self._weights_at(np.arange(self.n_rows, dtype=np.int32))

    def _weights_at(self, places: np.ndarray) -> np.ndarray:
        assert self.weights is not None
        return self.weights[places if self.in_order else self.rows[places]]
