/* Thresholds that people can read: between two values lies a whole range of numbers that part them,
   and the one with the fewest digits near their middle is as good as the middle itself.

   A short decimal is made by one multiplication or division of exact numbers, which rounds as
   reading its digits does: what is written in few digits reads back as the same number. */

#ifndef SHAPETREE_PARTING_H
#define SHAPETREE_PARTING_H

#include <float.h>
#include <math.h>
#include <stddef.h>

enum { MOST_EXPONENT = 22 };  /* of the powers of ten that a double holds exactly */

static const double POWERS_OF_TEN[MOST_EXPONENT + 1] = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The multiple of a power of ten that is nearest to a number. */
static inline double nearest_multiple(double number, int exponent) {
    if (exponent < 0)
        return rint(number * POWERS_OF_TEN[-exponent]) / POWERS_OF_TEN[-exponent];
    return rint(number / POWERS_OF_TEN[exponent]) * POWERS_OF_TEN[exponent];
}

/* The power of ten at which a number's first digit stands, or one more. */
static inline int first_exponent(double number) {
    return (int) ceil(log10(fabs(number)));
}

static inline double halfway(double low, double high) {
    double middle = 0.5 * low + 0.5 * high;
    return low <= middle && middle < high ? middle : low;
}

/* A finite number t so that low <= t < high: of those in the middle half between the two one with
   the fewest digits, or their mean if it has too many. Infinite values count as the greatest
   finite ones; nothing finite parts minus infinity from the least finite number. */
static inline double parting(double low, double high) {
    double middle, reach;
    int exponent, least;
    low = low > -DBL_MAX ? low : -DBL_MAX;
    high = high < DBL_MAX ? high : DBL_MAX;
    middle = halfway(low, high);
    reach = high / 4 - low / 4;
    if (!(reach > 0))
        return middle;
    if (fabs(middle) <= reach)
        return 0.0;
    exponent = first_exponent(middle);
    exponent = exponent < MOST_EXPONENT ? exponent : MOST_EXPONENT;
    least = first_exponent(reach) - 1;
    least = least > -MOST_EXPONENT ? least : -MOST_EXPONENT;
    for (; exponent >= least; exponent--) {
        double candidate = nearest_multiple(middle, exponent);
        if (fabs(candidate - middle) <= reach && low <= candidate && candidate < high)
            return candidate;
    }
    return middle;
}

/* A number that parts bin `below` from the later bin `above` and all rows of the one from those of
   the other, also where rows lie between bins: they belong to the bin on their side of the number
   that parts it from its neighbour. */
static inline double parting_of_bins(const double *low, const double *high, ptrdiff_t below,
                                     ptrdiff_t above) {
    double threshold = parting(high[below], low[above]);
    if (above > below + 1) {
        double least = parting(high[below], low[below + 1]);
        double greatest = parting(high[above - 1], low[above]);
        threshold = threshold < least ? least : threshold > greatest ? greatest : threshold;
    }
    return threshold;
}

/* A number in so many significant digits, ties to even; itself if it is very large or small. */
static inline double in_digits(double number, int digits) {
    int exponent;
    if (number == 0 || !isfinite(number))
        return number;
    exponent = (int) floor(log10(fabs(number))) - digits + 1;
    if (exponent > MOST_EXPONENT || exponent < -MOST_EXPONENT)
        return number;
    return nearest_multiple(number, exponent);
}

#endif
