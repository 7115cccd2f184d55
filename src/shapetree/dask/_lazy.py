"""Predictions for Dask collections: computed part by part, when they are needed."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

# A Dask frame works out what it holds when it is asked. Before Python 3.12, cached properties have
# locks that two threads can take in opposite orders, each of them waiting for the other for ever:
# let one fit at a time look at its collections.
LOOKING = threading.RLock()


def is_lazy(X: Any) -> bool:
    """Whether X is a Dask DataFrame or Array."""
    with LOOKING:
        return hasattr(X, "__dask_graph__") and hasattr(X, "npartitions")


def refuse_lazy(X: Any, method: str) -> None:
    """Say what to do instead where rows must be in memory."""
    if is_lazy(X):
        raise TypeError(
            f"{method} takes rows in memory, but X is a Dask collection: give it the rows you "
            "mean, such as X.head() or X.compute()"
        )


def lazily(
    model: Any, method: str, X: Any, dtype: np.dtype, n_columns: int | None, of_output: Any = None
) -> Any:
    """What a model's method says of every part of X.

    Parameters
    ----------
    model : estimator
    method : str
    X : dask DataFrame or Array
    dtype : dtype
        Of what the method returns.
    n_columns : int or None
        Columns of what it returns; None for one number a row.
    of_output : int, optional
        Which of the arrays that it returns to take.

    Returns
    -------
    dask Series or DataFrame for a DataFrame, Array for an Array
    """
    with LOOKING:
        of_kind = _of_array if hasattr(X, "chunks") else _of_frame
        return of_kind(model, method, X, dtype, n_columns, of_output)


def _of_array(
    model: Any, method: str, X: Any, dtype: np.dtype, n_columns: int | None, of_output: Any
) -> Any:
    if len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    options: dict[str, Any] = {"drop_axis": 1}
    if n_columns is not None:
        options = {"chunks": (X.chunks[0], (n_columns,))}
    shape = (0,) if n_columns is None else (0, n_columns)
    return X.map_blocks(
        _predict, model=model, method=method, kind=dtype, n_columns=n_columns, of_output=of_output,
        dtype=dtype, meta=np.empty(shape, dtype), **options,
    )  # fmt: skip


def _of_frame(
    model: Any, method: str, X: Any, dtype: np.dtype, n_columns: int | None, of_output: Any
) -> Any:
    import pandas as pd

    nothing = _predict(X._meta, model, method, dtype, n_columns, of_output)
    assert isinstance(nothing, pd.Series | pd.DataFrame)
    return X.map_partitions(
        _predict, model, method, dtype, n_columns, of_output, meta=nothing, enforce_metadata=False
    )


def _predict(
    X: Any, model: Any, method: str, kind: np.dtype, n_columns: int | None, of_output: Any
) -> Any:
    """What the method says of a part, with the part's index if it has one."""
    if len(X):
        found = getattr(model, method)(X)
        found = found if of_output is None else found[of_output]
    else:
        found = np.empty((0,) if n_columns is None else (0, n_columns), kind)
    if not hasattr(X, "index"):
        return found
    import pandas as pd

    return (pd.Series if found.ndim == 1 else pd.DataFrame)(found, index=X.index)
