"""The report: what is shown, in which order, and with which words."""

from __future__ import annotations

from pathlib import Path

from shapetree_bench import _paper as paper
from shapetree_bench import _tables as tables
from shapetree_bench._datasets import GROUPS
from shapetree_bench._document import Document, Figure, Section, Table, signed, to_html, to_markdown
from shapetree_bench._evidence import Evidence
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import N_TRIALS
from shapetree_bench._tables import DEPTHS, Analysis, Entry

FIGURES = "figures"
STEM = "benchmark"


def write_report(evidence: Evidence, folder: Path) -> list[Path]:
    """Write the report as Markdown, with its pictures, and as one page of HTML."""
    document = make_report(evidence)
    pictures = folder / FIGURES
    pictures.mkdir(parents=True, exist_ok=True)
    texts = {
        folder / f"{STEM}.md": to_markdown(document, FIGURES),
        folder / f"{STEM}.html": to_html(document),
    }
    texts |= {pictures / f"{each.name}.svg": each.svg + "\n" for each in document.figures()}
    for path in set(pictures.glob("*.svg")) - set(texts):  # of an earlier report
        path.unlink()
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return list(texts)


def make_report(evidence: Evidence) -> Document:
    """The report as data."""
    analysis = Analysis(evidence)
    sections = [
        _what_it_shows(analysis),
        _means(analysis),
        _by_dataset(analysis),
        _by_depth(analysis),
        _methods(analysis),
        _trade_offs(analysis),
        _ranks(analysis),
        _wins(analysis),
        _times(analysis),
        _regression(analysis),
        _ablations(analysis),
        _datasets(analysis),
        _failures(analysis),
        _how(analysis),
    ]
    return Document(
        "Shape trees, measured", _lead(analysis), [each for each in sections if each.blocks]
    )


def _lead(analysis: Analysis) -> list[str]:
    cells = analysis.evidence.cells
    n_fits = int(cells["folds"].sum() + cells["failed"].sum())
    n_failed = int(cells["failed"].sum())
    dates = sorted(str(run["started"])[:10] for run in analysis.runs())
    when = dates[0] if len(set(dates)) == 1 else f"{dates[0]} to {dates[-1]}" if dates else "?"
    n_methods = cells["method"].nunique()
    n_datasets = cells["dataset"].nunique()
    failed = f"{n_failed:,} failed (listed at the end)" if n_failed else "none failed"
    return [
        f"{n_fits:,} fits of {n_methods} methods to {n_datasets} datasets, made {when}; "
        f"{failed}. Every number is a mean over the "
        "paper's three folds: 70 % of the rows for training, 10 % for validation, which only tuned "
        "models look at, and 20 % for testing.",
        "**SGT** is a shape tree whose nodes split on one feature, **S2GT** one whose nodes may "
        "split on two; a 3 allows three branches to a node; **C** grows from the root down, **T** "
        "is then refined. Names alone are this package's trees; “(paper)” is the paper's own "
        "recipe. `SGT3-T` is what `ShapeTreeClassifier()` fits. An asterisk marks partial copies "
        "of the paper's datasets, and means over datasets with such copies among them.",
    ]


def _what_it_shows(analysis: Analysis) -> Section:
    lines = [
        *_cart_lines(analysis),
        *_recipe_lines(analysis),
        *_ahead_lines(analysis),
        *_gap_lines(analysis),
    ]
    blocks: list[str | Table | Figure] = ["\n".join(f"- {line}" for line in lines)] if lines else []
    gaps = tables.gap_table(analysis)
    return Section("What it shows", [*blocks, *_ceiling_words(analysis), *([gaps] if gaps else [])])


def _cart_lines(analysis: Analysis) -> list[str]:
    """Whether the harness gives the paper's figures for CART."""
    lines, gaps = [], {}
    for depth in DEPTHS:
        for entry in (Entry("CART", "paper"), Entry("CART")):
            gap = tables.gap_to_paper(analysis, entry, "CART", False, depth, tables.MANY)
            if gap is not None:
                gaps[depth] = gap
                break
    if gaps:
        found = ", ".join(f"{signed(gap)} at depth {depth}" for depth, gap in gaps.items())
        lines.append(
            "CART, whose settings the paper tuned, differs from the paper's mean for CART on the "
            f"same datasets by {found}."
        )
    near, far = 0, []
    for dataset in GROUPS["regression"]:
        for depth in DEPTHS:
            found_there = analysis.rows(Entry("CART"), depth)
            theirs = paper.value("squared error", dataset, "CART", depth)
            if dataset in analysis.partial or dataset not in found_there.index or theirs is None:
                continue
            error = found_there.loc[dataset, "squared_error"]
            spread = paper.spread("squared error", dataset, "CART", depth)
            if abs(error - theirs) <= spread + 0.001:  # both are rounded
                near += 1
            else:
                far.append(f"{dataset} at depth {depth} ({error:.3f} and {theirs:.3f})")
    if near or far:
        line = (
            "In regression, for which the paper has CART by dataset, CART's squared error is "
            f"within one of the paper's standard deviations in {near} of {near + len(far)} cells "
            "with complete data"
        )
        lines.append(line + (f"; not so: {', '.join(far)}, here and there." if far else "."))
    return lines


def _recipe_lines(analysis: Analysis) -> list[str]:
    """Whether the paper's own recipes, tuned here, give its figures."""
    entry, gaps, near = Entry("SGT-C (paper)", "paper"), [], 0
    for depth in DEPTHS:
        for dataset, score in analysis.accuracy(entry, depth).items():
            theirs = paper.value("accuracy", str(dataset), "SGT-C", depth)
            if theirs is not None and dataset not in analysis.partial:
                gaps.append(score - theirs)
                spread = paper.spread("accuracy", str(dataset), "SGT-C", depth)
                near += abs(gaps[-1]) <= spread + 0.05
    if not gaps:
        return []
    return [
        "The paper's own recipe for SGT-C, tuned here with fewer trials, differs from the paper's "
        f"numbers by {signed(sum(gaps) / len(gaps))} points on the mean of {len(gaps)} cells, and "
        f"is within one of the paper's standard deviations in {near} of them."
    ]


def _ahead_lines(analysis: Analysis) -> list[str]:
    """In how many cells of the paper's tables ours are ahead."""
    lines = []
    for protocol, words in tables.PROTOCOL_WORDS.items():
        ahead, behind = 0, []
        for bivariate, blocks in paper.BLOCKS.items():
            for model in (name for block in blocks for name in block if name.startswith("S")):
                if model not in METHODS:
                    continue
                for depth in DEPTHS:
                    entry = Entry(model, protocol)
                    gap = tables.gap_to_paper(analysis, entry, model, bivariate, depth, tables.MANY)
                    if gap is None:
                        continue
                    ahead += gap >= 0
                    if gap < 0:
                        behind.append(f"{model} at depth {depth} ({signed(gap)})")
        if ahead or behind:
            line = (
                f"Ours, {words}, are ahead of the paper's tuned trees of the same name in {ahead} "
                f"of {ahead + len(behind)} cells of its tables of means for which most datasets "
                "were measured"
            )
            lines.append(line + (f"; behind: {', '.join(behind)}." if behind else "."))
    return lines


def _ceiling_words(analysis: Analysis) -> list[str]:
    """Why there are two kinds of many trees to compare with, if there are."""
    plain = tables.CEILINGS[0]
    lost = tables.diverged(analysis, plain)
    if not lost:
        return []
    scores = [analysis.accuracy(Entry(name), 0) for name in tables.CEILINGS]
    name = lost[0]
    words = (
        f"{plain}, with default settings fails on {', '.join(lost)}: its accuracy on {name} is "
        f"{scores[0][name]:.1f} %, below a single tree's. Where a class has only a few rows, "
        "leaves come to have next to no curvature, and boosting takes steps without bound."
    )
    if name in scores[1].index:
        words += (
            f" With `reg_lambda=1` it does not ({scores[1][name]:.1f} %). So the table has both: "
            "default settings without this dataset, and that setting with all datasets."
        )
    return [words]


def _gap_lines(analysis: Analysis) -> list[str]:
    lines = []
    for depth in (3, 6):
        scores = analysis.accuracy(Entry(tables.OURS), depth)
        cart = analysis.accuracy(Entry("CART"), depth)
        gaps = (scores - cart).dropna()
        if len(gaps):
            worst = str(gaps.idxmin())
            lines.append(
                f"At depth {depth}, `{tables.OURS}` without tuning differs from CART by "
                f"{signed(gaps.mean())} points on the mean of {len(gaps)} datasets, and by "
                f"{signed(gaps.min())} on {analysis.dataset_label(worst)}, where it does worst."
            )
    return lines


def _means(analysis: Analysis) -> Section:
    text = (
        "The paper's two tables of means, with what was measured here under each of its rows and "
        "the difference from it. As in the paper, a dataset counts from the depth on at which a "
        "binary tree has a leaf for every class, and bivariate trees leave out covtype, eucalyptus "
        "and higgs. A pale number rests on fewer datasets than the paper's. The paper gives "
        "numbers by dataset only for SGT-C; for other models, its mean over fewer datasets is "
        "estimated (≈) as its mean over all, moved by how much easier these are for SGT-C. SERDT "
        "and DPDT are not on PyPI: `--peer` takes them from whoever has them. The paper's recipes "
        "are made to be tuned; untuned, they have no limit but the depth."
    )
    return Section("The paper's tables", [text, *tables.tables_of_means(analysis)])


def _by_dataset(analysis: Analysis) -> Section:
    found: list[str | Table | Figure] = []
    for entry in analysis.entries:
        method = METHODS.get(entry.method)
        if method is None or (method.kind == "paper" and entry.protocol != "paper"):
            continue  # the paper's recipes are made to be tuned
        if method.counterpart in ("SGT-C", "SGT-C(D)"):
            table = tables.table_by_dataset(analysis, method.counterpart, entry)
            found += [table] if table else []
    return Section("Dataset by dataset", found)


def _by_depth(analysis: Analysis) -> Section:
    text = "The paper's Figure 2, on its three datasets."
    figures = tables.depth_figures(analysis)
    return Section("Accuracy by depth", [text, *figures] if figures else [])


def _methods(analysis: Analysis) -> Section:
    text = (
        "Every method at equal depth, first those with many datasets, then all on fewer. Numbers "
        "are means over the datasets named; a pale row lacks some of them, because fits failed or "
        "were not made, and “to CART” compares it on those that it has. Times are processor times "
        "on one core, as multiples of CART's fit in the same process. “Conditions” are what one "
        "has to read to follow one prediction. LightGBM with 200 trees and EBM have no depth, and "
        "stand in each table."
    )
    found = [tables.table_of_methods(analysis, depth) for depth in DEPTHS]
    shown = [table for table in found if table]
    return Section("Against every peer", [text, *shown] if shown else [])


def _trade_offs(analysis: Analysis) -> Section:
    return Section("Accuracy, size and explanations", [*tables.trade_off_figures(analysis)])


def _ranks(analysis: Analysis) -> Section:
    return Section("Ranks", [*tables.rank_figures(analysis)])


def _wins(analysis: Analysis) -> Section:
    names = (tables.OURS, tables.OURS_WITH_PAIRS)
    wanted = [Entry(name, protocol) for protocol in ("untuned", "cv") for name in names]
    found = [
        table
        for entry in wanted
        if entry in analysis.entries and (table := tables.wins_table(analysis, entry))
    ]
    return Section("Wins, ties and losses", [tables.TIE_WORDS, *found] if found else [])


def _times(analysis: Analysis) -> Section:
    figures = [tables.runtime_figure(analysis, depth) for depth in (3, 6)]
    return Section("Time to fit", [each for each in figures if each])


def _regression(analysis: Analysis) -> Section:
    table = tables.regression_table(analysis)
    text = "Targets have mean 0 and standard deviation 1, so that an error of 1 is a constant's."
    return Section("Regression", [text, table] if table else [])


def _ablations(analysis: Analysis) -> Section:
    found = tables.ablation_tables(analysis)
    text = (
        "The paper's recipe without parts of its optimisation: “No CD” assigns branches by "
        "k-means alone, “No WKM” starts coordinate descent at random, “all pairs” fits every pair "
        "instead of the five that its filter likes best. SGT-C(D) has the best inner trees that "
        "there are, by dynamic programming. Differences are from the paper's number for the same "
        "variant, and of SGT-C(D) from SGT-C."
    )
    importance = tables.importance_table(analysis)
    blocks: list[str | Table | Figure] = [text, *found] if found else []
    return Section("Ablations", blocks + ([importance] if importance else []))


def _datasets(analysis: Analysis) -> Section:
    return Section("Datasets", [tables.dataset_table(analysis)])


def _failures(analysis: Analysis) -> Section:
    table = tables.failure_table(analysis)
    return Section("What failed", [table] if table else [])


def _how(analysis: Analysis) -> Section:
    """Who made the numbers: commands, versions, trials."""
    blocks: list[str | Table | Figure] = []
    trials = analysis.evidence.cells["trials"].dropna()
    if len(trials):
        low, high = int(trials.min()), int(trials.max())
        n = f"{low}" if low == high else f"{low} to {high}"
        names = sorted(set(analysis.cells.loc[analysis.cells["protocol"] == "paper", "dataset"]))
        blocks.append(
            f"Tuned models had {n} trials of Optuna's search in the paper's spaces (the paper: "
            f"{N_TRIALS}), on {len(names)} datasets: {', '.join(names)}."
        )
    made: dict[tuple[str, str], list[str]] = {}
    for run in analysis.runs():
        versions = ", ".join(f"{name} {text}" for name, text in run["versions"].items())
        made.setdefault((versions, run["command"]), []).append(str(run["started"])[:16])
    for versions in dict.fromkeys(versions for versions, _ in made):
        lines = [
            f"- `{command}` ({dates[0].replace('T', ' ')})"
            for (others, command), dates in made.items()
            if others == versions
        ]
        blocks += [f"With {versions}:", "\n".join(lines)]
    blocks.append(
        "Calibration errors are over 15 bins of equal width; log losses keep probabilities one "
        "millionth away from 0 and 1. Memory is the peak of a fit beyond what the process had."
    )
    return Section("How it was made", blocks)
