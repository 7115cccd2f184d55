"""A tree or a forest as an ONNX model.

Rows go from node to node in the operator `TreeEnsembleRegressor`, whose results are nodes' numbers:
first through as many levels as fit into one ensemble, then through one level at a time. A child
that several pieces of a shape function lead to would have to be repeated for each of them; between
levels, where a number stands for it, it is not. What the leaf predicts is then looked up. Values of
the leaves of a forest are added up one tree after the other.

All comparisons and sums are made in double precision, as `predict` makes them.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from shapetree._files import PathLike, write_file
from shapetree.data._columns import GREATEST, Level
from shapetree.data._missing import MISSING_CODE
from shapetree.data._table import FeatureInfo
from shapetree.export._forks import (
    Decision,
    Fork,
    fork_on_feature,
    fork_on_levels,
    fork_on_pair,
    oblique_weights,
    pieces_of,
    places_of,
    search,
)
from shapetree.export._routes import features_read, reasons_of, remark
from shapetree.tree._fitted import FittedForest, TreeOrForest
from shapetree.tree._from_estimator import HoldsModel, fitted_model
from shapetree.tree._view import NodeView, TreeView, views_of

if TYPE_CHECKING:
    import onnx

# Old enough for many runtimes, and new enough for double precision.
OPSET, ML_OPSET, IR_VERSION = 15, 3, 8
ML_DOMAIN = "ai.onnx.ml"
# Tests of the ensemble for the levels next to the root: more would make it fast, but large.
MAX_DIRECT_TESTS = 16_384
# Whole numbers that the ensembles' results, which are float32, can tell apart.
MAX_NODES = 2**24

DTYPES = ("float64", "float32")
INT64 = np.iinfo(np.int64)


def export_onnx(
    estimator: HoldsModel,
    path: PathLike | None = None,
    *,
    dtype: str = "float64",
    reasons: bool = False,
) -> onnx.ModelProto:
    """Write a fitted tree or forest as an ONNX model.

    Rows take exactly the same way through the model as in `predict`, and probabilities and numbers
    are the same, too: bitwise with "float64", and rounded to float32 with "float32". Dates are
    numbers here: seconds since 1970-01-01 00:00 UTC, which only "float64" can tell apart.

    Parameters
    ----------
    estimator : ShapeTreeClassifier, ShapeTreeRegressor, ShapeForestClassifier or \
            ShapeForestRegressor
        A fitted estimator.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.
    dtype : {"float64", "float32"}, default="float64"
        Type of the numbers that the model takes and gives. Comparisons are made in double precision
        either way, so float32 rows go where `predict` sends the same float32 rows. Rows that are
        rounded to float32 before may cross a threshold.
    reasons : bool, default=False
        Whether the model also tells the leaf and the features of the path to it; only for a tree.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ImportError
        If onnx is not installed.
    ValueError
        If a feature's categories are both text and numbers, as no input can hold both, or if a
        category or a class is text with half a surrogate pair.

    Notes
    -----
    If no feature has text, there is one input, `X`, of shape (n_rows, n_features). Booleans and
    numeric categories are numbers in it: True is 1. NaN is a missing value.

    If some feature has text, every feature is an input of its own, of shape (n_rows, 1), in the
    order of the table's columns. Its name is the feature's, but characters other than letters,
    digits and underscores are replaced, and numbers are added where names would be the same; the
    feature's own name is the input's `doc_string`. Text is a string tensor, and anything else is of
    `dtype`, except for whole numbers as categories that `dtype` cannot hold, which are int64.
    Features that the tree does not use are inputs, too.

    A string or int64 that is not a category counts as missing. So "" stands for a missing text,
    unless "" is itself a category: then choose another string.

    A classifier's outputs are `label`, of shape (n_rows,), and `probabilities`, of shape
    (n_rows, n_classes), in the order of `classes_`. Labels are int64 if all classes are whole
    numbers or booleans, else strings. With several targets, there are `label_0`, `probabilities_0`,
    `label_1` and so on. A regressor's output is `variable`, of shape (n_rows, n_targets). With
    `reasons`, there are two more: `leaf` has the numbers of the leaves, as `apply` gives them, and
    `reasons` the names of the features on the path, from the root on, with semicolons between them;
    both are of shape (n_rows,).

    The names of features and classes are in the model's metadata as JSON.

    The model needs a runtime that knows opset 15, opset 3 of ai.onnx.ml, and the double
    precision of its `TreeEnsembleRegressor`: onnxruntime 1.15 or later. If subnormal numbers are
    set to zero there, which is not the default, rows may go another way.

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.export import export_onnx
    >>> X = pd.DataFrame({"legs": [2, 4, 4, None] * 9, "colour": ["red", "red", "black", None] * 9})
    >>> tree = ShapeTreeClassifier().fit(X, ["duck", "cow", "dog", "duck"] * 9)
    >>> model = export_onnx(tree)
    >>> session = onnxruntime.InferenceSession(model.SerializeToString())
    >>> def feed(table):
    ...     rows = {}
    ...     for wanted, name in zip(session.get_inputs(), table.columns):
    ...         column = table[[name]]
    ...         if wanted.type == "tensor(string)":
    ...             rows[wanted.name] = column.astype(object).fillna("").to_numpy()
    ...         else:
    ...             rows[wanted.name] = column.to_numpy(np.float64)
    ...     return rows
    >>> label, probabilities = session.run(None, feed(X[:3]))
    >>> label
    array(['duck', 'cow', 'dog'], dtype=object)
    """
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    model = fitted_model(estimator)
    if reasons and isinstance(model, FittedForest):
        raise ValueError("reasons=True needs a single tree: a forest has a path for each tree")
    dates = [feature.name for feature in features_read(model) if feature.is_date]
    if dates and dtype == "float32":
        raise ValueError(
            f"dtype='float32' cannot tell moments apart, but {dates[0]!r} holds dates; use "
            "'float64'"
        )
    written = _model(model, np.dtype(dtype), reasons)
    written.doc_string = remark(model)
    if path is not None:
        write_file(path, written.SerializeToString(), "the model")
    return written


def _model(model: TreeOrForest, dtype: np.dtype[Any], has_reasons: bool) -> onnx.ModelProto:
    graph = _Graph()
    table = _read_table(graph, model, dtype)
    names: dict[str, Sequence[Any]] = {
        "features": [feature.name for feature in model.shown_features]
    }
    if model.shown_classes is not None:
        names["classes"] = model.shown_classes if model.n_outputs > 1 else model.shown_classes[0]
    if isinstance(model, FittedForest):
        _add_means(graph, model, table, dtype)
        return graph.model(names)
    (view,) = views_of(model)
    leaf = _leaf(graph, view, table)
    if view.classes is None:
        means = np.stack([node.value[:, 0] for node in view.nodes])
        graph.look_up("variable", means.astype(dtype), leaf)
    else:
        _add_classes(graph, view, view.classes, leaf, dtype)
    if has_reasons:
        numbers = np.arange(len(view.nodes), dtype=np.int64)
        graph.look_up("leaf", numbers, leaf)
        reasons = [reasons_of(view, node.number) for node in view.nodes]
        graph.look_up("reasons", np.array(reasons, dtype=object), leaf)
    return graph.model(names)


# --- graphs ---


class _Graph:
    """A graph while it is built.

    Values inside it have names with a slash, which inputs and outputs never have.
    """

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("export_onnx needs onnx: pip install shapetree[onnx]") from error
        self._onnx = onnx
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def add(
        self, operator: str, *inputs: str, domain: str = "", result: str = "", **attributes: Any
    ) -> str:
        """Add an operator; gives the name of its result."""
        # Some versions of onnxruntime stumble over operators without names when they fuse them.
        name = f"{operator}/{len(self._nodes)}"
        result = result or name
        self._nodes.append(
            self._onnx.helper.make_node(
                operator, inputs, [result], name=name, domain=domain, **attributes
            )
        )
        return result

    def constant(self, values: Any, dtype: Any) -> str:
        """Add an array."""
        name = f"constant/{len(self._constants)}"
        array: np.ndarray = np.asarray(values, dtype=dtype)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def input(self, name: str, dtype: np.dtype[Any], n_columns: int, meaning: str = "") -> str:
        """Add an input, with a line for each row of the table."""
        self._inputs.append(self._value(name, dtype, [n_columns], meaning))
        return name

    def look_up(self, name: str, lines: np.ndarray, index: str) -> None:
        """Add an output: each row's line, by its index."""
        self.add("Gather", self.constant(lines, lines.dtype), index, result=name)
        self._outputs.append(self._value(name, lines.dtype, list(lines.shape[1:])))

    def output(self, name: str, value: str, dtype: np.dtype[Any], n_columns: int) -> None:
        """Add an output: a matrix of doubles."""
        if dtype == np.float64:
            self.add("Identity", value, result=name)
        else:
            kind = self._onnx.helper.np_dtype_to_tensor_dtype(dtype)
            self.add("Cast", value, to=kind, result=name)
        self._outputs.append(self._value(name, dtype, [n_columns]))

    def _value(
        self, name: str, dtype: np.dtype[Any], shape: list[int], meaning: str = ""
    ) -> onnx.ValueInfoProto:
        text = meaning.encode("utf-8", "replace").decode("utf-8")
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(dtype)
        return self._onnx.helper.make_tensor_value_info(name, kind, ["N", *shape], doc_string=text)

    def cast(self, value: str, dtype: Any) -> str:
        """A value of another type."""
        kind = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.add("Cast", value, to=kind)

    def vector(self, column: str, dtype: Any) -> str:
        """A matrix of one column as a vector of another type."""
        return self.add("Squeeze", self.cast(column, dtype), self.constant([1], np.int64))

    def column(self, matrix: str, which: int) -> str:
        """A column of a matrix, as a matrix."""
        return self.add("Gather", matrix, self.constant([which], np.int64), axis=1)

    def join(self, parts: Sequence[str]) -> str:
        """Matrices side by side."""
        return parts[0] if len(parts) == 1 else self.add("Concat", *parts, axis=1)

    def decide(self, matrix: str, decision: Decision) -> str:
        """Results of a decision for the rows of a matrix, as a float32 column."""
        return self.add(
            "TreeEnsembleRegressor", matrix, domain=ML_DOMAIN, **_ensemble(self._onnx, decision)
        )

    def model(self, names: dict[str, Sequence[Any]]) -> onnx.ModelProto:
        """The model, with names as its metadata."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "shapetree", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph,
            opset_imports=[
                helper.make_opsetid("", OPSET),
                helper.make_opsetid(ML_DOMAIN, ML_OPSET),
            ],
            ir_version=IR_VERSION,
            producer_name="shapetree",
        )
        helper.set_model_props(model, {key: json.dumps(value) for key, value in names.items()})
        return model


def _ensemble(onnx: Any, decision: Decision) -> dict[str, Any]:
    """Attributes of an ensemble of one tree. What has several ways to it is repeated."""
    order = [decision]
    below: list[int] = []
    for item in order:
        below.append(len(order))
        if isinstance(item, Fork):
            order += [item.low, item.high]
    forks = [item if isinstance(item, Fork) else None for item in order]
    leaves = [place for place, fork in enumerate(forks) if fork is None]
    thresholds = np.array([fork.threshold if fork else 0.0 for fork in forks])
    results = np.array([order[place] for place in leaves], dtype=np.float64)
    return {
        "n_targets": 1,
        "nodes_treeids": [0] * len(order),
        "nodes_nodeids": list(range(len(order))),
        "nodes_modes": ["BRANCH_LEQ" if fork else "LEAF" for fork in forks],
        "nodes_featureids": [fork.column if fork else 0 for fork in forks],
        "nodes_values_as_tensor": onnx.numpy_helper.from_array(thresholds),
        "nodes_truenodeids": [low if f else 0 for low, f in zip(below, forks, strict=True)],
        "nodes_falsenodeids": [low + 1 if f else 0 for low, f in zip(below, forks, strict=True)],
        "nodes_missing_value_tracks_true": [int(bool(f and f.missing_is_low)) for f in forks],
        "target_treeids": [0] * len(leaves),
        "target_nodeids": leaves,
        "target_ids": [0] * len(leaves),
        "target_weights_as_tensor": onnx.numpy_helper.from_array(results),
    }


# --- inputs ---


@dataclass(frozen=True)
class _Table:
    """The features that a tree uses, as columns of a matrix: numbers, or codes of categories."""

    some_input: str
    matrix: str
    column_of: dict[str, int]

    def columns_of(self, node: NodeView) -> list[int]:
        """Columns of a node's features."""
        return [self.column_of[feature.name] for feature in node.features]


def _read_table(graph: _Graph, model: TreeOrForest, dtype: np.dtype[Any]) -> _Table:
    used = {feature.name for feature in features_read(model)}
    dtypes = [_input_dtype(feature, dtype) for feature in model.shown_features]
    if all(its_dtype == dtype for its_dtype in dtypes):
        return _read_matrix(graph, model.shown_features, used, dtype)
    names = _input_names(model.shown_features, _output_names(model))
    parts: list[str] = []
    column_of: dict[str, int] = {}
    for name, feature, its_dtype in zip(names, model.shown_features, dtypes, strict=True):
        column = graph.input(name, its_dtype, 1, feature.name)
        if feature.name in used:
            column_of[feature.name] = len(parts)
            parts.append(_as_numbers(graph, feature, column, its_dtype))
    return _Table(names[0], graph.join(parts) if parts else "", column_of)


def _read_matrix(
    graph: _Graph, features: Sequence[FeatureInfo], used: set[str], dtype: np.dtype[Any]
) -> _Table:
    """Read all features from one input; codes of categories stand behind their numbers."""
    table = graph.input("X", dtype, len(features))
    parts = [table if dtype == np.float64 else graph.cast(table, np.float64)]
    column_of = {feature.name: column for column, feature in enumerate(features)}
    for column, feature in enumerate(features):
        if feature.is_categorical and feature.name in used:
            column_of[feature.name] = len(features) + len(parts) - 1
            its_column = graph.column(parts[0], column)
            parts.append(_as_numbers(graph, feature, its_column, np.dtype(np.float64)))
    return _Table(table, graph.join(parts), column_of)


def _input_dtype(feature: FeatureInfo, dtype: np.dtype[Any]) -> np.dtype[Any]:
    levels = feature.categories or ()
    n_texts = sum(isinstance(level, str) for level in levels)
    if 0 < n_texts < len(levels):
        raise ValueError(
            f"feature {feature.name!r} has both text and numbers as categories, which no input of "
            "a model can hold; fit a tree on text or on numbers only"
        )
    if feature.is_text:
        return np.dtype(object)
    if all(map(_is_int64, levels)) and not all(_is_held(level, dtype) for level in levels):
        return np.dtype(np.int64)
    return dtype


def _is_int64(level: Any) -> bool:
    """Whether a number, or a boolean, is whole and neither too small nor too large."""
    is_whole = isinstance(level, int) or (isinstance(level, float) and level.is_integer())
    return is_whole and INT64.min <= level <= INT64.max


def _is_held(level: Level, dtype: np.dtype[Any]) -> bool:
    """Whether a type of floats has exactly this number."""
    try:
        with np.errstate(over="ignore"):
            return float(dtype.type(level)) == level
    except OverflowError:
        return False


def _as_numbers(graph: _Graph, feature: FeatureInfo, column: str, dtype: np.dtype[Any]) -> str:
    """A feature's column in double precision: its numbers, or its categories' codes."""
    if dtype.kind != "f":
        # Text, or large whole numbers.
        levels = feature.categories or ()
        keys = (
            {"keys_int64s": [int(level) for level in levels]}
            if dtype == np.int64
            else {"keys_strings": _utf8(levels, f"category of feature {feature.name!r}")}
        )
        encoded = graph.add(
            "LabelEncoder",
            column,
            domain=ML_DOMAIN,
            values_floats=[float(code) for code in range(len(levels))],
            default_float=float(MISSING_CODE),
            **keys,
        )
        return graph.cast(encoded, np.float64)
    numbers = column if dtype == np.float64 else graph.cast(column, np.float64)
    if feature.categories is None:
        return numbers
    # No value of the column equals a number that double precision does not have.
    codes = {
        float(level): code
        for code, level in enumerate(feature.categories)
        if _is_held(level, np.dtype(np.float64))
    }
    return graph.cast(graph.decide(numbers, fork_on_levels(codes)), np.float64)


def _utf8(texts: Iterable[Any], what: str) -> list[str]:
    """Texts, if they can be encoded."""
    found = [str(text) for text in texts]
    for text in found:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError(f"the {what} {text!r} is not valid Unicode; rename it") from error
    return found


def _input_names(features: Sequence[FeatureInfo], taken: Iterable[str]) -> list[str]:
    """Names of inputs: like those of the features, but identifiers, and all different."""
    known = set(taken)
    names = []
    for feature in features:
        plain = re.sub(r"\W", "_", feature.name)
        plain = plain if plain and not plain[0].isdigit() else f"_{plain}"
        variants = (f"{plain}_{number}" for number in count(2))
        name = next(name for name in chain([plain], variants) if name not in known)
        known.add(name)
        names.append(name)
    return names


# --- from the root to the leaves ---


def _leaf(graph: _Graph, view: TreeView, table: _Table) -> str:
    """Numbers of the rows' leaves, as a vector."""
    if len(view.nodes) > MAX_NODES:
        raise ValueError(
            f"the tree has {len(view.nodes)} nodes, but a model holds at most {MAX_NODES}"
        )
    levels = _levels(view)
    n_direct = _n_direct_levels(levels)
    # The numbers of the nodes that rows are at, as a float32 column.
    if n_direct:
        at = graph.decide(table.matrix, _direct_decision(view, table, n_direct))
    else:
        n_rows = graph.add("Shape", table.some_input, start=0, end=1)
        shape = graph.add("Concat", n_rows, graph.constant([1], np.int64), axis=0)
        at = graph.add("ConstantOfShape", shape)
    for nodes in levels[n_direct:]:
        at = _Level(graph, table, nodes, at).next_nodes()
    return graph.vector(at, np.int64)


def _levels(view: TreeView) -> list[list[NodeView]]:
    """Nodes that split, by their depth."""
    levels = defaultdict(list)
    for node in view.nodes:
        if not node.is_leaf:
            levels[node.depth].append(node)
    return [levels[depth] for depth in range(len(levels))]


def _n_direct_levels(levels: Sequence[Sequence[NodeView]]) -> int:
    """How many levels next to the root are decided at once: none with pairs, nor too many tests."""
    n_ways = Counter({0: 1})
    n_tests = 0
    for depth, nodes in enumerate(levels):
        for node in nodes:
            if len(node.features) > 1:
                return depth
            branches = Counter(pieces_of(node)[1])
            n_tests += n_ways[node.number] * branches.total()
            for branch, child in enumerate(node.children):
                # A branch without a piece is that of missing values.
                n_ways[child] += n_ways[node.number] * max(branches[branch], 1)
        if n_tests > MAX_DIRECT_TESTS and depth > 0:
            return depth
    return len(levels)


def _direct_decision(view: TreeView, table: _Table, n_levels: int) -> Decision:
    decisions: dict[int, Decision] = {}
    for node in reversed(view.nodes):  # children have greater numbers than their parents
        if node.is_leaf or node.depth >= n_levels:
            decisions[node.number] = node.number
        else:
            (column,) = table.columns_of(node)
            decisions[node.number] = fork_on_feature(node, column, decisions.__getitem__)
    return decisions[0]


class _Level:
    """A step of all rows at some nodes of one depth to these nodes' children.

    Each row's node has a line in several tables, by its number: which columns it reads, where the
    places of its categories start, and how it weighs its pair.
    """

    def __init__(self, graph: _Graph, table: _Table, nodes: Sequence[NodeView], at: str) -> None:
        self._graph, self._table, self._nodes, self._at = graph, table, nodes, at
        self._first, self._last = nodes[0].number, nodes[-1].number
        self._n_lines = self._last - self._first + 1
        self._pairs = [node for node in nodes if len(node.features) == 2]
        self._n_values = 2 if self._pairs else 1
        self._weights = {node.number: oblique_weights(node) for node in self._pairs}
        # Rows that are in a leaf already get any line; its result is ignored.
        limits = [graph.constant(number, np.int64) for number in (self._first, self._last)]
        nearest = graph.add("Clip", graph.vector(at, np.int64), *limits)
        self._line = graph.add("Sub", nearest, limits[0])

    def next_nodes(self) -> str:
        """Numbers of the nodes that rows are at after the step."""
        graph = self._graph
        values = self._values()
        if any(feature.is_categorical for node in self._pairs for feature in node.features):
            values = self._with_places(values)
        parts = [graph.cast(self._at, np.float64), values]
        if any(self._weights.values()):
            parts.append(self._sums(values))
        # Children have greater numbers than their parents; the result 0 stands for no step.
        return graph.add("Max", self._at, graph.decide(graph.join(parts), self._decision()))

    def _look_up(self, lines: np.ndarray) -> str:
        return self._graph.add("Gather", self._graph.constant(lines, lines.dtype), self._line)

    def _values(self) -> str:
        """Values of the features of each row's node."""
        columns = np.zeros((self._n_lines, self._n_values), dtype=np.int64)
        for node in self._nodes:
            its_columns = self._table.columns_of(node)
            columns[node.number - self._first, : len(its_columns)] = its_columns
        index = self._look_up(columns)
        return self._graph.add("GatherElements", self._table.matrix, index, axis=1)

    def _with_places(self, values: str) -> str:
        """The values, with positions instead of codes for the categories of pairs."""
        graph = self._graph
        starts = np.zeros((self._n_lines, 2), dtype=np.int64)
        places = [math.nan]
        for node in self._pairs:
            for side, feature in enumerate(node.features):
                if feature.is_categorical:
                    places.append(math.nan)  # where the code of missing values leads
                    starts[node.number - self._first, side] = len(places)
                    places += places_of(node, side)
        start = self._look_up(starts)
        is_code = graph.add("Greater", start, graph.constant(0, np.int64))
        codes = graph.add("Where", is_code, values, graph.constant(0, np.float64))
        index = graph.add("Add", start, graph.cast(codes, np.int64))
        place = graph.add("Gather", graph.constant(places, np.float64), index)
        return graph.add("Where", is_code, place, values)

    def _sums(self, values: str) -> str:
        """Weighted sums of the two values."""
        graph = self._graph
        weights = np.ones((2, self._n_lines, max(map(len, self._weights.values()))))
        for number, its_weights in self._weights.items():
            for i, pair in enumerate(its_weights):
                weights[:, number - self._first, i] = pair
        limits = [graph.constant(limit, np.float64) for limit in (-GREATEST, GREATEST)]
        finite = graph.add("Clip", values, *limits)
        first, second = (graph.column(finite, side) for side in range(2))
        sums = graph.add("Mul", second, self._look_up(weights[1]))
        if (weights[0] != 1).any():
            first = graph.add("Mul", first, self._look_up(weights[0]))
        return graph.add("Add", first, sums)

    def _decision(self) -> Decision:
        """First which node a row is at, then its tests."""
        uppers: list[float] = []
        results: list[Decision] = []
        for node in self._nodes:
            if not uppers or uppers[-1] < node.number - 1:
                uppers.append(node.number - 1)
                results.append(0)
            uppers.append(node.number)
            results.append(self._fork(node))
        return search(0, [*uppers, math.inf], [*results, 0])

    def _fork(self, node: NodeView) -> Decision:
        if len(node.features) == 1:
            return fork_on_feature(node, 1, int)
        sums = {weights: 3 + i for i, weights in enumerate(self._weights[node.number])}
        return fork_on_pair(node, (1, 2), sums, int)


# --- outputs ---


def _output_names(model: TreeOrForest | TreeView) -> list[str]:
    if model.classes is None:
        return ["variable"]
    suffixes = [f"_{output}" for output in range(model.n_outputs)] if model.n_outputs > 1 else [""]
    return [f"{kind}{suffix}" for suffix in suffixes for kind in ("label", "probabilities")]


def _add_classes(
    graph: _Graph,
    view: TreeView,
    classes: Sequence[tuple[Any, ...]],
    leaf: str,
    dtype: np.dtype[Any],
) -> None:
    """Add the outputs of a classifier."""
    names = iter(_output_names(view))
    for output, labels in enumerate(classes):
        predicted = [node.prediction[output] for node in view.nodes]
        shares = np.stack([node.value[output, : len(labels)] for node in view.nodes])
        graph.look_up(next(names), _written_labels(labels, predicted), leaf)
        graph.look_up(next(names), shares.astype(dtype), leaf)


def _written_labels(labels: Sequence[Any], predicted: Sequence[Any]) -> np.ndarray:
    """Some of the classes of a target, as whole numbers or texts."""
    if all(map(_is_int64, labels)):
        return np.array(predicted, dtype=np.int64)
    return np.array(_utf8(predicted, "class"), dtype=object)


def _add_means(graph: _Graph, model: TreeOrForest, table: _Table, dtype: np.dtype[Any]) -> None:
    """Add the outputs of a forest, whose trees' values are added up in their order."""
    total = ""
    for view in views_of(model):
        values = np.stack([node.value.ravel() for node in view.nodes])
        leaf = _leaf(graph, view, table)
        found = graph.add("Gather", graph.constant(values, np.float64), leaf)
        total = graph.add("Add", total, found) if total else found
    mean = graph.add("Div", total, graph.constant(len(model.trees), np.float64))
    if model.shown_classes is None:
        graph.output("variable", mean, dtype, model.n_outputs)
        return
    names = iter(_output_names(model))
    width = values.shape[1] // model.n_outputs
    for output, labels in enumerate(model.shown_classes):
        columns = graph.constant(output * width + np.arange(len(labels)), np.int64)
        shares = graph.add("Gather", mean, columns, axis=1)
        likeliest = graph.add("ArgMax", shares, axis=1, keepdims=0)
        graph.look_up(next(names), _written_labels(labels, labels), likeliest)
        graph.output(next(names), shares, dtype, len(labels))
