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

from shapetree._binning import BinnedTable
from shapetree._candidates import CATEGORY_SHARE, fill_gaps
from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets
from shapetree._core.reduced import cheapest_shapes
from shapetree._histograms import LocalHistograms, threads_for
from shapetree.refine._loss import BranchLosses, TreeLoss
from shapetree.refine._pairs import MakeSearches, PairRefitter
from shapetree.refine._splits import BinSplit, Split
from shapetree.refine._working import WorkingNode, WorkingTree

# Objectives that differ by less, as a share of the number of rows, are equal.
TOLERANCE = 1e-10


@dataclass(frozen=True)
class RefineOptions:
    """How a tree is refined.

    Attributes
    ----------
    max_sweeps : int
    penalty : float
        What each segment beyond two and each branch beyond the first must earn, in penalty units.
    max_segments : int
    min_segment_rows : int
        Fewest rows of a segment.
    min_samples_leaf : int
    min_weight_leaf : float
    """

    max_sweeps: int
    penalty: float
    max_segments: int
    min_segment_rows: int
    min_samples_leaf: int
    min_weight_leaf: float


@dataclass(frozen=True)
class Level:
    """What the nodes of one depth have in common while they are solved."""

    losses: BranchLosses
    histograms: LocalHistograms
    pairs: PairRefitter | None


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
        self._columns = columns
        self._loss = loss
        self._options = options
        self._make_searches = make_searches
        self._n_threads = n_threads
        self._report = report

    def refine(self) -> list[float]:
        """Sweep until nothing changes; returns the objective before the first and after each."""
        self._tree.update_shapes()
        history = [self._objective()]
        self._report(0, history[0])
        for sweep in range(1, self._options.max_sweeps + 1):
            if not self._sweep():
                break
            self._tree.update_shapes()
            history.append(self._objective())
            self._report(sweep, history[-1])
        return history

    def _objective(self) -> float:
        routes = self._tree.routes
        table = self._loss.fit_leaves(routes.leaves, len(routes.nodes))
        loss = self._loss.objective(self._loss.total(routes.leaves, table))
        return loss + self._options.penalty * self._tree.n_parts

    def _sweep(self) -> bool:
        """Solve every node once, from the deepest level up; whether anything changed."""
        depths = range(int(self._tree.routes.depth.max()))
        return max([self._refine_level(depth) for depth in reversed(depths)], default=False)

    def _refine_level(self, depth: int) -> bool:
        routes = self._tree.routes
        table = self._loss.fit_leaves(routes.leaves, len(routes.nodes))
        price = self._loss.price(self._loss.total(routes.leaves, table))
        is_open = np.array(
            [node.split is not None and node.settled_at != price for node in routes.nodes]
        )
        above = routes.nodes_at(depth)
        above[(above >= 0) & ~is_open[above]] = -1
        at = above[routes.leaves]
        rows_of = routes.rows_by_node(at)
        if not rows_of:
            return False
        level = self._make_level(
            at, max(len(routes.nodes[n].children) for n in rows_of), table, price
        )
        changed = [
            number
            for number, rows in rows_of.items()
            if self._solve(routes.nodes[number], number, rows, level)
        ]
        if changed:
            self._tree.unsettle(changed)
            self._tree.tidy()
        return bool(changed)

    def _make_level(
        self, at: np.ndarray, n_branches: int, table: np.ndarray, price: float
    ) -> Level:
        """Find out what each branch of the node that a row is at would cost the row."""
        n_rows = len(at)
        first, others = np.zeros(n_rows), np.zeros((n_rows, n_branches - 1))
        cares = np.zeros(n_rows, dtype=np.uint8)
        self._tree.routes.router.branch_losses(
            at, self._loss.rows, table, first, others, cares,
            threads_for(n_rows * n_branches, self._n_threads),
        )  # fmt: skip
        losses = BranchLosses(first, others, cares.astype(bool), price)
        targets = Targets(None, others, None, n_branches)
        return Level(
            losses,
            LocalHistograms(self._binned, targets, self._n_threads),
            None
            if self._make_searches is None
            else PairRefitter(
                self._make_searches, self._columns, losses, price * self._options.penalty
            ),
        )

    def _solve(self, node: WorkingNode, number: int, rows: np.ndarray, level: Level) -> bool:
        """Give a node its best split, or its best branch's place; whether that changes it."""
        assert node.split is not None
        losses, unit = level.losses, level.losses.price * self._options.penalty
        below = [child.n_parts for child in node.below]
        tolerance = TOLERANCE * len(rows) * losses.price
        present = self._objective_with(node.split, rows, losses, below)
        alone = losses.of_branches(rows, len(below)) + unit * np.array(below)
        # One branch for all is simpler: it wins where it is no worse.
        to_beat = min(present, float(alone.min())) - tolerance
        best: Split | None = None
        for split in self._candidates(rows, number, level, below, to_beat):
            objective = self._objective_with(split, rows, losses, below)
            if objective < to_beat and self._keeps_limits(node, split, rows):
                best, to_beat = split, objective - tolerance
        if best is not None:
            node.split = best
        elif alone.min() <= present + tolerance:
            node.become(node.below[int(alone.argmin())])
        else:
            node.settled_at = losses.price
            return False
        return True

    def _candidates(
        self, rows: np.ndarray, number: int, level: Level, below: list[float], to_beat: float
    ) -> Iterator[Split]:
        """Splits that may do better than `to_beat`: single features, best first, then a pair."""
        care = rows[level.losses.cares[rows]]
        if len(care) == 0:
            return
        yield from self._single_features(rows, care, level, below, to_beat)
        if level.pairs is not None:
            pair = level.pairs.best(care, len(below), number)
            if pair is not None:
                yield pair

    def _single_features(
        self, rows: np.ndarray, care: np.ndarray, level: Level, below: list[float], to_beat: float
    ) -> Iterator[BinSplit]:
        """Each feature's best split, if it may do better than `to_beat`; the best first."""
        n_branches, losses = len(below), level.losses
        histogram = np.ascontiguousarray(level.histograms.build(care)[:, :n_branches])
        unit = losses.price * self._options.penalty
        # What no split of the rows can change.
        fixed = float(losses.first[rows].sum()) + unit * (n_branches - 1 + sum(below))
        offsets, categorical = self._binned.offsets, self._binned.categorical
        costs = np.empty(len(categorical))
        branch_of_bin = np.empty(offsets[-1], dtype=np.uint8)
        cheapest_shapes(
            histogram, offsets, categorical.view(np.uint8), costs, branch_of_bin,
            segment_penalty=unit,
            category_penalty=CATEGORY_SHARE * unit,
            max_segments=self._options.max_segments,
            bound=to_beat - fixed,
            n_threads=threads_for(histogram.size, self._n_threads),
        )  # fmt: skip
        for feature in np.argsort(costs, kind="stable").tolist():
            if not costs[feature] < to_beat - fixed:
                break
            bins = slice(offsets[feature], offsets[feature + 1])
            is_categorical = bool(categorical[feature])
            filled = fill_gaps(branch_of_bin[bins], is_categorical)
            yield BinSplit(feature, filled, is_categorical)

    def _objective_with(
        self, split: Split, rows: np.ndarray, losses: BranchLosses, below: list[float]
    ) -> float:
        """Objective of the tree from a node on, if it had some split."""
        branches = split.branches(self._binned, rows, self._n_threads)
        used = np.flatnonzero(np.bincount(branches, minlength=len(below)))
        parts = split.extra_parts + len(used) - 1 + sum(below[branch] for branch in used)
        return losses.of(rows, branches) + losses.price * self._options.penalty * parts

    def _keeps_limits(self, node: WorkingNode, split: Split, rows: np.ndarray) -> bool:
        """Whether segments and leaves would have the rows they must have with some split."""
        if split.smallest_segment(self._binned, rows) < self._options.min_segment_rows:
            return False
        options = self._options
        if options.min_samples_leaf <= 1 and options.min_weight_leaf <= 0:
            return True
        n_rows, weights = self._tree.sizes_of_leaves(node, split)
        return bool(n_rows.min() >= options.min_samples_leaf) and bool(
            weights.min() >= options.min_weight_leaf
        )
