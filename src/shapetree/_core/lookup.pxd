# Where a number stands among ascending bounds, for many numbers and the same bounds.

from libc.math cimport INFINITY
from libc.stdint cimport UINT16_MAX, uint16_t
from libc.string cimport memcpy

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
