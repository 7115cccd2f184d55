"""How good a tree is on rows that it was not fitted on: the objective's score of each row."""

from __future__ import annotations

import numpy as np

from shapetree.data._sums import local_numbers, mean_of
from shapetree.data._targets import medians_of

# Smallest share of a class that counts in log loss.
LEAST_SHARE = 1e-3


class Score:
    """The score of predictions, the greater the better; its mean over rows judges a tree.

    Parameters
    ----------
    objective : {"log_loss", "error", "squared_error", "absolute_error"}
    targets : array of shape (n_rows, n_outputs)
        Those of all rows; numbers are judged by how much of their error is taken away.
    weights : array of shape (n_rows,)

    Attributes
    ----------
    name : str
        What the score is called, for users.
    best : float
        The score of a row that is predicted without fault.
    """

    NAMES = {  # noqa: RUF012
        "log_loss": "log loss, negated",
        "error": "accuracy",
        "squared_error": "share of the squared error removed",
        "absolute_error": "share of the absolute error removed",
    }

    def __init__(self, objective: str, targets: np.ndarray, weights: np.ndarray) -> None:
        self._objective = objective
        self.name = self.NAMES[objective]
        self.best = 0.0 if objective == "log_loss" else 1.0
        # Of numbers: what differences are divided by, so that squares of any can be told, and the
        # error of a row without a tree.
        self._scale = self._unit = 1.0
        if objective in ("squared_error", "absolute_error"):
            is_absolute = objective == "absolute_error"
            middle = (
                medians_of(targets, weights)
                if is_absolute
                else mean_of(local_numbers(targets, weights))
            )
            greatest = float(np.abs(targets - middle).max())
            self._scale = greatest if greatest > 0 else 1.0
            without_tree = self._errors(np.broadcast_to(middle, targets.shape), targets)
            mean = float(without_tree @ weights / weights.sum())
            self._unit = mean if mean > 0 else 1.0

    def of(self, values: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """The score of each row.

        Parameters
        ----------
        values : array of shape (n_rows, n_outputs, n_values)
            What the rows' leaves predict: shares of classes, or a number.
        targets : array of shape (n_rows, n_outputs)
        """
        if self._objective == "error":
            return (values.argmax(axis=2) == targets).mean(axis=1)
        if self._objective == "log_loss":
            classes = targets[:, :, None].astype(np.intp)
            shares = np.take_along_axis(values, classes, axis=2)[:, :, 0]
            return np.log(np.maximum(shares, LEAST_SHARE)).mean(axis=1)
        return 1.0 - self._errors(values[:, :, 0], targets) / self._unit

    def of_step(self, values: np.ndarray, towards: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """What each row gains per step, a small one, from some values towards others.

        Of log loss, squared or absolute error; in units that are the same for all rows.
        """
        if self._objective == "log_loss":
            classes = targets[:, :, None].astype(np.intp)
            step, shares = (
                np.take_along_axis(each, classes, axis=2)[:, :, 0]
                for each in (towards - values, values)
            )
            return np.asarray((step / np.maximum(shares, LEAST_SHARE)).mean(axis=1))
        step, off = ((its - values[:, :, 0]) / self._scale for its in (towards[:, :, 0], targets))
        pull = np.sign(off) if self._objective == "absolute_error" else off
        return np.asarray((step * pull).sum(axis=1))

    def _errors(self, numbers: np.ndarray, targets: np.ndarray) -> np.ndarray:
        off = np.abs(numbers - targets) / self._scale
        return np.asarray((off if self._objective == "absolute_error" else off**2).sum(axis=1))
