"""What a tree is worth on rows that it was not fitted on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shapetree.data._sums import exact_mean
from shapetree.data._targets import medians_of
from shapetree.refine import shrink
from shapetree.tree._arrays import TreeArrays

# Smallest share of a class that counts in log loss.
LEAST_SHARE = 1e-3


@dataclass(frozen=True, eq=False)
class FoldTest:
    """How a tree that was fitted without a fold does on the fold's rows.

    Attributes
    ----------
    scores : array of shape (n_shrinkages, n_rows of the fold)
        What is right about each prediction: 1 at best.
    gains : array of shape (n_rows of the fold,)
        What is better about it than if the tree were a leaf.
    losses : array of shape (n_shrinkages,)
        Loss of all rows in sum, by shrinkage.
    n_leaves : int
    seconds : float
        How long the fit took.
    """

    scores: np.ndarray
    gains: np.ndarray
    losses: np.ndarray
    n_leaves: int
    seconds: float


def test_of(
    tree: TreeArrays,
    leaves: np.ndarray,
    targets: np.ndarray,
    weights: np.ndarray,
    loss: Loss,
    shrinkages: Sequence[float],
    seconds: float,
) -> FoldTest:
    """How a tree does on rows that end in some leaves.

    Parameters
    ----------
    tree : TreeArrays
    leaves : int array of shape (n_rows,)
    targets : array of shape (n_rows, n_outputs)
    weights : array of shape (n_rows,)
    loss : Loss
    shrinkages : sequence of float
    seconds : float
        How long the tree took to fit.
    """
    shrunk = [shrink(tree, each).value[leaves] for each in shrinkages]
    losses = np.array([loss.of(values, targets) @ weights for values in shrunk])
    scores = np.array([loss.scores(values, targets)[0] for values in shrunk])
    _, of_leaf = loss.scores(tree.value[leaves], targets)
    _, of_root = loss.scores(tree.value[np.zeros_like(leaves)], targets)
    return FoldTest(scores, of_leaf - of_root, losses, tree.n_leaves, seconds)


class Loss(ABC):
    """What predictions for rows lose, and what is right about them."""

    @abstractmethod
    def of(self, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """What each row loses for which a tree predicts some values, as shrinkage sees it."""

    @abstractmethod
    def scores(self, values: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What is right about each prediction: as it counts, and as it changes with all values."""


class LossOfClasses(Loss):
    """Log loss for shrinkage; accuracy, and beside it the quadratic score of the shares."""

    def of(self, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Log loss of each row, summed over outputs."""
        return -np.log(np.maximum(_shares_of(values, targets), LEAST_SHARE)).sum(axis=1)

    def scores(self, values: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Whether the class is right, and 2 p(class) - Σ p² of the shares p; means of outputs."""
        is_right = values.argmax(axis=2) == targets
        quadratic = 2.0 * _shares_of(values, targets) - (values**2).sum(axis=2)
        return is_right.mean(axis=1), quadratic.mean(axis=1)


class LossOfNumbers(Loss):
    """Squared or absolute error; as a score, the share of it that the tree takes away.

    Parameters
    ----------
    targets : array of shape (n_rows, n_outputs)
        Those of all rows.
    weights : array of shape (n_rows,)
    is_absolute : bool
    """

    def __init__(self, targets: np.ndarray, weights: np.ndarray, is_absolute: bool) -> None:
        self._is_absolute = is_absolute
        middle = medians_of(targets, weights) if is_absolute else exact_mean(targets, weights)
        self._unit = 1.0
        without_tree = self.of(np.broadcast_to(middle[:, None], (*targets.shape, 1)), targets)
        mean = float(without_tree @ weights / weights.sum())
        self._unit = mean if np.isfinite(mean) and mean > 0 else 1.0

    def of(self, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Error of each row, summed over outputs."""
        off = np.abs(values[:, :, 0] - targets)
        return (off if self._is_absolute else off**2).sum(axis=1)

    def scores(self, values: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The share of the error that is left to a tree without splits, less 1."""
        scores = 1.0 - self.of(values, targets) / self._unit
        return scores, scores


def _shares_of(values: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """What shares the rows' own classes have, (n_rows, n_outputs)."""
    return np.take_along_axis(values, targets[:, :, None].astype(np.intp), axis=2)[:, :, 0]
