"""Models by `export_onnx` predict bitwise what the trees predict."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import PLAIN, make_tree, noisy_classes, set_tree, view_of
from exports import case, reasons_of
from hypothesis import given
from naive import trees
from sklearn.exceptions import NotFittedError

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.export import _onnx as module
from shapetree.export import export_onnx

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

N_ROWS = 10_000
LIMITS = np.finfo(np.float64)
SPECIAL = [0.0, -0.0, 5e-324, -5e-324, LIMITS.max, LIMITS.min, np.inf, -np.inf, np.nan]
LABELS = {
    "int": np.array([7, -3, 12, 0, 5]),
    "str": np.array(["é", "b", "", "d'\"\n", "c"]),
    "bool": np.array([True, False]),
}


def run(model, table):
    """Outputs by name, for an array, or for a data frame whose columns are the model's inputs."""
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = session.run(None, feed(session, table))
    return dict(zip([output.name for output in session.get_outputs()], outputs, strict=True))


def feed(session, table):
    types = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}
    inputs = session.get_inputs()
    if [wanted.name for wanted in inputs] == ["X"]:
        return {"X": np.asarray(table, dtype=types[inputs[0].type])}
    columns = [table.iloc[:, [column]] for column in range(len(inputs))]
    return {
        wanted.name: (
            column.astype(object).fillna("").to_numpy()
            if wanted.type == "tensor(string)"
            else column.to_numpy(types[wanted.type])
        )
        for wanted, column in zip(inputs, columns, strict=True)
    }


def assert_same(tree, table, dtype="float64"):
    """Model and tree predict the same for a table."""
    outputs = run(export_onnx(tree, dtype=dtype), table)
    if isinstance(tree, ShapeTreeRegressor):
        expected = {"variable": tree.predict(table).reshape(len(table), -1).astype(dtype)}
    else:
        labels, shares = tree.predict(table), tree.predict_proba(table)
        if tree.n_outputs_ == 1:
            expected = {"label": labels, "probabilities": shares.astype(dtype)}
        else:
            expected = {}
            for output, its_shares in enumerate(shares):
                expected[f"label_{output}"] = labels[:, output]
                expected[f"probabilities_{output}"] = its_shares.astype(dtype)
    assert outputs.keys() == expected.keys()
    for name, values in expected.items():
        got = outputs[name]
        np.testing.assert_array_equal(got, values, err_msg=name)
        if not name.startswith("label"):
            assert got.dtype == dtype
            assert got.shape == values.shape


def critical_values(tree, feature):
    """A feature's thresholds in a tree, their neighbours, and numbers like no others."""
    limits = []
    for node in view_of(tree).nodes:
        limits += [part.high for part in node.segments if node.features[0] is feature]
        limits += [
            bound.high
            for region in node.regions
            for bound in region.bounds
            if 1.0 in bound.weights and feature in node.features
        ]
    finite = np.array([limit for limit in limits if np.isfinite(limit)])
    return np.concatenate(
        [finite, np.nextafter(finite, np.inf), np.nextafter(finite, -np.inf), SPECIAL]
    )


def with_critical_rows(tree, X, rng):
    """A copy of a numeric table in which a third of the values are critical."""
    X = np.array(X, dtype=np.float64)
    for column, feature in enumerate(tree._fitted.features):
        chosen = rng.random(len(X)) < 1 / 3
        X[chosen, column] = rng.choice(critical_values(tree, feature), chosen.sum())
    return X


def interacting(rng, n_rows, n_features=5):
    """Numbers, and a score that only pairs of them explain."""
    X = rng.normal(size=(n_rows, n_features))
    return X, np.sin(2 * X[:, 0] + X[:, 1]) + X[:, 2] * X[:, 3] + 0.2 * rng.normal(size=n_rows)


def classes_of(score, labels):
    edges = np.quantile(score, np.arange(1, len(labels)) / len(labels))
    return labels[np.searchsorted(edges, score)]


# --- numbers ---


@pytest.mark.parametrize("refine", [None, "tao"])
@pytest.mark.parametrize("max_branches", [2, 3, 5])
@pytest.mark.parametrize("kind", ["int", "str", "bool", None])
def test_numeric_features(kind, max_branches, refine):
    rng = np.random.default_rng(max_branches)
    X, score = interacting(rng, 3000)
    params = {"max_depth": 5, "max_branches": max_branches, "refine": refine}
    if kind is None:
        tree = make_tree(ShapeTreeRegressor, **params).fit(X, score)
    else:
        tree = make_tree(ShapeTreeClassifier, **params).fit(X, classes_of(score, LABELS[kind]))
    rows = with_critical_rows(tree, rng.normal(size=(N_ROWS, X.shape[1])), rng)
    assert_same(tree, rows)
    with np.errstate(over="ignore"):
        assert_same(tree, rows.astype(np.float32), "float32")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("max_branches", [2, 4])
def test_pairs(max_branches, dtype):
    rng = np.random.default_rng(max_branches)
    X, score = interacting(rng, 3000)
    X[rng.random(X.shape) < 0.02] = np.nan
    tree = ShapeTreeRegressor(max_depth=4, max_branches=max_branches, pairs="auto").fit(X, score)
    oblique = [
        bound
        for node in view_of(tree).nodes
        for region in node.regions
        for bound in region.bounds
        if 0.0 not in bound.weights and np.isfinite(bound.high)
    ]
    assert oblique
    rows = with_critical_rows(tree, rng.normal(size=(N_ROWS, X.shape[1])), rng)
    # Some points lie right on an oblique cut, as far as floating point lets them.
    with np.errstate(over="ignore"):
        for bound in oblique:
            chosen = rng.integers(N_ROWS, size=20)
            rows[chosen, 0] = bound.high - bound.weights[1] * rows[chosen, 1]
        assert_same(tree, rows.astype(dtype), dtype)


def test_a_level_at_a_time_and_all_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    X, score = interacting(rng, 2000)
    tree = ShapeTreeRegressor(max_depth=4).fit(X, score)
    rows = with_critical_rows(tree, rng.normal(size=(N_ROWS, X.shape[1])), rng)
    n_ensembles = []
    for n_tests in (0, 10**9):
        monkeypatch.setattr(module, "MAX_DIRECT_TESTS", n_tests)
        assert_same(tree, rows)
        operators = [node.op_type for node in export_onnx(tree).graph.node]
        n_ensembles.append(operators.count("TreeEnsembleRegressor"))
    assert n_ensembles == [tree.tree_.max_depth, 1]


@pytest.mark.parametrize("name", ["pairs of numbers", "one leaf"])
def test_leaves_and_reasons_are_outputs_if_asked_for(name):
    this = case(name)
    used = [column for column, kind in this.kinds.items() if kind == "text"]
    table = this.table.assign(**{column: this.table[column].fillna("none") for column in used})
    assert "leaf" not in run(export_onnx(this.model), table)
    found = run(export_onnx(this.model, reasons=True), table)
    leaves, reasons = found["leaf"], found["reasons"]
    assert leaves.tolist() == this.model.apply(table).tolist()
    wanted = reasons_of(this.model, leaves.tolist())
    assert reasons.tolist() == ["; ".join(each) for each in wanted]


def test_operators_have_names_of_their_own():
    rng = np.random.default_rng(0)
    X, score = interacting(rng, 2000)
    nodes = export_onnx(ShapeTreeRegressor(max_depth=3, pairs=1).fit(X, score)).graph.node
    names = {node.name for node in nodes}
    assert len(names) == len(nodes)
    assert "" not in names


def test_deep_trees():
    rng = np.random.default_rng(0)
    X, score = interacting(rng, 10_000)
    tree = ShapeTreeRegressor(
        max_depth=12,
        max_branches=2,
        refine=None,
        search=SearchOptions(leaf_penalty=0, segment_penalty=0),
    ).fit(X, score)
    assert tree.tree_.max_depth == 12
    assert len(export_onnx(tree).SerializeToString()) < 5e6
    assert_same(tree, with_critical_rows(tree, rng.normal(size=(N_ROWS, X.shape[1])), rng))


def test_lone_leaves_and_tables_of_no_or_one_row():
    X = np.arange(40.0)[:, None]
    for y in (np.ones(40), X[:, 0] % 7):
        tree = ShapeTreeRegressor().fit(X, y)
        for n_rows in (1, 40):
            assert_same(tree, X[:n_rows])
        assert run(export_onnx(tree), X[:0])["variable"].shape == (0, 1)


@examples(60)
@given(trees(categories=(None, None, None), n_values=1))
def test_any_tree_of_numbers(arrays):
    rng = np.random.default_rng(0)
    values = [*np.arange(-3, 3.1, 0.25), *SPECIAL, 1e300, 1e-300]
    rows = rng.choice(values, (2000, 3))
    tree = ShapeTreeRegressor().fit(rows, np.zeros(len(rows)))
    set_tree(tree, arrays)
    assert_same(tree, rows)


@examples(30)
@given(trees(categories=(None, 3, 4, 2), n_values=1, pair_share=0))
def test_any_tree_of_numbers_and_categories(arrays):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "number": rng.choice([*np.arange(-3, 3.1, 0.25), *SPECIAL], 2000),
            "text": rng.choice(["a", "b", "c", "unseen"], 2000),
            "level": rng.choice(
                [-np.inf, LIMITS.min, -0.0, np.inf, 0.25, LIMITS.max, np.nan], 2000
            ),
            "flag": rng.choice([True, False], 2000),
        }
    )
    seen = rows[(rows.text != "unseen") & ~rows.level.isin([0.25, LIMITS.max])]
    tree = ShapeTreeRegressor(categorical_features=["text", "level", "flag"])
    tree.fit(seen, np.zeros(len(seen)))
    set_tree(tree, arrays, seen)
    assert_same(tree, rows)


# --- categories ---


def zoo(rng, n_rows):
    """Features of all kinds, and a target that depends on them, partly by pairs."""
    town = rng.integers(300, size=n_rows)
    shop = rng.integers(-4, 8, size=n_rows)
    number, other = rng.normal(size=(2, n_rows))
    flag = rng.random(n_rows) < 0.5
    table = pd.DataFrame(
        {
            "number": number,
            "town": [f"town {name} é" for name in town],
            "shop": shop,
            "flag": flag,
            "other": other,
            "unused": "same",
        }
    )
    score = np.where(town % 3 == shop % 2, 1.0, -1.0) * number + flag * (shop % 5) + other**2
    return table, score + 0.1 * rng.normal(size=n_rows)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("pairs", [0, "auto"])
@pytest.mark.filterwarnings("ignore:.*that training has not seen")
def test_categories(pairs, dtype):
    rng = np.random.default_rng(0)
    X, score = zoo(rng, 4000)
    X["town"] = X["town"].mask(rng.random(len(X)) < 0.05)
    X["flag"] = X["flag"].astype(object).mask(rng.random(len(X)) < 0.05)
    tree = ShapeTreeClassifier(
        max_depth=5,
        pairs=pairs,
        categorical_features=["town", "shop", "flag", "unused"],
        search=SearchOptions(leaf_penalty=0),
    ).fit(X, classes_of(score, LABELS["str"]))
    partners = [
        node
        for node in view_of(tree).nodes
        if node.regions and any(feature.is_categorical for feature in node.features)
    ]
    assert bool(partners) == bool(pairs)

    rows, _ = zoo(rng, N_ROWS)
    rows["number"] = with_critical_rows(tree, rows[["number"] * 6], rng)[:, 0]
    with np.errstate(over="ignore"):
        rows = rows.astype({"number": dtype, "other": dtype})
    rows["town"] = rows["town"].mask(rng.random(N_ROWS) < 0.1, "elsewhere")
    rows["town"] = rows["town"].mask(rng.random(N_ROWS) < 0.1)
    rows["shop"] = rows["shop"] + rng.choice([0, 0, 0, 0.5, 20, np.nan, np.inf], N_ROWS)
    rows["flag"] = rows["flag"].astype(object).mask(rng.random(N_ROWS) < 0.1)
    rows["unused"] = "other"
    assert_same(tree, rows, dtype)


def test_numbers_as_categories_are_columns_of_one_input():
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 8, (3000, 3)).astype(float)
    tree = ShapeTreeRegressor(categorical_features=[0, 2]).fit(X, (X[:, 0] * X[:, 2]) % 7)
    rows = X[rng.integers(len(X), size=N_ROWS)] + rng.choice([0, 0, 0.5, np.nan], (N_ROWS, 3))
    assert [wanted.name for wanted in export_onnx(tree).graph.input] == ["X"]
    assert_same(tree, rows)
    assert_same(tree, rows.astype(np.float32), "float32")


def test_whole_numbers_that_floats_cannot_hold_are_int64():
    ids = 2**53 + np.arange(6)
    X = pd.DataFrame({"id": np.tile(ids, 50), "number": 0.0})
    tree = ShapeTreeRegressor(categorical_features=["id"]).fit(X, np.tile([1, 5, 1, 5, 9, 1], 50))
    rows = pd.DataFrame({"id": np.append(ids, [0, -1, 2**53 - 1]), "number": 0.0})
    assert_same(tree, rows)
    types = [wanted.type.tensor_type.elem_type for wanted in export_onnx(tree).graph.input]
    assert types == [onnx.TensorProto.INT64, onnx.TensorProto.DOUBLE]


def test_numbers_that_nothing_holds_are_never_met():
    levels = [10**30 + 1, 0.5, 3, 10**400]
    X = np.array(levels * 20, dtype=object)[:, None]
    y = np.tile([1.0, 2.0, 3.0, 4.0], 20)
    tree = ShapeTreeRegressor(categorical_features=[0]).fit(X, y)
    assert_same(tree, np.array([[0.5], [3.0], [1e30], [np.inf], [np.nan]]))


def test_the_empty_string_is_a_category_if_training_saw_it():
    X = pd.DataFrame({"text": ["", "a", "b", None] * 20})
    tree = make_tree(ShapeTreeClassifier, **PLAIN).fit(X, [0, 1, 2, 3] * 20)
    rows = pd.DataFrame({"text": ["", "a", "b", "no category"]})
    assert run(export_onnx(tree), rows)["label"].tolist() == [0, 1, 2, 3]
    other = make_tree(ShapeTreeClassifier, **PLAIN).fit(X[X.text != ""], [1, 2, 3] * 20)
    assert run(export_onnx(other), rows)["label"].tolist() == [3, 1, 2, 3]


def test_text_beside_numbers_is_refused():
    X = np.array([["1"], [1], [2]] * 20, dtype=object)
    tree = make_tree(ShapeTreeClassifier, **PLAIN, categorical_features=[0]).fit(X, [0, 1, 2] * 20)
    with pytest.raises(ValueError, match="'x0' has both text and numbers"):
        export_onnx(tree)


# --- targets and names ---


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_several_targets(dtype):
    rng = np.random.default_rng(0)
    X, score = interacting(rng, 2000)
    rows = rng.normal(size=(N_ROWS, X.shape[1])).astype(dtype)
    numbers = ShapeTreeRegressor().fit(X, np.column_stack([score, X[:, 0] * score]))
    assert_same(numbers, rows, dtype)
    y = np.column_stack([classes_of(score, LABELS["int"]), classes_of(X[:, 0], np.array([3, 4]))])
    assert_same(ShapeTreeClassifier().fit(X, y), rows, dtype)
    text = ShapeTreeClassifier().fit(X, np.where(y > 3, "more", "less"))
    assert_same(text, rows, dtype)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (np.array([2**40, -1]), "INT64"),
        (np.array([1.0, 2.0]), "INT64"),
        (np.array([True, False]), "INT64"),
        (np.array([2**63, 1], dtype=np.uint64), "STRING"),
        (np.array(["1", "2"]), "STRING"),
    ],
)
def test_labels_are_whole_numbers_or_text(labels, kind):
    tree = ShapeTreeClassifier().fit([[0.0], [1.0]] * 20, np.tile(labels, 20))
    model = export_onnx(tree)
    assert model.graph.output[0].type.tensor_type.elem_type == getattr(onnx.TensorProto, kind)
    expected = [str(label) if kind == "STRING" else label for label in tree.predict([[0.0], [1.0]])]
    assert run(model, np.array([[0.0], [1.0]]))["label"].tolist() == expected


NAMES = ["", "a b", "a_b", "a-b", "2nd", "label", "größe", "\n\"'\\/", "\0", "¿", "variable"]


def test_names_of_any_kind():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(["x", "\0'\"\n", "é"], 400) for name in NAMES})
    y = np.where(X["größe"] == X[""], "\"quoted'", np.where(X["¿"] == "é", "a\nb\0", ""))
    tree = ShapeTreeClassifier(max_depth=6).fit(X, y)
    assert_same(tree, X)
    model = export_onnx(tree)
    inputs = [wanted.name for wanted in model.graph.input]
    expected = ["_", "a_b", "a_b_2", "a_b_3", "_2nd", "label_2", "größe", "_____", "__2", "__3"]
    assert inputs == [*expected, "variable"]
    assert [wanted.doc_string for wanted in model.graph.input][:4] == ["", "a b", "a_b", "a-b"]
    names = {entry.key: json.loads(entry.value) for entry in model.metadata_props}
    assert names == {"features": NAMES, "classes": tree.classes_.tolist()}


def test_text_that_is_no_unicode_is_refused():
    X = np.array([["a"], ["\ud800"]] * 20, dtype=object)
    with pytest.raises(ValueError, match=r"category of feature 'x0' '.*' is not valid Unicode"):
        export_onnx(
            make_tree(ShapeTreeClassifier, **PLAIN, categorical_features=[0]).fit(X, [0, 1] * 20)
        )


# --- files and bad input ---


@pytest.fixture
def tree():
    rng = np.random.default_rng(0)
    return ShapeTreeClassifier(max_depth=3).fit(*noisy_classes(rng))


def test_files_hold_the_model(tree, tmp_path):
    model = export_onnx(tree, tmp_path / "tree.onnx")
    assert onnx.load(tmp_path / "tree.onnx") == model
    with pytest.raises(FileNotFoundError, match="cannot write the model"):
        export_onnx(tree, tmp_path / "absent" / "tree.onnx")


def test_bad_input_is_refused(tree):
    with pytest.raises(NotFittedError):
        export_onnx(ShapeTreeClassifier())
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32', got 'float16'"):
        export_onnx(tree, dtype="float16")


def test_without_onnx_one_learns_what_to_install(tree, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install shapetree\[onnx\]"):
        export_onnx(tree)


def test_trees_with_too_many_nodes_are_refused(tree, monkeypatch):
    monkeypatch.setattr(module, "MAX_NODES", 2)
    with pytest.raises(ValueError, match=r"the tree has \d+ nodes"):
        export_onnx(tree)
