"""The command on folders of Parquet files."""

import json

import numpy as np
import pandas as pd
import pytest

from shapetree import ShapeTreeClassifier, from_json, from_parquet

pytest.importorskip("typer")
pytest.importorskip("rich")

from test_cli import fail, succeed


@pytest.fixture
def folder(tmp_path):
    """Rows in three files, with a column that counts them and one that names them."""
    rng = np.random.default_rng(0)
    n_rows = 600
    rows = pd.DataFrame(
        {
            "number": np.arange(n_rows) + 7,
            "age": rng.integers(18, 90, n_rows),
            "town": rng.choice(["Ulm", "Bonn"], n_rows),
            "grade": rng.integers(1, 5, n_rows),
            "email": [f"{i}@example.org" for i in range(n_rows)],
        }
    )
    rows["leaves"] = np.where((rows["age"] > 40) ^ (rows["town"] == "Ulm"), "yes", "no")
    folder = tmp_path / "rows"
    folder.mkdir()
    for number in range(3):
        part = rows[200 * number : 200 * (number + 1)]
        part.to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def test_a_folder_is_fitted_and_predicted(folder, tmp_path):
    model, predictions = tmp_path / "model.json", tmp_path / "predictions.parquet"
    said = succeed("fit", folder, "-t", "leaves", "-o", model)
    assert "600 rows, 6 columns" in said
    assert "ignored: counts the rows" in said
    assert "ignored: text, all different" in said
    assert "rows that no model has seen" in said
    assert "CART" not in said
    said = succeed("predict", model, f"{folder}/*.parquet", "-o", predictions, "--proba")
    assert "600 rows, yes (" in said
    read = pd.read_parquet(predictions)
    assert list(read)[-3:] == ["prediction", "p(no)", "p(yes)"]
    assert (read["prediction"] == read["leaves"]).mean() > 0.95
    succeed("predict", model, folder, "-o", predictions, "--only")
    assert list(pd.read_parquet(predictions)) == ["prediction"]


def test_a_folder_gives_the_tree_of_the_library(folder, tmp_path):
    model = tmp_path / "model.json"
    options = ("--test-size", 0, "--ignore", "grade", "-o", model)
    record = json.loads(succeed("fit", folder, "-t", "leaves", *options, "--json"))
    assert record["rows"] == {"all": 600, "train": 600, "test": 0, "stratified": False}
    assert record["scored_on"] == "training rows"
    data = from_parquet(folder, target="leaves", columns=["age", "town"])
    expected = ShapeTreeClassifier(max_depth=4, max_branches=3, random_state=0).fit(data)
    assert model.read_text() == expected.to_json()
    succeed("fit", folder, "-t", "leaves", *options, "--memory", "100B")
    assert model.read_text() == expected.to_json()


def test_numbers_of_a_folder_can_be_categories(folder, tmp_path):
    model = tmp_path / "model.json"
    options = ("--categorical", "grade", "--refit-all", "-o", model)
    assert "all 600 rows" in succeed("fit", folder, "-t", "leaves", *options)
    kinds = {f.name: f.is_categorical for f in from_json(model)._fitted.features}
    assert kinds == {"age": False, "town": True, "grade": True}


def test_columns_of_many_rows_are_described_by_a_sample(folder, monkeypatch):
    monkeypatch.setattr("shapetree.cli._fit.SAMPLE_ROWS", 200)
    said = succeed("fit", folder, "-t", "leaves")
    assert "Columns are described by a sample of " in said
    assert "ignored: counts the rows" in said


def test_what_is_wrong_with_a_folder_is_said(folder, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "holds no .parquet file" in fail("fit", empty, "-t", "leaves")
    assert "there is no file" in fail("fit", f"{empty}/*.parquet", "-t", "leaves")
    assert "has no column 'leave'; did you mean leaves?" in fail("fit", folder, "-t", "leave")
    bad = ("-t", "leaves", "--memory", "much")
    assert "--memory must be a number of bytes or a text" in fail("fit", folder, *bad, code=2)
    model = tmp_path / "model.json"
    succeed("fit", folder, "-t", "leaves", "-o", model)
    assert "name a Parquet file for their predictions" in fail("predict", model, folder, code=2)
    inside = folder / "predictions.parquet"
    assert "would be taken for data" in fail("predict", model, folder, "-o", inside, code=2)
    (folder / "1.parquet").write_bytes(b"PAR1")
    assert "1.parquet: " in fail("fit", folder, "-t", "leaves")
