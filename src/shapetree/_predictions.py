"""Predictions for rows that are too many for memory, written to a Parquet file as they are made."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import narwhals.stable.v2 as nw
import numpy as np

from shapetree._base import BaseShapeTree
from shapetree._estimators import ShapeTreeClassifier
from shapetree._files import PathLike, new_file
from shapetree._threads import effective_threads
from shapetree.data._batches import Batches
from shapetree.data._sources import check_pyarrow
from shapetree.data._stored import progress_of
from shapetree.tree._fitted import FittedTree
from shapetree.tree._from_estimator import fitted_tree
from shapetree.tree._predictor import leaves_of


def predict_parquet(
    estimator: BaseShapeTree,
    data: Batches,
    path: PathLike,
    *,
    proba: bool = False,
    leaf: bool = False,
    keep: str | Sequence[str] = (),
) -> int:
    """Predict rows in parts and write the predictions to a Parquet file, a batch at a time.

    If this fails or is interrupted, no file is written, and an existing one is kept.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        Must be fitted, with names for its features.
    data : Batches
        What `from_parquet` or `from_batches` returns.
    path : str or path-like
        The file to write: not one of the data's, and not in a folder of theirs. It has the column
        `prediction`; of several targets, `prediction of` each.
    proba : bool, default=False
        Whether to add the probability of each class, in columns such as `p(yes)`.
    leaf : bool, default=False
        Whether to add the number of the leaf that each row ends in, in the column `leaf`.
    keep : list of str, or "all", default=()
        Columns of the data to write next to the predictions.

    Returns
    -------
    int
        The number of rows.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> import shapetree
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "predictions.parquet")
    >>> rows = pd.DataFrame({"id": range(100, 200), "x": range(100)})
    >>> tree = shapetree.ShapeTreeClassifier().fit(rows[["x"]], rows["x"] > 49)
    >>> shapetree.predict_parquet(tree, shapetree.from_batches([rows]), path, keep=["id"])
    100
    >>> print(pd.read_parquet(path).tail(2).to_string(index=False))
     id  prediction
    198        True
    199        True
    >>> folder.cleanup()
    """
    check_pyarrow("predict_parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not isinstance(data, Batches):
        raise TypeError(
            "data must come from from_parquet or from_batches, got a "
            f"{type(data).__name__}; the estimator's predict takes tables"
        )
    fitted = fitted_tree(estimator)
    data.check_output(path, "predictions")
    if proba and not isinstance(estimator, ShapeTreeClassifier):
        raise ValueError("proba=True is for classes, but this tree predicts numbers")
    kept = data.columns if keep == "all" else [keep] if isinstance(keep, str) else list(keep)
    data.check_columns(kept, "keep")
    columns = {name: pa.array(each) for name, each in _columns(fitted, proba, leaf).items()}
    names = [free_name(name, kept) for name in columns]
    n_threads, n_rows, writer = effective_threads(estimator.n_threads), 0, None
    with (
        new_file(path, "predictions") as draft,
        progress_of("predicting", data.n_rows, estimator.verbose) as bar,
    ):
        try:
            for table, batch in fitted.read_batches(data, kept):
                leaves = leaves_of(fitted.tree, table, n_threads)
                beside = nw.from_native(batch, eager_only=True).select(kept).to_arrow()
                every = [
                    *beside.columns,
                    *(each.take(pa.array(leaves)) for each in columns.values()),
                ]
                written = pa.table(every, names=[*kept, *names])
                if writer is None:
                    writer = pq.ParquetWriter(draft, written.schema)
                writer.write_table(written.cast(writer.schema))
                n_rows += len(leaves)
                bar.update(len(leaves))
        finally:
            if writer is not None:
                writer.close()
    return n_rows


def _columns(fitted: FittedTree, proba: bool, leaf: bool) -> dict[str, np.ndarray]:
    """Names of the columns to predict, and the values of each node."""
    tree, columns = fitted.tree, {}
    numbers = map(str, range(fitted.n_outputs))
    for output, target in enumerate(fitted.names.targets or numbers):
        of_target = f" of {target}" if fitted.n_outputs > 1 else ""
        value = tree.value[:, output]
        if fitted.classes is None:
            columns[f"prediction{of_target}"] = value[:, 0]
            continue
        labels = fitted.classes[output]
        columns[f"prediction{of_target}"] = labels[value.argmax(axis=1)]
        if proba:
            for number, label in enumerate(labels.tolist()):
                columns[f"p({label}){of_target}"] = value[:, number]
    if leaf:
        columns["leaf"] = np.arange(tree.node_count, dtype=np.int32)
    return columns


def free_name(name: str, taken: Collection[str]) -> str:
    """A name that no other column has."""
    number, free = 2, name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free
