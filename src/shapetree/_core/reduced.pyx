"""The reduced problem of a node: the shape function whose rows lose least below its branches.

*Cells* are bins that hold rows of the care set; each tells what its rows would lose in branch 1, 2,
.. beyond branch 0. The best shape function of a feature is then the cheapest path through its cells
(or the cheapest choice for each category), extra parts being charged as in
`shapetree._core.polish`.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from shapetree._core.polish cimport Cells, extra_parts, find_cheapest_path
from shapetree._core.threads cimport (
    NO_BRANCH, Arena, Arenas, Mark, arena_mark, arena_release, branch_t, must_stop, take_branches,
    take_doubles, take_ints,
)

cdef extern from "parting.h":
    double parting_of_bins(
        const double* low, const double* high, Py_ssize_t below, Py_ssize_t above
    ) noexcept nogil

# What sums may be off by, as a share of them.
cdef double ROUNDING = 1e-12

# Objectives that differ by less are equal: as a share of the rows' price, and, where they lose
# next to nothing, of what they might lose.
cdef double TOLERANCE = 1e-10
cdef double ROUNDING_OF_LOSSES = 1e-12

ctypedef struct Problem:
    # A node's cells by one feature, and what its shape function may be.
    #
    #     bin_of_cell    0     3     4     9    missing       bins with rows that care
    #     losses       l1 l2 l1 l2 l1 l2 l1 l2  l1 l2         in branch 1, 2 beyond branch 0
    #     branch         0     0     2     2      1           the cheapest path: what its cells
    #                                                         lose, and prices of extra parts
    const int32_t* bin_of_cell
    const double* losses     # n_cells x n_others
    int n_cells
    int n_bins               # without the missing one
    bint categorical
    int n_branches
    int n_others             # branches beyond the first that cells have losses of
    int max_segments
    int max_listed           # categories outside the branch of "all others"
    double segment_penalty
    double category_penalty


cdef void cheapest_listing(
    const double* cost, int n, const Problem* problem, Arena* arena, branch_t* branch
) noexcept nogil:
    """The cheapest branches of categories, if those of one branch need not be listed.

    Each branch is tried for the one whose categories are "all others". A category is listed if that
    saves more than its price, the first one for free; if too many do, those that save most.
    """
    cdef:
        int k = problem.n_branches, i, b, default, n_listed, n_equal
        branch_t* trial = take_branches(arena, n)
        double* saving = take_doubles(arena, n)
        double* ranked = take_doubles(arena, n)
        double total, least = INFINITY, threshold
    if arena.failed:
        return
    for default in range(k):
        total = 0.0
        for i in range(n):
            trial[i] = default
            for b in range(k):
                if cost[i * k + b] < cost[i * k + trial[i]]:
                    trial[i] = b
            saving[i] = cost[i * k + default] - cost[i * k + trial[i]]
            ranked[i] = saving[i]
            total += cost[i * k + default]
        sort_descending(ranked, n)
        n_listed = 0
        while n_listed < min(n, problem.max_listed) and ranked[n_listed] > (
                problem.category_penalty if n_listed > 0 else 0.0):
            n_listed += 1
        # Of categories that save as much as the last one listed, the first are listed as well.
        threshold = ranked[n_listed - 1] if n_listed > 0 else INFINITY
        n_equal = n_listed
        for i in range(n_listed):
            n_equal -= ranked[i] > threshold
        for i in range(n):
            if saving[i] > threshold or (saving[i] == threshold and n_equal > 0):
                n_equal -= saving[i] == threshold
                total -= saving[i]
            else:
                trial[i] = default
        if n_listed > 1:
            total += problem.category_penalty * (n_listed - 1)
        if total < least:
            least = total
            memcpy(branch, trial, n)


cdef void sort_descending(double* values, int n) noexcept nogil:
    """Shell sort."""
    cdef int gap = 1, i, j
    cdef double value
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


cdef inline int ranking(const double* lost, int k) noexcept nogil:
    """Which branches a cell likes better than which; 0 if that is not told, or not strict."""
    if k == 2:
        return (1 if lost[0] < 0.0 else 2) if lost[0] != 0.0 else 0
    if k == 3 and lost[0] != 0.0 and lost[1] != 0.0 and lost[0] != lost[1]:
        return 1 + (lost[0] < 0.0) + 2 * (lost[1] < 0.0) + 4 * (lost[0] < lost[1])
    return 0


cdef int join_cells(
    const Problem* problem, int n, double* cost, int32_t* run
) noexcept nogil:
    """Costs of the cells, neighbours that rank the branches alike as one run; returns the runs.

    Between two such neighbours no cheapest path switches: to switch earlier or later costs less.
    """
    cdef:
        int k = problem.n_branches, i, b, n_runs = 0, before = 0, now = 0
        const double* cell
        double* here = cost
    for i in range(n):
        cell = problem.losses + <Py_ssize_t> i * problem.n_others
        if not problem.categorical:
            now = ranking(cell, k)
        if now != 0 and now == before:
            for b in range(1, k):
                here[b] += cell[b - 1]
        else:
            here = cost + n_runs * k
            here[0] = 0.0
            for b in range(1, k):
                here[b] = cell[b - 1]
            n_runs += 1
        before = now
        run[i] = n_runs - 1
    return n_runs


cdef inline int favourite_of(
    const double* lost, int k, double* least, double* regret
) noexcept nogil:
    """Where a cell loses least, how much, and how much more in the next best branch."""
    cdef:
        int b, favourite = 0
        double first = 0.0, second = INFINITY, low, high
    if k == 3:
        low = lost[0] if lost[0] < lost[1] else lost[1]
        high = lost[1] if lost[0] < lost[1] else lost[0]
        least[0] = low if low < 0.0 else 0.0
        second = 0.0 if low < 0.0 else low
        regret[0] = (high if high < second else second) - least[0]
        return (1 if lost[0] < lost[1] else 2) if low < 0.0 else 0
    for b in range(1, k):
        if lost[b - 1] < first:
            second = first
            first = lost[b - 1]
            favourite = b
        elif lost[b - 1] < second:
            second = lost[b - 1]
    least[0] = first
    regret[0] = second - first
    return favourite


cdef double sum_of_least(const Problem* problem) noexcept nogil:
    """What all cells lose in their favourite branches."""
    cdef:
        Py_ssize_t i
        int b, k = problem.n_branches, n_others = problem.n_others, n_cells = problem.n_cells
        const double* losses = problem.losses
        double low, total = 0.0
    if k == 3 and n_others == 2:
        for i in range(n_cells):
            low = losses[2 * i] if losses[2 * i] < losses[2 * i + 1] else losses[2 * i + 1]
            total += low if low < 0.0 else 0.0
        return total
    for i in range(n_cells):
        low = 0.0
        for b in range(k - 1):
            low = losses[i * n_others + b] if losses[i * n_others + b] < low else low
        total += low
    return total


cdef double least_cost(const Problem* problem, double bound, int n_known) noexcept nogil:
    """A bound that no shape function costs less than, or so much of it as is above the one given.

    Cells lose no less than in their favourite branches. On an ordered feature, two cells with
    different favourites either have a switch between them, or one of them is not in its favourite.
    What that costs adds up over pairs of cells that do not overlap; one switch is free.
    """
    cdef:
        Py_ssize_t i
        int favourite, waiting_for = -1, k = problem.n_branches
        double least, regret, waiting = 0.0, penalty = problem.segment_penalty
        double price = -penalty, total = sum_of_least(problem)
        # What rounding may be in the way of.
        double enough = bound - total + 2 * ROUNDING * (
            fabs(total) + fabs(bound) + penalty)
    if problem.categorical or not total < bound:
        return total
    for i in range(n_known):
        favourite = favourite_of(
            problem.losses + i * problem.n_others, k, &least, &regret)
        if waiting_for < 0:
            waiting = regret
            waiting_for = favourite
        elif favourite == waiting_for:
            waiting = regret if regret > waiting else waiting
        else:
            waiting = regret if regret < waiting else waiting
            price += penalty if penalty < waiting else waiting
            if price > enough:
                break
            waiting_for = -1
    if not price > 0.0:
        return total
    return total + price - ROUNDING * (fabs(total) + price + penalty)


cdef double solve_feature(
    const Problem* problem, double bound, Arena* arena, branch_t* branch_of_cell
) noexcept nogil:
    """What the cheapest shape function costs beyond branch 0; infinite if not less than the bound.

    Cells get their branches, unless there is no room for these (NULL).
    """
    cdef:
        Mark mark = arena_mark(arena)
        int k = problem.n_branches, n_cells = problem.n_cells, i, b, n, missing_branch = 0
        bint has_missing = n_cells > 0 and problem.bin_of_cell[n_cells - 1] == problem.n_bins
        bint categorical = problem.categorical
        int n_known = n_cells - has_missing
        double* cost
        int32_t* run
        branch_t* branch
        const double* cell
        double total, least
        Cells cells
    if n_known == 0 or not least_cost(problem, bound, n_known) < bound:
        return INFINITY
    cost = take_doubles(arena, <size_t> n_known * k)
    run = take_ints(arena, n_known)
    branch = take_branches(arena, n_known)
    if arena.failed or must_stop(arena, n_known):
        return INFINITY
    n = join_cells(problem, n_known, cost, run)
    if categorical:
        cheapest_listing(cost, n, problem, arena, branch)
    else:
        find_cheapest_path(
            cost, n, k, problem.segment_penalty, problem.max_segments, arena, branch)
    if arena.failed:
        return INFINITY
    total = 0.0
    for i in range(n):
        total += cost[i * k + branch[i]]
    cells.n_cells = n
    cells.categorical = categorical
    total += (problem.category_penalty if categorical else problem.segment_penalty) * (
        extra_parts(cells, branch))
    if has_missing:
        cell = problem.losses + <Py_ssize_t> n_known * problem.n_others
        least = 0.0
        for b in range(1, k):
            if cell[b - 1] < least:
                least = cell[b - 1]
                missing_branch = b
        total += least
    if branch_of_cell != NULL:
        for i in range(n_known):
            branch_of_cell[i] = branch[run[i]]
        if has_missing:
            branch_of_cell[n_known] = missing_branch
    arena_release(arena, mark)
    return total


cdef int check_problem(const Problem* problem) except -1:
    if not 2 <= problem.n_branches <= problem.n_others + 1 <= 254 or (
            problem.max_segments < 1 or problem.max_listed < 1):
        raise ValueError("n_branches, max_segments or max_listed out of range")
    if not (problem.segment_penalty >= 0.0 and problem.category_penalty >= 0.0):
        raise ValueError("penalties must not be negative")
    return 0


cdef class ReducedSearch:
    """Finds the cheapest shape functions of nodes, once it is known what their cells lose.

    Parameters
    ----------
    n_bins : int64 array (n_features,)
        Without the missing bin.
    categorical : uint8 array (n_features,)
    choice_shares : array (n_features,)
        What choosing a feature costs, in units of what a part costs.
    order : int32 array (n_features,)
        Which of equally good features comes first.
    category_share : float
        What a category that has to be listed costs, in the same units.
    max_segments, max_listed : int
    """

    cdef const int64_t[::1] n_bins
    cdef const uint8_t[::1] categorical
    cdef const double[::1] choice_shares
    cdef const int32_t[::1] order
    cdef double category_share
    cdef int max_segments
    cdef int max_listed

    def __init__(
        self, const int64_t[::1] n_bins not None, const uint8_t[::1] categorical not None,
        const double[::1] choice_shares not None, const int32_t[::1] order not None,
        double category_share, int max_segments, int max_listed,
    ):
        cdef Py_ssize_t f, n_features = n_bins.shape[0]
        if not n_features == categorical.shape[0] == choice_shares.shape[0] == order.shape[0]:
            raise ValueError("features lack what they need")
        for f in range(n_features):
            if not 0 <= n_bins[f] < 2**31 - 1 or not 0 <= order[f] < n_features:
                raise ValueError("n_bins or order out of range")
        self.n_bins, self.categorical, self.order = n_bins, categorical, order
        self.choice_shares, self.category_share = choice_shares, category_share
        self.max_segments, self.max_listed = max_segments, max_listed

    cdef Problem problem_of(self, Py_ssize_t feature, int n_branches, double unit):
        """What is known of a node's problem by one feature, but for its cells."""
        cdef Problem problem
        problem.n_cells = 0
        problem.n_bins = <int> self.n_bins[feature]
        problem.categorical = self.categorical[feature]
        problem.n_branches = n_branches
        problem.max_segments = self.max_segments
        problem.max_listed = self.max_listed
        problem.category_penalty = unit * self.category_share
        return problem

    def costs(
        self,
        cells,                                         # IN: starts, n_cells, bin_of_cell, losses
        const int32_t[::1] n_branches not None,        # IN: (n_nodes,)
        const double[::1] bounds not None,             # IN: (n_nodes,)
        const double[::1] segment_penalties not None,  # IN: (n_nodes,) for each beyond two
        double unit,                                   # IN: what a part costs
        bint only_best, int n_threads,
    ):
        """What every feature's cheapest shape function costs, for each of some nodes.

        The cells of a node and feature are its bins with rows that care: n_cells[node, feature] of
        them, from starts[node, feature] on. They tell what these rows lose in branch 1, 2, ..
        beyond branch 0. A feature's cost is what its shape function loses beyond branch 0, with
        penalties; infinite where it cannot be below the node's bound or, if `only_best`, is above
        the cost of another feature.

        Returns an array (n_nodes, n_features), and a list of each node's least cost or bound.
        """
        cdef:
            const int64_t[:, ::1] starts = cells[0]
            const int32_t[:, ::1] n_cells = cells[1]
            const int32_t[::1] bin_of_cell = cells[2]
            const double[:, ::1] losses = cells[3]
            Py_ssize_t task, n_tasks, n_nodes = n_branches.shape[0], node, f, place, n_places
            Py_ssize_t n_features = self.n_bins.shape[0]
            Problem* problems
            Problem* problem
            Arenas arenas
            double choice
            double[:, ::1] costs
            double[::1] least
        if starts is None or n_cells is None or bin_of_cell is None or losses is None:
            raise TypeError("nodes need their cells")
        if n_threads < 1 or not (
                bounds.shape[0] == segment_penalties.shape[0] == starts.shape[0] == n_nodes):
            raise ValueError("n_threads is out of range, or nodes lack what they need")
        if starts.shape[1] != n_features or n_cells.shape[0] != n_nodes or (
                n_cells.shape[1] != n_features or losses.shape[0] != bin_of_cell.shape[0]):
            raise ValueError("the cells' arrays differ in their shapes")
        for node in range(n_nodes):
            for f in range(n_features):
                if n_cells[node, f] < 0 or not (
                        0 <= starts[node, f] <= bin_of_cell.shape[0] - n_cells[node, f]):
                    raise ValueError("starts must tell where the cells are")
        result = np.full((n_nodes, n_features), INFINITY)
        costs = result
        lowest = np.array(bounds)
        least = lowest
        if n_nodes == 0 or n_features == 0 or bin_of_cell.shape[0] == 0:
            return result, lowest.tolist()
        n_threads = min(n_threads, n_nodes * n_features)
        arenas = Arenas(n_threads)
        problems = <Problem*> calloc(n_nodes * n_features, sizeof(Problem))
        if problems == NULL:
            raise MemoryError("no memory for reduced problems")
        try:
            for node in range(n_nodes):
                for f in range(n_features):
                    problem = &problems[node * n_features + f]
                    problem[0] = self.problem_of(f, n_branches[node], unit)
                    problem.bin_of_cell = &bin_of_cell[0] + starts[node, f]
                    problem.losses = &losses[0, 0] + starts[node, f] * losses.shape[1]
                    problem.n_cells = n_cells[node, f]
                    problem.n_others = <int> losses.shape[1]
                    problem.segment_penalty = segment_penalties[node]
                    check_problem(problem)
            # A node's features one after another, if those that cannot be the best are passed over.
            n_places = n_features if only_best else 1
            n_tasks = n_nodes * n_features // n_places
            for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                for place in range(task * n_places, (task + 1) * n_places):
                    node = place // n_features
                    f = self.order[place % n_features]
                    choice = unit * self.choice_shares[f]
                    costs[node, f] = choice + solve_feature(
                        &problems[node * n_features + f],
                        (least[node] if only_best else bounds[node]) - choice,
                        &arenas.of_thread[threadid()], NULL)
                    if only_best and costs[node, f] < least[node]:
                        least[node] = costs[node, f]
        finally:
            free(problems)
        arenas.finish()
        return result, np.minimum(lowest, result.min(axis=1)).tolist()

    def shape(
        self,
        int feature,
        const int32_t[::1] bin_of_cell not None,       # IN: (n_cells,) ascending
        const double[:, ::1] losses not None,          # IN: (n_cells, n_others)
        int n_branches, double segment_penalty, double unit,
    ):
        """The cheapest shape function of one node and feature, see `costs`.

        Returns
        -------
        branch_of_bin : uint8 array (n_bins + 1,)
            Bins without rows that care go where the nearest bin with such rows goes, categories
            where most categories go.
        lost : list
            What the rows of each branch lose beyond branch 0.
        n_cells : list
            Cells of each branch.
        """
        cdef:
            Problem problem
            Arenas arenas = Arenas(1)
            int n_cells = bin_of_cell.shape[0], n_bins, i, b
            uint8_t[::1] branch, branch_of_cell
            double lost[256]
            int n_of_branch[256]
        if not 0 <= feature < self.n_bins.shape[0]:
            raise ValueError("there is no such feature")
        problem = self.problem_of(feature, n_branches, unit)
        problem.n_cells = n_cells
        problem.n_others = <int> losses.shape[1]
        problem.segment_penalty = segment_penalty
        check_problem(&problem)
        n_bins = problem.n_bins
        if losses.shape[0] != n_cells:
            raise ValueError("there are cells without losses")
        for i in range(n_cells):
            if not (bin_of_cell[i - 1] if i > 0 else -1) < bin_of_cell[i] <= n_bins:
                raise ValueError("cells must be bins, in ascending order")
        result = np.empty(n_bins + 1, dtype=np.uint8)
        branch = result
        branch_of_cell = np.empty(n_cells + 1, dtype=np.uint8)
        memset(&branch[0], NO_BRANCH, n_bins + 1)
        memset(&branch_of_cell[0], NO_BRANCH, n_cells + 1)
        if n_cells:
            problem.bin_of_cell = &bin_of_cell[0]
            problem.losses = &losses[0, 0]
            with nogil:
                solve_feature(&problem, INFINITY, arenas.of_thread, &branch_of_cell[0])
        arenas.finish()
        memset(lost, 0, sizeof(lost))
        memset(n_of_branch, 0, sizeof(n_of_branch))
        for i in range(n_cells):
            b = branch_of_cell[i]
            branch[bin_of_cell[i]] = b
            if b != NO_BRANCH:
                lost[b] += losses[i, b - 1] if b > 0 else 0.0
                n_of_branch[b] += 1
        fill_gaps_of(&branch[0], n_bins, problem.categorical)
        return (result, [lost[b] for b in range(n_branches)],
                [n_of_branch[b] for b in range(n_branches)])


def fill_gaps(uint8_t[::1] branch_of_bin not None, bint categorical):
    """Give bins without rows a branch, in place: that of the nearest bin, or of most categories.

    The missing bin comes last.
    """
    if branch_of_bin.shape[0] == 0:
        raise ValueError("there is at least the missing bin")
    fill_gaps_of(&branch_of_bin[0], <int> branch_of_bin.shape[0] - 1, categorical)


cdef void fill_gaps_of(uint8_t* branch, int n_bins, bint categorical) noexcept nogil:
    cdef:
        int i, j, first, below = -1, above, most = 0
        int count[256]
    if categorical:
        memset(count, 0, sizeof(count))
        for i in range(n_bins):
            count[branch[i]] += branch[i] != NO_BRANCH
        for i in range(NO_BRANCH):
            if count[i] > count[most]:
                most = i
        for i in range(n_bins + 1):
            if branch[i] == NO_BRANCH:
                branch[i] = most
        return
    first = 0
    while first < n_bins and branch[first] == NO_BRANCH:
        first += 1
    if first == n_bins:
        # No bin has rows that care.
        memset(branch, 0 if branch[n_bins] == NO_BRANCH else branch[n_bins], n_bins + 1)
        return
    if branch[n_bins] == NO_BRANCH:
        branch[n_bins] = branch[first]
    for i in range(first):
        branch[i] = branch[first]
    below = first
    i = first + 1
    while i < n_bins:
        if branch[i] != NO_BRANCH:
            below = i
            i += 1
            continue
        above = i
        while above < n_bins and branch[above] == NO_BRANCH:
            above += 1
        for j in range(i, above):
            # Of two that are equally near, the lower one.
            branch[j] = branch[below] if above == n_bins or j - below <= above - j else (
                branch[above])
        i = above


def count_extra_parts(const uint8_t[::1] branch_of_bin not None, bint categorical):
    """Segments beyond two, or categories beyond the first to be listed; the last bin is missing."""
    cdef Cells cells
    if branch_of_bin.shape[0] < 2:
        return 0
    cells.n_cells = branch_of_bin.shape[0] - 1
    cells.categorical = categorical
    return extra_parts(cells, &branch_of_bin[0])


def settle_empty_bins(
    const uint8_t[::1] branch_of_bin not None,     # IN: (n_bins + 1,)
    const int64_t[::1] n_rows,                     # IN: (n_bins + 1,) the node's rows, or None
    low, high,                                     # IN: (n_bins,) bounds of bins, None: categories
    int largest_branch,                            # IN
):
    """Send bins without rows where the finished shape function will send their values.

    A threshold parts neighbouring bins with rows; a bin goes where its smallest value goes.
    Missing values go to the largest branch if no row lacks the feature. Categories without rows
    keep the branch that they have. If numbers of rows are not told, bins without a branch are those
    that hold none.

    Returns the new branches, or None if they are the old ones.
    """
    cdef:
        Py_ssize_t n_bins = branch_of_bin.shape[0] - 1, i
        uint8_t[::1] branch
        const double[::1] lows, highs
    if n_bins < 0 or not 0 <= largest_branch < NO_BRANCH or (
            n_rows is not None and n_rows.shape[0] != n_bins + 1):
        raise ValueError("each bin needs a branch and a number of rows")
    result = np.empty(n_bins + 1, dtype=np.uint8)
    branch = result
    memcpy(&branch[0], &branch_of_bin[0], n_bins + 1)
    if branch[n_bins] == NO_BRANCH if n_rows is None else n_rows[n_bins] == 0:
        branch[n_bins] = largest_branch
    if low is None:
        for i in range(n_bins):
            if branch[i] == NO_BRANCH:
                branch[i] = largest_branch
    else:
        lows, highs = low, high
        if lows.shape[0] != n_bins or highs.shape[0] != n_bins:
            raise ValueError("each bin needs its bounds")
        settle_between(
            &branch[0], NULL if n_rows is None else &n_rows[0], n_bins, lows, highs)
    for i in range(n_bins + 1):
        if branch[i] != branch_of_bin[i]:
            return result
    return None


cdef void settle_between(
    uint8_t* branch, const int64_t* n_rows, Py_ssize_t n_bins, const double[::1] low,
    const double[::1] high,
) noexcept nogil:
    cdef:
        Py_ssize_t i, j, below = -1
        double threshold
    for i in range(n_bins):
        if branch[i] == NO_BRANCH if n_rows == NULL else n_rows[i] == 0:
            continue
        if below < 0:
            for j in range(i):
                branch[j] = branch[i]
        elif branch[i] == branch[below]:
            for j in range(below + 1, i):
                branch[j] = branch[below]
        elif i > below + 1:
            threshold = parting_of_bins(&low[0], &high[0], below, i)
            for j in range(below + 1, i):
                branch[j] = branch[below] if low[j] <= threshold else branch[i]
        below = i
    if below >= 0:
        for j in range(below + 1, n_bins):
            branch[j] = branch[below]


# --- what a new shape function must beat ---------------------------------------------------------

cdef class ReducedProblem:
    """One node's reduced problem.

    Attributes
    ----------
    number : int
        Of the node.
    n_rows, n_care : int
        The node's rows, and those of them for which branches differ.
    n_branches : int
    below : list of float
        What the parts and leaves that each branch leads to cost, in penalty units.
    first : float
        Loss of all rows in branch 0.
    price : float
        Loss that a penalty of 1 is worth.
    part_penalty, leaf_penalty : float
        What a segment beyond two, and a branch beyond the first, costs here.
    tolerance : float
        Objectives that differ by less are equal.
    to_beat : float
        Objective of the tree from the node on that a new split must be below.
    bound : float
        The same, less what all rows lose in branch 0, and what no split among all branches can
        change.
    may_improve : bool
        Whether a split would be good enough that sends every row where it loses least.
    only_branch : int
        The branch that may take the node's place, as the tree is no worse then; -1 for none.
    """

    cdef readonly int number
    cdef readonly int64_t n_rows
    cdef readonly int64_t n_care
    cdef readonly int n_branches
    cdef readonly list below
    cdef readonly double first
    cdef readonly double price
    cdef readonly double part_penalty
    cdef readonly double leaf_penalty
    cdef readonly double tolerance
    cdef readonly double to_beat
    cdef readonly double bound
    cdef readonly bint may_improve
    cdef readonly int only_branch

    def objective(self, double penalty, list losses, list counts):
        """Objective with another split; branches that no row takes are as good as gone.

        Parameters
        ----------
        penalty : float
            What the parts of the split beyond those of CART's cost.
        losses : list of float
            What the rows of each branch lose beyond branch 0.
        counts : list of int
            Rows of each branch, or anything else that is 0 without any.
        """
        used = [branch for branch, count in enumerate(counts) if count > 0]
        loss = self.first + sum([losses[branch] for branch in used if branch > 0])
        penalty += self.leaf_penalty * (len(used) - 1)
        return loss + self.price * (penalty + sum([self.below[branch] for branch in used]))


cdef class ReducedProblems:
    """The reduced problems of some nodes of one level.

    Attributes
    ----------
    each : list of ReducedProblem
    are_open : bool
        Whether any may be improved by a split on a single feature.
    wanted : uint8 array (n_nodes,)
        Which may.
    n_branches : int32 array (n_nodes,)
    bounds, segment_penalties : arrays (n_nodes,)
        What its split must cost less than, and what a segment beyond two costs.
    """

    cdef readonly list each
    cdef readonly bint are_open
    cdef readonly object wanted
    cdef readonly object n_branches
    cdef readonly object bounds
    cdef readonly object segment_penalties


def reduced_problems(
    list nodes not None,                   # IN: numbers of nodes
    list children not None,                # IN: nodes that their branches lead to, a list for each
    list part_penalties not None,          # IN: what a segment beyond two costs in each
    list penalties not None,               # IN: what all costs from every node of the tree on
    list sizes not None,                   # IN: rows of every node of the tree
    losses,                                # IN: sums, n_care, least, see `RoutedRows.branch_losses`
    double price,                          # IN: loss that a penalty of 1 is worth
    double leaf_penalty,                   # IN: what a branch beyond the first costs
):
    """The reduced problems of some nodes of one level."""
    cdef:
        const double[:, ::1] sums = losses[0]
        const int64_t[::1] n_care = losses[1]
        const double[::1] least = losses[2]
        Py_ssize_t i, n_nodes = len(nodes)
        int b
        ReducedProblems problems = ReducedProblems.__new__(ReducedProblems)
        ReducedProblem problem
        double present, alone, best = 0.0, most = 0.0, complexity
        list branches
        uint8_t[::1] wanted
        int32_t[::1] n_branches
        double[::1] bounds, segment_penalties
    if sums is None or n_care is None or least is None:
        raise TypeError("nodes need their losses")
    if not (len(children) == len(part_penalties) == sums.shape[0] == n_care.shape[0]
            == least.shape[0] == n_nodes):
        raise ValueError("every node needs its children and its losses")
    problems.each = []
    problems.wanted = wanted = np.empty(n_nodes, dtype=np.uint8)
    problems.n_branches = n_branches = np.empty(n_nodes, dtype=np.int32)
    problems.bounds = bounds = np.empty(n_nodes)
    problems.segment_penalties = segment_penalties = np.empty(n_nodes)
    for i in range(n_nodes):
        branches = children[i]
        problem = ReducedProblem.__new__(ReducedProblem)
        problem.number = nodes[i]
        if not 0 <= problem.number < min(len(sizes), len(penalties)):
            raise IndexError(f"there is no node {problem.number}")
        problem.n_rows = sizes[problem.number]
        problem.n_care = n_care[i]
        problem.n_branches = len(branches)
        if not 1 <= problem.n_branches < sums.shape[1]:
            raise ValueError("every branch needs its losses")
        problem.below = [penalties[child] for child in branches]
        problem.first = sums[i, 1]
        problem.price = price
        problem.part_penalty = part_penalties[i]
        problem.leaf_penalty = leaf_penalty
        present = sums[i, 0] + price * <double> penalties[problem.number]
        complexity = 0.0
        for b in range(problem.n_branches):
            alone = problem.first
            if b > 0:
                alone += sums[i, 1 + b]
            alone += price * <double> problem.below[b]
            complexity += <double> problem.below[b]
            if b == 0 or alone < best:
                best = alone
                problem.only_branch = b
            if b == 0 or alone > most:
                most = alone
        problem.tolerance = TOLERANCE * problem.n_rows * price + ROUNDING_OF_LOSSES * most
        # One branch for all is simpler: it wins where it is no worse.
        problem.to_beat = min(present, best) - problem.tolerance
        problem.bound = problem.to_beat - (
            problem.first + price * (leaf_penalty * (problem.n_branches - 1) + complexity))
        problem.may_improve = least[i] < problem.bound
        if not best <= present + problem.tolerance:
            problem.only_branch = -1
        problems.each.append(problem)
        # No split beats sending every row to its best branch, so some nodes can be passed over.
        wanted[i] = problem.may_improve and problem.n_care > 0
        problems.are_open |= wanted[i]
        n_branches[i] = problem.n_branches
        bounds[i] = problem.bound
        segment_penalties[i] = price * problem.part_penalty
    return problems
