"""The README's tables, from results that are kept with the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import fill

import pandas as pd

from shapetree_bench import _paper as paper
from shapetree_bench._analysis import DEPTHS, Analysis, Entry
from shapetree_bench._datasets import BY_NAME, CATALOGUE, GROUPS
from shapetree_bench._document import Table, markdown_table, signed
from shapetree_bench._evidence import Evidence

CART, SHAPE, GREEDY, TWO_BRANCHES = Entry("CART"), Entry("SGT3-T"), Entry("SGT3-C"), Entry("SGT-T")
PAIRS, CHOSEN = Entry("S2GT3-T"), Entry("SGT3-T", "cv")
# Up to so many rows sgtlearn is compared with.
MAX_ROWS = 21_000
# Of lines of the README.
WIDTH = 108

_BLOCK = re.compile(r"(<!-- bench: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


class _NotMeasured(Exception):
    """A table for which there are no results."""


def update(text: str, evidence: Evidence) -> str:
    """The README with every marked table made anew.

    A table stands between `<!-- bench: name -->` and `<!-- end -->`.
    """
    analysis = Analysis(evidence)

    def replace(found: re.Match[str]) -> str:
        name = found[2]
        if name not in BLOCKS:
            raise ValueError(f"the README asks for {name!r}, which is none of {', '.join(BLOCKS)}")
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


def _complete(analysis: Analysis, entries: list[Entry], max_rows: int | None = None) -> list[str]:
    """Complete classification sets that all entries have at all depths."""
    names = []
    for dataset in CATALOGUE:
        is_wanted = dataset.task == "classification" and dataset.name not in analysis.partial
        if not is_wanted or (max_rows is not None and dataset.rows > max_rows):
            continue
        found = (analysis.accuracy(e, depth).index for e in entries for depth in DEPTHS)
        if all(dataset.name in index for index in found):
            names.append(dataset.name)
    if not names:
        raise _NotMeasured
    return names


def _mean(analysis: Analysis, entry: Entry, depth: int, names: list[str], column: str) -> float:
    return float(analysis.rows(entry, depth).loc[names, column].mean())


def _percent(value: float) -> str:
    return f"{value:.1f} %"


def _over(names: list[str]) -> str:
    n_complete = sum(BY_NAME[each].task == "classification" for each in GROUPS["all"]) - 3
    every = "all " if len(names) >= n_complete else ""
    return f"{every}{len(names)} complete classification sets of the paper's collection"


def accuracy(analysis: Analysis) -> str:
    """Accuracy by depth beside CART and the paper."""
    names = _complete(analysis, [CART, SHAPE, GREEDY, TWO_BRANCHES])
    rows = []
    for depth in DEPTHS:
        scores = {e: analysis.accuracy(e, depth)[names] for e in (SHAPE, GREEDY, CART)}
        theirs = pd.Series({n: paper.value("accuracy", n, "SGT-C", depth) for n in names})
        theirs = theirs.dropna().astype(float)
        narrow = analysis.accuracy(TWO_BRANCHES, depth)[theirs.index]
        means = [_percent(scores[entry].mean()) for entry in (SHAPE, GREEDY, CART)]
        worst = signed((scores[SHAPE] - scores[CART]).min())
        both = [_percent(narrow.mean()), _percent(theirs.mean())]
        rows.append([str(depth), *means, worst, "", *both])
    head = ["depth", "shape tree", "without refinement", "CART", "worst set vs CART", ""]
    head += ["`max_branches=2`", "the paper's, tuned"]
    text = (
        f"Mean test accuracy over {_over(names)}, three splits each (70\u00a0% for training, "
        "20\u00a0% for testing), default parameters except for the depth (CART uses Gini). "
        "The last columns compare `max_branches=2` with the paper's own greedy tree of that kind, "
        "the best of 50 tuned trials, on the sets for which the paper reports it."
    )
    return f"{fill(text, WIDTH)}\n\n{markdown_table(Table(head, rows))}"


def pairs(analysis: Analysis) -> str:
    """What pairs of features add."""
    names = _complete(analysis, [SHAPE, PAIRS])
    rows = []
    for depth in DEPTHS:
        one, two = (analysis.accuracy(e, depth)[names].mean() for e in (SHAPE, PAIRS))
        rows.append([str(depth), _percent(two), _percent(one), signed(two - one)])
    table = Table(["depth", "with pairs", "one feature", "difference"], rows)
    return f"On {len(names)} of these sets:\n\n{markdown_table(table)}"


def strength(analysis: Analysis) -> str:
    """What choosing the strength adds."""
    names = _complete(analysis, [SHAPE, CHOSEN])
    rows = []
    for depth in DEPTHS:
        plain, chosen = (analysis.accuracy(e, depth)[names] for e in (SHAPE, CHOSEN))
        leaves = [_mean(analysis, e, depth, names, "leaves") for e in (SHAPE, CHOSEN)]
        gaps = chosen - plain
        row = [_percent(chosen.mean()), _percent(plain.mean()), signed(gaps.mean())]
        row += [signed(gaps.min()), f"{leaves[1]:.1f}", f"{leaves[0]:.1f}"]
        rows.append([str(depth), *row])
    head = ["depth", 'strength="cv"', "default", "difference", "worst set", "leaves", "by default"]
    return f"On {len(names)} of these sets:\n\n{markdown_table(Table(head, rows))}"


def sgtlearn(analysis: Analysis) -> str:
    """The paper's authors' library."""
    entries = {
        "shape tree, `max_branches=2`": TWO_BRANCHES,
        "sgtlearn, two branches (default)": Entry("sgtlearn"),
        "shape tree, three branches (default)": SHAPE,
        "sgtlearn, three branches": Entry("sgtlearn, K=3"),
    }
    names = _complete(analysis, list(entries.values()), MAX_ROWS)
    rows = []
    for label, entry in entries.items():
        row = [label]
        for depth in (4, 6):
            row.append(_percent(analysis.accuracy(entry, depth)[names].mean()))
            sizes = (_mean(analysis, entry, depth, names, c) for c in ("leaves", "segments"))
            row += [f"{size:.1f}" for size in sizes]
        rows.append(row)
    head = ["", "depth 4: accuracy", "leaves", "segments per node"]
    head += ["depth 6: accuracy", "leaves", "segments per node"]
    text = (
        "Beside sgtlearn, the paper's authors' own library, with its defaults, on "
        f"{len(names)} of these sets, which have up to {MAX_ROWS:,} rows:"
    )
    return f"{fill(text, WIDTH)}\n\n{markdown_table(Table(head, rows))}"


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
    "accuracy": accuracy,
    "sgtlearn": sgtlearn,
    "pairs": pairs,
    "strength": strength,
    "regression": regression,
}
