"""Node histograms → the best shape function of one feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree._binning import BinnedTable
from shapetree._core.search import NodeSearch
from shapetree._histograms import feature_chunks, threads_for
from shapetree._targets import Goal, NodeStatistics

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
    """

    segment: float
    split: float
    branch: float


@dataclass(frozen=True)
class Candidate:
    """A shape function over bins that a node may split on.

    Attributes
    ----------
    feature : int
    n_branches : int
    gain : float
        Impurity mass that it takes away.
    branch_of_bin : array of shape (n_bins + 1,)
        The missing bin comes last.
    channels : list
        Each branch's sums of channels where a histogram was at hand, else None.
    """

    feature: int
    n_branches: int
    gain: float
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
        self._offsets = table.offsets
        self._search = NodeSearch(
            goal.criterion,
            table.columns,
            table.n_bins,
            table.categorical,
            inner_tree=inner.kind,
            inner_max_leaves=inner.max_leaves,
            inner_min_rows=inner.min_rows,
            inner_max_depth=inner.max_depth,
            assignment=inner.assignment,
            min_rows=min_samples_leaf,
            min_weight=min_weight_leaf,
        )

    def best(
        self,
        node: NodeStatistics,
        rows: np.ndarray,
        histogram: np.ndarray | None,
        max_branches: int,
        node_number: int,
    ) -> Candidate | None:
        """Find the candidate with the greatest gain after penalties.

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
            None if no candidate earns the split penalty.
        """
        segment_penalty = self._penalties.segment * self._goal.penalty_unit(node)
        split_penalty = self._penalties.split * node.impurity
        n_features = len(self._offsets) - 1
        for first, last in feature_chunks(n_features, len(rows)):
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
                n_threads=threads_for(len(rows) * n_features, self._n_threads),
            )
        gains = self._search.penalised_gains
        # Rounding must not choose between features: of equals, the first wins.
        feature = int(np.argmax(gains >= gains.max() - 1e-10 * node.weight))
        least = max(split_penalty, 1e-10 * node.weight)
        if not gains[feature] >= least:
            return None
        bins = slice(self._offsets[feature], self._offsets[feature + 1])
        branch_of_bin = self._search.branch_of_bin[bins].copy()
        n_branches = int(self._search.n_branches[feature])
        channels = [
            None if histogram is None else histogram[bins][branch_of_bin == branch].sum(axis=0)
            for branch in range(n_branches)
        ]
        gain = float(self._search.gains[feature])
        return Candidate(feature, n_branches, gain, branch_of_bin, channels)
