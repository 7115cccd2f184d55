# What loops over the rows of all nodes ask of their arrays, before they run without checks.

from libc.stdint cimport int32_t, int64_t

from shapetree._core.columns cimport Columns


cdef inline bint are_below(const int32_t[::1] numbers, Py_ssize_t limit) noexcept nogil:
    """Whether numbers count from 0 up to a limit."""
    cdef:
        Py_ssize_t i
        bint are = True
    for i in range(numbers.shape[0]):
        are &= 0 <= numbers[i] < limit
    return are


cdef inline int check_leaves(const int32_t[::1] leaves, Py_ssize_t n_nodes) except -1:
    """Refuse rows in no leaf."""
    if not are_below(leaves, n_nodes):
        raise ValueError("leaves are nodes")
    return 0


cdef inline int check_counts(const int32_t[::1] counts, Py_ssize_t n_rows) except -1:
    """Refuse numbers of times that rows count, unless there is one for each; none stands for 1."""
    if counts is not None and counts.shape[0] != n_rows:
        raise ValueError("there is a count for each row")
    return 0


cdef inline int check_parents(const int32_t[::1] parent) except -1:
    """Refuse nodes that are no tree's."""
    cdef Py_ssize_t node
    for node in range(parent.shape[0]):
        if not -1 <= parent[node] < node:
            raise ValueError("parents come before their children")
    return 0


cdef inline int check_nodes(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[::1] feature
) except -1:
    """Refuse nodes that are not a tree's, and rows in no leaf."""
    cdef int n_nodes = <int> parent.shape[0], node
    if feature.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    if leaves.shape[0] != columns.n_rows:
        raise ValueError("there is a leaf for each row")
    check_leaves(leaves, n_nodes)
    check_parents(parent)
    for node in range(n_nodes):
        if feature[node] >= columns.n_columns:
            raise ValueError(f"there is no column {feature[node]}")
    return 0


cdef inline int check_starts(const int64_t[::1] start, Py_ssize_t n_nodes, int64_t end) except -1:
    """Refuse starts of nodes' parts of an array that leave it."""
    cdef Py_ssize_t node
    if n_nodes < 0 or start.shape[0] != n_nodes + 1:
        raise ValueError("arrays of nodes have one entry for each node")
    if start[0] != 0 or start[n_nodes] != end:
        raise ValueError("parts start where those before end")
    for node in range(n_nodes):
        if start[node + 1] < start[node]:
            raise ValueError("parts start where those before end")
    return 0
