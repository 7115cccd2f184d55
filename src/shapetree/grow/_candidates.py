"""Node histograms → the best shape function of one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shapetree._core.partition import branches_by_bin
from shapetree._core.search import NO_BRANCH_MARK, NodeSearch
from shapetree._threads import feature_chunks, threads_for
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import Goal, NodeStatistics

# A category that has to be listed costs this share of a segment.
CATEGORY_SHARE = 0.5


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
    segment : float
        For every segment beyond two, in the goal's penalty units.
    split : float
        For a split, as a number of the node's rows: it must take away as much impurity as these
        hold on average.
    branch : float
        For every branch beyond two, in mean impurity of the node's rows.
    pair : float or None
        For being a pair, in mean impurity of the node's rows; None for a segment's price, and for
        having to hold up on new rows, too.
    """

    segment: float
    split: float
    branch: float
    pair: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A shape function over bins that a node may split on.

    Attributes
    ----------
    feature : int
    n_branches : int
    gain : float
        Impurity mass that it takes away.
    penalised_gain : float
        The same, less all penalties but the split's.
    branch_of_bin : array of shape (n_bins + 1,)
        The missing bin comes last.
    channels : list
        Each branch's sums of channels where a histogram was at hand, else None.
    """

    feature: int
    n_branches: int
    gain: float
    penalised_gain: float
    branch_of_bin: np.ndarray
    channels: list[np.ndarray | None]


class CandidateSearch:
    """Finds the best candidate of one node after another."""

    def __init__(
        self,
        table: BinnedTable,
        goal: Goal,
        inner: InnerTreeOptions,
        penalties: Penalties,
        min_samples_leaf: int,
        min_weight_leaf: float,
        seed: int,
        n_threads: int,
    ) -> None:
        self._goal = goal
        self._penalties = penalties
        self._seed = seed
        self._n_threads = n_threads
        self._table = table
        self._offsets = table.offsets
        self._search = NodeSearch(
            goal.criterion,
            table.columns,
            table.n_bins,
            table.categorical,
            **search_limits(inner, min_samples_leaf, min_weight_leaf),
        )

    def best(
        self,
        node: NodeStatistics,
        rows: np.ndarray,
        histogram: np.ndarray | None,
        max_branches: int,
        node_number: int,
    ) -> Candidate | None:
        """Find the candidate with the greatest gain after all penalties but the split's.

        Parameters
        ----------
        node : NodeStatistics
        rows : array
            The node's rows.
        histogram : array or None
            Their histogram; None to sort the rows instead.
        max_branches : int
        node_number : int
            Seeds random starts, together with the fit's own seed.

        Returns
        -------
        Candidate or None
            None if no candidate gains anything.
        """
        n_features = len(self._offsets) - 1
        n_threads = threads_for(len(rows) * n_features, self._n_threads)
        for first, last in feature_chunks(n_features, len(rows)):
            self._search_features(
                node, rows, histogram, first, last, max_branches, node_number, n_threads
            )
        gains = self._search.penalised_gains
        # Rounding must not choose between features: of equals, the first wins.
        feature = int(np.argmax(gains >= gains.max() - 1e-10 * node.weight))
        if not gains[feature] >= 1e-10 * node.weight:
            return None
        return self._candidate(feature, histogram)

    def rivals(
        self, best: Candidate, n_candidates: int, least_share: float, histogram: np.ndarray | None
    ) -> list[Candidate]:
        """The best candidate of the last search, and those of other features that come close.

        Parameters
        ----------
        best : Candidate
        n_candidates : int
            Most candidates, the best included.
        least_share : float
            Share of the best one's gain after penalties that the others have at least.
        histogram : array or None
            The node's.
        """
        gains = self._search.penalised_gains.copy()
        gains[best.feature] = -np.inf
        others = np.argsort(-gains, kind="stable")[: n_candidates - 1]
        return [best] + [
            self._candidate(int(feature), histogram)
            for feature in others
            if gains[feature] >= least_share * best.penalised_gain
        ]

    def _candidate(self, feature: int, histogram: np.ndarray | None) -> Candidate:
        """What the last search found for a feature."""
        bins = slice(self._offsets[feature], self._offsets[feature + 1])
        branch_of_bin = self._search.branch_of_bin[bins].copy()
        n_branches = int(self._search.n_branches[feature])
        channels = [
            None if histogram is None else histogram[bins][branch_of_bin == branch].sum(axis=0)
            for branch in range(n_branches)
        ]
        return Candidate(
            feature,
            n_branches,
            float(self._search.gains[feature]),
            float(self._search.penalised_gains[feature]),
            branch_of_bin,
            channels,
        )

    def _search_features(
        self,
        node: NodeStatistics,
        rows: np.ndarray,
        histogram: np.ndarray | None,
        first: int,
        last: int,
        max_branches: int,
        node_number: int,
        n_threads: int,
    ) -> None:
        """Search the features first..last-1."""
        segment_penalty = self._penalties.segment * self._goal.penalty_unit(node)
        self._search.search(
            histogram,
            self._goal.targets,
            rows,
            first,
            last,
            max_branches=max_branches,
            segment_penalty=segment_penalty,
            category_penalty=segment_penalty * CATEGORY_SHARE,
            branch_penalty=self._penalties.branch * node.weight,
            seed=self._seed + node_number,
            n_threads=n_threads,
        )

    def gain_on_new_rows(
        self,
        candidate: Candidate,
        halves: list[tuple[np.ndarray, np.ndarray]],
        node: NodeStatistics,
        max_branches: int,
        node_number: int,
    ) -> float:
        """What a candidate's feature gains on either half of the rows when fitted on the other."""
        feature = candidate.feature
        bins = slice(self._offsets[feature], self._offsets[feature + 1])
        gain = 0.0
        for fitted, new in halves:
            if len(fitted) == 0 or len(new) == 0:
                continue
            self._search_features(
                node, fitted, None, feature, feature + 1, max_branches, node_number, 1
            )
            if self._search.n_branches[feature] >= 2:
                branch_of_bin = fill_gaps(
                    self._search.branch_of_bin[bins], self._table.features[feature].is_categorical
                )
                branches = branches_by_bin(self._table.columns, feature, branch_of_bin, new, 1)
                gain += self._goal.gain_of(new, branches)
        return gain

    @property
    def results(self) -> NodeSearch:
        """Every feature's own best shape function, of the last search."""
        return self._search

    def least_gain(self, node: NodeStatistics) -> float:
        """What a split of a node must gain after penalties."""
        return self._penalties.split * node.impurity

    def branches(self, candidate: Candidate, rows: np.ndarray, n_threads: int) -> np.ndarray:
        """Branch of each row under a candidate."""
        return branches_by_bin(
            self._table.columns, candidate.feature, candidate.branch_of_bin, rows, n_threads
        )


def search_limits(
    inner: InnerTreeOptions, min_samples_leaf: int, min_weight_leaf: float
) -> dict[str, Any]:
    """What holds for every node, in the words of the kernels that search."""
    return {
        "inner_tree": inner.kind,
        "inner_max_leaves": inner.max_leaves,
        "inner_min_rows": inner.min_rows,
        "inner_max_depth": inner.max_depth,
        "assignment": inner.assignment,
        "min_rows": min_samples_leaf,
        "min_weight": min_weight_leaf,
    }


def fill_gaps(branch_of_bin: np.ndarray, is_categorical: bool) -> np.ndarray:
    """Give bins without rows a branch: that of the nearest bin, or of most categories."""
    held = np.flatnonzero(branch_of_bin[:-1] != NO_BRANCH_MARK)
    filled = branch_of_bin.copy()
    if is_categorical:
        filled[filled == NO_BRANCH_MARK] = np.bincount(branch_of_bin[held]).argmax()
        return filled
    bins = np.arange(len(branch_of_bin) - 1)
    above = np.clip(np.searchsorted(held, bins), 1, max(len(held) - 1, 1))
    below = above - 1
    above = np.minimum(above, len(held) - 1)
    nearest = np.where(bins - held[below] <= held[above] - bins, held[below], held[above])
    filled[:-1] = branch_of_bin[nearest]
    if filled[-1] == NO_BRANCH_MARK:
        filled[-1] = filled[held[0]]
    return filled
