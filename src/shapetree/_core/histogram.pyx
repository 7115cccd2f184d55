"""Histograms: statistics of a node's rows, by feature and bin.

A histogram is one array of (total bins, channels): feature f's bins stand at
offsets[f] .. offsets[f + 1], its missing bin last. Channels are the criterion's statistics and,
where rows have weights, their number. Histograms of disjoint sets of rows add up, whoever sums.
"""

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint8_t
from libc.string cimport memset

from shapetree._core.columns cimport UINT8, UINT16, Column, Columns

ctypedef fused bin_t:
    uint8_t
    uint16_t
    uint32_t


cdef class Targets:
    """What rows add to histograms.

    Parameters
    ----------
    labels : int32 array (n_rows, n_outputs) or None
        For each output, the index of the statistic that the row counts for.
    values : float64 array (n_rows, n_outputs) or None
        Or the output's value. Exactly one of the two is given.
    weights : float64 array (n_rows,) or None
    n_stats : int
        Number of statistics.
    """

    def __init__(self, labels, values, weights, int n_stats):
        self.has_labels = labels is not None
        self.has_weights = weights is not None
        if self.has_labels == (values is not None):
            raise ValueError("give either labels or values")
        given = np.ascontiguousarray(
            labels if self.has_labels else values, dtype=np.int32 if self.has_labels else np.float64
        )
        if given.ndim != 2:
            raise ValueError("targets must be (n_rows, n_outputs)")
        self.n_rows, self.n_outputs = given.shape
        self.n_stats = n_stats
        self.n_channels = n_stats + self.has_weights
        if self.has_labels:
            if given.size and (given.min() < 0 or given.max() >= n_stats):
                raise ValueError("labels must be indices of statistics")
            self.labels = given
            self.node_labels = np.empty_like(given)
        else:
            if n_stats != 1 + self.n_outputs:
                raise ValueError("values have one statistic more than outputs")
            self.values = given
            self.node_values = np.empty_like(given)
        if self.has_weights:
            self.weights = np.ascontiguousarray(weights, dtype=np.float64)
            if self.weights.shape[0] != self.n_rows:
                raise ValueError("weights must be (n_rows,)")
            self.node_weights = np.empty(self.n_rows)

    cdef NodeTargets gather(
        self, const int32_t* rows, Py_ssize_t n, int n_threads
    ) noexcept nogil:
        """Bring the targets of a node's rows together, values multiplied by weights."""
        cdef:
            Py_ssize_t i
            int o
            NodeTargets node
        if self.has_labels:
            for i in prange(n, num_threads=n_threads, schedule="static"):
                for o in range(self.n_outputs):
                    self.node_labels[i, o] = self.labels[rows[i], o]
        else:
            for i in prange(n, num_threads=n_threads, schedule="static"):
                for o in range(self.n_outputs):
                    self.node_values[i, o] = self.values[rows[i], o] * (
                        self.weights[rows[i]] if self.has_weights else 1.0)
        if self.has_weights:
            for i in prange(n, num_threads=n_threads, schedule="static"):
                self.node_weights[i] = self.weights[rows[i]]
        node.labels = &self.node_labels[0, 0] if self.has_labels else NULL
        node.values = NULL if self.has_labels else &self.node_values[0, 0]
        node.weights = &self.node_weights[0] if self.has_weights else NULL
        node.n_outputs = self.n_outputs
        node.n_stats = self.n_stats
        node.n_channels = self.n_channels
        return node

    def take(self, const int32_t[::1] rows not None):
        """The targets of some rows."""
        check_rows(rows, self.n_rows)
        chosen = np.asarray(rows)
        return Targets(
            np.asarray(self.labels)[chosen] if self.has_labels else None,
            None if self.has_labels else np.asarray(self.values)[chosen],
            np.asarray(self.weights)[chosen] if self.has_weights else None,
            self.n_stats,
        )

    def totals(self, const int32_t[::1] rows not None):
        """Sum of the channels over some rows, in their order."""
        cdef:
            Py_ssize_t i
            double[::1] cell
            NodeTargets node
        check_rows(rows, self.n_rows)
        if rows.shape[0] > self.n_rows:
            raise ValueError("more rows than there are")
        out = np.zeros(self.n_channels)
        cell = out
        if rows.shape[0]:
            with nogil:
                node = self.gather(&rows[0], rows.shape[0], 1)
                for i in range(rows.shape[0]):
                    add_row(&node, i, &cell[0])
        return out


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


cdef void count_labels(
    const bin_t* bins, const int32_t* rows, const int32_t* labels, Py_ssize_t n, int n_stats,
    double* cells,
) noexcept nogil:
    # The case that most fits spend their time in: one label, no weights.
    cdef Py_ssize_t i
    for i in range(n):
        cells[<Py_ssize_t> bins[rows[i]] * n_stats + labels[i]] += 1.0


cdef void sum_values(
    const bin_t* bins, const int32_t* rows, const double* values, Py_ssize_t n, double* cells
) noexcept nogil:
    # One value, no weights.
    cdef:
        Py_ssize_t i
        double* cell
    for i in range(n):
        cell = cells + 2 * <Py_ssize_t> bins[rows[i]]
        cell[0] += 1.0
        cell[1] += values[i]


cdef void sum_several_values(
    const bin_t* bins, const int32_t* rows, const double* values, int n_outputs, Py_ssize_t n,
    double* cells,
) noexcept nogil:
    # Several values, no weights.
    cdef:
        Py_ssize_t i
        int o
        double* cell
    if n_outputs == 2:
        # With three branches, the refinement of a tree spends its time here.
        for i in range(n):
            cell = cells + 3 * <Py_ssize_t> bins[rows[i]]
            cell[0] += 1.0
            cell[1] += values[2 * i]
            cell[2] += values[2 * i + 1]
        return
    for i in range(n):
        cell = cells + (1 + n_outputs) * <Py_ssize_t> bins[rows[i]]
        cell[0] += 1.0
        for o in range(n_outputs):
            cell[1 + o] += values[i * n_outputs + o]


cdef void add_rows(
    const bin_t* bins, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n, double* cells
) noexcept nogil:
    cdef:
        Py_ssize_t i
        int n_channels = targets.n_channels
    if targets.weights == NULL and targets.labels == NULL:
        if targets.n_outputs == 1:
            sum_values(bins, rows, targets.values, n, cells)
        else:
            sum_several_values(bins, rows, targets.values, targets.n_outputs, n, cells)
        return
    if targets.weights == NULL and targets.n_outputs == 1:
        count_labels(bins, rows, targets.labels, n, n_channels, cells)
        return
    for i in range(n):
        add_row(targets, i, cells + <Py_ssize_t> bins[rows[i]] * n_channels)


cdef void add_column(
    const Column* column, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n,
    double* cells,
) noexcept nogil:
    if column.kind == UINT8:
        add_rows(<const uint8_t*> column.data, rows, targets, n, cells)
    elif column.kind == UINT16:
        add_rows(<const uint16_t*> column.data, rows, targets, n, cells)
    else:
        add_rows(<const uint32_t*> column.data, rows, targets, n, cells)


def build_histogram(
    Columns bins not None,                    # IN: columns of bins
    Targets targets not None,                 # IN
    const int32_t[::1] rows not None,         # IN: the node's rows
    const int64_t[::1] offsets not None,      # IN: (n_features + 1,) where features' bins start
    double[:, ::1] histogram not None,        # OUT: (offsets[-1], n_channels)
    int first, int last,             # IN: features first..last-1 are filled, the others left alone
    int n_threads,
):
    """Fill the histograms of some features for the rows of one node.

    A feature is summed by one thread in the order of the rows, so the sums do not depend on the
    number of threads. Bins must be below their feature's number of bins.
    """
    cdef:
        int f
        Py_ssize_t n = rows.shape[0]
        NodeTargets node
    bins.check_bins(offsets, first, last)
    check_rows(rows, min(bins.n_rows, targets.n_rows))
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    if n > targets.n_rows or histogram.shape[0] != offsets[bins.n_columns] or (
            histogram.shape[1] != targets.n_channels):
        raise ValueError("the histogram's shape does not fit the bins and targets")
    if first == last or n == 0:
        histogram[offsets[first]:offsets[last]] = 0.0
        return
    with nogil:
        node = targets.gather(&rows[0], n, n_threads)
        for f in prange(first, last, num_threads=n_threads, schedule="dynamic"):
            memset(&histogram[offsets[f], 0], 0,
                   (offsets[f + 1] - offsets[f]) * targets.n_channels * sizeof(double))
            add_column(&bins.column[f], &rows[0], &node, n, &histogram[offsets[f], 0])
