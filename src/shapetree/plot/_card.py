"""What the cards of all nodes that split have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from shapetree.plot._canvas import CARDS, MARKS, Canvas, line_height
from shapetree.plot._colours import DARK, GREY, PALE, WHITE, blend
from shapetree.plot._layout import (
    Box,
    hatching,
)
from shapetree.plot._scene import Scene, is_missing, rows_of
from shapetree.plot._text_width import clean, shorten, width
from shapetree.tree._view import NodeView

MISSING = "NA"
TICK = 3.0  # length of a tick
LABEL_GAP = 4.0  # least space between two labels
HEADER_GAP = 6.0


def draw_frame(canvas: Canvas, scene: Scene, node: NodeView, box: Box) -> None:
    """Draw the border of a node's box."""
    edge, rim = (DARK, 1.1) if scene.marks(node) else (PALE, 0.7)
    canvas.rounded(box, WHITE, 3.0, edge=edge, width=rim, layer=CARDS)


class Card(ABC):
    """A node that splits.

    Attributes
    ----------
    width, height : float
        Its size, in points.
    """

    width: float
    height: float

    def __init__(self, scene: Scene, node: NodeView) -> None:
        self.scene = scene
        self.node = node
        self.style = scene.style
        density, plane = node.density, node.plane
        n_missing = 0 if density is None else int(density.missing.sum())
        n_missing += 0 if plane is None else plane.n_missing
        self.shows_missing = node.saw_missing or n_missing > 0

    def draw(self, canvas: Canvas, box: Box) -> None:
        """Draw the card into a box of its size."""
        draw_frame(canvas, self.scene, self.node, box)
        self._draw_header(canvas, box)
        self._draw_body(canvas, box)

    @abstractmethod
    def _draw_body(self, canvas: Canvas, box: Box) -> None: ...

    @property
    def _header_height(self) -> float:
        n_lines = len(self._title_lines())
        return self.style.pad - 2 + n_lines * line_height(self.style.name) + 2

    def _title(self) -> str:
        return clean(self.node.features[0].name)

    def _title_lines(self) -> list[str]:
        """The title, in as many lines as there are."""
        return [self._title()]

    @property
    def _title_room(self) -> float:
        """Width of a title's line on the widest card."""
        aside = width(self._aside(), self.style.small)
        return self.style.max_width - 2 * self.style.pad - HEADER_GAP - aside - 1

    def _aside(self) -> str:
        """What the header says on the right."""
        if not self.scene.marks(self.node):
            stability = self.scene.view.stability
            rows = rows_of(self.node)
            return rows if stability is None else f"{rows}, {stability.mark(self.node.number)}"
        assert self.scene.row is not None
        words = [self.scene.row.words(feature) for feature in self.node.features]
        share = 0.7 if self.node.features[0].is_date else 0.5
        return shorten("= " + ", ".join(words), share * self.style.width, self.style.small)

    @property
    def _width_for_header(self) -> float:
        """A width that has room for the feature's name, within the bounds of the style."""
        style = self.style
        words = max(width(line, style.name, bold=True) for line in self._title_lines())
        words += width(self._aside(), style.small)
        return min(max(words + HEADER_GAP + 2 * style.pad + 1, style.width), style.max_width)

    def _draw_header(self, canvas: Canvas, box: Box) -> None:
        """The feature's name, and the number of rows or the value of the row that is marked."""
        style, top = self.style, box.y0 + self.style.pad - 2
        inner = box.width - 2 * style.pad
        aside = self._aside()
        colour = DARK if self.scene.marks(self.node) else GREY
        # Both stand on one line.
        lower = top + style.name - style.small
        taken = width(aside, style.small)
        canvas.text(
            box.x1 - style.pad, lower, aside, style.small, room=taken, colour=colour, align="right"
        )
        room = inner - taken - HEADER_GAP
        for number, line in enumerate(self._title_lines()):
            # A name is written smaller rather than cut, as long as it can be read.
            need = max(width(line, style.name, bold=True), 1.0)
            size = min(max(style.name * (room - 2) / need, style.small - 1), style.name)
            y = top + number * line_height(style.name) + style.name - size
            canvas.text(box.x0 + style.pad, y, line, size, room=room, bold=True)

    # --- the cell of missing values ---

    @property
    def _missing_width(self) -> float:
        return width(MISSING, self.style.small) + 2

    @property
    def _missing_room(self) -> float:
        return self._missing_width + 5 if self.shows_missing else 0.0

    def _draw_missing(self, canvas: Canvas, cell: Box) -> None:
        assert self.node.missing_branch is not None
        colour = self.scene.palette.branches[self.node.missing_branch]
        canvas.rectangle(cell, colour)
        for line in hatching(cell):
            canvas.line(line, blend(colour, 0.65), 0.8)
        canvas.text(
            (cell.x0 + cell.x1) / 2,
            cell.y1 + TICK - 1,
            MISSING,
            self.style.small,
            room=cell.width + 2,
            colour=GREY,
            align="center",
        )

    def _lacks_value(self) -> bool:
        """Whether the row that is marked has no value that the node knows."""
        row = self.scene.row
        assert row is not None
        values = [row.values[feature.name] for feature in self.node.features]
        unknown = any(
            feature.categories is not None and value not in feature.categories
            for feature, value in zip(self.node.features, values, strict=True)
        )
        return unknown or any(map(is_missing, values))

    def _point_at(self, canvas: Canvas, x: float, top: float, bottom: float) -> None:
        """Mark a place of a strip: a line down to it, and a triangle."""
        canvas.line([(x, top), (x, bottom)], WHITE, 2.4, layer=MARKS - 1)
        canvas.line([(x, top), (x, bottom)], DARK, 1.0, layer=MARKS)
        triangle = [(x - 3.5, top - 2.5), (x + 3.5, top - 2.5), (x, top + 3.5)]
        canvas.fill(triangle, DARK, edge=WHITE, width=0.5, layer=MARKS)
