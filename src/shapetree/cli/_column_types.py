"""What columns hold: guessed from their values when a tree is fitted."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from shapetree.cli._reading import MISSING, TEXT, FileTable, codes_of, encoded
from shapetree.data._columns import MAX_EXACT
from shapetree.data._table import odd_texts

# Patterns for whole texts, as Arrow reads them.
PLAIN = r"^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|inf|Inf|Infinity)$"
DECIMAL_COMMA = r"^[+-]?([0-9]+|[0-9]{1,3}(\.[0-9]{3})+)(,[0-9]+)?([eE][+-]?[0-9]+)?$"
THOUSANDS = r"^[+-]?[0-9]{1,3}(,[0-9]{3})*(\.[0-9]+)?$"
WHOLE = r"^[+-]?[0-9]+$"
PERCENT = r"^(.*\S)\s*%$"
# A sign of money before or after an amount, and a minus sign before either.
MONEY = "[$€£¥]|USD|EUR|GBP|CHF|JPY"
MONEY_FIRST = (rf"^([+-]?)({MONEY})\s*([+-]?[0-9.,]+)$", r"\1\3", r"\2")
MONEY_LAST = (rf"^([+-]?)([0-9.,]+)\s*({MONEY})$", r"\1\2", r"\3")
# Money whose amounts are written with a comma between thousands; euros are written either way.
ENGLISH_MONEY = frozenset(("$", "£", "¥", "USD", "GBP", "JPY"))
# Digits of a post code or the like, 01099 is not 1099, and more digits than a number can hold.
CODE, LONG = r"^0[0-9]+$", r"^[0-9]{16,299}$"
# A day, whose year is first or last; then perhaps a time and a zone.
YEAR_FIRST, YEAR_LAST = (
    r"^([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})",
    r"^([0-9]{1,2})[-/.]([0-9]{1,2})[-/.]([0-9]{4})",
)
ZONE = r" ?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})$"
DATE = (
    rf"({YEAR_FIRST}|{YEAR_LAST})([T ][0-9]{{1,2}}:[0-9]{{2}}(:[0-9]{{2}}([.,][0-9]+)?)?)?"
    rf"({ZONE}|$)"
)
TWO_WAYS = "dates that can be read in two ways"
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
    """A column, read."""

    name: str
    kind: Kind
    # Numbers, booleans, dates or categories; None where the column cannot be used.
    values: pd.Series | None
    n_distinct: int
    n_missing: int
    example: str
    reason: str | None = None  # why a tree should not look at it; None if it may
    # Texts that keep the column from being numbers, if nearly all others are.
    odd: tuple[str, ...] = ()

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers."""
        return self.kind in (Kind.NUMBER, Kind.WHOLE)


def texts_of(column: pa.ChunkedArray, missing: Collection[str] = MISSING) -> pa.DictionaryArray:
    """A column of any type as texts without spaces around them; null for a missing value."""
    if column.type != TEXT:
        column = column.cast(pa.string())
    texts = encoded(column)
    trimmed = pc.utf8_trim_whitespace(texts.dictionary)
    distinct = pc.unique(trimmed).drop_null()
    gone = pc.is_in(distinct, value_set=pa.array(sorted(missing), pa.string()))
    distinct = distinct.filter(pc.invert(gone))
    codes = pc.index_in(trimmed, value_set=distinct).take(texts.indices)
    return pa.DictionaryArray.from_arrays(codes, distinct)


def in_place_of(texts: pa.DictionaryArray, values: pa.Array) -> pa.ChunkedArray:
    """For each row, which of the values stands for its text; null for a missing value."""
    return pa.chunked_array([values.take(texts.indices)])


def read_columns(table: FileTable) -> list[Column]:
    """Find out what the columns of a file hold."""
    return [read_column(name, table) for name in table.rows.column_names]


def read_column(name: str, table: FileTable) -> Column:
    """Find out what a column holds: by its type, and for text of a CSV file by its values."""
    values = table.rows[name]
    if types.is_dictionary(values.type) and values.type != TEXT:
        values = values.cast(values.type.value_type)
    kind, texts = Kind.CATEGORY if values.type == TEXT else _kind_of_type(values.type), None
    odd: tuple[str, ...] = ()
    if kind is Kind.CATEGORY:
        texts = texts_of(values, frozenset({""}) if table.separator is None else MISSING)
        if table.separator is not None:
            kind, distinct = _read_texts(texts.dictionary, table.separator)
            values = None if distinct is None else in_place_of(texts, distinct)
            odd = _odd_texts(texts.dictionary, table.separator) if kind is Kind.CATEGORY else ()
    read = as_categories(texts) if kind is Kind.CATEGORY else _read_typed(kind, values)
    given = values if texts is None else texts
    n_missing = given.null_count if read is None else int(read.isna().sum())
    if n_missing == len(given):
        kind, read = Kind.EMPTY, None
    if texts is not None:
        n_distinct = len(texts.dictionary)
    else:
        n_distinct = 0 if kind in (Kind.OTHER, Kind.EMPTY) else pc.count_distinct(values).as_py()
    known = given.drop_null()
    example = str(known[0].as_py()) if len(known) else ""
    if texts is None and kind is Kind.DATE:
        example = example.replace("+00:00", "Z")
    column = Column(name, kind, read, n_distinct, n_missing, example, odd=odd)
    return replace(column, reason=_reason(column, len(given)))


def _kind_of_type(arrow_type: pa.DataType) -> Kind:
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


def _read_typed(kind: Kind, values: pa.ChunkedArray | None) -> pd.Series | None:
    """Values of a type as pandas holds them; None if a tree cannot read them."""
    if values is None:
        return None
    if kind is Kind.NUMBER:
        return pd.Series(values.cast(pa.float64()).to_numpy())
    if kind is Kind.DATE:
        zone = getattr(values.type, "tz", None)
        return values.cast(pa.timestamp("us", zone), safe=False).to_pandas()
    if kind in (Kind.WHOLE, Kind.BOOLEAN):
        if not values.null_count:
            return values.to_pandas()
        # By themselves, whole numbers would become floats, which may round them.
        nullable = pd.BooleanDtype() if kind is Kind.BOOLEAN else pd.Int64Dtype()
        return pd.Series(nullable.__from_arrow__(values))
    return None


# --- what texts of CSV files hold ---


def _read_texts(texts: pa.StringArray, separator: str) -> tuple[Kind, pa.Array | None]:
    """What texts hold, and their values, unless they are categories."""
    if not len(texts):
        return Kind.EMPTY, None
    is_truth, truths = truths_of(texts)
    if pc.all(is_truth).as_py():
        return Kind.BOOLEAN, truths
    # Numbers that would be rounded, and so be confused, name something.
    long = texts.filter(pc.match_substring_regex(texts, LONG)).to_pylist()
    n_rounded = sum(int(float(text)) != int(text) for text in long)
    if not pc.any(pc.match_substring_regex(texts, CODE)).as_py() and n_rounded * 2 <= len(texts):
        numbers = numbers_of(texts, separator)
        if not numbers.null_count:
            is_whole = _all_match(texts, WHOLE) and pc.max(pc.abs(numbers)).as_py() < MAX_EXACT
            return (Kind.WHOLE, numbers.cast(pa.int64())) if is_whole else (Kind.NUMBER, numbers)
    return (Kind.DATE, as_dates(texts)) if _all_match(texts, DATE) else (Kind.CATEGORY, None)


def truths_of(texts: pa.StringArray) -> tuple[pa.Array, pa.Array]:
    """Which texts say whether something is true, and whether it is."""
    lower = pc.utf8_lower(texts)
    return pc.is_in(lower, value_set=pa.array(["true", "false"])), pc.equal(lower, "true")


def _odd_texts(texts: pa.StringArray, separator: str) -> tuple[str, ...]:
    """Texts among many numbers that are no numbers; none if nothing is odd."""
    numbers = numbers_of(texts, separator)
    if numbers.null_count * 2 > len(texts):
        return ()
    return tuple(odd_texts(texts.to_pylist(), numbers.is_valid().to_pylist()))


def numbers_of(texts: pa.StringArray, separator: str | None) -> pa.DoubleArray:
    """The numbers that texts stand for, if all are written in one style; null otherwise.

    A comma is a decimal comma, unless it separates the values of the file: then it is between
    thousands. Percentages and amounts of money are the numbers that are written, if all of them
    have the same sign; ambiguous amounts do not count as numbers.

    >>> def read(separator, *texts):
    ...     return numbers_of(pa.array(texts), separator).to_pylist()
    >>> read(",", "1.5", "2"), read(";", "1,5", "2"), read(",", "1,500"), read(",", "1", "one")
    ([1.5, 2.0], [1.5, 2.0], [1500.0], [1.0, None])
    >>> read(",", "12.5 %", "3%"), read(";", "$1,234.50", "-$7")
    ([12.5, 3.0], [1234.5, -7.0])
    >>> read(";", "€ 3.000"), read(";", "€ 3.000", "€ 12,50")
    ([None], [3000.0, 12.5])
    """
    try:
        return texts.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    if _all_match(texts, PERCENT):
        return numbers_of(pc.replace_substring_regex(texts, PERCENT, r"\1"), separator)
    for pattern, amount, sign in (MONEY_FIRST, MONEY_LAST):
        if _all_match(texts, pattern):
            signs = set(pc.unique(pc.replace_substring_regex(texts, pattern, sign)).to_pylist())
            if len(signs) == 1:
                amounts = pc.replace_substring_regex(texts, pattern, amount)
                return _amounts(amounts, signs <= ENGLISH_MONEY)
    style = THOUSANDS if separator == "," else DECIMAL_COMMA
    if not _all_match(texts, style):
        style = PLAIN
        texts = pc.if_else(
            pc.match_substring_regex(texts, PLAIN), texts, pa.scalar(None, pa.string())
        )
    return _styled(texts, style)


def _amounts(texts: pa.StringArray, is_english: bool) -> pa.DoubleArray:
    """Amounts of money; null if it is not clear how to read them."""
    readings = [
        _styled(texts, style)
        for style in (PLAIN, THOUSANDS, DECIMAL_COMMA)
        if _all_match(texts, style)
    ]
    if is_english:
        readings = readings[:1]
    is_clear = readings and all(reading.equals(readings[0]) for reading in readings)
    return readings[0] if is_clear else pa.nulls(len(texts), pa.float64())


def _styled(texts: pa.StringArray, style: str) -> pa.DoubleArray:
    """The numbers that texts of a style stand for."""
    texts = pc.replace_substring_regex(texts, r"^\+", "")
    if style == THOUSANDS:
        texts = pc.replace_substring(texts, ",", "")
    elif style == DECIMAL_COMMA:
        texts = pc.replace_substring(pc.replace_substring(texts, ".", ""), ",", ".")
    return texts.cast(pa.float64())


def _all_match(texts: pa.StringArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(texts, pattern)).as_py())


def as_dates(texts: pa.StringArray) -> pa.TimestampArray | None:
    """Texts as dates, in UTC if they have a time zone; None if they are none, or ambiguous.

    Where the year is last, full stops mean that the day comes first. Otherwise some day above 12
    must tell. Either all dates have a time zone, or none has.

    >>> as_dates(pa.array(["2024-03-05", "2024-03-05 14:30"]))[1].as_py()
    datetime.datetime(2024, 3, 5, 14, 30)
    >>> as_dates(pa.array(["5.3.2024"]))[0].as_py(), as_dates(pa.array(["03/05/2024"]))
    (datetime.datetime(2024, 3, 5, 0, 0), None)
    """
    if not _all_match(texts, DATE):
        return None
    turned = texts.filter(pc.match_substring_regex(texts, YEAR_LAST))
    orders = [r"\3-\2-\1"] if _all_match(turned, r"^[0-9]+\.") else [r"\3-\2-\1", r"\3-\1-\2"]
    readings = [_dates(pc.replace_substring_regex(texts, YEAR_LAST, order)) for order in orders]
    found = [dates for dates in readings if dates is not None]
    return found[0] if found and all(dates.equals(found[0]) for dates in found) else None


def _dates(texts: pa.StringArray) -> pa.TimestampArray | None:
    """Dates whose year is first."""
    texts = pc.replace_substring_regex(texts, YEAR_FIRST, r"\1-\2-\3")
    texts = pc.replace_substring(pc.replace_substring_regex(texts, " ?UTC$", "Z"), ",", ".")
    has_zone = pc.match_substring_regex(texts, ZONE)
    is_zoned = pc.all(has_zone).as_py()
    if is_zoned != pc.any(has_zone).as_py():
        return None
    try:
        dates = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True)
    except ValueError:  # there is no such day or time
        return None
    return pa.array(dates).cast(pa.timestamp("us", "UTC" if is_zoned else None), safe=False)


def as_categories(texts: pa.DictionaryArray) -> pd.Series:
    """Texts as categories, which hold none of Arrow's memory."""
    codes = codes_of(texts).copy()
    return pd.Series(pd.Categorical.from_codes(codes, categories=texts.dictionary.to_pylist()))


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
        n_distinct=len(texts.dictionary),
        n_missing=texts.null_count,
        reason=None if len(texts.dictionary) else "empty",
    )
