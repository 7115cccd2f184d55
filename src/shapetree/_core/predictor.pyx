"""Predictor: send rows through a fitted tree.

The tree is first laid out for the walk: nodes of a cache line each, whose few cuts are compared
without a branch. A shape function of more pieces becomes a small tree of such nodes. Then several
rows walk side by side, so that they wait for memory together.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from shapetree._core.columns cimport FLOAT32, FLOAT64, INT32, Column, Columns

cdef enum:
    N_CUTS = 4              # of a step; most shape functions have no more
    MISSING = N_CUTS + 1    # the child for missing values
    N_LANES = 8             # rows that walk side by side

cdef double ZERO = 0.0

ctypedef struct Step:
    double cut[N_CUTS]             # ascending, padded with infinity
    int32_t child[N_CUTS + 2]      # by the number of cuts below the value; a leaf's is itself
    int32_t column
    int32_t n_categories           # of a categorical node, whose children are elsewhere; else -1

ctypedef struct Walk:
    Step* steps                    # one a node, with the nodes' numbers, then extra ones
    Py_ssize_t n_steps
    Column* columns                # and one more for leaves, all of whose values are 0
    const int64_t* piece_start
    const double* piece_upper
    const int32_t* piece_branch
    const int32_t* first_child


cdef void lay_out(Walk* walk, int node, Py_ssize_t at, int first, int n_cuts) noexcept nogil:
    """Make a step, and further ones where it needs them, of a node's cuts from `first` on."""
    cdef:
        Step* step = &walk.steps[at]
        const double* upper = walk.piece_upper + walk.piece_start[node]
        const int32_t* branch = walk.piece_branch + walk.piece_start[node]
        int n_here = n_cuts if n_cuts < N_CUTS else N_CUTS, n_below, i
    step.column = walk.steps[node].column
    step.n_categories = -1
    for i in range(N_CUTS):
        step.cut[i] = INFINITY
    for i in range(n_here + 1):
        # The cuts that are not here are shared out among the children.
        n_below = (n_cuts - n_here + i) // (n_here + 1)
        if n_below == 0:
            step.child[i] = walk.first_child[node] + branch[first]
        else:
            step.child[i] = walk.n_steps
            walk.n_steps += 1
            lay_out(walk, node, step.child[i], first, n_below)
        first += n_below
        if i < n_here:
            step.cut[i] = upper[first]
            first += 1


cdef inline int next_step(const Walk* walk, int at, Py_ssize_t row) noexcept nogil:
    cdef:
        const Step* step = &walk.steps[at]
        const Column* column = &walk.columns[step.column]
        const char* data = column.data + row * column.stride
        double value
        int code
    if step.n_categories >= 0:
        code = (<const int32_t*> data)[0]
        if not 0 <= code < step.n_categories:
            return step.child[MISSING]
        return walk.first_child[at] + walk.piece_branch[walk.piece_start[at] + code]
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


cdef void lay_out_nodes(
    Walk* walk, const int32_t* feature, const int32_t* missing_branch, int n_nodes, int n_columns
) noexcept nogil:
    """Make a step of every node, and further ones behind them."""
    cdef:
        Step* step
        int node, i, n_pieces
    walk.n_steps = n_nodes
    for node in range(n_nodes):
        step = &walk.steps[node]
        if feature[node] < 0:
            step.column = n_columns
            step.n_categories = -1
            for i in range(N_CUTS):
                step.cut[i] = INFINITY
            for i in range(N_CUTS + 2):
                step.child[i] = node
            continue
        step.column = feature[node]
        n_pieces = <int> (walk.piece_start[node + 1] - walk.piece_start[node])
        if walk.columns[feature[node]].kind == INT32:
            step.n_categories = n_pieces
        else:
            lay_out(walk, node, node, 0, n_pieces - 1)
        step.child[MISSING] = walk.first_child[node] + missing_branch[node]


cdef bint is_tree(
    const Walk* walk, const int32_t* feature, const int32_t* missing_branch, int n_nodes,
    Py_ssize_t n_pieces,
) noexcept nogil:
    """Whether pieces and children exist, and children come after their parents."""
    cdef:
        int node
        int64_t piece, child
    for node in range(n_nodes):
        if feature[node] < 0:
            continue
        if not 0 <= walk.piece_start[node] < walk.piece_start[node + 1] <= n_pieces:
            return False
        for piece in range(walk.piece_start[node] - 1, walk.piece_start[node + 1]):
            child = <int64_t> walk.first_child[node] + (
                missing_branch[node] if piece < walk.piece_start[node]
                else walk.piece_branch[piece])
            if not node < child < n_nodes:
                return False
    return True


def find_leaves(
    Columns columns not None,                       # IN: the table, or the columns that are used
    const int32_t[::1] feature not None,            # IN: (n_nodes,) -1 for leaves
    const int32_t[::1] first_child not None,        # IN: (n_nodes,)
    const int32_t[::1] missing_branch not None,     # IN: (n_nodes,)
    const int64_t[::1] piece_start not None,        # IN: (n_nodes + 1,)
    const double[::1] piece_upper not None,         # IN: (n_pieces,)
    const int32_t[::1] piece_branch not None,       # IN: (n_pieces,)
    int n_threads,
):
    """Leaf of each row.

    Children come after their parents, branches lead to children, and categorical nodes have a piece
    for every category, as in `TreeArrays`.
    """
    cdef:
        Py_ssize_t block, n_rows = columns.n_rows, n_left
        int node, n_nodes = feature.shape[0]
        int32_t[::1] leaf
        Walk walk
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    if n_nodes == 0 or first_child.shape[0] != n_nodes or missing_branch.shape[0] != n_nodes or (
            piece_start.shape[0] != n_nodes + 1) or piece_upper.shape[0] != piece_branch.shape[0]:
        raise ValueError("the tree's arrays differ in their numbers of nodes or pieces")
    for node in range(n_nodes):
        if feature[node] >= columns.n_columns or feature[node] >= 0 and (
                columns.column[feature[node]].kind not in (INT32, FLOAT32, FLOAT64)):
            raise ValueError(f"the tree needs column {feature[node]}, which was not given")
    leaves = np.zeros(n_rows, dtype=np.int32)
    if piece_upper.shape[0] == 0 and (n_nodes > 1 or feature[0] >= 0):
        raise ValueError("the tree's arrays are not those of a tree")
    if piece_upper.shape[0] == 0 or n_rows == 0:
        return leaves
    leaf = leaves
    walk.steps = <Step*> malloc((n_nodes + piece_upper.shape[0]) * sizeof(Step))
    walk.columns = <Column*> malloc((columns.n_columns + 1) * sizeof(Column))
    if walk.steps == NULL or walk.columns == NULL:
        free(walk.steps)
        free(walk.columns)
        raise MemoryError("no memory to predict")
    walk.piece_start = &piece_start[0]
    walk.piece_upper = &piece_upper[0]
    walk.piece_branch = &piece_branch[0]
    walk.first_child = &first_child[0]
    if not is_tree(&walk, &feature[0], &missing_branch[0], n_nodes, piece_upper.shape[0]):
        free(walk.steps)
        free(walk.columns)
        raise ValueError("the tree's arrays are not those of a tree")
    memcpy(walk.columns, columns.column, columns.n_columns * sizeof(Column))
    walk.columns[columns.n_columns].data = <const char*> &ZERO
    walk.columns[columns.n_columns].stride = 0
    walk.columns[columns.n_columns].kind = FLOAT64
    with nogil:
        lay_out_nodes(&walk, &feature[0], &missing_branch[0], n_nodes, columns.n_columns)
        for block in prange((n_rows + N_LANES - 1) // N_LANES, num_threads=n_threads,
                            schedule="static"):
            n_left = n_rows - block * N_LANES
            walk_rows(&walk, block * N_LANES, <int> (n_left if n_left < N_LANES else N_LANES),
                      &leaf[0])
    free(walk.steps)
    free(walk.columns)
    return leaves
