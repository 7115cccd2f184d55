"""Forests as programs: they predict the mean of their trees, to the last bit."""

from dataclasses import replace
from functools import cache

import numpy as np
import onnx
import pandas as pd
import pytest
from chance import examples
from exports import (
    KINDS,
    RANDOM_KINDS,
    Case,
    fitted,
    hard_rows,
    random_cases,
    small_model,
)
from hypothesis import given
from hypothesis import strategies as st
from models_to_write import forest_of_mixed
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from test_export_onnx import run as run_onnx
from test_export_source import loaded, needs_node, run_js, run_python
from test_export_sql import as_tuples, database, duck, exported, postgres, sqlite  # noqa: F401

import shapetree
from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    export_js,
    export_onnx,
    export_python,
    export_sql,
)
from shapetree.export import _sql
from shapetree.tree._packed_trees import PackedTrees

SMALL = {"n_estimators": 6, "max_leaf_nodes": 12}
SPECS = {
    "two classes": (ShapeForestClassifier, SMALL, {"labels": ["no", "it's"]}),
    "classes": (ShapeForestClassifier, SMALL | {"max_branches": 4}, {"labels": [-5, 0, 7]}),
    "bools, pairs": (
        ShapeForestClassifier,
        SMALL | {"pairs": 2, "max_branches": 3},
        {"labels": [False, True]},
    ),
    "numbers": (ShapeForestRegressor, SMALL, {}),
    "numbers, pairs": (ShapeForestRegressor, SMALL | {"pairs": 2}, {}),
    "medians": (ShapeForestRegressor, SMALL | {"criterion": "absolute_error"}, {}),
    "deep": (ShapeForestRegressor, {"n_estimators": 3, "min_samples_leaf": 20}, {}),
    "two classifications": (
        ShapeForestClassifier,
        SMALL,
        {"labels": ["no", "yes", "it's"], "n_targets": 2},
    ),
    "two numbers": (ShapeForestRegressor, SMALL, {"n_targets": 2}),
    "one tree": (ShapeForestClassifier, SMALL | {"n_estimators": 1}, {"labels": ["a", "b"]}),
    "single leaves": (
        ShapeForestClassifier,
        SMALL | {"min_samples_leaf": 1500},
        {"labels": [1, 2]},
    ),
}
every_case = pytest.mark.parametrize("name", SPECS)


@cache
def case(name):
    kind, params, options = SPECS[name]
    forest, X = fitted(kind, params, **options)
    rng = np.random.default_rng(1)
    parts = [hard_rows(rng, tree, KINDS, X, 400) for tree in forest.estimators_[:3]]
    columns = {column: [value for part in parts for value in part[column]] for column in KINDS}
    return Case(forest, KINDS, columns)


def expected(this):
    has_classes = isinstance(this.model, ShapeForestClassifier)
    return [this.predictions, this.shares] if has_classes else [this.predictions]


@every_case
def test_python_predicts_what_the_forest_predicts(name, tmp_path):
    this = case(name)
    source = export_python(this.model)
    assert run_python(source, this.rows, tmp_path) == expected(this)
    leaves = run_python(source, this.rows, tmp_path, "leaves")
    assert leaves == [this.model.apply(this.table).tolist()]


@needs_node
@every_case
def test_javascript_predicts_what_the_forest_predicts(name, tmp_path):
    this = case(name)
    source = export_js(this.model)
    assert run_js(source, this.rows, tmp_path) == expected(this)
    leaves = run_js(source, this.rows, tmp_path, "leaves")
    assert leaves == [this.model.apply(this.table).tolist()]


@every_case
def test_databases_predict_what_the_forest_predicts(name, database):  # noqa: F811
    this = case(name)
    database.fill(this.kinds, this.columns)
    found = database.select(exported(this.model, database))
    assert found == as_tuples(this.predictions)
    if isinstance(this.model, ShapeForestClassifier):
        shares = this.shares
        if this.model.n_outputs_ > 1:
            shares = [[share for some in row for share in some] for row in shares]
        assert database.select(exported(this.model, database, output="proba")) == as_tuples(shares)
    leaves = database.select(exported(this.model, database, output="leaf"))
    rows = this.model.apply(this.table).tolist()
    assert leaves == (as_tuples(rows) if len(rows[0]) > 1 else [row[0] for row in rows])


@pytest.mark.parametrize("name", ["classes", "bools, pairs", "two classifications", "numbers"])
def test_duckdb_predicts_the_same_from_lists(name, duck, monkeypatch):  # noqa: F811
    monkeypatch.setattr(_sql, "MAX_CONDITIONS", 0)
    this = case(name)
    duck.fill(this.kinds, this.columns)
    text = exported(this.model, duck)
    assert "LEFT JOIN" in text
    assert duck.select(text) == as_tuples(this.predictions)


def onnx_outputs(forest, table, dtype="float64"):
    if isinstance(forest, ShapeForestRegressor):
        return {"variable": forest.predict(table).reshape(len(table), -1).astype(dtype)}
    labels, shares = forest.predict(table), forest.predict_proba(table)
    if forest.n_outputs_ == 1:
        return {"label": labels, "probabilities": shares.astype(dtype)}
    return {
        name: values
        for output, its in enumerate(shares)
        for name, values in (
            (f"label_{output}", labels[:, output]),
            (f"probabilities_{output}", its.astype(dtype)),
        )
    }


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@every_case
def test_onnx_predicts_what_the_forest_predicts(name, dtype):
    this = case(name)
    table = this.table
    for column, kind in KINDS.items():
        if dtype == "float32" and kind == "float64":
            table = table.assign(**{column: table[column].astype(np.float32)})
        # Missing text is "", which is itself a category here.
        if kind == "text":
            table = table.assign(**{column: table[column].fillna("unseen")})
    found = run_onnx(export_onnx(this.model, dtype=dtype), table)
    wanted = onnx_outputs(this.model, table, dtype)
    assert found.keys() == wanted.keys()
    for output, values in wanted.items():
        np.testing.assert_array_equal(found[output], values)
        assert found[output].shape == values.shape


@st.composite
def random_forests(draw):
    """Forests of random trees, and rows."""
    cases = draw(st.lists(random_cases(n_rows=200), min_size=1, max_size=4))
    _, X = small_model()
    features = cases[0].model._fitted.features
    forest = ShapeForestRegressor(n_estimators=1, max_depth=1, n_threads=1).fit(X, np.arange(12.0))
    # Trees that use a feature know its categories.
    known = [
        next((f for f in (c.model._fitted.features[j] for c in cases) if f.categories), feature)
        for j, feature in enumerate(features)
    ]
    trees = tuple(this.model.tree_ for this in cases)
    forest._fitted = replace(forest._fitted, trees=PackedTrees(trees), features=tuple(known))
    return Case(forest, RANDOM_KINDS, cases[0].columns)


@examples(30)
@given(this=random_forests())
def test_python_follows_any_forest(this):
    predict = loaded(export_python(this.model))["predict"]
    assert [predict(row) for row in this.rows] == this.predictions


@examples(20)
@given(this=random_forests())
@pytest.mark.parametrize("name", ["sqlite", "duck", "postgres"])
def test_databases_follow_any_forest(request, name, this):
    store = request.getfixturevalue(name)
    store.fill(this.kinds, this.columns)
    assert store.select(exported(this.model, store)) == this.predictions


@examples(15)
@given(this=random_forests())
def test_onnx_follows_any_forest(this):
    found = run_onnx(export_onnx(this.model), this.table)
    assert found["variable"][:, 0].tolist() == this.predictions


@pytest.mark.parametrize("seed", range(6))
def test_many_forests_of_weights_dates_and_missing_values(seed):
    rng = np.random.default_rng(seed)
    labels = [None, ["a", "b"], [3, 1, 2], ["p", "q", "r", "s"]][seed % 4]
    weights = rng.integers(0, 3, 120) if seed % 2 else rng.exponential(size=120)
    labels = sorted(labels) if labels else None
    forest, X, _ = forest_of_mixed(labels, seed=seed, weights=weights, dates=True)
    module = loaded(export_python(forest))
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in X.to_dict("records")
    ]
    assert [module["predict"](row) for row in rows] == forest.predict(X).tolist()
    if labels:
        shares = [list(module["predict_proba"](row)) for row in rows]
        assert shares == forest.predict_proba(X).tolist()
    dates = X.assign(
        **{
            name: (X[name] - pd.Timestamp(0)).dt.total_seconds().where(X[name].notna(), np.nan)
            for name in ("day", "moment")
        }
    )
    found = run_onnx(export_onnx(forest), dates.assign(colour=dates["colour"].fillna("unseen")))
    for name, values in onnx_outputs(forest, X).items():
        np.testing.assert_array_equal(found[name], values)


def test_many_trees_make_an_expression_that_databases_take(database):  # noqa: F811
    X, y = np.arange(60.0)[:, None] % 17, np.arange(60) % 17 > 8
    forest = ShapeForestClassifier(n_estimators=900, max_depth=2, n_threads=1).fit(X, y)
    database.fill({"x0": "float64"}, {"x0": X[:, 0].tolist()})
    assert database.select(exported(forest, database)) == forest.predict(X).tolist()
    with pytest.raises(ValueError, match="a forest of 901 trees makes too deep an expression"):
        export_sql(forest.set_params(n_estimators=901, warm_start=True).fit(X, y))


def test_equal_means_go_to_the_first_class(database, tmp_path):  # noqa: F811
    forest = ShapeForestClassifier(n_estimators=2, n_threads=1, random_state=0)
    forest.fit([[0.0], [1.0]] * 20, ["a", "b"] * 20)
    one, other = forest._fitted.trees[0], forest._fitted.trees[1]
    flipped = replace(other, value=np.ascontiguousarray(one.value[:, :, ::-1]), **{
        name: getattr(one, name) for name in ("parent", "depth", "first_child", "n_branches")
    }) if one.node_count == other.node_count else None  # fmt: skip
    assert flipped is not None
    forest._fitted = replace(forest._fitted, trees=PackedTrees((one, flipped)))
    assert forest.predict([[0.0], [1.0]]).tolist() == ["a", "a"]
    database.fill({"x0": "float64"}, {"x0": [0.0, 1.0]})
    assert database.select(exported(forest, database)) == ["a", "a"]
    found = run_onnx(export_onnx(forest), np.array([[0.0], [1.0]]))
    assert found["label"].tolist() == ["a", "a"]
    assert loaded(export_python(forest))["predict"]({"x0": 1.0}) == "a"


def test_names_and_remarks():
    forest, *_ = forest_of_mixed(["p", "q"])
    named = forest.with_names(classes=["sick", "well"], target="state", units={"size": "mm"})
    source = export_python(named)
    assert "# It predicts state; size is in mm." in source
    assert "CLASSES = ('sick', 'well')" in source
    assert "/* It predicts state; size is in mm. */" in export_sql(named)
    assert "// It predicts state; size is in mm." in export_js(named)
    assert export_onnx(named).doc_string == "predicts state; size is in mm"
    assert onnx.checker.check_model(export_onnx(forest)) is None
    pipeline = make_pipeline("passthrough", named)
    assert export_python(pipeline) == source


def test_what_forests_have_not_is_refused():
    forest, *_ = forest_of_mixed(["p", "q"])
    for dialect in ("snowflake", "oracle", "spark"):
        with pytest.raises(ValueError, match="use output='proba'"):
            export_sql(forest, dialect=dialect)
        assert "proba_p" in export_sql(forest, dialect=dialect, output="proba")
    with pytest.raises(ValueError, match="output='reasons' needs a single tree"):
        export_sql(forest, output="reasons")
    with pytest.raises(ValueError, match="reasons=True needs a single tree"):
        export_onnx(forest, reasons=True)
    for export in (shapetree.export_text, shapetree.export_dot, shapetree.plot_tree):
        with pytest.raises(TypeError, match="got ShapeForestClassifier; pass one of its"):
            export(forest)
    for export in (export_python, export_sql, export_onnx, export_js):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            export(ShapeForestClassifier())


@pytest.mark.parametrize("output", ["prediction", "proba"])
@pytest.mark.parametrize("dialect", ["bigquery", "tsql", "mysql"])
def test_other_dialects_can_be_read(dialect, output):
    sqlglot = pytest.importorskip("sqlglot")
    text = export_sql(case("classes").model, dialect=dialect, output=output)
    sqlglot.parse_one(f"SELECT {text} FROM t", dialect=dialect)
