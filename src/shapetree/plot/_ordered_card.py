"""The card of a node that splits on the order of one feature."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.drawing._scales import drawn_density, scale_of
from shapetree.plot._canvas import MARKS, line_height
from shapetree.plot._card import LABEL_GAP, TICK
from shapetree.plot._colours import DARK, GREY, PALE, WHITE
from shapetree.plot._layout import Box, spread
from shapetree.plot._scene import Scene
from shapetree.plot._strip_card import WIDE_BAR, StripCard
from shapetree.plot._text_width import clean, width
from shapetree.tree._view import NodeView

SCALE_WORDS = {"linear": "", "log": " (log scale)", "quantile": " (by rows)"}
SLIGHT = 3.0  # shift of a label that is hardly seen
NARROWEST = 0.8  # width of a segment
NARROW_BAR = 2.4
SWATCH = 6.0
LIST_WIDTH = 190.0  # of a card with a list of thresholds


class OrderedCard(StripCard):
    """A node that splits on the order of one feature.

    Below the strip stand the thresholds, with lines to where they belong, or a list of them if
    there is too little room; below that the axis.
    """

    def __init__(self, scene: Scene, node: NodeView) -> None:
        self.scale = scale_of(node, scene.scale)
        name = clean(node.features[0].name) + SCALE_WORDS[self.scale.kind]
        super().__init__(scene, node, name, drawn_density(node))
        centres = self._fit_labels()
        self.draw_header()
        self.draw_density(*self._bars())
        self._draw_strip()
        bottom = self._list_thresholds() if centres is None else self._draw_labels(centres)
        self._draw_axis(bottom)
        strip = self.strip
        for at in self.scale.breaks:
            x = strip.x0 + strip.width * at
            self._draw_break(x, strip.y0 + strip.height / 2, strip.height / 2 + 2)
            # On the axis it is short, out of the way of labels above and below it.
            self._draw_break(x, bottom - 0.3, 2.0)
        self.draw_missing(strip.y0, strip.y1)
        self.mark_row()
        self.finish(bottom + TICK + line_height(self.style.small) + self.style.pad - 4)

    def _x(self, value: float) -> float:
        """Where a number lies on the strip."""
        return self.strip.x0 + self.strip.width * self.scale.place(value)

    def _fit_labels(self) -> list[float] | None:
        """Make the card wide enough for the thresholds' labels.

        Returns their centres, or None if there are too many, so that they need a list.
        """
        labels, least, most = self.scale.threshold_labels, self.least_width, self.style.max_width
        widths = [width(label, self.style.small) for label in labels]
        for self.width in (least, (least + most) / 2, most):
            strip, wanted = self.strip, list(map(self._x, self.scale.thresholds))
            if not labels:
                return []
            centres = spread(wanted, widths, strip.x0 - 3, strip.x1 + 3, LABEL_GAP)
            if centres is not None:
                return centres
        self.width = min(max(least, LIST_WIDTH), most)
        return None

    def _bars(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """Bounds of the density's bars, and the cells that each stands for."""
        x = self.strip.x0 + self.strip.width * self.scale.positions
        if self.scale.values is not None:
            assert self.density is not None
            bars = np.flatnonzero(self.density.n_rows)
            middle, half = (x[bars] + x[bars + 1]) / 2, np.maximum(x[bars + 1] - x[bars], 1.0) / 2
            return np.stack([middle - half, middle + half], axis=1), [np.array([i]) for i in bars]
        # Bars that are too narrow to be seen are joined to their neighbours.
        kept = [0]
        for edge in range(1, len(x) - 1):
            if min(x[edge] - x[kept[-1]], x[-1] - x[edge]) >= NARROW_BAR:
                kept.append(edge)
        kept.append(len(x) - 1)
        bounds = np.stack([x[kept[:-1]], x[kept[1:]]], axis=1)
        return bounds, [np.arange(a, b) for a, b in pairwise(kept)]

    def _draw_strip(self) -> None:
        strip = self.strip
        x = [strip.x0, *map(self._x, self.scale.thresholds), strip.x1]
        segments = list(zip(self.node.segments, x[:-1], x[1:], strict=True))
        # The narrowest last, and none too narrow to be seen.
        for segment, left, right in sorted(segments, key=lambda s: s[1] - s[2]):
            colour = self.scene.palette.branches[segment.branch]
            more = max(NARROWEST - (right - left), 0.0) / 2
            left, right = max(left - more, strip.x0), min(right + more, strip.x1)
            self.rectangle(Box(left, strip.y0, right, strip.y1), colour)
        for (_, _, at), (_, _, after) in pairwise(segments):
            if min(at - strip.x0, after - at) > WIDE_BAR:
                self.line([(at, strip.y0), (at, strip.y1)], WHITE, 0.8)

    # --- below the strip: each of these gives the place below what it draws ---

    def _draw_labels(self, centres: list[float]) -> float:
        """The thresholds' labels, with lines that are longer if they slant."""
        size, bottom = self.style.small, self.strip.y1
        if not centres:
            return bottom + 2.0
        ticks = list(map(self._x, self.scale.thresholds))
        shift = max(abs(centre - tick) for centre, tick in zip(centres, ticks, strict=True))
        top = bottom + (TICK if shift < SLIGHT else min(4.0 + shift / 8, 14.0))
        for tick, centre, label in zip(ticks, centres, self.scale.threshold_labels, strict=True):
            self.line([(tick, bottom), (centre, top + 0.5)], GREY, 0.6)
            self.text(centre, top, label, size, align="center")
        return top + line_height(size) + 2

    def _list_thresholds(self) -> float:
        """The branches of all segments in their order, with the thresholds between them."""
        size, pitch = self.style.small, line_height(self.style.small)
        labels = [*self.scale.threshold_labels, ""]
        left, right = self.style.pad, self.width - self.style.pad
        needs = [SWATCH + 2 + (width(each, size) if each else 0.0) + LABEL_GAP for each in labels]
        lines: list[list[int]] = [[]]  # of segments
        for number, need in enumerate(needs):
            if lines[-1] and sum(needs[i] for i in lines[-1]) + need > right - left:
                lines.append([])
            lines[-1].append(number)
        n_left, most = 0, self.style.list_lines
        if len(lines) > most:
            lines = lines[: most - 1]
            n_left = len(labels) - 1 - sum(map(len, lines))
        # The list starts below the word for missing values.
        top = self.strip.y1 + 3.0 + (pitch if self.shows_missing else 0.0)
        for line in lines:
            x, middle = left, top + pitch / 2
            for number in line:
                colour = self.scene.palette.branches[self.node.segments[number].branch]
                self.rectangle(Box(x, middle - 2.5, x + SWATCH, middle + 2.5), colour)
                self.text(x + SWATCH + 2, top, labels[number], size)
                x += needs[number]
            top += pitch
        if n_left:
            words = f"and {n_left} more, which plot_node lists"
            self.text(left, top, words, size, room=right - left, colour=GREY)
            top += pitch
        return top + 3

    def _draw_axis(self, y: float) -> None:
        """A line with round numbers, and with the least and the greatest of the rows."""
        size, strip = self.style.small, self.strip
        self.line([(strip.x0, y), (strip.x1, y)], PALE, 0.7)
        taken: list[tuple[float, float]] = []
        for place, label in [*self.scale.end_labels, *self.scale.ticks(self.style.n_ticks)]:
            x, half = strip.x0 + strip.width * place, width(label, size) / 2
            centre = min(max(x, strip.x0 - 3 + half), strip.x1 + 3 - half)
            low, high = centre - half - LABEL_GAP, centre + half + LABEL_GAP
            # Round numbers give way, the ends do not.
            if any(low < other_high and other_low < high for other_low, other_high in taken):
                continue
            taken.append((centre - half, centre + half))
            self.line([(x, y), (x, y + TICK - 1)], GREY, 0.6)
            self.text(centre, y + TICK - 1, label, size, colour=GREY, align="center")

    def _draw_break(self, x: float, y: float, reach: float) -> None:
        """Two slanted lines: what lies beyond is drawn nearer than it is."""
        self.line([(x - 1.5, y + reach), (x + 1.5, y - reach)], WHITE, 3.4, layer=MARKS - 1)
        for at in (x - 1.6, x + 1.6):
            self.line([(at - 1.5, y + reach), (at + 1.5, y - reach)], DARK, 0.6, layer=MARKS - 1)

    def place_of(self, value: Any) -> float:
        """Where the marked row lies."""
        number = float(value)
        part = next(i for i, part in enumerate(self.node.segments) if number <= part.high)
        meet = [-math.inf, *self.scale.thresholds, math.inf]
        low, high = self.scale.place(meet[part]), self.scale.place(meet[part + 1])
        # Not on a threshold, where it would not be seen on which side it is.
        margin = 0.08 * (high - low)
        place = min(max(self.scale.place(number), low + margin), high - margin)
        return self.strip.x0 + self.strip.width * place
