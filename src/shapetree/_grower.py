"""Growth: from the root, split what gains most, until the limits say stop."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

import numpy as np

from shapetree._binning import BinnedTable
from shapetree._candidates import Candidate, CandidateSearch
from shapetree._core.partition import partition_rows
from shapetree._histograms import HistogramSource, histograms_of_children, threads_for
from shapetree._progress import Progress
from shapetree._shape import ShapeFunction, shape_from_bins
from shapetree._targets import Goal, NodeStatistics
from shapetree._tree import TreeArrays

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
    min_samples_split: int
    min_samples_leaf: int
    min_impurity_decrease: float


@dataclass(eq=False)
class Node:
    """A node while the tree grows; its rows are rows[start:stop] of the grower."""

    start: int
    stop: int
    depth: int
    statistics: NodeStatistics
    candidate: Candidate | None = None
    histogram: np.ndarray | None = None
    shape: ShapeFunction | None = None
    children: list[Node] = field(default_factory=list)


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
        histograms: HistogramSource | None,
        limits: Limits,
        n_threads: int,
        progress: Progress,
    ) -> None:
        self._table = table
        self._goal = goal
        self._search = search
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
        return _flatten(root, self._goal.impurity_scale)

    def _make_node(
        self, start: int, stop: int, depth: int, channels: np.ndarray | None = None
    ) -> Node:
        return Node(start, stop, depth, self._goal.describe(self._rows[start:stop], channels))

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
        self._n_searched += 1
        node.candidate = self._search.best(
            node.statistics,
            self._rows[node.start : node.stop],
            histogram,
            max_branches,
            self._n_searched,
        )
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

    def _split(self, node: Node, frontier: Frontier) -> None:
        """Send a node's rows to its children and search those."""
        candidate = node.candidate
        assert candidate is not None
        counts = partition_rows(
            self._table.columns,
            candidate.feature,
            candidate.branch_of_bin,
            self._rows[node.start : node.stop],
            self._scratch,
            candidate.n_branches,
            threads_for(VISITS_PER_MOVE * node.statistics.n_rows, self._n_threads),
        )
        stops = node.start + np.cumsum(counts)
        node.children = [
            self._make_node(int(stop - count), int(stop), node.depth + 1, channels)
            for stop, count, channels in zip(stops, counts, candidate.channels, strict=True)
        ]
        largest = int(np.argmax([child.statistics.weight for child in node.children]))
        node.shape = shape_from_bins(
            candidate.feature,
            self._table.features[candidate.feature],
            candidate.branch_of_bin,
            candidate.n_branches,
            largest,
        )
        self._progress.split(node.statistics.n_rows, node.depth)
        self._search_children(node, frontier)
        node.histogram = None

    def _search_children(self, node: Node, frontier: Frontier) -> None:
        wanted = [self._may_split(child) for child in node.children]
        if self._histograms is not None:
            rows = [self._rows[child.start : child.stop] for child in node.children]
            found = histograms_of_children(self._histograms, node.histogram, rows, wanted)
            for child, histogram in zip(node.children, found, strict=True):
                child.histogram = histogram
        for child, want in zip(node.children, wanted, strict=True):
            if want:
                self._find_candidate(child, self._limits.max_branches, frontier)
            else:
                self._progress.leaf(child.statistics.n_rows, child.depth)


def _flatten(root: Node, impurity_scale: float) -> TreeArrays:
    """Number the nodes breadth first and lay them out flat."""
    nodes, parent, first_child = [root], [-1], []
    for number, node in enumerate(nodes):
        first_child.append(len(nodes) if node.children else -1)
        nodes.extend(node.children)
        parent.extend([number] * len(node.children))
    shapes = [node.shape for node in nodes]
    pieces = [shape.branch_of_piece if shape else np.empty(0) for shape in shapes]
    uppers = [
        np.full(len(branches), np.nan) if shape is None or shape.upper is None else shape.upper
        for shape, branches in zip(shapes, pieces, strict=True)
    ]
    return TreeArrays(
        parent=np.array(parent),
        depth=np.array([node.depth for node in nodes]),
        first_child=np.array(first_child),
        n_branches=np.array([len(node.children) for node in nodes]),
        feature=np.array([shape.feature if shape else -1 for shape in shapes]),
        missing_branch=np.array([shape.missing_branch if shape else -1 for shape in shapes]),
        saw_missing=np.array([shape is not None and shape.saw_missing for shape in shapes]),
        piece_start=np.concatenate([[0], np.cumsum([len(branches) for branches in pieces])]),
        piece_upper=np.concatenate(uppers),
        piece_branch=np.concatenate(pieces),
        n_node_samples=np.array([node.statistics.n_rows for node in nodes]),
        weighted_n_node_samples=np.array([node.statistics.weight for node in nodes]),
        impurity=impurity_scale * np.array([node.statistics.impurity for node in nodes]),
        gain=impurity_scale
        * np.array(
            [node.candidate.gain if node.candidate and node.children else 0.0 for node in nodes]
        ),
        value=np.array([node.statistics.value for node in nodes]),
    )
