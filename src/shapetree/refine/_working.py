"""A tree under refinement: nodes that change, and where the training rows are in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np

from shapetree._binning import BinnedTable
from shapetree._core.columns import Columns
from shapetree._core.routing import Router
from shapetree._histograms import threads_for
from shapetree._nodes import TreeNode, nodes_of, tree_of
from shapetree._targets import Goal
from shapetree._tree import TreeArrays
from shapetree.refine._splits import BinSplit, PairSplit, Split, shape_of_split, split_of


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

    @property
    def n_parts(self) -> float:
        """Complexity of the tree from here on: branches beyond the first and extra parts."""
        if self.split is None:
            return 0.0
        parts = self.split.extra_parts + len(self.children) - 1
        return parts + sum(child.n_parts for child in self.below)


@dataclass(frozen=True)
class Routes:
    """The tree at one moment: its nodes numbered breadth first, and every row's leaf."""

    nodes: list[WorkingNode]
    first_child: np.ndarray
    parent: np.ndarray
    depth: np.ndarray
    router: Router
    leaves: np.ndarray

    def nodes_at(self, depth: int) -> np.ndarray:
        """The node at some depth above each node, or itself; -1 where there is none."""
        above = np.full(len(self.nodes), -1, dtype=np.int32)
        for number, own_depth in enumerate(self.depth):
            if own_depth >= depth:
                above[number] = number if own_depth == depth else above[self.parent[number]]
        return above

    def rows_by_node(self, at: np.ndarray) -> dict[int, np.ndarray]:
        """Rows at each node, ascending, given the node (or -1) that each row is at."""
        kind = np.int16 if len(self.nodes) < 2**15 else np.int32
        order = np.argsort(at.astype(kind), kind="stable").astype(np.int32)
        counts = np.bincount(at + 1, minlength=len(self.nodes) + 1)
        stops = np.cumsum(counts)
        return {
            int(node): order[stops[node] : stops[node + 1]] for node in np.flatnonzero(counts[1:])
        }


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
        self.root = nodes[0]
        self.routes = self._find_routes()
        self.tidy()

    @property
    def n_parts(self) -> float:
        """Complexity of the whole tree."""
        return self.root.n_parts

    def _find_routes(self) -> Routes:
        nodes, parent, depth = [self.root], [-1], [0]
        for number, node in enumerate(nodes):
            nodes.extend(node.below)
            parent.extend([number] * len(node.children))
            depth.extend([depth[number] + 1] * len(node.children))
        n_branches = np.array([len(node.children) for node in nodes], dtype=np.int32)
        first_child = (1 + np.cumsum(n_branches) - n_branches).astype(np.int32)
        splits = [node.split for node in nodes]
        singles = [split if isinstance(split, BinSplit) else None for split in splits]
        router = Router(
            self._binned.columns,
            first_child,
            n_branches,
            np.array([split.feature if split else -1 for split in singles], dtype=np.int32),
            [split.branch_of_bin if split else None for split in singles],
            [split.cuts if isinstance(split, PairSplit) else None for split in splits],
        )
        n_threads = threads_for(self._binned.n_rows, self._n_threads)
        return Routes(
            nodes, first_child, np.array(parent), np.array(depth), router, router.leaves(n_threads)
        )

    def tidy(self) -> None:
        """Bring the routes up to date and remove what no row reaches, or what has one way only."""
        self.routes = self._find_routes()
        weight = self._weights_of_nodes()
        if (weight > 0).all():
            return
        weight_of = dict(zip(map(id, self.routes.nodes), weight.tolist(), strict=True))
        for node in reversed(self.routes.nodes):
            if weight_of[id(node)] > 0:
                _drop_empty_branches(node, [weight_of[id(child)] for child in node.children])
        self.routes = self._find_routes()

    def _weights_of_nodes(self) -> np.ndarray:
        routes = self.routes
        weight = np.bincount(routes.leaves, self._goal.weights, minlength=len(routes.nodes)) * 1.0
        for number in range(len(routes.nodes) - 1, 0, -1):
            weight[routes.parent[number]] += weight[number]
        return weight

    def sizes_of_leaves(self, node: WorkingNode, split: Split) -> tuple[np.ndarray, np.ndarray]:
        """Rows of each leaf that has any, and their weight, if a node had some split."""
        before, node.split = node.split, split
        leaves = self._find_routes().leaves
        node.split = before
        n_rows, weight = np.bincount(leaves), np.bincount(leaves, self._goal.weights)
        return n_rows[n_rows > 0], weight[n_rows > 0]

    def rows_of_nodes(self) -> list[np.ndarray]:
        """Rows of every node."""
        rows: list[np.ndarray] = [np.empty(0, dtype=np.int32)] * len(self.routes.nodes)
        for depth in range(int(self.routes.depth.max()) + 1):
            at = self.routes.nodes_at(depth)[self.routes.leaves]
            for node, rows_here in self.routes.rows_by_node(at).items():
                rows[node] = rows_here
        return rows

    def update_shapes(self) -> list[np.ndarray]:
        """Give every node the shape function that its rows now call for; returns these rows.

        Where no row is, this may move thresholds, so splits follow.
        """
        rows = self.rows_of_nodes()
        for node, rows_here in zip(self.routes.nodes, rows, strict=True):
            node.shape = None
            if node.split is not None:
                weights = self._goal.weights
                node.shape = shape_of_split(
                    node.split,
                    len(node.children),
                    rows_here,
                    None if weights is None else weights[rows_here],
                    self._binned,
                )
                node.split = split_of(node.shape, self._binned, self._columns)
        self.routes = self._find_routes()
        return rows

    def unsettle(self, changed: list[int]) -> None:
        """Note that the splits of some nodes have changed, for all nodes above and below."""
        parent, nodes = self.routes.parent, self.routes.nodes
        for number in changed:
            for node in nodes[number].breadth_first():
                cast("WorkingNode", node).settled_at = None
            while number >= 0:
                nodes[number].settled_at = None
                number = int(parent[number])

    def as_arrays(self) -> TreeArrays:
        """The tree, with the statistics of its rows."""
        rows = self.update_shapes()
        for node, rows_here in zip(self.routes.nodes, rows, strict=True):
            node.statistics = self._goal.describe(rows_here)
        return tree_of(self.root, self._goal.impurity_scale)


def _drop_empty_branches(node: WorkingNode, weights: list[float]) -> None:
    """Remove the children that no row reaches; a single one left takes the node's place."""
    kept = [branch for branch, weight in enumerate(weights) if weight > 0]
    if len(kept) == len(weights):
        return
    if len(kept) == 1:
        node.become(node.below[kept[0]])
        return
    assert node.split is not None
    largest = kept.index(int(np.argmax(weights)))
    node.split = node.split.keeping(kept, largest)
    node.children = [node.children[branch] for branch in kept]
    node.settled_at = None
