"""The card of a node that splits on a pair: a map of the plane, with some of the data."""

from __future__ import annotations

from shapetree.data._columns import Level
from shapetree.drawing._plane_map import map_of
from shapetree.plot._canvas import LINES, MARKS, line_height
from shapetree.plot._card import LABEL_GAP, TICK, Card
from shapetree.plot._colours import DARK, GREY, WHITE, Colour, blend
from shapetree.plot._layout import Box, Point, spread
from shapetree.plot._scene import Scene
from shapetree.plot._text_width import clean, shorten, width
from shapetree.tree._view import NodeView
from shapetree.tree._words import category_name

ARROWS = (" →", " ↑")
# Least width of a plane.
LEAST_PLANE = 120.0
# How much white the colours of branches have, so that rows stand out.
PALE_AREA = 0.68
# Categories that a large card names one above the other.
MOST_NAMES = 80
# How far a label of the horizontal axis may stand from its place.
MOST_SHIFT = 8.0


class PairCard(Card):
    """A node that splits on a pair: its plane, coloured by branch, and some of the rows."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        self.map = map_of(node, scene.swap)
        self._names = [clean(feature.name) for feature in self.map.features]
        super().__init__(scene, node, self._names)
        style = self.style
        y_ticks = self._y_ticks()
        labels = [width(label, style.small) for _, label in y_ticks]
        self._left = style.pad + max(labels, default=0.0) + TICK + 1
        self.width = max(self.least_width, min(self._left + LEAST_PLANE, style.max_width))
        # What goes up is named above the plane.
        top = self.top + 2 + line_height(self._name_size)
        area = Box(self._left, top, self.body_right, top + self._plane_height)
        self.draw_header()
        self._draw_areas(area)
        for place, target in zip(self.map.points.tolist(), self.map.targets.tolist(), strict=True):
            self.dot(*_at(place, area), style.dot, self._colour_of(target), edge=DARK, width=0.35)
        self._draw_ticks(area, y_ticks)
        self._draw_names(area)
        self.draw_missing(area.y0, area.y1)
        self._mark_row(area)
        below = TICK + line_height(style.small) + line_height(self._name_size)
        self.finish(area.y1 + below + style.pad - 3)

    @property
    def _name_size(self) -> float:
        """Size of the letters that name the axes."""
        return self.style.small + self.style.is_large

    @property
    def _plane_height(self) -> float:
        """A large card is as high as the names of its categories need, unless there are many."""
        categories = self.map.axes[1].categories
        if categories is None or not self.style.is_large or len(categories) > MOST_NAMES:
            return self.style.plane
        return max(self.style.plane, len(categories) * line_height(self.style.small) + 1)

    def _y_ticks(self) -> list[tuple[float, str]]:
        """Places on the vertical axis and their labels; for categories the middles of slots."""
        axis, size = self.map.axes[1], self.style.small
        if axis.categories is None:
            return axis.ticks(self.style.n_ticks)
        if self._plane_height < len(axis.categories) * line_height(size):
            return [(0.5, _how_many(axis.categories))]
        return _slot_labels(axis.categories, 0.3 * self.style.max_width, size)

    def _x_ticks(self, area: Box) -> list[tuple[float, str, float]]:
        """Places on the horizontal axis, labels that fit, and where these stand."""
        axis, size = self.map.axes[0], self.style.small
        if axis.categories is None:
            choices = [axis.ticks(n_ticks) for n_ticks in range(self.style.n_ticks, 1, -1)]
        else:
            names = _slot_labels(axis.categories, area.width / len(axis.categories) - 4, size)
            is_clear = len({label for _, label in names}) == len(names)
            choices = [names if is_clear else [(0.5, _how_many(axis.categories))]]
        for ticks in choices:
            places = [area.x0 + area.width * place for place, _ in ticks]
            widths = [width(label, size) for _, label in ticks]
            centres = spread(places, widths, area.x0 - 4, area.x1 + 3, LABEL_GAP) if ticks else []
            if centres is not None and all(
                abs(a - b) <= MOST_SHIFT for a, b in zip(centres, places, strict=True)
            ):
                return [(*tick, centre) for tick, centre in zip(ticks, centres, strict=True)]
        return []

    def _draw_areas(self, area: Box) -> None:
        """One shape for each branch, and white lines between branches."""
        for colour, loops in zip(self.scene.palette.branches, self.map.areas, strict=False):
            outlines = [[_at(point, area) for point in loop] for loop in loops]
            self.area(outlines, blend(colour, PALE_AREA))
            for outline in outlines:
                self.line([*outline, outline[0]], WHITE, 0.7 * self.map.line_width)
        self.line([*area.corners(), (area.x0, area.y0)], GREY, 0.6)
        across, up = (axis.breaks for axis in self.map.axes)
        for place in across:
            self._draw_break(_at((place, 0), area), _at((place, 1), area))
        for place in up:
            self._draw_break(_at((0, place), area), _at((1, place), area))

    def _draw_break(self, start: Point, end: Point) -> None:
        """A line across the plane, and slanted ones at its ends: beyond it, all is drawn nearer."""
        self.line([start, end], WHITE, 0.5)
        is_upright = start[0] == end[0]
        for x, y in (start, end):
            for shift, colour, thick in ((0.0, WHITE, 2.2), (-1.3, DARK, 0.6), (1.3, DARK, 0.6)):
                slant = [(shift - 1.2, 3.0), (shift + 1.2, -3.0)]
                line = [(x + a, y + b) if is_upright else (x + b, y + a) for a, b in slant]
                self.line(line, colour, thick, layer=MARKS - 1)

    def _colour_of(self, target: float) -> Colour:
        if self.scene.view.classes is None:
            return self.scene.shade(target)
        return self.scene.palette.classes[int(target)]

    def _draw_ticks(self, area: Box, y_ticks: list[tuple[float, str]]) -> None:
        size = self.style.small
        height, room = line_height(size), self._left - self.style.pad - TICK
        for place, label in y_ticks:
            y = area.y1 - area.height * place
            self.line([(area.x0 - TICK, y), (area.x0, y)], GREY, 0.6)
            # A label at either end stays beside the plane.
            top = min(max(y - height / 2, area.y0 - 1), area.y1 - height + 2)
            self.text(area.x0 - TICK - 1, top, label, size, room=room, colour=GREY, align="right")
        for place, label, centre in self._x_ticks(area):
            x = area.x0 + area.width * place
            self.line([(x, area.y1), (x, area.y1 + TICK)], GREY, 0.6)
            self.text(centre, area.y1 + TICK, label, size, colour=GREY, align="center")

    def _draw_names(self, area: Box) -> None:
        """Name the axes, and say how many rows are drawn if that is not all with both features."""
        assert self.node.scatter is not None
        n_shown, n_rows = len(self.map.points), self.node.n_rows - self.node.scatter.n_missing
        shown = f"{n_shown:,} of {n_rows:,} shown" if n_shown < n_rows else ""
        across, up = (name + arrow for name, arrow in zip(self._names, ARROWS, strict=True))
        size, bold, left = self._name_size, self.style.is_large, self.style.pad
        room = self.width - 2 * left
        lower = area.y1 + TICK + line_height(self.style.small)
        taken = width(shown, self.style.small) + LABEL_GAP if shown else 0.0
        if taken + width(across, size, bold) > room:
            shown, taken = "", 0.0
        self.text(area.x1, lower, across, size, room=room - taken, bold=bold, align="right")
        self.text(left, lower, shown, self.style.small, colour=GREY)
        self.text(left, area.y0 - line_height(size) - 1, up, size, room=room, bold=bold)

    def _mark_row(self, area: Box) -> None:
        """Mark the row with a cross and a dot, if one is to be marked and lies in the plane."""
        if self.row is None:
            return
        if self.lacks_value():
            self.point_at_missing(area.y0 + 6, area.y1)
            return
        places = []
        for feature, axis in zip(self.map.features, self.map.axes, strict=True):
            value = self.row.values[feature.name]
            if axis.categories is None:
                places.append(axis.place(float(value)))
            elif value in axis.categories:
                places.append((axis.categories.index(value) + 0.5) / len(axis.categories))
            else:
                return
        x, y = _at(places, area)
        for line in ([(area.x0, y), (area.x1, y)], [(x, area.y0), (x, area.y1)]):
            self.line(line, DARK, 0.5, layer=LINES)
        self.dot(x, y, 3.6, DARK, edge=WHITE, width=0.9, layer=MARKS)


def _at(place: Point | list[float], area: Box) -> Point:
    """A place in the plane, from 0 to 1 to the right and up, in points."""
    return area.x0 + area.width * place[0], area.y1 - area.height * place[1]


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
