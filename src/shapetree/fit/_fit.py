"""The steps of `fit`: from a table to a FittedTree, and from one FittedTree to another."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from shapetree._core.criterion import Criterion
from shapetree.data._moments import readable_threshold
from shapetree.data._table import Table
from shapetree.data._values import neighbours_of
from shapetree.fit._cross_validation import (
    PATH,
    Choice,
    CrossValidation,
    choose,
    folds_to_choose_by,
    trials_of,
)
from shapetree.fit._identifiers import warn_of_identifiers
from shapetree.fit._learning import Outcome, learn
from shapetree.fit._local_backend import LOCAL, in_memory, training_rows
from shapetree.fit._parameters import Parameters, path_of
from shapetree.fit._resamples import n_resamples_of, nearest_split, resample
from shapetree.fit._single_leaf import why_single_leaf
from shapetree.fit._teaching import (
    SoftTargets,
    shrinkage_of_taught,
    soft_targets_of_estimator,
    soft_targets_of_resamples,
)
from shapetree.fit._training_rows import (
    BinnedRows,
    TrainingRows,
    bin_rows,
    check_spread,
    coarse_bins_of,
    importance_of,
    names_of_targets,
    read_groups,
    row_weights,
    summary_of_values,
)
from shapetree.grow._progress import Progress, TestProgress
from shapetree.refine import (
    shrink,
    simplify,
    with_own_classes,
)
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._naming import Names
from shapetree.tree._rebinning import fitting_bins
from shapetree.tree._sketch import TreeSketches
from shapetree.tree._sketcher import sketch_tree


class GivenRows(NamedTuple):
    """What a user gives to fit a tree to."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    groups: Any = None


def fit_tree(given: GivenRows, parameters: Parameters, has_classes: bool) -> FittedTree:
    """Fit a tree; `has_classes` says whether y holds classes rather than numbers."""
    rows = rows_to_fit(given, parameters, has_classes)
    groups = read_groups(given.X, given.groups, rows)
    soft_targets = _soft_targets_of_estimator(rows, parameters)
    names = Names(targets=names_of_targets(given.X, given.y))
    # Bins come first: making them takes more memory than anything else.
    binned = bin_rows(rows, parameters, groups)
    choice = choose_to_learn(binned, parameters, soft_targets)
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        outcome = learn(binned, choice.parameters, progress, True, choice.soft_targets)
    why = None
    if outcome.tree.node_count == 1:
        # The bins may have been reordered.
        again = bin_rows(rows, parameters)
        nearest = nearest_split(again, choice.parameters, again.pairs)
        is_pure = float(outcome.tree.impurity[0]) == 0.0
        about = rows.table.features, rows.classes is not None
        why = why_single_leaf(choice.evidence, nearest, *about, is_pure)
    # Seen from the user's call of an estimator's `fit`.
    used, has_groups = outcome.tree.used_features, given.groups is not None
    warn_of_identifiers(used, rows.whole(), parameters, has_groups, stacklevel=4)
    return _finish(outcome, choice, rows, binned, rows.table.has_names, names, why)


def choose_to_learn(
    binned: BinnedRows, parameters: Parameters, soft_targets: SoftTargets | None
) -> Choice:
    """What the parameters leave to the rows, before a tree is learnt from them.

    Parameters
    ----------
    soft_targets : SoftTargets or None
        What the user's own teacher teaches.
    """
    rows, pairs = binned.rows, binned.pairs
    folds = folds_to_choose_by(binned, parameters)
    resamples = resample(binned, parameters, pairs, binned.groups)
    evidence = None if resamples is None else resamples.evidence
    if evidence is not None and not evidence.is_convincing:
        # Nothing is to be learnt, however strong penalties are.
        strongest = max(path_of(parameters.strength))
        shape = replace(parameters, strength=strongest, max_depth=0)
        return Choice(shape, parameters.shrinkages[0], evidence=evidence)
    choice = replace(choose(binned, parameters, folds), evidence=evidence)
    soft_targets = soft_targets or soft_targets_of_resamples(resamples, rows, parameters, pairs)
    if soft_targets is None or not soft_targets.goes_with(float(choice.parameters.strength)):
        return choice
    about = choice.shrinkage, soft_targets, rows.classes is not None
    shrinkage = shrinkage_of_taught(parameters, *about)
    return replace(choice, shrinkage=shrinkage, soft_targets=soft_targets)


def with_smoothed_leaves(outcome: Outcome, choice: Choice, has_classes: bool) -> TreeArrays:
    """The tree that was learnt, with smoothed leaves."""
    tree = shrink(outcome.tree, choice.shrinkage)
    if has_classes and choice.parameters.shrinkage == "auto":
        tree = with_own_classes(tree, outcome.own)
    return tree


def rows_to_fit(given: GivenRows, parameters: Parameters, has_classes: bool) -> TrainingRows:
    """Rows to learn from; those that resamples are drawn of are all in this process."""
    X, y, sample_weight, _ = given
    rows = training_rows(X, y, sample_weight, parameters, has_classes)
    return in_memory(rows) if n_resamples_of(rows, parameters) > 0 else rows


def _soft_targets_of_estimator(rows: TrainingRows, parameters: Parameters) -> SoftTargets | None:
    """What the user's own teacher teaches; None without one."""
    if parameters.teacher is None or isinstance(parameters.teacher, str):
        return None
    return soft_targets_of_estimator(parameters.teacher, rows)


def refine_fitted(
    fitted: FittedTree, X: Any, y: Any, sample_weight: Any, parameters: Parameters, reader: str
) -> FittedTree:
    """Refine a fitted tree for some rows, which `reader` reads."""
    strength, criterion = fitted.strength, fitted.criterion
    parameters = replace(parameters, refine="tao", strength=strength, criterion=criterion)
    if parameters.shrinkage == "cv":
        parameters = replace(parameters, shrinkage=fitted.shrinkage)
    choice = Choice(parameters, parameters.shrinkages[0])
    targets = fitted.read_targets(X, y)
    if fitted.classes is None:
        check_spread(targets, parameters.objective)
    weights = row_weights(X, sample_weight)
    about = targets, fitted.classes, weights
    rows = TrainingRows(fitted.read_table(X, reader), *about, backend=LOCAL)
    rows = rows.with_evidence(importance_of(*about, parameters.class_weight))
    if rows.kept is not None:
        # Categories of features that the tree has not used are learnt here, as by a fit.
        seen = rows.table.with_seen_categories().features
        features = tuple(
            new if used.categories == () else known
            for used, known, new in zip(fitted.features, rows.table.features, seen, strict=True)
        )
        rows = replace(rows, table=rows.table.with_features(features))
    binned = bin_rows(rows, parameters)
    fitting = fitting_bins(fitted.tree, rows.table, binned.binned)
    coarse = coarse_bins_of(rows, fitting, parameters, binned.pairs)
    binned = replace(binned, binned=fitting, coarse=coarse)
    with Progress(parameters.verbose, rows.table.n_rows, parameters.max_depth) as progress:
        outcome = learn(binned, parameters, progress, True, start=fitted.tree)
    return _finish(outcome, choice, rows, binned, fitted.has_names, fitted.names)


def fit_path(given: GivenRows, parameters: Parameters, has_classes: bool) -> dict[str, Any]:
    """Fit trees along a path of strengths, and test each on rows held out.

    A list of strengths is the path; otherwise it is our own. `has_classes` says whether y holds
    classes rather than numbers.
    """
    if isinstance(parameters.strength, Real | str):
        parameters = replace(parameters, strength=PATH)
    rows = rows_to_fit(given, parameters, has_classes)
    groups = read_groups(given.X, given.groups, rows)
    soft_targets = _soft_targets_of_estimator(rows, parameters)
    binned = bin_rows(rows, parameters, groups)
    folds, pairs = folds_to_choose_by(binned, parameters), binned.pairs
    assert folds is not None
    resamples = resample(binned, parameters, pairs, groups)
    soft_targets = soft_targets or soft_targets_of_resamples(resamples, rows, parameters, pairs)
    if resamples is not None and not resamples.evidence.is_convincing:
        parameters, soft_targets = replace(parameters, max_depth=0), None
    strengths = path_of(parameters.strength)
    with TestProgress(parameters.verbose, rows.table.n_rows) as progress:
        validation = CrossValidation(binned, parameters, folds, progress)
        record = validation.test(trials_of(parameters))
        trials = [record.best(strength) for strength in strengths]
        trees = validation.trees(trials, soft_targets)
    scores, errors = np.array([record.score(trial) for trial in trials]).T
    return {
        "strength": np.array(strengths),
        "score": scores,
        "error": errors,
        "n_leaves": np.array([tree.n_leaves for tree in trees]),
        "n_parts": np.array([tree.n_parts for tree in trees]),
        "is_chosen": np.array([trial == record.best() for trial in trials]),
        "score_name": validation.score.name,
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
    outcome: Outcome,
    choice: Choice,
    rows: TrainingRows,
    binned: BinnedRows,
    has_names: bool,
    names: Names,
    why_single_leaf: str | None = None,
) -> FittedTree:
    """What was learnt, with smoothed leaves, and sketched."""
    parameters, features, soft_targets = choice.parameters, rows.table.features, choice.soft_targets
    tree = with_smoothed_leaves(outcome, choice, rows.classes is not None)
    tree = _with_readable_dates(tree, rows.table)
    summary, sketches = summary_of_values(rows, tree.used_features, parameters.n_threads), None
    if rows.n_outputs == 1:
        sizes = rows.n_classes
        to_sketch = binned.backend.to_sketch(binned, tree, parameters.n_threads)
        sketches, edges = sketch_tree(
            *(tree, features, to_sketch),
            *(summary.ranges, None if sizes is None else sizes[0]),
            has_medians=outcome.criterion == "absolute_error",
        )
        summary = replace(summary, target_edges=edges, steps=to_sketch.steps)
        if rows.weights is not None:
            sketches = replace(sketches, weighed=_weighed(outcome.own, sketches, summary.steps))
    weights = tree.weighted_n_node_samples * rows.weight_size
    return FittedTree(
        trees=(tree.with_nodes(weights=weights, sketches=sketches),),
        features=features,
        has_names=has_names,
        classes=rows.classes,
        criterion=outcome.criterion,
        strength=float(parameters.strength),
        shrinkage=choice.shrinkage.amount,
        summary=summary,
        history=outcome.history,
        cv_results=choice.results,
        names=names,
        why_single_leaf=why_single_leaf,
        taught=0.0 if soft_targets is None else soft_targets.share,
    )


def _weighed(tree: TreeArrays, sketches: TreeSketches, steps: int) -> np.ndarray | None:
    """What weights make of the nodes' rows, as `NodeSketch` has it; None if they only count rows.

    Weights of the tree are evidence, and its values are not smoothed yet.
    """
    n_rows = tree.weighted_n_node_samples
    if sketches.mean is None:
        weighed = n_rows[:, None] * tree.value[:, 0]
        counts = sketches.counts / steps
        return None if np.allclose(weighed, counts, rtol=1e-9) else weighed
    if np.array_equal(n_rows, sketches.counts.sum(axis=1)):
        return None
    return np.stack([n_rows, tree.value[:, 0, 0], np.sqrt(tree.impurity)], axis=1)


def _with_readable_dates(tree: TreeArrays, table: Table) -> TreeArrays:
    """The same tree, with thresholds on dates at moments that take few digits to write."""
    nodes = {
        number: _nodes_on(tree, number)
        for number in tree.used_features
        if table.features[number].is_date
    }
    if not nodes:
        return tree
    thresholds = {number: _thresholds(tree, its) for number, its in nodes.items()}
    upper = tree.piece_upper.copy()
    for number, (below, above) in neighbours_of(table, thresholds).items():
        for node in nodes[number]:
            inner = upper[tree.pieces(node)][:-1]
            places = np.searchsorted(thresholds[number], inner)
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
