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
    rows = [
        {**_values(node, segment), **_own_rows(view, node, segment.branch, _cells(node, segment))}
        for segment in node.segments
    ]
    rows += [
        {"region": region_words(region, node), "branch": region.branch}
        for region in node.joined_regions
    ]
    if node.saw_missing:
        assert node.missing_branch is not None
        rows.append({**_values(node, None), **_own_rows(view, node, node.missing_branch, None)})
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


def _values(node: NodeView, segment: Segment | None) -> dict[str, Any]:
    """The values of a segment, or of missing ones, for which its columns stay empty."""
    if node.regions:
        return {"region": "missing"}
    (feature,) = node.features
    if feature.is_categorical:
        return {"categories": None if segment is None else segment.categories}
    if feature.is_date:
        return {"dates": "missing" if segment is None else segment_words(segment, feature)}
    ends = (np.nan, np.nan) if segment is None else (segment.low, segment.high)
    return dict(zip(("low", "high"), ends, strict=True))


def _cells(node: NodeView, segment: Segment) -> list[int]:
    """Cells of a node's density in a segment: every threshold is an edge of the cells."""
    (feature,) = node.features
    if segment.categories is not None:
        assert feature.categories is not None
        return [feature.categories.index(category) for category in segment.categories]
    if node.density is None or node.density.edges is None:
        return []
    edges = node.density.edges
    first, last = edges.searchsorted([segment.low, segment.high]).tolist()
    return list(range(first, min(last, len(edges) - 1)))


def _own_rows(
    view: TreeView, node: NodeView, branch: int, cells: list[int] | None
) -> dict[str, Any]:
    """A branch, how many rows go there from some cells, or for want of a value, and their share."""
    density = node.density
    if density is None:
        return {"branch": branch}
    counts, total = density.missing, density.missing_total
    if cells is not None:
        counts = density.counts[cells].sum(axis=0)
        total = None if density.totals is None else float(density.totals[cells].sum())
    n_rows = int(counts.sum())
    row = {"branch": branch, "n_rows": n_rows}
    if view.classes is None:
        return row | {"mean": np.nan if total is None or not n_rows else total / n_rows}
    predicted = int(view.nodes[node.children[branch]].value[0].argmax())
    return row | {"share": counts[predicted] / n_rows if n_rows else np.nan}


def _destination(view: TreeView, child: NodeView) -> str:
    if child.is_leaf:
        return outcome_words(view, child)
    return child.feature_words
