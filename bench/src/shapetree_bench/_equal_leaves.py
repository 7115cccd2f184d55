"""Trees of as many leaves: how often they are right, their probabilities, and their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from shapetree_bench import _charts as charts
from shapetree_bench._analysis import (
    ERROR,
    ERROR_WITH_PAIRS,
    MANY,
    MEMORISED,
    OURS,
    OURS_WITH_PAIRS,
    Analysis,
    Entry,
    fit_ratio,
)
from shapetree_bench._document import DASH, NOTHING, Cell, Figure, Table, shade, signed
from shapetree_bench._protocols import LEAVES
from shapetree_bench._statistics import TIE

# What methods are called here.
NAMES = {
    OURS: "shape tree, default",
    OURS_WITH_PAIRS: 'shape tree, pairs="auto"',
    ERROR: 'shape tree, objective="error"',
    ERROR_WITH_PAIRS: 'shape tree, pairs="auto", objective="error"',
    "CART": "CART, Gini",
    "CART (entropy)": "CART, entropy",
    "CART (CV, accuracy)": "CART, tuned for accuracy",
    "CART (CV, log loss)": "CART, tuned for log loss",
    "AxTAO": "CART, refined (TAO)",
}
CARTS = ("CART", "CART (entropy)", "CART (CV, accuracy)", "CART (CV, log loss)")
_SHORT = {
    OURS: "shape tree",
    OURS_WITH_PAIRS: "with pairs",
    "CART": "CART, Gini",
    "CART (entropy)": "CART, entropy",
    "CART (CV, accuracy)": "CART, tuned",
    "CART (CV, log loss)": "CART, tuned",
}
_LOOKS = {
    OURS: (0, False),
    OURS_WITH_PAIRS: (3, False),
    "CART": (7, False),
    "CART (entropy)": (7, True),
    "CART (CV, accuracy)": (1, False),
    "CART (CV, log loss)": (1, True),
}
# The number of leaves that is looked at set by set.
TYPICAL = 16
# Differences of log loss that have the full colour, and that count as none.
FULL_LOG_LOSS, LOG_LOSS_TIE = 0.1, 0.002


@dataclass(frozen=True)
class Gaps:
    """Differences between two methods, set by set, of which more is better."""

    each: pd.Series
    tie: float

    @property
    def mean(self) -> float:
        return float(self.each.mean())

    @property
    def median(self) -> float:
        return float(self.each.median())

    @property
    def counts(self) -> tuple[int, int, int]:
        """Sets on which the first is better, level and worse."""
        better, worse = int((self.each >= self.tie).sum()), int((self.each <= -self.tie).sum())
        return better, len(self.each) - better - worse, worse

    @property
    def words(self) -> str:
        """The counts."""
        better, level, worse = self.counts
        return (
            f"better on {better} of the {len(self.each)} sets, level on {level}, worse on {worse}"
        )


def rivals(analysis: Analysis, names: Sequence[str]) -> tuple[Entry, Entry]:
    """The CARTs to compare with, the best on the mean: by accuracy, and by log loss."""
    known = [
        entry
        for entry in (Entry(method, "leaves") for method in CARTS)
        if all(set(names) <= set(analysis.rows(entry, size).index) for size in LEAVES)
    ]

    def total(entry: Entry, column: str) -> float:
        return float(sum(analysis.rows(entry, s).loc[names, column].mean() for s in LEAVES))

    return (
        max(known, key=lambda entry: total(entry, "accuracy")),
        min(known, key=lambda entry: total(entry, "log_loss")),
    )


def measured(analysis: Analysis) -> list[str]:
    """The sets that trees of equal leaves are compared on."""
    needed = [Entry(name, "leaves") for name in (OURS, OURS_WITH_PAIRS, *CARTS[:2])]
    chosen = [Entry(name, "leaves") for name in CARTS[2:]]
    every = analysis.shared(needed, LEAVES)
    with_chosen = analysis.shared([*needed, *chosen], LEAVES)
    return with_chosen if len(with_chosen) > MANY * len(every) else every


def accuracy_gaps(
    analysis: Analysis, entry: Entry, rival: Entry, size: int, names: list[str]
) -> Gaps:
    """By how many points an entry is more often right than another."""
    ours, theirs = (analysis.accuracy(each, size)[names] for each in (entry, rival))
    return Gaps(ours - theirs, TIE)


def log_loss_gaps(
    analysis: Analysis, entry: Entry, rival: Entry, size: int, names: list[str]
) -> Gaps:
    """By how much an entry's log loss is lower than another's."""
    ours, theirs = (analysis.rows(each, size).loc[names, "log_loss"] for each in (entry, rival))
    return Gaps(theirs - ours, LOG_LOSS_TIE)


def leaves_tables(analysis: Analysis) -> list[Table]:
    """A table for each number of leaves."""
    names = measured(analysis)
    if not names:
        return []
    for_accuracy, for_log_loss = rivals(analysis, names)
    head = ["method", "accuracy", "mean gap", "median gap", "better / level / worse"]
    head += ["log loss", "median gap", "better / level / worse"]
    head += ["AUC", "leaves", "parts per node", "time / CART's"]
    tables = []
    for size in LEAVES:
        rows: list[Sequence[Cell | str] | str] = []
        for method, label in NAMES.items():
            entry = Entry(method, "leaves")
            found = analysis.rows(entry, size)
            if not set(names) <= set(found.index):
                continue
            found = found.loc[names]
            right = accuracy_gaps(analysis, entry, for_accuracy, size, names)
            sure = log_loss_gaps(analysis, entry, for_log_loss, size, names)
            rows.append(
                [
                    label,
                    f"{100 * found['accuracy'].mean():.1f}",
                    Cell(signed(right.mean), shade=shade(right.mean)),
                    Cell(signed(right.median), shade=shade(right.median)),
                    NOTHING if entry == for_accuracy else _counts(right),
                    f"{found['log_loss'].mean():.3f}",
                    Cell(
                        signed(-sure.median, 3), shade=shade(sure.median, FULL_LOG_LOSS, digits=3)
                    ),
                    NOTHING if entry == for_log_loss else _counts(sure),
                    f"{found['auc'].mean():.3f}",
                    f"{found['leaves'].mean():.1f}",
                    f"{found['parts'].mean():.1f}",
                    f"{fit_ratio(found):.2f}",
                ]
            )
        caption = (
            f"{size} leaves, on {len(names)} sets; gaps are to the best of these CARTs on the "
            f"mean: {NAMES[for_accuracy.method]}, in points of accuracy, and "
            f"{NAMES[for_log_loss.method]}, in log loss, of which less is better"
        )
        tables.append(Table(head, rows, caption))
    return tables


def _counts(gaps: Gaps) -> Cell:
    better, level, worse = gaps.counts
    return Cell(f"{better} / {level} / {worse}", shade=(better - worse) / len(gaps.each))


def by_dataset_table(analysis: Analysis) -> Table | None:
    """Accuracy and log loss of every set at a typical number of leaves."""
    names = measured(analysis)
    if not names:
        return None
    tuned = analysis.shared([Entry(name, "leaves") for name in CARTS[2:]], [TYPICAL])
    methods = [OURS, OURS_WITH_PAIRS, *(CARTS if set(names) <= set(tuned) else CARTS[:2])]
    rows: list[Sequence[Cell | str] | str] = []
    known = [analysis.rows(Entry(method, "leaves"), TYPICAL) for method in methods]
    memorised = [n for n in MEMORISED if all(n in each.index for each in known[:4])]
    for name in [*names, *memorised]:
        cells: list[Cell | str] = [analysis.dataset_label(name)]
        for column, digits, factor in (("accuracy", 1, 100), ("log_loss", 3, 1)):
            values = [
                each.loc[name, column] * factor if name in each.index else None for each in known
            ]
            there = [value for value in values if value is not None]
            best = max(there) if column == "accuracy" else min(there)
            for value in values:
                text = DASH if value is None else f"{value:.{digits}f}"
                is_best = text == f"{best:.{digits}f}"
                cells.append(f"**{text}**" if is_best else text)
        rows.append(cells)
        if name == names[-1] and memorised:
            rows.append("Where random splits reward memorising; not in the means")
    titles = [method if "CV" in method else _SHORT[method] for method in methods]
    head = ["dataset", *(f"{t}: {what}" for what in ("accuracy", "log loss") for t in titles)]
    return Table(head, rows, f"{TYPICAL} leaves, set by set; the best in bold")


def leaves_figure(analysis: Analysis) -> Figure | None:
    """Accuracy, log loss and AUC against the number of leaves."""
    names = measured(analysis)
    if not names:
        return None
    for_accuracy, for_log_loss = rivals(analysis, names)
    panels = []
    for column, title, factor, rival in (
        ("accuracy", "accuracy, %", 100, for_accuracy),
        ("log_loss", "log loss (less is better)", 1, for_log_loss),
        ("auc", "AUC", 1, for_log_loss),
    ):
        methods = dict.fromkeys((OURS, OURS_WITH_PAIRS, *CARTS[:2], rival.method))
        series = []
        for method in methods:
            points = []
            for size in LEAVES:
                value = factor * analysis.rows(Entry(method, "leaves"), size).loc[names, column]
                words = f"{NAMES[method]}, {size} leaves: {value.mean():.4g}"
                points.append((float(size), float(value.mean()), words))
            number, is_hollow = _LOOKS[method]
            is_ours = method in (OURS, OURS_WITH_PAIRS)
            tone = charts.colour(number)
            series.append(charts.Series(_SHORT[method], points, tone, is_hollow, is_ours))
        panels.append((title, series))
    svg = charts.panels(panels, "leaves", "", 3, is_log=True, size=(400, 270))
    caption = (
        f"At equal leaves: means over {len(names)} sets of the paper's collection, three splits "
        "each; shape trees with default settings, and with pairs of features."
    )
    return Figure("equal-leaves", svg, caption)


def gaps_figure(analysis: Analysis) -> Figure | None:
    """Differences from CART set by set."""
    names = measured(analysis)
    if not names:
        return None
    for_accuracy, for_log_loss = rivals(analysis, names)
    order: list[str] | None = None
    panels = []
    for title, gaps_to, rival in (
        ("points of accuracy above CART", accuracy_gaps, for_accuracy),
        ("log loss below CART's", log_loss_gaps, for_log_loss),
    ):
        found = {
            method: gaps_to(analysis, Entry(method, "leaves"), rival, TYPICAL, names).each
            for method in (OURS, OURS_WITH_PAIRS)
        }
        order = order or list(found[OURS].sort_values(ascending=False).index)
        series = [
            charts.Dots(
                _SHORT[method],
                [float(each[name]) for name in order],
                charts.colour(_LOOKS[method][0]),
                float(each.median()),
            )
            for method, each in found.items()
        ]
        panels.append((title, series))
    assert order is not None
    svg = charts.dot_plot(panels, order)
    both = dict.fromkeys(NAMES[each.method] for each in (for_accuracy, for_log_loss))
    caption = (
        f"Set by set, at {TYPICAL} leaves: right of the line, the shape tree is better; triangles "
        f"are medians. The gap is to the best CART on the mean ({' and '.join(both)})."
    )
    return Figure("gaps-by-dataset", svg, caption)


def headline(analysis: Analysis) -> list[str]:
    """What these tables show, in sentences."""
    names = measured(analysis)
    if not names:
        return []
    for_accuracy, for_log_loss = rivals(analysis, names)
    lines, parts = [], []
    for method, words in (
        (OURS, f"**Accuracy at 8 / 16 / 32 leaves**, {len(names)} sets, gap to"),
        (OURS_WITH_PAIRS, '**The same with `pairs="auto"`**, gap to'),
    ):
        entry = Entry(method, "leaves")
        gaps = [accuracy_gaps(analysis, entry, for_accuracy, size, names) for size in LEAVES]
        means = " / ".join(signed(each.mean) for each in gaps)
        medians = " / ".join(signed(each.median) for each in gaps)
        better, level, worse = gaps[LEAVES.index(TYPICAL)].counts
        lines.append(
            f"{words} {_brief(for_accuracy)}: mean {means} points, median {medians}; at {TYPICAL} "
            f"leaves better on {better} sets, level on {level}, worse on {worse}."
        )
        sizes = [analysis.rows(entry, size).loc[names, "parts"].mean() for size in LEAVES]
        parts.append(f"{min(sizes):.1f} to {max(sizes):.1f}")
    ours, carts = (
        [analysis.rows(each, size).loc[names] for size in LEAVES]
        for each in (Entry(OURS, "leaves"), for_log_loss)
    )
    numbers = [
        " / ".join(f"{each[column].mean():.3f}".removeprefix("0") for each in rows)
        for column in ("log_loss", "auc")
        for rows in (ours, carts)
    ]
    lines.append(
        f"**Probabilities at 8 / 16 / 32 leaves**: log loss {numbers[0]}, {_brief(for_log_loss)} "
        f"{numbers[1]}; AUC {numbers[2]}, against {numbers[3]}."
    )
    lines.append(
        f"**Size of a node**: {parts[0]} parts on average, with pairs {parts[1]}; the limit is "
        "six, and a threshold has two."
    )
    return lines


def _brief(entry: Entry) -> str:
    """What a CART is called in a sentence."""
    return "the best of four CARTs" if "CV" in entry.method else NAMES[entry.method]
