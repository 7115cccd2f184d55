"""Binning: quantile bins of the columns of a table, and the bin of each of their values.

Numbers are brought to buckets of equal width by a count; within each bucket few are left to sort,
and only where their exact order is asked for:

    values   5.1 0.2 3.3 0.1 3.9 ..     start   [0 | 2 | 2 | 4 | ..]
    buckets  0.2 0.1 | | 3.3 3.9 | ..   sorted  [n   -   y    ..   ]
"""

import numpy as np

from cython.parallel cimport prange, threadid
from cython cimport floating
from libc.float cimport DBL_MAX
from libc.math cimport INFINITY
from libc.stdint cimport UINT16_MAX, int32_t, int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from shapetree._core.columns cimport (
    FLOAT32, UINT16, UINT32, UINT8, Column, Columns, bin_t, point_at,
)
from shapetree._core.threads cimport (
    Arena, Arenas, Mark, arena_mark, arena_release, arena_take, take_branches, take_doubles,
    take_ints,
)

cdef enum:
    DIGIT_BITS = 11
    N_DIGITS = 1 << DIGIT_BITS
    N_PASSES = 6               # digits of a 64-bit key
    FEW_BUCKETS = 8192         # where few of them are sorted
    MAX_BUCKETS = 16384
    MAX_LOOK = 255             # values looked at to lay out the buckets
    SHORT_RUN = 24             # numbers that are sorted by insertion
    LONG_RUN = 1024            # numbers that are sorted by their digits
    MAX_CELLS = 2048           # of the table that a search starts with
    ROWS_PER_BLOCK = 1024      # whose values stay in a cache while all columns are read
    COLUMNS_PER_BLOCK = 16


# --- sorting ---


cdef inline uint64_t key_of(double value) noexcept nogil:
    """An integer whose order is that of the numbers."""
    cdef uint64_t bits
    memcpy(&bits, &value, 8)
    return ~bits if bits >> 63 else bits | <uint64_t> 0x8000000000000000


cdef inline double value_of(uint64_t key) noexcept nogil:
    """The number behind a key."""
    cdef double value
    key = key & <uint64_t> 0x7FFFFFFFFFFFFFFF if key >> 63 else ~key
    memcpy(&value, &key, 8)
    return value


ctypedef struct Workspace:
    # What a thread needs to sort numbers.
    double* other              # as many numbers as rows
    uint32_t* row              # as many rows, or NULL: the rows' order is not wanted
    uint32_t* other_row
    int64_t* count             # of each digit
    int32_t* start             # of each bucket, and the end
    uint8_t* is_sorted         # each bucket
    double* seen               # distinct values in a hash table
    int64_t n_seen             # room there, a power of two


cdef void take_workspace(
    Workspace* work, Py_ssize_t n, bint with_rows, Py_ssize_t max_bins, Arena* arena
) noexcept nogil:
    """Take what is needed to sort n numbers; check `arena.failed` afterwards."""
    work.n_seen = 2
    while work.n_seen < 2 * (min(n, max_bins) + 1):
        work.n_seen *= 2
    work.other = take_doubles(arena, n)
    work.row = <uint32_t*> take_ints(arena, n) if with_rows else NULL
    work.other_row = <uint32_t*> take_ints(arena, n) if with_rows else NULL
    work.count = <int64_t*> arena_take(arena, N_PASSES * (N_DIGITS + 1) * sizeof(int64_t))
    work.start = take_ints(arena, MAX_BUCKETS + 1)
    work.is_sorted = <uint8_t*> take_branches(arena, MAX_BUCKETS)
    work.seen = take_doubles(arena, work.n_seen)


cdef void sort_by_digits(
    double* values, double* other, uint32_t* row, uint32_t* other_row, Py_ssize_t n,
    int64_t* count
) noexcept nogil:
    """Radix sort of values and, unless NULL, rows; equal values keep their order.

    Passes in which all keys share a digit are left out.
    """
    cdef:
        Py_ssize_t i
        int digit, d
        uint64_t* source = <uint64_t*> values
        uint64_t* target = <uint64_t*> other
        uint64_t* swap
        uint32_t* row_source = row
        uint32_t* row_target = other_row
        uint32_t* row_swap
        int64_t* position
        uint64_t key
    memset(count, 0, N_PASSES * (N_DIGITS + 1) * sizeof(int64_t))
    for i in range(n):
        key = key_of(values[i])
        source[i] = key
        for digit in range(N_PASSES):
            d = (key >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)
            count[digit * (N_DIGITS + 1) + d + 1] += 1
    for digit in range(N_PASSES):
        position = count + digit * (N_DIGITS + 1)
        if position[((source[0] >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)) + 1] == n:
            continue
        for i in range(N_DIGITS):
            position[i + 1] += position[i]
        for i in range(n):
            key = source[i]
            d = (key >> (digit * DIGIT_BITS)) & (N_DIGITS - 1)
            target[position[d]] = key
            if row != NULL:
                row_target[position[d]] = row_source[i]
            position[d] += 1
        swap = source
        source = target
        target = swap
        row_swap = row_source
        row_source = row_target
        row_target = row_swap
    for i in range(n):
        values[i] = value_of(source[i])
    if row != NULL and row_source != row:
        memcpy(row, row_source, n * sizeof(uint32_t))


cdef void sort_by_insertion(double* values, uint32_t* row, Py_ssize_t n) noexcept nogil:
    cdef:
        Py_ssize_t i, j
        double value
        uint32_t its_row = 0
    for i in range(1, n):
        value = values[i]
        if not value < values[i - 1]:
            continue
        if row != NULL:
            its_row = row[i]
        j = i
        while j > 0 and value < values[j - 1]:
            values[j] = values[j - 1]
            if row != NULL:
                row[j] = row[j - 1]
            j -= 1
        values[j] = value
        if row != NULL:
            row[j] = its_row


cdef void merge(
    const double* values, const uint32_t* row, Py_ssize_t middle, Py_ssize_t n, double* out,
    uint32_t* out_row
) noexcept nogil:
    """Merge two sorted runs; of equals, those of the first run come first."""
    cdef:
        Py_ssize_t i = 0, j = middle, k, taken
    for k in range(n):
        if j == n or (i < middle and not values[j] < values[i]):
            taken = i
            i += 1
        else:
            taken = j
            j += 1
        out[k] = values[taken]
        if row != NULL:
            out_row[k] = row[taken]


cdef void sort_by_merging(
    double* values, double* other, uint32_t* row, uint32_t* other_row, Py_ssize_t n
) noexcept nogil:
    cdef:
        Py_ssize_t start = 0, width = SHORT_RUN, stop, middle
    while start < n:
        sort_by_insertion(
            values + start, row + start if row != NULL else NULL, min(width, n - start))
        start += width
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            merge(values + start, row + start if row != NULL else NULL, middle - start,
                  stop - start, other + start, other_row + start if row != NULL else NULL)
            start = stop
        memcpy(values, other, n * sizeof(double))
        if row != NULL:
            memcpy(row, other_row, n * sizeof(uint32_t))
        width *= 2


cdef void sort_run(
    double* values, double* other, uint32_t* row, uint32_t* other_row, Py_ssize_t n,
    int64_t* count
) noexcept nogil:
    """Sort values and, unless NULL, rows; equal values keep their order."""
    if n <= SHORT_RUN:
        sort_by_insertion(values, row, n)
    elif n <= LONG_RUN:
        sort_by_merging(values, other, row, other_row, n)
    else:
        sort_by_digits(values, other, row, other_row, n, count)


# --- the distinct values of a column, if they are few ---


cdef inline uint64_t mixed(uint64_t bits) noexcept nogil:
    bits = (bits ^ (bits >> 32)) * <uint64_t> 0x9E3779B97F4A7C15
    return bits ^ (bits >> 29)


cdef Py_ssize_t few_distinct(
    const double* values, Py_ssize_t n, Py_ssize_t at_most, Workspace* work, double* distinct
) noexcept nogil:
    """Distinct values, ascending; -1 if there are more than so many."""
    cdef:
        Py_ssize_t i, n_distinct = 0
        uint64_t at, last = work.n_seen - 1, bits
        double value
    for i in range(work.n_seen):
        work.seen[i] = <double> INFINITY - <double> INFINITY    # NaN: nothing there
    for i in range(n):
        value = values[i]
        memcpy(&bits, &value, 8)
        at = mixed(bits) & last
        while work.seen[at] == work.seen[at] and work.seen[at] != value:
            at = (at + 1) & last
        if work.seen[at] != value:
            if n_distinct == at_most:
                return -1
            work.seen[at] = value
            distinct[n_distinct] = value
            n_distinct += 1
    sort_run(distinct, work.other, NULL, NULL, n_distinct, work.count)
    return n_distinct


# --- buckets: a rough order from which a few exact places are had cheaply ---


ctypedef struct Buckets:
    # Numbers in an order that is right but for those of one bucket.
    double* values
    double* other              # room for as many numbers
    uint32_t* row              # or NULL
    uint32_t* other_row
    Py_ssize_t n
    int n_buckets
    double first               # bucket b starts at first + b / scale, but rounding
    double scale


cdef inline int bucket_of(const Buckets* buckets, double value) noexcept nogil:
    """Number of a value's bucket, which never falls as values rise."""
    cdef double place = (value - buckets.first) * buckets.scale
    place = place if place > 0.0 else 0.0
    return <int> (place if place < buckets.n_buckets - 1 else buckets.n_buckets - 1)


cdef void lay_out_buckets(
    Buckets* buckets, const double* values, int max_buckets
) noexcept nogil:
    """Choose buckets of equal width where a look at a few values finds most of them."""
    cdef:
        double look[MAX_LOOK]
        double other[MAX_LOOK]
        Py_ssize_t i
        int n_look = <int> min(MAX_LOOK, max(buckets.n // 16, min(buckets.n, 31)))
        double low, high
    buckets.n_buckets = 1
    while buckets.n_buckets < max_buckets and 2 * buckets.n_buckets <= buckets.n:
        buckets.n_buckets *= 2
    for i in range(n_look):
        look[i] = values[buckets.n * i // n_look]
    sort_by_merging(look, other, NULL, NULL, n_look)
    low = look[n_look // 50]
    high = look[n_look - 1 - n_look // 50]
    if low == high:
        for i in range(buckets.n):
            low = values[i] if values[i] < low else low
            high = values[i] if values[i] > high else high
    buckets.first = low - 0.25 * (high - low)
    buckets.scale = buckets.n_buckets / (1.5 * (high - low)) if high > low else 0.0
    if not buckets.scale < INFINITY or not buckets.first > -INFINITY:
        buckets.first = 0.0
        buckets.scale = 0.0


cdef void fill_buckets(
    Buckets* buckets, double* values, Py_ssize_t n, Workspace* work
) noexcept nogil:
    """Bring values, and rows where they are wanted, to their buckets."""
    cdef:
        Py_ssize_t i
        int b
        int32_t* start = work.start
    buckets.n = n
    lay_out_buckets(buckets, values, FEW_BUCKETS if work.row == NULL else MAX_BUCKETS)
    memset(start, 0, (buckets.n_buckets + 1) * sizeof(int32_t))
    memset(work.is_sorted, 0, buckets.n_buckets)
    for i in range(n):
        start[bucket_of(buckets, values[i]) + 1] += 1
    for b in range(buckets.n_buckets):
        start[b + 1] += start[b]
    if work.row == NULL:
        for i in range(n):
            b = bucket_of(buckets, values[i])
            work.other[start[b]] = values[i]
            start[b] += 1
    else:
        for i in range(n):
            b = bucket_of(buckets, values[i])
            work.other[start[b]] = values[i]
            work.other_row[start[b]] = work.row[i]
            start[b] += 1
    # Each start has become the end of its bucket, which is the start of the next.
    for b in range(buckets.n_buckets, 0, -1):
        start[b] = start[b - 1]
    start[0] = 0
    buckets.values = work.other
    buckets.other = values
    buckets.row = work.other_row
    buckets.other_row = work.row


cdef inline void sort_bucket(Buckets* buckets, int b, Workspace* work) noexcept nogil:
    cdef Py_ssize_t start = work.start[b]
    if not work.is_sorted[b]:
        sort_run(
            buckets.values + start, buckets.other + start,
            buckets.row + start if buckets.row != NULL else NULL,
            buckets.other_row + start if buckets.row != NULL else NULL,
            work.start[b + 1] - start, work.count)
        work.is_sorted[b] = True


cdef void sort_with_rows(double* values, Py_ssize_t n, Workspace* work) noexcept nogil:
    """Sort values, none of which is NaN, and the rows of the workspace; both are in its room then.

    Zeros must have one sign. Equal values keep their order.
    """
    cdef:
        Buckets buckets
        int b
    fill_buckets(&buckets, values, n, work)
    for b in range(buckets.n_buckets):
        sort_bucket(&buckets, b, work)


cdef inline double value_at(
    Buckets* buckets, Py_ssize_t place, int near, Workspace* work
) noexcept nogil:
    """The value at a place in the order of all, which is in a bucket next to `near`, if not there.

    Empty buckets do not count.
    """
    while place < work.start[near]:
        near -= 1
    while place >= work.start[near + 1]:
        near += 1
    sort_bucket(buckets, near, work)
    return buckets.values[place]


# --- quantile bins ---


cdef Py_ssize_t group_rows(
    Buckets* buckets, Py_ssize_t max_bins, double* low, double* high, Workspace* work
) noexcept nogil:
    """Group more than `max_bins` distinct values as `group_sorted` does where all weigh 1.

    Only the buckets in which a bin ends are sorted.
    """
    cdef:
        Py_ssize_t n = buckets.n, start = 0, n_bins = 0, place, first, stop
        double share, value
        int b = 0
    low[0] = value_at(buckets, 0, 0, work)
    while True:
        n_bins += 1
        if n_bins == max_bins:
            break
        # A value ends the bin if its middle row is the first beyond the bin's share, or follows it.
        share = <double> (n - start) / <double> (max_bins - n_bins + 1)
        place = start + <Py_ssize_t> share
        while place >= work.start[b + 1]:
            b += 1
        value = value_at(buckets, place, b, work)
        first = place
        while first > work.start[b] and buckets.values[first - 1] == value:
            first -= 1
        stop = place + 1
        while stop < work.start[b + 1] and buckets.values[stop] == value:
            stop += 1
        if first <= start or not <double> (first - start) + 0.5 * <double> (stop - first) > share:
            first = stop
        if first == n:
            break
        high[n_bins - 1] = value_at(buckets, first - 1, b, work)
        low[n_bins] = value_at(buckets, first, b, work)
        start = first
    high[n_bins - 1] = value_at(buckets, n - 1, buckets.n_buckets - 1, work)
    return n_bins


cdef Py_ssize_t group_sorted(
    const double* values, const double* weights, const uint32_t* row, Py_ssize_t n,
    Py_ssize_t max_bins, double* low, double* high
) noexcept nogil:
    """Group n > 0 sorted values into bins of about equal weight; weights are NULL where all are 1.

    `row`, unless NULL, says which weight is whose.
    """
    cdef:
        Py_ssize_t i, stop, n_distinct = 0, n_bins = 0
        double left = 0.0, in_bin = 0.0, weight, share = 0.0
    for i in range(n):
        n_distinct += i == 0 or values[i] != values[i - 1]
        left += 1.0 if weights == NULL else weights[i if row == NULL else row[i]]
    i = 0
    while i < n:
        weight = 0.0
        stop = i
        while stop == i or (stop < n and values[stop] == values[i]):
            weight += 1.0 if weights == NULL else weights[stop if row == NULL else row[stop]]
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
    return n_bins


cdef Py_ssize_t bins_of_values(
    double* values, Py_ssize_t n, const double* weights, Py_ssize_t max_bins, double* low,
    double* high, Arena* arena
) noexcept nogil:
    """Least and greatest value of each bin of one column; returns how many bins there are.

    The values are lost. NaN is passed over. The least finite number and minus infinity share a bin,
    because no finite threshold parts them.
    """
    cdef:
        Py_ssize_t i, n_known = 0, n_distinct = -1, n_bins
        bint unbounded = False
        Buckets buckets
        Mark mark = arena_mark(arena)
        Workspace of_thread
        Workspace* work = &of_thread
    take_workspace(work, n, weights != NULL, max_bins, arena)
    if arena.failed:
        return 0
    for i in range(n):
        if values[i] != values[i]:
            continue
        unbounded |= values[i] < -DBL_MAX
        # Adding zero makes one of both zeros.
        values[n_known] = (-DBL_MAX if values[i] < -DBL_MAX else values[i]) + 0.0
        if work.row != NULL:
            work.row[n_known] = <uint32_t> i
        n_known += 1
    if n_known == 0:
        arena_release(arena, mark)
        return 0
    # Where most bins hold few rows, it is fastest to sort all.
    if n_known > 4 * max_bins:
        n_distinct = few_distinct(values, n_known, max_bins, work, low)
    if n_distinct >= 0:
        n_bins = n_distinct
        memcpy(high, low, n_bins * sizeof(double))
    else:
        if weights == NULL and n_known > 4 * max_bins:
            fill_buckets(&buckets, values, n_known, work)
            n_bins = group_rows(&buckets, max_bins, low, high, work)
        else:
            sort_with_rows(values, n_known, work)
            n_bins = group_sorted(
                work.other, weights, work.other_row, n_known, max_bins, low, high)
    if unbounded:
        low[0] = -INFINITY
    arena_release(arena, mark)
    return n_bins


cdef void read_rows(
    const Column* column, const int64_t* rows, Py_ssize_t start, Py_ssize_t stop, double* values
) noexcept nogil:
    """Copy some rows' numbers; all rows, if `rows` is NULL."""
    cdef Py_ssize_t i
    if column.kind == FLOAT32:
        for i in range(start, stop):
            values[i] = (<const float*> (
                column.data + (i if rows == NULL else rows[i]) * column.stride))[0]
    else:
        for i in range(start, stop):
            values[i] = (<const double*> (
                column.data + (i if rows == NULL else rows[i]) * column.stride))[0]


def find_bins(
    Columns columns not None,
    const int32_t[::1] features not None,     # IN: columns of numbers
    const int64_t[::1] rows,                  # IN: rows to look at, or None for all
    const double[::1] weights,                # IN: of these rows, or None for 1 each
    Py_ssize_t max_bins,
    int n_threads,
):
    """Group each column's values into at most `max_bins` bins of about equal weight.

    Equal values always share a bin; with no more distinct values than bins, each has its own. Only
    the weight of each distinct value matters, so rows may come in any order, and a weight of 2 is
    the same as a row given twice.

    Returns
    -------
    low, high : float64 arrays of shape (n_features, at most max_bins)
        Least and greatest value of each bin.
    n_bins : int64 array of shape (n_features,)
        How many bins there are; the rest of `low` and `high` is 0.
    """
    cdef:
        Py_ssize_t n_features = features.shape[0], f, block, n_blocks
        Py_ssize_t n = columns.n_rows if rows is None else rows.shape[0]
        const int64_t* row = &rows[0] if rows is not None and n > 0 else NULL
        const double* weight = NULL
        double[:, ::1] values, low, high
        int64_t[::1] n_bins
        Arenas arenas
    columns.check_numbers(features)
    if max_bins < 1 or n_threads < 1:
        raise ValueError("max_bins and n_threads must be at least 1")
    if rows is not None and n > 0 and not 0 <= np.min(rows) <= np.max(rows) < columns.n_rows:
        raise ValueError("rows are rows of the table")
    if weights is not None and weights.shape[0] != n:
        raise ValueError("weights must be as many as rows")
    if n >= 2**31 - 1:
        raise ValueError("there are too many rows")
    max_bins = min(max_bins, n + 1)
    n_threads = <int> min(n_threads, n_features + 1)
    lows = np.zeros((n_features, max(1, min(n, max_bins))))
    highs = np.zeros_like(lows)
    found = np.zeros(n_features, dtype=np.int64)
    if n == 0 or n_features == 0:
        return lows, highs, found
    if weights is not None:
        weight = &weights[0]
    low, high, n_bins = lows, highs, found
    values = np.empty((n_features, n))
    arenas = Arenas(n_threads)
    n_blocks = (n + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK
    with nogil:
        for block in prange(n_blocks, num_threads=n_threads, schedule="static"):
            for f in range(n_features):
                read_rows(
                    &columns.column[features[f]], row, block * ROWS_PER_BLOCK,
                    min((block + 1) * ROWS_PER_BLOCK, n), &values[f, 0])
        for f in prange(n_features, num_threads=n_threads, schedule="dynamic", chunksize=1):
            n_bins[f] = bins_of_values(
                &values[f, 0], n, weight, max_bins, &low[f, 0], &high[f, 0],
                &arenas.of_thread[threadid()])
    arenas.finish()
    return lows, highs, found


def group_values(
    const double[::1] values not None,    # IN: sorted, no NaN
    const double[::1] weights,            # IN: in the order of the values, or None for 1 each
    Py_ssize_t max_bins,
):
    """Group sorted values as `find_bins` does; returns the least and the greatest of each bin."""
    cdef:
        Py_ssize_t n = values.shape[0], n_bins
        double[::1] low, high
    if weights is not None and weights.shape[0] != n:
        raise ValueError("weights must be as long as values")
    if n == 0 or max_bins < 1:
        return np.empty(0), np.empty(0)
    lows = np.empty(min(n, max_bins))
    highs = np.empty_like(lows)
    low, high = lows, highs
    with nogil:
        n_bins = group_sorted(
            &values[0], NULL if weights is None else &weights[0], NULL, n, max_bins, &low[0],
            &high[0])
    return lows[:n_bins], highs[:n_bins]


def sort_values(
    const floating[:] values not None,    # IN: any stride, NaN for missing
):
    """Sort the values that are not NaN; returns them as float64, and their rows.

    The time grows linearly with the rows, and equal values keep the order of their rows.
    """
    cdef:
        Py_ssize_t i, n = 0
        double[::1] value
        uint32_t[::1] row
        Workspace work
        Arenas arenas = Arenas(1)
    ordered = np.empty(values.shape[0])
    rows = np.empty(values.shape[0], dtype=np.uint32)
    if values.shape[0] == 0:
        return ordered, rows
    if values.shape[0] >= 2**31 - 1:
        raise ValueError("there are too many values")
    value, row = ordered, rows
    take_workspace(&work, values.shape[0], True, 1, arenas.of_thread)
    arenas.finish()
    with nogil:
        for i in range(values.shape[0]):
            if values[i] == values[i]:
                value[n] = values[i] + <floating> 0.0
                work.row[n] = <uint32_t> i
                n += 1
        if n > 0:
            sort_with_rows(&value[0], n, &work)
            memcpy(&value[0], work.other, n * sizeof(double))
            memcpy(&row[0], work.other_row, n * sizeof(uint32_t))
    return ordered[:n], rows[:n]


# --- the bin of each value ---


ctypedef struct Lookup:
    # Where a feature's bins end, and a table that tells roughly where to look for a value.
    double* upper              # ends of all bins but the last, then infinity
    uint16_t* before           # ends before each cell
    double first               # start of the first cell
    double scale               # cells in a unit
    int n_cells
    int n_bins
    int width                  # a power of two, above the number of ends in any cell


cdef inline int cell_of(const Lookup* lookup, double value) noexcept nogil:
    """Number of a value's cell, which never falls as values rise; 0 for NaN."""
    cdef double place = (value - lookup.first) * lookup.scale
    place = place if place > 0.0 else 0.0
    return <int> (place if place < lookup.n_cells - 1 else lookup.n_cells - 1)


cdef inline int bin_of(const Lookup* lookup, double value, int width) noexcept nogil:
    """First bin whose end is not below the value; `n_bins` for NaN."""
    cdef:
        int position = lookup.before[cell_of(lookup, value)]
        int half = width >> 1
    # Every search takes the same steps and needs no branch.
    while half > 0:
        position += -<int> (value > lookup.upper[position + half - 1]) & half
        half >>= 1
    return position if value == value else lookup.n_bins


cdef inline void lay_out_cells(Lookup* lookup, const double* upper, int n_upper) noexcept nogil:
    """Part the range of the bins' ends into cells of equal width; `before` is 0 everywhere."""
    cdef:
        int i, cell, n_here, most = 0
    lookup.n_bins = n_upper + 1
    if n_upper > UINT16_MAX:
        lookup.n_cells = 1
    lookup.first = upper[0] if n_upper > 0 else 0.0
    lookup.scale = lookup.n_cells / (upper[n_upper - 1] - upper[0]) if n_upper > 1 else 0.0
    if not lookup.scale < INFINITY or not lookup.first > -INFINITY:
        lookup.first = 0.0
        lookup.scale = 0.0
    if n_upper > 0:
        memcpy(lookup.upper, upper, n_upper * sizeof(double))
    for i in range(n_upper):
        cell = cell_of(lookup, upper[i]) + 1
        if cell < lookup.n_cells:
            lookup.before[cell] += 1
    n_here = n_upper
    for cell in range(1, lookup.n_cells):
        # So far the number of ends in the cell before.
        most = max(most, lookup.before[cell])
        n_here -= lookup.before[cell]
        lookup.before[cell] += lookup.before[cell - 1]
    most = max(most, n_here)
    lookup.width = 1
    while lookup.width <= most:
        lookup.width *= 2
    for i in range(n_upper, n_upper + lookup.width):
        lookup.upper[i] = INFINITY


cdef inline void bin_some(
    const floating* data, Py_ssize_t stride, Py_ssize_t start, Py_ssize_t stop,
    const Lookup* lookup, bin_t* bins, int width
) noexcept nogil:
    cdef Py_ssize_t row
    for row in range(start, stop):
        bins[row] = <bin_t> bin_of(
            lookup, (<const floating*> (<const char*> data + row * stride))[0], width)


cdef void bin_block(
    const floating* data, Py_ssize_t stride, Py_ssize_t start, Py_ssize_t stop,
    const Lookup* lookup, bin_t* bins
) noexcept nogil:
    """Bins of some rows, by a loop whose steps the compiler knows where these are few."""
    if lookup.width == 1:
        bin_some(data, stride, start, stop, lookup, bins, 1)
    elif lookup.width == 2:
        bin_some(data, stride, start, stop, lookup, bins, 2)
    elif lookup.width == 4:
        bin_some(data, stride, start, stop, lookup, bins, 4)
    else:
        bin_some(data, stride, start, stop, lookup, bins, lookup.width)


cdef void bin_column(
    const Column* column, Py_ssize_t start, Py_ssize_t stop, const Lookup* lookup,
    const Column* out
) noexcept nogil:
    """Bins of some rows of a column of numbers."""
    if column.kind == FLOAT32:
        if out.kind == UINT8:
            bin_block(<const float*> column.data, column.stride, start, stop, lookup,
                      <uint8_t*> out.data)
        elif out.kind == UINT16:
            bin_block(<const float*> column.data, column.stride, start, stop, lookup,
                      <uint16_t*> out.data)
        else:
            bin_block(<const float*> column.data, column.stride, start, stop, lookup,
                      <uint32_t*> out.data)
    elif out.kind == UINT8:
        bin_block(<const double*> column.data, column.stride, start, stop, lookup,
                  <uint8_t*> out.data)
    elif out.kind == UINT16:
        bin_block(<const double*> column.data, column.stride, start, stop, lookup,
                  <uint16_t*> out.data)
    else:
        bin_block(<const double*> column.data, column.stride, start, stop, lookup,
                  <uint32_t*> out.data)


cdef class Lookups:
    """Where the bins of some features end, laid out to find the bins of many values."""

    cdef Lookup* lookup
    cdef readonly int n_features
    cdef object _uppers, _cells

    def __cinit__(self, list ends not None, Py_ssize_t n_rows):
        cdef:
            const double[::1] upper
            double[::1] uppers
            uint16_t[::1] cells
            Py_ssize_t f, n_upper, at = 0
            int n_cells = 256
        self.n_features = len(ends)
        while n_cells < MAX_CELLS and 4 * n_cells <= n_rows:
            n_cells *= 2
        self.lookup = <Lookup*> malloc((self.n_features + 1) * sizeof(Lookup))
        if self.lookup == NULL:
            raise MemoryError("no memory to bin columns")
        # A search may look as far behind a feature's last end as there are ends, and one more.
        uppers = self._uppers = np.empty(sum([3 * len(its) + 4 for its in ends]) + 1)
        cells = self._cells = np.zeros(self.n_features * n_cells + 1, dtype=np.uint16)
        for f in range(self.n_features):
            upper = ends[f]
            n_upper = upper.shape[0]
            self.lookup[f].n_cells = n_cells
            self.lookup[f].upper = &uppers[at]
            self.lookup[f].before = &cells[f * n_cells]
            lay_out_cells(&self.lookup[f], &upper[0] if n_upper > 0 else NULL, <int> n_upper)
            at += 3 * n_upper + 4

    def __dealloc__(self):
        free(self.lookup)


def bin_columns(
    Columns columns not None,
    const int32_t[::1] features not None,     # IN: columns of numbers
    Lookups lookups not None,                 # IN: of these features
    list bins not None,                       # OUT: unsigned, contiguous, one array a feature
    Py_ssize_t start,
    Py_ssize_t stop,                          # IN: rows to bin
    int n_threads,
):
    """Bin of each value; NaN goes to the feature's bin `n_bins`."""
    cdef:
        int n_features = <int> features.shape[0], f
        Py_ssize_t block, n_groups, n_blocks, row, last
        Column* outs
    columns.check_numbers(features)
    if n_features != lookups.n_features or n_features != len(bins):
        raise ValueError("there are ends and bins for each feature")
    if not 0 <= start <= stop <= columns.n_rows or n_threads < 1:
        raise ValueError("rows or n_threads are out of range")
    outs = <Column*> malloc((n_features + 1) * sizeof(Column))
    if outs == NULL:
        raise MemoryError("no memory to bin columns")
    try:
        for f in range(n_features):
            point_at(&outs[f], bins[f], f, columns.n_rows, True)
            if outs[f].kind > UINT32:
                raise TypeError("bins are unsigned")
            if lookups.lookup[f].n_bins > (<int64_t> 1 << (8 << outs[f].kind)) - 1 and (
                    outs[f].kind != UINT32):
                raise ValueError(
                    f"{lookups.lookup[f].n_bins} bins do not fit the dtype of bins")
        n_blocks = (stop - start + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK
        n_groups = (n_features + COLUMNS_PER_BLOCK - 1) // COLUMNS_PER_BLOCK
        with nogil:
            for block in prange(n_blocks * n_groups, num_threads=n_threads, schedule="dynamic"):
                row = start + block % n_blocks * ROWS_PER_BLOCK
                last = min(row + ROWS_PER_BLOCK, stop)
                for f in range(<int> (block // n_blocks) * COLUMNS_PER_BLOCK,
                               min((<int> (block // n_blocks) + 1) * COLUMNS_PER_BLOCK,
                                   n_features)):
                    bin_column(
                        &columns.column[features[f]], row, last, &lookups.lookup[f], &outs[f])
    finally:
        free(outs)
