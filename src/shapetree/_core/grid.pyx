"""Grids: sums by the cells of a pair of features, which tell how promising it is.

Every feature's bins are joined to at most 32 groups of like weight; a pair's cells are the products
of two features' groups, on which an oblique inner tree grows instead of on the rows.

A greedy tree is blind to a checkerboard, where no first cut gains anything. So the best crossing of
two cuts at right angles is looked for, too, and other trees start from there.
"""

from typing import NamedTuple

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t, uint16_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from shapetree._core.histogram import bin_offsets

from shapetree._core.columns cimport UINT8, Column, Columns, check_rows, code_at
from shapetree._core.criterion cimport (
    ABSOLUTE, ENTROPY, SQUARED, Criterion, CriterionInfo, dot, impurity, n_values, rows_of,
    value_of, weight_of,
)
from shapetree._core.histogram cimport NodeTargets, Targets, add_row, targets_from
from shapetree._core.options cimport Options
from shapetree._core.pair_tree cimport (
    FIRST_AXIS, SECOND_AXIS, PairNode, PairShape, PairTree, add_children, can_pay, choose_branches,
    grow, options_for_pairs, plant, set_price, take_tree,
)
from shapetree._core.search cimport options_of
from shapetree._core.threads cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, must_stop, take_branches, take_doubles,
    take_ints,
)

cdef extern from "vector.h":
    ctypedef struct BucketedCells:
        const int32_t* cells
        int n_cells
        const uint8_t* bucket
        int n_orientations
        int n_active
        const double* planes
        int stride
    ctypedef struct LaneSums:
        const double* buckets
        const double* total
        int n_buckets
        int n_planes
        int n_values
        int rows_plane
        int n_lanes
        int n_outputs
        bint entropy
        double min_rows
    int ranges_of_buckets(
        const BucketedCells* of, uint8_t* least, uint8_t* greatest) noexcept nogil
    void sum_by_bucket(
        const BucketedCells* of, const uint8_t* least, int width, double* sums) noexcept nogil
    void sums_to_lanes(
        const double* sums, int n_active, int width, int stride, int n_planes, int n_lanes,
        double* buckets) noexcept nogil
    void best_cuts_of_orientations(
        const LaneSums* of, double* prefix, double* here, double* loss, double* position
    ) noexcept nogil
    void loss_of_crossings(
        const double* image, int m, int n_stats, int n_outputs, bint entropy, double* loss
    ) noexcept nogil

cdef enum:
    N_GROUPS = 32            # of a feature at most
    STRIDE = N_GROUPS + 1    # of a table of cells: the last group holds the missing values
    N_BUCKETS = 32           # of a projection
    N_CROSSING = 16          # buckets of a projection where crossings are sought
    ROWS_PER_BLOCK = 16_384  # whose groups are looked up at a time
    MIN_ROWS_PER_PART = 2048  # rows that are worth cells of a thread's own
    MAX_OWN_CELLS = 1 << 23  # of all threads
    MANY_CELLS = 256         # so many are in buckets all over the plane

ctypedef struct Grid:
    # One pair's cells that hold rows, as the points of an inner tree.
    #
    #      3 |   c     d       order   [ a b | c e d ]    leaf after leaf; cells are points
    #      2 | b                         low    high
    #      1 | a       e       bucket  [ 0 1 1 .. 0 ]     of a cell along each orientation: a
    #        +-----------                                 cut parts buckets below a threshold
    #          0   1   2       sums[orientation, bucket, plane] tell the best cut of a leaf
    const CriterionInfo* c
    const Options* options
    int n_cells
    double* stats            # n_cells x n_stats
    int32_t* n_rows
    int32_t* order           # cells in the order of the tree's leaves
    int32_t* scratch
    int n_orientations
    int first_active         # orientations first_active..stop_active-1 may be cut along
    int stop_active
    uint8_t* bucket          # n_cells x n_orientations: where a cell lies along each
    # What cuts are chosen by: weight, then statistics (means for absolute error), then rows if
    # these have weights and must be counted.
    double* planes           # n_cells x plane_stride
    int n_planes
    int plane_stride
    int n_values
    int rows_plane
    double least_rows        # in that plane, on either side of a cut
    double* missing          # statistics of the rows that lack either feature
    int n_missing
    int min_rows
    Arena* arena

# A greedy tree that tells this share of what its pair has to tell is good enough.
cdef double GREEDY_SHARE = 0.8


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
    # What grids are summed of: a row adds its channels to a cell of every pair.
    #
    #     row   group of feature 3   of feature 8        pair (3, 8)
    #      0            5                 2              cells[5, 2] += channels of row 0
    #      1            0                 7              cells[0, 7] += channels of row 1
    const Column* columns         # of bins
    const int32_t* rows           # the node's
    bint in_order                 # whether targets stand in the rows' order
    const int64_t* offsets
    const uint8_t* group_of_bin
    int n_groups
    const int32_t* pairs          # two features each
    const int32_t* used           # features that are in some pair
    int n_used
    const int32_t* slot           # of each feature among these
    int n_cells                   # of a pair, and their channels


cdef void add_range(
    const GridSums* sums, Targets targets, Py_ssize_t first, Py_ssize_t last, int first_pair,
    int last_pair, Arena* arena, double* cells,
) noexcept nogil:
    """Add some rows to the cells of some pairs, of which the first are given."""
    cdef:
        Py_ssize_t n
        int f
        Mark mark = arena_mark(arena)
        NodeTargets given = targets.as_they_are(), block
        uint8_t* groups
        bint are_classes = given.labels != NULL and given.weights == NULL and (
            given.n_outputs == 1 and sums.n_cells <= 65536)
    while first < last and not must_stop(arena, (last - first) * (last_pair - first_pair)):
        n = min(<Py_ssize_t> ROWS_PER_BLOCK, last - first)
        if sums.in_order:
            block = targets_from(given, first)
        else:
            block = targets.gather(sums.rows + first, n, arena)
        groups = <uint8_t*> take_branches(arena, sums.n_used * n)
        if arena.failed:
            return
        for f in range(sums.n_used):
            look_up_groups(&sums.columns[sums.used[f]],
                           sums.group_of_bin + sums.offsets[sums.used[f]], sums.rows + first, n,
                           groups + f * n)
        if are_classes:
            count_block(sums, groups, block.labels, n, first_pair, last_pair, arena, cells)
        else:
            add_block(sums, groups, &block, n, first_pair, last_pair, cells)
        arena_release(arena, mark)
        first += n


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


cdef void add_block(
    const GridSums* sums, const uint8_t* groups, const NodeTargets* targets, Py_ssize_t n,
    int first_pair, int last_pair, double* cells,
) noexcept nogil:
    """Add a block of rows to the cells of some pairs."""
    cdef:
        Py_ssize_t p
        const int32_t* pair
    for p in range(first_pair, last_pair):
        pair = sums.pairs + 2 * p
        add_rows(targets, groups + sums.slot[pair[0]] * n, groups + sums.slot[pair[1]] * n, n,
                 sums.n_groups, cells + (p - first_pair) * sums.n_cells)


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


cdef void count_block(
    const GridSums* sums, const uint8_t* groups, const int32_t* labels, Py_ssize_t n,
    int first_pair, int last_pair, Arena* arena, double* cells,
) noexcept nogil:
    """The same for one class of each row, all of the same weight.

    A row's cell is the sum of two numbers, of its first group, and of its second one and class.
    """
    cdef:
        Py_ssize_t p, k
        int f, first = -1, n_stats = sums.n_cells // (sums.n_groups * sums.n_groups)
        const int32_t* pair
        const uint8_t* group
        uint16_t* lows = <uint16_t*> take_branches(arena, 2 * sums.n_used * n)
        uint16_t* low
        uint16_t* high = <uint16_t*> take_branches(arena, 2 * n)
        int32_t* counts = take_ints(arena, sums.n_cells)
    if arena.failed:
        return
    for f in range(sums.n_used):
        low = lows + f * n
        group = groups + f * n
        for k in range(n):
            low[k] = <uint16_t> (group[k] * n_stats + labels[k])
    for p in range(first_pair, last_pair):
        pair = sums.pairs + 2 * p
        if pair[0] != first:
            first = pair[0]
            group = groups + sums.slot[first] * n
            for k in range(n):
                high[k] = <uint16_t> (group[k] * n_stats * sums.n_groups)
        low = lows + sums.slot[pair[1]] * n
        if n < sums.n_cells:
            for k in range(n):
                cells[high[k] + low[k]] += 1.0
        else:
            # Whole numbers are faster to count with.
            memset(counts, 0, sums.n_cells * sizeof(int32_t))
            count_cells(high, low, n, counts)
            for k in range(sums.n_cells):
                cells[k] += counts[k]
        cells += sums.n_cells


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


class BinGroups(NamedTuple):
    """The bins of all features, joined to groups.

    Attributes
    ----------
    of_bin : uint8 array (total bins,)
        The group of each bin, below n_groups.
    n_groups : int
        The most of a feature, that of missing values included.
    """

    of_bin: object
    n_groups: int


def sum_grids(
    Columns bins not None,                        # IN: columns of bins
    Targets targets not None,                     # IN
    const int32_t[::1] rows not None,             # IN: the node's rows
    const int64_t[::1] offsets not None,          # IN: (n_features + 1,) where features' bins start
    groups,                                       # IN: BinGroups
    const int32_t[:, ::1] pairs not None,         # IN: (n_pairs, 2)
    int n_threads,
    bint in_order=False,                          # IN: whether targets stand in the rows' order
):
    """Sum the channels of a node's rows by the two groups of each pair's features.

    Returns an array (n_pairs, n_groups ** 2, n_channels).

    Sums are exact, so grids of disjoint sets of rows add up in any order. Every thread takes some
    rows and adds them to cells of its own; where rows are few, or cells many, it takes some pairs
    instead.
    """
    cdef:
        int p, f, side, n_pairs = pairs.shape[0], n_parts, n_groups = groups.n_groups
        Py_ssize_t b, i, n = rows.shape[0], size
        const uint8_t[::1] group_of_bin = groups.of_bin
        uint8_t largest = 0
        GridSums sums
        int32_t[::1] slot
        int32_t[::1] used
        double[:, :, ::1] cells
        double[:, ::1] own
        double* total
        Arenas arenas
    if group_of_bin is None:
        raise TypeError("there must be a group for each bin")
    bins.check_bins(offsets, 0, bins.n_columns)
    check_rows(rows, bins.n_rows if in_order else min(bins.n_rows, targets.n_rows))
    check_pairs(pairs, bins.n_columns)
    for b in range(group_of_bin.shape[0]):
        largest = max(largest, group_of_bin[b])
    if group_of_bin.shape[0] != offsets[bins.n_columns] or not largest < n_groups <= 256:
        raise ValueError("there must be a group below n_groups for each bin")
    if <Py_ssize_t> n_groups * n_groups * targets.n_channels >= 2**31:
        raise ValueError("there are too many groups and statistics")
    if n_threads < 1 or (in_order and n > targets.n_rows):
        raise ValueError("there must be one thread at least, and a target for each row")
    found = np.zeros((n_pairs, n_groups * n_groups, targets.n_channels))
    if found.size == 0 or n == 0:
        return found
    cells = found
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
    sums.in_order = in_order
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
            add_range(&sums, targets, 0, n, n_pairs * p // n_parts, n_pairs * (p + 1) // n_parts,
                      &arenas.of_thread[threadid()], &cells[n_pairs * p // n_parts, 0, 0])
        arenas.finish()
        return found
    own = np.zeros((n_threads - 1, size))
    total = &cells[0, 0, 0]
    n_parts = <int> max(n_threads, n // ROWS_PER_BLOCK)
    for p in prange(n_parts, nogil=True, num_threads=n_threads, schedule="dynamic"):
        add_range(&sums, targets, n * p // n_parts, n * (p + 1) // n_parts, 0, n_pairs,
                  &arenas.of_thread[threadid()],
                  &own[threadid() - 1, 0] if threadid() else total)
    arenas.finish()
    for i in prange(size, nogil=True, num_threads=n_threads, schedule="static"):
        for p in range(n_threads - 1):
            total[i] += own[p, i]
    return found


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
    Grid* grid, const PairNode* node, const double* total, const double* sums
) noexcept nogil:
    """Impurity that a leaf's cut takes away, given its statistics.

    They are summed from the planes of the buckets below the cut, if there are sums of these, or
    from the leaf's cells.
    """
    cdef:
        Mark mark = arena_mark(grid.arena)
        int n_stats = grid.c.n_stats, position = <int> node.threshold, i, j, b
        double* low = take_doubles(grid.arena, n_stats)
        double* high = take_doubles(grid.arena, n_stats)
        const double* cell
        double gain
    if grid.arena.failed:
        return 0.0
    memset(low, 0, n_stats * sizeof(double))
    if sums != NULL:
        for b in range(position):
            for j in range(n_stats):
                low[j] += sums[b * grid.plane_stride + j]
    else:
        for i in range(node.start, node.stop):
            if bucket_of(grid, node.orientation, grid.order[i]) < position:
                cell = grid.stats + grid.order[i] * n_stats
                for j in range(n_stats):
                    low[j] += cell[j]
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
    set_price(grid.c, grid.options.region_penalty, 1.0, tree, leaf)


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
        BucketedCells cells = BucketedCells(
            grid.order + node.start, n_cells, grid.bucket + first, grid.n_orientations, n_active,
            grid.planes, stride)
        LaneSums lanes
        double least
        int b, j, h, width, best = -1
    if grid.arena.failed:
        return
    width = N_BUCKETS
    if n_cells < MANY_CELLS:
        width = ranges_of_buckets(&cells, least_bucket, greatest_bucket)
    else:
        memset(least_bucket, 0, n_active)
    if width > 1:
        sum_by_bucket(&cells, least_bucket, width, sums)
        sums_to_lanes(sums, n_active, width, stride, n_planes, n_lanes, buckets)
        memset(whole, 0, n_planes * sizeof(double))
        for b in range(width):
            for j in range(n_planes):
                whole[j] += sums[b * stride + j]
        lanes = LaneSums(
            buckets, whole, width, n_planes, grid.n_values, grid.rows_plane, n_lanes,
            grid.c.n_outputs, grid.c.kind == ENTROPY, grid.least_rows)
        best_cuts_of_orientations(&lanes, prefix, here, loss, position)
        least = INFINITY
        for h in range(n_active):
            # Rounding must not choose: of equals, the first wins, and the axes come first.
            if position[h] > 0.0 and loss[h] < least - 1e-10 * whole[0]:
                least = loss[h]
                best = h
    if best >= 0:
        node.orientation = first + best
        if grid.c.kind == ABSOLUTE:
            node.threshold = least_bucket[best] + position[best]
            node.gain = gain_of_cut(grid, node, total, NULL)
        else:
            # Labels: the planes behind that of weights; moments: these, too.
            node.threshold = position[best]
            node.gain = gain_of_cut(
                grid, node, total, sums + best * width * stride + (grid.c.kind != SQUARED))
            node.threshold += least_bucket[best]
    arena_release(grid.arena, mark)


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


cdef void plant_cells(Grid* grid, PairTree* tree) noexcept nogil:
    """Start a tree with all cells in one leaf, which keeps its description if it has one."""
    cdef int i
    for i in range(grid.n_cells):
        grid.order[i] = i
    plant(tree, grid.n_cells)


cdef void plant_crossing(Grid* grid, const Crossing* crossing, PairTree* tree) noexcept nogil:
    """Start a tree whose root is cut by a crossing's first line."""
    plant_cells(grid, tree)
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


cdef void grow_and_choose(Grid* grid, PairTree* tree, PairShape* best) noexcept nogil:
    """Grow what was planted, and update `best` if its regions make a better shape function."""
    if grid.arena.failed:
        return
    grow(tree, grid.options, grid, describe_and_cut, part_cells)
    choose_branches(grid.c, tree, grid.missing, grid.n_missing, grid.options, grid.arena, best)


cdef void grow_from_crossing(
    Grid* grid, const Crossing* crossing, bint framed, PairTree* tree, PairShape* best,
    Start* start,
) noexcept nogil:
    """Grow a tree from a crossing; if it is framed, along the crossing's two orientations only."""
    cdef double share, before = best.objective
    grid.first_active = crossing.orientation if framed else 0
    grid.stop_active = crossing.orientation + 2 if framed else grid.n_orientations
    plant_crossing(grid, crossing, tree)
    if tree.nodes[1].n_rows == 0 or tree.nodes[2].n_rows == 0:
        return
    share = weight_of(grid.c, tree.stats + grid.c.n_stats) / weight_of(grid.c, tree.stats)
    grow_and_choose(grid, tree, best)
    if best.objective < before:
        start.orientation = crossing.orientation
        start.share = share
        start.framed = framed


cdef inline bint may_cross(const Grid* grid) noexcept nogil:
    """Whether an inner tree has room for two cuts that cross."""
    return (not grid.arena.failed and grid.options.inner_max_leaves >= 4
            and grid.options.inner_max_depth >= 2)


cdef void grow_on_grid(
    Grid* grid, double information, PairTree* tree, PairShape* best, Start* start
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
    plant_cells(grid, tree)
    describe_and_cut(grid, tree, 0)
    grow_and_choose(grid, tree, best)
    if not may_cross(grid) or (
            gain_of_leaves(grid.c, tree) >= GREEDY_SHARE * information):
        return
    best_of_all.orientation = -1
    best_of_all.loss = INFINITY
    for h in range(0, grid.n_orientations - 1, 2):
        crossing = best_crossing(grid, h)
        if crossing.loss < best_of_all.loss:
            best_of_all = crossing
    if best_of_all.orientation >= 0 and not grid.arena.failed:
        grow_from_crossing(grid, &best_of_all, True, tree, best, start)


cdef void grow_from_all_crossings(
    Grid* grid, PairTree* tree, PairShape* best, Start* start
) noexcept nogil:
    """Grow trees from the best crossing of each pair of perpendicular orientations.

    Each grows along its two orientations only; from the best crossing of all another one grows
    along any. `start` is updated if one of them is better than `best`.
    """
    cdef:
        int h
        Crossing crossing, best_of_all
    plant_cells(grid, tree)
    describe(grid, tree, 0)
    best_of_all.orientation = -1
    best_of_all.loss = INFINITY
    for h in range(0, grid.n_orientations - 1 if may_cross(grid) else 0, 2):
        crossing = best_crossing(grid, h)
        if crossing.orientation >= 0 and not grid.arena.failed:
            grow_from_crossing(grid, &crossing, True, tree, best, start)
            if crossing.loss < best_of_all.loss:
                best_of_all = crossing
    if best_of_all.orientation >= 0 and not grid.arena.failed:
        grow_from_crossing(grid, &best_of_all, False, tree, best, start)


# --- how promising pairs are ----------------------------------------------------------------------

# How inner trees start; also the dtype of the arrays that say so.
START = np.dtype([("orientation", np.int32), ("share", np.float64), ("framed", np.int32)],
                 align=True)

cdef extern from "vector.h":
    void fill_buckets_of_cells(
        const int32_t* along_a, const int32_t* along_b, const uint8_t* group_a,
        const uint8_t* group_b, int n_cells, int n_orientations, uint8_t* bucket) noexcept nogil

cdef enum:
    WEIGHT_PER_ROUGH_CELL = 8    # at least, on average
    FRACTIONS = 65_536           # of a bucket


class Groups(NamedTuple):
    """Every feature's bins joined to groups, for one node.

    Attributes
    ----------
    fine, rough : BinGroups
        Many groups, and few. The last is that of missing values, and of bins without rows.
    n_of_feature : int32 array (n_features,)
        Of the fine ones, without the last.
    centres : array (n_features, N_GROUPS)
        Where an ordered feature's fine groups lie, in units of its standard deviation.
    positions : array (total bins,)
        The categories' places in the node's order; NaN where there is no row.
    """

    fine: BinGroups
    rough: BinGroups
    n_of_feature: object
    centres: object
    positions: object


cdef void order_categories(
    const CriterionInfo* c, const double* cells, int n_channels, const int32_t* present, int n,
    Arena* arena, int32_t* order,
) noexcept nogil:
    """Order some categories by their statistics.

    By class share or mean where there is one; otherwise along the first principal component of the
    shares of classes, or of the means.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int m = n_values(c)
        double* share = take_doubles(arena, <size_t> n * m)
        double* weight = take_doubles(arena, n)
        double* mean = take_doubles(arena, m)
        double* direction = take_doubles(arena, m)
        double* turned = take_doubles(arena, m)
        double* score = take_doubles(arena, n)
        const double* s
        double total = 0.0, length
        int i, j, k, item
    if arena.failed:
        return
    memset(mean, 0, m * sizeof(double))
    for i in range(n):
        s = cells + <Py_ssize_t> present[i] * n_channels
        weight[i] = weight_of(c, s)
        total += weight[i]
        for j in range(m):
            share[i * m + j] = value_of(c, s, j)
            mean[j] += share[i * m + j]
            share[i * m + j] /= max(weight[i], 1e-300)
    for j in range(m):
        mean[j] /= max(total, 1e-300)
        # A start that no symmetry of the classes makes orthogonal to what is sought.
        direction[j] = 1.0 / (j + 1.0)
        for i in range(n):
            share[i * m + j] -= mean[j]
    for _ in range(20 if m > 1 else 0):
        memset(turned, 0, m * sizeof(double))
        for i in range(n):
            length = weight[i] * dot(share + i * m, direction, m)
            for j in range(m):
                turned[j] += length * share[i * m + j]
        length = sqrt(dot(turned, turned, m))
        if not length > 0.0:
            break
        for j in range(m):
            direction[j] = turned[j] / length
    for i in range(n):
        score[i] = dot(share + i * m, direction, m)
    # Insertion sort: categories are few.
    for i in range(n):
        item = i
        k = i
        while k > 0 and score[order[k - 1]] > score[item]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = item
    arena_release(arena, mark)


cdef double loss_of_cells(
    const CriterionInfo* c, const double* cells, int n_cells, int n_channels, double noise
) noexcept nogil:
    """Impurity of cells, plus the noise of each that holds weight but the first."""
    cdef:
        int i
        double loss = -noise
    for i in range(n_cells):
        if weight_of(c, cells + i * n_channels) > 0.0:
            loss += noise + impurity(c, cells + i * n_channels)
    return loss


ctypedef struct Side:
    # One feature of a pair: its groups, and where they lie along each orientation.
    int n
    const double* centre
    int32_t* along           # n x n_orientations


cdef void place_groups(
    const Side* a, const Side* b, double cosine, double sine, int orientation, int n_orientations
) noexcept nogil:
    """Note where two features' groups lie along an oblique orientation."""
    cdef:
        double low_a = INFINITY, high_a = -INFINITY, low_b = INFINITY, high_b = -INFINITY
        double width
        int i
    for i in range(a.n):
        low_a = min(low_a, cosine * a.centre[i])
        high_a = max(high_a, cosine * a.centre[i])
    for i in range(b.n):
        low_b = min(low_b, sine * b.centre[i])
        high_b = max(high_b, sine * b.centre[i])
    width = (high_a - low_a) + (high_b - low_b)
    width = 0.999999 * N_BUCKETS * FRACTIONS / width if 1e-290 < width < 1e290 else 0.0
    for i in range(a.n):
        a.along[i * n_orientations + orientation] = (
            <int32_t> ((cosine * a.centre[i] - low_a) * width) if width > 0.0 else 0)
    for i in range(b.n):
        b.along[i * n_orientations + orientation] = (
            <int32_t> ((sine * b.centre[i] - low_b) * width) if width > 0.0 else 0)


ctypedef struct Grouping:
    # What features' bins are grouped by, and where their groups are written.
    const double* histogram
    int n_channels
    int n_rough
    uint8_t* of_bin
    uint8_t* rough_of_bin
    double* positions
    double* centres


ctypedef struct Screened:
    # The pairs that are screened, and what holds for all of them.
    Options options
    const int32_t* pairs
    const double* cells
    int n_channels
    const int32_t* n_groups      # of each feature
    const double* centres        # of these
    const double* information    # of each pair; NULL to start from all crossings


cdef class GridScreen:
    """Groups bins, and screens pairs of features by their cells, for any node.

    Parameters
    ----------
    criterion : Criterion
    n_bins : array of int
        Bins of each feature, without its missing bin, which comes last.
    categorical : array of bool
    bin_values : array (total bins,)
        A value in each ordered bin, in units of the feature's standard deviation.
    cosines, sines : arrays (n_orientations,)
        The two axes, then the oblique orientations, each followed by the one perpendicular to it.
    inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows, min_weight :
        Options that hold for every node.
    """

    cdef Criterion criterion
    cdef Options options
    cdef int n_features
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] categorical
    cdef const double[::1] bin_values
    cdef const double[::1] cosines
    cdef const double[::1] sines

    def __init__(self, Criterion criterion not None, n_bins, categorical, bin_values, cosines,
                 sines, **limits):
        n_bins = np.asarray(n_bins, dtype=np.int64)
        if n_bins.ndim != 1 or np.shape(categorical) != n_bins.shape or np.any(n_bins < 0):
            raise ValueError("n_bins and categorical must have one entry for each column")
        n = len(n_bins)
        self.n_features = n
        self.criterion = criterion
        self.offsets = bin_offsets(n_bins)
        self.categorical = np.ascontiguousarray(categorical, dtype=np.uint8)
        self.bin_values = np.ascontiguousarray(bin_values, dtype=np.float64)
        self.cosines = np.ascontiguousarray(cosines, dtype=np.float64)
        self.sines = np.ascontiguousarray(sines, dtype=np.float64)
        if self.bin_values.shape[0] != self.offsets[n]:
            raise ValueError("bin_values must have one entry for each bin")
        for values in (bin_values, cosines, sines):
            if not np.isfinite(values).all():
                raise ValueError("bin_values, cosines and sines must be finite")
        if not 2 <= self.cosines.shape[0] == self.sines.shape[0]:
            raise ValueError("there must be two orientations at least")
        self.options = options_of(limits)

    def groups(self, const double[:, ::1] histogram not None, int n_threads):
        """Join every feature's bins to groups of like weight, from a node's histogram."""
        cdef:
            int f, n = self.n_features
            Py_ssize_t b
            double weight = 0.0
            Arenas arenas
            Grouping grouping
            double[::1] positions
            double[:, ::1] centres
            uint8_t[::1] of_bin
            uint8_t[::1] rough_of_bin
            int32_t[::1] n_of_feature
            int n_rough, n_channels = histogram.shape[1]
        if histogram.shape[0] != self.offsets[n] or (
                not 0 <= n_channels - self.criterion.info.n_stats <= 1):
            raise ValueError("the histogram's shape does not fit the bins and criterion")
        if n_threads < 1:
            raise ValueError("there must be at least one thread")
        found = np.zeros(n, dtype=np.int32), np.zeros((n, N_GROUPS)), np.full(self.offsets[n], NAN)
        fine, rough = np.zeros((2, self.offsets[n]), dtype=np.uint8)
        of_bin, rough_of_bin = fine, rough
        n_of_feature, centres, positions = found
        for b in range(self.offsets[1] if n else 0):
            weight += weight_of(&self.criterion.info, &histogram[b, 0])
        n_rough = 16 if weight >= 16 * 16 * WEIGHT_PER_ROUGH_CELL else (
            8 if weight >= 8 * 8 * WEIGHT_PER_ROUGH_CELL else 4)
        arenas = Arenas(n_threads)
        if n > 0:
            grouping.histogram = &histogram[0, 0]
            grouping.n_channels = n_channels
            grouping.n_rough = n_rough
            grouping.of_bin = &of_bin[0]
            grouping.rough_of_bin = &rough_of_bin[0]
            grouping.positions = &positions[0]
            grouping.centres = &centres[0, 0]
        for f in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic"):
            n_of_feature[f] = self.group_feature(f, &grouping, &arenas.of_thread[threadid()])
        arenas.finish()
        return Groups(BinGroups(fine, STRIDE), BinGroups(rough, n_rough + 1), *found)

    cdef int group_feature(self, int f, const Grouping* grouping, Arena* arena) noexcept nogil:
        """Fill in one feature's groups; returns how many there are."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Mark mark = arena_mark(arena)
            int64_t offset = self.offsets[f]
            int n_bins = <int> (self.offsets[f + 1] - offset - 1)
            int n_channels = grouping.n_channels, n_rough = grouping.n_rough
            const double* cells = grouping.histogram + offset * n_channels
            uint8_t* group = grouping.of_bin + offset
            uint8_t* rough = grouping.rough_of_bin + offset
            double* position = grouping.positions + offset
            double* centre = grouping.centres + f * N_GROUPS
            int32_t* present = take_ints(arena, n_bins + 1)
            int32_t* order = take_ints(arena, n_bins + 1)
            double* weight = take_doubles(arena, n_bins + 1)
            double total = 0.0, below = 0.0
            double in_group[N_GROUPS]
            int i, b, n = 0, last = -1, g = -1, here
        if arena.failed:
            return 0
        memset(group, N_GROUPS, n_bins + 1)
        memset(rough, n_rough, n_bins + 1)
        for b in range(n_bins):
            if rows_of(c, cells + b * n_channels, n_channels) > 0.5:
                weight[n] = weight_of(c, cells + b * n_channels)
                total += weight[n]
                present[n] = b
                order[n] = n
                n += 1
        if self.categorical[f]:
            order_categories(c, cells, n_channels, present, n, arena, order)
            if arena.failed:
                return 0
        for i in range(n):
            b = order[i]
            # Equal shares of the weight; a bin lies where its middle does.
            here = 0
            if 0.0 < total < INFINITY:
                here = <int> ((below + 0.5 * weight[b]) * N_GROUPS / total)
                here = max(0, min(here, N_GROUPS - 1))
            if here > last:
                g += 1
                last = here
                centre[g] = 0.0
                in_group[g] = 0.0
            below += weight[b]
            group[present[b]] = g
            if self.categorical[f]:
                position[present[b]] = i
            else:
                centre[g] += weight[b] * self.bin_values[offset + present[b]]
                in_group[g] += weight[b]
        if not self.categorical[f]:
            for i in range(g + 1):
                centre[i] = centre[i] / in_group[i] if in_group[i] > 0.0 else 0.0
        for i in range(n):
            b = present[i]
            rough[b] = group[b] if g < n_rough else group[b] * n_rough // (g + 1)
        arena_release(arena, mark)
        return g + 1

    def losses(self, const double[:, :, ::1] cells not None, double noise, int n_threads):
        """Impurity of each pair's cells, plus the noise of parting them."""
        cdef:
            int p, n_pairs = cells.shape[0], n_cells = cells.shape[1], n_channels = cells.shape[2]
            double[::1] found
        self.check_cells(cells, n_threads)
        losses = np.zeros(n_pairs)
        if n_pairs and n_cells:
            found = losses
            for p in prange(n_pairs, nogil=True, num_threads=n_threads, schedule="static"):
                found[p] = loss_of_cells(
                    &self.criterion.info, &cells[p, 0, 0], n_cells, n_channels, noise)
        return losses

    cdef int check_cells(self, const double[:, :, ::1] cells, int n_threads) except -1:
        if not 0 <= cells.shape[2] - self.criterion.info.n_stats <= 1:
            raise ValueError("cells and criterion differ in their statistics")
        if n_threads < 1:
            raise ValueError("there must be at least one thread")
        return 0

    cdef int check_groups(
        self, const int32_t[::1] n_groups, const double[:, ::1] centres
    ) except -1:
        cdef int f, g
        if n_groups.shape[0] != self.n_features or centres.shape[0] != self.n_features or (
                centres.shape[1] != N_GROUPS):
            raise ValueError("there must be groups of each feature")
        for f in range(self.n_features):
            if not 0 <= n_groups[f] <= N_GROUPS:
                raise ValueError("there must be groups of each feature")
            for g in range(N_GROUPS):
                if not -INFINITY < centres[f, g] < INFINITY:
                    raise ValueError("the groups' centres must be finite")
        return 0

    def screen(
        self,
        const int32_t[:, ::1] pairs not None,       # IN: (n_pairs, 2)
        const double[:, :, ::1] cells not None,     # IN: (n_pairs, fine groups ** 2, n_channels)
        groups,                                     # IN: Groups of the node
        const double[::1] information,              # IN: (n_pairs,) what they tell; None to try all
        node,                                       # IN: NodeOptions
        int n_threads,
    ):
        """Grow inner trees on the pairs' grids and send their regions to branches.

        With `information`, a greedy tree and one that starts from a crossing of two cuts; without,
        only those that start from any crossing.

        Returns
        -------
        gains : array (n_pairs,)
            After penalties; -inf for none.
        starts : array (n_pairs,) of START
            How the best inner tree starts.
        """
        cdef:
            Screened screened
            int p, n_pairs = pairs.shape[0]
            const int32_t[::1] n_groups = groups.n_of_feature
            const double[:, ::1] centres = groups.centres
            double[::1] gains
            Start[::1] starts
            Arenas arenas
        self.check_cells(cells, n_threads)
        check_pairs(pairs, self.n_features)
        if cells.shape[0] != n_pairs or cells.shape[1] != STRIDE * STRIDE or (
                information is not None and information.shape[0] != n_pairs):
            raise ValueError("there must be cells and information of each pair")
        self.check_groups(n_groups, centres)
        screened.options = options_for_pairs(&self.options, node)
        found = np.empty(n_pairs), np.empty(n_pairs, dtype=START)
        if n_pairs == 0:
            return found
        gains, starts = found
        screened.pairs = &pairs[0, 0]
        screened.cells = &cells[0, 0, 0]
        screened.n_channels = cells.shape[2]
        screened.n_groups = &n_groups[0]
        screened.centres = &centres[0, 0]
        screened.information = NULL if information is None else &information[0]
        arenas = Arenas(n_threads)
        for p in prange(n_pairs, nogil=True, num_threads=n_threads, schedule="dynamic"):
            gains[p] = self.screen_pair(&screened, p, &arenas.of_thread[threadid()], &starts[p])
        arenas.finish()
        return found

    cdef void lay_out(
        self, const Screened* screened, Py_ssize_t pair, Arena* arena, Grid* grid
    ) noexcept nogil:
        """Gather the cells that hold rows, and the sum of those where a feature is missing."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            int first = screened.pairs[2 * pair], second = screened.pairs[2 * pair + 1]
            int n_a = screened.n_groups[first], n_b = screened.n_groups[second]
            int a, b, j, n = 0, rows, h, n_stats = c.n_stats, n_channels = screened.n_channels
            const double* cells = screened.cells + pair * STRIDE * STRIDE * n_channels
            size_t room = n_a * n_b
            bint oblique = not (self.categorical[first] or self.categorical[second])
            int n_orientations = self.cosines.shape[0] if oblique else 2
            uint8_t* group_a = <uint8_t*> take_branches(arena, room)
            uint8_t* group_b = <uint8_t*> take_branches(arena, room)
            Side side_a, side_b
            const double* cell
        side_a.n = n_a
        side_a.centre = screened.centres + first * N_GROUPS
        side_a.along = take_ints(arena, N_GROUPS * n_orientations)
        side_b.n = n_b
        side_b.centre = screened.centres + second * N_GROUPS
        side_b.along = take_ints(arena, N_GROUPS * n_orientations)
        grid.c = c
        grid.arena = arena
        grid.stats = take_doubles(arena, room * n_stats)
        grid.n_rows = take_ints(arena, room)
        grid.order = take_ints(arena, room)
        grid.scratch = take_ints(arena, room)
        grid.n_orientations = n_orientations
        grid.bucket = <uint8_t*> take_branches(arena, room * n_orientations)
        grid.options = &screened.options
        grid.min_rows = max(self.options.inner_min_rows, self.options.min_rows)
        grid.missing = take_doubles(arena, n_stats)
        grid.n_missing = 0
        if arena.failed:
            return
        memset(grid.missing, 0, n_stats * sizeof(double))
        for a in range(STRIDE):
            if n_a <= a < N_GROUPS:
                continue
            for b in range(STRIDE):
                if n_b <= b < N_GROUPS:
                    continue
                cell = cells + (a * STRIDE + b) * n_channels
                rows = <int> min(0.5 + rows_of(c, cell, n_channels), 2e9)
                if rows <= 0:
                    continue
                if a == N_GROUPS or b == N_GROUPS:
                    grid.n_missing += rows
                    for j in range(n_stats):
                        grid.missing[j] += cell[j]
                    continue
                group_a[n] = a
                group_b[n] = b
                grid.n_rows[n] = rows
                memcpy(grid.stats + n * n_stats, cell, n_stats * sizeof(double))
                n += 1
        grid.n_cells = n
        for j in range(n_a):
            side_a.along[j * n_orientations + FIRST_AXIS] = j * N_BUCKETS // n_a * FRACTIONS
            side_a.along[j * n_orientations + SECOND_AXIS] = 0
        for j in range(n_b):
            side_b.along[j * n_orientations + FIRST_AXIS] = 0
            side_b.along[j * n_orientations + SECOND_AXIS] = j * N_BUCKETS // n_b * FRACTIONS
        for h in range(2, n_orientations):
            place_groups(&side_a, &side_b, self.cosines[h], self.sines[h], h, n_orientations)
        fill_buckets_of_cells(
            side_a.along, side_b.along, group_a, group_b, n, n_orientations, grid.bucket)
        fill_planes(grid)

    cdef double screen_pair(
        self, const Screened* screened, Py_ssize_t pair, Arena* arena, Start* start
    ) noexcept nogil:
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Mark mark = arena_mark(arena)
            double* whole = take_doubles(arena, c.n_stats)
            int j
            Grid grid
            PairTree tree
            PairShape best
            double gain = -INFINITY
        start.orientation = -1
        start.share = 0.0
        start.framed = False
        if must_stop(arena, STRIDE * STRIDE * screened.n_channels):
            return -INFINITY
        take_tree(c, &screened.options, arena, &tree)
        best.branch = take_branches(arena, tree.room)
        best.objective = INFINITY
        if arena.failed:
            return -INFINITY
        self.lay_out(screened, pair, arena, &grid)
        if arena.failed:
            return -INFINITY
        if grid.n_cells >= 2:
            if screened.information == NULL:
                grow_from_all_crossings(&grid, &tree, &best, start)
            else:
                grow_on_grid(&grid, screened.information[pair], &tree, &best, start)
            if arena.failed:
                return -INFINITY
            for j in range(c.n_stats):
                whole[j] = tree.stats[j] + grid.missing[j]
            if best.objective < INFINITY:
                gain = impurity(c, whole) - best.objective
        arena_release(arena, mark)
        return gain
