"""A table's columns as raw pointers, for loops without the GIL."""

from libc.stdlib cimport calloc, free

cdef dict KINDS = {
    "uint8": UINT8, "uint16": UINT16, "uint32": UINT32, "int32": INT32, "float32": FLOAT32,
    "float64": FLOAT64,
}


cdef class Columns:
    """One-dimensional arrays of one length, of the dtypes the kernels read; None for unused ones.

    Columns of bins (unsigned integers) must be contiguous; others may have any stride.
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
            self.column[i].kind = KINDS[array.dtype.name]
            self.column[i].stride = array.strides[0]
            self.column[i].data = <const char*> <size_t> array.ctypes.data

    def __dealloc__(self):
        free(self.column)
