"""Rows on a Dask cluster: the same models as in memory, whatever happens to the workers."""

import gc
import os
import pickle
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from shapetree.dask import (  # noqa: E402
    DaskShapeTreeClassifier,
    DaskShapeTreeRegressor,
    _cluster,
)

FEATURES = ["a", "b", "c", "d"]


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    cluster = distributed.LocalCluster(
        2, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def made_rows(rng, n_rows, n_outputs=1):
    """Numbers, categories, missing values; targets of both kinds, and weights."""
    rows = pd.DataFrame(
        {
            "a": rng.normal(size=n_rows),
            "b": rng.integers(0, 9, n_rows).astype(np.float32),
            "c": pd.Categorical(rng.choice(["red", "green", "blue"], n_rows)),
            "d": rng.exponential(size=n_rows),
        }
    )
    rows.loc[rng.random(n_rows) < 0.1, "a"] = np.nan
    rows.loc[rng.random(n_rows) < 0.1, "c"] = None
    score = np.nan_to_num(rows["a"]) ** 2 + (rows["c"] == "red") * rows["b"] / 4
    for output in range(n_outputs):
        rows[f"number{output}"] = score + rng.normal(scale=0.3, size=n_rows)
        rows[f"class{output}"] = np.where(rows[f"number{output}"] > 1, "high", "low")
    rows["weight"] = rng.choice([0.0, 0.5, 1.0, 2.25], n_rows)
    return rows


def frame_of(rows, sizes):
    """A Dask frame with partitions of some sizes."""
    stops = np.cumsum(sizes)
    parts = [rows.iloc[stop - size : stop] for size, stop in zip(sizes, stops, strict=True)]
    return dd.from_map(lambda part: part, parts, meta=rows.iloc[:0])


def sizes_of(rng, n_rows, n_parts):
    """Sizes of parts; some may be empty."""
    cuts = np.sort(rng.integers(0, n_rows + 1, n_parts - 1))
    return np.diff([0, *cuts, n_rows])


CASES = {
    "classes": (ShapeTreeClassifier, {}),
    "greedy": (ShapeTreeClassifier, {"refine": None, "criterion": "entropy"}),
    "balanced": (ShapeTreeClassifier, {"class_weight": "balanced"}),
    "leaves": (ShapeTreeClassifier, {"max_leaf_nodes": 6}),
    "means": (ShapeTreeRegressor, {}),
    "medians": (ShapeTreeRegressor, {"criterion": "absolute_error"}),
    "pairs": (ShapeTreeClassifier, {"pairs": 1, "pair_penalty": 0.0, "max_depth": 2}),
    "every value": (ShapeTreeClassifier, {"max_bins": None}),
    "strength": (ShapeTreeClassifier, {"strength": [0.5, 1.0], "folds": 2, "max_depth": 2}),
    "shrinkage": (ShapeTreeRegressor, {"shrinkage": "cv", "max_depth": 2}),
}
ON_DASK = {
    ShapeTreeClassifier: DaskShapeTreeClassifier,
    ShapeTreeRegressor: DaskShapeTreeRegressor,
}


def fitted_twice(client, case, rows, sizes, weighted=False, n_outputs=1):
    """Models in memory and on the cluster."""
    kind, options = CASES[case]
    options = {"max_depth": 3, "random_state": 0, "n_threads": 1} | options
    name = "class" if kind is ShapeTreeClassifier else "number"
    targets = [f"{name}{output}" for output in range(n_outputs)]
    target = targets[0] if n_outputs == 1 else targets
    near = kind(**options).fit(rows[FEATURES], rows[target], rows["weight"] if weighted else None)
    frame = frame_of(rows, sizes)
    far = ON_DASK[kind](client=client, **options)
    far.fit(frame[FEATURES], frame[target], frame["weight"] if weighted else None)
    return near, far


def same_file(near, far):
    """Whether models are the same, byte for byte; how long fits took is not in the file."""
    return near.to_json() == far.to_local().to_json()


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_that_of_the_same_rows_in_memory(client, case):
    rng = np.random.default_rng(list(CASES).index(case))
    rows = made_rows(rng, 300)
    near, far = fitted_twice(client, case, rows, [120, 0, 37, 143], weighted=case != "leaves")
    assert near.tree_.node_count > 1
    assert same_file(near, far)


@settings(
    max_examples=4,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["classes", "greedy", "means", "medians"]),
    st.integers(1, 6),
    st.booleans(),
    st.integers(1, 2),
)
def test_any_partitions_give_the_same_model(client, seed, case, n_parts, weighted, n_outputs):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(20, 120))
    rows = made_rows(rng, n_rows, n_outputs)
    sizes = sizes_of(rng, n_rows, n_parts)
    near, far = fitted_twice(client, case, rows, sizes, weighted, n_outputs)
    assert same_file(near, far)


def test_categories_of_rows_without_weight_are_unknown(client):
    rows = made_rows(np.random.default_rng(20), 100)
    rows["c"] = rows["c"].astype(object).where(rows.index > 3, "only here")
    rows["weight"] = np.where(rows.index > 3, 1.0, 0.0)
    near, far = fitted_twice(client, "greedy", rows, [50, 50], weighted=True)
    assert "only here" not in near.to_json()
    assert same_file(near, far)


# Lost workers, and fits that end early


@pytest.fixture(scope="module")
def processes():
    """A cluster of two processes that can be killed; nannies start others in their place."""
    cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:
        yield client


def at_question(monkeypatch, name, number, act):
    """Do something when a question is asked for the n-th time."""
    ask, n_asked = _cluster.AskedParts.ask, iter(range(1, 10_000))

    def asked(self, *steps, **how):
        if steps[-1][0] == name and next(n_asked) == number:
            act()
        return ask(self, *steps, **how)

    monkeypatch.setattr(_cluster.AskedParts, "ask", asked)


def kill_one(client):
    """Kill a worker's process."""
    pids = client.run(os.getpid)
    os.kill(min(pids.values()), signal.SIGKILL)


@pytest.mark.parametrize("question", ["histograms", "losses"])
def test_a_killed_worker_does_not_change_the_model(processes, monkeypatch, question):
    at_question(monkeypatch, question, 2, lambda: kill_one(processes))
    rows = made_rows(np.random.default_rng(1), 400)
    near, far = fitted_twice(processes, "classes", rows, [150, 250])
    assert near.tree_.node_count > 5
    assert same_file(near, far)


def test_the_only_worker_may_die_and_come_back(processes, monkeypatch):
    processes.cluster.scale(1)
    while len(processes.scheduler_info()["workers"]) > 1:
        time.sleep(0.1)
    at_question(monkeypatch, "losses", 1, lambda: kill_one(processes))
    rows = made_rows(np.random.default_rng(2), 300)
    near, far = fitted_twice(processes, "means", rows, [300])
    assert same_file(near, far)


def held_by(client):
    """Keys of what the workers hold."""
    return [key for keys in client.has_what().values() for key in keys]


def test_an_interrupted_fit_leaves_the_cluster_as_it_was(client, monkeypatch):
    rows = made_rows(np.random.default_rng(3), 300)

    def interrupt():
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        at_question(patch, "losses", 1, interrupt)
        with pytest.raises(KeyboardInterrupt):
            fitted_twice(client, "classes", rows, [100, 200])
    gc.collect()
    for _ in range(100):
        if not held_by(client):
            break
        time.sleep(0.1)
    assert not held_by(client)
    near, far = fitted_twice(client, "classes", rows, [100, 200])
    assert same_file(near, far)


def test_a_finished_fit_leaves_nothing_on_the_workers(client):
    rows = made_rows(np.random.default_rng(4), 100)
    fitted_twice(client, "greedy", rows, [40, 60])
    gc.collect()
    for _ in range(100):
        if not held_by(client):
            break
        time.sleep(0.1)
    assert not held_by(client)


def test_several_fits_share_a_cluster(client):
    rows = [made_rows(np.random.default_rng(seed), 120) for seed in (5, 6)]
    found = {}

    def fit(number):
        found[number] = fitted_twice(client, "greedy", rows[number], [50, 70])

    threads = [threading.Thread(target=fit, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same_file(*found[number]) for number in (0, 1))


# What cannot be


def fit_frames(client, X, y, weights=None, kind=DaskShapeTreeClassifier, **options):
    return kind(client=client, max_depth=2, **options).fit(X, y, weights)


def parts_frame(parts):
    return dd.from_map(lambda part: part, parts, meta=parts[0].iloc[:0], enforce_metadata=False)


def test_faults_name_the_part(client):
    rows = made_rows(np.random.default_rng(7), 60)
    X, y = rows[FEATURES], rows["class0"]
    halves = [rows.iloc[:30], rows.iloc[30:]]

    def refused(change, match, of=FEATURES):
        changed = [halves[0], change(halves[1].copy())]
        Xs = parts_frame([half[[name for name in of if name in half]] for half in changed])
        ys = parts_frame([half["class0"].to_frame() for half in changed])["class0"]
        with pytest.raises((ValueError, TypeError), match=match):
            fit_frames(client, Xs, ys)

    refused(lambda half: half.drop(columns="b"), "part 1: there is no column 'b'")
    refused(lambda half: half.assign(b="text"), "part 1: column 'b' holds categories, but numbers")
    refused(lambda half: half.assign(class0=None), "part 1: y lacks 30 of 30 values")
    frame = dd.from_pandas(rows, npartitions=2)
    with pytest.raises(ValueError, match="partitions"):
        fit_frames(client, frame[FEATURES], dd.from_pandas(y, npartitions=3))
    other = dd.from_pandas(y, npartitions=2).repartition(divisions=(0, 10, 59))
    with pytest.raises(ValueError, match="divisions of X and y differ"):
        fit_frames(client, frame[FEATURES], other)
    shuffled = parts_frame([half[["class0"]].iloc[::-1] for half in halves])["class0"]
    with pytest.raises(ValueError, match=r"part [01]: X and y have rows of another index"):
        fit_frames(client, parts_frame([half[FEATURES] for half in halves]), shuffled)
    with pytest.raises(ValueError, match="weight"):
        fit_frames(client, frame[FEATURES], frame["class0"], frame["weight"] - 3)
    with pytest.raises(ValueError, match="there are no rows"):
        fit_frames(client, parts_frame([X.iloc[:0]]), parts_frame([rows.iloc[:0]])["class0"])
    with pytest.raises(TypeError, match="X is a DataFrame; give a Dask"):
        fit_frames(client, X, y)


def test_without_a_client_an_error_says_so(monkeypatch):
    def nobody():
        raise ValueError("No clients found")

    monkeypatch.setattr(_cluster, "default_client", nobody)
    with pytest.raises(ValueError, match="there is no Dask client"):
        DaskShapeTreeClassifier().fit(None, None)


# Estimators


def test_predictions_are_lazy_and_those_of_the_local_model(client):
    rows = made_rows(np.random.default_rng(8), 200, n_outputs=2)
    frame = frame_of(rows, [90, 0, 110])
    X = frame[FEATURES]
    model = fit_frames(client, X, frame["class0"])
    local = model.to_local()
    assert type(local) is ShapeTreeClassifier
    near = rows[FEATURES]
    for method in ("predict", "predict_proba", "predict_log_proba", "apply"):
        lazy = getattr(model, method)(X)
        assert hasattr(lazy, "compute")
        np.testing.assert_array_equal(lazy.compute(), getattr(local, method)(near))
        np.testing.assert_array_equal(getattr(model, method)(near), getattr(local, method)(near))
    several = fit_frames(client, X, frame[["class0", "class1"]])
    np.testing.assert_array_equal(several.predict(X).compute(), several.to_local().predict(near))
    for lazy, shares in zip(
        several.predict_proba(X), several.to_local().predict_proba(near), strict=True
    ):
        np.testing.assert_array_equal(lazy.compute(), shares)


def test_arrays_may_have_any_chunks(client):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(300, 4)).astype(np.float32), rng.normal(size=(300, 1))
    y += X[:, :1]
    lazy = da.from_array(X, chunks=((100, 150, 50), (2, 2)))
    targets = da.from_array(y, chunks=((100, 150, 50), (1,)))
    options = {"refine": None, "random_state": 0}
    far = fit_frames(client, lazy, targets, kind=DaskShapeTreeRegressor, **options)
    near = ShapeTreeRegressor(max_depth=2, **options).fit(X, y)
    assert same_file(near, far)
    np.testing.assert_array_equal(far.predict(lazy).compute(), near.predict(X))
    with pytest.raises(ValueError, match="chunks of X and y differ"):
        fit_frames(client, lazy, da.from_array(y, chunks=((150, 100, 50), (1,))))


def test_frames_may_be_of_pyarrow(client):
    rows = made_rows(np.random.default_rng(10), 120)
    arrow = rows.convert_dtypes(dtype_backend="pyarrow")
    arrow["c"] = rows["c"].astype("string[pyarrow]")
    frame = frame_of(arrow, [50, 70])
    options = {"refine": None, "random_state": 0}
    far = fit_frames(client, frame[FEATURES], frame["class0"], **options)
    near = ShapeTreeClassifier(max_depth=2, **options).fit(arrow[FEATURES], arrow["class0"])
    assert same_file(near, far)


def test_estimators_keep_scikit_learns_manners(client):
    from sklearn.base import clone

    model = DaskShapeTreeClassifier(client=client, max_depth=5, class_weight="balanced")
    assert model.get_params()["max_depth"] == 5
    assert clone(DaskShapeTreeClassifier(max_depth=2)).max_depth == 2
    assert model.to_local().get_params() == {
        name: value for name, value in model.get_params().items() if name != "client"
    }
    assert pickle.loads(pickle.dumps(model)).client is None
    with pytest.raises(TypeError, match="max_deepness"):
        DaskShapeTreeClassifier(max_deepness=3)
