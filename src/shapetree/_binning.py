"""Table columns → bins: where a feature may be cut, and which bin each value is in."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from shapetree._core.binning import bin_values, group_values
from shapetree._core.columns import Columns
from shapetree._table import Table


def halfway(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Real numbers t between two sorted values, so that low ≤ t < high.

    The arithmetic mean wherever floating point allows it; infinite values count as the greatest
    finite ones.
    """
    limits = np.finfo(np.float64)
    low, high = np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)
    finite_low, finite_high = np.clip(low, limits.min, None), np.clip(high, None, limits.max)
    middle = 0.5 * finite_low + 0.5 * finite_high
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
    limit = table.n_rows if max_bins is None else max_bins

    def bin_one(j: int) -> tuple[FeatureBins, np.ndarray]:
        column, categories = table.columns[j], table.features[j].categories
        assert column is not None
        if categories is not None:
            return _bin_categories(column, len(categories))
        return _bin_numbers(column, weights, limit)

    indices = range(len(table.features))
    if n_threads == 1 or table.n_rows < 10_000:
        binned = [bin_one(j) for j in indices]
    else:
        binned = _in_threads(bin_one, indices, n_threads)
    return BinnedTable(
        features=tuple(feature for feature, _ in binned),
        columns=Columns([bins for _, bins in binned], table.n_rows),
    )


def _in_threads(task, items: Sequence[int], n_threads: int) -> list:  # type: ignore[no-untyped-def]
    """Run a task that releases the GIL on every item; Ctrl-C drops those not yet begun."""
    pool = ThreadPoolExecutor(n_threads)
    try:
        return list(pool.map(task, items))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _bin_categories(codes: np.ndarray, n_categories: int) -> tuple[FeatureBins, np.ndarray]:
    feature = FeatureBins(n_categories)
    return feature, np.where(codes < 0, n_categories, codes).astype(feature.dtype)


def _bin_numbers(
    column: np.ndarray, weights: np.ndarray | None, max_bins: int
) -> tuple[FeatureBins, np.ndarray]:
    if weights is None:
        ordered = np.sort(column)
        ordered = ordered[: np.searchsorted(ordered, np.nan)]
        low, high = group_values(ordered, None, max_bins)
    else:
        order = np.argsort(column, kind="stable")
        ordered = column[order]
        n_known = np.searchsorted(ordered, np.nan)
        low, high = group_values(ordered[:n_known], weights[order[:n_known]], max_bins)
    feature = FeatureBins(len(low), low, high)
    bins = np.empty(len(column), dtype=feature.dtype)
    bin_values(column, halfway(high[:-1], low[1:]), bins)
    return feature, bins
