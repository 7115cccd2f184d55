"""Shape functions of pairs: an oblique inner tree grown on a sample of a node's rows.

A cut sends a row up if `a * u + b * v > threshold`, where u and v are the two features' values in
the user's units, or the positions of their categories. Orientations are (a, b) = (1, 0) and (0, 1),
the axes, and (1, b) for the oblique ones. Rows that lack either feature are a region of their own.
"""

from typing import NamedTuple

import numpy as np

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from shapetree._core.arena cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, take_branches, take_doubles, take_ints,
)
from shapetree._core.columns cimport FLOAT32, FLOAT64, INT32, Column, Columns, side_at
from shapetree._core.criterion cimport Criterion, CriterionInfo, impurity
from shapetree._core.grid cimport Start, check_pairs
from shapetree._core.histogram cimport NodeTargets, Targets, add_row, check_rows
from shapetree._core.pair_start cimport grow_from
from shapetree._core.pair_tree cimport (
    HIDDEN, INNER, MAX_REGIONS, PairNode, PairShape, PairTree, choose_branches, grow, max_leaves_of,
    take_tree,
)
from shapetree._core.points cimport (
    Points, copy_orders, find_cut, part_points, plant, sort_points,
)
from shapetree._core.search cimport Options, options_of

cdef extern from "parting.h":
    double in_digits(double number, int digits) noexcept nogil

cdef enum:
    SLOPE_DIGITS = 3         # of an oblique cut's weight, which people read
    BYTES_TOGETHER = 1 << 24  # of pairs that are fitted together, unless one takes more


ctypedef struct PairFit:
    # A pair on its way to a shape function.
    Points points            # in order along each orientation
    double* missing          # statistics of the rows that lack a feature
    int n_missing
    Start start
    bint has_start
    PairTree tree            # that grows greedily
    PairTree other_tree      # that grows from the start
    Mark mark                # of the arena that holds all this


cdef class PairFitArray:
    """Room for the fits of some pairs."""

    cdef PairFit* fits

    def __cinit__(self, Py_ssize_t n):
        self.fits = <PairFit*> calloc(n, sizeof(PairFit))
        if self.fits == NULL:
            raise MemoryError("no memory for a search")

    def __dealloc__(self):
        free(self.fits)


cdef void take_scratch(Points* points, bint with_orders, Arena* arena) noexcept nogil:
    """Take what a tree needs to part the points, and orders of its own if others want these."""
    cdef:
        int h
        int32_t** order = points.order
    points.arena = arena
    points.is_above = <uint8_t*> take_branches(arena, points.n)
    points.scratch = take_ints(arena, points.n)
    if with_orders:
        points.order = <int32_t**> take_doubles(arena, points.n_orientations)
        if arena.failed:
            return
        for h in range(points.n_orientations):
            points.order[h] = take_ints(arena, points.n) if order[h] != NULL else NULL


cdef void grow_greedily(PairFit* fit, const Options* options, Arena* arena) noexcept nogil:
    """Grow an inner tree, the best cut first."""
    cdef:
        Mark mark = arena_mark(arena)
        Points points = fit.points
    if points.n < 2:
        return
    take_scratch(&points, fit.has_start, arena)
    if arena.failed:
        return
    copy_orders(&points, fit.points.order)
    plant(&points, &fit.tree)
    find_cut(&points, &fit.tree, 0)
    grow(&fit.tree, max_leaves_of(options), options.inner_max_depth, &points, find_cut,
         part_points)
    arena_release(arena, mark)


cdef void grow_from_start(PairFit* fit, const Options* options, Arena* arena) noexcept nogil:
    """Grow an inner tree whose root is cut as the start says, if there is a start."""
    cdef:
        Mark mark = arena_mark(arena)
        Points points = fit.points
    if not fit.has_start or points.n < 2:
        return
    take_scratch(&points, True, arena)
    if arena.failed:
        return
    if fit.start.framed:
        points.first_active = fit.start.orientation
        points.stop_active = min(fit.start.orientation + 2, points.n_orientations)
    grow_from(&points, &fit.other_tree, fit.start, fit.points.order, options)
    arena_release(arena, mark)


class PairFits(NamedTuple):
    """Shape functions of some pairs.

    Attributes
    ----------
    gains, penalised_gains : arrays (n_pairs,)
        In units of mass; -inf where a pair has no eligible shape function.
    n_branches, missing_branch, n_nodes : int32 arrays (n_pairs,)
        The missing branch is -1 if no row lacks a feature.
    a, b, threshold : arrays (n_pairs, room)
        Cuts of the inner trees.
    low, branch : int32 arrays (n_pairs, room)
        The child below a cut, the one above follows it; and the branch of a region. -1 if it has
        none.
    """

    gains: object
    penalised_gains: object
    n_branches: object
    missing_branch: object
    n_nodes: object
    a: object
    b: object
    threshold: object
    low: object
    branch: object


cdef class Results:
    """What the fits of some pairs write to."""

    cdef double[::1] gains
    cdef double[::1] penalised_gains
    cdef int32_t[::1] n_branches
    cdef int32_t[::1] missing_branch
    cdef int32_t[::1] n_nodes
    cdef double[:, ::1] a
    cdef double[:, ::1] b
    cdef double[:, ::1] threshold
    cdef int32_t[:, ::1] low
    cdef int32_t[:, ::1] branch

    def __init__(self, fits):
        (self.gains, self.penalised_gains, self.n_branches, self.missing_branch, self.n_nodes,
         self.a, self.b, self.threshold, self.low, self.branch) = fits


cdef class PairFitter:
    """Fits shape functions of pairs to samples of nodes.

    Parameters
    ----------
    criterion : Criterion
    slopes : array (n_orientations,)
        Tangents of the oblique orientations of the standardised pair; the first two entries, for
        the axes, are not used.
    exact : bool
        Whether heavy regions, too, are searched row by row.
    inner_max_leaves, inner_min_rows, inner_max_depth, assignment, min_rows, min_weight :
        Options that hold for every node.
    """

    cdef Criterion criterion
    cdef Options options
    cdef const double[::1] slopes
    cdef bint exact
    cdef int room

    def __init__(self, Criterion criterion not None, slopes, *, bint exact=False, **limits):
        self.criterion = criterion
        self.slopes = np.ascontiguousarray(slopes, dtype=np.float64)
        if self.slopes.shape[0] < 2:
            raise ValueError("there must be two orientations at least")
        self.exact = exact
        self.options = options_of(limits)
        self.room = 2 * max_leaves_of(&self.options) - 1

    def fit(
        self,
        Columns columns not None,                   # IN: the sample's numbers, or category codes
        const double[::1] scales not None,          # IN: (n_columns,) the columns' units
        const int64_t[::1] offsets not None,        # IN: (n_columns + 1,) of `positions`
        const double[::1] positions not None,       # IN: categories' places; NaN for none
        Targets targets not None,                   # IN: of the sample
        const int32_t[::1] rows not None,           # IN: rows of the sample that are looked at
        const int32_t[:, ::1] pairs not None,       # IN: (n_pairs, 2) columns
        const Start[::1] starts not None,           # IN: (n_pairs,) how their inner trees start
        *,
        int max_branches, double region_penalty, double branch_penalty, uint64_t seed,
        int n_threads,
        double scale=1.0,                           # IN: rows of the node for each of the sample's
    ):
        """Fit the pairs, all in units of the sample; returns PairFits."""
        cdef:
            Options options = self.options
            NodeTargets node
            Arenas kept, arenas
            Results results
            PairFitArray pair_fits
            int p, f, n_pairs = pairs.shape[0]
            Py_ssize_t n = rows.shape[0], first, together
        for f in range(columns.n_columns):
            if columns.column[f].kind not in (INT32, FLOAT32, FLOAT64):
                raise ValueError(f"column {f} holds neither numbers nor categories")
        if starts.shape[0] != n_pairs:
            raise ValueError("there must be one start for each pair")
        check_pairs(pairs, columns.n_columns)
        for p in range(n_pairs):
            if starts[p].orientation >= self.slopes.shape[0]:
                raise ValueError("a start's orientation does not exist")
        if scales.shape[0] != columns.n_columns:
            raise ValueError("there must be a scale for each column")
        if offsets.shape[0] != columns.n_columns + 1 or offsets[0] < 0 or (
                positions.shape[0] < offsets[columns.n_columns]):
            raise ValueError("positions must have room for every column's categories")
        for f in range(columns.n_columns):
            if offsets[f + 1] < offsets[f]:
                raise ValueError("positions must have room for every column's categories")
        check_rows(rows, min(columns.n_rows, targets.n_rows))
        if not 1 <= n <= targets.n_rows or n_threads < 1 or not 2 <= max_branches <= 254 or (
                not 0.0 < scale < INFINITY):
            raise ValueError("rows, max_branches, scale or n_threads out of range")
        if targets.n_stats != self.criterion.info.n_stats:
            raise ValueError("targets and criterion differ in their statistics")
        shape = n_pairs, self.room
        fits = PairFits(
            np.full(n_pairs, -np.inf), np.full(n_pairs, -np.inf),
            np.zeros(n_pairs, dtype=np.int32), np.full(n_pairs, -1, dtype=np.int32),
            np.zeros(n_pairs, dtype=np.int32), np.zeros(shape), np.zeros(shape), np.zeros(shape),
            np.full(shape, -1, dtype=np.int32), np.full(shape, -1, dtype=np.int32))
        results = Results(fits)
        options.max_branches = max_branches
        options.region_penalty = region_penalty
        options.branch_penalty = branch_penalty
        options.seed = seed
        # Points of pairs last longer than what a thread needs at a time.
        together = BYTES_TOGETHER // (n * (4 * self.slopes.shape[0] + 32))
        together = max(1, min(n_pairs, together))
        n_threads = <int> min(n_threads, max(2 * n_pairs, self.slopes.shape[0]))
        kept, arenas = Arenas(<int> together + 1), Arenas(n_threads)
        pair_fits = PairFitArray(together)
        node = targets.gather(&rows[0], n, &kept.of_thread[together])
        kept.finish()
        for first in range(0, n_pairs, together):
            self.fit_some(
                columns, pairs, scales, offsets, positions, &node, rows, starts, scale, &options,
                first, min(first + together, n_pairs), pair_fits.fits, kept, arenas, n_threads,
                results)
        return fits

    cdef int fit_some(
        self, Columns columns, const int32_t[:, ::1] pairs, const double[::1] scales,
        const int64_t[::1] offsets, const double[::1] positions, const NodeTargets* node,
        const int32_t[::1] rows, const Start[::1] starts, double scale, const Options* options,
        Py_ssize_t first, Py_ssize_t last, PairFit* fits, Arenas kept, Arenas arenas,
        int n_threads, Results results,
    ) except -1:
        """Fit the pairs first..last-1.

        Threads share out the pairs, then the orientations along which their points are sorted,
        then the inner trees: up to two for each pair.
        """
        cdef:
            Py_ssize_t p, task, n = last - first, n_orientations = self.slopes.shape[0]
            const double* places = &positions[0] if positions.shape[0] else NULL
        for p in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic"):
            self.lay_out(
                columns, pairs[first + p, 0], pairs[first + p, 1],
                scales[pairs[first + p, 0]] / scales[pairs[first + p, 1]], starts[first + p],
                &offsets[0], places, node, &rows[0], <int> rows.shape[0], scale, options,
                &kept.of_thread[p], &fits[p])
        kept.finish()
        for task in prange(n * n_orientations, nogil=True, num_threads=n_threads,
                           schedule="dynamic"):
            sort_points(
                &fits[task // n_orientations].points, <int> (task % n_orientations),
                &arenas.of_thread[threadid()])
        arenas.finish()
        for task in prange(2 * n, nogil=True, num_threads=n_threads, schedule="dynamic"):
            if task < n:
                grow_greedily(&fits[task], options, &arenas.of_thread[threadid()])
            else:
                grow_from_start(&fits[task - n], options, &arenas.of_thread[threadid()])
        arenas.finish()
        for p in prange(n, nogil=True, num_threads=n_threads, schedule="dynamic"):
            self.choose(&fits[p], options, first + p, &arenas.of_thread[threadid()], results)
            arena_release(&kept.of_thread[p], fits[p].mark)
        arenas.finish()
        return 0

    cdef int gather_points(
        self, Columns columns, int first, int second, const int64_t* offsets,
        const double* positions, const int32_t* rows, int n, const NodeTargets* targets,
        double* missing, int32_t* place, double* u, double* v,
    ) noexcept nogil:
        """Values of the rows that have both features; the others are summed up as missing."""
        cdef:
            int i, n_points = 0
            const Column* one = &columns.column[first]
            const Column* other = &columns.column[second]
            double x, y
        for i in range(n):
            x = side_at(one, rows[i], positions + offsets[first],
                        <int> (offsets[first + 1] - offsets[first]))
            y = side_at(other, rows[i], positions + offsets[second],
                        <int> (offsets[second + 1] - offsets[second]))
            if x != x or y != y:
                add_row(targets, i, missing)
                continue
            u[n_points] = x
            v[n_points] = y
            place[n_points] = i
            n_points += 1
        return n_points

    cdef void fill_orientations(self, double ratio, double* a, double* b) noexcept nogil:
        """Orientations in the user's units; b is 0 for those that rounding makes useless."""
        cdef int h
        a[0] = 1.0
        b[0] = 0.0
        a[1] = 0.0
        b[1] = 1.0
        for h in range(2, self.slopes.shape[0]):
            a[h] = 1.0
            b[h] = in_digits(self.slopes[h] * ratio, SLOPE_DIGITS)
            if not 1e-300 < fabs(b[h]) < 1e300:
                b[h] = 0.0

    cdef void lay_out(
        self, Columns columns, int first, int second, double ratio, Start start,
        const int64_t* offsets, const double* positions, const NodeTargets* targets,
        const int32_t* rows, int n, double scale, const Options* options, Arena* arena,
        PairFit* fit,
    ) noexcept nogil:
        """Gather a pair's points, with room for their orders and for inner trees."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            Points* points = &fit.points
            bint oblique = (columns.column[first].kind != INT32
                            and columns.column[second].kind != INT32)
            int n_orientations = self.slopes.shape[0] if oblique else 2
            int32_t* place
            double* u
            double* v
            double* a
            double* b
            int h
        fit.mark = arena_mark(arena)
        fit.missing = take_doubles(arena, targets.n_channels)
        place = take_ints(arena, n)
        u = take_doubles(arena, n)
        v = take_doubles(arena, n)
        a = take_doubles(arena, self.slopes.shape[0])
        b = take_doubles(arena, self.slopes.shape[0])
        points.order = <int32_t**> take_doubles(arena, n_orientations)
        points.label = NULL
        points.weight = NULL
        if targets.labels != NULL and targets.n_outputs == 1:
            points.label = take_ints(arena, n)
        if targets.weights != NULL:
            points.weight = take_doubles(arena, n)
        take_tree(c, options, arena, &fit.tree)
        take_tree(c, options, arena, &fit.other_tree)
        if arena.failed:
            return
        memset(fit.missing, 0, targets.n_channels * sizeof(double))
        self.fill_orientations(ratio, a, b)
        fit.start = start
        fit.has_start = (0 <= start.orientation < n_orientations
                         and (start.orientation < 2 or b[start.orientation] != 0.0)
                         and options.inner_max_leaves >= 4 and options.inner_max_depth >= 2)
        points.n = self.gather_points(
            columns, first, second, offsets, positions, rows, n, targets, fit.missing, place, u, v)
        fit.n_missing = n - points.n
        if targets.counts != NULL:
            fit.n_missing = <int> fit.missing[targets.n_stats]
        points.c = c
        points.targets = targets
        points.place = place
        for h in range(points.n):
            if points.label != NULL:
                points.label[h] = targets.labels[place[h]]
            if points.weight != NULL:
                points.weight[h] = targets.weights[place[h]]
        points.u = u
        points.v = v
        points.n_orientations = n_orientations
        points.first_active = 0
        points.stop_active = n_orientations
        points.a = a
        points.b = b
        points.min_rows = max(options.inner_min_rows, options.min_rows)
        points.exact = self.exact
        points.region_penalty = options.region_penalty
        points.scale = scale
        for h in range(n_orientations):
            points.order[h] = take_ints(arena, n) if h < 2 or b[h] != 0.0 else NULL

    cdef void choose(
        self, PairFit* fit, const Options* options, Py_ssize_t p, Arena* arena, Results results
    ) noexcept nogil:
        """Send the regions of a pair's inner trees to branches, and note the better tree."""
        cdef:
            Mark mark = arena_mark(arena)
            const CriterionInfo* c = &self.criterion.info
            const PairTree* best_tree = &fit.tree
            PairShape best
            double objective
        best.branch = take_branches(arena, fit.tree.room)
        best.objective = INFINITY
        if arena.failed or fit.points.n < 2:
            return
        choose_branches(c, &fit.tree, fit.missing, fit.n_missing, options, arena, &best)
        if fit.has_start:
            objective = best.objective
            choose_branches(c, &fit.other_tree, fit.missing, fit.n_missing, options, arena, &best)
            if best.objective < objective:
                best_tree = &fit.other_tree
        if best.objective < INFINITY and not arena.failed:
            self.note(<int> p, &fit.points, best_tree, &best, fit.missing, results)
        arena_release(arena, mark)

    cdef void note(
        self, int p, const Points* points, const PairTree* tree, const PairShape* best,
        double* missing, Results results,
    ) noexcept nogil:
        """Write down a pair's results, without the nodes that were pruned."""
        cdef:
            const CriterionInfo* c = &self.criterion.info
            int32_t number[2 * MAX_REGIONS]
            const PairNode* node
            int i, j, n_kept = 1
            double whole
        number[0] = 0
        for i in range(tree.n_nodes):
            node = &tree.nodes[i]
            if node.low >= 0 and best.branch[i] == INNER:
                number[node.low] = n_kept
                number[node.low + 1] = n_kept + 1
                n_kept += 2
        for i in range(tree.n_nodes):
            node = &tree.nodes[i]
            if best.branch[i] == INNER:
                j = number[i]
                results.a[p, j] = points.a[node.orientation]
                results.b[p, j] = points.b[node.orientation]
                results.threshold[p, j] = node.threshold
                results.low[p, j] = number[node.low]
            elif best.branch[i] != HIDDEN:
                results.branch[p, number[i]] = best.branch[i]
        for j in range(c.n_stats):
            missing[j] += tree.stats[j]
        whole = impurity(c, missing)
        results.n_nodes[p] = n_kept
        results.gains[p] = whole - best.loss
        results.penalised_gains[p] = whole - best.objective
        results.n_branches[p] = best.n_branches
        results.missing_branch[p] = best.missing_branch
