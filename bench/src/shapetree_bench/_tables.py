"""What results say: the tables and pictures of the report, each from the same cells."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from shapetree_bench import _charts as charts
from shapetree_bench import _paper as paper
from shapetree_bench._datasets import ABLATION, BY_NAME, GROUPS, SEEDS
from shapetree_bench._document import DASH, MINUS, Cell, Figure, Table, signed
from shapetree_bench._evidence import Evidence
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import ANY_DEPTH
from shapetree_bench._statistics import TIE, duel, rank

DEPTHS = paper.DEPTHS
# How each protocol is called beside a method's name.
PROTOCOL_WORDS = {"untuned": "untuned", "cv": 'strength="cv"', "paper": "tuned"}
# A difference in accuracy of this many points, and a ratio of errors, has the full colour.
FULL_SHADE = 4.0
FULL_RATIO = 0.3
# Many trees, as what one tree can be compared with; the first with default settings.
CEILINGS = ("LightGBM, 200 trees", "LightGBM, 200 trees, reg_lambda=1")
# Points that they may be below CART before they count as diverged.
DIVERGED = 5.0
# A mean of the paper is estimated for datasets that are at least this share of its own, and a
# sentence rests on such an estimate only for many.
ENOUGH, MANY = 0.6, 0.75
OURS, OURS_WITH_PAIRS = "SGT3-T", "S2GT3-T"
TYPICAL_DEPTH = 4
NOTHING = Cell(DASH, is_quiet=True)


@dataclass(frozen=True)
class Entry:
    """A method under a protocol."""

    method: str
    protocol: str = "untuned"

    @property
    def label(self) -> str:
        # The paper's recipes are made to be tuned, so it must be said where they are not.
        method = METHODS.get(self.method)
        is_plain = method is None or method.kind in ("ours", "peer")
        if self.protocol == "untuned" and is_plain:
            return self.method
        return f"{self.method}, {PROTOCOL_WORDS[self.protocol]}"


class Analysis:
    """Results by entry, dataset and depth."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        cells = evidence.cells
        # A mean over fewer folds than others have is not to be compared with theirs.
        self.cells = cells[cells["folds"] == len(SEEDS)]
        self._nothing = self.cells.iloc[:0].set_index("dataset")
        self._accuracies: dict[tuple[Entry, int], pd.Series] = {}
        self.partial = set(evidence.datasets.loc[evidence.datasets["partial"] == 1, "name"])

    @cached_property
    def entries(self) -> list[Entry]:
        """All entries with a result, in the order of the methods."""
        pairs = self.cells[["method", "protocol"]].drop_duplicates()
        known = {Entry(str(m), str(p)) for m, p in pairs.itertuples(index=False)}
        order = {name: number for number, name in enumerate(METHODS)}
        protocols = list(PROTOCOL_WORDS)
        return sorted(
            known,
            key=lambda e: (order.get(e.method, len(order)), e.method, protocols.index(e.protocol)),
        )

    @cached_property
    def _by_entry(self) -> dict[tuple[str, str, int], pd.DataFrame]:
        return {
            (str(method), str(protocol), int(depth)): each.set_index("dataset")
            for (method, protocol, depth), each in self.cells.groupby(
                ["method", "protocol", "depth"]
            )
        }

    def rows(self, entry: Entry, depth: int) -> pd.DataFrame:
        """The cells of an entry at a depth, by dataset; a method without depths has them at any."""
        for there in (depth, ANY_DEPTH):
            found = self._by_entry.get((entry.method, entry.protocol, there))
            if found is not None:
                return found
        return self._nothing

    def accuracy(self, entry: Entry, depth: int) -> pd.Series:
        """Accuracies in percent by dataset."""
        key = (entry, depth)
        if key not in self._accuracies:
            self._accuracies[key] = 100 * self.rows(entry, depth)["accuracy"].dropna()
        return self._accuracies[key]

    def dataset_label(self, name: str) -> str:
        return f"{name}*" if name in self.partial else name

    def sets(self, names: Iterable[str]) -> str:
        """How many datasets these are, with an asterisk if there are partial copies among them."""
        found = list(names)
        words = "1 set" if len(found) == 1 else f"{len(found)} sets"
        return words + ("*" if self.partial & set(found) else "")

    def runs(self) -> list[dict[str, Any]]:
        """When and by what commands results were made."""
        found: list[dict[str, Any]] = self.evidence.runs.to_dict("records")
        for each in found:
            each["versions"] = json.loads(each["versions"])
        return found


def shaded(value: float, reference: float | None, digits: int = 1, **more: Any) -> Cell:
    """A number with its difference from another, coloured."""
    text = f"{value:.{digits}f}"
    if reference is None:
        return Cell(text, **more)
    gap = value - reference
    return Cell(text, signed(gap, digits), _shade(gap / FULL_SHADE), **more)


def _shade(share: float) -> float:
    return float(np.clip(share, -1, 1))


# The paper's tables of means


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


def counterparts(analysis: Analysis, model: str) -> list[Entry]:
    """Entries that stand beside a row of the paper."""
    return [
        entry
        for entry in analysis.entries
        if entry.method in METHODS and METHODS[entry.method].counterpart == model
    ]


def _rows_of_model(analysis: Analysis, model: str, bivariate: bool) -> Iterable[list[Cell | str]]:
    theirs = [f"{paper.mean(model, bivariate, depth):.1f}" for depth in DEPTHS]
    yield [Cell(f"**{model}**", "the paper, tuned"), *theirs]
    for entry in counterparts(analysis, model):
        cells = [_mean_cell(analysis, entry, model, bivariate, depth) for depth in DEPTHS]
        if any(cell is not NOTHING for cell in cells):
            yield [f"\u2003{entry.label}", *cells]


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
        return Cell(f"{scores.mean():.1f}", note, _shade(gap / FULL_SHADE), title=title)
    if gap is None:
        return Cell(f"{scores.mean():.1f}", sets, is_quiet=True, title=title)
    theirs = paper.mean_over(model, bivariate, depth, list(scores.index))
    sign = "" if model == "SGT-C" else "\N{ALMOST EQUAL TO}"
    title += f"; the paper's {model} on these: {sign}{theirs:.1f} %"
    return Cell(
        f"{scores.mean():.1f}",
        f"{sign}{signed(gap)}, {sets}",
        _shade(gap / FULL_SHADE),
        True,
        title,
    )


def gap_to_paper(
    analysis: Analysis,
    entry: Entry,
    model: str,
    bivariate: bool,
    depth: int,
    enough: float,
) -> float | None:
    """Difference from the paper's mean on the same datasets; None if these are too few."""
    wanted = paper.datasets(depth, bivariate)
    scores = analysis.accuracy(entry, depth)
    names = [name for name in wanted if name in scores.index]
    if not names or len(names) < enough * len(wanted):
        return None
    return float(scores[names].mean() - paper.mean_over(model, bivariate, depth, names))


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
    caption = "Mean squared error; in brackets the paper's tuned tree of that name"
    return Table(["", *map(str, DEPTHS)], rows, caption) if rows else None


def _error_cell(error: float, theirs: float | None) -> Cell:
    if theirs is None:
        return Cell(f"{error:.3f}")
    return Cell(f"{error:.3f}", f"{theirs:.3f}", _shade((1 - error / theirs) / FULL_RATIO))


# Against every peer

_COLUMNS = (
    ("macro F1", "macro_f1", "{:.3f}"),
    ("log loss", "log_loss", "{:.3f}"),
    ("calibration error", "calibration_error", "{:.3f}"),
    ("leaves", "leaves", "{:.1f}"),
    ("segments a node", "segments", "{:.1f}"),
    ("regions a node", "regions", "{:.1f}"),
    ("features", "features", "{:.1f}"),
    ("conditions", "conditions", "{:.1f}"),
    ("predict, µs a row", "predict_us", "{:.1f}"),
    ("memory, MB", "peak_mb", "{:.1f}"),
)


def table_of_methods(analysis: Analysis, depth: int) -> Table | None:
    """Accuracy, size and time of all methods at one depth.

    Rows that are to be compared rest on the same datasets: some methods on many, and all on few.
    """
    rows: list[Sequence[Cell | str] | str] = []
    for entries, names in selections(analysis, depth):
        found = [_row_of_method(analysis, entry, depth, names) for entry in entries]
        found.sort(key=lambda each: each[0])
        words = ", ".join(map(analysis.dataset_label, names))
        rows += [f"On {analysis.sets(names)}: {words}", *(row for _, row in found)]
    head = ["method", "datasets", "accuracy", "to CART", "time / CART's"]
    head += [title for title, _, _ in _COLUMNS]
    return Table(head, rows, f"Depth {depth}, best first") if rows else None


def _row_of_method(
    analysis: Analysis, entry: Entry, depth: int, names: list[str]
) -> tuple[tuple[bool, float], list[Cell | str]]:
    """A row, and what it is sorted by; one that lacks datasets is pale, and comes after others."""
    found = analysis.rows(entry, depth)
    found = found.loc[[name for name in names if name in found.index]]
    scores = 100 * found["accuracy"]
    gap = (scores - analysis.accuracy(Entry("CART"), depth)).dropna().mean()
    numbers = [_number(scores.mean(), "{:.1f}")]
    numbers.append(
        NOTHING if math.isnan(gap) else Cell(signed(gap, 2), shade=_shade(gap / (2 * FULL_SHADE)))
    )
    numbers.append(_number(fit_ratio(found), "{:.2f}"))
    numbers += [_number(found[name].mean(), form) for _, name, form in _COLUMNS]
    is_whole = len(found) == len(names)
    count = str(len(found)) if is_whole else f"{len(found)} of {len(names)}"
    row: list[Cell | str] = [entry.label, count]
    row += [replace(cell, is_quiet=cell.is_quiet or not is_whole) for cell in numbers]
    return (not is_whole, -gap if not math.isnan(gap) else math.inf), row


def _number(value: float, form: str) -> Cell:
    if value is None or math.isnan(value):
        return NOTHING
    return Cell(f"{value:,.0f}" if value >= 100 else form.format(value))


def fit_ratio(cells: pd.DataFrame) -> float:
    """Geometric mean over datasets of the time of a fit, as a multiple of CART's."""
    ratios = (cells["seconds"] / cells["cart_seconds"]).dropna()
    ratios = ratios[ratios > 0]
    return float(np.exp(np.log(ratios).mean())) if len(ratios) else float("nan")


def wins_table(analysis: Analysis, ours: Entry) -> Table | None:
    """On how many datasets an entry of ours is better, equal or worse than each other one."""
    rows: list[Sequence[Cell | str] | str] = []
    for entry in analysis.entries:
        if entry == ours:
            continue
        cells: list[Cell] = []
        for depth in DEPTHS:
            found = duel(analysis.accuracy(ours, depth), analysis.accuracy(entry, depth))
            if found is None:
                cells.append(NOTHING)
                continue
            n = found.wins + found.ties + found.losses
            words = f"mean difference {found.mean:+.2f} points"
            if not math.isnan(found.p_value):
                words += f", Wilcoxon p = {found.p_value:.3f}"
            text = f"{found.wins} / {found.ties} / {found.losses}"
            cells.append(Cell(text, shade=(found.wins - found.losses) / n, title=words))
        if any(cell is not NOTHING for cell in cells):
            rows.append([entry.label, *cells])
    if not rows:
        return None
    caption = f"Wins / ties / losses of {ours.label} against each method, by depth"
    return Table(["against", *(f"depth {depth}" for depth in DEPTHS)], rows, caption)


def gap_table(analysis: Analysis) -> Table | None:
    """How much of the way from CART to many boosted trees one tree goes."""
    rows: list[Sequence[Cell | str] | str] = []
    for ceiling in CEILINGS:
        high = analysis.accuracy(Entry(ceiling), ANY_DEPTH)
        lost = diverged(analysis, ceiling)
        block: list[list[Cell | str]] = [
            [entry.label, *(_gap_cell(analysis, entry, depth, high.drop(lost)) for depth in DEPTHS)]
            for entry in analysis.entries
            if entry.method in (OURS, OURS_WITH_PAIRS) and entry.protocol != "paper"
        ]
        if len(high) and block:
            without = f", without {', '.join(lost)}" if lost else ""
            rows += [f"to {ceiling}{without}", *block]
    caption = "Share of the gap between CART of the same depth and many trees that one tree closes"
    head = ["", *(f"depth {depth}" for depth in DEPTHS)]
    return Table(head, rows, caption) if rows else None


def diverged(analysis: Analysis, ceiling: str) -> list[str]:
    """Datasets on which boosting fails: it is then far below one tree, which is no ceiling."""
    high = analysis.accuracy(Entry(ceiling), ANY_DEPTH)
    behind = (analysis.accuracy(Entry("CART"), DEPTHS[-1]) - high).dropna()
    return [str(name) for name in behind.index[behind > DIVERGED]]


def _gap_cell(analysis: Analysis, entry: Entry, depth: int, ceiling: pd.Series) -> Cell:
    columns = [analysis.accuracy(e, depth) for e in (Entry("CART"), entry)]
    scores = pd.concat([*columns, ceiling], axis=1, join="inner")
    if scores.empty:
        return NOTHING
    low, ours, high = scores.mean()
    title = f"CART {low:.2f} %, one tree {ours:.2f} %, many trees {high:.2f} %"
    words = f"{100 * (ours - low) / (high - low):.0f} %".replace("-", MINUS)
    return Cell(words, analysis.sets(scores.index), title=title)


# Ablations


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
        caption = "Inner trees by dynamic programming, SGT-C(D), beside CART's, SGT-C: difference"
        tables.append(Table(["dataset", "protocol", *map(str, DEPTHS)], inner, caption))
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
    caption = "Importance of hyper-parameters, and in brackets the paper's"
    return Table(["parameter", *methods], rows, caption)


# Pictures


# A colour for each method, the same in every picture; a hollow mark is the second of a colour.
_LOOKS = {
    **{OURS: (0, False), OURS_WITH_PAIRS: (3, False), "SGT3-C": (0, True), "S2GT3-C": (3, True)},
    **{"SGT-T": (6, False), "SGT-C": (6, True), "S2GT-T": (5, False), "S2GT-C": (5, True)},
    **{"SGT-C(D)": (2, True), "CART": (7, False), "CART (entropy)": (7, True)},
    **{
        CEILINGS[0]: (4, False),
        CEILINGS[1]: (4, False),
        "LightGBM, one tree": (4, True),
        "EBM": (9, False),
    },
    **{"sgtlearn, K=3": (1, False), "sgtlearn": (1, True), "sgtlearn, greedy": (8, True)},
    **{"HSTree": (2, False), "TAO (imodels)": (8, False), "FIGS": (9, True)},
}


def look_of(method: str) -> tuple[str, bool]:
    """Colour and whether marks are hollow."""
    if method in _LOOKS:
        number, is_hollow = _LOOKS[method]
    else:  # the paper's recipes, and peers by import path
        number, is_hollow = sum(map(ord, method)), True
    return charts.colour(number), is_hollow


def colour_of(label: str) -> str:
    """The colour of an entry by its label."""
    for words in PROTOCOL_WORDS.values():
        label = label.removesuffix(f", {words}")
    return look_of(label)[0]


def _series(entry: Entry, points: list[tuple[float, float, str]]) -> charts.Series:
    tone, is_hollow = look_of(entry.method)
    is_strong = entry.method in (OURS, OURS_WITH_PAIRS)
    return charts.Series(entry.label, points, tone, is_hollow, is_strong)


def depth_figures(analysis: Analysis) -> list[Figure]:
    """Accuracy by depth on the paper's three datasets (its Figure 2)."""
    figures = []
    for greedy, name, title in (
        (True, "by-depth-greedy", "Greedy methods"),
        (False, "by-depth-refined", "Methods that are not greedy"),
    ):
        panels = []
        for dataset in ABLATION:
            series = _series_by_depth(analysis, dataset, greedy)
            if series:
                panels.append((dataset, series))
        if panels:
            svg = charts.panels(panels, "depth", "accuracy, %", 2, size=(520, 340))
            caption = f"{title}: test accuracy by depth."
            if any(each.is_dashed for _, series in panels for each in series):
                caption += " Dashed: the paper's, tuned."
            figures.append(Figure(name, svg, caption))
    return figures


def _series_by_depth(analysis: Analysis, dataset: str, greedy: bool) -> list[charts.Series]:
    series = []
    for entry in analysis.entries:
        if not _is_drawn(entry) or entry.method.endswith("(paper)"):
            continue
        method = METHODS[entry.method]
        if not method.has_depth or method.greedy != greedy:
            continue
        points = _points(analysis, entry, dataset)
        if points:
            series.append(_series(entry, points))
    drawn = {each.name for each in series}
    return series + [_of_the_paper(dataset, model) for model in _BY_DATASET if model in drawn]


# Models of which the paper has numbers for its three datasets, all of them greedy.
_BY_DATASET = ("SGT-C", "SGT3-C", "S2GT-C", "S2GT3-C")


def _of_the_paper(dataset: str, model: str) -> charts.Series:
    points = []
    for depth in DEPTHS:
        score = paper.value("accuracy", dataset, model, depth)
        if score is None:
            name = "ablation of the assignment, accuracy"
            score = paper.value(name, dataset, model, depth, "All")
        if score is not None:
            title = f"the paper's {model}, depth {depth}: {score:.1f} %"
            points.append((float(depth), score, title))
    return charts.Series(f"{model}, the paper", points, look_of(model)[0], True, is_dashed=True)


def _points(analysis: Analysis, entry: Entry, dataset: str) -> list[tuple[float, float, str]]:
    points = []
    for depth in DEPTHS:
        scores = analysis.accuracy(entry, depth)
        if dataset in scores.index:
            title = f"{entry.label}, depth {depth}: {scores[dataset]:.1f} %"
            points.append((float(depth), float(scores[dataset]), title))
    return points


def trade_off_figures(analysis: Analysis) -> list[Figure]:
    """Accuracy against size and against the length of explanations."""
    figures = []
    for column, label, stem in (
        ("leaves", "leaves", "by-size"),
        ("conditions", "conditions to read for one prediction", "by-explanation"),
    ):
        for entries, names in _drawn(analysis, TYPICAL_DEPTH):
            series = [
                found
                for entry in entries
                if (found := _trade_off(analysis, entry, names, column)) is not None
            ]
            if all(each.is_level for each in series):
                continue
            svg = charts.panels(
                [("", series)], label, "accuracy, %", 1, is_log=True, size=(1000, 520)
            )
            caption = (
                f"Mean accuracy against {label}, over the {len(names)} datasets that all of these "
                "methods have. Each line goes from depth 2 to 6; a dotted one is a sum of many "
                "trees or terms, with its size in brackets."
            )
            figures.append(Figure(f"{stem}-on-{len(names)}", svg, caption))
    return figures


def _trade_off(
    analysis: Analysis, entry: Entry, names: list[str], column: str
) -> charts.Series | None:
    """An entry's line, as far as it has the datasets."""
    has_depth = METHODS[entry.method].has_depth
    points = []
    for depth in DEPTHS if has_depth else (ANY_DEPTH,):
        found = analysis.rows(entry, depth)
        if not set(names) <= set(found.index) or found.loc[names, column].isna().any():
            continue
        x, y = found.loc[names, column].mean(), 100 * found.loc[names, "accuracy"].mean()
        at = f"depth {depth}: " if depth else ""
        title = f"{entry.label}, {at}{y:.1f} % with {x:.1f} {column}"
        points.append((float(x), float(y), title))
    if not points:
        return None
    if has_depth:
        return _series(entry, points)
    # Far off to the right, where the axis would be for them alone.
    name = f"{entry.label} ({points[0][0]:,.0f})"
    return charts.Series(name, points, look_of(entry.method)[0], is_level=True)


def _is_drawn(entry: Entry) -> bool:
    """Whether an entry is in pictures of many; tables have them all."""
    method = METHODS.get(entry.method)
    if method is None or method.kind == "ablation" or entry.method.endswith("(recipe)"):
        return False
    is_chosen = entry.protocol == "cv" and entry.method in (OURS, OURS_WITH_PAIRS)
    return entry.protocol == "untuned" or is_chosen


def selections(analysis: Analysis, depth: int) -> list[tuple[list[Entry], list[str]]]:
    """Entries that can be compared, and the datasets that they share.

    Few entries have many datasets, and many have a few. No entry is left out: one that lacks some
    of these datasets, because fits failed or were not made, is there all the same.
    """
    coverage = {entry: set(analysis.accuracy(entry, depth).index) for entry in analysis.entries}
    known = sorted(filter(None, coverage.values()), key=len, reverse=True)
    if not known:
        return []
    shared = [set.intersection(*known[: number + 1]) for number in range(len(known))]
    many = [names for names in shared if len(names) >= MANY * len(known[0])][-1]
    # The datasets on which most can be compared, if there are any; methods count more than these.
    fewer = [names for names in shared if 0 < len(names) < len(many)]
    few = max(
        fewer,
        key=lambda names: len(names) * sum(names <= each for each in known) ** 2,
        default=set(),
    )
    found = [
        (
            [
                e
                for e, names in coverage.items()
                if many <= names or (many & names and not few & names)
            ],
            _in_order(many),
        )
    ]
    if few:
        found.append(([entry for entry in coverage if few & coverage[entry]], _in_order(few)))
    return found


def _in_order(names: set[str]) -> list[str]:
    return [name for name in BY_NAME if name in names]


def _drawn(analysis: Analysis, depth: int) -> list[tuple[list[Entry], list[str]]]:
    """The same for pictures: without variants, and with all datasets."""
    return [
        (
            [
                entry
                for entry in entries
                if _is_drawn(entry) and set(names) <= set(analysis.accuracy(entry, depth).index)
            ],
            names,
        )
        for entries, names in selections(analysis, depth)
    ]


def rank_figures(analysis: Analysis) -> list[Figure]:
    """Critical-difference diagrams."""
    figures = []
    for depth in (3, 6):
        for entries, names in _drawn(analysis, depth):
            scores = {e.label: analysis.accuracy(e, depth)[names] for e in entries}
            ranks = rank(pd.DataFrame(scores).round(6)) if entries else None
            if ranks is None:
                continue
            caption = (
                f"Mean ranks at depth {depth} on {ranks.n_datasets} datasets, the best on the "
                "left. Methods under one bar do not differ by Nemenyi's test at 5 %; all being "
                f"equal has p = {ranks.p_value:.2g} (Friedman)."
            )
            svg = charts.critical_difference(ranks, colour_of)
            figures.append(Figure(f"ranks-depth-{depth}-on-{len(names)}", svg, caption))
    return figures


def runtime_figure(analysis: Analysis, depth: int) -> Figure | None:
    """Times to fit as multiples of CART's."""
    ratios = []
    for entry in analysis.entries:
        found = analysis.rows(entry, depth)
        value = fit_ratio(found)
        if not math.isnan(value) and entry.method != "CART":
            title = f"{entry.label}: {value:.2f} times CART's, over {len(found)} datasets"
            ratios.append((entry.label, value, title))
    if not ratios:
        return None
    ratios.sort(key=lambda each: each[1])
    caption = (
        f"Time to fit at depth {depth} as a multiple of CART's in the same process, on one core: "
        "geometric means over each method's datasets."
    )
    return Figure(f"runtime-depth-{depth}", charts.ratio_bars(ratios, colour_of), caption)


# What there is


def dataset_table(analysis: Analysis) -> Table:
    """The datasets, as they were and as the paper had them."""
    rows: list[Sequence[Cell | str] | str] = []
    for each in analysis.evidence.datasets.sort_values("name").to_dict("records"):
        difference = "" if pd.isna(each["difference"]) else str(each["difference"])
        classes = str(int(each["classes"])) if each["classes"] else "a number"
        rows.append(
            [
                analysis.dataset_label(each["name"]),
                f"{int(each['rows']):,}",
                classes,
                str(int(each["columns"])),
                BY_NAME[each["name"]].source if each["name"] in BY_NAME else "",
                difference or "as in the paper",
            ]
        )
    head = ["dataset", "rows", "classes", "columns", "source", "compared with the paper"]
    return Table(head, rows)


def failure_table(analysis: Analysis) -> Table | None:
    """What could not be done, and why."""
    cells = analysis.evidence.cells
    failed = cells[cells["failed"] > 0]
    if failed.empty:
        return None
    rows: list[Sequence[Cell | str] | str] = []
    groups = failed.groupby(["method", "protocol", "dataset", "reason"])["depth"]
    for (method, protocol, dataset, reason), depths in groups:
        label = Entry(str(method), str(protocol)).label
        rows.append([label, str(dataset), ", ".join(map(str, sorted(depths))), str(reason)])
    return Table(["method", "dataset", "depths", "reason"], rows)


TIE_WORDS = f"A tie is a difference of less than {TIE} points. Partial copies count like others."
