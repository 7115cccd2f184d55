"""FittedForest: all that a forest's fit leaves behind, as one object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from shapetree._core.predictor import find_leaves
from shapetree._threads import threads_for
from shapetree.data._table import Table
from shapetree.tree._fitted import FittedTree
from shapetree.tree._fitted_model import FittedModel
from shapetree.tree._packed_trees import PackedTrees
from shapetree.tree._predictor import ROWS_TOGETHER


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedForest(FittedModel):
    """The trees of a forest, and what is known about the data they were fitted on."""

    kind: ClassVar[str] = "the forest"

    trees: PackedTrees  # which are unpacked when they are read
    seed: int  # by which rows and features were drawn
    contents: int  # a number that is the same for the same training rows
    oob_score: float | None = None  # score of out-of-bag predictions, if it was asked for

    def fitted_tree(self, number: int) -> FittedTree:
        """One of the trees for itself, without sketches."""
        common = {its.name: getattr(self, its.name) for its in fields(FittedModel)}
        return FittedTree(**common | {"trees": (self.trees[number],)})

    def leaves(self, table: Table, n_threads: int) -> np.ndarray:
        """The leaf of each row in each tree, (n_rows, n_trees)."""
        leaves = np.empty((table.n_rows, len(self.trees)), dtype=np.int32)
        n_threads = threads_for(table.n_rows, n_threads)
        for number, tree in enumerate(self.trees.packed):
            leaves[:, number] = find_leaves(table.values, tree.layout, n_threads)
        return leaves

    def nearest_tree(self, table: Table, n_threads: int) -> int:
        """Number of the tree whose predictions are nearest to the forest's, by squared distance."""
        mean, far = self.means(table, n_threads), []
        n_threads = threads_for(table.n_rows, n_threads)
        for tree in self.trees.packed:
            off = tree.value[find_leaves(table.values, tree.layout, n_threads)] - mean
            far.append(float(np.square(off).sum()))
        return int(np.argmin(far))

    def importances(self) -> np.ndarray:
        """Each feature's share of the impurity that splits remove, the mean of all trees."""
        each = [tree.feature_importances(len(self.features)) for tree in self.trees]
        mean = np.mean(each, axis=0)
        return np.asarray(mean / (mean.sum() or 1.0))

    def means(self, table: Table, n_threads: int) -> np.ndarray:
        """What trees predict on the mean, (n_rows, n_outputs, n_values)."""
        predicted = np.zeros((table.n_rows, *self.trees.packed[0].value.shape[1:]))
        for first, some in parts_of(table):
            mean = predicted[first : first + some.n_rows]
            threads = threads_for(some.n_rows, n_threads)
            for tree in self.trees.packed:
                mean += tree.value[find_leaves(some.values, tree.layout, threads)]
        predicted /= len(self.trees)
        return predicted


def parts_of(table: Table) -> Iterator[tuple[int, Table]]:
    """Some rows of a table at a time, and the number of the first of them."""
    for first in range(0, table.n_rows, ROWS_TOGETHER):
        last = min(first + ROWS_TOGETHER, table.n_rows)
        columns = [None if column is None else column[first:last] for column in table.columns]
        yield first, Table(last - first, table.features, columns, table.has_names)
