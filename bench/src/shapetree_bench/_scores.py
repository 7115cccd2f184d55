"""What is measured of a fitted model on rows that it has not seen."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import f1_score

# Probabilities are kept this far from 0 and 1, so that one sure error does not decide a log loss.
SURE = 1e-6
N_CALIBRATION_BINS = 15


def scores_of_classes(y: np.ndarray, proba: np.ndarray) -> dict[str, float]:
    """Accuracy, macro-F1, log loss and calibration error.

    Parameters
    ----------
    y : int array of shape (n_rows,)
    proba : array of shape (n_rows, n_classes)
        Probabilities; the first of equal ones is the prediction.
    """
    guess = proba.argmax(axis=1)
    of_truth = np.clip(proba[np.arange(len(y)), y], SURE, 1 - SURE)
    return {
        "accuracy": float(np.mean(guess == y)),
        "macro_f1": float(f1_score(y, guess, average="macro", zero_division=0)),
        "log_loss": float(-np.log(of_truth).mean()),
        "calibration_error": calibration_error(guess == y, proba.max(axis=1)),
    }


def calibration_error(is_right: np.ndarray, confidence: np.ndarray) -> float:
    """Mean distance between confidence and accuracy, over bins of equal width."""
    bins = np.minimum((confidence * N_CALIBRATION_BINS).astype(int), N_CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, is_right - confidence, minlength=N_CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def scores_of_numbers(y: np.ndarray, guess: np.ndarray) -> dict[str, float]:
    """Squared and absolute error, and R²."""
    errors = guess - y
    squared = float(np.mean(errors**2))
    return {
        "squared_error": squared,
        "absolute_error": float(np.abs(errors).mean()),
        "r2": 1.0 - squared / float(np.var(y)),
    }


# What a protocol wants most of each task, and whether more of it is better.
MAIN = {"classification": ("accuracy", 1), "regression": ("squared_error", -1)}
