"""FittedTree: all that a fit leaves behind, as one object.

The estimators hold one. Whatever is below them (views, explanations, pictures, exports, the model
file) reads this object and knows nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from sklearn.utils import check_consistent_length

from shapetree.data._labels import number_classes, read_targets
from shapetree.data._names import check_columns
from shapetree.data._table import FeatureInfo, Table, encode_table, open_table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of
from shapetree.tree._sketch import DataSummary, NodeSketch
from shapetree.tree._sketcher import sketch_tree


@dataclass(frozen=True, eq=False)
class FittedTree:
    """A fitted tree and what is known of the data it was fitted on.

    Attributes
    ----------
    tree : TreeArrays
        The nodes, and sketches of their rows.
    features : tuple of FeatureInfo
    has_names : bool
        Whether the training table had names for its columns.
    classes : tuple of arrays or None
        Class labels of each output; None for numbers.
    criterion : str
        The criterion that the tree was grown by.
    shrinkage : float
    summary : DataSummary
        What is remembered of the training rows beside the tree.
    history : array or None
        Losses of the tree during its refinement, if it was refined.
    strength : float
        What penalties were multiplied by.
    cv_results : dict or None
        What was tried out to choose it, if it was chosen.
    """

    tree: TreeArrays
    features: tuple[FeatureInfo, ...]
    has_names: bool
    classes: tuple[np.ndarray, ...] | None
    criterion: str
    shrinkage: float
    summary: DataSummary
    history: np.ndarray | None = None
    strength: float = 1.0
    cv_results: dict[str, Any] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.tree.value.shape[1]

    @property
    def n_classes(self) -> list[int] | None:
        """Number of classes of each output; None for numbers."""
        return None if self.classes is None else [len(labels) for labels in self.classes]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]

    @property
    def sketches(self) -> Sequence[NodeSketch] | None:
        """How the training rows are spread over the nodes; None if there are several targets."""
        return self.tree.sketches

    def with_tree(self, tree: TreeArrays) -> FittedTree:
        """The same with another tree."""
        return replace(self, tree=tree)

    def read_table(self, X: Any, reader: str, needed: Iterable[int] | None = None) -> Table:
        """Read further rows, with the columns of the training table.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        reader : str
            Who reads them, for the messages.
        needed : iterable of int, optional
            The columns to read; by default all.
        """
        opened = open_table(X)
        check_columns(opened.names, opened.has_names, self.feature_names, self.has_names, reader)
        return encode_table(opened, self.features, needed)

    def read_targets(self, X: Any, y: Any) -> np.ndarray:
        """Targets of further rows: numbers, or the numbers of their classes."""
        targets = read_targets(y, self.classes is not None, self.n_outputs)
        if self.classes is not None:
            targets = number_classes(targets, self.classes)
        check_consistent_length(X, targets)
        return targets

    def sketch_rows(self, X: Any, y: Any) -> Sequence[NodeSketch] | None:
        """How further rows are spread over the nodes; None if they have several targets."""
        table = self.read_table(X, "this tree", self.tree.used_features)
        targets = self.read_targets(X, y)
        edges = self.summary.target_edges
        return sketch_nodes(self.tree, table, targets, self.n_classes, edges, n_threads=1)


def sketch_nodes(
    tree: TreeArrays,
    table: Table,
    targets: np.ndarray,
    n_classes: list[int] | None,
    target_edges: np.ndarray | None,
    n_threads: int,
) -> Sequence[NodeSketch] | None:
    """How rows are spread over the nodes of a tree; None if they have several targets."""
    if targets.shape[1] > 1:
        return None
    leaves = leaves_of(tree, table, n_threads)
    size = None if n_classes is None else n_classes[0]
    return sketch_tree(tree, leaves, table, targets[:, 0], size, target_edges, n_threads)


@runtime_checkable
class HoldsTree(Protocol):
    """What users hold: an estimator, as far as those below it need to know it."""

    def __fitted_tree__(self) -> FittedTree:
        """The fitted tree; an error if there is none yet."""


def fitted_tree(estimator: HoldsTree) -> FittedTree:
    """The tree of a fitted estimator; an error for anything else."""
    if isinstance(estimator, type) or not isinstance(estimator, HoldsTree):
        kind = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"estimator must be a fitted ShapeTreeClassifier or ShapeTreeRegressor, got {kind}"
        )
    return estimator.__fitted_tree__()
