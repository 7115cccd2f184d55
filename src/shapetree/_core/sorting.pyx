"""Sorts that no comparison slows down."""

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from *:
    """
    #include <stdlib.h>

    typedef struct { double value; int32_t index; } shapetree_item;

    static int shapetree_compare(const void *a, const void *b) {
        const shapetree_item *x = (const shapetree_item *) a, *y = (const shapetree_item *) b;
        if (x->value != y->value)
            return x->value < y->value ? -1 : 1;
        return (x->index > y->index) - (x->index < y->index);
    }

    static void shapetree_sort(shapetree_item *items, size_t n) {
        qsort(items, n, sizeof(shapetree_item), shapetree_compare);
    }
    """
    ctypedef struct Item "shapetree_item":
        double value
        int32_t index
    void sort_by_comparison "shapetree_sort"(Item* items, size_t n) noexcept nogil

cdef enum:
    SHORT_RUN = 32
    DIGIT_BITS = 11     # of row numbers, so that two digits are enough for millions
    N_DIGITS = 1 << DIGIT_BITS


cdef void sort_items(
    uint64_t* items, uint64_t* scratch, Py_ssize_t n, uint32_t largest
) noexcept nogil:
    """Radix sort by the upper 32 bits, whose greatest value is `largest`; the order is stable."""
    cdef:
        Py_ssize_t count[257]
        Py_ssize_t i
        int shift = 32, digit
        uint64_t* source = items
        uint64_t* target = scratch
        uint64_t* swap
    while shift == 32 or (shift < 64 and largest >> (shift - 32)):
        memset(count, 0, sizeof(count))
        for i in range(n):
            count[((source[i] >> shift) & 255) + 1] += 1
        for digit in range(256):
            count[digit + 1] += count[digit]
        for i in range(n):
            digit = (source[i] >> shift) & 255
            target[count[digit]] = source[i]
            count[digit] += 1
        swap = source
        source = target
        target = swap
        shift += 8
    if source != items:
        memcpy(items, source, n * sizeof(uint64_t))


cdef void sort_rows(
    int32_t* rows, int32_t* scratch, Py_ssize_t n, uint32_t largest
) noexcept nogil:
    """Radix sort of row numbers, none of which is above `largest`."""
    cdef:
        Py_ssize_t count[N_DIGITS + 1]
        Py_ssize_t i
        int shift = 0, digit
        int32_t* source = rows
        int32_t* target = scratch
        int32_t* swap
    while shift < 32 and largest >> shift:
        memset(count, 0, sizeof(count))
        for i in range(n):
            count[((source[i] >> shift) & (N_DIGITS - 1)) + 1] += 1
        for digit in range(N_DIGITS):
            count[digit + 1] += count[digit]
        for i in range(n):
            digit = (source[i] >> shift) & (N_DIGITS - 1)
            target[count[digit]] = source[i]
            count[digit] += 1
        swap = source
        source = target
        target = swap
        shift += DIGIT_BITS
    if source != rows:
        memcpy(rows, source, n * sizeof(int32_t))


cdef inline uint32_t rough_key(double value) noexcept nogil:
    """An integer that ascends with the value, as exact as a float."""
    cdef:
        float rough = <float> value
        uint32_t bits
    memcpy(&bits, &rough, sizeof(bits))
    return bits ^ (0xFFFFFFFFU if bits >> 31 else 0x80000000U)


cdef void sort_run(
    const double* value, int32_t* order, Py_ssize_t n, Item* scratch
) noexcept nogil:
    """Sort a few neighbours by their exact values."""
    cdef:
        Py_ssize_t i, j
        int32_t item
    if n > SHORT_RUN:
        for i in range(n):
            scratch[i].value = value[order[i]]
            scratch[i].index = order[i]
        sort_by_comparison(scratch, n)
        for i in range(n):
            order[i] = scratch[i].index
        return
    for i in range(1, n):
        item = order[i]
        j = i
        while j > 0 and value[order[j - 1]] > value[item]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = item


cdef void sort_by_value(
    const double* value, Py_ssize_t n, uint64_t* items, uint64_t* scratch, int32_t* order
) noexcept nogil:
    """Order of the values, none of which is NaN; of equals, the first comes first.

    `items` has room for n numbers, `scratch` for twice as many. A radix sort by roughly rounded
    values leaves little to do for the exact ones.
    """
    cdef:
        Py_ssize_t i, start = 0
        bint sorted_run = True
        double base = value[0] if n > 0 else 0.0
    for i in range(n):
        base = value[i] if value[i] < base else base
    if base < -1e300:
        base = 0.0
    for i in range(n):
        # Adding zero makes one of both zeros.
        items[i] = (<uint64_t> rough_key(value[i] - base + 0.0) << 32) | <uint64_t> i
    sort_items(items, scratch, n, 0xFFFFFFFFU)
    for i in range(n):
        order[i] = <int32_t> (items[i] & 0xFFFFFFFFU)
    for i in range(1, n + 1):
        if i == n or items[i] >> 32 != items[start] >> 32:
            if not sorted_run:
                sort_run(value, order + start, i - start, <Item*> scratch)
            start = i
            sorted_run = True
        elif value[order[i]] < value[order[i - 1]]:
            sorted_run = False


def order_of(values):
    """Order of an array's values, for tests."""
    cdef:
        const double[::1] v = np.ascontiguousarray(values, dtype=np.float64)
        Py_ssize_t n = v.shape[0]
        uint64_t[::1] room = np.empty(3 * n + 1, dtype=np.uint64)
        int32_t[::1] order
    if np.isnan(values).any():
        raise ValueError("NaN has no place in an order")
    out = np.empty(n, dtype=np.int32)
    order = out
    if n > 0:
        sort_by_value(&v[0], n, &room[0], &room[n], &order[0])
    return out
