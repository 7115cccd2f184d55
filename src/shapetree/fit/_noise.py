"""Whether a tree has learnt anything but noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shapetree._core.content import count_distinct
from shapetree.data._binning import BinnedTable
from shapetree.data._targets import Goal, RegressionGoal
from shapetree.fit._folds import hashes_of_rows
from shapetree.fit._growth import grow, hold, pair_tools
from shapetree.fit._parameters import Parameters
from shapetree.fit._rows import BinnedRows, TrainingRows
from shapetree.grow._grower import finish
from shapetree.grow._nodes import GrowingNode, TreeNode, tree_of
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._progress import Progress

# A tree is in doubt if it removes less than this share of the impurity, and if its first split
# gains less than noise would by this many cuts (for classes, and for numbers, which may have
# outliers; four times as many for a pair) or by this many times the categories. It must then hold
# up on new rows: a tree grown on either half must predict the other, by this many standard errors.
SHARE_IN_DOUBT = 0.6
CUTS_IN_DOUBT = (35.0, 200.0)
CATEGORIES_IN_DOUBT = 2.0
CLEARLY = 3.0
# Distinct rows for each feature without which no tree is beyond doubt.
ROWS_PER_FEATURE = 10
# Fewest distinct rows that can be halved, and their smallest share of all rows: if most rows are
# copies, there is little to choose from, and the halves would have nothing in common.
LEAST_TO_HALVE = 50
LEAST_DISTINCT = 0.25
# Rows per distinct row from which rows count as copies of each other.
COPIED = 1.25


def instead_of_chance(
    root: GrowingNode,
    rows: BinnedRows,
    goal: Goal,
    parameters: Parameters,
    pairs: PairOptions,
) -> Parameters | None:
    """How to learn instead if a tree may be nothing but noise, and does not hold up on new rows.

    Where rows are there twice, noise gains twice as much, and pays for shapes that tell almost all
    rows apart: what the rows have to tell is then learnt at twice the price. Otherwise, a leaf is.
    """
    if root.split is None or not parameters.prices_splits:
        return None
    before = root.statistics.weight * root.statistics.impurity
    gain = max(gain_of_first_split(root), np.finfo(float).tiny)
    doubt = _noise(root, rows.binned, goal) / gain
    if doubt <= LEAST_DISTINCT**3:
        return None  # not to be doubted, however often rows are repeated
    hashes = _hashes(rows.rows, rows.binned)
    n_distinct = count_distinct(hashes)
    if n_distinct < max(LEAST_TO_HALVE, LEAST_DISTINCT * goal.total_weight):
        return None
    copies = goal.total_weight / n_distinct
    unpaid = copies / parameters.copies
    is_clear = unpaid <= COPIED and before - _impurity_below(root) >= SHARE_IN_DOUBT * before
    # With many features to choose from, trees of noise take that much away, too.
    is_clear &= n_distinct >= ROWS_PER_FEATURE * len(rows.binned.features)
    if is_clear or doubt * copies * unpaid**2 <= 1.0:
        return None
    if _holds_up(rows, hashes, parameters, pairs):
        return None
    if unpaid > COPIED:
        return replace(parameters, copies=copies)
    return replace(parameters, max_depth=0)


def gain_of_first_split(root: GrowingNode) -> float:
    """Impurity mass that the root's split takes away."""
    after = sum(child.statistics.weight * child.statistics.impurity for child in root.children)
    return root.statistics.weight * root.statistics.impurity - after if root.children else 0.0


def _impurity_below(root: GrowingNode) -> float:
    """Impurity mass that a whole tree leaves."""
    left = 0.0
    pending: list[TreeNode] = [root]
    while pending:
        node = pending.pop()
        pending.extend(node.children)
        if not node.children:
            left += node.statistics.weight * node.statistics.impurity
    return left


def _noise(root: GrowingNode, binned: BinnedTable, goal: Goal) -> float:
    """What a first split on such features might gain where there is nothing but noise."""
    assert root.split is not None
    features = [binned.features[feature] for feature in root.split.features]
    n_categories = sum(feature.n_bins for feature in features if feature.is_categorical)
    n_cuts = CUTS_IN_DOUBT[isinstance(goal, RegressionGoal)] * len(features) ** 2
    return goal.noise(root.statistics) * (n_cuts + CATEGORIES_IN_DOUBT * n_categories)


def _hashes(rows: TrainingRows, binned: BinnedTable) -> np.ndarray:
    """A hash of each row and its target."""
    return hashes_of_rows(binned, rows.targets, rows.weights, with_targets=True)


def _holds_up(
    rows: BinnedRows, hashes: np.ndarray, parameters: Parameters, pairs: PairOptions
) -> bool:
    """Whether trees that grow on one half of the rows tell anything of the other half."""
    rows = replace(rows, rows=rows.rows.here())
    content = np.unique(hashes, return_inverse=True)[1]
    told = np.zeros(content.max() + 1)
    # Half of the rows can pay half of the price.
    parameters = replace(parameters, copies=parameters.copies / 2)
    # Hashes are numbered in order, which halves them at random.
    for half in (0, 1):
        is_new = content % 2 != half
        held, new = hold(rows.take(~is_new), parameters), rows.take(is_new)
        with Progress(0, held.n_rows, parameters.max_depth) as silent:
            root = grow(held, pair_tools(held, parameters, pairs), parameters, silent)
        finish(root, rows.binned.features)
        tree = tree_of(root, held.goal.impurity_scale)
        values = tree.value[new.leaves(tree, parameters.threads)]
        told += np.bincount(content[is_new], _told(values - tree.value[0], new.rows), len(told))
    return bool(told.sum() > CLEARLY * np.sqrt((told**2).sum()))


def _told(moves: np.ndarray, rows: TrainingRows) -> np.ndarray:
    """What each row adds to the covariance of targets, or classes, with how far leaves move them.

    How far is not judged: leaves that overdo it have something to tell all the same.
    """
    observed = rows.targets[:, :, None]
    if rows.classes is not None:
        observed = (observed == np.arange(moves.shape[2])).astype(float)
    else:
        # Numbers of any size: only their ratios matter.
        greatest = np.abs(observed).max(axis=0, initial=np.finfo(float).tiny)
        observed, moves = observed / greatest, moves / greatest
    weights = np.ones(len(moves)) if rows.weights is None else rows.weights
    mean = np.average(observed, axis=0, weights=weights)
    return (moves * (observed - mean)).sum(axis=(1, 2)) * weights
