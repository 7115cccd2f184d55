"""What is drawn of a pair's plane: its axes, the outlines of the regions, and some of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.tree._regions import Region
from shapetree.tree._sketch import Scatter

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
    polygons: tuple[tuple[tuple[float, float], ...], ...]
    # Some of the node's rows. Shape (n_points, 2).
    points: np.ndarray
    # Their classes' numbers or their targets. Shape (n_points,).
    targets: np.ndarray
    n_missing: int  # rows that lack either feature


def plane_of(
    features: Sequence[FeatureInfo],
    known: Sequence[dict[Level, float]],
    regions: tuple[Region, ...],
    scatter: Scatter,
) -> Plane:
    """The plane of a node's pair, with the rows of a sketch.

    Parameters
    ----------
    features : sequence of two FeatureInfo
    known : sequence of two dicts
        Positions of the categories that have a place in the plane.
    regions : tuple of Region
    scatter : Scatter
    """
    axes, columns = [], []
    for side, feature in enumerate(features):
        values = scatter.points[:, side]
        if feature.categories is None:
            low, high = float(scatter.low[side]), float(scatter.high[side])
            axes.append(PlaneAxis(low, high))
            columns.append(values)
        else:
            drawn = tuple(sorted(known[side], key=known[side].__getitem__))
            axes.append(PlaneAxis(0.0, float(len(drawn)), drawn))
            slots = {category: i for i, category in enumerate(drawn)}
            slot = np.array([slots.get(category, np.nan) for category in feature.categories])
            # Spread over the category's width, so that equal points can be told apart; by other
            # steps for the other feature, or they would stand in line.
            spread = 0.15 + 0.7 * (np.arange(len(values)) * SPREADING[side] % 1)
            columns.append(slot[values.astype(np.intp)] + spread)
    points = np.stack(columns, axis=1)
    drawable = ~np.isnan(points).any(axis=1)
    both = (axes[0], axes[1])
    return Plane(
        axes=both,
        polygons=tuple(_polygon(region, both) for region in regions),
        points=points[drawable],
        targets=scatter.targets[drawable],
        n_missing=scatter.n_missing,
    )


def _polygon(region: Region, axes: tuple[PlaneAxis, PlaneAxis]) -> tuple[tuple[float, float], ...]:
    """Corners of the part of a region that the axes show."""
    x, y = axes
    corners = [(x.low, y.low), (x.high, y.low), (x.high, y.high), (x.low, y.high)]
    for bound in region.bounds:
        low, high = bound.low, bound.high
        if bound.categories is not None:
            assert bound.side is not None
            drawn = axes[bound.side].categories
            assert drawn is not None
            slots = [drawn.index(category) for category in bound.categories]
            low, high = (min(slots), max(slots) + 1) if slots else (np.inf, -np.inf)
        corners = _clip(corners, bound.weights, high)
        corners = _clip(corners, (-bound.weights[0], -bound.weights[1]), -low)
    return tuple(corners)


def _clip(
    corners: list[tuple[float, float]], weights: tuple[float, float], limit: float
) -> list[tuple[float, float]]:
    """The part of a convex polygon where a weighted sum does not exceed a limit."""
    if limit == np.inf:
        return corners
    # Eighths, because the sum of great numbers would overflow.
    excess = [weights[0] * (x / 8) + weights[1] * (y / 8) - limit / 8 for x, y in corners]
    clipped: list[tuple[float, float]] = []
    for i, (corner, over) in enumerate(zip(corners, excess, strict=True)):
        before, before_over = corners[i - 1], excess[i - 1]
        if (over > 0) != (before_over > 0):
            share = before_over / (before_over - over)
            clipped.append(_between(before, corner, share))
        if over <= 0:
            clipped.append(corner)
    return clipped if len(clipped) > 2 else []


def _between(
    one: tuple[float, float], other: tuple[float, float], share: float
) -> tuple[float, float]:
    """The point that divides the way from one point to another."""
    return (
        (1 - share) * one[0] + share * other[0],
        (1 - share) * one[1] + share * other[1],
    )
