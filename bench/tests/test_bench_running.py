"""Runs on datasets that come with scikit-learn."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from made_up import invoke
from rich.console import Console
from shapetree_bench._cli import _command
from shapetree_bench._datasets import (
    BY_NAME,
)
from shapetree_bench._evidence import Evidence
from shapetree_bench._importance import importances
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import Cell, Trial
from shapetree_bench._run import Order, Runner, Worker
from shapetree_bench._store import Results

# The peer cannot predict, which is found out only once it is fitted.
ARGUMENTS = ["--datasets", "iris,diabetes", "--methods", "CART,SGT3-T", "--depths", "2,3"]
ARGUMENTS += ["--peer", "sklearn.neural_network:BernoulliRBM"]


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
        (["--protocol", "best"], "--protocol: 'best' is none of untuned, cv, leaves, paper"),
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
