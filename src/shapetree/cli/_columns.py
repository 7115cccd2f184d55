"""What columns hold: guessed from their values when a tree is fitted."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from shapetree.cli._dates import TWO_WAYS, dates_of, look_like_dates
from shapetree.cli._read import RawTable
from shapetree.data._columns import MAX_EXACT
from shapetree.data._table import odd_texts

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# What stands for a missing value in CSV files: as in pandas, plus signs that people use.
MISSING = frozenset(
    (
        "",
        "NA",
        "N/A",
        "n/a",
        "#N/A",
        "#NA",
        "<NA>",
        "NaN",
        "nan",
        "NULL",
        "null",
        "None",
        "?",
        "-",
        ".",
    )
)
TRUTH = {"true": True, "false": False}
PLAIN = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(inf|Inf|Infinity)")
DECIMAL_COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})*(\.\d+)?")
WHOLE = re.compile(r"[+-]?\d+")
PERCENT = re.compile(r"(.*\S)\s*%")
# A sign of money before or after an amount, and a minus sign before either.
MONEY = r"[$€£¥]|USD|EUR|GBP|CHF|JPY"
MONEY_FIRST = re.compile(rf"([+-]?)({MONEY})\s*([+-]?[\d.,]+)")
MONEY_LAST = re.compile(rf"([+-]?)([\d.,]+)\s*({MONEY})")
# Money whose amounts are written with a comma between thousands; euros are written either way.
ENGLISH_MONEY = frozenset(("$", "£", "¥", "USD", "GBP", "JPY"))
# Fewest rows for which numbers that follow each other are taken for row numbers.
LEAST_COUNTED = 20
# Text is suspicious if it has this many distinct values, and every other row has its own.
MANY_LEVELS = 50
# Share of rows with a unique value above which a column identifies rows (a few may be duplicated),
# and the fewest rows for which this can be judged.
NEARLY_ALL = 0.95
LEAST_NAMED = 50


class Kind(StrEnum):
    """What a column holds."""

    NUMBER = "number"
    WHOLE = "whole number"
    BOOLEAN = "true or false"
    CATEGORY = "category"
    DATE = "date"
    OTHER = "other"
    EMPTY = "empty"


@dataclass(frozen=True)
class Column:
    """A column, read.

    Attributes
    ----------
    name : str
    kind : Kind
    values : pandas Series
        Numbers, booleans, dates or categories; None where the column cannot be used.
    n_distinct, n_missing : int
    example : str
    reason : str or None
        Why a tree should not look at it; None if it may.
    odd : tuple of str
        Texts that keep the column from being numbers, if nearly all others are.
    """

    name: str
    kind: Kind
    values: pd.Series | None
    n_distinct: int
    n_missing: int
    example: str
    reason: str | None = None
    odd: tuple[str, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.kind in (Kind.NUMBER, Kind.WHOLE)


@dataclass(frozen=True)
class Texts:
    """A column of text by its distinct values.

    Attributes
    ----------
    distinct : list of str
        Without spaces around them, and without those that stand for missing values.
    codes : int array
        Position of each row's text in `distinct`; -1 for a missing value.
    """

    distinct: list[str]
    codes: np.ndarray

    @property
    def is_missing(self) -> np.ndarray:
        """Which rows have no value."""
        return self.codes < 0

    def map(self, values: Sequence[Any], dtype: Any, missing: Any) -> np.ndarray:
        """For each row what stands for its text."""
        table = np.empty(len(values) + 1, dtype)
        table[:-1] = values
        table[-1] = missing
        return table[self.codes]


def texts_of(column: pa.ChunkedArray, missing: frozenset[str] = MISSING) -> Texts:
    """A column of any type as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(column.cast(pa.string()))
    encoded = trimmed.dictionary_encode().combine_chunks()
    every = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(len(every)).to_numpy(zero_copy_only=False)
    kept = [text for text in every if text not in missing]
    place = {text: code for code, text in enumerate(kept)}
    new_code = np.array([place.get(text, -1) for text in every] + [-1], dtype=np.int32)
    return Texts(kept, new_code[codes])


def plain_numbers(column: pa.ChunkedArray) -> np.ndarray | None:
    """A column of numbers in the usual style, without a look at single texts; None if it is not."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        if pa.types.is_string(column.type):
            texts = pc.utf8_trim_whitespace(column)
            gone = pc.is_in(texts, value_set=pa.array(sorted(MISSING)))
            column = pc.if_else(gone, pa.scalar(None, pa.string()), texts)
        return np.asarray(column.cast(pa.float64()).to_numpy())
    except pa.ArrowException:
        return None


def read_columns(table: RawTable) -> list[Column]:
    """Guess what the columns of a file hold."""
    return [read_column(name, values, table) for name, values in table.columns.items()]


def read_column(name: str, values: pa.ChunkedArray, table: RawTable) -> Column:
    """Guess what a column holds."""
    if table.separator is not None:
        column = _column_of_texts(name, texts_of(values), table.separator)
    else:
        column = _column_of_typed(name, values)
    return replace(column, reason=_reason(column, table.n_rows))


# --- columns of CSV files ---


def _column_of_texts(name: str, texts: Texts, separator: str) -> Column:
    kind, values = _read_texts(texts, separator)
    return Column(
        odd=_odd_texts(texts.distinct, separator) if kind is Kind.CATEGORY else (),
        name=name,
        kind=kind,
        values=values,
        n_distinct=len(texts.distinct),
        n_missing=int(texts.is_missing.sum()),
        example=next((texts.distinct[code] for code in texts.codes if code >= 0), ""),
    )


def _read_texts(texts: Texts, separator: str) -> tuple[Kind, pd.Series | None]:
    distinct = texts.distinct
    if not distinct:
        return Kind.EMPTY, None
    if all(text.lower() in TRUTH for text in distinct):
        return Kind.BOOLEAN, _booleans(texts)
    # Numbers that would be rounded, and so be confused, name something.
    if not any(map(_is_code, distinct)) and sum(map(_is_long, distinct)) * 2 <= len(distinct):
        numbers = numbers_of(distinct, separator)
        if None not in numbers:
            return _as_numbers(texts, [number for number in numbers if number is not None])
    if look_like_dates(distinct):
        return Kind.DATE, as_dates(texts)
    return Kind.CATEGORY, as_categories(texts)


def _odd_texts(texts: list[str], separator: str) -> tuple[str, ...]:
    """Texts among many numbers that are no numbers; none if nothing is odd."""
    are_numbers = [number is not None for number in numbers_of(texts, separator)]
    return tuple(odd_texts(texts, are_numbers))


def _is_code(text: str) -> bool:
    """Whether digits are a post code or the like: 01099 is not 1099."""
    return text[0] == "0" and len(text) > 1 and text.isdecimal()


def _is_long(text: str) -> bool:
    """Whether these are more digits than a number can hold."""
    return 15 < len(text) < 300 and text.isdecimal() and int(float(text)) != int(text)


def numbers_of(texts: Sequence[str], separator: str | None) -> list[float | None]:
    """The numbers that texts stand for, if all are written in one style; None otherwise.

    A comma is a decimal comma, unless it separates the values of the file: then it is between
    thousands. Percentages and amounts of money are the numbers that are written, if all of them
    have the same sign; ambiguous amounts do not count as numbers.

    Examples
    --------
    >>> numbers_of(["1.5", "2"], ","), numbers_of(["1,5", "2"], ";"), numbers_of(["1,500"], ",")
    ([1.5, 2.0], [1.5, 2.0], [1500.0])
    >>> numbers_of(["1", "one"], ",")
    [1.0, None]
    >>> numbers_of(["12.5 %", "3%"], ","), numbers_of(["$1,234.50", "-$7"], ";")
    ([12.5, 3.0], [1234.5, -7.0])
    >>> numbers_of(["€ 3.000"], ";"), numbers_of(["€ 3.000", "€ 12,50"], ";")
    ([None], [3000.0, 12.5])
    """
    plain = _plain_numbers(texts)
    if plain is not None:
        return plain
    percentages = [PERCENT.fullmatch(text) for text in texts]
    if all(percentages):
        return numbers_of([found[1] for found in percentages if found], separator)
    amounts = _amounts(texts)
    if amounts is not None:
        return amounts
    style = THOUSANDS if separator == "," else DECIMAL_COMMA
    as_plain = _without_commas if separator == "," else _with_decimal_comma
    styled = [float(as_plain(text)) if style.fullmatch(text) else None for text in texts]
    if None not in styled:
        return styled
    return [float(text) if PLAIN.fullmatch(text) else None for text in texts]


def _plain_numbers(texts: Sequence[str]) -> list[float | None] | None:
    """Numbers in the usual style, all at once, which is fast; None if some are not."""
    import pyarrow as pa

    try:
        return list(pa.array(texts, pa.string()).cast(pa.float64()).to_pylist())
    except pa.ArrowInvalid:
        return None


def _amounts(texts: Sequence[str]) -> list[float | None] | None:
    """Amounts in one currency; None for each if it is not clear how to read them.

    None instead of a list if there is other text among them.
    """
    first = [MONEY_FIRST.fullmatch(text) for text in texts]
    last = [MONEY_LAST.fullmatch(text) for text in texts]
    if all(first):
        found = [(each[2], each[1] + each[3]) for each in first if each]
    elif all(last):
        found = [(each[3], each[1] + each[2]) for each in last if each]
    else:
        return None
    money, amounts = {sign for sign, _ in found}, [amount for _, amount in found]
    if len(money) > 1:
        return None
    readings = [
        [float(read(amount)) for amount in amounts]
        for style, read in (
            (PLAIN, str),
            (THOUSANDS, _without_commas),
            (DECIMAL_COMMA, _with_decimal_comma),
        )
        if all(map(style.fullmatch, amounts))
    ]
    if money <= ENGLISH_MONEY:
        readings = readings[:1]
    is_clear = readings and all(reading == readings[0] for reading in readings)
    return list(readings[0]) if is_clear else [None] * len(texts)


def _without_commas(text: str) -> str:
    return text.replace(",", "")


def _with_decimal_comma(text: str) -> str:
    return text.replace(".", "").replace(",", ".")


def _as_numbers(texts: Texts, numbers: list[float]) -> tuple[Kind, pd.Series]:
    import pandas as pd

    is_whole = all(map(WHOLE.fullmatch, texts.distinct)) and max(map(abs, numbers)) < MAX_EXACT
    if not is_whole:
        return Kind.NUMBER, pd.Series(texts.map(numbers, np.float64, np.nan))
    values = texts.map([int(number) for number in numbers], np.int64, 0)
    if not texts.is_missing.any():
        return Kind.WHOLE, pd.Series(values)
    return Kind.WHOLE, pd.Series(pd.arrays.IntegerArray(values, texts.is_missing.copy()))


def _booleans(texts: Texts) -> pd.Series:
    import pandas as pd

    values = texts.map([TRUTH[text.lower()] for text in texts.distinct], bool, False)
    if not texts.is_missing.any():
        return pd.Series(values)
    return pd.Series(pd.arrays.BooleanArray(values, texts.is_missing.copy()))


def as_dates(texts: Texts) -> pd.Series | None:
    """Texts as dates, in UTC if they have a time zone; None if they are ambiguous."""
    import pandas as pd

    dates = dates_of(texts.distinct)
    if dates is None:
        return None
    is_zoned = any(date.tzinfo is not None for date in dates)
    plain = [date.replace(tzinfo=None) for date in dates]
    series = pd.Series(texts.map(plain, "M8[us]", np.datetime64("NaT")))
    return series.dt.tz_localize("UTC") if is_zoned else series


def as_categories(texts: Texts) -> pd.Series:
    """Texts as categories."""
    import pandas as pd

    return pd.Series(pd.Categorical.from_codes(texts.codes, categories=texts.distinct))


# --- columns of Parquet files, which have types ---


def _column_of_typed(name: str, values: pa.ChunkedArray) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    kind = _kind_of_type(values.type)
    read = _read_typed(kind, values)
    n_missing = values.null_count if read is None else int(read.isna().sum())
    if n_missing == len(values):
        kind, read = Kind.EMPTY, None
    try:
        n_distinct = pc.count_distinct(values).as_py()
    except pa.ArrowNotImplementedError:
        n_distinct = 0
    example = next(
        (str(value) for value in values.slice(0, 1000).to_pylist() if value is not None), ""
    )
    return Column(name, kind, read, n_distinct, n_missing, example)


def _kind_of_type(arrow_type: pa.DataType) -> Kind:
    from pyarrow import types

    known: list[tuple[Callable[[Any], bool], Kind]] = [
        (types.is_boolean, Kind.BOOLEAN),
        (types.is_integer, Kind.WHOLE),
        (types.is_floating, Kind.NUMBER),
        (types.is_decimal, Kind.NUMBER),
        (types.is_string, Kind.CATEGORY),
        (types.is_large_string, Kind.CATEGORY),
        (types.is_timestamp, Kind.DATE),
        (types.is_date, Kind.DATE),
        (types.is_null, Kind.EMPTY),
    ]
    return next((kind for is_type, kind in known if is_type(arrow_type)), Kind.OTHER)


def _read_typed(kind: Kind, values: pa.ChunkedArray) -> pd.Series | None:
    import pandas as pd
    import pyarrow as pa

    if kind is Kind.CATEGORY:
        return as_categories(texts_of(values, frozenset({""})))
    if kind is Kind.NUMBER:
        return pd.Series(values.cast(pa.float64()).to_numpy())
    if kind is Kind.DATE:
        zone = getattr(values.type, "tz", None)
        return values.cast(pa.timestamp("us", zone), safe=False).to_pandas()
    if kind in (Kind.WHOLE, Kind.BOOLEAN):
        has_missing = values.null_count > 0
        name = "boolean" if kind is Kind.BOOLEAN else "Int64"
        frame = values.to_pandas(types_mapper=None)
        return frame.astype(name) if has_missing else frame
    return None


# --- which columns to leave out ---


def _reason(column: Column, n_rows: int) -> str | None:
    """Why a tree should ignore a column, in a few words; None if it should not."""
    if column.kind is Kind.EMPTY:
        return "empty"
    if column.kind is Kind.DATE and column.values is None:
        return TWO_WAYS
    if column.kind is Kind.OTHER:
        return "no numbers or text"
    if column.n_distinct == 1 and column.n_missing == 0:
        return "always the same"
    n_known = n_rows - column.n_missing
    if column.kind is Kind.CATEGORY and column.n_distinct == n_known:
        return "text, all different"
    if column.kind is Kind.CATEGORY and _nearly_all(column.n_distinct, n_known):
        return "text, almost all different"
    if column.kind is Kind.WHOLE and _counts_rows(column):
        return "counts the rows"
    return None


def _counts_rows(column: Column) -> bool:
    values = column.values
    if values is None or column.n_missing or len(values) < LEAST_COUNTED:
        return False
    numbers = values.to_numpy()
    is_next = np.diff(numbers) == 1
    if is_next.all():
        return True
    # Some rows may be duplicates.
    has_no_gap = int(numbers.max()) - int(numbers.min()) + 1 == column.n_distinct
    return (
        has_no_gap and _nearly_all(column.n_distinct, len(numbers)) and is_next.mean() >= NEARLY_ALL
    )


def _nearly_all(n_distinct: int, n_rows: int) -> bool:
    """Whether nearly every row has its own value."""
    return n_rows >= LEAST_NAMED and n_distinct >= NEARLY_ALL * n_rows


def is_like_a_name(column: Column, n_rows: int) -> bool:
    """Whether a column has so many categories that it may identify rows."""
    many = column.n_distinct > max(MANY_LEVELS, (n_rows - column.n_missing) // 2)
    return column.kind is Kind.CATEGORY and many


def forced_category(column: Column, values: pa.ChunkedArray) -> Column:
    """The same column as categories, whatever it looks like."""
    texts = texts_of(values)
    return replace(
        column,
        kind=Kind.CATEGORY,
        values=as_categories(texts),
        n_distinct=len(texts.distinct),
        n_missing=int(texts.is_missing.sum()),
        reason=None if texts.distinct else "empty",
    )


def frame_of(columns: Iterable[Column]) -> pd.DataFrame:
    """Columns side by side."""
    import pandas as pd

    return pd.DataFrame({column.name: column.values for column in columns})
