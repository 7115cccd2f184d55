"""Growing a tree on binned rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.data._targets import Goal
from shapetree.fit._parameters import Parameters, candidate_options, limits_of
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._candidates import CandidateSearch
from shapetree.grow._grower import ONE_TREE, Grower, Trees
from shapetree.grow._local import hold_rows
from shapetree.grow._nodes import GrownTree
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._pairs import PairFrame, PairSearch
from shapetree.grow._progress import Progress
from shapetree.grow._rows import HeldRows
from shapetree.refine import PairTools

# Memory that trees may take which grow together: of each row, its place, and what is gathered of it
# while it is summed or sent.
BYTES_TOGETHER, BYTES_PER_ROW = 2**26, 32


def grow(
    rows: HeldRows,
    pairs: PairTools | None,
    parameters: Parameters,
    progress: Progress,
    order: np.ndarray | None = None,
    trees: Trees = ONE_TREE,
    lays_out: bool = False,
) -> GrownTree:
    """Grow a tree, or several together, on binned rows.

    Parameters
    ----------
    rows : HeldRows
    pairs : PairTools or None
    parameters : Parameters
    progress : Progress
    order : array, optional
        Which of equally good features comes first, for all trees or for each.
    trees : Trees, optional
        What tells several trees from each other; by default there is one.
    lays_out : bool
        Whether splits on single features are kept as shape functions alone, in less memory.
    """
    features, goal = rows.binned.features, rows.goal
    options = candidate_options(goal, parameters)
    return Grower(
        rows,
        goal,
        CandidateSearch(features, goal, options, order),
        None if pairs is None else PairSearch(pairs[0], goal, pairs[1]),
        parameters.max_bins is None,
        limits_of(goal, parameters),
        progress,
        trees,
        features if lays_out and pairs is None else None,
    ).grow()


def grown_together(trees: Sequence[Any], n_rows: int, n_at_once: int = 1) -> list[Sequence[Any]]:
    """Trees by those that grow together, if each has so many rows, in parts of about one size.

    So many parts are at work at once.
    """
    size = max(1, BYTES_TOGETHER // (n_at_once * BYTES_PER_ROW * max(n_rows, 1)))
    n_parts = n_at_once * -(-len(trees) // (n_at_once * size))
    ends = [len(trees) * part // max(n_parts, 1) for part in range(n_parts + 1)]
    return [trees[first:last] for first, last in pairwise(ends) if first < last]


def hold(binned_rows: BinnedRows, parameters: Parameters, goal: Goal | None = None) -> HeldRows:
    """The rows, ready to be asked; for another goal than their own, if one is given."""
    rows, binned, coarse = binned_rows.rows, binned_rows.binned, binned_rows.coarse
    goal = rows.goal(parameters) if goal is None else goal
    return hold_rows(binned, rows.table, goal, parameters.n_threads, coarse)


def pair_tools(rows: HeldRows, parameters: Parameters, options: PairOptions) -> PairTools | None:
    """How pairs are searched; None if no pair may interact."""
    if len(options.pairs) == 0:
        return None
    weights = rows.goal.weights_behind(rows.at(0, rows.n_rows).histogram())
    frame = PairFrame(rows.coarse.features, weights, options)
    return frame, candidate_options(rows.goal, parameters)
