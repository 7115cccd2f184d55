"""Estimators that teach a tree: their predictions for its training rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from shapetree.data._batches import Batches
from shapetree.data._shares import ClassShares, parts_of
from shapetree.fit import TeacherPredictions


def ask_teacher(
    teacher: Any, X: Any, y: Any, sample_weight: Any, has_classes: bool
) -> tuple[Any, TeacherPredictions]:
    """The fitted teacher, and its predictions for the rows.

    A teacher that is not fitted is fitted to the same rows, as a clone.
    """
    if y is None or isinstance(X, Batches):
        raise ValueError(
            "teacher must be None, 'auto' or 'forest' for rows in batches or on a cluster; fit "
            "them from memory, or to the teacher's predictions as the target"
        )
    if has_classes and not hasattr(teacher, "predict_proba"):
        raise ValueError("teacher must have predict_proba to teach a tree of classes")
    if not _is_fitted(teacher):
        given = X, y, sample_weight
        if isinstance(y, ClassShares):
            given = _in_parts(*given)
        weights = {} if given[2] is None else {"sample_weight": given[2]}
        teacher = clone(teacher).fit(*given[:2], **weights)
    if not has_classes:
        return teacher, TeacherPredictions(np.asarray(teacher.predict(X), dtype=np.float64))
    shares = teacher.predict_proba(X)
    if isinstance(shares, list):
        raise ValueError("teacher must predict a single output to teach a tree of classes")
    return teacher, TeacherPredictions(
        np.asarray(shares, dtype=np.float64), np.asarray(teacher.classes_)
    )


def teacher_of_parts(
    teacher: Any, X: Any, y: Any, sample_weight: Any, has_classes: bool
) -> Callable[[np.ndarray], TeacherPredictions]:
    """From row numbers to predictions for all rows, by a teacher that is fitted to those.

    A teacher that is fitted already stays as it is.
    """
    if y is None or isinstance(X, Batches) or _is_fitted(teacher):
        predictions = ask_teacher(teacher, X, y, sample_weight, has_classes)[1]
        return lambda _: predictions

    def of_part(rows: np.ndarray) -> TeacherPredictions:
        own_weight = None if sample_weight is None else _safe_indexing(sample_weight, rows)
        own_X, own_y = _safe_indexing(X, rows), _safe_indexing(y, rows)
        fitted, _ = ask_teacher(teacher, own_X, own_y, own_weight, has_classes)
        predictions = ask_teacher(fitted, X, y, sample_weight, has_classes)[1]
        if predictions.classes is None:
            return predictions
        # Of which a part may lack some.
        classes = y.classes if isinstance(y, ClassShares) else np.unique(np.asarray(y))
        shares = np.zeros((len(predictions.values), len(classes)))
        shares[:, np.searchsorted(classes, predictions.classes)] = predictions.values
        return TeacherPredictions(shares, classes)

    return of_part


def _in_parts(X: Any, shares: ClassShares, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Rows as parts, one for each class that a row has a share of, with their weights."""
    ones, parts = np.ones(len(shares)), parts_of(shares.values)
    weights = ones if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    amounts = weights[parts.row] * shares.values[parts.row, parts.label]
    return _safe_indexing(X, parts.row), shares.classes[parts.label], amounts


def _is_fitted(teacher: Any) -> bool:
    try:
        check_is_fitted(teacher)
    except (NotFittedError, TypeError):
        return False
    return True
