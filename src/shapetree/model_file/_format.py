"""What a model file holds, and what reading and writing agree on."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from shapetree.data._moments import DateKind
from shapetree.data._table import FeatureInfo
from shapetree.tree._fitted import FittedTree
from shapetree.tree._fitted_forest import FittedForest

FORMAT = "shapetree-model"
VERSION = 1
# What a file may hold, and the estimators of each kind: for classes, and for numbers.
KINDS = {
    "tree": ("ShapeTreeClassifier", "ShapeTreeRegressor"),
    "forest": ("ShapeForestClassifier", "ShapeForestRegressor"),
}
# Criteria that trees of classes, and those of numbers, may have been grown by.
OF_CLASSES, OF_NUMBERS = ("gini", "entropy"), ("squared_error", "absolute_error")
# What features of numbers hold, and which dates some of them are; the rest are categories.
NUMBER_KINDS = ("number", "whole")
DATE_KINDS: dict[DateKind, str] = {"day": "date", "time": "time", "utc": "utc"}
# Floating-point numbers that JSON has no name for.
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
INT32 = 2**31 - 1
LABEL_TYPES = re.compile(r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U[1-9]\d{0,6}|\|O", re.ASCII)

# Memory of class labels: in any case, and for each byte of the file.
LABEL_BYTES, LABEL_BYTES_PER_BYTE = 2**20, 8
# Trees of a forest, each of which takes memory even if it is a single leaf: in any case, and bytes
# of the file for each further one.
MOST_TREES, BYTES_PER_TREE = 1_000, 250

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class.
    parameters : dict
        Parameters of the estimator.
    fitted : FittedTree or FittedForest
    """

    estimator: str
    parameters: dict[str, Any]
    fitted: FittedTree | FittedForest


@dataclass(frozen=True)
class Frame:
    """What the nodes of a model must fit."""

    features: tuple[FeatureInfo, ...]
    n_outputs: int
    n_classes: list[int] | None
    n_target_cells: int | None
    has_sketches: bool
    steps: int = 1

    @property
    def n_values(self) -> int:
        return 1 if self.n_classes is None else max(self.n_classes)

    @property
    def n_groups(self) -> int:
        """Columns of a density's counts."""
        return 1 if self.n_classes is None else self.n_classes[0]

    @property
    def n_counts(self) -> int:
        """Counts of a node's sketch."""
        return self.n_groups if self.n_target_cells is None else self.n_target_cells


def max_label_bytes(n_bytes: int) -> int:
    """Most memory that the class labels of a file of some size may take.

    Texts of NumPy's are all as long as the longest may be, whatever the file says of them.
    """
    return LABEL_BYTES + LABEL_BYTES_PER_BYTE * n_bytes


def max_trees(n_bytes: int) -> int:
    """Most trees of a forest in a file of some size."""
    return MOST_TREES + n_bytes // BYTES_PER_TREE
