"""Learning a tree from binned rows: grown, refined and pruned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree.fit._growth import grower, hold, pair_frames
from shapetree.fit._parameters import Parameters, candidate_options, refine_options
from shapetree.fit._teaching import SoftTargets, taught_rows, with_own_values
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._feature_order import feature_order
from shapetree.grow._nodes import tree_of
from shapetree.grow._progress import Progress
from shapetree.refine import prune_by_cost, refine
from shapetree.tree._arrays import TreeArrays


@dataclass(frozen=True)
class Outcome:
    """A tree as it was learnt from rows, by which criterion, and how its refinement went.

    Attributes
    ----------
    history : array or None
        Penalised losses before and after each sweep of refinement; None without it.
    own : TreeArrays
        The tree with values of the rows themselves, which differ if it was taught others.
    """

    tree: TreeArrays
    criterion: str
    history: np.ndarray | None
    own: TreeArrays


def learn(
    rows: BinnedRows,
    parameters: Parameters,
    progress: Progress,
    owns_bins: bool = False,
    soft_targets: SoftTargets | None = None,
    start: TreeArrays | None = None,
) -> Outcome:
    """Grow a tree, refine it if `refine` asks for it, and prune it.

    Parameters
    ----------
    owns_bins : bool
        Whether refinement may reorder the rows' bins, as nothing else reads them.
    soft_targets : SoftTargets, optional
        What a teacher makes of the targets; counts are those of the rows themselves.
    start : TreeArrays, optional
        A finished tree that is refined in place of a new one; `refine` asks for it, too.
    """
    taught = rows
    if soft_targets is not None:
        taught, parameters = taught_rows(rows, parameters, soft_targets)
        owns_bins = False
    held, history = hold(taught, parameters), None
    goal, frames, order = held.goal, pair_frames(held, rows.pairs), feature_order(held)
    if start is None:
        grown = grower(held, frames, parameters, progress, order).grow()
    if parameters.refine is None:
        tree = grown.arrays(rows.binned.features, goal.impurity_scale)
    else:
        pairs = (frames[0], candidate_options(goal, parameters)) if frames else None
        about = held, refine_options(goal, parameters), pairs, progress.sweep, owns_bins, order
        refined, losses = refine(grown if start is None else start, *about)
        tree, history = tree_of(refined, goal.impurity_scale), np.array(losses)
    tree = own = prune_by_cost(tree, parameters.ccp_alpha)
    if soft_targets is not None:
        own = with_own_values(tree, rows, parameters.n_threads)
        # Losses of shares are rounded: digits that depend on the order of rows are left out.
        history = None if history is None else np.round(history, 6)
    return Outcome(tree, goal.criterion_name, history, own)
