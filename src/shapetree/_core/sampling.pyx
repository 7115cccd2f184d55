"""Hashes of rows: by their numbers, which samples go by, and by what they hold.

Samples have the rows whose numbers have the smallest hashes. Rows that hold the same have equal
hashes, wherever they stand.
"""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove

from shapetree._core.columns cimport UINT32, Columns, check_rows, code_at

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


# --- by what rows hold ----------------------------------------------------------------------------

cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """One step of splitmix64."""
    x += <uint64_t> 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


cdef int check_bins(Columns bins) except -1:
    cdef int f
    for f in range(bins.n_columns):
        if bins.column[f].kind > UINT32:
            raise ValueError(f"column {f} does not hold bins")
    return 0


def hash_contents(
    Columns bins not None,                 # IN: columns of bins
    const int32_t[::1] rows not None,      # IN
):
    """A hash of each of the given rows' bins of all features, known by their places."""
    cdef:
        int f
        Py_ssize_t i
        uint64_t[::1] found
    check_rows(rows, bins.n_rows)
    check_bins(bins)
    hashes = np.zeros(rows.shape[0], dtype=np.uint64)
    found = hashes
    with nogil:
        for f in range(bins.n_columns):
            for i in range(rows.shape[0]):
                found[i] = mix(found[i] ^ code_at(&bins.column[f], rows[i]))
    return hashes


def hash_targets(targets not None):
    """A hash of what each row is to learn; of one column or several."""
    cdef:
        Py_ssize_t i, j
        const uint64_t[:, ::1] bits
        uint64_t[::1] found
    # Zero is zero, whatever its sign.
    numbers = np.ascontiguousarray(targets, dtype=np.float64) + 0.0
    bits = numbers.view(np.uint64)
    hashes = np.zeros(numbers.shape[0], dtype=np.uint64)
    found = hashes
    with nogil:
        for i in range(bits.shape[0]):
            for j in range(bits.shape[1]):
                found[i] = mix(found[i] ^ bits[i, j])
    return hashes


def keys_of_columns(
    Columns bins not None,                 # IN: columns of bins
    const uint64_t[::1] targets not None,  # IN: (n_rows,) hashes of what rows are to learn
    const uint64_t[::1] times=None,        # IN: (n_rows,) how often each row is there; once
):
    """A number for each column that tells how its bins go with the targets, wherever it stands.

    The numbers of parts of the rows add up to those of all.
    """
    cdef:
        int f
        Py_ssize_t i, n_rows = bins.n_rows
        uint64_t key
        uint64_t[::1] found
    check_bins(bins)
    if targets.shape[0] != n_rows:
        raise ValueError("every row needs a target")
    if times is not None and times.shape[0] != n_rows:
        raise ValueError("every row is there so many times")
    keys = np.zeros(bins.n_columns, dtype=np.uint64)
    found = keys
    with nogil:
        for f in range(bins.n_columns):
            key = 0
            for i in range(n_rows):
                key += (1 if times is None else times[i]) * (
                    mix(targets[i] + code_at(&bins.column[f], i)))
            found[f] = key
    return keys


def count_distinct(
    const uint64_t[::1] hashes not None,   # IN
):
    """How many different numbers there are."""
    cdef:
        Py_ssize_t i, n = hashes.shape[0], n_distinct = 0
        uint64_t mask = 1, place, number
        uint64_t* seen
        bint saw_zero = False
    while mask < 2 * <uint64_t> n:
        mask *= 2
    seen = <uint64_t*> calloc(mask, sizeof(uint64_t))
    if seen == NULL:
        raise MemoryError("no memory to compare rows")
    mask -= 1
    with nogil:
        for i in range(n):
            number = hashes[i]
            if number == 0:  # which marks a place that is free
                n_distinct += not saw_zero
                saw_zero = True
                continue
            place = mix(number) & mask
            while seen[place] != 0 and seen[place] != number:
                place = (place + 1) & mask
            n_distinct += seen[place] == 0
            seen[place] = number
    free(seen)
    return n_distinct


def hash_rows(
    Columns bins not None,                 # IN: columns of bins
    const uint64_t[::1] keys not None,     # IN: (n_columns,) those of all rows' columns
):
    """A hash of each row's bins; the order of columns or rows makes no difference.

    A column is known by its key. Two columns of the same key are taken for each other.
    """
    cdef:
        int f
        Py_ssize_t i, n_rows = bins.n_rows
        uint64_t key
        uint64_t[::1] found
    check_bins(bins)
    if keys.shape[0] != bins.n_columns:
        raise ValueError("every column needs a key")
    hashes = np.zeros(n_rows, dtype=np.uint64)
    found = hashes
    with nogil:
        for f in range(bins.n_columns):
            key = mix(keys[f])
            for i in range(n_rows):
                found[i] += mix(key ^ code_at(&bins.column[f], i))
    return hashes
