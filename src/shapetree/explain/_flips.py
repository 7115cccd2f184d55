"""The smallest change of a single feature that changes a row's prediction.

An ordered feature can change within a row's *cells*: between two neighbouring bounds of the tree on
that feature, all other features being as they are, the prediction does not change. So the values
nearest to the row's own in every cell are all there is to try. They are tried for all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapetree.data._table import FeatureInfo
from shapetree.explain._outcomes import python_values
from shapetree.tree._digits import ALL_DIGITS, FEW_DIGITS, beyond, exact, rounded
from shapetree.tree._view import GREATEST, TreeView
from shapetree.tree._words import outcome_words

# Finds the leaves of rows, given their columns.
Route = Callable[[Sequence[np.ndarray | None]], np.ndarray]


@dataclass(frozen=True)
class Flip:
    """A change of a single feature that changes a row's prediction; `str` of it is a sentence.

    Attributes
    ----------
    feature : str
    old : float, category or None
        The row's value; None if it is missing or new.
    new : float or category
        The nearest value with another prediction.
    shown : str
        A value near it, in as few digits as lead to the same leaf.
    size : float
        Size of the change: of a number in standard deviations of its feature in training; 1 for
        another category and for a value instead of a missing one.
    leaf : int
        Leaf that the changed row ends in.
    outcome : str
        What that leaf predicts.
    is_number : bool
        Whether the feature has numbers rather than categories.
    """

    feature: str
    old: Any
    new: Any
    shown: str
    size: float
    leaf: int
    outcome: str
    is_number: bool

    def __str__(self) -> str:
        if self.is_number and self.old is not None:
            verb = "rose" if self.new > self.old else "fell"
            change = f"{verb} from {self._old_words(self.old)} to {self.shown}"
        else:
            change = f"were {self.shown} instead of {'missing' if self.old is None else self.old}"
        return f"It would be {self.outcome} if {self.feature} {change}"

    def _old_words(self, old: float) -> str:
        """The row's number, in as few digits as keep it on its side of the number shown."""
        shown, rises = float(self.shown), self.new > old
        texts = (rounded(old, digits) for digits in range(FEW_DIGITS, ALL_DIGITS))
        apart = (text for text in texts if (shown > float(text) if rises else shown < float(text)))
        return next(apart, exact(old))


@dataclass(eq=False)
class _Best:
    """The best change found so far for each row."""

    size: np.ndarray
    feature: np.ndarray
    value: np.ndarray
    leaf: np.ndarray


def find_flips(
    view: TreeView,
    columns: Sequence[np.ndarray | None],
    leaves: np.ndarray,
    route: Route,
) -> list[Flip | None]:
    """The smallest change for each row; the first feature's of equals, None if there is none.

    Parameters
    ----------
    view, columns, leaves, route
        As for `explain_rows`.
    """
    outcome = _outcomes(view)
    n_rows = len(leaves)
    best = _Best(
        np.full(n_rows, np.inf), np.full(n_rows, -1), np.zeros(n_rows), np.zeros(n_rows, dtype=int)
    )
    for feature, column in enumerate(columns):
        if column is None:
            continue
        for value, size in _changes(view, feature, columns):
            to = route(_with_column(columns, feature, value))
            better = (outcome[to] != outcome[leaves]) & (size < best.size)
            # Infinitely large changes count, too, where there is no smaller one.
            better |= (outcome[to] != outcome[leaves]) & (best.feature < 0) & ~np.isnan(size)
            best.size[better] = size[better]
            best.feature[better] = feature
            best.value[better] = value[better]
            best.leaf[better] = to[better]
    return _flips(view, columns, best, route)


def _outcomes(view: TreeView) -> np.ndarray:
    """A number for each node that tells different predictions apart."""
    number: dict[tuple[Any, ...], int] = {}
    return np.array([number.setdefault(node.prediction, len(number)) for node in view.nodes])


def _with_column(
    columns: Sequence[np.ndarray | None], feature: int, values: np.ndarray
) -> list[np.ndarray | None]:
    changed = list(columns)
    column = _column(columns, feature)
    kind = column.dtype if column.dtype.kind == "i" else np.float64
    changed[feature] = np.ascontiguousarray(values, dtype=kind)
    return changed


# --- values to try ---


def _changes(
    view: TreeView, feature: int, columns: Sequence[np.ndarray | None]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Values to try for all rows, with the sizes of the changes; NaN where there is none."""
    column = _column(columns, feature)
    if view.features[feature].is_categorical:
        for code in _different_categories(view, feature):
            size = np.where(column == code, np.nan, 1.0)
            yield np.full(len(column), code, dtype=column.dtype), size
        return
    yield from _changes_of_numbers(view, feature, columns)


def _different_categories(view: TreeView, feature: int) -> list[int]:
    """Codes of the first categories of those that the tree treats alike."""
    info = view.features[feature]
    assert info.categories is not None
    first: dict[tuple[bool, ...], int] = {}
    groups = list(_category_groups(view, info))
    for code, category in enumerate(info.categories):
        first.setdefault(tuple(category in group for group in groups), code)
    return list(first.values())


def _category_groups(view: TreeView, info: FeatureInfo) -> Iterator[frozenset[Any]]:
    """Groups of categories that some node treats alike."""
    for node in view.nodes:
        if info not in node.features:
            continue
        for segment in node.segments:
            yield frozenset(segment.categories or ())
        side = node.features.index(info)
        for region in node.regions:
            for bound in region.bounds:
                if bound.weights[side] and bound.categories is not None:
                    yield frozenset(bound.categories)
        if node.missing_categories:
            yield frozenset(node.missing_categories[side])


def _changes_of_numbers(
    view: TreeView, feature: int, columns: Sequence[np.ndarray | None]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    column = _column(columns, feature)
    own = column.astype(np.float64)
    edges = _cell_edges(view, feature, columns)
    is_whole = np.zeros(len(own), dtype=bool)
    if view.features[feature].is_whole:
        is_whole = np.isnan(own) | (own == np.floor(own))
    lows = np.vstack([np.full(len(own), -np.inf), edges])
    highs = np.vstack([edges, np.full(len(own), np.inf)])
    for low, high in zip(lows, highs, strict=True):
        value = _nearest(own, low, high, is_whole)
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.abs(value - np.clip(own, -GREATEST, GREATEST)) / view.scales[feature]
        size = np.where(np.isnan(own), 1.0, distance)
        inside = (low < own) & (own <= high)
        size[inside | np.isnan(value)] = np.nan
        yield np.where(np.isnan(value), own, value), size


def _nearest(
    own: np.ndarray, low: np.ndarray, high: np.ndarray, is_whole: np.ndarray
) -> np.ndarray:
    """The nearest value above `low` and at most `high`; NaN if there is none.

    For missing values, the greatest, or the least if there is no greatest; 0 if neither is there.
    """
    with np.errstate(over="ignore"):
        least = np.nextafter(low, np.inf)
    # Great floats are whole, and one more is no other number.
    least = np.where(is_whole, np.maximum(np.floor(low) + 1, least), least)
    greatest = np.where(is_whole, np.floor(high), high)
    up = (own <= low) | (np.isnan(own) & (high == np.inf))
    value = np.where(up, least, greatest)
    value[np.isnan(own) & (low == -np.inf) & (high == np.inf)] = 0.0
    return np.where((value > low) & (value <= high) & np.isfinite(value), value, np.nan)


def _cell_edges(view: TreeView, feature: int, columns: Sequence[np.ndarray | None]) -> np.ndarray:
    """Greatest values of all but the last cell of each row, ascending down the columns."""
    info = view.features[feature]
    number = {id(known): j for j, known in enumerate(view.features)}
    column = _column(columns, feature)
    fixed: set[float] = set()
    oblique: dict[tuple[int, tuple[float, float], float], np.ndarray] = {}
    for node in view.nodes:
        if all(known is not info for known in node.features):
            continue
        fixed.update(segment.high for segment in node.segments)
        side = 0 if node.features[0] is info else 1
        for region in node.regions:
            for bound in region.bounds:
                limits = [bound.low, bound.high]
                if not bound.weights[side]:
                    continue
                if not bound.weights[1 - side]:
                    fixed.update(limits)
                    continue
                other = number[id(node.features[1 - side])]
                for limit in np.array(limits)[np.isfinite(limits)].tolist():
                    key = (other, bound.weights, limit)
                    if key not in oblique:
                        oblique[key] = _crossing(columns[other], bound.weights, side, limit)
    thresholds = [np.full(len(column), t) for t in sorted(fixed) if np.isfinite(t)]
    edges = [*thresholds, *oblique.values()]
    return np.sort(np.array(edges).reshape(len(edges), len(column)), axis=0)


def _crossing(
    others: np.ndarray | None, weights: tuple[float, float], side: int, limit: float
) -> np.ndarray:
    """The greatest value on the lower side of a cut, given the other feature's.

    Sums are rounded, so it is found by bisection over all numbers. Where the other feature is
    missing, the cut is nowhere: at infinity.
    """
    assert others is not None
    other = np.clip(others.astype(np.float64), -GREATEST, GREATEST)
    rises = weights[side] > 0

    def is_low(ranks: np.ndarray, rows: np.ndarray) -> np.ndarray:
        values, its_other = _ranked(ranks), other[rows]
        u, v = (values, its_other) if side == 0 else (its_other, values)
        with np.errstate(over="ignore", invalid="ignore"):
            below = weights[0] * u + weights[1] * v <= limit
        return below if rises else ~below

    with np.errstate(over="ignore", invalid="ignore"):
        guess = (limit - weights[1 - side] * other) / weights[side]
    low, high = _bracket(is_low, _rank(np.nan_to_num(guess)))
    rows = np.flatnonzero(low < high)
    while len(rows):
        middle = high[rows] - (high[rows] - low[rows]) // np.uint64(2)
        inside = is_low(middle, rows)
        low[rows] = np.where(inside, middle, low[rows])
        high[rows] = np.where(inside, high[rows], middle - np.uint64(1))
        rows = rows[low[rows] < high[rows]]
    found = np.where(is_low(low, np.arange(len(low))), _ranked(low), -np.inf)
    return np.where(np.isnan(other), np.inf, found)


def _bracket(
    is_low: Callable[[np.ndarray, np.ndarray], np.ndarray], guess: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Ranks between which the greatest low number is: near the guess, or among all numbers."""
    least, greatest = _rank(np.array([-GREATEST, GREATEST]))
    low, high = np.full(len(guess), least), np.full(len(guess), greatest)
    rows = np.arange(len(guess))
    for reach in NEAR:
        middle = np.clip(guess[rows], least + reach, greatest - reach - np.uint64(1))
        is_near = is_low(middle - reach, rows) & ~is_low(middle + reach + np.uint64(1), rows)
        found = rows[is_near]
        low[found], high[found] = middle[is_near] - reach, middle[is_near] + reach
        rows = rows[~is_near]
    return low, high


SIGN = np.uint64(1 << 63)
# Ranks around a guess to look in first, the nearest first.
NEAR = (np.uint64(8), np.uint64(1 << 16))


def _rank(numbers: np.ndarray) -> np.ndarray:
    """Places of numbers in the order of all floating-point numbers."""
    bits = numbers.view(np.uint64)
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def _ranked(ranks: np.ndarray) -> np.ndarray:
    """The numbers of some ranks."""
    return np.where(ranks & SIGN, ranks ^ SIGN, ~ranks).view(np.float64)


# --- what to say of them ---


def _flips(
    view: TreeView, columns: Sequence[np.ndarray | None], best: _Best, route: Route
) -> list[Flip | None]:
    words = [outcome_words(view, node) for node in view.nodes]
    flips: list[Flip | None] = [None] * len(best.leaf)
    for feature in np.unique(best.feature[best.feature >= 0]).tolist():
        info, rows = view.features[feature], np.flatnonzero(best.feature == feature)
        old = python_values(_column(columns, feature)[rows], info)
        is_number = info.categories is None
        if info.categories is None:
            shown = _shown_numbers(columns, feature, rows, best, route)
            new: list[Any] = best.value[rows].tolist()
        else:
            new = [info.categories[int(code)] for code in best.value[rows].tolist()]
            shown = list(map(str, new))
        for i, row in enumerate(rows.tolist()):
            leaf = int(best.leaf[row])
            size = float(best.size[row])
            flips[row] = Flip(
                info.name, old[i], new[i], shown[i], size, leaf, words[leaf], is_number
            )
    return flips


def _shown_numbers(
    columns: Sequence[np.ndarray | None],
    feature: int,
    rows: np.ndarray,
    best: _Best,
    route: Route,
) -> list[str]:
    """Values, in as few digits as can be, that lead to the same leaf and go hardly farther."""
    own = _column(columns, feature)[rows].astype(np.float64)
    ways = [beyond(*each) for each in zip(best.value[rows].tolist(), own.tolist(), strict=True)]
    shown = [texts[-1] for texts in ways]
    undecided = np.array([i for i, texts in enumerate(ways) if len(texts) > 1], dtype=np.intp)
    attempt = 0
    while len(undecided):
        some = rows[undecided]
        texts = [ways[i][attempt] for i in undecided.tolist()]
        tried = [None if column is None else column[some] for column in columns]
        to = route(_with_column(tried, feature, np.array(texts, dtype=np.float64)))
        leads = to == best.leaf[some]
        for i, text in zip(undecided[leads].tolist(), np.array(texts)[leads].tolist(), strict=True):
            shown[i] = text
        attempt += 1
        undecided = undecided[~leads]
        undecided = np.array([i for i in undecided.tolist() if len(ways[i]) > attempt + 1], np.intp)
    return shown


def _column(columns: Sequence[np.ndarray | None], feature: int) -> np.ndarray:
    column = columns[feature]
    assert column is not None
    return column
