"""Which rows are at which node: every node's rows stand together in one order.

The rows of node v are order[start[v]:stop[v]]. Its children's ranges lie inside this one, in the
order of its branches, so that a node of any depth is one range, and a range holds all that is below
the node.

    order:   a c f | b g | d e h        root 0..8, its children 0..3, 3..5, 5..8
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport fabs, rint
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from shapetree._core.columns cimport UINT32, Column, Columns, code_at
from shapetree._core.pieces cimport Cuts, PairCuts, branch_by_cuts
from shapetree._core.threads cimport APART, MAX_PARTS

cdef enum:
    BLOCK = 8192          # rows that one thread sends at a time

ctypedef struct Sender:
    # How one node sends its rows.
    const Column* column          # of bins, for a split on one feature
    const uint8_t* branch_of_bin
    const Cuts* cuts              # for one on a pair; else NULL
    int n_branches


cdef bint find_branches(
    const Sender* sender, const int32_t* rows, Py_ssize_t n, uint8_t* branch, int64_t* count
) noexcept nogil:
    """Note the branch of each row and count the rows of each; whether every branch exists."""
    cdef:
        Py_ssize_t i
        int b
    for i in range(n):
        if sender.cuts == NULL:
            b = sender.branch_of_bin[code_at(sender.column, rows[i])]
        else:
            b = branch_by_cuts(sender.cuts, rows[i])
        if not 0 <= b < sender.n_branches:
            return False
        branch[i] = b
        count[b] += 1
    return True


cdef void send(
    const uint8_t* branch, const int32_t* rows, Py_ssize_t n, int64_t* place, int32_t* target
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        target[place[branch[i]]] = rows[i]
        place[branch[i]] += 1


cdef class NodeRows:
    """The rows of a tree's nodes; at first all of them are at node 0.

    Several trees may grow together: the first nodes are their roots.

    Parameters
    ----------
    n_rows : int
        Rows of the table.
    rows : int32 array, optional
        Those that the tree is fitted on, each as often as it counts; by default every row once.
    sizes : int array, optional
        How many of them are at each root, one root's rows after another's; by default, all are at
        one.

    Attributes
    ----------
    n_rows : int
        Rows that a table must have to hold all of them.
    has_repeats : bool
        Whether some rows are there several times.
    order : int32 array
    start, stop : int64 arrays
        Ranges of the nodes in it; they have room for nodes that do not exist yet.
    """

    def __init__(self, Py_ssize_t n_rows, rows=None, sizes=None):
        if n_rows < 0:
            raise ValueError("n_rows must not be negative")
        if rows is None:
            order, self.n_rows = np.arange(n_rows, dtype=np.int32), n_rows
        elif np.asarray(rows).dtype.kind not in "iu":
            raise TypeError("rows must be whole numbers")
        elif len(rows) and (np.min(rows) < 0 or np.max(rows) >= n_rows):
            raise IndexError(f"rows must lie between 0 and {n_rows - 1}")
        else:
            order = np.array(rows, dtype=np.int32)
            self.n_rows = 1 + int(order.max()) if len(order) else 0
        self.has_repeats = rows is not None and bool((order[1:] == order[:-1]).any())
        self._order, self.order = order, for_reading(order)
        sizes = np.array([len(order)] if sizes is None else sizes, dtype=np.int64)
        if len(sizes) == 0 or sizes.min() < 0 or sizes.sum() != len(order):
            raise ValueError("the roots must have all rows between them")
        room = np.zeros(max(64, len(sizes)), dtype=np.int64)
        stop = room.copy()
        stop[:len(sizes)] = np.cumsum(sizes)
        room[1:len(sizes)] = stop[:len(sizes) - 1]
        self.set_ranges(room, stop)

    def __reduce__(self):
        return _rows_of_nodes, (
            self.n_rows, self.has_repeats, self.order, self.start, self.stop)

    def copy(self):
        """The same rows at the same nodes, which can be sent on by themselves."""
        return _rows_of_nodes(self.n_rows, self.has_repeats, self.order, self.start, self.stop)

    def sizes(self, Py_ssize_t n_nodes):
        """Numbers of rows of the first nodes, a list."""
        cdef Py_ssize_t node
        if not 0 <= n_nodes <= self._start.shape[0]:
            raise IndexError(f"there is no node {n_nodes - 1}")
        return [self._stop[node] - self._start[node] for node in range(n_nodes)]

    def renumber(self):
        """Number the rows by their places from now on; returns the numbers that they had.

        Whatever holds the rows must be told.
        """
        cdef Py_ssize_t i
        numbers = np.array(self._order)
        self.n_rows, self.has_repeats = self._order.shape[0], False
        for i in range(self.n_rows):
            self._order[i] = <int32_t> i
        return numbers

    cdef int set_ranges(self, start, stop) except -1:
        self._start, self.start = start, for_reading(start)
        self._stop, self.stop = stop, for_reading(stop)
        return 0

    cdef int take_scratch(self) except -1:
        """Take memory that is needed only while rows are sent."""
        self._scratch = np.empty(self._order.shape[0], dtype=np.int32)
        self._branch = np.empty(self._order.shape[0], dtype=np.uint8)
        return 0

    cdef int leave_scratch(self) except -1:
        self._scratch = None
        self._branch = None
        return 0

    cdef int make_room(self, Py_ssize_t n_nodes) except -1:
        """Let nodes up to `n_nodes` have ranges."""
        cdef Py_ssize_t room = self._start.shape[0]
        if n_nodes > room:
            more = np.zeros(max(n_nodes, 2 * room) - room, dtype=np.int64)
            self.set_ranges(
                np.concatenate([self.start, more]), np.concatenate([self.stop, more]))
        return 0

    cdef int check_nodes(self, const int32_t[::1] nodes) except -1:
        cdef Py_ssize_t i
        for i in range(nodes.shape[0]):
            if not 0 <= nodes[i] < self._start.shape[0]:
                raise IndexError(f"there is no node {nodes[i]}")
        return 0

    def split(
        self,
        Columns bins not None,                    # IN: columns of bins
        const int32_t[::1] nodes not None,        # IN: nodes to split, none twice
        const int32_t[::1] first_child not None,  # IN: number of each one's first child
        const int32_t[::1] n_branches not None,   # IN: number of its children
        list ways not None,                       # IN: how each sends its rows, see below
        int n_threads,
    ):
        """Send the rows of some nodes to their children.

        A node sends them by the bins of one feature (its number, and a uint8 array of its bins'
        branches) or by a pair (PairCuts). The order of the rows within a child is that within its
        parent. Nothing has changed if this fails.

        1. Every block of a node's rows counts its branches.
        2. So each block knows where its rows of each branch will start.
        3. The blocks send their rows there.
        """
        cdef:
            Py_ssize_t i, n_nodes = nodes.shape[0], n_blocks = 0, block, most = 1
            int64_t at
            Sender* senders = NULL
            SentBlock* blocks = NULL
            int64_t* places = NULL
        if not (first_child.shape[0] == n_branches.shape[0] == n_nodes == len(ways)) or (
                n_threads < 1):
            raise ValueError("every node needs a split, and n_threads must be at least 1")
        self.check_nodes(nodes)
        if bins.n_rows < self.n_rows:
            raise ValueError("there are fewer rows of bins than of nodes")
        for i in range(n_nodes):
            if not 1 <= n_branches[i] <= 254 or first_child[i] <= 0:
                raise ValueError("a node has 1 to 254 children, which are not the root")
            if first_child[i] > self._start.shape[0] + 254 * n_nodes:
                raise ValueError("children must be numbered from the last node on")
            most = max(most, n_branches[i])
            self.make_room(<Py_ssize_t> first_child[i] + n_branches[i])
        check_apart(self, nodes, first_child, n_branches)
        for i in range(n_nodes):
            n_blocks += (self._stop[nodes[i]] - self._start[nodes[i]] + BLOCK - 1) // BLOCK
        kept = tuple(ways)  # whatever others do to the list while rows are sent
        try:
            self.take_scratch()
            senders = <Sender*> calloc(n_nodes + 1, sizeof(Sender))
            blocks = <SentBlock*> calloc(n_blocks + 1, sizeof(SentBlock))
            places = <int64_t*> calloc(n_blocks * (most + APART) + 1, sizeof(int64_t))
            if senders == NULL or blocks == NULL or places == NULL:
                raise MemoryError("no memory to send rows")
            block = 0
            for i in range(n_nodes):
                fill_sender(&senders[i], bins, kept[i], n_branches[i])
                for at in range(self._start[nodes[i]], self._stop[nodes[i]], BLOCK):
                    blocks[block].number = i
                    blocks[block].first = at
                    blocks[block].n = min(BLOCK, self._stop[nodes[i]] - at)
                    blocks[block].place = places + block * (most + APART)
                    block += 1
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                blocks[block].exists = find_branches(
                    &senders[blocks[block].number], &self._order[blocks[block].first],
                    blocks[block].n, &self._branch[blocks[block].first], blocks[block].place)
            for block in range(n_blocks):
                if not blocks[block].exists:
                    raise IndexError("a branch is out of range")
            self.share_out(nodes, first_child, n_branches, blocks, n_blocks)
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                send(&self._branch[blocks[block].first], &self._order[blocks[block].first],
                     blocks[block].n, blocks[block].place, &self._scratch[0])
            for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                memcpy(&self._order[blocks[block].first], &self._scratch[blocks[block].first],
                       blocks[block].n * sizeof(int32_t))
        finally:
            free(senders)
            free(blocks)
            free(places)
            self.leave_scratch()

    cdef void share_out(
        self, const int32_t[::1] nodes, const int32_t[::1] first_child,
        const int32_t[::1] n_branches, const SentBlock* blocks, Py_ssize_t n_blocks,
    ) noexcept:
        """From the blocks' counts to where their rows start, and the ranges of the children."""
        cdef:
            Py_ssize_t i, j, block = 0, stop
            int64_t at, count
            int b
        for i in range(nodes.shape[0]):
            stop = block
            while stop < n_blocks and blocks[stop].number == i:
                stop += 1
            at = self._start[nodes[i]]
            for b in range(n_branches[i]):
                self._start[first_child[i] + b] = at
                for j in range(block, stop):
                    count = blocks[j].place[b]
                    blocks[j].place[b] = at
                    at += count
                self._stop[first_child[i] + b] = at
            block = stop


def _rows_of_nodes(Py_ssize_t n_rows, bint has_repeats, order, start, stop):
    """Rows that are at nodes already; the arrays are copied."""
    cdef NodeRows rows = NodeRows(0)
    rows.n_rows, rows.has_repeats = n_rows, has_repeats
    order = order.copy()
    rows._order, rows.order = order, for_reading(order)
    rows.set_ranges(start.copy(), stop.copy())
    return rows


cdef object for_reading(array):
    """A view of an array that cannot be written to."""
    view = array[:]
    view.flags.writeable = False
    return view


cdef int check_apart(
    NodeRows rows, const int32_t[::1] nodes, const int32_t[::1] first_child,
    const int32_t[::1] n_branches,
) except -1:
    """Refuse nodes that share rows, and children that are another node to split or its child.

    There must be room for the children.
    """
    cdef:
        Py_ssize_t i
        int32_t child
        uint8_t[::1] is_taken = np.zeros(rows._start.shape[0], dtype=np.uint8)
    for i in range(nodes.shape[0]):
        if is_taken[nodes[i]]:
            raise ValueError(f"node {nodes[i]} is to be split twice")
        is_taken[nodes[i]] = True
    for i in range(nodes.shape[0]):
        for child in range(first_child[i], first_child[i] + n_branches[i]):
            if is_taken[child]:
                raise ValueError(f"node {child} cannot become a child")
            is_taken[child] = True
    if not are_in_order(rows, nodes) and not are_in_order(
            rows, np.asarray(nodes)[np.argsort(rows.start[np.asarray(nodes)])]):
        raise ValueError("nodes to split must not share rows")
    return 0


cdef bint are_in_order(NodeRows rows, const int32_t[::1] nodes) noexcept:
    """Whether the rows of each node stand behind those of the nodes before it."""
    cdef:
        Py_ssize_t i
        int64_t stop = 0
    for i in range(nodes.shape[0]):
        if rows._start[nodes[i]] < rows._stop[nodes[i]]:
            if rows._start[nodes[i]] < stop:
                return False
            stop = rows._stop[nodes[i]]
    return True


cdef int fill_sender(Sender* sender, Columns bins, way, int n_branches) except -1:
    """Note how a node sends its rows; `way` must outlive this."""
    cdef:
        PairCuts cuts
        const uint8_t[::1] branch_of_bin
        Py_ssize_t feature
    sender.n_branches = n_branches
    if isinstance(way, PairCuts):
        cuts = way
        if cuts.n_rows != bins.n_rows:
            raise ValueError("tables must have as many rows as bins")
        sender.cuts = &cuts.cuts
        return 0
    feature, branch_of_bin = way
    if branch_of_bin is None or not 0 <= feature < bins.n_columns or (
            bins.column[feature].kind > UINT32):
        raise ValueError(f"{feature} is not a column of bins")
    if branch_of_bin.shape[0] <= bins.column[feature].largest:
        raise ValueError("every bin needs a branch")
    sender.column = &bins.column[feature]
    sender.branch_of_bin = &branch_of_bin[0]
    return 0


ctypedef struct Values:
    # Targets of rows: as they are, and centred and scaled.
    const double* y              # n_rows x n_outputs
    const double* standardised   # n_rows x n_outputs
    const double* weights        # NULL if all are 1
    int n_outputs
    bint absolute                # whether differences are not squared
    double unit                  # of the grid that what is summed is rounded to

ctypedef struct RowNumbers:
    const int32_t* row
    Py_ssize_t n


def spreads_of(
    NodeRows rows not None,                         # IN
    const int32_t[::1] nodes not None,              # IN
    goal,                                           # IN: RegressionGoal, with the rows' values
    const double[:, ::1] centres not None,          # IN: (n_nodes, n_outputs) standardised
    int n_threads=1,
):
    """How far the values of nodes' rows lie from the nodes' centres, squared or not.

    Returns the least and the greatest value, (n_nodes, n_outputs) each, and the sums of weighted
    absolute or squared differences, (n_nodes,), which are exact.
    """
    cdef:
        const double[:, ::1] y = goal.y, standardised = goal.standardised
        const double[::1] weights = goal.weights
        double unit = goal.spread_unit
        Py_ssize_t i, task, part, n_nodes = nodes.shape[0]
        Py_ssize_t n_parts = min(max(1, n_threads), MAX_PARTS)
        int n_outputs
        Values values
        double[:, :, ::1] least
        double[:, :, ::1] greatest
        double[:, ::1] total
    if y is None or standardised is None:
        raise TypeError("every row needs a value")
    n_outputs = y.shape[1]
    rows.check_nodes(nodes)
    if y.shape[0] < rows.n_rows or standardised.shape[0] != y.shape[0] or (
            standardised.shape[1] != n_outputs) or (
            weights is not None and weights.shape[0] != y.shape[0]):
        raise ValueError("every row needs a value and a weight")
    if centres.shape[0] != n_nodes or centres.shape[1] != n_outputs or not unit > 0.0:
        raise ValueError("every node needs a centre, and the unit must be positive")
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    lowest = np.full((n_parts, n_nodes + APART, n_outputs), np.inf)
    highest = np.full((n_parts, n_nodes + APART, n_outputs), -np.inf)
    sums = np.zeros((n_parts, n_nodes + APART))
    if n_nodes and y.size:
        least, greatest, total = lowest, highest, sums
        values = Values(&y[0, 0], &standardised[0, 0], NULL, n_outputs, goal.is_absolute, unit)
        if weights is not None:
            values.weights = &weights[0]
        for task in prange(n_nodes * n_parts, nogil=True, num_threads=n_threads,
                           schedule="static", chunksize=1):
            i = task // n_parts
            part = task % n_parts
            total[part, i] = add_spreads(
                &values, part_of_node(rows, nodes[i], part, n_parts), &centres[i, 0],
                &least[part, i, 0], &greatest[part, i, 0])
    return (
        lowest.min(axis=0)[:n_nodes], highest.max(axis=0)[:n_nodes], sums.sum(axis=0)[:n_nodes])


cdef inline RowNumbers part_of_node(
    NodeRows rows, int node, Py_ssize_t part, Py_ssize_t n_parts
) noexcept nogil:
    """The rows of one of several parts of a node, of about one size."""
    cdef int64_t start = rows._start[node], n = rows._stop[node] - start
    return RowNumbers(
        &rows._order[start + n * part // n_parts], n * (part + 1) // n_parts - n * part // n_parts)


cdef double add_spreads(
    const Values* values, RowNumbers rows, const double* centre, double* least, double* greatest
) noexcept nogil:
    """Least and greatest values of some rows; returns how far all lie from the centre."""
    cdef:
        Py_ssize_t i, row
        int o, n_outputs = values.n_outputs
        double difference, loss, total = 0.0
    for i in range(rows.n):
        row = rows.row[i]
        loss = 0.0
        for o in range(n_outputs):
            least[o] = min(least[o], values.y[row * n_outputs + o])
            greatest[o] = max(greatest[o], values.y[row * n_outputs + o])
            difference = values.standardised[row * n_outputs + o] - centre[o]
            loss += fabs(difference) if values.absolute else difference * difference
        # Rounded before it is multiplied, so that a weight of n is n rows.
        loss = rint(loss / values.unit)
        if values.weights != NULL:
            loss = rint(loss * values.weights[row])
        total += loss * values.unit
    return total
