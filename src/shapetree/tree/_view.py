"""TreeView: a fitted tree as plain data in the user's words.

Everything that people see of a tree (words, pictures, pages and exports) reads only this.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut, held_out_words, score_words
from shapetree.tree._fitted import FittedTree, TreeOrForest
from shapetree.tree._intervals import Sure, UnseenLeaf, sure_of_node, sure_of_share
from shapetree.tree._regions import (
    Bound,
    Cut,
    PairPlane,
    Region,
    Segment,
    arriving_categories,
    segments_of,
)
from shapetree.tree._shape import PairShape, ShapeFunction
from shapetree.tree._sketch import Density, NodeSketch, Scatter
from shapetree.tree._stability import Stability

TINIEST = sys.float_info.min


@dataclass(frozen=True)
class NodeView:
    """One node."""

    number: int  # its index in `tree_`
    parent: int | None  # number of the node above
    depth: int
    n_rows: int  # rows that reach it, of the training data or of the data the view was made for
    weight: float  # sum of the weights of the training rows that reach it
    impurity: float
    # Shares of the classes, or a mean or median. Shape (n_outputs, n_values).
    value: np.ndarray
    prediction: tuple[Any, ...]  # predicted class or number of each output
    features: tuple[FeatureInfo, ...]  # the features it splits on: none for a leaf, one, or a pair
    feature_numbers: tuple[int, ...]  # where these stand among all features
    # For each of them, the categories that can come here, given the branches above. What follows
    # names no others.
    arriving: tuple[tuple[Level, ...], ...]
    # Its shape function of one feature; along the axis of an ordered feature, one for each branch
    # of a categorical one.
    segments: tuple[Segment, ...]
    # Its shape function of a pair: parts of the plane that do not overlap.
    regions: tuple[Region, ...]
    # The same in fewer and larger regions, as words say it; those of one branch may overlap.
    joined_regions: tuple[Region, ...]
    cuts: tuple[Cut, ...]  # what makes the regions; no cut comes after one that leads to it
    missing_branch: int | None  # branch of missing values and unknown categories
    # For each feature of a pair, the categories that count as missing here, and those that do not,
    # in the order of the plane's axis.
    missing_categories: tuple[tuple[Level, ...], ...]
    axis_categories: tuple[tuple[Level, ...], ...]
    # Whether training rows here lacked a feature; otherwise missing values just go to the largest
    # branch.
    saw_missing: bool
    children: tuple[int, ...]  # numbers of the nodes its branches lead to
    # Rows by class, or by the tree's cells of the target; None if there are several targets. They
    # are whole unless rows have shares of classes.
    counts: np.ndarray | None = None
    # Share of its rows that each class of each output has; `value` has what the tree predicts
    # instead, which weights and shrinkage make differ. None for numbers, or if it is not known.
    # Shape (n_outputs, n_values).
    row_shares: np.ndarray | None = None
    # Mean and standard deviation of the rows' target; None for classes.
    mean: float | None = None
    deviation: float | None = None
    density: Density | None = None  # where the rows lie on its feature
    scatter: Scatter | None = None  # where they lie in the plane of its pair
    # For each output, the rows' share of the predicted class, or their mean or median, and its
    # interval; None where that is not known.
    sures: tuple[Sure | None, ...] = ()

    @property
    def sure(self) -> Sure | None:
        """The only target's share, mean or median and its interval."""
        return self.sures[0] if len(self.sures) == 1 else None

    @property
    def bounds(self) -> Iterator[Bound]:
        """All bounds of its segments or regions."""
        yield from self.segments
        for region in self.regions:
            yield from region.bounds

    @property
    def thresholds(self) -> list[float]:
        """Where its segments meet, ascending."""
        return [segment.high for segment in self.segments[:-1]]

    @property
    def is_leaf(self) -> bool:
        """Whether the node has no children."""
        return not self.children

    @property
    def feature_words(self) -> str:
        """The names of its features."""
        return " and ".join(feature.name for feature in self.features)

    def known_categories(self, side: int) -> tuple[Level, ...]:
        """Categories of one of its features that come here and do not count as missing."""
        missing = self.missing_categories[side] if self.missing_categories else ()
        return tuple(c for c in self.arriving[side] if c not in missing)

    def n_right(self, classes: tuple[Any, ...]) -> float:
        """Number of its rows that are of the class it predicts, which may be shares of rows."""
        assert self.counts is not None
        return self.counts[classes.index(self.prediction[0])].item()

    def squared_error(self, number: float | None) -> float:
        """Sum over its rows of the target's squared distance from a number."""
        if number is None or self.mean is None or self.deviation is None:
            raise ValueError("only numbers have a squared error")
        off = self.mean - number
        return self.n_rows * (self.deviation * self.deviation + off * off)


@dataclass(frozen=True)
class TreeView:
    """A fitted tree; node 0 is the root."""

    nodes: tuple[NodeView, ...]
    features: tuple[FeatureInfo, ...]
    # Standard deviation of each ordered feature in training; 1 for features that are not used.
    # Shape (n_features,).
    scales: np.ndarray
    classes: tuple[tuple[Any, ...], ...] | None  # class labels of each output; None for regression
    # Bounds of the cells that `NodeView.counts` counts a numeric target in.
    target_edges: np.ndarray | None
    is_training: bool  # whether the rows are those the tree was fitted on
    target_names: tuple[str, ...] | None  # name of each output; None if they have none
    # Least and greatest number of each feature in training; NaN where that is not known. Shape
    # (n_features, 2).
    ranges: np.ndarray
    held_out: HeldOut | None  # scores on rows that were not fitted on, where they are known
    is_weighted: bool = False  # whether training rows counted by different weights
    is_smoothed: bool = False  # whether predictions are not those of the leaves' own rows
    why_single_leaf: str | None = None  # why the tree has no split, if it has none
    # What trees of resamples have in common with it, where that is known.
    stability: Stability | None = None

    def require_counts(self, what: str) -> None:
        """Refuse a tree of one target whose rows were never counted, as those of a forest."""
        if self.n_outputs == 1 and self.nodes[0].counts is None:
            raise ValueError(
                f"{what} shows how rows are spread over the nodes, which the trees of a forest do "
                "not keep; use plot_tree with X and y, or export_text"
            )

    @property
    def predicted_word(self) -> str:
        """What to call predicted shares that differ from the rows'."""
        only_weights = self.is_training and self.is_weighted and not self.is_smoothed
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

    def reasons(self, number: int) -> list[str]:
        """Names of the features that nodes split on before one, from the root on."""
        path = self.path_to(number)[:-1]
        return list(dict.fromkeys(feature.name for node in path for feature in node.features))

    def score(self) -> float | None:
        """Accuracy, or R², on the view's rows; None if there are several targets or no spread."""
        leaves = [node for node in self.nodes if node.is_leaf and node.n_rows]
        root = self.nodes[0]
        if root.counts is None or not leaves:
            return None
        if self.classes is not None:
            return float(sum(leaf.n_right(self.classes[0]) for leaf in leaves) / root.n_rows)
        loss = sum(leaf.squared_error(leaf.prediction[0]) for leaf in leaves)
        total = root.squared_error(root.mean)
        return 1 - loss / total if total > 0 else None

    @property
    def single_leaf_words(self) -> str | None:
        """That the tree has no split, and why, where that is known."""
        why = self.why_single_leaf
        return None if why is None else f"A single leaf: {why}"

    def unseen(self, node: NodeView) -> UnseenLeaf | None:
        """What the rows given to `evaluate` show of a leaf, if there are any."""
        return None if self.held_out is None else self.held_out.leaves.get(node.number)

    def stability_words(self, node: NodeView) -> str | None:
        """In how many resamples a node was found again, if `stability` was called."""
        return None if self.stability is None else self.stability.node_words(node.number)

    def scores_in_words(self) -> list[str]:
        """What is known about how good the tree is, scores on unseen rows first."""
        has_classes = self.classes is not None
        words = []
        if self.held_out is not None:
            words += held_out_words(self.held_out, has_classes)
        if self.stability is not None:
            words.append(self.stability.words)
        score = self.score()
        if score is not None:
            said = score_words(has_classes, score)
            words.append(f"training {said}" if self.is_training else f"{said} on the rows given")
        return words


# Views of training rows are needed often, and take long to make.
_made: WeakKeyDictionary[FittedTree, dict[bool, TreeView]] = WeakKeyDictionary()


def view_of(
    fitted: FittedTree, X: Any = None, y: Any = None, *, with_units: bool = True
) -> TreeView:
    """View of a fitted tree, with its training rows or others; units may be part of the names."""
    if X is not None or y is not None:
        return _make_view(fitted, X, y, with_units)
    made = _made.setdefault(fitted, {})
    if with_units not in made:
        made[with_units] = _make_view(fitted, None, None, with_units)
    return made[with_units]


def views_of(model: TreeOrForest) -> Iterator[TreeView]:
    """Views of all trees, one after the other: those of a large forest would fill the memory.

    Units are no part of the names.
    """
    if isinstance(model, FittedTree):
        yield view_of(model, with_units=False)
        return
    for number in range(len(model.trees)):
        yield _make_view(model.fitted_tree(number), None, None, False)


def _make_view(fitted: FittedTree, X: Any, y: Any, with_units: bool) -> TreeView:
    if (X is None) != (y is None):
        given, lacking = ("X", "y") if y is None else ("y", "X")
        raise ValueError(f"{given} was given without {lacking}; give both or neither")
    tree, names = fitted.tree, fitted.names
    features = names.name_features(fitted.features, with_units)
    classes = names.name_classes(fitted.classes)
    sketches, steps = fitted.sketches, fitted.summary.steps
    if X is not None:
        sketches, steps = fitted.sketch_rows(X, y)
    is_weighted = _is_weighted(tree)
    shapes = [tree.shape(node) for node in range(tree.node_count)]
    nodes = []
    for node, arriving in enumerate(arriving_categories(tree, shapes, features)):
        rows: dict[str, Any] = {}
        if sketches is not None:
            rows = _rows_of_node(tree, node, sketches[node].in_rows(steps), fitted)
        elif classes is not None and not is_weighted and not fitted.is_smoothed:
            # Several targets are not counted, but nothing makes predictions differ from the rows.
            n_rows, shares = int(tree.n_node_samples[node]), tree.value[node]
            sures = tuple(sure_of_share(float(its.max()), n_rows) for its in shares)
            rows = {"row_shares": shares, "sures": sures}
        nodes.append(_view_of_node(tree, node, shapes[node], features, classes, arriving, rows))
    return TreeView(
        nodes=tuple(nodes),
        features=features,
        scales=fitted.summary.scales,
        classes=classes,
        target_edges=fitted.summary.target_edges,
        is_training=X is None,
        target_names=names.name_targets(with_units),
        ranges=fitted.summary.ranges,
        held_out=fitted.held_out,
        is_weighted=is_weighted,
        is_smoothed=fitted.is_smoothed,
        why_single_leaf=fitted.why_single_leaf,
        stability=fitted.stability,
    )


def _is_weighted(tree: TreeArrays) -> bool:
    """Whether the weights of nodes differ from their numbers of rows."""
    share = tree.weighted_n_node_samples / max(float(tree.weighted_n_node_samples[0]), TINIEST)
    return not np.allclose(share, tree.n_node_samples / tree.n_node_samples[0], rtol=1e-9, atol=0)


def _view_of_node(
    tree: TreeArrays,
    node: int,
    shape: ShapeFunction | PairShape | None,
    features: tuple[FeatureInfo, ...],
    classes: tuple[tuple[Any, ...], ...] | None,
    arriving: list[np.ndarray],
    rows: dict[str, Any],
) -> NodeView:
    """A node, given what is known about its rows."""
    value = tree.value[node]
    if classes is None:
        prediction = tuple(value[:, 0].tolist())
    else:
        prediction = tuple(
            labels[best] for labels, best in zip(classes, value.argmax(axis=1), strict=True)
        )
    numbers = tree.features_of(node)
    used = [features[number] for number in numbers]
    plane = PairPlane(shape, used, arriving) if isinstance(shape, PairShape) else None
    segments: tuple[Segment, ...] = ()
    if isinstance(shape, ShapeFunction):
        segments = segments_of(shape, used[0], arriving[0])
    shown = {"n_rows": int(tree.n_node_samples[node])} | rows
    return NodeView(
        number=node,
        parent=int(tree.parent[node]) if node else None,
        depth=int(tree.depth[node]),
        weight=float(tree.weighted_n_node_samples[node]),
        impurity=float(tree.impurity[node]),
        value=value,
        prediction=prediction,
        features=tuple(used),
        feature_numbers=tuple(numbers),
        arriving=tuple(
            tuple(compress(feature.categories or (), its))
            for feature, its in zip(used, arriving, strict=True)
        ),
        segments=segments,
        regions=() if plane is None else plane.regions(),
        joined_regions=() if plane is None else plane.joined_regions(),
        cuts=() if plane is None else plane.cuts,
        missing_branch=None if shape is None else shape.missing_branch,
        missing_categories=() if plane is None else plane.missing,
        axis_categories=() if plane is None else plane.in_order,
        saw_missing=shape is not None and shape.saw_missing,
        children=tuple(tree.children(node)),
        **shown,
    )


def _rows_of_node(
    tree: TreeArrays, node: int, sketch: NodeSketch, fitted: FittedTree
) -> dict[str, Any]:
    """What a sketch tells of a node's rows."""
    has_classes, n_rows = fitted.classes is not None, sketch.counts.sum()
    best = int(tree.value[node, 0].argmax()) if has_classes else None
    return {
        "n_rows": int(n_rows),
        "counts": sketch.counts,
        "row_shares": sketch.counts[None] / max(n_rows, 1) if has_classes else None,
        "mean": sketch.mean,
        "deviation": sketch.deviation,
        "density": sketch.density,
        "scatter": sketch.scatter,
        "sures": (sure_of_node(sketch, best, fitted.predicts_medians),),
    }
