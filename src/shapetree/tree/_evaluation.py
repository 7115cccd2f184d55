"""How well predictions fit the truth, and how good a tree is on rows that it has not seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from sklearn.metrics import accuracy_score, balanced_accuracy_score, mean_absolute_error, r2_score

from shapetree.tree._intervals import UnseenLeaf


@dataclass(frozen=True)
class HeldOut:
    """Scores on rows that were not fitted on."""

    n_rows: int  # how many rows they are
    # The first is the chief one: accuracy for classes, R² for numbers. `fidelity` is the same of
    # the tree's predictions for those of its teacher, if an estimator taught it.
    scores: Mapping[str, float]
    # Estimates from these rows for each leaf that they reach; none if there are several targets.
    leaves: Mapping[int, UnseenLeaf] = field(default_factory=dict)

    @property
    def chief(self) -> float:
        """Accuracy or R²."""
        return next(iter(self.scores.values()))


def scores_of(
    y: np.ndarray, predicted: np.ndarray, has_classes: bool, weights: np.ndarray | None = None
) -> dict[str, float]:
    """Scores of predictions, averaged over the targets if there are several.

    Both are of shape (n_rows,) or (n_rows, n_outputs): numbers, or the same kind of labels.
    """
    if not has_classes:
        return {
            "r2": float(r2_score(y, predicted, sample_weight=weights)),
            "mean_absolute_error": float(mean_absolute_error(y, predicted, sample_weight=weights)),
        }
    outputs = [(y, predicted)] if y.ndim == 1 else list(zip(y.T, predicted.T, strict=True))
    right = [accuracy_score(true, said, sample_weight=weights) for true, said in outputs]
    balanced = [_balanced(true, said, weights) for true, said in outputs]
    return {"accuracy": float(np.mean(right)), "balanced_accuracy": float(np.mean(balanced))}


def scores_of_shares(
    shares: np.ndarray, probabilities: np.ndarray, weights: np.ndarray | None = None
) -> dict[str, float]:
    """Scores of predictions for rows that are of several classes, each to some degree.

    Shares and probabilities are of shape (n_rows, n_classes).

    >>> scores = scores_of_shares(np.array([[0.75, 0.25]]), np.array([[0.5, 0.5]]))
    >>> {name: round(score, 3) for name, score in scores.items()}
    {'accuracy': 0.75, 'balanced_accuracy': 0.5, 'log_loss': 0.693}
    """
    weighed = shares if weights is None else shares * weights[:, None]
    is_said = probabilities.argmax(axis=1)[:, None] == np.arange(shares.shape[1])
    right, total = (weighed * is_said).sum(axis=0), weighed.sum(axis=0)
    known = np.clip(probabilities, np.finfo(np.float64).eps, 1.0)
    return {
        "accuracy": float(right.sum() / total.sum()),
        "balanced_accuracy": float(np.mean(right[total > 0] / total[total > 0])),
        "log_loss": float(-(weighed * np.log(known)).sum() / total.sum()),
    }


def _balanced(y: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None) -> float:
    with warnings.catch_warnings():
        # The test rows may have no row of a predicted class.
        warnings.simplefilter("ignore", UserWarning)
        return float(balanced_accuracy_score(y, predicted, sample_weight=weights))


def held_out_words(held_out: HeldOut, has_classes: bool) -> list[str]:
    """Scores on rows that were not fitted on, in words.

    >>> held_out_words(HeldOut(143, {"accuracy": 0.93, "fidelity": 0.951}), True)
    ['accuracy 93.0 % on 143 unseen rows', 'fidelity to the teacher 95.1 %']
    """
    rows = f"{held_out.n_rows:,} unseen row{'s' * (held_out.n_rows != 1)}"
    words = [f"{score_words(has_classes, held_out.chief)} on {rows}"]
    fidelity = held_out.scores.get("fidelity")
    if fidelity is not None:
        score = score_words(has_classes, fidelity).removeprefix("accuracy ")
        words.append(f"fidelity to the teacher {score}")
    return words


def score_words(has_classes: bool, score: float) -> str:
    """Accuracy or R² in words, which are those of a perfect score only if it is one.

    >>> score_words(True, 0.7613), score_words(True, 0.99999), score_words(True, 1.0)
    ('accuracy 76.1 %', 'accuracy 99.999 %', 'accuracy 100 %')
    >>> score_words(False, 0.64251), score_words(False, -0.1)
    ('R² 0.643', 'R² -0.100')
    """
    if has_classes:
        return f"accuracy {_below(100 * score, 100.0, 1)} %"
    return f"R² {_below(score, 1.0, 3)}"


def _below(number: float, perfect: float, decimals: int) -> str:
    """A number to some decimals, or more if it would be rounded up to a perfect score."""
    if number == perfect:
        return f"{perfect:.0f}"
    texts = (f"{number:z.{more}f}" for more in range(decimals, 17))
    return next((text for text in texts if float(text) < perfect), repr(number))
