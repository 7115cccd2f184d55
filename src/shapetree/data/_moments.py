"""Moments in time as numbers, and as texts that read back as the same numbers.

A moment is the number of seconds since 1970-01-01 00:00, in double precision. One that has a time
zone is counted in UTC; one that has none is counted as it is written. `page/src/dates.js` writes
moments in the same way.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Context, Decimal
from typing import Any, Literal, TypeAlias

import numpy as np

# What a column of dates holds: whole days, moments without a time zone, or moments in UTC.
DateKind: TypeAlias = Literal["day", "time", "utc"]

# Types of values that are dates.
DATES = (dt.date, np.datetime64)
DAY = 86_400
# A threshold is sought at multiples of these, the first that has one between two values.
READABLE_STEPS = (DAY, 3_600, 60, 1)
EPOCH = dt.datetime(1970, 1, 1)
UTC_EPOCH = EPOCH.replace(tzinfo=dt.UTC)
MICROSECOND = dt.timedelta(microseconds=1)
# Moments of the years 1 to 9999, which have four digits; others are written as numbers.
FIRST, LAST = -62_135_596_800, 253_402_300_800
TEXT = re.compile(r"(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d)(?::(\d\d)(\.\d+)?)?)?(?: UTC)?")
ZONE = " UTC"
# As many digits as the least of all numbers has.
_CONTEXT = Context(prec=1200)


def seconds_of_array(dates: np.ndarray) -> np.ndarray:
    """NumPy's dates as numbers, NaN where one is missing."""
    microseconds = dates.astype("M8[us]")
    seconds = microseconds.astype(np.int64) / 1e6
    return np.where(np.isnat(microseconds), np.nan, seconds)


def seconds_of(date: Any) -> float:
    """A date of Python, NumPy or pandas as a number.

    Examples
    --------
    >>> seconds_of(dt.date(1970, 1, 2)), seconds_of(np.datetime64("1970-01-01T00:00:01.5"))
    (86400.0, 1.5)
    """
    if isinstance(date, np.datetime64):
        return float(seconds_of_array(np.array([date]))[0])
    if not isinstance(date, dt.datetime):
        return float(DAY * (date.toordinal() - EPOCH.toordinal()))
    since = date - (UTC_EPOCH if has_zone(date) else EPOCH)
    return since // MICROSECOND / 1e6


def has_zone(date: Any) -> bool:
    """Whether a date of Python or pandas has a time zone."""
    return getattr(date, "tzinfo", None) is not None


def kind_of(seconds: np.ndarray, is_zoned: bool) -> DateKind:
    """What a column of dates holds."""
    if is_zoned:
        return "utc"
    known = seconds[~np.isnan(seconds)]
    return "day" if (known % DAY == 0).all() else "time"


def write_moment(seconds: float, kind: DateKind) -> str:
    """A moment of the years 1 to 9999 in words: the day, and as much of its time as it takes.

    Examples
    --------
    >>> write_moment(1709596800.0, "day"), write_moment(1709649000.0, "time")
    ('2024-03-05', '2024-03-05 14:30')
    >>> write_moment(1709649000.25, "utc")
    '2024-03-05 14:30:00.25 UTC'
    """
    whole = math.floor(seconds)
    rest = _CONTEXT.subtract(Decimal(repr(float(seconds))), Decimal(whole)).normalize(_CONTEXT)
    moment = EPOCH + dt.timedelta(seconds=whole)
    text = moment.date().isoformat()
    if rest:
        text += f" {moment:%H:%M:%S}{f'{rest:f}'[1:]}"
    elif moment.second:
        text += f" {moment:%H:%M:%S}"
    elif whole % DAY:
        text += f" {moment:%H:%M}"
    return text + ZONE if kind == "utc" else text


def read_moment(text: str) -> float:
    """The number that `write_moment` has put into words.

    Examples
    --------
    >>> read_moment("2024-03-05 14:30")
    1709649000.0
    """
    found = TEXT.fullmatch(text)
    if found is None:
        return float(text)
    day, minute, second, rest = found.groups()
    moment = dt.datetime.fromisoformat(f"{day} {minute or '00:00'}:{second or '00'}")
    whole = Decimal((moment - EPOCH) // dt.timedelta(seconds=1))
    return float(_CONTEXT.add(whole, Decimal(f"0{rest or '.0'}")))


def readable_threshold(threshold: float, low: float, high: float) -> float:
    """A threshold from `low` to below `high` that is written in few digits: just before a moment.

    The moment is a midnight if there is one between the two, else a full hour, minute or second; of
    several the nearest to the threshold.

    Examples
    --------
    >>> before = readable_threshold(1709640000.0, 1709500000.0, 1709650000.0)
    >>> write_moment(np.nextafter(before, np.inf), "time")
    '2024-03-05'
    """
    for step in READABLE_STEPS:
        first, last = math.floor(low / step) + 1, math.floor(high / step)
        if first <= last:
            moment = float(step * min(max(round(threshold / step), first), last))
            break
    else:
        milliseconds = math.floor(high * 1e3) / 1e3
        moment = milliseconds if low < milliseconds <= high else high
    return math.nextafter(moment, -math.inf)
