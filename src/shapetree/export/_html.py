"""A tree as an interactive page: one HTML file that needs neither a network nor a server.

`page.html` is the page without a tree, built from `page/` at the project's root. This module adds
the tree as JSON, in a form of its own: features, categories and classes by number. What the page
predicts with is exact; what it only draws is rounded.
"""

from __future__ import annotations

import json
import math
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from shapetree._files import PathLike, write_file
from shapetree.data._table import FeatureInfo, Level
from shapetree.export._page_words import outcome_data, shape_words
from shapetree.export._shapes import Json, codes_of
from shapetree.tree._fitted import HoldsTree, fitted_tree
from shapetree.tree._sketch import Density
from shapetree.tree._view import NodeView, Plane, PlaneAxis, TreeView, view_of

TEMPLATE = Path(__file__).with_name("page.html")
DEFAULT_TITLE = "Shape tree"

# Characters that could end or open an element, or a line of an old script, inside JSON.
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

# Significant digits of values that are only drawn, and decimals of places from 0 to 1.
DRAWN_DIGITS = 6
PLACE_DECIMALS = 4


def export_html(
    estimator: HoldsTree,
    path: PathLike | None = None,
    X: Any = None,
    y: Any = None,
    *,
    title: str | None = None,
) -> str:
    """Write a fitted tree as an interactive page.

    The page is one HTML file that works offline. It shows every node's shape function and how the
    rows are spread over it; lets one fold, search and print the tree; and predicts and explains
    whatever values are typed in.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator with one target.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.
    X, y : table and targets, optional
        Rows to show instead of those of training, for example of a test set. The tree stays the
        same.
    title : str, optional
        Title of the page.

    Returns
    -------
    str
        The page.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.export import export_html
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
    >>> page = export_html(tree, title="Irises")
    >>> page[:15], "<title>Irises</title>" in page
    ('<!doctype html>', True)
    """
    fitted = fitted_tree(estimator)
    view = view_of(fitted, X, y)
    if view.n_outputs > 1:
        raise ValueError(
            f"a page shows one target, but this tree has {view.n_outputs}; use export_text or "
            "explain, or fit a tree for each target"
        )
    heading = DEFAULT_TITLE if title is None else str(title)
    trained = view if view.is_training else view_of(fitted)
    data = page_data(view, trained, heading)
    page = _fill(TEMPLATE.read_text(encoding="utf-8"), heading, data)
    if path is not None:
        write_file(path, page, "the page")
    return page


def page_data(view: TreeView, trained: TreeView, title: str) -> Json:
    """Everything that the page shows; sentences speak of the training rows."""
    return {
        "title": title,
        "classes": None if view.classes is None else [str(label) for label in view.classes[0]],
        "features": [
            _feature(feature, float(scale))
            for feature, scale in zip(view.features, view.scales, strict=True)
        ],
        "targetEdges": _drawn(view.target_edges),
        "isTraining": view.is_training,
        "score": _finite(view.score()),
        "predictedWord": view.predicted_word,
        "nodes": [_node(node, view, trained) for node in view.nodes],
    }


# --- from the view to JSON ---


def _feature(feature: FeatureInfo, scale: float) -> Json:
    if feature.categories is None:
        return {"name": feature.name, "whole": feature.is_whole, "scale": scale}
    return {
        "name": feature.name,
        "categories": [str(category) for category in feature.categories],
        "values": [_category_value(category) for category in feature.categories],
    }


def _category_value(category: Level) -> str | bool | float | None:
    """A category as a value that JSON knows."""
    return category if isinstance(category, str | bool) else _finite(category)


def _node(node: NodeView, view: TreeView, trained: TreeView) -> Json:
    assert node.counts is not None
    shared = {
        "parent": node.parent,
        "rows": node.n_rows,
        "value": node.value[0].tolist(),
        "counts": node.counts.tolist(),
        **outcome_data(view, node, trained),
    }
    if view.classes is not None:
        shared["predicted"] = int(node.value[0].argmax())
    if node.is_leaf:
        return shared
    return {
        **shared,
        "features": [_number_of(feature, view) for feature in node.features],
        "children": list(node.children),
        "missingBranch": node.missing_branch,
        "sawMissing": node.saw_missing,
        **shape_words(node),
        **_drawing(node),
    }


def _number_of(feature: FeatureInfo, view: TreeView) -> int:
    # By identity, as columns named 1 and "1" may look the same.
    return next(number for number, known in enumerate(view.features) if known is feature)


def _drawing(node: NodeView) -> Json:
    """What is drawn behind a shape function."""
    if node.density is not None:
        return {"density": _density(node.density)}
    assert node.plane is not None
    return {"plane": _plane(node.plane, node.features)}


def _density(density: Density) -> Json:
    drawn = {
        "edges": _drawn(density.edges),
        "positions": _places(density.positions),
        "missing": density.missing.tolist(),
    }
    if density.totals is None:
        return drawn | {"counts": [_sparse(cell) for cell in density.counts]}
    counts = density.counts[:, 0]
    return drawn | {
        "counts": counts.tolist(),
        "means": [
            _drawn_number(total / count) if count else None
            for total, count in zip(density.totals.tolist(), counts.tolist(), strict=True)
        ],
    }


def _sparse(counts: np.ndarray) -> list[int]:
    """Number and count of each class that a cell has, one after the other."""
    present = np.flatnonzero(counts)
    return np.stack([present, counts[present]], axis=1).ravel().tolist()


def _plane(plane: Plane, features: tuple[FeatureInfo, ...]) -> Json:
    return {
        "axes": [_axis(axis, feature) for axis, feature in zip(plane.axes, features, strict=True)],
        "polygons": [[_drawn(corner) for corner in polygon] for polygon in plane.polygons],
        "points": [_drawn(point) for point in plane.points],
        "targets": _drawn(plane.targets),
        "missing": plane.n_missing,
    }


def _axis(axis: PlaneAxis, feature: FeatureInfo) -> Json:
    limits = {"low": axis.low, "high": axis.high}
    if axis.categories is None:
        return limits
    return limits | {"codes": codes_of(axis.categories, feature)}


def _drawn(values: Any) -> list[Any] | None:
    return None if values is None else [_drawn_number(float(value)) for value in values]


def _drawn_number(value: float) -> float | int | None:
    """A number that is only drawn, in few digits; without a point if it is whole."""
    if not math.isfinite(value):
        return None
    number = float(f"{value:.{DRAWN_DIGITS}g}")
    return int(number) if number.is_integer() and abs(number) < 10**DRAWN_DIGITS else number


def _places(positions: np.ndarray | None) -> list[float] | None:
    return None if positions is None else positions.round(PLACE_DECIMALS).tolist()


def _finite(number: float | None) -> float | None:
    return None if number is None or not math.isfinite(number) else number


def _fill(template: str, title: str, data: Json) -> str:
    """The template with a tree; names can neither end nor open an element."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":")).translate(UNSAFE)
    # A lone surrogate is no character; nothing could write it.
    heading = escape(title.encode("utf-8", "replace").decode("utf-8"))
    before, rest = template.split("{{title}}")
    between, after = rest.split("{{data}}")
    return "".join([before, heading, between, text, after])
