"""Samples of rows, chosen by a hash of the row's number: the same for any partition of the rows."""

from __future__ import annotations

import numpy as np

from shapetree._core.sampling import row_hashes

GREATEST_HASH = 2**64 - 1
# Rows that suffice to find the scale of a feature.
SCALE_ROWS = 10_000
# Rows whose hashes have room in memory at a time.
ROWS_PER_BLOCK = 2**20


def sampled(first_row: int, n_rows: int, n_total: int, size: int) -> np.ndarray:
    """Choose about `size` of all `n_total` rows, or all if there are no more.

    How many they really are varies by about the square root of `size`. Of those that are numbered
    first_row .. first_row + n_rows - 1, the numbers of the chosen ones, ascending.
    """
    if n_total <= size:
        return np.arange(first_row, first_row + n_rows, dtype=np.int64)
    limit, stop = hash_limits(np.array([n_total]), size)[0], first_row + n_rows
    chosen = [np.empty(0, dtype=np.int64)]
    for first in range(first_row, stop, ROWS_PER_BLOCK):
        rows = np.arange(first, min(first + ROWS_PER_BLOCK, stop), dtype=np.int64)
        chosen.append(rows[row_hashes(rows) <= limit])
    return np.concatenate(chosen)


def places_up_to(rows: np.ndarray, first_row: int, limit: int) -> np.ndarray:
    """Places of the rows, counted from `first_row` on, whose hashes are not above a limit."""
    hashes = row_hashes(rows.astype(np.int64) + first_row)
    return np.flatnonzero(hashes <= np.uint64(limit)).astype(np.int32)


def hash_limits(n_rows: np.ndarray, size: int) -> np.ndarray:
    """Largest hash of the rows to choose, for about `size` of a number of rows, or for all of them.

    The fewer the rows, the higher the limit.
    """
    greatest = np.uint64(GREATEST_HASH)
    n_rows = n_rows.astype(np.uint64)
    limits = np.full(len(n_rows), greatest)
    is_many = n_rows > size
    limits[is_many] = greatest // n_rows[is_many] * np.uint64(size)
    return limits


def first_by_hash(rows: np.ndarray, size: int, first_row: int = 0) -> np.ndarray:
    """Places of the `size` of some rows whose hashes are smallest, or of all, ascending.

    The numbers of the rows are counted from `first_row` on.
    """
    if len(rows) <= size:
        return np.arange(len(rows), dtype=np.int32)
    hashes = row_hashes(rows.astype(np.int64) + first_row)
    return np.sort(np.argpartition(hashes, size - 1)[:size]).astype(np.int32)
