"""What the parts of one picture have in common: the tree, how it is shown, and a row to mark."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np

from shapetree.data._missing import is_missing
from shapetree.data._moments import DATES, seconds_of
from shapetree.data._names import is_index, node_number
from shapetree.data._table import FeatureInfo, encode_table
from shapetree.drawing._plane_map import check_swap
from shapetree.drawing._scales import TargetScale, check_scale, target_scale
from shapetree.drawing._ticks import number
from shapetree.plot._colours import Colour, Palette, palette_for
from shapetree.plot._picture import check_picture
from shapetree.plot._text_width import clean
from shapetree.tree._digits import exact, percent
from shapetree.tree._fitted import FittedTree
from shapetree.tree._from_estimator import HoldsTree, fitted_tree, rows_for_tree
from shapetree.tree._predictor import leaves_of
from shapetree.tree._view import NodeView, TreeView, view_of
from shapetree.tree._words import category_name, number_and_spread, predicted_words

# Characters of a date and its time in minutes, which is as much as there is room for.
MINUTES = len("2024-12-31 23:59")


# --- the row to mark ---


@dataclass(frozen=True)
class MarkedRow:
    """A row that a picture marks: the nodes it passes, and its values by feature name."""

    nodes: frozenset[int]
    values: dict[str, Any]

    def words(self, feature: FeatureInfo) -> str:
        """Its value of a feature."""
        value = self.values[feature.name]
        if is_missing(value):
            return "missing"
        if feature.is_date:
            return exact(value, feature.date)[:MINUTES]
        if feature.is_categorical:
            return clean(category_name(value))
        return number(float(value), 4)

    def lacks(self, feature: FeatureInfo) -> bool:
        """Whether it has no value of a feature that the tree knows."""
        value = self.values[feature.name]
        is_unknown = feature.categories is not None and value not in feature.categories
        return is_unknown or is_missing(value)


def read_row(fitted: FittedTree, view: TreeView, row: Any, node: int) -> MarkedRow | None:
    """Find a row's values and the nodes it passes; `node` must be one of them.

    The row is an array-like, a table of one row, a mapping or a Series. The view is one of the same
    tree, whose names may be others.
    """
    if row is None:
        return None
    values = _values(row, fitted)
    cells = np.empty((1, len(values)), dtype=object)
    cells[0] = values
    table = encode_table(cells, fitted.features, fitted.tree.used_features)
    path = fitted.tree.path_to(int(leaves_of(fitted.tree, table, 1)[0]))
    if node not in path:
        raise ValueError(
            f"row does not reach node {node}; it passes the nodes {', '.join(map(str, path))}"
        )
    shown = [feature.name for feature in view.features]
    marked = [
        seconds_of(value) if isinstance(value, DATES) and not is_missing(value) else value
        for value in values
    ]
    return MarkedRow(frozenset(path), dict(zip(shown, marked, strict=True)))


def _values(row: Any, fitted: FittedTree) -> list[Any]:
    """The row's values in the order of the features, by the names in training or those shown."""
    names, shown = fitted.feature_names, list(fitted.names.features or ())
    native = nw.from_native(row, pass_through=True, allow_series=True)
    labels: list[Any] | None = None
    if isinstance(row, Mapping):
        labels, values = list(row), list(row.values())
    elif isinstance(native, nw.DataFrame):
        if native.shape[0] != 1:
            raise ValueError(f"row must be one row, got a table of {native.shape[0]} rows")
        labels, values = native.columns, list(native.row(0))
    elif isinstance(native, nw.Series):
        index, values = list(getattr(row, "index", [])), native.to_list()
        labels = index if set(map(str, index)) in (set(names), set(shown)) else None
    else:
        values = _from_array(row)
    if labels is None:
        if len(values) != len(names):
            raise ValueError(
                f"row has {len(values)} values, but the tree was fitted on {len(names)} features; "
                "give one value for each"
            )
        return values
    given = dict(zip(map(str, labels), values, strict=True))
    if given.keys() != set(names) and given.keys() == set(shown):
        names = shown
    lacking = [name for name in names if name not in given]
    if lacking:
        raise ValueError(f"row has no value for the feature {lacking[0]!r}; give one, or None")
    known = set(names)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ValueError(f"row has a value for {unknown[0]!r}, which is not a feature of the tree")
    return [given[name] for name in names]


def _from_array(row: Any) -> list[Any]:
    if isinstance(row, np.ma.MaskedArray):
        row = np.ma.filled(row.astype(object), None)
    array = row if isinstance(row, np.ndarray) else np.asarray(row, dtype=object)
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    if array.ndim != 1:
        raise ValueError(
            f"row must hold one value for each feature, got an array of shape {array.shape}"
        )
    values: list[Any] = array.tolist()
    return values


# --- how a tree is shown ---


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
    estimator: HoldsTree,
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
    fitted = fitted_tree(estimator)
    view = view_of(fitted, rows_for_tree(estimator, X), y)
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
    marked = read_row(fitted, view, rows_for_tree(estimator, row), root.number)
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
