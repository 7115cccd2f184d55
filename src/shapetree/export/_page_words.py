"""Texts about a node that the page shows, in the library's own words.

The page puts numbers into words only where a visitor makes new ones, by typing in a row.
"""

from __future__ import annotations

from shapetree.data._moments import DateKind
from shapetree.export._shapes import Json, region_data, shape_data
from shapetree.tree._digits import percent
from shapetree.tree._regions import Bound, Region, Segment
from shapetree.tree._view import NodeView, TreeView
from shapetree.tree._words import (
    branch_words,
    interval_words,
    lower_bound,
    number_and_spread,
    outcome_words,
    predicted_words,
    region_words,
    segment_words,
    share_words,
    unseen_words,
    upper_bound,
    weighted_sum,
)


def outcome_data(view: TreeView, node: NodeView, trained: TreeView) -> Json:
    """What a node predicts; sentences on single rows are about the training rows."""
    counted = trained.nodes[node.number]
    words: Json = {
        "outcome": outcome_words(view, node, is_brief=True),
        "trained": outcome_words(trained, counted),
        "flipped": outcome_words(trained, counted, is_brief=True),
    }
    share = None
    if view.classes is None:
        words["numberWords"], words["spreadWords"] = number_and_spread(node)
    else:
        predicted = view.classes[0].index(node.prediction[0])
        if node.row_shares is not None:
            share = float(node.row_shares[0, predicted])
        words["share"] = share_words(view, node, is_brief=True)
        # Where there is no room for more.
        words["shortShare"] = "no rows" if not node.n_rows or share is None else percent(share)
        words["besideShare"] = predicted_words(view, node, predicted)
    words |= {
        "sure": interval_words(node, share),
        "unseen": unseen_words(view, node),
        "stability": view.stability_words(node),
    }
    if view.stability is not None and not node.is_leaf:
        words["mark"] = view.stability.mark(node.number)
    return {name: text for name, text in words.items() if text is not None}


def shape_words(node: NodeView) -> Json:
    """A node's shape function with words for its branches, parts and bounds."""
    data = shape_data(node)
    data["branchWords"] = [branch_words(node, branch) for branch in range(len(node.children))]
    for segment, part in zip(node.segments, data.get("segments", ()), strict=True):
        part |= {"words": segment_words(segment, node.features[0])}
        part |= _bounds(segment, node.features[0].date)
    for region, part in zip(node.regions, data.get("regions", ()), strict=True):
        part["words"] = region_words(region, node)
    if node.regions:
        data["joined"] = [_joined(region, node) for region in node.joined_regions]
    return data


def _joined(region: Region, node: NodeView) -> Json:
    data = region_data(region, node) | {"words": region_words(region, node)}
    names = tuple(feature.name for feature in node.features)
    for bound, part in zip(region.bounds, data["bounds"], strict=True):
        part |= {"quantity": weighted_sum(bound.weights, names), **_bounds(bound)}
    return data


def _bounds(part: Segment | Bound, date: DateKind | None = None) -> Json:
    """Sign and number, or date, of either bound, where there is one."""
    if part.categories is not None:
        return {}
    bounds = {"lower": lower_bound(part.low, date=date), "upper": upper_bound(part.high, date=date)}
    return {name: bound for name, bound in bounds.items() if bound is not None}
