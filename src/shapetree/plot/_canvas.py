"""A canvas: collects what to draw, and hands it to matplotlib in a few large pieces."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from shapetree.plot._colours import DARK, Colour, blend
from shapetree.plot._layout import Box, Point
from shapetree.plot._picture import Drawing, before_drawing, root_figure
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
    from matplotlib.figure import Figure
    from matplotlib.text import Text

POINTS_PER_INCH = 72.0
# Greatest side of a figure: what viewers can open, and below 2**16 pixels at 600 dots per inch.
MAX_INCHES = 100.0
# Most that a drawing is enlarged to fill axes that were given.
MAX_SCALE = 1.5
# What lies on what.
EDGES, CARDS, FILLS, LINES, DOTS, MARKS, TEXTS = range(1, 8)
MARGIN = 10.0  # around a whole drawing
# How much of its colour something loses that is beside the point.
FADING = 0.66
LEAST_SIZE = 1.0  # of letters that matplotlib draws
N_CORNERS = 14  # of a dot


class _Shape(NamedTuple):
    """An "area" of several outlines, a "fill" of one, or a "line"."""

    kind: str
    layer: int
    loops: Sequence[Sequence[Point]]
    colour: Colour
    edge: Colour
    width: float


class _Label(NamedTuple):
    x: float
    baseline: float
    text: str
    size: float
    colour: Colour
    bold: bool
    align: str


class Canvas(Drawing):
    """Collects shapes and lines of text, in points from its top left corner."""

    def __init__(self) -> None:
        self.width = self.height = 0.0  # what it takes up; whoever adds to it says so
        self.nodes = {}
        self._shapes: list[_Shape] = []
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
        self._shapes.append(_Shape("fill", layer, [points], colour, edge or colour, width))

    def area(self, loops: Sequence[Sequence[Point]], colour: Colour) -> None:
        """Add a filled shape of several outlines; those that go the other way round are holes."""
        if loops:
            self._shapes.append(_Shape("area", FILLS, loops, colour, colour, 0.0))

    def rectangle(self, box: Box, colour: Colour, **kind: Any) -> None:
        """Add a filled rectangle; see `fill`."""
        if box.width > 0 and box.height > 0:
            self.fill(box.corners(), colour, **kind)

    def rounded(self, box: Box, colour: Colour, radius: float, **kind: Any) -> None:
        """Add a filled rectangle with round corners; see `fill`."""
        radius = min(radius, box.width / 2, box.height / 2)
        x0, x1 = box.x0 + radius, box.x1 - radius
        y0, y1 = box.y0 + radius, box.y1 - radius
        centres = [(x1, y1), (x0, y1), (x0, y0), (x1, y0)]
        points = []
        for quarter, (x, y) in enumerate(centres):
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
        self._shapes.append(_Shape("line", layer, [points], colour, colour, width))

    def text(
        self,
        x: float,
        top: float,
        text: str,
        size: float,
        *,
        room: float = math.inf,
        colour: Colour = DARK,
        bold: bool = False,
        align: str = "left",
    ) -> None:
        """Add a line of text below `top`, shortened to the room it has."""
        shown = shorten(clean(text), room, size, bold)
        if shown:
            baseline = top + ASCENT * size
            self._labels.append(_Label(x, baseline, shown, size, colour, bold, align))

    def place(self, other: Canvas, x: float, y: float, is_faded: bool = False) -> None:
        """Add all that is on another canvas, whose corner comes to a point; pale if faded."""

        def tone(colour: Colour) -> Colour:
            return blend(colour, FADING) if is_faded else colour

        for shape in other._shapes:
            loops = [[(a + x, b + y) for a, b in loop] for loop in shape.loops]
            colour, edge = tone(shape.colour), tone(shape.edge)
            self._shapes.append(shape._replace(loops=loops, colour=colour, edge=edge))
        for label in other._labels:
            self._labels.append(
                label._replace(
                    x=label.x + x, baseline=label.baseline + y, colour=tone(label.colour)
                )
            )

    def make_axes(self, figure: Figure) -> Axes:
        """Axes that fill a figure of the canvas's size."""
        inches = 1 / POINTS_PER_INCH
        inches *= min(1.0, MAX_INCHES * POINTS_PER_INCH / max(self.width, self.height))
        figure.set_size_inches(self.width * inches, self.height * inches)
        figure.set_facecolor("white")
        figure.set_layout_engine("none")
        return figure.add_axes((0.0, 0.0, 1.0, 1.0))

    def draw(self, ax: Axes) -> list[Text]:
        """Draw all that was added, made to fit the axes now and whenever they are drawn."""
        self._set_limits(ax)
        # The shapes of each kind and layer are one piece.
        groups: defaultdict[tuple[int, str], list[_Shape]] = defaultdict(list)
        for shape in self._shapes:
            groups[shape.layer, shape.kind].append(shape)
        pieces = []
        for (layer, kind), shapes in sorted(groups.items()):
            piece = _collection(kind, shapes)
            piece.set_zorder(layer)
            piece.set_in_layout(False)
            ax.add_collection(piece, autolim=False)
            pieces.append((piece, [shape.width for shape in shapes]))
        warn_of_lacking(label.text for label in self._labels)
        texts = [_add_text(ax, label) for label in self._labels]
        sizes = [label.size for label in self._labels]

        def rescale(renderer: Any = None) -> None:
            ax.apply_aspect()
            (left, _), (right, _) = ax.transData.transform([(0, 0), (1, 0)])
            scale = abs(right - left) * POINTS_PER_INCH / root_figure(ax).dpi
            for text, size in zip(texts, sizes, strict=True):
                text.set_fontsize(max(size * scale, LEAST_SIZE))
                text.set_visible(size * scale >= LEAST_SIZE)
            for piece, widths in pieces:
                piece.set_linewidth([width * scale for width in widths])

        before_drawing(ax, rescale)
        rescale()
        return texts

    def _set_limits(self, ax: Axes) -> None:
        room = ax.get_window_extent()
        dpi = root_figure(ax).dpi
        x = max(0.0, room.width / dpi * POINTS_PER_INCH / MAX_SCALE - self.width) / 2
        y = max(0.0, room.height / dpi * POINTS_PER_INCH / MAX_SCALE - self.height) / 2
        # Only what is too large for the drawing both ways is left empty.
        if not (x > 0 and y > 0):
            x = y = 0.0
        ax.set(xlim=(-x, self.width + x), ylim=(self.height + y, -y), autoscale_on=False)
        ax.set_aspect("equal", adjustable="box")
        ax.set_axis_off()


def line_height(size: float) -> float:
    """Height of a line of text."""
    return (ASCENT + DESCENT) * size


def _collection(kind: str, shapes: Sequence[_Shape]) -> Any:
    from matplotlib.collections import LineCollection, PathCollection, PolyCollection
    from matplotlib.path import Path

    colours = [shape.colour for shape in shapes]
    if kind == "area":
        loops = [[Path([*loop, loop[0]], closed=True) for loop in area.loops] for area in shapes]
        return PathCollection([Path.make_compound_path(*its) for its in loops], facecolors=colours)
    outlines = [shape.loops[0] for shape in shapes]
    if kind == "fill":
        edges = [shape.edge for shape in shapes]
        return PolyCollection(outlines, facecolors=colours, edgecolors=edges)
    return LineCollection(outlines, colors=colours, capstyle="butt", joinstyle="round")


def _add_text(ax: Axes, label: _Label) -> Text:
    text = ax.text(
        label.x,
        label.baseline,
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
