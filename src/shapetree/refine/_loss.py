"""What a tree under refinement loses on its training rows, and what complexity costs beside it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial

import numpy as np

from shapetree.data._map_join import Inquiry, Question, add
from shapetree.data._targets import ClassGoal, Goal, MedianGoal, RegressionGoal
from shapetree.refine._refined_rows import LocalRefinedRows, RefinedRows, powers_above

# Rows of the classes' overall shares that every leaf counts beside its own: no leaf is certain.
PRIOR_ROWS = 2.0
# Share of all that there is to explain below which rounding is all that is left.
NEGLIGIBLE = 1e-12


class TreeLoss(ABC):
    """The loss of all rows in their leaves, and how it compares with complexity."""

    n_columns: int  # of the table that has a line for each leaf, see `LeafLosses`
    # Smallest weight of a node for which pairs are fitted without a check on new rows.
    min_weight_of_pairs: float = 0.0
    price_is_fixed: bool = False  # whether a penalty is worth the same, however much the tree loses

    @abstractmethod
    def begin(self, rows: RefinedRows) -> None:
        """Look at all rows before the first leaf is fitted."""

    @abstractmethod
    def fit_leaves(self, rows: RefinedRows, leaves: list[int]) -> np.ndarray:
        """Leaves' lines of the table, each the best for its own rows."""

    @abstractmethod
    def anchors(self, rows: RefinedRows, nodes: list[int]) -> np.ndarray:
        """A power of two for each node that its rows' loss, wherever they are sent, stays below.

        Losses are rounded by it, so that their sums are exact, see `shapetree._core.routing`.
        """

    def added(self, lines: np.ndarray) -> np.ndarray | float:
        """What leaves cost beside the loss of their rows, given their lines of the table."""
        return 0.0

    def price(self, total: float) -> float:
        """Loss that a penalty of 1 is worth, given the total loss of the tree."""
        return 1.0

    def objective(self, total: float) -> float:
        """The tree's loss on the scale of penalties, on which it may never rise."""
        return total


class ClassLoss(TreeLoss):
    """A loss that depends on a row's class and on the leaf alone."""

    price_is_fixed = True

    def __init__(self, goal: ClassGoal, most: float) -> None:
        self._starts = goal.starts.tolist()
        self.n_columns = self._starts[-1]
        most *= goal.total_weight * (len(self._starts) - 1)
        self._anchor = 2.0 * float(powers_above(np.array([most]))[0])

    def begin(self, rows: RefinedRows) -> None:
        """Nothing of the rows is needed but how many nodes they may be in."""
        self._anchors = np.full(rows.n_nodes, self._anchor)

    def fit_leaves(self, rows: RefinedRows, leaves: list[int]) -> np.ndarray:
        """Loss of a row of each class in each leaf."""
        counts = rows.leaf_sums(leaves)
        blocks = zip(self._starts[:-1], self._starts[1:], strict=True)
        table = np.hstack([self._losses(counts[:, a:b], slice(a, b)) for a, b in blocks])
        # On a grid, so that sums do not depend on the order of rows, see `_core.routing`.
        return (table + self._anchor) - self._anchor

    @abstractmethod
    def _losses(self, counts: np.ndarray, columns: slice) -> np.ndarray:
        """Loss of a row of each class of one output, from the leaves' weights of its classes."""

    def anchors(self, rows: RefinedRows, nodes: list[int]) -> np.ndarray:
        """One for all nodes: how much a row can lose is known."""
        return self._anchors[: len(nodes)]


class LogLoss(ClassLoss):
    """Bits of the classes' smoothed shares in the leaves; penalties are in bits.

    The rows that smooth the shares belong to the loss: what they lose beyond their own entropy is
    added for every leaf. So smoothed shares are what a leaf loses least with.
    """

    def __init__(self, goal: ClassGoal) -> None:
        self._prior = PRIOR_ROWS * goal.totals / max(goal.total_weight, np.finfo(float).tiny)
        self._prior_bits = sum(
            PRIOR_ROWS * float(-(share * np.log2(share)).sum())
            for share in (self._prior[self._prior > 0] / PRIOR_ROWS,)
        )
        present = self._prior[self._prior > 0]
        rarest = float(present.min()) if len(present) else 1.0
        super().__init__(goal, most=float(np.log2((goal.total_weight + PRIOR_ROWS) / rarest)) + 1.0)

    def _losses(self, counts: np.ndarray, columns: slice) -> np.ndarray:
        weights = counts + self._prior[columns]
        shares = weights / np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        # No row is of a class without weight.
        return -np.log2(np.where(shares > 0, shares, 1.0))

    def added(self, lines: np.ndarray) -> np.ndarray:
        """What the smoothing rows lose in each leaf beyond their own entropy."""
        return lines @ self._prior - self._prior_bits


class ErrorLoss(ClassLoss):
    """Rows of the wrong class; penalties are in rows."""

    def __init__(self, goal: ClassGoal) -> None:
        super().__init__(goal, most=1.0)

    def _losses(self, counts: np.ndarray, columns: slice) -> np.ndarray:
        commonest = counts.argmax(axis=1)[:, None]
        return (np.arange(counts.shape[1]) != commonest).astype(float)


class NumberLoss(TreeLoss):
    """Squared or absolute differences; penalties are in rows that lose as much as the average one.

    Noise is then the yardstick, whatever the scale of y. As the average falls with the tree's own
    loss, the objective takes its logarithm: to lower the loss by 1 % is worth as much as 1 % of
    the rows, at any level.
    """

    # A few rows that are far off weigh as much as thousands; in small nodes regions chase them.
    min_weight_of_pairs = 1_000.0

    def __init__(self, goal: RegressionGoal) -> None:
        self._is_absolute = isinstance(goal, MedianGoal)
        self._weight = goal.total_weight
        self.n_columns = goal.y.shape[1]
        self._greatest = 0.0

    def begin(self, rows: RefinedRows) -> None:
        """Note what the root alone would lose."""
        table = np.zeros((rows.n_nodes, self.n_columns))
        table[0] = self.fit_leaves(rows, [0])[0]
        (totals,) = rows.run([leaf_totals([0], table, self.anchors(rows, [0]))])
        self._greatest = float(totals[0])

    def fit_leaves(self, rows: RefinedRows, leaves: list[int]) -> np.ndarray:
        """What each leaf predicts, for every output."""
        if self._is_absolute:
            return rows.leaf_medians(leaves)
        sums = rows.leaf_sums(leaves)
        return sums[:, 1:] / np.maximum(sums[:, :1], np.finfo(float).tiny)

    def anchors(self, rows: RefinedRows, nodes: list[int]) -> np.ndarray:
        """From the range of y in each node, which no leaf below it predicts values beyond."""
        ranges = rows.leaf_ranges(nodes)
        most = ranges[:, 1] - ranges[:, 0]
        if not self._is_absolute:
            most = most**2
        return powers_above(most.sum(axis=1) * np.array(rows.weights(nodes)))

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


class LeafTable:
    """What the leaves of a tree under refinement predict, and what their rows lose there.

    `lines`, (n_nodes, n_columns), are leaves' lines of the table that the loss reads.
    """

    def __init__(self, rows: RefinedRows, loss: TreeLoss) -> None:
        self._rows = rows
        self._loss = loss
        self.lines = np.zeros((rows.n_nodes, loss.n_columns))
        self._totals = np.zeros(rows.n_nodes)

        self._untold: set[int] = set()

    def fit(self, leaves: list[int]) -> None:
        """Fit leaves whose rows have changed."""
        self.lines[leaves] = self._loss.fit_leaves(self._rows, leaves)
        self._untold.update(leaves)

    @property
    def is_told(self) -> bool:
        """Whether the total is known as leaves are now."""
        return not self._untold

    def total(self, leaves: list[int]) -> Inquiry[float]:
        """Loss of the rows in all leaves, which are given in an order that rows do not decide."""
        untold = [leaf for leaf in leaves if leaf in self._untold]
        if untold:
            anchors = self._loss.anchors(self._rows, untold)
            of_rows = yield from leaf_totals(untold, self.lines, anchors)
            self._totals[untold] = of_rows + self._loss.added(self.lines[untold])
            self._untold.clear()
        return float(self._totals[leaves].sum())


def leaf_totals(leaves: list[int], table: np.ndarray, anchors: np.ndarray) -> Inquiry[np.ndarray]:
    """Loss of the rows of nodes as leaves, whose lines stand in a table of all nodes."""
    of = partial(LocalRefinedRows.leaf_totals, nodes=leaves, table=table, anchors=anchors)
    return (yield Question(of, add))


def loss_of(goal: Goal) -> TreeLoss:
    """The loss that a tree with some goal is refined for."""
    if isinstance(goal, ClassGoal):
        return LogLoss(goal) if goal.objective == "log_loss" else ErrorLoss(goal)
    assert isinstance(goal, RegressionGoal)
    return NumberLoss(goal)
