"""Inner trees of pairs: a plane cut into regions, and the regions sent to branches.

The tree grows best cut first, whatever its points are: cells of a grid, or rows. Then its leaves
get branches, and it is pruned: every cut but the first must earn its price.
"""

from typing import NamedTuple

from libc.math cimport INFINITY, log2
from libc.stdint cimport int32_t
from libc.string cimport memcpy, memset

from shapetree._core.assignment cimport Pieces, assign_pieces, partition_loss
from shapetree._core.criterion cimport (
    SQUARED, CriterionInfo, dot, impurity, supergradient, weight_of,
)
from shapetree._core.options cimport Options
from shapetree._core.search cimport has_room, least_gain_of_cut, number_branches
from shapetree._core.threads cimport (
    Arena, Mark, arena_mark, arena_release, arena_take, branch_t, take_branches, take_doubles,
    take_ints,
)

cdef enum:
    MAX_ROUNDS = 10
    # Leaves of an inner tree for each region that may be left of them.
    GROWN_PER_PART = 4

ctypedef struct Regions:
    # The missing rows, if there are any, then a tree's regions, as one list.
    int n
    bint has_missing
    int32_t* node             # -1 for the missing rows
    double* stats
    int32_t* n_rows
    branch_t* branch


class NodeOptions(NamedTuple):
    """What a search for pairs may do in one node, in units of impurity mass.

    Attributes
    ----------
    max_branches : int
    region_penalty : float
        Per region beyond two, times log2 of the rows that are cut.
    branch_penalty : float
        Per branch beyond the first.
    seed : int
    """

    max_branches: int
    region_penalty: float
    branch_penalty: float
    seed: int


cdef Options options_for_pairs(const Options* options, node) except *:
    """Options that hold for every node, and the NodeOptions of one."""
    cdef Options own = options[0]
    own.max_branches = node.max_branches
    own.region_penalty = node.region_penalty
    own.branch_penalty = node.branch_penalty
    own.seed = node.seed
    if not 2 <= own.max_branches <= 254:
        raise ValueError("max_branches is out of range, which is 2 to 254")
    return own


cdef int max_leaves_of(const Options* options) noexcept nogil:
    """Leaves that an inner tree may grow: more than its regions may be, as it is pruned then."""
    cdef int n_leaves = min(options.inner_max_leaves, MAX_REGIONS)
    return min(n_leaves, GROWN_PER_PART * options.max_parts) if options.max_parts < 2**20 else (
        n_leaves)


cdef void take_tree(
    const CriterionInfo* c, const Options* options, Arena* arena, PairTree* tree
) noexcept nogil:
    """Take room for a tree within the options' limits."""
    cdef int n_leaves = max_leaves_of(options)
    tree.n_nodes = 0
    tree.room = 2 * n_leaves - 1
    tree.nodes = <PairNode*> arena_take(arena, tree.room * sizeof(PairNode))
    tree.stats = take_doubles(arena, <size_t> tree.room * c.n_stats)


cdef void plant(PairTree* tree, int n_points) noexcept nogil:
    """Start a tree with all points in one leaf, which keeps its description if it has one."""
    tree.n_nodes = 1
    tree.nodes[0].low = -1
    tree.nodes[0].depth = 0
    tree.nodes[0].start = 0
    tree.nodes[0].stop = n_points


cdef void set_price(
    const CriterionInfo* c, double region_penalty, double scale, PairTree* tree, int node
) noexcept nogil:
    """Say what a cut of a node must earn, once the node's statistics are known.

    The price is that of writing the cut down: one out of as many as there are rows takes so many
    bits. Each row that was looked at stands for `scale` rows. The first cut is free.
    """
    cdef:
        const double* stats = tree.stats + node * c.n_stats
        double weight = weight_of(c, stats)
        double price = region_penalty * log2(1.0 + scale * weight) if node > 0 else 0.0
    tree.nodes[node].price = price
    tree.nodes[node].least_gain = max(least_gain_of_cut(c, stats, price), 1e-12 * weight)


cdef bint can_pay(const CriterionInfo* c, const PairTree* tree, int node) noexcept nogil:
    """Whether any cut of a node may be worth its price: none takes away more than there is."""
    # Squared error leaves out what no split can change, so that its impurity says nothing here.
    return c.kind == SQUARED or (
        impurity(c, tree.stats + node * c.n_stats) > tree.nodes[node].least_gain)


cdef void add_children(PairTree* tree, int node) noexcept nogil:
    """Add two leaves below a node."""
    cdef:
        PairNode* parent = &tree.nodes[node]
        PairNode* child
        int side
    parent.low = tree.n_nodes
    for side in range(2):
        child = &tree.nodes[tree.n_nodes + side]
        child.low = -1
        child.depth = parent.depth + 1
        child.start = parent.start if side == 0 else parent.position
        child.stop = parent.position if side == 0 else parent.stop
        child.orientation = -1
        child.gain = 0.0
    tree.n_nodes += 2


cdef int best_leaf(const PairTree* tree, int max_depth) noexcept nogil:
    cdef:
        const PairNode* node
        int i, best = -1
    for i in range(tree.n_nodes):
        node = &tree.nodes[i]
        if (node.low < 0 and node.orientation >= 0 and node.depth < max_depth
                and node.gain > node.least_gain
                and (best < 0 or node.gain > tree.nodes[best].gain)):
            best = i
    return best


cdef void grow(
    PairTree* tree, const Options* options, void* points, FindCut find, MakeCut make
) noexcept nogil:
    """Cut leaves, the greatest gain first."""
    cdef int leaf
    # There is room for as many leaves as there may be.
    while tree.n_nodes + 2 <= tree.room:
        leaf = best_leaf(tree, options.inner_max_depth)
        if leaf < 0:
            return
        make(points, tree, leaf)
        add_children(tree, leaf)
        find(points, tree, tree.nodes[leaf].low)
        find(points, tree, tree.nodes[leaf].low + 1)


cdef int list_leaves(const PairTree* tree, int32_t* leaf, int* n_low) noexcept nogil:
    """The tree's leaves, those below the root's cut first; returns how many there are."""
    cdef:
        int node, side, root = tree.nodes[0].low, n = 0
        branch_t below[2 * MAX_REGIONS]
    n_low[0] = 0
    if root < 0:
        leaf[0] = 0
        return 1
    below[root] = True
    below[root + 1] = False
    for node in range(root, tree.n_nodes):
        if tree.nodes[node].low >= 0:
            below[tree.nodes[node].low] = below[node]
            below[tree.nodes[node].low + 1] = below[node]
    for side in range(2):
        for node in range(root, tree.n_nodes):
            if tree.nodes[node].low < 0 and below[node] == (side == 0):
                leaf[n] = node
                n += 1
        if side == 0:
            n_low[0] = n
    return n


cdef void merge_like_siblings(const PairTree* tree, branch_t* branch) noexcept nogil:
    """Make one region of siblings that go to the same branch; then hide what is below regions."""
    cdef int node, low
    for node in range(tree.n_nodes - 1, -1, -1):
        low = tree.nodes[node].low
        if low >= 0 and branch[node] == INNER and branch[low] == branch[low + 1] < HIDDEN:
            branch[node] = branch[low]
    for node in range(tree.n_nodes):
        low = tree.nodes[node].low
        if low >= 0 and branch[node] != INNER:
            branch[low] = HIDDEN
            branch[low + 1] = HIDDEN


cdef void list_regions(
    const CriterionInfo* c, const PairTree* tree, const branch_t* branch, int missing_branch,
    Regions* regions,
) noexcept nogil:
    """Gather the regions of a marked tree behind the entry of the missing rows."""
    cdef int node, n = regions.has_missing
    if regions.has_missing:
        regions.branch[0] = missing_branch
    for node in range(tree.n_nodes):
        if branch[node] < HIDDEN:
            regions.node[n] = node
            regions.branch[n] = branch[node]
            regions.n_rows[n] = tree.nodes[node].n_rows
            memcpy(regions.stats + n * c.n_stats, tree.stats + node * c.n_stats,
                   c.n_stats * sizeof(double))
            n += 1
    regions.n = n


cdef bint reads_both(const PairTree* tree, const branch_t* branch) noexcept nogil:
    """Whether the cuts that are left read both features."""
    cdef:
        int node
        bint first = False, second = False
    for node in range(tree.n_nodes):
        if branch[node] == INNER:
            first |= tree.nodes[node].orientation != SECOND_AXIS
            second |= tree.nodes[node].orientation != FIRST_AXIS
    return first and second


cdef double penalised_loss(
    const CriterionInfo* c, const PairTree* tree, const branch_t* branch, Regions* regions, int k,
    double* loss, double* sums,
) noexcept nogil:
    """Impurity of the branches plus what the cuts cost, the first being free."""
    cdef:
        int node
        double price = 0.0
    loss[0] = partition_loss(c, regions.stats, regions.branch, regions.n, k, sums)
    for node in range(tree.n_nodes):
        if branch[node] == INNER:
            price += tree.nodes[node].price
    return loss[0] + price


cdef void consider_regions(
    const CriterionInfo* c, const PairTree* tree, const branch_t* branch, Regions* regions,
    const Options* options, double* sums, PairShape* best,
) noexcept nogil:
    """Keep a marked tree if it is eligible and better than the best so far."""
    cdef:
        int i, b, n_branches
        double objective, loss, weight = 0.0
    n_branches = number_branches(regions.branch, regions.n)
    if n_branches < 2 or regions.n - regions.has_missing > options.max_parts:
        return
    if not reads_both(tree, branch) or not has_room(
            regions.branch, regions.n_rows, regions.n, n_branches, options.min_rows):
        return
    objective = penalised_loss(c, tree, branch, regions, n_branches, &loss, sums)
    objective += options.branch_penalty * (n_branches - 1)
    for b in range(n_branches):
        if weight_of(c, sums + b * c.n_stats) < options.min_weight:
            return
        weight += weight_of(c, sums + b * c.n_stats)
    if objective < best.objective - 1e-10 * weight:
        best.objective = objective
        best.loss = loss
        best.n_branches = n_branches
        memcpy(best.branch, branch, tree.n_nodes)
        for i in range(regions.has_missing, regions.n):
            best.branch[regions.node[i]] = regions.branch[i]
        best.missing_branch = regions.branch[0] if regions.has_missing else -1


cdef inline int cheapest(
    const CriterionInfo* c, const double* stats, int k, const double* cost_of, double* cost
) noexcept nogil:
    cdef:
        int b, best = 0
        double here
    cost[0] = INFINITY
    for b in range(k):
        here = dot(stats, cost_of + b * c.n_stats, c.n_stats)
        if here < cost[0]:
            cost[0] = here
            best = b
    return best


cdef void prune_at_prices(
    const CriterionInfo* c, const PairTree* tree, int k, const double* cost_of, int max_regions,
    double* cost, branch_t* low_regions, branch_t* branch,
) noexcept nogil:
    """Mark the tree's cheapest pruning to so many regions, at what branches charge for statistics.

    cost[node, r] is the least cost of what is below a node with at most 1 + r regions: that of one
    region, or the price of the cut and the least of

        cost[low, i] + cost[high, r - i - 1]    for i = 0 .. r - 1,

    and low_regions[node, r] is 1 + the best i, or 0 for one region. Where their number is free
    (max_regions = 0), there is but one r.
    """
    cdef:
        bint free = max_regions == 0
        int node, low, best, r, i, n = 1 if free else max_regions
        double as_region, as_cut
        double* here
        branch_t room[2 * MAX_REGIONS]
    for node in range(tree.n_nodes - 1, -1, -1):
        best = cheapest(c, tree.stats + node * c.n_stats, k, cost_of, &as_region)
        branch[node] = best
        low = tree.nodes[node].low
        here = cost + <Py_ssize_t> node * n
        for r in range(n):
            here[r] = as_region
            low_regions[node * n + r] = 0
            if low < 0:
                continue
            if node == 0 and (free or r > 0):
                here[r] = INFINITY  # the root is cut
            for i in range(1 if free else r):
                as_cut = (cost[<Py_ssize_t> low * n + i] + tree.nodes[node].price
                          + cost[<Py_ssize_t> (low + 1) * n + (0 if free else r - i - 1)])
                if as_cut < here[r]:
                    here[r] = as_cut
                    low_regions[node * n + r] = 1 + i
    memset(room, 0, tree.n_nodes)
    room[0] = n
    for node in range(tree.n_nodes):
        low = tree.nodes[node].low
        if low < 0 or room[node] == 0:
            continue
        i = low_regions[node * n + room[node] - 1]
        if i > 0:
            branch[node] = INNER
            room[low] = i
            room[low + 1] = 1 if free else room[node] - i
    merge_like_siblings(tree, branch)


cdef void prune(
    const CriterionInfo* c, const PairTree* tree, int k, const Options* options, Arena* arena,
    Regions* regions, branch_t* branch,
) noexcept nogil:
    """Lower impurity + prices of the cuts in place, round by round.

    Each round takes the branches' supergradients as the price of every statistic, then solves for
    the cheapest pruning at these prices. Neither step can raise the objective.
    """
    cdef:
        Mark mark = arena_mark(arena)
        double* sums = take_doubles(arena, k * c.n_stats)
        double* cost_of = take_doubles(arena, k * c.n_stats)
        int max_regions = options.max_parts if options.max_parts < (tree.n_nodes + 1) // 2 else 0
        double* cost = take_doubles(arena, <size_t> tree.n_nodes * max(max_regions, 1))
        branch_t* low_regions = take_branches(arena, <size_t> tree.n_nodes * max(max_regions, 1))
        branch_t* trial = take_branches(arena, tree.n_nodes)
        int b, missing_branch = regions.branch[0], trial_missing = 0
        double objective, trial_objective, loss, ignored, tolerance = 0.0
    if arena.failed:
        return
    objective = penalised_loss(c, tree, branch, regions, k, &loss, sums)
    if regions.n - regions.has_missing > options.max_parts:
        objective = INFINITY
    for b in range(k):
        tolerance += 1e-12 * weight_of(c, sums + b * c.n_stats)
    for _ in range(MAX_ROUNDS):
        for b in range(k):
            supergradient(c, sums + b * c.n_stats, cost_of + b * c.n_stats)
        prune_at_prices(c, tree, k, cost_of, max_regions, cost, low_regions, trial)
        if regions.has_missing:
            trial_missing = cheapest(c, regions.stats, k, cost_of, &ignored)
        list_regions(c, tree, trial, trial_missing, regions)
        trial_objective = penalised_loss(c, tree, trial, regions, k, &loss, sums)
        if not trial_objective < objective - tolerance:
            break
        objective = trial_objective
        missing_branch = trial_missing
        memcpy(branch, trial, tree.n_nodes)
    list_regions(c, tree, branch, missing_branch, regions)
    arena_release(arena, mark)


cdef void choose_branches(
    const CriterionInfo* c, const PairTree* tree, const double* missing, int n_missing,
    const Options* options, Arena* arena, PairShape* best,
) noexcept nogil:
    """Send a grown tree's regions, and the rows that lack a feature, to branches.

    Updates `best`, whose `branch` has room for the tree's nodes, if this tree is better.
    """
    cdef:
        Mark mark = arena_mark(arena)
        int n_stats = c.n_stats, most = options.max_branches, room = (tree.n_nodes + 1) // 2 + 1
        double* stats = take_doubles(arena, room * n_stats)
        double* sums = take_doubles(arena, most * n_stats)
        int32_t* n_rows = take_ints(arena, room)
        int32_t* leaf = take_ints(arena, room)
        branch_t* branch = take_branches(arena, tree.n_nodes)
        branch_t* assigned = take_branches(arena, <size_t> (most - 1) * room)
        bint* found = <bint*> arena_take(arena, (most - 1) * sizeof(bint))
        int i, k, n_leaves, n_low, first = n_missing > 0
        Pieces pieces
        Regions regions
    regions.node = take_ints(arena, room)
    regions.stats = take_doubles(arena, room * n_stats)
    regions.n_rows = take_ints(arena, room)
    regions.branch = take_branches(arena, room)
    regions.has_missing = first
    if arena.failed or tree.n_nodes < 3:
        return
    n_leaves = list_leaves(tree, leaf, &n_low)
    if first:
        memcpy(stats, missing, n_stats * sizeof(double))
        memcpy(regions.stats, missing, n_stats * sizeof(double))
        n_rows[0] = regions.n_rows[0] = n_missing
        regions.node[0] = -1
    for i in range(n_leaves):
        memcpy(stats + (first + i) * n_stats, tree.stats + leaf[i] * n_stats,
               n_stats * sizeof(double))
        n_rows[first + i] = tree.nodes[leaf[i]].n_rows
    pieces.n_pieces = first + n_leaves
    pieces.stats = stats
    pieces.n_rows = n_rows
    pieces.root_cut = first + n_low
    assign_pieces(c, pieces, options, arena, assigned, found)
    for k in range(2, most + 1):
        if not found[k - 2]:
            continue
        memset(branch, INNER, tree.n_nodes)
        for i in range(n_leaves):
            branch[leaf[i]] = assigned[(k - 2) * pieces.n_pieces + first + i]
        merge_like_siblings(tree, branch)
        list_regions(c, tree, branch, assigned[(k - 2) * pieces.n_pieces], &regions)
        consider_regions(c, tree, branch, &regions, options, sums, best)
        if options.region_penalty > 0.0 or regions.n - first > options.max_parts:
            list_regions(c, tree, branch, assigned[(k - 2) * pieces.n_pieces], &regions)
            prune(c, tree, k, options, arena, &regions, branch)
            consider_regions(c, tree, branch, &regions, options, sums, best)
    arena_release(arena, mark)
