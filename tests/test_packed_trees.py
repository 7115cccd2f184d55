"""Trees of a forest take few bytes, and are the same when they are read."""

import pickle
from dataclasses import fields

import numpy as np
import pytest
from models_to_write import forest_of_mixed

from shapetree import ShapeForestClassifier, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._packed_trees import PackedTree, PackedTrees


def a_table(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    X[:, 4] = rng.integers(0, 6, n)
    X[rng.random((n, 5)) < 0.05] = np.nan
    y = (np.nan_to_num(X[:, 0] * X[:, 1]) > 0).astype(int) + (np.nan_to_num(X[:, 2]) > 1)
    return X, y


def assert_same(found, expected):
    for field in fields(TreeArrays):
        if field.name == "sketches":
            continue
        given, own = getattr(expected, field.name), getattr(found, field.name)
        assert given.dtype == own.dtype, field.name
        np.testing.assert_array_equal(given, own, err_msg=field.name)
        assert not own.flags.writeable


@pytest.mark.parametrize("pairs", [0, "all"])
@pytest.mark.parametrize("weights", [None, "random"])
@pytest.mark.parametrize("make", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_unpacked_trees_are_the_packed_ones(make, weights, pairs):
    X, y = a_table()
    weights = None if weights is None else np.random.default_rng(1).random(len(y))
    tree = make(
        max_depth=7, max_branches=3, pairs=pairs, min_samples_leaf=1, resamples=0, strength=0.3,
        categorical_features=[4],
    ).fit(X, y, sample_weight=weights).tree_  # fmt: skip
    assert tree.node_count > 3
    assert bool(tree.features_of_pairs) == (pairs == "all")
    packed = PackedTree(tree)
    assert_same(packed.unpacked(), tree)
    assert_same(pickle.loads(pickle.dumps(packed)).unpacked(), tree)


def test_trees_whose_parts_have_much_in_common_are_packed():
    # One of them has several parts that are all the same in one of their arrays.
    forest, X, _ = forest_of_mixed(
        pairs=[(0, 2)], n_estimators=3, max_leaf_nodes=5
    )  # fmt: skip
    trees = forest._fitted.trees
    assert any(len(tree.cut_low) > 1 and np.ptp(tree.cut_low) == 0 for tree in trees)
    assert np.isfinite(forest.predict(X)).all()


def test_a_single_leaf_is_packed():
    X, y = a_table()
    tree = ShapeTreeClassifier(min_samples_split=1_000).fit(X, y).tree_
    assert tree.node_count == 1
    assert_same(PackedTree(tree).unpacked(), tree)


def test_packed_trees_are_a_sequence():
    X, y = a_table()
    forest = ShapeForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    trees = forest._fitted.trees
    assert isinstance(trees, PackedTrees)
    assert len(trees) == len(list(trees)) == 5
    assert_same(trees[-1], list(trees)[4])
    assert trees[1:3].packed == trees.packed[1:3]
    with pytest.raises(IndexError):
        trees[5]


def test_trees_of_a_forest_take_few_bytes():
    X, y = a_table(5_000)
    forest = ShapeForestClassifier(n_estimators=2, random_state=0).fit(X, y)
    trees = forest._fitted.trees
    packed = sum(len(pickle.dumps(tree)) for tree in trees.packed)
    assert packed < 0.5 * sum(len(pickle.dumps(tree)) for tree in trees)
