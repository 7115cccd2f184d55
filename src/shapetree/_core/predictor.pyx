"""Predictor: send rows through a fitted tree, and count those that pass its nodes.

The tree is first laid out for the walk: steps of a cache line each, whose few cuts are compared
without a branch. A shape function of more pieces, or of a pair, becomes a small tree of such steps.
Then several rows walk side by side, so that they wait for memory together.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from shapetree._core.columns cimport (
    FLOAT32, FLOAT64, INT32, NOT_GIVEN, UINT32, Column, Columns, code_at, projection, side_at,
)

cdef enum:
    N_CUTS = 4              # of a step; most shape functions have no more
    MISSING = N_CUTS + 1    # the child for missing values
    N_LANES = 8             # rows that walk side by side
    BLOCKS_AT_ONCE = 1024   # of so many rows, for one thread
    PAIR_CUT = -2

cdef double ZERO = 0.0

ctypedef struct Step:
    double cut[N_CUTS]             # ascending, padded with infinity
    int32_t child[N_CUTS + 2]      # by the number of cuts below the value; a leaf's is itself
    int32_t column                 # one more than the feature; 0 for leaves
    # Of a categorical node, whose children are elsewhere; else -1, or PAIR_CUT: then a PairCut
    # stands in the place of `cut` and `child`.
    int32_t n_categories

ctypedef struct PairCut:
    # One cut of a pair's plane, in the place of a step's cuts and children.
    double a
    double b
    double threshold
    int32_t node                   # whose positions count, for categorical features
    int32_t second_column
    int32_t low
    int32_t high
    int32_t missing

ctypedef struct Tree:
    # The arrays of a `TreeArrays`.
    int n_nodes
    Py_ssize_t n_pieces
    Py_ssize_t n_cuts
    Py_ssize_t n_positions
    const int32_t* feature
    const int32_t* second_feature
    const int32_t* first_child
    const int32_t* missing_branch
    const int64_t* piece_start
    const double* piece_upper
    const int32_t* piece_branch
    const int64_t* cut_start
    const double* cut_a
    const double* cut_b
    const double* cut_threshold
    const int32_t* cut_low
    const int32_t* cut_high
    const int64_t* position_start
    const double* position

ctypedef struct Walk:
    const Tree* tree
    Step* steps                    # one a node, with the nodes' numbers, then extra ones
    Py_ssize_t n_steps
    Column* columns                # the first is for leaves: all its values are 0


cdef inline int next_step_of_pair(
    const Walk* walk, const Step* step, Py_ssize_t row
) noexcept nogil:
    cdef:
        const PairCut* cut = <const PairCut*> step
        const int64_t* start = walk.tree.position_start + 2 * cut.node
        const double* position = walk.tree.position
        double u = side_at(&walk.columns[step.column], row, position + start[0],
                           <int> (start[1] - start[0]))
        double v = side_at(&walk.columns[cut.second_column], row, position + start[1],
                           <int> (start[2] - start[1]))
    if u != u or v != v:
        return cut.missing
    return cut.high if projection(cut.a, u, cut.b, v) > cut.threshold else cut.low


cdef inline int next_step(const Walk* walk, int at, Py_ssize_t row) noexcept nogil:
    cdef:
        const Step* step = &walk.steps[at]
        const Column* column = &walk.columns[step.column]
        const char* data = column.data + row * column.stride
        double value
        int code
    if step.n_categories == PAIR_CUT:
        return next_step_of_pair(walk, step, row)
    if step.n_categories >= 0:
        code = (<const int32_t*> data)[0]
        if not 0 <= code < step.n_categories:
            return step.child[MISSING]
        return walk.tree.first_child[at] + walk.tree.piece_branch[walk.tree.piece_start[at] + code]
    value = (<const double*> data)[0] if column.kind == FLOAT64 else (<const float*> data)[0]
    # A missing value is above no cut.
    return step.child[
        (value > step.cut[0]) + (value > step.cut[1]) + (value > step.cut[2])
        + (value > step.cut[3]) + MISSING * (value != value)]


cdef void walk_rows(const Walk* walk, Py_ssize_t first, int n, int32_t* leaf) noexcept nogil:
    """Send rows first..first+n-1, at most N_LANES, to their leaves."""
    cdef:
        int at[N_LANES]
        int lane, after, moved = 1
    for lane in range(N_LANES):
        at[lane] = 0
    if n == N_LANES:
        # A loop of fixed length, which the compiler unrolls.
        while moved:
            moved = 0
            for lane in range(N_LANES):
                after = next_step(walk, at[lane], first + lane)
                moved |= after ^ at[lane]
                at[lane] = after
    else:
        for lane in range(n):
            after = next_step(walk, 0, first + lane)
            while after != at[lane]:
                at[lane] = after
                after = next_step(walk, after, first + lane)
    for lane in range(n):
        leaf[first + lane] = at[lane]


cdef int step_of_target(const Tree* tree, Walk* walk, int node, int target) noexcept nogil:
    """Where a pair's cut leads: to the child that a region's branch stands for, or a later cut."""
    if target < 0:
        return tree.first_child[node] + tree.piece_branch[tree.piece_start[node] - 1 - target]
    # A pair's first cut has its node's step, the others have the new ones in their order.
    return node if target == 0 else <int> walk.n_steps + target - 1


cdef void lay_out_pair(const Tree* tree, Walk* walk, int node) noexcept nogil:
    """Make a step of each of a pair's cuts."""
    cdef:
        int64_t first = tree.cut_start[node]
        int i, n_cuts = <int> (tree.cut_start[node + 1] - first)
        Step* step
        PairCut* cut
    for i in range(n_cuts):
        step = &walk.steps[step_of_target(tree, walk, node, i)]
        step.column = tree.feature[node] + 1
        step.n_categories = PAIR_CUT
        cut = <PairCut*> step
        cut.a = tree.cut_a[first + i]
        cut.b = tree.cut_b[first + i]
        cut.threshold = tree.cut_threshold[first + i]
        cut.node = node
        cut.second_column = tree.second_feature[node] + 1
        cut.low = step_of_target(tree, walk, node, tree.cut_low[first + i])
        cut.high = step_of_target(tree, walk, node, tree.cut_high[first + i])
        cut.missing = tree.first_child[node] + tree.missing_branch[node]
    walk.n_steps += n_cuts - 1


cdef void lay_out(
    const Tree* tree, Walk* walk, int node, Py_ssize_t at, int first, int n_cuts
) noexcept nogil:
    """Make a step, and further ones where it needs them, of a node's cuts from `first` on."""
    cdef:
        Step* step = &walk.steps[at]
        const double* upper = tree.piece_upper + tree.piece_start[node]
        const int32_t* branch = tree.piece_branch + tree.piece_start[node]
        int n_here = n_cuts if n_cuts < N_CUTS else N_CUTS, n_below, i
    step.column = walk.steps[node].column
    step.n_categories = -1
    for i in range(N_CUTS):
        step.cut[i] = INFINITY
    for i in range(n_here + 1):
        # The cuts that are not here are shared out among the children.
        n_below = (n_cuts - n_here + i) // (n_here + 1)
        if n_below == 0:
            step.child[i] = tree.first_child[node] + branch[first]
        else:
            step.child[i] = walk.n_steps
            walk.n_steps += 1
            lay_out(tree, walk, node, step.child[i], first, n_below)
        first += n_below
        if i < n_here:
            step.cut[i] = upper[first]
            first += 1


cdef inline bint has_categories(const Tree* tree, int node) noexcept nogil:
    """Whether a node's pieces are categories, which have no bounds."""
    cdef double upper = tree.piece_upper[tree.piece_start[node]]
    return upper != upper


cdef void lay_out_nodes(Walk* walk) noexcept nogil:
    """Make a step of every node, and further ones behind them."""
    cdef:
        const Tree* tree = walk.tree
        Step* step
        int node, i, n_pieces
    walk.n_steps = tree.n_nodes
    for node in range(tree.n_nodes):
        step = &walk.steps[node]
        if tree.feature[node] < 0:
            step.column = 0
            step.n_categories = -1
            for i in range(N_CUTS):
                step.cut[i] = INFINITY
            for i in range(N_CUTS + 2):
                step.child[i] = node
            continue
        if tree.second_feature[node] >= 0:
            lay_out_pair(tree, walk, node)
            continue
        step.column = tree.feature[node] + 1
        n_pieces = <int> (tree.piece_start[node + 1] - tree.piece_start[node])
        if has_categories(tree, node):
            step.n_categories = n_pieces
        else:
            lay_out(tree, walk, node, node, 0, n_pieces - 1)
        step.child[MISSING] = tree.first_child[node] + tree.missing_branch[node]


cdef bint is_pair(const Tree* tree, int node) noexcept nogil:
    """Whether a pair's cuts lead on to later cuts and to its regions, and its positions exist."""
    cdef:
        int64_t first = tree.cut_start[node], stop = tree.cut_start[node + 1]
        int64_t n_pieces = tree.piece_start[node + 1] - tree.piece_start[node]
        int64_t i
        int side, target
    if not 0 <= first < stop <= tree.n_cuts or stop - first >= n_pieces:
        return False
    for side in range(2):
        if not 0 <= tree.position_start[2 * node + side] <= (
                tree.position_start[2 * node + side + 1]) <= tree.n_positions:
            return False
        for i in range(stop - first):
            target = tree.cut_low[first + i] if side == 0 else tree.cut_high[first + i]
            if not (i < target < stop - first or -n_pieces <= target < 0):
                return False
    return True


cdef bint is_tree(const Tree* tree) noexcept nogil:
    """Whether pieces, cuts and children exist, and children come after their parents."""
    cdef:
        int node
        int64_t piece, child, n_cuts = 0
    for node in range(tree.n_nodes):
        if tree.feature[node] < 0:
            continue
        if not 0 <= tree.piece_start[node] < tree.piece_start[node + 1] <= tree.n_pieces:
            return False
        for piece in range(tree.piece_start[node] - 1, tree.piece_start[node + 1]):
            child = <int64_t> tree.first_child[node] + (
                tree.missing_branch[node] if piece < tree.piece_start[node]
                else tree.piece_branch[piece])
            if not node < child < tree.n_nodes:
                return False
        if tree.second_feature[node] >= 0:
            if not is_pair(tree, node):
                return False
            n_cuts += tree.cut_start[node + 1] - tree.cut_start[node]
    # As many cuts as there is room for, though those of several nodes might be the same.
    return n_cuts <= tree.n_cuts


cdef Py_ssize_t steps_needed(const Tree* tree) noexcept nogil:
    """Most steps that a tree can take: univariate pieces overlap in no valid tree."""
    cdef:
        int node
        Py_ssize_t n = tree.n_nodes
    for node in range(tree.n_nodes):
        if tree.feature[node] >= 0:
            n += tree.piece_start[node + 1] - tree.piece_start[node]
    return n


cdef class TreeLayout:
    """A tree laid out for the walk; it keeps the arrays of a `TreeArrays` alive."""
    cdef Tree tree
    cdef Walk walk
    cdef list _arrays

    def __cinit__(self, arrays):
        self._arrays = []
        self.tree.n_nodes = len(arrays.feature)
        n_nodes, n_pieces = len(arrays.feature), len(arrays.piece_upper)
        n_cuts, n_positions = len(arrays.cut_a), len(arrays.position)
        self.tree.n_pieces, self.tree.n_cuts = n_pieces, n_cuts
        self.tree.n_positions = n_positions
        if n_nodes == 0:
            raise ValueError("a tree has at least one node")
        self.tree.feature = <const int32_t*> self.keep(arrays.feature, np.int32, n_nodes)
        self.tree.second_feature = <const int32_t*> self.keep(
            arrays.second_feature, np.int32, n_nodes)
        self.tree.first_child = <const int32_t*> self.keep(arrays.first_child, np.int32, n_nodes)
        self.tree.missing_branch = <const int32_t*> self.keep(
            arrays.missing_branch, np.int32, n_nodes)
        self.tree.piece_start = <const int64_t*> self.keep(
            arrays.piece_start, np.int64, n_nodes + 1)
        self.tree.piece_upper = <const double*> self.keep(arrays.piece_upper, np.float64, n_pieces)
        self.tree.piece_branch = <const int32_t*> self.keep(
            arrays.piece_branch, np.int32, n_pieces)
        self.tree.cut_start = <const int64_t*> self.keep(arrays.cut_start, np.int64, n_nodes + 1)
        self.tree.cut_a = <const double*> self.keep(arrays.cut_a, np.float64, n_cuts)
        self.tree.cut_b = <const double*> self.keep(arrays.cut_b, np.float64, n_cuts)
        self.tree.cut_threshold = <const double*> self.keep(
            arrays.cut_threshold, np.float64, n_cuts)
        self.tree.cut_low = <const int32_t*> self.keep(arrays.cut_low, np.int32, n_cuts)
        self.tree.cut_high = <const int32_t*> self.keep(arrays.cut_high, np.int32, n_cuts)
        self.tree.position_start = <const int64_t*> self.keep(
            arrays.position_start, np.int64, 2 * n_nodes + 1)
        self.tree.position = <const double*> self.keep(arrays.position, np.float64, n_positions)
        if not is_tree(&self.tree):
            raise ValueError("the tree's arrays are not those of a tree")
        self.walk.tree = &self.tree
        self.walk.steps = <Step*> malloc(steps_needed(&self.tree) * sizeof(Step))
        if self.walk.steps == NULL:
            raise MemoryError("no memory to predict")
        lay_out_nodes(&self.walk)

    def __dealloc__(self):
        free(self.walk.steps)

    cdef int check_columns(self, Columns columns) except -1:
        """Refuse a table that lacks what the tree reads."""
        cdef:
            int node, feature, kind
        for node in range(self.tree.n_nodes):
            for feature in (self.tree.feature[node], self.tree.second_feature[node]):
                if feature < 0:
                    continue
                kind = columns.column[feature].kind if feature < columns.n_columns else NOT_GIVEN
                if kind != INT32 and kind != FLOAT32 and kind != FLOAT64:
                    raise ValueError(f"the tree needs column {feature}, which was not given")
                if self.tree.second_feature[node] < 0 and (
                        has_categories(&self.tree, node) != (kind == INT32)):
                    raise ValueError(f"column {feature} holds numbers instead of categories, or "
                                     "categories instead of numbers")
        return 0

    cdef size_t keep(self, array, dtype, Py_ssize_t length) except 0:
        array = np.ascontiguousarray(array, dtype=dtype)
        if array.shape != (length,):
            raise ValueError("the tree's arrays differ in their numbers of nodes, pieces or cuts")
        if length == 0:
            array = np.zeros(1, dtype=dtype)
        self._arrays.append(array)
        return <size_t> array.ctypes.data


def find_leaves(
    Columns columns not None,      # IN: the table, or the columns that are used
    TreeLayout layout not None,
    int n_threads,
):
    """Leaf of each row."""
    cdef:
        Py_ssize_t block, n_rows = columns.n_rows, n_left
        int32_t[::1] leaf
        Walk walk = layout.walk
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    layout.check_columns(columns)
    leaves = np.zeros(n_rows, dtype=np.int32)
    if layout.tree.n_pieces == 0 or n_rows == 0:
        return leaves
    leaf = leaves
    walk.columns = <Column*> malloc((columns.n_columns + 1) * sizeof(Column))
    if walk.columns == NULL:
        raise MemoryError("no memory to predict")
    memcpy(walk.columns + 1, columns.column, columns.n_columns * sizeof(Column))
    walk.columns[0].data = <const char*> &ZERO
    walk.columns[0].stride = 0
    walk.columns[0].kind = FLOAT64
    if n_rows <= N_LANES:
        walk_rows(&walk, 0, <int> n_rows, &leaf[0])
    else:
        with nogil:
            for block in prange((n_rows + N_LANES - 1) // N_LANES, num_threads=n_threads,
                                schedule="dynamic", chunksize=BLOCKS_AT_ONCE):
                n_left = n_rows - block * N_LANES
                walk_rows(&walk, block * N_LANES,
                          <int> (n_left if n_left < N_LANES else N_LANES), &leaf[0])
    free(walk.columns)
    return leaves


# --- rows counted in the bins of every node that they pass, for sketches --------------------------

# What the loop asks of its arrays, before it runs without checks.

cdef bint are_below(const int32_t[::1] numbers, Py_ssize_t limit) noexcept nogil:
    """Whether numbers count from 0 up to a limit."""
    cdef:
        Py_ssize_t i
        bint are = True
    for i in range(numbers.shape[0]):
        are &= 0 <= numbers[i] < limit
    return are


cdef int check_nodes(
    Columns columns, const int32_t[::1] parent, const int32_t[::1] feature
) except -1:
    """Refuse nodes that are not a tree's."""
    cdef int n_nodes = <int> parent.shape[0], node
    if feature.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    for node in range(n_nodes):
        if not -1 <= parent[node] < node:
            raise ValueError("parents come before their children")
        if feature[node] >= columns.n_columns:
            raise ValueError(f"there is no column {feature[node]}")
    return 0


cdef int check_rows(
    Py_ssize_t n_rows, const int32_t[::1] leaves, Py_ssize_t n_nodes, const int32_t[::1] labels,
    Py_ssize_t n_classes, const double[::1] targets, const int32_t[::1] row_counts
) except -1:
    """Refuse rows in no leaf or class, and arrays, where they are given, of other rows."""
    if leaves.shape[0] != n_rows or not are_below(leaves, n_nodes):
        raise ValueError("leaves are nodes, one for each row")
    if labels is not None and (
            labels.shape[0] != n_rows or not are_below(labels, n_classes)):
        raise ValueError("labels are classes, one for each row")
    if targets is not None and targets.shape[0] != n_rows:
        raise ValueError("there is a target for each row")
    if row_counts is not None and row_counts.shape[0] != n_rows:
        raise ValueError("there is a count for each row")
    return 0


cdef int check_starts(const int64_t[::1] start, Py_ssize_t n_parts, int64_t end) except -1:
    """Refuse starts of parts of an array that leave it."""
    cdef Py_ssize_t part
    if start.shape[0] != n_parts + 1 or start[0] != 0 or start[n_parts] != end:
        raise ValueError("parts start where those before end")
    for part in range(n_parts):
        if start[part + 1] < start[part]:
            raise ValueError("parts start where those before end")
    return 0


cdef int check_cells(
    Columns bins, const int32_t[::1] feature, const int64_t[::1] bin_start,
    const int32_t[::1] cell_of_bin, const int64_t[::1] cell_start
) except -1:
    """Refuse cells that a loop without checks would leave."""
    cdef:
        int node, f
        int64_t i, n_cells
    for node in range(<int> feature.shape[0]):
        f = feature[node]
        if f < 0:
            continue
        if bins.column[f].kind > UINT32:
            raise ValueError(f"column {f} does not hold bins")
        if bin_start[f + 1] - bin_start[f] <= bins.column[f].largest:
            raise ValueError(f"column {f} has more bins than it was said to have")
        n_cells = cell_start[node + 1] - cell_start[node]
        for i in range(bin_start[f], bin_start[f + 1]):
            if not 0 <= cell_of_bin[i] < n_cells:
                raise ValueError("bins lie in the cells of their nodes")
    return 0


cdef enum:
    ROWS_AT_ONCE = 16384      # that one thread counts in one go


ctypedef struct Passed:
    # What a row that passes a node needs of it.
    const Column* column       # NULL if the node has no cells
    const int32_t* cell_of_bin
    int64_t first_cell
    int parent


ctypedef struct CountedRows:
    # Rows and what each adds to the cells of the nodes that it passes.
    const int32_t* leaves
    const int32_t* labels      # NULL for one class alone
    const double* targets      # NULL if there is nothing to sum
    const int32_t* times       # NULL for 1
    Py_ssize_t n_classes


def count_cells(
    Columns bins not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    cells,
    targets,
    n_classes,
    int n_threads=1,
    const int32_t[::1] row_counts=None,
):
    """Count rows in the cells of every node that they pass.

    Row by row and from the leaf up. A node's cells are those of its feature, in which neighbouring
    bins may be joined:

        row 7:  leaf 5 -> node 2 -> node 0           feature[2] = 4, bins[4][7] = 11
        counts of node 2:  .. | .. | +1 | .. | missing
                                     ^ cell_start[2] + cell_of_bin[bin_start[4] + 11]

    Parameters
    ----------
    bins : Columns
        Columns that no node has may be None.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent : int32 array of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    cells : shapetree.tree._sketch.Cells
        Nodes whose feature is -1 have no cells; those of the others start at `start`. `of_bin` has
        the cell of each bin of a feature, from `bin_start` on, the missing bin last.
    targets : int32 or float64 array of shape (n_rows,)
        Classes of the rows; or numbers to sum, on a grid on which sums are exact.
    n_classes : int or None
        None for numbers.
    n_threads : int
    row_counts : int32 array of shape (n_rows,) or None
        How many rows each counts as; None for 1.

    Returns
    -------
    counts : int32 array of shape (n_cells, n_classes), or of one column
    totals : float64 array of shape (n_cells,)
        Sums of the targets; 0 without them.
    """
    cdef:
        const int32_t[::1] feature = cells.feature, cell_of_bin = cells.of_bin
        const int64_t[::1] bin_start = cells.bin_start, cell_start = cells.start
        const int32_t[::1] labels = None if n_classes is None else targets
        const double[::1] numbers = targets if n_classes is None else None
        CountedRows rows = CountedRows(NULL, NULL, NULL, NULL, n_classes or 1)
        Py_ssize_t n_rows = bins.n_rows, n_cells, block
        Py_ssize_t n_blocks = (n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
        int n_nodes = <int> parent.shape[0], node, part
        int32_t[:, :, ::1] counts
        double[:, ::1] totals
        Passed* nodes
    if feature is None or cell_of_bin is None or bin_start is None or cell_start is None:
        raise TypeError("nodes need their cells")
    if rows.n_classes < 1 or n_threads < 1:
        raise ValueError("there is at least one class, and one thread")
    check_nodes(bins, parent, feature)
    check_rows(n_rows, leaves, n_nodes, labels, rows.n_classes, numbers, row_counts)
    check_starts(bin_start, bins.n_columns, cell_of_bin.shape[0])
    check_starts(cell_start, n_nodes, cell_start[n_nodes] if cell_start.shape[0] > n_nodes else 0)
    check_cells(bins, feature, bin_start, cell_of_bin, cell_start)
    n_cells = cell_start[n_nodes]
    # Every thread counts for itself.
    counted = np.zeros((n_threads, n_cells, rows.n_classes), dtype=np.int32)
    summed = np.zeros((n_threads, n_cells))
    counts, totals = counted, summed
    nodes = <Passed*> malloc((n_nodes + 1) * sizeof(Passed))
    if nodes == NULL:
        raise MemoryError("no memory to count rows")
    for node in range(n_nodes):
        nodes[node].parent = parent[node]
        nodes[node].column = NULL
        nodes[node].first_cell = cell_start[node]
        if feature[node] >= 0:
            nodes[node].column = &bins.column[feature[node]]
            nodes[node].cell_of_bin = &cell_of_bin[bin_start[feature[node]]]
    if n_rows > 0:
        rows.leaves = &leaves[0]
        if labels is not None:
            rows.labels = &labels[0]
        if numbers is not None:
            rows.targets = &numbers[0]
        if row_counts is not None:
            rows.times = &row_counts[0]
    if n_cells > 0:
        for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            part = threadid()
            count_block(
                nodes, &rows, block * ROWS_AT_ONCE, min((block + 1) * ROWS_AT_ONCE, n_rows),
                &counts[part, 0, 0], &totals[part, 0])
    free(nodes)
    if n_threads == 1:
        return counted[0], summed[0]
    return counted.sum(axis=0, dtype=np.int32), summed.sum(axis=0)


cdef void count_block(
    const Passed* nodes, const CountedRows* rows, Py_ssize_t first, Py_ssize_t last,
    int32_t* counts, double* totals,
) noexcept nogil:
    """Count some rows in the cells of every node that they pass."""
    cdef:
        const int32_t* labels = rows.labels
        const double* targets = rows.targets
        Py_ssize_t row, cell, n_classes = rows.n_classes
        int node
        int32_t times = 1, label = 0
        double target = 0.0
    for row in range(first, last):
        if rows.times != NULL:
            times = rows.times[row]
        if labels != NULL:
            label = labels[row]
        if targets != NULL:
            target = times * targets[row]
        node = rows.leaves[row]
        while node >= 0:
            if nodes[node].column != NULL:
                cell = nodes[node].first_cell + nodes[node].cell_of_bin[
                    code_at(nodes[node].column, row)]
                counts[cell * n_classes + label] += times
                totals[cell] += target
            node = nodes[node].parent
