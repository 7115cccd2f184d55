"""Tree alternating optimisation: one node's shape function after another, the rest held fixed.

What a branch would cost a row is the loss of the leaf that the row would end in, as the tree below
stands. The *care set* of a node are its rows for which branches differ, its *reduced problem* is
to send them where they lose least; for shape functions of one feature it is solved exactly
(`shapetree._core.reduced`). Nodes are solved from the deepest level to the root, sweep by sweep,
and the penalised loss of the whole tree never rises. Nodes of one level share no rows, so that one
pass over the rows tells what all of them need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shapetree._core.reduced import cheapest_shape, cheapest_shapes
from shapetree._threads import threads_for
from shapetree.grow._candidates import category_shares, choice_shares
from shapetree.grow._splits import BinSplit, PairSplit, Split
from shapetree.refine._loss import LeafTable, TreeLoss
from shapetree.refine._options import RefineOptions
from shapetree.refine._pairs import PairRefitter, assigned
from shapetree.refine._rows import CareSet, LossCells, RefinedRows
from shapetree.refine._splits import extra_parts
from shapetree.refine._working import WorkingTree

# Objectives that differ by less are equal: as a share of the rows' price, and, where they lose
# next to nothing, of what they might lose.
TOLERANCE = 1e-10
ROUNDING = 1e-12


@dataclass(slots=True)
class Problem:
    """One node's reduced problem.

    Attributes
    ----------
    number : int
        Of the node.
    n_rows, n_care : int
        The node's rows, and those of them for which branches differ.
    least : float
        What the rows would lose beyond branch 0 if each took the branch where it loses least.
    below : list of float
        Complexity of what each branch leads to.
    present : float
        Objective of the tree from the node on, as it is.
    alone : list of float
        The same if all rows took one branch, which then took the node's place.
    first : float
        Loss of all rows in branch 0.
    unit : float
        Loss that a branch is worth.
    part_unit : float
        Loss that an extra part is worth.
    tolerance : float
        Objectives that differ by less are equal.
    to_beat : float
        Objective that a new split must be below.
    fixed : float
        What no split of the rows among all branches can change.
    """

    number: int
    n_rows: int
    n_care: int
    least: float
    below: list[float]
    present: float
    alone: list[float]
    first: float
    unit: float
    part_unit: float
    tolerance: float
    to_beat: float
    fixed: float

    @property
    def bound(self) -> float:
        """What a new split must cost less than, beyond branch 0 and what no split can change."""
        return self.to_beat - self.fixed

    def objective(self, n_extra: float, losses: list[float], counts: list[int]) -> float:
        """Objective with another split; branches that no row takes are as good as gone.

        Parameters
        ----------
        n_extra : float
            Parts of the split beyond those of CART's.
        losses : list of float
            What the rows of each branch lose beyond branch 0.
        counts : list of int
            Rows of each branch, or anything else that is 0 without any.
        """
        used = [branch for branch, count in enumerate(counts) if count > 0]
        loss = self.first + sum([losses[branch] for branch in used if branch > 0])
        parts = len(used) - 1 + sum([self.below[branch] for branch in used])
        return loss + self.part_unit * n_extra + self.unit * parts


@dataclass(frozen=True)
class Solution:
    """A split that may solve a node's reduced problem, and its value."""

    split: Split
    objective: float


class Refiner:
    """Refines one tree.

    Parameters
    ----------
    tree : WorkingTree
    rows : RefinedRows
        The rows in it.
    loss : TreeLoss
    options : RefineOptions
    pairs : PairRefitter or None
        None for shape functions of one feature only.
    report : function
        Told each sweep's number, and the objective after it.
    """

    def __init__(
        self,
        tree: WorkingTree,
        rows: RefinedRows,
        loss: TreeLoss,
        options: RefineOptions,
        pairs: PairRefitter | None,
        report: Callable[[int, float], None],
    ) -> None:
        self._tree = tree
        self._rows = rows
        self._loss = loss
        self._options = options
        self._pairs = pairs
        self._report = report
        self._category_shares = category_shares(rows.bins)
        self._choice_shares = choice_shares(rows.bins)
        self._table = LeafTable(rows, loss)
        loss.begin(rows)

    def refine(self) -> list[float]:
        """Sweep until nothing changes; returns the objective before the first and after each."""
        history = [self._objective()]
        self._report(0, history[0])
        for sweep in range(1, self._options.max_sweeps + 1):
            is_changed = self._sweep()
            if not is_changed or sweep == self._options.max_sweeps:
                # Shapes move where no row is; that may yet show other nodes a better split.
                is_changed |= self._tree.settle_shapes()
            if not is_changed:
                break
            history.append(self._objective())
            self._report(sweep, history[-1])
        return history

    def _objective(self) -> float:
        penalty = self._options.penalty * self._tree.n_parts[0]
        return self._loss.objective(self._total_loss()) + penalty

    def _fit_leaves(self) -> None:
        """Let leaves be the best for their rows."""
        tree = self._tree
        if tree.changed_leaves:
            self._table.fit(tree.changed_leaves)
            tree.changed_leaves = []

    def _total_loss(self) -> float:
        """Loss of all rows in their leaves."""
        self._fit_leaves()
        return self._table.total(self._tree.leaves)

    def _price(self) -> float:
        """Loss that a penalty of 1 is worth now."""
        return self._loss.price(0.0 if self._loss.price_is_fixed else self._total_loss())

    def _sweep(self) -> bool:
        """Solve every node once, from the deepest level up; whether anything changed."""
        depths = range(len(self._tree.levels) - 1)
        return max([self._refine_level(depth) for depth in reversed(depths)], default=False)

    def _refine_level(self, depth: int) -> bool:
        """Solve the nodes of a level that are not settled; whether anything changed."""
        tree = self._tree
        price = self._price()
        level = tree.levels[depth] if depth < len(tree.levels) else []
        nodes = [
            number
            for number in level
            if tree.nodes[number].split is not None and tree.nodes[number].settled_at != price
        ]
        if not nodes:
            return False
        self._fit_leaves()
        problems = self._problems(nodes, price)
        best = self._best_of_one_feature(problems)
        if self._pairs is not None:
            self._improve_by_pairs(problems, best, price)
        changes: dict[int, Split | int] = {}
        for problem in problems:
            solution = best.get(problem.number)
            if solution is not None:
                changes[problem.number] = solution.split
            elif min(problem.alone) <= problem.present + problem.tolerance:
                changes[problem.number] = problem.alone.index(min(problem.alone))
            else:
                tree.nodes[problem.number].settled_at = price
        if changes:
            tree.change(changes)
        return bool(changes)

    def _problems(self, nodes: list[int], price: float) -> list[Problem]:
        """Find out what each branch would cost the rows of some nodes of one level."""
        tree, unit = self._tree, price * self._options.penalty
        anchors = self._loss.anchors(self._rows, nodes)
        sums, n_care, least = self._rows.branch_losses(nodes, self._table.lines, anchors)
        sizes = self._rows.sizes()
        problems = []
        for number, of_node, n_caring, at_best in zip(
            nodes, sums.tolist(), n_care.tolist(), least.tolist(), strict=True
        ):
            below = [tree.n_parts[child] for child in tree.nodes[number].children]
            present, first, *added = of_node
            alone = [first + unit * below[0]]
            for more, parts in zip(added, below[1:], strict=False):
                alone.append(first + more + unit * parts)
            present += unit * tree.n_parts[number]
            n_rows = sizes[number]
            tolerance = TOLERANCE * n_rows * price + ROUNDING * max(alone)
            # One branch for all is simpler: it wins where it is no worse.
            to_beat = min(present, *alone) - tolerance
            fixed = first + unit * (len(below) - 1 + sum(below))
            problems.append(
                Problem(
                    number, n_rows, n_caring, at_best, below, present, alone, first, unit,
                    unit * tree.nodes[number].parts_price, tolerance, to_beat, fixed,
                )
            )  # fmt: skip
        return problems

    def _best_of_one_feature(self, problems: list[Problem]) -> dict[int, Solution]:
        """The best split of each node on a single feature, where there is one to beat the rest."""
        rows, found = self._rows, dict[int, Solution]()
        bounds = [problem.bound for problem in problems]
        # No split is better than every row in its best branch: some nodes need not be looked at.
        n_care = [
            problem.n_care if problem.least < bound else 0
            for problem, bound in zip(problems, bounds, strict=True)
        ]
        if not any(n_care):
            return found
        n_branches = np.array([len(problem.below) for problem in problems], dtype=np.int32)
        all_bounds = np.array(bounds)
        units = np.array([[problem.part_unit] for problem in problems])
        for first, cells in rows.loss_cells(n_care):
            here = slice(first, first + len(cells.starts))
            costs = cheapest_shapes(
                cells.starts, cells.n_cells, cells.bins, cells.losses, rows.n_bins,
                rows.is_categorical, n_branches[here], all_bounds[here],
                segment_penalty=units[here],
                category_penalty=units[here] * self._category_shares,
                choice_penalty=units[here] * self._choice_shares,
                max_segments=self._options.max_segments, only_best=not self._options.limits_rows,
                n_threads=threads_for(cells.losses.size, self._rows.n_threads),
            )  # fmt: skip
            for node in (costs.min(axis=1) < all_bounds[here]).nonzero()[0].tolist():
                problem = problems[first + node]
                solution = self._solve(problem, cells, node, costs[node], bounds[first + node])
                if solution is not None:
                    found[problem.number] = solution
        return found

    def _solve(
        self, problem: Problem, cells: LossCells, node: int, costs: np.ndarray, bound: float
    ) -> Solution | None:
        """The best split on a single feature that keeps the limits and costs less than `bound`."""
        rows, n_branches = self._rows, len(problem.below)
        while True:
            feature = int(costs.argmin())
            if not costs[feature] < bound:
                return None
            costs[feature] = np.inf
            is_categorical = bool(rows.is_categorical[feature])
            branch_of_bin, losses, counts = cheapest_shape(
                *cells.of(node, feature), rows.n_bins[feature], is_categorical, n_branches,
                segment_penalty=problem.part_unit,
                category_penalty=problem.part_unit * self._category_shares[feature],
                max_segments=self._options.max_segments,
            )  # fmt: skip
            split = BinSplit(feature, n_branches, branch_of_bin)
            if not all(counts):
                # Rows that do not care may yet take the other branches.
                counts = rows.branch_counts(problem.number, split, n_branches)
            objective = problem.objective(extra_parts(split, rows.bins), losses, counts)
            if objective < problem.to_beat and self._keeps_limits(problem, split):
                return Solution(split, objective)

    def _keeps_limits(self, problem: Problem, split: Split) -> bool:
        options = self._options
        return not options.limits_rows or self._tree.keeps_limits(problem.number, split, options)

    # Pairs

    def _improve_by_pairs(
        self, problems: list[Problem], best: dict[int, Solution], price: float
    ) -> None:
        """Put splits on pairs in the place of solutions that they are better than."""
        care_sets = self._rows.care_sets([len(problem.below) for problem in problems])
        for problem, care in zip(problems, care_sets, strict=True):
            solution = best.get(problem.number)
            to_beat = problem.to_beat
            if solution is not None:
                to_beat = solution.objective - problem.tolerance
            for split in self._splits_on_pairs(problem, care, price, to_beat):
                objective = self._objective_of_pair(problem, split, care)
                if objective < to_beat and self._keeps_limits(problem, split):
                    best[problem.number] = Solution(split, objective)
                    to_beat = objective

    def _splits_on_pairs(
        self, problem: Problem, care: CareSet, price: float, to_beat: float
    ) -> Iterator[PairSplit]:
        """The node's own regions with other branches, and the pair that fits its care set best."""
        assert self._pairs is not None
        if care.n_rows == 0:
            return
        region_price = price * self._options.penalty
        # Two regions, and two branches, cost so much at least; a split on a pair may lose as much
        # as is left.
        parts = 2.0 + float(np.sort(problem.below)[:2].sum())
        slack = to_beat - (problem.first + care.least) - region_price * parts
        if slack <= 0.0:
            return
        present = self._tree.nodes[problem.number].split
        if isinstance(present, PairSplit):
            own = assigned(care, present.cuts, region_price)
            if own is not None:
                yield own
        if problem.n_rows >= self._loss.min_rows_of_pairs or not self._pairs.must_hold_up:
            fitted = self._pairs.best(problem.number, care, price, region_price, slack)
            if fitted is not None:
                yield fitted

    def _objective_of_pair(self, problem: Problem, split: PairSplit, care: CareSet) -> float:
        cuts, n_branches = split.cuts, len(problem.below)
        losses = care.region_losses(cuts)
        of_branches = np.zeros(n_branches)
        branch_of_region = np.append(cuts.branch_of_piece, cuts.missing_branch)
        np.add.at(of_branches, branch_of_region, losses[np.arange(len(losses)), branch_of_region])
        counts = self._rows.branch_counts(problem.number, split, n_branches)
        return problem.objective(extra_parts(split, self._rows.bins), of_branches.tolist(), counts)
