"""Samples of rows, chosen by a hash of the row's number: the same for any partition of the rows."""

from __future__ import annotations

import numpy as np

from shapetree._core.sampling import places_up_to, row_hashes, rows_up_to
from shapetree._threads import threads_for

GREATEST_HASH = 2**64 - 1
# Rows that suffice to find the scale of a feature.
SCALE_ROWS = 10_000


def sampled(first_row: int, n_rows: int, n_total: int, size: int, n_threads: int = 1) -> np.ndarray:
    """Choose about `size` of all rows, or all if there are no more.

    Parameters
    ----------
    first_row, n_rows : int
        The rows to choose from: those numbered first_row .. first_row + n_rows - 1 of all.
    n_total : int
        Number of all rows, remote ones included.
    size : int
        Rows to choose of all. How many it really are varies by about its square root.
    n_threads : int

    Returns
    -------
    int64 array
        Numbers of the chosen rows, ascending. Of a part of the rows, those are chosen that
        belong to the sample of all.
    """
    if n_total <= size:
        return np.arange(first_row, first_row + n_rows, dtype=np.int64)
    limit = int(hash_limits(np.array([n_total]), size)[0])
    return rows_up_to(first_row, n_rows, limit, threads_for(n_rows, n_threads))


def hash_limits(n_rows: np.ndarray, size: int) -> np.ndarray:
    """Largest hash of the rows to choose, for about `size` of a number of rows, or for all of them.

    Parameters
    ----------
    n_rows : int array
    size : int

    Returns
    -------
    uint64 array
        The fewer the rows, the higher the limit.
    """
    greatest = np.uint64(GREATEST_HASH)
    n_rows = n_rows.astype(np.uint64)
    limits = np.full(len(n_rows), greatest)
    is_many = n_rows > size
    limits[is_many] = greatest // n_rows[is_many] * np.uint64(size)
    return limits


def first_by_hash(
    rows: np.ndarray, size: int, first_row: int = 0, n_threads: int = 1
) -> np.ndarray:
    """Places of the `size` of some rows whose hashes are smallest, or of all, ascending.

    Parameters
    ----------
    rows : int32 array
        Their numbers, counted from `first_row` on.
    size, first_row, n_threads : int
    """
    if len(rows) <= size:
        return np.arange(len(rows), dtype=np.int32)
    # Twice as many as needed will nearly always do, and are soon sorted out.
    wanted, places = size, np.empty(0, dtype=np.int32)
    while len(places) < size:
        wanted *= 2
        limit = int(hash_limits(np.array([len(rows)]), wanted)[0])
        places = places_up_to(rows, first_row, limit, threads_for(len(rows), n_threads))
    hashes = row_hashes(rows[places].astype(np.int64) + first_row)
    return np.sort(places[np.argpartition(hashes, size - 1)[:size]])
