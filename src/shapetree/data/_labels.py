"""Targets as users give them: checked, in columns, and classes as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import check_array
from sklearn.utils.multiclass import check_classification_targets

from shapetree.data._columns import check_digits
from shapetree.data._missing import is_missing, is_missing_type
from shapetree.data._open import refuse_lazy

ONE_LABEL = "The class of a row must be a text, a number or a bool."
# More classes than this take seconds, and with so few rows of each, little can be learnt of them.
MANY_CLASSES = 1000
FEW_ROWS_EACH = 10
# A range of integers up to which classes are marked instead of sorted.
SMALL_RANGE = 1000
# Rows that most often have every class, so that the others need not be looked at.
FEW_ROWS = 1000


def read_targets(y: Any, has_classes: bool, n_outputs: int | None = None) -> np.ndarray:
    """Check targets, classes or numbers, and bring them to shape (n_rows, n_outputs)."""
    if y is None:
        raise ValueError("fitting requires y to be passed, but the target y is None")
    if hasattr(y, "__class_shares__"):
        raise TypeError(
            "y holds shares of classes, which are taken by fit, evaluate, stability and pictures "
            "of a single ShapeTreeClassifier; give labels here"
        )
    if np.isscalar(y):
        raise ValueError(f"y must hold a target for each row, got {y!r}")
    # Whole numbers in an array can only be too few.
    if not (has_classes and type(y) is np.ndarray and y.dtype.kind in "biu" and y.size > 0):
        refuse_lazy(y, "y")
        _refuse_dates(y)
        if has_classes:
            _check_labels(y)
            y = _checked(_as_plain(y), None)
        else:
            numbers = _checked(y, np.float64)
            series = nw.from_native(y, series_only=True, pass_through=True)
            whole = series if isinstance(series, nw.Series) else np.asarray(y).ravel()
            check_digits(whole, "y", "Divide it or subtract a constant.")
            y = numbers
    if y.ndim == 1:
        y = y[:, None]
    if y.ndim != 2 or y.shape[1] == 0:
        raise ValueError(f"y must hold one target or a column for each, got shape {y.shape}")
    if n_outputs is not None and y.shape[1] != n_outputs:
        raise ValueError(f"y has {y.shape[1]} outputs, but the tree was fitted for {n_outputs}")
    return np.require(y, requirements=["ALIGNED"])  # which kernels rely on


def _refuse_dates(y: Any) -> None:
    """Refuse dates and durations, of which NumPy would make numbers of no known unit."""
    native = nw.from_native(y, pass_through=True, allow_series=True)
    first = None
    if isinstance(native, nw.DataFrame):
        is_date = any(dtype.is_temporal() for dtype in native.schema.values())
    elif isinstance(native, nw.Series):
        is_date = native.dtype.is_temporal()
        first = native[0] if native.dtype == nw.Object and len(native) > 0 else None
    else:
        is_date = getattr(getattr(y, "dtype", None), "kind", "") in ("m", "M")
        first = y[0] if isinstance(y, list | tuple | np.ndarray) and len(y) > 0 else None
    if is_date or isinstance(first, date | timedelta | np.datetime64 | np.timedelta64):
        raise TypeError(
            "y holds dates or durations. Turn them into numbers of a unit that you choose: with "
            "pandas, (y - y.min()) / pd.Timedelta(days=1) are days since the first."
        )


def _check_labels(y: Any) -> None:
    """Refuse labels of several kinds, of which NumPy would make text, and what is no label."""
    series = nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(series, nw.Series) and series.dtype.is_nested():
        raise TypeError(f"y holds {series.dtype} values. {ONE_LABEL}")
    if getattr(y, "dtype", None) not in (None, object):
        return
    try:
        labels = np.array(y, dtype=object).ravel()
    except ValueError as error:
        raise ValueError(f"y must hold as many targets in every row. {error}") from error
    if set(map(type, labels)) == {str}:
        return  # there may be very many, and they are plain
    an_example = {type(label): label for label in reversed(labels)}
    for kind in an_example:
        if not (issubclass(kind, str | Real | Decimal | np.bool_) or is_missing_type(kind)):
            raise TypeError(f"y holds {kind.__name__} values. {ONE_LABEL}")
    if all(issubclass(kind, Real) for kind in an_example):
        return  # numbers that are none are refused below
    for row, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(
                f"y has no class in row {row}: it holds {label!r}. Leave out such rows, or name a "
                "class for them."
            )
    texts = [label for kind, label in an_example.items() if issubclass(kind, str)]
    others = [label for kind, label in an_example.items() if not issubclass(kind, str)]
    if texts and others:
        raise TypeError(
            f"y holds both text and numbers, such as {texts[0]!r} and {others[0]!r}. Turn all "
            "classes into text, or all into numbers."
        )


def _as_plain(y: Any) -> Any:
    """Classes as NumPy has them, if they are in a column of a data frame's own types.

    scikit-learn would turn whole numbers and booleans of such types into floats.
    """
    series = nw.from_native(y, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and not isinstance(getattr(y, "dtype", None), np.dtype):
        y = y if series.null_count() else np.asarray(y)
    if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 and not _is_text(y):
        return _in_usual_type(y)
    return y


def _in_usual_type(labels: np.ndarray) -> np.ndarray:
    """Labels in the type of their kind, whatever held them: text, int64, bool or float64.

    The model file tells it, and so do predictions.
    """
    if labels.dtype.kind in "UT" or _is_text(labels):
        return labels.astype(object)
    if labels.dtype.kind in "iu":
        fits = len(labels) == 0 or labels.max() <= np.iinfo(np.int64).max
        return labels.astype(np.int64) if fits else labels
    if labels.dtype.kind == "f":
        return labels.astype(np.float64)
    types = set(map(type, labels)) if labels.dtype == object else {str}
    for common, kinds in ((np.bool_, (bool, np.bool_)), (np.int64, Integral), (np.float64, Real)):
        if all(issubclass(each, kinds) for each in types):
            try:
                return labels.astype(common)
            except OverflowError:
                break
    return labels


def _checked(y: Any, dtype: type[np.float64] | None) -> np.ndarray:
    try:
        checked: np.ndarray = check_array(
            y, ensure_2d=False, allow_nd=True, ensure_min_features=0, dtype=dtype, input_name="y"
        )
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"y holds text where numbers are needed ({error}); to predict classes, use a classifier"
        ) from error
    return checked


def find_classes(y: np.ndarray) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
    """Distinct classes of each output, sorted, and the number of each row's class."""
    if y.dtype.kind not in "biu" and not _is_text(y):
        check_classification_targets(y[:, 0] if y.shape[1] == 1 else y)
    encoded = [_distinct(column) for column in y.T]
    classes = tuple(_in_usual_type(distinct) for distinct, _ in encoded)
    _warn_of_many(max(map(len, classes)), len(y))
    return classes, np.stack([labels for _, labels in encoded], axis=1)


def _warn_of_many(n_classes: int, n_rows: int) -> None:
    """Say that a fit will take long, and what may be the cause."""
    if n_classes > MANY_CLASSES and n_rows < FEW_ROWS_EACH * n_classes:
        warnings.warn(
            f"y has {n_classes:,} classes and {n_rows / n_classes:.1f} rows of each on average. "
            "The time and memory of a fit grow with the number of classes. If y holds numbers, use "
            "a regressor; otherwise join rare classes.",
            UserWarning,
            stacklevel=2,
        )


def number_classes(y: np.ndarray, classes: Sequence[np.ndarray]) -> np.ndarray:
    """The number of each row's class among known ones."""
    labels = []
    for column, known in zip(y.T, classes, strict=True):
        given, numbers = _distinct(column)
        number_of = {label: number for number, label in enumerate(known.tolist())}
        unseen = [label for label in given.tolist() if label not in number_of]
        if unseen:
            raise ValueError(
                f"y holds classes that the tree was not fitted on: {unseen}; "
                f"it knows {known.tolist()}"
            )
        renumbered = np.array([number_of[label] for label in given.tolist()], dtype=np.int32)
        labels.append(renumbered[numbers])
    return np.column_stack(labels)


def _distinct(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct classes, sorted, and the number of each row's class."""
    low, high = (int(y.min()), int(y.max())) if y.dtype.kind in "iu" else (0, 2**63)
    if high - low < SMALL_RANGE and high < 2**62:
        # A small range of integers: mark the classes instead of sorting.
        shifted = y if low == 0 and y.dtype == np.int64 else np.subtract(y, low, dtype=np.int64)
        present = np.zeros(high - low + 1, dtype=bool)
        present[shifted[:FEW_ROWS]] = True
        if not present.all():
            present[shifted] = True
        classes = (np.flatnonzero(present) + low).astype(y.dtype)
        if present.all():
            return classes, shifted.astype(np.int32)
        number = np.cumsum(present, dtype=np.int32) - 1
        return classes, number[shifted]
    if y.dtype == object and _is_text(y):
        # Looked up, which takes less time than to sort.
        listed = y.tolist()
        distinct = sorted(set(listed))
        number_of = {label: number for number, label in enumerate(distinct)}
        numbers = np.fromiter(map(number_of.__getitem__, listed), np.int32, len(listed))
        return np.array(distinct, dtype=object), numbers
    classes, labels = np.unique(y, return_inverse=True)
    return classes, labels.astype(np.int32)


def _is_text(y: np.ndarray) -> bool:
    """Whether all labels are strings, which can be nothing but classes."""
    return y.dtype.kind in "UT" or (y.dtype == object and set(map(type, y.flat)) == {str})
