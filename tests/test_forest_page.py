"""The page of a forest: one of its trees, the importances and the tree that it has taught."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_html import data_of

from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
)


def forest_of_classes(**options):
    X, y = load_iris(return_X_y=True, as_frame=True)
    return ShapeForestClassifier(n_estimators=6, random_state=0, **options).fit(X, y), X, y


def forest_of_numbers():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return ShapeForestRegressor(n_estimators=4, max_depth=3, random_state=0).fit(X, y), X, y


def test_the_tree_nearest_to_the_forest_is_shown():
    forest, X, y = forest_of_classes()
    mean = forest.predict_proba(X)
    far = [np.square(tree.predict_proba(X) - mean).sum() for tree in forest.estimators_]
    (shown,) = data_of(export_html(forest, X=X, y=y))["shown"]
    assert shown["name"] == f"Tree {np.argmin(far)}"
    tree = forest.estimators_[int(np.argmin(far))]
    assert len(shown["model"]["nodes"]) == tree.tree_.node_count
    same = np.mean(tree.predict(X) == forest.predict(X))
    assert f"agrees with the forest on {100 * same:.1f} %" in shown["model"]["scores"]


def test_a_tree_can_be_chosen_and_rows_are_those_given():
    forest, X, y = forest_of_classes()
    for number in (0, 5):
        (shown,) = data_of(export_html(forest, X=X[::2], y=y[::2], tree=number))["shown"]
        tree, nodes = forest.estimators_[number], shown["model"]["nodes"]
        reached = tree.decision_path(X[::2]).toarray().sum(axis=0)
        assert [node["rows"] for node in nodes] == reached.tolist()


def test_importances_are_the_forests():
    forest, X, y = forest_of_classes()
    data = data_of(export_html(forest.with_names(features=list("abcd")), X=X, y=y))
    assert data["forest"]["trees"] == 6
    shares = dict(data["forest"]["importances"])
    assert [shares[name] for name in "abcd"] == pytest.approx(
        forest.feature_importances_.tolist(), abs=1e-5
    )
    assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_the_taught_tree_comes_first_and_says_how_true_it_is():
    forest, X, y = forest_of_numbers()
    taught = ShapeTreeRegressor(teacher=forest, max_depth=3).fit(X, y)
    fidelity = taught.evaluate(X[:100], y[:100])["fidelity"]
    first, second = data_of(export_html(forest, X=X, y=y, taught=taught))["shown"]
    assert (first["key"], second["key"]) == ("taught", "tree")
    score = r2_score(forest.predict(X), taught.predict(X))
    scores = first["model"]["scores"]
    assert f"R² {score:.3f} for what the forest predicts" in scores
    assert f"fidelity to the teacher R² {fidelity:.3f}" in scores
    assert not any("fidelity" in each for each in second["model"]["scores"])


def test_a_pipeline_is_read_as_its_forest():
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = ShapeForestClassifier(n_estimators=3, random_state=0)
    pipeline = make_pipeline(StandardScaler(), forest).fit(X, y)
    data = data_of(export_html(pipeline, X=X, y=y))
    assert {name for name, _ in data["forest"]["importances"]} == set(X.columns)


def test_pages_of_no_use_are_refused():
    forest, X, y = forest_of_classes()
    with pytest.raises(ValueError, match="needs X and y"):
        export_html(forest)
    for number in (-1, 6, 1.5, "0"):
        with pytest.raises(ValueError, match="tree must be a number from 0 to 5"):
            export_html(forest, X=X, y=y, tree=number)
    tree = ShapeTreeClassifier(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="taught is only for the page of a forest"):
        export_html(tree, taught=tree)
    with pytest.raises(ValueError, match="tree is only for the page of a forest"):
        export_html(tree, tree=0)
    other = ShapeTreeClassifier(max_depth=1).fit(X, y.astype(str))
    with pytest.raises(ValueError, match="the features and the classes of the forest"):
        export_html(forest, X=X, y=y, taught=other)
    both = ShapeForestClassifier(n_estimators=2).fit(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="one target"):
        export_html(both, X=X, y=np.stack([y, y], axis=1))
