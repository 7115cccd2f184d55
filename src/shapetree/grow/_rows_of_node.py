"""The rows of one node: what a search for pairs asks of them, and what a part answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.grid import BinGroups, sum_grids
from shapetree._core.histogram import Targets, build_histograms
from shapetree._core.pieces import PairCuts
from shapetree._core.sampling import hash_contents, row_hashes
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import Inquiry, Join, Question, Then, add
from shapetree.data._sampling import GREATEST_HASH, hash_limits, places_up_to
from shapetree.data._table import Table
from shapetree.grow._splits import PairSplit, Split

# Moving a row to its branch takes as long as this many visits by features.
VISITS_PER_MOVE = 4
# Rows that hold the same values are kept on one side when a node's rows are halved, unless they
# weigh more than this share of the node: few values could not be halved otherwise.
HEAVY_SHARE = 1 / 32
# Rows of either half to fit on and of the other to see what that is worth.
Halving = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Sample:
    """Some of a node's rows, with their own values.

    Attributes
    ----------
    features : tuple of int
        Those that were asked for.
    columns : Columns
        Numbers, or codes of categories, of each of them.
    bins : Columns
        Bins of further features that were asked for.
    weights : array of shape (n_rows,)
    content : uint64 array of shape (n_rows,) or None
        The same for rows with the same bins in all features of the data; None if not asked for.
    scale : float
        Weight of the node for each unit of weight here.
    """

    features: tuple[int, ...]
    columns: Columns
    bins: Columns
    targets: Targets
    weights: np.ndarray
    content: np.ndarray | None
    scale: float

    @property
    def rows(self) -> np.ndarray:
        """Numbers of all rows."""
        return np.arange(self.columns.n_rows, dtype=np.int32)

    def halvings(self, n_ways: int) -> Iterator[Halving]:
        """Ways to halve the rows, independent of each other.

        Neither the order of the rows nor how often one is repeated changes them.
        """
        assert self.content is not None
        distinct, number = np.unique(self.content, return_inverse=True)
        weight = np.bincount(number, self.weights, minlength=len(distinct))
        is_heavy = (weight > HEAVY_SHARE * weight.sum())[number]
        keys = distinct.view(np.int64)
        for _ in range(n_ways):
            # Every other one by the hashes of contents, then by the hashes of these.
            keys = row_hashes(keys).view(np.int64)
            side = np.empty(len(distinct), dtype=np.int32)
            side[np.argsort(keys)] = np.arange(len(distinct)) % 2
            one, other = (
                np.flatnonzero(is_heavy | (side[number] == half)).astype(np.int32)
                for half in (0, 1)
            )
            yield (one, other), (other, one)


@dataclass(frozen=True)
class RowsOfNode:
    """The rows of one node, local or remote; what is asked of them is an `Inquiry`.

    Attributes
    ----------
    at : function
        Makes a `LocalRowsOfNode` of what is asked: a part of the rows, or all.
    n_rows : int
        How many there are.
    """

    at: Callable[..., Any]
    n_rows: int

    @classmethod
    def counted(cls, at: Callable[..., Any]) -> Inquiry[RowsOfNode]:
        """The rows that a function gets at, whose number is not known."""
        return cls(at, int((yield Question(Then(at, LocalRowsOfNode.size), add))))

    def _ask(self, of: Callable[..., Any], join: Join = add) -> Inquiry[Any]:
        return (yield Question(Then(self.at, of), join))

    def totals(self) -> Inquiry[np.ndarray]:
        """Sums of channels."""
        return (yield from self._ask(LocalRowsOfNode.totals))

    def histogram(self, own_bins: bool = False) -> Inquiry[np.ndarray]:
        """Sums of channels by bin, over the bins that pairs are screened with, or all features'."""
        return (yield from self._ask(partial(LocalRowsOfNode.histogram, own_bins=own_bins)))

    def grids(
        self,
        pairs: np.ndarray,
        groups: BinGroups,
        max_rows: int | None = None,
    ) -> Inquiry[np.ndarray]:
        """Sums of channels by the groups of each pair's features.

        Parameters
        ----------
        pairs : int array of shape (n_pairs, 2)
        max_rows : int, optional
            Most rows to sum, a sample of all.

        Returns
        -------
        array of shape (n_pairs, n_groups**2, n_channels)
        """
        of = partial(
            LocalRowsOfNode.grids,
            pairs=pairs,
            groups=groups,
            greatest_hash=(yield from self._greatest_hash(max_rows)),
        )
        return (yield from self._ask(of))

    def sample(
        self, features: tuple[int, ...], max_rows: int, binned: tuple[int, ...] | None = None
    ) -> Inquiry[Sample]:
        """All rows, or a number of them chosen by a hash of their numbers.

        Parameters
        ----------
        features : tuple of int
            Features whose own values are wanted.
        binned : tuple of int, optional
            Features whose bins are wanted, and with them a hash of every row's content.
        """
        greatest = yield from self._greatest_hash(max_rows)
        of = partial(
            LocalRowsOfNode.sample, features=features, binned=binned, greatest_hash=greatest
        )
        sample, weight = yield from self._ask(of, join_samples)
        assert isinstance(sample, Sample)
        if greatest is not None:
            sample = replace(sample, scale=float(weight / sample.weights.sum()))
        return sample

    def branch_counts(self, split: Split) -> Inquiry[np.ndarray]:
        """Rows in each branch of a split."""
        return (yield from self._ask(partial(LocalRowsOfNode.branch_counts, split=split)))

    def _greatest_hash(self, size: int | None) -> Inquiry[int | None]:
        """The greatest hash of the `size` rows whose hashes are smallest; None for all rows."""
        if size is None or self.n_rows <= size:
            return None
        join = partial(join_hashes, size)
        # Of rows up to twice the limit, there are nearly always enough.
        limit = int(hash_limits(np.array([self.n_rows]), 2 * size)[0])
        hashes = partial(LocalRowsOfNode.hashes, size=size)
        found = yield from self._ask(partial(hashes, greatest_hash=limit), join)
        if len(found) < size:
            found = yield from self._ask(partial(hashes, greatest_hash=GREATEST_HASH), join)
        return int(found.max())


@dataclass(frozen=True)
class LocalRowsOfNode:
    """Some rows in memory, as a search for pairs sees them.

    Attributes
    ----------
    values : Columns
        Its columns.
    binned, coarse : BinnedTable
        Bins of single features, and those that pairs are screened with.
    rows : int32 array
        Numbers of the rows.
    first_row : int
        Number of row 0 in the whole of the data.
    weights : array or None
    in_order : bool
        Whether targets and weights are those of `rows` alone, in their order.
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
        """The same, as an answer."""
        return self.n_rows

    def totals(self) -> np.ndarray:
        """Sums of channels."""
        if self.in_order:
            return self.targets.totals(np.arange(self.n_rows, dtype=np.int32))
        return self.targets.totals(self.rows)

    def histogram(self, own_bins: bool = False) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with, or all features'."""
        binned = self.binned if own_bins else self.coarse
        n_threads = threads_for(self.n_rows * len(binned.features), self.n_threads)
        about = self.targets, self.rows, n_threads, self.in_order
        return sums_by_bin(binned.columns, binned.offsets, *about)

    def grids(
        self,
        pairs: np.ndarray,
        groups: BinGroups,
        greatest_hash: int | None,
    ) -> np.ndarray:
        """Sums of channels by the groups of each pair's features, over rows up to a hash."""
        rows, targets, in_order = self.rows, self.targets, self.in_order
        if greatest_hash is not None:
            places = self._places_up_to(greatest_hash)
            rows, targets, in_order = rows[places], self._targets_at(places), True
        n_threads = threads_for(len(rows) * len(pairs), self.n_threads)
        columns, offsets = self.coarse.columns, self.coarse.offsets
        cells = sum_grids(columns, targets, rows, offsets, groups, pairs, n_threads, in_order)
        return np.asarray(cells)

    def hashes(self, size: int, greatest_hash: int) -> np.ndarray:
        """The smallest hashes of the rows' numbers, `size` of them at most, up to the greatest."""
        places = self._places_up_to(greatest_hash)
        hashes = row_hashes(self.rows[places].astype(np.int64) + self.first_row)
        return hashes if len(hashes) <= size else np.partition(hashes, size - 1)[:size]

    def sample(
        self, features: tuple[int, ...], binned: tuple[int, ...] | None, greatest_hash: int | None
    ) -> tuple[Sample, float]:
        """The rows with hashes up to the greatest, or all, and the weight of all rows."""
        if greatest_hash is None:
            places = np.arange(self.n_rows, dtype=np.int32)
        else:
            places = self._places_up_to(greatest_hash)
        rows = self.rows[places]
        columns = [self.table.columns[feature] for feature in features]
        weights, whole = np.ones(len(rows)), float(self.n_rows)
        if self.weights is not None:
            of_all = self.weights if self.in_order else self.weights[self.rows]
            weights, whole = of_all[places], float(of_all.sum())
        sample = Sample(
            features,
            Columns([column[rows] for column in columns if column is not None], len(rows)),
            Columns([self.binned.columns.array(f)[rows] for f in binned or ()], len(rows)),
            self._targets_at(places),
            weights,
            None if binned is None else hash_contents(self.coarse.columns, rows),
            1.0,
        )
        return sample, whole

    def branch_counts(self, split: Split) -> np.ndarray:
        """Rows in each branch of a split."""
        if isinstance(split, PairSplit):
            n_threads = threads_for(VISITS_PER_MOVE * self.n_rows, self.n_threads)
            branches = PairCuts(self.values, split.cuts).branches(self.rows, n_threads)
        else:
            codes = self.binned.columns.array(split.feature)[self.rows]
            branches = split.branch_of_bin[codes]
        if self.targets.n_channels > self.targets.n_stats:  # a row may count as several
            places = np.arange(self.n_rows, dtype=np.int32) if self.in_order else self.rows
            return self.targets.totals_by(places, branches, split.n_branches)[:, -1]
        return np.array([np.count_nonzero(branches == b) for b in range(split.n_branches)])

    def _places_up_to(self, greatest_hash: int) -> np.ndarray:
        """Which of the rows a sample holds."""
        return places_up_to(self.rows, self.first_row, greatest_hash)

    def _targets_at(self, places: np.ndarray) -> Targets:
        return self.targets.take(places if self.in_order else self.rows[places])


def sums_by_bin(
    columns: Columns,
    offsets: np.ndarray,
    targets: Targets,
    rows: np.ndarray,
    n_threads: int = 1,
    in_order: bool = False,
) -> np.ndarray:
    """Sums of the channels of some rows by the bins of columns, (total bins, n_channels).

    `in_order` says whether targets stand in the rows' order.
    """
    sums = np.empty((1, int(offsets[-1]), targets.n_channels))
    ends, features = (np.array([0]), np.array([len(rows)])), (0, columns.n_columns)
    build_histograms(columns, targets, rows, *ends, offsets, sums, *features, n_threads, in_order)
    return sums[0]


# --- how answers are joined ---


def join_hashes(size: int, answers: list[np.ndarray]) -> np.ndarray:
    """The smallest of all hashes, `size` of them at most."""
    hashes = np.concatenate(answers)
    return hashes if len(hashes) <= size else np.partition(hashes, size - 1)[:size]


def join_samples(answers: list[tuple[Sample, float]]) -> tuple[Sample, float]:
    """Samples of rows that follow each other, and the weight of the rows they are from."""
    samples = [sample for sample, _ in answers]
    first, n_rows = samples[0], sum(len(sample.rows) for sample in samples)

    def joined(name: str, n_columns: int) -> Columns:
        arrays = [[getattr(each, name).array(i) for each in samples] for i in range(n_columns)]
        return Columns([np.concatenate(of_parts) for of_parts in arrays], n_rows)

    contents = [sample.content for sample in samples if sample.content is not None]
    sample = Sample(
        first.features,
        joined("columns", first.columns.n_columns),
        joined("bins", first.bins.n_columns),
        Targets.joined([each.targets for each in samples]),
        np.concatenate([each.weights for each in samples]),
        np.concatenate(contents) if contents else None,
        1.0,
    )
    return sample, sum(weight for _, weight in answers)
