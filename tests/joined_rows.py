"""Rows that several holders have between them, behind the interface of one."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets
from shapetree._core.routing import LeafLosses
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import medians_of
from shapetree.grow._grower import describe
from shapetree.grow._local import LocalRows
from shapetree.grow._rows import Histograms, Sample
from shapetree.refine._loss import powers_above
from shapetree.refine._rows import LocalRefinedRows, LossCells, refined_rows


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
        self.goal, self.binned, self.n_threads = goal, binned, n_threads
        self.holders = [
            LocalRows(
                part_of_table(table, rows), part_of_bins(binned, rows), part_of_goal(goal, rows),
                n_threads,
            )
            for rows in parts
        ]  # fmt: skip

    @property
    def n_rows(self):
        return sum(holder.n_rows for holder in self.holders)

    def totals(self, nodes):
        return sum(holder.totals(nodes) for holder in self.holders)

    def spreads(self, nodes, centres):
        each = [holder.spreads(nodes, centres) for holder in self.holders]
        least, greatest, sums = zip(*each, strict=True)
        return np.min(least, axis=0), np.max(greatest, axis=0), sum(sums)

    def sums(self, nodes, units):
        return sum(holder.sums(nodes, units) for holder in self.holders)

    def medians(self, nodes):
        return np.array([self.medians_of_node(node, "y") for node in nodes.tolist()])

    def medians_of_node(self, node, name):
        """Medians of an array of the goal that holds a line for each row."""
        weights, values = [], []
        for holder in self.holders:
            rows = holder.rows_of(node)
            values.append(getattr(holder.goal, name)[rows])
            if holder.goal.weights is not None:
                weights.append(holder.goal.weights[rows])
        return medians_of(np.concatenate(values), np.concatenate(weights) if weights else None)

    def histograms(self, nodes, first, last, sparse):
        each = [holder.histograms(nodes, first, last, sparse) for holder in self.holders]
        if sparse:
            cells = joined_cells([part.cells for part in each], len(nodes), last - first)
            return Histograms(first, last, None, cells)
        return Histograms(first, last, sum(part.sums for part in each))

    def split(self, nodes, first_child, splits):
        for holder in self.holders:
            holder.split(nodes, first_child, splits)

    @property
    def coarse(self):
        return self.holders[0].coarse

    def at(self, node):
        return JoinedRowsOfNode([holder.at(node) for holder in self.holders])


class JoinedRowsOfNode:
    """The rows of one node, or of a care set, that several holders have between them."""

    def __init__(self, each):
        self._each = each

    @property
    def n_rows(self):
        return sum(part.n_rows for part in self._each)

    def totals(self):
        return sum(part.totals() for part in self._each)

    def histogram(self):
        return sum(part.histogram() for part in self._each)

    def grids(self, pairs, group_of_bin, n_groups, max_rows=None):
        assert max_rows is None or self.n_rows <= max_rows
        return sum(part.grids(pairs, group_of_bin, n_groups) for part in self._each)

    def branch_counts(self, split):
        return sum(part.branch_counts(split) for part in self._each)

    def sample(self, features, max_rows, binned=None):
        """All rows: the tables of these tests are smaller than any sample."""
        assert self.n_rows <= max_rows
        each = [part.sample(features, max_rows, binned) for part in self._each if part.n_rows]
        n_rows = sum(len(part.rows) for part in each)

        def joined(name, n_columns):
            arrays = [[getattr(part, name).array(i) for part in each] for i in range(n_columns)]
            return Columns([np.concatenate(parts) for parts in arrays], n_rows)

        return Sample(
            features,
            joined("columns", len(features)),
            joined("bins", len(binned or ())),
            Targets.joined([part.targets for part in each]),
            np.concatenate([part.weights for part in each]),
            None if binned is None else np.concatenate([part.content for part in each]),
            1.0,
        )


def joined_cells(parts, n_nodes, n_features):
    """Cells of all holders, those of the same bin added up.

    Parts are tuples of where cells start, how many they are, their bins and their sums.
    """
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


def losses_of_part(goal, part):
    """What it costs to send a part's rows to leaves, on the grids agreed for all rows."""
    if hasattr(goal, "labels"):
        return LeafLosses(part.labels, None, part.weights, int(goal.starts[-1]))
    greatest = np.abs(goal.standardised).max(axis=0, initial=0.0)
    return LeafLosses(
        None, part.standardised, part.weights, goal.y.shape[1], absolute=goal.is_absolute,
        anchors=3 * powers_above(goal.total_weight * greatest),
    )  # fmt: skip


class JoinedRefinedRows:
    """Rows of several holders, of a tree under refinement; see `RefinedRows`."""

    def __init__(self, rows, losses, n_nodes, max_branches):
        self.rows, self.n_nodes, self.max_branches = rows, n_nodes, max_branches
        self.n_threads = rows.n_threads
        self._each = [
            LocalRefinedRows(holder, losses_of_part(rows.goal, holder.goal), n_nodes, max_branches)
            for holder in rows.holders
        ]
        self.bins, self.n_bins = rows.binned.features, rows.binned.n_bins
        self.is_categorical = rows.binned.categorical.view(np.uint8)
        self._n_care = []

    def _ask(self, name, *arguments):
        return [getattr(part, name)(*arguments) for part in self._each]

    def _sum(self, name, *arguments):
        return np.sum(self._ask(name, *arguments), axis=0)

    def set_split(self, node, split, children):
        self._ask("set_split", node, split, children)

    def send(self, nodes):
        self._ask("send", nodes)

    def sizes(self):
        return self._sum("sizes").tolist()

    def weights(self, nodes):
        return self._sum("weights", nodes).tolist()

    def describe(self, nodes):
        numbers = np.array(nodes, dtype=np.int32)
        return describe(self.rows.goal, self.rows, numbers, self.rows.totals(numbers))

    def piece_counts(self, nodes):
        return [sum(parts) for parts in zip(*self._ask("piece_counts", nodes), strict=True)]

    def pieces_below(self, node):
        n_rows, weights, pieces = zip(*self._ask("pieces_below", node), strict=True)
        return (
            sum(n_rows),
            None if weights[0] is None else sum(weights),
            {number: sum(part[number] for part in pieces) for number in pieces[0]},
        )

    def branch_counts(self, node, split, n_branches):
        return self._sum("branch_counts", node, split, n_branches).tolist()

    def leaf_sums(self, nodes):
        return self._sum("leaf_sums", nodes)

    def leaf_ranges(self, nodes):
        ranges = np.array(self._ask("leaf_ranges", nodes))
        return np.stack([ranges[:, :, 0].min(axis=0), ranges[:, :, 1].max(axis=0)], axis=1)

    def leaf_medians(self, nodes):
        return np.array([self.rows.medians_of_node(node, "standardised") for node in nodes])

    def leaf_totals(self, nodes, table, anchors):
        return self._sum("leaf_totals", nodes, table, anchors)

    def branch_losses(self, nodes, table, anchors):
        each = self._ask("branch_losses", nodes, table, anchors)
        sums, self._n_care, least = zip(*each, strict=True)
        return sum(sums), sum(self._n_care), sum(least)

    def loss_cells(self, n_care):
        """The cells of all nodes at once."""
        n_features = len(self.n_bins)
        cells = [
            [
                (each.starts[i : i + 1], each.n_cells[i : i + 1], each.bins, each.losses)
                for _, each in part.loss_cells(np.where(n_care, n, 0).tolist())
                for i in range(len(each.starts))
            ]
            for part, n in zip(self._each, self._n_care, strict=True)
        ]
        for node in range(len(n_care)):
            yield node, LossCells(*joined_cells([part[node] for part in cells], 1, n_features))

    def care_sets(self, n_branches):
        each = self._ask("care_sets", n_branches)
        return [JoinedCareSet(list(parts)) for parts in zip(*each, strict=True)]


refined_rows.register(JoinedRows, JoinedRefinedRows)


class JoinedCareSet:
    """Rows of several holders for which branches differ; see `CareSet`."""

    def __init__(self, each):
        self._each = each
        self.n_branches = each[0].n_branches

    @property
    def n_rows(self):
        return sum(part.n_rows for part in self._each)

    @property
    def least(self):
        return sum(part.least for part in self._each)

    @property
    def regret(self):
        return sum(part.regret for part in self._each)

    def losses_by_ratio(self):
        return sum(part.losses_by_ratio() for part in self._each)

    def as_classes(self, divisor, unit):
        return JoinedRowsOfNode([part.as_classes(divisor, unit) for part in self._each])

    def region_losses(self, shape):
        return sum(part.region_losses(shape) for part in self._each)


class JoinedSpread:
    """Rows of several holders, each of which follows another, under a finished tree."""

    def __init__(self, whole, sizes):
        self.n_rows = whole.table.n_rows
        firsts = np.cumsum([0, *sizes])
        self.parts = [
            replace(
                whole,
                table=part_of_table(whole.table, np.arange(first, first + size)),
                y=None if whole.y is None else whole.y[first : first + size],
                first_row=int(first),
            )
            for first, size in zip(firsts, sizes, strict=False)
        ]

    def ask(self, *questions):
        return [question.join([question.of(part) for part in self.parts]) for question in questions]


class PairwiseSpread(JoinedSpread):
    """The same, but answers are joined two at a time, as a cluster does it."""

    def ask(self, *questions):
        return [self._join(question, self.parts) for question in questions]

    def _join(self, question, parts):
        if len(parts) == 1:
            return question.of(parts[0])
        half = len(parts) // 2
        return question.join(
            [self._join(question, parts[:half]), self._join(question, parts[half:])]
        )
