# Sorts that no comparison slows down.

from libc.stdint cimport int32_t, uint32_t, uint64_t

cdef void sort_items(
    uint64_t* items, uint64_t* scratch, Py_ssize_t n, uint32_t largest
) noexcept nogil

cdef void sort_rows(
    int32_t* rows, int32_t* scratch, Py_ssize_t n, uint32_t largest
) noexcept nogil

cdef void sort_by_value(
    const double* value, Py_ssize_t n, uint64_t* items, uint64_t* scratch, int32_t* order
) noexcept nogil
