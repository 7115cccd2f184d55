# Histograms: statistics of a node's rows, by feature and bin.

from libc.stdint cimport int32_t

from shapetree._core.columns cimport Columns
from shapetree._core.rows cimport NodeRows
from shapetree._core.threads cimport Arena

ctypedef struct NodeTargets:
    # The targets of one node's rows, in the order of the rows.
    const int32_t* labels    # n_rows x n_outputs, or NULL
    const double* values     # or these, multiplied by weights
    const double* weights    # or NULL
    const double* counts     # how many rows each stands for, if they have weights; NULL for 1
    const double* times      # or how often each is there; NULL for once, as nearly everywhere
    int n_outputs
    int n_stats
    int n_channels


cdef inline void add_row(const NodeTargets* targets, Py_ssize_t i, double* cell) noexcept nogil:
    """Add the node's i-th row to a cell of n_channels sums."""
    cdef:
        int o, n_outputs = targets.n_outputs
        double weight = targets.weights[i] if targets.weights != NULL else 1.0
    if targets.labels != NULL:
        for o in range(n_outputs):
            cell[targets.labels[i * n_outputs + o]] += weight
    else:
        cell[0] += weight
        for o in range(n_outputs):
            cell[1 + o] += targets.values[i * n_outputs + o]
    if targets.weights != NULL:
        cell[targets.n_stats] += targets.counts[i] if targets.counts != NULL else 1.0


cdef inline void add_repeated_row(
    const NodeTargets* targets, Py_ssize_t i, double* cell
) noexcept nogil:
    """Add the node's i-th row, of one output and without weight, as often as it is there."""
    if targets.labels != NULL:
        cell[targets.labels[i]] += targets.times[i]
    else:
        cell[0] += targets.times[i]
        cell[1] += targets.times[i] * targets.values[i]


cdef inline NodeTargets targets_from(NodeTargets node, Py_ssize_t start) noexcept nogil:
    """The targets from some place on."""
    if node.labels != NULL:
        node.labels += start * node.n_outputs
    if node.values != NULL:
        node.values += start * node.n_outputs
    if node.weights != NULL:
        node.weights += start
    if node.counts != NULL:
        node.counts += start
    return node


cdef class Targets:
    cdef const int32_t[:, ::1] labels      # statistic that each row counts for, per output
    cdef const double[:, ::1] values       # or y, per output
    cdef const double[::1] weights         # or none: every row weighs 1
    cdef const double[::1] counts          # or none: every row stands for itself
    cdef bint has_labels
    cdef bint has_weights
    cdef bint has_counts
    cdef readonly Py_ssize_t n_rows
    cdef readonly int n_outputs
    cdef readonly int n_stats
    cdef readonly int n_channels           # statistics, and the number of rows if they weigh

    cdef NodeTargets gather(self, const int32_t* rows, Py_ssize_t n, Arena* arena) noexcept nogil
    cdef NodeTargets as_they_are(self) noexcept nogil
    cdef int set_weights(self, weights, counts) except -1


ctypedef struct RowsToSum:
    # A node's rows, each once, and their targets.
    Py_ssize_t n
    const int32_t* rows
    NodeTargets targets


cdef class LevelRows:
    cdef Columns bins
    cdef Targets targets
    cdef NodeRows rows
    cdef const int32_t[::1] nodes
    cdef bint counts_repeats

    cdef RowsToSum gather(self, Py_ssize_t i, Arena* arena) noexcept nogil
    cdef void gather_repeats(self, RowsToSum* found, Arena* arena) noexcept nogil
    cdef int sum_feature(
        self, const RowsToSum* given, int f, int n_bins, Arena* arena, int32_t** bin_of_cell,
        double** sums,
    ) noexcept nogil
