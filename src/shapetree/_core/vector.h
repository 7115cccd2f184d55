/* Loops over bins that the compiler turns into vector instructions, the widest the machine has.

   They stand in C because Cython cannot mark a function for more than one instruction set. */

#ifndef SHAPETREE_VECTOR_H
#define SHAPETREE_VECTOR_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Resolvers of cloned functions run before a sanitizer is ready, so sanitized builds do without. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) \
    && !defined(__SANITIZE_ADDRESS__)
#define FOR_EVERY_MACHINE __attribute__((unused, target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#elif defined(__GNUC__)
#define FOR_EVERY_MACHINE __attribute__((unused))
#else
#define FOR_EVERY_MACHINE
#endif

/* A loop that the compiler makes anew for each set of constants it is called with. */
#ifndef WITH_CONSTANTS
#if defined(__GNUC__)
#define WITH_CONSTANTS static inline __attribute__((always_inline))
#else
#define WITH_CONSTANTS static inline
#endif
#endif

/* Number of the lowest bit that is set, of at least one. */
static inline int lowest_bit(uint64_t bits) {
#if defined(__GNUC__)
    return __builtin_ctzll(bits);
#else
    int bit = 0;
    for (; !(bits & 1); bits >>= 1)
        bit++;
    return bit;
#endif
}

/* x * log2(x), 0 at 0, with an error below 1e-12 x. No branch and no table: the exponent is read
   off the bits, the mantissa is brought to [sqrt(1/2), sqrt(2)) and its logarithm summed as the
   series of atanh. Any finite x is safe: one that rounding left just below 0 gives about 0. */
static inline double x_log2_x(double x) {
    const uint64_t half_root = 0x3fe6a09e667f3bcdULL;    /* bits of sqrt(1/2) */
    const uint64_t one = 0x3ff0000000000000ULL;          /* bits of 1.0 */
    const uint64_t magic = 0x4330000000000000ULL;        /* bits of 2**52 */
    uint64_t bits, exponent, mantissa_bits;
    double mantissa, power, s, s2, series;
    memcpy(&bits, &x, 8);
    exponent = (bits + (one - half_root)) >> 52;
    mantissa_bits = bits - (exponent << 52) + one;
    memcpy(&mantissa, &mantissa_bits, 8);
    exponent |= magic;                                   /* an integer in the bits of 2**52 + it */
    memcpy(&power, &exponent, 8);
    power -= 4503599627370496.0 + 1023.0;
    s = (mantissa - 1.0) / (mantissa + 1.0);
    s2 = s * s;
    series = 1.0 / 15.0;
    series = series * s2 + 1.0 / 13.0;
    series = series * s2 + 1.0 / 11.0;
    series = series * s2 + 1.0 / 9.0;
    series = series * s2 + 1.0 / 7.0;
    series = series * s2 + 1.0 / 5.0;
    series = series * s2 + 1.0 / 3.0;
    series = series * s2 + 1.0;
    return x * (power + 2.8853900817779268 * s * series);
}

/* Sum of s[j] * log2(s[j]); `total` receives the sum of s[j]. */
FOR_EVERY_MACHINE
static double sum_x_log2_x(const double *s, int n, double *total) {
    double weight = 0.0, sum = 0.0;
#pragma omp simd reduction(+ : weight, sum)
    for (int j = 0; j < n; j++) {
        weight += s[j];
        sum += x_log2_x(s[j]);
    }
    *total = weight;
    return sum;
}

/* Rows of `stride` prefix sums: of weights, then of n_stats statistics, of several outputs. If these
   are counts, `looked_up` has x * log2(x) of each up to `n_looked_up`; else it is NULL. */
typedef struct {
    const double *sums;
    int64_t stride;
    int n_stats;
    int n_outputs;
    const double *looked_up;
    int n_looked_up;
} PrefixSums;

/* loss[b] = impurity of both sides of a cut behind bin start + b, but for a constant, averaged
   over outputs. */
FOR_EVERY_MACHINE
static void entropy_of_cuts(const PrefixSums *of, int start, int stop, double *loss) {
    const double *prefix = of->sums, *looked_up = of->looked_up;
    const int64_t stride = of->stride;
    const int n = stop - start - 1, n_stats = of->n_stats, n_outputs = of->n_outputs;
    const int n_looked_up = of->n_looked_up;
    int can_look_up = looked_up != 0;
    for (int row = 0; row <= n_stats; row++)
        can_look_up &= prefix[row * stride + stop] - prefix[row * stride + start] <= n_looked_up;
    for (int row = 0; row <= n_stats; row++) {
        const double *sums = prefix + row * stride + start;
        const double base = sums[0], total = sums[stop - start] - base;
        const double factor = row == 0 ? 1.0 : -1.0 / n_outputs;
        if (can_look_up) {
            for (int b = 0; b < n; b++) {
                const double left = sums[b + 1] - base;
                const double both = factor * (looked_up[(int32_t) left]
                                              + looked_up[(int32_t) (total - left)]);
                loss[b] = row == 0 ? both : loss[b] + both;
            }
            continue;
        }
        for (int b = 0; b < n; b++) {
            const double left = sums[b + 1] - base;
            const double both = factor * (x_log2_x(left) + x_log2_x(total - left));
            loss[b] = row == 0 ? both : loss[b] + both;
        }
    }
}

FOR_EVERY_MACHINE
static void variance_of_cuts(const PrefixSums *of, int start, int stop, double *loss) {
    const double *prefix = of->sums;
    const int64_t stride = of->stride;
    const int n = stop - start - 1, n_stats = of->n_stats, n_outputs = of->n_outputs;
    const double *weights = prefix + start;
    const double weight = weights[stop - start] - weights[0];
    for (int b = 0; b < n; b++)
        loss[b] = 0.0;
    for (int row = 1; row <= n_stats; row++) {
        const double *sums = prefix + row * stride + start;
        const double base = sums[0], total = sums[stop - start] - base;
        for (int b = 0; b < n; b++) {
            const double left = sums[b + 1] - base, right = total - left;
            const double below = weights[b + 1] - weights[0];
            const double above = weight - below;    /* rounding may leave nothing of it */
            loss[b] -= (below > 0.0 ? left * left / below : 0.0)
                       + (above > 0.0 ? right * right / above : 0.0);
        }
    }
    for (int b = 0; b < n; b++)
        loss[b] /= n_outputs;
}

/* Some cells of a grid. Of every cell of the grid, `bucket` holds n_orientations buckets, of which
   n_active count, and `planes` `stride` numbers, a multiple of four. */
typedef struct {
    const int32_t *cells;
    int n_cells;
    const uint8_t *bucket;
    int n_orientations;
    int n_active;
    const double *planes;
    int stride;
} BucketedCells;

/* The least and the greatest bucket of some cells along each of several orientations; returns the
   width of the widest range. */
FOR_EVERY_MACHINE
static int ranges_of_buckets(const BucketedCells *of, uint8_t *least, uint8_t *greatest) {
    const uint8_t *bucket = of->bucket;
    const int32_t *cells = of->cells;
    const int n_cells = of->n_cells, n_orientations = of->n_orientations, n_active = of->n_active;
    int width = 0, i = 0;
    for (int h = 0; h < n_active; h++) {
        least[h] = 255;
        greatest[h] = 0;
    }
#if defined(__SSE2__)
    if (n_active == 8) {
        __m128i low = _mm_set1_epi8(-1), high = _mm_setzero_si128();
        for (; i < n_cells; i++) {
            const uint8_t *at = bucket + (int64_t) cells[i] * n_orientations;
            const __m128i here = _mm_loadl_epi64((const __m128i *) at);
            low = _mm_min_epu8(low, here);
            high = _mm_max_epu8(high, here);
        }
        _mm_storel_epi64((__m128i *) least, low);
        _mm_storel_epi64((__m128i *) greatest, high);
    }
#endif
    for (; i < n_cells; i++) {
        const uint8_t *here = bucket + (int64_t) cells[i] * n_orientations;
        for (int h = 0; h < n_active; h++) {
            least[h] = here[h] < least[h] ? here[h] : least[h];
            greatest[h] = here[h] > greatest[h] ? here[h] : greatest[h];
        }
    }
    for (int h = 0; h < n_active; h++)
        width = greatest[h] - least[h] >= width ? greatest[h] - least[h] + 1 : width;
    return width;
}

/* Sum the planes of some cells by bucket along each of several orientations, counted from the least
   bucket on. `sums` receives (n_active, width, stride) of them. */
FOR_EVERY_MACHINE
static void sum_by_bucket(const BucketedCells *of, const uint8_t *least, int width, double *sums) {
    const uint8_t *bucket = of->bucket;
    const int32_t *cells = of->cells;
    const double *planes = of->planes;
    const int n_cells = of->n_cells, n_orientations = of->n_orientations, n_active = of->n_active;
    const int stride = of->stride;
    memset(sums, 0, (size_t) n_active * width * stride * sizeof(double));
    if (stride == 4 && n_active == 8) {
        /* The usual case, with all that does not change at hand. */
        double *start[8];
        for (int h = 0; h < 8; h++)
            start[h] = sums + (h * width - least[h]) * 4;
        for (int i = 0; i < n_cells; i++) {
            const uint8_t *here = bucket + (int64_t) cells[i] * n_orientations;
            const double *p = planes + (int64_t) cells[i] * 4;
            const double p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
            for (int h = 0; h < 8; h++) {
                double *at = start[h] + here[h] * 4;
                at[0] += p0;
                at[1] += p1;
                at[2] += p2;
                at[3] += p3;
            }
        }
        return;
    }
    for (int i = 0; i < n_cells; i++) {
        const uint8_t *here = bucket + (int64_t) cells[i] * n_orientations;
        const double *p = planes + (int64_t) cells[i] * stride;
        if (stride == 4) {
            const double p0 = p[0], p1 = p[1], p2 = p[2], p3 = p[3];
            for (int h = 0; h < n_active; h++) {
                double *at = sums + (h * width + here[h] - least[h]) * 4;
                at[0] += p0;
                at[1] += p1;
                at[2] += p2;
                at[3] += p3;
            }
        } else {
            for (int h = 0; h < n_active; h++) {
                double *at = sums + ((int64_t) h * width + here[h] - least[h]) * stride;
                for (int j = 0; j < stride; j++)
                    at[j] += p[j];
            }
        }
    }
}

/* Where cells lie along each of several orientations: n_orientations buckets of every cell, from
   where its two groups lie, in 65,536ths of a bucket. */
FOR_EVERY_MACHINE
static void fill_buckets_of_cells(const int32_t *along_a, const int32_t *along_b,
                                  const uint8_t *group_a, const uint8_t *group_b, int n_cells,
                                  int n_orientations, uint8_t *bucket) {
    for (int i = 0; i < n_cells; i++) {
        const int32_t *a = along_a + group_a[i] * n_orientations;
        const int32_t *b = along_b + group_b[i] * n_orientations;
        uint8_t *here = bucket + (int64_t) i * n_orientations;
        if (n_orientations == 8) {
            for (int h = 0; h < 8; h++)
                here[h] = (uint8_t) ((a[h] + b[h]) >> 16);
        } else {
            for (int h = 0; h < n_orientations; h++)
                here[h] = (uint8_t) ((a[h] + b[h]) >> 16);
        }
    }
}

/* Bring (n_active, width, stride) sums to the order (width, n_planes, n_lanes). */
static inline void sums_to_lanes(const double *sums, int n_active, int width, int stride,
                                 int n_planes, int n_lanes, double *buckets) {
    memset(buckets, 0, (size_t) width * n_planes * n_lanes * sizeof(double));
    for (int h = 0; h < n_active; h++)
        for (int b = 0; b < width; b++)
            for (int j = 0; j < n_planes; j++)
                buckets[((int64_t) b * n_planes + j) * n_lanes + h]
                    = sums[((int64_t) h * width + b) * stride + j];
}

/* Sums along several orientations, one lane each: `buckets` holds (n_buckets, n_planes, n_lanes) of
   them, of weights, of n_values statistics and, in plane `rows_plane`, of rows; `total` those of all
   buckets, by plane. */
typedef struct {
    const double *buckets;
    const double *total;
    int n_buckets;
    int n_planes;
    int n_values;
    int rows_plane;
    int n_lanes;
    int n_outputs;
    int entropy;
    double min_rows;
} LaneSums;

/* What `best_cuts_of_orientations` says; the compiler makes a version of it for each usual number of
   lanes and values. */
WITH_CONSTANTS void best_cuts(const LaneSums of, double *restrict prefix, double *restrict here,
                              double *restrict loss, double *restrict position) {
    const double *restrict buckets = of.buckets, *restrict total = of.total;
    const int n_buckets = of.n_buckets, n_planes = of.n_planes, n_values = of.n_values;
    const int rows_plane = of.rows_plane, n_lanes = of.n_lanes, n_outputs = of.n_outputs;
    const int entropy = of.entropy;
    const double min_rows = of.min_rows;
    for (int i = 0; i < n_planes * n_lanes; i++)
        prefix[i] = 0.0;
    for (int l = 0; l < n_lanes; l++) {
        loss[l] = 1e308;
        position[l] = 0.0;
    }
    for (int b = 0; b < n_buckets - 1; b++) {
        const double *bucket = buckets + (int64_t) b * n_planes * n_lanes;
        for (int i = 0; i < n_planes * n_lanes; i++)
            prefix[i] += bucket[i];
        for (int l = 0; l < n_lanes; l++)
            here[l] = entropy ? x_log2_x(prefix[l]) + x_log2_x(total[0] - prefix[l]) : 0.0;
        for (int j = 1; j <= n_values; j++) {
            const double *low = prefix + j * n_lanes, all = total[j];
            if (entropy) {
                for (int l = 0; l < n_lanes; l++)
                    here[l] -= (x_log2_x(low[l]) + x_log2_x(all - low[l])) / n_outputs;
            } else {
                for (int l = 0; l < n_lanes; l++) {
                    const double below = prefix[l], above = total[0] - below;
                    const double high = all - low[l];
                    here[l] -= ((below > 0.0 ? low[l] * low[l] / below : 0.0)
                                + (above > 0.0 ? high * high / above : 0.0)) / n_outputs;
                }
            }
        }
        const double *rows = prefix + rows_plane * n_lanes;
        for (int l = 0; l < n_lanes; l++) {
            const int better = (rows[l] >= min_rows) & (total[rows_plane] - rows[l] >= min_rows)
                               & (here[l] < loss[l]);
            loss[l] = better ? here[l] : loss[l];
            position[l] = better ? b + 1.0 : position[l];
        }
    }
}

/* The best cut between buckets along each of several orientations at once. `loss` and `position`
   receive, by lane, the impurity of both sides, but for a constant, averaged over outputs, and the
   first bucket above the cut, 0 where no cut leaves `min_rows` on both sides. `prefix` has room for
   n_planes x n_lanes, `here` for n_lanes. */
FOR_EVERY_MACHINE
static void best_cuts_of_orientations(const LaneSums *of, double *prefix, double *here,
                                      double *loss, double *position) {
    const int is_usual = of->n_outputs == 1 && !of->entropy && of->rows_plane == 0;
#define BEST_CUTS(values, lanes) \
    if (is_usual && of->n_values == (values) && of->n_lanes == (lanes)) { \
        const LaneSums usual = {of->buckets, of->total, of->n_buckets, 1 + (values), (values), 0, \
                                (lanes), 1, 0, of->min_rows}; \
        best_cuts(usual, prefix, here, loss, position); \
        return; \
    }
    BEST_CUTS(1, 8)
    BEST_CUTS(2, 8)
    BEST_CUTS(3, 8)
    BEST_CUTS(1, 4)
    BEST_CUTS(2, 4)
    BEST_CUTS(3, 4)
#undef BEST_CUTS
    best_cuts(*of, prefix, here, loss, position);
}

/* loss[t - 1][s - 1] = impurity of the four quadrants around the crossing (s, t) of an m x m grid,
   but for a constant, averaged over outputs. `image` holds planes of (m + 1) x (m + 1) sums over
   all cells below s and t: of weights first, then of the statistics. */
FOR_EVERY_MACHINE
static void loss_of_crossings(const double *image, int m, int n_stats, int n_outputs, int entropy,
                              double *loss) {
    const int side = m + 1, plane = side * side;
    for (int t = 1; t < m; t++) {
        double *here = loss + (t - 1) * (m - 1) - 1;
        const double *weight = image + t * side, *all_weight = image + m * side;
        for (int s = 1; s < m; s++)
            here[s] = 0.0;
        for (int row = 0; row <= n_stats; row++) {
            const double *below = image + row * plane + t * side;
            const double *all = image + row * plane + m * side;
            const double factor = row == 0 ? 1.0 : -1.0 / n_outputs;
            if (entropy) {
                for (int s = 1; s < m; s++)
                    here[s] += factor * (x_log2_x(below[s]) + x_log2_x(below[m] - below[s])
                                         + x_log2_x(all[s] - below[s])
                                         + x_log2_x((all[m] - all[s]) - (below[m] - below[s])));
            } else if (row > 0) {
                for (int s = 1; s < m; s++) {
                    const double w1 = weight[s], w2 = weight[m] - w1, w3 = all_weight[s] - w1;
                    const double w4 = (all_weight[m] - all_weight[s]) - w2;
                    const double v1 = below[s], v2 = below[m] - v1, v3 = all[s] - v1;
                    const double v4 = (all[m] - all[s]) - v2;
                    here[s] += factor * ((w1 > 0.0 ? v1 * v1 / w1 : 0.0)
                                         + (w2 > 0.0 ? v2 * v2 / w2 : 0.0)
                                         + (w3 > 0.0 ? v3 * v3 / w3 : 0.0)
                                         + (w4 > 0.0 ? v4 * v4 / w4 : 0.0));
                }
            }
        }
    }
}

#endif
