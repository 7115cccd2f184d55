"""Node histograms → the best shape function of one feature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree._core.criterion import NodeStatistics
from shapetree._core.histogram import bin_offsets, build_histograms
from shapetree._core.reduced import fill_gaps
from shapetree._core.search import Candidate, NodeSearch, best_features, candidates_of
from shapetree._threads import threads_for
from shapetree.data._binning import FeatureBins
from shapetree.data._statistics import Statistics
from shapetree.data._targets import ClassGoal, Goal
from shapetree.grow._row_holder import Histograms
from shapetree.grow._rows_of_node import Halving, Sample

# The bins of every feature.
Features = tuple[FeatureBins, ...]
# A category that has to be listed costs this share of a segment. Among many categories, some stand
# out by chance: the best of L by this share of a segment for each unit of ln L. Where that is more,
# each category costs the difference as well. The total is capped at what noise gains by choosing
# among L categories, which is the gain of this many cuts for each.
CATEGORY_SHARE = 0.5
CHOICE_SHARE_PER_LOG = 0.2
CUTS_PER_CATEGORY = 1.0
# Gains that differ by less than this share of the node's weight are equal.
TIE = 1e-10
# Searching a feature's shape function takes as long as this many visits of a row, or as this many
# for each row of the node, if these are few.
VISITS_PER_SEARCH = 4_000
VISITS_PER_ROW = 4


@dataclass(frozen=True)
class InnerTreeOptions:
    """How a feature's axis is cut into pieces, and how these get their branches."""

    kind: str
    max_leaves: int
    min_rows: int
    max_depth: int
    assignment: str


@dataclass(frozen=True)
class Penalties:
    """What complexity must earn in impurity.

    Attributes
    ----------
    leaf : float
        For every leaf that a split adds, in the goal's penalty units.
    part : float
        For every segment beyond two, in the same.
    branch : float
        For every branch beyond two, in mean impurity of the node's rows: the paper's own penalty.
    pair : float or None
        For being a pair, in mean impurity of the node's rows; None for the price of a part, and
        for having to hold up on new rows, too.
    parts_per_pair : float
        How many parts that are.
    many_rows : float
        Weight of a node from which on its parts cost more.
    """

    leaf: float
    part: float
    branch: float
    pair: float | None = None
    parts_per_pair: float = 1.0
    many_rows: float = math.inf

    def part_price(self, goal: Goal, node: NodeStatistics) -> float:
        """Impurity mass that every segment of a node beyond two must take away."""
        return self.part * goal.penalty_unit(node) * parts_price(node.weight, self.many_rows)

    def branch_price(self, goal: Goal, node: NodeStatistics) -> float:
        """Impurity mass that every branch beyond the first must take away."""
        return self.leaf * goal.penalty_unit(node) + self.free_branch(node)

    def free_branch(self, node: NodeStatistics) -> float:
        """What the second branch need not take away, unlike those beyond it."""
        return self.branch * node.weight


def parts_price(weight: float, many_rows: float) -> float:
    """How many times as much as elsewhere a segment costs in a node of some weight.

    Where rows are many, slivers of the axis stand out that are not worth being read.
    """
    return math.sqrt(weight / many_rows) if weight > many_rows else 1.0


def choice_share(feature: FeatureBins) -> float:
    """What choosing one of a feature's categories costs, as a share of a segment."""
    if not feature.is_categorical:
        return 0.0
    return max(0.0, CHOICE_SHARE_PER_LOG * math.log(max(feature.n_bins, 1)) - CATEGORY_SHARE)


@dataclass(frozen=True)
class CandidateOptions:
    """What all searches of one fit have in common, of single features and of pairs.

    Attributes
    ----------
    inner : InnerTreeOptions
    penalties : Penalties
    max_parts : int
        Most segments of an axis, or regions of a plane.
    max_listed : int
        Most categories that have to be listed; all others are one group.
    per_leaf : bool
        Whether candidates are ranked by their gain for each leaf that they add, as where the number
        of leaves is limited.
    min_samples_leaf : int
    min_samples_leaf_is_soft : bool
        Whether a faster search may miss shape functions that just keep this limit.
    min_weight_leaf : float
    seed : int
    n_threads : int
    """

    inner: InnerTreeOptions
    penalties: Penalties
    max_parts: int
    max_listed: int
    per_leaf: bool
    min_samples_leaf: int
    min_samples_leaf_is_soft: bool
    min_weight_leaf: float
    seed: int
    n_threads: int

    @property
    def limits(self) -> dict[str, Any]:
        """What holds for every node, in the words of the kernels that search."""
        return {
            "inner_tree": self.inner.kind,
            "inner_max_leaves": self.inner.max_leaves,
            "inner_min_rows": self.inner.min_rows,
            "inner_max_depth": self.inner.max_depth,
            "assignment": self.inner.assignment,
            "max_parts": self.max_parts,
            "max_listed": self.max_listed,
            "per_leaf": self.per_leaf,
            "min_rows": self.min_samples_leaf,
            "min_rows_is_soft": self.min_samples_leaf_is_soft,
            "min_weight": self.min_weight_leaf,
        }


@dataclass(frozen=True)
class FeatureShapes:
    """The best shape function of every feature, for one node or several.

    Attributes
    ----------
    gains, penalised_gains : arrays of shape (..., n_features)
        In units of mass; -inf where a feature has no eligible shape function.
    n_branches : int array of shape (..., n_features)
    branch_of_bin : uint8 array of shape (..., total bins)
        NO_BRANCH_MARK for bins without rows.
    offsets : list of int
        Where each feature's bins start, and the end.
    """

    gains: np.ndarray
    penalised_gains: np.ndarray
    n_branches: np.ndarray
    branch_of_bin: np.ndarray
    offsets: list[int]

    @classmethod
    def empty(cls, n_nodes: int, offsets: list[int]) -> FeatureShapes:
        """Room for the shape functions of some nodes."""
        n_features = len(offsets) - 1
        return cls(
            np.empty((n_nodes, n_features)),
            np.empty((n_nodes, n_features)),
            np.empty((n_nodes, n_features), dtype=np.int32),
            np.empty((n_nodes, offsets[-1]), dtype=np.uint8),
            offsets,
        )

    def of(self, nodes: int | list[int]) -> FeatureShapes:
        """Those of one of several nodes, or of some."""
        return FeatureShapes(
            self.gains[nodes],
            self.penalised_gains[nodes],
            self.n_branches[nodes],
            self.branch_of_bin[nodes],
            self.offsets,
        )

    def room_for(self, nodes: np.ndarray) -> FeatureShapes:
        """Room for those of some of the nodes; these very ones if all are meant."""
        is_all = len(nodes) == len(self.gains)
        return self if is_all else FeatureShapes.empty(len(nodes), self.offsets)

    def put(self, nodes: np.ndarray, shapes: FeatureShapes) -> None:
        """Note those of some of the nodes, for which there was room."""
        if shapes is not self:
            self.gains[nodes] = shapes.gains
            self.penalised_gains[nodes] = shapes.penalised_gains
            self.n_branches[nodes] = shapes.n_branches
            self.branch_of_bin[nodes] = shapes.branch_of_bin

    def candidates(self, features: list[int]) -> list[Candidate | None]:
        """The candidate of each node on some feature; None for -1."""
        offsets = np.array(self.offsets, dtype=np.int64)
        of_all = self.gains, self.penalised_gains, self.n_branches, self.branch_of_bin
        return candidates_of(features, offsets, *of_all)


class CandidateSearch:
    """Finds the best candidates of nodes from their histograms."""

    def __init__(
        self,
        features: Features,
        goal: Goal,
        options: CandidateOptions,
        order: np.ndarray | None = None,
    ) -> None:
        self._goal = goal
        self._penalties = options.penalties
        self._per_leaf = options.per_leaf
        self._seed = options.seed
        self._n_threads = options.n_threads
        self._is_categorical = [feature.is_categorical for feature in features]
        # Which of equally good features comes first.
        self._order = np.arange(len(features), dtype=np.int32) if order is None else order
        n_bins = [feature.n_bins for feature in features]
        self.offsets = bin_offsets(n_bins).tolist()
        shares = [choice_share(feature) for feature in features]
        self._charges_choice = any(shares)
        self._has_classes = isinstance(goal, ClassGoal) and goal.targets.n_outputs == 1
        self._search = NodeSearch(
            goal.criterion, n_bins, self._is_categorical, shares, **options.limits
        )

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.offsets) - 1

    def search(
        self,
        nodes: Statistics,
        numbers: np.ndarray,
        max_branches: int,
        histograms: Histograms,
        found: FeatureShapes,
        allowed: np.ndarray | None = None,
        only_best: bool = False,
    ) -> None:
        """Search the features that histograms hold, for each of their nodes.

        Parameters
        ----------
        nodes : Statistics
        numbers : int array of shape (n_nodes,)
            Of the nodes; they seed random starts, together with the fit's own seed.
        max_branches : int
        histograms : Histograms
        found : FeatureShapes
            Where the results go.
        allowed : bool array of shape (n_nodes, n_features), optional
            Features that a node may split on.
        only_best : bool
            Whether nothing but each node's best feature is read, so that others need not be
            searched to the end.
        """
        first, last = histograms.first, histograms.last
        penalties = self._penalties
        # As `part_price` and `branch_price` have it, for all nodes at once.
        weight = nodes.weight
        unit = np.broadcast_to(self._goal.penalty_unit(nodes), weight.shape)
        units, free = penalties.part * unit, penalties.branch * weight
        self._search.search(
            histograms.sums, histograms.cells, first, last,
            rows=histograms.rows,
            max_branches=max_branches,
            segment_penalty=units * np.sqrt(np.maximum(weight / penalties.many_rows, 1.0)),
            category_penalty=units * CATEGORY_SHARE,
            branch_penalty=penalties.leaf * unit + free,
            choice_penalty=units if self._charges_choice else None,
            most_of_choice=CUTS_PER_CATEGORY * self._goal.noise(nodes),
            has_class=nodes.value[:, 0].astype(bool).view(np.uint8) if self._has_classes else None,
            seed=numbers.astype(np.uint64) + np.uint64(self._seed),
            allowed=None if allowed is None else allowed.view(np.uint8),
            gains=found.gains,
            penalised_gains=found.penalised_gains,
            n_branches=found.n_branches,
            branch_of_bin=found.branch_of_bin,
            n_threads=self._threads_for(nodes, last - first),
            # With a price that the second branch need not pay, candidates rank in another order.
            only_best=only_best and penalties.branch == 0.0,
        )  # fmt: skip
        if penalties.branch > 0.0:
            found.penalised_gains[:, first:last] += free[:, None]

    def _threads_for(self, nodes: Statistics, n_features: int) -> int:
        """Threads worth starting to search some nodes."""
        if self._n_threads == 1:
            return 1
        visits = int(np.minimum(VISITS_PER_SEARCH, VISITS_PER_ROW * nodes.n_rows).sum())
        return threads_for(n_features * visits, self._n_threads)

    def scores(self, found: FeatureShapes) -> np.ndarray:
        """How the features of nodes rank, (n_nodes, n_features)."""
        if not self._per_leaf:
            return found.penalised_gains
        return found.penalised_gains / np.maximum(found.n_branches - 1, 1)

    def least_gains(self, nodes: Statistics) -> Any:
        """What splits of nodes must gain at least: the price of one more leaf."""
        return self._penalties.leaf * self._goal.penalty_unit(nodes)

    def score(self, gain: float, n_branches: int) -> float:
        """How a candidate with some gain after penalties ranks."""
        return gain / (n_branches - 1) if self._per_leaf else gain

    def best(
        self, found: FeatureShapes, nodes: Statistics, tree: np.ndarray
    ) -> list[Candidate | None]:
        """Each node's best candidate; None where no candidate gains anything after penalties.

        Trees that grow together may prefer features in orders of their own; nodes come by trees.
        """
        scores, ties = self.scores(found), TIE * nodes.weight
        if self._order.ndim == 1:
            best = best_features(scores, ties, self._order)
        else:
            best = []
            ends = np.searchsorted(tree, np.arange(len(self._order) + 1)).tolist()
            for order, (first, last) in zip(self._order, pairwise(ends), strict=True):
                best += best_features(scores[first:last], ties[first:last], order)
        return found.candidates(best)

    def rivals(
        self,
        best: Candidate,
        found: FeatureShapes,
        node: int,
        n_candidates: int,
        least_share: float,
    ) -> list[Candidate]:
        """The best candidate of a node, and those of other features that come close.

        Parameters
        ----------
        best : Candidate
        found : FeatureShapes
        node : int
            Which of its nodes that is.
        n_candidates : int
            Most candidates, the best included.
        least_share : float
            Share of the best one's gain after penalties that the others have at least.
        """
        gains = found.penalised_gains[node].copy()
        gains[best.split.feature] = -np.inf
        others = np.argsort(-gains, kind="stable")[: n_candidates - 1]
        close = [f for f in others.tolist() if gains[f] >= least_share * best.penalised_gain]
        return [best, *(found.of([node] * len(close)).candidates(close))]

    def branch_sums(self, histogram: np.ndarray, candidate: Candidate) -> np.ndarray:
        """Sums of the channels over the rows of each branch, (n_branches, n_channels)."""
        split = candidate.split
        bins = histogram[self.offsets[split.feature] : self.offsets[split.feature + 1]]
        branches = range(split.n_branches)
        return np.array([bins[split.branch_of_bin == branch].sum(axis=0) for branch in branches])

    def gain_on_new_rows(
        self,
        candidate: Candidate,
        sample: Sample,
        halving: Halving,
        node: NodeStatistics,
        max_branches: int,
        node_number: int,
    ) -> float:
        """What a candidate's feature gains on either half of a sample when fitted on the other.

        Parameters
        ----------
        candidate : Candidate
        sample : Sample
            Its bins are those of the candidate's feature.
        halving : Halving
        node : NodeStatistics
        max_branches, node_number : int
        """
        feature, gain = candidate.split.feature, 0.0
        bins = slice(self.offsets[feature], self.offsets[feature + 1])
        codes, about = sample.bins.array(0), Statistics.of(node)
        for fitted, new in halving:
            found = FeatureShapes.empty(1, self.offsets)
            histogram = self._histogram(sample, feature, fitted)
            self.search(about, np.array([node_number]), max_branches, histogram, found)
            n_branches = int(found.n_branches[0, feature])
            if n_branches >= 2:
                branch_of_bin = found.branch_of_bin[0, bins]
                fill_gaps(branch_of_bin, self._is_categorical[feature])
                gain += gain_of(self._goal, sample, new, branch_of_bin[codes[new]], n_branches)
        return sample.scale * gain

    def _histogram(self, sample: Sample, feature: int, rows: np.ndarray) -> Histograms:
        """Sums of some rows of a sample by the bins of one feature."""
        n_bins = self.offsets[feature + 1] - self.offsets[feature]
        sums = np.empty((1, n_bins, sample.targets.n_channels))
        ends, offsets = (np.array([0]), np.array([len(rows)])), np.array([0, n_bins])
        build_histograms(sample.bins, sample.targets, rows, *ends, offsets, sums, 0, 1, 1)
        return Histograms(feature, feature + 1, sums)


def gain_of(
    goal: Goal, sample: Sample, rows: np.ndarray, branches: np.ndarray, n_branches: int
) -> float:
    """Impurity mass that sending some of a sample's rows to branches takes away."""
    totals = sample.targets.totals_by(rows, branches, n_branches)[:, : sample.targets.n_stats]
    after = sum(goal.criterion.impurities(totals).tolist())
    return float(goal.criterion.impurity(totals.sum(axis=0)) - after)
