"""Pairs of features: which to look at, how promising each is, and the best shape function."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import combinations, pairwise
from numbers import Integral
from typing import Any

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.oblique import PairCuts, PairFitter
from shapetree._core.partition import branches_by_bin
from shapetree._core.screen import START, GridScreen, crossed_losses
from shapetree._core.search import NO_BRANCH_MARK
from shapetree._threads import feature_chunks, threads_for
from shapetree.data._binning import BinnedTable, FeatureBins
from shapetree.data._names import feature_finder
from shapetree.data._table import MAX_ROWS, FeatureInfo, Table
from shapetree.data._targets import Goal, NodeStatistics
from shapetree.grow._candidates import (
    FeatureShapes,
    InnerTreeOptions,
    Penalties,
    halves,
    search_limits,
)
from shapetree.grow._local_histograms import LocalHistograms
from shapetree.grow._splits import PairSplit
from shapetree.tree._shape import PairShape, number_cuts

# Pairs that are fitted on the rows if the user leaves it to us.
AUTO_FITTED = 3
# Pairs that are screened on grids if the user leaves it to us: those of 200 features. Of more, the
# paper's filter takes the most promising at each node, judged by so many of its rows.
MAX_SCREENED = 20_000
FILTER_ROWS = 5_000
# Being a pair costs as much as so many segments.
SEGMENTS_PER_PAIR = 1.0
# Growing an inner tree on a grid takes as long as so many visits of a row by a pair.
VISITS_PER_GRID = 20_000
# Pairs that get an inner tree on their grid: half of them, but so many for each that is fitted.
MIN_FINALISTS_PER_FIT = 2
MAX_FINALISTS_PER_FIT = 10
# Pairs whose grids are looked at more closely, for each that is fitted.
CLOSE_LOOKS_PER_FIT = 2
# A pair that gains less than this share of what it must gain on its grid is not fitted.
HOPEFUL_SHARE = 0.8
# Values beyond it count as so large, so that sums of them stay finite.
LARGE = 1e150


@dataclass(frozen=True)
class PairOptions:
    """Which pairs are looked at, and how closely.

    Attributes
    ----------
    pairs : int array of shape (n_pairs, 2)
        Pairs of features that may interact, the smaller number first.
    n_fitted : int
        How many of them are fitted on the rows of a node.
    n_screened : int
        How many of them are screened on grids; the paper's filter chooses, if not all.
    filter_rows : int
        Rows of a node that this filter looks at.
    n_finalists : int
        How many of these get an inner tree on their grid.
    n_orientations : int
        Orientations of cuts, the two axes included.
    exact : bool
        Whether every row is tried as a threshold, in large nodes, too.
    """

    pairs: np.ndarray
    n_fitted: int
    n_screened: int
    filter_rows: int
    n_finalists: int
    n_orientations: int
    exact: bool


@dataclass(frozen=True)
class PairCandidate:
    """A shape function of a pair that a node may split on.

    Attributes
    ----------
    shape : PairShape
    gain : float
        Impurity mass that it takes away.
    penalised_gain : float
        The same, less all penalties but the split's.
    start : array of shape (1,)
        How its inner tree starts.
    """

    shape: PairShape
    gain: float
    penalised_gain: float
    start: np.ndarray

    @property
    def n_branches(self) -> int:
        """Number of branches."""
        return self.shape.n_branches

    @property
    def split(self) -> PairSplit:
        """The split."""
        return PairSplit(self.shape)


class PairSearch:
    """Finds the best pair of one node after another.

    Parameters
    ----------
    table : Table
        The training rows' own values.
    binned : BinnedTable
        Their bins, as the search for shape functions of one feature knows them.
    coarse : BinnedTable
        Bins for the grids: the same, unless these are too many.
    scales : array of shape (n_features,)
        Standard deviations of the ordered features, see `scales_of`.
    goal : Goal
    inner : InnerTreeOptions
    penalties : Penalties
    options : PairOptions
    min_samples_leaf : int
    min_weight_leaf : float
    seed : int
    n_threads : int
    """

    def __init__(
        self,
        table: Table,
        binned: BinnedTable,
        coarse: BinnedTable,
        scales: np.ndarray,
        goal: Goal,
        inner: InnerTreeOptions,
        penalties: Penalties,
        options: PairOptions,
        min_samples_leaf: int,
        min_weight_leaf: float,
        seed: int,
        n_threads: int,
    ) -> None:
        self._columns = Columns(table.columns, table.n_rows)
        self._histograms = LocalHistograms(coarse, goal.targets, n_threads)
        self._goal = goal
        self._penalties = penalties
        self._options = options
        self._seed = seed
        self._n_threads = n_threads
        self._binned = binned
        self._offsets = coarse.offsets
        self._categorical = coarse.categorical
        values = [_bin_values(feature) for feature in coarse.features]
        angles = spread_angles(options.n_orientations)
        cosines, sines = np.cos(angles), np.sin(angles)
        limits = search_limits(inner, min_samples_leaf, min_weight_leaf)
        standardised = [
            np.append(value / scale, 0.0) for value, scale in zip(values, scales, strict=True)
        ]
        self._grid = GridScreen(
            goal.criterion,
            coarse.columns,
            coarse.n_bins,
            coarse.categorical,
            np.concatenate(standardised),
            cosines,
            sines,
            **limits,
        )
        with np.errstate(divide="ignore"):
            slopes = sines / cosines
        self._fitter = PairFitter(
            goal.criterion, self._columns, scales, slopes, exact=options.exact, **limits
        )

    def best(
        self,
        node: NodeStatistics,
        rows: np.ndarray,
        histogram: np.ndarray | None,
        univariate: FeatureShapes | None,
        max_branches: int,
        node_number: int,
        to_beat: float,
    ) -> PairCandidate | None:
        """Find the pair with the greatest gain after penalties, but for that of the split.

        Parameters
        ----------
        node : NodeStatistics
        rows : array
            The node's rows.
        histogram : array or None
            Their histogram over the bins; None to have it summed.
        univariate : NodeSearch or None
            Has just searched the node. Only the paper's filter reads it, see `filters`.
        max_branches : int
        node_number : int
            Seeds random starts, together with the fit's own seed.
        to_beat : float
            Gain after penalties that a pair must have to be of use.
        """
        search_options = self._search_options(node, max_branches, node_number)
        pairs = self._options.pairs
        if self.filters:
            assert univariate is not None
            pairs = self._promising(self._options.n_screened, univariate, max_branches, rows)
        if histogram is None:
            histogram = self._histograms.build(rows)
        visits = len(rows) + VISITS_PER_GRID
        n_threads = threads_for(visits * len(pairs), self._n_threads)
        self._grid.prepare(histogram, self._goal.targets, rows, n_threads)
        information = self._weigh(pairs, node, len(rows), n_threads)
        finalists = np.sort(_greatest(information, self._options.n_finalists))
        pairs, information = pairs[finalists], information[finalists]
        gains, _ = self._screen(pairs, information, visits, n_threads, search_options)
        if len(pairs) > self._options.n_fitted and self.must_hold_up:
            hopeful = gains > HOPEFUL_SHARE * (to_beat + self._pair_penalty(node))
            pairs, gains = pairs[hopeful], gains[hopeful]
        # The best are looked at again more closely: crossings are no longer spared.
        pairs = pairs[_greatest(gains, CLOSE_LOOKS_PER_FIT * self._options.n_fitted)]
        everything = np.full(len(pairs), np.inf)
        gains, starts = self._screen(pairs, everything, visits, n_threads, search_options)
        chosen = _greatest(gains, self._options.n_fitted)
        return self._fit(
            pairs[chosen], starts[chosen], rows, self._pair_penalty(node), search_options
        )

    @property
    def filters(self) -> bool:
        """Whether the paper's filter chooses the pairs to be screened."""
        return len(self._options.pairs) > self._options.n_screened

    def _weigh(
        self, pairs: np.ndarray, node: NodeStatistics, n_rows: int, n_threads: int
    ) -> np.ndarray:
        """How much each pair tells at most, from rough grids."""
        information = np.empty(len(pairs))
        for first, last in feature_chunks(len(pairs), n_rows):
            self._grid.weigh(
                pairs[first:last], information[first:last], self._goal.noise(node), n_threads
            )
        return information

    def _screen(
        self,
        pairs: np.ndarray,
        information: np.ndarray,
        visits: int,
        n_threads: int,
        search_options: dict[str, Any],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gains of the pairs on their grids, and how their inner trees start."""
        gains, starts = np.empty(len(pairs)), np.empty(len(pairs), dtype=START)
        for first, last in feature_chunks(len(pairs), visits):
            some = slice(first, last)
            self._grid.screen(
                pairs[some], information[some], gains[some], starts[some],
                n_threads=n_threads, **search_options,
            )  # fmt: skip
        return gains, starts

    def _promising(
        self, n_wanted: int, univariate: FeatureShapes, max_branches: int, rows: np.ndarray
    ) -> np.ndarray:
        """The most promising pairs by the paper's filter."""
        pairs = self._options.pairs
        # Spread evenly over the node.
        sample = np.ascontiguousarray(rows[:: -(-len(rows) // self._options.filter_rows)])
        crossed = np.empty(len(pairs))
        n_threads = threads_for(len(sample) * len(pairs), self._n_threads)
        branches = self._univariate_branches(univariate, sample, n_threads)
        for first, last in feature_chunks(len(pairs), len(sample)):
            crossed_losses(
                self._goal.criterion, self._goal.targets, branches, max_branches,
                pairs[first:last], sample, crossed[first:last], n_threads,
            )  # fmt: skip
        gains = np.maximum(univariate.gains, 0.0) * (len(sample) / len(rows))
        # The loss of the better feature alone, less that of both, but for the node's own.
        delta = -np.maximum(gains[pairs[:, 0]], gains[pairs[:, 1]]) - crossed
        return np.ascontiguousarray(pairs[np.sort(np.argsort(-delta, kind="stable")[:n_wanted])])

    def _univariate_branches(
        self, univariate: FeatureShapes, rows: np.ndarray, n_threads: int
    ) -> np.ndarray:
        """Branch of each row under every feature's own shape function; 0 where it has none."""
        offsets = self._binned.offsets
        branches = np.empty((len(offsets) - 1, len(rows)), dtype=np.uint8)
        for feature, (start, stop) in enumerate(pairwise(offsets)):
            branch_of_bin = univariate.branch_of_bin[start:stop]
            branch_of_bin = np.where(branch_of_bin == NO_BRANCH_MARK, 0, branch_of_bin)
            branches[feature] = branches_by_bin(
                self._binned.columns, feature, branch_of_bin, rows, n_threads
            )
        return branches

    def _fit(
        self,
        pairs: np.ndarray,
        starts: np.ndarray,
        rows: np.ndarray,
        pair_penalty: float,
        search_options: dict[str, Any],
    ) -> PairCandidate | None:
        best: PairCandidate | None = None
        n_threads = threads_for(len(rows) * len(pairs), self._n_threads)
        fitter = self._fitter
        for first, last in feature_chunks(len(pairs), len(rows) * self._options.n_orientations):
            some = slice(first, last)
            fitter.fit(
                pairs[some], starts[some], self._offsets, self._grid.positions,
                self._goal.targets, rows, n_threads=n_threads, **search_options,
            )  # fmt: skip
            which = int(np.argmax(fitter.penalised_gains))
            gain = fitter.penalised_gains[which] - pair_penalty
            if gain > (0.0 if best is None else best.penalised_gain):
                pair = first + which
                best = PairCandidate(
                    self._shape(pairs[pair], which),
                    float(fitter.gains[which]),
                    float(gain),
                    starts[pair : pair + 1],
                )
        return best

    @property
    def must_hold_up(self) -> bool:
        """Whether a pair must also be the best on rows that it was not fitted on."""
        return self._penalties.pair is None

    def gain_on_new_rows(
        self,
        candidate: PairCandidate,
        node: NodeStatistics,
        rows: np.ndarray,
        max_branches: int,
        node_number: int,
    ) -> float:
        """What a candidate's pair gains on either half of the rows when fitted on the other."""
        pair = np.array([[candidate.shape.first, candidate.shape.second]], dtype=np.int32)
        options = self._search_options(node, max_branches, node_number)
        gain = 0.0
        for fitted, new in halves(rows):
            self._fitter.fit(
                pair, candidate.start, self._offsets, self._grid.positions, self._goal.targets,
                fitted, n_threads=1, **options,
            )  # fmt: skip
            if self._fitter.n_branches[0] >= 2:
                shape = self._shape(pair[0], 0).with_largest_branch(0)
                gain += self._goal.gain_of(new, self.branches(shape, new, 1))
        return gain

    def _search_options(
        self, node: NodeStatistics, max_branches: int, node_number: int
    ) -> dict[str, Any]:
        segment_penalty = self._penalties.segment * self._goal.penalty_unit(node)
        return {
            "max_branches": max_branches,
            "region_penalty": self._goal.region_penalty * segment_penalty,
            "branch_penalty": self._penalties.branch * node.weight,
            "seed": self._seed + node_number,
        }

    def _pair_penalty(self, node: NodeStatistics) -> float:
        if self._penalties.pair is not None:
            return self._penalties.pair * node.weight
        return SEGMENTS_PER_PAIR * self._penalties.segment * self._goal.penalty_unit(node)

    def _shape(self, pair: np.ndarray, which: int) -> PairShape:
        """The fitter's shape function for a pair."""
        fitter = self._fitter
        cuts, regions, cut_low, cut_high = number_cuts(fitter.low[which, : fitter.n_nodes[which]])
        first, second = map(int, pair)
        return PairShape(
            first=first,
            second=second,
            n_branches=int(fitter.n_branches[which]),
            cut_a=fitter.a[which, cuts],
            cut_b=fitter.b[which, cuts],
            cut_threshold=fitter.threshold[which, cuts],
            cut_low=cut_low,
            cut_high=cut_high,
            branch_of_piece=fitter.branch[which, regions],
            positions=(self._positions(first), self._positions(second)),
            missing_branch=int(fitter.missing_branch[which]),
            saw_missing=bool(fitter.missing_branch[which] >= 0),
        )

    def _positions(self, feature: int) -> np.ndarray:
        """Places of a categorical feature's categories in the node's order; else empty."""
        if not self._categorical[feature]:
            return np.empty(0)
        bins = slice(self._offsets[feature], self._offsets[feature + 1] - 1)
        return self._grid.positions[bins].copy()

    def branches(self, shape: PairShape, rows: np.ndarray, n_threads: int) -> np.ndarray:
        """Branch of each row under a shape function."""
        return cuts_of(shape, self._columns).branches(rows, n_threads)


def cuts_of(shape: PairShape, columns: Columns) -> PairCuts:
    """A pair's shape function, ready to send a table's rows to branches."""
    return PairCuts(
        columns, shape.first, shape.second, *shape.positions,
        shape.cut_a, shape.cut_b, shape.cut_threshold, shape.cut_low, shape.cut_high,
        shape.branch_of_piece, shape.missing_branch,
    )  # fmt: skip


def spread_angles(n: int) -> np.ndarray:
    """Angles of n orientations, evenly spaced over the half circle if n is even.

    Each angle is followed by the one perpendicular to it: first the two axes, then the diagonals,
    then the others.
    """
    n_first, n_second = (n - 1) // 2, (n - 2) // 2
    first = np.arange(1, n_first + 1) / (n_first + 1)
    second = np.arange(1, n_second + 1) / (n_second + 1)
    first = first[np.argsort(np.abs(first - 0.5), kind="stable")]
    second = second[np.argsort(np.abs(second - 0.5), kind="stable")]
    angles = np.empty(n)
    angles[0::2] = [0.0, *first]
    angles[1::2] = [1.0, *(1 + second)]
    return np.pi / 2 * angles


def pair_options(
    pairs: Any,
    screen: str,
    n_orientations: int,
    exact: bool,
    features: tuple[FeatureInfo, ...],
) -> PairOptions:
    """Options from an estimator's parameters.

    Parameters
    ----------
    pairs : int, "auto", "all" or list of groups of features
    screen : {"grid", "delta"}
    n_orientations : int
    exact : bool
    features : tuple of FeatureInfo
    """
    n_features = len(features)
    if isinstance(pairs, bool | np.bool_):
        raise TypeError(f"pairs must be a number, 'auto', 'all' or a list, got {pairs!r}")
    if isinstance(pairs, str | Integral):
        allowed = np.stack(np.triu_indices(n_features, 1), axis=1).astype(np.int32)
    else:
        allowed = _pairs_in_groups(pairs, [feature.name for feature in features])
    n_all = len(allowed)
    n_fitted, n_screened = min(AUTO_FITTED, n_all), min(MAX_SCREENED, n_all)
    if isinstance(pairs, str) and pairs == "all":
        n_fitted = n_screened = n_all
        exact = True
    elif isinstance(pairs, Integral):
        n_fitted, n_screened = int(pairs), n_all
        if n_fitted == 0:
            allowed = allowed[:0]
        elif n_fitted > n_all:
            warnings.warn(
                f"pairs={n_fitted} is more than the {n_all} pairs of {n_features} features; "
                f"all of them are fitted",
                stacklevel=2,
            )
            n_fitted = n_all
    if screen == "delta":
        n_screened = n_fitted
    return PairOptions(
        allowed,
        n_fitted,
        n_screened,
        MAX_ROWS if screen == "delta" else FILTER_ROWS,
        int(
            np.clip(
                n_screened // 2,
                MIN_FINALISTS_PER_FIT * n_fitted,
                MAX_FINALISTS_PER_FIT * n_fitted,
            )
        ),
        n_orientations,
        exact,
    )


def _pairs_in_groups(groups: Any, names: list[str]) -> np.ndarray:
    """Pairs of features that share a group, each given by name or by index."""
    pairs: set[tuple[int, ...]] = set()
    find = feature_finder(names, "pairs")
    for group in groups:
        if isinstance(group, str | Integral) or len(group) < 2:
            raise ValueError(
                f"pairs must hold pairs or groups of features that may interact, two features or "
                f"more in each, got {group!r}"
            )
        numbers = list(map(find, group))
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"pairs holds a group that repeats a feature: {group!r}")
        pairs.update(combinations(sorted(numbers), 2))
    if not pairs:
        raise ValueError("pairs is an empty list; give pairs of features, or 0 for none")
    return np.array(sorted(pairs), dtype=np.int32)


def _greatest(gains: np.ndarray, n: int) -> np.ndarray:
    """Indices of the n greatest gains, the greatest first."""
    return np.argsort(-gains, kind="stable")[:n]


def scales_of(binned: BinnedTable, weights: np.ndarray | None) -> np.ndarray:
    """Standard deviation of each ordered feature, of its bins' values; 1 for categorical ones."""
    return np.array(
        [
            _spread(_bin_values(bins), binned.columns.array(feature), weights)
            for feature, bins in enumerate(binned.features)
        ]
    )


def _bin_values(feature: FeatureBins) -> np.ndarray:
    """A value in each bin that outliers in the outermost bins do not reach; 0 for categories."""
    if feature.low is None or feature.high is None:
        return np.zeros(feature.n_bins)
    upper_half = np.arange(feature.n_bins) >= feature.n_bins / 2
    return np.clip(np.where(upper_half, feature.low, feature.high), -LARGE, LARGE)


def _spread(values: np.ndarray, bins: np.ndarray, weights: np.ndarray | None) -> float:
    """Standard deviation of a feature whose bins have these values; 1 if it is constant."""
    count = np.bincount(bins, weights, minlength=len(values) + 1)[: len(values)]
    total = count.sum()
    if total == 0:
        return 1.0
    share, largest = count / total, np.abs(values).max()
    relative = values / largest if largest > 0 else values
    deviation = relative - share @ relative
    spread = float(largest * np.sqrt(share @ deviation**2))
    return spread if spread > 0 else 1.0
