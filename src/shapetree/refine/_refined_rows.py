"""Rows of a tree under refinement, in this process, and what refinement asks of any holder.

Nodes are named by their numbers, and every answer is a sum over a node's rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from shapetree._core.histogram import Targets
from shapetree._core.pieces import PairCuts
from shapetree._core.routing import LeafLosses, RoutedRows
from shapetree._core.rows import NodeRows
from shapetree._core.search import BinSplit
from shapetree._threads import feature_chunks, threads_for
from shapetree.data._map_join import (
    Inquiry,
    LocalParts,
    Question,
    Result,
    Then,
    add,
    add_each,
    run_inquiries,
)
from shapetree.data._statistics import Statistics
from shapetree.data._sums import on_grid
from shapetree.data._targets import ClassGoal, Goal, RegressionGoal
from shapetree.grow._grower import describe
from shapetree.grow._local import LocalRows
from shapetree.grow._rows_of_node import LocalRowsOfNode, RowsOfNode
from shapetree.grow._splits import Split
from shapetree.tree._shape import PairShape

if TYPE_CHECKING:
    from shapetree.refine._joined_refined_rows import JoinedRefinedRows

# Groups of rows by how many times their regret is what they lose in their second best branch.
RATIOS_PER_OCTAVE = 4
N_RATIOS = 128
# What takes a row as long as so many visits by a feature: to be sent down from a node, and to be
# added to the sums of its leaf.
VISITS_PER_SENDING = 8
VISITS_PER_SUM = 3
# Memory that a level's cells may take at a time.
MAX_CELL_BYTES = 2**23

# Nodes of a level, and what `branch_losses` asks for them.
Level: TypeAlias = tuple[list[int], np.ndarray, np.ndarray]
# What each branch costs the rows of some nodes, rows that care, and what these lose at least.
Losses: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]


class LossCells(NamedTuple):
    """Losses by bin and branch of some nodes of a level; *cells* are bins with rows that care."""

    # Where the cells of each node and feature start, and how many there are. (n_nodes, n_features).
    starts: np.ndarray
    n_cells: np.ndarray
    bins: np.ndarray  # each cell's bin, the missing one last
    # What branch 1, 2, .. costs their rows beyond branch 0. (n_cells, max_branches - 1).
    losses: np.ndarray

    def of(self, node: int, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """Bins and losses of one node's cells under one feature."""
        start = self.starts[node, feature]
        cells = slice(start, start + self.n_cells[node, feature])
        return self.bins[cells], self.losses[cells]


@dataclass(frozen=True)
class CareSet:
    """Rows of a node for which branches differ, local or remote."""

    # Makes a `LocalCareSet` of what is asked: a part of the rows under the tree, or all.
    at: Callable[..., Any]
    n_branches: int
    n_rows: int
    # What all of them lose in their best branches, beyond branch 0, and what they would lose more
    # than that, over all branches.
    least: float
    regret: float

    def losses_by_ratio(self) -> Inquiry[np.ndarray]:
        """What rows lose in their second best branch, and their regrets, both in sum.

        They are grouped by the logarithm of the ratio of the two, (N_RATIOS, 2).
        """
        return (yield Question(Then(self.at, LocalCareSet.losses_by_ratio), add))

    def as_classes(self, divisor: float, unit: float) -> RowsOfNode:
        """The rows as if their best branches were classes, and their regrets weights."""
        of = partial(LocalCareSet.as_classes, divisor=divisor, unit=unit)
        return RowsOfNode(Then(self.at, of), self.n_rows)

    def as_copies(self, divisor: float, unit: float) -> Inquiry[RowsOfNode]:
        """The rows once for each branch in which they lose least, which is the copy's class.

        Copies weigh what their row loses more where it loses most.
        """
        of = partial(LocalCareSet.as_copies, divisor=divisor, unit=unit)
        return (yield from RowsOfNode.counted(Then(self.at, of)))

    def region_losses(self, shape: PairShape) -> Inquiry[np.ndarray]:
        """What rows lose in each branch beyond branch 0, by region; missing values last."""
        of = partial(LocalCareSet.region_losses, shape=shape)
        return (yield Question(Then(self.at, of), add))


@dataclass(frozen=True)
class LocalCareSet:
    """Rows of a part for which branches differ; what is asked of a `CareSet` is asked of these."""

    holder: LocalRows
    rows: np.ndarray  # their numbers
    losses: np.ndarray  # in branch 1, 2, .. beyond branch 0; (n_rows, max_branches - 1)
    n_branches: int
    _made: dict[Any, LocalRowsOfNode] = field(default_factory=dict, repr=False)

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.rows)

    @cached_property
    def _by_branch(self) -> np.ndarray:
        """What each row loses in each branch, beyond branch 0."""
        losses = np.zeros((self.n_rows, self.n_branches))
        losses[:, 1:] = self.losses[:, : self.n_branches - 1]
        return losses

    @cached_property
    def _least(self) -> np.ndarray:
        """What each row loses in its best branch, beyond branch 0."""
        return self._by_branch.min(axis=1)

    @cached_property
    def _regrets(self) -> np.ndarray:
        """What each row would lose more than in its best branch, over all branches."""
        return self._by_branch.sum(axis=1) - self.n_branches * self._least

    @property
    def least(self) -> float:
        """What all of them lose in their best branches, beyond branch 0."""
        return float(self._least.sum())

    @property
    def regret(self) -> float:
        """What all of them would lose more than in their best branches, over all branches."""
        return float(self._regrets.sum())

    def losses_by_ratio(self) -> np.ndarray:
        """What rows lose in their second best branch, and their regrets, both in sum."""
        ranked = np.partition(self._by_branch, 1, axis=1)
        loss = ranked[:, 1] - ranked[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log2(self._regrets / loss) * RATIOS_PER_OCTAVE
        group = np.clip(np.nan_to_num(ratio, nan=N_RATIOS), 0, N_RATIOS - 1).astype(np.intp)
        return np.stack(
            [np.bincount(group, of_rows, minlength=N_RATIOS) for of_rows in (loss, self._regrets)],
            axis=1,
        )

    def as_classes(self, divisor: float, unit: float) -> LocalRowsOfNode:
        """The rows as if their best branches were classes, and their regrets weights.

        Regrets are divided, and rounded to a grid of some unit.
        """
        if (divisor, unit) not in self._made:  # there is one question after another
            every = np.arange(self.n_rows)
            labels, weights = self._by_branch.argmin(axis=1), self._regrets / divisor
            self._made[divisor, unit] = self._as_rows(every, labels, weights, unit)
        return self._made[divisor, unit]

    def as_copies(self, divisor: float, unit: float) -> LocalRowsOfNode:
        """The rows once for each branch in which they lose least, see `CareSet`."""
        places, labels = np.nonzero(self._by_branch == self._least[:, None])
        spread = self._by_branch.max(axis=1) - self._least
        return self._as_rows(places, labels, spread[places] / divisor, unit)

    def _as_rows(
        self, places: np.ndarray, labels: np.ndarray, weights: np.ndarray, unit: float
    ) -> LocalRowsOfNode:
        """The rows at some places as if branches were classes."""
        rows, goal = self.rows[places], self.holder.goal
        own = 1.0 if goal.weights is None else goal.weights[rows]
        # Rounded before it is multiplied, so that a weight of n is n rows.
        weights = on_grid(on_grid(weights / own, unit) * own, unit)
        counts = None if goal.counts is None else goal.counts[rows]
        classes = labels.astype(np.int32)[:, None]
        targets = Targets(classes, None, weights, self.n_branches, counts=counts)
        return self.holder.some(rows, targets, weights, in_order=True)

    def region_losses(self, shape: PairShape) -> np.ndarray:
        """What rows lose in each branch beyond branch 0, by region; missing values last."""
        n_regions = len(shape.branch_of_piece)
        n_threads = threads_for(len(self.rows), self.holder.n_threads)
        cuts = PairCuts(self.holder.values, shape, to_regions=True)
        region = cuts.branches(self.rows, n_threads)
        losses = np.zeros((n_regions + 1, self.n_branches))
        for branch in range(1, self.n_branches):
            losses[:, branch] = np.bincount(
                region, self.losses[:, branch - 1], minlength=n_regions + 1
            )
        return losses


class LocalRefinedRows:
    """Rows in memory, of a tree under refinement.

    `JoinedRefinedRows` answers the same for rows of several holders. The tree will have at most
    `n_nodes` nodes, with at most `max_branches` branches each.
    """

    def __init__(self, rows: LocalRows, n_nodes: int, max_branches: int) -> None:
        binned = rows.binned
        self.rows = rows
        self.bins = binned.features
        self.n_bins = binned.n_bins
        self.is_categorical = binned.categorical.view(np.uint8)
        self.n_nodes = n_nodes
        self.max_branches = max_branches
        self.n_threads = rows.n_threads
        self._goal = rows.goal
        self._losses = leaf_losses_of(rows.goal)
        self._offsets = binned.offsets
        self._places = rows.places
        self._routed = RoutedRows(binned.columns, rows.places, n_nodes, max_branches)
        self._known_sizes: list[int] | None = None  # until rows move
        self._care: list[LocalCareSet] | None = None  # of the level whose losses were asked for
        self._found: tuple[Level, Losses] | None = None  # until rows move or splits change

    def run(self, inquiries: Sequence[Inquiry[Result]]) -> list[Result]:
        """Results of inquiries that ask functions of this class; see `Rows`."""
        return run_inquiries(inquiries, LocalParts([self]), n_at_once=1)

    def reorder_rows(self) -> None:
        """Move the rows in memory to where they stand in the tree, and number them so.

        Then a loop over the rows of a node reads memory in one direction: where columns are larger
        than caches, that saves most of the time. Only for bins that nothing else reads, and trees
        without pairs, whose values stay where they are.
        """
        goal = self._goal.reordered(self._routed.reorder_rows(self.n_threads))
        self.rows, self._goal = self.rows.with_goal(goal), goal
        self._losses = leaf_losses_of(goal)

    def stand_at(self, places: NodeRows) -> None:
        """Go on with a copy of where the rows are."""
        self.rows, self._places = self.rows.placed(places), places
        self._routed.stand_at(places)

    # The tree

    def set_split(self, node: int, split: Split | None, children: list[int]) -> None:
        """Give a node another split, or make it a leaf; its rows stay where they are."""
        self._found = None
        if split is None:
            self._routed.set_leaf(node)
        elif isinstance(split, BinSplit):
            self._routed.set_bins(node, children, split.feature, split.branch_of_bin)
        else:
            self._routed.set_cuts(node, children, PairCuts(self.rows.values, split.cuts))

    def send(self, nodes: list[int]) -> None:
        """Send the rows of some nodes, none below another, to the leaves below."""
        self._routed.send(_numbers(nodes), self._threads_for(nodes, VISITS_PER_SENDING))
        self._known_sizes = self._care = self._found = None

    # Statistics

    def sizes(self) -> list[int]:
        """Numbers of rows of all nodes."""
        if self._known_sizes is None:
            self._known_sizes = self._places.sizes(self.n_nodes)
        return self._known_sizes

    def weights(self, nodes: list[int]) -> list[float]:
        """Weights of nodes' rows."""
        if self._goal.weights is None:
            sizes = self.sizes()
            return [float(sizes[node]) for node in nodes]
        return [float(self._goal.weights[self.rows_of(node)].sum()) for node in nodes]

    def describe(self, nodes: list[int]) -> Statistics:
        """Statistics of nodes."""
        numbers = _numbers(nodes)
        return describe(self.rows, numbers, self.rows.totals(numbers))

    def rows_of(self, node: int) -> np.ndarray:
        """Rows of a node."""
        return self.rows.rows_of(node)

    def piece_counts(self, nodes: list[int]) -> list[np.ndarray]:
        """Rows of split nodes in each bin, or in each region of a pair, missing values last."""
        n_threads = self._threads_for(nodes, VISITS_PER_SUM)
        return self._routed.piece_counts(_numbers(nodes), n_threads)

    def pieces_below(
        self, node: int
    ) -> tuple[np.ndarray, np.ndarray | None, dict[int, np.ndarray]]:
        """Rows, weights and pieces of nodes if a node's rows were sent down now."""
        return self._routed.pieces_below(node, self._goal.weights, self._goal.counts)

    def branch_counts(self, node: int, split: Split) -> np.ndarray:
        """Rows of a node in each branch under another split."""
        return self.rows.at(node).branch_counts(split)

    # Leaves

    def leaf_sums(self, nodes: list[int]) -> np.ndarray:
        """What nodes' rows add up to: weight of each class, or of all rows and of y."""
        n_threads = self._threads_for(nodes, VISITS_PER_SUM)
        return self._routed.leaf_sums(_numbers(nodes), self._losses, n_threads)

    def leaf_ranges(self, nodes: list[int]) -> np.ndarray:
        """Least and greatest y of nodes' rows, of shape (n_nodes, 2, n_outputs)."""
        n_threads = self._threads_for(nodes, VISITS_PER_SUM)
        return self._routed.leaf_ranges(_numbers(nodes), self._losses, n_threads)

    def leaf_medians(self, nodes: list[int]) -> np.ndarray:
        """Medians of nodes' rows, of shape (n_nodes, n_outputs)."""
        assert isinstance(self._goal, RegressionGoal)
        return np.array([self._goal.standardised_medians(self.rows_of(node)) for node in nodes])

    def leaf_totals(self, nodes: list[int], table: np.ndarray, anchors: np.ndarray) -> np.ndarray:
        """Loss of nodes' rows as leaves, whose lines stand in a table of all nodes."""
        n_threads = self._threads_for(nodes, VISITS_PER_SUM)
        return self._routed.leaf_totals(_numbers(nodes), self._losses, table, anchors, n_threads)

    # Losses of a level

    def losses_of_level(
        self, nodes: list[int], table: np.ndarray, anchors: np.ndarray
    ) -> Inquiry[Losses]:
        """What each branch would cost the rows of one level's nodes."""
        of = partial(LocalRefinedRows.branch_losses, nodes=nodes, table=table, anchors=anchors)
        return (yield Question(of, add_each))

    def branch_losses(self, nodes: list[int], table: np.ndarray, anchors: np.ndarray) -> Losses:
        """Find out what each branch would cost the rows of one level's nodes, in their order.

        `table` has the lines of all leaves, and `anchors` powers of two that no node's loss
        exceeds. What is found is described in `RoutedRows.branch_losses`.
        """
        self._care = None
        n_threads = self._threads_for(nodes, VISITS_PER_SENDING)
        return self._routed.branch_losses(_numbers(nodes), self._losses, table, anchors, n_threads)

    def look(self, level: Level) -> Losses:
        """What `branch_losses` finds out about a level, unless that is known."""
        if self._found is not None:
            nodes, *tables = self._found[0]
            if nodes == level[0] and all(map(np.array_equal, tables, level[1:])):
                return self._found[1]
        self._found = level, self.branch_losses(*level)
        return self._found[1]

    def loss_cells(self, wanted: np.ndarray) -> Iterator[tuple[int, LossCells]]:
        """Losses by bin and branch of the level's nodes, as many at a time as memory allows.

        And the number of the first of these nodes in the level. Nodes that are not wanted (uint8,
        one for each) have no cells.
        """
        max_cells = MAX_CELL_BYTES // (8 * self.max_branches - 4)
        n_features, first = len(self.bins), 0
        while first < len(wanted):
            room = self._routed.room_for_cells(first, self._offsets, wanted, max_cells)
            last, n_rows, cells = room
            n_threads = threads_for(n_rows * n_features, self.n_threads)
            for low, high in feature_chunks(n_features, n_rows):
                self._routed.loss_cells(
                    first, last, self._offsets, cells, low, high, n_threads, wanted[first:last]
                )
            yield first, LossCells(*cells)
            first = last

    def care_sets(self, n_branches: list[int]) -> list[CareSet]:
        """Rows of each node of the level that care, given the nodes' numbers of branches."""
        return care_sets_of(n_branches, self.sums_of_care(n_branches))

    def care_set(self, n_branches: list[int], number: int) -> LocalCareSet:
        """Rows of one node of the level that care."""
        return self._care_sets(n_branches)[number]

    def sums_of_care(self, n_branches: list[int]) -> list[np.ndarray]:
        """Numbers of rows that care, what they lose at least, and their regrets."""
        sums = [[care.n_rows, care.least, care.regret] for care in self._care_sets(n_branches)]
        return list(np.array(sums, dtype=np.float64).reshape(-1, 3).T)

    def _care_sets(self, n_branches: list[int]) -> list[LocalCareSet]:
        if self._care is None:
            self._care = [
                LocalCareSet(self.rows, care, losses, n)
                for (care, losses), n in zip(self._routed.care_sets(), n_branches, strict=True)
            ]
        return self._care

    def _threads_for(self, nodes: list[int], visits: int = 1) -> int:
        if self.n_threads == 1 or threads_for(visits * self.rows.n_rows, self.n_threads) == 1:
            return 1  # whichever nodes these are
        sizes = self.sizes()
        return threads_for(visits * sum(sizes[node] for node in nodes), self.n_threads)


def leaf_losses_of(goal: Goal) -> LeafLosses:
    """What it costs to send a row to a leaf."""
    if isinstance(goal, ClassGoal):
        return LeafLosses(goal.labels, None, goal.weights, int(goal.starts[-1]))
    assert isinstance(goal, RegressionGoal)
    y = goal.standardised
    return LeafLosses(
        None, y, goal.weights, y.shape[1], absolute=goal.is_absolute,
        anchors=3 * powers_above(goal.total_weight * goal.greatest),
    )  # fmt: skip


def powers_above(numbers: np.ndarray) -> np.ndarray:
    """The next greater power of two of each; 0 where that is beyond all numbers."""
    powers = np.ldexp(1.0, np.frexp(numbers)[1])
    return np.where(np.isfinite(powers) & np.isfinite(numbers), powers, 0.0)


def _numbers(nodes: list[int]) -> np.ndarray:
    return np.array(nodes, dtype=np.int32)


# Those of a tree, wherever they are.
RefinedRows: TypeAlias = "LocalRefinedRows | JoinedRefinedRows"


def care_sets_of(n_branches: list[int], sums: list[np.ndarray]) -> list[CareSet]:
    """What is known of the rows that care of a level's nodes, and how to ask for more."""
    return [
        CareSet(
            partial(LocalRefinedRows.care_set, n_branches=n_branches, number=number),
            n_branches[number], int(n_rows), float(least), float(regret),
        )
        for number, (n_rows, least, regret) in enumerate(zip(*sums, strict=True))
    ]  # fmt: skip
