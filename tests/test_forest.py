"""Forests: each tree sees rows and features of its own, and all of them predict together."""

import pickle

import numpy as np
import pandas as pd
import pytest
from chance import examples
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, make_classification
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import shapetree
from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
)
from shapetree.ensemble import _forest
from shapetree.fit import _growth
from shapetree.grow._feature_draw import FeatureDraw, HalfDraw
from shapetree.tree import _fitted

BOTH = pytest.mark.parametrize("kind", [ShapeForestClassifier, ShapeForestRegressor])
seeds = st.integers(0, 2**31 - 1)


def rows_for(kind, n_rows=150, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4)).round(1)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n_rows)
    return X, (signal > 0).astype(int) if kind is ShapeForestClassifier else signal


def forest(kind, **given):
    return kind(**{"n_estimators": 8, "random_state": 0, "n_threads": 1} | given)


def mixed_table(n_rows=200):
    random = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "size": np.where(random.random(n_rows) < 0.1, np.nan, random.normal(size=n_rows)),
            "colour": pd.Categorical(random.choice(["red", "green", "blue"], n_rows)),
            "place": random.choice(["here", "there"], n_rows),
        }
    )
    y = (table["size"].fillna(0) > 0) ^ (table["colour"] == "red")
    return table, np.where(y, "yes", "no")


def trees_of(fitted):
    return [tree.tree_ for tree in fitted.estimators_]


def assert_same_trees(one, other):
    for a, b in zip(trees_of(one), trees_of(other), strict=True):
        assert_array_equal(a.feature, b.feature)
        assert_array_equal(a.piece_upper, b.piece_upper)
        assert_array_equal(a.value, b.value)


# scikit-learn


@parametrize_with_checks(
    [
        ShapeForestClassifier(n_estimators=5, n_threads=1),
        ShapeForestClassifier(n_estimators=5, n_threads=1, bootstrap=False, max_branches=3),
        ShapeForestRegressor(n_estimators=5, n_threads=1),
        ShapeForestRegressor(n_estimators=5, n_threads=2, criterion="absolute_error"),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)


# Predictions


@BOTH
def test_a_forest_predicts_the_mean_of_its_trees(kind):
    X, y = rows_for(kind)
    fitted = forest(kind).fit(X, y)
    if kind is ShapeForestClassifier:
        mean = np.mean([tree.predict_proba(X) for tree in fitted.estimators_], axis=0)
        assert_allclose(fitted.predict_proba(X), mean, rtol=1e-12)
        assert_array_equal(fitted.predict(X), fitted.classes_[mean.argmax(axis=1)])
    else:
        mean = np.mean([tree.predict(X) for tree in fitted.estimators_], axis=0)
        assert_allclose(fitted.predict(X), mean, rtol=1e-12)


@BOTH
def test_rows_are_predicted_in_parts(kind, monkeypatch):
    X, y = rows_for(kind)
    fitted = forest(kind).fit(X, y)
    at_once = fitted.predict(X)
    monkeypatch.setattr(_fitted, "ROWS_TOGETHER", 7)
    assert_array_equal(fitted.predict(X), at_once)


@BOTH
def test_apply_and_decision_path_are_those_of_the_trees(kind):
    X, y = rows_for(kind)
    fitted = forest(kind).fit(X, y)
    leaves = fitted.apply(X)
    paths, starts = fitted.decision_path(X)
    assert leaves.shape == (len(X), 8)
    assert paths.shape == (len(X), starts[-1])
    for number, tree in enumerate(fitted.estimators_):
        assert_array_equal(leaves[:, number], tree.apply(X))
        own = paths[:, starts[number] : starts[number + 1]]
        assert_array_equal(own.toarray(), tree.decision_path(X).toarray())


def test_trees_are_ordinary_estimators():
    iris = load_iris(as_frame=True)
    fitted = forest(ShapeForestClassifier).fit(iris.data, iris.target_names[iris.target])
    tree = fitted.estimators_[3]
    assert isinstance(tree, ShapeTreeClassifier)
    assert tree.score(iris.data, iris.target_names[iris.target]) > 0.9
    assert "petal" in shapetree.export_text(tree)
    assert len(tree.rules()) == tree.get_n_leaves()
    assert "because" in str(tree.explain(iris.data[:1])[0])
    for tell in (tree.to_json, tree.shape_table, lambda: shapetree.export_html(tree)):
        with pytest.raises(ValueError, match="forest"):
            tell()
    X, y = load_diabetes(return_X_y=True)
    tree = forest(ShapeForestRegressor, max_depth=3).fit(X, y).estimators_[0]
    assert isinstance(tree, ShapeTreeRegressor)
    assert shapetree.export_text(tree)


def test_pictures_of_trees_need_rows():
    pytest.importorskip("matplotlib")
    X, y = load_iris(return_X_y=True)
    tree = forest(ShapeForestClassifier, max_depth=3).fit(X, y).estimators_[0]
    assert shapetree.plot_tree(tree, X, y) is not None
    with pytest.raises(ValueError, match="X and y"):
        shapetree.plot_tree(tree)


@BOTH
def test_a_forest_is_better_than_its_trees(kind):
    X, y = rows_for(kind, 600)
    fitted = forest(kind, n_estimators=50).fit(X[:400], y[:400])
    alone = np.mean([tree.score(X[400:], y[400:]) for tree in fitted.estimators_])
    assert fitted.score(X[400:], y[400:]) > alone + 0.03


def test_categories_and_missing_values():
    X, y = mixed_table()
    fitted = forest(ShapeForestClassifier, n_estimators=20).fit(X, y)
    assert fitted.score(X, y) > 0.95
    strange = pd.DataFrame({"place": ["nowhere"], "colour": ["red"], "size": [np.nan]})
    assert fitted.predict(strange)[0] in ("yes", "no")
    assert list(fitted.feature_names_in_) == ["size", "colour", "place"]
    with pytest.raises(ValueError, match="colour"):
        fitted.predict(X[["size", "place"]])


@BOTH
def test_several_outputs(kind):
    X, y = rows_for(kind)
    two = np.stack([y, -y], axis=1)
    fitted = forest(kind, oob_score=True, n_estimators=30).fit(X, two)
    assert fitted.predict(X).shape == (150, 2)
    assert fitted.n_outputs_ == 2
    assert fitted.oob_score_ > 0.0
    if kind is ShapeForestClassifier:
        first, second = fitted.predict_proba(X)
        assert_allclose(first[:, 1], second[:, 0])
        assert len(fitted.oob_decision_function_) == len(fitted.predict_log_proba(X)) == 2
    else:
        assert fitted.oob_prediction_.shape == (150, 2)


@BOTH
def test_pickled_and_cloned(kind):
    X, y = rows_for(kind)
    fitted = forest(kind, oob_score=True, n_estimators=30).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert_array_equal(again.predict(X), fitted.predict(X))
    assert again.oob_score_ == fitted.oob_score_
    assert_same_trees(clone(fitted).fit(X, y), fitted)


def test_pairs():
    random = np.random.default_rng(0)
    X = random.uniform(-1, 1, size=(600, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    fitted = forest(ShapeForestClassifier, n_estimators=3, max_depth=1, pairs="auto").fit(X, y)
    assert fitted.score(X, y) > 0.95
    assert (fitted.estimators_[0].tree_.second_feature >= 0).any()


def test_rows_in_batches(tmp_path):
    pytest.importorskip("pyarrow")
    X, y = mixed_table()
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet")
    batches = shapetree.from_parquet(tmp_path / "rows.parquet", target="y")
    one = forest(ShapeForestClassifier, n_estimators=30, oob_score=True, max_samples=40)
    other = clone(one)
    one.fit(X, y)
    other.fit(batches)
    assert_same_trees(one, other)
    assert_array_equal(one.predict_proba(X), other.predict_proba(batches))
    assert one.oob_score_ == other.oob_score_
    assert_array_equal(one.oob_decision_function_, other.oob_decision_function_)
    with pytest.raises(NotImplementedError, match="in memory"):
        other.oob_permutation_importances(batches)


# Chance


@BOTH
@given(seed=seeds)
@examples(5)
def test_the_same_forest_for_any_number_of_threads(kind, seed):
    X, y = rows_for(kind, seed=seed)
    fits = [forest(kind, n_threads=n, random_state=seed).fit(X, y) for n in (1, 2, 5)]
    assert_same_trees(fits[0], fits[1])
    assert_same_trees(fits[0], fits[2])
    other = forest(kind, random_state=seed + 1).fit(X, y)
    assert not np.array_equal(other.predict(X), fits[0].predict(X)) or kind is ShapeForestClassifier


@BOTH
def test_a_bootstrap_sample_is_a_tree_with_weights(kind):
    """A tree of the forest is the tree of rows that weigh as often as they were drawn."""
    X, y = rows_for(kind, 100)
    X = X[:, :1]  # few values, each with a bin of its own, and no ties between features
    fitted = forest(kind, max_features=None).fit(X, y)
    options, about = fitted._options(), fitted._tree()._parameters()
    is_class = kind is ShapeForestClassifier
    draws = _forest.draw_rows(X, y, None, about, options, is_class, fitted._fitted.seed)
    for number, tree in enumerate(fitted.estimators_):
        times = np.bincount(draws.of(draws.random(number)), minlength=len(X))
        assert times.sum() == len(X)
        alone = clone(tree).set_params(shrinkage=0).fit(X, y, sample_weight=times)
        assert_array_equal(alone.tree_.feature, tree.tree_.feature)
        assert_array_equal(alone.tree_.n_node_samples, tree.tree_.n_node_samples)
        if not is_class:  # whose leaves are not smoothed
            assert_allclose(alone.predict(X), tree.predict(X), rtol=1e-9)


@BOTH
@given(seed=seeds)
@examples(5)
def test_weights_repeat_rows_in_any_order(kind, seed):
    X, y = rows_for(kind, 60, seed)
    random = np.random.default_rng(seed)
    weights = random.integers(0, 4, size=60)
    weights[:2] = 1
    order = random.permutation(weights.sum())
    weighed = forest(kind).fit(X, y, sample_weight=weights)
    repeated = forest(kind).fit(X.repeat(weights, axis=0)[order], y.repeat(weights)[order])
    assert_allclose(weighed.predict(X), repeated.predict(X), rtol=1e-7, atol=1e-9)


@given(st.integers(1, 30), st.integers(1, 30), seeds)
def test_as_many_features_are_drawn_as_asked_for(n_features, n_drawn, seed):
    draw = FeatureDraw(n_features, min(n_drawn, n_features), np.array([seed], dtype=np.uint64))
    nodes = range(1, 40)
    allowed = draw.allowed(nodes)
    assert_array_equal(allowed.sum(axis=1), min(n_drawn, n_features))
    assert_array_equal(draw.allowed([7, 3]), allowed[[6, 2]])
    while (more := draw.more()) is not None:
        assert (more.allowed(nodes) >= draw.allowed(nodes)).all()
        draw = more
    assert draw.allowed(nodes).all()


def test_every_feature_is_drawn_as_often_as_the_others():
    shares = FeatureDraw(10, 3, np.array([5], dtype=np.uint64)).allowed(range(5000)).mean(axis=0)
    assert_allclose(shares, 0.3, atol=0.03)


def test_half_of_the_features_are_drawn_by_what_they_hold():
    keys, seeds = np.arange(20, dtype=np.uint64) ** 3, np.array([5, 6], dtype=np.uint64)
    trees = np.repeat([0, 1], 2000)
    draw, nodes = HalfDraw(keys, seeds), np.tile(np.arange(2000), 2)
    allowed = draw.allowed(nodes, trees)
    assert_allclose(allowed.mean(axis=0), 0.5, atol=0.04)
    assert_allclose(np.corrcoef(allowed[:2000].ravel(), allowed[2000:].ravel())[0, 1], 0, atol=0.03)
    # Neither the order of features nor other features change it.
    some = np.random.default_rng(0).permutation(20)[:7]
    assert_array_equal(HalfDraw(keys[some], seeds).allowed(nodes, trees), allowed[:, some])
    every = draw.more()
    assert every is not None
    assert every.allowed(nodes, trees).all()
    assert every.more() is None


def test_features_are_drawn_until_one_splits():
    X = np.zeros((40, 50))
    X[:, 17] = np.arange(40)
    fitted = forest(ShapeForestClassifier, max_features=1).fit(X, np.arange(40) > 20)
    assert all(set(tree.tree_.used_features) == {17} for tree in fitted.estimators_)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("sqrt", 4), ("log2", 4), (None, 20), (7, 7), (70, 20), (0.5, 10), (1.0, 20), (0.001, 1)],
)
def test_max_features(given, expected):
    assert (
        forest(ShapeForestClassifier, max_features=given)._options().n_features_drawn(20)
        == expected
    )


# Out of bag


def naive_left_out(fitted, X, y):
    """What trees say of rows that they have not drawn, row after row."""
    is_class = isinstance(fitted, ShapeForestClassifier)
    about = fitted._tree()._parameters(), fitted._options(), is_class, fitted._fitted.seed
    draws = _forest.draw_rows(X, y, None, *about)
    said = [[] for _ in y]
    for number, tree in enumerate(fitted.estimators_):
        drawn = set(draws.of(draws.random(number)).tolist())
        values = tree.predict_proba(X) if is_class else tree.predict(X)
        for row in range(len(y)):
            if row not in drawn:
                said[row].append(values[row])
    return np.array([np.mean(each, axis=0) for each in said])


@BOTH
@given(seed=seeds)
@examples(5)
def test_out_of_bag_is_what_trees_say_of_rows_not_drawn(kind, seed):
    X, y = rows_for(kind, 80, seed)
    fitted = forest(kind, n_estimators=30, oob_score=True, random_state=seed).fit(X, y)
    naive = naive_left_out(fitted, X, y)
    if kind is ShapeForestClassifier:
        assert_allclose(fitted.oob_decision_function_, naive, rtol=1e-9)
        assert_allclose(fitted.oob_score_, accuracy_score(y, naive.argmax(axis=1)))
    else:
        assert_allclose(fitted.oob_prediction_, naive, rtol=1e-9)
        assert_allclose(fitted.oob_score_, r2_score(y, naive))


def test_out_of_bag_scores_tell_of_new_rows():
    X, y = make_classification(2000, 10, n_informative=5, flip_y=0.2, random_state=0)
    fitted = forest(ShapeForestClassifier, n_estimators=50, oob_score=True).fit(X[:1000], y[:1000])
    assert abs(fitted.oob_score_ - fitted.score(X[1000:], y[1000:])) < 0.04
    assert fitted.score(X[:1000], y[:1000]) > fitted.oob_score_ + 0.1


def test_out_of_bag_scores_that_are_not_known():
    X, y = rows_for(ShapeForestClassifier)
    with pytest.warns(UserWarning, match="n_estimators"):
        fitted = forest(ShapeForestClassifier, n_estimators=1, oob_score=True).fit(X, y)
    assert np.isnan(fitted.oob_decision_function_).any(axis=1).sum() > 60
    assert 0.4 < fitted.oob_score_ < 1
    fitted = forest(ShapeForestClassifier).fit(X, y)
    for name in ("oob_score_", "oob_decision_function_"):
        with pytest.raises(AttributeError, match="oob_score=False"):
            getattr(fitted, name)


def test_out_of_bag_rows_of_weight_zero_and_a_score_of_ones_own():
    X, y = rows_for(ShapeForestRegressor)
    weights = np.ones(150)
    weights[:10] = 0
    judge = lambda truth, said: len(truth)  # noqa: E731
    fitted = forest(ShapeForestRegressor, n_estimators=40, oob_score=judge)
    fitted.fit(X, y, sample_weight=weights)
    assert_array_equal(np.flatnonzero(np.isnan(fitted.oob_prediction_)), np.arange(10))
    assert fitted.oob_score_ == 140


@BOTH
def test_importances(kind):
    X, y = rows_for(kind, 400)
    fitted = forest(kind, n_estimators=30, oob_score=True).fit(X, y)
    assert_allclose(fitted.feature_importances_.sum(), 1.0)
    found = fitted.oob_permutation_importances(X, y, n_repeats=3)
    assert found.importances.shape == (4, 3)
    assert found.score == fitted.oob_score_
    assert found.importances_mean[:3].min() > found.importances_mean[3] + 0.01
    assert_array_equal(
        found.importances, fitted.oob_permutation_importances(X, y, n_repeats=3).importances
    )
    with pytest.raises(ValueError, match="fitted on"):
        fitted.oob_permutation_importances(X + 1, y[::-1])
    with pytest.raises(ValueError, match="n_repeats"):
        fitted.oob_permutation_importances(X, y, n_repeats=0)


def test_importances_of_no_split():
    fitted = forest(ShapeForestRegressor).fit(np.zeros((20, 2)), np.arange(20.0))
    assert_array_equal(fitted.feature_importances_, [0.0, 0.0])


# Growing on


@BOTH
def test_warm_start_continues(kind):
    X, y = rows_for(kind)
    grown = forest(kind, n_estimators=3, warm_start=True, oob_score=True)
    with pytest.warns(UserWarning, match="out-of-bag"):
        grown.fit(X, y)
    grown.set_params(n_estimators=30).fit(X, y)
    at_once = forest(kind, n_estimators=30, oob_score=True).fit(X, y)
    assert_same_trees(grown, at_once)
    assert grown.oob_score_ == at_once.oob_score_
    with pytest.warns(UserWarning, match="n_estimators"):
        grown.fit(X, y)
    with pytest.raises(ValueError, match="n_estimators"):
        grown.set_params(n_estimators=4).fit(X, y)
    with pytest.raises(ValueError, match="warm_start"):
        grown.set_params(n_estimators=40).fit(X[:, :2], y)
    assert_same_trees(grown, at_once)


# What does not work


@BOTH
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"max_samples": 0}, "max_samples"),
        ({"max_samples": 1000}, "max_samples"),
        ({"max_samples": 5, "bootstrap": False}, "max_samples"),
        ({"oob_score": True, "bootstrap": False}, "oob_score"),
        ({"max_features": "all"}, "max_features"),
        ({"max_features": 0}, "max_features"),
        ({"min_samples_leaf": 0}, "min_samples_leaf"),
        ({"max_branches": 1}, "max_branches"),
        ({"n_threads": 0}, "n_threads"),
        ({"criterion": "best"}, "criterion"),
    ],
)
def test_errors_name_the_parameter(kind, given, named):
    X, y = rows_for(kind)
    with pytest.raises(ValueError, match=named):
        forest(kind, **given).fit(X, y)


@BOTH
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_fit_that_fails_leaves_all_as_it_was(kind, n_threads, monkeypatch):
    X, y = rows_for(kind)
    fitted = forest(kind, n_threads=n_threads).fit(X, y)
    before = fitted.predict(X)
    calls = []

    def stop(*about):
        calls.append(about)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return shrink(*about)

    shrink = _forest.shrink
    monkeypatch.setattr(_forest, "shrink", stop)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X[::2], y[::2])
    assert_array_equal(fitted.predict(X), before)
    fresh = forest(kind)
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X, y)
    assert "_fitted" not in vars(fresh)


def test_class_weight():
    X, y = rows_for(ShapeForestClassifier, 300)
    plain = forest(ShapeForestClassifier, max_depth=2).fit(X, y)
    heavy = forest(ShapeForestClassifier, max_depth=2, class_weight={0: 1, 1: 10}).fit(X, y)
    assert heavy.predict_proba(X)[:, 1].mean() > plain.predict_proba(X)[:, 1].mean() + 0.2


def test_huge_weights_draw_no_more_rows_than_memory_holds():
    X, y = rows_for(ShapeForestClassifier)
    fitted = forest(ShapeForestClassifier).fit(X, y, sample_weight=np.full(150, 1_000_000))
    assert fitted.estimators_[0].tree_.n_node_samples[0] == 16 * 150


# Trees that grow together


@BOTH
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"max_features": 1, "max_branches": 3},
        {"max_leaf_nodes": 9, "max_branches": 4},
        {"max_leaf_nodes": 12, "max_features": 2, "max_samples": 40},
        {"bootstrap": False, "max_features": 2, "max_depth": 3},
        {"max_bins": None},
        {"pairs": "auto", "max_depth": 4},
        {"pairs": "auto", "max_depth": 3, "max_bins": None, "n_threads": 2},
        {"pairs": "auto", "max_leaf_nodes": 6, "max_features": 2},
    ],
)
def test_trees_that_grow_together_are_those_that_grow_alone(kind, given, monkeypatch):
    X, y = rows_for(kind, 300)
    if kind is ShapeForestClassifier:
        y = y + 2 * (X[:, 3] > 0.5) + 4 * (X[:, 1] > 1)  # assignments begin at random
    together = forest(kind, **given).fit(X, y)
    for bytes_together in (1, 3 * 300 * _growth.BYTES_PER_ROW):  # one by one, and by threes
        monkeypatch.setattr(_growth, "BYTES_TOGETHER", bytes_together)
        assert_same_trees(forest(kind, **given).fit(X, y), together)
