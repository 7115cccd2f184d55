"""Hashes of rows: by their numbers, which samples go by, and by what they hold.

Samples have the rows whose numbers have the smallest hashes. Rows that hold the same have equal
hashes, wherever they stand.
"""

import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from shapetree._core.columns cimport UINT32, Columns, check_rows, code_at

cdef uint64_t GOLDEN = 0x9E3779B97F4A7C15    # what splitmix64 adds at each step


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """The number that splitmix64 gives after `x`."""
    x += GOLDEN
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


def row_hashes(const int64_t[::1] rows not None):
    """Hashes of rows' numbers, which all samples go by: those of splitmix64, seeded with 0."""
    cdef Py_ssize_t i
    out = np.empty(rows.shape[0], dtype=np.uint64)
    cdef uint64_t[::1] hashes = out
    with nogil:
        for i in range(rows.shape[0]):
            hashes[i] = mix(GOLDEN * <uint64_t> rows[i])
    return out


# --- by what rows hold ----------------------------------------------------------------------------

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
