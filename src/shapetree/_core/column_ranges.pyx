"""How far the numbers of columns reach, and how they are spread."""

import numpy as np

from cython.parallel cimport prange
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t

from shapetree._core.columns cimport FLOAT64, Column, Columns

cdef enum:
    ROWS_OF_BLOCK = 4096      # whose numbers stay in the cache


def extents(
    Columns columns not None,
    const int32_t[::1] features not None,     # IN: columns of numbers
    int n_threads=1,
):
    """Least and greatest of each column's numbers, (2, n_features); NaN if there are none."""
    cdef:
        Py_ssize_t block, n_features = features.shape[0]
        Py_ssize_t n_blocks = (columns.n_rows + ROWS_OF_BLOCK - 1) // ROWS_OF_BLOCK
        double[:, :, ::1] ends
    columns.check_numbers(features)
    if n_threads < 1:
        raise ValueError("n_threads out of range")
    if n_blocks == 0 or n_features == 0:
        return np.full((2, n_features), NAN)
    of_blocks = np.empty((n_blocks, 2, n_features))
    ends = of_blocks
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        extents_of_block(columns, features, block, &ends[block, 0, 0], &ends[block, 1, 0])
    return np.array([np.fmin.reduce(of_blocks[:, 0]), np.fmax.reduce(of_blocks[:, 1])])


cdef void extents_of_block(
    Columns columns, const int32_t[::1] features, Py_ssize_t block, double* least, double* greatest
) noexcept nogil:
    cdef:
        Py_ssize_t f, row, first = block * ROWS_OF_BLOCK
        Py_ssize_t last = min(first + ROWS_OF_BLOCK, columns.n_rows)
        const Column* column
        double value, low, high
    # A block's rows stay in the cache from column to column.
    for f in range(features.shape[0]):
        column = &columns.column[features[f]]
        low = INFINITY
        high = -INFINITY
        for row in range(first, last):
            value = raw_number_at(column, row)
            low = value if value < low else low
            high = value if value > high else high
        # Of missing values alone, or of none but infinite ones on the other side.
        if low > high:
            low = high = NAN
        least[f] = low
        greatest[f] = high


cdef inline double raw_number_at(const Column* column, Py_ssize_t row) noexcept nogil:
    """A number as it is, infinite or not."""
    cdef const char* at = column.data + row * column.stride
    return (<const double*> at)[0] if column.kind == FLOAT64 else (<const float*> at)[0]


def deviations(
    const double[:, ::1] values not None,     # IN: (n_features, n_values)
    const double[::1] counts not None,        # IN: (n_values,) how many rows each counts as
):
    """Standard deviation of each feature's numbers; NaN if there are none."""
    cdef:
        Py_ssize_t f
        double[::1] deviation
    if counts.shape[0] != values.shape[1]:
        raise ValueError("there is a count for each value")
    found = np.empty(values.shape[0])
    deviation = found
    with nogil:
        for f in range(values.shape[0]):
            deviation[f] = deviation_of(values[f], counts)
    return found


cdef double deviation_of(const double[::1] values, const double[::1] counts) noexcept nogil:
    cdef:
        Py_ssize_t i
        double value, n = 0.0, mean = 0.0, squares = 0.0
    for i in range(values.shape[0]):
        value = within_range(values[i])
        if value == value:
            mean += counts[i] * value
            n += counts[i]
    mean = mean / n if n > 0.0 else NAN
    for i in range(values.shape[0]):
        value = within_range(values[i])
        if value == value:
            squares += counts[i] * (value - mean) * (value - mean)
    return sqrt(squares / n) if n > 0.0 else NAN


cdef inline double within_range(double value) noexcept nogil:
    """A number, infinite ones as the greatest finite ones; NaN stays."""
    if value > DBL_MAX:
        return DBL_MAX
    return -DBL_MAX if value < -DBL_MAX else value
