"""Rows on a Dask cluster: the same models as in memory."""

import gc
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import make_tree
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, export_json

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

from dask_rows import (  # noqa: E402
    CASES,
    FEATURES,
    ClientAtOnce,
    at_question,
    before_fit,
    fitted_twice,
    frame_of,
    held_by,
    is_free,
    made_rows,
    same_file,
    sizes_of,
)

from shapetree.dask import (  # noqa: E402
    DaskShapeTreeClassifier,
    DaskShapeTreeRegressor,
    _cluster,
    _data,
    _tasks,
)
from shapetree.data._map_join import Question, Then  # noqa: E402
from shapetree.refine import _refine as refining  # noqa: E402


@pytest.fixture(scope="module")
def client():
    """Two workers in this process."""
    cluster = distributed.LocalCluster(
        2, threads_per_worker=1, processes=False, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize("case", [case for case in CASES if "chosen" not in case])
def test_the_model_is_that_of_the_same_rows_in_memory(client, case):
    rng = np.random.default_rng(list(CASES).index(case))
    rows = made_rows(rng, 300)
    near, far = fitted_twice(client, case, rows, [120, 0, 37, 143], weighted=case != "leaves")
    assert near.tree_.node_count > 1
    assert same_file(near, far)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("case", ["classes", "means", "pairs"])
def test_few_rows_are_resampled_and_taught_as_in_memory(client, case, weighted):
    rows = made_rows(np.random.default_rng(22), 300)
    given = case, rows, [120, 0, 37, 143], weighted
    near, far = fitted_twice(client, *given, resamples="auto")
    assert near.tree_.node_count > 1
    assert same_file(near, far)
    assert is_free(client)


def test_all_parameters_may_be_the_default_ones(client):
    rows = made_rows(np.random.default_rng(22), 300)
    frame = frame_of(rows, [120, 0, 180])
    for kind, far, target in (
        (ShapeTreeClassifier, DaskShapeTreeClassifier, "class0"),
        (ShapeTreeRegressor, DaskShapeTreeRegressor, "number0"),
    ):
        near = kind().fit(rows[FEATURES], rows[target])
        assert near.tree_.node_count > 1
        assert same_file(near, far(client=client).fit(frame[FEATURES], frame[target]))


@examples(15, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(CASES)),
    st.integers(1, 12),
    st.booleans(),
    st.integers(1, 2),
    st.sampled_from([0, 0, 4]),
)
def test_any_partitions_give_the_same_model(seed, case, n_parts, weighted, n_outputs, resamples):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(20, 120))
    rows = made_rows(rng, n_rows, n_outputs)
    sizes = sizes_of(rng, n_rows, n_parts)
    with pytest.MonkeyPatch.context() as patch:
        if n_parts % 2:  # rows are put in order
            patch.setattr(refining, "MANY_ROWS", 0)
        given = case, rows, sizes, weighted, n_outputs, resamples
        near, far = fitted_twice(ClientAtOnce(), *given)
    assert same_file(near, far)


def questions_of(model, n_rows, target):
    """Names of the questions of a fit, and the bytes of the answers that reach the client."""
    rows = made_rows(np.random.default_rng(13), n_rows)
    frame, asked = frame_of(rows, [n_rows // 4] * 4), []
    ask = _cluster.ClusterParts.ask

    def noting(self, of, *how, **columns):
        answer = ask(self, of, *how, **columns)
        name = _cluster.name_of(of)
        if isinstance(of, Then) and not name.startswith("_"):  # of the rows of a tree
            asked.append((name, len(pickle.dumps(answer))))
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cluster.ClusterParts, "ask", noting)
        model.fit(frame[FEATURES], frame[target])
    return asked


def test_a_level_takes_few_rounds_whose_answers_do_not_grow_with_the_rows():
    options = {"client": ClientAtOnce(), "max_depth": 4, "max_branches": 2, "random_state": 0}
    # Or fewer rows would get fewer nodes, and shorter answers.
    options |= {"leaf_penalty": 0.0, "segment_penalty": 0.0}
    for kind, target, of_level in (
        (DaskShapeTreeClassifier, "class0", ["histograms"]),
        (DaskShapeTreeRegressor, "number0", ["histograms", "spreads"]),
    ):
        growth, largest = make_tree(kind, refine=None, **options), []
        for n_rows in (8_000, 32_000):
            refined = make_tree(kind, **options)
            asked = questions_of(growth, n_rows, target)
            of_root = ["totals", *of_level[1:]]
            assert [name for name, _ in asked] == of_root + 4 * of_level
            in_all = questions_of(refined, n_rows, target)
            sweeps = [name for name, _ in in_all[len(asked) :]]
            # For each level, the losses of branches and the sums of leaves; a few for each sweep.
            n_sweeps = len(refined._fitted.history)
            assert len(sweeps) <= n_sweeps * (2 * 4 + 1) + 5
            largest.append(max(size for _, size in asked + in_all))
        assert largest[1] <= 1.1 * largest[0]


@pytest.mark.parametrize("case", ["classes", "balanced", "means"])
def test_targets_and_weights_stay_on_the_workers(monkeypatch, case):
    def bring(self):
        raise AssertionError("targets are on their way")

    monkeypatch.setattr(_data.DaskTrainingRows, "gather", bring)
    rows = made_rows(np.random.default_rng(21), 12_000)  # resamples bring those of fewer rows
    given = case, rows, [700, 0, 11_300], True
    near, far = fitted_twice(ClientAtOnce(), *given, resamples="auto")
    assert near.tree_.node_count > 1
    assert same_file(near, far)


def test_categories_of_rows_without_weight_are_unknown(client):
    rows = made_rows(np.random.default_rng(20), 100)
    rows["c"] = rows["c"].astype(object).where(rows.index > 3, "only here")
    rows["weight"] = np.where(rows.index > 3, 1.0, 0.0)
    near, far = fitted_twice(client, "greedy", rows, [50, 50], weighted=True)
    assert "only here" not in near.to_json()
    assert same_file(near, far)


# What workers are told


class Plus:
    """Adds the last number of a table."""

    def __init__(self, table):
        self.table = table

    def __call__(self, number):
        return number + self.table[-1]


def last_of(part, table):
    """A number of a part's, and the last one of a table that all parts are told."""
    return part + table[-1]


# Bytes on both sides of what is sent with each of 5 or 2 tasks, of what Dask makes a task by
# itself, of what is sent in one piece, and of the graphs that Dask warns of.
SIZES = [1_000, _cluster.MUCH // 5, _cluster.MUCH // 2, 100_000, _cluster.PIECE, 10 * 2**20]


@pytest.mark.filterwarnings("error:Sending large graph")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("beyond", [-800, 0, 800])
def test_workers_are_told_messages_of_any_size(client, size, beyond):
    with _cluster.Cluster(client) as cluster:
        # Several messages of one size at once: none is taken for another.
        tables = [np.full((size + beyond) // 8, float(number)) for number in range(3)]
        tables += [[*map(str, range((size + beyond) // 60)), number] for number in (3.0, 4.0)]
        of_parts = [cluster.make([[1], [0]], last_of, [10.0, 20.0], table=t) for t in tables]
        told = [cluster.message(table, 5) for table in tables]
        messages = cluster.make([[4, 0], [1, 2, 3]], last_of, [0.0] * 5, told)
        each = zip(of_parts, tables, strict=True)
        sums = [parts.find(Question(_cluster.itself, sum, Plus(table)))[0] for parts, table in each]
        numbers = np.arange(5.0)
        np.testing.assert_array_equal(cluster.results(sums), 30 + 3 * numbers)
        np.testing.assert_array_equal(messages.results(), numbers)


# Text has as many levels as make messages of all these sizes.
@pytest.mark.parametrize("n_levels", [40, 400, 1_000, 3_000, 6_000])
def test_text_may_have_any_number_of_levels(client, n_levels):
    rng = np.random.default_rng(n_levels)
    levels = np.array([f"tail {number:07}" for number in range(n_levels)])
    codes = rng.permutation(np.arange(2 * n_levels + 200) % n_levels)
    rows = pd.DataFrame({"tail": levels[codes], "x": rng.normal(size=len(codes))})
    rows["late"] = (codes % 7 < 3) ^ (rows["x"] > 1)
    frame = dd.from_pandas(rows, npartitions=3)
    options = {"max_depth": 3, "random_state": 0, "resamples": 0}
    far = make_tree(DaskShapeTreeClassifier, client=client, **options)
    far.fit(frame[["tail", "x"]], frame["late"])
    near = make_tree(ShapeTreeClassifier, **options).fit(rows[["tail", "x"]], rows["late"])
    assert same_file(near, far)


def test_deep_trees_of_numbers_are_told_whole(client):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(20_000, 6)), columns=list("abcdef"))
    y = (X["a"] ** 2 + X["b"] * X["c"] + rng.normal(scale=0.3, size=len(X)) > 1).rename("y")
    frame, targets = (dd.from_pandas(each, npartitions=3) for each in (X, y))
    far = DaskShapeTreeClassifier(client=client, max_depth=5, random_state=0).fit(frame, targets)
    assert same_file(ShapeTreeClassifier(max_depth=5, random_state=0).fit(X, y), far)


# Fits that end


def test_a_failed_fit_leaves_nothing_on_the_workers(client, monkeypatch):
    rows = made_rows(np.random.default_rng(3), 300)

    def fail():
        raise RuntimeError("on purpose")

    at_question(monkeypatch, "losses", 1, fail)
    with pytest.raises(RuntimeError, match="on purpose") as kept:
        fitted_twice(client, "classes", rows, [100, 200])
    # The error's traceback knows all that the fit knew.
    assert kept.tb is not None
    assert is_free(client)


def test_a_finished_fit_leaves_nothing_on_the_workers(client):
    rows = made_rows(np.random.default_rng(4), 100)
    fitted_twice(client, "greedy", rows, [40, 60])
    gc.collect()
    assert is_free(client)


def test_answers_are_forgotten_once_they_are_here(client, monkeypatch):
    n_held = []
    at_question(monkeypatch, "all_nodes", 2, lambda: n_held.append(len(held_by(client))))
    rows = made_rows(np.random.default_rng(5), 200)
    n_parts = 20
    fitted_twice(client, "classes", rows, [10] * n_parts)
    # Of every part: what was read, its bins, its rows, and where they are.
    assert n_held[0] <= 8 * n_parts


# What cannot be


def fit_frames(client, X, y, weights=None, kind=DaskShapeTreeClassifier, **options):
    """Fit on the cluster: few rows that are resampled would be brought into this process."""
    return make_tree(kind, client=client, max_depth=2, resamples=0, **options).fit(X, y, weights)


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
    with pytest.raises(ValueError, match=r"part [01]: the rows of X and y differ in their index"):
        fit_frames(client, parts_frame([half[FEATURES] for half in halves]), shuffled)
    with pytest.raises(ValueError, match="weight"):
        fit_frames(client, frame[FEATURES], frame["class0"], frame["weight"] - 3)
    with pytest.raises(ValueError, match="there are no rows"):
        fit_frames(client, parts_frame([X.iloc[:0]]), parts_frame([rows.iloc[:0]])["class0"])
    with pytest.raises(TypeError, match="X is a DataFrame; give a Dask"):
        fit_frames(client, X, y)


class Unsteady:
    """Makes a part whose rows come in another order each time; counts how often."""

    n_made = 0

    def __call__(self, part):
        Unsteady.n_made += 1
        return part.sample(frac=1, random_state=Unsteady.n_made).reset_index(drop=True)


def test_x_and_y_are_made_of_the_same_rows(client):
    rows = made_rows(np.random.default_rng(7), 300)
    rows["a"] = (rows["class0"] == "high") * 1.0
    halves = [rows.iloc[:140], rows.iloc[140:]]
    Unsteady.n_made = 0
    frame = dd.from_map(Unsteady(), halves, meta=rows.iloc[:0])
    model = fit_frames(client, frame[FEATURES], frame["class0"], frame["weight"])
    assert Unsteady.n_made == 2
    assert model.to_local().score(rows[FEATURES], rows["class0"]) == 1


def test_rows_in_another_order_have_another_fingerprint():
    rows = made_rows(np.random.default_rng(7), 300)
    y = rows["class0"].to_numpy()
    for X in (rows[FEATURES], rows[["a", "d"]].to_numpy()):
        first = _tasks.fingerprint_of(X, y, None)
        assert _tasks.fingerprint_of(X.copy(), y.copy(), None).differs_from(first) is None
        assert "in another order" in _tasks.fingerprint_of(X[::-1], y, None).differs_from(first)
        assert "column 'y'" in _tasks.fingerprint_of(X, y[::-1], None).differs_from(first)


def test_one_fit_at_a_time_looks_at_its_frames(monkeypatch):
    # Otherwise, threads that do may wait for each other for ever; see `LOOKING`.
    look, at_once = _data.parts_of, threading.Semaphore(1)

    def looking(*given):
        assert at_once.acquire(blocking=False)
        time.sleep(0.01)
        found = look(*given)
        at_once.release()
        return found

    monkeypatch.setattr(_data, "parts_of", looking)
    rows = made_rows(np.random.default_rng(0), 60)
    models = [before_fit(ClientAtOnce(), "greedy", rows, [20, 40]) for _ in range(4)]
    with ThreadPoolExecutor(len(models)) as pool:
        fits = [pool.submit(far.fit, *given) for _, far, given in models]
        assert all(same_file(models[0][0], fit.result()) for fit in fits)


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


def test_predictions_of_frames_go_to_files(client, tmp_path):
    rows = made_rows(np.random.default_rng(8), 200, n_outputs=2)
    frame = frame_of(rows, [90, 0, 110])
    X, near = frame[FEATURES], rows[FEATURES]
    for target, options in (
        ("class0", {}),
        (["class0", "class1"], {}),
        ("number0", {"kind": DaskShapeTreeRegressor}),
        (["number0", "number1"], {"kind": DaskShapeTreeRegressor}),
    ):
        model = fit_frames(client, X, frame[target], **options)
        predicted = model.predict(X)
        if isinstance(target, str):
            predicted = predicted.to_frame()
        predicted.to_parquet(tmp_path / "predicted")
        read = pd.read_parquet(tmp_path / "predicted")
        assert list(read) == (["prediction"] if isinstance(target, str) else target)
        expected = model.to_local().predict(near).reshape(read.shape)
        np.testing.assert_array_equal(read.to_numpy(dtype=expected.dtype), expected)
        assert predicted.compute().dtypes.equals(predicted.dtypes)
    model = fit_frames(client, X, frame["class0"])
    model.apply(X).to_frame().to_parquet(tmp_path / "leaves")
    assert list(pd.read_parquet(tmp_path / "leaves")) == ["leaf"]
    for shares in (model.predict_proba(X), model.predict_log_proba(X)):
        shares.to_parquet(tmp_path / "shares")
        assert list(pd.read_parquet(tmp_path / "shares")) == ["high", "low"]
    whole = fit_frames(client, X, (frame["class0"] == "high").astype(bool))
    assert whole.predict(X).dtype == bool
    assert list(whole.predict_proba(X).columns) == ["False", "True"]


def test_scores_are_those_of_the_local_model(client):
    rows = made_rows(np.random.default_rng(11), 240, n_outputs=2)
    frame = frame_of(rows, [90, 0, 150])
    X, near = frame[FEATURES], rows[FEATURES]
    more = made_rows(np.random.default_rng(12), 200, n_outputs=2)
    new = frame_of(more, [80, 0, 120])
    for kind, target in (
        (DaskShapeTreeClassifier, "class0"),
        (DaskShapeTreeRegressor, "number0"),
        (DaskShapeTreeRegressor, ["number0", "number1"]),
    ):
        model = fit_frames(client, X, frame[target], kind=kind)
        local = model.to_local()
        assert model.score(X, frame[target]) == local.score(near, rows[target])
        assert "held_out" not in model.to_json()
        scores = local.evaluate(more[FEATURES], more[target], more["weight"])
        assert model.evaluate(new[FEATURES], new[target], new["weight"]) == scores
        assert model.to_json() == export_json(model) == local.to_json()
        assert kind.from_json(model.to_json()).to_json() == local.to_json()
    with pytest.raises(ValueError, match="X has 3 partitions, but y has 1"):
        model.evaluate(X, dd.from_pandas(rows["number0"], npartitions=1))
    with pytest.raises(TypeError, match=r"explain takes rows in memory.*X\.head"):
        model.explain(X)
    with pytest.raises(TypeError, match="decision_path takes rows in memory"):
        model.decision_path(X)
    classifier = fit_frames(client, X, frame["class0"])
    assert len(classifier.explain(near.head(2))) == 2
    assert classifier.decision_path(near).shape[0] == 240


def test_paths_of_strengths_are_those_of_rows_in_memory(client):
    rows = made_rows(np.random.default_rng(12), 200)
    frame = frame_of(rows, [90, 110])
    for resamples in (0, "auto"):
        options = {"strength": [0.5, 2.0], "cv": 2, "max_depth": 2, "random_state": 0}
        options["resamples"] = resamples
        far = make_tree(DaskShapeTreeClassifier, client=client, **options)
        near = make_tree(ShapeTreeClassifier, **options).strength_path(
            rows[FEATURES], rows["class0"]
        )
        path = far.strength_path(frame[FEATURES], frame["class0"])
        for name, values in near.items():
            np.testing.assert_array_equal(path[name], values)
        assert is_free(client)


def test_arrays_may_have_any_chunks(client):
    rng = np.random.default_rng(9)
    X, y = rng.normal(size=(300, 4)).astype(np.float32), rng.normal(size=(300, 1))
    y += X[:, :1]
    lazy = da.from_array(X, chunks=((100, 150, 50), (2, 2)))
    targets = da.from_array(y, chunks=((100, 150, 50), (1,)))
    options = {"refine": None, "random_state": 0}
    far = fit_frames(client, lazy, targets, kind=DaskShapeTreeRegressor, **options)
    near = make_tree(ShapeTreeRegressor, max_depth=2, resamples=0, **options).fit(X, y)
    assert same_file(near, far)
    np.testing.assert_array_equal(far.predict(lazy).compute(), near.predict(X))
    with pytest.raises(ValueError, match="chunks of X and y differ"):
        fit_frames(client, lazy, da.from_array(y, chunks=((150, 100, 50), (1,))))


@pytest.mark.parametrize("resamples", [0, 4])
@pytest.mark.parametrize("case", sorted(CASES))
def test_frequencies_are_counted_as_in_memory(case, resamples):
    rng = np.random.default_rng(21)
    rows = made_rows(rng, 300)
    rows["weight"] = rng.integers(0, 5, 300).astype(float)
    given = case, rows, [120, 0, 37, 143], True
    near, far = fitted_twice(ClientAtOnce(), *given, resamples=resamples)
    assert same_file(near, far)
    assert near.tree_.n_node_samples[0] == rows["weight"].sum()


def test_rows_are_read_from_files(client, tmp_path):
    rows = made_rows(np.random.default_rng(14), 150)
    for number, first in enumerate(range(0, 150, 25)):
        rows.iloc[first : first + 25].to_parquet(tmp_path / f"{number}.parquet")
    # Of a single column, Dask would read several files at once.
    frame = dd.read_parquet(tmp_path)
    assert len(frame["class0"].to_delayed()) < frame.npartitions == 6
    options = {"refine": None, "random_state": 0}
    far = fit_frames(client, frame[FEATURES], frame["class0"], frame["weight"], **options)
    near = make_tree(ShapeTreeClassifier, max_depth=2, resamples=0, **options)
    assert same_file(near.fit(rows[FEATURES], rows["class0"], rows["weight"]), far)
    right = far.to_local().score(rows[FEATURES], rows["class0"])
    assert far.score(frame[FEATURES], frame["class0"]) == right


def test_frames_may_be_of_pyarrow(client):
    rows = made_rows(np.random.default_rng(10), 120)
    arrow = rows.convert_dtypes(dtype_backend="pyarrow")
    arrow["c"] = rows["c"].astype("string[pyarrow]")
    frame = frame_of(arrow, [50, 70])
    options = {"refine": None, "random_state": 0}
    far = fit_frames(client, frame[FEATURES], frame["class0"], **options)
    near = make_tree(ShapeTreeClassifier, max_depth=2, resamples=0, **options)
    near.fit(arrow[FEATURES], arrow["class0"])
    assert same_file(near, far)


def test_estimators_keep_scikit_learns_manners(client):
    from sklearn.base import clone

    model = DaskShapeTreeClassifier(client=client, max_depth=5, class_weight="balanced")
    assert model.get_params()["max_depth"] == 5
    assert clone(model).client is client
    assert clone(model).get_params() == model.get_params()
    assert model.to_local().get_params() == {
        name: value for name, value in model.get_params().items() if name != "client"
    }
    assert pickle.loads(pickle.dumps(model)).client is None
    with pytest.raises(TypeError, match="max_deepness"):
        DaskShapeTreeClassifier(max_deepness=3)


@pytest.mark.parametrize("sizes", [[6, 4], [9, 0, 0], [1, 1], [3, 5, 1, 2], [0]])
def test_workers_are_asked_for_about_as_many_parts(sizes):
    parts = iter(range(100))
    groups = [[next(parts) for _ in range(size)] for size in sizes]
    _cluster.level_out(groups)
    assert max(map(len, groups)) - min(map(len, groups)) <= 1
    assert sorted(part for group in groups for part in group) == list(range(sum(sizes)))
