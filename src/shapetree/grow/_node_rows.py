"""What a search for pairs asks of whoever holds a node's rows, and the answers from a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.content import hash_contents, hash_numbers
from shapetree._core.grid import sum_grids
from shapetree._core.histogram import Targets
from shapetree._threads import feature_chunks, threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._table import Table
from shapetree.grow._histograms import LocalHistograms

# Rows that hold the same values are kept on one side when a node's rows are halved, unless they
# weigh more than this share of the node: few values could not be halved otherwise.
HEAVY_SHARE = 1 / 32


@dataclass(frozen=True)
class Sample:
    """Some of a node's rows, with their own values.

    Attributes
    ----------
    features : tuple of int
        Those that were asked for.
    columns : Columns
        Numbers, or codes of categories, of each of them.
    targets : Targets
    weights : array of shape (n_rows,)
    content : uint64 array of shape (n_rows,) or None
        The same for rows whose bins are the same in all features of the data; None if nobody asked.
    scale : float
        Weight of the node for each unit of weight here.
    """

    features: tuple[int, ...]
    columns: Columns
    targets: Targets
    weights: np.ndarray
    content: np.ndarray | None
    scale: float

    @property
    def rows(self) -> np.ndarray:
        """Numbers of all rows."""
        return np.arange(self.columns.n_rows, dtype=np.int32)

    def halves(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows of either half and of the other, then the other way round.

        Neither the order of the rows nor how often one is repeated changes them.
        """
        assert self.content is not None
        distinct, number = np.unique(self.content, return_inverse=True)
        weight = np.bincount(number, self.weights, minlength=len(distinct))
        is_heavy = (weight > HEAVY_SHARE * weight.sum())[number]
        one, other = (
            np.flatnonzero(is_heavy | (number % 2 == side)).astype(np.int32) for side in (0, 1)
        )
        return [(one, other), (other, one)]


class NodeRows(Protocol):
    """The rows of one node; their numbers stay with whoever holds them."""

    @property
    def n_rows(self) -> int:
        """How many there are."""

    def histogram(self) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with."""

    def grids(
        self,
        pairs: np.ndarray,
        group_of_bin: np.ndarray,
        n_groups: int,
        *,
        max_rows: int | None = None,
        of_single_features: bool = False,
    ) -> np.ndarray:
        """Sums of channels by the groups of each pair's features.

        Parameters
        ----------
        pairs : int array of shape (n_pairs, 2)
        group_of_bin : uint8 array of shape (total bins,)
        n_groups : int
            All groups are below it.
        max_rows : int, optional
            Most rows to sum, a sample of all.
        of_single_features : bool
            Whether `group_of_bin` speaks of the bins that single features are searched with.

        Returns
        -------
        array of shape (n_pairs, n_groups**2, n_channels)
        """

    def sample(
        self, features: tuple[int, ...], max_rows: int, *, with_content: bool = False
    ) -> Sample:
        """All rows, or so many chosen by a hash of their numbers."""


class TableRows:
    """Rows of a table in memory.

    Parameters
    ----------
    table : Table
    binned : BinnedTable
        Its bins, as the search for shape functions of one feature knows them.
    coarse : BinnedTable
        Bins for the grids: the same, unless these are too many.
    targets : Targets
    weights : array of shape (n_rows,) or None
    n_threads : int
    """

    def __init__(
        self,
        table: Table,
        binned: BinnedTable,
        coarse: BinnedTable,
        targets: Targets,
        weights: np.ndarray | None,
        n_threads: int,
    ) -> None:
        self.columns = Columns(table.columns, table.n_rows)
        self.table = table
        self.binned = binned
        self.coarse = coarse
        self.targets = targets
        self.weights = weights
        self.n_threads = n_threads

    def of(self, rows: np.ndarray) -> TableNodeRows:
        """Some of them."""
        return TableNodeRows(self, rows)


class TableNodeRows:
    """Some rows of a table in memory, as `NodeRows` has it."""

    def __init__(self, holder: TableRows, rows: np.ndarray) -> None:
        self._holder = holder
        self._rows = rows

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self._rows)

    def histogram(self) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with."""
        holder = self._holder
        return LocalHistograms(holder.coarse, holder.targets, holder.n_threads).build(self._rows)

    def grids(
        self,
        pairs: np.ndarray,
        group_of_bin: np.ndarray,
        n_groups: int,
        *,
        max_rows: int | None = None,
        of_single_features: bool = False,
    ) -> np.ndarray:
        """Sums of channels by the groups of each pair's features."""
        holder = self._holder
        rows = self._rows if max_rows is None else self._choose(max_rows)
        binned = holder.binned if of_single_features else holder.coarse
        cells = np.empty((len(pairs), n_groups**2, holder.targets.n_channels))
        n_threads = threads_for(len(rows) * len(pairs), holder.n_threads)
        for first, last in feature_chunks(len(pairs), len(rows)):
            sum_grids(
                binned.columns, holder.targets, rows, binned.offsets, group_of_bin, n_groups,
                pairs[first:last], cells[first:last], n_threads,
            )  # fmt: skip
        return cells

    def sample(
        self, features: tuple[int, ...], max_rows: int, *, with_content: bool = False
    ) -> Sample:
        """All rows, or so many chosen by a hash of their numbers."""
        holder = self._holder
        rows = self._choose(max_rows)
        columns = [holder.table.columns[feature] for feature in features]
        values = [column[rows] for column in columns if column is not None]
        weights = np.ones(len(rows)) if holder.weights is None else holder.weights[rows]
        scale = 1.0
        if len(rows) < len(self._rows):
            everything = (
                len(self._rows) if holder.weights is None else holder.weights[self._rows].sum()
            )
            scale = float(everything / weights.sum())
        return Sample(
            features,
            Columns(values, len(rows)),
            holder.targets.take(rows),
            weights,
            hash_contents(holder.coarse.columns, rows) if with_content else None,
            scale,
        )

    def _choose(self, max_rows: int) -> np.ndarray:
        if len(self._rows) <= max_rows:
            return self._rows
        chosen = np.argpartition(hash_numbers(self._rows), max_rows)[:max_rows]
        return self._rows[np.sort(chosen)]
