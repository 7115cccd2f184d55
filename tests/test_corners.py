"""Data and names at the edges of what numbers, weights and texts can be."""

import enum
import html
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from data import make_tree
from numpy.testing import assert_allclose, assert_array_equal

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_text,
    refine_tree,
)
from shapetree.export import export_python

CRITERIA = ["squared_error", "absolute_error"]


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).uniform(0, 200, 400)


def regressor(criterion, **params):
    return make_tree(ShapeTreeRegressor, criterion=criterion, n_threads=1, shrinkage=0, **params)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


# Targets


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("low", [1e-9, 1e-201, 5e-324])
@pytest.mark.parametrize("high", [1e8, 1e150, 1.5e-323])
def test_two_levels_of_any_size_are_predicted_as_they_are(x, criterion, low, high):
    y = np.where(x < 100, low, high)
    model = regressor(criterion).fit(x[:, None], y)
    assert_array_equal(model.predict(x[:, None]), y)
    if criterion == "squared_error" or high > 1e-300:
        assert_array_equal(model.feature_importances_, [1.0])
    assert_array_equal(ShapeTreeRegressor.from_json(model.to_json()).predict(x[:, None]), y)


def test_the_mean_of_small_targets_beside_great_ones_is_theirs(x):
    spread = 1 + np.random.default_rng(1).random(400)
    y = np.where(x < 100, 1e-9 * spread, 1e8 * spread)
    model = regressor("squared_error", max_depth=1, max_branches=2, refine=None)
    model.fit(x[:, None], y)
    leaves = model.apply(x[:, None])
    for leaf in np.unique(leaves):
        assert_allclose(model.tree_.value[leaf, 0, 0], y[leaves == leaf].mean(), rtol=1e-6)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("scale", [1e-310, 1e-298, 1e-201, 1e-150, 1.0, 1e120, 1e151])
def test_trees_and_histories_do_not_depend_on_the_unit_of_targets(x, criterion, scale):
    rng = np.random.default_rng(2)
    y = np.where(np.sin(x / 20) > 0, -1.0, 1.0) + 0.3 * rng.normal(size=400)
    model = regressor(criterion).fit(x[:, None], y * scale)
    assert (np.diff(model.refinement_history_) <= 0).all()
    assert model.score(x[:, None], y * scale) > 0.5 or not 1e-150 <= scale <= 1e150
    assert_allclose(model.feature_importances_, [1.0])
    factor = 2.0 ** np.rint(np.log2(scale))
    if scale > 1e-300:
        same = regressor(criterion).fit(x[:, None], y * factor)
        plain = regressor(criterion).fit(x[:, None], y)
        assert_array_equal(same.predict(x[:, None]), plain.predict(x[:, None]) * factor)


@pytest.mark.parametrize(
    ("criterion", "far"), [("squared_error", 1e153), ("absolute_error", 1e301)]
)
def test_targets_too_far_apart_are_refused(x, criterion, far):
    y = np.where(x < 100, -far, far)
    with pytest.raises(ValueError, match="divide y by a large number"):
        regressor(criterion).fit(x[:, None], y)
    model = regressor(criterion).fit(x[:, None], y / far)
    with pytest.raises(ValueError, match="divide y by a large number"):
        refine_tree(model, x[:, None], y)
    constant = regressor(criterion).fit(x[:, None], np.full(400, far))
    assert_array_equal(constant.predict(x[:2, None]), far)


# Weights


@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-308, 1e-12, 0.1, 1 / 3, 1e12, 1e300])
@pytest.mark.parametrize("criterion", [*CRITERIA, "gini"])
def test_equal_weights_of_any_size_change_nothing_but_the_weights(x, criterion, size):
    rng = np.random.default_rng(3)
    y = np.sin(x / 20) + 0.3 * rng.normal(size=400)
    if criterion == "gini":
        model, y = ShapeTreeClassifier(n_threads=1), (y > 0) * 1
    else:
        model = regressor(criterion)
    plain = model.fit(x[:, None], y)
    expected, nodes = plain.predict(x[:, None]), plain.tree_.weighted_n_node_samples
    weighted = model.fit(x[:, None], y, np.full(400, size))
    assert_array_equal(weighted.predict(x[:, None]), expected)
    assert_allclose(weighted.tree_.weighted_n_node_samples, nodes * size)
    assert_allclose(weighted.feature_importances_, [1.0])


def test_weights_that_cannot_be_added_up_are_refused(x):
    y = x > 100
    with pytest.raises(ValueError, match="sample_weight adds up"):
        ShapeTreeClassifier().fit(x[:, None], y, np.full(400, 1e307))
    with pytest.raises(ValueError, match="class_weight gives"):
        ShapeTreeClassifier(class_weight={False: 1, True: 1e308}).fit(x[:, None], y)


@pytest.mark.parametrize("size", [1, 0.1, 1 / 3, 1e-320])
def test_weighted_medians_do_not_depend_on_the_unit_of_weights(size):
    rng = np.random.default_rng(4)
    for n in (2, 3, 4, 5, 6, 7, 8):
        y, weights = rng.normal(size=n).round(2), rng.integers(1, 4, n)
        model = regressor("absolute_error", max_depth=1)
        x = np.zeros((n, 1))
        assert model.fit(x, y, weights * size).predict(x[:1]) == model.fit(
            np.zeros((weights.sum(), 1)), np.repeat(y, weights)
        ).predict(x[:1])


# Names


class Colour(str, enum.Enum):  # noqa: UP042, which is another kind of text
    RED = "red"
    BLUE = "blue"


def source_of(model):
    module = {}
    exec(export_python(model), module)
    return module["predict"]


@pytest.mark.parametrize(
    "labels", [[np.str_("a"), np.str_("b")], list(Colour), ["a", "b"]], ids=str
)
def test_source_code_names_labels_and_categories_of_any_kind_of_text(labels):
    place = np.arange(60) % 20 // 10
    names = np.empty(60, dtype=object)
    names[:] = [labels[i] for i in place]
    predict = source_of(ShapeTreeClassifier(n_threads=1).fit(place[:, None], names))
    assert [predict({"x0": 0}), predict({"x0": 1})] == [*labels]
    by_name = ShapeTreeClassifier(n_threads=1).fit(pd.DataFrame({"name": names}), place)
    assert [source_of(by_name)({"name": label}) for label in labels] == [0, 1]


@pytest.mark.skipif(np.longdouble is np.float64, reason="there is no longer type of floats here")
def test_source_code_knows_categories_in_extended_precision():
    levels = np.array(["0.1", "0.3", "7"], dtype=np.longdouble)
    X, y = np.resize(levels, 90)[:, None], np.arange(90) % 3
    model = ShapeTreeClassifier(n_threads=1, categorical_features=[0]).fit(X, y)
    predict = source_of(model)
    assert (
        [predict({"x0": level}) for level in levels] == model.predict(X[:3]).tolist() == [0, 1, 2]
    )


def test_rules_in_a_notebook_hold_no_html():
    X = pd.DataFrame({"<img src=x onerror=alert(1)>": np.arange(60.0)})
    rules = ShapeTreeClassifier(n_threads=1).fit(X, np.arange(60) % 20 < 10).rules()
    for shown in (rules.to_markdown(), rules._repr_markdown_()):
        assert "<" not in shown
        assert "&lt;img" in shown
        assert "|" in shown


@pytest.mark.parametrize(
    "name",
    ["[a](http://b.c)", "http://b.c", "www.b.c", "me@b.c", "`x`", "![a](//b)", "<b>", "&lt;b>"],
)
def test_names_make_neither_links_nor_html_in_markdown(name):
    X = pd.DataFrame({name: np.arange(60.0) / 7})
    markdown = ShapeTreeClassifier(n_threads=1).fit(X, np.arange(60) > 20).rules().to_markdown()
    assert not re.search(r"(?<!\\)[\[\]`]|<|://|www\.|@|&lt;b&gt;", markdown, re.IGNORECASE)
    # Who reads it as Markdown sees the name itself.
    shown = html.unescape(re.sub(r"\\([\\|`\[\]])", r"\1", markdown))
    assert f"| {name} ≤ " in shown


@pytest.mark.parametrize("sign", ["\x1b", "\u2028", "\u2029", "\x9b", "\n", "\r", "\u202e"])
def test_text_and_rules_hold_no_signs_that_change_a_terminal_or_end_a_line(sign):
    place = np.random.default_rng(0).permutation(60)
    X = pd.DataFrame({f"na{sign}me": place / 7, "c": [f"k{sign}l", "m"] * 30})
    y = np.where(X["c"] == "m", f"yes{sign}", np.where(place > 20, "no", "perhaps"))
    tree = ShapeTreeClassifier(n_threads=1).fit(X, pd.Series(y, name=f"tar{sign}get"))
    text, rules = export_text(tree), tree.rules()
    assert len(tree.tree_.used_features) == 2
    assert len(text.splitlines()) == tree.tree_.node_count + 1
    assert len(str(rules).splitlines()) == len(rules)
    assert len(rules.to_markdown().splitlines()) == len(rules) + 2
    for written in (text, str(rules), rules.to_markdown(), repr(rules)):
        assert sign not in written.replace("\n", "") or sign == "\n"


@pytest.mark.parametrize("name", ["max_depth", "max_leaf_nodes", "lookahead", "refine_iter"])
def test_limits_may_be_beyond_all_that_is_there(x, name):
    model = make_tree(ShapeTreeClassifier, n_threads=1, **{name: 10**21}).fit(x[:, None], x > 100)
    assert model.score(x[:, None], x > 100) == 1


def test_looking_ahead_takes_a_bounded_time():
    """Beyond ten features, more of them change nothing."""
    X = np.random.default_rng(0).normal(size=(200, 30))
    y = X[:, 0] * X[:, 1] > 0
    one, other = (
        ShapeTreeClassifier(strength=0, max_depth=3, search=SearchOptions(lookahead=lookahead)).fit(
            X, y
        )
        for lookahead in (10, 100)
    )
    assert other.set_params(search__lookahead=10).to_json() == one.to_json()
