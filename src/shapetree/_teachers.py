"""Estimators that teach a tree: what they predict for its training rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from shapetree.data._batches import Batches
from shapetree.fit import Told


def ask_teacher(
    teacher: Any, X: Any, y: Any, sample_weight: Any, has_classes: bool
) -> tuple[Any, Told]:
    """The fitted teacher, and what it says of the rows.

    A teacher that is not fitted is fitted to the same rows, as a clone.
    """
    if y is None or isinstance(X, Batches):
        raise ValueError(
            "teacher must be None, 'auto' or 'forest' for rows in batches or on a cluster; fit "
            "them from memory, or to the teacher's predictions as the target"
        )
    if has_classes and not hasattr(teacher, "predict_proba"):
        raise ValueError("teacher must have predict_proba to teach a tree of classes")
    try:
        check_is_fitted(teacher)
    except (NotFittedError, TypeError):
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        teacher = clone(teacher).fit(X, y, **weights)
    if not has_classes:
        return teacher, Told(np.asarray(teacher.predict(X), dtype=np.float64))
    shares = teacher.predict_proba(X)
    if isinstance(shares, list):
        raise ValueError("teacher must predict a single output to teach a tree of classes")
    return teacher, Told(np.asarray(shares, dtype=np.float64), np.asarray(teacher.classes_))
