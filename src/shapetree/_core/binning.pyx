"""Binning: quantile bins of one column and the bin of each of its values."""

import numpy as np

from cython cimport floating
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy

ctypedef fused bin_t:
    uint8_t
    uint16_t
    uint32_t


cdef enum:
    DIGIT_BITS = 11
    N_DIGITS = 1 << DIGIT_BITS


cdef inline uint64_t key_of(floating value) noexcept nogil:
    """An integer whose order is that of the numbers."""
    cdef:
        uint32_t bits32
        uint64_t bits64
    if floating is float:
        memcpy(&bits32, &value, 4)
        return <uint64_t> (~bits32 if bits32 >> 31 else bits32 | <uint32_t> 0x80000000)
    else:
        memcpy(&bits64, &value, 8)
        return ~bits64 if bits64 >> 63 else bits64 | <uint64_t> 0x8000000000000000


cdef inline floating value_of(uint64_t key, floating like) noexcept nogil:
    """The number behind a key."""
    cdef:
        uint32_t bits32
        uint64_t bits64
        floating value = like
    if floating is float:
        bits32 = <uint32_t> key
        bits32 = bits32 & <uint32_t> 0x7FFFFFFF if bits32 >> 31 else ~bits32
        memcpy(&value, &bits32, 4)
    else:
        bits64 = key & <uint64_t> 0x7FFFFFFFFFFFFFFF if key >> 63 else ~key
        memcpy(&value, &bits64, 8)
    return value


def sort_values(
    const floating[:] values not None,       # IN: any stride, NaN for missing
    bint with_order,                # IN: whether the rows' order is wanted, too
):
    """Sort the values that are not NaN; returns them and, if wanted, their rows (else None).

    A radix sort: its time grows linearly with the rows, and passes in which all keys share a
    digit are left out, so whole numbers take few.
    """
    cdef:
        Py_ssize_t i, n = 0, n_rows = values.shape[0], start
        int digit, n_passes = 6 if floating is double else 3
        uint64_t key
        uint64_t[::1] keys = np.empty(n_rows, dtype=np.uint64)
        uint64_t[::1] other_keys = np.empty(n_rows, dtype=np.uint64)
        uint32_t[::1] rows = np.empty(n_rows if with_order else 0, dtype=np.uint32)
        uint32_t[::1] other_rows = np.empty_like(rows)
        int64_t[:, ::1] count = np.zeros((n_passes, N_DIGITS + 1), dtype=np.int64)
        int64_t[::1] position
        floating[::1] out
    with nogil:
        for i in range(n_rows):
            if values[i] != values[i]:
                continue
            key = key_of(values[i])
            keys[n] = key
            if with_order:
                rows[n] = <uint32_t> i
            n += 1
            for digit in range(n_passes):
                count[digit, ((key >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)) + 1] += 1
    for digit in range(n_passes):
        position = count[digit]
        if n == 0 or position[((keys[0] >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)) + 1] == n:
            continue
        with nogil:
            for i in range(N_DIGITS):
                position[i + 1] += position[i]
            for i in range(n):
                key = keys[i]
                start = (key >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)
                other_keys[position[start]] = key
                if with_order:
                    other_rows[position[start]] = rows[i]
                position[start] += 1
        keys, other_keys = other_keys, keys
        rows, other_rows = other_rows, rows
    # The sorted values take the place of the other keys.
    ordered = np.asarray(other_keys).view(np.float32 if floating is float else np.float64)[:n]
    out = ordered
    with nogil:
        for i in range(n):
            out[i] = value_of(keys[i], <floating> 0.0)
    return ordered, np.asarray(rows)[:n] if with_order else None


def group_values(
    const floating[::1] values not None,     # IN: sorted, no NaN
    const double[::1] weights,      # IN: in the order of the values, or None for 1 each
    Py_ssize_t max_bins,            # IN
):
    """Group sorted values into at most `max_bins` bins of about equal weight.

    Equal values always share a bin; with no more distinct values than bins, each has its own. Only
    the weight of each distinct value matters, so rows may come in any order, and a weight of 2 is
    the same as a row given twice. Returns the least and the greatest value of each bin.
    """
    cdef:
        Py_ssize_t n = values.shape[0], i = 0, stop, n_distinct = 0, n_bins = 0
        double total = 0.0, left, in_bin = 0.0, weight, share
        bint by_weight = weights is not None
        double[::1] low, high
    if by_weight and weights.shape[0] != n:
        raise ValueError("weights must be as long as values")
    if n == 0 or max_bins < 1:
        return np.empty(0), np.empty(0)
    with nogil:
        for i in range(n):
            n_distinct += i == 0 or values[i] != values[i - 1]
            total += weights[i] if by_weight else 1.0
    lows = np.empty(min(n_distinct, max_bins))
    highs = np.empty_like(lows)
    low, high = lows, highs
    left = total
    i = 0
    with nogil:
        while i < n:
            stop = i + 1
            weight = weights[i] if by_weight else 1.0
            while stop < n and values[stop] == values[i]:
                weight += weights[stop] if by_weight else 1.0
                stop += 1
            # What is left, shared among the bins that are left, the open one among them: a value
            # joins the open bin unless it would overfill it by more than it now lacks.
            share = (left + in_bin) / (max_bins - n_bins + 1) if n_bins > 0 else 0.0
            if n_distinct <= max_bins or n_bins == 0 or (
                n_bins < max_bins and in_bin + 0.5 * weight > share
            ):
                low[n_bins] = values[i]
                n_bins += 1
                in_bin = 0.0
            high[n_bins - 1] = values[i]
            in_bin += weight
            left -= weight
            i = stop
    return lows[:n_bins], highs[:n_bins]


def bin_values(
    const floating[:] values not None,       # IN: any stride, NaN for missing
    const double[::1] upper not None,        # IN: (n_bins - 1,) ends of the bins but the last
    bin_t[::1] bins not None,                # OUT: first bin whose end is not below the value
):
    """Bin of each value; NaN goes to bin `n_bins`."""
    cdef:
        Py_ssize_t i, half, width = 1, position
        Py_ssize_t n_bins = upper.shape[0] + 1
        double value
        double[::1] padded
    if bins.shape[0] != values.shape[0]:
        raise ValueError("bins must be as long as values")
    if n_bins > np.iinfo(np.asarray(bins).dtype).max:
        raise ValueError(f"{n_bins} bins do not fit the dtype of bins")
    # Padded to a power of two, every search takes the same steps and needs no branch.
    while width < n_bins:
        width *= 2
    bounds = np.full(width, np.inf)
    bounds[:n_bins - 1] = upper
    padded = bounds
    with nogil:
        for i in range(values.shape[0]):
            value = values[i]
            position = 0
            half = width // 2
            while half > 0:
                position += half if value > padded[position + half - 1] else 0
                half //= 2
            bins[i] = <bin_t> (position if value == value else n_bins)
