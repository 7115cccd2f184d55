"""The map of a pair: which feature goes to the right, and where each branch lies."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.drawing._outlines import Point, outlines
from shapetree.drawing._ticks import share_of
from shapetree.tree._plane import PlaneAxis
from shapetree.tree._view import NodeView, TreeView

# Names of features that go to the right, and of those that go up with them.
ACROSS_AND_UP = (
    ({"longitude", "long", "lon", "lng"}, {"latitude", "lat"}),
    ({"easting"}, {"northing"}),
    ({"x"}, {"y"}),
)
Polygon = list[Point]
# Lines between branches have their full width if outlines have at most this many corners.
FEW_CORNERS = 40


@dataclass(frozen=True, eq=False)
class Map:
    """What to draw of a pair's plane, all places from 0 to 1 along its axes.

    Attributes
    ----------
    sides : tuple of two ints
        Which of the node's features goes to the right, and which goes up.
    features : tuple of two FeatureInfo
    axes : tuple of two PlaneAxis
        Categories are in the order of the feature, as in all nodes.
    areas : tuple of lists of loops
        For each branch, the outlines of what goes there; holes the other way round.
    points : array of shape (n_points, 2)
        Some of the node's rows, those that the axes reach.
    targets : array of shape (n_points,)
    """

    sides: tuple[int, int]
    features: tuple[FeatureInfo, FeatureInfo]
    axes: tuple[PlaneAxis, PlaneAxis]
    areas: tuple[list[Polygon], ...]
    points: np.ndarray
    targets: np.ndarray

    @property
    def line_width(self) -> float:
        """Width of the lines between branches, up to 1: less where they would hide thin areas."""
        n_corners = sum(len(loop) for loops in self.areas for loop in loops)
        return min(FEW_CORNERS / max(n_corners, 1), 1.0)


def check_swap(swap: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(swap, bool | np.bool_):
        raise TypeError(f"swap must be True or False, got {swap!r}")


def map_of(view: TreeView, node: NodeView, swap: bool) -> Map:
    """The map of a node that splits on a pair."""
    plane = node.plane
    assert plane is not None
    places = [_placer(axis, node.features[side]) for side, axis in enumerate(plane.axes)]
    sides = _sides(view, node, swap)
    pieces: list[list[Polygon]] = [[] for _ in node.children]
    for region, corners in zip(node.regions, plane.polygons, strict=True):
        pieces[region.branch] += _pieces(list(corners), places, sides)
    is_inside = [
        all(placer.is_inside(value) for placer, value in zip(places, point, strict=True))
        for point in plane.points.tolist()
    ]
    points = [
        [places[side].place(point[side]) for side in sides]
        for point in plane.points[is_inside].tolist()
    ]
    return Map(
        sides=sides,
        features=(node.features[sides[0]], node.features[sides[1]]),
        axes=(places[sides[0]].axis, places[sides[1]].axis),
        areas=tuple(outlines(its) for its in pieces),
        points=np.array(points).reshape(-1, 2),
        targets=plane.targets[is_inside],
    )


def _sides(view: TreeView, node: NodeView, swap: bool) -> tuple[int, int]:
    """The feature that goes to the right: the first of the table, unless names say otherwise."""
    # By identity, as columns named 1 and "1" may look the same.
    columns = [
        next(i for i, known in enumerate(view.features) if known is feature)
        for feature in node.features
    ]
    first = int(columns[1] < columns[0])
    words = [_words(feature.name) for feature in node.features]
    for across, up in ACROSS_AND_UP:
        for side in (0, 1):
            if words[side] & across and words[1 - side] & up:
                first = side
    first = 1 - first if swap else first
    return first, 1 - first


def _words(name: str) -> set[str]:
    """Words of a name, in small letters: "pickupLongitude" has "pickup" and "longitude"."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@dataclass(frozen=True, eq=False)
class _Placer:
    """Where values of an axis of the tree's plane lie on the axis that is drawn.

    `slots` has the number of each category's slot among those that are drawn; None for numbers.
    """

    axis: PlaneAxis
    slots: list[int] | None

    def place(self, value: float) -> float:
        """Place of a number, or of a point in a category's slot, from 0 to 1."""
        if self.slots is None:
            return share_of(value, self.axis.low, self.axis.high)
        slot = min(int(value), len(self.slots) - 1)
        return (self.slots[slot] + value - slot) / len(self.slots)

    def is_inside(self, value: float) -> bool:
        """Whether the axis reaches a value."""
        return self.axis.low <= value <= self.axis.high


def _placer(axis: PlaneAxis, feature: FeatureInfo) -> _Placer:
    if axis.categories is None:
        return _Placer(axis, None)
    assert feature.categories is not None
    drawn = tuple(category for category in feature.categories if category in axis.categories)
    slots = [drawn.index(category) for category in axis.categories]
    return _Placer(PlaneAxis(axis.low, axis.high, drawn), slots)


def _pieces(corners: Polygon, places: list[_Placer], sides: tuple[int, int]) -> list[Polygon]:
    """A region's polygon on the axes that are drawn: one for each slot of categories."""
    pieces = [corners] if corners else []
    for side, placer in enumerate(places):
        pieces = [moved for piece in pieces for moved in _in_slots(piece, side, placer) if moved]
    turned = [[(piece[sides[0]], piece[sides[1]]) for piece in polygon] for polygon in pieces]
    return [polygon if _area(polygon) > 0 else polygon[::-1] for polygon in turned]


def _in_slots(polygon: Polygon, side: int, placer: _Placer) -> list[Polygon]:
    """A polygon with places along one axis, in pieces if these are in other slots there."""
    if placer.slots is None:
        return [[_with(point, side, placer.place(point[side])) for point in polygon]]
    moved = []
    for slot, new_slot in enumerate(placer.slots):
        inside = _clipped(_clipped(polygon, side, float(slot), 1.0), side, slot + 1.0, -1.0)
        shift = new_slot - slot
        moved.append(
            [_with(point, side, (point[side] + shift) / len(placer.slots)) for point in inside]
        )
    return moved


def _clipped(polygon: Polygon, side: int, limit: float, sign: float) -> Polygon:
    """The part of a convex polygon on one side of a line across an axis."""
    kept = []
    for i, point in enumerate(polygon):
        before = polygon[i - 1]
        inside, was_inside = (sign * (p[side] - limit) for p in (point, before))
        if (inside < 0) != (was_inside < 0):
            share = was_inside / (was_inside - inside)
            other = before[1 - side] + share * (point[1 - side] - before[1 - side])
            kept.append((limit, other) if side == 0 else (other, limit))
        if inside >= 0:
            kept.append(point)
    return kept if len(kept) > 2 and _area(kept) else []


def _with(point: Point, side: int, value: float) -> Point:
    return (value, point[1]) if side == 0 else (point[0], value)


def _area(polygon: Polygon) -> float:
    """Twice the area, negative if the corners go round to the right."""
    return sum(polygon[i - 1][0] * y - x * polygon[i - 1][1] for i, (x, y) in enumerate(polygon))
