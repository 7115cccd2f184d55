"""The order of a forest's fit: rows are drawn, and trees grown on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from shapetree._threads import run_together
from shapetree.ensemble._draws import MAX_DRAWS_PER_ROW, Draws
from shapetree.fit._growth import grower, grown_together, hold, pair_frames
from shapetree.fit._local_backend import training_rows
from shapetree.fit._parameters import Parameters, candidate_options
from shapetree.fit._training_rows import (
    TrainingRows,
    bin_rows,
    names_of_targets,
    summary_of_values,
)
from shapetree.grow._feature_draw import FeatureDraw
from shapetree.grow._feature_order import feature_order
from shapetree.grow._grower import Trees
from shapetree.grow._progress import TestProgress
from shapetree.refine import Shrinkage, shrink
from shapetree.tree._fitted import FittedForest
from shapetree.tree._naming import Names
from shapetree.tree._packed_trees import PackedTree, PackedTrees
from shapetree.tree._sketch import edges_of_targets


@dataclass(frozen=True)
class ForestOptions:
    """How trees of a forest differ from each other; all has been checked.

    Attributes
    ----------
    n_trees : int
    bootstrap : bool
    max_samples : int, float or None
        Rows that each tree draws, or their fraction of all rows.
    max_features : int, float, str or None
        Features that each node may split on.
    shrinkage : Shrinkage
        Of each tree.
    """

    n_trees: int
    bootstrap: bool
    max_samples: float | None
    max_features: float | str | None
    shrinkage: Shrinkage

    def n_drawn(self, rows: TrainingRows) -> int | None:
        """Rows that each tree draws; None for all of them."""
        n_rows = rows.n_counted
        if not self.bootstrap:
            if self.max_samples is not None:
                raise ValueError("max_samples cannot be set if bootstrap=False; set it to None")
            return None
        if self.max_samples is None:
            return min(n_rows, MAX_DRAWS_PER_ROW * rows.table.n_rows)
        if isinstance(self.max_samples, int | np.integer):
            if self.max_samples > n_rows:
                raise ValueError(
                    f"max_samples must be no more than the {n_rows} rows, got {self.max_samples}"
                )
            return int(self.max_samples)
        return max(1, round(n_rows * self.max_samples))

    def n_features_drawn(self, n_features: int) -> int:
        """Features that each node may split on."""
        given = self.max_features
        if given is None:
            return n_features
        if isinstance(given, str):
            root = np.sqrt(n_features) if given == "sqrt" else np.log2(n_features)
            return max(1, int(root))
        if isinstance(given, int | np.integer):
            return min(int(given), n_features)
        return max(1, int(given * n_features))


def fit_forest(
    X: Any,
    y: Any,
    sample_weight: Any,
    parameters: Parameters,
    options: ForestOptions,
    has_classes: bool,
    seed: int,
    before: FittedForest | None = None,
) -> tuple[FittedForest, Draws]:
    """Fit a forest, or add trees to one.

    Parameters
    ----------
    X, y, sample_weight
        As given by the user.
    parameters : Parameters
        Of each tree.
    options : ForestOptions
    has_classes : bool
        Whether y holds classes rather than numbers.
    seed : int
    before : FittedForest, optional
        Whose trees are kept.

    Returns
    -------
    forest : FittedForest
    draws : Draws
        The rows, and which of them trees have seen.
    """
    draws = draw_rows(X, y, sample_weight, parameters, options, has_classes, seed)
    rows = draws.binned.rows
    kept = before.trees.packed if before is not None else ()
    if before is not None:
        _check_alike(before, rows)
    numbers = range(len(kept), options.n_trees)
    with TestProgress(parameters.verbose, rows.table.n_rows, "forest", "trees") as progress:
        progress.expect(len(numbers))
        criterion, trees = _grow(draws, parameters, options, numbers, progress)
    every = PackedTrees((*kept, *trees))
    features = rows.table.features
    used = sorted(set().union(*(tree.used_features for tree in every)))
    summary = summary_of_values(rows, used, parameters.n_threads)
    if rows.n_outputs == 1 and not has_classes:
        summary = replace(summary, target_edges=edges_of_targets(rows.targets[:, 0]))
    forest = FittedForest(
        trees=every,
        features=features,
        has_names=rows.table.has_names,
        classes=rows.classes,
        criterion=criterion,
        shrinkage=max(options.shrinkage),
        summary=summary,
        names=Names(targets=names_of_targets(X, y)),
        seed=seed,
        contents=draws.contents,
    )
    return forest, draws


def draw_rows(
    X: Any,
    y: Any,
    sample_weight: Any,
    parameters: Parameters,
    options: ForestOptions,
    has_classes: bool,
    seed: int,
) -> Draws:
    """Read and bin rows, of which trees draw theirs."""
    rows = training_rows(X, y, sample_weight, parameters, has_classes)
    if rows.row_of is not None:
        raise TypeError(
            "a forest takes no shares of classes; give labels, or fit a ShapeTreeClassifier"
        )
    n_drawn = options.n_drawn(rows)
    binned = bin_rows(rows, parameters)
    return Draws(replace(binned, rows=binned.rows.gather()), n_drawn, seed)


def _check_alike(before: FittedForest, rows: TrainingRows) -> None:
    """Refuse to add trees that the others would not fit."""
    are_alike = len(before.features) == len(rows.table.features)
    are_alike &= before.n_outputs == rows.targets.shape[1]
    if before.classes is not None and rows.classes is not None and are_alike:
        are_alike = all(map(np.array_equal, before.classes, rows.classes))
    if not are_alike:
        raise ValueError(
            "warm_start=True adds trees to those of the last fit, which had other features, "
            "classes or targets; set warm_start=False"
        )


def _grow(
    draws: Draws,
    parameters: Parameters,
    options: ForestOptions,
    numbers: Sequence[int],
    progress: TestProgress,
) -> tuple[str, list[PackedTree]]:
    """Grow trees of some numbers, as many together as memory allows."""
    rows = draws.rows
    binned = replace(draws.binned, rows=rows)
    goal = rows.goal(parameters)
    if rows.counts is None:
        goal = goal.counting(None, draws.binned.rows.n_counted)
    draws.prepare()
    features = binned.binned.features
    order = feature_order(hold(draws.binned, parameters))
    n_drawn = options.n_features_drawn(len(features))
    one, n_at_once, every = parameters, 1, hold(binned, parameters, goal)
    if len(numbers) >= parameters.n_threads > 1 and not every.is_remote:
        # One thread works in Python while another sums and searches.
        one, n_at_once = replace(parameters, n_threads=1), parameters.n_threads
        every = hold(binned, one, goal)

    def grow_together(some: Sequence[int]) -> list[PackedTree]:
        each = [draws.of_tree(number) for number in some]
        draw = None
        if n_drawn < len(features):
            seeds = np.array([its.of_features for its in each], dtype=np.uint64)
            draw = FeatureDraw(len(features), n_drawn, seeds)
        own = [replace(one, random_state=its.of_search) for its in each]
        seeds = np.array([candidate_options(goal, its).seed for its in own])
        held = every.at_roots([its.rows for its in each])
        del each  # whose rows the holder has copied
        frames = pair_frames(held, binned.pairs, len(some))
        together, silent = Trees(seeds - seeds[0], draw), progress.of_test()
        grown = grower(held, frames, own[0], silent, order, together, lays_out=True).grow()
        trees = []
        for root in range(len(some)):
            tree = shrink(grown.arrays(features, goal.impurity_scale, root), options.shrinkage)
            if rows.weight_size != 1.0:
                tree = tree.with_nodes(weights=tree.weighted_n_node_samples * rows.weight_size)
            trees.append(PackedTree(tree))
            progress.tested()
        return trees

    parts = grown_together(numbers, every, draws.n_in_tree, binned.pairs, n_at_once)
    jobs = [partial(grow_together, some) for some in parts]
    grown = run_together(jobs, n_at_once, progress.stop)
    return goal.criterion_name, [tree for trees in grown for tree in trees]
