/* Loops over bins that the compiler turns into vector instructions, the widest the machine has.

   They stand in C because Cython cannot mark a function for more than one instruction set. */

#ifndef SHAPETREE_VECTOR_H
#define SHAPETREE_VECTOR_H

#include <stdint.h>
#include <string.h>

/* Resolvers of cloned functions run before a sanitizer is ready, so sanitized builds do without. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) \
    && !defined(__SANITIZE_ADDRESS__)
#define FOR_EVERY_MACHINE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EVERY_MACHINE
#endif

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

/* loss[b] = impurity of both sides of a cut behind bin start + b, but for a constant, averaged
   over outputs. `prefix` holds rows of `stride` prefix sums: weights first, then the statistics. */

FOR_EVERY_MACHINE
static void entropy_of_cuts(const double *prefix, int64_t stride, int n_stats, int n_outputs,
                            int start, int stop, double *loss) {
    const int n = stop - start - 1;
    for (int row = 0; row <= n_stats; row++) {
        const double *sums = prefix + row * stride + start;
        const double base = sums[0], total = sums[stop - start] - base;
        const double factor = row == 0 ? 1.0 : -1.0 / n_outputs;
        for (int b = 0; b < n; b++) {
            const double left = sums[b + 1] - base;
            const double both = factor * (x_log2_x(left) + x_log2_x(total - left));
            loss[b] = row == 0 ? both : loss[b] + both;
        }
    }
}

FOR_EVERY_MACHINE
static void variance_of_cuts(const double *prefix, int64_t stride, int n_stats, int n_outputs,
                             int start, int stop, double *loss) {
    const int n = stop - start - 1;
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

#endif
