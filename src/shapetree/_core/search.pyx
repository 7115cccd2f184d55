"""Search: the best shape function of each feature for the nodes of a level."""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, M_LOG2E
from libc.stdint cimport int32_t, int64_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, arena_take, branch_t,
    must_stop, take_branches, take_doubles, take_ints,
)
from shapetree._core.assignment cimport Pieces, assign_pieces, partition_loss
from shapetree._core.criterion cimport (
    ENTROPY, Criterion, CriterionInfo, impurity, rows_of, weight_of,
)
from shapetree._core.inner_tree cimport Bins, inner_cart, optimal_intervals, sum_bins
from shapetree._core.polish cimport Cells, extra_parts, polish

from shapetree._core.assignment import KINDS as ASSIGNMENTS

NO_BRANCH_MARK = NO_BRANCH

cdef enum:
    MAX_BRANCHES = 254

# An inner tree does not make a cut that earns less than this share of a part's price.
cdef double LEAST_SHARE = 0.5

LIMITS = {
    "inner_tree": "cart", "inner_max_leaves": 32, "inner_min_rows": 1, "inner_max_depth": 2**30,
    "assignment": "auto", "min_rows": 1, "min_weight": 0.0,
}

ctypedef struct Best:
    # The best shape function so far: impurity plus penalties, impurity alone, branches.
    double objective
    double loss
    int n_branches
    branch_t* branch


cdef Options options_of(dict limits) except *:
    """Options that hold for every node, from keyword arguments; the others are left open."""
    cdef Options options
    unknown = set(limits) - set(LIMITS)
    if unknown:
        raise TypeError(f"unexpected arguments: {sorted(unknown)}")
    limits = {**LIMITS, **limits}
    if min(limits["inner_max_leaves"], limits["inner_min_rows"], limits["min_rows"]) < 1 or (
            limits["inner_max_depth"] < 0):
        raise ValueError("limits of the inner tree and of branches must be positive")
    options.optimal_inner_tree = {"cart": False, "optimal": True}[limits["inner_tree"]]
    options.inner_max_leaves = limits["inner_max_leaves"]
    options.inner_min_rows = limits["inner_min_rows"]
    options.inner_max_depth = limits["inner_max_depth"]
    options.assignment = ASSIGNMENTS[limits["assignment"]]
    options.min_rows = limits["min_rows"]
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


cdef bint keeps_inner_limits(
    Cells cells, const int32_t* n_rows, const branch_t* branch, const Options* options
) noexcept nogil:
    """Whether segments are as few and as large as the inner tree's leaves must be."""
    cdef:
        int i, n_segments = 1
        int64_t rows = n_rows[0]
    if cells.categorical:
        return True
    for i in range(1, cells.n_cells):
        if branch[i] != branch[i - 1]:
            if rows < options.inner_min_rows:
                return False
            n_segments += 1
            rows = 0
        rows += n_rows[i]
    return rows >= options.inner_min_rows and n_segments <= options.inner_max_leaves


cdef void consider(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    double node_weight, branch_t* branch, double* sums, Best* best,
) noexcept nogil:
    """Keep a shape function if it is eligible and better than the best so far."""
    cdef:
        int b, n = cells.n_cells + cells.has_missing
        int n_branches = number_branches(branch, n)
        double loss, objective
        double penalty = options.category_penalty if cells.categorical else options.segment_penalty
    if n_branches < 2 or not has_room(branch, n_rows, n, n_branches, options.min_rows):
        return
    loss = partition_loss(c, cells.stats, branch, n, n_branches, sums)
    for b in range(n_branches):
        if weight_of(c, sums + b * c.n_stats) < options.min_weight:
            return
    objective = (loss + penalty * extra_parts(cells, branch)
                 + options.branch_penalty * (n_branches - 2))
    # Rounding must not decide, and the first, simplest candidate wins ties.
    if objective < best.objective - 1e-10 * node_weight:
        best.objective = objective
        best.loss = loss
        best.n_branches = n_branches
        memcpy(best.branch, branch, n)


cdef void start_from_one_cut(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, branch_t* branch,
) noexcept nogil:
    """CART's own split: the best threshold, or category against the rest.

    The missing cell joins the better side, or stands alone if that is best. Leaves every cell
    in branch 0 where no such split has enough rows.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = cells.n_cells, n_stats = c.n_stats, n_all = cells.n_cells + cells.has_missing
        double* one = take_doubles(arena, n_stats)
        double* other = take_doubles(arena, n_stats)
        double* total = take_doubles(arena, n_stats)
        int i, j, cut = -1
        bint missing_in_one, best_missing_in_one = False
        int64_t rows = 0, rows_one = 0, rows_here
        double loss, least = INFINITY
        const double* missing = cells.stats + n * n_stats
    if arena.failed:
        return
    memset(branch, 0, n_all)
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
                best_missing_in_one = missing_in_one
    if cut >= 0:
        for i in range(n):
            branch[i] = i != cut if cells.categorical else i > cut
        if cells.has_missing:
            branch[n] = not best_missing_in_one
    arena_release(arena, mark)


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


cdef int cut_cells(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, int32_t* piece_of_cell, int* root_cut_cell,
) noexcept nogil:
    """Number the piece of each cell; returns the number of pieces.

    Pieces of an ordered feature are its inner tree's leaves, of a categorical one its categories,
    those with too few rows together. Missing values are a piece of their own.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n = cells.n_cells, n_pieces = 0, i, rare = -1, piece = 0
        int32_t* piece_stop
        double* total
        double least_gain
        Bins bins
    root_cut_cell[0] = -1
    if cells.categorical:
        for i in range(n):
            if n_rows[i] >= options.inner_min_rows:
                piece_of_cell[i] = n_pieces
                n_pieces += 1
            else:
                if rare < 0:
                    rare = n_pieces
                    n_pieces += 1
                piece_of_cell[i] = rare
    else:
        piece_stop = take_ints(arena, n)
        total = take_doubles(arena, c.n_stats)
        if arena.failed:
            return 0
        bins.n_bins = n
        bins.stats = cells.stats
        bins.n_rows = n_rows
        sum_bins(c, cells.stats, 0, n, total)
        least_gain = least_gain_of_cut(c, total, options.segment_penalty)
        if options.optimal_inner_tree:
            n_pieces = optimal_intervals(
                c, bins, options.inner_max_leaves, options.inner_min_rows, least_gain, arena,
                piece_stop,
            )
        else:
            n_pieces = inner_cart(
                c, bins, options.inner_max_leaves, options.inner_min_rows,
                options.inner_max_depth, least_gain, arena, piece_stop, root_cut_cell,
            )
        if arena.failed:
            return 0
        for i in range(n):
            if i >= piece_stop[piece]:
                piece += 1
            piece_of_cell[i] = piece
    if cells.has_missing:
        piece_of_cell[n] = n_pieces
        n_pieces += 1
    arena_release(arena, mark)
    return n_pieces


cdef double search_cells(
    const CriterionInfo* c, Cells cells, const int32_t* n_rows, const Options* options,
    Arena* arena, Best* best,
) noexcept nogil:
    """Find the best shape function of the cells; returns the impurity before it."""
    cdef:
        Mark mark = arena_mark(arena)
        int n_all = cells.n_cells + cells.has_missing, n_stats = c.n_stats
        int most = options.max_branches
        int32_t* piece_of_cell = take_ints(arena, n_all)
        branch_t* start = take_branches(arena, n_all)
        branch_t* branch = take_branches(arena, n_all)
        branch_t* assigned = take_branches(arena, <size_t> (most - 1) * n_all)
        bint* found = <bint*> arena_take(arena, (most - 1) * sizeof(bint))
        double* sums = take_doubles(arena, most * n_stats)
        double* piece_stats = take_doubles(arena, <size_t> n_all * n_stats)
        int32_t* piece_rows = take_ints(arena, n_all)
        double penalty = options.category_penalty if cells.categorical else options.segment_penalty
        Pieces pieces
        int i, j, k, root_cut
        double node_weight, whole
    best.objective = INFINITY
    best.n_branches = 0
    if arena.failed:
        return 0.0
    sum_bins(c, cells.stats, 0, n_all, sums)
    node_weight = weight_of(c, sums)
    whole = impurity(c, sums)
    if n_all < 2:
        return whole

    pieces.n_pieces = cut_cells(c, cells, n_rows, options, arena, piece_of_cell, &root_cut)
    if arena.failed:
        return whole
    if (root_cut > 0 and not cells.has_missing
            and options.min_rows <= 1 and options.inner_min_rows <= 1
            and options.min_weight <= 0.0):
        # The inner tree's root is the very threshold looked for.
        for i in range(n_all):
            start[i] = i >= root_cut
    else:
        start_from_one_cut(c, cells, n_rows, options, arena, start)
    memcpy(branch, start, n_all)
    consider(c, cells, n_rows, options, node_weight, branch, sums, best)

    memset(piece_stats, 0, <size_t> pieces.n_pieces * n_stats * sizeof(double))
    memset(piece_rows, 0, pieces.n_pieces * sizeof(int32_t))
    pieces.root_cut = 0
    for i in range(n_all):
        j = piece_of_cell[i]
        piece_rows[j] += n_rows[i]
        for k in range(n_stats):
            piece_stats[j * n_stats + k] += cells.stats[i * n_stats + k]
        if i == root_cut:
            pieces.root_cut = j
    pieces.stats = piece_stats
    pieces.n_rows = piece_rows
    assign_pieces(c, pieces, most, options.assignment, options.min_rows, options.seed, arena,
                  assigned, found)
    for k in range(2, most + 1):
        if not found[k - 2] or must_stop(arena, n_all):
            continue
        for i in range(n_all):
            branch[i] = assigned[(k - 2) * pieces.n_pieces + piece_of_cell[i]]
        consider(c, cells, n_rows, options, node_weight, branch, sums, best)
        if penalty > 0.0:
            polish(c, cells, k, penalty, arena, branch)
            if keeps_inner_limits(cells, n_rows, branch, options):
                consider(c, cells, n_rows, options, node_weight, branch, sums, best)
    if penalty > 0.0:
        polish(c, cells, 2, penalty, arena, start)
        if keeps_inner_limits(cells, n_rows, start, options):
            consider(c, cells, n_rows, options, node_weight, start, sums, best)
    arena_release(arena, mark)
    return whole


cdef int compact_histogram(
    const CriterionInfo* c, const double* cells, int n_bins, int n_channels,
    double* stats, int32_t* n_rows, int32_t* bin_of_cell,
) noexcept nogil:
    """Copy the bins that hold rows; returns how many they are."""
    cdef:
        int b, j, n = 0, n_stats = c.n_stats
        double rows
        const double* cell
    for b in range(n_bins):
        cell = cells + <Py_ssize_t> b * n_channels
        rows = rows_of(c, cell, n_channels)
        if rows < 0.5:
            continue
        for j in range(n_stats):
            stats[n * n_stats + j] = cell[j]
        n_rows[n] = <int32_t> (rows + 0.5)
        bin_of_cell[n] = b
        n += 1
    return n


ctypedef struct NodeCells:
    # Where a node's sums of one feature are: a histogram, or the bins that hold rows alone.
    const double* sums
    const int32_t* bin_of_cell    # NULL for a histogram
    int n_cells
    int n_channels


cdef int copy_cells(
    const CriterionInfo* c, const NodeCells* given, double* stats, int32_t* n_rows,
    int32_t* bin_of_cell,
) noexcept nogil:
    """The cells that hold rows; returns how many they are."""
    cdef:
        int i, j, n_stats = c.n_stats
        const double* cell
    if given.bin_of_cell == NULL:
        return compact_histogram(
            c, given.sums, given.n_cells, given.n_channels, stats, n_rows, bin_of_cell)
    for i in range(given.n_cells):
        cell = given.sums + <Py_ssize_t> i * given.n_channels
        for j in range(n_stats):
            stats[<Py_ssize_t> i * n_stats + j] = cell[j]
        n_rows[i] = <int32_t> (rows_of(c, cell, given.n_channels) + 0.5)
        bin_of_cell[i] = given.bin_of_cell[i]
    return given.n_cells


cdef class NodeSearch:
    """Searches features' shape functions for the nodes of a level.

    It keeps nothing of a search, so one object serves many trees at once.

    Parameters
    ----------
    criterion : Criterion
    n_bins : array of int
        Bins of each feature, without its missing bin, which comes last.
    categorical : array of bool
    inner_tree, inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows,
    min_weight :
        Options that hold for every node.
    """

    cdef Criterion criterion
    cdef Options options
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] categorical
    cdef readonly int n_features

    def __init__(self, Criterion criterion not None, n_bins, categorical, **limits):
        n_bins = np.asarray(n_bins, dtype=np.int64)
        n = len(n_bins)
        if n_bins.shape != (n,) or np.shape(categorical) != (n,):
            raise ValueError("n_bins and categorical must have one entry for each column")
        if n and not 0 <= n_bins.min() <= n_bins.max() < 2**31 - 1:
            raise ValueError("n_bins out of range")
        self.n_features = n
        self.criterion = criterion
        self.offsets = np.concatenate([[0], np.cumsum(n_bins + 1)]).astype(np.int64)
        self.categorical = np.ascontiguousarray(categorical, dtype=np.uint8)
        self.options = options_of(limits)

    def search(
        self,
        const double[:, :, ::1] histograms,      # IN: (n_nodes, bins, n_channels), or None
        cells,                                   # IN: or what `build_cells` returns, or None
        int first, int last,                     # IN: features first..last-1 are searched
        *,
        const int32_t[::1] max_branches not None,        # IN: (n_nodes,) and so are those below
        const double[::1] segment_penalty not None,
        const double[::1] category_penalty not None,
        const double[::1] branch_penalty not None,
        const uint64_t[::1] seed not None,
        const uint8_t[:, ::1] allowed,           # IN: (n_nodes, n_features) or None for all
        double[:, ::1] gains not None,           # OUT: (n_nodes, n_features), -inf for none
        double[:, ::1] penalised_gains not None,         # OUT: the same after penalties
        int32_t[:, ::1] n_branches not None,     # OUT: (n_nodes, n_features)
        uint8_t[:, ::1] branch_of_bin not None,  # OUT: (n_nodes, all features' bins)
        int n_threads,
    ):
        """Find each node's best shape function of each feature.

        Gains are in units of mass. Bins without rows have the branch NO_BRANCH_MARK.
        """
        cdef:
            Py_ssize_t task, node, n_nodes = max_branches.shape[0], n_features = last - first
            int f
            Arenas arenas
            Options options
            NodeCells given
            const double[:, ::1] sums
            const int64_t[:, ::1] cell_start
            const int32_t[:, ::1] n_cells
            const int32_t[::1] bin_of_cell
            int n_channels
            int64_t base
        self.check(first, last, n_nodes, gains, penalised_gains, n_branches, branch_of_bin)
        if not (segment_penalty.shape[0] == category_penalty.shape[0] == seed.shape[0]
                == branch_penalty.shape[0] == n_nodes) or n_threads < 1:
            raise ValueError("every node needs its options, and n_threads must be at least 1")
        if allowed is not None and (
                allowed.shape[0] != n_nodes or allowed.shape[1] != self.n_features):
            raise ValueError("allowed must tell of every node and feature")
        for node in range(n_nodes):
            if not 2 <= max_branches[node] <= MAX_BRANCHES:
                raise ValueError(f"max_branches must be between 2 and {MAX_BRANCHES}")
        base = self.offsets[first]
        if histograms is not None:
            n_channels = histograms.shape[2]
            if histograms.shape[0] != n_nodes or (
                    histograms.shape[1] != self.offsets[last] - base):
                raise ValueError("the histograms' shape does not fit the nodes and bins")
        else:
            cell_start, n_cells, bin_of_cell, sums = cells
            n_channels = sums.shape[1]
            self.check_cells(first, n_nodes, n_features, cell_start, n_cells, bin_of_cell, sums)
        if not self.criterion.info.n_stats <= n_channels <= self.criterion.info.n_stats + 1:
            raise ValueError("sums and criterion differ in their statistics")
        if n_nodes == 0 or n_features == 0:
            return
        arenas = Arenas(n_threads)
        with nogil:
            for task in prange(n_nodes * n_features, num_threads=n_threads, schedule="dynamic"):
                node = task // n_features
                f = <int> (first + task % n_features)
                gains[node, f] = -INFINITY
                penalised_gains[node, f] = -INFINITY
                n_branches[node, f] = 0
                memset(&branch_of_bin[node, self.offsets[f]], NO_BRANCH,
                       self.offsets[f + 1] - self.offsets[f])
                if allowed is not None and not allowed[node, f]:
                    continue
                options = self.options
                options.max_branches = max_branches[node]
                options.segment_penalty = segment_penalty[node]
                options.category_penalty = category_penalty[node]
                options.branch_penalty = branch_penalty[node]
                # Each feature has a seed of its own, whichever thread takes it.
                options.seed = (seed[node] + 1) * <uint64_t> 0x9E3779B97F4A7C15 + (
                    <uint64_t> (f + 1))
                given.n_channels = n_channels
                if histograms is not None:
                    given.sums = &histograms[node, self.offsets[f] - base, 0]
                    given.bin_of_cell = NULL
                    given.n_cells = <int> (self.offsets[f + 1] - self.offsets[f])
                else:
                    given.n_cells = n_cells[node, f - first]
                    if given.n_cells == 0:
                        continue
                    given.sums = &sums[cell_start[node, f - first], 0]
                    given.bin_of_cell = &bin_of_cell[cell_start[node, f - first]]
                self.search_feature(
                    f, &given, &options, &arenas.of_thread[threadid()], &gains[node, f],
                    &penalised_gains[node, f], &n_branches[node, f],
                    &branch_of_bin[node, self.offsets[f]])
        arenas.finish()

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
        self, int f, const NodeCells* given, const Options* options, Arena* arena, double* gain,
        double* penalised_gain, int32_t* n_branches, uint8_t* branch_of_bin,
    ) noexcept nogil:
        cdef:
            Mark mark = arena_mark(arena)
            const CriterionInfo* c = &self.criterion.info
            int n_bins = <int> (self.offsets[f + 1] - self.offsets[f])
            int room = given.n_cells
            double* stats = take_doubles(arena, <size_t> room * c.n_stats)
            int32_t* n_rows = take_ints(arena, room)
            int32_t* bin_of_cell = take_ints(arena, room)
            branch_t* branch = take_branches(arena, room)
            Cells cells
            Best best
            double whole
            int n_cells, i
        if arena.failed or must_stop(arena, room):
            return
        n_cells = copy_cells(c, given, stats, n_rows, bin_of_cell)
        cells.has_missing = n_cells > 0 and bin_of_cell[n_cells - 1] == n_bins - 1
        cells.n_cells = n_cells - cells.has_missing
        cells.categorical = self.categorical[f]
        cells.stats = stats
        if cells.n_cells < 1 or n_cells < 2:
            arena_release(arena, mark)
            return
        best.branch = branch
        whole = search_cells(c, cells, n_rows, options, arena, &best)
        if best.n_branches >= 2:
            gain[0] = whole - best.loss
            penalised_gain[0] = whole - best.objective
            n_branches[0] = best.n_branches
            for i in range(n_cells):
                branch_of_bin[bin_of_cell[i]] = branch[i]
        arena_release(arena, mark)
