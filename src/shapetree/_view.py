"""TreeView: a fitted tree as plain data in the user's words.

Everything that people see of a tree (text, and later pictures and exports) reads only this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from shapetree._table import FeatureInfo, Level
from shapetree._tree import TreeArrays


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


@dataclass(frozen=True)
class Region:
    """A part of a pair's plane that goes to one branch: what all its bounds enclose."""

    branch: int
    bounds: tuple[Bound, ...]


@dataclass(frozen=True)
class NodeView:
    """One node.

    Attributes
    ----------
    number : int
        Its index in `tree_`.
    depth : int
    n_rows : int
        Training rows that reach it.
    weight : float
        Sum of their weights.
    impurity : float
    value : array of shape (n_outputs, n_values)
        Shares of the classes, or a mean or median.
    prediction : tuple
        Predicted class or number of each output.
    features : tuple of str
        Names of the features it splits on: none for a leaf, one, or a pair.
    segments : tuple of Segment
        Its shape function of one feature; along the axis of an ordered feature, one for each branch
        of a categorical one.
    regions : tuple of Region
        Its shape function of a pair.
    missing_branch : int or None
        Branch of missing values and unknown categories.
    saw_missing : bool
        Whether training rows here lacked a feature; otherwise missing values just go to the
        largest branch.
    children : tuple of int
        Numbers of the nodes its branches lead to.
    """

    number: int
    depth: int
    n_rows: int
    weight: float
    impurity: float
    value: np.ndarray
    prediction: tuple[Any, ...]
    features: tuple[str, ...]
    segments: tuple[Segment, ...]
    regions: tuple[Region, ...]
    missing_branch: int | None
    saw_missing: bool
    children: tuple[int, ...]

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no children."""
        return not self.children


@dataclass(frozen=True)
class TreeView:
    """A fitted tree; node 0 is the root.

    Attributes
    ----------
    nodes : tuple of NodeView
    features : tuple of FeatureInfo
    classes : tuple of tuples or None
        Class labels of each output; None for regression.
    """

    nodes: tuple[NodeView, ...]
    features: tuple[FeatureInfo, ...]
    classes: tuple[tuple[Any, ...], ...] | None


def view_of(estimator: Any) -> TreeView:
    """View of a fitted estimator's tree."""
    check_is_fitted(estimator)
    classes = None
    if is_classifier(estimator):
        outputs = [estimator.classes_] if estimator.n_outputs_ == 1 else estimator.classes_
        classes = tuple(tuple(labels.tolist()) for labels in outputs)
    tree, features = estimator.tree_, estimator._features
    nodes = tuple(_view_node(tree, node, features, classes) for node in range(tree.node_count))
    return TreeView(nodes, features, classes)


def _view_node(
    tree: TreeArrays,
    node: int,
    features: tuple[FeatureInfo, ...],
    classes: tuple[tuple[Any, ...], ...] | None,
) -> NodeView:
    value = tree.value[node]
    if classes is None:
        prediction = tuple(value[:, 0].tolist())
    else:
        prediction = tuple(
            labels[best] for labels, best in zip(classes, value.argmax(axis=1), strict=True)
        )
    used = [features[feature] for feature in tree.features_of(node)]
    return NodeView(
        number=node,
        depth=int(tree.depth[node]),
        n_rows=int(tree.n_node_samples[node]),
        weight=float(tree.weighted_n_node_samples[node]),
        impurity=float(tree.impurity[node]),
        value=value,
        prediction=prediction,
        features=tuple(feature.name for feature in used),
        segments=_segments(tree, node, used[0]) if len(used) == 1 else (),
        regions=_regions(tree, node, used) if len(used) == 2 else (),
        missing_branch=int(tree.missing_branch[node]) if used else None,
        saw_missing=bool(tree.saw_missing[node]),
        children=tuple(tree.children(node)) if used else (),
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


def _regions(tree: TreeArrays, node: int, features: list[FeatureInfo]) -> tuple[Region, ...]:
    """A pair's regions, from the low side of its cuts to the high side."""
    cuts, pieces = tree.cuts(node), tree.pieces(node)
    weights = list(zip(tree.cut_a[cuts].tolist(), tree.cut_b[cuts].tolist(), strict=True))
    thresholds = tree.cut_threshold[cuts].tolist()
    below, above = tree.cut_low[cuts].tolist(), tree.cut_high[cuts].tolist()
    branches = tree.piece_branch[pieces].tolist()
    found: dict[int, Region] = {}

    def walk(target: int, limits: dict[tuple[float, float], tuple[float, float]]) -> None:
        if target < 0:
            bounds = [
                _bound(tree, node, features, which, low, high)
                for which, (low, high) in limits.items()
            ]
            found[-1 - target] = Region(branches[-1 - target], tuple(bounds))
            return
        which, threshold = weights[target], thresholds[target]
        low, high = limits.get(which, (-np.inf, np.inf))
        walk(below[target], {**limits, which: (low, min(high, threshold))})
        walk(above[target], {**limits, which: (max(low, threshold), high)})

    walk(0, {})
    return tuple(found[piece] for piece in range(len(branches)))


def _bound(
    tree: TreeArrays,
    node: int,
    features: list[FeatureInfo],
    weights: tuple[float, float],
    low: float,
    high: float,
) -> Bound:
    for side, axis in enumerate([(1.0, 0.0), (0.0, 1.0)]):
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
