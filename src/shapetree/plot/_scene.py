"""What the parts of one picture have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.plot._colours import OTHERS, Colour, Palette, blend
from shapetree.plot._layout import share_of
from shapetree.plot._text import clean, number
from shapetree.tree._digits import percent
from shapetree.tree._view import NodeView, TreeView


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
    is_exact : bool
        Whether thresholds have all their digits where there is room.
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
    is_exact: bool


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
    n_ticks=5,
    dot=1.3,
    is_exact=False,
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
    is_exact=True,
)


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
        return clean(value) if feature.is_categorical else number(float(value), 4)


@dataclass(frozen=True)
class Scene:
    """A tree, how it is shown, and a row to be marked."""

    view: TreeView
    palette: Palette
    style: Style
    row: MarkedRow | None

    def is_beside(self, node: NodeView) -> bool:
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
        assert self.view.classes is not None
        shares = self.shares(node)
        predicted = self.view.classes[0].index(node.prediction[0])
        parts = []
        for group in self.palette.groups:
            share = float(shares[group.classes].sum())
            if len(group.classes) > 1 and predicted in group.classes:
                # It has no colour of its own, but is not just any of the others.
                parts.append((blend(OTHERS, 0.4, (0.0, 0.0, 0.0)), float(shares[predicted])))
                share -= float(shares[predicted])
            parts.append((group.colour, share))
        return [(colour, share) for colour, share in parts if share > 0]

    def shade(self, target: float) -> Colour:
        """Colour of a number."""
        return self.palette.shade(self.target_share(target))

    def target_share(self, target: float) -> float:
        """Where a number lies in the range of the targets, from 0 to 1."""
        edges = self.view.target_edges
        assert edges is not None
        return share_of(target, float(edges[0]), float(edges[-1]))

    def outcome(self, node: NodeView) -> str:
        """What the node predicts."""
        if self.view.classes is not None:
            return clean(node.prediction[0])
        value = number(node.prediction[0], 4)
        if node.deviation is None or not math.isfinite(node.deviation):
            return value
        return f"{value} ± {number(node.deviation, 2)}"

    def support(self, node: NodeView) -> str:
        """How many rows that is about, and what share of them is of the predicted class."""
        if not node.n_rows:
            return "no rows"
        if self.view.classes is None:
            return rows_of(node)
        predicted = self.view.classes[0].index(node.prediction[0])
        return f"{percent(float(self.shares(node)[predicted]))} of {node.n_rows:,}"


def rows_of(node: NodeView) -> str:
    """A node's number of rows."""
    return f"n = {node.n_rows:,}"


def is_missing(value: Any) -> bool:
    """Whether a cell of a table is empty."""
    return value is None or value != value or type(value).__name__ in ("NAType", "NaTType")


def most_branches(nodes: Iterable[NodeView]) -> int:
    """Greatest number of branches that one of the nodes has."""
    return max((len(node.children) for node in nodes), default=0)
