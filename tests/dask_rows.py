"""Rows on a Dask cluster, and models of them in memory and there."""

import pickle
import time
import uuid

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from data import make_tree

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.dask import DaskShapeTreeClassifier, DaskShapeTreeRegressor, _cluster

FEATURES = ["a", "b", "c", "d"]


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
    "chosen": (ShapeTreeClassifier, {"strength": "cv", "cv": 2, "max_depth": 2}),
    "chosen numbers": (ShapeTreeRegressor, {"strength": "cv", "cv": 2, "max_depth": 2}),
    "pairs of numbers": (
        ShapeTreeRegressor,
        {"pairs": "auto", "pair_penalty": 0.0, "max_depth": 2},
    ),
    "shrinkage": (ShapeTreeRegressor, {"shrinkage": "cv", "max_depth": 2}),
}
ON_DASK = {
    ShapeTreeClassifier: DaskShapeTreeClassifier,
    ShapeTreeRegressor: DaskShapeTreeRegressor,
}


def fitted_twice(client, case, rows, sizes, weighted=False, n_outputs=1, resamples=0):
    """Models in memory and on the cluster."""
    near, far, given = before_fit(client, case, rows, sizes, weighted, n_outputs, resamples)
    return near, far.fit(*given)


def before_fit(client, case, rows, sizes, weighted=False, n_outputs=1, resamples=0):
    """A model in memory, and one on the cluster that is not fitted yet, and what to fit it to.

    Without resamples: few rows that are resampled are brought into this process.
    """
    kind, options = CASES[case]
    options = {"max_depth": 3, "random_state": 0, "n_threads": 1, "resamples": resamples} | options
    name = "class" if kind is ShapeTreeClassifier else "number"
    targets = [f"{name}{output}" for output in range(n_outputs)]
    target = targets[0] if n_outputs == 1 else targets
    near = make_tree(kind, **options).fit(
        rows[FEATURES], rows[target], rows["weight"] if weighted else None
    )
    frame = frame_of(rows, sizes)
    far = make_tree(ON_DASK[kind], client=client, **options)
    return near, far, (frame[FEATURES], frame[target], frame["weight"] if weighted else None)


def same_file(near, far):
    """Whether models are the same, byte for byte; how long fits took is not in the file."""
    return near.to_json() == far.to_local().to_json()


def at_question(monkeypatch, name, number, act):
    """Do something when a question is asked for the n-th time."""
    ask, n_asked = _cluster.ClusterParts.ask, iter(range(1, 10_000))

    def asked(self, of, *how, **columns):
        if _cluster.name_of(of) == name and next(n_asked) == number:
            act()
        return ask(self, of, *how, **columns)

    monkeypatch.setattr(_cluster.ClusterParts, "ask", asked)


def held_by(client):
    """Keys of what the workers hold."""
    return [key for keys in client.has_what().values() for key in keys]


def is_free(client):
    """Whether the workers come to hold nothing, and to do nothing."""
    for _ in range(100):
        if not held_by(client) and not any(client.processing().values()):
            return True
        time.sleep(0.1)
    return False


class Done:
    """The result of a task, sent as it would be to another worker."""

    def __init__(self, key, value):
        self.key = key
        self._sent = pickle.dumps(value)

    def result(self):
        return pickle.loads(self._sent)

    def done(self):
        return True

    def release(self):
        self._sent = None


def brought(thing):
    """Results in the place of those who will have them."""
    if isinstance(thing, list):
        return [brought(each) for each in thing]
    return thing.result() if isinstance(thing, Done) else thing


def sent(given):
    """What a task is given, as it would come to another process."""
    return pickle.loads(pickle.dumps([brought(each) for each in given]))


class ClientAtOnce:
    """What shapetree needs of a client, without a cluster: tasks run here and now.

    A cluster takes a tenth of a second for every question; this takes none, so that many more fits
    can be tried.
    """

    def map(self, task, /, *columns, key, pure):
        each = zip(key, *columns, strict=True)
        return [Done(own, task(*sent(given))) for own, *given in each]

    def submit(self, task, /, *given, key):
        return Done(key, task(*sent(given)))

    def compute(self, collections):
        found = dask.compute(*collections, scheduler="synchronous")
        return [Done(uuid.uuid4(), each) for each in found]

    def gather(self, futures):
        return brought(futures)

    def who_has(self, futures):
        return {future.key: (f"worker {number % 2}",) for number, future in enumerate(futures)}

    def nthreads(self):
        return {"worker 0": 1, "worker 1": 2}
