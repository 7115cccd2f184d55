"""The map of a pair: which feature goes to the right, and where each branch lies."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.drawing._outlines import Point, outlines
from shapetree.drawing._plane import Plane, PlaneAxis, plane_of
from shapetree.drawing._ticks import distinct, round_numbers, share_of
from shapetree.tree._view import NodeView

# Names of features that go to the right, and of those that go up with them.
ACROSS_AND_UP = (
    ({"longitude", "long", "lon", "lng"}, {"latitude", "lat"}),
    ({"easting"}, {"northing"}),
    ({"x"}, {"y"}),
)
Polygon = list[Point]
# Lines between branches have their full width if outlines have at most this many corners.
FEW_CORNERS = 40
# An end of an axis is cut short if it holds at most this share of the rows and no corner of an
# area, and is longer than this multiple of the rest. It then takes up so much of the axis.
FEW_ROWS, LONG, CUT_LENGTH = 0.1, 1.5, 0.2
# How far beyond the other rows the axis is broken, in lengths of what they take up.
BESIDE = 0.05


class Zone(NamedTuple):
    """A part of an axis, and where it is drawn, from 0 to 1.

    Its bounds are numbers of slots in the tree's plane for categories, and otherwise shares of the
    way from the axis's low end to the high one.
    """

    low: float
    high: float
    start: float
    end: float

    def place(self, share: float) -> float:
        """Where something in the zone is drawn."""
        return self.start + (share - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True)
class MapAxis:
    """An axis of a map."""

    low: float
    high: float
    # Between zones, an axis of numbers is broken: those at the ends are drawn shorter than they
    # are. Each category has a zone.
    zones: tuple[Zone, ...] = (Zone(0.0, 1.0, 0.0, 1.0),)
    categories: tuple[Level, ...] | None = None  # those drawn, in their order; None for numbers
    # The numbers between which the axis is true to scale.
    inner: tuple[float, float] = (-np.inf, np.inf)

    def share(self, value: float) -> float:
        """A number, or a point in a category's slot, in the unit of zones."""
        return value if self.categories is not None else share_of(value, self.low, self.high)

    def place(self, value: float) -> float:
        """Where that lies, from 0 to 1; numbers beyond the axis lie at its ends."""
        share = self.share(value)
        zone = next((zone for zone in self.zones if share <= zone.high), self.zones[-1])
        return zone.place(share)

    @property
    def bends(self) -> list[Point]:
        """Shares of the way from `low` to `high` where numbers are broken or end, and places."""
        return [(zone.low, zone.start) for zone in self.zones] + [(1.0, 1.0)]

    @property
    def breaks(self) -> list[float]:
        """Places where an axis of numbers is broken."""
        return [] if self.categories is not None else [zone.start for zone in self.zones[1:]]

    def ticks(self, at_most: int) -> list[tuple[float, str]]:
        """Places and labels of some round numbers, and of one beyond each break."""
        first, last = max(self.low, self.inner[0]), min(self.high, self.inner[1])
        before, after = (round_numbers(*ends, 4) for ends in ((self.low, first), (last, self.high)))
        marks = round_numbers(first, last, at_most)
        # Those next to a break would stand too near to others.
        marks = [mark for mark in before[:1] if self.place(mark) < CUT_LENGTH / 2] + marks
        marks += [mark for mark in after[-1:] if self.place(mark) > 1 - CUT_LENGTH / 2]
        return list(zip(map(self.place, marks), distinct(marks), strict=True))


@dataclass(frozen=True, eq=False)
class Map:
    """What to draw of a pair's plane, all places from 0 to 1 along its axes."""

    sides: tuple[int, int]  # which of the node's features goes to the right, and which goes up
    features: tuple[FeatureInfo, FeatureInfo]
    axes: tuple[MapAxis, MapAxis]  # categories are in the order of the feature, as in all nodes
    # For each branch, the outlines of what goes there; holes the other way round.
    areas: tuple[list[Polygon], ...]
    points: np.ndarray  # some of the node's rows, those that the axes reach, each with two places
    targets: np.ndarray  # of these

    @property
    def line_width(self) -> float:
        """Width of the lines between branches, up to 1: less where they would hide thin areas."""
        n_corners = sum(len(loop) for loops in self.areas for loop in loops)
        return min(FEW_CORNERS / max(n_corners, 1), 1.0)


def check_swap(swap: object) -> None:
    """Refuse anything but True and False."""
    if not isinstance(swap, bool | np.bool_):
        raise TypeError(f"swap must be True or False, got {swap!r}")


def map_of(node: NodeView, swap: bool) -> Map:
    """The map of a node that splits on a pair."""
    plane = plane_of(node)
    low, high = np.array([(axis.low, axis.high) for axis in plane.axes]).T
    is_inside = ((low <= plane.points) & (plane.points <= high)).all(axis=1)
    points = plane.points[is_inside]
    axes = [
        _map_axis(axis, node.features[side], points[:, side], _corners(node, plane, side))
        for side, axis in enumerate(plane.axes)
    ]
    sides = _sides(node, swap)
    pieces: list[list[Polygon]] = [[] for _ in node.children]
    for region, corners in zip(node.regions, plane.polygons, strict=True):
        pieces[region.branch] += _pieces(corners, axes, sides)
    drawn = [[axes[side].place(point[side]) for side in sides] for point in points.tolist()]
    return Map(
        sides=sides,
        features=(node.features[sides[0]], node.features[sides[1]]),
        axes=(axes[sides[0]], axes[sides[1]]),
        areas=tuple(outlines(its) for its in pieces),
        points=np.array(drawn).reshape(-1, 2),
        targets=plane.targets[is_inside],
    )


def _sides(node: NodeView, swap: bool) -> tuple[int, int]:
    """The feature that goes to the right: the first of the table, unless names say otherwise."""
    first = 0
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


def _corners(node: NodeView, plane: Plane, side: int) -> list[float]:
    """Where areas meet along an axis: corners inside the plane, and cuts across the axis."""
    x, y = plane.axes
    corners = [
        corner[side]
        for polygon in plane.polygons
        for corner in polygon
        if x.low < corner[0] < x.high and y.low < corner[1] < y.high
    ]
    cuts = [
        cut
        for bound in node.bounds
        if bound.side == side and bound.categories is None
        for cut in (bound.low, bound.high)
        if plane.axes[side].low < cut < plane.axes[side].high
    ]
    return corners + cuts


def _map_axis(
    axis: PlaneAxis, feature: FeatureInfo, values: np.ndarray, corners: list[float]
) -> MapAxis:
    if axis.categories is None:
        return _broken(axis, values, corners)
    assert feature.categories is not None
    drawn = tuple(category for category in feature.categories if category in axis.categories)
    slots = [drawn.index(category) for category in axis.categories]
    n = len(drawn)
    zones = tuple(Zone(i, i + 1, slot / n, (slot + 1) / n) for i, slot in enumerate(slots))
    return MapAxis(axis.low, axis.high, zones, drawn)


def _broken(axis: PlaneAxis, values: np.ndarray, corners: list[float]) -> MapAxis:
    """The axis of a number, whose ends are cut short if most rows would be crowded otherwise."""
    low, high = axis.low, axis.high
    whole = MapAxis(low, high)
    if len(values) == 0:
        return whole
    few = int(FEW_ROWS * len(values))
    shares = [share_of(value, low, high) for value in np.sort(values)[few : len(values) - few]]
    shares += [share_of(corner, low, high) for corner in corners]
    first, last = min(shares), max(shares)
    first, last = first - BESIDE * (last - first), last + BESIDE * (last - first)
    is_cut = [end > LONG * (last - first) > 0 for end in (first, 1 - last)]
    if not any(is_cut):
        return whole
    bends = [(0.0, 0.0)]
    bends += [(first, CUT_LENGTH)] if is_cut[0] else []
    bends += [(last, 1 - CUT_LENGTH)] if is_cut[1] else []
    inner = [(1 - share) * low + share * high for share in (first, last)]
    ends = (inner[0] if is_cut[0] else low, inner[1] if is_cut[1] else high)
    bends.append((1.0, 1.0))
    zones = tuple(Zone(low, high, start, end) for (low, start), (high, end) in pairwise(bends))
    return MapAxis(axis.low, axis.high, zones, inner=ends)


def _pieces(corners: Polygon, axes: list[MapAxis], sides: tuple[int, int]) -> list[Polygon]:
    """A region's polygon on the axes that are drawn: one for each pair of zones."""
    pieces = [corners] if corners else []
    for side, axis in enumerate(axes):
        pieces = [moved for piece in pieces for moved in _in_zones(piece, side, axis) if moved]
    turned = [[(piece[sides[0]], piece[sides[1]]) for piece in polygon] for polygon in pieces]
    return [polygon if _area(polygon) > 0 else polygon[::-1] for polygon in turned]


def _in_zones(polygon: Polygon, side: int, axis: MapAxis) -> list[Polygon]:
    """A polygon with places along one axis, in pieces if these are in several zones there."""
    polygon = [_with(point, side, axis.share(point[side])) for point in polygon]
    moved = []
    for zone in axis.zones:
        inside = polygon
        if len(axis.zones) > 1:
            inside = _clipped(_clipped(polygon, side, zone.low, 1.0), side, zone.high, -1.0)
        moved.append([_with(point, side, zone.place(point[side])) for point in inside])
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
