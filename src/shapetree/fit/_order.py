"""The order of a fit: from a table to a FittedTree, and from one FittedTree to another."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from shapetree._core.criterion import Criterion
from shapetree.data._binning import bin_table
from shapetree.data._moments import readable_threshold
from shapetree.data._table import FeatureInfo
from shapetree.fit._choice import PATH, Choice, Record, Trial, path_of, usual_of
from shapetree.fit._growth import hold, pair_tools
from shapetree.fit._learning import Outcome, learn, learn_from_many_starts
from shapetree.fit._parameters import Parameters, read_pairs, refine_options
from shapetree.fit._rows import (
    BinnedRows,
    TrainingRows,
    bin_rows,
    check_spread,
    coarse_bins_of,
    row_importance,
    row_weights,
    training_rows,
)
from shapetree.fit._trials import N_FOLDS, Tester, choose_trial
from shapetree.grow._nodes import tree_of
from shapetree.grow._progress import Progress, TestProgress
from shapetree.refine import fitting_bins, prune_by_cost, refine_tree_arrays, shrink, simplify
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._naming import Names, target_names
from shapetree.tree._questions import NeighboursOfThresholds
from shapetree.tree._sketcher import describe_training_rows
from shapetree.tree._spread import SpreadRows, sole_target, spread_of


def fit_tree(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> FittedTree:
    """Fit a tree.

    Parameters
    ----------
    X, y, sample_weight
        As given by the user.
    parameters : Parameters
    has_classes : bool
        Whether y holds classes rather than numbers.
    """
    rows = training_rows(X, y, sample_weight, parameters, has_classes)
    # Rows that are elsewhere know their targets' names.
    names = Names(targets=getattr(X, "target_names", None) or target_names(y))
    pairs = read_pairs(rows.table, parameters)
    # Bins come first: making them takes more memory than anything else.
    binned = bin_rows(rows, parameters, pairs)
    choice = choose_trial(binned, parameters, pairs)
    is_chosen = not isinstance(parameters.strength, Real)
    parameters = parameters.with_trial(choice.trial)
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        if is_chosen:
            outcome = learn_from_many_starts(binned, parameters, pairs, progress, choice.rivals)
        else:
            outcome = learn(binned, parameters, pairs, progress, must_hold_up=True, owns_bins=True)
    del binned  # what follows needs its memory
    return replace(_finish(outcome, rows, parameters, choice), names=names)


def refine_fitted(
    fitted: FittedTree, X: Any, y: Any, sample_weight: Any, parameters: Parameters, reader: str
) -> FittedTree:
    """Refine a fitted tree for some rows, which `reader` reads."""
    choice = Choice(Trial(fitted.strength, fitted.criterion), fitted.shrinkage)
    parameters = parameters.with_trial(choice.trial)
    targets = fitted.read_targets(X, y)
    if fitted.classes is None:
        check_spread(targets, parameters.criterion)
    weights = row_weights(X, sample_weight)
    rows = TrainingRows(fitted.read_table(X, reader), targets, fitted.classes, weights)
    rows = rows.with_evidence(row_importance(y, weights, parameters.class_weight))
    binned = bin_table(rows.table, rows.weights, parameters.max_bins, parameters.threads)
    binned = fitting_bins(fitted.tree, rows.table, binned)
    pairs = read_pairs(rows.table, parameters)
    coarse = coarse_bins_of(rows, binned, parameters, pairs)
    held = hold(BinnedRows(rows, binned, coarse), parameters)
    goal = held.goal
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        refined, history = refine_tree_arrays(
            fitted.tree,
            held,
            refine_options(binned.n_rows, goal, parameters),
            pair_tools(held, parameters, pairs),
            progress.sweep,
            owns_bins=True,
        )
    tree = tree_of(refined, goal.impurity_scale)
    outcome = Outcome(tree, goal.criterion_name, np.array(history))
    finished = _finish(outcome, rows, parameters, choice)
    return replace(finished, has_names=fitted.has_names, names=fitted.names)


def fit_path(
    X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
) -> dict[str, np.ndarray]:
    """Fit trees along a path of strengths, and test each on rows held out.

    Parameters
    ----------
    X, y, sample_weight
        As given by the user.
    parameters : Parameters
        A list of strengths is the path; otherwise it is our own.
    has_classes : bool
        Whether y holds classes rather than numbers.

    Returns
    -------
    dict of arrays
    """
    if isinstance(parameters.strength, Real | str):
        parameters = replace(parameters, strength=PATH)
    rows = training_rows(X, y, sample_weight, parameters, has_classes)
    pairs = read_pairs(rows.table, parameters)
    binned = bin_rows(rows, parameters, pairs)
    criterion = rows.goal(parameters).criterion_name
    path = path_of(parameters.strength)
    trials = tuple(Trial(strength, criterion) for strength in path)
    usual = Trial(usual_of(path), criterion)
    n_folds = parameters.folds or N_FOLDS
    with TestProgress(parameters.verbose, rows.table.n_rows) as progress:
        tester = Tester(binned, parameters, pairs, n_folds, parameters.shrinkages, progress)
        if not tester.folds.are_filled:
            raise ValueError(
                f"folds={n_folds} needs at least as many distinct rows; use fewer folds"
            )
        record = Record(trials, tester.folds)
        record.add(tester.test, trials, range(n_folds))
        trees = tester.trees(trials)
    chosen = record.choose(usual)
    scores, errors = np.array([record.score(trial) for trial in trials]).T
    return {
        "strength": np.array([trial.strength for trial in trials]),
        "score": scores,
        "error": errors,
        "n_leaves": np.array([tree.n_leaves for tree in trees]),
        "n_segments": np.array([tree.n_segments for tree in trees]),
        "is_chosen": np.array([trial == chosen for trial in trials]),
    }


def simplify_fitted(fitted: FittedTree) -> FittedTree:
    """Join leaves that predict the same, and leave out what makes no difference."""
    sizes = fitted.n_classes
    if sizes is None:
        return fitted.with_tree(simplify(fitted.tree, None, np.array_equal))
    criterion = Criterion(fitted.criterion, sizes)

    def impurity(value: np.ndarray) -> float:
        shares = np.concatenate([v[:n] for v, n in zip(value, sizes, strict=True)])
        return float(criterion.impurity(shares) / criterion.weight(shares))

    def predicts_the_same(value: np.ndarray, other: np.ndarray) -> bool:
        return np.array_equal(value.argmax(axis=1), other.argmax(axis=1))

    return fitted.with_tree(simplify(fitted.tree, impurity, predicts_the_same))


def _finish(
    outcome: Outcome, rows: TrainingRows, parameters: Parameters, choice: Choice
) -> FittedTree:
    """What was learnt, pruned and shrunk as the parameters say, and sketched."""
    tree = shrink(prune_by_cost(outcome.tree, parameters.ccp_alpha), choice.shrinkage)
    features, has_classes = rows.table.features, rows.classes is not None
    y = sole_target(rows.targets, has_classes)
    spread = spread_of(tree, rows.table, y, parameters.threads)
    tree = _with_readable_dates(tree, features, spread)
    summary, sketches = describe_training_rows(
        spread, tree, features, rows.n_classes, has_one_target=y is not None
    )
    weights = tree.weighted_n_node_samples * rows.weight_size
    return FittedTree(
        tree=tree.with_nodes(weights=weights, sketches=sketches),
        features=features,
        has_names=rows.table.has_names,
        classes=rows.classes,
        criterion=outcome.criterion,
        strength=choice.trial.strength,
        shrinkage=choice.shrinkage,
        summary=summary,
        history=outcome.history,
        cv_results=choice.results,
    )


def _with_readable_dates(
    tree: TreeArrays, features: tuple[FeatureInfo, ...], rows: SpreadRows
) -> TreeArrays:
    """The same tree, with thresholds on dates at moments that are told in few digits."""
    dates = [number for number in tree.used_features if features[number].is_date]
    nodes = {number: _nodes_on(tree, number) for number in dates}
    asked = [NeighboursOfThresholds(number, _thresholds(tree, nodes[number])) for number in dates]
    upper = tree.piece_upper.copy()
    for question, (below, above) in zip(asked, rows.ask(*asked) if asked else [], strict=True):
        for node in nodes[question.feature]:
            inner = upper[tree.pieces(node)][:-1]
            places = np.searchsorted(question.thresholds, inner)
            inner[:] = [
                # Where other rows chose the threshold, these may lie all on one side of it.
                readable_threshold(at, low, high) if np.isfinite([low, high]).all() else at
                for at, low, high in zip(
                    inner.tolist(), below[places].tolist(), above[places].tolist(), strict=True
                )
            ]
    return tree.with_thresholds(upper) if (upper != tree.piece_upper).any() else tree


def _nodes_on(tree: TreeArrays, feature: int) -> list[int]:
    """Nodes that split on a single feature."""
    return np.flatnonzero((tree.feature == feature) & (tree.second_feature < 0)).tolist()


def _thresholds(tree: TreeArrays, nodes: list[int]) -> np.ndarray:
    """Thresholds of some nodes, ascending."""
    each = [tree.piece_upper[tree.pieces(node)][:-1] for node in nodes]
    return np.unique(np.concatenate([*each, np.empty(0)]))
