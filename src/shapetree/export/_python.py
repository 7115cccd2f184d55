"""A tree as Python source that needs nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from shapetree._files import PathLike, write_file
from shapetree.data._columns import Level
from shapetree.export._routes import (
    Check,
    Plan,
    Way,
    plan_for,
    remark,
    used_features,
)
from shapetree.tree._fitted import HoldsTree, fitted_tree
from shapetree.tree._regions import GREATEST, Bound
from shapetree.tree._view import NodeView, TreeView, view_of

INDENT = "    "
# A condition that would make a longer line has a line for each of its ways.
MAX_WIDTH = 100
# The values of a node's features.
VARIABLES = ("x", "y")

INTRODUCTION = '''"""A decision tree, written by shapetree; it needs nothing but Python.

A row is a dict by feature name. A value that is None, NaN or not in the dict is missing.
"""
'''

PREDICT_NUMBER = '''

def predict(row):
    """Prediction for a row."""
    return LEAVES[leaf(row)][0]
'''

PREDICT_CLASS = '''
CLASSES = {classes}


def predict(row):
    """Most probable class of a row."""
    shares = predict_proba(row)
    return CLASSES[shares.index(max(shares))]


def predict_proba(row):
    """Probabilities of CLASSES."""
    return LEAVES[leaf(row)][0]
'''

PREDICT_CLASSES = '''
CLASSES = {classes}


def predict(row):
    """Most probable class of a row, for each target."""
    targets = zip(CLASSES, predict_proba(row))
    return tuple(classes[shares.index(max(shares))] for classes, shares in targets)


def predict_proba(row):
    """Probabilities of CLASSES, for each target."""
    return LEAVES[leaf(row)][0]
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


def export_python(
    estimator: HoldsTree,
    path: PathLike | None = None,
    *,
    feature_names: Sequence[str] | None = None,
    class_names: Any = None,
    target_name: str | None = None,
    units: Mapping[str, str] | None = None,
) -> str:
    """Write a fitted tree as Python source that runs without any package.

    The source defines ``predict(row)`` and, for classes, ``predict_proba(row)``, which gives the
    probabilities of its ``CLASSES``. ``leaf(row)`` gives the number of a row's leaf, as `apply`
    does, and ``reasons(row)`` the names of the features on the path to it. A row is a dict by
    feature name; further entries are ignored. A value that is None, NaN or absent is missing.
    Numbers may be of any type that ``float`` reads, categories are compared as Python values. A
    date may be a ``datetime`` or ``date`` of Python, or a number of seconds since 1970-01-01 00:00
    UTC. Every row gets exactly what the estimator predicts; with several targets, a tuple.

    Parameters
    ----------
    estimator : ShapeTreeClassifier or ShapeTreeRegressor
        A fitted estimator.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.
    feature_names : list of str, optional
        Names to show for the features, in the order of the columns.
    class_names : list of str, or mapping from class labels to names, optional
        Names to show for the classes, in the order of `classes_`.
    target_name : str, optional
        Name of the target; by default the name of `y` in `fit`.
    units : mapping from str to str, optional
        Units of features or of the target, by name; they are shown next to the names.

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
    fitted = fitted_tree(estimator, feature_names, class_names, target_name, units)
    view = view_of(fitted, with_units=False)
    source = _source(view, remark(fitted.names, view))
    if path is not None:
        write_file(path, source, "the Python source")
    return source


def _source(view: TreeView, said: str) -> str:
    used_features(view)  # refuses names that are the same
    leaves = [node for node in view.nodes if node.is_leaf]
    table = LEAVES % "".join(f"{INDENT}{leaf.number}: {_outcome(view, leaf)},\n" for leaf in leaves)
    plan = plan_for(view, _leaf)
    body = "".join(f"{line}\n" for line in _lines(plan, INDENT))
    finite = FINITE if "_finite(" in body else ""
    number = NUMBER if finite or "_number(" in body else ""
    category = CATEGORY if "_category(" in body else ""
    date = DATE if "_seconds(" in body else ""
    comment = f"# It {said}.\n" if said else ""
    return "".join(
        [
            INTRODUCTION,
            comment,
            table,
            _opening(view),
            REASONS,
            body,
            category,
            date,
            number,
            finite,
        ]
    )


def _opening(view: TreeView) -> str:
    """The functions that predict."""
    if view.classes is None:
        return PREDICT_NUMBER
    classes = [_tuple(map(_literal, labels)) for labels in view.classes]
    predict = PREDICT_CLASS if len(classes) == 1 else PREDICT_CLASSES
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
    if not isinstance(value, str | bool | int | float):
        raise TypeError(
            f"classes must be text, numbers or bools to be written as Python, got {value!r}"
        )
    if isinstance(value, str):
        return repr(str.__str__(value))  # as the plain text that it is
    value = _plain_number(value)
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _plain_number(value: bool | int | float) -> bool | int | float:
    """The same number, of one of Python's own types: others may say more in their `repr`."""
    if isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else float(value)


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
