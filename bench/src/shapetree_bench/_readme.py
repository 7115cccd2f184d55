"""Tables of texts such as the README, from results that are kept with the code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from shapetree_bench import _equal_leaves as equal_leaves
from shapetree_bench import _other_splits as other_splits
from shapetree_bench._analysis import DEPTHS, OURS, OURS_WITH_PAIRS, Analysis, Entry
from shapetree_bench._datasets import GROUPS
from shapetree_bench._document import Cell, Table, markdown_table, signed
from shapetree_bench._evidence import Evidence
from shapetree_bench._protocols import LEAVES

CART, SHAPE = Entry("CART"), Entry(OURS)

_BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class _NotMeasured(Exception):
    """A table for which there are no results."""


def marked(folder: Path) -> list[Path]:
    """The README and the documents of a folder that have marked tables."""
    paths = [folder / "README.md", *sorted((folder / "docs").rglob("*.md"))]
    return [path for path in paths if path.exists() and _BLOCK.search(path.read_text("utf-8"))]


def update(text: str, evidence: Evidence) -> str:
    """The text with every marked table made anew.

    A table stands between `<!-- bench: name -->` and `<!-- end -->`.
    """
    analysis = Analysis(evidence)

    def replace(found: re.Match[str]) -> str:
        name = found[2]
        if name not in BLOCKS:
            raise ValueError(f"the text asks for {name!r}, which is none of {', '.join(BLOCKS)}")
        try:
            made = BLOCKS[name](analysis)
        except _NotMeasured:
            made = "(Not measured yet.)"
        return f"{found[1]}{made}\n{found[3]}"

    return _BLOCK.sub(replace, text)


def outdated(path: Path, evidence: Evidence) -> list[str]:
    """Names of the tables that are not as the results have them."""
    text = path.read_text(encoding="utf-8")
    old, new = _BLOCK.finditer(text), _BLOCK.finditer(update(text, evidence))
    return [one[2] for one, other in zip(old, new, strict=True) if one[0] != other[0]]


def _all(tables: Iterable[Table | None]) -> str:
    found = [f"{each.caption}:\n\n{markdown_table(each)}" for each in tables if each is not None]
    if not found:
        raise _NotMeasured
    return "\n\n".join(found)


def summary(analysis: Analysis) -> str:
    """The first lines of the report, as a table: ours, and the CART that it is compared with."""
    rows = [*_summary_of_leaves(analysis), *_summary_of_depth(analysis)]
    rows += _summary_of_few_rows(analysis)
    if not rows:
        raise _NotMeasured
    return markdown_table(Table(["", "shape tree", "CART"], rows))


def _summary_of_leaves(analysis: Analysis) -> list[list[Cell | str]]:
    names = equal_leaves.measured(analysis)
    if not names:
        return []
    for_accuracy, for_log_loss = equal_leaves.rivals(analysis, names)
    kind = ", tuned" if "CV" in for_accuracy.method else ""
    rows: list[list[Cell | str]] = []
    for method, more in ((OURS, ""), (OURS_WITH_PAIRS, ', `pairs="auto"`')):
        entry = Entry(method, "leaves")
        gaps = [
            equal_leaves.accuracy_gaps(analysis, entry, for_accuracy, size, names)
            for size in LEAVES
        ]
        carts = " / ".join(
            f"{analysis.accuracy(for_accuracy, s)[names].mean():.1f}" for s in LEAVES
        )
        mean, median = (
            " / ".join(signed(each) for each in values)
            for values in ([g.mean for g in gaps], [g.median for g in gaps])
        )
        title = f"{len(names)} sets, 8 / 16 / 32 leaves{more}: accuracy, gap (median)"
        rows.append([title, f"{mean} ({median})", f"{carts} %{kind}"])
        for column, words in (("log_loss", "log loss"), ("auc", "AUC")):
            numbers = [
                " / ".join(
                    f"{analysis.rows(each, s).loc[names, column].mean():.3f}".removeprefix("0")
                    for s in LEAVES
                )
                for each in (entry, for_log_loss)
            ]
            rows.append([f"the same: {words}", numbers[0], f"{numbers[1]}{kind}"])
        parts = [f"{analysis.rows(entry, s).loc[names, 'parts'].mean():.1f}" for s in LEAVES]
        rows.append(["the same: parts per node", " / ".join(parts), "2"])
    return rows


def _summary_of_depth(analysis: Analysis) -> list[list[Cell | str]]:
    names = analysis.shared([SHAPE, CART], [4])
    if not names:
        return []
    ours, cart = (analysis.rows(entry, 4).loc[names] for entry in (SHAPE, CART))
    gaps = 100 * (ours["accuracy"] - cart["accuracy"])
    title = f"{len(names)} sets, depth 4: accuracy, gap (median); leaves"
    words = f"{signed(gaps.mean())} ({signed(gaps.median())}); {ours['leaves'].mean():.0f}"
    return [[title, words, f"{100 * cart['accuracy'].mean():.1f} %; {cart['leaves'].mean():.0f}"]]


def _summary_of_few_rows(analysis: Analysis) -> list[list[Cell | str]]:
    found = other_splits.few_rows(analysis, "classification")
    rows: list[list[Cell | str]] = []
    if found:
        ours, cart = found[other_splits.DEFAULTS], found[other_splits.CART_OF_FEW_ROWS]
        numbers = [
            f"{each['auc'].mean():.2f}, {each['log_loss'].mean():.2f}, "
            f"{100 * each['accuracy'].mean():.0f} %"
            for each in (ours, cart)
        ]
        title = f"{len(ours)} clinical and social tables of few rows: AUC, log loss, accuracy"
        rows.append([title, *numbers])
    found = other_splits.few_rows(analysis, "regression")
    if found:
        ours, cart = found[other_splits.DEFAULTS], found[other_splits.CART_OF_FEW_ROWS]
        r2 = [f"{1 - each['squared_error'].mean():.2f}" for each in (ours, cart)]
        rows.append([f"{len(ours)} such tables with numbers: R²", *r2])
    return rows


def leaves(analysis: Analysis) -> str:
    """Trees of as many leaves."""
    return _all(equal_leaves.leaves_tables(analysis))


def few_rows(analysis: Analysis) -> str:
    """Tables of few rows."""
    return _all(other_splits.few_rows_tables(analysis))


def not_random(analysis: Analysis) -> str:
    """Splits by groups and in time order."""
    return _all([other_splits.other_splits_table(analysis)])


def regression(analysis: Analysis) -> str:
    """Squared errors, and CART's."""
    names = [
        name
        for name in GROUPS["regression"]
        if all(name in analysis.rows(e, d).index for e in (SHAPE, CART) for d in DEPTHS)
    ]
    if not names:
        raise _NotMeasured
    rows = []
    for depth in DEPTHS:
        errors = (analysis.rows(e, depth).loc[names, "squared_error"] for e in (SHAPE, CART))
        ours, carts = errors
        rows.append([str(depth), *(f"{ours[n]:.3f} ({carts[n]:.3f})" for n in names)])
    return markdown_table(Table(["depth", *map(analysis.dataset_label, names)], rows))


BLOCKS: dict[str, Callable[[Analysis], str]] = {
    "summary": summary,
    "leaves": leaves,
    "few_rows": few_rows,
    "not_random": not_random,
    "regression": regression,
}
