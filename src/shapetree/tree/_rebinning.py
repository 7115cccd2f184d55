"""Bins of rows that a tree was not grown on: none of them holds rows that the tree parts."""

from __future__ import annotations

import numpy as np

from shapetree._core.columns import Columns
from shapetree.data._binning import (
    MAX_BINNED_ROWS,
    MAX_BINS,
    BinnedTable,
    FeatureBins,
    bin_table,
    part_bins,
)
from shapetree.data._table import Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of


def bin_used_features(tree: TreeArrays, table: Table, n_threads: int) -> BinnedTable:
    """Bins of rows in the features that a tree uses, as a fit makes them; others have none."""
    used = tree.used_features
    some = Table(
        table.n_rows,
        tuple(table.features[feature] for feature in used),
        [table.columns[feature] for feature in used],
    )
    binned = bin_table(some, None, MAX_BINS, n_threads)
    features = [FeatureBins(0)] * len(table.features)
    columns: list[np.ndarray | None] = [None] * len(table.features)
    for place, feature in enumerate(used):
        features[feature], columns[feature] = binned.features[place], binned.columns.array(place)
    every = BinnedTable(tuple(features), Columns(columns, table.n_rows))
    if table.n_rows <= MAX_BINNED_ROWS:
        return fitting_bins(tree, table, every)
    # Bins were made of a sample: any row may lie between them.
    return part_bins(table, every, _all_thresholds(tree))


def _all_thresholds(tree: TreeArrays) -> dict[int, np.ndarray]:
    """Where nodes part ordered features, ascending."""
    singles = np.flatnonzero((tree.feature >= 0) & (tree.second_feature < 0)).tolist()
    found: dict[int, list[np.ndarray]] = {}
    for node in singles:
        if not np.isnan(tree.piece_upper[tree.pieces(node)]).any():
            upper = tree.piece_upper[tree.pieces(node)][:-1]
            found.setdefault(int(tree.feature[node]), []).append(upper)
    return {feature: np.unique(np.concatenate(each)) for feature, each in found.items()}


def fitting_bins(tree: TreeArrays, table: Table, binned: BinnedTable) -> BinnedTable:
    """Part bins where a threshold of the tree parts rows of its node in one bin.

    Rows that the tree was not grown on may lie on both sides.
    """
    leaves = leaves_of(tree, table, 1)
    thresholds: dict[int, list[float]] = {}
    for node in np.flatnonzero(tree.feature >= 0).tolist():
        feature, upper = int(tree.feature[node]), tree.piece_upper[tree.pieces(node)][:-1]
        bins = binned.features[feature]
        if np.isnan(upper).any() or bins.low is None or bins.high is None:
            continue  # pairs and categories
        within = np.searchsorted(bins.high, upper, side="right")
        for threshold, number in zip(upper, within, strict=True):
            if number < bins.n_bins and bins.low[number] <= threshold:
                rows = _rows_in_bin(tree, node, leaves, binned, feature, number)
                column = table.columns[feature]
                assert column is not None
                # A bin goes where its least value goes.
                if (column[rows] > threshold).any():
                    thresholds.setdefault(feature, []).append(float(threshold))
    return part_bins(
        table, binned, {feature: np.unique(found) for feature, found in thresholds.items()}
    )


def _rows_in_bin(
    tree: TreeArrays, node: int, leaves: np.ndarray, binned: BinnedTable, feature: int, number: int
) -> np.ndarray:
    """Rows of a node that are in one bin of a feature."""
    in_bin = np.flatnonzero(binned.columns.array(feature) == number)
    return in_bin[tree.is_at_or_below(node)[leaves[in_bin]]]
