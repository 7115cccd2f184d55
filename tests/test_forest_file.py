"""Model files of forests: what is written is read again, whole, and nothing else is."""

import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
from models_to_write import FORESTS
from test_model_file import VALIDATOR, assert_same, leaf_by_the_book, sentence_of
from test_model_limits import BASE, MOST, memory_of

from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    export_json,
    from_json,
)

every_forest = pytest.mark.parametrize("name", FORESTS)


@cache
def made(name):
    return FORESTS[name]()


@cache
def written(name):
    return made(name)[0].to_json()


def copy_of(name):
    return json.loads(written(name))


@every_forest
def test_a_forest_comes_back_to_the_last_bit(name):
    forest, X, _ = made(name)
    again = from_json(written(name))
    assert type(again) is type(forest)
    assert_same(again._fitted, forest._fitted)
    assert again.to_json() == written(name)
    assert_same(again.predict(X), forest.predict(X))
    assert_same(again.apply(X), forest.apply(X))
    assert_same(again.feature_importances_, forest.feature_importances_)
    if isinstance(forest, ShapeForestClassifier):
        assert_same(again.predict_proba(X), forest.predict_proba(X))
        assert_same(again.classes_, forest.classes_)
    assert {k: np.asarray(v).tolist() for k, v in again.get_params().items()} == {
        k: np.asarray(v).tolist() for k, v in forest.get_params().items()
    }
    VALIDATOR.validate(json.loads(written(name)))


@pytest.mark.parametrize("name", [name for name in FORESTS if name != "dates"])
def test_a_reader_that_knows_only_the_schema_predicts_the_same(name):
    forest, X, _ = made(name)
    content = copy_of(name)
    rows = X.to_numpy(dtype=object)[:20]
    total = 0.0
    for number, nodes in enumerate(content["trees"]):
        leaves = [leaf_by_the_book(content | {"nodes": nodes}, row.tolist()) for row in rows]
        np.testing.assert_array_equal(leaves, forest.apply(X)[:20, number])
        total = total + np.array([nodes[leaf]["value"] for leaf in leaves])
    mean = total / len(content["trees"])
    if isinstance(forest, ShapeForestRegressor):
        np.testing.assert_array_equal(mean[:, :, 0].squeeze(1) if mean.shape[1] == 1 else
                                      mean[:, :, 0], forest.predict(X)[:20])  # fmt: skip
        return
    shares = forest.predict_proba(X)
    for output, its in enumerate(shares if isinstance(shares, list) else [shares]):
        np.testing.assert_array_equal(mean[:, output, : its.shape[1]], its[:20])


def test_scores_are_kept_but_not_what_rows_were_told():
    forest, X, y = made("scores")
    again = from_json(written("scores"))
    assert again.oob_score_ == forest.oob_score_
    with pytest.raises(AttributeError, match="model files hold no out-of-bag predictions"):
        again.oob_prediction_  # noqa: B018
    assert_same(
        again.oob_permutation_importances(X, y, n_repeats=1).importances,
        forest.oob_permutation_importances(X, y, n_repeats=1).importances,
    )


def test_trees_can_be_added_to_a_forest_that_was_read():
    forest, X, y = FORESTS["classes"](n_estimators=8)
    again = from_json(FORESTS["classes"](n_estimators=5)[0].to_json())
    again.set_params(n_estimators=8, warm_start=True).fit(X, y)
    assert_same(again._fitted.trees, forest._fitted.trees)


def test_a_score_of_ones_own_is_written_as_asked_for():
    forest, *_ = FORESTS["numbers"](oob_score=lambda y, said: 7.0, n_estimators=20)
    assert from_json(forest.to_json()).get_params()["oob_score"] is True
    assert from_json(forest.to_json()).oob_score_ == 7.0


def test_names_and_files(tmp_path):
    forest, X, _ = made("classes")
    path = tmp_path / "forest.json"
    named = forest.with_names(features=["a", "b", "c", "d", "e"], classes=["p", "q", "r"])
    export_json(named, path)
    again = ShapeForestClassifier.from_json(path)
    assert again._fitted.names.features == ("a", "b", "c", "d", "e")
    np.testing.assert_array_equal(again.predict(X), forest.predict(X))
    with pytest.raises(ValueError, match="is a ShapeForestClassifier; use ShapeForestClassifier"):
        ShapeForestRegressor.from_json(path)
    with pytest.raises(ValueError, match="is a ShapeForestClassifier; use ShapeForestClassifier"):
        ShapeTreeClassifier.from_json(path)


WRONG = [
    (("kind",), "tree", "estimator must be"),
    (("kind",), "wood", 'kind must be "tree" or "forest"'),
    (("estimator",), "ShapeTreeClassifier", "estimator must be"),
    (("estimator",), "ShapeForestRegressor", "target is not of the kind"),
    (("criterion",), "squared_error", "criterion must be"),
    (("trees",), [], "trees must have at least one item"),
    (("trees",), {}, "trees must be a list"),
    (("trees", 0), [], "trees\\[0\\] must have at least one item"),
    (("trees", 1, 0, "value"), [[1, 1, 1]], "trees\\[1\\]\\[0\\].value\\[0\\] must be shares"),
    (("trees", 1, 0, "sketch"), {}, "has the member"),
    (("trees", 1, 0, "split", "features"), [9], "must be a whole number between 0 and 4"),
    (("seed",), -1, "seed must be a whole number"),
    (("seed",), None, "seed must be a whole number"),
    (("contents",), 2**64, "contents must be a whole number"),
    (("oob_score",), "much", "oob_score must be a number"),
    (("nodes",), [], "has the member"),
    (("taught",), 0.5, "has the member"),
    (("parameters", "teacher"), None, "has no parameter"),
    (("parameters", "n_estimators"), 0, "n_estimators"),
]


@pytest.mark.parametrize(("path", "value", "words"), WRONG)
def test_what_does_not_fit_is_refused_in_a_sentence_that_says_where(path, value, words):
    content = copy_of("classes")
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    assert pd.Series([sentence_of(content)]).str.contains(words).all()
    # Which numbers fit others is beyond a schema, and so are the estimator's parameters.
    if path[0] not in ("parameters",) and path[:2] not in (("trees", 1),):
        assert not VALIDATOR.is_valid(content)


@pytest.mark.parametrize("member", ["trees", "seed", "contents", "target", "features", "kind"])
def test_nothing_that_is_required_may_be_left_out(member):
    content = copy_of("classes")
    del content[member]
    assert sentence_of(content)
    assert not VALIDATOR.is_valid(content)


def test_many_single_leaves_take_little_memory():
    content = copy_of("single leaves")
    leaf = content["trees"][0][:1]
    leaf[0].pop("split", None)
    content["trees"] = [leaf] * 20_000
    text = json.dumps(content, separators=(",", ":"))
    assert "must have between 1 and" in sentence_of(content)
    assert memory_of(text) <= MOST * len(text) + BASE
    content["trees"] = [leaf] * 1_000
    text = json.dumps(content, separators=(",", ":"))
    assert len(from_json(text).estimators_) == 1_000
    assert memory_of(text) <= MOST * len(text) + 2 * BASE


def test_memory_is_a_small_multiple_of_the_file():
    forest, *_ = FORESTS["classes"](n_rows=400, n_estimators=40)
    text = forest.to_json()
    assert memory_of(text) <= MOST * len(text) + BASE


def test_more_single_leaves_than_are_read_again_are_not_written():
    X, y = np.zeros((20, 1)), np.arange(20) % 2
    forest = ShapeForestClassifier(n_estimators=3_000, n_threads=1).fit(X, y)
    with pytest.raises(ValueError, match="nearly all of them are single leaves"):
        forest.to_json()
