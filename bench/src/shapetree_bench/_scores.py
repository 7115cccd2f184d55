"""What is measured of a fitted model on rows that it has not seen."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import f1_score, roc_auc_score

# Probabilities are kept this far from 0, so that a few sure errors do not decide a log loss.
SURE = 1e-3
N_CALIBRATION_BINS = 15


def scores_of_classes(y: np.ndarray, proba: np.ndarray) -> dict[str, float]:
    """Accuracy, macro-F1, log loss, AUC and calibration error.

    Parameters
    ----------
    y : int array of shape (n_rows,)
    proba : array of shape (n_rows, n_classes)
        Probabilities; the first of equal ones is the prediction.
    """
    guess = proba.argmax(axis=1)
    known = np.clip(proba, SURE, 1.0)
    of_truth = known[np.arange(len(y)), y] / known.sum(axis=1)
    return {
        "accuracy": float(np.mean(guess == y)),
        "macro_f1": float(f1_score(y, guess, average="macro", zero_division=0)),
        "log_loss": float(-np.log(of_truth).mean()),
        "auc": auc(y, proba),
        "calibration_error": calibration_error(guess == y, proba.max(axis=1)),
    }


def auc(y: np.ndarray, proba: np.ndarray) -> float:
    """Area under the ROC curve; of each class against all others, on the mean."""
    classes = [1] if proba.shape[1] == 2 else range(proba.shape[1])
    areas = [
        roc_auc_score(y == each, proba[:, each])
        for each in classes
        if 0 < np.count_nonzero(y == each) < len(y)
    ]
    return float(np.mean(areas)) if areas else float("nan")


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
