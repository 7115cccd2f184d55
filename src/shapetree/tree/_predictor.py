"""Send rows through a fitted tree."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix

from shapetree._core.predictor import TreeLayout, find_leaves
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable, FeatureBins
from shapetree.data._missing import MISSING_CODE
from shapetree.data._table import Table
from shapetree.tree._arrays import TreeArrays

# Rows whose values are made of bins at a time.
ROWS_TOGETHER = 2**16
# Trees do not change, and laying one out takes longer than sending a row through it.
_layouts: WeakKeyDictionary[TreeArrays, TreeLayout] = WeakKeyDictionary()


def leaves_of(tree: TreeArrays, table: Table, n_threads: int) -> np.ndarray:
    """Leaf of each row."""
    layout = _layouts.get(tree)
    if layout is None:
        layout = _layouts[tree] = TreeLayout(tree)
    return find_leaves(table.values, layout, threads_for(table.n_rows, n_threads))


def leaves_of_bins(
    tree: TreeArrays, table: Table, binned: BinnedTable, n_threads: int
) -> np.ndarray:
    """Leaf of each row, by its bins; the table needs values of features that the tree's pairs have.

    Bins and values tell the same of rows that the tree was grown on. Of others, a node may have
    seen none in a bin, and part it: then all values of the bin count as its least.
    """
    in_pairs = tree.features_of_pairs
    singles = {
        feature: (binned.columns.array(feature), _values_of_bins(binned.features[feature]))
        for feature in tree.used_features
        if feature not in in_pairs
    }
    leaves = np.empty(table.n_rows, dtype=np.int32)
    for start in range(0, table.n_rows, ROWS_TOGETHER):
        rows = slice(start, min(start + ROWS_TOGETHER, table.n_rows))
        columns: list[np.ndarray | None] = [None] * len(table.features)
        for feature in in_pairs:
            column = table.columns[feature]
            assert column is not None
            columns[feature] = column[rows]
        for feature, (bins, values) in singles.items():
            columns[feature] = values[bins[rows]]
        some = Table(rows.stop - start, table.features, columns)
        leaves[rows] = leaves_of(tree, some, n_threads)
    return leaves


def _values_of_bins(feature: FeatureBins) -> np.ndarray:
    """A value, or the code of the category, for each bin; that of the missing bin comes last."""
    if feature.low is None or feature.has_places:
        return np.append(np.arange(feature.n_bins, dtype=np.int32), np.int32(MISSING_CODE))
    return np.append(feature.low, np.nan)


def paths_to(tree: TreeArrays, leaves: np.ndarray) -> csr_matrix:
    """Indicator matrix of the nodes that each row passes, given its leaf."""
    length = tree.depth + 1
    start = np.concatenate([[0], np.cumsum(length)])
    nodes = np.concatenate([tree.path_to(node) for node in range(tree.node_count)])
    indptr = np.concatenate([[0], np.cumsum(length[leaves])])
    step = np.arange(indptr[-1]) - np.repeat(indptr[:-1], length[leaves])
    indices = nodes[np.repeat(start[leaves], length[leaves]) + step]
    return csr_matrix(
        (np.ones(len(indices), dtype=np.int64), indices, indptr),
        shape=(len(leaves), tree.node_count),
    )
