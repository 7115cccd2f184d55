# Which rows are at which node.

from libc.stdint cimport int32_t, int64_t, uint8_t


ctypedef struct SentBlock:
    # Rows that one thread sends.
    Py_ssize_t number             # of their node, among those that are split
    int64_t first
    int64_t n
    bint exists                   # whether every branch that they go to does
    int64_t* place                # rows of each branch; then where they go


cdef class NodeRows:
    # These are read-only for others: native code relies on what they hold.
    cdef readonly object order      # row numbers, every node's together
    cdef readonly object start      # where each node's rows start in it
    cdef readonly object stop       # and where they end
    cdef readonly Py_ssize_t n_rows  # that a table must have: one more than the last row
    cdef readonly bint has_repeats   # whether some rows stand there several times
    cdef int32_t[::1] _order
    cdef int64_t[::1] _start
    cdef int64_t[::1] _stop
    # While rows are sent; else None.
    cdef int32_t[::1] _scratch
    cdef uint8_t[::1] _branch       # of the row at each place

    cdef int set_ranges(self, start, stop) except -1
    cdef int take_scratch(self) except -1
    cdef int leave_scratch(self) except -1
    cdef int make_room(self, Py_ssize_t n_nodes) except -1
    cdef int check_nodes(self, const int32_t[::1] nodes) except -1
    cdef void share_out(
        self, const int32_t[::1] nodes, const int32_t[::1] first_child,
        const int32_t[::1] n_branches, const SentBlock* blocks, Py_ssize_t n_blocks,
    ) noexcept
