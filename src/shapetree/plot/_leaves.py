"""How leaves are drawn, and nodes whose children are not shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapetree.plot._canvas import Canvas, line_height
from shapetree.plot._card import draw_frame
from shapetree.plot._colours import DARK, FAINT, GREY, PALE
from shapetree.plot._layout import Box
from shapetree.plot._scene import Scene
from shapetree.plot._text_width import width
from shapetree.tree._view import NodeView

BAR = 42.0  # width of the bar of a leaf that is a line
FOLDED = " …"
MOST, LEAST = 120.0, 60.0  # room for what a leaf predicts


@dataclass(frozen=True)
class LeafShape:
    """The size that all leaves of a picture have.

    Attributes
    ----------
    is_line : bool
        Whether bar, prediction and rows stand beside each other; otherwise below.
    outcome, support : float
        Widths of what is predicted and of the rows.
    width, height : float
    """

    is_line: bool
    outcome: float
    support: float
    width: float
    height: float


def leaf_shape(scene: Scene, leaves: Sequence[NodeView], is_line: bool) -> LeafShape:
    """Make leaves as wide as their words need, within bounds."""
    style = scene.style
    bold = [width(scene.outcome(node), style.small + 1, bold=True) for node in leaves]
    plain = [width(words_below(scene, node, True), style.small) for node in leaves]
    outcome, support = min(max(bold), MOST), max(plain)
    if is_line:
        wide = BAR + outcome + support + 22
        return LeafShape(True, outcome, support, wide, line_height(style.small + 1) + 6)
    inner = max(outcome, support, LEAST)
    bar = 7.0 if scene.view.classes is not None else 16.0
    high = line_height(style.small + 1) + bar + line_height(style.small) + 13
    return LeafShape(False, inner, inner, inner + 2 * style.pad, high)


def words_below(scene: Scene, node: NodeView, is_folded: bool) -> str:
    """What is said about a leaf's rows."""
    return scene.support(node) + (FOLDED if is_folded else "")


def draw_leaf(
    canvas: Canvas, scene: Scene, node: NodeView, shape: LeafShape, box: Box, is_folded: bool
) -> None:
    """Draw a leaf into a box of its shape."""
    draw = _draw_line if shape.is_line else _draw_card
    draw(canvas, scene, node, shape, box, words_below(scene, node, is_folded))


def _draw_line(
    canvas: Canvas, scene: Scene, node: NodeView, shape: LeafShape, box: Box, words: str
) -> None:
    small = scene.style.small
    if scene.marks(node):
        draw_frame(canvas, scene, node, box)
    x, middle = box.x0 + 5, (box.y0 + box.y1) / 2
    draw_bar(canvas, scene, node, Box(x, middle - 4, x + BAR, middle + 4))
    x += BAR + 6
    top = middle - line_height(small + 1) / 2
    canvas.text(x, top, scene.outcome(node), small + 1, room=shape.outcome, bold=True)
    canvas.text(x + shape.outcome + 6, top + 1, words, small, room=shape.support, colour=GREY)


def _draw_card(
    canvas: Canvas, scene: Scene, node: NodeView, shape: LeafShape, box: Box, words: str
) -> None:
    style = scene.style
    draw_frame(canvas, scene, node, box)
    centre, top = (box.x0 + box.x1) / 2, box.y0 + 4
    canvas.text(
        centre,
        top,
        scene.outcome(node),
        style.small + 1,
        room=shape.outcome,
        bold=True,
        align="center",
    )
    top += line_height(style.small + 1) + 2
    bottom = box.y1 - 4 - line_height(style.small)
    bar = Box(box.x0 + style.pad, top, box.x1 - style.pad, bottom - 3)
    draw_bar(canvas, scene, node, bar)
    canvas.text(centre, bottom, words, style.small, room=shape.support, colour=GREY, align="center")


def draw_bar(canvas: Canvas, scene: Scene, node: NodeView, bar: Box) -> None:
    """Draw the shares of the classes, or where the targets lie."""
    if scene.view.classes is None:
        draw_histogram(canvas, scene, node, bar)
        return
    canvas.rectangle(bar, FAINT)
    x = bar.x0
    for colour, share in scene.stacked(node):
        canvas.rectangle(Box(x, bar.y0, x + share * bar.width, bar.y1), colour)
        x += share * bar.width


def draw_histogram(canvas: Canvas, scene: Scene, node: NodeView, area: Box) -> None:
    """Draw the node's targets on the range of all, and a line at what it predicts.

    The first and the last bar may stand for all targets beyond the others.
    """
    counts = node.counts
    assert counts is not None
    canvas.line([(area.x0, area.y1), (area.x1, area.y1)], PALE, 0.7)
    step = area.width / len(counts)
    unit = area.height / max(int(counts.max()), 1)
    for i, count in enumerate(counts.tolist()):
        if count:
            left = area.x0 + i * step
            box = Box(left, area.y1 - count * unit, left + step, area.y1)
            shade = scene.palette.shade((i + 0.5) / len(counts))
            canvas.rectangle(box, shade, width=0.2)
    x = area.x0 + area.width * target_place(scene, float(node.prediction[0]))
    canvas.line([(x, area.y0 - 1.5), (x, area.y1 + 1.5)], DARK, 1.1)


def target_place(scene: Scene, target: float) -> float:
    """Where a target lies in a histogram, from 0 to 1."""
    edges = scene.view.target_edges
    assert edges is not None
    return float(np.interp(target, edges, np.linspace(0, 1, len(edges))))
