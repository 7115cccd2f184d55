"""Models: read from files, scored, and given the rows of a file as their own columns."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from rich.table import Column as Heading

from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    from_json,
    from_parquet,
)
from shapetree.cli._arguments import STANDARD
from shapetree.cli._column_types import as_dates, in_place_of, numbers_of, texts_of, truths_of
from shapetree.cli._console import Console, Problem, listed, message_of
from shapetree.cli._reading import MISSING, TEXT, FileTable, codes_of
from shapetree.data._batches import Batches
from shapetree.data._columns import Level, level_codes
from shapetree.data._stored import read_labels
from shapetree.data._table import FeatureInfo
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.tree._evaluation import scores_of
from shapetree.tree._fitted import TreeOrForest

Tree: TypeAlias = ShapeTreeClassifier | ShapeTreeRegressor
Forest: TypeAlias = ShapeForestClassifier | ShapeForestRegressor
Model: TypeAlias = Tree | Forest
WILD = "*?["
TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "r2": "R²",
    "mean_absolute_error": "mean abs. error",
}


def read_model(path: Path) -> Model:
    """The fitted estimator in a model file."""
    is_stream = path == STANDARD
    if not is_stream and not path.exists():
        raise Problem(f"cannot read a model from {path}: there is no such file")
    try:
        return from_json(sys.stdin.read() if is_stream else path)
    except ValueError as error:
        name = "standard input" if is_stream else path
        raise Problem(f"{name}: {message_of(error)}") from error


def read_tree(path: Path, command: str) -> Tree:
    """The fitted tree in a model file; an error if it is a forest."""
    model = read_model(path)
    if isinstance(model, BaseShapeForest):
        raise Problem(
            f"{path} is a forest of {len(model._fitted.trees):,} trees; {command} needs a single "
            "tree, so fit one to the same data, without --forest"
        )
    return model


def size_of(model: Any) -> tuple[int, int]:
    """The leaves of a tree or of all trees of a forest, and the greatest depth."""
    trees = model.estimators_ if isinstance(model, BaseShapeForest) else [model]
    return sum(int(tree.get_n_leaves()) for tree in trees), max(
        int(tree.get_depth()) for tree in trees
    )


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things.

    >>> counted(1, "leaf", "leaves"), counted(2000, "leaf", "leaves")
    ('1 leaf', '2,000 leaves')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def forest_words(forest: BaseShapeForest) -> str:
    """The size of a forest in words."""
    n_leaves, depth = size_of(forest)
    n_trees = len(forest.estimators_)
    leaves = f"{n_leaves / n_trees:,.0f} leaves on average"
    return f"{counted(n_trees, 'tree')} with {leaves}, depth {depth}"


# --- scores ---


def evaluate_model(model: Model, X: Any, y: np.ndarray | None) -> dict[str, float]:
    """Scores of a model on a table and its targets, or on batches; they are kept with a tree."""
    if not isinstance(model, BaseShapeForest):
        return model.evaluate(X, y)
    has_classes = model._fitted.classes is not None
    if y is None:
        X = X.watched()
        y = read_labels(X, has_classes)[0]
    return scores_of(y, model.predict(X), has_classes)


@dataclass(frozen=True)
class ModelScore:
    """How good a model is, and how large."""

    model: str
    scores: dict[str, float]
    n_leaves: int
    depth: int
    seconds: float | None


def score_of_model(
    model: Model, scores: dict[str, float], seconds: float | None = None
) -> ModelScore:
    """The row of a tree or forest in the table of scores."""
    name = "shape forest" if isinstance(model, BaseShapeForest) else "shape tree"
    return ModelScore(name, scores, *size_of(model), seconds)


def show_scores(scores: list[ModelScore], where: str, console: Console) -> None:
    """Print a table of scores, with the rows that they are of in its heading."""
    console.heading(where)
    fit = "" if scores[0].seconds is None else "fit"
    titles = [*(TITLES[name] for name in scores[0].scores), "leaves", "depth", fit]
    headings = [Heading(title, justify="right", no_wrap=True) for title in titles]
    # Decimals that show four digits of an error.
    error = scores[0].scores.get("mean_absolute_error", 1.0)
    decimals = 0 if error <= 0 else min(max(3 - math.floor(math.log10(error)), 0), 12)
    console.table([Heading(""), *headings], [_cells(score, decimals) for score in scores])


def _cells(score: ModelScore, decimals: int) -> list[str]:
    cells = [score.model]
    for name, value in score.scores.items():
        if name == "mean_absolute_error":
            cells.append(f"{value:,.{decimals}f}")
        else:
            cells.append(f"{value:z.3f}" if name == "r2" else f"{100 * value:.1f} %")
    return [*cells, f"{score.n_leaves:,}", str(score.depth), _duration(score.seconds)]


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1000 * seconds:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


# --- files ---


def is_in_parts(path: Path) -> bool:
    """Whether a path stands for several files."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in WILD))


def open_parts(
    path: Path,
    target: str | None = None,
    columns: list[str] | None = None,
    memory: int | str = "1GB",
) -> Batches:
    """The rows of a folder's files, or of those that a pattern names."""
    try:
        return from_parquet(path, target=target, columns=columns, memory=memory)
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read {path}: {message_of(error)}") from error


def text_columns(fitted: TreeOrForest) -> list[str]:
    """Columns that a model reads as text: those of categories and dates."""
    return [f.name for f in used_features(fitted) if f.is_date or f.categories is not None]


def used_features(fitted: TreeOrForest) -> list[FeatureInfo]:
    """The features that a model looks at."""
    return [fitted.features[j] for j in fitted.used_features]


def rows_for(fitted: TreeOrForest, table: FileTable, console: Console) -> pd.DataFrame:
    """A file's rows, with the model's columns in the model's order.

    Columns that the model never looks at may be absent. A model without names knows columns by
    their place.
    """
    features, used = fitted.features, used_features(fitted)
    known = set(table.rows.column_names)
    lacking = [feature.name for feature in used if feature.name not in known]
    if lacking and not fitted.has_names and len(known) == len(features):
        rows = table.rows.rename_columns(list(fitted.feature_names))
        table, lacking = replace(table, rows=rows), []
    if lacking:
        what = "a column" if len(lacking) == 1 else "columns"
        raise Problem(f"{table.path} lacks {what} that the model needs: {listed(lacking)}")
    read = {feature.name: _read_column(feature, table, console) for feature in used}
    absent = pd.Series(np.full(table.rows.num_rows, np.nan))
    return pd.DataFrame({feature.name: read.get(feature.name, absent) for feature in features})


def targets_for(fitted: TreeOrForest, name: str, table: FileTable) -> tuple[np.ndarray, np.ndarray]:
    """A file's targets as the labels or numbers of the model, and which rows have one."""
    if fitted.classes is None:
        numbers = _numbers(name, table).to_numpy()
        return numbers, ~np.isnan(numbers)
    labels = fitted.classes[0].tolist()
    found, codes, new = _levels(table.rows[name], labels)
    if new:
        raise Problem(
            f"{table.path}: column {name} has classes that the model does not know: {listed(new)}; "
            f"it knows {listed(labels)}"
        )
    return np.array([*found, labels[0]], fitted.classes[0].dtype)[codes], codes >= 0


def _read_column(feature: FeatureInfo, table: FileTable, console: Console) -> pd.Series:
    if feature.is_date:
        return _dates(feature, texts_of(table.rows[feature.name]), table)
    if feature.categories is None:
        return _numbers(feature.name, table)
    levels, codes, new = _levels(table.rows[feature.name], feature.categories)
    if new:
        values = "a value" if len(new) == 1 else f"{len(new):,} values"
        console.note(
            f"{feature.name} has {values} that the model has not seen and treats as missing: "
            f"{listed(new)}"
        )
    code_of = level_codes(feature.categories) | {None: -1}
    codes = np.array([*map(code_of.__getitem__, levels), -1])[codes]
    return pd.Series(pd.Categorical.from_codes(codes, list(feature.categories)))


def _numbers(name: str, table: FileTable) -> pd.Series:
    column = table.rows[name]
    if column.type not in (TEXT, pa.string()):
        try:
            return pd.Series(column.cast(pa.float64()).to_numpy())
        except pa.ArrowException:
            pass  # and the first value that is no number is named below
    texts = texts_of(column)
    distinct = texts.dictionary
    is_truth, truths = truths_of(distinct)
    plain = pc.if_else(is_truth, pc.if_else(truths, "1", "0"), distinct)
    numbers = numbers_of(plain, table.separator)
    if numbers.null_count:
        code = int(np.argmin(numbers.is_valid()))
        row = int(np.argmax(codes_of(texts) == code)) + 1
        raise Problem(
            f"{table.path}: column {name} must hold numbers, but row {row} has "
            f"{distinct[code].as_py()!r}"
        )
    return pd.Series(in_place_of(texts, numbers).to_numpy())


def _dates(feature: FeatureInfo, texts: pa.DictionaryArray, table: FileTable) -> pd.Series:
    dates, is_zoned = as_dates(texts.dictionary), feature.date == "utc"
    if len(texts.dictionary) == 0:
        dates = pa.nulls(0, pa.timestamp("us", "UTC" if is_zoned else None))
    if dates is None or (dates.type.tz is not None) != is_zoned:
        zone = "with a time zone (2024-12-31 23:59Z)" if is_zoned else "(2024-12-31)"
        raise Problem(
            f"{table.path}: column {feature.name} must hold dates {zone}, as in training, but has "
            f"{listed(texts.dictionary.to_pylist())}"
        )
    return in_place_of(texts, dates).to_pandas()


def _levels(
    column: pa.ChunkedArray, known: Sequence[Level]
) -> tuple[list[Level | None], np.ndarray, list[str]]:
    """A column's distinct values as levels that are known, each row's place among them, and others.

    The others have the level None, and missing values the place -1.
    """
    stripped = {level.strip(): level for level in reversed(known) if isinstance(level, str)}
    truths = {text: level for level in known if isinstance(level, bool)
              for text in (str(level).lower(), str(int(level)))}  # fmt: skip
    numbers = {float(level): level for level in known if not isinstance(level, str | bool)}
    # A text that is a known level is not a missing value.
    texts = texts_of(column, MISSING - stripped.keys())

    def level_of(text: str) -> Level | None:
        if text in stripped:
            return stripped[text]
        if text.lower() in truths:
            return truths[text.lower()]
        return numbers.get(numbers_of(pa.array([text]), ",")[0].as_py()) if numbers else None

    distinct = texts.dictionary.to_pylist()
    levels = list(map(level_of, distinct))
    new = [text for text, level in zip(distinct, levels, strict=True) if level is None]
    return levels, codes_of(texts), new


def typed_row(fitted: TreeOrForest, settings: dict[str, str], given: FileTable | None) -> FileTable:
    """A row of the values typed in, on top of a row of a file if there is one."""
    known = fitted.feature_names
    strange = [name for name in settings if name not in known]
    if strange:
        raise Problem(f"the model has no feature {strange[0]}; it has {listed(known)}")
    row = dict.fromkeys(known, "")
    if given is not None:
        values = given.rows.slice(0, 1).to_pylist()[0]
        row = {name: "" if value is None else str(value) for name, value in values.items()}
    columns = {name: pa.array([text], pa.string()) for name, text in (row | settings).items()}
    separator = "," if given is None or given.separator is None else given.separator
    path = Path("the row") if given is None else given.path
    return FileTable(path, pa.table(columns), separator)


def outcome(prediction: tuple[Any, ...]) -> Any:
    """A prediction of one output by itself, of several as a list."""
    return prediction[0] if len(prediction) == 1 else list(prediction)
