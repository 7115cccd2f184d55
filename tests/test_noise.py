"""Noise has a leaf, and default regression trees neither tiny leaves nor slivers."""

import numpy as np
import pandas as pd
import pytest

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.tree._fitted import fitted_tree
from shapetree.tree._view import view_of

N_SEEDS = 20
# Of so many seeds, with all tables and targets, leaves that noise must have at least.
LEAST_LEAVES = 0.9


def numbers(rng):
    return pd.DataFrame(rng.normal(size=(300, 10))).add_prefix("x")


def many_levels(rng):
    n_rows, n_levels = 2000, 1000
    levels = [f"level {i}" for i in rng.integers(0, n_levels, n_rows)]
    return pd.DataFrame({"c": levels, "x": rng.normal(size=n_rows)})


def classes(rng, n_rows):
    return (rng.random(n_rows) < 0.5).astype(int)


def rare_class(rng, n_rows):
    return (rng.random(n_rows) < 0.1).astype(int)


def normal(rng, n_rows):
    return rng.normal(size=n_rows)


@pytest.mark.parametrize("is_repeated", [False, True])
@pytest.mark.parametrize(
    ("make", "pairs"),
    [(numbers, 0), (many_levels, 0), (numbers, "auto"), (many_levels, "auto")],
    ids=["numbers", "many levels", "pairs", "pairs of many levels"],
)
@pytest.mark.parametrize("target", [classes, rare_class, normal])
def test_noise_has_a_leaf(make, pairs, target, is_repeated):
    kind = ShapeTreeRegressor if target is normal else ShapeTreeClassifier
    n_leaves = 0
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        X = make(rng)
        y = target(rng, len(X))
        if is_repeated:
            X, y = pd.concat([X, X], ignore_index=True), np.concatenate([y, y])
        tree = kind(max_depth=4, pairs=pairs, random_state=0, n_threads=1).fit(X, y)
        n_leaves += tree.tree_.node_count == 1
    assert n_leaves >= LEAST_LEAVES * N_SEEDS


@pytest.mark.parametrize("pairs", [0, "auto"])
def test_noise_has_a_leaf_among_many_features(pairs):
    n_leaves = 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 400)), classes(rng, 100)
        n_leaves += ShapeTreeClassifier(pairs=pairs, n_threads=1).fit(X, y).get_depth() == 0
    assert n_leaves >= 4


def test_a_clear_signal_is_found_among_many_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 400))
    tree = ShapeTreeClassifier(n_threads=1).fit(X, X[:, 7] > 0)
    assert tree.score(X, X[:, 7] > 0) == 1.0


def test_a_rare_class_is_not_taken_for_noise():
    # Few rows have it, in two narrow segments: half of them must be enough to find these.
    n_trees = 0
    for seed in range(N_SEEDS):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.integers(0, 24, 320), rng.normal(size=320)])
        y = np.isin(X[:, 0], [8, 17]) & (rng.random(320) < 0.9)
        n_trees += ShapeTreeClassifier(max_depth=2, n_threads=1).fit(X, y).get_depth() > 0
    assert n_trees >= 0.9 * N_SEEDS


def test_a_weak_signal_is_not_taken_for_noise():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 5))
    y = X[:, 0] + 2.5 * rng.normal(size=1000)
    assert ShapeTreeRegressor(max_depth=3).fit(X, y).tree_.node_count > 1
    y = (rng.random(1000) < 0.5 + 0.12 * np.sign(X[:, 1])).astype(int)
    assert ShapeTreeClassifier(max_depth=3).fit(X, y).tree_.node_count > 1


@pytest.mark.parametrize("n_copies", [1, 2, 3])
def test_a_pair_that_matters_is_found_in_few_rows(n_copies):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1300, 4))
        y = (X[:, 0] + X[:, 1] > 0) ^ (X[:, 0] - X[:, 1] > 0.5) ^ (rng.random(1300) < 0.1)
        few, labels = np.tile(X[:300], (n_copies, 1)), np.tile(y[:300], n_copies)
        tree = ShapeTreeClassifier(max_depth=3, pairs="auto", random_state=0).fit(few, labels)
        assert tree.score(X[300:], y[300:]) > 0.65


def test_categories_that_matter_are_found_among_many():
    rng = np.random.default_rng(2)
    level = rng.integers(0, 200, 8000)
    effect = rng.normal(size=200)[level]
    y = effect + rng.normal(size=8000)
    X = pd.DataFrame({"c": [f"level {i}" for i in level], "x": rng.normal(size=8000)})
    tree = ShapeTreeRegressor(max_depth=3, random_state=0).fit(X[:6000], y[:6000])
    assert tree.score(X[6000:], y[6000:]) > 0.35


def test_noise_of_many_rows_and_levels_has_a_leaf_with_pairs():
    rng = np.random.default_rng(0)
    levels = [f"level {i}" for i in rng.integers(0, 6000, 12_000)]
    X = pd.DataFrame({"c": levels, "x": rng.normal(size=12_000)})
    tree = ShapeTreeClassifier(max_depth=2, pairs="auto").fit(X, rng.integers(0, 2, 12_000))
    assert tree.tree_.node_count == 1


def test_a_pair_of_many_levels_that_matters_is_found():
    rng = np.random.default_rng(5)
    level, x = rng.integers(0, 60, 6000), rng.normal(size=6000)
    y = ((level % 2 == 0) == (x > 0)) ^ (rng.random(6000) < 0.1)
    X = pd.DataFrame({"c": [f"level {i}" for i in level], "x": x})
    tree = ShapeTreeClassifier(max_depth=2, pairs="auto").fit(X[:4000], y[:4000])
    assert tree.score(X[4000:], y[4000:]) > 0.85


def test_few_kinds_of_rows_are_told_apart():
    # Halves without a kind of row in common would learn nothing of each other.
    X = pd.DataFrame({"c": np.repeat(["a", "b", "c"], 40)})
    y = np.tile([0, 0, 0, 1], 30)
    y[:40] = np.tile([1, 1, 1, 0], 10)
    assert ShapeTreeClassifier(max_depth=2).fit(X, y).tree_.node_count > 1


def test_a_price_of_the_users_own_is_taken_at_its_word():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 10)), rng.integers(0, 2, 300)
    tree = ShapeTreeClassifier(max_depth=3, split_penalty=0.0, segment_penalty=0.0).fit(X, y)
    assert tree.tree_.node_count > 1


def steps(rng, n_rows):
    X = rng.uniform(size=(n_rows, 3))
    # Some rows are far off, and would earn leaves of their own.
    y = np.floor(5 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_t(2, n_rows)
    return X, y


@pytest.mark.parametrize("refine", [None, "tao"])
@pytest.mark.parametrize("max_branches", [2, 4])
def test_regression_leaves_have_several_rows(refine, max_branches):
    for seed in range(5):
        X, y = steps(np.random.default_rng(seed), 3000)
        tree = ShapeTreeRegressor(
            max_depth=5, max_branches=max_branches, refine=refine, random_state=0
        ).fit(X, y)
        leaves = [node for node in view_of(fitted_tree(tree)).nodes if node.is_leaf]
        assert min(leaf.n_rows for leaf in leaves) >= 5
        assert sum(leaf.n_rows for leaf in leaves) == 3000


@pytest.mark.parametrize("refine", [None, "tao"])
def test_many_rows_do_not_make_slivers(refine):
    # A curve that one branch crosses again and again where it is flat.
    rng = np.random.default_rng(4)
    x = rng.uniform(size=20_000)
    y = 2 * x + 0.05 * np.sin(400 * x) + 0.5 * rng.normal(size=len(x))
    tree = ShapeTreeRegressor(max_depth=2, refine=refine, random_state=0).fit(x[:, None], y)
    root = view_of(fitted_tree(tree)).nodes[0]
    assert len(root.segments) <= 4
