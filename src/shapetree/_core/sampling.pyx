"""Samples of rows: which rows' numbers have the smallest hashes."""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t


def row_hashes(const int64_t[::1] rows not None):
    """Hashes of rows' numbers, which all samples go by."""
    cdef Py_ssize_t i
    out = np.empty(rows.shape[0], dtype=np.uint64)
    cdef uint64_t[::1] hashes = out
    with nogil:
        for i in range(rows.shape[0]):
            hashes[i] = hash_of(<uint64_t> rows[i])
    return out


def places_up_to(const int32_t[::1] rows not None, int64_t first_row, uint64_t limit):
    """Places of those rows whose hash is not above a limit; they are numbered from `first_row`."""
    cdef:
        Py_ssize_t i, n = 0
        int32_t[::1] places
    if not 0 <= first_row <= 2**62:
        raise ValueError("rows are out of range")
    out = np.empty(rows.shape[0] + 1, dtype=np.int32)
    places = out
    with nogil:
        for i in range(rows.shape[0]):
            places[n] = <int32_t> i
            n += hash_of(<uint64_t> (first_row + rows[i])) <= limit
    return out[:n]


def rows_up_to(int64_t first_row, int64_t n_rows, uint64_t limit):
    """Numbers of those of the rows from `first_row` on whose hash is not above a limit."""
    cdef:
        int64_t i, n = 0
        int64_t[::1] chosen
    if n_rows < 0 or first_row < 0 or first_row > 2**62 or n_rows > 2**62:
        raise ValueError("rows are out of range")
    with nogil:
        for i in range(first_row, first_row + n_rows):
            n += hash_of(<uint64_t> i) <= limit
    out = np.empty(n, dtype=np.int64)
    chosen = out
    n = 0
    with nogil:
        for i in range(first_row, first_row + n_rows):
            if hash_of(<uint64_t> i) <= limit:
                chosen[n] = i
                n += 1
    return out
