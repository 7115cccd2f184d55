"""Routing: the rows in a tree's nodes while it is refined, and what each branch would cost them.

Nodes with shape functions of one feature know the branch of every bin; those of pairs have cuts.
The rows of a node are one range of places, see `shapetree._core.rows`.

    place   0 . . . . . . . . n          node 0 has all places, nodes 1 and 2 a part each
            |  1  |    2    |            (a leaf's rows in a row)
                  | 3 | 4 |5|            to send node 2: count leaves 3, 4, 5 by blocks of
                                         rows, add up where each block's rows go, move them

Branch b would cost a row the loss of the leaf that it ends in if it goes there; rows for which
these differ *care*, and what they lose is summed by bin, feature by feature:

    care_row  [ 17, 4, 9, .. ]           rows of the node that care
    care_loss [ l1 l2, l1 l2, .. ]       losses in branch 1, 2, .. beyond branch 0
    sums[bin of row 17] += l1 l2         bins that rows lie in are the feature's *cells*

Losses are rounded to a grid, so that their sums are exact: neither the order of rows nor the number
of threads can change them. `anchor` is a power of two that no sum of losses exceeds; to add and
subtract it leaves multiples of anchor / 2**52. Sums that nothing was added to are minus zero, so
that no other mark is needed where bins are few.
"""

cimport cython
import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport fabs, signbit
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from shapetree._core.columns cimport (
    UINT8, UINT16, UINT32, Column, Columns, bin_t, projection, side_at,
)
from shapetree._core.pieces cimport Cuts, PairCuts, branch_by_cuts
from shapetree._core.rows cimport NodeRows
from shapetree._core.sorting cimport sort_items
from shapetree._core.threads cimport APART

cdef extern from "vector.h":
    int lowest_bit(uint64_t bits) noexcept nogil

cdef enum:
    BLOCK = 16384        # rows that one thread takes at a time
    CHUNK = 256          # rows whose losses stay in the cache
    SORT_AFTER = 2       # times that all rows may move before leaves are sorted
    MIN_SORTED = 2048    # rows of a leaf that are worth sorting
    MIN_AT_ONCE = 128    # rows of a node that are worth summing by two features at once

# --- what a row loses in a leaf -------------------------------------------------------------------

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

    cdef const int32_t[:, ::1] labels
    cdef const double[:, ::1] values
    cdef const double[::1] weights
    cdef const double[::1] anchors
    cdef RowTargets targets
    cdef bint has_labels
    cdef readonly Py_ssize_t n_rows
    cdef readonly int n_outputs
    cdef readonly int n_columns

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


cdef inline void losses_in_leaves(
    const RowTargets* targets, const int32_t* rows, Py_ssize_t n, const double* table,
    Py_ssize_t n_columns, const int32_t* leaf, double anchor, double* lost,
) noexcept nogil:
    """Losses of rows in leaves, whose lines stand in a table of all nodes."""
    cdef:
        Py_ssize_t i
        const int32_t* labels = targets.labels
    if labels != NULL and targets.n_outputs == 1 and targets.weights == NULL:
        for i in range(n):
            lost[i] = (table[leaf[i] * n_columns + labels[rows[i]]] + anchor) - anchor
        return
    for i in range(n):
        lost[i] = loss_in_leaf(targets, rows[i], table + leaf[i] * n_columns, anchor)


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


cdef class CellScratch:
    """Room in which each thread sums up the bins of two features, all empty."""

    cdef double* sums
    cdef uint64_t* marks
    cdef Py_ssize_t n_sums        # for each feature
    cdef Py_ssize_t n_words       # for each thread

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


# --- steps of rows down a tree over bins ---------------------------------------------------------

ctypedef struct Step:
    # A node that rows pass. A leaf sends every row to itself, so that all rows take as many steps.
    const char* codes             # bins of the rows, for a shape function of one feature
    int kind                      # of this column
    const uint8_t* branch_of_bin
    const Cuts* cuts              # for one of a pair; else NULL
    const int32_t* child          # of each branch
    int n_branches                # 0 for a leaf
    int n_steps                   # to the deepest leaf below
    int n_pieces                  # bins, the missing one included, or regions and missing values
    int parent                    # -1 for the root, and for nodes that no node leads to
    bint is_new                   # whether the split is not the one that rows were sent by
    bint has_new_children         # or the children are not those that rows were sent to


cdef inline uint32_t bin_at(const Step* step, Py_ssize_t row) noexcept nogil:
    if step.kind == UINT8:
        return (<const uint8_t*> step.codes)[row]
    if step.kind == UINT16:
        return (<const uint16_t*> step.codes)[row]
    return (<const uint32_t*> step.codes)[row]


cdef inline int branch_at(const Step* step, Py_ssize_t row) noexcept nogil:
    if step.cuts == NULL:
        return step.branch_of_bin[bin_at(step, row)]
    return branch_by_cuts(step.cuts, row)


cdef inline void follow(
    const Step* steps, int n_steps, const int32_t* rows, Py_ssize_t n, int32_t* node
) noexcept nogil:
    """Let some rows take as many steps from where they are.

    All rows take a step before any takes the next: the processor need not wait for one row's way.
    """
    cdef:
        Py_ssize_t i
        const Step* step
    for _ in range(n_steps):
        for i in range(n):
            step = &steps[node[i]]
            node[i] = step.child[branch_at(step, rows[i])]


cdef inline void leaves_below(
    const Step* steps, int node, const int32_t* rows, Py_ssize_t n, int32_t* leaf
) noexcept nogil:
    """Leaves that some rows end in from a node on."""
    cdef Py_ssize_t i
    for i in range(n):
        leaf[i] = node
    follow(steps, steps[node].n_steps, rows, n, leaf)


cdef inline int piece_at(const Step* step, Py_ssize_t row) noexcept nogil:
    """A row's bin, or its region of a pair; the last one if a value is missing."""
    cdef:
        double u, v
        int at = 0
        const Cuts* cuts = step.cuts
    if cuts == NULL:
        return bin_at(step, row)
    u = side_at(cuts.first, row, cuts.place_a, cuts.n_a)
    v = side_at(cuts.second, row, cuts.place_b, cuts.n_b)
    if u != u or v != v:
        return step.n_pieces - 1
    while at >= 0:
        at = (cuts.high[at] if projection(cuts.a[at], u, cuts.b[at], v) > cuts.threshold[at]
              else cuts.low[at])
    return -1 - at


cdef inline int n_regions(const Cuts* cuts) noexcept nogil:
    """Regions that the cuts part the plane into."""
    cdef int cut = 0, last = 0, n = 0
    while cut <= last:
        last = max(last, cuts.low[cut], cuts.high[cut])
        n = max(n, -cuts.low[cut], -cuts.high[cut])
        cut += 1
    return n


# --- the tree and its rows -----------------------------------------------------------------------

ctypedef struct LossBlock:
    # Rows of a node that one thread compares; those that care stand at the start of the block.
    int number                    # of the node in its level
    int64_t first
    int64_t last
    int64_t n_care


ctypedef struct SentBlock:
    # Rows that one thread sends.
    int node                      # that sends them
    bint keeps_rest               # whether only this node's split is new, nothing below
    int64_t first
    int64_t last
    int64_t* place                # rows of each leaf below; then where they go


cdef void share_places(SentBlock* blocks, Py_ssize_t n_blocks, Py_ssize_t n_leaves) noexcept:
    """From the numbers of rows for each leaf to where each block of a node sends its first one."""
    cdef:
        Py_ssize_t block, leaf
        int64_t n, at = blocks[0].first
    for leaf in range(n_leaves):
        for block in range(n_blocks):
            n = blocks[block].place[leaf]
            blocks[block].place[leaf] = at
            at += n


@cython.final
cdef class RoutedRows:
    """A tree over bins, and the rows in its nodes.

    Nodes are numbered from 0, the root; children come after their parents. A node is a leaf until
    it is given a split. Rows follow when they are sent.

    Parameters
    ----------
    bins : Columns
        Columns of bins.
    rows : NodeRows
        The rows of the nodes, which move from leaf to leaf as they are sent.
    n_nodes : int
        Most nodes that the tree will have.
    max_branches : int
        Most branches of a node.
    """

    cdef Columns bins
    cdef Step* steps
    cdef readonly int n_nodes
    cdef readonly int max_branches
    cdef readonly Py_ssize_t n_rows       # of the table
    cdef NodeRows rows
    cdef bint is_counted                  # whether n_steps are up to date
    cdef const uint8_t[::1] only_branch
    cdef int32_t[:, ::1] child
    cdef const int32_t* order             # of `rows`
    cdef int32_t[::1] scratch             # for rows that are sent or sorted, where losses stand
    cdef int32_t[::1] care_row            # rows of a level that care; leaves' numbers of sent rows
    cdef double[:, ::1] care_loss         # what they lose in branch 1, 2, .. beyond branch 0
    cdef LossBlock* blocks
    cdef Py_ssize_t n_blocks
    cdef int64_t[::1] first_block         # of each node of the level, and the end
    cdef int64_t n_moved                  # rows that were sent since leaves were sorted
    cdef list _arrays                     # keeps the memory alive

    def __cinit__(
        self, Columns bins not None, NodeRows rows not None, int n_nodes, int max_branches
    ):
        cdef:
            int node
            Py_ssize_t n_places = rows._order.shape[0]
        if n_nodes < 1 or not 2 <= max_branches <= 254:
            raise ValueError("n_nodes or max_branches is out of range")
        if bins.n_columns == 0 or bins.column[0].kind > UINT32:
            raise ValueError("column 0 does not hold bins")
        self.bins = bins
        self.n_nodes = n_nodes
        self.max_branches = max_branches
        self.n_rows = bins.n_rows
        if rows.n_rows > self.n_rows:
            raise ValueError("there are fewer rows of bins than of nodes")
        self.rows = rows
        rows.make_room(n_nodes)
        self.order = &rows._order[0] if n_places else NULL
        self._arrays = [None] * n_nodes
        self.only_branch = np.zeros(bins.column[0].largest + 1, dtype=np.uint8)
        self.child = np.zeros((n_nodes, max_branches), dtype=np.int32)
        self.care_row = np.empty(n_places, dtype=np.int32)
        losses = np.empty((n_places, max_branches - 1))
        self.care_loss = losses
        # Losses are forgotten before rows are sent.
        self.scratch = losses.reshape(-1).view(np.int32)[:n_places]
        self.first_block = np.zeros(1, dtype=np.int64)
        self.steps = <Step*> calloc(n_nodes, sizeof(Step))
        if self.steps == NULL:
            raise MemoryError("no memory to route rows")
        for node in range(n_nodes):
            self.steps[node].parent = -1
            self.stay_at(node)

    def __dealloc__(self):
        free(self.steps)
        free(self.blocks)

    cdef int check_node(self, int node) except -1:
        if not 0 <= node < self.n_nodes:
            raise ValueError("nodes must lie between 0 and the number of nodes")
        return 0

    cdef int check_nodes(self, const int32_t[::1] nodes, int n_threads) except -1:
        cdef Py_ssize_t i
        if n_threads < 1:
            raise ValueError("n_threads must be at least 1")
        for i in range(nodes.shape[0]):
            self.check_node(nodes[i])
        return 0

    # Splits

    cdef void stay_at(self, int leaf) noexcept:
        self.child[leaf, 0] = leaf
        self.steps[leaf].child = &self.child[leaf, 0]
        self.steps[leaf].codes = self.bins.column[0].data
        self.steps[leaf].kind = self.bins.column[0].kind
        self.steps[leaf].branch_of_bin = &self.only_branch[0]
        self.steps[leaf].cuts = NULL
        self.steps[leaf].n_branches = 0
        self.steps[leaf].n_pieces = 0
        self.is_counted = False

    cdef void lead_to(self, int node, const int32_t* children, int n_children) noexcept:
        """Note a node's children, and that they are no other node's."""
        cdef:
            int b
            Step* step = &self.steps[node]
        step.is_new = True
        step.has_new_children |= step.n_branches != n_children
        for b in range(step.n_branches):
            self.steps[self.child[node, b]].parent = -1
        for b in range(n_children):
            step.has_new_children |= self.child[node, b] != children[b]
            self.steps[children[b]].parent = node
            self.child[node, b] = children[b]
        step.n_branches = n_children
        self.is_counted = False

    cdef int read_children(self, int node, children, int32_t* child) except -1:
        """Numbers of a node's children; returns how many they are."""
        cdef int b, other, n_children = min(len(children), 256)
        self.check_node(node)
        if not 2 <= n_children <= self.max_branches:
            raise ValueError("the number of branches is out of range")
        for b in range(n_children):
            child[b] = children[b]
            if not node < child[b] < self.n_nodes:
                raise ValueError("children exist and come after their parents")
            for other in range(b):
                if child[other] == child[b]:
                    raise ValueError("children differ")
        return n_children

    def set_leaf(self, int node):
        """Make a node a leaf."""
        self.check_node(node)
        self.lead_to(node, NULL, 0)
        self._arrays[node] = None
        self.stay_at(node)

    def set_bins(
        self, int node, children, int feature, const uint8_t[::1] branch_of_bin not None,
    ):
        """Split a node by the branches of a feature's bins, to the children with some numbers."""
        cdef:
            Py_ssize_t i
            int32_t child[256]
            int greatest = 0, n_children = self.read_children(node, children, child)
        if not 0 <= feature < self.bins.n_columns or self.bins.column[feature].kind > UINT32:
            raise ValueError(f"{feature} is not a column of bins")
        if branch_of_bin.shape[0] <= self.bins.column[feature].largest:
            raise ValueError("every bin needs a branch")
        for i in range(branch_of_bin.shape[0]):
            greatest = max(greatest, branch_of_bin[i])
        if greatest >= n_children:
            raise ValueError("branches of bins exist")
        self.lead_to(node, child, n_children)
        self._arrays[node] = branch_of_bin
        self.steps[node].codes = self.bins.column[feature].data
        self.steps[node].kind = self.bins.column[feature].kind
        self.steps[node].branch_of_bin = &branch_of_bin[0]
        self.steps[node].cuts = NULL
        self.steps[node].n_pieces = branch_of_bin.shape[0]

    def set_cuts(self, int node, children, PairCuts cuts not None):
        """Split a node by the cuts of a pair, to the children with some numbers."""
        cdef:
            int32_t child[256]
            int n_children = self.read_children(node, children, child)
        if cuts.n_rows != self.n_rows or cuts.least_branch < 0 or (
                cuts.greatest_branch >= n_children):
            raise ValueError("branches of regions exist, and tables have as many rows as bins")
        self.lead_to(node, child, n_children)
        self._arrays[node] = cuts
        self.steps[node].cuts = &cuts.cuts
        self.steps[node].n_pieces = n_regions(&cuts.cuts) + 1

    cdef int count_steps(self) except -1:
        """Find out how far each node is above its deepest leaf."""
        cdef int node, b, child
        if self.is_counted:
            return 0
        for node in range(self.n_nodes - 1, -1, -1):
            self.steps[node].n_steps = 0
            for b in range(self.steps[node].n_branches):
                child = self.child[node, b]
                if self.steps[child].parent != node:
                    raise ValueError("a node has two parents")
                self.steps[node].n_steps = max(
                    self.steps[node].n_steps, 1 + self.steps[child].n_steps)
        self.is_counted = True
        return 0

    # Rows that move

    def send(self, const int32_t[::1] nodes not None, int n_threads):
        """Send the rows of some nodes, none of them below another, to the leaves below."""
        cdef:
            Py_ssize_t i, block, n_blocks = 0, n_places = 0
            int node, n_below
            int64_t n
            int64_t[::1] places
            int32_t[::1] number_of_leaf = np.zeros(self.n_nodes, dtype=np.int32)
            SentBlock* blocks
        self.check_nodes(nodes, n_threads)
        self.count_steps()
        self.forget_losses()
        sending = [node for node in nodes if self.steps[node].n_branches]
        all_below = [self.nodes_below(node) for node in sending]
        n_leaves = [self.number_leaves(below, number_of_leaf) for below in all_below]
        for node, n_below in zip(sending, n_leaves):
            n = self.n_blocks_of(node)
            n_blocks += n
            n_places += n * (n_below + APART)
        places = np.zeros(n_places + 1, dtype=np.int64)
        blocks = <SentBlock*> malloc((n_blocks + 1) * sizeof(SentBlock))
        if blocks == NULL:
            raise MemoryError("no memory to send rows")
        try:
            n_blocks = n_places = 0
            for node, below, n_below in zip(sending, all_below, n_leaves):
                self.fill_blocks(
                    blocks + n_blocks, node, self.is_all_else_old(below), &places[n_places],
                    n_below)
                n = self.n_blocks_of(node)
                n_blocks += n
                n_places += n * (n_below + APART)
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                self.count_block(&blocks[block], &number_of_leaf[0])
            i = 0
            for node, below, n_below in zip(sending, all_below, n_leaves):
                n = self.n_blocks_of(node)
                share_places(blocks + i, n, n_below)
                self.place_below(below, blocks[i].place)
                i += n
            # Neighbours write next to each other, so that a thread had better do many of them.
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="guided"):
                self.move_block(&blocks[block])
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                self.copy_block(&blocks[block])
        finally:
            free(blocks)
        for node in sending:
            self.n_moved += self.rows._stop[node] - self.rows._start[node]
        if self.n_moved > SORT_AFTER * self.rows._order.shape[0]:
            self.sort_leaves(n_threads)
            self.n_moved = 0

    cdef int number_leaves(
        self, const int32_t[::1] below, int32_t[::1] number_of_leaf
    ) except -1:
        """Number the leaves below a node; returns how many there are."""
        cdef:
            Py_ssize_t at
            int n_leaves = 0
        for at in range(below.shape[0]):
            if self.steps[below[at]].n_branches == 0:
                number_of_leaf[below[at]] = n_leaves
                n_leaves += 1
        return n_leaves

    cdef int64_t n_blocks_of(self, int node) noexcept:
        """Blocks that a node's rows are sent in, one at least."""
        return max(1, (self.rows._stop[node] - self.rows._start[node] + BLOCK - 1) // BLOCK)

    cdef void fill_blocks(
        self, SentBlock* blocks, int node, bint keeps_rest, int64_t* places, Py_ssize_t n_leaves
    ) noexcept:
        cdef int64_t i, first = self.rows._start[node], last = self.rows._stop[node]
        for i in range(self.n_blocks_of(node)):
            blocks[i].node = node
            blocks[i].keeps_rest = keeps_rest
            blocks[i].first = first + i * BLOCK
            blocks[i].last = min(first + (i + 1) * BLOCK, last)
            blocks[i].place = places + i * (n_leaves + APART)

    def stand_at(self, NodeRows rows not None):
        """Go on with a copy of where the rows are, and leave the other as it is."""
        if rows.n_rows > self.n_rows or rows._order.shape[0] != self.rows._order.shape[0]:
            raise ValueError("the rows are not those of the tree")
        rows.make_room(self.n_nodes)
        self.rows = rows
        self.order = &rows._order[0] if rows._order.shape[0] else NULL

    def reorder_rows(self, int n_threads):
        """Move the rows of the bins themselves to where they stand in the tree, and number them so.

        Every row must be at the root once, and nothing else may use the bins. Returns the
        numbers that the rows had.
        """
        self.bins.reorder(self.rows.order, n_threads)
        self.forget_losses()
        return self.rows.renumber()

    cdef int sort_leaves(self, int n_threads) except -1:
        """Sort the rows within each leaf, so that loops go through columns in one direction."""
        cdef:
            Py_ssize_t i
            const int32_t[::1] nodes = self.nodes_below(0)
        for i in prange(nodes.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic"):
            if self.steps[nodes[i]].n_branches == 0:
                self.sort_leaf(nodes[i])
        return 0

    cdef void sort_leaf(self, int leaf) noexcept nogil:
        cdef Py_ssize_t first = self.rows._start[leaf], n = self.rows._stop[leaf] - first
        if n >= MIN_SORTED:
            sort_items(&self.rows._order[first], &self.scratch[first], n,
                       <uint32_t> self.rows.n_rows)

    cdef object nodes_below(self, int node):
        """A node and all below it, each before its children, these in the order of branches."""
        cdef:
            int b
            list found = [], pending = [node]
        while pending:
            node = pending.pop()
            found.append(node)
            for b in range(self.steps[node].n_branches - 1, -1, -1):
                pending.append(self.child[node, b])
        return np.array(found, dtype=np.int32)

    cdef void place_below(self, const int32_t[::1] below, const int64_t* place) noexcept:
        """Set the ranges of a node and all below it, given where the leaves start."""
        cdef:
            Py_ssize_t at, leaf = 0
            int node, n_branches
            int64_t stop = self.rows._stop[below[0]]
        for at in range(below.shape[0]):
            if self.steps[below[at]].n_branches == 0:
                self.rows._start[below[at]] = place[leaf]
                leaf += 1
        for at in range(below.shape[0] - 1, -1, -1):
            node = below[at]
            n_branches = self.steps[node].n_branches
            if n_branches == 0:
                self.rows._stop[node] = stop
                stop = self.rows._start[node]
            else:
                self.rows._start[node] = self.rows._start[self.child[node, 0]]
                self.rows._stop[node] = self.rows._stop[self.child[node, n_branches - 1]]

    cdef bint is_all_else_old(self, const int32_t[::1] below) noexcept:
        """Whether only the first node's split is new, not what it leads to; forgets what is new."""
        cdef:
            Py_ssize_t at
            bint is_old = not self.steps[below[0]].has_new_children
        for at in range(below.shape[0]):
            is_old &= at == 0 or not self.steps[below[at]].is_new
            self.steps[below[at]].is_new = False
            self.steps[below[at]].has_new_children = False
        return is_old

    cdef void count_block(
        self, const SentBlock* block, const int32_t* number_of_leaf
    ) noexcept nogil:
        """Note the new leaf of each row of a block, and count the rows of each."""
        cdef:
            Py_ssize_t at = block.first, stop
            int leaf = block.node, own = -1
        while at < block.last:
            stop = block.last
            if block.keeps_rest:
                leaf = self.leaf_at(block.node, at, &own)
                stop = min(max(self.rows._stop[leaf], at + 1), block.last)
            while at < stop:
                self.count_rows(block.node, at, min(at + CHUNK, stop), leaf, own, number_of_leaf,
                                block.place)
                at = min(at + CHUNK, stop)

    cdef void count_rows(
        self, int node, Py_ssize_t first, Py_ssize_t last, int leaf, int own,
        const int32_t* number_of_leaf, int64_t* count,
    ) noexcept nogil:
        """Note the new leaves of a few rows; those that stay in branch `own` stay in `leaf`."""
        cdef:
            Py_ssize_t i, n = last - first
            int32_t number
            int32_t leaf_of_row[CHUNK]
            const Step* step = &self.steps[node]
            int b
        if own < 0:
            leaves_below(self.steps, node, self.order + first, n, leaf_of_row)
        else:
            for i in range(n):
                b = branch_at(step, self.order[first + i])
                leaf_of_row[i] = leaf if b == own else step.child[b]
            follow(self.steps, step.n_steps - 1, self.order + first, n, leaf_of_row)
        for i in range(n):
            number = number_of_leaf[leaf_of_row[i]]
            self.care_row[first + i] = number
            count[number] += 1

    cdef void move_block(self, const SentBlock* block) noexcept nogil:
        cdef:
            Py_ssize_t at
            int32_t number
        for at in range(block.first, block.last):
            number = self.care_row[at]
            self.scratch[block.place[number]] = self.order[at]
            block.place[number] += 1

    cdef void copy_block(self, const SentBlock* block) noexcept nogil:
        if block.last > block.first:
            memcpy(&self.rows._order[block.first], &self.scratch[block.first],
                   (block.last - block.first) * sizeof(int32_t))

    # Counts

    def pieces_below(self, int node, weights, row_counts=None):
        """What nodes and pieces would hold if a node's rows were sent down now.

        Returns, for every node of the tree, its rows and their weight (None without weights), and
        a dict of each split node's rows by piece: bins, or regions of a pair, missing values last.
        A row may count as several.
        """
        cdef:
            Py_ssize_t at, row
            int here
            int64_t** counts
            int64_t[::1] n_rows, piece
            double[::1] weight_of, given
            int64_t[::1] times
            int64_t n_times = 1
            bint has_weights = weights is not None, has_counts = row_counts is not None
        self.check_node(node)
        self.count_steps()
        given = np.ones(0) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        times = np.ascontiguousarray(row_counts if has_counts else np.ones(0), dtype=np.int64)
        if has_weights and given.shape[0] != self.n_rows or (
                has_counts and times.shape[0] != self.n_rows):
            raise ValueError("weights and counts must be (n_rows,)")
        found, weighed = np.zeros(self.n_nodes, dtype=np.int64), np.zeros(self.n_nodes)
        n_rows, weight_of = found, weighed
        pieces = {}
        counts = <int64_t**> calloc(self.n_nodes, sizeof(int64_t*))
        if counts == NULL:
            raise MemoryError("no memory to count rows")
        for here in self.nodes_below(node):
            if self.steps[here].n_branches:
                pieces[here] = np.zeros(self.steps[here].n_pieces, dtype=np.int64)
                piece = pieces[here]
                counts[here] = &piece[0]
        with nogil:
            for at in range(self.rows._start[node], self.rows._stop[node]):
                row = self.order[at]
                here = node
                if has_counts:
                    n_times = times[row]
                while True:
                    n_rows[here] += n_times
                    if has_weights:
                        weight_of[here] += given[row]
                    if self.steps[here].n_branches == 0:
                        break
                    counts[here][piece_at(&self.steps[here], row)] += n_times
                    here = self.child[here, branch_at(&self.steps[here], row)]
        free(counts)
        return found, weighed if has_weights else None, pieces

    def piece_counts(self, const int32_t[::1] nodes not None, int n_threads):
        """Rows of some split nodes by piece, a list of arrays as in `pieces_below`."""
        cdef:
            Py_ssize_t i, n_nodes = nodes.shape[0]
            int64_t[::1] flat, starts
        self.check_nodes(nodes, n_threads)
        sizes = [self.steps[node].n_pieces for node in nodes]
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        starts = bounds
        counts = np.zeros(starts[n_nodes], dtype=np.int64)
        flat = counts
        for i in prange(n_nodes, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if starts[i + 1] > starts[i]:
                self.count_pieces(nodes[i], &flat[starts[i]])
        return [counts[starts[i]:starts[i + 1]] for i in range(n_nodes)]

    cdef void count_pieces(self, int node, int64_t* count) noexcept nogil:
        cdef Py_ssize_t at
        for at in range(self.rows._start[node], self.rows._stop[node]):
            count[piece_at(&self.steps[node], self.order[at])] += 1

    # Losses

    cdef int check_losses(self, LeafLosses losses) except -1:
        if losses is None or losses.n_rows != self.n_rows:
            raise ValueError("the losses and the bins differ in their numbers of rows")
        return 0

    cdef int check_table(
        self, LeafLosses losses, const double[:, ::1] table, Py_ssize_t n_nodes,
        const double[::1] anchors,
    ) except -1:
        self.check_losses(losses)
        if table.shape[0] != self.n_nodes or table.shape[1] != losses.n_columns:
            raise ValueError("the table must have a line for each node")
        if anchors.shape[0] != n_nodes:
            raise ValueError("each node needs an anchor")
        return 0

    def leaf_sums(self, const int32_t[::1] leaves not None, LeafLosses losses not None,
                  int n_threads):
        """What the rows of each leaf add up to: weight of each label, or of all and of values.

        Returns an array (n_leaves, losses.width).
        """
        cdef:
            Py_ssize_t i, n_leaves = leaves.shape[0]
            double[:, ::1] sums
        self.check_nodes(leaves, n_threads)
        self.check_losses(losses)
        result = np.zeros((n_leaves, losses.width + APART))
        sums = result
        for i in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if self.rows._stop[leaves[i]] > self.rows._start[leaves[i]]:
                add_targets(&losses.targets, &self.order[self.rows._start[leaves[i]]],
                            self.rows._stop[leaves[i]] - self.rows._start[leaves[i]], &sums[i, 0])
        return np.ascontiguousarray(result[:, :losses.width])

    def leaf_ranges(self, const int32_t[::1] leaves not None, LeafLosses losses not None,
                    int n_threads):
        """Least and greatest value of each leaf's rows, for every output: (n_leaves, 2, n_outputs).

        A leaf without rows has infinite ones, the least above the greatest.
        """
        cdef:
            Py_ssize_t i, at, row, n_leaves = leaves.shape[0]
            int o, n_outputs = losses.n_outputs
            double value
            double[:, :, ::1] found
        self.check_nodes(leaves, n_threads)
        self.check_losses(losses)
        if losses.has_labels:
            raise ValueError("labels have no range")
        result = np.empty((n_leaves, 2, n_outputs))
        result[:, 0], result[:, 1] = np.inf, -np.inf
        found = result
        for i in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="dynamic"):
            for at in range(self.rows._start[leaves[i]], self.rows._stop[leaves[i]]):
                row = self.order[at]
                for o in range(n_outputs):
                    value = losses.targets.values[row * n_outputs + o]
                    if value < found[i, 0, o]:
                        found[i, 0, o] = value
                    if value > found[i, 1, o]:
                        found[i, 1, o] = value
        return result

    def leaf_totals(
        self,
        const int32_t[::1] leaves not None,    # IN
        LeafLosses losses not None,            # IN
        const double[:, ::1] table not None,   # IN: (n_nodes, n_columns) leaves' lines
        const double[::1] anchors not None,    # IN: (n_leaves,) see the top
        int n_threads,
    ):
        """Loss of the rows of each leaf."""
        cdef:
            Py_ssize_t i, n_leaves = leaves.shape[0]
            double[::1] total
        self.check_nodes(leaves, n_threads)
        self.check_table(losses, table, n_leaves, anchors)
        result = np.zeros(n_leaves)
        total = result
        for i in prange(n_leaves, nogil=True, num_threads=n_threads, schedule="dynamic"):
            total[i] = self.total_of(leaves[i], &losses.targets, &table[leaves[i], 0], anchors[i])
        return result

    cdef double total_of(
        self, int leaf, const RowTargets* targets, const double* line, double anchor
    ) noexcept nogil:
        cdef:
            Py_ssize_t at
            double total = 0.0
        for at in range(self.rows._start[leaf], self.rows._stop[leaf]):
            total += loss_in_leaf(targets, self.order[at], line, anchor)
        return total

    def branch_losses(
        self,
        const int32_t[::1] nodes not None,     # IN: of one level, all of them split
        LeafLosses losses not None,            # IN
        const double[:, ::1] table not None,   # IN: (n_nodes, n_columns) leaves' lines
        const double[::1] anchors not None,    # IN: (n_level,) see the top
        int n_threads,
    ):
        """Find out what each branch of some nodes would cost their rows, beyond branch 0.

        The rows' own branch leads to the leaf they are in. Rows for which branches differ are kept
        for `loss_cells` and `care_sets`, until rows are sent again.

        Returns
        -------
        sums : array (n_level, 1 + max_branches)
            Loss of each node's rows in their own branches, in branch 0, and what branch 1, 2, ..
            adds to that.
        n_care : int64 array (n_level,)
            Rows for which branches differ.
        least : array (n_level,)
            What the rows would add to branch 0 if each took the branch where it loses least.
        """
        cdef:
            Py_ssize_t i, block, n_level = nodes.shape[0]
            int width = 1 + self.max_branches, c, n_failed = 0
            double[:, ::1] block_sums, sums
            double[::1] least
            int64_t[::1] n_care
        self.check_nodes(nodes, n_threads)
        self.check_table(losses, table, n_level, anchors)
        self.count_steps()
        for i in range(n_level):
            if self.steps[nodes[i]].n_branches == 0:
                raise ValueError("leaves have no branches")
            if i > 0 and self.rows._start[nodes[i]] < self.rows._stop[nodes[i - 1]]:
                raise ValueError("nodes of a level stand in the order of their rows")
        self.make_blocks(nodes)
        of_blocks = np.zeros((self.n_blocks, width + 1 + APART))
        found, cares = np.zeros((n_level, width)), np.zeros(n_level, dtype=np.int64)
        at_best = np.zeros(n_level)
        block_sums, sums, n_care, least = of_blocks, found, cares, at_best
        for block in prange(self.n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            n_failed += self.compare_block(
                &self.blocks[block], nodes[self.blocks[block].number], &losses.targets,
                &table[0, 0], table.shape[1], anchors[self.blocks[block].number],
                &block_sums[block, 0])
        if n_failed:
            self.forget_losses()
            raise MemoryError("no memory to compare branches")
        for block in range(self.n_blocks):
            i = self.blocks[block].number
            n_care[i] += self.blocks[block].n_care
            least[i] += block_sums[block, width]
            for c in range(width):
                sums[i, c] += block_sums[block, c]
        for i in range(n_level):
            for c in range(2, 1 + self.steps[nodes[i]].n_branches):
                sums[i, c] -= sums[i, 1]
        return found, cares, at_best

    cdef int forget_losses(self) except -1:
        self.n_blocks = 0
        self.first_block = np.zeros(1, dtype=np.int64)
        return 0

    cdef int make_blocks(self, const int32_t[::1] nodes) except -1:
        cdef:
            Py_ssize_t i, n = 0
            int64_t first, stop
        self.n_blocks = 0
        self.first_block = np.zeros(nodes.shape[0] + 1, dtype=np.int64)
        for i in range(nodes.shape[0]):
            n += (self.rows._stop[nodes[i]] - self.rows._start[nodes[i]] + BLOCK - 1) // BLOCK
            self.first_block[i + 1] = n
        free(self.blocks)
        self.blocks = <LossBlock*> malloc(max(n, 1) * sizeof(LossBlock))
        if self.blocks == NULL:
            self.forget_losses()
            raise MemoryError("no memory to compare branches")
        n = 0
        for i in range(nodes.shape[0]):
            stop = self.rows._stop[nodes[i]]
            first = self.rows._start[nodes[i]]
            while first < stop:
                self.blocks[n].number = i
                self.blocks[n].first = first
                self.blocks[n].last = min(first + BLOCK, stop)
                self.blocks[n].n_care = 0
                first += BLOCK
                n += 1
        self.n_blocks = n
        return 0

    cdef int compare_block(
        self, LossBlock* block, int node, const RowTargets* targets, const double* table,
        Py_ssize_t n_columns, double anchor, double* sums,
    ) noexcept nogil:
        """Compare the branches for a block of rows; returns 1 for want of memory."""
        cdef:
            int64_t at = block.first, stop, leaf_stop
            int own, leaf
            double* lost = <double*> malloc(
                self.steps[node].n_branches * CHUNK * sizeof(double))
        if lost == NULL:
            return 1
        while at < block.last:
            leaf = self.leaf_at(node, at, &own)
            leaf_stop = max(self.rows._stop[leaf], at + 1)
            while at < min(leaf_stop, block.last):
                stop = min(at + CHUNK, leaf_stop, block.last)
                self.compare_rows(
                    block, at, stop, &self.steps[node], own, leaf, targets, table, n_columns,
                    anchor, lost, sums)
                at = stop
        free(lost)
        return 0

    cdef int leaf_at(self, int node, int64_t place, int* branch) noexcept nogil:
        """The leaf below a node whose row stands at a place, and the node's branch to it."""
        cdef int b, leaf = node
        while self.steps[leaf].n_branches:
            b = 0
            while b + 1 < self.steps[leaf].n_branches and (
                    self.rows._stop[self.child[leaf, b]] <= place):
                b += 1
            if leaf == node:
                branch[0] = b
            leaf = self.child[leaf, b]
        return leaf

    cdef void compare_rows(
        self, LossBlock* block, int64_t first, int64_t last, const Step* step, int own, int leaf,
        const RowTargets* targets, const double* table, Py_ssize_t n_columns, double anchor,
        double* lost, double* sums,
    ) noexcept nogil:
        """Compare the branches for a few rows of one leaf; `lost` has CHUNK numbers a branch."""
        cdef:
            Py_ssize_t i, n = last - first, out = block.first + block.n_care
            int b, k = step.n_branches, n_others = self.max_branches - 1
            const int32_t* rows = self.order + first
            double* others
            double of_branch, total, best, least = 0.0
            int32_t leaf_of_row[CHUNK]
            bint cares
        for b in range(k):
            total = 0.0
            leaves_below(self.steps, leaf if b == own else step.child[b], rows, n, leaf_of_row)
            losses_in_leaves(
                targets, rows, n, table, n_columns, leaf_of_row, anchor, lost + b * CHUNK)
            for i in range(n):
                total += lost[b * CHUNK + i]
            if b == own:
                sums[0] += total
            if b == 0:
                sums[1] += total
            else:
                sums[1 + b] += total
        # What branches add to the first.
        for i in range(n):
            others = &self.care_loss[out, 0]
            cares = False
            best = 0.0
            for b in range(1, k):
                of_branch = lost[b * CHUNK + i] - lost[i]
                others[b - 1] = of_branch
                cares |= of_branch != 0.0
                best = of_branch if of_branch < best else best
            least += best
            for b in range(k - 1, n_others):
                others[b] = 0.0
            self.care_row[out] = rows[i]
            out += cares
        block.n_care = out - block.first
        sums[1 + self.max_branches] += least

    def room_for_cells(
        self,
        int first,                                 # IN: first node of the level to sum
        const int64_t[::1] offsets not None,       # IN: (n_features + 1,) where their bins start
        const uint8_t[::1] wanted not None,        # IN: (n_level,) which nodes to sum
        int64_t max_cells,                         # IN: most cells, unless one node has more
    ):
        """Where `loss_cells` may put the cells of as many nodes as fit memory.

        Returns the first node that has to wait, the number of rows of the nodes before, and a tuple
        of their `starts`, `n_cells`, `bin_of_cell` and `losses`.
        """
        cdef:
            Py_ssize_t node, f, n_level = self.first_block.shape[0] - 1
            Py_ssize_t n_features = self.bins.n_columns, last = first
            int64_t total = 0, room, n_rows, n_summed = 0
            int64_t[:, ::1] starts
        if not 0 <= first <= n_level or wanted.shape[0] != n_level:
            raise ValueError("every node of the level is wanted or not")
        if offsets.shape[0] != n_features + 1:
            raise ValueError("every feature needs its bins")
        given = np.empty((n_level - first, n_features), dtype=np.int64)
        starts = given
        for node in range(first, n_level):
            n_rows = self.n_care(node) if wanted[node] else 0
            room = total
            for f in range(n_features):
                starts[node - first, f] = room
                room += max(0, min(n_rows, offsets[f + 1] - offsets[f]))
            if node > first and room > max_cells:
                break
            total = room
            n_summed += n_rows
            last = node + 1
        cells = (
            given[:last - first], np.empty((last - first, n_features), dtype=np.int32),
            np.empty(total, dtype=np.int32), np.empty((total, self.max_branches - 1)))
        return last, n_summed, cells

    def loss_cells(
        self,
        int first, int last,                       # IN: nodes of the level
        const int64_t[::1] offsets not None,       # IN: (n_features + 1,) where their bins start
        const int64_t[:, ::1] starts not None,     # IN: (last - first, n_features)
        int32_t[:, ::1] n_cells not None,          # OUT: (last - first, n_features)
        int32_t[::1] bin_of_cell not None,         # OUT
        double[:, ::1] losses not None,            # OUT: (n_cells, max_branches - 1)
        int first_feature, int last_feature,       # IN: which features to fill
        int n_threads,
        const uint8_t[::1] wanted=None,            # IN: (last - first,) which nodes to sum; all
    ):
        """Sum up by bin what rows of the level's nodes lose in branch 1, 2, .. beyond branch 0.

        Bins with rows that care are the *cells* of a node and feature. They stand from
        starts[node, feature] on, in the order of bins; there must be room for one for each such
        row, or for all bins. Nodes that are not wanted have none.
        """
        cdef:
            Py_ssize_t task, n_features = last_feature - first_feature, n_pairs, node, room
            Py_ssize_t most_bins = 0
            int feature, n_others = self.max_branches - 1
            CellScratch scratch
        self.bins.check_bins(offsets, first_feature, last_feature)
        if not 0 <= first <= last < self.first_block.shape[0] or n_threads < 1:
            raise ValueError("nodes of the level or n_threads out of range")
        if losses.shape[0] != bin_of_cell.shape[0] or losses.shape[1] != n_others or (
                starts.shape[0] != last - first or starts.shape[1] != self.bins.n_columns
                or n_cells.shape[0] != last - first or n_cells.shape[1] != self.bins.n_columns):
            raise ValueError("the cells' arrays do not fit the nodes and features")
        if wanted is not None and wanted.shape[0] != last - first:
            raise ValueError("every node is wanted or not")
        for node in range(last - first):
            if wanted is not None and not wanted[node]:
                n_cells[node, first_feature:last_feature] = 0
                continue
            for feature in range(first_feature, last_feature):
                room = min(self.n_care(first + node), offsets[feature + 1] - offsets[feature])
                if not 0 <= starts[node, feature] <= bin_of_cell.shape[0] - room:
                    raise ValueError("there is no room for all cells")
        if first == last or n_features == 0 or bin_of_cell.shape[0] == 0:
            n_cells[:, first_feature:last_feature] = 0
            return
        for feature in range(first_feature, last_feature):
            most_bins = max(most_bins, offsets[feature + 1] - offsets[feature])
        n_pairs = (n_features + 1) // 2
        n_threads = min(n_threads, (last - first) * n_pairs)
        scratch = CellScratch(n_threads, most_bins, n_others)
        for task in prange((last - first) * n_pairs, nogil=True, num_threads=n_threads,
                           schedule="dynamic"):
            # Feature by feature, so that columns stay in the cache from node to node.
            node = task % (last - first)
            feature = <int> (first_feature + 2 * (task // (last - first)))
            if wanted is None or wanted[node]:
                self.fill_two(
                    first + node, feature, min(feature + 2, last_feature), offsets, scratch,
                    threadid(), &starts[node, 0], &n_cells[node, 0], &bin_of_cell[0],
                    &losses[0, 0])

    cdef Py_ssize_t n_care(self, Py_ssize_t number) noexcept nogil:
        """Rows of one of the level's nodes that care."""
        cdef Py_ssize_t i, n = 0
        for i in range(self.first_block[number], self.first_block[number + 1]):
            n += self.blocks[i].n_care
        return n

    cdef void fill_two(
        self, Py_ssize_t number, int feature, int last_feature, const int64_t[::1] offsets,
        CellScratch scratch, int thread, const int64_t* starts, int32_t* n_cells,
        int32_t* bin_of_cell, double* losses,
    ) noexcept nogil:
        """Sum up one node's rows by a feature and the next, unless that is the last."""
        cdef:
            double* sums = scratch.sums + 2 * thread * scratch.n_sums
            uint64_t* marks = scratch.marks + thread * scratch.n_words
            Py_ssize_t n_care = self.n_care(number), n_bins
            bint is_sparse
            bint at_once = (
                feature + 1 < last_feature and self.bins.column[feature].kind == UINT8
                and self.bins.column[feature + 1].kind == UINT8 and n_care >= MIN_AT_ONCE)
            int n_others = self.max_branches - 1
        if at_once:
            self.add_care_to_two(number, feature, sums, sums + scratch.n_sums)
        while feature < last_feature:
            n_bins = offsets[feature + 1] - offsets[feature]
            is_sparse = not at_once and 2 * n_care < n_bins
            if not at_once:
                self.add_care(number, feature, sums, marks if is_sparse else NULL)
            n_cells[feature] = gather_cells(
                sums, marks if is_sparse else NULL, n_bins, n_others,
                bin_of_cell + starts[feature], losses + starts[feature] * n_others)
            if at_once:
                sums = sums + scratch.n_sums
            feature += 1

    cdef void add_care_to_two(
        self, Py_ssize_t number, int feature, double* sums, double* others_sums
    ) noexcept nogil:
        """Add a node's rows that care to the sums of two features, whose bins are bytes."""
        cdef Py_ssize_t i
        for i in range(self.first_block[number], self.first_block[number + 1]):
            add_to_two(
                <const uint8_t*> self.bins.column[feature].data,
                <const uint8_t*> self.bins.column[feature + 1].data,
                &self.care_row[self.blocks[i].first], &self.care_loss[self.blocks[i].first, 0],
                self.blocks[i].n_care, self.max_branches - 1, sums, others_sums)

    cdef void add_care(
        self, Py_ssize_t number, int feature, double* sums, uint64_t* marks
    ) noexcept nogil:
        """Add a node's rows that care to the sums of a feature."""
        cdef:
            Py_ssize_t i, n
            int n_others = self.max_branches - 1
            const Column* column = &self.bins.column[feature]
            const int32_t* rows
            const double* values
        for i in range(self.first_block[number], self.first_block[number + 1]):
            rows = &self.care_row[self.blocks[i].first]
            values = &self.care_loss[self.blocks[i].first, 0]
            n = self.blocks[i].n_care
            if column.kind == UINT8:
                add_losses(<const uint8_t*> column.data, rows, values, n, n_others, sums, marks)
            elif column.kind == UINT16:
                add_losses(<const uint16_t*> column.data, rows, values, n, n_others, sums, marks)
            else:
                add_losses(<const uint32_t*> column.data, rows, values, n, n_others, sums, marks)

    def care_sets(self):
        """Rows of each node of the level that care, and what they lose beyond branch 0.

        Returns a list of pairs of arrays, (n_care,) and (n_care, max_branches - 1).
        """
        cdef Py_ssize_t number, i
        found = []
        order, losses = np.asarray(self.care_row), np.asarray(self.care_loss)
        for number in range(self.first_block.shape[0] - 1):
            parts = [
                slice(self.blocks[i].first, self.blocks[i].first + self.blocks[i].n_care)
                for i in range(self.first_block[number], self.first_block[number + 1])
            ]
            found.append((
                np.concatenate([order[part] for part in parts] or [order[:0]]),
                np.concatenate([losses[part] for part in parts] or [losses[:0]]),
            ))
        return found
