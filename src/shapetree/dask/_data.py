"""Rows on a Dask cluster as a table to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from shapetree._core.columns import Columns
from shapetree.dask._cluster import FEW, Cluster, ClusterParts, itself
from shapetree.dask._lazy import LOOKING
from shapetree.dask._tasks import (
    KeptRows,
    Look,
    Weighing,
    bin_part,
    bin_values,
    binning_of,
    bins_of_values,
    classes_and_weights,
    encode_rows,
    features_of_sample,
    hashes_of_part,
    hold_part,
    join_binnings,
    join_looks,
    join_profiles,
    join_weighted,
    keys_of_part,
    leaves_in_trees,
    leaves_of_part,
    length_of,
    look_at_part,
    part_of_table,
    profiles_of_part,
    recode_part,
    sample_of,
    seen_codes,
    sketch_part,
    table_of_part,
    targets_and_evidence,
    targets_of_part,
    values_of,
    weights_and_importance,
    with_weight,
)
from shapetree.data._binning import MAX_BINNED_ROWS, BinnedTable, FeatureBins, bin_table
from shapetree.data._map_join import MappedParts, add, every, one_after_another
from shapetree.data._parts import Reading, join_distinct
from shapetree.data._sums import (
    Numbers,
    evidence_of,
    exact_unit,
    ones_and_whole,
    sum_of_products,
    sum_of_values,
    weight_of,
    weights_alone,
)
from shapetree.data._table import Table, still_kept, with_seen
from shapetree.data._targets import Goal
from shapetree.ensemble._out_of_bag import leaves_of_rows
from shapetree.fit._folds import TargetCodes, codes_of_categories, hashes_of_rows
from shapetree.fit._training_rows import (
    TrainingRows,
    check_ends,
    check_total,
    check_total_importance,
    factors_of_classes,
    leaves_in,
    read_rows,
    sketched_rows,
)
from shapetree.grow._joined import JoinedRows
from shapetree.grow._local import hold_rows
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._fitted_forest import FittedForest
from shapetree.tree._naming import target_names
from shapetree.tree._sketcher import SketchedRows


@dataclass(frozen=True, eq=False)
class DaskRows:
    """What a fit is given: Dask collections, and the cluster that they are on."""

    cluster: Cluster
    X: Any
    y: Any
    weights: Any

    @property
    def target_names(self) -> tuple[str, ...] | None:
        """Names of the targets, if they have any."""
        with LOOKING:
            return target_names(getattr(self.y, "_meta", self.y))


# --- the parts of collections ---


def parts_of(collection: Any, name: str) -> list[Any]:
    """The parts of a Dask collection, delayed."""
    if hasattr(collection, "chunks"):
        return _blocks_of(collection, name)
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


def _blocks_of(array: Any, name: str) -> list[Any]:
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} has {array.ndim} dimensions; give a table, or a column")
    if array.ndim == 2 and len(array.chunks[1]) > 1:
        array = array.rechunk({1: -1})
    return list(array.to_delayed().ravel())


def _delayed_parts(given: DaskRows) -> list[list[Any]]:
    """Parts of X, y and weights; None for weights that were not given."""
    check_in_step(given.X, given.y, given.weights)
    parts = [parts_of(given.X, "X"), parts_of(given.y, "y")]
    n_parts = len(parts[0])
    weights = given.weights
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
    """A table whose values are on workers.

    Attributes
    ----------
    encoded : ClusterParts
        An `EncodedPart` of every part.
    lengths : int array of shape (n_parts,)
        Numbers of their rows.
    weighing : Weighing or None
        How rows are weighed.
    kept : boolean array or None
        Which rows of the parts are the table's; None for all.
    has_classes : bool
    needed : tuple of int
        Features whose own values splits read.
    """

    encoded: ClusterParts = field(kw_only=True)
    lengths: np.ndarray = field(kw_only=True)
    has_classes: bool = field(kw_only=True)
    weighing: Weighing | None = None
    kept: np.ndarray | None = None
    needed: tuple[int, ...] = ()

    def take(self, kept: np.ndarray) -> DaskTable:
        """Keep the rows that a boolean mask marks."""
        kept_of_all = still_kept(self.kept, kept)
        return replace(self, n_rows=int(np.count_nonzero(kept)), kept=kept_of_all)

    def in_memory(self) -> Table:
        """The same rows, with all values in this process."""
        parts = self.encoded.each(table_of_part, self.kept_rows).results()
        each = zip(*(part.columns for part in parts), strict=True)
        columns: list[np.ndarray | None] = [np.concatenate(column) for column in each]
        return Table(self.n_rows, self.features, columns, self.has_names)

    def parts(self, needed: Iterable[int], counts: np.ndarray | None) -> MappedParts:
        """Parts of the rows on workers; see `Table`."""
        weighing = None if counts is None else self.weighing
        values = partial(part_of_table, weighing=weighing, needed=tuple(needed))
        return self.encoded.map(values, self.kept_rows)

    def with_values(self, needed: Any) -> DaskTable:
        """The table, of which splits will read the values of some features."""
        return replace(self, needed=tuple(needed))

    def with_seen_categories(self) -> DaskTable:
        """The same rows, without categories that none of them has; see `Table`."""
        seen = self.encoded.ask(seen_codes, join_distinct, columns=[self.kept_rows])
        features = with_seen(self.features, seen)
        if features == self.features:
            return self
        encoded = self.encoded.each(recode_part, features=features)
        return replace(self, features=features, encoded=encoded)

    @cached_property
    def kept_rows(self) -> list[Any]:
        """Which rows of every part are kept, as messages to workers."""
        return kept_of_parts(self.encoded.cluster, self.kept, self.lengths)


def kept_of_parts(cluster: Cluster, kept: np.ndarray | None, lengths: np.ndarray) -> list[Any]:
    """A mask of all rows as a `KeptRows` for each part, as messages to workers."""
    firsts = np.cumsum([0, *lengths])
    if kept is None:
        return [KeptRows(None, int(first)) for first in firsts[:-1]]
    masks = [kept[first:last] for first, last in pairwise(firsts)]
    before = np.cumsum([0, *map(np.count_nonzero, masks)])
    return [
        cluster.message(KeptRows(np.packbits(mask), int(first)))
        for mask, first in zip(masks, before, strict=False)
    ]


@read_rows.register
def _(given: DaskRows, y: Any, sample_weight: Any, parameters: Any, has_classes: bool) -> Any:
    """Read targets and weights, and learn the features."""
    cluster = given.cluster
    with LOOKING:
        delayed = _delayed_parts(given)
        columns = list(given.X.columns) if hasattr(given.X, "columns") else None
        n_outputs = given.y.shape[1] if given.y.ndim == 2 else 1
    # At once: what X and y are made of is computed once, and gives the same rows to both.
    each_held = iter(cluster.hold([part for each in delayed for part in each if part is not None]))
    held = [[None if part is None else next(each_held) for part in each] for each in delayed]
    names = [f"part {number}" for number in range(len(held[0]))]
    reading = Reading(
        (), tuple(map(str, range(n_outputs))), None, parameters.categorical_features, has_classes
    )
    looks = cluster.each(look_at_part, *held, names, reading=reading, names=columns)
    look = cluster.joined(looks.futures, join_looks)
    _check(look, parameters.objective)
    factors, found = None, look.found
    about = {"reading": reading, "found": found}
    encoded = cluster.each(encode_rows, *held, names, look.prints, **about)
    for each in held:
        cluster.release([future for future in each if future is not None])
    if parameters.class_weight is not None and found.classes is not None:
        labels = Numbers(encoded.together(classes_and_weights), found.n_rows)
        factors = factors_of_classes(found.classes, labels, parameters.class_weight)
        encoded = encoded.each(with_weight, factors=factors)
    table = DaskTable(
        found.n_rows, found.features, [None] * len(found.features), look.has_names,
        encoded=encoded, lengths=np.array(look.lengths), has_classes=has_classes,
    )  # fmt: skip
    nothing = np.empty((0, n_outputs), dtype=np.int32 if has_classes else np.float64)
    rows = DaskTrainingRows(table, nothing, found.classes, None)
    has_weights = look.weight is not None
    return _weighed(rows, factors, has_weights) if has_weights or factors is not None else rows


def _check(look: Look, objective: str) -> None:
    """Refuse rows that nothing can be learnt from."""
    found = look.found
    if found.n_rows == 0:
        raise ValueError("there are no rows to learn from")
    if found.classes is None:
        check_ends(found.least, found.greatest, objective)
    if look.weight is not None:
        check_total(found.n_weighted > 0, look.weight)


def _weighed(
    rows: DaskTrainingRows, factors: list[np.ndarray] | None, has_weights: bool
) -> DaskTrainingRows:
    """Take weights as evidence, as `TrainingRows.weighed` does where all rows are at hand."""
    table = rows.table
    assert isinstance(table, DaskTable)
    lengths = np.array(table.encoded.ask(length_of, one_after_another))
    n_rows = int(lengths.sum())
    weights = Numbers(table.encoded.together(weights_and_importance, factors=factors), n_rows)
    if factors is not None:
        total = weights.ask(sum_of_products, add) if n_rows else 0.0
        check_total_importance(n_rows > 0, float(total))
    evidence = evidence_of(weights)
    are_ones = bool(weights.map(evidence.columns).ask(ones_and_whole, every)[0])
    is_short = n_rows < table.n_rows
    n_counted = None
    if evidence.are_counts and has_weights:
        n_counted = int(weights.map(weights_alone).ask(sum_of_values, add))
    weighing = Weighing(evidence, factors, None if n_counted == n_rows else n_counted)
    table = replace(table, n_rows=n_rows, lengths=lengths, weighing=weighing)
    table = table.with_seen_categories() if is_short else table
    counts = None if weighing.n_counted is None else np.empty(0)
    return replace(
        rows,
        table=table,
        weights=None if are_ones and counts is None else np.empty(0),
        weight_size=evidence.size,
        counts=counts,
    )


@dataclass(frozen=True, eq=False)
class DaskTrainingRows(TrainingRows):
    """Rows on workers; their targets and weights are gathered in this process only on demand."""

    @property
    def _table(self) -> DaskTable:
        assert isinstance(self.table, DaskTable)
        return self.table

    @property
    def _weighing(self) -> Weighing | None:
        return None if self.weights is None else self._table.weighing

    @cached_property
    def remote(self) -> Numbers:
        """Targets and weights of all rows."""
        parts = self._table.encoded.together(targets_and_evidence, weighing=self._weighing)
        return Numbers(parts, self.table.n_rows)

    @property
    def total_weight(self) -> float:
        """Weight of all rows, or their number."""
        return self.table.n_rows if self.weights is None else weight_of(self.remote)

    @property
    def n_counted(self) -> int:
        """Number of rows, each as often as it counts."""
        weighing = self._weighing
        counted = None if weighing is None else weighing.n_counted
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
        parts = self._table.encoded.each(targets_of_part, dtype=dtype, weighing=self._weighing)
        targets, weights, counts = zip(*parts.results(), strict=True)
        every = None if self.weights is None else np.concatenate(weights)
        times = None if self.counts is None else np.concatenate(counts)
        about = np.concatenate(targets), self.classes, every, self.weight_size, times
        return TrainingRows(self.table, *about)

    def take(self, kept: np.ndarray) -> TrainingRows:
        """Keep the rows that a boolean mask marks."""
        return self.gather().take(kept)


# --- bins ---


@dataclass(frozen=True, eq=False)
class DaskBins(BinnedTable):
    """Bins that are on workers.

    Attributes
    ----------
    table : DaskTable
        The rows that have bins.
    parts : ClusterParts
        Columns of bins, of every part.
    lengths : int array of shape (n_parts,)
    wanted : boolean array or None
        Which of the rows are these; None for all.
    """

    table: DaskTable = field(kw_only=True)
    parts: ClusterParts = field(kw_only=True)
    lengths: np.ndarray = field(kw_only=True)
    wanted: np.ndarray | None = None

    def take(self, kept: np.ndarray) -> DaskBins:
        """Keep the rows that a boolean mask marks."""
        columns = _nothing(self.features, int(np.count_nonzero(kept)))
        return replace(self, columns=columns, wanted=still_kept(self.wanted, kept))

    @cached_property
    def wanted_rows(self) -> list[Any]:
        """Which rows of every part are these, as messages to workers."""
        return kept_of_parts(self.parts.cluster, self.wanted, self.lengths)


def _nothing(features: tuple[FeatureBins, ...], n_rows: int) -> Columns:
    return Columns([None] * len(features), n_rows)


@bin_table.register
def _(table: DaskTable, weights: Any, max_bins: int | None, n_threads: int) -> DaskBins:
    """Bin rows on workers; bounds of bins come from a sample of all."""
    encoded, kept = table.encoded, table.kept_rows
    if max_bins is None:
        features = encoded.ask(
            values_of,
            join_distinct,
            partial(bins_of_values, features=table.features),
            columns=[kept],
        )
        return _bins(table, features, encoded.each(bin_values, kept, features=features))
    weighing = None if weights is None else table.weighing
    samples = encoded.together(sample_of, kept, n_total=table.n_rows, weighing=weighing)
    found = _find_binnings(table, samples, max_bins)
    # Workers need not wait until this process has the bins, too.
    bins = encoded.each(bin_part, kept, [found] * len(encoded))
    return _bins(table, join_binnings(encoded.cluster.results(found)).features, bins)


def _find_binnings(table: DaskTable, samples: ClusterParts, max_bins: int) -> list[Any]:
    """Where bins begin and end; a few workers find those of some features each."""
    n_features = len(table.features)
    ends = np.linspace(0, n_features, min(len(samples), FEW, n_features) + 1).astype(int).tolist()
    is_sample = table.n_rows > MAX_BINNED_ROWS
    return [
        samples.find(
            partial(features_of_sample, first=first, last=last),
            join_weighted,
            partial(
                binning_of,
                features=table.features[first:last],
                is_sample=is_sample,
                max_bins=max_bins,
            ),
        )
        for first, last in pairwise(ends)
    ]


def _bins(table: DaskTable, features: tuple[FeatureBins, ...], parts: ClusterParts) -> DaskBins:
    lengths = table.lengths
    if table.kept is not None:
        firsts = np.cumsum([0, *lengths])[:-1]
        lengths = np.add.reduceat(np.append(table.kept, False).astype(np.int64), firsts)
        lengths[table.lengths == 0] = 0
    columns = _nothing(features, table.n_rows)
    return DaskBins(features, columns, table=table, parts=parts, lengths=lengths)


@hold_rows.register
def _(
    binned: DaskBins, table: DaskTable, goal: Goal, n_threads: int, coarse: DaskBins | None
) -> JoinedRows:
    """A holder of rows on workers."""
    no_columns = [None] * len(binned.parts)
    others: Any = no_columns
    if coarse is not None and coarse.parts is not binned.parts:
        others = coarse.parts.futures
    # Every part has its own rows; here, what was agreed for all is enough.
    agreed = goal.without_rows()
    rows = binned.table.encoded.each(
        hold_part, binned.table.kept_rows, binned.wanted_rows, binned.parts.futures, others,
        features=binned.features,
        coarse_features=None if coarse is None else coarse.features,
        goal=agreed,
        weighing=None if goal.weights is None else binned.table.weighing,
        needed=table.needed,
        unit_of_one=_unit_of_one(binned.table, goal),
    )  # fmt: skip
    held = rows.together(itself, must_be_level=True)
    return JoinedRows(held, binned, coarse, agreed, n_threads)


def _unit_of_one(table: DaskTable, goal: Goal) -> float | None:
    """Grid of weights of rows that are drawn one by one; None if weights are those of all copies.

    See `Draws.rows`.
    """
    weighing = table.weighing
    if goal.weights is None or goal.counts is not None or weighing is None:
        return None
    if weighing.n_counted is None:
        return None
    numbers = Numbers(table.encoded.together(targets_and_evidence, weighing=weighing), table.n_rows)
    return exact_unit(weight_of(numbers))


@hashes_of_rows.register
def _(binned: DaskBins, targets: Any, weights: Any, target_codes: TargetCodes) -> np.ndarray:
    """A hash of each row's bins."""
    assert binned.wanted is None
    table = binned.table
    rows = table.encoded.futures, table.kept_rows
    about: dict[str, Any] = {
        "target_codes": target_codes,
        "weighing": None if weights is None else table.weighing,
    }
    profiles = partial(profiles_of_part, features=binned.features, **about)
    codes = codes_of_categories(binned.parts.ask(profiles, join_profiles, columns=rows))
    keys_of = partial(keys_of_part, codes=codes, **about)
    keys = binned.parts.ask(keys_of, add, columns=rows)
    hashes = binned.parts.each(hashes_of_part, codes=codes, keys=keys)
    return np.concatenate(hashes.results())


@leaves_in.register
def _(binned: DaskBins, table: DaskTable, tree: TreeArrays, n_threads: int) -> np.ndarray:
    """Leaves of the rows."""
    leaves = binned.table.encoded.each(
        leaves_of_part, binned.table.kept_rows, binned.wanted_rows, binned.parts.futures,
        features=binned.features, tree=tree,
    )  # fmt: skip
    return np.concatenate(leaves.results()).astype(np.int32)


@leaves_of_rows.register
def _(table: DaskTable, forest: FittedForest, n_threads: int) -> Iterator[tuple[int, np.ndarray]]:
    parts = table.encoded.each(leaves_in_trees, table.kept_rows, trees=forest.trees)
    first = 0
    for future in parts.futures:
        (leaves,) = parts.cluster.results([future])
        yield first, leaves
        first += len(leaves)


# --- how rows are spread over a finished tree ---


@sketched_rows.register
def _(binned: DaskBins, rows: TrainingRows, tree: TreeArrays, n_threads: int) -> SketchedRows:
    """Rows on workers, with what was agreed to weigh them by."""
    table = binned.table
    parts = table.encoded.together(
        sketch_part, table.kept_rows, binned.wanted_rows, binned.parts.futures,
        tree=tree, features=binned.features, has_classes=rows.classes is not None,
        weighing=None if rows.weights is None and rows.counts is None else table.weighing,
    )  # fmt: skip
    return SketchedRows(parts, binned, binned.n_rows, rows.weights is not None)
