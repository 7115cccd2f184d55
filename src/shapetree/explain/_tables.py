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
    view.require_counts("this table")
    rows = [_segment_row(view, node, segment) for segment in node.segments]
    rows += [
        {"region": region_words(region, node), "branch": region.branch}
        for region in node.joined_regions
    ]
    if node.saw_missing:
        rows.append(_missing_row(view, node))
    for row in rows:
        child = view.nodes[node.children[row["branch"]]]
        row |= {"child": child.number, "child_rows": child.n_rows}
        if child.sure is not None:
            row |= {"child_low": child.sure.low, "child_high": child.sure.high}
        row["leads_to"] = _destination(view, child)
    return pd.DataFrame([{"feature": node.feature_words, **row} for row in rows])


def _splitting_node(view: TreeView, number: int) -> NodeView:
    splitting = [node.number for node in view.nodes if not node.is_leaf]
    if not is_index(number) or number not in splitting:
        nodes = ", ".join(map(str, splitting[:20])) + (", …" if len(splitting) > 20 else "")
        which = f"nodes that have one are {nodes}" if splitting else "the tree is a single leaf"
        raise ValueError(f"node {number!r} has no shape function; {which}")
    return view.nodes[number]


def _segment_row(view: TreeView, node: NodeView, segment: Segment) -> dict[str, Any]:
    (feature,) = node.features
    row: dict[str, Any] = {"low": segment.low, "high": segment.high}
    if segment.categories is not None:
        row = {"categories": segment.categories}
    elif feature.is_date:
        row = {"dates": segment_words(segment, feature)}
    row["branch"] = segment.branch
    density = node.density
    if density is not None:
        cells = _cells(node, segment)
        total = None if density.totals is None else float(density.totals[cells].sum())
        row |= _own_rows(view, node, segment.branch, density.counts[cells].sum(axis=0), total)
    return row


def _cells(node: NodeView, segment: Segment) -> list[int]:
    """Cells of a node's density in a segment: every threshold is an edge of the cells."""
    assert node.density is not None
    edges = node.density.edges
    if edges is not None:
        first, last = edges.searchsorted([segment.low, segment.high]).tolist()
        return list(range(first, min(last, len(edges) - 1)))
    (feature,) = node.features
    assert feature.categories is not None
    return [feature.categories.index(category) for category in segment.categories or ()]


def _own_rows(
    view: TreeView, node: NodeView, branch: int, counts: np.ndarray, total: float | None
) -> dict[str, Any]:
    """Some of a node's rows: their number, and how many are what their branch predicts."""
    n_rows = int(counts.sum())
    if view.classes is None:
        mean = np.nan if total is None or not n_rows else total / n_rows
        return {"n_rows": n_rows, "mean": mean}
    predicted = int(view.nodes[node.children[branch]].value[0].argmax())
    return {"n_rows": n_rows, "share": counts[predicted] / n_rows if n_rows else np.nan}


def _missing_row(view: TreeView, node: NodeView) -> dict[str, Any]:
    """What becomes of missing values; the columns of the segments stay empty."""
    row: dict[str, Any] = {"low": np.nan, "high": np.nan}
    if node.regions:
        row = {"region": "missing"}
    elif node.features[0].is_categorical:
        row = {"categories": None}
    elif node.features[0].is_date:
        row = {"dates": "missing"}
    assert node.missing_branch is not None
    row["branch"] = node.missing_branch
    density = node.density
    if density is not None:
        row |= _own_rows(view, node, node.missing_branch, density.missing, density.missing_total)
    return row


def _destination(view: TreeView, child: NodeView) -> str:
    if child.is_leaf:
        return outcome_words(view, child)
    return child.feature_words
