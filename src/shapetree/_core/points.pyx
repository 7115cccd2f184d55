"""Points of a pair's plane: their orders along orientations, their bins and their best cuts.

An inner tree is grown on them (see `shapetree._core.pair_tree`): `find_cut` finds the best cut of a
leaf, and `part_points` brings a leaf's points into the order of its children.
"""

from libc.math cimport INFINITY, NAN, ceil
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport (
    Arena, Mark, arena_mark, arena_release, must_stop, take_doubles, take_ints,
)
from shapetree._core.columns cimport projection
from shapetree._core.criterion cimport weight_of
from shapetree._core.histogram cimport add_row
from shapetree._core.inner_tree cimport Bins, Cut, Scan, best_cut, prepare_scan
from shapetree._core.pair_tree cimport PairNode, PairTree, can_pay, set_price
from shapetree._core.sorting cimport sort_by_value

cdef extern from "parting.h":
    double parting(double low, double high) noexcept nogil

cdef enum:
    EXACT_WEIGHT = 512       # a region that weighs no more is searched row by row
    N_BLOCKS = 255           # a heavier one by so many blocks first
    MAX_PACKED = 4           # counts that share a register


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


cdef int fill_blocks(
    const Points* points, int orientation, int start, int stop, double block, int first, int most,
    double* stats, int32_t* n_rows, int32_t* bin_stop,
) noexcept nogil:
    """What `fill_bins` does, for points that count for one statistic each and weigh 1."""
    cdef:
        const int32_t* order = points.order[orientation]
        int n_stats = points.c.n_stats, i = start, n = first, begin
        # So many points belong to a bin whatever they are.
        int size = max(1, <int> min(ceil(block), <double> (stop - start)))
        double* cell
    while i < stop:
        cell = stats + <Py_ssize_t> n * n_stats
        memset(cell, 0, n_stats * sizeof(double))
        begin = i
        i = stop if n + 1 >= most or size >= stop - i else i + size
        while i < stop and (
                along(points, orientation, order[i]) == along(points, orientation, order[i - 1])):
            i += 1
        count_labels(points.label, order, begin, i, n_stats, cell)
        n_rows[n] = i - begin
        bin_stop[n] = i
        n += 1
    return n


cdef int fill_bins(
    const Points* points, int orientation, int start, int stop, double block, int first, int most,
    double* stats, int32_t* n_rows, int32_t* bin_stop,
) noexcept nogil:
    """Sum the points from `start` on in bins that weigh `block` or more, equal ones together.

    The bins from `first` on are filled; returns how many bins there are then, `most` at most.
    """
    cdef:
        const int32_t* order = points.order[orientation]
        int n_stats = points.c.n_stats, n_channels = points.targets.n_channels
        int i = start, n = first, begin, n_more, known = -1
        int32_t point
        double here, last = 0.0, weight
        double* cell
    if points.label != NULL and points.weight == NULL:
        if block == 0.0 and stop - start <= most - first:
            return fill_bins_of_rows(
                points, orientation, start, stop, first, stats, n_rows, bin_stop)
        return fill_blocks(
            points, orientation, start, stop, block, first, most, stats, n_rows, bin_stop)
    while i < stop:
        # Statistics lie densely: the channel that counts rows is overwritten by the next bin.
        cell = stats + <Py_ssize_t> n * n_stats
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
        n_rows[n] = i - begin + n_more
        bin_stop[n] = i
        n += 1
    return n


cdef int fill_bins_of_rows(
    const Points* points, int orientation, int start, int stop, int first,
    double* stats, int32_t* n_rows, int32_t* bin_stop,
) noexcept nogil:
    """The same for rows that count for one statistic each, a bin for each place; no branches."""
    cdef:
        const int32_t* order = points.order[orientation]
        const int32_t* label = points.label
        const double* u = points.u
        const double* v = points.v
        double a = points.a[orientation], b = points.b[orientation]
        int n_stats = points.c.n_stats, i, n = first - 1
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
        n_rows[i] = bin_stop[i] - (bin_stop[i - 1] if i > first else start)
    return n + 1


cdef Cut cut_bins(
    const Points* points, int n_bins, const double* stats, const int32_t* n_rows
) noexcept nogil:
    cdef:
        Mark mark = arena_mark(points.arena)
        Bins bins
        Scan scan
        Cut cut
    bins.n_bins = n_bins
    bins.stats = stats
    bins.n_rows = n_rows
    cut.position = -1
    prepare_scan(points.c, bins, points.min_rows, points.arena, &scan)
    if not points.arena.failed:
        cut = best_cut(&scan, 0, n_bins)
        arena_release(points.arena, mark)
    return cut


cdef int refine_position(
    Points* points, const PairNode* node, int orientation, int low, int high, double* gain
) noexcept nogil:
    """The best position of a cut among the points low..high-1, row by row."""
    cdef:
        Mark mark = arena_mark(points.arena)
        int n_stats = points.c.n_stats, n, room = high - low + 3
        double* stats = take_doubles(points.arena, <size_t> (room + 1) * n_stats)
        int32_t* n_rows = take_ints(points.arena, room)
        int32_t* bin_stop = take_ints(points.arena, room)
        Cut cut
    if points.arena.failed:
        return -1
    # All that lies before, the points themselves, all that lies behind.
    n = 0
    if low > node.start:
        n = fill_bins(points, orientation, node.start, low, INFINITY, n, room, stats, n_rows,
                      bin_stop)
    n = fill_bins(points, orientation, low, high, 0.0, n, room, stats, n_rows, bin_stop)
    if node.stop > high:
        n = fill_bins(points, orientation, high, node.stop, INFINITY, n, room, stats, n_rows,
                      bin_stop)
    cut = cut_bins(points, n, stats, n_rows)
    if cut.position >= 0:
        gain[0] = cut.gain
    arena_release(points.arena, mark)
    return bin_stop[cut.position - 1] if cut.position >= 0 else -1


cdef void find_cut(void* context, PairTree* tree, int leaf) noexcept nogil:
    """Sum a leaf's rows and find its best cut along any orientation."""
    cdef:
        Points* points = <Points*> context
        PairNode* node = &tree.nodes[leaf]
        Mark mark = arena_mark(points.arena)
        int n_stats = points.c.n_stats, n = node.stop - node.start, h, i, n_bins, position, room
        int low = -1, high = -1
        double* sums = take_doubles(points.arena, points.targets.n_channels)
        double* total = tree.stats + leaf * n_stats
        double* stats
        int32_t* n_rows
        int32_t* bin_stop
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
    set_price(points.c, points.region_penalty, points.scale, tree, leaf)
    weight = weight_of(points.c, total)
    room = n
    if not points.exact and weight > EXACT_WEIGHT:
        block = weight / N_BLOCKS
        # Rounding may leave one more, and the last may be lighter.
        room = min(n, N_BLOCKS + 2)
    stats = take_doubles(points.arena, <size_t> (room + 2) * n_stats)
    n_rows = take_ints(points.arena, room + 1)
    bin_stop = take_ints(points.arena, room + 1)
    if points.arena.failed:
        return
    # The children of a root that a start gives are cut whatever they earn.
    if (node.n_rows >= 2 * <int64_t> points.min_rows and (leaf < 3 or can_pay(points.c, tree, leaf))
            and not must_stop(points.arena, n)):
        for h in range(points.first_active, points.stop_active):
            if points.order[h] == NULL:
                continue
            n_bins = fill_bins(
                points, h, node.start, node.stop, block, 0, room, stats, n_rows, bin_stop)
            cut = cut_bins(points, n_bins, stats, n_rows)
            # Of equals, the first wins, and the axes come first.
            if cut.position >= 0 and cut.gain > node.gain * (1.0 + 1e-9):
                node.gain = cut.gain
                node.orientation = h
                node.position = bin_stop[cut.position - 1]
                low = bin_stop[cut.position - 2] if cut.position >= 2 else node.start
                high = bin_stop[cut.position]
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


cdef void plant(Points* points, PairTree* tree) noexcept nogil:
    """Start a tree with all points in one leaf, not yet described."""
    tree.n_nodes = 1
    tree.nodes[0].low = -1
    tree.nodes[0].depth = 0
    tree.nodes[0].start = 0
    tree.nodes[0].stop = points.n
    tree.nodes[0].n_rows = points.n
    tree.nodes[0].price = 0.0


cdef void copy_orders(const Points* points, int32_t** order) noexcept nogil:
    """Bring the points to orders along all active orientations."""
    cdef int h
    for h in range(points.first_active, points.stop_active):
        if points.order[h] != NULL and points.order[h] != order[h]:
            memcpy(points.order[h], order[h], points.n * sizeof(int32_t))


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
    scratch = <uint64_t*> take_doubles(arena, 2 * <size_t> points.n)
    if arena.failed:
        return
    for i in range(points.n):
        value[i] = along(points, orientation, i)
    sort_by_value(value, points.n, items, scratch, points.order[orientation])
    arena_release(arena, mark)
