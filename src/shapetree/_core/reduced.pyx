"""The reduced problem of one node: the shape function whose rows lose least below its branches.

A histogram tells for every bin what its rows would lose in branch 1, 2, .. beyond branch 0. The
best shape function of a feature is then the cheapest path through its bins (or the cheapest choice
for each category), extra parts being charged as in `shapetree._core.polish`.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from shapetree._core.arena cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, branch_t, must_stop, take_branches,
    take_doubles, take_ints,
)
from shapetree._core.polish cimport Cells, extra_parts, find_cheapest_path

cdef enum:
    NO_BRANCH = 255

ctypedef struct Problem:
    # What holds for all features of a node.
    int n_branches
    int max_segments
    double segment_penalty
    double category_penalty
    double bound             # a feature that cannot cost less is passed over


cdef void limited_path(
    const double* cost, int n, int k, int max_segments, double penalty, Arena* arena,
    branch_t* branch,
) noexcept nogil:
    """The cheapest path of at most so many segments, those beyond two at a price.

    State (s, b): in branch b, after s switches.
    """
    cdef:
        Py_ssize_t n_states = <Py_ssize_t> max_segments * k, state, other, cheapest
        int i, s, b
        double* best = take_doubles(arena, n_states)
        double* before = take_doubles(arena, n_states)
        int32_t* came_from = take_ints(arena, <size_t> n * n_states)
        double least
    if arena.failed:
        return
    for state in range(n_states):
        best[state] = cost[state] if state < k else INFINITY
    for i in range(1, n):
        memcpy(before, best, n_states * sizeof(double))
        for s in range(max_segments):
            for b in range(k):
                state = s * k + b
                cheapest = state
                least = before[state]
                if s > 0:
                    for other in range((s - 1) * k, s * k):
                        if other != state - k and (
                                before[other] + (penalty if s > 1 else 0.0) < least):
                            cheapest = other
                            least = before[other] + (penalty if s > 1 else 0.0)
                best[state] = least + cost[i * k + b]
                came_from[i * n_states + state] = cheapest
    state = 0
    for other in range(1, n_states):
        if best[other] < best[state]:
            state = other
    for i in range(n - 1, -1, -1):
        branch[i] = state % k
        if i > 0:
            state = came_from[i * n_states + state]


cdef void cheapest_segments(
    const double* cost, int n, const Problem* problem, Arena* arena, branch_t* branch
) noexcept nogil:
    cdef:
        int k = problem.n_branches
        Cells cells
    find_cheapest_path(cost, n, k, problem.segment_penalty, arena, branch)
    cells.n_cells = n
    cells.categorical = False
    if arena.failed:
        return
    if extra_parts(cells, branch) + 2 > problem.max_segments and problem.max_segments < n:
        # Only now is it worth to count the segments on the way.
        limited_path(cost, n, k, problem.max_segments, problem.segment_penalty, arena, branch)


cdef void cheapest_listing(
    const double* cost, int n, const Problem* problem, Arena* arena, branch_t* branch
) noexcept nogil:
    """The cheapest branches of categories, if those of one branch need not be listed.

    Each branch is tried for the one whose categories are "all others"; the first category that has
    to be listed is free.
    """
    cdef:
        int k = problem.n_branches, i, b, default, choice, n_listed, wish
        branch_t* trial = take_branches(arena, n)
        double total, least = INFINITY, saving, greatest
    if arena.failed:
        return
    for default in range(k):
        total = 0.0
        n_listed = 0
        wish = -1
        greatest = 0.0
        for i in range(n):
            choice = default
            for b in range(k):
                if cost[i * k + b] < cost[i * k + choice]:
                    choice = b
            saving = cost[i * k + default] - cost[i * k + choice]
            if saving > problem.category_penalty:
                n_listed += 1
                total += cost[i * k + choice]
            else:
                if saving > greatest:
                    greatest = saving
                    wish = i
                total += cost[i * k + default]
                choice = default
            trial[i] = choice
        if n_listed > 0:
            total += problem.category_penalty * (n_listed - 1)
        elif wish >= 0:
            for b in range(k):
                if cost[wish * k + b] < cost[wish * k + trial[wish]]:
                    trial[wish] = b
            total -= greatest
        if total < least:
            least = total
            memcpy(branch, trial, n)


cdef double solve_feature(
    const double* histogram, int n_bins, bint categorical, const Problem* problem, Arena* arena,
    uint8_t* branch_of_bin,
) noexcept nogil:
    """Write the feature's cheapest shape function; returns what it costs beyond branch 0."""
    cdef:
        Mark mark = arena_mark(arena)
        int k = problem.n_branches, n_channels = k, i, b, n = 0, choice
        double* cost = take_doubles(arena, <size_t> (n_bins + 1) * k)
        branch_t* branch = take_branches(arena, n_bins)
        const double* cell
        double total, least, bound = 0.0
        Cells cells
    if arena.failed or must_stop(arena, n_bins):
        return INFINITY
    # Bins with rows that care, side by side; then, at their end, the missing values.
    for i in range(n_bins + 1):
        cell = histogram + <Py_ssize_t> i * n_channels
        branch_of_bin[i] = NO_BRANCH
        if cell[0] == 0.0 and i < n_bins:
            continue
        cost[n * k] = least = 0.0
        for b in range(1, k):
            cost[n * k + b] = cell[b]
            if cell[b] < least:
                least = cell[b]
        bound += least
        n += i < n_bins
    if n == 0 or not bound < problem.bound:
        arena_release(arena, mark)
        return INFINITY
    if categorical:
        cheapest_listing(cost, n, problem, arena, branch)
    else:
        cheapest_segments(cost, n, problem, arena, branch)
    if arena.failed:
        return INFINITY
    total = 0.0
    for i in range(n):
        total += cost[i * k + branch[i]]
    cells.n_cells = n
    cells.categorical = categorical
    total += (problem.category_penalty if categorical else problem.segment_penalty) * (
        extra_parts(cells, branch))
    choice = 0
    for b in range(1, k):
        if cost[n * k + b] < cost[n * k + choice]:
            choice = b
    total += cost[n * k + choice]
    n = 0
    for i in range(n_bins):
        if histogram[<Py_ssize_t> i * n_channels] != 0.0:
            branch_of_bin[i] = branch[n]
            n += 1
    if histogram[<Py_ssize_t> n_bins * n_channels] != 0.0:
        branch_of_bin[n_bins] = choice
    arena_release(arena, mark)
    return total


def cheapest_shapes(
    const double[:, ::1] histogram not None,   # IN: (offsets[-1], n_branches) rows, then losses
    const int64_t[::1] offsets not None,       # IN: (n_features + 1,)
    const uint8_t[::1] categorical not None,   # IN: (n_features,)
    double[::1] costs not None,                # OUT: (n_features,)
    uint8_t[::1] branch_of_bin not None,       # OUT: (offsets[-1],)
    *,
    double segment_penalty, double category_penalty, int max_segments, double bound, int n_threads,
):
    """Find every feature's cheapest shape function.

    The histogram has the number of rows that care in its first channel, and what they lose in
    branch 1, 2, .. beyond branch 0 in the others. A feature's cost is what its shape function loses
    beyond branch 0, with penalties; infinite where it cannot be below `bound`. Bins without rows
    that care get no branch (255).
    """
    cdef:
        int f, n_features = categorical.shape[0]
        Problem problem
        Arenas arenas
    problem.n_branches = histogram.shape[1]
    problem.max_segments = max_segments
    problem.segment_penalty = segment_penalty
    problem.category_penalty = category_penalty
    problem.bound = bound
    if not 2 <= problem.n_branches <= 254 or max_segments < 1 or n_threads < 1:
        raise ValueError("n_branches, max_segments or n_threads out of range")
    if not (segment_penalty >= 0.0 and category_penalty >= 0.0):
        raise ValueError("penalties must not be negative")
    starts = np.asarray(offsets)
    if offsets.shape[0] != n_features + 1 or offsets[0] != 0 or (
            np.any(np.diff(starts) < 1) or np.any(np.diff(starts) > 2**31 - 2)
            or offsets[n_features] != histogram.shape[0]):
        raise ValueError("offsets must tell where the histogram's features start")
    if costs.shape[0] != n_features or branch_of_bin.shape[0] != histogram.shape[0]:
        raise ValueError("the results' shapes do not fit the histogram")
    if n_features == 0:
        return
    n_threads = min(n_threads, n_features)
    arenas = Arenas(n_threads)
    for f in prange(n_features, nogil=True, num_threads=n_threads, schedule="dynamic"):
        costs[f] = solve_feature(
            &histogram[offsets[f], 0], <int> (offsets[f + 1] - offsets[f] - 1), categorical[f],
            &problem, &arenas.of_thread[threadid()], &branch_of_bin[offsets[f]])
    arenas.finish()
