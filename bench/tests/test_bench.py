"""The benchmark, on datasets that come with scikit-learn."""

import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from shapetree_bench import _charts as charts
from shapetree_bench import _paper as paper
from shapetree_bench import _readme as readme
from shapetree_bench._analysis import CEILINGS, Analysis, Entry
from shapetree_bench._cli import _command, app
from shapetree_bench._datasets import (
    BUNDLED,
    BY_NAME,
    CATALOGUE,
    NoDataset,
    datasets_named,
    prepared,
    read,
)
from shapetree_bench._document import Cell as TableCell
from shapetree_bench._document import (
    Document,
    Section,
    Table,
    markdown_table,
    signed,
    to_html,
    to_markdown,
)
from shapetree_bench._evidence import Evidence
from shapetree_bench._importance import importances
from shapetree_bench._methods import GROUPS, METHODS, methods_named
from shapetree_bench._paper_tables import tables_of_means
from shapetree_bench._peer_tables import table_of_methods
from shapetree_bench._protocols import Cell, Search, Trial, can_do, fit_fold, measure
from shapetree_bench._report import make_report, write_report
from shapetree_bench._run import Order, Runner, Worker
from shapetree_bench._scores import scores_of_classes, scores_of_numbers
from shapetree_bench._statistics import duel, rank
from shapetree_bench._store import MEASURES, Results
from sklearn.metrics import f1_score, log_loss
from typer.testing import CliRunner

from shapetree import recipes

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


@pytest.fixture(scope="module")
def iris():
    return read(BY_NAME["iris"], None, Path("/nowhere"))


@pytest.fixture(scope="module")
def categories(tmp_path_factory):
    """A dataset of a folder, with a categorical column and missing values."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 300)
    size = rng.normal(size=300)
    size[:20] = np.nan
    table = pd.DataFrame({"kind": kind, "size": size, "noise": rng.normal(size=300)})
    table["target"] = np.where((kind == "a") ^ (np.nan_to_num(size) > 0), "yes", "no")
    table.to_parquet(folder / "rice.parquet")
    return read(BY_NAME["rice"], folder, folder)


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
    assert scores["log_loss"] == pytest.approx(log_loss(y, proba), abs=1e-6)
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


# Running

# The peer cannot predict, which is found out only once it is fitted.
ARGUMENTS = ["--datasets", "iris,diabetes", "--methods", "CART,SGT3-T", "--depths", "2,3"]
ARGUMENTS += ["--peer", "sklearn.neural_network:BernoulliRBM"]


def invoke(*arguments, code=0):
    outcome = CliRunner().invoke(app, [str(each) for each in arguments])
    assert outcome.exit_code == code, outcome.output
    return outcome.output


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "results.sqlite"
    output = invoke("run", *ARGUMENTS, "--out", path, "--cache", path.parent)
    assert "10 cells, 30 fits to do" in output
    assert "30 fits done, 6 of them failed" in output
    return path


def test_a_run_measures_everything(finished):
    cells = Evidence.read(finished).cells.query("failed == 0")
    assert len(cells) == 8
    assert (cells["folds"] == 3).all()
    iris, diabetes = (cells[cells["dataset"] == name] for name in ("iris", "diabetes"))
    for name in ("accuracy", "macro_f1", "log_loss", "calibration_error"):
        assert iris[name].notna().all(), name
    for name in ("squared_error", "absolute_error", "r2"):
        assert diabetes[name].notna().all(), name
    for name in ("seconds", "cart_seconds", "predict_us", "leaves", "nodes", "features"):
        assert cells[name].notna().all(), name
    for name in ("conditions", "segments"):
        assert cells[name].notna().all(), name


def test_failures_are_kept_with_their_reason_and_stop_nothing(finished):
    failed = Evidence.read(finished).cells.query("failed > 0")
    assert failed["failed"].tolist() == [3, 3]
    assert failed["depth"].tolist() == [0, 0]
    assert failed["reason"].str.contains("AttributeError: .* has no attribute 'predict'").all()


def test_a_run_repeats_nothing(finished):
    before = finished.read_bytes()
    output = invoke("run", *ARGUMENTS, "--out", finished, "--cache", finished.parent)
    assert "0 fits to do" in output
    assert finished.read_bytes() == before


def test_a_run_goes_on_where_it_was_killed(finished, tmp_path):
    path = tmp_path / "results.sqlite"
    path.write_bytes(finished.read_bytes())
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM fits WHERE dataset = 'iris' AND depth = 2 AND fold > 0")
    output = invoke("run", *ARGUMENTS, "--out", path, "--cache", tmp_path)
    assert "4 fits to do" in output
    assert (Evidence.read(path).cells.query("failed == 0")["folds"] == 3).all()


SLOW = """
import os, time
from sklearn.tree import DecisionTreeClassifier

class Slow(DecisionTreeClassifier):
    def fit(self, X, y):
        with open(os.environ["NOTES"], "a") as notes:
            notes.write(f"{os.getpid()}\\n")
        time.sleep(float(os.environ["PAUSE"]))
        return super().fit(X, y)
"""


def has_ended(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_killed_in_a_fit_it_leaves_no_process_and_goes_on(tmp_path):
    (tmp_path / "slow_tree.py").write_text(SLOW)
    path, notes = tmp_path / "results.sqlite", tmp_path / "notes"
    command = [sys.executable, "-m", "shapetree_bench", "run", "--datasets", "iris"]
    command += ["--methods", "CART", "--peer", "slow_tree:Slow", "--depths", "2"]
    command += ["--out", str(path), "--cache", str(tmp_path)]
    folders = os.pathsep.join([str(tmp_path), *sys.path])
    more = {"PYTHONPATH": folders, "NOTES": str(notes), "COLUMNS": "200"}
    run = subprocess.Popen(command, env=os.environ | more | {"PAUSE": "600"})
    try:
        wait_for(lambda: notes.exists() and notes.read_text().endswith("\n"))
    finally:
        run.kill()
        run.wait()
    (worker,) = map(int, notes.read_text().split())
    wait_for(lambda: has_ended(worker))
    env = os.environ | more | {"PAUSE": "0"}
    again = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert "2 cells, 3 fits to do" in again.stdout  # CART was done
    assert again.stderr == ""
    assert Evidence.read(path).cells["folds"].tolist() == [3, 3]


def wait_for(is_so, seconds=600):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "this takes too long"
        time.sleep(0.1)


def test_a_fit_that_takes_too_long_is_killed(tmp_path, monkeypatch):
    order = Order("untuned", [BY_NAME["iris"]], [METHODS["CART"]], [2], 1, None, tmp_path)
    results = Results(tmp_path / "results.sqlite")
    runner = Runner(order, results, Console(quiet=True))
    monkeypatch.setattr(Runner, "_limit", lambda self, worker: 0.0)
    runner.run(runner.jobs(order.cells({"iris"})))
    cells = results.cells()
    assert cells["failed"].tolist() == [3]
    assert cells["reason"].iloc[0].startswith("took longer than 0 s")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_fit_is_not_killed_because_others_are_busy():
    worker = Worker(Mock(pid=os.getpid()), Mock(), None)
    worker.begin(0)
    time.sleep(0.3)  # as if another process had the core
    assert not worker.exceeds(0.2)
    assert worker.exceeds(0.01)  # by far too long
    while time.process_time() < 0.3 + worker.worked_before:
        pass
    assert worker.exceeds(0.2)


def test_methods_that_are_not_installed_are_skipped_with_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr("shapetree_bench._methods.find_spec", lambda name: None)
    output = invoke(
        *("run", "--methods", "sgtlearn", "--datasets", "iris", "--out", tmp_path / "r.sqlite")
    )
    assert "skipped sgtlearn: sgtlearn is not installed" in output
    assert "0 cells" in output


def test_commands_are_kept_without_paths_of_the_machine():
    command = _command(["run", "--data-dir", "/home/me/data", "--methods", "LightGBM, 200 trees"])
    assert command == "shapetree-bench run --data-dir data --methods 'LightGBM, 200 trees'"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--datasets", "rise"], "--datasets: 'rise' is none of"),
        (["--methods", "SGT9"], "--methods: 'SGT9' is none of"),
        (["--depths", "deep"], "--depths: 'deep' is not a list"),
        (["--protocol", "best"], "--protocol: 'best' is none of untuned, cv, paper"),
        (["--data-dir", "/no/such"], "--data-dir: there is no folder"),
    ],
)
def test_wrong_orders_are_refused_before_any_work(arguments, words, tmp_path):
    output = invoke("run", *arguments, "--out", tmp_path / "r.sqlite", code=2)
    assert words in " ".join(output.split())
    assert not (tmp_path / "r.sqlite").exists()


def test_a_tuned_run_keeps_its_best_trial(tmp_path):
    pytest.importorskip("optuna", reason="optuna is not installed")
    path = tmp_path / "results.sqlite"
    arguments = ["run", "--protocol", "paper", "--datasets", "iris", "--methods", "CART"]
    arguments += ["--depths", "2", "--out", path, "--cache", tmp_path]
    assert "3 fits to do" in invoke(*arguments, "--trials", 3)
    assert "0 fits to do" in invoke(*arguments, "--trials", 3)
    results = Results(path)
    trials = results.table("trials")
    best = trials.loc[trials["validation"].idxmax()]
    (cell,) = results.cells().to_dict("records")
    folds = json.loads(best["folds"])
    assert cell["trials"] == 3
    assert cell["protocol"] == "paper"
    assert cell["accuracy"] == pytest.approx(np.mean([fold["accuracy"] for fold in folds]))


def test_the_parameter_that_matters_is_found(tmp_path):
    results = Results(tmp_path / "results.sqlite")
    rng = np.random.default_rng(0)
    for number in range(60):
        params = {
            "min_samples_leaf": int(rng.integers(1, 33)),
            "criterion": str(rng.choice(["a", "b"])),
        }
        folds = [{"accuracy": params["min_samples_leaf"] / 40, "validation": 0.5}] * 3
        cell = Cell("paper", "CART", ("rice", "bank")[number % 2], 2 + number % 5)
        results.note_trial(cell, Trial(number, params), folds)
    found = importances(results.table("trials")).set_index("parameter")
    assert found.loc["min_samples_leaf", "importance"] > 0.9
    assert set(found.index) == {"min_samples_leaf", "criterion", "max_depth"}
    assert found["importance"].sum() == pytest.approx(1)


# Reports


def test_names_of_lines_neither_touch_nor_leave_the_picture():
    lines = [
        charts.Series(f"line {i}", [(2.0, 80.0, ""), (6.0, 90.0 + i / 100, "")], charts.colour(i))
        for i in range(25)
    ]
    svg = charts.panels([("many", lines)], "depth", "accuracy", 1)
    height = float(re.search(r'viewBox="0 0 \S+ (\S+)"', svg)[1])
    places = sorted(float(y) for y in re.findall(r'y="(\S+)"[^>]*>line', svg))
    assert len(places) == 25
    assert places[0] > 0
    assert places[-1] < height
    assert min(np.diff(places)) >= charts.NAME_GAP - 0.11


def made_up(tmp_path, methods, datasets, depths=paper.DEPTHS, protocols=("untuned",)):
    """Results without any fit."""
    results = Results(tmp_path / "made.sqlite")
    results.begin_run("shapetree-bench run", {"shapetree": "1"})
    rng = np.random.default_rng(0)
    for name in datasets:
        dataset = BY_NAME[name]
        for method in methods:
            for protocol in protocols:
                for depth in depths if METHODS[method].has_depth else [0]:
                    for fold in range(3):
                        measures = dict.fromkeys(MEASURES, 1.0 + depth) | {
                            "accuracy": 0.8 + 0.01 * depth + 0.02 * rng.random(),
                            "seconds": 0.2,
                            "cart_seconds": 0.1,
                        }
                        if dataset.task == "regression":
                            measures |= {"accuracy": None, "squared_error": 0.5}
                        results.note_fit(Cell(protocol, method, name, depth), fold, measures)
    return results


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    path = tmp_path_factory.mktemp("made")
    names = [each.name for each in CATALOGUE]
    methods = ["CART", "LightGBM, 200 trees", "SGT-C", "SGT3-C", "SGT-T", "SGT3-T", "S2GT3-T"]
    methods += ["sgtlearn", "sgtlearn, K=3", "SGT-C (paper)", "SGT-C (paper, No CD)", "HSTree"]
    results = made_up(path, methods, names, protocols=("untuned",))
    results.note_failure(Cell("untuned", "STreeD", "rice", 4), 0, "took longer than 900 s")
    folder = path / "csv"
    Evidence.of(results).write(folder)
    return Evidence.read(folder)


def test_csv_files_say_what_the_database_says(tmp_path):
    results = made_up(tmp_path, ["CART"], ["rice", "california"])
    folder = tmp_path / "csv"
    Evidence.of(results).write(folder)
    ours, theirs = results.cells(), Evidence.read(folder).cells
    keys = ["protocol", "method", "dataset", "depth"]
    both = ours.merge(theirs, on=keys, suffixes=("", "_csv"))
    assert len(both) == len(ours) == len(theirs)
    np.testing.assert_allclose(both["accuracy"], both["accuracy_csv"], rtol=1e-4)
    np.testing.assert_allclose(both["squared_error"], both["squared_error_csv"], rtol=1e-4)


def test_several_files_are_kept_as_one(tmp_path):
    paths = [tmp_path / name / "made.sqlite" for name in ("first", "copy", "second")]
    made_up(paths[0].parent, ["CART"], ["rice", "bank"], depths=[2]).close()
    paths[1].parent.mkdir()
    paths[1].write_bytes(paths[0].read_bytes())
    second = Results(paths[2])
    second.begin_run("shapetree-bench run --fresh", {"shapetree": "2"})
    for fold in range(3):
        second.note_fit(Cell("untuned", "CART", "rice", 2), fold, {"accuracy": 0.5})
    second.note_trial(Cell("paper", "CART", "rice", 2), Trial(0, {}, 0.5), [{"validation": 0.5}])
    second.close()
    invoke("export", *paths, "--to", tmp_path / "csv")
    evidence = Evidence.read(tmp_path / "csv")
    cells = evidence.cells.set_index(["protocol", "dataset"])
    assert len(cells) == 3
    assert cells.loc[("untuned", "rice"), "accuracy"] == 0.5  # the last file's
    assert cells.loc[("untuned", "bank"), "accuracy"] > 0.8
    assert evidence.runs["command"].tolist() == [
        *("shapetree-bench run", "shapetree-bench run --fresh"),
    ]
    # Of the first run nothing is left once all of it was done again.
    for fold in range(3):
        second = Results(paths[2])
        second.begin_run("shapetree-bench run --fresh", {"shapetree": "2"})
        second.note_fit(Cell("untuned", "CART", "bank", 2), fold, {"accuracy": 0.5})
        second.close()
    invoke("export", *paths, "--to", tmp_path / "csv", "--replace")
    assert "shapetree-bench run" not in Evidence.read(tmp_path / "csv").runs["command"].tolist()
    output = invoke("export", paths[0], tmp_path / "none", "--to", tmp_path / "csv", code=2)
    assert "there is no file" in output


def test_a_folder_of_evidence_grows(tmp_path):
    (tmp_path / "old").mkdir()
    old = made_up(tmp_path / "old", ["CART", "SGT-C"], ["rice"], depths=[2, 3])
    for number in range(25):
        trial = Trial(number, {"ccp_alpha": number / 100}, 0.5)
        folds = [{"accuracy": 0.7, "validation": 0.5}] * 3
        old.note_trial(Cell("paper", "CART", "rice", 2), trial, folds)
    old.note_dataset(("rice", 3810, 2, 7, 0, "", "rice.parquet"))
    folder = tmp_path / "csv"
    invoke("export", tmp_path / "old" / "made.sqlite", "--to", folder)
    kept = Evidence.read(folder)
    assert set(kept.importance["method"]) == {"CART"}

    new = Results(tmp_path / "new.sqlite")
    new.begin_run("shapetree-bench run --again", {"shapetree": "2"})
    for fold in range(3):
        new.note_fit(Cell("untuned", "CART", "rice", 2), fold, {"accuracy": 0.5})
        new.note_fit(Cell("cv", "SGT-C", "bank", 2), fold, {"accuracy": 0.6})
    # Of these, less was done than is known already.
    new.note_fit(Cell("untuned", "CART", "rice", 3), 0, {"accuracy": 0.5})
    folds = [{"accuracy": 0.5, "validation": 0.5}] * 3
    new.note_trial(Cell("paper", "CART", "rice", 2), Trial(0, {"ccp_alpha": 0.0}, 0.5), folds)
    new.note_dataset(("bank", 1372, 2, 4, 0, "", "bank.parquet"))
    new.close()
    for _ in range(2):  # to add the same again changes nothing
        invoke("export", tmp_path / "new.sqlite", "--to", folder)
        grown = Evidence.read(folder)
        scores = grown.cells.set_index(["protocol", "method", "dataset", "depth"])["accuracy"]
        assert len(scores) == len(kept.cells) + 1
        assert scores["untuned", "CART", "rice", 2] == 0.5
        assert scores["cv", "SGT-C", "bank", 2] == 0.6
        assert scores["untuned", "CART", "rice", 3] > 0.8
        assert scores["paper", "CART", "rice", 2] == 0.7
        assert grown.runs["number"].tolist() == [1, 2]
        assert grown.runs["command"].tolist()[-1] == "shapetree-bench run --again"
        assert grown.datasets["name"].tolist() == ["bank", "rice"]
        pd.testing.assert_frame_equal(grown.importance, kept.importance)

    invoke("export", tmp_path / "new.sqlite", "--to", folder, "--replace")
    assert len(Evidence.read(folder).cells) == 4
    assert not (folder / "importance.csv").exists()


def test_evidence_is_written_as_it_was_read(tmp_path):
    kept = Evidence.read(RESULTS)
    assert {path.name for path in kept.write(tmp_path)} == {p.name for p in RESULTS.iterdir()}
    for path in tmp_path.iterdir():
        assert path.read_text() == (RESULTS / path.name).read_text(), path.name


def test_the_report_has_every_part(evidence, tmp_path):
    old = tmp_path / "figures" / "old.svg"
    old.parent.mkdir()
    old.write_text("<svg/>")
    paths = write_report(evidence, tmp_path)
    html = (tmp_path / "benchmark.html").read_text()
    for title in (
        *("The paper's tables", "Dataset by dataset", "Accuracy by depth", "All methods"),
        *("Accuracy, size and explanations", "Ranks", "Wins, ties and losses", "Time to fit"),
        *("Regression", "Ablations", "Datasets", "What failed", "How it was made"),
    ):
        assert f"<h2>{title}</h2>".replace("'", "&#x27;") in html, title
    assert not old.exists()
    assert "took longer than 900 s" in html
    assert not re.search(r'(src|href)="(?!#)', html), "the page must need nothing else"
    text = (tmp_path / "benchmark.md").read_text()
    for name in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / name) in paths
    assert "nan" not in re.sub(r"\w+nan\w*|nan\w+", "", html.lower())


def test_means_stand_beside_the_papers(evidence):
    analysis = Analysis(evidence)
    (axis, _) = tables_of_means(analysis)
    rows = {
        row[0].text if isinstance(row[0], TableCell) else row[0].strip(): row for row in axis.rows
    }
    scores = analysis.accuracy(Entry("SGT-T"), 4)[paper.datasets(4, bivariate=False)]
    cell = rows["SGT-T"][3]
    assert cell.text == f"{scores.mean():.1f}"
    assert cell.note == f"{signed(scores.mean() - 84.6)}, {len(scores)} sets"
    assert not cell.is_quiet
    assert (cell.shade > 0) == (scores.mean() > 84.6)


def test_means_over_fewer_datasets_are_pale_and_compared_only_where_that_is_fair(tmp_path):
    made_up(tmp_path, ["SGT-C", "SGT3-C"], ["rice", "bank"]).close()
    analysis = Analysis(Evidence.read(tmp_path / "made.sqlite"))
    (axis, _) = tables_of_means(analysis)
    rows = {row[0].strip(): row[1] for row in axis.rows if isinstance(row[0], str)}
    assert rows["SGT3-C"].is_quiet
    assert rows["SGT3-C"].note == "2 sets"
    gap = analysis.accuracy(Entry("SGT-C"), 2).mean() - np.mean([93.1, 88.5])
    assert rows["SGT-C"].is_quiet
    assert rows["SGT-C"].note == f"{signed(gap)}, 2 sets"


def test_means_over_most_datasets_are_compared_with_an_estimate(tmp_path):
    names = paper.datasets(6, bivariate=False)[:-2]
    made_up(tmp_path, ["SGT3-C"], names, depths=[6]).close()
    analysis = Analysis(Evidence.read(tmp_path / "made.sqlite"))
    (axis, _) = tables_of_means(analysis)
    (cell,) = [row[5] for row in axis.rows if row[0] == "\u2003SGT3-C"]
    ours = analysis.accuracy(Entry("SGT3-C"), 6).mean()
    gap = ours - paper.mean_over("SGT3-C", False, 6, names)
    assert cell.is_quiet
    assert cell.note == f"≈{signed(gap)}, 24 sets"


def test_methods_are_compared_on_the_datasets_that_they_share(tmp_path):
    many, few = (
        ["rice", "bank", "raisin", "wilt", "page", "bean", "htru", "magic"],
        ["rice", "bank"],
    )
    made_up(tmp_path, ["CART", "SGT3-T"], many, depths=[3]).close()
    made_up(tmp_path, ["HSTree"], few, depths=[3]).close()
    results = made_up(tmp_path, ["FIGS"], few[:1], depths=[3])
    results.note_failure(Cell("untuned", "FIGS", "bank", 3), 0, "took longer than 9 s")
    results.close()
    analysis = Analysis(Evidence.read(tmp_path / "made.sqlite"))
    table = table_of_methods(analysis, 3)
    (first, second) = [place for place, row in enumerate(table.rows) if isinstance(row, str)]
    assert table.rows[first].startswith("On 8 sets")
    assert table.rows[second] == "On 2 sets: bank, rice"
    assert {row[0].text for row in table.rows[first + 1 : second]} == {"CART", "SGT3-T"}
    last = {row[0].text: row for row in table.rows[second + 1 :]}
    assert set(last) == {"CART", "SGT3-T", "HSTree", "FIGS"}
    shared = analysis.accuracy(Entry("SGT3-T"), 3)[few]
    assert last["SGT3-T"][1].text == f"{shared.mean():.1f}"
    assert last["FIGS"][0].note == "1 of 2 sets"
    assert last["FIGS"][1].is_quiet


def test_the_gap_is_not_measured_to_what_has_diverged(tmp_path):
    methods = ["CART", "SGT3-T", *CEILINGS]
    results = made_up(tmp_path, methods, ["rice", "avila"], depths=[3, 6])
    for ceiling in CEILINGS:
        for dataset in ("rice", "avila"):
            has_failed = dataset == "avila" and ceiling == CEILINGS[0]
            for fold in range(3):
                measures = {"accuracy": 0.4 if has_failed else 0.99}
                results.note_fit(Cell("untuned", ceiling, dataset, 0), fold, measures)
    results.close()
    report = to_markdown(make_report(Evidence.read(tmp_path / "made.sqlite")), "figures")
    assert "to LightGBM, 200 trees, without avila" in report
    assert "**to LightGBM, 200 trees, reg_lambda=1**" in report
    assert "the accuracy on avila is 40.0 %" in report
    assert "With `reg_lambda=1` it is 99.0 %" in report


def test_partial_copies_are_marked_in_every_table(tmp_path, categories):
    results = made_up(tmp_path, ["SGT-C", "CART"], ["rice"])
    results.note_dataset(categories.facts())
    results.close()
    report = to_markdown(make_report(Evidence.read(tmp_path / "made.sqlite")), "figures")
    assert "| rice* |" in report
    assert "| rice |" not in report
    assert "On 1 set*: rice*" in report
    assert "1 set*" in report
    assert "1 set)" not in report


def test_a_cell_without_all_folds_is_not_compared(tmp_path):
    results = made_up(tmp_path, ["CART", "SGT3-T"], ["rice", "bank"], depths=[4])
    cell = Cell("untuned", "SGT3-T", "bank", 4)
    results.forget(cell, only_failures=False)
    results.note_fit(cell, 0, {"accuracy": 1.0})
    results.note_failure(cell, 1, "took longer than 900 s")
    results.close()
    evidence = Evidence.read(tmp_path / "made.sqlite")
    assert list(Analysis(evidence).accuracy(Entry("SGT3-T"), 4).index) == ["rice"]
    assert "took longer than 900 s" in to_markdown(make_report(evidence), "figures")


def test_a_report_of_almost_nothing_works(tmp_path):
    made_up(tmp_path, ["SGT3-T"], ["iris"], depths=[4]).close()
    assert "<h2>" in to_html(make_report(Evidence.read(tmp_path / "made.sqlite")))


def test_text_is_escaped():
    table = Table(["<a>"], [["x < y & `code`"]], "**bold**")
    html = to_html(Document("<t>", [], [Section("s", [table])]))
    assert "&lt;a&gt;" in html
    assert "x &lt; y &amp; <code>code</code>" in html
    assert markdown_table(
        Table(["a", "b"], ["part", ["x|y", TableCell("1", "+2")]])
    ).splitlines() == [
        *("| a | b |", "| --- | --- |", "| **part** |  |", "| x\\|y | 1 (+2) |"),
    ]


# The README


def test_readme_tables_are_made_and_checked(evidence, tmp_path, monkeypatch):
    path = tmp_path / "README.md"
    blocks = "\n".join(f"<!-- bench: {name} -->\nold\n<!-- end -->" for name in readme.BLOCKS)
    path.write_text(f"# T\n\n{blocks}\nrest\n")
    assert readme.outdated(path, evidence) == list(readme.BLOCKS)[:]
    path.write_text(readme.update(path.read_text(), evidence))
    assert readme.outdated(path, evidence) == []
    assert path.read_text().endswith("rest\n")
    path.write_text(path.read_text().replace(" % |", " % ! |", 1))
    assert len(readme.outdated(path, evidence)) == 1


def test_readme_tables_without_results_say_so(tmp_path):
    made_up(tmp_path, ["CART"], ["rice"]).close()
    text = "<!-- bench: accuracy -->\n<!-- end -->\n<!-- bench: regression -->\n<!-- end -->\n"
    renewed = readme.update(text, Evidence.read(tmp_path / "made.sqlite"))
    assert renewed.count("(Not measured yet.)") == 2
    with pytest.raises(ValueError, match="the README asks for 'speed'"):
        readme.update(
            "<!-- bench: speed -->\n<!-- end -->", Evidence.read(tmp_path / "made.sqlite")
        )


@pytest.mark.skipif(not RESULTS.is_dir(), reason="there are no results with the code")
def test_the_readme_agrees_with_the_results():
    assert readme.outdated(ROOT / "README.md", Evidence.read(RESULTS)) == []


@pytest.mark.skipif(not RESULTS.is_dir(), reason="there are no results with the code")
def test_the_report_agrees_with_the_results(tmp_path):
    write_report(Evidence.read(RESULTS), tmp_path)
    kept = ROOT / "docs" / "benchmark"
    for name in ("benchmark.md", "benchmark.html"):
        assert (kept / name).read_text() == (tmp_path / name).read_text(), (
            f"docs/benchmark/{name} is out of date; make bench-report"
        )
