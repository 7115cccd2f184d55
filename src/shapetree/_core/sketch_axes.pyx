"""The axes of all nodes, parted into the cells that their rows are counted in."""

import numpy as np

from libc.float cimport DBL_MAX
from libc.math cimport fabs, log, nextafter, pow, rint
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport qsort

from shapetree._core.node_checks cimport check_starts

cdef enum:
    N_CELLS = 36              # of an axis that is drawn
    MAX_DISTINCT = 24         # values up to which each has a cell of its own
    MAX_TAIL = 32
    N_MORE = 64               # bounds that an axis may have beside its thresholds and as many more
    MOST_CELLS = 2147483647   # of a part of an axis

# Share of the rows at either end that do not stretch an axis, where there are enough of them.
cdef double TAIL = 0.01
# Where so much of a range holds half of the rows, cells of equal ratio tell more than equal widths.
cdef double CROWDED = 0.1


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
