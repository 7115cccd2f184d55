"""Polish: trade a shape function's impurity against its complexity, cell by cell.

A shape function's complexity is its number of *extra parts*. On an ordered feature these are its
segments beyond the two of a threshold; on a categorical one, the categories beyond the first that
have to be listed, the largest group being "all others". The missing cell is free.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t
from libc.string cimport memcmp, memcpy, memset

from shapetree._core.assignment cimport partition_loss
from shapetree._core.criterion cimport (
    Criterion, CriterionInfo, dot, impurity, supergradient, weight_of,
)
from shapetree._core.inner_tree cimport Bins, prepare_scan, sum_interval
from shapetree._core.threads cimport (
    Arena, Mark, arena_free, arena_init, arena_mark, arena_release, branch_t, must_stop,
    take_branches, take_doubles, take_ints,
)

cdef extern from "path.h":
    ctypedef struct PathCosts:
        const double* costs
        const double* prices
        int n
        int k
        double penalty
    ctypedef struct PathFound:
        int32_t* came_entered
        branch_t* came_branch
        int32_t* stop
        branch_t* branch
    int cheapest_segments_of(const PathCosts* path, PathFound found) noexcept nogil

cdef enum:
    MAX_ROUNDS = 20
    NO_NAME = 255


cdef int largest_group(const branch_t* branch, int n, int* size) noexcept nogil:
    """The branch with the most cells, and in `size` how many."""
    cdef:
        int count[256]
        int i, largest = 0
    memset(count, 0, sizeof(count))
    for i in range(n):
        count[branch[i]] += 1
        if count[branch[i]] > count[largest]:
            largest = branch[i]
    size[0] = count[largest]
    return largest


cdef int heaviest_of_largest(
    const CriterionInfo* c, const branch_t* branch, int n, int k, const double* sums
) noexcept nogil:
    """The same; of those with equally many the one that weighs most, however cells are ordered."""
    cdef:
        int count[256]
        int i, best = 0
        double weight, heaviest
    memset(count, 0, sizeof(count))
    for i in range(n):
        count[branch[i]] += 1
    heaviest = weight_of(c, sums)
    for i in range(1, k):
        weight = weight_of(c, sums + i * c.n_stats)
        if count[i] > count[best] or (count[i] == count[best] and weight > heaviest):
            best = i
            heaviest = weight
    return best


cdef int extra_parts(Cells cells, const branch_t* branch) noexcept nogil:
    """How many parts the shape function has beyond those of CART's split."""
    cdef int i, size, parts = -1
    if cells.categorical:
        largest_group(branch, cells.n_cells, &size)
        parts = cells.n_cells - size - 1
    else:
        for i in range(1, cells.n_cells):
            parts += branch[i] != branch[i - 1]
    return parts if parts > 0 else 0


cdef int n_listed(Cells cells, const branch_t* branch) noexcept nogil:
    """Categories outside the largest group."""
    cdef int size
    largest_group(branch, cells.n_cells, &size)
    return cells.n_cells - size


cdef inline int cheapest_branch(
    const CriterionInfo* c, const double* stats, int k, const double* cost_of, int free_branch,
    double penalty,
) noexcept nogil:
    """Where a cell costs least, if every branch but one charges `penalty`."""
    cdef:
        int b, best = free_branch
        double cost, least = dot(stats, cost_of + free_branch * c.n_stats, c.n_stats)
    for b in range(k):
        if b != free_branch:
            cost = dot(stats, cost_of + b * c.n_stats, c.n_stats) + penalty
            if cost < least:
                least = cost
                best = b
    return best


cdef void unlist(
    const CriterionInfo* c, Cells cells, const double* prices, int default, int max_listed,
    Arena* arena, branch_t* branch,
) noexcept nogil:
    """Send all but `max_listed` categories to the default branch, those first that lose least."""
    cdef:
        Mark mark = arena_mark(arena)
        int n = cells.n_cells, i, n_listed = 0, cheapest
        double* saving = take_doubles(arena, n)
        const double* stats
    if arena.failed:
        return
    for i in range(n):
        saving[i] = INFINITY
        if branch[i] != default:
            stats = cells.stats + <Py_ssize_t> i * c.n_stats
            saving[i] = (dot(stats, prices + default * c.n_stats, c.n_stats)
                         - dot(stats, prices + branch[i] * c.n_stats, c.n_stats))
            n_listed += 1
    while n_listed > max_listed:
        cheapest = 0
        for i in range(n):
            if saving[i] < saving[cheapest]:
                cheapest = i
        branch[cheapest] = default
        saving[cheapest] = INFINITY
        n_listed -= 1
    arena_release(arena, mark)


cdef bint polish_categories(
    const CriterionInfo* c, Cells cells, int k, double penalty, int max_listed, double* objective,
    Arena* arena, branch_t* branch,
) noexcept nogil:
    """Polish a categorical feature's branches in place, as `polish_segments` does; see there.

    At most `max_listed` categories are outside the largest group.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = cells.n_cells, n_all = cells.n_cells + cells.has_missing
        double* sums = take_doubles(arena, k * c.n_stats)
        double* prices = take_doubles(arena, k * c.n_stats)
        branch_t* trial = take_branches(arena, n_all)
        double trial_objective, tolerance = 0.0
        int b, i, default
        bint changed = False
    if arena.failed:
        return False
    objective[0] = (partition_loss(c, cells.stats, branch, n_all, k, sums)
                    + penalty * extra_parts(cells, branch))
    if n_listed(cells, branch) > max_listed:
        objective[0] = INFINITY
    for b in range(k):
        tolerance += 1e-12 * weight_of(c, sums + b * c.n_stats)
    for _ in range(MAX_ROUNDS):
        if must_stop(arena, n) or arena.failed:
            break
        for b in range(k):
            supergradient(c, sums + b * c.n_stats, prices + b * c.n_stats)
        default = heaviest_of_largest(c, branch, n, k, sums)
        for i in range(n):
            trial[i] = cheapest_branch(
                c, cells.stats + i * c.n_stats, k, prices, default, penalty
            )
        if n > max_listed:
            unlist(c, cells, prices, default, max_listed, arena, trial)
        if cells.has_missing:
            trial[n] = cheapest_branch(
                c, cells.stats + n * c.n_stats, k, prices, branch[n], 0.0
            )
        if memcmp(trial, branch, n_all) == 0:
            break
        trial_objective = (partition_loss(c, cells.stats, trial, n_all, k, sums)
                           + penalty * extra_parts(cells, trial))
        if not trial_objective < objective[0] - tolerance:
            break
        objective[0] = trial_objective
        memcpy(branch, trial, n_all)
        changed = True
    arena_release(arena, mark)
    return changed


# --- ordered features ---------------------------------------------------------------------------

cdef Segments take_segments(Arena* arena, int n_cells) noexcept nogil:
    """Room for a shape function; check `arena.failed` afterwards."""
    cdef Segments shape
    shape.n = 0
    shape.missing = 0
    shape.stop = take_ints(arena, n_cells)
    shape.branch = take_branches(arena, n_cells)
    return shape


cdef void copy_segments(const Segments* source, Segments* target) noexcept nogil:
    target.n = source.n
    target.missing = source.missing
    memcpy(target.stop, source.stop, source.n * sizeof(int32_t))
    memcpy(target.branch, source.branch, source.n)


cdef bint same_segments(const Segments* a, const Segments* b) noexcept nogil:
    return (a.n == b.n and a.missing == b.missing
            and memcmp(a.stop, b.stop, a.n * sizeof(int32_t)) == 0
            and memcmp(a.branch, b.branch, a.n) == 0)


cdef int number_segments(const Axis* axis, Segments* shape) noexcept nogil:
    """Number the branches in order of appearance; returns how many there are."""
    cdef:
        branch_t name[256]
        int i, n_branches = 0
    memset(name, NO_NAME, 256)
    for i in range(shape.n):
        if name[shape.branch[i]] == NO_NAME:
            name[shape.branch[i]] = n_branches
            n_branches += 1
        shape.branch[i] = name[shape.branch[i]]
    if axis.has_missing:
        if name[shape.missing] == NO_NAME:
            name[shape.missing] = n_branches
            n_branches += 1
        shape.missing = name[shape.missing]
    return n_branches


cdef inline int extra_segments(const Segments* shape) noexcept nogil:
    return shape.n - 2 if shape.n > 2 else 0


cdef double segments_loss(
    Axis* axis, const Segments* shape, int k, double* sums
) noexcept nogil:
    """Impurity of the branches; `sums` (k x n_stats) receives their statistics."""
    cdef:
        const CriterionInfo* c = axis.scan.c
        int i, j, b, n_stats = c.n_stats, start = 0
        double* s
        double* part = axis.scan.left
        const double* cell
        double loss = 0.0
    memset(sums, 0, k * n_stats * sizeof(double))
    for i in range(shape.n):
        s = sums + shape.branch[i] * n_stats
        if axis.scan.exact:
            sum_interval(&axis.scan, start, shape.stop[i], part)
            for j in range(n_stats):
                s[j] += part[j]
        else:
            for b in range(start, shape.stop[i]):
                cell = axis.scan.bins.stats + <Py_ssize_t> b * n_stats
                for j in range(n_stats):
                    s[j] += cell[j]
        start = shape.stop[i]
    if axis.has_missing:
        s = sums + shape.missing * n_stats
        cell = axis.scan.bins.stats + <Py_ssize_t> axis.scan.bins.n_bins * n_stats
        for j in range(n_stats):
            s[j] += cell[j]
    for b in range(k):
        loss += impurity(c, sums + b * n_stats)
    return loss


cdef void take_room_to_polish(Axis* axis, int max_branches, Arena* arena) noexcept nogil:
    """Take the axis' scratch memory; check `arena.failed` afterwards."""
    cdef:
        int n = axis.scan.bins.n_bins, n_stats = axis.scan.c.n_stats
        size_t n_states = <size_t> n * max_branches
    axis.prices = take_doubles(arena, max_branches * n_stats)
    axis.costs = take_doubles(arena, n_states if n_stats != 2 else 0)
    axis.came_entered = take_ints(arena, n_states)
    axis.came_branch = take_branches(arena, n_states)
    axis.trial = take_segments(arena, n)


cdef void find_cheapest_segments(Axis* axis, int k, Arena* arena) noexcept nogil:
    """The cheapest path through the cells at the current prices, into `axis.trial`."""
    cdef:
        int n = axis.scan.bins.n_bins, n_stats = axis.scan.c.n_stats, i, b
        const double* stats = axis.scan.bins.stats
        PathCosts path = PathCosts(axis.costs, NULL, n, k, axis.penalty)
        PathFound found = PathFound(
            axis.came_entered, axis.came_branch, axis.trial.stop, axis.trial.branch)
    if n_stats == 2:
        path.costs = stats
        path.prices = axis.prices
    else:
        for i in range(n):
            for b in range(k):
                axis.costs[<Py_ssize_t> i * k + b] = dot(
                    stats + <Py_ssize_t> i * n_stats, axis.prices + b * n_stats, n_stats)
    axis.trial.n = cheapest_segments_of(&path, found)
    if axis.trial.n > axis.max_segments:
        limit_path(&path, axis.max_segments, arena, &axis.trial)


cdef void find_cheapest_path(
    const double* costs, int n, int k, double penalty, int max_segments, Arena* arena,
    branch_t* branch,
) noexcept nogil:
    """The cheapest path of at most so many segments through costs (n x k).

    Every switch but the first costs `penalty`.
    """
    cdef:
        Mark mark = arena_mark(arena)
        size_t n_states = <size_t> n * k
        Segments shape = take_segments(arena, n)
        PathCosts path = PathCosts(costs, NULL, n, k, penalty)
        PathFound found = PathFound(
            take_ints(arena, n_states), take_branches(arena, n_states), shape.stop, shape.branch)
        int i, start = 0
    if arena.failed:
        return
    shape.n = cheapest_segments_of(&path, found)
    if shape.n > max_segments:
        limit_path(&path, max_segments, arena, &shape)
    for i in range(shape.n):
        memset(branch + start, shape.branch[i], shape.stop[i] - start)
        start = shape.stop[i]
    arena_release(arena, mark)


cdef void limit_path(
    const PathCosts* path, int max_segments, Arena* arena, Segments* shape
) noexcept nogil:
    """The cheapest path of at most so many segments, those beyond two at a price.

    best[s, b] is the cost of the cheapest path so far that is in branch b after s switches:

        best'[s, b] = cost[i, b] + min(best[s, b], price + min of best[s - 1, c] over c != b)
    """
    cdef:
        Mark mark = arena_mark(arena)
        const double* costs = path.costs
        const double* prices = path.prices
        int n = path.n, k = path.k
        int n_states = max_segments * k, i, s, b, state, other, cheapest, second
        double* best = take_doubles(arena, n_states)
        # For each cell and state, the branch it was entered from at that cell, or NO_NAME.
        branch_t* came_from = take_branches(arena, <size_t> n * n_states)
        double cost, switched
    if arena.failed:
        return
    for i in range(n):
        # From the most switches down: what best[s - 1] holds is still of the cell before.
        for s in range(max_segments - 1, -1, -1):
            cheapest = second = -1
            if s > 0 and i > 0:
                for b in range(k):
                    other = (s - 1) * k + b
                    if cheapest < 0 or best[other] < best[(s - 1) * k + cheapest]:
                        second = cheapest
                        cheapest = b
                    elif second < 0 or best[other] < best[(s - 1) * k + second]:
                        second = b
            for b in range(k):
                state = s * k + b
                if prices != NULL:
                    cost = costs[2 * i] * prices[2 * b] + costs[2 * i + 1] * prices[2 * b + 1]
                else:
                    cost = costs[<Py_ssize_t> i * k + b]
                came_from[<Py_ssize_t> i * n_states + state] = NO_NAME
                if i == 0:
                    best[state] = cost if s == 0 else INFINITY
                    continue
                other = second if b == cheapest else cheapest
                if other >= 0:
                    switched = best[(s - 1) * k + other] + (path.penalty if s > 1 else 0.0)
                    if switched < best[state]:
                        best[state] = switched
                        came_from[<Py_ssize_t> i * n_states + state] = other
                best[state] += cost
    state = 0
    for other in range(1, n_states):
        if best[other] < best[state]:
            state = other
    s = state // k
    shape.n = s + 1
    shape.stop[s] = n
    shape.branch[s] = state % k
    for i in range(n - 1, 0, -1):
        other = came_from[<Py_ssize_t> i * n_states + s * k + shape.branch[s]]
        if other != NO_NAME:
            s -= 1
            shape.stop[s] = i
            shape.branch[s] = other
    arena_release(arena, mark)


cdef bint polish_segments(
    Axis* axis, int k, double* objective, double* sums, Segments* shape, const Segments* settled,
    Arena* arena,
) noexcept nogil:
    """Lower impurity + penalty * extra parts in place, round by round; whether that was possible.

    A shape function of more than the axis' `max_segments` is brought down to them by the first.

    Each round takes the branches' supergradients as the price of every statistic, then solves
    for the cheapest assignment of the cells at these prices. Neither step can raise the objective.

        cells    s0 s1 s2 s3 s4 s5      cost of cell i in branch b: dot(s[i], prices[b])
        branch   0  0  1  0  2  2       the cheapest path may leave out the sliver at 2:
        trial    0  0  0  0  2  2       two segments less, each of which costs a penalty

    `objective` receives its value, `sums` (k x n_stats) is scratch memory. A shape function that
    is known to be `settled` (or NULL) is not polished further.
    """
    cdef:
        const CriterionInfo* c = axis.scan.c
        int b, n = axis.scan.bins.n_bins, n_stats = c.n_stats
        double trial_objective, tolerance = 0.0
        Segments swap
        bint changed = False
    objective[0] = (segments_loss(axis, shape, k, sums)
                    + axis.penalty * extra_segments(shape))
    if shape.n > axis.max_segments:
        objective[0] = INFINITY
    for b in range(k):
        tolerance += 1e-12 * weight_of(c, sums + b * n_stats)
    for _ in range(MAX_ROUNDS):
        if must_stop(arena, n) or arena.failed:
            break
        for b in range(k):
            supergradient(c, sums + b * n_stats, axis.prices + b * n_stats)
        find_cheapest_segments(axis, k, arena)
        axis.trial.missing = shape.missing
        if axis.has_missing:
            axis.trial.missing = cheapest_branch(
                c, axis.scan.bins.stats + <Py_ssize_t> n * n_stats, k, axis.prices,
                shape.missing, 0.0)
        if same_segments(&axis.trial, shape):
            break
        trial_objective = (segments_loss(axis, &axis.trial, k, sums)
                           + axis.penalty * extra_segments(&axis.trial))
        if not trial_objective < objective[0] - tolerance:
            break
        objective[0] = trial_objective
        swap = shape[0]
        shape[0] = axis.trial
        axis.trial = swap
        changed = True
        if settled != NULL and same_segments(shape, settled):
            break
    return changed


cdef bint polish_cells(
    const CriterionInfo* c, Cells cells, int k, double penalty, int max_segments,
    double* objective, Arena* arena, branch_t* branch,
) noexcept nogil:
    """Polish an ordered feature's branches, cell by cell."""
    cdef:
        int n = cells.n_cells, i, start = 0
        double* sums = take_doubles(arena, k * c.n_stats)
        int32_t* n_rows = take_ints(arena, n)
        Segments shape = take_segments(arena, n)
        Axis axis
        Bins bins
        bint changed
    if arena.failed:
        return False
    memset(n_rows, 0, n * sizeof(int32_t))
    bins.n_bins = n
    bins.stats = cells.stats
    bins.n_rows = n_rows
    prepare_scan(c, bins, 1, arena, &axis.scan)
    axis.has_missing = cells.has_missing
    axis.penalty = penalty
    axis.max_segments = max_segments
    take_room_to_polish(&axis, k, arena)
    if arena.failed:
        return False
    for i in range(n):
        if i == 0 or branch[i] != branch[i - 1]:
            shape.branch[shape.n] = branch[i]
            shape.n += 1
        shape.stop[shape.n - 1] = i + 1
    shape.missing = branch[n] if cells.has_missing else 0
    changed = polish_segments(&axis, k, objective, sums, &shape, NULL, arena)
    for i in range(shape.n):
        memset(branch + start, shape.branch[i], shape.stop[i] - start)
        start = shape.stop[i]
    if cells.has_missing:
        branch[n] = shape.missing
    return changed


def polish_branches(Criterion criterion not None, stats, branch, *, int n_branches, double penalty,
                    bint categorical=False, bint has_missing=False, int max_parts=2**30):
    """Polished branches of the cells (the last one being the missing cell) and their objective."""
    cdef:
        const double[:, ::1] s = np.ascontiguousarray(stats, dtype=np.float64)
        branch_t[::1] out
        Cells cells
        Arena arena
        double objective = INFINITY
    polished = np.array(branch, dtype=np.uint8)
    out = polished
    cells.n_cells = s.shape[0] - has_missing
    cells.has_missing = has_missing
    cells.categorical = categorical
    if cells.n_cells < 1 or out.shape[0] != s.shape[0] or s.shape[1] != criterion.info.n_stats:
        raise ValueError("stats must be (n_cells, n_stats) and branch (n_cells,), not empty")
    if not 1 <= n_branches <= 254 or polished.max() >= n_branches:
        raise ValueError("branch must hold values below n_branches, itself at most 254")
    if max_parts < 1:
        raise ValueError("max_parts must be positive")
    cells.stats = &s[0, 0]
    with nogil:
        arena_init(&arena)
        if categorical:
            polish_categories(
                &criterion.info, cells, n_branches, penalty, max_parts, &objective, &arena,
                &out[0])
        else:
            polish_cells(
                &criterion.info, cells, n_branches, penalty, max_parts, &objective, &arena,
                &out[0])
        arena_free(&arena)
    if arena.failed:
        raise MemoryError("no memory to polish")
    return polished, objective
