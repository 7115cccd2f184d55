"""Hierarchical shrinkage: nodes of few rows lean on those above them."""

from __future__ import annotations

import numpy as np

from shapetree.tree._arrays import TreeArrays


def shrink(tree: TreeArrays, shrinkage: float) -> TreeArrays:
    """Draw what each node predicts towards what the nodes above it predict.

    A prediction can be read as the root's value plus one step for each node on the way to the
    leaf: how far the node's value lies from its parent's. A parent of few rows tells less reliably
    how its children differ, so a step below a parent whose rows weigh N is kept only to the share
    N / (N + shrinkage):

        new(node) = new(parent) + (old(node) - old(parent)) / (1 + shrinkage / N(parent))

    The root keeps its value, and everything but the values stays as it is. Shares of classes remain
    shares: new values are weighted means of the old ones on the path.

    Parameters
    ----------
    tree : TreeArrays
    shrinkage : float
        The λ of Agarwal et al. (2022), in units of the rows' weight. At 0 nothing changes, and with
        growing λ all nodes approach the root.
    """
    if not shrinkage >= 0:
        raise ValueError(f"shrinkage must be 0 or greater, got {shrinkage}")
    if shrinkage == 0:
        return tree
    weight = tree.weighted_n_node_samples
    share_below = weight / (weight + shrinkage)
    share = np.append(1.0, share_below[tree.parent[1:]])
    # Each node's share of its own value, and what the shares of the path leave to those above: no
    # differences of values, whose rounding could make shares of classes negative.
    from_above = np.zeros_like(tree.value)
    for node, parent in enumerate(tree.parent[1:].tolist(), start=1):
        left_over = share[parent] - share[node]
        from_above[node] = from_above[parent] + left_over * tree.value[parent]
    return tree.with_nodes(value=from_above + share[:, None, None] * tree.value)
