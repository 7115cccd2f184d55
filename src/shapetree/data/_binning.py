"""Table columns → bins: where a feature may be cut, and which bin each value is in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from shapetree._core.binning import Lookups, bin_columns, find_bins, sort_values
from shapetree._core.columns import Columns
from shapetree._core.pieces import thresholds_between
from shapetree._threads import VISITS_PER_CALL
from shapetree.data._sampling import sampled
from shapetree.data._table import FeatureInfo, Table

# Rows that bins are made from at most; larger tables give a sample.
MAX_BINNED_ROWS = 200_000
# Copies of columns may take so many bytes, or such a share of the table.
COPY_BYTES = 4_000_000
COPY_SHARE = 0.08
# Features whose bounds are laid out for a search at a time.
FEATURES_TOGETHER = 256
# Rows that are worth starting threads for.
MIN_ROWS_FOR_THREADS = 10_000
GREATEST = np.finfo(np.float64).max


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


@dataclass(frozen=True)
class BinnedTable:
    """Training data as bins, one array a feature."""

    features: tuple[FeatureBins, ...]
    columns: Columns

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.columns.n_rows

    def without_order(self) -> BinnedTable:
        """The same, but categories with an order of their own have none."""
        features = [FeatureBins(f.n_bins) if f.has_places else f for f in self.features]
        return BinnedTable(tuple(features), self.columns)

    def take(self, kept: np.ndarray) -> BinnedTable:
        """Keep the rows that a boolean mask marks."""
        columns = [self.columns.array(number)[kept] for number in range(len(self.features))]
        return BinnedTable(self.features, Columns(columns, int(np.count_nonzero(kept))))

    @cached_property
    def n_bins(self) -> np.ndarray:
        """Bins of each feature, without the missing bin."""
        return np.array([feature.n_bins for feature in self.features], dtype=np.int64)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Where each feature's bins start in a histogram, the missing bin last, and the end."""
        return np.concatenate([[0], np.cumsum(self.n_bins + 1)])

    @cached_property
    def categorical(self) -> np.ndarray:
        """Which features' bins are categories."""
        return np.array([feature.is_categorical for feature in self.features], dtype=bool)


def bin_table(
    table: Table, weights: np.ndarray | None, max_bins: int | None, n_threads: int
) -> BinnedTable:
    """Bin a table's columns, each on its own.

    Of more than `MAX_BINNED_ROWS` rows a sample decides where bins begin and end; values beyond
    those of the sample fall into the outermost bins, and values between two bins to the nearer one.

    Parameters
    ----------
    table : Table
    weights : array of shape (n_rows,), optional
        Rows of weight w count as w rows where quantiles are sought.
    max_bins : int or None
        Most bins of an ordered feature; None gives every distinct value its own.
    n_threads : int
    """
    if table.n_rows < MIN_ROWS_FOR_THREADS:
        n_threads = 1
    features: list[FeatureBins | None] = [None] * len(table.features)
    columns: list[np.ndarray | None] = [None] * len(table.features)
    ordered = []
    for j, (feature, column) in enumerate(zip(table.features, table.columns, strict=True)):
        assert column is not None
        if feature.categories is not None:
            features[j], columns[j] = _bin_categories(column, feature)
        elif max_bins is None:
            features[j], columns[j] = _bin_every_number(column)
        else:
            ordered.append(j)
    if ordered:
        assert max_bins is not None
        source = table.values
        found, ends = _find_bins(source, ordered, weights, max_bins, n_threads)
        bins = _bin_numbers(source, ordered, found, ends, n_threads)
        for j, its_feature, its_bins in zip(ordered, found, bins, strict=True):
            features[j], columns[j] = its_feature, its_bins
    return BinnedTable(
        features=tuple(
            _with_wholeness(bins, feature.is_whole)
            for bins, feature in zip(features, table.features, strict=True)
            if bins is not None
        ),
        columns=Columns(columns, table.n_rows),
    )


def _with_wholeness(bins: FeatureBins, is_whole: bool) -> FeatureBins:
    """The bins of a feature whose type is one of whole numbers, if that is what they hold."""
    if not is_whole or bins.low is None or bins.high is None:
        return bins
    ends = np.append(bins.low, bins.high)
    return replace(bins, is_whole=bool((ends == np.floor(ends)).all()))


def _find_bins(
    columns: Columns,
    ordered: list[int],
    weights: np.ndarray | None,
    max_bins: int,
    n_threads: int,
) -> tuple[list[FeatureBins], list[np.ndarray]]:
    """Bins of ordered columns and thresholds between them, from all rows or from a sample."""
    rows, n_rows = None, columns.n_rows
    if n_rows > MAX_BINNED_ROWS:
        rows = sampled(0, n_rows, n_rows, MAX_BINNED_ROWS)
        n_rows = len(rows)
        weights = None if weights is None else weights[rows]
    size = _columns_together(columns, ordered, n_rows, max_bins)
    found, ends = [], []
    for start in range(0, len(ordered), size):
        some = np.array(ordered[start : start + size], dtype=np.int32)
        lows, highs, n_bins = find_bins(columns, some, rows, weights, max_bins, n_threads)
        for i, n in enumerate(n_bins.tolist()):
            feature = FeatureBins(n, lows[i, :n].copy(), highs[i, :n].copy())
            found.append(feature)
            # Unless bins were made of a sample, no value lies between two of them.
            ends.append(highs[i, : max(0, n - 1)] if rows is None else feature.thresholds)
    return found, ends


def _columns_together(columns: Columns, ordered: list[int], n_rows: int, max_bins: int) -> int:
    """Columns to copy at a time: neighbours share cache lines, but copies take memory."""
    itemsize = min(columns.array(j).itemsize for j in ordered)
    allowed = max(COPY_BYTES, COPY_SHARE * columns.n_rows * columns.n_columns * itemsize)
    return max(1, int(allowed) // (8 * n_rows + 16 * min(n_rows, max_bins)))


def _bin_numbers(
    columns: Columns,
    ordered: list[int],
    found: list[FeatureBins],
    ends: list[np.ndarray],
    n_threads: int,
) -> list[np.ndarray]:
    """Bins of each row in ordered columns."""
    bins = [np.zeros(columns.n_rows, dtype=feature.dtype) for feature in found]
    # A feature of which nothing is known has no bin but the missing one.
    known = [i for i, feature in enumerate(found) if feature.n_bins > 0]
    for at in range(0, len(known), FEATURES_TOGETHER):
        some = known[at : at + FEATURES_TOGETHER]
        chosen = np.array([ordered[i] for i in some], dtype=np.int32)
        lookups = Lookups([ends[i] for i in some], columns.n_rows)
        filled = [bins[i] for i in some]
        # Some rows at a time, so that Ctrl-C need not wait for all.
        step = max(1, VISITS_PER_CALL // len(some))
        for start in range(0, columns.n_rows, step):
            stop = min(start + step, columns.n_rows)
            bin_columns(columns, chosen, lookups, filled, start, stop, n_threads)
    return bins


def _bin_categories(codes: np.ndarray, info: FeatureInfo) -> tuple[FeatureBins, np.ndarray]:
    n_categories = len(info.categories or ())
    feature = FeatureBins(n_categories)
    if info.is_ordered:
        places = np.arange(n_categories, dtype=np.float64)
        feature = FeatureBins(n_categories, places, places, has_places=True)
    return feature, np.where(codes < 0, n_categories, codes).astype(feature.dtype)


def _bin_every_number(column: np.ndarray) -> tuple[FeatureBins, np.ndarray]:
    """Give every distinct number a bin of its own: its rank."""
    ordered, rows = sort_values(column)
    # Nothing finite parts these two, so they are one.
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
