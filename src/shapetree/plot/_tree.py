"""plot_tree: a tree, or a part of one; plot_node: one node, large."""

from __future__ import annotations

from typing import Any

from shapetree.plot._canvas import EDGES, MARGIN, Canvas
from shapetree.plot._category_card import CategoryCard
from shapetree.plot._layout import Box, Gaps, curve, place_tree
from shapetree.plot._leaves import large_leaf, leaf_cards
from shapetree.plot._legend import header, header_width
from shapetree.plot._ordered_card import OrderedCard
from shapetree.plot._pair_card import PairCard
from shapetree.plot._picture import Picture
from shapetree.plot._scene import LARGE, SMALL, Scene, scene_of
from shapetree.tree._from_estimator import HoldsTree
from shapetree.tree._view import NodeView

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
        "quantile" gives every row the same room. Two slanted lines mark a break in an axis, here
        or of a pair, so that a few rows far away do not take up all of it.
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
    if direction not in (None, "down", "right"):
        raise ValueError(f"direction must be 'down', 'right' or None, got {direction!r}")
    scene = scene_of(
        estimator,
        X,
        y,
        SMALL,
        ax=ax,
        node=node,
        max_depth=max_depth,
        row=row,
        branch_colors=branch_colors,
        class_colors=class_colors,
        cmap=cmap,
        title=title,
        scale=scale,
        swap=swap,
    )
    return Picture(_drawing(scene, direction, title), ax)


def _drawing(scene: Scene, direction: str | None, title: str | None) -> Canvas:
    nodes, children, root = scene.view.nodes, scene.children, scene.root
    shown = [root.number, *(child for below in children.values() for child in below)]
    ends = [nodes[number] for number in shown if number not in children]
    downwards = len(ends) <= MANY_LEAVES if direction is None else direction == "down"
    cards: dict[int, Canvas] = {number: card_for(scene, nodes[number]) for number in children}
    cards |= leaf_cards(scene, ends, are_lines=not downwards)
    sizes = {number: (card.width, card.height) for number, card in cards.items()}
    placed = place_tree(root.number, children, sizes, downwards, DOWN if downwards else RIGHT)
    inner = max(placed.width, header_width(scene))
    above = header(scene, title, inner)
    left, top = MARGIN + (inner - placed.width) / 2, MARGIN + above.height
    canvas = Canvas()
    canvas.place(above, MARGIN, MARGIN)
    for below in children.values():
        for branch, child in enumerate(below):
            share = nodes[child].n_rows / max(root.n_rows, 1)
            edge = Canvas()
            edge.line(
                curve(placed.edges[child], downwards),
                scene.palette.branches[branch],
                THINNEST + (THICKEST - THINNEST) * share,
                layer=EDGES,
            )
            canvas.place(edge, left, top, scene.is_off_path(nodes[child]))
    canvas.nodes = {number: box.moved(left, top) for number, box in placed.boxes.items()}
    for number, card in cards.items():
        box = canvas.nodes[number]
        canvas.place(card, box.x0, box.y0, scene.is_off_path(nodes[number]))
    canvas.width = inner + 2 * MARGIN
    canvas.height = top + placed.height + MARGIN
    return canvas


# --- one node ---


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
        The axis of a numeric feature; see `plot_tree`.
    swap : bool, default=False
        Whether to swap the axes of a pair; see `plot_tree`.

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
    scene = scene_of(
        estimator,
        X,
        y,
        LARGE,
        ax=ax,
        node=node,
        max_depth=1,
        row=row,
        branch_colors=branch_colors,
        class_colors=class_colors,
        cmap=cmap,
        title=title,
        scale=scale,
        swap=swap,
    )
    above = header(scene, title, LARGE.width)
    card = card_for(scene, scene.root) if scene.root.children else large_leaf(scene, scene.root)
    canvas, top = Canvas(), MARGIN + above.height
    canvas.place(above, MARGIN, MARGIN)
    canvas.place(card, MARGIN, top)
    box = Box(MARGIN, top, MARGIN + card.width, top + card.height)
    canvas.width, canvas.height = box.x1 + MARGIN, box.y1 + MARGIN
    canvas.nodes = {scene.root.number: box}
    return Picture(canvas, ax)


def card_for(scene: Scene, node: NodeView) -> Canvas:
    """The card of a node that splits."""
    if len(node.features) == 2:
        return PairCard(scene, node)
    if node.features[0].is_categorical:
        return CategoryCard(scene, node)
    return OrderedCard(scene, node)
