"""What leads to a branch, and what a node predicts, in words that are the same everywhere.

Rules, text, graphs, pictures, tables and pages say these sentences; `_digits.py` decides on the
digits of their numbers.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate

from shapetree.data._columns import Level
from shapetree.data._moments import DateKind
from shapetree.data._table import FeatureInfo
from shapetree.tree._digits import exact, percent, remember, rounded, with_spread
from shapetree.tree._regions import Bound, Region, Segment
from shapetree.tree._view import NodeView, TreeView

# Categories that are named before the rest is only counted.
MAX_CATEGORIES = 8
# Regions, and their letters, that are described before the rest is only counted.
MAX_REGIONS = 4
MAX_LETTERS = 200
# Differences up to this are due to rounding: of shares, and of means in deviations.
SAME_SHARE = 1e-9


def listing(words: Sequence[str]) -> str:
    """Words as a list.

    Examples
    --------
    >>> listing(["red"]), listing(["red", "green", "blue"])
    ('red', 'red, green and blue')
    """
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def n_rows_words(n_rows: int) -> str:
    """A number of rows.

    Examples
    --------
    >>> n_rows_words(1), n_rows_words(12345)
    ('1 row', '12,345 rows')
    """
    return f"{n_rows:,} {'row' if n_rows == 1 else 'rows'}"


# --- numbers between bounds ---


def readable(threshold: float, date: DateKind | None = None) -> str:
    """A threshold as all bounds name it.

    Examples
    --------
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

    Examples
    --------
    >>> interval("age", 17, math.inf), interval("dose", 0.3, 1.5)
    ('age > 17', 'dose in (0.3, 1.5]')
    >>> interval("dose", 0.3, 0.14234999999999998 * 10)
    'dose in (0.3, 1.4235)'
    """
    return join_bounds(name, lower_bound(low, digits, date), upper_bound(high, digits, date))


@remember
def lower_bound(
    low: float, digits: int | None = None, date: DateKind | None = None
) -> tuple[str, str] | None:
    """Sign and number of a lower bound, exact unless digits are given; None if there is none."""
    if low == -math.inf:
        return None
    if digits is not None and date is None:
        return ">", rounded(low, digits)
    after = math.nextafter(low, math.inf)
    return _shorter((">", exact(low, date)), ("≥", exact(after, date)))


@remember
def upper_bound(
    high: float, digits: int | None = None, date: DateKind | None = None
) -> tuple[str, str] | None:
    """Sign and number of an upper bound, exact unless digits are given; None if there is none."""
    if high == math.inf:
        return None
    if digits is not None and date is None:
        return "≤", rounded(high, digits)
    after = math.nextafter(high, math.inf)
    return _shorter(("≤", exact(high, date)), ("<", exact(after, date)))


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

    Examples
    --------
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


def _shorter(one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    return other if len(other[1]) < len(one[1]) and other[1] != "inf" else one


# --- categories ---


def category_words(feature: FeatureInfo, categories: Sequence[Level]) -> str:
    """Being one of some categories: lists these, or if there are too many, the others.

    Missing values and new categories are neither.

    Examples
    --------
    >>> category_words(FeatureInfo("size", ("L", "M", "S")), ("L", "M"))
    'size in {L, M}'
    """
    assert feature.categories is not None
    if len(categories) == 1:
        return f"{feature.name} = {categories[0]}"
    others = [c for c in feature.categories if c not in categories]
    if not others:
        return f"{feature.name} is known"
    if len(categories) <= MAX_CATEGORIES or len(categories) <= len(others):
        return f"{feature.name} in {{{_some(categories)}}}"
    if len(others) == 1:
        return f"{feature.name} is known but not {others[0]}"
    return f"{feature.name} is known but none of {{{_some(others)}}}"


def missing_words(feature: FeatureInfo) -> str:
    """Being missing, or a category that training has not seen."""
    return "missing or new" if feature.is_categorical else "missing"


def _some(categories: Sequence[Level]) -> str:
    """The first categories, and how many more there are."""
    shown = ", ".join(str(category) for category in categories[:MAX_CATEGORIES])
    more = len(categories) - MAX_CATEGORIES
    return f"{shown} and {more} more" if more > 0 else shown


# --- the branches of a node ---


def branch_words(node: NodeView, branch: int, digits: int | None = None) -> str:
    """Values of a node's feature, or the regions of its pair, that lead to a branch.

    Missing values are mentioned where training rows had them.
    """
    parts = [
        segment_words(segment, node.features[0], digits)
        for segment in node.segments
        if segment.branch == branch and segment.categories != ()
    ]
    regions = [region for region in node.joined_regions if region.branch == branch]
    parts += _some_regions([_in_braces(region_words(region, node, digits)) for region in regions])
    if node.missing_branch == branch:
        parts += _missing_parts(node)
    return " or ".join(parts) or "no values"


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
    words = [bound_words(bound, node.features, digits) for bound in region.bounds]
    bounded = {bound.side for bound in region.bounds}
    for side, categories in enumerate(node.missing_categories):
        if categories and side not in bounded:
            words.append(category_words(node.features[side], node.known_categories(side)))
    return " and ".join(words) or "both known"


def bound_words(bound: Bound, features: tuple[FeatureInfo, ...], digits: int | None = None) -> str:
    """One bound of a region."""
    if bound.categories is not None and bound.side is not None:
        return category_words(features[bound.side], bound.categories)
    names = tuple(feature.name for feature in features)
    date = None if bound.side is None else features[bound.side].date
    return interval(weighted_sum(bound.weights, names, digits), bound.low, bound.high, digits, date)


def _in_braces(words: str) -> str:
    return f"{{{words}}}" if " and " in words else words


def _missing_parts(node: NodeView) -> list[str]:
    """What counts as missing in a node: missing values if there were any, and rare categories."""
    parts = []
    if node.saw_missing:
        parts.append(missing_words(node.features[0]) if node.segments else "either missing")
    for feature, categories in zip(node.features, node.missing_categories, strict=False):
        if categories:
            parts.append(category_words(feature, categories))
    return parts


# --- what a node predicts ---


def outcome_words(view: TreeView, node: NodeView) -> str:
    """What a node predicts: each class and its share, or each number and its spread."""
    if view.classes is None:
        return number_words(node)
    return listing(
        [f"{label} ({share_words(view, node, i)})" for i, label in enumerate(node.prediction)]
    )


def share_words(view: TreeView, node: NodeView, output: int = 0) -> str:
    """Share of a node's rows in the class it predicts, and what it predicts, if that differs.

    They differ because of weights, shrinkage, or rows other than those of training.
    """
    assert view.classes is not None
    best = view.classes[output].index(node.prediction[output])
    beside = predicted_words(view, node, best, output)
    if node.row_shares is None:
        return beside or ""
    if node.n_rows == 0:
        return f"no rows, {beside}"
    said = percent(float(node.row_shares[output, best]))
    return f"{said} of rows, {beside}" if beside else said


def predicted_words(view: TreeView, node: NodeView, number: int, output: int = 0) -> str | None:
    """What a node predicts for a class, given by its number; None if that is the rows' share."""
    predicted = float(node.value[output, number])
    if node.row_shares is not None and node.n_rows > 0:
        share = float(node.row_shares[output, number])
        if abs(share - predicted) <= SAME_SHARE or percent(share) == percent(predicted):
            return None
    return f"{view.predicted_word} {percent(predicted)}"


def number_words(node: NodeView) -> str:
    """The numbers that a node predicts, and the spread of its rows."""
    return "".join(number_and_spread(node))


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
