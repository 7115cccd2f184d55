"""Assignments: send each piece to a branch so that the branches' impurity is least."""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, uint64_t
from libc.string cimport memcpy

from shapetree._core.criterion cimport (
    ABSOLUTE, GINI, SQUARED, Criterion, CriterionInfo, dot, impurity, supergradient, weight_of,
)
from shapetree._core.options cimport AUTO, COORDINATE_DESCENT, KMEANS, RANDOM, Options
from shapetree._core.threads cimport (
    LONG_WORK, Arena, Mark, arena_free, arena_init, arena_mark, arena_release, arena_take, branch_t,
    must_stop, take_branches, take_doubles, take_ints,
)

KINDS = {
    "auto": AUTO, "coordinate_descent": COORDINATE_DESCENT, "kmeans": KMEANS, "random": RANDOM
}

cdef enum:
    MAX_PASSES = 50       # of coordinate descent or k-means; both settle long before
    MAX_CELLS = 1 << 30   # visits of a piece's statistics for a branch, in all passes for all k
    MAX_ORDERS = 8        # classes whose order is tried as a start, the heaviest first


cdef bint has_exact_assignment(const CriterionInfo* c) noexcept nogil:
    """Whether the best assignment is contiguous in the order of the pieces' means."""
    return c.n_outputs == 1 and c.kind != ABSOLUTE and c.n_stats == 2


cdef inline int max_passes(const CriterionInfo* c, int n, int max_branches) noexcept nogil:
    """Passes that pieces, classes and branches in their thousands have time for."""
    cdef double cells = <double> n * c.n_stats * max_branches * max_branches
    return <int> min(<double> MAX_PASSES, max(1.0, MAX_CELLS / cells))


cdef inline bint pauses(Arena* arena, Py_ssize_t* n_cells, Py_ssize_t more) noexcept nogil:
    """Whether to wind up, asked each time that many more cells have been gone through."""
    n_cells[0] += more
    if must_stop(arena, n_cells[0]):
        return True
    if n_cells[0] >= LONG_WORK:
        n_cells[0] = 0
    return False


cdef double partition_loss(
    const CriterionInfo* c, const double* stats, const branch_t* branch, int n, int n_branches,
    double* sums,
) noexcept nogil:
    """Impurity of the branches; `sums` (n_branches x n_stats) receives their statistics."""
    cdef:
        int i, j, n_stats = c.n_stats
        double loss = 0.0
        double* s
    for i in range(n_branches * n_stats):
        sums[i] = 0.0
    for i in range(n):
        s = sums + branch[i] * n_stats
        for j in range(n_stats):
            s[j] += stats[i * n_stats + j]
    for i in range(n_branches):
        loss += impurity(c, sums + i * n_stats)
    return loss


cdef inline uint64_t next_random(uint64_t* state) noexcept nogil:
    """Xorshift: small, seeded, and the same on every thread and machine."""
    state[0] ^= state[0] << 13
    state[0] ^= state[0] >> 7
    state[0] ^= state[0] << 17
    return state[0]


cdef void sort_by_key(const double* key, int32_t* order, int n) noexcept nogil:
    """Shell sort of the indices in `order` by (key, index)."""
    cdef int gap = 1, i, j, item
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            item = order[i]
            j = i
            while j >= gap and (
                key[order[j - gap]] > key[item]
                or (key[order[j - gap]] == key[item] and order[j - gap] > item)
            ):
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3


cdef bint is_before(
    const double* a, const double* b, const int32_t* key, int n_keys, int n_stats
) noexcept nogil:
    """Whether statistics have more of a key where they differ first, or else of anything."""
    cdef int i
    for i in range(n_keys):
        if a[key[i]] != b[key[i]]:
            return a[key[i]] > b[key[i]]
    for i in range(n_stats):
        if a[i] != b[i]:
            return a[i] > b[i]
    return False


cdef void order_by_content(
    const CriterionInfo* c, const double* stats, int n, Arena* arena, int32_t* order
) noexcept nogil:
    """Order pieces by their statistics, those of the heaviest classes first.

    So what is found step by step, piece by piece, depends neither on the pieces' names nor on those
    of the classes.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int32_t* key = take_ints(arena, MAX_ORDERS)
        int n_keys, n_stats = c.n_stats, gap = 1, i, j, item
        Pieces pieces
    for i in range(n):
        order[i] = i
    if arena.failed:
        return
    pieces.n_pieces = n
    pieces.stats = stats
    n_keys = ordering_statistics(c, pieces, arena, key)
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            item = order[i]
            j = i
            while j >= gap and is_before(
                stats + <Py_ssize_t> item * n_stats,
                stats + <Py_ssize_t> order[j - gap] * n_stats, key, n_keys, n_stats,
            ):
                order[j] = order[j - gap]
                j -= gap
            order[j] = item
        gap //= 3
    arena_release(arena, mark)


# --- exact: contiguous in the order of the means ------------------------------------------------

ctypedef struct Chain:
    # Pieces in the order of their means, as prefix sums.
    const CriterionInfo* c
    const double* stats       # (n + 1) x 2
    const int32_t* n_rows     # n + 1
    int min_rows


cdef inline double interval_loss(const Chain* chain, int i, int j) noexcept nogil:
    cdef double s[2]
    if chain.n_rows[j] - chain.n_rows[i] < chain.min_rows:
        return INFINITY
    s[0] = chain.stats[2 * j] - chain.stats[2 * i]
    s[1] = chain.stats[2 * j + 1] - chain.stats[2 * i + 1]
    return impurity(chain.c, s)


cdef void fill_layer(
    const Chain* chain, const double* before, double* now, int32_t* cut,
    int first, int last, int low, int high,
) noexcept nogil:
    """now[j] = min over i of before[i] + loss of i..j-1, for j in first..last."""
    # The loss of an interval of sorted means satisfies the quadrangle inequality, so the best cut
    # moves right with j: solve the middle j, then each half within the bounds it sets.
    if first > last:
        return
    cdef:
        int j = (first + last) // 2, i, best = low
        double loss
    now[j] = INFINITY
    for i in range(low, (high if high < j - 1 else j - 1) + 1):
        loss = before[i] + interval_loss(chain, i, j)
        if loss < now[j]:
            now[j] = loss
            best = i
    cut[j] = best
    fill_layer(chain, before, now, cut, first, j - 1, low, best)
    fill_layer(chain, before, now, cut, j + 1, last, best, high)


cdef void assign_exactly(
    const CriterionInfo* c, Pieces pieces, int max_branches, int min_rows, Arena* arena,
    branch_t* out, bint* found,
) noexcept nogil:
    """The best assignment to k branches for each k = 2..max_branches."""
    cdef:
        Mark mark = arena_mark(arena)
        int n = pieces.n_pieces
        double* key = take_doubles(arena, n)
        int32_t* order = take_ints(arena, n)
        double* prefix = take_doubles(arena, 2 * (n + 1))
        int32_t* rows = take_ints(arena, n + 1)
        double* before = take_doubles(arena, n + 1)
        double* now = take_doubles(arena, n + 1)
        int32_t* cut = take_ints(arena, <size_t> max_branches * (n + 1))
        Chain chain
        const double* s
        double weight
        double* swap
        int i, j, k, stop
    if arena.failed:
        return
    for i in range(n):
        s = pieces.stats + 2 * i
        weight = weight_of(c, s)
        key[i] = s[1] / weight if weight > 0.0 else 0.0
        order[i] = i
    sort_by_key(key, order, n)
    prefix[0] = prefix[1] = 0.0
    rows[0] = 0
    for i in range(n):
        s = pieces.stats + 2 * order[i]
        prefix[2 * i + 2] = prefix[2 * i] + s[0]
        prefix[2 * i + 3] = prefix[2 * i + 1] + s[1]
        rows[i + 1] = rows[i] + pieces.n_rows[order[i]]
    chain.c = c
    chain.stats = prefix
    chain.n_rows = rows
    chain.min_rows = min_rows if min_rows > 1 else 1
    before[0] = INFINITY
    for j in range(1, n + 1):
        before[j] = interval_loss(&chain, 0, j)
    for k in range(2, max_branches + 1):
        now[n] = INFINITY
        # All of layer k is needed only by layer k + 1.
        fill_layer(&chain, before, now, cut + (k - 1) * (n + 1),
                   1 if k < max_branches else n, n, 0, n - 1)
        now[0] = INFINITY
        found[k - 2] = now[n] < INFINITY
        if found[k - 2]:
            stop = n
            for j in range(k - 1, -1, -1):
                i = cut[j * (n + 1) + stop] if j > 0 else 0
                while stop > i:
                    stop -= 1
                    out[(k - 2) * n + order[stop]] = j
        swap = before
        before = now
        now = swap
    arena_release(arena, mark)


# --- heuristics for several classes -------------------------------------------------------------

cdef double descend(
    const CriterionInfo* c, Pieces pieces, int k, int n_passes, uint64_t seed, Arena* arena,
    branch_t* branch,
) noexcept nogil:
    """Coordinate descent (the paper's Algorithm 5): move one piece at a time while it helps.

    A seed other than 0 shuffles the pieces in each pass. Returns the loss.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = pieces.n_pieces, n_stats = c.n_stats
        double* sums = take_doubles(arena, k * n_stats)
        double* mass = take_doubles(arena, k)
        double* moved = take_doubles(arena, n_stats)
        int32_t* order = take_ints(arena, n)
        Py_ssize_t n_cells = 0
        int i, j, b, p, old, best, swap, n_stayed = 0
        double without, with_piece, best_with, change, least, loss, tolerance
        const double* s
    if arena.failed:
        return INFINITY
    loss = partition_loss(c, pieces.stats, branch, n, k, sums)
    tolerance = 0.0
    for b in range(k):
        mass[b] = impurity(c, sums + b * n_stats)
        tolerance += 1e-12 * weight_of(c, sums + b * n_stats)
    for i in range(n):
        order[i] = i
    for _ in range(n_passes):
        if seed:
            n_stayed = 0
            for i in range(n - 1, 0, -1):
                j = <int> (next_random(&seed) % <uint64_t> (i + 1))
                swap = order[i]
                order[i] = order[j]
                order[j] = swap
        for i in range(n):
            # Once no piece has moved since each was tried, none will.
            if n_stayed == n or pauses(arena, &n_cells, <Py_ssize_t> k * n_stats):
                break
            n_stayed += 1
            p = order[i]
            s = pieces.stats + p * n_stats
            old = branch[p]
            for j in range(n_stats):
                moved[j] = sums[old * n_stats + j] - s[j]
            without = impurity(c, moved)
            best = old
            best_with = mass[old]
            least = -tolerance
            for b in range(k):
                if b == old:
                    continue
                for j in range(n_stats):
                    moved[j] = sums[b * n_stats + j] + s[j]
                with_piece = impurity(c, moved)
                change = (without - mass[old]) + (with_piece - mass[b])
                if change < least:
                    least = change
                    best = b
                    best_with = with_piece
            if best != old:
                for j in range(n_stats):
                    sums[old * n_stats + j] -= s[j]
                    sums[best * n_stats + j] += s[j]
                mass[old] = without
                mass[best] = best_with
                branch[p] = best
                n_stayed = 0
        if n_stayed == n:
            break
    loss = partition_loss(c, pieces.stats, branch, n, k, sums)
    arena_release(arena, mark)
    return loss


cdef double kmeans(
    const CriterionInfo* c, Pieces pieces, int k, int n_passes, Arena* arena, branch_t* branch
) noexcept nogil:
    """Weighted k-means of the pieces' distributions (or means); returns the criterion's loss.

    In turns, each centre becomes the supergradient of its branch's sum, and each piece goes to the
    branch b where dot(its statistics, centre[b]) is least.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = pieces.n_pieces, n_stats = c.n_stats
        double* sums = take_doubles(arena, k * n_stats)
        double* centre = take_doubles(arena, k * n_stats)
        double* distance = take_doubles(arena, n)
        double* own = take_doubles(arena, n)
        CriterionInfo euclidean = c[0]
        Py_ssize_t n_cells = 0
        int b, i, best, seed_piece
        double cost, least, loss
        bint changed
        const double* s
    if arena.failed:
        return INFINITY
    # Gini's mass is the squared distance of distributions, summed over rows.
    if c.kind != SQUARED:
        euclidean.kind = GINI
    for i in range(n):
        distance[i] = INFINITY
        own[i] = impurity(&euclidean, pieces.stats + i * n_stats)
        branch[i] = 0
    # Farthest-first start: the heaviest piece, then whatever is dearest to serve so far.
    for b in range(k):
        if pauses(arena, &n_cells, <Py_ssize_t> n * n_stats):
            break
        seed_piece = 0
        least = -1.0
        for i in range(n):
            cost = weight_of(c, pieces.stats + i * n_stats) if b == 0 else distance[i]
            if cost > least:
                least = cost
                seed_piece = i
        supergradient(&euclidean, pieces.stats + seed_piece * n_stats, centre + b * n_stats)
        for i in range(n):
            s = pieces.stats + i * n_stats
            cost = dot(s, centre + b * n_stats, n_stats) - own[i]
            if cost < distance[i]:
                distance[i] = cost
                branch[i] = b
    for _ in range(n_passes):
        partition_loss(&euclidean, pieces.stats, branch, n, k, sums)
        for b in range(k):
            supergradient(&euclidean, sums + b * n_stats, centre + b * n_stats)
        changed = False
        for i in range(n):
            if pauses(arena, &n_cells, <Py_ssize_t> k * n_stats):
                break
            s = pieces.stats + i * n_stats
            best = branch[i]
            least = dot(s, centre + best * n_stats, n_stats) - 1e-12 * weight_of(c, s)
            for b in range(k):
                cost = dot(s, centre + b * n_stats, n_stats)
                if cost < least:
                    least = cost
                    best = b
            if best != branch[i]:
                branch[i] = best
                changed = True
        if not changed:
            break
    loss = partition_loss(c, pieces.stats, branch, n, k, sums)
    arena_release(arena, mark)
    return loss


cdef int ordering_statistics(
    const CriterionInfo* c, Pieces pieces, Arena* arena, int32_t* chosen
) noexcept nogil:
    """Statistics whose share orders the pieces well: the heaviest classes, or each output."""
    cdef:
        int n_stats = c.n_stats, n_chosen = 0, i, j, heaviest
        double* total = take_doubles(arena, n_stats)
    if arena.failed:
        return 0
    if c.kind == SQUARED:
        n_chosen = c.n_outputs if c.n_outputs < MAX_ORDERS else MAX_ORDERS
        for j in range(n_chosen):
            chosen[j] = j + 1
        return n_chosen
    for j in range(n_stats):
        total[j] = 0.0
    for i in range(pieces.n_pieces):
        for j in range(n_stats):
            total[j] += pieces.stats[i * n_stats + j]
    while n_chosen < MAX_ORDERS:
        heaviest = 0
        for j in range(1, n_stats):
            if total[j] > total[heaviest]:
                heaviest = j
        if total[heaviest] <= 0.0:
            break
        chosen[n_chosen] = heaviest
        total[heaviest] = 0.0
        n_chosen += 1
    return n_chosen


ctypedef struct Orders:
    # The pieces by the shares of some statistics, one order of all of them after another.
    int n
    int32_t* piece            # n x n_pieces


cdef Orders order_pieces(const CriterionInfo* c, Pieces pieces, Arena* arena) noexcept nogil:
    """Order the pieces; check `arena.failed` afterwards."""
    cdef:
        int n = pieces.n_pieces, n_stats = c.n_stats, i, o
        Orders orders = Orders(1, take_ints(arena, <size_t> MAX_ORDERS * n))
        Mark mark = arena_mark(arena)
        int32_t* chosen = take_ints(arena, MAX_ORDERS)
        double* key = take_doubles(arena, n)
        double* weight = take_doubles(arena, n)
        const double* s
    if arena.failed:
        return orders
    if c.kind != ABSOLUTE:
        orders.n = ordering_statistics(c, pieces, arena, chosen)
    for i in range(n):
        weight[i] = weight_of(c, pieces.stats + i * n_stats)
    for o in range(orders.n):
        for i in range(n):
            s = pieces.stats + i * n_stats
            key[i] = dot(s, c.level, n_stats) if c.kind == ABSOLUTE else s[chosen[o]]
            key[i] = key[i] / weight[i] if weight[i] > 0.0 else 0.0
            orders.piece[o * n + i] = i
        sort_by_key(key, orders.piece + o * n, n)
    arena_release(arena, mark)
    return orders


cdef double split_branch_by_order(
    const CriterionInfo* c, Pieces pieces, const int32_t* order, int which, int new, Arena* arena,
    branch_t* branch,
) noexcept nogil:
    """Move the upper part of branch `which`, in some order of the pieces, to branch `new`.

    The cut is the best one; returns what it takes off the loss.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = pieces.n_pieces, n_stats = c.n_stats
        double* left = take_doubles(arena, n_stats)
        double* right = take_doubles(arena, n_stats)
        int i, j, cut = 0, last = -1
        double whole, loss, least = INFINITY
        const double* s
    if arena.failed:
        return 0.0
    for j in range(n_stats):
        left[j] = 0.0
        right[j] = 0.0
    for i in range(n):
        if branch[i] == which:
            s = pieces.stats + i * n_stats
            for j in range(n_stats):
                right[j] += s[j]
    for i in range(n):
        if branch[order[i]] == which:
            last = i
    whole = impurity(c, right)
    for i in range(last):
        if branch[order[i]] != which:
            continue
        s = pieces.stats + order[i] * n_stats
        for j in range(n_stats):
            left[j] += s[j]
            right[j] -= s[j]
        loss = impurity(c, left) + impurity(c, right)
        if loss < least:
            least = loss
            cut = i + 1
    if cut > 0:
        for i in range(cut, n):
            if branch[order[i]] == which:
                branch[order[i]] = new
    arena_release(arena, mark)
    return whole - least if cut > 0 else 0.0


cdef void split_best_branch(
    const CriterionInfo* c, Pieces pieces, Orders orders, int k, Arena* arena, branch_t* branch
) noexcept nogil:
    """Make k branches from k - 1: the best cut of any branch by any order."""
    cdef:
        Mark mark = arena_mark(arena)
        int n = pieces.n_pieces
        branch_t* trial = take_branches(arena, n)
        branch_t* best = take_branches(arena, n)
        Py_ssize_t n_cells = 0
        int b, o
        double gain, most = -1.0
    if arena.failed:
        return
    memcpy(best, branch, n)
    for b in range(k - 1):
        for o in range(orders.n):
            if pauses(arena, &n_cells, <Py_ssize_t> n * c.n_stats):
                break
            memcpy(trial, branch, n)
            gain = split_branch_by_order(
                c, pieces, orders.piece + o * n, b, k - 1, arena, trial)
            if gain > most:
                most = gain
                memcpy(best, trial, n)
    memcpy(branch, best, n)
    arena_release(arena, mark)


cdef void root_start(Pieces pieces, branch_t* branch) noexcept nogil:
    cdef int i
    for i in range(pieces.n_pieces):
        branch[i] = 0 if i < pieces.root_cut else 1


cdef double paper_start(
    const CriterionInfo* c, Pieces pieces, int k, int n_passes, Arena* arena, branch_t* branch
) noexcept nogil:
    """The better of weighted k-means and the inner tree's root split."""
    cdef:
        Mark mark = arena_mark(arena)
        branch_t* root = take_branches(arena, pieces.n_pieces)
        double* sums = take_doubles(arena, k * c.n_stats)
        double root_loss, loss
    if arena.failed:
        return INFINITY
    loss = kmeans(c, pieces, k, n_passes, arena, branch)
    if pieces.root_cut > 0:
        root_start(pieces, root)
        root_loss = partition_loss(c, pieces.stats, root, pieces.n_pieces, k, sums)
        if root_loss < loss:
            loss = root_loss
            memcpy(branch, root, pieces.n_pieces)
    arena_release(arena, mark)
    return loss


cdef void assign_by_descent(
    const CriterionInfo* c, Pieces pieces, Orders orders, int k, int n_passes, Arena* arena,
    const branch_t* fewer, branch_t* branch,
) noexcept nogil:
    """The better of two descents: from the paper's start, and from a split of `fewer` branches."""
    cdef:
        Mark mark = arena_mark(arena)
        int i, n = pieces.n_pieces
        branch_t* other = take_branches(arena, n)
        double loss
    if arena.failed:
        return
    paper_start(c, pieces, k, n_passes, arena, branch)
    loss = descend(c, pieces, k, n_passes, 0, arena, branch)
    for i in range(n):
        other[i] = fewer[i] if fewer != NULL else 0
    split_best_branch(c, pieces, orders, k, arena, other)
    if descend(c, pieces, k, n_passes, 0, arena, other) < loss:
        memcpy(branch, other, n)
    arena_release(arena, mark)


cdef void assign_pieces(
    const CriterionInfo* c, Pieces pieces, const Options* options, Arena* arena, branch_t* out,
    bint* found,
) noexcept nogil:
    """Assign the pieces to k branches, for each k = 2..max_branches of the options.

    `out` ((max_branches - 1) x n_pieces) receives the branches, `found` whether there is such an
    assignment; it may leave branches empty or, if not exact, with fewer than `min_rows`.
    """
    cdef:
        int i, k, n = pieces.n_pieces, kind = options.assignment
        int max_branches = options.max_branches, n_passes = max_passes(c, n, max_branches)
        uint64_t seed = options.seed
        Orders orders
        branch_t* branch
        branch_t* fewer = NULL
    if kind == AUTO and has_exact_assignment(c):
        assign_exactly(c, pieces, max_branches, options.min_rows, arena, out, found)
        return
    if kind == AUTO:
        orders = order_pieces(c, pieces, arena)
        if arena.failed:
            return
    for k in range(2, max_branches + 1):
        branch = out + (k - 2) * n
        found[k - 2] = n >= k and not (arena.stop != NULL and arena.stop[0])
        if n_passes == 1 and k < max_branches and k & (k - 1):
            found[k - 2] = False  # there is time for a few k only
        if not found[k - 2]:
            continue
        if kind == AUTO:
            assign_by_descent(c, pieces, orders, k, n_passes, arena, fewer, branch)
        elif kind == COORDINATE_DESCENT:
            paper_start(c, pieces, k, n_passes, arena, branch)
            descend(c, pieces, k, n_passes, seed, arena, branch)
        elif kind == KMEANS:
            kmeans(c, pieces, k, n_passes, arena, branch)
        else:
            for i in range(n):
                branch[i] = next_random(&seed) % <uint64_t> k
            descend(c, pieces, k, n_passes, seed, arena, branch)
        fewer = branch


def assign(Criterion criterion not None, stats, n_rows=None, *, int max_branches=2, str kind="auto",
           int min_rows=1, int root_cut=0, seed=1):
    """Branch of each piece, a dict from k = 2..max_branches to arrays; k without one left out."""
    cdef:
        const double[:, ::1] s = np.ascontiguousarray(stats, dtype=np.float64)
        const int32_t[::1] rows
        branch_t[:, ::1] branches
        Options options
        Arena arena
        Pieces pieces
        bint* found
        int k
    if n_rows is None:
        n_rows = np.ones(s.shape[0])
    rows = np.ascontiguousarray(n_rows, dtype=np.int32)
    if s.shape[0] == 0 or rows.shape[0] != s.shape[0] or s.shape[1] != criterion.info.n_stats:
        raise ValueError("stats must be (n_pieces, n_stats) and n_rows (n_pieces,), not empty")
    if not 2 <= max_branches <= 254:
        raise ValueError("max_branches must be between 2 and 254")
    if not 0 <= root_cut < s.shape[0]:
        raise ValueError("root_cut must leave pieces on both sides")
    out = np.zeros((max_branches - 1, s.shape[0]), dtype=np.uint8)
    branches = out
    pieces.n_pieces = s.shape[0]
    pieces.stats = &s[0, 0]
    pieces.n_rows = &rows[0]
    pieces.root_cut = root_cut
    options.assignment, options.max_branches = KINDS[kind], max_branches
    options.min_rows, options.seed = min_rows, seed
    arena_init(&arena)
    found = <bint*> arena_take(&arena, max_branches * sizeof(bint))
    if found != NULL:
        with nogil:
            assign_pieces(&criterion.info, pieces, &options, &arena, &branches[0, 0], found)
    result = {} if found == NULL else {k: out[k - 2] for k in range(2, max_branches + 1)
                                       if found[k - 2]}
    arena_free(&arena)
    if arena.failed:
        raise MemoryError("no memory for the assignment")
    return result
