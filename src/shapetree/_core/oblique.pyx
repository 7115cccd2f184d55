"""Shape functions of pairs: an oblique inner tree grown on a sample of a node's rows.

A cut sends a row up if `a * u + b * v > threshold`, where u and v are the two features' values in
the user's units, or the positions of their categories. Orientations are (a, b) = (1, 0) and (0, 1),
the axes, and (1, b) for the oblique ones. Rows that lack either feature are a region of their own.

The other rows are points of the pair's plane, on which an inner tree grows (see
`shapetree._core.pair_tree`): `find_cut` finds the best cut of a leaf, and `part_points` brings a
leaf's points into the order of its children.
"""

from typing import NamedTuple

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, ceil, fabs
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shapetree._core.assignment cimport sort_by_key
from shapetree._core.columns cimport (
    FLOAT32, FLOAT64, INT32, Column, Columns, check_rows, finite, projection, side_at,
)
from shapetree._core.criterion cimport Criterion, CriterionInfo, impurity, weight_of
from shapetree._core.grid cimport Start, check_pairs
from shapetree._core.histogram cimport NodeTargets, Targets, add_row
from shapetree._core.inner_tree cimport Bins, Cut, Scan, best_cut, prepare_scan
from shapetree._core.options cimport Options
from shapetree._core.pair_tree cimport (
    HIDDEN, INNER, MAX_REGIONS, PairNode, PairShape, PairTree, add_children, can_pay,
    choose_branches, grow, max_leaves_of, options_for_pairs, plant, set_price, take_tree,
)
from shapetree._core.search cimport options_of
from shapetree._core.sorting cimport sort_items
from shapetree._core.threads cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, must_stop, take_branches, take_doubles,
    take_ints,
)


# --- points of a plane: their orders along orientations, and best cuts ----------------------------

cdef extern from "parting.h":
    double parting(double low, double high) noexcept nogil

cdef enum:
    EXACT_WEIGHT = 512       # a region that weighs no more is searched row by row
    N_BLOCKS = 255           # a heavier one by so many blocks first
    MAX_PACKED = 4           # counts that share a register


ctypedef struct Sample:
    # What the fits of some pairs of a node have in common.
    const CriterionInfo* c
    Options options
    bint exact               # whether heavy regions, too, are searched row by row
    int min_rows             # of a region
    double scale             # rows of the node for each that is looked at
    const double* slopes     # of the orientations
    int n_orientations
    const Column* columns    # numbers, or codes of categories
    const double* scales     # their units
    const int64_t* offsets   # where each one's positions start
    const double* positions  # of categories; NULL if there are none
    const int32_t* rows      # those that are looked at
    int n
    NodeTargets targets      # of these rows
    const int32_t* pairs     # two columns each
    const Start* starts      # how the pairs' inner trees start

ctypedef struct Points:
    # Rows of one node that have both features, as the points of an inner tree: along each
    # orientation in order, leaf by leaf.
    #
    #     order[h]  [ 7 2 9 | 4 1 | 8 3 5 6 ]      leaves 3 | 4 | 2
    #     a cut of leaf 2 along h parts its points at a position, and its points in all other
    #     orders by what `is_above` says of each
    const Sample* sample
    const CriterionInfo* c
    const NodeTargets* targets
    int n
    const int32_t* place     # of each point among the node's rows
    int32_t* label           # of each point, if it counts for one statistic only; else NULL
    double* weight           # of each point; NULL if all weigh 1
    const double* u
    const double* v
    int n_orientations
    int first_active         # orientations first_active..stop_active-1 may be cut along
    int stop_active
    const double* a
    const double* b
    int32_t** order          # points along each orientation, leaf by leaf of the tree
    uint8_t* is_above
    int32_t* scratch
    Arena* arena


cdef inline double along(const Points* points, int orientation, int point) noexcept nogil:
    """Where a point lies; finite, so that a finite threshold parts it from any other place."""
    return finite(projection(points.a[orientation], points.u[point], points.b[orientation],
                             points.v[point]))


cdef void count_labels(
    const int32_t* label, const int32_t* order, int start, int stop, int n_stats, double* cell
) noexcept nogil:
    """Add points that count for one statistic each to a cell."""
    cdef:
        int i, j, end
        uint64_t packed
    if n_stats > MAX_PACKED:
        for i in range(start, stop):
            cell[label[order[i]]] += 1.0
        return
    # Counts that share a register need not wait for memory.
    while start < stop:
        end = min(start + 0xFFFF, stop)
        packed = 0
        for i in range(start, end):
            packed += <uint64_t> 1 << (16 * label[order[i]])
        for j in range(n_stats):
            cell[j] += (packed >> (16 * j)) & 0xFFFF
        start = end


ctypedef struct PointBins:
    # Points of a leaf in the order of an orientation, in bins: those up to bin_stop[i] are in bin i
    # or before.
    int n
    int most                  # bins that there is room for
    double* stats             # most x n_stats, and one more row
    int32_t* n_rows
    int32_t* bin_stop


cdef PointBins take_bins(const Points* points, int most) noexcept nogil:
    """Room for bins; check `arena.failed` afterwards."""
    return PointBins(
        0, most, take_doubles(points.arena, <size_t> (most + 2) * points.c.n_stats),
        take_ints(points.arena, most + 1), take_ints(points.arena, most + 1))


cdef void fill_blocks(
    const Points* points, int orientation, int start, int stop, double block, PointBins* bins
) noexcept nogil:
    """What `fill_bins` does, for points that count for one statistic each and weigh 1."""
    cdef:
        const int32_t* order = points.order[orientation]
        int n_stats = points.c.n_stats, i = start, n = bins.n, most = bins.most, begin
        # So many points belong to a bin whatever they are.
        int size = max(1, <int> min(ceil(block), <double> (stop - start)))
        double* cell
    while i < stop:
        cell = bins.stats + <Py_ssize_t> n * n_stats
        memset(cell, 0, n_stats * sizeof(double))
        begin = i
        i = stop if n + 1 >= most or size >= stop - i else i + size
        while i < stop and (
                along(points, orientation, order[i]) == along(points, orientation, order[i - 1])):
            i += 1
        count_labels(points.label, order, begin, i, n_stats, cell)
        bins.n_rows[n] = i - begin
        bins.bin_stop[n] = i
        n += 1
    bins.n = n


cdef void fill_bins(
    const Points* points, int orientation, int start, int stop, double block, PointBins* bins
) noexcept nogil:
    """Sum the points from `start` on in more bins that weigh `block` or more, equals together."""
    cdef:
        const int32_t* order = points.order[orientation]
        int n_stats = points.c.n_stats, n_channels = points.targets.n_channels
        int i = start, n = bins.n, most = bins.most, begin, n_more, known = -1
        int32_t point
        double here, last = 0.0, weight
        double* cell
    if points.label != NULL and points.weight == NULL:
        if block == 0.0 and stop - start <= most - n:
            fill_bins_of_rows(points, orientation, start, stop, bins)
        else:
            fill_blocks(points, orientation, start, stop, block, bins)
        return
    while i < stop:
        # Statistics lie densely: the channel that counts rows is overwritten by the next bin.
        cell = bins.stats + <Py_ssize_t> n * n_stats
        memset(cell, 0, n_channels * sizeof(double))
        begin = i
        n_more = 0
        weight = 0.0
        while i < stop:
            point = order[i]
            if weight >= block and i > begin and n + 1 < most:
                here = along(points, orientation, point)
                if known != i - 1:
                    last = along(points, orientation, order[i - 1])
                known = i
                if here != last:
                    last = here
                    break
            if points.label != NULL:
                cell[points.label[point]] += points.weight[point]
            else:
                add_row(points.targets, points.place[point], cell)
            weight += points.weight[point] if points.weight != NULL else 1.0
            if points.targets.counts != NULL:
                n_more += <int> points.targets.counts[points.place[point]] - 1
            i += 1
        bins.n_rows[n] = i - begin + n_more
        bins.bin_stop[n] = i
        n += 1
    bins.n = n


cdef void fill_bins_of_rows(
    const Points* points, int orientation, int start, int stop, PointBins* bins
) noexcept nogil:
    """The same for rows that count for one statistic each, a bin for each place; no branches."""
    cdef:
        const int32_t* order = points.order[orientation]
        const int32_t* label = points.label
        const double* u = points.u
        const double* v = points.v
        double a = points.a[orientation], b = points.b[orientation]
        double* stats = bins.stats
        int32_t* bin_stop = bins.bin_stop
        int n_stats = points.c.n_stats, i, first = bins.n, n = first - 1
        double here, last = NAN
    memset(stats + <Py_ssize_t> first * n_stats, 0,
           <size_t> (stop - start) * n_stats * sizeof(double))
    for i in range(start, stop):
        here = finite(projection(a, u[order[i]], b, v[order[i]]))
        n += here != last
        last = here
        stats[<Py_ssize_t> n * n_stats + label[order[i]]] += 1.0
        bin_stop[n] = i + 1
    for i in range(first, n + 1):
        bins.n_rows[i] = bin_stop[i] - (bin_stop[i - 1] if i > first else start)
    bins.n = n + 1


cdef Cut cut_bins(const Points* points, const PointBins* bins) noexcept nogil:
    cdef:
        Mark mark = arena_mark(points.arena)
        Bins filled = Bins(bins.n, bins.stats, bins.n_rows)
        Scan scan
        Cut cut
    cut.position = -1
    prepare_scan(points.c, filled, points.sample.min_rows, points.arena, &scan)
    if not points.arena.failed:
        cut = best_cut(&scan, 0, bins.n)
        arena_release(points.arena, mark)
    return cut


cdef int refine_position(
    Points* points, const PairNode* node, int orientation, int low, int high, double* gain
) noexcept nogil:
    """The best position of a cut among the points low..high-1, row by row."""
    cdef:
        Mark mark = arena_mark(points.arena)
        PointBins bins = take_bins(points, high - low + 3)
        Cut cut
    if points.arena.failed:
        return -1
    # All that lies before, the points themselves, all that lies behind.
    if low > node.start:
        fill_bins(points, orientation, node.start, low, INFINITY, &bins)
    fill_bins(points, orientation, low, high, 0.0, &bins)
    if node.stop > high:
        fill_bins(points, orientation, high, node.stop, INFINITY, &bins)
    cut = cut_bins(points, &bins)
    if cut.position >= 0:
        gain[0] = cut.gain
    arena_release(points.arena, mark)
    return bins.bin_stop[cut.position - 1] if cut.position >= 0 else -1


cdef void find_cut(void* context, PairTree* tree, int leaf) noexcept nogil:
    """Sum a leaf's rows and find its best cut along any orientation."""
    cdef:
        Points* points = <Points*> context
        PairNode* node = &tree.nodes[leaf]
        Mark mark = arena_mark(points.arena)
        int n_stats = points.c.n_stats, n = node.stop - node.start, h, i, position, room
        int low = -1, high = -1
        double* sums = take_doubles(points.arena, points.targets.n_channels)
        double* total = tree.stats + leaf * n_stats
        PointBins bins
        double gain = 0.0, block = 0.0, weight
        Cut cut
    node.n_rows = n
    node.orientation = -1
    node.gain = 0.0
    if points.arena.failed:
        return
    memset(sums, 0, points.targets.n_channels * sizeof(double))
    if points.label != NULL and points.weight == NULL:
        count_labels(points.label, points.order[points.first_active], node.start, node.stop,
                     n_stats, sums)
    else:
        for i in range(node.start, node.stop):
            add_row(points.targets, points.place[points.order[points.first_active][i]], sums)
    if points.targets.counts != NULL:
        node.n_rows = <int> sums[n_stats]
    memcpy(total, sums, n_stats * sizeof(double))
    set_price(points.c, points.sample.options.region_penalty, points.sample.scale, tree, leaf)
    weight = weight_of(points.c, total)
    room = n
    if not points.sample.exact and weight > EXACT_WEIGHT:
        block = weight / N_BLOCKS
        # Rounding may leave one more, and the last may be lighter.
        room = min(n, N_BLOCKS + 2)
    bins = take_bins(points, room)
    if points.arena.failed:
        return
    # The children of a root that a start gives are cut whatever they earn.
    if (node.n_rows >= 2 * <int64_t> points.sample.min_rows
            and (leaf < 3 or can_pay(points.c, tree, leaf)) and not must_stop(points.arena, n)):
        for h in range(points.first_active, points.stop_active):
            if points.order[h] == NULL:
                continue
            bins.n = 0
            fill_bins(points, h, node.start, node.stop, block, &bins)
            cut = cut_bins(points, &bins)
            # Of equals, the first wins, and the axes come first.
            if cut.position >= 0 and cut.gain > node.gain * (1.0 + 1e-9):
                node.gain = cut.gain
                node.orientation = h
                node.position = bins.bin_stop[cut.position - 1]
                low = bins.bin_stop[cut.position - 2] if cut.position >= 2 else node.start
                high = bins.bin_stop[cut.position]
        if node.orientation >= 0:
            if block > 0.0:
                position = refine_position(points, node, node.orientation, low, high, &gain)
                if position >= 0 and gain > node.gain:
                    node.gain = gain
                    node.position = position
            set_threshold(points, node)
    arena_release(points.arena, mark)


cdef void set_threshold(const Points* points, PairNode* node) noexcept nogil:
    cdef const int32_t* order = points.order[node.orientation]
    node.threshold = parting(along(points, node.orientation, order[node.position - 1]),
                             along(points, node.orientation, order[node.position]))


cdef void part_points(void* context, PairTree* tree, int leaf) noexcept nogil:
    """Bring the points below a leaf's cut before those above it, in every order."""
    cdef:
        Points* points = <Points*> context
        const PairNode* node = &tree.nodes[leaf]
        int32_t* order = points.order[node.orientation]
        int h, i, n_low, n_high
        int32_t point
    for i in range(node.start, node.stop):
        points.is_above[order[i]] = i >= node.position
    for h in range(points.first_active, points.stop_active):
        order = points.order[h]
        if order == NULL or h == node.orientation:
            continue
        n_low = node.start
        n_high = 0
        for i in range(node.start, node.stop):
            # Written to both sides; only one of them moves on.
            point = order[i]
            order[n_low] = point
            points.scratch[n_high] = point
            n_low += 1 - points.is_above[point]
            n_high += points.is_above[point]
        memcpy(order + n_low, points.scratch, n_high * sizeof(int32_t))


cdef void copy_orders(const Points* points, int32_t** order) noexcept nogil:
    """Bring the points to orders along all active orientations."""
    cdef int h
    for h in range(points.first_active, points.stop_active):
        if points.order[h] != NULL and points.order[h] != order[h]:
            memcpy(points.order[h], order[h], points.n * sizeof(int32_t))


cdef inline uint32_t rough_key(double value) noexcept nogil:
    """An integer that ascends with the value, as exact as a float."""
    cdef:
        float rough = <float> value
        uint32_t bits
    memcpy(&bits, &rough, sizeof(bits))
    return bits ^ (0xFFFFFFFFU if bits >> 31 else 0x80000000U)


cdef void sort_by_value(
    const double* value, int n, uint64_t* items, uint64_t* scratch, int32_t* order
) noexcept nogil:
    """Order of the values, none of which is NaN; of equals, the first comes first.

    A radix sort by roughly rounded values leaves little to do for the exact ones. There is room
    for n `items`, and as many for `scratch`.
    """
    cdef:
        int i, start = 0
        bint is_sorted = True
        double base = value[0] if n > 0 else 0.0
    for i in range(n):
        base = value[i] if value[i] < base else base
    if base < -1e300:
        base = 0.0
    for i in range(n):
        # Adding zero makes one of both zeros.
        items[i] = (<uint64_t> rough_key(value[i] - base + 0.0) << 32) | <uint64_t> i
    sort_items(items, scratch, n, 0xFFFFFFFFU)
    for i in range(n):
        order[i] = <int32_t> (items[i] & 0xFFFFFFFFU)
    for i in range(1, n + 1):
        if i == n or items[i] >> 32 != items[start] >> 32:
            if not is_sorted:
                sort_by_key(value, order + start, i - start)
            start = i
            is_sorted = True
        elif value[order[i]] < value[order[i - 1]]:
            is_sorted = False


def order_of(values):
    """Order of an array's values, for tests."""
    cdef:
        const double[::1] v = np.ascontiguousarray(values, dtype=np.float64)
        int n = v.shape[0]
        uint64_t[::1] room = np.empty(2 * n + 1, dtype=np.uint64)
        int32_t[::1] order
    if np.isnan(values).any():
        raise ValueError("NaN has no place in an order")
    out = np.empty(n, dtype=np.int32)
    order = out
    if n > 0:
        sort_by_value(&v[0], n, &room[0], &room[n], &order[0])
    return out


cdef void sort_points(Points* points, int orientation, Arena* arena) noexcept nogil:
    """Order the points along an orientation, if it is of use."""
    cdef:
        Mark mark = arena_mark(arena)
        double* value
        uint64_t* items
        uint64_t* scratch
        int i
    if points.n < 2 or orientation >= points.n_orientations or (
            points.order[orientation] == NULL or must_stop(arena, points.n)):
        return
    value = take_doubles(arena, points.n)
    items = <uint64_t*> take_doubles(arena, points.n)
    scratch = <uint64_t*> take_doubles(arena, points.n)
    if arena.failed:
        return
    for i in range(points.n):
        value[i] = along(points, orientation, i)
    sort_by_value(value, points.n, items, scratch, points.order[orientation])
    arena_release(arena, mark)


# --- inner trees from a given first cut: that of a checkerboard gains nothing alone ---------------

cdef enum:
    MAX_SWEEPS = 4


cdef bint cut_root_at(
    Points* points, PairTree* tree, int orientation, int position
) noexcept nogil:
    """Cut a fresh tree at the first possible position from `position` on; whether there is one."""
    cdef:
        PairNode* root = &tree.nodes[0]
        const int32_t* order = points.order[orientation]
        int j, n_stats = points.c.n_stats
    plant(tree, points.n)
    tree.nodes[0].n_rows = points.n
    tree.nodes[0].price = 0.0
    while position < points.n and (
            along(points, orientation, order[position - 1])
            == along(points, orientation, order[position])):
        position += 1
    if position >= points.n:
        return False
    root.orientation = orientation
    root.position = position
    root.gain = 0.0
    set_threshold(points, root)
    part_points(points, tree, 0)
    add_children(tree, 0)
    find_cut(points, tree, 1)
    find_cut(points, tree, 2)
    for j in range(n_stats):
        tree.stats[j] = tree.stats[n_stats + j] + tree.stats[2 * n_stats + j]
    return tree.nodes[1].orientation >= 0 and tree.nodes[2].orientation >= 0


cdef inline void add_scaled(
    double* stats, double factor, const double* row, int n_stats
) noexcept nogil:
    cdef int j
    for j in range(n_stats):
        stats[j] += factor * row[j]


cdef int best_root_position(Points* points, const PairTree* tree, double* least) noexcept nogil:
    """Where the root's cut is best if both its children keep theirs; `least` is the impurity."""
    cdef:
        Mark mark = arena_mark(points.arena)
        const PairNode* root = &tree.nodes[0]
        const PairNode* child
        const int32_t* order = points.order[root.orientation]
        int n_stats = points.c.n_stats, i, j, best = -1
        double* quadrant = take_doubles(points.arena, 4 * n_stats)
        double* row = take_doubles(points.arena, points.targets.n_channels)
        double loss, here, last = 0.0
        uint8_t* side = <uint8_t*> take_branches(points.arena, 2 * <size_t> points.n)
    if points.arena.failed:
        return -1
    memset(quadrant, 0, 4 * n_stats * sizeof(double))
    for i in range(points.n):
        for j in range(2):
            child = &tree.nodes[1 + j]
            side[2 * i + j] = along(points, child.orientation, i) > child.threshold
        memset(row, 0, points.targets.n_channels * sizeof(double))
        add_row(points.targets, points.place[i], row)
        add_scaled(quadrant + (2 + side[2 * i + 1]) * n_stats, 1.0, row, n_stats)
    least[0] = INFINITY
    for i in range(points.n):
        here = along(points, root.orientation, order[i])
        if i > 0 and here != last:
            loss = 0.0
            for j in range(4):
                loss += impurity(points.c, quadrant + j * n_stats)
            if loss < least[0]:
                least[0] = loss
                best = i
        last = here
        memset(row, 0, points.targets.n_channels * sizeof(double))
        add_row(points.targets, points.place[order[i]], row)
        add_scaled(quadrant + (2 + side[2 * order[i] + 1]) * n_stats, -1.0, row, n_stats)
        add_scaled(quadrant + side[2 * order[i]] * n_stats, 1.0, row, n_stats)
    arena_release(points.arena, mark)
    return best


cdef int position_of_share(
    const Points* points, const int32_t* order, double share
) noexcept nogil:
    """How many points of an order, one at least and not all, hold a share of the weight."""
    cdef:
        double total = 0.0, below = 0.0
        int i
    share -= 1e-9    # rounding must not choose
    if points.weight == NULL:
        return max(1, min(points.n - 1, <int> ceil(share * points.n)))
    for i in range(points.n):
        total += points.weight[i]
    for i in range(points.n - 1):
        below += points.weight[order[i]]
        if below >= share * total:
            return i + 1
    return max(1, points.n - 1)


cdef void grow_from(
    Points* points, PairTree* tree, Start start, int32_t** sorted_order
) noexcept nogil:
    """Grow a tree whose root is cut as a start says.

    The root's position and its children's cuts are adapted to each other in turns.
    """
    cdef:
        double share = start.share if 0.0 <= start.share <= 1.0 else 0.5
        int position = position_of_share(points, sorted_order[start.orientation], share)
        int before
        double loss, least = INFINITY
    for _ in range(MAX_SWEEPS):
        copy_orders(points, sorted_order)
        if not cut_root_at(points, tree, start.orientation, position) or points.arena.failed:
            return
        before = tree.nodes[0].position
        position = best_root_position(points, tree, &loss)
        if position < 0 or position == before or not loss < least:
            break
        least = loss
    grow(tree, &points.sample.options, points, find_cut, part_points)


# --- many pairs of a node -------------------------------------------------------------------------

cdef extern from "parting.h":
    double in_digits(double number, int digits) noexcept nogil

cdef enum:
    SLOPE_DIGITS = 3         # of an oblique cut's weight, which people read
    BYTES_TOGETHER = 1 << 24  # of pairs that are fitted together, unless one takes more


ctypedef struct PairFit:
    # A pair on its way to a shape function.
    Points points            # in order along each orientation
    double* missing          # statistics of the rows that lack a feature
    int n_missing
    Start start
    bint has_start
    PairTree tree            # that grows greedily
    PairTree other_tree      # that grows from the start
    Mark mark                # of the arena that holds all this


cdef class PairFitArray:
    """Room for the fits of some pairs."""

    cdef PairFit* fits

    def __cinit__(self, Py_ssize_t n):
        self.fits = <PairFit*> calloc(n, sizeof(PairFit))
        if self.fits == NULL:
            raise MemoryError("no memory for a search")

    def __dealloc__(self):
        free(self.fits)


cdef void take_scratch(Points* points, bint with_orders, Arena* arena) noexcept nogil:
    """Take what a tree needs to part the points, and orders of its own if others want these."""
    cdef:
        int h
        int32_t** order = points.order
    points.arena = arena
    points.is_above = <uint8_t*> take_branches(arena, points.n)
    points.scratch = take_ints(arena, points.n)
    if with_orders:
        points.order = <int32_t**> take_doubles(arena, points.n_orientations)
        if arena.failed:
            return
        for h in range(points.n_orientations):
            points.order[h] = take_ints(arena, points.n) if order[h] != NULL else NULL


cdef void grow_greedily(PairFit* fit, Arena* arena) noexcept nogil:
    """Grow an inner tree, the best cut first."""
    cdef:
        Mark mark = arena_mark(arena)
        Points points = fit.points
    if points.n < 2:
        return
    take_scratch(&points, fit.has_start, arena)
    if arena.failed:
        return
    copy_orders(&points, fit.points.order)
    plant(&fit.tree, points.n)
    find_cut(&points, &fit.tree, 0)
    grow(&fit.tree, &points.sample.options, &points, find_cut, part_points)
    arena_release(arena, mark)


cdef void grow_from_start(PairFit* fit, Arena* arena) noexcept nogil:
    """Grow an inner tree whose root is cut as the start says, if there is a start."""
    cdef:
        Mark mark = arena_mark(arena)
        Points points = fit.points
    if not fit.has_start or points.n < 2:
        return
    take_scratch(&points, True, arena)
    if arena.failed:
        return
    if fit.start.framed:
        points.first_active = fit.start.orientation
        points.stop_active = min(fit.start.orientation + 2, points.n_orientations)
    grow_from(&points, &fit.other_tree, fit.start, fit.points.order)
    arena_release(arena, mark)


cdef void fill_orientations(
    const Sample* sample, double ratio, double* a, double* b
) noexcept nogil:
    """Orientations in the user's units; b is 0 for those that rounding makes useless."""
    cdef int h
    a[0] = 1.0
    b[0] = 0.0
    a[1] = 0.0
    b[1] = 1.0
    for h in range(2, sample.n_orientations):
        a[h] = 1.0
        b[h] = in_digits(sample.slopes[h] * ratio, SLOPE_DIGITS)
        if not 1e-300 < fabs(b[h]) < 1e300:
            b[h] = 0.0


cdef inline double value_at(const Sample* sample, int feature, int row) noexcept nogil:
    """A number, or a category's position; NaN if it is missing."""
    return side_at(&sample.columns[feature], row, sample.positions + sample.offsets[feature],
                   <int> (sample.offsets[feature + 1] - sample.offsets[feature]))


cdef void lay_out(const Sample* sample, Py_ssize_t pair, Arena* arena, PairFit* fit) noexcept nogil:
    """Gather a pair's points, with room for their orders and for inner trees.

    Rows that lack a feature are summed up as missing.
    """
    cdef:
        const CriterionInfo* c = sample.c
        const NodeTargets* targets = &sample.targets
        int first = sample.pairs[2 * pair], second = sample.pairs[2 * pair + 1], n = sample.n
        Points* points = &fit.points
        bint oblique = (sample.columns[first].kind != INT32
                        and sample.columns[second].kind != INT32)
        int n_orientations = sample.n_orientations if oblique else 2, h, i
        int32_t* place = take_ints(arena, n)
        double* u = take_doubles(arena, n)
        double* v = take_doubles(arena, n)
        double* a = take_doubles(arena, sample.n_orientations)
        double* b = take_doubles(arena, sample.n_orientations)
        double x, y
    fit.missing = take_doubles(arena, targets.n_channels)
    points.order = <int32_t**> take_doubles(arena, n_orientations)
    points.label = NULL
    points.weight = NULL
    if targets.labels != NULL and targets.n_outputs == 1:
        points.label = take_ints(arena, n)
    if targets.weights != NULL:
        points.weight = take_doubles(arena, n)
    take_tree(c, &sample.options, arena, &fit.tree)
    take_tree(c, &sample.options, arena, &fit.other_tree)
    if arena.failed:
        return
    memset(fit.missing, 0, targets.n_channels * sizeof(double))
    fill_orientations(sample, sample.scales[first] / sample.scales[second], a, b)
    fit.start = sample.starts[pair]
    fit.has_start = (0 <= fit.start.orientation < n_orientations
                     and (fit.start.orientation < 2 or b[fit.start.orientation] != 0.0)
                     and sample.options.inner_max_leaves >= 4
                     and sample.options.inner_max_depth >= 2)
    points.n = 0
    for i in range(n):
        x = value_at(sample, first, sample.rows[i])
        y = value_at(sample, second, sample.rows[i])
        if x != x or y != y:
            add_row(targets, i, fit.missing)
            continue
        u[points.n] = x
        v[points.n] = y
        place[points.n] = i
        if points.label != NULL:
            points.label[points.n] = targets.labels[i]
        if points.weight != NULL:
            points.weight[points.n] = targets.weights[i]
        points.n += 1
    fit.n_missing = n - points.n
    if targets.counts != NULL:
        fit.n_missing = <int> fit.missing[targets.n_stats]
    points.sample = sample
    points.c = c
    points.targets = targets
    points.place = place
    points.u = u
    points.v = v
    points.n_orientations = n_orientations
    points.first_active = 0
    points.stop_active = n_orientations
    points.a = a
    points.b = b
    for h in range(n_orientations):
        points.order[h] = take_ints(arena, n) if h < 2 or b[h] != 0.0 else NULL


class PairFits(NamedTuple):
    """Shape functions of some pairs.

    Attributes
    ----------
    gains, penalised_gains : arrays (n_pairs,)
        In units of mass; -inf where a pair has no eligible shape function.
    n_branches, missing_branch, n_nodes : int32 arrays (n_pairs,)
        The missing branch is -1 if no row lacks a feature.
    a, b, threshold : arrays (n_pairs, room)
        Cuts of the inner trees.
    low, branch : int32 arrays (n_pairs, room)
        The child below a cut, the one above follows it; and the branch of a region. -1 if it has
        none.
    """

    gains: object
    penalised_gains: object
    n_branches: object
    missing_branch: object
    n_nodes: object
    a: object
    b: object
    threshold: object
    low: object
    branch: object


cdef class Results:
    """What the fits of some pairs write to."""

    cdef double[::1] gains
    cdef double[::1] penalised_gains
    cdef int32_t[::1] n_branches
    cdef int32_t[::1] missing_branch
    cdef int32_t[::1] n_nodes
    cdef double[:, ::1] a
    cdef double[:, ::1] b
    cdef double[:, ::1] threshold
    cdef int32_t[:, ::1] low
    cdef int32_t[:, ::1] branch

    def __init__(self, fits):
        (self.gains, self.penalised_gains, self.n_branches, self.missing_branch, self.n_nodes,
         self.a, self.b, self.threshold, self.low, self.branch) = fits


cdef class PairSample:
    """Rows of a node that pairs are fitted on, with the columns that are in some pair.

    Parameters
    ----------
    columns : Columns
        Numbers, or codes of categories.
    scales : array (n_columns,)
        The columns' units.
    offsets : int64 array (n_columns + 1,)
        Where each column's positions start.
    positions : array
        Places of the categories in the node's order; NaN for none.
    targets : Targets
    scale : float
        Rows of the node that each of the sample stands for.
    """

    cdef Columns columns
    cdef const double[::1] scales
    cdef const int64_t[::1] offsets
    cdef const double[::1] positions
    cdef Targets targets
    cdef double scale

    def __init__(
        self, Columns columns not None, const double[::1] scales not None,
        const int64_t[::1] offsets not None, const double[::1] positions not None,
        Targets targets not None, double scale=1.0,
    ):
        cdef int f
        for f in range(columns.n_columns):
            if columns.column[f].kind not in (INT32, FLOAT32, FLOAT64):
                raise ValueError(f"column {f} holds neither numbers nor categories")
        if scales.shape[0] != columns.n_columns:
            raise ValueError("there must be a scale for each column")
        if offsets.shape[0] != columns.n_columns + 1 or offsets[0] < 0 or (
                positions.shape[0] < offsets[columns.n_columns]):
            raise ValueError("positions must have room for every column's categories")
        for f in range(columns.n_columns):
            if offsets[f + 1] < offsets[f]:
                raise ValueError("positions must have room for every column's categories")
        if not 0.0 < scale < INFINITY:
            raise ValueError("scale is out of range")
        self.columns, self.targets, self.scale = columns, targets, scale
        self.scales, self.offsets, self.positions = scales, offsets, positions


cdef class PairFitter:
    """Fits shape functions of pairs to samples of nodes.

    Parameters
    ----------
    criterion : Criterion
    slopes : array (n_orientations,)
        Tangents of the oblique orientations of the standardised pair; the first two entries, for
        the axes, are not used.
    exact : bool
        Whether heavy regions, too, are searched row by row.
    inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows, min_weight :
        Options that hold for every node.
    """

    cdef Criterion criterion
    cdef Options options
    cdef const double[::1] slopes
    cdef bint exact

    def __init__(self, Criterion criterion not None, slopes, *, bint exact=False, **limits):
        self.criterion = criterion
        self.slopes = np.ascontiguousarray(slopes, dtype=np.float64)
        if self.slopes.shape[0] < 2:
            raise ValueError("there must be two orientations at least")
        self.exact = exact
        self.options = options_of(limits)

    def fit(
        self,
        PairSample given not None,                  # IN
        const int32_t[::1] rows not None,           # IN: rows of the sample that are looked at
        const int32_t[:, ::1] pairs not None,       # IN: (n_pairs, 2) columns
        const Start[::1] starts not None,           # IN: (n_pairs,) how their inner trees start
        node,                                       # IN: NodeOptions, in units of the sample
        int n_threads,
    ):
        """Fit the pairs, all in units of the sample; returns PairFits."""
        cdef:
            Sample sample
            Arenas kept, arenas
            Results results
            PairFitArray pair_fits
            Columns columns = given.columns
            Targets targets = given.targets
            int p, n_pairs = pairs.shape[0], n_orientations = self.slopes.shape[0]
            Py_ssize_t n = rows.shape[0], first, together
        if starts.shape[0] != n_pairs:
            raise ValueError("there must be one start for each pair")
        check_pairs(pairs, columns.n_columns)
        for p in range(n_pairs):
            if starts[p].orientation >= n_orientations:
                raise ValueError("a start's orientation does not exist")
        check_rows(rows, min(columns.n_rows, targets.n_rows))
        if not 1 <= n <= targets.n_rows or n_threads < 1:
            raise ValueError("rows or n_threads out of range")
        if targets.n_stats != self.criterion.info.n_stats:
            raise ValueError("targets and criterion differ in their statistics")
        shape = n_pairs, 2 * max_leaves_of(&self.options) - 1
        fits = PairFits(
            np.full(n_pairs, -np.inf), np.full(n_pairs, -np.inf),
            np.zeros(n_pairs, dtype=np.int32), np.full(n_pairs, -1, dtype=np.int32),
            np.zeros(n_pairs, dtype=np.int32), np.zeros(shape), np.zeros(shape), np.zeros(shape),
            np.full(shape, -1, dtype=np.int32), np.full(shape, -1, dtype=np.int32))
        if n_pairs == 0:
            return fits
        results = Results(fits)
        sample.c = &self.criterion.info
        sample.options = options_for_pairs(&self.options, node)
        sample.exact = self.exact
        sample.min_rows = max(sample.options.inner_min_rows, sample.options.min_rows)
        sample.scale = given.scale
        sample.slopes = &self.slopes[0]
        sample.n_orientations = n_orientations
        sample.columns = columns.column
        sample.scales = &given.scales[0]
        sample.offsets = &given.offsets[0]
        sample.positions = &given.positions[0] if given.positions.shape[0] else NULL
        sample.rows = &rows[0]
        sample.n = <int> n
        sample.pairs = &pairs[0, 0]
        sample.starts = &starts[0]
        # Points of pairs last longer than what a thread needs at a time.
        together = BYTES_TOGETHER // (n * (4 * n_orientations + 32))
        together = max(1, min(n_pairs, together))
        n_threads = <int> min(n_threads, max(2 * n_pairs, n_orientations))
        kept, arenas = Arenas(<int> together + 1), Arenas(n_threads)
        pair_fits = PairFitArray(together)
        sample.targets = targets.gather(&rows[0], n, &kept.of_thread[together])
        kept.finish()
        for first in range(0, n_pairs, together):
            fit_some(&sample, first, min(first + together, n_pairs), pair_fits.fits, kept, arenas,
                     n_threads, results)
        return fits


cdef int fit_some(
    const Sample* sample, Py_ssize_t first, Py_ssize_t last, PairFit* fits, Arenas kept,
    Arenas arenas, int n_threads, Results results,
) except -1:
    """Fit the pairs first..last-1.

    Threads share out the pairs, then the orientations along which their points are sorted, then
    the inner trees: up to two for each pair.
    """
    cdef Py_ssize_t p, task, n = last - first, n_orientations = sample.n_orientations
    for p in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic"):
        fits[p].mark = arena_mark(&kept.of_thread[p])
        lay_out(sample, first + p, &kept.of_thread[p], &fits[p])
    kept.finish()
    for task in prange(n * n_orientations, nogil=True, num_threads=n_threads, schedule="dynamic"):
        sort_points(&fits[task // n_orientations].points, <int> (task % n_orientations),
                    &arenas.of_thread[threadid()])
    arenas.finish()
    for task in prange(2 * n, nogil=True, num_threads=n_threads, schedule="dynamic"):
        if task < n:
            grow_greedily(&fits[task], &arenas.of_thread[threadid()])
        else:
            grow_from_start(&fits[task - n], &arenas.of_thread[threadid()])
    arenas.finish()
    for p in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic"):
        choose(&fits[p], <int> (first + p), &arenas.of_thread[threadid()], results)
        arena_release(&kept.of_thread[p], fits[p].mark)
    arenas.finish()
    return 0


cdef void choose(PairFit* fit, int p, Arena* arena, Results results) noexcept nogil:
    """Send the regions of a pair's inner trees to branches, and note the better tree."""
    cdef:
        Mark mark = arena_mark(arena)
        const Sample* sample = fit.points.sample
        const PairTree* best_tree = &fit.tree
        PairShape best
        double objective
    best.branch = take_branches(arena, fit.tree.room)
    best.objective = INFINITY
    if arena.failed or fit.points.n < 2:
        return
    choose_branches(
        sample.c, &fit.tree, fit.missing, fit.n_missing, &sample.options, arena, &best)
    if fit.has_start:
        objective = best.objective
        choose_branches(
            sample.c, &fit.other_tree, fit.missing, fit.n_missing, &sample.options, arena, &best)
        if best.objective < objective:
            best_tree = &fit.other_tree
    if best.objective < INFINITY and not arena.failed:
        note(p, &fit.points, best_tree, &best, fit.missing, results)
    arena_release(arena, mark)


cdef void note(
    int p, const Points* points, const PairTree* tree, const PairShape* best, double* missing,
    Results results,
) noexcept nogil:
    """Write down a pair's results, without the nodes that were pruned."""
    cdef:
        int32_t number[2 * MAX_REGIONS]
        const PairNode* node
        int i, j, n_kept = 1
        double whole
    number[0] = 0
    for i in range(tree.n_nodes):
        node = &tree.nodes[i]
        if node.low >= 0 and best.branch[i] == INNER:
            number[node.low] = n_kept
            number[node.low + 1] = n_kept + 1
            n_kept += 2
    for i in range(tree.n_nodes):
        node = &tree.nodes[i]
        if best.branch[i] == INNER:
            j = number[i]
            results.a[p, j] = points.a[node.orientation]
            results.b[p, j] = points.b[node.orientation]
            results.threshold[p, j] = node.threshold
            results.low[p, j] = number[node.low]
        elif best.branch[i] != HIDDEN:
            results.branch[p, number[i]] = best.branch[i]
    for j in range(points.c.n_stats):
        missing[j] += tree.stats[j]
    whole = impurity(points.c, missing)
    results.n_nodes[p] = n_kept
    results.gains[p] = whole - best.loss
    results.penalised_gains[p] = whole - best.objective
    results.n_branches[p] = best.n_branches
    results.missing_branch[p] = best.missing_branch
