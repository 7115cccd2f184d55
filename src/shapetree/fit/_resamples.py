"""Whether there is anything to learn: small trees on resamples of the rows, tried on the others.

A price per split that keeps trees off noise would also keep them off small tables. What many small
trees say of rows that they have not seen tells the two apart far better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from shapetree._core.sampling import row_hashes
from shapetree.fit._folds import TargetCodes, contents_of, is_heavy
from shapetree.fit._growth import grow, hold, pair_tools
from shapetree.fit._learning import learn
from shapetree.fit._parameters import Parameters, path_of
from shapetree.fit._rows import BinnedRows
from shapetree.fit._scores import Score
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._progress import Progress
from shapetree.refine import Shrinkage, shrink

# Resamples up to this many rows; among more, noise does not earn the price of a split so often.
N_RESAMPLES, MAX_ROWS = 25, 5_000
# Share of the rows that each resample draws: as many different ones as a bootstrap sample has.
SHARE_DRAWN = 1.0 - np.exp(-1.0)
# The small trees.
MAX_DEPTH, MIN_ROWS_OF_LEAF = 2, 10
SHRINKAGE_OF_CLASSES, SHRINKAGE_OF_NUMBERS = Shrinkage(20.0, 3.0), Shrinkage(3.0, 1.0)
# Standard errors by which they must be better than no tree.
N_ERRORS = 1.0


@dataclass(frozen=True)
class Evidence:
    """How much better small trees are than no tree on rows that they have not seen.

    Attributes
    ----------
    gain : float
        Mean gain of the score per row.
    error : float
        Its standard error.
    n_resamples : int
    """

    gain: float
    error: float
    n_resamples: int

    @property
    def is_convincing(self) -> bool:
        """Whether there is something to learn."""
        return self.gain > N_ERRORS * self.error


def gather_evidence(
    binned: BinnedRows, parameters: Parameters, pairs: PairOptions, groups: np.ndarray | None
) -> Evidence | None:
    """What resamples tell; None if there are to be none."""
    n_resamples = parameters.resamples
    if n_resamples == "auto":
        is_asked = binned.rows.n_counted <= MAX_ROWS and not parameters.is_cart
        n_resamples = N_RESAMPLES if is_asked and parameters.leaf_penalty == "auto" else 0
    if n_resamples == 0 or max(path_of(parameters.strength)) == 0.0:
        return None
    binned = replace(binned, rows=binned.rows.here())
    targets = binned.rows.targets
    if (targets == targets[0]).all():
        return None
    if groups is None and _is_table_of_frequencies(binned):
        return None
    number = _known_by(binned) if groups is None else groups.astype(np.uint64)
    drawn = _draw(number, int(n_resamples))
    alone = pairs.without_pairs()
    evidence = _try(binned, parameters, alone, drawn, number)
    if not evidence.is_convincing and len(pairs.pairs) > 0:
        evidence = _try(binned, parameters, pairs, drawn, number)  # which takes longer
    return evidence


def _is_table_of_frequencies(binned: BinnedRows) -> bool:
    """Whether most of the rows are few that count as very many, of which none could be left out."""
    counts = binned.rows.counts
    return counts is not None and bool(counts[is_heavy(counts, 5)].sum() > counts.sum() / 2)


def _draw(number: np.ndarray, n_resamples: int) -> np.ndarray:
    """Which rows each resample draws, (n_resamples, n_rows); those of the same number together."""
    step = row_hashes(np.arange(1, n_resamples + 1, dtype=np.int64))
    hashes = [row_hashes((number + each).view(np.int64)) for each in step]
    return np.array([each.astype(np.float64) / 2.0**64 < SHARE_DRAWN for each in hashes])


def _known_by(binned: BinnedRows) -> np.ndarray:
    """A number for each row, the same for equal ones unless these are very many.

    It is made of what the row holds, so that neither order nor names of any kind matter.
    """
    rows = binned.rows
    weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
    numbers = contents_of(binned)
    kind = np.unique(numbers, return_inverse=True)[1]
    heavy = np.flatnonzero(is_heavy(np.bincount(kind, weights), 5)[kind])
    # Of very many equal rows, each stands for itself, by its place among those of its target.
    told = TargetCodes.of(rows.targets, rows.weights, rows.classes is not None)
    heavy = heavy[np.lexsort((weights[heavy], *rows.targets[heavy].T, kind[heavy]))]
    runs = np.column_stack([kind[heavy], rows.targets[heavy]])
    is_first = np.any(np.diff(runs, axis=0, prepend=np.nan) != 0, axis=1)
    starts = np.flatnonzero(is_first)
    place = np.arange(len(heavy)) - np.repeat(starts, np.diff(starts, append=len(heavy)))
    numbers[heavy] += told.hashes(rows.targets[heavy]) + row_hashes(place.astype(np.int64))
    return numbers


def _try(
    binned: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    drawn: np.ndarray,
    number: np.ndarray,
) -> Evidence:
    """Fit a small tree to each resample, and score what all of them say of rows not drawn.

    Rows of the same number are evidence once.
    """
    rows = binned.rows
    n_rows = rows.table.n_rows
    small = replace(
        parameters,
        max_depth=MAX_DEPTH,
        max_leaf_nodes=None,
        lookahead=1,
        refine=None,
        leaf_penalty=0.0,
        ccp_alpha=0.0,
        strength=1.0,
        min_samples_leaf=max(1, min(MIN_ROWS_OF_LEAF, rows.n_counted // 8)),
        random_state=0,
        verbose=0,
    )
    weights = np.ones(n_rows) if rows.weights is None else rows.weights
    objective = "log_loss" if rows.classes is not None else parameters.criterion
    score = Score(objective, rows.targets, weights)
    shrinkage = SHRINKAGE_OF_NUMBERS if rows.classes is None else SHRINKAGE_OF_CLASSES
    n_values = 1 if rows.n_classes is None else max(rows.n_classes)
    predicted = np.zeros((n_rows, rows.targets.shape[1], n_values))
    without, n_seen = np.zeros_like(predicted), np.zeros(n_rows)
    for kept in drawn:
        if not kept.any() or kept.all():
            continue
        with Progress(0, int(kept.sum()), MAX_DEPTH) as silent:
            tree = learn(binned.take(kept), small, pairs, silent, owns_bins=True).tree
        tree = shrink(tree, shrinkage)
        new = binned.take(~kept)
        predicted[~kept] += tree.value[new.leaves(tree, small.n_threads)]
        without[~kept] += tree.value[0]
        n_seen[~kept] += 1
    is_seen = n_seen > 0
    if not is_seen.any():
        return Evidence(0.0, 0.0, len(drawn))
    times, targets = n_seen[is_seen][:, None, None], rows.targets[is_seen]
    gains = score.of(predicted[is_seen] / times, targets) - score.of(
        without[is_seen] / times, targets
    )
    weights = weights[is_seen]
    mean = float(gains @ weights / weights.sum())
    group = np.unique(number[is_seen], return_inverse=True)[1]
    of_groups = np.bincount(group, weights * (gains - mean))
    error = float(np.sqrt(of_groups @ of_groups) / weights.sum())
    return Evidence(mean, error, len(drawn))


@dataclass(frozen=True)
class NearestSplit:
    """The best split of the root: its features, what it gains, and what it would have to.

    In bits of entropy, rows of Gini mass, or rows of average error.
    """

    features: tuple[int, ...]
    gain: float
    needed: float


def nearest_split(
    binned: BinnedRows, parameters: Parameters, pairs: PairOptions
) -> NearestSplit | None:
    """The split of the root that comes nearest to its price; None if there is none at all."""
    free = replace(parameters, max_depth=1, leaf_penalty=0.0, max_leaf_nodes=None, lookahead=1)
    held = hold(binned, free)
    with Progress(0, held.n_rows, 1) as silent:
        root = grow(held, pair_tools(held, free, pairs), free, silent)
    if root.split is None:
        return None
    about = [node.statistics for node in root.children]
    gain = root.statistics.weight * root.statistics.impurity
    gain -= sum(child.weight * child.impurity for child in about)
    needed = parameters.prices(held.goal).leaf * (len(about) - 1)
    unit = held.goal.penalty_unit(root.statistics)
    return NearestSplit(root.split.features, gain / unit if unit > 0 else 0.0, needed)
