"""Rows that several holders have between them, behind the interface of one."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import medians_of
from shapetree.grow._local import LocalRows
from shapetree.grow._rows import Histograms


def part_of_goal(goal, rows):
    """The goal of some rows, on the grids that were agreed for all."""
    part = object.__new__(type(goal))
    vars(part).update(vars(goal))
    weights = None if goal.weights is None else goal.weights[rows]
    part.weights = weights
    if hasattr(goal, "y"):
        part.y, part.standardised = goal.y[rows], goal.standardised[rows]
        part.spread_unit = goal.spread_unit
    labels = values = None
    if goal.criterion_name == "squared_error":
        values = part.standardised
    else:
        labels = labels_of(goal)[rows]
        if hasattr(goal, "labels"):
            part.labels = labels
    unit = getattr(goal, "unit", 0.0)
    part.targets = Targets(labels, values, weights, goal.targets.n_stats, unit)
    return part


@lru_cache(maxsize=1)
def labels_of(goal):
    """Statistic that each row counts for; for absolute error, its level."""
    if hasattr(goal, "labels"):
        return goal.labels
    each = [goal.targets.totals(np.array([row], dtype=np.int32)) for row in range(len(goal.y))]
    stats = np.array(each)[:, : goal.targets.n_stats]
    return np.stack([np.flatnonzero(row) for row in stats]).astype(np.int32)


def part_of_bins(binned, rows):
    """The bins of some rows, of the features as they are for all."""
    arrays = [
        np.ascontiguousarray(binned.columns.array(f)[rows]) for f in range(len(binned.n_bins))
    ]
    return BinnedTable(binned.features, Columns(arrays, len(rows)))


def part_of_table(table, rows):
    columns = [None if column is None else column[rows] for column in table.columns]
    return replace(table, n_rows=len(rows), columns=columns)


class JoinedRows:
    """Adds up what several holders answer, each of which has some of the rows.

    Parameters
    ----------
    table, binned, goal
        Of all rows.
    parts : list of arrays
        The rows of each holder.
    """

    def __init__(self, table, binned, goal, parts, n_threads=1):
        self._goals = [part_of_goal(goal, rows) for rows in parts]
        self._holders = [
            LocalRows(part_of_table(table, rows), part_of_bins(binned, rows), part, n_threads)
            for rows, part in zip(parts, self._goals, strict=True)
        ]

    @property
    def n_rows(self):
        return sum(holder.n_rows for holder in self._holders)

    def totals(self, nodes):
        return sum(holder.totals(nodes) for holder in self._holders)

    def spreads(self, nodes, centres):
        each = [holder.spreads(nodes, centres) for holder in self._holders]
        least, greatest, sums = zip(*each, strict=True)
        return np.min(least, axis=0), np.max(greatest, axis=0), sum(sums)

    def medians(self, nodes):
        return np.array([self._median(node) for node in nodes.tolist()])

    def _median(self, node):
        each = [holder.rows_of(node) for holder in self._holders]
        y = [goal.y[rows] for goal, rows in zip(self._goals, each, strict=True)]
        weights = None
        if self._goals[0].weights is not None:
            weights = [goal.weights[rows] for goal, rows in zip(self._goals, each, strict=True)]
        return medians_of(np.concatenate(y), None if weights is None else np.concatenate(weights))

    def histograms(self, nodes, first, last, sparse):
        each = [holder.histograms(nodes, first, last, sparse) for holder in self._holders]
        if sparse:
            cells = joined_cells([part.cells for part in each], len(nodes), last - first)
            return Histograms(first, last, None, cells)
        return Histograms(first, last, sum(part.sums for part in each))

    def split(self, nodes, first_child, splits):
        for holder in self._holders:
            holder.split(nodes, first_child, splits)


def joined_cells(parts, n_nodes, n_features):
    """Cells of all holders, those of the same bin added up."""
    cell_start = np.zeros((n_nodes, n_features), dtype=np.int64)
    n_cells = np.zeros((n_nodes, n_features), dtype=np.int32)
    bins, sums, total = [parts[0][2][:0]], [parts[0][3][:0]], 0
    for place in np.ndindex(n_nodes, n_features):
        cells = [slice(part[0][place], part[0][place] + part[1][place]) for part in parts]
        every = np.concatenate([part[2][at] for part, at in zip(parts, cells, strict=True)])
        its_bins, cell = np.unique(every, return_inverse=True)
        its_sums = np.zeros((len(its_bins), parts[0][3].shape[1]))
        np.add.at(
            its_sums, cell,
            np.concatenate([part[3][at] for part, at in zip(parts, cells, strict=True)]),
        )  # fmt: skip
        cell_start[place], n_cells[place] = total, len(its_bins)
        total += len(its_bins)
        bins.append(its_bins.astype(np.int32))
        sums.append(its_sums)
    return cell_start, n_cells, np.concatenate(bins), np.concatenate(sums)
