"""Where things go: pure geometry, in points from the top left corner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

Point = tuple[float, float]

N_POINTS = 24  # of a curve
HATCHING = 4.0  # distance of its lines


class Box(NamedTuple):
    """A rectangle; y grows downwards."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Its extent to the right."""
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        """Its extent downwards."""
        return self.y1 - self.y0

    def moved(self, x: float, y: float) -> Box:
        """The same rectangle elsewhere."""
        return Box(self.x0 + x, self.y0 + y, self.x1 + x, self.y1 + y)

    def corners(self) -> list[Point]:
        """Its four corners, in turn."""
        return [(self.x0, self.y0), (self.x1, self.y0), (self.x1, self.y1), (self.x0, self.y1)]


@dataclass(frozen=True)
class Gaps:
    """Space between boxes: of one parent, of different ones, and between levels."""

    siblings: float
    cousins: float
    levels: float


@dataclass(frozen=True)
class Placement:
    """A tree's boxes by node, its edges by child, and the size of it all."""

    boxes: dict[int, Box]
    edges: dict[int, list[Point]]  # where an edge starts, bends and ends; see `curve`
    width: float
    height: float


def place_tree(
    root: int,
    children: Mapping[int, Sequence[int]],
    sizes: Mapping[int, tuple[float, float]],
    downwards: bool,
    gaps: Gaps,
) -> Placement:
    """Place boxes of given widths and heights, level by level, as closely as the gaps allow.

    Levels follow each other downwards or to the right.
    """
    # Positions "across" lie within a level, positions "along" lead from level to level.
    order, level = _by_level(root, children)
    extent = {node: size if downwards else size[::-1] for node, size in sizes.items()}
    across = _centres(order, children, {node: extent[node][0] for node in order}, gaps)
    first = min(across[node] - extent[node][0] / 2 for node in order)
    last = max(across[node] + extent[node][0] / 2 for node in order)
    depth = [0.0] * (max(level.values()) + 1)
    for node in order:
        depth[level[node]] = max(depth[level[node]], extent[node][1])
    start = list(accumulate((size + gaps.levels for size in depth[:-1]), initial=0.0))

    def turned(point: Point) -> Point:
        return point if downwards else (point[1], point[0])

    boxes: dict[int, Box] = {}
    edges: dict[int, list[Point]] = {}
    for node in order:
        low, along = across[node] - first - extent[node][0] / 2, start[level[node]]
        corner = turned((low, along))
        boxes[node] = Box(*corner, corner[0] + sizes[node][0], corner[1] + sizes[node][1])
        below = children.get(node, ())
        for i, child in enumerate(below):
            leaves_at = low + extent[node][0] * (0.2 + 0.6 * (i + 0.5) / len(below))
            # Straight on past whatever is larger on this level; bends lie between levels only.
            points = [
                (leaves_at, along + extent[node][1]),
                (leaves_at, along + depth[level[node]]),
                (across[child] - first, start[level[child]]),
            ]
            edges[child] = [turned(point) for point in points]
    total = turned((last - first, start[-1] + depth[-1]))
    return Placement(boxes, edges, *total)


def curve(edge: Sequence[Point], downwards: bool) -> list[Point]:
    """Points of an edge that leaves one level and enters the next at a right angle."""
    start, bend, end = edge
    middle = (bend[1] + end[1]) / 2 if downwards else (bend[0] + end[0]) / 2
    first = (bend[0], middle) if downwards else (middle, bend[1])
    second = (end[0], middle) if downwards else (middle, end[1])
    t = np.linspace(0, 1, N_POINTS)[:, None]
    weights = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3]
    points = sum(w * np.array(p) for w, p in zip(weights, (bend, first, second, end), strict=True))
    return [start, *map(tuple, np.asarray(points).tolist())]


def _by_level(root: int, children: Mapping[int, Sequence[int]]) -> tuple[list[int], dict[int, int]]:
    order, level = [root], {root: 0}
    for node in order:
        for child in children.get(node, ()):
            order.append(child)
            level[child] = level[node] + 1
    return order, level


def _centres(
    order: list[int],
    children: Mapping[int, Sequence[int]],
    extent: Mapping[int, float],
    gaps: Gaps,
) -> dict[int, float]:
    """Centre of every node across its level, parents in the middle of their children."""
    offset: dict[int, float] = {}  # of a child from its parent
    low: dict[int, list[float]] = {}  # bounds of a subtree by level, from the centre of its root
    high: dict[int, list[float]] = {}
    for node in reversed(order):
        lows: list[float] = []
        highs: list[float] = []
        shifts: list[float] = []
        below = children.get(node, ())
        for child in below:
            shift = max(
                (
                    right - left + (gaps.cousins if deeper else gaps.siblings)
                    for deeper, (right, left) in enumerate(zip(highs, low[child], strict=False))
                ),
                default=0.0,
            )
            shifts.append(shift)
            highs = [shift + right for right in high[child]] + highs[len(high[child]) :]
            lows += [shift + left for left in low[child][len(lows) :]]
        middle = (shifts[0] + shifts[-1]) / 2 if shifts else 0.0
        offset.update((child, shift - middle) for child, shift in zip(below, shifts, strict=True))
        low[node] = [-extent[node] / 2, *(left - middle for left in lows)]
        high[node] = [extent[node] / 2, *(right - middle for right in highs)]
        for child in below:
            del low[child], high[child]
    centres = {order[0]: 0.0}
    for node in order:
        for child in children.get(node, ()):
            centres[child] = centres[node] + offset[child]
    return centres


# --- labels along an axis ---


def spread(
    wanted: Sequence[float], widths: Sequence[float], low: float, high: float, gap: float
) -> list[float] | None:
    """Centres of labels, nearest to the wanted ones, which ascend, so that they do not touch.

    None if there is too little room between the bounds, which no label may leave.
    """
    if sum(widths) + gap * (len(widths) - 1) > high - low:
        return None
    # Without the room that the labels before it need, each may be where the last one is.
    before = [0.0]
    for one, other in pairwise(widths):
        before.append(before[-1] + (one + other) / 2 + gap)
    blocks: list[tuple[float, int]] = []  # mean of what its labels want, and their number
    for place, used in zip(wanted, before, strict=True):
        mean, size = place - used, 1
        while blocks and blocks[-1][0] > mean:
            other_mean, other_size = blocks.pop()
            mean = (mean * size + other_mean * other_size) / (size + other_size)
            size += other_size
        blocks.append((mean, size))
    free = [mean for mean, size in blocks for _ in range(size)]
    least, most = low + widths[0] / 2, high - widths[-1] / 2 - before[-1]
    return [min(max(x, least), most) + used for x, used in zip(free, before, strict=True)]


def hatching(box: Box) -> list[list[Point]]:
    """Slanted lines that fill a box."""
    lines = []
    reach = box.width + box.height
    for i in range(1, math.ceil(reach / HATCHING)):
        run = i * HATCHING  # each line is where x + y equals this, from the top left corner
        x, y = min(run, box.width), min(run, box.height)
        lines.append([(box.x0 + x, box.y0 + run - x), (box.x0 + run - y, box.y0 + y)])
    return lines
