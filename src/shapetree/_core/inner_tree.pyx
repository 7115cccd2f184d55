"""Inner trees: cut one feature's bins into pieces, by CART or by exact dynamic programming."""

import numpy as np

from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t

from shapetree._core.criterion cimport (
    ABSOLUTE, ENTROPY, MAX_LOOKED_UP, SQUARED, Criterion, CriterionInfo, impurity, small_counts,
    weight_of,
)
from shapetree._core.threads cimport (
    Arena, Mark, arena_free, arena_init, arena_mark, arena_release, must_stop,
    take_doubles, take_ints,
)

cdef extern from "vector.h":
    ctypedef struct PrefixSums:
        const double* sums
        int64_t stride
        int n_stats
        int n_outputs
        const double* looked_up
        int n_looked_up
    void entropy_of_cuts(const PrefixSums* of, int start, int stop, double* loss) noexcept nogil
    void variance_of_cuts(const PrefixSums* of, int start, int stop, double* loss) noexcept nogil

cdef enum:
    # The dynamic programme's time grows with the square of the bins: more than these are first
    # brought down to as many by an inner CART.
    MAX_OPTIMAL_BINS = 512
    # Where every cut takes but a few bins off a leaf, an inner CART's time would grow with the
    # square of the bins, too. Once it has looked at so many bins, for each bin and in any case,
    # leaves of more bins than a few are cut in the middle.
    LOOKS_PER_BIN = 64
    LOOKS = 1 << 20
    FEW_BINS = 64

ctypedef struct Leaf:
    int start
    int stop
    int depth
    Cut cut


cdef void sum_bins(
    const CriterionInfo* c, const double* stats, int start, int stop, double* total
) noexcept nogil:
    cdef:
        int b, j
        int n_stats = c.n_stats
    for j in range(n_stats):
        total[j] = 0.0
    for b in range(start, stop):
        for j in range(n_stats):
            total[j] += stats[b * n_stats + j]


# Adding this to a number and taking it away again leaves nothing behind the decimal point.
cdef double TO_WHOLE = 1.5 * 2.0 ** 52


cdef bint prefix_sums_of_two_classes(const double* stats, int n, double* prefix) noexcept nogil:
    """Prefix sums of weights and of both classes; whether they are counts."""
    cdef:
        double shift = TO_WHOLE, zero = 0.0, one = 0.0, both = 0.0, s, t
        bint whole = True
        int b
        double* zeros = prefix + n + 1
        double* ones = zeros + n + 1
    prefix[0] = zeros[0] = ones[0] = 0.0
    for b in range(n):
        s = stats[2 * b]
        t = stats[2 * b + 1]
        whole &= ((s + shift) - shift == s) & ((t + shift) - shift == t) & (s >= 0.0) & (t >= 0.0)
        both += s + t
        zero += s
        one += t
        prefix[b + 1] = both
        zeros[b + 1] = zero
        ones[b + 1] = one
    return whole and both < 2.0 ** 51


cdef bint prefix_sums(const CriterionInfo* c, Bins bins, double* prefix) noexcept nogil:
    """Prefix sums of weights, then of each statistic behind the weights; whether they are exact.

        stats    bin 0: s0 s1    bin 1: t0 t1    ..
        prefix   0, w(s), w(s) + w(t), ..  |  0, s0, s0 + t0, ..  |  0, s1, s1 + t1, ..

    They are if all are whole numbers, and counts if they are labels'.
    """
    cdef:
        int b, j, n = bins.n_bins, n_stats = c.n_stats
        int first = c.kind == SQUARED  # whose statistics start with the weight
        Py_ssize_t stride = n + 1
        double shift = TO_WHOLE, value
        const double* stats = bins.stats
        double* at
        bint whole = True, is_signed = c.kind == SQUARED
    for j in range(n_stats + 1 - first):
        prefix[j * stride] = 0.0
    # Bin by bin, because sums that do not wait for each other are found at a time.
    for b in range(n):
        value = weight_of(c, stats)
        whole &= (value + shift) - shift == value
        prefix[b + 1] = prefix[b] + value
        at = prefix + b
        for j in range(first, n_stats):
            value = stats[j]
            at += stride
            whole &= ((value + shift) - shift == value) & (is_signed | (value >= 0.0))
            at[1] = at[0] + value
        stats += n_stats
    for j in range(n_stats + 1 - first):
        whole &= fabs(prefix[j * stride + n]) < 2.0 ** 51
    return whole


cdef void prepare_scan(
    const CriterionInfo* c, Bins bins, int min_rows, Arena* arena, Scan* scan
) noexcept nogil:
    """Take what a search for cuts needs; check `arena.failed` afterwards."""
    cdef double* prefix = take_doubles(arena, <size_t> (c.n_stats + 1) * (bins.n_bins + 1))
    scan.c = c
    scan.bins = bins
    scan.min_rows = min_rows
    scan.prefix = prefix
    scan.loss = take_doubles(arena, bins.n_bins)
    scan.left = take_doubles(arena, c.n_stats)
    scan.right = take_doubles(arena, c.n_stats)
    if arena.failed:
        return
    if c.kind != SQUARED and c.n_stats == 2 and c.n_outputs == 1:
        scan.exact = prefix_sums_of_two_classes(bins.stats, bins.n_bins, prefix)
    else:
        scan.exact = prefix_sums(c, bins, prefix)


cdef void sum_interval(Scan* scan, int start, int stop, double* total) noexcept nogil:
    """Statistics of bins start..stop-1."""
    cdef:
        int j
        Py_ssize_t stride = scan.bins.n_bins + 1
        const double* row
    if not scan.exact:
        sum_bins(scan.c, scan.bins.stats, start, stop, total)
        return
    row = scan.prefix if scan.c.kind == SQUARED else scan.prefix + stride
    for j in range(scan.c.n_stats):
        total[j] = row[stop] - row[start]
        row += stride


cdef void absolute_error_of_cuts(
    const CriterionInfo* c, Bins bins, int start, int stop, double* left, double* right,
    double* loss,
) noexcept nogil:
    cdef int b, j, n_stats = c.n_stats
    sum_bins(c, bins.stats, start, stop, right)
    for j in range(n_stats):
        left[j] = 0.0
    for b in range(start, stop - 1):
        for j in range(n_stats):
            left[j] += bins.stats[b * n_stats + j]
            right[j] -= bins.stats[b * n_stats + j]
        loss[b - start] = impurity(c, left) + impurity(c, right)


cdef double interval_impurity(Scan* scan, int start, int stop) noexcept nogil:
    sum_interval(scan, start, stop, scan.left)
    return impurity(scan.c, scan.left)


cdef Cut best_cut(Scan* scan, int start, int stop) noexcept nogil:
    """The cut of bins start..stop-1 in two that leaves the least impurity."""
    return cut_interval(scan, start, stop, interval_impurity(scan, start, stop))


cdef Cut cut_interval(Scan* scan, int start, int stop, double whole) noexcept nogil:
    """The same, where the impurity of all these bins is known."""
    cdef:
        const CriterionInfo* c = scan.c
        Bins bins = scan.bins
        PrefixSums prefix
        int b
        int64_t rows_left = 0, rows = 0
        double* loss = scan.loss
        double least = INFINITY
        Cut best
    best.position = -1
    best.gain = 0.0
    for b in range(start, stop):
        rows += bins.n_rows[b]
    if rows < 2 * <int64_t> scan.min_rows or stop - start < 2:
        return best
    if c.kind == ABSOLUTE:
        absolute_error_of_cuts(c, bins, start, stop, scan.left, scan.right, loss)
    else:
        prefix = PrefixSums(scan.prefix, bins.n_bins + 1, c.n_stats - (c.kind == SQUARED),
                            c.n_outputs, NULL, MAX_LOOKED_UP)
        if c.kind == ENTROPY:
            prefix.looked_up = small_counts() if scan.exact else NULL
            entropy_of_cuts(&prefix, start, stop, loss)
        else:
            variance_of_cuts(&prefix, start, stop, loss)
    for b in range(start, stop - 1):
        rows_left += bins.n_rows[b]
        if loss[b - start] < least and rows_left >= scan.min_rows:
            if rows - rows_left < scan.min_rows:
                break
            least = loss[b - start]
            best.position = b + 1
    if best.position >= 0:
        best.left = interval_impurity(scan, start, best.position)
        best.right = interval_impurity(scan, best.position, stop)
        best.gain = whole - best.left - best.right
    return best


cdef inline void heap_push(int32_t* heap, int* size, const Leaf* leaves, int item) noexcept nogil:
    cdef int child = size[0], parent
    size[0] += 1
    while child > 0:
        parent = (child - 1) // 2
        if leaves[heap[parent]].cut.gain >= leaves[item].cut.gain:
            break
        heap[child] = heap[parent]
        child = parent
    heap[child] = item


cdef inline int heap_pop(int32_t* heap, int* size, const Leaf* leaves) noexcept nogil:
    cdef int top = heap[0], last, parent = 0, child
    size[0] -= 1
    last = heap[size[0]]
    while 2 * parent + 1 < size[0]:
        child = 2 * parent + 1
        if (child + 1 < size[0]
                and leaves[heap[child + 1]].cut.gain > leaves[heap[child]].cut.gain):
            child += 1
        if leaves[last].cut.gain >= leaves[heap[child]].cut.gain:
            break
        heap[parent] = heap[child]
        parent = child
    heap[parent] = last
    return top


cdef Cut cut_in_the_middle(Scan* scan, int start, int stop) noexcept nogil:
    """The cut that leaves half of the rows on either side, to be made before all others."""
    cdef:
        int b
        int64_t rows = 0, rows_left = 0
        Cut cut
    cut.position = -1
    cut.gain = INFINITY
    for b in range(start, stop):
        rows += scan.bins.n_rows[b]
    for b in range(start, stop - 1):
        rows_left += scan.bins.n_rows[b]
        if 2 * rows_left >= rows:
            break
    if rows_left >= scan.min_rows and rows - rows_left >= scan.min_rows:
        cut.position = b + 1
        cut.left = interval_impurity(scan, start, b + 1)
        cut.right = interval_impurity(scan, b + 1, stop)
    return cut


cdef Cut cut_leaf(
    Scan* scan, int start, int stop, double whole, double least_gain, int64_t* looks_left
) noexcept nogil:
    """The best cut of a leaf other than the root, unless it is sure not to gain `least_gain`."""
    cdef Cut cut
    # No cut gains more than all there is, except where squared error leaves out a constant.
    if scan.c.kind != SQUARED and whole < 0.999 * least_gain and scan.min_rows <= 1:
        cut.position = start + 1 if stop - start > 1 else -1
        cut.gain = 0.0
        return cut
    looks_left[0] -= stop - start
    if looks_left[0] < 0 and stop - start > FEW_BINS:
        cut = cut_in_the_middle(scan, start, stop)
        if cut.position >= 0:
            return cut
    return cut_interval(scan, start, stop, whole)


cdef int inner_cart(
    Scan* scan, int max_leaves, int max_depth, double least_gain, Arena* arena,
    int32_t* piece_stop, int* root_cut,
) noexcept nogil:
    """Grow a CART on one feature, best gain first; returns its number of leaves.

    Cuts that gain `least_gain` or less are not made.

    `piece_stop` (room for min(max_leaves, n_bins)) receives the end of each piece, ascending;
    `root_cut` the first bin right of the root's threshold, or -1.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n_bins = scan.bins.n_bins
        int room = max_leaves if max_leaves < n_bins else n_bins
        int n_leaves = 1, heap_size = 0, parent, b, side
        int32_t* heap = take_ints(arena, room)
        Leaf* leaves = <Leaf*> take_doubles(arena, room * sizeof(Leaf) // sizeof(double) + 1)
        int32_t* stop_of_start
        int64_t looks_left = LOOKS + LOOKS_PER_BIN * <int64_t> n_bins
        Cut cut
    root_cut[0] = -1
    if arena.failed:
        return 0
    least_gain = max(least_gain, 1e-12 * scan.prefix[n_bins])
    leaves[0].start = 0
    leaves[0].stop = n_bins
    leaves[0].depth = 0
    leaves[0].cut = best_cut(scan, 0, n_bins)
    root_cut[0] = leaves[0].cut.position
    # Whatever statistics hold, a cut is made only where there is one.
    if root_cut[0] < 0 or not leaves[0].cut.gain > least_gain:
        piece_stop[0] = n_bins
        arena_release(arena, mark)
        return 1
    stop_of_start = take_ints(arena, n_bins)
    if arena.failed:
        return 0
    heap_push(heap, &heap_size, leaves, 0)
    while heap_size > 0 and n_leaves < room and not must_stop(arena, n_bins):
        parent = heap_pop(heap, &heap_size, leaves)
        cut = leaves[parent].cut
        if not cut.gain > least_gain:
            break
        if leaves[parent].depth >= max_depth:
            continue
        # The parent's slot becomes its left side, a new slot its right side.
        leaves[n_leaves] = leaves[parent]
        leaves[n_leaves].start = cut.position
        leaves[parent].stop = cut.position
        n_leaves += 1
        for b in range(2):
            side = parent if b == 0 else n_leaves - 1
            leaves[side].depth += 1
            leaves[side].cut = cut_leaf(scan, leaves[side].start, leaves[side].stop,
                                        cut.left if b == 0 else cut.right, least_gain,
                                        &looks_left)
            if leaves[side].cut.position >= 0:
                heap_push(heap, &heap_size, leaves, side)
    for side in range(n_leaves):
        stop_of_start[leaves[side].start] = leaves[side].stop
    b = 0
    for side in range(n_leaves):
        b = stop_of_start[b]
        piece_stop[side] = b
    arena_release(arena, mark)
    return n_leaves


cdef inline bint same_distribution(
    const CriterionInfo* c, const double* s, const double* t
) noexcept nogil:
    cdef:
        int j
        double weight_s = weight_of(c, s), weight_t = weight_of(c, t)
    for j in range(c.n_stats):
        if s[j] * weight_t != t[j] * weight_s:
            return False
    return True


cdef int candidate_borders(
    const CriterionInfo* c, Bins bins, int min_rows, Arena* arena, int32_t* border
) noexcept nogil:
    """The ends of the blocks of bins that the dynamic programme need not cut; how many."""
    # Neighbours of one distribution are never parted by an optimal partition, but a minimum of
    # rows may force a border between them.
    cdef:
        int b, n_blocks = 0, root_cut
        int n_stats = c.n_stats
        Scan scan
    for b in range(bins.n_bins):
        if (b + 1 == bins.n_bins or min_rows > 1 or not same_distribution(
                c, bins.stats + b * n_stats, bins.stats + (b + 1) * n_stats)):
            border[n_blocks] = b + 1
            n_blocks += 1
    if n_blocks > MAX_OPTIMAL_BINS:
        prepare_scan(c, bins, min_rows, arena, &scan)
        if arena.failed:
            return 0
        n_blocks = inner_cart(
            &scan, MAX_OPTIMAL_BINS, bins.n_bins, 0.0, arena, border, &root_cut
        )
    return n_blocks


cdef int optimal_intervals(
    const CriterionInfo* c, Bins bins, int max_leaves, int min_rows, double least_gain,
    Arena* arena, int32_t* piece_stop,
) noexcept nogil:
    """The partition into intervals with the least impurity plus `least_gain` for each interval.

    With m intervals of the first j blocks,

        least[m, j] = min over i < j of least[m - 1, i] + impurity of blocks i .. j - 1 + least_gain

    There are at most `max_leaves`; returns how many.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n_stats = c.n_stats
        int32_t* border = take_ints(arena, bins.n_bins)
        int n_blocks = candidate_borders(c, bins, min_rows, arena, border)
        int stride = n_blocks + 1
        # least[layer, j]: objective of the best partition of blocks 0..j-1 into layer + 1
        # intervals; where their number is free, one layer holds the best of any number.
        bint free = max_leaves >= n_blocks
        int n_layers = 1 if free else max_leaves
        double* least = take_doubles(arena, <size_t> n_layers * stride)
        int32_t* before = take_ints(arena, <size_t> n_layers * stride)
        double* interval = take_doubles(arena, n_stats)
        int i, j, layer, b, s, chosen = 0, n_pieces = 0
        int64_t rows
        double cost, objective
    if arena.failed:
        return 0
    for i in range(n_layers * stride):
        least[i] = INFINITY
    # Rounding must not buy an interval.
    sum_bins(c, bins.stats, 0, bins.n_bins, interval)
    least_gain += 1e-12 * weight_of(c, interval)
    for j in range(1, n_blocks + 1):
        for s in range(n_stats):
            interval[s] = 0.0
        rows = 0
        b = border[j - 1]
        for i in range(j - 1, -1, -1):
            while b > (border[i - 1] if i > 0 else 0):
                b -= 1
                rows += bins.n_rows[b]
                for s in range(n_stats):
                    interval[s] += bins.stats[b * n_stats + s]
            if rows < min_rows:
                continue
            cost = impurity(c, interval) + least_gain
            if i == 0:
                if cost < least[j]:
                    least[j] = cost
                    before[j] = 0
                continue
            for layer in range(0 if free else 1, n_layers):
                objective = least[(layer if free else layer - 1) * stride + i] + cost
                if objective < least[layer * stride + j]:
                    least[layer * stride + j] = objective
                    before[layer * stride + j] = i
    for layer in range(1, n_layers):
        if least[layer * stride + n_blocks] < least[chosen * stride + n_blocks]:
            chosen = layer
    # Walk back from the end, then turn the pieces round.
    j = n_blocks
    layer = chosen
    while j > 0:
        piece_stop[n_pieces] = border[j - 1]
        n_pieces += 1
        j = before[layer * stride + j] if least[layer * stride + j] < INFINITY else 0
        layer = layer if free else layer - 1
    for i in range(n_pieces // 2):
        b = piece_stop[i]
        piece_stop[i] = piece_stop[n_pieces - 1 - i]
        piece_stop[n_pieces - 1 - i] = b
    arena_release(arena, mark)
    return n_pieces


def cut_into_pieces(Criterion criterion not None, stats, n_rows, *, str method="cart",
                    int max_leaves=32, int min_rows=1, int max_depth=2**30,
                    double least_gain=0.0):
    """Ends of the pieces into which an inner tree cuts a feature's bins, ascending."""
    cdef:
        const double[:, ::1] s = np.ascontiguousarray(stats, dtype=np.float64)
        const int32_t[::1] n = np.ascontiguousarray(n_rows, dtype=np.int32)
        int32_t[::1] stops
        Bins bins
        Arena arena
        Scan scan
        int n_pieces = 0, root_cut
        bint optimal = {"cart": False, "optimal": True}[method]
    if s.shape[0] == 0 or s.shape[0] != n.shape[0] or s.shape[1] != criterion.info.n_stats:
        raise ValueError("stats must be (n_bins, n_stats) and n_rows (n_bins,), not empty")
    if max_leaves < 1 or min_rows < 1 or max_depth < 0:
        raise ValueError("max_leaves and min_rows must be at least 1, max_depth at least 0")
    out = np.empty(s.shape[0], dtype=np.int32)
    stops = out
    bins.n_bins = s.shape[0]
    bins.stats = &s[0, 0]
    bins.n_rows = &n[0]
    with nogil:
        arena_init(&arena)
        if optimal:
            n_pieces = optimal_intervals(
                &criterion.info, bins, max_leaves, min_rows, least_gain, &arena, &stops[0]
            )
        else:
            prepare_scan(&criterion.info, bins, min_rows, &arena, &scan)
            if not arena.failed:
                n_pieces = inner_cart(
                    &scan, max_leaves, max_depth, least_gain, &arena, &stops[0], &root_cut
                )
        arena_free(&arena)
    if arena.failed:
        raise MemoryError("no memory for the inner tree")
    return out[:n_pieces]
