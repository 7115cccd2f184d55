"""Results as questions are asked of them: by entry, dataset and depth."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from shapetree_bench import _paper as paper
from shapetree_bench._datasets import BY_NAME
from shapetree_bench._evidence import Evidence
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import ANY_DEPTH

DEPTHS = paper.DEPTHS
# How each protocol is called beside a method's name.
PROTOCOL_WORDS = {"untuned": "untuned", "cv": 'strength="cv"', "paper": "tuned"}
OURS, OURS_WITH_PAIRS = "SGT3-T", "S2GT3-T"
# The same with the paper's objective.
ERROR, ERROR_WITH_PAIRS = f"{OURS} (error)", f"{OURS_WITH_PAIRS} (error)"
# Many trees, as what one tree can be compared with; the first with default settings.
CEILINGS = ("LightGBM, 200 trees", "LightGBM, 200 trees, reg_lambda=1")
# Where ids, dates or neighbours tell rows apart, so that random splits reward memorising.
MEMORISED = ("avila", "electricity", "eye-movements")
# Points that they may be below CART before they count as diverged.
DIVERGED = 5.0
# A mean of the paper is estimated for datasets that are at least this share of its own, and a
# sentence rests on such an estimate only for many.
ENOUGH, MANY = 0.6, 0.75


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
        if self.protocol == "leaves" or (self.protocol == "untuned" and is_plain):
            return self.method
        return f"{self.method}, {PROTOCOL_WORDS[self.protocol]}"


class Analysis:
    """Results by entry, dataset and depth."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        cells = evidence.cells
        # A mean over fewer folds than others have is not to be compared with theirs.
        n_folds = cells["dataset"].map(lambda name: BY_NAME[name].n_folds)
        whole = cells[cells["folds"] == n_folds]
        is_random = whole["dataset"].map(lambda name: BY_NAME[name].split == "random")
        self._whole = whole
        self.cells = whole[is_random & (whole["protocol"] != "leaves")]
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
    def _by_entry(self) -> dict[tuple[str, str, int, bool], pd.DataFrame]:
        is_random = self._whole["dataset"].map(lambda name: BY_NAME[name].split == "random")
        return {
            (str(method), str(protocol), int(depth), bool(random)): each.set_index("dataset")
            for (method, protocol, depth, random), each in self._whole.groupby(
                ["method", "protocol", "depth", is_random]
            )
        }

    def rows(self, entry: Entry, depth: int, is_random: bool = True) -> pd.DataFrame:
        """The cells of an entry at a depth, by dataset; a method without depths has them at any.

        Datasets are those parted at random as in the paper, or all others.
        """
        for there in (depth, ANY_DEPTH):
            found = self._by_entry.get((entry.method, entry.protocol, there, is_random))
            if found is not None:
                return found
        return self._nothing

    def is_old(self, entry: Entry) -> bool:
        """Whether results are of version 0.1, and so nothing but what has not changed since."""
        cells = self._whole
        own = cells[(cells["method"] == entry.method) & (cells["protocol"] == entry.protocol)]
        return len(own) > 0 and bool(own["revision"].astype(str).str.startswith("0.1").all())

    def shared(
        self, entries: Iterable[Entry], depths: Iterable[int], column: str = "accuracy"
    ) -> list[str]:
        """Complete classification sets that all entries have at all depths.

        Those are left out where rows are told apart by ids and dates, see `MEMORISED`.
        """
        rows = [self.rows(entry, depth) for entry in entries for depth in depths]
        known = [set(each.index[each[column].notna()]) for each in rows]
        names = set.intersection(*known) if known else set()
        return in_order(names - self.partial - set(MEMORISED))

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


def counterparts(analysis: Analysis, model: str) -> list[Entry]:
    """Entries that stand beside a row of the paper; first those that learn for its measure."""
    found = [
        entry
        for entry in analysis.entries
        if entry.method in METHODS and METHODS[entry.method].counterpart == model
    ]
    return sorted(found, key=lambda entry: not entry.method.endswith("(error)"))


def gap_to_paper(
    analysis: Analysis,
    entry: Entry,
    model: str,
    bivariate: bool,
    depth: int,
    enough: float,
    only_complete: bool = False,
) -> float | None:
    """Difference from the paper's mean on the same datasets; None if these are too few."""
    wanted = paper.datasets(depth, bivariate)
    scores = analysis.accuracy(entry, depth)
    left_out = analysis.partial if only_complete else set()
    names = [name for name in wanted if name in scores.index and name not in left_out]
    if not names or len(names) < enough * len(wanted):
        return None
    return float(scores[names].mean() - paper.mean_over(model, bivariate, depth, names))


def diverged(analysis: Analysis, ceiling: str) -> list[str]:
    """Datasets on which boosting fails: it is then far below one tree, which is no ceiling."""
    high = analysis.accuracy(Entry(ceiling), ANY_DEPTH)
    behind = (analysis.accuracy(Entry("CART"), DEPTHS[-1]) - high).dropna()
    return [str(name) for name in behind.index[behind > DIVERGED]]


def fit_ratio(cells: pd.DataFrame) -> float:
    """Geometric mean over datasets of the time of a fit, as a multiple of CART's."""
    ratios = (cells["seconds"] / cells["cart_seconds"]).dropna()
    ratios = ratios[ratios > 0]
    return float(np.exp(np.log(ratios).mean())) if len(ratios) else float("nan")


# Entries, and the datasets on which they are compared.
Selection: TypeAlias = tuple[list[Entry], list[str]]


def selections(analysis: Analysis, depth: int) -> list[Selection]:
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
            in_order(many),
        )
    ]
    if few:
        found.append(([entry for entry in coverage if few & coverage[entry]], in_order(few)))
    return found


def in_order(names: set[str]) -> list[str]:
    """Datasets in the order of the catalogue."""
    return [name for name in BY_NAME if name in names]
