"""Read a model from JSON.

Reading runs no code of the file's. Every name, number, index and size is checked before a tree is
made of it, and what does not fit is refused in one sentence that says where. Members that this
version does not know are refused, too: they might change what a tree predicts.
"""

from __future__ import annotations

import sys
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.data._columns import MAX_EXACT
from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import Json, NotAModel, Part, parse
from shapetree.model_file._format import (
    DATE_KINDS,
    FORMAT,
    KINDS,
    Frame,
    Model,
    file_kind,
    max_label_bytes,
    max_trees,
    stability_kinds,
)
from shapetree.model_file._kinds import INT32, VERSION, Choice, Integer
from shapetree.model_file._read_nodes import read_tree
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut
from shapetree.tree._fitted import FittedForest, FittedTree, TreeOrForest
from shapetree.tree._intervals import UnseenLeaf
from shapetree.tree._naming import Names
from shapetree.tree._packed_trees import PackedTrees
from shapetree.tree._sketch import DataSummary
from shapetree.tree._stability import NodeStability, Stability


def read_model(text: str) -> Model:
    """The model that JSON describes, or `NotAModel`."""
    root = Part(parse(text))
    _read_version(root)
    kind = Choice(tuple(KINDS)).read(root.member("kind"))
    estimator = Choice(KINDS[kind]).read(root.member("estimator"))
    n_outputs = _read_n_outputs(root.member("target"), kind, estimator)
    content = file_kind(kind, estimator, n_outputs == 1).read(root)
    target, infos = content["target"], content["features"]
    features = tuple(_feature(info) for info in infos)
    _check_features(root.member("features"), content)
    classes = None
    if "outputs" in target:
        classes = _read_classes(root.member("target").member("outputs"), target, len(text))
    edges, steps = target.get("edges"), target.get("steps", 1)
    frame = Frame(
        has_classes=classes is not None,
        has_sketches=kind == "tree" and n_outputs == 1,
        features=features,
        n_outputs=n_outputs,
        n_classes=None if classes is None else [len(labels) for labels in classes],
        n_target_cells=None if edges is None else len(edges) - 1,
        steps=steps,
    )
    shared: dict[str, Any] = {
        "features": features,
        "has_names": content["has_names"],
        "classes": classes,
        "criterion": content["criterion"],
        "shrinkage": content["shrinkage"],
        "summary": DataSummary(
            np.array([info.get("scale", 1.0) for info in infos]),
            edges,
            np.array([info.get("range", (np.nan, np.nan)) for info in infos]),
            steps,
        ),
        "names": _read_names(root, content, frame),
    }
    if kind == "forest":
        made: TreeOrForest = FittedForest(
            seed=content["seed"],
            contents=content["contents"],
            oob_score=content.get("oob_score"),
            trees=PackedTrees(_read_trees(root.member("trees"), frame, len(text))),
            **shared,
        )
    else:
        tree = read_tree(root.member("nodes"), frame)
        if "why_single_leaf" in content and tree.node_count > 1:
            root.member("why_single_leaf").refuse("is only for a tree that is a single leaf")
        made = FittedTree(
            trees=(tree,),
            strength=content.get("strength", _default_strength(content["parameters"])),
            history=content.get("history"),
            held_out=_read_held_out(root, content, tree),
            why_single_leaf=content.get("why_single_leaf"),
            taught=content.get("taught", 0.0),
            stability=_read_stability(root, content, tree, frame, shared["names"]),
            **shared,
        )
    return Model(estimator, content["parameters"], made)


def _read_version(root: Part) -> None:
    Choice((FORMAT,)).read(root.member("format"))
    version = Integer(1, MAX_EXACT).read(root.member("version"))
    if version > VERSION:
        raise NotAModel(
            f"this file has version {version} of the model format, but this shapetree reads only "
            f"version {VERSION}; install a newer shapetree"
        )


def _read_n_outputs(target: Part, kind: str, class_name: str) -> int:
    """The number of targets, which decides what else there must be."""
    has_classes = Choice(("classes", "numbers")).read(target.member("kind")) == "classes"
    if has_classes != (class_name == KINDS[kind][0]):
        target.refuse(f"is not of the kind that a {class_name} has")
    if has_classes:
        n_outputs = len(target.member("outputs").as_list())
        if "steps" in target.value and (kind == "forest" or n_outputs > 1):
            target.member("steps").refuse("is only for a tree of one target")
        if n_outputs == 0:
            target.member("outputs").refuse("must have at least one item")
        return n_outputs
    n_outputs = Integer(1, INT32).read(target.member("n_outputs"))
    if n_outputs > 1 and "edges" in target.value:
        target.refuse("must have edges only if there is one output")
    return n_outputs


def _check_features(part: Part, content: Json) -> None:
    names = [info["name"] for info in content["features"]]
    if content["has_names"] and len(set(names)) < len(names):
        part.refuse("must have distinct names")
    for number, info in enumerate(content["features"]):
        if "held_text" in info and info["categories"]:
            reason = "must be true, and only where there are no categories"
            part.item(number).member("held_text").refuse(reason)


def _feature(info: Json) -> FeatureInfo:
    name, kind = info["name"], info["kind"]
    if "categories" not in info:
        date = next((date for date, its_kind in DATE_KINDS.items() if its_kind == kind), None)
        return FeatureInfo(name, is_whole=kind == "whole", date=date)
    return FeatureInfo(
        name,
        tuple(info["categories"]),
        is_ordered=kind == "ordered",
        held_text="held_text" in info,
    )


def _read_classes(part: Part, target: Json, n_bytes: int) -> tuple[np.ndarray, ...]:
    """Class labels of each output."""
    found, left = [], max_label_bytes(n_bytes)
    types, labels = target["outputs"]["type"], target["outputs"]["labels"]
    for number, (kind, levels) in enumerate(zip(types, labels, strict=True)):
        found.append(_as_array(part.item(number).member("labels"), kind, levels, left))
        left -= found[-1].nbytes
    return tuple(found)


def _as_array(part: Part, kind: str, levels: list[Any], max_bytes: int) -> np.ndarray:
    if np.dtype(kind).itemsize * len(levels) > max_bytes:
        part.refuse("would take too much memory for a file of this size")
    try:
        ascends = all(one < other for one, other in pairwise(levels))
    except TypeError:
        part.refuse("must be either texts or numbers")
    if not ascends:
        part.refuse("must ascend")
    try:
        array = np.empty(len(levels), dtype=kind)
        array[:] = levels
    except (ValueError, TypeError, OverflowError):
        part.refuse(f"must be of the type {kind}")
    if array.tolist() != levels:
        part.refuse(f"must be of the type {kind}")
    return array


def _read_names(root: Part, content: Json, frame: Frame) -> Names:
    told = content.get("names", {})

    def texts(kind: str, length: int) -> tuple[str, ...] | None:
        if kind not in told:
            return None
        root.member("names").member(kind).has_length(length)
        return tuple(told[kind])

    classes = told.get("classes")
    if classes is not None:
        assert frame.n_classes is not None
        part = root.member("names").member("classes")
        part.has_length(len(frame.n_classes))
        part.together().have_lengths(classes.lengths, np.array(frame.n_classes))
    assert frame.n_outputs is not None
    return Names(
        features=texts("features", len(frame.features)),
        classes=None if classes is None else tuple(map(tuple, classes)),
        targets=texts("targets", frame.n_outputs),
        units=told.get("units", {}),
    )


def _read_trees(part: Part, frame: Frame, n_bytes: int) -> tuple[TreeArrays, ...]:
    """Trees of a forest."""
    most, found = max_trees(n_bytes), len(part.as_list())
    if found > most:
        part.refuse(f"must have between 1 and {most} items in a file of this size, got {found}")
    return tuple(read_tree(nodes, frame) for nodes in part.each())


def _default_strength(parameters: Json) -> float:
    """The strength of a tree for which the data did not choose it."""
    given = parameters.get("strength", 1.0)
    is_number = isinstance(given, int | float) and 0 <= given <= sys.float_info.max
    return float(given) if is_number else 1.0


def _read_held_out(root: Part, content: Json, tree: TreeArrays) -> HeldOut | None:
    told = content.get("held_out")
    if told is None:
        return None
    found: dict[int, UnseenLeaf] = {}
    if "leaves" in told:
        leaves = told["leaves"]
        values = leaves["value"].values.reshape(-1, 3).tolist()
        parts = root.member("held_out").member("leaves").together()
        parts.member("leaf").within(leaves["leaf"], 0, tree.node_count - 1)
        parts.member("rows").within(leaves["rows"], 1, told["rows"])
        each = zip(leaves["leaf"].tolist(), leaves["rows"].tolist(), values, strict=True)
        for number, (leaf, n_rows, value) in enumerate(each):
            if not tree.is_leaf[leaf] or leaf in found:
                parts.part(number).member("leaf").refuse(f"must be another leaf, got {leaf}")
            found[leaf] = UnseenLeaf(n_rows, *value)
    return HeldOut(told["rows"], told["scores"], found)


def _read_stability(
    root: Part, content: Json, tree: TreeArrays, frame: Frame, names: Names
) -> Stability | None:
    if "stability" not in content:
        return None
    n_resamples, part = content["stability"]["resamples"], root.member("stability").member("nodes")
    part.has_length(tree.node_count)
    kinds = stability_kinds(frame.has_classes, frame.n_outputs)
    nodes = []
    for node, its in enumerate(part.each()):
        told = kinds[0 if tree.is_leaf[node] else 1].read(its)
        values = (told["agreement"],) if frame.has_classes else tuple(told["deviation"].tolist())
        if tree.is_leaf[node]:
            nodes.append(NodeStability(values))
            continue
        same, similar = told["same_feature"], told["similar_split"]
        Integer(0, n_resamples).read(its.member("same_feature"))
        Integer(0, same).read(its.member("similar_split"))
        nodes.append(NodeStability(values, same, similar))
    features = names.features or [feature.name for feature in frame.features]
    return Stability.of_tree(tree, frame.has_classes, features, names.targets, n_resamples, nodes)
