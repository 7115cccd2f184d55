"""plot_node: one node, large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shapetree.data._names import node_number
from shapetree.drawing._plane_map import check_swap
from shapetree.drawing._scales import check_scale
from shapetree.drawing._ticks import distinct, round_numbers
from shapetree.plot._canvas import MARGIN, Canvas, line_height
from shapetree.plot._card import TICK, draw_frame
from shapetree.plot._cards import card_for
from shapetree.plot._checks import check_title, view_to_draw
from shapetree.plot._colours import DARK, FAINT, GREY, PALE, palette_for
from shapetree.plot._layout import Box
from shapetree.plot._leaves import draw_histogram, target_place
from shapetree.plot._legend import Header
from shapetree.plot._picture import CanvasDrawing, Picture
from shapetree.plot._row import read_row
from shapetree.plot._scene import LARGE, Scene, rows_of
from shapetree.plot._text_width import clean, width
from shapetree.tree._digits import percent
from shapetree.tree._fitted import HoldsTree, fitted_tree, rows_for_tree
from shapetree.tree._view import NodeView
from shapetree.tree._words import predicted_words

MAX_BARS = 40
TEXT = 9.5
Draw = Callable[[Canvas, Box], None]


def plot_node(
    estimator: HoldsTree,
    node: int = 0,
    X: Any = None,
    y: Any = None,
    *,
    ax: Any = None,
    row: Any = None,
    branch_colors: Any = None,
    class_colors: Any = None,
    cmap: Any = None,
    title: str | None = None,
    scale: str = "auto",
    swap: bool = False,
) -> Picture:
    """Draw one node of a fitted tree in detail.

    A node that splits shows its shape function with all thresholds, how the rows are spread over it
    by class or by target, and where its branches lead. The area of a bar shows the number of rows.
    A leaf shows the shares of all classes, or its targets.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator with one target.
    node : int, default=0
        Number of the node.
    X, y : table and targets, optional
        Rows to show instead of the training rows.
    ax : matplotlib Axes, optional
        Where to draw; the drawing is made to fit. By default, a new figure of the right size.
    row : array-like, one-row table, Series or mapping by feature name, optional
        A row that reaches the node, to be marked.
    branch_colors : list of colours, optional
        A colour for each branch.
    class_colors : list of colours, or mapping from class labels to colours, optional
    cmap : str or matplotlib Colormap, optional
        Colours of classes, or shades of a numeric target.
    title : str, optional
    scale : {"auto", "linear", "log", "quantile"}, default="auto"
        The axis of a numeric feature. "log" falls back to linear unless all numbers are positive;
        "auto" is logarithmic only if half of the rows would crowd into a tenth of a linear axis;
        "quantile" gives every row the same room. Two slanted lines mark a break in an axis, here
        or of a pair, so that a few rows far away do not take up all of it.
    swap : bool, default=False
        Whether to swap the axes of pairs. Otherwise the first feature by order goes to the right,
        except that longitude or x always goes to the right, and latitude or y up.

    Returns
    -------
    Picture

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from shapetree import ShapeTreeRegressor
    >>> from shapetree.plot import plot_node
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> picture = plot_node(ShapeTreeRegressor(max_depth=2).fit(X, y), title="The root")
    >>> list(picture.nodes)
    [0]
    """
    fitted = fitted_tree(estimator)
    view = view_to_draw(fitted, rows_for_tree(estimator, X), y, ax)
    number = node_number(node, len(view.nodes))
    check_title(title)
    check_scale(scale)
    check_swap(swap)
    drawn = view.nodes[number]
    palette = palette_for(view, branch_colors, class_colors, cmap, len(drawn.children))
    marked = read_row(fitted, view, rows_for_tree(estimator, row), number)
    scene = Scene(view, palette, LARGE, marked, scale, swap)
    height, draw = _prepare(scene, drawn)
    header = Header(scene, title, LARGE.width)
    canvas = Canvas()
    header.draw(canvas, MARGIN, MARGIN)
    box = Box(MARGIN, MARGIN, MARGIN + LARGE.width, MARGIN + height).moved(0, header.height)
    draw(canvas, box)
    return Picture(CanvasDrawing(canvas, {number: box}, box.x1 + MARGIN, box.y1 + MARGIN), ax)


def _prepare(scene: Scene, node: NodeView) -> tuple[float, Draw]:
    """Height of a node's drawing, and what draws it."""
    if node.children:
        return _prepare_split(scene, node)
    if scene.view.classes is None:
        return _prepare_histogram(scene, node)
    return _prepare_bars(scene, node)


def _prepare_split(scene: Scene, node: NodeView) -> tuple[float, Draw]:
    card = card_for(scene, node)
    pitch = line_height(TEXT) + 4

    def draw(canvas: Canvas, box: Box) -> None:
        card.draw(canvas, box)
        y = box.y0 + card.height + 3
        canvas.line([(box.x0 + LARGE.pad, y), (box.x1 - LARGE.pad, y)], FAINT, 0.8)
        for branch, child in enumerate(node.children):
            _draw_branch(canvas, scene, node, branch, child, box, y + 5 + branch * pitch)

    return card.height + 8 + pitch * len(node.children) + 4, draw


def _draw_branch(
    canvas: Canvas, scene: Scene, node: NodeView, branch: int, child: int, box: Box, top: float
) -> None:
    """Where a branch leads to, and how many rows take it."""
    below = scene.view.nodes[child]
    left, right = box.x0 + LARGE.pad, box.x1 - LARGE.pad
    swatch = Box(left, top + 2, left + 18, top + 2 + 8)
    canvas.rectangle(swatch, scene.palette.branches[branch])
    if below.children:
        words = "splits on " + " and ".join(clean(feature.name) for feature in below.features)
    else:
        words = f"{scene.outcome(below)}"
        if scene.view.classes is not None:
            words += f", {scene.support(below)}"
    share = percent(below.n_rows / max(node.n_rows, 1))
    aside = f"node {child}, {rows_of(below)} ({share})"
    taken = width(aside, LARGE.small)
    canvas.text(right, top + 1, aside, LARGE.small, room=taken, colour=GREY, align="right")
    room = right - left - 24 - taken - 8
    canvas.text(left + 24, top, words, TEXT, room=room, bold=not below.children)


def _draw_leaf_header(canvas: Canvas, scene: Scene, node: NodeView, box: Box) -> float:
    """What a leaf predicts and its number of rows; the result is where more may stand."""
    draw_frame(canvas, scene, node, box)
    top, aside = box.y0 + LARGE.pad - 2, rows_of(node)
    taken = width(aside, LARGE.small)
    right = box.x1 - LARGE.pad
    lower = top + LARGE.name - LARGE.small
    canvas.text(right, lower, aside, LARGE.small, room=taken, colour=GREY, align="right")
    room = box.width - 2 * LARGE.pad - taken - 8
    canvas.text(box.x0 + LARGE.pad, top, scene.outcome(node), LARGE.name, room=room, bold=True)
    return top + line_height(LARGE.name) + 5


def _prepare_bars(scene: Scene, node: NodeView) -> tuple[float, Draw]:
    """A bar for each class."""
    assert scene.view.classes is not None
    labels, shares = scene.view.classes[0], scene.shares(node).tolist()
    order = sorted(range(len(labels)), key=lambda i: -shares[i])[:MAX_BARS]
    n_more = len(labels) - len(order)
    names = [clean(labels[i]) for i in order]
    sizes = [_class_share(scene, node, i) for i in order]
    size = max(width(words, TEXT) for words in [*sizes, "100 %"])
    room = min(max(width(name, TEXT, bold=True) for name in names), 150.0)
    pitch = line_height(TEXT) + 4

    def draw(canvas: Canvas, box: Box) -> None:
        top = _draw_leaf_header(canvas, scene, node, box)
        left = box.x0 + LARGE.pad + room + 6
        length = box.x1 - LARGE.pad - size - 6 - left
        for i, name, words in zip(order, names, sizes, strict=True):
            bold = labels[i] == node.prediction[0]
            canvas.text(left - 6, top, name, TEXT, room=room, bold=bold, align="right")
            bar = Box(left, top + 1, left + length * shares[i], top + pitch - 4)
            canvas.rectangle(bar._replace(x1=left + length), FAINT)
            canvas.rectangle(bar, scene.palette.classes[i])
            canvas.text(left + length + 6, top, words, TEXT, room=width(words, TEXT), colour=GREY)
            top += pitch
        if n_more:
            words = f"and {n_more} more"
            canvas.text(left, top, words, TEXT, room=width(words, TEXT), colour=GREY)

    n_lines = len(order) + bool(n_more)
    return LARGE.pad * 2 + line_height(LARGE.name) + n_lines * pitch + 3, draw


def _class_share(scene: Scene, node: NodeView, number: int) -> str:
    """A class's share of the node's rows, and what is predicted where that differs."""
    share, predicted = (
        percent(scene.shares(node)[number]),
        predicted_words(scene.view, node, number),
    )
    return share if predicted is None else f"{share}, {predicted}"


def _prepare_histogram(scene: Scene, node: NodeView) -> tuple[float, Draw]:
    """The targets, and what is predicted."""
    ticks = round_numbers(scene.targets.low, scene.targets.high, 6)
    labels = list(zip(ticks, distinct(ticks), strict=True))

    def draw(canvas: Canvas, box: Box) -> None:
        top = _draw_leaf_header(canvas, scene, node, box) + 6
        area = Box(box.x0 + LARGE.pad + 14, top, box.x1 - LARGE.pad - 14, top + 150)
        draw_histogram(canvas, scene, node, area)
        for value, label in labels:
            x = area.x0 + area.width * target_place(scene, value)
            canvas.line([(x, area.y1), (x, area.y1 + TICK)], PALE, 0.7)
            room = width(label, LARGE.small)
            canvas.text(
                x, area.y1 + TICK, label, LARGE.small, room=room, colour=DARK, align="center"
            )

    return LARGE.pad * 2 + line_height(LARGE.name) + 165 + line_height(LARGE.small), draw
