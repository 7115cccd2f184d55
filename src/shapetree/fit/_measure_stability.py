"""How stable a tree is: trees fitted to halves of its rows, compared with it.

Halves are drawn without replacement, as resamples are: no row counts twice, so that limits on the
rows of leaves mean the same as for the tree; a half varies about as much as a bootstrap sample;
and half of the trees have not seen a row, so that what they predict for it tells of new rows, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.model_selection import PredefinedSplit

from shapetree._threads import run_together
from shapetree.fit._fit import GivenRows, choose_to_learn, rows_to_fit, with_smoothed_leaves
from shapetree.fit._learning import learn
from shapetree.fit._parameters import Parameters
from shapetree.fit._resamples import half_samples, part_of
from shapetree.fit._teaching import SoftTargets, TeacherPredictions, soft_targets_of_estimator
from shapetree.fit._training_rows import BinnedRows, TrainingRows, bin_rows, read_groups
from shapetree.grow._nodes import nodes_of, tree_of
from shapetree.grow._progress import TestProgress
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._predictor import leaves_of
from shapetree.tree._stability import NodeStability, RowStability, Stability

# Of a node's rows, more than this share must come to a node of a resample's tree for the two to be
# compared, and at least this share must go the same way for their splits to be similar.
SHARE_TO_COMPARE, SHARE_OF_SIMILAR = 0.5, 0.9

# From row numbers to the predictions for all rows by the user's teacher, fitted to those rows.
Teach = Callable[[np.ndarray], TeacherPredictions]


class _Refitted(NamedTuple):
    """Predictions and splits of the tree of a resample.

    Attributes
    ----------
    is_new : bool array of shape (n_rows,)
        Which rows it has not drawn.
    predicted : array of shape (n_rows, n_outputs)
        Numbers of classes, or numbers.
    same_feature, similar_split : bool arrays of shape (node_count,)
        What it has in common with each node of the tree.
    """

    is_new: np.ndarray
    predicted: np.ndarray
    same_feature: np.ndarray
    similar_split: np.ndarray


def find_stability(
    given: GivenRows,
    fitted: FittedTree,
    parameters: Parameters,
    n_resamples: int,
    seed: int,
    teach: Teach | None,
    reader: str,
) -> Stability:
    """Fit trees to halves of the rows, and compare them with the tree.

    Parameters
    ----------
    given : GivenRows
        Those that the tree was fitted to.
    parameters : Parameters
        That it was fitted with; a teacher of the user's own is asked by `teach`.
    teach : callable or None
        Predictions of the user's own teacher for all rows, if it is fitted to some.
    reader : str
        What error messages call the reader.
    """
    _check_cv(parameters)
    has_classes = fitted.classes is not None
    rows = rows_to_fit(given, parameters, has_classes)
    row_groups = read_groups(given.X, given.groups, rows)
    leaves = _own_leaves(given.X, fitted, rows, reader, parameters.n_threads)
    counts = np.ones(len(leaves)) if rows.counts is None else rows.counts
    binned = bin_rows(rows, parameters, row_groups)
    draw = half_samples(binned, row_groups, seed)
    drawn = [draw.drawn(number) for number in range(n_resamples)]
    drawn = [its for its in drawn if its.any()]
    if not drawn:
        raise ValueError("stability needs more rows or groups: no half of them has any; give more")
    numbers = rows.of_given(np.arange(rows.n_given))
    one = replace(
        parameters,
        n_threads=1,
        verbose=0,
        teacher="auto" if teach is not None else parameters.teacher,
        random_state=_same_for_all(parameters.random_state, seed),
    )
    with TestProgress(parameters.verbose, len(leaves), "stability", "resamples") as progress:
        progress.expect(len(drawn))

        def refit(copies: np.ndarray) -> _Refitted:
            predictions = None if teach is None else teach(np.unique(numbers[copies > 0]))
            tree = _refit(binned, copies, one, predictions, progress)
            others = leaves_of(tree, rows.table, 1)
            found = compare(fitted.tree, leaves, tree, others, counts, rows.table)
            progress.tested()
            return _Refitted(copies == 0, _predicted(tree, others, has_classes), *found)

        jobs = [partial(refit, copies) for copies in drawn]
        refitted = run_together(jobs, parameters.n_threads, progress.stop)
    n_asked = np.zeros(len(leaves), dtype=np.int64)
    own = _predicted(fitted.tree, leaves, has_classes)
    total = np.zeros((len(leaves), 1 if has_classes else own.shape[1]))
    for its in refitted:
        n_asked += its.is_new
        if has_classes:
            off = (its.predicted == own).all(axis=1)[:, None].astype(np.float64)
        else:
            off = (its.predicted - own) ** 2
        total += its.is_new[:, None] * off
    names = fitted.names.features or fitted.feature_names
    about = fitted.tree, has_classes, names, fitted.names.targets
    nodes = _of_nodes(fitted.tree, leaves, counts, refitted, n_asked, total, has_classes)
    of_rows = _of_rows(given.X, rows, n_asked, total, has_classes)
    return Stability.of_tree(*about, len(refitted), nodes, of_rows)


def _check_cv(parameters: Parameters) -> None:
    cv = parameters.cv
    is_fixed = isinstance(cv, PredefinedSplit) or not (
        cv is None or isinstance(cv, int | np.integer) or hasattr(cv, "split")
    )
    if is_fixed:
        raise ValueError(
            "stability fits trees to halves of the rows, which the folds that cv lists do not fit; "
            "set cv to a number of folds or to a splitter such as KFold"
        )


def _same_for_all(random_state: Any, seed: int) -> int:
    """A number that all trees are fitted with, whichever is fitted first."""
    return int(random_state) if isinstance(random_state, int | np.integer) else seed


def _own_leaves(
    X: Any, fitted: FittedTree, rows: TrainingRows, reader: str, n_threads: int
) -> np.ndarray:
    """Leaves of the rows in the tree that was fitted to them; others are refused."""
    table = fitted.read_table(X, reader, fitted.used_features)
    leaves = leaves_of(fitted.tree, table, n_threads)
    leaves = rows.of_given(leaves)
    tree, is_known = fitted.tree, True
    if fitted.classes is not None and rows.classes is not None:
        is_known = len(fitted.classes) == len(rows.classes) and all(
            map(np.array_equal, fitted.classes, rows.classes)
        )
    n_rows = np.bincount(leaves, rows.counts, tree.node_count)
    if not is_known or not np.array_equal(n_rows[tree.is_leaf], tree.n_node_samples[tree.is_leaf]):
        raise ValueError(
            "X, y and sample_weight must be those that the tree was fitted to: other rows come to "
            "its leaves; fit the tree to them first"
        )
    return leaves


def _refit(
    binned: BinnedRows,
    copies: np.ndarray,
    parameters: Parameters,
    predictions: TeacherPredictions | None,
    progress: TestProgress,
) -> TreeArrays:
    """The tree that the parameters make of a resample."""
    part, kept = part_of(binned, copies), copies > 0
    soft_targets: SoftTargets | None = None
    if predictions is not None:
        soft_targets = soft_targets_of_estimator(predictions, binned.rows)
        soft_targets = replace(soft_targets, predicted=soft_targets.predicted[kept])
    row_of = part.rows.row_of
    if row_of is not None:
        row_of = np.unique(row_of, return_inverse=True)[1]
    part = replace(part, rows=replace(part.rows, kept=None, row_of=row_of))
    choice = choose_to_learn(part, parameters, soft_targets)
    outcome = learn(part, choice.parameters, progress.of_test(), True, choice.soft_targets)
    return with_smoothed_leaves(outcome, choice, part.rows.classes is not None)


def _predicted(tree: TreeArrays, leaves: np.ndarray, has_classes: bool) -> np.ndarray:
    value = tree.value.argmax(axis=2) if has_classes else tree.value[:, :, 0]
    return value[leaves]


def compare(
    tree: TreeArrays,
    leaves: np.ndarray,
    other: TreeArrays,
    other_leaves: np.ndarray,
    counts: np.ndarray,
    table: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes of a tree have their like in another.

    Parameters
    ----------
    leaves, other_leaves : int arrays of shape (n_rows,)
        Of the same rows in either tree.
    counts : array of shape (n_rows,)
        As how many rows each counts.
    table : Table
        The rows, which nodes of the other tree may be asked to split.

    Returns
    -------
    same_feature, similar_split : bool arrays of shape (node_count,)
    """
    same, similar = np.zeros((2, tree.node_count), dtype=bool)
    met = np.zeros((tree.node_count, other.node_count))
    np.add.at(met, (leaves, other_leaves), counts)
    _add_up(met, tree)
    _add_up(met.T, other)
    kinds = np.stack([other.feature, other.second_feature])
    branches: dict[int, np.ndarray] = {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        kind = np.array([tree.feature[node], tree.second_feature[node]])
        is_like = (kinds == kind[:, None]).all(axis=0)
        alike = np.flatnonzero(is_like & (met[node] > SHARE_TO_COMPARE * met[node, 0])).tolist()
        same[node] = bool(alike)
        own = _branch_below(tree, node)[leaves]
        here = own >= 0
        for its in alike:
            if its not in branches:
                branches[its] = leaves_of(_alone(other, its), table, 1) - 1
            ways = np.zeros((tree.n_branches[node], other.n_branches[its]))
            np.add.at(ways, (own[here], branches[its][here]), counts[here])
            matched = ways[linear_sum_assignment(ways, maximize=True)].sum()
            similar[node] |= bool(matched >= SHARE_OF_SIMILAR * met[node, 0])
    return same, similar


def _add_up(of_nodes: np.ndarray, tree: TreeArrays) -> None:
    """Add what leaves have to all nodes above; children stand behind their parents."""
    for node in range(tree.node_count - 1, 0, -1):
        of_nodes[tree.parent[node]] += of_nodes[node]


def _branch_below(tree: TreeArrays, node: int) -> np.ndarray:
    """For each node, the branch of a node above it that leads to it; -1 for all others."""
    branch = np.full(tree.node_count, -1)
    for number, child in enumerate(tree.children(node)):
        branch[child] = number
    for below in range(tree.children(node).stop, tree.node_count):
        branch[below] = branch[tree.parent[below]]
    return branch


def _alone(tree: TreeArrays, node: int) -> TreeArrays:
    """A node as the root of a tree of its own, whose children are leaves."""
    root = nodes_of(tree)[node]
    for child in root.children:
        child.become_leaf()
    return tree_of(root)


def _of_nodes(
    tree: TreeArrays,
    leaves: np.ndarray,
    counts: np.ndarray,
    refitted: list[_Refitted],
    n_asked: np.ndarray,
    total: np.ndarray,
    has_classes: bool,
) -> tuple[NodeStability, ...]:
    """Results of the resamples for each node, every row as often as it counts."""
    sums = np.stack([n_asked, *total.T], axis=1) * counts[:, None]
    of_nodes = np.stack([np.bincount(leaves, its, tree.node_count) for its in sums.T], axis=1)
    _add_up(of_nodes, tree)
    values = _mean(of_nodes[:, 1:], of_nodes[:, 0], has_classes).tolist()
    chosen = np.zeros((tree.node_count, 2), dtype=np.int64)
    for its in refitted:
        chosen += np.stack([its.same_feature, its.similar_split], axis=1)
    return tuple(
        NodeStability(tuple(its)) if is_leaf else NodeStability(tuple(its), *counted)
        for its, counted, is_leaf in zip(values, chosen.tolist(), tree.is_leaf, strict=True)
    )


def _of_rows(
    X: Any, rows: TrainingRows, n_asked: np.ndarray, total: np.ndarray, has_classes: bool
) -> RowStability:
    """Results of the resamples for each row that was given."""
    values = _mean(total, n_asked, has_classes)
    values, n_asked = rows.given(values, np.nan), rows.given(n_asked, 0)
    index = getattr(X, "index", None)
    has_index = index is not None and not callable(index) and len(index) == len(n_asked)
    return RowStability(index if has_index else np.arange(len(n_asked)), n_asked, values)


def _mean(total: np.ndarray, n: np.ndarray, has_classes: bool) -> np.ndarray:
    """Shares of classes, or roots of mean squares; NaN where there are none."""
    mean = np.divide(total, n[:, None], out=np.full(total.shape, np.nan), where=n[:, None] > 0)
    return mean if has_classes else np.sqrt(mean)
