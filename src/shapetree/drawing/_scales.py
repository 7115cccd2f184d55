"""Axes that tell the truth: where numbers lie on them, and what is written below."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapetree.data._moments import DateKind
from shapetree.drawing._date_ticks import end_dates, round_dates
from shapetree.drawing._ticks import (
    VISIBLE,
    distinct,
    end_labels,
    round_numbers,
    round_powers,
    share_of,
    threshold_labels,
)
from shapetree.tree._view import NodeView

SCALES = ("auto", "linear", "log", "quantile")
# By default, an axis is logarithmic if half of the rows lie in this share of its range, and the
# range spans at least this ratio.
CROWDED, LEAST_RATIO = 0.1, 20.0
# An end of an axis is cut short if it holds at most this share of the rows and is longer than this
# multiple of the rest. It is then drawn this long, behind a break in the axis.
FEW_ROWS, LONG, CUT_LENGTH = 0.03, 1.0, 0.07
# Minimum width of a segment on an axis of quantiles, where it may have no rows.
LEAST_SHARE = 0.01
GREATEST = 1e300


def check_scale(scale: object) -> None:
    """Refuse anything that is not a scale."""
    if scale not in SCALES:
        raise ValueError(f"scale must be 'auto', 'linear', 'log' or 'quantile', got {scale!r}")


@dataclass(frozen=True, eq=False)
class Scale:
    """The axis of a node that splits on an ordered feature.

    Attributes
    ----------
    kind : {"linear", "log", "quantile"}
    edges : array of shape (n_cells + 1,)
        Bounds of the cells that rows are counted in.
    positions : array of shape (n_cells + 1,)
        Where these lie, from 0 to 1.
    broken_at : tuple of int
        Edges where the axis is broken: what lies beyond, towards its end, is not true to scale.
    thresholds : list of float
        Where the segments of the shape function meet.
    ends : tuple of two floats
        The least and the greatest number of the rows.
    date : {"day", "time", "utc"} or None
        Whether the numbers are moments in time, which are labelled as dates.
    """

    kind: str
    edges: np.ndarray
    positions: np.ndarray
    broken_at: tuple[int, ...]
    thresholds: list[float]
    ends: tuple[float, float]
    date: DateKind | None = None

    def place(self, value: float) -> float:
        """Where a number lies, from 0 to 1; numbers beyond the axis lie at its ends."""
        cell = int(np.clip(np.searchsorted(self.edges, value) - 1, 0, len(self.edges) - 2))
        low, high = self.edges[cell : cell + 2].tolist()
        start, end = self.positions[cell : cell + 2].tolist()
        if self.kind == "log" and low > 0:
            share = share_of(math.log(max(value, low)), math.log(low), math.log(high))
        else:
            share = share_of(value, low, high)
        return start + share * (end - start)

    @cached_property
    def threshold_labels(self) -> list[str]:
        """What is written at the thresholds."""
        return threshold_labels(self.thresholds, self.date)

    @property
    def end_labels(self) -> list[tuple[float, str]]:
        """Places and labels of the least and of the greatest number."""
        low, high = self.ends
        if self.date is not None:
            texts = end_dates(low, high, self.date)
        else:
            texts = end_labels(low, high, self._slack)
        labels = list(zip(map(self.place, self.ends), texts, strict=True))
        return labels if low < high else labels[:1]

    def ticks(self, at_most: int) -> list[tuple[float, str]]:
        """Places and labels of some round numbers."""
        low, high = self._unbroken
        if self.date is not None:
            dates = round_dates(low, high, at_most)
            return [(self.place(moment), label) for moment, label in dates]
        if self.kind == "log":
            marks = round_powers(low, high, at_most)
        else:
            marks = round_numbers(low, high, at_most)
        return [(self.place(m), label) for m, label in zip(marks, distinct(marks), strict=True)]

    @property
    def breaks(self) -> list[float]:
        """Places where the axis is broken."""
        return [float(self.positions[edge]) for edge in self.broken_at]

    @property
    def _slack(self) -> tuple[float, float]:
        """Distances from either end that are too small to be seen."""
        lengths, shares = np.diff(self.edges / 4), np.diff(self.positions)
        drawn = np.flatnonzero((lengths > 0) & (shares > 0))
        if len(drawn) == 0:
            return 0.0, 0.0
        low, high = drawn[[0, -1]]
        with np.errstate(over="ignore"):
            slack = 4 * VISIBLE * (lengths / np.maximum(shares, VISIBLE**4))
        return float(slack[low]), float(slack[high])

    @property
    def _unbroken(self) -> tuple[float, float]:
        """The part of the axis that is true to scale, without what no row reaches."""
        middle = len(self.edges) / 2
        first = max((edge for edge in self.broken_at if edge < middle), default=0)
        last = min((edge for edge in self.broken_at if edge > middle), default=-1)
        low, high = float(self.edges[first]), float(self.edges[last])
        return max(low, self.ends[0]), min(high, self.ends[1])


def scale_of(node: NodeView, scale: str) -> Scale:
    """The axis of a node that splits on an ordered feature."""
    density, date = node.density, node.features[0].date
    assert density is not None
    edges, n_rows = density.edges, density.n_rows
    assert edges is not None
    thresholds = [segment.high for segment in node.segments[:-1]]
    ends = density.ends or (float(edges[0]), float(edges[-1]))
    if scale == "quantile" and n_rows.any():
        positions = _by_rows(edges, n_rows, thresholds)
        return Scale("quantile", edges, positions, (), thresholds, ends, date)
    # The logarithm of a date would depend on the year that counting starts from.
    is_log = scale == "log" and not date and _is_positive(edges, n_rows, thresholds)
    if scale == "auto" and not date:
        is_log = _is_crowded(edges, n_rows, thresholds)
    positions, breaks = _true_to_scale(edges, n_rows, thresholds, is_log)
    kind = "log" if is_log else "linear"
    return Scale(kind, edges, positions, breaks, thresholds, ends, date)


def _inner(edges: np.ndarray, n_rows: np.ndarray, thresholds: list[float]) -> tuple[int, int]:
    """First and last edge of the part that cannot be cut short: most rows and all thresholds."""
    ends = np.searchsorted(edges, [thresholds[0], thresholds[-1]]) if thresholds else (1, 0)
    few = FEW_ROWS * n_rows.sum()
    below = np.concatenate([[0], np.cumsum(n_rows)])
    above = below[-1] - below
    first = int(np.searchsorted(below, few, side="right")) - 1
    last = len(edges) - int(np.searchsorted(above[::-1], few, side="right"))
    # If there are cells beyond the thresholds, some of them are drawn true to scale.
    first = min(first, max(int(ends[0]) - 1, 0)) if thresholds else first
    last = max(last, min(int(ends[1]) + 1, len(edges) - 1)) if thresholds else last
    if first == 0 and ends[0] == 1 and below[1] <= few:
        first = 1
    if last == len(edges) - 1 and ends[1] == last - 1 and above[-2] <= few:
        last -= 1
    return (first, last) if first < last else (0, len(edges) - 1)


def _is_positive(edges: np.ndarray, n_rows: np.ndarray, thresholds: list[float]) -> bool:
    """Whether all of an axis, except what can be cut short, is positive."""
    return bool(edges[_inner(edges, n_rows, thresholds)[0]] > 0)


def _is_crowded(edges: np.ndarray, n_rows: np.ndarray, thresholds: list[float]) -> bool:
    """Whether most rows would be crowded near the low end of a linear axis."""
    first, last = _inner(edges, n_rows, thresholds)
    low, high = float(edges[first]), float(edges[last])
    if not (low > 0 and LEAST_RATIO * low <= high < GREATEST):
        return False
    counted = np.concatenate([[0], np.cumsum(n_rows[first:last])])
    close = np.interp(low + CROWDED * (high - low), edges[first : last + 1], counted)
    return bool(counted[-1] and 2 * close >= counted[-1])


def _true_to_scale(
    edges: np.ndarray, n_rows: np.ndarray, thresholds: list[float], is_log: bool
) -> tuple[np.ndarray, tuple[int, ...]]:
    """Positions of edges, and the edges where the axis is broken because few rows lie beyond."""
    first, last = _inner(edges, n_rows, thresholds)
    # Quarters, so that no difference overflows.
    heights = np.log(np.maximum(edges, np.finfo(float).tiny)) if is_log else edges / 4
    lengths = np.diff(heights)
    body, ends = lengths[first:last].sum(), (slice(0, first), slice(last, None))
    breaks = []
    for edge, end in zip((first, last), ends, strict=True):
        has_no_logarithm = is_log and edge == first and edges[0] <= 0
        if lengths[end].sum() > LONG * body or has_no_logarithm:
            lengths[end] *= CUT_LENGTH * body / lengths[end].sum()
            breaks.append(edge)
    positions = np.concatenate([[0.0], np.cumsum(lengths)])
    positions = positions / positions[-1] if positions[-1] > 0 else np.linspace(0, 1, len(edges))
    positions[-1] = 1.0
    return positions, tuple(breaks)


def _by_rows(edges: np.ndarray, n_rows: np.ndarray, thresholds: list[float]) -> np.ndarray:
    """Positions by the number of rows, adjusted so that every segment can be seen."""
    shares = n_rows / n_rows.sum()
    segment = np.searchsorted(thresholds, edges[1:])  # of each cell
    for which in range(len(thresholds) + 1):
        cells = np.flatnonzero(segment == which)
        lacking = LEAST_SHARE - shares[cells].sum()
        if len(cells) and lacking > 0:
            shares[cells] += lacking / len(cells)
    positions = np.concatenate([[0.0], np.cumsum(shares)])
    return np.asarray(positions / positions[-1])


@dataclass(frozen=True)
class TargetScale:
    """The range of a numeric target.

    Attributes
    ----------
    low, high : float
        What histograms and colours distinguish.
    is_cut : tuple of two bools
        Whether there are targets below and above that.
    """

    low: float
    high: float
    is_cut: tuple[bool, bool]

    @property
    def labels(self) -> tuple[str, str]:
        """What is written at either end."""
        low, high = end_labels(self.low, self.high)
        return ("≤ " * self.is_cut[0] + low, "≥ " * self.is_cut[1] + high)

    def share(self, target: float) -> float:
        """Where a target lies, from 0 to 1."""
        return share_of(target, self.low, self.high)


def target_scale(edges: np.ndarray) -> TargetScale:
    """The range of a target with cells between these edges; the outer cells may be longer."""
    lengths = np.diff(edges / 4)
    step = lengths[1:-1].mean()
    first, last = (abs(length / step - 1) > 1e-6 for length in (lengths[0], lengths[-1]))
    return TargetScale(
        float(edges[int(first)]), float(edges[-1 - int(last)]), (bool(first), bool(last))
    )
