"""The paper's models, by name."""

import numpy as np
import pytest
from data import assert_same_tree, distinct_weights, flat_params, noisy_classes, noisy_numbers
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import ParameterSampler, RandomizedSearchCV
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import recipes
from shapetree.recipes import NAMES, estimator, search_space

TASKS = ["classification", "regression"]
SMALL = [0.0, 1e-4, 5e-4, 1e-3, 5e-3, 0.01]


def data_for(task, n_rows=120):
    make = noisy_classes if task == "classification" else noisy_numbers
    return make(np.random.default_rng(0), n_rows=n_rows)


def test_the_names_are_those_of_the_paper_in_its_order():
    assert NAMES == (
        "CART",
        "BiCART",
        "AxTAO",
        "BiTAO",
        "HSTree",
        "SGT-C",
        "SGT-T",
        "SGT3-C",
        "SGT3-T",
        "S2GT-C",
        "S2GT-T",
        "S2GT3-C",
        "S2GT3-T",
        "SGT-C(D)",
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_explained(name):
    assert [line for line in recipes.__doc__.splitlines() if line.split("  ")[0] == name]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_fits_and_clones(name, task):
    X, y = data_for(task, n_rows=400)
    model = estimator(name, task=task, max_depth=3)
    assert is_classifier(model) == (task == "classification")
    copy = clone(model)
    assert flat_params(copy) == flat_params(model)
    assert_same_tree(model.fit(X, y), copy.fit(X, y))
    assert model.get_n_leaves() > 1
    assert len(model.predict(X)) == len(X)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_every_sample_of_a_search_space_fits(name, task):
    X, y = data_for(task, n_rows=80)
    space = search_space(name, len(y), task=task)
    for sample in ParameterSampler(space, n_iter=20, random_state=0):
        model = estimator(name, task=task, **sample).fit(X, y)
        assert 0 <= model.get_depth() <= sample["max_depth"]


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("max_depth", [1, 3, None])
def test_cart_is_scikit_learns_classifier(load, criterion, max_depth):
    X, y = load(return_X_y=True)
    X = X.astype(np.float32)
    # Different weights, and none of the splits of scikit-learn is one of several equally good.
    weights = distinct_weights(np.random.default_rng(0), len(y))
    ours = estimator("CART", search__criterion=criterion, max_depth=max_depth)
    theirs = DecisionTreeClassifier(criterion=criterion, max_depth=max_depth, random_state=0)
    ours.fit(X, y, weights)
    theirs.fit(X, y, weights)
    assert ours.get_n_leaves() == theirs.get_n_leaves()
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_cart_is_scikit_learns_classifier_on_new_rows(n_classes):
    X, y = noisy_classes(np.random.default_rng(1), n_rows=600, n_classes=n_classes)
    weights = distinct_weights(np.random.default_rng(0), 300)
    ours = estimator("CART", max_depth=4).fit(X[:300], y[:300], weights)
    theirs = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:300], y[:300], weights)
    # Only rows that lie between the two thresholds of a gap may differ: ours have fewer digits.
    assert (ours.predict(X[300:]) == theirs.predict(X[300:])).mean() > 0.98


@pytest.mark.parametrize("max_depth", [1, 3, 5])
def test_cart_is_scikit_learns_regressor(max_depth):
    X, y = load_diabetes(return_X_y=True)
    X, weights = X.astype(np.float32), distinct_weights(np.random.default_rng(0), len(y))
    ours = estimator("CART", task="regression", max_depth=max_depth).fit(X, y, weights)
    theirs = DecisionTreeRegressor(max_depth=max_depth, random_state=0).fit(X, y, weights)
    assert_allclose(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("name", NAMES)
def test_parameters_override_a_recipe(name):
    chosen = {"max_depth": 3, "max_branches": 4}
    chosen |= {"search__criterion": "entropy", "search__refine_iter": 2}
    params = estimator(name, **chosen).get_params()
    assert {key: params[key] for key in chosen} == chosen


def test_recipes_differ_from_each_other():
    params = [frozenset(flat_params(estimator(name)).items()) for name in NAMES]
    assert len(set(params)) == len(NAMES)


def test_unknown_names_are_refused_with_those_that_exist():
    for call in (lambda: estimator("C4.5"), lambda: search_space("C4.5", 100)):
        with pytest.raises(ValueError, match=r"name must be one of CART, .*, SGT-C\(D\); got 'C4"):
            call()


def test_unknown_tasks_and_numbers_of_rows_are_refused():
    with pytest.raises(ValueError, match="task must be one of classification, regression"):
        estimator("CART", task="ranking")
    with pytest.raises(ValueError, match="task must be one of classification, regression"):
        search_space("CART", 100, task="ranking")
    for n_rows in (0, 0.5, None):
        with pytest.raises((TypeError, ValueError), match="n_rows"):
            search_space("CART", n_rows)


def test_unknown_parameters_are_refused():
    with pytest.raises(TypeError, match="max_dept"):
        estimator("CART", max_dept=3)


# The paper's versions


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", NAMES)
def test_the_papers_versions_fit_without_our_penalties(name, task):
    X, y = data_for(task)
    model = estimator(name, task=task, paper=True, max_depth=3)
    params = model.get_params()
    ours = ("search__segment_penalty", "search__leaf_penalty", "search__branch_penalty")
    assert {params[penalty] for penalty in ours} == {0.0}
    assert params["max_bins"] is None
    if task == "classification":
        assert params["search__criterion"] == "gini"
    stronger = clone(model).set_params(strength=100.0)
    assert_same_tree(model.fit(X, y), stronger.fit(X, y))
    assert model.get_n_leaves() > 1


@pytest.mark.parametrize("name", [name for name in NAMES if "GT" in name])
def test_the_papers_versions_have_none_of_our_limits_and_smoothing(name):
    params = estimator(name, paper=True).get_params()
    assert params["objective"] == "error"
    assert params["max_parts"] is None
    assert (params["shrinkage"], params["resamples"], params["min_samples_leaf"]) == (0, 0, 1)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(("TAO", "-T"))])
def test_the_paper_refines_for_wrong_predictions_alone(name):
    X, y = data_for("classification")
    model = estimator(name, paper=True, max_depth=3).fit(X, y)
    history = model.refinement_history_
    assert_array_equal(history, np.rint(history))
    assert history[-1] == (model.predict(X) != y).sum()


@pytest.mark.parametrize("name", ["CART", "BiCART", "AxTAO", "BiTAO", "HSTree"])
def test_trees_of_thresholds_are_the_papers_anyway(name):
    assert flat_params(estimator(name, paper=True)) == flat_params(estimator(name))


@pytest.mark.parametrize("name", [name for name in NAMES if "GT" in name])
def test_shape_trees_come_in_two_versions(name):
    assert flat_params(estimator(name, paper=True)) != flat_params(estimator(name))


@pytest.mark.parametrize(
    "name", [name for name in NAMES if name.startswith("SGT") and name[-1] != "T"]
)
def test_the_papers_greedy_trees_gain_at_least_what_cart_does(name):
    X, y = data_for("classification", n_rows=300)
    ours = (
        estimator(name, paper=True, max_depth=1, search__inner_max_leaf_nodes=None).fit(X, y).tree_
    )
    assert ours.gain[0] >= estimator("CART", max_depth=1).fit(X, y).tree_.gain[0] - 1e-9


def test_the_papers_inner_trees_may_have_64_leaves_for_pairs_too():
    rng = np.random.default_rng(0)
    X = rng.random((6000, 2))
    y = ((np.floor(8 * X[:, 0]) + np.floor(8 * X[:, 1])) % 2).astype(int)
    params = {
        "max_depth": 1,
        "pairs": 1,
        "search__inner_max_leaf_nodes": 64,
        "search__n_orientations": 2,
    }
    tree = estimator("S2GT-C", paper=True, **params).fit(X, y).tree_
    assert 32 < len(tree.piece_branch) <= 64


# Search spaces


@pytest.mark.parametrize("name", NAMES)
def test_what_the_paper_tunes_everywhere(name):
    space = search_space(name, 1000)
    assert space["max_depth"] == [2, 3, 4, 5, 6]
    assert space["search__criterion"] == ["gini", "entropy"]
    assert space["min_samples_split"] == [2, 4, 8, 16, 32]
    assert space["min_samples_leaf"].support() == (1, 32)
    assert space["search__min_impurity_decrease"] == SMALL
    assert set(search_space(name, 1000, task="regression")) == set(space) - {"search__criterion"}


@pytest.mark.parametrize(
    ("parameter", "names"),
    [
        ("ccp_alpha", ["CART", "BiCART", "HSTree"]),
        ("shrinkage", ["HSTree"]),
        (
            "search__refine_penalty",
            ["AxTAO", "BiTAO", *(name for name in NAMES if name.endswith("-T"))],
        ),
        ("search__inner_max_leaf_nodes", [name for name in NAMES if "GT" in name]),
        ("search__inner_min_samples_leaf", [name for name in NAMES if "GT" in name]),
        ("search__branch_penalty", [name for name in NAMES if "3" in name]),
        ("search__pair_penalty", [name for name in NAMES if "S2" in name]),
        ("search__n_orientations", [name for name in NAMES if "S2" in name or "Bi" in name]),
    ],
)
def test_what_the_paper_tunes_in_some_models(parameter, names):
    assert {name for name in NAMES if parameter in search_space(name, 1000)} == set(names)


def test_the_price_of_refinement_is_a_share_of_the_rows():
    assert_allclose(search_space("AxTAO", 2000)["search__refine_penalty"], np.multiply(SMALL, 2000))


def test_spaces_are_independent_copies():
    search_space("CART", 100)["ccp_alpha"].clear()
    assert search_space("CART", 100)["ccp_alpha"] == SMALL


def test_a_search_space_works_in_a_randomised_search():
    X, y = data_for("classification")
    space = search_space("SGT3-T", len(y))
    search = RandomizedSearchCV(estimator("SGT3-T"), space, n_iter=3, cv=2, random_state=0)
    assert set(search.fit(X, y).best_params_) == set(space)


# What the names stand for


@pytest.mark.parametrize("name", NAMES)
def test_only_models_of_pairs_use_pairs_and_only_those_of_three_branches_three(name):
    X = np.random.default_rng(0).uniform(-1, 1, size=(400, 3))
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])
    tree = estimator(name, max_depth=3).fit(X, y).tree_
    assert tree.n_branches.max() == (3 if "3" in name else 2)
    assert (tree.second_feature >= 0).any() == name.startswith(("Bi", "S2"))


@pytest.mark.parametrize("name", NAMES)
def test_refined_models_tell_how(name):
    X, y = data_for("classification")
    model = estimator(name).fit(X, y)
    assert hasattr(model, "refinement_history_") == (name.endswith(("TAO", "-T")))


def test_shrinkage_tells_hstree_from_cart():
    X, y = data_for("classification")
    cart, shrunk = estimator("CART").fit(X, y), estimator("HSTree").fit(X, y)
    assert_array_equal(cart.apply(X), shrunk.apply(X))
    assert shrunk.predict_proba(X).max() < cart.predict_proba(X).max()
