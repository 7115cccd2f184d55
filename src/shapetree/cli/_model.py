"""A model file, and a file's rows as the model knows them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor, from_json
from shapetree.cli._columns import (
    MISSING,
    TRUTH,
    Texts,
    as_dates,
    numbers_of,
    plain_numbers,
    texts_of,
)
from shapetree.cli._problems import Problem, listed, message_of
from shapetree.cli._read import STANDARD, RawTable
from shapetree.cli._voice import Voice
from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.tree._fitted import FittedTree

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Tree: TypeAlias = ShapeTreeClassifier | ShapeTreeRegressor


def read_model(path: Path) -> Tree:
    """The fitted estimator in a model file."""
    if path == STANDARD:
        try:
            return from_json(sys.stdin.read())
        except ValueError as error:
            raise Problem(f"standard input: {message_of(error)}") from error
    if not path.exists():
        raise Problem(f"cannot read a model from {path}: there is no such file")
    try:
        return from_json(path)
    except ValueError as error:
        raise Problem(f"{path}: {message_of(error)}") from error


def used_features(fitted: FittedTree) -> list[FeatureInfo]:
    """The features that a tree looks at."""
    return [fitted.features[j] for j in fitted.tree.used_features]


def rows_for(fitted: FittedTree, table: RawTable, voice: Voice) -> pd.DataFrame:
    """A file's rows, with the model's columns in the model's order.

    Columns that the tree never looks at may be absent. A model without names knows columns by
    their place.
    """
    import pandas as pd

    features, used = fitted.features, used_features(fitted)
    lacking = [feature.name for feature in used if feature.name not in table.columns]
    if lacking and not fitted.has_names and len(table.columns) == len(features):
        columns = dict(zip(fitted.feature_names, table.columns.values(), strict=True))
        table, lacking = replace(table, columns=columns), []
    if lacking:
        what = "a column" if len(lacking) == 1 else "columns"
        raise Problem(f"{table.path} lacks {what} that the model needs: {listed(lacking)}")
    read = {feature.name: _read_column(feature, table, voice) for feature in used}
    absent = pd.Series(np.full(table.n_rows, np.nan))
    return pd.DataFrame({feature.name: read.get(feature.name, absent) for feature in features})


def targets_for(fitted: FittedTree, name: str, table: RawTable) -> tuple[np.ndarray, np.ndarray]:
    """A file's targets as the model knows them, and which rows have one."""
    if fitted.classes is None:
        numbers = _numbers(name, table.columns[name], table).to_numpy()
        return numbers, ~np.isnan(numbers)
    labels = fitted.classes[0].tolist()
    known = {label.strip() for label in labels if isinstance(label, str)}
    texts = texts_of(table.columns[name], MISSING - known)
    found = list(map(_level_reader(labels), texts.distinct))
    new = [text for text, label in zip(texts.distinct, found, strict=True) if label is None]
    if new:
        raise Problem(
            f"{table.path}: column {name} has classes that the model does not know: {listed(new)}; "
            f"it knows {listed(labels)}"
        )
    return texts.map(found, fitted.classes[0].dtype, labels[0]), ~texts.is_missing


def _read_column(feature: FeatureInfo, table: RawTable, voice: Voice) -> pd.Series:
    column = table.columns[feature.name]
    if feature.is_date:
        return _dates(feature, texts_of(column), table)
    if feature.categories is None:
        return _numbers(feature.name, column, table)
    # A text that the model knows as a category is not a missing value.
    known = {level.strip() for level in feature.categories if isinstance(level, str)}
    return _levels(feature, texts_of(column, MISSING - known), voice)


def _numbers(name: str, column: pa.ChunkedArray, table: RawTable) -> pd.Series:
    import pandas as pd

    plain = plain_numbers(column)
    if plain is not None:
        return pd.Series(plain)
    texts = texts_of(column)
    numbers = numbers_of([_truth_as_number(text) for text in texts.distinct], table.separator)
    if None in numbers:
        code = numbers.index(None)
        row = int(np.argmax(texts.codes == code)) + 1
        raise Problem(
            f"{table.path}: column {name} must hold numbers, but row {row} has "
            f"{texts.distinct[code]!r}"
        )
    return pd.Series(texts.map(numbers, np.float64, np.nan))


def _dates(feature: FeatureInfo, texts: Texts, table: RawTable) -> pd.Series:
    dates = as_dates(texts)
    is_zoned = dates is not None and dates.dt.tz is not None
    if dates is None or (texts.distinct and is_zoned != (feature.date == "utc")):
        zone = "with a time zone (2024-12-31 23:59Z)" if feature.date == "utc" else "(2024-12-31)"
        raise Problem(
            f"{table.path}: column {feature.name} must hold dates {zone}, as in training, but has "
            f"{listed(texts.distinct)}"
        )
    return dates


def _truth_as_number(text: str) -> str:
    return str(int(TRUTH[text.lower()])) if text.lower() in TRUTH else text


def _levels(feature: FeatureInfo, texts: Texts, voice: Voice) -> pd.Series:
    """Texts as the categories that the model knows; others count as missing."""
    import pandas as pd

    levels = list(map(_level_reader(feature.categories or ()), texts.distinct))
    new = [text for text, level in zip(texts.distinct, levels, strict=True) if level is None]
    if new:
        values = "a value" if len(new) == 1 else f"{len(new):,} values"
        voice.note(
            f"{feature.name} has {values} that the model has not seen and treats as missing: "
            f"{listed(new)}"
        )
    return pd.Series(texts.map(levels, object, None), dtype=object)


def _level_reader(categories: Iterable[Level]) -> Callable[[str], Level | None]:
    """A function that finds the category for a text; None if there is none."""
    texts: dict[str, Level] = {}
    truths: dict[str, Level] = {}
    numbers: dict[float | None, Level] = {}
    for level in categories:
        if isinstance(level, str):
            texts.setdefault(level.strip(), level)
        elif isinstance(level, bool):
            truths |= {str(level).lower(): level, str(int(level)): level}
        else:
            numbers[float(level)] = level

    def read(text: str) -> Level | None:
        if text in texts:
            return texts[text]
        if text.lower() in truths:
            return truths[text.lower()]
        return numbers.get(numbers_of([text], ",")[0]) if numbers else None

    return read


def typed_row(fitted: FittedTree, settings: dict[str, str], given: RawTable | None) -> RawTable:
    """A row of the values typed in, on top of a row of a file if there is one."""
    import pyarrow as pa

    known = fitted.feature_names
    strange = [name for name in settings if name not in known]
    if strange:
        raise Problem(f"the model has no feature {strange[0]}; it has {listed(known)}")
    columns = {name: [""] for name in known} if given is None else _first_row(given)
    columns |= {name: [text] for name, text in settings.items()}
    arrays = {
        name: pa.chunked_array([pa.array(texts, pa.string())]) for name, texts in columns.items()
    }
    separator = "," if given is None or given.separator is None else given.separator
    return RawTable(Path("the row") if given is None else given.path, arrays, 1, separator)


def _first_row(table: RawTable) -> dict[str, list[str]]:
    def texts() -> Iterator[tuple[str, list[str]]]:
        for name, column in table.columns.items():
            (value,) = column.slice(0, 1).to_pylist()
            yield name, ["" if value is None else str(value)]

    return dict(texts())


def outcome(prediction: tuple[Any, ...]) -> Any:
    """A prediction of one output by itself, of several as a list."""
    return prediction[0] if len(prediction) == 1 else list(prediction)
