"""What results show, in sentences: how far to trust the harness, who is ahead, who is behind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shapetree_bench import _paper as paper
from shapetree_bench._analysis import (
    CEILINGS,
    DEPTHS,
    MANY,
    OURS,
    PROTOCOL_WORDS,
    Analysis,
    Entry,
    diverged,
    gap_to_paper,
)
from shapetree_bench._datasets import GROUPS
from shapetree_bench._document import signed
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import N_TRIALS

# Of which the paper has numbers by dataset.
_GREEDY_MODELS = ("SGT-C", "SGT3-C", "S2GT-C", "S2GT3-C")
# A dataset is named if it is behind by this many points on average over depths.
FAR_BEHIND = 1.0


def findings(analysis: Analysis) -> list[str]:
    """The sentences, in the order in which they are read."""
    return [
        *_lines_on_default_tree(analysis),
        *(line for protocol in PROTOCOL_WORDS for line in _lines_on_means(analysis, protocol)),
        *_lines_on_datasets(analysis),
        *_lines_on_regression(analysis),
        *_lines_on_cart(analysis),
        *_lines_on_cart_regression(analysis),
        *_lines_on_recipes(analysis),
    ]


def _lines_on_cart(analysis: Analysis) -> Iterator[str]:
    """Whether the harness gives the paper's figures for CART."""
    for entry, words in (
        (Entry("CART", "paper"), "CART, tuned as in the paper,"),
        (Entry("CART"), "CART with default settings"),
    ):
        gaps = _gaps(analysis, entry, "CART", False)
        if gaps:
            complete = _gaps(analysis, entry, "CART", False, only_complete=True)
            yield (
                f"**The harness.** {words} differs from the paper's tuned CART, in mean accuracy "
                f"over the same datasets, by {_by_depth(gaps)}; on complete datasets alone by "
                f"{_by_depth(complete)} (estimated)."
            )
            return


def _gaps(
    analysis: Analysis, entry: Entry, model: str, bivariate: bool, only_complete: bool = False
) -> dict[int, float]:
    """Differences from the paper's means by depth, where most datasets were measured."""
    found = {
        depth: gap_to_paper(analysis, entry, model, bivariate, depth, MANY, only_complete)
        for depth in DEPTHS
    }
    return {depth: gap for depth, gap in found.items() if gap is not None}


def _by_depth(gaps: dict[int, float]) -> str:
    return ", ".join(f"{signed(gap)} at depth {depth}" for depth, gap in gaps.items())


def _lines_on_cart_regression(analysis: Analysis) -> Iterator[str]:
    near, far = 0, []
    for dataset in GROUPS["regression"]:
        for depth in DEPTHS:
            cells = analysis.rows(Entry("CART"), depth)
            theirs = paper.value("squared error", dataset, "CART", depth)
            if dataset in analysis.partial or dataset not in cells.index or theirs is None:
                continue
            error = cells.loc[dataset, "squared_error"]
            spread = paper.spread("squared error", dataset, "CART", depth)
            if abs(error - theirs) <= spread + 0.001:  # both are rounded
                near += 1
            else:
                far.append(f"{dataset} at depth {depth} ({error:.3f}, the paper {theirs:.3f})")
    if near or far:
        yield (
            "For regression the paper gives CART by dataset. CART's squared error is within one of "
            f"the paper's standard deviations in {near} of {near + len(far)} cells with complete "
            f"data{_except(far)}."
        )


def _lines_on_recipes(analysis: Analysis) -> Iterator[str]:
    """Whether the paper's own recipes, tuned here, give its figures."""
    for model in _GREEDY_MODELS:
        entry, gaps, near = Entry(f"{model} (paper)", "paper"), [], 0
        trials: set[int] = set()
        for depth in DEPTHS:
            for dataset, score in analysis.accuracy(entry, depth).items():
                found = paper.accuracy(str(dataset), model, depth)
                if found is not None and dataset not in analysis.partial:
                    theirs, spread = found
                    gaps.append(score - theirs)
                    near += abs(gaps[-1]) <= spread + 0.05  # both are rounded
                    trials.add(int(analysis.rows(entry, depth).loc[dataset, "trials"]))
        if gaps:
            yield (
                f"The paper's own recipe for {model}, tuned here with {span(trials)} trials "
                f"instead of {N_TRIALS}, differs from the paper's figures by "
                f"{signed(sum(gaps) / len(gaps))} points on average over {len(gaps)} cells, "
                f"{near} of them within one of the paper's standard deviations."
            )


def span(numbers: set[int]) -> str:
    """The smallest and the largest, or the only number."""
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


def _lines_on_means(analysis: Analysis, protocol: str) -> Iterator[str]:
    """In how many cells of the paper's tables of means our trees are ahead."""
    n_cells, words = _standing(analysis, protocol, only_complete=False)
    if not n_cells:
        return
    line = (
        f"**Our trees, {PROTOCOL_WORDS[protocol]}**, beside the paper's tuned trees of the same "
        f"name, in the {n_cells} cells of its tables of means for which most datasets were "
        f"measured: {words}."
    )
    if analysis.partial:
        n_complete, words = _standing(analysis, protocol, only_complete=True)
        line += f" On complete datasets alone ({n_complete} cells, estimated): {words}."
    yield line


def _standing(analysis: Analysis, protocol: str, only_complete: bool) -> tuple[int, str]:
    """Of how many cells one can tell, and in how many of these our trees are ahead and behind."""
    found = {
        (model, depth): round(gap, 1)
        for bivariate, blocks in paper.BLOCKS.items()
        for model in (name for block in blocks for name in block)
        if model in METHODS and METHODS[model].kind == "ours"
        for depth, gap in _gaps(
            analysis, Entry(model, protocol), model, bivariate, only_complete
        ).items()
    }
    signs = [np.sign(gap) for gap in found.values()]
    behind = [
        f"{model} at depth {depth} ({_about(analysis, model, protocol, depth)}{signed(gap)})"
        for (model, depth), gap in found.items()
        if gap < 0
    ]
    words = f"ahead in {signs.count(1)}, level in {signs.count(0)}, behind in {len(behind)}"
    return len(found), words + (f", namely {', '.join(behind)}" if behind else "")


def _about(analysis: Analysis, model: str, protocol: str, depth: int) -> str:
    """A sign for a mean of the paper that is an estimate, because datasets are missing here."""
    wanted = paper.datasets(depth, METHODS[model].bivariate)
    is_whole = set(wanted) <= set(analysis.accuracy(Entry(model, protocol), depth).index)
    return "" if is_whole or model == "SGT-C" else "\N{ALMOST EQUAL TO}"


def _lines_on_datasets(analysis: Analysis) -> Iterator[str]:
    """On which datasets the one model that the paper has by dataset is behind."""
    for protocol in ("cv", "untuned"):
        gaps: dict[str, list[float]] = {}
        for depth in DEPTHS:
            for dataset, score in analysis.accuracy(Entry("SGT-C", protocol), depth).items():
                theirs = paper.value("accuracy", str(dataset), "SGT-C", depth)
                if theirs is not None:
                    gaps.setdefault(str(dataset), []).append(score - theirs)
        means = {name: sum(each) / len(each) for name, each in gaps.items()}
        if not means:
            continue
        far = [
            f"{analysis.dataset_label(name)} ({signed(gap)})"
            for name, gap in sorted(means.items(), key=lambda item: item[1])
            if gap <= -FAR_BEHIND
        ]
        n_behind = sum(gap < 0 for gap in means.values())
        yield (
            f"Dataset by dataset, our SGT-C, {PROTOCOL_WORDS[protocol]}, is behind the paper's on "
            f"{n_behind} of {len(means)} datasets, on average over depths; by a point or more on "
            f"{', '.join(far) or 'none'}."
        )
        return


def _lines_on_regression(analysis: Analysis) -> Iterator[str]:
    """On which datasets our trees have larger errors than the paper's."""
    for protocol in ("cv", "untuned"):
        n_cells, behind = 0, {}
        for model in _GREEDY_MODELS:
            for dataset in GROUPS["regression"]:
                ratios = _error_ratios(analysis, Entry(model, protocol), model, dataset)
                n_cells += len(ratios)
                depths = [str(depth) for depth, ratio in ratios.items() if ratio > 1]
                if depths:
                    behind[f"{model} on {dataset}"] = depths
        if n_cells:
            n_behind = sum(map(len, behind.values()))
            words = "; ".join(f"{name} (depth {', '.join(ds)})" for name, ds in behind.items())
            yield (
                f"In regression, our trees, {PROTOCOL_WORDS[protocol]}, have a larger squared "
                f"error than the paper's tuned trees of the same name in {n_behind} of {n_cells} "
                f"cells with complete data{': ' if words else ''}{words}."
            )
            return


def _error_ratios(analysis: Analysis, entry: Entry, model: str, dataset: str) -> dict[int, float]:
    """Squared errors by depth, as printed, over the paper's."""
    found = {}
    for depth in DEPTHS:
        cells = analysis.rows(entry, depth)
        theirs = paper.value("squared error", dataset, model, depth)
        if theirs is not None and dataset in cells.index and dataset not in analysis.partial:
            found[depth] = round(cells.loc[dataset, "squared_error"], 3) / theirs
    return found


def _lines_on_default_tree(analysis: Analysis) -> Iterator[str]:
    found = []
    for depth in (3, 6):
        cart = analysis.accuracy(Entry("CART"), depth)
        gaps = (analysis.accuracy(Entry(OURS), depth) - cart).dropna()
        if len(gaps):
            worst = analysis.dataset_label(str(gaps.idxmin()))
            found.append(
                f"{signed(gaps.mean())} points at depth {depth}, on average over {len(gaps)} "
                f"datasets ({signed(gaps.min())} on {worst}, where it does worst)"
            )
    if found:
        yield (
            f"**The default tree**, `{OURS}` without tuning, differs from CART by "
            f"{' and by '.join(found)}."
        )


def _except(names: list[str]) -> str:
    return f"; the others are {', '.join(names)}" if names else ""


def words_on_ceilings(analysis: Analysis) -> list[str]:
    """Why there are two kinds of many trees to compare with, if there are."""
    plain = CEILINGS[0]
    lost = diverged(analysis, plain)
    if not lost:
        return []
    scores = [analysis.accuracy(Entry(name), 0) for name in CEILINGS]
    name = lost[0]
    words = (
        f"With default settings, {plain} fail on {', '.join(lost)}: the accuracy on {name} is "
        f"{scores[0][name]:.1f} %, lower than a single tree's. Where a class has few rows, the "
        "loss in a leaf has hardly any curvature, and boosting takes steps without bound."
    )
    if name in scores[1].index:
        words += (
            f" With `reg_lambda=1` it is {scores[1][name]:.1f} %. The table below therefore has "
            "both: default settings without this dataset, and `reg_lambda=1` with all."
        )
    return [words]
