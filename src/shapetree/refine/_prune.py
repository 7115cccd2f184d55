"""Make a fitted tree smaller: cut off what is not worth its leaves, join what predicts the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import takewhile
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from shapetree._core.criterion import NodeStatistics
from shapetree.grow._nodes import TreeNode, nodes_of, tree_of
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._shape import join_pieces, with_branches
from shapetree.tree._sketch import NodeSketch

# --- cutting off ---


def pruning_path(tree: TreeArrays) -> Bunch:
    """Prices of a leaf at which minimal cost-complexity pruning cuts, and what is left then.

    As scikit-learn's `cost_complexity_pruning_path`, with any number of branches to a node. Nodes
    that are cut at the same price have an entry each.

    Returns
    -------
    Bunch
        `ccp_alphas`, the price of a leaf from which on each tree is the best, ascending from the
        whole tree's, and `impurities`, the mean impurity of each tree's leaves, by weight.
    """
    whole = _risk(tree)[tree.is_leaf].sum()
    _, alphas, impurities = zip((0, 0.0, whole), *_weakest_links(tree), strict=True)
    return Bunch(ccp_alphas=np.array(alphas), impurities=np.array(impurities))


def prune_by_cost(tree: TreeArrays, ccp_alpha: float) -> TreeArrays:
    """The subtree of least impurity plus `ccp_alpha` for each leaf, the smallest of equals.

    Parameters
    ----------
    ccp_alpha : float
        Price of a leaf, in units of the tree's impurity. As in scikit-learn, 0 leaves the tree as
        it is, even where a split gains nothing.
    """
    if not ccp_alpha >= 0:
        raise ValueError(f"ccp_alpha must be 0 or greater, got {ccp_alpha}")
    if ccp_alpha == 0:
        return tree
    cuts = takewhile(lambda cut: cut[1] <= ccp_alpha, _weakest_links(tree))
    return prune_nodes(tree, [node for node, _, _ in cuts])


def prune_nodes(tree: TreeArrays, nodes: Iterable[int]) -> TreeArrays:
    """Make leaves of nodes, which lose all that is below them.

    Parameters
    ----------
    nodes : iterable of int
        Indices of nodes. Leaves stay as they are, and so do nodes below others of the list, which
        are gone with these.
    """
    all_nodes = nodes_of(tree)
    for node in _check_nodes(nodes, tree.node_count):
        all_nodes[node].become_leaf()
    return tree_of(all_nodes[0])


def _check_nodes(nodes: Iterable[Any], node_count: int) -> list[int]:
    """Refuse what is no list of nodes of the tree."""
    if not np.iterable(nodes):
        raise TypeError(f"nodes must be a list of node indices, got {nodes!r}")
    chosen = list(nodes)
    for node in chosen:
        if isinstance(node, bool) or not isinstance(node, int | np.integer):
            raise TypeError(f"nodes must hold integers, got {node!r}")
        if not 0 <= node < node_count:
            raise ValueError(f"nodes must be between 0 and {node_count - 1}, got {node}")
    return [int(node) for node in chosen]


def _risk(tree: TreeArrays) -> np.ndarray:
    """What each node adds to the tree's impurity if it is a leaf."""
    weight = tree.weighted_n_node_samples
    return weight / weight[0] * tree.impurity


def _weakest_links(tree: TreeArrays) -> Iterator[tuple[int, float, float]]:
    """Cut off, again and again, the subtree that takes away least impurity for each leaf it adds.

    Yields nodes that become leaves, prices of a leaf that ask for it, and the impurity left.

    A node's alpha is the price of a leaf at which the node alone costs as much as with all that is
    below it. Cuts change it only for nodes above, and never to less than the alpha of the cut.
    """
    splits = ~tree.is_leaf
    risk = _risk(tree)
    risk_below = np.where(splits, 0.0, risk)
    leaves_below = np.where(splits, 0, 1)
    for node in range(tree.node_count - 1, 0, -1):
        risk_below[tree.parent[node]] += risk_below[node]
        leaves_below[tree.parent[node]] += leaves_below[node]
    alpha = (risk - risk_below) / np.maximum(leaves_below - 1, 1)
    paid = 0.0
    while splits[0]:
        candidates = np.flatnonzero(splits)
        weakest = int(candidates[alpha[candidates].argmin()])
        # What rounding takes away from an alpha must not bring the price down.
        paid = max(paid, float(alpha[weakest]))
        path = tree.path_to(weakest)
        risk_below[path] += risk[weakest] - risk_below[weakest]
        leaves_below[path] -= leaves_below[weakest] - 1
        splits[_subtree(tree, weakest)] = False
        above = path[:-1]
        alpha[above] = (risk[above] - risk_below[above]) / (leaves_below[above] - 1)
        yield weakest, paid, float(risk_below[0])


def _subtree(tree: TreeArrays, node: int) -> list[int]:
    """A node and all below it."""
    found = [node]
    for member in found:
        found.extend(tree.children(member))
    return found


# --- joining ---


def simplify(
    tree: TreeArrays,
    impurity_of: Callable[[np.ndarray], float] | None,
    same_prediction: Callable[[np.ndarray, np.ndarray], bool],
) -> TreeArrays:
    """Join leaves that predict the same, and leave out what makes no difference.

    From the leaves to the root, every node sends to one branch what it sent to leaves that predict
    the same, loses the branches that nothing leads to, and joins pieces that nothing parts any
    more; if there is but one leaf then, it becomes a leaf itself. No row's prediction changes,
    unless it lacks a value where no training row did, in a node with a branch for such rows only:
    it then goes to the largest branch.

    Parameters
    ----------
    impurity_of : callable or None
        Impurity of a leaf with given shares of the classes; None for numbers, where a
        joined leaf has the mean of its parts' impurities.
    same_prediction : callable
        Whether two values, of shape (n_outputs, n_values), stand for the same prediction.
    """
    nodes = nodes_of(tree)
    join = _LeafJoiner(impurity_of, same_prediction)
    for node in reversed(nodes):  # children before their parents
        join.children_of(node)
        _leave_out_unreached(node)
        if node.shape is not None:
            node.shape = join_pieces(node.shape)
    return tree_of(nodes[0])


class _LeafJoiner:
    """Makes one leaf of leaves that predict the same; the parameters are those of `simplify`."""

    def __init__(
        self,
        impurity_of: Callable[[np.ndarray], float] | None,
        same_prediction: Callable[[np.ndarray, np.ndarray], bool],
    ) -> None:
        self._impurity_of = impurity_of
        self._same_prediction = same_prediction

    def children_of(self, node: TreeNode) -> None:
        """Join a node's children where they can be; a node that would keep one becomes a leaf."""
        groups = self._groups(node.children)
        if len(groups) == len(node.children):
            return
        children = [self._joined([node.children[branch] for branch in group]) for group in groups]
        if len(children) == 1:
            self._become_leaf(node, children[0].statistics.value)
            return
        new_branch = np.empty(len(node.children), dtype=np.int32)
        for branch, group in enumerate(groups):
            new_branch[group] = branch
        _rearrange(node, children, new_branch)

    def _groups(self, children: list[TreeNode]) -> list[list[int]]:
        """Branches that can become one, in order of the first of them."""
        groups: list[list[int]] = []
        for branch, child in enumerate(children):
            group = next((g for g in groups if self._can_join(children[g[0]], child)), None)
            if group is None:
                groups.append([branch])
            else:
                group.append(branch)
        return groups

    def _can_join(self, one: TreeNode, other: TreeNode) -> bool:
        return (
            one.is_leaf
            and other.is_leaf
            and self._same_prediction(one.statistics.value, other.statistics.value)
        )

    def _joined(self, leaves: list[TreeNode]) -> TreeNode:
        """One leaf with the rows of all."""
        if len(leaves) == 1:
            return leaves[0]
        parts = [leaf.statistics for leaf in leaves]
        value = _mean([part.value for part in parts], parts)
        # The mean of equal numbers may be rounded to another one.
        value = value if self._same_prediction(value, parts[0].value) else parts[0].value
        impurity = (
            _mean([part.impurity for part in parts], parts)
            if self._impurity_of is None
            else self._impurity_of(value)
        )
        n_rows, weight = sum(part.n_rows for part in parts), sum(part.weight for part in parts)
        sketches = [leaf.sketch for leaf in leaves if leaf.sketch is not None]
        return TreeNode(
            NodeStatistics(n_rows, weight, float(impurity), value),
            sketch=reduce(NodeSketch.joined_with, sketches) if sketches else None,
        )

    def _become_leaf(self, node: TreeNode, value: np.ndarray) -> None:
        """Make a leaf of a node, with its own value if that is the same prediction.

        It is another one by rounding, or where values have been shrunk.
        """
        if not self._same_prediction(node.statistics.value, value):
            node.statistics = node.statistics.with_value(value)
        node.become_leaf()


def _mean(numbers: list[Any], parts: list[NodeStatistics]) -> np.ndarray:
    """Mean over nodes by their weight; by their number if no row reaches any."""
    weights = np.array([part.weight for part in parts])
    return np.average(np.array(numbers), axis=0, weights=weights if weights.any() else None)


def _leave_out_unreached(node: TreeNode) -> None:
    """Drop branches that nothing leads to; a node with one branch is replaced by its child."""
    shape = node.shape
    if shape is None:
        return
    reached = np.unique(shape.branch_of_piece)
    if shape.saw_missing:
        reached = np.union1d(reached, shape.missing_branch)
    if len(reached) == len(node.children):
        return
    children = [node.children[branch] for branch in reached]
    if len(children) == 1:
        child = children[0]
        node.statistics, node.shape, node.children = child.statistics, child.shape, child.children
        node.sketch = child.sketch
        return
    largest = int(np.argmax([child.statistics.weight for child in children]))
    new_branch = np.full(len(node.children), largest, dtype=np.int32)
    new_branch[reached] = np.arange(len(reached))
    _rearrange(node, children, new_branch)


def _rearrange(node: TreeNode, children: list[TreeNode], new_branch: np.ndarray) -> None:
    """Give a node other children, and send to `new_branch[b]` what went to branch b."""
    assert node.shape is not None
    node.children = children
    node.shape = with_branches(node.shape, new_branch, len(children))
