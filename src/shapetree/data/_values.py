"""How the values of ordered features are spread: their ends, and their standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from shapetree._core.columns import deviations, extents
from shapetree._threads import threads_for
from shapetree.data._sampling import SCALE_ROWS, sampled
from shapetree.data._table import Table, TablePart


class FeatureValues(NamedTuple):
    """Values of some features in a part of the rows: their ends, NaN if all are missing.

    Of rows that belong to a sample of all, their numbers, values of shape (n_features, n_rows), and
    how many rows each of them counts as.
    """

    least: np.ndarray
    greatest: np.ndarray
    rows: np.ndarray
    sample: np.ndarray
    counts: np.ndarray

    def scales(self) -> np.ndarray:
        """Standard deviations; 1 where nothing can be divided by them."""
        sample, counts = self.sample, self.counts
        if (self.rows[1:] < self.rows[:-1]).any():
            # Parts come in any order, and sums of doubles depend on it.
            order = np.argsort(self.rows)
            sample, counts = np.take(sample, order, axis=1), counts[order]
        found = deviations(sample, counts)
        return np.where((found > 0) & (found < np.inf), found, 1.0)


def values_of(
    table: Table, features: Sequence[int], counts: np.ndarray | None, n_threads: int = 1
) -> FeatureValues:
    """How the values of features are spread over rows, each of which may count as several."""
    found = table.known_values(features)
    if found is not None:
        least, greatest, rows, sample = found
        times = np.ones(len(rows)) if counts is None else counts[rows].astype(np.float64)
        return FeatureValues(least, greatest, rows, sample, times)
    of = partial(_values_of_part, features, table.n_rows, n_threads)
    joined: FeatureValues = table.parts(features, counts).ask(of, _join_values)
    return joined


def _values_of_part(
    features: Sequence[int],
    n_total: int,
    n_threads: int,
    part: TablePart,
) -> FeatureValues:
    table, first_row, counts = part
    rows = sampled(first_row, table.n_rows, n_total, SCALE_ROWS)
    taken = slice(None) if len(rows) == table.n_rows else rows - first_row
    sample = np.empty((len(features), len(rows)))
    for i, feature in enumerate(features):
        column = table.columns[feature]
        assert column is not None
        sample[i] = column[taken]
    threads = threads_for(table.n_rows * len(features), n_threads)
    least, greatest = extents(table.values, np.array(features, dtype=np.int32), threads)
    times = np.ones(len(rows)) if counts is None else counts[taken].astype(np.float64)
    return FeatureValues(least, greatest, rows, sample, times)


def _join_values(parts: Sequence[FeatureValues]) -> FeatureValues:
    least, greatest, rows, samples, counts = zip(*parts, strict=True)
    return FeatureValues(
        np.fmin.reduce(least),
        np.fmax.reduce(greatest),
        np.concatenate(rows),
        np.concatenate(samples, axis=1),
        np.concatenate(counts),
    )


class Neighbours(NamedTuple):
    """The greatest number up to each of some thresholds, and the least above; infinite if none."""

    below: np.ndarray
    above: np.ndarray


def neighbours_of(table: Table, thresholds: dict[int, np.ndarray]) -> dict[int, Neighbours]:
    """Between which numbers of the rows thresholds on features lie; they ascend."""
    of = partial(_neighbours_of_part, thresholds)
    found: dict[int, Neighbours] = table.parts(list(thresholds), None).ask(of, _join_neighbours)
    return found


def _neighbours_of_part(
    thresholds: dict[int, np.ndarray], part: TablePart
) -> dict[int, Neighbours]:
    return {j: _neighbours(part.table.columns[j], its) for j, its in thresholds.items()}


def _neighbours(column: np.ndarray | None, thresholds: np.ndarray) -> Neighbours:
    assert column is not None
    known = column[~np.isnan(column)].astype(np.float64)
    segment = np.searchsorted(thresholds, known, side="left")
    n = len(thresholds)
    greatest, least = np.full(n + 1, -np.inf), np.full(n + 1, np.inf)
    np.maximum.at(greatest, segment, known)
    np.minimum.at(least, segment, known)
    below = np.maximum.accumulate(greatest)[:-1]
    above = np.minimum.accumulate(least[::-1])[::-1][1:]
    return Neighbours(below, above)


def _join_neighbours(parts: Sequence[dict[int, Neighbours]]) -> dict[int, Neighbours]:
    return {
        feature: Neighbours(
            np.max([part[feature].below for part in parts], axis=0),
            np.min([part[feature].above for part in parts], axis=0),
        )
        for feature in parts[0]
    }
