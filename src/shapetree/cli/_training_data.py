"""From a file to what a tree learns: its columns, its target, and rows to test on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd
from rich.table import Column as Heading
from sklearn.model_selection import train_test_split

from shapetree.cli._column_types import TWO_WAYS, Column, Kind, forced_category, is_like_a_name
from shapetree.cli._console import Console, Misuse, Problem, class_counts, listed, suggestion
from shapetree.cli._reading import FileTable
from shapetree.tree._digits import rounded

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
    """Options of the command about columns."""

    target: str
    task: Task
    categorical: list[str]
    ignored: list[str]
    kept: list[str]


@dataclass(frozen=True)
class TrainingData:
    """What a tree learns."""

    X: pd.DataFrame  # the columns that it may look at
    y: np.ndarray  # class labels or numbers
    task: Task  # not `AUTO` any more
    columns: list[Column]  # all but the target; those with a `reason` are ignored
    target: Column
    rows: np.ndarray  # numbers of its rows in the file

    @property
    def is_classification(self) -> bool:
        """Whether the target is a class."""
        return self.task is Task.CLASSIFICATION

    def without_values(self) -> TrainingData:
        """The same without the values of all columns, of which X has those that are used."""
        columns = [replace(column, values=None) for column in self.columns]
        return replace(self, columns=columns, target=replace(self.target, values=None))


def choose_training_data(
    table: FileTable, read: list[Column], choices: Choices, console: Console
) -> TrainingData:
    """Decide what the tree looks at and what it predicts, and say so."""
    for name in [choices.target, *choices.categorical, *choices.ignored, *choices.kept]:
        known = table.rows.column_names
        if name not in known:
            raise Problem(f"{table.path} has no column {name!r}; {suggestion(name, known)}")
    if choices.target in choices.ignored:
        raise Problem(f"{choices.target} cannot be both the target and ignored")
    columns = {column.name: column for column in read}
    target = columns.pop(choices.target)
    y, task = _read_target(target, choices)
    has_target = np.isfinite(y) if y.dtype.kind == "f" else pd.notna(y)
    y = y[has_target]
    for name in choices.categorical:
        if name != target.name:
            columns[name] = forced_category(columns[name], table.rows[name])
    chosen = [_as_asked(column, choices) for column in columns.values()]
    used = [column for column in chosen if column.reason is None]
    _check_target(y, target, task)
    _show_columns(chosen, target, console)
    how = "" if choices.task is task else " (guessed; --task changes it)"
    console.say(f"{task.capitalize()}{how}: {_spread(y, task)}")
    _warn(table, chosen, choices, console)
    if not used:
        raise Problem(f"no column of {table.path} is left to predict {target.name} from")
    X = pd.DataFrame({column.name: column.values for column in used}, copy=False)
    n_without = len(has_target) - len(y)
    if n_without:
        words = "1 row is" if n_without == 1 else f"{n_without:,} rows are"
        console.note(f"{words} left out, as the target is missing there")
        X = X[has_target].reset_index(drop=True)
    if task is Task.CLASSIFICATION:
        y = np.array(y.tolist())  # of one type, so that a model file can restore labels
    return TrainingData(X, y, task, chosen, target, np.flatnonzero(has_target))


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


# --- what is printed ---


def _show_columns(columns: list[Column], target: Column, console: Console) -> None:
    headings = [
        Heading("column", overflow="fold"),
        Heading("type", no_wrap=True),
        Heading("distinct", justify="right", no_wrap=True),
        Heading("missing", justify="right", no_wrap=True),
        Heading("example", overflow="fold", max_width=20),
    ]
    types = [f"target: {target.kind}", *map(type_words, columns)]
    rows = [
        [
            each.name,
            words,
            f"{each.n_distinct:,}",
            f"{each.n_missing:,}" if each.n_missing else "-",
            each.example,
        ]
        for each, words in zip([target, *columns], types, strict=True)
    ]
    console.table(headings, rows)
    console.say()
    n_used = sum(column.reason is None for column in columns)
    console.say(f"{n_used:,} of {len(columns):,} columns are used to predict {target.name}")


def type_words(column: Column) -> str:
    """A column's type as the tree sees it."""
    return str(column.kind) if column.reason is None else f"ignored: {column.reason}"


def _warn(table: FileTable, columns: list[Column], choices: Choices, console: Console) -> None:
    dates = [column.name for column in columns if column.reason == TWO_WAYS]
    if dates:
        console.note(
            f"{listed(dates)}: these dates are ambiguous; write them as 2024-12-31, all with a "
            "time zone or all without"
        )
    n_copies = table.count_copies()
    if n_copies:
        copies = "1 row is a duplicate" if n_copies == 1 else f"{n_copies:,} rows are duplicates"
        console.note(
            f"{copies} of another; if a row is both in training and in the test, the test score is "
            "too good"
        )
    for column in columns:
        if column.odd and column.name not in choices.categorical:
            console.note(
                f"{column.name} is a category only because of {listed(column.odd)}; to use it as a "
                "number, put numbers in their place (for <50, the limit or half of it) or leave "
                f"these cells empty, and if it is a category, use --categorical {column.name}"
            )
        elif column.reason is None and is_like_a_name(column, table.rows.num_rows):
            console.note(
                f"{column.name} has {column.n_distinct:,} categories; if these identify rows, use "
                f"--ignore"
            )
    if all(name.replace(".", "", 1).isdigit() for name in table.rows.column_names):
        console.note(f"the first line of {table.path} looks like data; it should name the columns")


# --- rows to test on ---


@dataclass(frozen=True)
class Split:
    """Row numbers to train on and to test on; the same rows if none are held out."""

    train: np.ndarray
    test: np.ndarray
    is_apart: bool
    is_stratified: bool


def split_rows(data: TrainingData, test_size: float, seed: int, by: str | None) -> Split:
    """Hold out rows for the test, the same share of each class if classes are large enough.

    "time=NAME" holds out the latest rows, "group=NAME" all rows of some groups, and "stratum=NAME"
    the same share of the rows of each value of a column.
    """
    rows = np.arange(len(data.y))
    way, column = (None, None) if by is None else _split_column(data, by)
    if test_size == 0:
        return Split(rows, rows, False, False)
    n_test = int(np.ceil(test_size * len(rows)))
    if n_test < 2 or len(rows) - n_test < 2:
        raise Misuse(f"--test-size {test_size} leaves too few of {len(rows)} rows")
    if column is not None and way in ("time", "group"):
        is_test = _latest(column, n_test) if way == "time" else _groups(column, n_test, seed)
        if min(is_test.sum(), (~is_test).sum()) < 2:
            raise Misuse(f"--split {by} leaves too few rows to train on, or none to test on")
        return Split(rows[~is_test], rows[is_test], True, False)
    strata = data.y if column is None else column
    is_stratified = (data.is_classification or by is not None) and _can_stratify(strata, n_test)
    if by is not None and not is_stratified:
        raise Misuse(f"--split {by} needs at least 2 rows of each value")
    train, test = train_test_split(
        rows,
        test_size=n_test,
        random_state=seed,
        stratify=strata if is_stratified else None,
    )
    return Split(np.sort(train), np.sort(test), True, is_stratified)


def _split_column(data: TrainingData, by: str) -> tuple[str, np.ndarray]:
    """How to split, and by which codes or numbers of the rows; missing values have a code of -1."""
    way, _, name = by.partition("=")
    if way not in ("time", "group", "stratum") or not name:
        raise Misuse(f"--split takes time=NAME, group=NAME or stratum=NAME, got {by!r}")
    known = {column.name: column for column in [*data.columns, data.target]}
    if name not in known:
        raise Misuse(f"--split names {name!r}; {suggestion(name, known)}")
    values = known[name].values
    if values is None:
        raise Misuse(f"--split cannot use {name}: {known[name].reason}")
    codes = values.iloc[data.rows].astype("category").cat.codes.to_numpy()
    if way == "time":
        if not (known[name].is_numeric or known[name].kind is Kind.DATE):
            raise Misuse(f"--split time={name} needs dates or numbers; {name} holds text")
        if (codes < 0).any():
            raise Misuse(
                f"--split time={name} needs a time in every row; {(codes < 0).sum()} have none"
            )
    return way, codes


def _latest(times: np.ndarray, n_test: int) -> np.ndarray:
    """The rows from a moment on; all of a moment are on one side."""
    first = np.sort(times)[-n_test]
    # All rows of the first moment are tested, unless none would be left.
    return times >= first if first > times.min() else times > first


def _groups(groups: np.ndarray, n_test: int, seed: int) -> np.ndarray:
    """All rows of some groups, which have about as many rows as are to be tested."""
    names, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    before = np.cumsum(sizes[order]) - sizes[order]
    # The last group is taken if that is nearer to the size of the test.
    return np.isin(groups, names[order][before + sizes[order] / 2 <= n_test])


def _can_stratify(y: np.ndarray, n_test: int) -> bool:
    counts = np.unique(y, return_counts=True)[1]
    return counts.min() >= 2 and min(n_test, len(y) - n_test) >= len(counts)
