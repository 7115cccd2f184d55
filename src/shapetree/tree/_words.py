"""What leads to a branch, and what a node predicts, in words that are the same everywhere.

Rules, text, graphs, pictures, tables and pages say these sentences; `_digits.py` decides on the
digits of their numbers.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._moments import DateKind
from shapetree.data._table import FeatureInfo
from shapetree.tree._digits import exact, number_range, percent, remember, rounded, with_spread
from shapetree.tree._intervals import Sure, UnseenLeaf
from shapetree.tree._regions import Bound, Region, Segment
from shapetree.tree._view import NodeView, TreeView

# Categories that are named before the rest is only counted: as many as the search lists.
MAX_CATEGORIES = 12
# Regions of a node that are all described, as many as it has by default; of more, some are only
# counted, so that no branch has more letters than this.
MAX_REGIONS = 6
MAX_LETTERS = 200
LIST_END = re.compile(r" and \d+ more\}")
# What goes to the branch that would take the most words.
REST = "all others"
# Differences up to this are due to rounding: of shares, and of means in deviations.
SAME_SHARE = 1e-9


def listing(words: Sequence[str]) -> str:
    """Words as a list.

    >>> listing(["red"]), listing(["red", "green", "blue"])
    ('red', 'red, green and blue')
    """
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def printable(text: str) -> str:
    r"""Text on one line, without characters that could change what a terminal or a page shows.

    >>> printable("red\x1b[2Jblue\u2028green")
    'red·[2Jblue·green'
    """
    return "".join(
        sign if sign.isprintable() or unicodedata.category(sign) == "Zs" else "·" for sign in text
    )


def n_rows_words(n_rows: int) -> str:
    """A number of rows.

    >>> n_rows_words(1), n_rows_words(12345)
    ('1 row', '12,345 rows')
    """
    return f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}"


# --- numbers between bounds ---


def readable(threshold: float, date: DateKind | None = None) -> str:
    """A threshold as all bounds name it.

    >>> readable(1033.5), readable(0.14234999999999998)
    ('1033.5', '0.14235')
    """
    bound = upper_bound(threshold, date=date)
    return exact(threshold, date) if bound is None else bound[1]


def interval(
    name: str,
    low: float,
    high: float,
    digits: int | None = None,
    date: DateKind | None = None,
) -> str:
    """What it means to be above `low` and at most `high`, exactly unless digits are given.

    Dates are always exact.

    >>> interval("age", 17, math.inf), interval("dose", 0.3, 1.5)
    ('age > 17', 'dose in (0.3, 1.5]')
    >>> interval("dose", 0.3, 0.14234999999999998 * 10)
    'dose in (0.3, 1.4235)'
    """
    return join_bounds(name, lower_bound(low, digits, date), upper_bound(high, digits, date))


def lower_bound(
    low: float, digits: int | None = None, date: DateKind | None = None
) -> tuple[str, str] | None:
    """Sign and number of a lower bound, exact unless digits are given; None if there is none."""
    return None if low == -math.inf else _signed(low, (">", "≥"), digits, date)


def upper_bound(
    high: float, digits: int | None = None, date: DateKind | None = None
) -> tuple[str, str] | None:
    """Sign and number of an upper bound, exact unless digits are given; None if there is none."""
    return None if high == math.inf else _signed(high, ("≤", "<"), digits, date)


@remember
def _signed(
    limit: float, signs: tuple[str, str], digits: int | None, date: DateKind | None
) -> tuple[str, str]:
    """A limit with the first sign or, if that is shorter, the next number with the second."""
    if digits is not None and date is None:
        return signs[0], rounded(limit, digits)
    texts = exact(limit, date), exact(math.nextafter(limit, math.inf), date)
    is_shorter = len(texts[1]) < len(texts[0]) and texts[1] != "inf"
    return signs[is_shorter], texts[is_shorter]


def join_bounds(name: str, lower: tuple[str, str] | None, upper: tuple[str, str] | None) -> str:
    """One or two bounds of a quantity."""
    if lower is None or upper is None:
        bound = lower or upper
        return f"{name} is known" if bound is None else f"{name} {bound[0]} {bound[1]}"
    start = "(" if lower[0] == ">" else "["
    end = ")" if upper[0] == "<" else "]"
    return f"{name} in {start}{lower[1]}, {upper[1]}{end}"


def weighted_sum(
    weights: tuple[float, ...], names: tuple[str, ...], digits: int | None = None
) -> str:
    """A pair's weighted sum, the first weight being 0 or 1; exact unless digits are given.

    >>> weighted_sum((1.0, -0.5), ("x", "y")), weighted_sum((0.0, 1.0), ("x", "y"))
    ('x - 0.5·y', 'y')
    """
    if len(names) == 1:
        return names[0]
    (a, b), (first, second) = weights, names
    if a == 0:
        return second
    if b == 0:
        return first
    weight = exact(abs(b)) if digits is None else rounded(abs(b), digits)
    return f"{first} {'-' if b < 0 else '+'} {weight}·{second}"


# --- categories ---


def category_name(category: Level | np.bool_) -> str:
    """A category as it is shown: true and false are yes and no.

    >>> category_name(True), category_name("red")
    ('yes', 'red')
    """
    if isinstance(category, bool | np.bool_):
        return "yes" if category else "no"
    return str(category)


def category_words(
    feature: FeatureInfo, categories: Sequence[Level], among: Sequence[Level] | None = None
) -> str:
    """Being one of some categories: lists these, or if there are too many, the others.

    Missing values and new categories are neither. The others are those of the feature, or `among`
    those that can come to a node.

    >>> category_words(FeatureInfo("size", ("L", "M", "S")), ("L", "M"))
    'size in {L, M}'
    """
    assert feature.categories is not None
    if len(categories) == 1:
        return f"{feature.name} = {category_name(categories[0])}"
    named = frozenset(categories)
    others = [c for c in (feature.categories if among is None else among) if c not in named]
    if not others:
        return f"{feature.name} is known"
    if len(categories) <= MAX_CATEGORIES or len(categories) <= len(others):
        return f"{feature.name} in {{{_some(categories)}}}"
    if len(others) == 1:
        return f"{feature.name} is known but not {category_name(others[0])}"
    return f"{feature.name} is known but none of {{{_some(others)}}}"


def missing_words(feature: FeatureInfo) -> str:
    """Being missing, or a category that training has not seen."""
    return "missing or new" if feature.is_categorical else "missing"


def _some(categories: Sequence[Level]) -> str:
    """The first categories, and how many more there are."""
    shown = ", ".join(map(category_name, categories[:MAX_CATEGORIES]))
    more = len(categories) - MAX_CATEGORIES
    return f"{shown} and {more} more" if more > 0 else shown


# --- the branches of a node ---


def branch_words(node: NodeView, branch: int, digits: int | None = None) -> str:
    """Values of a node's feature, or the regions of its pair, that lead to a branch.

    Missing values are mentioned where training rows had them. One branch of a node can be the rest
    of all values, where its words would be too long.
    """
    said = [_branch_parts(node, each, digits) for each in range(len(node.children))]
    missing = _missing_parts(node)
    if node.missing_branch is not None:
        said[node.missing_branch] += missing
    if branch == _rest_branch(node, said):
        # All others are also categories that count as missing; values that are none are still said.
        is_told = node.saw_missing and node.missing_branch == branch
        return " or ".join([REST, *missing[:1]] if is_told else [REST])
    return " or ".join(said[branch]) or "no values"


def _branch_parts(node: NodeView, branch: int, digits: int | None) -> list[str]:
    parts = [
        segment_words(segment, node.features[0], digits)
        for segment in node.segments
        if segment.branch == branch and segment.categories != ()
    ]
    regions = [region for region in node.joined_regions if region.branch == branch]
    words = [_in_braces(region_words(region, node, digits)) for region in regions]
    return parts + (words if len(node.joined_regions) <= MAX_REGIONS else _some_regions(words))


def _rest_branch(node: NodeView, said: list[list[str]]) -> int | None:
    """The branch that is said to have all other values; None if all can be said."""
    if node.features[0].is_categorical and node.segments:
        sizes = [0] * len(said)
        for segment in node.segments:
            sizes[segment.branch] += len(segment.categories or ())
        return sizes.index(max(sizes)) if max(sizes) > MAX_CATEGORIES else None
    if not 0 < len(node.joined_regions) <= MAX_REGIONS:
        return None
    letters = [len(" or ".join(parts)) for parts in said]
    return letters.index(max(letters)) if max(letters) > MAX_LETTERS else None


def _some_regions(regions: list[str]) -> list[str]:
    """The first regions in words, if they are few and short, and how many more there are."""
    letters = list(accumulate(map(len, regions)))
    shown = min(bisect(letters, MAX_LETTERS), MAX_REGIONS)
    more = len(regions) - shown
    if more == 0:
        return regions
    rest = f"{more} {'more ' if shown else ''}{'region' if more == 1 else 'regions'}"
    return [*regions[:shown], rest]


def segment_words(segment: Segment, feature: FeatureInfo, digits: int | None = None) -> str:
    """The values of a feature's segment, for example "≤ 3" or "red, green"."""
    if segment.categories is not None:
        return _some(segment.categories)
    words = interval("", segment.low, segment.high, digits, feature.date).strip()
    anything = "any date" if feature.is_date else "any number"
    return anything if words == "is known" else words.removeprefix("in ")


def region_words(region: Region, node: NodeView, digits: int | None = None) -> str:
    """The bounds of a region of a pair."""
    words = [bound_words(bound, node, digits) for bound in region.bounds]
    bounded = {bound.side for bound in region.bounds}
    for side, categories in enumerate(node.missing_categories):
        if categories and side not in bounded:
            known = node.known_categories(side)
            words.append(category_words(node.features[side], known, node.arriving[side]))
    return " and ".join(words) or "both known"


def bound_words(bound: Bound, node: NodeView, digits: int | None = None) -> str:
    """One bound of a region."""
    if bound.categories is not None and bound.side is not None:
        among = node.arriving[bound.side]
        return category_words(node.features[bound.side], bound.categories, among)
    names = tuple(feature.name for feature in node.features)
    date = None if bound.side is None else node.features[bound.side].date
    return interval(weighted_sum(bound.weights, names, digits), bound.low, bound.high, digits, date)


def _in_braces(words: str) -> str:
    return f"{{{words}}}" if is_joined(words) else words


def is_joined(words: str) -> bool:
    """Whether several conditions are joined by "and", which also stands in lists that are cut."""
    return " and " in LIST_END.sub("", words)


def _missing_parts(node: NodeView) -> list[str]:
    """What counts as missing in a node: missing values if there were any, and rare categories."""
    parts = []
    if node.saw_missing:
        parts.append(missing_words(node.features[0]) if node.segments else "either missing")
    for side, categories in enumerate(node.missing_categories):
        if categories:
            parts.append(category_words(node.features[side], categories, node.arriving[side]))
    return parts


# --- what a node predicts ---


def outcome_words(view: TreeView, node: NodeView, is_brief: bool = False) -> str:
    """What a node predicts: each class and its share, or each number and its spread.

    Beside them stands how sure that is: the interval of the rows' share or mean, and what unseen
    rows tell, if the tree was evaluated. Brief words leave that out.
    """
    unseen = None if is_brief else unseen_words(view, node)
    if view.classes is None:
        return number_words(node, unseen, is_brief)
    shares = [share_words(view, node, i, is_brief) for i in range(len(node.prediction))]
    if unseen is not None:
        shares = [f"{words}; {unseen}" for words in shares]
    return listing(
        [f"{label} ({words})" for label, words in zip(node.prediction, shares, strict=True)]
    )


def share_words(view: TreeView, node: NodeView, output: int = 0, is_brief: bool = False) -> str:
    """Share of a node's rows in the class it predicts, and what it predicts, if that differs.

    They differ because of weights, shrinkage, or rows other than those of training. The interval
    follows what it belongs to: the rows' share, or with weights their weighted share.
    """
    assert view.classes is not None
    best = view.classes[output].index(node.prediction[output])
    beside = predicted_words(view, node, best, output)
    if node.row_shares is None:
        return beside or ""
    if node.n_rows == 0:
        return f"no rows, {beside}"
    share = float(node.row_shares[output, best])
    sure = None if is_brief or not node.sures else node.sures[output]
    if sure is None:
        return f"{percent(share)} of rows, {beside}" if beside else percent(share)
    own = range_words(sure)
    if not is_same_share(sure.value, share):
        said = f"{percent(share)} of rows, weighted {percent(sure.value)}, {own}"
        predicted = float(node.value[output, best])
        is_said = is_same_share(sure.value, predicted)
        return said if is_said else f"{said}; predicted {percent(predicted)}"
    return f"{percent(share)} of rows, {own}; {beside}" if beside else f"{percent(share)}, {own}"


def range_words(sure: Sure | UnseenLeaf, kind: str = "share") -> str:
    """An interval of shares or of numbers.

    >>> range_words(Sure(0.79, 0.62, 0.896, "share"))
    '62 to 90 %'
    """
    if (sure.kind if isinstance(sure, Sure) else kind) == "share":
        return f"{percent(sure.low).removesuffix(' %')} to {percent(sure.high)}"
    return number_range(sure.low, sure.high)


def unseen_words(view: TreeView, node: NodeView) -> str | None:
    """What the rows given to `evaluate` show of a leaf, if there are any.

    They are those of `evaluate`, and stand beside training rows only.
    """
    unseen = view.unseen(node)
    if unseen is None or not view.is_training:
        return None
    kind = "share" if view.classes is not None else _middle(node)
    said = percent(unseen.value) if kind == "share" else rounded(unseen.value)
    rows = f"{unseen.n_rows:,} unseen {'row' if unseen.n_rows == 1 else 'rows'}"
    own = "" if math.isnan(unseen.low) else f", {range_words(unseen, kind)}"
    return f"{rows}: {said if kind == 'share' else f'{kind} {said}'}{own}"


def _middle(node: NodeView) -> str:
    return "mean" if node.sure is None else node.sure.kind


def is_same_share(one: float, other: float) -> bool:
    """Whether two shares are written alike."""
    return abs(one - other) <= SAME_SHARE or percent(one) == percent(other)


def predicted_words(view: TreeView, node: NodeView, number: int, output: int = 0) -> str | None:
    """What a node predicts for a class, given by its number; None if that is the rows' share."""
    predicted = float(node.value[output, number])
    if node.row_shares is not None and node.n_rows > 0:
        share = float(node.row_shares[output, number])
        if is_same_share(share, predicted):
            return None
    return f"{view.predicted_word} {percent(predicted)}"


def interval_words(node: NodeView, share: float | None = None) -> str | None:
    """A node's interval, and what it belongs to where that is not what stands beside it.

    That is the rows' share, if it is given, or else their mean.
    """
    sure = node.sure
    if sure is None or node.n_rows == 0:
        return None
    if sure.kind == "share":
        is_own = share is None or is_same_share(sure.value, share)
        return f"{'' if is_own else f'weighted {percent(sure.value)}, '}{range_words(sure)}"
    mean = sure.value if node.mean is None else node.mean
    is_own = sure.kind == "median" or math.isclose(sure.value, mean, rel_tol=SAME_SHARE)
    return f"{'' if is_own else 'weighted '}{sure.kind} {range_words(sure)}"


def number_words(node: NodeView, unseen: str | None = None, is_brief: bool = True) -> str:
    """The numbers that a node predicts, the spread of its rows, and how sure their mean is."""
    said, spread = number_and_spread(node)
    sure = None if is_brief or node.mean is None else interval_words(node)
    notes = []
    if spread.endswith(")"):  # what stands in brackets already
        notes, spread = [spread[2:-1]], ""
    if sure is not None:
        notes.append(sure)
    words = "; ".join(filter(None, [", ".join(notes), unseen]))
    return f"{said}{spread} ({words})" if words else f"{said}{spread}"


def number_and_spread(node: NodeView) -> tuple[str, str]:
    """What a node predicts, and what to add on the spread of its rows.

    The rows' own mean stands beside the prediction where the two differ: for medians, weights of
    rows, shrinkage, and other rows than those of training.
    """
    if len(node.prediction) > 1 or node.deviation is None or node.mean is None:
        return listing([rounded(number) for number in node.prediction]), ""
    (predicted,) = node.prediction
    if node.n_rows == 0:
        return rounded(predicted), " (no rows)"
    said, spread = with_spread(predicted, node.deviation)
    mean, _ = with_spread(node.mean, node.deviation)
    is_mean = said == mean or abs(predicted - node.mean) <= SAME_SHARE * node.deviation
    if node.n_rows == 1:
        return said, " (1 row)" if is_mean else f" (1 row: {mean})"
    if spread is None:
        return said, ""
    return said, f" ± {spread}" if is_mean else f" (rows: {mean} ± {spread})"
