"""From a file to what a tree learns: the columns it may look at, and its target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from shapetree.cli._columns import (
    Column,
    Kind,
    forced_category,
    frame_of,
    is_like_a_name,
)
from shapetree.cli._dates import TWO_WAYS
from shapetree.cli._problems import Problem, listed, suggestion
from shapetree.cli._read import RawTable
from shapetree.cli._voice import Head, Voice, class_counts
from shapetree.tree._digits import rounded

if TYPE_CHECKING:
    import pandas as pd

LEAST_ROWS = 10
# Whole numbers with at most this many distinct values are taken for classes.
FEW_NUMBERS = 20
MOST_CLASSES = 200


class Task(StrEnum):
    """What a tree is to predict."""

    AUTO = "auto"
    CLASSIFICATION = "classification"
    REGRESSION = "regression"


@dataclass(frozen=True)
class Choices:
    """What was asked for about columns."""

    target: str
    task: Task
    categorical: list[str]
    ignored: list[str]
    kept: list[str]


@dataclass(frozen=True)
class Lesson:
    """What a tree learns.

    Attributes
    ----------
    X : DataFrame
        The columns that it may look at.
    y : array
        Class labels or numbers.
    task : Task
        Not `AUTO` any more.
    columns : list of Column
        All columns of the file but the target; those with a `reason` are ignored.
    target : Column
    rows : int array
        Numbers of its rows in the file.
    """

    X: pd.DataFrame
    y: np.ndarray
    task: Task
    columns: list[Column]
    target: Column
    rows: np.ndarray

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.task is Task.CLASSIFICATION


def make_lesson(table: RawTable, read: list[Column], choices: Choices, voice: Voice) -> Lesson:
    """Decide what the tree looks at and what it predicts, and say so."""
    named = [choices.target, *choices.categorical, *choices.ignored, *choices.kept]
    _check_names(table, named)
    if choices.target in choices.ignored:
        raise Problem(f"{choices.target} cannot be both the target and ignored")
    columns = {column.name: column for column in read}
    target = columns.pop(choices.target)
    y, task = _read_target(target, choices)
    for name in choices.categorical:
        if name != target.name:
            columns[name] = forced_category(columns[name], table.columns[name])
    chosen = [_as_asked(column, choices) for column in columns.values()]
    used = [column for column in chosen if column.reason is None]
    _check_target(y[_known(y)], target, task)
    _show_columns(chosen, target, voice)
    _show_task(y[_known(y)], task, choices, voice)
    _warn(table, chosen, choices, voice)
    if not used:
        raise Problem(f"no column of {table.path} is left to predict {target.name} from")
    rows = np.flatnonzero(_known(y))
    X, y = _with_known_target(frame_of(used), y, voice)
    return Lesson(X, y, task, chosen, target, rows)


def _check_names(table: RawTable, names: Iterable[str]) -> None:
    for name in names:
        if name not in table.columns:
            raise Problem(f"{table.path} has no column {name!r}; {suggestion(name, table.columns)}")


def _as_asked(column: Column, choices: Choices) -> Column:
    if column.name in choices.ignored:
        return replace(column, reason="as you asked")
    if column.name in choices.kept:
        if column.values is None:
            raise Problem(f"{column.name} cannot be kept: {column.reason}")
        return replace(column, reason=None)
    return column


# --- the target ---


def _read_target(target: Column, choices: Choices) -> tuple[np.ndarray, Task]:
    """The target's values, None or NaN where it is missing, and what the task is."""
    if target.kind in (Kind.DATE, Kind.OTHER, Kind.EMPTY) or target.values is None:
        held = {Kind.DATE: "dates", Kind.EMPTY: "no values"}.get(target.kind, "no numbers or text")
        raise Problem(f"the target {target.name} holds {held}; a tree predicts classes or numbers")
    task = choices.task
    if task is Task.AUTO:
        is_class = target.name in choices.categorical
        task = Task.CLASSIFICATION if is_class else _guess_task(target)
    if task is Task.REGRESSION:
        if not target.is_numeric:
            raise Problem(
                f"the target {target.name} holds text such as {target.example!r}; regression needs "
                "numbers"
            )
        return target.values.astype("float64").to_numpy(na_value=np.nan), task
    values = target.values.astype(object)
    return values.where(values.notna(), None).to_numpy(), task


def _guess_task(target: Column) -> Task:
    assert target.values is not None
    if not target.is_numeric:
        return Task.CLASSIFICATION
    present = target.values.dropna().to_numpy(dtype=float)
    is_whole = bool((present == np.floor(present)).all())
    is_class = is_whole and target.n_distinct <= FEW_NUMBERS
    return Task.CLASSIFICATION if is_class else Task.REGRESSION


def _spread(y: np.ndarray, task: Task) -> str:
    """How a target's values are spread, in a few words."""
    if task is Task.REGRESSION:
        low, middle, high = (rounded(value) for value in (y.min(), np.median(y), y.max()))
        return f"from {low} to {high}, median {middle}"
    return class_counts(y)


def _known(y: np.ndarray) -> np.ndarray:
    """Which rows have a target; an infinite number is none."""
    if y.dtype.kind == "f":
        return np.isfinite(y)
    return np.array([value is not None for value in y])


def _with_known_target(
    X: pd.DataFrame, y: np.ndarray, voice: Voice
) -> tuple[pd.DataFrame, np.ndarray]:
    """Leave out rows whose target is not known."""
    known = _known(y)
    n_unknown = int((~known).sum())
    if n_unknown:
        words = "1 row is" if n_unknown == 1 else f"{n_unknown:,} rows are"
        voice.note(f"{words} left out, as the target is missing there")
        X, y = X[known].reset_index(drop=True), y[known]
    # Labels of one type, so that a model file can restore them.
    return X, y if y.dtype.kind == "f" else np.array(y.tolist())


def _check_target(y: np.ndarray, target: Column, task: Task) -> None:
    if len(y) < LEAST_ROWS:
        raise Problem(
            f"there are only {len(y)} rows with a target; at least {LEAST_ROWS} are needed"
        )
    n_distinct = len(set(y.tolist()))
    if n_distinct < 2:
        raise Problem(f"the target {target.name} is always {target.example}; nothing to learn")
    if task is Task.CLASSIFICATION and n_distinct > min(MOST_CLASSES, len(y) // 2):
        advice = "try --task regression" if target.is_numeric else "join the rare ones first"
        if target.odd:
            advice = f"it is a category only because of {listed(target.odd)}"
        raise Problem(
            f"the target {target.name} has {n_distinct:,} classes in {len(y):,} rows, which is too "
            f"many; {advice}"
        )


# --- what people should know ---


def _show_columns(columns: list[Column], target: Column, voice: Voice) -> None:
    heads = [
        Head("column", is_flexible=True),
        Head("type"),
        Head("distinct", is_number=True),
        Head("missing", is_number=True),
        Head("example", is_flexible=True),
    ]
    rows = [_row(target, f"target: {target.kind}")]
    rows += [_row(column, type_words(column)) for column in columns]
    voice.table(heads, rows)
    voice.say()
    n_used = sum(column.reason is None for column in columns)
    voice.say(f"{n_used:,} of {len(columns):,} columns are used to predict {target.name}")


def _show_task(y: np.ndarray, task: Task, choices: Choices, voice: Voice) -> None:
    how = "" if choices.task is task else " (guessed; --task changes it)"
    voice.say(f"{task.capitalize()}{how}: {_spread(y, task)}")


def _row(column: Column, words: str) -> list[str]:
    missing = f"{column.n_missing:,}" if column.n_missing else "-"
    return [column.name, words, f"{column.n_distinct:,}", missing, column.example]


def type_words(column: Column) -> str:
    """A column's type as the tree sees it."""
    return str(column.kind) if column.reason is None else f"ignored: {column.reason}"


def _warn(table: RawTable, columns: list[Column], choices: Choices, voice: Voice) -> None:
    dates = [column.name for column in columns if column.reason == TWO_WAYS]
    if dates:
        voice.note(
            f"{listed(dates)}: these dates are ambiguous; write them as 2024-12-31, all with a "
            "time zone or all without"
        )
    n_copies = table.count_copies()
    if n_copies:
        copies = "1 row is a duplicate" if n_copies == 1 else f"{n_copies:,} rows are duplicates"
        voice.note(
            f"{copies} of another; if a row is both in training and in the test, the test score is "
            "too good"
        )
    for column in columns:
        if column.odd and column.name not in choices.categorical:
            voice.note(
                f"{column.name} is a category only because of {listed(column.odd)}; to use it as a "
                "number, put numbers in their place (for <50, the limit or half of it) or leave "
                f"these cells empty, and if it is a category, use --categorical {column.name}"
            )
        elif column.reason is None and is_like_a_name(column, table.n_rows):
            voice.note(
                f"{column.name} has {column.n_distinct:,} categories; if these identify rows, use "
                f"--ignore"
            )
    names = [name for name in table.columns if name.replace(".", "", 1).isdigit()]
    if len(names) == len(table.columns):
        voice.note(f"the first line of {table.path} looks like data; it should name the columns")
