# Sorts of whole numbers that no comparison slows down.

from libc.stdint cimport int32_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

ctypedef fused item_t:
    int32_t     # a number, none below 0
    uint64_t    # the number in the upper 32 bits, and what goes with it


cdef inline void sort_items(
    item_t* items, item_t* scratch, Py_ssize_t n, uint32_t largest
) noexcept nogil:
    """Radix sort of items whose greatest number is `largest`; the order is stable.

    Digit by digit from the lowest on: count the items of each digit, add up where those of a digit
    start, and move each item there.
    """
    cdef:
        # Two digits of 11 bits are enough for the numbers of millions of rows.
        int digit_bits = 8 if item_t is uint64_t else 11
        int shift = 32 if item_t is uint64_t else 0
        int n_digits = 1 << digit_bits, used = 0, digit
        Py_ssize_t count[2049]
        Py_ssize_t i
        item_t* source = items
        item_t* target = scratch
        item_t* swap
    while used < 32 and largest >> used:
        memset(count, 0, (n_digits + 1) * sizeof(Py_ssize_t))
        for i in range(n):
            count[((source[i] >> (shift + used)) & (n_digits - 1)) + 1] += 1
        for digit in range(n_digits):
            count[digit + 1] += count[digit]
        for i in range(n):
            digit = (source[i] >> (shift + used)) & (n_digits - 1)
            target[count[digit]] = source[i]
            count[digit] += 1
        swap = source
        source = target
        target = swap
        used += digit_bits
    if source != items:
        memcpy(items, source, n * sizeof(item_t))
