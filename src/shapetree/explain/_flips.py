"""Flips: the smallest changes of a row that change its prediction.

An ordered feature can change within a row's *cells*: between two neighbouring bounds of the tree on
that feature, all other features being as they are, the prediction does not change. So the values
nearest to the row's own in every cell are all there is to try, for many rows at once. Where no
change of one feature is enough, such a change is followed by one of another feature.

`page/src/flip.js` does the same; tests compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapetree.data._columns import GREATEST
from shapetree.data._moments import DAY, DateKind
from shapetree.data._table import FeatureInfo
from shapetree.explain._cells import (
    Columns,
    bounds_on,
    cell_edges,
    column_of,
    different_categories,
    nearest,
)
from shapetree.explain._flip_constraints import FlipConstraints
from shapetree.explain._outcomes import python_values
from shapetree.tree._digits import ALL_DIGITS, FEW_DIGITS, beyond, exact, read, rounded
from shapetree.tree._view import TreeView
from shapetree.tree._words import category_name, listing, outcome_words, printable

# Finds the leaves of rows, given their columns.
Route = Callable[[Columns], np.ndarray]

# Changed rows to send through the tree at a time.
MAX_SENT = 100_000
# Changes of two features that are tried for a row.
MAX_TRIED = 20_000


@dataclass(frozen=True)
class Change:
    """A change of one feature; `str` of it says what would have to happen.

    Attributes
    ----------
    feature : str
    old : float, category or None
        The row's value; None if it is missing or new.
    new : float or category
        The nearest value that does.
    shown : str
        A value near it in few digits, which leads to the same leaf.
    is_number : bool
        Whether the feature has numbers rather than categories.
    date : {"day", "time", "utc"} or None
        Whether these are dates: `old` and `new` are then seconds since 1970-01-01.
    """

    feature: str
    old: Any
    new: Any
    shown: str
    is_number: bool
    date: DateKind | None = None

    def __str__(self) -> str:
        return printable(self._words())

    def _words(self) -> str:
        if self.is_number and self.date is None and self.old is not None:
            verb = "rose" if self.new > self.old else "fell"
            return f"{self.feature} {verb} from {self._old_words(self.old)} to {self.shown}"
        was = "missing" if self.old is None else category_name(self.old)
        if self.date is not None and self.old is not None:
            was = exact(self.old, self.date)
        return f"{self.feature} were {self.shown} instead of {was}"

    def _old_words(self, old: float) -> str:
        """The row's number, in as few digits as keep it on its side of the number shown."""
        shown, rises = float(self.shown), self.new > old
        texts = (rounded(old, digits) for digits in range(FEW_DIGITS, ALL_DIGITS))
        apart = (text for text in texts if (shown > float(text) if rises else shown < float(text)))
        return next(apart, exact(old))


@dataclass(frozen=True)
class Flip:
    """A change of one feature, or of two, that changes a prediction; `str` of it is a sentence.

    Attributes
    ----------
    changes : tuple of Change
    size : float
        Size of the changes, added up: of a number in standard deviations of its feature in
        training; 1 for another category and for a value instead of a missing one.
    leaf : int
        Leaf that the changed row ends in.
    outcome : str
        What that leaf predicts.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    >>> flip = tree.explain(iris.data[:1])[0].flip
    >>> print(flip)
    It would be versicolor (100 % of rows, predicted 95 %) if petal width (cm) rose from 0.2 to 0.81
    >>> flip.feature
    'petal width (cm)'
    """

    changes: tuple[Change, ...]
    size: float
    leaf: int
    outcome: str

    @property
    def feature(self) -> str:
        """The feature that changes, or the first of two."""
        return self.changes[0].feature

    @property
    def old(self) -> Any:
        """That feature's value in the row; None if it is missing or new."""
        return self.changes[0].old

    @property
    def new(self) -> Any:
        """What it changes to."""
        return self.changes[0].new

    @property
    def shown(self) -> str:
        """The same in few digits."""
        return self.changes[0].shown

    @property
    def is_number(self) -> bool:
        """Whether that feature has numbers rather than categories."""
        return self.changes[0].is_number

    def __str__(self) -> str:
        changes = listing([str(each) for each in self.changes])
        return printable(f"It would be {self.outcome} if {changes}")


@dataclass(frozen=True)
class _Found:
    """The changes of a row: the numbers of features, and their new values or codes."""

    changes: tuple[tuple[int, float], ...]
    size: float
    leaf: int


@dataclass(frozen=True, eq=False)
class _Tries:
    """Changes to try.

    Attributes
    ----------
    feature : int array of shape (n_tries,)
    value : array of shape (n_rows, n_tries)
        Numbers, or codes of categories.
    size : array of shape (n_rows, n_tries)
        NaN where there is nothing to try.
    """

    feature: np.ndarray
    value: np.ndarray
    size: np.ndarray


class FlipFinder:
    """Finds flips of rows; what does not depend on the rows is found once.

    Parameters
    ----------
    view : TreeView
    """

    def __init__(self, view: TreeView) -> None:
        self.view = view
        used = {id(feature) for node in view.nodes for feature in node.features}
        self._used = [j for j, feature in enumerate(view.features) if id(feature) in used]
        self._codes = {j: different_categories(view, j) for j in self._used if _is_coded(view, j)}
        self._bounds = {j: bounds_on(view, j) for j in self._used if not _is_coded(view, j)}
        self._words: dict[int, str] = {}

    def find(
        self, columns: Columns, leaves: np.ndarray, route: Route, constraints: FlipConstraints
    ) -> list[Flip | None]:
        """The smallest change for each row; if tied, the first feature's; None if there is none.

        Parameters
        ----------
        columns, leaves, route
            As for `explain_rows`.
        constraints : FlipConstraints
            What may change, and what it should lead to.
        """
        found: list[_Found | None] = []
        n_tries = sum(map(len, self._codes.values())) + sum(map(len, self._bounds.values()))
        step = max(1, MAX_SENT // (n_tries + len(self._used) + 1))
        for start in range(0, len(leaves), step):
            some = [None if column is None else column[start : start + step] for column in columns]
            found += self._find_some(some, leaves[start : start + step], route, constraints)
        return self._flips(columns, found, route, constraints)

    def _find_some(
        self, columns: Columns, leaves: np.ndarray, route: Route, constraints: FlipConstraints
    ) -> list[_Found | None]:
        features = [j for j in self._used if constraints.may_change(j)]
        tries = self._tries(columns, len(leaves), features, constraints)
        to = _send(columns, tries, route)
        wanted = ~np.isnan(tries.size) & constraints.is_fulfilled(leaves[:, None], to)
        best = _smallest(tries.size, wanted)
        found: list[_Found | None] = []
        for row, number in enumerate(best.tolist()):
            if number < 0:
                found.append(self._find_two(columns, row, tries, leaves[row], route, constraints))
                continue
            change = (int(tries.feature[number]), float(tries.value[row, number]))
            found.append(_Found((change,), float(tries.size[row, number]), int(to[row, number])))
        return found

    def _find_two(
        self,
        columns: Columns,
        row: int,
        tries: _Tries,
        leaf: int,
        route: Route,
        constraints: FlipConstraints,
    ) -> _Found | None:
        """Changes of two features of a row for which one is not enough."""
        size = tries.size[row]
        first = np.argsort(size, kind="stable")[: np.count_nonzero(~np.isnan(size))]
        first = first[: max(1, MAX_TRIED // max(1, len(size)))]
        best: _Found | None = None
        if not constraints.can_be_fulfilled(leaf) or not len(first):
            return best
        changed = _send_columns(columns, np.full(len(first), row), tries, first)
        for feature in [j for j in self._used if constraints.may_change(j)]:
            rows = np.flatnonzero(tries.feature[first] != feature)
            if not len(rows):
                continue
            some = [None if column is None else column[rows] for column in changed]
            second = self._tries(some, len(rows), [feature], constraints)
            to = _send(some, second, route)
            with np.errstate(over="ignore"):
                total = second.size + size[first[rows]][:, None]
            wanted = ~np.isnan(total) & constraints.is_fulfilled(np.full(to.shape, leaf), to)
            at = int(_smallest(total.reshape(1, -1), wanted.reshape(1, -1))[0])
            if at < 0:
                continue
            i, number = divmod(at, total.shape[1])
            if best is None or total[i, number] < best.size:
                one = first[rows[i]]
                changes = sorted(
                    [
                        (int(tries.feature[one]), float(tries.value[row, one])),
                        (feature, float(second.value[i, number])),
                    ]
                )
                best = _Found(tuple(changes), float(total[i, number]), int(to[i, number]))
        return best

    # --- values to try ---

    def _tries(
        self, columns: Columns, n_rows: int, features: list[int], constraints: FlipConstraints
    ) -> _Tries:
        bounds = [self._bounds[feature] for feature in features if feature in self._bounds]
        edges = cell_edges(bounds, columns, n_rows)
        parts = [
            self._categories_to_try(columns, feature)
            if feature in self._codes
            else self._numbers_to_try(columns, feature, next(edges), constraints)
            for feature in features
        ]
        sizes = [size for _, size in parts]
        return _Tries(
            np.repeat(features, [size.shape[1] for size in sizes]).astype(np.intp),
            np.hstack([value for value, _ in parts]) if parts else np.empty((n_rows, 0)),
            np.hstack(sizes) if parts else np.empty((n_rows, 0)),
        )

    # Values to try for all rows, with the sizes of the changes; NaN where there is none.

    def _categories_to_try(self, columns: Columns, feature: int) -> tuple[np.ndarray, np.ndarray]:
        column = column_of(columns, feature)[:, None]
        value = np.tile(np.array(self._codes[feature], dtype=float), (len(column), 1))
        return value, np.where(column == value, np.nan, 1.0)

    def _numbers_to_try(
        self, columns: Columns, feature: int, edges: np.ndarray, constraints: FlipConstraints
    ) -> tuple[np.ndarray, np.ndarray]:
        own = column_of(columns, feature)[:, None].astype(np.float64)
        low, high = (np.full((len(own), edges.shape[1] + 1), end) for end in (-np.inf, np.inf))
        low[:, 1:], high[:, :-1] = edges, edges
        step = _step_of(self.view.features[feature])
        is_whole = np.full(own.shape, step is not None)
        if step is not None and constraints.allows_unseen:
            is_whole = np.isnan(own) | (own / step == np.floor(own / step))
        limits = self._limits(feature, constraints)
        value = nearest(own, low, high, is_whole, step or 1, limits)
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.abs(value - np.clip(own, -GREATEST, GREATEST)) / self.view.scales[feature]
            size = np.where(np.isnan(own), 1.0, distance)
            size[((low < own) & (own <= high)) | np.isnan(value)] = np.nan
            size[~constraints.allows_move(feature, own, value)] = np.nan
        return np.where(np.isnan(size), own, value), size

    def _limits(self, feature: int, constraints: FlipConstraints) -> tuple[float, float]:
        """Between which numbers a flip may choose: the least and the greatest of training."""
        least, greatest = self.view.ranges[feature].tolist()
        if constraints.allows_unseen or math.isnan(least):
            return -math.inf, math.inf
        return least, greatest

    # --- what to say about them ---

    def _flips(
        self,
        columns: Columns,
        found: list[_Found | None],
        route: Route,
        constraints: FlipConstraints,
    ) -> list[Flip | None]:
        shown = self._shown(columns, found, route, constraints)
        return [
            None if each is None else self._flip(columns, row, each, shown[row])
            for row, each in enumerate(found)
        ]

    def _flip(self, columns: Columns, row: int, found: _Found, shown: list[str]) -> Flip:
        changes = []
        for (feature, value), text in zip(found.changes, shown, strict=True):
            info = self.view.features[feature]
            (old,) = python_values(column_of(columns, feature)[row : row + 1], info)
            new: Any = value if info.categories is None else info.categories[int(value)]
            is_number = info.categories is None
            changes.append(Change(info.name, old, new, text, is_number, info.date))
        if found.leaf not in self._words:
            self._words[found.leaf] = outcome_words(
                self.view, self.view.nodes[found.leaf], is_brief=True
            )
        return Flip(tuple(changes), found.size, found.leaf, self._words[found.leaf])

    def _shown(
        self,
        columns: Columns,
        found: list[_Found | None],
        route: Route,
        constraints: FlipConstraints,
    ) -> list[list[str]]:
        """The new values in words, for each row's changes."""
        texts = [
            [] if each is None else [self._exactly(*c) for c in each.changes] for each in found
        ]
        rows = np.array([row for row, each in enumerate(found) if each is not None], dtype=int)
        if not len(rows):
            return texts
        picked = [each for each in found if each is not None]
        leaf = np.array([each.leaf for each in picked])
        base = [None if column is None else column[rows] for column in columns]
        for i, each in enumerate(picked):
            for feature, value in each.changes:
                base[feature] = _as_changed(base[feature])
                column_of(base, feature)[i] = value
        short = {i: list(texts[row]) for i, row in enumerate(rows.tolist())}
        for place in range(max(len(each.changes) for each in picked)):
            self._shorten(columns, rows, picked, place, base, leaf, route, short, constraints)
        for i, row in enumerate(rows.tolist()):
            if len(short[i]) == 1 or self._leads(base, i, picked[i], short[i], route):
                texts[row] = short[i]
        return texts

    def _exactly(self, feature: int, value: float) -> str:
        info = self.view.features[feature]
        if info.categories is None:
            return exact(value, info.date)
        return category_name(info.categories[int(value)])

    def _shorten(
        self,
        columns: Columns,
        rows: np.ndarray,
        picked: list[_Found],
        place: int,
        base: Columns,
        leaf: np.ndarray,
        route: Route,
        short: dict[int, list[str]],
        constraints: FlipConstraints,
    ) -> None:
        """Use shorter numbers that lead to the same leaf and go hardly further."""
        ways: dict[int, list[str]] = {}
        for i, each in enumerate(picked):
            if len(each.changes) > place and each.changes[place][0] in self._bounds:
                feature, value = each.changes[place]
                own = float(column_of(columns, feature)[rows[i]])
                date = self.view.features[feature].date
                least, greatest = self._limits(feature, constraints)
                *texts, short[i][place] = beyond(value, own, date)
                ways[i] = [text for text in texts if least <= read(text, date) <= greatest]
        while any(ways.values()):
            tried = {i: texts.pop(0) for i, texts in ways.items() if texts}
            some = list(tried)
            sent = [None if column is None else column[some] for column in base]
            for k, i in enumerate(some):
                feature = picked[i].changes[place][0]
                sent[feature] = _as_changed(sent[feature])
                column_of(sent, feature)[k] = read(tried[i], self.view.features[feature].date)
            for k in np.flatnonzero(route(sent) == leaf[some]).tolist():
                short[some[k]][place] = tried[some[k]]
                ways[some[k]] = []

    def _leads(self, base: Columns, i: int, found: _Found, texts: list[str], route: Route) -> bool:
        """Whether what is shown of several changes leads to their leaf."""
        row = [None if column is None else column[i : i + 1].copy() for column in base]
        for (feature, _), text in zip(found.changes, texts, strict=True):
            if feature in self._bounds:
                column_of(row, feature)[0] = read(text, self.view.features[feature].date)
        return bool(route(row)[0] == found.leaf)


def _smallest(size: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Number of the smallest of each row's tries that are wanted; -1 if there is none."""
    if not size.shape[1]:
        return np.full(len(size), -1)
    counted = np.where(wanted, size, np.inf)
    best = counted.argmin(axis=1)
    # Infinitely large changes count, too, where there is no smaller one.
    best = np.where(np.isinf(counted.min(axis=1)), wanted.argmax(axis=1), best)
    return np.where(wanted.any(axis=1), best, -1)


def _send(columns: Columns, tries: _Tries, route: Route) -> np.ndarray:
    """Leaves of the rows with each change; 0 where there is nothing to try."""
    leaves = np.zeros(tries.size.shape, dtype=np.intp)
    rows, numbers = np.nonzero(~np.isnan(tries.size))
    if len(rows):
        changed = _send_columns(columns, rows, tries, numbers)
        leaves[rows, numbers] = route(changed)
    return leaves


def _send_columns(
    columns: Columns, rows: np.ndarray, tries: _Tries, numbers: np.ndarray
) -> list[np.ndarray | None]:
    """Columns of rows, each with one of its changes."""
    changed = [None if column is None else column[rows] for column in columns]
    features, values = tries.feature[numbers], tries.value[rows, numbers]
    for feature in np.unique(features).tolist():
        column = changed[feature] = _as_changed(changed[feature])
        here = features == feature
        column[here] = values[here]
    return changed


def _as_changed(column: np.ndarray | None) -> np.ndarray:
    """A column as codes or as the numbers that any value can be put into."""
    assert column is not None
    return np.ascontiguousarray(column, None if column.dtype.kind == "i" else np.float64)


def _is_coded(view: TreeView, feature: int) -> bool:
    return view.features[feature].is_categorical


def _step_of(feature: FeatureInfo) -> int | None:
    """What the numbers of a feature are multiples of; None if there is no such number."""
    if feature.is_date:
        return DAY if feature.date == "day" else None
    return 1 if feature.is_whole else None
