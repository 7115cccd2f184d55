"""Histograms: statistics of a node's rows, by feature and bin.

A histogram is one array of (total bins, channels): feature f's bins stand at
offsets[f] .. offsets[f + 1], its missing bin last. Channels are the criterion's statistics and,
where rows have weights, their number. Histograms of disjoint sets of rows add up in any order.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from shapetree._core.columns cimport UINT8, UINT16, Column, Columns, check_rows, code_at
from shapetree._core.rows cimport NodeRows
from shapetree._core.sorting cimport sort_items
from shapetree._core.threads cimport (
    MAX_PARTS, Arena, Arenas, Mark, arena_mark, arena_release, must_stop, take_doubles, take_ints,
)

cdef extern from "vector.h":
    int lowest_bit(uint64_t bits) noexcept nogil

cdef enum:
    ROWS_PER_BLOCK = 65536    # of a table: the bins of two features, or targets, stay in the cache
    TASKS_PER_THREAD = 8      # so that threads have done at about the same time
    BINS_PER_ROW = 2          # beyond which those without rows are left out

ctypedef fused bin_t:
    uint8_t
    uint16_t
    uint32_t


# --- memory of histograms -------------------------------------------------------------------------

cdef enum:
    LEAST_KEPT = 1 << 16      # bytes; the system has less at hand anyway
    MOST_KEPT = 1 << 24       # bytes that are kept, of all sizes together

# Memory that no histogram uses now, by the power of two that its size is. The system would take it
# back after each level, and give and clear new pages for the next: that takes as long as summing.
cdef list unused = [[] for _ in range(64)]
cdef size_t n_unused = 0      # bytes


cdef class Room:
    """Memory of a histogram, which the next one may take when the last array on it is gone."""
    cdef void* memory
    cdef size_t size
    cdef int power
    cdef Py_ssize_t[1] shape

    def __cinit__(self, size_t size):
        global n_unused
        while (<size_t> 1 << self.power) < size:
            self.power += 1
        self.size = <size_t> 1 << self.power
        try:
            self.memory = <void*> <size_t> unused[self.power].pop()
            n_unused -= self.size
        except IndexError:  # asked for as it comes: another thread might take the last
            self.memory = malloc(self.size)
        if self.memory == NULL:
            raise MemoryError("no memory for a histogram")

    def __dealloc__(self):
        global n_unused
        if self.memory != NULL and n_unused + self.size <= MOST_KEPT:
            unused[self.power].append(<size_t> self.memory)
            n_unused += self.size
        else:
            free(self.memory)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        self.shape[0] = self.size
        buffer.buf = self.memory
        buffer.obj = self
        buffer.len = self.size
        buffer.itemsize = 1
        buffer.readonly = False
        buffer.ndim = 1
        buffer.format = NULL
        buffer.shape = self.shape
        buffer.strides = NULL
        buffer.suboffsets = NULL
        buffer.internal = NULL


def room_for_sums(*shape):
    """An array for sums, in memory that others have used; what it holds means nothing."""
    cdef size_t size = 8
    for length in shape:
        size *= length
    if size < LEAST_KEPT:
        return np.empty(shape)
    return np.frombuffer(Room(size), np.float64, size // 8).reshape(shape)


cdef class Targets:
    """What rows add to histograms.

    Parameters
    ----------
    labels : int32 array (n_rows, n_outputs) or None
        For each output, the index of the statistic that the row counts for.
    values : float64 array (n_rows, n_outputs) or None
        Or the output's value. Exactly one of the two is given.
    weights : float64 array (n_rows,) or None
    n_stats : int
        Number of statistics.
    unit : float
        Grid that values multiplied by weights are rounded to; 0 for none. Weights and values must
        lie on grids themselves, see `shapetree.data._sums`, for sums to be exact.
    counts : float64 array (n_rows,) or None
        How many rows each stands for, whole numbers; 1 by default. Rows that stand for several need
        weights, too, which may be the same array.
    """

    def __init__(self, labels, values, weights, int n_stats, double unit=0.0, counts=None):
        self.has_labels = labels is not None
        self.has_weights = weights is not None
        if self.has_labels == (values is not None):
            raise ValueError("give either labels or values")
        given = np.ascontiguousarray(
            labels if self.has_labels else values, dtype=np.int32 if self.has_labels else np.float64
        )
        if given.ndim != 2 or given.shape[1] == 0:
            raise ValueError("targets must be (n_rows, n_outputs)")
        if not 0 <= n_stats < 2**30:
            raise ValueError("n_stats out of range")
        self.n_rows, self.n_outputs = given.shape
        self.n_stats = n_stats
        self.n_channels = n_stats + self.has_weights
        if self.has_labels:
            if given.size and (given.min() < 0 or given.max() >= n_stats):
                raise ValueError("labels must be indices of statistics")
            self.labels = given
        else:
            if n_stats != 1 + self.n_outputs:
                raise ValueError("values have one statistic more than outputs")
            if weights is not None:
                given = given * np.reshape(weights, (-1, 1))
                if unit > 0.0:
                    given = np.rint(given / unit) * unit
            self.values = given
        if self.has_weights:
            self.set_weights(weights, counts)
        elif counts is not None:
            raise ValueError("rows that stand for several need weights")

    cdef int set_weights(self, weights, counts) except -1:
        """Note the rows' weights, and how many rows each stands for."""
        cdef const double[::1] given = np.ascontiguousarray(weights, dtype=np.float64)
        if given.shape[0] != self.n_rows:
            raise ValueError("weights must be (n_rows,)")
        self.weights = given
        self.has_weights = True
        self.has_counts = counts is not None
        if self.has_counts:
            self.counts = given if counts is weights else np.ascontiguousarray(
                counts, dtype=np.float64)
            if self.counts.shape[0] != self.n_rows:
                raise ValueError("counts must be (n_rows,)")
        self.n_channels = self.n_stats + 1
        return 0

    cdef NodeTargets gather(
        self, const int32_t* rows, Py_ssize_t n, Arena* arena
    ) noexcept nogil:
        """Bring the targets of some rows together, values multiplied by weights.

        They last until the arena is released; if it fails, they must not be read.
        """
        cdef:
            Py_ssize_t i
            int o, n_outputs = self.n_outputs
            NodeTargets node = self.as_they_are()
            int32_t* labels = NULL
            double* values = NULL
            double* weights = NULL
            double* counts = NULL
        if node.labels != NULL:
            labels = take_ints(arena, n * n_outputs)
        if node.values != NULL:
            values = take_doubles(arena, n * n_outputs)
        if node.weights != NULL:
            weights = take_doubles(arena, n)
        if node.counts != NULL:
            counts = take_doubles(arena, n)
        if not arena.failed:
            for i in range(n):
                for o in range(n_outputs):
                    if labels != NULL:
                        labels[i * n_outputs + o] = node.labels[rows[i] * n_outputs + o]
                    else:
                        values[i * n_outputs + o] = node.values[rows[i] * n_outputs + o]
                if weights != NULL:
                    weights[i] = node.weights[rows[i]]
                if counts != NULL:
                    counts[i] = node.counts[rows[i]]
        node.labels, node.values, node.weights, node.counts = labels, values, weights, counts
        return node

    cdef NodeTargets as_they_are(self) noexcept nogil:
        """The targets of all rows, in the rows' own order."""
        cdef NodeTargets node
        node.labels = NULL
        node.values = NULL
        node.weights = NULL
        node.counts = NULL
        node.times = NULL
        node.n_outputs = self.n_outputs
        node.n_stats = self.n_stats
        node.n_channels = self.n_channels
        if self.n_rows > 0:
            if self.has_labels:
                node.labels = &self.labels[0, 0]
            else:
                node.values = &self.values[0, 0]
            if self.has_weights:
                node.weights = &self.weights[0]
            if self.has_counts:
                node.counts = &self.counts[0]
        return node

    @staticmethod
    def joined(parts):
        """The targets of several sets of rows, one after another."""
        cdef Targets part, first = parts[0], taken
        labels, values, weights, counts = [], [], [], []
        for part in parts:
            if part.kind() != first.kind():
                raise ValueError("targets differ in kind")
            if part.n_rows == 0:
                continue
            if part.has_labels:
                labels.append(np.asarray(part.labels))
            else:
                values.append(np.asarray(part.values))
            if part.has_weights:
                weights.append(np.asarray(part.weights))
            if part.has_counts:
                counts.append(np.asarray(part.counts))
        if not (labels or values):
            return first
        taken = Targets(
            np.concatenate(labels) if labels else None,
            np.concatenate(values) if values else None, None, first.n_stats)
        if first.has_weights:
            taken.set_weights(
                np.concatenate(weights), np.concatenate(counts) if counts else None)
        return taken

    def kind(self):
        """What targets of other rows must have in common with these to be joined with them."""
        return self.n_stats, self.has_labels, self.has_weights, self.has_counts, self.n_outputs

    def __reduce__(self):
        # Values have been multiplied by weights already.
        return _targets_of, (
            np.asarray(self.labels) if self.has_labels else None,
            None if self.has_labels else np.asarray(self.values),
            np.asarray(self.weights) if self.has_weights else None,
            self.n_stats,
            np.asarray(self.counts) if self.has_counts else None,
        )

    def take(self, const int32_t[::1] rows not None):
        """The targets of some rows."""
        check_rows(rows, self.n_rows)
        chosen = np.asarray(rows)
        taken = Targets(
            np.asarray(self.labels)[chosen] if self.has_labels else None,
            None if self.has_labels else np.asarray(self.values)[chosen],
            None,
            self.n_stats,
        )
        if self.has_weights:  # which values have been multiplied by already
            taken.set_weights(
                np.asarray(self.weights)[chosen],
                np.asarray(self.counts)[chosen] if self.has_counts else None)
        return taken

    def totals(self, const int32_t[::1] rows not None):
        """Sum of the channels over some rows, in their order."""
        cdef:
            Py_ssize_t i
            double[::1] cell
            NodeTargets given = self.as_they_are()
        check_rows(rows, self.n_rows)
        out = np.zeros(self.n_channels)
        cell = out
        with nogil:
            for i in range(rows.shape[0]):
                add_row(&given, rows[i], &cell[0])
        return out

    def totals_by(
        self, const int32_t[::1] rows not None, const uint8_t[::1] groups not None, int n_groups
    ):
        """Sums of the channels over some rows, by the group of each: (n_groups, n_channels)."""
        cdef:
            Py_ssize_t i
            double[:, ::1] cells
            NodeTargets given = self.as_they_are()
        check_rows(rows, self.n_rows)
        if groups.shape[0] != rows.shape[0]:
            raise ValueError("rows and groups differ in number")
        for i in range(groups.shape[0]):
            if groups[i] >= n_groups:
                raise ValueError("groups out of range")
        out = np.zeros((n_groups, self.n_channels))
        cells = out
        with nogil:
            for i in range(rows.shape[0]):
                add_row(&given, rows[i], &cells[groups[i], 0])
        return out


def _targets_of(labels, values, weights, int n_stats, counts):
    """Targets whose values have been multiplied by weights."""
    targets = Targets(labels, values, None, n_stats)
    if weights is not None:
        (<Targets> targets).set_weights(weights, counts)
    return targets


cdef void count_labels(
    const bin_t* bins, const int32_t* rows, const int32_t* labels, Py_ssize_t n, int n_stats,
    double* cells,
) noexcept nogil:
    # The case that most fits spend their time in: one label, no weights.
    cdef Py_ssize_t i
    for i in range(n):
        cells[<Py_ssize_t> bins[rows[i]] * n_stats + labels[i]] += 1.0


cdef void sum_values(
    const bin_t* bins, const int32_t* rows, const double* values, Py_ssize_t n, double* cells
) noexcept nogil:
    # One value, no weights.
    cdef:
        Py_ssize_t i
        double* cell
    for i in range(n):
        cell = cells + 2 * <Py_ssize_t> bins[rows[i]]
        cell[0] += 1.0
        cell[1] += values[i]


cdef void sum_several_values(
    const bin_t* bins, const int32_t* rows, const double* values, int n_outputs, Py_ssize_t n,
    double* cells,
) noexcept nogil:
    # Several values, no weights.
    cdef:
        Py_ssize_t i
        int o
        double* cell
    if n_outputs == 2:
        # With three branches, the refinement of a tree spends its time here.
        for i in range(n):
            cell = cells + 3 * <Py_ssize_t> bins[rows[i]]
            cell[0] += 1.0
            cell[1] += values[2 * i]
            cell[2] += values[2 * i + 1]
        return
    for i in range(n):
        cell = cells + (1 + n_outputs) * <Py_ssize_t> bins[rows[i]]
        cell[0] += 1.0
        for o in range(n_outputs):
            cell[1 + o] += values[i * n_outputs + o]


cdef void add_repeated_rows(
    const bin_t* bins, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n, double* cells
) noexcept nogil:
    """Add rows that are there several times."""
    cdef:
        Py_ssize_t i
        int n_stats = targets.n_stats
        const int32_t* labels = targets.labels
        const double* times = targets.times
    if labels != NULL:
        for i in range(n):
            cells[<Py_ssize_t> bins[rows[i]] * n_stats + labels[i]] += times[i]
        return
    for i in range(n):
        add_repeated_row(targets, i, cells + <Py_ssize_t> bins[rows[i]] * n_stats)


cdef void add_rows(
    const bin_t* bins, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n, double* cells
) noexcept nogil:
    cdef:
        Py_ssize_t i
        int n_channels = targets.n_channels
    if targets.times != NULL:
        add_repeated_rows(bins, rows, targets, n, cells)
        return
    if targets.weights == NULL and targets.labels == NULL:
        if targets.n_outputs == 1:
            sum_values(bins, rows, targets.values, n, cells)
        else:
            sum_several_values(bins, rows, targets.values, targets.n_outputs, n, cells)
        return
    if targets.weights == NULL and targets.n_outputs == 1:
        count_labels(bins, rows, targets.labels, n, n_channels, cells)
        return
    for i in range(n):
        add_row(targets, i, cells + <Py_ssize_t> bins[rows[i]] * n_channels)


cdef void add_column(
    const Column* column, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n,
    double* cells,
) noexcept nogil:
    if column.kind == UINT8:
        add_rows(<const uint8_t*> column.data, rows, targets, n, cells)
    elif column.kind == UINT16:
        add_rows(<const uint16_t*> column.data, rows, targets, n, cells)
    else:
        add_rows(<const uint32_t*> column.data, rows, targets, n, cells)


cdef bint add_two_columns(
    const Column* column, const Column* other, const int32_t* rows, const NodeTargets* targets,
    Py_ssize_t n, double* cells, double* other_cells,
) noexcept nogil:
    """Add rows to the cells of two columns at once, which saves time; whether that was possible."""
    cdef:
        Py_ssize_t i, cell, other_cell
        int n_stats = targets.n_stats
        double value
        const uint8_t* bins = <const uint8_t*> column.data
        const uint8_t* other_bins = <const uint8_t*> other.data
    if column.kind != UINT8 or other.kind != UINT8 or targets.weights != NULL or (
            targets.n_outputs != 1):
        return False
    if targets.labels != NULL:
        for i in range(n):
            cell = <Py_ssize_t> bins[rows[i]] * n_stats + targets.labels[i]
            other_cell = <Py_ssize_t> other_bins[rows[i]] * n_stats + targets.labels[i]
            cells[cell] += 1.0
            other_cells[other_cell] += 1.0
        return True
    for i in range(n):
        cell = 2 * <Py_ssize_t> bins[rows[i]]
        other_cell = 2 * <Py_ssize_t> other_bins[rows[i]]
        value = targets.values[i]
        cells[cell] += 1.0
        cells[cell + 1] += value
        other_cells[other_cell] += 1.0
        other_cells[other_cell + 1] += value
    return True


cdef class PlacedTargets:
    """Targets in the order of the rows that stand at nodes; owns what `node` points to."""
    cdef NodeTargets node
    cdef object _labels
    cdef object _values
    cdef object _weights
    cdef object _counts

    cdef NodeTargets at(self, Py_ssize_t start) noexcept nogil:
        """Those from some place on."""
        return targets_from(self.node, start)


cdef bint gather_places(
    Targets targets, const int32_t[::1] order, Py_ssize_t start, Py_ssize_t stop,
    Py_ssize_t n_rows, NodeTargets* placed,
) noexcept nogil:
    """Copy the targets of the rows at some places there; whether all these rows exist."""
    cdef:
        Py_ssize_t i
        int o, n_outputs = placed.n_outputs
        int32_t* labels = <int32_t*> placed.labels
        double* values = <double*> placed.values
        double* weights = <double*> placed.weights
        double* counts = <double*> placed.counts
    for i in range(start, stop):
        if not 0 <= order[i] < n_rows:
            return False
        for o in range(n_outputs):
            if labels != NULL:
                labels[i * n_outputs + o] = targets.labels[order[i], o]
            else:
                values[i * n_outputs + o] = targets.values[order[i], o]
        if weights != NULL:
            weights[i] = targets.weights[order[i]]
        if counts != NULL:
            counts[i] = targets.counts[order[i]]
    return True


cdef object bounds_of_blocks(
    const int32_t[::1] order, const int64_t[::1] starts, const int64_t[::1] stops,
    Py_ssize_t n_rows,
):
    """Where the rows of each block of the table start in each node, and the end.

    If a node's rows do not ascend, its blocks are some other parts of them.
    """
    cdef:
        Py_ssize_t node, block, n_blocks = max(1, (n_rows + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK)
        int64_t low, high, middle
        int64_t[:, ::1] bound
    bounds = np.empty((starts.shape[0], n_blocks + 1), dtype=np.int64)
    bound = bounds
    for node in range(starts.shape[0]):
        bound[node, 0] = low = starts[node]
        for block in range(1, n_blocks):
            high = stops[node]
            while low < high:
                middle = (low + high) // 2
                if order[middle] < block * ROWS_PER_BLOCK:
                    low = middle + 1
                else:
                    high = middle
            bound[node, block] = low
        bound[node, n_blocks] = stops[node]
    return bounds


cdef PlacedTargets place_targets(
    Targets targets, const int32_t[::1] order, const int64_t[:, ::1] bounds, Py_ssize_t n_rows,
    int n_threads,
):
    """Bring the targets of some nodes' rows, which must be below `n_rows`, in their order.

    Bounds of blocks are given, see `bounds_of_blocks`.
    """
    cdef:
        PlacedTargets placed = PlacedTargets()
        int32_t[:, ::1] labels
        double[:, ::1] values
        double[::1] weights, counts
        Py_ssize_t node, block
        int n_outputs = targets.n_outputs, n_strange = 0
    placed.node.n_outputs = n_outputs
    placed.node.n_stats = targets.n_stats
    placed.node.n_channels = targets.n_channels
    if targets.has_labels:
        placed._labels = np.empty((order.shape[0], n_outputs), dtype=np.int32)
        labels = placed._labels
        placed.node.labels = &labels[0, 0] if labels.size else NULL
    else:
        placed._values = np.empty((order.shape[0], n_outputs))
        values = placed._values
        placed.node.values = &values[0, 0] if values.size else NULL
    if targets.has_weights:
        placed._weights = np.empty(order.shape[0])
        weights = placed._weights
        placed.node.weights = &weights[0] if weights.size else NULL
    if targets.has_counts:
        placed._counts = np.empty(order.shape[0])
        counts = placed._counts
        placed.node.counts = &counts[0] if counts.size else NULL
    for block in prange(bounds.shape[1] - 1, nogil=True, num_threads=n_threads,
                        schedule="dynamic"):
        for node in range(bounds.shape[0]):
            n_strange += not gather_places(
                targets, order, bounds[node, block], bounds[node, block + 1], n_rows,
                &placed.node)
    if n_strange:
        raise IndexError(f"rows must lie between 0 and {n_rows - 1}")
    return placed


cdef int check_places(
    const int32_t[::1] order, const int64_t[::1] starts, const int64_t[::1] stops
) except -1:
    """Refuse nodes whose places do not exist."""
    cdef Py_ssize_t node, n = order.shape[0]
    if starts.shape[0] != stops.shape[0]:
        raise ValueError("every node needs a start and a stop")
    for node in range(starts.shape[0]):
        if not 0 <= starts[node] <= stops[node] <= n:
            raise ValueError("a node's rows must lie in the order")
    return 0


cdef PlacedTargets targets_at(
    Columns bins, Targets targets, const int32_t[::1] order, const int64_t[:, ::1] bounds,
    bint in_order, int n_threads,
):
    """Targets in the order of the rows, which must exist, if they do not stand there already."""
    cdef PlacedTargets placed
    if not in_order:
        return place_targets(
            targets, order, bounds, min(bins.n_rows, targets.n_rows), n_threads)
    check_rows(order, bins.n_rows)
    if targets.n_rows < order.shape[0]:
        raise ValueError("targets must be as many as places in the order")
    placed = PlacedTargets()
    placed._labels = targets
    placed.node = targets.as_they_are()
    return placed


def bin_offsets(n_bins):
    """Where each feature's bins start in a histogram, the missing bin last, and the end."""
    return np.concatenate([[0], np.cumsum(np.asarray(n_bins, dtype=np.int64) + 1)])


def build_histograms(
    Columns bins not None,                    # IN: columns of bins
    Targets targets not None,                 # IN
    const int32_t[::1] order not None,        # IN: rows, every node's together
    const int64_t[::1] starts not None,       # IN: (n_nodes,) where each node's rows start in it
    const int64_t[::1] stops not None,        # IN: and end
    const int64_t[::1] offsets not None,      # IN: (n_features + 1,) where features' bins start
    double[:, :, ::1] histograms not None,    # OUT: (n_nodes, bins of the features, n_channels)
    int first, int last,                      # IN: features first..last-1
    int n_threads,
    bint in_order=False,                      # IN: whether targets stand in the rows' order
):
    """Sum the rows of some nodes by feature and bin.

    Sums are exact, see `Targets`, so they depend neither on the order of the rows nor on the
    number of threads.
    """
    cdef:
        Py_ssize_t task, group, n_nodes = starts.shape[0]
        Py_ssize_t n_pairs = (<Py_ssize_t> last - first + 1) // 2
        Py_ssize_t n_groups = n_nodes
        int f
        PlacedTargets placed
        const int64_t[:, ::1] bounds
    bins.check_bins(offsets, first, last)
    check_places(order, starts, stops)
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    if histograms.shape[0] != n_nodes or (
            histograms.shape[1] != offsets[last] - offsets[first]) or (
            histograms.shape[2] != targets.n_channels):
        raise ValueError("the histograms' shape does not fit the nodes, bins and targets")
    if first == last or n_nodes == 0 or histograms.shape[1] == 0:
        return
    bounds = bounds_of_blocks(order, starts, stops, bins.n_rows)
    placed = targets_at(bins, targets, order, bounds, in_order, n_threads)
    if bounds.shape[1] > 2:
        # Nodes that are summed together share what the cache holds.
        n_groups = min(n_nodes, max(1, TASKS_PER_THREAD * n_threads // n_pairs))
    with nogil:
        for task in prange(n_groups * n_pairs, num_threads=n_threads, schedule="dynamic"):
            group = task // n_pairs
            f = <int> (first + 2 * (task % n_pairs))
            fill_features(
                bins, f, min(f + 2, last), offsets, order, bounds, n_nodes * group // n_groups,
                n_nodes * (group + 1) // n_groups, placed,
                &histograms[0, offsets[f] - offsets[first], 0],
                histograms.shape[1] * histograms.shape[2])


cdef void fill_features(
    Columns bins, int first, int last, const int64_t[::1] offsets, const int32_t[::1] order,
    const int64_t[:, ::1] bounds, Py_ssize_t first_node, Py_ssize_t last_node,
    PlacedTargets placed, double* histograms, Py_ssize_t n_sums,
) noexcept nogil:
    """Sum some nodes' rows by the bins of one feature, or of two neighbours.

    All nodes' rows of a block of the table come before those of the next: in deep nodes, they are
    far apart, and would have to come from memory again for every node.
    """
    cdef:
        NodeTargets targets
        int f
        Py_ssize_t node, block, start, stop, size = offsets[last] - offsets[first]
        double* cells
    for node in range(first_node, last_node):
        memset(histograms + node * n_sums, 0, size * placed.node.n_channels * sizeof(double))
    for block in range(bounds.shape[1] - 1):
        for node in range(first_node, last_node):
            start, stop = bounds[node, block], bounds[node, block + 1]
            if start == stop:
                continue
            targets = placed.at(start)
            cells = histograms + node * n_sums
            if last == first + 2 and add_two_columns(
                    &bins.column[first], &bins.column[first + 1], &order[start], &targets,
                    stop - start, cells,
                    cells + (offsets[first + 1] - offsets[first]) * targets.n_channels):
                continue
            for f in range(first, last):
                add_column(
                    &bins.column[f], &order[start], &targets, stop - start,
                    cells + (offsets[f] - offsets[first]) * targets.n_channels)


def build_cells(
    Columns bins not None,                    # IN: columns of bins
    Targets targets not None,                 # IN
    const int32_t[::1] order not None,        # IN: rows, every node's together
    const int64_t[::1] starts not None,       # IN: (n_nodes,) where each node's rows start in it
    const int64_t[::1] stops not None,        # IN: and end
    const int64_t[::1] offsets not None,      # IN: (n_features + 1,) where features' bins start
    int first, int last,                      # IN: features first..last-1
    int n_threads,
):
    """Sum the rows of some nodes by feature and bin, where bins are too many for histograms.

    Returns
    -------
    cell_start : int64 array (n_nodes, n_features)
        Where the bins that hold rows of a node start in what follows.
    n_cells : int32 array (n_nodes, n_features)
        How many they are.
    bin_of_cell : int32 array (total cells,)
        Ascending within a node and feature.
    sums : float64 array (total cells, n_channels)
    """
    cdef:
        Py_ssize_t task, node, n_nodes = starts.shape[0], total = 0
        Py_ssize_t n_features = <Py_ssize_t> last - first
        int f
        const int64_t[:, ::1] bounds
        PlacedTargets placed
        Arenas arenas
        int64_t[:, ::1] cell_start
        int32_t[:, ::1] n_cells
        int32_t[::1] bin_of_cell
        double[:, ::1] sums
    bins.check_bins(offsets, first, last)
    check_places(order, starts, stops)
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    start_of_cells = np.zeros((n_nodes, n_features), dtype=np.int64)
    number_of_cells = np.zeros((n_nodes, n_features), dtype=np.int32)
    cell_start = start_of_cells
    n_cells = number_of_cells
    for node in range(n_nodes):
        for f in range(first, last):
            cell_start[node, f - first] = total
            total += min(stops[node] - starts[node], offsets[f + 1] - offsets[f])
    bins_of_cells = np.zeros(total, dtype=np.int32)
    sums_of_cells = room_for_sums(total, targets.n_channels)
    if total > 0:
        bin_of_cell = bins_of_cells
        sums = sums_of_cells
        bounds = bounds_of_blocks(order, starts, stops, bins.n_rows)
        placed = targets_at(bins, targets, order, bounds, False, n_threads)
        arenas = Arenas(n_threads)
        with nogil:
            for task in prange(n_nodes * n_features, num_threads=n_threads, schedule="dynamic"):
                node = task // n_features
                f = <int> (task % n_features)
                if stops[node] > starts[node]:
                    n_cells[node, f] = sum_cells_at(
                        &bins.column[first + f], order, placed, starts[node], stops[node],
                        <int> (offsets[first + f + 1] - offsets[first + f]),
                        &arenas.of_thread[threadid()], &bin_of_cell[cell_start[node, f]],
                        &sums[cell_start[node, f], 0])
        arenas.finish()
    return start_of_cells, number_of_cells, bins_of_cells, sums_of_cells


ctypedef struct PartCells:
    # Cells of some rows, as `build_cells` returns them.
    const int64_t* start
    const int32_t* n_cells
    const int32_t* bins
    const double* sums


cdef int32_t check_cells(
    const int64_t[::1] starts, const int32_t[::1] n_cells, const int32_t[::1] bins
) except -1:
    """Refuse cells that are not there; returns the greatest bin."""
    cdef:
        Py_ssize_t i, cell
        int32_t least = 0, greatest = 0
    for i in range(starts.shape[0]):
        if starts[i] < 0 or n_cells[i] < 0 or starts[i] + n_cells[i] > bins.shape[0]:
            raise ValueError("there are fewer cells than was said")
        for cell in range(starts[i], starts[i] + n_cells[i]):
            least = min(least, bins[cell])
            greatest = max(greatest, bins[cell])
    if least < 0:
        raise ValueError("bins must not be negative")
    return greatest


cdef void add_cells(
    const PartCells* part, Py_ssize_t place, Py_ssize_t width, double* sums, uint64_t* marks
) noexcept nogil:
    """Add the cells of a node and feature to the sums of their bins, and mark these."""
    cdef:
        Py_ssize_t cell, c, bin_, first = part.start[place]
    for cell in range(first, first + part.n_cells[place]):
        bin_ = part.bins[cell]
        marks[bin_ >> 6] |= <uint64_t> 1 << (bin_ & 63)
        for c in range(width):
            sums[bin_ * width + c] += part.sums[cell * width + c]


cdef Py_ssize_t take_cells(
    double* sums, uint64_t* marks, Py_ssize_t n_words, Py_ssize_t width, int32_t* bin_of_cell,
    double* sums_of_cells,
) noexcept nogil:
    """Move the sums of marked bins to cells, and leave none behind; returns how many there are."""
    cdef:
        Py_ssize_t word, bin_, c, n = 0
    for word in range(n_words):
        while marks[word]:
            bin_ = 64 * word + lowest_bit(marks[word])
            marks[word] &= marks[word] - 1
            bin_of_cell[n] = <int32_t> bin_
            for c in range(width):
                sums_of_cells[n * width + c] = sums[bin_ * width + c]
                sums[bin_ * width + c] = 0.0
            n += 1
    return n


def join_cells(list parts not None):
    """Cells of several holders of rows as those of one; sums of the same bin are added up.

    Parts are tuples as `build_cells` returns them, of the same nodes and features, and so is the
    result. It has no gaps.
    """
    cdef:
        Py_ssize_t i, place, n_parts = len(parts), n_places, n_words, width, most = 0, total = 0
        int32_t greatest = 0
        const int64_t[::1] start
        const int32_t[::1] n_cells, bins
        const double[:, ::1] sums
        int64_t[::1] new_start
        int32_t[::1] n_new, bin_of_cell
        double[:, ::1] new_sums
        double[::1] scratch
        uint64_t[::1] marks
        PartCells* each
    if not parts:
        raise ValueError("there is nothing to join")
    shape, width = parts[0][1].shape, parts[0][3].shape[1]
    n_places = parts[0][1].size
    each = <PartCells*> calloc(n_parts, sizeof(PartCells))
    if each == NULL:
        raise MemoryError("no memory to join cells")
    try:
        for i, part in enumerate(parts):
            if part[0].shape != shape or part[1].shape != shape or part[3].shape != (
                    len(part[2]), width):
                raise ValueError("parts must have the same nodes, features and sums")
            start, n_cells, bins, sums = part[0].reshape(-1), part[1].reshape(-1), part[2], part[3]
            greatest = max(greatest, check_cells(start, n_cells, bins))
            most += bins.shape[0]
            if n_places and bins.shape[0] and width:
                each[i] = PartCells(&start[0], &n_cells[0], &bins[0], &sums[0, 0])
            elif n_places:
                each[i] = PartCells(&start[0], &n_cells[0], NULL, NULL)
        starts_of_cells = np.zeros(n_places, dtype=np.int64)
        number_of_cells = np.zeros(n_places, dtype=np.int32)
        bins_of_cells, sums_of_cells = np.empty(most, dtype=np.int32), np.empty((most, width))
        if most and width:
            n_words = (greatest >> 6) + 1
            scratch, marks = np.zeros(64 * n_words * width), np.zeros(n_words, dtype=np.uint64)
            new_start, n_new = starts_of_cells, number_of_cells
            bin_of_cell, new_sums = bins_of_cells, sums_of_cells
            with nogil:
                for place in range(n_places):
                    new_start[place] = total
                    for i in range(n_parts):
                        add_cells(&each[i], place, width, &scratch[0], &marks[0])
                    if total < most:
                        n_new[place] = <int32_t> take_cells(
                            &scratch[0], &marks[0], n_words, width, &bin_of_cell[total],
                            &new_sums[total, 0])
                    total += n_new[place]
    finally:
        free(each)
    return (
        starts_of_cells.reshape(shape), number_of_cells.reshape(shape),
        bins_of_cells[:total].copy(), sums_of_cells[:total].copy(),
    )


cdef int sum_few_bins(
    const Column* column, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n,
    int32_t* bin_of_cell, double* sums,
) noexcept nogil:
    """Sum each bin's rows, of at most 256 bins; returns the number of bins that hold rows."""
    cdef:
        uint64_t held[4]
        uint8_t cell_of_bin[256]
        Py_ssize_t i
        uint32_t b
        int n_cells = 0, word
        uint64_t bits
    memset(held, 0, sizeof(held))
    for i in range(n):
        b = code_at(column, rows[i])
        held[b >> 6] |= <uint64_t> 1 << (b & 63)
    for word in range(4):
        bits = held[word]
        while bits:
            b = 64 * word + lowest_bit(bits)
            cell_of_bin[b] = n_cells
            bin_of_cell[n_cells] = b
            n_cells += 1
            bits &= bits - 1
    if targets.times != NULL:
        for i in range(n):
            b = cell_of_bin[code_at(column, rows[i])]
            add_repeated_row(targets, i, sums + <Py_ssize_t> b * targets.n_channels)
        return n_cells
    if targets.labels != NULL and targets.weights == NULL and targets.n_outputs == 1:
        for i in range(n):
            b = cell_of_bin[code_at(column, rows[i])]
            sums[<Py_ssize_t> b * targets.n_channels + targets.labels[i]] += 1.0
        return n_cells
    for i in range(n):
        b = cell_of_bin[code_at(column, rows[i])]
        add_row(targets, i, sums + <Py_ssize_t> b * targets.n_channels)
    return n_cells


cdef int sum_sorted(
    const Column* column, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n,
    int n_bins, Arena* arena, int32_t* bin_of_cell, double* sums,
) noexcept nogil:
    """Sort a node's rows by bin, then sum each bin's rows; returns the number of bins."""
    cdef:
        Mark mark = arena_mark(arena)
        uint64_t* items = <uint64_t*> take_doubles(arena, n)
        uint64_t* scratch = <uint64_t*> take_doubles(arena, n)
        double* cell
        Py_ssize_t i
        int32_t b, last = -1
        int n_cells = 0
    if arena.failed or must_stop(arena, n):
        return 0
    for i in range(n):
        items[i] = (<uint64_t> code_at(column, rows[i]) << 32) | <uint64_t> i
    sort_items(items, scratch, n, n_bins)
    for i in range(n):
        b = <int32_t> (items[i] >> 32)
        if b != last:
            bin_of_cell[n_cells] = b
            n_cells += 1
            last = b
        cell = sums + (n_cells - 1) * targets.n_channels
        if targets.times != NULL:
            add_repeated_row(targets, <uint32_t> items[i], cell)
        else:
            add_row(targets, <uint32_t> items[i], cell)
    arena_release(arena, mark)
    return n_cells


cdef int sum_cells_of(
    const Column* column, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n,
    int n_bins, Arena* arena, int32_t* bin_of_cell, double* sums,
) noexcept nogil:
    memset(sums, 0, min(n, n_bins) * targets.n_channels * sizeof(double))
    if n_bins <= 256:
        return sum_few_bins(column, rows, targets, n, bin_of_cell, sums)
    return sum_sorted(column, rows, targets, n, n_bins, arena, bin_of_cell, sums)


cdef int sum_cells_at(
    const Column* column, const int32_t[::1] order, PlacedTargets placed, Py_ssize_t start,
    Py_ssize_t stop, int n_bins, Arena* arena, int32_t* bin_of_cell, double* sums,
) noexcept nogil:
    """The same for the rows at some places."""
    cdef NodeTargets targets = placed.at(start)
    return sum_cells_of(
        column, &order[start], &targets, stop - start, n_bins, arena, bin_of_cell, sums)


# --- histograms that are never kept ---------------------------------------------------------------

cdef class LevelRows:
    """The rows of some nodes, to be summed when a search asks for a node and feature.

    So no histogram leaves the cache, and none is summed of a feature that a node may not split on.

    Parameters
    ----------
    bins : Columns
    targets : Targets
    rows : NodeRows
        They must not be sent on before the search is done.
    nodes : int32 array
    """

    def __init__(
        self, Columns bins not None, Targets targets not None, NodeRows rows not None,
        const int32_t[::1] nodes not None,
    ):
        if rows.n_rows > min(bins.n_rows, targets.n_rows):
            raise ValueError("there are fewer rows of bins, or targets, than of nodes")
        rows.check_nodes(nodes)
        self.bins, self.targets, self.rows, self.nodes = bins, targets, rows, nodes
        # Sums of rows that are drawn several times are found at once.
        self.counts_repeats = (
            rows.has_repeats and not targets.has_weights and targets.n_outputs == 1)

    cdef RowsToSum gather(self, Py_ssize_t i, Arena* arena) noexcept nogil:
        """Bring the rows of the i-th node together; they last until the arena is released."""
        cdef:
            int64_t start = self.rows._start[self.nodes[i]]
            RowsToSum found
        found.n = self.rows._stop[self.nodes[i]] - start
        found.rows = &self.rows._order[start]
        if self.counts_repeats:
            self.gather_repeats(&found, arena)
        else:
            found.targets = self.targets.gather(found.rows, found.n, arena)
        return found

    cdef void gather_repeats(self, RowsToSum* found, Arena* arena) noexcept nogil:
        """Bring rows together that stand there several times, next to each other, as one each."""
        cdef:
            NodeTargets given = self.targets.as_they_are()
            int32_t* rows = take_ints(arena, found.n)
            int32_t* labels = NULL
            double* values = NULL
            double* times = take_doubles(arena, found.n)
            Py_ssize_t i, n = 0
            int32_t row, last = -1
        if given.labels != NULL:
            labels = take_ints(arena, found.n)
        else:
            values = take_doubles(arena, found.n)
        if arena.failed:
            return
        for i in range(found.n):
            row = found.rows[i]
            n += row != last
            rows[n - 1] = row
            times[n - 1] = 1.0 if row != last else times[n - 1] + 1.0
            last = row
        for i in range(n):
            if labels != NULL:
                labels[i] = given.labels[rows[i]]
            else:
                values[i] = given.values[rows[i]]
        given.labels, given.values, given.times = labels, values, times
        found.targets, found.rows, found.n = given, rows, n

    cdef int sum_feature(
        self, const RowsToSum* given, int f, int n_bins, Arena* arena, int32_t** bin_of_cell,
        double** sums,
    ) noexcept nogil:
        """Sums of a node's rows by the bins of a feature; returns how many cells there are.

        These are all bins, where `bin_of_cell` becomes NULL, or those alone that hold rows. They
        last until the arena is released.
        """
        cdef:
            const Column* column = &self.bins.column[f]
            Py_ssize_t n_cells = n_bins
        bin_of_cell[0] = NULL
        if BINS_PER_ROW * given.n < n_bins:
            n_cells = given.n
            bin_of_cell[0] = take_ints(arena, n_cells)
        sums[0] = take_doubles(arena, n_cells * given.targets.n_channels)
        if arena.failed:
            return 0
        if bin_of_cell[0] != NULL:
            return sum_cells_of(
                column, given.rows, &given.targets, given.n, n_bins, arena, bin_of_cell[0], sums[0])
        memset(sums[0], 0, n_cells * given.targets.n_channels * sizeof(double))
        add_column(column, given.rows, &given.targets, given.n, sums[0])
        return n_bins


def sum_nodes(
    Targets targets not None,                 # IN
    const int32_t[::1] order not None,        # IN: rows, every node's together
    const int64_t[::1] starts not None,       # IN: (n_nodes,) where each node's rows start in it
    const int64_t[::1] stops not None,        # IN: and end
    int n_threads=1,
):
    """Sums of the channels over the rows of some nodes, (n_nodes, n_channels)."""
    cdef:
        Py_ssize_t node, block, n_blocks, n_nodes = starts.shape[0]
        Py_ssize_t n_channels = targets.n_channels
        int n_strange = 0, n_parts = min(max(1, n_threads), MAX_PARTS)
        const int64_t[:, ::1] bounds
        NodeTargets given = targets.as_they_are()
        double[:, :, ::1] sums
    check_places(order, starts, stops)
    if n_threads < 1:
        raise ValueError("n_threads must be at least 1")
    # No line of the cache has what two threads write.
    result = np.zeros((n_nodes, n_parts, n_channels + 8))
    if n_nodes and n_channels:
        sums = result
        bounds = bounds_of_blocks(order, starts, stops, targets.n_rows)
        n_blocks = bounds.shape[1] - 1
        for block in prange(n_blocks, nogil=True, num_threads=n_parts, schedule="dynamic"):
            for node in range(n_nodes):
                n_strange += not add_all(
                    &given, targets.n_rows, order, bounds[node, block], bounds[node, block + 1],
                    &sums[node, threadid(), 0])
    if n_strange:
        raise IndexError(f"rows must lie between 0 and {targets.n_rows - 1}")
    return result.sum(axis=1)[:, :n_channels] if n_parts > 1 else result[:, 0, :n_channels]


cdef bint add_all(
    const NodeTargets* targets, Py_ssize_t n_rows, const int32_t[::1] order, Py_ssize_t start,
    Py_ssize_t stop, double* cell,
) noexcept nogil:
    """Add the rows at some places; whether all of them exist."""
    cdef:
        Py_ssize_t i
        int64_t ones = 0
    if targets.labels != NULL and targets.weights == NULL and targets.n_stats == 2 and (
            targets.n_outputs == 1):
        # Counted without waiting for the last sum to be stored.
        for i in range(start, stop):
            if not 0 <= order[i] < n_rows:
                return False
            ones += targets.labels[order[i]]
        cell[0] += <double> (stop - start - ones)
        cell[1] += <double> ones
        return True
    for i in range(start, stop):
        if not 0 <= order[i] < n_rows:
            return False
        add_row(targets, order[i], cell)
    return True
