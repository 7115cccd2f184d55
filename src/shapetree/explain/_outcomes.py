"""What a node predicts, in words, and a row's values as Python's."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapetree.data._missing import MISSING_CODE, is_missing
from shapetree.data._table import FeatureInfo
from shapetree.tree._view import NodeView, TreeView
from shapetree.tree._words import listing, percent, rounded


def outcome_words(view: TreeView, node: NodeView) -> str:
    """What a node predicts: each class and its share, or each number and its spread."""
    if view.classes is not None:
        return listing(
            [
                f"{label} ({percent(shares.max())})"
                for label, shares in zip(node.prediction, node.value, strict=True)
            ]
        )
    numbers = listing([rounded(number) for number in node.prediction])
    return numbers if node.deviation is None else f"{numbers} ± {rounded(node.deviation)}"


def python_values(column: np.ndarray, feature: FeatureInfo) -> list[Any]:
    """A column's numbers or categories; None where one is missing or new."""
    if feature.categories is None:
        return [None if is_missing(value) else value for value in column.astype(float).tolist()]
    categories = feature.categories
    return [None if code == MISSING_CODE else categories[code] for code in column.tolist()]
