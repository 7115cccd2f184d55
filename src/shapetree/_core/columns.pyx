"""A table's columns as raw pointers, for loops without the GIL."""

from cpython.buffer cimport (
    PyBUF_FORMAT, PyBUF_STRIDED_RO, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer,
)
from libc.stdlib cimport calloc, free

import sys

import numpy as np

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


cdef class Columns:
    """One-dimensional arrays of one length, of the dtypes the kernels read; None for unused ones.

    Columns of bins (unsigned integers) must be contiguous; others may have any stride. The arrays
    must not change any more.
    """

    def __cinit__(self, arrays, Py_ssize_t n_rows):
        cdef:
            int i
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
                if self.column[i].kind <= UINT32:
                    self.column[i].largest = largest_of(&self.column[i], n_rows)

    def __dealloc__(self):
        free(self.column)

    def array(self, int i):
        """One of the arrays."""
        return self._arrays[i]

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
