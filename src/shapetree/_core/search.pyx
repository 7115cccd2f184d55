"""Search: the best shape function of each feature for the nodes of a level."""

cimport cython

import numpy as np

from shapetree._core.histogram import bin_offsets

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, M_LOG2E
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcmp, memcpy, memset

from shapetree._core.assignment cimport Pieces, assign_pieces, order_by_content, partition_loss
from shapetree._core.criterion cimport (
    ENTROPY, GINI, SQUARED, Criterion, CriterionInfo, are_counts, impurity, rows_of,
    small_counts, weight_of,
)
from shapetree._core.histogram cimport LevelRows, RowsToSum
from shapetree._core.inner_tree cimport (
    Bins, inner_cart, optimal_intervals, prepare_scan, sum_bins, sum_interval,
)
from shapetree._core.polish cimport (
    Axis, Cells, Segments, copy_segments, extra_parts, n_listed, number_segments,
    polish_categories, polish_segments, same_segments, segments_loss, take_room_to_polish,
    take_segments,
)
from shapetree._core.threads cimport (
    NO_BRANCH, Arena, Arenas, Mark, arena_mark, arena_release, arena_take, branch_t,
    must_stop, take_branches, take_doubles, take_ints,
)

from shapetree._core.assignment import KINDS as ASSIGNMENTS

NO_BRANCH_MARK = NO_BRANCH

cdef enum:
    MAX_BRANCHES = 254
    # With at least so many nodes, threads share nodes; with fewer, so many features of them.
    NODES_PER_THREAD = 8
    FEATURES_OF_TASK = 8

# An inner tree does not make a cut that earns less than this share of a part's price.
cdef double LEAST_SHARE = 0.5

LIMITS = {
    "inner_tree": "cart", "inner_max_leaves": 32, "inner_min_rows": 1, "inner_max_depth": 2**30,
    "assignment": "auto", "max_parts": 2**30, "max_listed": 2**30, "per_leaf": False, "min_rows": 1,
    "min_rows_is_soft": False, "min_weight": 0.0,
}

ctypedef struct Best:
    # The best shape function so far: how it ranks, its gain after penalties, and before.
    double score
    double penalised_gain
    double gain
    int n_branches
    branch_t* branch
    # How another feature of the node ranks, if only the best one is wanted; -INFINITY if not.
    double to_beat
    # What none is to rank above.
    double most


cdef Options options_of(dict limits) except *:
    """Options that hold for every node, from keyword arguments; the others are left open."""
    cdef Options options
    unknown = set(limits) - set(LIMITS)
    if unknown:
        raise TypeError(f"unexpected arguments: {sorted(unknown)}")
    limits = {**LIMITS, **limits}
    if min(limits["inner_max_leaves"], limits["inner_min_rows"], limits["min_rows"],
           limits["max_parts"] - 1, limits["max_listed"]) < 1 or limits["inner_max_depth"] < 0:
        raise ValueError("limits of the inner tree and of branches must be positive")
    options.optimal_inner_tree = {"cart": False, "optimal": True}[limits["inner_tree"]]
    options.inner_max_leaves = limits["inner_max_leaves"]
    options.inner_min_rows = limits["inner_min_rows"]
    options.inner_max_depth = limits["inner_max_depth"]
    options.assignment = ASSIGNMENTS[limits["assignment"]]
    options.max_parts = limits["max_parts"]
    options.max_listed = limits["max_listed"]
    options.per_leaf = limits["per_leaf"]
    options.min_rows = limits["min_rows"]
    options.min_rows_is_soft = limits["min_rows_is_soft"]
    options.min_weight = limits["min_weight"]
    # A tree of this depth has no more leaves than this.
    if options.inner_max_depth < 30:
        options.inner_max_leaves = min(options.inner_max_leaves, 1 << options.inner_max_depth)
    return options


cdef int number_branches(branch_t* branch, int n) noexcept nogil:
    """Number the branches in order of appearance; returns how many there are."""
    cdef:
        branch_t name[256]
        int i, n_branches = 0
    memset(name, NO_BRANCH, 256)
    for i in range(n):
        if name[branch[i]] == NO_BRANCH:
            name[branch[i]] = n_branches
            n_branches += 1
        branch[i] = name[branch[i]]
    return n_branches


cdef bint has_room(
    const branch_t* branch, const int32_t* n_rows, int n, int n_branches, int min_rows
) noexcept nogil:
    """Whether every branch holds at least `min_rows` rows."""
    cdef:
        int64_t rows[256]
        int i
    memset(rows, 0, n_branches * sizeof(int64_t))
    for i in range(n):
        rows[branch[i]] += n_rows[i]
    for i in range(n_branches):
        if rows[i] < min_rows:
            return False
    return True


cdef double score_of(const Options* options, double gain, int n_branches) noexcept nogil:
    """How a shape function ranks: by its gain after penalties, or by that for each leaf it adds."""
    return gain / (n_branches - 1) if options.per_leaf else gain


cdef inline bint is_better(double score, const Best* best, double node_weight) noexcept nogil:
    # Rounding must not decide, and the first, simplest candidate wins ties.
    return score > best.score + 1e-10 * node_weight


cdef bint cannot_win(Best* best, double least_loss, double whole, const Options* options,
                     double node_weight) noexcept nogil:
    """Whether shape functions that are yet to be tried cannot make a feature the node's best one.

    Pieces lose at least `least_loss`, however they are joined. Polish also moves their borders, and
    may win a little more than that: so that nothing depends on which features are searched first,
    no feature ranks above this bound.
    """
    cdef double bound = whole - least_loss - options.branch_penalty
    if best.to_beat == -INFINITY:
        return False
    best.most = max(bound, best.score)
    return bound < max(best.to_beat, best.score) - 1e-9 * node_weight


cdef inline bint has_weight(
    const CriterionInfo* c, const double* sums, int n_branches, double min_weight
) noexcept nogil:
    """Whether every branch weighs at least `min_weight`."""
    cdef int b
    if min_weight > 0.0:
        for b in range(n_branches):
            if weight_of(c, sums + b * c.n_stats) < min_weight:
                return False
    return True


cdef int start_from_one_cut(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, bint* missing_in_first,
) noexcept nogil:
    """CART's own split: the best threshold, or category against the rest.

    Returns the last cell below the threshold, or the category; -1 where no such split has enough
    rows. The missing cell joins the better side, or stands alone if that is best.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = cells.n_cells, n_stats = c.n_stats, n_all = cells.n_cells + cells.has_missing
        double* one = take_doubles(arena, n_stats)
        double* other = take_doubles(arena, n_stats)
        double* total = take_doubles(arena, n_stats)
        int i, j, cut = -1
        bint missing_in_one
        int64_t rows = 0, rows_one = 0, rows_here
        double loss, least = INFINITY
        const double* missing = cells.stats + n * n_stats
    missing_in_first[0] = True
    if arena.failed:
        return -1
    sum_bins(c, cells.stats, 0, n_all, total)
    for i in range(n_all):
        rows += n_rows[i]
    for j in range(n_stats):
        one[j] = 0.0
    # i = n is the cut that parts the missing cell from all others.
    for i in range(n - (0 if cells.has_missing or cells.categorical else 1)):
        if cells.categorical:
            rows_one = 0
            for j in range(n_stats):
                one[j] = 0.0
        rows_one += n_rows[i]
        for j in range(n_stats):
            one[j] += cells.stats[i * n_stats + j]
        for missing_in_one in range(1 + cells.has_missing):
            rows_here = rows_one + (n_rows[n] if missing_in_one else 0)
            if (rows_here < options.min_rows or rows - rows_here < options.min_rows
                    or rows_here == rows):
                continue
            for j in range(n_stats):
                if missing_in_one:
                    one[j] += missing[j]
                other[j] = total[j] - one[j]
            loss = impurity(c, one) + impurity(c, other)
            if weight_of(c, one) < options.min_weight or weight_of(c, other) < options.min_weight:
                loss = INFINITY
            if missing_in_one:
                for j in range(n_stats):
                    one[j] -= missing[j]
            if loss < least:
                least = loss
                cut = i
                missing_in_first[0] = missing_in_one
    arena_release(arena, mark)
    return cut


cdef double noise_bits(const CriterionInfo* c, const double* stats) noexcept nogil:
    """Bits that a cut of rows with these statistics gains on average where nothing is to gain.

    By Wilks' theorem, half a nat for each class beyond the first that is present.
    """
    cdef int j, n_classes = 0
    for j in range(c.n_stats):
        n_classes += stats[j] > 0.0
    return 0.5 * M_LOG2E * (n_classes - c.n_outputs) / c.n_outputs


cdef double least_gain_of_cut(
    const CriterionInfo* c, const double* stats, double penalty
) noexcept nogil:
    """What a cut of an inner tree must gain, if each of its parts costs `penalty`."""
    cdef double least = LEAST_SHARE * penalty
    if c.kind == ENTROPY and penalty > 0.0:
        least += noise_bits(c, stats)
    return least


# --- ordered features ---------------------------------------------------------------------------

ctypedef struct SegmentSearch:
    # The search for the best shape function of an ordered feature.
    Axis axis
    const Options* options
    const int32_t* rows_before   # rows in the cells before each one, n_cells + 1
    int missing_rows
    double node_weight
    double whole                 # impurity of the node
    double* sums                 # max_branches x n_stats
    Best* best
    Segments kept                # the best one's
    Segments settled             # what the polish of two branches ended in
    bint has_settled


cdef bint segments_have_room(
    const SegmentSearch* search, const Segments* shape, int n_branches
) noexcept nogil:
    """Whether every branch holds at least `min_rows` rows."""
    cdef:
        int64_t rows[256]
        int i, start = 0, min_rows = search.options.min_rows
    # Every cell holds a row.
    if min_rows <= 1:
        return True
    memset(rows, 0, n_branches * sizeof(int64_t))
    for i in range(shape.n):
        rows[shape.branch[i]] += search.rows_before[shape.stop[i]] - search.rows_before[start]
        start = shape.stop[i]
    if search.axis.has_missing:
        rows[shape.missing] += search.missing_rows
    for i in range(n_branches):
        if rows[i] < min_rows:
            return False
    return True


cdef bint keeps_inner_limits(const SegmentSearch* search, const Segments* shape) noexcept nogil:
    """Whether segments are as large as the inner tree's leaves must be."""
    cdef int i, start = 0
    for i in range(shape.n):
        if (search.rows_before[shape.stop[i]] - search.rows_before[start]
                < search.options.inner_min_rows):
            return False
        start = shape.stop[i]
    return True


cdef inline int max_segments(const Options* options) noexcept nogil:
    """Most segments of a shape function; no more than the inner tree may have leaves."""
    return min(options.max_parts, options.inner_max_leaves)


cdef void consider_segments(SegmentSearch* search, Segments* shape) noexcept nogil:
    """Keep a shape function if it is eligible and better than the best so far."""
    cdef:
        const Options* options = search.options
        const CriterionInfo* c = search.axis.scan.c
        int n_branches = number_segments(&search.axis, shape)
        double gain, penalised, score
    if n_branches < 2 or shape.n > max_segments(options) or not segments_have_room(
            search, shape, n_branches):
        return
    gain = search.whole - segments_loss(&search.axis, shape, n_branches, search.sums)
    penalised = (gain - options.segment_penalty * (shape.n - 2 if shape.n > 2 else 0)
                 - options.branch_penalty * (n_branches - 1))
    score = score_of(options, penalised, n_branches)
    if is_better(score, search.best, search.node_weight) and has_weight(
            c, search.sums, n_branches, options.min_weight):
        search.best.score = score
        search.best.penalised_gain = penalised
        search.best.gain = gain
        search.best.n_branches = n_branches
        copy_segments(shape, &search.kept)


cdef void polish_and_consider(
    SegmentSearch* search, Segments* shape, int k, Arena* arena
) noexcept nogil:
    cdef:
        double objective
        bint has_settled = search.has_settled and k == 2
        bint changed = polish_segments(
            &search.axis, k, search.options.segment_penalty, max_segments(search.options),
            &objective, search.sums, shape, &search.settled if has_settled else NULL, arena)
    if has_settled and same_segments(shape, &search.settled):
        return
    if k == 2:
        copy_segments(shape, &search.settled)
        search.has_settled = True
    # What did not change has been considered.
    if changed and keeps_inner_limits(search, shape):
        consider_segments(search, shape)


cdef int cut_axis(
    SegmentSearch* search, double least_gain, Arena* arena, int32_t* piece_stop, int* root_cut
) noexcept nogil:
    """Cut the cells into pieces, the leaves of an inner tree; returns how many."""
    cdef:
        const Options* options = search.options
        int max_leaves = options.inner_max_leaves, min_rows = options.inner_min_rows
    root_cut[0] = -1
    if options.optimal_inner_tree:
        return optimal_intervals(
            search.axis.scan.c, search.axis.scan.bins, max_leaves, min_rows, least_gain, arena,
            piece_stop)
    return inner_cart(
        &search.axis.scan, max_leaves, options.inner_max_depth, least_gain, arena, piece_stop,
        root_cut)


cdef void start_with_one_cut(
    SegmentSearch* search, Cells cells, const int32_t* n_rows, int root_cut, Arena* arena,
    Segments* shape,
) noexcept nogil:
    """CART's own split of an ordered feature; all cells in branch 0 where there is none."""
    cdef:
        const Options* options = search.options
        int n = cells.n_cells, cut
        bint missing_in_first = True
    if (root_cut > 0 and not cells.has_missing
            and search.rows_before[root_cut] >= options.min_rows
            and search.rows_before[n] - search.rows_before[root_cut] >= options.min_rows
            and options.inner_min_rows <= 1 and options.min_weight <= 0.0):
        # The inner tree's root is the very threshold looked for.
        cut = root_cut - 1
    else:
        cut = start_from_one_cut(
            search.axis.scan.c, cells, n_rows, options, arena, &missing_in_first)
    shape.n = 1
    shape.stop[0] = n
    shape.branch[0] = 0
    if 0 <= cut < n - 1:
        shape.n = 2
        shape.stop[0] = cut + 1
        shape.stop[1] = n
        shape.branch[1] = 1
    shape.missing = 0 if cut < 0 or missing_in_first else 1


cdef void join_pieces(
    const int32_t* piece_stop, int n_pieces, bint has_missing, const branch_t* assigned,
    Segments* shape,
) noexcept nogil:
    """The shape function that sends pieces to branches; the missing cell is the last piece."""
    cdef int i
    shape.n = 0
    for i in range(n_pieces - has_missing):
        if i == 0 or assigned[i] != assigned[i - 1]:
            shape.branch[shape.n] = assigned[i]
            shape.n += 1
        shape.stop[shape.n - 1] = piece_stop[i]
    shape.missing = assigned[n_pieces - 1] if has_missing else 0


cdef void search_axis(
    SegmentSearch* search, Cells cells, const int32_t* n_rows, double least_gain, Arena* arena
) noexcept nogil:
    """Consider CART's split and the assignments of an inner tree's pieces, and polish them all."""
    cdef:
        const Options* options = search.options
        const CriterionInfo* c = search.axis.scan.c
        int n = cells.n_cells, most = options.max_branches, n_stats = c.n_stats, i, k
        int start_of_piece = 0, root_cut
        bint is_cut
        double least_loss = 0.0
        int32_t* piece_stop = take_ints(arena, n)
        Segments start = take_segments(arena, n)
        Segments shape = take_segments(arena, n)
        Pieces pieces
        double* piece_stats
        int32_t* piece_rows
        branch_t* assigned
        bint* found
    if arena.failed:
        return
    pieces.n_pieces = cut_axis(search, least_gain, arena, piece_stop, &root_cut)
    if arena.failed:
        return
    start_with_one_cut(search, cells, n_rows, root_cut, arena, &start)
    pieces.n_pieces += cells.has_missing
    consider_segments(search, &start)
    if options.segment_penalty > 0.0:
        copy_segments(&start, &shape)
        polish_and_consider(search, &shape, 2, arena)

    piece_stats = take_doubles(arena, <size_t> pieces.n_pieces * n_stats)
    piece_rows = take_ints(arena, pieces.n_pieces)
    if arena.failed:
        return
    pieces.root_cut = 0
    for i in range(pieces.n_pieces - cells.has_missing):
        sum_interval(&search.axis.scan, start_of_piece, piece_stop[i],
                     piece_stats + <Py_ssize_t> i * n_stats)
        piece_rows[i] = search.rows_before[piece_stop[i]] - search.rows_before[start_of_piece]
        if start_of_piece <= root_cut < piece_stop[i]:
            pieces.root_cut = i
        start_of_piece = piece_stop[i]
    if cells.has_missing:
        memcpy(piece_stats + <Py_ssize_t> (pieces.n_pieces - 1) * n_stats,
               cells.stats + <Py_ssize_t> n * n_stats, n_stats * sizeof(double))
        piece_rows[pieces.n_pieces - 1] = search.missing_rows
    for i in range(pieces.n_pieces):
        least_loss += impurity(c, piece_stats + <Py_ssize_t> i * n_stats)
    # Where nothing but missing values are apart, polish may yet cut the axis, which is free.
    is_cut = not cells.has_missing or pieces.n_pieces > 2
    if is_cut and cannot_win(search.best, least_loss, search.whole, options, search.node_weight):
        return

    if pieces.n_pieces > 1:
        assigned = take_branches(arena, <size_t> (most - 1) * pieces.n_pieces)
        found = <bint*> arena_take(arena, (most - 1) * sizeof(bint))
        if arena.failed:
            return
        pieces.stats = piece_stats
        pieces.n_rows = piece_rows
        assign_pieces(c, pieces, most, options.assignment, options.min_rows, options.seed, arena,
                      assigned, found)
        for k in range(2, most + 1):
            if arena.failed or not found[k - 2] or must_stop(arena, n):
                continue
            join_pieces(piece_stop, pieces.n_pieces, cells.has_missing,
                        assigned + (k - 2) * pieces.n_pieces, &shape)
            if same_segments(&shape, &start):
                continue
            consider_segments(search, &shape)
            if options.segment_penalty > 0.0 or shape.n > max_segments(options):
                polish_and_consider(search, &shape, k, arena)


cdef void search_segments(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, Best* best,
) noexcept nogil:
    """Find the best shape function of an ordered feature."""
    cdef:
        int n = cells.n_cells, n_stats = c.n_stats, i, start = 0
        int32_t* rows_before = take_ints(arena, n + 1)
        double* total = take_doubles(arena, n_stats)
        double least_gain
        SegmentSearch search
        Bins bins
    search.sums = take_doubles(arena, options.max_branches * n_stats)
    search.kept = take_segments(arena, n)
    search.settled = take_segments(arena, n)
    bins.n_bins = n
    bins.stats = cells.stats
    bins.n_rows = n_rows
    prepare_scan(c, bins, options.inner_min_rows, arena, &search.axis.scan)
    take_room_to_polish(&search.axis, options.max_branches, arena)
    if arena.failed:
        return
    rows_before[0] = 0
    for i in range(n):
        rows_before[i + 1] = rows_before[i] + n_rows[i]
    sum_interval(&search.axis.scan, 0, n, total)
    least_gain = least_gain_of_cut(c, total, options.segment_penalty)
    if cells.has_missing:
        for i in range(n_stats):
            total[i] += cells.stats[<Py_ssize_t> n * n_stats + i]
    search.whole = impurity(c, total)
    search.axis.has_missing = cells.has_missing
    search.options = options
    search.rows_before = rows_before
    search.missing_rows = n_rows[n] if cells.has_missing else 0
    search.node_weight = weight_of(c, total)
    search.best = best
    search.has_settled = False
    search_axis(&search, cells, n_rows, least_gain, arena)
    if best.n_branches >= 2:
        for i in range(search.kept.n):
            memset(best.branch + start, search.kept.branch[i], search.kept.stop[i] - start)
            start = search.kept.stop[i]
        if cells.has_missing:
            best.branch[n] = search.kept.missing


# --- categorical features -----------------------------------------------------------------------

cdef void consider_categories(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    double node_weight, double whole, branch_t* branch, double* sums, Best* best,
) noexcept nogil:
    """Keep a shape function if it is eligible and better than the best so far."""
    cdef:
        int n = cells.n_cells + cells.has_missing
        int n_branches = number_branches(branch, n)
        double gain, penalised, score
    if (n_branches < 2 or n_listed(cells, branch) > options.max_listed
            or not has_room(branch, n_rows, n, n_branches, options.min_rows)):
        return
    gain = whole - partition_loss(c, cells.stats, branch, n, n_branches, sums)
    penalised = (gain - options.category_penalty * extra_parts(cells, branch)
                 - options.branch_penalty * (n_branches - 1))
    score = score_of(options, penalised, n_branches)
    if is_better(score, best, node_weight) and has_weight(c, sums, n_branches, options.min_weight):
        best.score = score
        best.penalised_gain = penalised
        best.gain = gain
        best.n_branches = n_branches
        memcpy(best.branch, branch, n)


cdef int group_categories(
    Cells cells, const int32_t* n_rows, int min_rows, int32_t* piece_of_cell
) noexcept nogil:
    """Number the piece of each category; returns the number of pieces.

    Categories with too few rows are a piece together, missing values one of their own.
    """
    cdef int n = cells.n_cells, n_pieces = 0, i, rare = -1
    for i in range(n):
        if n_rows[i] >= min_rows:
            piece_of_cell[i] = n_pieces
            n_pieces += 1
        else:
            if rare < 0:
                rare = n_pieces
                n_pieces += 1
            piece_of_cell[i] = rare
    if cells.has_missing:
        piece_of_cell[n] = n_pieces
        n_pieces += 1
    return n_pieces


cdef void sum_pieces(
    const CriterionInfo* c, Cells cells, const int32_t* piece_of_cell, int n_pieces,
    double* piece_stats,
) noexcept nogil:
    cdef int n_stats = c.n_stats, i, k
    cdef double* piece
    memset(piece_stats, 0, <size_t> n_pieces * n_stats * sizeof(double))
    for i in range(cells.n_cells + cells.has_missing):
        piece = piece_stats + <Py_ssize_t> piece_of_cell[i] * n_stats
        for k in range(n_stats):
            piece[k] += cells.stats[<Py_ssize_t> i * n_stats + k]


cdef void search_categories(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, Best* best,
) noexcept nogil:
    """Find the best shape function of a categorical feature."""
    cdef:
        int n = cells.n_cells, n_all = cells.n_cells + cells.has_missing, n_stats = c.n_stats
        int most = options.max_branches
        int32_t* piece_of_cell = take_ints(arena, n_all)
        branch_t* start = take_branches(arena, n_all)
        branch_t* branch = take_branches(arena, n_all)
        branch_t* assigned = take_branches(arena, <size_t> (most - 1) * n_all)
        bint* found = <bint*> arena_take(arena, (most - 1) * sizeof(bint))
        double* sums = take_doubles(arena, most * n_stats)
        double* piece_stats = take_doubles(arena, <size_t> n_all * n_stats)
        int32_t* piece_rows = take_ints(arena, n_all)
        int32_t* order = take_ints(arena, n_all)
        int32_t* place = take_ints(arena, n_all)
        double penalty = options.category_penalty
        Pieces pieces
        int i, j, k, cut
        double node_weight, whole, objective, least_loss = 0.0
        bint missing_in_first, start_is_known = False
    if arena.failed:
        return
    sum_bins(c, cells.stats, 0, n_all, sums)
    node_weight = weight_of(c, sums)
    whole = impurity(c, sums)
    cut = start_from_one_cut(c, cells, n_rows, options, arena, &missing_in_first)
    for i in range(n):
        start[i] = cut >= 0 and i != cut
    if cells.has_missing:
        start[n] = cut >= 0 and not missing_in_first
    memcpy(branch, start, n_all)
    consider_categories(c, cells, n_rows, options, node_weight, whole, branch, sums, best)
    for i in range(n_all):
        least_loss += impurity(c, cells.stats + <Py_ssize_t> i * n_stats)
    if cannot_win(best, least_loss, whole, options, node_weight):
        return

    pieces.n_pieces = group_categories(cells, n_rows, options.inner_min_rows, piece_of_cell)
    pieces.root_cut = 0
    sum_pieces(c, cells, piece_of_cell, pieces.n_pieces, piece_stats)
    order_by_content(c, piece_stats, pieces.n_pieces, arena, order)
    for j in range(pieces.n_pieces):
        place[order[j]] = j
    memset(piece_rows, 0, pieces.n_pieces * sizeof(int32_t))
    for i in range(n_all):
        piece_of_cell[i] = place[piece_of_cell[i]]
        piece_rows[piece_of_cell[i]] += n_rows[i]
    sum_pieces(c, cells, piece_of_cell, pieces.n_pieces, piece_stats)
    pieces.stats = piece_stats
    pieces.n_rows = piece_rows
    assign_pieces(c, pieces, most, options.assignment, options.min_rows, options.seed, arena,
                  assigned, found)
    for k in range(2, most + 1):
        if arena.failed or not found[k - 2] or must_stop(arena, n_all):
            continue
        for i in range(n_all):
            branch[i] = assigned[(k - 2) * pieces.n_pieces + piece_of_cell[i]]
        consider_categories(c, cells, n_rows, options, node_weight, whole, branch, sums, best)
        start_is_known |= k == 2 and memcmp(branch, start, n_all) == 0
        if (penalty > 0.0 or n_listed(cells, branch) > options.max_listed) and polish_categories(
                c, cells, k, penalty, options.max_listed, &objective, arena, branch):
            consider_categories(c, cells, n_rows, options, node_weight, whole, branch, sums, best)
    if penalty > 0.0 and not start_is_known and polish_categories(
            c, cells, 2, penalty, options.max_listed, &objective, arena, start):
        consider_categories(c, cells, n_rows, options, node_weight, whole, start, sums, best)


# --- any feature --------------------------------------------------------------------------------

cdef void search_cells(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, Best* best,
) noexcept nogil:
    """Find the best shape function of at least two cells."""
    cdef Mark mark = arena_mark(arena)
    best.score = -INFINITY
    best.most = INFINITY
    best.n_branches = 0
    if cells.categorical:
        search_categories(c, cells, n_rows, options, arena, best)
    else:
        search_segments(c, cells, n_rows, options, arena, best)
    arena_release(arena, mark)


ctypedef struct NodeOptions:
    # What holds for the features of one node.
    int max_branches
    double segment_penalty
    double category_penalty
    double branch_penalty
    double choice_penalty         # before a feature's share of it
    double most_of_choice
    const uint8_t* has_class      # which classes have rows, or NULL
    const uint8_t* allowed        # features that it may split on, or NULL
    uint64_t seed
    bint only_best                # whether results of features that are not the best are not read


ctypedef struct NodeResults:
    # Where a node's results go, by feature, and by the bins of all features.
    double* gains
    double* penalised_gains
    int32_t* n_branches
    uint8_t* branch_of_bin


ctypedef struct LevelSums:
    # Sums of some nodes from feature `first` on: histograms, or, where `cell_start` is given, cells
    # as `build_cells` returns them.
    int first
    int n_channels
    const double* sums
    Py_ssize_t n_bins             # of a histogram
    const int64_t* cell_start
    const int32_t* n_cells
    const int32_t* bin_of_cell


ctypedef struct NodeCells:
    # Where a node's sums of one feature are: a histogram, or the bins that hold rows alone.
    double* sums
    int32_t* bin_of_cell          # NULL for a histogram
    int n_cells
    int n_channels


cdef inline NodeOptions options_of_node(
    int max_branches, double segment_penalty, double category_penalty, double branch_penalty,
    double choice_penalty, double most_of_choice, const uint8_t* has_class, const uint8_t* allowed,
    uint64_t seed, bint only_best,
) noexcept nogil:
    cdef NodeOptions options
    options.max_branches = max_branches
    options.segment_penalty = segment_penalty
    options.category_penalty = category_penalty
    options.branch_penalty = branch_penalty
    options.choice_penalty = choice_penalty
    options.most_of_choice = most_of_choice
    options.has_class = has_class
    options.allowed = allowed
    options.seed = seed
    options.only_best = only_best
    return options


cdef inline NodeResults results_at(
    double* gains, double* penalised_gains, int32_t* n_branches, uint8_t* branch_of_bin
) noexcept nogil:
    cdef NodeResults results
    results.gains = gains
    results.penalised_gains = penalised_gains
    results.n_branches = n_branches
    results.branch_of_bin = branch_of_bin
    return results


cdef inline int bin_of(const NodeCells* cells, int i) noexcept nogil:
    return i if cells.bin_of_cell == NULL else cells.bin_of_cell[i]


cdef inline bint may_join(
    const CriterionInfo* c, const Options* options, bint categorical
) noexcept nogil:
    """Whether cells may be joined: they have an order, and no limit asks for a cut within."""
    return (not categorical and c.n_outputs == 1 and c.kind in (GINI, ENTROPY)
            and (options.min_rows <= 1 or options.min_rows_is_soft)
            and options.inner_min_rows <= 1 and options.min_weight <= 0.0)


cdef int find_present(
    const CriterionInfo* c, const uint8_t* has_class, int32_t* present
) noexcept nogil:
    """Statistics that are not 0 in the whole node, as far as is known; returns how many."""
    cdef int j, n_present = 0
    for j in range(c.n_stats):
        if has_class == NULL or has_class[j]:
            present[n_present] = j
            n_present += 1
    return n_present


ctypedef struct HeldBins:
    # The bins of a feature that hold rows of a node, and the cells that they are part of.
    int n
    int32_t* bin
    int32_t* cell


cdef int gather_cells(
    const CriterionInfo* c, const NodeCells* given, const int32_t* present, int n_present,
    int n_joined, double* stats, int32_t* n_rows, HeldBins* held,
) noexcept nogil:
    """Make cells of the bins that hold rows; returns how many they are.

    They have the statistics that are `present`. The first `n_joined` bins are joined with
    neighbours whose rows are all of the same class. No best cut and no cheapest path parts them: to
    cut before or behind them costs less.
    """
    cdef:
        int i, j, b, n_cells = 0, before = -1, now, n_held
        double rows
        const double* sums
        double* cell = stats
        bint is_counted = c.kind != SQUARED and c.n_outputs == 1 and given.n_channels == c.n_stats
    if is_counted and c.n_stats == 2 and n_present == 2:
        return gather_cells_of_two_classes(given, n_joined, stats, n_rows, held)
    held.n = 0
    for i in range(given.n_cells):
        sums = given.sums + <Py_ssize_t> i * given.n_channels
        # First where the next cell would be; it may turn out to be part of the last one.
        cell = stats + <Py_ssize_t> n_cells * n_present
        rows = 0.0
        n_held = 0
        now = -1
        for j in range(n_present):
            cell[j] = sums[present[j]]
            rows += cell[j]
            n_held += cell[j] > 0.0
            now = j if cell[j] > 0.0 else now
        if not is_counted:
            rows = rows_of(c, sums, given.n_channels)
        if rows < 0.5:
            continue
        b = bin_of(given, i)
        # The class of all rows of a bin.
        now = now if n_held == 1 and b < n_joined else -1
        if now >= 0 and now == before:
            (cell - n_present)[now] += cell[now]
            n_rows[n_cells - 1] += <int32_t> (rows + 0.5)
        else:
            n_rows[n_cells] = <int32_t> (rows + 0.5)
            n_cells += 1
        before = now
        held.bin[held.n] = b
        held.cell[held.n] = n_cells - 1
        held.n += 1
    return n_cells


cdef int gather_cells_of_two_classes(
    const NodeCells* given, int n_joined, double* stats, int32_t* n_rows, HeldBins* held
) noexcept nogil:
    """The same for two classes, without branches, which would be guessed wrong half the time."""
    cdef:
        int i, b, n_cells = 0, n_held = 0, before = 0, now
        double zero, one, zeros = 0.0, ones = 0.0
        int32_t* bin_held = held.bin
        int32_t* cell_of = held.cell
    # First, what cells and all before them add up to.
    stats[0] = stats[1] = 0.0
    for i in range(given.n_cells):
        zero = given.sums[2 * i]
        one = given.sums[2 * i + 1]
        b = bin_of(given, i)
        # 0 without rows, 3 with rows of both classes.
        now = (zero > 0.0) + 2 * (one > 0.0)
        n_cells += (now != 0) & ((now != before) | (now == 3) | (b >= n_joined))
        zeros += zero
        ones += one
        stats[2 * n_cells] = zeros
        stats[2 * n_cells + 1] = ones
        bin_held[n_held] = b
        cell_of[n_held] = n_cells - 1
        n_held += now != 0
        before += (now - before) * (now != 0)
    held.n = n_held
    for i in range(n_cells):
        stats[2 * i] = stats[2 * i + 2] - stats[2 * i]
        stats[2 * i + 1] = stats[2 * i + 3] - stats[2 * i + 1]
        n_rows[i] = <int32_t> (stats[2 * i] + stats[2 * i + 1] + 0.5)
    return n_cells


cdef class NodeSearch:
    """Searches features' shape functions for the nodes of a level.

    It keeps nothing of a search, so one object serves many trees at once.

    Parameters
    ----------
    criterion : Criterion
    n_bins : array of int
        Bins of each feature, without its missing bin, which comes last.
    categorical : array of bool
    choice_share : array of float, optional
        What choosing one of a feature's categories costs, as a share of `choice_penalty`.
    inner_tree, inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows,
    min_weight :
        Options that hold for every node.
    """

    cdef Criterion criterion
    cdef Options options
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] categorical
    cdef const double[::1] choice_share
    cdef readonly int n_features

    def __init__(
        self, Criterion criterion not None, n_bins, categorical, choice_share=None, **limits
    ):
        n_bins = np.asarray(n_bins, dtype=np.int64)
        n = len(n_bins)
        if n_bins.shape != (n,) or np.shape(categorical) != (n,):
            raise ValueError("n_bins and categorical must have one entry for each column")
        if n and not 0 <= n_bins.min() <= n_bins.max() < 2**31 - 1:
            raise ValueError("n_bins out of range")
        self.n_features = n
        self.criterion = criterion
        self.offsets = bin_offsets(n_bins)
        self.categorical = np.ascontiguousarray(categorical, dtype=np.uint8)
        shares = np.zeros(n) if choice_share is None else choice_share
        self.choice_share = np.ascontiguousarray(shares, dtype=np.float64)
        if self.choice_share.shape[0] != n:
            raise ValueError("choice_share must have one entry for each column")
        self.options = options_of(limits)

    def search(
        self,
        const double[:, :, ::1] histograms,      # IN: (n_nodes, bins, n_channels), or None
        cells,                                   # IN: or what `build_cells` returns, or None
        int first, int last,                     # IN: features first..last-1 are searched
        *,
        LevelRows rows=None,                     # IN: or the nodes' rows, which are summed here
        int max_branches,
        const double[::1] segment_penalty not None,      # IN: (n_nodes,) and so are those below
        const double[::1] category_penalty not None,
        const double[::1] branch_penalty not None,
        const double[::1] choice_penalty=None,   # IN: if given, for choosing among categories
        const double[::1] most_of_choice=None,   # IN: what that costs at most, for each category
        const uint8_t[:, ::1] has_class=None,    # IN: (n_nodes, n_classes), which classes have rows
        const uint64_t[::1] seed not None,
        const uint8_t[:, ::1] allowed,           # IN: (n_nodes, n_features) or None for all
        double[:, ::1] gains not None,           # OUT: (n_nodes, n_features), -inf for none
        double[:, ::1] penalised_gains not None,         # OUT: the same after penalties
        int32_t[:, ::1] n_branches not None,     # OUT: (n_nodes, n_features)
        uint8_t[:, ::1] branch_of_bin not None,  # OUT: (n_nodes, all features' bins)
        int n_threads,
        bint only_best=False,
    ):
        """Find each node's best shape function of each feature.

        Gains are in units of mass. Bins without rows have the branch NO_BRANCH_MARK.

        With `only_best`, what is found is the best only of the feature that ranks first: others are
        not searched to the end where they are sure to rank lower, or not to gain anything.
        """
        cdef:
            Py_ssize_t task, node, n_nodes = gains.shape[0], n_features = last - first
            Py_ssize_t n_together = 1, n_tasks, f
            Arenas arenas
            LevelSums given
            NodeOptions asked
            NodeResults found
            const double[:, ::1] sums
            const int64_t[:, ::1] cell_start
            const int32_t[:, ::1] n_cells
            const int32_t[::1] bin_of_cell
        self.check(first, last, n_nodes, gains, penalised_gains, n_branches, branch_of_bin)
        if not (segment_penalty.shape[0] == category_penalty.shape[0] == seed.shape[0]
                == branch_penalty.shape[0] == n_nodes) or n_threads < 1:
            raise ValueError("every node needs its options, and n_threads must be at least 1")
        if allowed is not None and (
                allowed.shape[0] != n_nodes or allowed.shape[1] != self.n_features):
            raise ValueError("allowed must tell of every node and feature")
        if choice_penalty is not None and not (
                choice_penalty.shape[0] == n_nodes and most_of_choice is not None
                and most_of_choice.shape[0] == n_nodes):
            raise ValueError("every node needs the price of a choice")
        if has_class is not None and not (
                has_class.shape[0] == n_nodes and has_class.shape[1] == self.criterion.info.n_stats
                and self.criterion.info.n_outputs == 1
                and self.criterion.info.kind in (GINI, ENTROPY)):
            raise ValueError("has_class must tell of every node and class")
        if not 2 <= max_branches <= MAX_BRANCHES:
            raise ValueError(f"max_branches must be between 2 and {MAX_BRANCHES}")
        memset(&given, 0, sizeof(given))
        given.first = first
        if histograms is not None:
            given.n_channels = histograms.shape[2]
            given.n_bins = self.offsets[last] - self.offsets[first]
            if histograms.shape[0] != n_nodes or histograms.shape[1] != given.n_bins:
                raise ValueError("the histograms' shape does not fit the nodes and bins")
            if histograms.size:
                given.sums = &histograms[0, 0, 0]
        elif rows is not None:
            if rows.nodes.shape[0] != n_nodes:
                raise ValueError("there must be rows of every node")
            rows.bins.check_bins(self.offsets, first, last)
            given.n_channels = rows.targets.n_channels
        else:
            cell_start, n_cells, bin_of_cell, sums = cells
            given.n_channels = sums.shape[1]
            self.check_cells(first, n_nodes, n_features, cell_start, n_cells, bin_of_cell, sums)
            if cell_start.size and sums.size:
                given.sums, given.bin_of_cell = &sums[0, 0], &bin_of_cell[0]
                given.cell_start, given.n_cells = &cell_start[0, 0], &n_cells[0, 0]
        if not self.criterion.info.n_stats <= given.n_channels <= self.criterion.info.n_stats + 1:
            raise ValueError("sums and criterion differ in their statistics")
        if n_nodes == 0 or n_features == 0:
            return
        if n_threads == 1 or n_nodes >= NODES_PER_THREAD * n_threads:
            n_together = n_features
        elif rows is not None:
            # Rows are brought together once for some features.
            n_together = FEATURES_OF_TASK
        n_tasks = (n_features + n_together - 1) // n_together
        arenas = Arenas(n_threads)
        with nogil:
            for task in prange(n_nodes * n_tasks, num_threads=n_threads, schedule="dynamic"):
                node = task // n_tasks
                f = task % n_tasks * n_together
                asked = options_of_node(
                    max_branches, segment_penalty[node], category_penalty[node],
                    branch_penalty[node], 0.0 if choice_penalty is None else choice_penalty[node],
                    0.0 if choice_penalty is None else most_of_choice[node],
                    NULL if has_class is None else &has_class[node, 0],
                    NULL if allowed is None else &allowed[node, 0], seed[node], only_best)
                found = results_at(
                    &gains[node, 0], &penalised_gains[node, 0], &n_branches[node, 0],
                    &branch_of_bin[node, 0])
                self.search_features(
                    <int> (first + f), <int> (first + min(f + n_together, n_features)), &given,
                    rows, node, n_features, &asked, &found, &arenas.of_thread[threadid()])
        arenas.finish()

    cdef void search_features(
        self, int first, int last, const LevelSums* given, LevelRows rows, Py_ssize_t node,
        Py_ssize_t n_features, const NodeOptions* asked, const NodeResults* found, Arena* arena,
    ) noexcept nogil:
        """Search some of a node's features, of which sums of `n_features` are given."""
        cdef:
            Mark mark = arena_mark(arena), mark_of_feature
            RowsToSum own
            NodeCells cells
            int f
            Py_ssize_t place
            double to_beat = 0.0 if asked.only_best else -INFINITY
        if rows is not None:
            own = rows.gather(node, arena)
            if arena.failed:
                return
        for f in range(first, last):
            found.gains[f] = -INFINITY
            found.penalised_gains[f] = -INFINITY
            found.n_branches[f] = 0
            cells.n_channels = given.n_channels
            cells.n_cells = <int> (self.offsets[f + 1] - self.offsets[f])
            memset(found.branch_of_bin + self.offsets[f], NO_BRANCH, cells.n_cells)
            if asked.allowed != NULL and not asked.allowed[f]:
                continue
            mark_of_feature = arena_mark(arena)
            if rows is not None:
                cells.n_cells = rows.sum_feature(
                    &own, f, cells.n_cells, arena, &cells.bin_of_cell, &cells.sums)
            elif given.cell_start != NULL:
                place = node * n_features + f - given.first
                cells.n_cells = given.n_cells[place]
                cells.bin_of_cell = <int32_t*> given.bin_of_cell + given.cell_start[place]
                cells.sums = <double*> given.sums + given.cell_start[place] * given.n_channels
            elif given.sums != NULL:
                cells.bin_of_cell = NULL
                cells.sums = <double*> given.sums + given.n_channels * (
                    node * given.n_bins + self.offsets[f] - self.offsets[given.first])
            else:
                cells.n_cells = 0
            if cells.n_cells > 0:
                self.search_feature(f, &cells, asked, found, &to_beat, arena)
            arena_release(arena, mark_of_feature)
        arena_release(arena, mark)

    cdef int check(
        self, int first, int last, Py_ssize_t n_nodes, double[:, ::1] gains,
        double[:, ::1] penalised_gains, int32_t[:, ::1] n_branches, uint8_t[:, ::1] branch_of_bin,
    ) except -1:
        """Refuse features that do not exist and results without room."""
        cdef Py_ssize_t n = self.n_features
        if not 0 <= first <= last <= n:
            raise ValueError("features out of range")
        if not (gains.shape[0] == penalised_gains.shape[0] == n_branches.shape[0]
                == branch_of_bin.shape[0] == n_nodes) or not (
                gains.shape[1] == penalised_gains.shape[1] == n_branches.shape[1] == n) or (
                branch_of_bin.shape[1] != self.offsets[n]):
            raise ValueError("there must be a result for every node and feature")
        return 0

    cdef int check_cells(
        self, int first, Py_ssize_t n_nodes, Py_ssize_t n_features,
        const int64_t[:, ::1] cell_start, const int32_t[:, ::1] n_cells,
        const int32_t[::1] bin_of_cell, const double[:, ::1] sums,
    ) except -1:
        """Refuse cells that do not exist, or are not those of the features' bins."""
        cdef:
            Py_ssize_t node, f
            int64_t i, start, stop, n_bins
            bint fine = True
        if not (cell_start.shape[0] == n_cells.shape[0] == n_nodes) or not (
                cell_start.shape[1] == n_cells.shape[1] == n_features) or (
                bin_of_cell.shape[0] != sums.shape[0]):
            raise ValueError("cells do not fit the nodes and features")
        for node in range(n_nodes):
            for f in range(n_features):
                start, stop = cell_start[node, f], cell_start[node, f] + n_cells[node, f]
                n_bins = self.offsets[first + f + 1] - self.offsets[first + f]
                if not 0 <= start <= stop <= sums.shape[0]:
                    raise ValueError("cells do not fit the nodes and features")
                for i in range(start, stop):
                    fine &= (bin_of_cell[i - 1] if i > start else -1) < bin_of_cell[i] < n_bins
        if not fine:
            raise ValueError("cells must be bins of their feature, in ascending order")
        return 0

    cdef void search_feature(
        self, int f, const NodeCells* given, const NodeOptions* asked, const NodeResults* found,
        double* to_beat, Arena* arena,
    ) noexcept nogil:
        """Search one feature of a node, if it has a shape function at all.

        Where only the best feature is wanted, `to_beat` is how the best one so far ranks.
        """
        cdef:
            uint8_t* branch_of_bin = found.branch_of_bin + self.offsets[f]
            double choice_penalty = self.choice_share[f] * asked.choice_penalty
            Options options = self.options
            Mark mark = arena_mark(arena)
            const CriterionInfo* c = &self.criterion.info
            CriterionInfo own = c[0]
            int32_t block[2]
            int n_bins = <int> (self.offsets[f + 1] - self.offsets[f])
            int room = given.n_cells, n_present
            int32_t* present = take_ints(arena, c.n_stats)
            double* stats = take_doubles(arena, <size_t> (room + 1) * c.n_stats)
            int32_t* n_rows = take_ints(arena, room + 1)
            branch_t* branch = take_branches(arena, room)
            HeldBins held
            Cells cells
            Best best
            int n_cells, n_joined, i
        held.bin = take_ints(arena, room + 1)
        held.cell = take_ints(arena, room + 1)
        if arena.failed or must_stop(arena, room):
            return
        options.max_branches = asked.max_branches
        options.segment_penalty = asked.segment_penalty
        options.category_penalty = asked.category_penalty
        options.branch_penalty = asked.branch_penalty
        # Each feature has a seed of its own, whichever thread takes it.
        options.seed = (asked.seed + 1) * <uint64_t> 0x9E3779B97F4A7C15 + <uint64_t> (f + 1)
        cells.categorical = self.categorical[f]
        n_joined = n_bins - 1 if may_join(c, &options, cells.categorical) else 0
        # Deep in a tree, most classes are gone, and time grows with their number.
        n_present = find_present(c, asked.has_class, present)
        if asked.has_class != NULL and n_present < 2:
            arena_release(arena, mark)
            return
        n_cells = gather_cells(c, given, present, n_present, n_joined, stats, n_rows, &held)
        if c.kind == ENTROPY and are_counts(stats, <Py_ssize_t> n_cells * n_present):
            own.looked_up = small_counts()
        if n_present < c.n_stats:
            block[0] = 0
            block[1] = n_present
            own.n_stats = n_present
            own.block = block
        cells.has_missing = held.n > 0 and held.bin[held.n - 1] == n_bins - 1
        cells.n_cells = n_cells - cells.has_missing
        cells.stats = stats
        if cells.n_cells < 1 or n_cells < 2:
            arena_release(arena, mark)
            return
        best.branch = branch
        best.to_beat = to_beat[0]
        search_cells(&own, cells, n_rows, &options, arena, &best)
        if best.n_branches >= 2:
            if best.score > best.most:
                best.penalised_gain -= (best.score - best.most) * (
                    best.n_branches - 1 if options.per_leaf else 1)
            found.gains[f] = best.gain
            found.penalised_gains[f] = best.penalised_gain
            if cells.categorical and choice_penalty > 0.0 and cells.n_cells > 1:
                # What choosing among many categories is worth by chance.
                found.penalised_gains[f] -= min(
                    n_listed(cells, branch) * choice_penalty,
                    cells.n_cells * asked.most_of_choice)
            found.n_branches[f] = best.n_branches
            for i in range(held.n):
                branch_of_bin[held.bin[i]] = branch[held.cell[i]]
            if asked.only_best:
                to_beat[0] = max(
                    to_beat[0], score_of(&options, found.penalised_gains[f], best.n_branches))
        arena_release(arena, mark)


def best_features(
    const double[:, ::1] scores not None,            # IN: (n_nodes, n_features)
    const double[::1] ties not None,                 # IN: (n_nodes,) scores closer are equal
    const int32_t[::1] order not None,               # IN: (n_features,) which of equals comes first
):
    """Each node's feature with the greatest score; -1 where none is positive."""
    cdef:
        Py_ssize_t node, i, n_features = scores.shape[1]
        double greatest
        int f, best
    if ties.shape[0] != scores.shape[0] or order.shape[0] != n_features:
        raise ValueError("every node needs its tie, and every feature its place")
    for i in range(n_features):
        if not 0 <= order[i] < n_features:
            raise ValueError("order must hold features")
    features = []
    for node in range(ties.shape[0]):
        greatest = -INFINITY
        for i in range(n_features):
            greatest = max(greatest, scores[node, i])
        best = -1
        for i in range(n_features):
            f = order[i]
            if scores[node, f] >= greatest - ties[node]:
                best = f if scores[node, f] >= ties[node] else -1
                break
        features.append(best)
    return features


# Trees of forests have many thousands of these. Python's collector of cycles would go through all
# of them again and again; arrays and numbers make no cycles.
@cython.no_gc
cdef class BinSplit:
    """A shape function of one feature as the branch of each bin.

    Attributes
    ----------
    feature : int
    n_branches : int
    branch_of_bin : uint8 array of shape (n_bins + 1,)
        The missing bin comes last; NO_BRANCH_MARK for bins that hold no row of the node.
    """

    cdef readonly Py_ssize_t feature
    cdef readonly Py_ssize_t n_branches
    cdef readonly object branch_of_bin

    def __init__(self, Py_ssize_t feature, Py_ssize_t n_branches, branch_of_bin not None):
        self.feature = feature
        self.n_branches = n_branches
        self.branch_of_bin = branch_of_bin

    def __reduce__(self):
        return BinSplit, (self.feature, self.n_branches, self.branch_of_bin)

    @property
    def features(self):
        """The feature that it splits on."""
        return (self.feature,)


@cython.no_gc
cdef class Candidate:
    """A shape function over bins that a node may split on.

    Attributes
    ----------
    split : BinSplit
    gain : float
        Impurity mass that it takes away.
    penalised_gain : float
        The same, less all penalties.
    """

    cdef readonly object split
    cdef readonly double gain
    cdef readonly double penalised_gain

    def __init__(self, split not None, double gain, double penalised_gain):
        self.split = split
        self.gain = gain
        self.penalised_gain = penalised_gain

    @property
    def n_branches(self):
        """Number of branches."""
        return self.split.n_branches


def candidates_of(
    list features not None,                  # IN: which feature each node may split on; -1 for none
    const int64_t[::1] offsets not None,             # IN: (n_features + 1,) where bins start
    const double[:, ::1] gains not None,             # IN: as `NodeSearch.search` finds them
    const double[:, ::1] penalised_gains not None,
    const int32_t[:, ::1] n_branches not None,
    const uint8_t[:, ::1] branch_of_bin not None,
):
    """The candidates of nodes on some features; None for nodes without one."""
    cdef:
        Py_ssize_t node, f, start, stop, n = len(features), n_features = offsets.shape[0] - 1
        Py_ssize_t n_bins = 0
        uint8_t[::1] branches
    if not (gains.shape[0] == penalised_gains.shape[0] == n_branches.shape[0]
            == branch_of_bin.shape[0] == n) or not (
            gains.shape[1] == penalised_gains.shape[1] == n_branches.shape[1] == n_features):
        raise ValueError("there must be a result for every node and feature")
    for f in range(n_features):
        if not 0 <= offsets[f] <= offsets[f + 1] <= branch_of_bin.shape[1]:
            raise ValueError("features must have bins")
    for f in features:
        if f >= n_features:
            raise ValueError("features must exist")
        n_bins += offsets[f + 1] - offsets[f] if f >= 0 else 0
    # Their branches stand in one array.
    together = np.empty(n_bins, dtype=np.uint8)
    branches = together
    candidates = []
    stop = 0
    for node in range(n):
        f = features[node]
        if f < 0:
            candidates.append(None)
            continue
        start, stop = stop, stop + offsets[f + 1] - offsets[f]
        if stop > start:
            memcpy(&branches[start], &branch_of_bin[node, offsets[f]], stop - start)
        candidates.append(Candidate(
            BinSplit(f, n_branches[node, f], together[start:stop]), gains[node, f],
            penalised_gains[node, f]))
    return candidates
