"""Grids: a pair's cells, and the oblique inner tree that grows on them instead of the rows.

A greedy tree is blind to a checkerboard, where no first cut gains anything. So the best crossing of
two cuts at right angles is looked for, too, and other trees start from there.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, must_stop, take_branches, take_doubles,
    take_ints,
)
from shapetree._core.columns cimport UINT8, Column, Columns, code_at
from shapetree._core.criterion cimport (
    ABSOLUTE, ENTROPY, SQUARED, CriterionInfo, impurity, n_values, value_of, weight_of,
)
from shapetree._core.histogram cimport NodeTargets, Targets, add_row, check_rows, targets_from
from shapetree._core.pair_tree cimport (
    PairNode, PairShape, PairTree, add_children, can_pay, choose_branches, grow, max_leaves_of,
    set_price,
)
from shapetree._core.search cimport Options

cdef extern from "vector.h":
    int ranges_of_buckets(
        const uint8_t* bucket, int n_orientations, int n_active, const int32_t* cells, int n_cells,
        uint8_t* least, uint8_t* greatest) noexcept nogil
    void sum_by_bucket(
        const double* planes, int stride, const uint8_t* bucket, int n_orientations, int n_active,
        const int32_t* cells, int n_cells, const uint8_t* least, int width, double* sums
    ) noexcept nogil
    void sums_to_lanes(
        const double* sums, int n_active, int width, int stride, int n_planes, int n_lanes,
        double* buckets) noexcept nogil
    void best_cuts_of_orientations(
        const double* buckets, const double* total, int n_buckets, int n_planes, int n_values,
        int rows_plane, int n_lanes, int n_outputs, bint entropy, double min_rows, double* prefix,
        double* here, double* loss, double* position) noexcept nogil
    void loss_of_crossings(
        const double* image, int m, int n_stats, int n_outputs, bint entropy, double* loss
    ) noexcept nogil

cdef enum:
    N_CROSSING = 16          # buckets of a projection where crossings are sought
    ROWS_PER_BLOCK = 16_384  # whose groups are looked up at a time
    MIN_ROWS_PER_PART = 2048  # rows that are worth cells of a thread's own
    MAX_OWN_CELLS = 1 << 23  # of all threads
    MANY_CELLS = 256         # so many are in buckets all over the plane

# A greedy tree that tells this share of what its pair has to tell is good enough.
cdef double GREEDY_SHARE = 0.8


cdef void add_rows(
    const NodeTargets* targets, const uint8_t* code_a, const uint8_t* code_b, Py_ssize_t n,
    int stride, double* cells,
) noexcept nogil:
    """Add rows to a pair's cells, by their two groups."""
    cdef:
        int n_channels = targets.n_channels
        Py_ssize_t k
        double* cell
    if targets.labels != NULL and targets.n_outputs == 1:
        if targets.weights == NULL:
            for k in range(n):
                cells[(code_a[k] * stride + code_b[k]) * n_channels + targets.labels[k]] += 1.0
            return
        for k in range(n):
            cell = cells + (code_a[k] * stride + code_b[k]) * n_channels
            cell[targets.labels[k]] += targets.weights[k]
            cell[n_channels - 1] += targets.counts[k] if targets.counts != NULL else 1.0
        return
    for k in range(n):
        add_row(targets, k, cells + (code_a[k] * stride + code_b[k]) * n_channels)


cdef void look_up_groups(
    const Column* column, const uint8_t* group_of_bin, const int32_t* rows, Py_ssize_t n,
    uint8_t* group,
) noexcept nogil:
    cdef Py_ssize_t k
    if column.kind == UINT8:
        for k in range(n):
            group[k] = group_of_bin[(<const uint8_t*> column.data)[rows[k]]]
    else:
        for k in range(n):
            group[k] = group_of_bin[code_at(column, rows[k])]


cdef int check_pairs(const int32_t[:, ::1] pairs, int n_features) except -1:
    """Refuse pairs of features that do not exist."""
    cdef Py_ssize_t p
    if pairs.shape[1] != 2:
        raise ValueError("pairs must name two features each")
    for p in range(pairs.shape[0]):
        if not (0 <= pairs[p, 0] < n_features and 0 <= pairs[p, 1] < n_features):
            raise ValueError("pairs must name two features each")
    return 0


ctypedef struct GridSums:
    # What grids are summed of.
    const Column* columns         # of bins
    const int32_t* rows           # the node's
    const int64_t* offsets
    const uint8_t* group_of_bin
    int n_groups
    const int32_t* pairs          # two features each
    const int32_t* used           # features that are in some pair
    int n_used
    const int32_t* slot           # of each feature among these
    int n_cells                   # of a pair, and their channels


cdef void add_range(
    const GridSums* sums, Targets targets, bint in_order, Py_ssize_t first, Py_ssize_t last,
    int first_pair, int last_pair, bint is_new, Arena* arena, double* cells,
) noexcept nogil:
    """Add some rows to the cells of some pairs, of which the first are given.

    New cells hold nothing yet, not even zeros.
    """
    cdef:
        Py_ssize_t n
        Mark mark = arena_mark(arena)
        NodeTargets given = targets.as_they_are(), block
        bint are_classes = given.labels != NULL and given.weights == NULL and (
            given.n_outputs == 1 and sums.n_cells <= 65536)
    while first < last and not must_stop(arena, (last - first) * (last_pair - first_pair)):
        n = min(<Py_ssize_t> ROWS_PER_BLOCK, last - first)
        if in_order:
            block = targets_from(given, first)
        else:
            block = targets.gather(sums.rows + first, n, arena)
        if arena.failed:
            return
        if is_new and not (are_classes and n >= sums.n_cells):
            memset(cells, 0, <size_t> (last_pair - first_pair) * sums.n_cells * sizeof(double))
            is_new = False
        if are_classes:
            count_block(
                sums, sums.rows + first, block.labels, n, first_pair, last_pair, is_new, arena,
                cells)
        else:
            add_block(sums, sums.rows + first, &block, n, first_pair, last_pair, arena, cells)
        is_new = False
        arena_release(arena, mark)
        first += n


cdef void add_block(
    const GridSums* sums, const int32_t* rows, const NodeTargets* targets, Py_ssize_t n,
    int first_pair, int last_pair, Arena* arena, double* cells,
) noexcept nogil:
    """Add a block of rows to the cells of some pairs."""
    cdef:
        Py_ssize_t p
        int f
        const int32_t* pair
        uint8_t* codes = <uint8_t*> take_branches(arena, sums.n_used * n)
    if arena.failed:
        return
    for f in range(sums.n_used):
        look_up_groups(
            &sums.columns[sums.used[f]], sums.group_of_bin + sums.offsets[sums.used[f]], rows, n,
            codes + f * n)
    for p in range(first_pair, last_pair):
        pair = sums.pairs + 2 * p
        add_rows(targets, codes + sums.slot[pair[0]] * n, codes + sums.slot[pair[1]] * n, n,
                 sums.n_groups, cells + (p - first_pair) * sums.n_cells)


cdef void count_block(
    const GridSums* sums, const int32_t* rows, const int32_t* labels, Py_ssize_t n,
    int first_pair, int last_pair, bint is_new, Arena* arena, double* cells,
) noexcept nogil:
    """The same for one class of each row, all of the same weight.

    Cells may be new if rows are as many.

    A row's cell is the sum of two numbers, of its first group, and of its second one and class.
    """
    cdef:
        Py_ssize_t p, k
        int f, first = -1, n_stats = sums.n_cells // (sums.n_groups * sums.n_groups)
        const int32_t* pair
        uint16_t* lows = <uint16_t*> take_branches(arena, 2 * sums.n_used * n)
        uint16_t* low
        uint16_t* high = <uint16_t*> take_branches(arena, 2 * n)
        int32_t* counts = take_ints(arena, sums.n_cells)
    if arena.failed:
        return
    for f in range(sums.n_used):
        look_up_classes(
            &sums.columns[sums.used[f]], sums.group_of_bin + sums.offsets[sums.used[f]], rows,
            labels, n, n_stats, lows + f * n)
    for p in range(first_pair, last_pair):
        pair = sums.pairs + 2 * p
        if pair[0] != first:
            first = pair[0]
            low = lows + sums.slot[first] * n
            for k in range(n):
                high[k] = <uint16_t> ((low[k] - labels[k]) * sums.n_groups)
        low = lows + sums.slot[pair[1]] * n
        if n < sums.n_cells:
            for k in range(n):
                cells[high[k] + low[k]] += 1.0
        else:
            # Whole numbers are faster to count with.
            memset(counts, 0, sums.n_cells * sizeof(int32_t))
            count_cells(high, low, n, counts)
            for k in range(sums.n_cells):
                cells[k] = counts[k] if is_new else cells[k] + counts[k]
        cells += sums.n_cells


cdef void look_up_classes(
    const Column* column, const uint8_t* group_of_bin, const int32_t* rows, const int32_t* labels,
    Py_ssize_t n, int n_stats, uint16_t* cell,
) noexcept nogil:
    """Where the rows' groups and classes are among the cells of one group of another feature."""
    cdef Py_ssize_t k
    if column.kind == UINT8:
        for k in range(n):
            cell[k] = <uint16_t> (
                group_of_bin[(<const uint8_t*> column.data)[rows[k]]] * n_stats + labels[k])
    else:
        for k in range(n):
            cell[k] = <uint16_t> (group_of_bin[code_at(column, rows[k])] * n_stats + labels[k])


cdef void count_cells(
    const uint16_t* high, const uint16_t* low, Py_ssize_t n, int32_t* counts
) noexcept nogil:
    """Count rows by the sum of two numbers, which is below 2**16: so four are added at once."""
    cdef:
        Py_ssize_t k
        uint64_t some, others
    for k in range(0, n - 3, 4):
        memcpy(&some, high + k, sizeof(some))
        memcpy(&others, low + k, sizeof(others))
        some += others
        counts[some & 0xFFFF] += 1
        counts[(some >> 16) & 0xFFFF] += 1
        counts[(some >> 32) & 0xFFFF] += 1
        counts[some >> 48] += 1
    for k in range(n // 4 * 4, n):
        counts[high[k] + low[k]] += 1


def sum_grids(
    Columns bins not None,                        # IN: columns of bins
    Targets targets not None,                     # IN
    const int32_t[::1] rows not None,             # IN: the node's rows
    const int64_t[::1] offsets not None,          # IN: (n_features + 1,) where features' bins start
    const uint8_t[::1] group_of_bin not None,     # IN: (offsets[-1],) below n_groups
    int n_groups,                                 # IN: that of missing values included
    const int32_t[:, ::1] pairs not None,         # IN: (n_pairs, 2)
    double[:, :, ::1] cells not None,             # OUT: (n_pairs, n_groups ** 2, n_channels)
    int n_threads,
    bint in_order=False,                          # IN: whether targets stand in the rows' order
):
    """Sum the channels of a node's rows by the two groups of each pair's features.

    Grids of disjoint sets of rows add up, whoever sums. So every thread takes some rows and adds
    them to cells of its own; where rows are few, or cells many, it takes some pairs instead.
    """
    cdef:
        int p, f, side, n_pairs = pairs.shape[0], n_parts
        Py_ssize_t b, i, n = rows.shape[0], size
        uint8_t largest = 0
        GridSums sums
        int32_t[::1] slot
        int32_t[::1] used
        double[:, ::1] own
        double* total
        Arenas arenas
    bins.check_bins(offsets, 0, bins.n_columns)
    check_rows(rows, bins.n_rows if in_order else min(bins.n_rows, targets.n_rows))
    check_pairs(pairs, bins.n_columns)
    for b in range(group_of_bin.shape[0]):
        largest = max(largest, group_of_bin[b])
    if group_of_bin.shape[0] != offsets[bins.n_columns] or not largest < n_groups <= 256:
        raise ValueError("there must be a group below n_groups for each bin")
    if cells.shape[0] != n_pairs or cells.shape[1] != n_groups * n_groups or (
            cells.shape[2] != targets.n_channels) or cells.shape[1] * cells.shape[2] >= 2**31:
        raise ValueError("the cells' shape does not fit the pairs, groups and targets")
    if n_threads < 1 or (in_order and n > targets.n_rows):
        raise ValueError("there must be one thread at least, and a target for each row")
    if n_pairs == 0 or targets.n_channels == 0:
        return
    if n == 0:
        cells[:] = 0.0
        return
    slot = np.full(bins.n_columns, -1, dtype=np.int32)
    used = np.empty(min(bins.n_columns, 2 * n_pairs), dtype=np.int32)
    sums.n_used = 0
    for p in range(n_pairs):
        for side in range(2):
            f = pairs[p, side]
            if slot[f] < 0:
                slot[f] = sums.n_used
                used[sums.n_used] = f
                sums.n_used += 1
    sums.columns = bins.column
    sums.rows = &rows[0]
    sums.offsets = &offsets[0]
    sums.group_of_bin = &group_of_bin[0]
    sums.n_groups = n_groups
    sums.pairs = &pairs[0, 0]
    sums.used = &used[0]
    sums.slot = &slot[0]
    sums.n_cells = <int> (cells.shape[1] * cells.shape[2])
    size = <Py_ssize_t> n_pairs * sums.n_cells
    arenas = Arenas(n_threads)
    if n_threads == 1 or n < MIN_ROWS_PER_PART * <Py_ssize_t> n_threads or (
            (n_threads - 1) * size > MAX_OWN_CELLS):
        n_parts = min(n_threads, n_pairs)
        # As many threads as ever: OpenMP would end the others, and start them again.
        for p in prange(n_parts, nogil=True, num_threads=n_threads, schedule="static", chunksize=1):
            add_range(&sums, targets, in_order, 0, n, n_pairs * p // n_parts,
                      n_pairs * (p + 1) // n_parts, True, &arenas.of_thread[threadid()],
                      &cells[n_pairs * p // n_parts, 0, 0])
        arenas.finish()
        return
    own = np.zeros((n_threads - 1, size))
    total = &cells[0, 0, 0]
    memset(total, 0, size * sizeof(double))
    n_parts = <int> max(n_threads, n // ROWS_PER_BLOCK)
    for p in prange(n_parts, nogil=True, num_threads=n_threads, schedule="dynamic"):
        add_range(&sums, targets, in_order, n * p // n_parts, n * (p + 1) // n_parts, 0, n_pairs,
                  False, &arenas.of_thread[threadid()],
                  &own[threadid() - 1, 0] if threadid() else total)
    arenas.finish()
    for i in prange(size, nogil=True, num_threads=n_threads, schedule="static"):
        for p in range(n_threads - 1):
            total[i] += own[p, i]


cdef inline int bucket_of(const Grid* grid, int orientation, int cell) noexcept nogil:
    """Where a cell lies along an orientation."""
    return grid.bucket[cell * grid.n_orientations + orientation]


cdef void fill_planes(Grid* grid) noexcept nogil:
    """Fill in what cuts are chosen by, once the cells' statistics are there."""
    cdef:
        const CriterionInfo* c = grid.c
        int i, j, n_stats = c.n_stats
        bint weighted = False, counted
        double* planes
        const double* s
    for i in range(grid.n_cells):
        weighted |= weight_of(c, grid.stats + i * n_stats) != grid.n_rows[i]
    # A side that holds some weight holds a row.
    counted = weighted and grid.min_rows > 1
    grid.n_values = n_values(c)
    grid.n_planes = 1 + grid.n_values + counted
    grid.plane_stride = (grid.n_planes + 3) // 4 * 4
    grid.rows_plane = 1 + grid.n_values if counted else 0
    grid.least_rows = 1e-300 if weighted and not counted else grid.min_rows
    grid.planes = take_doubles(grid.arena, <size_t> grid.n_cells * grid.plane_stride)
    if grid.arena.failed:
        return
    memset(grid.planes, 0, <size_t> grid.n_cells * grid.plane_stride * sizeof(double))
    for i in range(grid.n_cells):
        planes = grid.planes + i * grid.plane_stride
        s = grid.stats + i * n_stats
        planes[grid.rows_plane] = grid.n_rows[i]
        planes[0] = weight_of(c, s)
        for j in range(grid.n_values):
            planes[1 + j] = value_of(c, s, j)


cdef double gain_of_cut(
    Grid* grid, const PairNode* node, const double* total, int orientation, int position
) noexcept nogil:
    """Impurity that a cut of a leaf with these statistics takes away."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int n_stats = grid.c.n_stats, i, j, cell
        double* low = take_doubles(grid.arena, n_stats)
        double* high = take_doubles(grid.arena, n_stats)
        double gain
    if grid.arena.failed:
        return 0.0
    memset(low, 0, n_stats * sizeof(double))
    for i in range(node.start, node.stop):
        cell = grid.order[i]
        if bucket_of(grid, orientation, cell) < position:
            for j in range(n_stats):
                low[j] += grid.stats[cell * n_stats + j]
    for j in range(n_stats):
        high[j] = total[j] - low[j]
    gain = impurity(grid.c, total) - impurity(grid.c, low) - impurity(grid.c, high)
    arena_release(grid.arena, mark)
    return gain


cdef void describe(Grid* grid, PairTree* tree, int leaf) noexcept nogil:
    """Sum a leaf's cells; it has no cut yet."""
    cdef:
        PairNode* node = &tree.nodes[leaf]
        int n_stats = grid.c.n_stats, i, j, cell
        double* total = tree.stats + leaf * n_stats
    node.n_rows = 0
    node.orientation = -1
    node.gain = 0.0
    memset(total, 0, n_stats * sizeof(double))
    for i in range(node.start, node.stop):
        cell = grid.order[i]
        node.n_rows += grid.n_rows[cell]
        for j in range(n_stats):
            total[j] += grid.stats[cell * n_stats + j]
    set_price(grid.c, grid.region_penalty, 1.0, tree, leaf)


cdef void describe_and_cut(void* points, PairTree* tree, int leaf) noexcept nogil:
    """Sum a leaf's cells and find its best cut between buckets of any orientation."""
    cdef:
        Grid* grid = <Grid*> points
        PairNode* node = &tree.nodes[leaf]
    describe(grid, tree, leaf)
    if (node.n_rows >= 2 * <int64_t> grid.min_rows and node.stop - node.start > 1
            and can_pay(grid.c, tree, leaf)):
        find_cut(grid, node, tree.stats + leaf * grid.c.n_stats)


cdef void find_cut(Grid* grid, PairNode* node, const double* total) noexcept nogil:
    """Find a leaf's best cut, all orientations at once."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int first = grid.first_active, n_active = grid.stop_active - first
        int n_planes = grid.n_planes, stride = grid.plane_stride, n_cells = node.stop - node.start
        # Lanes of a vector register.
        int n_lanes = (n_active + 7) // 8 * 8 if n_active > 4 else 4
        size_t size = n_planes * n_lanes
        double* sums = take_doubles(grid.arena, <size_t> n_active * N_BUCKETS * stride)
        double* buckets = take_doubles(grid.arena, N_BUCKETS * size)
        double* prefix = take_doubles(grid.arena, size)
        double* whole = take_doubles(grid.arena, n_planes)
        double* here = take_doubles(grid.arena, n_lanes)
        double* loss = take_doubles(grid.arena, n_lanes)
        double* position = take_doubles(grid.arena, n_lanes)
        uint8_t* least_bucket = <uint8_t*> take_branches(grid.arena, n_active)
        uint8_t* greatest_bucket = <uint8_t*> take_branches(grid.arena, n_active)
        const int32_t* cells = grid.order + node.start
        double least
        int b, j, h, width, best = -1
    if grid.arena.failed:
        return
    width = N_BUCKETS
    if n_cells < MANY_CELLS:
        width = ranges_of_buckets(
            grid.bucket + first, grid.n_orientations, n_active, cells, n_cells, least_bucket,
            greatest_bucket)
    else:
        memset(least_bucket, 0, n_active)
    if width > 1:
        sum_by_bucket(grid.planes, stride, grid.bucket + first, grid.n_orientations, n_active,
                      cells, n_cells, least_bucket, width, sums)
        sums_to_lanes(sums, n_active, width, stride, n_planes, n_lanes, buckets)
        memset(whole, 0, n_planes * sizeof(double))
        for b in range(width):
            for j in range(n_planes):
                whole[j] += sums[b * stride + j]
        best_cuts_of_orientations(
            buckets, whole, width, n_planes, grid.n_values, grid.rows_plane, n_lanes,
            grid.c.n_outputs, grid.c.kind == ENTROPY, grid.least_rows, prefix, here, loss,
            position)
        least = INFINITY
        for h in range(n_active):
            # Rounding must not choose: of equals, the first wins, and the axes come first.
            if position[h] > 0.0 and loss[h] < least - 1e-10 * whole[0]:
                least = loss[h]
                best = h
    if best >= 0:
        node.orientation = first + best
        node.threshold = least_bucket[best] + position[best]
        if grid.c.kind == ABSOLUTE:
            node.gain = gain_of_cut(grid, node, total, first + best, <int> node.threshold)
        else:
            node.gain = gain_of_sums(
                grid, total, sums + best * width * stride, <int> position[best])
    arena_release(grid.arena, mark)


cdef double gain_of_sums(
    Grid* grid, const double* total, const double* sums, int position
) noexcept nogil:
    """Impurity that a cut takes away, from the sums by bucket along its orientation."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int n_stats = grid.c.n_stats, b, j
        # Labels: the planes behind that of weights; moments: these, too.
        const double* planes = sums + (grid.c.kind != SQUARED)
        double* low = take_doubles(grid.arena, n_stats)
        double* high = take_doubles(grid.arena, n_stats)
        double gain
    if grid.arena.failed:
        return 0.0
    memset(low, 0, n_stats * sizeof(double))
    for b in range(position):
        for j in range(n_stats):
            low[j] += planes[b * grid.plane_stride + j]
    for j in range(n_stats):
        high[j] = total[j] - low[j]
    gain = impurity(grid.c, total) - impurity(grid.c, low) - impurity(grid.c, high)
    arena_release(grid.arena, mark)
    return gain


cdef void part_cells(void* points, PairTree* tree, int leaf) noexcept nogil:
    """Bring the cells below a leaf's cut before those above it."""
    cdef:
        Grid* grid = <Grid*> points
        PairNode* node = &tree.nodes[leaf]
        int i, cell, is_above, first_above = <int> node.threshold, n_low = 0, n_high = 0
    for i in range(node.start, node.stop):
        # Written to both sides; only one of them moves on.
        cell = grid.order[i]
        is_above = bucket_of(grid, node.orientation, cell) >= first_above
        grid.order[node.start + n_low] = cell
        grid.scratch[n_high] = cell
        n_low += 1 - is_above
        n_high += is_above
    node.position = node.start + n_low
    memcpy(grid.order + node.position, grid.scratch, n_high * sizeof(int32_t))


ctypedef struct Crossing:
    int orientation          # of its first cut; its second is perpendicular
    int bucket               # first one above the first cut
    double loss              # but for a constant that is the same for all of a pair's crossings


cdef Crossing best_crossing(Grid* grid, int orientation) noexcept nogil:
    """The best crossing of cuts along an orientation and the next one; orientation -1 if none."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int side = N_CROSSING + 1, plane = side * side, n_images = grid.n_values + 1
        double* image = take_doubles(grid.arena, n_images * plane)
        double* loss = take_doubles(grid.arena, (N_CROSSING - 1) * (N_CROSSING - 1))
        double* at
        const double* planes
        double along_row
        int i, j, row, column
        Crossing best
    best.orientation = -1
    best.bucket = 0
    best.loss = INFINITY
    if grid.arena.failed:
        return best
    memset(image, 0, n_images * plane * sizeof(double))
    for i in range(grid.n_cells):
        row = 1 + bucket_of(grid, orientation + 1, i) * N_CROSSING // N_BUCKETS
        column = 1 + bucket_of(grid, orientation, i) * N_CROSSING // N_BUCKETS
        at = image + row * side + column
        planes = grid.planes + i * grid.plane_stride
        for j in range(n_images):
            at[j * plane] += planes[j]
    for j in range(n_images):
        at = image + j * plane
        for row in range(1, side):
            along_row = 0.0
            for column in range(1, side):
                along_row += at[row * side + column]
                at[row * side + column] = along_row + at[(row - 1) * side + column]
    loss_of_crossings(
        image, N_CROSSING, grid.n_values, grid.c.n_outputs, grid.c.kind == ENTROPY, loss)
    for row in range(N_CROSSING - 1):
        for column in range(N_CROSSING - 1):
            if loss[row * (N_CROSSING - 1) + column] < best.loss:
                best.loss = loss[row * (N_CROSSING - 1) + column]
                best.orientation = orientation
                best.bucket = (column + 1) * N_BUCKETS // N_CROSSING
    arena_release(grid.arena, mark)
    return best


cdef void plant(Grid* grid, PairTree* tree) noexcept nogil:
    """Start a tree with all cells in one leaf, which keeps its description if it has one."""
    cdef int i
    for i in range(grid.n_cells):
        grid.order[i] = i
    tree.n_nodes = 1
    tree.nodes[0].low = -1
    tree.nodes[0].depth = 0
    tree.nodes[0].start = 0
    tree.nodes[0].stop = grid.n_cells


cdef void plant_crossing(Grid* grid, const Crossing* crossing, PairTree* tree) noexcept nogil:
    """Start a tree whose root is cut by a crossing's first line."""
    plant(grid, tree)
    tree.nodes[0].orientation = crossing.orientation
    tree.nodes[0].threshold = crossing.bucket
    part_cells(grid, tree, 0)
    add_children(tree, 0)
    describe_and_cut(grid, tree, 1)
    describe_and_cut(grid, tree, 2)


cdef double gain_of_leaves(const CriterionInfo* c, const PairTree* tree) noexcept nogil:
    cdef:
        int node
        double gain = impurity(c, tree.stats)
    for node in range(tree.n_nodes):
        if tree.nodes[node].low < 0:
            gain -= impurity(c, tree.stats + node * c.n_stats)
    return gain


cdef void grow_and_choose(
    Grid* grid, const Options* options, PairTree* tree, PairShape* best
) noexcept nogil:
    """Grow what was planted, and update `best` if its regions make a better shape function."""
    if grid.arena.failed:
        return
    grow(tree, max_leaves_of(options), options.inner_max_depth, grid, describe_and_cut,
         part_cells)
    choose_branches(grid.c, tree, grid.missing, grid.n_missing, options, grid.arena, best)


cdef void grow_from_crossing(
    Grid* grid, const Crossing* crossing, bint framed, const Options* options, PairTree* tree,
    PairShape* best, Start* start,
) noexcept nogil:
    """Grow a tree from a crossing; if it is framed, along the crossing's two orientations only."""
    cdef double share, before = best.objective
    grid.first_active = crossing.orientation if framed else 0
    grid.stop_active = crossing.orientation + 2 if framed else grid.n_orientations
    plant_crossing(grid, crossing, tree)
    if tree.nodes[1].n_rows == 0 or tree.nodes[2].n_rows == 0:
        return
    share = weight_of(grid.c, tree.stats + grid.c.n_stats) / weight_of(grid.c, tree.stats)
    grow_and_choose(grid, options, tree, best)
    if best.objective < before:
        start.orientation = crossing.orientation
        start.share = share
        start.framed = framed


cdef inline bint may_cross(const Grid* grid, const Options* options) noexcept nogil:
    """Whether an inner tree has room for two cuts that cross."""
    return (not grid.arena.failed and options.inner_max_leaves >= 4
            and options.inner_max_depth >= 2)


cdef void grow_on_grid(
    Grid* grid, double information, const Options* options, PairTree* tree, PairShape* best,
    Start* start,
) noexcept nogil:
    """Grow a greedy tree and one that starts from the best crossing, and keep the better.

    The latter grows along the crossing's two orientations only: greedy oblique cuts would cut the
    corners of a checkerboard's squares. It is spared where the greedy tree tells most of what the
    pair has to tell, `information`. `start` is updated if it is the better.
    """
    cdef:
        int h
        Crossing crossing, best_of_all
    grid.first_active = 0
    grid.stop_active = grid.n_orientations
    plant(grid, tree)
    describe_and_cut(grid, tree, 0)
    grow_and_choose(grid, options, tree, best)
    if not may_cross(grid, options) or (
            gain_of_leaves(grid.c, tree) >= GREEDY_SHARE * information):
        return
    best_of_all.orientation = -1
    best_of_all.loss = INFINITY
    for h in range(0, grid.n_orientations - 1, 2):
        crossing = best_crossing(grid, h)
        if crossing.loss < best_of_all.loss:
            best_of_all = crossing
    if best_of_all.orientation >= 0 and not grid.arena.failed:
        grow_from_crossing(grid, &best_of_all, True, options, tree, best, start)


cdef void grow_from_all_crossings(
    Grid* grid, const Options* options, PairTree* tree, PairShape* best, Start* start
) noexcept nogil:
    """Grow trees from the best crossing of each pair of perpendicular orientations.

    Each grows along its two orientations only; from the best crossing of all another one grows
    along any. `start` is updated if one of them is better than `best`.
    """
    cdef:
        int h
        Crossing crossing, best_of_all
    plant(grid, tree)
    describe(grid, tree, 0)
    best_of_all.orientation = -1
    best_of_all.loss = INFINITY
    for h in range(0, grid.n_orientations - 1 if may_cross(grid, options) else 0, 2):
        crossing = best_crossing(grid, h)
        if crossing.orientation >= 0 and not grid.arena.failed:
            grow_from_crossing(grid, &crossing, True, options, tree, best, start)
            if crossing.loss < best_of_all.loss:
                best_of_all = crossing
    if best_of_all.orientation >= 0 and not grid.arena.failed:
        grow_from_crossing(grid, &best_of_all, False, options, tree, best, start)
