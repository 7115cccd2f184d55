"""Questions about how rows are spread over a tree's nodes, which any holder of rows can answer.

A question is answered for a part of the rows, and the answers for parts are joined to the answer
for all: sums on exact grids, least and greatest values, and samples that are chosen by the hash of
a row's number. However rows are divided, the answer is the same, bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from shapetree.data._shares import Parts, drawn_labels, in_steps, steps_of
from shapetree.data._stored import StoredTable
from shapetree.data._table import Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of

Answer = TypeVar("Answer")


@dataclass(frozen=True, eq=False)
class SpreadPart:
    """A part of the rows, with their own values, and the tree that they are sent down.

    Attributes
    ----------
    tree : TreeArrays
    table : Table
        Its rows; columns that the tree does not use may be None.
    y : array of shape (n_rows,) or None
        Classes' numbers (int32), or targets (float64); None if a row has several.
    first_row : int
        Number of its first row in the whole of the data.
    n_threads : int
    found_leaves : int32 array of shape (n_rows,) or None
        The rows' leaves, if they have been found before.
    counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for one.
    weights : array of shape (n_rows,) or None
        What rows weigh in the tree, where that is not known from their number alone.
    """

    tree: TreeArrays
    table: Table
    y: np.ndarray | None
    first_row: int = 0
    n_threads: int = 1
    found_leaves: np.ndarray | None = None
    counts: np.ndarray | None = None
    weights: np.ndarray | None = None

    @cached_property
    def leaves(self) -> np.ndarray:
        """The rows' leaves."""
        if self.found_leaves is not None:
            return self.found_leaves
        return leaves_of(self.tree, self.table, self.n_threads)

    @cached_property
    def targets(self) -> np.ndarray:
        """The rows' classes or targets."""
        assert self.y is not None
        return self.y

    @property
    def weight_of_each(self) -> np.ndarray:
        """What each of the rows weighs that a row counts as."""
        assert self.weights is not None
        return self.weights if self.counts is None else self.weights / self.counts

    def column(self, feature: int) -> np.ndarray:
        """Values of a feature."""
        column = self.table.columns[feature]
        assert column is not None
        return column


class Question(ABC, Generic[Answer]):
    """A question about rows."""

    # Whether values are needed to answer it, or leaves and targets are enough.
    needs_values = True
    # Whether single rows are wanted; where these have shares of classes, others are asked of parts.
    wants_rows = False

    @abstractmethod
    def of(self, part: SpreadPart) -> Answer:
        """The answer for a part of the rows."""

    @abstractmethod
    def join(self, answers: Sequence[Answer]) -> Answer:
        """The answer for some parts, in whatever order, from those for each."""


class SpreadRows(Protocol):
    """Whoever holds rows with their own values and a tree: this process, files, a cluster."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        ...

    @property
    def steps(self) -> int:
        """How many of what is counted make a row: 1, or the steps of its shares of classes."""
        ...

    def ask(self, *questions: Question[Any]) -> list[Any]:
        """Answers for all rows; those to several questions may be found in one go."""
        ...


@dataclass(frozen=True, eq=False)
class LocalSpread:
    """Rows in memory; `part` holds all of them."""

    part: SpreadPart
    steps = 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.part.table.n_rows

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return self.part.weights is not None

    def ask(self, *questions: Question[Any]) -> list[Any]:
        """Answers for all rows."""
        return [question.of(self.part) for question in questions]


@dataclass(frozen=True, eq=False)
class SpreadParts:
    """Rows in memory that are of several classes, each to some degree.

    Attributes
    ----------
    parts : SpreadPart
        A part of each row for each class, which counts so many of the row's steps.
    whole : SpreadPart
        Each row once, with a class that is drawn by its shares.
    steps : int
    """

    parts: SpreadPart
    whole: SpreadPart
    steps: int

    @property
    def n_rows(self) -> int:
        """Number of rows that are counted, which are parts."""
        return self.parts.table.n_rows

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return self.parts.weights is not None

    def ask(self, *questions: Question[Any]) -> list[Any]:
        """Answers for all rows."""
        return [each.of(self.whole if each.wants_rows else self.parts) for each in questions]


class StoredSpread:
    """Rows in parts, which are read again for every question about their values.

    Parameters
    ----------
    tree : TreeArrays
    table : StoredTable
    y, counts, weights : arrays of shape (n_rows,) or None
        As in `SpreadPart`.
    n_threads : int
    """

    steps = 1

    def __init__(
        self,
        tree: TreeArrays,
        table: StoredTable,
        y: np.ndarray | None,
        counts: np.ndarray | None,
        weights: np.ndarray | None,
        n_threads: int,
    ) -> None:
        self._tree = tree
        self._table = table
        self._y = y
        self._counts = counts
        self._weights = weights
        self._n_threads = n_threads
        self._leaves: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._table.n_rows

    @property
    def has_weights(self) -> bool:
        """Whether rows have weights."""
        return self._weights is not None

    def ask(self, *questions: Question[Any]) -> list[Any]:
        """Answers for all rows, in one pass over them."""
        if self._leaves is not None and not any(each.needs_values for each in questions):
            table = self._table
            nothing = Table(table.n_rows, table.features, [None] * len(table.features))
            return [question.of(self._part(nothing, 0)) for question in questions]
        leaves = np.empty(self.n_rows, dtype=np.int32)
        answers: list[Any] = []
        for first, batch in self._table.read(self._tree.used_features, "describing nodes"):
            part = self._part(batch, first)
            its = [question.of(part) for question in questions]
            leaves[first : first + batch.n_rows] = part.leaves
            if answers:
                each = zip(questions, answers, its, strict=True)
                its = [question.join([before, now]) for question, before, now in each]
            answers = its
        self._leaves = leaves
        return answers

    def _part(self, table: Table, first: int) -> SpreadPart:
        rows = slice(first, first + table.n_rows)
        y, leaves, counts, weights = (
            None if array is None else array[rows]
            for array in (self._y, self._leaves, self._counts, self._weights)
        )
        return SpreadPart(self._tree, table, y, first, self._n_threads, leaves, counts, weights)


def spread_of(
    tree: TreeArrays,
    table: Table,
    y: np.ndarray | None,
    counts: np.ndarray | None,
    n_threads: int,
    weights: np.ndarray | None = None,
) -> SpreadRows:
    """Whoever can tell how the rows of a table, which may count as several, are spread."""
    whole = None if counts is None else counts.astype(np.int32)
    return spread_of_table(table, tree, y, whole, weights, n_threads)


@singledispatch
def spread_of_table(
    table: Table,
    tree: TreeArrays,
    y: np.ndarray | None,
    counts: np.ndarray | None,
    weights: np.ndarray | None,
    n_threads: int,
) -> SpreadRows:
    """The same; every kind of table registers its own way."""
    part = SpreadPart(tree, table, y, n_threads=n_threads, counts=counts, weights=weights)
    return LocalSpread(part)


@spread_of_table.register
def _(
    table: StoredTable,
    tree: TreeArrays,
    y: np.ndarray | None,
    counts: np.ndarray | None,
    weights: np.ndarray | None,
    n_threads: int,
) -> SpreadRows:
    return StoredSpread(tree, table, y, counts, weights, n_threads)


def spread_of_parts(
    tree: TreeArrays,
    table: Table,
    parts: Parts,
    counts: np.ndarray | None,
    n_threads: int,
    weights: np.ndarray | None = None,
) -> SpreadRows:
    """Whoever can tell how rows with shares of classes are spread.

    Parameters
    ----------
    tree : TreeArrays
    table : Table
        The parts of the rows.
    parts : Parts
    counts : array of shape (n_parts,) or None
        As how many rows each part counts, or which share of one; None for 1.
    n_threads : int
    weights : array of shape (n_parts,) or None
    """
    first, counts = parts.first, np.ones(table.n_rows) if counts is None else counts
    steps = 1 if (counts == np.rint(counts)).all() else steps_of(int(counts.sum()))
    in_all = in_steps(counts, steps)
    if weights is not None:
        # Parts of a row are no evidence of their own: each step of it weighs the same.
        place = np.cumsum(np.diff(parts.row, prepend=-1) != 0) - 1
        each = np.add.reduceat(weights, first) / np.add.reduceat(in_all, first)
        weights = each[place] * in_all
    drawn = drawn_labels(parts.row, parts.label, counts)
    whole = SpreadPart(tree, table.take(first), drawn, n_threads=n_threads)
    has_steps, label = in_all > 0, parts.label
    if not has_steps.all():
        table, label, in_all = table.take(has_steps), label[has_steps], in_all[has_steps]
        weights = None if weights is None else weights[has_steps]
    shown = SpreadPart(tree, table, label, 0, n_threads, None, in_all, weights)
    return SpreadParts(shown, whole, steps)


def sole_target(targets: np.ndarray, has_classes: bool) -> np.ndarray | None:
    """Targets as parts hold them, from an array of shape (n_rows, n_outputs)."""
    if targets.shape[1] > 1:
        return None
    return np.ascontiguousarray(targets[:, 0], dtype=np.int32 if has_classes else np.float64)
