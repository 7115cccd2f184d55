"""Samples of rows: which rows' numbers have the smallest hashes."""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memmove

cdef enum:
    ROWS_PER_BLOCK = 65536    # that one thread looks at in one go


def row_hashes(const int64_t[::1] rows not None):
    """Hashes of rows' numbers, which all samples go by."""
    cdef Py_ssize_t i
    out = np.empty(rows.shape[0], dtype=np.uint64)
    cdef uint64_t[::1] hashes = out
    with nogil:
        for i in range(rows.shape[0]):
            hashes[i] = hash_of(<uint64_t> rows[i])
    return out


cdef Py_ssize_t choose_places(
    const int32_t* rows, Py_ssize_t first, Py_ssize_t last, int64_t first_row, uint64_t limit,
    int32_t* places,
) noexcept nogil:
    """Choose some of the rows first..last-1 by their hashes; returns how many there are."""
    cdef Py_ssize_t i, n = 0
    for i in range(first, last):
        places[n] = <int32_t> i
        n += hash_of(<uint64_t> (first_row + rows[i])) <= limit
    return n


def places_up_to(
    const int32_t[::1] rows not None, int64_t first_row, uint64_t limit, int n_threads=1
):
    """Places of those rows whose hash is not above a limit; they are numbered from `first_row`."""
    cdef:
        Py_ssize_t block, n = 0, n_rows = rows.shape[0]
        Py_ssize_t n_blocks = (n_rows + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK
        int32_t[::1] places
        int64_t[::1] n_chosen
    if not 0 <= first_row <= 2**62 or n_threads < 1:
        raise ValueError("rows or n_threads are out of range")
    out = np.empty(n_rows + 1, dtype=np.int32)
    places = out
    n_chosen = np.zeros(n_blocks, dtype=np.int64)
    with nogil:
        for block in prange(n_blocks, num_threads=n_threads, schedule="dynamic"):
            n_chosen[block] = choose_places(
                &rows[0], block * ROWS_PER_BLOCK, min((block + 1) * ROWS_PER_BLOCK, n_rows),
                first_row, limit, &places[block * ROWS_PER_BLOCK])
        for block in range(n_blocks):
            memmove(&places[n], &places[block * ROWS_PER_BLOCK],
                    n_chosen[block] * sizeof(int32_t))
            n += n_chosen[block]
    return out[:n]


cdef int64_t count_rows(int64_t first, int64_t last, uint64_t limit) noexcept nogil:
    cdef int64_t i, n = 0
    for i in range(first, last):
        n += hash_of(<uint64_t> i) <= limit
    return n


cdef void list_rows(int64_t first, int64_t last, uint64_t limit, int64_t* chosen) noexcept nogil:
    cdef int64_t i, n = 0
    for i in range(first, last):
        if hash_of(<uint64_t> i) <= limit:
            chosen[n] = i
            n += 1


def rows_up_to(int64_t first_row, int64_t n_rows, uint64_t limit, int n_threads=1):
    """Numbers of those of the rows from `first_row` on whose hash is not above a limit."""
    cdef:
        int64_t block, n_blocks, stop
        int64_t[::1] start, chosen
    if n_rows < 0 or first_row < 0 or first_row > 2**62 or n_rows > 2**62 or n_threads < 1:
        raise ValueError("rows or n_threads are out of range")
    stop = first_row + n_rows
    n_blocks = (n_rows + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK
    starts = np.zeros(n_blocks + 1, dtype=np.int64)
    start = starts
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        start[block + 1] = count_rows(
            first_row + block * ROWS_PER_BLOCK,
            min(first_row + (block + 1) * ROWS_PER_BLOCK, stop), limit)
    np.cumsum(starts, out=starts)
    out = np.empty(start[n_blocks] + 1, dtype=np.int64)
    chosen = out
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        list_rows(
            first_row + block * ROWS_PER_BLOCK,
            min(first_row + (block + 1) * ROWS_PER_BLOCK, stop), limit, &chosen[start[block]])
    return out[:start[n_blocks]]
