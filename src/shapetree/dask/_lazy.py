"""Predictions for Dask collections: computed part by part, when they are needed."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

# A Dask frame finds out what it holds on demand. Before Python 3.12, cached properties have
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
    model: Any, method: str, X: Any, dtype: Any, names: str | list[str], of_output: int = 0
) -> Any:
    """The result of a model's method for every part of X.

    Parameters
    ----------
    model : estimator
    method : str
    X : dask DataFrame or Array
    dtype : dtype
        Of what the method returns.
    names : str or list of str
        What frames call it: the name of a number for each row, or names of columns.
    of_output : int, default=0
        Which of the arrays to take, if the method returns one for each output.

    Returns
    -------
    dask Series or DataFrame for a DataFrame, Array for an Array
    """
    predict = Predict(model, method, np.dtype(dtype), names, of_output)
    with LOOKING:
        if not hasattr(X, "chunks"):
            return X.map_partitions(predict, meta=predict(X._meta), enforce_metadata=False)
        X = with_whole_rows(X)
        options: dict[str, Any] = {"drop_axis": 1}
        if not isinstance(names, str):
            options = {"chunks": (X.chunks[0], (len(names),))}
        return X.map_blocks(predict, dtype=predict.dtype, meta=predict.of_nothing(), **options)


def with_whole_rows(array: Any) -> Any:
    """The array in chunks that have all columns."""
    return array.rechunk({1: -1}) if array.ndim == 2 and len(array.chunks[1]) > 1 else array


@dataclass(frozen=True)
class Predict:
    """The result for one part; see `lazily`."""

    model: Any
    method: str
    dtype: np.dtype
    names: str | list[str]
    of_output: int

    def of_nothing(self) -> np.ndarray:
        """The result for a part without rows."""
        return np.empty((0,) if isinstance(self.names, str) else (0, len(self.names)), self.dtype)

    def __call__(self, X: Any) -> Any:
        """An array, or the like with the part's index if it has one."""
        found = getattr(self.model, self.method)(X) if len(X) else self.of_nothing()
        if isinstance(found, list):
            found = found[self.of_output]
        if not hasattr(X, "index"):
            return found
        import pandas as pd

        # Files have no objects, and Dask's own text is Arrow's.
        options: dict[str, Any] = {"index": X.index}
        if self.dtype.kind in "OUT":
            options["dtype"] = pd.StringDtype("pyarrow")
        if isinstance(self.names, str):
            return pd.Series(found, name=self.names, **options)
        return pd.DataFrame(found, columns=self.names, **options)
