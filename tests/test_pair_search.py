"""The search for a node's pairs, against enumeration on small problems."""

import numpy as np
import pytest
from chance import examples
from data import make_tree
from hypothesis import assume, given
from hypothesis import strategies as st
from naive import AllAssignments, Sample, samples, set_partitions
from naive_pairs import (
    PairProblem,
    grow_naively,
    loss_of_groups,
    pair_problems,
    prunings,
    rough_groups_of,
)
from numpy.testing import assert_allclose, assert_array_equal

from shapetree import ShapeTreeClassifier
from shapetree._core.columns import Columns
from shapetree._core.criterion import Criterion
from shapetree._core.grid import START, BinGroups, GridScreen, sum_grids
from shapetree._core.histogram import Targets, build_histograms
from shapetree._core.oblique import PairFits, PairFitter, PairSample
from shapetree._core.pair_tree import NodeOptions
from shapetree.data._binning import BinnedTable, FeatureBins
from shapetree.data._table import FeatureInfo
from shapetree.grow import _pair_options
from shapetree.grow._pair_options import pair_options
from shapetree.grow._pairs import spread_angles

seeds = st.integers(0, 2**32 - 1)
EXACT = {
    "names": ["gini", "entropy", "squared_error"],
    "least_classes": 2,
    "max_classes": 2,
    "max_outputs": 1,
}
# Nothing but one oblique cut.
ONE_CUT = {"inner_max_leaves": 2, "max_branches": 2}


# Grids


class Node:
    """A node with all rows of a sample, and the screen of its pairs."""

    def __init__(self, sample, codes, n_bins, categorical, n_orientations=8, **options):
        self.sample, self.codes, self.n_bins = sample, codes, n_bins
        self.columns = Columns(codes, len(codes[0]))
        self.rows = np.arange(len(codes[0]), dtype=np.int32)
        table = BinnedTable(tuple(map(FeatureBins, n_bins)), self.columns)
        self.offsets = table.offsets
        ends = np.array([0]), np.array([len(self.rows)])
        sums = np.empty((1, self.offsets[-1], sample.targets.n_channels))
        build_histograms(
            self.columns, sample.targets, self.rows, *ends, self.offsets, sums, 0, len(codes), 1
        )
        self.histogram = sums[0]
        angles = spread_angles(n_orientations)
        values = np.concatenate([np.append(np.arange(b, dtype=float), 0.0) for b in n_bins])
        self.screen = GridScreen(
            sample.criterion, n_bins, categorical, values, np.cos(angles), np.sin(angles),
            **options,
        )  # fmt: skip
        self.groups = self.screen.groups(self.histogram, 1)

    def grids(self, pairs, groups, rows=None, n_threads=1):
        rows = self.rows if rows is None else rows
        pairs = np.array(pairs, dtype=np.int32)
        about = self.columns, self.sample.targets, rows, self.offsets, groups
        return sum_grids(*about, pairs, n_threads)


def weigh(node, pairs, noise=0.0, n_threads=1):
    cells = node.grids(pairs, node.groups.rough, n_threads=n_threads)
    whole = node.sample.impurity(node.sample.stats_of(range(len(node.rows))))
    return whole - node.screen.losses(cells, noise, n_threads)


def screen_pairs(node, pairs, n_threads=1, **penalties):
    """Gains of pairs, and how their inner trees start, from greedy trees and any crossing."""
    given = {"max_branches": 2, "region_penalty": 0.0, "branch_penalty": 0.0, **penalties}
    pairs, options = np.array(pairs, dtype=np.int32), NodeOptions(**given, seed=1)
    cells = node.grids(pairs, node.groups.fine)
    gains, starts = node.screen.screen(
        pairs, cells, node.groups, np.full(len(pairs), np.inf), options, n_threads
    )
    closer, other_starts = node.screen.screen(pairs, cells, node.groups, None, options, n_threads)
    return np.maximum(gains, closer), np.where(closer > gains, other_starts, starts)


@st.composite
def grids(draw, max_bins=9, max_rows=24, **options):
    """A sample and the bins of three features, the second of few categories."""
    sample = draw(samples(max_rows=max_rows, **options))
    rng = np.random.default_rng(draw(seeds))
    n_bins = rng.integers(1, max_bins, 3)
    n_bins[1] = min(n_bins[1], 4)
    codes = [rng.integers(0, b + 1, len(sample.piece)).astype(np.uint8) for b in n_bins]
    return sample, codes, n_bins, [False, True, False]


@pytest.mark.parametrize("n_rows", [60, 5_000, 70_000])
@pytest.mark.parametrize("kind", ["classes", "weighted classes", "two outputs", "numbers"])
def test_grids_are_sums_of_rows_whoever_sums(kind, n_rows):
    rng = np.random.default_rng(n_rows)
    table, n_groups = n_rows + 9, 5
    n_outputs = 1 + (kind == "two outputs")
    labels = rng.integers(0, 3, (table, n_outputs)).astype(np.int32)
    values = rng.integers(-9, 9, (table, 1)).astype(float)
    weights = rng.integers(1, 4, table).astype(float) if kind == "weighted classes" else None
    n_stats = 2 if kind == "numbers" else 3
    given = (None, values) if kind == "numbers" else (labels, None)
    targets = Targets(*given, weights, n_stats)
    codes = [rng.integers(0, b, table).astype(t) for b, t in ((4, "u1"), (300, "u2"), (7, "u1"))]
    offsets = np.concatenate([[0], np.cumsum([4, 300, 7])])
    group_of_bin = rng.integers(0, n_groups, offsets[-1]).astype(np.uint8)
    rows = rng.permutation(table)[:n_rows].astype(np.int32)
    pairs = np.array([(0, 1), (0, 2), (1, 2), (2, 2)], dtype=np.int32)
    naive = np.zeros((len(pairs), n_groups**2, targets.n_channels))
    for cells, (i, j) in zip(naive, pairs, strict=True):
        one, other = (group_of_bin[offsets[f] + codes[f][rows]].astype(int) for f in (i, j))
        weight = np.ones(n_rows) if weights is None else weights[rows]
        at = one * n_groups + other
        if kind == "numbers":
            np.add.at(cells, (at, 0), weight)
            np.add.at(cells, (at, 1), values[rows, 0])
        else:
            for output in range(n_outputs):
                np.add.at(cells, (at, labels[rows, output]), weight)
        if weights is not None:
            np.add.at(cells, (at, n_stats), 1.0)
    for n_threads in (1, 2, 3):
        for in_order in (False, True):
            cells = sum_grids(
                Columns(codes, table), targets.take(rows) if in_order else targets, rows, offsets,
                BinGroups(group_of_bin, n_groups), pairs, n_threads, in_order,
            )  # fmt: skip
            assert np.array_equal(cells, naive)


@given(grids(), st.sampled_from([0.0, 0.3]))
def test_a_pair_weighs_what_parting_all_its_cells_gains_less_noise(grid, noise):
    sample, codes, n_bins, _ = grid
    pairs = [(0, 1), (0, 2), (1, 2)]
    gains = weigh(Node(*grid), pairs, noise)
    whole = sample.impurity(sample.stats_of(range(len(codes[0]))))
    weights = sample.row_weights
    rough = [rough_groups_of(code, b, weights) for code, b in zip(codes, n_bins, strict=True)]
    for gain, (i, j) in zip(gains, pairs, strict=True):
        loss, n_cells = loss_of_groups(sample, rough[i], rough[j])
        assert_allclose(gain, whole - loss - noise * (n_cells - 1), atol=sample.tolerance)


@pytest.mark.parametrize(("n_rows", "n_cells"), [(511, 4), (512, 8), (2047, 8), (2048, 16)])
def test_the_more_rows_the_finer_the_rough_grid(n_rows, n_cells):
    labels = np.arange(n_rows)[:, None].astype(np.int32) % 2
    sample = Sample("gini", (2,), None, labels, None, None, np.zeros(n_rows, int), 1)
    codes = [(np.arange(n_rows) * 64 // n_rows).astype(np.uint8), np.zeros(n_rows, np.uint8)]
    screen = Node(sample, codes, [64, 1], [False, False])
    without, with_noise = (weigh(screen, [(0, 1)], noise)[0] for noise in (0.0, 1.0))
    assert without - with_noise == pytest.approx(n_cells - 1)


@given(grids(**EXACT))
def test_categories_are_placed_by_their_statistics(grid):
    sample, codes, n_bins, _ = grid
    places = Node(*grid).groups.positions[n_bins[0] + 1 :][: n_bins[1]]
    held = np.isin(np.arange(n_bins[1]), codes[1])
    assert_array_equal(np.isnan(places), ~held)
    assert sorted(places[held]) == list(range(held.sum()))
    order = np.flatnonzero(held)[np.argsort(places[held])]
    stats = np.array([sample.stats_of(np.flatnonzero(codes[1] == b)) for b in order])
    if len(order):
        weight = stats[:, 0] if sample.name == "squared_error" else stats.sum(axis=1)
        steps = np.diff(stats[:, 1] / weight)
        assert np.all(steps >= -1e-9) or np.all(steps <= 1e-9)


@given(grids(max_bins=4), st.integers(2, 4), st.integers(2, 12))
def test_no_inner_tree_gains_more_than_parting_all_cells(grid, max_branches, n_orientations):
    pairs = [(0, 1), (0, 2), (1, 2)]
    screen = Node(*grid, n_orientations=n_orientations)
    gains, starts = screen_pairs(screen, pairs, max_branches=max_branches)
    # With bins this few, cells of the rough grid are those of the fine one.
    assert np.all(gains <= weigh(screen, pairs) + grid[0].tolerance)
    assert np.all((starts["orientation"] >= -1) & (starts["orientation"] < n_orientations))
    assert np.all((starts["share"] >= 0) & (starts["share"] < 1))


@given(grids(max_bins=4, **EXACT))
def test_a_grid_of_four_cells_is_assigned_as_well_as_can_be(grid):
    sample, codes, n_bins, _ = grid
    assume(np.all(n_bins[[0, 2]] >= 2))
    two = [(codes[j] % 2).astype(np.uint8) for j in (0, 2)]
    cell = 2 * two[0] + two[1]
    assume(len(np.unique(cell)) == 4)
    gain = screen_pairs(Node(sample, two, [2, 2], [False, False]), [(0, 1)])[0][0]
    parted = Sample(
        sample.name, sample.block_sizes, sample.levels, sample.labels, sample.values,
        sample.weights, cell, 4,
    )  # fmt: skip
    every = AllAssignments(parted, 2)
    gains = dict(zip(every.ways, every.losses[0] - every.losses, strict=True))
    # What one feature does alone is left to it.
    alone = max(gains.pop((0, 0, 1, 1)), gains.pop((0, 1, 0, 1)))
    best = max(gains.values())
    # An oblique cut may part the cells as a feature alone does.
    assert gain <= max(best, alone) + sample.tolerance
    if best > alone + sample.tolerance:
        assert gain == pytest.approx(best, abs=sample.tolerance)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_checkerboard_is_seen_on_the_grid_and_where_to_start(weighted):
    codes = [code.ravel().astype(np.uint8) for code in np.indices((20, 20))]
    labels = ((codes[0] >= 12) ^ (codes[1] >= 7)).astype(np.int32)[:, None]
    weights = np.full(400, 2.0) if weighted else None
    sample = Sample("gini", (2,), None, labels, None, weights, np.zeros(400, int), 1)
    screen = Node(sample, codes, [20, 20], [False, False])
    gains, (start,) = screen_pairs(screen, [(0, 1)], region_penalty=0.2)
    assert gains[0] >= 0.8 * sample.impurity(sample.stats_of(range(400)))
    assert start["orientation"] in (0, 1)
    assert start["share"] == pytest.approx(0.6 if start["orientation"] == 0 else 0.35, abs=0.1)


@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("n_values", [(2, 2), (2, 3), (3, 5), (2, 30), (40, 2)])
def test_a_checkerboard_of_few_values_is_seen_on_the_grid(n_values, categorical):
    # The first value of each feature holds half of the rows: no cut gains anything alone.
    sides = [np.append(np.zeros(n - 1, int), np.arange(1, n)) for n in n_values]
    codes = [code.ravel().astype(np.uint8) for code in np.meshgrid(*sides, indexing="ij")]
    labels = ((codes[0] > 0) ^ (codes[1] > 0)).astype(np.int32)[:, None]
    n = len(labels)
    sample = Sample("gini", (2,), None, labels, None, None, np.zeros(n, int), 1)
    screen = Node(sample, codes, n_values, [categorical, False], n_orientations=2)
    gain = screen_pairs(screen, [(0, 1)])[0][0]
    assert gain == pytest.approx(sample.impurity(sample.stats_of(range(n))))


@given(grids(), st.integers(2, 4))
def test_screening_does_not_depend_on_the_number_of_threads(grid, max_branches):
    screen = Node(*grid)
    pairs = [(0, 1), (0, 2), (1, 2)]
    assert_array_equal(weigh(screen, pairs, 0.1), weigh(screen, pairs, 0.1, n_threads=2))
    one, two = (
        screen_pairs(screen, pairs, n_threads, max_branches=max_branches) for n_threads in (1, 2)
    )
    for ours, theirs in zip(one, two, strict=True):
        assert_array_equal(ours, theirs)


@given(grids(max_rows=30), st.integers(1, 5), st.integers(0, 3), seeds)
def test_grids_are_sums_over_the_rows_of_each_cell_and_add_up(grid, n_groups, n_parts, seed):
    sample, codes, _, _ = grid
    rng = np.random.default_rng(seed)
    node, pairs = Node(*grid), [(0, 1), (2, 1), (1, 2)]
    group_of_bin = rng.integers(0, n_groups, node.offsets[-1]).astype(np.uint8)
    cells = node.grids(pairs, BinGroups(group_of_bin, n_groups), n_threads=2)
    group = [group_of_bin[start + code] for start, code in zip(node.offsets, codes, strict=False)]
    for cell, (i, j) in zip(cells, pairs, strict=True):
        place = n_groups * group[i].astype(int) + group[j]
        for number in range(n_groups**2):
            rows = np.flatnonzero(place == number)
            assert_allclose(cell[number], sample.channels_of(rows), atol=sample.tolerance)
    part = rng.integers(0, n_parts + 1, len(codes[0]))
    parts = [
        node.grids(
            pairs, BinGroups(group_of_bin, n_groups), np.flatnonzero(part == p).astype(np.int32)
        )
        for p in range(n_parts + 1)
    ]
    assert_allclose(np.sum(parts, axis=0), cells, atol=sample.tolerance)


def test_grids_of_many_rows_are_summed_in_blocks():
    rng = np.random.default_rng(0)
    n = 40_000
    sample = Sample(
        "gini", (3,), None, rng.integers(0, 3, (n, 1)).astype(np.int32), None, None,
        np.zeros(n, int), 1,
    )  # fmt: skip
    codes = [rng.integers(0, 9, n).astype(np.uint8) for _ in range(3)]
    node = Node(sample, codes, [8, 8, 8], [False] * 3)
    n_groups = node.groups.fine.n_groups
    cells = node.grids([(0, 2)], node.groups.fine)[0]
    place = [np.where(code == 8, n_groups - 1, code).astype(int) for code in codes]
    expected = np.zeros((n_groups**2, 3))
    np.add.at(expected, (place[0] * n_groups + place[2], sample.labels[:, 0]), 1)
    assert_array_equal(cells, expected)


def test_groups_that_do_not_exist_cannot_be_summed():
    labels = np.zeros((4, 1), dtype=np.int32)
    sample = Sample("gini", (2,), None, labels, None, None, np.zeros(4, int), 1)
    node = Node(sample, [np.zeros(4, np.uint8)] * 2, [1, 1], [False, False])
    with pytest.raises(ValueError, match="below n_groups"):
        node.grids([(0, 1)], BinGroups(np.full(4, 3, dtype=np.uint8), 3))
    with pytest.raises(ValueError, match="two features"):
        node.grids([(0, 2)], BinGroups(np.zeros(4, dtype=np.uint8), 3))


# One cut


@given(pair_problems(missing=False, categorical=False), st.integers(1, 4))
def test_one_cut_gains_what_brute_force_over_orientations_does(problem, min_rows):
    gain = problem.fit(inner_min_rows=min_rows, **ONE_CUT).gains[0]
    cuts = list(problem.cuts_of(problem.complete, min_rows))
    axes = max([cut.gain for cut in cuts if cut.orientation < 2], default=0.0)
    oblique = max([cut.gain for cut in cuts if cut.orientation >= 2], default=0.0)
    tolerance = problem.sample.tolerance
    if oblique > axes + tolerance:
        assert gain == pytest.approx(oblique, abs=tolerance)
    elif axes > oblique + tolerance or not cuts:
        # A single feature does as well: the pair is out.
        assert gain == -np.inf
    else:
        assert gain == -np.inf or gain == pytest.approx(oblique, abs=tolerance)


@given(pair_problems(missing=True, categorical=False, **EXACT))
def test_rows_that_lack_a_feature_join_the_better_side(problem):
    gain = problem.fit(**ONE_CUT).gains[0]
    cuts = list(problem.cuts_of(problem.complete))
    best, tolerance = max([cut.gain for cut in cuts], default=0.0), problem.sample.tolerance
    assume(best > tolerance)
    allowed = []
    for cut in cuts:
        if cut.gain < best - tolerance:
            continue
        if cut.orientation < 2:
            allowed.append(-np.inf)
            continue
        low, high = problem.complete[~cut.above], problem.complete[cut.above]
        missing = problem.lacking
        ways = [([*low, *missing], high), (low, [*high, *missing])]
        losses = [sum(map(problem.impurity_of, way)) for way in ways]
        allowed.append(problem.whole - min(losses))
        if len(missing):
            apart = problem.impurity_of(missing) + problem.impurity_of([*low, *high])
            if apart <= min(losses) + tolerance:
                # Missing against all others needs no cut.
                allowed.append(-np.inf)
    assert any(gain == g or gain == pytest.approx(g, abs=tolerance) for g in allowed)


@given(pair_problems(missing=False, categorical=False), st.integers(2, 6))
def test_a_cut_that_leaves_too_few_rows_is_passed_over_for_the_next_best(problem, min_rows):
    gain = problem.fit(min_rows=min_rows, **ONE_CUT).gains[0]
    cuts = list(problem.cuts_of(problem.complete, min_rows))
    axes = max([cut.gain for cut in cuts if cut.orientation < 2], default=0.0)
    oblique = max([cut.gain for cut in cuts if cut.orientation >= 2], default=0.0)
    tolerance = problem.sample.tolerance
    if oblique > axes + tolerance:
        assert gain == pytest.approx(oblique, abs=tolerance)


@given(pair_problems(categorical=True))
def test_one_cut_of_categories_reads_one_feature_and_is_left_to_it(problem):
    assert problem.fit(**ONE_CUT).gains[0] == -np.inf


# Many cuts

fit_options = st.fixed_dictionaries(
    {
        "inner_max_leaves": st.integers(2, 8),
        "inner_min_rows": st.sampled_from([1, 2]),
        "inner_max_depth": st.sampled_from([2, 3, 9]),
        "max_branches": st.integers(2, 4),
        "min_rows": st.sampled_from([1, 3]),
        "min_weight": st.sampled_from([0.0, 1.5]),
        "region_penalty": st.sampled_from([0.0, 0.02, 0.2]),
        "branch_penalty": st.sampled_from([0.0, 0.1]),
        "assignment": st.sampled_from(["auto", "coordinate_descent", "kmeans", "random"]),
        "exact": st.booleans(),
        "start": st.sampled_from([(-1, 0.0, 0), (0, 0.5, 1), (1, 0.2, 0)]),
    }
)


@examples(200)
@given(pair_problems(), fit_options)
def test_reported_gains_are_those_of_the_shape_function(problem, options):
    fitter = problem.fit(**options)
    if fitter.n_branches[0] == 0:
        assert fitter.gains[0] == fitter.penalised_gains[0] == -np.inf
        return
    branch, tolerance = problem.branches(fitter), problem.sample.tolerance
    k = int(fitter.n_branches[0])
    rows = [np.flatnonzero(branch == b) for b in range(k)]
    assert set(branch) == set(range(k))
    assert min(map(len, rows)) >= options["min_rows"]
    weights = [problem.sample.row_weights[some].sum() for some in rows]
    assert min(weights) >= options["min_weight"] - 1e-9
    gain = problem.whole - sum(map(problem.impurity_of, rows))
    assert fitter.gains[0] == pytest.approx(gain, abs=tolerance)
    reached, _ = problem.rows_of_cuts(fitter)
    prices = [np.log2(1 + problem.sample.row_weights[some].sum()) for some in reached[1:]]
    penalty = options["region_penalty"] * sum(prices) + options["branch_penalty"] * (k - 1)
    assert fitter.penalised_gains[0] == pytest.approx(gain - penalty, abs=tolerance)


@examples(100)
@given(pair_problems(), fit_options)
def test_regions_hold_rows_and_read_both_features(problem, options):
    fitter = problem.fit(**options)
    assume(fitter.n_branches[0] > 0)
    a, b, _, low, high, branch = problem.shape_of(fitter)
    _, region = problem.rows_of_cuts(fitter)
    count = np.bincount(region[problem.complete], minlength=len(branch))
    assert count.min() >= options["inner_min_rows"] or options["start"][0] >= 0
    assert count.min() >= 1
    assert len(branch) <= options["inner_max_leaves"]
    assert np.any(a != 0)
    assert np.any(b != 0)
    # No cut between two regions that go the same way.
    for one, other in zip(low, high, strict=True):
        assert one >= 0 or other >= 0 or branch[-1 - one] != branch[-1 - other]
    expected = np.where(region >= 0, branch[region], fitter.missing_branch[0])
    assert_array_equal(problem.branches(fitter), expected)
    assert (fitter.missing_branch[0] >= 0) == (len(problem.lacking) > 0)


@given(pair_problems(), st.integers(2, 3), st.integers(2, 4), st.sampled_from([0.0, 0.3]))
def test_a_pair_has_no_more_regions_than_allowed(problem, k, most, penalty):
    limits = {"inner_max_leaves": 12, "max_branches": k, "region_penalty": penalty}
    free = problem.fit(**limits)
    limited = problem.fit(**limits, max_parts=most)
    for fitted in (free, limited):
        if fitted.n_branches[0] > 0:
            n_regions = len(problem.shape_of(fitted)[-1])
            if fitted is limited:
                assert n_regions <= most
            gain = problem.whole - sum(
                problem.impurity_of(np.flatnonzero(problem.branches(fitted) == branch))
                for branch in range(fitted.n_branches[0])
            )
            assert fitted.gains[0] == pytest.approx(gain, abs=problem.sample.tolerance)


@examples(100)
@given(
    pair_problems(missing=False, distinct=True, categorical=False, names=["squared_error", "gini"],
                  least_classes=2, max_classes=2, max_outputs=1, weighted=True),
    st.integers(2, 3), st.integers(2, 5), st.sampled_from([0.0, 0.05, 0.2, 1.0]), seeds,
)  # fmt: skip
def test_pruning_is_between_no_pruning_and_the_best_of_all(problem, k, leaves, penalty, seed):
    # Weights that no two sums share: no two cuts gain the same.
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, problem.n)
    sample = problem.sample
    problem.sample = Sample(
        sample.name,
        sample.block_sizes,
        None,
        sample.labels,
        sample.values,
        weights,
        sample.piece,
        2,
    )
    root = grow_naively(problem, penalty, leaves)
    fitted = problem.fit(inner_max_leaves=leaves, max_branches=k, region_penalty=penalty)
    full = max(len(regions) for regions, _, _ in prunings(root))
    best, unpruned, best_parts, of_one_feature = 0.0, -np.inf, None, set()
    for regions, price, read in prunings(root):
        for way in set_partitions(len(regions), k):
            parts = [
                np.concatenate([rows for rows, b in zip(regions, way, strict=True) if b == branch])
                for branch in range(max(way) + 1)
            ]
            gain = problem.whole - sum(map(problem.impurity_of, parts)) - price
            best = max(best, gain)
            rows_of_parts = frozenset(frozenset(rows.tolist()) for rows in parts)
            if not (read - {0} and read - {1}):
                of_one_feature.add(rows_of_parts)
            elif len(regions) == full and len(parts) > 1 and gain > unpruned:
                unpruned, best_parts = gain, rows_of_parts
    gain, tolerance = fitted.penalised_gains[0], problem.sample.tolerance
    assert gain <= best + tolerance
    # Where the best assignment makes siblings one, the cuts left may read a single feature.
    assert gain >= unpruned - tolerance or best_parts in of_one_feature


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
@pytest.mark.parametrize("seed", range(3))
def test_the_dearer_regions_are_the_fewer_there_are(criterion, seed):
    rng = np.random.default_rng(seed)
    u, v = rng.normal(size=(2, 300))
    target = (np.abs(u + v) < 0.8) + rng.normal(size=300) / 2
    labels = (target > 0.5).astype(np.int32)[:, None] if criterion == "gini" else None
    values = target[:, None] if criterion == "squared_error" else None
    sizes = (2,) if criterion == "gini" else (1,)
    sample = Sample(criterion, sizes, None, labels, values, None, np.zeros(300, int), 1)
    problem = PairProblem(sample, [u, v], [np.empty(0)] * 2, (1.0, 1.0), 8)
    fits = [problem.fit(region_penalty=price, inner_max_leaves=32) for price in (0, 0.1, 0.5, 1, 2)]
    n_nodes = [int(fitter.n_nodes[0]) for fitter in fits]
    assert n_nodes == sorted(n_nodes, reverse=True)
    assert n_nodes[0] > 15
    assert n_nodes[-2] == 5
    gains = [fitter.penalised_gains[0] for fitter in fits]
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_first_cut_costs_nothing(criterion):
    u, v = np.random.default_rng(0).uniform(-1, 1, (2, 60))
    labels = (u + v > 0).astype(np.int32)[:, None]
    sample = Sample(criterion, (2,), None, labels, None, None, np.zeros(60, int), 1)
    problem = PairProblem(sample, [u, v], [np.empty(0)] * 2, (1.0, 1.0), 8)
    fitter = problem.fit(region_penalty=100.0, inner_max_leaves=32)
    assert fitter.n_nodes[0] == 3
    assert fitter.gains[0] == fitter.penalised_gains[0] == pytest.approx(problem.whole)


@pytest.mark.parametrize("start", [(2, 0.4, True), (3, 0.6, False), (2, 0.5, False)])
def test_a_start_near_a_checkerboard_finds_it(start):
    u, v = np.random.default_rng(0).uniform(-1, 1, (2, 400))
    labels = ((u + v > 0) ^ (u - v > 0)).astype(np.int32)[:, None]
    sample = Sample("gini", (2,), None, labels, None, None, np.zeros(400, int), 1)
    problem = PairProblem(sample, [u, v], [np.empty(0)] * 2, (1.0, 1.0), 8)
    fitter = problem.fit(start, inner_max_leaves=32, region_penalty=0.5)
    assert fitter.gains[0] == pytest.approx(problem.whole)
    assert fitter.n_nodes[0] == 7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_regions_are_refined_to_the_exact_threshold_where_blocks_are_enough(dtype):
    u, v = np.random.default_rng(0).normal(size=(2, 5000)).astype(dtype)
    labels = (u.astype(float) + v > 0.3).astype(np.int32)[:, None]
    sample = Sample("gini", (2,), None, labels, None, None, np.zeros(5000, int), 1)
    problem = PairProblem(sample, [u, v], [np.empty(0)] * 2, (1.0, 1.0), 8)
    exact, blocks = (problem.fit(exact=exact, **ONE_CUT) for exact in (True, False))
    assert exact.gains[0] == blocks.gains[0] == pytest.approx(problem.whole)
    assert exact.threshold[0, 0] == blocks.threshold[0, 0] == pytest.approx(0.3, abs=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_rows": 0}, "must be positive"),
        ({"inner_max_leaves": 0}, "must be positive"),
        ({"inner_max_depth": -1}, "must be positive"),
        ({"max_branches": 1}, "out of range"),
        ({"max_branches": 255}, "out of range"),
        ({"n_threads": 0}, "out of range"),
        ({"start": (8, 0.5, False)}, "does not exist"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    labels = np.zeros((4, 1), dtype=np.int32)
    sample = Sample("gini", (2,), None, labels, None, None, np.zeros(4, int), 1)
    problem = PairProblem(sample, [np.arange(4.0)] * 2, [np.empty(0)] * 2, (1.0, 1.0), 8)
    with pytest.raises(ValueError, match=message):
        problem.fit(**options)


# Orientations


@pytest.mark.parametrize("n", range(2, 20))
def test_angles_start_with_the_axes_and_come_with_their_perpendiculars(n):
    angles = spread_angles(n)
    assert len(angles) == len(np.unique(angles)) == n
    assert_allclose(angles[:2], [0, np.pi / 2])
    assert np.all((angles >= 0) & (angles < np.pi))
    if n % 2 == 0:
        assert_allclose(angles[1::2] - angles[::2], np.pi / 2)
        assert_allclose(np.diff(np.sort(angles)), np.pi / n)


def test_diagonals_come_right_after_the_axes():
    assert_allclose(spread_angles(8)[2:4], [np.pi / 4, 3 * np.pi / 4])


# Which pairs


NAMES = tuple(map(FeatureInfo, ["age", "height", "weight", "pulse"]))
ALL = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def options_of(pairs, screen="grid", exact=False, features=NAMES):
    return pair_options(pairs, screen, 8, exact, features)


@pytest.mark.parametrize("pairs", ["auto", "all", 1, 6, np.int64(3)])
def test_all_pairs_of_features_may_be_looked_at(pairs):
    options = options_of(pairs)
    assert_array_equal(options.pairs.part(0, 99), ALL)
    assert options.pairs.part(0, 99).dtype == np.int32
    assert options.n_screened == 6
    assert options.n_fitted == {"auto": 3, "all": 6}.get(pairs, pairs)
    assert options.exact == (pairs == "all")
    assert options.n_orientations == 8


def test_no_pairs_are_no_pairs():
    assert len(options_of(0).pairs) == 0
    for pairs in (0, "auto", "all"):
        assert len(options_of(pairs, features=NAMES[:1]).pairs) == 0


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("age", "pulse")], [(0, 3)]),
        ([(3, 0)], [(0, 3)]),
        ([("weight", 0), ("age", "weight")], [(0, 2)]),
        ([["pulse", "age", 2]], [(0, 2), (0, 3), (2, 3)]),
        (np.array([[2, 1], [0, 1]]), [(0, 1), (1, 2)]),
        ([(0, 1, 2, 3)], ALL),
        (((np.int8(1), np.uint32(2)),), [(1, 2)]),
    ],
)
def test_pairs_and_groups_may_be_given_by_name_and_by_index(pairs, expected):
    options = options_of(pairs)
    assert_array_equal(options.pairs.part(0, 99), expected)
    assert options.n_screened == len(expected)
    assert options.n_fitted == min(3, len(expected))


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("age", "shoe")], "'shoe', which is not a column"),
        ([(0, 4)], "pairs has the index 4"),
        ([(-1, 2)], "pairs has the index -1"),
        ([("age", "age")], "repeats a feature"),
        ([("age", 0)], "repeats a feature"),
        ([(1, 2, 1)], "repeats a feature"),
        ([("age",)], "two features or more"),
        ([()], "two features or more"),
        (["age", "pulse"], "two features or more"),
        ([0, 1], "two features or more"),
        ([], "empty list"),
        ([(0.0, 1.0)], "by str or int"),
        ([(True, False)], "by str or int"),
        ([(None, 1)], "by str or int"),
    ],
)
def test_pairs_that_cannot_be_are_named(pairs, message):
    with pytest.raises((ValueError, TypeError), match=message):
        options_of(pairs)


def test_more_pairs_than_there_are_are_all_with_a_warning():
    with pytest.warns(UserWarning, match="pairs=7 is more than the 6 pairs of 4 features"):
        assert options_of(7).n_fitted == 6


@pytest.mark.parametrize(("pairs", "n_fitted"), [(2, 2), ("auto", 3), ([(0, 1, 2)], 3), ("all", 6)])
def test_the_papers_filter_chooses_the_pairs_that_are_fitted(pairs, n_fitted):
    options = options_of(pairs, screen="delta")
    assert options.n_screened == options.n_fitted == n_fitted
    assert options.filter_rows > 10**9


def test_more_pairs_than_grids_can_hold_are_filtered_first():
    features = tuple(FeatureInfo(f"f{i}") for i in range(300))
    options = options_of("auto", features=features)
    assert len(options.pairs) == 300 * 299 // 2
    assert options.n_screened == 20_000
    assert options_of("all", features=features).n_screened == 300 * 299 // 2


@pytest.mark.parametrize(("n_features", "expected"), [(300, 1000), (5000, 1000)])
def test_pairs_of_a_thousand_features_are_looked_at(n_features, expected):
    features = tuple(FeatureInfo(f"f{i}") for i in range(n_features))
    for pairs in ("auto", 7):
        assert options_of(pairs, features=features).max_features == expected
    for pairs in ("all", [(0, 1)]):
        assert options_of(pairs, features=features).max_features == n_features
    assert options_of("auto", "delta", features=features).max_features == n_features


def test_of_very_many_features_those_are_paired_that_gain_most_alone(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    y = (np.hypot(X[:, 11] - 0.7, X[:, 23] - 0.7) < 1) * 1
    params = {"pairs": "auto", "max_depth": 1, "refine": None, "n_threads": 1}
    of_all = make_tree(ShapeTreeClassifier, **params).fit(X, y)
    asked = set()
    take = _pair_options.PairList.take

    def noting(pairs, numbers):
        found = take(pairs, numbers)
        asked.update(found.ravel().tolist())
        return found

    monkeypatch.setattr(_pair_options, "MAX_PAIRED_FEATURES", 5)
    tree = make_tree(ShapeTreeClassifier, **params).fit(X, y)
    assert tree.to_json() == of_all.to_json()
    assert {tree.tree_.feature[0], tree.tree_.second_feature[0]} == {11, 23}
    monkeypatch.setattr(_pair_options.PairList, "take", noting)
    monkeypatch.setattr(_pair_options, "MAX_SCREENED", 3)
    make_tree(ShapeTreeClassifier, **params).fit(X, y)
    assert len(asked) <= 5
    assert {11, 23} <= asked


def test_dates_are_left_out_of_very_many_pairs_without_listing_these():
    features = tuple(FeatureInfo(f"f{i}", date="day" if i == 7 else None) for i in range(20_000))
    pairs = options_of("auto", features=features).pairs
    assert len(pairs) == 19_999 * 19_998 // 2
    assert 7 not in pairs.take(np.arange(0, len(pairs), 9_999_991))
    assert_array_equal(pairs.take(np.array([6])), [[0, 8]])


def test_very_many_pairs_are_those_of_their_features(monkeypatch):
    monkeypatch.setattr(_pair_options, "MAX_SCREENED", 3)
    for features in ([], [4], [1, 4], [0, 2, 3, 7, 9]):
        pairs = _pair_options.PairList(np.array(features, dtype=np.int64))
        taken = pairs.take(np.arange(len(pairs)))
        assert pairs.features() == np.unique(taken).tolist()


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_pairs_are_fitted_alike_together_and_one_by_one(n_classes):
    # So many rows that not all pairs are fitted together.
    n_rows, rng = 60_000, np.random.default_rng(n_classes)
    columns = [np.round(rng.standard_normal(n_rows), digits) for digits in (1, 3, 9)]
    columns[1][::9] = np.nan
    labels = (columns[0] * columns[2] > 0.2) + rng.integers(0, n_classes - 1, n_rows)
    labels = labels[:, None].astype(np.int32)
    slopes = np.tan(spread_angles(8))
    fitter = PairFitter(Criterion("gini", [n_classes]), slopes)
    pairs = np.array([(0, 1), (0, 2), (1, 2), (0, 2), (2, 1), (0, 2)], dtype=np.int32)
    starts = np.array([(-1, 0, 0), (0, 0.5, 1), (3, 0.4, 0)] * 2, dtype=START)

    def fit(numbers, weights=None, n_threads=1):
        sample = PairSample(
            Columns(columns, n_rows), np.ones(3), np.zeros(4, dtype=np.int64), np.zeros(0),
            Targets(labels, None, weights, n_classes),
        )  # fmt: skip
        rows = np.arange(n_rows, dtype=np.int32)
        options = NodeOptions(3, region_penalty=2.0, branch_penalty=1.0, seed=0)
        return fitter.fit(sample, rows, pairs[numbers], starts[numbers], options, n_threads)

    expected = fit(range(6))
    assert (expected.gains > 0).sum() > 2
    # Weights of 1 are summed in another way.
    others = [
        fit(range(6), n_threads=2),
        fit(range(6), n_threads=5),
        fit(range(6), np.ones(n_rows)),
    ]
    alone = [fit([number]) for number in range(6)]
    others.append(PairFits(*(np.concatenate(parts) for parts in zip(*alone, strict=True))))
    for other in others:
        for one, its in zip(expected, other, strict=True):
            assert_array_equal(one, its)
