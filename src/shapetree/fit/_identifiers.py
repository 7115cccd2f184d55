"""Columns that invite a tree to memorise: their values identify rows, or groups of rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import TimeSeriesSplit

from shapetree.data._table import Table
from shapetree.fit._parameters import Parameters
from shapetree.fit._rows import TrainingRows

# Fewest and most rows that are looked at, the first ones.
MIN_ROWS, MAX_ROWS = 30, 5_000
# Row numbers may have gaps where rows were held out: their range is at most so many times as long.
MAX_RANGE = 2.0
# What only rises changes so often, falls in at most this share of the changes (clocks are set
# back), and is in the order of the rows as a whole.
MIN_CHANGES, MAX_FALLS, MIN_CORRELATION = 20, 0.01, 0.95
# Groups: how much of the targets' variance other rows of the same value explain, and how much less
# the rows of neighbouring values do. On 37 tables, only columns that tell repeated measurements
# apart were beyond.
MIN_ALIKE, MIN_APART = 0.5, 0.4
MIN_VALUES, N_NEIGHBOURS = 10, 2
# Numbers of things leave out few whole numbers; so many of them are also looked at two by two.
MIN_DENSITY, MAX_NUMBERS, MIN_NUMBERS_OF = 0.9, 5, 5
MAX_CLASSES = 50
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class IdentifierWarning(UserWarning):
    """A tree splits on a column whose values identify rows or groups of rows."""


def warn_of_identifiers(
    used: list[int], rows: TrainingRows, parameters: Parameters, has_groups: bool, stacklevel: int
) -> None:
    """Warn of features of a tree that identify rows or groups of rows, and say what to do.

    Rows in files or on a cluster are not looked at, nor is a table of one column, without which
    there is nothing to learn from.
    """
    table = rows.table
    if type(table) is not Table or table.n_rows < MIN_ROWS or len(table.features) == 1:
        return
    found = _Columns(used, rows)
    words = [_row_number_words(found.names(f)) for f in found.row_numbers]
    if not has_groups and not isinstance(parameters.cv, TimeSeriesSplit):
        words += [_rising_words(found.names(f)) for f in found.rising]
    if not has_groups:
        words += [_group_words(found.names(*features)) for features in found.groups]
    for text in words:
        warnings.warn(text, IdentifierWarning, stacklevel=stacklevel + 1)


def _row_number_words(name: str) -> str:
    return (
        f"the tree splits on {name}, which looks like a row number: its values are whole numbers, "
        "all different, with few gaps. It says nothing about new rows; drop the column"
    )


def _rising_words(name: str) -> str:
    return (
        f"the tree splits on {name}, which only rises from the first row to the last, as dates and "
        "numbers of records do. New rows lie beyond all that it has seen, and rows held out at "
        "random make it look better than it is. Drop the column, or hold out later rows: "
        'strength="cv" with cv=TimeSeriesSplit(5), and evaluate on the last rows'
    )


def _group_words(name: str) -> str:
    return (
        f"the tree splits on {name}, whose values identify groups of rows: targets are alike where "
        "values are equal, but not where they are close. It learns the groups by heart, and rows "
        "held out at random make it look better than it is. Drop what identifies the groups, or "
        "keep rows of a group together: fit(X, y, groups=...), and evaluate on other groups"
    )


class _Likeness(NamedTuple):
    """Shares of the variance of targets that other rows explain."""

    same: float  # of the same value
    near: float  # of the neighbouring values


class _Columns:
    """What is found in the numeric columns that a tree uses."""

    def __init__(self, used: list[int], rows: TrainingRows) -> None:
        self._features = rows.table.features
        columns = {}
        for number in used:
            column = rows.table.columns[number]
            if not self._features[number].is_categorical and column is not None:
                columns[number] = np.asarray(column[:MAX_ROWS], dtype=np.float64)
        targets = _standardised(rows.targets[:MAX_ROWS], rows.n_classes)
        self.row_numbers = [f for f, column in columns.items() if _are_row_numbers(column)]
        others = {f: column for f, column in columns.items() if f not in self.row_numbers}
        self.rising = [f for f, column in others.items() if _only_rises(column)]
        # Copies of a row are alike, whatever it is.
        kept = _distinct_rows([*rows.table.columns, *targets.T])
        self._targets = targets[kept]
        others = {f: column[kept] for f, column in others.items()}
        self.groups: list[tuple[int, ...]] = [
            (f,) for f, x in others.items() if f not in self.rising and self._likeness(x) > 0
        ]
        numbers = {
            f: column
            for f, column in others.items()
            if (f,) not in self.groups and _are_numbers_of_things(column)
        }
        pairs = list(combinations(list(numbers)[:MAX_NUMBERS], 2))
        found = [self._likeness(*(numbers[f] for f in pair)) for pair in pairs]
        if max(found, default=0.0) > 0:
            self.groups.append(pairs[int(np.argmax(found))])

    def names(self, *features: int) -> str:
        """Names of features in a sentence."""
        return " and ".join(repr(self._features[number].name) for number in features)

    def _likeness(self, *columns: np.ndarray) -> float:
        """How alike targets are in the groups that one or two columns identify; 0 if none."""
        known = np.all([np.isfinite(column) for column in columns], axis=0)
        if not known.any():
            return 0.0
        codes = [np.unique(column[known], return_inverse=True)[1] for column in columns]
        ways = [codes[0]]
        if len(codes) == 2:  # neighbours in either column, at the same value of the other
            one, two = codes
            ways = [one * (two.max() + 1) + two, two * (one.max() + 1) + one]
        same = near = 0.0
        for code in ways:
            found = _likeness(code, self._targets[known])
            if found is None or found.same < MIN_ALIKE:
                return 0.0
            same, near = found.same, max(near, found.near)
            if same - near < MIN_APART:
                return 0.0
        return same


def _distinct_rows(columns: Sequence[np.ndarray | None]) -> np.ndarray:
    """The first of all rows that have the same values."""
    known = [np.asarray(x[:MAX_ROWS], dtype=np.float64) for x in columns if x is not None]
    hashes = np.zeros(len(known[-1]), dtype=np.uint64)
    for column in known:
        hashes = (hashes ^ column.view(np.uint64)) * HASH_FACTOR
        hashes ^= hashes >> np.uint64(29)
    return np.sort(np.unique(hashes, return_index=True)[1])


def _are_row_numbers(column: np.ndarray) -> bool:
    if not _is_whole(column):
        return False
    length = float(column.max() - column.min() + 1)
    return length <= MAX_RANGE * len(column) and len(np.unique(column)) == len(column)


def _are_numbers_of_things(column: np.ndarray) -> bool:
    if not _is_whole(column):
        return False
    n_values = len(np.unique(column))
    return n_values >= max(MIN_NUMBERS_OF, MIN_DENSITY * float(column.max() - column.min() + 1))


def _is_whole(column: np.ndarray) -> bool:
    # Beyond these, doubles hold whole numbers only, and not all of them.
    return bool((np.abs(column) <= 2.0**53).all() and (column == np.rint(column)).all())


def _only_rises(column: np.ndarray) -> bool:
    column = column[np.isfinite(column)]
    before, after = column[:-1], column[1:]
    n_changes = np.count_nonzero(after != before)
    if n_changes < MIN_CHANGES or np.count_nonzero(after < before) > MAX_FALLS * n_changes:
        return False
    place = np.unique(column, return_inverse=True)[1]
    return bool(np.corrcoef(place, np.arange(len(place)))[0, 1] >= MIN_CORRELATION)


def _standardised(targets: np.ndarray, n_classes: list[int] | None) -> np.ndarray:
    """Targets as columns of which distances make sense: one for each class, or numbers."""
    if n_classes is not None:
        # Of many classes, some share a column.
        each = zip(targets.T.astype(np.int64), n_classes, strict=True)
        return np.hstack([np.eye(min(n, MAX_CLASSES))[y % MAX_CLASSES] for y, n in each])
    scaled = _within_one(targets)  # the sum of great numbers may be infinite
    return _within_one(scaled - scaled.mean(axis=0))


def _within_one(numbers: np.ndarray) -> np.ndarray:
    """Columns divided by their greatest absolute values."""
    return np.asarray(numbers / np.maximum(np.abs(numbers).max(axis=0), np.finfo(float).tiny))


def _likeness(code: np.ndarray, targets: np.ndarray) -> _Likeness | None:
    """How alike targets are; None if few values have several rows.

    How much neighbouring values explain is only found out if equal ones explain enough.
    """
    values, place, counts = np.unique(code, return_inverse=True, return_counts=True)
    n_values = len(values)
    if n_values < MIN_VALUES or len(code) < 2 * n_values:
        return None
    recur = counts > 1
    rows = np.flatnonzero(recur[place])
    total = float(((targets[rows] - targets[rows].mean(axis=0)) ** 2).sum()) if len(rows) else 0.0
    if 2 * len(rows) < len(code) or not total > 0:
        return None
    sums = np.stack([np.bincount(place, y, n_values) for y in targets.T], axis=1)
    # By the mean of the other rows of its value, a row y of n with the sum s is missed by
    # (n y - s) / (n - 1).
    n, s = counts[recur, None].astype(np.float64), sums[recur]
    squares = np.bincount(place, (targets**2).sum(axis=1), n_values)[recur]
    missed = (n[:, 0] * squares - (s**2).sum(axis=1)) * n[:, 0] / (n[:, 0] - 1) ** 2
    same = 1 - float(missed.sum()) / total
    if same < MIN_ALIKE:
        return _Likeness(same, 0.0)
    up_to = np.vstack([np.zeros((1, sums.shape[1])), sums.cumsum(axis=0)])
    rows_up_to = np.append(0, counts.cumsum())
    at = np.arange(n_values)
    first, last = np.maximum(at - N_NEIGHBOURS, 0), np.minimum(at + N_NEIGHBOURS + 1, n_values)
    near = up_to[last] - up_to[first] - sums
    near /= (rows_up_to[last] - rows_up_to[first] - counts)[:, None]
    off = float(((targets[rows] - near[place[rows]]) ** 2).sum())
    return _Likeness(same, 1 - off / total)
