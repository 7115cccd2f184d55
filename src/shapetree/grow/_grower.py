"""Growth: from the root, split what gains most, level by level, until the limits say stop."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, count

import numpy as np

from shapetree._core.criterion import NodeStatistics
from shapetree.data._binning import FeatureBins
from shapetree.data._sums import exact_units
from shapetree.data._targets import ClassGoal, Goal, RegressionGoal
from shapetree.grow._candidates import Candidate, CandidateSearch, FeatureShapes
from shapetree.grow._feature_draw import FeatureDraw
from shapetree.grow._histograms import LevelHistograms
from shapetree.grow._nodes import GrowingNode
from shapetree.grow._pair_options import SAMPLE_ROWS
from shapetree.grow._pairs import PairCandidate, PairSearch
from shapetree.grow._progress import Progress
from shapetree.grow._rows import Rows, RowsOfNode

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
class Limits:
    """When growth stops; all in absolute numbers."""

    max_depth: int
    max_branches: int
    max_leaf_nodes: int
    lookahead: int
    min_samples_split: int
    min_samples_leaf: int
    min_impurity_decrease: float


def describe(
    goal: Goal, rows: Rows, nodes: np.ndarray, channels: np.ndarray
) -> list[NodeStatistics]:
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
    """Grows one tree.

    Parameters
    ----------
    rows : Rows
        All of them at node 0.
    bins : tuple of FeatureBins
    goal : Goal
    search : CandidateSearch
    pair_search : PairSearch or None
        None for shape functions of one feature only.
    exact : bool
        Whether bins are as many as values.
    limits : Limits
    progress : Progress
    draw : FeatureDraw, optional
        Which features each node may split on; by default all.
    """

    def __init__(
        self,
        rows: Rows,
        bins: tuple[FeatureBins, ...],
        goal: Goal,
        search: CandidateSearch,
        pair_search: PairSearch | None,
        exact: bool,
        limits: Limits,
        progress: Progress,
        draw: FeatureDraw | None = None,
    ) -> None:
        self._draw = draw
        self._rows = rows
        self._bins = bins
        self._goal = goal
        self._exact = exact
        self._search = search
        self._pair_search = pair_search
        self._limits = limits
        self._progress = progress
        self._histograms = LevelHistograms(
            rows, search.offsets, goal.targets.n_channels, exact, pair_search is not None
        )
        self._least_decrease = 0.0
        self._n_nodes = 1

    def grow(self) -> GrowingNode:
        """Grow the tree; its nodes have splits, but no shape functions yet, see `finish`."""
        numbers = np.zeros(1, dtype=np.int32)
        (statistics,) = describe(self._goal, self._rows, numbers, self._rows.totals(numbers))
        root = GrowingNode(statistics)
        self._least_decrease = self._limits.min_impurity_decrease * statistics.weight
        if self._limits.max_leaf_nodes < self._rows.n_rows:
            self._grow_best_first(root)
        else:
            self._grow_by_levels(root)
        # What leads up from children makes circles, and these would outlive the fit.
        for node in root.breadth_first():
            assert isinstance(node, GrowingNode)
            node.parent = node.histogram = None
        return root

    def _grow_by_levels(self, root: GrowingNode) -> None:
        level = [root]
        while level:
            self._find_candidates(level, self._limits.max_branches)
            level = self._split([node for node in level if node.candidate is not None])

    def _grow_best_first(self, root: GrowingNode) -> None:
        """Split the node with the greatest gain first, until there are leaves enough."""
        waiting: list[tuple[float, int, GrowingNode]] = []
        arrivals = count()  # of equals, the first to come goes first

        def wait(nodes: list[GrowingNode]) -> None:
            for node in nodes:
                if node.candidate is not None:
                    candidate = node.candidate
                    score = self._search.score(candidate.penalised_gain, candidate.n_branches)
                    heapq.heappush(waiting, (-score, next(arrivals), node))

        n_leaves, most = 1, self._limits.max_leaf_nodes
        if most > 1:
            self._find_candidates([root], self._limits.max_branches)
            wait([root])
        while waiting and n_leaves < most:
            node = heapq.heappop(waiting)[2]
            room = most - n_leaves
            if node.candidate.n_branches > room + 1:
                # Too many leaves: look again for fewer branches, and queue up with what that gains.
                self._find_candidates([node], room + 1)
                wait([node])
                continue
            children = self._split([node])
            n_leaves += len(node.children) - 1
            self._find_candidates(children, self._limits.max_branches)
            wait(children)

    def _may_split(self, statistics: NodeStatistics, depth: int) -> bool:
        limits = self._limits
        return (
            depth < limits.max_depth
            and statistics.n_rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)
            and statistics.impurity > PURE
            # No split gains more than all impurity.
            and statistics.weight * statistics.impurity > self._search.least_gain(statistics)
        )

    def _find_candidates(self, nodes: list[GrowingNode], max_branches: int) -> None:
        """Note what nodes may be split on, where that earns a split."""
        nodes = [node for node in nodes if self._is_open(node)]
        for some in self._histograms.batches(nodes):
            self._find_candidates_of(some, max_branches)

    def _find_candidates_of(self, nodes: list[GrowingNode], max_branches: int) -> None:
        """The same for nodes that may be split, whose shape functions there is memory for."""
        keep = self._rows.is_far or any(node.depth + 1 < self._limits.max_depth for node in nodes)
        found = self._search_features(nodes, max_branches, keep)
        singles = self._search.best(found, [node.statistics for node in nodes])
        if self._draw is not None:
            self._draw_again(self._draw, nodes, singles, max_branches)
        jobs = [
            partial(self._best_candidate, node, single, found, i, max_branches)
            for i, (node, single) in enumerate(zip(nodes, singles, strict=True))
        ]
        # Who looks ahead sends rows.
        only_asks = self._limits.lookahead == 1
        best = self._rows.together(jobs) if only_asks else [job() for job in jobs]
        for node, candidate in zip(nodes, best, strict=True):
            node.candidate = candidate
            if node.candidate is None:
                node.histogram = None
                self._progress.leaf(node.statistics.n_rows, node.depth)

    def _draw_again(
        self,
        draw: FeatureDraw,
        nodes: list[GrowingNode],
        singles: list[Candidate | None],
        max_branches: int,
    ) -> None:
        """Where no feature that was drawn splits a node, draw twice as many, up to all."""
        n_drawn = draw.n_drawn
        pending = [number for number, single in enumerate(singles) if single is None]
        while pending and n_drawn < self._search.n_features:
            n_drawn = min(2 * n_drawn, self._search.n_features)
            some = [nodes[number] for number in pending]
            found = self._search_features(some, max_branches, False, draw.drawing(n_drawn))
            best = self._search.best(found, [node.statistics for node in some])
            for number, single in zip(pending, best, strict=True):
                singles[number] = single
            pending = [number for number in pending if singles[number] is None]

    def _search_features(
        self,
        nodes: list[GrowingNode],
        max_branches: int,
        keep: bool,
        draw: FeatureDraw | None = None,
    ) -> FeatureShapes:
        """The best shape function of each feature for nodes; children may want their histograms."""
        found = FeatureShapes.empty(len(nodes), self._search.offsets)
        draw = self._draw if draw is None else draw
        for some, histograms in self._histograms.parts(nodes, keep):
            first = nodes.index(some[0])
            part = found.part(first, first + len(some))
            statistics = [node.statistics for node in some]
            numbers = [node.number + 1 for node in some]
            allowed = None if draw is None else draw.allowed(numbers)
            self._search.search(statistics, numbers, max_branches, histograms, part, allowed)
        return found

    def _is_open(self, node: GrowingNode) -> bool:
        """Whether a node may be split; if not, it is a leaf for good."""
        if self._may_split(node.statistics, node.depth):
            return True
        self._progress.leaf(node.statistics.n_rows, node.depth)
        return False

    def _best_candidate(
        self,
        node: GrowingNode,
        single: Candidate | None,
        found: FeatureShapes,
        number: int,
        max_branches: int,
    ) -> Candidate | PairCandidate | None:
        """The best of a node's features, which is `single`, and of pairs, if it earns the split.

        What was found for all features is what `found` has for some number.
        """
        best: Candidate | PairCandidate | None = single
        if self._pair_search is not None:
            pair = self._pair_search.best(
                node.statistics,
                self._rows_of(node),
                None if self._exact else node.histogram,
                max_branches,
                node.number + 1,
                to_beat=single.penalised_gain if single else 0.0,
            )
            if pair is not None and self._is_better(pair, single, node, max_branches):
                best = pair
        if best is None or best.gain < self._least_decrease:
            return None
        if best is single:
            return self._best_ahead(single, node, found, number, max_branches)
        return best

    def _rows_of(self, node: GrowingNode) -> RowsOfNode:
        return self._rows.at(node.number, node.statistics.n_rows)

    def _best_ahead(
        self,
        best: Candidate,
        node: GrowingNode,
        found: FeatureShapes,
        number: int,
        max_branches: int,
    ) -> Candidate:
        """The candidate that is best if what comes after it counts, too."""
        if self._limits.lookahead == 1 or node.depth + 1 >= self._limits.max_depth:
            return best
        rivals = self._search.rivals(best, found, number, self._limits.lookahead, LEAST_SHARE)
        if len(rivals) == 1:
            return best
        return max(rivals, key=lambda rival: self._gain_ahead(rival, node, max_branches))

    def _gain_ahead(self, candidate: Candidate, node: GrowingNode, max_branches: int) -> float:
        """What a candidate gains, and its children's best splits on single features with it."""
        children = self._send([node], [candidate], self._n_nodes)
        gain = candidate.penalised_gain
        nodes = [child for child in children if self._may_split(child.statistics, child.depth)]
        if nodes:
            found = self._search_features(nodes, max_branches, keep=False)
            singles = self._search.best(found, [child.statistics for child in nodes])
            gain += sum(best.penalised_gain for best in singles if best is not None)
        return gain

    def _is_better(
        self, pair: PairCandidate, single: Candidate | None, node: GrowingNode, max_branches: int
    ) -> bool:
        """Whether a pair beats the best single feature: after penalties, and on new rows, too."""
        if not self._leaves_room(pair, node):
            return False
        # Rounding must not choose: of equals, the single feature wins.
        if single:
            score, to_beat = (
                self._search.score(candidate.penalised_gain, candidate.n_branches)
                for candidate in (pair, single)
            )
            if score <= to_beat + 1e-10 * node.statistics.weight:
                return False
        assert self._pair_search is not None
        if not self._pair_search.must_hold_up:
            return True
        n_rows, weight = node.statistics.n_rows, node.statistics.weight
        is_small = weight <= MAX_WEIGHT_TO_HOLD_UP and n_rows <= SAMPLE_ROWS
        if is_small or self._pair_search.n_categories(pair) * ROWS_PER_CATEGORY > n_rows:
            return self._holds_up(pair, single, node, max_branches)
        return True

    def _holds_up(
        self, pair: PairCandidate, single: Candidate | None, node: GrowingNode, max_branches: int
    ) -> bool:
        """Whether a pair gains more than the best single feature on new rows, too.

        It must also keep some of what it gains on the rows that it was fitted on.
        """
        assert self._pair_search is not None
        statistics, number = node.statistics, node.number + 1
        features = pair.shape.first, pair.shape.second
        rows = self._rows_of(node)
        binned = (single.split.feature,) if single else ()
        sample = rows.sample(features, min(statistics.n_rows, SAMPLE_ROWS), binned)
        of_pair = of_single = needed = 0.0
        for halving in sample.halvings(N_HALVINGS):
            needed += LEAST_KEPT * pair.gain
            of_pair += self._pair_search.gain_on_new_rows(
                pair, sample, halving, statistics, max_branches, number
            )
            if single:
                of_single += self._search.gain_on_new_rows(
                    single, sample, halving, statistics, max_branches, number
                )
            if of_pair > max(CLEAR_LEAD * of_single, needed):
                return True
        return of_pair > max(PAIR_LEAD * of_single, needed)

    def _leaves_room(self, pair: PairCandidate, node: GrowingNode) -> bool:
        """Whether a pair that was fitted on a sample leaves every branch the rows it must have."""
        if node.statistics.n_rows <= SAMPLE_ROWS:
            return True
        counts = self._rows_of(node).branch_counts(pair.split)
        return bool(counts.min() >= max(1, self._limits.min_samples_leaf))

    def _split(self, nodes: list[GrowingNode]) -> list[GrowingNode]:
        """Send nodes' rows to their children, which are returned."""
        children = self._send(nodes, [node.candidate for node in nodes], self._n_nodes)
        self._n_nodes += len(children)
        first = 0
        for node in nodes:
            node.split = node.candidate.split
            node.children = list(children[first : first + node.candidate.n_branches])
            first += node.candidate.n_branches
            for child in children[first - node.candidate.n_branches : first]:
                child.parent = node
            node.candidate = None
            self._progress.split(node.statistics.n_rows, node.depth)
        return children

    def _send(
        self, nodes: list[GrowingNode], candidates: list[Candidate | PairCandidate], first: int
    ) -> list[GrowingNode]:
        """Send nodes' rows by candidates to children that are numbered from `first` on."""
        if not nodes:
            return []
        sizes = [candidate.n_branches for candidate in candidates]
        *first_child, stop = accumulate(sizes, initial=first)
        self._rows.split(
            np.array([node.number for node in nodes], dtype=np.int32),
            np.array(first_child, dtype=np.int32),
            [candidate.split for candidate in candidates],
        )
        numbers = np.arange(first, stop, dtype=np.int32)
        channels = self._channels_below(nodes, candidates, numbers)
        statistics = describe(self._goal, self._rows, numbers, channels)
        depths = [
            node.depth + 1 for node, size in zip(nodes, sizes, strict=True) for _ in range(size)
        ]
        return [
            GrowingNode(about, number=number, depth=depth)
            for about, number, depth in zip(statistics, range(first, stop), depths, strict=True)
        ]

    def _channels_below(
        self,
        nodes: list[GrowingNode],
        candidates: list[Candidate | PairCandidate],
        numbers: np.ndarray,
    ) -> np.ndarray:
        """Sums of the channels over the rows of children, whose numbers are given.

        Where rows are far away, and a node's histogram is at hand, that tells without a message.
        """
        if not self._rows.is_far:
            return self._rows.totals(numbers)
        channels = np.empty((len(numbers), self._goal.targets.n_channels))
        is_told = np.ones(len(numbers), dtype=bool)
        last = 0
        for node, candidate in zip(nodes, candidates, strict=True):
            first, last = last, last + candidate.n_branches
            if isinstance(candidate, Candidate) and node.histogram is not None:
                channels[first:last] = self._search.branch_sums(node.histogram, candidate)
            else:
                is_told[first:last] = False
        if not is_told.all():
            channels[~is_told] = self._rows.totals(numbers[~is_told])
        return channels


def finish(root: GrowingNode, bins: tuple[FeatureBins, ...]) -> None:
    """Give every node its shape function in the features' own values."""
    for node in root.breadth_first():
        assert isinstance(node, GrowingNode)
        if node.split is not None:
            weights = [child.statistics.weight for child in node.children]
            node.shape = node.split.shape(bins, weights.index(max(weights)))
