"""`shapetree explain`: the reasons for predictions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from shapetree.cli._arguments import (
    AsJson,
    Debug,
    Encoding,
    Model,
    Quiet,
    Separator,
    check_inputs,
    names_in,
    settings_in,
)
from shapetree.cli._console import Console, Misuse, Problem, listed, message_of
from shapetree.cli._models import (
    outcome,
    read_tree,
    rows_for,
    text_columns,
    typed_row,
    used_features,
)
from shapetree.cli._reading import read_file
from shapetree.explain import Explanation
from shapetree.tree._fitted import FittedTree
from shapetree.tree._from_estimator import fitted_tree


def explain(
    model: Model,
    data: Annotated[
        Path | None, typer.Argument(metavar="DATA", help="A file, as `predict` takes it.")
    ] = None,
    row: Annotated[
        int | None,
        typer.Option(min=1, help="Explain only this row; 1 is the first row below the names."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Value to use instead of the file's; may be repeated.",
        ),
    ] = None,
    fixed: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Features that cannot change.")
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="The only features that can change.")
    ] = None,
    direction: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=up|down", help="A feature that can only go up or down; may be repeated."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="Prediction to aim for: a class, a number, or a range such as 10:20 or :20."
        ),
    ] = None,
    unseen: Annotated[
        bool, typer.Option("--unseen", help="Also change numbers to what training has not seen.")
    ] = False,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Explain predictions, row by row.

    Says why a row gets its prediction, and which change of one or two values would change it.
    Explains one row of a file, all its rows, or a row typed in with --set, where everything else
    counts as missing. With a row of a file, --set asks "what if".

    For example:
      shapetree explain model.json new.csv --row 3
      shapetree explain model.json new.csv --row 3 --set income=52000
      shapetree explain model.json --set age=30 --set colour=red
      shapetree explain model.json new.csv --row 3 --fixed age,sex --target yes
      shapetree explain model.json new.csv --json
    """
    console = Console(as_json, quiet)
    changes = settings_in(settings, "--set")
    if data is None and not changes:
        raise Misuse("name a file, or type a row in with --set name=value")
    if data is None and row is not None:
        raise Misuse("--row needs a file")
    if data is not None and changes and row is None:
        raise Misuse("--set with a file needs --row, to know which row to change")
    check_inputs(model, data)
    tree = read_tree(model, "explain")
    fitted = fitted_tree(tree)
    table = None
    if data is not None:
        table = read_file(data, encoding, separator, text_columns(fitted))
        if row is not None:
            n_rows = table.rows.num_rows
            if row > n_rows:
                raise Problem(f"{data} has {n_rows:,} rows, so there is no row {row:,}")
            table = replace(table, rows=table.rows.slice(row - 1, 1))
    if table is None or changes:
        absent = [each.name for each in used_features(fitted) if each.name not in changes]
        if table is None and absent:
            console.note(f"not given, so treated as missing: {listed(absent)}")
        table = typed_row(fitted, changes, table)
    given: dict[str, Any] = {
        "fixed": names_in(fixed) or None,
        "only": names_in(only) or None,
        "direction": settings_in(direction, "--direction") or None,
        "target": None if target is None else _target_in(target, fitted),
        "unseen": unseen or None,
    }
    wishes = {name: value for name, value in given.items() if value is not None}
    rows = rows_for(fitted, table, console)
    with console.progress("Explaining"):
        try:
            explanations = tree.explain(rows, **wishes)
        except (ValueError, TypeError) as error:
            if not wishes:
                raise
            raise Misuse(f"--{message_of(error)}") from error
    records = []
    for number, explanation in enumerate(explanations, start=row or 1):
        is_one_of_many = data is not None and len(explanations) > 1
        console.say(f"Row {number}: {explanation}" if is_one_of_many else str(explanation))
        if explanation.flip is not None:
            console.say(str(explanation.flip))
        if is_one_of_many:
            console.say()
        records.append({"row": None if data is None else number, **_record(explanation)})
    console.result({"model": str(model), "data": data, "explanations": records})


def _target_in(text: str, fitted: FittedTree) -> Any:
    """The class, number or range that a text stands for."""
    if fitted.classes is not None:
        known = {str(label): label for labels in fitted.classes for label in labels.tolist()}
        if text not in known:
            raise Misuse(f"--target must be one of the classes {listed(known)}, got {text!r}")
        return known[text]
    try:
        ends = [float(end) if end.strip() else None for end in text.split(":")]
    except ValueError:
        ends = [None]
    if len(ends) > 2 or ends == [None]:
        raise Misuse(f"--target must be a number or a range such as 10:20, got {text!r}")
    return ends[0] if len(ends) == 1 else tuple(ends)


def _record(explanation: Explanation) -> dict[str, Any]:
    flip, flip_record = explanation.flip, None
    if flip is not None:
        changes = [vars(change) for change in flip.changes]
        flip_record = {
            **changes[0],
            "changes": changes,
            "size": flip.size,
            "leaf": flip.leaf,
            "outcome": flip.outcome,
            "sentence": str(flip),
        }
    return {
        "prediction": outcome(explanation.prediction),
        "sentence": str(explanation),
        "leaf": explanation.leaf,
        "nodes": [step.node for step in explanation.path] + [explanation.leaf],
        "conditions": [condition.words() for condition in explanation.conditions],
        "values": explanation.row,
        "notes": explanation.notes,
        "flip": flip_record,
    }
