"""The order in which features are preferred where they are equally good.

It must not depend on how rows and columns are ordered, nor on the names of columns, classes and
categories, nor on constant columns, nor on the rounding of weights; and a row of weight 2 is two
rows.
"""

from __future__ import annotations

import numpy as np

from shapetree._core.histogram import bin_offsets
from shapetree._core.sampling import row_hashes
from shapetree.data._map_join import Inquiry
from shapetree.grow._local import rows_of_node
from shapetree.grow._row_holder import Rows
from shapetree.grow._rows_of_node import Sample

# Among more rows, features are hardly ever equally good.
MAX_ROWS = 1_000
IRRATIONAL = (1.0 + 5.0**0.5) / 2.0


def feature_order(rows: Rows, root: int = 0) -> np.ndarray:
    """Numbers of the features, the preferred ones first, for the rows at a root.

    Features are compared by the weight of each of their bins, and then by which bins they have
    where the others have which.
    """
    features = rows.binned.features
    n_features = len(features)
    if rows.goal.n_counted > MAX_ROWS or n_features < 2:
        return np.arange(n_features, dtype=np.int32)
    (sample,) = rows.run([_sample(rows, root)])
    n_rows = sample.bins.n_rows
    row_number = row_hashes(np.arange(n_rows, dtype=np.int64))
    by_place = np.zeros(n_features, dtype=np.uint64)
    bins = np.array([sample.bins.array(number) for number in range(n_features)], dtype=np.int64)
    n_bins = np.array([feature.n_bins for feature in features], dtype=np.int64)
    offsets = bin_offsets(n_bins)[:-1]
    of_all = bins + offsets[:, None]
    weights = np.bincount(
        of_all.ravel(), np.tile(sample.weights, n_features), n_bins.sum() + n_features
    )
    with np.errstate(over="ignore"):
        # What each feature says of a row: its bin, unless these have no order, and its weight.
        keys = _hashes(weights)
        is_ordered = np.array([not feature.is_categorical for feature in features])
        place = np.arange(len(keys)) - np.repeat(offsets, n_bins + 1)
        keys *= np.where(np.repeat(is_ordered, n_bins + 1), row_hashes(place), np.uint64(1))
        by_bins, said = np.add.reduceat(keys, offsets), keys[of_all]
        for number in np.flatnonzero(~is_ordered).tolist():
            # Categories of the same weight are told apart by the first row that has them.
            first = np.full(n_bins[number] + 1, -1, dtype=np.int64)
            first[bins[number, ::-1]] = np.arange(n_rows)[::-1]
            first[-1] = -1
            by_place[number] = (row_hashes(first[bins[number]]) * row_number).sum(dtype=np.uint64)
        # Constant features tell no rows apart; beside them, others rank as without them.
        said[(said == said[:, :1]).all(axis=1)] = 0
        # Rows of which each feature says the same are one, and weigh as much as all of them. What
        # they hold is a sum, as columns have no order.
        row, weights_of_rows = _groups_of_equals(said, sample.weights)
        said = said[:, row]
        contents = row_hashes(said.sum(axis=0, dtype=np.uint64).view(np.int64))
        by_rows = said @ (_hashes(weights_of_rows) * contents)
    return np.lexsort((by_place, by_rows, by_bins)).astype(np.int32)


def _groups_of_equals(said: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One row of each kind, and what all of its kind weigh; `said` has a column for each row."""
    keys = row_hashes(np.arange(len(said), dtype=np.int64)) | np.uint64(1)
    mixed = keys @ said
    order = np.argsort(mixed)
    ordered = mixed[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return order[starts], np.add.reduceat(weights[order], starts)


def _sample(rows: Rows, root: int) -> Inquiry[Sample]:
    """Bins of a root's rows."""
    own = yield from rows_of_node(rows.goal, root, rows.n_rows)
    return (yield from own.sample((), MAX_ROWS, tuple(range(len(rows.binned.features)))))


def _hashes(weights: np.ndarray) -> np.ndarray:
    """A hash of each weight without its last digits, which may be due to rounding.

    Weights that are multiples of a power of two often lie in the middle between two shorter
    numbers, where a last digit decides; their irrational multiples hardly ever do.
    """
    rounded = (weights * IRRATIONAL).astype(np.float32)
    return row_hashes(rounded.view(np.int32).astype(np.int64))
