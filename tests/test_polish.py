"""Polish trades impurity against extra parts and never loses by it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from naive import cheapest_shape, extra_parts, n_parts, samples
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.criterion import Criterion
from shapetree._core.polish import polish_branches

PENALTIES = st.sampled_from([0.0, 0.1, 1.0, 3.0, 50.0])


@st.composite
def starts(draw, **options):
    """A sample of cells, branches for them, and what kind of cells they are."""
    sample = draw(samples(least_pieces=2, **options))
    n_branches = draw(st.integers(1, 4))
    branch = draw(arrays(np.uint8, sample.n_pieces, elements=st.integers(0, n_branches - 1)))
    return (
        sample,
        branch,
        {
            "n_branches": n_branches,
            "penalty": draw(PENALTIES),
            "categorical": draw(st.booleans()),
            "has_missing": draw(st.booleans()),
        },
    )


def objective_of(sample, branch, options):
    """Impurity + penalty * extra parts; the missing cell, last, is free."""
    cells = branch[:-1] if options["has_missing"] else branch
    return sample.loss(branch) + options["penalty"] * extra_parts(cells, options["categorical"])


def cheapest_path(costs, penalty, max_segments=2**30):
    """Branches of the cheapest path through a table of costs (n_cells, n_branches)."""
    costs = np.asarray(costs)
    n, n_branches = costs.shape
    branch, _, _ = cheapest_shape(
        np.arange(n, dtype=np.int32), costs[:, 1:] - costs[:, :1], n, False, n_branches,
        segment_penalty=penalty, category_penalty=0.0, max_segments=max_segments, max_listed=1,
    )  # fmt: skip
    return branch[:-1]


def path_cost(costs, branch, penalty):
    return costs[np.arange(len(costs)), branch].sum() + penalty * max(n_parts(branch) - 2, 0)


@given(starts())
def test_polish_reports_the_objective_of_what_it_returns(start):
    sample, branch, options = start
    polished, objective = polish_branches(sample.criterion, sample.stats, branch, **options)
    assert_allclose(objective, objective_of(sample, polished, options), atol=sample.tolerance)
    assert polished.max() < options["n_branches"]


@given(starts())
def test_polish_never_raises_the_objective(start):
    sample, branch, options = start
    _, objective = polish_branches(sample.criterion, sample.stats, branch, **options)
    assert objective <= objective_of(sample, branch, options) + sample.tolerance


@given(starts())
def test_polish_leaves_its_input_alone(start):
    sample, branch, options = start
    before = branch.copy()
    polish_branches(sample.criterion, sample.stats, branch, **options)
    assert_array_equal(branch, before)


@given(starts())
def test_polish_is_settled_after_a_second_go(start):
    sample, branch, options = start
    once, objective = polish_branches(sample.criterion, sample.stats, branch, **options)
    twice, again = polish_branches(sample.criterion, sample.stats, once, **options)
    assert_array_equal(once, twice)
    assert_allclose(again, objective, atol=sample.tolerance)


@given(starts())
def test_a_dear_penalty_leaves_no_extra_parts(start):
    sample, branch, options = start
    options |= {"penalty": 1e6, "categorical": False}
    polished, _ = polish_branches(sample.criterion, sample.stats, branch, **options)
    assert extra_parts(polished[:-1] if options["has_missing"] else polished) == 0


def n_limited(branch, options):
    """Segments, or categories outside the largest group."""
    cells = branch[:-1] if options["has_missing"] else branch
    return len(cells) - np.bincount(cells).max() if options["categorical"] else n_parts(cells)


@given(starts(), st.integers(1, 4))
def test_polish_keeps_to_few_parts_whatever_it_starts_from(start, most):
    sample, branch, options = start
    polished, objective = polish_branches(
        sample.criterion, sample.stats, branch, max_parts=most, **options
    )
    assert n_limited(polished, options) <= most
    assert_allclose(objective, objective_of(sample, polished, options), atol=sample.tolerance)
    if n_limited(branch, options) <= most:
        assert objective <= objective_of(sample, branch, options) + sample.tolerance


@given(starts())
def test_a_limit_that_is_not_reached_changes_nothing(start):
    sample, branch, options = start
    free, _ = polish_branches(sample.criterion, sample.stats, branch, **options)
    most = sample.n_pieces
    limited, _ = polish_branches(sample.criterion, sample.stats, branch, max_parts=most, **options)
    assert_array_equal(limited, free)


def test_polish_removes_a_sliver_that_does_not_earn_its_segments():
    stats = np.array([[20, 0], [0, 1], [20, 0], [0, 20.0]])
    criterion = Criterion("gini", [2])
    cheap, _ = polish_branches(criterion, stats, [0, 1, 0, 1], n_branches=2, penalty=0.1)
    dear, _ = polish_branches(criterion, stats, [0, 1, 0, 1], n_branches=2, penalty=3.0)
    assert_array_equal(cheap, [0, 1, 0, 1])
    assert_array_equal(dear, [0, 0, 0, 1])


def test_polish_sends_missing_values_where_they_cost_least_for_free():
    stats = np.array([[9, 0], [0, 9], [0, 4.0]])
    polished, _ = polish_branches(
        Criterion("entropy", [2]), stats, [0, 1, 0], n_branches=2, penalty=100.0, has_missing=True
    )
    assert_array_equal(polished, [0, 1, 1])


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 3)), elements=st.integers(0, 5)),
    st.sampled_from([0.0, 0.5, 1.0, 2.5, 100.0]),
)
def test_cheapest_path_is_the_cheapest_of_all(costs, penalty):
    n, k = costs.shape
    path = cheapest_path(costs, penalty)
    least = min(path_cost(costs, list(way), penalty) for way in product(range(k), repeat=n))
    assert path_cost(costs, path, penalty) == least


@given(
    arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(2, 3)), elements=st.integers(0, 5)),
    st.sampled_from([0.0, 0.5, 1.0, 2.5, 100.0]),
    st.integers(1, 6),
)
def test_a_limited_path_is_the_cheapest_of_all_with_so_few_segments(costs, penalty, most):
    n, k = costs.shape
    path = cheapest_path(costs, penalty, most)
    ways = [way for way in product(range(k), repeat=n) if n_parts(way) <= most]
    assert n_parts(path) <= most
    assert path_cost(costs, path, penalty) == min(path_cost(costs, way, penalty) for way in ways)


def test_cheapest_path_prefers_to_stay_on_ties():
    assert_array_equal(cheapest_path([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], 1.0), [0, 0, 0])


def test_a_limit_below_one_is_refused():
    with pytest.raises(ValueError, match="max_segments or max_listed out of range"):
        cheapest_path(np.ones((3, 2)), 1.0, 0)
    with pytest.raises(ValueError, match="max_parts must be positive"):
        polish_branches(
            Criterion("gini", [2]), np.ones((2, 2)), [0, 1], n_branches=2, penalty=1.0, max_parts=0
        )


@pytest.mark.parametrize(
    ("stats", "branch", "options"),
    [
        (np.empty((0, 2)), [], {}),
        (np.ones((3, 2)), [0, 1], {}),
        (np.ones((3, 3)), [0, 1, 0], {}),
        (np.ones((1, 2)), [0], {"has_missing": True}),
    ],
)
def test_cells_that_do_not_fit_are_refused(stats, branch, options):
    with pytest.raises(ValueError, match="stats must be"):
        polish_branches(Criterion("gini", [2]), stats, branch, n_branches=2, penalty=1.0, **options)


@pytest.mark.parametrize(("branch", "n_branches"), [([0, 2], 2), ([0, 0], 0), ([0, 0], 255)])
def test_branches_out_of_range_are_refused(branch, n_branches):
    with pytest.raises(ValueError, match="n_branches"):
        polish_branches(
            Criterion("gini", [2]), np.ones((2, 2)), branch, n_branches=n_branches, penalty=1.0
        )
