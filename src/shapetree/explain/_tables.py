"""A node's shape function as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from shapetree.data._names import is_index
from shapetree.tree._regions import Segment
from shapetree.tree._view import NodeView, TreeView
from shapetree.tree._words import outcome_words, region_words, segment_words

if TYPE_CHECKING:
    import pandas as pd


def shape_table(view: TreeView, number: int) -> pd.DataFrame:
    """A node's shape function as a pandas DataFrame, with one row for each segment or region."""
    import pandas as pd

    node = _splitting_node(view, number)
    rows = [_segment_row(node, segment) for segment in node.segments]
    rows += [
        {"region": region_words(region, node), "branch": region.branch}
        for region in node.joined_regions
    ]
    if node.saw_missing:
        rows.append(_missing_row(node))
    for row in rows:
        child = view.nodes[node.children[row["branch"]]]
        row |= {"child": child.number, "leads_to": _destination(view, child)}
    return pd.DataFrame([{"feature": node.feature_words, **row} for row in rows])


def _splitting_node(view: TreeView, number: int) -> NodeView:
    splitting = [node.number for node in view.nodes if not node.is_leaf]
    if not is_index(number) or number not in splitting:
        nodes = ", ".join(map(str, splitting[:20])) + (", …" if len(splitting) > 20 else "")
        which = f"nodes that have one are {nodes}" if splitting else "the tree is a single leaf"
        raise ValueError(f"node {number!r} has no shape function; {which}")
    return view.nodes[number]


def _segment_row(node: NodeView, segment: Segment) -> dict[str, Any]:
    (feature,) = node.features
    row: dict[str, Any] = {"low": segment.low, "high": segment.high}
    if segment.categories is not None:
        row = {"categories": segment.categories}
    elif feature.is_date:
        row = {"dates": segment_words(segment, feature)}
    row["branch"] = segment.branch
    if node.density is not None:
        row["n_rows"] = _n_rows(node, segment)
    return row


def _n_rows(node: NodeView, segment: Segment) -> int:
    """Rows in a segment: every threshold is an edge of the density's cells."""
    assert node.density is not None
    counts, edges = node.density.n_rows, node.density.edges
    if edges is not None:
        first, last = edges.searchsorted([segment.low, segment.high])
        return int(counts[first:last].sum())
    (feature,) = node.features
    assert feature.categories is not None
    assert segment.categories is not None
    return int(sum(counts[feature.categories.index(c)] for c in segment.categories))


def _missing_row(node: NodeView) -> dict[str, Any]:
    """What becomes of missing values; the columns of the segments stay empty."""
    row: dict[str, Any] = {"low": np.nan, "high": np.nan}
    if node.regions:
        row = {"region": "missing"}
    elif node.features[0].is_categorical:
        row = {"categories": None}
    elif node.features[0].is_date:
        row = {"dates": "missing"}
    row["branch"] = node.missing_branch
    if node.density is not None:
        row["n_rows"] = int(node.density.missing.sum())
    return row


def _destination(view: TreeView, child: NodeView) -> str:
    if child.is_leaf:
        return outcome_words(view, child)
    return child.feature_words
