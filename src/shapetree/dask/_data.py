"""Rows on a Dask cluster: the parts of collections, and what they become."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from shapetree._core.columns import Columns
from shapetree.dask._cluster import ClusterParts
from shapetree.dask._lazy import with_whole_rows
from shapetree.dask._tasks import (
    PartRows,
    keep_rows,
    part_of_table,
    recode_part,
    table_of_part,
    targets_of_part,
)
from shapetree.data._binning import BinnedTable, FeatureBins
from shapetree.data._map_join import Parts
from shapetree.data._sums import Numbers, weight_of
from shapetree.data._table import FeatureInfo, Table, still_kept
from shapetree.fit._training_rows import TrainingRows

# --- the parts of collections ---


def parts_of(collection: Any, name: str) -> list[Any]:
    """The parts of a Dask collection, delayed."""
    if hasattr(collection, "chunks"):
        if collection.ndim not in (1, 2):
            raise ValueError(f"{name} has {collection.ndim} dimensions; give a table, or a column")
        return list(with_whole_rows(collection).to_delayed().ravel())
    # Only columns that are needed are read. All that Dask would do beyond that joins partitions of
    # few columns, and those of y are fewer than those of X.
    return list(collection.simplify().to_delayed(optimize_graph=False))


def n_parts_of(collection: Any, name: str) -> int:
    """How many parts a Dask collection has."""
    if not (hasattr(collection, "to_delayed") and hasattr(collection, "npartitions")):
        raise TypeError(
            f"{name} is a {type(collection).__name__}; give a Dask DataFrame or Array, or use the "
            "estimators of shapetree itself for rows in memory"
        )
    n_parts = collection.npartitions
    return len(collection.chunks[0]) if hasattr(collection, "chunks") else int(n_parts)


def delayed_parts(X: Any, y: Any, weights: Any) -> list[list[Any]]:
    """Parts of X, y and weights; None for weights that were not given."""
    check_in_step(X, y, weights)
    parts = [parts_of(X, "X"), parts_of(y, "y")]
    n_parts = len(parts[0])
    return [*parts, [None] * n_parts if weights is None else parts_of(weights, "sample_weight")]


def check_in_step(X: Any, y: Any, weights: Any) -> None:
    """Refuse collections whose rows are known to be out of step."""
    if y is None:
        raise ValueError("this requires y to be passed, but the target y is None")
    n_parts = n_parts_of(X, "X")
    for name, other in (("y", y), ("sample_weight", weights)):
        if other is None:
            continue
        n_others = n_parts_of(other, name)
        if n_others != n_parts:
            raise ValueError(
                f"X has {n_parts} partitions, but {name} has {n_others}: give both the same "
                "partitions, so that their rows stay in step"
            )
        _check_divisions(X, other, name)


def _check_divisions(X: Any, other: Any, name: str) -> None:
    """Refuse what is known to be out of step; the workers compare what they hold."""
    for what in ("divisions", "chunks"):
        one, two = getattr(X, what, None), getattr(other, what, None)
        if one is None or two is None:
            continue
        one, two = (one[0], two[0]) if what == "chunks" else (one, two)
        unknown = any(x is None or x != x for x in (*one, *two))
        if not unknown and tuple(one) != tuple(two):
            raise ValueError(
                f"the {what} of X and {name} differ, so their rows do not match: make both "
                "from one frame, or give them the same partitions"
            )


# --- the table ---


@dataclass(frozen=True, eq=False)
class DaskTable(Table):
    """A table whose values are on workers."""

    encoded: ClusterParts = field(kw_only=True)  # `PartRows` of every part
    lengths: np.ndarray = field(kw_only=True)  # numbers of their rows
    n_counted: int | None = None  # how many rows all of them count as; None if each is one
    kept: np.ndarray | None = None  # which rows of the parts are the table's; None for all
    needed: tuple[int, ...] = ()  # features whose own values splits read

    def take(self, kept: np.ndarray) -> DaskTable:
        """Keep the rows that a boolean mask marks."""
        kept_of_all = still_kept(self.kept, kept)
        return replace(self, n_rows=int(np.count_nonzero(kept)), kept=kept_of_all)

    def in_memory(self) -> Table:
        """The same rows, with all values in this process."""
        parts = self.rows.make(table_of_part).results()
        each = zip(*(part.columns for part in parts), strict=True)
        columns: list[np.ndarray | None] = [np.concatenate(column) for column in each]
        return Table(self.n_rows, self.features, columns, self.has_names)

    def parts(self, needed: Iterable[int], counts: np.ndarray | None, what: str = "") -> Parts:
        """Parts of the rows on workers; see `Table`."""
        has_counts = counts is not None
        return self.rows.map(partial(part_of_table, needed=tuple(needed), has_counts=has_counts))

    def with_values(self, needed: Any, what: str = "") -> DaskTable:
        """The table, of which splits will read the values of some features."""
        return replace(self, needed=tuple(needed))

    def with_features(self, features: tuple[FeatureInfo, ...]) -> DaskTable:
        """The same rows, coded by the categories of other features; all others are missing."""
        encoded = self.encoded.make(recode_part, features=features)
        return replace(self, features=features, encoded=encoded)

    @cached_property
    def rows(self) -> ClusterParts:
        """`PartRows` of every part, which know which of their rows are the table's."""
        if self.kept is None:
            return self.encoded
        firsts = first_rows(self.lengths)
        masks = np.split(self.kept, firsts[1:])
        before = np.append(0, np.cumsum(self.kept))[firsts].tolist()
        n, message = len(masks), self.encoded.cluster.message
        bits = [message(np.packbits(mask), n) for mask in masks]
        return self.encoded.make(keep_rows, bits, before)


def first_rows(lengths: np.ndarray) -> list[int]:
    """Number of the first row of each part, among the rows of all."""
    return np.cumsum([0, *lengths])[:-1].tolist()


@dataclass(frozen=True, eq=False)
class DaskTrainingRows(TrainingRows):
    """Rows on workers; their targets and weights are gathered in this process only on demand."""

    @property
    def _table(self) -> DaskTable:
        assert isinstance(self.table, DaskTable)
        return self.table

    @property
    def remote(self) -> Numbers:
        """Targets and weights of all rows."""
        return Numbers(self._table.encoded.map(PartRows.numbers), self.table.n_rows)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, or their number."""
        return self.table.n_rows if self.weights is None else weight_of(self.remote)

    @property
    def n_counted(self) -> int:
        """Number of rows, each as often as it counts."""
        counted = self._table.n_counted
        return self.table.n_rows if counted is None else counted

    def gather(self) -> TrainingRows:
        """The same rows, with the targets and weights of all of them in this process."""
        return self._gathered

    @cached_property
    def _gathered(self) -> TrainingRows:
        # What this process keeps of every row limits how many rows there can be.
        dtype = np.dtype(np.float64)
        if self.n_classes is not None:
            dtype = np.min_scalar_type(max(self.n_classes) - 1)
        parts = self._table.encoded.make(targets_of_part, dtype=dtype).results()
        targets, weights, counts = zip(*parts, strict=True)
        every = None if self.weights is None else np.concatenate(weights)
        times = None if self.counts is None else np.concatenate(counts)
        about = np.concatenate(targets), self.classes, every, self.weight_size, times
        return TrainingRows(self.table, *about, backend=self.backend)

    def take(self, kept: np.ndarray) -> TrainingRows:
        """Keep the rows that a boolean mask marks."""
        return self.gather().take(kept)


@dataclass(frozen=True, eq=False)
class DaskBins(BinnedTable):
    """Bins that are on workers: of all rows of the parts, also of those that are not kept."""

    parts: ClusterParts = field(kw_only=True)  # a `BinnedTable` of every part

    @classmethod
    def of(cls, features: tuple[FeatureBins, ...], n_rows: int, parts: ClusterParts) -> DaskBins:
        """Bins of the rows of a table."""
        return cls(features, Columns([None] * len(features), n_rows), parts=parts)

    def without_order(self) -> DaskBins:
        """The same, but categories with an order of their own have none."""
        features, parts = (
            super().without_order().features,
            self.parts.make(BinnedTable.without_order),
        )
        return DaskBins.of(features, self.n_rows, parts)

    def take(self, kept: np.ndarray) -> DaskBins:
        """Keep the rows that a boolean mask marks; the table knows which these are."""
        return DaskBins.of(self.features, int(np.count_nonzero(kept)), self.parts)
