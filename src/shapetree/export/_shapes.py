"""Shape functions as the page's JavaScript reads them: categories by number, no infinite limits."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.tree._regions import Bound, Region, Segment
from shapetree.tree._view import NodeView

Json = dict[str, Any]


def shape_data(node: NodeView) -> Json:
    """The segments of a node that splits on one feature, or the regions of a pair."""
    if node.segments:
        (feature,) = node.features
        return {"segments": [_segment(segment, feature) for segment in node.segments]}
    return {
        "regions": [region_data(region, node) for region in node.regions],
        "missingCodes": [
            codes_of(categories, feature)
            for categories, feature in zip(node.missing_categories, node.features, strict=True)
        ],
    }


def region_data(region: Region, node: NodeView) -> Json:
    """A region of a pair."""
    bounds = [_bound(bound, node.features) for bound in region.bounds]
    return {"branch": region.branch, "bounds": bounds}


def codes_of(categories: Iterable[Level], feature: FeatureInfo) -> list[int]:
    """Numbers of categories."""
    known = feature.categories or ()
    return [known.index(category) for category in categories]


def _segment(segment: Segment, feature: FeatureInfo) -> Json:
    if segment.categories is not None:
        return {"branch": segment.branch, "codes": codes_of(segment.categories, feature)}
    return {"branch": segment.branch, **_limits(segment)}


def _bound(bound: Bound, features: tuple[FeatureInfo, ...]) -> Json:
    weights = {"weights": list(bound.weights)}
    if bound.categories is None or bound.side is None:
        return weights | _limits(bound)
    return weights | {"codes": codes_of(bound.categories, features[bound.side])}


def _limits(part: Segment | Bound) -> Json:
    """Finite limits; JavaScript takes others for infinite."""
    limits = {"low": part.low, "high": part.high}
    return {name: limit for name, limit in limits.items() if math.isfinite(limit)}
