"""plot_tree: a tree, or a part of one."""

from __future__ import annotations

import math
from typing import Any

from shapetree.data._names import node_number
from shapetree.drawing._plane_map import check_swap
from shapetree.drawing._scales import check_scale
from shapetree.plot._canvas import EDGES, MARGIN, Canvas
from shapetree.plot._cards import card_for
from shapetree.plot._checks import (
    check_depth,
    check_direction,
    check_title,
    view_to_draw,
)
from shapetree.plot._colours import palette_for
from shapetree.plot._layout import Gaps, Placement, curve, place_tree
from shapetree.plot._leaves import draw_leaf, leaf_shape
from shapetree.plot._legend import Header
from shapetree.plot._picture import CanvasDrawing, Picture
from shapetree.plot._row import read_row
from shapetree.plot._scene import SMALL, Scene, most_branches
from shapetree.tree._fitted import HoldsTree, fitted_tree, rows_for_tree
from shapetree.tree._view import NodeView, TreeView

# Leaves up to which a tree is drawn downwards by default.
MANY_LEAVES = 10
DOWN, RIGHT = Gaps(10.0, 18.0, 38.0), Gaps(5.0, 12.0, 52.0)
THINNEST, THICKEST = 1.0, 8.0  # edges


def plot_tree(
    estimator: HoldsTree,
    X: Any = None,
    y: Any = None,
    *,
    ax: Any = None,
    max_depth: int | None = None,
    node: int = 0,
    row: Any = None,
    direction: str | None = None,
    branch_colors: Any = None,
    class_colors: Any = None,
    cmap: Any = None,
    title: str | None = None,
    scale: str = "auto",
    swap: bool = False,
) -> Picture:
    """Draw a fitted tree.

    Every node shows its shape function in the colours of its branches, as a strip or, for a pair,
    as a map, and how the rows are spread over it; the area of a bar shows the number of rows.
    Leaves show the shares of the classes or how the targets are spread. Edge width shows the number
    of rows.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator with one target.
    X, y : table and targets, optional
        Rows to show instead of the training rows.
    ax : matplotlib Axes, optional
        Where to draw; the drawing is made to fit. By default, a new figure of the right size.
    max_depth : int, optional
        Levels to draw below the first node; nodes with more below them are marked "…".
    node : int, default=0
        Number of the node to start from.
    row : array-like, one-row table, Series or mapping by feature name, optional
        A row whose path is highlighted; everything else is pale.
    direction : {"down", "right"}, optional
        Direction in which the tree grows; by default down if it has few leaves.
    branch_colors : list of colours, optional
        A colour for each branch.
    class_colors : list of colours, or mapping from class labels to colours, optional
    cmap : str or matplotlib Colormap, optional
        Colours of classes, or shades of a numeric target.
    title : str, optional
    scale : {"auto", "linear", "log", "quantile"}, default="auto"
        The axis of a numeric feature. "log" falls back to linear unless all numbers are positive;
        "auto" is logarithmic only if half of the rows would crowd into a tenth of a linear axis;
        "quantile" gives every row the same room. Two slanted lines mark a break in an axis, so that
        a few rows far away do not take up all of it.
    swap : bool, default=False
        Whether to swap the axes of pairs. Otherwise the first feature by order goes to the right,
        except that longitude or x always goes to the right, and latitude or y up.

    Returns
    -------
    Picture
        Shows itself in notebooks; has `figure`, `ax`, `nodes`, `texts` and `save`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.plot import plot_tree
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> picture = plot_tree(tree, max_depth=1, row=iris.data.iloc[[0]])
    >>> sorted(picture.nodes)
    [0, 1, 2, 3]
    """
    fitted = fitted_tree(estimator)
    view = view_to_draw(fitted, rows_for_tree(estimator, X), y, ax)
    root = node_number(node, len(view.nodes))
    check_depth(max_depth)
    check_direction(direction)
    check_title(title)
    check_scale(scale)
    check_swap(swap)
    children = _shown_children(view, root, max_depth)
    shown = [root, *(child for below in children.values() for child in below)]
    palette = palette_for(
        view, branch_colors, class_colors, cmap, most_branches(view.nodes[i] for i in shown)
    )
    marked = read_row(fitted, view, rows_for_tree(estimator, row), root)
    scene = Scene(view, palette, SMALL, marked, scale, swap)
    n_leaves = len(shown) - len(children)
    downwards = n_leaves <= MANY_LEAVES if direction is None else direction == "down"
    return _draw(scene, root, children, downwards, title, ax)


def _shown_children(view: TreeView, root: int, max_depth: int | None) -> dict[int, tuple[int, ...]]:
    """Children of every node that is drawn with its children."""
    deepest = math.inf if max_depth is None else view.nodes[root].depth + max_depth
    children: dict[int, tuple[int, ...]] = {}
    pending = [view.nodes[root]]
    for node in pending:
        if node.children and node.depth < deepest:
            children[node.number] = node.children
            pending.extend(view.nodes[child] for child in node.children)
    return children


def _draw(
    scene: Scene,
    root: int,
    children: dict[int, tuple[int, ...]],
    downwards: bool,
    title: str | None,
    ax: Any,
) -> Picture:
    nodes = scene.view.nodes
    cards = {number: card_for(scene, nodes[number]) for number in children}
    ends = [
        nodes[child]
        for child in [root, *(child for below in children.values() for child in below)]
        if child not in cards
    ]
    shape = leaf_shape(scene, ends, is_line=not downwards)
    sizes = {number: (card.width, card.height) for number, card in cards.items()}
    sizes |= {leaf.number: (shape.width, shape.height) for leaf in ends}
    placed = place_tree(root, children, sizes, downwards, DOWN if downwards else RIGHT)
    inner = max(placed.width, Header.least_width(scene))
    header = Header(scene, title, inner)
    left = MARGIN + (inner - placed.width) / 2
    top = MARGIN + header.height
    canvas = Canvas()
    header.draw(canvas, MARGIN, MARGIN)
    boxes = {number: box.moved(left, top) for number, box in placed.boxes.items()}
    _draw_edges(canvas, scene, nodes[root], children, placed, downwards, (left, top))
    for number, card in cards.items():
        canvas.is_faded = scene.is_off_path(nodes[number])
        card.draw(canvas, boxes[number])
    for leaf in ends:
        canvas.is_faded = scene.is_off_path(leaf)
        draw_leaf(canvas, scene, leaf, shape, boxes[leaf.number], bool(leaf.children))
    width, height = inner + 2 * MARGIN, top + placed.height + MARGIN
    return Picture(CanvasDrawing(canvas, boxes, width, height), ax)


def _draw_edges(
    canvas: Canvas,
    scene: Scene,
    root: NodeView,
    children: dict[int, tuple[int, ...]],
    placed: Placement,
    downwards: bool,
    shift: tuple[float, float],
) -> None:
    x, y = shift
    for below in children.values():
        for branch, child in enumerate(below):
            node = scene.view.nodes[child]
            canvas.is_faded = scene.is_off_path(node)
            share = node.n_rows / max(root.n_rows, 1)
            points = [(a + x, b + y) for a, b in curve(placed.edges[child], downwards)]
            canvas.line(
                points,
                scene.palette.branches[branch],
                THINNEST + (THICKEST - THINNEST) * share,
                layer=EDGES,
            )
