"""A tree or a forest as a JavaScript module.

`module.js` is the function that the page predicts with, built from `page/` at the project's root.
This module adds the trees, in the form that the page has it in.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from shapetree._files import PathLike, write_file
from shapetree.data._columns import MAX_EXACT, Level
from shapetree.data._table import FeatureInfo
from shapetree.export._routes import remark, require_plain, used_features
from shapetree.tree._fitted import FittedForest, TreeOrForest
from shapetree.tree._from_estimator import HoldsModel, fitted_model
from shapetree.tree._regions import Bound, Region
from shapetree.tree._view import NodeView, TreeView, views_of

Json = dict[str, Any]

ROUTER = Path(__file__).with_name("module.js")

INTRODUCTION = """\
/**
 * A {what}, written by shapetree; it needs nothing else.
 *
 * A row is an object by feature name. A value that is null, NaN or not in the object is missing.
 */

"""


def export_js(estimator: HoldsModel, path: PathLike | None = None) -> str:
    """Write a fitted tree or forest as a JavaScript module that needs nothing else.

    The module exports ``predict(row)`` and, for classes, ``predictProba(row)``, which gives the
    probabilities of its ``classes``. ``leaf(row)`` gives the number of a row's leaf, as `apply`
    does, and ``reasons(row)`` the names of the features on the path to it. A row is an object by
    feature name; further entries are ignored. A value that is null, undefined, NaN or absent is
    missing. A date may be a ``Date``, or a number of seconds since 1970-01-01 00:00 UTC. Every row
    gets exactly what the estimator predicts, for several targets as an array. These are the
    functions that the page of `export_html` uses.

    The module of a forest has ``leaves(row)`` instead of ``leaf`` and ``reasons``: the numbers of a
    row's leaves in all trees.

    Parameters
    ----------
    estimator : ShapeTreeClassifier, ShapeTreeRegressor, ShapeForestClassifier or \
            ShapeForestRegressor
        A fitted estimator.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written. Its name should
        end with ".mjs", or with ".js" where modules are expected.

    Returns
    -------
    str
        The module.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.export import export_js
    >>> iris = load_iris(as_frame=True)
    >>> tree = ShapeTreeClassifier(max_depth=2).fit(iris.data, iris.target)
    >>> module = export_js(tree)
    >>> print(module[module.index("export") :])
    export const classes = data.classes[0];
    export const { predict, predictProba, leaf, reasons } = readTree(data);
    <BLANKLINE>
    """
    model = fitted_model(estimator)
    said = remark(model)
    comment = f"// It {said}.\n\n" if said else ""
    what = "forest of decision trees" if isinstance(model, FittedForest) else "decision tree"
    introduction = INTRODUCTION.replace("{what}", what)
    module = "".join(
        [introduction, comment, ROUTER.read_text(encoding="utf-8"), "\n", _ending(model)]
    )
    write_file(path, module, "the JavaScript module")
    return module


def _ending(model: TreeOrForest) -> str:
    """The trees, and what the module exports."""
    features = used_features(model)
    parts = {
        "classes": _written(None if model.shown_classes is None else _classes(model.shown_classes)),
        "features": _one_a_line(map(_feature, features)),
    }
    if isinstance(model, FittedForest):
        parts["trees"] = _one_a_line(_nodes(view, features) for view in views_of(model))
    else:
        (view,) = views_of(model)
        parts["nodes"] = _one_a_line(_nodes(view, features))
    data = "".join(f"  {name}: {text},\n" for name, text in parts.items())
    functions = ["predict", *(["predictProba"] if model.shown_classes is not None else [])]
    functions += ["leaves"] if isinstance(model, FittedForest) else ["leaf", "reasons"]
    read = "readForest" if isinstance(model, FittedForest) else "readTree"
    ending = f"export const {{ {', '.join(functions)} }} = {read}(data);\n"
    if model.shown_classes is not None:
        classes = "data.classes[0]" if model.n_outputs == 1 else "data.classes"
        ending = f"export const classes = {classes};\n{ending}"
    return f"const data = {{\n{data}}};\n{ending}"


def _nodes(view: TreeView, features: list[FeatureInfo]) -> list[Json]:
    return [_node(node, features) for node in view.nodes]


def _one_a_line(items: Iterable[Any]) -> str:
    return "[\n" + "".join(f"    {_written(item)},\n" for item in items) + "  ]"


def _written(value: Any) -> str:
    # A script inside a page must not hold "</script>".
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _classes(classes: tuple[tuple[Any, ...], ...]) -> list[list[Any]]:
    return [[_value(label) for label in labels] for labels in classes]


def _value(value: Any) -> Any:
    """A label or a category, if JavaScript has such values."""
    require_plain(value, "JavaScript")
    if isinstance(value, int) and abs(value) > MAX_EXACT:
        raise ValueError(f"JavaScript has no whole numbers as large as {value}; use text instead")
    return value


def _feature(feature: FeatureInfo) -> Json:
    if feature.is_date:
        return {"name": feature.name, "date": feature.date}
    if feature.categories is None:
        return {"name": feature.name}
    return {"name": feature.name, "values": [_value(c) for c in feature.categories]}


def _node(node: NodeView, features: list[FeatureInfo]) -> Json:
    data: Json = {"parent": node.parent}
    if node.is_leaf:
        return data | {"value": node.value.tolist()}
    data |= {
        "features": [features.index(feature) for feature in node.features],
        "children": list(node.children),
        "missingBranch": node.missing_branch,
    }
    return data | shape_data(node)


# --- shape functions: categories by number, no infinite limits ---


def shape_data(node: NodeView) -> Json:
    """The segments of a node that splits on one feature, or the regions of a pair."""
    if node.segments:
        segments = [
            {"branch": segment.branch, **_limits(segment, node.features)}
            for segment in node.segments
        ]
        return {"segments": segments}
    return {
        "regions": [region_data(region, node) for region in node.regions],
        "missingCodes": [
            codes_of(categories, feature)
            for categories, feature in zip(node.missing_categories, node.features, strict=True)
        ],
    }


def region_data(region: Region, node: NodeView) -> Json:
    """A region of a pair."""
    bounds = [
        {"weights": list(bound.weights), **_limits(bound, node.features)} for bound in region.bounds
    ]
    return {"branch": region.branch, "bounds": bounds}


def codes_of(categories: Iterable[Level], feature: FeatureInfo) -> list[int]:
    """Numbers of categories."""
    known = feature.categories or ()
    return [known.index(category) for category in categories]


def _limits(bound: Bound, features: tuple[FeatureInfo, ...]) -> Json:
    """Codes of categories, or finite limits; JavaScript takes others for infinite."""
    if bound.categories is not None and bound.side is not None:
        return {"codes": codes_of(bound.categories, features[bound.side])}
    limits = {"low": bound.low, "high": bound.high}
    return {name: limit for name, limit in limits.items() if math.isfinite(limit)}
