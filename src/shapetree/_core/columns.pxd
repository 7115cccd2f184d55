# A table's columns as raw pointers, for loops without the GIL.

from libc.float cimport DBL_MAX
from libc.math cimport NAN
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t

ctypedef fused bin_t:
    uint8_t
    uint16_t
    uint32_t

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
    cdef readonly object order    # numbers that the rows had before they were moved; None if as now

    cdef int check_bins(self, const int64_t[::1] offsets, int first, int last) except -1
    cdef int check_numbers(self, const int32_t[::1] features) except -1

cdef int check_rows(const int32_t[::1] rows, Py_ssize_t n_rows) except -1

cdef int point_at(Column* column, object array, int i, Py_ssize_t n_rows, bint to_write) except -1


cdef inline uint32_t code_at(const Column* column, Py_ssize_t row) noexcept nogil:
    """A bin's number in a column of bins."""
    if column.kind == UINT8:
        return (<const uint8_t*> column.data)[row]
    if column.kind == UINT16:
        return (<const uint16_t*> column.data)[row]
    return (<const uint32_t*> column.data)[row]


cdef inline double number_at(const Column* column, Py_ssize_t row) noexcept nogil:
    """A number in a column of numbers as it is, infinite or not; NaN if missing."""
    cdef const char* at = column.data + row * column.stride
    return (<const double*> at)[0] if column.kind == FLOAT64 else (<const float*> at)[0]


cdef inline double finite(double value) noexcept nogil:
    """A number, infinite ones as the greatest finite ones; NaN stays."""
    if value > DBL_MAX:
        return DBL_MAX
    return -DBL_MAX if value < -DBL_MAX else value


cdef inline double side_at(
    const Column* column, Py_ssize_t row, const double* position, int n_positions
) noexcept nogil:
    """What a pair's cuts read of one of its features: the number, or the category's position.

    NaN stands for missing values and for categories that have no position.
    """
    cdef int32_t code
    if column.kind != INT32:
        return finite(number_at(column, row))
    code = (<const int32_t*> (column.data + row * column.stride))[0]
    return position[code] if 0 <= code < n_positions else NAN


cdef inline double projection(double a, double u, double b, double v) noexcept nogil:
    """Where a point lies along an orientation; `a` is 0 or 1, so finite u and v give no NaN."""
    return a * u + b * v
