"""Trees whose nodes may split on pairs of features: what they find, and what they keep to."""

import pickle
import tracemalloc
from itertools import product

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import (
    REGRESSION,
    UNRESTRAINED,
    arrays_of,
    assert_same_tree,
    make_tree,
    rows_of_nodes,
    tree_for,
)
from hypothesis import given
from hypothesis import strategies as st
from naive_pairs import all_cuts, leaf_of_row, orientations
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor, export_text
from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets
from shapetree.data._open import open_table
from shapetree.data._table import encode_table
from shapetree.grow import _grower, _pair_options
from shapetree.grow._rows_of_node import Sample
from shapetree.refine._pair_step import most_in_wrong_branches
from shapetree.refine._refined_rows import LocalCareSet

BOTH = pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
NAN, INF = float("nan"), float("inf")
seeds = st.integers(0, 2**32 - 1)


def rotated(X, degrees):
    angle = np.deg2rad(degrees)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return X @ turn.T


def xor(rng, n_rows, degrees=0.0, columns=(0, 1), n_features=2):
    """Uniform features, two of which have classes in opposite quadrants, turned by an angle."""
    X = rng.uniform(-1, 1, (n_rows, n_features))
    above = rotated(X[:, list(columns)], degrees) > 0
    return X, (above[:, 0] ^ above[:, 1]).astype(int)


def mirrored_xor(rng, n_rows, n_noise):
    """The same with every point's mirror images, so that no feature tells anything alone."""
    quarter = rng.uniform(0, 1, (n_rows // 4, 2))
    X = np.concatenate([quarter * sign for sign in [(1, 1), (1, -1), (-1, 1), (-1, -1)]])
    return np.column_stack([X, rng.normal(size=(len(X), n_noise))]), (X[:, 0] * X[:, 1] > 0) * 1


def crossing_arms(rng, n_rows, degrees, width=0.2):
    """Points near two lines that cross, classes on either side: each feature alone tells little."""
    along, across = rng.normal(size=n_rows), rng.uniform(-width, width, n_rows)
    Z = np.where(rng.random((n_rows, 1)) < 0.5, [1, 0], [0, 1])
    Z = np.where(Z == 1, along[:, None], across[:, None])
    return rotated(Z, degrees), ((Z[:, 0] > 0) ^ (Z[:, 1] > 0)).astype(int)


def interacting(criterion, rng, n_rows=300):
    """Four features, of which two pairs interact, and numbers or classes with noise."""
    X = rng.normal(size=(n_rows, 4))
    score = 2.0 * ((X[:, 0] + X[:, 1] > 0) ^ (X[:, 0] - X[:, 1] > 0.5)) + (X[:, 2] > X[:, 3])
    score += rng.normal(scale=0.4, size=n_rows)
    return X, score if criterion in REGRESSION else np.digitize(score, [0.5, 2.0])


def accuracy(model, X, y):
    """Share of rows whose prediction is nearest to their class 0 or 1."""
    return np.mean((model.predict(X) > 0.5) == y)


def pair_of_root(model):
    return model.tree_.features_of(0)


def n_pair_nodes(model):
    return np.count_nonzero(model.tree_.second_feature >= 0)


def assert_routes_alike(model, X):
    """Prediction sends the training rows where training did."""
    count = np.bincount(model.apply(X), minlength=model.tree_.node_count)
    leaf = model.tree_.is_leaf
    assert_array_equal(count[leaf], model.tree_.n_node_samples[leaf])


# What one node can hold


@BOTH
@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize("degrees", [0, 22.5, 45])
def test_a_turned_checkerboard_takes_one_node(kind, degrees, max_bins):
    X, y = xor(np.random.default_rng(0), 2000, degrees)
    model = kind(pairs="auto", max_depth=1, max_bins=max_bins).fit(X, y)
    new_X, new_y = xor(np.random.default_rng(1), 2000, degrees)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) > 0.97
    assert accuracy(model, new_X, new_y) > 0.97
    assert accuracy(kind(max_depth=1).fit(X, y), X, y) < 0.85


@BOTH
@pytest.mark.parametrize("seed", range(3))
def test_the_papers_filter_misses_what_no_feature_tells_alone(kind, seed):
    X, y = mirrored_xor(np.random.default_rng(seed), 1000, n_noise=10)
    params = {"max_depth": 1, "leaf_penalty": 0.0, "refine": None}
    ours = make_tree(kind, pairs="auto", **params).fit(X, y)
    papers = make_tree(kind, pairs=1, pair_screen="delta", **params).fit(X, y)
    assert pair_of_root(ours) == [0, 1]
    assert accuracy(ours, X, y) > 0.97
    assert pair_of_root(papers) != [0, 1]
    assert accuracy(papers, X, y) < 0.7


@BOTH
@pytest.mark.parametrize("degrees", [22.5, 45])
@pytest.mark.parametrize("seed", range(2))
def test_the_papers_filter_prefers_features_that_tell_something_alone(kind, degrees, seed):
    rng = np.random.default_rng(seed)
    X, y = crossing_arms(rng, 3000, degrees)
    X = np.column_stack([X, y[:, None] + rng.normal(scale=0.6, size=(len(X), 2))])
    ours = kind(pairs="auto", max_depth=1).fit(X, y)
    papers = make_tree(kind, pairs=1, pair_screen="delta", max_depth=1).fit(X, y)
    assert pair_of_root(ours) == [0, 1]
    assert accuracy(ours, X, y) > 0.97
    assert pair_of_root(papers) == [2, 3]
    assert accuracy(papers, X, y) < 0.93


@BOTH
@pytest.mark.parametrize("degrees", [0, 45])
@pytest.mark.parametrize("seed", range(2))
def test_the_planted_pair_is_found_among_fifty_features(kind, degrees, seed):
    rng = np.random.default_rng(seed)
    pair = sorted(rng.choice(50, 2, replace=False).tolist())
    X, y = xor(rng, 2000, degrees, pair, n_features=50)
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == pair
    assert accuracy(model, X, y) > 0.97


@BOTH
@pytest.mark.parametrize(("scale", "origin"), [(1.0, 0.0), (1e-6, 0.0), (1e7, 0.0), (1.0, 1e6)])
@pytest.mark.parametrize("degrees", [22.5, 45, 67.5, 135])
def test_a_boundary_along_an_orientation_takes_one_cut(kind, degrees, scale, origin):
    # As many rows as bins, so that the spread of the bins is that of the values.
    X = np.random.default_rng(0).uniform(-1, 1, (250, 2)) * (1.0, 7.0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    angle = np.deg2rad(degrees)
    y = (Z @ [np.cos(angle), np.sin(angle)] > 0.2).astype(int)
    X = X * (1.0, scale) + (0.0, origin)
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert len(model.tree_.cut_a) == 1
    assert model.tree_.cut_b[0] != 0
    assert accuracy(model, X, y) == 1.0
    assert export_text(model).count("·x1 ≤ ") == 1


# BiCART


def impurity_of(criterion):
    """Impurity of counts of classes, or of (rows, sum, sum of squares)."""

    def impurity(stats):
        if criterion == "squared_error":
            return stats[2] - stats[1] ** 2 / stats[0]
        share = stats[stats > 0] / stats.sum()
        return stats.sum() * (1 - share @ share if criterion == "gini" else -share @ np.log2(share))

    return impurity


def best_gain_of_pairs(criterion, X, y, weights, n_orientations=8, min_rows=1):
    """Brute force over all pairs, orientations and thresholds."""
    if criterion == "squared_error":
        row_stats = weights[:, None] * np.stack([np.ones(len(y)), y, y**2], axis=1)
    else:
        row_stats = weights[:, None] * np.eye(y.max() + 1)[y]
    mean = np.average(X, axis=0, weights=weights)
    scales = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    rows, n_features = np.arange(len(X)), X.shape[1]
    return max(
        cut.gain
        for i in range(n_features)
        for j in range(i + 1, n_features)
        for cut in all_cuts(
            row_stats, impurity_of(criterion), X[:, i], X[:, j], rows,
            orientations(n_orientations, scales[[i, j]]), min_rows,
        )
    )  # fmt: skip


BICART = {
    "inner_max_leaf_nodes": 2,
    "max_branches": 2,
    "pairs": "all",
    "pair_penalty": 0.0,
    "max_depth": 1,
    "max_bins": None,
    "n_threads": 1,
}


def tilted_data(criterion, rng, n_rows, n_features=3):
    """Numbers or classes that depend on a sum of features, with noise."""
    X = rng.normal(size=(n_rows, n_features)) * 10.0 ** rng.integers(-3, 4, n_features)
    score = (X / X.std(axis=0)) @ rng.normal(size=n_features) + rng.normal(size=n_rows)
    if criterion == "squared_error":
        return X, score
    return X, np.digitize(score, np.quantile(score, [0.3, 0.6]))


@examples(25)
@given(
    st.sampled_from(["gini", "entropy", "squared_error"]),
    st.integers(2, 9),
    st.booleans(),
    st.sampled_from([0.0, "auto"]),
    seeds,
)
def test_two_inner_leaves_and_all_pairs_give_bicart(criterion, n, weigh, segment_penalty, seed):
    rng = np.random.default_rng(seed)
    X, y = tilted_data(criterion, rng, n_rows=60)
    weights = rng.uniform(0.1, 3, len(X)) if weigh else np.ones(len(X))
    model = tree_for(criterion, **BICART, n_orientations=n, segment_penalty=segment_penalty)
    gain = model.fit(X, y, sample_weight=weights).tree_.gain[0]
    assert gain == pytest.approx(best_gain_of_pairs(criterion, X, y, weights, n), rel=1e-6)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("seed", range(10))
def test_bicart_is_found_where_nothing_is_to_be_learnt(criterion, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    gain = tree_for(criterion, **BICART).fit(X, y).tree_.gain[0]
    best = best_gain_of_pairs(criterion, X, y, np.ones(len(X)))
    assert gain == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("seed", range(5))
def test_bicart_passes_over_cuts_that_leave_too_few_rows(criterion, seed):
    X, y = tilted_data(criterion, np.random.default_rng(seed), n_rows=60)
    model = tree_for(criterion, **BICART, segment_penalty=0.0, min_samples_leaf=15).fit(X, y)
    best = best_gain_of_pairs(criterion, X, y, np.ones(len(X)), min_rows=15)
    assert model.tree_.gain[0] == pytest.approx(best, rel=1e-6)


# Penalties


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_forbidding_penalty_leaves_single_features(criterion):
    X, y = interacting(criterion, np.random.default_rng(0))
    one = tree_for(criterion, pairs=0).fit(X, y)
    other = tree_for(criterion, pairs="auto", pair_penalty=1e9).fit(X, y)
    assert n_pair_nodes(tree_for(criterion, pairs="auto", pair_penalty=0.0).fit(X, y)) > 0
    assert_same_tree(one, other)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_a_pair_gains_more_than_a_single_feature_by_its_penalty_at_least(criterion):
    X, y = interacting(criterion, np.random.default_rng(0))
    params = {"max_depth": 1, "segment_penalty": 0.0, "leaf_penalty": 0.0}
    params |= {"pairs": "auto", "inner_max_leaf_nodes": 4}
    single = tree_for(criterion, **params | {"pairs": 0}).fit(X, y).tree_.gain[0]
    free = tree_for(criterion, **params, pair_penalty=0.0).fit(X, y)
    extra = (free.tree_.gain[0] - single) / len(X)
    assert extra > 0
    for factor, expected in [(0.99, 1), (1.01, 0)]:
        model = tree_for(criterion, **params, pair_penalty=factor * extra)
        assert n_pair_nodes(model.fit(X, y)) == expected


# Categories and missing values


def category_xor(rng, n_rows, kind):
    """Two categories against two, or against the sign of a number."""
    one = rng.integers(0, 2, n_rows)
    other = rng.uniform(-1, 1, n_rows)
    frame = pd.DataFrame({"one": pd.Categorical.from_codes(one, ["p", "q"]), "other": other})
    if kind == "categories":
        frame["other"] = pd.Categorical.from_codes((other > 0).astype(int), ["r", "s"])
    if kind == "number first":
        frame = frame[["other", "one"]]
    return frame, one ^ (other > 0)


@BOTH
@pytest.mark.parametrize("data", ["categories", "category first", "number first"])
@pytest.mark.parametrize("seed", range(3))
def test_interactions_with_categories_take_one_node(kind, data, seed):
    X, y = category_xor(np.random.default_rng(seed), 1000, data)
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) > 0.97
    assert_routes_alike(model, X)


@BOTH
def test_a_category_among_many_may_turn_a_number_around(kind):
    rng = np.random.default_rng(0)
    level, number = rng.integers(0, 5, 2000), rng.uniform(-1, 1, 2000)
    y = np.where(level == 3, number > 0.4, number < -0.3).astype(int)
    X = pd.DataFrame({"level": np.array(list("abcde"))[level], "number": number})
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) > 0.97
    text = export_text(model)
    assert "level = d" in text
    assert "number ≤ " in text


@BOTH
@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("label", [0, 1])
def test_missing_values_on_either_side_go_where_they_belong(kind, side, label):
    X, y = xor(np.random.default_rng(0), 2000, 45)
    X[::10, side] = np.nan
    y[::10] = label
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) > 0.97
    assert model.tree_.saw_missing[0]
    assert_array_equal(accuracy(model, [[NAN, 0.1], [0.1, NAN], [NAN, NAN]], label), 1)
    assert "missing" in export_text(model)
    assert_routes_alike(model, X)


@BOTH
def test_missing_values_that_training_never_saw_go_to_the_largest_branch(kind):
    X, y = xor(np.random.default_rng(0), 999, 45)
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    tree = model.tree_
    largest = 1 + np.argmax(tree.n_node_samples[1:])
    assert not tree.saw_missing[0]
    assert_array_equal(model.apply([[NAN, 0.1], [0.1, NAN], [NAN, NAN]]), largest)


def mixed_table(rng, n_rows):
    """Numbers of several kinds, and categories, all with missing values."""
    level = np.array(["a", "b", "c", None], dtype=object)[rng.integers(0, 4, n_rows)]
    X = pd.DataFrame(
        {
            "number": rng.normal(size=n_rows),
            "level": pd.Categorical(level),
            "short": rng.normal(size=n_rows).astype(np.float32),
            "count": rng.integers(0, 9, n_rows).astype(float),
            "flag": pd.Categorical(rng.integers(0, 2, n_rows).astype(str)),
        }
    )
    for name in ("number", "short", "count"):
        X.loc[rng.random(n_rows) < 0.1, name] = np.nan
    score = (
        np.sign(X["number"].fillna(0.4)) * (X["level"] == "b")
        + (X["short"].fillna(0) + X["count"].fillna(2) / 3 > 1)
        + (X["flag"] == "1") * np.sign(X["short"].fillna(1))
    )
    return X, score.to_numpy() + rng.normal(scale=0.3, size=n_rows)


@BOTH
@pytest.mark.parametrize("max_bins", [255, None])
@pytest.mark.parametrize("seed", range(3))
def test_any_row_ends_where_a_walk_by_hand_does(kind, max_bins, seed):
    rng = np.random.default_rng(seed)
    X, y = mixed_table(rng, 600)
    y = np.round(y).astype(int) if kind is ShapeTreeClassifier else y
    params = {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 3, "max_bins": max_bins}
    model = make_tree(kind, **params).fit(X, y)
    assert n_pair_nodes(model) > 0
    assert_routes_alike(model, X)
    new, _ = mixed_table(rng, 300)
    new["level"] = new["level"].astype(object).where(rng.random(300) < 0.8, "unheard of")
    for name in ("number", "short", "count"):
        new[name] = new[name].where(rng.random(300) < 0.8, rng.choice([INF, -INF, 1e308], 300))
    table = encode_table(open_table(new), model._fitted.features, needed=range(5))
    rows = zip(*(column.tolist() for column in table.columns), strict=True)
    assert_array_equal(model.apply(new), [leaf_of_row(model.tree_, row) for row in rows])


# Rows and weights


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("leaves", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_of_n_is_a_row_given_n_times(criterion, leaves, seed):
    # Of so few regions, none starts from the grid, which counts rows.
    rng = np.random.default_rng(seed)
    X, y = tilted_data(criterion, rng, n_rows=100)
    times = rng.integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), times)
    params = BICART | {"max_depth": 3, "segment_penalty": 0.0, "inner_max_leaf_nodes": leaves}
    one = tree_for(criterion, **params).fit(X, y, sample_weight=times)
    other = tree_for(criterion, **params).fit(X[repeated], y[repeated])
    held = X[times > 0]
    nodes, same = ({rows.tobytes() for rows in rows_of_nodes(tree, held)} for tree in (one, other))
    assert nodes == same
    assert_allclose(np.sort(one.tree_.gain), np.sort(other.tree_.gain), rtol=1e-9)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("refine", [None, "tao"])
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_the_rows_changes_nothing(criterion, refine, seed):
    rng = np.random.default_rng(seed)
    X, y = interacting(criterion, rng, 600)
    X[::9, 0] = np.nan
    order = rng.permutation(len(X))
    one, other = (
        tree_for(criterion, pairs="auto", refine=refine, random_state=0) for _ in range(2)
    )
    assert_same_tree(one.fit(X, y), other.fit(X[order], y[order]))
    assert n_pair_nodes(one) > 0


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("seed", range(4))
def test_integer_weights_are_repeated_rows_also_where_pairs_must_hold_up(criterion, seed):
    rng = np.random.default_rng(seed)
    X, y = interacting(criterion, rng, 400)
    times = rng.integers(1, 4, len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), times))
    params = {"pairs": "auto", "max_depth": 4, "random_state": 0}
    one = tree_for(criterion, **params).fit(X, y, sample_weight=times)
    other = tree_for(criterion, **params).fit(X[repeated], y[repeated])
    assert n_pair_nodes(one) > 0
    assert_array_equal(one.tree_.feature, other.tree_.feature)
    assert_array_equal(one.tree_.second_feature, other.tree_.second_feature)
    assert_array_equal(one.apply(X), other.apply(X))


def test_rows_of_few_values_are_halved_too():
    # Every row of a checkerboard of categories is there many times over.
    X = pd.DataFrame({"a": ["p", "q"] * 200, "b": ["r", "r", "s", "s"] * 100}, dtype="category")
    y = (X["a"] == "p") ^ (X["b"] == "r")
    model = ShapeTreeClassifier(pairs="auto").fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) == 1.0


def sample_with(weights, content):
    """A sample of rows that have nothing but weights and contents."""
    n = len(weights)
    nothing = Targets(np.zeros((n, 1), dtype=np.int32), None, None, 1)
    return Sample((), Columns([np.zeros(n)], n), Columns([], n), nothing, weights, content, 1.0)


def test_rows_with_the_same_content_are_on_one_side():
    rng = np.random.default_rng(0)
    content = rng.integers(0, 500, 900).astype(np.uint64)
    weights = rng.uniform(0.5, 2.0, 900)
    weights[content == 7] = 1000.0
    halvings = list(sample_with(weights, content).halvings(2))
    for (one, other), (other_again, one_again) in halvings:
        assert_array_equal(one, one_again)
        assert_array_equal(other, other_again)
        assert set(one) | set(other) == set(range(900))
        assert set(content[one]) & set(content[other]) == {7}
        assert abs(len(set(content[one])) - len(set(content[other]))) <= 1
    # Two ways to halve have half of the rows in common.
    assert abs(len(np.intersect1d(halvings[0][0][0], halvings[1][0][0])) - 225) < 60


@given(st.integers(1, 60), seeds)
def test_halves_do_not_depend_on_order_or_repeats(n_rows, seed):
    rng = np.random.default_rng(seed)
    content = rng.integers(0, 2**63, n_rows).astype(np.uint64)
    times = rng.integers(1, 4, n_rows)
    repeated = rng.permutation(np.repeat(np.arange(n_rows), times))
    one = sample_with(times.astype(float), content).halvings(2)
    other = sample_with(np.ones(len(repeated)), content[repeated]).halvings(2)
    for halving, again in zip(one, other, strict=True):
        for side, same in zip(halving[0], again[0], strict=True):
            assert set(content[side]) == set(content[repeated][same])


@given(st.integers(2, 4), st.integers(1, 5), st.floats(0.0, 4.0), seeds)
def test_no_split_within_its_slack_sends_more_regret_to_wrong_branches(k, n_rows, slack, seed):
    others = np.random.default_rng(seed).integers(-4, 5, (n_rows, k - 1)) / 4
    care = LocalCareSet(None, np.arange(n_rows, dtype=np.int32), others, k)
    most = most_in_wrong_branches(care.losses_by_ratio(), slack)
    losses = np.insert(others, 0, 0.0, axis=1)
    losses -= losses.min(axis=1, keepdims=True)
    for branches in product(range(k), repeat=n_rows):
        lost = losses[np.arange(n_rows), branches]
        if lost.sum() <= slack:
            assert losses[lost > 0].sum() <= most + 1e-9


def test_large_nodes_are_fitted_on_a_sample(monkeypatch):
    monkeypatch.setattr(_pair_options, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(_grower, "SAMPLE_ROWS", 500)
    X, y = xor(np.random.default_rng(0), 4000, 30)
    model = ShapeTreeClassifier(pairs="auto", max_depth=2, min_samples_leaf=20).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) > 0.93
    assert model.tree_.n_node_samples.min() >= 20
    assert_routes_alike(model, X)


@pytest.mark.parametrize("pairs", [0, "auto"])
def test_wide_tables_take_memory_in_proportion(pairs, monkeypatch):
    # 2,500 features have 3 million pairs, of which few are looked at.
    monkeypatch.setattr(_pair_options, "MAX_PAIRED_FEATURES", 250)
    X = np.random.default_rng(0).normal(size=(20, 2500)).astype(np.float32)
    y = np.arange(20) % 2 == 0  # which no small tree tells, so that resamples look at pairs, too
    params = {"pairs": pairs, "max_depth": 1, "refine": None, "n_threads": 1, "resamples": 20}
    peaks = []
    for n_features in (1250, 2500):
        tracemalloc.start()
        make_tree(ShapeTreeClassifier, **params).fit(X[:, :n_features], y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2.5 * peaks[0] + 2**21


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equal_weights_are_no_weights(criterion):
    X, y = interacting(criterion, np.random.default_rng(0))
    one, other = tree_for(criterion, pairs="auto"), tree_for(criterion, pairs="auto")
    assert_same_tree(one.fit(X, y), other.fit(X, y, sample_weight=np.ones(len(X))))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    "params", [{"pairs": "auto"}, {"pairs": 2, "pair_screen": "delta"}, {"max_bins": None}]
)
def test_the_tree_is_bitwise_the_same_for_any_number_of_threads(criterion, params):
    X, y = interacting(criterion, np.random.default_rng(0), 4000)
    X[::7, 1] = np.nan
    params = {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 2, "random_state": 0, **params}
    one, two = (tree_for(criterion, **params, n_threads=n_threads) for n_threads in (1, 2))
    assert_same_tree(one.fit(X, y), two.fit(X, y))
    assert n_pair_nodes(one) > 0
    assert_array_equal(one.apply(X), two.apply(X))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_bins", [255, None])
def test_a_pickled_tree_predicts_the_same(criterion, max_bins):
    X, y = interacting(criterion, np.random.default_rng(0))
    model = tree_for(criterion, pairs="auto", pair_penalty=0.0, max_bins=max_bins).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert n_pair_nodes(model) > 0
    assert_same_tree(model, again)
    assert_array_equal(model.predict(X), again.predict(X))


ROUTES = [
    (1.0, 0.0, np.float64),
    (1.0, 0.0, np.float32),
    (86_400.0, 1.6e9, np.float64),
    (86_400.0, 1.6e9, np.float32),
    (1e-12, 0.0, np.float64),
    (1e30, -1e30, np.float32),
    (1e300, 0.0, np.float64),
    (1e-300, 0.0, np.float64),
]


@pytest.mark.parametrize(("scale", "origin", "dtype"), ROUTES)
@examples(5)
@given(st.sampled_from(CRITERIA), st.sampled_from([255, None]), st.booleans(), seeds)
def test_training_and_prediction_route_alike(scale, origin, dtype, criterion, max_bins, gaps, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(150, 4))
    X[:, 2] = np.round(X[:, 2])
    score = X[:, 0] + X[:, 1] + np.abs(X[:, 2] - X[:, 3]) + rng.normal(scale=0.3, size=150)
    y = score if criterion in REGRESSION else np.digitize(score, [0.0, 1.5])
    X[:, :2] = X[:, :2] * scale + origin
    if gaps:
        X[rng.random(X.shape) < 0.05] = np.nan
    X = X.astype(dtype)
    params = {
        "pairs": "auto",
        "pair_penalty": 0.0,
        "max_depth": 2,
        "max_bins": max_bins,
        "n_threads": 1,
    }
    model = tree_for(criterion, **params).fit(X, y)
    assert_routes_alike(model, X)
    counts = rows_of_nodes(model, X).sum(axis=1)
    assert_array_equal(counts, model.tree_.n_node_samples)


# Limits


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_branches", [2, 3, 4])
def test_no_node_has_more_branches_than_allowed(criterion, max_branches):
    X, y = interacting(criterion, np.random.default_rng(0), 400)
    params = {"pairs": "auto", "pair_penalty": 0.0, "max_branches": max_branches, "max_depth": 2}
    tree = tree_for(criterion, **params).fit(X, y).tree_
    pairs = tree.second_feature >= 0
    assert pairs.any()
    assert tree.n_branches[pairs].max() <= max_branches


@BOTH
def test_four_quadrants_may_have_four_branches(kind):
    X, _ = xor(np.random.default_rng(0), 1000)
    y = 2 * (X[:, 0] > 0.2) + (X[:, 1] > -0.1)
    y = y if kind is ShapeTreeClassifier else np.array([0.0, 5.0, 11.0, 2.0])[y]
    model = kind(pairs="auto", max_branches=4, max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert model.tree_.n_branches[0] == 4
    assert model.score(X, y) > 0.99


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_leaf_nodes", [2, 3, 5, 8])
def test_trees_have_as_many_leaves_as_allowed(criterion, max_leaf_nodes):
    X, y = interacting(criterion, np.random.default_rng(0))
    params = UNRESTRAINED | {"pairs": "auto", "pair_penalty": 0.0, "inner_max_leaf_nodes": 4}
    model = tree_for(criterion, **params, max_leaf_nodes=max_leaf_nodes).fit(X, y)
    assert model.get_n_leaves() == max_leaf_nodes
    assert n_pair_nodes(model) > 0
    assert_routes_alike(model, X)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("min_samples_leaf", [7, 40])
def test_leaves_hold_the_rows_asked_for(criterion, min_samples_leaf):
    X, y = interacting(criterion, np.random.default_rng(0), 400)
    X[::9, 0] = np.nan
    params = {"pairs": "auto", "pair_penalty": 0.0, "min_samples_leaf": min_samples_leaf}
    model = tree_for(criterion, **params).fit(X, y)
    assert n_pair_nodes(model) > 0
    leaves = model.tree_.is_leaf
    assert model.tree_.n_node_samples[leaves].min() >= min_samples_leaf
    assert np.bincount(model.apply(X))[leaves].min() >= min_samples_leaf


@BOTH
def test_leaves_hold_the_weight_asked_for(kind):
    rng = np.random.default_rng(0)
    X, y = xor(rng, 600, 45)
    weights = rng.exponential(size=600)
    params = {"pairs": "auto", "pair_penalty": 0.0, "min_weight_fraction_leaf": 0.08}
    tree = (
        make_tree(kind, **params).fit(X, y + rng.integers(0, 2, 600), sample_weight=weights).tree_
    )
    assert np.any(tree.second_feature >= 0)
    held = tree.weighted_n_node_samples[tree.is_leaf]
    assert held.min() >= 0.08 * weights.sum() - 1e-9


@pytest.mark.parametrize("leaves", [2, 3, 4, 7])
def test_a_pair_has_no_more_regions_than_the_inner_tree_may_have_leaves(leaves):
    X, y = xor(np.random.default_rng(0), 600, 30)
    params = {"pairs": "auto", "pair_penalty": 0.0, "segment_penalty": 0.0, "max_depth": 2}
    tree = make_tree(ShapeTreeClassifier, inner_max_leaf_nodes=leaves, **params).fit(X, y).tree_
    pairs = tree.second_feature >= 0
    assert pairs.any()
    assert np.diff(tree.piece_start)[pairs].max() <= leaves


ALLOWED = [[("b", "c")], [(1, 2)], [["a", "d"], ["c", "b"]]]


def allowed_pairs(pairs):
    """Numbers of the features of some of `ALLOWED`."""
    return {(1, 2), (0, 3)} if len(pairs) > 1 else {(1, 2)}


def pairs_used(model):
    tree = model.tree_
    return {tuple(tree.features_of(node)) for node in np.flatnonzero(tree.second_feature >= 0)}


@pytest.mark.parametrize("pairs", ALLOWED)
def test_only_pairs_that_are_allowed_interact(pairs):
    rng = np.random.default_rng(0)
    X, y = xor(rng, 1000, 0, (0, 1), n_features=4)
    X = pd.DataFrame(X, columns=list("abcd"))
    params = {"pair_penalty": 0.0, "segment_penalty": 0.0, "leaf_penalty": 0.0, "max_depth": 3}
    # Unrefined: these pairs tell nothing, and refinement takes most of them away again.
    model = make_tree(ShapeTreeClassifier, pairs=pairs, **params, refine=None).fit(X, y)
    used = pairs_used(model)
    assert used
    assert used <= allowed_pairs(pairs)


@BOTH
@pytest.mark.parametrize("pairs", ALLOWED)
def test_only_pairs_that_are_allowed_interact_in_refined_trees(kind, pairs):
    # All pairs of a ring interact, those that are not allowed most.
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 4))
    above = (X > 0).astype(int)
    score = 3 * (above[:, 0] ^ above[:, 1]) + 3 * (above[:, 2] ^ above[:, 3])
    score += 2 * (above[:, 1] ^ above[:, 2]) + 2 * (above[:, 0] ^ above[:, 3])
    y = score + (rng.random(1000) < 0.1)
    X = pd.DataFrame(X, columns=list("abcd"))
    params = {"pair_penalty": 0.0, "leaf_penalty": 0.0, "max_depth": 3}
    model = make_tree(kind, pairs=pairs, **params).fit(X, y)
    assert len(model.refinement_history_) > 1
    used = pairs_used(model)
    assert used
    assert used <= allowed_pairs(pairs)
    assert pairs_used(make_tree(kind, pairs="all", **params).fit(X, y)) - allowed_pairs(pairs)


@BOTH
@pytest.mark.parametrize("pairs", [0, 1, "auto", "all"])
def test_a_single_feature_has_no_pairs(kind, pairs):
    X, y = np.arange(60.0)[:, None], np.arange(60) // 30
    if pairs == 1:
        with pytest.warns(UserWarning, match="more than the 0 pairs"):
            model = kind(pairs=pairs).fit(X, y)
    else:
        model = kind(pairs=pairs).fit(X, y)
    assert_same_tree(model, kind().fit(X, y))


@BOTH
@pytest.mark.parametrize("max_bins", [255, None])
def test_constant_and_empty_columns_do_no_harm(kind, max_bins):
    X, y = xor(np.random.default_rng(0), 400, 45)
    X = np.column_stack([X, np.zeros(400), np.full(400, np.nan), np.full(400, np.inf)])
    model = kind(pairs="all", max_depth=2, max_bins=max_bins).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert accuracy(model, X, y) > 0.97


# Several outputs, importances, text


def test_several_classifications_share_a_pair():
    X, one = xor(np.random.default_rng(0), 1000, 45)
    y = np.column_stack([np.array(["no", "yes"])[one], np.where(one, "b", "a")])
    model = ShapeTreeClassifier(pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert np.mean(model.predict(X) == y) > 0.97
    assert [shares.shape for shares in model.predict_proba(X)] == [(1000, 2), (1000, 2)]
    assert_routes_alike(model, X)


@pytest.mark.parametrize("criterion", REGRESSION)
def test_several_numbers_share_a_pair(criterion):
    X, one = xor(np.random.default_rng(0), 1000, 45)
    y = np.column_stack([one, 5.0 - 2 * one, 0.1 * one])
    model = ShapeTreeRegressor(objective=criterion, pairs="auto", max_depth=1).fit(X, y)
    assert pair_of_root(model) == [0, 1]
    assert model.score(X, y) > 0.9
    assert_routes_alike(model, X)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_bins", [255, None])
def test_gains_are_what_splits_take_away_of_impurity(criterion, max_bins):
    X, y = interacting(criterion, np.random.default_rng(0))
    y = np.round(3 * y) if criterion in REGRESSION else y
    params = {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 3, "max_bins": max_bins}
    tree = tree_for(criterion, **params).fit(X, y).tree_
    assert np.any(tree.second_feature >= 0)
    mass = tree.impurity * tree.weighted_n_node_samples
    for node in np.flatnonzero(~tree.is_leaf):
        taken = mass[node] - mass[tree.children(node)].sum()
        assert tree.gain[node] == pytest.approx(taken, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_pairs_gain_is_shared_between_its_features(criterion):
    X, y = interacting(criterion, np.random.default_rng(0))
    model = tree_for(criterion, pairs="auto", pair_penalty=0.0, max_depth=3).fit(X, y)
    tree, shares = model.tree_, np.zeros(X.shape[1])
    for node in np.flatnonzero(~tree.is_leaf):
        for feature in tree.features_of(node):
            shares[feature] += tree.gain[node] / (1 + (tree.second_feature[node] >= 0))
    assert n_pair_nodes(model) > 0
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert_allclose(model.feature_importances_, shares / shares.sum())


@BOTH
def test_a_lone_pair_shares_all_importance_equally(kind):
    X, y = xor(np.random.default_rng(0), 1000, 45, (0, 2), n_features=4)
    model = kind(pairs="auto", max_depth=1).fit(X, y)
    assert_allclose(model.feature_importances_, [0.5, 0, 0.5, 0])


@BOTH
def test_text_names_both_features_and_says_which_sums_go_where(kind):
    X = np.random.default_rng(0).uniform(-1, 1, (250, 2))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = (X.sum(axis=1) > 0.5).astype(int)
    model = kind(pairs="auto", max_depth=1).fit(pd.DataFrame(X, columns=["length", "width"]), y)
    lines = export_text(model, digits=2).splitlines()
    assert lines[0] == "length and width  [250 rows]"
    assert [line[3:].split(":")[0].rsplit(" ", 1)[0] for line in lines[1:]] == [
        "length + 1·width ≤",
        "length + 1·width >",
    ]


def test_decision_paths_pass_pair_nodes():
    X, y = xor(np.random.default_rng(0), 500, 45)
    model = ShapeTreeClassifier(pairs="auto").fit(X, y)
    paths = model.decision_path(X)
    assert_array_equal(paths[:, 0].toarray().ravel(), 1)
    assert_array_equal(np.asarray(paths.sum(axis=0)).ravel(), model.tree_.n_node_samples)


def test_trees_without_pairs_have_no_cuts():
    X, y = xor(np.random.default_rng(0), 200)
    arrays = arrays_of(ShapeTreeClassifier().fit(X, y).tree_)
    assert all(len(arrays[name]) == 0 for name in ("cut_a", "cut_low", "position"))


# Bad input


@BOTH
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_orientations": 1}, "n_orientations"),
        ({"n_orientations": 10**6}, "n_orientations"),
        ({"n_orientations": 2.5}, "n_orientations"),
        ({"pairs": -1}, "pairs"),
        ({"pairs": 1.5}, "pairs"),
        ({"pairs": "some"}, "pairs"),
        ({"pairs": None}, "pairs"),
        ({"pairs": True}, "pairs"),
        ({"pair_penalty": -1}, "pair_penalty"),
        ({"pair_penalty": "none"}, "pair_penalty"),
        ({"pair_penalty": NAN}, "pair_penalty"),
        ({"pair_screen": "x"}, "pair_screen"),
        ({"pairs": [("x0", "x9")]}, "x9"),
        ({"pairs": [(0, 5)]}, "index 5"),
        ({"pairs": [(0, 0)]}, "repeats"),
        ({"pairs": [(0,)]}, "two features or more"),
        ({"pairs": []}, "empty"),
        ({"pairs": [("x0", 1.0)]}, "by str or int"),
    ],
)
def test_parameters_that_make_no_sense_are_named(kind, params, message):
    X, y = xor(np.random.default_rng(0), 20, n_features=3)
    with pytest.raises((ValueError, TypeError), match=message):
        make_tree(kind, **params).fit(pd.DataFrame(X, columns=["x0", "x1", "x2"]), y)


@BOTH
def test_more_pairs_than_there_are_are_clipped_with_a_warning(kind):
    X, y = xor(np.random.default_rng(0), 300, 45, n_features=3)
    with pytest.warns(UserWarning, match="pairs=99 is more than the 3 pairs of 3 features"):
        model = kind(pairs=99, max_depth=2).fit(X, y)
    assert_same_tree(model, kind(pairs=3, max_depth=2).fit(X, y))


# scikit-learn's own checks


@parametrize_with_checks(
    [
        ShapeTreeClassifier(pairs="auto", n_threads=1),
        ShapeTreeClassifier(
            pairs="all", max_bins=None, n_threads=1, search=SearchOptions(pair_penalty=0.0)
        ),
        ShapeTreeRegressor(pairs="auto", n_threads=1),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
