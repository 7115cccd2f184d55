"""Screening: how promising each pair of features is for one node, from sums over its rows alone.

Every feature's bins are joined to at most 32 groups of like weight; a pair's cells are the products
of two features' groups, on which an inner tree grows. Nothing here knows the rows.
"""

from typing import NamedTuple

import numpy as np

from shapetree._core.histogram import bin_offsets

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, sqrt
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, must_stop, take_branches,
    take_doubles, take_ints,
)
from shapetree._core.criterion cimport (
    Criterion, CriterionInfo, dot, impurity, n_values, rows_of, value_of, weight_of,
)
from shapetree._core.grid cimport (
    N_BUCKETS, N_GROUPS, STRIDE, Grid, Start, check_pairs, fill_planes, grow_from_all_crossings,
    grow_on_grid,
)
from shapetree._core.pair_tree cimport (
    FIRST_AXIS, SECOND_AXIS, PairShape, PairTree, take_tree,
)
from shapetree._core.search cimport Options, options_of

# How inner trees start; also the dtype of the arrays that say so.
START = np.dtype([("orientation", np.int32), ("share", np.float64), ("framed", np.int32)],
                 align=True)

# Groups of a feature, that of missing values included.
ALL_GROUPS = STRIDE

cdef extern from "vector.h":
    void fill_buckets_of_cells(
        const int32_t* along_a, const int32_t* along_b, const uint8_t* group_a,
        const uint8_t* group_b, int n_cells, int n_orientations, uint8_t* bucket) noexcept nogil

cdef enum:
    WEIGHT_PER_ROUGH_CELL = 8    # at least, on average
    FRACTIONS = 65_536           # of a bucket


class Groups(NamedTuple):
    """Every feature's bins joined to groups, for one node.

    Attributes
    ----------
    of_bin : uint8 array (total bins,)
        ALL_GROUPS - 1 for missing values and for bins without rows.
    n_of_feature : int32 array (n_features,)
    centres : array (n_features, ALL_GROUPS - 1)
        Where an ordered feature's groups lie, in units of its standard deviation.
    positions : array (total bins,)
        The categories' places in the node's order; NaN where there is no row.
    rough_of_bin : uint8 array (total bins,)
        The same with fewer groups; n_rough for missing values and for bins without rows.
    n_rough : int
    """

    of_bin: object
    n_of_feature: object
    centres: object
    positions: object
    rough_of_bin: object
    n_rough: int


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


cdef double loss_of_cells(
    const CriterionInfo* c, const double* cells, int n_cells, int n_channels, double noise
) noexcept nogil:
    """Impurity of cells, plus the noise of each that holds weight but the first."""
    cdef:
        int i
        double loss = -noise
    for i in range(n_cells):
        if weight_of(c, cells + i * n_channels) > 0.0:
            loss += noise + impurity(c, cells + i * n_channels)
    return loss


cdef void place_groups(
    const double* centre_a, int n_a, const double* centre_b, int n_b, double cosine, double sine,
    int orientation, int n_orientations, int32_t* along_a, int32_t* along_b,
) noexcept nogil:
    """Note where two features' groups lie along an oblique orientation."""
    cdef:
        double low_a = INFINITY, high_a = -INFINITY, low_b = INFINITY, high_b = -INFINITY
        double width
        int i
    for i in range(n_a):
        low_a = min(low_a, cosine * centre_a[i])
        high_a = max(high_a, cosine * centre_a[i])
    for i in range(n_b):
        low_b = min(low_b, sine * centre_b[i])
        high_b = max(high_b, sine * centre_b[i])
    width = (high_a - low_a) + (high_b - low_b)
    width = 0.999999 * N_BUCKETS * FRACTIONS / width if 1e-290 < width < 1e290 else 0.0
    for i in range(n_a):
        along_a[i * n_orientations + orientation] = (
            <int32_t> ((cosine * centre_a[i] - low_a) * width) if width > 0.0 else 0)
    for i in range(n_b):
        along_b[i * n_orientations + orientation] = (
            <int32_t> ((sine * centre_b[i] - low_b) * width) if width > 0.0 else 0)


cdef class GridScreen:
    """Groups bins, and screens pairs of features by their cells, for any node.

    Parameters
    ----------
    criterion : Criterion
    n_bins : array of int
        Bins of each feature, without its missing bin, which comes last.
    categorical : array of bool
    bin_values : array (total bins,)
        A value in each ordered bin, in units of the feature's standard deviation.
    cosines, sines : arrays (n_orientations,)
        The two axes, then the oblique orientations, each followed by the one perpendicular to it.
    inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows, min_weight :
        Options that hold for every node.
    """

    cdef Criterion criterion
    cdef Options options
    cdef int n_features
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] categorical
    cdef const double[::1] bin_values
    cdef const double[::1] cosines
    cdef const double[::1] sines

    def __init__(self, Criterion criterion not None, n_bins, categorical, bin_values, cosines,
                 sines, **limits):
        n_bins = np.asarray(n_bins, dtype=np.int64)
        if n_bins.ndim != 1 or np.shape(categorical) != n_bins.shape or np.any(n_bins < 0):
            raise ValueError("n_bins and categorical must have one entry for each column")
        n = len(n_bins)
        self.n_features = n
        self.criterion = criterion
        self.offsets = bin_offsets(n_bins)
        self.categorical = np.ascontiguousarray(categorical, dtype=np.uint8)
        self.bin_values = np.ascontiguousarray(bin_values, dtype=np.float64)
        self.cosines = np.ascontiguousarray(cosines, dtype=np.float64)
        self.sines = np.ascontiguousarray(sines, dtype=np.float64)
        if self.bin_values.shape[0] != self.offsets[n]:
            raise ValueError("bin_values must have one entry for each bin")
        for values in (bin_values, cosines, sines):
            if not np.isfinite(values).all():
                raise ValueError("bin_values, cosines and sines must be finite")
        if not 2 <= self.cosines.shape[0] == self.sines.shape[0]:
            raise ValueError("there must be two orientations at least")
        self.options = options_of(limits)

    def groups(self, const double[:, ::1] histogram not None, int n_threads):
        """Join every feature's bins to groups of like weight, from a node's histogram."""
        cdef:
            int f, n = self.n_features
            Py_ssize_t b
            double weight = 0.0
            Arenas arenas
            double[::1] positions
            double[:, ::1] centres
            uint8_t[::1] of_bin
            uint8_t[::1] rough_of_bin
            int32_t[::1] n_of_feature
            int n_rough, n_channels = histogram.shape[1]
        if histogram.shape[0] != self.offsets[n] or (
                not 0 <= n_channels - self.criterion.info.n_stats <= 1):
            raise ValueError("the histogram's shape does not fit the bins and criterion")
        if n_threads < 1:
            raise ValueError("there must be at least one thread")
        found = (np.zeros(self.offsets[n], dtype=np.uint8), np.zeros(n, dtype=np.int32),
                 np.zeros((n, N_GROUPS)), np.full(self.offsets[n], NAN),
                 np.zeros(self.offsets[n], dtype=np.uint8))
        of_bin, n_of_feature, centres, positions, rough_of_bin = found
        for b in range(self.offsets[1] if n else 0):
            weight += weight_of(&self.criterion.info, &histogram[b, 0])
        n_rough = 16 if weight >= 16 * 16 * WEIGHT_PER_ROUGH_CELL else (
            8 if weight >= 8 * 8 * WEIGHT_PER_ROUGH_CELL else 4)
        arenas = Arenas(n_threads)
        with nogil:
            for f in prange(n, num_threads=n_threads, schedule="dynamic"):
                n_of_feature[f] = self.group_feature(
                    f, &histogram[self.offsets[f], 0], n_channels, n_rough,
                    &of_bin[self.offsets[f]], &rough_of_bin[self.offsets[f]],
                    &positions[self.offsets[f]], &centres[f, 0], &arenas.of_thread[threadid()])
        arenas.finish()
        return Groups(*found, n_rough)

    cdef int group_feature(
        self, int f, const double* cells, int n_channels, int n_rough, uint8_t* group,
        uint8_t* rough, double* position, double* centre, Arena* arena,
    ) noexcept nogil:
        """Fill in one feature's groups; returns how many there are."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Mark mark = arena_mark(arena)
            int64_t offset = self.offsets[f]
            int n_bins = <int> (self.offsets[f + 1] - offset - 1)
            int32_t* present = take_ints(arena, n_bins + 1)
            int32_t* order = take_ints(arena, n_bins + 1)
            double* weight = take_doubles(arena, n_bins + 1)
            double total = 0.0, below = 0.0
            double in_group[N_GROUPS]
            int i, b, n = 0, last = -1, g = -1, here
        if arena.failed:
            return 0
        memset(group, N_GROUPS, n_bins + 1)
        memset(rough, n_rough, n_bins + 1)
        for b in range(n_bins):
            if rows_of(c, cells + b * n_channels, n_channels) > 0.5:
                weight[n] = weight_of(c, cells + b * n_channels)
                total += weight[n]
                present[n] = b
                order[n] = n
                n += 1
        if self.categorical[f]:
            order_categories(c, cells, n_channels, present, n, arena, order)
            if arena.failed:
                return 0
        for i in range(n):
            b = order[i]
            # Equal shares of the weight; a bin lies where its middle does.
            here = 0
            if 0.0 < total < INFINITY:
                here = <int> ((below + 0.5 * weight[b]) * N_GROUPS / total)
                here = max(0, min(here, N_GROUPS - 1))
            if here > last:
                g += 1
                last = here
                centre[g] = 0.0
                in_group[g] = 0.0
            below += weight[b]
            group[present[b]] = g
            if self.categorical[f]:
                position[present[b]] = i
            else:
                centre[g] += weight[b] * self.bin_values[offset + present[b]]
                in_group[g] += weight[b]
        if not self.categorical[f]:
            for i in range(g + 1):
                centre[i] = centre[i] / in_group[i] if in_group[i] > 0.0 else 0.0
        for i in range(n):
            b = present[i]
            rough[b] = group[b] if g < n_rough else group[b] * n_rough // (g + 1)
        arena_release(arena, mark)
        return g + 1

    def losses(self, const double[:, :, ::1] cells not None, double noise, int n_threads):
        """Impurity of each pair's cells, plus the noise of parting them."""
        cdef:
            int p, n_pairs = cells.shape[0], n_cells = cells.shape[1], n_channels = cells.shape[2]
            double[::1] found
        self.check_cells(cells, n_threads)
        losses = np.zeros(n_pairs)
        if n_pairs and n_cells:
            found = losses
            for p in prange(n_pairs, nogil=True, num_threads=n_threads, schedule="static"):
                found[p] = loss_of_cells(
                    &self.criterion.info, &cells[p, 0, 0], n_cells, n_channels, noise)
        return losses

    cdef int check_cells(self, const double[:, :, ::1] cells, int n_threads) except -1:
        if not 0 <= cells.shape[2] - self.criterion.info.n_stats <= 1:
            raise ValueError("cells and criterion differ in their statistics")
        if n_threads < 1:
            raise ValueError("there must be at least one thread")
        return 0

    cdef int check_groups(
        self, const int32_t[::1] n_groups, const double[:, ::1] centres
    ) except -1:
        cdef int f, g
        if n_groups.shape[0] != self.n_features or centres.shape[0] != self.n_features or (
                centres.shape[1] != N_GROUPS):
            raise ValueError("there must be groups of each feature")
        for f in range(self.n_features):
            if not 0 <= n_groups[f] <= N_GROUPS:
                raise ValueError("there must be groups of each feature")
            for g in range(N_GROUPS):
                if not -INFINITY < centres[f, g] < INFINITY:
                    raise ValueError("the groups' centres must be finite")
        return 0

    def screen(
        self,
        const int32_t[:, ::1] pairs not None,       # IN: (n_pairs, 2)
        const double[:, :, ::1] cells not None,     # IN: (n_pairs, ALL_GROUPS ** 2, n_channels)
        groups,                                     # IN: Groups of the node
        const double[::1] information,              # IN: (n_pairs,) what they tell; None to try all
        *,
        int max_branches, double region_penalty, double branch_penalty, uint64_t seed,
        int n_threads,
    ):
        """Grow inner trees on the pairs' grids and send their regions to branches.

        With `information`, a greedy tree and one that starts from a crossing of two cuts; without,
        only those that start from any crossing.

        Returns
        -------
        gains : array (n_pairs,)
            After penalties; -inf for none.
        starts : array (n_pairs,) of START
            How the best inner tree starts.
        """
        cdef:
            Options options = self.options
            int p, n_pairs = pairs.shape[0]
            const int32_t[::1] n_groups = groups.n_of_feature
            const double[:, ::1] centres = groups.centres
            double[::1] gains
            Start[::1] starts
            Arenas arenas
        self.check_cells(cells, n_threads)
        check_pairs(pairs, self.n_features)
        if cells.shape[0] != n_pairs or cells.shape[1] != STRIDE * STRIDE or (
                information is not None and information.shape[0] != n_pairs):
            raise ValueError("there must be cells and information of each pair")
        self.check_groups(n_groups, centres)
        if not 2 <= max_branches <= 254:
            raise ValueError("max_branches must be between 2 and 254")
        options.max_branches = max_branches
        options.region_penalty = region_penalty
        options.branch_penalty = branch_penalty
        options.seed = seed
        found = np.empty(n_pairs), np.empty(n_pairs, dtype=START)
        gains, starts = found
        arenas = Arenas(n_threads)
        with nogil:
            for p in prange(n_pairs, num_threads=n_threads, schedule="dynamic"):
                gains[p] = self.screen_pair(
                    pairs[p, 0], pairs[p, 1], &cells[p, 0, 0], cells.shape[2], &n_groups[0],
                    &centres[0, 0], information is None,
                    0.0 if information is None else information[p], &options,
                    &arenas.of_thread[threadid()], &starts[p])
        arenas.finish()
        return found

    cdef void lay_out(
        self, int first, int second, const double* cells, int n_channels, const int32_t* n_groups,
        const double* centres, const Options* options, Arena* arena, Grid* grid,
    ) noexcept nogil:
        """Gather the cells that hold rows, and the sum of those where a feature is missing."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            int n_a = n_groups[first], n_b = n_groups[second], n_stats = c.n_stats
            int a, b, j, n = 0, rows, h
            size_t room = n_a * n_b
            bint oblique = not (self.categorical[first] or self.categorical[second])
            int n_orientations = self.cosines.shape[0] if oblique else 2
            uint8_t* group_a = <uint8_t*> take_branches(arena, room)
            uint8_t* group_b = <uint8_t*> take_branches(arena, room)
            int32_t* along_a = take_ints(arena, N_GROUPS * n_orientations)
            int32_t* along_b = take_ints(arena, N_GROUPS * n_orientations)
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
                rows = <int> min(0.5 + rows_of(c, cell, n_channels), 2e9)
                if rows <= 0:
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
        for j in range(n_a):
            along_a[j * n_orientations + FIRST_AXIS] = j * N_BUCKETS // n_a * FRACTIONS
            along_a[j * n_orientations + SECOND_AXIS] = 0
        for j in range(n_b):
            along_b[j * n_orientations + FIRST_AXIS] = 0
            along_b[j * n_orientations + SECOND_AXIS] = j * N_BUCKETS // n_b * FRACTIONS
        for h in range(2, n_orientations):
            place_groups(centres + first * N_GROUPS, n_a, centres + second * N_GROUPS, n_b,
                         self.cosines[h], self.sines[h], h, n_orientations, along_a, along_b)
        fill_buckets_of_cells(
            along_a, along_b, group_a, group_b, n, n_orientations, grid.bucket)
        fill_planes(grid)

    cdef double screen_pair(
        self, int first, int second, const double* cells, int n_channels, const int32_t* n_groups,
        const double* centres, bint from_crossings, double information, const Options* options,
        Arena* arena, Start* start,
    ) noexcept nogil:
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Mark mark = arena_mark(arena)
            double* whole = take_doubles(arena, c.n_stats)
            int j
            Grid grid
            PairTree tree
            PairShape best
            double gain = -INFINITY
        start.orientation = -1
        start.share = 0.0
        start.framed = False
        if must_stop(arena, STRIDE * STRIDE * n_channels):
            return -INFINITY
        take_tree(c, options, arena, &tree)
        best.branch = take_branches(arena, tree.room)
        best.objective = INFINITY
        if arena.failed:
            return -INFINITY
        self.lay_out(first, second, cells, n_channels, n_groups, centres, options, arena, &grid)
        if arena.failed:
            return -INFINITY
        if grid.n_cells >= 2:
            if from_crossings:
                grow_from_all_crossings(&grid, options, &tree, &best, start)
            else:
                grow_on_grid(&grid, information, options, &tree, &best, start)
            if arena.failed:
                return -INFINITY
            for j in range(c.n_stats):
                whole[j] = tree.stats[j] + grid.missing[j]
            if best.objective < INFINITY:
                gain = impurity(c, whole) - best.objective
        arena_release(arena, mark)
        return gain
