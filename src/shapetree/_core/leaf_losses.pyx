"""What a row loses in a leaf: by its class, or by how far its numbers are from the leaf's.

Losses are rounded to a grid, so that their sums are exact: neither the order of rows nor the number
of threads can change them. `anchor` is a power of two that no sum of losses exceeds; to add and
subtract it leaves multiples of anchor / 2**52.
"""

cimport cython
import numpy as np

from libc.stdint cimport int32_t


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
