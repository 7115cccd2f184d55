"""The cards of nodes that split on one feature: a strip of colours below the data's density."""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import groupby, pairwise

import numpy as np

from shapetree.data._columns import Level
from shapetree.drawing._scales import drawn_density, scale_of
from shapetree.drawing._ticks import distinct, round_numbers, share_of
from shapetree.plot._canvas import FILLS, MARKS, Canvas, line_height
from shapetree.plot._card import LABEL_GAP, TICK, Card
from shapetree.plot._colours import DARK, FAINT, GREY, PALE, WHITE, blend
from shapetree.plot._layout import Box, spread
from shapetree.plot._scene import Scene
from shapetree.plot._text_width import clean, shorten, width
from shapetree.tree._sketch import Density
from shapetree.tree._view import NodeView
from shapetree.tree._words import category_name

SLIGHT = 3.0  # shift of a label that is hardly seen
NARROWEST = 0.8  # width of a segment
NARROW_BAR, WIDE_BAR = 2.4, 5.0
SWATCH = 6.0
LIST_WIDTH = 190.0  # of a card with a list of thresholds
MAX_BARS = 60  # categories that get a bar
SHORTEST = 4  # letters of a name that was cut and still says something


class StripCard(Card):
    """A strip coloured by branch, with the rows' density above it and more below."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        self.density = node.density
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
        if self.density is not None:
            self._draw_density(canvas, strip, self.density)
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
    def _cells(self, strip: Box) -> tuple[np.ndarray, list[np.ndarray]]:
        """Bounds of the bars on the strip, a row for each, and the cells that each stands for."""

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
        known, n_groups = density.counts, density.counts.shape[1]
        counts = np.array([known[bar].sum(axis=0) for bar in cells], dtype=float)
        counts = counts.reshape(-1, n_groups)
        totals = density.totals
        if totals is not None:
            totals = np.array([totals[bar].sum() for bar in cells])
        if self.shows_missing:
            right = strip.x1 + self._missing_room
            bounds = np.vstack([bounds, [right - self._missing_width, right]])
            counts = np.vstack([counts, density.missing[None].astype(float)])
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
        for number, colour in enumerate(self.scene.palette.classes):
            above = below + heights[:, number]
            for run in _runs(bounds, above > below):
                left, right = bounds[run, 0], bounds[run, 1]
                x = np.stack([left, right], axis=1).ravel()
                top, bottom = base - np.repeat(above[run], 2), base - np.repeat(below[run], 2)
                outline = [*zip(x, top, strict=True), *zip(x[::-1], bottom[::-1], strict=True)]
                canvas.fill([(float(a), float(b)) for a, b in outline], colour)
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
    """A node that splits on the order of one feature.

    Below the strip stand the thresholds, with lines to where they belong, or a list of them if
    there is too little room; below that the axis.
    """

    def __init__(self, scene: Scene, node: NodeView) -> None:
        self.scale = scale_of(node, scene.scale)
        super().__init__(scene, node)
        self.density = drawn_density(node)
        self.labels = self.scale.threshold_labels
        self.width, self.centres = self._fit_labels()
        self.listed = self._lines_of_list() if self.centres is None else []
        line = line_height(self.style.small)
        if self.centres is None:
            self._labels_height = self._list_top + line * len(self.listed) + 3
        else:
            self._labels_height = self._leader + line + 2 if self.labels else 2.0
        self.height = (
            self._strip_top
            + self.style.strip
            + self._labels_height
            + TICK
            + line
            + self.style.pad
            - 4
        )

    def _title(self) -> str:
        words = {"linear": "", "log": " (log scale)", "quantile": " (by rows)"}
        return super()._title() + words[self.scale.kind]

    def _fit_labels(self) -> tuple[float, list[float] | None]:
        """Width of the card, and where the thresholds' labels stand; None if they need a list."""
        least, most = self._width_for_header, self.style.max_width
        for self.width in (least, (least + most) / 2, most):
            centres = self._centres()
            if centres is not None:
                return self.width, centres
        return min(max(least, LIST_WIDTH), most), None

    def _centres(self) -> list[float] | None:
        """Centres of the thresholds' labels, from the card's left; None if there is no room."""
        if not self.labels:
            return []
        left, length = self._strip_left, self._strip_width
        wanted = [left + length * self.scale.place(threshold) for threshold in self.thresholds]
        sizes = [width(label, self.style.small) for label in self.labels]
        return spread(wanted, sizes, left - 3, left + length + 3, LABEL_GAP)

    @property
    def thresholds(self) -> list[float]:
        """Where segments meet."""
        return self.scale.thresholds

    @property
    def _leader(self) -> float:
        """Height of the lines from thresholds to labels, which is more if they slant."""
        left, length = self._strip_left, self._strip_width
        shifts = [
            abs(centre - left - length * self.scale.place(threshold))
            for centre, threshold in zip(self.centres or [], self.thresholds, strict=True)
        ]
        return TICK if max(shifts, default=0.0) < SLIGHT else min(4.0 + max(shifts) / 8, 14.0)

    @property
    def _list_top(self) -> float:
        """Where the list starts: below the word for missing values."""
        return 3.0 + (line_height(self.style.small) if self.shows_missing else 0.0)

    def _lines_of_list(self) -> list[list[tuple[int | None, str]]]:
        """Lines of segments' branches and of the thresholds after them; the last may be cut."""
        size, room = self.style.small, self.width - 2 * self.style.pad
        lines: list[list[tuple[int | None, str]]] = [[]]
        used = 0.0
        for i, segment in enumerate(self.node.segments):
            label = self.labels[i] if i < len(self.labels) else ""
            need = _listed_width(label, size)
            if used + need > room and lines[-1]:
                lines.append([])
                used = 0.0
            lines[-1].append((segment.branch, label))
            used += need
        if len(lines) > self.style.list_lines:
            lines = lines[: self.style.list_lines]
            n_left = len(self.labels) - sum(map(len, lines)) + len(lines[-1])
            lines[-1] = [(None, f"and {n_left} more, which plot_node lists")]
        return lines

    def _cells(self, strip: Box) -> tuple[np.ndarray, list[np.ndarray]]:
        x = strip.x0 + strip.width * self.scale.positions
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

    def _draw_strip(self, canvas: Canvas, strip: Box) -> None:
        inner = [strip.x0 + strip.width * self.scale.place(edge) for edge in self.thresholds]
        x = [strip.x0, *inner, strip.x1]
        segments = list(zip(self.node.segments, x[:-1], x[1:], strict=True))
        # The narrowest last, and none too narrow to be seen.
        for segment, left, right in sorted(segments, key=lambda s: s[1] - s[2]):
            colour = self.scene.palette.branches[segment.branch]
            more = max(NARROWEST - (right - left), 0.0) / 2
            left, right = max(left - more, strip.x0), min(right + more, strip.x1)
            canvas.rectangle(Box(left, strip.y0, right, strip.y1), colour)
        for (_, _, at), (_, _, after) in pairwise(segments):
            if min(at - strip.x0, after - at) > WIDE_BAR:
                canvas.line([(at, strip.y0), (at, strip.y1)], WHITE, 0.8)
        if self.centres is None:
            self._draw_list(canvas, strip)
        else:
            self._draw_labels(canvas, strip, inner, self.centres)
        self._draw_axis(canvas, strip)
        for at in self.scale.breaks:
            self._draw_break(canvas, strip, strip.x0 + strip.width * at)

    def _draw_labels(
        self, canvas: Canvas, strip: Box, ticks: list[float], centres: list[float]
    ) -> None:
        size, left = self.style.small, strip.x0 - self._strip_left
        top = strip.y1 + self._leader
        for tick, centre, label in zip(ticks, centres, self.labels, strict=True):
            canvas.line([(tick, strip.y1), (left + centre, top + 0.5)], GREY, 0.6)
            canvas.text(left + centre, top, label, size, room=width(label, size), align="center")

    def _draw_list(self, canvas: Canvas, strip: Box) -> None:
        """The branches of all segments in their order, with the thresholds between them."""
        size = self.style.small
        top = strip.y1 + self._list_top
        for line in self.listed:
            x = strip.x0 - self._strip_left + self.style.pad
            for branch, label in line:
                if branch is None:
                    room = self.width - 2 * self.style.pad
                    canvas.text(x, top, label, size, room=room, colour=GREY)
                    continue
                middle = top + line_height(size) / 2
                swatch = Box(x, middle - 2.5, x + SWATCH, middle + 2.5)
                canvas.rectangle(swatch, self.scene.palette.branches[branch])
                canvas.text(x + SWATCH + 2, top, label, size, room=width(label, size))
                x += _listed_width(label, size)
            top += line_height(size)

    def _draw_axis(self, canvas: Canvas, strip: Box) -> None:
        """A line with round numbers, and with the least and the greatest of the rows."""
        size, y = self.style.small, strip.y1 + self._labels_height
        canvas.line([(strip.x0, y), (strip.x1, y)], PALE, 0.7)
        taken: list[tuple[float, float]] = []
        ends = self.scale.end_labels
        for place, label in [*ends, *self.scale.ticks(self.style.n_ticks)]:
            x, half = strip.x0 + strip.width * place, width(label, size) / 2
            centre = min(max(x, strip.x0 - 3 + half), strip.x1 + 3 - half)
            low, high = centre - half - LABEL_GAP, centre + half + LABEL_GAP
            # Round numbers give way, the ends do not.
            if any(low < other_high and other_low < high for other_low, other_high in taken):
                continue
            taken.append((centre - half, centre + half))
            canvas.line([(x, y), (x, y + TICK - 1)], GREY, 0.6)
            room = width(label, size)
            canvas.text(centre, y + TICK - 1, label, size, room=room, colour=GREY, align="center")

    def _draw_break(self, canvas: Canvas, strip: Box, x: float) -> None:
        """Two slanted lines: what lies beyond is drawn nearer than it is."""
        # On the axis they are short, out of the way of labels above and below it.
        axis = strip.y1 + self._labels_height
        for y, reach in ((strip.y0 + strip.height / 2, strip.height / 2 + 2), (axis - 0.3, 2.0)):
            canvas.line([(x - 1.5, y + reach), (x + 1.5, y - reach)], WHITE, 3.4, layer=MARKS - 1)
            for shift in (-1.6, 1.6):
                line = [(x + shift - 1.5, y + reach), (x + shift + 1.5, y - reach)]
                canvas.line(line, DARK, 0.6, layer=MARKS - 1)

    def _place_of_mark(self, strip: Box) -> float:
        assert self.scene.row is not None
        value = float(self.scene.row.values[self.node.features[0].name])
        number = next(i for i, part in enumerate(self.node.segments) if value <= part.high)
        meet = [-math.inf, *self.thresholds, math.inf]
        low, high = self.scale.place(meet[number]), self.scale.place(meet[number + 1])
        # Not on a threshold, where it would not be seen on which side it is.
        place = min(
            max(self.scale.place(value), low + 0.08 * (high - low)), high - 0.08 * (high - low)
        )
        return strip.x0 + strip.width * place


def _listed_width(label: str, size: float) -> float:
    return SWATCH + 2 + (width(label, size) if label else 0.0) + LABEL_GAP


class CategoryCard(StripCard):
    """A node that splits on categories: bars, a strip, and the categories of each branch."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        self.width = max(self._width_for_header, min(170.0, scene.style.max_width))
        self.by_branch = [self._in_order(segment.categories) for segment in node.segments]
        self.slots = self._slots()
        self.bar_labels, is_whole = self._bar_labels()
        self.chip_height = line_height(self.style.small) + 1
        # Where every category is named below its bar, that is enough.
        self.chips = [
            self._chips(categories, branch)
            for branch, categories in enumerate(self.by_branch)
            if not is_whole
        ]
        n_lines = sum(map(len, self.chips))
        self.height = (
            self._strip_top
            + self.style.strip
            + self._label_height
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

    def _in_order(self, categories: tuple[Level, ...] | None) -> list[Level]:
        """Categories in their own order if they have one, or else the most frequent first."""
        feature = self.node.features[0]
        assert categories is not None
        assert feature.categories is not None
        if feature.is_ordered:
            return sorted(categories, key=feature.categories.index)
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
        feature = self.node.features[0]
        if feature.is_ordered and feature.categories is not None:
            place = {category: i for i, category in enumerate(feature.categories)}
            slots.sort(key=lambda slot: place[slot[0]])
        return slots

    @property
    def _label_height(self) -> float:
        has_line = self.shows_missing or bool(self.bar_labels)
        return line_height(self.style.small) if has_line else TICK

    def _bar_labels(self) -> tuple[list[str], bool]:
        """What is written below the bars, and whether that names all categories of all branches."""
        size, names = self.style.small, [_label(category) for category, _ in self.slots]
        room = self._strip_width / max(len(names), 1) - 2
        labels = [shorten(name, room, size) for name in names]
        if any(
            len(label) < SHORTEST and label != name
            for label, name in zip(labels, names, strict=True)
        ):
            return [], False
        n_named = sum(map(len, self.by_branch))
        is_whole = labels == names and len(names) == n_named and all(self.by_branch)
        return labels, is_whole

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
            share = 0.48 if len(categories) > 1 else 0.96
            word = shorten(_label(category), room * share, size)
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

    def _cells(self, strip: Box) -> tuple[np.ndarray, list[np.ndarray]]:
        categories = self.node.features[0].categories
        assert categories is not None
        step = strip.width / max(len(self.slots), 1)
        gap = min(step * 0.12, 2.0)
        left = strip.x0 + step * np.arange(len(self.slots))
        cells = [np.array([categories.index(category)]) for category, _ in self.slots]
        return np.stack([left + gap, left + step - gap], axis=1), cells

    def _draw_strip(self, canvas: Canvas, strip: Box) -> None:
        step = strip.width / max(len(self.slots), 1)
        if not self.slots:
            canvas.rectangle(strip, FAINT)
        left = strip.x0
        for branch, slots in groupby(self.slots, key=lambda slot: slot[1]):
            right = left + len(list(slots)) * step
            colour = self.scene.palette.branches[branch]
            canvas.rectangle(Box(left, strip.y0, right, strip.y1), colour)
            if left > strip.x0:
                canvas.line([(left, strip.y0), (left, strip.y1)], WHITE, 0.8)
            left = right
        for i, label in enumerate(self.bar_labels):
            middle, size = strip.x0 + (i + 0.5) * step, self.style.small
            room = width(label, size)
            canvas.text(middle, strip.y1 + 1, label, size, room=room, colour=GREY, align="center")
        self._draw_chips(canvas, strip)

    def _draw_chips(self, canvas: Canvas, strip: Box) -> None:
        size = self.style.small
        top = strip.y1 + self._label_height + 2
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
    """Heights of stacked bars, the highest stack being 1; their areas are in proportion to rows."""
    density = counts / np.maximum(bounds[:, 1] - bounds[:, 0], 1e-9)[:, None]
    return np.asarray(density / density.sum(axis=1).max())


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


def _label(category: Level) -> str:
    return clean(category_name(category)) or "''"
