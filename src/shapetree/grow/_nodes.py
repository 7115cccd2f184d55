"""Nodes of a tree while it grows, and as objects that are refined or pruned."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from shapetree._core.criterion import NodeStatistics
from shapetree._core.pieces import pieces_of_splits
from shapetree.data._binning import FeatureBins
from shapetree.data._statistics import Statistics
from shapetree.grow._pair_options import PairList
from shapetree.grow._splits import Split, shape_of_split
from shapetree.tree._arrays import TreeArrays, links_of
from shapetree.tree._shape import PairShape, ShapeFunction, flatten_shapes, without_pairs
from shapetree.tree._sketch import NodeSketch


@dataclass(eq=False, slots=True)
class TreeNode:
    """A node and, by its children, the tree below it; a leaf has neither shape nor children."""

    statistics: NodeStatistics
    shape: ShapeFunction | PairShape | None = None
    children: list[TreeNode] = field(default_factory=list)
    sketch: NodeSketch | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children

    def become_leaf(self) -> None:
        """Cut off all that is below."""
        self.shape = None
        self.children = []
        self.sketch = None if self.sketch is None else self.sketch.as_leaf()

    def breadth_first(self) -> list[TreeNode]:
        """The node and all below it, level by level."""
        nodes = [self]
        for node in nodes:
            nodes += node.children
        return nodes


@dataclass(frozen=True, eq=False)
class Level:
    """Nodes of one depth.

    Attributes
    ----------
    numbers : int32 array of shape (n_nodes,)
        By which rows know them.
    statistics : Statistics
    depth : int
    tree : int array of shape (n_nodes,)
        Which tree each is a node of, ascending, where several grow together.
    own : int array of shape (n_nodes,)
        The number that each has if its tree grows alone.
    """

    numbers: np.ndarray
    statistics: Statistics
    depth: int
    tree: np.ndarray
    own: np.ndarray

    @classmethod
    def joined(cls, levels: Sequence[Level]) -> Level:
        """The nodes of several, one after another; all have the same depth."""
        if len(levels) == 1:
            return levels[0]
        names = "numbers", "tree", "own"
        numbers, tree, own = (
            np.concatenate([getattr(level, name) for level in levels]) for name in names
        )
        statistics = Statistics.joined([level.statistics for level in levels])
        return cls(numbers, statistics, levels[0].depth, tree, own)

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, nodes: np.ndarray | slice) -> Level:
        """Some of the nodes."""
        return Level(
            self.numbers[nodes],
            self.statistics.take(nodes),
            self.depth,
            self.tree[nodes],
            self.own[nodes],
        )


class GrownTree:
    """A tree as it grows, or several that grow together.

    Nodes are numbers: the roots come first, and siblings follow each other.

    Parameters
    ----------
    roots : Statistics
    bins : tuple of FeatureBins, optional
        If given, splits, none of them on a pair, are laid out as shape functions as soon as they
        are added. These take far less memory, but cannot be refined.

    Attributes
    ----------
    parent, n_rows : arrays of int
        Of each node; a root's parent is -1.
    first_child : array of int
        -1 for leaves.
    n_branches : array of int
        0 for leaves.
    splits : list of Split or None
        None for leaves; empty if splits are laid out.
    pairs : dict of int to PairList
        The pairs that were considered for nodes, by their numbers.
    sizes : int array of shape (n_trees,)
        Number of nodes of each tree.
    """

    def __init__(self, roots: Statistics, bins: tuple[FeatureBins, ...] | None = None) -> None:
        n_trees = len(roots)
        self._bins = bins
        self._laid_out: list[tuple[np.ndarray, dict[str, np.ndarray]]] = []
        # Arrays of Python's own, which grow, and of which single numbers are read quickly.
        self.n_branches = array("i", [0]) * n_trees
        self.parent = array("i", [-1]) * n_trees
        self.n_rows = array("q", roots.n_rows.tolist())
        self.first_child = array("i", [-1]) * n_trees
        self.splits: list[Split | None] = [None] * n_trees if bins is None else []
        self.pairs: dict[int, PairList] = {}
        self.sizes = np.ones(n_trees, dtype=np.int64)
        self._parts = [roots]

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.parent)

    @property
    def statistics(self) -> Statistics:
        """What all nodes know of their rows."""
        if len(self._parts) > 1:
            self._parts = [Statistics.joined(self._parts)]
        return self._parts[0]

    def roots(self) -> Level:
        """The roots alone."""
        trees = np.arange(len(self.sizes), dtype=np.int32)
        return Level(trees, self._parts[0], 0, trees, np.zeros_like(trees))

    def numbered(self, tree: np.ndarray) -> np.ndarray:
        """Numbers in their own trees of nodes that are to come next, given the trees, ascending."""
        first = np.searchsorted(tree, tree)
        return (self.sizes[tree] + np.arange(len(tree)) - first).astype(np.int32)

    def children(self, node: int) -> range:
        """Numbers of a node's children."""
        return range(self.first_child[node], self.first_child[node] + self.n_branches[node])

    def add(self, nodes: list[int], splits: list[Split], children: Level) -> None:
        """Add the children of some nodes that were leaves."""
        first = self.n_nodes
        n_branches = [split.n_branches for split in splits]
        for node, n in zip(nodes, n_branches, strict=True):
            self.first_child[node], self.n_branches[node] = first, n
            first += n
        self.parent.extend(np.repeat(nodes, n_branches).tolist())
        n = len(children)
        if self._bins is None:
            self.splits += [None] * n
            for node, split in zip(nodes, splits, strict=True):
                self.splits[node] = split
        elif nodes:
            largest = _largest_branches(np.array(n_branches), children.statistics.weight)
            self._laid_out.append((np.array(nodes), pieces_of_splits(splits, largest, self._bins)))
        self.n_branches.extend([0] * n)
        self.first_child.extend([-1] * n)
        self.n_rows.extend(children.statistics.n_rows.tolist())
        self.sizes += np.bincount(children.tree, minlength=len(self.sizes))
        self._parts.append(children.statistics)

    def _breadth_first(self, root: int) -> np.ndarray:
        """Numbers of a root and the nodes below it, level by level."""
        first_child, n_branches = np.array(self.first_child), np.array(self.n_branches)
        levels = [np.array([root])]
        while len(levels[-1]) > 0:
            parents = levels[-1][n_branches[levels[-1]] > 0]
            sizes = n_branches[parents]
            first = first_child[parents] - (np.cumsum(sizes) - sizes)
            levels.append(np.repeat(first, sizes) + np.arange(sizes.sum()))
        return np.concatenate(levels)

    @cached_property
    def _whole(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The place of each node's shape function, -1 for leaves, and those of all levels."""
        place, each = np.full(self.n_nodes, -1), [flat for _, flat in self._laid_out]
        if not each:
            each = [pieces_of_splits([], np.empty(0, dtype=np.int64), ())]
        else:
            nodes = np.concatenate([numbers for numbers, _ in self._laid_out])
            place[nodes] = np.arange(len(nodes))
        self._laid_out = []
        known = {name: np.concatenate([flat[name] for flat in each]) for name in each[0]}
        known["n_pieces"] = np.concatenate([np.diff(flat["piece_start"]) for flat in each])
        known["piece_start"] = np.cumsum(known["n_pieces"]) - known["n_pieces"]
        return place, known

    def _shapes_of(self, order: np.ndarray) -> dict[str, np.ndarray]:
        """Shape functions of some nodes of a grown tree, as `flatten_shapes` lays them out."""
        place, known = self._whole
        place = place[order]
        is_split, place = place >= 0, place[place >= 0]
        flat = {
            "feature": np.full(len(order), -1),
            "missing_branch": np.full(len(order), -1),
            "saw_missing": np.zeros(len(order), dtype=bool),
        }
        for name, of_nodes in flat.items():
            of_nodes[is_split] = known[name][place]
        n_pieces = np.zeros(len(order), dtype=np.int64)
        n_pieces[is_split] = known["n_pieces"][place]
        start = np.append(0, np.cumsum(n_pieces))
        moved = known["piece_start"][place] - start[:-1][is_split]
        pieces = np.arange(start[-1]) + np.repeat(moved, n_pieces[is_split])
        flat |= {"piece_start": start}
        flat |= {name: known[name][pieces] for name in ("piece_upper", "piece_branch")}
        return flat | without_pairs(len(order))

    def arrays(
        self, bins: tuple[FeatureBins, ...], impurity_scale: float, root: int = 0
    ) -> TreeArrays:
        """A tree with its shape functions in the features' own values.

        Parameters
        ----------
        bins : tuple of FeatureBins
        impurity_scale : float
            Factor that brings the nodes' impurity to the units of y.
        root : int
            Which tree.
        """
        order = self._breadth_first(root)
        statistics = self.statistics
        if len(order) < self.n_nodes or (np.diff(order) != 1).any():
            statistics = statistics.take(order)
        n_branches = np.array(self.n_branches)[order]
        if self._bins is not None:
            flat = self._shapes_of(order)
        else:
            largest = _largest_branches(n_branches, statistics.weight[1:]).tolist()
            flat = flatten_shapes(
                [
                    None if split is None else shape_of_split(split, bins, largest[place])
                    for place, split in enumerate(self.splits[node] for node in order.tolist())
                ]
            )
        return TreeArrays.unchecked(
            **links_of(n_branches),
            **flat,
            n_node_samples=statistics.n_rows,
            weighted_n_node_samples=statistics.weight,
            impurity=impurity_scale * statistics.impurity,
            value=statistics.value,
            sketches=None,
        )


def _largest_branches(n_branches: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The heaviest branch of each node, the first of equals, given the weights of all branches."""
    largest = np.zeros(len(n_branches), dtype=np.int64)
    is_split = n_branches > 0
    if is_split.any():
        parent, first = np.repeat(np.arange(len(largest)), n_branches), np.cumsum(n_branches)
        first -= n_branches
        most = np.maximum.reduceat(weight, first[is_split])
        heaviest = np.flatnonzero(weight == np.repeat(most, n_branches[is_split]))[::-1]
        largest[parent[heaviest]] = heaviest - first[parent[heaviest]]
    return largest


def nodes_of(tree: TreeArrays) -> list[TreeNode]:
    """Nodes of a tree, in its order; the first is the root."""
    nodes = [
        TreeNode(
            NodeStatistics(
                int(tree.n_node_samples[node]),
                float(tree.weighted_n_node_samples[node]),
                float(tree.impurity[node]),
                tree.value[node],
            ),
            tree.shape(node),
        )
        for node in range(tree.node_count)
    ]
    for number, node in enumerate(nodes):
        node.children = [nodes[child] for child in tree.children(number)]
        node.sketch = None if tree.sketches is None else tree.sketches[number]
    return nodes


def tree_of(root: TreeNode, impurity_scale: float = 1.0) -> TreeArrays:
    """Number the nodes breadth first and lay them out flat.

    Parameters
    ----------
    root : TreeNode
    impurity_scale : float
        Factor that brings the nodes' impurity to the units of y.
    """
    nodes = root.breadth_first()
    sketches = [node.sketch for node in nodes if node.sketch is not None]
    return TreeArrays.unchecked(
        **links_of(np.array([len(node.children) for node in nodes])),
        **flatten_shapes([node.shape for node in nodes]),
        n_node_samples=np.array([node.statistics.n_rows for node in nodes]),
        weighted_n_node_samples=np.array([node.statistics.weight for node in nodes]),
        impurity=impurity_scale * np.array([node.statistics.impurity for node in nodes]),
        value=np.array([node.statistics.value for node in nodes]),
        sketches=tuple(sketches) if len(sketches) == len(nodes) else None,
    )
