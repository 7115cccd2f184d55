"""Pairs of features: how promising each is, and the best shape function."""

from __future__ import annotations

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.criterion import NodeStatistics
from shapetree._core.grid import START, BinGroups, GridScreen, Groups
from shapetree._core.histogram import bin_offsets
from shapetree._core.oblique import PairFits, PairFitter, PairSample
from shapetree._core.pair_tree import NodeOptions
from shapetree._core.pieces import PairCuts
from shapetree._core.search import NO_BRANCH_MARK
from shapetree._threads import VISITS_PER_CALL, threads_for
from shapetree.data._binning import FeatureBins
from shapetree.data._map_join import Inquiry
from shapetree.data._statistics import Statistics
from shapetree.data._targets import Goal
from shapetree.grow._candidates import (
    CandidateOptions,
    CandidateSearch,
    FeatureShapes,
    PairCandidate,
    SearchedNode,
    gain_of,
)
from shapetree.grow._pair_options import PairList, PairOptions
from shapetree.grow._row_holder import Histograms
from shapetree.grow._rows_of_node import Halving, Sample, sums_by_bin
from shapetree.grow._splits import number_cuts
from shapetree.tree._shape import PairShape

# Growing an inner tree on a grid takes as long as this many visits of a row by a pair.
VISITS_PER_GRID = 20_000
# Joining bins into groups takes each bin as long as this many.
VISITS_PER_GROUPED_BIN = 10
# And fitting a pair takes each row of the sample as long as this many.
VISITS_PER_FIT = 200
# Pairs whose grids are looked at more closely, for each that is fitted.
CLOSE_LOOKS_PER_FIT = 2
# Shares of what a pair must gain, and of what the best pair gains: a pair that promises less on its
# rough grid gets no inner tree, and one that gains less on its grid is not fitted.
TELLING_SHARE = 0.4
TELLING_SHARE_OF_BEST = 0.55
HOPEFUL_SHARE = 0.8
HOPEFUL_SHARE_OF_BEST = 0.8
# Larger values count as this, so that sums of them stay finite.
LARGE = 1e150
# Memory that the cells of grids may take at a time.
MAX_CELL_BYTES = 2**25


class PairFrame:
    """What searches for pairs know of the features, whatever their goal.

    Parameters
    ----------
    features : tuple of FeatureBins
        Bins for the grids.
    weights : array of shape (total bins,)
        Weight of the rows in each bin, missing ones included.
    """

    def __init__(
        self, features: tuple[FeatureBins, ...], weights: np.ndarray, options: PairOptions
    ) -> None:
        self.options = options
        self.features = features
        self.n_bins = np.array([feature.n_bins for feature in features], dtype=np.int64)
        self.offsets = bin_offsets(self.n_bins)
        self.categorical = np.array([feature.is_categorical for feature in features])
        values = [_bin_values(feature) for feature in features]
        self.scales = np.array(
            [
                _spread(value, weights[start : start + len(value)])
                for value, start in zip(values, self.offsets[:-1], strict=True)
            ]
        )
        self.standardised = np.concatenate(
            [
                np.append(value / scale, 0.0)
                for value, scale in zip(values, self.scales, strict=True)
            ]
        )
        angles = spread_angles(options.n_orientations)
        self.cosines, self.sines = np.cos(angles), np.sin(angles)
        with np.errstate(divide="ignore"):
            self.slopes = self.sines / self.cosines


class PairSearch:
    """Finds the best pair of a node by its histogram, grids of pairs, and a sample of its rows."""

    def __init__(self, frame: PairFrame, goal: Goal, options: CandidateOptions) -> None:
        self._frame = frame
        self._options = frame.options
        self._goal = goal
        self._penalties = options.penalties
        self._seed = options.seed
        self._n_threads = options.n_threads
        self._search_options = options
        limits = options.limits
        self._screen = GridScreen(
            goal.criterion, frame.n_bins, frame.categorical, frame.standardised, frame.cosines,
            frame.sines, **limits,
        )  # fmt: skip
        self._limits = limits
        self._fitter_of_all_rows = self._fitter(1.0)

    def _fitter(self, scale: float) -> PairFitter:
        """Fits samples each of whose rows stands for `scale` rows of the node."""
        limits = dict(self._limits)
        for name in ("min_rows", "inner_min_rows"):
            limits[name] = int(np.ceil(limits[name] / scale))
        limits["min_weight"] /= scale
        return PairFitter(
            self._goal.criterion, self._frame.slopes, exact=self._options.exact, **limits
        )

    def considered(self, node: SearchedNode) -> Inquiry[PairList]:
        """The pairs of a node that get a grid, all or as many as are to be screened."""
        options, pairs = self._options, self._options.pairs
        sieves = len(self._frame.features) > options.max_features
        if sieves or len(pairs) > options.n_screened:
            shapes = self._shapes_of_features(node)
            if sieves:
                pairs = pairs.among(np.sort(_greatest(shapes.gains, options.max_features)))
            if len(pairs) > options.n_screened:
                pairs = yield from self._promising(pairs, shapes, node)
        return pairs

    def best(
        self, pairs: PairList, node: SearchedNode, to_beat: float
    ) -> Inquiry[PairCandidate | None]:
        """Find the pair with the greatest gain after penalties.

        Parameters
        ----------
        pairs : PairList
            Those that are `considered`.
        to_beat : float
            Gain after penalties that a pair must have to be of use.
        """
        options = self._options
        n_threads = threads_for((node.rows.n_rows + VISITS_PER_GRID) * len(pairs), self._n_threads)
        n_visits = VISITS_PER_GROUPED_BIN * len(node.histogram)
        groups = self._screen.groups(node.histogram, threads_for(n_visits, self._n_threads))
        about = node, groups, n_threads
        finalists, information = yield from self._weigh(pairs, *about)
        needed = to_beat + self.pair_penalty(node.statistics)
        is_choosy = len(pairs) > options.n_fitted and self.must_hold_up
        if is_choosy:
            most = information.max(initial=0.0)
            telling = information > max(TELLING_SHARE * needed, TELLING_SHARE_OF_BEST * most)
            finalists, information = finalists[telling], information[telling]
        gains, starts = yield from self._grow(finalists, information, *about)
        if is_choosy:
            least = max(HOPEFUL_SHARE * needed, HOPEFUL_SHARE_OF_BEST * gains.max(initial=0.0))
            hopeful = gains > least
            finalists, gains, starts = finalists[hopeful], gains[hopeful], starts[hopeful]
        if len(finalists) == 0:
            return None
        # The best are looked at again more closely, now with all crossings.
        chosen = _greatest(gains, CLOSE_LOOKS_PER_FIT * options.n_fitted)
        finalists, gains, starts = finalists[chosen], gains[chosen], starts[chosen]
        closer, other_starts = yield from self._grow(finalists, None, *about)
        is_better = closer > gains + 1e-10 * node.statistics.weight
        gains[is_better], starts[is_better] = closer[is_better], other_starts[is_better]
        chosen = _greatest(gains, options.n_fitted)
        if is_choosy:
            chosen = chosen[gains[chosen] >= HOPEFUL_SHARE_OF_BEST * gains.max()]
        return (yield from self._fit(finalists[chosen], starts[chosen], node, groups))

    def _chunk(self, n_groups: int) -> int:
        """Pairs whose cells have room in memory at a time."""
        cell_bytes = 8 * self._goal.targets.n_channels
        return max(1, MAX_CELL_BYTES // (n_groups**2 * cell_bytes))

    def _weigh(
        self, pairs: PairList, node: SearchedNode, groups: Groups, n_threads: int
    ) -> Inquiry[tuple[np.ndarray, np.ndarray]]:
        """The pairs that tell most, and how much each tells at most, from rough grids."""
        n_stats = self._goal.targets.n_stats
        first_bins = slice(0, self._frame.offsets[1])
        whole = self._goal.criterion.impurity(node.histogram[first_bins].sum(axis=0)[:n_stats])
        noise = self._goal.noise(node.statistics)
        leaders = _Leaders(self._options.n_finalists)
        for first, some in pairs.parts(self._chunk(groups.rough.n_groups)):
            cells = yield from node.rows.grids(some, groups.rough)
            leaders.add(first, whole - self._screen.losses(cells, noise, n_threads))
        return pairs.take(leaders.numbers), leaders.gains

    def _grow(
        self,
        pairs: np.ndarray,
        information: np.ndarray | None,
        node: SearchedNode,
        groups: Groups,
        n_threads: int,
    ) -> Inquiry[tuple[np.ndarray, np.ndarray]]:
        """Gains of the pairs on their grids, and how their inner trees start."""
        found: list[tuple[np.ndarray, np.ndarray]] = []
        size = min(self._chunk(groups.fine.n_groups), VISITS_PER_CALL // VISITS_PER_GRID)
        for first in range(0, len(pairs), size):
            some = slice(first, first + size)
            cells = yield from node.rows.grids(pairs[some], groups.fine)
            its = None if information is None else information[some]
            about = groups, its, self._node_options(node), n_threads
            found.append(self._screen.screen(pairs[some], cells, *about))
        if len(found) == 1:
            return found[0]
        gains, starts = zip((np.empty(0), np.empty(0, dtype=START)), *found, strict=True)
        return np.concatenate(gains), np.concatenate(starts)

    def _promising(
        self, pairs: PairList, univariate: FeatureShapes, node: SearchedNode
    ) -> Inquiry[PairList]:
        """The most promising pairs by the paper's filter, from each feature's own best shape."""
        options, goal = self._options, self._goal
        branch_of_bin = univariate.branch_of_bin
        branch_of_bin = np.where(branch_of_bin == NO_BRANCH_MARK, 0, branch_of_bin)
        groups = BinGroups(branch_of_bin, node.max_branches)
        gains = np.maximum(univariate.gains, 0.0)
        leaders = _Leaders(options.n_screened)
        for first, some in pairs.parts(self._chunk(node.max_branches)):
            cells = yield from node.rows.grids(some, groups, options.filter_rows)
            seen = goal.criterion.weight(cells[0].sum(axis=0)[: goal.targets.n_stats])
            crossed = self._screen.losses(cells, 0.0, self._n_threads)
            share = seen / node.statistics.weight
            alone = np.maximum(gains[some[:, 0]], gains[some[:, 1]]) * share
            # The loss of the better feature alone, minus that of both, apart from the node's own.
            leaders.add(first, -alone - crossed)
        return PairList(np.empty(0), pairs.take(leaders.numbers))

    def _shapes_of_features(self, node: SearchedNode) -> FeatureShapes:
        """Each feature's own best shape function."""
        search = CandidateSearch(self._frame.features, self._goal, self._search_options)
        found = FeatureShapes.empty(1, search.offsets)
        histograms = Histograms(0, len(self._frame.features), node.histogram[None])
        about = Statistics.of(node.statistics), np.array([node.seed]), node.max_branches
        search.search(*about, histograms, found)
        return found.of(0)

    def _fit(
        self, pairs: np.ndarray, starts: np.ndarray, node: SearchedNode, groups: Groups
    ) -> Inquiry[PairCandidate | None]:
        """The best of some pairs, fitted on a sample of the rows."""
        best: PairCandidate | None = None
        n_looked_at = min(node.rows.n_rows, self._options.sample_rows)
        size = max(1, VISITS_PER_CALL // (n_looked_at * self._options.n_orientations))
        for first in range(0, len(pairs), size):
            some = slice(first, first + size)
            features = sorted(set(pairs[some].ravel().tolist()))
            sample = yield from node.rows.sample(tuple(features), self._options.sample_rows)
            places = np.searchsorted(features, pairs[some])
            about = places, starts[some], groups.positions, node
            fits = self._fits(sample, sample.rows, *about)
            which = int(np.argmax(fits.penalised_gains))
            gain = sample.scale * fits.penalised_gains[which]
            gain -= self.pair_penalty(node.statistics)
            gain += self._penalties.free_branch(node.statistics)
            if gain > (0.0 if best is None else best.penalised_gain):
                best = PairCandidate(
                    self._shape(pairs[first + which], fits, which, groups.positions),
                    float(sample.scale * fits.gains[which]),
                    float(gain),
                    starts[first + which : first + which + 1],
                )
        return best

    def _fits(
        self,
        sample: Sample,
        rows: np.ndarray,
        pairs: np.ndarray,
        starts: np.ndarray,
        positions: np.ndarray,
        node: SearchedNode,
    ) -> PairFits:
        """Fit pairs of a sample's columns on some of its rows."""
        places = [self._positions_of(feature, positions) for feature in sample.features]
        given = PairSample(
            sample.columns,
            self._frame.scales[list(sample.features)],
            np.cumsum([0, *map(len, places)]),
            np.concatenate(places),
            sample.targets,
            sample.scale,
        )
        is_whole = sample.scale == 1.0
        fitter = self._fitter_of_all_rows if is_whole else self._fitter(sample.scale)
        options = self._node_options(node, sample.scale)
        n_threads = threads_for(VISITS_PER_FIT * len(rows) * len(pairs), self._n_threads)
        return fitter.fit(given, rows, pairs.astype(np.int32), starts, options, n_threads)

    @property
    def must_hold_up(self) -> bool:
        """Whether a pair must also be the best on rows that it was not fitted on."""
        return self._penalties.pair is None

    def n_categories(self, candidate: PairCandidate) -> int:
        """Number of categories of a candidate's features; 0 if both are ordered."""
        return sum(len(positions) for positions in candidate.shape.positions)

    def gain_on_new_rows(
        self, candidate: PairCandidate, sample: Sample, halving: Halving, node: SearchedNode
    ) -> float:
        """What a candidate's pair gains on either half of a sample when fitted on the other.

        The sample has the values of the pair's features.
        """
        shape = candidate.shape
        pair = np.array([[sample.features.index(f) for f in (shape.first, shape.second)]])
        gain = 0.0
        for fitted, new in halving:
            if len(fitted) == 0 or len(new) == 0:
                continue
            positions = self._order_of_categories(sample, fitted)
            fits = self._fits(sample, fitted, pair, candidate.start, positions, node)
            if fits.n_branches[0] >= 2:
                found = self._shape(pair[0], fits, 0, positions, shape).with_largest_branch(0)
                branches = PairCuts(sample.columns, found).branches(new, 1)
                gain += gain_of(self._goal, sample, new, branches, found.n_branches)
        return sample.scale * gain

    def _order_of_categories(self, sample: Sample, rows: np.ndarray) -> np.ndarray:
        """Positions of the categories of a sample's features, ordered by some of its rows alone."""
        offsets, targets = self._frame.offsets, sample.targets
        if not self._frame.categorical[list(sample.features)].any():
            return np.full(offsets[-1], np.nan)
        sums = np.zeros((offsets[-1], targets.n_channels))
        for column, feature in enumerate(sample.features):
            if self._frame.categorical[feature]:
                its = offsets[feature : feature + 2]
                codes, missing = sample.columns.array(column), its[1] - its[0] - 1
                bins = Columns([np.where(codes < 0, missing, codes).astype(np.uint16)], len(codes))
                sums[its[0] : its[1]] = sums_by_bin(bins, its - its[0], targets, rows)
        return np.asarray(self._screen.groups(sums, 1).positions)

    def _node_options(self, node: SearchedNode, scale: float = 1.0) -> NodeOptions:
        """What holds for a node, in units of a sample each of whose rows stands for `scale`."""
        goal, penalties, statistics = self._goal, self._penalties, node.statistics
        region_penalty = goal.region_penalty * penalties.part_price(goal, statistics)
        return NodeOptions(
            # For each leaf that it adds, a third branch hardly ever gains as much as a second.
            max_branches=2 if self._search_options.per_leaf else node.max_branches,
            region_penalty=region_penalty / scale,
            branch_penalty=penalties.branch_price(goal, statistics) / scale,
            seed=self._seed + node.seed,
        )

    def pair_penalty(self, node: NodeStatistics) -> float:
        """What a pair must gain more than its regions cost."""
        if self._penalties.pair is not None:
            return self._penalties.pair * node.weight
        return self._penalties.parts_per_pair * self._penalties.part_price(self._goal, node)

    def _shape(
        self,
        pair: np.ndarray,
        fits: PairFits,
        which: int,
        positions: np.ndarray,
        like: PairShape | None = None,
    ) -> PairShape:
        """A fitted shape function of a pair.

        If `like` is given, `pair` has the numbers of its features in a sample.
        """
        cuts, regions, cut_low, cut_high = number_cuts(
            fits.low[which, : fits.n_nodes[which]].tolist()
        )
        first, second = map(int, pair)
        features = (first, second) if like is None else (like.first, like.second)
        return PairShape(
            first=first,
            second=second,
            n_branches=int(fits.n_branches[which]),
            cut_a=fits.a[which, cuts],
            cut_b=fits.b[which, cuts],
            cut_threshold=self._thresholds(features, fits, which, cuts),
            cut_low=cut_low,
            cut_high=cut_high,
            branch_of_piece=fits.branch[which, regions],
            positions=(
                self._positions_of(features[0], positions),
                self._positions_of(features[1], positions),
            ),
            missing_branch=int(fits.missing_branch[which]),
            saw_missing=bool(fits.missing_branch[which] >= 0),
        )

    def _thresholds(
        self, features: tuple[int, int], fits: PairFits, which: int, cuts: list[int]
    ) -> np.ndarray:
        """Thresholds of cuts; along an axis of whole numbers they are rounded down."""
        thresholds = fits.threshold[which, cuts]
        other_weights = fits.b[which, cuts], fits.a[which, cuts]
        for feature, other_weight in zip(features, other_weights, strict=True):
            if self._frame.features[feature].is_whole:
                thresholds = np.where(other_weight == 0, np.floor(thresholds), thresholds)
        return thresholds

    def _positions_of(self, feature: int, positions: np.ndarray) -> np.ndarray:
        """Places of a categorical feature's categories in the node's order; else empty."""
        if not self._frame.categorical[feature]:
            return np.empty(0)
        bins = slice(self._frame.offsets[feature], self._frame.offsets[feature + 1] - 1)
        return positions[bins].copy()


class _Leaders:
    """The numbers with the greatest gains; of equals, the smallest numbers."""

    def __init__(self, n_wanted: int) -> None:
        self._n_wanted = n_wanted
        self.numbers = np.empty(0, dtype=np.int64)
        self.gains = np.empty(0)

    def add(self, first: int, gains: np.ndarray) -> None:
        """Consider the gains of the numbers from `first` on, which come after all before."""
        numbers = np.arange(first, first + len(gains))
        if len(self.gains) == self._n_wanted > 0:
            is_great = gains > self.gains.min()
            numbers, gains = numbers[is_great], gains[is_great]
        if len(self.gains) > 0:
            numbers, gains = np.append(self.numbers, numbers), np.append(self.gains, gains)
        if len(gains) > self._n_wanted:
            kept = np.sort(_greatest(gains, self._n_wanted))
            numbers, gains = numbers[kept], gains[kept]
        self.numbers, self.gains = numbers, gains


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


def _greatest(gains: np.ndarray, n: int) -> np.ndarray:
    """Indices of the n greatest gains, the greatest first."""
    return np.argsort(-gains, kind="stable")[:n]


def _bin_values(feature: FeatureBins) -> np.ndarray:
    """A value in each bin that outliers in the outermost bins do not reach; 0 for categories."""
    if feature.low is None or feature.high is None:
        return np.zeros(feature.n_bins)
    upper_half = np.arange(feature.n_bins) >= feature.n_bins / 2
    return np.clip(np.where(upper_half, feature.low, feature.high), -LARGE, LARGE)


def _spread(values: np.ndarray, weights: np.ndarray) -> float:
    """Standard deviation of a feature whose bins have these values; 1 if it is constant."""
    total = weights.sum()
    if total == 0:
        return 1.0
    share, largest = weights / total, np.abs(values).max()
    relative = values / largest if largest > 0 else values
    deviation = relative - share @ relative
    spread = float(largest * np.sqrt(share @ deviation**2))
    return spread if spread > 0 else 1.0
