"""How leaves are drawn, and nodes whose children are not shown."""

from __future__ import annotations

from collections.abc import Sequence

from shapetree.drawing._ticks import distinct, round_numbers
from shapetree.plot._canvas import Canvas, line_height
from shapetree.plot._card import TICK, draw_frame
from shapetree.plot._colours import DARK, FAINT, GREY, PALE
from shapetree.plot._layout import Box
from shapetree.plot._scene import LARGE, Scene, rows_of
from shapetree.plot._text_width import clean, width
from shapetree.tree._view import NodeView

BAR = 42.0  # width of the bar of a leaf that is a line
FOLDED = " …"
MOST, LEAST = 120.0, 60.0  # room for what a leaf predicts
# Of a large leaf: bars of classes, their letters and names; height of its histogram.
MAX_BARS, TEXT, MOST_NAME = 40, 9.5, 150.0
HISTOGRAM = 150.0


def leaf_cards(scene: Scene, leaves: Sequence[NodeView], are_lines: bool) -> dict[int, Canvas]:
    """Cards of all leaves of a picture by number, as wide as their words need, within bounds.

    Bar, prediction and rows stand beside each other if leaves are lines, otherwise below.
    """
    small = scene.style.small
    outcome = max(width(scene.outcome(leaf), small + 1, bold=True) for leaf in leaves)
    # So wide that all could be folded.
    support = max(width(scene.support(leaf) + FOLDED, small) for leaf in leaves)
    draw = _line if are_lines else _card
    return {leaf.number: draw(scene, leaf, min(outcome, MOST), support) for leaf in leaves}


def _support(scene: Scene, leaf: NodeView) -> str:
    return scene.support(leaf) + (FOLDED if leaf.children else "")


def _line(scene: Scene, leaf: NodeView, outcome: float, support: float) -> Canvas:
    canvas, small = Canvas(), scene.style.small
    canvas.width = BAR + outcome + support + 22
    canvas.height = line_height(small + 1) + 6
    if scene.row_at(leaf) is not None:
        draw_frame(canvas, is_marked=True)
    middle, x = canvas.height / 2, 5 + BAR + 6
    _draw_bar(canvas, scene, leaf, Box(5, middle - 4, 5 + BAR, middle + 4))
    top = middle - line_height(small + 1) / 2
    canvas.text(x, top, scene.outcome(leaf), small + 1, room=outcome, bold=True)
    canvas.text(x + outcome + 6, top + 1, _support(scene, leaf), small, colour=GREY)
    return canvas


def _card(scene: Scene, leaf: NodeView, outcome: float, support: float) -> Canvas:
    canvas, small, pad = Canvas(), scene.style.small, scene.style.pad
    inner = max(outcome, support, LEAST)
    canvas.width = inner + 2 * pad
    centre, top = canvas.width / 2, 4.0
    canvas.text(centre, top, scene.outcome(leaf), small + 1, room=inner, bold=True, align="center")
    top += line_height(small + 1) + 2
    bottom = top + (7.0 if scene.view.classes is not None else 16.0)
    _draw_bar(canvas, scene, leaf, Box(pad, top, pad + inner, bottom))
    canvas.text(centre, bottom + 3, _support(scene, leaf), small, colour=GREY, align="center")
    canvas.height = bottom + 3 + line_height(small) + 4
    draw_frame(canvas, scene.row_at(leaf) is not None)
    return canvas


def _draw_bar(canvas: Canvas, scene: Scene, node: NodeView, bar: Box) -> None:
    """Draw the shares of the classes, or where the targets lie."""
    if scene.view.classes is None:
        _draw_histogram(canvas, scene, node, bar)
        return
    canvas.rectangle(bar, FAINT)
    x = bar.x0
    for colour, share in zip(scene.palette.classes, scene.shares(node), strict=True):
        canvas.rectangle(Box(x, bar.y0, x + share * bar.width, bar.y1), colour)
        x += share * bar.width


def _draw_histogram(canvas: Canvas, scene: Scene, node: NodeView, area: Box) -> None:
    """Draw the node's targets on the range of all, and a line at what it predicts.

    The first and the last bar may stand for all targets beyond the others.
    """
    counts = node.counts
    assert counts is not None
    canvas.line([(area.x0, area.y1), (area.x1, area.y1)], PALE, 0.7)
    step = area.width / len(counts)
    unit = area.height / max(int(counts.max()), 1)
    for i, count in enumerate(counts.tolist()):
        left = area.x0 + i * step
        box = Box(left, area.y1 - count * unit, left + step, area.y1)
        canvas.rectangle(box, scene.palette.shade((i + 0.5) / len(counts)), width=0.2)
    x = area.x0 + area.width * scene.target_place(float(node.prediction[0]))
    canvas.line([(x, area.y0 - 1.5), (x, area.y1 + 1.5)], DARK, 1.1)


# --- large ones ---


def large_leaf(scene: Scene, leaf: NodeView) -> Canvas:
    """A leaf with a bar for each class, or with its targets."""
    canvas = Canvas()
    canvas.width = LARGE.width
    top, aside = LARGE.pad - 2, rows_of(leaf)
    left, right = LARGE.pad, LARGE.width - LARGE.pad
    lower = top + LARGE.name - LARGE.small
    canvas.text(right, lower, aside, LARGE.small, colour=GREY, align="right")
    room = right - left - width(aside, LARGE.small) - 8
    canvas.text(left, top, scene.outcome(leaf), LARGE.name, room=room, bold=True)
    top += line_height(LARGE.name) + 5
    draw = _draw_targets if scene.view.classes is None else _draw_classes
    canvas.height = draw(canvas, scene, leaf, top) + LARGE.pad
    draw_frame(canvas, scene.row_at(leaf) is not None)
    return canvas


def _draw_classes(canvas: Canvas, scene: Scene, leaf: NodeView, top: float) -> float:
    """A bar for each class; gives the place below."""
    assert scene.view.classes is not None
    labels, shares = scene.view.classes[0], scene.shares(leaf)
    order = sorted(range(len(labels)), key=lambda i: -shares[i])[:MAX_BARS]
    names = [clean(labels[i]) for i in order]
    words = [scene.share_words(leaf, i) for i in order]
    room = min(max(width(name, TEXT, bold=True) for name in names), MOST_NAME)
    left = LARGE.pad + room + 6
    right = LARGE.width - LARGE.pad - max(width(each, TEXT) for each in [*words, "100 %"]) - 6
    pitch = line_height(TEXT) + 4
    for i, name, share in zip(order, names, words, strict=True):
        bold = labels[i] == leaf.prediction[0]
        canvas.text(left - 6, top, name, TEXT, room=room, bold=bold, align="right")
        bar = Box(left, top + 1, right, top + pitch - 4)
        canvas.rectangle(bar, FAINT)
        canvas.rectangle(
            bar._replace(x1=left + (right - left) * shares[i]), scene.palette.classes[i]
        )
        canvas.text(right + 6, top, share, TEXT, colour=GREY)
        top += pitch
    if len(labels) > len(order):
        canvas.text(left, top, f"and {len(labels) - len(order)} more", TEXT, colour=GREY)
        top += pitch
    return top


def _draw_targets(canvas: Canvas, scene: Scene, leaf: NodeView, top: float) -> float:
    """The targets, and what is predicted; gives the place below."""
    left, right = LARGE.pad + 14, LARGE.width - LARGE.pad - 14
    area = Box(left, top + 6, right, top + 6 + HISTOGRAM)
    _draw_histogram(canvas, scene, leaf, area)
    ticks = round_numbers(scene.targets.low, scene.targets.high, 6)
    for value, label in zip(ticks, distinct(ticks), strict=True):
        x = area.x0 + area.width * scene.target_place(value)
        canvas.line([(x, area.y1), (x, area.y1 + TICK)], PALE, 0.7)
        canvas.text(x, area.y1 + TICK, label, LARGE.small, align="center")
    return area.y1 + 6 + line_height(LARGE.small)
