"""The order in which features are preferred where they are equally good.

It must not depend on how rows and columns are ordered, nor on the names of columns, classes and
categories; and a row of weight 2 is two rows.
"""

from __future__ import annotations

import numpy as np

from shapetree._core.sampling import row_hashes
from shapetree.grow._rows import HeldRows

# Among more rows, features are hardly ever equally good.
MAX_ROWS = 1_000


def feature_order(rows: HeldRows) -> np.ndarray:
    """Numbers of the features, the preferred ones first.

    Features are compared by the weight of each of their bins, and then by which bins they have
    where the others have which.
    """
    features = rows.binned.features
    n_features = len(features)
    if rows.goal.n_counted > MAX_ROWS or n_features < 2:
        return np.arange(n_features, dtype=np.int32)
    sample = rows.at(0, rows.n_rows).sample((), MAX_ROWS, tuple(range(n_features)))
    n_rows = sample.bins.n_rows
    row_number = row_hashes(np.arange(n_rows, dtype=np.int64))
    by_bins, by_place = np.zeros((2, n_features), dtype=np.uint64)
    # What each feature says of each row: its bin, and the weight of it; categories have no order.
    said = np.empty((n_features, n_rows), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number, feature in enumerate(features):
            bins = sample.bins.array(number).astype(np.int64)
            keys = _hashes(np.bincount(bins, sample.weights, minlength=feature.n_bins + 1))
            if feature.is_categorical:
                # Categories of the same weight are told apart by the first row that has them.
                first = np.full(feature.n_bins + 1, -1, dtype=np.int64)
                first[bins[::-1]] = np.arange(n_rows)[::-1]
                first[-1] = -1
                by_place[number] = (row_hashes(first[bins]) * row_number).sum(dtype=np.uint64)
            else:
                keys *= row_hashes(np.arange(len(keys), dtype=np.int64))
            by_bins[number] = keys.sum(dtype=np.uint64)
            said[number] = keys[bins]
        # Rows of which all features say the same are one, and weigh as much as all of them.
        contents, row, group = np.unique(said.sum(axis=0), return_index=True, return_inverse=True)
        of_group = _hashes(np.bincount(group, sample.weights)) * row_hashes(contents.view(np.int64))
        by_rows = (said[:, row] * of_group).sum(axis=1, dtype=np.uint64)
    return np.lexsort((by_place, by_rows, by_bins)).astype(np.int32)


def _hashes(weights: np.ndarray) -> np.ndarray:
    """A hash of each weight; sums of weights do not depend on their order."""
    return row_hashes(weights.astype(np.float64).view(np.int64))
