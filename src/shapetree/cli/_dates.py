"""Dates in files, as people write them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence

# Year, month and day, or day and month in either order and the year; then a time and a zone.
DATE = re.compile(
    r"(?:(?P<year>\d{4})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    r"|(?P<first>\d{1,2})(?P<mark>[-/.])(?P<second>\d{1,2})[-/.](?P<last>\d{4}))"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<seconds>\d{2})(?:[.,](?P<rest>\d+))?)?)?"
    r"(?: ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2}))?"
)
TWO_WAYS = "dates that can be read in two ways"


def look_like_dates(texts: Sequence[str]) -> bool:
    """Whether all texts are written as dates are."""
    return all(map(DATE.fullmatch, texts))


def dates_of(texts: Sequence[str]) -> list[dt.datetime] | None:
    """The dates that texts stand for; None if some are not dates, or are ambiguous.

    Where the year is last, full stops mean that the day comes first. Otherwise some day above 12
    must tell. Either all dates have a time zone, and are given in UTC, or none has.

    Examples
    --------
    >>> dates_of(["2024-03-05", "2024-03-05 14:30"])
    [datetime.datetime(2024, 3, 5, 0, 0), datetime.datetime(2024, 3, 5, 14, 30)]
    >>> dates_of(["5.3.2024"]), dates_of(["03/05/2024"])
    ([datetime.datetime(2024, 3, 5, 0, 0)], None)
    """
    found = [each for each in map(DATE.fullmatch, texts) if each]
    zones = {each["zone"] is not None for each in found}
    if len(found) < len(texts) or len(zones) > 1:
        return None
    is_day_first = _is_day_first(found)
    try:
        return [_date(each, is_day_first) for each in found]
    except ValueError:  # there is no such day or time, or nothing tells days from months
        return None


def _is_day_first(found: list[re.Match[str]]) -> bool | None:
    """Whether the day comes before the month where the year is last; None if unknown."""
    turned = [each for each in found if each["first"] is not None]
    if any(int(each["first"]) > 12 for each in turned) or all(
        each["mark"] == "." for each in turned
    ):
        return True
    return False if any(int(each["second"]) > 12 for each in turned) else None


def _date(found: re.Match[str], is_day_first: bool | None) -> dt.datetime:
    if found["year"] is not None:
        year, month, day = found["year"], found["month"], found["day"]
    elif is_day_first is None:
        raise ValueError("nothing tells days from months")
    else:
        year, month, day = found["last"], found["first"], found["second"]
        if is_day_first:
            month, day = day, month
    hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "seconds"))
    microsecond = int((found["rest"] or "")[:6].ljust(6, "0"))
    date = dt.datetime(int(year), int(month), int(day), hour, minute, second, microsecond)
    zone = found["zone"]
    if zone is None:
        return date
    if zone[0] in "+-":
        offset = dt.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        date -= offset if zone[0] == "+" else -offset
    return date.replace(tzinfo=dt.UTC)
