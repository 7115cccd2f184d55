"""Data that several tests make, and how they compare trees."""

from dataclasses import fields, replace

import numpy as np
from sklearn.base import RegressorMixin

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._base import BaseShapeTree
from shapetree.data._table import read_table
from shapetree.tree import _view
from shapetree.tree._from_estimator import fitted_tree

OPTIONS = SearchOptions().get_params().keys()
# Even a few rows get a tree, and its leaves predict what their own rows say.
PLAIN = {"resamples": 0, "shrinkage": 0.0, "min_samples_leaf": 1}

# Nothing holds back growth or adds to the objective; every midpoint is a possible threshold.
UNRESTRAINED = {
    **PLAIN,
    "max_parts": None,
    "max_bins": None,
    "max_depth": None,
    "min_samples_split": 2,
    "min_impurity_decrease": 0.0,
    "inner_max_leaf_nodes": None,
    "inner_min_samples_leaf": 1,
    "segment_penalty": 0.0,
    "leaf_penalty": 0.0,
    "branch_penalty": 0.0,
    "refine": None,
    "n_threads": 1,
}

# Whatever there is to learn; not refined, and not shrunk.
AS_GROWN = {**PLAIN, "refine": None}

REGRESSION = ("squared_error", "absolute_error")


def view_of(model, X=None, y=None):
    """The view of an estimator's tree."""
    return _view.view_of(fitted_tree(model), X, y)


def set_tree(model, tree, X=None):
    """Give a fitted estimator another tree, which may use other features of its table."""
    fitted = model._fitted
    features = fitted.features if X is None else read_table(X, model.categorical_features).features
    model._fitted = replace(
        fitted, trees=(tree,), features=features, held_out=None, why_single_leaf=None
    )


def counts_of(weights):
    """How many rows each counts as: whole weights are frequencies."""
    weights = np.asarray(weights, dtype=float)
    is_whole = (weights == np.rint(weights)).all() and weights.sum() < 2**31 - 2
    return weights if is_whole else (weights > 0).astype(float)


def make_tree(kind, **params):
    """An estimator, by its parameters and, if it is a tree, the options of its search alike.

    The criterion of a regressor is its objective.
    """
    if not issubclass(kind, BaseShapeTree):
        return kind(**params)
    if issubclass(kind, RegressorMixin) and "criterion" in params:
        params["objective"] = params.pop("criterion")
    options = {name: params.pop(name) for name in OPTIONS & params.keys()}
    return kind(search=SearchOptions(**options), **params) if options else kind(**params)


def flat_params(model):
    """Parameters of an estimator, with options of its search by their long names only."""
    return {name: value for name, value in model.get_params().items() if name != "search"}


def options_of(model):
    """How an estimator searches."""
    return model.search or SearchOptions()


def criterion_of(model):
    """What an estimator grows by, as given."""
    is_regressor = isinstance(model, RegressorMixin)
    return model.objective if is_regressor else options_of(model).criterion


def tree_for(criterion, **params):
    """The estimator that knows the criterion, with its rows' own values, as it has grown."""
    kind = ShapeTreeRegressor if criterion in REGRESSION else ShapeTreeClassifier
    return make_tree(kind, criterion=criterion, **AS_GROWN | params)


def bars(omega, n_rows, n_values=None):
    """The ω-bars: on [0, 1], class 1 wherever cos(2πωx) is not positive."""
    n_values = n_values or n_rows
    x = (np.arange(n_rows) % n_values + 0.5) / n_values
    return x[:, None], (np.cos(2 * np.pi * omega * x) <= 0).astype(int)


def plus_sign(n_side=41, half_width=0.3):
    """A plus on the square [-1, 1]²: class 1 in its vertical and in its horizontal bar."""
    side = np.linspace(-1, 1, n_side)
    X = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return X, (np.abs(X) < half_width).any(axis=1).astype(int)


def noisy_classes(rng, n_rows=300, n_features=4, n_classes=3, n_values=None):
    """Features of distinct values, or of `n_values` each, and classes that depend on two."""
    X = np.stack([rng.permutation(n_rows) for _ in range(n_features)], axis=1).astype(np.float32)
    if n_values is not None:
        X = np.floor(X * (n_values / n_rows))
    waves = np.sin(X[:, 0] * (7.0 / X[:, 0].max())) + X[:, -1] / max(1.0, X[:, -1].max())
    score = waves + rng.normal(scale=0.4, size=n_rows)
    bounds = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(bounds, score)


def noisy_numbers(rng, n_rows=300, n_features=4, n_outputs=1, n_values=None):
    """The same features, and numbers that depend on two of them."""
    X, _ = noisy_classes(rng, n_rows, n_features, n_values=n_values)
    y = np.sin(X / X.max() * 7)[:, [0] * n_outputs] + rng.normal(size=(n_rows, n_outputs))
    return X, y[:, 0] if n_outputs == 1 else y


def data_for(criterion, rng, **shape):
    """Noisy data that the criterion can be used on."""
    return (noisy_numbers if criterion in REGRESSION else noisy_classes)(rng, **shape)


def distinct_weights(rng, n_rows):
    """Weights under which no two different splits gain the same; their sums are exact."""
    return rng.integers(2**19, 2**20, n_rows) / 2**20


def arrays_of(tree):
    """All arrays of a `tree_`, by name."""
    values = {field.name: getattr(tree, field.name) for field in fields(tree)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def assert_same_tree(one, other):
    """Two fitted estimators have bitwise the same tree."""
    for name, array in arrays_of(one.tree_).items():
        np.testing.assert_array_equal(array, getattr(other.tree_, name), err_msg=name, strict=True)


def assert_same_groups(one, other):
    """Two labellings of the same rows put the same rows together."""
    pairs = np.unique(np.stack([one, other]), axis=1).shape[1]
    assert pairs == len(np.unique(one)) == len(np.unique(other))


def rows_of_nodes(model, X):
    """Which training rows each node holds, as a boolean array of shape (node_count, n_rows)."""
    return model.decision_path(X).toarray().astype(bool).T
