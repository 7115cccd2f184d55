"""Polish: trade a shape function's impurity against its complexity, cell by cell.

A shape function's complexity is its number of *extra parts*. On an ordered feature these are its
segments beyond the two of a threshold; on a categorical one, the categories beyond the first that
have to be listed, the largest group being "all others". The missing cell is free.
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport uint16_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport (
    Arena, Mark, arena_free, arena_init, arena_mark, arena_release, arena_take, branch_t, must_stop,
    take_branches, take_doubles,
)
from shapetree._core.assignment cimport partition_loss
from shapetree._core.criterion cimport Criterion, CriterionInfo, dot, supergradient, weight_of

cdef enum:
    MAX_ROUNDS = 20


cdef int largest_group(const branch_t* branch, int n, int* size) noexcept nogil:
    """The branch with the most cells, and in `size` how many."""
    cdef:
        int count[256]
        int i, largest = 0
    for i in range(256):
        count[i] = 0
    for i in range(n):
        count[branch[i]] += 1
        if count[branch[i]] > count[largest]:
            largest = branch[i]
    for i in range(256):
        if count[i] > count[largest]:
            largest = i
    size[0] = count[largest]
    return largest


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


cdef void reassign_segments(
    const CriterionInfo* c, Cells cells, int k, double penalty, const double* cost_of,
    double* best, uint16_t* came_from, branch_t* branch,
) noexcept nogil:
    """Viterbi: the cheapest path through the cells, `penalty` for every switch but the first.

    A path is in state b as long as it has stayed in branch b, and in state k + b when it is in
    branch b after a switch. `best` has room for 2 k numbers, `came_from` for 2 k n_cells.
    """
    cdef:
        int i, b, state, first, second, cheapest, n = cells.n_cells
        double cost, least
        double price[256]
    for b in range(k):
        best[b] = 0.0
        best[k + b] = INFINITY
    for i in range(n):
        # The two cheapest paths that have not switched, and the cheapest one that has.
        first = 0
        second = -1
        cheapest = k
        for b in range(1, k):
            if best[b] < best[first]:
                second = first
                first = b
            elif second < 0 or best[b] < best[second]:
                second = b
            if best[k + b] < best[cheapest]:
                cheapest = k + b
        least = best[cheapest] + penalty
        for b in range(k):
            cost = dot(cells.stats + i * c.n_stats, cost_of + b * c.n_stats, c.n_stats)
            # Staying wins ties, for fewer segments.
            came_from[i * 2 * k + k + b] = k + b
            if least < best[k + b]:
                best[k + b] = least
                came_from[i * 2 * k + k + b] = cheapest
            state = first if b != first else second
            if i > 0 and state >= 0 and best[state] < best[k + b]:
                came_from[i * 2 * k + k + b] = state
                best[k + b] = best[state]
            best[k + b] += cost
            price[b] = cost
        for b in range(k):
            best[b] += price[b]
            came_from[i * 2 * k + b] = b
    state = 0
    for b in range(1, 2 * k):
        if best[b] < best[state]:
            state = b
    for i in range(n - 1, -1, -1):
        branch[i] = state % k
        state = came_from[i * 2 * k + state]


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


cdef double penalised_loss(
    const CriterionInfo* c, Cells cells, int k, double penalty, const branch_t* branch, double* sums
) noexcept nogil:
    return (partition_loss(c, cells.stats, branch, cells.n_cells + cells.has_missing, k, sums)
            + penalty * extra_parts(cells, branch))


cdef double polish(
    const CriterionInfo* c, Cells cells, int n_branches, double penalty, Arena* arena,
    branch_t* branch,
) noexcept nogil:
    """Lower impurity + penalty * extra parts in place, round by round; returns it.

    Each round takes the branches' supergradients as the price of every statistic, then solves
    for the cheapest assignment of the cells at these prices. Neither step can raise the objective.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = cells.n_cells, k = n_branches, n_all = cells.n_cells + cells.has_missing
        double* sums = take_doubles(arena, k * c.n_stats)
        double* cost_of = take_doubles(arena, k * c.n_stats)
        double* best = take_doubles(arena, 2 * k)
        uint16_t* came_from = <uint16_t*> arena_take(arena, <size_t> n * k * 2 * sizeof(uint16_t))
        branch_t* trial = take_branches(arena, n_all)
        double objective, trial_objective, tolerance = 0.0
        int b, i, size, default
    if arena.failed:
        return INFINITY
    objective = penalised_loss(c, cells, k, penalty, branch, sums)
    for b in range(k):
        tolerance += 1e-12 * weight_of(c, sums + b * c.n_stats)
    for _ in range(MAX_ROUNDS):
        if must_stop(arena, n):
            break
        for b in range(k):
            supergradient(c, sums + b * c.n_stats, cost_of + b * c.n_stats)
        if cells.categorical:
            default = largest_group(branch, n, &size)
            for i in range(n):
                trial[i] = cheapest_branch(
                    c, cells.stats + i * c.n_stats, k, cost_of, default, penalty
                )
        else:
            reassign_segments(c, cells, k, penalty, cost_of, best, came_from, trial)
        if cells.has_missing:
            trial[n] = cheapest_branch(
                c, cells.stats + n * c.n_stats, k, cost_of, branch[n], 0.0
            )
        trial_objective = penalised_loss(c, cells, k, penalty, trial, sums)
        if not trial_objective < objective - tolerance:
            break
        objective = trial_objective
        memcpy(branch, trial, n_all)
    arena_release(arena, mark)
    return objective


def polish_branches(Criterion criterion not None, stats, branch, *, int n_branches, double penalty,
                    bint categorical=False, bint has_missing=False):
    """Polished branches of the cells (the last one being the missing cell) and their objective."""
    cdef:
        const double[:, ::1] s = np.ascontiguousarray(stats, dtype=np.float64)
        branch_t[::1] out
        Cells cells
        Arena arena
        double objective
    polished = np.array(branch, dtype=np.uint8)
    out = polished
    cells.n_cells = s.shape[0] - has_missing
    cells.has_missing = has_missing
    cells.categorical = categorical
    if cells.n_cells < 1 or out.shape[0] != s.shape[0] or s.shape[1] != criterion.info.n_stats:
        raise ValueError("stats must be (n_cells, n_stats) and branch (n_cells,), not empty")
    if not 1 <= n_branches <= 254 or polished.max() >= n_branches:
        raise ValueError("branch must hold values below n_branches, itself at most 254")
    cells.stats = &s[0, 0]
    with nogil:
        arena_init(&arena)
        objective = polish(&criterion.info, cells, n_branches, penalty, &arena, &out[0])
        arena_free(&arena)
    if arena.failed:
        raise MemoryError("no memory to polish")
    return polished, objective


cdef void find_cheapest_path(
    const double* costs, int n, int k, double penalty, Arena* arena, branch_t* branch
) noexcept nogil:
    """The cheapest path through costs (n x k); every switch but the first costs `penalty`."""
    # A path's cost is the polish's own, with one statistic per cell and branch.
    cdef:
        double* prices = take_doubles(arena, k * k)
        double* best = take_doubles(arena, 2 * k)
        uint16_t* came_from = <uint16_t*> arena_take(arena, <size_t> n * k * 2 * sizeof(uint16_t))
        CriterionInfo c
        Cells cells
        int b
    if arena.failed:
        return
    memset(prices, 0, k * k * sizeof(double))
    for b in range(k):
        prices[b * k + b] = 1.0
    c.n_stats = k
    cells.n_cells = n
    cells.has_missing = False
    cells.categorical = False
    cells.stats = costs
    reassign_segments(&c, cells, k, penalty, prices, best, came_from, branch)


def cheapest_path(costs, double penalty):
    """Branches of the cheapest path through a table of costs (n_cells, n_branches).

    Every switch of branch but the first costs `penalty`.
    """
    cdef:
        const double[:, ::1] table = np.ascontiguousarray(costs, dtype=np.float64)
        int n = table.shape[0], k = table.shape[1]
        branch_t[::1] branch
        Arena arena
    if n == 0 or not 1 <= k <= 254:
        raise ValueError("costs must be (n_cells, n_branches), not empty")
    out = np.empty(n, dtype=np.uint8)
    branch = out
    with nogil:
        arena_init(&arena)
        find_cheapest_path(&table[0, 0], n, k, penalty, &arena, &branch[0])
        arena_free(&arena)
    if arena.failed:
        raise MemoryError("no memory to find a path")
    return out
