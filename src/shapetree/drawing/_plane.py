"""What is drawn of a pair's plane: its axes, the outlines of the regions, and some of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree.data._columns import Level
from shapetree.drawing._outlines import Point
from shapetree.tree._regions import Region
from shapetree.tree._view import NodeView

# Steps through a category's width that fill a plane evenly, one for each feature.
SPREADING = (0.7548777, 0.5698403)


@dataclass(frozen=True)
class PlaneAxis:
    """An axis of a pair's plane, from `low` to `high`.

    If the feature is categorical, its category i covers the axis from i to i + 1.
    """

    low: float
    high: float
    categories: tuple[Level, ...] | None = None


@dataclass(frozen=True)
class Plane:
    """What to draw of a pair's plane, in the units of its axes."""

    axes: tuple[PlaneAxis, PlaneAxis]
    # Corners of each of the node's regions, within the axes' ranges; none if it lies outside.
    polygons: tuple[list[Point], ...]
    # Some of the node's rows. Shape (n_points, 2).
    points: np.ndarray
    # Their classes' numbers or their targets. Shape (n_points,).
    targets: np.ndarray


def plane_of(node: NodeView) -> Plane:
    """The plane of a node that splits on a pair, with the rows of its sketch."""
    scatter = node.scatter
    assert scatter is not None
    axes, columns = [], []
    for side, (feature, drawn) in enumerate(zip(node.features, node.axis_categories, strict=True)):
        values = scatter.points[:, side]
        if feature.categories is None:
            axes.append(PlaneAxis(float(scatter.low[side]), float(scatter.high[side])))
            columns.append(values)
        else:
            axes.append(PlaneAxis(0.0, float(len(drawn)), drawn))
            slots = {category: i for i, category in enumerate(drawn)}
            slot = np.array([slots.get(category, np.nan) for category in feature.categories])
            # Spread over the category's width, so that equal points can be told apart; by other
            # steps for the other feature, or they would stand in line.
            spread = 0.15 + 0.7 * (np.arange(len(values)) * SPREADING[side] % 1)
            columns.append(slot[values.astype(np.intp)] + spread)
    points = np.stack(columns, axis=1)
    drawable = ~np.isnan(points).any(axis=1)
    return Plane(
        axes=(axes[0], axes[1]),
        polygons=tuple(_polygon(region, axes[0], axes[1]) for region in node.regions),
        points=points[drawable],
        targets=scatter.targets[drawable],
    )


def _polygon(region: Region, x: PlaneAxis, y: PlaneAxis) -> list[Point]:
    """Corners of the part of a region that the axes show."""
    corners = [(x.low, y.low), (x.high, y.low), (x.high, y.high), (x.low, y.high)]
    for bound in region.bounds:
        low, high = bound.low, bound.high
        if bound.categories is not None:
            drawn = (x if bound.side == 0 else y).categories
            assert drawn is not None
            slots = [drawn.index(category) for category in bound.categories]
            low, high = (min(slots), max(slots) + 1) if slots else (np.inf, -np.inf)
        corners = _clip(corners, bound.weights, high)
        corners = _clip(corners, (-bound.weights[0], -bound.weights[1]), -low)
    return corners


def _clip(corners: list[Point], weights: tuple[float, float], limit: float) -> list[Point]:
    """The part of a convex polygon where a weighted sum does not exceed a limit."""
    if limit == np.inf:
        return corners
    # Eighths, because the sum of great numbers would overflow.
    excess = [weights[0] * (x / 8) + weights[1] * (y / 8) - limit / 8 for x, y in corners]
    clipped: list[Point] = []
    for i, (corner, over) in enumerate(zip(corners, excess, strict=True)):
        before, before_over = corners[i - 1], excess[i - 1]
        if (over > 0) != (before_over > 0):
            share = before_over / (before_over - over)
            clipped.append(_between(before, corner, share))
        if over <= 0:
            clipped.append(corner)
    return clipped if len(clipped) > 2 else []


def _between(one: Point, other: Point, share: float) -> Point:
    """The point that divides the way from one point to another."""
    return (
        (1 - share) * one[0] + share * other[0],
        (1 - share) * one[1] + share * other[1],
    )
