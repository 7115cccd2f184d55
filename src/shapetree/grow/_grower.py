"""Growth: from the root, split what gains most, until the limits say stop."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from shapetree._core.partition import partition_rows
from shapetree._threads import threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import Goal
from shapetree.grow._candidates import Candidate, CandidateSearch
from shapetree.grow._histograms import HistogramSource, histograms_of_children
from shapetree.grow._node_rows import TableRows
from shapetree.grow._nodes import TreeNode, tree_of
from shapetree.grow._pairs import SAMPLE_ROWS, PairCandidate, PairSearch, cuts_of
from shapetree.grow._progress import Progress
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._shape import PairShape, ShapeFunction, shape_from_bins

# How many times as much a pair must gain on new rows as a single feature does, in nodes of so much
# weight at most; in larger ones, what it gains by chance does not count beside its penalties.
PAIR_LEAD = 1.1
MAX_WEIGHT_TO_HOLD_UP = 5_000
# Features whose gain is below this share of the best one's are not worth a look ahead.
LEAST_SHARE = 0.7
# Mean impurity below which rounding is all that is left.
PURE = 1e-14
# Moving a row to its branch takes as long as so many visits by features.
VISITS_PER_MOVE = 4
# Memory that waiting nodes' histograms may take; beyond it they are summed again when needed.
MAX_WAITING_BYTES = 2**28


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


@dataclass(eq=False)
class Node(TreeNode):
    """A node while the tree grows; its rows are rows[start:stop] of the grower."""

    start: int = 0
    stop: int = 0
    depth: int = 0
    candidate: Candidate | PairCandidate | None = None
    histogram: np.ndarray | None = None


class Frontier:
    """Nodes that wait to be split.

    The order matters only where leaves are limited: then the greatest gain comes first. Otherwise
    the newest does, so that few histograms wait.
    """

    def __init__(self, best_first: bool) -> None:
        self._best_first = best_first
        self._heap: list[tuple[float, int, Node]] = []
        self._count = 0

    def push(self, node: Node) -> None:
        """Add a node that has a candidate."""
        assert node.candidate is not None
        self._count += 1
        priority = -node.candidate.gain if self._best_first else -self._count
        heapq.heappush(self._heap, (priority, self._count, node))

    def pop(self) -> Node:
        """Take out the next node."""
        return heapq.heappop(self._heap)[2]

    def __len__(self) -> int:
        return len(self._heap)


class Grower:
    """Grows one tree.

    Parameters
    ----------
    table : BinnedTable
    goal : Goal
    search : CandidateSearch
    pairs : tuple of PairSearch and TableRows, or None
        None for shape functions of one feature only.
    histograms : HistogramSource or None
        None in exact mode, where nodes sort their rows instead.
    limits : Limits
    n_threads : int
    progress : Progress
    """

    def __init__(
        self,
        table: BinnedTable,
        goal: Goal,
        search: CandidateSearch,
        pairs: tuple[PairSearch, TableRows] | None,
        histograms: HistogramSource | None,
        limits: Limits,
        n_threads: int,
        progress: Progress,
    ) -> None:
        self._table = table
        self._goal = goal
        self._search = search
        self._pair_search: PairSearch | None = None if pairs is None else pairs[0]
        self._pair_rows: TableRows | None = None if pairs is None else pairs[1]
        self._histograms = histograms
        self._limits = limits
        self._n_threads = n_threads
        self._progress = progress
        self._rows = np.arange(table.n_rows, dtype=np.int32)
        self._scratch = np.empty_like(self._rows)
        self._total_weight = 0.0
        self._n_searched = 0
        self._waiting_bytes = 0

    def grow(self) -> TreeArrays:
        """Grow the tree."""
        root = self._make_node(0, self._table.n_rows, depth=0)
        self._total_weight = root.statistics.weight
        frontier = Frontier(best_first=self._limits.max_leaf_nodes < self._table.n_rows)
        n_leaves = 1
        if self._may_split(root) and n_leaves < self._limits.max_leaf_nodes:
            self._find_candidate(root, self._limits.max_branches, frontier)
        while frontier:
            node = frontier.pop()
            assert node.candidate is not None
            self._waiting_bytes -= node.histogram.nbytes if node.histogram is not None else 0
            room = self._limits.max_leaf_nodes - n_leaves
            if room == 0:
                break
            if node.candidate.n_branches > room + 1:
                # Too many leaves: look again for fewer branches, and queue up with what that gains.
                self._find_candidate(node, room + 1, frontier)
                continue
            self._split(node, frontier)
            n_leaves += len(node.children) - 1
        return tree_of(root, self._goal.impurity_scale)

    def _make_node(
        self, start: int, stop: int, depth: int, channels: np.ndarray | None = None
    ) -> Node:
        statistics = self._goal.describe(self._rows[start:stop], channels)
        return Node(statistics, start=start, stop=stop, depth=depth)

    def _may_split(self, node: Node) -> bool:
        limits, statistics = self._limits, node.statistics
        return (
            node.depth < limits.max_depth
            and statistics.n_rows >= max(limits.min_samples_split, 2 * limits.min_samples_leaf)
            and statistics.impurity > PURE
        )

    def _find_candidate(self, node: Node, max_branches: int, frontier: Frontier) -> None:
        """Search a node and queue it if there is something to gain."""
        histogram = node.histogram
        if histogram is None and self._histograms is not None:
            histogram = self._histograms.build(self._rows[node.start : node.stop])
        node.candidate = self._best_candidate(node, histogram, max_branches)
        node.histogram = None
        least = self._limits.min_impurity_decrease * self._total_weight
        if node.candidate is None or node.candidate.gain < least:
            node.candidate = None
            self._progress.leaf(node.statistics.n_rows, node.depth)
            return
        # Children at the greatest depth need no histogram, so neither does their parent.
        if (
            histogram is not None
            and node.depth + 1 < self._limits.max_depth
            and self._waiting_bytes + histogram.nbytes <= MAX_WAITING_BYTES
        ):
            node.histogram = histogram
            self._waiting_bytes += histogram.nbytes
        frontier.push(node)

    def _best_candidate(
        self, node: Node, histogram: np.ndarray | None, max_branches: int
    ) -> Candidate | PairCandidate | None:
        """The best of all features and pairs, if it earns the split."""
        self._n_searched += 1
        statistics, rows = node.statistics, self._rows[node.start : node.stop]
        least = self._search.least_gain(statistics)
        single = self._search.best(statistics, rows, histogram, max_branches, self._n_searched)
        best: Candidate | PairCandidate | None = single
        rivals = [] if single is None else self._rivals(single, node, histogram)
        if self._pair_search is not None:
            assert self._pair_rows is not None
            pair = self._pair_search.best(
                statistics,
                self._pair_rows.of(rows),
                histogram if self._pair_rows.coarse is self._table else None,
                self._search.results,
                max_branches,
                self._n_searched,
                to_beat=max(least, single.penalised_gain if single else 0.0),
            )
            if pair is not None and self._is_better(pair, single, node, max_branches):
                best = pair
        if best is None or best.penalised_gain < least:
            return None
        if best is single and len(rivals) > 1:
            return max(rivals, key=lambda rival: self._gain_ahead(rival, node, max_branches))
        return best

    def _rivals(self, best: Candidate, node: Node, histogram: np.ndarray | None) -> list[Candidate]:
        """Candidates of a node to be compared by what comes after them."""
        if self._limits.lookahead == 1 or node.depth + 1 >= self._limits.max_depth:
            return [best]
        return self._search.rivals(best, self._limits.lookahead, LEAST_SHARE, histogram)

    def _gain_ahead(self, candidate: Candidate, node: Node, max_branches: int) -> float:
        """What a candidate gains, and its children's best splits on single features with it."""
        rows = self._rows[node.start : node.stop]
        branches = self._search.branches(candidate, rows, threads_for(len(rows), self._n_threads))
        gain = candidate.penalised_gain
        for branch in range(candidate.n_branches):
            rows_below = rows[branches == branch]
            child = Node(self._goal.describe(rows_below), depth=node.depth + 1)
            if self._may_split(child):
                histogram = None if self._histograms is None else self._histograms.build(rows_below)
                statistics = child.statistics
                best = self._search.best(
                    statistics, rows_below, histogram, max_branches, self._n_searched
                )
                gain_below = 0.0 if best is None else best.penalised_gain
                gain += max(gain_below - self._search.least_gain(statistics), 0.0)
        return gain

    def _is_better(
        self, pair: PairCandidate, single: Candidate | None, node: Node, max_branches: int
    ) -> bool:
        """Whether a pair beats the best single feature: after penalties, and on new rows, too."""
        assert self._pair_search is not None
        assert self._pair_rows is not None
        rows = self._rows[node.start : node.stop]
        if not self._leaves_room(pair, rows):
            return False
        if single is None:
            return True
        # Rounding must not choose: of equals, the single feature wins.
        if pair.penalised_gain <= single.penalised_gain + 1e-10 * node.statistics.weight:
            return False
        if (
            not self._pair_search.must_hold_up
            or node.statistics.weight > MAX_WEIGHT_TO_HOLD_UP
            or len(rows) > SAMPLE_ROWS
        ):
            return True
        features = pair.shape.first, pair.shape.second
        sample = self._pair_rows.of(rows).sample(features, SAMPLE_ROWS, with_content=True)
        arguments = node.statistics, max_branches, self._n_searched
        gain = self._pair_search.gain_on_new_rows(pair, sample, *arguments)
        halves = [(rows[fitted], rows[new]) for fitted, new in sample.halves()]
        return gain > PAIR_LEAD * self._search.gain_on_new_rows(single, halves, *arguments)

    def _leaves_room(self, pair: PairCandidate, rows: np.ndarray) -> bool:
        """Whether a pair that was fitted on a sample leaves every branch the rows it must have."""
        if len(rows) <= SAMPLE_ROWS:
            return True
        branches = self._branches(pair, rows, threads_for(len(rows), self._n_threads))
        counts = np.bincount(branches, minlength=pair.n_branches)
        return bool(counts.min() >= max(1, self._limits.min_samples_leaf))

    def _split(self, node: Node, frontier: Frontier) -> None:
        """Send a node's rows to its children and search those."""
        candidate = node.candidate
        assert candidate is not None
        rows = self._rows[node.start : node.stop]
        n_threads = threads_for(VISITS_PER_MOVE * len(rows), self._n_threads)
        counts = partition_rows(
            self._branches(candidate, rows, n_threads),
            rows,
            self._scratch,
            candidate.n_branches,
            n_threads,
        )
        stops = node.start + np.cumsum(counts)
        children = [
            self._make_node(int(stop - count), int(stop), node.depth + 1, channels)
            for stop, count, channels in zip(stops, counts, candidate.channels, strict=True)
        ]
        largest = int(np.argmax([child.statistics.weight for child in children]))
        node.shape = self._shape(candidate, largest)
        node.children = list(children)
        self._progress.split(node.statistics.n_rows, node.depth)
        self._search_children(node, children, frontier)
        node.histogram = None

    def _branches(
        self, candidate: Candidate | PairCandidate, rows: np.ndarray, n_threads: int
    ) -> np.ndarray:
        """Branch of each row under a candidate."""
        if isinstance(candidate, Candidate):
            return self._search.branches(candidate, rows, n_threads)
        assert self._pair_rows is not None
        return cuts_of(candidate.shape, self._pair_rows.columns).branches(rows, n_threads)

    def _shape(
        self, candidate: Candidate | PairCandidate, largest_branch: int
    ) -> ShapeFunction | PairShape:
        """A candidate's shape function in the features' own values."""
        if isinstance(candidate, PairCandidate):
            return candidate.shape.with_largest_branch(largest_branch)
        return shape_from_bins(
            candidate.feature,
            self._table.features[candidate.feature],
            candidate.branch_of_bin,
            candidate.n_branches,
            largest_branch,
        )

    def _search_children(self, node: Node, children: list[Node], frontier: Frontier) -> None:
        wanted = [self._may_split(child) for child in children]
        if self._histograms is not None:
            rows = [self._rows[child.start : child.stop] for child in children]
            found = histograms_of_children(self._histograms, node.histogram, rows, wanted)
            for child, histogram in zip(children, found, strict=True):
                child.histogram = histogram
        for child, want in zip(children, wanted, strict=True):
            if want:
                self._find_candidate(child, self._limits.max_branches, frontier)
            else:
                self._progress.leaf(child.statistics.n_rows, child.depth)
