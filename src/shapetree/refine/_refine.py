"""Refine a tree over its training rows, as it has grown or from its arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shapetree.grow._candidates import CandidateOptions
from shapetree.grow._joined import JoinedRows
from shapetree.grow._local import LocalRows
from shapetree.grow._nodes import GrownTree, TreeNode, shape_of
from shapetree.grow._pairs import PairFrame
from shapetree.grow._rows import HeldRows
from shapetree.grow._splits import PairSplit
from shapetree.refine._joined import JoinedRefinedRows
from shapetree.refine._loss import loss_of
from shapetree.refine._options import RefineOptions
from shapetree.refine._pairs import PairRefitter
from shapetree.refine._rows import LocalRefinedRows, RefinedRows
from shapetree.refine._split_costs import split_of, without_gaps
from shapetree.refine._tao import Refiner
from shapetree.refine._working_tree import WorkingNode, WorkingTree
from shapetree.tree._arrays import TreeArrays

# How pairs are searched.
PairTools = tuple[PairFrame, CandidateOptions]
# Rows from which on a cache does not hold a few columns of them.
MANY_ROWS = 2**16


def refine(
    grown: GrownTree,
    rows: HeldRows,
    options: RefineOptions,
    pairs: PairTools | None,
    report: Callable[[int, float], None],
    owns_bins: bool = False,
    order: np.ndarray | None = None,
) -> tuple[TreeNode, list[float]]:
    """Refine a grown tree by tree alternating optimisation.

    Parameters
    ----------
    grown : GrownTree
        Which gives up its splits.
    rows : HeldRows
        Rows of these nodes, which move as the splits change.
    options : RefineOptions
    pairs : tuple of PairFrame and CandidateOptions, or None
        How pairs are searched; None for no pairs.
    report : function
        Called with each sweep's number, and the objective after it.
    owns_bins : bool
        Whether nothing else reads the rows' bins, so that they can be moved to other places.
    order : int array, optional
        Which of equally good features comes first.

    Returns
    -------
    root : TreeNode
        Of the refined tree, with shape functions and the statistics of the rows.
    history : list of float
        The objective before the first sweep, and after each.
    """
    nodes = [WorkingNode() for _ in range(grown.n_nodes)]
    weight = grown.statistics.weight
    for number, split in enumerate(grown.splits):
        if split is not None:
            children = grown.children(number)
            largest = int(weight[children.start : children.stop].argmax())
            nodes[number].split = without_gaps(split, largest, rows.binned.features)
            nodes[number].children = list(children)
            nodes[number].pairs = grown.pairs.get(number)
            grown.splits[number] = None  # which may take much memory
    return _refine(nodes, rows, options, pairs, report, owns_bins, True, order)


def refine_tree_arrays(
    tree: TreeArrays,
    rows: HeldRows,
    options: RefineOptions,
    pairs: PairTools | None,
    report: Callable[[int, float], None],
    owns_bins: bool = False,
    order: np.ndarray | None = None,
) -> tuple[TreeNode, list[float]]:
    """Refine a finished tree for rows that are all at its root, see `refine`.

    No threshold of the tree may part rows of a node in one bin, see
    `shapetree.tree._rebinning.fitting_bins`.
    """
    shapes = [shape_of(tree, node) for node in range(tree.node_count)]
    nodes = [
        WorkingNode(
            None if shape is None else split_of(shape, rows.binned.features),
            list(tree.children(node)),
        )
        for node, shape in enumerate(shapes)
    ]
    return _refine(nodes, rows, options, pairs, report, owns_bins, False, order)


def _refine(
    nodes: list[WorkingNode],
    rows: HeldRows,
    options: RefineOptions,
    pairs: PairTools | None,
    report: Callable[[int, float], None],
    owns_bins: bool,
    is_sent: bool,
    order: np.ndarray | None,
) -> tuple[TreeNode, list[float]]:
    loss = loss_of(rows.goal)
    max_branches = max(2, *(len(node.children) for node in nodes))
    about = loss.rows, len(nodes), max_branches
    refined: RefinedRows
    if isinstance(rows, JoinedRows):
        refined = JoinedRefinedRows(rows, *about)
    else:
        assert isinstance(rows, LocalRows)
        refined = LocalRefinedRows(rows, *about)
    tree = WorkingTree(nodes, refined, is_sent, options)
    reads_values = pairs is not None or any(isinstance(node.split, PairSplit) for node in nodes)
    if owns_bins and not reads_values and rows.n_rows >= MANY_ROWS:
        loss = loss_of(refined.reorder_rows())
        refined.leaf_losses = loss.rows
    if not is_sent or pairs is not None:
        # Splits on single features that have just grown know their own bins without rows.
        tree.settle_shapes()
    refitter = None if pairs is None else PairRefitter(*pairs, options.copies)
    history = Refiner(tree, refined, loss, options, refitter, report, order).refine()
    tree.join_small_leaves(options.least_rows)
    return tree.finished(), history
