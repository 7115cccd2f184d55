"""Write a model as JSON."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from shapetree.data._columns import Level
from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import Json
from shapetree.model_file._format import (
    DATE_KINDS,
    FORMAT,
    LABEL_TYPES,
    MOST_TREES,
    NUMBER_KINDS,
    Frame,
    Model,
    file_kind,
    max_label_bytes,
    max_trees,
    node_kinds,
    stability_kinds,
)
from shapetree.model_file._kinds import VERSION, Object
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut
from shapetree.tree._fitted import FittedForest, FittedTree
from shapetree.tree._sketch import Density, NodeSketch, PackedCounts, Scatter
from shapetree.tree._stability import Stability

LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def write_model(model: Model, library_version: str) -> str:
    """A model as JSON; of equal models it is the same."""
    fitted = model.fitted
    kind = "forest" if isinstance(fitted, FittedForest) else "tree"
    names = fitted.names
    content = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "library_version": library_version,
        "estimator": model.estimator,
        "parameters": dict(sorted(model.parameters.items())),
        "criterion": fitted.criterion,
        "shrinkage": fitted.shrinkage,
        "has_names": fitted.has_names,
        "features": [
            _feature(feature, scale, limits)
            for feature, scale, limits in zip(
                fitted.features,
                fitted.summary.scales.tolist(),
                fitted.summary.ranges.tolist(),
                strict=True,
            )
        ],
        "target": _target(fitted),
    }
    content |= _forest(fitted) if isinstance(fitted, FittedForest) else _tree(fitted)
    if isinstance(fitted, FittedTree) and not isinstance(model.parameters["strength"], Real):
        content["strength"] = fitted.strength
    shown = {
        "features": names.features,
        "classes": names.classes,
        "targets": names.targets,
        "units": dict(names.units),
    }
    content["names"] = {what: its for what, its in shown.items() if its} or None
    content = file_kind(kind, model.estimator, fitted.n_outputs == 1).write(content)
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


def _tree(fitted: FittedTree) -> Json:
    """What only a file of one tree has."""
    if fitted.sketches is None and fitted.n_outputs == 1:
        raise ValueError(
            "cannot write this tree as JSON: it is one of a forest, whose trees do not keep how "
            "rows are spread over their nodes; write the forest, or use export_python, export_sql "
            "or export_onnx"
        )
    return {
        "nodes": _nodes(fitted.tree, fitted),
        "taught": fitted.taught if fitted.taught > 0 else None,
        "history": fitted.history,
        "held_out": None if fitted.held_out is None else _held_out(fitted.held_out),
        "stability": None if fitted.stability is None else _stability(fitted.stability),
        "why_single_leaf": fitted.why_single_leaf,
    }


def _held_out(held_out: HeldOut) -> Json:
    leaves = [
        {"leaf": number, "rows": rows, "value": values}
        for number, (rows, *values) in sorted(held_out.leaves.items())
    ]
    return {"rows": held_out.n_rows, "scores": held_out.scores, "leaves": leaves or None}


def _stability(stability: Stability) -> Json:
    """Results of the resamples for the nodes; those for rows are not written."""
    leaf, split = stability_kinds(stability.has_classes)
    nodes = []
    for values, same_feature, similar_split in stability.nodes:
        told: Json = {"agreement": values[0]} if stability.has_classes else {"deviation": values}
        told |= {"same_feature": same_feature, "similar_split": similar_split}
        nodes.append((leaf if same_feature is None else split).write(told))
    return {"resamples": stability.n_resamples, "nodes": nodes}


def _forest(fitted: FittedForest) -> Json:
    """What only a file of a forest has."""
    return {
        "trees": [_nodes(tree, fitted) for tree in fitted.trees],
        "seed": fitted.seed,
        "contents": fitted.contents,
        "oob_score": fitted.oob_score,
    }


def _feature(feature: FeatureInfo, scale: float, limits: list[float]) -> Json:
    if feature.categories is None:
        kind = DATE_KINDS[feature.date] if feature.date else NUMBER_KINDS[feature.is_whole]
        limits_or_none = None if math.isnan(limits[0]) else limits
        return {"name": feature.name, "kind": kind, "scale": scale, "range": limits_or_none}
    return {
        "name": feature.name,
        "kind": "ordered" if feature.is_ordered else "category",
        "categories": feature.categories,
        "held_text": True if feature.held_text else None,
    }


def _target(fitted: FittedTree | FittedForest) -> Json:
    if fitted.classes is None:
        edges = fitted.summary.target_edges
        return {"kind": "numbers", "n_outputs": fitted.n_outputs, "edges": edges}
    outputs = [_labels(labels) for labels in fitted.classes]
    steps = fitted.summary.steps if fitted.summary.steps > 1 else None
    return {"kind": "classes", "outputs": outputs, "steps": steps}


def _labels(labels: np.ndarray) -> Json:
    kind = labels.dtype.str
    plain = [x.item() if isinstance(x, np.generic) else x for x in labels.tolist()]
    if not re.fullmatch(LABEL_TYPES, kind) or not all(isinstance(x, Level) for x in plain):
        raise ValueError(
            f"cannot write class labels of type {labels.dtype} as JSON; fit the tree to labels "
            "that are texts, numbers or booleans"
        )
    return {"type": kind, "labels": plain}


def _nodes(tree: TreeArrays, fitted: FittedTree | FittedForest) -> list[Json]:
    """All nodes, unless no reader could use them."""
    edges = fitted.summary.target_edges
    if not np.isfinite(tree.value).all() or not (edges is None or np.isfinite(edges).all()):
        raise ValueError(
            "cannot write this model as JSON: some of its values are infinite or NaN, as its "
            "targets or weights were too large to be added up; scale them before fitting"
        )
    kinds = node_kinds(Frame(fitted.classes is not None, tree.sketches is not None))
    return [_node(tree, node, kinds) for node in range(tree.node_count)]


def _node(tree: TreeArrays, node: int, kinds: dict[str, Object]) -> Json:
    rows, weight = tree.n_node_samples[node], tree.weighted_n_node_samples[node]
    kind, split = ("leaf", None) if tree.is_leaf[node] else _split(tree, node)
    content = {
        "rows": rows,
        "weight": None if weight == rows else weight,
        "impurity": tree.impurity[node],
        "value": tree.value[node],
        "split": split,
        "sketch": None if tree.sketches is None else _sketch(tree.sketches[node], kind == "leaf"),
    }
    return kinds[kind].write(content)


def _split(tree: TreeArrays, node: int) -> tuple[str, Json]:
    """How a node sends its rows on, and which kind of node it is."""
    pieces, cuts = tree.pieces(node), tree.cuts(node)
    upper = tree.piece_upper[pieces]
    split: Json = {
        "features": tree.features_of(node),
        "branches": tree.n_branches[node],
        "branch_of_piece": tree.piece_branch[pieces],
        "missing_branch": tree.missing_branch[node],
        "saw_missing": tree.saw_missing[node],
    }
    if tree.second_feature[node] < 0:
        if np.isnan(upper[0]):
            return "categorical", split
        return "ordered", split | {"thresholds": upper[:-1]}
    columns = {
        "a": tree.cut_a, "b": tree.cut_b, "threshold": tree.cut_threshold,
        "low": tree.cut_low, "high": tree.cut_high,
    }  # fmt: skip
    each = zip(*(column[cuts].tolist() for column in columns.values()), strict=True)
    split["cuts"] = [dict(zip(columns, its, strict=True)) for its in each]
    split["positions"] = [tree.position[tree.positions(node, side)] for side in range(2)]
    return "pair", split


def _sketch(sketch: NodeSketch, is_leaf: bool) -> Json:
    """A sketch; the counts of a node that splits are the sums of its children's."""
    return {
        "counts": sketch.counts if is_leaf else None,
        "mean": sketch.mean,
        "deviation": sketch.deviation,
        "skewness": sketch.skewness,
        "median": sketch.middle,
        "weighed": sketch.weighed,
        "squared_weights": sketch.squared_weights,
        "density": None if sketch.density is None else _density(sketch.density),
        "scatter": None if sketch.scatter is None else _scatter(sketch.scatter),
    }


def _density(density: Density) -> Json:
    counts: Any = density.kept
    if isinstance(counts, PackedCounts):
        counts = [counts.runs[first:stop] for first, stop in pairwise(counts.start)]
    else:
        counts = counts.T
    has_missing = density.missing.any()
    return {
        "counts": counts,
        "edges": density.edges,
        "ends": density.ends,
        "totals": density.totals,
        "missing": density.missing if has_missing else None,
        "missing_total": density.missing_total if has_missing else None,
    }


def _scatter(scatter: Scatter) -> Json:
    return {
        "low": scatter.low,
        "high": scatter.high,
        "first": scatter.points[:, 0],
        "second": scatter.points[:, 1],
        "targets": scatter.targets,
        "missing": scatter.n_missing,
    }
