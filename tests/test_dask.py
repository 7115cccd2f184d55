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

from shapetree.dask import DaskShapeTreeClassifier, DaskShapeTreeRegressor  # noqa: E402
from shapetree.dask import _cluster  # noqa: E402

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
