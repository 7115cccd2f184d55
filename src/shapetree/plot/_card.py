"""What the cards of all nodes that split have in common."""

from __future__ import annotations

from collections.abc import Sequence

from shapetree.plot._canvas import CARDS, MARKS, Canvas, line_height
from shapetree.plot._colours import DARK, FAINT, GREY, PALE, WHITE, blend
from shapetree.plot._layout import Box, hatching
from shapetree.plot._scene import Scene, rows_of
from shapetree.plot._text_width import clean, shorten, width
from shapetree.tree._digits import percent
from shapetree.tree._view import NodeView

MISSING = "NA"
BETWEEN = " \N{MULTIPLICATION SIGN} "
TICK = 3.0  # length of a tick
LABEL_GAP = 4.0  # least space between two labels
HEADER_GAP = 6.0
BRANCH_SIZE = 9.5  # letters of what large cards say of branches


def draw_frame(canvas: Canvas, is_marked: bool) -> None:
    """Draw a border around a canvas."""
    box = Box(0.0, 0.0, canvas.width, canvas.height)
    edge, rim = (DARK, 1.1) if is_marked else (PALE, 0.7)
    canvas.rounded(box, WHITE, 3.0, edge=edge, width=rim, layer=CARDS)


class Card(Canvas):
    """A node that splits; it is drawn when it is made."""

    def __init__(self, scene: Scene, node: NodeView, names: Sequence[str]) -> None:
        super().__init__()
        self.scene, self.node, self.style = scene, node, scene.style
        self.row = scene.row_at(node)  # the row that is marked, if it passes the node
        density, scatter = node.density, node.scatter
        n_missing = 0 if density is None else int(density.missing.sum())
        n_missing += 0 if scatter is None else scatter.n_missing
        self.shows_missing = node.saw_missing or n_missing > 0
        style, self._aside = self.style, self._words_aside()
        around = width(self._aside, style.small) + HEADER_GAP + 2 * style.pad + 1
        self._titles = [BETWEEN.join(names)]
        is_too_long = width(self._titles[0], style.name, bold=True) > style.max_width - around
        if is_too_long and len(names) == 2:
            self._titles = [names[0] + BETWEEN.rstrip(), names[1]]
        # A width that has room for the names, within the bounds of the style.
        words = max(width(line, style.name, bold=True) for line in self._titles)
        self.least_width = min(max(words + around, style.width), style.max_width)
        # Where what is below the header starts.
        self.top = style.pad - 2 + len(self._titles) * line_height(style.name) + 2

    def _words_aside(self) -> str:
        """What the header says on the right: the number of rows, or values of the marked row."""
        if self.row is None:
            stability = self.scene.view.stability
            rows = rows_of(self.node)
            return rows if stability is None else f"{rows}, {stability.mark(self.node.number)}"
        words = [self.row.words(feature) for feature in self.node.features]
        share = 0.7 if self.node.features[0].is_date else 0.5
        return shorten("= " + ", ".join(words), share * self.style.width, self.style.small)

    def draw_header(self) -> None:
        """Draw the features' names, and the rows on the right."""
        style, top = self.style, self.style.pad - 2
        # Both stand on one line.
        lower = top + style.name - style.small
        colour = GREY if self.row is None else DARK
        right = self.width - style.pad
        self.text(right, lower, self._aside, style.small, colour=colour, align="right")
        room = right - style.pad - width(self._aside, style.small) - HEADER_GAP
        for number, line in enumerate(self._titles):
            # A name is written smaller rather than cut, as long as it can be read.
            need = max(width(line, style.name, bold=True), 1.0)
            size = min(max(style.name * (room - 2) / need, style.small - 1), style.name)
            y = top + number * line_height(style.name) + style.name - size
            self.text(style.pad, y, line, size, room=room, bold=True)

    def finish(self, height: float) -> None:
        """Draw the border of a card of some height; large ones list their branches at the end."""
        self.height = height
        if self.style.is_large:
            self._list_branches()
        draw_frame(self, self.row is not None)

    def _list_branches(self) -> None:
        """Where each branch leads to, and how many rows take it."""
        scene, node = self.scene, self.node
        left, right, top = self.style.pad, self.width - self.style.pad, self.height + 3
        self.line([(left, top), (right, top)], FAINT, 0.8)
        top += 5
        for branch, child in enumerate(node.children):
            below = scene.view.nodes[child]
            self.rectangle(Box(left, top + 2, left + 18, top + 10), scene.palette.branches[branch])
            if below.children:
                words = "splits on " + " and ".join(clean(each.name) for each in below.features)
            else:
                words = scene.outcome(below)
                if scene.view.classes is not None:
                    words += f", {scene.support(below)}"
            share = percent(below.n_rows / max(node.n_rows, 1))
            aside, size = f"node {child}, {rows_of(below)} ({share})", self.style.small
            self.text(right, top + 1, aside, size, colour=GREY, align="right")
            room = right - left - 24 - width(aside, size) - 8
            self.text(left + 24, top, words, BRANCH_SIZE, room=room, bold=not below.children)
            top += line_height(BRANCH_SIZE) + 4
        self.height = top + 4

    # --- the cell of missing values ---

    @property
    def missing_width(self) -> float:
        """Width of the cell of missing values."""
        return width(MISSING, self.style.small) + 2

    @property
    def body_right(self) -> float:
        """Where the body ends: before the cell of missing values, if there is one."""
        room = self.missing_width + 5 if self.shows_missing else 0.0
        return self.width - self.style.pad - room

    def draw_missing(self, top: float, bottom: float) -> None:
        """Draw the cell of missing values if there is one."""
        if not self.shows_missing:
            return
        right = self.width - self.style.pad
        cell = Box(right - self.missing_width, top, right, bottom)
        assert self.node.missing_branch is not None
        colour = self.scene.palette.branches[self.node.missing_branch]
        self.rectangle(cell, colour)
        for line in hatching(cell):
            self.line(line, blend(colour, 0.65), 0.8)
        middle = (cell.x0 + cell.x1) / 2
        size = self.style.small
        self.text(middle, bottom + TICK - 1, MISSING, size, colour=GREY, align="center")

    # --- the row that is marked ---

    def lacks_value(self) -> bool:
        """Whether the row that is marked has no value that the node knows."""
        assert self.row is not None
        return any(map(self.row.lacks, self.node.features))

    def point_at_missing(self, top: float, bottom: float) -> None:
        """Mark the cell of missing values, if there is one."""
        if self.shows_missing:
            middle = self.width - self.style.pad - self.missing_width / 2
            self.point_at(middle, top, bottom)

    def point_at(self, x: float, top: float, bottom: float) -> None:
        """Mark a place of a strip: a line down to it, and a triangle."""
        self.line([(x, top), (x, bottom)], WHITE, 2.4, layer=MARKS - 1)
        self.line([(x, top), (x, bottom)], DARK, 1.0, layer=MARKS)
        triangle = [(x - 3.5, top - 2.5), (x + 3.5, top - 2.5), (x, top + 3.5)]
        self.fill(triangle, DARK, edge=WHITE, width=0.5, layer=MARKS)
