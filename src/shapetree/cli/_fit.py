"""`shapetree fit`: a tree or a forest from a file or a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import typer
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    export_html,
    export_text,
)
from shapetree.cli._arguments import (
    STANDARD,
    AsJson,
    DataOrFolder,
    Debug,
    Encoding,
    Quiet,
    Separator,
    check_outputs,
    names_in,
    settings_in,
    value_in,
    write_outputs,
)
from shapetree.cli._column_types import Column, Kind, read_columns
from shapetree.cli._console import Console, Misuse, Problem, message_of
from shapetree.cli._models import (
    Model,
    ModelScore,
    evaluate_model,
    forest_words,
    is_in_parts,
    open_parts,
    score_of_model,
    show_scores,
    size_of,
)
from shapetree.cli._reading import FileTable, give_memory_back, read_file
from shapetree.cli._show import check_picture, picture_of_tree
from shapetree.cli._training_data import (
    Choices,
    Split,
    Task,
    TrainingData,
    choose_training_data,
    split_rows,
    type_words,
)
from shapetree.data._batches import Batches
from shapetree.data._missing import is_known
from shapetree.data._sampling import sampled
from shapetree.data._store import bytes_of
from shapetree.data._table import encode_table, read_table
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.tree._evaluation import scores_of
from shapetree.tree._words import listing

MOST_LINES = 30
MAX_DEPTH, MAX_SEED = 2**31 - 1, 2**32 - 1
# Rows of a folder that types of columns are guessed from.
SAMPLE_ROWS = 20_000
# Of the tree that a forest without a limit is compared with.
CART_DEPTH = 4
# Estimators for classes and for numbers: trees, and forests.
KINDS = {
    False: (ShapeTreeClassifier, ShapeTreeRegressor),
    True: (ShapeForestClassifier, ShapeForestRegressor),
}


@dataclass(frozen=True)
class Source:
    """What a tree or forest learns, and from which rows."""

    data: TrainingData  # all rows of a file, or a sample of those of a folder
    split: Split | None  # rows of a file to train on and to test on
    batches: Mapping[str, Batches]  # of a folder: "all", "train" and "test" rows

    def rows(self, which: str) -> tuple[Any, np.ndarray | None, int]:
        """All rows ("all"), or those to train on or to test on ("train", "test").

        A table, its targets and the number of rows; or batches, which bring their targets.
        """
        if self.split is None:
            batches = self.batches[which]
            return batches, None, batches.n_rows or 0
        X, y = self.data.X, self.data.y
        if which != "all" and self.split.is_apart:
            numbers = getattr(self.split, which)
            X, y = X.iloc[numbers], y[numbers]
        return X, y, len(y)


def fit(
    data: DataOrFolder,
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the model to this file.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write an interactive report.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the tree to a .png, .svg or .pdf.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MAX_DEPTH,
            help="Maximum depth of the tree; by default 4, and no limit for the trees of a forest.",
        ),
    ] = None,
    branches: Annotated[
        int | None,
        typer.Option(
            min=2,
            max=254,
            help="Maximum number of branches of a node; by default 3, in a forest 2.",
        ),
    ] = None,
    pairs: Annotated[
        str,
        typer.Option(
            help="Pairs of features that a node may split on: 0 (none), auto, all, or a number."
        ),
    ] = "0",
    forest: Annotated[
        bool,
        typer.Option(
            "--forest", help="Fit a forest: it predicts better, but cannot be shown as one tree."
        ),
    ] = False,
    n_estimators: Annotated[
        int | None, typer.Option(min=1, help="Number of trees of a forest; by default 100.")
    ] = None,
    task: Annotated[Task, typer.Option(help="What to predict.")] = Task.AUTO,
    categorical: Annotated[
        str | None,
        typer.Option(metavar="NAME,…", help="Columns of numbers to treat as categories."),
    ] = None,
    ignore: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Columns to leave out.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…", help="Columns to use even if they look like row names or row numbers."
        ),
    ] = None,
    test_size: Annotated[
        float,
        typer.Option(
            min=0, max=0.9, help="Share of the rows to hold out for the test; 0 for none."
        ),
    ] = 0.2,
    split_by: Annotated[
        str | None,
        typer.Option(
            "--split",
            metavar="HOW=NAME",
            help="Test on the latest rows (time=NAME), on whole groups (group=NAME), or on a share "
            "of each value (stratum=NAME).",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=MAX_SEED, help="Seed that picks the test rows.")
    ] = 0,
    refit_all: Annotated[
        bool, typer.Option("--refit-all", help="After the test, fit the model again to all rows.")
    ] = False,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Any other parameter of the estimator; may be repeated."
        ),
    ] = None,
    memory: Annotated[
        str,
        typer.Option(
            help="Folders: memory for the rows' bins; more than that goes to a temporary file."
        ),
    ] = "1GB",
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
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
      shapetree fit houses.csv -t price --forest -o forest.json
      shapetree fit folder/ -t churn --memory 4GB -o model.json
    """
    console = Console(as_json, quiet)
    if output == STANDARD:
        raise Misuse("-o - would mix the model with what fit says; name a file")
    if forest and (plot or (html and is_in_parts(data))):
        option = "--plot" if plot else "--html for a folder"
        raise Misuse(f"{option} shows a single tree; leave out --forest")
    if n_estimators is not None and not forest:
        raise Misuse("--n-estimators is the number of trees of a forest; add --forest")
    check_picture(plot)
    check_outputs([output, html, plot], [data])
    given = {"max_depth": depth, "max_branches": branches, "n_estimators": n_estimators}
    parameters: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    parameters |= {"pairs": _pairs(pairs), "random_state": seed}
    parameters |= {name: value_in(text) for name, text in settings_in(param, "--param").items()}
    _check_parameters(parameters, forest)
    choices = Choices(target, task, names_in(categorical), names_in(ignore), names_in(keep))
    if is_in_parts(data):
        if split_by is not None:
            raise Misuse("--split needs a single file; rows of a folder are held out at random")
        source = _folder_source(data, choices, test_size, seed, _bytes(memory), console)
        if choices.categorical:
            parameters["categorical_features"] = [
                column.name
                for column in source.data.columns
                if column.reason is None and column.kind in (Kind.CATEGORY, Kind.BOOLEAN)
            ]
    else:
        with console.progress(f"Reading {data.name}"):
            table = read_file(data, encoding, separator, choices.categorical)
        console.say(f"{data}: {table.rows.num_rows:,} rows, {table.rows.num_columns:,} columns")
        console.say()
        chosen = choose_training_data(table, read_columns(table), choices, console)
        del table  # which takes as much memory as all else
        give_memory_back()
        split = split_rows(chosen, test_size, seed, split_by)
        source = Source(chosen.without_values(), split, {})
        del chosen
    estimator = _estimator(source.data, parameters, forest)
    model, n_train, seconds = _fitted(estimator, source, "train", target, console)
    with console.progress("Testing"):
        X, y, n_test = source.rows("test")
        before = model._fitted
        scores = [score_of_model(model, evaluate_model(model, X, y), seconds)]
        if test_size == 0:
            n_test, model._fitted = 0, before  # which keeps no scores on its own rows
        if source.split is not None:
            limit = model.max_depth or CART_DEPTH if forest else model.max_depth
            scores += _scores_of_others(source.data, source.split, limit, seed)
    where = "On the training rows, which says little about new ones"
    show_scores(scores, f"On {n_test:,} rows that no model has seen" if n_test else where, console)
    fitted_on = f"the {n_train:,} training rows"
    if refit_all and n_test:
        model, n_all, _ = _fitted(estimator, source, "all", target, console)
        fitted_on = f"all {n_all:,} rows"
    _show_model(model, fitted_on, console)
    title = f"{target} in {data.name}"
    contents: dict[Path, str | bytes] = {}
    # All files are made before the first is written, so that Ctrl-C leaves no partial file.
    if output is not None:
        contents[output] = model.to_json()
    if html is not None:
        # The trees of a forest do not keep how rows are spread over them.
        shown = {"X": source.data.X, "y": source.data.y} if forest else {}
        contents[html] = export_html(model, title=title, **shown)
    if plot is not None:
        with console.progress("Drawing the tree"):
            contents[plot] = picture_of_tree(model, plot, title=title)
    written = write_outputs(contents)
    console.say()
    what = "forest" if forest else "tree"
    if written:
        console.say(f"Wrote {listing(written)}: the {what} of {fitted_on}")
    else:
        console.say(f"Nothing was written; -o model.json keeps the {what}")
    n_rows = {
        "all": source.rows("all")[2],
        "train": n_train,
        "test": n_test,
        "stratified": source.split is not None and source.split.is_stratified,
    }
    n_leaves, its_depth = size_of(model)
    console.result(
        {
            "data": str(data),
            "task": source.data.task,
            "target": _column_record(source.data.target),
            "columns": [_column_record(column) for column in source.data.columns],
            "rows": n_rows,
            "scored_on": "test rows" if n_test else "training rows",
            "scores": [vars(score) for score in scores],
            "fitted_on": fitted_on,
            "trees": len(model.estimators_) if isinstance(model, BaseShapeForest) else 1,
            "leaves": n_leaves,
            "depth": its_depth,
            "why_single_leaf": None
            if isinstance(model, BaseShapeForest)
            else model.why_single_leaf_,
            "text": None if isinstance(model, BaseShapeForest) else export_text(model),
            "parameters": model._written_parameters(),
            "written": written,
        }
    )


# --- parameters ---


def _pairs(text: str) -> int | str:
    if text in ("auto", "all"):
        return text
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise Misuse(f"--pairs must be auto, all or a number, got {text!r}")


def _bytes(memory: str) -> int:
    """Bytes of memory for the rows' bins."""
    try:
        return bytes_of(memory)
    except ValueError as error:
        raise Misuse(f"--{error}") from error


def _check_parameters(given: Iterable[str], forest: bool) -> None:
    """Refuse names of parameters that do not exist, before the data is read."""
    kinds = KINDS[forest]
    for name in given:
        if not any(name in kind._written_names() for kind in kinds):
            what = "forest" if forest else "tree"
            raise Misuse(f"--param {name}: a shape {what} has no such parameter")


def _estimator(data: TrainingData, parameters: dict[str, Any], forest: bool) -> Model:
    kind = KINDS[forest][0 if data.is_classification else 1]
    strange = sorted(set(parameters) - set(kind._written_names()))
    if strange:
        raise Misuse(f"--param: a {kind.__name__} has no parameter {strange[0]}")
    estimator = kind().set_params(**parameters)
    try:
        estimator._validate_params()
    except ValueError as error:
        raise Misuse(message_of(error)) from error
    return estimator


# --- rows ---


def _folder_source(
    path: Path, choices: Choices, test_size: float, seed: int, memory: int, console: Console
) -> Source:
    """All rows of a folder, with the columns that a sample of them chooses."""
    with console.progress(f"Reading {path.name}"):
        batches = open_parts(path)
        table, columns, n_rows = _sample(path, batches)
    console.say(f"{path}: {n_rows:,} rows, {len(batches.columns):,} columns")
    if table.rows.num_rows < n_rows:
        console.say(f"Columns are described by a sample of {table.rows.num_rows:,} rows")
    console.say()
    data = choose_training_data(table, columns, choices, console)
    used = [column.name for column in data.columns if column.reason is None]
    every = open_parts(path, choices.target, used, memory)
    train, test = every.split(test_size, seed) if test_size > 0 else (every, every)
    return Source(data, None, {"all": every, "train": train, "test": test})


def _sample(path: Path, batches: Batches) -> tuple[FileTable, list[Column], int]:
    """Some rows of many, what their columns hold, and the number of all rows."""
    assert batches.n_rows is not None
    tables: list[pa.Table] = []
    numbers: list[np.ndarray] = []
    first_row = 0
    for _, table in batches.tables(batches.columns):
        rows = sampled(first_row, len(table), batches.n_rows, SAMPLE_ROWS)
        tables.append(table.take(rows - first_row))
        numbers.append(rows)
        first_row += len(table)
    if first_row == 0:
        raise Problem(f"{path} has columns, but no rows")
    some = FileTable(path, pa.concat_tables(tables, promote_options="permissive"), None)
    places = np.concatenate(numbers)
    return some, [_checked(column, places) for column in read_columns(some)], first_row


def _checked(column: Column, rows: np.ndarray) -> Column:
    """The same column, but for one that counts the rows, which a sample hides."""
    if column.reason is not None or column.kind is not Kind.WHOLE or column.n_missing:
        return column
    assert column.values is not None
    steps = column.values.to_numpy(dtype=np.int64) - rows
    return replace(column, reason="counts the rows") if (steps == steps[0]).all() else column


# --- the model ---


def _fitted(
    estimator: Model, source: Source, which: str, target: str, console: Console
) -> tuple[Model, int, float]:
    """A tree or forest fitted to some rows of a source, their number, and how long that took."""
    model, (X, y, n_rows) = clone(estimator), source.rows(which)
    is_forest = isinstance(model, BaseShapeForest)
    what = f"a forest of {model.n_estimators:,} trees" if is_forest else "a tree"
    began = perf_counter()
    if y is None:  # which shows its own progress
        model.set_params(verbose=int(console.shows_progress)).fit(X)
        model.set_params(verbose=estimator.verbose)
    else:
        with console.progress(f"Fitting {what} to {n_rows:,} rows"):
            model.fit(X, y)
    return model.with_names(target=target), n_rows, perf_counter() - began


def _show_model(model: Model, fitted_on: str, console: Console) -> None:
    """Print as many levels of a tree as are short enough to read, or the size of a forest."""
    if isinstance(model, BaseShapeForest):
        console.heading(f"The forest, fitted on {fitted_on}")
        console.say(f"{forest_words(model)}; `shapetree inspect` shows what it looks at")
        return
    console.heading(f"The tree, fitted on {fitted_on}")
    texts = (export_text(model, max_depth=depth) for depth in range(model.get_depth(), 0, -1))
    short = next((text for text in texts if text.count("\n") < MOST_LINES), None)
    console.lines(short or export_text(model, max_depth=1))


def _column_record(column: Column) -> dict[str, Any]:
    record = {name: value for name, value in vars(column).items() if name != "values"}
    return {**record, "is_used": column.reason is None, "type": type_words(column)}


# --- models to compare it with ---


def _scores_of_others(
    data: TrainingData, split: Split, depth: int | None, seed: int
) -> list[ModelScore]:
    """Scores of CART, and of predicting the same for all rows."""
    encoded = _for_cart(data.X, split.train)
    cart, same = (
        (DecisionTreeClassifier, DummyClassifier(strategy="prior"))
        if data.is_classification
        else (DecisionTreeRegressor, DummyRegressor())
    )
    names = "CART", "most common class" if data.is_classification else "the mean"
    found = []
    for name, model in zip(names, (cart(max_depth=depth, random_state=seed), same), strict=True):
        began = perf_counter()
        model.fit(encoded[split.train], data.y[split.train])
        seconds = perf_counter() - began
        said = model.predict(encoded[split.test])
        scores = scores_of(data.y[split.test], said, data.is_classification)
        size = (1, 0) if model is same else size_of(model)
        found.append(ModelScore(name, scores, *size, seconds))
    return found


def _for_cart(X: pd.DataFrame, train: np.ndarray) -> np.ndarray:
    """The columns that a tree reads as CART needs them: single precision, NaN where missing."""
    features = read_table(X.iloc[train]).features
    encoded = np.empty(X.shape, dtype=np.float32)
    for j, column in enumerate(encode_table(X, features).columns):
        assert column is not None
        if features[j].is_date:
            column = column - np.nanmin(column[train])  # so that single precision tells them apart
        encoded[:, j] = np.where(is_known(column), column, np.nan)
    # CART accepts missing values, but no infinite ones.
    return np.clip(encoded, np.finfo(np.float32).min, np.finfo(np.float32).max, out=encoded)
