"""Columns whose values identify rows, or groups of rows, are reported if the tree uses them."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.model_selection import TimeSeriesSplit

from shapetree import IdentifierWarning, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.fit._identifiers import _Column, _likeness, _Targets


def told(estimator, X, y, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", IdentifierWarning)
        estimator.fit(X, y, **given)
    return [str(each.message) for each in caught if each.category is IdentifierWarning]


def noise(n_rows, seed=0):
    return np.random.default_rng(seed).normal(size=n_rows)


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_a_row_number_is_reported(is_shuffled):
    n = 400
    X = pd.DataFrame({"record": np.arange(n), "age": noise(n)})
    y = (X["record"] % 400 >= 200).to_numpy()
    if is_shuffled:
        kept = np.random.default_rng(0).permutation(n)[:300]
        X, y = X.iloc[kept], y[kept]
    (words,) = told(ShapeTreeClassifier(max_depth=2), X, y)
    assert "splits on 'record', which looks like a row number" in words
    assert "drop the column" in words


def rising_table():
    n = 600
    days = pd.date_range("2020-01-01", periods=n // 4).repeat(4)
    X = pd.DataFrame({"day": days, "price": noise(n)})
    return X, np.arange(n) + 50 * noise(n, 1)


def test_a_date_that_only_rises_is_reported():
    X, y = rising_table()
    (words,) = told(ShapeTreeRegressor(max_depth=2), X, y)
    assert "splits on 'day', which only rises" in words
    assert "cv=TimeSeriesSplit(5)" in words


def test_whoever_holds_out_later_rows_is_not_told_of_dates():
    X, y = rising_table()
    assert told(ShapeTreeRegressor(max_depth=2, cv=TimeSeriesSplit(5)), X, y) == []


def patients(n_patients=100, n_visits=6):
    rng = np.random.default_rng(2)
    patient = np.repeat(rng.permutation(1000)[:n_patients] * 1.0, n_visits)
    order = rng.permutation(len(patient))
    ill = dict(zip(np.unique(patient), rng.uniform(size=n_patients) < 0.5, strict=True))
    X = pd.DataFrame({"patient": patient, "age": rng.normal(size=len(patient))}).iloc[order]
    return X, np.array([ill[number] for number in X["patient"]])


def test_numbers_of_patients_are_reported_unless_groups_are_given():
    X, y = patients()
    tree = ShapeTreeClassifier(max_depth=4, strength=0, max_parts=None)
    (words,) = told(tree, X, y)
    assert "splits on 'patient', whose values identify groups of rows" in words
    assert "groups=" in words
    assert told(tree, X, y, groups=X["patient"]) == []


def test_two_columns_that_identify_groups_together_are_reported():
    rng = np.random.default_rng(3)
    task, title = (rng.integers(1, high, 3000) for high in (41, 11))
    label = rng.integers(0, 2, (41, 11))[task, title]
    X = pd.DataFrame({"task": task, "title": title, "length": rng.normal(size=3000)})
    (words,) = told(ShapeTreeClassifier(max_depth=6, strength=0), X, label)
    assert "splits on 'task' and 'title', whose values identify groups" in words


def test_columns_that_the_tree_does_not_use_are_not_reported():
    n = 400
    X = pd.DataFrame({"record": np.arange(n), "age": noise(n)})
    assert told(ShapeTreeClassifier(max_depth=1), X, X["age"] > 0) == []


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer, load_diabetes])
def test_ordinary_tables_are_not_reported(load):
    X, y = load(return_X_y=True, as_frame=True)
    kind = ShapeTreeRegressor if load is load_diabetes else ShapeTreeClassifier
    assert told(kind(max_depth=4, strength=0), X, y) == []


def test_copies_of_rows_are_not_taken_for_groups():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    drawn = np.random.default_rng(0).integers(0, len(y), 2 * len(y))
    assert told(ShapeTreeClassifier(max_depth=3), X.iloc[drawn], y.iloc[drawn]) == []


def test_smooth_functions_of_whole_numbers_are_not_reported():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"age": rng.integers(18, 90, 2000), "visits": rng.integers(0, 30, 2000)})
    y = np.sin(X["age"] / 15) + X["visits"] / 10 + 0.1 * rng.normal(size=2000)
    assert told(ShapeTreeRegressor(max_depth=4), X, y) == []


def test_the_warning_points_at_the_call_of_fit():
    X = pd.DataFrame({"record": np.arange(400), "age": noise(400)})
    with pytest.warns(IdentifierWarning) as caught:
        ShapeTreeClassifier(max_depth=1).fit(X, X["record"] > 200)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("n_classes", [None, [4], [3, 2]])
def test_likeness_is_that_of_each_row_with_the_others(n_classes):
    rng = np.random.default_rng(3)
    column = rng.integers(0, 30, 200).astype(float)
    if n_classes is None:
        y = rng.normal(size=(200, 2)) + column[:, None] % 7
    else:
        y = np.stack([(column + (rng.random(200) < 0.1)) % n for n in n_classes], axis=1)
    targets = _Targets.of(y, n_classes)
    dense = targets.rows
    if n_classes is not None:
        dense = np.hstack([np.eye(n)[x] for x, n in zip(dense.T, n_classes, strict=True)])
    values = np.unique(column)
    rows = [i for i in range(200) if np.count_nonzero(column == column[i]) > 1]
    total = ((dense[rows] - dense[rows].mean(axis=0)) ** 2).sum()
    same = near = 0.0
    for i in rows:
        others = (column == column[i]) & (np.arange(200) != i)
        at = np.searchsorted(values, column[i])
        around = np.isin(column, values[max(at - 2, 0) : at + 3]) & (column != column[i])
        same += ((dense[i] - dense[others].mean(axis=0)) ** 2).sum()
        near += ((dense[i] - dense[around].mean(axis=0)) ** 2).sum()
    assert _likeness(_Column(column), targets) == pytest.approx(
        (1 - same / total, 1 - near / total)
    )
