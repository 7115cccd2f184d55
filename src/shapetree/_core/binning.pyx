"""Binning: quantile bins of one column and the bin of each of its values."""

import numpy as np

from cython cimport floating
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.string cimport memcpy, memset

ctypedef fused bin_t:
    uint8_t
    uint16_t
    uint32_t


ctypedef fused key_t:
    uint32_t
    uint64_t

cdef enum:
    DIGIT_BITS = 11
    N_DIGITS = 1 << DIGIT_BITS


cdef inline uint32_t key_of_float(float value) noexcept nogil:
    """An integer whose order is that of the numbers."""
    cdef uint32_t bits
    memcpy(&bits, &value, 4)
    return ~bits if bits >> 31 else bits | <uint32_t> 0x80000000


cdef inline uint64_t key_of_double(double value) noexcept nogil:
    cdef uint64_t bits
    memcpy(&bits, &value, 8)
    return ~bits if bits >> 63 else bits | <uint64_t> 0x8000000000000000


cdef inline float float_of_key(uint32_t key) noexcept nogil:
    """The number behind a key."""
    cdef float value
    key = key & <uint32_t> 0x7FFFFFFF if key >> 31 else ~key
    memcpy(&value, &key, 4)
    return value


cdef inline double double_of_key(uint64_t key) noexcept nogil:
    cdef double value
    key = key & <uint64_t> 0x7FFFFFFFFFFFFFFF if key >> 63 else ~key
    memcpy(&value, &key, 8)
    return value


cdef class SortWorkspace:
    """Memory for `sort_values`, to be used again for one column after another."""
    cdef readonly object keys
    cdef readonly object other_keys
    cdef readonly object rows
    cdef readonly object other_rows

    def __init__(self, Py_ssize_t n_rows, bint with_order):
        self.keys = np.empty(n_rows, dtype=np.uint64)
        self.other_keys = np.empty(n_rows, dtype=np.uint64)
        self.rows = np.empty(n_rows if with_order else 0, dtype=np.uint32)
        self.other_rows = np.empty_like(self.rows)


cdef bint sort_keys(
    key_t* keys, key_t* other_keys, uint32_t* rows, uint32_t* other_rows, Py_ssize_t n,
    int n_passes, int64_t* count,
) noexcept nogil:
    """Radix sort of keys and, unless NULL, rows; whether the result is in the other arrays.

    Passes in which all keys share a digit are left out, so whole numbers take few.
    """
    cdef:
        Py_ssize_t i
        int digit, d
        key_t key
        key_t* swap_keys
        uint32_t* swap_rows
        int64_t* position
        bint swapped = False
    memset(count, 0, n_passes * (N_DIGITS + 1) * sizeof(int64_t))
    for i in range(n):
        key = keys[i]
        for digit in range(n_passes):
            d = (key >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)
            count[digit * (N_DIGITS + 1) + d + 1] += 1
    for digit in range(n_passes):
        position = count + digit * (N_DIGITS + 1)
        if n == 0 or position[((keys[0] >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)) + 1] == n:
            continue
        for i in range(N_DIGITS):
            position[i + 1] += position[i]
        for i in range(n):
            key = keys[i]
            d = (key >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)
            other_keys[position[d]] = key
            if rows != NULL:
                other_rows[position[d]] = rows[i]
            position[d] += 1
        swap_keys = keys
        keys = other_keys
        other_keys = swap_keys
        swap_rows = rows
        rows = other_rows
        other_rows = swap_rows
        swapped = not swapped
    return swapped


def sort_values(
    const floating[:] values not None,         # IN: any stride, NaN for missing
    bint with_order,                           # IN: whether the rows' order is wanted, too
    SortWorkspace workspace=None,              # holds the result until it is used again
):
    """Sort the values that are not NaN; returns them and, if wanted, their rows (else None).

    The time grows linearly with the rows, and no number but the result depends on their order.
    """
    cdef:
        Py_ssize_t i, n = 0, n_rows = values.shape[0]
        uint64_t[::1] wide, wide_other
        uint32_t[::1] narrow, narrow_other, rows, other_rows
        uint32_t* row_pointer = NULL
        uint32_t* other_row_pointer = NULL
        int64_t[::1] count = np.empty(6 * (N_DIGITS + 1), dtype=np.int64)
        bint swapped
        floating[::1] out
    if workspace is None:
        workspace = SortWorkspace(n_rows, with_order)
    if len(workspace.keys) < n_rows or with_order and len(workspace.rows) < n_rows:
        raise ValueError("the workspace is too small")
    if n_rows == 0:
        return np.asarray(values).copy(), workspace.rows if with_order else None
    if with_order:
        rows = workspace.rows
        other_rows = workspace.other_rows
        row_pointer = &rows[0]
        other_row_pointer = &other_rows[0]
    wide = workspace.keys
    wide_other = workspace.other_keys
    narrow = workspace.keys.view(np.uint32)
    narrow_other = workspace.other_keys.view(np.uint32)
    with nogil:
        for i in range(n_rows):
            if values[i] != values[i]:
                continue
            if floating is float:
                narrow[n] = key_of_float(values[i])
            else:
                wide[n] = key_of_double(values[i])
            if with_order:
                rows[n] = <uint32_t> i
            n += 1
        if floating is float:
            swapped = sort_keys(
                &narrow[0], &narrow_other[0], row_pointer, other_row_pointer, n, 3, &count[0])
        else:
            swapped = sort_keys(
                &wide[0], &wide_other[0], row_pointer, other_row_pointer, n, 6, &count[0])
    # The sorted values take the place of their keys.
    held = workspace.other_keys if swapped else workspace.keys
    ordered = held.view(np.float32 if floating is float else np.float64)[:n]
    if n > 0:
        wide = held
        narrow = held.view(np.uint32)
        out = ordered
        with nogil:
            for i in range(n):
                if floating is float:
                    out[i] = float_of_key(narrow[i])
                else:
                    out[i] = double_of_key(wide[i])
    order = workspace.other_rows if swapped else workspace.rows
    return ordered, order[:n] if with_order else None


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
        double total = 0.0, left, in_bin = 0.0, weight, share = 0.0
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
            # A value joins the open bin unless it would overfill it by more than it now lacks.
            if n_distinct <= max_bins or n_bins == 0 or (
                n_bins < max_bins and in_bin + 0.5 * weight > share
            ):
                low[n_bins] = values[i]
                # What is left is shared among the bins that are left, this one among them.
                share = left / (max_bins - n_bins)
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
