"""`shapetree fit`: a tree from a file."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from sklearn.base import clone

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, export_html, export_text
from shapetree.cli._columns import Column, Kind, read_columns
from shapetree.cli._compare import Score, compare, show_scores, split_rows
from shapetree.cli._lesson import Choices, Lesson, Task, make_lesson, type_words
from shapetree.cli._model import Tree
from shapetree.cli._options import (
    DataOrParts,
    Encoding,
    Option,
    Separator,
    names_in,
    settings_in,
    value_in,
)
from shapetree.cli._outputs import check_outputs, write_outputs
from shapetree.cli._parts import is_in_parts, open_parts, sample_parts
from shapetree.cli._pictures import check_picture, picture_of_tree
from shapetree.cli._problems import Misuse, message_of
from shapetree.cli._read import STANDARD, give_memory_back, read_file
from shapetree.cli._voice import Voice
from shapetree.data._batches import Batches
from shapetree.data._store import bytes_of
from shapetree.tree._words import listing

MOST_LINES = 30
# Defaults that the help shows; the library's own.
DEPTH, BRANCHES = 4, 3
MAX_DEPTH, MAX_SEED = 2**31 - 1, 2**32 - 1


@dataclass(frozen=True)
class Outputs:
    """Files to write."""

    model: Path | None
    html: Path | None
    plot: Path | None


def fit(
    voice: Voice,
    data: DataOrParts,
    target: Annotated[str, Option("Column to predict.", ("--target", "-t"), "NAME")],
    output: Annotated[
        Path | None, Option("Write the model to this file.", ("--output", "-o"), "FILE.json")
    ] = None,
    html: Annotated[
        Path | None, Option("Write an interactive report.", ("--html",), "FILE.html")
    ] = None,
    plot: Annotated[
        Path | None, Option("Draw the tree to a .png, .svg or .pdf.", ("--plot",), "FILE")
    ] = None,
    depth: Annotated[
        int, Option("Maximum depth of the tree.", ("--depth",), "N", least=1, most=MAX_DEPTH)
    ] = DEPTH,
    branches: Annotated[
        int,
        Option("Maximum number of branches of a node.", ("--branches",), "N", least=2, most=254),
    ] = BRANCHES,
    pairs: Annotated[
        str,
        Option(
            "Pairs of features that a node may split on: 0 (none), auto, all, or a number.",
            ("--pairs",),
            "WHICH",
        ),
    ] = "0",
    task: Annotated[Task, Option("What to predict.", ("--task",))] = Task.AUTO,
    categorical: Annotated[
        str | None,
        Option("Columns of numbers to treat as categories.", ("--categorical",), "NAME,…"),
    ] = None,
    ignore: Annotated[str | None, Option("Columns to leave out.", ("--ignore",), "NAME,…")] = None,
    keep: Annotated[
        str | None,
        Option(
            "Columns to use even if they look like row names or row numbers.",
            ("--keep",),
            "NAME,…",
        ),
    ] = None,
    test_size: Annotated[
        float,
        Option(
            "Share of the rows to hold out for the test; 0 for none.",
            ("--test-size",),
            "SHARE",
            least=0,
            most=0.9,
        ),
    ] = 0.2,
    split_by: Annotated[
        str | None,
        Option(
            "Test on the latest rows (time=NAME), on whole groups (group=NAME), or on a share of "
            "each value (stratum=NAME).",
            ("--split",),
            "HOW=NAME",
        ),
    ] = None,
    seed: Annotated[
        int, Option("Seed that picks the test rows.", ("--seed",), "N", least=0, most=MAX_SEED)
    ] = 0,
    refit_all: Annotated[
        bool, Option("After the test, fit the model again to all rows.", ("--refit-all",))
    ] = False,
    param: Annotated[
        list[str] | None,
        Option(
            "Any other parameter of the estimator; may be repeated.", ("--param",), "NAME=VALUE"
        ),
    ] = None,
    memory: Annotated[
        str,
        Option(
            "Folders: memory for the rows' bins; more than that goes to a temporary file.",
            ("--memory",),
            "SIZE",
        ),
    ] = "1GB",
    encoding: Encoding = "utf-8",
    separator: Separator = None,
) -> None:
    """Fit a tree to data, and compare it with CART on held-out rows.

    Text columns become categories. Empty cells, NA, NaN, null, None, "?", "-" and "." count as
    missing. Dates are best written as 2024-12-31. Row numbers, and text whose values are all
    different, are left out.

    A folder of Parquet files, or a quoted pattern, may hold more rows than fit into memory. The
    tree learns from all of them. There is no comparison with CART then, and a sample of the rows
    shows what the columns hold.

    For example:
      shapetree fit iris.csv --target species -o model.json
      shapetree fit houses.csv -t price --depth 5 --html report.html
      shapetree fit visits.parquet -t churn --pairs auto --ignore id,name
      shapetree fit visits.csv -t churn --split group=patient --ignore patient
      shapetree fit data.csv -t y --test-size 0 --param search__criterion=gini
      shapetree fit folder/ -t churn --memory 4GB -o model.json
    """
    if output == STANDARD:
        raise Misuse("-o - would mix the model with what fit says; name a file")
    outputs = Outputs(output, html, plot)
    check_picture(plot)
    check_outputs([output, html, plot], [data])
    parameters = _parameters(depth, branches, pairs, seed, param)
    choices = Choices(target, task, names_in(categorical), names_in(ignore), names_in(keep))
    if is_in_parts(data):
        if split_by is not None:
            raise Misuse("--split needs a single file; rows of a folder are held out at random")
        budget = _memory(memory)
        fit_parts(voice, data, choices, parameters, outputs, test_size, seed, refit_all, budget)
        return
    with voice.progress(f"Reading {data.name}"):
        table = read_file(data, encoding, separator)
        columns = read_columns(table)
    voice.say(f"{data}: {table.n_rows:,} rows, {len(table.columns):,} columns")
    voice.say()
    lesson = make_lesson(table, columns, choices, voice)
    del table, columns  # the texts of the file, which take as much memory as all else
    give_memory_back()
    split = split_rows(lesson, test_size, seed, split_by)
    estimator = _estimator(lesson, parameters)
    tree, seconds = _fitted(estimator, lesson, split.train, voice)
    with voice.progress("Comparing with CART"):
        scores = compare(lesson, split, tree, seconds, seed)
    show_scores(scores, len(split.test) if split.is_apart else None, voice)
    fitted_on = f"the {len(split.train):,} training rows"
    if refit_all and split.is_apart:
        tree, _ = _fitted(estimator, lesson, np.arange(len(lesson.y)), voice)
        fitted_on = f"all {len(lesson.y):,} rows"
    _show_tree(tree, fitted_on, voice)
    written = _write(tree, outputs, f"{target} in {data.name}", voice)
    _tell_what_was_written(written, fitted_on, voice)
    rows = {
        "all": len(lesson.y),
        "train": len(split.train),
        "test": len(split.test) if split.is_apart else 0,
        "stratified": split.is_stratified,
    }
    voice.result(_record(data, lesson, rows, scores, tree, fitted_on, written))


def fit_parts(
    voice: Voice,
    data: Path,
    choices: Choices,
    parameters: dict[str, Any],
    outputs: Outputs,
    test_size: float,
    seed: int,
    refit_all: bool,
    memory: int,
) -> None:
    """Fit a tree to the rows of many files."""
    with voice.progress(f"Reading {data.name}"):
        batches = open_parts(data)
        sample = sample_parts(data, batches)
    voice.say(f"{data}: {sample.n_rows:,} rows, {len(batches.columns):,} columns")
    if not sample.is_all:
        voice.say(f"Columns are described by a sample of {sample.table.n_rows:,} rows")
    voice.say()
    lesson = make_lesson(sample.table, sample.columns, choices, voice)
    used = [c.name for c in lesson.columns if c.reason is None]
    every = open_parts(data, choices.target, used, memory)
    coded = [c.name for c in lesson.columns if c.name in choices.categorical]
    if coded:
        kinds = (Kind.CATEGORY, Kind.BOOLEAN)
        parameters = parameters | {
            "categorical_features": [
                c.name for c in lesson.columns if c.reason is None and c.kind in kinds
            ]
        }
    estimator = _estimator(lesson, parameters)
    train, test = every.split(test_size, seed) if test_size > 0 else (every, every)
    tree, seconds = _fitted_to_parts(estimator, train, voice)
    fitted_on = f"the {train.n_rows:,} training rows" if test_size > 0 else "all rows"
    with voice.progress("Testing the tree"):
        scores = tree.evaluate(test)
    if test_size == 0:
        tree._fitted = replace(tree._fitted, held_out=None)
    score = Score("shape tree", scores, tree.get_n_leaves(), tree.get_depth(), seconds)
    show_scores([score], test.n_rows if test_size > 0 else None, voice)
    if refit_all and test_size > 0:
        tree, _ = _fitted_to_parts(estimator, every, voice)
        fitted_on = f"all {every.n_rows:,} rows"
    _show_tree(tree, fitted_on, voice)
    written = _write(tree, outputs, f"{choices.target} in {data.name}", voice)
    _tell_what_was_written(written, fitted_on, voice)
    rows = {
        "all": every.n_rows,
        "train": train.n_rows,
        "test": test.n_rows if test_size > 0 else 0,
        "stratified": False,
    }
    voice.result(_record(data, lesson, rows, [score], tree, fitted_on, written))


def _fitted_to_parts(estimator: Tree, batches: Batches, voice: Voice) -> tuple[Tree, float]:
    """A tree fitted to the rows of many files, and how long that took."""
    began = perf_counter()
    tree = clone(estimator).set_params(verbose=int(voice.shows_progress)).fit(batches)
    return tree.set_params(verbose=estimator.verbose), perf_counter() - began


def _memory(text: str) -> int:
    """Bytes of memory for the rows' bins."""
    try:
        return bytes_of(text)
    except ValueError as error:
        raise Misuse(f"--{error}") from error


def _parameters(
    depth: int, branches: int, pairs: str, seed: int, param: list[str] | None
) -> dict[str, Any]:
    is_number = pairs.isascii() and pairs.isdigit() and len(pairs) < 10
    if not (pairs in ("auto", "all") or is_number):
        raise Misuse(f"--pairs must be auto, all or a number, got {pairs!r}")
    given = {name: value_in(text) for name, text in settings_in(param, "--param").items()}
    known = ShapeTreeClassifier._written_names() | ShapeTreeRegressor._written_names()
    for name in given:
        if name not in known:
            raise Misuse(f"--param {name}: a shape tree has no such parameter")
    return {
        "max_depth": depth,
        "max_branches": branches,
        "pairs": int(pairs) if is_number else pairs,
        "random_state": seed,
        **given,
    }


def _estimator(lesson: Lesson, parameters: dict[str, Any]) -> Tree:
    kind = ShapeTreeClassifier if lesson.is_classification else ShapeTreeRegressor
    strange = sorted(set(parameters) - kind._written_names())
    if strange:
        raise Misuse(f"--param: a {kind.__name__} has no parameter {strange[0]}")
    estimator = kind().set_params(**parameters)
    try:
        estimator._validate_params()
    except ValueError as error:
        raise Misuse(message_of(error)) from error
    return estimator


def _fitted(estimator: Tree, lesson: Lesson, rows: np.ndarray, voice: Voice) -> tuple[Tree, float]:
    """A tree fitted on some rows, and how long that took."""
    with voice.progress(f"Fitting a tree to {len(rows):,} rows"):
        X, y = lesson.X.iloc[rows], lesson.y[rows]
        began = perf_counter()
        tree = clone(estimator).fit(X, y)
        seconds = perf_counter() - began
    return tree.with_names(target=lesson.target.name), seconds


def _show_tree(tree: Tree, fitted_on: str, voice: Voice) -> None:
    """Print as many levels of the tree as are short enough to read."""
    voice.heading(f"The tree, fitted on {fitted_on}")
    texts = (export_text(tree, max_depth=depth) for depth in range(tree.get_depth(), 0, -1))
    short = next((text for text in texts if text.count("\n") < MOST_LINES), None)
    voice.lines(short or export_text(tree, max_depth=1))


def _write(tree: Tree, outputs: Outputs, title: str, voice: Voice) -> list[str]:
    """Make all files first, then write them, so that Ctrl-C leaves no partial file."""
    contents: dict[Path, str | bytes] = {}
    if outputs.model is not None:
        contents[outputs.model] = tree.to_json()
    if outputs.html is not None:
        contents[outputs.html] = export_html(tree, title=title)
    if outputs.plot is not None:
        with voice.progress("Drawing the tree"):
            contents[outputs.plot] = picture_of_tree(tree, outputs.plot, title=title)
    return write_outputs(contents)


def _tell_what_was_written(written: list[str], fitted_on: str, voice: Voice) -> None:
    voice.say()
    if written:
        voice.say(f"Wrote {listing(written)}: the tree of {fitted_on}")
    else:
        voice.say("Nothing was written; -o model.json keeps the tree")


def _record(
    data: Path,
    lesson: Lesson,
    rows: dict[str, Any],
    scores: list[Score],
    tree: Tree,
    fitted_on: str,
    written: list[str],
) -> dict[str, Any]:
    return {
        "data": str(data),
        "task": lesson.task,
        "target": _column_record(lesson.target),
        "columns": [_column_record(column) for column in lesson.columns],
        "rows": rows,
        "scored_on": "test rows" if rows["test"] else "training rows",
        "scores": [score.record() for score in scores],
        "fitted_on": fitted_on,
        "leaves": tree.get_n_leaves(),
        "depth": tree.get_depth(),
        "why_single_leaf": tree.why_single_leaf_,
        "text": export_text(tree),
        "parameters": tree._written_parameters(),
        "written": written,
    }


def _column_record(column: Column) -> dict[str, Any]:
    record = {name: value for name, value in vars(column).items() if name != "values"}
    return {**record, "is_used": column.reason is None, "type": type_words(column)}
