"""A canvas: collects what to draw, and hands it to matplotlib in a few large pieces."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shapetree.plot._colours import DARK, Colour, blend
from shapetree.plot._layout import Box, Point
from shapetree.plot._text_width import (
    ASCENT,
    DESCENT,
    clean,
    families_for,
    shorten,
    warn_of_lacking,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# What lies on what.
EDGES, CARDS, FILLS, LINES, DOTS, MARKS, TEXTS = range(1, 8)
# How much of its colour something loses that is beside the point.
MARGIN = 10.0  # around a whole drawing
FADING = 0.66
LEAST_SIZE = 1.0  # of letters that matplotlib draws
N_CORNERS = 14  # of a dot


@dataclass(frozen=True)
class _Fill:
    points: Sequence[Point]
    colour: Colour
    edge: Colour
    width: float


@dataclass(frozen=True)
class _Area:
    loops: Sequence[Sequence[Point]]
    colour: Colour


@dataclass(frozen=True)
class _Line:
    points: Sequence[Point]
    colour: Colour
    width: float


@dataclass(frozen=True)
class _Label:
    x: float
    y: float
    text: str
    size: float
    colour: Colour
    bold: bool
    align: str


@dataclass
class Painted:
    """What matplotlib was given, with sizes that hold at a scale of 1."""

    texts: list[tuple[Text, float]] = field(default_factory=list)
    pieces: list[tuple[Any, list[float]]] = field(default_factory=list)

    def rescale(self, scale: float) -> None:
        """Fit letters and lines to a drawing of another size."""
        for text, size in self.texts:
            text.set_fontsize(max(size * scale, LEAST_SIZE))
            text.set_visible(size * scale >= LEAST_SIZE)
        for piece, widths in self.pieces:
            piece.set_linewidth([width * scale for width in widths])


class Canvas:
    """Collects shapes and lines of text, in points from the top left corner.

    Attributes
    ----------
    is_faded : bool
        Whether what is added from now on is pale.
    """

    def __init__(self) -> None:
        self.is_faded = False
        self._fills: defaultdict[int, list[_Fill]] = defaultdict(list)
        self._areas: list[_Area] = []
        self._lines: defaultdict[int, list[_Line]] = defaultdict(list)
        self._labels: list[_Label] = []

    def fill(
        self,
        points: Sequence[Point],
        colour: Colour,
        *,
        edge: Colour | None = None,
        width: float = 0.0,
        layer: int = FILLS,
    ) -> None:
        """Add a filled polygon, with a line around it if it has a width."""
        colour = self._tone(colour)
        rim = colour if edge is None else self._tone(edge)
        self._fills[layer].append(_Fill(points, colour, rim, width))

    def area(self, loops: Sequence[Sequence[Point]], colour: Colour) -> None:
        """Add a filled shape of several outlines; those that go the other way round are holes."""
        if loops:
            self._areas.append(_Area(loops, self._tone(colour)))

    def rectangle(self, box: Box, colour: Colour, **kind: Any) -> None:
        """Add a filled rectangle; see `fill`."""
        if box.width > 0 and box.height > 0:
            self.fill(box.corners(), colour, **kind)

    def rounded(self, box: Box, colour: Colour, radius: float, **kind: Any) -> None:
        """Add a filled rectangle with round corners; see `fill`."""
        radius = min(radius, box.width / 2, box.height / 2)
        points = []
        for quarter, (x, y) in enumerate(
            [
                (box.x1 - radius, box.y1 - radius),
                (box.x0 + radius, box.y1 - radius),
                (box.x0 + radius, box.y0 + radius),
                (box.x1 - radius, box.y0 + radius),
            ]
        ):
            for step in range(5):
                angle = math.pi / 2 * (quarter + step / 4)
                points.append((x + radius * math.cos(angle), y + radius * math.sin(angle)))
        self.fill(points, colour, **kind)

    def dot(self, x: float, y: float, radius: float, colour: Colour, **kind: Any) -> None:
        """Add a disc; see `fill`."""
        angles = [2 * math.pi * i / N_CORNERS for i in range(N_CORNERS)]
        points = [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]
        self.fill(points, colour, **{"layer": DOTS} | kind)

    def line(
        self, points: Sequence[Point], colour: Colour, width: float, layer: int = LINES
    ) -> None:
        """Add a line through some points."""
        self._lines[layer].append(_Line(points, self._tone(colour), width))

    def text(
        self,
        x: float,
        top: float,
        text: str,
        size: float,
        *,
        room: float,
        colour: Colour = DARK,
        bold: bool = False,
        align: str = "left",
    ) -> None:
        """Add a line of text below `top`, shortened to the room it has."""
        shown = shorten(clean(text), room, size, bold)
        if shown:
            baseline = top + ASCENT * size
            self._labels.append(_Label(x, baseline, shown, size, self._tone(colour), bold, align))

    def paint(self, ax: Axes) -> Painted:
        """Hand everything to matplotlib."""
        from matplotlib.collections import LineCollection, PathCollection, PolyCollection
        from matplotlib.path import Path

        painted = Painted()
        if self._areas:
            shapes = PathCollection(
                [
                    Path.make_compound_path(*(Path([*loop, loop[0]], closed=True) for loop in each))
                    for each in (area.loops for area in self._areas)
                ],
                facecolors=[area.colour for area in self._areas],
                zorder=FILLS,
            )
            painted.pieces.append((shapes, [0.0] * len(self._areas)))
        for layer, fills in self._fills.items():
            polygons = PolyCollection(
                [fill.points for fill in fills],
                facecolors=[fill.colour for fill in fills],
                edgecolors=[fill.edge for fill in fills],
                zorder=layer,
            )
            painted.pieces.append((polygons, [fill.width for fill in fills]))
        for layer, lines in self._lines.items():
            strokes = LineCollection(
                [line.points for line in lines],
                colors=[line.colour for line in lines],
                capstyle="butt",
                joinstyle="round",
                zorder=layer,
            )
            painted.pieces.append((strokes, [line.width for line in lines]))
        for piece, _ in painted.pieces:
            piece.set_in_layout(False)
            ax.add_collection(piece, autolim=False)
        warn_of_lacking(label.text for label in self._labels)
        painted.texts = [(_add_text(ax, label), label.size) for label in self._labels]
        return painted

    def _tone(self, colour: Colour) -> Colour:
        return blend(colour, FADING) if self.is_faded else colour


def line_height(size: float) -> float:
    """Height of a line of text."""
    return (ASCENT + DESCENT) * size


def _add_text(ax: Axes, label: _Label) -> Text:
    text = ax.text(
        label.x,
        label.y,
        label.text,
        color=label.colour,
        family=families_for(label.text),
        weight="bold" if label.bold else "normal",
        style="normal",
        ha=label.align,
        va="baseline",
        zorder=TEXTS,
        parse_math=False,
        usetex=False,
    )
    text.set_in_layout(False)
    return text
