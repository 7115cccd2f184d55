"""What the parts of one picture have in common."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.drawing._scales import TargetScale, target_scale
from shapetree.drawing._ticks import number
from shapetree.plot._colours import Colour, Palette
from shapetree.plot._text_width import clean
from shapetree.tree._digits import exact, percent
from shapetree.tree._view import NodeView, TreeView
from shapetree.tree._words import category_name, number_and_spread, predicted_words


@dataclass(frozen=True)
class Style:
    """Sizes, in points.

    Attributes
    ----------
    name, small : float
        Size of a feature's name, and of all else.
    width, max_width : float
        Least and greatest width of a node's card.
    means, density, strip, plane : float
        Heights of the curve of a numeric target, of the bars above a strip, of the strip, and of a
        pair's plane.
    pad : float
        Space within a card's border.
    chip_lines : int
        Lines of categories for each branch.
    n_ticks : int
        Most ticks on an axis.
    dot : float
        Radius of a row in a plane.
    list_lines : int
        Lines for a list of thresholds that there is no room for below a strip.
    is_large : bool
        Whether there is room to say everything.
    """

    name: float
    small: float
    width: float
    max_width: float
    means: float
    density: float
    strip: float
    plane: float
    pad: float
    chip_lines: int
    n_ticks: int
    dot: float
    list_lines: int
    is_large: bool


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


# Characters of a date and its time in minutes, which is as much as there is room for.
MINUTES = len("2024-12-31 23:59")


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


@dataclass(frozen=True)
class Scene:
    """A tree, how it is shown, and a row to be marked.

    Attributes
    ----------
    view : TreeView
    palette : Palette
    style : Style
    row : MarkedRow or None
    scale : str
        Of the axes of ordered features; see `scale_of`.
    swap : bool
        Whether the axes of pairs are swapped.
    """

    view: TreeView
    palette: Palette
    style: Style
    row: MarkedRow | None
    scale: str
    swap: bool

    def is_off_path(self, node: NodeView) -> bool:
        """Whether a row is marked that does not pass the node."""
        return self.row is not None and node.number not in self.row.nodes

    def marks(self, node: NodeView) -> bool:
        """Whether a row is marked that passes the node."""
        return self.row is not None and node.number in self.row.nodes

    def shares(self, node: NodeView) -> np.ndarray:
        """Share of the node's rows that each class has."""
        assert node.row_shares is not None
        return node.row_shares[0]

    def stacked(self, node: NodeView) -> list[tuple[Colour, float]]:
        """Colours and shares of a bar of the node's classes."""
        shares = self.shares(node).tolist()
        return [part for part in zip(self.palette.classes, shares, strict=True) if part[1] > 0]

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
        share = f"{percent(float(self.shares(node)[best]))} of {node.n_rows:,}"
        predicted = predicted_words(self.view, node, best)
        return share if predicted is None else f"{share}, {predicted}"


def rows_of(node: NodeView) -> str:
    """A node's number of rows."""
    return f"n = {node.n_rows:,}"


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty."""
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def most_branches(nodes: Iterable[NodeView]) -> int:
    """Greatest number of branches that one of the nodes has."""
    return max((len(node.children) for node in nodes), default=0)
