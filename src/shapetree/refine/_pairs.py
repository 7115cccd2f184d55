"""Pairs in the reduced problem: regions that send a node's care set where it loses least."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shapetree._core.columns import Columns
from shapetree.data._targets import ClassGoal, Goal
from shapetree.grow._candidates import CandidateSearch
from shapetree.grow._pairs import PairSearch
from shapetree.grow._splits import PairSplit
from shapetree.refine._splits import regions_of
from shapetree.tree._shape import PairShape, number_cuts

# Makes the searches of single features and of pairs that a tree with some goal is grown with.
MakeSearches = Callable[[Goal], tuple[CandidateSearch, PairSearch]]


class PairRefitter:
    """Fits shape functions of pairs to the care sets of one level's nodes.

    Branches stand for classes: a row belongs to the branch in which it loses least, and weighs as
    much as it loses more in the others. So pairs are screened and fitted as when the tree grew.
    What the regions found lose decides their branches then, and which of them are joined.

    Parameters
    ----------
    make_searches : function
    columns : Columns
    others : array of shape (n_rows, max_branches - 1)
        What a row loses in branch 1, 2, .. beyond branch 0.
    price : float
        Loss that a penalty of 1 is worth.
    n_branches : int array of shape (n_rows,)
        Branches of the node that each row is at; 0 if it is at none.
    region_price : float
        Loss that a region must save.
    """

    def __init__(
        self,
        make_searches: MakeSearches,
        columns: Columns,
        others: np.ndarray,
        price: float,
        n_branches: np.ndarray,
        region_price: float,
    ) -> None:
        self._goal = _branch_goal(others, price, n_branches)
        self._singles, self._pairs = make_searches(self._goal)
        self._columns = columns
        self._others = others
        self._region_price = region_price

    @property
    def must_hold_up(self) -> bool:
        """Whether pairs are to be distrusted in small nodes."""
        return self._pairs.must_hold_up

    def best(self, rows: np.ndarray, n_branches: int) -> PairSplit | None:
        """The best split on a pair for a node's care set."""
        node = self._goal.describe(rows)
        univariate = None
        if self._pairs.filters:
            raise NotImplementedError
        found = self._pairs.best(
            node, rows, None, univariate, n_branches, node_number=0, to_beat=0.0
        )
        return None if found is None else self.assigned(found.shape, rows, n_branches)

    def assigned(self, shape: PairShape, rows: np.ndarray, n_branches: int) -> PairSplit | None:
        """Send the regions of a shape function where a care set loses least; join where it pays.

        None if a single region is left.
        """
        n_regions = len(shape.branch_of_piece)
        region = regions_of(shape, self._columns, rows)
        costs = np.zeros((n_regions + 1, n_branches))
        for branch in range(1, n_branches):
            costs[:, branch] = np.bincount(
                region, self._others[rows, branch - 1], minlength=n_regions + 1
            )
        pruned = _prune_cuts(shape, costs, self._region_price, n_branches)
        return None if pruned is None else PairSplit(pruned)


def _branch_goal(others: np.ndarray, price: float, n_branches: np.ndarray) -> ClassGoal:
    """Branches as classes, and as weights what rows lose on average in the other branches."""
    exists = np.arange(others.shape[1] + 1) < n_branches[:, None]
    by_branch = np.where(exists, np.insert(others, 0, 0.0, axis=1), np.inf)
    labels = by_branch.argmin(axis=1).astype(np.int32)
    regret = np.where(exists, by_branch - by_branch.min(axis=1, initial=0.0, keepdims=True), 0.0)
    weights = regret.sum(axis=1) / np.maximum(n_branches - 1, 1) / price
    n_classes = exists.shape[1]
    return ClassGoal(labels[:, None], [n_classes], weights, "gini", n_classes)


def _prune_cuts(
    shape: PairShape, costs: np.ndarray, price: float, n_branches: int
) -> PairShape | None:
    """Leave out cuts that do not pay for a further region; None if a single one is left.

    Parameters
    ----------
    shape : PairShape
    costs : array of shape (n_regions + 1, n_branches)
        What the rows of each region, and those that lack a feature, lose in each branch.
    price : float
        What each region but the first costs.
    n_branches : int
    """
    n_cuts = len(shape.cut_low)
    total, best = np.empty((n_cuts, n_branches)), np.empty(n_cuts)
    joined = np.zeros(n_cuts, dtype=bool)

    def costs_of(target: int) -> tuple[np.ndarray, float]:
        if target < 0:
            return costs[-1 - target], float(costs[-1 - target].min())
        return total[target], float(best[target])

    for cut in range(n_cuts - 1, -1, -1):
        (low, best_low), (high, best_high) = map(
            costs_of, (int(shape.cut_low[cut]), int(shape.cut_high[cut]))
        )
        total[cut] = low + high
        parted, together = best_low + best_high + price, float(total[cut].min())
        joined[cut] = together <= parted
        best[cut] = min(parted, together)
    if joined[0]:
        return None
    return _keep_cuts(shape, costs, total, joined, n_branches)


def _keep_cuts(
    shape: PairShape,
    costs: np.ndarray,
    total: np.ndarray,
    joined: np.ndarray,
    n_branches: int,
) -> PairShape:
    """Number the cuts that stay, and give the regions between them branches."""
    cut_at, low, branch = [0], [-1], [-1]
    for place, cut in enumerate(cut_at):
        if cut < 0 or joined[cut]:
            branch[place] = int((costs[-1 - cut] if cut < 0 else total[cut]).argmin())
            continue
        low[place] = len(cut_at)
        for target in (int(shape.cut_low[cut]), int(shape.cut_high[cut])):
            cut_at.append(target)
            low.append(-1)
            branch.append(-1)
    places, regions, cut_low, cut_high = number_cuts(np.array(low))
    kept = [cut_at[place] for place in places]
    return replace(
        shape,
        n_branches=n_branches,
        cut_a=shape.cut_a[kept],
        cut_b=shape.cut_b[kept],
        cut_threshold=shape.cut_threshold[kept],
        cut_low=cut_low,
        cut_high=cut_high,
        branch_of_piece=np.array(branch, dtype=np.int32)[regions],
        missing_branch=int(costs[-1].argmin()),
    )
