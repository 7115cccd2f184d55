"""Pairs in the reduced problem: regions that send a node's care set where it loses least."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shapetree.data._sums import exact_unit
from shapetree.data._targets import ClassGoal
from shapetree.grow._candidates import SearchOptions
from shapetree.grow._pairs import PairFrame, PairSearch
from shapetree.grow._splits import PairSplit
from shapetree.refine._rows import RATIOS_PER_OCTAVE, CareSet
from shapetree.tree._shape import PairShape, number_cuts

# Bins by whose sums a care set is known again.
MAX_BINS_SEEN = 1024


@dataclass(frozen=True)
class _Seen:
    """What is remembered of a care set that was searched: its slack, and part of its histogram."""

    slack: float
    sums: np.ndarray

    def is_like(self, other: _Seen) -> bool:
        """Whether a search would find nothing else than it did for another care set."""
        return self.slack <= other.slack and np.array_equal(self.sums, other.sums)


class PairRefitter:
    """Fits shape functions of pairs to the care sets of nodes.

    Branches stand for classes: a row belongs to the branch in which it loses least, and weighs as
    much as it loses more in the others. So pairs are screened and fitted as when the tree grew.
    What the regions found lose decides their branches then, and which of them are joined.

    Parameters
    ----------
    frame : PairFrame
    options : SearchOptions
    """

    def __init__(self, frame: PairFrame, options: SearchOptions) -> None:
        self._frame = frame
        self._options = options
        self._searches: dict[int, tuple[ClassGoal, PairSearch]] = {}
        self._seen: dict[int, _Seen] = {}

    @property
    def must_hold_up(self) -> bool:
        """Whether pairs are to be distrusted in small nodes."""
        return self._options.penalties.pair is None

    def _search(self, n_branches: int) -> tuple[ClassGoal, PairSearch]:
        """What searches for pairs of nodes with so many branches, and its goal."""
        if n_branches not in self._searches:
            goal = branch_goal(n_branches)
            self._searches[n_branches] = goal, PairSearch(self._frame, goal, self._options)
        return self._searches[n_branches]

    def best(
        self, number: int, care: CareSet, price: float, region_price: float, slack: float
    ) -> PairSplit | None:
        """The best split on a pair for a node's care set; None if that has been searched before.

        Parameters
        ----------
        number : int
            Of the node.
        care : CareSet
        price : float
            Loss that a penalty of 1 is worth.
        region_price : float
            Loss that a region must save.
        slack : float
            What the split may lose at most beyond what is unavoidable.
        """
        divisor = (care.n_branches - 1) * price
        rows = care.as_classes(divisor, exact_unit(care.regret / divisor))
        histogram = rows.histogram()
        before, now = self._seen.get(number), _Seen(slack, histogram[:MAX_BINS_SEEN].copy())
        if before is not None and now.is_like(before):
            return None
        self._seen[number] = now
        goal, search = self._search(care.n_branches)
        (node,) = goal.statistics(rows.totals()[None])
        # Gini is at most twice the weight in wrong branches.
        most = 2.0 * most_in_wrong_branches(care, slack) / divisor
        found = search.best(
            node,
            rows,
            histogram,
            care.n_branches,
            node_number=0,
            to_beat=max(node.impurity * node.weight - most - search.pair_penalty(node), 0.0),
        )
        return None if found is None else assigned(care, found.shape, region_price)


def most_in_wrong_branches(care: CareSet, slack: float) -> float:
    """Regret of all rows that a split can send to wrong branches, if they lose no more than this.

    What a row loses there is what it loses in its second best branch at least; its regret is what
    it loses in all branches. Those come first that cost least for their regret.
    """
    if care.n_branches == 2:
        return slack
    spent = bought = 0.0
    groups = care.losses_by_ratio().tolist()
    for number, (loss, regret) in reversed(list(enumerate(groups))):
        if spent + loss > slack:
            # Of the last group, a part, at the best ratio that it may have.
            return bought + min(regret, (slack - spent) * 2.0 ** ((number + 1) / RATIOS_PER_OCTAVE))
        spent += loss
        bought += regret
    return bought


def assigned(care: CareSet, shape: PairShape, region_price: float) -> PairSplit | None:
    """Send the regions of a shape function where a care set loses least; join where it pays.

    None if a single region is left.
    """
    pruned = _prune_cuts(shape, care.region_losses(shape), region_price, care.n_branches)
    return None if pruned is None else PairSplit(pruned)


def branch_goal(n_branches: int) -> ClassGoal:
    """What a search for pairs learns where branches stand for classes; it has no rows itself."""
    nothing = np.zeros((0, 1), dtype=np.int32)
    return ClassGoal(nothing, [n_branches], np.zeros(0), "gini", n_branches)


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
