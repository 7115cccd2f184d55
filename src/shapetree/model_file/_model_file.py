"""The model file: a fitted tree as JSON, and back.

`model-1.schema.json` describes the format. Reading runs no code of the file's. Every name, number,
index and size is checked before a tree is made of it, and what does not fit is refused in one
sentence that says where. Members that this version does not know are refused, too: they might
change what a tree predicts. A format with more of them gets another version number.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np

from shapetree.data._table import MAX_ROWS, FeatureInfo, Level
from shapetree.data._targets import NodeStatistics
from shapetree.grow._nodes import TreeNode, tree_of
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedTree
from shapetree.tree._shape import PairShape, ShapeFunction
from shapetree.tree._sketch import Axis, DataSummary, Density, NodeSketch, Scatter

FORMAT = "shapetree-model"
VERSION = 1
PREFIX = "not a shapetree model"
# Criteria that a tree of each kind may have been grown by.
CRITERIA = {
    "ShapeTreeClassifier": ("gini", "entropy"),
    "ShapeTreeRegressor": ("squared_error", "absolute_error"),
}
MAX_BRANCHES = 254
# Lists and objects inside each other in a parameter, and bytes of class labels.
MAX_NESTING = 8
MAX_LABEL_BYTES = 2**26
# Shares of classes may miss one by so much.
SHARE_TOLERANCE = 1e-6
INT32 = 2**31 - 1
WHOLE = 2**53  # whole numbers up to this are exact
# Floating-point numbers that JSON has no name for.
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
LABEL_TYPES = re.compile(r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U[1-9]\d{0,6}|\|O", re.ASCII)
LONE_SURROGATE = re.compile("[\ud800-\udfff]")

Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds.

    Attributes
    ----------
    estimator : str
        Name of the estimator's class.
    parameters : dict
        Parameters of the estimator.
    fitted : FittedTree
    """

    estimator: str
    parameters: dict[str, Any]
    fitted: FittedTree


# --- writing ---


def write_model(model: Model, library_version: str) -> str:
    """A model as JSON; of equal models it is the same."""
    fitted = model.fitted
    _check_numbers(fitted)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "library_version": library_version,
        "estimator": model.estimator,
        "parameters": {
            name: _write_parameter(value) for name, value in sorted(model.parameters.items())
        },
        "criterion": fitted.criterion,
        "shrinkage": _write_number(float(fitted.shrinkage)),
        "has_names": fitted.has_names,
        "features": [
            _write_feature(feature, scale)
            for feature, scale in zip(fitted.features, fitted.summary.scales.tolist(), strict=True)
        ],
        "target": _write_target(fitted),
        "nodes": [_write_node(fitted.tree, node) for node in range(fitted.tree.node_count)],
    }
    if fitted.history is not None:
        content["history"] = _write_numbers(fitted.history)
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone surrogate is no character of UTF-8, but JSON can name it.
    return LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _check_numbers(fitted: FittedTree) -> None:
    """Refuse to write what no reader could use."""
    edges = fitted.summary.target_edges
    if not np.isfinite(fitted.tree.value).all() or not (edges is None or np.isfinite(edges).all()):
        raise ValueError(
            "cannot write this tree as JSON: some of its values are infinite or NaN, as its "
            "targets or weights were too large to be added up; scale them before fitting"
        )


def _write_parameter(value: Any) -> Any:
    """A parameter as JSON; objects that it cannot hold, such as random states, become null."""
    if value is None or isinstance(value, str | bool):
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


def _write_feature(feature: FeatureInfo, scale: float) -> Json:
    if feature.categories is None:
        kind = "whole" if feature.is_whole else "number"
        return {"name": feature.name, "kind": kind, "scale": _write_number(scale)}
    categories = [_write_level(category) for category in feature.categories]
    return {"name": feature.name, "kind": "category", "categories": categories}


def _write_level(level: Any) -> Any:
    """A category or class label; infinite numbers are put in an object."""
    if isinstance(level, int) and abs(level) > sys.float_info.max:
        raise ValueError("cannot write this tree as JSON: a category or label is too large")
    if isinstance(level, float) and not math.isfinite(level):
        return {"number": _write_number(level)}
    return level


def _write_target(fitted: FittedTree) -> Json:
    if fitted.classes is not None:
        return {"kind": "classes", "outputs": [_write_labels(labels) for labels in fitted.classes]}
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
    content: Json = {"counts": density.counts.T.tolist()}
    if density.axis.bounds is not None and density.axis.places is not None:
        content["bounds"] = _write_numbers(density.axis.bounds)
        content["cells"] = density.axis.cells.tolist()
        content["places"] = _write_numbers(density.axis.places)
    if density.totals is not None:
        content["totals"] = _write_numbers(density.totals)
    if density.missing.any():
        content["missing"] = density.missing.tolist()
        if density.missing_total is not None:
            content["missing_total"] = _write_number(density.missing_total)
    return content


def _write_numbers(numbers: np.ndarray) -> list[Any]:
    return [_write_number(number) for number in numbers.tolist()]


def _write_number(number: float) -> float | int | str:
    """A number; whole ones without a decimal point, those that JSON has no name for as text."""
    if not math.isfinite(number):
        return next(text for text, value in SPECIAL.items() if str(value) == str(number))
    is_negative_zero = number == 0 and math.copysign(1, number) < 0
    is_short = abs(number) < WHOLE and number == int(number) and not is_negative_zero
    return int(number) if is_short else number


# --- reading ---


class NotAModel(ValueError):
    """A file or text that is no model of this library, and why."""


def read_model(text: str) -> Model:
    """The model that JSON describes, or `NotAModel`."""
    root = Part(_parse(text), "")
    _check_version(root)
    root.has_only(
        *("format", "version", "library_version", "estimator", "parameters", "criterion"),
        *("shrinkage", "has_names", "features", "target", "nodes", "history"),
    )
    root.member("library_version").text()
    estimator = root.member("estimator").one_of(*CRITERIA)
    has_names = root.member("has_names").boolean()
    features = _read_features(root.member("features"), has_names)
    classes, n_outputs, target_edges = _read_target(root.member("target"))
    if (estimator == "ShapeTreeClassifier") == (classes is None):
        root.member("target").refuse(f"is not of the kind that a {estimator} has")
    shape = _Shape(
        tuple(feature for feature, _ in features),
        n_outputs,
        None if classes is None else [len(labels) for labels in classes],
        None if target_edges is None else len(target_edges) - 1,
    )
    history = root.optional("history")
    return Model(
        estimator=estimator,
        parameters={
            name: _read_parameter(part) for name, part in root.member("parameters").members()
        },
        fitted=FittedTree(
            tree=_read_tree(root.member("nodes"), shape),
            features=shape.features,
            has_names=has_names,
            classes=None if classes is None else tuple(classes),
            criterion=root.member("criterion").one_of(*CRITERIA[estimator]),
            shrinkage=root.member("shrinkage").number(low=0, is_finite=False),
            summary=DataSummary(np.array([scale for _, scale in features]), target_edges),
            history=None if history is None else history.numbers(is_finite=False),
        ),
    )


def _parse(text: str) -> Any:
    def refuse_constant(name: str) -> NoReturn:
        raise NotAModel(f"{PREFIX}: {name} is no number of JSON")

    def make_object(members: list[tuple[str, Any]]) -> Json:
        made = dict(members)
        if len(made) < len(members):
            names = [name for name, _ in members]
            twice = next(name for name in names if names.count(name) > 1)
            raise NotAModel(f"{PREFIX}: an object has the member {_short(twice)} more than once")
        return made

    if not text.strip():
        raise NotAModel(f"{PREFIX}: it is empty")
    try:
        return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=make_object)
    except RecursionError:
        raise NotAModel(f"{PREFIX}: its parts are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotAModel(f"{PREFIX}: it is no JSON ({error})") from None
    except NotAModel:
        raise
    except ValueError:  # Python's limit of digits
        raise NotAModel(f"{PREFIX}: a number in it has too many digits") from None


def _check_version(root: Part) -> None:
    root.member("format").one_of(FORMAT)
    version = root.member("version").integer(1, WHOLE)
    if version > VERSION:
        raise NotAModel(
            f"this file has version {version} of the model format, but this shapetree reads only "
            f"version {VERSION}; install a newer shapetree"
        )


@dataclass(frozen=True)
class _Shape:
    """What the nodes of a model must fit."""

    features: tuple[FeatureInfo, ...]
    n_outputs: int
    n_classes: list[int] | None
    n_target_cells: int | None

    @property
    def n_values(self) -> int:
        return 1 if self.n_classes is None else max(self.n_classes)

    @property
    def n_groups(self) -> int:
        """Columns of a density's counts."""
        return 1 if self.n_classes is None else self.n_classes[0]

    @property
    def n_counts(self) -> int:
        """Counts of a node's sketch."""
        return self.n_groups if self.n_target_cells is None else self.n_target_cells


class Part:
    """A part of a file, and where it stands there."""

    def __init__(self, value: Any, where: str) -> None:
        self.value = value
        self._where = where

    def refuse(self, reason: str) -> NoReturn:
        """Say what is wrong with this part."""
        raise NotAModel(f"{PREFIX}: {self._where or 'the file'} {reason}")

    def optional(self, name: str) -> Part | None:
        """A member of an object, if it has it."""
        if not isinstance(self.value, dict):
            self.refuse(f"must be an object, got {_short(self.value)}")
        where = f"{self._where}.{name}" if self._where else name
        return Part(self.value[name], where[-200:]) if name in self.value else None

    def member(self, name: str) -> Part:
        """A member of an object."""
        return self.optional(name) or self.refuse(f"lacks the member {name!r}")

    def members(self) -> list[tuple[str, Part]]:
        """All members of an object."""
        if not isinstance(self.value, dict):
            self.refuse(f"must be an object, got {_short(self.value)}")
        return [(name, self.member(name)) for name in self.value]

    def has_only(self, *names: str) -> None:
        """Refuse an object with other members."""
        strange = next((name for name, _ in self.members() if name not in names), None)
        if strange is not None:
            self.refuse(
                f"has the member {_short(strange)}, which version {VERSION} of the format does "
                "not know"
            )

    def items(self, length: int | None = None) -> list[Part]:
        """The items of a list."""
        if not isinstance(self.value, list):
            self.refuse(f"must be a list, got {_short(self.value)}")
        if length is not None and len(self.value) != length:
            items = "item" if length == 1 else "items"
            self.refuse(f"must have {length} {items}, got {len(self.value)}")
        return [Part(value, f"{self._where}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.refuse(f"must be a text, got {_short(self.value)}")
        return self.value

    def one_of(self, *choices: str) -> str:
        """One of some texts."""
        if self.text() not in choices:
            words = " or ".join(json.dumps(choice) for choice in choices)
            self.refuse(f"must be {words}, got {_short(self.value)}")
        return self.text()

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.refuse(f"must be true or false, got {_short(self.value)}")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """A whole number in a range; 2.0 is one, too."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number or not low <= self.value <= high or self.value != int(self.value):
            self.refuse(
                f"must be a whole number between {low} and {high}, got {_short(self.value)}"
            )
        return int(self.value)

    def number(self, low: float = -math.inf, is_finite: bool = True) -> float:
        """A number; infinite or, if there is no lower limit, NaN only if that is allowed."""
        number = math.nan
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            try:
                number = float(self.value)
            except OverflowError:
                self.refuse("must be a number that is not so large")
            is_fine = math.isfinite(number) and number >= low
        else:
            is_fine = isinstance(self.value, str) and not is_finite and self.value in SPECIAL
            number = SPECIAL[self.value] if is_fine else math.nan
            is_fine = is_fine and (low == -math.inf or number >= low)
        if not is_fine:
            reach = "a number" if low == -math.inf else f"a number from {low:g} on"
            self.refuse(f"must be {reach}, got {_short(self.value)}")
        return number

    def integers(self, low: int, high: int, length: int | None = None) -> np.ndarray:
        """A list of whole numbers in a range."""
        numbers = [part.integer(low, high) for part in self.items(length)]
        return np.array(numbers, dtype=np.int64)

    def numbers(self, length: int | None = None, is_finite: bool = True) -> np.ndarray:
        """A list of numbers."""
        return np.array(
            [part.number(is_finite=is_finite) for part in self.items(length)], dtype=np.float64
        )

    def ascending(self, length: int | None = None, is_strict: bool = False) -> np.ndarray:
        """A list of numbers in ascending order."""
        numbers = self.numbers(length)
        rises = numbers[1:] > numbers[:-1] if is_strict else numbers[1:] >= numbers[:-1]
        if not rises.all():
            self.refuse("must ascend")
        return numbers


def _short(value: Any) -> str:
    """A value for a message, cut short if need be."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge one"
    return text if len(text) <= 40 else text[:40] + "…"


def _read_parameter(part: Part, nesting: int = 0) -> Any:
    if nesting > MAX_NESTING:
        part.refuse("is nested too deeply")
    if isinstance(part.value, list):
        return [_read_parameter(item, nesting + 1) for item in part.items()]
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
        return tuple(_read_parameter(item, nesting + 1) for item in content.items())
    pairs = [item.items(2) for item in part.member("pairs").items()]
    return {_read_key(key): _read_parameter(item, nesting + 1) for key, item in pairs}


def _read_key(part: Part) -> Any:
    key = _read_parameter(part)
    if isinstance(key, dict | list | tuple):
        part.refuse("must be a text, a number, true, false or null")
    return key


def _read_features(part: Part, has_names: bool) -> list[tuple[FeatureInfo, float]]:
    """Features and their scales."""
    features = [(_read_feature(item), _read_scale(item)) for item in part.items()]
    if not features:
        part.refuse("must have at least one item")
    names = {feature.name for feature, _ in features}
    if has_names and len(names) < len(features):
        part.refuse("must have distinct names")
    return features


def _read_feature(part: Part) -> FeatureInfo:
    name = part.member("name").text()
    kind = part.member("kind").one_of("number", "whole", "category")
    part.has_only("name", "kind", "categories" if kind == "category" else "scale")
    if kind != "category":
        return FeatureInfo(name, is_whole=kind == "whole")
    categories = tuple(_read_level(item) for item in part.member("categories").items())
    if len(set(categories)) < len(categories):
        part.member("categories").refuse("must be distinct")
    return FeatureInfo(name, categories)


def _read_scale(part: Part) -> float:
    if part.member("kind").value == "category":
        return 1.0
    scale = part.member("scale")
    number = scale.number()
    return number if number > 0 else scale.refuse(f"must be positive, got {number}")


def _read_level(part: Part) -> Level:
    if isinstance(part.value, dict):
        part.has_only("number")
        return SPECIAL[part.member("number").one_of("Infinity", "-Infinity")]
    if isinstance(part.value, str | bool):
        return part.value
    if isinstance(part.value, int | float):
        part.number()
        return part.value
    part.refuse(f"must be a text, a number, true or false, got {_short(part.value)}")


def _read_target(
    part: Part,
) -> tuple[list[np.ndarray] | None, int, np.ndarray | None]:
    """Class labels of each output, number of outputs, and bounds of a numeric target's cells."""
    if part.member("kind").one_of("classes", "numbers") == "classes":
        part.has_only("kind", "outputs")
        outputs = part.member("outputs").items()
        if not outputs:
            part.member("outputs").refuse("must have at least one item")
        return [_read_labels(output) for output in outputs], len(outputs), None
    part.has_only("kind", "n_outputs", "edges")
    n_outputs = part.member("n_outputs").integer(1, INT32)
    if n_outputs > 1 and part.optional("edges") is not None:
        part.refuse("must have edges only if there is one output")
    return None, n_outputs, _read_edges(part.member("edges")) if n_outputs == 1 else None


def _read_edges(part: Part) -> np.ndarray:
    edges = part.ascending()
    return edges if len(edges) >= 2 else part.refuse("must have at least two items")


def _read_labels(part: Part) -> np.ndarray:
    part.has_only("type", "labels")
    kind, labels = part.member("type").text(), part.member("labels")
    if not LABEL_TYPES.fullmatch(kind):
        part.member("type").refuse(f"must be NumPy's name of a type of labels, got {_short(kind)}")
    levels: list[Any] = [_read_level(item) for item in labels.items()]
    if not levels:
        labels.refuse("must have at least one item")
    if np.dtype(kind).itemsize * len(levels) > MAX_LABEL_BYTES:
        labels.refuse(f"would take more than {MAX_LABEL_BYTES} bytes of memory")
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


# --- reading nodes ---


def _read_tree(part: Part, shape: _Shape) -> TreeArrays:
    """The tree of a list of nodes, which come level by level."""
    parts = part.items()
    nodes = [_read_node(node, shape) for node in parts]
    _join_nodes(part, nodes)
    if nodes[0].statistics.n_rows == 0:
        parts[0].member("rows").refuse("must be at least 1, got 0")
    for number in range(len(nodes) - 1, -1, -1):  # children before their parents
        _check_rows(parts[number], nodes[number])
        nodes[number].sketch = _read_sketch(parts[number], nodes[number], shape)
    try:
        return tree_of(nodes[0])
    except ValueError as error:
        raise NotAModel(f"{PREFIX}: {error}") from None


def _join_nodes(part: Part, nodes: list[TreeNode]) -> None:
    """Give each node its children."""
    n_children = [0 if node.shape is None else node.shape.n_branches for node in nodes]
    if 1 + sum(n_children) != len(nodes):
        part.refuse(f"must be one more than their branches, {sum(n_children)}, got {len(nodes)}")
    first = 1
    for number, node in enumerate(nodes):
        if n_children[number] and first <= number:
            part.refuse("must come level by level, parents before their children")
        node.children = nodes[first : first + n_children[number]]
        first += n_children[number]


def _check_rows(part: Part, node: TreeNode) -> None:
    n_rows = node.statistics.n_rows
    below = sum(child.statistics.n_rows for child in node.children)
    if node.children and n_rows != below:
        part.member("rows").refuse(f"must be those of its children, {below}, got {n_rows}")


def _read_node(part: Part, shape: _Shape) -> TreeNode:
    part.has_only("rows", "weight", "impurity", "value", "split", "sketch")
    n_rows = part.member("rows").integer(0, MAX_ROWS)
    weight, split = part.optional("weight"), part.optional("split")
    statistics = NodeStatistics(
        n_rows=n_rows,
        weight=n_rows if weight is None else weight.number(low=0, is_finite=False),
        impurity=part.member("impurity").number(low=0, is_finite=False),
        value=_read_value(part.member("value"), shape),
    )
    return TreeNode(statistics, None if split is None else _read_split(split, shape))


def _read_value(part: Part, shape: _Shape) -> np.ndarray:
    outputs = part.items(shape.n_outputs)
    value = np.array([output.numbers(shape.n_values) for output in outputs])
    for output, shares, n in zip(outputs, value, shape.n_classes or (), strict=False):
        if (shares < 0).any() or not abs(shares.sum() - 1) <= SHARE_TOLERANCE:
            output.refuse("must be shares of classes, which are not negative and add up to 1")
        if shares[n:].any():
            output.refuse(f"must be 0 beyond the {n} classes of its output")
    return value


def _read_split(part: Part, shape: _Shape) -> ShapeFunction | PairShape:
    features = part.member("features").integers(0, len(shape.features) - 1).tolist()
    n_branches = part.member("branches").integer(2, MAX_BRANCHES)
    branch_of_piece = part.member("branch_of_piece").integers(0, n_branches - 1)
    common: dict[str, Any] = {
        "n_branches": n_branches,
        "branch_of_piece": branch_of_piece.astype(np.int32),
        "missing_branch": part.member("missing_branch").integer(0, n_branches - 1),
        "saw_missing": part.member("saw_missing").boolean(),
    }
    if len(features) == 2 and features[0] < features[1]:
        part.has_only(*SPLIT_MEMBERS, "cuts", "positions")
        return _read_pair(part, shape, features, common)
    if len(features) != 1:
        part.member("features").refuse("must be one feature, or two in ascending order")
    info = shape.features[features[0]]
    part.has_only(*SPLIT_MEMBERS, *(("thresholds",) if info.categories is None else ()))
    return _read_single(part, info, features[0], common)


SPLIT_MEMBERS = ("features", "branches", "branch_of_piece", "missing_branch", "saw_missing")


def _read_single(
    part: Part, info: FeatureInfo, feature: int, common: dict[str, Any]
) -> ShapeFunction:
    pieces = part.member("branch_of_piece")
    if info.categories is not None:
        pieces.items(len(info.categories))
    if not pieces.value:
        pieces.refuse("must have at least one item")
    if info.categories is not None:
        return ShapeFunction(feature=feature, upper=None, **common)
    thresholds = part.member("thresholds").ascending(len(pieces.value) - 1, is_strict=True)
    return ShapeFunction(feature=feature, upper=np.append(thresholds, np.inf), **common)


def _read_pair(part: Part, shape: _Shape, features: list[int], common: dict[str, Any]) -> PairShape:
    cuts = part.member("cuts").items(max(1, len(common["branch_of_piece"]) - 1))
    part.member("branch_of_piece").items(len(cuts) + 1)
    is_plain = all(shape.features[feature].categories is None for feature in features)
    for cut in cuts:
        cut.has_only("a", "b", "threshold", "low", "high")
        a, b = cut.member("a").integer(0, 1), cut.member("b").number()
        if a == 0 and b != 1:
            cut.member("b").refuse(f"must be 1 where a is 0, got {b}")
        if a == 1 and b != 0 and not is_plain:
            cut.member("b").refuse(f"must be 0 where a is 1 and a feature has categories, got {b}")
    positions = [
        _read_positions(positions, shape.features[feature])
        for positions, feature in zip(part.member("positions").items(2), features, strict=True)
    ]
    low, high = (_read_targets_of_cuts(cuts, side) for side in ("low", "high"))
    if len({*low.tolist(), *high.tolist()}) < 2 * len(cuts):
        part.member("cuts").refuse("must lead to every later cut and to every piece once")
    return PairShape(
        first=features[0],
        second=features[1],
        cut_a=np.array([cut.member("a").number() for cut in cuts]),
        cut_b=np.array([cut.member("b").number() for cut in cuts]),
        cut_threshold=np.array([cut.member("threshold").number() for cut in cuts]),
        cut_low=low,
        cut_high=high,
        positions=(positions[0], positions[1]),
        **common,
    )


def _read_targets_of_cuts(cuts: list[Part], side: str) -> np.ndarray:
    n = len(cuts)
    targets = [cut.member(side).integer(-n - 1, n - 1) for cut in cuts]
    for number, (cut, target) in enumerate(zip(cuts, targets, strict=True)):
        if 0 <= target <= number:
            cut.member(side).refuse("must be a later cut, or a piece")
    return np.array(targets, dtype=np.int32)


def _read_positions(part: Part, info: FeatureInfo) -> np.ndarray:
    positions = part.numbers(len(info.categories or ()), is_finite=False)
    if np.isinf(positions).any():
        part.refuse("must be numbers, or NaN for categories that count as missing")
    if info.categories is not None and np.isnan(positions).all():
        part.refuse("must have a number for some category")
    return positions


# --- reading sketches ---


def _read_sketch(part: Part, node: TreeNode, shape: _Shape) -> NodeSketch | None:
    """A node's sketch, if there is one output; its children must have theirs."""
    if shape.n_outputs > 1:
        part.has_only("rows", "weight", "impurity", "value", "split")
        return None
    part, is_number = part.member("sketch"), shape.n_classes is None
    special = ("counts",) if node.is_leaf else ("scatter",)
    if isinstance(node.shape, ShapeFunction):
        special = ("density",)
    part.has_only(*special, *(("mean", "deviation") if is_number else ()))
    counts = (
        _read_counts(part.member("counts"), node.statistics.n_rows, shape.n_counts)
        if node.is_leaf
        else np.sum([child.sketch.counts for child in node.children if child.sketch], axis=0)
    ).astype(np.int32)
    density = scatter = None
    if isinstance(node.shape, ShapeFunction):
        density = _read_density(part.member("density"), node.shape, counts, shape)
    elif isinstance(node.shape, PairShape):
        scatter = _read_scatter(part.member("scatter"), node.shape, int(counts.sum()), shape)
    return NodeSketch(
        counts=counts,
        mean=part.member("mean").number(is_finite=False) if is_number else None,
        deviation=part.member("deviation").number(is_finite=False) if is_number else None,
        density=density,
        scatter=scatter,
    )


def _read_counts(part: Part, n_rows: int, length: int) -> np.ndarray:
    counts = part.integers(0, n_rows, length)
    if counts.sum() != n_rows:
        part.refuse(f"must add up to the node's rows, {n_rows}, got {counts.sum()}")
    return counts


def _read_density(part: Part, split: ShapeFunction, of_node: np.ndarray, shape: _Shape) -> Density:
    is_number, is_axis = shape.n_classes is None, split.upper is not None
    part.has_only(
        *("counts", "missing"),
        *(("totals", "missing_total") if is_number else ()),
        *(("bounds", "cells", "places") if is_axis else ()),
    )
    n_rows = int(of_node.sum())
    axis = _read_axis(part) if is_axis else Axis(None, np.array([len(split.branch_of_piece)]), None)
    by_group = part.member("counts").items(shape.n_groups)
    counts = np.stack([group.integers(0, n_rows, axis.n_cells) for group in by_group], axis=1)
    lacking, lacking_total = part.optional("missing"), part.optional("missing_total")
    missing = np.zeros(shape.n_groups, dtype=np.int64)
    if lacking is not None:
        missing = lacking.integers(0, n_rows, shape.n_groups)
    if not np.array_equal(counts.sum(axis=0) + missing, [n_rows] if is_number else of_node):
        part.member("counts").refuse("must add up, with the missing, to the node's rows")
    missing_total = 0.0 if lacking_total is None else lacking_total.number(is_finite=False)
    return Density(
        axis=axis,
        counts=counts.astype(np.int32),
        totals=part.member("totals").numbers(axis.n_cells, False) if is_number else None,
        missing=missing.astype(np.int32),
        missing_total=missing_total if is_number else None,
    )


def _read_axis(part: Part) -> Axis:
    cells = part.member("cells")
    numbers = cells.integers(1, INT32)
    if not len(numbers):
        cells.refuse("must have at least one item")
    places = part.member("places").ascending(len(numbers) + 1)
    if places[0] < 0 or places[-1] > 1:
        part.member("places").refuse("must be between 0 and 1")
    return Axis(part.member("bounds").ascending(len(numbers) + 1), numbers, places)


def _read_scatter(part: Part, split: PairShape, n_rows: int, shape: _Shape) -> Scatter:
    part.has_only("low", "high", "first", "second", "targets", "missing")
    columns = [part.member(name) for name in ("first", "second")]
    n_points = len(columns[0].items())
    n_missing = part.member("missing").integer(0, n_rows)
    if n_points > n_rows - n_missing:
        columns[0].refuse(f"must have at most {n_rows - n_missing} items, got {n_points}")
    points = [
        _read_points(column, shape.features[feature], n_points)
        for column, feature in zip(columns, (split.first, split.second), strict=True)
    ]
    low, high = (part.member(name).numbers(2) for name in ("low", "high"))
    if not (low < high).all():
        part.member("low").refuse("must be below high")
    targets = part.member("targets")
    return Scatter(
        low=low,
        high=high,
        points=np.stack(points, axis=1),
        targets=(
            targets.numbers(n_points)
            if shape.n_classes is None
            else targets.integers(0, shape.n_classes[0] - 1, n_points).astype(np.int32)
        ),
        n_missing=n_missing,
    )


def _read_points(part: Part, info: FeatureInfo, n_points: int) -> np.ndarray:
    if info.categories is None:
        return part.numbers(n_points)
    return part.integers(0, len(info.categories) - 1, n_points).astype(np.float64)
