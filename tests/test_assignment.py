"""Assignments: exact where that is promised, never worse than their starts elsewhere."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import AllAssignments, samples
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.assignment import assign
from shapetree._core.criterion import Criterion

KINDS = ["auto", "coordinate_descent", "kmeans", "random"]
BRANCHES = st.integers(2, 4)


def exact_samples(**options):
    names = ["gini", "entropy", "squared_error"]
    return samples(names=names, least_classes=2, max_classes=2, max_outputs=1, **options)


def assigned(sample, max_branches, **options):
    return assign(
        sample.criterion, sample.stats, sample.n_rows, max_branches=max_branches, **options
    )


@st.composite
def samples_with_root_cut(draw, **options):
    sample = draw(samples(least_pieces=2, **options))
    return sample, draw(st.integers(0, sample.n_pieces - 1))


@given(exact_samples(max_pieces=9), BRANCHES)
def test_exact_assignment_is_the_best_of_all(sample, max_branches):
    every = AllAssignments(sample, max_branches)
    for k, branch in assigned(sample, max_branches).items():
        assert_allclose(sample.loss(branch), every.least(k), atol=sample.tolerance)


@given(exact_samples(), BRANCHES)
def test_exact_assignment_exists_for_every_k_up_to_the_pieces(sample, max_branches):
    found = assigned(sample, max_branches)
    assert sorted(found) == list(range(2, min(max_branches, sample.n_pieces) + 1))
    for k, branch in found.items():
        assert len(np.unique(branch)) == k


@given(exact_samples(least_pieces=2), BRANCHES, st.integers(1, 8))
def test_exact_assignment_gives_every_branch_enough_rows(sample, max_branches, min_rows):
    for branch in assigned(sample, max_branches, min_rows=min_rows).values():
        assert sample.branch_rows(branch).min() >= min_rows


@given(exact_samples(least_pieces=2), st.integers(1, 8))
def test_exact_assignment_is_the_best_cut_of_the_ordered_means_with_enough_rows(sample, min_rows):
    means = sample.stats[:, 1] / [sample.criterion.weight(stats) for stats in sample.stats]
    losses = []
    for cut in range(1, sample.n_pieces):
        branch = np.zeros(sample.n_pieces, dtype=int)
        branch[np.argsort(means, kind="stable")[cut:]] = 1
        if sample.branch_rows(branch).min() >= min_rows:
            losses.append(sample.loss(branch))
    found = assigned(sample, 2, min_rows=min_rows)
    assert (2 in found) == bool(losses)
    if losses:
        assert_allclose(sample.loss(found[2]), min(losses), atol=sample.tolerance)


@given(samples(), st.sampled_from(KINDS), BRANCHES, st.integers(0, 2**64 - 1))
def test_branches_stay_below_k(sample, kind, max_branches, seed):
    for k, branch in assigned(sample, max_branches, kind=kind, seed=seed).items():
        assert branch.shape == (sample.n_pieces,)
        assert branch.max() < k


@given(samples_with_root_cut(), BRANCHES, st.integers(0, 9))
def test_descent_is_never_worse_than_its_starts(problem, max_branches, seed):
    sample, root_cut = problem
    start = assigned(sample, max_branches, kind="kmeans")
    options = {"kind": "coordinate_descent", "root_cut": root_cut, "seed": seed}
    root_split = np.arange(sample.n_pieces) >= root_cut
    for k, branch in assigned(sample, max_branches, **options).items():
        loss = sample.loss(branch)
        assert loss <= sample.loss(start[k]) + sample.tolerance
        assert root_cut == 0 or loss <= sample.loss(root_split) + sample.tolerance


@given(samples_with_root_cut(max_classes=5), BRANCHES)
def test_auto_is_never_worse_than_unshuffled_descent(problem, max_branches):
    sample, root_cut = problem
    descent = assigned(sample, max_branches, kind="coordinate_descent", root_cut=root_cut, seed=0)
    for k, branch in assigned(sample, max_branches, root_cut=root_cut).items():
        assert sample.loss(branch) <= sample.loss(descent[k]) + sample.tolerance


@given(samples_with_root_cut(max_classes=5), st.sampled_from(KINDS[:2]), BRANCHES)
def test_no_single_move_improves_on_a_descent(problem, kind, max_branches):
    sample, root_cut = problem
    for k, branch in assigned(sample, max_branches, kind=kind, root_cut=root_cut).items():
        loss = sample.loss(branch)
        for piece in range(sample.n_pieces):
            for other in range(k):
                moved = branch.copy()
                moved[piece] = other
                assert loss <= sample.loss(moved) + sample.tolerance


@given(samples(max_classes=5), BRANCHES)
def test_auto_never_loses_by_one_branch_more(sample, max_branches):
    losses = [sample.loss(branch) for branch in assigned(sample, max_branches).values()]
    assert all(more <= fewer + sample.tolerance for fewer, more in pairwise(losses))


@given(samples(least_pieces=2), st.sampled_from(KINDS), BRANCHES)
def test_same_seed_gives_the_same_assignment(sample, kind, max_branches):
    first, second = (assigned(sample, max_branches, kind=kind, seed=5) for _ in range(2))
    assert first.keys() == second.keys()
    for k in first:
        assert_array_equal(first[k], second[k])


def test_kmeans_finds_well_separated_groups():
    stats = 10 * np.eye(3)[[0, 1, 2, 0, 1, 2, 0]] + 1
    branch = assign(Criterion("gini", [3]), stats, max_branches=3, kind="kmeans")[3]
    assert len(np.unique(branch)) == 3
    assert_array_equal(branch[:3], branch[3:6])


def test_several_classes_part_by_auto_where_one_order_suffices():
    stats = np.array([[9, 0, 0], [0, 9, 0], [0, 0, 9], [9, 0, 0], [0, 9, 0.0]])
    branch = assign(Criterion("entropy", [3]), stats, max_branches=3)[3]
    assert_array_equal(branch[:2], branch[3:])
    assert len(np.unique(branch)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_fewer_pieces_than_branches_leave_k_out(kind):
    assert list(assign(Criterion("gini", [3]), np.eye(3)[:2], max_branches=4, kind=kind)) == [2]


@pytest.mark.parametrize(
    ("stats", "n_rows"),
    [(np.empty((0, 2)), None), (np.ones((3, 2)), [1, 1]), (np.ones((3, 1)), None)],
)
def test_statistics_that_do_not_fit_are_refused(stats, n_rows):
    with pytest.raises(ValueError, match="stats must be"):
        assign(Criterion("gini", [2]), stats, n_rows)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"max_branches": 1}, "max_branches"),
        ({"max_branches": 255}, "max_branches"),
        ({"root_cut": -1}, "root_cut"),
        ({"root_cut": 3}, "root_cut"),
    ],
)
def test_options_out_of_range_are_refused(option, message):
    with pytest.raises(ValueError, match=message):
        assign(Criterion("gini", [2]), np.ones((3, 2)), **option)
