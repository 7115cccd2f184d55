"""Flips: the smallest changes of a row that change its prediction.

An ordered feature can change within a row's *cells*: between two neighbouring bounds of the tree on
that feature, all other features being as they are, the prediction does not change. So the values
nearest to the row's own in every cell are all there is to try, for many rows at once. Where no
change of one feature is enough, such a change is followed by one of another feature.

`page/src/flip.js` does the same; tests compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapetree.data._columns import GREATEST
from shapetree.data._moments import DAY, DateKind
from shapetree.data._table import FeatureInfo
from shapetree.explain._cells import (
    Bounds,
    Columns,
    bounds_on,
    cell_edges,
    column_of,
    different_categories,
    nearest,
)
from shapetree.explain._conditions import python_values
from shapetree.explain._flip_constraints import FlipConstraints
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
    It would be versicolor (98 % of rows, predicted 94 %) if petal width (cm) rose from 0.2 to 0.81
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
    """Changes to try."""

    feature: np.ndarray  # shape (n_tries,)
    # Numbers, or codes of categories. Shape (n_rows, n_tries).
    value: np.ndarray
    # NaN where there is nothing to try. Shape (n_rows, n_tries).
    size: np.ndarray

    def columns(
        self, columns: Columns, rows: np.ndarray, numbers: np.ndarray
    ) -> list[np.ndarray | None]:
        """Columns of rows, each with one of its changes."""
        values = self.value[rows, numbers]
        return _changed(columns, rows, np.arange(len(rows)), self.feature[numbers], values)


@dataclass(frozen=True, eq=False)
class TreeCells:
    """What values a tree tells apart, by feature that it uses; see `tree_cells`."""

    codes: dict[int, list[int]]  # codes of a category of each group that the tree treats alike
    bounds: dict[int, Bounds]  # of ordered features
    used: list[int]  # all these features, ascending


def tree_cells(view: TreeView) -> TreeCells:
    """What values a tree tells apart: it is the same for all rows."""
    used = sorted({number for node in view.nodes for number in node.feature_numbers})
    is_coded = [feature.is_categorical for feature in view.features]
    return TreeCells(
        {j: different_categories(view, j) for j in used if is_coded[j]},
        {j: bounds_on(view, j) for j in used if not is_coded[j]},
        used,
    )


@dataclass(frozen=True, eq=False)
class FlipSearch:
    """Finds flips of rows."""

    view: TreeView
    cells: TreeCells
    route: Route  # finds the leaves of rows, given their columns
    constraints: FlipConstraints  # what may change, and what it should lead to

    def find(self, columns: Columns, leaves: np.ndarray) -> list[Flip | None]:
        """The smallest change for each row; if tied, the first feature's; None if there is none."""
        found: list[_Found | None] = []
        codes, bounds = self.cells.codes.values(), self.cells.bounds.values()
        n_tries = sum(map(len, codes)) + sum(map(len, bounds))
        step = max(1, MAX_SENT // (n_tries + len(self.cells.used) + 1))
        for start in range(0, len(leaves), step):
            rows = slice(start, start + step)
            found += self._find_some(_taken(columns, rows), leaves[rows])
        flips: list[Flip | None] = [None] * len(found)
        picked = {row: each for row, each in enumerate(found) if each is not None}
        shown = self._shown(columns, picked) if picked else []
        words = {
            leaf: outcome_words(self.view, self.view.nodes[leaf], is_brief=True)
            for leaf in {each.leaf for each in picked.values()}
        }
        for (row, each), texts in zip(picked.items(), shown, strict=True):
            changes = [
                self._change(column_of(columns, feature)[row : row + 1], feature, value, text)
                for (feature, value), text in zip(each.changes, texts, strict=True)
            ]
            flips[row] = Flip(tuple(changes), each.size, each.leaf, words[each.leaf])
        return flips

    def _find_some(self, columns: Columns, leaves: np.ndarray) -> list[_Found | None]:
        features = [j for j in self.cells.used if self.constraints.may_change(j)]
        tries = self._tries(columns, len(leaves), features)
        to = self._send(columns, tries)
        wanted = ~np.isnan(tries.size) & self.constraints.is_fulfilled(leaves[:, None], to)
        best = _smallest(tries.size, wanted)
        found: list[_Found | None] = []
        for row, number in enumerate(best.tolist()):
            if number < 0:
                found.append(self._find_two(columns, row, tries, leaves[row]))
                continue
            change = (int(tries.feature[number]), float(tries.value[row, number]))
            found.append(_Found((change,), float(tries.size[row, number]), int(to[row, number])))
        return found

    def _find_two(self, columns: Columns, row: int, tries: _Tries, leaf: int) -> _Found | None:
        """Changes of two features of a row for which one is not enough."""
        size = tries.size[row]
        first = np.argsort(size, kind="stable")[: np.count_nonzero(~np.isnan(size))]
        first = first[: max(1, MAX_TRIED // max(1, len(size)))]
        best: _Found | None = None
        if not self.constraints.can_be_fulfilled(leaf) or not len(first):
            return best
        changed = tries.columns(columns, np.full(len(first), row), first)
        for feature in [j for j in self.cells.used if self.constraints.may_change(j)]:
            rows = np.flatnonzero(tries.feature[first] != feature)
            if not len(rows):
                continue
            some = _taken(changed, rows)
            second = self._tries(some, len(rows), [feature])
            to = self._send(some, second)
            with np.errstate(over="ignore"):
                total = second.size + size[first[rows]][:, None]
            wanted = ~np.isnan(total) & self.constraints.is_fulfilled(np.full(to.shape, leaf), to)
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

    def _send(self, columns: Columns, tries: _Tries) -> np.ndarray:
        """Leaves of the rows with each change; 0 where there is nothing to try."""
        leaves = np.zeros(tries.size.shape, dtype=np.intp)
        rows, numbers = np.nonzero(~np.isnan(tries.size))
        if len(rows):
            leaves[rows, numbers] = self.route(tries.columns(columns, rows, numbers))
        return leaves

    # --- values to try ---

    def _tries(self, columns: Columns, n_rows: int, features: list[int]) -> _Tries:
        codes, bounds = self.cells.codes, self.cells.bounds
        edges = cell_edges([bounds[j] for j in features if j in bounds], columns, n_rows)
        parts = [
            _categories_to_try(column_of(columns, feature), codes[feature])
            if feature in codes
            else self._numbers_to_try(column_of(columns, feature), feature, next(edges))
            for feature in features
        ]
        sizes = [size for _, size in parts]
        return _Tries(
            np.repeat(features, [size.shape[1] for size in sizes]).astype(np.intp),
            np.hstack([value for value, _ in parts]) if parts else np.empty((n_rows, 0)),
            np.hstack(sizes) if parts else np.empty((n_rows, 0)),
        )

    def _numbers_to_try(
        self, column: np.ndarray, feature: int, edges: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Values to try for all rows, and the sizes of the changes; NaN where there is none."""
        own = column[:, None].astype(np.float64)
        low, high = (np.full((len(own), edges.shape[1] + 1), end) for end in (-np.inf, np.inf))
        low[:, 1:], high[:, :-1] = edges, edges
        step = _step_of(self.view.features[feature])
        is_whole = np.full(own.shape, step is not None)
        if step is not None and self.constraints.allows_unseen:
            is_whole = np.isnan(own) | (own / step == np.floor(own / step))
        value = nearest(own, low, high, is_whole, step or 1, self._limits(feature))
        with np.errstate(over="ignore", invalid="ignore"):
            distance = np.abs(value - np.clip(own, -GREATEST, GREATEST)) / self.view.scales[feature]
            size = np.where(np.isnan(own), 1.0, distance)
            size[((low < own) & (own <= high)) | np.isnan(value)] = np.nan
            size[~self.constraints.allows_move(feature, own, value)] = np.nan
        return np.where(np.isnan(size), own, value), size

    def _limits(self, feature: int) -> tuple[float, float]:
        """Between which numbers a flip may choose: the least and the greatest of training."""
        least, greatest = self.view.ranges[feature].tolist()
        if self.constraints.allows_unseen or math.isnan(least):
            return -math.inf, math.inf
        return least, greatest

    # --- what to say about them ---

    def _change(self, old: np.ndarray, feature: int, value: float, shown: str) -> Change:
        info = self.view.features[feature]
        (was,) = python_values(old, info)
        is_number = info.categories is None
        new = value if info.categories is None else info.categories[int(value)]
        return Change(info.name, was, new, shown, is_number, info.date)

    def _shown(self, columns: Columns, found: dict[int, _Found]) -> list[list[str]]:
        """The new values in words, for the changes of each row that has some.

        Numbers are shorter than those found where these lead to the same leaf and go hardly
        further.
        """
        rows, changes = list(found), [each.changes for each in found.values()]
        leaf = np.array([each.leaf for each in found.values()])
        each_change = [(i, *change) for i, its in enumerate(changes) for change in its]
        base = _changed(columns, rows, *map(np.array, zip(*each_change, strict=True)))
        exactly = [[self._exactly(*change) for change in its] for its in changes]
        shown = [list(texts) for texts in exactly]
        for place in range(max(map(len, changes))):
            ways: dict[int, list[tuple[int, str]]] = {}
            for i, its in enumerate(changes):
                if len(its) > place and its[place][0] in self.cells.bounds:
                    feature, value = its[place]
                    ways[i] = self._shorter(feature, value, columns, rows[i])
            while any(ways.values()):
                tried = {i: [texts.pop(0)] for i, texts in ways.items() if texts}
                for i in self._leading(base, leaf, tried):
                    (_, shown[i][place]) = tried[i][0]
                    ways[i] = []
        # Of two features, each may be near enough for itself, but not both.
        several = {
            i: [
                (f, text)
                for (f, _), text in zip(its, shown[i], strict=True)
                if f in self.cells.bounds
            ]
            for i, its in enumerate(changes)
            if len(its) > 1
        }
        several = {i: texts for i, texts in several.items() if texts}
        for i in several.keys() - self._leading(base, leaf, several):
            shown[i] = exactly[i]
        return shown

    def _exactly(self, feature: int, value: float) -> str:
        info = self.view.features[feature]
        if info.categories is None:
            return exact(value, info.date)
        return category_name(info.categories[int(value)])

    def _shorter(
        self, feature: int, value: float, columns: Columns, row: int
    ) -> list[tuple[int, str]]:
        """The feature and shorter numbers than one that it changes to, the shortest first."""
        date = self.view.features[feature].date
        least, greatest = self._limits(feature)
        texts = beyond(value, float(column_of(columns, feature)[row]), date)[:-1]
        return [(feature, text) for text in texts if least <= read(text, date) <= greatest]

    def _leading(
        self, base: Columns, leaf: np.ndarray, texts: dict[int, list[tuple[int, str]]]
    ) -> set[int]:
        """Rows that still end in their leaves if their features have the numbers that are shown."""
        if not texts:
            return set()
        rows = list(texts)
        sent = _taken(base, rows)  # with columns that any number can be put into
        for at, its in enumerate(texts.values()):
            for feature, text in its:
                column_of(sent, feature)[at] = read(text, self.view.features[feature].date)
        is_same = self.route(sent) == leaf[rows]
        return {row for row, same in zip(rows, is_same.tolist(), strict=True) if same}


def _categories_to_try(column: np.ndarray, codes: list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Values to try for all rows, and the sizes of the changes; NaN where there is none."""
    value = np.tile(np.array(codes, dtype=float), (len(column), 1))
    return value, np.where(column[:, None] == value, np.nan, 1.0)


def _smallest(size: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Number of the smallest of each row's tries that are wanted; -1 if there is none."""
    if not size.shape[1]:
        return np.full(len(size), -1)
    counted = np.where(wanted, size, np.inf)
    best = counted.argmin(axis=1)
    # Infinitely large changes count, too, where there is no smaller one.
    best = np.where(np.isinf(counted.min(axis=1)), wanted.argmax(axis=1), best)
    return np.where(wanted.any(axis=1), best, -1)


def _taken(columns: Columns, rows: Sequence[int] | np.ndarray | slice) -> list[np.ndarray | None]:
    """Columns of some rows."""
    return [None if column is None else column[rows] for column in columns]


def _changed(
    columns: Columns,
    rows: Sequence[int] | np.ndarray,
    at: np.ndarray,
    features: np.ndarray,
    values: np.ndarray,
) -> list[np.ndarray | None]:
    """Columns of rows, some of which, at places among these, have another value of a feature."""
    changed = _taken(columns, rows)
    for feature in np.unique(features).tolist():
        column, here = column_of(changed, feature), features == feature
        # Codes, or numbers that any value can be put into.
        kind = None if column.dtype.kind == "i" else np.float64
        column = changed[feature] = np.ascontiguousarray(column, kind)
        column[at[here]] = values[here]
    return changed


def _step_of(feature: FeatureInfo) -> int | None:
    """What the numbers of a feature are multiples of; None if there is no such number."""
    if feature.is_date:
        return DAY if feature.date == "day" else None
    return 1 if feature.is_whole else None
