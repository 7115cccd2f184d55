"""Naive twins of the kernels, and random problems for both: slow, plain, obviously correct."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.histogram import Targets
from shapetree._core.predictor import count_cells
from shapetree._core.reduced import ReducedSearch
from shapetree._core.rows import spreads_of
from shapetree.data._binning import BinnedTable
from shapetree.data._table import Table
from shapetree.grow._grower import describe
from shapetree.grow._local import LocalRows
from shapetree.tree._arrays import TreeArrays

CRITERIA = ("gini", "entropy", "squared_error", "absolute_error")


# Criteria


def split_blocks(stats, block_sizes):
    return np.split(np.asarray(stats, dtype=float), np.cumsum(block_sizes)[:-1])


def entropy_mass(counts):
    total = counts.sum()
    seen = counts[counts > 0]
    return float(-(seen * np.log2(seen / total)).sum()) if total > 0 else 0.0


def gini_mass(counts):
    total = counts.sum()
    return float(total * (1 - ((counts / total) ** 2).sum())) if total > 0 else 0.0


def absolute_mass(counts, levels):
    """Least total distance to any level: a median is always among them."""
    return float(min(counts @ np.abs(levels - level) for level in levels))


def weighted_median(values, weights):
    """Midpoint of the lower and the upper weighted median of ascending values."""
    held = weights > 0
    values, below = values[held], np.cumsum(weights[held])
    half, rounding = below[-1] / 2, below[-1] * 1e-12
    lower = values[np.argmax(below >= half - rounding)]
    upper = values[np.argmax(below > half + rounding)]
    return (lower + upper) / 2


def impurity(name, block_sizes, levels, stats):
    """Impurity mass of one statistics vector, averaged over outputs."""
    if name == "squared_error":
        return float(-(stats[1:] ** 2).sum() / stats[0] / len(block_sizes)) if stats[0] > 0 else 0.0
    blocks = split_blocks(stats, block_sizes)
    if name == "absolute_error":
        masses = map(absolute_mass, blocks, split_blocks(levels, block_sizes))
    else:
        masses = map(gini_mass if name == "gini" else entropy_mass, blocks)
    return sum(masses) / len(block_sizes)


# Rows in pieces


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows with targets and weights, each in one of `n_pieces` pieces, and a criterion."""

    name: str
    block_sizes: tuple[int, ...]
    levels: np.ndarray | None
    labels: np.ndarray | None  # (n, n_outputs) statistic that a row counts for
    values: np.ndarray | None  # or y, (n, n_outputs)
    weights: np.ndarray | None
    piece: np.ndarray
    n_pieces: int

    @cached_property
    def criterion(self):
        return Criterion(self.name, self.block_sizes, self.levels)

    @cached_property
    def targets(self):
        return Targets(self.labels, self.values, self.weights, self.criterion.n_stats)

    @cached_property
    def row_weights(self):
        return np.ones(len(self.piece)) if self.weights is None else self.weights

    def channels_of(self, rows):
        """Sums over rows, one by one: statistics and, with weights, the number of rows."""
        total = np.zeros(self.criterion.n_stats + (self.weights is not None))
        for row in rows:
            if self.labels is not None:
                for label in self.labels[row]:
                    total[label] += self.row_weights[row]
            else:
                total[0] += self.row_weights[row]
                for output, value in enumerate(self.values[row]):
                    total[1 + output] += self.row_weights[row] * value
            if self.weights is not None:
                total[-1] += 1
        return total

    def stats_of(self, rows):
        return self.channels_of(rows)[: self.criterion.n_stats]

    @cached_property
    def stats(self):
        """Statistics of each piece."""
        return np.array(
            [self.stats_of(np.flatnonzero(self.piece == p)) for p in range(self.n_pieces)]
        )

    @cached_property
    def n_rows(self):
        """Rows of each piece."""
        return np.bincount(self.piece, minlength=self.n_pieces).astype(np.int32)

    @cached_property
    def total_weight(self):
        return self.row_weights.sum()

    @cached_property
    def tolerance(self):
        """What rounding may cost."""
        scale = 1.0 if self.values is None else 1 + np.abs(self.values).max() ** 2
        return 1e-9 * self.total_weight * scale

    def impurity(self, stats):
        return impurity(self.name, self.block_sizes, self.levels, stats)

    def loss(self, branch):
        """Impurity of the branches to which the pieces are sent."""
        branch = np.asarray(branch)
        return sum(self.impurity(self.stats[branch == b].sum(axis=0)) for b in np.unique(branch))

    def branch_rows(self, branch):
        """Rows in each branch."""
        return np.bincount(branch, weights=self.n_rows)


@st.composite
def samples(
    draw,
    names=CRITERIA,
    least_pieces=1,
    max_pieces=7,
    least_classes=1,
    max_classes=4,
    max_outputs=2,
    max_rows=24,
    weighted=None,
):
    """Small samples, every piece with at least one row."""
    name = draw(st.sampled_from(names))
    n_outputs = draw(st.integers(1, max_outputs))
    n_pieces = draw(st.integers(least_pieces, max_pieces))
    n = draw(st.integers(n_pieces, max(max_rows, n_pieces)))
    rest = draw(arrays(np.int64, n - n_pieces, elements=st.integers(0, n_pieces - 1)))
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        weights = draw(arrays(np.float64, n, elements=st.sampled_from([0.25, 0.5, 1.0, 1.3, 7.0])))
    levels = labels = values = None
    block_sizes = (1,) * n_outputs
    if name == "squared_error":
        values = draw(arrays(np.float64, (n, n_outputs), elements=st.integers(-4, 4)))
    else:
        block_sizes = tuple(draw(st.integers(least_classes, max_classes)) for _ in range(n_outputs))
        starts = np.cumsum((0, *block_sizes))[:-1]
        labels = np.stack(
            [
                start + draw(arrays(np.int32, n, elements=st.integers(0, size - 1)))
                for start, size in zip(starts, block_sizes, strict=True)
            ],
            axis=1,
        ).astype(np.int32)
        if name == "absolute_error":
            levels = np.concatenate([np.arange(size) ** 1.5 - 1 for size in block_sizes])
    piece = np.concatenate([np.arange(n_pieces), rest])
    return Sample(name, block_sizes, levels, labels, values, weights, piece, n_pieces)


# Enumeration


def set_partitions(n, k):
    """Every way to send n pieces to at most k branches, up to the branches' names."""
    ways = [()]
    for _ in range(n):
        ways = [(*way, b) for way in ways for b in range(min(max(way, default=-1) + 2, k))]
    return ways


class AllAssignments:
    """Losses of all assignments of a sample's pieces."""

    def __init__(self, sample, max_branches):
        self.sample = sample
        self.ways = set_partitions(sample.n_pieces, max_branches)
        members = np.array(self.ways)
        bits = 1 << np.arange(sample.n_pieces)
        cost = np.zeros(2**sample.n_pieces)
        for subset in range(1, len(cost)):
            held = (subset & bits) > 0
            cost[subset] = sample.impurity(sample.stats[held].sum(axis=0))
        branches = range(max_branches)
        self.losses = sum(cost[(members == b) @ bits] for b in branches)
        self.n_branches = members.max(axis=1) + 1

    def least(self, k):
        """Least loss of an assignment to at most k branches."""
        return self.losses[self.n_branches <= k].min()


def interval_partitions(n, most):
    """Ends of the intervals, for every way to cut n bins into at most `most` intervals."""
    for n_cuts in range(min(most, n)):
        for cuts in combinations(range(1, n), n_cuts):
            yield [*cuts, n]


def intervals_as_branches(stops):
    """Number of the interval of each bin."""
    return np.repeat(np.arange(len(stops)), np.diff([0, *stops]))


def n_parts(branch):
    return 1 + np.count_nonzero(np.diff(np.asarray(branch, dtype=int)))


def extra_parts(branch, categorical=False):
    """Segments beyond two, or listed categories beyond the first; the missing cell left out."""
    if categorical:
        return max(len(branch) - np.bincount(branch).max() - 1, 0)
    return max(n_parts(branch) - 2, 0)


# Trees


SLOPES = [-2.0, -1.0, -1 / 3, 0.0, 0.1, 1.0, 1.0, 3.0, 1e-300, 1e300]
THRESHOLDS = [-np.finfo(float).max, np.finfo(float).max, 1e300, *np.arange(-3, 3.1, 0.25)]


def random_split(rng, feature, n_categories):
    """Upper bounds of a random shape function of one feature."""
    n_pieces = n_categories or int(rng.integers(1, 13))
    bounds = np.append(np.sort(rng.permutation(12)[: n_pieces - 1] / 2 - 3), np.inf)
    upper = [np.nan] * n_pieces if n_categories else bounds.tolist()
    return {"feature": feature, "second": -1, "upper": upper, "cuts": [], "positions": ([], [])}


def random_cuts(rng, n_cuts):
    """Rows (a, b, threshold, low, high); each cut but the first has one way to it, as regions."""
    cuts = [
        [float(rng.integers(2)), rng.choice(SLOPES), rng.choice(THRESHOLDS), None, None]
        for _ in range(n_cuts)
    ]
    free = []
    for cut in range(n_cuts):
        if cut > 0:
            above, side = free.pop(int(rng.integers(len(free))))
            cuts[above][3 + side] = cut
        free += [(cut, 0), (cut, 1)]
    for region, way in enumerate(rng.permutation(len(free))):
        above, side = free[way]
        cuts[above][3 + side] = -1 - region
    return cuts


def random_positions(rng, n_categories):
    """Places of the categories, NaN for some; none for an ordered feature."""
    places = rng.permutation(n_categories or 0) - 1.0
    return np.where(rng.random(len(places)) < 0.2, np.nan, places).tolist()


def random_pair_split(rng, pair, categories):
    """Cuts and positions of a random shape function of two features."""
    cuts = random_cuts(rng, int(rng.integers(1, 8)))
    return {
        "feature": pair[0],
        "second": pair[1],
        "upper": [np.nan] * (len(cuts) + 1),
        "cuts": cuts,
        "positions": tuple(random_positions(rng, categories[feature]) for feature in pair),
    }


def starts_of(parts):
    """Where each part starts when they stand one after another, and the end."""
    return [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]


@st.composite
def trees(draw, categories=(None, None, 3, 4), max_nodes=30, n_values=2, pair_share=0.5):
    """Valid trees over features that are ordered (None) or have that many categories."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    wanted = draw(st.integers(1, max_nodes))
    leaf = {"feature": -1, "second": -1, "upper": [], "cuts": [], "positions": ([], [])}
    parent, depth, first_child, missing, n_branches = [-1], [0], [], [], []
    splits, branches = [], []
    for node in range(max_nodes + 4):
        if node == len(parent):
            break
        if len(parent) >= wanted or (node > 0 and node + 1 < len(parent) and rng.random() < 0.3):
            first_child.append(-1)
            missing.append(-1)
            n_branches.append(0)
            splits.append(leaf)
            continue
        k = int(rng.integers(2, 5))
        if len(categories) > 1 and rng.random() < pair_share:
            pair = sorted(rng.permutation(len(categories))[:2].tolist())
            splits.append(random_pair_split(rng, pair, categories))
        else:
            feature = int(rng.integers(len(categories)))
            splits.append(random_split(rng, feature, categories[feature]))
        first_child.append(len(parent))
        missing.append(int(rng.integers(k)))
        n_branches.append(k)
        branches.extend(rng.integers(k, size=len(splits[-1]["upper"])))
        parent.extend([node] * k)
        depth.extend([depth[node] + 1] * k)
    n = len(parent)
    cuts = [cut for split in splits for cut in split["cuts"]]
    cut_a, cut_b, threshold, low, high = zip(*cuts, strict=True) if cuts else [()] * 5
    positions = [places for split in splits for places in split["positions"]]
    return TreeArrays(
        parent=parent,
        depth=depth,
        first_child=first_child,
        n_branches=n_branches,
        feature=[split["feature"] for split in splits],
        second_feature=[split["second"] for split in splits],
        missing_branch=missing,
        saw_missing=(rng.random(n) < 0.5) & (np.array(n_branches) > 0),
        piece_start=starts_of([split["upper"] for split in splits]),
        piece_upper=[upper for split in splits for upper in split["upper"]],
        piece_branch=branches,
        cut_start=starts_of([split["cuts"] for split in splits]),
        cut_a=cut_a,
        cut_b=cut_b,
        cut_threshold=threshold,
        cut_low=low,
        cut_high=high,
        position_start=starts_of(positions),
        position=[place for places in positions for place in places],
        n_node_samples=np.ones(n),
        weighted_n_node_samples=np.ones(n),
        impurity=rng.random(n),
        value=rng.random((n, 1, n_values)),
    )


def side_of_pair(tree, node, side, value):
    """What a pair's cuts read of a value: a number, or its category's position; NaN for none."""
    start, stop = tree.position_start[2 * node + side : 2 * node + side + 2]
    if isinstance(value, int):
        places = tree.position[start:stop].tolist()
        return places[value] if 0 <= value < len(places) else np.nan
    return float(np.clip(value, -np.finfo(float).max, np.finfo(float).max))


def branch_of_pair(tree, node, first, second):
    """Branch of two values under a node's cuts."""
    u, v = side_of_pair(tree, node, 0, first), side_of_pair(tree, node, 1, second)
    if np.isnan(u) or np.isnan(v):
        return tree.missing_branch[node]
    start, target = tree.cut_start[node], 0
    while target >= 0:
        a, b, threshold = (
            float(numbers[start + target])
            for numbers in (tree.cut_a, tree.cut_b, tree.cut_threshold)
        )
        targets = tree.cut_high if a * u + b * v > threshold else tree.cut_low
        target = targets[start + target]
    return tree.piece_branch[tree.piece_start[node] - 1 - target]


def branch_of_value(tree, node, value):
    """Branch of a value under a node's pieces."""
    pieces = slice(tree.piece_start[node], tree.piece_start[node + 1])
    uppers, branches = tree.piece_upper[pieces], tree.piece_branch[pieces]
    if isinstance(value, int):
        return branches[value] if 0 <= value < len(branches) else tree.missing_branch[node]
    if np.isnan(value):
        return tree.missing_branch[node]
    return next(b for upper, b in zip(uppers, branches, strict=True) if value <= upper)


def path_of_row(tree, row):
    """Nodes that a row passes; NaN for a missing value, an int for a category."""
    path = [0]
    while tree.feature[path[-1]] >= 0:
        node = path[-1]
        value, second = row[tree.feature[node]], tree.second_feature[node]
        if second >= 0:
            branch = branch_of_pair(tree, node, value, row[second])
        else:
            branch = branch_of_value(tree, node, value)
        path.append(int(tree.first_child[node] + branch))
    return path


def describe_rows(goal, rows):
    """What a node with these rows knows of them; the table has no features."""
    n_rows = goal.targets.n_rows
    table, binned = Table(n_rows, (), []), BinnedTable((), Columns([], n_rows))
    held = LocalRows(table, binned, goal, 1, rows=rows)
    root = np.zeros(1, dtype=np.int32)
    (node,) = describe(held, root, held.totals(root))
    return node


# Kernels with their arguments by name


def cheapest_shapes(
    starts, n_cells, bin_of_cell, losses, n_bins, categorical, n_branches, bounds, order, *,
    segment_penalty, category_penalty, choice_penalty, max_segments, max_listed, only_best,
    n_threads,
):  # fmt: skip
    """What shape functions cost, see `ReducedSearch.costs`; any penalty may be one for all."""
    shares = np.full(np.shape(n_bins), choice_penalty)
    limits = category_penalty, max_segments, max_listed
    search = ReducedSearch(n_bins, categorical, shares, order, *limits)
    segments = np.full(np.shape(bounds), segment_penalty)
    cells = starts, n_cells, bin_of_cell, losses
    return search.costs(cells, n_branches, bounds, segments, 1.0, only_best, n_threads)


def cheapest_shape(
    bin_of_cell, losses, n_bins, categorical, n_branches, *, segment_penalty, category_penalty,
    max_segments, max_listed,
):  # fmt: skip
    """The cheapest shape function of one feature, see `ReducedSearch.shape`."""
    about = np.array([n_bins], dtype=np.int64), np.array([categorical], dtype=np.uint8)
    limits = category_penalty, max_segments, max_listed
    search = ReducedSearch(*about, np.zeros(1), np.zeros(1, dtype=np.int32), *limits)
    return search.shape(0, bin_of_cell, losses, n_branches, segment_penalty, 1.0)


def spreads(rows, nodes, y, standardised, weights, centres, absolute, unit, n_threads=1):
    """See `spreads_of`."""
    goal = SimpleNamespace(y=y, standardised=standardised, weights=weights)
    goal.is_absolute, goal.spread_unit = absolute, unit
    return spreads_of(rows, nodes, goal, centres, n_threads)


def sum_cells(routed, starts, n_cells, bin_of_cell, losses, **arguments):
    """See `RoutedRows.loss_cells`."""
    routed.loss_cells(cells=(starts, n_cells, bin_of_cell, losses), **arguments)


def cell_counts(
    bins, leaves, parent, feature, bin_start, cell_of_bin, cell_start, labels, targets, n_classes,
    n_threads=1, row_counts=None,
):  # fmt: skip
    """See `count_cells`."""
    cells = SimpleNamespace(feature=feature, bin_start=bin_start, of_bin=cell_of_bin)
    cells.start = cell_start
    y, n_classes = (targets, None) if labels is None else (labels, n_classes)
    return count_cells(bins, leaves, parent, cells, y, n_classes, n_threads, row_counts)
