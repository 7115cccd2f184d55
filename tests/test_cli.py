"""The command: every subcommand, what it says when something is wrong, and how it looks."""

import csv
import json
import os
import re
import sqlite3
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    __version__,
    from_json,
)

pytest.importorskip("typer")
pytest.importorskip("rich")

from rich.table import Column
from typer.testing import CliRunner

from shapetree.cli import main
from shapetree.cli._app import COMMANDS, make_app
from shapetree.cli._column_types import Kind, read_columns
from shapetree.cli._console import Console
from shapetree.cli._reading import read_file

ESCAPE = re.compile(r"\x1b[\[\]()][0-9;?]*[A-Za-z0-9]?")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))


def make_runner():
    try:
        return CliRunner(mix_stderr=False)
    except TypeError:  # newer ones never mix them
        return CliRunner()


def run(*arguments, **options):
    """What a command does in this process: its exit code, stdout and stderr."""
    return make_runner().invoke(make_app(), [str(word) for word in arguments], **options)


def succeed(*arguments, **options):
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def fail(*arguments, code=1):
    """The only line on stderr of a command that fails, and that says nothing on stdout."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    *notes, line = result.stderr.splitlines()
    assert all(note.startswith("note: ") for note in notes)
    assert line.startswith("shapetree: error: ")
    return line.removeprefix("shapetree: error: ")


def shop_rows(n_rows=400, seed=0):
    """Visitors of a shop: numbers, categories, codes, dates, and columns that tell nothing."""
    rng = np.random.default_rng(seed)
    # Many come before and after work.
    hour = np.where(
        rng.random(n_rows) < 0.2, rng.choice([8, 17], n_rows), rng.integers(0, 24, n_rows)
    )
    weather = rng.choice(["sun", "rain", "snow, wind"], n_rows)
    degrees = rng.normal(15, 8, n_rows).round(1)
    visitors = 20 + 60 * np.isin(hour, [8, 17]) - 25 * (weather == "rain") + degrees
    return pd.DataFrame(
        {
            "id": np.arange(1, n_rows + 1),
            "hour": hour,
            "weather": np.where(np.arange(n_rows) % 10 == 3, "", weather),
            "degrees": np.where(np.arange(n_rows) % 7 == 2, "NA", degrees.astype(str)),
            "open": np.where(hour < 20, "TRUE", "false"),
            "post code": rng.choice(["01099", "04109"], n_rows),
            "day": [f"2024-01-{1 + i % 28:02d}" for i in range(n_rows)],
            "name": [f"customer {i}" for i in range(n_rows)],
            "country": "DE",
            "note": "",
            "busy": np.where(visitors > 50, "yes", "no"),
            "visitors": visitors.round(2),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with data and with models of classes and of numbers."""
    path = tmp_path_factory.mktemp("shop")
    shop_rows().to_csv(path / "shop.csv", index=False)
    arguments = ["fit", path / "shop.csv", "--depth", "2", "--quiet"]
    succeed(*arguments, "-t", "busy", "--ignore", "visitors,day", "-o", path / "busy.json")
    succeed(*arguments, "-t", "visitors", "--ignore", "busy", "-o", path / "visitors.json")
    return path


# --- fit ---


def test_fit_shows_columns_scores_and_the_tree(folder):
    shown = succeed("fit", folder / "shop.csv", "-t", "busy", "--ignore", "visitors")
    for words in (
        r"hour +whole number +24 +- ",
        r"weather +category +3 +40 ",
        r"degrees +number +\d+ +57 ",
        r"open +true or false +2",
        r"post code +category +2 +- +0\d+",
        r"id +ignored: counts the rows",
        r"day +date +28 +- +2024-01-01",
        r"name +ignored: text, all different",
        r"country +ignored: always the same",
        r"note +ignored: empty",
        r"visitors +ignored: as you asked",
        r"6 of 11 columns are used to predict busy",
        r"Classification \(guessed; --task changes it\): no \(\d+\), yes \(\d+\)",
        r"On 80 rows that no model has seen",
        r"shape tree +9\d\.\d %",
        r"CART +\d+\.\d %",
        r"most common class +\d+\.\d % +50\.0 %",
        r"training rows\nPredicts busy; accuracy 9\d\.\d % on 80 unseen rows\nhour  \[320 rows",
        r"Nothing was written",
    ):
        assert re.search(words, shown), words


def test_fit_for_machines(folder):
    arguments = ["fit", folder / "shop.csv", "-t", "visitors", "--ignore", "busy", "--json"]
    result = run(*arguments, "--depth", "2", "-o", folder / "json.json")
    report = json.loads(result.stdout)
    assert result.stderr.splitlines() == [f"note: {note}" for note in report["notes"]]
    assert report["task"] == "regression"
    assert report["rows"] == {"all": 400, "train": 320, "test": 80, "stratified": False}
    assert report["written"] == [str(folder / "json.json")]
    assert report["fitted_on"] == "the 320 training rows"
    by_name = {column["name"]: column for column in report["columns"]}
    assert by_name["degrees"]["n_missing"] == 57
    assert by_name["day"]["reason"] is None
    tree, cart, mean = report["scores"]
    assert tree["scores"]["r2"] > cart["scores"]["r2"] > mean["scores"]["r2"]
    assert tree["scores"]["mean_absolute_error"] < cart["scores"]["mean_absolute_error"]
    assert tree["depth"] == cart["depth"] == 2


def test_the_scores_are_those_of_the_written_model_on_rows_it_has_not_seen(tmp_path):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X.assign(y=y).to_csv(tmp_path / "data.csv", index=False)
    arguments = ["fit", tmp_path / "data.csv", "-t", "y", "--json", "-o", tmp_path / "model.json"]
    report = json.loads(succeed(*arguments, "--test-size", "0.3", "--depth", "3"))
    model = from_json(tmp_path / "model.json")
    assert view_rows(model) == report["rows"]["train"] == 398
    n_right = (model.predict(X) == y).sum() - round(
        398 * json.loads(succeed("inspect", tmp_path / "model.json", "--json"))["training_score"]
    )
    assert report["scores"][0]["scores"]["accuracy"] == pytest.approx(n_right / 171)
    held_out = json.loads((tmp_path / "model.json").read_text())["held_out"]
    assert sum(leaf["rows"] for leaf in held_out.pop("leaves")) == 171
    assert held_out == {"rows": 171, "scores": report["scores"][0]["scores"]}


def view_rows(model):
    return int(model.tree_.n_node_samples[0])


def test_refitting_takes_all_rows_and_says_so(folder, tmp_path):
    arguments = ["fit", folder / "shop.csv", "-t", "busy", "-o", tmp_path / "model.json"]
    shown = succeed(*arguments, "--refit-all")
    assert "the tree of all 400 rows" in shown
    assert "On 80 rows that no model has seen" in shown
    assert view_rows(from_json(tmp_path / "model.json")) == 400


def test_without_test_rows_the_scores_are_said_to_be_of_the_training_rows(folder):
    shown = succeed("fit", folder / "shop.csv", "-t", "busy", "--test-size", "0")
    assert "On the training rows, which says little" in shown


def test_parameters_reach_the_estimator(folder, tmp_path):
    arguments = ["fit", folder / "shop.csv", "-t", "busy", "--json", "--pairs", "auto"]
    report = json.loads(
        succeed(
            *arguments,
            *("--depth", "1", "--branches", "2", "--seed", "3"),
            *(
                "--param",
                "max_bins=None",
                "--param",
                "search__criterion=gini",
                "--param",
                "ccp_alpha=0.1",
            ),
        )
    )
    expected = {
        "max_depth": 1,
        "max_branches": 2,
        "pairs": "auto",
        "random_state": 3,
        "max_bins": None,
        "search__criterion": "gini",
        "ccp_alpha": 0.1,
    }
    assert report["parameters"].items() >= expected.items()


def test_columns_can_be_forced(folder):
    arguments = ["fit", folder / "shop.csv", "-t", "visitors", "--json", "--ignore", "busy,open"]
    report = json.loads(succeed(*arguments, "--categorical", "hour", "--keep", "name,id"))
    kinds = {column["name"]: column["type"] for column in report["columns"]}
    assert kinds["hour"] == kinds["name"] == "category"
    assert kinds["id"] == "whole number"
    assert kinds["open"] == "ignored: as you asked"


def test_the_task_can_be_forced(tmp_path):
    iris = load_iris(as_frame=True).frame
    iris.to_csv(tmp_path / "iris.csv", index=False)
    arguments = ["fit", tmp_path / "iris.csv", "-t", "target", "--json"]
    assert json.loads(succeed(*arguments))["task"] == "classification"
    assert json.loads(succeed(*arguments, "--task", "regression"))["task"] == "regression"


def test_csv_and_parquet_give_the_same_tree(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=200),
            "b": rng.choice(["x", "y", None], 200),
            "c": pd.array(rng.integers(0, 5, 200), "Int64"),
            "d": rng.random(200) < 0.5,
            "when": pd.date_range("2024-01-01", periods=200),
        }
    )
    frame.loc[::11, "c"] = pd.NA
    frame["y"] = (frame.a > 0).astype(int) + (frame.b == "x")
    frame.to_csv(tmp_path / "data.csv", index=False)
    frame.to_parquet(tmp_path / "data.parquet")
    models = []
    for ending in ("csv", "parquet"):
        output = tmp_path / f"{ending}.json"
        shown = succeed("fit", tmp_path / f"data.{ending}", "-t", "y", "-o", output)
        assert re.search(r"when +date", shown)
        models.append(output)
    assert models[0].read_text() == models[1].read_text()
    predictions = {
        succeed("predict", model, tmp_path / f"data.{ending}", "--only")
        for model in models
        for ending in ("csv", "parquet")
    }
    assert len(predictions) == 1


def test_all_files_of_a_fit(folder, tmp_path):
    names = ["model.json", "report.html", "tree.svg"]
    model, page, picture = (tmp_path / name for name in names)
    arguments = ["fit", folder / "shop.csv", "-t", "busy", "--depth", "2"]
    shown = succeed(*arguments, "-o", model, "--html", page, "--plot", picture)
    assert "report.html" in shown
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    assert "<title>busy in shop.csv</title>" in page.read_text(encoding="utf-8")
    assert "<svg" in picture.read_text(encoding="utf-8")


def test_rows_without_a_target_are_left_out(tmp_path):
    lines = ["x,y", *(f"{i},{'' if i % 5 == 0 else i % 2}" for i in range(0, 200, 3))]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    result = run("fit", tmp_path / "data.csv", "-t", "y")
    assert "note: 14 rows are left out, as the target is missing there" in result.stderr
    assert result.exit_code == 0


def test_rare_classes_do_not_stop_the_split(tmp_path):
    lines = ["x,y", *(f"{i * 7 % 50},{'ab'[i % 2]}" for i in range(50)), "3,c"]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    report = json.loads(succeed("fit", tmp_path / "data.csv", "-t", "y", "--json"))
    assert report["rows"]["stratified"] is False


def visits(tmp_path, n_rows=200):
    """A file of visits: a patient, a day and a place each, in no order."""
    rng = np.random.default_rng(0)
    lines = ["patient,day,place,x,y"]
    for i in rng.permutation(n_rows):
        place = "east" if i % 10 == 0 else "west"
        lines.append(f"p{i // 8},{i // 4},{place},{rng.normal():.3f},{'ab'[i % 2]}")
    (tmp_path / "visits.csv").write_text("\n".join(lines))
    return tmp_path / "visits.csv", pd.read_csv(tmp_path / "visits.csv")


def split_of(path, table, by, monkeypatch):
    """The rows that the command trains on and tests on."""
    from shapetree.cli import _fit

    found = []
    real = _fit.split_rows
    monkeypatch.setattr(_fit, "split_rows", lambda *given: found.append(real(*given)) or found[0])
    succeed("fit", path, "-t", "y", "--split", by, "--quiet")
    (split,) = found
    assert sorted([*split.train, *split.test]) == list(range(len(table)))
    return table.iloc[split.train], table.iloc[split.test]


def test_the_latest_rows_can_be_held_out(tmp_path, monkeypatch):
    path, table = visits(tmp_path)
    train, test = split_of(path, table, "time=day", monkeypatch)
    assert train["day"].max() < test["day"].min()
    assert len(test) == 40


def test_whole_groups_can_be_held_out(tmp_path, monkeypatch):
    path, table = visits(tmp_path)
    train, test = split_of(path, table, "group=patient", monkeypatch)
    assert not set(train["patient"]) & set(test["patient"])
    assert len(test) == 40


def test_a_share_of_each_value_can_be_held_out(tmp_path, monkeypatch):
    path, table = visits(tmp_path)
    _, test = split_of(path, table, "stratum=place", monkeypatch)
    assert test["place"].value_counts().to_dict() == {"west": 36, "east": 4}


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("day", "--split takes time=NAME, group=NAME or stratum=NAME"),
        ("era=day", "--split takes time=NAME"),
        ("time=dya", "--split names 'dya'"),
        ("time=place", "needs dates or numbers"),
        ("stratum=x", "needs at least 2 rows of each value"),
    ],
)
def test_splits_that_cannot_be_made_are_refused(tmp_path, by, words):
    path, _ = visits(tmp_path)
    result = run("fit", path, "-t", "y", "--split", by)
    assert result.exit_code != 0
    assert words in " ".join(result.stderr.split())


def test_cart_gets_what_the_tree_reads():
    from shapetree.cli._fit import _for_cart

    days = ["2024-01-02", "2024-01-01", None, "2024-01-03"]
    X = pd.DataFrame(
        {
            "number": [1.0, np.inf, np.nan, 2.0],
            "category": pd.Categorical(["b", "a", None, "new"]),
            "truth": [True, False, True, True],
            "day": pd.to_datetime(days),
        }
    )
    expected = [
        [1, 1, 1, 86_400],
        [np.finfo(np.float32).max, 0, 0, 0],
        [np.nan, np.nan, 1, np.nan],
        [2, np.nan, 1, 2 * 86_400],
    ]
    np.testing.assert_array_equal(_for_cart(X, np.arange(3)), expected)


# --- reading files ---


def kinds_of(path, **options):
    return {column.name: column for column in read_columns(read_file(path, **options))}


@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        (["1", "2", "NA"], Kind.WHOLE, [1, 2, None]),
        (["1.0", "2", "?"], Kind.NUMBER, [1, 2, None]),
        (["1e3", "-.5", "+2"], Kind.NUMBER, [1000, -0.5, 2]),
        (["inf", "1", "-inf"], Kind.NUMBER, [np.inf, 1, -np.inf]),
        (['"1,500"', '"22,000.5"', "7"], Kind.NUMBER, [1500, 22000.5, 7]),
        (["01", "02", "13"], Kind.CATEGORY, ["01", "02", "13"]),
        (["0", "0.5", "10"], Kind.NUMBER, [0, 0.5, 10]),
        (["true", "FALSE", ""], Kind.BOOLEAN, [True, False, None]),
        (["yes", "no", " yes "], Kind.CATEGORY, ["yes", "no", "yes"]),
        (["1", "2", "two"], Kind.CATEGORY, ["1", "2", "two"]),
        (['"a, b"', '"a ""b"""', '"a\nb"'], Kind.CATEGORY, ["a, b", 'a "b"', "a\nb"]),
        (["9" * 30, "1", "2"], Kind.NUMBER, [1e30, 1, 2]),
    ],
)  # fmt: skip
def test_values_of_cells(tmp_path, cells, kind, values):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "\n".join(f"{cell},{i}" for i, cell in enumerate(cells)))
    column = kinds_of(path)["x"]
    assert column.kind is kind
    assert [None if pd.isna(value) else value for value in column.values] == values


@pytest.mark.parametrize("cells", [
    ["2024-01-31", "2024-02-01"], ["31.1.2024", "1.2.2024"], ["01/31/2024", "02/01/2024"],
])  # fmt: skip
def test_dates_are_known(tmp_path, cells):
    path = tmp_path / "data.csv"
    path.write_text("x,y\n" + "\n".join(f"{cell},{i}" for i, cell in enumerate(cells)))
    column = kinds_of(path)["x"]
    assert column.reason is None
    assert list(column.values) == [pd.Timestamp("2024-01-31"), pd.Timestamp("2024-02-01")]


def test_dates_that_can_be_read_in_two_ways_are_left_out(tmp_path):
    path = tmp_path / "data.csv"
    cells = ["01/02/2024", "03/04/2024"] * 20
    rows = [f"{cell},{i % 7},{i % 2}" for i, cell in enumerate(cells)]
    path.write_text("\n".join(["when,x,y", *rows]))
    result = run("fit", path, "-t", "y")
    assert re.search(r"when +ignored: dates that can be read in two ways", result.stdout)
    assert "when: these dates are ambiguous; write them as" in result.stderr


def test_a_model_of_dates_reads_dates(tmp_path):
    days = pd.date_range("2024-01-01", periods=200)
    frame = pd.DataFrame({"when": days, "x": range(200, 0, -1), "late": days > "2024-05-01"})
    frame.sample(frac=1, random_state=0).to_csv(tmp_path / "data.csv", index=False)
    model = tmp_path / "model.json"
    shown = succeed("fit", tmp_path / "data.csv", "-t", "late", "--ignore", "x", "-o", model)
    assert re.search("≥ 2024-05-0[12]: true|≥ 2024-05-0[12]: True", shown)
    assert re.search(r"when +date", succeed("inspect", model))
    said = succeed("explain", model, "--set", "when=2024-06-01")
    assert re.search(r"because when ≥ 2024-05-0\d", said)
    assert "instead of 2024-06-01" in said
    line = fail("explain", model, "--set", "when=summer")
    assert "column when must hold dates (2024-12-31), as in training, but has summer" in line


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_separators_and_decimal_commas(tmp_path, separator):
    path = tmp_path / "data.csv"
    rows = ['"a; b,c"|x|y'.replace("|", separator), "1,5|1.000,25|a", "2|7|b"]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(rows).replace("|", separator).encode())
    columns = kinds_of(path)
    assert list(columns) == ["a; b,c", "x", "y"]
    assert list(columns["a; b,c"].values) == [1.5, 2]
    assert list(columns["x"].values) == [1000.25, 7]


def test_encodings(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes("größe,y\n1,ä\n2,ö\n".encode("latin-1"))
    assert list(kinds_of(path, encoding="latin-1")) == ["größe", "y"]
    assert "line 1" in fail("fit", path, "-t", "y")
    assert "--encoding" in fail("fit", path, "-t", "y", "--encoding", "klingon", code=2)


def test_columns_without_a_name_get_a_number(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(",x,\n1,2,3\n4,5,6\n")
    assert list(kinds_of(path)) == ["column 1", "x", "column 3"]


def test_a_first_line_of_data_is_mentioned(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("\n".join(f"{i * 7 % 30},{i % 2}.0" for i in range(60)))
    assert "looks like data" in run("fit", path, "-t", "0.0").stderr


def test_many_categories_are_mentioned(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("who,y\n" + "\n".join(f"p{i // 2 * (i > 20)},{i % 2}" for i in range(300)))
    result = run("fit", path, "-t", "y", "--test-size", "0")
    assert result.exit_code == 0
    pd.DataFrame({"who": [f"p{i * 4 // 5}" for i in range(300)], "y": np.arange(300) % 2}).to_csv(
        path
    )
    assert "if these identify rows, use --ignore" in run("fit", path, "-t", "y").stderr


def test_a_typing_error_among_numbers_is_mentioned(tmp_path):
    frame = shop_rows(100).astype({"hour": object, "visitors": object})
    frame.loc[7, "hour"] = "1O"
    frame.loc[9, "visitors"] = "12..5"
    frame.to_csv(tmp_path / "data.csv", index=False)
    result = run("fit", tmp_path / "data.csv", "-t", "busy", "--ignore", "visitors")
    said = " ".join(result.stderr.split())
    assert "hour is a category only because of 1O; to use it as a number, put numbers" in said
    assert "use --categorical hour" in said
    assert "only because of 12..5" in fail("fit", tmp_path / "data.csv", "-t", "visitors")


def test_numbers_of_too_many_digits_are_no_numbers(tmp_path):
    frame = shop_rows(100).assign(customer=[2**60 + i // 2 for i in range(100)])
    frame.to_csv(tmp_path / "data.csv", index=False)
    result = run("fit", tmp_path / "data.csv", "-t", "busy", "-o", tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text())
    kinds = {feature["name"]: feature["kind"] for feature in model["features"]}
    assert kinds.get("customer", "category") == "category"
    assert "customer" in result.stderr + result.stdout


# --- predict ---


def test_predict_adds_columns_to_those_of_the_file(folder, tmp_path):
    output = tmp_path / "out.csv"
    shown = succeed("predict", folder / "busy.json", folder / "shop.csv", "--proba", "-o", output)
    assert re.search(r"400 rows, no \(\d+\), yes \(\d+\)", shown)
    given = pd.read_csv(folder / "shop.csv", dtype=str, keep_default_na=False)
    made = pd.read_csv(output, dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(made[given.columns], given)
    assert list(made.columns[-3:]) == ["prediction", "p(no)", "p(yes)"]
    likely = made["p(yes)"].astype(float) > 0.5
    assert (likely == (made.prediction == "yes")).all()


def test_predict_finds_columns_by_name(folder, tmp_path):
    whole = succeed("predict", folder / "busy.json", folder / "shop.csv", "--only")
    rows = pd.read_csv(folder / "shop.csv", dtype=str, keep_default_na=False)
    used = json.loads(succeed("inspect", folder / "busy.json", "--json"))["features"]
    names = [feature["name"] for feature in used if feature["importance"]]
    assert 0 < len(names) < len(used)
    rows.assign(extra="?")[["extra", *names[::-1]]].to_csv(tmp_path / "less.csv", index=False)
    assert succeed("predict", folder / "busy.json", tmp_path / "less.csv", "--only") == whole


def test_predict_gives_what_the_model_gives(folder):
    report = json.loads(succeed("predict", folder / "visitors.json", folder / "shop.csv", "--json"))
    given = shop_rows()
    given["weather"] = given.weather.replace("", None)
    given["degrees"] = pd.to_numeric(given.degrees, errors="coerce")
    given["open"] = given.open == "TRUE"
    model = from_json(folder / "visitors.json")
    expected = model.predict(given[list(model.feature_names_in_)])
    assert report["predictions"] == expected.tolist()


def test_predict_writes_parquet_and_keeps_an_older_prediction(folder, tmp_path):
    once, twice = tmp_path / "once.parquet", tmp_path / "twice.parquet"
    succeed("predict", folder / "busy.json", folder / "shop.csv", "-o", once)
    succeed("predict", folder / "busy.json", once, "-o", twice)
    frame = pd.read_parquet(twice)
    assert list(frame.columns[-2:]) == ["prediction", "prediction (2)"]
    assert (frame["prediction"] == frame["prediction (2)"]).all()


def test_categories_of_models_made_in_python_are_found(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "flag": rng.random(80) < 0.5,
            "code": pd.Categorical(rng.integers(1, 4, 80)),
            "text": rng.choice([" ?", " NA", "plain"], 80),
        }
    )
    y = X.flag * 4 + X.code.astype(int) + 20 * (X.text == " ?") + 40 * (X.text == " NA")
    model = ShapeTreeClassifier(
        max_depth=4, search=SearchOptions(leaf_penalty=0, segment_penalty=0)
    ).fit(X, y)
    model.to_json(tmp_path / "model.json")
    X.to_csv(tmp_path / "data.csv", index=False)
    result = run("predict", tmp_path / "model.json", tmp_path / "data.csv", "--json")
    assert json.loads(result.stdout)["predictions"] == model.predict(X).tolist()
    assert result.stderr == ""


def test_models_without_names_know_columns_by_place(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = ShapeTreeClassifier(max_depth=2).fit(X, y)
    model.to_json(tmp_path / "model.json")
    pd.DataFrame(X, columns=list("abcd")).to_csv(tmp_path / "data.csv", index=False)
    report = json.loads(
        succeed("predict", tmp_path / "model.json", tmp_path / "data.csv", "--json")
    )
    assert report["predictions"] == model.predict(X).tolist()


def test_new_categories_are_mentioned(folder, tmp_path):
    rows = shop_rows(20).assign(weather="hail")
    rows.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", folder / "visitors.json", tmp_path / "new.csv", "--only")
    assert "has not seen and treats as missing: hail" in result.stderr
    assert result.exit_code == 0


# --- explain, plot, export, inspect ---


def test_explain_a_row_all_rows_and_a_row_typed_in(folder):
    model, data = folder / "visitors.json", folder / "shop.csv"
    one = succeed("explain", model, data, "--row", "2")
    assert re.match(r"Predicted .* because .*\nIt would be ", one)
    every = succeed("explain", model, data)
    assert f"Row 2: {one.splitlines()[0]}\n" in every
    assert every.count("Predicted") == 400
    result = run("explain", model, "--set", "hour=8", "--set", "weather=hail")
    assert "because hour in (7, 8]" in result.stdout
    assert "the model has not seen and treats as missing: hail" in result.stderr
    result = run("explain", model, "--set", "hour=8")
    assert "not given, so treated as missing: weather" in result.stderr


def test_explain_what_if(folder):
    arguments = ["explain", folder / "visitors.json", folder / "shop.csv", "--row", "1", "--json"]
    (before,) = json.loads(succeed(*arguments))["explanations"]
    flip = before["flip"]
    change = f"{flip['feature']}={flip['shown']}"
    (after,) = json.loads(succeed(*arguments, "--set", change))["explanations"]
    assert before["row"] == 1
    assert after["leaf"] == flip["leaf"] != before["leaf"]
    assert after["sentence"].startswith("Predicted ")


def test_explain_takes_wishes(folder):
    arguments = ["explain", folder / "visitors.json", folder / "shop.csv", "--row", "1", "--json"]
    (usual,) = json.loads(succeed(*arguments))["explanations"]
    feature = usual["flip"]["feature"]
    (kept,) = json.loads(succeed(*arguments, "--fixed", feature))["explanations"]
    assert kept["flip"] is None or feature not in {c["feature"] for c in kept["flip"]["changes"]}
    (none,) = json.loads(succeed(*arguments, "--only", feature, "--fixed", feature))["explanations"]
    assert none["flip"] is None
    (up,) = json.loads(succeed(*arguments, "--direction", "hour=up"))["explanations"]
    if up["flip"] is not None and up["flip"]["feature"] == "hour":
        assert up["flip"]["new"] > up["flip"]["old"]
    target = usual["prediction"] + 5
    (more,) = json.loads(succeed(*arguments, "--target", f"{target}:"))["explanations"]
    assert more["flip"] is None or float(more["flip"]["outcome"].split(" ")[0]) >= target - 1


@pytest.mark.parametrize(
    ("name", "start", "options"),
    [
        ("tree.png", b"\x89PNG", []),
        ("tree.svg", b"<?xml", ["--max-depth", "1", "--title", "Shop"]),
        ("node.pdf", b"%PDF", ["--node", "0"]),
        ("part.PNG", b"\x89PNG", ["--from", "1"]),
    ],
)
def test_plot(folder, tmp_path, name, start, options):
    path = tmp_path / name
    assert succeed("plot", folder / "visitors.json", "-o", path, *options) == f"Wrote {path}\n"
    assert path.read_bytes().startswith(start)


def test_export_to_code_that_predicts_the_same(folder, tmp_path):
    rows = pd.read_csv(folder / "shop.csv", dtype=str, keep_default_na=False)
    expected = list(csv.reader(
        succeed("predict", folder / "busy.json", folder / "shop.csv", "--only").splitlines()[1:]
    ))  # fmt: skip
    sql = succeed("export", folder / "busy.json", "--to", "sql", "--dialect", "sqlite")
    with sqlite3.connect(":memory:") as connection:
        used = pd.DataFrame({"hour": rows.hour.astype(int), "weather": rows.weather})
        used["degrees"] = pd.to_numeric(rows.degrees, errors="coerce")
        used["weather"] = used.weather.replace("", None)
        used["open"], used["post code"] = rows.open == "TRUE", rows["post code"]
        used.to_sql("shop", connection, index=False)
        assert [list(row) for row in connection.execute(f"SELECT {sql} FROM shop")] == expected


@pytest.mark.parametrize(
    ("name", "piece"),
    [
        ("tree.sql", "CASE"),
        ("tree.py", "def predict"),
        ("tree.js", "predict"),
        ("tree.dot", "digraph"),
        ("tree.txt", "├─"),
        ("tree.html", "<!doctype html>"),
        ("tree.json", "shapetree-model"),
    ],
)
def test_export_by_the_ending_of_the_file(folder, tmp_path, name, piece):
    path = tmp_path / name
    succeed("export", folder / "busy.json", "-o", path)
    assert piece in path.read_text(encoding="utf-8")


def test_export_to_onnx(folder, tmp_path):
    onnx = pytest.importorskip("onnx")
    succeed("export", folder / "visitors.json", "-o", tmp_path / "tree.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "tree.onnx"))


def test_export_passes_options_on(folder):
    page = succeed("export", folder / "busy.json", "--to", "html", "--option", "title=Busy hours")
    assert "<title>Busy hours</title>" in page


def test_inspect(folder):
    shown = succeed("inspect", folder / "visitors.json", "--rules", "--tree")
    for words in (
        r"visitors.json: regression of visitors, \d+\.\d kB",
        r"leaves, depth 2, \d splits, from 320 training rows",
        r"R² 0\.\d+ on 80 unseen rows, training R² 0\.\d+",
        r"Parameters: max_depth=2, random_state=0",
        r"hour +whole number +\d+ % +\d",
        r"weather +3 categories +\S+( %)? +\S+ +rain, snow, wind, sun",
        r"• if .* then .* rows, support",
        r"├─ ",
    ):
        assert re.search(words, shown), words
    report = json.loads(succeed("inspect", folder / "busy.json", "--rules", "--json"))
    assert report["classes"] == [["no", "yes"]]
    assert len(report["rules"]) == report["leaves"]
    assert sum(rule["rows"] for rule in report["rules"]) == report["rows"] == 320
    assert sum(feature["importance"] for feature in report["features"]) == pytest.approx(1)


def test_demo(tmp_path):
    shown = succeed("demo", tmp_path / "demo")
    files = sorted(os.listdir(tmp_path / "demo"))
    assert {"model.json", "predictions.csv", "report.html", "tree.png", "wine.csv"} < set(files)
    assert shown.count("$ shapetree ") == 9
    report = json.loads(succeed("demo", tmp_path / "other", "--json"))
    assert report["files"] == files
    assert "not empty" in fail("demo", tmp_path / "demo")


# --- the same for all commands ---


def test_version_and_help():
    assert succeed("--version") == f"shapetree {__version__}\n"
    assert succeed() == succeed("--help")
    for command in COMMANDS:
        assert command.__name__ in succeed()


@pytest.mark.parametrize("command", ["", *(command.__name__ for command in COMMANDS)])
def test_help_has_examples_and_fits_80_columns(command):
    shown = succeed(*command.split(), "--help")
    assert f"For example:\n\n    shapetree {command}" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "..." not in shown.replace("[ARGS]...", "")
    if command:
        assert "--json" in shown
        assert "--debug" not in shown


def test_quiet_prints_nothing(folder, tmp_path):
    quiet = ["--quiet"]
    for arguments in (
        ["fit", folder / "shop.csv", "-t", "busy"],
        ["predict", folder / "busy.json", folder / "shop.csv", "-o", tmp_path / "out.csv"],
        ["plot", folder / "busy.json", "-o", tmp_path / "tree.svg"],
        ["inspect", folder / "busy.json"],
        ["demo", tmp_path / "demo"],
    ):
        result = run(*arguments, *quiet)
        assert (result.exit_code, result.output) == (0, "")


def test_json_is_one_document(folder, tmp_path):
    for arguments in (
        ["fit", folder / "shop.csv", "-t", "busy"],
        ["predict", folder / "busy.json", folder / "shop.csv", "--proba"],
        ["predict", folder / "busy.json", folder / "shop.csv", "-o", tmp_path / "out.csv"],
        ["explain", folder / "busy.json", folder / "shop.csv"],
        ["plot", folder / "busy.json", "-o", tmp_path / "tree.svg"],
        ["export", folder / "busy.json", "--to", "text"],
        ["export", folder / "busy.json", "-o", tmp_path / "tree.py"],
        ["inspect", folder / "busy.json"],
    ):
        assert isinstance(json.loads(succeed(*arguments, "--json")), dict)


def test_tables_give_way_where_names_are_long(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    headings = [Column("name", overflow="fold"), Column("n", justify="right", no_wrap=True)]
    Console().table([*headings, Column("e")], [["x" * 60, "1" * 9, "y" * 10]])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert "1" * 9 in lines[2]
    assert "".join(lines).count("x") == 60


def test_control_characters_of_the_data_do_not_reach_the_terminal(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("x\x1b[2J,y\n" + "\n".join(f"{i % 7},{i % 2}" for i in range(60)))
    assert "\x1b" not in succeed("fit", path, "-t", "y")
    assert "\x1b" not in fail("fit", path, "-t", "\x1b[2J")


def test_a_pipe_that_is_closed_ends_the_command(folder):
    command = f"{sys.executable} -m shapetree.cli explain busy.json shop.csv | true"
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True)
    assert done.stderr == ""


@pytest.mark.parametrize("module", ["typer", "rich", "pandas", "pyarrow"])
def test_without_the_extra_one_line_says_what_to_install(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == f"shapetree: error: {module} is missing; pip install 'shapetree[cli]'"


def test_shell_completion():
    variables = {"COMP_WORDS": "shapetree ex", "COMP_CWORD": "1"}
    result = run(env={"_SHAPETREE_COMPLETE": "complete_bash", **variables}, prog_name="shapetree")
    assert result.stdout.split() == ["explain", "export"]


# --- what can be wrong ---


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("missing.csv", None, "No such file"),
        ("empty.csv", b"", "is empty"),
        ("blank.csv", b"\n \n", "is empty"),
        ("names.csv", b"x,y\n", "no rows"),
        ("picture.csv", PNG, "it is a PNG picture"),
        ("book.csv", b"PK\x03\x04rest", "Excel workbook"),
        ("model.csv", b'{"format": 1}', "it is JSON"),
        ("binary.csv", b"x,y\n1,\0\n", "binary data"),
        ("wide.csv", "x,y\n1,2\n".encode("utf-16"), "UTF-16"),
        ("arrow.csv", b"PAR1rest", "a Parquet file; name it .parquet"),
        ("text.parquet", b"x,y\n1,2\n", "is not a Parquet file"),
        ("cut.parquet", b"PAR1" + bytes(100), "damaged Parquet file"),
        ("long.csv", b'x,y\n1,"a\nb"\n3,4,5\n', "line 4: 3 values, but there are 2 columns"),
        ("short.csv", b"x,y\n1,2\n\n3\n", "line 4: 1 value, but there are 2 columns"),
        ("open.csv", b'x,y\n1,2\n3,"4\n5,6\n', "a quote is never closed"),
        ("twice.csv", b"x,y,x\n1,2,3\n", "columns of the same name: x"),
        ("latin.csv", b"x,y\n1,2\n3,\xe4\n", "not in UTF-8 (line 3)"),
        ("few.csv", b"x,y\n1,2\n3,4\n", "only 2 rows"),
        ("folder.csv", "folder", "holds no .parquet file"),
    ],
)  # fmt: skip
def test_files_that_are_no_data(tmp_path, name, content, words):
    path = tmp_path / name
    if content == "folder":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    line = fail("fit", path, "-t", "y")
    assert words in line
    assert name in line or "rows" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-t", "bussy"], "no column 'bussy'; did you mean busy?"),
        (["-t", "country"], "the target country is always DE"),
        (["-t", "note"], "the target note holds no values"),
        (["-t", "day"], "the target day holds dates"),
        (["-t", "name"], "has 400 classes in 400 rows, which is too many"),
        (["-t", "weather", "--task", "regression"], "regression needs numbers"),
        (["-t", "visitors", "--task", "classification"], "try --task regression"),
        (["-t", "busy", "--ignore", "nothing"], "no column 'nothing'"),
        (["-t", "busy", "--ignore", "busy"], "both the target and ignored"),
        (["-t", "busy", "--ignore", "hour,weather,degrees,open,post code,day,visitors"], "no col"),
    ],
)  # fmt: skip
def test_data_that_nothing_can_be_learnt_from(folder, arguments, words):
    assert words in fail("fit", folder / "shop.csv", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "Missing option '--target'"),
        (["-t", "busy", "--depth", "0"], "--depth"),
        (["-t", "busy", "--depth", "deep"], "--depth"),
        (["-t", "busy", "--depth", str(10**21)], "--depth"),
        (["-t", "busy", "--nonsense"], "--nonsense"),
        (["-t", "busy", "--task", "guessing"], "--task"),
        (["-t", "busy", "--pairs", "some"], "--pairs must be auto, all or a number"),
        (["-t", "busy", "--pairs", "²"], "--pairs must be auto, all or a number"),
        (["-t", "busy", "--pairs", "9" * 5000], "--pairs must be auto, all or a number"),
        (["-t", "busy", "--seed", str(2**32)], "--seed"),
        (["-t", "busy", "--encoding", "base64"], "--encoding 'base64' is unknown"),
        (["-t", "busy", "--encoding", "rot13"], "--encoding 'rot13' is unknown"),
        (["-t", "busy", "--test-size", "0.001"], "leaves too few"),
        (["-t", "busy", "--param", "depth"], "--param takes name=value"),
        (["-t", "busy", "--param", "depth=3"], "--param depth: a shape tree has no such parameter"),
        (["-t", "visitors", "--param", "class_weight=balanced"], "has no parameter class_weight"),
        (["-t", "busy", "--param", "max_bins=1"], "max_bins"),
        (["-t", "busy", "--separator", "--"], "--separator must be a single character"),
        (["-t", "busy", "--plot", "tree.gif"], "must end in .png or .svg or .pdf"),
        (["-t", "busy", "-o", "same", "--html", "same"], "two outputs have this name"),
    ],
)
def test_wrong_usage_of_fit(folder, arguments, words):
    assert words in fail("fit", folder / "shop.csv", *arguments, code=2)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["nonsense"], "No such command 'nonsense'", 2),
        (["predict", "busy.json"], "Missing argument 'DATA'", 2),
        (["predict", "none.json", "shop.csv"], "there is no such file", 1),
        (["predict", "shop.csv", "shop.csv"], "not a shapetree model", 1),
        (["predict", "picture.json", "shop.csv"], "picture.json", 1),
        (["predict", "half.json", "shop.csv"], "not a shapetree model", 1),
        (["predict", "busy.json", "other.csv"], "that the model needs: hour", 1),
        (["predict", "visitors.json", "words.csv"], "must hold numbers, but row 3 has 'late'", 1),
        (["predict", "visitors.json", "shop.csv", "--proba"], "--proba is for classes", 2),
        (["predict", "busy.json", "shop.csv", "-o", "shop.csv"], "it is read by this", 2),
        (["predict", "busy.json", "shop.csv", "-o", "out.xlsx"], "must end in .csv", 2),
        (["explain", "busy.json"], "name a file, or type a row in", 2),
        (["explain", "busy.json", "--row", "1"], "name a file", 2),
        (["explain", "busy.json", "shop.csv", "--fixed", "hours"], "--fixed names 'hours'", 2),
        (
            ["explain", "busy.json", "shop.csv", "--target", "may be"],
            "one of the classes no, yes",
            2,
        ),
        (["explain", "visitors.json", "shop.csv", "--target", "many"], "a number or a range", 2),
        (["explain", "visitors.json", "shop.csv", "--target", "1:2:3"], "a number or a range", 2),
        (["explain", "busy.json", "shop.csv", "--direction", "hour=on"], "'up' or 'down'", 2),
        (["explain", "busy.json", "--set", "hour=1", "--row", "1"], "--row needs a file", 2),
        (["explain", "busy.json", "shop.csv", "--set", "hour=1"], "needs --row", 2),
        (["explain", "busy.json", "shop.csv", "--row", "401"], "there is no row 401", 1),
        (["explain", "busy.json", "shop.csv", "--row", "0"], "--row", 2),
        (["explain", "busy.json", "--set", "hours=1"], "no feature hours", 1),
        (["explain", "busy.json", "--set", "hour=noon"], "must hold numbers", 1),
        (["evaluate", "busy.json", "other.csv", "--target", "c"], "has no column c", 1),
        (["evaluate", "nameless.json", "shop.csv"], "give it with --target", 2),
        (["evaluate", "two.json", "shop.csv"], "has 2 targets; use it from Python", 1),
        (["plot", "busy.json"], "--output", 2),
        (["plot", "busy.json", "-o", "tree.png", "--node", "99"], "99", 1),
        (["plot", "busy.json", "-o", "a.png", "--node", "0", "--from", "1"], "--node draws", 2),
        (["export", "busy.json"], "choose a format", 2),
        (["export", "busy.json", "-o", "tree.xyz"], "cannot tell the format", 2),
        (["export", "busy.json", "--to", "cobol"], "--to", 2),
        (["export", "busy.json", "--to", "onnx"], "ONNX is binary", 2),
        (["export", "busy.json", "--to", "sql", "--dialect", "basic"], "dialect must be", 2),
        (["export", "busy.json", "--to", "dot", "--dialect", "sqlite"], "has no option", 2),
        (["export", "busy.json", "--to", "text", "--option", "digits=0"], "digits", 2),
        (["inspect", "shop.csv"], "not a shapetree model", 1),
        (["demo", "shop.csv"], "is not a folder", 1),
    ],
)
def test_what_other_commands_refuse(folder, monkeypatch, arguments, words, code):
    (folder / "picture.json").write_bytes(PNG)
    (folder / "half.json").write_text((folder / "busy.json").read_text()[:500])
    (folder / "other.csv").write_text("a,b\n1,2\n")
    X = np.arange(20.0)[:, None]
    ShapeTreeRegressor().fit(X, X[:, 0]).to_json(folder / "nameless.json")
    ShapeTreeRegressor().fit(X, np.hstack([X, -X])).to_json(folder / "two.json")
    shop_rows(5).assign(hour=["1", "2", "late", "4", "5"]).to_csv(folder / "words.csv", index=False)
    monkeypatch.chdir(folder)
    before = sorted(os.listdir(folder))
    assert words in fail(*arguments, code=code)
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("nowhere/model.json", "there is no folder"),
        (".", "it is a folder"),
        (os.devnull, "not an ordinary file"),
        ("shop.csv/model.json", "there is no folder"),
    ],
)
@pytest.mark.parametrize("command", ["fit", "export"])
def test_outputs_are_checked_before_the_work_starts(folder, monkeypatch, command, place, words):
    monkeypatch.chdir(folder)
    reader = "_fit.read_file" if command == "fit" else "_show.read_model"
    monkeypatch.setattr(f"shapetree.cli.{reader}", 0)
    given = ["shop.csv", "-t", "busy"] if command == "fit" else ["busy.json", "--to", "text"]
    assert words in fail(command, *given, "-o", place)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(folder, tmp_path):
    tmp_path.chmod(0o500)
    assert "Permission denied" in fail("plot", folder / "busy.json", "-o", tmp_path / "tree.png")


def test_a_failed_command_leaves_an_older_file_alone(folder, tmp_path):
    output = tmp_path / "model.json"
    output.write_text("older")
    fail("fit", folder / "shop.csv", "-t", "country", "-o", output)
    assert output.read_text() == "older"


def test_unexpected_errors_are_one_line_unless_debugging(folder, monkeypatch):
    def stumble(*arguments, **options):
        raise RuntimeError("on\ntwo lines")

    monkeypatch.setattr("shapetree.cli._fit.split_rows", stumble)
    arguments = ["fit", folder / "shop.csv", "-t", "busy"]
    line = fail(*arguments)
    assert line == "unexpected RuntimeError: on two lines (--debug shows where)"
    assert "Traceback" in run(*arguments, "--debug").stderr


# --- on a terminal ---

terminal = pytest.mark.skipif(
    os.name == "nt" or find_spec("pexpect") is None, reason="needs pexpect and a POSIX terminal"
)


def spawn(arguments, cwd, **environment):
    import pexpect

    env = {**os.environ, "TERM": "xterm-256color", **environment}
    env = {name: value for name, value in env.items() if value is not None}
    return pexpect.spawn(
        sys.executable,
        ["-m", "shapetree.cli", *map(str, arguments)],
        cwd=str(cwd),
        env=env,
        dimensions=(24, 80),
        encoding="utf-8",
        timeout=60,
    )


def lines_on(screen):
    """Lines as they end up on the screen, without escape codes."""
    return [
        ESCAPE.sub("", line.split("\r")[-1]) for line in screen.replace("\r\n", "\n").split("\n")
    ]


@terminal
def test_a_session_on_a_terminal_fits_it(folder):
    arguments = ["fit", "shop.csv", "-t", "visitors", "--ignore", "busy", "-o", "session.json"]
    child = spawn(arguments, folder, NO_COLOR=None)
    screen = child.read()
    child.close()
    assert child.exitstatus == 0
    assert "\x1b[1m" in screen
    assert "Fitting a tree to 320 rows" in screen
    lines = lines_on(screen)
    assert max(map(len, lines)) <= 80
    assert "Wrote session.json: the tree of the 320 training rows" in lines
    # The line that tells of progress is erased in the end.
    assert re.search(r"Fitting[^\n]*(\r|\x1b\[1A)*\x1b\[2K", screen.split("On 80 rows")[0])


@terminal
@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_without_colour_there_are_no_escape_codes(folder, environment):
    child = spawn(["fit", "shop.csv", "-t", "visitors"], folder, **environment)
    screen = child.read()
    assert "\x1b" not in screen
    assert "Fitting a tree to 320 rows …" in screen
    assert max(map(len, screen.splitlines())) <= 80


def test_pipes_get_no_escape_codes_and_old_encodings_question_marks(folder):
    arguments = [sys.executable, "-m", "shapetree.cli", "inspect", "visitors.json", "--tree"]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(arguments, cwd=folder, capture_output=True, check=True, env=env)
    assert b"unseen rows, training R? 0." in done.stdout
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


@pytest.fixture(scope="module")
def long_data(tmp_path_factory):
    path = tmp_path_factory.mktemp("long") / "long.parquet"
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((200_000, 12)), columns=[f"x{i}" for i in range(12)])
    frame.assign(y=rng.integers(0, 4, len(frame))).to_parquet(path)
    return path


@terminal
def test_ctrl_c_in_a_long_fit_leaves_no_file(long_data):
    arguments = ["fit", long_data.name, "-t", "y", "--pairs", "all", "--depth", "12"]
    child = spawn([*arguments, "-o", "model.json", "--html", "page.html"], long_data.parent)
    child.expect("Fitting a tree")
    child.expect("0:00:01")
    child.sendintr()
    rest = child.read()
    child.close()
    assert child.exitstatus == 130
    assert lines_on(rest)[-2:] == ["shapetree: interrupted; no file is half-written", ""]
    assert os.listdir(long_data.parent) == [long_data.name]


# Pipes, devices and spreadsheets


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX pipes")
def test_pipes_are_read_and_devices_refused(folder, tmp_path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with subprocess.Popen(f"cat '{folder / 'shop.csv'}' > '{pipe}'", shell=True):
        out = succeed("fit", pipe, "-t", "busy", "--json")
    assert json.loads(out)["data"] == str(pipe)
    with subprocess.Popen(f"echo 'a,a' > '{pipe}'", shell=True):
        assert fail("fit", pipe, "-t", "a").startswith(
            f"{pipe} has several columns of the same name"
        )
    for device in ("/dev/zero", "/dev/null"):
        assert "it is a device" in fail("fit", device, "-t", "busy")
        assert "it is a device" in fail("predict", device, folder / "shop.csv")


def test_labels_that_a_spreadsheet_would_run_are_made_safe(tmp_path):
    labels = ["=1+1", "-x\x1b[2J", "@ok", "plain"]
    frame = pd.DataFrame({"x": np.arange(400) % 40, "y": np.repeat(labels, 10).tolist() * 10})
    ShapeTreeClassifier(max_branches=4).fit(frame[["x"]], frame["y"]).to_json(tmp_path / "m.json")
    frame[["x"]].to_csv(tmp_path / "x.csv", index=False)
    paths = tmp_path / "m.json", tmp_path / "x.csv"
    out = pd.read_csv(pd.io.common.StringIO(succeed("predict", *paths, "--only", "--proba")))
    assert set(out["prediction"]) == {"'=1+1", "'-x [2J", "'@ok", "plain"}
    assert "p('=1+1)" in out
    raw = succeed("predict", *paths, "--only", "--raw")
    assert {"=1+1", "@ok", "plain"} < set(raw.splitlines())
    succeed("predict", *paths, "-o", tmp_path / "out.parquet")
    assert set(pd.read_parquet(tmp_path / "out.parquet")["prediction"]) == set(labels)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes and links")
def test_outputs_keep_their_mode_follow_links_and_respect_read_only_files(folder, tmp_path):
    data = [folder / "shop.csv", "-t", "busy", "--depth", "1"]
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    succeed("fit", *data, "-o", link)
    assert link.is_symlink()
    assert real.read_text().startswith("{")
    assert real.stat().st_mode & 0o777 == 0o640
    real.chmod(0o440)
    assert "it is read-only" in fail("fit", *data, "-o", link)
    with pytest.raises(PermissionError, match="read-only"):
        from_json(link).to_json(real)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_while_the_command_starts_prints_no_traceback(tmp_path):
    slow = tmp_path / "numpy.py"
    slow.write_text("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)")
    done = subprocess.run(
        [sys.executable, "-c", "import runpy, sys; sys.orig_argv[1:] = ['-m', 'shapetree.cli'];"
         "runpy.run_module('shapetree.cli', run_name='__main__')"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.returncode != 0


def test_a_whole_session(tmp_path):
    """From a file of data to a report, as a user would do it."""
    diabetes = load_diabetes(as_frame=True, scaled=False)
    diabetes.frame.rename(columns={"target": "progression"}).to_csv(
        tmp_path / "diabetes.csv", index=False
    )

    def shapetree(*arguments):
        command = [sys.executable, "-m", "shapetree.cli", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    outputs = ["-o", "model.json", "--html", "report.html", "--plot", "tree.png"]
    shapetree("fit", "diabetes.csv", "-t", "progression", "--depth", "2", *outputs)
    out = shapetree("predict", "model.json", "diabetes.csv", "--only")
    assert len(out.splitlines()) == 443
    report = json.loads(shapetree("explain", "model.json", "diabetes.csv", "--row", "7", "--json"))
    assert report["explanations"][0]["prediction"] == float(out.splitlines()[7])
    assert {path.name for path in Path(tmp_path).iterdir()} == {
        "diabetes.csv",
        "model.json",
        "report.html",
        "tree.png",
    }
