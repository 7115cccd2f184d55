"""What results show, in sentences: how far to trust the harness, who is ahead, who is behind."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shapetree_bench import _equal_leaves, _other_splits
from shapetree_bench import _paper as paper
from shapetree_bench._analysis import (
    CEILINGS,
    DEPTHS,
    ENOUGH,
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
# The depth that the first screen speaks of.
TYPICAL_DEPTH = 4


def findings(analysis: Analysis) -> list[str]:
    """The sentences on the paper's tables, in the order in which they are read."""
    return [
        *_lines_on_means(analysis),
        *_lines_on_datasets(analysis),
        *_lines_on_regression(analysis),
        *_lines_on_cart(analysis),
        *_lines_on_cart_regression(analysis),
        *_lines_on_recipes(analysis),
    ]


def headlines(analysis: Analysis) -> list[str]:
    """What the first screen says, a line each."""
    return [
        *_equal_leaves.headline(analysis),
        *_line_on_depth(analysis),
        *_other_splits.headline(analysis),
        *_line_on_paper(analysis),
        *_line_on_weakness(analysis),
    ]


def _line_on_depth(analysis: Analysis) -> Iterator[str]:
    """The default tree beside CART of the same depth, with its size."""
    depth, carts = TYPICAL_DEPTH, [Entry("CART"), Entry("CART (entropy)")]
    names = analysis.shared([Entry(OURS), *carts], [depth])
    if not names:
        return
    rival = max(carts, key=lambda entry: analysis.accuracy(entry, depth)[names].mean())
    ours, cart = (analysis.rows(entry, depth).loc[names] for entry in (Entry(OURS), rival))
    gaps = 100 * (ours["accuracy"] - cart["accuracy"])
    pairs = [
        f"{title} {ours[column].mean():.{digits}f}, CART {cart[column].mean():.{digits}f}"
        for column, title, digits in (
            ("log_loss", "log loss", 3),
            ("auc", "AUC", 3),
            ("leaves", "leaves", 0),
        )
        if ours[column].notna().all() and cart[column].notna().all()
    ]
    yield (
        f"**At depth {depth}**, where three branches give more leaves ({len(names)} sets): "
        f"{signed(gaps.mean())} points from the better of two CARTs in accuracy on the mean, "
        f"{signed(gaps.median())} on the median; {'; '.join(pairs)}."
    )


def _line_on_paper(analysis: Analysis) -> Iterator[str]:
    """Our trees beside the paper's figures for its own, and beside its own as fitted here."""
    n_cells, words = _standing(analysis, only_complete=False, names_cells=False)
    pieces = []
    if n_cells:
        pieces.append(
            'our trees with `objective="error"`, untuned, beside its tuned ones: '
            f"{words} of {n_cells} cells"
        )
    for model in ("SGT-T", "S2GT-T"):
        entries = [Entry(f"{model} (paper)"), Entry(f"{model} (error)")]
        names = analysis.shared(entries, [TYPICAL_DEPTH])
        if names:
            theirs, own = (analysis.accuracy(e, TYPICAL_DEPTH)[names].mean() for e in entries)
            pieces.append(
                f"its own recipe for {model}, untuned, depth {TYPICAL_DEPTH}, {theirs:.1f} %, ours "
                f"{own:.1f} %"
            )
    if pieces:
        yield f"**The paper's tables** (accuracy at equal depth): {'; '.join(pieces)}."


def _line_on_weakness(analysis: Analysis) -> Iterator[str]:
    """Where the default tree does worst, and what it costs."""
    names = _equal_leaves.measured(analysis)
    if not names:
        return
    rival, _ = _equal_leaves.rivals(analysis, names)
    entry, size = Entry(OURS, "leaves"), _equal_leaves.TYPICAL
    gaps = _equal_leaves.accuracy_gaps(analysis, entry, rival, size, names).each.sort_values()
    worst = ", ".join(f"{name} ({signed(gap)})" for name, gap in gaps.head(3).items() if gap < 0)
    found = analysis.rows(entry, size).loc[names]
    ratios = (found["seconds"] / found["cart_seconds"]).dropna()
    yield (
        f"**Where it is behind** in accuracy at {size} leaves: {worst or 'nowhere'}. A fit takes "
        f"{ratios.median():.0f} times as long as CART's on the median set, {ratios.min():.1f} to "
        f"{ratios.max():.0f}; up to 5,000 rows, most of it is resamples."
    )


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
    analysis: Analysis,
    entry: Entry,
    model: str,
    bivariate: bool,
    only_complete: bool = False,
    enough: float = MANY,
) -> dict[int, float]:
    """Differences from the paper's means by depth, where most datasets were measured."""
    found = {
        depth: gap_to_paper(analysis, entry, model, bivariate, depth, enough, only_complete)
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


def _lines_on_means(analysis: Analysis) -> Iterator[str]:
    """In how many cells of the paper's tables of means our trees are ahead."""
    n_cells, words = _standing(analysis, only_complete=False)
    if not n_cells:
        return
    line = (
        '**Our trees with `objective="error"`**, untuned, beside the paper\'s tuned trees of the '
        f"same name, in the {n_cells} cells of its tables of means for which enough datasets were "
        f"measured: {words}."
    )
    if analysis.partial:
        n_complete, words = _standing(analysis, only_complete=True)
        line += f" On complete datasets alone ({n_complete} cells, estimated): {words}."
    yield line


def _standing(analysis: Analysis, only_complete: bool, names_cells: bool = True) -> tuple[int, str]:
    """Of how many cells one can tell, and in how many of these our trees are ahead and behind."""
    found = {
        (model, depth): round(gap, 1)
        for bivariate, blocks in paper.BLOCKS.items()
        for model in (name for block in blocks for name in block)
        if f"{model} (error)" in METHODS
        for depth, gap in _gaps(
            analysis, Entry(f"{model} (error)"), model, bivariate, only_complete, ENOUGH
        ).items()
    }
    signs = [np.sign(gap) for gap in found.values()]
    behind = [
        f"{model} at depth {depth} ({_about(analysis, model, depth)}{signed(gap)})"
        for (model, depth), gap in found.items()
        if gap < 0
    ]
    words = f"ahead in {signs.count(1)}, level in {signs.count(0)}, behind in {len(behind)}"
    if behind and names_cells:
        words += f", namely {', '.join(behind)}"
    return len(found), words


def _about(analysis: Analysis, model: str, depth: int) -> str:
    """A sign for a mean of the paper that is an estimate, because datasets are missing here."""
    wanted = paper.datasets(depth, METHODS[model].bivariate)
    there = analysis.accuracy(Entry(f"{model} (error)"), depth).index
    return "" if set(wanted) <= set(there) or model == "SGT-C" else "\N{ALMOST EQUAL TO}"


def _lines_on_datasets(analysis: Analysis) -> Iterator[str]:
    """On which datasets the one model that the paper has by dataset is behind."""
    gaps: dict[str, list[float]] = {}
    for depth in DEPTHS:
        for dataset, score in analysis.accuracy(Entry("SGT-C (error)"), depth).items():
            theirs = paper.value("accuracy", str(dataset), "SGT-C", depth)
            if theirs is not None:
                gaps.setdefault(str(dataset), []).append(score - theirs)
    means = {name: sum(each) / len(each) for name, each in gaps.items()}
    if not means:
        return
    far = [
        f"{analysis.dataset_label(name)} ({signed(gap)})"
        for name, gap in sorted(means.items(), key=lambda item: item[1])
        if gap <= -FAR_BEHIND
    ]
    n_behind = sum(gap < 0 for gap in means.values())
    yield (
        'Dataset by dataset, our SGT-C with `objective="error"`, untuned, is behind the paper\'s '
        f"on {n_behind} of {len(means)} datasets, on average over depths (median "
        f"{signed(float(np.median(list(means.values()))))}); by a point or more on "
        f"{', '.join(far) or 'none'}."
    )


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
