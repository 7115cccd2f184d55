"""Table columns → bins: where a feature may be cut, and which bin each value is in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapetree._core.binning import Lookups, bin_columns, find_bins, sort_values
from shapetree._core.columns import Columns
from shapetree._core.histogram import bin_offsets
from shapetree._core.pieces import thresholds_between
from shapetree._threads import VISITS_PER_CALL, threads_for
from shapetree.data._columns import GREATEST
from shapetree.data._sampling import sampled
from shapetree.data._store import Store, room_for
from shapetree.data._table import FeatureInfo, Table, count_taken

# Rows that bins are made from at most; larger tables give a sample.
MAX_BINNED_ROWS = 200_000
# Default number of bins of an ordered feature: with missing ones, they fill a
# byte.
MAX_BINS = 255
# Copies of columns may take this many bytes, or this share of the table.
COPY_BYTES = 4_000_000
COPY_SHARE = 0.08
# Features whose bounds are laid out for a search at a time.
FEATURES_TOGETHER = 256
# Rows that are worth starting threads for.
MIN_ROWS_FOR_THREADS = 10_000


@dataclass(frozen=True)
class FeatureBins:
    """The bins of one feature, without its missing bin, whose number is `n_bins`.

    An ordered feature's bin b holds the values from `low[b]` to `high[b]`; a categorical one's bin
    b is its category b, and it has no bounds. All values of a feature that `is_whole` are whole
    numbers. Where bins are categories with an order of their own, the bounds are their places, and
    `has_places`.
    """

    n_bins: int
    low: np.ndarray | None = None
    high: np.ndarray | None = None
    is_whole: bool = False
    has_places: bool = False

    @property
    def is_categorical(self) -> bool:
        """Whether the bins are categories."""
        return self.low is None

    @property
    def thresholds(self) -> np.ndarray:
        """Thresholds between neighbouring bins of an ordered feature."""
        assert self.low is not None
        assert self.high is not None
        return thresholds_between(self.high[:-1], self.low[1:])

    @property
    def dtype(self) -> np.dtype:
        """The smallest unsigned type that also holds the missing bin."""
        return np.min_scalar_type(self.n_bins)


@dataclass(frozen=True, eq=False)
class BinnedTable:
    """Training data as bins, one array a feature; a store has room for those of parts of it."""

    features: tuple[FeatureBins, ...]
    columns: Columns
    store: Store | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns.n_rows

    def without_order(self) -> BinnedTable:
        """The same, but categories with an order of their own have none."""
        features = [FeatureBins(f.n_bins) if f.has_places else f for f in self.features]
        return replace(self, features=tuple(features))

    def take(self, kept: np.ndarray) -> BinnedTable:
        """Rows that a boolean mask marks, or those of some numbers, in their order."""
        columns = [self.columns.array(number) for number in range(len(self.features))]
        taken = rows_of(columns, kept, self.store)
        return replace(self, columns=Columns(taken, count_taken(kept)))

    @cached_property
    def n_bins(self) -> np.ndarray:
        """Bins of each feature, without the missing bin."""
        return np.array([feature.n_bins for feature in self.features], dtype=np.int64)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each feature's bins start in a histogram, the missing bin last, and the end."""
        return bin_offsets(self.n_bins)

    @cached_property
    def categorical(self) -> np.ndarray:
        """Which features' bins are categories."""
        return np.array([feature.is_categorical for feature in self.features], dtype=bool)


def rows_of(columns: list[np.ndarray], kept: np.ndarray, store: Store | None) -> list[np.ndarray]:
    """The rows of some columns that a boolean mask marks, or those of some numbers."""
    if store is None:
        return [column[kept] for column in columns]
    taken = store.columns(count_taken(kept), [column.dtype for column in columns])
    for room, column in zip(taken, columns, strict=True):
        room[:] = column[kept]
    return taken


@dataclass(frozen=True, eq=False)
class Binning:
    """Where bins begin and end: tables of the same features can be binned by it, part by part.

    `ends` are the thresholds between the bins of an ordered feature; None for other features, and
    if nothing is known about it.
    """

    features: tuple[FeatureBins, ...]
    ends: tuple[np.ndarray | None, ...]

    @property
    def dtypes(self) -> list[np.dtype]:
        """Types that hold the bins of each feature."""
        return [feature.dtype for feature in self.features]

    def bin(self, table: Table, bins: list[np.ndarray], n_threads: int) -> None:
        """Fill in the bins of a table's rows, an array for each feature."""
        known = []
        for j, (feature, ends) in enumerate(zip(self.features, self.ends, strict=True)):
            if ends is not None:
                known.append(j)
            elif table.features[j].is_categorical:
                codes = table.columns[j]
                assert codes is not None
                bins[j][:] = np.where(codes < 0, feature.n_bins, codes)
            else:
                bins[j][:] = 0  # no bin but the missing one
        n_threads = n_threads if table.n_rows >= MIN_ROWS_FOR_THREADS else 1
        for at in range(0, len(known), FEATURES_TOGETHER):
            some = np.array(known[at : at + FEATURES_TOGETHER], dtype=np.int32)
            lookups = Lookups([self.ends[j] for j in some], table.n_rows)
            filled = [bins[j] for j in some]
            # Some rows at a time, so that Ctrl-C does not have to wait for all.
            step = max(1, VISITS_PER_CALL // len(some))
            for start in range(0, table.n_rows, step):
                stop = min(start + step, table.n_rows)
                bin_columns(table.values, some, lookups, filled, start, stop, n_threads)


def bin_table(
    table: Table, weights: np.ndarray | None, max_bins: int | None, n_threads: int
) -> BinnedTable:
    """Bin a table's columns, each on its own.

    Of more than `MAX_BINNED_ROWS` rows a sample decides where bins begin and end; values beyond
    those of the sample fall into the outermost bins, and values between two bins to the nearer one.
    Rows of weight w count as w rows where quantiles are sought. If `max_bins` is None, every
    distinct value of an ordered feature has a bin of its own.
    """
    if max_bins is None:
        return _bin_every_value(table)
    is_sample, known = table.n_rows > MAX_BINNED_ROWS, table.known_sample()
    if known is not None:
        rows, sample = known
        own = None if weights is None else weights[rows]
        binning = find_binning(sample, None, is_sample, own, max_bins, n_threads)
    elif is_sample:
        rows = sampled(0, table.n_rows, table.n_rows, MAX_BINNED_ROWS)
        own = None if weights is None else weights[rows]
        binning = find_binning(table, rows, is_sample, own, max_bins, n_threads)
    else:
        binning = find_binning(table, None, is_sample, weights, max_bins, n_threads)
    bins = room_for(table.store, table.n_rows, binning.dtypes)
    for first, batch in table.read(range(len(table.features)), "binning rows"):
        binning.bin(batch, [column[first : first + batch.n_rows] for column in bins], n_threads)
    n_threads = threads_for(table.n_rows * len(bins), n_threads)
    return BinnedTable(binning.features, Columns(bins, table.n_rows, n_threads), table.store)


def find_binning(
    table: Table,
    rows: np.ndarray | None,
    is_sample: bool,
    weights: np.ndarray | None,
    max_bins: int,
    n_threads: int,
) -> Binning:
    """Find where bins begin and end, by some rows of a table, or by all if `rows` is None.

    If these are a sample, there are others beside them; weights are those of the sample.
    """
    if (table.n_rows if rows is None else len(rows)) < MIN_ROWS_FOR_THREADS:
        n_threads = 1
    ordered = [j for j, feature in enumerate(table.features) if not feature.is_categorical]
    numbers = iter(_number_bins(table, ordered, rows, is_sample, weights, max_bins, n_threads))
    features: list[FeatureBins] = []
    ends: list[np.ndarray | None] = []
    for info in table.features:
        bins, its_ends = (category_bins(info), None) if info.is_categorical else next(numbers)
        features.append(with_wholeness(bins, info.is_whole))
        ends.append(its_ends)
    return Binning(tuple(features), tuple(ends))


def with_wholeness(bins: FeatureBins, is_whole: bool) -> FeatureBins:
    """The bins of a feature whose type is one of whole numbers, if that is what they hold."""
    if not is_whole or bins.low is None or bins.high is None:
        return bins
    ends = np.append(bins.low, bins.high)
    return replace(bins, is_whole=bool((ends == np.floor(ends)).all()))


def _number_bins(
    table: Table,
    ordered: list[int],
    rows: np.ndarray | None,
    is_sample: bool,
    weights: np.ndarray | None,
    max_bins: int,
    n_threads: int,
) -> Iterator[tuple[FeatureBins, np.ndarray | None]]:
    """Bins of ordered columns and the thresholds between them; None if a column has no value."""
    if not ordered:
        return
    columns, n_rows = table.values, table.n_rows if rows is None else len(rows)
    size = _columns_together(columns, ordered, n_rows, max_bins)
    # All threads have as many columns to do.
    size -= size % n_threads if size > n_threads else 0
    for start in range(0, len(ordered), size):
        some = np.array(ordered[start : start + size], dtype=np.int32)
        lows, highs, n_bins = find_bins(columns, some, rows, weights, max_bins, n_threads)
        for i, n in enumerate(n_bins.tolist()):
            feature = FeatureBins(n, lows[i, :n].copy(), highs[i, :n].copy())
            # Unless bins were made of a sample, no value lies between two of them.
            ends = feature.thresholds if is_sample else highs[i, : max(0, n - 1)]
            yield feature, ends if n else None


def _columns_together(columns: Columns, ordered: list[int], n_rows: int, max_bins: int) -> int:
    """Columns to copy at a time: neighbours share cache lines, but copies take memory."""
    itemsize = min(columns.array(j).itemsize for j in ordered)
    allowed = max(COPY_BYTES, COPY_SHARE * columns.n_rows * columns.n_columns * itemsize)
    return max(1, int(allowed) // (8 * n_rows + 16 * min(n_rows, max_bins)))


def category_bins(info: FeatureInfo) -> FeatureBins:
    """A bin for each category."""
    n_categories = len(info.categories or ())
    if not info.is_ordered:
        return FeatureBins(n_categories)
    places = np.arange(n_categories, dtype=np.float64)
    return FeatureBins(n_categories, places, places, has_places=True)


def _bin_every_value(table: Table) -> BinnedTable:
    """Give every distinct value a bin of its own, one feature after another."""
    features: list[FeatureBins] = []
    bins: list[np.ndarray] = []
    for j, info in enumerate(table.features):
        column = table.with_values([j], f"binning {info.name}").columns[j]
        assert column is not None
        if info.is_categorical:
            feature = category_bins(info)
            codes = np.where(column < 0, feature.n_bins, column).astype(feature.dtype)
        else:
            feature, codes = bin_every_number(column)
        features.append(with_wholeness(feature, info.is_whole))
        if table.store is not None:
            (room,) = table.store.columns(table.n_rows, [feature.dtype])
            room[:] = codes
            codes = room
        bins.append(codes)
    return BinnedTable(tuple(features), Columns(bins, table.n_rows), table.store)


def bin_every_number(column: np.ndarray) -> tuple[FeatureBins, np.ndarray]:
    """Give every distinct number a bin of its own: its rank."""
    ordered, rows = sort_values(column)
    # No finite threshold lies between these two, so they are one.
    low = np.where(ordered == -GREATEST, -np.inf, ordered)
    is_new = np.append(True, low[1:] != low[:-1])[: len(ordered)]
    low = high = ordered[is_new]
    if len(low) and low[0] == -np.inf:
        is_last = np.append(is_new[1:], True)
        high = ordered[is_last]
    feature = FeatureBins(len(low), low, high)
    bins = np.full(len(column), feature.n_bins, dtype=feature.dtype)
    bins[rows] = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
    return feature, bins


def part_bins(table: Table, binned: BinnedTable, thresholds: dict[int, np.ndarray]) -> BinnedTable:
    """Part a table's bins at further thresholds of some ordered features, which ascend."""
    features = list(binned.features)
    columns = [binned.columns.array(feature) for feature in range(len(features))]
    for feature, further in thresholds.items():
        bins, column = features[feature], table.columns[feature]
        assert column is not None
        ordered = np.sort(column[~np.isnan(column)]).astype(np.float64)
        cuts = np.union1d(bins.thresholds, further)
        stops = np.searchsorted(ordered, cuts, side="right")
        # A threshold beyond all values, or between two that another parts, makes no bin.
        is_first = np.append(True, stops[1:] != stops[:-1]) & (stops > 0) & (stops < len(ordered))
        cuts, stops = cuts[is_first], stops[is_first]
        lows, highs = ordered[np.append(0, stops)], ordered[np.append(stops, 0) - 1]
        parted = FeatureBins(len(cuts) + 1, lows, highs, bins.is_whole)
        codes = np.searchsorted(cuts, column)
        codes[np.isnan(column)] = parted.n_bins
        features[feature], columns[feature] = parted, codes.astype(parted.dtype)
    return BinnedTable(tuple(features), Columns(columns, table.n_rows))
