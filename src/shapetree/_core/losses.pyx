"""What a row loses in a leaf: by its class, or by how far its numbers are from the leaf's.

Losses are rounded to a grid, so that their sums are exact: neither the order of rows nor the number
of threads can change them. `anchor` is a power of two that no sum of losses exceeds; to add and
subtract it leaves multiples of anchor / 2**52.

Losses are summed by the bins of a feature: bins that rows lie in are its *cells*. Sums that nothing
was added to are minus zero, so that no other mark is needed where bins are few.
"""

cimport cython

import numpy as np

from libc.math cimport signbit
from libc.stdint cimport int32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc


@cython.final
cdef class LeafLosses:
    """What it costs to send a row to a leaf.

    Parameters
    ----------
    labels : int32 array (n_rows, n_outputs) or None
        For each output, the column of a table that holds the row's loss in every leaf.
    values : float64 array (n_rows, n_outputs) or None
        Or the row's own values, from which those of the leaf in the table differ. Exactly one of
        the two is given.
    weights : float64 array (n_rows,) or None
    n_columns : int
        Columns of the table: one for each label, or each output.
    absolute : bool
        Whether the loss is the absolute difference instead of the squared one.
    anchors : float64 array (n_outputs,) or None
        Three times powers of two that sums of weighted values do not exceed: these are rounded,
        so that leaves' sums do not depend on the order of rows. None to sum them as they are.
    """

    def __init__(self, labels, values, weights, int n_columns, bint absolute=False, anchors=None):
        has_labels = labels is not None
        if has_labels == (values is not None):
            raise ValueError("give either labels or values")
        given = np.ascontiguousarray(
            labels if has_labels else values, dtype=np.int32 if has_labels else np.float64
        )
        if given.ndim != 2 or given.shape[1] == 0:
            raise ValueError("targets must be (n_rows, n_outputs)")
        if has_labels and given.size and (given.min() < 0 or given.max() >= n_columns):
            raise ValueError("labels must be columns of the table")
        if n_columns < 1 or not (has_labels or n_columns == given.shape[1]):
            raise ValueError("the table has a column for each label, or for each output")
        if weights is not None:
            weights = np.ascontiguousarray(weights, dtype=np.float64)
            if weights.shape != (len(given),):
                raise ValueError("weights must be (n_rows,)")
        if anchors is not None or not has_labels:
            anchors = np.zeros(given.shape[1]) if anchors is None else (
                np.ascontiguousarray(anchors, dtype=np.float64))
            if anchors.shape != (given.shape[1],):
                raise ValueError("anchors must be (n_outputs,)")
        self.labels, self.values = (given, None) if has_labels else (None, given)
        self.weights = weights
        self.anchors = anchors
        self.has_labels = has_labels
        self.n_rows, self.n_outputs = given.shape
        self.n_columns = n_columns
        self.targets.n_outputs = self.n_outputs
        self.targets.absolute = absolute
        if self.n_rows:
            self.targets.labels = &self.labels[0, 0] if has_labels else NULL
            self.targets.values = NULL if has_labels else &self.values[0, 0]
            self.targets.weights = &self.weights[0] if weights is not None else NULL
            self.targets.anchors = NULL if has_labels else &self.anchors[0]

    @property
    def width(self):
        """Sums that a leaf has: weight of each label, or of all rows and of each output."""
        return self.n_columns if self.has_labels else 1 + self.n_outputs


cdef void add_targets(
    const RowTargets* targets, const int32_t* rows, Py_ssize_t n, double* sums
) noexcept nogil:
    """Add rows to what their leaf sums up to."""
    cdef:
        Py_ssize_t i, row
        int o, n_outputs = targets.n_outputs
        double weight = 1.0, value
    for i in range(n):
        row = rows[i]
        if targets.weights != NULL:
            weight = targets.weights[row]
        if targets.labels != NULL:
            for o in range(n_outputs):
                sums[targets.labels[row * n_outputs + o]] += weight
        else:
            sums[0] += weight
            for o in range(n_outputs):
                # As in `loss_in_leaf`.
                value = (targets.values[row * n_outputs + o] + targets.anchors[o]) - (
                    targets.anchors[o])
                sums[1 + o] += (weight * value + targets.anchors[o]) - targets.anchors[o]


# --- sums by bin ----------------------------------------------------------------------------------

cdef inline void add_to_cell(double* cell, const double* values, int n_others) noexcept nogil:
    cdef:
        int o
        double first, second
    if n_others == 1:
        cell[0] += values[0]
    elif n_others == 2:
        # With three branches, the refinement of a tree spends its time here.
        first = cell[0] + values[0]
        second = cell[1] + values[1]
        cell[0] = first
        cell[1] = second
    else:
        for o in range(n_others):
            cell[o] += values[o]


cdef void add_losses(
    const bin_t* bins, const int32_t* rows, const double* values, Py_ssize_t n, int n_others,
    double* sums, uint64_t* marks,
) noexcept nogil:
    """Add rows to the sums of their bins; if there are marks, mark these in words of 64 bins."""
    cdef Py_ssize_t i, code
    if marks != NULL:
        for i in range(n):
            code = bins[rows[i]]
            marks[code >> 6] |= <uint64_t> 1 << (code & 63)
            add_to_cell(sums + code * n_others, values + i * n_others, n_others)
    elif n_others == 1:
        for i in range(n):
            add_to_cell(sums + bins[rows[i]], values + i, 1)
    elif n_others == 2:
        for i in range(n):
            add_to_cell(sums + 2 * bins[rows[i]], values + 2 * i, 2)
    else:
        for i in range(n):
            add_to_cell(sums + bins[rows[i]] * n_others, values + i * n_others, n_others)


cdef void add_to_two(
    const uint8_t* bins, const uint8_t* others_bins, const int32_t* rows, const double* values,
    Py_ssize_t n, int n_others, double* sums, double* others_sums,
) noexcept nogil:
    """Add rows to the sums of two features at once: each row and its losses are read only once."""
    cdef:
        Py_ssize_t i, code, others_code
        double value
    if n_others == 1:
        for i in range(n):
            code, others_code, value = bins[rows[i]], others_bins[rows[i]], values[i]
            sums[code] += value
            others_sums[others_code] += value
    elif n_others == 2:
        for i in range(n):
            code, others_code = 2 * bins[rows[i]], 2 * others_bins[rows[i]]
            add_to_cell(sums + code, values + 2 * i, 2)
            add_to_cell(others_sums + others_code, values + 2 * i, 2)
    else:
        for i in range(n):
            code, others_code = n_others * bins[rows[i]], n_others * others_bins[rows[i]]
            add_to_cell(sums + code, values + i * n_others, n_others)
            add_to_cell(others_sums + others_code, values + i * n_others, n_others)


cdef inline bint is_empty(double sum_of_losses) noexcept nogil:
    """Whether nothing was added to a sum: it is minus zero then, which no sum of differences is."""
    # Without a branch, as no processor could foresee it.
    return (sum_of_losses == 0.0) & (signbit(sum_of_losses) != 0)


cdef inline uint64_t filled_bins(const double* sums, Py_ssize_t n, int n_others) noexcept nogil:
    """Mark which of up to 64 bins something was added to."""
    cdef:
        Py_ssize_t i
        uint64_t bits = 0
    for i in range(n):
        bits |= <uint64_t> (not is_empty(sums[i * n_others])) << i
    return bits


cdef inline void move_cell(double* cell, double* target, int n_others) noexcept nogil:
    """Copy the sums of a bin, and leave them empty."""
    cdef int o
    if n_others == 2:
        target[0] = cell[0]
        target[1] = cell[1]
        cell[0] = -0.0
        cell[1] = -0.0
        return
    for o in range(n_others):
        target[o] = cell[o]
        cell[o] = -0.0


cdef inline int lowest_bit(uint64_t bits) noexcept nogil:
    """Number of the lowest bit that is set; some bit must be."""
    # An isolated bit is told by its place in a de Bruijn sequence.
    return LOWEST_BIT[((bits & (~bits + 1)) * DE_BRUIJN) >> 58]


cdef uint64_t DE_BRUIJN = 0x03f79d71b4cb0a89
cdef int LOWEST_BIT[64]


cdef void number_bits() noexcept:
    cdef int i
    for i in range(64):
        LOWEST_BIT[(DE_BRUIJN << i) >> 58] = i


number_bits()


cdef class CellScratch:
    """Room in which each thread sums up the bins of two features, all empty."""

    def __cinit__(self, int n_threads, Py_ssize_t n_bins, int n_others):
        cdef Py_ssize_t i
        n_bins = (n_bins + 511) // 512 * 512
        self.n_sums = n_bins * n_others
        self.n_words = n_bins // 64
        self.sums = <double*> malloc(2 * n_threads * self.n_sums * sizeof(double))
        self.marks = <uint64_t*> calloc(n_threads * self.n_words, sizeof(uint64_t))
        if self.sums == NULL or self.marks == NULL:
            raise MemoryError("no memory to sum losses")
        for i in range(2 * n_threads * self.n_sums):
            self.sums[i] = -0.0

    def __dealloc__(self):
        free(self.sums)
        free(self.marks)


cdef int gather_cells(
    double* sums, uint64_t* marks, Py_ssize_t n_bins, int n_others, int32_t* bin_of_cell,
    double* losses,
) noexcept nogil:
    """Move the sums of a feature to its cells, and leave them empty, and no marks if there are any.

    Returns the number of cells.
    """
    cdef:
        Py_ssize_t i, word
        int n_cells = 0
        uint64_t bits
    for word in range((n_bins + 63) // 64):
        if marks == NULL:
            bits = filled_bins(
                sums + 64 * word * n_others, min(64, n_bins - 64 * word), n_others)
        else:
            bits = marks[word]
            marks[word] = 0
        while bits:
            i = 64 * word + lowest_bit(bits)
            bits &= bits - 1
            bin_of_cell[n_cells] = i
            move_cell(sums + i * n_others, losses + n_cells * n_others, n_others)
            n_cells += 1
    return n_cells
