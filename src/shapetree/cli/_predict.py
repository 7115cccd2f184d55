"""`shapetree predict`: predictions for the rows of a file."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from shapetree import ShapeTreeClassifier, predict_parquet
from shapetree._files import new_file
from shapetree._predictions import free_name
from shapetree.cli._model import read_model, rows_for, used_features
from shapetree.cli._options import DataOrParts, Encoding, Model, Option, Separator
from shapetree.cli._outputs import check_ending, check_inputs, check_outputs, none_if_standard
from shapetree.cli._parts import check_parquet, is_in_parts, open_parts, predictions_in
from shapetree.cli._problems import Misuse, Problem
from shapetree.cli._read import (
    GZIP_ENDING,
    RawTable,
    as_file,
    in_batches,
    read_local,
)
from shapetree.cli._voice import Voice, class_counts
from shapetree.data._sources import PARQUET_ENDINGS
from shapetree.tree._digits import rounded
from shapetree.tree._fitted import fitted_tree

if TYPE_CHECKING:
    import pandas as pd

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", *PARQUET_ENDINGS)
# Rows that are written at a time.
ROWS_TOGETHER = 20_000
# First characters of texts that spreadsheets would run as formulas.
FORMULA_SIGNS = ("=", "+", "-", "@")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def predict(
    voice: Voice,
    model: Model,
    data: DataOrParts,
    output: Annotated[
        Path | None,
        Option(
            "Write to a .csv, .tsv, .csv.gz or .parquet instead of the screen.",
            ("--output", "-o"),
            "FILE",
        ),
    ] = None,
    proba: Annotated[bool, Option("Add the probability of each class.", ("--proba",))] = False,
    only: Annotated[bool, Option("Leave out the columns of the file.", ("--only",))] = False,
    raw: Annotated[
        bool,
        Option("Write labels as they are, even if a spreadsheet would run them.", ("--raw",)),
    ] = False,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
) -> None:
    """Make predictions for the rows of a file or folder.

    The result has the columns of the file and the column `prediction`. Columns are found by name:
    their order does not matter, and columns that the tree never looks at may be absent. In CSV,
    a label that a spreadsheet would take for a formula is given a leading apostrophe. The columns
    of the file are written as they are, with the formulas that they hold.

    The predictions for a folder of Parquet files, or for a quoted pattern, are made batch by batch
    and written to a Parquet file.

    For example:
      shapetree predict model.json new.csv -o predictions.csv
      shapetree predict model.json new.csv --proba --only | head
      zcat new.csv.gz | shapetree predict model.json - -o predictions.csv.gz
      shapetree predict model.json new.parquet --json
      shapetree predict model.json folder/ -o predictions.parquet
    """
    output = none_if_standard(output)
    check_ending(output, ENDINGS)
    check_inputs(model, data)
    check_outputs([output], [model, data])
    tree = read_model(model)
    fitted = fitted_tree(tree)
    if proba and not isinstance(tree, ShapeTreeClassifier):
        raise Misuse("--proba is for classes, but this model predicts numbers")
    if fitted.n_outputs > 1:
        raise Problem(f"{model} has {fitted.n_outputs} targets; use it from Python")
    labels = None if fitted.classes is None else fitted.classes[0]
    if is_in_parts(data):
        _predict_parts(
            voice, model, data, check_parquet(data, output, PARQUET_ENDINGS), proba, only
        )
        return
    with as_file(data) as file:
        # Columns that the tree does not look at are read while they are written.
        wanted = {feature.name for feature in used_features(fitted)} if fitted.has_names else None
        with voice.progress(f"Reading {data.name}"):
            table = replace(read_local(file, encoding, separator, wanted), path=data)
            rows = rows_for(fitted, table, voice)
        predictions = tree.predict(rows)
        is_class = isinstance(tree, ShapeTreeClassifier)
        shares = tree.predict_proba(rows) if is_class and proba else None
        del rows
        if output is not None or not voice.as_json:
            is_csv = output is None or output.suffix.lower() not in PARQUET_ENDINGS
            say = _safe_label if is_csv and not raw else _same
            added = _added(predictions, shares, labels, say)
            parts = _parts(file, table, encoding, only)
            _deliver(_frames(parts, added), output, table.separator or ",", voice)
    if output is not None:
        voice.say(f"Wrote {output}: {len(predictions):,} rows, {_summary(predictions, labels)}")
    voice.result(_record(model, data, output, predictions, shares, labels))


def _predict_parts(
    voice: Voice, model: Path, data: Path, output: Path, proba: bool, only: bool
) -> None:
    """Predict the rows of many files."""
    tree = read_model(model)
    batches, fitted = open_parts(data), fitted_tree(tree)
    verbose, tree.verbose = tree.verbose, int(voice.shows_progress)
    keep = () if only else batches.columns
    n_rows = predict_parquet(tree, batches, output, proba=proba, keep=keep)
    tree.verbose = verbose
    predictions = predictions_in(output, free_name("prediction", keep))
    labels = None if fitted.classes is None else fitted.classes[0]
    voice.say(f"Wrote {output}: {n_rows:,} rows, {_summary(predictions, labels)}")
    voice.result(_record(model, data, output, predictions, None, labels))


def _parts(
    file: Path, table: RawTable, encoding: str, only: bool
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Numbers of rows, and what to write of the file's columns, some rows at a time."""
    if only:
        for first in range(0, table.n_rows, ROWS_TOGETHER):
            yield min(ROWS_TOGETHER, table.n_rows - first), {}
    elif table.separator is not None:
        for batch in in_batches(file, encoding, table.separator):
            yield from _slices(batch)
    else:
        yield from _slices(table.columns)


def _slices(columns: Mapping[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    n_all = len(next(iter(columns.values())))
    for first in range(0, n_all, ROWS_TOGETHER):
        n_rows = min(ROWS_TOGETHER, n_all - first)
        yield n_rows, {name: column.slice(first, n_rows) for name, column in columns.items()}


def _added(
    predictions: np.ndarray,
    shares: np.ndarray | None,
    labels: np.ndarray | None,
    say: Callable[[Any], Any],
) -> dict[str, np.ndarray]:
    """Columns of predictions."""
    if labels is not None and any(say(label) != label for label in labels.tolist()):
        predictions = np.array([say(label) for label in predictions.tolist()], dtype=object)
    added = {"prediction": predictions}
    if shares is not None and labels is not None:
        added |= {f"p({say(label)})": shares[:, j] for j, label in enumerate(labels)}
    return added


def _frames(
    parts: Iterator[tuple[int, dict[str, Any]]], added: dict[str, np.ndarray]
) -> Iterator[pd.DataFrame]:
    """Predictions, beside the columns of the file if these are wanted."""
    import pandas as pd

    first = 0
    for n_rows, columns in parts:
        written = {name: column.to_pandas() for name, column in columns.items()}
        for name, values in added.items():
            written[free_name(name, written)] = values[first : first + n_rows]
        first += n_rows
        yield pd.DataFrame(written, index=range(n_rows))


def _same(label: Any) -> Any:
    return label


def _safe_label(label: Any) -> Any:
    """A text that a spreadsheet does not run, and that is harmless in a terminal.

    Examples
    --------
    >>> _safe_label("=1+1"), _safe_label("<=50K"), _safe_label(-1)
    ("'=1+1", '<=50K', -1)
    """
    if not isinstance(label, str):
        return label
    plain = CONTROL.sub(" ", label)
    return f"'{plain}" if plain.startswith(FORMULA_SIGNS) else plain


def _deliver(
    frames: Iterator[pd.DataFrame], output: Path | None, separator: str, voice: Voice
) -> None:
    """Write the parts of a table to a file, or as CSV to stdout."""
    if output is not None and ".tsv" in output.suffixes:
        separator = "\t"
    texts = (
        frame.to_csv(index=False, sep=separator, lineterminator="\n", header=number == 0)
        for number, frame in enumerate(frames)
    )
    if output is None:
        for text in texts:
            voice.text(text)
        return
    with new_file(output, "the result") as draft:
        if output.suffix.lower() in PARQUET_ENDINGS:
            _write_parquet(frames, draft)
            return
        is_packed = output.suffix.lower() == GZIP_ENDING
        with gzip.open(draft, "xb") if is_packed else open(draft, "xb") as file:
            for text in texts:
                file.write(text.encode("utf-8"))


def _write_parquet(frames: Iterator[pd.DataFrame], path: Path) -> None:
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.Table.from_pandas(pd.concat(list(frames), ignore_index=True), preserve_index=False)
    pq.write_table(table, path)


def _summary(predictions: np.ndarray, labels: np.ndarray | None) -> str:
    """Predictions in a few words."""
    if labels is None:
        return f"from {rounded(predictions.min())} to {rounded(predictions.max())}"
    return class_counts(predictions)


def _record(
    model: Path,
    data: Path,
    output: Path | None,
    predictions: np.ndarray,
    shares: np.ndarray | None,
    labels: np.ndarray | None,
) -> dict[str, Any]:
    record: dict[str, Any] = {"model": str(model), "data": str(data), "rows": len(predictions)}
    if output is not None:
        return record | {"written": [str(output)]}
    record["predictions"] = predictions
    if shares is not None:
        record |= {"classes": labels, "probabilities": shares}
    return record
