"""Methods beside each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from shapetree_bench._analysis import (
    CEILINGS,
    DEPTHS,
    OURS,
    OURS_WITH_PAIRS,
    Analysis,
    Entry,
    diverged,
    fit_ratio,
    selections,
)
from shapetree_bench._document import FULL_SHADE, MINUS, NOTHING, Cell, Table, shade, signed
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import ANY_DEPTH
from shapetree_bench._statistics import duel

_COLUMNS = (
    ("macro F1", "macro_f1", "{:.3f}"),
    ("log loss", "log_loss", "{:.3f}"),
    ("AUC", "auc", "{:.3f}"),
    ("calibr. error", "calibration_error", "{:.3f}"),
    ("leaves", "leaves", "{:.1f}"),
    ("parts per node", "parts", "{:.1f}"),
    ("features", "features", "{:.1f}"),
    ("conditions", "conditions", "{:.1f}"),
    ("µs per row", "predict_us", "{:.1f}"),
    ("MB", "peak_mb", "{:.1f}"),
)


def table_of_methods(analysis: Analysis, depth: int) -> Table | None:
    """Accuracy, size and time of all methods at one depth.

    Rows that are to be compared rest on the same datasets: some methods on many, and all on few.
    Trees that are grown from the root down come before those that look at the whole tree.
    """
    rows: list[Sequence[Cell | str] | str] = []
    for entries, names in selections(analysis, depth):
        words = ", ".join(map(analysis.dataset_label, names))
        for greedy, kind in ((True, "grown from the root down"), (False, "refined, or many")):
            some = [entry for entry in entries if _is_grown(entry) == greedy]
            found = [
                _row_of_method(analysis, entry, depth, names)
                for entry in some
                if _is_shown(analysis, entry, depth, names)
            ]
            found.sort(key=lambda each: each[0])
            if found:
                rows.append(f"On {analysis.sets(names)}, {kind}: {words}")
            rows += [row for _, row in found]
    head = ["method", "accuracy", "vs CART", "median", "time / CART's"]
    head += [title for title, _, _ in _COLUMNS]
    return Table(head, rows, f"Depth {depth}, best first") if rows else None


def _is_shown(analysis: Analysis, entry: Entry, depth: int, names: list[str]) -> bool:
    """Whether an entry has half of the datasets; ablations have tables of their own."""
    method = METHODS.get(entry.method)
    is_ablation = method is not None and method.kind == "ablation"
    there = set(names) & set(analysis.rows(entry, depth).index)
    return not is_ablation and 2 * len(there) >= len(names)


def _is_grown(entry: Entry) -> bool:
    """Whether a method's trees are grown from the root down, and left as they are."""
    method = METHODS.get(entry.method)
    return method is None or (method.greedy and method.has_depth)


def _row_of_method(
    analysis: Analysis, entry: Entry, depth: int, names: list[str]
) -> tuple[tuple[bool, float], list[Cell | str]]:
    """A row, and what it is sorted by; one that lacks datasets is pale, and comes after others."""
    found = analysis.rows(entry, depth)
    found = found.loc[[name for name in names if name in found.index]]
    scores = 100 * found["accuracy"]
    gaps = (scores - analysis.accuracy(Entry("CART"), depth)).dropna()
    gap = gaps.mean()
    numbers = [_number(scores.mean(), "{:.1f}")]
    numbers += [
        NOTHING
        if math.isnan(each)
        else Cell(signed(each, 2), shade=shade(each, 2 * FULL_SHADE, digits=2))
        for each in (gap, gaps.median())
    ]
    numbers.append(_number(fit_ratio(found), "{:.2f}"))
    numbers += [_number(found[name].mean(), form) for _, name, form in _COLUMNS]
    is_whole = len(found) == len(names)
    count = [f"{len(found)} of {len(names)} sets"] if not is_whole else []
    count += ["version 0.1"] if analysis.is_old(entry) else []
    row: list[Cell | str] = [Cell(entry.label, ", ".join(count))]
    row += [replace(cell, is_quiet=cell.is_quiet or not is_whole) for cell in numbers]
    return (not is_whole, -gap if not math.isnan(gap) else math.inf), row


def _number(value: float | None, form: str) -> Cell:
    if value is None or math.isnan(value):
        return NOTHING
    return Cell(f"{value:,.0f}" if value >= 100 else form.format(value))


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


def _gap_cell(analysis: Analysis, entry: Entry, depth: int, ceiling: pd.Series) -> Cell:
    columns = [analysis.accuracy(e, depth) for e in (Entry("CART"), entry)]
    scores = pd.concat([*columns, ceiling], axis=1, join="inner")
    if scores.empty:
        return NOTHING
    low, ours, high = scores.mean()
    title = f"CART {low:.2f} %, one tree {ours:.2f} %, many trees {high:.2f} %"
    words = f"{100 * (ours - low) / (high - low):.0f} %".replace("-", MINUS)
    return Cell(words, analysis.sets(scores.index), title=title)
