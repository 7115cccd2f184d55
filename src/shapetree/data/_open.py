"""Any table as named columns: a NumPy array, nested lists, a pandas, polars or Arrow table."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse

from shapetree.data._columns import FEW_ROWS, Array, Values
from shapetree.data._names import column_names

MAX_ROWS = np.iinfo(np.int32).max - 1  # rows are indexed with 32-bit integers


@dataclass(frozen=True)
class OpenTable:
    """An input table, seen as named columns that are fetched one at a time."""

    n_rows: int
    names: tuple[str, ...]
    has_names: bool
    is_frame: bool  # a data frame, whose columns each have a type of their own
    column: Callable[[int], Values]
    numbers: Array | None = None  # the table itself, if kernels can read its columns


def open_table(X: Any, min_rows: int = 1) -> OpenTable:
    """Find the columns of `X`, without reading them; refuse what is no table with rows."""
    if isinstance(X, OpenTable):
        return X
    if type(X) is np.ndarray:  # by far the most frequent, and the rest takes a while
        return _open_array(X, min_rows)
    if issparse(X):
        raise TypeError(
            "Sparse data was passed, but dense data is required. "
            "Use '.toarray()' to convert X to a dense array."
        )
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
        if isinstance(frame, nw.DataFrame):
            return _open_frame(frame, min_rows)
    except DuplicateError as error:
        raise ValueError(f"The columns of X must have distinct names. {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"X is a lazy table ({type(X).__module__}.{type(X).__name__}), which has no rows yet. "
            "Call its collect() or compute() first."
        )
    if isinstance(frame, nw.Series):
        raise _not_two_dimensional(1)
    return _open_array(_as_array(X), min_rows)


def _open_frame(frame: nw.DataFrame[Any], min_rows: int) -> OpenTable:
    _check_shape(frame.shape, min_rows)
    # A pandas column may be named by anything, so keep the names to fetch the columns by.
    keys = frame.columns
    names, has_names = column_names(keys)
    return OpenTable(
        n_rows=frame.shape[0],
        names=names,
        has_names=has_names,
        is_frame=True,
        column=lambda j: _column(frame, keys[j]),
    )


def _column(frame: nw.DataFrame[Any], key: Any) -> Values:
    """A column of a table, as a NumPy array if it is one."""
    if frame.implementation.is_pandas():
        # The same as below, but faster: a prediction for one row is mostly reading.
        column = frame.to_native()[key]
        if isinstance(column.dtype, np.dtype):
            return np.asarray(column.to_numpy())
        if len(column) <= FEW_ROWS and column.dtype.type is str:
            values = column.tolist()
            # Without any text, the type alone tells what the column is.
            if any(isinstance(value, str) for value in values):
                return np.array(values, dtype=object)
    return _unwrap(frame.get_column(key))


def _open_array(array: Array, min_rows: int) -> OpenTable:
    if array.ndim != 2:
        raise _not_two_dimensional(array.ndim)
    _check_shape(array.shape, min_rows)
    is_read = array.dtype.char in "fd" and array.dtype.isnative and array.flags.aligned
    return OpenTable(
        n_rows=array.shape[0],
        names=_names_of_array(array.shape[1]),
        has_names=False,
        is_frame=False,
        column=lambda j: array[:, j],
        numbers=array if is_read else None,
    )


@lru_cache(maxsize=8)
def _names_of_array(n_features: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(n_features))


def _as_array(X: Any) -> Array:
    if isinstance(X, np.ma.MaskedArray):
        dtype = np.result_type(X.dtype, np.float32) if X.dtype.kind in "biuf" else object
        return np.ma.filled(X.astype(dtype), np.nan)
    try:
        array = np.asarray(X)
        if array.dtype.kind in "SU" and not isinstance(X, np.ndarray):
            # Lists that mix numbers and strings: NumPy would turn the numbers into strings.
            array = np.asarray(X, dtype=object)
    except ValueError as error:
        raise ValueError(f"X must be a table whose rows are equally long. {error}") from error
    return array


def _unwrap(series: nw.Series[Any]) -> Values:
    """Give the NumPy array inside a column, if there is one or its type is not a usual one."""
    native_dtype = getattr(series.to_native(), "dtype", None)
    if isinstance(native_dtype, np.dtype) or isinstance(series.dtype, nw.Object | nw.Unknown):
        return series.to_numpy()
    return series


def _check_shape(shape: tuple[int, ...], min_rows: int) -> None:
    n_rows, n_features = shape
    if n_rows < min_rows:
        raise ValueError(
            f"Found array with {n_rows} sample(s) (shape={shape}) while a minimum of {min_rows} "
            "is required."
        )
    if n_features < 1:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required."
        )
    if n_rows > MAX_ROWS:
        raise ValueError(f"X has {n_rows} rows, but at most {MAX_ROWS} are supported.")


def _not_two_dimensional(n_dimensions: int) -> ValueError:
    if n_dimensions > 2:
        return ValueError(f"Found array with dim {n_dimensions}, while dim <= 2 is required.")
    found = ("scalar", "1D array")[n_dimensions]
    return ValueError(
        f"Expected 2D array, got {found} instead. Reshape your data either using "
        "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
        "contains a single sample."
    )
