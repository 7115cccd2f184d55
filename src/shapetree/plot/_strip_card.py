"""What the cards of nodes that split on one feature have in common: a strip below the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from shapetree.drawing._ticks import distinct, round_numbers, share_of
from shapetree.plot._canvas import FILLS, Canvas, line_height
from shapetree.plot._card import TICK, Card
from shapetree.plot._colours import DARK, FAINT, GREY
from shapetree.plot._layout import Box
from shapetree.plot._scene import Scene
from shapetree.plot._text_width import width
from shapetree.tree._sketch import Density
from shapetree.tree._view import NodeView

WIDE_BAR = 5.0  # a bar that is wider has some white beside it


class StripCard(Card, ABC):
    """A strip coloured by branch, with the rows' density above it and more below.

    A large card of a numeric target also has the means of the targets, above the density.
    """

    def __init__(self, scene: Scene, node: NodeView, name: str, density: Density | None) -> None:
        super().__init__(scene, node, [name])
        style, self.density = self.style, density
        self.strip_left, self._strip_top = style.pad, self.top + style.density + 1
        self._means: MeansPanel | None = None
        if style.means > 0 and scene.view.classes is None and node.n_rows > 0:
            assert density is not None
            self._means = MeansPanel(density, style.small)
            self.strip_left += self._means.label_width
            self._strip_top += style.means

    @property
    def strip(self) -> Box:
        """The strip, in a card of the present width."""
        top = self._strip_top
        return Box(self.strip_left, top, self.body_right, top + self.style.strip)

    def draw_density(self, bounds: np.ndarray, cells: Sequence[np.ndarray]) -> None:
        """Draw the rows as bars above the strip.

        Bounds of bars are of shape (n_bars, 2); each stands for some cells of the density.
        """
        density = self.density
        if density is None:
            return
        counts = np.array([density.counts[bar].sum(axis=0) for bar in cells], dtype=float)
        counts = counts.reshape(-1, density.counts.shape[1])
        totals = density.totals
        if totals is not None:
            totals = np.array([totals[bar].sum() for bar in cells])
        if self.shows_missing:
            right = self.width - self.style.pad
            bounds = np.vstack([bounds, [right - self.missing_width, right]])
            counts = np.vstack([counts, density.missing[None].astype(float)])
            if totals is not None:
                totals = np.append(totals, density.missing_total or 0.0)
        if not counts.any():
            return
        # The area of a bar, or of a stack of them, shows the number of rows.
        heights = counts / np.maximum(bounds[:, 1] - bounds[:, 0], 1e-9)[:, None]
        heights = heights / heights.sum(axis=1).max() * (self.style.density - 2)
        gap = np.where(bounds[:, 1] - bounds[:, 0] > WIDE_BAR, 0.4, 0.0)
        parted = np.stack([bounds[:, 0] + gap, bounds[:, 1] - gap], axis=1)
        if totals is None:
            self._draw_stacks(parted, heights)
            return
        has_rows = counts[:, 0] > 0
        means = (totals[has_rows] / counts[has_rows, 0]).tolist()
        if self._means is not None:
            strip = self.strip
            bottom = strip.y0 - 1 - self.style.density
            panel = Box(strip.x0, bottom - self.style.means + 4, strip.x1, bottom - 6)
            self._means.draw(self, panel, bounds[has_rows].tolist(), means)
        self._draw_bars(parted[has_rows].tolist(), heights[has_rows, 0].tolist(), means)

    def _draw_stacks(self, bounds: np.ndarray, heights: np.ndarray) -> None:
        """Bars by class; those of a class that touch each other are one shape."""
        base, below = self.strip.y0 - 1, np.zeros(len(bounds))
        for number, colour in enumerate(self.scene.palette.classes):
            above = below + heights[:, number]
            for run in _runs(bounds, above > below):
                x = bounds[run].ravel()
                top, bottom = base - np.repeat(above[run], 2), base - np.repeat(below[run], 2)
                outline = [*zip(x, top, strict=True), *zip(x[::-1], bottom[::-1], strict=True)]
                self.fill([(float(a), float(b)) for a, b in outline], colour)
            below = above

    def _draw_bars(
        self, bounds: list[list[float]], heights: list[float], means: list[float]
    ) -> None:
        """Bars shaded by the mean of the targets in them."""
        base = self.strip.y0 - 1
        for (left, right), height, mean in zip(bounds, heights, means, strict=True):
            bar = Box(left, base - height, right, base)
            self.rectangle(bar, self.scene.shade(mean), width=0.2)

    @abstractmethod
    def place_of(self, value: Any) -> float:
        """Where a value of the feature lies on the strip."""

    def mark_row(self) -> None:
        """Point at the value of the row that is marked, if one is."""
        if self.row is None:
            return
        strip = self.strip
        top, bottom = strip.y0 - self.style.density * 0.75, strip.y1
        if self.lacks_value():
            self.point_at_missing(top, bottom)
        else:
            value = self.row.values[self.node.features[0].name]
            self.point_at(self.place_of(value), top, bottom)


class MeansPanel:
    """Means of a numeric target along a strip, on an axis of their own."""

    def __init__(self, density: Density, size: float) -> None:
        assert density.totals is not None
        counts = np.append(density.counts[:, 0], density.missing[0])
        totals = np.append(density.totals, density.missing_total or 0.0)
        means = totals[counts > 0] / counts[counts > 0]
        low, high = float(means.min()), float(means.max())
        if not low < high:
            low, high = low - abs(low) / 2 - 1, high + abs(high) / 2 + 1
        self._size, self._range = size, (low, high)
        marks = round_numbers(low, high, 4) or [low, high]
        self._ticks = list(zip(marks, distinct(marks), strict=True))
        # Room for the axis on the left.
        self.label_width = max(width(label, size) for _, label in self._ticks) + TICK + 2

    def draw(
        self, canvas: Canvas, area: Box, bounds: list[list[float]], means: list[float]
    ) -> None:
        """Draw the axis, and the mean of every bar."""
        half = line_height(self._size) / 2
        for value, label in self._ticks:
            y, left = self._y(value, area), area.x0 - TICK
            canvas.line([(left, y), (area.x1, y)], FAINT, 0.7, layer=FILLS)
            canvas.text(left - 1, y - half, label, self._size, colour=GREY, align="right")
        for (left, right), mean in zip(bounds, means, strict=True):
            y = self._y(mean, area)
            canvas.line([(left, y), (right, y)], DARK, 1.6)

    def _y(self, value: float, area: Box) -> float:
        return area.y1 - area.height * share_of(value, *self._range)


def _runs(bounds: np.ndarray, is_there: np.ndarray) -> list[slice]:
    """Cells that are there and touch each other."""
    runs: list[slice] = []
    for i in np.flatnonzero(is_there).tolist():
        if runs and runs[-1].stop == i and bounds[i, 0] - bounds[i - 1, 1] < 1e-6:
            runs[-1] = slice(runs[-1].start, i + 1)
        else:
            runs.append(slice(i, i + 1))
    return runs
