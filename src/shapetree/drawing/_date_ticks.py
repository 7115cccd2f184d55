"""Dates along an axis: which ones to mark, and what to write there."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator

from shapetree.data._moments import DAY, EPOCH, FIRST, LAST, DateKind
from shapetree.tree._digits import exact

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


def round_dates(low: float, high: float, at_most: int) -> list[tuple[float, str]]:
    """A few moments between two, at the beginnings of years, months, days and so on, with labels.

    Examples
    --------
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

    Examples
    --------
    >>> end_dates(1.68e9, 1.71e9, "time"), end_dates(0.0, 90.5, "time")
    (('2023-03-29', '2024-03-09'), ('1970-01-01', '1970-01-01 00:01:30'))
    """
    for step in (DAY, 60, 1):
        if high - low >= LEAST_STEPS * step:
            first, last = step * math.ceil(low / step), step * math.floor(high / step)
            return exact(float(first), date), exact(float(last), date)
    return exact(low, date), exact(high, date)
