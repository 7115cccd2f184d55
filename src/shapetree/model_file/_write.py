"""Write a model as JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np

from shapetree.data._columns import MAX_EXACT, Level
from shapetree.data._table import FeatureInfo
from shapetree.model_file._format import (
    DATE_KINDS,
    FORMAT,
    LABEL_TYPES,
    MOST_TREES,
    NUMBER_KINDS,
    SPECIAL,
    VERSION,
    Json,
    Model,
    max_label_bytes,
    max_trees,
)
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._fitted_forest import FittedForest
from shapetree.tree._naming import Names
from shapetree.tree._sketch import Density, NodeSketch, PackedCounts
from shapetree.tree._stability import Stability

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def write_model(model: Model, library_version: str) -> str:
    """A model as JSON; of equal models it is the same."""
    fitted = model.fitted
    content = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "forest" if isinstance(fitted, FittedForest) else "tree",
        "library_version": library_version,
        "estimator": model.estimator,
        "parameters": {
            name: _write_parameter(value) for name, value in sorted(model.parameters.items())
        },
        "criterion": fitted.criterion,
        "shrinkage": _write_number(float(fitted.shrinkage)),
        "has_names": fitted.has_names,
        "features": [
            _write_feature(feature, scale, limits)
            for feature, scale, limits in zip(
                fitted.features,
                fitted.summary.scales.tolist(),
                fitted.summary.ranges.tolist(),
                strict=True,
            )
        ],
        "target": _write_target(fitted),
    }
    if isinstance(fitted, FittedForest):
        content |= _write_forest(fitted)
    else:
        content |= _write_tree(fitted)
        if not isinstance(model.parameters["strength"], Real):
            content["strength"] = _write_number(fitted.strength)
    names = _write_names(fitted.names)
    if names:
        content["names"] = names
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if sum(labels.nbytes for labels in fitted.classes or ()) > max_label_bytes(len(text)):
        raise ValueError(
            "cannot write this model as JSON: the type of its class labels takes too much memory "
            "for each of them; fit it to labels of type object"
        )
    if isinstance(fitted, FittedForest) and len(fitted.trees) > max_trees(len(text)):
        raise ValueError(
            f"cannot write this model as JSON: it has {len(fitted.trees)} trees, but nearly all of "
            f"them are single leaves; at most {MOST_TREES} of these are read again"
        )
    # A lone surrogate is no character of UTF-8, but JSON can name it.
    return LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _write_tree(fitted: FittedTree) -> Json:
    """What only a file of one tree has."""
    if fitted.sketches is None and fitted.n_outputs == 1:
        raise ValueError(
            "cannot write this tree as JSON: it is one of a forest, whose trees do not keep how "
            "rows are spread over their nodes; write the forest, or use export_python, export_sql "
            "or export_onnx"
        )
    content: Json = {"nodes": _write_nodes(fitted.tree, fitted.summary.target_edges)}
    if fitted.taught > 0:
        content["taught"] = _write_number(fitted.taught)
    if fitted.history is not None:
        content["history"] = _write_numbers(fitted.history)
    if fitted.held_out is not None:
        scores = {
            name: _write_number(float(score)) for name, score in fitted.held_out.scores.items()
        }
        held_out: Json = {"rows": fitted.held_out.n_rows, "scores": scores}
        leaves = [
            {"leaf": number, "rows": rows, "value": _write_numbers(np.array(values))}
            for number, (rows, *values) in sorted(fitted.held_out.leaves.items())
        ]
        if leaves:
            held_out["leaves"] = leaves
        content["held_out"] = held_out
    if fitted.stability is not None:
        content["stability"] = _write_stability(fitted.stability)
    if fitted.why_single_leaf is not None:
        content["why_single_leaf"] = fitted.why_single_leaf
    return content


def _write_stability(stability: Stability) -> Json:
    """Results of the resamples for the nodes; those for rows are not written."""
    nodes: list[Json] = []
    for values, same_feature, similar_split in stability.nodes:
        numbers = _write_numbers(np.array(values))
        node: Json = {"agreement": numbers[0]} if stability.has_classes else {"deviation": numbers}
        if same_feature is not None:
            node |= {"same_feature": same_feature, "similar_split": similar_split}
        nodes.append(node)
    return {"resamples": stability.n_resamples, "nodes": nodes}


def _write_forest(fitted: FittedForest) -> Json:
    """What only a file of a forest has."""
    edges = fitted.summary.target_edges
    content: Json = {
        "trees": [_write_nodes(tree, edges) for tree in fitted.trees],
        "seed": fitted.seed,
        "contents": fitted.contents,
    }
    if fitted.oob_score is not None:
        content["oob_score"] = _write_number(fitted.oob_score)
    return content


def _write_nodes(tree: TreeArrays, edges: np.ndarray | None) -> list[Json]:
    """All nodes, unless no reader could use them."""
    if not np.isfinite(tree.value).all() or not (edges is None or np.isfinite(edges).all()):
        raise ValueError(
            "cannot write this model as JSON: some of its values are infinite or NaN, as its "
            "targets or weights were too large to be added up; scale them before fitting"
        )
    return [_write_node(tree, node) for node in range(tree.node_count)]


def _write_parameter(value: Any) -> Any:
    """A parameter as JSON; objects that it cannot hold, such as random states, become null."""
    if value is None or hasattr(value, "get_params"):
        return None
    if isinstance(value, str | bool):
        return value
    if isinstance(value, np.bool_ | Integral):
        return bool(value) if isinstance(value, np.bool_) else int(value)
    if isinstance(value, Real):
        return _write_level(float(value))
    if isinstance(value, Mapping):
        pairs = [[_write_parameter(key), _write_parameter(item)] for key, item in value.items()]
        return {"pairs": pairs}
    if isinstance(value, tuple):
        return {"tuple": [_write_parameter(item) for item in value]}
    return [_write_parameter(item) for item in value] if isinstance(value, Iterable) else None


def _write_names(names: Names) -> Json:
    """Names to show, where there are any."""
    known = {
        "features": names.features,
        "classes": names.classes,
        "targets": names.targets,
        "units": dict(names.units),
    }
    return {kind: its for kind, its in known.items() if its}


def _write_feature(feature: FeatureInfo, scale: float, limits: list[float]) -> Json:
    if feature.categories is None:
        kind = DATE_KINDS[feature.date] if feature.date else NUMBER_KINDS[feature.is_whole]
        content: Json = {"name": feature.name, "kind": kind, "scale": _write_number(scale)}
        if not math.isnan(limits[0]):
            content["range"] = [_write_number(limit) for limit in limits]
        return content
    categories = [_write_level(category) for category in feature.categories]
    kind = "ordered" if feature.is_ordered else "category"
    content = {"name": feature.name, "kind": kind, "categories": categories}
    return content | {"held_text": True} if feature.held_text else content


def _write_level(level: Any) -> Any:
    """A category or class label; infinite numbers are put in an object."""
    if isinstance(level, int) and abs(level) > sys.float_info.max:
        raise ValueError("cannot write this model as JSON: a category or label is too large")
    if isinstance(level, float) and not math.isfinite(level):
        return {"number": _write_number(level)}
    return level


def _write_target(fitted: FittedTree | FittedForest) -> Json:
    if fitted.classes is not None:
        outputs = [_write_labels(labels) for labels in fitted.classes]
        steps = {"steps": fitted.summary.steps} if fitted.summary.steps > 1 else {}
        return {"kind": "classes", "outputs": outputs, **steps}
    target: Json = {"kind": "numbers", "n_outputs": fitted.n_outputs}
    if fitted.summary.target_edges is not None:
        target["edges"] = _write_numbers(fitted.summary.target_edges)
    return target


def _write_labels(labels: np.ndarray) -> Json:
    kind = labels.dtype.str
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels.tolist()]
    if not LABEL_TYPES.fullmatch(kind) or not all(isinstance(x, Level) for x in plain):
        raise ValueError(
            f"cannot write class labels of type {labels.dtype} as JSON; fit the tree to labels "
            "that are texts, numbers or booleans"
        )
    return {"type": kind, "labels": [_write_level(x) for x in plain]}


def _write_node(tree: TreeArrays, node: int) -> Json:
    rows, weight = int(tree.n_node_samples[node]), float(tree.weighted_n_node_samples[node])
    content: Json = {"rows": rows}
    if weight != rows:
        content["weight"] = _write_number(weight)
    content["impurity"] = _write_number(float(tree.impurity[node]))
    content["value"] = [_write_numbers(values) for values in tree.value[node]]
    if not tree.is_leaf[node]:
        content["split"] = _write_split(tree, node)
    if tree.sketches is not None:
        content["sketch"] = _write_sketch(tree.sketches[node], bool(tree.is_leaf[node]))
    return content


def _write_split(tree: TreeArrays, node: int) -> Json:
    pieces, cuts = tree.pieces(node), tree.cuts(node)
    upper = tree.piece_upper[pieces]
    split: Json = {
        "features": tree.features_of(node),
        "branches": int(tree.n_branches[node]),
        "branch_of_piece": tree.piece_branch[pieces].tolist(),
        "missing_branch": int(tree.missing_branch[node]),
        "saw_missing": bool(tree.saw_missing[node]),
    }
    if not np.isnan(upper[0]):
        split["thresholds"] = _write_numbers(upper[:-1])
    if tree.second_feature[node] >= 0:
        split["cuts"] = [
            {"a": a, "b": b, "threshold": threshold, "low": low, "high": high}
            for a, b, threshold, low, high in zip(
                tree.cut_a[cuts].astype(int).tolist(),
                _write_numbers(tree.cut_b[cuts]),
                _write_numbers(tree.cut_threshold[cuts]),
                tree.cut_low[cuts].tolist(),
                tree.cut_high[cuts].tolist(),
                strict=True,
            )
        ]
        split["positions"] = [
            _write_numbers(tree.position[tree.positions(node, side)]) for side in range(2)
        ]
    return split


def _write_sketch(sketch: NodeSketch, is_leaf: bool) -> Json:
    """A sketch; the counts of a node that splits are the sums of its children's."""
    content: Json = {"counts": sketch.counts.tolist()} if is_leaf else {}
    if sketch.mean is not None and sketch.deviation is not None:
        content["mean"] = _write_number(sketch.mean)
        content["deviation"] = _write_number(sketch.deviation)
    if sketch.skewness is not None:
        content["skewness"] = _write_number(sketch.skewness)
    if sketch.middle is not None:
        content["median"] = [_write_number(number) for number in sketch.middle]
    if sketch.weighed is not None:
        content["weighed"] = _write_numbers(sketch.weighed)
    if sketch.squared_weights is not None:
        content["squared_weights"] = _write_number(sketch.squared_weights)
    if sketch.density is not None:
        content["density"] = _write_density(sketch.density)
    if sketch.scatter is not None:
        scatter = sketch.scatter
        content["scatter"] = {
            "low": _write_numbers(scatter.low),
            "high": _write_numbers(scatter.high),
            "first": _write_numbers(scatter.points[:, 0]),
            "second": _write_numbers(scatter.points[:, 1]),
            "targets": _write_numbers(scatter.targets),
            "missing": scatter.n_missing,
        }
    return content


def _write_density(density: Density) -> Json:
    content: Json = {"counts": _write_cells(density.kept)}
    if density.edges is not None:
        content["edges"] = _write_numbers(density.edges)
    if density.ends is not None:
        content["ends"] = _write_numbers(np.array(density.ends))
    if density.totals is not None:
        content["totals"] = _write_numbers(density.totals)
    if density.missing.any():
        content["missing"] = density.missing.tolist()
        if density.missing_total is not None:
            content["missing_total"] = _write_number(density.missing_total)
    return content


def _write_cells(counts: np.ndarray | PackedCounts) -> list[list[int]]:
    """Counts by class."""
    if isinstance(counts, PackedCounts):
        return [counts.runs[first:stop].tolist() for first, stop in pairwise(counts.start)]
    return counts.T.tolist()


def _write_numbers(numbers: np.ndarray) -> list[Any]:
    return [_write_number(number) for number in numbers.tolist()]


def _write_number(number: float) -> float | int | str:
    """A number; whole ones without a decimal point, those that JSON has no name for as text."""
    if not math.isfinite(number):
        return next(text for text, value in SPECIAL.items() if str(value) == str(number))
    is_negative_zero = number == 0 and math.copysign(1, number) < 0
    is_short = abs(number) < MAX_EXACT and number == int(number) and not is_negative_zero
    return int(number) if is_short else number
