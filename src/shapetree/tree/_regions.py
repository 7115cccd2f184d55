"""The parts of a shape function in the user's units: segments of an axis, regions of a plane."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._shape import PairShape, ShapeFunction

# Weights of the sums that are a pair's features themselves.
AXES = ((1.0, 0.0), (0.0, 1.0))


@dataclass(frozen=True)
class Bound:
    """Bounds of a node's feature, or of a quantity in a pair's plane."""

    # The bounded quantity is the sum of the first and the second feature's values, so weighted;
    # (1, 0) and (0, 1) are the features themselves.
    weights: tuple[float, float] = AXES[0]
    # It lies above `low` and is at most `high`; infinite where there is no such bound.
    low: float = -np.inf
    high: float = np.inf
    # If the quantity is a categorical feature, the categories inside the bounds.
    categories: tuple[Level, ...] | None = None

    @property
    def side(self) -> int | None:
        """Which of the two features is bounded; None for a sum of both."""
        return AXES.index(self.weights) if self.weights in AXES else None


@dataclass(frozen=True, kw_only=True)
class Segment(Bound):
    """A part of the shape function of one feature, which goes to one branch."""

    branch: int


@dataclass(frozen=True)
class Region:
    """A part of a pair's plane that goes to one branch: what all its bounds enclose."""

    branch: int
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class Cut:
    """A cut of a pair's plane, or of the part of it that cuts before it have left."""

    weights: tuple[float, float]  # as those of a bound
    threshold: float  # rows whose weighted sum is at most this go low, others high
    # The cut that comes next there, or -1 minus the number of a region.
    low: int
    high: int


Limits = dict[tuple[float, float], tuple[float, float]]
EVERYWHERE = (-np.inf, np.inf)
# Regions of a pair that are joined; the time that takes grows with their cube.
MAX_JOINED = 100


def segments_of(
    shape: ShapeFunction, feature: FeatureInfo, arriving: np.ndarray
) -> tuple[Segment, ...]:
    """A shape function of one feature, for the categories that arrive."""
    branches = shape.branch_of_piece.tolist()
    if shape.upper is None:
        assert feature.categories is not None
        known = list(zip(feature.categories, branches, arriving.tolist(), strict=True))
        return tuple(
            Segment(
                categories=tuple(c for c, its, arrives in known if its == branch and arrives),
                branch=branch,
            )
            for branch in range(shape.n_branches)
        )
    highs = shape.upper.tolist()
    parts = zip([-np.inf, *highs[:-1]], highs, branches, strict=True)
    return tuple(Segment(low=low, high=high, branch=branch) for low, high, branch in parts)


def cuts_of(shape: PairShape) -> tuple[Cut, ...]:
    """The cuts of a pair's plane."""
    weights = zip(shape.cut_a.tolist(), shape.cut_b.tolist(), strict=True)
    numbers = (each.tolist() for each in (shape.cut_threshold, shape.cut_low, shape.cut_high))
    return tuple(map(Cut, weights, *numbers))


def _limits_of_regions(cuts: Sequence[Cut]) -> dict[int, Limits]:
    """Bounds of each region, by its number: by weights, above which number and up to which."""
    found: dict[int, Limits] = {}
    pending: list[tuple[int, Limits]] = [(0, {})]
    while pending:
        target, limits = pending.pop()
        if target < 0:
            found[-1 - target] = limits
        else:
            pending += _sides(cuts[target], limits)
    return found


def _sides(cut: Cut, limits: Limits) -> list[tuple[int, Limits]]:
    """What is within limits below a cut, and what is above: where it goes, and its limits."""
    low, high = limits.get(cut.weights, EVERYWHERE)
    return [
        (cut.low, limits | {cut.weights: (low, min(high, cut.threshold))}),
        (cut.high, limits | {cut.weights: (max(low, cut.threshold), high)}),
    ]


class PairPlane:
    """The plane that a pair's node cuts into regions, as bounds of weighted sums."""

    def __init__(
        self, shape: PairShape, features: list[FeatureInfo], arriving: Sequence[np.ndarray]
    ) -> None:
        self.cuts = cuts_of(shape)
        self._branches = shape.branch_of_piece.tolist()
        places = [
            dict(
                zip(compress(feature.categories or (), its), its_places[its].tolist(), strict=True)
            )
            for feature, its, its_places in zip(features, arriving, shape.positions, strict=True)
        ]
        # Of the categories that arrive here: positions of those that do not count as missing, these
        # in the order of their positions, and those that do.
        self.known = [{c: at for c, at in its.items() if not np.isnan(at)} for its in places]
        self.in_order = tuple(tuple(sorted(its, key=its.__getitem__)) for its in self.known)
        self.missing = tuple(tuple(c for c, at in its.items() if np.isnan(at)) for its in places)
        self._is_coded = [feature.is_categorical for feature in features]

    def regions(self) -> tuple[Region, ...]:
        """All regions, from the low side of the cuts to the high side."""
        found = _limits_of_regions(self.cuts)
        return tuple(
            Region(branch, self._bounds(found[piece]))
            for piece, branch in enumerate(self._branches)
        )

    def joined_regions(self) -> tuple[Region, ...]:
        """Fewer and larger regions that say the same.

        Each is widened, bound by bound, as long as all that it covers goes to its branch. Of the
        wide regions, those are taken that cover most of what is not covered yet. If there are
        more regions than anyone would read, they stay as they are.
        """
        if len(self._branches) > MAX_JOINED:
            return self.regions()
        found = {
            piece: limits
            for piece, limits in _limits_of_regions(self.cuts).items()
            if not self._is_empty(limits)
        }
        joined = []
        for branch in range(max(self._branches) + 1):
            pieces = [piece for piece in sorted(found) if self._branches[piece] == branch]
            wide = [
                self._widened(found[piece], branch, order)
                for piece in pieces
                for order in (found[piece], reversed(found[piece]))
            ]
            covered = [{piece for piece in pieces if _covers(each, found[piece])} for each in wide]
            left = set(pieces)
            while left:
                best = max(range(len(wide)), key=lambda i: len(covered[i] & left))
                bounds = self._bounds(wide[best])
                joined.append(Region(branch, tuple(b for b in bounds if self._excludes(b))))
                left -= covered[best]
        return tuple(joined)

    def _widened(self, limits: Limits, branch: int, order: Iterable[tuple[float, float]]) -> Limits:
        """Limits without the bounds that make no difference, others as far out as can be."""
        for which in list(order):
            steps = {cut.threshold for cut in self.cuts if cut.weights == which}
            for side, farthest in enumerate(EVERYWHERE):
                own = limits[which][side]
                beyond = sorted(t for t in {*steps, farthest} if (t > own if side else t < own))
                for bound in beyond if not side else reversed(beyond):
                    low, high = limits[which]
                    wider = limits | {which: (low, bound) if side else (bound, high)}
                    if self._all_go_to(branch, wider):
                        limits = wider
                        break
        return {which: bounds for which, bounds in limits.items() if bounds != EVERYWHERE}

    def _all_go_to(self, branch: int, limits: Limits) -> bool:
        """Whether all points within limits go to a branch; no if that is not easily seen."""
        pending = [(0, limits)]
        while pending:
            target, limits = pending.pop()
            if target >= 0:
                cut = self.cuts[target]
                low, high = limits.get(cut.weights, EVERYWHERE)
                below, above = _sides(cut, limits)
                pending += [below] * (low < cut.threshold) + [above] * (high > cut.threshold)
            elif self._branches[-1 - target] != branch:
                return False
        return True

    def _is_empty(self, limits: Limits) -> bool:
        """Whether nothing can lie within limits, or no category does."""
        return any(low >= high for low, high in limits.values()) or any(
            bound.categories == () for bound in self._bounds(limits)
        )

    def _bounds(self, limits: Limits) -> tuple[Bound, ...]:
        return tuple(self._bound(which, low, high) for which, (low, high) in limits.items())

    def _bound(self, weights: tuple[float, float], low: float, high: float) -> Bound:
        side = AXES.index(weights) if weights in AXES else None
        if side is None or not self._is_coded[side]:
            return Bound(weights, low, high)
        places = self.known[side].items()
        return Bound(weights, low, high, tuple(c for c, place in places if low < place <= high))

    def _excludes(self, bound: Bound) -> bool:
        """Whether any category that arrives is outside a bound; numbers may always be."""
        if bound.categories is None or bound.side is None:
            return True
        return len(bound.categories) < len(self.known[bound.side])


def _covers(one: Limits, other: Limits) -> bool:
    """Whether all that is within the other limits is within the one."""
    return all(
        low <= other.get(which, EVERYWHERE)[0] and other.get(which, EVERYWHERE)[1] <= high
        for which, (low, high) in one.items()
    )


def arriving_categories(
    tree: TreeArrays,
    shapes: Sequence[ShapeFunction | PairShape | None],
    features: Sequence[FeatureInfo],
) -> list[list[np.ndarray]]:
    """For each node and each of its features, which categories can come there from above."""
    found, limits = [], [dict[int, np.ndarray]()] * tree.node_count
    for node, shape in enumerate(shapes):  # parents before their children
        own = tree.features_of(node)
        every = [np.ones(len(features[j].categories or ()), dtype=bool) for j in own]
        found.append(
            [limits[node].get(j, all_of_it) for j, all_of_it in zip(own, every, strict=True)]
        )
        below = [dict(limits[node]) for _ in tree.children(node)]
        for side, (feature, here) in enumerate(zip(own, found[-1], strict=True)):
            if shape is None or not features[feature].is_categorical:
                continue
            for its, goes in zip(below, _categories_of_branches(shape, side), strict=True):
                # Where only missing values come, nothing can be said about categories.
                its[feature] = here & goes if (here & goes).any() else here
        for child, its in zip(tree.children(node), below, strict=True):
            limits[child] = its
    return found


def _categories_of_branches(shape: ShapeFunction | PairShape, side: int) -> np.ndarray:
    """Which categories of a feature can go to which branch, by branch and category."""
    if isinstance(shape, ShapeFunction):
        return np.arange(shape.n_branches)[:, None] == shape.branch_of_piece
    places = shape.positions[side]
    goes = np.zeros((shape.n_branches, len(places)), dtype=bool)
    # Whatever its category is, a row may lack the other feature.
    goes[shape.missing_branch] = True
    for piece, limits in _limits_of_regions(cuts_of(shape)).items():
        low, high = limits.get(AXES[side], EVERYWHERE)
        goes[shape.branch_of_piece[piece]] |= (low < places) & (places <= high)
    return goes
