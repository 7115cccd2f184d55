"""How sure a node is: intervals for what it would show of all rows that could come to it.

Everything that shows an interval reads these. They are of the rows' own shares, means and medians,
before predictions are smoothed, and at a level of 95 %. Rows that choose a tree's splits also make
its leaves look better than they are; rows that the tree has not seen do not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, stdtrit

from shapetree.data._sums import count_rows
from shapetree.tree._sketch import NodeSketch

LEVEL = 0.95
TAIL = (1.0 - LEVEL) / 2.0
Z = 1.959963984540054  # of the normal distribution
# How much farther than Student's interval Hall's may reach: beyond, it grows and holds no more.
FARTHEST = 2.0


class Sure(NamedTuple):
    """A share, mean or median of rows, and the interval that holds that of all such rows."""

    value: float
    low: float
    high: float
    kind: str  # {"share", "mean", "median"}


def sure_of_share(share: float, n_rows: float) -> Sure | None:
    """Wilson's interval of a share of some rows, which may be an effective number of them.

    >>> [round(number, 3) for number in sure_of_share(1.0, 5)[:3]]
    [1.0, 0.566, 1.0]
    """
    if not n_rows > 0:
        return None
    share = min(max(share, 0.0), 1.0)
    shrunk = n_rows / (n_rows + Z * Z)
    centre = shrunk * share + (1.0 - shrunk) / 2
    half = shrunk * Z * math.sqrt(share * (1 - share) / n_rows + Z * Z / (4 * n_rows * n_rows))
    # Exactly nothing and all, whatever rounding makes of them.
    low = 0.0 if share == 0 else min(centre - half, share)
    high = 1.0 if share == 1 else max(centre + half, share)
    return Sure(share, max(low, 0.0), min(high, 1.0), "share")


def sure_of_mean(mean: float, deviation: float, skewness: float, n_rows: float) -> Sure | None:
    """Student's interval of a mean, or Hall's where that reaches further.

    Hall's (1992) takes the skewness of the rows into account: Student's misses the mean of a few
    skewed rows two or three times as often as it should. None if the rows are equal or only one, so
    that nothing is known of their spread.
    """
    if not n_rows > 1 or not deviation > 0 or not math.isfinite(deviation):
        return None
    error = deviation / math.sqrt(n_rows - 1)
    reach = float(stdtrit(n_rows - 1, 1.0 - TAIL))
    below, above = (
        min(max(reach, side * _hall(side * reach, skewness, n_rows)), FARTHEST * reach)
        for side in (1, -1)
    )
    return Sure(mean, mean - below * error, mean + above * error, "mean")


def _hall(quantile: float, skewness: float, n_rows: float) -> float:
    """The quantile of a mean's t statistic, if its cubic transform has the given one."""
    slope = skewness / (3 * math.sqrt(n_rows))
    if abs(slope) < 1e-9 or not math.isfinite(slope):
        return quantile
    return (float(np.cbrt(1 + 3 * slope * (quantile - slope / 2))) - 1) / slope


def sure_of_median(values: np.ndarray, n_rows: float | None = None) -> Sure | None:
    """The interval of a median between two of the rows' ascending numbers.

    It holds for every distribution. None if the rows are too few (less than six) to exclude any
    number. The effective number of rows may be another one than that of the values.
    """
    n = len(values) if n_rows is None else math.floor(n_rows)
    if len(values) == 0 or n < 1:
        return None
    # How many may lie outside on either side: P(X <= k) for X of n tosses of a coin.
    k = np.arange(n // 2 + 1) if n <= 1000 else np.arange(n // 2 - 4 * math.isqrt(n), n // 2 + 1)
    outside = int(np.count_nonzero(bdtr(k, n, 0.5) <= TAIL)) + int(k[0])
    if outside == 0:
        return None
    outside = min(outside * len(values) // n, (len(values) - 1) // 2)
    low, high = float(values[outside - 1]), float(values[-outside])
    if outside == 0:
        low, high = float(values[0]), float(values[-1])
    return Sure(float(np.median(values)), low, high, "median")


def sure_of_node(sketch: NodeSketch, best: int | None, is_median: bool) -> Sure | None:
    """From a node's rows, with its interval: the share of class `best`, or the mean or median."""
    if is_median:
        return None if sketch.middle is None else Sure(*sketch.middle, "median")
    weighed = sketch.weighed
    if best is not None:
        counts = sketch.counts if weighed is None else weighed
        total = float(counts.sum())
        share = float(counts[best]) / total if total > 0 else math.nan
        return sure_of_share(share, sketch.n_effective) if total > 0 else None
    if sketch.mean is None or sketch.deviation is None or sketch.counts.sum() == 0:
        return None
    mean, deviation = (sketch.mean, sketch.deviation) if weighed is None else weighed[1:]
    skewness = sketch.skewness or 0.0
    return sure_of_mean(float(mean), float(deviation), skewness, sketch.n_effective)


class UnseenLeaf(NamedTuple):
    """Estimates for a leaf from rows that the tree was not fitted on."""

    n_rows: int
    value: float  # share of the class that the leaf predicts, or the rows' mean or median
    # Its interval; NaN if the rows are too few for one.
    low: float
    high: float


def unseen_leaves(
    leaves: np.ndarray,
    targets: np.ndarray,
    is_right: np.ndarray | None,
    weights: np.ndarray | None,
    is_median: bool = False,
) -> dict[int, UnseenLeaf]:
    """Estimates from new rows for each leaf that they reach.

    `is_right` says whether rows are of the class that their leaf predicts, or to which share; None
    for numbers. Whole weights are counts of rows; of others, Kish's effective number counts.
    """
    found = {}
    order = np.argsort(leaves, kind="stable")
    numbers, first = np.unique(leaves[order], return_index=True)
    n_counted = count_rows(weights, len(leaves))
    are_counts = weights is not None and n_counted == float(weights.sum())
    for number, rows in zip(numbers.tolist(), np.split(order, first[1:]), strict=True):
        own = np.ones(len(rows)) if weights is None else weights[rows]
        total = float(own.sum())
        if not total > 0:
            continue
        n = total if are_counts else total * total / float((own * own).sum())
        counts = own.astype(np.int64) if are_counts else np.ones(len(rows), dtype=np.int64)
        sure: Sure | None
        if is_right is not None:
            value = float(is_right[rows] @ own) / total
            sure = sure_of_share(value, n)
        else:
            y = targets[rows]
            every = np.sort(np.repeat(y, counts)) if is_median else y
            value = float(np.median(every)) if is_median else float(y @ own) / total
            off = y - value
            deviation = math.sqrt(float((off * off) @ own) / total)
            skewness = float((off / (deviation or 1.0)) ** 3 @ own) / total
            sure = (
                sure_of_median(every, n)
                if is_median
                else sure_of_mean(value, deviation, skewness, n)
            )
        low, high = (math.nan, math.nan) if sure is None else (sure.low, sure.high)
        found[number] = UnseenLeaf(int(counts.sum()), value, low, high)
    return found
