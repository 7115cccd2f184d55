"""Read a model from JSON.

Reading runs no code of the file's. Every name, number, index and size is checked before a tree is
made of it, and what does not fit is refused in one sentence that says where. Members that this
version does not know are refused, too: they might change what a tree predicts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree.data._columns import MAX_EXACT, Level
from shapetree.data._shares import MOST_STEPS
from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import NotAModel, Part, parse, short
from shapetree.model_file._format import (
    DATE_KINDS,
    FORMAT,
    INT32,
    KINDS,
    LABEL_TYPES,
    NUMBER_KINDS,
    OF_CLASSES,
    OF_NUMBERS,
    SPECIAL,
    VERSION,
    Frame,
    Model,
    max_label_bytes,
    max_trees,
)
from shapetree.model_file._read_nodes import read_tree
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut
from shapetree.tree._fitted import FittedTree
from shapetree.tree._fitted_forest import FittedForest
from shapetree.tree._intervals import UnseenLeaf
from shapetree.tree._naming import Names
from shapetree.tree._sketch import DataSummary
from shapetree.tree._stability import NodeStability, Stability

# Lists and objects inside each other in a parameter.
MAX_NESTING = 8
# Members that every file may have, and those of each kind.
MEMBERS = (
    *("format", "version", "kind", "library_version", "estimator", "parameters", "criterion"),
    *("shrinkage", "has_names", "features", "target", "names"),
)
TREE_MEMBERS = (
    *("nodes", "strength", "history", "held_out", "why_single_leaf", "taught", "stability"),
)
FOREST_MEMBERS = ("trees", "seed", "contents", "oob_score")


def read_model(text: str) -> Model:
    """The model that JSON describes, or `NotAModel`."""
    root = Part(parse(text))
    _read_version(root)
    kind = root.member("kind").one_of(*KINDS)
    root.has_only(*MEMBERS, *(TREE_MEMBERS if kind == "tree" else FOREST_MEMBERS))
    root.member("library_version").text()
    estimator = root.member("estimator").one_of(*KINDS[kind])
    has_names = root.member("has_names").boolean()
    features = _read_features(root.member("features"), has_names)
    classes, n_outputs, target_edges = _read_target(root.member("target"), len(text))
    steps = _read_steps(root.member("target"), kind, n_outputs)
    if (estimator == KINDS[kind][0]) == (classes is None):
        root.member("target").refuse(f"is not of the kind that a {estimator} has")
    frame = Frame(
        tuple(feature for feature, _, _ in features),
        n_outputs,
        None if classes is None else [len(labels) for labels in classes],
        None if target_edges is None else len(target_edges) - 1,
        has_sketches=kind == "tree" and n_outputs == 1,
        steps=steps,
    )
    parameters = {name: _read_parameter(item) for name, item in root.member("parameters").members()}
    shared: dict[str, Any] = {
        "features": frame.features,
        "has_names": has_names,
        "classes": None if classes is None else tuple(classes),
        "criterion": root.member("criterion").one_of(*(OF_CLASSES if classes else OF_NUMBERS)),
        "shrinkage": root.member("shrinkage").number(low=0, is_finite=False),
        "summary": DataSummary(
            np.array([scale for _, scale, _ in features]),
            target_edges,
            np.array([limits for _, _, limits in features]),
            steps,
        ),
        "names": _read_names(root.optional("names"), frame),
    }
    if kind == "forest":
        forest = FittedForest(**_read_forest(root, frame, len(text)), **shared)
        return Model(estimator, parameters, forest)
    strength = root.optional("strength")
    shared["strength"] = _usual_strength(parameters) if strength is None else strength.number(low=0)
    return Model(
        estimator, parameters, FittedTree(**_read_tree(root, frame, shared["names"]), **shared)
    )


def _read_tree(root: Part, frame: Frame, names: Names) -> dict[str, Any]:
    """What only a file of one tree has."""
    history, taught = root.optional("history"), root.optional("taught")
    tree = read_tree(root.member("nodes"), frame)
    return {
        "trees": (tree,),
        "history": None if history is None else history.numbers(is_finite=False),
        "held_out": _read_held_out(root.optional("held_out"), tree),
        "why_single_leaf": _read_why(root.optional("why_single_leaf"), tree),
        "taught": 0.0 if taught is None else _read_share(taught),
        "stability": _read_stability(root.optional("stability"), tree, frame, names),
    }


def _read_forest(root: Part, frame: Frame, n_bytes: int) -> dict[str, Any]:
    """What only a file of a forest has."""
    trees, score = root.member("trees"), root.optional("oob_score")
    most = max_trees(n_bytes)
    if not 1 <= trees.length() <= most:
        trees.refuse(
            f"must have between 1 and {most} items in a file of this size, got {trees.length()}"
        )
    return {
        "seed": root.member("seed").integer(0, INT32),
        "contents": root.member("contents").integer(0, 2**64 - 1),
        "oob_score": None if score is None else score.number(is_finite=False),
        "trees": tuple(read_tree(nodes, frame) for nodes in trees.each()),
    }


def _read_share(part: Part) -> float:
    share = part.number(low=0)
    if not 0 < share <= 1:
        part.refuse("is not a share above 0 and up to 1")
    return share


def _usual_strength(parameters: dict[str, Any]) -> float:
    """The strength of a tree for which the data did not choose it."""
    given = parameters.get("strength", 1.0)
    is_number = isinstance(given, int | float) and 0 <= given <= sys.float_info.max
    return float(given) if is_number else 1.0


def _read_version(root: Part) -> None:
    root.member("format").one_of(FORMAT)
    version = root.member("version").integer(1, MAX_EXACT)
    if version > VERSION:
        raise NotAModel(
            f"this file has version {version} of the model format, but this shapetree reads only "
            f"version {VERSION}; install a newer shapetree"
        )


def _read_parameter(part: Part, nesting: int = 0) -> Any:
    if nesting > MAX_NESTING:
        part.refuse("is nested too deeply")
    if isinstance(part.value, list):
        return [_read_parameter(item, nesting + 1) for item in part.each()]
    if isinstance(part.value, float):
        return part.number()
    if not isinstance(part.value, dict):
        return part.value
    if len(part.value) != 1:
        part.refuse("must have one member")
    ((kind, content),) = part.members()
    if kind == "number":
        return SPECIAL[content.one_of(*SPECIAL)]
    if kind == "tuple":
        return tuple(_read_parameter(item, nesting + 1) for item in content.each())
    pairs = (item.items(2) for item in part.member("pairs").each())
    return {_read_key(key): _read_parameter(item, nesting + 1) for key, item in pairs}


def _read_key(part: Part) -> Any:
    key = _read_parameter(part)
    if isinstance(key, dict | list | tuple):
        part.refuse("must be a text, a number, true, false or null")
    return key


def _read_features(part: Part, has_names: bool) -> list[tuple[FeatureInfo, float, list[float]]]:
    """Features, their scales and their ranges."""
    features = [(_read_feature(item), _read_scale(item), _read_range(item)) for item in part.each()]
    if not features:
        part.refuse("must have at least one item")
    names = {feature.name for feature, _, _ in features}
    if has_names and len(names) < len(features):
        part.refuse("must have distinct names")
    return features


def _read_feature(part: Part) -> FeatureInfo:
    name = part.member("name").text()
    kind = part.member("kind").one_of(*NUMBER_KINDS, *DATE_KINDS.values(), "category", "ordered")
    if kind not in ("category", "ordered"):
        part.has_only("name", "kind", "scale", "range")
        date = next((date for date, its_kind in DATE_KINDS.items() if its_kind == kind), None)
        return FeatureInfo(name, is_whole=kind == "whole", date=date)
    part.has_only("name", "kind", "categories", "held_text")
    categories = tuple(_read_levels(part.member("categories")))
    if len(set(categories)) < len(categories):
        part.member("categories").refuse("must be distinct")
    held_text = part.optional("held_text")
    if held_text is not None and (categories or not held_text.boolean()):
        held_text.refuse("must be true, and only where there are no categories")
    is_ordered, had_text = kind == "ordered", held_text is not None
    return FeatureInfo(name, categories, is_ordered=is_ordered, held_text=had_text)


def _read_scale(part: Part) -> float:
    if part.member("kind").value in ("category", "ordered"):
        return 1.0
    scale = part.member("scale")
    number = scale.number()
    return number if number > 0 else scale.refuse(f"must be positive, got {number}")


def _read_range(part: Part) -> list[float]:
    limits = part.optional("range")
    if limits is None:
        return [np.nan, np.nan]
    low, high = (item.number(is_finite=False) for item in limits.items(2))
    return [low, high] if low <= high else limits.refuse("must ascend")


def _read_names(part: Part | None, frame: Frame) -> Names:
    if part is None:
        return Names()
    part.has_only("features", "classes", "targets", "units")
    features, classes = part.optional("features"), part.optional("classes")
    targets, units = part.optional("targets"), part.optional("units")
    if classes is not None and frame.n_classes is None:
        classes.refuse("must not be there, as the target is a number")
    return Names(
        features=None if features is None else _read_texts(features, len(frame.features)),
        classes=(
            None
            if classes is None or frame.n_classes is None
            else tuple(
                _read_texts(labels, size)
                for labels, size in zip(
                    classes.items(frame.n_outputs), frame.n_classes, strict=True
                )
            )
        ),
        targets=None if targets is None else _read_texts(targets, frame.n_outputs, False),
        units={} if units is None else {name: unit.text() for name, unit in units.members()},
    )


def _read_texts(part: Part, length: int, are_distinct: bool = True) -> tuple[str, ...]:
    texts = tuple(item.text() for item in part.items(length))
    if are_distinct and len(set(texts)) < len(texts):
        part.refuse("must be distinct")
    return texts


def _read_why(part: Part | None, tree: TreeArrays) -> str | None:
    if part is not None and tree.node_count > 1:
        part.refuse("is only for a tree that is a single leaf")
    return None if part is None else part.text()


def _read_held_out(part: Part | None, tree: TreeArrays) -> HeldOut | None:
    if part is None:
        return None
    part.has_only("rows", "scores", "leaves")
    scores = part.member("scores")
    numbers = {name: score.number(is_finite=False) for name, score in scores.members()}
    if not numbers:
        scores.refuse("must have at least one member")
    n_rows, leaves = part.member("rows").integer(1, MAX_EXACT), part.optional("leaves")
    found: dict[int, UnseenLeaf] = {}
    for each in () if leaves is None else leaves.each():
        each.has_only("leaf", "rows", "value")
        number = each.member("leaf").integer(0, tree.node_count - 1)
        if not tree.is_leaf[number] or number in found:
            each.member("leaf").refuse(f"must be another leaf, got {number}")
        value = each.member("value").numbers(3, is_finite=False).tolist()
        found[number] = UnseenLeaf(each.member("rows").integer(1, n_rows), *value)
    return HeldOut(n_rows, numbers, found)


def _read_stability(
    part: Part | None, tree: TreeArrays, frame: Frame, names: Names
) -> Stability | None:
    if part is None:
        return None
    part.has_only("resamples", "nodes")
    n_resamples = part.member("resamples").integer(1, MAX_EXACT)
    has_classes = frame.n_classes is not None
    name = "agreement" if has_classes else "deviation"
    nodes = []
    for node, each in enumerate(part.member("nodes").items(tree.node_count)):
        is_leaf = bool(tree.is_leaf[node])
        each.has_only(name, *(() if is_leaf else ("same_feature", "similar_split")))
        found = each.member(name)
        if has_classes:
            values = [found.number(is_finite=False)]
        else:
            values = found.numbers(frame.n_outputs, is_finite=False).tolist()
        if any(value < 0 or (has_classes and value > 1) for value in values):
            found.refuse("must be between 0 and 1" if has_classes else "must not be negative")
        counts: list[int] = []
        if not is_leaf:
            counts.append(each.member("same_feature").integer(0, n_resamples))
            counts.append(each.member("similar_split").integer(0, counts[0]))
        nodes.append(NodeStability(tuple(values), *counts))
    features = names.features or [feature.name for feature in frame.features]
    return Stability.of_tree(tree, has_classes, features, names.targets, n_resamples, nodes)


def _read_levels(part: Part) -> Iterator[Level]:
    return map(_read_level, part.each())


def _read_level(part: Part) -> Level:
    if isinstance(part.value, dict):
        part.has_only("number")
        return SPECIAL[part.member("number").one_of("Infinity", "-Infinity")]
    if isinstance(part.value, str | bool):
        return part.value
    if isinstance(part.value, int | float):
        part.number()
        return part.value
    part.refuse(f"must be a text, a number, true or false, got {short(part.value)}")


def _read_target(
    part: Part, n_bytes: int
) -> tuple[list[np.ndarray] | None, int, np.ndarray | None]:
    """Class labels of each output, number of outputs, and bounds of a numeric target's cells."""
    if part.member("kind").one_of("classes", "numbers") == "classes":
        part.has_only("kind", "outputs", "steps")
        outputs = part.member("outputs")
        labels, left = [], max_label_bytes(n_bytes)
        for output in outputs.each():
            labels.append(_read_labels(output, left))
            left -= labels[-1].nbytes
        if not labels:
            outputs.refuse("must have at least one item")
        return labels, len(labels), None
    part.has_only("kind", "n_outputs", "edges")
    n_outputs = part.member("n_outputs").integer(1, INT32)
    if n_outputs > 1 and part.optional("edges") is not None:
        part.refuse("must have edges only if there is one output")
    return None, n_outputs, _read_edges(part.member("edges")) if n_outputs == 1 else None


def _read_steps(part: Part, kind: str, n_outputs: int) -> int:
    """How many steps of shares of classes make a row."""
    steps = part.optional("steps")
    if steps is None:
        return 1
    if kind != "tree" or n_outputs > 1:
        steps.refuse("is only for a tree of one target")
    return steps.integer(2, MOST_STEPS)


def _read_edges(part: Part) -> np.ndarray:
    edges = part.ascending()
    return edges if len(edges) >= 2 else part.refuse("must have at least two items")


def _read_labels(part: Part, max_bytes: int) -> np.ndarray:
    part.has_only("type", "labels")
    kind, labels = part.member("type").text(), part.member("labels")
    if not LABEL_TYPES.fullmatch(kind):
        part.member("type").refuse(f"must be NumPy's name of a type of labels, got {short(kind)}")
    levels: list[Any] = list(_read_levels(labels))
    if not levels:
        labels.refuse("must have at least one item")
    if np.dtype(kind).itemsize * len(levels) > max_bytes:
        labels.refuse("would take too much memory for a file of this size")
    try:
        ascends = all(one < other for one, other in pairwise(levels))
    except TypeError:
        labels.refuse("must be either texts or numbers")
    if not ascends:
        labels.refuse("must ascend")
    try:
        array = np.empty(len(levels), dtype=kind)
        array[:] = levels
    except (ValueError, TypeError, OverflowError):
        labels.refuse(f"must be of the type {kind}")
    if array.tolist() != levels:
        labels.refuse(f"must be of the type {kind}")
    return array
