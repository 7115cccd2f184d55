"""Sketch: where the rows of all nodes lie, counted in the cells of their nodes' axes."""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, ceil, fabs, ldexp, log, nextafter, pow, rint, sqrt
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t
from libc.stdlib cimport free, malloc, qsort

from shapetree._core.columns cimport (
    FLOAT32, FLOAT64, INT32, NOT_GIVEN, Column, Columns, number_at,
)
from shapetree._core.lookup cimport Lookup, bin_of, lay_out_cells
from shapetree._core.sampling cimport hash_of

cdef enum:
    N_CELLS = 36              # of an axis that is drawn
    MAX_DISTINCT = 24         # values up to which each has a cell of its own
    MAX_TAIL = 32
    N_MORE = 64               # bounds that an axis may have beside its thresholds and as many more
    ROWS_OF_BLOCK = 4096      # whose numbers stay in the cache
    ROWS_AT_ONCE = 16384      # that one thread counts in one go
    LOOKUP_CELLS = 64         # of the table that a search starts with
    MOST_CELLS = 2147483647   # of a part of an axis

# Share of the rows at either end that do not stretch an axis, where there are enough of them.
cdef double TAIL = 0.01
# Where so much of a range holds half of the rows, cells of equal ratio tell more than equal widths.
cdef double CROWDED = 0.1


# --- axes ---


ctypedef struct Axis:
    # What an axis is made of; room for twice the thresholds and N_MORE numbers.
    double* bounds
    int64_t* cells
    double* scratch            # for as many numbers
    Py_ssize_t n_bounds


cdef int compare(const void* a, const void* b) noexcept nogil:
    cdef double x = (<const double*> a)[0], y = (<const double*> b)[0]
    return (x > y) - (x < y)


cdef Py_ssize_t distinct_values(
    const double* values, Py_ssize_t n, double* distinct
) noexcept nogil:
    """Distinct values, ascending, if they are few; one more than MAX_DISTINCT if not."""
    cdef Py_ssize_t i, j, n_distinct = 0
    for i in range(n):
        j = n_distinct
        while j > 0 and distinct[j - 1] > values[i]:
            j -= 1
        if j > 0 and distinct[j - 1] == values[i]:
            continue
        if n_distinct == MAX_DISTINCT:
            return MAX_DISTINCT + 1
        insert(distinct, n_distinct, j, values[i])
        n_distinct += 1
    return n_distinct


cdef inline void insert(double* sorted_, Py_ssize_t n, Py_ssize_t at, double value) noexcept nogil:
    """Insert a value before another; there are n so far."""
    cdef Py_ssize_t k
    for k in range(n, at, -1):
        sorted_[k] = sorted_[k - 1]
    sorted_[at] = value


cdef double near_least(const double* values, Py_ssize_t n, int sign) noexcept nogil:
    """The least value but for the tail, or with a sign of -1 the greatest."""
    cdef:
        double least[MAX_TAIL]
        Py_ssize_t i, j, n_least = 0
        Py_ssize_t size = min(<Py_ssize_t> (TAIL * n), <Py_ssize_t> (MAX_TAIL - 1)) + 1
        double value
    for i in range(n):
        value = sign * values[i]
        if n_least == size:
            if not value < least[size - 1]:
                continue
            n_least -= 1
        j = n_least
        while j > 0 and least[j - 1] > value:
            j -= 1
        insert(least, n_least, j, value)
        n_least += 1
    return sign * least[size - 1]


cdef double lower(double number, double margin) noexcept nogil:
    """A lesser number, if only by a rounding error."""
    return max(min(number - margin, nextafter(number, -DBL_MAX)), -DBL_MAX)


cdef inline double last_bound(const Axis* axis) noexcept nogil:
    return axis.bounds[axis.n_bounds - 1]


cdef inline void add_bound(Axis* axis, double high, int64_t n_cells) noexcept nogil:
    """Add a part of some cells, up to a bound."""
    axis.cells[axis.n_bounds - 1] = n_cells
    axis.bounds[axis.n_bounds] = high
    axis.n_bounds += 1


cdef double length(double low, double high, bint is_log) noexcept nogil:
    """Length of a part of an axis."""
    # Quarters, so that no difference overflows.
    return log(high) - log(low) if is_log else high / 4 - low / 4


cdef void add_part(Axis* axis, double high, double total, bint is_log) noexcept nogil:
    """Add the part up to a bound, with as many cells as its share of an axis asks for."""
    cdef:
        double low = last_bound(axis), edge
        double share = length(low, high, is_log) / total
        int64_t i, n_cells = max(<int64_t> 1, <int64_t> rint(share * N_CELLS))
    if is_log:
        for i in range(1, n_cells):
            edge = low * pow(high / low, <double> i / n_cells)
            if last_bound(axis) < edge < high:
                add_bound(axis, edge, 1)
        n_cells = 1
    add_bound(axis, high, n_cells)


cdef bint is_crowded(
    const double* values, Py_ssize_t n_values, double low, double high
) noexcept nogil:
    """Whether half of the values lie close to the low end of a positive range."""
    cdef:
        Py_ssize_t i, n_close = 0
        double close = low + CROWDED * (high - low)
    if not low > 0.0:
        return False
    for i in range(n_values):
        n_close += values[i] <= close
    return 2 * n_close >= n_values


cdef void axis_of_range(
    Axis* axis, const double* values, Py_ssize_t n_values, const double* thresholds, Py_ssize_t n
) noexcept nogil:
    """Cells of equal width or ratio in a range, and one on either side for what lies beyond."""
    cdef:
        Py_ssize_t i
        double low = near_least(values, n_values, 1), high = near_least(values, n_values, -1)
        double first, total
        bint is_log
    if n > 0:
        low = min(low, thresholds[0])
        high = max(high, thresholds[n - 1])
    is_log = is_crowded(values, n_values, low, high)
    axis.bounds[0] = -DBL_MAX
    axis.n_bounds = 1
    # A cell does not hold its lower edge; but none is parted by that from its threshold.
    first = nextafter(low, -DBL_MAX) if n == 0 or low < thresholds[0] else low
    if first > -DBL_MAX:
        add_bound(axis, first, 1)
    is_log = is_log and last_bound(axis) > 0.0
    total = length(last_bound(axis), high, is_log)
    for i in range(n):
        if last_bound(axis) < thresholds[i]:
            add_part(axis, thresholds[i], total, is_log)
    if last_bound(axis) < high:
        add_part(axis, high, total, is_log)
    if last_bound(axis) < DBL_MAX:
        add_bound(axis, DBL_MAX, 1)


cdef void axis_of_values(
    Axis* axis, const double* values, Py_ssize_t n_values, const double* thresholds,
    Py_ssize_t n
) noexcept nogil:
    """A cell for each of a few values, with the thresholds among the edges."""
    cdef:
        Py_ssize_t i, t = 0, n_inner = 0, n_known = 0, first
        double* inner = axis.bounds + 1
        double* known = axis.scratch
        double low, high, middle, margin
    # Edges: thresholds, and midpoints between values that no threshold parts.
    for i in range(n_values + 1):
        first = t
        while t < n and (i == n_values or thresholds[t] < values[i]):
            if n_inner == 0 or thresholds[t] > inner[n_inner - 1]:
                inner[n_inner] = thresholds[t]
                n_inner += 1
            t += 1
        if 0 < i < n_values and t == first:
            middle = values[i - 1] + (values[i] / 2 - values[i - 1] / 2)
            if n_inner == 0 or middle > inner[n_inner - 1]:
                inner[n_inner] = middle
                n_inner += 1
    # All numbers that are known.
    t = 0
    i = 0
    while i < n_values or t < n_inner:
        if t == n_inner or (i < n_values and values[i] <= inner[t]):
            low = values[i]
            i += 1
        else:
            low = inner[t]
            t += 1
        if n_known == 0 or low > known[n_known - 1]:
            known[n_known] = low
            n_known += 1
    if n_known == 0:
        known[0] = 0.0
        n_known = 1
    low = known[0]
    high = known[n_known - 1]
    margin = max(fabs(low), 1.0) / 2
    if n_known > 1:
        for i in range(n_known - 1):
            known[i] = known[i + 1] - known[i]
        qsort(known, n_known - 1, sizeof(double), compare)
        margin = known[(n_known - 1) // 2]
    axis.bounds[0] = lower(low, margin)
    axis.bounds[n_inner + 1] = -lower(-high, margin)
    axis.n_bounds = n_inner + 2
    for i in range(n_inner + 1):
        axis.cells[i] = 1


cdef void scale_axis(
    Axis* axis, const double* values, Py_ssize_t n_values, const double* thresholds,
    Py_ssize_t n
) noexcept nogil:
    """Part an axis into cells."""
    cdef:
        double distinct[MAX_DISTINCT]
        Py_ssize_t n_distinct = distinct_values(values, n_values, distinct)
    if n_distinct <= MAX_DISTINCT:
        axis_of_values(axis, distinct, n_distinct, thresholds, n)
    else:
        axis_of_range(axis, values, n_values, thresholds, n)


cdef Py_ssize_t choose_rows(
    const int32_t[::1] leaves, const int32_t[::1] parent, const uint64_t[::1] limit,
    int64_t first_row, Py_ssize_t first, Py_ssize_t last, int32_t* chosen
) noexcept nogil:
    """Choose those of some rows that are looked at for a node; returns how many there are."""
    cdef:
        Py_ssize_t row, n = 0
        int up
    for row in range(first, last):
        up = parent[leaves[row]]
        if up >= 0:
            chosen[n] = <int32_t> row
            n += hash_of(<uint64_t> (first_row + row)) <= limit[up]
    return n


cdef void put_values(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[::1] feature, const uint64_t[::1] limit, int64_t first_row,
    const int32_t* chosen, Py_ssize_t first, Py_ssize_t last, int64_t* place, double* values,
) noexcept nogil:
    """Put the values of some chosen rows to the next places of their nodes; NULL: count them."""
    cdef:
        Py_ssize_t i, row
        int up
        uint64_t its_hash
        double value
    for i in range(first, last):
        row = chosen[i]
        its_hash = hash_of(<uint64_t> (first_row + row))
        up = parent[leaves[row]]
        while up >= 0 and its_hash <= limit[up]:
            if feature[up] >= 0:
                value = number_at(&columns.column[feature[up]], row)
                if value == value:
                    if values != NULL:
                        values[place[up]] = value
                    place[up] += 1
            up = parent[up]


cdef object share_places(counts):
    """From what every thread has counted of each node to where it puts it, in place.

    Returns where all that belongs to a node starts, and where the last ends.
    """
    starts = np.zeros(counts.shape[1] + 1, dtype=np.int64)
    np.cumsum(counts.sum(axis=0), out=starts[1:])
    counts[:] = starts[:-1] + np.cumsum(counts, axis=0) - counts
    return starts


def sample_values(
    Columns columns not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[::1] feature not None,
    const uint64_t[::1] limit not None,
    int64_t first_row=0,
    int n_threads=1,
):
    """Numbers of a sample of each node's rows.

    Parameters
    ----------
    columns : Columns
        Numbers.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent, feature : int32 arrays of shape (n_nodes,)
        The root's parent is -1, all others' come before them. Of nodes whose feature is -1,
        nothing is wanted.
    limit : uint64 array of shape (n_nodes,)
        Rows whose numbers have hashes up to it are looked at; no node's is above those of its
        children.
    first_row : int
        Number of the first row in the whole of the data.
    n_threads : int

    Returns
    -------
    start : int64 array of shape (n_nodes + 1,)
        Where the numbers of each node start, and where the last end.
    values : float64 array
        All that are not missing, in the order of the rows.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows, n_nodes = parent.shape[0], part
        int32_t[::1] chosen
        int64_t[::1] first, last, start
        int64_t[:, ::1] place
        int up
        double[::1] values
    check_nodes(columns, leaves, parent, feature)
    if limit.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    if not 0 <= first_row <= 2**62:
        raise ValueError("rows are out of range")
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    for up in feature:
        if up >= 0 and columns.column[up].kind != FLOAT32 and columns.column[up].kind != FLOAT64:
            raise ValueError(f"column {up} does not hold numbers")
    # Every thread looks through some rows for those that are looked at at all, and counts them.
    first = np.arange(n_threads + 1, dtype=np.int64) * n_rows // n_threads
    last = np.zeros(n_threads, dtype=np.int64)
    chosen = np.empty(n_rows + 1, dtype=np.int32)
    places = np.zeros((n_threads, n_nodes + 8), dtype=np.int64)
    place = places
    with nogil:
        for part in prange(n_threads, num_threads=n_threads, schedule="static"):
            last[part] = first[part] + choose_rows(
                leaves, parent, limit, first_row, first[part], first[part + 1],
                &chosen[first[part]])
            put_values(
                columns, leaves, parent, feature, limit, first_row, &chosen[0], first[part],
                last[part], &place[part, 0], NULL)
    starts = share_places(places[:, :n_nodes])
    start = starts
    found = np.empty(start[n_nodes] + 1)
    values = found
    with nogil:
        for part in prange(n_threads, num_threads=n_threads, schedule="static"):
            put_values(
                columns, leaves, parent, feature, limit, first_row, &chosen[0], first[part],
                last[part], &place[part, 0], &values[0])
    return starts, found[:start[n_nodes]]


cdef inline bint is_known(const Column* column, Py_ssize_t row) noexcept nogil:
    """Whether a row has a number, or the code of a category."""
    cdef double value
    if column.kind == INT32:
        return (<const int32_t*> (column.data + row * column.stride))[0] != -1
    value = number_at(column, row)
    return value == value


cdef Py_ssize_t choose_points(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[:, ::1] pairs, const uint64_t[::1] limit, int64_t first_row, Py_ssize_t first,
    Py_ssize_t last, int32_t* chosen, int64_t* count, int64_t* missing,
) noexcept nogil:
    """Choose rows for the nodes they pass, and count these by node; returns how many there are."""
    cdef:
        Py_ssize_t row, n = 0
        int up
        uint64_t its_hash
        bint is_chosen
    for row in range(first, last):
        its_hash = hash_of(<uint64_t> (first_row + row))
        is_chosen = False
        up = parent[leaves[row]]
        while up >= 0:
            if pairs[up, 0] >= 0:
                if not (is_known(&columns.column[pairs[up, 0]], row)
                        and is_known(&columns.column[pairs[up, 1]], row)):
                    missing[up] += 1
                elif its_hash <= limit[up]:
                    count[up] += 1
                    is_chosen = True
            up = parent[up]
        chosen[n] = <int32_t> row
        n += is_chosen
    return n


cdef void put_points(
    Columns columns, const int32_t[::1] leaves, const int32_t[::1] parent,
    const int32_t[:, ::1] pairs, const uint64_t[::1] limit, int64_t first_row,
    const int32_t* chosen, Py_ssize_t n, int64_t* place, int32_t* rows,
) noexcept nogil:
    """Put chosen rows to the next places of their nodes."""
    cdef:
        Py_ssize_t i
        int32_t row
        int up
        uint64_t its_hash
    for i in range(n):
        row = chosen[i]
        its_hash = hash_of(<uint64_t> (first_row + row))
        up = parent[leaves[row]]
        while up >= 0:
            if pairs[up, 0] >= 0 and its_hash <= limit[up] and (
                    is_known(&columns.column[pairs[up, 0]], row)
                    and is_known(&columns.column[pairs[up, 1]], row)):
                rows[place[up]] = row
                place[up] += 1
            up = parent[up]


def sample_points(
    Columns columns not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[:, ::1] pairs not None,
    const uint64_t[::1] limit not None,
    int64_t first_row=0,
    int n_threads=1,
):
    """A sample of each node's rows that have both features of the node's pair.

    Parameters
    ----------
    columns : Columns
        Numbers, or codes of categories.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent : int32 array of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    pairs : int32 array of shape (n_nodes, 2)
        The node's features; of nodes where the first is negative, nothing is wanted.
    limit : uint64 array of shape (n_nodes,)
        Rows whose numbers have hashes up to it are chosen.
    first_row : int
        Number of the first row in the whole of the data.
    n_threads : int

    Returns
    -------
    start : int64 array of shape (n_nodes + 1,)
        Where the rows of each node start, and where the last end.
    rows : int32 array
        Places of rows in the columns, ascending within a node.
    n_missing : int64 array of shape (n_nodes,)
        How many of the node's rows lack either feature.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows, n_nodes = parent.shape[0], part, node
        int side
        int32_t[::1] chosen, rows
        int64_t[::1] first, n_chosen, start
        int64_t[:, ::1] place, missing
    if pairs.shape[0] != n_nodes or pairs.shape[1] != 2 or limit.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    for side in range(2):
        check_nodes(columns, leaves, parent, np.ascontiguousarray(pairs[:, side]))
    for node in range(n_nodes):
        for side in range(2 if pairs[node, 0] >= 0 else 0):
            if pairs[node, side] < 0 or columns.column[pairs[node, side]].kind not in (
                    INT32, FLOAT32, FLOAT64):
                raise ValueError(f"column {pairs[node, side]} holds neither numbers nor codes")
    if not 0 <= first_row <= 2**62 or n_threads < 1:
        raise ValueError("rows or n_threads are out of range")
    # Every thread chooses from a part of the rows.
    first = np.arange(n_threads + 1, dtype=np.int64) * n_rows // n_threads
    n_chosen = np.zeros(n_threads, dtype=np.int64)
    chosen = np.empty(n_rows + 1, dtype=np.int32)
    places = np.zeros((n_threads, n_nodes + 8), dtype=np.int64)
    lacking = np.zeros((n_threads, n_nodes + 8), dtype=np.int64)
    place, missing = places, lacking
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        n_chosen[part] = choose_points(
            columns, leaves, parent, pairs, limit, first_row, first[part], first[part + 1],
            &chosen[first[part]], &place[part, 0], &missing[part, 0])
    starts = share_places(places[:, :n_nodes])
    start = starts
    found = np.empty(start[n_nodes] + 1, dtype=np.int32)
    rows = found
    for part in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
        put_points(
            columns, leaves, parent, pairs, limit, first_row, &chosen[first[part]],
            n_chosen[part], &place[part, 0], &rows[0])
    return starts, found[:start[n_nodes]], lacking.sum(axis=0)[:n_nodes]


def lay_out_axes(
    const int32_t[::1] feature not None,
    const int64_t[::1] value_start not None,
    const double[::1] values not None,
    const int64_t[::1] threshold_start not None,
    const double[::1] thresholds not None,
):
    """Part the axes of nodes into cells, by a sample of their rows.

    Parameters
    ----------
    feature : int32 array of shape (n_nodes,)
        Nodes whose feature is -1 get no axis.
    value_start : int64 array of shape (n_nodes + 1,)
    values : float64 array
        Numbers of a sample of a node's rows, from its start on, in any order.
    threshold_start : int64 array of shape (n_nodes + 1,)
    thresholds : float64 array
        Where a node's segments meet, ascending, from its start on.

    Returns
    -------
    bound_start : int64 array of shape (n_nodes + 1,)
        A node's axis has the bounds from its start on; none if it has no axis.
    bounds : float64 array
        Bounds of the parts of an axis, every threshold among them. Those at the ends may be the
        least and the greatest of all numbers: there may be rows up to wherever.
    cells : int64 array
        Number of cells of equal width in the part above each bound; 0 for an axis's last.
    """
    cdef:
        Py_ssize_t n_nodes = feature.shape[0], n_values, n_most = 0, at = 0, n_thresholds, node
        int64_t[::1] bound_start, cells
        double[::1] bounds, scratch
        Axis axis
    check_starts(value_start, n_nodes, values.shape[0])
    check_starts(threshold_start, n_nodes, thresholds.shape[0])
    for node in range(n_nodes):
        n_most = max(n_most, threshold_start[node + 1] - threshold_start[node])
    n_most = 2 * n_most + N_MORE
    room = 2 * thresholds.shape[0] + N_MORE * np.count_nonzero(np.asarray(feature) >= 0) + n_most
    found_starts = np.zeros(n_nodes + 1, dtype=np.int64)
    all_bounds, all_cells = np.empty(room), np.zeros(room, dtype=np.int64)
    bound_start, bounds, cells = found_starts, all_bounds, all_cells
    scratch = np.empty(n_most)
    with nogil:
        for node in range(n_nodes):
            if feature[node] >= 0:
                axis.bounds = &bounds[at]
                axis.cells = &cells[at]
                axis.scratch = &scratch[0]
                n_values = value_start[node + 1] - value_start[node]
                n_thresholds = threshold_start[node + 1] - threshold_start[node]
                scale_axis(
                    &axis, &values[0] + value_start[node] if n_values else NULL, n_values,
                    &thresholds[0] + threshold_start[node] if n_thresholds else NULL, n_thresholds)
                cells[at + axis.n_bounds - 1] = 0
                at += axis.n_bounds
            bound_start[node + 1] = at
    return found_starts, all_bounds[:at], all_cells[:at]


def edges_of_cells(
    const int64_t[::1] bound_start not None,
    const double[::1] bounds not None,
    const int64_t[::1] cells not None,
):
    """Edges between the cells of nodes' axes, which are as `lay_out_axes` returns them.

    Returns
    -------
    edge_start : int64 array of shape (n_nodes + 1,)
        A node has the edges from its start on; none if it has no axis, or one of a single cell.
    edges : float64 array
    """
    cdef:
        Py_ssize_t n_nodes = bound_start.shape[0] - 1, node, part, cell, at = 0
        int64_t n_edges = 0
        int64_t[::1] edge_start
        double[::1] edges
    check_starts(bound_start, n_nodes, bounds.shape[0])
    if cells.shape[0] != bounds.shape[0]:
        raise ValueError("there are cells above each bound, or none")
    for part in range(cells.shape[0]):
        if not 0 <= cells[part] <= MOST_CELLS:
            raise ValueError("a part of an axis has so many cells")
        n_edges += cells[part]
    starts, found = np.zeros(n_nodes + 1, dtype=np.int64), np.empty(n_edges)
    edge_start, edges = starts, found
    with nogil:
        for node in range(n_nodes):
            # An axis starts at its first bound, and ends at its last.
            for part in range(bound_start[node], bound_start[node + 1] - 1):
                for cell in range(part == bound_start[node], cells[part]):
                    edges[at] = low_of_cell(bounds[part], bounds[part + 1], cell, cells[part])
                    at += 1
            edge_start[node + 1] = at
    return starts, found[:at]


cdef inline double low_of_cell(double low, double high, Py_ssize_t cell, int64_t n) noexcept nogil:
    """Lower edge of one of n cells of equal width."""
    cdef double edge
    if cell == 0:
        return low
    # Quarters, because differences could overflow; but tiny numbers lose digits by a division.
    edge = 4 * (low / 4 + (high / 4 - low / 4) * (<double> cell / <double> n))
    return low if edge < low else high if edge > high else edge


# --- counts ---


ctypedef struct Passed:
    # What a row that passes a node needs of it.
    const char* data           # of the node's column
    Py_ssize_t stride
    int kind                   # of the column; NOT_GIVEN if the node has no cells
    int parent
    int64_t first_cell
    int64_t n_cells            # without the one for missing values
    Lookup lookup


cdef inline Py_ssize_t cell_of_row(const Passed* node, Py_ssize_t row) noexcept nogil:
    """Cell of a row's number or category; the one after the last if it is missing."""
    cdef:
        const char* at = node.data + row * node.stride
        int32_t code
    if node.kind == FLOAT64:
        return bin_of(&node.lookup, (<const double*> at)[0], node.lookup.width)
    if node.kind == FLOAT32:
        return bin_of(&node.lookup, (<const float*> at)[0], node.lookup.width)
    code = (<const int32_t*> at)[0]
    return code if 0 <= code < node.n_cells else node.n_cells


cdef inline double number_of_row(const Passed* node, Py_ssize_t row) noexcept nogil:
    """A row's number, infinite ones as the greatest finite ones."""
    cdef const char* at = node.data + row * node.stride
    return within_range(
        (<const double*> at)[0] if node.kind == FLOAT64 else (<const float*> at)[0])


def count_cells(
    Columns columns not None,
    const int32_t[::1] leaves not None,
    const int32_t[::1] parent not None,
    const int32_t[::1] feature not None,
    const int64_t[::1] edge_start not None,
    const double[::1] edges not None,
    const int64_t[::1] cell_start not None,
    const int32_t[::1] labels,
    const double[::1] targets,
    Py_ssize_t n_classes,
    int n_threads=1,
):
    """Count rows in the cells of every node that they pass.

    Row by row and from the leaf up, because all values of a row lie close together in memory.

    Parameters
    ----------
    columns : Columns
        Numbers, or codes of categories.
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    parent, feature : int32 arrays of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    edge_start : int64 array of shape (n_nodes + 1,)
    edges : float64 array
        Inner edges of a node's cells on an ordered feature, ascending, from its start on.
    cell_start : int64 array of shape (n_nodes + 1,)
        A node has the cells from its start on, the last of which is for missing values; one more
        than inner edges and that one, or one for each category and that one. Nodes without cells
        are passed over.
    labels : int32 array or None
        Classes of the rows; None if there are targets.
    targets : float64 array or None
        Numbers of the rows; for several threads, on a grid on which their sums are exact.
    n_classes : int
        1 for targets.
    n_threads : int

    Returns
    -------
    counts : int32 array of shape (n_cells, n_classes)
    totals : float64 array of shape (n_cells,)
        Sums of the targets; 0 for classes.
    least, greatest : float64 arrays of shape (n_nodes,)
        Of the numbers of each node's rows, infinite ones as the greatest finite ones; an infinite
        range where there are none.
    """
    cdef:
        Py_ssize_t n_rows = columns.n_rows, n_edges
        int n_nodes = <int> parent.shape[0]
        bint has_labels = labels is not None
    if has_labels == (targets is not None):
        raise ValueError("give labels or targets")
    if n_rows != (labels.shape[0] if has_labels else targets.shape[0]):
        raise ValueError("there is a label or target for each row")
    check_nodes(columns, leaves, parent, feature)
    check_starts(edge_start, n_nodes, edges.shape[0])
    check_starts(cell_start, n_nodes, cell_start[n_nodes] if cell_start.shape[0] > n_nodes else 0)
    check_cells(columns, feature, edge_start, cell_start)
    if n_classes < 1 or n_threads < 1:
        raise ValueError("there is at least one class, and one thread")
    if has_labels and not are_below(labels, n_classes):
        raise ValueError("labels are classes")
    cdef:
        Py_ssize_t n_cells = cell_start[n_nodes], part, n_parts = n_threads, block
        Py_ssize_t n_blocks = (n_rows + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE
        int32_t[:, :, ::1] counts
        double[:, ::1] totals, least, greatest
        double[::1] uppers = np.empty(3 * edges.shape[0] + 4 * n_nodes)
        uint16_t[::1] before = np.zeros(LOOKUP_CELLS * n_nodes, dtype=np.uint16)
        Passed* nodes
        Passed* its
        int node
    # Every thread counts for itself.
    counted = np.zeros((n_parts, n_cells, n_classes), dtype=np.int32)
    summed = np.zeros((n_parts, n_cells))
    lows, highs = np.full((n_parts, n_nodes + 1), np.inf), np.full((n_parts, n_nodes + 1), -np.inf)
    counts, totals, least, greatest = counted, summed, lows, highs
    nodes = <Passed*> malloc((n_nodes + 1) * sizeof(Passed))
    if nodes == NULL:
        raise MemoryError("no memory to count rows")
    with nogil:
        for node in range(n_nodes):
            n_edges = edge_start[node + 1] - edge_start[node]
            its = &nodes[node]
            its.parent = parent[node]
            its.first_cell = cell_start[node]
            its.n_cells = cell_start[node + 1] - cell_start[node] - 1
            its.kind = NOT_GIVEN
            if its.n_cells >= 0:
                its.data = columns.column[feature[node]].data
                its.stride = columns.column[feature[node]].stride
                its.kind = columns.column[feature[node]].kind
            its.lookup.n_cells = LOOKUP_CELLS
            its.lookup.upper = &uppers[3 * edge_start[node] + 4 * node]
            its.lookup.before = &before[node * LOOKUP_CELLS]
            lay_out_cells(
                &its.lookup, &edges[0] + edge_start[node] if n_edges else NULL, <int> n_edges)
        if n_cells > 0:
            for block in prange(n_blocks, num_threads=n_threads, schedule="dynamic"):
                part = threadid()
                count_block(
                    nodes, leaves, labels, targets,
                    block * ROWS_AT_ONCE, min((block + 1) * ROWS_AT_ONCE, n_rows), n_classes,
                    &counts[part, 0, 0], &totals[part, 0], &least[part, 0], &greatest[part, 0])
    free(nodes)
    return (
        counted.sum(axis=0, dtype=np.int32), summed.sum(axis=0),
        lows.min(axis=0)[:n_nodes], highs.max(axis=0)[:n_nodes])


cdef void count_block(
    const Passed* nodes, const int32_t[::1] leaves, const int32_t[::1] labels,
    const double[::1] targets, Py_ssize_t first, Py_ssize_t last, Py_ssize_t n_classes,
    int32_t* counts, double* totals, double* least, double* greatest,
) noexcept nogil:
    """Count some rows in the cells of every node that they pass."""
    cdef:
        Py_ssize_t row, cell
        int node
        double value
        bint has_labels = labels is not None
    for row in range(first, last):
        node = leaves[row]
        while node >= 0:
            if nodes[node].kind != NOT_GIVEN:
                cell = cell_of_row(&nodes[node], row)
                if nodes[node].kind != INT32 and cell < nodes[node].n_cells:
                    value = number_of_row(&nodes[node], row)
                    if value < least[node]:
                        least[node] = value
                    if value > greatest[node]:
                        greatest[node] = value
                cell += nodes[node].first_cell
                if has_labels:
                    counts[cell * n_classes + labels[row]] += 1
                else:
                    counts[cell] += 1
                    totals[cell] += targets[row]
            node = nodes[node].parent


# --- targets ---


def count_targets(
    const int32_t[::1] leaves not None,
    const int32_t[::1] cells not None,
    const double[::1] targets,
    Py_ssize_t n_nodes,
    Py_ssize_t n_cells,
):
    """Count the rows of each leaf by class or cell of the target.

    Parameters
    ----------
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    cells : int32 array of shape (n_rows,)
        Classes, or cells of the target.
    targets : float64 array of shape (n_rows,) or None
    n_nodes, n_cells : int

    Returns
    -------
    counts : int32 array of shape (n_nodes, n_cells)
    least, greatest : float64 arrays of shape (n_nodes,)
        Of the targets; an infinite range where there are none.
    """
    cdef:
        Py_ssize_t row
        int leaf
        int32_t[:, ::1] count
        double[::1] least, greatest
    check_leaves(leaves, n_nodes)
    if cells.shape[0] != leaves.shape[0]:
        raise ValueError("there is a leaf and a cell for each row")
    if targets is not None and targets.shape[0] != leaves.shape[0]:
        raise ValueError("there is a leaf and a target for each row")
    if n_cells < 1 or not are_below(cells, n_cells):
        raise ValueError("labels are classes")
    counts = np.zeros((n_nodes, n_cells), dtype=np.int32)
    lows, highs = np.full(n_nodes, np.inf), np.full(n_nodes, -np.inf)
    count, least, greatest = counts, lows, highs
    with nogil:
        for row in range(leaves.shape[0]):
            count[leaves[row], cells[row]] += 1
        if targets is not None:
            for row in range(leaves.shape[0]):
                leaf = leaves[row]
                least[leaf] = min(least[leaf], targets[row])
                greatest[leaf] = max(greatest[leaf], targets[row])
    return counts, lows, highs


def sum_targets(
    const int32_t[::1] leaves not None,
    const double[::1] targets not None,
    const int32_t[::1] exponent not None,
    const double[::1] unit not None,
):
    """Sum the targets of each leaf, on a grid on which sums are exact.

    Parameters
    ----------
    leaves : int32 array of shape (n_rows,)
        The rows' leaves.
    targets : float64 array of shape (n_rows,)
    exponent : int32 array of shape (n_nodes,)
        Powers of two that no target of a leaf is above; targets are counted in these.
    unit : float64 array of shape (n_nodes,)
        Units to which a leaf's targets are then rounded.

    Returns
    -------
    sums : float64 array of shape (n_nodes,)
    bounds : int64 array of shape (n_nodes,)
        What absolute values add up to at most, in 2**-16ths.
    """
    cdef:
        Py_ssize_t row, n_nodes = exponent.shape[0]
        int leaf
        double share
        double[::1] total
        int64_t[::1] bound
    check_moments(leaves, targets, n_nodes, unit)
    sums, bounds = np.zeros(n_nodes), np.zeros(n_nodes, dtype=np.int64)
    total, bound = sums, bounds
    with nogil:
        for row in range(leaves.shape[0]):
            leaf = leaves[row]
            share = ldexp(targets[row], -exponent[leaf])
            total[leaf] += rint(share / unit[leaf]) * unit[leaf]
            bound[leaf] += <int64_t> ceil(min(fabs(share), 1.0) * 65536.0)
    return sums, bounds


def sum_squares(
    const int32_t[::1] leaves not None,
    const double[::1] targets not None,
    const int32_t[::1] exponent not None,
    const double[::1] centre not None,
    const int32_t[::1] reach not None,
    const double[::1] unit not None,
):
    """Sum the squares of what the targets of each leaf are off a centre, on an exact grid.

    Parameters
    ----------
    leaves, targets, exponent
        As for `sum_targets`.
    centre : float64 array of shape (n_nodes,)
        In the leaf's power of two.
    reach : int32 array of shape (n_nodes,)
        Powers of two, of the former, that none is farther off.
    unit : float64 array of shape (n_nodes,)
        Units to which squares are rounded, which are counted in squares of `reach`.
    """
    cdef:
        Py_ssize_t row, n_nodes = exponent.shape[0]
        int leaf
        double off
        double[::1] total
    check_moments(leaves, targets, n_nodes, unit)
    if centre.shape[0] != n_nodes or reach.shape[0] != n_nodes:
        raise ValueError("arrays of nodes have one entry for each node")
    sums = np.zeros(n_nodes)
    total = sums
    with nogil:
        for row in range(leaves.shape[0]):
            leaf = leaves[row]
            off = ldexp(ldexp(targets[row], -exponent[leaf]) - centre[leaf], -reach[leaf])
            total[leaf] += rint(off * off / unit[leaf]) * unit[leaf]
    return sums


def add_up(
    const int32_t[::1] parent not None,
    int32_t[:, ::1] counts not None,
    double[::1] mean,
    double[::1] deviation,
):
    """Add what leaves have to all nodes above them, in place.

    Parameters
    ----------
    parent : int32 array of shape (n_nodes,)
        The root's parent is -1, all others' come before them.
    counts : int32 array of shape (n_nodes, n_cells)
        Rows by class or cell.
    mean, deviation : float64 arrays of shape (n_nodes,) or None
        Of the targets; NaN where there are no rows.

    Returns
    -------
    int64 array of shape (n_nodes,)
        All rows of each node.
    """
    cdef:
        Py_ssize_t n_nodes = parent.shape[0], node, cell
        bint has_moments = mean is not None
        int64_t[::1] n
    if counts.shape[0] != n_nodes or has_moments != (deviation is not None):
        raise ValueError("arrays of nodes have one entry for each node")
    if has_moments and (mean.shape[0] != n_nodes or deviation.shape[0] != n_nodes):
        raise ValueError("arrays of nodes have one entry for each node")
    check_parents(parent)
    n_rows = np.zeros(n_nodes, dtype=np.int64)
    n = n_rows
    with nogil:
        for node in range(n_nodes):
            for cell in range(counts.shape[1]):
                n[node] += counts[node, cell]
        for node in range(n_nodes - 1, 0, -1):
            if parent[node] < 0 or n[node] == 0:
                continue
            for cell in range(counts.shape[1]):
                counts[parent[node], cell] += counts[node, cell]
            if has_moments:
                join(node, parent[node], n, mean, deviation)
            n[parent[node]] += n[node]
    return n_rows


cdef inline void join(
    Py_ssize_t node, Py_ssize_t above, int64_t[::1] n, double[::1] mean, double[::1] deviation
) noexcept nogil:
    """Add a node's mean and deviation to those of the rows that the node above it has so far."""
    cdef:
        double both = <double> (n[node] + n[above]), joint, here, there, greatest
        double share = n[node] / both
    if n[above] == 0:
        mean[above], deviation[above] = mean[node], deviation[node]
        return
    joint = mean[above] * (1.0 - share) + mean[node] * share
    here, there = fabs(mean[node] - joint), fabs(mean[above] - joint)
    # Ratios, because squares could be too great or too small for numbers.
    greatest = max(max(here, there), max(deviation[node], deviation[above]))
    if greatest > 0.0:
        deviation[above] = greatest * sqrt(
            share * (square(deviation[node] / greatest) + square(here / greatest))
            + (1.0 - share) * (square(deviation[above] / greatest) + square(there / greatest)))
    mean[above] = joint


cdef inline double square(double number) noexcept nogil:
    return number * number


def deviations(
    const double[:, ::1] values not None,     # IN: (n_features, n_values)
):
    """Standard deviation of each feature's numbers; NaN if there are none."""
    cdef:
        Py_ssize_t f
        double[::1] deviation
    found = np.empty(values.shape[0])
    deviation = found
    with nogil:
        for f in range(values.shape[0]):
            deviation[f] = deviation_of(values[f])
    return found


cdef double deviation_of(const double[::1] values) noexcept nogil:
    cdef:
        Py_ssize_t i, n = 0
        double value, mean = 0.0, squares = 0.0
    for i in range(values.shape[0]):
        value = within_range(values[i])
        if value == value:
            mean += value
            n += 1
    mean = mean / n if n else NAN
    for i in range(values.shape[0]):
        value = within_range(values[i])
        if value == value:
            squares += (value - mean) * (value - mean)
    return sqrt(squares / n) if n else NAN


cdef inline double within_range(double value) noexcept nogil:
    """A number, infinite ones as the greatest finite ones; NaN stays."""
    if value > DBL_MAX:
        return DBL_MAX
    return -DBL_MAX if value < -DBL_MAX else value


def extents(
    Columns columns not None,
    const int32_t[::1] features not None,     # IN: columns of numbers
    int n_threads=1,
):
    """Least and greatest of each column's numbers, (2, n_features); NaN if there are none."""
    cdef:
        Py_ssize_t block, n_features = features.shape[0]
        Py_ssize_t n_blocks = (columns.n_rows + ROWS_OF_BLOCK - 1) // ROWS_OF_BLOCK
        double[:, :, ::1] ends
    columns.check_numbers(features)
    if n_threads < 1:
        raise ValueError("n_threads out of range")
    if n_blocks == 0 or n_features == 0:
        return np.full((2, n_features), NAN)
    of_blocks = np.empty((n_blocks, 2, n_features))
    ends = of_blocks
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        extents_of_block(columns, features, block, &ends[block, 0, 0], &ends[block, 1, 0])
    return np.array([np.fmin.reduce(of_blocks[:, 0]), np.fmax.reduce(of_blocks[:, 1])])


cdef void extents_of_block(
    Columns columns, const int32_t[::1] features, Py_ssize_t block, double* least, double* greatest
) noexcept nogil:
    cdef:
        Py_ssize_t f, row, first = block * ROWS_OF_BLOCK
        Py_ssize_t last = min(first + ROWS_OF_BLOCK, columns.n_rows)
        const Column* column
        double value, low, high
    # A block's rows stay in the cache from column to column.
    for f in range(features.shape[0]):
        column = &columns.column[features[f]]
        low = INFINITY
        high = -INFINITY
        for row in range(first, last):
            value = raw_number_at(column, row)
            low = value if value < low else low
            high = value if value > high else high
        # Of missing values alone, or of none but infinite ones on the other side.
        if low > high:
            low = high = NAN
        least[f] = low
        greatest[f] = high


cdef inline double raw_number_at(const Column* column, Py_ssize_t row) noexcept nogil:
    """A number as it is, infinite or not."""
    cdef const char* at = column.data + row * column.stride
    return (<const double*> at)[0] if column.kind == FLOAT64 else (<const float*> at)[0]


# --- checks ---


cdef int check_nodes(
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


cdef int check_parents(const int32_t[::1] parent) except -1:
    """Refuse nodes that are no tree's."""
    cdef Py_ssize_t node
    for node in range(parent.shape[0]):
        if not -1 <= parent[node] < node:
            raise ValueError("parents come before their children")
    return 0


cdef bint are_below(const int32_t[::1] numbers, Py_ssize_t limit) noexcept nogil:
    """Whether numbers count from 0 up to a limit."""
    cdef:
        Py_ssize_t i
        bint are = True
    for i in range(numbers.shape[0]):
        are &= 0 <= numbers[i] < limit
    return are


cdef int check_leaves(const int32_t[::1] leaves, Py_ssize_t n_nodes) except -1:
    """Refuse rows in no leaf."""
    if not are_below(leaves, n_nodes):
        raise ValueError("leaves are nodes")
    return 0


cdef int check_moments(
    const int32_t[::1] leaves, const double[::1] targets, Py_ssize_t n_nodes,
    const double[::1] unit
) except -1:
    """Refuse leaves, targets and units that do not belong together."""
    check_leaves(leaves, n_nodes)
    if targets.shape[0] != leaves.shape[0]:
        raise ValueError("there is a leaf and a target for each row")
    if unit.shape[0] != n_nodes or n_nodes and not np.min(unit) > 0.0:
        raise ValueError("there is a positive unit for each node")
    return 0


cdef int check_starts(const int64_t[::1] start, Py_ssize_t n_nodes, int64_t end) except -1:
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


cdef int check_cells(
    Columns columns, const int32_t[::1] feature, const int64_t[::1] edge_start,
    const int64_t[::1] cell_start
) except -1:
    """Refuse cells that a loop without checks would leave."""
    cdef:
        int node, kind
        int64_t its_edges, its_cells
    for node in range(<int> feature.shape[0]):
        its_edges = edge_start[node + 1] - edge_start[node]
        its_cells = cell_start[node + 1] - cell_start[node]
        if its_cells == 0:
            continue
        kind = columns.column[feature[node]].kind if feature[node] >= 0 else NOT_GIVEN
        if kind != INT32 and kind != FLOAT32 and kind != FLOAT64:
            raise ValueError(f"column {feature[node]} holds neither numbers nor categories")
        if kind != INT32 and its_cells != its_edges + 2:
            raise ValueError("cells are one more than the edges between them, and one")
    return 0
