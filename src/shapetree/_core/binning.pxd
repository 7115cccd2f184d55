# Sorts of numbers, from which bins are made.

from libc.stdint cimport int32_t, int64_t, uint32_t, uint8_t

from shapetree._core.threads cimport Arena

ctypedef struct Workspace:
    # What a thread needs to sort numbers.
    double* other              # as many numbers as rows
    uint32_t* row              # as many rows, or NULL: the rows' order is not wanted
    uint32_t* other_row
    int64_t* count             # of each digit
    int32_t* start             # of each bucket, and the end
    uint8_t* is_sorted         # each bucket
    double* seen               # distinct values in a hash table
    int64_t n_seen             # room there, a power of two

cdef void take_workspace(
    Workspace* work, Py_ssize_t n, bint with_rows, Py_ssize_t max_bins, Arena* arena
) noexcept nogil

cdef void sort_with_rows(double* values, Py_ssize_t n, Workspace* work) noexcept nogil
