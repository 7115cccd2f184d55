"""Impurity of a set of rows and its supergradient; the loops' own versions are in criterion.pxd."""

from itertools import accumulate

import numpy as np

from libc.math cimport rint
from libc.stdint cimport int64_t

cdef double[MAX_LOOKED_UP + 1] looked_up


cdef int fill_looked_up() noexcept nogil:
    cdef int i
    for i in range(MAX_LOOKED_UP + 1):
        looked_up[i] = x_log2_x(i)
    return 0


fill_looked_up()


cdef const double* small_counts() noexcept nogil:
    return looked_up


cdef class NodeStatistics:
    """What a node knows of its rows.

    Attributes
    ----------
    n_rows : int
    weight : float
        Sum of the rows' weights.
    impurity : float
        Mean impurity, in units of the goal's criterion.
    value : array of shape (n_outputs, n_values)
        What the node predicts: shares of the classes, or a mean or median.
    """

    cdef readonly Py_ssize_t n_rows
    cdef readonly double weight
    cdef readonly double impurity
    cdef readonly object value

    def __init__(self, Py_ssize_t n_rows, double weight, double impurity, value not None):
        self.n_rows = n_rows
        self.weight = weight
        self.impurity = impurity
        self.value = value

    def with_value(self, value not None):
        """The same, but for what the node predicts."""
        return NodeStatistics(self.n_rows, self.weight, self.impurity, value)

    def __reduce__(self):
        return NodeStatistics, (self.n_rows, self.weight, self.impurity, self.value)


KINDS = {"gini": GINI, "entropy": ENTROPY, "squared_error": SQUARED, "absolute_error": ABSOLUTE}


cdef class Criterion:
    """A criterion over a given layout of statistics.

    Parameters
    ----------
    name : {"gini", "entropy", "squared_error", "absolute_error"}
    block_sizes : sequence of int
        Statistics per output: its number of classes or levels (1 each for "squared_error").
    levels : array of shape (sum(block_sizes),), optional
        For "absolute_error", the value of y that each statistic counts, ascending in each block.
    """

    def __init__(self, str name, block_sizes, levels=None):
        cdef:
            const int32_t[::1] block
            const double[::1] level
        given = np.asarray(block_sizes, dtype=np.int32)
        sizes = given.tolist()
        if name not in KINDS:
            raise ValueError(f"unknown criterion {name!r}; choose one of {sorted(KINDS)}")
        if given.ndim != 1 or not sizes or min(sizes) < 1:
            raise ValueError("block_sizes must hold at least one positive size")
        self._block = np.array([0, *accumulate(sizes)], dtype=np.int32)
        n_labels = sum(sizes)
        if name == "absolute_error":
            self._level = np.ascontiguousarray(levels, dtype=np.float64)
            if self._level.shape != (n_labels,):
                raise ValueError(f"levels must hold {n_labels} values")
        else:
            self._level = np.zeros(1)
        block = self._block
        level = self._level
        self.info.kind = KINDS[name]
        self.info.n_outputs = len(sizes)
        self.info.n_stats = 1 + len(sizes) if name == "squared_error" else n_labels
        self.info.block = &block[0]
        self.info.level = &level[0]

    def __reduce__(self):
        (name,) = [name for name, kind in KINDS.items() if kind == self.info.kind]
        return Criterion, (name, np.diff(self._block), self._level)

    @property
    def n_stats(self):
        return self.info.n_stats

    def impurity(self, stats):
        """Impurity mass of one statistics vector."""
        cdef const double[::1] s = self._vector(stats)
        return impurity(&self.info, &s[0])

    def impurities(self, stats):
        """Impurity masses of some statistics vectors, one in each line."""
        cdef:
            const double[:, ::1] s = np.ascontiguousarray(stats, dtype=np.float64)
            double[::1] mass
            Py_ssize_t i
        if s.shape[1] != self.info.n_stats:
            raise ValueError(f"expected {self.info.n_stats} statistics, got {s.shape[1]}")
        out = np.empty(s.shape[0])
        mass = out
        for i in range(s.shape[0]):
            mass[i] = impurity(&self.info, &s[i, 0])
        return out

    def describe_classes(self, sums not None, bint counts_rows):
        """What nodes' sums of channels tell of them: rows, weights, mean impurity and shares.

        The first channels are classes; the last one counts rows, unless weights do.
        """
        cdef:
            const double[:, ::1] channels = np.ascontiguousarray(sums, dtype=np.float64)
            Py_ssize_t i, n_nodes = channels.shape[0]
            int o, c, most = 0, n_outputs = self.info.n_outputs
            int64_t[::1] rows
            double[::1] weight, impure
            double[:, :, ::1] share
        if self.info.kind not in (GINI, ENTROPY) or channels.shape[1] < self.info.n_stats:
            raise ValueError("every class needs its sum")
        for o in range(n_outputs):
            most = max(most, self.info.block[o + 1] - self.info.block[o])
        n_rows = np.empty(n_nodes, dtype=np.int64)
        weights, impurities = np.empty(n_nodes), np.empty(n_nodes)
        shares = np.zeros((n_nodes, n_outputs, most))
        rows, weight, impure, share = n_rows, weights, impurities, shares
        with nogil:
            for i in range(n_nodes):
                weight[i] = weight_of(&self.info, &channels[i, 0])
                for o in range(n_outputs):
                    for c in range(self.info.block[o], self.info.block[o + 1]):
                        share[i, o, c - self.info.block[o]] = channels[i, c] / weight[i]
                rows[i] = <int64_t> rint(
                    channels[i, channels.shape[1] - 1] if counts_rows else weight[i])
                impure[i] = max(impurity(&self.info, &channels[i, 0]), 0.0) / weight[i]
        return n_rows, weights, impurities, shares

    def weight(self, stats):
        """Sum of the weights of the rows behind a statistics vector."""
        cdef const double[::1] s = self._vector(stats)
        return weight_of(&self.info, &s[0])

    def supergradient(self, stats):
        """Cost of a unit of each statistic in a branch with statistics `stats`."""
        cdef:
            const double[::1] s = self._vector(stats)
            double[::1] d
        out = np.empty(self.info.n_stats)
        d = out
        supergradient(&self.info, &s[0], &d[0])
        return out

    def _vector(self, stats):
        vector = np.ascontiguousarray(stats, dtype=np.float64)
        if vector.shape != (self.info.n_stats,):
            raise ValueError(f"expected {self.info.n_stats} statistics, got {vector.shape}")
        return vector
