"""The reduced problem of a node: the cheapest shape function of every feature, against all others.

Losses are quarters, so that every sum is exact and ties are real ties.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import cheapest_shape, cheapest_shapes, extra_parts, n_parts
from numpy.testing import assert_array_equal

from shapetree._core.reduced import (
    count_extra_parts,
    fill_gaps,
    reduced_problems,
    settle_empty_bins,
)
from shapetree.data._binning import FeatureBins
from shapetree.tree._shape import shape_from_bins

NO_BRANCH = 255
UNLIMITED = 2**30
SEEDS = st.integers(0, 2**32 - 1)
PENALTIES = st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0])


def cells_of(histograms):
    """Cells of some features, one node, in the words of `cheapest_shapes`."""
    held = [np.flatnonzero(histogram[:, 0]) for histogram in histograms]
    sizes = np.array([len(bins) for bins in held])
    losses = [histogram[bins, 1:] for histogram, bins in zip(histograms, held, strict=True)]
    return {
        "starts": (np.cumsum(sizes) - sizes)[None].astype(np.int64),
        "n_cells": sizes[None].astype(np.int32),
        "bin_of_cell": np.concatenate(held).astype(np.int32),
        "losses": np.concatenate(losses),
    }


def solve(histogram, n_bins, categorical, bound=np.inf, n_threads=1, only_best=False, **options):
    """Costs and branches of the bins, a list of arrays, the missing bin last."""
    stops = np.cumsum(np.asarray(n_bins, dtype=np.int64) + 1)
    histograms = np.split(histogram, stops[:-1])
    options = {
        "segment_penalty": 0.0,
        "category_penalty": 0.0,
        "max_segments": UNLIMITED,
        "max_listed": UNLIMITED,
    } | options
    choice_penalty = options.pop("choice_penalty", 0.0)
    order = options.pop("order", np.arange(len(n_bins), dtype=np.int32))
    n_branches = histogram.shape[1]
    costs, least = cheapest_shapes(
        **cells_of(histograms),
        n_bins=np.asarray(n_bins, dtype=np.int64),
        categorical=np.array(categorical, dtype=np.uint8),
        n_branches=np.array([n_branches], dtype=np.int32),
        bounds=np.array([bound]),
        order=order,
        only_best=only_best,
        n_threads=n_threads,
        choice_penalty=choice_penalty,
        **options,
    )
    assert least == [min(bound, costs.min(initial=np.inf))]
    branches = []
    for one, n, is_categorical in zip(histograms, n_bins, categorical, strict=True):
        cells = cells_of([one])
        found = cheapest_shape(
            cells["bin_of_cell"], cells["losses"], n, is_categorical, n_branches, **options
        )
        branches.append(found[0])
        # What branches lose, and whether they hold cells, is that of the bins with rows.
        held = np.flatnonzero(one[:, 0])
        for branch in range(n_branches):
            here = held[found[0][held] == branch]
            if len(one[:-1][one[:-1, 0] > 0]):
                assert found[1][branch] == (one[here, branch].sum() if branch else 0.0)
                assert found[2][branch] == len(here)
    return costs[0], branches


def random_histogram(rng, n_bins, n_branches, most=8):
    """Rows that care, then losses beyond branch 0, of the bins of one feature.

    Some bins have no rows; some have rows whose losses cancel.
    """
    rows = rng.integers(0, 4, n_bins + 1)
    losses = rng.integers(-most, most + 1, (n_bins + 1, n_branches - 1)) / 4
    losses[(rows == 0) | (rng.random(n_bins + 1) < 0.1)] = 0.0
    return np.column_stack([rows, losses]).astype(float)


def cost_of(histogram, held, branch, is_categorical, penalty):
    """What bins with rows lose in their branches beyond branch 0, and what extra parts cost."""
    losses = np.column_stack([np.zeros(len(histogram)), histogram[:, 1:]])
    return losses[held, branch].sum() + penalty * extra_parts(np.array(branch), is_categorical)


def n_limited(branch, is_categorical):
    """Segments, or categories outside the largest group."""
    return len(branch) - np.bincount(branch).max() if is_categorical else n_parts(branch)


def cheapest_of_all(histogram, is_categorical, penalty, most):
    """Least cost of any assignment of the bins with rows to branches."""
    held = np.flatnonzero(histogram[:-1, 0])
    n_branches = histogram.shape[1]
    ways = product(range(n_branches), repeat=len(held))
    missing = min(0.0, histogram[-1, 1:].min())
    return missing + min(
        cost_of(histogram, held, way, is_categorical, penalty)
        for way in ways
        if n_limited(way, is_categorical) <= most
    )


def cheapest_limited(histogram, penalty, max_segments):
    """Least cost of any path of so many segments, bin by bin."""
    losses = np.column_stack([np.zeros(len(histogram)), histogram[:, 1:]])
    held = losses[:-1][histogram[:-1, 0] != 0]
    n_branches = histogram.shape[1]
    least = {(1, b): held[0, b] for b in range(n_branches)}
    for loss in held[1:]:
        extended = {}
        for (n, before), cost in least.items():
            for b in range(n_branches):
                state = n + (b != before), b
                total = cost + loss[b] + (penalty if b != before and n >= 2 else 0.0)
                if state[0] <= max_segments:
                    extended[state] = min(total, extended.get(state, np.inf))
        least = extended
    return min(least.values()) + losses[-1].min()


@st.composite
def problems(draw, max_features=3, max_bins=6):
    """Histograms of a few features, what kind these are, and what parts cost."""
    rng = np.random.default_rng(draw(SEEDS))
    n_branches = draw(st.integers(2, 3))
    n_bins = draw(st.lists(st.integers(0, max_bins), min_size=1, max_size=max_features))
    histograms = [random_histogram(rng, n, n_branches) for n in n_bins]
    options = {
        "segment_penalty": draw(PENALTIES),
        "category_penalty": draw(PENALTIES),
        "max_segments": draw(st.sampled_from([1, 2, 3, 4, 5, 7, UNLIMITED])),
        "max_listed": draw(st.sampled_from([1, 2, 3, 4, UNLIMITED])),
    }
    return histograms, n_bins, rng.random(len(n_bins)) < 0.5, options


def penalty_of(options, is_categorical):
    return options["category_penalty" if is_categorical else "segment_penalty"]


def limit_of(options, is_categorical):
    return options["max_listed" if is_categorical else "max_segments"]


def solved(problem):
    """Each feature's histogram, whether it is categorical, and the cost and branches found."""
    histograms, n_bins, categorical, options = problem
    found = solve(np.concatenate(histograms), n_bins, categorical, **options)
    return zip(histograms, categorical, *found, strict=True)


@given(problems())
def test_no_shape_function_is_cheaper(problem):
    options = problem[-1]
    for histogram, is_categorical, cost, _ in solved(problem):
        held = np.flatnonzero(histogram[:-1, 0])
        if len(held) == 0:
            assert cost == np.inf
            continue
        penalty = penalty_of(options, is_categorical)
        most = limit_of(options, is_categorical)
        assert cost == cheapest_of_all(histogram, is_categorical, penalty, most)


@given(problems())
def test_shape_functions_cost_what_is_said(problem):
    options = problem[-1]
    for histogram, is_categorical, cost, branch in solved(problem):
        held = np.flatnonzero(histogram[:-1, 0])
        if len(held) == 0:
            continue
        penalty = penalty_of(options, is_categorical)
        missing = 0.0
        if histogram[-1, 0] > 0:
            missing = np.append(0.0, histogram[-1, 1:])[branch[-1]]
        assert cost == missing + cost_of(histogram, held, branch[held], is_categorical, penalty)
        assert n_limited(branch[held], is_categorical) <= limit_of(options, is_categorical)


def without_gaps(branch_of_bin, is_categorical):
    """Give bins without rows a branch: that of the nearest bin, or of most categories."""
    held = np.flatnonzero(branch_of_bin[:-1] != NO_BRANCH)
    filled = branch_of_bin.copy()
    if is_categorical:
        filled[filled == NO_BRANCH] = np.bincount(branch_of_bin[held]).argmax()
        return filled
    bins = np.arange(len(branch_of_bin) - 1)
    above = np.clip(np.searchsorted(held, bins), 1, max(len(held) - 1, 1))
    below = above - 1
    above = np.minimum(above, len(held) - 1)
    nearest = np.where(bins - held[below] <= held[above] - bins, held[below], held[above])
    filled[:-1] = branch_of_bin[nearest]
    if filled[-1] == NO_BRANCH:
        filled[-1] = filled[held[0]]
    return filled


@given(problems())
def test_bins_without_rows_that_care_follow_their_neighbours(problem):
    for histogram, is_categorical, _, branch in solved(problem):
        assert branch.max() < histogram.shape[1]
        if histogram[:-1, 0].any():
            known = np.where(histogram[:, 0] > 0, branch, NO_BRANCH).astype(np.uint8)
            assert_array_equal(branch, without_gaps(known, is_categorical))
            fill_gaps(known, is_categorical)
            assert_array_equal(branch, known)


@given(problems(), st.integers(-40, 40))
def test_only_features_that_cannot_be_below_the_bound_are_passed_over(problem, bound):
    histograms, n_bins, categorical, options = problem
    histogram, bound = np.concatenate(histograms), bound / 4
    free, _ = solve(histogram, n_bins, categorical, **options)
    bounded, _ = solve(histogram, n_bins, categorical, **options, bound=bound)
    for feature, (cost, alike) in enumerate(zip(free, bounded, strict=True)):
        losses = histograms[feature][histograms[feature][:, 0] > 0, 1:]
        least = np.minimum(losses.min(axis=1, initial=0.0), 0.0).sum()
        assert alike == cost or (alike == np.inf and cost >= bound)
        assert alike == np.inf or least < bound


@given(problems(), st.sampled_from([0.0, -1.0, np.inf]), st.sampled_from([1, 3]))
def test_the_best_feature_is_the_same_if_only_that_is_asked_for(problem, bound, n_threads):
    histograms, n_bins, categorical, options = problem
    histogram = np.concatenate(histograms)
    order = np.random.default_rng(len(histogram)).permutation(len(n_bins)).astype(np.int32)
    options |= {"bound": bound, "order": order}
    free, _ = solve(histogram, n_bins, categorical, **options)
    best, _ = solve(histogram, n_bins, categorical, **options, only_best=True, n_threads=n_threads)
    if free.min() < bound:
        # Of equals, that which comes first.
        assert best[order].argmin() == free[order].argmin()
        assert best.min() == free.min()


@given(SEEDS, st.integers(2, 60), st.integers(2, 4), PENALTIES)
def test_long_features_are_not_passed_over_for_nothing(seed, n_bins, n_branches, penalty):
    histogram = random_histogram(np.random.default_rng(seed), n_bins, n_branches)
    (free,), _ = solve(histogram, [n_bins], [False], segment_penalty=penalty)
    if np.isfinite(free):
        just_above = solve(histogram, [n_bins], [False], segment_penalty=penalty, bound=free + 0.25)
        assert just_above[0][0] == free


@given(SEEDS, st.sampled_from([2, 3, 50]), st.sampled_from([3, UNLIMITED]))
def test_any_number_of_threads_finds_the_same(seed, n_threads, max_segments):
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(0, 30, 20)
    histogram = np.concatenate([random_histogram(rng, n, 3) for n in n_bins])
    options = {"segment_penalty": 0.7, "category_penalty": 0.3, "max_segments": max_segments}
    categorical = rng.random(20) < 0.5
    one, branches = solve(histogram, n_bins, categorical, **options)
    several, same = solve(histogram, n_bins, categorical, **options, n_threads=n_threads)
    assert_array_equal(one, several)
    assert_array_equal(np.concatenate(branches), np.concatenate(same))


@given(SEEDS, st.integers(2, 40), st.integers(2, 6), PENALTIES)
def test_a_limit_that_does_not_bind_changes_no_cost(seed, n_bins, n_branches, penalty):
    histogram = random_histogram(np.random.default_rng(seed), n_bins, n_branches)
    if not histogram[:-1, 0].any():
        return
    free, branches = solve(histogram, [n_bins], [False], segment_penalty=penalty)
    n_used = n_parts(branches[0][:-1][histogram[:-1, 0] > 0])
    for limit in {n_used, n_used + 1, n_bins}:
        limited, same = solve(
            histogram, [n_bins], [False], segment_penalty=penalty, max_segments=limit
        )
        assert limited == free
        if limit > 1:
            assert_array_equal(same[0], branches[0])


@given(SEEDS, st.integers(1, 25), st.integers(2, 5), PENALTIES, st.integers(1, 12))
def test_no_path_within_a_limit_is_cheaper(seed, n_bins, n_branches, penalty, limit):
    histogram = random_histogram(np.random.default_rng(seed), n_bins, n_branches)
    held = np.flatnonzero(histogram[:-1, 0])
    if len(held) == 0:
        return
    cost, branches = solve(
        histogram, [n_bins], [False], segment_penalty=penalty, max_segments=limit
    )
    assert cost == cheapest_limited(histogram, penalty, limit)
    assert n_parts(branches[0][held]) <= limit


def test_thousands_of_segments_are_still_a_limit():
    n_bins, limit = 5000, 4200
    losses = np.tile([1.0, -1.0], n_bins // 2)
    histogram = np.column_stack([np.ones(n_bins + 1), np.append(losses, 0.0)])
    cost, branches = solve(histogram, [n_bins], [False], max_segments=limit)
    # To send a bin along with its neighbours costs 1, and joins three segments.
    assert cost == -n_bins / 2 + (n_bins - limit) / 2
    assert n_parts(branches[0][:-1]) == limit


@given(SEEDS, st.integers(1, 30), PENALTIES)
def test_a_higher_limit_of_segments_never_costs_more(seed, n_bins, penalty):
    histogram = random_histogram(np.random.default_rng(seed), n_bins, 3)
    costs = [
        solve(histogram, [n_bins], [False], segment_penalty=penalty, max_segments=limit)[0][0]
        for limit in [1, 2, 3, 5, 8, 13, 40]
    ]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("max_segments", [2, 3, UNLIMITED])
def test_two_segments_are_free_and_ties_stay_together(max_segments):
    # Rows lose nothing anywhere, in branch 1, anywhere, in branch 0.
    losses = np.array([0.0, -2.0, 0.0, 2.0])
    histogram = np.column_stack([np.ones(5), np.append(losses, 0.0)])
    costs, branches = solve(histogram, [4], [False], segment_penalty=9.0, max_segments=max_segments)
    assert costs == -2.0
    assert n_parts(branches[0][:-1]) == 2


def test_the_first_category_to_be_listed_is_free():
    losses = np.array([-1.0, 5.0, 5.0, -3.0, 5.0])
    histogram = np.column_stack([np.ones(6), np.append(losses, 0.0)])
    dear, branches = solve(histogram, [5], [True], category_penalty=2.0)
    assert_array_equal(branches[0], [0, 0, 0, 1, 0, 0])
    assert dear == -3.0
    cheap, branches = solve(histogram, [5], [True], category_penalty=0.5)
    assert_array_equal(branches[0], [1, 0, 0, 1, 0, 0])
    assert cheap == -3.5


def test_as_many_categories_are_listed_as_may_be_though_several_save_the_same():
    losses = np.array([-2.0, 5.0, -1.0, 5.0, -1.0, 5.0, -1.0, 5.0])
    histogram = np.column_stack([np.ones(9), np.append(losses, 0.0)])
    for most, cost in [(1, -2.0), (2, -3.0), (3, -4.0), (4, -5.0)]:
        costs, branches = solve(histogram, [8], [True], max_listed=most)
        assert np.count_nonzero(branches[0][:-1]) == most
        assert costs == cost


def test_missing_values_go_where_they_lose_least_for_free():
    histogram = np.array([[3, 1.0, 2.0], [3, 1.0, 2.0], [2, 0.0, -4.0]])
    costs, branches = solve(histogram, [2], [False], segment_penalty=100.0, max_segments=1)
    assert costs == -4.0
    assert_array_equal(branches[0], [0, 0, 2])


@pytest.mark.parametrize("n_branches", [2, 254])
def test_few_and_many_branches(n_branches):
    n_bins = n_branches
    losses = 1.0 - np.eye(n_branches)
    histogram = np.column_stack([np.ones(n_bins), losses[:, 1:] - losses[:, :1]])
    histogram = np.vstack([histogram, np.zeros(n_branches)])
    for is_categorical in (False, True):
        costs, branches = solve(histogram, [n_bins], [is_categorical])
        assert_array_equal(branches[0][:-1], range(n_branches))
        assert costs == -(n_branches - 1)


@given(SEEDS, st.integers(1, 4), st.integers(1, 4))
def test_nodes_are_solved_as_if_alone(seed, n_nodes, n_features):
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(0, 9, n_features)
    histograms = [[random_histogram(rng, n, 4) for n in n_bins] for _ in range(n_nodes)]
    parts = [cells_of(of_node) for of_node in histograms]
    first = np.cumsum([0, *(len(part["bin_of_cell"]) for part in parts[:-1])])
    n_branches = rng.integers(2, 5, n_nodes).astype(np.int32)
    bounds = rng.integers(-9, 4, n_nodes) / 2
    common = {
        "n_bins": n_bins,
        "categorical": rng.integers(0, 2, n_features).astype(np.uint8),
        "segment_penalty": 0.5,
        "category_penalty": 0.25,
        "choice_penalty": 0.0,
        "max_segments": 4,
        "max_listed": 3,
        "order": np.arange(n_features, dtype=np.int32),
        "only_best": False,
        "n_threads": 1,
    }
    starts = [part["starts"] + start for part, start in zip(parts, first, strict=True)]
    found, _ = cheapest_shapes(
        starts=np.concatenate(starts),
        **{
            name: np.concatenate([part[name] for part in parts])
            for name in ("n_cells", "bin_of_cell", "losses")
        },
        n_branches=n_branches,
        bounds=bounds,
        **common,
    )
    for node, part in enumerate(parts):
        here = slice(node, node + 1)
        its = {"n_branches": n_branches[here], "bounds": bounds[here]}
        alone, _ = cheapest_shapes(**part, **its, **common)
        assert_array_equal(found[here], alone)
        # Losses in branches that a node does not have make no difference.
        fewer = part | {"losses": np.ascontiguousarray(part["losses"][:, : n_branches[node] - 1])}
        less, _ = cheapest_shapes(**fewer, **its, **common)
        assert_array_equal(found[here], less)


def test_no_features_are_no_trouble():
    costs, least = cheapest_shapes(
        np.empty((2, 0), np.int64), np.empty((2, 0), np.int32), np.empty(0, np.int32),
        np.empty((0, 1)), np.empty(0, np.int64), np.empty(0, np.uint8), np.full(2, 2, np.int32),
        np.zeros(2), np.empty(0, np.int32), segment_penalty=0.0, category_penalty=0.0,
        choice_penalty=0.0, max_segments=1, max_listed=1, only_best=True, n_threads=1,
    )  # fmt: skip
    assert costs.shape == (2, 0)
    assert least == [0.0, 0.0]


# Bins without rows


@given(SEEDS, st.integers(1, 12), st.integers(2, 4), st.booleans())
def test_bins_without_rows_go_where_the_finished_shape_function_sends_them(
    seed, n_bins, n_branches, is_categorical
):
    rng = np.random.default_rng(seed)
    low = np.cumsum(rng.choice([0.5, 1.0, 3.0], n_bins))
    high = low + rng.choice([0.0, 0.25], n_bins)
    bins = FeatureBins(n_bins) if is_categorical else FeatureBins(n_bins, low, high)
    n_rows = rng.integers(0, 3, n_bins + 1)
    n_rows[rng.integers(n_bins)] += 1
    branches = rng.integers(0, n_branches, n_bins + 1).astype(np.uint8)
    largest = int(rng.integers(n_branches))
    held = n_rows > 0
    if is_categorical:
        held[:-1] = True
    shape = shape_from_bins(0, bins, np.where(held, branches, NO_BRANCH), n_branches, largest)
    expected = np.full(n_bins + 1, shape.missing_branch)
    if is_categorical:
        expected[:-1] = shape.branch_of_piece
    else:
        expected[:-1] = shape.branch_of_piece[np.searchsorted(shape.upper, low)]
    found = settle_empty_bins(branches, n_rows, bins.low, bins.high, largest)
    assert_array_equal(branches if found is None else found, expected)
    assert (found is None) == np.array_equal(branches, expected)
    # Marks tell as well which bins hold no rows.
    marked = np.where(held, branches, NO_BRANCH).astype(np.uint8)
    found = settle_empty_bins(marked, None, bins.low, bins.high, largest)
    assert_array_equal(marked if found is None else found, expected)


@given(SEEDS, st.integers(0, 12), st.booleans())
def test_extra_parts_are_counted(seed, n_bins, is_categorical):
    branches = np.random.default_rng(seed).integers(0, 4, n_bins + 1).astype(np.uint8)
    expected = extra_parts(branches[:-1], is_categorical) if n_bins else 0
    assert count_extra_parts(branches, is_categorical) == expected


# What does not fit

GOOD = {
    "starts": np.array([[0, 2]]),
    "n_cells": np.array([[2, 1]], dtype=np.int32),
    "bin_of_cell": np.array([0, 1, 3], dtype=np.int32),
    "losses": np.ones((3, 1)),
    "n_bins": np.array([1, 3]),
    "categorical": np.zeros(2, dtype=np.uint8),
    "n_branches": np.array([2], dtype=np.int32),
    "bounds": np.zeros(1),
    "segment_penalty": 1.0,
    "category_penalty": 1.0,
    "choice_penalty": 0.0,
    "max_segments": 3,
    "max_listed": 3,
    "order": np.arange(2, dtype=np.int32),
    "only_best": False,
    "n_threads": 1,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"losses": np.ones((3, 0))}, "n_branches, max_segments or max_listed"),
        ({"losses": np.ones((3, 254))}, "n_branches, max_segments or max_listed"),
        ({"n_branches": np.array([3], dtype=np.int32)}, "n_branches, max_segments or max_listed"),
        ({"n_branches": np.array([1], dtype=np.int32)}, "n_branches, max_segments or max_listed"),
        ({"max_segments": 0}, "n_branches, max_segments or max_listed"),
        ({"max_listed": 0}, "n_branches, max_segments or max_listed"),
        ({"order": np.zeros(1, dtype=np.int32)}, "lack what they need"),
        ({"order": np.array([0, 2], dtype=np.int32)}, "order out of range"),
        ({"n_threads": 0}, "n_threads is out of range"),
        ({"bounds": np.zeros(2)}, "lack what they need"),
        ({"n_branches": np.array([2, 2], dtype=np.int32)}, "lack what they need"),
        ({"categorical": np.zeros(1, dtype=np.uint8)}, "lack what they need"),
        ({"n_bins": np.array([1, 3, 4])}, "lack what they need"),
        ({"n_bins": np.array([1, -1])}, "n_bins"),
        ({"segment_penalty": -1.0}, "penalties"),
        ({"category_penalty": np.nan}, "penalties"),
        ({"starts": np.array([[0, 3]])}, "where the cells are"),
        ({"starts": np.array([[-1, 2]])}, "where the cells are"),
        ({"n_cells": np.array([[2, -1]], dtype=np.int32)}, "where the cells are"),
        ({"n_cells": np.array([[4, 0]], dtype=np.int32)}, "where the cells are"),
        ({"n_cells": np.array([[2], [1]], dtype=np.int32)}, "differ in their shapes"),
        ({"losses": np.ones((2, 1))}, "differ in their shapes"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    cheapest_shapes(**GOOD)
    with pytest.raises(ValueError, match=message):
        cheapest_shapes(**GOOD | change)


@pytest.mark.parametrize(
    ("bins", "n_bins", "message"),
    [
        ([0, 1], 0, "ascending"),
        ([1, 0], 3, "ascending"),
        ([1, 1], 3, "ascending"),
        ([-1, 1], 3, "ascending"),
        ([0], 3, "without losses"),
        ([0, 1], -1, "n_bins"),
    ],
)
def test_cells_that_do_not_fit_are_refused(bins, n_bins, message):
    with pytest.raises(ValueError, match=message):
        cheapest_shape(
            np.array(bins, dtype=np.int32), np.ones((2, 1)), n_bins, False, 2,
            segment_penalty=0.0, category_penalty=0.0, max_segments=2, max_listed=2,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rows": np.ones(2, dtype=np.int64)}, "a number of rows"),
        ({"branch_of_bin": np.empty(0, dtype=np.uint8)}, "a number of rows"),
        ({"largest_branch": 255}, "a number of rows"),
        ({"low": np.zeros(1)}, "bounds"),
        ({"high": np.zeros(3)}, "bounds"),
    ],
)
def test_bins_that_do_not_fit_are_refused(change, message):
    good = {
        "branch_of_bin": np.zeros(3, dtype=np.uint8),
        "n_rows": np.ones(3, dtype=np.int64),
        "low": np.array([0.0, 1.0]),
        "high": np.array([0.0, 1.0]),
        "largest_branch": 0,
    }
    assert settle_empty_bins(**good) is None
    with pytest.raises(ValueError, match=message):
        settle_empty_bins(**good | change)


# What a new shape function must beat


@given(SEEDS, st.integers(2, 4), st.sampled_from([0.25, 2.0]), st.sampled_from([0.0, 0.25, 2.0]))
def test_problems_know_what_a_new_split_must_beat(seed, max_branches, price, leaf_penalty):
    rng = np.random.default_rng(seed)
    n_nodes = int(rng.integers(1, 4))
    n_branches = rng.integers(2, max_branches + 1, n_nodes)
    stops = n_nodes + np.cumsum(n_branches)
    children = [list(range(stop - n, stop)) for stop, n in zip(stops, n_branches, strict=True)]
    penalties = rng.integers(0, 5, stops[-1]).astype(float).tolist()
    sizes = rng.integers(1, 100, stops[-1]).tolist()
    part_penalties = rng.integers(1, 5, n_nodes).astype(float).tolist()
    sums = rng.integers(-20, 20, (n_nodes, 1 + max_branches)) / 4
    n_care, least = rng.integers(0, 9, n_nodes), rng.integers(-40, 1, n_nodes) / 4
    problems = reduced_problems(
        list(range(n_nodes)), children, part_penalties, penalties, sizes, (sums, n_care, least),
        price, leaf_penalty,
    )  # fmt: skip
    wanted = [problem.may_improve and problem.n_care > 0 for problem in problems.each]
    assert_array_equal(problems.wanted, wanted)
    assert problems.are_open == any(wanted)
    assert_array_equal(problems.n_branches, n_branches)
    assert_array_equal(problems.bounds, [problem.bound for problem in problems.each])
    assert_array_equal(problems.segment_penalties, price * np.array(part_penalties))
    for i, problem in enumerate(problems.each):
        assert (problem.price, problem.leaf_penalty) == (price, leaf_penalty)
        assert problem.part_penalty == part_penalties[i]
        below = [penalties[child] for child in children[i]]
        lost = np.append(0.0, sums[i, 2 : 1 + n_branches[i]])
        alone = sums[i, 1] + lost + price * np.array(below)
        present = sums[i, 0] + price * penalties[i]
        tolerance = 1e-10 * price * sizes[i] + 1e-12 * alone.max()
        assert (problem.number, problem.n_rows, problem.n_care) == (i, sizes[i], n_care[i])
        assert (problem.n_branches, problem.below) == (n_branches[i], below)
        assert problem.tolerance == pytest.approx(tolerance)
        assert problem.to_beat == pytest.approx(min(present, alone.min()) - tolerance)
        # All branches in use, at least as cheap as every row in its best branch.
        everywhere = [1] * n_branches[i]
        losses = [0.0, float(least[i]), *[0.0] * (n_branches[i] - 2)]
        objective = problem.objective(0.0, losses, everywhere)
        assert problem.bound - least[i] == pytest.approx(problem.to_beat - objective)
        extra = problem.objective(3.0, losses, everywhere) - objective
        assert extra == pytest.approx(3.0 * price)
        by_hand = sums[i, 1] + least[i] + price * (leaf_penalty * (len(below) - 1) + sum(below))
        assert objective == pytest.approx(by_hand)
        assert problem.may_improve == (least[i] < problem.bound)
        is_no_worse = alone.min() <= present + problem.tolerance
        assert problem.only_branch == (alone.argmin() if is_no_worse else -1)
        one = np.eye(n_branches[i])[problem.only_branch].tolist()
        if is_no_worse:
            best = problem.objective(0.0, lost.tolist(), one)
            assert best == pytest.approx(alone.min())


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"nodes": [3]}, IndexError),
        ({"nodes": [-1]}, IndexError),
        ({"nodes": [0, 1]}, ValueError),
        ({"children": [[1, 2, 1]]}, ValueError),
        ({"children": [[]]}, ValueError),
        ({"children": [[1, 7]]}, IndexError),
        ({"part_penalties": []}, ValueError),
        ({"losses": (np.zeros((1, 3)), np.zeros(1, dtype=np.int64), np.zeros(2))}, ValueError),
    ],
)
def test_problems_that_lack_something_are_refused(change, error):
    good = {
        "nodes": [0],
        "children": [[1, 2]],
        "part_penalties": [1.0],
        "penalties": [1.0, 0.0, 0.0],
        "sizes": [3, 2, 1],
        "losses": (np.zeros((1, 3)), np.zeros(1, dtype=np.int64), np.zeros(1)),
        "price": 1.0,
        "leaf_penalty": 1.0,
    }
    assert len(reduced_problems(**good).each) == 1
    with pytest.raises(error):
        reduced_problems(**good | change)
