"""What cannot be learnt from is refused by name, and the estimator stays as it was."""

import time
import warnings
from copy import copy
from functools import cache

import numpy as np
import pandas as pd
import pytest
from data import make_tree, noisy_classes
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor

BOTH = pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
NAN, INF = float("nan"), float("inf")

X, _ = noisy_classes(np.random.default_rng(0), n_rows=60, n_features=3)
y = (np.median(X, axis=0) < X)[:, :2].sum(axis=1)


@cache
def fit_once(kind):
    return kind(n_threads=1).fit(X, y)


def fitted(kind):
    """An estimator of the kind, fitted to X and y."""
    return copy(fit_once(kind))


def assert_refused(model, message, call, error=(ValueError, TypeError)):
    """A call fails with this message and leaves the model as it is."""
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        call(model)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def assert_fit_refused(kind, message, *fit_args, params=None, **fit_kwargs):
    """Neither an unfitted nor a fitted estimator takes what cannot be learnt from."""

    def fit(model):
        model.fit(*fit_args, **fit_kwargs)

    params = params or {}
    assert_refused(kind().set_params(**params), message, fit)
    model = fitted(kind).set_params(**params)
    assert_refused(model, message, fit)
    assert_array_equal(model.set_params(n_threads=1).predict(X), fitted(kind).predict(X))


def changed(array, place, value):
    """A copy with another value in one place."""
    array = np.array(array, dtype=float)
    array[place] = value
    return array


# Shapes


@BOTH
@pytest.mark.parametrize(
    ("bad_X", "message"),
    [
        (X[:, 0], "Expected 2D array, got 1D array"),
        (X[None], "dim 3"),
        (np.float64(3), "got scalar"),
        (X[:0], r"0 sample\(s\)"),
        (X[:, :0], r"0 feature\(s\)"),
        ([[1.0, 2.0], [3.0]], "X must be a table whose rows are equally long"),
        (csr_matrix(X), "[Ss]parse"),
        (None, "2D array|None"),
        ("a table", "2D array"),
        ({"a": [1.0]}, "2D array|dict"),
    ],
)
def test_wrong_shapes_of_X(kind, bad_X, message):
    assert_fit_refused(kind, message, bad_X, y)


@BOTH
@pytest.mark.parametrize(
    ("bad_y", "message"),
    [
        (y[:-1], r"inconsistent numbers of samples: \[60, 59\]"),
        (np.append(y, 0), r"inconsistent numbers of samples: \[60, 61\]"),
        (y[:, None, None], r"dim 3|\by\b"),
        (np.zeros((60, 0)), r"\by\b"),
        (None, "y cannot be None|requires y"),
        (3, r"\by\b"),
    ],
)
def test_wrong_shapes_of_y(kind, bad_y, message):
    assert_fit_refused(kind, message, X, bad_y)


@BOTH
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(59), r"sample_weight.shape == \(59,\)"),
        (np.ones((60, 2)), "[Ss]ample weights"),
        (changed(np.ones(60), 7, -1e-9), "[Nn]egative.*sample_weight"),
        (np.zeros(60), "[Ss]ample.weights?.*zero"),
        (changed(np.ones(60), 7, NAN), "sample_weight contains NaN"),
        (changed(np.ones(60), 7, INF), "sample_weight contains infinity"),
        (["much"] * 60, "much|sample_weight"),
    ],
)
def test_wrong_weights(kind, weights, message):
    assert_fit_refused(kind, message, X, y, sample_weight=weights)


# Values


@BOTH
@pytest.mark.parametrize(
    ("bad_X", "message"),
    [
        (X.astype(complex), "[Cc]omplex.*'x0'"),
        (X.astype("timedelta64[s]"), "'x0' holds timedelta64"),
        (np.array([[object()] * 3] * 60), "'x0' holds object"),
        (np.array([["1", "2", "3"]] * 60), "'x0' holds text"),
        (np.array([[1.0, "red", 3.0]] * 60, dtype=object), "'x1' holds text"),
        (np.array([[1.0, 2.0, [3]]] * 60, dtype=object), "'x2' holds list"),
        (np.array([[b"1", b"2", b"3"]] * 60), "'x0' holds"),
    ],
)
def test_values_of_X_that_are_not_numbers(kind, bad_X, message):
    assert_fit_refused(kind, message, bad_X, y)


@BOTH
@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_missing_and_infinite_values_of_y(kind, value):
    message = "Input y contains (NaN|infinity)"
    assert_fit_refused(kind, message, X, changed(y, 3, value))
    assert_fit_refused(kind, message, X, changed(np.stack([y, y], axis=1), (3, 1), value))


@BOTH
def test_complex_y(kind):
    assert_fit_refused(kind, "[Cc]omplex", X, y + 1j)


DAYS = pd.Series(pd.date_range("2024-01-01", periods=len(X)))


@BOTH
@pytest.mark.parametrize(
    "dates",
    [DAYS, DAYS - DAYS[0], DAYS.to_numpy(), DAYS.to_list(), DAYS.dt.date, DAYS.to_frame("y")],
    ids=["dates", "durations", "array", "list", "objects", "frame"],
)
def test_dates_as_y(kind, dates):
    assert_fit_refused(kind, "y holds dates or durations. Turn them into numbers", X, dates)


def test_missing_labels():
    labels = np.array(["a", "b", "c"], dtype=object)[y]
    labels[5] = None
    assert_fit_refused(ShapeTreeClassifier, "label|None", X, labels)


def test_numbers_instead_of_classes():
    message = "Unknown label type: continuous"
    assert_fit_refused(ShapeTreeClassifier, message, X, y + 0.5 * X[:, 0] / 7)


def test_classes_instead_of_numbers():
    text = np.array(["a", "b", "c"])[y]
    message = r"y holds text where numbers are needed .*'[abc]'.*use a classifier"
    assert_fit_refused(ShapeTreeRegressor, message, X, text)


@BOTH
@pytest.mark.parametrize("n_rows", [2**31, 2**33])
def test_more_rows_than_can_be_counted(kind, n_rows):
    began = time.process_time()
    many = np.broadcast_to(np.float32(0), (n_rows, 3))
    assert_fit_refused(kind, f"X has {n_rows} rows", many, np.broadcast_to(0, n_rows))
    assert_refused(fitted(kind), f"X has {n_rows} rows", lambda model: model.predict(many))
    assert time.process_time() - began < 5


# Categories


@BOTH
@pytest.mark.parametrize(
    ("categorical_features", "message"),
    [
        ([3], "categorical_features has the index 3"),
        ([-1], "categorical_features has the index -1"),
        (["x7"], "categorical_features names 'x7'"),
        ([True, False], "categorical_features is a mask of length 2"),
        ([0, "x1"], "categorical_features must be"),
        ([1.5], "categorical_features must be"),
        ("from_type", "'categorical_features' parameter"),
        (7, "'categorical_features' parameter"),
    ],
)
def test_wrong_categorical_features(kind, categorical_features, message):
    params = {"categorical_features": categorical_features}
    assert_fit_refused(kind, message, X, y, params=params)


# Parameters


@BOTH
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_depth", 0),
        ("max_depth", 2.5),
        ("max_branches", 1),
        ("max_branches", 0),
        ("max_branches", -3),
        ("max_branches", None),
        ("max_branches", "3"),
        ("max_branches", 10**6),
        ("max_parts", 1),
        ("max_parts", 2.5),
        ("max_parts", "6"),
        ("cv", 1),
        ("cv", "5"),
        ("resamples", -1),
        ("search__criterion", "ginny"),
        ("search__criterion", None),
        ("pairs", -1),
        ("min_samples_split", 1),
        ("min_samples_split", 1.5),
        ("min_samples_leaf", 0),
        ("min_samples_leaf", 0.0),
        ("search__min_impurity_decrease", -1e-9),
        ("search__min_impurity_decrease", NAN),
        ("max_leaf_nodes", 1),
        ("search__inner_tree", "dpdt"),
        ("search__inner_max_leaf_nodes", 1),
        ("search__inner_min_samples_leaf", 0),
        ("search__inner_max_depth", 0),
        ("search__segment_penalty", -1.0),
        ("search__segment_penalty", "none"),
        ("search__segment_penalty", NAN),
        ("search__leaf_penalty", -0.1),
        ("search__branch_penalty", -0.1),
        ("search__assignment", "best"),
        ("max_bins", 1),
        ("max_bins", 0),
        ("max_bins", 10**9),
        ("n_threads", 0),
        ("n_threads", 1.5),
        ("random_state", "chance"),
        ("verbose", -1),
    ],
)
def test_unknown_parameter_values(kind, name, value):
    called = name.replace("__", ".")
    assert_fit_refused(kind, f"'{called}' parameter", X, y, params={name: value})


@pytest.mark.parametrize("objective", ["accuracy", "squared_error", None])
def test_unknown_objectives(objective):
    params = {"objective": objective}
    assert_fit_refused(ShapeTreeClassifier, "'objective' parameter", X, y, params=params)


@pytest.mark.parametrize(
    ("kind", "criterion"), [(ShapeTreeClassifier, "squared_error"), (ShapeTreeRegressor, "gini")]
)
def test_the_criterion_of_the_other_estimator(kind, criterion):
    params = {"search__criterion": criterion}
    assert_fit_refused(kind, "'search.criterion' parameter", X, y, params=params)


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
@pytest.mark.parametrize("name", SearchOptions().get_params())
def test_options_of_the_search_are_no_parameters_themselves(kind, name):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        kind(**{name: 1})


@pytest.mark.parametrize("n_orientations", [1, 257, 10**6, 10**10])
def test_orientations_are_bounded(n_orientations):
    params = {"pairs": 1, "search__n_orientations": n_orientations}
    assert_fit_refused(ShapeTreeClassifier, "'search.n_orientations'", X, y, params=params)


@pytest.mark.parametrize("search", ["cart", {"lookahead": 3}, SearchOptions])
def test_other_objects_than_options_are_refused(search):
    message = "'search' parameter"
    assert_fit_refused(ShapeTreeClassifier, message, X, y, params={"search": search})


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ("unbalanced", "class_weight"),
        ({0: -1.0, 1: 1.0, 2: 1.0}, "class_weight"),
        ({0: NAN}, "class_weight"),
        ({0: INF}, "class_weight"),
        ({0: 0, 1: 0, 2: 0}, "class_weight"),
        ({"fox": 1.0}, "class_weight|fox"),
        ([{0: 1.0}, {0: 1.0}], "[Cc]lass_?weight"),
        (3.0, "class_weight"),
    ],
)
def test_wrong_class_weights(class_weight, message):
    params = {"class_weight": class_weight}
    assert_fit_refused(ShapeTreeClassifier, message, X, y, params=params)


@BOTH
def test_unknown_parameters(kind):
    with pytest.raises(TypeError, match="max_brunches"):
        kind(max_brunches=2)


# Predictions


@BOTH
@pytest.mark.parametrize("method", ["predict", "apply", "decision_path"])
@pytest.mark.parametrize(
    ("bad_X", "message"),
    [
        (X[:, :2], "X has 2 features, but .* expecting 3 features"),
        (np.tile(X, 2), "X has 6 features, but .* expecting 3 features"),
        (X[0], "Expected 2D array, got 1D array"),
        (X[:0], r"0 sample\(s\)"),
        (X.astype(complex), "[Cc]omplex"),
        (np.array([["1", "2", "3"]] * 60), "holds text"),
        (csr_matrix(X), "[Ss]parse"),
    ],
)
def test_wrong_tables_to_predict(kind, method, bad_X, message):
    assert_refused(fitted(kind), message, lambda model: getattr(model, method)(bad_X))


@BOTH
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "b", "d"], "(?s)feature names.*- d"),
        (["a", "b"], "(?s)feature names.*- c|expecting 3 features"),
    ],
)
def test_columns_renamed_or_gone(kind, library, columns, message):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    model = kind().fit(make({"a": X[:, 0], "b": X[:, 1], "c": y}), y)
    table = make(dict(zip(columns, X.T, strict=False)))
    assert_refused(model, message, lambda model: model.predict(table))


@BOTH
def test_numbers_became_text(kind):
    pandas = pytest.importorskip("pandas")
    model = make_tree(kind, segment_penalty=0, leaf_penalty=0).fit(
        pandas.DataFrame({"size": X[:, 0]}), y
    )
    table = pandas.DataFrame({"size": ["small", "large"]})
    assert_refused(model, "'size' holds text", lambda model: model.predict(table))


@BOTH
def test_duplicated_names_of_columns(kind):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "a"])
    assert_fit_refused(kind, "distinct names|duplicate", table, y)


@BOTH
def test_defaults_need_no_check(kind):
    """Only parameters that are not at their defaults are checked, so those must be fine."""
    BaseEstimator._validate_params(kind())


@BOTH
def test_parameters_that_only_equal_a_default_are_checked(kind):
    default = kind().max_branches
    assert_fit_refused(kind, "max_branches", X, y, params={"max_branches": float(default)})


def test_thousands_of_classes_with_few_rows_each_are_warned_of():
    X, y = np.arange(2400.0)[:, None], np.arange(2400) // 2
    with pytest.warns(UserWarning, match=r"y has 1,200 classes and 2\.0 rows .* use a regressor"):
        ShapeTreeClassifier(max_depth=1, resamples=0).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ShapeTreeClassifier(max_depth=1, resamples=0).fit(np.sin(X), y // 100)
