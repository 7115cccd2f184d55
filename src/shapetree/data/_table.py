"""The input table: named columns, read as numbers or encoded as categories.

Whatever the caller holds (a NumPy array, nested lists, a pandas, polars or Arrow table) becomes a
list of named columns first. From there one path reads numbers and one path encodes categories, and
training and prediction walk the same two paths.
"""

import numbers
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, auto
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt
from narwhals.exceptions import DuplicateError
from scipy.sparse import issparse

from shapetree._core.columns import Columns
from shapetree.data._missing import MISSING_CODE, is_missing, is_missing_type
from shapetree.data._moments import DATES, DateKind, has_zone, kind_of, seconds_of, seconds_of_array
from shapetree.data._names import column_names, feature_finder, is_index

Level: TypeAlias = str | bool | int | float
Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = Array | nw.Series[Any]

# Values from which on a share of new categories is worth a warning.
LEAST_TO_WARN = 10
# Rows that Python has looked up before a data frame has begun to.
FEW_ROWS = 64
MAX_ROWS = np.iinfo(np.int32).max - 1  # rows are indexed with 32-bit integers


@dataclass(frozen=True)
class FeatureInfo:
    """What training learns about one feature.

    Attributes
    ----------
    name : str
        The name of the column; "x0", "x1", … if the table has no names.
    categories : tuple of str, bool, int or float, or None
        The distinct levels seen in training: numbers and booleans in ascending order, then strings
        in ascending order. None for a numeric feature.
    is_whole : bool
        Whether the column's type in training was one of whole numbers.
    is_ordered : bool
        Whether the categories have an order of their own, in which they stand: shape functions then
        divide them into segments, not into arbitrary subsets.
    date : {"day", "time", "utc"} or None
        Whether the column holds dates, and which: whole days, moments without a time zone, or
        moments in UTC. Its numbers are then seconds since 1970-01-01.
    """

    name: str
    categories: tuple[Level, ...] | None = None
    is_whole: bool = False
    is_ordered: bool = False
    date: DateKind | None = None

    @property
    def is_categorical(self) -> bool:
        """Whether the feature has categories rather than numbers."""
        return self.categories is not None

    @property
    def is_date(self) -> bool:
        """Whether its numbers are moments in time."""
        return self.date is not None

    @property
    def is_plain(self) -> bool:
        """Whether it has numbers that are no moments in time."""
        return self.categories is None and self.date is None


@dataclass(frozen=True, eq=False)
class Table:
    """A table, column by column.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    features : tuple of FeatureInfo
        What is known about each column.
    columns : list of ndarray of shape (n_rows,) or None
        A numeric column is float32 or float64, with NaN where a value is missing; it may be a
        strided, read-only view on the caller's data. A categorical column is contiguous int32:
        positions in `categories`, with -1 where a value is missing or was not seen in training.
        None stands for a column that was not asked for.
    has_names : bool
        Whether the caller's data has names for its columns, all of them strings.
    """

    n_rows: int
    features: tuple[FeatureInfo, ...]
    columns: list[Array | None]
    has_names: bool = False

    @cached_property
    def values(self) -> Columns:
        """The columns as kernels read them."""
        return Columns(self.columns, self.n_rows)

    def with_values(self, needed: Iterable[int]) -> "Table":
        """The table with the values of some features at hand, as they are here."""
        return self

    def take(self, kept: Array) -> "Table":
        """Keep the rows that a boolean mask marks."""
        columns = [None if column is None else column[kept] for column in self.columns]
        return Table(int(np.count_nonzero(kept)), self.features, columns, self.has_names)

    def with_seen_categories(self) -> "Table":
        """The same rows, with the features that training on them would learn.

        Categories that no row has are gone, unless they have an order of their own.
        """
        return self.with_features(with_seen(self.features, self.seen_codes()))

    def seen_codes(self) -> list[Array | None]:
        """Codes that some row has, ascending, of every column of categories that is there."""
        return [
            np.unique(codes[codes != MISSING_CODE])
            if info.is_categorical and codes is not None
            else None
            for info, codes in zip(self.features, self.columns, strict=True)
        ]

    def with_features(self, features: tuple[FeatureInfo, ...]) -> "Table":
        """The same rows, coded by the categories of other features; all others are missing."""
        columns = [
            codes
            if codes is None or known.categories is None or new.categories is None
            else _recode(codes, known.categories, new.categories)
            for codes, known, new in zip(self.columns, self.features, features, strict=True)
        ]
        return Table(self.n_rows, features, columns, self.has_names)


def with_seen(
    features: Sequence[FeatureInfo], seen: Sequence[Array | None]
) -> tuple[FeatureInfo, ...]:
    """Features without categories that no row has, unless these have an order of their own."""
    return tuple(
        info
        if info.categories is None or info.is_ordered or codes is None
        else replace(info, categories=tuple(info.categories[code] for code in codes.tolist()))
        for info, codes in zip(features, seen, strict=True)
    )


def still_kept(before: Array | None, kept: Array) -> Array:
    """Which of all rows are kept, if `kept` marks some of those that were kept before.

    None stands for all.
    """
    if before is None:
        return kept
    every = before.copy()
    every[before] = kept
    return every


@dataclass(frozen=True)
class OpenTable:
    """An input table, seen as named columns that are fetched one at a time."""

    n_rows: int
    names: tuple[str, ...]
    has_names: bool
    is_frame: bool  # a data frame, whose columns each have a type of their own
    column: Callable[[int], Values]
    numbers: Array | None = None  # the table itself, if kernels can read its columns


def read_table(X: Any, categorical_features: Any = "from_dtype", *, min_rows: int = 1) -> Table:
    """Read the table to train on and learn its features.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        A NumPy array, nested lists, or any eager data frame that narwhals reads.
    categorical_features : "from_dtype", None or array-like, default="from_dtype"
        Which columns are categorical. "from_dtype": the text, category and boolean columns of a
        data frame, and no column of an array. None: no column. Else the names of the columns,
        their indices from 0, or a mask with one boolean per column.
    min_rows : int, default=1
        The fewest rows to accept.

    Returns
    -------
    Table
        All columns, with the names and categories that `encode_table` needs later.
    """
    source = _open(X, min_rows)
    asked = _asked_categorical(categorical_features, source)
    advice = "List it in categorical_features, or turn it into numbers."
    features: list[FeatureInfo] = []
    columns: list[Array | None] = []
    for j, name in enumerate(source.names):
        if source.numbers is not None and not (asked and asked[j]):
            features.append(FeatureInfo(name))
            columns.append(source.numbers[:, j])
            continue
        values = source.column(j)
        if _has_categorical_dtype(values, name) if asked is None else asked[j]:
            codes, levels = _factorize(values, name)
            order = _own_order(values, name)
            categories = sorted_categories(levels) if order is None else order
            features.append(FeatureInfo(name, categories, is_ordered=order is not None))
            columns.append(_recode(codes, levels, categories))
        elif _kind_of(values, name) is _Kind.DATE:
            seconds, kind = _as_dates(values, name)
            features.append(FeatureInfo(name, date=kind))
            columns.append(seconds)
        else:
            features.append(FeatureInfo(name, is_whole=_has_whole_dtype(values)))
            columns.append(_as_numbers(values, name, advice))
    return Table(source.n_rows, tuple(features), columns, source.has_names)


def open_table(X: Any) -> OpenTable:
    """Refuse what is not a table with rows and columns; the result is for `encode_table`."""
    return _open(X, min_rows=1)


def encode_table(
    X: Any, features: Sequence[FeatureInfo], needed: Iterable[int] | None = None
) -> Table:
    """Read a table to predict on, with the features that training has learnt.

    Columns are matched by position. The table may be of another kind than in training: categories
    are compared as Python values, so 1, 1.0 and True are the same category. But a column of numbers
    where training had text, or the other way round, is refused, and where most values are
    categories that training has not seen, a warning says so.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_features)
        As for `read_table`.
    features : sequence of FeatureInfo
        The features of the training table.
    needed : iterable of int, default=None
        Indices of the columns to read; all of them by default. The others are not touched.

    Returns
    -------
    Table
        The needed columns.
    """
    source = _open(X, min_rows=1)
    if len(source.names) != len(features):
        raise ValueError(
            f"X has {len(source.names)} features, but this tree is expecting "
            f"{len(features)} features as input."
        )
    columns: list[Array | None] = [None] * len(features)
    for j in range(len(features)) if needed is None else needed:
        if source.numbers is not None and features[j].is_plain:
            columns[j] = source.numbers[:, j]
        else:
            columns[j] = _encode_column(source.column(j), features[j])
    return Table(source.n_rows, tuple(features), columns, source.has_names)


def new_categories(X: Any, table: Table) -> dict[int, dict[int, Any]]:
    """Categories of a table to predict on that training has not seen, by feature and row.

    Parameters
    ----------
    X : array-like or data frame
        The table.
    table : Table
        What `encode_table` has made of it.
    """
    source, found = _open(X, min_rows=1), {}
    for j, column in enumerate(table.columns):
        if column is None or table.features[j].categories is None:
            continue
        unknown = np.flatnonzero(column == MISSING_CODE).tolist()
        if unknown:
            values = source.column(j)[unknown]
            listed = values.to_list() if isinstance(values, nw.Series) else values.tolist()
            found[j] = {
                row: value
                for row, value in zip(unknown, listed, strict=True)
                if not is_missing(value)
            }
    return found


def _encode_column(values: Values, feature: FeatureInfo) -> Array:
    if feature.is_date:
        return _encode_dates(values, feature)
    if feature.categories is None:
        return _as_numbers(
            values, feature.name, "It was numeric in training; turn it into numbers."
        )
    codes, levels = _factorize(values, feature.name)
    _check_levels(levels, feature)
    recoded = _recode(codes, levels, feature.categories)
    _warn_of_new(codes, levels, recoded, feature)
    return recoded


def _encode_dates(values: Values, feature: FeatureInfo) -> Array:
    """Read a column of dates; refuse what is none, and what may be of another time zone."""
    name = feature.name
    held = "moments with a time zone" if feature.date == "utc" else "dates without a time zone"
    kind = _kind_of(values, name)
    if kind is not _Kind.DATE:
        # A column that lacks every value has no type to tell dates by.
        if kind is _Kind.NUMBER:
            found = _as_numbers(values, name, "")
            if np.isnan(found).all():
                return found
        holds = "numbers" if kind in (_Kind.NUMBER, _Kind.BOOLEAN) else "text or categories"
        raise ValueError(
            f"Column {name!r} held {held} in training, but holds {holds} now. Turn it into dates, "
            "for example with pandas.to_datetime."
        )
    seconds, found_kind = _as_dates(values, name)
    if (found_kind == "utc") != (feature.date == "utc") and not np.isnan(seconds).all():
        now = "none" if feature.date == "utc" else "one"
        raise ValueError(
            f"Column {name!r} held {held} in training, but has {now} now. Give the column the time "
            "zone it had, or none if it had none."
        )
    return seconds


def _check_levels(levels: list[Level | None], feature: FeatureInfo) -> None:
    """Refuse text where training had numbers, and the other way round."""
    given = [level for level in levels if level is not None]
    known = feature.categories or ()
    if not given or not known:
        return
    is_text, was_text = ({isinstance(level, str) for level in each} for each in (given, known))
    if is_text.isdisjoint(was_text):
        held = ("text", "numbers") if was_text == {True} else ("numbers", "text")
        raise ValueError(
            f"Column {feature.name!r} held {held[0]} such as {known[0]!r} in training, but holds "
            f"{held[1]} such as {given[0]!r} now. Turn it into {held[0]}, written as in training."
        )


def _warn_of_new(
    codes: Array, levels: list[Level | None], recoded: Array, feature: FeatureInfo
) -> None:
    """Say that most values are categories that training has not seen."""
    if not (recoded == MISSING_CODE).any():
        return
    is_given = np.array([level is not None for level in levels] + [False])[codes]
    n_given = int(np.count_nonzero(is_given))
    n_new = int(np.count_nonzero(is_given & (recoded == MISSING_CODE)))
    if n_given >= LEAST_TO_WARN and n_new > n_given / 2:
        warnings.warn(
            f"Column {feature.name!r}: {n_new:,} of {n_given:,} values are categories that "
            "training has not seen; they are treated as missing. Check that the column is written "
            "as it was in training.",
            UserWarning,
            stacklevel=2,
        )


# From any input to named columns


def _open(X: Any, min_rows: int) -> OpenTable:
    """Find the columns of `X`, without reading them."""
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


# Which columns are categorical


def _asked_categorical(categorical_features: Any, source: OpenTable) -> list[bool] | None:
    """Whether each column is categorical, as asked for; None leaves it to the dtypes."""
    n_features = len(source.names)
    if categorical_features is None:
        return [False] * n_features
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            raise ValueError(
                "categorical_features must be 'from_dtype', None or an array-like, "
                f"got {categorical_features!r}. For a single column, pass a list."
            )
        return None if source.is_frame else [False] * n_features

    asked = list(categorical_features) if isinstance(categorical_features, Iterable) else [None]
    if asked and all(isinstance(item, bool | np.bool_) for item in asked):
        if len(asked) != n_features:
            raise ValueError(
                f"categorical_features is a mask of length {len(asked)}, "
                f"but X has {n_features} features."
            )
        return [bool(item) for item in asked]
    if not (all(isinstance(item, str) for item in asked) or all(map(is_index, asked))):
        raise TypeError(
            "categorical_features must be 'from_dtype', None, or an array-like of column names "
            "(str), of column indices (int) or of one boolean per column."
        )
    chosen = set(map(feature_finder(source.names, "categorical_features"), asked))
    return [j in chosen for j in range(n_features)]


def _has_categorical_dtype(values: Values, name: str) -> bool:
    return _kind_of(values, name) in (_Kind.BOOLEAN, _Kind.TEXT)


def _has_whole_dtype(values: Values) -> bool:
    if isinstance(values, nw.Series):
        return values.dtype.is_integer()
    return values.dtype.kind in "iu"


# What a column holds


class _Kind(Enum):
    NUMBER = auto()
    BOOLEAN = auto()
    TEXT = auto()  # strings, or a data frame's categories of any type
    MIXED = auto()  # strings as well as numbers
    DATE = auto()  # dates, with or without a time of day


_KIND_OF_NUMPY = {
    "b": _Kind.BOOLEAN,
    "i": _Kind.NUMBER,
    "u": _Kind.NUMBER,
    "f": _Kind.NUMBER,
    "U": _Kind.TEXT,
    "T": _Kind.TEXT,
    "M": _Kind.DATE,
}


def _kind_of(values: Values, name: str) -> _Kind:
    """Tell what a column holds; refuse what is neither a number nor a category."""
    if isinstance(values, nw.Series):
        if values.dtype.is_numeric():
            return _Kind.NUMBER
        if isinstance(values.dtype, nw.Boolean):
            return _Kind.BOOLEAN
        if isinstance(values.dtype, nw.String | nw.Categorical | nw.Enum):
            return _Kind.TEXT
        if isinstance(values.dtype, nw.Date | nw.Datetime):
            return _Kind.DATE
        raise _unsupported(name, str(values.dtype))
    if values.dtype.kind == "O":
        return _kind_of_objects(values, name)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} is {values.dtype}.")
    if values.dtype.kind not in _KIND_OF_NUMPY:
        raise _unsupported(name, str(values.dtype))
    return _KIND_OF_NUMPY[values.dtype.kind]


def _kind_of_objects(values: Array, name: str) -> _Kind:
    types = set(map(type, values))
    kinds = {_kind_of_type(kind, name) for kind in types if not is_missing_type(kind)}
    if kinds == {_Kind.TEXT, _Kind.NUMBER} and _only_nan_beside_text(values):
        return _Kind.TEXT
    if _Kind.DATE in kinds:
        if kinds == {_Kind.DATE} or all(map(_is_date_or_missing, values)):
            return _Kind.DATE
        raise TypeError(
            f"Column {name!r} holds dates and other values. Convert all of them to dates, for "
            "example with pandas.to_datetime."
        )
    if kinds <= {_Kind.NUMBER, _Kind.BOOLEAN}:
        return _Kind.BOOLEAN if kinds == {_Kind.BOOLEAN} else _Kind.NUMBER
    return _Kind.TEXT if kinds == {_Kind.TEXT} else _Kind.MIXED


def _kind_of_type(kind: type, name: str) -> _Kind:
    if issubclass(kind, str):
        return _Kind.TEXT
    if issubclass(kind, bool | np.bool_):
        return _Kind.BOOLEAN
    if issubclass(kind, numbers.Real | Decimal):
        return _Kind.NUMBER
    if issubclass(kind, DATES):
        return _Kind.DATE
    raise _unsupported(name, kind.__name__)


def _only_nan_beside_text(values: Array) -> bool:
    """Tell whether NaN, which pandas writes for a missing string, is the only number."""
    return all(isinstance(value, str) or is_missing(value) for value in values)


def _is_date_or_missing(value: Any) -> bool:
    return isinstance(value, DATES) or is_missing(value)


def _unsupported(name: str, held: str) -> TypeError:
    if re.match(r"date|time|duration|period", held, re.IGNORECASE):
        return TypeError(
            f"Column {name!r} holds {held} values, but an argument must be a string, a bool or a "
            "number, or a date that is no category. Turn the column into a number or a category "
            "first: shapetree.date_parts makes year, month, weekday and hour of dates, hours of "
            "times of day, and days of durations."
        )
    return TypeError(
        f"Column {name!r} holds {held} values, but an argument must be a string, a bool or a "
        "number. Turn the column into a number or a category first."
    )


# Numbers


NOT_NUMBERS = {
    _Kind.TEXT: "text or categories",
    _Kind.MIXED: "both text and numbers",
    _Kind.DATE: "dates",
}


def _as_numbers(values: Values, name: str, advice: str) -> Array:
    """Read a column as float32 or float64, as a view if it is already that."""
    kind = _kind_of(values, name)
    if kind in NOT_NUMBERS:
        held = NOT_NUMBERS[kind]
        raise ValueError(f"Column {name!r} holds {held} where numbers are expected. {advice}")
    if isinstance(values, nw.Series):
        values = _series_to_numpy(values)
    if values.dtype.kind == "O":
        return _objects_to_floats(values)
    # float32 wherever it is exact: half the memory to read.
    dtype = np.float32 if np.can_cast(values.dtype, np.float32) else np.float64
    return np.require(values, dtype, ["ALIGNED"])


def _series_to_numpy(series: nw.Series[Any]) -> Array:
    if series.dtype.is_decimal() or isinstance(series.dtype, nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)  # NumPy has no such type
    return series.to_numpy()


def _objects_to_floats(values: Array) -> Array:
    # NumPy reads None as NaN, but stumbles over the missing values of pandas.
    if any(is_missing_type(kind) for kind in set(map(type, values)) - {type(None)}):
        values = np.array([None if is_missing(value) else value for value in values], object)
    return values.astype(np.float64)


# Dates


def _as_dates(values: Values, name: str) -> tuple[Array, DateKind]:
    """Read a column of dates as seconds since 1970, and tell what kind of dates they are."""
    if isinstance(values, nw.Series):
        is_zoned = getattr(values.dtype, "time_zone", None) is not None
        moments = values.cast(nw.Datetime("us")) if isinstance(values.dtype, nw.Date) else values
        seconds = moments.dt.timestamp("us").cast(nw.Float64).to_numpy() / 1e6
    elif values.dtype.kind == "M":
        seconds, is_zoned = seconds_of_array(values), False
    else:
        known = [value for value in values if not is_missing(value)]
        is_zoned = any(map(has_zone, known))
        if is_zoned and not all(map(has_zone, known)):
            raise ValueError(
                f"Column {name!r} holds dates with and without a time zone. Give all of them one, "
                "or none."
            )
        listed = [np.nan if is_missing(value) else seconds_of(value) for value in values]
        seconds = np.array(listed, dtype=np.float64)
    return np.ascontiguousarray(seconds, np.float64), kind_of(seconds, is_zoned)


# Categories


def _factorize(values: Values, name: str) -> tuple[Array, list[Level | None]]:
    """Give each row's position in a list of levels, in which None or -1 stand for missing."""
    kind = _kind_of(values, name)
    if isinstance(values, nw.Series) and (values.dtype.is_float() or values.dtype.is_decimal()):
        values = _series_to_numpy(values)
    if isinstance(values, nw.Series) and len(values) <= FEW_ROWS:
        codes, levels = _factorize_objects(values.to_list())
    elif isinstance(values, nw.Series):
        codes, levels = _factorize_series(values)
    elif values.dtype.kind == "O" or kind is _Kind.TEXT:
        codes, levels = _factorize_objects(values.tolist())
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        levels = distinct.tolist()
    return codes, [None if is_missing(level) else _plain(level, name) for level in levels]


def _factorize_series(series: nw.Series[Any]) -> tuple[Array, list[Any]]:
    if series.implementation.is_pandas() and isinstance(series.dtype, nw.Categorical | nw.Enum):
        return _factorize_coded(series.to_native().cat)
    if isinstance(series.dtype, nw.String) and series.implementation.is_pyarrow():
        series = series.cast(nw.String)  # Arrow cannot look up its string views
    codes = np.full(len(series), MISSING_CODE, np.int32)
    is_present = ~series.is_null()
    present = series.filter(is_present)
    levels = present.unique().to_list()
    if levels:
        positions = present.replace_strict(levels, [*range(len(levels))], return_dtype=nw.Int32)
        codes[is_present.to_numpy()] = positions.to_numpy()
    return codes, levels


def _factorize_coded(coded: Any) -> tuple[Array, list[Any]]:
    """The same for categories of pandas, which has codes for them; None for those without rows."""
    codes = coded.codes.to_numpy().astype(np.int32)  # MISSING_CODE where a value is missing
    n_rows = np.bincount(codes + 1, minlength=len(coded.categories) + 1)[1:].tolist()
    categories = coded.categories.tolist()
    return codes, [level if n else None for level, n in zip(categories, n_rows, strict=True)]


def _factorize_objects(values: list[Any]) -> tuple[Array, list[Any]]:
    levels = list(dict.fromkeys(values))
    position = {level: code for code, level in enumerate(levels)}
    return np.fromiter(map(position.__getitem__, values), np.int32, len(values)), levels


def _plain(level: Any, name: str) -> Level:
    """Turn a level into a plain Python value."""
    if isinstance(level, bool | np.bool_):
        return bool(level)
    if isinstance(level, numbers.Integral):
        return int(level)
    if isinstance(level, numbers.Real | Decimal):
        return float(level)
    if isinstance(level, str):
        return str.__str__(level)  # the text itself, also for a member of an enumeration
    raise _unsupported(name, type(level).__name__)


def _own_order(values: Values, name: str) -> tuple[Level, ...] | None:
    """All categories of a type that orders them; None for others."""
    if not isinstance(values, nw.Series):
        return None
    native = values.to_native()
    if values.implementation.is_pyarrow():
        if not getattr(native.type, "ordered", False):
            return None
        declared = native.combine_chunks().dictionary.to_pylist()
    elif getattr(native.dtype, "ordered", False):  # pandas
        declared = list(native.dtype.categories)
    elif isinstance(values.dtype, nw.Enum):  # polars
        declared = list(values.dtype.categories)
    else:
        return None
    return tuple(_plain(level, name) for level in declared)


def sorted_categories(levels: Iterable[Level | None]) -> tuple[Level, ...]:
    """Distinct levels as the categories of a feature: in ascending order, numbers before text."""
    distinct = {level for level in levels if level is not None}
    return tuple(sorted(distinct, key=lambda level: (isinstance(level, str), level)))


def _recode(codes: Array, levels: Sequence[Level | None], categories: tuple[Level, ...]) -> Array:
    """Turn positions in `levels` into positions in `categories`."""
    if levels == categories:
        return codes
    code_of: dict[Level | None, int] = {level: code for code, level in enumerate(categories)}
    # One entry more than levels, where the position -1 of a missing value leads.
    new_code = [code_of.get(level, MISSING_CODE) for level in levels] + [MISSING_CODE]
    return np.array(new_code, dtype=np.int32)[codes]
