"""FittedModel, FittedTree and FittedForest: all that a fit leaves behind, as one object.

Estimators hold one. Views, explanations, pictures, exports and the model file read this object,
and do not depend on estimators.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import check_consistent_length

from shapetree._core.predictor import find_leaves
from shapetree._threads import threads_for
from shapetree.data._batches import Batches
from shapetree.data._labels import number_classes, read_targets
from shapetree.data._names import check_columns
from shapetree.data._open import OpenTable, open_rows
from shapetree.data._parts import encode_features, errors_prefixed_by
from shapetree.data._shares import ClassShares, parts_of
from shapetree.data._table import FeatureInfo, Table, encode_table
from shapetree.data._values import values_of
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._evaluation import HeldOut
from shapetree.tree._naming import KnownNames, Names, read_names
from shapetree.tree._packed_trees import PackedTrees
from shapetree.tree._predictor import ROWS_TOGETHER
from shapetree.tree._rebinning import bin_used_features
from shapetree.tree._sketch import DataSummary, NodeSketch
from shapetree.tree._sketcher import (
    SketchedPart,
    SketchedRows,
    part_of_shares,
    sketch_tree,
    sole_target,
)
from shapetree.tree._stability import Stability


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedModel:
    """A fitted tree or forest; it reads further tables with the columns of the training table."""

    kind: ClassVar[str]  # what this is, for error messages

    trees: Sequence[TreeArrays]  # one or more
    # Those that the model does not use keep their names and kinds, but no categories: these may
    # name people.
    features: tuple[FeatureInfo, ...]
    has_names: bool  # whether the training table had names for its columns
    classes: tuple[np.ndarray, ...] | None  # class labels of each output; None for numbers
    criterion: str  # the criterion that trees were grown by
    shrinkage: float  # how much leaves lean on the nodes above
    summary: DataSummary  # what is remembered of the training rows besides the trees
    # What to call features, classes and targets where the model is shown.
    names: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        used = set(self.used_features)
        features = tuple(
            feature if j in used else feature.without_categories()
            for j, feature in enumerate(self.features)
        )
        object.__setattr__(self, "features", features)

    @cached_property
    def used_features(self) -> list[int]:
        """The features that some tree splits on, ascending."""
        return sorted(set().union(*(tree.used_features for tree in self.trees)))

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.trees[0].value.shape[1]

    @property
    def n_classes(self) -> list[int] | None:
        """Number of classes of each output; None for numbers."""
        return None if self.classes is None else [len(labels) for labels in self.classes]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [feature.name for feature in self.features]

    @cached_property
    def shown_features(self) -> tuple[FeatureInfo, ...]:
        """The features under their names to show, without units."""
        return self.names.name_features(self.features, with_units=False)

    @property
    def shown_classes(self) -> tuple[tuple[Any, ...], ...] | None:
        """Class labels of each output under their names to show; None for numbers."""
        return self.names.name_classes(self.classes)

    def with_names(
        self, features: Any = None, classes: Any = None, target: Any = None, units: Any = None
    ) -> Self:
        """The same under names that a user gives; `HasModelFile.with_names` explains them."""
        known = KnownNames(self.feature_names, self.classes, self.n_outputs, self.kind)
        names = read_names(known, self.names, features, classes, target, units)
        return replace(self, names=names)

    def read_table(self, X: Any, reader: str, needed: Iterable[int] | None = None) -> Table:
        """Read further rows, with the columns of the training table, found by their names.

        Error messages call the reader by its name. By default all columns are needed, with
        categories of features that the tree does not use yet.
        """
        opened = self.open_rows(X, reader, needed)
        return encode_table(opened, self.features, needed, learns_categories=needed is None)

    def open_rows(self, X: Any, reader: str, needed: Iterable[int] | None = None) -> OpenTable:
        """Find the columns of the training table in further rows, without reading them."""
        opened, names = open_rows(X), self.feature_names
        required = range(len(names)) if needed is None else needed
        by_name = self.has_names or not opened.has_order
        check_columns(opened.names, opened.has_names, names, by_name, required, reader)
        return opened.in_order(names) if by_name and opened.has_names else opened

    def read_batches(
        self, batches: Batches, beside: Sequence[str] = ()
    ) -> Iterator[tuple[Table, Any]]:
        """Read rows in parts: a table of what the tree uses, and the batch as it was read.

        Columns are found by their names; those that the tree does not use may be absent, unless
        they are to be read beside.
        """
        if not self.has_names:
            raise ValueError(
                f"{self.kind} was fitted without feature names, so it cannot find its columns in "
                "batches; read them into a table"
            )
        used = self.used_features
        wanted = [self.features[j] for j in used]
        names = [feature.name for feature in wanted]
        batches.check_columns(names, self.kind)
        # A column to count the rows by, if the tree uses none.
        read = dict.fromkeys([*names, *beside]) or dict.fromkeys(batches.columns[:1])
        told: set[str] = set()
        for part, data in batches.tables(list(read), beside):
            with errors_prefixed_by(part), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                frame = nw.from_native(data, eager_only=True)
                some = frame.select(list(names)).to_native() if names else data
                encoded = encode_features(some, wanted) if names else None
            columns: list[np.ndarray | None] = [None] * len(self.features)
            for j, column in zip(used, encoded.columns if encoded else (), strict=True):
                columns[j] = column
            _tell_once(caught, told)
            yield Table(len(data), self.features, columns, True), data

    def read_targets(self, X: Any, y: Any) -> np.ndarray:
        """Targets of further rows: numbers, or the numbers of their classes."""
        targets = read_targets(y, self.classes is not None, self.n_outputs)
        if self.classes is not None:
            targets = number_classes(targets, self.classes)
        check_consistent_length(X, targets)
        return targets

    def read_shares(self, X: Any, shares: ClassShares) -> ClassShares:
        """Shares of classes of further rows, by the classes that are known."""
        if self.classes is None or self.n_outputs > 1:
            raise ValueError("y holds shares of classes, which need a classifier of one target")
        check_consistent_length(X, shares)
        return shares.among(self.classes[0])


def _tell_once(caught: list[warnings.WarningMessage], told: set[str]) -> None:
    """Pass on warnings, but each column's only once."""
    for warning in caught:
        about = str(warning.message).partition(":")[0]
        if about not in told:
            told.add(about)
            warnings.warn(str(warning.message), warning.category, stacklevel=3)


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedTree(FittedModel):
    """A fitted tree and what is known about the data it was fitted on."""

    kind: ClassVar[str] = "the tree"

    history: np.ndarray | None = None  # losses of the tree during its refinement, if it was refined
    strength: float = 1.0  # what penalties were multiplied by
    cv_results: dict[str, Any] | None = None  # how it was chosen, if it was
    held_out: HeldOut | None = None  # scores on rows that were not fitted on, if it was evaluated
    why_single_leaf: str | None = None  # why the tree has no split, if it has none
    taught: float = 0.0  # how much of what the tree was fitted to was a teacher's; 0 without one
    # The user's own estimator that taught the tree, if one did; it is in no model file.
    teacher: Any = None
    # What trees of resamples have in common with it, if that was asked.
    stability: Stability | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "summary", self.summary.of_features(self.used_features))

    @property
    def tree(self) -> TreeArrays:
        """The only tree: its nodes, and sketches of their rows."""
        return self.trees[0]

    @property
    def is_smoothed(self) -> bool:
        """Whether predictions are not those of the leaves' own rows."""
        return self.shrinkage > 0 or self.taught > 0

    @property
    def predicts_medians(self) -> bool:
        """Whether leaves predict medians rather than means or classes."""
        return self.criterion == "absolute_error"

    @property
    def sketches(self) -> Sequence[NodeSketch] | None:
        """How the training rows are spread over the nodes; None if there are several targets."""
        return self.tree.sketches

    def with_tree(self, tree: TreeArrays) -> FittedTree:
        """The same with another tree, whose scores and stability are not known."""
        return replace(self, trees=(tree,), held_out=None, stability=None)

    def sketch_rows(self, X: Any, y: Any) -> tuple[Sequence[NodeSketch] | None, int]:
        """How further rows are spread over the nodes, and how many of what is counted make a row.

        None if they have several targets.
        """
        table = self.read_table(X, "this tree", self.used_features)
        return self._sketched(X, y, table, self._values(table))

    def _values(self, table: Table) -> DataSummary:
        """How the values of further rows are spread."""
        ordered = [j for j in self.used_features if not self.features[j].is_categorical]
        edges = self.summary.target_edges
        values = values_of(table, ordered, None)
        return DataSummary.of_values(values, ordered, len(self.features), edges)

    def _sketched(
        self, X: Any, y: Any, table: Table, summary: DataSummary
    ) -> tuple[Sequence[NodeSketch] | None, int]:
        """The same of rows that have been read, given how their values are spread."""
        if isinstance(y, ClassShares):
            values = self.read_shares(X, y).values
            parts = parts_of(values)
            amounts = parts.amounts(values, np.ones(len(values)))
            table = table.take(parts.row)
            binned = bin_used_features(self.tree, table, 1)
            part = part_of_shares(self.tree, table, binned, parts, amounts)
        else:
            target = sole_target(self.read_targets(X, y), self.classes is not None)
            if target is None:
                return None, 1
            part = SketchedPart(self.tree, table, bin_used_features(self.tree, table, 1), target)
        sketches, _ = sketch_tree(
            *(self.tree, self.features, SketchedRows.of(part), summary.ranges),
            None if self.n_classes is None else self.n_classes[0],
            *(summary.target_edges, self.predicts_medians),
        )
        return sketches, part.steps

    def is_of_training(self, X: Any, targets: np.ndarray | ClassShares) -> bool:
        """Whether rows are spread over all nodes as those of training, down to the last number."""
        known, are_shares = self.sketches, isinstance(targets, ClassShares)
        if known is None or len(targets) != int(self.tree.n_node_samples[0]):
            return False
        if are_shares != (self.summary.steps > 1):
            return False
        labels = None if are_shares or self.classes is None else self.classes[0]
        if labels is not None and not np.isin(np.asarray(targets), labels).all():
            return False
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # predictions say the same
            table = self.read_table(X, "this tree", self.used_features)
        values = self._values(table)
        if not np.array_equal(values.ranges, self.summary.ranges, equal_nan=True):
            return False
        sketches, _ = self._sketched(X, targets, table, values)
        return sketches is not None and all(map(_are_alike, known, sketches))


def _are_alike(one: NodeSketch, other: NodeSketch) -> bool:
    """Whether two sketches of a node can be of the same rows, in whatever order."""
    if not np.array_equal(one.counts, other.counts) or one.deviation != other.deviation:
        return False
    if one.density is not None and other.density is not None:
        return np.array_equal(one.density.missing, other.density.missing)
    if one.scatter is not None and other.scatter is not None:
        return one.scatter.n_missing == other.scatter.n_missing
    return True


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedForest(FittedModel):
    """The trees of a forest, and what is known about the data they were fitted on."""

    kind: ClassVar[str] = "the forest"

    trees: PackedTrees  # which are unpacked when they are read
    seed: int  # by which rows and features were drawn
    contents: int  # a number that is the same for the same training rows
    oob_score: float | None = None  # score of out-of-bag predictions, if it was asked for

    def fitted_tree(self, number: int) -> FittedTree:
        """One of the trees for itself, without sketches."""
        common = {its.name: getattr(self, its.name) for its in fields(FittedModel)}
        return FittedTree(**common | {"trees": (self.trees[number],)})

    def leaves(self, table: Table, n_threads: int) -> np.ndarray:
        """The leaf of each row in each tree, (n_rows, n_trees)."""
        leaves = np.empty((table.n_rows, len(self.trees)), dtype=np.int32)
        n_threads = threads_for(table.n_rows, n_threads)
        for number, tree in enumerate(self.trees.packed):
            leaves[:, number] = find_leaves(table.values, tree.layout, n_threads)
        return leaves

    def nearest_tree(self, table: Table, n_threads: int) -> int:
        """Number of the tree whose predictions are nearest to the forest's, by squared distance."""
        mean, far = self.means(table, n_threads), []
        n_threads = threads_for(table.n_rows, n_threads)
        for tree in self.trees.packed:
            off = tree.value[find_leaves(table.values, tree.layout, n_threads)] - mean
            far.append(float(np.square(off).sum()))
        return int(np.argmin(far))

    def importances(self) -> np.ndarray:
        """Each feature's share of the impurity that splits remove, the mean of all trees."""
        each = [tree.feature_importances(len(self.features)) for tree in self.trees]
        mean = np.mean(each, axis=0)
        return np.asarray(mean / (mean.sum() or 1.0))

    def means(self, table: Table, n_threads: int) -> np.ndarray:
        """What trees predict on the mean, (n_rows, n_outputs, n_values)."""
        predicted = np.zeros((table.n_rows, *self.trees.packed[0].value.shape[1:]))
        for first, some in in_blocks(table):
            mean = predicted[first : first + some.n_rows]
            threads = threads_for(some.n_rows, n_threads)
            for tree in self.trees.packed:
                mean += tree.value[find_leaves(some.values, tree.layout, threads)]
        predicted /= len(self.trees)
        return predicted


TreeOrForest: TypeAlias = FittedTree | FittedForest


def in_blocks(table: Table) -> Iterator[tuple[int, Table]]:
    """Some rows of a table at a time, and the number of the first of them."""
    for first in range(0, table.n_rows, ROWS_TOGETHER):
        last = min(first + ROWS_TOGETHER, table.n_rows)
        columns = [None if column is None else column[first:last] for column in table.columns]
        yield first, Table(last - first, table.features, columns, table.has_names)
