"""What a tree under refinement loses on its training rows, and what complexity costs beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from shapetree._core.routing import LeafLosses, Router
from shapetree._threads import threads_for
from shapetree.data._targets import ClassGoal, Goal, MedianGoal, RegressionGoal
from shapetree.grow._nodes import rows_by_node

# A wrongly classified row loses 1. Ties between branches that classify alike are many, and what
# decides between them is how sure the leaves are: half of the Gini score, at this share.
SCORE_SHARE = 0.5
# Share of all that there is to explain below which rounding is all that is left.
NEGLIGIBLE = 1e-12


class TreeLoss(ABC):
    """The loss of all rows in their leaves, and how it compares with complexity.

    Attributes
    ----------
    rows : LeafLosses
        What it costs to send a row to a leaf.
    min_rows_of_pairs : int
        Rows of a node from which on pairs are fitted that need not hold up on new rows.
    """

    rows: LeafLosses
    min_rows_of_pairs: int = 0

    @abstractmethod
    def fit_leaves(self, leaves: np.ndarray, n_nodes: int) -> np.ndarray:
        """Lines of the leaves in the table that `rows` reads, each the best for its own rows.

        Parameters
        ----------
        leaves : int array of shape (n_rows,)
            Leaf of each row.
        n_nodes : int
            Number of lines; those of nodes without rows are 0.
        """

    def total(self, leaves: np.ndarray, table: np.ndarray) -> float:
        """Loss of all rows in their leaves."""
        return self.rows.total(leaves, table)

    def price(self, total: float) -> float:
        """Loss that a penalty of 1 is worth where the tree loses so much in total."""
        return 1.0

    def objective(self, total: float) -> float:
        """The tree's loss on the scale of penalties, on which it may never rise."""
        return total


class ClassLoss(TreeLoss):
    """Rows of the wrong class, and a little of how unsure leaves are; penalties are in rows."""

    def __init__(self, goal: ClassGoal) -> None:
        self._starts = goal.starts
        self.rows = LeafLosses(goal.labels, None, goal.weights)

    def fit_leaves(self, leaves: np.ndarray, n_nodes: int) -> np.ndarray:
        """Loss of a row of each class in each leaf."""
        counts = np.zeros((n_nodes, self._starts[-1]))
        found = self.rows.sums(leaves, n_nodes)
        counts[:, : found.shape[1]] = found
        table = np.zeros_like(counts)
        for start, stop in zip(self._starts, self._starts[1:], strict=False):
            count = counts[:, start:stop]
            share = count / np.maximum(count.sum(axis=1, keepdims=True), np.finfo(float).tiny)
            score = (1 - 2 * share + (share**2).sum(axis=1, keepdims=True)) / 2
            is_wrong = np.arange(stop - start) != share.argmax(axis=1)[:, None]
            table[:, start:stop] = is_wrong + SCORE_SHARE * score
        return table


class NumberLoss(TreeLoss):
    """Squared or absolute differences; penalties are in rows that lose as much as the average one.

    Noise is then the yardstick, whatever the scale of y. As the average falls with the tree's own
    loss, the objective takes its logarithm: to lower the loss by 1 % is worth as much as 1 % of
    the rows, at any level.
    """

    # A few rows that are far off weigh as much as thousands; in small nodes regions chase them.
    min_rows_of_pairs = 1_000

    def __init__(self, goal: RegressionGoal) -> None:
        self._goal = goal
        self._is_absolute = isinstance(goal, MedianGoal)
        self.rows = LeafLosses(None, goal.standardised, goal.weights, absolute=self._is_absolute)
        self._weight = goal.total_weight
        everything = np.zeros(self.rows.n_rows, dtype=np.int32)
        self._greatest = self.total(everything, self.fit_leaves(everything, 1))

    def fit_leaves(self, leaves: np.ndarray, n_nodes: int) -> np.ndarray:
        """What each leaf predicts, for every output."""
        if self._is_absolute:
            return self._medians(leaves, n_nodes)
        sums = self.rows.sums(leaves, n_nodes)
        return sums[:, 1:] / np.maximum(sums[:, :1], np.finfo(float).tiny)

    def _medians(self, leaves: np.ndarray, n_nodes: int) -> np.ndarray:
        table = np.zeros((n_nodes, self.rows.n_outputs))
        for leaf, rows in rows_by_node(leaves, n_nodes).items():
            table[leaf] = self._goal.standardised_medians(rows)
        return table

    def price(self, total: float) -> float:
        """Loss that a penalty of 1 is worth: that of a row on average."""
        return self._clipped(total) / self._weight

    def objective(self, total: float) -> float:
        """Logarithm of the loss, as a number of rows; 0 for the root alone."""
        if self._greatest == 0.0:
            return 0.0
        return self._weight * float(np.log(self._clipped(total) / self._greatest))

    def _clipped(self, total: float) -> float:
        return max(total, NEGLIGIBLE * self._greatest, np.finfo(float).tiny)


class BranchLosses:
    """What each branch would cost the rows of one level's nodes; level after level.

    Parameters
    ----------
    n_rows, n_branches : int
        Training rows, and most branches of a node.

    Attributes
    ----------
    others : array of shape (n_rows, n_branches - 1)
        What a row loses in branch 1, 2, .. beyond branch 0.
    cares : bool array of shape (n_rows,)
        Whether branches differ.
    present, first : arrays of shape (n_nodes,)
        Loss of each node's rows in their own branches, and in branch 0.
    added : array of shape (n_nodes, n_branches - 1)
        What branch 1, 2, .. adds to the latter.
    price : float
        Loss that a penalty of 1 is worth.
    """

    def __init__(self, n_rows: int, n_branches: int) -> None:
        self.others = np.zeros((n_rows, n_branches - 1))
        self.cares = np.zeros(n_rows, dtype=bool)
        self.present = self.first = np.zeros(0)
        self.added = np.zeros((0, n_branches - 1))
        self.price = 1.0

    def update(
        self,
        router: Router,
        at: np.ndarray,
        now: np.ndarray,
        losses: LeafLosses,
        table: np.ndarray,
        n_threads: int,
    ) -> None:
        """Send every row down each branch of the node that it is at, if it is at any.

        Parameters
        ----------
        router : Router
        at : int array of shape (n_rows,)
            The row's node, or -1.
        now : int array of shape (n_rows,)
            The row's leaf.
        losses : LeafLosses
        table : array
            The leaves' lines.
        n_threads : int
        """
        n_threads = threads_for(self.others.size, n_threads)
        sums = router.branch_losses(
            at, now, losses, table, self.others, self.cares.view(np.uint8), n_threads
        )
        self.present, self.first, self.added = sums[:, 0], sums[:, 1], sums[:, 2:]


def loss_of(goal: Goal) -> TreeLoss:
    """The loss that a tree with some goal is refined for."""
    if isinstance(goal, ClassGoal):
        return ClassLoss(goal)
    assert isinstance(goal, RegressionGoal)
    return NumberLoss(goal)
