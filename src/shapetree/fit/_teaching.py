"""A tree taught by many: fitted to what a teacher predicts for each row, mixed with its own target.

What many trees on resamples predict for a row is less noisy than the row's own target, and a tree
that is fitted to it predicts better from few rows. Numbers are simply replaced. A row of a class
becomes a row of every class, each with the share that it is given; the shares add up to 1, so that
nodes count and weigh the rows that they have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from shapetree.data._shares import first_parts
from shapetree.data._sums import exact_unit, on_grid
from shapetree.fit._parameters import Parameters
from shapetree.fit._resamples import Resamples
from shapetree.fit._training_rows import BinnedRows, TrainingRows
from shapetree.grow._pair_options import PairOptions
from shapetree.refine import Shrinkage
from shapetree.tree._arrays import TreeArrays

# Prices are what leaves gain by chance. What small trees predict for a row is a mean of those that
# have not seen it, and holds this share of the chance that targets hold.
CHANCE_OF_RESAMPLES = 0.4
# What is mixed depends on sums that are rounded: it is rounded itself, so that neither the order of
# rows nor copies of them instead of weights make a difference.
UNIT_OF_MIXTURE = 2.0**-8
DEFAULT_OBJECTIVES = ("log_loss", "squared_error")


class TeacherPredictions(NamedTuple):
    """What an estimator predicts for the rows that a tree is fitted to.

    Attributes
    ----------
    values : array of shape (n_rows, n_classes) or (n_rows,) or (n_rows, n_outputs)
        Shares of classes, or numbers.
    classes : array of shape (n_classes,) or None
    """

    values: np.ndarray
    classes: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class SoftTargets:
    """Targets that a teacher predicts, mixed with those of the rows.

    Attributes
    ----------
    predicted : array of shape (n_rows, n_outputs, n_values)
        Predictions of the teacher for each row: shares of classes, or numbers.
    share : float
        Share of the teacher in the mixture; the rest is the row's own target.
    is_asked : bool
        Whether the teacher is the user's own.
    """

    predicted: np.ndarray
    share: float
    is_asked: bool = False

    def goes_with(self, strength: float) -> bool:
        """Whether trees of some strength get soft targets; those of resamples need prices."""
        return self.is_asked or strength > 0


def soft_targets_of_resamples(
    resamples: Resamples | None, rows: TrainingRows, parameters: Parameters, pairs: PairOptions
) -> SoftTargets | None:
    """Soft targets of small trees on resamples; None if these are not to teach.

    The less of the targets they can predict, the more of these is noise, and the more counts what
    the small trees say: the square of the noise, so that a rule without any stays as it is.
    """
    if resamples is None or not is_taught_by_resamples(rows, parameters, pairs):
        return None
    noise = 1.0 - min(max(resamples.evidence.explained, 0.0), 1.0)
    return SoftTargets(resamples.predicted, round(noise**2 / UNIT_OF_MIXTURE) * UNIT_OF_MIXTURE)


def is_taught_by_resamples(rows: TrainingRows, parameters: Parameters, pairs: PairOptions) -> bool:
    """Whether small trees on resamples teach the tree."""
    if not isinstance(parameters.teacher, str):
        return False
    has_one_output = rows.targets.shape[1] == 1
    if parameters.teacher == "forest":
        if not has_one_output and rows.classes is not None:
            raise ValueError("teacher='forest' needs a single output of classes; use teacher=None")
        return True
    # Teaching smooths leaves; where users smooth them otherwise, they are not taught unasked. And
    # small trees of single features would teach a tree of pairs the steps of a slanting line.
    is_usual = parameters.shrinkage == "auto" and parameters.objective in DEFAULT_OBJECTIVES
    return has_one_output and is_usual and len(pairs.pairs) == 0


def soft_targets_of_estimator(predictions: TeacherPredictions, rows: TrainingRows) -> SoftTargets:
    """Soft targets that are the predictions of an estimator."""
    if rows.classes is None:
        predicted = predictions.values.reshape(len(predictions.values), -1, 1)
    elif len(rows.classes) > 1:
        raise ValueError("teacher must be None or 'auto' where y has several outputs of classes")
    else:
        predicted = _by_class(predictions, rows.classes[0])[:, None, :]
    n_given = rows.n_given
    n_outputs = rows.targets.shape[1]
    if predicted.shape[:2] != (n_given, n_outputs) or not np.isfinite(predicted).all():
        raise ValueError(
            f"teacher must predict a finite number for each of {n_given} rows and {n_outputs} "
            f"outputs, got an array of shape {predictions.values.shape}"
        )
    return SoftTargets(rows.of_given(predicted), 1.0, is_asked=True)


def _by_class(predictions: TeacherPredictions, classes: np.ndarray) -> np.ndarray:
    """Shares of classes, in the order of the tree's classes."""
    own = predictions.classes
    if own is None or own.shape != predictions.values.shape[1:] or not np.isin(classes, own).all():
        known = None if own is None else own.tolist()
        raise ValueError(f"teacher must know the classes of y, {classes.tolist()}; it has {known}")
    places = [int(np.flatnonzero(own == label)[0]) for label in classes]
    shares = np.clip(predictions.values[:, places], 0.0, 1.0)
    total = shares.sum(axis=1, keepdims=True)
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / len(classes))


def shrinkage_of_taught(
    parameters: Parameters, shrinkage: Shrinkage, soft_targets: SoftTargets, has_classes: bool
) -> Shrinkage:
    """How leaves are smoothed: soft targets are smooth already, the rest is not.

    Leaves of few rows that agree on a class look too sure; numbers gain nothing by smoothing.
    """
    if parameters.shrinkage != "auto":
        return shrinkage
    return Shrinkage(of_node=(1.0 - soft_targets.share) * shrinkage.of_node if has_classes else 0.0)


def taught_rows(
    binned: BinnedRows, parameters: Parameters, soft_targets: SoftTargets
) -> tuple[BinnedRows, Parameters]:
    """Rows with soft targets, and the parameters to learn them with."""
    rows, share = binned.rows, soft_targets.share
    if rows.classes is None:
        targets = share * soft_targets.predicted[:, :, 0] + (1.0 - share) * rows.targets
        # Prices are in rows of the error that is left. Soft targets vary less within a
        # leaf than the targets do, so that it must gain more.
        strength = (1.0 + share) * float(parameters.strength)
        taught = replace(binned, rows=replace(rows, targets=targets))
        return taught, replace(parameters, strength=strength)
    n_rows, n_classes = rows.table.n_rows, len(rows.classes[0])
    shares = share * soft_targets.predicted[:, 0, :n_classes]
    shares[np.arange(n_rows), rows.targets[:, 0].astype(np.intp)] += 1.0 - share
    grid = exact_unit(float(rows.n_counted))
    shares = _on_grid(shares, grid)
    weights = np.ones(n_rows) if rows.weights is None else rows.weights
    chance, counts = _dispersion(shares, weights), rows.counts
    if not soft_targets.is_asked:
        chance *= 1.0 - share * (1.0 - CHANCE_OF_RESAMPLES)
    if rows.row_of is not None:
        # Parts of a row, which are all taught the same, are joined first.
        first = first_parts(rows.row_of)
        total = np.add.reduceat(weights, first)
        shares = np.add.reduceat(shares * weights[:, None], first) / total[:, None]
        shares, weights, binned = _on_grid(shares, grid), total, binned.take(first)
        counts = None if counts is None else np.add.reduceat(counts, first)
    row, label = np.nonzero(shares > 0)
    of_class = shares[row, label]
    copied = binned.take(row)
    unit = exact_unit(float(weights.sum()))
    taught_rows = replace(
        copied.rows,
        targets=label[:, None].astype(rows.targets.dtype),
        weights=on_grid(weights[row] * of_class, unit),
        counts=of_class if counts is None else counts[row] * of_class,
    )
    strength = chance * float(parameters.strength)
    return replace(copied, rows=taught_rows), replace(parameters, strength=strength)


def _on_grid(shares: np.ndarray, unit: float) -> np.ndarray:
    """Shares as multiples of a unit, of which sums are exact, and which still add up to 1."""
    rounded = on_grid(shares, unit)
    largest = rounded.argmax(axis=1)
    rounded[np.arange(len(shares)), largest] += 1.0 - rounded.sum(axis=1)
    return rounded


def _dispersion(shares: np.ndarray, weights: np.ndarray) -> float:
    """How far shares of classes lie from their mean, compared with classes that are certain.

    Prices are what leaves and parts gain by chance where classes are certain; where they are
    shares, chance gains as much less as these vary less.
    """
    mean = weights @ shares / weights.sum()
    of_certain = float((mean * (1.0 - mean)).sum())
    if of_certain == 0.0:
        return 1.0
    found = float(weights @ ((shares - mean) ** 2).sum(axis=1) / weights.sum()) / of_certain
    return max(round(found / UNIT_OF_MIXTURE), 1) * UNIT_OF_MIXTURE


def with_own_values(tree: TreeArrays, binned: BinnedRows, n_threads: int) -> TreeArrays:
    """The tree with the values and, for numbers, the impurities of the rows themselves."""
    rows = binned.rows
    weights = np.ones(rows.table.n_rows) if rows.weights is None else rows.weights
    leaves = binned.backend.leaves(binned, tree, n_threads)

    def sums(of_rows: np.ndarray) -> np.ndarray:
        """Sum over the rows of each node, whatever their order."""
        unit = exact_unit(float(np.abs(of_rows).sum()))
        found = np.bincount(leaves, on_grid(of_rows, unit), tree.node_count)
        for node in range(tree.node_count - 1, 0, -1):  # children stand behind their parents
            found[tree.parent[node]] += found[node]
        return found

    total, first = sums(weights), rows.targets[:, 0]
    value, impurity = tree.value.copy(), tree.impurity
    if rows.classes is not None:
        for number in range(len(rows.classes[0])):
            value[:, 0, number] = sums(np.where(first == number, weights, 0.0)) / total
    else:
        for output, y in enumerate(rows.targets.T):
            value[:, output, 0] = sums(weights * y) / total
        off = first - value[0, 0, 0]
        impurity = sums(weights * off**2) / total - (value[:, 0, 0] - value[0, 0, 0]) ** 2
    return replace(tree, value=value, impurity=np.maximum(impurity, 0.0))
