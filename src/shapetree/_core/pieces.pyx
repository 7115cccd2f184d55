"""Shape functions in the features' own values: pieces of axes, and cuts of planes.

A cut sends a row up if `a * u + b * v > threshold`, where u and v are the two features' values in
the user's units, or the positions of their categories.
"""

import numpy as np

from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN, floor
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc

from shapetree._core.columns cimport FLOAT32, FLOAT64, INT32, Columns, check_rows
from shapetree._core.threads cimport NO_BRANCH

cdef extern from "parting.h":
    double parting(double low, double high) noexcept nogil
    double parting_of_bins(
        const double* low, const double* high, Py_ssize_t below, Py_ssize_t above
    ) noexcept nogil


def thresholds_between(
    const double[::1] low not None,                # IN: (n,)
    const double[::1] high not None,               # IN: (n,) greater than those in `low`
):
    """Finite numbers t between two values each, so that low <= t < high.

    Numbers with the fewest digits in the middle half between the two, or their means. Infinite
    values count as the greatest finite ones. Nothing finite parts minus infinity from the least
    finite number.
    """
    cdef:
        Py_ssize_t i, n = low.shape[0]
        double[::1] threshold
    if high.shape[0] != n:
        raise ValueError("each threshold needs a value on either side")
    result = np.empty(n)
    threshold = result
    with nogil:
        for i in range(n):
            threshold[i] = parting(low[i], high[i])
    return result


def pieces_of_bins(
    const uint8_t[::1] branch_of_bin not None,     # IN: (n_bins + 1,) NO_BRANCH without rows
    const double[::1] low not None,                # IN: (n_bins,) least value of each bin
    const double[::1] high not None,               # IN: (n_bins,) and greatest
    const int64_t[::1] n_rows=None,                # IN: (n_bins + 1,) rows of each bin
):
    """Join the bins of an ordered feature to pieces of its axis.

        bins      0   1   2   3   4   5   missing      branch_of_bin, - where no row is
        branch    0   0   -   1   1   0      2
        pieces   [ 0     ) [ 1     ) [ 0   )           parted between bins 1 and 3, and 4 and 5

    A piece ends where the next bin with rows goes elsewhere, at a short number between the two. The
    last bin is that of missing values, which are no piece. If numbers of rows are not told, bins
    without a branch are those that hold none.

    Returns
    -------
    upper : float64 array (n_pieces,)
        Greatest value of each piece; the last one is infinite.
    branch : int32 array (n_pieces,)
    """
    cdef:
        Py_ssize_t n_bins = branch_of_bin.shape[0] - 1, n
        const int64_t* rows = NULL if n_rows is None else &n_rows[0]
        double[::1] upper
        int32_t[::1] branch
    if n_bins < 0 or low.shape[0] != n_bins or high.shape[0] != n_bins or (
            n_rows is not None and n_rows.shape[0] != n_bins + 1):
        raise ValueError("each bin needs its bounds")
    n = count_pieces(&branch_of_bin[0], rows, n_bins)
    if n == 0:
        raise ValueError("some bin must have a branch")
    uppers, branches = np.empty(n), np.empty(n, dtype=np.int32)
    upper, branch = uppers, branches
    fill_pieces(&branch_of_bin[0], rows, &low[0], &high[0], n_bins, &upper[0], &branch[0])
    return uppers, branches


cdef inline bint is_held(const uint8_t* branch, const int64_t* n_rows, Py_ssize_t i) noexcept nogil:
    """Whether a bin holds rows, as their numbers tell, or its branch if these are not given."""
    return branch[i] != NO_BRANCH if n_rows == NULL else n_rows[i] > 0


cdef Py_ssize_t count_pieces(
    const uint8_t* branch_of_bin, const int64_t* n_rows, Py_ssize_t n_bins
) noexcept nogil:
    """Number of runs of bins with rows that have one branch."""
    cdef Py_ssize_t i, below = -1, n = 0
    for i in range(n_bins):
        if is_held(branch_of_bin, n_rows, i):
            n += below < 0 or branch_of_bin[below] != branch_of_bin[i]
            below = i
    return n


cdef void fill_pieces(
    const uint8_t* branch_of_bin, const int64_t* n_rows, const double* low, const double* high,
    Py_ssize_t n_bins, double* upper, int32_t* branch,
) noexcept nogil:
    """Ends and branches of the pieces that `count_pieces` counts; there must be one."""
    cdef Py_ssize_t i, below = -1, piece = 0
    for i in range(n_bins):
        if not is_held(branch_of_bin, n_rows, i):
            continue
        if below >= 0 and branch_of_bin[below] != branch_of_bin[i]:
            upper[piece] = parting_of_bins(low, high, below, i)
            piece += 1
        branch[piece] = branch_of_bin[i]
        below = i
    upper[piece] = INFINITY


ctypedef struct FeaturePieces:
    # What the shape functions of a feature have in common.
    Py_ssize_t n_bins
    const double* low             # NULL for categories
    const double* high
    bint is_whole
    bint has_places


cdef int read_features(features, FeaturePieces* of_feature) except -1:
    """Bounds of the bins of features, which must stay alive."""
    cdef:
        Py_ssize_t f
        const double[::1] low, high
    for f, bins in enumerate(features):
        of_feature[f].n_bins = bins.n_bins
        of_feature[f].low = of_feature[f].high = NULL
        of_feature[f].is_whole, of_feature[f].has_places = bins.is_whole, bins.has_places
        if bins.low is None or bins.high is None:
            continue
        low, high = bins.low, bins.high
        if low.shape[0] != bins.n_bins or high.shape[0] != bins.n_bins:
            raise ValueError("each bin needs its bounds")
        if bins.n_bins:
            of_feature[f].low, of_feature[f].high = &low[0], &high[0]
    return 0


cdef Py_ssize_t count_all_pieces(
    const FeaturePieces* feature, const uint8_t* branch_of_bin
) except -1:
    """Pieces of a shape function: intervals, or categories."""
    cdef Py_ssize_t n = feature.n_bins
    if feature.low != NULL:
        n = count_pieces(branch_of_bin, NULL, feature.n_bins)
        if n == 0:
            raise ValueError("some bin must have a branch")
    return feature.n_bins if feature.has_places else n


cdef void fill_all_pieces(
    const FeaturePieces* feature, const uint8_t* branch_of_bin, int largest, Py_ssize_t n,
    double* upper, int32_t* branch,
) noexcept nogil:
    """Ends and branches of these; NaN as the ends of categories."""
    cdef Py_ssize_t i, piece
    if feature.low == NULL:
        for i in range(n):
            upper[i] = NAN
            branch[i] = largest if branch_of_bin[i] == NO_BRANCH else branch_of_bin[i]
        return
    fill_pieces(branch_of_bin, NULL, feature.low, feature.high, feature.n_bins, upper, branch)
    piece = count_pieces(branch_of_bin, NULL, feature.n_bins) - 1
    if feature.is_whole:
        for i in range(piece):
            upper[i] = floor(upper[i])  # parts whole numbers in the same way
    if feature.has_places:
        # From the last place on, as no place is before the number of its piece.
        for i in range(n - 1, -1, -1):
            while piece > 0 and upper[piece - 1] >= feature.low[i]:
                piece -= 1
            branch[i] = branch[piece]
            upper[i] = NAN


def pieces_of_splits(splits, const int64_t[::1] largest not None, features):
    """Lay out the shape functions of many nodes in the features' own values.

    Parameters
    ----------
    splits : list of BinSplit
    largest : int64 array (n_nodes,)
        Branches that values go to if training saw none like them.
    features : sequence of FeatureBins

    Returns
    -------
    dict
        Arrays of `TreeArrays`: feature, missing_branch, saw_missing, piece_start, piece_upper and
        piece_branch.
    """
    cdef:
        Py_ssize_t node, f, missing, n_nodes = len(splits), n = 0
        const uint8_t[::1] branch_of_bin
        int32_t[::1] feature, missing_branch
        uint8_t[::1] saw_missing
        int64_t[::1] start
        double[::1] upper
        int32_t[::1] branch
        FeaturePieces* of_feature
    if largest.shape[0] != n_nodes:
        raise ValueError("each node needs its largest branch")
    found = {
        "feature": np.empty(n_nodes, dtype=np.int32),
        "missing_branch": np.empty(n_nodes, dtype=np.int32),
        "saw_missing": np.empty(n_nodes, dtype=bool),
        "piece_start": np.zeros(n_nodes + 1, dtype=np.int64),
    }
    feature, missing_branch = found["feature"], found["missing_branch"]
    saw_missing, start = found["saw_missing"].view(np.uint8), found["piece_start"]
    of_feature = <FeaturePieces*> malloc((len(features) + 1) * sizeof(FeaturePieces))
    if of_feature == NULL:
        raise MemoryError("no memory to lay out shape functions")
    try:
        read_features(features, of_feature)
        for node, split in enumerate(splits):
            f, branch_of_bin = split.feature, split.branch_of_bin
            if not 0 <= f < len(features):
                raise ValueError("splits must be on features that exist")
            missing = of_feature[f].n_bins
            if branch_of_bin.shape[0] != missing + 1:
                raise ValueError("every bin needs a branch")
            feature[node] = f
            saw_missing[node] = branch_of_bin[missing] != NO_BRANCH
            missing_branch[node] = branch_of_bin[missing] if saw_missing[node] else largest[node]
            n += count_all_pieces(&of_feature[f], &branch_of_bin[0])
            start[node + 1] = n
        found["piece_upper"], found["piece_branch"] = np.empty(n), np.empty(n, dtype=np.int32)
        upper, branch = found["piece_upper"], found["piece_branch"]
        for node, split in enumerate(splits):
            branch_of_bin = split.branch_of_bin
            fill_all_pieces(
                &of_feature[feature[node]], &branch_of_bin[0], largest[node],
                start[node + 1] - start[node], &upper[start[node]], &branch[start[node]])
    finally:
        free(of_feature)
    return found


# --- pairs over the columns of a table ------------------------------------------------------------

cdef enum:
    ROWS_AT_ONCE = 8192    # that one thread takes


cdef class PairCuts:
    """A pair's shape function over the columns of a table, checked and ready to send rows.

    Parameters
    ----------
    columns : Columns
        The table: numbers, or codes of categories.
    shape : PairShape
    to_regions : bool
        Whether rows are sent to the regions of the shape function instead of their branches; that
        of missing values comes last.
    """

    def __init__(self, Columns columns not None, shape, bint to_regions=False):
        cdef:
            int first = shape.first, second = shape.second, n_cuts, n_pieces, f, i
            int missing_branch = shape.missing_branch
            const double[::1] place_a = np.ascontiguousarray(shape.positions[0], dtype=np.float64)
            const double[::1] place_b = np.ascontiguousarray(shape.positions[1], dtype=np.float64)
            const double[::1] a = shape.cut_a, b = shape.cut_b, threshold = shape.cut_threshold
            const int32_t[::1] low = shape.cut_low, high = shape.cut_high
            const int32_t[::1] branch = shape.branch_of_piece
        if a is None or b is None or threshold is None or low is None or high is None or (
                branch is None):
            raise TypeError("a pair's shape function needs its cuts")
        n_cuts, n_pieces = low.shape[0], branch.shape[0]
        if to_regions:
            branch, missing_branch = np.arange(n_pieces, dtype=np.int32), n_pieces
        for f in (first, second):
            if not 0 <= f < columns.n_columns or (
                    columns.column[f].kind not in (INT32, FLOAT32, FLOAT64)):
                raise ValueError(f"the table has no column {f} of numbers or categories")
        if n_cuts == 0 or n_pieces == 0 or not (
                a.shape[0] == b.shape[0] == threshold.shape[0] == high.shape[0] == n_cuts):
            raise ValueError("the cuts' arrays differ in length")
        for i in range(n_cuts):
            for f in (low[i], high[i]):
                if not (i < f < n_cuts or -n_pieces <= f < 0):
                    raise ValueError("the cuts are not those of a tree")
        self._arrays = [columns, place_a, place_b, a, b, threshold, low, high, branch]
        self.least_branch = self.greatest_branch = missing_branch
        for i in range(n_pieces):
            self.least_branch = min(self.least_branch, branch[i])
            self.greatest_branch = max(self.greatest_branch, branch[i])
        self.cuts.first = &columns.column[first]
        self.cuts.second = &columns.column[second]
        self.cuts.n_a = place_a.shape[0]
        self.cuts.n_b = place_b.shape[0]
        self.cuts.place_a = &place_a[0] if self.cuts.n_a else NULL
        self.cuts.place_b = &place_b[0] if self.cuts.n_b else NULL
        self.cuts.a = &a[0]
        self.cuts.b = &b[0]
        self.cuts.threshold = &threshold[0]
        self.cuts.low = &low[0]
        self.cuts.high = &high[0]
        self.cuts.branch = &branch[0]
        self.cuts.missing_branch = missing_branch
        self.n_rows = columns.n_rows

    def branches(self, const int32_t[::1] rows not None, int n_threads):
        """Branch of each of the given rows."""
        cdef:
            Py_ssize_t k
            uint8_t[::1] out
        check_rows(rows, self.n_rows)
        if n_threads < 1:
            raise ValueError("n_threads must be at least 1")
        result = np.empty(rows.shape[0], dtype=np.uint8)
        if rows.shape[0]:
            out = result
            for k in prange(rows.shape[0], nogil=True, num_threads=n_threads, schedule="dynamic",
                            chunksize=ROWS_AT_ONCE):
                out[k] = branch_by_cuts(&self.cuts, rows[k])
        return result
