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
    """A dialect of SQL. Templates have {} where a column stands."""

    name: str  # for messages
    # Literals that read back exactly.
    write_number: Callable[[float], str]
    write_text: Callable[[str], str]
    number: str  # what makes a column a double
    text: str  # what makes a column text that equals only itself
    # What makes seconds since 1970 of a column of dates, without and with a time zone.
    moment: str
    zoned: str
    quote: str = '"'  # what starts and ends the name of a column
    # Whether the names of columns that differ only in case are the same.
    ignores_case: bool = True
    # What makes infinite numbers the greatest finite ones.
    clamp: str = "GREATEST(LEAST({}, {greatest}), {least})"
    # Whether a database stops at sums that overflow or underflow.
    refuses_overflows: bool = False
    # Whether there is NaN beside NULL; it is then greater than all numbers, or incomparable.
    has_nan: bool = True
    has_bools: bool = True  # that are no numbers
    is_typed: bool = True  # whether all values of a column are of one type
    few_categories: int = 0  # so many are better compared one by one than looked up
    most_listed: int = 1_000_000  # values that a list may have
    # What holds for conditions that are not true; they may be unknown.
    negation: str = "({}) IS NOT TRUE"
    # Whether there are lists and functions over them, as which large trees are written.
    has_lambdas: bool = False
    # A table of one row of named values, which may be of the columns of a query around it; empty
    # where that is not allowed.
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

    def compare_sum(
        self, weights: tuple[float, float], numbers: tuple[str, str], sign: str, limit: float
    ) -> str:
        """Compare the weighted sum of two numbers, given as SQL, with a limit."""
        (a, b), (first, second), number = weights, numbers, self.write_number
        if not self.refuses_overflows:
            start = f"{self.clamped(first)} + " if a else ""
            return f"{start}{number(b)} * {self.clamped(second)} {sign} {number(limit)}"
        whole = self._safe_product(b, second)
        if not a:
            return f"{whole} {sign} {number(limit)}"
        # If the first number is huge, half of the sum is compared with half of the limit. The sum
        # is huge or nothing then: half of a tiny limit, which might be 0, is as good as all of it.
        half = self._safe_product(b, second, 0.5)
        half_limit = limit / 2 if abs(limit) > 1 else limit
        return (
            f"CASE WHEN abs({first}) < {number(HARMLESS)} "
            f"THEN {first} + {whole} {sign} {number(limit)} "
            f"ELSE {number(0.5)} * {self.clamped(first)} + {half} {sign} {number(half_limit)} END"
        )

    def _safe_product(self, weight: float, value: str, scale: float = 1.0) -> str:
        """A clamped value times a weight, infinite or 0 where that has no better double."""
        number, factor = self.write_number, weight * scale
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
        product = f"{number(factor)} * {self.clamped(value)}"
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


SQLITE_MOMENT = (
    "CASE WHEN typeof({0}) = 'text' THEN strftime('%s', {0}) + (strftime('%f', {0}) - "
    "strftime('%S', {0})) ELSE CAST({0} AS REAL) END"
)
NEGATION_BY_CASE = "CASE WHEN {} THEN 0 ELSE 1 END = 1"
LOWER_CLAMP = "greatest(least({}, {greatest}), {least})"
NO_CLAMP = "{}"  # there are no infinite numbers
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
        write_number=_sqlite_number,
        write_text=_standard_text,
        number="CAST({} AS REAL)",
        text="+{} COLLATE BINARY",  # without the plus, text may be compared as a number
        # Texts, which are precise to milliseconds, or numbers.
        moment=SQLITE_MOMENT,
        zoned=SQLITE_MOMENT,
        quote="`",  # what double quotes enclose may be taken for text
        clamp="max(min({}, {greatest}), {least})",
        has_nan=False,
        has_bools=False,
        is_typed=False,
    ),
    "duckdb": Dialect(
        name="DuckDB",
        write_number=_duckdb_number,
        write_text=_standard_text,
        number="CAST({} AS DOUBLE)",
        text='CAST({} AS VARCHAR) COLLATE "binary"',
        moment="epoch({})",
        zoned="epoch({})",
        clamp=LOWER_CLAMP,
        few_categories=30,  # looked up, each list would be joined with all rows
        has_lambdas=True,
    ),
    "postgres": Dialect(
        name="PostgreSQL",
        write_number=lambda number: f"'{exact(number)}'::float8",
        write_text=_postgres_text,
        number="CAST({} AS float8)",
        text='CAST({} AS text) COLLATE "C"',
        moment="CAST(extract(epoch FROM {}) AS float8)",
        zoned="CAST(extract(epoch FROM {}) AS float8)",
        ignores_case=False,
        clamp=LOWER_CLAMP,
        refuses_overflows=True,
    ),
    "bigquery": Dialect(
        name="BigQuery",
        write_number=_bigquery_number,
        write_text=_escaped_text,
        number="CAST({} AS FLOAT64)",
        text="CAST({} AS STRING)",
        moment="(UNIX_MICROS(CAST({} AS TIMESTAMP)) / 1e6)",
        zoned="(UNIX_MICROS(CAST({} AS TIMESTAMP)) / 1e6)",
        quote="`",
    ),
    "snowflake": Dialect(
        name="Snowflake",
        write_number=lambda number: f"CAST('{exact(number)}' AS DOUBLE)",
        write_text=lambda text: _standard_text(text.replace("\\", "\\\\")),
        number="CAST({} AS DOUBLE)",
        text="COLLATE(CAST({} AS VARCHAR), 'utf8')",
        moment="(CAST(DATE_PART(EPOCH_MICROSECOND, CAST({} AS TIMESTAMP_NTZ)) AS DOUBLE) / 1e6)",
        zoned="(CAST(DATE_PART(EPOCH_MICROSECOND, CAST({} AS TIMESTAMP_TZ)) AS DOUBLE) / 1e6)",
        ignores_case=False,
        most_listed=16_000,
        negation=NEGATION_BY_CASE,
        one_row="",
    ),
    "tsql": Dialect(
        name="T-SQL",
        write_number=_finite_number,
        write_text=_tsql_text,
        number="CAST({} AS float)",
        text="CAST({} AS nvarchar(max)) COLLATE Latin1_General_100_BIN2",
        moment=TSQL_SECONDS.format("'1970-01-01' AS datetime2", "datetime2"),
        zoned=TSQL_SECONDS.format(
            "'1970-01-01 00:00:00 +00:00' AS datetimeoffset", "datetimeoffset"
        ),
        quote="[]",
        clamp=NO_CLAMP,
        has_nan=False,
        has_bools=False,
        negation=NEGATION_BY_CASE,
    ),
    "mysql": Dialect(
        name="MySQL",
        write_number=_finite_number,
        write_text=_mysql_text,
        number="({} + 0e0)",
        text="CONVERT({} USING utf8mb4) COLLATE utf8mb4_0900_bin",
        moment="(TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00', {}) / 1e6)",
        zoned="(UNIX_TIMESTAMP({}) + 0e0)",
        quote="`",
        clamp=NO_CLAMP,
        has_nan=False,
    ),
    "oracle": Dialect(
        name="Oracle",
        write_number=_oracle_number,
        write_text=_standard_text,
        number="CAST({} AS BINARY_DOUBLE)",
        text="CAST({} AS VARCHAR2(4000)) COLLATE BINARY",
        moment=ORACLE_SECONDS.replace("{}", "CAST({0} AS TIMESTAMP)"),
        zoned=ORACLE_SECONDS.replace("{}", "SYS_EXTRACT_UTC({0})"),
        ignores_case=False,
        has_bools=False,
        most_listed=1000,
        negation=NEGATION_BY_CASE,
        one_row="",
    ),
    "spark": Dialect(
        name="Spark",
        write_number=_spark_number,
        write_text=_escaped_text,
        number="CAST({} AS DOUBLE)",
        text="CAST({} AS STRING)",
        # Moments without a time zone are those that the session's time zone shows.
        moment="(unix_micros(from_utc_timestamp({}, current_timezone())) / 1e6D)",
        zoned="(unix_micros(CAST({} AS TIMESTAMP)) / 1e6D)",
        quote="`",
        clamp=LOWER_CLAMP,
        one_row="",
    ),
}
