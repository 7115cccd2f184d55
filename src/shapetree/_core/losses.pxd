# What rows lose in leaves, and the sums of that by bin.

cimport cython

from libc.math cimport fabs
from libc.stdint cimport int32_t, uint16_t, uint32_t, uint64_t, uint8_t

ctypedef struct RowTargets:
    # What the losses of rows are made of.
    const int32_t* labels
    const double* values
    const double* weights
    const double* anchors
    int n_outputs
    bint absolute


@cython.final
cdef class LeafLosses:
    cdef const int32_t[:, ::1] labels
    cdef const double[:, ::1] values
    cdef const double[::1] weights
    cdef const double[::1] anchors
    cdef RowTargets targets
    cdef bint has_labels
    cdef readonly Py_ssize_t n_rows
    cdef readonly int n_outputs
    cdef readonly int n_columns


cdef inline double loss_in_leaf(
    const RowTargets* targets, Py_ssize_t row, const double* leaf, double anchor
) noexcept nogil:
    """Loss of a row in a leaf, whose line of the table is given."""
    cdef:
        int o, n_outputs = targets.n_outputs
        double difference, loss = 0.0
    if targets.labels != NULL:
        loss = leaf[targets.labels[row * n_outputs]]
        for o in range(1, n_outputs):
            loss += leaf[targets.labels[row * n_outputs + o]]
    else:
        for o in range(n_outputs):
            difference = targets.values[row * n_outputs + o] - leaf[o]
            loss += fabs(difference) if targets.absolute else difference * difference
    # Rounded before it is multiplied, so that a weight of n is n rows.
    loss = (loss + anchor) - anchor
    if targets.weights != NULL:
        loss = (loss * targets.weights[row] + anchor) - anchor
    return loss


cdef void add_targets(
    const RowTargets* targets, const int32_t* rows, Py_ssize_t n, double* sums
) noexcept nogil

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
