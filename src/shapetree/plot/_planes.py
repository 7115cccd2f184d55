"""The card of a node that splits on a pair: a map of the plane, with some of the data."""

from __future__ import annotations

from shapetree.data._table import Level
from shapetree.plot._canvas import LINES, MARKS, Canvas, line_height
from shapetree.plot._card import LABEL_GAP, TICK, Card
from shapetree.plot._colours import DARK, GREY, WHITE, Colour, blend
from shapetree.plot._layout import (
    Box,
    round_numbers,
    share_of,
    spread,
)
from shapetree.plot._scene import Scene
from shapetree.plot._text import clean, distinct, shorten, width
from shapetree.tree._view import NodeView, Plane


class PairCard(Card):
    """A node that splits on a pair: its plane, coloured by branch, and some of the rows."""

    def __init__(self, scene: Scene, node: NodeView) -> None:
        super().__init__(scene, node)
        style = self.style
        plane = node.plane
        assert plane is not None
        self.plane: Plane = plane
        n_lines = 2 * line_height(style.small)
        self.height = self._header_height + 1 + style.plane + TICK + n_lines + style.pad - 3
        self.y_ticks = self._y_ticks()
        labels = [width(label, style.small) for _, label in self.y_ticks]
        self.left = style.pad + max(labels, default=0.0) + TICK + 1
        self.width = max(self._width_for_header, min(160.0, style.max_width))
        self.x_ticks = self._x_ticks()

    @property
    def _plane_width(self) -> float:
        return self.width - self.left - self.style.pad - self._missing_room

    def _title(self) -> str:
        return "↑ " + clean(self.node.features[1].name)

    def _y_ticks(self) -> list[tuple[float, str]]:
        """Places on the vertical axis and their labels; for categories the middles of slots."""
        axis, size = self.plane.axes[1], self.style.small
        if axis.categories is None:
            numbers = round_numbers(axis.low, axis.high, self.style.n_ticks)
            return list(zip(numbers, distinct(numbers), strict=True))
        if self.style.plane < len(axis.categories) * line_height(size):
            return []
        return _slot_labels(axis.categories, self.style.width / 4, size)

    def _x_ticks(self) -> list[tuple[float, str]]:
        """Places on the horizontal axis and labels that fit."""
        axis, size = self.plane.axes[0], self.style.small
        if axis.categories is None:
            for n_ticks in range(self.style.n_ticks, 1, -1):
                numbers = round_numbers(axis.low, axis.high, n_ticks)
                ticks = list(zip(numbers, distinct(numbers), strict=True))
                if self._centres(ticks, 0.0) is not None:
                    return ticks
            return []
        ticks = _slot_labels(axis.categories, self._plane_width / len(axis.categories) - 4, size)
        if len({label for _, label in ticks}) == len(ticks):
            return ticks
        return [(axis.high / 2, f"{len(axis.categories)} categories")]

    def _centres(self, ticks: list[tuple[float, str]], left: float) -> list[float] | None:
        """Where labels of the horizontal axis stand; None if they do not fit."""
        area = Box(left, 0.0, left + self._plane_width, 0.0)
        places = [self._x(value, area) for value, _ in ticks]
        sizes = [width(label, self.style.small) for _, label in ticks]
        if not places:
            return []
        centres = spread(places, sizes, area.x0 - 4, area.x1 + 3, LABEL_GAP)
        if centres is None or max(abs(a - b) for a, b in zip(centres, places, strict=True)) > 8:
            return None
        return centres

    def _draw_body(self, canvas: Canvas, box: Box) -> None:
        top = box.y0 + self._header_height + 1
        x0 = box.x0 + self.left
        area = Box(x0, top, x0 + self._plane_width, top + self.style.plane)
        self._draw_regions(canvas, area)
        self._draw_points(canvas, area)
        self._draw_axes(canvas, area, box)
        if self.shows_missing:
            right = box.x1 - self.style.pad
            cell = Box(right - self._missing_width, area.y0, right, area.y1)
            self._draw_missing(canvas, cell)
        if self.scene.marks(self.node):
            self._draw_mark(canvas, area, box)

    def _x(self, value: float, area: Box) -> float:
        axis = self.plane.axes[0]
        return area.x0 + area.width * share_of(value, axis.low, axis.high)

    def _y(self, value: float, area: Box) -> float:
        axis = self.plane.axes[1]
        return area.y1 - area.height * share_of(value, axis.low, axis.high)

    def _draw_regions(self, canvas: Canvas, area: Box) -> None:
        for region, polygon in zip(self.node.regions, self.plane.polygons, strict=True):
            if polygon:
                colour = self.scene.palette.branches[region.branch]
                corners = [(self._x(x, area), self._y(y, area)) for x, y in polygon]
                canvas.fill(corners, blend(colour, 0.45), edge=WHITE, width=0.7)
        canvas.line([*area.corners(), (area.x0, area.y0)], GREY, 0.6)

    def _draw_points(self, canvas: Canvas, area: Box) -> None:
        points, targets = self.plane.points.tolist(), self.plane.targets.tolist()
        for (x, y), target in zip(points, targets, strict=True):
            # What lies beyond the axes would gather on the border.
            if self._is_inside(x, y):
                centre = self._x(x, area), self._y(y, area)
                canvas.dot(*centre, self.style.dot, self._colour_of(target), edge=WHITE, width=0.3)

    def _is_inside(self, x: float, y: float) -> bool:
        across, up = self.plane.axes
        return across.low <= x <= across.high and up.low <= y <= up.high

    def _colour_of(self, target: float) -> Colour:
        if self.scene.view.classes is None:
            return self.scene.shade(target)
        return self.scene.palette.classes[int(target)]

    def _draw_axes(self, canvas: Canvas, area: Box, box: Box) -> None:
        size = self.style.small
        half = line_height(size) / 2
        for value, label in self.y_ticks:
            y = self._y(value, area)
            canvas.line([(area.x0 - TICK, y), (area.x0, y)], GREY, 0.6)
            # A label at either end stays beside the plane.
            top = min(max(y - half, area.y0 - 1), area.y1 - 2 * half + 2)
            room = self.left - self.style.pad - TICK
            canvas.text(area.x0 - TICK - 1, top, label, size, room=room, colour=GREY, align="right")
        self._draw_x_labels(canvas, area)
        canvas.text(
            area.x1,
            area.y1 + TICK + line_height(size),
            self.node.features[0].name + " →",
            size + (1 if self.style.is_exact else 0.5),
            room=box.width - 2 * self.style.pad,
            bold=True,
            align="right",
        )

    def _draw_x_labels(self, canvas: Canvas, area: Box) -> None:
        centres = self._centres(self.x_ticks, area.x0) or []
        for centre, (value, label) in zip(centres, self.x_ticks, strict=True):
            x = self._x(value, area)
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
        for feature, axis in zip(self.node.features, self.plane.axes, strict=True):
            value = row.values[feature.name]
            if axis.categories is None:
                places.append(float(value))
            elif value in axis.categories:
                places.append(axis.categories.index(value) + 0.5)
            else:
                return
        x, y = self._x(places[0], area), self._y(places[1], area)
        for line in ([(area.x0, y), (area.x1, y)], [(x, area.y0), (x, area.y1)]):
            canvas.line(line, DARK, 0.5, layer=LINES)
        canvas.dot(x, y, 3.6, DARK, edge=WHITE, width=0.9, layer=MARKS)


def _slot_labels(
    categories: tuple[Level, ...], room: float, size: float
) -> list[tuple[float, str]]:
    """Middles of the slots of categories, and their names."""
    return [
        (i + 0.5, shorten(clean(category), room, size)) for i, category in enumerate(categories)
    ]
