"""TreeView: a fitted tree as plain data in the user's words.

Everything that people see of a tree (words, pictures, pages and exports) reads only this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from shapetree.data._table import FeatureInfo, Level
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._scores import HeldOut, score_words
from shapetree.tree._sketch import Density, NodeSketch, Scatter

# Weights of the sums that are a pair's features themselves.
AXES = ((1.0, 0.0), (0.0, 1.0))
# Infinite values of a pair's features count as the greatest finite ones.
GREATEST = sys.float_info.max
# Steps through a category's width that fill a plane evenly, one for each feature.
SPREADING = (0.7548777, 0.5698403)
TINIEST = sys.float_info.min


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
    """What to draw of a pair's plane, in the units of its axes.

    Attributes
    ----------
    axes : tuple of two PlaneAxis
    polygons : tuple of tuples of points
        Corners of each of the node's regions, within the axes' ranges; none if it lies outside.
    points : array of shape (n_points, 2)
        Some of the node's rows.
    targets : array of shape (n_points,)
        Their classes' numbers or their targets.
    n_missing : int
        Rows that lack either feature.
    """

    axes: tuple[PlaneAxis, PlaneAxis]
    polygons: tuple[tuple[tuple[float, float], ...], ...]
    points: np.ndarray
    targets: np.ndarray
    n_missing: int


@dataclass(frozen=True)
class NodeView:
    """One node.

    Attributes
    ----------
    number : int
        Its index in `tree_`.
    parent : int or None
        Number of the node above.
    depth : int
    n_rows : int
        Rows that reach it, of the training data or of the data the view was made for.
    weight : float
        Sum of the weights of the training rows that reach it.
    impurity : float
    value : array of shape (n_outputs, n_values)
        Shares of the classes, or a mean or median.
    prediction : tuple
        Predicted class or number of each output.
    features : tuple of FeatureInfo
        The features it splits on: none for a leaf, one, or a pair.
    segments : tuple of Segment
        Its shape function of one feature; along the axis of an ordered feature, one for each branch
        of a categorical one.
    regions : tuple of Region
        Its shape function of a pair: parts of the plane that do not overlap.
    joined_regions : tuple of Region
        The same in fewer and larger regions, as words say it; those of one branch may overlap.
    cuts : tuple of Cut
        What makes the regions; no cut comes after one that leads to it.
    missing_branch : int or None
        Branch of missing values and unknown categories.
    missing_categories : tuple of tuples
        For each feature of a pair, the categories that count as missing here.
    saw_missing : bool
        Whether training rows here lacked a feature; otherwise missing values just go to the
        largest branch.
    children : tuple of int
        Numbers of the nodes its branches lead to.
    counts : int array or None
        Rows by class, or by the tree's cells of the target; None if there are several targets.
    row_shares : array of shape (n_outputs, n_values) or None
        Share of its rows that each class of each output has; `value` has what the tree predicts
        instead, which weights and shrinkage make differ. None for numbers, or if it is not known.
    mean, deviation : float or None
        Mean and standard deviation of the rows' target; None for classes.
    density : Density or None
        Where the rows lie on its feature.
    plane : Plane or None
        Where they lie in the plane of its pair.
    """

    number: int
    parent: int | None
    depth: int
    n_rows: int
    weight: float
    impurity: float
    value: np.ndarray
    prediction: tuple[Any, ...]
    features: tuple[FeatureInfo, ...]
    segments: tuple[Segment, ...]
    regions: tuple[Region, ...]
    joined_regions: tuple[Region, ...]
    cuts: tuple[Cut, ...]
    missing_branch: int | None
    missing_categories: tuple[tuple[Level, ...], ...]
    saw_missing: bool
    children: tuple[int, ...]
    counts: np.ndarray | None = None
    row_shares: np.ndarray | None = None
    mean: float | None = None
    deviation: float | None = None
    density: Density | None = None
    plane: Plane | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no children."""
        return not self.children

    @property
    def feature_words(self) -> str:
        """The names of its features."""
        return " and ".join(feature.name for feature in self.features)

    def known_categories(self, side: int) -> tuple[Level, ...]:
        """Categories of one of its features that do not count as missing here."""
        missing = self.missing_categories[side] if self.missing_categories else ()
        return tuple(c for c in self.features[side].categories or () if c not in missing)

    def n_right(self, classes: tuple[Any, ...]) -> int:
        """Number of its rows that are of the class it predicts."""
        assert self.counts is not None
        return int(self.counts[classes.index(self.prediction[0])])

    def squared_error(self, number: float | None) -> float:
        """Sum over its rows of the target's squared distance from a number."""
        if number is None or self.mean is None or self.deviation is None:
            raise ValueError("only numbers have a squared error")
        off = self.mean - number
        return self.n_rows * (self.deviation * self.deviation + off * off)


@dataclass(frozen=True)
class TreeView:
    """A fitted tree; node 0 is the root.

    Attributes
    ----------
    nodes : tuple of NodeView
    features : tuple of FeatureInfo
    scales : array of shape (n_features,)
        Standard deviation of each ordered feature in training; 1 for features that are not used.
    classes : tuple of tuples or None
        Class labels of each output; None for regression.
    target_edges : array or None
        Bounds of the cells that `NodeView.counts` counts a numeric target in.
    is_training : bool
        Whether the rows are those the tree was fitted on.
    target_names : tuple of str or None
        Name of each output; None if they have none.
    ranges : array of shape (n_features, 2)
        Least and greatest number of each feature in training; NaN where that is not known.
    held_out : HeldOut or None
        Scores on rows that were not fitted on, where they are known.
    is_weighted : bool
        Whether training rows counted by different weights.
    shrinkage : float
        How far predictions lean on those of the nodes above.
    """

    nodes: tuple[NodeView, ...]
    features: tuple[FeatureInfo, ...]
    scales: np.ndarray
    classes: tuple[tuple[Any, ...], ...] | None
    target_edges: np.ndarray | None
    is_training: bool
    target_names: tuple[str, ...] | None
    ranges: np.ndarray
    held_out: HeldOut | None
    is_weighted: bool = False
    shrinkage: float = 0.0

    @property
    def predicted_word(self) -> str:
        """What to call predicted shares that differ from the rows'."""
        only_weights = self.is_training and self.is_weighted and self.shrinkage == 0
        return "weighted" if only_weights else "predicted"

    @property
    def target_name(self) -> str | None:
        """Name of the target; None if it has none, or if there are several."""
        return self.target_names[0] if self.target_names and self.n_outputs == 1 else None

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return len(self.nodes[0].prediction)

    def path_to(self, number: int) -> list[NodeView]:
        """Nodes from the root to a node, both included."""
        path = [self.nodes[number]]
        while path[-1].parent is not None:
            path.append(self.nodes[path[-1].parent])
        return path[::-1]

    def score(self) -> float | None:
        """Accuracy, or R², on the view's rows; None if there are several targets or no spread."""
        leaves = [node for node in self.nodes if node.is_leaf and node.n_rows]
        root = self.nodes[0]
        if root.counts is None or not leaves:
            return None
        if self.classes is not None:
            return sum(leaf.n_right(self.classes[0]) for leaf in leaves) / root.n_rows
        loss = sum(leaf.squared_error(leaf.prediction[0]) for leaf in leaves)
        total = root.squared_error(root.mean)
        return 1 - loss / total if total > 0 else None

    def scores_in_words(self) -> list[str]:
        """What is known about how good the tree is, scores on unseen rows first."""
        has_classes = self.classes is not None
        words = []
        if self.held_out is not None:
            rows = f"{self.held_out.n_rows:,} unseen row{'s' * (self.held_out.n_rows != 1)}"
            words.append(f"{score_words(has_classes, self.held_out.chief)} on {rows}")
        score = self.score()
        if score is not None:
            said = score_words(has_classes, score)
            words.append(f"training {said}" if self.is_training else f"{said} on the rows given")
        return words


# Views of training rows are asked for again and again, and take a while to make.
_made: WeakKeyDictionary[FittedTree, dict[bool, TreeView]] = WeakKeyDictionary()


def view_of(
    fitted: FittedTree, X: Any = None, y: Any = None, *, with_units: bool = True
) -> TreeView:
    """View of a fitted tree.

    Parameters
    ----------
    fitted : FittedTree
    X, y : table and targets, optional
        Rows to count instead of those of training; what the tree does stays the same.
    with_units : bool, default=True
        Whether units are part of the names.
    """
    if X is not None or y is not None:
        return _make_view(fitted, X, y, with_units)
    made = _made.setdefault(fitted, {})
    if with_units not in made:
        made[with_units] = _make_view(fitted, None, None, with_units)
    return made[with_units]


def _make_view(fitted: FittedTree, X: Any, y: Any, with_units: bool) -> TreeView:
    if (X is None) != (y is None):
        given, lacking = ("X", "y") if y is None else ("y", "X")
        raise ValueError(f"{given} was given without {lacking}; give both or neither")
    tree, names = fitted.tree, fitted.names
    features = names.name_features(fitted.features, with_units)
    classes = names.name_classes(fitted.classes)
    sketches = fitted.sketches if X is None else fitted.sketch_rows(X, y)
    nodes = tuple(
        _view_node(tree, node, features, classes, None if sketches is None else sketches[node])
        for node in range(tree.node_count)
    )
    is_weighted = _is_weighted(tree)
    if sketches is None and classes is not None and not is_weighted and fitted.shrinkage == 0:
        # Several targets are not counted, but nothing makes predictions differ from the rows.
        nodes = tuple(replace(node, row_shares=node.value) for node in nodes)
    return TreeView(
        nodes=nodes,
        features=features,
        scales=fitted.summary.scales,
        classes=classes,
        target_edges=fitted.summary.target_edges,
        is_training=X is None,
        target_names=names.name_targets(with_units),
        ranges=fitted.summary.ranges,
        held_out=fitted.held_out,
        is_weighted=is_weighted,
        shrinkage=fitted.shrinkage,
    )


def _is_weighted(tree: TreeArrays) -> bool:
    """Whether the weights of nodes differ from their numbers of rows."""
    share = tree.weighted_n_node_samples / max(float(tree.weighted_n_node_samples[0]), TINIEST)
    return not np.allclose(share, tree.n_node_samples / tree.n_node_samples[0], rtol=1e-9, atol=0)


def _view_node(
    tree: TreeArrays,
    node: int,
    features: tuple[FeatureInfo, ...],
    classes: tuple[tuple[Any, ...], ...] | None,
    sketch: NodeSketch | None,
) -> NodeView:
    value = tree.value[node]
    if classes is None:
        prediction = tuple(value[:, 0].tolist())
    else:
        prediction = tuple(
            labels[best] for labels, best in zip(classes, value.argmax(axis=1), strict=True)
        )
    used = [features[feature] for feature in tree.features_of(node)]
    cuts = _cuts(tree, node)
    regions: tuple[Region, ...] = ()
    joined: tuple[Region, ...] = ()
    if len(used) == 2:
        plane = PairPlane(tree, node, used)
        regions, joined = plane.regions(), plane.joined_regions()
    view = NodeView(
        number=node,
        parent=int(tree.parent[node]) if node else None,
        depth=int(tree.depth[node]),
        n_rows=int(tree.n_node_samples[node]),
        weight=float(tree.weighted_n_node_samples[node]),
        impurity=float(tree.impurity[node]),
        value=value,
        prediction=prediction,
        features=tuple(used),
        segments=_segments(tree, node, used[0]) if len(used) == 1 else (),
        regions=regions,
        joined_regions=joined,
        cuts=cuts,
        missing_branch=int(tree.missing_branch[node]) if used else None,
        missing_categories=_missing_categories(tree, node, used) if len(used) == 2 else (),
        saw_missing=bool(tree.saw_missing[node]),
        children=tuple(tree.children(node)) if used else (),
    )
    if sketch is None:
        return view
    return replace(
        view,
        n_rows=int(sketch.counts.sum()),
        counts=sketch.counts,
        row_shares=None if classes is None else sketch.counts[None] / max(sketch.counts.sum(), 1),
        mean=sketch.mean,
        deviation=sketch.deviation,
        density=sketch.density,
        plane=(
            None if sketch.scatter is None else _plane(tree, node, used, regions, sketch.scatter)
        ),
    )


def _segments(tree: TreeArrays, node: int, feature: FeatureInfo) -> tuple[Segment, ...]:
    pieces = tree.pieces(node)
    branches = tree.piece_branch[pieces].tolist()
    if feature.categories is not None:
        return tuple(
            Segment(
                branch,
                categories=tuple(
                    category
                    for category, its_branch in zip(feature.categories, branches, strict=True)
                    if its_branch == branch
                ),
            )
            for branch in range(tree.n_branches[node])
        )
    highs = tree.piece_upper[pieces].tolist()
    lows = [-np.inf, *highs[:-1]]
    return tuple(map(Segment, branches, lows, highs))


def _cuts(tree: TreeArrays, node: int) -> tuple[Cut, ...]:
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
    """

    def __init__(self, tree: TreeArrays, node: int, features: list[FeatureInfo]) -> None:
        cuts, pieces = tree.cuts(node), tree.pieces(node)
        self._tree, self._node, self._features = tree, node, features
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
        wide regions, those are taken that cover most of what is not covered yet. So many regions
        that nobody would read them stay as they are.
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
                joined.append(Region(branch, self._bounds(wide[best])))
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
        return tuple(
            _bound(self._tree, self._node, self._features, which, low, high)
            for which, (low, high) in limits.items()
        )


def _covers(one: Limits, other: Limits) -> bool:
    """Whether all that is within the other limits is within the one."""
    everything = (-np.inf, np.inf)
    return all(
        low <= other.get(which, everything)[0] and other.get(which, everything)[1] <= high
        for which, (low, high) in one.items()
    )


def _missing_categories(
    tree: TreeArrays, node: int, features: list[FeatureInfo]
) -> tuple[tuple[Level, ...], ...]:
    return tuple(
        tuple(
            category
            for category, place in zip(
                feature.categories or (), tree.position[tree.positions(node, side)], strict=True
            )
            if np.isnan(place)
        )
        for side, feature in enumerate(features)
    )


def _bound(
    tree: TreeArrays,
    node: int,
    features: list[FeatureInfo],
    weights: tuple[float, float],
    low: float,
    high: float,
) -> Bound:
    for side, axis in enumerate(AXES):
        categories = features[side].categories
        if weights == axis and categories is not None:
            places = tree.position[tree.positions(node, side)].tolist()
            inside = tuple(
                category
                for category, place in zip(categories, places, strict=True)
                if low < place <= high
            )
            return Bound(weights, low, high, inside)
    return Bound(weights, low, high)


# --- the plane of a pair ---


def _plane(
    tree: TreeArrays,
    node: int,
    features: list[FeatureInfo],
    regions: tuple[Region, ...],
    scatter: Scatter,
) -> Plane:
    axes, columns = [], []
    for side, feature in enumerate(features):
        values = scatter.points[:, side]
        if feature.categories is None:
            low, high = float(scatter.low[side]), float(scatter.high[side])
            axes.append(PlaneAxis(low, high))
            columns.append(values)
        else:
            places = tree.position[tree.positions(node, side)]
            order = [code for code in np.argsort(places).tolist() if not np.isnan(places[code])]
            drawn = tuple(feature.categories[code] for code in order)
            axes.append(PlaneAxis(0.0, float(len(drawn)), drawn))
            slot = np.full(len(places), np.nan)
            slot[order] = np.arange(len(order))
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
