"""A tree as an interactive page: one HTML file that needs neither a network nor a server.

`page.html` is the page without a tree, built from `page/` at the project's root. This module adds
the tree as JSON, in a form of its own: features, categories and classes by number. What the page
predicts with is exact; what it only draws is rounded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from shapetree._files import PathLike, write_file
from shapetree._threads import effective_threads
from shapetree.data._columns import Level
from shapetree.data._moments import DateKind
from shapetree.data._names import is_index
from shapetree.data._table import FeatureInfo
from shapetree.drawing._palette import NUMBERS, branch_colour, class_colour
from shapetree.drawing._plane_map import Map, MapAxis, check_swap, map_of
from shapetree.drawing._scales import check_scale, drawn_density, scale_of, target_scale
from shapetree.export._js import Json, codes_of, region_data, shape_data
from shapetree.tree._digits import percent
from shapetree.tree._evaluation import score_words
from shapetree.tree._fitted import FittedForest, FittedTree
from shapetree.tree._from_estimator import (
    HoldsModel,
    HoldsTree,
    fitted_model,
    fitted_tree,
    rows_for_tree,
)
from shapetree.tree._predictor import leaves_of
from shapetree.tree._regions import Bound, Region
from shapetree.tree._sketch import Density
from shapetree.tree._view import NodeView, TreeView, view_of
from shapetree.tree._words import (
    branch_words,
    category_name,
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

TEMPLATE = Path(__file__).with_name("page.html")
DEFAULT_TITLE = "Shape tree"

# Characters that could end or open an element, or a line of an old script, inside JSON.
UNSAFE = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

# Significant digits of values that are only drawn, and decimals of places from 0 to 1.
DRAWN_DIGITS = 6
PLACE_DECIMALS = 5
MAX_TICKS = 6  # that an axis has, where there is room


def export_html(
    estimator: HoldsModel,
    path: PathLike | None = None,
    X: Any = None,
    y: Any = None,
    *,
    tree: int | None = None,
    taught: HoldsTree | None = None,
    title: str | None = None,
    scale: str = "auto",
    swap: bool = False,
) -> str:
    """Write a fitted tree as an interactive page.

    The page is one HTML file that works offline. It shows every node's shape function and how the
    rows are spread over it; lets you fold, search and print the tree; and predicts and explains
    any values you type in. Of a forest, it shows one tree, the importances of the features and, if
    it is given, a tree that the forest has taught.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor, or a forest of them
        A fitted estimator with one target.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.
    X, y : table and targets, optional
        Rows to show instead of the training rows, for example a test set. The tree stays the same.
        A forest needs them, as its trees do not keep how rows are spread.
    tree : int, optional
        Number of the forest's tree to show, counted from 0; by default that whose predictions for
        `X` are nearest to those of the forest.
    taught : ShapeTreeClassifier or ShapeTreeRegressor, optional
        A tree that was fitted with the forest as its `teacher`. The page then shows it first.
    title : str, optional
        Title of the page.
    scale : {"auto", "linear", "log", "quantile"}, default="auto"
        Axes of numeric features; see `plot_tree`.
    swap : bool, default=False
        Whether to swap the axes of pairs; see `plot_tree`.

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
    fitted = fitted_model(estimator)
    check_scale(scale)
    check_swap(swap)
    if isinstance(fitted, FittedForest):
        heading = "Forest of shape trees" if title is None else str(title)
        rows = rows_for_tree(estimator, X)
        of_taught = None if taught is None else fitted_tree(taught)
        data = _forest_data(fitted, rows, y, tree, of_taught, heading, scale, swap)
    else:
        if tree is not None or taught is not None:
            given = "tree" if taught is None else "taught"
            raise ValueError(f"{given} is only for the page of a forest; leave it out")
        heading = DEFAULT_TITLE if title is None else str(title)
        data = _tree_data(fitted, rows_for_tree(estimator, X), y, heading, scale, swap)
    page = _fill(TEMPLATE.read_text(encoding="utf-8"), heading, data)
    write_file(path, page, "the page")
    return page


def _tree_data(fitted: FittedTree, X: Any, y: Any, title: str, scale: str, swap: bool) -> Json:
    """Everything that the page shows of one tree, with its training rows or others."""
    view = view_of(fitted, X, y)
    if view.n_outputs > 1:
        raise ValueError(
            f"a page shows one target, but this tree has {view.n_outputs}; use export_text or "
            "explain, or fit a tree for each target"
        )
    view.require_counts("a page")
    # Sentences are about the training rows.
    trained = view if view.is_training else view_of(fitted)
    return {
        "title": title,
        "classes": None if view.classes is None else [str(label) for label in view.classes[0]],
        "features": [
            _feature(feature, float(deviation), limits)
            for feature, deviation, limits in zip(
                view.features, view.scales, view.ranges.tolist(), strict=True
            )
        ],
        "colours": _colours(view),
        "targets": None if view.target_edges is None else _targets(view.target_edges),
        "isTraining": view.is_training,
        "target": view.target_name,
        "scores": view.scores_in_words(),
        "predictedWord": view.predicted_word,
        "whySingleLeaf": view.single_leaf_words,
        "nodes": [_node(node, view, trained, scale, swap) for node in view.nodes],
    }


def _forest_data(
    forest: FittedForest,
    X: Any,
    y: Any,
    number: int | None,
    taught: FittedTree | None,
    title: str,
    scale: str,
    swap: bool,
) -> Json:
    """What the page shows of a forest: the taught tree if there is one, and one of its trees."""
    if X is None or y is None:
        raise ValueError(
            "the page of a forest needs X and y, as its trees do not keep how rows are spread; "
            "give the rows of training, or others"
        )
    n_trees = len(forest.trees)
    if number is not None and not (is_index(number) and 0 <= number < n_trees):
        raise ValueError(f"tree must be a number from 0 to {n_trees - 1}, got {number!r}")
    if taught is not None and (
        taught.feature_names != forest.feature_names
        or [each.tolist() for each in taught.classes or ()]
        != [each.tolist() for each in forest.classes or ()]
    ):
        raise ValueError("taught must have the features and the classes of the forest")
    table = forest.read_table(X, "this forest", forest.used_features)
    n_threads = effective_threads(None)
    chosen = forest.nearest_tree(table, n_threads) if number is None else int(number)
    trees = [] if taught is None else [("taught", "Taught tree", taught)]
    trees.append(("tree", f"Tree {chosen}", forest.fitted_tree(chosen)))
    mean = forest.means(table, n_threads)
    shown = []
    for key, name, fitted in trees:
        own = fitted.read_table(X, "this tree", fitted.used_features)
        said = fitted.tree.value[leaves_of(fitted.tree, own, n_threads)]
        model = _tree_data(fitted, X, y, title, scale, swap)
        model["scores"].append(_agreement_words(said[:, 0], mean[:, 0], forest.classes is not None))
        shown.append({"key": key, "name": name, "model": model})
    features = forest.names.name_features(forest.features, with_units=False)
    shares = forest.importances()
    importances = [
        [features[j].name, round(float(shares[j]), PLACE_DECIMALS)]
        for j in np.argsort(-shares, kind="stable").tolist()
    ]
    return {"forest": {"trees": n_trees, "importances": importances}, "shown": shown}


def _agreement_words(said: np.ndarray, mean: np.ndarray, has_classes: bool) -> str:
    """How far a tree predicts what the forest does."""
    if has_classes:
        same = float((said.argmax(axis=1) == mean.argmax(axis=1)).mean())
        return f"agrees with the forest on {score_words(True, same).removeprefix('accuracy ')}"
    off, spread = said[:, 0] - mean[:, 0], mean[:, 0] - mean[:, 0].mean()
    total = float(spread @ spread)
    score = 1.0 - float(off @ off) / total if total > 0 else float(not off.any())
    return f"{score_words(False, score)} for what the forest predicts"


# --- from the view to JSON ---


def _colours(view: TreeView) -> Json:
    """The colours of all branches and classes, and some from the least to the greatest target."""
    n_branches = max(len(node.children) for node in view.nodes)
    n_classes = 0 if view.classes is None else len(view.classes[0])
    return {
        "branches": [branch_colour(branch) for branch in range(n_branches)],
        "classes": [class_colour(number) for number in range(n_classes)],
        "numbers": list(NUMBERS),
    }


def _targets(edges: np.ndarray) -> Json:
    """The cells of a numeric target, and the range that colours tell apart."""
    known = target_scale(edges)
    return {
        "edges": _drawn(edges),
        "low": known.low,
        "high": known.high,
        "labels": list(known.labels),
    }


def _feature(feature: FeatureInfo, scale: float, limits: list[float]) -> Json:
    if feature.categories is None:
        range_ = None if math.isnan(limits[0]) else [_finite(limit) for limit in limits]
        numbers = {"whole": feature.is_whole, "scale": scale, "range": range_}
        date = {"date": feature.date} if feature.is_date else {}
        return {"name": feature.name, **numbers, **date}
    return {
        "name": feature.name,
        "categories": [category_name(category) for category in feature.categories],
        "values": [_category_value(category) for category in feature.categories],
    }


def _category_value(category: Level) -> str | bool | float | None:
    """A category as a value of JSON."""
    return category if isinstance(category, str | bool) else _finite(category)


def _node(node: NodeView, view: TreeView, trained: TreeView, scale: str, swap: bool) -> Json:
    assert node.counts is not None
    shared = {
        "parent": node.parent,
        "rows": node.n_rows,
        "value": node.value[0].tolist(),
        "counts": node.counts.tolist(),
        **outcome_data(view, node, trained),
    }
    if view.classes is None:
        shared["deviation"] = _finite(trained.nodes[node.number].deviation)
    else:
        shared["predicted"] = int(node.value[0].argmax())
    if node.is_leaf:
        return shared
    return {
        **shared,
        "features": list(node.feature_numbers),
        "children": list(node.children),
        "missingBranch": node.missing_branch,
        "sawMissing": node.saw_missing,
        **shape_words(node),
        **_drawing(node, scale, swap),
    }


def _drawing(node: NodeView, scale: str, swap: bool) -> Json:
    """What is drawn behind a shape function."""
    if node.density is None:
        assert node.scatter is not None
        return {"plane": _plane(map_of(node, swap), node.scatter.n_missing)}
    if node.density.edges is None:
        return {"density": _density(node.density), "isOrdered": node.features[0].is_ordered}
    return {"density": _density(drawn_density(node)) | _axis_of(node, scale)}


def _axis_of(node: NodeView, scale: str) -> Json:
    """Where cells and numbers lie on the axis of an ordered feature, and what is written there."""
    axis = scale_of(node, scale)
    return {
        # A moment has more digits than can be left out.
        "edges": _drawn(axis.edges) if axis.date is None else axis.edges.tolist(),
        "scale": axis.kind,
        "positions": axis.positions.round(PLACE_DECIMALS).tolist(),
        "breaks": [round(place, PLACE_DECIMALS) for place in axis.breaks],
        "thresholds": [
            # The last number is that of the cell above.
            [round(axis.place(threshold), PLACE_DECIMALS), label, int(cell)]
            for threshold, label, cell in zip(
                axis.thresholds,
                axis.threshold_labels,
                np.searchsorted(axis.edges, axis.thresholds),
                strict=True,
            )
        ],
        "ends": _labels(axis.end_labels),
        "isValues": axis.values is not None,
        "ticks": _labels(axis.ticks(MAX_TICKS)),
    }


def _labels(labels: list[tuple[float, str]]) -> list[list[Any]]:
    return [[round(place, PLACE_DECIMALS), label] for place, label in labels]


def _density(density: Density) -> Json:
    drawn: Json = {"missing": density.missing.tolist()}
    if density.totals is None:
        return drawn | {"counts": [_sparse(cell) for cell in density.counts]}
    counts = density.counts[:, 0]
    n_missing = int(density.missing[0])
    return drawn | {
        "missingMean": _drawn_number((density.missing_total or 0.0) / max(n_missing, 1)),
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


def _plane(drawn: Map, n_missing: int) -> Json:
    return {
        "sides": list(drawn.sides),
        "axes": [
            _axis(axis, feature) for axis, feature in zip(drawn.axes, drawn.features, strict=True)
        ],
        "line": round(drawn.line_width, 2),
        "areas": [[_in_plane(loop) for loop in loops] for loops in drawn.areas],
        "points": _in_plane(drawn.points.tolist()),
        "targets": _drawn(drawn.targets),
        "missing": n_missing,
    }


def _in_plane(points: Sequence[Sequence[float]]) -> list[list[float]]:
    """Places from 0 to 1."""
    return [[round(value, PLACE_DECIMALS) for value in point] for point in points]


def _axis(axis: MapAxis, feature: FeatureInfo) -> Json:
    limits = {"low": axis.low, "high": axis.high}
    if axis.categories is None:
        return limits | {"ticks": _labels(axis.ticks(MAX_TICKS)), "bends": _in_plane(axis.bends)}
    return limits | {"codes": codes_of(axis.categories, feature)}


def _drawn(values: Any) -> list[Any] | None:
    return None if values is None else [_drawn_number(float(value)) for value in values]


def _drawn_number(value: float) -> float | int | None:
    """A number that is only drawn, in few digits; without a point if it is whole."""
    if not math.isfinite(value):
        return None
    number = float(f"{value:.{DRAWN_DIGITS}g}")
    return int(number) if number.is_integer() and abs(number) < 10**DRAWN_DIGITS else number


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


# --- texts about a node: the page makes new ones only of what a visitor types in ---


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


def _bounds(part: Bound, date: DateKind | None = None) -> Json:
    """Sign and number, or date, of either bound, where there is one."""
    if part.categories is not None:
        return {}
    bounds = {"lower": lower_bound(part.low, date=date), "upper": upper_bound(part.high, date=date)}
    return {name: bound for name, bound in bounds.items() if bound is not None}
