"""The parts of a shape function in the user's units: segments of an axis, regions of a plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.tree._arrays import TreeArrays

# Weights of the sums that are a pair's features themselves.
AXES = ((1.0, 0.0), (0.0, 1.0))


@dataclass(frozen=True)
class Segment:
    """A part of a shape function that goes to one branch.

    Attributes
    ----------
    branch : int
    low, high : float
        On an ordered feature, the values above `low` up to and including `high`; infinite at the
        ends.
    categories : tuple or None
        On a categorical feature, the categories that go to this branch.
    """

    branch: int
    low: float = -np.inf
    high: float = np.inf
    categories: tuple[Level, ...] | None = None


@dataclass(frozen=True)
class Bound:
    """A bound of a region in a pair's plane.

    Attributes
    ----------
    weights : tuple of two floats
        The bounded quantity is the sum of the first and the second feature's values, so weighted;
        (1, 0) and (0, 1) are the features themselves.
    low, high : float
        It lies above `low` and is at most `high`; infinite where there is no such bound.
    categories : tuple or None
        If the quantity is a categorical feature, the categories inside the bounds.
    """

    weights: tuple[float, float]
    low: float = -np.inf
    high: float = np.inf
    categories: tuple[Level, ...] | None = None

    @property
    def side(self) -> int | None:
        """Which of the two features is bounded; None for a sum of both."""
        return AXES.index(self.weights) if self.weights in AXES else None


@dataclass(frozen=True)
class Region:
    """A part of a pair's plane that goes to one branch: what all its bounds enclose."""

    branch: int
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class Cut:
    """A cut of a pair's plane, or of the part of it that cuts before it have left.

    Attributes
    ----------
    weights : tuple of two floats
        As those of a bound.
    threshold : float
        Rows whose weighted sum is at most this go low, others high.
    low, high : int
        The cut that comes next there, or -1 minus the number of a region.
    """

    weights: tuple[float, float]
    threshold: float
    low: int
    high: int


# By feature, which categories can arrive at a node; features that are not listed have no limit.
Arriving = Mapping[int, np.ndarray]


def segments_of_node(
    tree: TreeArrays, node: int, feature: FeatureInfo, arriving: Sequence[bool]
) -> tuple[Segment, ...]:
    """The shape function of a node that splits on one feature, for the categories that arrive."""
    pieces = tree.pieces(node)
    branches = tree.piece_branch[pieces].tolist()
    if feature.categories is not None:
        return tuple(
            Segment(
                branch,
                categories=tuple(
                    category
                    for category, its_branch, arrives in zip(
                        feature.categories, branches, arriving, strict=True
                    )
                    if its_branch == branch and arrives
                ),
            )
            for branch in range(tree.n_branches[node])
        )
    highs = tree.piece_upper[pieces].tolist()
    lows = [-np.inf, *highs[:-1]]
    return tuple(map(Segment, branches, lows, highs))


def cuts_of_node(tree: TreeArrays, node: int) -> tuple[Cut, ...]:
    """The cuts of a node; none unless it splits on a pair."""
    cuts = tree.cuts(node)
    weights = zip(tree.cut_a[cuts].tolist(), tree.cut_b[cuts].tolist(), strict=True)
    thresholds = tree.cut_threshold[cuts].tolist()
    return tuple(
        map(Cut, weights, thresholds, tree.cut_low[cuts].tolist(), tree.cut_high[cuts].tolist())
    )


Limits = dict[tuple[float, float], tuple[float, float]]
# Regions of a pair that are joined; the time that takes grows with their cube.
MAX_JOINED = 100


class PairPlane:
    """The plane that a pair's node cuts into regions, as bounds of weighted sums.

    *Limits* are the bounds of a region: by weights, above which number and up to which.

    Parameters
    ----------
    tree, node, features
        The pair.
    known : sequence of dicts
        For each feature, the positions of the categories that arrive and do not count as missing.
    """

    def __init__(
        self,
        tree: TreeArrays,
        node: int,
        features: list[FeatureInfo],
        known: Sequence[dict[Level, float]],
    ) -> None:
        cuts, pieces = tree.cuts(node), tree.pieces(node)
        self._features, self._known = features, known
        self._weights = list(zip(tree.cut_a[cuts].tolist(), tree.cut_b[cuts].tolist(), strict=True))
        self._thresholds = tree.cut_threshold[cuts].tolist()
        self._below, self._above = tree.cut_low[cuts].tolist(), tree.cut_high[cuts].tolist()
        self._branches = tree.piece_branch[pieces].tolist()

    def regions(self) -> tuple[Region, ...]:
        """All regions, from the low side of the cuts to the high side."""
        found = self._limits_of_regions()
        return tuple(self._region(piece, found[piece]) for piece in range(len(self._branches)))

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
            for piece, limits in self._limits_of_regions().items()
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

    def _limits_of_regions(self) -> dict[int, Limits]:
        """Bounds of each region."""
        found: dict[int, Limits] = {}
        pending: list[tuple[int, Limits]] = [(0, {})]
        while pending:
            target, limits = pending.pop()
            if target < 0:
                found[-1 - target] = limits
                continue
            which, threshold = self._weights[target], self._thresholds[target]
            low, high = limits.get(which, (-np.inf, np.inf))
            pending.append((self._below[target], {**limits, which: (low, min(high, threshold))}))
            pending.append((self._above[target], {**limits, which: (max(low, threshold), high)}))
        return found

    def _widened(self, limits: Limits, branch: int, order: Iterable[tuple[float, float]]) -> Limits:
        """Limits without the bounds that make no difference, others as far out as can be."""
        for which in list(order):
            steps = {t for w, t in zip(self._weights, self._thresholds, strict=True) if w == which}
            for side, farthest in ((0, -np.inf), (1, np.inf)):
                own = limits[which][side]
                beyond = sorted(t for t in {*steps, farthest} if (t > own if side else t < own))
                for bound in beyond if not side else reversed(beyond):
                    low, high = limits[which]
                    wider = limits | {which: (low, bound) if side else (bound, high)}
                    if self._all_go_to(branch, wider):
                        limits = wider
                        break
        return {which: bounds for which, bounds in limits.items() if bounds != (-np.inf, np.inf)}

    def _all_go_to(self, branch: int, limits: Limits) -> bool:
        """Whether all points within limits go to a branch; no if that is not easily seen."""
        pending = [(0, limits)]
        while pending:
            target, limits = pending.pop()
            if target < 0:
                if self._branches[-1 - target] != branch:
                    return False
                continue
            which, threshold = self._weights[target], self._thresholds[target]
            low, high = limits.get(which, (-np.inf, np.inf))
            if low < threshold:
                pending.append((self._below[target], limits | {which: (low, min(high, threshold))}))
            if high > threshold:
                pending.append((self._above[target], limits | {which: (max(low, threshold), high)}))
        return True

    def _is_empty(self, limits: Limits) -> bool:
        """Whether nothing can lie within limits, or no category does."""
        return any(low >= high for low, high in limits.values()) or any(
            bound.categories == () for bound in self._bounds(limits)
        )

    def _region(self, piece: int, limits: Limits) -> Region:
        return Region(self._branches[piece], self._bounds(limits))

    def _bounds(self, limits: Limits) -> tuple[Bound, ...]:
        return tuple(self._bound(which, low, high) for which, (low, high) in limits.items())

    def _bound(self, weights: tuple[float, float], low: float, high: float) -> Bound:
        for side, axis in enumerate(AXES):
            if weights == axis and self._features[side].is_categorical:
                places = self._known[side].items()
                inside = tuple(category for category, place in places if low < place <= high)
                return Bound(weights, low, high, inside)
        return Bound(weights, low, high)

    def _excludes(self, bound: Bound) -> bool:
        """Whether any category that arrives is outside a bound; numbers may always be."""
        if bound.categories is None or bound.side is None:
            return True
        return len(bound.categories) < len(self._known[bound.side])


def _covers(one: Limits, other: Limits) -> bool:
    """Whether all that is within the other limits is within the one."""
    everything = (-np.inf, np.inf)
    return all(
        low <= other.get(which, everything)[0] and other.get(which, everything)[1] <= high
        for which, (low, high) in one.items()
    )


def positions_of(
    tree: TreeArrays, node: int, features: list[FeatureInfo], arriving: Sequence[Sequence[bool]]
) -> list[dict[Level, float]]:
    """For each feature of a pair, the positions of the categories that arrive; NaN for missing."""
    return [
        {
            category: place
            for category, place, arrives in zip(
                feature.categories or (),
                tree.position[tree.positions(node, side)].tolist(),
                arriving[side],
                strict=True,
            )
            if arrives
        }
        for side, feature in enumerate(features)
    ]


def arriving_categories(tree: TreeArrays, features: Sequence[FeatureInfo]) -> list[Arriving]:
    """For each node, which categories of the features above it can still come there."""
    found: list[Arriving] = [{}] * tree.node_count
    for node in np.argsort(tree.depth, kind="stable").tolist():
        children = [] if tree.is_leaf[node] else tree.children(node)
        below = [dict(found[node]) for _ in children]
        for side, feature in enumerate(tree.features_of(node)):
            categories = features[feature].categories
            if categories is None:
                continue
            here = found[node].get(feature, np.ones(len(categories), dtype=bool))
            for its, goes in zip(below, _branches_of_categories(tree, node, side), strict=True):
                # Where only missing values come, nothing can be said about categories.
                its[feature] = here & goes if (here & goes).any() else here
        for child, its in zip(children, below, strict=True):
            found[child] = its
    return found


def _branches_of_categories(tree: TreeArrays, node: int, side: int) -> np.ndarray:
    """Which categories of a node's feature can go to which branch, by branch and category."""
    n_branches = int(tree.n_branches[node])
    if len(tree.features_of(node)) == 1:
        branches = tree.piece_branch[tree.pieces(node)]
        return np.arange(n_branches)[:, None] == branches
    places = tree.position[tree.positions(node, side)]
    goes = np.zeros((n_branches, len(places)), dtype=bool)
    # Whatever its category is, a row may lack the other feature.
    goes[tree.missing_branch[node]] = True
    cuts, branches = tree.cuts(node), tree.piece_branch[tree.pieces(node)]
    is_own = (tree.cut_a[cuts], tree.cut_b[cuts])[1 - side] == 0
    thresholds, below, above = (
        each[cuts].tolist() for each in (tree.cut_threshold, tree.cut_low, tree.cut_high)
    )
    pending = [(0, ~np.isnan(places))]
    while pending:
        target, inside = pending.pop()
        if target < 0:
            goes[branches[-1 - target]] |= inside
            continue
        is_low = places <= thresholds[target] if is_own[target] else True
        is_high = ~(places <= thresholds[target]) if is_own[target] else True
        pending += [(below[target], inside & is_low), (above[target], inside & is_high)]
    return goes
