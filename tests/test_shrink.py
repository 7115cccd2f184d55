"""Shrunken values are those of a walk from the root, step by step."""

from dataclasses import replace

import numpy as np
import pytest
from data import arrays_of, data_for, distinct_weights, tree_for
from hypothesis import given
from hypothesis import strategies as st
from naive import trees
from numpy.testing import assert_allclose, assert_array_equal

from shapetree.refine._shrink import OF_CLASSES, OF_NUMBERS, Shrinkage, shrink

amounts = st.sampled_from([0.0, 1e-20, 0.1, 1.0, 30.0, 1e6])
# None so small that what rounding leaves of a gain of 0 would decide.
gains = st.sampled_from([0.0, 1.0, 30.0, 1e6])
shrinkages = st.builds(Shrinkage, amounts, amounts, gains)


@st.composite
def weighed_trees(draw, **options):
    """Trees whose nodes weigh as much as their children, and whose values are shares."""
    tree = draw(trees(**options))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weight = np.where(tree.is_leaf, rng.choice([0.25, 1.0, 7.0, 100.0], tree.node_count), 0.0)
    for node in range(tree.node_count - 1, 0, -1):
        weight[tree.parent[node]] += weight[node]
    counts = rng.integers(0, 3, tree.value.shape) + np.eye(tree.value.shape[2])[0]
    shares = counts / counts.sum(axis=2, keepdims=True)
    return replace(tree, weighted_n_node_samples=weight, value=shares)


@pytest.mark.parametrize("which", Shrinkage._fields)
def test_any_shrinkage_has_an_amount(which):
    assert Shrinkage(**{which: 3.0}).amount == 3.0
    assert Shrinkage().amount == 0.0


def naive_gain(tree, node):
    """What a node's split gains: bits, or rows of the average error that it leaves."""
    weight = tree.weighted_n_node_samples

    def mass(number):
        if tree.value.shape[2] == 1:
            return weight[number] * tree.impurity[number]
        each = [-sum(p * np.log2(p) for p in shares if p > 0) for shares in tree.value[number]]
        return weight[number] * np.mean(each)

    left = sum(mass(child) for child in tree.children(node))
    gain = max(mass(node) - left, 0.0)
    if tree.value.shape[2] > 1:
        return gain
    return np.inf if left == 0 else gain / left * weight[node]


def naive_share(tree, shrinkage, node):
    """How much the step to a node counts: at most as much as the one before."""
    if node == 0:
        return 1.0
    parent, weight = tree.parent[node], tree.weighted_n_node_samples
    share = weight[parent] / (weight[parent] + shrinkage.of_parent)
    share *= weight[node] / (weight[node] + shrinkage.of_node)
    gain = naive_gain(tree, parent)
    if shrinkage.of_gain > 0 and gain < np.inf:
        share *= gain / (gain + shrinkage.of_gain)
    return min(share, naive_share(tree, shrinkage, parent))


def naive_value(tree, shrinkage, node):
    """A node's shrunken value, step by step."""
    if node == 0:
        return tree.value[0]
    parent = tree.parent[node]
    step = tree.value[node] - tree.value[parent]
    return naive_value(tree, shrinkage, parent) + naive_share(tree, shrinkage, node) * step


def assert_shrunk(tree, shrinkage):
    expected = [naive_value(tree, shrinkage, node) for node in range(tree.node_count)]
    scale = np.abs(tree.value).max()
    # Gains are differences, of which rounding leaves more.
    digits = 1e-13 if shrinkage.of_gain == 0 else 1e-11
    assert_allclose(shrink(tree, shrinkage).value, expected, rtol=0, atol=digits * scale)


@given(weighed_trees(), shrinkages)
def test_values_are_those_of_the_formula(tree, shrinkage):
    assert_shrunk(tree, shrinkage)


@given(trees(n_values=1), shrinkages)
def test_values_are_those_of_the_formula_whatever_the_weights(tree, shrinkage):
    assert_shrunk(tree, shrinkage)


@pytest.mark.parametrize("shrinkage", [Shrinkage(), Shrinkage(0.7), OF_CLASSES, OF_NUMBERS])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_values_of_fitted_trees_are_those_of_the_formula(criterion, shrinkage):
    rng = np.random.default_rng(0)
    X, y = data_for(criterion, rng)
    model = tree_for(criterion, max_branches=3, leaf_penalty=0.0)
    tree = model.fit(X, y, distinct_weights(rng, len(X))).tree_
    assert tree.max_depth > 2
    assert_shrunk(tree, shrinkage)


def test_two_outputs_are_shrunk_each():
    X, y = data_for("squared_error", np.random.default_rng(0), n_outputs=2)
    assert_shrunk(tree_for("squared_error").fit(X, y).tree_, Shrinkage(5.0, 2.0, 4.0))


@given(weighed_trees(), shrinkages)
def test_only_values_change(tree, shrinkage):
    shrunken = arrays_of(shrink(tree, shrinkage))
    for name, array in arrays_of(tree).items():
        if name != "value":
            assert_array_equal(shrunken[name], array, strict=True)
    assert_array_equal(shrunken["value"][0], tree.value[0])


@given(trees())
def test_no_shrinkage_changes_nothing(tree):
    assert_array_equal(shrink(tree, Shrinkage(0.0)).value, tree.value)


@pytest.mark.parametrize("kind", Shrinkage._fields)
@given(weighed_trees())
def test_endless_shrinkage_leaves_the_root(kind, tree):
    shrunken = shrink(tree, Shrinkage(**{kind: np.inf}))
    assert_array_equal(shrunken.value, np.repeat(tree.value[:1], tree.node_count, 0))


@given(weighed_trees(n_values=4), shrinkages)
def test_shares_of_classes_remain_shares(tree, shrinkage):
    shares = shrink(tree, shrinkage).value
    assert shares.min() >= 0
    assert_allclose(shares.sum(axis=2), 1, rtol=1e-14)


@given(weighed_trees(max_nodes=2), st.lists(st.floats(0, 1e9), min_size=2, max_size=5))
def test_more_shrinkage_draws_leaves_of_a_single_split_nearer_to_the_root(tree, amounts):
    distances = [
        np.abs(shrink(tree, Shrinkage(amount, amount / 3, amount / 2)).value - tree.value[0])
        for amount in sorted(amounts)
    ]
    for nearer, farther in zip(distances[1:], distances[:-1], strict=True):
        assert np.all(nearer <= farther + 1e-15)


@pytest.mark.parametrize("kind", Shrinkage._fields)
@pytest.mark.parametrize("amount", [-1.0, -1e-300, np.nan])
@given(trees(max_nodes=4))
def test_other_numbers_are_refused(kind, amount, tree):
    for others in (0.0, 1.0):
        given_amounts = dict.fromkeys(Shrinkage._fields, others) | {kind: amount}
        with pytest.raises(ValueError, match="shrinkage must be 0 or greater, got"):
            shrink(tree, Shrinkage(**given_amounts))
