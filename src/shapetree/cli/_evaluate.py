"""`shapetree evaluate`: how good a model is on the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np

from shapetree.cli._compare import Score, show_scores
from shapetree.cli._model import read_model, rows_for, targets_for
from shapetree.cli._options import Data, Encoding, Model, Option, Separator
from shapetree.cli._outputs import check_inputs, check_outputs, write_outputs
from shapetree.cli._problems import Misuse, Problem, suggestion
from shapetree.cli._read import read_file
from shapetree.cli._voice import Voice
from shapetree.tree._fitted import fitted_tree


def evaluate(
    voice: Voice,
    model: Model,
    data: Data,
    target: Annotated[
        str | None,
        Option("Column with what came true; by default, the model's target.", ("--target", "-t")),
    ] = None,
    output: Annotated[
        Path | None,
        Option("Write the model with these scores to this file.", ("--output", "-o"), "FILE.json"),
    ] = None,
    encoding: Encoding = "utf-8",
    separator: Separator = None,
) -> None:
    """Score a model on the rows of a file that it was not fitted on.

    Rows without a target are left out.

    For example:
      shapetree evaluate model.json new.csv
      shapetree evaluate model.json new.csv --target price -o scored.json
    """
    check_inputs(model, data)
    check_outputs([output], [data])
    tree = read_model(model)
    fitted = fitted_tree(tree)
    if fitted.n_outputs > 1:
        raise Problem(f"{model} has {fitted.n_outputs} targets; use it from Python")
    name = target or (fitted.names.targets or (None,))[0]
    if name is None:
        raise Misuse("the model does not know the name of its target; give it with --target")
    with voice.progress(f"Reading {data.name}"):
        table = read_file(data, encoding, separator)
    if name not in table.columns:
        raise Problem(f"{data} has no column {name}; {suggestion(name, table.columns)}")
    rows = rows_for(fitted, table, voice)
    y, is_known = targets_for(fitted, name, table)
    if not is_known.any():
        raise Problem(f"{data}: column {name} is empty")
    n_rows = int(np.count_nonzero(is_known))
    if n_rows < table.n_rows:
        voice.note(f"{table.n_rows - n_rows:,} rows without {name} are left out")
    scores = tree.evaluate(rows[is_known], y[is_known])
    is_new = fitted_tree(tree).held_out is not fitted.held_out
    score = Score("shape tree", scores, tree.get_n_leaves(), tree.get_depth(), None)
    show_scores([score], n_rows if is_new else None, voice)
    record = {"model": str(model), "data": str(data), "rows": n_rows, "scores": scores}
    if output is not None:
        record["written"] = write_outputs({output: tree.to_json()})
        voice.say(f"Wrote {output}")
    voice.result(record)
