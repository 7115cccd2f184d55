"""Training rows in memory or in files: how they are read, binned and held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from shapetree.data._batches import Batches, refuse_beside_batches
from shapetree.data._binning import BinnedTable, bin_table
from shapetree.data._labels import find_classes, read_targets
from shapetree.data._shares import ClassShares, ShareParts, parts_of
from shapetree.data._stored import StoredTable, read_stored
from shapetree.data._sums import local_numbers
from shapetree.data._table import Table, read_table
from shapetree.data._targets import Goal
from shapetree.fit._parameters import Parameters, path_of
from shapetree.fit._row_hashes import TargetCodes, hashes_of_rows
from shapetree.fit._training_rows import (
    Backend,
    BinnedRows,
    RemoteRows,
    TrainingRows,
    check_spread,
    check_total_importance,
    check_weights,
    factors_of_classes,
    importance_of,
    row_weights,
    total_of,
)
from shapetree.grow._local import LocalRows
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedForest, in_blocks
from shapetree.tree._predictor import leaves_of_bins
from shapetree.tree._sketcher import SketchedPart, SketchedRows, part_of_shares, sole_target


class LocalBackend:
    """Rows in memory; see `Backend`."""

    def read(
        self, X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
    ) -> TrainingRows:
        """Read a table, targets or shares of classes, and weights."""
        table = read_table(X, parameters.categorical_features)
        if isinstance(y, ClassShares):
            return self._with_shares(table, X, y, sample_weight, parameters, has_classes)
        targets, classes = read_targets(y, has_classes), None
        check_consistent_length(X, targets)
        if has_classes:
            classes, targets = find_classes(targets)
        else:
            check_spread(targets, parameters.objective)
        about = targets, classes, row_weights(X, sample_weight)
        importance = importance_of(*about, parameters.class_weight)
        return TrainingRows(table, *about, backend=self).weighed(importance)

    def _with_shares(
        self,
        table: Table,
        X: Any,
        shares: ClassShares,
        sample_weight: Any,
        parameters: Parameters,
        has_classes: bool,
    ) -> TrainingRows:
        """Rows with shares of classes; if each is of a single class, these are its label."""
        if not has_classes:
            raise ValueError("y holds shares of classes, which need a classifier")
        check_consistent_length(X, shares)
        weights, classes = row_weights(X, sample_weight), (shares.classes,)
        about = shares.likeliest, classes, weights
        rows = TrainingRows(table, *about, backend=self)
        if shares.is_certain:
            return rows.weighed(importance_of(*about, parameters.class_weight))
        parts, factors, importance = parts_of(shares.values), None, None
        if parameters.class_weight is not None:
            ones = np.ones(len(shares)) if weights is None else weights
            amounts = parts.amounts(shares.values, ones)
            numbers = local_numbers(parts.label[:, None], amounts)
            (factors,) = factors_of_classes(classes, numbers, parameters.class_weight)
            if not (factors[parts.label] > 0).all():
                raise ValueError(
                    "class_weight must be positive for every class that y has shares of"
                )
            importance = shares.values @ factors
            total = importance if weights is None else weights * importance
            check_total_importance(bool(total.any()), total_of(total))
        return rows.weighed(importance).in_parts(shares, factors)

    def bin(self, rows: TrainingRows, max_bins: int | None, n_threads: int) -> BinnedTable:
        """Bin the rows."""
        return bin_table(rows.table, rows.weights, max_bins, n_threads)

    def hashes(self, rows: BinnedRows, target_codes: TargetCodes) -> np.ndarray:
        """A hash of each row."""
        return hashes_of_rows(rows.binned, rows.rows.targets, rows.rows.counts, target_codes)

    def hold(self, rows: BinnedRows, goal: Goal, n_threads: int) -> LocalRows:
        """A holder of the rows."""
        return LocalRows(rows.rows.table, rows.binned, goal, n_threads, coarse=rows.coarse)

    def leaves(self, rows: BinnedRows, tree: TreeArrays, n_threads: int) -> np.ndarray:
        """The leaf of each row."""
        return leaves_of_bins(tree, rows.rows.table, rows.binned, n_threads)

    def leaves_in_forest(
        self, table: Table, forest: FittedForest, n_threads: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Leaves of rows in all trees."""
        for first, some in in_blocks(table):
            yield first, forest.leaves(some, n_threads)

    def to_sketch(self, rows: BinnedRows, tree: TreeArrays, n_threads: int) -> SketchedRows:
        """The rows, ready to be counted."""
        about, binned = rows.rows, rows.binned
        table = about.table.with_values(tree.features_of_pairs)
        if about.row_of is not None:
            parts = ShareParts(about.row_of, about.targets[:, 0])
            counted = about.counts, about.weights, n_threads
            return SketchedRows.of(part_of_shares(tree, table, binned, parts, *counted))
        y = sole_target(about.targets, about.classes is not None)
        assert y is not None
        counts = None if about.counts is None else about.counts.astype(np.int32)
        return SketchedRows.of(
            SketchedPart(tree, table, binned, y, counts, about.weights, n_threads=n_threads)
        )


class StoredBackend(LocalBackend):
    """Rows in files or other batches, whose bins and targets are held as those in memory are."""

    def read(
        self, X: Batches, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
    ) -> TrainingRows:
        """Read batches, which bring their targets and weights along."""
        refuse_beside_batches(y=y, sample_weight=sample_weight)
        table, targets, classes, weights = read_stored(
            X, parameters.categorical_features, has_classes, parameters.verbose
        )
        if classes is None:
            check_spread(targets, parameters.objective)
        check_weights(weights)
        importance = importance_of(targets, classes, weights, parameters.class_weight)
        return TrainingRows(table, targets, classes, weights, backend=self).weighed(importance)

    def leaves_in_forest(
        self, table: Table, forest: FittedForest, n_threads: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Leaves of rows in all trees, batch by batch."""
        assert isinstance(table, StoredTable)
        for first, some in table.read(forest.used_features, "out-of-bag predictions"):
            yield first, forest.leaves(some, n_threads)


LOCAL, STORED = LocalBackend(), StoredBackend()


def backend_of(X: Any) -> Backend:
    """Where the rows are that a user gives to learn from."""
    if isinstance(X, RemoteRows):
        return X.backend
    return STORED if isinstance(X, Batches) else LOCAL


def training_rows(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> TrainingRows:
    """Rows to learn from, read where they are."""
    if not isinstance(parameters.strength, Real):
        path_of(parameters.strength)  # which says so if it makes no sense
    return backend_of(X).read(X, y, sample_weight, parameters, has_classes)


def in_memory(rows: TrainingRows) -> TrainingRows:
    """The same rows, with everything that is known of them in this process."""
    return replace(rows.gather(), table=rows.table.in_memory(), backend=LOCAL)
