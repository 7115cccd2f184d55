"""Learning a tree from binned rows: grown, checked for noise and refined, once or many times."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from shapetree.fit._choice import MANY_ROWS, USUAL_STRENGTH
from shapetree.fit._growth import grow, hold, pair_tools
from shapetree.fit._noise import gain_of_first_split, instead_of_chance
from shapetree.fit._parameters import Parameters, refine_options
from shapetree.fit._rows import BinnedRows
from shapetree.grow._grower import ANYWHERE, Start, finish
from shapetree.grow._nodes import tree_of
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._progress import Progress
from shapetree.refine import refine
from shapetree.tree._arrays import TreeArrays

# Growth is greedy, so where the strength is chosen, a tree is also begun in other ways: looking
# ahead at this many features, with this many other first splits that gain at least this share of
# what the best one gains, at a weaker or greater strength, and by another criterion. Of these, the
# first few are tried; fewer where a fit takes long.
LOOKAHEAD = 3
N_RIVAL_ROOTS = 2
LEAST_SHARE_OF_RIVAL = 0.5
WEAK_GROWTH, STRONG_GROWTH = 0.3, 3.0
N_BEGINNINGS, N_BEGINNINGS_IF_SLOW = 5, 2
# By how many times the square root of what counts a penalised loss must be lower to be better.
LEAD = 0.6


@dataclass(frozen=True)
class Outcome:
    """A tree as it was learnt from rows, by which criterion, and how its refinement went.

    Attributes
    ----------
    tree : TreeArrays
    criterion : str
    history : array or None
        Penalised losses before and after each sweep of refinement; None without it.
    root : tuple of int
        Features that the root was split on when the tree grew.
    root_gain : float
        Impurity mass that this took away.
    """

    tree: TreeArrays
    criterion: str
    history: np.ndarray | None = None
    root: tuple[int, ...] = ()
    root_gain: float = 0.0

    def better(self, other: Outcome, has_classes: bool, weight: float) -> Outcome:
        """The other outcome if its penalised loss is lower by more than chance, else this one."""
        assert self.history is not None
        assert other.history is not None
        loss = float(self.history[-1])
        # Both losses count rows: those of the wrong class, or all of them times a logarithm.
        spread = math.sqrt(max(loss, 0.0) if has_classes else weight)
        return other if float(other.history[-1]) < loss - LEAD * spread else self


def learn(
    binned_rows: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    progress: Progress,
    must_hold_up: bool = False,
    start: Start = ANYWHERE,
    owns_bins: bool = False,
) -> Outcome:
    """Grow a tree, and refine it unless told otherwise; noise has a leaf if it must hold up.

    Refinement may reorder the rows' bins if nobody else will read them, see `refine`.
    """
    binned, held = binned_rows.binned, hold(binned_rows, parameters)
    goal, tools = held.goal, pair_tools(held, parameters, pairs)
    root = grow(held, tools, parameters.while_growing, progress, start)
    first_split = () if root.split is None else root.split.features, gain_of_first_split(root)
    if must_hold_up:
        instead = instead_of_chance(root, binned_rows, goal, parameters, pairs)
        if instead is not None:
            outcome = learn(
                binned_rows, instead, pairs, progress, must_hold_up, owns_bins=owns_bins
            )
            return replace(outcome, root=())
    if parameters.refine is None:
        finish(root, binned.features)
        tree = tree_of(root, goal.impurity_scale)
        return Outcome(tree, goal.criterion_name, None, *first_split)
    refined, history = refine(
        root,
        held,
        refine_options(binned.n_rows, goal, parameters),
        tools,
        progress.sweep,
        owns_bins,
    )
    tree = tree_of(refined, goal.impurity_scale)
    return Outcome(tree, goal.criterion_name, np.array(history), *first_split)


def learn_from_many_starts(
    binned_rows: BinnedRows,
    parameters: Parameters,
    pairs: PairOptions,
    progress: Progress,
    other_criteria: tuple[str, ...] = (),
) -> Outcome:
    """The tree of least penalised loss among those that begin in several ways.

    What gains most at the root need not be the best beginning of a tree. All rows judge: the loss
    counts what a tree's parts cost. Where parts are free, it would only tell who overfits most.
    """
    rows, usual = binned_rows.rows, parameters
    best = learn(binned_rows, usual, pairs, progress, must_hold_up=True)
    if best.history is None or not best.root or usual.penalty("refine_penalty", 1.0) == 0.0:
        return best  # nothing to compare by, or nothing learnt
    least_gain, avoid = LEAST_SHARE_OF_RIVAL * best.root_gain, {best.root}
    ways = _other_beginnings(usual, pairs, rows.total_weight, other_criteria)
    while ways:
        way = ways.pop(0)
        start = Start(frozenset(avoid), least_gain) if way is usual else ANYWHERE
        with Progress(0, rows.table.n_rows, None) as silent:
            rival = learn(binned_rows, way, pairs, silent, start=start)
        if rival.root:
            best = best.better(rival, rows.classes is not None, rows.total_weight)
            avoid.add(rival.root)
        else:  # and no other root will do
            ways = [other for other in ways if other is not way]
    return best


def _other_beginnings(
    usual: Parameters, pairs: PairOptions, weight: float, criteria: tuple[str, ...]
) -> list[Parameters]:
    """How else to begin a tree, the most promising first; the usual way has to avoid a root."""
    has_pairs = len(pairs.pairs) > 0
    ways = [replace(usual, lookahead=LOOKAHEAD)] * (usual.lookahead == 1 and not has_pairs)
    ways += [usual] * N_RIVAL_ROOTS
    ways += [replace(usual, growth=WEAK_GROWTH)]
    ways += [replace(usual, criterion=criterion) for criterion in criteria]
    ways += [replace(usual, growth=STRONG_GROWTH)]
    # Weak penalties make for large trees, and pairs take long.
    is_slow = weight > MANY_ROWS or (has_pairs and usual.strength < USUAL_STRENGTH)
    return ways[: N_BEGINNINGS_IF_SLOW if is_slow else N_BEGINNINGS]
