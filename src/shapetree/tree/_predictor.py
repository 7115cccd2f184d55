"""Send rows through a fitted tree."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from scipy.sparse import csr_matrix

from shapetree._core.predictor import TreeLayout, find_leaves
from shapetree._threads import threads_for
from shapetree.data._table import Table
from shapetree.tree._arrays import TreeArrays

# Trees do not change, and laying one out takes longer than to send a row through it.
_layouts: WeakKeyDictionary[TreeArrays, TreeLayout] = WeakKeyDictionary()


def leaves_of(tree: TreeArrays, table: Table, n_threads: int) -> np.ndarray:
    """Leaf of each row."""
    layout = _layouts.get(tree)
    if layout is None:
        layout = _layouts[tree] = TreeLayout(tree)
    return find_leaves(table.values, layout, threads_for(table.n_rows, n_threads))


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
