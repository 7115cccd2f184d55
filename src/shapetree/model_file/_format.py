"""What a model file holds: one declaration, from which reading, writing and the schema follow."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

from shapetree.data._moments import DateKind
from shapetree.data._open import MAX_ROWS
from shapetree.data._shares import MOST_STEPS
from shapetree.data._table import FeatureInfo
from shapetree.model_file._check import Json
from shapetree.model_file._kinds import (
    ANY_NUMBER,
    INT32,
    TEXT,
    VERSION,
    AnyOf,
    Boolean,
    ByName,
    CategoryOrLabel,
    Choice,
    Integer,
    Kind,
    ListOf,
    Number,
    Object,
    OneOf,
    Parameter,
    Text,
)
from shapetree.tree._fitted import TreeOrForest
from shapetree.tree._sketch import MAX_DENSE

FORMAT = "shapetree-model"
# What a file may hold, and the estimators of each kind: for classes, and for numbers.
KINDS = {
    "tree": ("ShapeTreeClassifier", "ShapeTreeRegressor"),
    "forest": ("ShapeForestClassifier", "ShapeForestRegressor"),
}
# What features of numbers hold, and which dates some of them are; the rest are categories.
NUMBER_KINDS = ("number", "whole")
DATE_KINDS: dict[DateKind, str] = {"day": "date", "time": "time", "utc": "utc"}
# NumPy's names of the types of class labels.
LABEL_TYPES = r"\|b1|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U[1-9][0-9]{0,6}|\|O"
MAX_BRANCHES = 254
ROWS = Integer(1, MAX_ROWS)

# Memory of class labels: in any case, and for each byte of the file.
LABEL_BYTES, LABEL_BYTES_PER_BYTE = 2**20, 8
# Trees of a forest, each of which takes memory even if it is a single leaf: in any case, and bytes
# of the file for each further one.
MOST_TREES, BYTES_PER_TREE = 1_000, 250


@dataclass(frozen=True, eq=False)
class Model:
    """What a model file holds."""

    estimator: str  # name of its class
    parameters: dict[str, Any]  # of the estimator
    fitted: TreeOrForest


class Frame(NamedTuple):
    """What the nodes of a model must fit; a schema knows no features, and sizes are None then."""

    has_classes: bool
    has_sketches: bool
    features: tuple[FeatureInfo, ...] = ()
    n_outputs: int | None = None
    n_classes: list[int] | None = None
    n_target_cells: int | None = None
    steps: int = 1

    @property
    def n_values(self) -> int | None:
        """Numbers that a node predicts for each output."""
        if self.has_classes:
            return None if self.n_classes is None else max(self.n_classes)
        return 1

    @property
    def n_groups(self) -> int | None:
        """Columns of a density's counts."""
        if self.has_classes:
            return None if self.n_classes is None else self.n_classes[0]
        return 1

    @property
    def n_counts(self) -> int | None:
        """Counts of a node's sketch."""
        return self.n_groups if self.has_classes else self.n_target_cells


def max_label_bytes(n_bytes: int) -> int:
    """Most memory that the class labels of a file of some size may take.

    Texts of NumPy's are all as long as the longest may be, whatever the file says of them.
    """
    return LABEL_BYTES + LABEL_BYTES_PER_BYTE * n_bytes


def max_trees(n_bytes: int) -> int:
    """Most trees of a forest in a file of some size."""
    return MOST_TREES + n_bytes // BYTES_PER_TREE


@cache
def file_kind(kind: str, class_name: str, is_single: bool) -> Object:
    """A file of an estimator for one target, or for several."""
    has_classes = class_name == KINDS[kind][0]
    criteria = ("gini", "entropy") if has_classes else ("squared_error", "absolute_error")
    # Trees of a forest have no sketches.
    has_sketches = is_single and kind == "tree"
    nodes = ListOf(AnyOf(tuple(node_kinds(Frame(has_classes, has_sketches)).values())), least=1)
    required: dict[str, Kind] = {
        "format": Choice((FORMAT,)),
        "version": Integer(VERSION, VERSION),
        "kind": Choice((kind,)),
        "library_version": TEXT,
        "estimator": Choice((class_name,)),
        "parameters": ByName(Parameter()),
        "criterion": Choice(criteria),
        "shrinkage": Number(0, special=("Infinity",)),
        "has_names": Boolean(),
        "features": ListOf(OneOf((ORDERED_FEATURE, CATEGORICAL_FEATURE)), least=1),
        "target": _target_kind(has_classes, is_single, has_steps=has_sketches),
    }
    optional: dict[str, Kind] = {"names": _names_kind(has_classes)}
    if kind == "forest":
        required["trees"] = ListOf(nodes, least=1)
        required["seed"] = Integer(0, INT32)
        required["contents"] = Integer(0, 2**64 - 1)
        optional["oob_score"] = ANY_NUMBER
    else:
        required["nodes"] = nodes
        of_nodes = ListOf(AnyOf(stability_kinds(has_classes)), least=1)
        optional |= {
            "strength": Number(0),
            "history": ListOf(ANY_NUMBER),
            "held_out": HELD_OUT,
            "why_single_leaf": TEXT,
            "taught": Number(high=1, is_positive=True),
            "stability": Object(
                {"resamples": ROWS, "nodes": of_nodes},
                about="""
                What trees fitted to halves of the tree's rows have in common with it.

                resamples: Number of halves that a tree was fitted to.
                nodes: For each node of the tree.
                """,
            ),
        }
    return Object(required, optional, about=ABOUT_FILE)


ABOUT_FILE = """
format: Marks the file as what it is.
version: Version of this format. It grows whenever a reader of the version before would misread a
    file.
kind: What the file holds: one tree, or a forest.
library_version: Version of the library that has written the file, for information.
estimator: Class of the estimator: classifiers predict classes, regressors numbers.
parameters: Parameters that the estimator was made with, by name. Those that are left out have their
    defaults.
criterion: Criterion that trees were grown by. squared_error predicts means, absolute_error medians.
shrinkage: How much the nodes' values were drawn towards their parents' values; `value` includes it
    already.
has_names: Whether the columns of the training table had names. If not, features are called x0, x1,
    … or after whatever their columns were labelled with.
features: Columns of the table, in their order. Rows to predict have the same columns; splits refer
    to them by index, from 0.
target: What is predicted.
nodes: Nodes of the tree, level by level from the root; see the description of this schema for how
    children are found.
trees: Nodes of each tree of a forest, level by level from its root. Each tree has drawn rows for
    itself; `rows` of its nodes are those it has drawn, as often as it has drawn them.
seed: Number by which a forest's trees have drawn rows and features.
contents: A number that follows from what a forest's training rows hold, by which they are known
    again.
oob_score: Score of a forest's predictions for training rows by trees that have not drawn them.
strength: What the tree's penalties were multiplied by, if the data chose it; else the parameter of
    that name, or 1, says so.
history: Training loss of the tree before and after each sweep of its refinement.
why_single_leaf: Why the tree has no split, in words; only if it has none.
taught: How much of what the tree was fitted to was a teacher's; only if it had one.
"""


def stability_kinds(has_classes: bool, n_outputs: int | None = None) -> tuple[Object, Object]:
    """What resamples tell of a leaf, and of a node that splits."""
    leaf: dict[str, Kind] = {
        "deviation": ListOf(Number(0, special=("NaN", "Infinity")), n_outputs, least=1)
    }
    if has_classes:
        leaf = {"agreement": Number(0, 1, special=("NaN",))}
    n_resamples = Integer(0, MAX_ROWS)
    about = """
    agreement: Of the predictions for the node's rows by trees that have not drawn them, the share
        that is the same as the tree's; NaN if there is none.
    deviation: For each output, the root mean square of the differences of these predictions from
        the tree's; NaN if there is none.
    same_feature: How many of the trees split more than half of the node's rows on the same feature,
        or pair, in one node.
    similar_split: How many of these send at least 90 % of its rows the same way there.
    """
    split = {**leaf, "same_feature": n_resamples, "similar_split": n_resamples}
    return Object(leaf, about=about), Object(split, about=about)


def _names_kind(has_classes: bool) -> Object:
    names = ListOf(TEXT, least=1, are_distinct=True)
    return Object(
        {},
        {
            "features": names,
            **({"classes": ListOf(names, least=1)} if has_classes else {}),
            "targets": ListOf(TEXT, least=1),
            "units": ByName(TEXT),
        },
        about="""
        What to call features, classes and targets where the tree is shown, if not as they are
        called elsewhere in this file. Rows to predict still have the columns named in `features`,
        and predictions are the labels in `target`.

        features: A name for each feature.
        classes: For each output, a name for each label.
        targets: A name for each output.
        units: Units of features and targets, by the names under which they are shown.
        """,
    )


UNSEEN_LEAF = Object(
    {"leaf": Integer(0, INT32), "rows": ROWS, "value": ListOf(ANY_NUMBER, 3)},
    about="""
    leaf: Number of a leaf.
    rows: How many of these rows come to it.
    value: The share of the predicted class among them, or their mean or median, and the ends of its
        interval at a level of 95 %.
    """,
)
HELD_OUT = Object(
    {"rows": ROWS, "scores": ByName(ANY_NUMBER, least=1)},
    {"leaves": ListOf(UNSEEN_LEAF)},
    title="held_out",
    about="""
    How good the tree was on rows that it was not fitted on.

    rows: Number of these rows.
    scores: Scores by name, the chief one first: `accuracy` and `balanced_accuracy`, or `r2` and
        `mean_absolute_error`; `fidelity`, the accuracy or R² of the tree's predictions for those of
        its teacher.
    leaves: What these rows tell of each leaf that they come to.
    """,
)
ORDERED_FEATURE = Object(
    {
        "name": TEXT,
        "kind": Choice((*NUMBER_KINDS, *DATE_KINDS.values())),
        "scale": Number(is_positive=True),
    },
    {"range": ListOf(ANY_NUMBER, 2, ascends=True)},
    title="ordered_feature",
    about="""
    kind: Whether the column held any numbers; by its type, whole ones only; whole days; moments
        without a time zone; or moments in UTC. The last three are seconds since 1970-01-01 00:00,
        and stand in no pair. All are routed the same.
    scale: Standard deviation in training if the tree uses the feature, else 1; to compare changes
        of different features.
    range: Least and greatest number in training, if the tree uses the feature and training rows had
        it.
    """,
)
CATEGORICAL_FEATURE = Object(
    {
        "name": TEXT,
        "kind": Choice(("category", "ordered")),
        "categories": ListOf(CategoryOrLabel(), are_distinct=True),
    },
    {"held_text": Choice((True,))},
    title="categorical_feature",
    about="""
    kind: Ordered categories stand in an order of their own, and nodes part them into runs of it.
    categories: The distinct categories of training. A row's code is the index of its category here.
        A value that is not among them is unknown, and is treated as a missing one. A feature that
        no split uses has none here.
    held_text: The feature has no `categories`, as no split uses it, but had some that were texts.
    """,
)


def _target_kind(has_classes: bool, is_single: bool, has_steps: bool) -> Object:
    """What is predicted."""
    least, most = (1, 1) if is_single else (2, INT32)
    about = """
    n_outputs: Number of targets.
    edges: Bounds, ascending, of the cells that sketches count the target in; only and always if
        there is one target.
    outputs: One item for each target.
    steps: Only if rows have shares of the classes: sketches then count so many steps for each row,
        of which every class has its share. Only in a tree of one target.
    """
    if not has_classes:
        edges = {"edges": ListOf(Number(), least=2, ascends=True)} if is_single else {}
        kind, n_outputs = Choice(("numbers",)), Integer(least, most)
        return Object({"kind": kind, "n_outputs": n_outputs, **edges}, about=about)
    outputs = ListOf(LABELS, 1 if is_single else None, least=least)
    steps = {"steps": Integer(2, MOST_STEPS)} if has_steps else {}
    return Object({"kind": Choice(("classes",)), "outputs": outputs}, steps, about=about)


LABELS = Object(
    {
        "type": Text(LABEL_TYPES, "NumPy's name of a type of labels"),
        "labels": ListOf(CategoryOrLabel(), least=1),
    },
    title="labels",
    about="""
    The classes of one output.

    type: NumPy's name of the labels' type: |b1 for truth values, i, u and f for numbers of so many
        bytes, U for texts of up to so many characters, |O for objects; other languages can do
        without it.
    labels: The classes, ascending; all are texts, or none is.
    """,
)


def node_kinds(frame: Frame) -> dict[str, Object]:
    """Nodes: a leaf, and those that split on an ordered feature, on categories, and on a pair."""
    case = "of_classes" if frame.has_classes else "of_numbers"
    case += "" if frame.has_sketches else "_without_sketches"
    splits = _split_kinds(frame)
    sketches = _sketch_kinds(frame) if frame.has_sketches else dict.fromkeys(("leaf", *splits))
    return {
        name: Object(
            {
                "rows": Integer(0, MAX_ROWS),
                "impurity": Number(0, special=("Infinity",)),
                "value": ListOf(
                    ListOf(Number(), frame.n_values, least=1), frame.n_outputs, least=1
                ),
                **({"split": splits[name]} if name in splits else {}),
                **({} if sketch is None else {"sketch": sketch}),
            },
            {"weight": Number(0, special=("Infinity",))},
            title=f"{name}_{case}",
            about="""
            A node with a `split` has as many children as the split has branches; one without is a
            leaf.

            rows: Training rows that reach the node; at least 1 in the root, and those of its
                children in a node that splits.
            weight: Sum of the weights of these rows. If it is left out, it is their number.
            impurity: Mean impurity of these rows, by the criterion.
            value: For each output, what the node predicts: a number alone, or the shares of the
                classes in the order of their labels, which add up to 1. If outputs differ in their
                numbers of classes, all lists have the greatest length, filled up with 0.
            """,
        )
        for name, sketch in sketches.items()
    }


def features_kind(frame: Frame, n_features: int | None = None) -> ListOf:
    """Indices of the features of a split."""
    return ListOf(Integer(0, len(frame.features) - 1 if frame.features else INT32), n_features)


def _split_kinds(frame: Frame) -> dict[str, Object]:
    """How nodes send their rows on."""
    branch = Integer(0, MAX_BRANCHES - 1)
    common: dict[str, Kind] = {
        "branches": Integer(2, MAX_BRANCHES),
        "branch_of_piece": ListOf(branch, least=1),
        "missing_branch": branch,
        "saw_missing": Boolean(),
    }
    one, two = {"features": features_kind(frame, 1)}, {"features": features_kind(frame, 2)}
    thresholds = ListOf(Number(), ascends=True, is_strict=True)
    positions = ListOf(ListOf(Number(special=("NaN",))), 2)
    return {
        "ordered": Object(
            {**one, **common, "thresholds": thresholds},
            title="ordered_split",
            about="""
            A split on an ordered feature. Find the piece that the row's value lies in; its branch
            is `branch_of_piece` at that piece. If the value is missing (NaN), the branch is
            `missing_branch`.
            """
            + ABOUT_SPLIT,
        ),
        "categorical": Object(
            {**one, **common},
            title="categorical_split",
            about="""
            A split on a categorical feature. Every category is a piece: the branch of a row is
            `branch_of_piece` at the code of its category. If the value is missing or unknown, the
            branch is `missing_branch`.
            """
            + ABOUT_SPLIT,
        ),
        "pair": Object(
            {**two, **common, "cuts": ListOf(CUT, least=1), "positions": positions},
            title="pair_split",
            about="""
            A split on a pair of features. The row is a point (u, v) of a plane. u is its value of
            the first feature or, if that is categorical, the position of its category; v likewise
            with the second. An infinite value counts as the greatest finite double (about 1.8e308)
            of its sign. If u or v is missing, unknown or "NaN", the branch is `missing_branch`.
            Otherwise start at cut 0 and follow the cuts until they lead to a piece; the branch is
            `branch_of_piece` at that piece.
            """
            + ABOUT_SPLIT,
        ),
    }


ABOUT_SPLIT = """
            features: The index of the feature; of a pair, of the first and the second, ascending.
            branches: Number of branches, and of children. Branch b leads to the node's child b,
                from 0.
            branch_of_piece: The branch of each piece. Several pieces may have the same branch.
            missing_branch: Branch of rows whose value is missing or an unknown category; with a
                pair, of rows of which either is.
            saw_missing: Whether training rows in this node had missing values. If none had,
                `missing_branch` is the branch with the most rows.
            thresholds: Ascending and distinct; one less than pieces. They part the numbers into
                pieces: piece p holds the values above threshold p - 1, if there is one, up to and
                including threshold p, if there is one. So a value v lies in the piece whose number
                is the number of thresholds that are less than v. Infinite values are compared like
                any others: -Infinity lies in the first piece, Infinity in the last.
            cuts: Cuts of the plane of both features, one less than pieces. The pieces are the
                regions that they part it into.
            positions: For the first and the second feature: a place on its axis for each of its
                categories, by code, or "NaN" for categories that count as missing in this node,
                which are not all. Empty for an ordered feature.
            """
CUT_TARGET = Integer(-INT32 - 1, INT32)
CUT = Object(
    {
        "a": Integer(0, 1),
        "b": Number(),
        "threshold": Number(),
        "low": CUT_TARGET,
        "high": CUT_TARGET,
    },
    title="cut",
    about="""
    A cut of a plane. Go to `high` if a * u + b * v > threshold, else to `low`. Products and sum are
    rounded to doubles one after the other, without fused operations; they may overflow to infinity.
    `low` and `high` are where to go: to cut c, a later one of the same split, written as c; or to
    piece p, written as -1 - p. Every piece, and every cut but the first, is led to exactly once.

    a: Weight of u. If it is 0, b is 1. If it is 1 and either feature is categorical, b is 0.
    b: Weight of v.
    """,
)


def _sketch_kinds(frame: Frame) -> dict[str, Object]:
    """How the rows of nodes are spread: sums that pictures of the tree are drawn from."""
    n_weighed = frame.n_counts if frame.has_classes else 3
    moments: dict[str, Kind] = {"mean": ANY_NUMBER, "deviation": ANY_NUMBER}
    of_numbers: dict[str, Kind] = {"skewness": Number(), "median": ListOf(ANY_NUMBER, 3)}
    if frame.has_classes:
        moments, of_numbers = {}, {}
    of_weights = {"weighed": ListOf(ANY_NUMBER, n_weighed), "squared_weights": Number(0)}
    counts = ListOf(Integer(0, INT32), frame.n_counts, least=1)
    own: dict[str, dict[str, Kind]] = {
        "leaf": {"counts": counts},
        "ordered": {"density": _density_kind(frame, is_ordered=True)},
        "categorical": {"density": _density_kind(frame, is_ordered=False)},
        "pair": {"scatter": _scatter_kind(frame)},
    }
    about = """
    How the rows of a node are spread: sums that pictures of the tree are drawn from.

    counts: Rows by class, or by the cells of the target that `edges` bounds (a cell holds the
        values above its lower and up to its upper bound, the first and the last also what lies
        beyond). The counts of a node that splits are the sums of its children's.
    mean: Mean of the rows' target in a few digits.
    deviation: Its standard deviation.
    skewness: Its skewness, for the interval of the mean.
    median: Its median and the ends of the median's interval.
    weighed: What weights make of the rows, if they have some: the effective number of rows of each
        class; or the effective number of all rows, and the mean and standard deviation of the
        target.
    squared_weights: What the squares of the rows' weights add up to, by which their own effective
        number is known.
    """
    return {
        name: Object({**its, **moments}, {**of_numbers, **of_weights}, about=about)
        for name, its in own.items()
    }


def _density_kind(frame: Frame, is_ordered: bool) -> Object:
    edges = {"edges": ListOf(Number(), least=2, ascends=True)}
    ends = {"ends": ListOf(Number(), 2, ascends=True)}
    return Object(
        {
            "counts": ListOf(ListOf(Integer(-MAX_ROWS, INT32)), frame.n_groups, least=1),
            **({} if frame.has_classes else {"totals": ListOf(ANY_NUMBER)}),
            **(edges if is_ordered else {}),
        },
        {
            "missing": ListOf(Integer(0, INT32), frame.n_groups, least=1),
            **({} if frame.has_classes else {"missing_total": ANY_NUMBER}),
            **(ends if is_ordered else {}),
        },
        about=f"""
        Where the rows of a node lie on its feature. The cells of a categorical one are its
        categories.

        counts: For each class, or once for numbers: rows in each cell. A cell holds the values
            above its lower and up to its upper bound, the first and the last also what lies beyond.
            Where there are more than {MAX_DENSE} of these numbers in all classes together, cells
            side by side that have no rows are written as one negative number: -3 stands for three
            of them.
        edges: Bounds of the cells, ascending; every threshold of the node is one.
        totals: Sum of the targets in each cell, in a few digits.
        missing: Rows that lack the feature, by class or in all. Left out if there are none.
        missing_total: Sum of their targets; 0 if left out.
        ends: Numbers that those of the node's rows lie between: the bounds of the outermost bins
            with rows. Left out without rows.
        """,
    )


def _scatter_kind(frame: Frame) -> Object:
    label = Integer(0, INT32 if frame.n_groups is None else frame.n_groups - 1)
    return Object(
        {
            "low": ListOf(Number(), 2),
            "high": ListOf(Number(), 2),
            "first": ListOf(Number()),
            "second": ListOf(Number()),
            "targets": ListOf(label if frame.has_classes else Number()),
            "missing": Integer(0, MAX_ROWS),
        },
        about="""
        Where the rows of a node lie in the plane of its pair.

        low: Lower ends of the axes to draw, below `high`; without meaning for categorical features.
        high: Upper ends of the axes.
        first: Values, or codes of categories, of the first feature, of some rows that have both.
        second: The same rows' values or codes of the second feature.
        targets: The same rows' classes, as indices of labels, or targets.
        missing: Rows that lack either feature.
        """,
    )


def model_schema() -> Json:
    """The JSON Schema (draft 2020-12) of model files, which also says how to predict with one.

    Returns
    -------
    dict
        Write it with `json.dump`, or give it to a validator such as the package jsonschema.

    Examples
    --------
    >>> from shapetree import model_schema
    >>> schema = model_schema()
    >>> schema["title"]
    'Model file of shapetree, version 1'
    >>> schema["$defs"]["cut"]["required"]
    ['a', 'b', 'threshold', 'low', 'high']
    """
    known: dict[str, Json] = {}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:shapetree:model:{VERSION}",
        "title": f"Model file of shapetree, version {VERSION}",
        "description": " ".join(DESCRIPTION.split()),
        "type": "object",
        "properties": {"estimator": {"enum": [*KINDS["tree"], *KINDS["forest"]]}},
        "required": ["estimator"],
        "allOf": [
            {
                "if": {"properties": {"estimator": {"const": estimator}}},
                "then": {
                    "anyOf": [
                        file_kind(kind, estimator, is_single).schema(known)
                        for is_single in (True, False)
                    ]
                },
            }
            for kind, estimators in KINDS.items()
            for estimator in estimators
        ],
        "$defs": known,
    }


DESCRIPTION = """
A fitted shape tree, or a forest of them. A shape tree is a decision tree whose nodes send rows on
by functions of one feature or of a pair of features. To predict a row by a tree, start at node 0.
While the node has a `split`, find the row's branch b as the split's description says, and go to
the node's child b. Children are not named: nodes stand level by level, so the children of node 0
are the nodes that follow it, then come the children of the next node that splits, and so on. In
other words, the first child of a node has the number 1 plus the sum of `branches` over all nodes
before it, and its other children follow. The node without a `split` that the row ends in, its leaf,
predicts by its `value`: for classes, in each output, the label whose share is greatest (of equals,
the first), and the shares are its probabilities; for numbers, the value itself. A forest predicts
by the mean of the values of its trees' leaves: add them up from the first tree to the last, and
divide by the number of trees. All numbers are IEEE 754 doubles, written so that reading them gives
exactly the same double; only categories, labels and `contents` may be whole numbers with more
digits. Numbers that JSON has no name for are written as the texts "NaN", "Infinity" and "-Infinity"
where this schema allows it. A whole number may be written as 2 or as 2.0. `parameters`,
`criterion`, `strength`, `shrinkage`, `history`, `scale`, `range`, `edges`, `names`, `held_out`,
`why_single_leaf`, `taught`, `stability`, `seed`, `contents`, `oob_score`, `sketch` and everything
in them are not needed to predict. A reader must refuse files of another `version`, and members that
this schema does not name: they might change what a tree predicts. Beyond what a schema can say:
features are distinct by name if `has_names` is true; categories are distinct; labels ascend;
thresholds ascend; indices refer to something that exists; lists that belong together are equally
long; a node has the rows of its children.
"""
