"""The report: what is shown, in which order, and with which words."""

from __future__ import annotations

from pathlib import Path

from shapetree_bench._analysis import DEPTHS, OURS, OURS_WITH_PAIRS, Analysis, Entry
from shapetree_bench._datasets import BY_NAME
from shapetree_bench._document import Block, Document, Section, to_html, to_markdown
from shapetree_bench._equal_leaves import (
    by_dataset_table,
    gaps_figure,
    leaves_figure,
    leaves_tables,
)
from shapetree_bench._evidence import Evidence
from shapetree_bench._figures import depth_figures, rank_figures, runtime_figure, trade_off_figures
from shapetree_bench._findings import findings, headlines, span, words_on_ceilings
from shapetree_bench._inventory import dataset_table, failure_table
from shapetree_bench._methods import METHODS
from shapetree_bench._other_splits import few_rows_tables, other_splits_table
from shapetree_bench._paper_tables import (
    ablation_tables,
    importance_table,
    regression_table,
    table_by_dataset,
    tables_of_means,
)
from shapetree_bench._peer_tables import gap_table, table_of_methods, wins_table
from shapetree_bench._protocols import N_TRIALS
from shapetree_bench._statistics import TIE

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
        _leaves(analysis),
        _methods(analysis),
        _few_rows(analysis),
        _other_splits(analysis),
        _means(analysis),
        _by_dataset(analysis),
        _by_depth(analysis),
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


def _lead(analysis: Analysis) -> list[Block]:
    """The first screen: ten lines and two pictures."""
    cells = analysis.evidence.cells
    n_folds = cells["dataset"].map(lambda name: BY_NAME[name].n_folds)
    fits = (n_folds * cells["trials"]).fillna(cells["folds"] + cells["failed"])
    lines = [
        f"**{int(fits.sum()):,} fits** of {cells['method'].nunique()} methods to "
        f"{cells['dataset'].nunique()} datasets, our trees with default settings but for leaves or "
        f"depth. {_words_on_revisions(analysis)}",
        *headlines(analysis),
    ]
    figures = [leaves_figure(analysis), gaps_figure(analysis)]
    return ["\n".join(f"- {line}" for line in lines), *(each for each in figures if each)]


def _words_on_revisions(analysis: Analysis) -> str:
    """Of which code the results are."""
    known = analysis.evidence.cells["revision"].dropna().astype(str)
    new = sorted(set(known[~known.str.startswith("0.1")]))
    words = f"Revision {' and '.join(f'`{each}`' for each in new)}" if new else ""
    if len(new) < known.nunique():
        words += ", but for peers and tuned models, which are marked and were run with version 0.1"
    return f"{words}." if words else ""


def _leaves(analysis: Analysis) -> Section:
    tables = leaves_tables(analysis)
    table = by_dataset_table(analysis)
    text = (
        "Trees with as many leaves at most, and no limit of depth. Tuned CARTs have criterion, "
        "`min_samples_leaf` (1, 5, 20) and `ccp_alpha` (0, 0.001) chosen by 3-fold "
        "cross-validation of the training rows; all others are as they come. Probabilities are "
        "kept 0.001 away from 0. Parts are segments of an axis or regions of a plane; a threshold "
        "has two. Sets on which random splits reward memorising (avila, electricity, "
        "eye-movements) are not in the means."
    )
    blocks: list[Block] = [text, *tables, *([table] if table else [])] if tables else []
    about = "accuracy, log loss, AUC and parts per node at 8, 16 and 32 leaves"
    return Section("At equal leaves", blocks, about)


def _few_rows(analysis: Analysis) -> Section:
    tables = few_rows_tables(analysis)
    text = "Clinical and social tables from R's datasets; all with default settings."
    about = "tables of 53 to 872 rows, beside CART and linear models"
    return Section("Few rows", [text, *tables] if tables else [], about)


def _other_splits(analysis: Analysis) -> Section:
    table = other_splits_table(analysis)
    about = "eye-movements by title, electricity in time order"
    return Section("Not at random", [table] if table else [], about)


def _means(analysis: Analysis) -> Section:
    lines = findings(analysis)
    text = (
        "The paper's two tables of means. Below each of its rows is what was measured here, with "
        "the difference from the paper. The paper measures accuracy, and its trees are refined for "
        'fewest wrong predictions, as ours with `objective="error"`; the default, which learns for '
        "log loss with at most six parts a node, stands below. As in the paper, a dataset counts "
        "only at depths at which a binary tree has a leaf for every class, and bivariate trees "
        "leave out covtype, eucalyptus and higgs. A pale number rests on fewer datasets than the "
        "paper's. By dataset the paper gives numbers for SGT-C alone. For other models, its mean "
        "over fewer datasets is estimated (≈): its mean over all, shifted by how much easier these "
        "datasets are for SGT-C. With pairs this is rough: what is hard for SGT-C may be easy with "
        "pairs. SERDT and DPDT are not on PyPI; whoever has them can add them with `--peer`. The "
        "paper's recipes are meant to be tuned: untuned, nothing but the depth limits them."
    )
    names = (
        "**SGT** is a shape tree whose nodes split on one feature; in an **S2GT**, nodes may split "
        "on two. A **3** in the name allows three branches per node. **C** trees are grown from "
        "the root down; **T** trees are then refined. Plain names are this package's trees, and "
        "“(paper)” marks the paper's own recipe. An asterisk marks partial copies of the paper's "
        "datasets, and means that include such copies."
    )
    bullets = ["\n".join(f"- {line}" for line in lines)] if lines else []
    about = "mean accuracy by depth, beside the paper's tuned models"
    return Section("The paper's tables", [names, *bullets, text, *tables_of_means(analysis)], about)


def _by_dataset(analysis: Analysis) -> Section:
    found: list[Block] = []
    for entry in analysis.entries:
        method = METHODS.get(entry.method)
        if method is None or (method.kind == "paper" and entry.protocol != "paper"):
            continue  # the paper's recipes are meant to be tuned
        if method.kind == "ours" and not entry.method.endswith("(error)"):
            continue  # what the paper measures
        if method.counterpart in ("SGT-C", "SGT-C(D)"):
            table = table_by_dataset(analysis, method.counterpart, entry)
            found += [table] if table else []
    return Section("Dataset by dataset", found, "accuracy by depth, beside the paper's SGT-C")


def _by_depth(analysis: Analysis) -> Section:
    text = "The paper's Figure 2, on the same three datasets."
    figures = depth_figures(analysis)
    about = "the paper's three sets for ablations"
    return Section("Accuracy by depth", [text, *figures] if figures else [], about)


def _methods(analysis: Analysis) -> Section:
    text = (
        "All methods at equal depth: first those that were measured on most datasets, then all of "
        "them on fewer; trees as grown before those that are refined. A tree of three branches has "
        "more leaves than a binary one of the same depth. Numbers are means over the datasets "
        "named. A pale row lacks some of them, because fits failed or were not made; “vs CART” "
        "and its median then compare it on those it has. Peers of version 0.1 have no log loss "
        "here, because it was clipped otherwise. Times "
        "are processor times on one core, as multiples of the time that CART takes in the same "
        "process. “Conditions” are what one has to read to follow one prediction, “µs per row” is "
        "the time to predict, and “MB” the peak memory of a fit. EBM and LightGBM with 200 trees "
        "have no depth; they are the same in every table."
    )
    found = [table_of_methods(analysis, depth) for depth in DEPTHS]
    shown = [table for table in found if table]
    gaps = gap_table(analysis)
    blocks: list[Block] = [text, *shown, *words_on_ceilings(analysis), *([gaps] if gaps else [])]
    about = "all methods and peers at depths 2 to 6, with sizes and times"
    return Section("At equal depth", blocks if shown else [], about)


def _trade_offs(analysis: Analysis) -> Section:
    about = "against leaves, and against conditions to read"
    return Section("Accuracy, size and explanations", [*trade_off_figures(analysis)], about)


def _ranks(analysis: Analysis) -> Section:
    return Section("Ranks", [*rank_figures(analysis)], "mean ranks in accuracy at equal depth")


def _wins(analysis: Analysis) -> Section:
    names = (OURS, OURS_WITH_PAIRS)
    wanted = [Entry(name, protocol) for protocol in ("untuned", "cv") for name in names]
    found = [
        table
        for entry in wanted
        if entry in analysis.entries and (table := wins_table(analysis, entry))
    ]
    text = (
        "On how many datasets our tree is better, level or worse. Differences of less than "
        f"{TIE} points count as level. Partial copies count like other datasets."
    )
    about = "of the default trees against each method, at equal depth"
    return Section("Wins, ties and losses", [text, *found] if found else [], about)


def _times(analysis: Analysis) -> Section:
    figures = [
        runtime_figure(analysis, depth, is_grown) for is_grown in (True, False) for depth in (4, 6)
    ]
    about = "as multiples of CART's, grown with grown and refined with refined"
    return Section("Time to fit", [each for each in figures if each], about)


def _regression(analysis: Analysis) -> Section:
    table = regression_table(analysis)
    text = (
        "Targets have mean 0 and standard deviation 1, so that always predicting the mean has an "
        "error of 1."
    )
    about = "squared errors, beside the paper's"
    return Section("Regression", [text, table] if table else [], about)


def _ablations(analysis: Analysis) -> Section:
    found = ablation_tables(analysis)
    text = (
        "The paper's recipe without parts of its optimisation. “No CD” assigns branches by k-means "
        "alone; “No WKM” starts coordinate descent at random; “all pairs” fits every pair instead "
        "of the five that the filter ranks highest. SGT-C(D) has optimal inner trees, found by "
        "dynamic programming. Differences are from the paper's number for the same variant; those "
        "of SGT-C(D) are from SGT-C."
    )
    importance = importance_table(analysis)
    blocks: list[Block] = [text, *found] if found else []
    about = "the paper's recipe without parts of it; made with version 0.1"
    return Section("Ablations", blocks + ([importance] if importance else []), about)


def _datasets(analysis: Analysis) -> Section:
    return Section("Datasets", [dataset_table(analysis)], "what was read, and from where")


def _failures(analysis: Analysis) -> Section:
    table = failure_table(analysis)
    return Section("What failed", [table] if table else [], "fits without a result, and why")


def _how(analysis: Analysis) -> Section:
    """How the numbers were made: trials, commands, versions."""
    return Section(
        "How it was made",
        [
            *_words_on_trials(analysis),
            *_commands(analysis),
            "Calibration errors are over 15 bins of equal width; log losses keep probabilities one "
            "thousandth away from 0; AUC of several classes is the mean of each against the rest. "
            "Every number is a mean over the paper's three splits (70 % of the rows for training, "
            "10 % for validation, which only tuned models use, and 20 % for testing), unless its "
            "table says otherwise. Memory is what a fit takes at its peak, beyond what the "
            "process had before.",
        ],
        "splits, trials, commands and versions",
    )


def _words_on_trials(analysis: Analysis) -> list[str]:
    tuned = analysis.cells[analysis.cells["protocol"] == "paper"]
    if tuned.empty:
        return []
    found = [
        f"{method} had {span(set(cells['trials'].astype(int)))} trials"
        f"{' (version 0.1)' if analysis.is_old(Entry(str(method), 'paper')) else ''}, on "
        f"{', '.join(sorted(set(cells['dataset'])))}"
        for method, cells in tuned.groupby("method")
    ]
    return [
        f"Tuned models were chosen by Optuna from the paper's search spaces. The paper had "
        f"{N_TRIALS} trials for each dataset and depth. {'; '.join(found)}."
    ]


def _commands(analysis: Analysis) -> list[Block]:
    made: dict[tuple[str, str], list[str]] = {}
    for run in analysis.runs():
        versions = ", ".join(f"{name} {text}" for name, text in run["versions"].items())
        made.setdefault((versions, run["command"]), []).append(str(run["started"])[:16])
    blocks: list[Block] = []
    for versions in dict.fromkeys(versions for versions, _ in made):
        lines = [
            f"- `{command}` ({dates[0].replace('T', ' ')})"
            for (others, command), dates in made.items()
            if others == versions
        ]
        blocks += [f"With {versions}:", "\n".join(lines)]
    return blocks
