"""Names for whatever shows a tree: of features, classes and targets, their units, and scores."""

import gc
import json
import os
import re
import subprocess
import sys
import weakref
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from numpy.testing import assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_dot,
    export_html,
    export_js,
    export_json,
    export_onnx,
    export_python,
    export_sql,
    export_text,
    from_json,
    plot_node,
    plot_tree,
    refine_tree,
)
from shapetree.tree._fitted import fitted_tree
from shapetree.tree._scores import score_words
from shapetree.tree._view import view_of

WINE = load_wine()
FEATURES = list(WINE.feature_names)
CLASSES = ["Barolo", "Grignolino", "Barbera"]
NAMES = {
    "feature_names": FEATURES,
    "class_names": CLASSES,
    "target_name": "cultivar",
    "units": {"proline": "mg/l"},
}


@pytest.fixture(scope="module")
def tree():
    return ShapeTreeClassifier(max_depth=2, n_threads=1).fit(WINE.data, WINE.target)


def texts_of(picture):
    return " ".join(str(text) for text in picture.texts)


SHOWN = {
    "text": lambda tree, **names: export_text(tree, **names),
    "dot": lambda tree, **names: export_dot(tree, **names),
    "page": lambda tree, **names: export_html(tree, **names),
    "rules": lambda tree, **names: str(tree.rules(**names)),
    "table": lambda tree, **names: str(tree.shape_table(**names).to_dict()),
    "explanation": lambda tree, **names: str(tree.explain(WINE.data[:60], **names)),
    "tree": lambda tree, **names: texts_of(plot_tree(tree, **names)),
    "node": lambda tree, **names: texts_of(plot_node(tree, **names)),
    "python": lambda tree, **names: export_python(tree, **names),
    "sql": lambda tree, **names: export_sql(tree, **names),
    "js": lambda tree, **names: export_js(tree, **names),
    "onnx": lambda tree, **names: str(export_onnx(tree, **names)),
    "json": lambda tree, **names: export_json(tree, **names),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_everything_takes_names(tree, kind):
    if kind == "onnx":
        pytest.importorskip("onnx")
    plain, named = SHOWN[kind](tree), SHOWN[kind](tree, **NAMES)
    first = FEATURES[tree.tree_.feature[0]]
    assert first in named
    assert first not in plain
    if kind != "table":
        assert any(name in named for name in CLASSES)
    assert not re.search(rf"\bx{tree.tree_.feature[0]}\b", named) or kind == "json"


def test_units_stand_beside_names(tree):
    names = {**NAMES, "units": {FEATURES[tree.tree_.feature[0]]: "10,000 $", "cultivar": "kind"}}
    shown = f"{FEATURES[tree.tree_.feature[0]]} (10,000 $)"
    for kind in ("text", "page", "rules", "tree", "explanation"):
        assert shown in SHOWN[kind](tree, **names), kind
    for kind in ("python", "sql", "js"):
        program = SHOWN[kind](tree, **names)
        assert (
            f"predicts cultivar (kind); {FEATURES[tree.tree_.feature[0]]} is in 10,000 $" in program
        )
        assert shown not in program


def test_programs_with_names_predict_the_same(tree):
    module = {}
    exec(export_python(tree, **NAMES), module)
    rows = [dict(zip(FEATURES, row, strict=True)) for row in WINE.data.tolist()]
    said = [module["predict"](row) for row in rows]
    assert said == np.array(CLASSES)[tree.predict(WINE.data)].tolist()


def test_remarks_cannot_end_a_comment(tree):
    nasty = "a */ b /* c\n#d\u2028e"
    names = {**NAMES, "target_name": nasty}
    module = {}
    exec(export_python(tree, **names), module)
    text = export_sql(tree, **names)
    assert text.count("/*") == text.count("*/") == 1
    assert "\n#d" not in export_python(tree, **names)
    assert "\u2028" not in export_js(tree, **names).split("// src")[0]


def test_class_names_may_be_a_mapping(tree):
    text = export_text(tree, class_names={1: "one"})
    assert "one (" in text
    assert "2 (" in text


def test_names_are_kept_in_the_model_file(tree):
    text = export_json(tree, **NAMES)
    schema = json.loads((files("shapetree") / "model.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator(schema).validate(json.loads(text))
    read = from_json(text)
    assert export_text(read) == export_text(tree, **NAMES)
    assert_array_equal(read.predict(WINE.data), tree.predict(WINE.data))
    assert read.to_json() == text


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        ({"feature_names": ["a"]}, ValueError, "feature_names has 1 names, but .* 13 features"),
        ({"feature_names": ["a"] * 13}, ValueError, "'a' appears more than once"),
        ({"feature_names": "abc"}, TypeError, "feature_names must be a list"),
        ({"class_names": ["a", "b"]}, ValueError, "class_names has 2 names, .* 3 classes"),
        ({"class_names": {7: "a"}}, ValueError, r"class_names names 7, but the classes are \[0, 1"),
        ({"class_names": ["a", "a", "b"]}, ValueError, "class_names must be distinct"),
        ({"target_name": ["a", "b"]}, ValueError, "target_name must be a name"),
        ({"units": {"nothing": "m"}}, ValueError, "units names 'nothing'"),
        ({"units": ["m"]}, TypeError, "units must map names"),
        ({"units": {"x0": 3}}, TypeError, "the unit of 'x0' must be a str"),
    ],
)
def test_names_are_checked(tree, names, error, words):
    with pytest.raises(error, match=words):
        export_text(tree, **names)


def test_numbers_have_no_class_names():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="class_names was given, but this tree predicts numbers"):
        export_text(ShapeTreeRegressor(max_depth=1).fit(X, y), class_names=["a"])


def test_other_rows_are_read_under_the_names_of_training(tree):
    picture = plot_tree(tree, WINE.data[:50], WINE.target[:50], row=WINE.data[0], **NAMES)
    assert "Barolo" in texts_of(picture)
    row = dict(zip(FEATURES, WINE.data[0], strict=True))
    assert plot_tree(tree, row=row, **NAMES).nodes.keys() == picture.nodes.keys()


# The target's name


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_the_name_of_y_is_shown(kind):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    y = y.rename("progression")
    if kind == "polars":
        polars = pytest.importorskip("polars")
        y = polars.Series("progression", y.to_numpy())
    model = ShapeTreeRegressor(max_depth=2).fit(X, y)
    assert view_of(fitted_tree(model)).target_name == "progression"
    assert export_text(model).startswith("Predicts progression\n")
    assert str(model.explain(X[:1])[0]).startswith("Predicted progression: ")
    assert '"target":"progression"' in export_html(model)
    assert export_text(from_json(model.to_json())) == export_text(model)


def test_several_targets_have_names():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    both = pd.DataFrame({"one": y, "two": -y})
    model = ShapeTreeRegressor(max_depth=1).fit(X, both)
    assert export_text(model).startswith("Predicts one and two\n")
    assert view_of(fitted_tree(model)).target_name is None


# Pipelines


def test_a_pipeline_names_the_features_of_its_tree():
    frame = pd.DataFrame(WINE.data, columns=FEATURES)
    pipeline = make_pipeline(StandardScaler(), ShapeTreeClassifier(max_depth=2))
    pipeline.fit(frame, WINE.target)
    text = export_text(pipeline)
    assert FEATURES[pipeline[-1].tree_.feature[0]] in text
    assert text == export_text(pipeline[-1], feature_names=FEATURES)
    # Rows are given as the pipeline takes them.
    root = plot_tree(pipeline, frame[:40], WINE.target[:40], row=frame[:1])
    assert "no rows" in texts_of(root)  # all 40 are of one class
    assert export_html(pipeline, X=frame, y=WINE.target)
    assert from_json(export_json(pipeline)).get_depth() == pipeline[-1].get_depth()


def test_a_pipeline_of_several_transformers():
    frame = pd.DataFrame(WINE.data, columns=FEATURES).assign(kind=WINE.target % 2)
    prepare = make_column_transformer(
        (OneHotEncoder(), ["kind"]), remainder="passthrough", verbose_feature_names_out=False
    )
    pipeline = make_pipeline(prepare, ShapeTreeClassifier(max_depth=2)).fit(frame, WINE.target)
    assert "kind_" in export_text(pipeline)


def test_a_pipeline_without_names_says_what_to_pass():
    pipeline = make_pipeline(FunctionTransformer(np.log1p), ShapeTreeClassifier(max_depth=1))
    pipeline.fit(WINE.data, WINE.target)
    with pytest.raises(ValueError, match="pass feature_names with 13 names"):
        export_text(pipeline)
    assert FEATURES[pipeline[-1].tree_.feature[0]] in export_text(pipeline, feature_names=FEATURES)


# Scores on rows that were not fitted on


def halves():
    frame = pd.DataFrame(WINE.data, columns=FEATURES)
    return frame[::2], WINE.target[::2], frame[1::2], WINE.target[1::2]


def test_scores_on_unseen_rows_are_remembered_and_shown():
    X, y, X_new, y_new = halves()
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    assert view_of(fitted_tree(model)).scores_in_words() == ["training accuracy 98.9 %"]
    weights = np.arange(1.0, len(y_new) + 1)
    weighted = model.evaluate(X_new, y_new, sample_weight=weights)
    assert weighted["accuracy"] == pytest.approx(model.score(X_new, y_new, sample_weight=weights))
    scores = model.evaluate(X_new, y_new)
    predicted = model.predict(X_new)
    assert scores == {
        "accuracy": accuracy_score(y_new, predicted),
        "balanced_accuracy": balanced_accuracy_score(y_new, predicted),
    }
    said = f"accuracy {100 * scores['accuracy']:.1f} % on 89 unseen rows"
    for read in (model, from_json(model.to_json())):
        assert view_of(fitted_tree(read)).scores_in_words() == [said, "training accuracy 98.9 %"]
        assert said in export_html(read)
        assert export_text(read).startswith(said.capitalize())
    content = json.loads(model.to_json())
    told = content["held_out"].pop("leaves")
    assert sum(leaf["rows"] for leaf in told) == 89
    assert content["held_out"] == {"rows": 89, "scores": scores}
    for changed in (model.prune([0]), model.simplify(), refine_tree(model, X, y), model.fit(X, y)):
        assert fitted_tree(changed).held_out is None


def test_scores_of_numbers_and_of_several_targets():
    X, y = load_diabetes(return_X_y=True)
    model = ShapeTreeRegressor(max_depth=2).fit(X[:300], y[:300])
    scores = model.evaluate(X[300:], y[300:])
    assert scores["r2"] == pytest.approx(model.score(X[300:], y[300:]))
    error = mean_absolute_error(y[300:], model.predict(X[300:]))
    assert scores["mean_absolute_error"] == pytest.approx(error)
    both = np.stack([y > 150, y > 100], axis=1)
    many = ShapeTreeClassifier(max_depth=2).fit(X[:300], both[:300])
    right = (many.predict(X[300:]) == both[300:]).mean()
    assert many.evaluate(X[300:], both[300:])["accuracy"] == pytest.approx(right)


def test_evaluate_refuses_what_does_not_fit(tree):
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        tree.evaluate(WINE.data, WINE.target[:5])


def test_perfect_is_said_only_of_perfect_scores():
    assert score_words(True, 1.0) == "accuracy 100 %"
    assert score_words(True, 0.9999999) == "accuracy 99.99999 %"
    assert score_words(False, 0.99996) == "R² 0.99996"


# What is remembered of trees


def test_views_and_explanations_go_with_their_tree():
    model = ShapeTreeClassifier(max_depth=2).fit(WINE.data, WINE.target)
    view = view_of(fitted_tree(model))
    assert view_of(fitted_tree(model)) is view
    named = fitted_tree(model, **NAMES)
    assert fitted_tree(model, **NAMES) is named
    model.explain(WINE.data[:2], **NAMES)
    gone = [weakref.ref(fitted_tree(model)), weakref.ref(named), weakref.ref(view)]
    del model, named, view
    gc.collect()
    assert [each() for each in gone] == [None] * 3


# After a fork


POOL = """
import multiprocessing as mp
import numpy as np
from shapetree import ShapeTreeClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(200_000, 5))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = ShapeTreeClassifier(max_depth=3).fit(X, y)  # has started threads
before = model.predict(X).sum()

def work(seed):
    again = ShapeTreeClassifier(max_depth=3).fit(X, y)
    why = again.explain(X[:1])[0]
    return int(again.predict(X).sum()), int(model.predict(X).sum()), str(why)

if __name__ == "__main__":
    with mp.get_context("fork").Pool(2) as pool:
        answers = pool.map_async(work, range(2)).get(timeout=300)
    assert {answer[:2] for answer in answers} == {(before, before)}, answers
    print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_pool_works_after_a_fit_with_threads(tmp_path):
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=500,
        env={**os.environ, "OMP_NUM_THREADS": "2"},
    )
    assert done.stdout == "done\n", done.stderr
