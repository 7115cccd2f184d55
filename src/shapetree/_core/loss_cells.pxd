# Losses of rows, summed by the bins of a feature.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused bin_t:
    uint8_t
    uint16_t
    uint32_t


cdef class CellScratch:
    cdef double* sums
    cdef uint64_t* marks
    cdef Py_ssize_t n_sums        # for each feature
    cdef Py_ssize_t n_words       # for each thread


cdef void add_losses(
    const bin_t* bins, const int32_t* rows, const double* values, Py_ssize_t n, int n_others,
    double* sums, uint64_t* marks,
) noexcept nogil

cdef void add_to_two(
    const uint8_t* bins, const uint8_t* others_bins, const int32_t* rows, const double* values,
    Py_ssize_t n, int n_others, double* sums, double* others_sums,
) noexcept nogil

cdef int gather_cells(
    double* sums, uint64_t* marks, Py_ssize_t n_bins, int n_others, int32_t* bin_of_cell,
    double* losses,
) noexcept nogil
