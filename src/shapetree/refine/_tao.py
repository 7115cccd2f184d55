"""Tree alternating optimisation: one node's shape function after another, the rest held fixed.

What a branch would cost a row is the loss of the leaf that the row would end in, as the tree below
stands. The *care set* of a node are its rows for which branches differ, its *reduced problem* is
to send them where they lose least; for shape functions of one feature it is solved exactly
(`shapetree._core.reduced`). Nodes are solved from the deepest level to the root, sweep by sweep,
and the penalised loss of the whole tree never rises. Nodes of one level share no rows, so that one
pass over the rows tells what all of them need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from shapetree._core.histogram import bin_offsets
from shapetree._core.reduced import (
    ReducedProblem,
    ReducedProblems,
    ReducedSearch,
    reduced_problems,
)
from shapetree._core.search import BinSplit
from shapetree._threads import threads_for
from shapetree.data._map_join import Inquiry, Question, add
from shapetree.data._sums import exact_unit
from shapetree.grow._candidates import CATEGORY_SHARE, choice_share
from shapetree.grow._splits import PairSplit, Split
from shapetree.refine._copies import CopiesOptions, split_by_copies
from shapetree.refine._loss import LeafTable, TreeLoss
from shapetree.refine._options import RefineOptions
from shapetree.refine._pair_step import AssignedPair, PairRefitter, assigned
from shapetree.refine._refined_rows import CareSet, LocalRefinedRows, LossCells, Losses, RefinedRows
from shapetree.refine._working_tree import WorkingTree

# Share of the objective within which it counts as the same.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Solution:
    """A split that may solve a node's reduced problem, and its value."""

    split: Split
    objective: float


class Refiner:
    """Refines one tree; see `refine`."""

    def __init__(
        self,
        tree: WorkingTree,
        rows: RefinedRows,
        loss: TreeLoss,
        options: RefineOptions,
        pairs: PairRefitter | None,
        report: Callable[[int, float], None],
        order: np.ndarray | None = None,
    ) -> None:
        self._order = np.arange(len(rows.bins), dtype=np.int32) if order is None else order
        self._tree = tree
        self._rows = rows
        self._loss = loss
        self._options = options
        self._pairs = pairs
        self._report = report
        self._offsets = bin_offsets(rows.n_bins).tolist()
        shares = np.array([choice_share(feature) for feature in rows.bins])
        self._search = ReducedSearch(
            rows.n_bins, rows.is_categorical, shares, self._order, CATEGORY_SHARE,
            options.max_segments, options.max_listed,
        )  # fmt: skip
        self._table = LeafTable(rows, loss)
        loss.begin(rows)

    def refine(self) -> list[float]:
        """Sweep until nothing changes; returns the objective before the first and after each.

        A sweep after which it is higher is undone: what rows of tiny weights lose, beside far
        greater ones, is below the grid that losses are summed on.
        """
        history = [self._objective()]
        self._report(0, history[0])
        for sweep in range(1, self._options.max_sweeps + 1):
            before = self._tree.shape()
            is_changed = False
            for depth in reversed(range(len(self._tree.levels) - 1)):
                is_changed |= self._refine_level(depth)
            if not is_changed or sweep == self._options.max_sweeps:
                # Shapes move where no row is; that may yet show other nodes a better split.
                is_changed |= self._tree.settle_shapes()
            if not is_changed:
                break
            objective = self._objective()
            if objective > history[-1] + ROUNDING * abs(history[-1]):
                self._tree.go_back(before)
                break
            history.append(objective)
            self._report(sweep, objective)
        return history

    def _objective(self) -> float:
        self._fit_leaves()
        (total,) = self._rows.run([self._table.total(self._tree.leaves)])
        return self._loss.objective(total) + self._tree.penalties[0]

    def _fit_leaves(self) -> None:
        """Let leaves be the best for their rows."""
        tree = self._tree
        if tree.changed_leaves:
            self._table.fit(tree.changed_leaves)
            tree.changed_leaves = []

    def _price(self) -> Inquiry[float]:
        """Loss that a penalty of 1 is worth now."""
        return self._loss.price((yield from self._table.total(self._tree.leaves)))

    def _refine_level(self, depth: int) -> bool:
        """Solve the nodes of a level that are not settled; whether anything changed."""
        tree = self._tree
        level = tree.levels[depth] if depth < len(tree.levels) else []
        nodes = [number for number in level if tree.nodes[number].split is not None]
        self._fit_leaves()
        price: float | None = None
        if self._loss.price_is_fixed:
            price = self._loss.price(0.0)
        elif self._table.is_told:
            (price,) = self._rows.run([self._price()])
        if price is not None:
            nodes = [number for number in nodes if tree.nodes[number].settled_at != price]
            if not nodes:
                return False
            (losses,) = self._rows.run([self._losses(nodes)])
        elif not nodes:
            return False
        else:
            # Other leaves have another price, at which no node is settled.
            both: list[Inquiry[Any]] = [self._price(), self._losses(nodes)]
            price, losses = self._rows.run(both)
        some = [tree.nodes[number] for number in nodes]
        problems = reduced_problems(
            nodes, [node.children for node in some], [node.part_penalty for node in some],
            tree.penalties, self._rows.sizes(), losses, price, self._options.prices.leaf,
        )  # fmt: skip
        best = self._best_of_one_feature(problems)
        if self._pairs is not None:
            self._improve_by_pairs(problems.each, best, price)
        changes: dict[int, Split | int] = {}
        for problem in problems.each:
            solution = best.get(problem.number)
            if solution is not None:
                changes[problem.number] = solution.split
            elif problem.only_branch >= 0:
                changes[problem.number] = problem.only_branch
            else:
                tree.nodes[problem.number].settled_at = price
        if changes:
            tree.change(changes)
        return bool(changes)

    def _losses(self, nodes: list[int]) -> Inquiry[Losses]:
        """What each branch would cost the rows of some nodes of one level."""
        anchors = self._loss.anchors(self._rows, nodes)
        return (yield from self._rows.losses_of_level(nodes, self._table.lines, anchors))

    def _branch_counts(self, problem: ReducedProblem, split: Split) -> Inquiry[list[int]]:
        """Rows of a node in each branch under another split."""
        of = partial(LocalRefinedRows.branch_counts, node=problem.number, split=split)
        return np.asarray((yield Question(of, add))).tolist()

    def _best_of_one_feature(self, problems: ReducedProblems) -> dict[int, Solution]:
        """The best split of each node on a single feature, where there is one to beat the rest."""
        rows, found = self._rows, dict[int, Solution]()
        if not problems.are_open:
            return found
        if self._options.copies is not None:
            return self._best_by_copies(problems, self._options.copies)
        unit = problems.each[0].price * self._options.prices.part
        for first, cells in rows.loss_cells(problems.wanted):
            some = slice(first, first + len(cells.starts))
            n_threads = threads_for(cells.losses.size, rows.n_threads)
            costs, least = self._search.costs(
                cells, problems.n_branches[some], problems.bounds[some],
                problems.segment_penalties[some], unit, not self._options.limits_rows, n_threads,
            )  # fmt: skip
            for node, problem in enumerate(problems.each[some]):
                if least[node] < problem.bound:
                    solution = self._solve(problem, cells, node, costs[node])
                    if solution is not None:
                        found[problem.number] = solution
        return found

    def _solve(
        self, problem: ReducedProblem, cells: LossCells, node: int, costs: np.ndarray
    ) -> Solution | None:
        """The best split on a single feature that keeps the limits and is good enough."""
        n_branches = problem.n_branches
        while True:
            feature = int(self._order[costs[self._order].argmin()])
            if not costs[feature] < problem.bound:
                return None
            costs[feature] = np.inf
            branch_of_bin, losses, counts = self._search.shape(
                feature, *cells.of(node, feature), n_branches,
                problem.price * problem.part_penalty, problem.price * self._options.prices.part,
            )  # fmt: skip
            split = BinSplit(feature, n_branches, branch_of_bin)
            solution = self._solution(problem, split, losses, counts)
            if solution.objective < problem.to_beat and self._keeps_limits(problem, split):
                return solution

    def _best_by_copies(
        self, problems: ReducedProblems, options: CopiesOptions
    ) -> dict[int, Solution]:
        """The best split of each node by the paper's step, where there is one to beat the rest."""
        rows, found = self._rows, dict[int, Solution]()
        care_sets = rows.care_sets(problems.n_branches.tolist())
        for first, cells in rows.loss_cells(problems.wanted):
            for node in range(len(cells.starts)):
                problem, care = problems.each[first + node], care_sets[first + node]
                if not problem.may_improve or care.n_rows == 0:
                    continue
                unit = exact_unit(care.regret * care.n_branches / problem.price)
                (copies,) = rows.run([_histogram_of_copies(care, problem.price, unit)])
                solutions = [
                    solution
                    for feature in self._order.tolist()
                    if (solution := self._step(problem, cells, node, feature, copies, options))
                ]
                for solution in sorted(solutions, key=lambda each: each.objective):
                    if self._keeps_limits(problem, solution.split):
                        found[problem.number] = solution
                        break
        return found

    def _step(
        self,
        problem: ReducedProblem,
        cells: LossCells,
        node: int,
        feature: int,
        copies: np.ndarray,
        options: CopiesOptions,
    ) -> Solution | None:
        """The paper's step on one feature, if that makes the tree better."""
        rows, n_branches = self._rows, problem.n_branches
        bins, losses = cells.of(node, feature)
        of_feature = copies[self._offsets[feature] : self._offsets[feature + 1]]
        about = bins, losses[:, : n_branches - 1], of_feature[bins], options
        found = split_by_copies(rows.bins[feature], *about)
        if found is None:
            return None
        branch_of_bin, lost, counts = found
        solution = self._solution(
            problem, BinSplit(feature, n_branches, branch_of_bin), lost, counts
        )
        return solution if solution.objective < problem.to_beat else None

    def _solution(
        self, problem: ReducedProblem, split: BinSplit, losses: list[float], counts: list[int]
    ) -> Solution:
        """A split with its value, from the losses and counts of rows that care in its branches."""
        if not all(counts):
            # Rows that do not care may yet take the other branches.
            (counts,) = self._rows.run([self._branch_counts(problem, split)])
        penalty = self._tree.price_of(split, problem.part_penalty)
        return Solution(split, problem.objective(penalty, losses, counts))

    def _keeps_limits(self, problem: ReducedProblem, split: Split) -> bool:
        options = self._options
        return not options.limits_rows or self._tree.keeps_limits(problem.number, split, options)

    # Pairs

    def _improve_by_pairs(
        self, problems: list[ReducedProblem], best: dict[int, Solution], price: float
    ) -> None:
        """Put splits on pairs in the place of solutions that they are better than."""
        care_sets = self._rows.care_sets([problem.n_branches for problem in problems])
        inquiries = [
            self._improve_by_pair(problem, care, best.get(problem.number), price)
            for problem, care in zip(problems, care_sets, strict=True)
        ]
        # Limits are tried out by other splits of the tree, one at a time.
        at_once = 1 if self._options.limits_rows else len(inquiries)
        for first in range(0, len(inquiries), at_once):
            found = self._rows.run(inquiries[first : first + at_once])
            for problem, solution in zip(problems[first:], found, strict=False):
                if solution is not None:
                    best[problem.number] = solution

    def _improve_by_pair(
        self, problem: ReducedProblem, care: CareSet, solution: Solution | None, price: float
    ) -> Inquiry[Solution | None]:
        """The best solution of a node: the one that is known, its own regions, or another pair."""
        assert self._pairs is not None
        if care.n_rows == 0:
            return solution
        to_beat = problem.to_beat
        if solution is not None:
            to_beat = solution.objective - problem.tolerance
        region_price = price * problem.part_penalty
        # Two regions and two branches cost at least this much; a split on a pair may lose the rest.
        least = problem.part_penalty + problem.leaf_penalty + sum(sorted(problem.below)[:2])
        slack = to_beat - (problem.first + care.least) - price * least
        if slack <= 0.0:
            return solution
        node = self._tree.nodes[problem.number]
        if isinstance(node.split, PairSplit):
            # The node's own regions may go to other branches.
            shape = node.split.cuts
            costs = yield from care.region_losses(shape)
            own = assigned(costs, shape, region_price, self._options.max_segments)
            better = yield from self._solved_by(problem, own, to_beat)
            if better is not None:
                solution, to_beat = better, better.objective
        (weight,) = self._rows.weights([problem.number])
        if weight >= self._loss.min_weight_of_pairs or not self._pairs.must_hold_up:
            about = care, price, region_price, slack, node.pairs
            fitted = yield from self._pairs.best(problem.number, *about)
            better = yield from self._solved_by(problem, fitted, to_beat)
            solution = solution if better is None else better
        return solution

    def _solved_by(
        self, problem: ReducedProblem, pair: AssignedPair | None, to_beat: float
    ) -> Inquiry[Solution | None]:
        """The solution that a split on a pair is, if it is better than that and keeps limits."""
        if pair is None:
            return None
        split, losses = pair
        counts = yield from self._branch_counts(problem, split)
        penalty = self._tree.price_of(split, problem.part_penalty)
        objective = problem.objective(penalty, losses, counts)
        if objective < to_beat and self._keeps_limits(problem, split):
            return Solution(split, objective)
        return None


def _histogram_of_copies(care: CareSet, price: float, unit: float) -> Inquiry[np.ndarray]:
    """Sums of the copies of rows that care by bin of all features."""
    copies = yield from care.as_copies(price, unit)
    return (yield from copies.histogram(own_bins=True))
