"""Grids: a pair's cells, and the oblique inner tree that grows on them instead of the rows.

A greedy tree is blind to a checkerboard, where no first cut gains anything. So the best crossing of
two cuts at right angles is looked for, too, and other trees start from there.
"""

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from shapetree._core.arena cimport Arena, Mark, arena_mark, arena_release, take_doubles
from shapetree._core.criterion cimport (
    ENTROPY, CriterionInfo, impurity, n_values, value_of, weight_of,
)
from shapetree._core.histogram cimport NodeTargets, add_row
from shapetree._core.pair_tree cimport (
    PairNode, PairShape, PairTree, add_children, choose_branches, grow, set_price,
)
from shapetree._core.search cimport Options

cdef extern from "vector.h":
    void best_cuts_of_orientations(
        const double* buckets, const double* total, int n_buckets, int n_planes, int n_values,
        int rows_plane, int n_lanes, int n_outputs, bint entropy, double min_rows, double* prefix,
        double* here, double* loss, double* position) noexcept nogil
    void loss_of_crossings(
        const double* image, int m, int n_stats, int n_outputs, bint entropy, double* loss
    ) noexcept nogil

cdef enum:
    N_CROSSING = 16          # buckets of a projection where crossings are sought

# A greedy tree that tells this share of what its pair has to tell is good enough.
cdef double GREEDY_SHARE = 0.8


cdef double* sum_cells(
    const NodeTargets* targets, const uint8_t* code_a, const uint8_t* code_b, Py_ssize_t n,
    int stride, Arena* arena,
) noexcept nogil:
    """Table of a pair's cells, (stride * stride, n_channels), from the codes of the rows."""
    cdef:
        int n_channels = targets.n_channels
        double* cells = take_doubles(arena, <size_t> stride * stride * n_channels)
        Py_ssize_t k
    if arena.failed:
        return NULL
    memset(cells, 0, <size_t> stride * stride * n_channels * sizeof(double))
    if targets.n_outputs == 1 and targets.labels != NULL and targets.weights == NULL:
        for k in range(n):
            cells[(code_a[k] * stride + code_b[k]) * n_channels + targets.labels[k]] += 1.0
    else:
        for k in range(n):
            add_row(targets, k, cells + (code_a[k] * stride + code_b[k]) * n_channels)
    return cells


cdef inline int bucket_of(const Grid* grid, int orientation, int cell) noexcept nogil:
    """Where a cell lies along an orientation."""
    return grid.bucket[cell * grid.n_orientations + orientation]


cdef void fill_planes(Grid* grid) noexcept nogil:
    """Fill in what cuts are chosen by, once the cells' statistics are there."""
    cdef:
        const CriterionInfo* c = grid.c
        int i, j, n_stats = c.n_stats
        bint weighted = False
        double* planes
        const double* s
    for i in range(grid.n_cells):
        weighted |= weight_of(c, grid.stats + i * n_stats) != grid.n_rows[i]
    grid.n_values = n_values(c)
    grid.n_planes = 1 + grid.n_values + weighted
    grid.rows_plane = 1 + grid.n_values if weighted else 0
    grid.planes = take_doubles(grid.arena, <size_t> grid.n_cells * grid.n_planes)
    if grid.arena.failed:
        return
    for i in range(grid.n_cells):
        planes = grid.planes + i * grid.n_planes
        s = grid.stats + i * n_stats
        planes[grid.rows_plane] = grid.n_rows[i]
        planes[0] = weight_of(c, s)
        for j in range(grid.n_values):
            planes[1 + j] = value_of(c, s, j)


cdef double gain_of_cut(
    Grid* grid, const PairNode* node, const double* total, int orientation, int position
) noexcept nogil:
    """Impurity that a cut of a leaf with these statistics takes away."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int n_stats = grid.c.n_stats, i, j, cell
        double* low = take_doubles(grid.arena, n_stats)
        double* high = take_doubles(grid.arena, n_stats)
        double gain
    if grid.arena.failed:
        return 0.0
    memset(low, 0, n_stats * sizeof(double))
    for i in range(node.start, node.stop):
        cell = grid.order[i]
        if bucket_of(grid, orientation, cell) < position:
            for j in range(n_stats):
                low[j] += grid.stats[cell * n_stats + j]
    for j in range(n_stats):
        high[j] = total[j] - low[j]
    gain = impurity(grid.c, total) - impurity(grid.c, low) - impurity(grid.c, high)
    arena_release(grid.arena, mark)
    return gain


cdef void describe_and_cut(void* points, PairTree* tree, int leaf) noexcept nogil:
    """Sum a leaf's cells and find its best cut between buckets of any orientation."""
    cdef:
        Grid* grid = <Grid*> points
        const CriterionInfo* c = grid.c
        PairNode* node = &tree.nodes[leaf]
        int n_stats = c.n_stats, i, j, cell
        double* total = tree.stats + leaf * n_stats
    node.n_rows = 0
    node.orientation = -1
    node.gain = 0.0
    memset(total, 0, n_stats * sizeof(double))
    for i in range(node.start, node.stop):
        cell = grid.order[i]
        node.n_rows += grid.n_rows[cell]
        for j in range(n_stats):
            total[j] += grid.stats[cell * n_stats + j]
    set_price(c, grid.region_penalty, tree, leaf)
    if node.n_rows >= 2 * <int64_t> grid.min_rows and node.stop - node.start > 1:
        find_cut(grid, node, total)


cdef void find_cut(Grid* grid, PairNode* node, const double* total) noexcept nogil:
    """Find a leaf's best cut, all orientations at once."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int first = grid.first_active, n_active = grid.stop_active - first
        int n_planes = grid.n_planes
        # Lanes of a vector register.
        int n_lanes = (n_active + 7) // 8 * 8 if n_active > 4 else 4
        size_t size = n_planes * n_lanes
        double* buckets = take_doubles(grid.arena, N_BUCKETS * size)
        double* prefix = take_doubles(grid.arena, size)
        double* sums = take_doubles(grid.arena, n_planes)
        double* here = take_doubles(grid.arena, n_lanes)
        double* loss = take_doubles(grid.arena, n_lanes)
        double* position = take_doubles(grid.arena, n_lanes)
        const double* planes
        const uint8_t* bucket
        double* at
        double least
        int i, j, h, cell, best = -1
    if grid.arena.failed:
        return
    memset(buckets, 0, N_BUCKETS * size * sizeof(double))
    memset(sums, 0, n_planes * sizeof(double))
    for i in range(node.start, node.stop):
        cell = grid.order[i]
        planes = grid.planes + cell * n_planes
        bucket = grid.bucket + cell * grid.n_orientations + first
        for j in range(n_planes):
            sums[j] += planes[j]
        for h in range(n_active):
            at = buckets + bucket[h] * size + h
            for j in range(n_planes):
                at[j * n_lanes] += planes[j]
    best_cuts_of_orientations(
        buckets, sums, N_BUCKETS, n_planes, grid.n_values, grid.rows_plane, n_lanes,
        grid.c.n_outputs, grid.c.kind == ENTROPY, grid.min_rows, prefix, here, loss, position)
    least = INFINITY
    for h in range(n_active):
        # Rounding must not choose: of equals, the first wins, and the axes come first.
        if position[h] > 0.0 and loss[h] < least - 1e-10 * sums[0]:
            least = loss[h]
            best = h
    if best >= 0:
        node.orientation = first + best
        node.threshold = position[best]
        node.gain = gain_of_cut(grid, node, total, first + best, <int> position[best])
    arena_release(grid.arena, mark)


cdef void part_cells(void* points, PairTree* tree, int leaf) noexcept nogil:
    """Bring the cells below a leaf's cut before those above it."""
    cdef:
        Grid* grid = <Grid*> points
        PairNode* node = &tree.nodes[leaf]
        int i, cell, n_low = 0, n_high = 0
    for i in range(node.start, node.stop):
        cell = grid.order[i]
        if bucket_of(grid, node.orientation, cell) < node.threshold:
            grid.order[node.start + n_low] = cell
            n_low += 1
        else:
            grid.scratch[n_high] = cell
            n_high += 1
    node.position = node.start + n_low
    memcpy(grid.order + node.position, grid.scratch, n_high * sizeof(int32_t))


ctypedef struct Crossing:
    int orientation          # of its first cut; its second is perpendicular
    int bucket               # first one above the first cut
    double loss              # but for a constant that is the same for all of a pair's crossings


cdef Crossing best_crossing(Grid* grid, int orientation) noexcept nogil:
    """The best crossing of cuts along an orientation and the next one; orientation -1 if none."""
    cdef:
        Mark mark = arena_mark(grid.arena)
        int side = N_CROSSING + 1, plane = side * side, n_images = grid.n_values + 1
        double* image = take_doubles(grid.arena, n_images * plane)
        double* loss = take_doubles(grid.arena, (N_CROSSING - 1) * (N_CROSSING - 1))
        double* at
        const double* planes
        double along_row
        int i, j, row, column
        Crossing best
    best.orientation = -1
    best.bucket = 0
    best.loss = INFINITY
    if grid.arena.failed:
        return best
    memset(image, 0, n_images * plane * sizeof(double))
    for i in range(grid.n_cells):
        row = 1 + bucket_of(grid, orientation + 1, i) * N_CROSSING // N_BUCKETS
        column = 1 + bucket_of(grid, orientation, i) * N_CROSSING // N_BUCKETS
        at = image + row * side + column
        planes = grid.planes + i * grid.n_planes
        for j in range(n_images):
            at[j * plane] += planes[j]
    for j in range(n_images):
        at = image + j * plane
        for row in range(1, side):
            along_row = 0.0
            for column in range(1, side):
                along_row += at[row * side + column]
                at[row * side + column] = along_row + at[(row - 1) * side + column]
    loss_of_crossings(
        image, N_CROSSING, grid.n_values, grid.c.n_outputs, grid.c.kind == ENTROPY, loss)
    for row in range(N_CROSSING - 1):
        for column in range(N_CROSSING - 1):
            if loss[row * (N_CROSSING - 1) + column] < best.loss:
                best.loss = loss[row * (N_CROSSING - 1) + column]
                best.orientation = orientation
                best.bucket = (column + 1) * N_BUCKETS // N_CROSSING
    arena_release(grid.arena, mark)
    return best


cdef void plant(Grid* grid, PairTree* tree) noexcept nogil:
    """Start a tree with all cells in one leaf, which keeps its description if it has one."""
    cdef int i
    for i in range(grid.n_cells):
        grid.order[i] = i
    tree.n_nodes = 1
    tree.nodes[0].low = -1
    tree.nodes[0].depth = 0
    tree.nodes[0].start = 0
    tree.nodes[0].stop = grid.n_cells


cdef void plant_crossing(Grid* grid, const Crossing* crossing, PairTree* tree) noexcept nogil:
    """Start a tree whose root is cut by a crossing's first line."""
    plant(grid, tree)
    tree.nodes[0].orientation = crossing.orientation
    tree.nodes[0].threshold = crossing.bucket
    part_cells(grid, tree, 0)
    add_children(tree, 0)
    describe_and_cut(grid, tree, 1)
    describe_and_cut(grid, tree, 2)


cdef double gain_of_leaves(const CriterionInfo* c, const PairTree* tree) noexcept nogil:
    cdef:
        int node
        double gain = impurity(c, tree.stats)
    for node in range(tree.n_nodes):
        if tree.nodes[node].low < 0:
            gain -= impurity(c, tree.stats + node * c.n_stats)
    return gain


cdef void grow_and_choose(
    Grid* grid, const Options* options, PairTree* tree, PairShape* best
) noexcept nogil:
    """Grow what was planted, and update `best` if its regions make a better shape function."""
    if grid.arena.failed:
        return
    grow(tree, options.inner_max_leaves, options.inner_max_depth, grid, describe_and_cut,
         part_cells)
    choose_branches(grid.c, tree, grid.missing, grid.n_missing, options, grid.arena, best)


cdef void grow_from_crossing(
    Grid* grid, const Crossing* crossing, bint framed, const Options* options, PairTree* tree,
    PairShape* best, Start* start,
) noexcept nogil:
    """Grow a tree from a crossing; if it is framed, along the crossing's two orientations only."""
    cdef double share, before = best.objective
    grid.first_active = crossing.orientation if framed else 0
    grid.stop_active = crossing.orientation + 2 if framed else grid.n_orientations
    plant_crossing(grid, crossing, tree)
    if tree.nodes[1].n_rows == 0 or tree.nodes[2].n_rows == 0:
        return
    share = tree.nodes[1].n_rows / <double> tree.nodes[0].n_rows
    grow_and_choose(grid, options, tree, best)
    if best.objective < before:
        start.orientation = crossing.orientation
        start.share = share
        start.framed = framed


cdef void grow_on_grid(
    Grid* grid, double information, const Options* options, PairTree* tree, PairShape* best,
    Start* start,
) noexcept nogil:
    """Grow a greedy tree and others that start from crossings, and keep the best.

    From the best crossing a tree grows greedily on. From the best one of each pair of
    perpendicular orientations, another grows along these two only: greedy oblique cuts would cut
    the corners of a checkerboard's squares. All these are spared where the greedy tree tells most
    of what the pair has to tell, `information`. `start` is updated if one of them is the best.
    """
    cdef:
        int h
        Crossing crossing, best_of_all
    grid.first_active = 0
    grid.stop_active = grid.n_orientations
    plant(grid, tree)
    describe_and_cut(grid, tree, 0)
    grow_and_choose(grid, options, tree, best)
    if grid.arena.failed or options.inner_max_leaves < 4 or options.inner_max_depth < 2 or (
            gain_of_leaves(grid.c, tree) >= GREEDY_SHARE * information):
        return
    best_of_all.orientation = -1
    best_of_all.loss = INFINITY
    for h in range(0, grid.n_orientations - 1, 2):
        crossing = best_crossing(grid, h)
        if crossing.orientation >= 0 and not grid.arena.failed:
            grow_from_crossing(grid, &crossing, True, options, tree, best, start)
            if crossing.loss < best_of_all.loss:
                best_of_all = crossing
    if best_of_all.orientation >= 0 and not grid.arena.failed:
        grow_from_crossing(grid, &best_of_all, False, options, tree, best, start)
