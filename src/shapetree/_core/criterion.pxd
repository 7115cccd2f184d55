# How good a set of rows is, from its statistics alone.
#
# A set's *statistics* are a vector of sums over its rows, so those of a union are the sum of its
# parts'. Every criterion is a function `impurity(statistics)` in units of mass (weight times mean
# impurity) that is concave and homogeneous. Hence it has a *supergradient* d with
#
#     impurity(s) = s . d      and      impurity(t) <= t . d   for every other t,
#
# which turns "send this bin where it costs least" into a dot product, whatever the criterion.
#
# Layouts of the statistics:
#   labels   one block per output, one sum of weights per class (or per level of y): GINI, ENTROPY,
#            ABSOLUTE
#   moments  sum of weights, then sum of weight * y per output: SQUARED (its impurity leaves out
#            the sum of weight * y**2, which no split can change)

from libc.math cimport fabs, log2
from libc.stdint cimport int32_t

cdef extern from "vector.h":
    double x_log2_x(double x) noexcept nogil
    double sum_x_log2_x(const double* s, int n, double* total) noexcept nogil

cdef enum CriterionKind:
    GINI = 0
    ENTROPY = 1
    SQUARED = 2
    ABSOLUTE = 3

# Cost in bits of a class that a branch has never seen; finite, so that zero mass costs nothing.
cdef enum:
    UNSEEN_CLASS_BITS = 1_000_000

ctypedef struct CriterionInfo:
    int kind                 # a CriterionKind
    int n_outputs
    int n_stats              # length of a statistics vector
    const int32_t* block     # labels: where each output's block starts, n_outputs + 1 entries
    const double* level      # ABSOLUTE: the value of y that each statistic counts
    const double* looked_up  # ENTROPY of counts: what `small_counts` returns; NULL for others


cdef enum:
    MAX_LOOKED_UP = 4096

# x * log2(x) of the whole numbers up to MAX_LOOKED_UP. Rows without weights are counted, and in
# small nodes looking a number up takes a fraction of the time of computing it, to the same bit.
cdef const double* small_counts() noexcept nogil


cdef inline double weight_of(const CriterionInfo* c, const double* s) noexcept nogil:
    """Sum of the rows' weights."""
    cdef:
        int j
        double total = 0.0
    if c.kind == SQUARED:
        return s[0]
    for j in range(c.block[1]):
        total += s[j]
    return total


cdef inline bint are_counts(const double* values, Py_ssize_t n) noexcept nogil:
    """Whether all are whole numbers from 0 on, and none is too large for sums to be exact."""
    cdef:
        double shift = 1.5 * 2.0 ** 52  # adding this leaves nothing behind the decimal point
        bint whole = True
        Py_ssize_t i
    for i in range(n):
        whole &= ((values[i] + shift) - shift == values[i]) & (0.0 <= values[i] < 2.0 ** 31)
    return whole


cdef inline double entropy_mass(
    const double* s, int n, const double* looked_up
) noexcept nogil:
    cdef:
        double total = 0.0, mass = 0.0
        int j
    if looked_up != NULL:
        for j in range(n):
            total += s[j]
        if total <= MAX_LOOKED_UP:
            for j in range(n):
                mass += looked_up[<int32_t> s[j]]
            mass = looked_up[<int32_t> total] - mass
            return mass if mass > 0.0 else 0.0
    if n == 2:
        total = s[0] + s[1]
        mass = x_log2_x(s[0]) + x_log2_x(s[1])
    else:
        mass = sum_x_log2_x(s, n, &total)
    mass = x_log2_x(total) - mass
    return mass if mass > 0.0 else 0.0


cdef inline double gini_mass(const double* s, int n) noexcept nogil:
    cdef:
        int j
        double total = 0.0, squares = 0.0
    for j in range(n):
        total += s[j]
        squares += s[j] * s[j]
    return total - squares / total if total > 0.0 else 0.0


cdef inline double weighted_median(const double* s, const double* level, int n) noexcept nogil:
    """Lower and upper median's midpoint, of `n` levels in ascending order."""
    cdef:
        int j
        double half = 0.0, below = 0.0
    for j in range(n):
        half += s[j]
    half *= 0.5
    for j in range(n):
        below += s[j]
        if below > half:
            return level[j]
        if below == half and s[j] > 0.0:
            break
    else:
        return level[n - 1]
    cdef int lower = j
    for j in range(lower + 1, n):
        if s[j] > 0.0:
            return 0.5 * (level[lower] + level[j])
    return level[lower]


cdef inline double absolute_mass(const double* s, const double* level, int n) noexcept nogil:
    cdef:
        int j
        double median = weighted_median(s, level, n)
        double mass = 0.0
    for j in range(n):
        mass += s[j] * fabs(level[j] - median)
    return mass


cdef inline double impurity(const CriterionInfo* c, const double* s) noexcept nogil:
    """Impurity mass of a set of rows, averaged over outputs."""
    cdef:
        int o, start, n
        double mass = 0.0
    if c.kind == SQUARED:
        if s[0] <= 0.0:
            return 0.0
        for o in range(1, c.n_stats):
            mass -= s[o] * s[o]
        return mass / (s[0] * c.n_outputs)
    for o in range(c.n_outputs):
        start = c.block[o]
        n = c.block[o + 1] - start
        if c.kind == ENTROPY:
            mass += entropy_mass(s + start, n, c.looked_up)
        elif c.kind == GINI:
            mass += gini_mass(s + start, n)
        else:
            mass += absolute_mass(s + start, c.level + start, n)
    return mass / c.n_outputs


cdef inline void supergradient(const CriterionInfo* c, const double* s, double* d) noexcept nogil:
    """What a unit of each statistic costs in a branch whose own statistics are `s`."""
    cdef:
        int o, j, start, stop
        double total, squares, median
        double share = 1.0 / c.n_outputs
    if c.kind == SQUARED:
        d[0] = 0.0
        for j in range(1, c.n_stats):
            d[j] = s[j] / s[0] if s[0] > 0.0 else 0.0
            d[0] += d[j] * d[j] * share
            d[j] *= -2.0 * share
        return
    for o in range(c.n_outputs):
        start = c.block[o]
        stop = c.block[o + 1]
        if c.kind == ABSOLUTE:
            median = weighted_median(s + start, c.level + start, stop - start)
            for j in range(start, stop):
                d[j] = fabs(c.level[j] - median) * share
            continue
        total = 0.0
        for j in range(start, stop):
            total += s[j] if s[j] > 0.0 else 0.0
        if c.kind == ENTROPY:
            for j in range(start, stop):
                d[j] = share * (log2(total / s[j]) if s[j] > 0.0 else UNSEEN_CLASS_BITS)
        else:
            squares = 0.0
            for j in range(start, stop):
                d[j] = s[j] / total if total > 0.0 else 0.0
                squares += d[j] * d[j]
            for j in range(start, stop):
                d[j] = share * (1.0 + squares - 2.0 * d[j])


cdef inline double dot(const double* a, const double* b, int n) noexcept nogil:
    cdef:
        int j
        double total = 0.0
    for j in range(n):
        total += a[j] * b[j]
    return total


cdef inline double rows_of(
    const CriterionInfo* c, const double* cell, int n_channels
) noexcept nogil:
    """Number of rows in a cell of a histogram: its last channel, or the weight if that counts."""
    return cell[c.n_stats] if n_channels > c.n_stats else weight_of(c, cell)


cdef inline int n_values(const CriterionInfo* c) noexcept nogil:
    """How many values a set of rows is placed by: classes, or an output's sum."""
    return c.n_outputs if c.kind == ABSOLUTE else c.n_stats - (c.kind == SQUARED)


cdef inline double value_of(const CriterionInfo* c, const double* s, int j) noexcept nogil:
    """One of these values. For absolute error sums must do: medians cannot be had from sums."""
    if c.kind == ABSOLUTE:
        return dot(s + c.block[j], c.level + c.block[j], c.block[j + 1] - c.block[j])
    return s[j + (c.kind == SQUARED)]


cdef class Criterion:
    """A criterion and the layout of its statistics; owns the arrays `info` points to."""
    cdef CriterionInfo info
    cdef object _block
    cdef object _level
