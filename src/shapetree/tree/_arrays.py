"""TreeArrays: a fitted tree as flat arrays, with their invariants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any, TypeAlias, get_origin, get_type_hints

import numpy as np

from shapetree.tree._shape import CUT_ARRAYS, PairShape, ShapeFunction
from shapetree.tree._sketch import NodeSketch

# Arrays of the tree, with the types that native code reads them in.
Ints: TypeAlias = Annotated[np.ndarray, np.int32]
Counts: TypeAlias = Annotated[np.ndarray, np.int64]
Floats: TypeAlias = Annotated[np.ndarray, np.float64]
Flags: TypeAlias = Annotated[np.ndarray, np.bool_]


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
    feature, second_feature : int arrays of shape (node_count,)
        Feature of the node's shape function; -1 for leaves. The second is -1 for shape functions of
        one feature, and greater than the first for those of a pair.
    missing_branch : int array of shape (node_count,)
        Branch of missing values and unknown categories; -1 for leaves.
    saw_missing : bool array of shape (node_count,)
        Whether training rows that the node splits lacked its feature, or either of its pair; if
        none did, missing values go to the largest branch.
    piece_start : int array of shape (node_count + 1,)
        A node's shape function has the pieces piece_start[node] .. piece_start[node + 1] - 1.
    piece_upper : array of shape (n_pieces,)
        Greatest value in a piece of an ordered feature, ascending within the node, the last one
        infinite. NaN for categorical features, whose piece p is their category p, and for pairs,
        whose pieces are regions of the plane.
    piece_branch : int array of shape (n_pieces,)
    cut_start : int array of shape (node_count + 1,)
        A pair's regions are made by the cuts cut_start[node] .. cut_start[node + 1] - 1, of which
        there is one less than of regions. The first comes first.
    cut_a, cut_b, cut_threshold : arrays of shape (n_cuts,)
        A point (u, v) is above a cut if cut_a * u + cut_b * v > cut_threshold. u and v are the
        values of the first and the second feature, or the positions of their categories; infinite
        values count as the greatest finite ones. cut_a is 0 or 1.
    cut_low, cut_high : int arrays of shape (n_cuts,)
        Where points below (or at) and above the cut go: to the node's cut c, a later one, or to
        its piece p, written as -1 - p.
    position_start : int array of shape (2 * node_count + 1,)
    position : array of shape (n_positions,)
        Positions of the categories of a pair's first feature start at position_start[2 * node],
        those of its second at position_start[2 * node + 1]; none for numbers. NaN for categories
        that count as missing in the node.
    n_node_samples, weighted_n_node_samples, impurity : arrays of shape (node_count,)
    value : array of shape (node_count, n_outputs, n_values)
        Shares of the classes, or a mean or median.
    sketches : sequence of NodeSketch or None
        How the nodes' rows are spread, where there is one target.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> tree.tree_.node_count, tree.tree_.n_leaves, tree.tree_.n_parts
    (8, 5, 7)
    >>> tree.tree_.children(0)
    range(1, 4)
    """

    parent: Ints
    depth: Ints
    first_child: Ints
    n_branches: Ints
    feature: Ints
    second_feature: Ints
    missing_branch: Ints
    saw_missing: Flags
    piece_start: Counts
    piece_upper: Floats
    piece_branch: Ints
    cut_start: Counts
    cut_a: Floats
    cut_b: Floats
    cut_threshold: Floats
    cut_low: Ints
    cut_high: Ints
    position_start: Counts
    position: Floats
    n_node_samples: Counts
    weighted_n_node_samples: Floats
    impurity: Floats
    value: Floats
    sketches: Sequence[NodeSketch] | None = None

    def __post_init__(self) -> None:
        for name in _DTYPES:
            self._set(name, getattr(self, name))
        self._check()

    @classmethod
    def unchecked(cls, sketches: Sequence[NodeSketch] | None, **arrays: np.ndarray) -> TreeArrays:
        """A tree that is known to be one: its arrays were just made of nodes."""
        tree = object.__new__(cls)
        for name, array in arrays.items():
            tree._set(name, array, owns=True)
        object.__setattr__(tree, "sketches", sketches)
        return tree

    def _set(self, name: str, given: np.ndarray, owns: bool = False) -> None:
        make = np.asarray if owns else np.array
        array: np.ndarray = make(given, dtype=_DTYPES[name], order="C")
        array.flags.writeable = False
        object.__setattr__(self, name, array)

    def with_nodes(
        self,
        weights: np.ndarray | None = None,
        value: np.ndarray | None = None,
        sketches: Sequence[NodeSketch] | None = None,
    ) -> TreeArrays:
        """The same tree with other weights, values or sketches of its nodes, None to keep them.

        Where rows go is not touched, so that nothing else has to be checked again.
        """
        tree = object.__new__(TreeArrays)
        tree.__dict__.update(self.__dict__)
        if weights is not None:
            _require(np.shape(weights) == (self.node_count,), _ONE_FOR_EACH)
            tree._set("weighted_n_node_samples", weights)
        if value is not None:
            _require(np.ndim(value) == 3 and len(value) == self.node_count, _ONE_FOR_EACH)
            tree._set("value", value)
        if sketches is not None:
            _require(len(sketches) == self.node_count, _ONE_FOR_EACH)
            object.__setattr__(tree, "sketches", sketches)
        return tree

    def with_thresholds(self, piece_upper: np.ndarray) -> TreeArrays:
        """The same tree with other ends of its pieces, which split the rows in the same way."""
        return replace(self, piece_upper=piece_upper)

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
    def n_parts(self) -> int:
        """Parts of all shape functions: segments, groups of categories and regions of pairs."""
        n_parts = 0
        for node in np.flatnonzero(~self.is_leaf).tolist():
            branches = self.piece_branch[self.pieces(node)]
            if self.second_feature[node] >= 0:
                n_parts += len(branches)
            elif np.isnan(self.piece_upper[self.pieces(node)][0]):
                n_parts += int(self.n_branches[node])
            else:
                n_parts += 1 + int(np.count_nonzero(np.diff(branches)))
        return n_parts

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; a root alone has depth 0."""
        return int(self.depth.max())

    @property
    def gain(self) -> np.ndarray:
        """Weighted impurity that each node's split removes; 0 for leaves."""
        return self._taken_away(self.weighted_n_node_samples * self.impurity)

    def _taken_away(self, mass: np.ndarray) -> np.ndarray:
        """What each node's split removes of some quantity of the nodes; 0 for leaves."""
        below = np.bincount(self.parent[1:], mass[1:], minlength=self.node_count)
        return np.where(self.is_leaf, 0.0, np.maximum(mass - below, 0.0))

    def children(self, node: int) -> range:
        """Nodes that a node's branches lead to, in order of branch."""
        start = int(self.first_child[node])
        return range(start, start + int(self.n_branches[node]))

    def pieces(self, node: int) -> slice:
        """A node's part of the arrays of pieces."""
        return slice(int(self.piece_start[node]), int(self.piece_start[node + 1]))

    def cuts(self, node: int) -> slice:
        """A node's part of the arrays of cuts."""
        return slice(int(self.cut_start[node]), int(self.cut_start[node + 1]))

    def positions(self, node: int, side: int) -> slice:
        """Part of the positions that a pair's first (0) or second (1) feature has."""
        slot = 2 * node + side
        return slice(int(self.position_start[slot]), int(self.position_start[slot + 1]))

    def is_at_or_below(self, node: int) -> np.ndarray:
        """Which nodes are a node or below it."""
        is_below = np.zeros(self.node_count, dtype=bool)
        is_below[node] = True
        for child in range(node + 1, self.node_count):  # children come after their parents
            is_below[child] = is_below[self.parent[child]]
        return is_below

    def shape(self, node: int) -> ShapeFunction | PairShape | None:
        """A node's shape function; None for a leaf."""
        if self.feature[node] < 0:
            return None
        pieces, cuts = self.pieces(node), self.cuts(node)
        common: dict[str, Any] = {
            "n_branches": int(self.n_branches[node]),
            "branch_of_piece": self.piece_branch[pieces],
            "missing_branch": int(self.missing_branch[node]),
            "saw_missing": bool(self.saw_missing[node]),
        }
        first, second = int(self.feature[node]), int(self.second_feature[node])
        if second < 0:
            upper = self.piece_upper[pieces]
            return ShapeFunction(first, upper=None if np.isnan(upper[0]) else upper, **common)
        positions = [self.position[self.positions(node, side)] for side in range(2)]
        common["positions"] = positions[0], positions[1]
        common |= {name: getattr(self, name)[cuts] for name in CUT_ARRAYS}
        return PairShape(first, second, **common)

    def path_to(self, node: int) -> list[int]:
        """Nodes from the root to a node, both included."""
        path = [node]
        while path[-1] != 0:
            path.append(int(self.parent[path[-1]]))
        return path[::-1]

    def features_of(self, node: int) -> list[int]:
        """Features of a node's shape function: none, one or two."""
        features = int(self.feature[node]), int(self.second_feature[node])
        return [feature for feature in features if feature >= 0]

    @cached_property
    def used_features(self) -> list[int]:
        """Features that the tree reads, ascending."""
        used = {*self.feature.tolist(), *self.second_feature.tolist()}
        return sorted(feature for feature in used if feature >= 0)

    @property
    def features_of_pairs(self) -> list[int]:
        """Features of which the tree has pairs, ascending."""
        is_pair = self.second_feature >= 0
        return np.union1d(self.feature[is_pair], self.second_feature[is_pair]).tolist()

    def feature_importances(self, n_features: int) -> np.ndarray:
        """Each feature's share of all gains; the two of a pair have half of its gain each."""
        # As shares, because products of very large or very small numbers overflow or vanish.
        weight, impurity = self.weighted_n_node_samples, self.impurity
        gain_of = self._taken_away(weight / weight.max() * (impurity / (impurity.max() or 1.0)))
        gains = np.zeros(n_features)
        for node in np.flatnonzero(~self.is_leaf).tolist():
            features = self.features_of(node)
            gains[features] += gain_of[node] / len(features)
        total = gains.sum()
        return gains / total if total > 0 else gains

    def _check(self) -> None:
        """Refuse arrays that are not a tree; each rule may rely on those before it."""
        n = self.node_count
        for name in _DTYPES:
            if name != "value":
                _require(getattr(self, name).ndim == 1, f"{name} has one dimension")
            if not name.startswith(("piece_", "cut_", "position")):
                _require(len(getattr(self, name)) == n, _ONE_FOR_EACH)
        _require(n > 0, "there is at least one node")
        _require(self.value.ndim == 3, "values have shape (node_count, n_outputs, n_values)")
        self._check_nodes(~self.is_leaf)
        self._check_pieces(~self.is_leaf)
        self._check_cuts()
        sketches = self.sketches is None or len(self.sketches) == n
        _require(sketches, "there is a sketch for each node, or none")

    def _check_nodes(self, internal: np.ndarray) -> None:
        branches = self.n_branches[internal]
        _require(
            ((branches >= 2) & (branches <= 254)).all() and not self.n_branches[~internal].any(),
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
        is_above = self.parent[1:] < np.arange(1, self.node_count)
        _require(is_above.all(), "children come after their parents")
        depth = np.append(0, self.depth[self.parent[1:]] + 1)
        _require(np.array_equal(depth, self.depth), "depth grows by one from parent to child")
        missing = self.missing_branch[internal]
        _require(((missing >= 0) & (missing < branches)).all(), _BRANCHES_EXIST)

    def _check_pieces(self, internal: np.ndarray) -> None:
        n_pieces = np.diff(self.piece_start)
        _require(
            _are_starts(self.piece_start, self.node_count, len(self.piece_upper))
            and len(self.piece_upper) == len(self.piece_branch),
            "pieces start where those before end",
        )
        _require(
            np.array_equal(n_pieces > 0, internal), "a node that splits has pieces, a leaf has none"
        )
        owner = np.repeat(np.arange(self.node_count), n_pieces)
        exist = (self.piece_branch >= 0) & (self.piece_branch < self.n_branches[owner])
        _require(exist.all(), _BRANCHES_EXIST)
        last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
        categorical = np.isnan(self.piece_upper)
        ordered = np.where(last, self.piece_upper == np.inf, False)
        ordered[~last] = self.piece_upper[:-1][~last[:-1]] < self.piece_upper[1:][~last[:-1]]
        all_categorical = np.bincount(owner[~categorical], minlength=self.node_count)[owner] == 0
        _require(
            np.where(categorical, all_categorical, ordered).all(),
            "upper bounds of pieces ascend to infinity, or all are NaN",
        )

    def _check_cuts(self) -> None:
        is_pair = self.second_feature >= 0
        _require(
            (self.second_feature[is_pair] > self.feature[is_pair]).all()
            and not (is_pair & self.is_leaf).any(),
            "a pair's second feature comes after its first",
        )
        n_cuts, n_pieces = np.diff(self.cut_start), np.diff(self.piece_start)
        _require(
            _are_starts(self.cut_start, self.node_count, len(self.cut_a))
            and len({len(getattr(self, name)) for name in CUT_ARRAYS}) == 1
            and np.array_equal(n_cuts, np.where(is_pair, n_pieces - 1, 0))
            and (n_cuts[is_pair] > 0).all(),
            "a pair has cuts, one less than regions, and nothing else has",
        )
        _require(
            ((self.cut_a == 0) | (self.cut_a == 1)).all()
            and np.isfinite([self.cut_b, self.cut_threshold]).all(),
            "cuts have finite numbers, the first of them 0 or 1",
        )
        has_none = np.isnan(self.piece_upper[np.repeat(is_pair, n_pieces)])
        _require(has_none.all(), "regions have no upper bound")
        self._check_targets_of_cuts(n_cuts)
        n_positions = np.diff(self.position_start)
        _require(
            _are_starts(self.position_start, 2 * self.node_count, len(self.position))
            and not n_positions[np.repeat(~is_pair, 2)].any(),
            "positions start where those before end, and only pairs have them",
        )

    def _check_targets_of_cuts(self, n_cuts: np.ndarray) -> None:
        """Every cut but a pair's first, and every region, is reached from exactly one cut."""
        cuts = np.repeat(n_cuts, n_cuts)
        number = np.arange(len(cuts)) - np.repeat(self.cut_start[:-1], n_cuts)
        low, high = self.cut_low.astype(np.int64), self.cut_high.astype(np.int64)
        rule = "cuts lead to later cuts and to regions, to each once"
        for target in (low, high):
            _require(np.where(target < 0, target >= -1 - cuts, target < cuts).all(), rule)
            _require(((target < 0) | (target > number)).all(), rule)
        # Cut c has the slot c of its node, region p the slot n_cuts + p; the first cut's is free.
        start = np.repeat(2 * self.cut_start[:-1] + np.arange(self.node_count), n_cuts)
        reached = [np.where(target < 0, cuts - 1 - target, target) for target in (low, high)]
        slots = np.concatenate([start + slot for slot in reached])
        _require(len(np.unique(slots)) == len(slots), rule)


_DTYPES: dict[str, Any] = {
    name: kind.__metadata__[0]
    for name, kind in get_type_hints(TreeArrays, include_extras=True).items()
    if get_origin(kind) is Annotated
}


def links_of(n_branches: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays that link nodes to each other, given the branches of all, breadth first."""
    depth, start, stop, level = np.zeros(len(n_branches), dtype=np.int32), 0, 1, 0
    while start < stop:
        depth[start:stop] = level
        start, stop, level = stop, stop + int(n_branches[start:stop].sum()), level + 1
    return {
        "parent": np.append(-1, np.repeat(np.arange(len(n_branches)), n_branches)),
        "depth": depth,
        "first_child": np.where(n_branches > 0, 1 + np.cumsum(n_branches) - n_branches, -1),
        "n_branches": n_branches,
    }


_ONE_FOR_EACH = "arrays of nodes have one entry for each node"
_BRANCHES_EXIST = "branches of pieces and of missing values exist"


def _are_starts(starts: np.ndarray, n_owners: int, n_parts: int) -> bool:
    """Whether parts of owners start where those before end."""
    if len(starts) != n_owners + 1 or starts[0] != 0 or starts[-1] != n_parts:
        return False
    return bool((starts[1:] >= starts[:-1]).all())  # differences might overflow


def _require(holds: bool | np.bool_, rule: str) -> None:
    if not holds:
        raise ValueError(f"not a valid tree: {rule}")
