"""Growth: from the root, split what gains most, level by level, until the limits say stop."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, count

import numpy as np

from shapetree._core.search import Candidate
from shapetree.data._map_join import Inquiry
from shapetree.data._statistics import Statistics
from shapetree.data._sums import exact_units
from shapetree.data._targets import ClassGoal, RegressionGoal
from shapetree.grow._candidates import (
    CandidateSearch,
    FeatureShapes,
    Found,
    PairCandidate,
    SearchedNode,
)
from shapetree.grow._feature_draw import FeatureDraw
from shapetree.grow._histograms import LevelHistograms
from shapetree.grow._local import rows_of_node
from shapetree.grow._nodes import GrownTree, Level
from shapetree.grow._pair_options import SAMPLE_ROWS
from shapetree.grow._pairs import PairSearch
from shapetree.grow._progress import Progress
from shapetree.grow._row_holder import Rows

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


@dataclass(frozen=True)
class Trees:
    """What tells trees from each other that grow together, beside their rows.

    Attributes
    ----------
    seeds : int64 array of shape (n_trees,)
        Added to that of the search.
    draw : FeatureDraw or None
        Which features each node may split on; None for all.
    lays_out : bool
        Whether splits on single features are kept as shape functions alone, see `GrownTree`.
    """

    seeds: np.ndarray
    draw: FeatureDraw | None = None
    lays_out: bool = False


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


def describe(rows: Rows, nodes: np.ndarray, channels: np.ndarray) -> Statistics:
    """What nodes know of their rows, whose sums of channels are given."""
    goal = rows.goal
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


class Waiting:
    """Nodes that wait to be split where leaves are limited, the best of each tree first."""

    def __init__(self, n_trees: int, max_leaf_nodes: int) -> None:
        self._rooms = [max_leaf_nodes - 1] * n_trees  # for more leaves
        self._queues: list[list[tuple[float, int, Level, Found]]] = [[] for _ in range(n_trees)]
        self._arrivals = count()  # of equals, the first to come goes first

    def add(self, level: Level, found: Sequence[Found], scores: Sequence[float]) -> None:
        """Queue up nodes with what they are to be split on."""
        for i, (candidate, score) in enumerate(zip(found, scores, strict=True)):
            entry = -score, next(self._arrivals), level.take(slice(i, i + 1)), candidate
            heapq.heappush(self._queues[level.tree[i]], entry)

    def next(self) -> tuple[list[tuple[Level, list[Found]]], list[tuple[Level, int]]]:
        """The best node of each tree: nodes to split with candidates, and nodes to search again.

        Where a candidate has too many leaves, the node is searched for as many branches as there is
        room for, and queues up with what that gains.
        """
        by_depth: dict[int, list[tuple[Level, Found]]] = {}
        again: list[tuple[Level, int]] = []
        for tree, queue in enumerate(self._queues):
            if queue and self._rooms[tree] > 0:
                node, candidate = heapq.heappop(queue)[2:]
                if candidate.n_branches <= self._rooms[tree] + 1:
                    by_depth.setdefault(node.depth, []).append((node, candidate))
                    self._rooms[tree] -= candidate.n_branches - 1
                else:
                    again.append((node, self._rooms[tree] + 1))
        chosen = [
            (Level.joined([node for node, _ in some]), [candidate for _, candidate in some])
            for some in by_depth.values()
        ]
        return chosen, again


class Grower:
    """Grows one tree, or several together: level by level, each as it would grow alone.

    Parameters
    ----------
    rows : Rows
        Each at the root of its tree; trees may share rows.
    pair_searches : sequence of PairSearch
        One for each tree; none for shape functions of one feature only.
    trees : Trees
        By default one.
    """

    def __init__(
        self,
        rows: Rows,
        search: CandidateSearch,
        pair_searches: Sequence[PairSearch],
        limits: Limits,
        progress: Progress,
        trees: Trees = ONE_TREE,
    ) -> None:
        self._draw = trees.draw
        # Numbers of nodes are part of their seeds, and start at 1 there.
        self._seeds = 1 + trees.seeds
        self._rows = rows
        self._search = search
        self._pair_searches = pair_searches
        self._limits = limits
        self._progress = progress
        numbers = np.arange(len(trees.seeds), dtype=np.int32)
        bins = rows.binned.features if trees.lays_out and not pair_searches else None
        self._tree = GrownTree(describe(rows, numbers, rows.totals(numbers)), bins)
        self._histograms = LevelHistograms(
            rows, self._tree, search.offsets, rows.goal.targets.n_channels, search.exact,
            len(pair_searches) > 0,
        )  # fmt: skip
        self._least_decrease = limits.min_impurity_decrease * self._tree.statistics.weight

    def grow(self) -> GrownTree:
        """Grow the trees."""
        limits, roots, waiting = self._limits, self._tree.roots(), None
        if limits.max_leaf_nodes < int(roots.statistics.n_rows.max()):
            waiting = Waiting(len(roots), limits.max_leaf_nodes)
        levels = [(roots, limits.max_branches)]
        while levels:
            level, max_branches = levels.pop()
            level = self._without_leaves(level, self._may_split(level))
            has_next = level.depth + 1 < limits.max_depth
            found: list[Found | None] = []
            for batch in self._histograms.batches(level):
                nodes = level.take(batch)
                # The best shape function of every feature, and the best feature of every node.
                keep = self._rows.is_remote or has_next
                shapes = self._search_features(nodes, max_branches, keep, self._draw)
                singles = self._search.best(shapes, nodes.statistics, nodes.tree)
                if self._draw is not None:
                    self._draw_again(self._draw, nodes, singles, max_branches)
                # A pair, if it is better.
                best: list[Found | None] = list(singles)
                if self._pair_searches:
                    each = enumerate(singles)
                    best = self._rows.run(
                        [self._best_with_pairs(nodes, i, max_branches, its) for i, its in each]
                    )
                if self._least_decrease.any():
                    for i, candidate in enumerate(best):
                        if candidate and candidate.gain < self._least_decrease[nodes.tree[i]]:
                            best[i] = None
                # Another feature, if its children's splits make up for what it gains less.
                if limits.lookahead > 1 and has_next:
                    for i, single in enumerate(singles):
                        if single is not None and best[i] is single:
                            best[i] = self._best_ahead(single, nodes, shapes, i, max_branches)
                found += best
            # Nodes without a candidate stay leaves.
            is_split = np.array([candidate is not None for candidate in found], dtype=bool)
            for number in level.numbers[~is_split].tolist():
                self._histograms.kept.pop(number, None)
            level = self._without_leaves(level, is_split)
            splits = [candidate for candidate in found if candidate is not None]
            chosen = [(level, splits)]
            if waiting is not None:
                waiting.add(level, splits, [self._search.score(each) for each in splits])
                chosen, again = waiting.next() if not levels else ([], [])
                levels += again
            for parents, splits in chosen:
                children = self._send(parents, splits)
                ways = [candidate.split for candidate in splits]
                self._tree.add(parents.numbers.tolist(), ways, children)
                self._progress.split(parents.statistics.n_rows, parents.depth)
                if len(children) > 0:
                    levels.append((children, limits.max_branches))
        return self._tree

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

    def _without_leaves(self, level: Level, is_split: np.ndarray) -> Level:
        """The nodes that are, or may be, split; the others are leaves."""
        if is_split.all():
            return level
        self._progress.leaves(level.statistics.n_rows[~is_split], level.depth)
        return level.take(is_split)

    def _search_features(
        self, level: Level, max_branches: int, keep: bool, draw: FeatureDraw | None
    ) -> FeatureShapes:
        """The best shape function of each feature for nodes; children may want their histograms."""
        found = FeatureShapes.empty(len(level), self._search.offsets)
        for request in self._histograms.requests(level, keep):
            sums = self._rows.histograms(*request.asked)
            for nodes, histograms in self._histograms.completed(level, request, sums):
                tree, own = level.tree[nodes], level.own[nodes]
                allowed = None if draw is None else draw.allowed(own + np.int64(1), tree)
                statistics, part = level.statistics.take(nodes), found.room_for(nodes)
                seeds = own + self._seeds[tree]
                only_best = self._limits.lookahead == 1
                about = statistics, seeds, max_branches, histograms, part, allowed
                self._search.search(*about, only_best=only_best)
                found.put(nodes, part)
        return found

    def _draw_again(
        self,
        draw: FeatureDraw,
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

    def _best_with_pairs(
        self, level: Level, i: int, max_branches: int, single: Candidate | None
    ) -> Inquiry[Found | None]:
        """The best of a node's features, which is `single`, and of pairs."""
        number, search = level.numbers.item(i), self._pair_searches[level.tree[i]]
        statistics = level.statistics[i]
        rows = yield from rows_of_node(self._rows.goal, number, statistics.n_rows)
        histogram = None if self._search.exact else self._histograms.kept.get(number)
        if histogram is None:
            histogram = yield from rows.histogram()
        seed = int(level.own[i] + self._seeds[level.tree[i]])
        node = SearchedNode(statistics, seed, max_branches, rows, histogram)
        pairs = yield from search.considered(node)
        self._tree.pairs[number] = pairs
        pair = yield from search.best(pairs, node, single.penalised_gain if single else 0.0)
        if pair is None or not (yield from self._is_better(pair, single, search, node)):
            return single
        return pair

    def _is_better(
        self,
        pair: PairCandidate,
        single: Candidate | None,
        search: PairSearch,
        node: SearchedNode,
    ) -> Inquiry[bool]:
        """Whether a pair beats the best single feature: after penalties, and on new rows, too."""
        n_rows, weight = node.statistics.n_rows, node.statistics.weight
        if n_rows > SAMPLE_ROWS:
            # It was fitted on a sample: does it leave every branch the rows it must have?
            counts = yield from node.rows.branch_counts(pair.split)
            if counts.min() < max(1, self._limits.min_samples_leaf):
                return False
        # Rounding must not choose: of equals, the single feature wins.
        if single and self._search.score(pair) <= self._search.score(single) + 1e-10 * weight:
            return False
        if not search.must_hold_up:
            return True
        is_small = weight <= MAX_WEIGHT_TO_HOLD_UP and n_rows <= SAMPLE_ROWS
        if not is_small and search.n_categories(pair) * ROWS_PER_CATEGORY <= n_rows:
            return True
        # It must also gain more on new rows, and keep some of what it gains on those that it was
        # fitted on.
        features = pair.shape.first, pair.shape.second
        binned = (single.split.feature,) if single else ()
        sample = yield from node.rows.sample(features, min(n_rows, SAMPLE_ROWS), binned)
        of_pair = of_single = needed = 0.0
        for halving in sample.halvings(N_HALVINGS):
            needed += LEAST_KEPT * pair.gain
            of_pair += search.gain_on_new_rows(pair, sample, halving, node)
            if single:
                of_single += self._search.gain_on_new_rows(single, sample, halving, node)
            if of_pair > max(CLEAR_LEAD * of_single, needed):
                return True
        return of_pair > max(PAIR_LEAD * of_single, needed)

    def _best_ahead(
        self, best: Candidate, level: Level, found: FeatureShapes, i: int, max_branches: int
    ) -> Candidate:
        """The candidate of a node that is best if what comes after it counts, too.

        That is what its children's best splits on single features gain.
        """
        rivals = self._search.rivals(best, found, i, self._limits.lookahead, LEAST_SHARE)
        if len(rivals) == 1:
            return best
        node, gains = level.take(slice(i, i + 1)), []
        for rival in rivals:
            children = self._send(node, [rival])
            children = children.take(self._may_split(children))
            gains.append(rival.penalised_gain)
            if len(children) > 0:
                shapes = self._search_features(children, max_branches, False, self._draw)
                singles = self._search.best(shapes, children.statistics, children.tree)
                gains[-1] += sum(single.penalised_gain for single in singles if single is not None)
        return rivals[int(np.argmax(gains))]

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
        statistics = describe(self._rows, numbers, channels)
        tree = np.repeat(level.tree, [candidate.n_branches for candidate in found])
        return Level(numbers, statistics, level.depth + 1, tree, self._tree.numbered(tree))

    def _channels_below(
        self, level: Level, found: Sequence[Found], numbers: np.ndarray
    ) -> np.ndarray:
        """Sums of the channels over the rows of children, whose numbers are given.

        A histogram that is in this process is used instead of a message.
        """
        channels = np.empty((len(numbers), self._rows.goal.targets.n_channels))
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
