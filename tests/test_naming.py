"""Names for whatever shows a tree: of features, classes and targets, their units, and scores."""

import copy
import gc
import json
import os
import pickle
import re
import subprocess
import sys
import weakref

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from shapetree import (
    ShapeForestClassifier,
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
    model_schema,
    plot_node,
    plot_tree,
    refine_tree,
)
from shapetree.tree._evaluation import score_words
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._naming import Names
from shapetree.tree._view import view_of

WINE = load_wine()
FEATURES = list(WINE.feature_names)
CLASSES = ["Barolo", "Grignolino", "Barbera"]
NAMES = {
    "features": FEATURES,
    "classes": CLASSES,
    "target": "cultivar",
    "units": {"proline": "mg/l"},
}


@pytest.fixture(scope="module")
def tree():
    return ShapeTreeClassifier(max_depth=2, n_threads=1).fit(WINE.data, WINE.target)


def texts_of(picture):
    return " ".join(str(text) for text in picture.texts)


SHOWN = {
    "text": lambda tree: export_text(tree),
    "dot": lambda tree: export_dot(tree),
    "page": lambda tree: export_html(tree),
    "rules": lambda tree: str(tree.rules()),
    "table": lambda tree: str(tree.shape_table().to_dict()),
    "explanation": lambda tree: str(tree.explain(WINE.data[:60])),
    "tree": lambda tree: texts_of(plot_tree(tree)),
    "node": lambda tree: texts_of(plot_node(tree)),
    "python": lambda tree: export_python(tree),
    "sql": lambda tree: export_sql(tree),
    "js": lambda tree: export_js(tree),
    "onnx": lambda tree: str(export_onnx(tree)),
    "json": lambda tree: export_json(tree),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_everything_shows_the_names(tree, kind):
    if kind == "onnx":
        pytest.importorskip("onnx")
    plain, named = SHOWN[kind](tree), SHOWN[kind](tree.with_names(**NAMES))
    first = FEATURES[tree.tree_.feature[0]]
    assert first in named
    assert first not in plain
    if kind != "table":
        assert any(name in named for name in CLASSES)
    assert not re.search(rf"\bx{tree.tree_.feature[0]}\b", named) or kind == "json"


def test_units_stand_beside_names(tree):
    units = {FEATURES[tree.tree_.feature[0]]: "10,000 $", "cultivar": "kind"}
    named = tree.with_names(**{**NAMES, "units": units})
    shown = f"{FEATURES[tree.tree_.feature[0]]} (10,000 $)"
    for kind in ("text", "page", "rules", "tree", "explanation"):
        assert shown in SHOWN[kind](named), kind
    for kind in ("python", "sql", "js"):
        program = SHOWN[kind](named)
        assert (
            f"predicts cultivar (kind); {FEATURES[tree.tree_.feature[0]]} is in 10,000 $" in program
        )
        assert shown not in program


def test_programs_with_names_predict_the_same(tree):
    named, module = tree.with_names(**NAMES), {}
    exec(export_python(named), module)
    rows = [dict(zip(FEATURES, row, strict=True)) for row in WINE.data.tolist()]
    said = [module["predict"](row) for row in rows]
    assert said == np.array(CLASSES)[tree.predict(WINE.data)].tolist()


def test_remarks_cannot_end_a_comment(tree):
    nasty = "a */ b /* c\n#d\u2028e"
    named, module = tree.with_names(**{**NAMES, "target": nasty}), {}
    exec(export_python(named), module)
    text = export_sql(named)
    assert text.count("/*") == text.count("*/") == 1
    assert "\n#d" not in export_python(named)
    assert "\u2028" not in export_js(named).split("// src")[0]


def test_a_mapping_names_some_of_many(tree):
    first = f"x{tree.tree_.feature[0]}"
    named = tree.with_names(classes={1: "one"}, features={first: "first"})
    text = export_text(named)
    assert "one (" in text
    assert "2 (" in text
    assert text.split()[0] == "first"
    again = named.with_names(classes={2: "two"}, features={"x12": "last"})
    assert again._fitted.names.classes == (("0", "one", "two"),)
    features = {f"x{j}": f"x{j}" for j in range(13)} | {first: "first", "x12": "last"}
    assert again._fitted.names.features == tuple(features.values())


def test_units_follow_features_and_targets_to_their_new_names(tree):
    named = tree.with_names(**NAMES).with_names(units={"cultivar": "kind", FEATURES[0]: "%"})
    swapped = [FEATURES[1], FEATURES[0], *FEATURES[2:-1], "Proline"]
    again = named.with_names(features=swapped, target="grape")
    assert again._fitted.names.units == {"grape": "kind", FEATURES[1]: "%", "Proline": "mg/l"}


def test_names_are_of_the_copy_alone(tree):
    before = export_text(tree)
    named = tree.with_names(**NAMES)
    assert export_text(tree) == before
    assert type(named) is type(tree)
    assert export_text(named.with_names()) == export_text(named)
    assert export_text(named.with_names(features=[f"x{j}" for j in range(13)])) != before
    with pytest.raises(NotFittedError):
        ShapeTreeClassifier().with_names(target="y")


def test_names_are_kept_by_what_copies_or_changes_the_tree(tree):
    named = tree.with_names(**NAMES)
    (pruned, simple) = named.prune([1]), named.simplify()
    refined = refine_tree(named, WINE.data, WINE.target)
    for changed in (
        pickle.loads(pickle.dumps(named)),
        copy.deepcopy(named),
        pruned,
        simple,
        refined,
    ):
        assert changed._fitted.names == named._fitted.names
    assert clone(named).fit(WINE.data, WINE.target)._fitted.names == Names()
    evaluated = tree.with_names(**NAMES)
    evaluated.evaluate(WINE.data[:90], WINE.target[:90])
    assert evaluated._fitted.names == named._fitted.names
    assert tree._fitted.held_out is None


def test_names_do_not_change_how_rows_are_read():
    frame = pd.DataFrame(WINE.data, columns=FEATURES)
    tree = ShapeTreeClassifier(max_depth=2, n_threads=1).fit(frame, np.array(CLASSES)[WINE.target])
    other = [*FEATURES[1:], FEATURES[0]]  # the same names, of other columns
    named = tree.with_names(features=other, classes=["a", "b", "c"])
    assert_array_equal(named.predict(frame), tree.predict(frame))
    assert_array_equal(named.predict(frame[FEATURES[::-1]]), tree.predict(frame))
    assert_array_equal(named.predict_proba(frame), tree.predict_proba(frame))
    assert_array_equal(named.apply(frame), tree.apply(frame))
    assert_array_equal(named.feature_names_in_, FEATURES)
    assert_array_equal(named.classes_, tree.classes_)
    labels = np.array(CLASSES)[WINE.target]
    assert named.score(frame, labels) == tree.score(frame, labels)
    assert named.evaluate(frame[::2], labels[::2]) == tree.evaluate(frame[::2], labels[::2])
    branches = [step.branch for step in named.explain(frame[:20])[13].path]
    assert branches == [step.branch for step in tree.explain(frame[:20])[13].path]
    row = frame.iloc[13]
    for given in (row, dict(row), frame.iloc[[13]]):
        picture, own = plot_tree(named, row=given), plot_tree(tree, row=row)
        assert picture.nodes.keys() == own.nodes.keys()
    renamed = tree.with_names(features=[name.upper() for name in FEATURES])
    with pytest.raises(ValueError, match=FEATURES[tree.tree_.feature[0]]):
        renamed.predict(frame.rename(columns=str.upper))
    for given in (row.rename(str.upper)[::-1], frame.iloc[[13]].rename(columns=str.upper)):
        path = plot_tree(renamed, row=given, max_depth=0)
        assert path.nodes.keys() == {0}


def test_several_targets_have_classes_of_their_own():
    y = np.stack([WINE.target, WINE.target > 0], axis=1)
    tree = ShapeTreeClassifier(max_depth=1).fit(WINE.data, y)
    named = tree.with_names(classes=[CLASSES, {1: "red"}], target=["cultivar", "colour"])
    assert named._fitted.names.classes == (tuple(CLASSES), ("0", "red"))
    assert export_text(named).startswith("Predicts cultivar and colour\n")
    with pytest.raises(ValueError, match="classes must be a list of names for each of 2 targets"):
        tree.with_names(classes=CLASSES)
    with pytest.raises(ValueError, match="target must be a list of 2 names"):
        tree.with_names(target="cultivar")
    with pytest.raises(ValueError, match="target must be distinct"):
        tree.with_names(target=["a", "a"])


def test_forests_have_names():
    forest = ShapeForestClassifier(n_estimators=3, max_depth=2, random_state=0)
    named = forest.fit(WINE.data, WINE.target).with_names(**NAMES)
    assert_array_equal(named.predict(WINE.data), forest.predict(WINE.data))
    assert "Barolo" in export_python(named)
    assert "Barolo" not in export_python(forest)
    assert export_python(from_json(named.to_json())) == export_python(named)
    assert "cultivar" in export_text(named.estimators_[0])
    with pytest.raises(ValueError, match="features has 1 names, but the forest was fitted on 13"):
        forest.with_names(features=["a"])


def test_names_are_kept_in_the_model_file(tree):
    named = tree.with_names(**NAMES)
    text = export_json(named)
    assert text == named.to_json()
    Draft202012Validator(model_schema()).validate(json.loads(text))
    read = from_json(text)
    assert export_text(read) == export_text(named)
    assert_array_equal(read.predict(WINE.data), tree.predict(WINE.data))
    assert read.to_json() == text


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        ({"features": ["a"]}, ValueError, "features has 1 names, but the tree .* 13 features"),
        ({"features": ["a"] * 13}, ValueError, "features must be distinct, but 'a'"),
        ({"features": "abc"}, TypeError, "features must be a list"),
        ({"features": range(13)}, TypeError, "features must be strings, but one is 0"),
        ({"features": {"age": "a"}}, ValueError, "features names 'age', .* one of 'x0', .*…"),
        ({"features": {"x0": 4}}, TypeError, "features must be strings, but one is 4"),
        ({"features": {"x0": "x1"}}, ValueError, "features must be distinct, but 'x1'"),
        ({"classes": ["a", "b"]}, ValueError, "classes has 2 names, .* 3 classes"),
        ({"classes": {7: "a"}}, ValueError, "classes names 7, which is not one of 0, 1, 2"),
        ({"classes": ["a", "a", "b"]}, ValueError, "classes must be distinct"),
        ({"classes": [1, 2, 3]}, TypeError, "classes must be strings, but one is 1"),
        ({"classes": 3}, TypeError, "classes must be a list"),
        ({"target": ["a", "b"]}, ValueError, "target must be a name"),
        ({"target": [4]}, TypeError, "target must be strings, but one is 4"),
        ({"target": 4}, TypeError, "target must be a list of names, got 4"),
        ({"units": {"nothing": "m"}}, ValueError, "units names 'nothing'"),
        ({"units": ["m"]}, TypeError, "units must map names"),
        ({"units": {"x0": 3}}, TypeError, "units must be strings, but that of 'x0' is 3"),
    ],
)
def test_names_are_checked(tree, names, error, words):
    with pytest.raises(error, match=words):
        tree.with_names(**names)


def test_numbers_have_no_class_names():
    X, y = load_diabetes(return_X_y=True)
    tree = ShapeTreeRegressor(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="classes was given, but the tree predicts numbers"):
        tree.with_names(classes=["a"])


def test_other_rows_are_read_under_the_names_of_training(tree):
    named = tree.with_names(**NAMES)
    picture = plot_tree(named, WINE.data[:50], WINE.target[:50], row=WINE.data[0])
    assert "Barolo" in texts_of(picture)
    row = dict(zip(FEATURES, WINE.data[0], strict=True))
    assert plot_tree(named, row=row).nodes.keys() == picture.nodes.keys()


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
    assert text == export_text(pipeline[-1].with_names(features=FEATURES))
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
    with pytest.raises(
        ValueError, match=r"pipeline\[-1\].with_names\(features=...\) with 13 names"
    ):
        export_text(pipeline)
    before = pipeline.predict(WINE.data)
    pipeline.set_params(shapetreeclassifier=pipeline[-1].with_names(features=FEATURES))
    assert FEATURES[pipeline[-1].tree_.feature[0]] in export_text(pipeline)
    assert_array_equal(pipeline.predict(WINE.data), before)


def test_a_named_tree_keeps_its_names_in_a_pipeline():
    frame = pd.DataFrame(WINE.data, columns=FEATURES)
    pipeline = make_pipeline(StandardScaler(), ShapeTreeClassifier(max_depth=2))
    pipeline.fit(frame, WINE.target)
    pipeline.set_params(shapetreeclassifier=pipeline[-1].with_names(classes=CLASSES))
    text = export_text(pipeline)
    assert FEATURES[pipeline[-1].tree_.feature[0]] in text
    assert "Barolo" in text
    upper = [name.upper() for name in FEATURES]
    pipeline.set_params(shapetreeclassifier=pipeline[-1].with_names(features=upper))
    assert upper[pipeline[-1].tree_.feature[0]] in export_text(pipeline)
    assert plot_tree(pipeline, frame, WINE.target, row=frame[:1])


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
    named = model.with_names(**NAMES)
    named.explain(WINE.data[:2])
    gone = [weakref.ref(each) for each in (fitted_tree(model), fitted_tree(named), view)]
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
