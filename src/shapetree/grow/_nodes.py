"""Nodes as objects: a tree while it grows, is refined or pruned, and to and fro its flat arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from shapetree._core.criterion import NodeStatistics
from shapetree.grow._candidates import Candidate
from shapetree.grow._splits import Split
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._shape import PairShape, ShapeFunction, flatten_shapes
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


@dataclass(eq=False, slots=True)
class GrowingNode(TreeNode):
    """A node while the tree grows.

    Attributes
    ----------
    number : int
        By which rows know it.
    depth : int
    parent : GrowingNode or None
    candidate : Candidate, PairCandidate or None
        What it may be split on.
    split : Split or None
        What it was split on.
    histogram : array or None
        Kept for its children to subtract from.
    """

    number: int = 0
    depth: int = 0
    parent: GrowingNode | None = None
    candidate: Candidate | Any = None
    split: Split | None = None
    histogram: np.ndarray | None = None

    @property
    def below(self) -> list[GrowingNode]:
        """The children."""
        return cast("list[GrowingNode]", self.children)


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
            shape_of(tree, node),
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
    nodes, parent, depth, first_child = root.breadth_first(), [-1], [0], []
    for number, node in enumerate(nodes):
        first_child.append(len(parent) if node.children else -1)
        parent += [number] * len(node.children)
        depth += [depth[number] + 1] * len(node.children)
    sketches = [node.sketch for node in nodes if node.sketch is not None]
    return TreeArrays.unchecked(
        parent=np.array(parent),
        depth=np.array(depth),
        first_child=np.array(first_child),
        n_branches=np.array([len(node.children) for node in nodes]),
        **flatten_shapes([node.shape for node in nodes]),
        n_node_samples=np.array([node.statistics.n_rows for node in nodes]),
        weighted_n_node_samples=np.array([node.statistics.weight for node in nodes]),
        impurity=impurity_scale * np.array([node.statistics.impurity for node in nodes]),
        value=np.array([node.statistics.value for node in nodes]),
        sketches=tuple(sketches) if len(sketches) == len(nodes) else None,
    )


def shape_of(tree: TreeArrays, node: int) -> ShapeFunction | PairShape | None:
    """A node's shape function; None for a leaf."""
    if tree.feature[node] < 0:
        return None
    pieces, cuts = tree.pieces(node), tree.cuts(node)
    branch_of_piece = tree.piece_branch[pieces]
    n_branches = int(tree.n_branches[node])
    missing_branch = int(tree.missing_branch[node])
    saw_missing = bool(tree.saw_missing[node])
    if tree.second_feature[node] < 0:
        upper = tree.piece_upper[pieces]
        return ShapeFunction(
            int(tree.feature[node]),
            n_branches,
            None if np.isnan(upper[0]) else upper,
            branch_of_piece,
            missing_branch,
            saw_missing,
        )
    return PairShape(
        first=int(tree.feature[node]),
        second=int(tree.second_feature[node]),
        n_branches=n_branches,
        cut_a=tree.cut_a[cuts],
        cut_b=tree.cut_b[cuts],
        cut_threshold=tree.cut_threshold[cuts],
        cut_low=tree.cut_low[cuts],
        cut_high=tree.cut_high[cuts],
        branch_of_piece=branch_of_piece,
        positions=(tree.position[tree.positions(node, 0)], tree.position[tree.positions(node, 1)]),
        missing_branch=missing_branch,
        saw_missing=saw_missing,
    )
