"""FittedTree: all that a fit leaves behind, as one object.

Estimators hold one. Views, explanations, pictures, exports and the model file read this object,
and do not depend on estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from shapetree.data._shares import ClassShares, parts_of
from shapetree.data._table import Table
from shapetree.data._values import values_of
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut
from shapetree.tree._fitted_model import FittedModel
from shapetree.tree._rebinning import bin_used_features
from shapetree.tree._sketch import DataSummary, NodeSketch
from shapetree.tree._sketcher import (
    SketchedPart,
    SketchedRows,
    part_of_shares,
    sketch_tree,
    sole_target,
)
from shapetree.tree._stability import Stability


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedTree(FittedModel):
    """A fitted tree and what is known about the data it was fitted on."""

    kind: ClassVar[str] = "the tree"

    history: np.ndarray | None = None  # losses of the tree during its refinement, if it was refined
    strength: float = 1.0  # what penalties were multiplied by
    cv_results: dict[str, Any] | None = None  # how it was chosen, if it was
    held_out: HeldOut | None = None  # scores on rows that were not fitted on, if it was evaluated
    why_single_leaf: str | None = None  # why the tree has no split, if it has none
    taught: float = 0.0  # how much of what the tree was fitted to was a teacher's; 0 without one
    # The user's own estimator that taught the tree, if one did; it is in no model file.
    teacher: Any = None
    # What trees of resamples have in common with it, if that was asked.
    stability: Stability | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "summary", self.summary.of_features(self.used_features))

    @property
    def tree(self) -> TreeArrays:
        """The only tree: its nodes, and sketches of their rows."""
        return self.trees[0]

    @property
    def is_smoothed(self) -> bool:
        """Whether predictions are not those of the leaves' own rows."""
        return self.shrinkage > 0 or self.taught > 0

    @property
    def predicts_medians(self) -> bool:
        """Whether leaves predict medians rather than means or classes."""
        return self.criterion == "absolute_error"

    @property
    def sketches(self) -> Sequence[NodeSketch] | None:
        """How the training rows are spread over the nodes; None if there are several targets."""
        return self.tree.sketches

    def with_tree(self, tree: TreeArrays) -> FittedTree:
        """The same with another tree, whose scores and stability are not known."""
        return replace(self, trees=(tree,), held_out=None, stability=None)

    def sketch_rows(self, X: Any, y: Any) -> tuple[Sequence[NodeSketch] | None, int]:
        """How further rows are spread over the nodes, and how many of what is counted make a row.

        None if they have several targets.
        """
        table = self.read_table(X, "this tree", self.used_features)
        return self._sketched(X, y, table, self._values(table))

    def _values(self, table: Table) -> DataSummary:
        """How the values of further rows are spread."""
        ordered = [j for j in self.used_features if not self.features[j].is_categorical]
        edges = self.summary.target_edges
        values = values_of(table, ordered, None)
        return DataSummary.of_values(values, ordered, len(self.features), edges)

    def _sketched(
        self, X: Any, y: Any, table: Table, summary: DataSummary
    ) -> tuple[Sequence[NodeSketch] | None, int]:
        """The same of rows that have been read, given how their values are spread."""
        if isinstance(y, ClassShares):
            values = self.read_shares(X, y).values
            parts = parts_of(values)
            amounts = parts.amounts(values, np.ones(len(values)))
            table = table.take(parts.row)
            binned = bin_used_features(self.tree, table, 1)
            part = part_of_shares(self.tree, table, binned, parts, amounts)
        else:
            target = sole_target(self.read_targets(X, y), self.classes is not None)
            if target is None:
                return None, 1
            part = SketchedPart(self.tree, table, bin_used_features(self.tree, table, 1), target)
        sketches, _ = sketch_tree(
            *(self.tree, self.features, SketchedRows.of(part), summary.ranges),
            None if self.n_classes is None else self.n_classes[0],
            *(summary.target_edges, self.predicts_medians),
        )
        return sketches, part.steps

    def is_of_training(self, X: Any, targets: np.ndarray | ClassShares) -> bool:
        """Whether rows are spread over all nodes as those of training, down to the last number."""
        known, are_shares = self.sketches, isinstance(targets, ClassShares)
        if known is None or len(targets) != int(self.tree.n_node_samples[0]):
            return False
        if are_shares != (self.summary.steps > 1):
            return False
        labels = None if are_shares or self.classes is None else self.classes[0]
        if labels is not None and not np.isin(np.asarray(targets), labels).all():
            return False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # predictions say the same
            table = self.read_table(X, "this tree", self.used_features)
        values = self._values(table)
        if not np.array_equal(values.ranges, self.summary.ranges, equal_nan=True):
            return False
        sketches, _ = self._sketched(X, targets, table, values)
        return sketches is not None and all(map(_are_alike, known, sketches))


def _are_alike(one: NodeSketch, other: NodeSketch) -> bool:
    """Whether two sketches of a node can be of the same rows, in whatever order."""
    if not np.array_equal(one.counts, other.counts) or one.deviation != other.deviation:
        return False
    if one.density is not None and other.density is not None:
        return np.array_equal(one.density.missing, other.density.missing)
    if one.scatter is not None and other.scatter is not None:
        return one.scatter.n_missing == other.scatter.n_missing
    return True
