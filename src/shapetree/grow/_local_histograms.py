"""Node histograms: who sums them, and sibling histograms by subtraction."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from shapetree._core.histogram import Targets, build_histogram
from shapetree._threads import feature_chunks, threads_for
from shapetree.data._binning import BinnedTable


class HistogramSource(Protocol):
    """Whoever sums statistics over rows: this process, a file reader, a cluster.

    A histogram has shape (total bins, channels), see `shapetree._core.histogram`.
    """

    def build(self, rows: np.ndarray) -> np.ndarray:
        """Histogram of the given rows."""
        ...


class LocalHistograms:
    """Sums histograms over rows held in memory."""

    def __init__(self, table: BinnedTable, targets: Targets, n_threads: int) -> None:
        self._columns = table.columns
        self._targets = targets
        self._offsets = table.offsets
        self._n_threads = n_threads

    def build(self, rows: np.ndarray) -> np.ndarray:
        """Histogram of the given rows."""
        n_features = len(self._offsets) - 1
        histogram = np.empty((self._offsets[-1], self._targets.n_channels))
        for first, last in feature_chunks(n_features, len(rows)):
            build_histogram(
                self._columns, self._targets, rows, self._offsets, histogram, first, last,
                threads_for(len(rows) * n_features, self._n_threads),
            )  # fmt: skip
        return histogram


def histograms_of_children(
    source: HistogramSource,
    parent: np.ndarray | None,
    children: list[np.ndarray],
    wanted: list[bool],
) -> list[np.ndarray | None]:
    """Histograms of the children that are wanted, the largest by subtraction where that is cheaper.

    Parameters
    ----------
    source : HistogramSource
    parent : array or None
        The parent's histogram, if it was kept; it is overwritten.
    children : list of arrays
        Rows of each child.
    wanted : list of bool
        Which children need a histogram.
    """
    sizes = [len(rows) for rows in children]
    largest = int(np.argmax(sizes))
    only_to_subtract = sum(size for size, want in zip(sizes, wanted, strict=True) if not want)
    if parent is None or not wanted[largest] or only_to_subtract >= sizes[largest]:
        return [
            source.build(rows) if want else None
            for rows, want in zip(children, wanted, strict=True)
        ]
    histograms: list[np.ndarray | None] = []
    for i, rows in enumerate(children):
        if i == largest:
            histograms.append(parent)
        else:
            histogram = source.build(rows)
            parent -= histogram
            histograms.append(histogram if wanted[i] else None)
    return histograms
