"""The command reads and writes files of many formats, and standard input and output."""

import gzip
import io
import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import parquet
from test_cli import fail, run, succeed

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, from_json
from shapetree.cli import _fit, _reading
from shapetree.cli._reading import FileTable

GENERATOR = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "size": GENERATOR.normal(size=200).round(3),
        "kind": GENERATOR.choice(["x", "y", "z"], 200),
        "note": [f"n{i}" for i in range(200)],
    }
)
LABELS = pd.Series(np.where(TABLE["size"] > 0, TABLE["kind"], "none"), name="label")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    model = ShapeTreeClassifier().fit(TABLE[["size", "kind"]], LABELS)
    model.to_json(folder / "model.json")
    table = TABLE.assign(label=LABELS)
    table.to_csv(folder / "t.csv", index=False)
    table.to_csv(folder / "t.csv.gz", index=False)
    table.to_parquet(folder / "t.parquet")
    table.to_feather(folder / "t.feather")
    table.to_json(folder / "t.jsonl", orient="records", lines=True)
    with gzip.open(folder / "t.jsonl.gz", "wb") as file:
        file.write((folder / "t.jsonl").read_bytes())
    return folder


def predicted(folder):
    return from_json(folder / "model.json").predict(TABLE[["size", "kind"]]).tolist()


@pytest.mark.parametrize(
    "name", ["t.csv", "t.csv.gz", "t.parquet", "t.feather", "t.jsonl", "t.jsonl.gz"]
)
def test_files_of_all_formats_are_read(folder, name):
    out = succeed("predict", folder / "model.json", folder / name, "--only")
    assert out.split() == ["prediction", *predicted(folder)]
    stdin = (folder / name).read_bytes()
    assert succeed("predict", folder / "model.json", "-", "--only", input=stdin) == out
    assert "label" in succeed("fit", folder / name, "-t", "label")


def test_excel_workbooks_are_read(folder):
    pytest.importorskip("openpyxl")
    TABLE.assign(label=LABELS).to_excel(folder / "t.xlsx", index=False)
    out = succeed("predict", folder / "model.json", folder / "t.xlsx", "--only")
    assert out.split() == ["prediction", *predicted(folder)]


def test_a_column_of_several_types_in_a_workbook_is_text(folder):
    pytest.importorskip("openpyxl")
    kinds = TABLE["kind"].astype(object)
    kinds[::50], kinds[1::50] = 1, None
    TABLE.assign(kind=kinds).to_excel(folder / "mixed.xlsx", index=False)
    out = succeed("predict", folder / "model.json", folder / "mixed.xlsx", "--only")
    rows = TABLE[["size"]].assign(kind=[None if value is None else str(value) for value in kinds])
    expected = from_json(folder / "model.json").predict(rows)
    assert out.split() == ["prediction", *expected]


def test_a_dash_is_standard_input_and_output(folder):
    model, csv = (folder / "model.json").read_bytes(), folder / "t.csv"
    out = succeed("predict", folder / "model.json", csv)
    assert succeed("predict", "-", csv, "-o", "-", input=model) == out
    assert pd.read_csv(io.StringIO(out))["prediction"].tolist() == predicted(folder)
    text = succeed("export", folder / "model.json", "--to", "text", "-o", "-")
    assert "size" in text
    assert "only once" in fail("predict", "-", "-", code=2)


def test_predictions_may_be_compressed(folder):
    succeed("predict", folder / "model.json", folder / "t.csv", "-o", folder / "p.csv.gz")
    assert pd.read_csv(folder / "p.csv.gz")["prediction"].tolist() == predicted(folder)


def test_damaged_files_are_named(folder):
    (folder / "bad.csv.gz").write_bytes((folder / "t.csv.gz").read_bytes()[:50])
    assert "bad.csv.gz" in fail("predict", folder / "model.json", folder / "bad.csv.gz")
    (folder / "bad.feather").write_bytes(b"ARROW1" + bytes(100))
    assert "damaged Feather" in fail("predict", folder / "model.json", folder / "bad.feather")
    (folder / "bad.jsonl").write_text('{"size": 1}\n{"size": ')
    assert "damaged file of JSON" in fail("predict", folder / "model.json", folder / "bad.jsonl")
    result = run("predict", folder / "model.json", "-", input=b"size,kind\n1,x,3\n")
    assert "standard input, line 2" in result.stderr


def test_large_files_are_written_part_by_part(folder, monkeypatch):
    from shapetree.cli import _predict, _reading

    expected = succeed("predict", folder / "model.json", folder / "t.csv", "--proba")
    monkeypatch.setattr(_reading, "BLOCK", 500)
    monkeypatch.setattr(_predict, "ROWS_TOGETHER", 7)
    for name in ("t.csv", "t.parquet"):
        assert succeed("predict", folder / "model.json", folder / name, "--proba") == expected
    only = succeed("predict", folder / "model.json", folder / "t.csv", "--only")
    assert only.split()[1:] == predicted(folder)


def test_columns_that_have_types_are_written_as_they_are(folder, monkeypatch):
    from shapetree.cli import _predict

    rows = pa.Table.from_pandas(TABLE[["size", "kind"]], preserve_index=False)
    number = pa.array([None if i == 8 else 2**53 + i for i in range(200)])
    day = pa.array(pd.date_range("2024-01-01", periods=200).date)
    rows = rows.append_column("number", number).append_column("day", day)
    parquet.write_table(rows, folder / "typed.parquet")
    monkeypatch.setattr(_predict, "ROWS_TOGETHER", 7)
    arguments = ["predict", folder / "model.json", folder / "typed.parquet"]
    succeed(*arguments, "-o", folder / "p.parquet")
    written = parquet.read_table(folder / "p.parquet")
    assert written.select(rows.column_names).equals(rows.replace_schema_metadata())
    assert written["prediction"].to_pylist() == predicted(folder)
    lines = [line.split(",")[2:] for line in succeed(*arguments).splitlines()]
    assert lines[0] == ["number", "day", "prediction"]
    assert lines[9] == ["", "2024-01-09", predicted(folder)[8]]
    assert lines[10] == [str(2**53 + 9), "2024-01-10", predicted(folder)[9]]


def test_evaluate_scores_a_model_on_a_file(folder):
    found = json.loads(succeed("evaluate", folder / "model.json", folder / "t.csv", "--json"))
    model = from_json(folder / "model.json")
    assert found["scores"]["accuracy"] == model.score(TABLE[["size", "kind"]], LABELS)
    half = TABLE.assign(label=LABELS).sample(101, random_state=0)
    half.iloc[0, -1] = None
    half.rename(columns={"label": "truth"}).to_csv(folder / "half.csv", index=False)
    arguments = ["evaluate", folder / "model.json", folder / "half.csv"]
    assert "no column label" in fail(*arguments)
    result = run(*arguments, "-t", "truth", "-o", folder / "scored.json")
    assert "On 100 rows of half.csv, taken as unseen" in result.stdout
    assert "1 rows without truth" in result.stderr
    assert from_json(folder / "scored.json")._fitted.held_out.n_rows == 100
    half.assign(label="other").to_csv(folder / "other.csv", index=False)
    assert "does not know: other" in fail("evaluate", folder / "model.json", folder / "other.csv")


def test_evaluate_scores_numbers(folder):
    model = ShapeTreeRegressor().fit(TABLE[["kind", "note"]].head(150), TABLE["size"].head(150))
    model.to_json(folder / "number.json")
    TABLE.tail(50).to_csv(folder / "tail.csv", index=False)
    found = json.loads(succeed("evaluate", folder / "number.json", folder / "tail.csv", "--json"))
    assert set(found["scores"]) == {"r2", "mean_absolute_error"}


def test_a_terminal_never_sees_control_characters_of_a_file(folder, monkeypatch):
    from shapetree.cli import _console

    table = TABLE.head(3).assign(note=["a\x1b[2Jb", "tab\there", "line\nend"])
    table.to_csv(folder / "evil.csv", index=False)
    arguments = ["predict", folder / "model.json", folder / "evil.csv"]
    assert "\x1b" in succeed(*arguments)  # a pipe gets what is there
    console = _console._rich_console

    def terminal(**options):
        made = console(**options)
        made._force_terminal = True
        return made

    monkeypatch.setattr(_console, "_rich_console", terminal)
    out = succeed(*arguments)
    assert "\x1b[2J" not in out
    assert "a·[2Jb" in out


def test_evaluate_recognises_the_rows_of_a_fit(folder):
    data, model = folder / "t.csv", folder / "own.json"
    for kind, options in (("label", []), ("size", ["--task", "regression"])):
        succeed("fit", data, "-t", kind, *options, "-o", model)
        before = from_json(model)._fitted.held_out
        shown = succeed("evaluate", model, data, "-o", folder / "again.json")
        assert "On the rows of training and of the test, which says little" in shown
        assert from_json(folder / "again.json")._fitted.held_out == before
        succeed("fit", data, "-t", kind, *options, "--refit-all", "-o", model)
        assert "On the training rows, which says little" in succeed("evaluate", model, data)
    table = TABLE.assign(label=np.random.default_rng(1).permutation(LABELS))
    table.to_csv(folder / "others.csv", index=False)
    succeed("fit", data, "-t", "label", "-o", model)
    assert "200 rows of others.csv, taken as unseen" in succeed(
        "evaluate", model, folder / "others.csv"
    )


# Forests


@pytest.mark.parametrize("target", ["label", "size"])
def test_a_forest_is_fitted_predicted_scored_and_exported(folder, target):
    data, model = folder / "t.csv", folder / f"forest of {target}.json"
    fit = ["fit", data, "-t", target, "--forest", "--n-estimators", "8", "--ignore", "note"]
    shown = succeed(*fit, "-o", model)
    assert "shape forest" in shown
    assert "8 trees with" in shown
    forest = from_json(model)
    assert len(forest.estimators_) == 8
    X = TABLE.assign(label=LABELS)[list(forest.feature_names_in_)]
    found = json.loads(succeed("predict", model, data, "--json"))
    assert found["predictions"] == forest.predict(X).tolist()
    scores = json.loads(succeed("evaluate", model, data, "--json"))["scores"]
    assert next(iter(scores.values())) == forest.score(X, TABLE.assign(label=LABELS)[target])
    assert "On 200 rows of t.csv" in succeed("evaluate", model, data)
    assert "8 trees with" in succeed("inspect", model)
    about = json.loads(succeed("inspect", model, "--json"))
    assert about["trees"] == 8
    assert sum(feature["nodes"] > 0 for feature in about["features"]) == len(about["features"])
    for form in ("python", "js", "sql", "json"):
        assert len(succeed("export", model, "--to", form)) > 1000
    if find_spec("onnx"):
        succeed("export", model, "-o", folder / "forest.onnx")


def test_what_a_forest_cannot_do_is_said(folder):
    model = folder / "forest.json"
    fit = ["fit", folder / "t.csv", "-t", "label", "--forest", "--n-estimators", "3"]
    page = folder / "forest.html"
    succeed(*fit, "-o", model, "--html", page)
    assert "<title>label in t.csv</title>" in page.read_text(encoding="utf-8")
    words = "is a forest of 3 trees; {} needs a single tree, so fit one"
    for arguments, name in (
        (["explain", model, "--set", "size=1"], "explain"),
        (["plot", model, "-o", folder / "f.png"], "plot"),
        (["inspect", model, "--rules"], "inspect --rules"),
        (["inspect", model, "--tree"], "inspect --tree"),
        (["export", model, "--to", "text"], "export --to text"),
    ):
        assert words.format(name) in fail(*arguments)
    assert "shows a single tree" in fail(*fit, "--plot", folder / "f.png", code=2)
    assert "add --forest" in fail(*fit[:4], "--n-estimators", "3", code=2)
    assert "a shape forest has no" in fail(*fit, "--param", "strength=2", code=2)


# Memory


def test_columns_do_not_depend_on_the_blocks_of_a_file(tmp_path, monkeypatch):
    rows = [
        f"{i},{i / 4},{i % 9 if i < 350 else 'late'},{i % 5 or 'NA'},{i:05}" for i in range(400)
    ]
    rows[380] = "380.5,9,8,7,6"
    path = tmp_path / "late.csv"
    path.write_text("\n".join(["a,b,c,d,e", *rows]))
    whole = _reading.read_file(path)
    kinds = [str(column.type).partition("<")[0] for column in whole.rows.columns]
    assert kinds == ["double", "double", "dictionary", "int64", "dictionary"]
    monkeypatch.setattr(_reading, "BLOCK", 300)
    parts = _reading.read_file(path)
    assert parts.rows.num_rows == whole.rows.num_rows == 400
    assert parts.rows.schema == whole.rows.schema
    assert parts.rows.to_pylist() == whole.rows.to_pylist()


@pytest.mark.parametrize("n_chunks", [1, 3])
def test_copies_of_rows_are_counted_by_hashes(n_chunks):
    rng = np.random.default_rng(n_chunks)
    rows = pd.DataFrame(
        {
            "text": rng.choice(["a", "b", None], 300),
            "number": rng.choice([1.5, 2.5, np.nan], 300),
            "whole": rng.integers(0, 9, 300),
        }
    )
    parts = [pa.Table.from_pandas(rows[i::n_chunks]) for i in range(n_chunks)]
    table = pa.concat_tables(parts).select(list(rows))
    assert FileTable(Path("t"), table, None).count_copies() == rows.duplicated().sum() > 0
    assert FileTable(Path("t"), pa.table({"list": [[1], [1]]}), None).count_copies() == 0


def test_a_fit_lets_go_of_the_texts_of_a_file_before_it_learns(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    # No numbers: Arrow may have lent them to pandas.
    texts = TABLE[["kind", "note"]].assign(label=LABELS)
    pd.concat([texts] * 30).to_csv(path, index=False)
    before, held = pa.total_allocated_bytes(), []

    def split_rows(*given):
        held.append(pa.total_allocated_bytes() - before)
        return split(*given)

    split = _fit.split_rows
    monkeypatch.setattr(_fit, "split_rows", split_rows)
    succeed("fit", path, "-t", "label")
    assert held[0] < path.stat().st_size / 10
