"""What is measured, on datasets that come with scikit-learn."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up import rice_with_categories
from shapetree_bench import _paper as paper
from shapetree_bench._datasets import (
    BUNDLED,
    BY_NAME,
    CATALOGUE,
    NoDataset,
    datasets_named,
    prepared,
    read,
)
from shapetree_bench._methods import GROUPS, METHODS, methods_named
from shapetree_bench._protocols import Cell, Search, Trial, can_do, fit_fold, measure
from shapetree_bench._scores import auc, scores_of_classes, scores_of_numbers
from shapetree_bench._statistics import duel, rank
from shapetree_bench._store import MEASURES
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from shapetree import recipes


@pytest.fixture(scope="module")
def iris():
    return read(BY_NAME["iris"], None, Path("/nowhere"))


@pytest.fixture(scope="module")
def categories(tmp_path_factory):
    return rice_with_categories(tmp_path_factory.mktemp("data"))


# Datasets


def test_the_catalogue_is_the_papers():
    assert len([each for each in CATALOGUE if each.task == "classification"]) == 26
    assert len([each for each in CATALOGUE if each.task == "regression"]) == 4
    assert all(re.fullmatch(r"(openml|uci):\d+", each.source) for each in CATALOGUE)
    known = paper.table("accuracy")["dataset"].unique()
    assert set(known) <= {each.name for each in CATALOGUE}


@pytest.mark.parametrize("dataset", BUNDLED, ids=lambda each: each.name)
def test_bundled_datasets_have_the_shape_they_should(dataset):
    rows = read(dataset, None, Path("/nowhere"))
    assert rows.difference() == ""
    assert not rows.is_partial
    if dataset.task == "regression":
        np.testing.assert_allclose([rows.y.mean(), rows.y.std()], [0, 1], atol=1e-12)


def test_a_partial_copy_is_known_as_one(categories):
    assert categories.is_partial
    assert categories.difference() == "300 rows instead of 3,810, 3 columns instead of 7"


def test_one_hot_columns_are_known_by_their_feature(categories):
    columns, groups = categories.grouped
    assert columns.shape == (300, 5)
    assert groups == {"kind": [0, 1, 2]}
    assert np.isnan(columns[:20, 3]).all()
    assert (categories.one_hot[:20, 3] == -1e9).all()
    _, _, owners = METHODS["CART"].rows(categories)
    assert owners.tolist() == [0, 0, 0, 1, 2]


def test_folds_are_the_papers(iris):
    for fold in iris.folds():
        parts = [fold.train, fold.validation, fold.test]
        assert [len(part) for part in parts] == [105, 15, 30]
        assert sorted(np.concatenate(parts)) == list(range(150))


def table_in(folder, name, n_rows, **columns):
    path = folder / f"{BY_NAME[name].file}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    y = np.arange(n_rows) % 2
    pd.DataFrame({"x": np.arange(n_rows) % 7, **columns, "target": y}).to_parquet(path)
    return read(BY_NAME[name], folder, folder)


def test_rows_of_a_group_are_kept_together(tmp_path):
    titles = np.random.default_rng(0).integers(0, 12, 100)
    rows = table_in(tmp_path, "eye-movements by title", 100, titleNo=titles)
    assert rows.groups.tolist() == titles.tolist()
    folds = rows.folds()
    assert len(folds) == rows.dataset.n_folds == 5
    assert sorted(np.concatenate([fold.test for fold in folds])) == list(range(100))
    for fold in folds:
        assert not set(titles[fold.train]) & set(titles[fold.test])
        # Trees that hold rows out by themselves must know of the groups, too.
        cell = Cell("cv", "SGT-C", rows.dataset.name, 2)
        assert fit_fold(METHODS["SGT-C"], rows, cell, 0)["accuracy"] >= 0


def test_later_rows_are_tested_on_trees_of_earlier_ones(tmp_path):
    rows = table_in(tmp_path, "electricity in time order", 100)
    assert rows.groups is None
    for fold in rows.folds():
        assert fold.train.max() < fold.test.min()


def test_tables_of_few_rows_are_cross_validated_four_times(tmp_path):
    rows = table_in(tmp_path, "kyphosis", 50)
    tests = [fold.test for fold in rows.folds()]
    assert len(tests) == 20
    assert np.bincount(np.concatenate(tests)).tolist() == [4] * 50
    assert all(rows.y[test].mean() == 0.5 for test in tests)  # stratified
    with pytest.raises(NoDataset, match=r"Pima: there is no small/Pima\.parquet in"):
        read(BY_NAME["Pima"], tmp_path, tmp_path)


def test_a_dataset_that_cannot_be_had_says_what_to_do(tmp_path, monkeypatch):
    def unreachable(number):
        raise OSError("no network")

    monkeypatch.setattr("shapetree_bench._datasets._from_openml", unreachable)
    with pytest.raises(NoDataset, match=r"no bank\.parquet in .*openml 1462.*no network.*put"):
        read(BY_NAME["bank"], tmp_path, tmp_path)


def test_what_comes_over_the_network_is_kept(tmp_path, monkeypatch):
    calls = []

    def fetch(number):
        calls.append(number)
        return pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1, 1, 2], "Class": ["x", "y", "x"]})

    monkeypatch.setattr("shapetree_bench._datasets._from_openml", fetch)
    for _ in range(2):
        rows = read(BY_NAME["bank"], None, tmp_path)
        assert rows.y.tolist() == [0, 1, 0]
        assert list(rows.X) == ["a", "b"]
    assert calls == [1462]


def test_sources_get_the_papers_columns():
    table = pd.DataFrame(
        {"Elevation": [1, 2], "Wilderness_Area1": [1, 0], "Wilderness_Area2": [0, 1]}
    )
    table = table.assign(Soil_Type1=[0, 1], Soil_Type2=[1, 0], Cover_Type=[3, 4])
    assert list(prepared(BY_NAME["covtype"], table)) == [
        *("Elevation", "Wilderness_Area", "Soil_Type", "target"),
    ]
    adult = pd.DataFrame({"age": [1, None], "fnlwgt": [1, 2], "class": ["a", "b"]})
    assert prepared(BY_NAME["adult"], adult).to_dict("list") == {"age": [1.0], "target": ["a"]}
    diamonds = pd.DataFrame({"carat": [1.0], "price": [3], "x": [2.0]})
    assert list(prepared(BY_NAME["diamonds"], diamonds)) == ["carat", "x", "target"]


def test_names_and_groups_of_datasets():
    assert [each.name for each in datasets_named("rice,bank")] == ["bank", "rice"]
    assert len(datasets_named("all")) == 30
    with pytest.raises(ValueError, match="--datasets: 'rise' is none of all, "):
        datasets_named("rise")


# Methods


def test_every_recipe_is_a_method():
    for name in recipes.NAMES:
        if name.startswith("S"):
            assert {name, f"{name} (paper)"} <= set(METHODS)
        else:
            assert name in METHODS


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_measured(name, task):
    method = METHODS[name]
    if not method.is_installed:
        pytest.skip(f"{method.needs} is not installed")
    if task not in method.tasks:
        pytest.skip(f"{name} does not do {task}")
    if name in ("EBM", "LicketySPLIT"):
        pytest.skip(f"{name} takes too long for a test")
    rows = read(BY_NAME["iris" if task == "classification" else "diabetes"], None, Path())
    measures, _ = measure(method, rows, rows.folds()[0], 2, {})
    if task == "classification":
        assert measures["accuracy"] > 0.8
    else:
        assert measures["squared_error"] < 2
    assert set(measures) <= set(MEASURES)
    assert measures["seconds"] > 0
    assert measures["cart_seconds"] > 0
    assert measures["features"] <= rows.X.shape[1] or name == "STreeD"


def test_sizes_of_cart_are_those_of_its_recipe():
    rows = read(BY_NAME["breast-cancer"], None, Path())
    fold = rows.folds()[0]
    theirs, ours = (
        measure(METHODS[name], rows, fold, 3, {})[0] for name in ("CART", "CART (recipe)")
    )
    for name in ("leaves", "nodes", "segments"):
        assert theirs[name] == ours[name], name
    assert abs(theirs["features"] - ours["features"]) <= 1  # where splits are equally good
    # One over training rows, the other over test rows.
    assert theirs["conditions"] == pytest.approx(ours["conditions"], abs=0.3)
    assert theirs["accuracy"] == pytest.approx(ours["accuracy"], abs=0.02)


def test_strength_is_chosen_by_the_protocol_for_it(iris):
    measures = fit_fold(METHODS["SGT3-T"], iris, Cell("cv", "SGT3-T", "iris", 2), 0)
    assert measures["strength"] in (0, 0.3, 1, 3)


@pytest.mark.parametrize("name", ["CART", "CART (CV, accuracy)", "SGT3-T", "S2GT3-C"])
def test_leaves_are_limited_by_the_protocol_for_it(name, iris):
    measures = fit_fold(METHODS[name], iris, Cell("leaves", name, "iris", 3), 0)
    assert 2 <= measures["leaves"] <= 3
    assert measures["parts"] >= 2


def test_categories_reach_those_who_can_use_them(categories):
    fold = categories.folds()[0]
    for name in ("SGT3-T", "CART"):
        assert measure(METHODS[name], categories, fold, 3, {})[0]["accuracy"] > 0.9


def test_a_class_without_training_rows_has_no_probability(iris):
    fold = iris.folds()[0]
    few = fold.train[iris.y[fold.train] != 2]
    from dataclasses import replace

    measures, _ = measure(METHODS["CART"], iris, replace(fold, train=few), 2, {})
    assert measures["accuracy"] == pytest.approx(np.mean(iris.y[fold.test] != 2), abs=0.05)


def test_methods_by_name_group_and_import_path():
    names = [each.name for each in methods_named("CART,LightGBM, 200 trees,SGT3-T")]
    assert names == ["CART", "LightGBM, 200 trees", "SGT3-T"]
    assert len(methods_named("ablations")) == len(GROUPS["ablations"]) == 10
    (peer,) = methods_named("", ["sklearn.tree:ExtraTreeClassifier"])
    assert peer.has_depth
    assert peer.tasks == ("classification",)
    with pytest.raises(ValueError, match="--methods: 'SGT4' is none of"):
        methods_named("CART,SGT4")
    with pytest.raises(ValueError, match="not of the form package"):
        methods_named("", ["sklearn"])
    with pytest.raises(ValueError, match="cannot be made without arguments"):
        methods_named("", ["sklearn.ensemble:StackingClassifier"])
    with pytest.raises(ValueError, match="cannot be imported"):
        methods_named("", ["sklearn.tree:NoTree"])


# Scores


def test_scores_are_scikit_learns():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([1, 1, 1], 200)
    y = rng.integers(0, 3, 200)
    scores = scores_of_classes(y, proba)
    guess = proba.argmax(axis=1)
    assert scores["accuracy"] == np.mean(guess == y)
    assert scores["macro_f1"] == pytest.approx(f1_score(y, guess, average="macro"))
    known = np.clip(proba, 1e-3, 1)
    known /= known.sum(axis=1, keepdims=True)
    assert scores["log_loss"] == pytest.approx(log_loss(y, known))
    assert scores["auc"] == pytest.approx(roc_auc_score(y, proba, multi_class="ovr"))
    two, positive = y == 0, proba[:, 0]
    both = np.column_stack([1 - positive, positive])
    assert auc(two.astype(int), both) == pytest.approx(roc_auc_score(two, positive))
    # A class that no row has, or that all have, has no curve.
    assert auc(np.minimum(y, 1), proba) == pytest.approx(
        np.mean([roc_auc_score(np.minimum(y, 1) == each, proba[:, each]) for each in (0, 1)])
    )
    assert np.isnan(auc(np.zeros(3, dtype=int), proba[:3]))
    sure = np.eye(3)[y]
    assert scores_of_classes(y, sure)["calibration_error"] == 0
    half = np.full((200, 2), 0.5)
    assert scores_of_classes(np.arange(200) % 2, half)["calibration_error"] == pytest.approx(0)
    numbers = scores_of_numbers(np.array([0.0, 2.0]), np.array([1.0, 2.0]))
    assert numbers == {"squared_error": 0.5, "absolute_error": 0.5, "r2": 0.5}


def test_ranks_are_demsars():
    # Four classifiers on many datasets, always in the same order but for the last two.
    table = pd.DataFrame({"a": [4.0] * 12, "b": [3.0] * 12, "c": [2.0, 1] * 6, "d": [1.0, 2] * 6})
    ranks = rank(table)
    assert ranks.ranks.to_dict() == {"a": 1, "b": 2, "c": 3.5, "d": 3.5}
    assert ranks.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 12)), abs=1e-3)
    assert ranks.cliques() == [("a", "b"), ("c", "d")]
    assert rank(table[["a", "b"]]) is None


def test_duels_know_ties_and_missing_datasets():
    ours = pd.Series({"a": 90.0, "b": 80.0, "c": 70.0, "d": 60.0})
    found = duel(ours, pd.Series({"a": 89.0, "b": 80.05, "c": 71.0, "e": 1.0}))
    assert (found.wins, found.ties, found.losses) == (1, 1, 1)
    assert duel(ours, pd.Series({"e": 1.0})) is None


# The paper


def test_the_papers_numbers():
    assert paper.mean("SGT3-T", False, 6) == 88.0
    assert paper.mean("S2GT3-C", True, 2) == 90.0
    assert paper.value("accuracy", "bank", "SGT-C", 4) == 97.0
    assert paper.value("accuracy", "avila", "SGT-C", 2) is None
    table = "ablation of the pair filter, accuracy"
    assert paper.value(table, "eye-movements", "S2GT-C", 6, "all pairs") == 77.8
    assert paper.value("squared error", "diamonds", "SGT3-C", 6) == 0.031


def test_the_papers_means_are_over_the_datasets_we_think():
    # Its mean of SGT-C over all sets follows from those by dataset and one number for higgs.
    for depth in paper.DEPTHS:
        names = paper.datasets(depth, bivariate=False)
        known = [paper.value("accuracy", name, "SGT-C", depth) for name in names if name != "higgs"]
        assert None not in known
        higgs = paper.mean("SGT-C", False, depth) * len(names) - sum(known)
        assert 55 < higgs < 75


def test_a_mean_of_the_paper_over_fewer_datasets():
    every = paper.datasets(4, bivariate=False)
    for model in ("CART", "SGT-C", "SGT3-T"):
        assert paper.mean_over(model, False, 4, every) == pytest.approx(paper.mean(model, False, 4))
    # SGT-C's own numbers need no estimate.
    assert paper.mean_over("SGT-C", False, 4, ["rice", "bank"]) == pytest.approx((92.5 + 97.0) / 2)
    # Others are as much better on easy datasets as SGT-C is.
    shift = (92.5 + 97.0) / 2 - paper.mean("SGT-C", False, 4)
    assert paper.mean_over("CART", False, 4, ["rice", "bank"]) == pytest.approx(
        paper.mean("CART", False, 4) + shift
    )
    assert paper.spread("accuracy", "adult", "SGT-C", 2) == 0.2
    assert np.isnan(paper.spread("accuracy", "adult", "CART", 2))


# Protocols


def test_which_protocols_make_sense():
    assert can_do("cv", METHODS["SGT3-T"], "regression")
    assert not can_do("cv", METHODS["CART"], "classification")
    assert can_do("paper", METHODS["CART"], "classification")
    assert not can_do("paper", METHODS["FIGS"], "classification")
    assert not can_do("untuned", METHODS["CART (entropy)"], "regression")
    assert can_do("leaves", METHODS["CART (CV, log loss)"], "classification")
    assert not can_do("leaves", METHODS["linear"], "classification")


@pytest.mark.parametrize("name", ["CART", "SGT3-T", "S2GT3-T (paper)"])
def test_a_search_asks_the_same_after_an_interruption(name, iris):
    pytest.importorskip("optuna", reason="optuna is not installed")
    search = Search(METHODS[name], iris, [])
    for number in range(4):
        trial = search.ask()
        assert trial.number == number
        assert "max_depth" not in trial.params
        search.tell(trial, None if number == 1 else [{"validation": number / 10}])
    stored = [
        Trial(each.number, json.loads(json.dumps(each.params)), each.validation)
        for each in search.done
    ]
    assert Search(METHODS[name], iris, stored).ask() == search.ask()
