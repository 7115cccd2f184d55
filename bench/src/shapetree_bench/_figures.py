"""The pictures of the report."""

from __future__ import annotations

import math

import pandas as pd

from shapetree_bench import _charts as charts
from shapetree_bench import _paper as paper
from shapetree_bench._analysis import (
    CEILINGS,
    DEPTHS,
    OURS,
    OURS_WITH_PAIRS,
    PROTOCOL_WORDS,
    Analysis,
    Entry,
    Selection,
    fit_ratio,
    in_order,
    selections,
)
from shapetree_bench._datasets import ABLATION
from shapetree_bench._document import Figure
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import ANY_DEPTH
from shapetree_bench._statistics import rank

TYPICAL_DEPTH = 4
# On fewer datasets, methods are not compared in pictures.
MIN_DATASETS = 3
# A caption names no more than these.
MAX_LISTED = 8
# On fewer datasets no test tells ranks apart.
MIN_RANKED = 6
# Models of which the paper has numbers for its three datasets, all of them greedy.
_BY_DATASET = ("SGT-C", "SGT3-C", "S2GT-C", "S2GT3-C")
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
    **{"AxTAO": (8, True), "BiCART": (1, True), "BiTAO": (1, False), "STreeD": (2, True)},
    **{"LicketySPLIT": (9, False)},
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
    is_square = entry.protocol == "cv"
    return charts.Series(entry.label, points, tone, is_hollow, is_strong, is_square=is_square)


def _is_drawn(entry: Entry) -> bool:
    """Whether an entry is in pictures of many; tables have them all."""
    method = METHODS.get(entry.method)
    if method is None or method.kind == "ablation" or entry.method.endswith("(recipe)"):
        return False
    if entry.method.endswith("(paper)"):  # made to be tuned
        return entry.protocol == "paper"
    is_chosen = entry.protocol == "cv" and entry.method in (OURS, OURS_WITH_PAIRS)
    return entry.protocol == "untuned" or is_chosen


def _drawn(analysis: Analysis, depth: int) -> list[Selection]:
    """Entries that can be compared, without variants, and the datasets that all of them have."""
    found = [names for _, names in selections(analysis, depth)]
    coverage = {
        entry: set(analysis.accuracy(entry, depth).index)
        for entry in analysis.entries
        if _is_drawn(entry)
    }
    # Few datasets, but all methods that can be judged at all.
    every = [names for names in coverage.values() if len(names) >= MIN_DATASETS]
    shared = in_order(set.intersection(*every)) if every else []
    if len(shared) >= MIN_DATASETS and shared not in found:
        found.append(shared)
    return [
        ([entry for entry, has in coverage.items() if set(names) <= has], names) for names in found
    ]


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
            svg = charts.panels(panels, "depth", "accuracy, %", 3, size=(440, 340))
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


def _of_the_paper(dataset: str, model: str) -> charts.Series:
    points = []
    for depth in DEPTHS:
        found = paper.accuracy(dataset, model, depth)
        if found is not None:
            score, _ = found
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
    figures = (
        _trade_off_figure(analysis, selection, column, label, stem)
        for column, label, stem in (
            ("leaves", "leaves", "by-size"),
            ("conditions", "conditions to read for one prediction", "by-explanation"),
        )
        for selection in _drawn(analysis, TYPICAL_DEPTH)
    )
    return [figure for figure in figures if figure is not None]


def _trade_off_figure(
    analysis: Analysis, selection: Selection, column: str, label: str, stem: str
) -> Figure | None:
    entries, names = selection
    lines = [_trade_off(analysis, entry, names, column) for entry in entries]
    series = [line for line in lines if line is not None]
    if all(line.is_level for line in series):
        return None
    svg = charts.panels([("", series)], label, "accuracy, %", 1, is_log=True, size=(1000, 520))
    listed = f" ({', '.join(names)})" if len(names) <= MAX_LISTED else ""
    caption = (
        f"Mean accuracy against {label}, over the {len(names)} datasets{listed} on which all of "
        "these methods were measured. Each line goes from depth 2 to 6. A dotted line is a sum of "
        "many trees or terms, with its size in brackets."
    )
    return Figure(f"{stem}-on-{len(names)}", svg, caption)


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


def rank_figures(analysis: Analysis) -> list[Figure]:
    """Critical-difference diagrams."""
    figures = []
    for depth in (3, 6):
        for entries, names in _drawn(analysis, depth):
            if len(names) < MIN_RANKED:
                continue
            scores = {e.label: analysis.accuracy(e, depth)[names] for e in entries}
            ranks = rank(pd.DataFrame(scores).round(6)) if entries else None
            if ranks is None:
                continue
            caption = (
                f"Mean ranks at depth {depth} over {ranks.n_datasets} datasets, best on the left. "
                "Methods joined by a bar do not differ significantly (Nemenyi's test, 5 %). "
                f"Friedman's test that all methods are equal: p = {ranks.p_value:.1g}."
            )
            svg = charts.critical_difference(ranks, colour_of)
            figures.append(Figure(f"ranks-depth-{depth}-on-{len(names)}", svg, caption))
    return figures


def runtime_figure(analysis: Analysis, depth: int, is_grown: bool) -> Figure | None:
    """Times to fit as multiples of CART's, of trees as grown or of those that are refined."""
    ratios = []
    for entry in analysis.entries:
        method = METHODS.get(entry.method)
        if (method is None or (method.greedy and method.has_depth)) != is_grown:
            continue
        found = analysis.rows(entry, depth)
        value = fit_ratio(found)
        if not math.isnan(value) and entry.method != "CART":
            title = f"{entry.label}: {value:.2f} times CART's, over {len(found)} datasets"
            ratios.append((entry.label, value, title))
    if not ratios:
        return None
    ratios.sort(key=lambda each: each[1])
    kind = "Trees as grown" if is_grown else "Refined trees, and many"
    caption = (
        f"{kind}: time to fit at depth {depth} as a multiple of CART's in the same process, on one "
        "core: geometric means over each method's datasets."
    )
    stem = "grown" if is_grown else "refined"
    return Figure(f"runtime-{stem}-depth-{depth}", charts.ratio_bars(ratios, colour_of), caption)
