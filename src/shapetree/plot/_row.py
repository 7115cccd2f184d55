"""A row to mark in a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from shapetree.data._missing import is_missing
from shapetree.data._moments import DATES, seconds_of
from shapetree.data._table import encode_table
from shapetree.plot._scene import MarkedRow
from shapetree.tree._fitted import FittedTree
from shapetree.tree._predictor import leaves_of
from shapetree.tree._view import TreeView


def read_row(fitted: FittedTree, view: TreeView, row: Any, node: int) -> MarkedRow | None:
    """Find a row's values and the nodes it passes; `node` must be one of them.

    Parameters
    ----------
    fitted : FittedTree
    view : TreeView
        Of the same tree, whose names may be others.
    row : one-dimensional array-like, table of one row, mapping, Series or None
    node : int
    """
    if row is None:
        return None
    values = _values(row, fitted.feature_names, fitted.names.features or ())
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


def _values(row: Any, names: Sequence[str], shown: Sequence[str]) -> list[Any]:
    """The row's values in the order of the features, by the names in training or those shown."""
    if isinstance(row, Mapping):
        return _by_name({str(key): value for key, value in row.items()}, names, shown)
    native = nw.from_native(row, pass_through=True, allow_series=True)
    if isinstance(native, nw.DataFrame):
        if native.shape[0] != 1:
            raise ValueError(f"row must be one row, got a table of {native.shape[0]} rows")
        cells = dict(zip(map(str, native.columns), native.row(0), strict=True))
        return _by_name(cells, names, shown)
    if isinstance(native, nw.Series):
        values = native.to_list()
        labels = [str(label) for label in getattr(row, "index", [])]
        if set(labels) in (set(names), set(shown)):
            return _by_name(dict(zip(labels, values, strict=True)), names, shown)
    else:
        values = _from_array(row)
    if len(values) != len(names):
        raise ValueError(
            f"row has {len(values)} values, but the tree was fitted on {len(names)} features; "
            "give one value for each"
        )
    return values


def _by_name(values: dict[str, Any], names: Sequence[str], shown: Sequence[str]) -> list[Any]:
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
