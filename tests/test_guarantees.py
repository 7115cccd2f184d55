"""What the paper proves, and what the parameters promise, holds in fitted trees."""

import numpy as np
import pytest
from chance import examples
from data import (
    UNRESTRAINED,
    bars,
    criterion_of,
    data_for,
    distinct_weights,
    make_tree,
    noisy_classes,
    noisy_numbers,
    plus_sign,
    rows_of_nodes,
    tree_for,
)
from hypothesis import given
from hypothesis import strategies as st
from naive import weighted_median
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor

seeds = st.integers(0, 2**32 - 1)


def impurity(criterion, y, weights):
    """Impurity of some rows times their weight."""
    if criterion == "squared_error":
        return weights @ (y - np.average(y, weights=weights)) ** 2
    if criterion == "absolute_error":
        order = np.argsort(y)
        return weights @ np.abs(y - weighted_median(y[order], weights[order]))
    counts = np.bincount(y, weights)
    shares = counts[counts > 0] / weights.sum()
    mean = 1 - shares @ shares if criterion == "gini" else -shares @ np.log2(shares)
    return weights.sum() * mean


def gain(criterion, y, weights, group):
    """What putting rows into groups takes away of their impurity."""
    groups = [group == g for g in np.unique(group)]
    apart = sum(impurity(criterion, y[rows], weights[rows]) for rows in groups)
    return impurity(criterion, y, weights) - apart


def best_threshold_gain(criterion, X, y, weights):
    """The gain of CART's best split, tried one by one."""
    return max(
        gain(criterion, y, weights, column <= threshold)
        for column in X.T
        for threshold in np.unique(column)
    )


# Lemma 1


@st.composite
def any_model(draw):
    """A tree with any criterion, penalty, number of branches and way to find shape functions."""
    penalty = st.sampled_from([0.0, 0.01, 0.3, 2.0, 1e3])
    criteria = ["gini", "entropy", "squared_error", "absolute_error"]
    return tree_for(
        draw(st.sampled_from(criteria)),
        max_branches=draw(st.integers(2, 5)),
        max_depth=draw(st.integers(1, 4)),
        max_bins=None,
        inner_tree=draw(st.sampled_from(["cart", "optimal"])),
        inner_max_leaf_nodes=draw(st.sampled_from([2, 3, 8, None])),
        inner_min_samples_leaf=draw(st.sampled_from([1, 4])),
        inner_max_depth=draw(st.sampled_from([1, 3, None])),
        assignment=draw(st.sampled_from(["auto", "coordinate_descent", "kmeans", "random"])),
        segment_penalty=draw(st.one_of(st.just("auto"), penalty)),
        branch_penalty=draw(penalty),
        leaf_penalty=draw(penalty),
        random_state=draw(st.integers(0, 10)),
    )


@examples(150)
@given(any_model(), seeds, st.integers(2, 40), st.integers(1, 3), st.booleans(), st.booleans())
def test_every_node_gains_at_least_what_cart_would(model, seed, n_rows, n_features, ties, weigh):
    rng = np.random.default_rng(seed)
    shape = {"n_rows": n_rows, "n_features": n_features, "n_values": 6 if ties else None}
    X, y = data_for(criterion_of(model), rng, **shape)
    weights = rng.uniform(0.1, 3, n_rows) if weigh else np.ones(n_rows)
    tree = model.fit(X, y, sample_weight=weights).tree_
    held = rows_of_nodes(model, X)
    for node in np.flatnonzero(~tree.is_leaf):
        rows = held[node]
        child = held[tree.children(node)][:, rows].argmax(axis=0)
        known = criterion_of(model), y[rows], weights[rows]
        assert tree.gain[node] == pytest.approx(gain(*known, child), abs=1e-8)
        cart = best_threshold_gain(criterion_of(model), X[rows], y[rows], weights[rows])
        assert tree.gain[node] >= cart - 1e-8


# Theorem 1


def assert_same_as_cart(model, cart, X, y, weights=None):
    """Both fitted trees split the same training rows in the same way."""
    model.fit(X, y, sample_weight=weights)
    cart.fit(X, y, sample_weight=weights)
    ours, theirs = model.tree_, cart.tree_
    our_rows, their_rows = rows_of_nodes(model, X), rows_of_nodes(cart, X)
    twins = match_nodes(ours, theirs, our_rows, their_rows)
    assert_array_equal(np.sort(twins), np.arange(theirs.node_count))
    assert_array_equal(our_rows, their_rows[twins])
    assert_array_equal(ours.is_leaf, theirs.children_left[twins] < 0)
    assert_array_equal(ours.n_node_samples, theirs.n_node_samples[twins])
    assert_allclose(ours.impurity, theirs.impurity[twins], rtol=1e-9, atol=1e-12)
    assert_allclose(model.predict(X), cart.predict(X), rtol=1e-12, atol=1e-12)
    assert_array_equal(np.diff(ours.piece_start), np.where(ours.is_leaf, 0, 2))
    # Few rows may be parted in the same way by more than one feature.
    same = ~ours.is_leaf & (ours.feature == theirs.feature[twins])
    # Ours are shorter numbers between the same values of a node's rows.
    for node in np.flatnonzero(same):
        values = X[our_rows[node], ours.feature[node]]
        is_low = values <= ours.piece_upper[ours.piece_start[node]]
        assert_array_equal(values <= theirs.threshold[twins[node]], is_low)


def match_nodes(ours, theirs, our_rows, their_rows):
    """For each node of ours, the node of theirs that stands in the same place."""
    twins = [0] * ours.node_count
    for node in np.flatnonzero(~ours.is_leaf):
        children = [theirs.children_left[twins[node]], theirs.children_right[twins[node]]]
        first, second = ours.children(node)
        if not np.array_equal(our_rows[first], their_rows[children[0]]):
            children.reverse()
        twins[first], twins[second] = children
    return np.array(twins)


def pair_of(criterion, **limits):
    """A shape tree that is restrained to thresholds, and scikit-learn's."""
    restrained = {**UNRESTRAINED, "inner_max_leaf_nodes": 2, "max_branches": 2, **limits}
    kind = DecisionTreeRegressor if criterion == "squared_error" else DecisionTreeClassifier
    return tree_for(criterion, **restrained), kind(criterion=criterion, random_state=0, **limits)


@examples(60)
@given(
    st.sampled_from(["gini", "entropy", "squared_error"]),
    st.fixed_dictionaries(
        {},
        optional={
            "max_depth": st.integers(1, 6),
            "min_samples_split": st.one_of(st.integers(2, 30), st.floats(0.01, 0.5)),
            "min_samples_leaf": st.one_of(st.integers(1, 10), st.floats(0.01, 0.3)),
            "max_leaf_nodes": st.integers(2, 20),
            "min_impurity_decrease": st.sampled_from([0.0, 0.003, 0.03, 0.3]),
        },
    ),
    seeds,
)
def test_two_inner_leaves_and_two_branches_give_the_tree_of_scikit_learn(criterion, limits, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=120, n_features=3)
    weights = distinct_weights(rng, len(X))
    assert_same_as_cart(*pair_of(criterion, **limits), X, y, weights)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_features_are_those_of_scikit_learn_and_thresholds_near_its_own(criterion):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=2000, n_features=5)
    weights = distinct_weights(np.random.default_rng(1), len(X))
    model, cart = pair_of(criterion, max_depth=6, min_samples_leaf=20)
    assert_same_as_cart(model, cart, X, y, weights)
    internal, split = ~model.tree_.is_leaf, cart.tree_.feature >= 0
    assert_array_equal(np.sort(model.tree_.feature[internal]), np.sort(cart.tree_.feature[split]))
    # Ours are shorter numbers between the same values, so few new rows lie between the two.
    new_X = np.random.default_rng(2).uniform(-100, 2100, X.shape).astype(np.float32)
    assert np.isclose(model.predict(new_X), cart.predict(new_X), rtol=1e-9).mean() > 0.97


@pytest.mark.parametrize("limits", [{"max_depth": 5}, {"max_leaf_nodes": 12}, {}])
def test_several_outputs_are_learnt_as_scikit_learn_does(limits):
    X, y = noisy_numbers(np.random.default_rng(0), n_outputs=3)
    assert_same_as_cart(*pair_of("squared_error", **limits), X, y)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_several_classifications_are_learnt_as_scikit_learn_does(criterion):
    rng = np.random.default_rng(0)
    X, one = noisy_classes(rng, n_classes=3)
    y = np.stack([one, rng.integers(0, 2, len(X)), (X[:, 1] > 140) * 5], axis=1)
    limits = {"max_depth": 5, "min_samples_leaf": 3}
    assert_same_as_cart(*pair_of(criterion, **limits), X, y, distinct_weights(rng, len(X)))


def test_no_penalty_but_that_of_splits_changes_the_tree_of_thresholds():
    X, y = noisy_numbers(np.random.default_rng(0))
    model, cart = pair_of("squared_error", min_samples_leaf=5)
    model.set_params(search__segment_penalty=4.0, search__branch_penalty=4.0)
    assert_same_as_cart(model, cart, X, y)


# Theorem 2 and the paper's toys


@pytest.mark.parametrize("omega", [1, 2, 3, 10, 25, 50])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("max_branches", [2, 3])
@pytest.mark.parametrize("inner_tree", ["cart", "optimal"])
def test_one_node_holds_any_number_of_bars(omega, criterion, max_branches, inner_tree):
    X, y = bars(omega, n_rows=1000)
    model = ShapeTreeClassifier(
        max_branches=max_branches,
        max_bins=None,
        max_parts=None,
        teacher=None,
        search=SearchOptions(
            criterion=criterion,
            inner_tree=inner_tree,
            inner_max_leaf_nodes=None,
            segment_penalty=0.0,
        ),
    )
    assert model.fit(X, y).get_n_leaves() == 2
    assert model.score(X, y) == 1.0
    assert len(model.tree_.piece_upper) == 2 * omega + 1


@pytest.mark.parametrize("omega", [1, 5, 15])
def test_default_prices_find_the_bars_of_values_that_have_bins_of_their_own(omega):
    X, y = bars(omega, n_rows=12_000, n_values=240)
    model = ShapeTreeClassifier(max_parts=None).fit(X, y)
    assert model.get_n_leaves() == 2
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("params", [{}, {"max_branches": 2}, {"max_bins": None}])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_the_plus_sign_takes_two_nodes(criterion, params):
    X, y = plus_sign()
    model = make_tree(ShapeTreeClassifier, criterion=criterion, **params).fit(X, y)
    assert np.count_nonzero(~model.tree_.is_leaf) == 2
    assert model.get_depth() == 2
    assert model.score(X, y) == 1.0


def test_cart_needs_more_nodes_for_the_plus_sign():
    X, y = plus_sign()
    cart = DecisionTreeClassifier(random_state=0).fit(X, y)
    assert cart.tree_.node_count - cart.get_n_leaves() >= 6


# Limits of growth


@pytest.mark.parametrize("max_branches", [2, 3, 4, 5])
@pytest.mark.parametrize("max_leaf_nodes", [2, 3, 4, 5, 6, 7, 11, 20])
def test_trees_have_as_many_leaves_as_allowed(max_branches, max_leaf_nodes):
    X, y = noisy_numbers(np.random.default_rng(0), n_rows=200)
    limits = {"max_branches": max_branches, "max_leaf_nodes": max_leaf_nodes}
    model = make_tree(ShapeTreeRegressor, **UNRESTRAINED | limits).fit(X, y)
    assert model.get_n_leaves() == max_leaf_nodes


def test_the_best_nodes_are_split_first():
    X, y = noisy_numbers(np.random.default_rng(0))
    limits = {"max_branches": 2, "max_depth": 6, "inner_max_leaf_nodes": 4}
    full = make_tree(ShapeTreeRegressor, **UNRESTRAINED | limits).fit(X, y).tree_
    limits |= {"max_leaf_nodes": 8, "lookahead": 1}
    some = make_tree(ShapeTreeRegressor, **UNRESTRAINED | limits).fit(X, y).tree_
    reached = {0}
    for _ in range(7):
        open_nodes = [node for node in reached if not full.is_leaf[node]]
        best = max(open_nodes, key=lambda node: full.gain[node])
        reached = reached - {best} | set(full.children(best))
    assert_array_equal(
        np.sort(some.n_node_samples[some.is_leaf]), np.sort(full.n_node_samples[list(reached)])
    )


@pytest.mark.parametrize(
    ("min_samples_leaf", "least"), [(1, 1), (7, 7), (0.031, 10), (1.0e-9, 1), (100, 100)]
)
@pytest.mark.parametrize("max_bins", [None, 16])
def test_leaves_hold_the_rows_asked_for(min_samples_leaf, least, max_bins):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=300)
    limits = {"min_samples_leaf": min_samples_leaf, "max_bins": max_bins, "max_branches": 4}
    tree = make_tree(ShapeTreeClassifier, **UNRESTRAINED | limits).fit(X, y).tree_
    held = tree.n_node_samples[tree.is_leaf]
    assert held.min() >= least
    assert len(held) > 1
    assert held.sum() == 300


def test_rows_are_counted_whatever_they_weigh():
    X, y = noisy_classes(np.random.default_rng(0))
    model = make_tree(ShapeTreeClassifier, **UNRESTRAINED | {"min_samples_leaf": 20})
    tree = model.fit(X, y, sample_weight=np.full(len(X), 0.01)).tree_
    assert tree.n_node_samples[tree.is_leaf].min() >= 20
    assert tree.node_count > 1


@pytest.mark.parametrize(("min_samples_split", "least"), [(40, 40), (0.1, 30), (0.999, 300)])
def test_only_nodes_with_enough_rows_are_split(min_samples_split, least):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=300)
    limits = {"min_samples_split": min_samples_split}
    tree = make_tree(ShapeTreeClassifier, **UNRESTRAINED | limits).fit(X, y).tree_
    assert tree.n_node_samples[~tree.is_leaf].min() >= least


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_every_split_takes_away_the_impurity_asked_for(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    full = tree_for(criterion, **UNRESTRAINED | {"max_depth": 5}).fit(X, 10 * y).tree_
    decrease = full.gain[~full.is_leaf] / len(X)
    # Between two splits' decreases, so that rounding does not decide.
    least = np.quantile(decrease, 0.7) * (1 - 1e-9)
    limits = {"max_depth": 5, "min_impurity_decrease": least}
    tree = tree_for(criterion, **UNRESTRAINED | limits).fit(X, 10 * y).tree_
    kept = tree.gain[~tree.is_leaf] / len(X)
    assert kept.min() >= least
    assert set(kept) == set(decrease[decrease >= least]) - descendants_of_weaker(full, least)


def descendants_of_weaker(tree, least):
    """Decreases of splits below a node whose own is not enough."""
    decrease = tree.gain / tree.n_node_samples[0]
    weak = [min(decrease[tree.path_to(node)]) < least for node in range(tree.node_count)]
    return set(decrease[weak])


@pytest.mark.parametrize("max_depth", [1, 2, 5, None])
def test_no_path_is_longer_than_allowed(max_depth):
    X, y = noisy_classes(np.random.default_rng(0))
    limits = {"max_depth": max_depth, "max_branches": 2, "inner_max_leaf_nodes": 2}
    model = make_tree(ShapeTreeClassifier, **UNRESTRAINED | limits).fit(X, y)
    assert model.get_depth() == max_depth or (max_depth is None and model.score(X, y) == 1.0)


@pytest.mark.parametrize("max_branches", [2, 3, 6])
def test_no_node_has_more_branches_than_allowed(max_branches):
    X, y = noisy_classes(np.random.default_rng(0), n_classes=8)
    tree = (
        make_tree(ShapeTreeClassifier, **UNRESTRAINED | {"max_branches": max_branches})
        .fit(X, y)
        .tree_
    )
    assert tree.n_branches.max() == max_branches


# Penalties


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_a_forbidding_segment_penalty_leaves_two_segments(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    tree = tree_for(criterion, segment_penalty=1e9, leaf_penalty=0).fit(X, y).tree_
    assert tree.node_count > 1
    assert set(np.diff(tree.piece_start)[~tree.is_leaf]) == {2}


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_a_higher_segment_penalty_never_gives_a_root_more_segments(criterion):
    X, y = data_for(criterion, np.random.default_rng(0), n_features=1)
    # A fixed price of splits: no tree is doubted, however intricate it is.
    trees = [
        tree_for(criterion, max_depth=1, leaf_penalty=6.0, segment_penalty=beta).fit(X, y).tree_
        for beta in [0, 1, 3, 10, 30, 1e9]
    ]
    n_pieces = [len(tree.piece_upper) for tree in trees]
    assert n_pieces == sorted(n_pieces, reverse=True)
    assert n_pieces[0] > n_pieces[-1]


def test_a_forbidding_branch_penalty_leaves_two_branches():
    X, y = noisy_classes(np.random.default_rng(0), n_classes=5)
    tree = (
        ShapeTreeClassifier(
            max_branches=5, search=SearchOptions(branch_penalty=100, leaf_penalty=0)
        )
        .fit(X, y)
        .tree_
    )
    assert set(tree.n_branches) == {0, 2}


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_a_higher_split_penalty_gives_smaller_trees(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    n_leaves = [
        tree_for(criterion, leaf_penalty=penalty).fit(X, y).get_n_leaves()
        for penalty in [0, 3, 10, 30, 1e9]
    ]
    assert n_leaves == sorted(n_leaves, reverse=True)
    assert n_leaves[0] > n_leaves[2] > n_leaves[-1] == 1


# The inner tree


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine, load_diabetes])
@pytest.mark.parametrize("inner_max_leaf_nodes", [2, 3, 5, 8])
@pytest.mark.parametrize("max_bins", [None, 32])
def test_the_optimal_inner_tree_gains_no_less_at_the_root(load, inner_max_leaf_nodes, max_bins):
    X, y = load(return_X_y=True)
    kind = ShapeTreeRegressor if load is load_diabetes else ShapeTreeClassifier
    limits = {"max_depth": 1, "max_bins": max_bins, "inner_max_leaf_nodes": inner_max_leaf_nodes}
    # With a branch for each piece, the pieces alone decide.
    limits["max_branches"] = inner_max_leaf_nodes
    cart, optimal = (
        make_tree(kind, **UNRESTRAINED | limits, inner_tree=inner_tree).fit(X, y).tree_.gain[0]
        for inner_tree in ["cart", "optimal"]
    )
    assert optimal >= cart - 1e-9


@pytest.mark.parametrize("inner_tree", ["cart", "optimal"])
@pytest.mark.parametrize("segment_penalty", ["auto", 0.0])
@pytest.mark.parametrize("max_bins", [None, 255])
def test_no_shape_has_more_pieces_than_the_inner_tree_has_leaves(
    inner_tree, segment_penalty, max_bins
):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=1000)
    params = {"inner_tree": inner_tree, "segment_penalty": segment_penalty, "max_bins": max_bins}
    tree = make_tree(ShapeTreeClassifier, inner_max_leaf_nodes=4, **params).fit(X, y).tree_
    assert tree.node_count > 1
    assert np.diff(tree.piece_start).max() <= 4


@pytest.mark.parametrize("segment_penalty", ["auto", 0.0])
def test_pieces_of_the_inner_tree_hold_the_rows_asked_for(segment_penalty):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=1000, n_features=1)
    model = ShapeTreeClassifier(
        max_depth=1,
        min_samples_leaf=50,
        search=SearchOptions(inner_min_samples_leaf=50, segment_penalty=segment_penalty),
    ).fit(X, y)
    held = np.histogram(X, bins=np.append(-np.inf, model.tree_.piece_upper))[0]
    assert len(held) > 2
    assert held.min() >= 50


def test_the_inner_tree_keeps_to_its_depth():
    X, y = bars(8, n_rows=1000)
    limits = {"max_depth": 1, "inner_max_depth": 2}
    tree = make_tree(ShapeTreeClassifier, **UNRESTRAINED | limits).fit(X, y).tree_
    assert 2 < len(tree.piece_upper) <= 4
