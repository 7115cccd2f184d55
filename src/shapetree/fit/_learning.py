"""Learning a tree from binned rows: grown, and refined."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree.fit._growth import grow, hold, pair_frames, pair_tools
from shapetree.fit._parameters import Parameters, refine_options
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._feature_order import feature_order
from shapetree.grow._nodes import tree_of
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._progress import Progress
from shapetree.refine import prune_by_cost, refine
from shapetree.tree._arrays import TreeArrays


@dataclass(frozen=True)
class Outcome:
    """A tree as it was learnt from rows, by which criterion, and how its refinement went.

    Attributes
    ----------
    tree : TreeArrays
    criterion : str
    history : array or None
        Penalised losses before and after each sweep of refinement; None without it.
    own : TreeArrays or None
        The tree with values of the rows themselves, if it was taught others.
    """

    tree: TreeArrays
    criterion: str
    history: np.ndarray | None = None
    own: TreeArrays | None = None


def learn(
    binned_rows: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    progress: Progress,
    owns_bins: bool = False,
) -> Outcome:
    """Grow a tree, refine it if `refine` asks for it, and prune it.

    Refinement may reorder the rows' bins if nothing else reads them, see `refine`.
    """
    binned, held = binned_rows.binned, hold(binned_rows, parameters)
    goal, frames = held.goal, pair_frames(held, pairs)
    order = feature_order(held)
    grown = grow(held, frames, parameters, progress, order, lays_out=parameters.refine is None)
    history = None
    if parameters.refine is None:
        tree = grown.arrays(binned.features, goal.impurity_scale)
    else:
        options, tools = refine_options(goal, parameters), pair_tools(frames, goal, parameters)
        refined, losses = refine(grown, held, options, tools, progress.sweep, owns_bins, order)
        tree, history = tree_of(refined, goal.impurity_scale), np.array(losses)
    return Outcome(prune_by_cost(tree, parameters.ccp_alpha), goal.criterion_name, history)
