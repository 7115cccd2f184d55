"""A table's columns as raw pointers, for loops without the GIL, and how far their numbers reach."""

import sys

import numpy as np

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDED_RO, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

cdef enum:
    VISITS_PER_CHECK = 20_000_000    # moves of a row between two chances for Ctrl-C

cdef dict KINDS = {
    b"B": UINT8, b"H": UINT16, b"I": UINT32, b"i": INT32, b"f": FLOAT32, b"d": FLOAT64,
}
if sizeof(long) == 4:
    KINDS[b"l"] = INT32
    KINDS[b"L"] = UINT32
cdef int* SIZES = [1, 2, 4, 4, 4, 8]
# NumPy writes the byte order only where it is not the machine's, or where it was said.
cdef bytes NATIVE_ORDERS = b"=@<" if sys.byteorder == "little" else b"=@>"


cdef int kind_of(const char* letters) except -1:
    """Kind of a buffer's numbers; NOT_GIVEN if no kernel reads them."""
    cdef bytes code = letters
    if len(code) == 2 and code[:1] in NATIVE_ORDERS:
        code = code[1:]
    return KINDS.get(code, NOT_GIVEN)


cdef int point_at(
    Column* column, object array, int i, Py_ssize_t n_rows, bint to_write
) except -1:
    """Note where column i's numbers are, if kernels can read them there."""
    cdef:
        Py_buffer buffer
        int kind
    if not isinstance(array, np.ndarray):
        raise TypeError(f"column {i} is not an array")
    if array.shape != (n_rows,):
        raise ValueError(f"column {i} has shape {array.shape}, expected {(n_rows,)}")
    if array.dtype.kind not in "uif":
        raise TypeError(f"column {i} has dtype {array.dtype}, which no kernel reads")
    PyObject_GetBuffer(
        array, &buffer, PyBUF_FORMAT | PyBUF_STRIDED_RO | (PyBUF_WRITABLE if to_write else 0))
    try:
        kind = kind_of(buffer.format)
        if kind == NOT_GIVEN:
            raise TypeError(f"column {i} has dtype {array.dtype}, which no kernel reads")
        if kind <= UINT32 and n_rows > 1 and buffer.strides[0] != SIZES[kind]:
            raise ValueError(f"column {i} of bins is not contiguous")
        if <size_t> buffer.buf % SIZES[kind] or (n_rows > 1 and buffer.strides[0] % SIZES[kind]):
            raise ValueError(f"column {i} is not aligned")
        column.kind = kind
        column.stride = buffer.strides[0]
        column.data = <const char*> buffer.buf
        column.largest = 0
    finally:
        PyBuffer_Release(&buffer)
    return 0


cdef uint32_t largest_of(const Column* column, Py_ssize_t n_rows) noexcept nogil:
    """Greatest bin in a column."""
    cdef:
        Py_ssize_t row
        uint8_t narrow = 0
        uint16_t wide = 0
        uint32_t widest = 0
    if column.kind == UINT8:
        for row in range(n_rows):
            narrow = max(narrow, (<const uint8_t*> column.data)[row])
    elif column.kind == UINT16:
        for row in range(n_rows):
            wide = max(wide, (<const uint16_t*> column.data)[row])
    else:
        for row in range(n_rows):
            widest = max(widest, (<const uint32_t*> column.data)[row])
    return max(<uint32_t> narrow, max(<uint32_t> wide, widest))


cdef int check_rows(const int32_t[::1] rows, Py_ssize_t n_rows) except -1:
    cdef:
        Py_ssize_t i
        bint inside = True
    with nogil:
        for i in range(rows.shape[0]):
            inside &= 0 <= rows[i] < n_rows
    if not inside:
        raise IndexError(f"rows must lie between 0 and {n_rows - 1}")
    return 0


cdef void move_rows(
    bin_t* bins, const int32_t* place, Py_ssize_t n_rows, bin_t* scratch
) noexcept nogil:
    """Move the row at i to place[i], for all i: scratch[place[i]] = bins[i], and all back."""
    cdef Py_ssize_t row
    for row in range(n_rows):
        scratch[place[row]] = bins[row]
    memcpy(bins, scratch, n_rows * sizeof(bin_t))


cdef void move_rows_of(
    const Column* column, const int32_t* place, Py_ssize_t n_rows, void* scratch
) noexcept nogil:
    if column.kind == UINT8:
        move_rows(<uint8_t*> column.data, place, n_rows, <uint8_t*> scratch)
    elif column.kind == UINT16:
        move_rows(<uint16_t*> column.data, place, n_rows, <uint16_t*> scratch)
    else:
        move_rows(<uint32_t*> column.data, place, n_rows, <uint32_t*> scratch)


cdef object places_in(const int32_t[::1] order, Py_ssize_t n_rows, int n_threads):
    """The place of each row in an order, which must hold every row once."""
    cdef:
        Py_ssize_t i
        int n_strange = order.shape[0] != n_rows
        int32_t[::1] place
    places = np.full(n_rows, -1, dtype=np.int32)
    place = places
    if not n_strange:
        for i in prange(n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            if 0 <= order[i] < n_rows:
                place[order[i]] = <int32_t> i
        # As many rows as places: if a row is there twice, another has none.
        for i in prange(n_rows, nogil=True, num_threads=n_threads, schedule="static"):
            n_strange += place[i] < 0
    if n_strange:
        raise ValueError("an order must hold every row once")
    return places


cdef class Columns:
    """One-dimensional arrays of one length, of the dtypes the kernels read; None for unused ones.

    Columns of bins (unsigned integers) must be contiguous; others may have any stride. The arrays
    must not change any more, except by `reorder`. Threads look for the greatest bin of each.
    """

    def __cinit__(self, arrays, Py_ssize_t n_rows, int n_threads=1):
        cdef:
            int i
        if n_threads < 1:
            raise ValueError("n_threads must be at least 1")
        if n_rows < 0:
            raise ValueError("n_rows must not be negative")
        self._arrays = list(arrays)
        self.n_rows = n_rows
        self.n_columns = len(self._arrays)
        self.column = <Column*> calloc(self.n_columns + 1, sizeof(Column))
        if self.column == NULL:
            raise MemoryError("no memory for the table's columns")
        for i, array in enumerate(self._arrays):
            self.column[i].kind = NOT_GIVEN
            if array is not None:
                point_at(&self.column[i], array, i, n_rows, False)
        for i in prange(self.n_columns, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if self.column[i].kind <= UINT32:
                self.column[i].largest = largest_of(&self.column[i], n_rows)

    def __dealloc__(self):
        free(self.column)

    def array(self, int i):
        """One of the arrays."""
        return self._arrays[i]

    def __reduce__(self):
        return Columns, (self._arrays, self.n_rows)

    def reorder(self, const int32_t[::1] order not None, int n_threads):
        """Move the rows in the arrays themselves, so that row order[i] comes to stand at place i.

        All columns must hold bins, and nothing else may rely on the order of their rows. If Ctrl-C
        is heard, some columns have another order than others.
        """
        cdef:
            Py_ssize_t n_rows = self.n_rows, size
            int first, last, i, n_together
            const int32_t[::1] place
            Column column
            char* scratch
        if n_threads < 1:
            raise ValueError("n_threads must be at least 1")
        n_threads = min(n_threads, max(1, self.n_columns))
        places = places_in(order, n_rows, n_threads)
        if n_rows == 0 or self.n_columns == 0:
            return
        place, size = places, 1
        for i, array in enumerate(self._arrays):
            if self.column[i].kind > UINT32:
                raise ValueError(f"column {i} does not hold bins")
            point_at(&column, array, i, n_rows, True)  # which refuses what cannot be written to
            size = max(size, SIZES[column.kind])
        scratch = <char*> malloc(n_threads * n_rows * size)
        if scratch == NULL:
            raise MemoryError("no memory to move rows")
        try:
            n_together = max(n_threads, <int> (VISITS_PER_CHECK // n_rows))
            for first in range(0, self.n_columns, n_together):
                PyErr_CheckSignals()
                last = min(first + n_together, self.n_columns)
                for i in prange(first, last, nogil=True, num_threads=n_threads,
                                schedule="dynamic"):
                    move_rows_of(&self.column[i], &place[0], n_rows,
                                 scratch + threadid() * n_rows * size)
        finally:
            free(scratch)
        moved = np.array(order)
        self.order = moved if self.order is None else self.order[moved]

    cdef int check_bins(self, const int64_t[::1] offsets, int first, int last) except -1:
        """Refuse columns with bins for which a histogram has no room."""
        cdef int f
        if offsets.shape[0] != self.n_columns + 1 or not 0 <= first <= last <= self.n_columns:
            raise ValueError("features out of range")
        for f in range(first, last):
            if self.column[f].kind > UINT32:
                raise ValueError(f"column {f} does not hold bins")
            if not 0 <= offsets[f] <= offsets[f + 1] or (
                    offsets[f + 1] - offsets[f] <= self.column[f].largest):
                raise ValueError(f"column {f} has more bins than it was said to have")
        return 0

    cdef int check_numbers(self, const int32_t[::1] features) except -1:
        """Refuse features that are not columns of numbers."""
        cdef int f
        for f in features:
            if not 0 <= f < self.n_columns:
                raise ValueError(f"there is no column {f}")
            if self.column[f].kind != FLOAT32 and self.column[f].kind != FLOAT64:
                raise ValueError(f"column {f} does not hold numbers")
        return 0


# --- how far numbers reach, and how they are spread -----------------------------------------------

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
            value = number_at(column, row)
            low = value if value < low else low
            high = value if value > high else high
        # Of missing values alone, or of none but infinite ones on the other side.
        if low > high:
            low = high = NAN
        least[f] = low
        greatest[f] = high


def deviations(
    const double[:, ::1] values not None,     # IN: (n_features, n_values)
    const double[::1] counts not None,        # IN: (n_values,) how many rows each counts as
):
    """Standard deviation of each feature's numbers; NaN if there are none."""
    cdef:
        Py_ssize_t f, i
        double value, n, mean, squares
        double[::1] deviation
    if counts.shape[0] != values.shape[1]:
        raise ValueError("there is a count for each value")
    found = np.empty(values.shape[0])
    deviation = found
    for f in range(values.shape[0]):
        n = mean = squares = 0.0
        for i in range(values.shape[1]):
            value = finite(values[f, i])
            if value == value:
                mean += counts[i] * value
                n += counts[i]
        mean = mean / n if n > 0.0 else NAN
        for i in range(values.shape[1]):
            value = finite(values[f, i]) - mean
            if value == value:
                squares += counts[i] * value * value
        deviation[f] = sqrt(squares / n) if n > 0.0 else NAN
    return found
