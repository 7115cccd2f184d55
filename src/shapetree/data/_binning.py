"""Table columns → bins: where a feature may be cut, and which bin each value is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

import numpy as np

from shapetree._core.binning import SortWorkspace, bin_values, group_values, sort_values
from shapetree._core.columns import Columns
from shapetree.data._table import Table

Item = TypeVar("Item")
Result = TypeVar("Result")

# Columns that are copied together at most: as many numbers as a cache line holds.
MAX_TOGETHER = 8
ROWS_PER_BLOCK = 2048
GREATEST = np.finfo(np.float64).max


def halfway(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Real numbers t between two sorted values, so that low ≤ t < high.

    The arithmetic mean wherever floating point allows it; infinite values count as the greatest
    finite ones.
    """
    middle = 0.5 * np.maximum(low, -GREATEST) + 0.5 * np.minimum(high, GREATEST)
    return np.where((middle >= low) & (middle < high), middle, low)


@dataclass(frozen=True)
class FeatureBins:
    """The bins of one feature, without its missing bin, whose number is `n_bins`.

    An ordered feature's bin b holds the values from `low[b]` to `high[b]`; a categorical one's bin
    b is its category b, and it has no bounds.
    """

    n_bins: int
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def is_categorical(self) -> bool:
        """Whether the bins are categories."""
        return self.low is None

    def threshold_between(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Thresholds halfway between bins `left` and later bins `right`."""
        assert self.low is not None
        assert self.high is not None
        return halfway(self.high[left], self.low[right])

    @property
    def dtype(self) -> np.dtype:
        """The smallest unsigned type that also holds the missing bin."""
        return np.min_scalar_type(self.n_bins)


@dataclass(frozen=True)
class BinnedTable:
    """Training data as bins, one array a feature."""

    features: tuple[FeatureBins, ...]
    columns: Columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns.n_rows

    @property
    def n_bins(self) -> np.ndarray:
        """Bins of each feature, without the missing bin."""
        return np.array([feature.n_bins for feature in self.features], dtype=np.int64)

    @property
    def offsets(self) -> np.ndarray:
        """Where each feature's bins start in a histogram, the missing bin last, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_bins + 1)])

    @property
    def categorical(self) -> np.ndarray:
        """Which features' bins are categories."""
        return np.array([feature.is_categorical for feature in self.features], dtype=bool)


def bin_table(
    table: Table, weights: np.ndarray | None, max_bins: int | None, n_threads: int
) -> BinnedTable:
    """Bin a table's columns, each on its own.

    Parameters
    ----------
    table : Table
    weights : array of shape (n_rows,), optional
        Rows of weight w count as w rows where quantiles are sought.
    max_bins : int or None
        Most bins of an ordered feature; None gives every distinct value its own.
    n_threads : int
    """
    if table.n_rows < 10_000:
        n_threads = 1
    groups = _column_groups(table, n_threads)
    stop = Event()
    needs_order = weights is not None or max_bins is None
    spare_workspaces = [SortWorkspace(table.n_rows, needs_order) for _ in range(n_threads)]

    def bin_some(chosen: slice) -> list[tuple[FeatureBins, np.ndarray]]:
        binned = []
        workspace = spare_workspaces.pop()
        for feature, column in zip(
            table.features[chosen], _contiguous(table.columns[chosen]), strict=True
        ):
            if stop.is_set():
                break
            if feature.categories is None:
                binned.append(_bin_numbers(column, weights, max_bins, workspace))
            else:
                binned.append(_bin_categories(column, len(feature.categories)))
        spare_workspaces.append(workspace)
        return binned

    binned = [pair for some in _in_threads(bin_some, groups, n_threads, stop) for pair in some]
    return BinnedTable(
        features=tuple(feature for feature, _ in binned),
        columns=Columns([bins for _, bins in binned], table.n_rows),
    )


def _column_groups(table: Table, n_threads: int) -> list[slice]:
    """Neighbouring columns to bin together, as many groups for one thread as for another.

    Their copies may take a tenth of a float64 table's memory, and twice that of a float32 table,
    which itself takes half.
    """
    n_features = len(table.features)
    widest = max(column.itemsize for column in table.columns if column is not None)
    n_together = min(MAX_TOGETHER, max(1, 64 * n_features // (10 * n_threads * widest**2)))
    n_groups = n_threads * -(-n_features // (n_threads * n_together))
    bounds = [n_features * group // n_groups for group in range(n_groups + 1)]
    return list(map(slice, bounds[:-1], bounds[1:]))


def _contiguous(columns: list[np.ndarray | None]) -> list[np.ndarray]:
    """Copy strided columns to contiguous ones, a block of rows at a time.

    Columns of a row-major array share cache lines; so each line is read once for all of them.
    """
    given = [column for column in columns if column is not None]
    if len(given) < 2 or all(column.flags.c_contiguous for column in given):
        return given
    copies = [np.empty(len(column), dtype=column.dtype) for column in given]
    for start in range(0, len(given[0]), ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        for copy, column in zip(copies, given, strict=True):
            copy[rows] = column[rows]
    return copies


def _in_threads(
    task: Callable[[Item], Result], items: Sequence[Item], n_threads: int, stop: Event
) -> list[Result]:
    """Run a task that releases the GIL on every item; Ctrl-C drops those not yet begun."""
    if n_threads == 1:
        return [task(item) for item in items]
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            return list(pool.map(task, items))
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _bin_categories(codes: np.ndarray, n_categories: int) -> tuple[FeatureBins, np.ndarray]:
    feature = FeatureBins(n_categories)
    return feature, np.where(codes < 0, n_categories, codes).astype(feature.dtype)


def _bin_numbers(
    column: np.ndarray,
    weights: np.ndarray | None,
    max_bins: int | None,
    workspace: SortWorkspace,
) -> tuple[FeatureBins, np.ndarray]:
    if max_bins is None:
        return _bin_every_number(column, workspace)
    ordered, rows = sort_values(column, weights is not None, workspace)
    low, high = group_values(ordered, None if weights is None else weights[rows], max_bins)
    feature = FeatureBins(len(low), low, high)
    bins = np.zeros(len(column), dtype=feature.dtype)
    if feature.n_bins > 0:  # otherwise all is in the missing bin
        bin_values(column, halfway(high[:-1], low[1:]), bins)
    return feature, bins


def _bin_every_number(
    column: np.ndarray, workspace: SortWorkspace
) -> tuple[FeatureBins, np.ndarray]:
    """Give every distinct number a bin of its own: its rank."""
    ordered, rows = sort_values(column, True, workspace)
    is_new = np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]
    distinct = ordered[is_new].astype(np.float64)
    feature = FeatureBins(len(distinct), distinct, distinct)
    bins = np.full(len(column), len(distinct), dtype=feature.dtype)
    bins[rows] = np.cumsum(is_new) - 1
    return feature, bins


def part_bins(table: Table, binned: BinnedTable, thresholds: dict[int, np.ndarray]) -> BinnedTable:
    """Part bins at further thresholds.

    Parameters
    ----------
    table : Table
    binned : BinnedTable
        The table's bins.
    thresholds : dict
        For some ordered features, thresholds between their values, ascending.
    """
    features = list(binned.features)
    columns = [binned.columns.array(feature) for feature in range(len(features))]
    for feature, further in thresholds.items():
        bins, column = features[feature], table.columns[feature]
        assert bins.low is not None
        assert bins.high is not None
        assert column is not None
        ordered = np.sort(column[~np.isnan(column)]).astype(np.float64)
        cuts = np.union1d(halfway(bins.high[:-1], bins.low[1:]), further)
        stops = np.searchsorted(ordered, cuts, side="right")
        # A threshold beyond all values, or between two that another parts, makes no bin.
        is_first = np.append(True, stops[1:] != stops[:-1]) & (stops > 0) & (stops < len(ordered))
        cuts, stops = cuts[is_first], stops[is_first]
        parted = FeatureBins(
            len(cuts) + 1, ordered[np.append(0, stops)], ordered[np.append(stops, 0) - 1]
        )
        codes = np.searchsorted(cuts, column)
        codes[np.isnan(column)] = parted.n_bins
        features[feature], columns[feature] = parted, codes.astype(parted.dtype)
    return BinnedTable(tuple(features), Columns(columns, table.n_rows))
