"""How large a fitted model is, and how long its explanations are.

For every method these mean the same:

- leaves and internal nodes, over all trees of the model;
- segments: maximal runs of a feature's axis that go to one branch, on the mean of the nodes that
  split on one feature (of a categorical feature, its branches); a threshold has two;
- regions: parts of the plane, on the mean of the nodes that split on two features;
- parts: either of them, on the mean of all nodes;
- features in use;
- conditions: what one has to read to follow one prediction, on the mean of all rows. Conditions on
  one feature along a path are one, because they are said as one interval. A sum of trees takes one
  path of each, a sum of terms every term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Rows whose explanations are counted, where that is done row by row.
N_EXPLAINED = 200

Sizes = dict[str, float]


@dataclass(frozen=True)
class Leaf:
    """A leaf, by how many training rows it has and the features on its path."""

    n_rows: float
    path: tuple[Any, ...]


def sizes_of_trees(trees: Iterable[Sequence[Leaf]], segments: Sequence[int] = ()) -> Sizes:
    """Sizes of a sum of trees of thresholds, or of those whose nodes have `segments`."""
    n_leaves, n_nodes, conditions = 0, 0, 0.0
    features: set[Any] = set()
    for leaves in trees:
        n_leaves += len(leaves)
        n_nodes += len(leaves) - 1
        features.update(*(leaf.path for leaf in leaves))
        lengths = [len(set(leaf.path)) for leaf in leaves]
        conditions += float(np.average(lengths, weights=[leaf.n_rows for leaf in leaves]))
    sizes = {
        "leaves": n_leaves,
        "nodes": len(segments) or n_nodes,
        "features": len(features),
        "conditions": conditions,
    }
    if n_nodes:
        sizes["segments"] = float(np.mean(segments)) if len(segments) else 2.0
        sizes["parts"] = sizes["segments"]
    return sizes


def shape_tree_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of a shape tree."""
    tree = model.tree_
    segments, regions = [], []
    for node in np.flatnonzero(~tree.is_leaf):
        pieces = tree.pieces(node)
        branches = tree.piece_branch[pieces]
        if tree.second_feature[node] >= 0:
            regions.append(len(branches))
        elif np.isnan(tree.piece_upper[pieces]).any():
            segments.append(int(tree.n_branches[node]))
        else:
            segments.append(_n_runs(branches))
    explained = model.explain(X[:N_EXPLAINED])
    sizes = {
        "leaves": tree.n_leaves,
        "nodes": len(segments) + len(regions),
        "features": len(tree.used_features),
        "conditions": float(np.mean([len(why.conditions) for why in explained])),
    }
    kinds = (("segments", segments), ("regions", regions), ("parts", segments + regions))
    for name, counts in kinds:
        if counts:
            sizes[name] = float(np.mean(counts))
    return sizes


def _n_runs(branches: Sequence[int]) -> int:
    return 1 + int(np.count_nonzero(np.diff(branches)))


def sklearn_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of scikit-learn's trees, and of what holds one; nothing for what has no tree."""
    for name in ("best_estimator_", "estimator_", "model"):
        model = getattr(model, name, model)
    tree: Any = getattr(model, "tree_", None)
    if not hasattr(tree, "children_left"):
        return {}

    def leaves(node: int, path: tuple[int, ...]) -> Iterator[Leaf]:
        if tree.children_left[node] < 0:
            yield Leaf(tree.n_node_samples[node], path)
            return
        path = (*path, int(owners[tree.feature[node]]))
        yield from leaves(tree.children_left[node], path)
        yield from leaves(tree.children_right[node], path)

    return sizes_of_trees([list(leaves(0, ()))])


def linear_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of a sum of all features, all of which go into every prediction."""
    n_features = len(np.unique(owners))
    return {"features": n_features, "conditions": n_features}


def lightgbm_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of LightGBM's trees."""

    def leaves(node: dict[str, Any], path: tuple[int, ...]) -> Iterator[Leaf]:
        if "split_feature" not in node:
            yield Leaf(node.get("leaf_count", 1), path)
            return
        path = (*path, node["split_feature"])
        yield from leaves(node["left_child"], path)
        yield from leaves(node["right_child"], path)

    dumped = model.booster_.dump_model()["tree_info"]
    return sizes_of_trees(list(leaves(tree["tree_structure"], ())) for tree in dumped)


def sgtlearn_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of sgtlearn's trees; a node that sends all rows to one branch does not count."""
    exported = model.tree_export()
    nodes = {node["id"]: node for node in exported["nodes"]}
    segments: list[int] = []

    def leaves(node: dict[str, Any], path: tuple[int, ...]) -> Iterator[Leaf]:
        if node["is_leaf"]:
            yield Leaf(node["n_samples"], path)
            return
        branches = node["bin_to_partition"]
        used = np.unique(branches)
        if len(used) > 1:
            segments.append(len(used) if node["is_categorical"] else _n_runs(branches))
            path = (*path, int(owners[node["features"][0]]))
        for branch in used:
            yield from leaves(nodes[node["children"][branch]], path)

    return sizes_of_trees([list(leaves(nodes[exported["root_index"]], ()))], segments)


def figs_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of the trees of FIGS."""

    def leaves(node: Any, path: tuple[int, ...]) -> Iterator[Leaf]:
        if node.left is None:
            yield Leaf(node.n_samples_, path)
            return
        path = (*path, int(owners[node.feature]))
        yield from leaves(node.left, path)
        yield from leaves(node.right, path)

    return sizes_of_trees(list(leaves(root, ())) for root in model.trees_)


def streed_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of STreeD's trees, whose splits are on columns of zeros and ones."""

    def leaves(node: Any, path: tuple[int, ...]) -> Iterator[Leaf]:
        if node.is_leaf_node():
            yield Leaf(node.num_instances, path)
            return
        path = (*path, node.feature)
        yield from leaves(node.left_child, path)
        yield from leaves(node.right_child, path)

    return sizes_of_trees([list(leaves(model.get_tree(), ()))])


def split_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of LicketySPLIT's trees, whose binary columns are named after features."""
    names = model.binarizer_.get_feature_names_out()
    features = [int(owners[int(name.split()[0].removeprefix("x"))]) for name in names]
    paths = [tuple(features[abs(step) - 1] for step in path) for path in model.tree_.leaf_paths()]
    counts = model.leaf_counts_
    return sizes_of_trees([[Leaf(n, path) for n, path in zip(counts, paths, strict=True)]])


def ebm_sizes(model: Any, X: Any, owners: np.ndarray) -> Sizes:
    """Sizes of a sum of terms, all of which go into every prediction."""
    terms = model.term_features_
    return {"features": len({f for term in terms for f in term}), "conditions": len(terms)}
