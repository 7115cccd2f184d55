"""Inner trees of pairs from a given first cut: that of a checkerboard gains nothing alone."""

from libc.math cimport INFINITY, ceil
from libc.stdint cimport int32_t, uint8_t
from libc.string cimport memset

from shapetree._core.arena cimport Mark, arena_mark, arena_release, take_branches, take_doubles
from shapetree._core.criterion cimport impurity
from shapetree._core.grid cimport Start
from shapetree._core.histogram cimport add_row
from shapetree._core.pair_tree cimport PairNode, PairTree, add_children, grow, max_leaves_of
from shapetree._core.points cimport (
    Points, along, copy_orders, find_cut, part_points, plant, set_threshold,
)
from shapetree._core.search cimport Options

cdef enum:
    MAX_SWEEPS = 4


cdef bint cut_root_at(
    Points* points, PairTree* tree, int orientation, int position
) noexcept nogil:
    """Cut a fresh tree at the first possible position from `position` on; whether there is one."""
    cdef:
        PairNode* root = &tree.nodes[0]
        const int32_t* order = points.order[orientation]
        int j, n_stats = points.c.n_stats
    plant(points, tree)
    while position < points.n and (
            along(points, orientation, order[position - 1])
            == along(points, orientation, order[position])):
        position += 1
    if position >= points.n:
        return False
    root.orientation = orientation
    root.position = position
    root.gain = 0.0
    set_threshold(points, root)
    part_points(points, tree, 0)
    add_children(tree, 0)
    find_cut(points, tree, 1)
    find_cut(points, tree, 2)
    for j in range(n_stats):
        tree.stats[j] = tree.stats[n_stats + j] + tree.stats[2 * n_stats + j]
    return tree.nodes[1].orientation >= 0 and tree.nodes[2].orientation >= 0


cdef inline void add_scaled(
    double* stats, double factor, const double* row, int n_stats
) noexcept nogil:
    cdef int j
    for j in range(n_stats):
        stats[j] += factor * row[j]


cdef int best_root_position(Points* points, const PairTree* tree, double* least) noexcept nogil:
    """Where the root's cut is best if both its children keep theirs; `least` is the impurity."""
    cdef:
        Mark mark = arena_mark(points.arena)
        const PairNode* root = &tree.nodes[0]
        const PairNode* child
        const int32_t* order = points.order[root.orientation]
        int n_stats = points.c.n_stats, i, j, best = -1
        double* quadrant = take_doubles(points.arena, 4 * n_stats)
        double* row = take_doubles(points.arena, points.targets.n_channels)
        double loss, here, last = 0.0
        uint8_t* side = <uint8_t*> take_branches(points.arena, 2 * <size_t> points.n)
    if points.arena.failed:
        return -1
    memset(quadrant, 0, 4 * n_stats * sizeof(double))
    for i in range(points.n):
        for j in range(2):
            child = &tree.nodes[1 + j]
            side[2 * i + j] = along(points, child.orientation, i) > child.threshold
        memset(row, 0, points.targets.n_channels * sizeof(double))
        add_row(points.targets, points.place[i], row)
        add_scaled(quadrant + (2 + side[2 * i + 1]) * n_stats, 1.0, row, n_stats)
    least[0] = INFINITY
    for i in range(points.n):
        here = along(points, root.orientation, order[i])
        if i > 0 and here != last:
            loss = 0.0
            for j in range(4):
                loss += impurity(points.c, quadrant + j * n_stats)
            if loss < least[0]:
                least[0] = loss
                best = i
        last = here
        memset(row, 0, points.targets.n_channels * sizeof(double))
        add_row(points.targets, points.place[order[i]], row)
        add_scaled(quadrant + (2 + side[2 * order[i] + 1]) * n_stats, -1.0, row, n_stats)
        add_scaled(quadrant + side[2 * order[i]] * n_stats, 1.0, row, n_stats)
    arena_release(points.arena, mark)
    return best


cdef int position_of_share(
    const Points* points, const int32_t* order, double share
) noexcept nogil:
    """How many points of an order, one at least and not all, hold a share of the weight."""
    cdef:
        double total = 0.0, below = 0.0
        int i
    share -= 1e-9    # rounding must not choose
    if points.weight == NULL:
        return max(1, min(points.n - 1, <int> ceil(share * points.n)))
    for i in range(points.n):
        total += points.weight[i]
    for i in range(points.n - 1):
        below += points.weight[order[i]]
        if below >= share * total:
            return i + 1
    return max(1, points.n - 1)


cdef void grow_from(
    Points* points, PairTree* tree, Start start, int32_t** sorted_order, const Options* options
) noexcept nogil:
    """Grow a tree whose root is cut as a start says.

    The root's position and its children's cuts are adapted to each other in turns.
    """
    cdef:
        double share = start.share if 0.0 <= start.share <= 1.0 else 0.5
        int position = position_of_share(points, sorted_order[start.orientation], share)
        int before
        double loss, least = INFINITY
    for _ in range(MAX_SWEEPS):
        copy_orders(points, sorted_order)
        if not cut_root_at(points, tree, start.orientation, position) or points.arena.failed:
            return
        before = tree.nodes[0].position
        position = best_root_position(points, tree, &loss)
        if position < 0 or position == before or not loss < least:
            break
        least = loss
    grow(tree, max_leaves_of(options), options.inner_max_depth, points, find_cut, part_points)
