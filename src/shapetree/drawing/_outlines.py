"""Outlines: what polygons that lie side by side look like as one."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

Point = tuple[float, float]

# Corners nearer to each other than this are one; the plane that they lie in is 1 wide and high.
SAME = 1e-7


def outlines(polygons: Sequence[Sequence[Point]]) -> list[list[Point]]:
    """Loops around the union of convex polygons that do not overlap, holes the other way round.

    Parameters
    ----------
    polygons : sequence of corners
        All in one direction, within the unit square.

    >>> left = [(0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0)]
    >>> right = [(0.5, 0.0), (1.0, 0.0), (1.0, 1.0), (0.5, 1.0)]
    >>> outlines([left, right])
    [[(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]]
    """
    corners = _Corners()
    loops = [corners.numbers_of(polygon) for polygon in polygons]
    edges: dict[tuple[int, int], int] = {}
    for loop in loops:
        if len(loop) < 3:
            continue
        for i, end in enumerate(loop):
            for edge in corners.steps(loop[i - 1], end):
                edges[edge] = edges.get(edge, 0) + 1
    # Where two polygons touch, one goes this way and the other that way.
    border = [edge for edge, n in edges.items() if n > edges.get((edge[1], edge[0]), 0)]
    return [
        straightened
        for loop in _chained(border, corners.points)
        if len(straightened := _straightened([corners.points[i] for i in loop])) > 2
    ]


class _Corners:
    """Points by number; nearly identical points share one number."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self._near: defaultdict[tuple[int, int], list[int]] = defaultdict(list)

    def numbers_of(self, polygon: Sequence[Point]) -> list[int]:
        """A polygon's corners without repeats."""
        numbers = [self._number_of(point) for point in polygon]
        return [number for i, number in enumerate(numbers) if number != numbers[i - 1]]

    def _number_of(self, point: Point) -> int:
        x, y = (math.floor(value / (2 * SAME)) for value in point)
        for place in ((x + i, y + j) for i in (-1, 0, 1) for j in (-1, 0, 1)):
            for number in self._near.get(place, ()):
                if math.dist(self.points[number], point) < SAME:
                    return number
        self.points.append(point)
        self._near[x, y].append(len(self.points) - 1)
        return len(self.points) - 1

    def steps(self, start: int, end: int) -> list[tuple[int, int]]:
        """The way from a corner to another, by all corners that lie on it."""
        (x0, y0), (x1, y1) = self.points[start], self.points[end]
        length = math.hypot(x1 - x0, y1 - y0)
        along = [(0.0, start), (length, end)]
        for number, (x, y) in enumerate(self.points):
            if number in (start, end):
                continue
            beside = ((x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)) / length
            forward = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length
            if abs(beside) < SAME and 0 < forward < length:
                along.append((forward, number))
        way = [number for _, number in sorted(along)]
        return list(pairwise(way))


def _chained(edges: list[tuple[int, int]], points: list[Point]) -> list[list[int]]:
    """Loops that a set of directed edges forms."""
    after: defaultdict[int, list[int]] = defaultdict(list)
    for start, end in edges:
        after[start].append(end)
    loops = []
    for start, _ in edges:
        while after[start]:
            loop = [start, after[start].pop()]
            while loop[-1] != start and after[loop[-1]]:
                loop.append(_leftmost(loop[-2], loop[-1], after[loop[-1]], points))
            loops.append(loop[:-1] if loop[-1] == start else loop)
    return loops


def _leftmost(before: int, here: int, ways: list[int], points: list[Point]) -> int:
    """Take the way that turns to the left most: where loops touch, each goes on by itself."""
    (x0, y0), (x1, y1) = points[before], points[here]

    def turn(way: int) -> float:
        x2, y2 = points[way]
        angle = math.atan2(y2 - y1, x2 - x1) - math.atan2(y1 - y0, x1 - x0)
        return (angle + math.pi) % (2 * math.pi)

    best = max(ways, key=turn)
    ways.remove(best)
    return best


def _straightened(loop: list[Point]) -> list[Point]:
    """A loop without corners on straight lines."""
    kept = []
    for i, (x, y) in enumerate(loop):
        (x0, y0), (x1, y1) = loop[i - 1], loop[(i + 1) % len(loop)]
        length = max(math.hypot(x1 - x0, y1 - y0), SAME)
        if abs((x - x0) * (y1 - y0) - (y - y0) * (x1 - x0)) / length >= SAME:
            kept.append((x, y))
    return kept
