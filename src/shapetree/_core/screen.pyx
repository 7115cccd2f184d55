"""Screening: how promising each pair of features is for one node.

On grids: every feature's bins are joined to at most 32 groups of like many rows; a pair's cells are
the products of two features' groups, on which an inner tree grows. Or by the paper's filter: the
branches of two features' own shape functions are crossed with each other.
"""

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, must_stop, take_branches,
    take_doubles, take_ints,
)
from shapetree._core.columns cimport Columns, code_at
from shapetree._core.criterion cimport (
    Criterion, CriterionInfo, dot, impurity, n_values, rows_of, value_of, weight_of,
)
from shapetree._core.grid cimport (
    N_BUCKETS, N_GROUPS, STRIDE, Grid, Start, fill_planes, grow_on_grid, sum_cells,
)
from shapetree._core.histogram cimport NodeTargets, Targets, check_rows
from shapetree._core.pair_tree cimport (
    FIRST_AXIS, SECOND_AXIS, PairShape, PairTree, take_tree,
)
from shapetree._core.search cimport Options, options_of

# How inner trees start; also the dtype of the arrays that say so.
START = np.dtype([("orientation", np.int32), ("share", np.float64), ("framed", np.int32)],
                 align=True)

cdef enum:
    ROWS_PER_ROUGH_CELL = 8    # at least, on average


cdef void order_categories(
    const CriterionInfo* c, const double* cells, int n_channels, const int32_t* present, int n,
    Arena* arena, int32_t* order,
) noexcept nogil:
    """Order some categories by their statistics.

    By class share or mean where there is one; otherwise along the first principal component of the
    shares of classes, or of the means.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int m = n_values(c)
        double* share = take_doubles(arena, <size_t> n * m)
        double* weight = take_doubles(arena, n)
        double* mean = take_doubles(arena, m)
        double* direction = take_doubles(arena, m)
        double* turned = take_doubles(arena, m)
        double* score = take_doubles(arena, n)
        const double* s
        double total = 0.0, length
        int i, j, k, item
    if arena.failed:
        return
    memset(mean, 0, m * sizeof(double))
    for i in range(n):
        s = cells + <Py_ssize_t> present[i] * n_channels
        weight[i] = weight_of(c, s)
        total += weight[i]
        for j in range(m):
            share[i * m + j] = value_of(c, s, j)
            mean[j] += share[i * m + j]
            share[i * m + j] /= max(weight[i], 1e-300)
    for j in range(m):
        mean[j] /= max(total, 1e-300)
        # A start that no symmetry of the classes makes orthogonal to what is sought.
        direction[j] = 1.0 / (j + 1.0)
        for i in range(n):
            share[i * m + j] -= mean[j]
    for _ in range(20 if m > 1 else 0):
        memset(turned, 0, m * sizeof(double))
        for i in range(n):
            length = weight[i] * dot(share + i * m, direction, m)
            for j in range(m):
                turned[j] += length * share[i * m + j]
        length = sqrt(dot(turned, turned, m))
        if not length > 0.0:
            break
        for j in range(m):
            direction[j] = turned[j] / length
    for i in range(n):
        score[i] = dot(share + i * m, direction, m)
    # Insertion sort: categories are few.
    for i in range(n):
        item = i
        k = i
        while k > 0 and score[order[k - 1]] > score[item]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = item
    arena_release(arena, mark)


cdef class GridScreen:
    """Screens pairs of features for one node after another.

    Parameters
    ----------
    criterion : Criterion
    bins : Columns
        The bins of every training row.
    n_bins : array of int
        Bins of each feature, without its missing bin, which comes last.
    categorical : array of bool
    bin_values : array (total bins,)
        A value in each ordered bin, in units of the feature's standard deviation.
    cosines, sines : arrays (n_orientations,)
        The two axes, then the oblique orientations, each followed by the one perpendicular to it.
    inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows, min_weight :
        Options that hold for every node.

    Attributes
    ----------
    positions : array (total bins,)
        After `prepare`: the categories' places in the node's order; NaN where there is no row.
    """

    cdef Criterion criterion
    cdef Columns bins
    cdef Options options
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] categorical
    cdef const double[::1] bin_values
    cdef const double[::1] cosines
    cdef const double[::1] sines
    cdef readonly object positions
    cdef double[::1] _positions
    cdef uint8_t[::1] group_of_bin
    cdef int32_t[::1] n_groups
    cdef double[:, ::1] centres
    cdef uint8_t[:, ::1] codes        # group of the node's rows, by feature
    cdef uint8_t[:, ::1] rough_codes  # the same with fewer groups
    cdef int n_rough
    cdef Targets targets              # keeps alive what `node` points to
    cdef NodeTargets node
    cdef Py_ssize_t n

    def __init__(self, Criterion criterion not None, Columns bins not None, n_bins, categorical,
                 bin_values, cosines, sines, **limits):
        n_bins = np.asarray(n_bins, dtype=np.int64)
        n = bins.n_columns
        if n_bins.shape != (n,) or np.shape(categorical) != (n,):
            raise ValueError("n_bins and categorical must have one entry for each column")
        self.criterion = criterion
        self.bins = bins
        self.offsets = np.concatenate([[0], np.cumsum(n_bins + 1)]).astype(np.int64)
        self.categorical = np.ascontiguousarray(categorical, dtype=np.uint8)
        self.bin_values = np.ascontiguousarray(bin_values, dtype=np.float64)
        self.cosines = np.ascontiguousarray(cosines, dtype=np.float64)
        self.sines = np.ascontiguousarray(sines, dtype=np.float64)
        if self.bin_values.shape[0] != self.offsets[n]:
            raise ValueError("bin_values must have one entry for each bin")
        values = np.concatenate([self.bin_values, self.cosines, self.sines])
        if not np.isfinite(values).all():
            raise ValueError("bin_values, cosines and sines must be finite")
        if not 2 <= self.cosines.shape[0] == self.sines.shape[0]:
            raise ValueError("there must be two orientations at least")
        self.options = options_of(limits)
        self._positions = self.positions = np.full(self.offsets[n], NAN)
        self.group_of_bin = np.zeros(self.offsets[n], dtype=np.uint8)
        self.n_groups = np.zeros(n, dtype=np.int32)
        self.centres = np.zeros((n, N_GROUPS))
        self.codes = np.empty((n, 0), dtype=np.uint8)
        self.rough_codes = np.empty((n, 0), dtype=np.uint8)
        self.n = 0

    def prepare(
        self,
        const double[:, ::1] histogram not None,    # IN: the node's
        Targets targets not None,                   # IN
        const int32_t[::1] rows not None,           # IN: the node's rows
        int n_threads,
    ):
        """Join every feature's bins to groups, and note the groups of the node's rows."""
        cdef:
            int f, n_features = self.bins.n_columns
            Py_ssize_t n = rows.shape[0]
            Arenas arenas
        self.bins.check_bins(self.offsets, 0, n_features)
        check_rows(rows, min(self.bins.n_rows, targets.n_rows))
        if not 1 <= n <= targets.n_rows or n_threads < 1:
            raise ValueError("there must be rows, and at least one thread")
        if targets.n_stats != self.criterion.info.n_stats:
            raise ValueError("targets and criterion differ in their statistics")
        if histogram.shape[0] != self.offsets[n_features] or (
                histogram.shape[1] != targets.n_channels):
            raise ValueError("the histogram's shape does not fit the bins and targets")
        if self.codes.shape[1] < n:
            self.codes = np.empty((n_features, n), dtype=np.uint8)
            self.rough_codes = np.empty((n_features, n), dtype=np.uint8)
        self.n_rough = 16 if n >= 16 * 16 * ROWS_PER_ROUGH_CELL else (
            8 if n >= 8 * 8 * ROWS_PER_ROUGH_CELL else 4)
        self.targets = targets
        self.n = n
        arenas = Arenas(n_threads)
        with nogil:
            self.node = targets.gather(&rows[0], n, n_threads)
            for f in prange(n_features, num_threads=n_threads, schedule="dynamic"):
                self.prepare_feature(
                    f, &histogram[self.offsets[f], 0], &rows[0], &arenas.of_thread[threadid()])
        arenas.finish()

    cdef void prepare_feature(
        self, int f, const double* cells, const int32_t* rows, Arena* arena
    ) noexcept nogil:
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Mark mark = arena_mark(arena)
            int64_t offset = self.offsets[f]
            int n_bins = <int> (self.offsets[f + 1] - offset - 1)
            int n_channels = self.node.n_channels
            int32_t* present = take_ints(arena, n_bins + 1)
            int32_t* order = take_ints(arena, n_bins + 1)
            double* count = take_doubles(arena, n_bins + 1)
            uint8_t* group = &self.group_of_bin[offset]
            double* centre = &self.centres[f, 0]
            double n_rows = 0.0, below = 0.0
            double in_group[N_GROUPS]
            uint8_t rough[STRIDE]
            int i, b, n = 0, last = -1, g = -1, here
            Py_ssize_t k
        if arena.failed:
            return
        memset(group, N_GROUPS, n_bins + 1)
        for b in range(n_bins):
            count[n] = rows_of(c, cells + b * n_channels, n_channels)
            if count[n] > 0.5:
                n_rows += count[n]
                present[n] = b
                order[n] = n
                n += 1
        if self.categorical[f]:
            for b in range(n_bins):
                self._positions[offset + b] = NAN
            order_categories(c, cells, n_channels, present, n, arena, order)
            if arena.failed:
                return
        for i in range(n):
            b = order[i]
            # Equal shares of the rows; a bin lies where its middle row does.
            here = min(<int> ((below + 0.5 * count[b]) * N_GROUPS / n_rows), N_GROUPS - 1)
            if here != last:
                g += 1
                last = here
                centre[g] = 0.0
                in_group[g] = 0.0
            below += count[b]
            group[present[b]] = g
            if self.categorical[f]:
                self._positions[offset + present[b]] = i
            else:
                centre[g] += count[b] * self.bin_values[offset + present[b]]
                in_group[g] += count[b]
        self.n_groups[f] = g + 1
        if not self.categorical[f]:
            for i in range(g + 1):
                centre[i] /= in_group[i]
        for i in range(N_GROUPS):
            rough[i] = i if g < self.n_rough else i * self.n_rough // (g + 1)
        rough[N_GROUPS] = self.n_rough
        for k in range(self.n):
            here = group[code_at(&self.bins.column[f], rows[k])]
            self.codes[f, k] = here
            self.rough_codes[f, k] = rough[here]
        arena_release(arena, mark)

    def weigh(
        self,
        const int32_t[:, ::1] pairs not None,       # IN: (n_pairs, 2)
        double[::1] gains not None,                 # OUT: (n_pairs,)
        double noise,                               # IN: what a useless cut gains on average
        int n_threads,
    ):
        """What a pair tells at most: the gain of parting every cell of a rough grid, less noise."""
        cdef:
            int p, n_pairs = pairs.shape[0]
            Arenas arenas
        self.check_pairs(pairs, n_threads)
        if gains.shape[0] != n_pairs:
            raise ValueError("there must be one result for each pair")
        arenas = Arenas(n_threads)
        with nogil:
            for p in prange(n_pairs, num_threads=n_threads, schedule="dynamic", chunksize=8):
                gains[p] = self.weigh_pair(
                    pairs[p, 0], pairs[p, 1], noise, &arenas.of_thread[threadid()])
        arenas.finish()

    cdef int check_pairs(self, const int32_t[:, ::1] pairs, int n_threads) except -1:
        if pairs.shape[1] != 2 or pairs.shape[0] and (
                np.min(pairs) < 0 or np.max(pairs) >= self.bins.n_columns):
            raise ValueError("pairs must name two features each")
        if self.n == 0 or n_threads < 1:
            raise ValueError("prepare first, and give at least one thread")
        return 0

    cdef double weigh_pair(
        self, int first, int second, double noise, Arena* arena
    ) noexcept nogil:
        cdef:
            Mark mark = arena_mark(arena)
            const CriterionInfo* c = &self.criterion.info
            int stride = self.n_rough + 1, n_channels = self.node.n_channels, i, j, n_cells = 0
            double* whole = take_doubles(arena, c.n_stats)
            double* cells = sum_cells(
                &self.node, &self.rough_codes[first, 0], &self.rough_codes[second, 0], self.n,
                stride, arena)
            double loss = 0.0
        if arena.failed:
            return -INFINITY
        memset(whole, 0, c.n_stats * sizeof(double))
        for i in range(stride * stride):
            if weight_of(c, cells + i * n_channels) > 0.0:
                n_cells += 1
                loss += impurity(c, cells + i * n_channels)
                for j in range(c.n_stats):
                    whole[j] += cells[i * n_channels + j]
        arena_release(arena, mark)
        return impurity(c, whole) - loss - noise * (n_cells - 1)

    def screen(
        self,
        const int32_t[:, ::1] pairs not None,       # IN: (n_pairs, 2)
        const double[::1] information not None,     # IN: (n_pairs,) what they tell, from `weigh`
        double[::1] gains not None,                 # OUT: (n_pairs,) after penalties; -inf for none
        Start[::1] starts not None,                 # OUT: (n_pairs,) how its inner tree starts
        *,
        int max_branches, double region_penalty, double branch_penalty, uint64_t seed,
        int n_threads,
    ):
        """Grow an inner tree on each pair's grid and send its regions to branches."""
        cdef:
            Options options = self.options
            int p, n_pairs = pairs.shape[0]
            Arenas arenas
        self.check_pairs(pairs, n_threads)
        if not gains.shape[0] == starts.shape[0] == information.shape[0] == n_pairs:
            raise ValueError("there must be one result for each pair")
        if not 2 <= max_branches <= 254:
            raise ValueError("max_branches must be between 2 and 254")
        options.max_branches = max_branches
        options.region_penalty = region_penalty
        options.branch_penalty = branch_penalty
        options.seed = seed
        arenas = Arenas(n_threads)
        with nogil:
            for p in prange(n_pairs, num_threads=n_threads, schedule="dynamic"):
                gains[p] = self.screen_pair(
                    pairs[p, 0], pairs[p, 1], information[p], &options,
                    &arenas.of_thread[threadid()], &starts[p])
        arenas.finish()

    cdef void lay_out(
        self, int first, int second, const double* cells, const Options* options, Arena* arena,
        Grid* grid,
    ) noexcept nogil:
        """Gather the cells that hold rows, and the sum of those where a feature is missing."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            int n_a = self.n_groups[first], n_b = self.n_groups[second], n_stats = c.n_stats
            int n_channels = self.node.n_channels, a, b, j, n = 0, rows, h
            size_t room = n_a * n_b
            bint oblique = not (self.categorical[first] or self.categorical[second])
            int n_orientations = self.cosines.shape[0] if oblique else 2
            uint8_t* group_a = <uint8_t*> take_branches(arena, room)
            uint8_t* group_b = <uint8_t*> take_branches(arena, room)
            const double* cell
        grid.c = c
        grid.arena = arena
        grid.stats = take_doubles(arena, room * n_stats)
        grid.n_rows = take_ints(arena, room)
        grid.order = take_ints(arena, room)
        grid.scratch = take_ints(arena, room)
        grid.n_orientations = n_orientations
        grid.bucket = <uint8_t*> take_branches(arena, room * n_orientations)
        grid.min_rows = max(self.options.inner_min_rows, self.options.min_rows)
        grid.region_penalty = options.region_penalty
        grid.missing = take_doubles(arena, n_stats)
        grid.n_missing = 0
        if arena.failed:
            return
        memset(grid.missing, 0, n_stats * sizeof(double))
        for a in range(STRIDE):
            if n_a <= a < N_GROUPS:
                continue
            for b in range(STRIDE):
                if n_b <= b < N_GROUPS:
                    continue
                cell = cells + (a * STRIDE + b) * n_channels
                rows = <int> (0.5 + rows_of(c, cell, n_channels))
                if rows == 0:
                    continue
                if a == N_GROUPS or b == N_GROUPS:
                    grid.n_missing += rows
                    for j in range(n_stats):
                        grid.missing[j] += cell[j]
                    continue
                group_a[n] = a
                group_b[n] = b
                grid.n_rows[n] = rows
                memcpy(grid.stats + n * n_stats, cell, n_stats * sizeof(double))
                n += 1
        grid.n_cells = n
        for j in range(n):
            grid.bucket[j * n_orientations + FIRST_AXIS] = group_a[j] * N_BUCKETS // n_a
            grid.bucket[j * n_orientations + SECOND_AXIS] = group_b[j] * N_BUCKETS // n_b
        for h in range(2, n_orientations):
            self.fill_buckets(first, second, h, group_a, group_b, grid)
        fill_planes(grid)

    cdef void fill_buckets(
        self, int first, int second, int orientation, const uint8_t* group_a,
        const uint8_t* group_b, Grid* grid,
    ) noexcept nogil:
        """Note where the cells lie along an oblique orientation."""
        cdef:
            double along_a[N_GROUPS]
            double along_b[N_GROUPS]
            double low_a = INFINITY, high_a = -INFINITY, low_b = INFINITY, high_b = -INFINITY
            double width
            int i
        for i in range(self.n_groups[first]):
            along_a[i] = self.cosines[orientation] * self.centres[first, i]
            low_a = min(low_a, along_a[i])
            high_a = max(high_a, along_a[i])
        for i in range(self.n_groups[second]):
            along_b[i] = self.sines[orientation] * self.centres[second, i]
            low_b = min(low_b, along_b[i])
            high_b = max(high_b, along_b[i])
        width = (high_a - low_a) + (high_b - low_b)
        width = 0.999999 * N_BUCKETS / width if 1e-300 < width < 1e300 else 0.0
        for i in range(grid.n_cells):
            grid.bucket[i * grid.n_orientations + orientation] = <uint8_t> (
                ((along_a[group_a[i]] - low_a) + (along_b[group_b[i]] - low_b)) * width)

    cdef double screen_pair(
        self, int first, int second, double information, const Options* options, Arena* arena,
        Start* start,
    ) noexcept nogil:
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Mark mark = arena_mark(arena)
            double* whole = take_doubles(arena, c.n_stats)
            double* cells = sum_cells(&self.node, &self.codes[first, 0], &self.codes[second, 0],
                                      self.n, STRIDE, arena)
            int j
            Grid grid
            PairTree tree
            PairShape best
            double gain = -INFINITY
        start.orientation = -1
        start.share = 0.0
        start.framed = False
        if must_stop(arena, self.n):
            return -INFINITY
        take_tree(c, options, arena, &tree)
        best.branch = take_branches(arena, tree.room)
        best.objective = INFINITY
        if arena.failed:
            return -INFINITY
        self.lay_out(first, second, cells, options, arena, &grid)
        if arena.failed:
            return -INFINITY
        if grid.n_cells >= 2:
            grow_on_grid(&grid, information, options, &tree, &best, start)
            if arena.failed:
                return -INFINITY
            for j in range(c.n_stats):
                whole[j] = tree.stats[j] + grid.missing[j]
            if best.objective < INFINITY:
                gain = impurity(c, whole) - best.objective
        arena_release(arena, mark)
        return gain


cdef double crossed_loss(
    const CriterionInfo* c, const NodeTargets* targets, const uint8_t* code_a,
    const uint8_t* code_b, Py_ssize_t n, int n_branches, Arena* arena,
) noexcept nogil:
    cdef:
        Mark mark = arena_mark(arena)
        double* cells
        double loss = 0.0
        int i
    if must_stop(arena, n):
        return INFINITY
    cells = sum_cells(targets, code_a, code_b, n, n_branches, arena)
    if arena.failed:
        return INFINITY
    for i in range(n_branches * n_branches):
        loss += impurity(c, cells + i * targets.n_channels)
    arena_release(arena, mark)
    return loss


def crossed_losses(
    Criterion criterion not None,                 # IN
    Targets targets not None,                     # IN
    const uint8_t[:, ::1] branches not None,      # IN: (n_features, n) of the node's rows
    int n_branches,                               # IN: that there are at most
    const int32_t[:, ::1] pairs not None,         # IN: (n_pairs, 2)
    const int32_t[::1] rows not None,             # IN: (n,) the node's rows
    double[::1] losses not None,                  # OUT: (n_pairs,)
    int n_threads,
):
    """Impurity of each pair's branches crossed with each other, as in the paper's filter."""
    cdef:
        int p, n_pairs = pairs.shape[0]
        Py_ssize_t n = rows.shape[0]
        NodeTargets node
        Arenas arenas
    check_rows(rows, targets.n_rows)
    if not 1 <= n <= targets.n_rows or branches.shape[1] != n or n_threads < 1:
        raise ValueError("there must be rows, branches of each, and at least one thread")
    if targets.n_stats != criterion.info.n_stats:
        raise ValueError("targets and criterion differ in their statistics")
    if losses.shape[0] != n_pairs or pairs.shape[1] != 2:
        raise ValueError("there must be one result for each pair")
    if n_pairs and (np.min(pairs) < 0 or np.max(pairs) >= branches.shape[0]):
        raise ValueError("pairs must name features")
    if not 1 <= n_branches <= 254 or np.max(branches) >= n_branches:
        raise ValueError("branches must be below n_branches, itself at most 254")
    arenas = Arenas(n_threads)
    with nogil:
        node = targets.gather(&rows[0], n, n_threads)
        for p in prange(n_pairs, num_threads=n_threads, schedule="dynamic"):
            losses[p] = crossed_loss(
                &criterion.info, &node, &branches[pairs[p, 0], 0], &branches[pairs[p, 1], 0], n,
                n_branches, &arenas.of_thread[threadid()])
    arenas.finish()
