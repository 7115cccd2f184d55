/* The cheapest path through a row of cells, each of which costs so much in each branch, if every
   switch of branch but the first costs a penalty.

   It stands in C because the compiler must be told to make one version for each small number of
   branches: that is several times as fast as a loop over branches. */

#ifndef SHAPETREE_PATH_H
#define SHAPETREE_PATH_H

#include <math.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WITH_CONSTANTS static inline __attribute__((always_inline))
#else
#define WITH_CONSTANTS static inline
#endif

/* What n cells cost in k branches: an entry of `costs` (n x k), or, where there are prices (k x 2),
   the two statistics of the cell times their prices. Every switch but the first costs `penalty`. */
typedef struct {
    const double *costs;
    const double *prices;
    int n;
    int k;
    double penalty;
} PathCosts;

WITH_CONSTANTS double price_of_cell(const double *costs, const double *prices, int64_t i, int b,
                                    const int k) {
    if (prices)
        return costs[2 * i] * prices[2 * b] + costs[2 * i + 1] * prices[2 * b + 1];
    return costs[i * k + b];
}

/* Where paths came from, with room for n * k, and where the cheapest one goes, with room for n. */
typedef struct {
    int32_t *came_entered;
    uint8_t *came_branch;
    int32_t *stop;
    uint8_t *branch;
} PathFound;

/* The paths of a cell: what they cost if they are still in their first branch, or have switched,
   and where they came to their branch. Room for k of each. */
typedef struct {
    double *staying;
    double *moved;
    double *cost;
    int32_t *entered;
} PathState;

/* Viterbi. A path is either still in its first branch, at the cost `staying`, or has switched, at
   the cost `moved`; then `entered` is the cell where it came to its branch, and at this cell and
   branch stands where it came from: the branch before, and the cell where it had entered that one,
   or -1. From cell to cell,

       moved'[b]   = cost[b] + min(moved[b], penalty + min of moved, min of staying[c] over c != b)
       staying'[b] = cost[b] + staying[b]

   Of equals, a path that stays wins, then the lower branch. Returns the number of segments;
   `stop` and `branch` receive their ends and branches. */
WITH_CONSTANTS int path_through(const PathCosts *path, const double *prices, const int k,
                                PathState state, PathFound found) {
    const double *costs = path->costs;
    const double penalty = path->penalty;
    const int n = path->n;
    double *staying = state.staying, *moved = state.moved, *cost = state.cost;
    int32_t *entered = state.entered, *came_entered = found.came_entered, *stop = found.stop;
    uint8_t *came_branch = found.came_branch, *branch = found.branch;
    for (int b = 0; b < k; b++) {
        staying[b] = price_of_cell(costs, prices, 0, b, k);
        moved[b] = INFINITY;
        entered[b] = -1;
    }
    for (int64_t i = 1; i < n; i++) {
        int cheapest = 0, first = 0, second = -1;
        for (int b = 0; b < k; b++)
            cost[b] = price_of_cell(costs, prices, i, b, k);
        for (int b = 1; b < k; b++) {
            if (moved[b] < moved[cheapest])
                cheapest = b;
            if (staying[b] < staying[first]) {
                second = first;
                first = b;
            } else if (second < 0 || staying[b] < staying[second])
                second = b;
        }
        const double switched = moved[cheapest] + penalty;
        const int32_t cheapest_entered = entered[cheapest];
        for (int b = 0; b < k; b++) {
            const int other = b == first ? second : first;
            if (switched < moved[b]) {
                moved[b] = switched;
                came_entered[i * k + b] = cheapest_entered;
                came_branch[i * k + b] = (uint8_t) cheapest;
                entered[b] = (int32_t) i;
            }
            if (k > 1 && staying[other] < moved[b]) {
                moved[b] = staying[other];
                came_entered[i * k + b] = -1;
                came_branch[i * k + b] = (uint8_t) other;
                entered[b] = (int32_t) i;
            }
            moved[b] += cost[b];
        }
        for (int b = 0; b < k; b++)
            staying[b] += cost[b];
    }
    int last = 0, n_segments = 0;
    int32_t start = -1;
    double least = staying[0];
    for (int b = 1; b < k; b++)
        if (staying[b] < least) {
            least = staying[b];
            last = b;
        }
    for (int b = 0; b < k; b++)
        if (moved[b] < least) {
            least = moved[b];
            last = b;
            start = entered[b];
        }
    /* Walk back from the end, then turn the segments round. */
    int32_t end = n;
    for (;;) {
        stop[n_segments] = end;
        branch[n_segments++] = (uint8_t) last;
        if (start < 0)
            break;
        const int64_t here = (int64_t) start * k + last;
        end = start;
        start = came_entered[here];
        last = came_branch[here];
    }
    for (int i = 0; i < n_segments / 2; i++) {
        const int j = n_segments - 1 - i;
        const int32_t end_i = stop[i];
        const uint8_t branch_i = branch[i];
        stop[i] = stop[j];
        stop[j] = end_i;
        branch[i] = branch[j];
        branch[j] = branch_i;
    }
    return n_segments;
}

#define PATH_OF(K)                                                                             \
    case K: {                                                                                  \
        double staying[K], moved[K], cost[K];                                                  \
        int32_t entered[K];                                                                    \
        const PathState state = {staying, moved, cost, entered};                               \
        if (path->prices)                                                                      \
            return path_through(path, path->prices, K, state, found);                          \
        return path_through(path, 0, K, state, found);                                         \
    }

/* At most 256 branches. */
static int cheapest_segments_of(const PathCosts *path, PathFound found) {
    switch (path->k) {
        PATH_OF(2)
        PATH_OF(3)
        PATH_OF(4)
    default: {
        double staying[256], moved[256], cost[256];
        int32_t entered[256];
        const PathState state = {staying, moved, cost, entered};
        return path_through(path, path->prices, path->k, state, found);
    }
    }
}

#endif
