"""A table's columns as raw pointers, for loops without the GIL."""

from libc.stdlib cimport calloc, free

cdef dict KINDS = {
    "uint8": UINT8, "uint16": UINT16, "uint32": UINT32, "int32": INT32, "float32": FLOAT32,
    "float64": FLOAT64,
}


cdef class Columns:
    """One-dimensional arrays of one length, of the dtypes the kernels read; None for unused ones.

    Columns of bins (unsigned integers) must be contiguous; others may have any stride. The arrays
    must not change any more.
    """

    def __cinit__(self, arrays, Py_ssize_t n_rows):
        cdef:
            int i
        self._arrays = list(arrays)
        self.n_rows = n_rows
        self.n_columns = len(self._arrays)
        self.column = <Column*> calloc(self.n_columns + 1, sizeof(Column))
        if self.column == NULL:
            raise MemoryError("no memory for the table's columns")
        for i, array in enumerate(self._arrays):
            self.column[i].kind = NOT_GIVEN
            if array is None:
                continue
            if array.dtype.name not in KINDS or array.dtype.byteorder == ">":
                raise TypeError(f"column {i} has dtype {array.dtype}, which no kernel reads")
            if array.shape != (n_rows,):
                raise ValueError(f"column {i} has shape {array.shape}, expected {(n_rows,)}")
            if array.dtype.kind == "u" and not array.flags.c_contiguous:
                raise ValueError(f"column {i} of bins is not contiguous")
            if not array.flags.aligned:
                raise ValueError(f"column {i} is not aligned")
            self.column[i].largest = array.max(initial=0) if array.dtype.kind == "u" else 0
            self.column[i].kind = KINDS[array.dtype.name]
            self.column[i].stride = array.strides[0]
            self.column[i].data = <const char*> <size_t> array.ctypes.data

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
