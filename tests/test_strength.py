"""One knob for all penalties: what strength multiplies, and what it leaves alone."""

import numpy as np
import pytest
from data import assert_same_tree, data_for, make_tree, noisy_classes, tree_for
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import entropy

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]
# Prices in use by default, where rows are enough that a leaf can afford them. The price of
# refinement is that of growth for log loss, and one of its own for errors.
PRICES = {
    "log_loss": {"segment_penalty": 6.0, "leaf_penalty": 4.0},
    "error": {"segment_penalty": 6.0, "leaf_penalty": 4.0, "refine_penalty": 3.0},
}
PENALTIES = ("segment_penalty", "leaf_penalty", "refine_penalty")


@pytest.mark.parametrize("objective", PRICES)
@pytest.mark.parametrize("strength", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("pairs", [0, "auto"])
def test_strength_multiplies_every_automatic_penalty(objective, strength, pairs):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=600)
    params = {"objective": objective, "pairs": pairs, "max_depth": 3, "resamples": 0}
    given = {name: strength * price for name, price in PRICES[objective].items()}
    one_knob = make_tree(ShapeTreeClassifier, strength=strength, **params).fit(X, y)
    assert one_knob.get_n_leaves() > 1
    assert_same_tree(one_knob, make_tree(ShapeTreeClassifier, **given, **params).fit(X, y))


def test_a_leaf_costs_no_more_than_its_share_of_all_there_is_to_explain():
    X, y = noisy_classes(np.random.default_rng(0), n_rows=100)
    bits = 100 * entropy(np.bincount(y), base=2)
    params = {"max_depth": 3, "resamples": 0}
    usual = make_tree(ShapeTreeClassifier, **params).fit(X, y)
    assert_same_tree(
        usual, make_tree(ShapeTreeClassifier, leaf_penalty=0.01 * bits, **params).fit(X, y)
    )


@pytest.mark.parametrize("criterion", CRITERIA)
def test_strength_leaves_penalties_alone_that_are_given(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    given = dict(zip(PENALTIES, (1.0, 2.0, 0.5), strict=True)) | {"pair_penalty": 0.01}
    params = {"refine": "tao", "pairs": "auto", "max_depth": 3, **given}
    one, other = (tree_for(criterion, strength=m, **params).fit(X, y) for m in (1.0, 50.0))
    assert_same_tree(one, other)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_the_stronger_the_smaller(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    sizes = [
        tree_for(criterion, refine="tao", max_depth=5, strength=strength).fit(X, y).get_n_leaves()
        for strength in (0, 1, 5, 1e300)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == 1


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("pairs", [0, "auto"])
def test_without_strength_nothing_has_to_be_earned(criterion, pairs):
    X, y = data_for(criterion, np.random.default_rng(0))
    params = {"refine": "tao", "pairs": pairs, "max_depth": 3}
    free = dict.fromkeys(PENALTIES, 0.0)
    none = tree_for(criterion, strength=0.0, **params).fit(X, y)
    assert_same_tree(none, tree_for(criterion, **free, **params).fit(X, y))


@pytest.mark.parametrize("strength", [-0.1, np.inf, np.nan, "strong", None])
@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_strengths_that_make_no_sense_are_refused(strength, criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    with pytest.raises(ValueError, match="'strength' parameter"):
        tree_for(criterion, strength=strength).fit(X, y)


@pytest.mark.parametrize("objective", ["squared_error", "absolute_error"])
@pytest.mark.parametrize(("pairs", "units"), [(0, [1e-6, 3.0, 1e9]), (1, [3.0])])
def test_strength_and_its_choice_do_not_depend_on_the_units_of_y(objective, pairs, units):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.round(2 * X[:, 0] + (X[:, 1] > 0) + rng.normal(size=300), 3)

    def fitted(y, **params):
        return ShapeTreeRegressor(objective=objective, pairs=pairs, cv=3, **params).fit(X, y)

    for params in ({"strength": 0.5}, {"strength": [0.3, 1, 3], "shrinkage": "cv"}):
        one = fitted(y, **params)
        assert one.get_n_leaves() > 1
        for unit in units:
            other = fitted(unit * y, **params)
            assert one.strength_ == other.strength_
            assert one.shrinkage_ == other.shrinkage_
            assert_array_equal(one.apply(X), other.apply(X))
            assert_allclose(unit * one.predict(X), other.predict(X), rtol=1e-9)
    estimator = ShapeTreeRegressor(objective=objective, pairs=pairs, cv=3, strength=[0, 1, 10])
    one = estimator.strength_path(X, y)
    for unit in units:
        other = estimator.strength_path(X, unit * y)
        assert_allclose(one.score, other.score, rtol=1e-9)
        assert_array_equal(one.n_leaves, other.n_leaves)
        assert_array_equal(one.is_chosen, other.is_chosen)


@pytest.mark.parametrize(("objective", "power"), [("squared_error", 2), ("absolute_error", 1)])
def test_the_price_of_a_leaf_is_in_the_units_of_impurity_as_in_scikit_learn(objective, power):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X[:, 0] + rng.normal(size=300)
    trees = [
        ShapeTreeRegressor(objective=objective, ccp_alpha=0.02 * unit**power).fit(X, unit * y)
        for unit in (1.0, 1000.0)
    ]
    free = ShapeTreeRegressor(objective=objective).fit(X, y)
    assert 1 < trees[0].get_n_leaves() < free.get_n_leaves()
    assert_array_equal(trees[0].apply(X), trees[1].apply(X))
