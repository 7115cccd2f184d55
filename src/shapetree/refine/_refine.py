"""Refine a tree over its training rows, as it has grown or from its arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shapetree.data._binning import FeatureBins
from shapetree.grow._candidates import CandidateOptions
from shapetree.grow._joined_rows import JoinedRows
from shapetree.grow._local import LocalRows
from shapetree.grow._nodes import GrownTree, TreeNode
from shapetree.grow._pairs import PairFrame
from shapetree.grow._row_holder import Rows
from shapetree.grow._splits import PairSplit
from shapetree.refine._joined_refined_rows import JoinedRefinedRows
from shapetree.refine._loss import loss_of
from shapetree.refine._options import RefineOptions
from shapetree.refine._pair_step import PairRefitter
from shapetree.refine._refined_rows import LocalRefinedRows, RefinedRows
from shapetree.refine._split_costs import split_of, without_gaps
from shapetree.refine._tao import Refiner
from shapetree.refine._working_tree import WorkingNode, WorkingTree
from shapetree.tree._arrays import TreeArrays

# How pairs are searched.
PairTools = tuple[PairFrame, CandidateOptions]
# Rows from which on a cache does not hold a few columns of them.
MANY_ROWS = 2**16


def refine(
    tree: GrownTree | TreeArrays,
    rows: Rows,
    options: RefineOptions,
    pairs: PairTools | None,
    report: Callable[[int, float], None],
    owns_bins: bool = False,
    order: np.ndarray | None = None,
) -> tuple[TreeNode, list[float]]:
    """Refine a tree by tree alternating optimisation.

    Parameters
    ----------
    tree : GrownTree or TreeArrays
        As it has grown, which gives up its splits; or a finished one, no threshold of which may
        part rows of a node in one bin, see `shapetree.tree._rebinning.fitting_bins`.
    rows : Rows
        Rows of these nodes, or all at the root of a finished tree; they move as splits change.
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
    has_grown = isinstance(tree, GrownTree)
    bins = rows.binned.features
    nodes = _grown_nodes(tree, bins) if isinstance(tree, GrownTree) else _nodes_of(tree, bins)
    loss = loss_of(rows.goal)
    max_branches = max(2, *(len(node.children) for node in nodes))
    refined: RefinedRows
    if isinstance(rows, JoinedRows):
        refined = JoinedRefinedRows(rows, len(nodes), max_branches)
    else:
        assert isinstance(rows, LocalRows)
        refined = LocalRefinedRows(rows, len(nodes), max_branches)
    working = WorkingTree(nodes, refined, has_grown, options)
    reads_values = pairs is not None or any(isinstance(node.split, PairSplit) for node in nodes)
    if owns_bins and not reads_values and rows.n_rows >= MANY_ROWS:
        refined.reorder_rows()
    if not has_grown or pairs is not None:
        # Splits on single features that have just grown know their own bins without rows.
        working.settle_shapes()
    refitter = None if pairs is None else PairRefitter(*pairs, options.copies)
    history = Refiner(working, refined, loss, options, refitter, report, order).refine()
    working.join_small_leaves(options.least_rows)
    return working.finished(), history


def _grown_nodes(grown: GrownTree, bins: tuple[FeatureBins, ...]) -> list[WorkingNode]:
    """Nodes of a tree as it has grown, which gives up its splits."""
    nodes = [WorkingNode() for _ in range(grown.n_nodes)]
    weight = grown.statistics.weight
    for number, split in enumerate(grown.splits):
        if split is not None:
            children = grown.children(number)
            largest = int(weight[children.start : children.stop].argmax())
            nodes[number].split = without_gaps(split, largest, bins)
            nodes[number].children = list(children)
            nodes[number].pairs = grown.pairs.get(number)
            grown.splits[number] = None  # which may take much memory
    return nodes


def _nodes_of(tree: TreeArrays, bins: tuple[FeatureBins, ...]) -> list[WorkingNode]:
    """Nodes of a finished tree."""
    shapes = [tree.shape(node) for node in range(tree.node_count)]
    return [
        WorkingNode(None if shape is None else split_of(shape, bins), list(tree.children(node)))
        for node, shape in enumerate(shapes)
    ]
