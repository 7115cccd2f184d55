"""Naive twins of the kernels for pairs of features, and of a walk through a tree with pairs."""

from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace

import numpy as np
from hypothesis import strategies as st
from naive import samples

from shapetree._core.columns import Columns
from shapetree._core.grid import START
from shapetree._core.oblique import PairFitter, PairSample
from shapetree._core.pair_tree import NodeOptions
from shapetree._core.pieces import PairCuts
from shapetree.grow._pairs import spread_angles
from shapetree.grow._splits import number_cuts


def pair_cuts(
    columns, first, second, place_a, place_b, a, b, threshold, low, high, branch, missing_branch
):
    """What sends rows by a pair, of the parts of a `PairShape`."""
    names = "cut_a", "cut_b", "cut_threshold", "cut_low", "cut_high", "branch_of_piece"
    shape = dict(zip(names, (a, b, threshold, low, high, branch), strict=True))
    about = {"first": first, "second": second, "missing_branch": missing_branch}
    return PairCuts(columns, SimpleNamespace(positions=(place_a, place_b), **shape, **about))


GREATEST = np.finfo(np.float64).max


# Grids


def groups_of(codes, n_bins, weights, n_groups=32):
    """Group of each row: bins joined by equal shares of the weight; -1 for missing values."""
    weight = np.bincount(codes, weights, minlength=n_bins + 1)[:n_bins]
    place = {}
    for b in np.unique(codes[codes < n_bins]):
        middle = weight[:b].sum() + weight[b] / 2
        place[b] = min(int(middle * n_groups / weight.sum()), n_groups - 1)
    number = {share: g for g, share in enumerate(sorted(set(place.values())))}
    return np.array([number[place[code]] if code < n_bins else -1 for code in codes])


def rough_groups_of(codes, n_bins, weights):
    """The same, joined further so that a cell weighs eight or more on average."""
    group = groups_of(codes, n_bins, weights)
    n = weights.sum()
    most = 16 if n >= 2048 else 8 if n >= 512 else 4
    n_groups = group.max() + 1
    return np.where((group < 0) | (n_groups <= most), group, group * most // max(n_groups, 1))


def loss_of_groups(sample, *labels):
    """Impurity of the rows that have all labels in common, and how many such groups there are."""
    groups = {}
    for row, key in enumerate(zip(*labels, strict=True)):
        groups.setdefault(key, []).append(row)
    return sum(sample.impurity(sample.stats_of(rows)) for rows in groups.values()), len(groups)


# Cuts of a plane


def slopes_of(n_orientations):
    angles = spread_angles(n_orientations)
    with np.errstate(divide="ignore"):
        return np.sin(angles) / np.cos(angles)


def orientations(n_orientations, scales=(1.0, 1.0)):
    """Weights (a, b) of the two features: the axes, then the oblique orientations."""
    ratio = scales[0] / scales[1]
    return [
        (1.0, 0.0),
        (0.0, 1.0),
        # In three digits, which people read.
        *((1.0, float(f"{slope * ratio:.2e}")) for slope in slopes_of(n_orientations)[2:]),
    ]


@dataclass(frozen=True)
class NaiveCut:
    """A cut of some rows, those above it, and the impurity it takes away."""

    orientation: int
    above: np.ndarray
    gain: float


def all_cuts(row_stats, impurity, u, v, rows, ways, min_rows=1):
    """Every cut between different projections, that leaves enough rows on both sides."""
    whole = impurity(row_stats[rows].sum(axis=0))
    for h, (a, b) in enumerate(ways):
        along = a * u[rows] + b * v[rows]
        for threshold in np.unique(along)[:-1]:
            above = along > threshold
            if min(above.sum(), (~above).sum()) >= min_rows:
                parts = [impurity(row_stats[rows[side]].sum(axis=0)) for side in (above, ~above)]
                yield NaiveCut(h, above, whole - sum(parts))


def grow_naively(problem, region_penalty, max_leaves):
    """The greedy tree; every cut but the first must earn half its price."""

    def leaf(rows):
        price = region_penalty * np.log2(1 + problem.sample.row_weights[rows].sum())
        cuts = list(problem.cuts_of(rows))
        best = max(cuts, key=lambda cut: cut.gain, default=None)
        return {"rows": rows, "children": None, "price": price, "cut": best}

    leaves = [leaf(problem.complete)]
    root = leaves[0]
    while len(leaves) < max_leaves:
        able = [
            item
            for item in leaves
            if item["cut"] and (item is root or item["cut"].gain > item["price"] / 2)
        ]
        if not able:
            break
        best = max(able, key=lambda item: item["cut"].gain)
        above, rows = best["cut"].above, best["rows"]
        best["children"] = [leaf(rows[~above]), leaf(rows[above])]
        leaves = [item for item in leaves if item is not best] + best["children"]
    return root


def prunings(node, is_root=True):
    """Every subtree with the same root, as (regions, price of cuts beyond the first, cuts)."""
    if not is_root or node["children"] is None:
        yield [node["rows"]], 0.0, set()
    if node["children"] is not None:
        price = 0.0 if is_root else node["price"]
        parts = [list(prunings(child, is_root=False)) for child in node["children"]]
        for one, other in product(*parts):
            read = one[2] | other[2] | {node["cut"].orientation}
            yield one[0] + other[0], price + one[1] + other[1], read


# Problems


@dataclass(eq=False)
class PairProblem:
    """Rows with a target and two features, of which some values are missing."""

    sample: object
    columns: list
    positions: list
    scales: tuple
    n_orientations: int

    @property
    def n(self):
        return len(self.columns[0])

    @property
    def row_stats(self):
        return np.array([self.sample.stats_of([row]) for row in range(self.n)])

    def side(self, j):
        """What cuts read of a feature: its number, or its category's position."""
        column = self.columns[j]
        if column.dtype != np.int32:
            return column.astype(np.float64)
        places = np.append(self.positions[j], np.nan)
        return places[np.where(column < 0, len(self.positions[j]), column)]

    @property
    def complete(self):
        """Rows that have both features."""
        return np.flatnonzero(~np.isnan(self.side(0) + self.side(1)))

    @property
    def lacking(self):
        return np.setdiff1d(np.arange(self.n), self.complete)

    @property
    def ways(self):
        oblique = all(column.dtype != np.int32 for column in self.columns)
        return orientations(self.n_orientations if oblique else 2, self.scales)

    def cuts_of(self, rows, min_rows=1):
        args = self.side(0), self.side(1), rows, self.ways
        return all_cuts(self.row_stats, self.sample.impurity, *args, min_rows=min_rows)

    def impurity_of(self, rows):
        return self.sample.impurity(self.row_stats[rows].sum(axis=0))

    @property
    def whole(self):
        return self.impurity_of(np.arange(self.n))

    def fit(self, start=(-1, 0.0, False), max_branches=2, region_penalty=0.0, branch_penalty=0.0,
            n_threads=1, **options):  # fmt: skip
        """The fitted pair."""
        offsets = np.cumsum([0, *(len(places) + 1 for places in self.positions)])
        fitter = PairFitter(
            self.sample.criterion,
            slopes_of(self.n_orientations),
            **{"exact": True, **options},
        )
        sample = PairSample(
            Columns(self.columns, self.n),
            np.array(self.scales),
            offsets,
            np.concatenate([np.append(places, np.nan) for places in self.positions]),
            self.sample.targets,
        )
        return fitter.fit(
            sample,
            np.arange(self.n, dtype=np.int32),
            np.array([[0, 1]], dtype=np.int32),
            np.array([start], dtype=START),
            NodeOptions(max_branches, region_penalty, branch_penalty, seed=1),
            n_threads,
        )

    def shape_of(self, fitter):
        """The fitted shape function's cuts, and the branch of each region."""
        cuts, regions, low, high = number_cuts(fitter.low[0, : fitter.n_nodes[0]].tolist())
        parts = fitter.a, fitter.b, fitter.threshold
        return *(part[0, cuts] for part in parts), low, high, fitter.branch[0, regions]

    def branches(self, fitter):
        """Branch of each row under the fitted shape function."""
        cuts = pair_cuts(
            Columns(self.columns, self.n), 0, 1, *self.positions, *self.shape_of(fitter),
            int(fitter.missing_branch[0]),
        )  # fmt: skip
        return cuts.branches(np.arange(self.n, dtype=np.int32), 1)

    def rows_of_cuts(self, fitter):
        """Rows that come to each cut, and the region (-1 for none) that each row ends in."""
        a, b, threshold, low, high, _ = self.shape_of(fitter)
        reached, region = [set() for _ in a], np.full(self.n, -1)
        for row in self.complete:
            at = 0
            while at >= 0:
                reached[at].add(row)
                along = a[at] * self.side(0)[row] + b[at] * self.side(1)[row]
                at = high[at] if along > threshold[at] else low[at]
            region[row] = -1 - at
        return [np.array(sorted(rows), dtype=int) for rows in reached], region


def with_random_targets(sample, rng):
    """The same with targets that are rarely all equal."""
    n = len(sample.piece)
    if sample.values is not None:
        return replace(sample, values=rng.integers(-4, 5, sample.values.shape).astype(float))
    starts = np.cumsum((0, *sample.block_sizes))[:-1]
    labels = starts + rng.integers(0, sample.block_sizes, (n, len(starts)))
    return replace(sample, labels=labels.astype(np.int32))


@st.composite
def pair_problems(draw, missing=None, categorical=None, distinct=False, **options):
    """Small problems; values are few, or all distinct."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sample = with_random_targets(draw(samples(least_pieces=2, max_pieces=2, **options)), rng)
    n = len(sample.piece)
    columns, positions = [], []
    has_missing = draw(st.booleans()) if missing is None else missing
    for j in range(2):
        if draw(st.booleans()) if categorical is None else categorical:
            columns.append(rng.integers(-1 if has_missing else 0, 4, n).astype(np.int32))
            places = rng.permutation(4).astype(float)
            places[places == 3.0] = np.nan if has_missing and j == 0 else 3.0
            positions.append(places)
            continue
        column = rng.normal(size=n)
        if not distinct:
            unit, origin = draw(st.sampled_from([(1.0, 0.0), (0.1, 0.3), (1e6, -7.0), (0.5, 1e9)]))
            column = origin + unit * rng.integers(0, 5, n)
        if has_missing:
            column[rng.random(n) < 0.15] = np.nan
        columns.append(column.astype(draw(st.sampled_from([np.float32, np.float64]))))
        positions.append(np.empty(0))
    scales = tuple(draw(st.sampled_from([1.0, 0.3, 1e5])) for _ in range(2))
    return PairProblem(sample, columns, positions, scales, draw(st.integers(2, 9)))


# Walks


def branch_of_row(tree, node, row):
    """Branch of a row (floats, ints for categories) at a node of one feature or of a pair."""
    pieces = tree.pieces(node)
    uppers, branches = tree.piece_upper[pieces], tree.piece_branch[pieces]
    if tree.second_feature[node] < 0:
        value = row[tree.feature[node]]
        if isinstance(value, int):
            known = 0 <= value < len(branches)
            return branches[value] if known else tree.missing_branch[node]
        if np.isnan(value):
            return tree.missing_branch[node]
        return branches[np.searchsorted(uppers, value)]
    sides = []
    for side, feature in enumerate([tree.feature[node], tree.second_feature[node]]):
        value, places = row[feature], tree.position[tree.positions(node, side)]
        if isinstance(value, int):
            value = places[value] if 0 <= value < len(places) else np.nan
        sides.append(min(max(value, -GREATEST), GREATEST))
    if np.isnan(sides).any():
        return tree.missing_branch[node]
    cuts, at = tree.cuts(node), 0
    while at >= 0:
        c = cuts.start + at
        with np.errstate(over="ignore"):
            along = tree.cut_a[c] * sides[0] + tree.cut_b[c] * sides[1]
        at = tree.cut_high[c] if along > tree.cut_threshold[c] else tree.cut_low[c]
    return branches[-1 - at]


def leaf_of_row(tree, row):
    """Leaf that a row ends in."""
    node = 0
    while not tree.is_leaf[node]:
        node = int(tree.first_child[node] + branch_of_row(tree, node, row))
    return node
