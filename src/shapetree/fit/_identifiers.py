"""Columns that invite a tree to memorise: their values identify rows, or groups of rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import TimeSeriesSplit

from shapetree.data._table import Table
from shapetree.fit._parameters import Parameters
from shapetree.fit._training_rows import TrainingRows

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
# Whole numbers are counted, not sorted, if their range is at most so many times their number.
MAX_COUNTED = 4
# First rows that are looked at to see whether a column holds whole numbers.
N_FIRST = 64
# First rows that are looked at to see whether a column falls too often to be one that only rises.
N_TRIED = 512
# Share of the targets' squares below which their variance is rounding.
ROUNDING = 1e-12
HASH_FACTOR = np.uint64(0x9E3779B97F4A7C15)


class IdentifierWarning(UserWarning):
    """A tree splits on a column whose values identify rows or groups of rows.

    Examples
    --------
    If such a column is meant to be used, the warning can be switched off:

    >>> import warnings
    >>> from shapetree import IdentifierWarning
    >>> warnings.filterwarnings("ignore", category=IdentifierWarning)
    """


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


@dataclass(frozen=True)
class _Targets:
    """Targets as numbers of which distances make sense; classes are ones and zeros, one for each.

    Attributes
    ----------
    rows : array of shape (n_rows, n_outputs)
        Numbers, or classes.
    n_classes : list of int or None
        None for numbers.
    """

    rows: np.ndarray
    n_classes: list[int] | None

    @classmethod
    def of(cls, targets: np.ndarray, n_classes: list[int] | None) -> _Targets:
        """The same, with classes beyond the first ones sharing their numbers with these."""
        if n_classes is not None:
            rows = targets.astype(np.int64) % MAX_CLASSES
            return cls(rows, [min(n, MAX_CLASSES) for n in n_classes])
        scaled = _within_one(targets)  # the sum of great numbers may be infinite
        return cls(_within_one(scaled - scaled.mean(axis=0)), None)

    def sums(self, place: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums of the targets of the rows at each place, and of their squares over all targets.

        `counts` are the numbers of rows at each place.
        """
        n_places = len(counts)
        if self.n_classes is None:
            sums = [np.bincount(place, y, n_places) for y in self.rows.T]
            return np.stack(sums, axis=1), np.bincount(place, (self.rows**2).sum(axis=1), n_places)
        sums = [
            np.bincount(place * n + y, minlength=n_places * n).reshape(n_places, n)
            for y, n in zip(self.rows.T, self.n_classes, strict=True)
        ]
        # A row has a single one among the classes of each output.
        return np.hstack(sums).astype(np.float64), counts * float(len(sums))


class _Column:
    """The first rows of a numeric column, with properties that are needed more than once."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    @cached_property
    def range(self) -> float:
        """How far the least and the greatest value lie apart; NaN if a value is missing."""
        with np.errstate(invalid="ignore", over="ignore"):
            return float(self.values.max() - self.values.min())

    @cached_property
    def is_whole(self) -> bool:
        """Whether all values are known and whole."""
        # Beyond these, doubles hold whole numbers only, and not all of them.
        few, values = self.values[:N_FIRST], self.values
        return bool(
            (few == np.rint(few)).all()
            and (np.abs(values) <= 2.0**53).all()
            and (values == np.rint(values)).all()
        )

    @cached_property
    def known(self) -> _Column:
        """The same without values that are missing or infinite."""
        is_known = np.isfinite(self.values)
        return self if is_known.all() else _Column(self.values[is_known])

    @cached_property
    def counts(self) -> np.ndarray:
        """The number of rows of each value, ascending."""
        if self._is_counted:
            counts = np.bincount(self._numbers)
            return counts[counts > 0]
        ordered = np.sort(self.values)
        ends = np.flatnonzero(ordered[1:] != ordered[:-1])
        return np.diff(ends, prepend=-1, append=len(ordered) - 1)

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return len(self.counts)

    @cached_property
    def places(self) -> np.ndarray:
        """The place of each row's value among all values."""
        if self._is_counted:
            return (np.cumsum(np.bincount(self._numbers) > 0) - 1)[self._numbers]
        return np.unique(self.values, return_inverse=True)[1]

    @cached_property
    def _is_counted(self) -> bool:
        """Whether values are whole and in a small range: counting is faster than sorting."""
        return self.range <= MAX_COUNTED * len(self.values) and self.is_whole

    @cached_property
    def _numbers(self) -> np.ndarray:
        return (self.values - self.values.min()).astype(np.intp)

    def take(self, rows: np.ndarray) -> _Column:
        """Some of the rows."""
        return self if len(rows) == len(self.values) else _Column(self.values[rows])

    def recurs(self) -> bool:
        """Whether there are several values, which have two rows or more on average."""
        n_rows = len(self.values)
        return n_rows > 0 and MIN_VALUES <= self.n_values <= n_rows / 2

    def are_row_numbers(self) -> bool:
        """Whether values are whole, all different, and leave few gaps."""
        n_rows = len(self.values)
        is_dense = self.range + 1 <= MAX_RANGE * n_rows
        return is_dense and self.is_whole and self.n_values == n_rows

    def are_numbers_of_things(self) -> bool:
        """Whether values are whole, and leave out few numbers."""
        n_dense = MIN_DENSITY * (self.range + 1)
        is_dense = len(self.values) >= n_dense and self.is_whole
        return is_dense and self.n_values >= max(MIN_NUMBERS_OF, n_dense)

    def only_rises(self) -> bool:
        """Whether values rise from the first row to the last."""
        values = self.known.values
        before, after = values[:-1], values[1:]
        # The first few nearly always show that it falls.
        if np.count_nonzero(after[:N_TRIED] < before[:N_TRIED]) > MAX_FALLS * len(after):
            return False
        n_changes = np.count_nonzero(after != before)
        if n_changes < MIN_CHANGES or np.count_nonzero(after < before) > MAX_FALLS * n_changes:
            return False
        place = self.known.places
        return bool(np.corrcoef(place, np.arange(len(place)))[0, 1] >= MIN_CORRELATION)


class _Columns:
    """What is found in the numeric columns that a tree uses."""

    def __init__(self, used: list[int], rows: TrainingRows) -> None:
        self._features = rows.table.features
        columns = {}
        for number in used:
            column = rows.table.columns[number]
            if not self._features[number].is_categorical and column is not None:
                columns[number] = _Column(np.asarray(column[:MAX_ROWS], dtype=np.float64))
        self.row_numbers = [f for f, column in columns.items() if column.are_row_numbers()]
        others = {f: column for f, column in columns.items() if f not in self.row_numbers}
        self.rising = [f for f, column in others.items() if column.only_rises()]
        targets = _Targets.of(rows.targets[:MAX_ROWS], rows.n_classes)
        self.groups = self._groups(others, targets)
        if self.groups:
            # Copies of a row are alike, whatever it is.
            kept = _distinct_rows([*rows.table.columns, *targets.rows.T])
            others = {f: column.take(kept) for f, column in others.items()}
            self.groups = self._groups(others, replace(targets, rows=targets.rows[kept]))

    def _groups(self, columns: dict[int, _Column], targets: _Targets) -> list[tuple[int, ...]]:
        """Features that identify groups of rows, alone or two together."""
        alone = [f for f, x in columns.items() if f not in self.rising and x.known.recurs()]
        groups: list[tuple[int, ...]] = []
        groups += [(f,) for f in alone if _likeness_of_one(columns[f], targets) > 0]
        numbers = [f for f, column in columns.items() if column.are_numbers_of_things()]
        numbers = [f for f in numbers if (f,) not in groups][:MAX_NUMBERS]
        pairs = list(combinations(numbers, 2))
        found = [_likeness_of_two(columns[f].places, columns[g].places, targets) for f, g in pairs]
        if max(found, default=0.0) > 0:
            groups.append(pairs[int(np.argmax(found))])
        return groups

    def names(self, *features: int) -> str:
        """Names of features in a sentence."""
        return " and ".join(repr(self._features[number].name) for number in features)


def _likeness_of_one(column: _Column, targets: _Targets) -> float:
    """How alike targets are in the groups that a column identifies; 0 if it does not."""
    if column.known is not column:
        targets = replace(targets, rows=targets.rows[np.isfinite(column.values)])
    return _apart(_likeness(column.known, targets))


def _likeness_of_two(one: np.ndarray, two: np.ndarray, targets: _Targets) -> float:
    """How alike targets are where two columns are equal; 0 if that does not make groups.

    Neighbours have nearly the same value of either column, and the same of the other.
    """
    found = _apart(_likeness(_Column(one * (two.max() + 1.0) + two), targets))
    if found > 0:
        found = _apart(_likeness(_Column(two * (one.max() + 1.0) + one), targets))
    return found


def _apart(found: _Likeness | None) -> float:
    """How alike rows of the same value are, if they are alike and neighbours are not; or 0."""
    if found is None or found.same < MIN_ALIKE or found.same - found.near < MIN_APART:
        return 0.0
    return found.same


def _distinct_rows(columns: Sequence[np.ndarray | None]) -> np.ndarray:
    """The first of all rows that have the same values."""
    known = [np.asarray(x[:MAX_ROWS], dtype=np.float64) for x in columns if x is not None]
    hashes = np.zeros(len(known[-1]), dtype=np.uint64)
    for column in known:
        hashes = (hashes ^ column.view(np.uint64)) * HASH_FACTOR
        hashes ^= hashes >> np.uint64(29)
    ordered = np.sort(hashes)
    if (ordered[1:] != ordered[:-1]).all():  # as nearly always
        return np.arange(len(hashes))
    return np.sort(np.unique(hashes, return_index=True)[1])


def _within_one(numbers: np.ndarray) -> np.ndarray:
    """Columns divided by their greatest absolute values."""
    return np.asarray(numbers / np.maximum(np.abs(numbers).max(axis=0), np.finfo(float).tiny))


def _likeness(column: _Column, targets: _Targets) -> _Likeness | None:
    """How alike targets are; None if few values have several rows.

    How much neighbouring values explain is only found out if equal ones explain enough.
    """
    if not column.recurs():
        return None
    counts = column.counts
    recur = counts > 1
    n = counts[recur].astype(np.float64)
    if 2 * n.sum() < len(column.values):
        return None
    sums, squares = targets.sums(column.places, counts)
    s, squares = sums[recur], squares[recur]
    total = squares.sum() - (s.sum(axis=0) ** 2).sum() / n.sum()
    if not total > ROUNDING * squares.sum():
        return None
    # By the mean of the other rows of its value, a row y of n with the sum s is missed by
    # (n y - s) / (n - 1).
    missed = (n * squares - np.einsum("ij,ij->i", s, s)) * n / (n - 1) ** 2
    same = 1 - float(missed.sum() / total)
    if same < MIN_ALIKE:
        return _Likeness(same, 0.0)
    up_to = np.vstack([np.zeros((1, sums.shape[1])), sums.cumsum(axis=0)])
    rows_up_to = np.append(0, counts.cumsum())
    at = np.flatnonzero(recur)
    first = np.maximum(at - N_NEIGHBOURS, 0)
    last = np.minimum(at + N_NEIGHBOURS + 1, len(counts))
    near = up_to[last] - up_to[first] - s
    near /= (rows_up_to[last] - rows_up_to[first] - counts[recur])[:, None]
    off = squares - 2 * (s * near).sum(axis=1) + n * (near**2).sum(axis=1)
    return _Likeness(same, 1 - float(off.sum() / total))
