# A table's columns as raw pointers, for loops without the GIL.

from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t

cdef enum ColumnKind:
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    FLOAT32 = 4
    FLOAT64 = 5
    NOT_GIVEN = 6

ctypedef struct Column:
    const char* data
    Py_ssize_t stride    # bytes from one row to the next
    int kind             # a ColumnKind
    uint32_t largest     # greatest bin in a column of bins

cdef class Columns:
    cdef Column* column
    cdef readonly Py_ssize_t n_rows
    cdef readonly int n_columns
    cdef list _arrays    # keeps the memory alive

    cdef int check_bins(self, const int64_t[::1] offsets, int first, int last) except -1


cdef inline uint32_t code_at(const Column* column, Py_ssize_t row) noexcept nogil:
    """A bin's number in a column of bins."""
    if column.kind == UINT8:
        return (<const uint8_t*> column.data)[row]
    if column.kind == UINT16:
        return (<const uint16_t*> column.data)[row]
    return (<const uint32_t*> column.data)[row]
