"""A row to mark in a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from shapetree.data._missing import is_missing
from shapetree.data._moments import DATES, seconds_of
from shapetree.data._table import FeatureInfo, encode_table
from shapetree.drawing._ticks import number
from shapetree.plot._text_width import clean
from shapetree.tree._digits import exact
from shapetree.tree._fitted import FittedTree
from shapetree.tree._predictor import leaves_of
from shapetree.tree._view import TreeView
from shapetree.tree._words import category_name

# Characters of a date and its time in minutes, which is as much as there is room for.
MINUTES = len("2024-12-31 23:59")


@dataclass(frozen=True)
class MarkedRow:
    """A row that a picture marks: the nodes it passes, and its values by feature name."""

    nodes: frozenset[int]
    values: dict[str, Any]

    def words(self, feature: FeatureInfo) -> str:
        """Its value of a feature."""
        value = self.values[feature.name]
        if is_missing(value):
            return "missing"
        if feature.is_date:
            return exact(value, feature.date)[:MINUTES]
        if feature.is_categorical:
            return clean(category_name(value))
        return number(float(value), 4)

    def lacks(self, feature: FeatureInfo) -> bool:
        """Whether it has no value of a feature that the tree knows."""
        value = self.values[feature.name]
        is_unknown = feature.categories is not None and value not in feature.categories
        return is_unknown or is_missing(value)


def read_row(fitted: FittedTree, view: TreeView, row: Any, node: int) -> MarkedRow | None:
    """Find a row's values and the nodes it passes; `node` must be one of them.

    The row is an array-like, a table of one row, a mapping or a Series. The view is one of the same
    tree, whose names may be others.
    """
    if row is None:
        return None
    values = _values(row, fitted)
    cells = np.empty((1, len(values)), dtype=object)
    cells[0] = values
    table = encode_table(cells, fitted.features, fitted.tree.used_features)
    path = fitted.tree.path_to(int(leaves_of(fitted.tree, table, 1)[0]))
    if node not in path:
        raise ValueError(
            f"row does not reach node {node}; it passes the nodes {', '.join(map(str, path))}"
        )
    shown = [feature.name for feature in view.features]
    marked = [
        seconds_of(value) if isinstance(value, DATES) and not is_missing(value) else value
        for value in values
    ]
    return MarkedRow(frozenset(path), dict(zip(shown, marked, strict=True)))


def _values(row: Any, fitted: FittedTree) -> list[Any]:
    """The row's values in the order of the features, by the names in training or those shown."""
    names, shown = set(fitted.feature_names), set(fitted.names.features or ())
    native = nw.from_native(row, pass_through=True, allow_series=True)
    if isinstance(row, Mapping):
        return _by_name(list(row), list(row.values()), fitted)
    if isinstance(native, nw.DataFrame):
        if native.shape[0] != 1:
            raise ValueError(f"row must be one row, got a table of {native.shape[0]} rows")
        return _by_name(native.columns, native.row(0), fitted)
    if isinstance(native, nw.Series):
        values = native.to_list()
        labels = list(getattr(row, "index", []))
        if set(map(str, labels)) in (names, shown):
            return _by_name(labels, values, fitted)
    else:
        values = _from_array(row)
    if len(values) != len(fitted.feature_names):
        raise ValueError(
            f"row has {len(values)} values, but the tree was fitted on "
            f"{len(fitted.feature_names)} features; give one value for each"
        )
    return values


def _by_name(labels: Any, cells: Any, fitted: FittedTree) -> list[Any]:
    values = dict(zip(map(str, labels), cells, strict=True))
    names: Sequence[str] = fitted.feature_names
    shown = fitted.names.features or ()
    if values.keys() != set(names) and values.keys() == set(shown):
        names = shown
    lacking = [name for name in names if name not in values]
    if lacking:
        raise ValueError(f"row has no value for the feature {lacking[0]!r}; give one, or None")
    unknown = [name for name in values if name not in set(names)]
    if unknown:
        raise ValueError(f"row has a value for {unknown[0]!r}, which is not a feature of the tree")
    return [values[name] for name in names]


def _from_array(row: Any) -> list[Any]:
    if isinstance(row, np.ma.MaskedArray):
        row = np.ma.filled(row.astype(object), None)
    array = row if isinstance(row, np.ndarray) else np.asarray(row, dtype=object)
    if array.ndim == 2 and len(array) == 1:
        array = array[0]
    if array.ndim != 1:
        raise ValueError(
            f"row must hold one value for each feature, got an array of shape {array.shape}"
        )
    values: list[Any] = array.tolist()
    return values
