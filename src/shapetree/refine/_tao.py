"""Tree alternating optimisation: one node's shape function after another, the rest held fixed.

What a branch would cost a row is the loss of the leaf that the row would end in, as the tree below
stands. The *care set* of a node are its rows for which branches differ, its *reduced problem* is
to send them where they lose least; for shape functions of one feature it is solved exactly
(`shapetree._core.reduced`). Nodes are solved from the deepest level to the root, sweep by sweep,
and the penalised loss of the whole tree never rises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets
from shapetree._core.reduced import cheapest_shapes
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.grow._candidates import CATEGORY_SHARE, fill_gaps
from shapetree.grow._histograms import LocalHistograms
from shapetree.grow._nodes import rows_by_node
from shapetree.refine._loss import BranchLosses, TreeLoss
from shapetree.refine._options import RefineOptions
from shapetree.refine._pairs import MakeSearches, PairRefitter
from shapetree.refine._splits import BinSplit, PairSplit, Split
from shapetree.refine._working import WorkingTree

# Objectives that differ by less are equal: as a share of the rows' price, and, where they lose
# next to nothing, of what they might lose.
TOLERANCE = 1e-10
ROUNDING = 1e-12


@dataclass(frozen=True)
class Problem:
    """One node's reduced problem.

    Attributes
    ----------
    number : int
        Of the node.
    rows, care : int arrays
        The node's rows, and those of them for which branches differ.
    below : array of shape (n_branches,)
        Complexity of what each branch leads to.
    present : float
        Objective of the tree from the node on, as it is.
    alone : array of shape (n_branches,)
        The same if all rows took one branch, which then took the node's place.
    first : float
        Loss of all rows in branch 0.
    """

    number: int
    rows: np.ndarray
    care: np.ndarray
    below: np.ndarray
    present: float
    alone: np.ndarray
    first: float


@dataclass(frozen=True)
class Solution:
    """A split that may solve a node's reduced problem, the branches of its rows, and its value."""

    split: Split
    branches: np.ndarray
    objective: float


class Level:
    """The nodes of one depth, and what their branches would cost their rows.

    Parameters
    ----------
    losses : BranchLosses
    at : int array of shape (n_rows,)
        The node at this depth that each row is at, or -1.
    tree : WorkingTree
    unit : float
        Loss that a part is worth.
    """

    def __init__(
        self, losses: BranchLosses, at: np.ndarray, tree: WorkingTree, unit: float
    ) -> None:
        self.losses = losses
        self.unit = unit
        self._numbering = tree.numbering
        self._n_parts = tree.n_parts
        self._at = at

    @property
    def n_branches_of_rows(self) -> np.ndarray:
        """Branches of the node that each row is at; 0 if it is at none."""
        return np.append(self._numbering.n_branches, 0)[self._at]

    def problems(self) -> Iterator[Problem]:
        """The reduced problem of each node."""
        for number, rows in rows_by_node(self._at, len(self._n_parts)).items():
            start = self._numbering.first_child[number]
            n_branches = self._numbering.n_branches[number]
            below = self._n_parts[start : start + n_branches]
            added = np.append(0.0, self.losses.added[number, : n_branches - 1])
            yield Problem(
                number,
                rows,
                rows[self.losses.cares[rows]],
                below,
                float(self.losses.present[number] + self.unit * self._n_parts[number]),
                self.losses.first[number] + added + self.unit * below,
                float(self.losses.first[number]),
            )


class Refiner:
    """Refines one tree.

    Parameters
    ----------
    tree : WorkingTree
    binned : BinnedTable
    columns : Columns
    loss : TreeLoss
    options : RefineOptions
    make_searches : function or None
        None for shape functions of one feature only.
    n_threads : int
    report : function
        Told each sweep's number, and the objective after it.
    """

    def __init__(
        self,
        tree: WorkingTree,
        binned: BinnedTable,
        columns: Columns,
        loss: TreeLoss,
        options: RefineOptions,
        make_searches: MakeSearches | None,
        n_threads: int,
        report: Callable[[int, float], None],
    ) -> None:
        self._tree = tree
        self._binned = binned
        self._offsets = binned.offsets
        self._categorical = binned.categorical
        self._columns = columns
        self._loss = loss
        self._options = options
        self._make_searches = make_searches
        self._n_threads = n_threads
        self._report = report
        n_branches = max(2, int(tree.numbering.n_branches.max()))
        self._losses = BranchLosses(binned.n_rows, n_branches)
        # Sums what the rows of a node lose; it reads the losses as they are at the time.
        self._histograms = LocalHistograms(
            binned, Targets(None, self._losses.others, None, n_branches), n_threads
        )

    def refine(self) -> list[float]:
        """Sweep until nothing changes; returns the objective before the first and after each."""
        self._tree.update_shapes()
        history = [self._objective()]
        self._report(0, history[0])
        for sweep in range(1, self._options.max_sweeps + 1):
            is_changed = self._sweep()
            if not is_changed or sweep == self._options.max_sweeps:
                # Shapes move where no row is; that may yet show other nodes a better split.
                is_changed |= self._tree.update_shapes()
            if not is_changed:
                break
            history.append(self._objective())
            self._report(sweep, history[-1])
        return history

    def _objective(self) -> float:
        tree = self._tree
        table = self._loss.fit_leaves(tree.leaves, len(tree.nodes))
        loss = self._loss.objective(self._loss.total(tree.leaves, table))
        return loss + self._options.penalty * float(tree.n_parts[0])

    def _sweep(self) -> bool:
        """Solve every node once, from the deepest level up; whether anything changed."""
        depths = range(int(self._tree.numbering.depth.max()))
        return max([self._refine_level(depth) for depth in reversed(depths)], default=False)

    def _refine_level(self, depth: int) -> bool:
        level = self._make_level(depth)
        if level is None:
            return False
        pairs = None
        if self._make_searches is not None:
            pairs = PairRefitter(
                self._make_searches,
                self._columns,
                level.losses,
                level.n_branches_of_rows,
                level.unit,
            )
        changed = [
            problem.number for problem in level.problems() if self._solve(problem, level, pairs)
        ]
        if changed:
            self._tree.unsettle(changed)
            self._tree.tidy()
        return bool(changed)

    def _make_level(self, depth: int) -> Level | None:
        """Find out what each branch would cost, for nodes not yet settled; None without any."""
        tree, numbering = self._tree, self._tree.numbering
        table = self._loss.fit_leaves(tree.leaves, len(tree.nodes))
        price = self._loss.price(self._loss.total(tree.leaves, table))
        is_open = np.array(
            [node.split is not None and node.settled_at != price for node in tree.nodes]
        )
        above = numbering.above(depth)
        above[(above >= 0) & ~is_open[above]] = -1
        at = above[tree.leaves]
        if not (above >= 0).any():
            return None
        self._losses.price = price
        self._losses.update(tree.router, at, tree.leaves, self._loss.rows, table, self._n_threads)
        return Level(self._losses, at, tree, price * self._options.penalty)

    def _solve(self, problem: Problem, level: Level, pairs: PairRefitter | None) -> bool:
        """Give a node its best split, or its best branch's place; whether that changes it."""
        node = self._tree.nodes[problem.number]
        rows = problem.rows
        tolerance = TOLERANCE * len(rows) * level.losses.price + ROUNDING * problem.alone.max()
        # One branch for all is simpler: it wins where it is no worse.
        to_beat = min(problem.present, float(problem.alone.min())) - tolerance
        best = self._best_of_one_feature(problem, level, to_beat)
        if pairs is not None:
            to_beat = to_beat if best is None else best.objective - tolerance
            best = self._best_of_pairs(problem, level, pairs, to_beat) or best
        if best is not None:
            node.split = best.split
            self._tree.send(rows, problem.number, best.branches)
        elif problem.alone.min() <= problem.present + tolerance:
            self._tree.send(rows, problem.number, np.full(len(rows), problem.alone.argmin()))
        else:
            node.settled_at = level.losses.price
            return False
        return True

    def _best_of_one_feature(
        self, problem: Problem, level: Level, to_beat: float
    ) -> Solution | None:
        """The best split on a single feature, if it does better than `to_beat`."""
        if len(problem.care) == 0:
            return None
        n_branches = len(problem.below)
        histogram = np.ascontiguousarray(self._histograms.build(problem.care)[:, :n_branches])
        # What no split of the rows can change.
        fixed = problem.first + level.unit * (n_branches - 1 + problem.below.sum())
        offsets, categorical = self._offsets, self._categorical
        costs = np.empty(len(categorical))
        branch_of_bin = np.empty(offsets[-1], dtype=np.uint8)
        cheapest_shapes(
            histogram, offsets, categorical.view(np.uint8), costs, branch_of_bin,
            segment_penalty=level.unit,
            category_penalty=CATEGORY_SHARE * level.unit,
            max_segments=self._options.max_segments,
            bound=to_beat - fixed,
            n_threads=threads_for(histogram.size, self._n_threads),
        )  # fmt: skip
        for feature in np.argsort(costs, kind="stable").tolist():
            if not costs[feature] < to_beat - fixed:
                break
            bins = slice(offsets[feature], offsets[feature + 1])
            filled = fill_gaps(branch_of_bin[bins], categorical[feature])
            split = BinSplit(feature, filled, bool(categorical[feature]))
            solution = self._evaluate(split, problem, level)
            if solution.objective < to_beat and self._keeps_limits(solution, problem):
                return solution
        return None

    def _best_of_pairs(
        self, problem: Problem, level: Level, pairs: PairRefitter, to_beat: float
    ) -> Solution | None:
        """The best split on a pair, if it does better than `to_beat`."""
        best = None
        for split in self._splits_on_pairs(problem, pairs, to_beat):
            solution = self._evaluate(split, problem, level)
            if solution.objective < to_beat and self._keeps_limits(solution, problem):
                best, to_beat = solution, solution.objective
        return best

    def _splits_on_pairs(
        self, problem: Problem, pairs: PairRefitter, to_beat: float
    ) -> Iterator[PairSplit]:
        """The node's own regions with other branches, and the pair that fits its care set best."""
        care, n_branches = problem.care, len(problem.below)
        if len(care) == 0:
            return
        slack = pairs.slack(care, problem.below, problem.first, to_beat)
        if slack <= 0.0:
            return
        present = self._tree.nodes[problem.number].split
        if isinstance(present, PairSplit):
            own = pairs.assigned(present.shape, care, n_branches)
            if own is not None:
                yield own
        if len(problem.rows) >= self._loss.min_rows_of_pairs or not pairs.must_hold_up:
            fitted = pairs.best(care, n_branches, slack)
            if fitted is not None:
                yield fitted

    def _evaluate(self, split: Split, problem: Problem, level: Level) -> Solution:
        """Send a node's rows through a split; branches that none takes are as good as gone."""
        rows, others = problem.rows, level.losses.others
        branches = split.branches(self._binned, rows, threads_for(len(rows), self._n_threads))
        used = np.flatnonzero(np.bincount(branches, minlength=len(problem.below)))
        loss = problem.first
        for branch in used[used > 0]:
            loss += float(others[rows[branches == branch], branch - 1].sum())
        parts = split.extra_parts + len(used) - 1 + float(problem.below[used].sum())
        return Solution(split, branches, loss + level.unit * parts)

    def _keeps_limits(self, solution: Solution, problem: Problem) -> bool:
        """Whether nodes and segments from here on would have the rows they must have."""
        options = self._options
        if not options.limits_rows:
            return True
        node, rows = self._tree.nodes[problem.number], problem.rows
        split_before, leaves_before = node.split, self._tree.leaves.copy()
        node.split = solution.split
        self._tree.send(rows, problem.number, solution.branches)
        is_allowed = self._tree.keeps_limits(problem.number, options)
        node.split, self._tree.leaves = split_before, leaves_before
        return is_allowed
