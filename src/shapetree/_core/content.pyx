"""Rows known by what they hold: equal rows have equal hashes, wherever they stand."""

import numpy as np

from libc.stdint cimport int32_t, uint64_t

from shapetree._core.columns cimport UINT32, Columns, code_at
from shapetree._core.histogram cimport check_rows


cdef inline uint64_t mix(uint64_t x) noexcept nogil:
    """One step of splitmix64."""
    x += <uint64_t> 0x9E3779B97F4A7C15
    x = (x ^ (x >> 30)) * <uint64_t> 0xBF58476D1CE4E5B9
    x = (x ^ (x >> 27)) * <uint64_t> 0x94D049BB133111EB
    return x ^ (x >> 31)


def hash_contents(
    Columns bins not None,                 # IN: columns of bins
    const int32_t[::1] rows not None,      # IN
):
    """A hash of each of the given rows' bins of all features."""
    cdef:
        int f
        Py_ssize_t i
        uint64_t[::1] found
    check_rows(rows, bins.n_rows)
    for f in range(bins.n_columns):
        if bins.column[f].kind > UINT32:
            raise ValueError(f"column {f} does not hold bins")
    hashes = np.zeros(rows.shape[0], dtype=np.uint64)
    found = hashes
    with nogil:
        for f in range(bins.n_columns):
            for i in range(rows.shape[0]):
                found[i] = mix(found[i] ^ code_at(&bins.column[f], rows[i]))
    return hashes
