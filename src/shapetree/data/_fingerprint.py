"""Fingerprints: whether rows that are read again are the same, in the same order."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any
from zlib import crc32

import narwhals.stable.v2 as nw
import numpy as np

from shapetree._core.sampling import row_hashes
from shapetree.data._columns import Values, factorize, series_to_numpy
from shapetree.data._missing import is_missing_type

# Of a column that is not read whole, so many rows are at first, and one of so many after that.
FIRST_ROWS = 1024
ONE_OF = 509


class Fingerprint:
    """Sums of hashes of values and of the numbers of their rows.

    They depend on the order of the rows, but neither on how these are cut into batches nor on the
    process.

    Parameters
    ----------
    whole : collection
        Names of columns that are read in every row; others are in a sample.

    Attributes
    ----------
    n_rows : int
        Rows so far.
    sums : dict of int
        By the names of columns.
    """

    def __init__(self, whole: Collection[Hashable] = ()) -> None:
        self.n_rows = 0
        self.sums: dict[Hashable, int] = {}
        self._whole = whole

    def add(self, n_rows: int, columns: Iterable[tuple[Hashable, Values]]) -> None:
        """Take in the rows that come next, of which all columns are given by their names."""
        first, last = self.n_rows, self.n_rows + n_rows
        next_one = -(-max(first, FIRST_ROWS) // ONE_OF) * ONE_OF
        chosen = np.concatenate(
            [np.arange(first, min(last, FIRST_ROWS)), np.arange(next_one, last, ONE_OF)]
        )
        every = row_hashes(np.arange(first, last)) if self._whole else None
        for name, values in columns:
            if every is not None and name in self._whole:
                found = _sum_of(values, every)
            else:
                found = _sum_of(values[chosen - first], row_hashes(chosen))
            self.sums[name] = (self.sums.get(name, 0) + found) % 2**64
        self.n_rows += n_rows

    def differs_from(self, first: Fingerprint) -> str | None:
        """How the rows differ from those that were read first, in words; None if they do not."""
        if self.n_rows != first.n_rows:
            n_now = "more" if self.n_rows > first.n_rows else f"{self.n_rows:,}"
            return f"there were {first.n_rows:,}, but now there are {n_now}"
        for name, own in self.sums.items():
            if first.sums.setdefault(name, own) != own:
                return f"column {name!r} has other values now, or the same ones in another order"
        return None


def _sum_of(values: Values, rows: np.ndarray) -> int:
    """Sum of the hashes of values and of the hashes of their rows' numbers."""
    return int(row_hashes(_bits_of(values) ^ rows.view(np.int64)).sum(dtype=np.uint64))


def _bits_of(values: Values) -> np.ndarray:
    """A number of 64 bits for each value; equal ones of equal values, whatever their type."""
    if isinstance(values, nw.Series):
        if isinstance(values.dtype, nw.Boolean):
            values = values.cast(nw.Float64).to_numpy()
        elif values.dtype.is_numeric():
            values = series_to_numpy(values)
        elif len(values) > FIRST_ROWS and isinstance(values.dtype, nw.String | nw.Categorical):
            codes, levels = factorize(values, "")
            return np.array([*map(_hash_of, levels), 0], dtype=np.int64)[codes]
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        floats = values.astype(np.float64, copy=False) + 0.0  # zero is zero, whatever its sign
        if values.dtype.kind == "f":
            floats[np.isnan(floats)] = np.nan
        return floats.view(np.int64)
    listed = values.to_list() if isinstance(values, nw.Series) else values.tolist()
    return np.array(list(map(_hash_of, listed)), dtype=np.int64)


def _hash_of(value: Any) -> int:
    if is_missing_type(type(value)) or (isinstance(value, float) and value != value):
        return 0
    # Python's own hash of text is another one in every process.
    return crc32(str(value).encode("utf-8", "surrogatepass"))
