"""A tree under refinement: nodes that change, and the training rows in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from shapetree.grow._candidates import parts_price
from shapetree.grow._nodes import TreeNode
from shapetree.grow._pair_options import PairList
from shapetree.grow._splits import Split
from shapetree.refine._options import RefineOptions
from shapetree.refine._refined_rows import RefinedRows
from shapetree.refine._split_costs import (
    finished_shape,
    keeping,
    price_of_parts,
    settled,
    smallest_part,
)

# A node's split, children, parent, penalty, part_penalty and pairs.
Placed = tuple[Split | None, list[int], int, float, float, PairList | None]

# Numbers of rows by piece that are kept for all nodes at once.
MAX_COUNTS = 2**20


@dataclass(eq=False, slots=True)
class WorkingNode:
    """A node under refinement, known by its number, which it keeps."""

    split: Split | None = None  # None for a leaf
    children: list[int] = field(default_factory=list)
    parent: int = -1
    penalty: float = 0.0  # what the parts of the split beyond those of CART's cost
    part_penalty: float = 0.0  # what a segment beyond two costs here
    # Those that were considered when the node grew, where that is known.
    pairs: PairList | None = None
    # The price at which the node was found to be the best it can be; None if something has changed
    # since then.
    settled_at: float | None = None


class WorkingTree:
    """A tree whose splits can be changed, over rows that follow.

    Parameters
    ----------
    nodes : list of WorkingNode
        Children come after their parents.
    rows : RefinedRows
        Rows of these nodes.
    is_sent : bool
        Whether the rows are where the nodes' splits send them, and not all at the root.
    options : RefineOptions
        What leaves and parts cost.

    Attributes
    ----------
    levels : list of lists of int
        Nodes of every depth, in the order of their rows.
    leaves : list of int
    penalties : list of float
        What leaves and extra parts cost from each node on.
    changed_leaves : list of int
        Those whose rows are others than when they were last asked for.
    """

    def __init__(
        self,
        nodes: list[WorkingNode],
        rows: RefinedRows,
        is_sent: bool,
        options: RefineOptions,
    ) -> None:
        self.nodes = nodes
        self.rows = rows
        self._leaf_penalty = options.prices.leaf
        self._category_penalty = options.prices.part
        for number, node in enumerate(nodes):
            for child in node.children:
                nodes[child].parent = number
            if node.split is not None:
                rows.set_split(number, node.split, node.children)
        self._known_pieces: list[tuple[int, np.ndarray, int]] | None = None
        if not is_sent:
            rows.send([0])
        for node, weight in zip(nodes, rows.weights(list(range(len(nodes)))), strict=True):
            node.part_penalty = options.prices.part * parts_price(weight, options.many_rows)
            self._price_parts(node)
        self.changed_leaves: list[int] = []
        self._is_rebuilt = True
        self._tidy([0])

    def _number(self) -> None:
        """Note which nodes there are."""
        nodes, level = self.nodes, [0]
        self.levels, self.leaves, self._splits = [], list[int](), list[int]()
        while level:
            self.levels.append(level)
            splits = [number for number in level if nodes[number].split is not None]
            self.leaves += [number for number in level if nodes[number].split is None]
            self._splits += splits
            level = [child for number in splits for child in nodes[number].children]
        self._is_rebuilt = False

    def _add_up_penalties(self) -> None:
        """Note what all costs from each node on."""
        nodes, penalties = self.nodes, [0.0] * len(self.nodes)
        for number in reversed(self._splits):
            node = nodes[number]
            own = node.penalty + self._leaf_penalty * (len(node.children) - 1)
            for child in node.children:
                own += penalties[child]
            penalties[number] = own
        self.penalties = penalties

    def below(self, start: int) -> list[int]:
        """A node and all below it, level by level."""
        found = [start]
        for number in found:
            found += self.nodes[number].children
        return found

    def change(self, splits: dict[int, Split | int]) -> None:
        """Give nodes of one level other splits, or let one of their branches take their place."""
        for number, new in splits.items():
            if isinstance(new, int):
                self._become(number, self.nodes[number].children[new])
            else:
                self._set(number, new, self.nodes[number].children)
        changed = list(splits)
        self.rows.send(changed)
        self._tidy(changed)
        self._unsettle(changed)

    def _set(self, number: int, split: Split | None, children: list[int]) -> None:
        node = self.nodes[number]
        if children is not node.children:
            self._is_rebuilt = True
            for child in children:
                self.nodes[child].parent = number
        node.split, node.children, node.settled_at = split, children, None
        self._price_parts(node)
        self.rows.set_split(number, split, children)

    def _price_parts(self, node: WorkingNode) -> None:
        node.penalty = 0.0
        if node.split is not None:
            node.penalty = self.price_of(node.split, node.part_penalty)

    def price_of(self, split: Split, part_penalty: float) -> float:
        """What the parts of a split beyond those of CART's cost, if a segment costs so much."""
        return price_of_parts(split, self.rows.bins, part_penalty, self._category_penalty)

    def _become(self, number: int, child: int) -> None:
        """Let a node take the place of its child; all others below it are gone."""
        only = self.nodes[child]
        split, children = only.split, only.children
        self.nodes[number].part_penalty, self.nodes[number].pairs = only.part_penalty, only.pairs
        # The child must have given up its children before another node leads to them.
        self.rows.set_split(child, None, [])
        self._set(number, split, children)

    def _tidy(self, changed: list[int]) -> None:
        """Remove what no row reaches, or what has one way only, at and below some nodes.

        All of them, and those below, have other rows than before.
        """
        self._known_pieces = None
        sizes, nodes = self.rows.sizes(), self.nodes
        for start in changed:
            for number in reversed(self.below(start)):
                children = nodes[number].children
                if children and sizes[number] > 0:
                    of_branches = [sizes[child] for child in children]
                    if 0 in of_branches:
                        self._drop_empty_branches(number, of_branches)
        if self._is_rebuilt:
            self._number()
        self._add_up_penalties()
        for start in changed:
            for number in self.below(start):
                nodes[number].settled_at = None
                if nodes[number].split is None:
                    self.changed_leaves.append(number)

    def _drop_empty_branches(self, number: int, sizes: list[int]) -> None:
        node = self.nodes[number]
        kept = [branch for branch, size in enumerate(sizes) if size > 0]
        if len(kept) == 1:
            self._become(number, node.children[kept[0]])
            return
        assert node.split is not None
        largest = kept.index(sizes.index(max(sizes)))
        split = keeping(node.split, kept, largest)
        self._set(number, split, [node.children[branch] for branch in kept])

    def _unsettle(self, changed: list[int]) -> None:
        """Let some nodes, and all above them, be looked at again."""
        for start in changed:
            number = start
            while number >= 0:
                self.nodes[number].settled_at = None
                number = self.nodes[number].parent

    def shape(self) -> list[Placed]:
        """Splits of all nodes and where these are, to go back to."""
        return [
            (n.split, n.children, n.parent, n.penalty, n.part_penalty, n.pairs) for n in self.nodes
        ]

    def go_back(self, shape: list[Placed]) -> None:
        """Be as the tree was when it had that shape."""
        for number, (node, before) in enumerate(zip(self.nodes, shape, strict=True)):
            node.split, node.children, node.parent = before[:3]
            node.penalty, node.part_penalty, node.pairs = before[3:]
            # Nodes must have given up their children before others lead to them.
            self.rows.set_split(number, None, [])
        for number in self.below(0):
            if self.nodes[number].split is not None:
                self.rows.set_split(number, self.nodes[number].split, self.nodes[number].children)
        self.rows.send([0])
        self._is_rebuilt = True
        self._tidy([0])

    def settle_shapes(self) -> bool:
        """Send bins without rows where the shape functions of the finished tree will send them.

        No row moves, so that nothing changes for nodes below. But other rows may fare better or
        worse in these nodes, so that they and those above are open again. Returns whether any split
        has changed.
        """
        changed = []
        for number, counts, largest in self._pieces():
            node = self.nodes[number]
            assert node.split is not None
            split = settled(node.split, counts, largest, self.rows.bins)
            if split is not node.split:
                self._set(number, split, node.children)
                changed.append(number)
        if changed:
            self._unsettle(changed)
            self._add_up_penalties()
        return bool(changed)

    def _pieces(self) -> Iterator[tuple[int, np.ndarray, int]]:
        """Every split node, its rows by piece, and its largest branch.

        They are kept until rows move, unless they would fill memory.
        """
        if self._known_pieces is not None:
            yield from self._known_pieces
            return
        weights = self.rows.weights(list(range(len(self.nodes))))
        batches = self._counted_together()
        for some in batches:
            largest = []
            for number in some:
                of_branches = [weights[child] for child in self.nodes[number].children]
                largest.append(of_branches.index(max(of_branches)))
            pieces = list(zip(some, self.rows.piece_counts(some), largest, strict=True))
            if len(batches) == 1:
                self._known_pieces = pieces
            yield from pieces

    def _counted_together(self) -> list[list[int]]:
        """Split nodes in groups whose rows can be counted at a time within the memory limit."""
        size = max(1, MAX_COUNTS // (1 + int(self.rows.n_bins.max())))
        return [self._splits[at : at + size] for at in range(0, len(self._splits), size)]

    def keeps_limits(self, start: int, split: Split, options: RefineOptions) -> bool:
        """Whether nodes and segments from a node on would have the rows they must, split so."""
        node, bins = self.nodes[start], self.rows.bins
        before = node.split
        self.rows.set_split(start, split, node.children)
        n_rows, weights, pieces = self.rows.pieces_below(start)
        self.rows.set_split(start, before, node.children)
        for number in self.below(start):
            size = n_rows[number]
            if size == 0:
                continue
            weight = size if weights is None else weights[number]
            if size < options.min_samples_leaf or weight < options.min_weight_leaf:
                return False
            own = split if number == start else self.nodes[number].split
            if own is None:
                continue
            if size < options.min_samples_split or (
                price_of_parts(own, bins, 1.0, 1.0) > 0
                and smallest_part(own, pieces[number], bins) < options.min_segment_rows
            ):
                return False
        return True

    def join_small_leaves(self, least: int) -> None:
        """Let leaves of fewer rows join the sibling that is most like them."""
        while True:
            leaves = self.leaves
            # Not the rows that are there, but how many these count as.
            counts = self.rows.describe(leaves).n_rows.tolist()
            sizes = dict(zip(leaves, counts, strict=True))
            small = [
                [leaf for leaf in level if sizes.get(leaf, least) < least]
                for level in self.levels[1:]
            ]
            # Of the deepest level, one leaf of a node at a time, the smallest first.
            deepest = next((leaves for leaves in reversed(small) if leaves), None)
            if deepest is None:
                return
            deepest.sort(key=lambda leaf: -sizes[leaf])
            leaf_of = {self.nodes[leaf].parent: leaf for leaf in deepest}
            for parent, leaf in leaf_of.items():
                self._join_sibling(parent, leaf)
            self.rows.send(list(leaf_of))
            self._tidy(list(leaf_of))

    def _join_sibling(self, parent: int, leaf: int) -> None:
        node = self.nodes[parent]
        siblings = [child for child in node.children if child != leaf]
        own, *others = self.rows.describe([leaf, *siblings]).value
        likest = int(np.argmin([np.abs(other - own).sum() for other in others]))
        if len(siblings) == 1:
            self._become(parent, siblings[0])
            return
        assert node.split is not None
        kept = [branch for branch, child in enumerate(node.children) if child != leaf]
        self._set(parent, keeping(node.split, kept, likest), siblings)

    def finished(self) -> TreeNode:
        """The tree, with its shape functions and the statistics of its rows."""
        numbers = [number for level in self.levels for number in level]
        made = dict(zip(numbers, map(TreeNode, self.rows.describe(numbers)), strict=True))
        for number in numbers:
            made[number].children = [made[child] for child in self.nodes[number].children]
        for number, counts, largest in self._pieces():
            split = self.nodes[number].split
            assert split is not None
            made[number].shape = finished_shape(split, counts, largest, self.rows.bins)
        return made[0]
