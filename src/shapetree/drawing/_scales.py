"""Axes of numbers and dates: linear, logarithmic or by quantiles, with breaks and ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from shapetree.data._columns import MAX_EXACT
from shapetree.data._moments import DateKind
from shapetree.drawing._ticks import (
    VISIBLE,
    distinct,
    end_dates,
    end_labels,
    round_dates,
    round_numbers,
    round_powers,
    share_of,
    threshold_labels,
)
from shapetree.tree._axes import MAX_WHOLE
from shapetree.tree._sketch import Density
from shapetree.tree._view import NodeView

# Whole numbers that are written below an axis.
MOST_VALUES = 12
# Share of an axis that the bar of a whole number needs to be seen.
NARROWEST = 1 / 120
SCALES = ("auto", "linear", "log", "quantile")
# By default, an axis is logarithmic if half of the rows lie in this share of its range, and the
# range spans at least this ratio.
CROWDED, LEAST_RATIO = 0.1, 20.0
# An end of an axis is cut short if it holds at most this share of the rows and is longer than this
# multiple of the rest. It is then drawn this long, behind a break in the axis.
FEW_ROWS, LONG, CUT_LENGTH = 0.03, 1.0, 0.07
# Minimum width of a segment on an axis of quantiles, where it may have no rows.
LEAST_SHARE = 0.01
# Numbers from here on are not drawn on a logarithmic axis.
BEYOND_LOG = 1e300


def check_scale(scale: object) -> None:
    """Refuse anything that is not a scale."""
    if scale not in SCALES:
        raise ValueError(f"scale must be 'auto', 'linear', 'log' or 'quantile', got {scale!r}")


@dataclass(frozen=True, eq=False)
class Scale:
    """The axis of a node that splits on an ordered feature."""

    kind: str  # "linear", "log" or "quantile"
    edges: np.ndarray  # bounds of the cells that rows are counted in
    positions: np.ndarray  # where these lie, from 0 to 1
    # Edges where the axis is broken: what lies beyond, towards its end, is not true to scale.
    broken_at: tuple[int, ...]
    thresholds: list[float]  # where the segments of the shape function meet
    threshold_labels: list[str]
    ends: tuple[float, float]  # the least and the greatest number of the rows
    date: DateKind | None  # whether the numbers are moments in time, which are labelled as dates
    # The few whole numbers that there are, each of which has a cell around it; segments then meet
    # halfway between two of them. None if cells follow each other.
    values: list[float] | None

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
        if self.values is not None:
            marks = self.values[:: math.ceil(len(self.values) / MOST_VALUES)]
        elif self.kind == "log":
            marks = round_powers(low, high, at_most)
        else:
            marks = round_numbers(low, high, at_most)
        return list(zip(map(self.place, marks), distinct(marks), strict=True))

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
    assert node.density is not None
    assert node.density.edges is not None
    density, values = drawn_density(node), values_of(node)
    date = node.features[0].date if values is None else None
    edges, n_rows = density.edges, density.n_rows
    assert edges is not None
    thresholds = node.thresholds
    labels = threshold_labels(thresholds, date)
    if values is None:
        # The logarithm of a date would depend on the year that counting starts from.
        is_log = scale == "log" and not date and _is_positive(edges, n_rows, thresholds)
        if scale == "auto" and not date:
            is_log = _is_crowded(edges, n_rows, thresholds)
    else:
        thresholds = _meeting_places(_all_values(node, list(values)), thresholds)
        labels = [f"≤ {label}" for label in labels]
        is_log = scale == "log" and edges[0] > 0
    kind = "log" if is_log else "linear"
    breaks: tuple[int, ...] = ()
    if scale == "quantile" and n_rows.any():
        kind, positions = scale, _by_rows(edges, n_rows, thresholds)
    else:
        positions, breaks = _true_to_scale(edges, n_rows, thresholds, is_log)
        if values is not None and np.diff(positions)[n_rows > 0].min() < NARROWEST:
            positions, breaks = _side_by_side(edges, _all_values(node, list(values))), ()
    known = None if values is None else list(values)
    ends = density.ends or (float(node.density.edges[0]), float(node.density.edges[-1]))
    return Scale(kind, edges, positions, breaks, thresholds, labels, ends, date, known)


def values_of(node: NodeView) -> dict[float, int] | None:
    """The few whole numbers of a node's rows, by the cells that they are counted in."""
    density, feature = node.density, node.features[0]
    if density is None or not feature.is_whole or density.edges is None:
        return None
    edges, n_rows = density.edges, density.n_rows
    if (edges[1:-1] != np.floor(edges[1:-1])).any():
        return None
    if np.abs(edges).max() > MAX_EXACT:
        return None
    last = density.ends[1] if density.ends else float(edges[-1])
    found = {
        float(edges[cell + 1]) if cell < len(n_rows) - 1 else last: cell
        for cell in np.flatnonzero(n_rows).tolist()
    }
    return found if 0 < len(found) <= MAX_WHOLE else None


def drawn_density(node: NodeView) -> Density:
    """How a node's rows are spread over the cells that are drawn, by number if these are few."""
    density, values = node.density, values_of(node)
    assert density is not None
    if values is None:
        return density
    edges = _edges_around(node, list(values))
    cell_of = np.searchsorted(edges, list(values)) - 1
    counts = np.zeros((len(edges) - 1, density.counts.shape[1]), dtype=density.counts.dtype)
    counts[cell_of] = density.counts[list(values.values())]
    totals = None
    if density.totals is not None:
        totals = np.zeros(len(counts))
        totals[cell_of] = density.totals[list(values.values())]
    return replace(density, edges=edges, kept=counts, totals=totals)


def _all_values(node: NodeView, values: list[float]) -> list[float]:
    """Whole numbers to make room for: those of the rows, and one in each segment without rows."""
    more = [
        segment.high if segment.low == -math.inf else math.floor(segment.low) + 1.0
        for segment in node.segments
        if not any(segment.low < value <= segment.high for value in values)
    ]
    return sorted({*values, *more})


def _meeting_places(values: list[float], thresholds: list[float]) -> list[float]:
    """Halfway between the numbers on either side of each threshold."""
    after = np.searchsorted(values, thresholds, side="right").tolist()
    return [(values[i - 1] + values[i]) / 2 for i in after]


def _edges_around(node: NodeView, known: list[float]) -> np.ndarray:
    """Bounds of cells around whole numbers, all of the same width, and of what is between them."""
    values = _all_values(node, known)
    half = min((b - a for a, b in pairwise(values)), default=1.0) / 2
    around = [bound for value in values for bound in (value - half, value + half)]
    return np.unique([*around, *_meeting_places(values, node.thresholds)])


def _side_by_side(edges: np.ndarray, values: list[float]) -> np.ndarray:
    """Positions at which all whole numbers have the same room, however far apart they are."""
    half = (edges[np.searchsorted(edges, values[0])] - edges[0]) / 2
    known = [at for value in values for at in (value - half, value + half)]
    slots = [i + side for i in range(len(values)) for side in (0, 1)]
    return np.interp(edges, known, slots) / len(values)


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
    if not (low > 0 and LEAST_RATIO * low <= high < BEYOND_LOG):
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
    """The range of a numeric target."""

    # What histograms and colours distinguish, and whether there are targets below and above that.
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
