"""Refinement: its objective falls, its nodes are the best they can be, its trees are as grown ones.

The objective is computed anew from fitted trees and training rows, see `objective_of`.
"""

import pickle
import tracemalloc
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import (
    UNRESTRAINED,
    assert_same_tree,
    counts_of,
    criterion_of,
    make_tree,
    noisy_classes,
    noisy_numbers,
    options_of,
)
from data import rows_of_nodes as paths_of
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from naive import entropy_mass, extra_parts, impurity, random_cuts, weighted_median
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.class_weight import compute_sample_weight

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, refine_tree
from shapetree.data._targets import PRICES, ClassGoal, Prices
from shapetree.export import export_text
from shapetree.grow import _histograms
from shapetree.refine import _working_tree
from shapetree.refine._loss import loss_of
from shapetree.refine._pair_step import assigned
from shapetree.tree._shape import PairShape

SEEDS = st.integers(0, 2**32 - 1)
fits = examples(40, suppress_health_check=[HealthCheck.too_slow])
CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
# Price of a category to be listed, in segments.
CATEGORY_SHARE = 0.5
# Trees with the values of their rows, whatever there is to learn; small leaves stay as they are.
PLAIN = {"resamples": 0, "shrinkage": 0, "min_samples_leaf": 1}


# The objective, computed anew


def priced_parts(branches, is_categorical):
    """Segments beyond two, or listed categories beyond the first, each half a part."""
    return extra_parts(branches, is_categorical) * (CATEGORY_SHARE if is_categorical else 1.0)


def parts_of_node(tree, node):
    """Branches beyond the first, and extra parts; a pair has one more than regions beyond two."""
    branches = tree.piece_branch[tree.pieces(node)]
    if tree.second_feature[node] >= 0:
        extra = len(branches) - 1
    else:
        extra = priced_parts(branches, np.isnan(tree.piece_upper[tree.pieces(node)][0]))
    return tree.n_branches[node] - 1 + extra


def n_parts(tree):
    return sum(parts_of_node(tree, node) for node in np.flatnonzero(~tree.is_leaf))


def as_columns(y):
    return np.asarray(y).reshape(len(y), -1)


def class_losses(objective, labels, shares):
    """Of rows of some classes, (n,), in leaves of some shares, (n, n_classes)."""
    if objective == "error":
        return (shares.argmax(axis=1) != labels).astype(float)
    of_own = shares[np.arange(len(labels)), labels]
    return -np.log2(np.where(of_own > 0, of_own, 1.0))


def class_loss(objective, y, weights, leaves):
    """Loss of all rows, summed over outputs; for log loss, of the rows that smooth leaves as well.

    Every leaf counts two rows of the classes' shares overall, which lose what they do there beyond
    what they would lose with these shares.
    """
    total = 0.0
    for column in as_columns(y).T:
        labels = np.unique(column, return_inverse=True)[1]
        prior = 2 * np.bincount(labels, weights) / weights.sum()
        for leaf in np.unique(leaves[weights > 0]):
            rows = leaves == leaf
            counts = np.bincount(labels[rows], weights[rows], minlength=len(prior))
            if objective == "error":
                total += counts.sum() - counts.max()
                continue
            shares = (counts + prior) / (counts + prior).sum()
            held = prior > 0
            total -= counts[held] @ np.log2(shares[held])
            total -= prior[held] @ (np.log2(shares[held]) - np.log2(prior[held] / 2))
    return total


def number_loss(y, predicted, weights, criterion):
    """Weighted loss of all rows, summed over outputs."""
    difference = np.abs(as_columns(y) - as_columns(predicted)).sum(axis=1)
    if criterion == "squared_error":
        difference = ((as_columns(y) - as_columns(predicted)) ** 2).sum(axis=1)
    return float(weights @ difference)


def centres(y, weights, criterion):
    """Mean or median of each output."""
    if criterion == "squared_error":
        return np.average(as_columns(y), axis=0, weights=weights)
    ordered = [np.argsort(column, kind="stable") for column in as_columns(y).T]
    return np.array(
        [
            weighted_median(column[order], weights[order])
            for column, order in zip(as_columns(y).T, ordered, strict=True)
        ]
    )


def sample_weights(y, sample_weight):
    return np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)


def importance_of(model, y, sample_weight):
    """What the rows' weights are multiplied by for their classes."""
    given, wanted = sample_weights(y, sample_weight), getattr(model, "class_weight", None)
    if wanted is None:
        return np.ones(len(y))
    if wanted != "balanced":
        return compute_sample_weight(wanted, y)
    factors = np.ones(len(y))
    for column in as_columns(y).T:
        totals = {label: given[column == label].sum() for label in np.unique(column[given > 0])}
        share = given.sum() / len(totals)
        factors *= [share / totals[label] if label in totals else 0.0 for label in column]
    return factors


def weights_of(model, y, sample_weight):
    return sample_weights(y, sample_weight) * importance_of(model, y, sample_weight)


def evidence_of(model, y, sample_weight):
    """Sample weights that are whole count rows; all else are shares.

    Shares are scaled so that rows which count c add up to (Σ c s)² / Σ c s² rows.
    """
    given, factors = sample_weights(y, sample_weight), importance_of(model, y, sample_weight)
    counts, shares = given, factors
    if not (given == np.rint(given)).all():
        counts, shares = np.ones(len(y)), given * factors
    return counts * shares * ((counts @ shares) / (counts @ shares**2))


def prices_of(model, y, weights):
    """What leaves beyond the first, and parts, cost: as given, or as while growing by default."""
    if options_of(model).refine_penalty != "auto":
        return Prices(options_of(model).refine_penalty, options_of(model).refine_penalty)
    if isinstance(model, ShapeTreeRegressor):
        unit, total = "numbers", weights.sum()
    elif model.objective == "error":
        unit, total = "error", weights.sum()
    else:
        counts = [np.bincount(np.unique(c, return_inverse=True)[1], weights)
                  for c in as_columns(y).T]  # fmt: skip
        unit, total = "entropy", np.mean([entropy_mass(count) for count in counts])
    leaf, part = min(PRICES[unit].leaf, 0.01 * total), PRICES[unit].part
    if unit == "numbers" or (unit == "entropy" and criterion_of(model) in ("auto", "entropy")):
        if model.max_branches == options_of(model).inner_max_leaf_nodes == 2:
            leaf = 0.0
        leaf = leaf if options_of(model).leaf_penalty == "auto" else options_of(model).leaf_penalty
        part = (
            part
            if options_of(model).segment_penalty == "auto"
            else options_of(model).segment_penalty
        )
    return Prices(leaf, part)


def penalties(tree, prices):
    """What all leaves and parts of a tree cost."""
    inner = np.flatnonzero(~tree.is_leaf)
    n_added = sum(tree.n_branches[inner] - 1)
    n_extra = n_parts(tree) - n_added
    return prices.leaf * n_added + prices.part * n_extra


def objective_of(model, X, y, sample_weight=None):
    """Penalised loss of a fitted tree on its training rows, from predictions alone."""
    weights = evidence_of(model, y, sample_weight)
    penalty = penalties(model.tree_, prices_of(model, y, weights))
    if isinstance(model, ShapeTreeClassifier):
        return class_loss(model.objective, y, weights, model.apply(X)) + penalty
    held = weights > 0
    root = np.broadcast_to(centres(as_columns(y)[held], weights[held], criterion_of(model)),
                           as_columns(y).shape)  # fmt: skip
    greatest = number_loss(y, root, weights, criterion_of(model))
    if greatest == 0:
        return penalty
    loss = max(number_loss(y, model.predict(X), weights, criterion_of(model)), 1e-12 * greatest)
    return float(weights.sum() * np.log(loss / greatest)) + penalty


def assert_falls(history):
    """No sweep may raise the objective, rounding aside."""
    assert np.all(np.isfinite(history))
    assert np.all(np.diff(history) <= 1e-9 * np.maximum(1.0, np.abs(history[:-1])))


# Random problems


@st.composite
def problems(draw, criteria=CRITERIA, n_rows=(8, 120), **fixed):
    """An estimator of few rows, its data and weights."""
    rng = np.random.default_rng(draw(SEEDS))
    criterion = draw(st.sampled_from(criteria))
    n = draw(st.integers(*n_rows))
    n_outputs = draw(st.sampled_from([1, 1, 2]))
    n_classes = draw(st.integers(2, 5))
    n_values = draw(st.sampled_from([3, 7, n]))
    X = rng.integers(0, n_values, (n, 4)).astype(float)
    score = np.sin(X[:, 0] * 7 / n_values) + (X[:, 1] > n_values / 2) * (X[:, 2] % 3 - 1)
    score = score[:, None] + rng.normal(scale=0.5, size=(n, n_outputs))
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.15] = np.nan
    params = (
        {
            "criterion": criterion,
            "max_depth": draw(st.integers(1, 4)),
            "max_branches": draw(st.integers(2, 4)),
            "pairs": draw(st.sampled_from([0, 0, "auto", 2])),
            # Otherwise no pairs are fitted in nodes of so few rows.
            "pair_penalty": draw(st.sampled_from([0.0, 0.02])),
            "leaf_penalty": draw(st.sampled_from([0.0, 1.0])),
            "segment_penalty": draw(st.sampled_from([0.0, 1.0, "auto"])),
            "refine_penalty": draw(st.sampled_from([0.0, 0.3, 2.0, "auto"])),
            "categorical_features": draw(st.sampled_from([None, [1], [1, 3]])),
            "max_bins": draw(st.sampled_from([None, 5, 255])),
            "max_parts": draw(st.sampled_from([2, 4, 6, None])),
            "random_state": 0,
            "n_threads": 1,
        }
        | PLAIN
        | fixed
    )
    if params["categorical_features"] and n_values == n:
        X[:, 1], X[:, 3] = X[:, 1] % 9, X[:, 3] % 9
    weights = rng.choice([0.0, 0.5, 1.0, 1.7, 3.0], n) if draw(st.booleans()) else None
    if weights is not None:
        weights[0] = 1.0
    if criterion in ("gini", "entropy"):
        bounds = np.quantile(score, np.arange(1, n_classes) / n_classes)
        y = np.searchsorted(bounds, score)
        params.setdefault("objective", draw(st.sampled_from(["log_loss", "error"])))
        if n_outputs == 1:
            params["class_weight"] = draw(st.sampled_from([None, "balanced"]))
        kind = ShapeTreeClassifier
    else:
        y, kind = np.round(score, draw(st.sampled_from([0, 2]))), ShapeTreeRegressor
    return make_tree(kind, **params), X, y[:, 0] if n_outputs == 1 else y, weights


def grown(model):
    """The same estimator without refinement."""
    return clone(model).set_params(refine=None)


# The objective


@fits
@given(problems())
def test_the_objective_never_rises_and_is_the_trees_own(problem):
    model, X, y, weights = problem
    model.fit(X, y, weights)
    assert_falls(model.refinement_history_)
    assert_allclose(
        model.refinement_history_[-1], objective_of(model, X, y, weights), rtol=1e-8, atol=1e-8
    )


@fits
@given(problems())
def test_refinement_starts_from_the_grown_tree(problem):
    model, X, y, weights = problem
    model.fit(X, y, weights)
    before = objective_of(grown(model).fit(X, y, weights), X, y, weights)
    assert_allclose(model.refinement_history_[0], before, rtol=1e-8, atol=1e-8)
    assert len(model.refinement_history_) <= 1 + options_of(model).refine_iter


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "params", [{}, {"max_branches": 2, "max_depth": 5}, {"pairs": "auto", "pair_penalty": 0.0}]
)
def test_refinement_lowers_the_objective_of_noisy_trees(criterion, params):
    n_rows = 200 if "pairs" in params else 400
    penalties = {"leaf_penalty": 0.0, "refine_penalty": 1.0}
    model, X, y = noisy_problem(criterion, n_rows, **params, **penalties)
    history = model.fit(X, y).refinement_history_
    assert_falls(history)
    assert history[-1] < history[0]
    assert_allclose(history[-1], objective_of(model, X, y), rtol=1e-8)


def noisy_problem(criterion, n_rows=400, **params):
    rng = np.random.default_rng(0)
    if criterion in ("gini", "entropy"):
        X, y = noisy_classes(rng, n_rows=n_rows)
        return make_tree(ShapeTreeClassifier, criterion=criterion, **PLAIN | params), X, y
    X, y = noisy_numbers(rng, n_rows=n_rows)
    return make_tree(ShapeTreeRegressor, criterion=criterion, **PLAIN | params), X, y


def test_only_the_last_fit_has_a_history():
    model, X, y = noisy_problem("gini")
    assert hasattr(model.fit(X, y), "refinement_history_")
    assert not hasattr(grown(model).fit(X, y), "refinement_history_")


def test_a_fit_without_refinement_leaves_no_history_behind():
    model, X, y = noisy_problem("gini")
    model.fit(X, y)
    assert not hasattr(model.set_params(refine=None).fit(X, y), "refinement_history_")


@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_sweep_goes_on_where_the_last_one_stopped(criterion):
    histories = []
    for refine_iter in (1, 2, 20):
        model, X, y = noisy_problem(criterion, refine_iter=refine_iter)
        histories.append(model.fit(X, y).refinement_history_)
        assert len(histories[-1]) <= 1 + refine_iter
    one, two, many = histories
    assert_allclose(one[0], many[0])
    assert two[-1] <= one[-1] + 1e-9 * abs(one[-1])
    assert many[-1] <= two[-1] + 1e-9 * abs(two[-1])


# Refining what is refined


@fits
@given(problems(refine_iter=50))
def test_refining_twice_changes_nothing(problem):
    model, X, y, weights = problem
    model.fit(X, y, weights)
    if len(model.refinement_history_) > options_of(model).refine_iter:
        return
    again = refine_tree(model, X, y, weights)
    assert_allclose(again.refinement_history_[0], model.refinement_history_[-1])
    # A node is searched for pairs a few times only; another refinement begins to count anew.
    if model.pairs:
        assert_falls(again.refinement_history_)
        return
    assert len(again.refinement_history_) == 1
    assert_same_tree(model, again)


@fits
@given(problems())
def test_refining_a_grown_tree_is_what_a_fit_does(problem):
    model, X, y, weights = problem
    model.fit(X, y, weights)
    refined = refine_tree(grown(model).fit(X, y, weights), X, y, weights)
    assert_same_tree(model, refined)
    assert_array_equal(model.refinement_history_, refined.refinement_history_)


def test_refinement_learns_no_category_that_only_rows_of_weight_zero_have():
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(size=300), rng.integers(0, 4, 300)]
    y = (X[:, 0] > 0) ^ (X[:, 1] == 2)
    weights = np.ones(300)
    weights[X[:, 1] == 3] = 0.0
    options = {"categorical_features": [1], "pairs": "auto", "max_depth": 1, "resamples": 0}
    model = ShapeTreeClassifier(**options).fit(X, y, weights)
    greedy = ShapeTreeClassifier(**options | {"pairs": 0, "refine": None}).fit(X, y, weights)
    assert greedy.tree_.used_features == [0]
    refined = refine_tree(greedy.set_params(pairs="auto"), X, y, weights)
    assert refined.tree_.used_features == model.tree_.used_features == [0, 1]
    assert "3.0" not in export_text(model)
    assert "3.0" not in export_text(refined)


@fits
@given(problems(n_rows=(40, 120)), st.integers(5, 40), SEEDS)
def test_trees_can_be_refined_for_other_rows(problem, n_rows, seed):
    model, X, y, weights = problem
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[:n_rows]
    # Other values, beyond and between those of training, and other missing ones.
    X_new = X[rows] + rng.choice([0.0, 0.0, 0.3, -0.4, 100.0], (len(rows), 4))
    X_new[rng.random(X_new.shape) < 0.1] = np.nan
    if model.categorical_features:
        X_new[:, [1, 3]] = X[rows][:, [1, 3]]
    y_new, weights_new = y[rows], None if weights is None else weights[rows]
    if weights_new is not None:
        weights_new[0] = 1.0
    before = model.fit(X, y, weights).tree_
    refined = refine_tree(model, X_new, y_new, weights_new)
    assert model.tree_ is before
    assert_falls(refined.refinement_history_)
    assert_allclose(
        refined.refinement_history_[-1],
        objective_of(refined, X_new, y_new, weights_new),
        rtol=1e-8,
        atol=1e-8,
    )
    assert_statistics_hold(refined, X_new, y_new, weights_new)
    assert refined.tree_.n_node_samples.min() >= 1


# Refined trees are as grown ones


def assert_statistics_hold(model, X, y, weights):
    """Every node's statistics are those of the rows that pass it."""
    tree, passes = model.tree_, paths_of(model, X)
    counts = counts_of(sample_weights(y, weights))
    weights = weights_of(model, y, weights)
    passes = passes & (weights > 0)
    assert_array_equal(tree.n_node_samples, passes @ counts)
    assert_allclose(tree.weighted_n_node_samples, passes @ weights)
    columns = as_columns(y).T
    for node, rows in enumerate(passes):
        if isinstance(model, ShapeTreeClassifier):
            classes = model.classes_ if model.n_outputs_ > 1 else [model.classes_]
            counts = [
                np.array([weights[rows & (column == name)].sum() for name in names])
                for column, names in zip(columns, classes, strict=True)
            ]
            for output, count in enumerate(counts):
                assert_allclose(tree.value[node, output, : len(count)], count / count.sum())
            stats, sizes = np.concatenate(counts), [len(count) for count in counts]
            expected = impurity(criterion_of(model), sizes, None, stats)
            assert_allclose(tree.impurity[node] * weights[rows].sum(), expected, atol=1e-9)
        else:
            centre = centres(as_columns(y)[rows], weights[rows], criterion_of(model))
            assert_allclose(tree.value[node, :, 0], centre, rtol=1e-9, atol=1e-9)
            loss = number_loss(
                as_columns(y)[rows], np.broadcast_to(centre, (rows.sum(), len(centre))),
                weights[rows], criterion_of(model),
            )  # fmt: skip
            mean = loss / weights[rows].sum() / len(centre)
            assert_allclose(tree.impurity[node], mean, atol=1e-9)


def branch_rows(model, X, weights):
    """Of each inner node: rows of its branches."""
    tree, passes = model.tree_, paths_of(model, X) & (weights > 0)
    return {
        int(node): passes[list(tree.children(int(node)))].sum(axis=1)
        for node in np.flatnonzero(~tree.is_leaf)
    }


@fits
@given(problems())
def test_statistics_are_those_of_the_rows(problem):
    model, X, y, weights = problem
    assert_statistics_hold(model.fit(X, y, weights), X, y, weights)


@fits
@given(problems())
def test_every_node_splits_its_rows_among_all_its_branches(problem):
    model, X, y, weights = problem
    tree = model.fit(X, y, weights).tree_
    held = branch_rows(model, X, weights_of(model, y, weights))
    for node, counts in held.items():
        assert len(counts) >= 2
        assert counts.min() >= 1
        branches = tree.piece_branch[tree.pieces(node)]
        used = {*branches.tolist(), int(tree.missing_branch[node])}
        assert used == set(range(len(counts)))
        if tree.second_feature[node] < 0 and not np.isnan(tree.piece_upper[tree.pieces(node)][0]):
            assert np.all(branches[1:] != branches[:-1])


@fits
@given(problems(pairs=0))
def test_missing_values_go_where_training_saw_them_or_to_the_largest_branch(problem):
    model, X, y, weights = problem
    tree = model.fit(X, y, weights).tree_
    weights = weights_of(model, y, weights)
    passes = paths_of(model, X) & (weights > 0)
    for node in np.flatnonzero(~tree.is_leaf):
        lacks = np.isnan(X[passes[node], tree.feature[node]])
        assert tree.saw_missing[node] == lacks.any()
        sizes = tree.weighted_n_node_samples[list(tree.children(node))]
        if not lacks.any():
            assert_allclose(sizes[tree.missing_branch[node]], sizes.max())


@fits
@given(problems())
def test_thresholds_lie_between_the_rows_values(problem):
    model, X, y, weights = problem
    model.set_params(max_bins=None, pairs=0)
    tree = model.fit(X, y, weights).tree_
    passes = paths_of(model, X) & (weights_of(model, y, weights) > 0)
    for node in np.flatnonzero(~tree.is_leaf):
        values = np.unique(X[passes[node], tree.feature[node]])
        values = values[~np.isnan(values)]
        for upper in tree.piece_upper[tree.pieces(node)][:-1]:
            if not np.isnan(upper):
                below, above = values[values <= upper].max(), values[values > upper].min()
                assert below <= upper < above
                if model._fitted.features[tree.feature[node]].is_whole:
                    assert upper == np.floor(upper)
                else:
                    assert abs(upper - (below + above) / 2) <= 0.3 * (above - below)


@fits
@given(
    problems(n_rows=(30, 120)),
    st.sampled_from([1, 5, 0.1]),
    st.sampled_from([0.0, 0.05, 0.2]),
    st.sampled_from([2, 9, 25, 0.3]),
    st.sampled_from([None, 2, 3, 5]),
    st.sampled_from([None, 1, 2]),
)
def test_limits_of_growth_hold(problem, min_leaf, min_weight, min_split, most_leaves, inner_depth):
    model, X, y, weights = problem
    model.set_params(
        min_samples_leaf=min_leaf,
        search__min_weight_fraction_leaf=min_weight,
        min_samples_split=min_split,
        search__inner_max_leaf_nodes=most_leaves,
        search__inner_max_depth=inner_depth,
        max_leaf_nodes=6,
    )
    tree = model.fit(X, y, weights).tree_
    weights = weights_of(model, y, weights)
    n_rows = np.count_nonzero(weights)
    if tree.node_count > 1:
        least = min_leaf if min_leaf >= 1 else int(np.ceil(min_leaf * n_rows))
        assert tree.n_node_samples[tree.is_leaf].min() >= least
        least = min_weight * weights.sum() * (1 - 1e-12)
        assert tree.weighted_n_node_samples[tree.is_leaf].min() >= least
        least = min_split if min_split >= 2 else int(np.ceil(min_split * n_rows))
        assert tree.n_node_samples[~tree.is_leaf].min() >= least
    assert tree.max_depth <= model.max_depth
    assert tree.n_branches.max() <= model.max_branches
    assert tree.n_leaves <= 6
    most = min(most_leaves or 10**9, 2 ** (inner_depth or 30))
    for node in np.flatnonzero(~tree.is_leaf):
        upper = tree.piece_upper[tree.pieces(node)]
        if tree.second_feature[node] >= 0 or not np.isnan(upper[0]):
            assert len(upper) <= most


def smallest_segments(model, X, weights, least_segments=2):
    """Fewest rows of a segment of each node on one ordered feature, if it has so many."""
    tree, passes = model.tree_, paths_of(model, X) & (weights > 0)
    for node in np.flatnonzero(~tree.is_leaf):
        upper = tree.piece_upper[tree.pieces(node)]
        is_ordered = tree.second_feature[node] < 0 and not np.isnan(upper[0])
        if is_ordered and len(upper) >= least_segments:
            values = X[passes[node], tree.feature[node]]
            values = values[~np.isnan(values)]
            yield np.bincount(np.searchsorted(upper, values), minlength=len(upper)).min()


@fits
@given(problems(n_rows=(30, 120)), st.sampled_from([2, 6, 0.1]))
def test_segments_hold_the_rows_asked_for(problem, least):
    model, X, y, weights = problem
    model.set_params(search__inner_min_samples_leaf=least).fit(X, y, weights)
    weights = weights_of(model, y, weights)
    least = least if least >= 1 else int(np.ceil(least * np.count_nonzero(weights)))
    # Plain thresholds are exempt, as they are when a tree grows.
    for smallest in smallest_segments(model, X, weights, least_segments=3):
        assert smallest >= least


def waves(seed, n_rows, n_values):
    """Four features, and a score that depends on three of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_values, (n_rows, 4)).astype(float)
    score = np.sin(X[:, 0] * 7 / n_values) + (X[:, 1] > n_values / 2) * (X[:, 2] % 3 - 1)
    return X, score + rng.normal(scale=0.5, size=n_rows)


EAGER = {"leaf_penalty": 0.0, "segment_penalty": 0.0, "refine_penalty": 0.3, "max_depth": 3}


def test_segments_below_a_changed_node_hold_the_rows_asked_for():
    X, score = waves(9, 150, 150)
    y = np.searchsorted(np.quantile(score, [0.33, 0.66]), score)
    model = make_tree(ShapeTreeClassifier, **EAGER, inner_min_samples_leaf=5).fit(X, y)
    # Plain thresholds are exempt, as they are when a tree grows.
    assert min(smallest_segments(model, X, np.ones(150), least_segments=3)) >= 5


def test_only_nodes_with_enough_rows_are_split():
    X, score = waves(230, 150, 150)
    y = np.searchsorted(np.quantile(score, [0.33, 0.66]), score)
    tree = make_tree(ShapeTreeClassifier, **EAGER, min_samples_split=20).fit(X, y).tree_
    assert tree.n_node_samples[~tree.is_leaf].min() >= 20


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "params", [{"n_rows": 20_000}, {"n_rows": 200, "pairs": "auto", "pair_penalty": 0.0}]
)
@pytest.mark.usefixtures("threads_at_once")
def test_the_tree_is_the_same_for_any_number_of_threads(criterion, params):
    fitted = []
    for n_threads in (1, 2, 5):
        model, X, y = noisy_problem(criterion, n_threads=n_threads, leaf_penalty=1.0, **params)
        fitted.append(model.fit(X, y))
    for other in fitted[1:]:
        assert_same_tree(fitted[0], other)
        assert_array_equal(fitted[0].refinement_history_, other.refinement_history_)


@pytest.mark.parametrize("params", [{}, {"pairs": "auto", "pair_penalty": 0.0}])
def test_refined_trees_can_be_pickled(params):
    model, X, y = noisy_problem("gini", n_rows=150, **params)
    copy = pickle.loads(pickle.dumps(model.fit(X, y)))
    assert_same_tree(model, copy)
    assert_array_equal(model.predict_proba(X), copy.predict_proba(X))
    assert_array_equal(model.refinement_history_, copy.refinement_history_)


@pytest.mark.filterwarnings("ignore:.*that training has not seen")
def test_categories_of_a_frame_are_refined_in_a_pipeline():
    rng = np.random.default_rng(0)
    n = 600
    frame = pd.DataFrame(
        {
            "size": rng.random(n),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue", "grey"], n)),
            "shape": rng.choice(["round", "square", None], n),
        }
    )
    is_warm = frame["colour"].isin(["red", "grey"]).to_numpy()
    y = np.where(is_warm ^ (frame["shape"] == "round"), "yes", "no")
    y = np.where(rng.random(n) < 0.1, "no", y)
    model = make_pipeline(
        FunctionTransformer(), make_tree(ShapeTreeClassifier, max_depth=3, **PLAIN)
    ).fit(frame, y)
    refined = model[-1]
    assert_falls(refined.refinement_history_)
    assert_allclose(refined.refinement_history_[-1], objective_of(refined, frame, y))
    assert model.score(frame, y) > 0.9
    unknown = frame.assign(colour="pink", shape=None)
    assert set(model.predict(unknown)) <= {"yes", "no"}


def test_missing_values_are_routed_by_what_they_lose():
    # The first feature's missing values are of class 1, its values tell the classes apart.
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    X[rng.random(400) < 0.3, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1, X[:, 0] > 0.6).astype(int)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    assert model.score(X, y) == 1.0
    tree = model.tree_
    assert tree.saw_missing[0]
    assert model.predict([[np.nan, 0.5]]) == 1


# Exactness


def reduced_objective(model, X, y, weights, scale):
    """Of a fitted root with leaves: its reduced problem's value for any branches of the rows.

    Gives a function of branches and extra parts, for the leaves' present values.
    """
    tree = model.tree_
    values = tree.value[1:]
    k, prices = len(values), prices_of(model, y, weights)
    if isinstance(model, ShapeTreeClassifier):
        labels = np.unique(y, return_inverse=True)[1]
        prior = 2 * np.bincount(labels, weights) / weights.sum()
        counts = values[:, 0] * tree.weighted_n_node_samples[1:, None] * scale + prior
        shares = counts / counts.sum(axis=1, keepdims=True)
        if model.objective == "error":
            shares = values[:, 0]
        losses = np.stack(
            [class_losses(model.objective, labels, np.tile(s, (len(y), 1))) for s in shares], axis=1
        )
        price = 1.0
    else:
        centre = centres(y, weights, criterion_of(model))
        power = 2 if criterion_of(model) == "squared_error" else 1
        losses = np.abs(as_columns(y) - values[:, 0, 0]) ** power
        own = number_loss(y, model.predict(X), weights, criterion_of(model))
        root = number_loss(y, np.full(len(y), centre[0]), weights, criterion_of(model))
        price = max(own, 1e-12 * root) / weights.sum()
    losses = losses * weights[:, None]

    def value(branches, extra):
        return losses[np.arange(len(y)), branches].sum() + price * (
            prices.part * extra + prices.leaf * (k - 1)
        )

    return value


def all_shapes(X, k, is_categorical):
    """Branches of the rows, and extra parts, for every shape function of every feature."""
    for feature in range(X.shape[1]):
        values, code = np.unique(X[:, feature], return_inverse=True)
        has_missing = bool(np.isnan(values).any())
        n_values = len(values) - has_missing
        for way in product(range(k), repeat=len(values)):
            yield np.array(way)[code], priced_parts(np.array(way[:n_values]), is_categorical)


@st.composite
def stumps(draw, **fixed):
    """A depth-1 problem of few distinct values."""
    rng = np.random.default_rng(draw(SEEDS))
    criterion = draw(st.sampled_from(CRITERIA))
    n = draw(st.integers(10, 60))
    X = rng.integers(0, 5, (n, 2)).astype(float)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    score = np.nan_to_num((X[:, 0] % 2) + (X[:, 1] > 2), nan=1.0) + rng.normal(scale=0.4, size=n)
    params = (
        {
            "criterion": criterion,
            "max_depth": 1,
            "max_branches": draw(st.integers(2, 3)),
            "refine_penalty": draw(st.sampled_from([0.0, 0.3, 1.0, 3.0, "auto"])),
            "leaf_penalty": 0.0,
            "segment_penalty": draw(st.sampled_from([0.0, 1.0, "auto"])),
            "max_parts": None,
            "refine_iter": 50,
            "n_threads": 1,
        }
        | PLAIN
        | fixed
    )
    weights = rng.choice([0.5, 1.0, 1.7], n) if draw(st.booleans()) else None
    if criterion in ("gini", "entropy"):
        params["objective"] = draw(st.sampled_from(["log_loss", "error"]))
        return (
            make_tree(ShapeTreeClassifier, **params),
            X,
            np.floor(score * 1.2).astype(int),
            weights,
        )
    return make_tree(ShapeTreeRegressor, **params), X, np.round(score, 2), weights


def assert_no_shape_is_better(model, X, y, weights, is_categorical=False):
    """No single feature's shape function with as many branches does better for these leaves."""
    model.fit(X, y, weights)
    assert len(model.refinement_history_) <= options_of(model).refine_iter
    tree = model.tree_
    if tree.node_count == 1:
        return
    evidence = evidence_of(model, y, weights)
    scale = evidence.sum() / weights_of(model, y, weights).sum()
    value = reduced_objective(model, X, y, evidence, scale)
    k = tree.node_count - 1
    present = value(model.apply(X) - 1, parts_of_node(tree, 0) - (k - 1))
    least = min(value(*shape) for shape in all_shapes(X, k, is_categorical))
    assert present <= least + 1e-7 * max(1.0, abs(least))


@examples(30, suppress_health_check=[HealthCheck.too_slow])
@given(stumps())
def test_no_shape_function_of_numbers_is_better_for_a_roots_leaves(stump):
    assert_no_shape_is_better(*stump)


@examples(30, suppress_health_check=[HealthCheck.too_slow])
@given(stumps(categorical_features=[0, 1]))
def test_no_shape_function_of_categories_is_better_for_a_roots_leaves(stump):
    assert_no_shape_is_better(*stump, is_categorical=True)


def test_no_shape_function_of_categories_is_better_where_listing_them_hardly_pays():
    rng = np.random.default_rng(1)
    n = int(rng.integers(10, 60))
    X = rng.integers(0, 5, (n, 2)).astype(float)
    score = (X[:, 0] % 2) + (X[:, 1] > 2) + rng.normal(scale=0.4, size=n)
    model = make_tree(ShapeTreeRegressor,
        criterion="absolute_error", max_depth=1, refine_penalty=3.0, leaf_penalty=0.0,
        segment_penalty=0.0, refine_iter=50, categorical_features=[0, 1], **PLAIN,
    )  # fmt: skip
    assert_no_shape_is_better(model, X, np.round(score, 2), None, is_categorical=True)


# Plain thresholds: the AxTAO special case


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_depth", [2, 4])
def test_thresholds_stay_thresholds_and_do_no_worse_than_cart(criterion, max_depth):
    limits = {"inner_max_leaf_nodes": 2, "max_branches": 2, "max_depth": max_depth}
    params = {"refine_penalty": 0.0, "refine_iter": 30, "max_bins": None}
    model, X, y = noisy_problem(criterion, **limits, **params)
    tree = model.fit(X, y).tree_
    assert set(np.diff(tree.piece_start)[~tree.is_leaf]) == {2}
    assert set(tree.n_branches) == {0, 2}
    is_classifier = criterion in ("gini", "entropy")
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    cart = kind(criterion=criterion, max_depth=max_depth, random_state=0).fit(X, y)
    if is_classifier:
        loss = class_loss("log_loss", y, np.ones(len(y)), cart.apply(X))
    else:
        ones = np.ones(len(y))
        root = np.full(len(y), centres(y, ones, criterion)[0])
        loss = len(y) * np.log(
            number_loss(y, cart.predict(X), ones, criterion) / number_loss(y, root, ones, criterion)
        )
    assert model.refinement_history_[-1] <= loss + 1e-6


@fits
@given(
    problems(pairs=0, categorical_features=None, refine_penalty=0.0, max_bins=None, max_branches=2)
)
def test_refined_thresholds_are_no_worse_than_grown_ones(problem):
    model, X, y, weights = problem
    X = np.nan_to_num(X, nan=1.0)
    model.set_params(search__inner_max_leaf_nodes=2).fit(X, y, weights)
    before = objective_of(grown(model).fit(X, y, weights), X, y, weights)
    assert objective_of(model, X, y, weights) <= before + 1e-9 * max(1.0, abs(before))
    assert np.diff(model.tree_.piece_start).max() <= 2


# Few parts


def parts_of(tree):
    """Segments or regions of each inner node; listed categories of each that has categories."""
    n_parts, n_listed = [0], [0]
    for node in np.flatnonzero(~tree.is_leaf):
        branches = tree.piece_branch[tree.pieces(node)]
        if tree.second_feature[node] < 0 and np.isnan(tree.piece_upper[tree.pieces(node)][0]):
            n_listed.append(len(branches) - np.bincount(branches).max())
        else:
            n_parts.append(len(branches))
    return max(n_parts), max(n_listed)


@fits
@given(problems(segment_penalty=0.0, refine_penalty=0.0), st.sampled_from([None, "tao"]))
def test_no_node_has_more_parts_than_allowed(problem, refine):
    model, X, y, weights = problem
    tree = model.set_params(refine=refine).fit(X, y, weights).tree_
    if model.max_parts is not None:
        n_parts, n_listed = parts_of(tree)
        assert n_parts <= model.max_parts
        assert n_listed <= 12


@pytest.mark.parametrize("refine", [None, "tao"])
@pytest.mark.parametrize("pairs", [0, "all"])
@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_nodes_of_default_trees_have_six_parts_at_most(kind, pairs, refine):
    rng = np.random.default_rng(0)
    x, z = rng.random((2, 4000))
    colour = rng.integers(0, 40, 4000)
    score = np.sin(30 * x) * np.sign(np.sin(9 * z)) + 2 * (colour % 2)
    y = score > 1 if kind is ShapeTreeClassifier else score
    table = pd.DataFrame({"x": x, "z": z, "colour": colour.astype(str)})
    few = kind(pairs=pairs, refine=refine).fit(table, y)
    n_parts, n_listed = parts_of(few.tree_)
    assert n_parts <= 6
    assert n_listed <= 12
    if pairs == 0:
        many = kind(refine=refine, max_parts=None).fit(table, y)
        assert parts_of(many.tree_)[0] > 6 or parts_of(many.tree_)[1] > 12


def naive_assigned(shape, costs, price, most):
    """Least loss of any pruning of a pair's cuts to so many regions, and missing values' own."""

    def ways(target):
        """Regions' losses in each branch, for every pruning below a target."""
        if target < 0:
            yield [costs[-1 - target]]
            return
        below = [
            [*low, *high]
            for low in ways(shape.cut_low[target])
            for high in ways(shape.cut_high[target])
        ]
        yield [np.sum(below[0], axis=0)]
        yield from below

    return (
        min(
            sum(loss.min() for loss in way) + price * (len(way) - 1)
            for way in ways(0)
            if len(way) <= most
        )
        + costs[-1].min()
    )


@given(SEEDS, st.integers(1, 5), st.integers(2, 3), st.integers(1, 4), st.sampled_from([0, 1, 3]))
def test_no_pruning_of_a_pair_to_so_many_regions_loses_less(seed, n_cuts, k, most, price):
    rng = np.random.default_rng(seed)
    cuts = random_cuts(rng, n_cuts)
    a, b, threshold, low, high = map(np.array, zip(*cuts, strict=True))
    shape = PairShape(
        first=0, second=1, n_branches=k, positions=(np.empty(0), np.empty(0)),
        cut_a=a, cut_b=b, cut_threshold=threshold,
        cut_low=low.astype(np.int32), cut_high=high.astype(np.int32),
        branch_of_piece=np.zeros(n_cuts + 1, np.int32), missing_branch=0, saw_missing=True,
    )  # fmt: skip
    costs = rng.integers(-8, 9, (n_cuts + 2, k)).astype(float)
    costs[:, 0] = 0.0
    found = assigned(costs, shape, float(price), most)
    least = naive_assigned(shape, costs, price, most)
    if found is None:
        assert costs[:-1].sum(axis=0).min() + costs[-1].min() == least
        return
    split, losses = found
    n_regions = len(split.cuts.branch_of_piece)
    assert 2 <= n_regions <= most
    assert sum(losses) + price * (n_regions - 1) == least


@given(SEEDS, st.integers(1, 2), st.integers(2, 4))
def test_leaves_are_the_best_for_their_rows_and_the_prior(seed, n_outputs, n_classes):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, (40, n_outputs)).astype(np.int32)
    loss = loss_of(ClassGoal(labels, [n_classes] * n_outputs, None))
    leaves = rng.integers(0, 3, 40)
    counts = np.array([
        np.concatenate([np.bincount(c[leaves == leaf], minlength=n_classes) for c in labels.T])
        for leaf in range(3)
    ], dtype=float)  # fmt: skip
    lines = loss.fit_leaves(SimpleNamespace(leaf_sums=lambda _: counts), [0, 1, 2])
    total = (counts * lines).sum() + loss.added(lines).sum()
    every = class_loss("log_loss", labels, np.ones(40), leaves)
    # A leaf without rows has the prior's shares, and nothing to lose.
    assert_allclose(total, every, atol=1e-6)
    other = rng.dirichlet(np.ones(n_classes), (3, n_outputs)).reshape(3, -1)
    others = -np.log2(np.maximum(other, 1e-300))
    assert total <= (counts * others).sum() + loss.added(others).sum() + 1e-6


# Parameters


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("refine", "TAO"),
        ("refine", True),
        ("refine", 1),
        ("refine_iter", 0),
        ("refine_iter", -1),
        ("refine_iter", 1.5),
        ("refine_iter", None),
        ("refine_iter", "auto"),
        ("refine_penalty", -1),
        ("refine_penalty", -0.1),
        ("refine_penalty", np.nan),
        ("refine_penalty", "x"),
        ("refine_penalty", None),
    ],
)
@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_bad_parameters_are_refused_before_any_work(kind, name, value):
    model = make_tree(kind, **{name: value})
    # The table, too, is bad; the parameter is looked at first.
    with pytest.raises(ValueError, match=rf"'(search\.)?{name}' parameter"):
        model.fit("not a table", None)
    assert not hasattr(model, "tree_")


def test_a_forbidding_penalty_leaves_the_root_alone():
    for criterion in CRITERIA:
        model, X, y = noisy_problem(criterion, refine_penalty=1e9)
        assert model.fit(X, y).tree_.node_count == 1


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_higher_penalty_gives_fewer_parts(criterion):
    parts = []
    for penalty in [0.0, 3.0, 30.0, 1e9]:
        model, X, y = noisy_problem(criterion, refine_penalty=penalty)
        parts.append(n_parts(model.fit(X, y).tree_))
    assert parts[0] >= parts[1] >= parts[2] >= parts[3] == 0
    assert parts[0] > parts[2]


# Degenerate data


DEGENERATE = {
    "one row": ([[1.0]], [1]),
    "two rows": ([[1.0], [2.0]], [0, 1]),
    "two equal rows": ([[1.0], [1.0]], [0, 1]),
    "one class": ([[1.0], [2.0], [3.0]], [7, 7, 7]),
    "an empty column": ([[np.nan, 0.0], [np.nan, 1.0], [np.nan, 2.0]] * 9, [0, 1, 0] * 9),
    "nothing but missing values": ([[np.nan], [np.nan], [np.nan]], [0, 1, 0]),
    "infinite values": ([[-np.inf], [0.0], [np.inf]] * 9, [0, 1, 0] * 9),
}


@pytest.mark.parametrize("data", DEGENERATE)
@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
@pytest.mark.parametrize(
    "params", [{}, {"max_bins": None}, {"refine_iter": 1}, {"pairs": "all", "pair_penalty": 0.0}]
)
def test_degenerate_data_are_refined(data, kind, params):
    X, y = map(np.array, DEGENERATE[data])
    for criterion in ["gini", "entropy"] if kind is ShapeTreeClassifier else CRITERIA[2:]:
        for penalties in [{}, {"leaf_penalty": 0.0, "segment_penalty": 0, "refine_penalty": 0.0}]:
            model = make_tree(kind, criterion=criterion, **PLAIN, **params, **penalties).fit(X, y)
            assert_falls(model.refinement_history_)
            assert_statistics_hold(model, X, y, None)
            assert_allclose(
                model.refinement_history_[-1], objective_of(model, X, y), rtol=1e-8, atol=1e-8
            )


@pytest.mark.parametrize("weight", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("refine_penalty", ["auto", 0.0])
def test_extreme_weights_are_refined(weight, criterion, refine_penalty):
    model, X, y = noisy_problem(criterion, n_rows=100, refine_penalty=refine_penalty)
    model.fit(X, y, np.full(100, weight))
    assert_falls(model.refinement_history_)
    assert_array_equal(model.tree_.n_node_samples, paths_of(model, X).sum(axis=1))
    assert np.isfinite(model.tree_.value).all()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_some_rows_may_weigh_next_to_nothing(criterion):
    model, X, y = noisy_problem(criterion, n_rows=200, leaf_penalty=0.0)
    weights = np.where(np.arange(200) % 3 == 0, 1e-300, 1.0)
    model.fit(X, y, weights)
    assert_falls(model.refinement_history_)
    # Weights are rounded to a grid on which sums are exact, and none vanishes there.
    assert_array_equal(model.tree_.n_node_samples, paths_of(model, X).sum(axis=1))
    assert_allclose(
        model.tree_.weighted_n_node_samples, paths_of(model, X) @ weights, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_objective_never_rises_where_nearly_all_rows_weigh_next_to_nothing(criterion):
    kind = ShapeTreeRegressor if criterion.endswith("error") else ShapeTreeClassifier
    for seed in range(60):
        rng = np.random.default_rng([seed, 4])
        X = rng.normal(size=(24, 2)).round(1)
        score = X[:, 0] + rng.normal(scale=0.5, size=24)
        y = score.round(2) if kind is ShapeTreeRegressor else score > 0
        free = {"leaf_penalty": 0.0, "segment_penalty": 0.0, "refine_penalty": 0.0, "resamples": 0}
        model = make_tree(kind, criterion=criterion, max_depth=3, min_samples_leaf=1, **free)
        model.fit(X, y, 10.0 ** rng.uniform(-20, 20, 24))
        assert_falls(model.refinement_history_)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("criterion", CRITERIA[2:])
def test_the_scale_of_y_does_not_matter(scale, criterion):
    # A power of two, so that rounding is the same.
    scale = 2.0 ** round(np.log2(scale))
    model, X, y = noisy_problem(criterion)
    scaled, _, _ = noisy_problem(criterion)
    model.fit(X, y)
    scaled.fit(X, y * scale)
    assert_array_equal(model.refinement_history_, scaled.refinement_history_)
    assert_array_equal(model.predict(X) * scale, scaled.predict(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_tree_that_fits_perfectly_is_left_in_peace(criterion):
    X = np.repeat(np.arange(8.0), 50)[:, None]
    y = np.array([0, 1, 0, 2, 2, 1, 0, 1]).repeat(50)
    kind = ShapeTreeClassifier if criterion in ("gini", "entropy") else ShapeTreeRegressor
    model = make_tree(kind, criterion=criterion, **PLAIN).fit(X, y)
    assert_falls(model.refinement_history_)
    assert_array_equal(model.predict(X), y)
    assert model.tree_.node_count == grown(model).fit(X, y).tree_.node_count


def test_a_perfect_tree_of_numbers_settles():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (20_000, 4)).astype(float)
    y = rng.random((6, 6))[X[:, 0].astype(int), X[:, 1].astype(int)]
    params = {"max_branches": 6, "max_depth": 3, "leaf_penalty": 0.0, "refine_penalty": 1.0}
    model = make_tree(ShapeTreeRegressor, **PLAIN, **params).fit(X, y)
    assert_falls(model.refinement_history_)
    assert len(model.refinement_history_) <= options_of(model).refine_iter


def test_exact_bins_are_refined():
    for criterion in CRITERIA:
        model, X, y = noisy_problem(criterion, **UNRESTRAINED | {"refine": "tao", "max_depth": 4})
        model.fit(X, y)
        assert_falls(model.refinement_history_)
        assert_statistics_hold(model, X, y, None)


@pytest.mark.parametrize("refine", [None, "tao"])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("params", [{"max_bins": None}, {"lookahead": 3}])
def test_nodes_may_be_looked_at_a_few_at_a_time(monkeypatch, criterion, refine, params):
    params = UNRESTRAINED | {"refine": refine, "max_depth": 4} | params
    model, X, y = noisy_problem(criterion, **params)
    at_once = model.fit(X, y).to_json()
    monkeypatch.setattr(_histograms, "MAX_BINS_TOGETHER", 1)
    monkeypatch.setattr(_histograms, "MIN_NODES_TOGETHER", 2)
    monkeypatch.setattr(_working_tree, "MAX_COUNTS", 1)
    assert model.fit(X, y).to_json() == at_once


def test_many_distinct_values_do_not_take_their_number_times_the_nodes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 4))
    y = (np.sin(9 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)
    for refine in (None, "tao"):
        model = ShapeTreeClassifier(max_bins=None, max_depth=6, refine=refine, n_threads=1)
        model.fit(X[:100], y[:100])
        tracemalloc.start()
        model.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert model.tree_.node_count > 100
        # Each split keeps a byte for each of its feature's bins.
        n_splits = np.count_nonzero(~model.tree_.is_leaf)
        assert peak < 2**25 + 5 * X.nbytes + 2 * n_splits * len(X)


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_deep_trees_are_refined(kind):
    # Each split can take away one row only.
    n = 700
    X, y = np.eye(n), np.arange(n) % 2
    params = {"inner_max_leaf_nodes": 2, "max_branches": 2, "max_depth": None, "n_threads": 1}
    model = make_tree(
        kind, **PLAIN, **params, refine_penalty=0.0, refine_iter=1, max_leaf_nodes=None
    ).fit(X, y)
    assert_falls(model.refinement_history_)
