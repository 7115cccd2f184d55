"""Dates and times → features that people can read."""

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from shapetree.data._names import feature_finder

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
TEMPORAL = (nw.Date, nw.Datetime, nw.Time, nw.Duration)
SECONDS_PER_DAY = 86_400.0


def date_parts(X: Any, columns: Sequence[str] | None = None) -> Any:
    """Turn columns of dates or times into features that people can read.

    A date becomes its year as a number that runs on through the year (2021.5 is the middle of
    2021), and its month and weekday as ordered categories; one with a time of day becomes its hour,
    too, as a number (13.5 is half past one), and a time of day becomes that alone. A duration
    becomes a number of days. Dates with a time zone are read in that zone. A tree reads dates as
    they are, too: to part what is early from what is late needs none of this.

    Parameters
    ----------
    X : data frame of pandas, polars or pyarrow
    columns : sequence of str, optional
        The columns to part; by default all that hold dates, times or durations. Their type must be
        one of these: convert text to dates first.

    Returns
    -------
    data frame
        Of the same kind, with the new columns, named "when (month)" and so on, in place of the old.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"signed": pd.to_datetime(["2024-02-29", "2024-07-01"]), "rate": [1, 2]})
    >>> print(date_parts(X).to_string(index=False))
     signed (year) signed (month) signed (weekday)  signed (hour)  rate
       2024.161202            Feb              Thu            0.0     1
       2024.497268            Jul              Mon            0.0     2
    """
    frame = nw.from_native(X, eager_only=True)
    names = list(frame.columns)
    if columns is None:
        chosen = {name for name in names if isinstance(frame.schema[name], TEMPORAL)}
    else:
        find = feature_finder(names, "columns")
        chosen = {names[find(column)] for column in columns}
    made: list[nw.Series[Any]] = []
    for name in names:
        made += _parts(frame[name]) if name in chosen else [frame[name]]
    return frame.select(*made).to_native()


def _parts(series: nw.Series[Any]) -> list[nw.Series[Any]]:
    kind, name = series.dtype, series.name
    if isinstance(kind, nw.Duration):
        days = series.dt.total_microseconds() / (1e6 * SECONDS_PER_DAY)
        return [days.alias(f"{name} (days)")]
    if isinstance(kind, nw.Time):
        return [_hours(series)]
    if not isinstance(kind, nw.Date | nw.Datetime):
        raise TypeError(
            f"column {name!r} holds {kind}, not dates or times; turn it into dates first, or leave "
            "it out of columns"
        )
    has_time = isinstance(kind, nw.Datetime)
    hours = _hours(series) if has_time else None
    parts = [_years(series, hours), _named(series.dt.month(), series, "month", MONTHS)]
    parts.append(_named(series.dt.weekday(), series, "weekday", WEEKDAYS))
    return parts if hours is None else [*parts, hours]


def _hours(series: nw.Series[Any]) -> nw.Series[Any]:
    hours = series.dt.hour() + series.dt.minute() / 60 + series.dt.second() / 3600
    return hours.alias(f"{series.name} (hour)")


def _years(series: nw.Series[Any], hours: nw.Series[Any] | None) -> nw.Series[Any]:
    """The year and what has passed of it, as a number."""
    year = series.dt.year()
    days = series.dt.ordinal_day() - 1.0
    if hours is not None:
        days = days + hours / 24
    is_leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    return (year + days / (365.0 + is_leap.cast(nw.Float64))).alias(f"{series.name} (year)")


def _named(
    numbers: nw.Series[Any], like: nw.Series[Any], part: str, names: tuple[str, ...]
) -> nw.Series[Any]:
    """Numbers from 1 on as ordered categories, in a column like another."""
    values = numbers.cast(nw.Float64).to_numpy()
    codes = np.where(np.isnan(values), 0, values).astype(np.int32) - 1
    native = _ordered(codes, names, like)
    return nw.from_native(native, series_only=True).alias(f"{like.name} ({part})")


def _ordered(codes: np.ndarray, names: tuple[str, ...], like: nw.Series[Any]) -> Any:
    native = like.to_native()
    if like.implementation.is_pandas_like():
        import pandas as pd

        values = pd.Categorical.from_codes(codes, categories=list(names), ordered=True)
        return pd.Series(values, index=native.index)
    texts: Iterable[str | None] = (names[code] if code >= 0 else None for code in codes)
    if like.implementation.is_polars():
        import polars as pl

        return pl.Series(list(texts), dtype=pl.Enum(names))
    import pyarrow as pa

    indices = pa.array(codes, mask=codes < 0)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(indices, list(names), ordered=True)])
