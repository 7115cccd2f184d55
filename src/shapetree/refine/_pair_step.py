"""Pairs in the reduced problem: regions that send a node's care set where it loses least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from shapetree.data._map_join import Inquiry
from shapetree.data._sums import exact_unit
from shapetree.data._targets import ClassGoal
from shapetree.grow._candidates import CandidateOptions, SearchedNode
from shapetree.grow._pair_options import PairList
from shapetree.grow._pairs import PairFrame, PairSearch
from shapetree.grow._splits import PairSplit, number_cuts
from shapetree.refine._copies import CopiesOptions
from shapetree.refine._refined_rows import RATIOS_PER_OCTAVE, CareSet
from shapetree.tree._shape import PairShape

# A split on a pair, and what the rows of each branch lose beyond branch 0.
AssignedPair: TypeAlias = tuple[PairSplit, list[float]]

# Bins by whose sums a care set is known again.
MAX_BINS_SEEN = 1024
# How many searches of a node may find a pair. Later ones mend little: the regions that the node has
# get other branches then, and no more.
MAX_FOUND = 2


@dataclass(frozen=True)
class _Seen:
    """What is remembered of a node that was searched."""

    slack: float
    sums: np.ndarray  # part of its care set's histogram
    n_found: int = 0  # searches that have found a pair so far

    def is_like(self, other: _Seen) -> bool:
        """Whether a search would find nothing else than it did for another care set."""
        return self.slack <= other.slack and np.array_equal(self.sums, other.sums)


class PairRefitter:
    """Fits shape functions of pairs to the care sets of nodes.

    Branches stand for classes: a row belongs to the branch in which it loses least, and weighs as
    much as it loses more in the others. So pairs are screened and fitted as when the tree grew.
    What the regions found lose decides their branches then, and which of them are joined.

    In the paper's step, rows are copied to all branches in which they lose least, and a node has
    the pairs only that were considered when it grew.
    """

    def __init__(
        self, frame: PairFrame, options: CandidateOptions, copies: CopiesOptions | None = None
    ) -> None:
        self._frame = frame
        self._copies = copies
        # Branches that stand for classes are there already: no leaf is added.
        penalties = replace(options.penalties, leaf=0.0)
        self._options = replace(options, penalties=penalties, per_leaf=False)
        self._searches: dict[int, tuple[ClassGoal, PairSearch]] = {}
        self._seen: dict[int, _Seen] = {}

    @property
    def must_hold_up(self) -> bool:
        """Whether pairs are distrusted in small nodes."""
        return self._options.penalties.pair is None

    def _search(self, n_branches: int) -> tuple[ClassGoal, PairSearch]:
        """A search for pairs of nodes with some number of branches, and its goal."""
        if n_branches not in self._searches:
            goal = branch_goal(n_branches, self._copies.criterion if self._copies else "gini")
            self._searches[n_branches] = goal, PairSearch(self._frame, goal, self._options)
        return self._searches[n_branches]

    def best(
        self,
        number: int,
        care: CareSet,
        price: float,
        region_price: float,
        slack: float,
        pairs: PairList | None,
    ) -> Inquiry[AssignedPair | None]:
        """The best split on a pair for the care set of a node of some number.

        None if it has been searched enough. `price` is the loss that a penalty of 1 is worth,
        `region_price` what a region must save, `slack` what the split may lose at most beyond what
        is unavoidable, and `pairs` those that were considered when the node grew, if that is known.
        """
        before = self._seen.get(number)
        n_found = 0 if before is None else before.n_found
        if n_found == MAX_FOUND and self._copies is None:
            return None
        divisor = (care.n_branches - 1) * price
        if self._copies is None:
            rows = care.as_classes(divisor, exact_unit(care.regret / divisor))
        else:
            rows = yield from care.as_copies(
                price, exact_unit(care.regret * care.n_branches / price)
            )
        histogram = yield from rows.histogram()
        now = _Seen(slack, histogram[:MAX_BINS_SEEN].copy(), n_found)
        if before is not None and now.is_like(before):
            return None
        self._seen[number] = now
        goal, search = self._search(care.n_branches)
        (node,) = goal.statistics((yield from rows.totals())[None])
        # Gini is at most twice the weight in wrong branches.
        to_beat = 0.0
        if self._copies is None:
            most = slack
            if care.n_branches > 2:
                most = most_in_wrong_branches((yield from care.losses_by_ratio()), slack)
            lost = 2.0 * most / divisor
            to_beat = max(node.impurity * node.weight - lost - search.pair_penalty(node), 0.0)
        searched = SearchedNode(node, 0, care.n_branches, rows, histogram)
        if pairs is None or self._copies is None:
            pairs = yield from search.considered(searched)
        found = yield from search.best(pairs, searched, to_beat)
        if found is None:
            return None
        self._seen[number] = replace(now, n_found=n_found + 1)
        costs = yield from care.region_losses(found.shape)
        return assigned(costs, found.shape, region_price, self._options.max_parts)


def most_in_wrong_branches(losses_by_ratio: np.ndarray, slack: float) -> float:
    """Regret of all rows that a split can send to wrong branches, if they lose no more than this.

    What a row loses there is what it loses in its second best branch at least; its regret is what
    it loses in all branches. Those come first that cost least for their regret.
    """
    spent = bought = 0.0
    groups = losses_by_ratio.tolist()
    for number, (loss, regret) in reversed(list(enumerate(groups))):
        if spent + loss > slack:
            # Of the last group, a part, at the best ratio that it may have.
            return bought + min(regret, (slack - spent) * 2.0 ** ((number + 1) / RATIOS_PER_OCTAVE))
        spent += loss
        bought += regret
    return bought


def assigned(
    losses: np.ndarray, shape: PairShape, region_price: float, max_regions: int
) -> AssignedPair | None:
    """Send the regions of a shape function where a care set loses least; join where it pays.

    There are at most `max_regions` then, found by the dynamic programme of
    `shapetree._core.pair_tree`. None if a single region is left. Losses are those of
    `CareSet.region_losses`.
    """
    costs = losses.tolist()
    low, high = shape.cut_low.tolist(), shape.cut_high.tolist()
    most = min(max_regions, len(low) + 1)
    # Of each cut: what its rows lose in each branch; what they lose at least, with the price of the
    # cuts, if there are at most 1, 2, .. regions; and how many of these are below it (0: no cut).
    total: list[list[float]] = [[]] * len(low)
    least: list[list[float]] = [[]] * len(low)
    regions_low = [[0] * most for _ in low]

    def at(target: int) -> tuple[list[float], list[float]]:
        if target < 0:
            return costs[-1 - target], [min(costs[-1 - target])] * most
        return total[target], least[target]

    for cut in range(len(low) - 1, -1, -1):
        (of_low, least_low), (of_high, least_high) = at(low[cut]), at(high[cut])
        total[cut] = [one + other for one, other in zip(of_low, of_high, strict=True)]
        together = min(total[cut])
        least[cut] = [together] * most
        for n_regions in range(2, most + 1):
            for n_low in range(1, n_regions):
                parted = least_low[n_low - 1] + least_high[n_regions - n_low - 1] + region_price
                if parted < least[cut][n_regions - 1]:
                    least[cut][n_regions - 1] = parted
                    regions_low[cut][n_regions - 1] = n_low
    is_joined = [True] * len(low)
    room = {0: most}
    for cut in range(len(low)):
        n_low = regions_low[cut][room[cut] - 1] if cut in room else 0
        if n_low > 0:
            is_joined[cut] = False
            room |= {low[cut]: n_low, high[cut]: room[cut] - n_low}
    if is_joined[0]:
        return None
    return _keep_cuts(shape, costs, total, is_joined)


def _keep_cuts(
    shape: PairShape,
    costs: list[list[float]],
    total: list[list[float]],
    is_joined: list[bool],
) -> AssignedPair:
    """Number the cuts that stay, and give the regions between them branches."""
    targets = list(zip(shape.cut_low.tolist(), shape.cut_high.tolist(), strict=True))
    cut_at, low, branch, losses = [0], [-1], [-1], [0.0] * len(costs[0])

    def best_branch(of_branches: list[float]) -> int:
        best = of_branches.index(min(of_branches))
        losses[best] += of_branches[best]
        return best

    for place, cut in enumerate(cut_at):
        if cut < 0 or is_joined[cut]:
            branch[place] = best_branch(costs[-1 - cut] if cut < 0 else total[cut])
            continue
        low[place] = len(cut_at)
        cut_at += targets[cut]
        low += [-1, -1]
        branch += [-1, -1]
    places, regions, cut_low, cut_high = number_cuts(low)
    kept = [cut_at[place] for place in places]
    split = PairSplit(
        replace(
            shape,
            n_branches=len(losses),
            cut_a=shape.cut_a[kept],
            cut_b=shape.cut_b[kept],
            cut_threshold=shape.cut_threshold[kept],
            cut_low=cut_low,
            cut_high=cut_high,
            branch_of_piece=np.array(branch, dtype=np.int32)[regions],
            missing_branch=best_branch(costs[-1]),
        )
    )
    return split, losses


def branch_goal(n_branches: int, criterion: str = "gini") -> ClassGoal:
    """What a search for pairs learns where branches stand for classes; it has no rows itself."""
    nothing = np.zeros((0, 1), dtype=np.int32)
    return ClassGoal(nothing, [n_branches], np.zeros(0), criterion=criterion)
