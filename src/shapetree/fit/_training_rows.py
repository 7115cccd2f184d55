"""Training rows, weighed and binned, and the interface of a backend: where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from shapetree.data._batches import Batches
from shapetree.data._binning import MAX_BINS, BinnedTable
from shapetree.data._shares import ClassShares, first_parts, parts_of
from shapetree.data._sums import Numbers, evidence_of, local_numbers, weights_of_groups
from shapetree.data._table import Table
from shapetree.data._targets import ClassGoal, Goal, MeanGoal, MedianGoal
from shapetree.data._values import values_of
from shapetree.fit._parameters import Parameters, read_pairs
from shapetree.fit._row_hashes import TargetCodes
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._row_holder import Rows
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted import FittedForest
from shapetree.tree._naming import target_names
from shapetree.tree._sketch import DataSummary
from shapetree.tree._sketcher import SketchedRows

# How far targets may be apart, so that sums of their (squared) distances stay finite.
MAX_SPREAD = {"squared_error": 1e152, "absolute_error": 1e300}
# Numeric targets are dealt out to folds in this many groups of similar size.
N_STRATA = 10


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Rows to learn from.

    Attributes
    ----------
    targets : array of shape (n_rows, n_outputs)
        Numbers, or numbers of classes.
    classes : tuple of arrays or None
        Class labels of each output; None for numbers.
    weights : array of shape (n_rows,) or None
        As evidence, see `evidence_of`; None if all are 1.
    weight_size : float
        What evidence of 1 weighs by the user's own weights.
    counts : array of shape (n_rows,) or None
        How many rows each counts as, if sample weights are whole numbers; None if as one.
    kept : bool array or None
        Which rows that the user gave these are; None for all of them.
    row_of : int array of shape (n_rows,) or None
        If the targets are shares of classes, rows are parts of rows, one for each class: which row
        that is kept each is a part of, ascending. None if rows are rows.
    backend : Backend
        Where they are.
    """

    table: Table
    targets: np.ndarray
    classes: tuple[np.ndarray, ...] | None
    weights: np.ndarray | None
    weight_size: float = 1.0
    counts: np.ndarray | None = None
    kept: np.ndarray | None = None
    row_of: np.ndarray | None = None
    backend: Backend = field(kw_only=True)

    @property
    def n_classes(self) -> list[int] | None:
        """Number of classes of each output; None for numbers."""
        return None if self.classes is None else [len(labels) for labels in self.classes]

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.targets.shape[1]

    @property
    def total_weight(self) -> float:
        """Weight of all rows, or their number."""
        return self.table.n_rows if self.weights is None else float(self.weights.sum())

    @property
    def n_counted(self) -> int:
        """Number of rows, each as often as it counts."""
        return self.table.n_rows if self.counts is None else int(self.counts.sum())

    @property
    def remote(self) -> Numbers | None:
        """Targets and weights of all rows, if they are remote: on workers of a cluster."""
        return None

    def gather(self) -> TrainingRows:
        """The same rows, with the targets and weights of all of them in this process."""
        return self

    @property
    def strata(self) -> np.ndarray:
        """Classes, or groups of similar numbers, that every fold should have its share of."""
        return strata_of(self.targets, self.classes is not None)

    def take(self, kept: np.ndarray) -> TrainingRows:
        """Rows that a boolean mask marks, or those of some numbers, in their order."""
        return replace(
            self,
            table=self.table.take(kept),
            targets=self.targets[kept],
            weights=None if self.weights is None else self.weights[kept],
            counts=None if self.counts is None else self.counts[kept],
            row_of=None if self.row_of is None else self.row_of[kept],
        )

    @property
    def n_given(self) -> int:
        """Number of rows that the user gave."""
        if self.kept is not None:
            return len(self.kept)
        return self.table.n_rows if self.row_of is None else int(self.row_of[-1]) + 1

    def of_given(self, of_rows: np.ndarray) -> np.ndarray:
        """What each row has of an array that has something for each row that the user gave."""
        kept = of_rows if self.kept is None else of_rows[self.kept]
        return kept if self.row_of is None else kept[self.row_of]

    def given(self, of_rows: np.ndarray, missing: Any) -> np.ndarray:
        """An array for the rows that the user gave, from one for these rows.

        Parts of a row have the same, and rows that are not kept what is missing.
        """
        kept = of_rows if self.row_of is None else of_rows[first_parts(self.row_of)]
        if self.kept is None:
            return kept
        every = np.full((len(self.kept), *kept.shape[1:]), missing)
        every[self.kept] = kept
        return every

    def whole(self) -> TrainingRows:
        """The same, with one row for each, of its likeliest class."""
        if self.row_of is None:
            return self
        counts = np.ones(len(self.row_of)) if self.counts is None else self.counts
        order = np.lexsort((-counts, self.row_of))
        whole = self.take(order[first_parts(self.row_of[order])])
        return replace(whole, row_of=None)

    def in_parts(self, shares: ClassShares, factors: np.ndarray | None) -> TrainingRows:
        """Rows that are kept as parts, one for each class that a row has a share of.

        Parameters
        ----------
        shares : ClassShares
            Of the rows that the user gave.
        factors : array of shape (n_classes,) or None
            What each class matters.
        """
        values = shares.values if self.kept is None else shares.values[self.kept]
        parts, ones = parts_of(values), np.ones(len(values))
        counts = parts.amounts(values, ones if self.counts is None else self.counts)
        weights = counts
        if factors is not None or self.counts is not self.weights:
            weighed = values if factors is None else values * factors
            weighed /= weighed.sum(axis=1, keepdims=True)
            weights = parts.amounts(weighed, ones if self.weights is None else self.weights)
        are_ones = bool((weights == 1).all())
        return replace(
            self,
            table=self.table.take(parts.row),
            targets=parts.label[:, None],
            weights=None if are_ones and weights is counts else weights,
            counts=None if (counts == 1).all() and self.counts is None else counts,
            row_of=parts.row,
        )

    def with_evidence(self, importance: np.ndarray | None) -> TrainingRows:
        """Take weights as evidence; rows of weight zero go, and so do weights that are all 1."""
        if self.weights is None and importance is None:
            return self
        weights = np.ones(self.table.n_rows) if self.weights is None else self.weights
        kept = weights > 0
        if importance is not None:
            kept = weights * importance > 0
            importance = importance[kept]
        rows, weights = self if kept.all() else replace(self.take(kept), kept=kept), weights[kept]
        found = evidence_of(local_numbers(weights, importance))
        evidence = found.of(weights, importance)
        counts = None if (weights == 1).all() else found.counts_of(weights)
        is_equal = counts is None and bool((evidence == 1).all())
        return replace(
            rows,
            weights=None if is_equal else evidence,
            weight_size=found.size,
            counts=evidence if counts is not None and importance is None else counts,
        )

    def weighed(self, importance: np.ndarray | None) -> TrainingRows:
        """The same, without categories that only rows of weight zero have."""
        rows = self.with_evidence(importance)
        if rows.table.n_rows == self.table.n_rows:
            return rows
        return replace(rows, table=rows.table.with_seen_categories())

    def goal(self, parameters: Parameters) -> Goal:
        """What a tree is to learn of them."""
        needs_all = self.classes is None and parameters.objective == "absolute_error"
        rows = self.gather() if needs_all else self  # medians need all targets in one place
        return rows._goal(parameters).counting(rows.counts, rows.n_counted)

    def _goal(self, parameters: Parameters) -> Goal:
        targets, weights, remote = self.targets, self.weights, self.remote
        if self.classes is not None:
            criterion = "entropy" if parameters.criterion == "log_loss" else parameters.criterion
            sizes = [len(labels) for labels in self.classes]
            return ClassGoal(targets, sizes, weights, parameters.objective, criterion, remote)
        if parameters.objective == "squared_error":
            return MeanGoal(targets, weights, remote)
        return MedianGoal(targets, weights)


@dataclass(frozen=True, eq=False)
class BinnedRows:
    """Rows and their bins, which fits of all of them and of parts of them share.

    Attributes
    ----------
    pairs : PairOptions
        Pairs that may interact.
    coarse : BinnedTable or None
        Bins that pairs are screened with, if they are others.
    groups : int array of shape (n_rows,) or None
        Rows of a group are held out together.
    """

    rows: TrainingRows
    binned: BinnedTable
    pairs: PairOptions
    coarse: BinnedTable | None = None
    groups: np.ndarray | None = None

    def take(self, kept: np.ndarray) -> BinnedRows:
        """Rows that a boolean mask marks, or those of some numbers, in their order."""
        return replace(
            self,
            rows=self.rows.take(kept),
            binned=self.binned.take(kept),
            coarse=None if self.coarse is None else self.coarse.take(kept),
            groups=None if self.groups is None else self.groups[kept],
        )

    @property
    def backend(self) -> Backend:
        """Where the rows are."""
        return self.rows.backend


class Backend(Protocol):
    """Where training rows are: in memory, in files or on a cluster.

    These methods, in the order in which a fit calls them, are all that it does differently there;
    whatever else it asks of rows, it asks the holder that `hold` makes, or the parts of a table.
    Results are the same, bit for bit, as those of `LocalBackend` for the same rows in memory.
    """

    def read(
        self, X: Any, y: Any, sample_weight: Any, parameters: Parameters, has_classes: bool
    ) -> TrainingRows:
        """Read what a user gives to learn from, and take weights as evidence."""
        ...

    def bin(self, rows: TrainingRows, max_bins: int | None, n_threads: int) -> BinnedTable:
        """Bin the rows, as `bin_table` does."""
        ...

    def hashes(self, rows: BinnedRows, target_codes: TargetCodes) -> np.ndarray:
        """A hash of each row, as `hashes_of_rows` finds it; targets are in this process."""
        ...

    def hold(self, rows: BinnedRows, goal: Goal, n_threads: int) -> Rows:
        """A holder of the rows, which trees can be grown on."""
        ...

    def leaves(self, rows: BinnedRows, tree: TreeArrays, n_threads: int) -> np.ndarray:
        """The leaf of each row in a tree that was grown on such bins."""
        ...

    def leaves_in_forest(
        self, table: Table, forest: FittedForest, n_threads: int
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Leaves of rows in all trees, some rows at a time, and the number of the first of them."""
        ...

    def to_sketch(self, rows: BinnedRows, tree: TreeArrays, n_threads: int) -> SketchedRows:
        """The rows, ready to be counted in the nodes of a tree that was grown on such bins."""
        ...


class RemoteRows(ABC):
    """What `fit` takes as X if rows are neither in memory nor in batches; it holds y, too."""

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """Where they are."""

    @property
    @abstractmethod
    def target_names(self) -> tuple[str, ...] | None:
        """Names of the targets, if they have any."""


def names_of_targets(X: Any, y: Any) -> tuple[str, ...] | None:
    """Names of the targets in what the user gave, if they have any."""
    return X.target_names if isinstance(X, RemoteRows | Batches) else target_names(y)


def summary_of_values(rows: TrainingRows, used: list[int], n_threads: int) -> DataSummary:
    """What is remembered of the rows' values of features that are used."""
    ordered = [j for j in used if not rows.table.features[j].is_categorical]
    values = values_of(rows.table, ordered, rows.counts, n_threads)
    return DataSummary.of_values(values, ordered, len(rows.table.features), None)


def importance_of(
    targets: np.ndarray,
    classes: tuple[np.ndarray, ...] | None,
    weights: np.ndarray | None,
    class_weight: Any,
) -> np.ndarray | None:
    """What each row's weight is multiplied by for its class, whose number is given.

    None if by 1.
    """
    if class_weight is None or classes is None:
        return None
    factors = factors_of_classes(classes, local_numbers(targets, weights), class_weight)
    by_class = importance_by_class(targets, factors)
    with np.errstate(over="ignore"):
        total = by_class if weights is None else weights * by_class
    check_total_importance(bool(total.any()), total_of(total))
    return by_class


def importance_by_class(targets: np.ndarray, factors: list[np.ndarray]) -> np.ndarray:
    """Products of the factors of each row's classes."""
    each = zip(factors, targets.T, strict=True)
    return np.asarray(np.prod([of_class[numbers] for of_class, numbers in each], axis=0))


def row_weights(X: Any, sample_weight: Any) -> np.ndarray | None:
    """Weights of the rows; None if all are 1."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    check_weights(weights)
    return weights


def check_weights(weights: np.ndarray | None) -> None:
    """Refuse weights that are no use, though each of them is a number that is not negative."""
    if weights is not None:
        check_total(bool(weights.any()), total_of(weights))


def check_total(has_weight: bool, total: float) -> None:
    """The same, if it is known whether any is positive, and what they add up to."""
    if not has_weight:
        raise ValueError("sample_weight is zero for every row; give some row a positive weight")
    if not np.isfinite(total):
        raise ValueError(
            "sample_weight adds up to more than a number can hold; divide it by a large number"
        )


def factors_of_classes(
    classes: tuple[np.ndarray, ...], rows: Numbers, class_weight: Any
) -> list[np.ndarray]:
    """What weights are multiplied by for each class of each output.

    Parameters
    ----------
    classes : tuple of arrays
    rows : Numbers
        The numbers of the rows' classes, one column for each output, and sample weights.
    class_weight : dict, list or "balanced"
        "balanced" gives all classes that weigh anything the same total weight.
    """
    # Labels as they would stand in one array; the last of fewer is repeated.
    places = np.arange(max(map(len, classes)))
    labels = np.column_stack([names[np.minimum(places, len(names) - 1)] for names in classes])
    if len(classes) > 1:
        compute_sample_weight(class_weight, labels)  # which says so if it makes no sense
    is_for_all = len(classes) == 1 or isinstance(class_weight, str)
    wanted = [class_weight if is_for_all else class_weight[i] for i in range(len(classes))]
    has_balance = any(isinstance(each, str) and each == "balanced" for each in wanted)
    weights = weights_of_groups(rows, len(places)) if has_balance else None
    factors = []
    for output, names in enumerate(classes):
        if weights is not None and wanted[output] == "balanced":
            own = weights[output, : len(names)]
            share = own.sum() / np.count_nonzero(own)
            factors.append(np.divide(share, own, out=np.zeros_like(own), where=own > 0))
        else:
            factors.append(compute_sample_weight(wanted[output], labels[: len(names), output]))
        check_importance(factors[-1])
    return factors


def check_importance(by_class: np.ndarray) -> None:
    """Refuse weights of classes that cannot be."""
    if (by_class < 0).any() or not np.isfinite(by_class).all():
        raise ValueError("class_weight must hold finite weights that are not negative")


def check_total_importance(has_weight: bool, total: float) -> None:
    """Refuse weights of classes that are no use."""
    if not has_weight:
        raise ValueError("class_weight and sample_weight together give every row a weight of zero")
    if not np.isfinite(total):
        raise ValueError(
            "class_weight gives rows weights that add up to more than a number can hold; divide it "
            "by a large number"
        )


def total_of(weights: np.ndarray) -> float:
    """What weights add up to, which may be more than a number can hold."""
    with np.errstate(over="ignore"):
        return float(weights.sum())


def check_spread(targets: np.ndarray, objective: str) -> None:
    """Refuse targets that are too far apart for their sums to stay finite."""
    check_ends(targets.min(axis=0), targets.max(axis=0), objective)


def check_ends(least: np.ndarray, greatest: np.ndarray, objective: str) -> None:
    """The same, if the least and the greatest target are known."""
    limit = MAX_SPREAD[objective]
    apart = greatest / 2 - least / 2
    if (apart > limit / 2).any():
        raise ValueError(
            f"the targets in y are more than {limit:g} apart, which is too much for "
            f"objective={objective!r}; divide y by a large number"
        )


def bin_rows(
    rows: TrainingRows, parameters: Parameters, groups: np.ndarray | None = None
) -> BinnedRows:
    pairs = read_pairs(rows.table, parameters)
    binned = rows.backend.bin(rows, parameters.max_bins, parameters.n_threads)
    coarse = coarse_bins_of(rows, binned, parameters, pairs)
    # Splits on pairs read values.
    table = rows.table.with_values(pairs.pairs.features() if len(pairs.pairs) else [])
    return BinnedRows(replace(rows, table=table), binned, pairs, coarse, groups)


def coarse_bins_of(
    rows: TrainingRows, binned: BinnedTable, parameters: Parameters, pairs: PairOptions
) -> BinnedTable | None:
    """Bins to screen pairs with where those of single features will not do.

    They may be one for each value, or categories with an order of their own: in a pair, a node
    finds its own order for them.
    """
    if len(pairs.pairs) == 0:
        return None
    if parameters.max_bins is None:
        return rows.backend.bin(rows, MAX_BINS, parameters.n_threads).without_order()
    has_order = any(feature.has_places for feature in binned.features)
    return binned.without_order() if has_order else None


def read_groups(X: Any, groups: Any, rows: TrainingRows) -> np.ndarray | None:
    """The group of each row that is learnt from, if groups are given."""
    if groups is None:
        return rows.row_of  # parts of a row stay together
    if isinstance(X, Batches):
        raise ValueError("groups cannot be given with rows in batches; fit them from memory")
    found = np.asarray(groups)
    n_given = rows.n_given
    if found.shape != (n_given,):
        raise ValueError(
            f"groups must hold one label for each of the {n_given} rows, got shape {found.shape}"
        )
    codes = np.unique(found, return_inverse=True)[1]
    return rows.of_given(codes)


def strata_of(targets: np.ndarray, has_classes: bool) -> np.ndarray:
    """Classes, or groups of numbers from the least to the greatest, by the first output."""
    first = targets[:, 0]
    if has_classes:
        return first.astype(np.int64)
    rank = rankdata(first, method="max") - 1
    return (rank * N_STRATA // len(first)).astype(np.int64)
