"""What the dialects of SQL differ in: names, literals, missing values, sums of extreme numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal

from shapetree.data._columns import GREATEST
from shapetree.tree._digits import exact

# SQLite reads decimals correctly to this many digits, but only if they are not too small. Smaller
# numbers are written as a larger one divided by a power of 2.
SQLITE_DIGITS = 19
SQLITE_LEAST = 1e-280
SQLITE_SCALE = 2.0**900
# Less than this added to any finite number does not make it infinite.
HARMLESS = 2.0**969
TINIEST = math.nextafter(0.0, 1.0)


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL.

    Attributes
    ----------
    name : str
        For messages.
    quote : str
        What starts and ends the name of a column.
    number : str
        What makes a column a double.
    moment, zoned : str
        What makes seconds since 1970 of a column of dates, without and with a time zone.
    text : str
        What makes a column text that equals only itself.
    clamp : str
        What makes infinite numbers the greatest finite ones.
    has_nan : bool
        Whether there is NaN beside NULL; it is then greater than all numbers, or incomparable.
    is_typed : bool
        Whether all values of a column are of one type.
    has_bools : bool
        Whether there are bools that are no numbers.
    few_categories : int
        So many categories are better compared one by one than looked up.
    negation : str
        What holds for conditions that are not true; they may be unknown.
    most_listed : int
        The most values that a list may have.
    has_lambdas : bool
        Whether there are lists and functions over them, as which large trees are written.
    one_row : str
        A table of one row of named values, which may be of the columns of a query around it; empty
        where that is not allowed.
    ignores_case : bool
        Whether the names of columns that differ only in case are the same.
    write_number, write_text : functions
        Literals that read back exactly.
    compare_sum : function of a Dialect, weights, two numbers, a sign and a limit
        Compares the weighted sum of two numbers, given as SQL.
    """

    name: str
    quote: str
    number: str
    moment: str
    zoned: str
    text: str
    clamp: str
    has_nan: bool
    is_typed: bool
    has_bools: bool
    few_categories: int
    ignores_case: bool
    write_number: Callable[[float], str]
    write_text: Callable[[str], str]
    compare_sum: Callable[[Dialect, tuple[float, float], tuple[str, str], str, float], str]
    negation: str = "({}) IS NOT TRUE"
    most_listed: int = 1_000_000
    has_lambdas: bool = False
    one_row: str = "(SELECT {}) AS m"

    def write_name(self, name: str) -> str:
        """Name of a column."""
        if not name:
            raise ValueError("SQL has no column without a name; give it one with columns")
        _require_text(name)
        first, last = self.quote[0], self.quote[-1]
        return f"{first}{name.replace(last, 2 * last)}{last}"

    def clamped(self, number: str) -> str:
        """A finite number."""
        greatest = self.write_number(GREATEST)
        least = self.write_number(-GREATEST)
        return self.clamp.format(number, least=least, greatest=greatest)


def _require_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"SQL cannot hold {text!r}, which is not valid Unicode") from None
    if "\0" in text:
        raise ValueError(f"SQL cannot hold {text!r}, which has a null character")


def _standard_text(text: str) -> str:
    _require_text(text)
    return "'" + text.replace("'", "''") + "'"


def _postgres_text(text: str) -> str:
    literal = _standard_text(text)
    # Whether a plain literal may have a backslash is a setting of the server.
    return "E" + literal.replace("\\", "\\\\") if "\\" in text else literal


def _escaped_text(text: str) -> str:
    """For dialects that read a backslash as the start of an escape, and know no doubled quote."""
    _require_text(text)
    escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"}
    return "'" + "".join(escapes.get(sign, sign) for sign in text) + "'"


def _mysql_text(text: str) -> str:
    literal = _standard_text(text)
    # Whether a backslash starts an escape is a setting of the session.
    return f"CONVERT(x'{text.encode().hex()}' USING utf8mb4)" if "\\" in text else literal


def _tsql_text(text: str) -> str:
    # A backslash before the end of a line would join the two lines.
    parts = _standard_text(text).replace("\\\n", "\\' + N'\n").replace("\\\r", "\\' + N'\r")
    return f"N{parts}"


def _sqlite_number(number: float) -> str:
    if math.isinf(number):
        return "9e999" if number > 0 else "-9e999"
    if 0 < abs(number) < SQLITE_LEAST:
        return f"({_sqlite_number(number * SQLITE_SCALE)} / {_sqlite_number(SQLITE_SCALE)})"
    digits = Context(prec=SQLITE_DIGITS).create_decimal(Decimal(number))
    text = f"{digits:f}" if number == 0 or 1e-5 < abs(number) < 1e16 else f"{digits:e}"
    return text if "." in text or "e" in text else f"{text}.0"


def _duckdb_number(number: float) -> str:
    if math.isinf(number):
        return f"CAST('{number}' AS DOUBLE)"
    text = exact(number)
    return text if "e" in text else text + "e0"  # without, it would be a decimal


def _postgres_number(number: float) -> str:
    return f"'{exact(number)}'::float8"


def _snowflake_number(number: float) -> str:
    return f"CAST('{exact(number)}' AS DOUBLE)"


def _bigquery_number(number: float) -> str:
    if math.isinf(number):
        return f"CAST('{number}' AS FLOAT64)"
    return _duckdb_number(number)


def _spark_number(number: float) -> str:
    if math.isinf(number):
        return f"CAST('{'-' if number < 0 else ''}Infinity' AS DOUBLE)"
    return f"{exact(number)}D"


def _oracle_number(number: float) -> str:
    if math.isinf(number):
        return f"{'-' if number < 0 else ''}BINARY_DOUBLE_INFINITY"
    if number == 0 or 1e-100 < abs(number) < 1e100:
        return f"CAST({exact(number)} AS BINARY_DOUBLE)"
    # As a text without a decimal point, which is a setting of the session.
    sign, digits, exponent = Decimal(repr(number)).as_tuple()
    whole = "".join(map(str, digits))
    return f"TO_BINARY_DOUBLE('{'-' * sign}{whole}e{exponent}')"


def _finite_number(number: float) -> str:
    if math.isinf(number):
        raise ValueError("this dialect has no infinite numbers, but the tree names one")
    return _duckdb_number(number)


def _compare_sum(
    dialect: Dialect,
    weights: tuple[float, float],
    numbers: tuple[str, str],
    sign: str,
    limit: float,
) -> str:
    first, second = (dialect.clamped(number) for number in numbers)
    total = f"{dialect.write_number(weights[1])} * {second}"
    if weights[0]:
        total = f"{first} + {total}"
    return f"{total} {sign} {dialect.write_number(limit)}"


def _compare_postgres_sum(
    dialect: Dialect,
    weights: tuple[float, float],
    numbers: tuple[str, str],
    sign: str,
    limit: float,
) -> str:
    """The same, without the overflows and underflows that PostgreSQL stops at.

    If the first number is huge, half of the sum is compared with half of the limit.
    """
    (a, b), (first, second) = weights, numbers
    whole = _postgres_product(dialect, b, second)
    number = dialect.write_number
    if not a:
        return f"{whole} {sign} {number(limit)}"
    half = _postgres_product(dialect, b, second, 0.5)
    # The sum is huge or nothing: half of a tiny limit, which might be 0, is as good as all of it.
    half_limit = limit / 2 if abs(limit) > 1 else limit
    return (
        f"CASE WHEN abs({first}) < {number(HARMLESS)} THEN {first} + {whole} {sign} {number(limit)}"
        f" ELSE {number(0.5)} * {dialect.clamped(first)} + {half} {sign} {number(half_limit)} END"
    )


def _postgres_product(dialect: Dialect, weight: float, value: str, scale: float = 1.0) -> str:
    """A clamped value times a weight, infinite or 0 where that has no better double."""
    number, factor = dialect.write_number, weight * scale
    if factor == 0:
        return number(0.0)
    if abs(weight) > 1:
        limit = _last(GREATEST / abs(weight), lambda v: abs(weight) * v < math.inf)
        infinite = math.copysign(math.inf, weight)
        return (
            f"CASE WHEN {value} > {number(limit)} THEN {number(infinite)} "
            f"WHEN {value} < {number(-limit)} THEN {number(-infinite)} "
            f"ELSE {number(factor)} * {value} END"
        )
    product = f"{number(factor)} * {dialect.clamped(value)}"
    if abs(factor) == 1:
        return product
    limit = _last(TINIEST / abs(factor) / 2, lambda v: abs(factor) * v == 0)
    return f"CASE WHEN abs({value}) <= {number(limit)} THEN {number(0.0)} ELSE {product} END"


def _last(start: float, holds: Callable[[float], bool]) -> float:
    """The greatest double for which something holds that holds up to about the start."""
    while not holds(start):
        start = math.nextafter(start, 0.0)
    while holds(after := math.nextafter(start, math.inf)):
        start = after
    return start


SQLITE_MOMENT = (
    "CASE WHEN typeof({0}) = 'text' THEN strftime('%s', {0}) + (strftime('%f', {0}) - "
    "strftime('%S', {0})) ELSE CAST({0} AS REAL) END"
)
NEGATION_BY_CASE = "CASE WHEN {} THEN 0 ELSE 1 END = 1"
TSQL_SECONDS = "(DATEDIFF_BIG(MICROSECOND, CAST({}), CAST({{}} AS {})) / 1e6)"
ORACLE_SECONDS = "CAST({} AS BINARY_DOUBLE)".format(
    " + ".join(
        f"EXTRACT({part} FROM ({{}} - TIMESTAMP '1970-01-01 00:00:00')) * {n_seconds}"
        for part, n_seconds in (("DAY", 86_400), ("HOUR", 3600), ("MINUTE", 60), ("SECOND", 1))
    )
)

DIALECTS = {
    "sqlite": Dialect(
        name="SQLite",
        quote="`",  # what double quotes enclose may be taken for text
        number="CAST({} AS REAL)",
        # Texts, which are precise to milliseconds, or numbers.
        moment=SQLITE_MOMENT,
        zoned=SQLITE_MOMENT,
        text="+{} COLLATE BINARY",  # without the plus, text may be compared as a number
        clamp="max(min({}, {greatest}), {least})",
        has_nan=False,
        is_typed=False,
        has_bools=False,
        few_categories=0,
        ignores_case=True,
        write_number=_sqlite_number,
        write_text=_standard_text,
        compare_sum=_compare_sum,
    ),
    "duckdb": Dialect(
        name="DuckDB",
        quote='"',
        number="CAST({} AS DOUBLE)",
        moment="epoch({})",
        zoned="epoch({})",
        text='CAST({} AS VARCHAR) COLLATE "binary"',
        clamp="greatest(least({}, {greatest}), {least})",
        has_nan=True,
        is_typed=True,
        has_bools=True,
        few_categories=30,  # looked up, each list would be joined with all rows
        ignores_case=True,
        write_number=_duckdb_number,
        write_text=_standard_text,
        compare_sum=_compare_sum,
        has_lambdas=True,
    ),
    "postgres": Dialect(
        name="PostgreSQL",
        quote='"',
        number="CAST({} AS float8)",
        moment="CAST(extract(epoch FROM {}) AS float8)",
        zoned="CAST(extract(epoch FROM {}) AS float8)",
        text='CAST({} AS text) COLLATE "C"',
        clamp="greatest(least({}, {greatest}), {least})",
        has_nan=True,
        is_typed=True,
        has_bools=True,
        few_categories=0,
        ignores_case=False,
        write_number=_postgres_number,
        write_text=_postgres_text,
        compare_sum=_compare_postgres_sum,
    ),
    "bigquery": Dialect(
        name="BigQuery",
        quote="`",
        number="CAST({} AS FLOAT64)",
        moment="(UNIX_MICROS(CAST({} AS TIMESTAMP)) / 1e6)",
        zoned="(UNIX_MICROS(CAST({} AS TIMESTAMP)) / 1e6)",
        text="CAST({} AS STRING)",
        clamp="GREATEST(LEAST({}, {greatest}), {least})",
        has_nan=True,
        is_typed=True,
        has_bools=True,
        few_categories=0,
        ignores_case=True,
        write_number=_bigquery_number,
        write_text=_escaped_text,
        compare_sum=_compare_sum,
    ),
    "snowflake": Dialect(
        name="Snowflake",
        quote='"',
        number="CAST({} AS DOUBLE)",
        moment="(CAST(DATE_PART(EPOCH_MICROSECOND, CAST({} AS TIMESTAMP_NTZ)) AS DOUBLE) / 1e6)",
        zoned="(CAST(DATE_PART(EPOCH_MICROSECOND, CAST({} AS TIMESTAMP_TZ)) AS DOUBLE) / 1e6)",
        text="COLLATE(CAST({} AS VARCHAR), 'utf8')",
        clamp="GREATEST(LEAST({}, {greatest}), {least})",
        has_nan=True,
        is_typed=True,
        has_bools=True,
        few_categories=0,
        ignores_case=False,
        write_number=_snowflake_number,
        write_text=lambda text: _standard_text(text.replace("\\", "\\\\")),
        compare_sum=_compare_sum,
        negation=NEGATION_BY_CASE,
        most_listed=16_000,
        one_row="",
    ),
    "tsql": Dialect(
        name="T-SQL",
        quote="[]",
        number="CAST({} AS float)",
        moment=TSQL_SECONDS.format("'1970-01-01' AS datetime2", "datetime2"),
        zoned=TSQL_SECONDS.format(
            "'1970-01-01 00:00:00 +00:00' AS datetimeoffset", "datetimeoffset"
        ),
        text="CAST({} AS nvarchar(max)) COLLATE Latin1_General_100_BIN2",
        clamp="{}",  # there are no infinite numbers
        has_nan=False,
        is_typed=True,
        has_bools=False,
        few_categories=0,
        ignores_case=True,
        write_number=_finite_number,
        write_text=_tsql_text,
        compare_sum=_compare_sum,
        negation=NEGATION_BY_CASE,
    ),
    "mysql": Dialect(
        name="MySQL",
        quote="`",
        number="({} + 0e0)",
        moment="(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {}) / 1e6)",
        zoned="(UNIX_TIMESTAMP({}) + 0e0)",
        text="CONVERT({} USING utf8mb4) COLLATE utf8mb4_0900_bin",
        clamp="{}",  # there are no infinite numbers
        has_nan=False,
        is_typed=True,
        has_bools=True,
        few_categories=0,
        ignores_case=True,
        write_number=_finite_number,
        write_text=_mysql_text,
        compare_sum=_compare_sum,
    ),
    "oracle": Dialect(
        name="Oracle",
        quote='"',
        number="CAST({} AS BINARY_DOUBLE)",
        moment=ORACLE_SECONDS.replace("{}", "CAST({0} AS TIMESTAMP)"),
        zoned=ORACLE_SECONDS.replace("{}", "SYS_EXTRACT_UTC({0})"),
        text="CAST({} AS VARCHAR2(4000)) COLLATE BINARY",
        clamp="GREATEST(LEAST({}, {greatest}), {least})",
        has_nan=True,
        is_typed=True,
        has_bools=False,
        few_categories=0,
        ignores_case=False,
        write_number=_oracle_number,
        write_text=_standard_text,
        compare_sum=_compare_sum,
        negation=NEGATION_BY_CASE,
        most_listed=1000,
        one_row="",
    ),
    "spark": Dialect(
        name="Spark",
        quote="`",
        number="CAST({} AS DOUBLE)",
        # Moments without a time zone are those that the session's time zone shows.
        moment="(unix_micros(from_utc_timestamp({}, current_timezone())) / 1e6D)",
        zoned="(unix_micros(CAST({} AS TIMESTAMP)) / 1e6D)",
        text="CAST({} AS STRING)",
        clamp="greatest(least({}, {greatest}), {least})",
        has_nan=True,
        is_typed=True,
        has_bools=True,
        few_categories=0,
        ignores_case=True,
        write_number=_spark_number,
        write_text=_escaped_text,
        compare_sum=_compare_sum,
        one_row="",
    ),
}
