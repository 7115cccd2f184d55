"""Refine a tree: from its arrays, over its training rows, to new arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.rows import NodeRows
from shapetree.data._binning import BinnedTable, part_bins
from shapetree.data._table import Table
from shapetree.data._targets import Goal
from shapetree.grow._nodes import shape_of
from shapetree.refine._loss import loss_of
from shapetree.refine._options import RefineOptions
from shapetree.refine._pairs import MakeSearches
from shapetree.refine._rows import RefinedRows
from shapetree.refine._splits import split_of
from shapetree.refine._tao import Refiner
from shapetree.refine._working import WorkingNode, WorkingTree
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of
from shapetree.tree._shape import ShapeFunction


def refine(
    tree: TreeArrays,
    table: Table,
    binned: BinnedTable,
    goal: Goal,
    options: RefineOptions,
    make_searches: MakeSearches | None,
    n_threads: int,
    report: Callable[[int, float], None],
) -> tuple[TreeArrays, list[float]]:
    """Refine a tree by tree alternating optimisation.

    Parameters
    ----------
    tree : TreeArrays
    table : Table
        The rows to refine for.
    binned : BinnedTable
        Their bins; no threshold of the tree may part rows of a node in one bin, see `fitting_bins`.
    goal : Goal
    options : RefineOptions
    make_searches : function or None
        Makes the searches of single features and of pairs for some goal; None for no pairs.
    n_threads : int
    report : function
        Told each sweep's number, and the objective after it.

    Returns
    -------
    tree : TreeArrays
        Its statistics are those of the table's rows.
    history : list of float
        The objective before the first sweep, and after each.
    """
    columns = Columns(table.columns, table.n_rows)
    loss = loss_of(goal)
    rows = RefinedRows(
        binned,
        columns,
        goal,
        loss.rows,
        NodeRows(table.n_rows),
        tree.node_count,
        max(2, int(tree.n_branches.max())),
        n_threads,
    )
    nodes = [
        WorkingNode(
            None if shape is None else split_of(shape, binned, columns), list(tree.children(number))
        )
        for number, shape in enumerate(shape_of(tree, node) for node in range(tree.node_count))
    ]
    working = WorkingTree(nodes, rows, goal.impurity_scale)
    history = Refiner(working, rows, loss, options, make_searches, n_threads, report).refine()
    return working.as_arrays(), history


def fitting_bins(tree: TreeArrays, table: Table, binned: BinnedTable) -> BinnedTable:
    """Part bins where a threshold of the tree parts rows of its node in one bin.

    Rows that the tree was not grown on may lie on both sides.
    """
    leaves = leaves_of(tree, table, 1)
    thresholds: dict[int, list[float]] = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        shape = shape_of(tree, node)
        if isinstance(shape, ShapeFunction) and shape.upper is not None:
            bins = binned.features[shape.feature]
            assert bins.low is not None
            assert bins.high is not None
            within = np.searchsorted(bins.high, shape.upper[:-1], side="right")
            for threshold, number in zip(shape.upper[:-1], within, strict=True):
                if number < bins.n_bins and bins.low[number] <= threshold:
                    rows = _rows_in_bin(tree, node, leaves, binned, shape.feature, number)
                    column = table.columns[shape.feature]
                    assert column is not None
                    is_above = column[rows] > threshold
                    if is_above.any() and not is_above.all():
                        thresholds.setdefault(shape.feature, []).append(float(threshold))
    return part_bins(
        table, binned, {feature: np.unique(found) for feature, found in thresholds.items()}
    )


def _rows_in_bin(
    tree: TreeArrays, node: int, leaves: np.ndarray, binned: BinnedTable, feature: int, number: int
) -> np.ndarray:
    """Rows of a node that are in one bin of a feature."""
    in_bin = np.flatnonzero(binned.columns.array(feature) == number)
    is_below = np.zeros(tree.node_count, dtype=bool)
    is_below[node] = True
    for child in range(node + 1, tree.node_count):
        is_below[child] = is_below[tree.parent[child]]
    return in_bin[is_below[leaves[in_bin]]]
