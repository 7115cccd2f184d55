"""Rows that several holders have between them, all of them in this process."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from shapetree._core.columns import Columns
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import LocalParts
from shapetree.data._sums import Numbers
from shapetree.data._table import TablePart
from shapetree.grow._joined_rows import JoinedRows
from shapetree.grow._local import LocalRows
from shapetree.tree._sketcher import SketchedRows


def in_parts(rng, values, weights):
    """Numbers in a few parts, some of them empty."""
    owner = rng.integers(0, 4, len(values))
    parts = LocalParts(
        [
            (values[owner == own], None if weights is None else weights[owner == own])
            for own in range(5)
        ]
    )
    return Numbers(parts, len(values))


def part_of_goal(goal, rows):
    """The goal of some rows, on the grids that were agreed for all."""
    targets = goal.y if hasattr(goal, "y") else goal.labels - goal.starts[:-1]
    weights = None if goal.weights is None else goal.weights[rows]
    counts = None if goal.counts is None else goal.counts[rows]
    return goal.without_rows().of(targets[rows], weights, counts)


def part_of_bins(binned, rows):
    """The bins of some rows, of the features as they are for all."""
    arrays = [
        np.ascontiguousarray(binned.columns.array(f)[rows]) for f in range(len(binned.n_bins))
    ]
    return BinnedTable(binned.features, Columns(arrays, len(rows)))


def part_of_table(table, rows):
    columns = [None if column is None else column[rows] for column in table.columns]
    return replace(table, n_rows=len(rows), columns=columns)


def joined_rows(table, binned, goal, parts, first_rows=None):
    """Rows of several holders; `parts` are the numbers of the rows of each."""
    first_rows = [0] * len(parts) if first_rows is None else first_rows
    holders = [
        LocalRows(
            part_of_table(table, rows), part_of_bins(binned, rows), part_of_goal(goal, rows), 1,
            first_row=first_row,
        )
        for rows, first_row in zip(parts, first_rows, strict=True)
    ]  # fmt: skip
    return JoinedRows(LocalParts(holders), binned, None, goal, 1)


class PairwiseParts:
    """Parts in this process, whose answers are joined two at a time, as a cluster does it."""

    def __init__(self, parts):
        self._parts = parts

    def ask(self, of, join, finish=None):
        """One answer of all parts."""
        return self._joined([of(part) for part in self._parts], join)

    def _joined(self, answers, join):
        if len(answers) == 1:
            return answers[0]
        half = len(answers) // 2
        return join([self._joined(some, join) for some in (answers[:half], answers[half:])])


def sketched_in_parts(kind, whole, sizes):
    """Rows of several holders, each of which follows another, under a finished tree."""
    firsts = np.cumsum([0, *sizes])
    parts = [
        part_of_sketched(whole, np.arange(first, first + size))
        for first, size in zip(firsts, sizes, strict=False)
    ]
    return replace(SketchedRows.of(whole), parts=kind(parts))


def part_of_sketched(whole, rows):
    """Some rows, which follow each other, under a finished tree."""
    return replace(
        whole,
        table=part_of_table(whole.table, rows),
        binned=part_of_bins(whole.binned, rows),
        y=whole.y[rows],
        counts=None if whole.counts is None else whole.counts[rows],
        weights=None if whole.weights is None else whole.weights[rows],
        first_row=int(rows[0]) if len(rows) else 0,
    )


class TableInParts:
    """A table in parts of some sizes, as far as its values are asked for; see `Table`."""

    def __init__(self, table, sizes):
        self.n_rows = table.n_rows
        self._table = table
        self._firsts = np.cumsum([0, *sizes])

    def known_values(self, features):
        """Nothing is known yet."""

    def parts(self, needed, counts):
        """Parts of the rows."""
        each = [np.arange(a, b) for a, b in pairwise(self._firsts)]
        return LocalParts(
            [
                TablePart(
                    part_of_table(self._table, rows),
                    first,
                    None if counts is None else counts[rows],
                )
                for first, rows in zip(self._firsts.tolist(), each, strict=False)
            ]
        )
