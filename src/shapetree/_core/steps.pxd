# Steps of rows from node to node, down a tree over bins.

from libc.stdint cimport int32_t, uint8_t, uint16_t, uint32_t

from shapetree._core.columns cimport UINT8, UINT16, projection, side_at
from shapetree._core.pieces cimport Cuts, branch_by_cuts

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
