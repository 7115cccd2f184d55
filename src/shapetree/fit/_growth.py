"""Growing a tree on binned rows."""

from __future__ import annotations

import numpy as np

from shapetree.fit._parameters import Parameters, candidate_options, limits_of
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._candidates import CandidateSearch
from shapetree.grow._feature_draw import FeatureDraw
from shapetree.grow._grower import Grower
from shapetree.grow._local import hold_rows
from shapetree.grow._nodes import GrownTree
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._pairs import PairFrame, PairSearch
from shapetree.grow._progress import Progress
from shapetree.grow._rows import HeldRows
from shapetree.refine import PairTools


def grow(
    rows: HeldRows,
    pairs: PairTools | None,
    parameters: Parameters,
    progress: Progress,
    order: np.ndarray | None = None,
    draw: FeatureDraw | None = None,
) -> GrownTree:
    """Grow a tree on binned rows.

    Parameters
    ----------
    rows : HeldRows
    pairs : PairTools or None
    parameters : Parameters
    progress : Progress
    order : array, optional
        Which of equally good features comes first.
    draw : FeatureDraw, optional
        Which features each node may split on; by default all.
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
        draw,
    ).grow()


def hold(binned_rows: BinnedRows, parameters: Parameters) -> HeldRows:
    """The rows, ready to be asked."""
    rows, binned, coarse = binned_rows.rows, binned_rows.binned, binned_rows.coarse
    return hold_rows(binned, rows.table, rows.goal(parameters), parameters.n_threads, coarse)


def pair_tools(rows: HeldRows, parameters: Parameters, options: PairOptions) -> PairTools | None:
    """How pairs are searched; None if no pair may interact."""
    if len(options.pairs) == 0:
        return None
    weights = rows.goal.weights_behind(rows.at(0, rows.n_rows).histogram())
    frame = PairFrame(rows.coarse.features, weights, options)
    return frame, candidate_options(rows.goal, parameters)
