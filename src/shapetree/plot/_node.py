"""plot_node: one node, large; and the card for each kind of node."""

from __future__ import annotations

from typing import Any

from shapetree.plot._canvas import MARGIN, Canvas
from shapetree.plot._category_card import CategoryCard
from shapetree.plot._layout import Box
from shapetree.plot._leaves import large_leaf
from shapetree.plot._legend import header
from shapetree.plot._ordered_card import OrderedCard
from shapetree.plot._pair_card import PairCard
from shapetree.plot._picture import Picture
from shapetree.plot._scene import LARGE, Scene, scene_of
from shapetree.tree._from_estimator import HoldsTree, fitted_tree, rows_for_tree
from shapetree.tree._view import NodeView


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
        fitted_tree(estimator),
        rows_for_tree(estimator, X),
        y,
        LARGE,
        ax=ax,
        node=node,
        max_depth=1,
        row=rows_for_tree(estimator, row),
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
