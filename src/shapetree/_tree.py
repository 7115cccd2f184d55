"""TreeArrays: a fitted tree as flat arrays, with their invariants."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

_DTYPES = {
    "parent": np.int32,
    "depth": np.int32,
    "first_child": np.int32,
    "n_branches": np.int32,
    "feature": np.int32,
    "missing_branch": np.int32,
    "saw_missing": np.bool_,
    "piece_start": np.int64,
    "piece_upper": np.float64,
    "piece_branch": np.int32,
    "n_node_samples": np.int64,
    "weighted_n_node_samples": np.float64,
    "impurity": np.float64,
    "gain": np.float64,
    "value": np.float64,
}


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """A tree's nodes, breadth first: node 0 is the root, and siblings stand side by side.

    The arrays are read-only and checked when the object is made, also on unpickling, because
    native code follows their indices.

    Attributes
    ----------
    parent, depth : int arrays of shape (node_count,)
        The root's parent is -1.
    first_child, n_branches : int arrays of shape (node_count,)
        Branch b of a node leads to node first_child + b. A leaf has first_child -1 and no branch.
    feature : int array of shape (node_count,)
        Feature of the node's shape function; -1 for leaves.
    missing_branch : int array of shape (node_count,)
        Branch of missing values and unknown categories; -1 for leaves.
    saw_missing : bool array of shape (node_count,)
        Whether training rows that the node splits lacked its feature; if none did, missing values
        go to the largest branch.
    piece_start : int array of shape (node_count + 1,)
        A node's shape function has the pieces piece_start[node] .. piece_start[node + 1] - 1.
    piece_upper : array of shape (n_pieces,)
        Greatest value in a piece of an ordered feature, ascending within the node, the last one
        infinite. NaN for categorical features, whose piece p is their category p.
    piece_branch : int array of shape (n_pieces,)
    n_node_samples, weighted_n_node_samples, impurity : arrays of shape (node_count,)
    gain : array of shape (node_count,)
        Weighted impurity that the node's split takes away; 0 for leaves.
    value : array of shape (node_count, n_outputs, n_values)
        Shares of the classes, or a mean or median.
    """

    parent: np.ndarray
    depth: np.ndarray
    first_child: np.ndarray
    n_branches: np.ndarray
    feature: np.ndarray
    missing_branch: np.ndarray
    saw_missing: np.ndarray
    piece_start: np.ndarray
    piece_upper: np.ndarray
    piece_branch: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray
    impurity: np.ndarray
    gain: np.ndarray
    value: np.ndarray

    def __post_init__(self) -> None:
        for name, dtype in _DTYPES.items():
            array: np.ndarray = np.array(getattr(self, name), dtype=dtype, order="C")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        self._check()

    def __reduce__(self) -> tuple[Any, ...]:
        return TreeArrays, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def is_leaf(self) -> np.ndarray:
        """Which nodes are leaves."""
        return self.feature < 0

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(self.is_leaf.sum())

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; a root alone has depth 0."""
        return int(self.depth.max())

    def children(self, node: int) -> range:
        """Nodes that a node's branches lead to, in order of branch."""
        start = int(self.first_child[node])
        return range(start, start + int(self.n_branches[node]))

    def pieces(self, node: int) -> slice:
        """A node's part of the arrays of pieces."""
        return slice(int(self.piece_start[node]), int(self.piece_start[node + 1]))

    def path_to(self, node: int) -> list[int]:
        """Nodes from the root to a node, both included."""
        path = [node]
        while path[-1] != 0:
            path.append(int(self.parent[path[-1]]))
        return path[::-1]

    def feature_importances(self, n_features: int) -> np.ndarray:
        """Each feature's share of all gains."""
        internal = ~self.is_leaf
        gains = np.bincount(self.feature[internal], self.gain[internal], minlength=n_features)
        total = gains.sum()
        return gains / total if total > 0 else gains

    def _check(self) -> None:
        """Refuse arrays that are not a tree; each rule may rely on those before it."""
        n = self.node_count
        for name in _DTYPES:
            if name != "value":
                _require(getattr(self, name).ndim == 1, f"{name} has one dimension")
            if not name.startswith("piece_"):
                rule = "arrays of nodes have one entry for each node"
                _require(len(getattr(self, name)) == n, rule)
        _require(n > 0, "there is at least one node")
        _require(self.value.ndim == 3, "values have shape (node_count, n_outputs, n_values)")
        self._check_nodes(~self.is_leaf)
        self._check_pieces(~self.is_leaf)

    def _check_nodes(self, internal: np.ndarray) -> None:
        branches = self.n_branches[internal]
        _require(
            bool(np.all((branches >= 2) & (branches <= 254)))
            and not self.n_branches[~internal].any(),
            "a node that splits has between 2 and 254 branches, a leaf has none",
        )
        # Breadth first, the children of one node after another fill the nodes 1 .. n - 1.
        filled = np.concatenate([[1], 1 + np.cumsum(branches)])
        _require(
            filled[-1] == self.node_count
            and np.array_equal(self.first_child[internal], filled[:-1])
            and np.array_equal(self.parent[1:], np.repeat(np.flatnonzero(internal), branches))
            and self.parent[0] == -1,
            "children come breadth first",
        )
        _require(
            bool(np.all(self.parent[1:] < np.arange(1, self.node_count))),
            "children come after their parents",
        )
        depth = np.append(0, self.depth[self.parent[1:]] + 1)
        _require(np.array_equal(depth, self.depth), "depth grows by one from parent to child")
        _require(
            bool(
                np.all(self.missing_branch[internal] >= 0)
                and np.all(self.missing_branch[internal] < branches)
            ),
            "branches of pieces and of missing values exist",
        )

    def _check_pieces(self, internal: np.ndarray) -> None:
        n_pieces = np.diff(self.piece_start)
        _require(
            len(self.piece_start) == self.node_count + 1
            and self.piece_start[0] == 0
            and bool(np.all(n_pieces >= 0))
            and self.piece_start[-1] == len(self.piece_upper) == len(self.piece_branch),
            "pieces start where those before end",
        )
        _require(
            np.array_equal(n_pieces > 0, internal), "a node that splits has pieces, a leaf has none"
        )
        owner = np.repeat(np.arange(self.node_count), n_pieces)
        _require(
            bool(np.all((self.piece_branch >= 0) & (self.piece_branch < self.n_branches[owner]))),
            "branches of pieces and of missing values exist",
        )
        last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
        categorical = np.isnan(self.piece_upper)
        ordered = np.where(last, self.piece_upper == np.inf, False)
        ordered[~last] = self.piece_upper[:-1][~last[:-1]] < self.piece_upper[1:][~last[:-1]]
        all_categorical = np.bincount(owner[~categorical], minlength=self.node_count)[owner] == 0
        _require(
            bool(np.all(np.where(categorical, all_categorical, ordered))),
            "upper bounds of pieces ascend to infinity, or all are NaN",
        )


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"not a valid tree: {rule}")
