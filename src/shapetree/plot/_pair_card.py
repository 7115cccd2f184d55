"""The card of a node that splits on a pair: a map of the plane, with some of the data."""

from __future__ import annotations

from shapetree.data._columns import Level
from shapetree.drawing._plane_map import map_of
from shapetree.plot._canvas import LINES, MARKS, Canvas, line_height
from shapetree.plot._card import LABEL_GAP, TICK, Card
from shapetree.plot._colours import DARK, GREY, WHITE, Colour, blend
from shapetree.plot._layout import Box, Point, spread
from shapetree.plot._scene import Scene
from shapetree.plot._text_width import clean, shorten, width
from shapetree.tree._view import NodeView
from shapetree.tree._words import category_name

ARROWS = (" →", " ↑")
BETWEEN = " \N{MULTIPLICATION SIGN} "
# Least width of a plane.
LEAST_PLANE = 120.0
# How much white the colours of branches have, so that rows stand out.
PALE_AREA = 0.68
# Categories that a large card names one above the other.
MOST_NAMES = 80


class PairCard(Card):
    """A node that splits on a pair: its plane, coloured by branch, and some of the rows."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        style = self.style
        self.map = map_of(scene.view, node, scene.swap)
        self.names = [clean(feature.name) for feature in self.map.features]
        below = TICK + line_height(style.small) + line_height(self._name_size)
        self.height = self._plane_top + self._plane_height + below + style.pad - 3
        self.y_ticks = self._y_ticks()
        labels = [width(label, style.small) for _, label in self.y_ticks]
        self.left = style.pad + max(labels, default=0.0) + TICK + 1
        self.width = max(self._width_for_header, min(self.left + LEAST_PLANE, style.max_width))
        self.x_ticks = self._x_ticks()

    @property
    def _name_size(self) -> float:
        """Size of the letters that name the axes."""
        return self.style.small + self.style.is_large

    @property
    def _plane_top(self) -> float:
        """Where the plane starts; what goes up is named above it."""
        return self._header_height + 2 + line_height(self._name_size)

    @property
    def _plane_height(self) -> float:
        """A large card is as high as the names of its categories need, unless there are many."""
        categories = self.map.axes[1].categories
        if categories is None or not self.style.is_large or len(categories) > MOST_NAMES:
            return self.style.plane
        return max(self.style.plane, len(categories) * line_height(self.style.small) + 1)

    @property
    def _plane_width(self) -> float:
        return self.width - self.left - self.style.pad - self._missing_room

    def _title_lines(self) -> list[str]:
        """Both features, on two lines if one is too short for them."""
        title = BETWEEN.join(self.names)
        if width(title, self.style.name, bold=True) <= self._title_room:
            return [title]
        first, second = self.names
        return [first + BETWEEN.rstrip(), second]

    def _y_ticks(self) -> list[tuple[float, str]]:
        """Places on the vertical axis and their labels; for categories the middles of slots."""
        axis, size = self.map.axes[1], self.style.small
        if axis.categories is None:
            return axis.ticks(self.style.n_ticks)
        if self._plane_height < len(axis.categories) * line_height(size):
            return [(0.5, _how_many(axis.categories))]
        return _slot_labels(axis.categories, 0.3 * self.style.max_width, size)

    def _x_ticks(self) -> list[tuple[float, str]]:
        """Places on the horizontal axis and labels that fit."""
        axis, size = self.map.axes[0], self.style.small
        if axis.categories is None:
            for n_ticks in range(self.style.n_ticks, 1, -1):
                ticks = axis.ticks(n_ticks)
                if self._centres(ticks, 0.0) is not None:
                    return ticks
            return []
        ticks = _slot_labels(axis.categories, self._plane_width / len(axis.categories) - 4, size)
        if len({label for _, label in ticks}) == len(ticks):
            return ticks
        return [(0.5, _how_many(axis.categories))]

    def _centres(self, ticks: list[tuple[float, str]], left: float) -> list[float] | None:
        """Where labels of the horizontal axis stand; None if they do not fit."""
        places = [left + self._plane_width * place for place, _ in ticks]
        sizes = [width(label, self.style.small) for _, label in ticks]
        if not places:
            return []
        centres = spread(places, sizes, left - 4, left + self._plane_width + 3, LABEL_GAP)
        if centres is None or max(abs(a - b) for a, b in zip(centres, places, strict=True)) > 8:
            return None
        return centres

    def _draw_body(self, canvas: Canvas, box: Box) -> None:
        top, x0 = box.y0 + self._plane_top, box.x0 + self.left
        area = Box(x0, top, x0 + self._plane_width, top + self._plane_height)
        self._draw_areas(canvas, area)
        for place, target in zip(self.map.points.tolist(), self.map.targets.tolist(), strict=True):
            centre = _at(place, area)
            canvas.dot(*centre, self.style.dot, self._colour_of(target), edge=DARK, width=0.35)
        self._draw_axes(canvas, area, box)
        if self.shows_missing:
            right = box.x1 - self.style.pad
            cell = Box(right - self._missing_width, area.y0, right, area.y1)
            self._draw_missing(canvas, cell)
        if self.scene.marks(self.node):
            self._draw_mark(canvas, area, box)

    def _draw_areas(self, canvas: Canvas, area: Box) -> None:
        """One shape for each branch, and white lines between branches."""
        for colour, loops in zip(self.scene.palette.branches, self.map.areas, strict=False):
            outlines = [[_at(point, area) for point in loop] for loop in loops]
            canvas.area(outlines, blend(colour, PALE_AREA))
        for loops in self.map.areas:
            for loop in loops:
                outline = [_at(point, area) for point in loop]
                canvas.line([*outline, outline[0]], WHITE, 0.7 * self.map.line_width)
        canvas.line([*area.corners(), (area.x0, area.y0)], GREY, 0.6)
        across, up = (axis.breaks for axis in self.map.axes)
        for place in across:
            _draw_break(canvas, _at((place, 0), area), _at((place, 1), area))
        for place in up:
            _draw_break(canvas, _at((0, place), area), _at((1, place), area))

    def _colour_of(self, target: float) -> Colour:
        if self.scene.view.classes is None:
            return self.scene.shade(target)
        return self.scene.palette.classes[int(target)]

    def _draw_axes(self, canvas: Canvas, area: Box, box: Box) -> None:
        size = self.style.small
        half = line_height(size) / 2
        for place, label in self.y_ticks:
            y = area.y1 - area.height * place
            canvas.line([(area.x0 - TICK, y), (area.x0, y)], GREY, 0.6)
            # A label at either end stays beside the plane.
            top = min(max(y - half, area.y0 - 1), area.y1 - 2 * half + 2)
            room = self.left - self.style.pad - TICK
            canvas.text(area.x0 - TICK - 1, top, label, size, room=room, colour=GREY, align="right")
        self._draw_x_labels(canvas, area)
        across, up = (name + arrow for name, arrow in zip(self.names, ARROWS, strict=True))
        left, room = box.x0 + self.style.pad, box.width - 2 * self.style.pad
        size, bold = self._name_size, self.style.is_large
        lower = area.y1 + TICK + 2 * half
        shown = self._shown_rows()
        taken = width(shown, self.style.small) + LABEL_GAP if shown else 0.0
        if taken + width(across, size, bold) > room:
            shown, taken = "", 0.0
        canvas.text(area.x1, lower, across, size, room=room - taken, bold=bold, align="right")
        if shown:
            canvas.text(left, lower, shown, self.style.small, room=taken, colour=GREY)
        upper = area.y0 - line_height(size) - 1
        canvas.text(left, upper, up, size, room=room, bold=bold)

    def _shown_rows(self) -> str:
        """How many rows are drawn, if that is not all that have both features."""
        n_shown, n_rows = len(self.map.points), self.node.n_rows
        assert self.node.plane is not None
        n_rows -= self.node.plane.n_missing
        return f"{n_shown:,} of {n_rows:,} shown" if n_shown < n_rows else ""

    def _draw_x_labels(self, canvas: Canvas, area: Box) -> None:
        centres = self._centres(self.x_ticks, area.x0) or []
        for centre, (place, label) in zip(centres, self.x_ticks, strict=True):
            x = area.x0 + area.width * place
            canvas.line([(x, area.y1), (x, area.y1 + TICK)], GREY, 0.6)
            size = self.style.small
            room = width(label, size)
            canvas.text(centre, area.y1 + TICK, label, size, room=room, colour=GREY, align="center")

    def _draw_mark(self, canvas: Canvas, area: Box, box: Box) -> None:
        if self._lacks_value():
            if self.shows_missing:
                x = box.x1 - self.style.pad - self._missing_width / 2
                self._point_at(canvas, x, area.y0 + 6, area.y1)
            return
        row = self.scene.row
        assert row is not None
        places = []
        for feature, axis in zip(self.map.features, self.map.axes, strict=True):
            value = row.values[feature.name]
            if axis.categories is None:
                places.append(axis.place(float(value)))
            elif value in axis.categories:
                places.append((axis.categories.index(value) + 0.5) / len(axis.categories))
            else:
                return
        x, y = _at((places[0], places[1]), area)
        for line in ([(area.x0, y), (area.x1, y)], [(x, area.y0), (x, area.y1)]):
            canvas.line(line, DARK, 0.5, layer=LINES)
        canvas.dot(x, y, 3.6, DARK, edge=WHITE, width=0.9, layer=MARKS)


def _at(place: Point | list[float], area: Box) -> Point:
    """A place in the plane, from 0 to 1 to the right and up, in points."""
    return area.x0 + area.width * place[0], area.y1 - area.height * place[1]


def _draw_break(canvas: Canvas, start: Point, end: Point) -> None:
    """A line across the plane, and two slanted ones at its ends: beyond it, all is drawn nearer."""
    canvas.line([start, end], WHITE, 0.5)
    is_upright = start[0] == end[0]
    for x, y in (start, end):
        for shift, colour, thick in ((0.0, WHITE, 2.2), (-1.3, DARK, 0.6), (1.3, DARK, 0.6)):
            slant = [(shift - 1.2, 3.0), (shift + 1.2, -3.0)]
            line = [(x + a, y + b) if is_upright else (x + b, y + a) for a, b in slant]
            canvas.line(line, colour, thick, layer=MARKS - 1)


def _how_many(categories: tuple[Level, ...]) -> str:
    return f"{len(categories)} values"


def _slot_labels(
    categories: tuple[Level, ...], room: float, size: float
) -> list[tuple[float, str]]:
    """Middles of the slots of categories, and their names."""
    return [
        ((i + 0.5) / len(categories), shorten(clean(category_name(category)), room, size))
        for i, category in enumerate(categories)
    ]
