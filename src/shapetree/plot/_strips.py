"""The cards of nodes that split on one feature: a strip of colours below the data's density."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from shapetree.data._table import Level
from shapetree.plot._canvas import FILLS, Canvas, line_height
from shapetree.plot._card import LABEL_GAP, TICK, Card
from shapetree.plot._colours import DARK, FAINT, GREY, PALE, WHITE, blend
from shapetree.plot._layout import (
    Box,
    Rows,
    label_rows,
    round_numbers,
    share_of,
    some_labels,
)
from shapetree.plot._scene import Scene
from shapetree.plot._text import clean, distinct, shorten, width
from shapetree.tree._sketch import Density
from shapetree.tree._view import NodeView
from shapetree.tree._words import readable

MAX_SHIFT = 13.0  # that a label may stand beside its tick
WIDE_BAR = 5.0
MAX_BARS = 60  # categories that get a bar


class StripCard(Card):
    """A strip coloured by branch, with the rows' density above it and more below."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        self.means = MeansPanel(scene, node) if self._has_means() else None

    def _has_means(self) -> bool:
        return self.style.means > 0 and self.scene.view.classes is None and self.node.n_rows > 0

    @property
    def _strip_top(self) -> float:
        above = 0.0 if self.means is None else self.style.means
        return self._header_height + above + self.style.density + 1

    @property
    def _strip_left(self) -> float:
        return self.style.pad + (0.0 if self.means is None else self.means.label_width)

    @property
    def _strip_width(self) -> float:
        return self.width - self._strip_left - self.style.pad - self._missing_room

    def _draw_body(self, canvas: Canvas, box: Box) -> None:
        x0, y0 = box.x0 + self._strip_left, box.y0 + self._strip_top
        strip = Box(x0, y0, x0 + self._strip_width, y0 + self.style.strip)
        density = self.node.density
        if density is not None:
            self._draw_density(canvas, strip, density)
        self._draw_strip(canvas, strip)
        if self.shows_missing:
            cell = Box(
                box.x1 - self.style.pad - self._missing_width, y0, box.x1 - self.style.pad, strip.y1
            )
            self._draw_missing(canvas, cell)
        if self.scene.marks(self.node):
            self._draw_mark(canvas, strip, box)

    @abstractmethod
    def _draw_strip(self, canvas: Canvas, strip: Box) -> None: ...

    @abstractmethod
    def _cells(self, strip: Box) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the cells on the strip, a row for each, and which cells these are."""

    @abstractmethod
    def _place_of_mark(self, strip: Box) -> float: ...

    def _draw_mark(self, canvas: Canvas, strip: Box, box: Box) -> None:
        if not self._lacks_value():
            x = self._place_of_mark(strip)
        elif self.shows_missing:
            x = box.x1 - self.style.pad - self._missing_width / 2
        else:
            return
        self._point_at(canvas, x, strip.y0 - self.style.density * 0.75, strip.y1)

    def _draw_density(self, canvas: Canvas, strip: Box, density: Density) -> None:
        bounds, cells = self._cells(strip)
        counts = density.counts[cells].astype(float)
        totals = None if density.totals is None else density.totals[cells]
        lost = density.missing[None].astype(float)
        if self.shows_missing:
            right = strip.x1 + self._missing_room
            bounds = np.vstack([bounds, [right - self._missing_width, right]])
            counts = np.vstack([counts, lost])
            if totals is not None:
                totals = np.append(totals, density.missing_total or 0.0)
        if not counts.any():
            return
        heights = _heights(counts, bounds) * (self.style.density - 2)
        base = strip.y0 - 1
        if totals is not None and self.means is not None:
            top = base - self.style.density - self.style.means
            panel = Box(strip.x0, top + 4, strip.x1, top + self.style.means - 6)
            self.means.draw(canvas, panel, bounds, counts[:, 0], totals)
        bounds = _parted(bounds)
        if totals is None:
            self._draw_stacks(canvas, bounds, heights, base)
        else:
            self._draw_bars(canvas, bounds, heights[:, 0], counts[:, 0], totals, base)

    def _draw_stacks(
        self, canvas: Canvas, bounds: np.ndarray, heights: np.ndarray, base: float
    ) -> None:
        """Bars by class; those of a class that touch each other are one shape."""
        below = np.zeros(len(bounds))
        for group in self.scene.palette.groups:
            above = below + heights[:, group.classes].sum(axis=1)
            for run in _runs(bounds, above > below):
                left, right = bounds[run, 0], bounds[run, 1]
                x = np.stack([left, right], axis=1).ravel()
                top, bottom = base - np.repeat(above[run], 2), base - np.repeat(below[run], 2)
                outline = [*zip(x, top, strict=True), *zip(x[::-1], bottom[::-1], strict=True)]
                canvas.fill([(float(a), float(b)) for a, b in outline], group.colour)
            below = above

    def _draw_bars(
        self,
        canvas: Canvas,
        bounds: np.ndarray,
        heights: np.ndarray,
        counts: np.ndarray,
        totals: np.ndarray,
        base: float,
    ) -> None:
        """Bars shaded by the mean of the targets in them."""
        for (left, right), height, count, total in zip(
            bounds.tolist(), heights.tolist(), counts.tolist(), totals.tolist(), strict=True
        ):
            if count:
                shade = self.scene.shade(total / count)
                canvas.rectangle(Box(left, base - height, right, base), shade, width=0.2)


class MeansPanel:
    """Means of a numeric target along a strip, on an axis of their own.

    Attributes
    ----------
    label_width : float
        Room for the axis on the left.
    """

    def __init__(self, scene: Scene, node: NodeView) -> None:
        density = node.density
        assert density is not None
        assert density.totals is not None
        counts = np.append(density.counts[:, 0], density.missing[0])
        totals = np.append(density.totals, density.missing_total or 0.0)
        means = totals[counts > 0] / counts[counts > 0]
        low, high = float(means.min()), float(means.max())
        if not low < high:
            low, high = low - abs(low) / 2 - 1, high + abs(high) / 2 + 1
        self._scene = scene
        self._range = low, high
        marks = round_numbers(low, high, 4) or [low, high]
        self._ticks = list(zip(marks, distinct(marks), strict=True))
        labels = [width(label, scene.style.small) for _, label in self._ticks]
        self.label_width = max(labels) + TICK + 2

    def draw(
        self,
        canvas: Canvas,
        area: Box,
        bounds: np.ndarray,
        counts: np.ndarray,
        totals: np.ndarray,
    ) -> None:
        """Draw the mean of every cell that has rows."""
        size = self._scene.style.small
        half = line_height(size) / 2
        for value, label in self._ticks:
            y = self._y(value, area)
            canvas.line([(area.x0 - TICK, y), (area.x1, y)], FAINT, 0.7, layer=FILLS)
            canvas.text(
                area.x0 - TICK - 1,
                y - half,
                label,
                size,
                room=self.label_width,
                colour=GREY,
                align="right",
            )
        for (left, right), count, total in zip(
            bounds.tolist(), counts.tolist(), totals.tolist(), strict=True
        ):
            if count:
                y = self._y(total / count, area)
                canvas.line([(left, y), (right, y)], DARK, 1.6)

    def _y(self, value: float, area: Box) -> float:
        return area.y1 - area.height * share_of(value, *self._range)


class OrderedCard(StripCard):
    """A node that splits on the order of one feature."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        self.thresholds = [segment.high for segment in node.segments[:-1]]
        self._edges, self._positions = self._axis()
        self.width, self.labels, self.tick_rows = self._fit_labels()
        self.height = (
            self._strip_top
            + self.style.strip
            + TICK
            + max(len(self.tick_rows), 1) * line_height(self.style.small)
            + self.style.pad
            - 4
        )

    def _axis(self) -> tuple[np.ndarray, np.ndarray]:
        density = self.node.density
        assert density is not None
        assert density.edges is not None
        assert density.positions is not None
        return density.edges, density.positions

    def _fit_labels(self) -> tuple[float, list[str], Rows]:
        """Width of the card, labels of the thresholds, and where these stand."""
        style = self.style
        least = self._width_for_header
        widths = [least, (least + style.max_width) / 2, style.max_width]
        ways = [distinct(self.thresholds, 6), distinct(self.thresholds)]
        said = list(map(readable, self.thresholds))
        if len(set(said)) == len(said):
            ways = [said, *ways]
        for labels in ways:
            for n_rows in (1, 2):
                for room in widths:
                    self.width = room
                    rows = label_rows(*self._wishes(labels), MAX_SHIFT, n_rows)
                    if rows is not None:
                        return room, labels, rows
        return self.width, ways[-1], some_labels(*self._wishes(ways[-1]))

    def _wishes(self, labels: list[str]) -> tuple[list[float], list[float], float, float, float]:
        """Where labels want to be, from the card's left, their widths, bounds and gap."""
        left, length = self._strip_left, self._strip_width
        places = np.interp(np.searchsorted(self._edges, self.thresholds), *self._numbered())
        wanted = [left + length * float(place) for place in places]
        sizes = [width(label, self.style.small) for label in labels]
        return wanted, sizes, left - 3, left + length + 3, LABEL_GAP

    def _numbered(self) -> tuple[np.ndarray, np.ndarray]:
        return np.arange(len(self._positions)), self._positions

    def _place(self, edge: float, strip: Box) -> float:
        at = int(np.clip(np.searchsorted(self._edges, edge), 0, len(self._edges) - 1))
        return strip.x0 + strip.width * float(self._positions[at])

    def _cells(self, strip: Box) -> tuple[np.ndarray, np.ndarray]:
        x = strip.x0 + strip.width * self._positions
        return np.stack([x[:-1], x[1:]], axis=1), np.arange(len(x) - 1)

    def _draw_strip(self, canvas: Canvas, strip: Box) -> None:
        x = [strip.x0, *(self._place(edge, strip) for edge in self.thresholds), strip.x1]
        for segment, left, right in zip(self.node.segments, x[:-1], x[1:], strict=True):
            colour = self.scene.palette.branches[segment.branch]
            canvas.rectangle(Box(left, strip.y0, right, strip.y1), colour)
        self._draw_ticks(canvas, strip, x[1:-1])

    def _draw_ticks(self, canvas: Canvas, strip: Box, ticks: list[float]) -> None:
        size, left = self.style.small, strip.x0 - self._strip_left
        for x in ticks:
            canvas.line([(x, strip.y0), (x, strip.y1)], WHITE, 0.8)
        for row, labels in enumerate(self.tick_rows):
            top = strip.y1 + TICK + row * line_height(size)
            for i, centre in labels:
                end = (left + centre, top + 0.5)
                canvas.line([(ticks[i], strip.y1), end], PALE if row else GREY, 0.6)
                room = width(self.labels[i], size)
                canvas.text(left + centre, top, self.labels[i], size, room=room, align="center")

    def _place_of_mark(self, strip: Box) -> float:
        assert self.scene.row is not None
        value = float(self.scene.row.values[self.node.features[0].name])
        cell = int(np.searchsorted(self._edges[1:-1], value, side="left"))
        low, high = self._edges[cell : cell + 2].tolist()
        # Not on a threshold, where it would not be seen on which side it is.
        share = min(max(share_of(value, low, high), 0.08), 0.92)
        start, end = self._positions[cell : cell + 2].tolist()
        return strip.x0 + strip.width * (start + share * (end - start))


class CategoryCard(StripCard):
    """A node that splits on categories: bars, a strip, and the categories of each branch."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        self.width = max(self._width_for_header, min(170.0, scene.style.max_width))
        self.by_branch = [self._by_frequency(segment.categories) for segment in node.segments]
        self.slots = self._slots()
        self.chip_height = line_height(self.style.small) + 1
        self.chips = [
            self._chips(categories, branch) for branch, categories in enumerate(self.by_branch)
        ]
        n_lines = sum(map(len, self.chips))
        self.height = (
            self._strip_top
            + self.style.strip
            + (line_height(self.style.small) if self.shows_missing else TICK)
            + n_lines * (self.chip_height + 2)
            + 3 * len(self.chips)
            + self.style.pad
            - 3
        )

    def _rows_of(self, category: Level) -> int:
        categories, density = self.node.features[0].categories, self.node.density
        assert categories is not None
        assert density is not None
        return int(density.n_rows[categories.index(category)])

    def _by_frequency(self, categories: tuple[Level, ...] | None) -> list[Level]:
        assert categories is not None
        return sorted(categories, key=self._rows_of, reverse=True)

    def _slots(self) -> list[tuple[Level, int]]:
        """Categories that have a place on the strip, and their branches."""
        slots = [
            (category, branch)
            for branch, categories in enumerate(self.by_branch)
            for category in categories
            if self._rows_of(category)
        ]
        if len(slots) > MAX_BARS:
            kept = sorted(slots, key=lambda slot: self._rows_of(slot[0]), reverse=True)
            frequent = {category for category, _ in kept[:MAX_BARS]}
            slots = [slot for slot in slots if slot[0] in frequent]
        return slots

    def _chips(self, categories: list[Level], branch: int) -> list[list[tuple[str, bool]]]:
        """Lines of words for the categories of a branch, and whether each is a category.

        The last may count those that there is no room for.
        """
        size, room = self.style.small, self.width - 2 * self.style.pad
        if not categories:
            return [[("only missing" if branch == self.node.missing_branch else "none", True)]]
        lines: list[list[tuple[str, bool]]] = [[]]
        used = 0.0
        for i, category in enumerate(categories):
            word = shorten(clean(category) or "''", room * 0.48, size)
            left = len(categories) - i - 1
            spare = width(f"+{left} more", size) + 4 if left else 0.0
            need = width(word, size) + 8
            is_last_line = len(lines) == self.style.chip_lines
            if used + need + (spare if is_last_line else 0.0) > room and lines[-1]:
                if is_last_line:
                    lines[-1].append((f"+{left + 1} more", False))
                    break
                lines.append([])
                used = 0.0
            lines[-1].append((word, True))
            used += need
        return lines

    def _cells(self, strip: Box) -> tuple[np.ndarray, np.ndarray]:
        categories = self.node.features[0].categories
        assert categories is not None
        step = strip.width / max(len(self.slots), 1)
        gap = min(step * 0.12, 2.0)
        left = strip.x0 + step * np.arange(len(self.slots))
        cells = np.array([categories.index(slot[0]) for slot in self.slots], dtype=np.intp)
        return np.stack([left + gap, left + step - gap], axis=1), cells

    def _draw_strip(self, canvas: Canvas, strip: Box) -> None:
        step = strip.width / max(len(self.slots), 1)
        if not self.slots:
            canvas.rectangle(strip, FAINT)
        for branch in range(len(self.chips)):
            mine = [i for i, slot in enumerate(self.slots) if slot[1] == branch]
            if mine:
                left, right = strip.x0 + mine[0] * step, strip.x0 + (mine[-1] + 1) * step
                colour = self.scene.palette.branches[branch]
                canvas.rectangle(Box(left, strip.y0, right, strip.y1), colour)
                if mine[0]:
                    canvas.line([(left, strip.y0), (left, strip.y1)], WHITE, 0.8)
        self._draw_chips(canvas, strip)

    def _draw_chips(self, canvas: Canvas, strip: Box) -> None:
        size = self.style.small
        top = strip.y1 + (line_height(size) if self.shows_missing else TICK) + 2
        for branch, lines in enumerate(self.chips):
            tint = blend(self.scene.palette.branches[branch], 0.72)
            for line in lines:
                x = strip.x0 - self._strip_left + self.style.pad
                for word, is_category in line:
                    taken = width(word, size) + 5
                    if is_category:
                        chip = Box(x, top, x + taken, top + self.chip_height)
                        canvas.rounded(chip, tint, 2.5)
                    canvas.text(
                        x + 2.5,
                        top + 0.5,
                        word,
                        size,
                        room=taken,
                        colour=DARK if is_category else GREY,
                    )
                    x += taken + 3
                top += self.chip_height + 2
            top += 3

    def _place_of_mark(self, strip: Box) -> float:
        assert self.scene.row is not None
        value = self.scene.row.values[self.node.features[0].name]
        step = strip.width / max(len(self.slots), 1)
        for i, (category, _) in enumerate(self.slots):
            if category == value:
                return strip.x0 + (i + 0.5) * step
        # No row here has this category, so it has no bar: point at its branch's part.
        branch = next(b for b, known in enumerate(self.by_branch) if value in known)
        mine = [i for i, slot in enumerate(self.slots) if slot[1] == branch]
        return strip.x0 + ((mine[-1] + 1) * step if mine else strip.width)


def _heights(counts: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Heights of stacked bars, the highest stack being 1.

    A stack is as high as the root of how densely its cell is filled: next to a cell that holds most
    rows, the others would otherwise not be seen.
    """
    stacks = counts.sum(axis=1)
    density = np.sqrt(stacks / np.maximum(bounds[:, 1] - bounds[:, 0], 1e-9))
    shares = counts / np.maximum(stacks, 1)[:, None]
    return shares * (density / density.max())[:, None]


def _parted(bounds: np.ndarray) -> np.ndarray:
    """Bounds of bars with some white between those that are wide."""
    gap = np.where(bounds[:, 1] - bounds[:, 0] > WIDE_BAR, 0.4, 0.0)
    return np.stack([bounds[:, 0] + gap, bounds[:, 1] - gap], axis=1)


def _runs(bounds: np.ndarray, is_there: np.ndarray) -> list[slice]:
    """Cells that are there and touch each other."""
    runs: list[slice] = []
    for i in np.flatnonzero(is_there).tolist():
        if runs and runs[-1].stop == i and bounds[i, 0] - bounds[i - 1, 1] < 1e-6:
            runs[-1] = slice(runs[-1].start, i + 1)
        else:
            runs.append(slice(i, i + 1))
    return runs
