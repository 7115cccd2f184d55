"""Cells: between which bounds of a tree a value can change and the prediction stays the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapetree.data._columns import GREATEST
from shapetree.tree._view import TreeView

# Values by feature; None for features that the tree does not use.
Columns = Sequence[np.ndarray | None]


def column_of(columns: Columns, feature: int) -> np.ndarray:
    """The values of a feature that the tree uses."""
    column = columns[feature]
    assert column is not None
    return column


@dataclass(frozen=True, eq=False)
class Bounds:
    """All bounds of a tree on an ordered feature."""

    fixed: np.ndarray  # thresholds of the feature itself, ascending
    others: np.ndarray  # for each oblique cut that has the feature, the other one
    is_first: np.ndarray  # whether this feature is the first of the cut's
    # Of the first feature and of the second. Shape (2, n_cuts).
    weights: np.ndarray
    # What the weighted sum is compared with. Shape (n_cuts,).
    limits: np.ndarray

    def __len__(self) -> int:
        return len(self.fixed) + len(self.limits)


def bounds_on(view: TreeView, feature: int) -> Bounds:
    """The bounds on one of the tree's ordered features."""
    fixed: set[float] = set()
    oblique: dict[tuple[int, bool, float, float, float], None] = {}
    for node in view.nodes:
        if feature not in node.feature_numbers:
            continue
        side = node.feature_numbers.index(feature)
        for bound in node.bounds:
            limits = [limit for limit in (bound.low, bound.high) if math.isfinite(limit)]
            if bound.weights[side] and not bound.weights[1 - side]:
                fixed.update(limits)
            elif bound.weights[side]:
                other = node.feature_numbers[1 - side]
                oblique |= dict.fromkeys((other, side == 0, *bound.weights, at) for at in limits)
    cuts = list(oblique)
    return Bounds(
        np.array(sorted(fixed)),
        np.array([other for other, *_ in cuts], dtype=np.intp),
        np.array([is_first for _, is_first, *_ in cuts], dtype=bool),
        np.array([[a, b] for *_, a, b, _ in cuts]).reshape(-1, 2).T,
        np.array([limit for *_, limit in cuts]),
    )


def cell_edges(bounds: Sequence[Bounds], columns: Columns, n_rows: int) -> Iterator[np.ndarray]:
    """For some features, the greatest values of all but the last cell of each row, ascending."""
    others = np.concatenate([its.others for its in bounds]) if bounds else np.empty(0, np.intp)
    crossings = np.empty((n_rows, 0))
    if len(others):
        distinct, place = np.unique(others, return_inverse=True)
        values = [column_of(columns, other).astype(np.float64) for other in distinct.tolist()]
        crossings = _crossings(
            np.stack(values, axis=1)[:, place],
            np.concatenate([its.is_first for its in bounds]),
            np.hstack([its.weights for its in bounds]),
            np.concatenate([its.limits for its in bounds]),
        )
    start = 0
    for its in bounds:
        edges = np.broadcast_to(its.fixed, (n_rows, len(its.fixed)))
        if len(its.limits):
            oblique = crossings[:, start : start + len(its.limits)]
            edges = np.sort(np.hstack([edges, oblique]), axis=1)
            start += len(its.limits)
        yield edges


def nearest(
    own: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    is_whole: np.ndarray,
    step: int,
    limits: tuple[float, float],
) -> np.ndarray:
    """The nearest value above `low`, at most `high` and within limits; NaN if there is none.

    Where `is_whole`, it is a multiple of the step.

    For missing values, the greatest, or the least if there is no greatest; if neither is there, 0
    or the limit that is nearest to it.
    """
    up = (own <= low) | (np.isnan(own) & (high == np.inf))
    is_any = np.isnan(own) & (low == -np.inf) & (high == np.inf)
    with np.errstate(over="ignore"):
        low, high = np.maximum(low, np.nextafter(limits[0], -np.inf)), np.minimum(high, limits[1])
        least = np.nextafter(low, np.inf)
    # Large floats are whole, and adding one does not change them.
    least = np.where(is_whole, np.maximum(step * (np.floor(low / step) + 1), least), least)
    greatest = np.where(is_whole, step * np.floor(high / step), high)
    value = np.where(up, least, greatest)
    value[is_any] = min(max(0.0, limits[0]), limits[1])
    return np.where((value > low) & (value <= high) & np.isfinite(value), value, np.nan)


def _crossings(
    others: np.ndarray, is_first: np.ndarray, weights: np.ndarray, limits: np.ndarray
) -> np.ndarray:
    """The greatest values on the lower sides of cuts, given the other features' values.

    Sums are rounded, so they are found by bisection over all numbers. Where the other feature is
    missing, the cut is nowhere: at infinity. Shape (n_rows, n_cuts), as that of the others.
    """
    shape = others.shape
    other = np.clip(others, -GREATEST, GREATEST).ravel()
    is_first, a, b, limit = (
        np.broadcast_to(each, shape).ravel() for each in (is_first, *weights, limits)
    )
    rises = np.where(is_first, a, b) > 0

    def is_low(ranks: np.ndarray, at: np.ndarray) -> np.ndarray:
        values, its_other, first = _ranked(ranks), other[at], is_first[at]
        with np.errstate(over="ignore", invalid="ignore"):
            u, v = np.where(first, values, its_other), np.where(first, its_other, values)
            below = a[at] * u + b[at] * v <= limit[at]
        return below == rises[at]

    with np.errstate(over="ignore", invalid="ignore"):
        guess = (limit - np.where(is_first, b, a) * other) / np.where(is_first, a, b)
    low, high = _bracket(is_low, _rank(np.nan_to_num(guess)))
    rows = np.flatnonzero(low < high)
    while len(rows):
        middle = high[rows] - (high[rows] - low[rows]) // np.uint64(2)
        inside = is_low(middle, rows)
        low[rows] = np.where(inside, middle, low[rows])
        high[rows] = np.where(inside, high[rows], middle - np.uint64(1))
        rows = rows[low[rows] < high[rows]]
    found = np.where(is_low(low, np.arange(len(low))), _ranked(low), -np.inf)
    return np.where(np.isnan(other), np.inf, found).reshape(shape)


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


def different_categories(view: TreeView, feature: int) -> list[int]:
    """Codes of the first category of each group that the tree treats alike."""
    info = view.features[feature]
    assert info.categories is not None
    first: dict[tuple[bool, ...], int] = {}
    groups = list(_category_groups(view, feature))
    for code, category in enumerate(info.categories):
        first.setdefault(tuple(category in group for group in groups), code)
    return list(first.values())


def _category_groups(view: TreeView, feature: int) -> Iterator[frozenset[Any]]:
    """Groups of categories that some node treats alike."""
    for node in view.nodes:
        if feature not in node.feature_numbers:
            continue
        side = node.feature_numbers.index(feature)
        for bound in node.bounds:
            if bound.weights[side] and bound.categories is not None:
                yield frozenset(bound.categories)
        if node.missing_categories:
            yield frozenset(node.missing_categories[side])
