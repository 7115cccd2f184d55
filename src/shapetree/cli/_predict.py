"""`shapetree predict` and `evaluate`: predictions for a file, and how right they are."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from pyarrow import parquet

from shapetree import predict_parquet
from shapetree._files import new_file
from shapetree._predictions import free_name
from shapetree.cli._arguments import (
    STANDARD,
    AsJson,
    Data,
    DataOrFolder,
    Debug,
    Encoding,
    ModelFile,
    Quiet,
    Separator,
    check_ending,
    check_inputs,
    check_outputs,
    write_outputs,
)
from shapetree.cli._console import Console, Misuse, Problem, class_counts, suggestion
from shapetree.cli._models import (
    evaluate_model,
    is_in_parts,
    open_parts,
    read_model,
    read_tree,
    rows_for,
    score_of_model,
    show_scores,
    targets_for,
    text_columns,
    used_features,
)
from shapetree.cli._reading import (
    GZIP_ENDING,
    FileTable,
    as_file,
    give_memory_back,
    open_csv,
    read_file,
    read_local,
)
from shapetree.data._sources import PARQUET_ENDINGS
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.tree._digits import rounded
from shapetree.tree._evaluation import HeldOut
from shapetree.tree._fitted import FittedTree
from shapetree.tree._from_estimator import fitted_model
from shapetree.tree._intervals import UnseenLeaf

ENDINGS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", *PARQUET_ENDINGS)
# Rows that are written at a time.
ROWS_TOGETHER = 20_000
# First characters of texts that spreadsheets would run as formulas.
FORMULA_SIGNS = ("=", "+", "-", "@")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def predict(
    model: ModelFile,
    data: DataOrFolder,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write to a .csv, .tsv, .csv.gz or .parquet instead of the screen.",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add the probability of each class.")
    ] = False,
    only: Annotated[
        bool, typer.Option("--only", help="Leave out the columns of the file.")
    ] = False,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw", help="Write labels as they are, even if a spreadsheet would run them."
        ),
    ] = False,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make predictions for the rows of a file or folder.

    The result has the columns of the file and the column `prediction`. Columns are found by name:
    their order does not matter, and columns that the model never looks at may be absent. In CSV,
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
    console = Console(as_json, quiet)
    output = None if output == STANDARD else output
    check_ending(output, ENDINGS)
    check_inputs(model, data)
    check_outputs([output], [model, data])
    estimator = read_model(model)
    fitted = fitted_model(estimator)
    if proba and fitted.classes is None:
        raise Misuse("--proba is for classes, but this model predicts numbers")
    if fitted.n_outputs > 1:
        raise Problem(f"{model} has {fitted.n_outputs} targets; use it from Python")
    labels = None if fitted.classes is None else fitted.classes[0]
    shares = None
    if is_in_parts(data):
        predictions = _predict_folder(model, data, output, proba, only, console)
    else:
        with as_file(data) as file:
            # Columns that the model does not look at are read while they are written.
            names = {feature.name for feature in used_features(fitted)}
            wanted = names if fitted.has_names else None
            with console.progress(f"Reading {data.name}"):
                texts = text_columns(fitted)
                table = replace(read_local(file, encoding, separator, texts, wanted), path=data)
                rows = rows_for(fitted, table, console)
            if table.separator is not None:
                table = replace(table, rows=pa.table({}))  # read again while it is written
                give_memory_back()
            predictions = estimator.predict(rows)
            if proba:
                shares = estimator.predict_proba(rows)
            del rows
            if output is not None or not as_json:
                is_csv = output is None or output.suffix.lower() not in PARQUET_ENDINGS
                added = _added(predictions, shares, labels, is_safe=is_csv and not raw)
                batches = _slices(added) if only else _beside(file, table, encoding, added)
                _deliver(batches, output, table.separator or ",", console)
    record: dict[str, Any] = {"model": str(model), "data": str(data), "rows": len(predictions)}
    if output is not None:
        if labels is None:
            said = f"from {rounded(predictions.min())} to {rounded(predictions.max())}"
        else:
            said = class_counts(predictions)
        console.say(f"Wrote {output}: {len(predictions):,} rows, {said}")
        record["written"] = [str(output)]
    else:
        record["predictions"] = predictions
        if shares is not None:
            record |= {"classes": labels, "probabilities": shares}
    console.result(record)


def _predict_folder(
    model: Path, data: Path, output: Path | None, proba: bool, only: bool, console: Console
) -> np.ndarray:
    """Predict the rows of many files, and write them to a Parquet file beside them."""
    if output is None or output.suffix.lower() not in PARQUET_ENDINGS:
        raise Misuse(
            f"{data} stands for several files; name a Parquet file for their predictions, such as "
            "-o predictions.parquet"
        )
    if data.is_dir() and data.resolve() in output.resolve().parents:
        raise Misuse(f"{output} would be taken for data, as it is in {data}; choose another folder")
    tree = read_tree(model, "predict of a folder")
    batches = open_parts(data)
    tree.verbose = int(console.shows_progress)
    keep = () if only else batches.columns
    predict_parquet(tree, batches, output, proba=proba, keep=keep)
    name = free_name("prediction", keep)
    return np.asarray(parquet.read_table(output, columns=[name])[name].to_numpy())


def _added(
    predictions: np.ndarray, shares: np.ndarray | None, labels: np.ndarray | None, is_safe: bool
) -> pa.RecordBatch:
    """Columns of predictions, whose labels may be made safe."""
    names = [] if labels is None else labels.tolist()
    shown = [_safe_label(label) for label in names] if is_safe else names
    if shown != names:
        said = dict(zip(names, shown, strict=True))
        predictions = np.array([said[label] for label in predictions.tolist()], dtype=object)
    added = {"prediction": predictions}
    if shares is not None:
        added |= {f"p({label})": shares[:, j] for j, label in enumerate(shown)}
    return pa.RecordBatch.from_pydict(added)


def _beside(
    file: Path, table: FileTable, encoding: str, added: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    """Rows of a file with what is added to them, some at a time."""
    batches = table.rows.to_batches()
    if table.separator is not None:
        batches = open_csv(file, encoding, table.separator).batches()
    first = 0
    for batch in batches:
        for part in _slices(batch):
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            beside = added.slice(first, part.num_rows)
            for name, values in zip(added.schema.names, beside.columns, strict=True):
                columns[free_name(name, columns)] = values
            first += part.num_rows
            yield pa.RecordBatch.from_pydict(columns)


def _slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    for first in range(0, batch.num_rows, ROWS_TOGETHER):
        yield batch.slice(first, ROWS_TOGETHER)


def _safe_label(label: Any) -> Any:
    """A text that a spreadsheet does not run, and that is harmless in a terminal.

    >>> _safe_label("=1+1"), _safe_label("<=50K"), _safe_label(-1)
    ("'=1+1", '<=50K', -1)
    """
    if not isinstance(label, str):
        return label
    plain = CONTROL.sub(" ", label)
    return f"'{plain}" if plain.startswith(FORMULA_SIGNS) else plain


def _deliver(
    batches: Iterable[pa.RecordBatch], output: Path | None, separator: str, console: Console
) -> None:
    """Write rows to a file, or as CSV to stdout."""
    if output is not None and ".tsv" in output.suffixes:
        separator = "\t"
    texts = (
        # Whole numbers stay whole where some are missing.
        batch.to_pandas(integer_object_nulls=True).to_csv(
            index=False, sep=separator, lineterminator="\n", header=number == 0
        )
        for number, batch in enumerate(batches)
    )
    if output is None:
        for text in texts:
            console.text(text)
        return
    with new_file(output, "the result") as draft:
        if output.suffix.lower() in PARQUET_ENDINGS:
            parquet.write_table(pa.Table.from_batches(batches), draft)
            return
        is_packed = output.suffix.lower() == GZIP_ENDING
        with gzip.open(draft, "xb") if is_packed else open(draft, "xb") as file:
            for text in texts:
                file.write(text.encode("utf-8"))


# --- evaluate ---


def evaluate(
    model: ModelFile,
    data: Data,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", help="Column with what came true; by default, the model's target."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the model with these scores to this file."),
    ] = None,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score a model on the rows of a file that it was not fitted on.

    Rows without a target are left out. The rows that the model was fitted on are recognised if all
    of them are there and no others but those of its test, and their scores are not kept. A part of
    them is not recognised: see to it that rows are new.

    For example:
      shapetree evaluate model.json new.csv
      shapetree evaluate model.json new.csv --target price -o scored.json
    """
    console = Console(as_json, quiet)
    check_inputs(model, data)
    check_outputs([output], [data])
    estimator = read_model(model)
    fitted = fitted_model(estimator)
    if fitted.n_outputs > 1:
        raise Problem(f"{model} has {fitted.n_outputs} targets; use it from Python")
    name = target or (fitted.names.targets or (None,))[0]
    if name is None:
        raise Misuse("the model does not know the name of its target; give it with --target")
    with console.progress(f"Reading {data.name}"):
        texts = [*text_columns(fitted), *([] if fitted.classes is None else [name])]
        table = read_file(data, encoding, separator, texts)
    known = table.rows.column_names
    if name not in known:
        raise Problem(f"{data} has no column {name}; {suggestion(name, known)}")
    rows = rows_for(fitted, table, console)
    y, is_known = targets_for(fitted, name, table)
    n_rows, n_all = int(np.count_nonzero(is_known)), table.rows.num_rows
    if not n_rows:
        raise Problem(f"{data}: column {name} is empty")
    if n_rows < n_all:
        console.note(f"{n_all - n_rows:,} rows without {name} are left out")
    scores = evaluate_model(estimator, rows[is_known], y[is_known])
    where = f"On {n_rows:,} rows of {'standard input' if data == STANDARD else data.name}"
    # Forests cannot recognise rows.
    if isinstance(fitted, FittedTree) and not isinstance(estimator, BaseShapeForest):
        now = estimator._fitted.held_out
        if now is fitted.held_out:
            where = "On the training rows, which says little about new ones"
        elif now is not None and _are_train_and_test(fitted, now):
            estimator._fitted = fitted
            where = "On the rows of training and of the test, which says little about new ones"
        else:
            where += ", taken as unseen"
    show_scores([score_of_model(estimator, scores)], where, console)
    record = {"model": str(model), "data": str(data), "rows": n_rows, "scores": scores}
    if output is not None:
        record["written"] = write_outputs({output: estimator.to_json()})
        console.say(f"Wrote {output}")
    console.result(record)


def _are_train_and_test(fitted: FittedTree, now: HeldOut) -> bool:
    """Whether rows are those of training and those held out then, by what comes to each leaf."""
    before, sketches = fitted.held_out, fitted.sketches
    if before is None or sketches is None:
        return False
    tree = fitted.tree
    nothing = UnseenLeaf(0, 0.0, 0.0, 0.0)
    for leaf in np.flatnonzero(tree.n_branches == 0).tolist():
        held, found = before.leaves.get(leaf, nothing), now.leaves.get(leaf, nothing)
        n_train, sketch = int(tree.n_node_samples[leaf]), sketches[leaf]
        if found.n_rows != n_train + held.n_rows:
            return False
        if fitted.classes is not None:
            trained = float(sketch.counts[tree.value[leaf, 0].argmax()])
        elif sketch.mean is not None and not fitted.predicts_medians:
            trained = n_train * float(sketch.mean)
        else:
            continue
        total = trained + held.n_rows * held.value
        if not math.isclose(found.n_rows * found.value, total, rel_tol=1e-6, abs_tol=1e-6):
            return False
    return True
