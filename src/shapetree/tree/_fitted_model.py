"""FittedModel: what a fitted tree and a fitted forest have in common, and how they read rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.utils import check_consistent_length

from shapetree.data._batches import Batches
from shapetree.data._labels import number_classes, read_targets
from shapetree.data._names import check_columns
from shapetree.data._open import OpenTable, open_rows
from shapetree.data._parts import encode_features, errors_prefixed_by
from shapetree.data._shares import ClassShares
from shapetree.data._table import FeatureInfo, Table, encode_table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._naming import KnownNames, Names, read_names
from shapetree.tree._sketch import DataSummary


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

    def with_names(
        self, features: Any = None, classes: Any = None, target: Any = None, units: Any = None
    ) -> Self:
        """The same under names that a user gives; `HasModelFile.with_names` explains them."""
        known = KnownNames(self.feature_names, self.classes, self.n_outputs, self.kind)
        names = read_names(known, self.names, features, classes, target, units)
        return replace(self, names=names)

    def read_table(self, X: Any, reader: str, needed: Iterable[int] | None = None) -> Table:
        """Read further rows, with the columns of the training table.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), row, or list of rows
            Columns that have names are found by them.
        reader : str
            What error messages call the reader, such as the name of the estimator.
        needed : iterable of int, optional
            The columns to read; by default all, with categories of features that the tree does not
            use yet.
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
        """Read rows in parts, a batch at a time, with the columns that the tree uses.

        Parameters
        ----------
        batches : Batches
            Columns are found by their names; those that the tree does not use may be absent.
        beside : sequence of str
            Further columns to read.

        Yields
        ------
        table : Table
        data : pyarrow, pandas or polars table
            The batch as it was read.
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
