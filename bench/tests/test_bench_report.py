"""The report and the tables of the README."""

import re
from pathlib import Path

import numpy as np
import pytest
from made_up import invoke, made_up, rice_with_categories
from shapetree_bench import _charts as charts
from shapetree_bench import _paper as paper
from shapetree_bench import _readme as readme
from shapetree_bench._analysis import CEILINGS, Analysis, Entry
from shapetree_bench._datasets import CATALOGUE, FEW_ROWS, NOT_RANDOM
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
from shapetree_bench._paper_tables import tables_of_means
from shapetree_bench._peer_tables import table_of_methods
from shapetree_bench._protocols import LEAVES, Cell
from shapetree_bench._report import make_report, write_report

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"


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


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    path = tmp_path_factory.mktemp("made")
    names = [each.name for each in CATALOGUE]
    methods = ["CART", "LightGBM, 200 trees", "SGT-C", "SGT3-C", "SGT-T", "SGT3-T", "S2GT3-T"]
    methods += ["sgtlearn", "sgtlearn, K=3", "SGT-C (paper)", "SGT-C (paper, No CD)", "HSTree"]
    methods += ["SGT-C (error)", "SGT-T (paper)", "SGT-T (error)"]
    results = made_up(path, methods, names, protocols=("untuned",))
    results.close()
    few = ["defaults", "CART, 10 rows a leaf", "linear"]
    made_up(path, few, [each.name for each in FEW_ROWS]).close()
    made_up(path, ["CART", "SGT3-T"], [each.name for each in NOT_RANDOM]).close()
    sizes = ["CART", "CART (entropy)", "CART (CV, accuracy)", "CART (CV, log loss)"]
    sizes += ["SGT3-T", "S2GT3-T"]
    results = made_up(path, sizes, names[:20], depths=LEAVES, protocols=("leaves",))
    results.note_failure(Cell("untuned", "STreeD", "rice", 4), 0, "took longer than 900 s")
    folder = path / "csv"
    Evidence.of(results).write(folder)
    return Evidence.read(folder)


def test_the_report_has_every_part(evidence, tmp_path):
    old = tmp_path / "figures" / "old.svg"
    old.parent.mkdir()
    old.write_text("<svg/>")
    paths = write_report(evidence, tmp_path)
    html = (tmp_path / "benchmark.html").read_text()
    for title in (
        *("At equal leaves", "At equal depth", "Few rows", "Not at random"),
        *("The paper's tables", "Dataset by dataset", "Accuracy by depth"),
        *("Accuracy, size and explanations", "Ranks", "Wins, ties and losses", "Time to fit"),
        *("Regression", "Ablations", "Datasets", "What failed", "How it was made"),
    ):
        assert f"<h2>{title}</h2>".replace("'", "&#x27;") in html, title
    # The first screen is ten lines and two pictures; all else is folded.
    first = html[: html.index("<details")]
    assert 8 <= first.count("<li>") <= 10
    assert first.count("<figure>") == 2
    assert html.count("<details") == html.count("<h2>")
    assert "equal-leaves.svg" in {path.name for path in paths}
    assert not old.exists()
    assert "took longer than 900 s" in html
    assert not re.search(r'(src|href)="(?!#)', html), "the page must need nothing else"
    text = (tmp_path / "benchmark.md").read_text()
    for name in re.findall(r"\]\((figures/[^)]+)\)", text):
        assert (tmp_path / name) in paths
    assert "nan" not in re.sub(r"\w+nan\w*|nan\w+", "", html.lower())


def rows_of(table):
    """Rows by the label of their first cell; those of the paper in bold have none of their own."""
    rows = [row for row in table.rows if isinstance(row[0], TableCell)]
    return {row[0].text.strip(): row for row in rows if not row[0].text.startswith("**")}


def test_means_stand_beside_the_papers(evidence):
    analysis = Analysis(evidence)
    (axis, _) = tables_of_means(analysis)
    rows = rows_of(axis)
    # The paper's measure is learnt for by the first of our trees, below the paper's.
    names = [name for name in rows if name.startswith("SGT-T")]
    assert names == [
        *('SGT-T, objective="error"', "SGT-T, default (log loss)", "SGT-T (paper), untuned"),
    ]
    scores = analysis.accuracy(Entry("SGT-T"), 4)[paper.datasets(4, bivariate=False)]
    cell = rows["SGT-T, default (log loss)"][3]
    assert cell.text == f"{scores.mean():.1f}"
    assert cell.note == f"{signed(scores.mean() - 84.6)}, {len(scores)} sets"
    assert not cell.is_quiet
    assert (cell.shade > 0) == (scores.mean() > 84.6)


def test_means_over_fewer_datasets_are_pale_and_compared_only_where_that_is_fair(tmp_path):
    made_up(tmp_path, ["SGT-C", "SGT3-C"], ["rice", "bank"]).close()
    analysis = Analysis(Evidence.read(tmp_path / "made.sqlite"))
    (axis, _) = tables_of_means(analysis)
    rows = {name.split(",")[0]: row[1] for name, row in rows_of(axis).items()}
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
    cell = rows_of(axis)["SGT3-C, default (log loss)"][5]
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
    headings = {place: row for place, row in enumerate(table.rows) if isinstance(row, str)}
    grown, refined, second, _ = headings
    assert headings[grown].startswith("On 8 sets, grown from the root down: ")
    assert headings[refined].startswith("On 8 sets, refined, or many: ")
    assert headings[second] == "On 2 sets, grown from the root down: bank, rice"
    of_many = [row for row in table.rows[:second] if not isinstance(row, str)]
    assert {row[0].text for row in of_many} == {"CART", "SGT3-T"}
    last = {row[0].text: row for row in table.rows[second:] if not isinstance(row, str)}
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


def test_partial_copies_are_marked_in_every_table(tmp_path):
    results = made_up(tmp_path, ["SGT-C", "CART"], ["rice"])
    results.note_dataset(rice_with_categories(tmp_path).facts())
    results.close()
    report = to_markdown(make_report(Evidence.read(tmp_path / "made.sqlite")), "figures")
    assert "| rice* |" in report
    assert "| rice |" not in report
    assert "On 1 set*, grown from the root down: rice*" in report
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
    assert "(Not measured yet.)" not in path.read_text()
    path.write_text(path.read_text().replace(" % |", " % ! |", 1))
    assert len(readme.outdated(path, evidence)) == 1


def test_tables_are_renewed_wherever_they_stand(evidence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    evidence.write(tmp_path / "results")
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "README.md").write_text("# No tables\n")
    path = tmp_path / "docs" / "deep" / "results.md"
    path.write_text("<!-- bench: summary -->\nold\n<!-- end -->\n")
    assert "do not agree" in invoke("readme", "results", "--check", code=2)
    assert "renewed in docs/deep/results.md: summary" in invoke("readme", "results")
    assert "all tables of docs/deep/results.md agree" in invoke("readme", "results", "--check")
    assert "8 / 16 / 32 leaves" in path.read_text()


def test_readme_tables_without_results_say_so(tmp_path):
    made_up(tmp_path, ["CART"], ["rice"]).close()
    text = "<!-- bench: leaves -->\n<!-- end -->\n<!-- bench: regression -->\n<!-- end -->\n"
    renewed = readme.update(text, Evidence.read(tmp_path / "made.sqlite"))
    assert renewed.count("(Not measured yet.)") == 2
    with pytest.raises(ValueError, match="the text asks for 'speed'"):
        readme.update(
            "<!-- bench: speed -->\n<!-- end -->", Evidence.read(tmp_path / "made.sqlite")
        )


@pytest.mark.skipif(not RESULTS.is_dir(), reason="there are no results with the code")
def test_marked_tables_agree_with_the_results():
    for path in readme.marked(ROOT):
        assert readme.outdated(path, Evidence.read(RESULTS)) == [], path


@pytest.mark.skipif(not RESULTS.is_dir(), reason="there are no results with the code")
def test_the_report_agrees_with_the_results(tmp_path):
    write_report(Evidence.read(RESULTS), tmp_path)
    kept = ROOT / "docs" / "benchmark"
    for name in ("benchmark.md", "benchmark.html"):
        assert (kept / name).read_text() == (tmp_path / name).read_text(), (
            f"docs/benchmark/{name} is out of date; make bench-report"
        )
