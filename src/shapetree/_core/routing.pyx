"""Routing: where rows end while a tree is refined, and what each branch of a node would cost them.

Nodes with shape functions of one feature know the branch of every bin; those of pairs have cuts.
"""

cimport cython
import numpy as np

from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdint cimport int32_t, uint8_t
from libc.stdlib cimport calloc, free

from shapetree._core.columns cimport UINT32, Column, Columns, code_at
from shapetree._core.histogram cimport check_rows
from shapetree._core.pair_cuts cimport Cuts, PairCuts, branch_by_cuts

cdef enum:
    N_BLOCKS = 16


@cython.final
cdef class LeafLosses:
    """What it costs to send a row to a leaf.

    Parameters
    ----------
    labels : int32 array (n_rows, n_outputs) or None
        For each output, the column of `table` that holds the row's loss in every leaf.
    values : float64 array (n_rows, n_outputs) or None
        Or the row's own values, from which those of the leaf in `table` differ. Exactly one of the
        two is given.
    weights : float64 array (n_rows,) or None
    absolute : bool
        Whether the loss is the absolute difference instead of the squared one.
    """

    cdef const int32_t[:, ::1] labels
    cdef const double[:, ::1] values
    cdef const double[::1] weights
    cdef bint has_labels
    cdef bint has_weights
    cdef bint absolute
    cdef readonly Py_ssize_t n_rows
    cdef readonly int n_outputs
    cdef int n_columns

    def __init__(self, labels, values, weights, bint absolute=False):
        has_labels = labels is not None
        if has_labels == (values is not None):
            raise ValueError("give either labels or values")
        given = np.ascontiguousarray(
            labels if has_labels else values, dtype=np.int32 if has_labels else np.float64
        )
        if given.ndim != 2 or given.shape[1] == 0:
            raise ValueError("targets must be (n_rows, n_outputs)")
        if has_labels and given.size and (given.min() < 0 or given.max() == 2**31 - 1):
            raise ValueError("labels must be columns of the table")
        if weights is not None:
            weights = np.ascontiguousarray(weights, dtype=np.float64)
            if weights.shape != (len(given),):
                raise ValueError("weights must be (n_rows,)")
        self.labels, self.values = (given, None) if has_labels else (None, given)
        self.weights = weights
        self.has_labels = has_labels
        self.has_weights = weights is not None
        self.absolute = absolute
        self.n_rows, self.n_outputs = given.shape
        self.n_columns = given.max(initial=-1) + 1 if has_labels else self.n_outputs

    def sums(self, const int32_t[::1] leaves not None, int n_nodes):
        """What the rows of each leaf add up to: weight of each label, or of all and of values.

        Returns an array (n_nodes, n_columns), with values (n_nodes, 1 + n_outputs).
        """
        cdef:
            Py_ssize_t row
            int o
            double weight
            double[:, ::1] sums
        if leaves.shape[0] != self.n_rows or n_nodes < 0:
            raise ValueError("there must be a leaf for each row")
        if self.n_rows and (np.min(leaves) < 0 or np.max(leaves) >= n_nodes):
            raise ValueError("leaves must be nodes")
        result = np.zeros((n_nodes, self.n_columns + (not self.has_labels)))
        sums = result
        with nogil:
            for row in range(self.n_rows):
                weight = self.weights[row] if self.has_weights else 1.0
                if self.has_labels:
                    for o in range(self.n_outputs):
                        sums[leaves[row], self.labels[row, o]] += weight
                else:
                    sums[leaves[row], 0] += weight
                    for o in range(self.n_outputs):
                        sums[leaves[row], 1 + o] += weight * self.values[row, o]
        return result

    def total(self, const int32_t[::1] leaves not None, const double[:, ::1] table not None):
        """Loss of all rows in their leaves."""
        cdef:
            Py_ssize_t row
            double loss = 0.0
        if leaves.shape[0] != self.n_rows or table.shape[1] < self.n_columns:
            raise ValueError("there must be a leaf for each row, and a line for each leaf")
        if self.n_rows == 0:
            return 0.0
        if np.min(leaves) < 0 or np.max(leaves) >= table.shape[0] or self.n_columns == 0:
            raise ValueError("leaves must be lines of the table")
        with nogil:
            for row in range(self.n_rows):
                loss += self.of_row(row, &table[leaves[row], 0])
        return loss

    cdef inline double of_row(self, Py_ssize_t row, const double* leaf) noexcept nogil:
        """Loss of a row in a leaf, whose line of the table is given."""
        cdef:
            int o
            double difference, loss = 0.0
        for o in range(self.n_outputs):
            if self.has_labels:
                loss += leaf[self.labels[row, o]]
            else:
                difference = self.values[row, o] - leaf[o]
                loss += fabs(difference) if self.absolute else difference * difference
        return loss * self.weights[row] if self.has_weights else loss


ctypedef struct Step:
    # A node that rows pass. A leaf sends every row to itself, so that all rows take as many steps.
    const Column* column          # of bins, for a shape function of one feature
    const uint8_t* branch_of_bin
    const Cuts* cuts              # for one of a pair; else NULL
    int first_child
    int n_branches                # 0 for a leaf
    int n_steps                   # to the deepest leaf below


@cython.final
cdef class Router:
    """A tree over bins that rows can be sent through.

    Parameters
    ----------
    bins : Columns
        Columns of bins.
    first_child, n_branches : int32 arrays (n_nodes,)
        Branch b of a node leads to node first_child + b, which comes after it; a leaf has no
        branch.
    feature : int32 array (n_nodes,)
        Feature of a node with a shape function of one feature.
    branch_of_bin : list of n_nodes uint8 arrays or None
        Branch of each of that feature's bins.
    cuts : list of n_nodes PairCuts or None
        Cuts of the nodes with shape functions of pairs.
    """

    cdef Columns bins
    cdef Step* steps
    cdef readonly int n_nodes
    cdef Py_ssize_t n_rows
    cdef const uint8_t[::1] only_branch
    cdef list _arrays         # keeps the memory alive

    def __cinit__(self, Columns bins not None, const int32_t[::1] first_child not None,
                  const int32_t[::1] n_branches not None, const int32_t[::1] feature not None,
                  list branch_of_bin not None, list cuts not None):
        cdef int node, child
        self.bins = bins
        self.n_nodes = first_child.shape[0]
        self.n_rows = bins.n_rows
        self._arrays = []
        if self.n_nodes == 0 or n_branches.shape[0] != self.n_nodes or (
                feature.shape[0] != self.n_nodes or len(branch_of_bin) != self.n_nodes
                or len(cuts) != self.n_nodes):
            raise ValueError("the arrays differ in their numbers of nodes")
        if bins.n_columns == 0 or bins.column[0].kind > UINT32:
            raise ValueError("column 0 does not hold bins")
        self.only_branch = np.zeros(bins.column[0].largest + 1, dtype=np.uint8)
        self.steps = <Step*> calloc(self.n_nodes, sizeof(Step))
        if self.steps == NULL:
            raise MemoryError("no memory to route rows")
        for node in range(self.n_nodes):
            if n_branches[node] <= 0:
                self.stay_at(node)
                continue
            if n_branches[node] > 254 or not (
                    node < first_child[node] <= self.n_nodes - n_branches[node]):
                raise ValueError("children exist and come after their parents")
            self.steps[node].first_child = first_child[node]
            self.steps[node].n_branches = n_branches[node]
            if cuts[node] is None:
                self.keep_bins(node, feature[node], branch_of_bin[node])
            else:
                self.keep_cuts(node, cuts[node])

        for node in range(self.n_nodes - 1, -1, -1):
            for child in range(self.steps[node].n_branches):
                self.steps[node].n_steps = max(
                    self.steps[node].n_steps,
                    1 + self.steps[self.steps[node].first_child + child].n_steps)

    def __dealloc__(self):
        free(self.steps)

    cdef void stay_at(self, int leaf) noexcept:
        self.steps[leaf].first_child = leaf
        self.steps[leaf].column = &self.bins.column[0]
        self.steps[leaf].branch_of_bin = &self.only_branch[0]

    cdef int keep_bins(
        self, int node, int feature, const uint8_t[::1] branch_of_bin
    ) except -1:
        cdef:
            Py_ssize_t i
            int greatest = 0
        if branch_of_bin is None or not 0 <= feature < self.bins.n_columns or (
                self.bins.column[feature].kind > UINT32):
            raise ValueError(f"{feature} is not a column of bins")
        if branch_of_bin.shape[0] <= self.bins.column[feature].largest:
            raise ValueError("every bin needs a branch")
        for i in range(branch_of_bin.shape[0]):
            greatest = max(greatest, branch_of_bin[i])
        if greatest >= self.steps[node].n_branches:
            raise ValueError("branches of bins exist")
        self._arrays.append(branch_of_bin)
        self.steps[node].column = &self.bins.column[feature]
        self.steps[node].branch_of_bin = &branch_of_bin[0]
        return 0

    cdef int keep_cuts(self, int node, PairCuts cuts) except -1:
        if cuts.n_rows != self.n_rows or cuts.least_branch < 0 or (
                cuts.greatest_branch >= self.steps[node].n_branches):
            raise ValueError("branches of regions exist, and tables have as many rows as bins")
        self._arrays.append(cuts)
        self.steps[node].cuts = &cuts.cuts
        return 0

    cdef inline int branch_at(self, const Step* step, Py_ssize_t row) noexcept nogil:
        if step.cuts == NULL:
            return step.branch_of_bin[code_at(step.column, row)]
        return branch_by_cuts(step.cuts, row)

    cdef inline int leaf_below(self, int node, Py_ssize_t row) noexcept nogil:
        """Leaf that a row ends in from a node on."""
        for _ in range(self.steps[node].n_steps):
            node = self.steps[node].first_child + self.branch_at(&self.steps[node], row)
        return node

    def leaves(
        self,
        const int32_t[::1] rows not None,      # IN
        const int32_t[::1] start not None,     # IN: (n_rows,) node that each of them is sent from
        int n_threads,
    ):
        """Leaf of each of some rows."""
        cdef:
            Py_ssize_t i
            int32_t[::1] leaf
            bint exists = True
        check_rows(rows, self.n_rows)
        if n_threads < 1 or start.shape[0] != rows.shape[0]:
            raise ValueError("each row needs a start, and n_threads must be at least 1")
        for i in range(start.shape[0]):
            exists &= 0 <= start[i] < self.n_nodes
        if not exists:
            raise ValueError("rows must start at nodes")
        result = np.empty(rows.shape[0], dtype=np.int32)
        leaf = result
        for i in prange(rows.shape[0], nogil=True, num_threads=n_threads, schedule="static"):
            leaf[i] = self.leaf_below(start[i], rows[i])
        return result

    def branch_losses(
        self,
        const int32_t[::1] at not None,        # IN: (n_rows,) node that each row is at, or -1
        const int32_t[::1] now not None,       # IN: (n_rows,) leaf of each row
        LeafLosses losses not None,            # IN
        const double[:, ::1] table not None,   # IN: (n_nodes, n_columns) leaves' lines
        double[:, ::1] others not None,        # OUT: (n_rows, n_branches - 1)
        uint8_t[::1] cares not None,           # OUT: (n_rows,) whether branches differ in loss
        int n_threads,
    ):
        """What each branch of the node that a row is at would cost the row, beyond branch 0.

        Rows that are at no node, or at a leaf, are left alone, except that they do not care.
        Returns sums over the rows of each node, (n_nodes, 1 + n_branches): the loss in the rows'
        own branches, in branch 0, and what branch 1, 2, .. adds to that.
        """
        cdef:
            Py_ssize_t block, row
            int node, n_branches = others.shape[1] + 1
            bint exists = True
            double[:, :, ::1] sums
        if n_threads < 1 or n_branches < 2:
            raise ValueError("n_threads or the number of branches is out of range")
        if not (at.shape[0] == now.shape[0] == others.shape[0] == cares.shape[0]
                == losses.n_rows == self.n_rows):
            raise ValueError("the arrays differ in their numbers of rows")
        if table.shape[0] != self.n_nodes or table.shape[1] < max(losses.n_columns, 1):
            raise ValueError("the table must have a line for each node")
        for row in range(self.n_rows):
            node = at[row]
            exists &= -1 <= node < self.n_nodes and 0 <= now[row] < self.n_nodes and (
                node < 0 or self.steps[node].n_branches <= n_branches)
        if not exists:
            raise ValueError("rows must be at nodes with a loss for each branch")
        # Blocks of rows are summed each on its own, however many threads share them.
        sums_of_blocks = np.zeros((N_BLOCKS, self.n_nodes, 1 + n_branches))
        sums = sums_of_blocks
        for block in prange(N_BLOCKS, nogil=True, num_threads=n_threads, schedule="static"):
            for row in range(self.n_rows * block // N_BLOCKS,
                             self.n_rows * (block + 1) // N_BLOCKS):
                cares[row] = at[row] >= 0 and self.compare_branches(
                    row, &self.steps[at[row]], losses, &table[0, 0], table.shape[1], now[row],
                    &others[row, 0], n_branches, &sums[block, at[row], 0])
        return sums_of_blocks.sum(axis=0)

    cdef bint compare_branches(
        self, Py_ssize_t row, const Step* step, LeafLosses losses, const double* table,
        Py_ssize_t n_columns, int now, double* others, int n_branches, double* sums,
    ) noexcept nogil:
        cdef:
            int b, leaf, own
            double loss, first = 0.0
            bint cares = False
        if step.n_branches == 0:
            return False
        own = self.branch_at(step, row)
        for b in range(step.n_branches):
            leaf = now if b == own else self.leaf_below(step.first_child + b, row)
            loss = losses.of_row(row, table + leaf * n_columns)
            if b == own:
                sums[0] += loss
            if b == 0:
                first = loss
                sums[1] += loss
            else:
                others[b - 1] = loss - first
                sums[1 + b] += loss - first
                cares |= loss != first
        for b in range(step.n_branches, n_branches):
            others[b - 1] = 0.0
        return cares
