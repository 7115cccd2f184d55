"""A tree under refinement: nodes that change, and where the training rows are in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.routing import Router
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import Goal
from shapetree.grow._nodes import Numbering, TreeNode, nodes_of, rows_by_node, tree_of
from shapetree.refine._options import RefineOptions
from shapetree.refine._splits import BinSplit, PairSplit, Split, shape_of_split, split_of
from shapetree.tree._arrays import TreeArrays


@dataclass(eq=False)
class WorkingNode(TreeNode):
    """A node whose split stands in for its shape function.

    Attributes
    ----------
    split : Split or None
        None for a leaf.
    settled_at : float or None
        The price at which the node was found to be the best it can be; None if something has
        changed since then.
    """

    split: Split | None = None
    settled_at: float | None = None

    @property
    def below(self) -> list[WorkingNode]:
        """The children."""
        return cast("list[WorkingNode]", self.children)

    def become(self, other: WorkingNode) -> None:
        """Take the place of a node below."""
        self.split, self.children, self.settled_at = other.split, other.children, None


class WorkingTree:
    """A tree whose splits can be changed, over binned training rows.

    Parameters
    ----------
    tree : TreeArrays
    binned : BinnedTable
        Bins of the training rows; no threshold of the tree may part rows of a node in one bin.
    columns : Columns
        The training rows' own values, which shape functions of pairs read.
    goal : Goal
    n_threads : int

    Attributes
    ----------
    numbering : Numbering
    router : Router
        Sends rows through the numbered nodes.
    leaves : int array of shape (n_rows,)
        The leaf that each row is in.
    """

    def __init__(
        self, tree: TreeArrays, binned: BinnedTable, columns: Columns, goal: Goal, n_threads: int
    ) -> None:
        self._binned = binned
        self._columns = columns
        self._goal = goal
        self._n_threads = n_threads
        nodes = [WorkingNode(node.statistics, node.shape) for node in nodes_of(tree)]
        for number, node in enumerate(nodes):
            node.children = [nodes[child] for child in tree.children(number)]
            if node.shape is not None:
                node.split = split_of(node.shape, binned, columns)
        self._root = nodes[0]
        self._number()
        rows = np.arange(binned.n_rows, dtype=np.int32)
        self.leaves = self.router.leaves(
            rows, np.zeros_like(rows), threads_for(len(rows), n_threads)
        )
        self.tidy()

    def _number(self) -> None:
        """Number the nodes anew; leaves keep their old numbers until they are renumbered."""
        self.numbering = Numbering.of(self._root)
        splits = [node.split for node in self.nodes]
        singles = [split if isinstance(split, BinSplit) else None for split in splits]
        self.router = Router(
            self._binned.columns,
            self.numbering.first_child,
            self.numbering.n_branches,
            np.array([split.feature if split else -1 for split in singles], dtype=np.int32),
            [split.branch_of_bin if split else None for split in singles],
            [split.cuts if isinstance(split, PairSplit) else None for split in splits],
        )

    def tidy(self) -> None:
        """Remove what no row reaches, or what has one way only, and number the nodes anew.

        `leaves` must tell where the rows are, with the old numbers.
        """
        old = self.nodes
        n_rows = self.numbering.summed(np.bincount(self.leaves, minlength=len(old)))
        size_of = dict(zip(map(id, old), n_rows.tolist(), strict=True))
        # A leaf may take its parent's place, and that its own parent's.
        place = {id(node): node for node in old}
        for node in reversed(old):
            if node.children and size_of[id(node)] > 0:
                only = _drop_empty_branches(node, [size_of[id(c)] for c in node.children])
                if only is not None:
                    place[id(only)] = node
        self._number()
        number_of = {id(node): number for number, node in enumerate(self.nodes)}
        new = np.full(len(old), -1, dtype=np.int32)
        for number, node in enumerate(old):
            while place[id(node)] is not node:
                node = place[id(node)]
            new[number] = number_of.get(id(node), -1)
        self.leaves = new[self.leaves]

    def send(self, rows: np.ndarray, node: int, branches: np.ndarray) -> None:
        """Send rows of a node down some branches; the nodes below must be as they were numbered."""
        start = (self.numbering.first_child[node] + branches).astype(np.int32)
        self.leaves[rows] = self.router.leaves(rows, start, threads_for(len(rows), self._n_threads))

    def keeps_limits(self, start: int, options: RefineOptions) -> bool:
        """Whether a node and those below it, where rows reach them, have the rows they must."""
        numbering, weights = self.numbering, self._goal.weights
        first = int(numbering.depth[start])
        is_below = numbering.above(first) == start
        for depth in range(first, int(numbering.depth.max()) + 1):
            at = np.where(is_below, numbering.above(depth), -1)[self.leaves]
            for number, rows in rows_by_node(at, len(self.nodes)).items():
                split = self.nodes[number].split
                weight = len(rows) if weights is None else weights[rows].sum()
                if len(rows) < options.min_samples_leaf or weight < options.min_weight_leaf:
                    return False
                if split is None:
                    continue
                if len(rows) < options.min_samples_split or (
                    split.extra_parts > 0
                    and split.smallest_segment(self._binned, rows) < options.min_segment_rows
                ):
                    return False
        return True

    @property
    def nodes(self) -> list[WorkingNode]:
        """The nodes, as they are numbered."""
        return cast("list[WorkingNode]", self.numbering.nodes)

    @property
    def n_parts(self) -> np.ndarray:
        """Complexity from each node on: branches beyond the first, and extra parts."""
        own = [
            node.split.extra_parts + len(node.children) - 1 if node.split else 0.0
            for node in self.nodes
        ]
        return self.numbering.summed(np.array(own))

    def rows_of_nodes(self) -> list[np.ndarray]:
        """Rows of every node."""
        rows: list[np.ndarray] = [np.empty(0, dtype=np.int32)] * len(self.nodes)
        for depth in range(int(self.numbering.depth.max()) + 1):
            at = self.numbering.above(depth)[self.leaves]
            for node, here in rows_by_node(at, len(self.nodes)).items():
                rows[node] = here
        return rows

    def update_shapes(self) -> bool:
        """Give every node the shape function that its rows now call for.

        Where no row is, this may move thresholds; splits follow, and the nodes above are open
        again. Returns whether any split has changed.
        """
        changed = []
        weights = self._goal.weights
        for number, rows in enumerate(self.rows_of_nodes()):
            node = self.nodes[number]
            node.shape = None
            if node.split is None:
                continue
            node.shape = shape_of_split(
                node.split,
                len(node.children),
                rows,
                None if weights is None else weights[rows],
                self._binned,
            )
            split = split_of(node.shape, self._binned, self._columns)
            if not split.equals(node.split):
                node.split = split
                changed.append(number)
        if changed:
            self.unsettle(changed)
            self._number()
        return bool(changed)

    def unsettle(self, changed: list[int]) -> None:
        """Note that the splits of some nodes have changed, for all nodes above and below."""
        parent, nodes = self.numbering.parent, self.nodes
        for number in changed:
            for node in nodes[number].breadth_first():
                cast("WorkingNode", node).settled_at = None
            while number >= 0:
                nodes[number].settled_at = None
                number = int(parent[number])

    def as_arrays(self) -> TreeArrays:
        """The tree, with the statistics of its rows; shapes must be up to date."""
        for node, rows in zip(self.nodes, self.rows_of_nodes(), strict=True):
            node.statistics = self._goal.describe(rows)
        return tree_of(self._root, self._goal.impurity_scale)


def _drop_empty_branches(node: WorkingNode, sizes: list[int]) -> WorkingNode | None:
    """Remove the children that no row reaches; a single one left takes the node's place.

    Returns the child whose place is now the node's.
    """
    kept = [branch for branch, size in enumerate(sizes) if size > 0]
    if len(kept) == len(sizes):
        return None
    if len(kept) == 1:
        only = node.below[kept[0]]
        node.become(only)
        return only
    assert node.split is not None
    largest = kept.index(int(np.argmax(sizes)))
    node.split = node.split.keeping(kept, largest)
    node.children = [node.children[branch] for branch in kept]
    node.settled_at = None
    return None
