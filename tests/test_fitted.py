"""The fitted tree that an estimator holds, and who may ask for it."""

import pickle
import warnings
from copy import copy
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pandas as pd
import pytest
from data import make_tree, noisy_classes, noisy_numbers
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_json,
    export_text,
    from_json,
    plot_tree,
    refine_tree,
)
from shapetree.data._names import check_columns
from shapetree.tree._fitted import FittedTree
from shapetree.tree._from_estimator import fitted_tree

FOUND = ["tree_", "criterion_", "shrinkage_", "n_outputs_", "n_features_in_"]
FOUND += ["feature_importances_", "classes_", "n_classes_"]

X, Y = noisy_classes(np.random.default_rng(0))


def fitted(**parameters):
    return make_tree(ShapeTreeClassifier, **{"max_depth": 2, "n_threads": 1} | parameters).fit(X, Y)


def test_an_estimator_holds_its_parameters_and_one_fitted_tree():
    model = fitted()
    assert vars(model).keys() - model.get_params().keys() == {"_fitted"}
    assert isinstance(model._fitted, FittedTree)
    assert fitted_tree(model) is model._fitted
    with pytest.raises(FrozenInstanceError):
        model._fitted.shrinkage = 1.0


def test_attributes_are_there_once_it_is_fitted():
    model = ShapeTreeClassifier(max_depth=2)
    assert not any(hasattr(model, name) for name in [*FOUND, "refinement_history_"])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    model.fit(X, Y)
    assert all(hasattr(model, name) for name in [*FOUND, "refinement_history_"])
    check_is_fitted(model)
    check_is_fitted(model, "classes_")
    assert not any(hasattr(clone(model), name) for name in FOUND)


def test_some_attributes_depend_on_the_fit():
    pd = pytest.importorskip("pandas")
    model = fitted(refine=None)
    assert not hasattr(model, "refinement_history_")
    assert not hasattr(model, "feature_names_in_")
    model.set_params(refine="tao").fit(pd.DataFrame(X, columns=list("abcd")), Y)
    assert hasattr(model, "refinement_history_")
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.feature_names_in_.dtype == object
    model.set_params(refine=None).fit(X, Y)
    assert not hasattr(model, "refinement_history_")
    assert not hasattr(model, "feature_names_in_")
    assert hasattr(refine_tree(model, X, Y), "refinement_history_")
    assert not hasattr(model, "refinement_history_")


def test_numbers_have_no_classes():
    model = ShapeTreeRegressor(max_depth=1).fit(*noisy_numbers(np.random.default_rng(0)))
    assert not hasattr(model, "classes_")
    assert model._fitted.classes is None
    assert model._fitted.n_classes is None


def test_what_a_fit_has_found_cannot_be_set():
    model = fitted()
    with pytest.raises(AttributeError):
        model.tree_ = model.tree_
    with pytest.raises(AttributeError):
        model.classes_ = [0, 1]


def test_copies_share_the_tree_and_pickles_have_their_own():
    model = fitted()
    twin, again = copy(model), pickle.loads(pickle.dumps(model))
    assert twin._fitted is model._fitted
    kept = {"used_features"}  # follows from the trees when it is first asked for
    assert {field.name for field in fields(again._fitted)} == vars(model._fitted).keys() - kept
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    pruned = model.prune([0])
    assert pruned.get_n_leaves() == 1 < model.get_n_leaves()


@pytest.mark.parametrize("ask", [fitted_tree, export_text, export_json, plot_tree])
@pytest.mark.parametrize("given", [None, "model.json", ShapeTreeClassifier, np.zeros(3)])
def test_nothing_but_an_estimator_has_a_fitted_tree(ask, given):
    with pytest.raises(TypeError, match="estimator must be a fitted ShapeTreeClassifier or"):
        ask(given)


def test_a_pipeline_must_end_in_a_tree():
    pipeline = make_pipeline(ShapeTreeClassifier(max_depth=1)).fit(X, Y)
    assert export_text(pipeline) == export_text(pipeline[-1])
    with pytest.raises(TypeError, match="got a Pipeline that ends in StandardScaler"):
        export_text(make_pipeline(StandardScaler()))


@pytest.mark.parametrize("ask", [fitted_tree, export_text, export_json, plot_tree])
def test_an_estimator_must_be_fitted(ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        ask(ShapeTreeRegressor())


def test_columns_are_checked_in_the_words_of_scikit_learn():
    from sklearn.tree import DecisionTreeClassifier

    frame = pd.DataFrame(X, columns=list("abcd"))
    y = X.sum(axis=1) > X.sum(axis=1).mean()  # of all columns, so that a tree needs them all
    wrong = [
        frame[list("abc")],
        frame.rename(columns={"a": "z"}),
        pd.concat([frame.add_prefix(f"{i} ") for i in range(3)], axis=1),
        X,
        X[:, :3],
        frame.set_axis(range(4), axis=1),
    ]
    for known, tables in ((frame, wrong), (X, [frame, X[:, :3]])):
        ours = ShapeTreeClassifier(max_depth=None, search=SearchOptions(leaf_penalty=0.0)).fit(
            known, y
        )
        assert ours.tree_.used_features == [0, 1, 2, 3]
        theirs = DecisionTreeClassifier(max_depth=1).fit(known, y)
        for table in tables:
            said = said_by(ours.predict, table)
            assert said
            name, other = type(ours).__name__, type(theirs).__name__
            assert said == [text.replace(other, name) for text in said_by(theirs.predict, table)]


def said_by(call, table):
    """Warnings and the error of a call."""
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        try:
            call(table)
        except ValueError as error:
            return [*(str(each.message) for each in noted), str(error)]
    return [str(each.message) for each in noted]


def test_the_right_columns_pass_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_columns(["a", "b"], True, ["a", "b"], True, [0, 1], "the tree")
        check_columns(["x0", "x1"], False, ["x0", "x1"], False, [0, 1], "the tree")
        # With names, they may be in any order beside others, and only those needed must be there.
        check_columns(["c", "b", "a"], True, ["a", "b"], True, [0, 1], "the tree")
        check_columns(["c", "b"], True, ["a", "b"], True, [1], "the tree")


def test_only_columns_that_are_needed_are_missed():
    words = (
        r"Feature names unseen at fit time:\n- c\n"
        r"Feature names seen at fit time, yet now missing:\n- b\n$"
    )
    with pytest.raises(ValueError, match=words):
        check_columns(["c"], True, ["a", "b"], True, [1], "the tree")
    # Without names, columns are told by their places, so that all must be there.
    with pytest.raises(ValueError, match="X has 1 features, but the tree is expecting 2 features"):
        check_columns(["x0"], False, ["x0", "x1"], False, [0], "the tree")


def test_named_columns_are_found_in_any_order_beside_others():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = ShapeTreeClassifier(max_depth=1, max_branches=2).fit(frame, Y)
    used = [frame.columns[number] for number in model.tree_.used_features]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in (frame[list("dbca")], frame.assign(e="text")[list("edbca")], frame[used]):
            assert_array_equal(model.predict_proba(table), model.predict_proba(frame))
            assert_array_equal(model.apply(table), model.apply(frame))


# What of the data leaves with a tree


def patients(n_rows=600):
    """Rows whose class depends on `dose` and `sort`; the other columns name people and places."""
    rng = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "dose": rng.normal(size=n_rows),
            "patient": [f"Patient{i % 200}" for i in range(n_rows)],
            "sort": rng.choice(["oral", "nasal", "topical"], n_rows),
            "ward": pd.Categorical(rng.choice(["WardA", "WardB"], n_rows), ordered=True),
            "number": pd.Categorical(rng.integers(770_000, 770_003, n_rows)),
            "age": rng.integers(18, 98, n_rows) + 123_000,
        }
    )
    return X, np.where((X["dose"] > 0) ^ (X["sort"] == "oral"), "yes", "no")


def leaving(model):
    """Everything that a tree is written to."""
    pickled = pickle.dumps(model).decode("latin-1")
    return [model.to_json(), export_html(model), pickled, export_text(model), repr(vars(model))]


@pytest.mark.parametrize(
    "change",
    [
        lambda model, X, y: model,
        lambda model, X, y: from_json(model.to_json()),
        lambda model, X, y: model.simplify(),
        lambda model, X, y: refine_tree(model, X, y),
        lambda model, X, y: refine_tree(from_json(model.to_json()), X, y),
    ],
    ids=["fitted", "read", "simplified", "refined", "read and refined"],
)
def test_levels_of_features_that_the_tree_does_not_use_do_not_leave_with_it(change):
    X, y = patients()
    model = change(ShapeTreeClassifier(max_depth=2).fit(X, y), X, y)
    assert model.tree_.used_features == [0, 2]
    for written in leaving(model):
        assert not any(name in written for name in ("Patient", "Ward", "77000", "1230"))
    assert list(model.feature_names_in_) == list(X)
    assert model._fitted.features[2].categories == ("nasal", "oral", "topical")
    for j, is_ordered, held_text in [(1, False, True), (3, True, True), (4, False, False)]:
        feature = model._fitted.features[j]
        assert (feature.categories, feature.is_ordered, feature.held_text) == (
            ((), is_ordered, held_text)
        )
    assert from_json(model.to_json()).to_json() == model.to_json()


def test_pruning_a_feature_away_forgets_its_levels_and_its_range():
    X, y = patients()
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    first = model.prune(model.tree_.children(0))
    assert len(first.tree_.used_features) == 1
    none = first.prune([0])
    assert not any("nasal" in written for written in leaving(none))
    assert np.isnan(none._fitted.summary.ranges).all()
    assert (none._fitted.summary.scales == 1).all()
    assert len(none.predict(X)) == len(X)


def test_features_that_the_tree_does_not_use_may_hold_anything_in_prediction():
    X, y = patients()
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    other = X.assign(
        patient=np.arange(len(X)) * 1.5,
        ward=pd.Timestamp("2024-02-03"),
        number=[["list"]] * len(X),
        age="unknown",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (model, from_json(model.to_json())):
            assert_array_equal(known.predict(other), model.predict(X))
            assert str(known.explain(other[:1])[0]) == str(model.explain(X[:1])[0])


def test_refinement_learns_the_levels_of_features_that_the_tree_did_not_use():
    X, y = patients()
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    other = X.assign(ward=pd.Categorical(np.where(y == "yes", "WardC", "WardD")))
    refined = refine_tree(model, other, y)
    assert refined.score(other, y) >= model.score(X, y)
    assert (3 in refined.tree_.used_features) == ("WardC" in refined.to_json())
