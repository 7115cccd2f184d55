"""Forests of rows on a Dask cluster: the same as in memory."""

import gc

import numpy as np
import pytest
from sklearn.base import clone

from shapetree import ShapeForestClassifier, ShapeForestRegressor
from shapetree.fit import _growth

dd = pytest.importorskip("dask.dataframe")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

from dask_rows import (  # noqa: E402
    FEATURES,
    ClientAtOnce,
    frame_of,
    is_free,
    made_rows,
    same_file,
)

from shapetree.dask import DaskShapeForestClassifier, DaskShapeForestRegressor  # noqa: E402

SIZES = [120, 0, 37, 143]
CASES = {
    "classes": ("class0", {}),
    "numbers": ("number0", {}),
    "medians": ("number0", {"criterion": "absolute_error", "max_depth": 3}),
    "all features": ("class0", {"max_features": None, "max_branches": 3}),
    "leaves": ("class0", {"max_leaf_nodes": 7}),
    "all rows": ("number0", {"bootstrap": False, "max_features": 1}),
    "balanced": ("class0", {"class_weight": "balanced"}),
    "every value": ("number0", {"max_bins": None, "max_depth": 4}),
    "pairs": ("class0", {"pairs": 1, "max_depth": 2, "n_estimators": 3}),
}
WEIGHTS = {"none": None, "shares": [0.0, 0.5, 1.0, 2.25], "counts": [0, 1, 2, 5]}


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process of its own."""
    cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


def fitted_twice(client, case, weights=None, rows=None, **given):
    """A forest in memory, and of the same rows on a cluster."""
    target, options = CASES[case]
    rows = made_rows(np.random.default_rng(5), 300) if rows is None else rows
    if weights is not None:
        rows = rows.assign(weight=np.random.default_rng(6).choice(weights, len(rows)))
    options = {"n_estimators": 6, "random_state": 3} | options | given
    frame, is_class = frame_of(rows, SIZES), target.startswith("class")
    near = (ShapeForestClassifier if is_class else ShapeForestRegressor)(**options)
    far = DaskShapeForestClassifier if is_class else DaskShapeForestRegressor
    far = far(client=client, **options)
    near.fit(rows[FEATURES], rows[target], None if weights is None else rows["weight"])
    far.fit(frame[FEATURES], frame[target], None if weights is None else frame["weight"])
    return near, far


@pytest.mark.parametrize("weights", sorted(WEIGHTS))
@pytest.mark.parametrize("case", sorted(CASES))
def test_the_forest_is_that_of_the_same_rows_in_memory(case, weights):
    near, far = fitted_twice(ClientAtOnce(), case, WEIGHTS[weights])
    assert max(tree.tree_.node_count for tree in near.estimators_) > 1
    assert same_file(near, far)


@pytest.mark.parametrize("case", ["classes", "numbers"])
def test_a_cluster_grows_the_forest_and_forgets_the_rows(client, case):
    near, far = fitted_twice(client, case)
    assert same_file(near, far)
    gc.collect()
    assert is_free(client)


@pytest.mark.parametrize("case", ["classes", "numbers"])
@pytest.mark.filterwarnings("ignore:some rows were drawn by every tree")
def test_out_of_bag_predictions_are_those_of_memory(case):
    near, far = fitted_twice(
        ClientAtOnce(), case, WEIGHTS["counts"], oob_score=True, n_estimators=20
    )
    assert near.oob_score_ == far.oob_score_
    name = "oob_decision_function_" if case == "classes" else "oob_prediction_"
    # Workers keep no rows of weight 0, of which nothing is learnt.
    weights = np.random.default_rng(6).choice(WEIGHTS["counts"], 300)
    np.testing.assert_array_equal(getattr(near, name)[weights > 0], getattr(far, name))


def test_trees_that_grow_one_by_one_are_the_same(monkeypatch):
    together = fitted_twice(ClientAtOnce(), "classes")[0]
    monkeypatch.setattr(_growth, "BYTES_TOGETHER", 1)
    assert same_file(together, fitted_twice(ClientAtOnce(), "classes")[1])


def test_predictions_are_lazy_and_those_of_memory(client):
    rows = made_rows(np.random.default_rng(5), 300)
    frame = frame_of(rows, SIZES)
    near, far = fitted_twice(client, "classes", rows=rows)
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        told = getattr(far, method)(frame[FEATURES])
        assert hasattr(told, "compute")
        np.testing.assert_array_equal(told.compute(), getattr(near, method)(rows[FEATURES]))
        local = getattr(far, method)(rows[FEATURES])
        np.testing.assert_array_equal(local, getattr(near, method)(rows[FEATURES]))
    of_frame = far.score(frame[FEATURES], frame["class0"], frame["weight"])
    assert of_frame == near.score(rows[FEATURES], rows["class0"], rows["weight"])
    assert far.score(rows[FEATURES], rows["class0"]) == near.score(rows[FEATURES], rows["class0"])
    with pytest.raises(TypeError, match="in memory"):
        far.decision_path(frame[FEATURES])
    with pytest.raises(TypeError, match="in memory"):
        far.oob_permutation_importances(frame[FEATURES], frame["class0"])


def test_trees_are_added_to_those_of_the_last_fit(client):
    rows = made_rows(np.random.default_rng(5), 300)
    frame = frame_of(rows, SIZES)
    every = DaskShapeForestRegressor(n_estimators=5, random_state=1, client=client)
    some = clone(every).set_params(n_estimators=3, warm_start=True)
    every.fit(frame[FEATURES], frame["number0"])
    some.fit(frame[FEATURES], frame["number0"])
    some.set_params(n_estimators=5).fit(frame[FEATURES], frame["number0"])
    for one, other in zip(every._fitted.trees, some._fitted.trees, strict=True):
        np.testing.assert_array_equal(one.value, other.value)


def test_arrays_have_forests_too(client):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=(200, 2))
    far = DaskShapeForestRegressor(n_estimators=3, random_state=0, client=client)
    far.fit(da.from_array(X, chunks=(70, 3)), da.from_array(y, chunks=(70, 2)))
    near = ShapeForestRegressor(n_estimators=3, random_state=0).fit(X, y)
    assert same_file(near, far)
    found = far.predict(da.from_array(X, chunks=(70, 3))).compute()
    np.testing.assert_array_equal(found, near.predict(X))


def test_faults_are_told_before_work_starts(client):
    frame = frame_of(made_rows(np.random.default_rng(5), 30), [30])
    far = DaskShapeForestClassifier(n_estimators=0, client=client)
    with pytest.raises(ValueError, match="n_estimators"):
        far.fit(frame[FEATURES], frame["class0"])
    with pytest.raises(ValueError, match="bootstrap"):
        far.set_params(n_estimators=3, bootstrap=False, oob_score=True).fit(
            frame[FEATURES], frame["class0"]
        )
    with pytest.raises(TypeError, match="Dask"):
        far.set_params(oob_score=False).fit(np.zeros((5, 2)), np.zeros(5))
