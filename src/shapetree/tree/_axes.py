"""How the axis of a node is parted into cells, where its rows are known by bins of its feature."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapetree._core.pieces import thresholds_between
from shapetree.data._binning import FeatureBins
from shapetree.data._columns import GREATEST, MAX_EXACT

# Cells of an axis, and spans with rows up to which each has a cell of its own.
N_CELLS = 36
MAX_DISTINCT = 24
# Share of the rows at either end that do not stretch an axis: they lie in cells beyond those of
# equal width, if they are many.
TAIL = 0.01
# Where so much of a range holds half of the rows, cells of equal ratio show more than equal widths.
CROWDED = 0.1
# Distinct whole numbers up to which each has a cell, and a bar, of its own; they are smaller than
# those that floats have gaps between.
MAX_WHOLE = 30


@dataclass(frozen=True, eq=False)
class Spans:
    """Bins of an ordered feature, of which neighbours may be joined: the finest cells there are."""

    # Bounds of each among the numbers that bins were made of, ascending. Shape (n_spans,).
    least: np.ndarray
    greatest: np.ndarray
    ends: tuple[float, float]  # the least and the greatest of all numbers
    is_whole: bool  # whether all numbers are whole

    @cached_property
    def low(self) -> np.ndarray:
        """The least number of each, infinite ones as the greatest finite."""
        low = finite(self.least)
        # Bins are made of a sample, if there are many rows.
        low[:1] = self.ends[0]
        return low

    @cached_property
    def high(self) -> np.ndarray:
        """The greatest number of each, infinite ones as the greatest finite."""
        high = finite(self.greatest)
        high[-1:] = self.ends[1]
        return high


def spans_of_bins(
    bins: FeatureBins, ends: tuple[float, float], is_whole: bool
) -> tuple[Spans, np.ndarray]:
    """A span for each bin, and the span of each bin; that of missing values comes last."""
    assert bins.low is not None
    assert bins.high is not None
    return Spans(bins.low, bins.high, ends, is_whole), np.arange(bins.n_bins + 1, dtype=np.int32)


def joined_spans(spans: Spans, thresholds: np.ndarray, at_most: int) -> tuple[Spans, np.ndarray]:
    """Join neighbours until there are few, and what becomes of each; no threshold parts them."""
    n_spans = len(spans.least)
    is_first = np.zeros(n_spans, dtype=bool)
    is_first[np.linspace(0, n_spans, at_most, endpoint=False).astype(np.int64)] = True
    parted = np.searchsorted(spans.low, thresholds, side="right")
    is_first[parted[parted < n_spans]] = True
    is_last = np.append(is_first[1:], True)
    joined = Spans(spans.least[is_first], spans.greatest[is_last], spans.ends, spans.is_whole)
    return joined, np.append(np.cumsum(is_first) - 1, len(joined.least)).astype(np.int32)


def axis_of(spans: Spans, n_rows: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Edges of the cells of an axis, ascending, given the rows of each span.

    A cell holds the numbers above its lower and up to its upper edge. No span with rows lies on
    both sides of an edge, so that rows may be counted by spans. All thresholds are edges.
    """
    held = np.flatnonzero(n_rows)
    low, high = spans.low[held], spans.high[held]
    if spans.is_whole and np.array_equal(low, high):
        numbers = _few_whole_numbers(spans, low)
        if numbers is not None:
            return _edges_of_whole_numbers(numbers, thresholds)
    inner = np.union1d(thresholds, _inner_edges(low, high, n_rows[held], thresholds))
    return _closed(inner, low, high)


def cell_of_spans(spans: Spans, edges: np.ndarray) -> np.ndarray:
    """The cell that each span lies in; infinite numbers lie above the greatest finite one."""
    return np.searchsorted(edges[1:-1], spans.least, side="left")


def _few_whole_numbers(spans: Spans, held: np.ndarray) -> np.ndarray | None:
    """All whole numbers between two ends, or those that are held; None if they are many."""
    low, high = spans.ends
    if not (low > -MAX_EXACT and high < MAX_EXACT):
        return None
    found = np.arange(low, high + 1) if high - low < MAX_WHOLE else held
    return found if 0 < len(found) <= MAX_WHOLE else None


def _edges_of_whole_numbers(numbers: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """The cell of a number ends with it, so the axis tells which number it stands for."""
    inner = np.union1d(numbers, thresholds)
    first, last = stretched(float(inner[0]), float(inner[-1]), 1.0)
    return np.concatenate([[first], inner, [last]])


def _inner_edges(
    low: np.ndarray, high: np.ndarray, n_rows: np.ndarray, thresholds: np.ndarray
) -> np.ndarray:
    """Edges between spans with rows, where no threshold parts them already."""
    gaps = np.arange(1, len(low))  # gap i lies below span i
    if len(low) > MAX_DISTINCT:
        gaps = _even_gaps(low, high, n_rows, thresholds)
    taken = np.searchsorted(low, thresholds, side="right")
    gaps = np.setdiff1d(gaps, taken)
    return thresholds_between(high[gaps - 1], low[gaps])


def _even_gaps(
    low: np.ndarray, high: np.ndarray, n_rows: np.ndarray, thresholds: np.ndarray
) -> np.ndarray:
    """Gaps that are nearest to where cells of equal width or ratio would meet."""
    n_before = np.cumsum(n_rows)
    tail = TAIL * n_before[-1]
    first = int(np.searchsorted(n_before, tail, side="right"))
    last = int(np.searchsorted(n_before, n_before[-1] - tail, side="left"))
    a = float(np.append(thresholds, low[first]).min())
    b = float(np.append(thresholds, high[last]).max())
    places = high[:-1] / 2 + low[1:] / 2
    shares = np.linspace(0.0, 1.0, N_CELLS + 1)[1:-1]
    if a > 0 and 2 * n_rows[low <= a + CROWDED * (b - a)].sum() >= n_before[-1]:
        first_log, length = math.log(a), math.log(b) - math.log(a)
        parted = (np.log(thresholds) - first_log) / length
        wanted = np.exp(first_log + length * _away_from(parted, shares))
    else:
        # Quarters, so that no difference overflows.
        parted = (thresholds / 4 - a / 4) / (b / 4 - a / 4)
        wanted = 4 * (a / 4 + (b / 4 - a / 4) * _away_from(parted, shares))
    after = np.clip(np.searchsorted(places, wanted), 1, len(places) - 1)
    after -= wanted / 2 - places[after - 1] / 2 < places[after] / 2 - wanted / 2
    tails = [first] * (first > 0) + [last + 1] * (last + 1 < len(low))
    return np.union1d(after + 1, np.array(tails, dtype=np.int64))


def _away_from(thresholds: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Places on an axis from 0 to 1 that leave some room for a cell beside each threshold."""
    distance = np.abs(shares[:, None] - thresholds[None, :]).min(axis=1, initial=1.0)
    return shares[distance >= 0.5 / N_CELLS]


def _closed(inner: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Edges that reach as far as the rows; all cells have some room, with rows or without."""
    known = np.unique(np.concatenate([low, high, inner]))
    if len(known) == 0:
        return np.array([-0.5, 0.5])
    first, last = float(known[0]), float(known[-1])
    margin = max(abs(first), 1.0) / 2 if len(known) == 1 else _median_gap(known)
    wider = stretched(first, last, margin)
    # A span's own ends are edges, but a single number, or a segment without rows, needs some room.
    if len(low) == 0 or low[0] == high[0] or inner[:1].tolist() == [first]:
        first = wider[0]
    if len(high) == 0 or low[-1] == high[-1] or inner[-1:].tolist() == [last]:
        last = wider[1]
    return np.concatenate([[first], inner, [last]])


def _median_gap(known: np.ndarray) -> float:
    """A gap between numbers that half of all are not wider than."""
    gaps = np.sort(known[1:] / 2 - known[:-1] / 2)
    return 2 * float(gaps[len(gaps) // 2])


def stretched(low: float, high: float, margin: float) -> tuple[float, float]:
    """A wider range, if only by a rounding error, of finite numbers."""
    low = min(low - margin, math.nextafter(low, -GREATEST))
    high = max(high + margin, math.nextafter(high, GREATEST))
    return max(low, -GREATEST), min(high, GREATEST)


def finite(values: np.ndarray | Sequence[float]) -> np.ndarray:
    """Numbers as float64, infinite ones as the greatest finite ones; NaN stays."""
    return np.clip(np.asarray(values, dtype=np.float64), -GREATEST, GREATEST)
