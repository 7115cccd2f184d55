"""What it takes to grow a tree on binned rows: a holder, frames of pairs, and a grower."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.data._map_join import Inquiry
from shapetree.data._targets import Goal
from shapetree.fit._parameters import Parameters, candidate_options, limits_of
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._candidates import CandidateSearch
from shapetree.grow._grower import ONE_TREE, Grower, Trees
from shapetree.grow._local import rows_of_node
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._pairs import PairFrame, PairSearch
from shapetree.grow._progress import Progress
from shapetree.grow._row_holder import Rows

# Memory that trees may take which grow together: of each row, its place, and what is gathered of it
# while it is summed or sent; with pairs, of each bin, its value and sums.
BYTES_TOGETHER, BYTES_PER_ROW, BYTES_PER_BIN = 2**26, 32, 64


def grower(
    rows: Rows,
    frames: Sequence[PairFrame],
    parameters: Parameters,
    progress: Progress,
    order: np.ndarray | None = None,
    trees: Trees = ONE_TREE,
) -> Grower:
    """What grows a tree, or several together, on binned rows.

    Parameters
    ----------
    frames : sequence of PairFrame
        Those of `pair_frames`.
    order : array, optional
        Which of equally good features comes first, for all trees or for each.
    trees : Trees, optional
        What tells several trees from each other; by default there is one.
    """
    goal = rows.goal
    options = candidate_options(goal, parameters)
    search = CandidateSearch(rows.binned.features, goal, options, order)
    pair_searches = [PairSearch(frame, goal, options) for frame in frames]
    return Grower(rows, search, pair_searches, limits_of(goal, parameters), progress, trees)


def grown_together(
    trees: Sequence[Any], rows: Rows, n_rows: int, pairs: PairOptions, n_at_once: int = 1
) -> list[Sequence[Any]]:
    """Trees by those that grow together, in parts of about one size.

    Parameters
    ----------
    n_rows : int
        How many of them each tree has.
    n_at_once : int
        How many parts grow at once.
    """
    n_bins = int(rows.coarse.offsets[-1]) if len(pairs.pairs) > 0 else 0
    own = max(1, BYTES_PER_ROW * n_rows + BYTES_PER_BIN * n_bins)
    size = max(1, BYTES_TOGETHER // (n_at_once * own))
    n_parts = n_at_once * -(-len(trees) // (n_at_once * size))
    ends = [len(trees) * part // max(n_parts, 1) for part in range(n_parts + 1)]
    return [trees[first:last] for first, last in pairwise(ends) if first < last]


def hold(rows: BinnedRows, parameters: Parameters, goal: Goal | None = None) -> Rows:
    """A holder of the rows; for another goal than their own, if one is given."""
    goal = rows.rows.goal(parameters) if goal is None else goal
    return rows.backend.hold(rows, goal, parameters.n_threads)


def pair_frames(rows: Rows, options: PairOptions, n_trees: int = 1) -> list[PairFrame]:
    """What searches for pairs know of the features, for each tree; none if no pair may interact."""
    if len(options.pairs) == 0:
        return []
    histograms = rows.run([_histogram_of(rows, root) for root in range(n_trees)])
    weights = map(rows.goal.weights_behind, histograms)
    return [PairFrame(rows.coarse.features, each, options) for each in weights]


def _histogram_of(rows: Rows, root: int) -> Inquiry[np.ndarray]:
    """Sums of a root's rows by the bins that pairs are screened with."""
    own = yield from rows_of_node(rows.goal, root, rows.n_rows)
    return (yield from own.histogram())
