"""What estimators do to a grown tree besides refining it: prune, simplify, shrink."""

import numpy as np
import pytest
from data import (
    REGRESSION,
    UNRESTRAINED,
    data_for,
    distinct_weights,
    make_tree,
    noisy_classes,
    noisy_numbers,
    tree_for,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.fit._parameters import SHRINKAGES
from shapetree.refine import Shrinkage, shrink

CRITERIA = ["gini", "entropy", "squared_error", "absolute_error"]


def cart_pair(criterion, **params):
    """A shape tree that is CART, and scikit-learn's."""
    theirs = DecisionTreeRegressor if criterion in REGRESSION else DecisionTreeClassifier
    # More rows in leaves leave no ties that rounding would have to break.
    params = {"min_samples_leaf": 3} | params
    thresholds = UNRESTRAINED | {"inner_max_leaf_nodes": 2, "max_branches": 2} | params
    return tree_for(criterion, **thresholds), theirs(criterion=criterion, random_state=0, **params)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
@pytest.mark.parametrize("seed", range(3))
def test_pruned_carts_are_those_of_scikit_learn(criterion, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng)
    weights = distinct_weights(rng, len(X))
    ours, theirs = cart_pair(criterion)
    path, their_path = (tree.cost_complexity_pruning_path(X, y, weights) for tree in (ours, theirs))
    assert_allclose(path.ccp_alphas, their_path.ccp_alphas, atol=1e-10)
    assert_allclose(path.impurities, their_path.impurities, atol=1e-10)
    for low, high in zip(path.ccp_alphas[::7], path.ccp_alphas[1::7], strict=False):
        alpha = (low + high) / 2
        mine, other = (
            clone(tree).set_params(ccp_alpha=alpha).fit(X, y, weights) for tree in (ours, theirs)
        )
        assert mine.get_n_leaves() == other.get_n_leaves()
        assert_allclose(mine.predict(X), other.predict(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_higher_price_of_leaves_gives_smaller_trees(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    model = tree_for(criterion, leaf_penalty=0.0, segment_penalty=0.0)
    sizes = [
        clone(model).set_params(ccp_alpha=alpha).fit(X, y).get_n_leaves()
        for alpha in (0.0, 0.003, 0.03, 1e9)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == 1


def test_the_pruning_path_leaves_the_estimator_unfitted():
    X, y = noisy_classes(np.random.default_rng(0))
    model = ShapeTreeClassifier()
    model.cost_complexity_pruning_path(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_chosen_nodes_become_leaves_of_a_new_estimator(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    model = tree_for(criterion, leaf_penalty=0.0).fit(X, y)
    before = model.predict(X)
    pruned = model.prune([1])
    assert pruned.tree_.is_leaf[1]
    assert pruned.get_n_leaves() < model.get_n_leaves()
    assert_allclose(pruned.tree_.value[1], model.tree_.value[1])
    assert_array_equal(model.predict(X), before)
    assert model.prune([0]).get_n_leaves() == 1


@pytest.mark.parametrize("nodes", [[-1], [10_000], [1.5], ["root"], [True], 3])
def test_nodes_that_do_not_exist_are_not_pruned(nodes):
    X, y = noisy_classes(np.random.default_rng(0))
    model = ShapeTreeClassifier().fit(X, y)
    with pytest.raises((TypeError, ValueError), match="nodes must"):
        model.prune(nodes)


@pytest.mark.parametrize("method", [lambda tree: tree.prune([0]), lambda tree: tree.simplify()])
def test_unfitted_trees_are_not_made_smaller(method):
    with pytest.raises(NotFittedError):
        method(ShapeTreeClassifier())


@pytest.mark.parametrize("criterion", ["auto", "gini", "entropy"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_simplified_classifiers_predict_the_same(criterion, n_outputs):
    rng = np.random.default_rng(0)
    X, y = noisy_classes(rng)
    y = y if n_outputs == 1 else np.stack([y, y > 0], axis=1)
    model = ShapeTreeClassifier(
        refine=None, search=SearchOptions(criterion=criterion, leaf_penalty=0)
    ).fit(X, y)
    simple = model.simplify()
    assert simple.get_n_leaves() < model.get_n_leaves()
    assert_array_equal(simple.predict(X), model.predict(X))
    new = rng.normal(size=(500, X.shape[1])) * X.std(axis=0) + X.mean(axis=0)
    new[rng.random(new.shape) < 0.1] = np.nan
    assert_array_equal(simple.predict(new), model.predict(new))
    again = simple.simplify()
    assert again.tree_.node_count == simple.tree_.node_count


def test_simplified_regressors_predict_the_same():
    X, y = noisy_numbers(np.random.default_rng(0))
    model = ShapeTreeRegressor(refine=None, search=SearchOptions(leaf_penalty=0)).fit(
        X, np.round(y)
    )
    assert_array_equal(model.simplify().predict(X), model.predict(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_shrinkage_shrinks_the_fitted_tree(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    plain = tree_for(criterion).fit(X, y)
    shrunk = tree_for(criterion, shrinkage=25).fit(X, y)
    assert shrunk.shrinkage_ == 25
    assert_allclose(shrunk.tree_.value, shrink(plain.tree_, Shrinkage(25.0)).value)
    assert not np.allclose(shrunk.tree_.value, plain.tree_.value)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_cross_validation_chooses_a_shrinkage(criterion):
    rng = np.random.default_rng(0)
    X, y = data_for(criterion, rng)
    model = tree_for(criterion, shrinkage="cv", leaf_penalty=0.0).fit(X, y)
    assert model.shrinkage_ in SHRINKAGES
    assert model.shrinkage_ > 0
    weights = rng.integers(1, 4, len(X)).astype(float)
    assert model.fit(X, y, sample_weight=weights).shrinkage_ in SHRINKAGES


def test_a_chosen_shrinkage_predicts_noise_better():
    rng = np.random.default_rng(0)
    X, new_X = rng.normal(size=(2, 600, 5))
    y, new_y = (rng.random(600) < 0.5 + 0.2 * np.sign(table[:, 0]) for table in (X, new_X))
    plain = ShapeTreeClassifier(refine=None, max_depth=6, search=SearchOptions(leaf_penalty=0)).fit(
        X, y
    )
    chosen = clone(plain).set_params(shrinkage="cv").fit(X, y)
    loss, shrunk_loss = (log_loss(new_y, tree.predict_proba(new_X)) for tree in (plain, chosen))
    assert shrunk_loss < loss


@pytest.mark.parametrize(
    ("values", "cv", "wanted", "found"),
    [([0, 1, 2], 5, 5, 3), ([0, 0, 0], 3, 3, 1), ([0, 0, 0], None, 2, 1)],
)
def test_too_few_rows_for_cross_validation_are_refused(values, cv, wanted, found):
    model = ShapeTreeClassifier(shrinkage="cv", cv=cv, resamples=0)
    words = rf"needs at least {wanted} distinct rows, got 3 sample\(s\) and {found} distinct rows"
    with pytest.raises(ValueError, match=words):
        model.fit(np.reshape(values, (3, 1)), [0, 1, 0])


def test_few_rows_are_cross_validated_in_fewer_folds_by_default():
    model = ShapeTreeClassifier(shrinkage="cv", resamples=0).fit([[0], [1], [2]], [0, 1, 0])
    assert [f"split{fold}_test_score" in model.cv_results_ for fold in range(4)] == [1, 1, 1, 0]


@pytest.mark.parametrize(
    "params", [{"ccp_alpha": -1.0}, {"shrinkage": -1}, {"shrinkage": "x"}, {"lookahead": 0}]
)
def test_values_that_make_no_sense_are_refused(params):
    X, y = noisy_classes(np.random.default_rng(0))
    with pytest.raises(ValueError, match=next(iter(params))):
        make_tree(ShapeTreeClassifier, **params).fit(X, y)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("max_branches", [2, 3])
@pytest.mark.parametrize("max_bins", [255, None])
def test_two_levels_gain_no_less_with_a_look_ahead(criterion, max_branches, max_bins):
    impurities = {1: [], 4: []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 6, (150, 6)), rng.integers(0, 2, 150)
        for lookahead, found in impurities.items():
            params = {"max_depth": 2, "max_branches": max_branches, "max_bins": max_bins}
            model = tree_for(criterion, **UNRESTRAINED | params, lookahead=lookahead)
            tree = model.fit(X, y).tree_
            found.append((tree.impurity * tree.weighted_n_node_samples)[tree.is_leaf].sum())
    assert np.all(np.array(impurities[4]) <= np.array(impurities[1]) + 1e-8)
    if max_branches == 2:
        assert np.any(np.array(impurities[4]) < np.array(impurities[1]) - 1e-8)


@pytest.mark.parametrize(
    ("params", "lookahead"),
    [
        ({"max_leaf_nodes": 8, "max_depth": None}, 3),
        ({"max_leaf_nodes": 8, "max_depth": None, "pairs": 2}, 1),
        ({"max_depth": 3}, 1),
    ],
)
def test_trees_look_ahead_where_leaves_are_limited(params, lookahead):
    X, y = noisy_classes(np.random.default_rng(0), n_rows=400)
    trees = [
        make_tree(ShapeTreeClassifier, **params, lookahead=given, resamples=0).fit(X, y).tree_
        for given in ("auto", lookahead)
    ]
    assert_array_equal(trees[0].feature, trees[1].feature)
    assert_array_equal(trees[0].n_node_samples, trees[1].n_node_samples)
