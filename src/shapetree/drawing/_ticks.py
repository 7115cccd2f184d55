"""Numbers and dates along an axis: which ones to mark, and what to write there."""

from __future__ import annotations

import datetime as dt
import math
import sys
from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from shapetree.data._moments import DAY, EPOCH, FIRST, LAST, DateKind
from shapetree.tree._digits import exact, rounded
from shapetree.tree._words import readable

# Characters of a plain number that powers of ten may shorten.
LONG_NUMBER = 7
# Smallest share of an axis that can be seen.
VISIBLE = 1 / 500
# Whole numbers below this are written exactly at the ends of an axis.
WHOLE = 10**7
# Enough for any sum of two floats.
_MANY_DIGITS = Context(prec=700)
# Decades up to which a logarithmic axis has marks between powers of ten.
FEW_DECADES = 3.2
SECOND = dt.timedelta(seconds=1)
# Steps between marks in seconds, with how they are written, and steps in months.
SHORT_STEPS = (
    *((seconds, "%H:%M:%S") for seconds in (1, 2, 5, 10, 15, 30)),
    *((60 * minutes, "%m-%d %H:%M") for minutes in (1, 2, 5, 10, 15, 30)),
    *((3_600 * hours, "%m-%d %H:%M") for hours in (1, 2, 3, 6, 12)),
    *((DAY * days, "%Y-%m-%d") for days in (1, 2, 7, 14)),
)
MONTHS = (1, 2, 3, 6, *(12 * years for years in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)))
# The ends of an axis are given to the day, minute or second if it is this many of them long.
LEAST_STEPS = 20


def round_numbers(low: float, high: float, at_most: int) -> list[float]:
    """A few round numbers between two bounds.

    >>> round_numbers(0.3, 9.7, 5)
    [2.0, 4.0, 6.0, 8.0]
    """
    span = high / 2 - low / 2
    if not 0 < span < math.inf or at_most < 1:
        return []
    power = math.floor(math.log10(span)) + 1
    for exponent in range(power - 3, power + 2):
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent if exponent > -300 else 0.0
            if not 0 < step < math.inf or high / step - low / step > at_most + 1:
                continue
            first, last = math.ceil(low / step), math.floor(high / step)
            # A bound may be too small for its share of a step, which is then 0.
            first = max(first, 1) if low > 0 else first
            last = min(last, -1) if high < 0 else last
            if 0 < last - first + 1 <= at_most:
                # Not i * step, which has more digits than it should.
                return [float(f"{i * factor}e{exponent}") for i in range(first, last + 1)]
    return []


def round_powers(low: float, high: float, at_most: int) -> list[float]:
    """Round numbers between two positive bounds, of about equal ratios.

    >>> round_powers(0.3, 25.0, 6), round_powers(1e-3, 2e5, 4)
    ([0.5, 1.0, 2.0, 5.0, 10.0, 20.0], [0.01, 1.0, 100.0, 10000.0])
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    choices = [(1, 2, 5), (1, 3)] if math.log10(high) - math.log10(low) < FEW_DECADES else []
    for factors in choices:
        marks = [float(f"{f}e{e}") for e in range(first, last + 1) for f in factors]
        shown = [mark for mark in marks if low <= mark <= high]
        if len(shown) <= at_most:
            return shown
    for step in range(1, last - first + 2):
        marks = [float(f"1e{e}") for e in range(first, last + 1) if e % step == 0]
        shown = [mark for mark in marks if low <= mark <= high]
        if len(shown) <= at_most:
            return shown
    return []


def share_of(value: float, low: float, high: float) -> float:
    """Where a value lies between two bounds, from 0 to 1; bounds may be the greatest numbers."""
    span = high / 2 - low / 2
    return min(max((value / 2 - low / 2) / span, 0.0), 1.0) if span > 0 else 0.5


def number(value: float, digits: int = 3) -> str:
    """A number to some digits, in powers of ten where that is shorter.

    >>> number(0.25), number(123456.0, 6), number(1e15), number(1.5e-12)
    ('0.25', '123456', '1e15', '1.5e-12')
    """
    plain = rounded(value, digits)
    if len(plain) <= LONG_NUMBER or "e" in plain or plain in ("inf", "-inf", "nan"):
        return plain
    mantissa, exponent = f"{float(plain):.{max(digits, 1) - 1}e}".split("e")
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    powers = f"{mantissa}e{int(exponent)}"
    return powers if len(powers) < len(plain) else plain


def distinct(values: list[float], digits: int = 3) -> list[str]:
    """Ascending numbers in as few digits as needed to tell neighbours apart.

    >>> distinct([0.12341, 0.12349]), distinct([1.0, 2.0])
    (['0.1234', '0.1235'], ['1', '2'])
    """
    for more in range(digits, 18):
        labels = [number(value, more) for value in values]
        if len(set(labels)) == len(set(values)):
            return labels
    return [exact(value) for value in values]


def end_labels(
    low: float, high: float, slack: tuple[float, float] | None = None
) -> tuple[str, str]:
    """Short labels for the least and the greatest of some numbers, the ends of an axis.

    Labels lie between the numbers and at most `slack` away from them; by default, that is too
    little to be seen on an axis. Whole numbers are exact.

    >>> end_labels(0.4999, 15.0001), end_labels(3.7809e-4, 0.99956), end_labels(1.00001, 1.00003)
    (('0.5', '15'), ('0.001', '0.999'), ('1.00001', '1.00003'))
    """
    most = high / 4 - low / 4
    near_low, near_high = slack or (4 * VISIBLE * most, 4 * VISIBLE * most)
    return (
        _end_label(low, min(near_low, most), ROUND_CEILING),
        _end_label(high, min(near_high, most), ROUND_FLOOR),
    )


def _end_label(value: float, slack: float, rounding: str) -> str:
    """The number of fewest decimals that is near another, on one side of it."""
    if abs(value) >= sys.float_info.max:  # as which infinite numbers count
        return "∞" if value > 0 else "-∞"
    decimal = Decimal(repr(value))
    if slack > 0 and not (value.is_integer() and abs(value) < WHOLE):
        first, last = Decimal(slack).adjusted(), int(decimal.as_tuple().exponent)
        for exponent in range(first, last - 1, -1):
            near = decimal.quantize(Decimal(1).scaleb(exponent), rounding, _MANY_DIGITS)
            if abs(near - decimal) <= slack:
                decimal = near
                break
    return number(float(decimal) or 0.0, len(decimal.as_tuple().digits))


def threshold_labels(thresholds: list[float], date: DateKind | None) -> list[str]:
    """Thresholds in words, all of them different."""
    labels = [readable(threshold, date) for threshold in thresholds]
    if date is not None:
        return labels
    return labels if len(set(labels)) == len(labels) else distinct(thresholds, 6)


# --- dates ---


def round_dates(low: float, high: float, at_most: int) -> list[tuple[float, str]]:
    """A few moments between two, at the beginnings of years, months, days and so on, with labels.

    >>> [label for _, label in round_dates(1.68e9, 1.71e9, 4)]
    ['2023-04', '2023-07', '2023-10', '2024-01']
    >>> [label for _, label in round_dates(1.710e9, 1.7101e9, 3)]
    ['03-10 00:00', '03-10 12:00']
    """
    low, high = max(low, FIRST), min(high, LAST - 1)
    if not low < high or at_most < 1:
        return []
    for step, form in SHORT_STEPS:
        first, last = math.ceil(low / step), math.floor(high / step)
        if 0 < last - first + 1 <= at_most:
            moments = [step * number for number in range(first, last + 1)]
            return [(float(at), f"{EPOCH + at * SECOND:{form}}") for at in moments]
    for step in MONTHS:
        marks = list(_months(low, high, step))
        if 0 < len(marks) <= at_most:
            form = "{:04}" if step % 12 == 0 else "{:04}-{:02}"
            return [(at, form.format(year, month)) for at, year, month in marks]
    return []


def _months(low: float, high: float, step: int) -> Iterator[tuple[float, int, int]]:
    """Beginnings of every nth month between two moments, with their years and months."""
    start, end = (EPOCH + math.floor(at) * SECOND for at in (low, high))
    first = (12 * start.year + start.month - 1) // step
    last = (12 * end.year + end.month - 1) // step
    for number in range(first, last + 1):
        year, month = divmod(step * number, 12)
        if year > 0:
            at = (dt.datetime(year, month + 1, 1) - EPOCH) / SECOND
            if low <= at <= high:
                yield at, year, month + 1


def end_dates(low: float, high: float, date: DateKind) -> tuple[str, str]:
    """The least and the greatest of some moments, rounded so that they stay between them.

    >>> end_dates(1.68e9, 1.71e9, "time"), end_dates(0.0, 90.5, "time")
    (('2023-03-29', '2024-03-09'), ('1970-01-01', '1970-01-01 00:01:30'))
    """
    for step in (DAY, 60, 1):
        if high - low >= LEAST_STEPS * step:
            first, last = step * math.ceil(low / step), step * math.floor(high / step)
            return exact(float(first), date), exact(float(last), date)
    return exact(low, date), exact(high, date)
