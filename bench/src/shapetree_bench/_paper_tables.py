"""The paper's tables, with what was measured here beside its numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from shapetree_bench import _paper as paper
from shapetree_bench._analysis import (
    DEPTHS,
    ENOUGH,
    PROTOCOL_WORDS,
    Analysis,
    Entry,
    counterparts,
    gap_to_paper,
)
from shapetree_bench._datasets import ABLATION, BY_NAME, GROUPS
from shapetree_bench._document import NOTHING, Cell, Table, shade, shaded, signed
from shapetree_bench._methods import METHODS

# A ratio of errors that is this far from 1 has the full colour.
FULL_RATIO = 0.3


def tables_of_means(analysis: Analysis) -> list[Table]:
    """The paper's two tables, with what was measured here below each of its rows."""
    names = {
        False: "Axis-aligned trees: mean test accuracy (%) by depth",
        True: "Bivariate trees: mean test accuracy (%) by depth",
    }
    tables = []
    for bivariate, caption in names.items():
        rows: list[Sequence[Cell | str] | str] = []
        for title, models in zip(
            ("Greedy, from the root down", "Not greedy"), paper.BLOCKS[bivariate], strict=True
        ):
            rows.append(title)
            for model in models:
                rows += _rows_of_model(analysis, model, bivariate)
        tables.append(Table(["model", *map(str, DEPTHS)], rows, caption))
    return tables


def _rows_of_model(analysis: Analysis, model: str, bivariate: bool) -> Iterable[list[Cell | str]]:
    theirs = [f"{paper.mean(model, bivariate, depth):.1f}" for depth in DEPTHS]
    yield [Cell(f"**{model}**", "the paper, tuned"), *theirs]
    for entry in counterparts(analysis, model):
        cells = [_mean_cell(analysis, entry, model, bivariate, depth) for depth in DEPTHS]
        if any(cell is not NOTHING for cell in cells):
            note = "version 0.1" if analysis.is_old(entry) else ""
            yield [Cell(f"\u2003{_label(entry)}", note), *cells]


def _label(entry: Entry) -> str:
    """What a tree of ours learns for; others as they are called."""
    method = METHODS.get(entry.method)
    if method is None or method.kind != "ours":
        return entry.label
    if entry.method.endswith("(error)"):
        return entry.label.replace(" (error)", ', objective="error"')
    return f"{entry.label}, default (log loss)"


def _mean_cell(analysis: Analysis, entry: Entry, model: str, bivariate: bool, depth: int) -> Cell:
    """Our mean over the paper's datasets beside its own; over fewer, as far as that is fair."""
    wanted = paper.datasets(depth, bivariate)
    scores = analysis.accuracy(entry, depth)
    scores = scores[[name for name in wanted if name in scores.index]]
    if scores.empty:
        return NOTHING
    # Numbers by dataset need no estimate.
    enough = 0.0 if model == "SGT-C" else ENOUGH
    gap = gap_to_paper(analysis, entry, model, bivariate, depth, enough)
    sets, title = analysis.sets(scores.index), f"over {len(scores)} of {len(wanted)} datasets"
    if gap is not None and len(scores) == len(wanted):
        note = f"{signed(gap)}, {sets}"
        return Cell(f"{scores.mean():.1f}", note, shade(gap), title=title)
    if gap is None:
        return Cell(f"{scores.mean():.1f}", sets, is_quiet=True, title=title)
    theirs = paper.mean_over(model, bivariate, depth, list(scores.index))
    sign = "" if model == "SGT-C" else "\N{ALMOST EQUAL TO}"
    title += f"; the paper's {model} on these: {sign}{theirs:.1f} %"
    return Cell(
        f"{scores.mean():.1f}",
        f"{sign}{signed(gap)}, {sets}",
        shade(gap),
        True,
        title,
    )


def table_by_dataset(analysis: Analysis, model: str, entry: Entry) -> Table | None:
    """The paper's numbers by dataset with ours beside them."""
    rows: list[Sequence[Cell | str] | str] = []
    for dataset in paper.datasets(max(DEPTHS), bivariate=False):
        cells: list[Cell] = []
        for depth in DEPTHS:
            scores = analysis.accuracy(entry, depth)
            theirs = paper.value("accuracy", dataset, model, depth)
            is_there = dataset in scores.index and BY_NAME[dataset].fits_depth(depth)
            cells.append(shaded(scores[dataset], theirs) if is_there else NOTHING)
        if any(cell is not NOTHING for cell in cells):
            rows.append([analysis.dataset_label(dataset), *cells])
    if not rows:
        return None
    caption = f"{entry.label}: accuracy (%), and the difference from the paper's tuned {model}"
    return Table(["dataset", *map(str, DEPTHS)], rows, caption)


def regression_table(analysis: Analysis) -> Table | None:
    """Squared errors on the standardised target beside the paper's."""
    rows: list[Sequence[Cell | str] | str] = []
    for dataset in GROUPS["regression"]:
        block: list[list[Cell | str]] = []
        for entry in analysis.entries:
            errors = {
                depth: found.loc[dataset, "squared_error"]
                for depth in DEPTHS
                if dataset in (found := analysis.rows(entry, depth)).index
            }
            if not errors:
                continue
            model = METHODS[entry.method].counterpart if entry.method in METHODS else ""
            cells = []
            for depth in DEPTHS:
                theirs = paper.value("squared error", dataset, model, depth)
                cells.append(_error_cell(errors[depth], theirs) if depth in errors else NOTHING)
            block.append([entry.label, *cells])
        if block:
            rows += [analysis.dataset_label(dataset), *block]
    caption = (
        "Mean squared error by depth, followed by that of the paper's tuned tree of the same name"
    )
    return Table(["", *map(str, DEPTHS)], rows, caption) if rows else None


def _error_cell(error: float, theirs: float | None) -> Cell:
    if theirs is None:
        return Cell(f"{error:.3f}")
    is_same = round(error, 3) == round(theirs, 3)
    tone = 0.0 if is_same else shade(1 - error / theirs, FULL_RATIO, digits=3)
    return Cell(f"{error:.3f}", f"{theirs:.3f}", tone)


def ablation_tables(analysis: Analysis) -> list[Table]:
    """What the paper leaves out, measured on its three datasets, beside its numbers."""
    tables = []
    for table, variants, models in (
        (
            "ablation of the assignment, accuracy",
            {"All": "", "No CD": "No CD", "No WKM": "No WKM"},
            ("SGT-C", "SGT3-C", "S2GT-C", "S2GT3-C"),
        ),
        (
            "ablation of the pair filter, accuracy",
            {"filter": "", "all pairs": "all pairs"},
            ("S2GT-C", "S2GT3-C"),
        ),
    ):
        rows: list[Sequence[Cell | str] | str] = []
        for model in models:
            block = _ablation_rows(analysis, table, variants, model)
            rows += [model, *block] if block else []
        if rows:
            head = ["dataset", "variant", *map(str, DEPTHS)]
            tables.append(Table(head, rows, f"{table.capitalize()} (%)"))
    inner = _inner_tree_rows(analysis)
    if inner:
        caption = "SGT-C(D), with optimal inner trees: accuracy (%), and the difference from SGT-C"
        tables.append(Table(["dataset", "method", *map(str, DEPTHS)], inner, caption))
    return tables


def _ablation_rows(
    analysis: Analysis, table: str, variants: dict[str, str], model: str
) -> list[list[Cell | str]]:
    rows: list[list[Cell | str]] = []
    for dataset in ABLATION:
        for variant, suffix in variants.items():
            method = f"{model} (paper, {suffix})" if suffix else f"{model} (paper)"
            for entry in (Entry(method, "paper"), Entry(method)):
                cells: list[Cell] = []
                for depth in DEPTHS:
                    scores = analysis.accuracy(entry, depth)
                    theirs = paper.value(table, dataset, model, depth, variant)
                    is_there = dataset in scores.index
                    cells.append(shaded(scores[dataset], theirs) if is_there else NOTHING)
                if any(cell is not NOTHING for cell in cells):
                    words = f"{variant}, {PROTOCOL_WORDS[entry.protocol]}"
                    rows.append([dataset, words, *cells])
                    break
    return rows


def _inner_tree_rows(analysis: Analysis) -> list[list[Cell | str]]:
    rows: list[list[Cell | str]] = []
    for entry in analysis.entries:
        if not entry.method.startswith("SGT-C(D)"):
            continue
        plain = Entry(entry.method.replace("(D)", ""), entry.protocol)
        names = sorted(set(analysis.rows(entry, 3).index) & set(analysis.rows(plain, 3).index))
        for dataset in names:
            cells: list[Cell] = []
            for depth in DEPTHS:
                both = (analysis.accuracy(each, depth) for each in (entry, plain))
                better, base = (each.get(dataset) for each in both)
                is_there = better is not None and base is not None
                cells.append(shaded(better, base) if is_there else NOTHING)
            rows.append([analysis.dataset_label(dataset), entry.label, *cells])
    return rows


def importance_table(analysis: Analysis) -> Table | None:
    """How much each hyper-parameter matters to tuned models, beside what the paper found."""
    found = analysis.evidence.importance
    if found.empty:
        return None
    methods = [name for name in METHODS if name in set(found["method"])]
    theirs = paper.table("importance of hyper-parameters")
    rows: list[Sequence[Cell | str] | str] = []
    for parameter in found["parameter"].drop_duplicates():
        row: list[Cell | str] = [f"`{parameter}`"]
        for method in methods:
            ours = found[(found["method"] == method) & (found["parameter"] == parameter)]
            is_same = (theirs["model"] == METHODS[method].counterpart) & (
                theirs["variant"] == parameter
            )
            note = f"{theirs[is_same]['value'].iloc[0]:.2f}" if is_same.any() else ""
            share = ours["importance"].iloc[0] if len(ours) else math.nan
            row.append(NOTHING if math.isnan(share) else Cell(f"{share:.2f}", note))
        rows.append(row)
    caption = "Importance of hyper-parameters, followed by what the paper found"
    return Table(["parameter", *methods], rows, caption)
