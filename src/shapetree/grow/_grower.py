"""Growth: from the root, split what gains most, level by level, until the limits say stop."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from typing import NamedTuple, TypeAlias

import numpy as np

from shapetree._core.criterion import NodeStatistics
from shapetree._core.search import Candidate
from shapetree.data._binning import FeatureBins
from shapetree.data._map_join import Inquiry
from shapetree.data._statistics import Statistics
from shapetree.data._sums import exact_units
from shapetree.data._targets import ClassGoal, Goal, RegressionGoal
from shapetree.grow._candidates import CandidateSearch, FeatureShapes
from shapetree.grow._feature_draw import FeatureDraw, HalfDraw
from shapetree.grow._histograms import LevelHistograms
from shapetree.grow._local import rows_of_node
from shapetree.grow._nodes import GrownTree, Level
from shapetree.grow._pair_options import SAMPLE_ROWS
from shapetree.grow._pairs import PairCandidate, PairSearch
from shapetree.grow._progress import Progress
from shapetree.grow._row_holder import Rows
from shapetree.grow._rows_of_node import RowsOfNode

# On new rows, a pair must gain this many times as much as a single feature, in nodes up to this
# weight; in larger nodes, gains by chance are small compared with the penalties.
PAIR_LEAD = 1.1
MAX_WEIGHT_TO_HOLD_UP = 5_000
# This is judged on several ways to halve the rows, so that less depends on chance, unless the first
# already shows a lead as clear as this.
N_HALVINGS = 2
CLEAR_LEAD = 2.0
# A pair must keep this share of its gain on new rows.
LEAST_KEPT = 0.1
# Pairs whose categories have fewer rows than this on average are checked in larger nodes, too:
# ordering many categories explains any target.
ROWS_PER_CATEGORY = 20
# Features whose gain is below this share of the best one's are not worth a look ahead.
LEAST_SHARE = 0.7
# Mean impurity below which rounding is all that is left.
PURE = 1e-14


# What a node may be split on.
Found: TypeAlias = Candidate | PairCandidate


class NodeOfLevel(NamedTuple):
    """A single node of a level."""

    number: int
    seed: int
    statistics: NodeStatistics


@dataclass(frozen=True)
class Trees:
    """What tells trees from each other that grow together, beside their rows.

    Attributes
    ----------
    seeds : int64 array of shape (n_trees,)
        Added to that of the search.
    draw : FeatureDraw, HalfDraw or None
        Which features each node may split on; None for all.
    """

    seeds: np.ndarray
    draw: FeatureDraw | HalfDraw | None = None


ONE_TREE = Trees(np.zeros(1, dtype=np.int64))


@dataclass(frozen=True)
class Limits:
    """When growth stops; all in absolute numbers."""

    max_depth: int
    max_branches: int
    max_leaf_nodes: int
    lookahead: int
    min_samples_split: int
    min_samples_leaf: int
    min_impurity_decrease: float


def describe(goal: Goal, rows: Rows, nodes: np.ndarray, channels: np.ndarray) -> Statistics:
    """What nodes know of their rows, whose sums of channels are given."""
    if isinstance(goal, ClassGoal):
        return goal.statistics(channels)
    assert isinstance(goal, RegressionGoal)
    if goal.is_absolute:
        values = rows.medians(nodes)
        return goal.statistics(channels, values, *rows.spreads(nodes, goal.standardise(values)))
    centres = goal.centres(channels)
    values = goal.in_units_of_y(centres)
    least, greatest, spreads = rows.spreads(nodes, centres)
    weights, largest = goal.weights_behind(channels), np.maximum(np.abs(least), np.abs(greatest))
    small = np.flatnonzero(goal.are_small(largest))
    if len(small):
        units = exact_units(weights[small, None] * largest[small])
        values[small] = rows.sums(nodes[small], units) / weights[small, None]
    return goal.statistics(channels, values, least, greatest, spreads)


class Grower:
    """Grows one tree, or several together: level by level, each as it would grow alone.

    Parameters
    ----------
    rows : Rows
        Each at the root of its tree; trees may share rows.
    goal : Goal
    search : CandidateSearch
    pair_searches : sequence of PairSearch
        One for each tree; none for shape functions of one feature only.
    exact : bool
        Whether bins are as many as values.
    limits : Limits
    progress : Progress
    trees : Trees
        By default one.
    bins : tuple of FeatureBins, optional
        If given, splits are laid out as they are found, see `GrownTree`.
    """

    def __init__(
        self,
        rows: Rows,
        goal: Goal,
        search: CandidateSearch,
        pair_searches: Sequence[PairSearch],
        exact: bool,
        limits: Limits,
        progress: Progress,
        trees: Trees = ONE_TREE,
        bins: tuple[FeatureBins, ...] | None = None,
    ) -> None:
        self._draw = trees.draw
        # Numbers of nodes are part of their seeds, and start at 1 there.
        self._seeds = 1 + trees.seeds
        self._rows = rows
        self._goal = goal
        self._exact = exact
        self._search = search
        self._pair_searches = pair_searches
        self._limits = limits
        self._progress = progress
        numbers = np.arange(len(trees.seeds), dtype=np.int32)
        self._tree = GrownTree(describe(goal, rows, numbers, rows.totals(numbers)), bins)
        self._histograms = LevelHistograms(
            rows,
            self._tree,
            search.offsets,
            goal.targets.n_channels,
            exact,
            len(pair_searches) > 0,
        )
        self._least_decrease = limits.min_impurity_decrease * self._tree.statistics.weight

    def grow(self) -> GrownTree:
        """Grow the trees."""
        if self._limits.max_leaf_nodes < int(self._tree.statistics.n_rows.max()):
            self._grow_best_first()
            return self._tree
        level = self._tree.roots()
        while len(level) > 0:
            level = self._split(*self._find_splits(level, self._limits.max_branches))
        return self._tree

    def _grow_best_first(self) -> None:
        """Split the node of each tree with the greatest gain first, until leaves are enough."""
        n_trees = len(self._tree.sizes)
        waiting: list[list[tuple[float, int, Level, Found]]] = [[] for _ in range(n_trees)]
        arrivals = count()  # of equals, the first to come goes first

        def wait(level: Level, max_branches: int) -> None:
            nodes, found = self._find_splits(level, max_branches)
            for i, candidate in enumerate(found):
                score = self._search.score(candidate.penalised_gain, candidate.n_branches)
                node = nodes.take(slice(i, i + 1))
                its = waiting[node.tree.item()]
                heapq.heappush(its, (-score, next(arrivals), node, candidate))

        rooms = [self._limits.max_leaf_nodes - 1] * n_trees  # for more leaves
        if rooms[0] > 0:
            wait(self._tree.roots(), self._limits.max_branches)
        while True:
            chosen: list[tuple[Level, Found]] = []
            for tree, its in enumerate(waiting):
                while its and rooms[tree] > 0:
                    node, candidate = heapq.heappop(its)[2:]
                    if candidate.n_branches <= rooms[tree] + 1:
                        chosen.append((node, candidate))
                        rooms[tree] -= candidate.n_branches - 1
                        break
                    # Too many leaves: look again for fewer branches, and queue up with that gain.
                    wait(node, rooms[tree] + 1)
            if not chosen:
                return
            # Their depths differ, which only matters where it is limited.
            for depth in sorted({node.depth for node, _ in chosen}):
                some = [(node, found) for node, found in chosen if node.depth == depth]
                level = Level.joined([node for node, _ in some])
                wait(self._split(level, [found for _, found in some]), self._limits.max_branches)

    def _may_split(self, level: Level) -> np.ndarray:
        """Which nodes may be split, if a split gains enough."""
        limits, nodes = self._limits, level.statistics
        if level.depth >= limits.max_depth:
            return np.zeros(len(level), dtype=bool)
        is_open = nodes.n_rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)
        is_open &= nodes.impurity > PURE
        # No split gains more than all impurity.
        is_open &= nodes.weight * nodes.impurity > self._search.least_gains(nodes)
        return is_open

    def _find_splits(self, level: Level, max_branches: int) -> tuple[Level, list[Found]]:
        """The nodes of a level that earn a split, and what they are to be split on."""
        is_open = self._may_split(level)
        if not is_open.all():
            self._note_leaves(level, ~is_open)
            level = level.take(is_open)
        if len(level) == 0:
            return level, []
        has_next = level.depth + 1 < self._limits.max_depth
        best: list[Found | None] = []
        for batch in self._histograms.batches(level):
            some = level.take(batch)
            shapes = self._search_features(some, max_branches, self._rows.is_remote or has_next)
            singles = self._search.best(shapes, some.statistics, some.tree)
            if self._draw is not None:
                self._draw_again(self._draw, some, singles, max_branches)
            found: list[Found | None] = list(singles)
            if self._pair_searches:
                nodes = enumerate(singles)
                inquiries = [self._best_with_pairs(some, i, its, max_branches) for i, its in nodes]
                found = self._rows.run(inquiries)
            if self._least_decrease.any():
                for i, candidate in enumerate(found):
                    if candidate and candidate.gain < self._least_decrease[some.tree[i]]:
                        found[i] = None
            if self._limits.lookahead > 1 and has_next:
                for i, single in enumerate(singles):
                    if single is not None and found[i] is single:
                        found[i] = self._best_ahead(single, some, shapes, i, max_branches)
            best += found
        splits = [candidate for candidate in best if candidate is not None]
        if len(splits) == len(level):
            return level, splits
        is_split = np.array([candidate is not None for candidate in best], dtype=bool)
        for number in level.numbers[~is_split].tolist():
            self._histograms.kept.pop(number, None)
        self._note_leaves(level, ~is_split)
        return level.take(is_split), splits

    def _note_leaves(self, level: Level, are_leaves: np.ndarray) -> None:
        self._progress.leaves(level.statistics.n_rows[are_leaves], level.depth)

    def _draw_again(
        self,
        draw: FeatureDraw | HalfDraw,
        level: Level,
        singles: list[Candidate | None],
        max_branches: int,
    ) -> None:
        """Where no feature that was drawn splits a node, draw more, up to all."""
        more = draw.more()
        pending = np.flatnonzero([single is None for single in singles])
        while len(pending) > 0 and more is not None:
            some = level.take(pending)
            found = self._search_features(some, max_branches, False, more)
            more = more.more()
            best = self._search.best(found, some.statistics, some.tree)
            for number, single in zip(pending.tolist(), best, strict=True):
                singles[number] = single
            pending = pending[[single is None for single in best]]

    def _search_features(
        self,
        level: Level,
        max_branches: int,
        keep: bool,
        draw: FeatureDraw | HalfDraw | None = None,
    ) -> FeatureShapes:
        """The best shape function of each feature for nodes; children may want their histograms."""
        found = FeatureShapes.empty(len(level), self._search.offsets)
        draw = self._draw if draw is None else draw
        for nodes, histograms in self._histograms.parts(level, keep):
            tree, own = level.tree[nodes], level.own[nodes]
            allowed = None if draw is None else draw.allowed(own + np.int64(1), tree)
            statistics, part = level.statistics.take(nodes), found.room_for(nodes)
            seeds = own + self._seeds[tree]
            self._search.search(
                statistics, seeds, max_branches, histograms, part, allowed,
                only_best=self._limits.lookahead == 1,
            )  # fmt: skip
            found.put(nodes, part)
        return found

    def _best_with_pairs(
        self, level: Level, i: int, single: Candidate | None, max_branches: int
    ) -> Inquiry[Found | None]:
        """The best of a node's features, which is `single`, and of pairs."""
        search = self._pair_searches[level.tree[i]]
        seed = int(level.own[i] + self._seeds[level.tree[i]])
        node = NodeOfLevel(level.numbers.item(i), seed, level.statistics[i])
        rows = yield from rows_of_node(self._goal, node.number, node.statistics.n_rows)
        histogram = None if self._exact else self._histograms.kept.get(node.number)
        if histogram is None:
            histogram = yield from rows.histogram()
        about = node.statistics, rows, histogram, max_branches, node.seed
        pairs = yield from search.considered(*about)
        self._tree.pairs[node.number] = pairs
        to_beat = single.penalised_gain if single else 0.0
        pair = yield from search.best(pairs, *about, to_beat=to_beat)
        if pair is None:
            return single
        is_better = yield from self._is_better(pair, single, search, node, rows, max_branches)
        return pair if is_better else single

    def _best_ahead(
        self, best: Candidate, level: Level, found: FeatureShapes, i: int, max_branches: int
    ) -> Candidate:
        """The candidate of a node that is best if what comes after it counts, too."""
        rivals = self._search.rivals(best, found, i, self._limits.lookahead, LEAST_SHARE)
        if len(rivals) == 1:
            return best
        node = level.take(slice(i, i + 1))
        return max(rivals, key=lambda rival: self._gain_ahead(rival, node, max_branches))

    def _gain_ahead(self, candidate: Candidate, node: Level, max_branches: int) -> float:
        """What a candidate gains, and its children's best splits on single features with it."""
        children = self._send(node, [candidate])
        children = children.take(self._may_split(children))
        gain = candidate.penalised_gain
        if len(children) > 0:
            found = self._search_features(children, max_branches, keep=False)
            singles = self._search.best(found, children.statistics, children.tree)
            gain += sum(best.penalised_gain for best in singles if best is not None)
        return gain

    def _is_better(
        self,
        pair: PairCandidate,
        single: Candidate | None,
        search: PairSearch,
        node: NodeOfLevel,
        rows: RowsOfNode,
        max_branches: int,
    ) -> Inquiry[bool]:
        """Whether a pair beats the best single feature: after penalties, and on new rows, too."""
        if not (yield from self._leaves_room(pair, node, rows)):
            return False
        # Rounding must not choose: of equals, the single feature wins.
        if single:
            score, to_beat = (
                self._search.score(candidate.penalised_gain, candidate.n_branches)
                for candidate in (pair, single)
            )
            if score <= to_beat + 1e-10 * node.statistics.weight:
                return False
        if not search.must_hold_up:
            return True
        n_rows, weight = node.statistics.n_rows, node.statistics.weight
        is_small = weight <= MAX_WEIGHT_TO_HOLD_UP and n_rows <= SAMPLE_ROWS
        if is_small or search.n_categories(pair) * ROWS_PER_CATEGORY > n_rows:
            return (yield from self._holds_up(pair, single, search, node, rows, max_branches))
        return True

    def _holds_up(
        self,
        pair: PairCandidate,
        single: Candidate | None,
        search: PairSearch,
        node: NodeOfLevel,
        rows: RowsOfNode,
        max_branches: int,
    ) -> Inquiry[bool]:
        """Whether a pair gains more than the best single feature on new rows, too.

        It must also keep some of what it gains on the rows that it was fitted on.
        """
        statistics = node.statistics
        features = pair.shape.first, pair.shape.second
        binned = (single.split.feature,) if single else ()
        sample = yield from rows.sample(features, min(statistics.n_rows, SAMPLE_ROWS), binned)
        of_pair = of_single = needed = 0.0
        for halving in sample.halvings(N_HALVINGS):
            needed += LEAST_KEPT * pair.gain
            of_pair += search.gain_on_new_rows(
                pair, sample, halving, statistics, max_branches, node.seed
            )
            if single:
                of_single += self._search.gain_on_new_rows(
                    single, sample, halving, statistics, max_branches, node.seed
                )
            if of_pair > max(CLEAR_LEAD * of_single, needed):
                return True
        return of_pair > max(PAIR_LEAD * of_single, needed)

    def _leaves_room(
        self, pair: PairCandidate, node: NodeOfLevel, rows: RowsOfNode
    ) -> Inquiry[bool]:
        """Whether a pair that was fitted on a sample leaves every branch the rows it must have."""
        if node.statistics.n_rows <= SAMPLE_ROWS:
            return True
        counts = yield from rows.branch_counts(pair.split)
        return bool(counts.min() >= max(1, self._limits.min_samples_leaf))

    def _split(self, level: Level, found: Sequence[Found]) -> Level:
        """Send nodes' rows to their children, which are returned."""
        children = self._send(level, found)
        self._tree.add(level.numbers.tolist(), [candidate.split for candidate in found], children)
        self._progress.split(level.statistics.n_rows, level.depth)
        return children

    def _send(self, level: Level, found: Sequence[Found]) -> Level:
        """Send nodes' rows by candidates to children, which are not yet part of the tree."""
        if len(level) == 0:
            return level
        first = self._tree.n_nodes
        *first_child, stop = accumulate((each.n_branches for each in found), initial=first)
        self._rows.split(
            level.numbers,
            np.array(first_child, dtype=np.int32),
            [candidate.split for candidate in found],
        )
        numbers = np.arange(first, stop, dtype=np.int32)
        if self._rows.is_remote:
            channels = self._channels_below(level, found, numbers)
        else:
            channels = self._rows.totals(numbers)
        statistics = describe(self._goal, self._rows, numbers, channels)
        tree = np.repeat(level.tree, [candidate.n_branches for candidate in found])
        return Level(numbers, statistics, level.depth + 1, tree, self._tree.numbered(tree))

    def _channels_below(
        self, level: Level, found: Sequence[Found], numbers: np.ndarray
    ) -> np.ndarray:
        """Sums of the channels over the rows of children, whose numbers are given.

        A histogram that is in this process is used instead of a message.
        """
        channels = np.empty((len(numbers), self._goal.targets.n_channels))
        is_told = np.ones(len(numbers), dtype=bool)
        last = 0
        for number, candidate in zip(level.numbers.tolist(), found, strict=True):
            first, last = last, last + candidate.n_branches
            histogram = self._histograms.kept.get(number)
            if isinstance(candidate, Candidate) and histogram is not None:
                channels[first:last] = self._search.branch_sums(histogram, candidate)
            else:
                is_told[first:last] = False
        if not is_told.all():
            channels[~is_told] = self._rows.totals(numbers[~is_told])
        return channels
