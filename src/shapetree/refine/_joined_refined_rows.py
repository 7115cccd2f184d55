"""Rows of several holders under a tree that is refined, and what each holder keeps of the tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from shapetree._core.histogram import join_cells
from shapetree.data._map_join import (
    Inquiry,
    Join,
    MappedParts,
    Question,
    Result,
    Then,
    add,
    add_each,
    run_inquiries,
)
from shapetree.data._statistics import Statistics
from shapetree.data._targets import ClassGoal, RegressionGoal
from shapetree.grow._grower import describe
from shapetree.grow._joined_rows import INQUIRIES_AT_ONCE, JoinedRows
from shapetree.grow._local import LocalRows
from shapetree.grow._splits import Split
from shapetree.refine._refined_rows import (
    CareSet,
    Level,
    LocalRefinedRows,
    LossCells,
    Losses,
    care_sets_of,
)

# --- a part ---


@dataclass
class RefinedPart:
    """A part of the rows under a tree that is refined. It never changes: each method makes another.

    See `LocalRefinedRows`.
    """

    rows: LocalRows
    n_nodes: int
    max_branches: int
    # Splits and children of nodes.
    splits: dict[int, tuple[Split | None, list[int]]] = field(default_factory=dict)
    level: Level | None = None  # whose branches' losses are known
    _tree: LocalRefinedRows | None = field(default=None, repr=False)

    @classmethod
    def start(cls, rows: LocalRows, n_nodes: int, max_branches: int) -> RefinedPart:
        """The rows where they are, under a tree whose splits are not known yet."""
        return cls(rows.placed(rows.places.copy()), n_nodes, max_branches)

    def __reduce__(self) -> Any:
        known = self.rows, self.n_nodes, self.max_branches, self.splits, self.level
        return RefinedPart, known

    @property
    def bytes_of_tree(self) -> int:
        """Memory of what was made to refine: a row's number, and its loss in branches but one."""
        n_rows = 0 if self._tree is None else self.rows.n_rows
        return n_rows * (4 + 8 * (self.max_branches - 1))

    def set_splits(self, splits: list[tuple[int, Split | None, list[int]]]) -> RefinedPart:
        """Give nodes other splits, or make them leaves."""
        new, tree = dict(self.splits), self._handed_on()
        for node, split, children in splits:
            new[node] = split, children
            if tree is not None:
                tree.set_split(node, split, children)
        return replace(self, splits=new, level=None, _tree=tree)

    def send(self, nodes: list[int]) -> RefinedPart:
        """Send the rows of some nodes, none below another, to the leaves below."""
        rows, tree = self.rows.placed(self.rows.places.copy()), self._handed_on()
        if tree is not None:
            tree.stand_at(rows.places)
        moved = replace(self, rows=rows, level=None, _tree=tree)
        moved.tree().send(nodes)
        return moved

    def _handed_on(self) -> LocalRefinedRows | None:
        """The tree for the part that follows: to make one takes time, and much memory.

        Asking this one again makes another, of what it knows.
        """
        tree, self._tree = self._tree, None
        return tree

    def look(self, level: Level) -> RefinedPart:
        """The same part, which knows what the branches of a level cost."""
        # What was found of the level when it was asked for is still known.
        return replace(self, level=level)

    def reorder_rows(self) -> RefinedPart:
        """The same rows, numbered as they stand in the tree; see `LocalRefinedRows`."""
        places = self.rows.places.copy()
        rows = self.rows.in_order(places.order)
        places.renumber()
        return replace(self, rows=rows.placed(places), level=None, _tree=None)

    def tree(self) -> LocalRefinedRows:
        """The rows under the tree, made of what is known of it."""
        if self._tree is None:
            tree = LocalRefinedRows(self.rows, self.n_nodes, self.max_branches)
            for node, (split, children) in self.splits.items():
                if split is not None:
                    tree.set_split(node, split, children)
            self._tree = tree
        if self.level is not None:
            self._tree.look(self.level)
        return self._tree


# --- what is asked of a part's tree ---


def all_nodes(tree: LocalRefinedRows, leaves: list[int]) -> tuple[np.ndarray, ...]:
    """Numbers of rows of all nodes, and of some leaves: sums, and least and greatest numbers."""
    has_numbers = isinstance(tree.rows.goal, RegressionGoal)
    ranges = tree.leaf_ranges(leaves) if has_numbers else np.empty((len(leaves), 2, 0))
    return np.array(tree.sizes()), tree.leaf_sums(leaves), ranges


def losses(tree: LocalRefinedRows, level: Level) -> tuple[Losses, tuple[np.ndarray, ...]]:
    """What `branch_losses` answers for a level, and losses by bin and branch of all nodes."""
    found = tree.look(level)
    each = [cells for _, cells in tree.loss_cells((found[1] > 0).view(np.uint8))]
    if len(each) == 1:
        return found, tuple(each[0])
    n_before = np.cumsum([0, *(len(cells.bins) for cells in each)])
    starts = [cells.starts + n for cells, n in zip(each, n_before, strict=False)]
    others = zip(*(cells[1:] for cells in each), strict=True)
    return found, join_cells([(np.concatenate(starts), *map(np.concatenate, others))])


# --- all parts ---


class JoinedRefinedRows:
    """Rows of several holders, of a tree under refinement; see `LocalRefinedRows`."""

    def __init__(self, rows: JoinedRows, n_nodes: int, max_branches: int) -> None:
        self.rows = rows
        self.n_nodes = n_nodes
        self.max_branches = max_branches
        self.n_threads = rows.n_threads
        self.bins, self.n_bins = rows.binned.features, rows.binned.n_bins
        self.is_categorical = rows.binned.categorical.view(np.uint8)
        self._parts = rows.parts
        self._new_splits: list[tuple[int, Split | None, list[int]]] = []
        self._level: Level
        self._cells: LossCells
        self._children: dict[int, list[int]] = {}
        self._known: _AllNodes | None = None
        self._is_known = False
        self._changed = set(range(n_nodes))
        self._parts.change(partial(RefinedPart.start, n_nodes=n_nodes, max_branches=max_branches))

    def _ask(self, of: Callable[..., Any], join: Join = add) -> Any:
        self._tell_splits()
        return self._parts.ask(Then(RefinedPart.tree, of), join)

    def _change(self, make: Callable[..., Any]) -> None:
        self._tell_splits()
        self._parts.change(make)

    def _tell_splits(self) -> None:
        """Have all parts know splits that were set since they were told any."""
        if self._new_splits:
            splits, self._new_splits = self._new_splits, []
            self._parts.change(partial(RefinedPart.set_splits, splits=splits))

    def run(self, inquiries: Sequence[Inquiry[Result]]) -> list[Result]:
        """Results of inquiries, some of them at once."""
        self._tell_splits()
        parts = MappedParts(self._parts, RefinedPart.tree)
        return run_inquiries(inquiries, parts, INQUIRIES_AT_ONCE)

    def set_split(self, node: int, split: Split | None, children: list[int]) -> None:
        """Give a node another split, or make it a leaf; its rows stay where they are."""
        self._new_splits.append((node, split, list(children)))
        self._changed.update(_below(self._children, node))
        self._children[node] = list(children)
        self._changed.update(_below(self._children, node))

    def send(self, nodes: list[int]) -> None:
        """Send the rows of some nodes, none below another, to the leaves below."""
        self._change(partial(RefinedPart.send, nodes=list(nodes)))
        for node in nodes:
            self._changed.update(_below(self._children, node))
        self._is_known = False

    def reorder_rows(self) -> None:
        """Number the rows as they stand in the tree; see `LocalRefinedRows`."""
        self._change(RefinedPart.reorder_rows)

    def sizes(self) -> list[int]:
        """Numbers of rows of all nodes."""
        return self._all_nodes().sizes

    def _all_nodes(self) -> _AllNodes:
        """What one round tells of all nodes; leaves that have not changed are known."""
        if self._known is None or not self._is_known:
            leaves = [node for node in sorted(self._changed) if not self._children.get(node)]
            sizes, *found = self._ask(partial(all_nodes, leaves=leaves), join_nodes)
            if self._known is None:
                before = [np.zeros((self.n_nodes, *some.shape[1:])) for some in found]
            else:
                before = list(self._known[2:])
            for of_all, of_some in zip(before, found, strict=True):
                of_all[leaves] = of_some
            # Where splits change without sending rows, these are still where they were.
            self._known = _AllNodes(self._children.copy(), sizes.tolist(), *before)
            self._is_known, self._changed = True, set()
        return self._known

    def _over_leaves(
        self, of_leaf: np.ndarray, nodes: list[int], join: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """What is known of leaves, joined for nodes above them."""
        children, each = self._all_nodes().children, []
        for node in nodes:
            leaves = [number for number in _below(children, node) if not children.get(number)]
            each.append(join(of_leaf[leaves], axis=0))
        return np.array(each)

    def weights(self, nodes: list[int]) -> list[float]:
        """Weights of nodes' rows."""
        goal = self.rows.goal
        # Every row has a class of the first output; with numbers, weights come first.
        n_sums = goal.starts[1] if isinstance(goal, ClassGoal) else 1
        return self.leaf_sums(nodes)[:, :n_sums].sum(axis=1).tolist()

    def describe(self, nodes: list[int]) -> Statistics:
        """Statistics of nodes."""
        numbers = np.array(nodes, dtype=np.int32)
        return describe(self.rows, numbers, self.rows.totals(numbers))

    def piece_counts(self, nodes: list[int]) -> list[np.ndarray]:
        """Rows of split nodes in each bin, or in each region of a pair, missing values last."""
        return list(self._ask(partial(LocalRefinedRows.piece_counts, nodes=nodes), add_each))

    def pieces_below(
        self, node: int
    ) -> tuple[np.ndarray, np.ndarray | None, dict[int, np.ndarray]]:
        """Rows, weights and pieces of nodes if a node's rows were sent down now."""
        n_rows, weights, pieces = self._ask(
            partial(LocalRefinedRows.pieces_below, node=node), join_pieces
        )
        return n_rows, weights, pieces

    def leaf_sums(self, nodes: list[int]) -> np.ndarray:
        """What nodes' rows add up to: weight of each class, or of all rows and of y."""
        return self._over_leaves(self._all_nodes().sums, nodes, np.sum)

    def leaf_ranges(self, nodes: list[int]) -> np.ndarray:
        """Least and greatest y of nodes' rows, of shape (n_nodes, 2, n_outputs)."""
        ranges = self._all_nodes().ranges
        least = self._over_leaves(ranges[:, 0], nodes, np.min)
        return np.stack([least, self._over_leaves(ranges[:, 1], nodes, np.max)], axis=1)

    def leaf_medians(self, nodes: list[int]) -> np.ndarray:
        """Medians of nodes' rows, of shape (n_nodes, n_outputs)."""
        return self.rows.medians_of(nodes, True)

    def losses_of_level(
        self, nodes: list[int], table: np.ndarray, anchors: np.ndarray
    ) -> Inquiry[Losses]:
        """What each branch would cost the rows of one level's nodes."""
        # The table goes on to change.
        self._level = list(nodes), table.copy(), anchors
        found, cells = yield Question(partial(losses, level=self._level), join_losses)
        self._cells = LossCells(*cells)
        sums, n_care, least = found
        return sums, n_care, least

    def loss_cells(self, wanted: np.ndarray) -> Iterator[tuple[int, LossCells]]:
        """Losses by bin and branch of the level's nodes, which came with those by branch."""
        cells = self._cells
        yield 0, cells._replace(n_cells=cells.n_cells * wanted[:, None])

    def care_sets(self, n_branches: list[int]) -> list[CareSet]:
        """Rows of each node of the level that care; the nodes have so many branches."""
        self._change(partial(RefinedPart.look, level=self._level))
        sums = self._ask(partial(LocalRefinedRows.sums_of_care, n_branches=n_branches), add_each)
        return care_sets_of(n_branches, sums)


class _AllNodes(NamedTuple):
    """What is known of all nodes, by what were their children when it was asked."""

    children: dict[int, list[int]]
    sizes: list[int]
    sums: np.ndarray  # of leaves, see `leaf_sums`
    ranges: np.ndarray  # of leaves, see `leaf_ranges`; nothing of classes


def _below(children: dict[int, list[int]], node: int) -> list[int]:
    """A node, and all below it."""
    below = [node]
    for number in below:
        below += children.get(number, [])
    return below


def join_nodes(answers: list[Any]) -> tuple[np.ndarray, ...]:
    """Join what parts tell of all nodes."""
    sizes, sums, ranges = zip(*answers, strict=True)
    least, greatest = np.min(ranges, axis=0)[:, 0], np.max(ranges, axis=0)[:, 1]
    return add(sizes), add(sums), np.stack([least, greatest], axis=1)


def join_losses(answers: list[Any]) -> tuple[list[np.ndarray], tuple[np.ndarray, ...]]:
    """Join losses by branch, and by bin and branch."""
    found, cells = zip(*answers, strict=True)
    return add_each(found), join_cells(list(cells))


def join_pieces(answers: list[Any]) -> tuple[Any, Any, dict[int, np.ndarray]]:
    """Join rows, weights and pieces of nodes."""
    n_rows, weights, pieces = zip(*answers, strict=True)
    joined = {number: add([part[number] for part in pieces]) for number in pieces[0]}
    return add(n_rows), None if weights[0] is None else add(weights), joined
