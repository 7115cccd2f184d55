"""A row's values as Python's."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapetree.data._missing import MISSING_CODE, is_missing
from shapetree.data._table import FeatureInfo


def python_values(column: np.ndarray, feature: FeatureInfo) -> list[Any]:
    """A column's numbers or categories; None where one is missing or new."""
    if feature.categories is None:
        return [None if is_missing(value) else value for value in column.astype(float).tolist()]
    categories = feature.categories
    return [None if code == MISSING_CODE else categories[code] for code in column.tolist()]
