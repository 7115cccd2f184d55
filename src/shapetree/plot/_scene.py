"""What the parts of one picture have in common: the tree, how it is shown, and a row to mark."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shapetree.data._names import is_index, node_number
from shapetree.drawing._plane_map import check_swap
from shapetree.drawing._scales import TargetScale, check_scale, target_scale
from shapetree.plot._colours import Colour, Palette, palette_for
from shapetree.plot._picture import check_picture
from shapetree.plot._row import MarkedRow, read_row
from shapetree.plot._text_width import clean
from shapetree.tree._digits import percent
from shapetree.tree._fitted import FittedTree
from shapetree.tree._view import NodeView, TreeView, view_of
from shapetree.tree._words import number_and_spread, predicted_words


@dataclass(frozen=True)
class Style:
    """Sizes, in points."""

    name: float  # letters of a feature's name
    small: float  # all other letters
    # Least and greatest width of a node's card.
    width: float
    max_width: float
    # Heights of the means of a numeric target, of the bars above a strip, of the strip, and of a
    # pair's plane.
    means: float
    density: float
    strip: float
    plane: float
    pad: float  # space within a card's border
    chip_lines: int  # lines of categories for each branch
    n_ticks: int  # most ticks on an axis
    dot: float  # radius of a row in a plane
    list_lines: int  # for thresholds that there is no room for below a strip
    is_large: bool  # whether there is room to say everything


SMALL = Style(
    name=8.5,
    small=7.0,
    width=148.0,
    max_width=236.0,
    means=0.0,
    density=27.0,
    strip=8.0,
    plane=86.0,
    pad=7.0,
    chip_lines=1,
    n_ticks=4,
    dot=1.3,
    list_lines=8,
    is_large=False,
)
LARGE = Style(
    name=12.0,
    small=8.5,
    width=470.0,
    max_width=470.0,
    means=90.0,
    density=110.0,
    strip=16.0,
    plane=330.0,
    pad=12.0,
    chip_lines=4,
    n_ticks=8,
    dot=2.6,
    list_lines=80,
    is_large=True,
)


@dataclass(frozen=True)
class Scene:
    """A tree, how it is shown, and a row to be marked."""

    view: TreeView
    root: NodeView  # the node that the picture starts from
    children: dict[int, tuple[int, ...]]  # of every node that is drawn with its children
    palette: Palette
    style: Style
    row: MarkedRow | None
    scale: str  # of the axes of ordered features; see `scale_of`
    swap: bool  # whether the axes of pairs are swapped

    def is_off_path(self, node: NodeView) -> bool:
        """Whether a row is marked that does not pass the node."""
        return self.row is not None and node.number not in self.row.nodes

    def row_at(self, node: NodeView) -> MarkedRow | None:
        """The row that is marked, if it passes the node."""
        return None if self.is_off_path(node) else self.row

    def shares(self, node: NodeView) -> list[float]:
        """Share of the node's rows that each class has."""
        assert node.row_shares is not None
        shares: list[float] = node.row_shares[0].tolist()
        return shares

    @cached_property
    def targets(self) -> TargetScale:
        """The range of a numeric target."""
        assert self.view.target_edges is not None
        return target_scale(self.view.target_edges)

    def shade(self, target: float) -> Colour:
        """Colour of a number."""
        return self.palette.shade(self.targets.share(target))

    def outcome(self, node: NodeView) -> str:
        """What the node predicts."""
        if self.view.classes is not None:
            return clean(node.prediction[0])
        number, spread = number_and_spread(node)
        return number + spread if spread.startswith(" ±") else number

    def support(self, node: NodeView) -> str:
        """How many rows that is about, and what share of them is of the predicted class."""
        if not node.n_rows:
            return "no rows"
        if self.view.classes is None:
            spread = number_and_spread(node)[1]
            mean = spread.strip(" ()").replace("rows:", "mean") if "rows:" in spread else ""
            return f"{rows_of(node)}, {mean}" if mean else rows_of(node)
        best = self.view.classes[0].index(node.prediction[0])
        return self.share_words(node, best, f" of {node.n_rows:,}")

    def share_words(self, node: NodeView, number: int, of: str = "") -> str:
        """A class's share of the node's rows, and what is predicted where that differs."""
        share = percent(self.shares(node)[number]) + of
        predicted = predicted_words(self.view, node, number)
        return share if predicted is None else f"{share}, {predicted}"

    def target_place(self, target: float) -> float:
        """Where a target lies in a histogram of all cells of the target, from 0 to 1."""
        edges = self.view.target_edges
        assert edges is not None
        return float(np.interp(target, edges, np.linspace(0, 1, len(edges))))


def scene_of(
    fitted: FittedTree,
    X: Any,
    y: Any,
    style: Style,
    *,
    ax: Any,
    node: Any,
    max_depth: Any,
    row: Any,
    branch_colors: Any,
    class_colors: Any,
    cmap: Any,
    title: Any,
    scale: Any,
    swap: Any,
) -> Scene:
    """Read and check what `plot_tree` and `plot_node` were given."""
    check_picture(ax, title)
    view = view_of(fitted, X, y)
    if view.n_outputs > 1:
        raise ValueError(
            f"a picture shows one target, but this tree has {view.n_outputs}; fit a tree for "
            "each, or use export_text"
        )
    view.require_counts("a picture")
    root = view.nodes[node_number(node, len(view.nodes))]
    check_scale(scale)
    check_swap(swap)
    children = _drawn_children(view, root, max_depth)
    n_branches = max(map(len, children.values()), default=0)
    palette = palette_for(view, branch_colors, class_colors, cmap, n_branches)
    marked = read_row(fitted, view, row, root.number)
    return Scene(view, root, children, palette, style, marked, scale, swap)


def _drawn_children(view: TreeView, root: NodeView, max_depth: Any) -> dict[int, tuple[int, ...]]:
    """Children of every node that is drawn with its children."""
    if max_depth is None:
        deepest = math.inf
    elif not is_index(max_depth):
        raise TypeError(f"max_depth must be None or a whole number, got {max_depth!r}")
    elif int(max_depth) < 0:
        raise ValueError(f"max_depth must be 0 or more, got {max_depth}")
    else:
        deepest = root.depth + int(max_depth)
    children: dict[int, tuple[int, ...]] = {}
    pending = [root]
    for node in pending:
        if node.children and node.depth < deepest:
            children[node.number] = node.children
            pending.extend(view.nodes[child] for child in node.children)
    return children


def rows_of(node: NodeView) -> str:
    """A node's number of rows."""
    return f"n = {node.n_rows:,}"
