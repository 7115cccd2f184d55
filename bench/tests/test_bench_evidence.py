"""What is kept of results."""

from pathlib import Path

import numpy as np
import pandas as pd
from made_up import invoke, made_up
from shapetree_bench._analysis import Analysis
from shapetree_bench._document import to_markdown
from shapetree_bench._evidence import Evidence
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import Cell, Trial
from shapetree_bench._report import make_report
from shapetree_bench._store import Results

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


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


def test_means_know_the_revision_that_they_are_of(tmp_path):
    results = Results(tmp_path / "made.sqlite")
    for revision, method in (("0012345", "CART"), ("12e4567", "SGT-C")):
        results.begin_run("shapetree-bench run", {"shapetree": "1", "revision": revision})
        for fold in range(3):
            results.note_fit(Cell("untuned", method, "rice", 2), fold, {"accuracy": 0.5})
    results.begin_run("shapetree-bench run", {"shapetree": "0.1.0"})
    for fold in range(3):
        results.note_fit(Cell("untuned", "HSTree", "rice", 2), fold, {"accuracy": 0.5})
    results.close()
    invoke("export", tmp_path / "made.sqlite", "--to", tmp_path / "csv")
    evidence = Evidence.read(tmp_path / "csv")
    revisions = evidence.cells.set_index("method")["revision"].to_dict()
    assert revisions == {"CART": "0012345", "SGT-C": "12e4567", "HSTree": "0.1.0"}
    analysis = Analysis(evidence)
    assert [entry.method for entry in analysis.entries if analysis.is_old(entry)] == ["HSTree"]
    report = to_markdown(make_report(evidence), "figures")
    assert "Revision `0012345` and `12e4567`, but for peers" in report
    assert "HSTree (version 0.1)" in report


def test_every_result_kept_with_the_code_is_of_a_known_revision():
    cells = Evidence.read(RESULTS).cells
    assert cells["revision"].notna().all()
    # What is called ours is not of version 0.1, whose defaults were others.
    old = cells[cells["revision"].str.startswith("0.1")]
    assert "ours" not in {METHODS[name].kind for name in old["method"]}
