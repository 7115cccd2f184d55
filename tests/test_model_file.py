"""The model file: what is written is read again, whole, and nothing else is."""

import json
import pickle
import random
import re
import subprocess
import sys
from copy import deepcopy
from dataclasses import fields, is_dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from data import PLAIN, assert_same_tree, flat_params, make_tree, noisy_classes
from jsonschema import Draft202012Validator
from model_mutants import paths_of, spoil
from models_to_write import EAGER, MAKERS, of_classes
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from shapetree import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_json,
    export_text,
    from_json,
    model_schema,
    refine_tree,
)
from shapetree.data._table import FeatureInfo
from shapetree.model_file import NotAModel
from shapetree.tree._packed_trees import PackedTrees
from shapetree.tree._sketch import TreeSketches

SCHEMA = model_schema()
VALIDATOR = Draft202012Validator(SCHEMA)

pytestmark = pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
every_model = pytest.mark.parametrize("name", MAKERS)


@cache
def made(name):
    return MAKERS[name]()


@cache
def written(name):
    return made(name)[0].to_json()


def copy_of(name):
    """The JSON of a model, to be changed."""
    return json.loads(written(name))


def assert_same(one, other):
    """Two values are the same to the last bit and type."""
    one, other = (
        tuple(it) if isinstance(it, TreeSketches | PackedTrees) else it for it in (one, other)
    )
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other, strict=True)
    elif isinstance(one, tuple | list):
        assert len(one) == len(other)
        for own, its in zip(one, other, strict=True):
            assert_same(own, its)
    elif is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other or (one != one and other != other)


# What is written is read again


@every_model
def test_a_tree_comes_back_to_the_last_bit(name):
    tree, *_ = made(name)
    again = from_json(written(name))
    assert type(again) is type(tree)
    assert_same(again.tree_, tree.tree_)
    assert_same(again._fitted.features, tree._fitted.features)
    assert_same(again._fitted.summary, tree._fitted.summary)
    assert again.to_json() == written(name)


@every_model
def test_it_predicts_the_same(name):
    tree, X, _ = made(name)
    again = from_json(written(name))
    assert_same(again.predict(X), tree.predict(X))
    assert_same(again.apply(X), tree.apply(X))
    if isinstance(tree, ShapeTreeClassifier):
        assert_same(again.predict_proba(X), tree.predict_proba(X))
        assert_same(again.classes_, tree.classes_)
        assert again.n_classes_ == tree.n_classes_


@every_model
def test_it_says_the_same(name):
    tree, X, _ = made(name)
    again = from_json(written(name))
    some = X[:9]
    assert [str(why) for why in again.explain(some)] == [str(why) for why in tree.explain(some)]
    assert str(again.rules()) == str(tree.rules())
    assert export_text(again) == export_text(tree)
    if tree.n_outputs_ == 1:
        assert export_html(again) == export_html(tree)


@every_model
def test_it_has_the_same_attributes(name):
    tree, *_ = made(name)
    again = from_json(written(name))
    public = [name for name in dir(tree) if name.endswith("_") and name[0] != "_"]
    # How a strength was chosen is not written.
    public = [name for name in public if hasattr(tree, name) and name != "cv_results_"]
    assert public == [name for name in dir(again) if name in public and hasattr(again, name)]
    for name in set(public) - {"tree_", "shrinkage_"}:
        assert_same(getattr(again, name), getattr(tree, name))
    assert again.shrinkage_ == tree.shrinkage_


@pytest.mark.parametrize("name", sorted(MAKERS.keys() - {"an object for randomness"}))
def test_it_has_the_same_parameters(name):
    before, after = flat_params(made(name)[0]), flat_params(from_json(written(name)))
    assert {key: np.asarray(value).tolist() for key, value in after.items()} == {
        key: np.asarray(value).tolist() for key, value in before.items()
    }


def test_parameters_that_json_does_not_know_come_back_where_they_can():
    tree, *_ = of_classes()
    given = {
        "class_weight": [{0: 1.0, "1": np.float32(2), np.int8(2): True, np.inf: None}],
        "pairs": ((0, 1), [1, 2]),
        "categorical_features": pd.Index([0, 2]),
        "max_depth": np.int16(3),
        "min_samples_leaf": np.float64(0.25),
        "random_state": np.random.RandomState(0),
    }
    tree.set_params(**given)
    read = from_json(tree.to_json()).get_params()
    assert read["class_weight"] == [{0: 1.0, "1": 2.0, 2: True, np.inf: None}]
    assert read["pairs"] == ((0, 1), [1, 2])
    assert read["categorical_features"] == [0, 2]
    assert (read["max_depth"], read["min_samples_leaf"]) == (3, 0.25)
    assert read["random_state"] is None


def test_parameters_that_no_fit_would_take_are_not_written():
    tree, *_ = of_classes()
    with pytest.raises(ValueError, match="'max_depth' parameter"):
        tree.set_params(max_depth=-1).to_json()


def test_parameters_that_a_file_does_not_name_have_their_defaults():
    content = copy_of("greedy")
    del content["parameters"]["max_depth"]
    assert from_json(json.dumps(content)).max_depth == ShapeTreeClassifier().max_depth


@every_model
def test_every_file_follows_the_schema(name):
    VALIDATOR.validate(json.loads(written(name)))


def test_the_schema_is_one():
    Draft202012Validator.check_schema(SCHEMA)


def test_a_subclass_writes_what_its_parent_reads():
    class Tree(ShapeTreeClassifier):
        pass

    X, y = noisy_classes(np.random.default_rng(0))
    tree = make_tree(Tree, **EAGER).fit(X, y)
    assert type(Tree.from_json(tree.to_json())) is Tree
    assert type(from_json(tree.to_json())) is ShapeTreeClassifier


def test_names_that_are_no_characters_are_written_too(tmp_path):
    tree, *_ = of_classes()
    features = tuple(FeatureInfo(f"\ud800{number}") for number in range(tree.n_features_in_))
    tree._fitted = replace(tree._fitted, features=features)
    tree.to_json(tmp_path / "tree.json")
    assert from_json(tmp_path / "tree.json")._fitted.features == tree._fitted.features


def test_columns_that_only_look_the_same_are_kept_apart():
    tree, X, _ = of_classes()
    features = tree._fitted.features
    tree._fitted = replace(tree._fitted, features=(*features[:3], features[2]))
    assert_array_equal(from_json(tree.to_json()).predict(X), tree.predict(X))


# By the book: what the schema says of prediction, and nothing else


def leaf_by_the_book(content, row):
    """The leaf that a row, a value for each feature, ends in."""
    nodes, at = content["nodes"], 0
    while "split" in nodes[at]:
        split = nodes[at]["split"]
        piece = piece_by_the_book(content["features"], split, row)
        branch = split["missing_branch"] if piece is None else split["branch_of_piece"][piece]
        before = [node["split"]["branches"] for node in nodes[:at] if "split" in node]
        at = 1 + sum(before) + branch
    return at


def piece_by_the_book(features, split, row):
    codes = [code_by_the_book(features[i], row[i]) for i in split["features"]]
    if None in codes:
        return None
    if "cuts" not in split:
        if "thresholds" not in split:
            return codes[0]
        return sum(threshold < codes[0] for threshold in split["thresholds"])
    point = []
    for code, positions in zip(codes, split["positions"], strict=True):
        place = positions[code] if positions else code
        if place == "NaN":
            return None
        point.append(min(max(float(place), -sys.float_info.max), sys.float_info.max))
    target = 0
    while target >= 0:
        cut = split["cuts"][target]
        side = cut["a"] * point[0] + cut["b"] * point[1]
        target = cut["high"] if side > cut["threshold"] else cut["low"]
    return -1 - target


def code_by_the_book(feature, value):
    """A number, or the index of a category; None if it is missing or unknown."""
    if value is None or value != value:
        return None
    if feature["kind"] != "category":
        return value
    levels = [x if not isinstance(x, dict) else float(x["number"]) for x in feature["categories"]]
    return levels.index(value) if value in levels else None


@every_model
def test_a_reader_that_knows_only_the_schema_finds_the_same_leaves(name):
    tree, X, _ = made(name)
    content = json.loads(written(name))
    rows = X.to_numpy(dtype=object) if isinstance(X, pd.DataFrame) else X
    found = [leaf_by_the_book(content, row.tolist()) for row in rows[:60]]
    assert_array_equal(found, tree.apply(X)[:60])


@every_model
def test_it_predicts_what_the_leaf_says(name):
    tree, X, _ = made(name)
    content = json.loads(written(name))
    values = [content["nodes"][leaf]["value"] for leaf in tree.apply(X)]
    predicted = np.asarray(tree.predict(X), dtype=object).reshape(len(X), -1).tolist()
    if content["target"]["kind"] == "numbers":
        assert [[shares[0] for shares in value] for value in values] == predicted
        return
    labels = [output["labels"] for output in content["target"]["outputs"]]
    assert predicted == [
        [its[shares.index(max(shares))] for its, shares in zip(labels, value, strict=True)]
        for value in values
    ]


# The estimator goes on


@pytest.mark.parametrize("name", ["pairs of classes", "pairs of numbers", "several texts"])
def test_an_estimator_that_was_read_goes_on_like_the_one_that_was_written(name):
    tree, X, y = made(name)
    again = from_json(written(name))
    check_is_fitted(again)
    assert_same_tree(refine_tree(again, X, y), refine_tree(tree, X, y))
    assert_same_tree(again.prune([1]), tree.prune([1]))
    assert_same_tree(again.simplify(), tree.simplify())
    assert_same_tree(pickle.loads(pickle.dumps(again)), tree)
    assert_same_tree(clone(again).fit(X, y), clone(tree).fit(X, y))
    assert again.simplify().to_json() == tree.simplify().to_json()
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(again))


def test_other_columns_are_refused_as_before():
    tree, X, _ = made("whole labels")
    again = from_json(written("whole labels"))
    for wrong in (X.rename(columns={"level": "other"}), X.iloc[:, :-1]):
        messages = []
        for estimator in (tree, again):
            with pytest.raises(ValueError, match="feature") as refusal:
                estimator.predict(wrong)
            messages.append(str(refusal.value))
        assert messages[0] == messages[1]


def test_a_tree_without_names_takes_tables_without_names():
    tree, X, _ = made("greedy")
    again = from_json(written("greedy"))
    assert not hasattr(again, "feature_names_in_")
    assert_array_equal(again.predict(X.tolist()), tree.predict(X))


def test_categories_beyond_all_doubles_are_neither_written_nor_read():
    X = pd.DataFrame({"id": pd.Series([10**400, 1] * 20, dtype=object)})
    tree = make_tree(ShapeTreeClassifier, **PLAIN, categorical_features=["id"]).fit(
        X, np.arange(40) % 2
    )
    with pytest.raises(ValueError, match="a category or label is too large"):
        tree.to_json()
    content = changed("whole labels", ("features", 1, "categories", 0), 10**400)
    assert "categories[0] must be a number that is not so large" in sentence_of(content)


def test_unfitted_estimators_are_not_written():
    with pytest.raises(NotFittedError):
        ShapeTreeClassifier().to_json()


@pytest.mark.parametrize("labels", ["datetime64[D]", "longdouble"])
def test_labels_that_json_does_not_know_are_not_written(labels):
    tree, *_ = of_classes()
    tree._fitted = replace(tree._fitted, classes=(tree.classes_.astype(labels),))
    if labels == "longdouble" and np.dtype(labels) == np.float64:
        pytest.skip("long doubles are doubles here")
    with pytest.raises(ValueError, match="cannot write class labels of type"):
        tree.to_json()


# Where a model is read from


def test_text_and_paths_are_read(tmp_path):
    tree, X, _ = made("texts")
    path = tmp_path / "tree.json"
    assert export_json(tree, path) == written("texts")
    assert path.read_text(encoding="utf-8") == written("texts")
    for source in (path, str(path), written("texts"), "\n  " + written("texts")):
        assert_array_equal(from_json(source).predict(X), tree.predict(X))
        assert_array_equal(ShapeTreeClassifier.from_json(source).predict(X), tree.predict(X))


def test_a_byte_order_mark_is_skipped(tmp_path):
    path = tmp_path / "tree.json"
    path.write_text(written("texts"), encoding="utf-8-sig")
    assert from_json(path).to_json() == written("texts")


def test_the_other_class_says_which_to_use():
    with pytest.raises(ValueError, match=r"is a ShapeTreeClassifier; use ShapeTreeClassifier"):
        ShapeTreeRegressor.from_json(written("texts"))
    with pytest.raises(ValueError, match=r"is a ShapeTreeRegressor; use ShapeTreeRegressor"):
        ShapeTreeClassifier.from_json(written("means"))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"  \n", "it is empty"),
        (b"\x80\x81PNG\x00", "not UTF-8 text"),
        (b"hello", "it is no JSON"),
        (b"[1, 2]", "must be an object, got a list"),
        (b"3", "must be an object, got 3"),
        (b'{"type": "FeatureCollection"}', "lacks the member 'format'"),
    ],
)
def test_files_of_something_else_are_refused(tmp_path, content, words):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=words):
        from_json(path)


def test_paths_that_are_no_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot read a model from"):
        from_json(tmp_path / "nothing.json")
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        from_json(tmp_path)
    with pytest.raises(OSError, match="cannot read a model from xxx"):
        from_json("x" * 10_000)
    with pytest.raises(ValueError, match="neither JSON nor a path"):
        from_json("a\0b")
    with pytest.raises(ValueError, match="it is empty"):
        from_json("")


@pytest.mark.parametrize("source", [None, 3, b"{}", ["{}"]])
def test_what_is_neither_text_nor_path_is_refused(source):
    with pytest.raises(TypeError, match="expected JSON or the path of a file"):
        from_json(source)


# What is refused, and in which words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "it is no JSON"),
        ('{"a": NaN}', "NaN is no number of JSON"),
        ('{"a": [-Infinity]}', "-Infinity is no number of JSON"),
        ('{"a": 1, "b": 2, "a": 1}', 'the member "a" more than once'),
        ('{"a": ' + "[" * 10**5 + "]" * 10**5 + "}", "more lists and objects than"),
        ('{"a": ' * 10**5 + "0" + "}" * 10**5, "more lists and objects than"),
        ('{"a": ' + "[0,0," * 10**5 + "0" + "]" * 10**5 + "}", "nested too deeply"),
        ('{"a long name": ' * 10**5 + "0" + "}" * 10**5, "nested too deeply"),
        ('{"a": ' + "9" * 10**5 + "}", "too many digits"),
        ('{"format": "something", "version": 1}', 'format must be "shapetree-model"'),
        ('{"format": "shapetree-model"}', "lacks the member 'version'"),
        ('{"format": "shapetree-model", "version": "1"}', "version must be a whole number"),
        ('{"format": "shapetree-model", "version": 1e999}', "version must be a whole number"),
        ('{"format": "shapetree-model", "version": 2, "new": 0}', "install a newer shapetree"),
        ('{"format": "shapetree-model", "version": 1}', "lacks the member 'kind'"),
        ('{"format": "shapetree-model", "version": 1, "kind": "hedge"}', 'kind must be "tree"'),
    ],
)
def test_text_that_is_no_model_is_refused(text, words):
    with pytest.raises(NotAModel, match=words):
        from_json(text)


def at(content, path):
    for key in path[:-1]:
        content = content[key]
    return content


def changed(name, path, value):
    """The JSON of a model with another value at some path."""
    content = copy_of(name)
    at(content, path)[path[-1]] = value
    return content


def inner_node(name, *, has_cuts=False, is_ordered=True):
    """Number of a node that splits in some way."""
    for number, node in enumerate(copy_of(name)["nodes"]):
        split = node.get("split")
        if (
            split
            and ("cuts" in split) == has_cuts
            and (has_cuts or ("thresholds" in split) == is_ordered)
        ):
            return number
    raise LookupError(name)


PAIR = ("nodes", inner_node("pairs of classes", has_cuts=True))
LINE = ("nodes", inner_node("whole labels"))
LIST = ("nodes", inner_node("whole labels", is_ordered=False))
END = ("nodes", -1)

# What the schema refuses as well: a model, a path in it, a value, and words of the refusal.
STRUCTURE = [
    ("whole labels", ("estimator",), "Pipeline", 'estimator must be "ShapeTreeClassifier" or'),
    ("whole labels", ("estimator",), "ShapeTreeRegressor", "target is not of the kind"),
    ("whole labels", ("library_version",), 1, "library_version must be a text"),
    ("whole labels", ("criterion",), "squared_error", 'criterion must be "gini" or "entropy"'),
    ("means", ("criterion",), "gini", "criterion must be"),
    ("whole labels", ("shrinkage",), -1, "shrinkage must be a number from 0 on"),
    ("whole labels", ("shrinkage",), "NaN", "shrinkage must be a number from 0 on"),
    ("whole labels", ("has_names",), 1, "has_names must be true or false, got 1"),
    ("whole labels", ("parameters",), [], "parameters must be an object, got a list"),
    ("whole labels", ("parameters", "pairs"), {"set": []}, "parameters.pairs lacks"),
    ("whole labels", ("parameters", "pairs"), {"tuple": [], "number": 1}, "must have one member"),
    ("whole labels", ("history",), [None], r"history\[0\] must be a number"),
    ("whole labels", ("comment",), "", 'the file has the member "comment"'),
    ("whole labels", ("features",), [], "features must have at least one item"),
    ("whole labels", ("features",), {}, "features must be a list"),
    ("whole labels", ("features", 0, "kind"), "text", r"features\[0\].kind must be"),
    ("whole labels", ("features", 0, "name"), None, r"features\[0\].name must be a text, got null"),
    ("whole labels", ("features", 0, "scale"), 0, r"features\[0\].scale must be positive"),
    ("whole labels", ("features", 0, "unit"), "m", r'features\[0\] has the member "unit"'),
    ("whole labels", ("features", 1, "scale"), 1, r'features\[1\] has the member "scale"'),
    ("whole labels", ("features", 1, "categories"), [None], r"categories\[0\] must be a text"),
    ("whole labels", ("features", 1, "categories"), [{"number": "NaN"}], "number must be"),
    ("whole labels", ("target", "kind"), "ranks", "target.kind must be"),
    ("whole labels", ("target", "outputs"), [], "target.outputs must have at least one item"),
    ("whole labels", ("target", "outputs", 0, "labels"), [], "labels must have at least one item"),
    ("whole labels", ("target", "outputs", 0, "type"), "<U0", "NumPy's name of a type"),
    ("whole labels", ("target", "outputs", 0, "type"), "<M8[D]", "NumPy's name of a type"),
    ("whole labels", ("target", "outputs", 0, "type"), "|V9", "NumPy's name of a type"),
    ("means", ("target", "n_outputs"), 0, "n_outputs must be a whole number between 1"),
    ("means", ("target", "edges"), [0], "edges must have at least two items"),
    ("means", ("target", "edges"), None, "edges must be a list"),
    ("several means", ("target", "edges"), [0, 1], "edges only if there is one output"),
    ("several means", (*END, "sketch"), {"counts": [1]}, 'has the member "sketch"'),
    ("whole labels", ("nodes",), [], "nodes must have at least one item"),
    ("whole labels", (*END, "rows"), 1.5, "rows must be a whole number"),
    ("whole labels", (*END, "rows"), -1, "rows must be a whole number"),
    ("whole labels", (*END, "rows"), 2**31 - 1, "rows must be a whole number"),
    ("whole labels", (*END, "weight"), -0.5, "weight must be a number from 0 on"),
    ("whole labels", (*END, "impurity"), "NaN", "impurity must be a number from 0 on"),
    ("whole labels", (*END, "value"), [], "value must have 1 item, got 0"),
    ("whole labels", (*END, "value"), [["Infinity", 0, 0]], r"value\[0\]\[0\] must be a number"),
    ("whole labels", (*END, "split"), None, "must be an object, got null"),
    ("whole labels", (*END, "sketch", "mean"), 0, 'has the member "mean"'),
    ("whole labels", (*END, "sketch", "density"), {}, 'has the member "density"'),
    ("whole labels", (*LINE, "split", "branches"), 1, "whole number between 2 and 254"),
    ("whole labels", (*LINE, "split", "branches"), 10**9, "whole number between 2 and 254"),
    ("whole labels", (*LINE, "split", "features"), [], "one feature, or two in ascending order"),
    ("whole labels", (*LINE, "split", "saw_missing"), 0, "must be true or false"),
    ("whole labels", (*LINE, "split", "missing_branch"), -1, "missing_branch must be a whole"),
    ("whole labels", (*LINE, "split", "thresholds"), ["Infinity"], "must have|must be a number"),
    ("whole labels", (*LINE, "split", "branch_of_piece"), [], "must have at least one item"),
    ("whole labels", (*LINE, "sketch", "counts"), [1, 2, 3], 'has the member "counts"'),
    ("whole labels", (*LINE, "sketch", "scatter"), {}, 'has the member "scatter"'),
    ("whole labels", (*LINE, "sketch", "density", "edges"), [0], "must have at least two items"),
    ("whole labels", (*LINE, "sketch", "density", "totals"), [0], 'has the member "totals"'),
    ("whole labels", (*LINE, "sketch", "density", "ends"), [1], "ends must have 2 items"),
    ("whole labels", ("parameters", "pairs"), {"number": 1}, "number must be a text"),
    ("pairs of classes", (*PAIR, "split", "cuts"), [], "cuts must have"),
    ("pairs of classes", (*PAIR, "split", "cuts", 0, "a"), 2, r"cuts\[0\].a must be a whole"),
    ("pairs of classes", (*PAIR, "split", "cuts", 0, "b"), "NaN", r"cuts\[0\].b must be a number"),
    ("pairs of classes", (*PAIR, "split", "cuts", 0, "low"), 0.5, r"cuts\[0\].low must be"),
    ("pairs of classes", (*PAIR, "split", "positions"), [[]], "positions must have 2 items"),
    ("pairs of classes", (*PAIR, "sketch", "scatter", "low"), [0], "low must have 2 items"),
]

# What the schema cannot say.
MEANING = [
    ("whole labels", ("features", 1, "name"), '"quoted" \\ name', "must have distinct names"),
    ("whole labels", ("features", 1, "categories"), [1, True], "categories must be distinct"),
    ("whole labels", ("parameters", "max_dept"), 3, 'has no parameter "max_dept"'),
    ("whole labels", ("parameters", "max_depth"), "deep", "'max_depth' parameter"),
    ("whole labels", ("parameters", "max_depth"), [3], "'max_depth' parameter"),
    ("whole labels", ("parameters", "n_threads"), 0, "'n_threads' parameter"),
    ("whole labels", ("parameters", "pairs"), {"pairs": [[[], 1]]}, "must be a text, a number"),
    ("whole labels", ("target", "outputs", 0, "labels"), [0, 0, 1], "labels must ascend"),
    ("whole labels", ("target", "outputs", 0, "labels"), [3, 2, 1], "labels must ascend"),
    ("whole labels", ("target", "outputs", 0, "labels"), [1, 2, "3"], "either texts or numbers"),
    ("whole labels", ("target", "outputs", 0, "labels"), ["a", "b", "c"], "of the type <i8"),
    ("whole labels", ("target", "outputs", 0, "labels"), [0, 1, 2**80], "of the type <i8"),
    ("whole labels", ("target", "outputs", 0, "labels"), [0, 0.5, 1], "of the type <i8"),
    ("texts", ("target", "outputs", 0, "type"), "<U1", "of the type <U1"),
    ("texts", ("target", "outputs", 0, "type"), "<U9999999", "too much memory"),
    ("means", ("target", "n_outputs"), 10**9, "must have edges only if there is one output"),
    ("several means", ("target", "n_outputs"), 10**9, "value must have 1000000000 items"),
    ("means", ("target", "edges"), [1, 0], "edges must ascend"),
    ("means", ("target", "edges"), [0, 1], "counts must have 1 item"),
    ("whole labels", ("nodes", 0, "rows"), 7, "rows must be those of its children"),
    ("whole labels", (*END, "rows"), 7000, "must add up to the node's rows|must be those of its"),
    ("whole labels", (*END, "value"), [[0.5, 0.1, 0.1]], "must be shares of classes"),
    ("whole labels", (*END, "value"), [[2, -1, 0]], "must be shares of classes"),
    ("whole labels", (*END, "value"), [[1e308, 1e308, 0]], "must be shares of classes"),
    ("whole labels", (*END, "value"), [[1, 0]], "must have 3 items"),
    ("several texts", (*END, "value"), [[0, 0, 1, 0], [0, 0, 0, 1]], "must be 0 beyond the 2"),
    ("whole labels", (*END, "sketch", "counts"), [9, 9, 9], "counts"),
    ("whole labels", (*LINE, "split", "features"), [5], "whole number between 0 and 4"),
    ("whole labels", (*LINE, "split", "features"), [1], "has the member"),
    ("whole labels", (*LINE, "split", "features"), [2, 0], "two in ascending order"),
    ("whole labels", (*LINE, "split", "missing_branch"), 9, "whole number between 0 and"),
    ("whole labels", (*LINE, "split", "branches"), 4, "must be one more than their branches|level"),
    ("whole labels", (*LINE, "split", "thresholds", 0), 10**400, "not so large"),
    ("whole labels", (*LIST, "split", "branch_of_piece"), [0], "branch_of_piece must have"),
    ("whole labels", (*LINE, "sketch", "density", "edges"), [0, 1], "must have"),
    ("whole labels", (*LINE, "sketch", "density", "counts", 0, 0), 10**6, "must be a whole number"),
    ("whole labels", (*LINE, "sketch", "density", "missing"), [1, 1, 1], "must add up"),
    ("whole labels", (*LINE, "sketch", "density", "edges", 0), 1e9, "edges must ascend"),
    ("whole labels", (*LINE, "sketch", "density", "ends", 0), 1e9, "ends must ascend"),
    ("pairs of classes", (*PAIR, "split", "cuts", 0, "low"), 0, "must be a later cut, or a piece"),
    ("pairs of classes", (*PAIR, "split", "cuts", 0, "low"), -99, "must be a whole number between"),
    ("pairs of classes", (*PAIR, "split", "positions"), [[], [9] * 99], "must have"),
    ("pairs of classes", (*PAIR, "sketch", "scatter", "low"), [9e9, 9e9], "must be below high"),
    ("pairs of classes", (*PAIR, "sketch", "scatter", "missing"), 240, "must have at most"),
    ("pairs of classes", (*PAIR, "sketch", "scatter", "targets", 0), 3, "between 0 and 2"),
    ("pairs of classes", (*PAIR, "sketch", "scatter", "first"), [0], "must have 1 item"),
]


def sentence_of(content):
    """The sentence that content is refused in."""
    with pytest.raises(NotAModel) as refusal:
        from_json(json.dumps(content))
    sentence = str(refusal.value)
    assert "\n" not in sentence
    assert len(sentence) < 500
    return sentence


@pytest.mark.parametrize(("name", "path", "value", "words"), STRUCTURE + MEANING)
def test_what_does_not_fit_is_refused_in_a_sentence_that_says_where(name, path, value, words):
    assert re.search(words, sentence_of(changed(name, path, value)))


@pytest.mark.parametrize(("name", "path", "value", "words"), STRUCTURE)
def test_the_schema_refuses_what_it_can_know(name, path, value, words):
    assert not VALIDATOR.is_valid(changed(name, path, value))


@pytest.mark.parametrize("name", ["pairs of classes", "whole labels", "means", "several texts"])
def test_whatever_the_schema_refuses_the_reader_refuses(name):
    rng, text = random.Random(0), written(name)
    kinds, n_refused = paths_of(json.loads(text)), 0
    for _ in range(100):
        content = json.loads(text)
        spoil(content, kinds, rng)
        if not VALIDATOR.is_valid(content):
            n_refused += 1
            assert sentence_of(content)
    assert n_refused > 20


@pytest.mark.parametrize("name", ["pairs of classes", "means", "several texts"])
def test_nothing_that_is_required_may_be_left_out(name):
    content = copy_of(name)
    optional = {"history", "weight", "missing", "missing_total", "range", "ends", "skewness"}
    optional |= {"held_text"}

    def members(part, path):
        items = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in items:
            if isinstance(part, dict) and path[:1] != ("parameters",):
                yield (*path, key)
            if isinstance(value, dict | list):
                yield from members(value, (*path, key))

    seen = set()
    for path in members(content, ()):
        kinds = tuple("#" if isinstance(key, int) else key for key in path)
        if kinds in seen or path[-1] in optional or path[-1] == "number":
            continue
        seen.add(kinds)
        without = deepcopy(content)
        del at(without, path)[path[-1]]
        assert sentence_of(without)
        if path[-1] not in ("split", "thresholds"):  # leaves and categorical splits have none
            assert not VALIDATOR.is_valid(without), path
    assert len(seen) > 20


def test_whole_numbers_may_be_written_with_a_point():
    content = changed("whole labels", (*LINE, "split", "branches"), 3.0)
    content["version"] = 1.0
    VALIDATOR.validate(content)
    from_json(json.dumps(content))


def test_a_cut_along_the_second_feature_has_the_weights_0_and_1():
    content = copy_of("pairs of classes")
    at(content, (*PAIR, "split", "cuts"))["cuts"][0] |= {"a": 0, "b": 2}
    assert "b must be 1 where a is 0" in sentence_of(content)


def test_categories_are_not_added_up():
    content = copy_of("pairs of categories")
    number = inner_node("pairs of categories", has_cuts=True)
    content["nodes"][number]["split"]["cuts"][0] |= {"a": 1, "b": 2}
    assert "must be 0 where a is 1 and a feature has categories" in sentence_of(content)
    positions = changed(
        "pairs of categories", ("nodes", number, "split", "positions", 0), ["NaN"] * 6
    )
    assert "must have a number for some category" in sentence_of(positions)


def test_cuts_lead_to_each_piece_once():
    content = copy_of("pairs of classes")
    cut = at(content, (*PAIR, "split", "cuts"))["cuts"][-1]
    cut["low"] = cut["high"]
    assert "must lead to every later cut and to every piece once" in sentence_of(content)


def test_nodes_come_level_by_level():
    content = copy_of("whole labels")
    nodes = content["nodes"]
    nodes[0], nodes[-1] = nodes[-1], nodes[0]
    assert "level by level" in sentence_of(content)


def test_a_model_of_no_rows_is_refused():
    content = copy_of("one leaf of classes")
    content["nodes"][0] |= {"rows": 0, "sketch": {"counts": [0]}}
    assert "rows must be at least 1" in sentence_of(content)


def test_parameters_are_not_nested_deeply():
    value = []
    for _ in range(300):
        value = [value]
    assert "nested too deeply" in sentence_of(
        changed("whole labels", ("parameters", "pairs"), value)
    )


CLAIMS = """
import json, resource, sys, time
from shapetree import from_json
files = json.load(sys.stdin)
for text in files:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    try:
        from_json(text)
    except ValueError:
        pass
    else:
        print("read", text[:200])
    seconds = time.process_time() - start
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    if seconds > 1 or grown > 50_000:
        print(seconds, "seconds", grown, "kB", text[:200])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in other units or not at all")
def test_files_that_claim_to_be_huge_are_refused_at_once():
    huge = [
        changed("several means", ("target", "n_outputs"), 2**31 - 1),
        changed("whole labels", (*LINE, "split", "branches"), 254),
        changed("texts", ("target", "outputs", 0, "type"), "<U9999999"),
        changed("whole labels", ("nodes",), [copy_of("whole labels")["nodes"][-1]] * 2_000),
    ]
    many = copy_of("texts")
    many["target"]["outputs"][0] = {"type": "<U9999", "labels": [f"{i:06}" for i in range(50_000)]}
    texts = [json.dumps(content) for content in [*huge, many]]
    done = subprocess.run(
        [sys.executable, "-c", CLAIMS],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == ""
