"""A tree or a forest as Python source that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Any

from shapetree._files import PathLike, write_file
from shapetree.data._columns import GREATEST, Level
from shapetree.export._routes import (
    Check,
    Plan,
    Way,
    plan_for,
    remark,
    require_plain,
    used_features,
)
from shapetree.tree._fitted import FittedForest, TreeOrForest
from shapetree.tree._from_estimator import HoldsModel, fitted_model
from shapetree.tree._regions import Bound
from shapetree.tree._view import NodeView, TreeView, views_of

INDENT = "    "
# A condition that would make a longer line has a line for each of its ways.
MAX_WIDTH = 100
# The values of a node's features.
VARIABLES = ("x", "y")

INTRODUCTION = '''"""A {what}, written by shapetree; it needs nothing but Python.

A row is a dict by feature name. A value that is None, NaN or not in the dict is missing.
"""
'''

PREDICT_NUMBER = '''

def predict(row):
    """Prediction for a row."""
    return {outcome}
'''

PREDICT_CLASS = '''
CLASSES = {classes}


def predict(row):
    """Most probable class of a row."""
    shares = predict_proba(row)
    return CLASSES[shares.index(max(shares))]


def predict_proba(row):
    """Probabilities of CLASSES."""
    return {outcome}
'''

PREDICT_CLASSES = '''
CLASSES = {classes}


def predict(row):
    """Most probable class of a row, for each target."""
    targets = zip(CLASSES, predict_proba(row))
    return tuple(classes[shares.index(max(shares))] for classes, shares in targets)


def predict_proba(row):
    """Probabilities of CLASSES, for each target."""
    return {outcome}
'''

REASONS = '''

def reasons(row):
    """Features on the path of a row, from the root on."""
    return LEAVES[leaf(row)][1]


def leaf(row):
    """Number of a row's leaf."""
'''

LEAVES = """
# What each leaf predicts, and the features on the path to it.
LEAVES = {
%s}
"""

FOREST_LEAVES = """
# What the leaves of each tree predict.
LEAVES = (
%s)
"""

MEAN = '''

def leaves(row):
    """Number of a row's leaf in each tree."""
    return tuple(leaf(row) for leaf in TREES)


def _mean(row):
    """What trees predict on the mean."""
    sums = [0.0] * {n_values}
    for number, values in zip(leaves(row), LEAVES):
        for i, value in enumerate(values[number]):
            sums[i] += value
    return tuple(total / len(TREES) for total in sums)
'''

NUMBER = '''

def _number(row, name):
    """A number, or NaN if it is missing."""
    value = row.get(name)
    return float("nan") if value is None else float(value)
'''

CATEGORY = '''

def _category(row, name):
    """A category, in double precision if it is a fraction of any other."""
    value = row.get(name)
    is_fraction = hasattr(value, "__float__") and not hasattr(value, "__index__")
    return float(value) if is_fraction else value
'''

DATE = '''

def _seconds(row, name):
    """A date, or its seconds since 1970-01-01 00:00 UTC, as a number; NaN if it is missing."""
    value = row.get(name)
    if value is None or value != value:
        return float("nan")
    if not hasattr(value, "toordinal"):
        return float(value)
    seconds, microseconds = 86400 * (value.toordinal() - 719163), 0
    if hasattr(value, "hour"):
        seconds += 3600 * value.hour + 60 * value.minute + value.second
        microseconds = value.microsecond
        offset = value.utcoffset()
        if offset is not None:
            seconds -= 86400 * offset.days + offset.seconds
            microseconds -= offset.microseconds
    return (1000000 * seconds + microseconds) / 1e6
'''

FINITE = f'''

def _finite(row, name):
    """A number, infinite ones as the greatest finite ones."""
    return min(max(_number(row, name), -{GREATEST!r}), {GREATEST!r})
'''

# Functions that are written if they are called, in this order.
HELPERS = {"_category(": CATEGORY, "_seconds(": DATE, "_number(": NUMBER, "_finite(": FINITE}


def export_python(estimator: HoldsModel, path: PathLike | None = None) -> str:
    """Write a fitted tree or forest as Python source that runs without any package.

    The source defines ``predict(row)`` and, for classes, ``predict_proba(row)``, which gives the
    probabilities of its ``CLASSES``. ``leaf(row)`` gives the number of a row's leaf, as `apply`
    does, and ``reasons(row)`` the names of the features on the path to it. A row is a dict by
    feature name; further entries are ignored. A value that is None, NaN or absent is missing.
    Numbers may be of any type that ``float`` reads, categories are compared as Python values. A
    date may be a ``datetime`` or ``date`` of Python, or a number of seconds since 1970-01-01 00:00
    UTC. Every row gets exactly what the estimator predicts; with several targets, a tuple.

    The source of a forest has ``leaves(row)`` instead of ``leaf`` and ``reasons``: the numbers of a
    row's leaves in all trees.

    Parameters
    ----------
    estimator : ShapeTreeClassifier, ShapeTreeRegressor, ShapeForestClassifier or \
            ShapeForestRegressor
        A fitted estimator.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.

    Returns
    -------
    str
        The source.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier
    >>> from shapetree.export import export_python
    >>> iris = load_iris(as_frame=True)
    >>> species = iris.target_names[iris.target]
    >>> tree = ShapeTreeClassifier(max_depth=1).fit(iris.data, species)
    >>> source = export_python(tree)
    >>> print(source[source.index("def leaf") : source.index("def _number")].rstrip())
    def leaf(row):
        \"\"\"Number of a row's leaf.\"\"\"
        x = _number(row, 'petal width (cm)')
        if x <= 0.8:
            return 1  # 'setosa'
        if x > 1.75:
            return 3  # 'virginica'
        return 2  # 'versicolor'
    >>> module = {}
    >>> exec(source, module)
    >>> module["predict"]({"petal width (cm)": 0.2})
    'setosa'
    """
    model = fitted_model(estimator)
    source = _source(model)
    write_file(path, source, "the Python source")
    return source


def _source(model: TreeOrForest) -> str:
    used_features(model)  # refuses names that are the same
    said = remark(model)
    what = "forest of decision trees" if isinstance(model, FittedForest) else "decision tree"
    body = _forest(model) if isinstance(model, FittedForest) else _tree(model)
    called = body + (FINITE if "_finite(" in body else "")  # which calls _number
    helpers = [text for name, text in HELPERS.items() if name in called]
    comment = f"# It {said}.\n" if said else ""
    return "".join([INTRODUCTION.replace("{what}", what), comment, body, *helpers])


def _tree(model: TreeOrForest) -> str:
    """What a tree's leaves predict, and functions that find them."""
    (view,) = views_of(model)
    leaves = [node for node in view.nodes if node.is_leaf]
    table = LEAVES % "".join(f"{INDENT}{leaf.number}: {_outcome(view, leaf)},\n" for leaf in leaves)
    return table + _opening(model, "LEAVES[leaf(row)][0]") + REASONS + _body(view, _leaf)


def _forest(model: TreeOrForest) -> str:
    """What the leaves of all trees predict, functions that find them, and their means."""
    sizes = (
        [1] * model.n_outputs
        if model.shown_classes is None
        else list(map(len, model.shown_classes))
    )
    tables, functions = [], []
    for number, view in enumerate(views_of(model)):
        leaves = [
            f"{leaf.number}: {_tuple(map(_literal, _values(leaf, sizes)))}"
            for leaf in view.nodes
            if leaf.is_leaf
        ]
        tables.append(f"{INDENT}{{{', '.join(leaves)}}},\n")
        body = _body(view, lambda leaf: str(leaf.number))
        functions.append(f"\n\ndef _leaf_{number}(row):\n{body}")
    ends = list(accumulate(sizes, initial=0))
    parts = [f"mean[{start}:{stop}]" for start, stop in pairwise(ends)]
    outcome = "_mean(row)"
    if model.n_outputs == 1:
        outcome += "[0]" if model.shown_classes is None else ""
    elif model.shown_classes is not None:
        outcome = f"(lambda mean: {_tuple(parts)})(_mean(row))"
    every = _tuple(f"_leaf_{number}" for number in range(len(model.trees)))
    return "".join(
        [
            FOREST_LEAVES % "".join(tables),
            _opening(model, outcome),
            MEAN.replace("{n_values}", str(sum(sizes))),
            *functions,
            f"\n\nTREES = {every}\n",
        ]
    )


def _values(leaf: NodeView, sizes: Sequence[int]) -> Iterator[float]:
    """What a leaf predicts of all targets, one after the other."""
    for values, size in zip(leaf.value, sizes, strict=True):
        yield from values[:size].tolist()


def _body(view: TreeView, outcome: Callable[[NodeView], str]) -> str:
    """The lines of a function that finds a row's leaf."""
    return "".join(f"{line}\n" for line in _lines(plan_for(view, outcome), INDENT))


def _opening(model: TreeOrForest, outcome: str) -> str:
    """The functions that predict."""
    if model.shown_classes is None:
        return PREDICT_NUMBER.replace("{outcome}", outcome)
    classes = [_tuple(map(_literal, labels)) for labels in model.shown_classes]
    predict = PREDICT_CLASS if len(classes) == 1 else PREDICT_CLASSES
    predict = predict.replace("{outcome}", outcome)
    return predict.replace("{classes}", classes[0] if len(classes) == 1 else _tuple(classes))


# --- outcomes ---


def _leaf(leaf: NodeView) -> str:
    """The number of a leaf, and what it predicts."""
    # The text of a label is safe in a comment, as it holds no line ends.
    return f"{leaf.number}  # {', '.join(map(_literal, leaf.prediction))}"


def _outcome(view: TreeView, leaf: NodeView) -> str:
    """What is known of a leaf: what it predicts, and what leads to it."""
    return f"({_predicted(view, leaf)}, {_tuple(map(_literal, view.reasons(leaf.number)))})"


def _predicted(view: TreeView, leaf: NodeView) -> str:
    """A number, shares of the classes, or a tuple of either."""
    if view.classes is None:
        numbers = [_literal(number) for number in leaf.prediction]
        return numbers[0] if len(numbers) == 1 else _tuple(numbers)
    shares = [
        _tuple(_literal(share) for share in its_shares[: len(labels)].tolist())
        for its_shares, labels in zip(leaf.value, view.classes, strict=True)
    ]
    return shares[0] if len(shares) == 1 else _tuple(shares)


def _tuple(items: Any) -> str:
    listed = list(items)
    if not listed:
        return "()"
    return f"({listed[0]},)" if len(listed) == 1 else f"({', '.join(listed)})"


def _literal(value: Any) -> str:
    """A label, a category or a number as Python reads it."""
    require_plain(value, "Python")
    if isinstance(value, str):
        return repr(str.__str__(value))  # as the plain text that it is
    if not isinstance(value, bool):
        # Other types of numbers may say more in their `repr`.
        value = int(value) if isinstance(value, int) else float(value)
    return repr(value) if math.isfinite(value) else f'float("{value}")'


# --- checks ---


def _lines(plan: Plan, indent: str) -> Iterator[str]:
    node = None
    for check, then in plan.steps:
        if check.node is not node:
            node = check.node
            yield from (indent + line for line in _reading(node))
        yield from (indent + line for line in _if(check, len(indent)))
        yield from _lines(then, indent + INDENT)
    yield f"{indent}return {plan.otherwise}"


def _reading(node: NodeView) -> Iterator[str]:
    """Lines that read a node's features."""
    number = "_finite" if node.regions else "_number"
    for variable, feature in zip(VARIABLES, node.features, strict=False):
        read, name = number, _literal(feature.name)
        if feature.is_date:
            read = "_seconds"
        elif feature.categories is not None:
            read = "_category" if any(isinstance(c, float) for c in feature.categories) else ""
        yield f"{variable} = {read}(row, {name})" if read else f"{variable} = row.get({name})"
    if node.regions:
        yield f"known = {_known(node, 0)} and {_known(node, 1)}"


def _if(check: Check, indent: int) -> Iterator[str]:
    is_pair = bool(check.node.regions)
    ways = [_way(way, check.node, len(check.ways) > 1) for way in check.ways]
    known = "known and " if is_pair else ""
    start, end = ("not (", ")") if check.is_negated else ("", "")
    held = " or ".join(ways)
    if is_pair and len(ways) > 1:
        held = f"({held})"
    line = f"if {start}{known}{held}{end}:"
    if indent + len(line) <= MAX_WIDTH or len(ways) == 1:
        yield line
        return
    yield f"if {start}{known}("
    for number, way in enumerate(ways):
        yield f"{INDENT}or {way}" if number else f"{INDENT}{way}"
    yield f"){end}:"


def _way(way: Way, node: NodeView, is_one_of_several: bool) -> str:
    bounds = [_bound(bound) for bound in way] or [_known(node, 0)]
    held = " and ".join(bounds)
    return f"({held})" if is_one_of_several and len(bounds) > 1 else held


def _bound(bound: Bound) -> str:
    side = bound.side
    quantity = _sum(bound.weights) if side is None else VARIABLES[side]
    if bound.categories is not None:
        return f"{quantity} in {_set(bound.categories)}"
    if bound.high == math.inf:
        return f"{quantity} > {_literal(bound.low)}"
    low = "" if bound.low == -math.inf else f"{_literal(bound.low)} < "
    return f"{low}{quantity} <= {_literal(bound.high)}"


def _sum(weights: tuple[float, float]) -> str:
    """The weighted sum of a pair's values."""
    (a, b), (first, second) = weights, VARIABLES
    if a == 0:
        return f"{_literal(b)} * {second}"
    return f"{first} {'-' if b < 0 else '+'} {_literal(abs(b))} * {second}"


def _known(node: NodeView, side: int) -> str:
    """Condition that a feature is not missing."""
    name = VARIABLES[side]
    if node.features[side].is_categorical:
        return f"{name} in {_set(node.known_categories(side))}"
    return f"{name} == {name}"


def _set(categories: tuple[Level, ...]) -> str:
    return "{" + ", ".join(map(_literal, categories)) + "}" if categories else "()"
