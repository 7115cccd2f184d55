"""One column of a table: what kind of values it holds, read as numbers, dates or categories."""

import numbers
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from enum import Enum, auto
from itertools import pairwise
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import numpy.typing as npt

from shapetree.data._missing import MISSING_CODE, is_missing, is_missing_type
from shapetree.data._moments import DATES, DateKind, has_zone, kind_of, seconds_of, seconds_of_array

Level: TypeAlias = str | bool | int | float
Array: TypeAlias = npt.NDArray[Any]
Values: TypeAlias = Array | nw.Series[Any]
# Whole numbers up to this are floats, too.
MAX_EXACT = 2**53
# The greatest number that is not infinite.
GREATEST = sys.float_info.max
# Rows that Python has looked up before a data frame has begun to.
FEW_ROWS = 64


class ColumnKind(Enum):
    """What a column holds."""

    NUMBER = auto()
    BOOLEAN = auto()
    TEXT = auto()  # strings, or a data frame's categories of any type
    MIXED = auto()  # strings as well as numbers
    DATE = auto()  # dates, with or without a time of day


_KIND_OF_NUMPY = {
    "b": ColumnKind.BOOLEAN,
    "i": ColumnKind.NUMBER,
    "u": ColumnKind.NUMBER,
    "f": ColumnKind.NUMBER,
    "U": ColumnKind.TEXT,
    "T": ColumnKind.TEXT,
    "M": ColumnKind.DATE,
}


def kind_of_column(values: Values, name: str) -> ColumnKind:
    """Tell what a column holds; refuse what is neither a number nor a category."""
    if isinstance(values, nw.Series):
        if values.dtype.is_numeric():
            return ColumnKind.NUMBER
        if isinstance(values.dtype, nw.Boolean):
            return ColumnKind.BOOLEAN
        if isinstance(values.dtype, nw.String | nw.Categorical | nw.Enum):
            return ColumnKind.TEXT
        if isinstance(values.dtype, nw.Date | nw.Datetime):
            return ColumnKind.DATE
        raise _unsupported(name, str(values.dtype))
    if values.dtype.kind == "O":
        return _kind_of_objects(values, name)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} is {values.dtype}.")
    if values.dtype.kind not in _KIND_OF_NUMPY:
        raise _unsupported(name, str(values.dtype))
    return _KIND_OF_NUMPY[values.dtype.kind]


def are_whole(numbers: Array) -> bool:
    """Whether all numbers that are known are whole, whatever type they have; no if none is."""
    is_any_known = False
    # The first few nearly always suffice, and the rest needs little memory at a time.
    starts = [0, *range(64, len(numbers), 1 << 16), len(numbers)]
    for first, last in pairwise(starts):
        known = numbers[first:last]
        known = known[~np.isnan(known)]
        if not (known == np.floor(known)).all():
            return False
        is_any_known |= len(known) > 0
    return is_any_known


def has_text_dtype(values: Values) -> bool:
    """Whether a column's type is that of any text, rather than of categories."""
    if isinstance(values, nw.Series):
        return isinstance(values.dtype, nw.String)
    return values.dtype.kind in "OUT"


def _kind_of_objects(values: Array, name: str) -> ColumnKind:
    types = set(map(type, values))
    kinds = {_kind_of_type(kind, name) for kind in types if not is_missing_type(kind)}
    if kinds == {ColumnKind.TEXT, ColumnKind.NUMBER} and _only_nan_beside(str, values):
        return ColumnKind.TEXT
    if ColumnKind.DATE in kinds:
        if kinds == {ColumnKind.DATE} or all(map(_is_date_or_missing, values)):
            return ColumnKind.DATE
        raise TypeError(
            f"Column {name!r} holds dates and other values. Convert all of them to dates, for "
            "example with pandas.to_datetime."
        )
    if kinds <= {ColumnKind.NUMBER, ColumnKind.BOOLEAN}:
        is_boolean = ColumnKind.BOOLEAN in kinds and _only_nan_beside(bool | np.bool_, values)
        return ColumnKind.BOOLEAN if is_boolean else ColumnKind.NUMBER
    return ColumnKind.TEXT if kinds == {ColumnKind.TEXT} else ColumnKind.MIXED


def _kind_of_type(kind: type, name: str) -> ColumnKind:
    if issubclass(kind, str):
        return ColumnKind.TEXT
    if issubclass(kind, bool | np.bool_):
        return ColumnKind.BOOLEAN
    if issubclass(kind, numbers.Real | Decimal):
        return ColumnKind.NUMBER
    if issubclass(kind, DATES):
        return ColumnKind.DATE
    raise _unsupported(name, kind.__name__)


def _only_nan_beside(kind: Any, values: Array) -> bool:
    """Whether NaN, which pandas writes for a missing value of any type, is the only number."""
    return all(isinstance(value, kind) or is_missing(value) for value in values)


def _is_date_or_missing(value: Any) -> bool:
    return isinstance(value, DATES) or is_missing(value)


def _unsupported(name: str, held: str) -> TypeError:
    if re.match(r"date|time|duration|period", held, re.IGNORECASE):
        return TypeError(
            f"Column {name!r} holds {held} values, but an argument must be a string, a bool or a "
            "number, or a date that is not a category. Turn the column into a number or a category "
            "first: shapetree.date_parts makes year, month, weekday and hour of dates, hours of "
            "times of day, and days of durations."
        )
    how = ""
    if re.match(r"list|array|ndarray|tuple|set|dict|struct", held, re.IGNORECASE):
        how = ": give each element a column of its own, or take their count or mean"
    return TypeError(
        f"Column {name!r} holds {held} values, but an argument must be a string, a bool or a "
        f"number. Turn the column into a number or a category first{how}."
    )


# --- numbers ---

NOT_NUMBERS = {
    ColumnKind.TEXT: "text or categories",
    ColumnKind.MIXED: "both text and numbers",
    ColumnKind.DATE: "dates",
}


def read_numbers(values: Values, name: str, advice: str) -> Array:
    """Read a column as float32 or float64, as a view if it is already that."""
    kind = kind_of_column(values, name)
    if kind in NOT_NUMBERS:
        held = NOT_NUMBERS[kind]
        raise ValueError(f"Column {name!r} holds {held} where numbers are expected. {advice}")
    if isinstance(values, nw.Series):
        values = series_to_numpy(values)
    if values.dtype.kind == "O":
        return _objects_to_floats(values)
    # float32 wherever it is exact: half the memory to read.
    dtype = np.float32 if np.can_cast(values.dtype, np.float32) else np.float64
    return np.require(values, dtype, ["ALIGNED"])


def check_digits(values: Values, what: str, advice: str) -> None:
    """Refuse whole numbers with more digits than a float has."""
    if isinstance(values, nw.Series):
        if not values.dtype.is_integer() or len(values) == 0:
            return
        least, greatest = values.min(), values.max()
        if is_missing(least) or max(-int(least), int(greatest)) <= MAX_EXACT:
            return
        whole = values.drop_nulls().to_list()
    elif values.dtype.kind in "iu":
        if len(values) == 0 or max(-int(values.min()), int(values.max())) <= MAX_EXACT:
            return
        whole = values.tolist()
    elif values.dtype.kind == "O":
        whole = [value for value in values.tolist() if isinstance(value, int)]
    else:
        return
    rounded = next((value for value in whole if not _is_float(value)), None)
    if rounded is not None:
        shown = rounded if abs(rounded) < 10**30 else "one of more than 30 digits"
        raise ValueError(
            f"{what} holds whole numbers of so many digits that a float would round them, such as "
            f"{shown}. {advice}"
        )


def _is_float(whole: int) -> bool:
    """Whether a whole number is a float, too."""
    try:
        return int(float(whole)) == whole
    except OverflowError:
        return False


def series_to_numpy(series: nw.Series[Any]) -> Array:
    if series.dtype.is_decimal() or isinstance(series.dtype, nw.Int128 | nw.UInt128):
        series = series.cast(nw.Float64)  # NumPy has no such type
    return series.to_numpy()


def _objects_to_floats(values: Array) -> Array:
    # NumPy reads None as NaN, but stumbles over the missing values of pandas.
    if any(is_missing_type(kind) for kind in set(map(type, values)) - {type(None)}):
        values = np.array([None if is_missing(value) else value for value in values], object)
    return values.astype(np.float64)


# --- dates ---


def read_dates(values: Values, name: str) -> tuple[Array, DateKind]:
    """Read a column of dates as seconds since 1970, and find what kind of dates they are."""
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


# --- categories ---


def factorize(values: Values, name: str) -> tuple[Array, list[Level | None]]:
    """Give each row's position in a list of levels, in which None or -1 stand for missing."""
    kind = kind_of_column(values, name)
    if isinstance(values, nw.Series) and (values.dtype.is_float() or values.dtype.is_decimal()):
        values = series_to_numpy(values)
    if isinstance(values, nw.Series) and len(values) <= FEW_ROWS:
        codes, levels = _factorize_objects(values.to_list())
    elif isinstance(values, nw.Series):
        codes, levels = _factorize_series(values)
    elif values.dtype.kind == "O" or kind is ColumnKind.TEXT:
        codes, levels = _factorize_objects(values.tolist())
    else:
        distinct, codes = np.unique(values, return_inverse=True)
        # Lists of NumPy have dates as numbers if these are counted in nanoseconds.
        levels = [*distinct] if kind is ColumnKind.DATE else distinct.tolist()
    if set(map(type, levels)) <= {str, type(None)}:
        return codes, levels  # there may be very many, and they are plain
    return codes, [None if is_missing(level) else _plain(level, name) for level in levels]


def _factorize_series(series: nw.Series[Any]) -> tuple[Array, list[Any]]:
    if series.implementation.is_pandas() and isinstance(series.dtype, nw.Categorical | nw.Enum):
        coded = series.to_native().cat
        return _seen_codes(coded.codes.to_numpy(), coded.categories.tolist())
    if series.implementation.is_pyarrow() and not isinstance(series.dtype, nw.Boolean):
        return _factorize_arrow(series)
    codes = np.full(len(series), MISSING_CODE, np.int32)
    is_present = ~series.is_null()
    present = series.filter(is_present)
    levels = present.unique().to_list()
    if levels:
        positions = present.replace_strict(levels, [*range(len(levels))], return_dtype=nw.Int32)
        codes[is_present.to_numpy()] = positions.to_numpy()
    return codes, levels


def _factorize_arrow(series: nw.Series[Any]) -> tuple[Array, list[Any]]:
    """The same for columns of Arrow, which looks values up by itself."""
    if isinstance(series.dtype, nw.String):
        series = series.cast(nw.String)  # Arrow cannot look up its string views
    column = series.to_native()
    if not hasattr(column.type, "index_type"):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    codes = [chunk.indices.cast("int32").fill_null(MISSING_CODE).to_numpy() for chunk in chunks]
    return _seen_codes(np.concatenate(codes), chunks[0].dictionary.to_pylist())


def _seen_codes(codes: Array, levels: list[Any]) -> tuple[Array, list[Any]]:
    """Codes, which are `MISSING_CODE` for missing values, and None for levels without rows."""
    n_rows = np.bincount(codes + 1, minlength=len(levels) + 1)[1:]
    if not n_rows.all():
        levels = [level if n else None for level, n in zip(levels, n_rows.tolist(), strict=True)]
    return codes.astype(np.int32, copy=False), levels


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


def own_order(values: Values, name: str) -> tuple[Level, ...] | None:
    """All categories of a type that orders them; None for others."""
    if not isinstance(values, nw.Series):
        return None
    native = values.to_native()
    if isinstance(values.dtype, nw.Enum):
        declared = values.dtype.categories
    elif values.implementation.is_pyarrow() and getattr(native.type, "ordered", False):
        declared = native.combine_chunks().dictionary.to_pylist()
    else:
        return None
    return tuple(_plain(level, name) for level in declared)


def sorted_categories(levels: Iterable[Level | None]) -> tuple[Level, ...]:
    """Distinct levels as the categories of a feature: in ascending order, numbers before text."""
    distinct = {level for level in levels if level is not None}
    if set(map(type, distinct)) == {str}:
        return tuple(sorted(distinct))
    return tuple(sorted(distinct, key=lambda level: (isinstance(level, str), level)))


def level_codes(categories: tuple[Level, ...]) -> dict[Level | None, int]:
    """Positions of categories."""
    return {level: code for code, level in enumerate(categories)}


def recode(
    codes: Array,
    levels: Sequence[Level | None],
    categories: tuple[Level, ...],
    code_of: Mapping[Level | None, int] | None = None,
) -> Array:
    """Turn positions in `levels` into positions in `categories`; their codes may be known."""
    if levels == categories:
        return codes
    code_of = level_codes(categories) if code_of is None else code_of
    # One entry more than levels, where the position -1 of a missing value leads.
    new_code = [code_of.get(level, MISSING_CODE) for level in levels] + [MISSING_CODE]
    return np.array(new_code, dtype=np.int32)[codes]
