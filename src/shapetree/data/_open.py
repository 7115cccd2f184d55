"""Any table as named columns: a NumPy array, nested lists, a pandas, polars or Arrow table."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse

from shapetree.data._columns import FEW_ROWS, MAX_EXACT, Array, Values
from shapetree.data._moments import has_zone
from shapetree.data._names import column_names

MAX_ROWS = np.iinfo(np.int32).max - 1  # rows are indexed with 32-bit integers
# So many numbers are copied in less time than pandas takes to find its columns one by one.
COPIED = 1 << 20
# Types that are read as float64, see `read_numbers`.
DOUBLES = {np.dtype(kind) for kind in (np.float64, np.int64, np.uint64, np.int32, np.uint32)}


@dataclass(frozen=True)
class OpenTable:
    """An input table, seen as named columns that are fetched one at a time."""

    n_rows: int
    names: tuple[str, ...]
    has_names: bool
    is_frame: bool  # a data frame, whose columns each have a type of their own
    column: Callable[[int], Values]
    numbers: Array | None = None  # the table itself, if kernels can read its columns
    has_order: bool = True  # whether columns can be known by their places

    def in_order(self, names: Sequence[str]) -> "OpenTable":
        """The same rows with the columns of these names, of which some may not be there."""
        if self.names == tuple(names):
            return self
        place = {name: j for j, name in enumerate(self.names)}
        return replace(
            self, names=tuple(names), column=lambda j: self.column(place[names[j]]), numbers=None
        )


def open_whole(X: Any, min_rows: int) -> OpenTable:
    """Find the columns of a table that will be read as a whole, see `open_table`."""
    source, pandas = open_table(X, min_rows), sys.modules.get("pandas")
    if pandas is None or type(X) is not pandas.DataFrame or X.size > COPIED:
        return source
    return replace(source, numbers=_numbers_of(X))


def _numbers_of(frame: Any) -> Array | None:
    """All columns of a pandas table as float64, if reading each of them gives the same."""
    dtypes = set(frame.dtypes.tolist())
    if not dtypes <= DOUBLES:
        return None
    numbers: Array = frame.to_numpy(np.float64)
    # Whole numbers of more digits than a double has are refused by those who read them.
    is_exact = dtypes == {np.dtype(np.float64)} or not (np.abs(numbers) >= MAX_EXACT).any()
    return numbers if is_exact else None


def open_table(X: Any, min_rows: int = 1) -> OpenTable:
    """Find the columns of `X`, without reading them; refuse what is no table with rows."""
    if isinstance(X, OpenTable):
        return X
    if type(X) is np.ndarray:  # by far the most frequent, and the rest takes a while
        return _open_array(X, min_rows)
    pandas = sys.modules.get("pandas")
    if pandas is not None and type(X) is pandas.DataFrame and X.columns.is_unique:
        # As below, but faster: a prediction for one row is mostly reading.
        return _open_named(X.shape, list(X.columns), lambda key: _pandas_column(X[key]), min_rows)
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
    refuse_lazy(frame, "X")
    if isinstance(frame, nw.Series):
        raise _not_two_dimensional(1)
    return _open_array(_as_array(X), min_rows)


def open_rows(X: Any) -> OpenTable:
    """Find the columns of a table to predict on, which may also be a row or a list of rows.

    A row is a mapping by the names of the features, or a pandas Series with these as its index.
    """
    if type(X) is np.ndarray or isinstance(X, OpenTable):
        return open_table(X)
    if _is_row(X):
        return _open_records([X])
    if isinstance(X, list | tuple) and X and all(map(_is_row, X)):
        return _open_records(X)
    return open_table(X)


def _is_row(X: Any) -> bool:
    if isinstance(X, Mapping):
        return True
    # By what it has, as pandas may be absent.
    is_series = getattr(X, "ndim", None) == 1 and hasattr(X, "items")
    return is_series and all(isinstance(name, str) for name in X.index)


def _open_records(records: Sequence[Any]) -> OpenTable:
    keys = list(dict.fromkeys(key for record in records for key in record.keys()))  # noqa: SIM118
    names, has_names = column_names(keys)

    def column(j: int) -> Array:
        values = np.empty(len(records), dtype=object)
        values[:] = [record.get(keys[j]) for record in records]
        return values

    _check_shape((len(records), len(keys)), 1)
    return OpenTable(len(records), names, has_names, is_frame=True, column=column, has_order=False)


def refuse_lazy(data: Any, name: str) -> None:
    """Refuse a table that has no rows yet, such as a LazyFrame."""
    frame = nw.from_native(data, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        kind = type(frame.to_native())
        raise TypeError(
            f"{name} is a lazy table ({kind.__module__}.{kind.__name__}), which has no rows yet. "
            "Call its collect() or compute() first; if that is too much for memory, write it to "
            "Parquet files, and give these to from_parquet."
        )


def _open_frame(frame: nw.DataFrame[Any], min_rows: int) -> OpenTable:
    keys = frame.columns
    return _open_named(frame.shape, keys, lambda key: _unwrap(frame.get_column(key)), min_rows)


def _open_named(
    shape: tuple[int, int], keys: list[Any], fetch: Callable[[Any], Values], min_rows: int
) -> OpenTable:
    _check_shape(shape, min_rows)
    # A pandas column may be named by anything, so keep the names to fetch the columns by.
    names, has_names = column_names(keys)
    return OpenTable(shape[0], names, has_names, is_frame=True, column=lambda j: fetch(keys[j]))


def _pandas_column(column: Any) -> Values:
    """A column of pandas, as a NumPy array if it is one."""
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column.to_numpy())
    if len(column) <= FEW_ROWS and (column.dtype.type is str or hasattr(column.dtype, "tz")):
        values = column.tolist()
        # Without any text or date, the type alone decides what the column is.
        if any(isinstance(value, str) or has_zone(value) for value in values):
            return np.array(values, dtype=object)
    return _unwrap(nw.from_native(column, series_only=True))


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
