"""The reduced problem of a node: the cheapest shape function of every feature, against all others.

Losses are quarters, so that every sum is exact and ties are real ties.
"""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import extra_parts, n_segments
from numpy.testing import assert_array_equal

from shapetree._core.reduced import cheapest_shapes

NO_BRANCH = 255
UNLIMITED = 2**30
SEEDS = st.integers(0, 2**32 - 1)
PENALTIES = st.sampled_from([0.0, 0.25, 1.0, 2.5, 100.0])


def solve(histogram, n_bins, categorical, **options):
    """Costs and branches of the bins, a list of arrays, the missing bin last."""
    offsets = np.concatenate([[0], np.cumsum(np.asarray(n_bins, dtype=np.int64) + 1)])
    costs = np.full(len(n_bins), np.nan)
    branch_of_bin = np.full(offsets[-1], 77, dtype=np.uint8)
    options = {
        "segment_penalty": 0.0,
        "category_penalty": 0.0,
        "max_segments": UNLIMITED,
        "bound": np.inf,
        "n_threads": 1,
    } | options
    categorical = np.array(categorical, dtype=np.uint8)
    cheapest_shapes(histogram, offsets, categorical, costs, branch_of_bin, **options)
    return costs, np.split(branch_of_bin, offsets[1:-1])


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


def cheapest_of_all(histogram, is_categorical, penalty, max_segments):
    """Least cost of any assignment of the bins with rows to branches."""
    held = np.flatnonzero(histogram[:-1, 0])
    n_branches = histogram.shape[1]
    ways = product(range(n_branches), repeat=len(held))
    missing = min(0.0, histogram[-1, 1:].min())
    return missing + min(
        cost_of(histogram, held, way, is_categorical, penalty)
        for way in ways
        if is_categorical or n_segments(way) <= max_segments
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
    }
    return histograms, n_bins, rng.random(len(n_bins)) < 0.5, options


def penalty_of(options, is_categorical):
    return options["category_penalty" if is_categorical else "segment_penalty"]


def solved(problem):
    """Each feature's histogram, whether it is categorical, and the cost and branches found."""
    histograms, n_bins, categorical, options = problem
    found = solve(np.concatenate(histograms), n_bins, categorical, **options)
    return zip(histograms, categorical, *found, strict=True)


@given(problems())
def test_no_shape_function_is_cheaper(problem):
    options = problem[-1]
    for histogram, is_categorical, cost, branch in solved(problem):
        held = np.flatnonzero(histogram[:-1, 0])
        if len(held) == 0:
            assert cost == np.inf
            assert set(branch) == {NO_BRANCH}
            continue
        penalty = penalty_of(options, is_categorical)
        assert cost == cheapest_of_all(histogram, is_categorical, penalty, options["max_segments"])


@given(problems())
def test_shape_functions_cost_what_is_said(problem):
    options = problem[-1]
    for histogram, is_categorical, cost, branch in solved(problem):
        held = np.flatnonzero(histogram[:-1, 0])
        if len(held) == 0:
            continue
        penalty = penalty_of(options, is_categorical)
        missing = 0.0
        if branch[-1] != NO_BRANCH:
            missing = np.append(0.0, histogram[-1, 1:])[branch[-1]]
        assert cost == missing + cost_of(histogram, held, branch[held], is_categorical, penalty)
        if not is_categorical:
            assert n_segments(branch[held]) <= options["max_segments"]


@given(problems())
def test_just_the_bins_with_rows_that_care_have_a_branch(problem):
    for histogram, _, _, branch in solved(problem):
        if histogram[:-1, 0].any():
            assert_array_equal(branch == NO_BRANCH, histogram[:, 0] == 0)
            assert branch[branch != NO_BRANCH].max(initial=0) < histogram.shape[1]


@given(problems(), st.integers(-40, 40))
def test_features_that_cannot_be_below_the_bound_are_passed_over(problem, bound):
    histograms, n_bins, categorical, options = problem
    histogram, bound = np.concatenate(histograms), bound / 4
    free, branches = solve(histogram, n_bins, categorical, **options)
    bounded, bounded_branches = solve(histogram, n_bins, categorical, **options, bound=bound)
    for feature, (cost, alike) in enumerate(zip(free, bounded, strict=True)):
        # Whatever is passed over would have cost too much; what is not, is as without a bound.
        least = np.minimum(histograms[feature][:, 1:].min(axis=1), 0.0).sum()
        if np.isfinite(cost) and least < bound:
            assert alike == cost
            assert_array_equal(bounded_branches[feature], branches[feature])
        else:
            assert alike == np.inf
            assert cost >= bound or cost == np.inf
            assert set(bounded_branches[feature]) == {NO_BRANCH}


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
    n_used = n_segments(branches[0][:-1][histogram[:-1, 0] > 0])
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
    assert n_segments(branches[0][held]) <= limit


def test_thousands_of_segments_are_still_a_limit():
    n_bins, limit = 5000, 4200
    losses = np.tile([1.0, -1.0], n_bins // 2)
    histogram = np.column_stack([np.ones(n_bins + 1), np.append(losses, 0.0)])
    cost, branches = solve(histogram, [n_bins], [False], max_segments=limit)
    # To send a bin along with its neighbours costs 1, and joins three segments.
    assert cost == -n_bins / 2 + (n_bins - limit) / 2
    assert n_segments(branches[0][:-1]) == limit


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
    assert n_segments(branches[0][:-1]) == 2


def test_the_first_category_to_be_listed_is_free():
    losses = np.array([-1.0, 5.0, 5.0, -3.0, 5.0])
    histogram = np.column_stack([np.ones(6), np.append(losses, 0.0)])
    dear, branches = solve(histogram, [5], [True], category_penalty=2.0)
    assert_array_equal(branches[0], [0, 0, 0, 1, 0, 0])
    assert dear == -3.0
    cheap, branches = solve(histogram, [5], [True], category_penalty=0.5)
    assert_array_equal(branches[0], [1, 0, 0, 1, 0, 0])
    assert cheap == -3.5


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
        assert_array_equal(branches[0], [*range(n_branches), NO_BRANCH])
        assert costs == -(n_branches - 1)


def test_no_features_are_no_trouble():
    costs, _ = solve(np.empty((0, 2)), [], [])
    assert costs.shape == (0,)


GOOD = {
    "histogram": np.ones((6, 2)),
    "offsets": np.array([0, 2, 6]),
    "categorical": np.zeros(2, dtype=np.uint8),
    "costs": np.empty(2),
    "branch_of_bin": np.empty(6, dtype=np.uint8),
    "segment_penalty": 1.0,
    "category_penalty": 1.0,
    "max_segments": 3,
    "bound": 0.0,
    "n_threads": 1,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"histogram": np.ones((6, 1))}, "n_branches, max_segments or n_threads"),
        ({"histogram": np.ones((6, 255))}, "n_branches, max_segments or n_threads"),
        ({"max_segments": 0}, "n_branches, max_segments or n_threads"),
        ({"n_threads": 0}, "n_branches, max_segments or n_threads"),
        ({"segment_penalty": -1.0}, "penalties"),
        ({"category_penalty": np.nan}, "penalties"),
        ({"offsets": np.array([0, 2, 7])}, "offsets"),
        ({"offsets": np.array([0, 2, 2])}, "offsets"),
        ({"offsets": np.array([1, 2, 6])}, "offsets"),
        ({"offsets": np.array([0, 7, 6])}, "offsets"),
        ({"offsets": np.array([0, 6])}, "offsets"),
        ({"costs": np.empty(1)}, "results"),
        ({"branch_of_bin": np.empty(5, dtype=np.uint8)}, "results"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(change, message):
    cheapest_shapes(**GOOD)
    with pytest.raises(ValueError, match=message):
        cheapest_shapes(**GOOD | change)
