"""What workers do with a part of the data: pure functions, so that Dask can repeat them."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.sampling import hash_rows, keys_of_columns
from shapetree.data._binning import (
    BinnedTable,
    Binning,
    FeatureBins,
    bin_every_number,
    category_bins,
    find_binning,
    with_wholeness,
)
from shapetree.data._columns import Values
from shapetree.data._fingerprint import Fingerprint
from shapetree.data._labels import number_classes, read_targets
from shapetree.data._map_join import add
from shapetree.data._parts import (
    PartDescription,
    PartSample,
    Reading,
    empty_description,
    encode_features,
    errors_prefixed_by,
    join_descriptions,
    join_samples,
    read_part,
    sample_part,
)
from shapetree.data._sums import Pair, WeightScaling, on_grid
from shapetree.data._table import FeatureInfo, Table, TablePart
from shapetree.data._targets import Goal
from shapetree.fit._row_hashes import TargetCodes, profiles_of_categories, recoded, times_of
from shapetree.fit._training_rows import importance_by_class, total_of
from shapetree.grow._local import LocalRows
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of, leaves_of_bins
from shapetree.tree._sketcher import SketchedPart, sole_target

# --- reading ---


class GivenPart(NamedTuple):
    """A part's rows as they are given; weights may be None."""

    X: Any
    y: Any
    weights: Any
    number: int

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"part {self.number}"


class PartRows(NamedTuple):
    """A part's rows as they are learnt from; see `TrainingRows`."""

    table: Table
    targets: np.ndarray
    weights: np.ndarray | None  # as the user gives them, until these are taken as evidence
    counts: np.ndarray | None = None
    first_row: int = 0  # number of the first among the rows of all parts
    kept: np.ndarray | None = None  # a bit for each row that is learnt from; None for all

    @property
    def n_rows(self) -> int:
        """Number of rows, whether kept or not."""
        return self.table.n_rows

    def numbers(self) -> Pair:
        """Targets and weights; see `Numbers`."""
        return self.targets, self.weights

    def of(self, rows: Any) -> Any:
        """What is kept of a table, or of bins."""
        if self.kept is None:
            return rows
        return rows.take(np.unpackbits(self.kept, count=rows.n_rows).view(bool))

    def take(self, kept: np.ndarray) -> PartRows:
        """Rows that a boolean mask marks."""
        weights = None if self.weights is None else self.weights[kept]
        counts = None if self.counts is None else self.counts[kept]
        return PartRows(self.table.take(kept), self.targets[kept], weights, counts, self.first_row)

    def with_columns(self, needed: Collection[int]) -> PartRows:
        """The rows that are kept, with the values of some features."""
        columns = [c if j in needed else None for j, c in enumerate(self.table.columns)]
        rows = self._replace(table=replace(self.table, columns=columns))
        kept: PartRows = self.of(rows)
        return kept


class Look(NamedTuple):
    """What some parts hold."""

    found: PartDescription
    prints: dict[int, Fingerprint]  # of the rows of each part
    weight: float | None  # what weights add up to
    has_names: bool


def look_at_part(part: GivenPart, reading: Reading, names: list[Any] | None) -> Look:
    """Read a part, and say what it holds; `names` are columns that it must have."""
    X, y, weights, number = part
    with errors_prefixed_by(part.name):
        _check_columns(X, names)
        _check_steps(X, y, weights)
        prints = {number: fingerprint_of(X, y, weights)}
        if len(X) == 0:
            weight = None if weights is None else 0.0
            return Look(empty_description(reading), prints, weight, False)
        targets, own = _read_targets(y, reading.has_classes), _read_weights(weights)
        table, found, _ = read_part(X, targets, own, reading, part.name)
        weight = None if own is None else total_of(own)
        return Look(found, prints, weight, table.has_names)


def fingerprint_of(*given: Any) -> Fingerprint:
    """The fingerprint of a part's rows: of X, y and weights, which may be None."""
    found, columns = Fingerprint(), list[tuple[Hashable, Values]]()
    for name, table in zip((None, "y", "sample_weight"), given, strict=True):
        if isinstance(table, np.ndarray):
            columns += ((name or j, column) for j, column in enumerate(np.atleast_2d(table.T)))
        elif table is not None:
            data = nw.from_native(table, eager_only=True, allow_series=True)
            each = [data] if isinstance(data, nw.Series) else data.iter_columns()
            columns += ((name or column.name, column) for column in each)
    found.add(len(given[0]), columns)
    return found


def join_looks(looks: list[Look]) -> Look:
    """What several parts hold together; messages name the first of those that differ."""
    looks = sorted(looks, key=lambda look: min(look.prints))
    weights = [look.weight for look in looks if look.weight is not None]
    return Look(
        join_descriptions([look.found for look in looks]),
        {number: each for look in looks for number, each in look.prints.items()},
        total_of(np.array(weights)) if weights else None,
        any(look.has_names for look in looks),
    )


def encode_rows(
    part: GivenPart,
    first_print: Fingerprint,
    first_row: int,
    reading: Reading,
    found: PartDescription,
) -> PartRows:
    """A part as it is learnt from, without rows that weigh nothing."""
    X, y, weights, _ = part
    with errors_prefixed_by(part.name):
        # If a worker is lost, Dask makes the part anew.
        difference = fingerprint_of(X, y, weights).differs_from(first_print)
        if difference is not None:
            raise ValueError(
                f"the rows have changed since they were computed first: {difference}. What is lost "
                "with a worker is computed again, and must come out the same, in the same order: "
                "sort rows that come from a database, and give random numbers a seed"
            )
        table = encode_features(X, found.features)
        if table.n_rows == 0:
            kind = np.int32 if reading.has_classes else np.float64
            nothing = np.empty((0, len(reading.targets)), kind)
            own = None if weights is None else np.empty(0)
            return PartRows(table, nothing, own, first_row=first_row)
        targets = _read_targets(y, reading.has_classes)
        if found.classes is not None:
            targets = number_classes(targets, found.classes)
        rows = PartRows(table, targets, _read_weights(weights), first_row=first_row)
        return with_weight(rows, None)


def with_weight(part: PartRows, factors: list[np.ndarray] | None) -> PartRows:
    """The rows of a part that weigh anything."""
    if part.weights is None and factors is None:
        return part
    given, importance = weights_and_importance(part, factors)
    kept = given > 0 if importance is None else given * importance > 0
    return part if kept.all() else part.take(kept)


def length_of(part: PartRows) -> int:
    """Number of a part's rows."""
    return part.n_rows


def _check_columns(X: Any, names: Any) -> None:
    if names is None or not hasattr(X, "columns"):
        return
    its = list(X.columns)
    if its == names:
        return
    for name in names:
        if name not in its:
            raise ValueError(f"there is no column {name!r}, which the other parts have")
    raise ValueError("the columns are others, or in another order, than in the other parts")


def _check_steps(X: Any, *others: Any) -> None:
    """Refuse targets or weights that are not those of the same rows, as far as can be seen."""
    for name, other in zip(("y", "sample_weight"), others, strict=True):
        if other is None:
            continue
        if len(other) != len(X):
            raise ValueError(f"X has {len(X):,} rows, but {name} has {len(other):,}")
        if hasattr(X, "index") and hasattr(other, "index") and not X.index.equals(other.index):
            raise ValueError(
                f"the rows of X and {name} differ in their index or its order: make both from one "
                "frame, or give them the same index"
            )


def _read_targets(y: Any, has_classes: bool) -> np.ndarray:
    n_missing = int(np.asarray(y.isna()).sum()) if hasattr(y, "isna") else 0
    if n_missing:
        raise ValueError(f"y lacks {n_missing:,} of {len(y):,} values; leave those rows out")
    return read_targets(y, has_classes)


def _read_weights(weights: Any) -> np.ndarray | None:
    if weights is None:
        return None
    own = np.asarray(weights, dtype=np.float64)
    if own.ndim != 1:
        raise ValueError(f"sample_weight must hold a weight for each row, got shape {own.shape}")
    if not np.isfinite(own).all() or (own < 0).any():
        raise ValueError("sample_weight holds weights that are negative or not finite")
    return own


# --- weights ---


def weights_and_importance(part: PartRows, factors: list[np.ndarray] | None) -> Pair:
    """Weights of a part's rows, and what these are multiplied by for their classes."""
    weights = np.ones(part.n_rows) if part.weights is None else part.weights
    return weights, None if factors is None else importance_by_class(part.targets, factors)


def with_evidence(
    part: PartRows,
    first_row: int,
    evidence: WeightScaling,
    factors: list[np.ndarray] | None,
    are_weighed: bool,
    are_counted: bool,
) -> PartRows:
    """The rows with their weights as evidence, as it was agreed for all rows."""
    own = evidence.of(*weights_and_importance(part, factors)) if are_weighed else None
    counts = part.weights if are_counted else None
    return part._replace(weights=own, counts=counts, first_row=first_row)


def targets_of_part(part: PartRows, dtype: Any) -> Any:
    """Targets of a part's rows as numbers of some type, their weights, and their counts."""
    return part.targets.astype(dtype), part.weights, part.counts


# --- rows that are kept ---


def keep_rows(part: PartRows, kept: np.ndarray, first_row: int) -> PartRows:
    """The part, of which some rows are kept, and the first of these has another number."""
    return part._replace(kept=kept, first_row=first_row)


def table_of_part(part: PartRows) -> Table:
    """The rows of a part that are kept, with all features."""
    table: Table = part.of(part.table)
    return table


def part_of_table(part: PartRows, needed: tuple[int, ...], has_counts: bool) -> TablePart:
    """The values of some features in a part's rows."""
    rows = part.with_columns(needed)
    return TablePart(rows.table, rows.first_row, rows.counts if has_counts else None)


def recode_part(part: PartRows, features: tuple[FeatureInfo, ...]) -> PartRows:
    """A part whose categories are those of other features; all others are missing."""
    return part._replace(table=part.table.with_features(features))


# --- bins ---


def sample_of(
    part: PartRows, first: int, last: int, n_total: int
) -> list[tuple[PartSample, np.ndarray | None]]:
    """Rows of a part that bins of the features first..last-1 are made of, and their weights."""
    table = part.table
    some = Table(table.n_rows, table.features[first:last], table.columns[first:last])
    sample = sample_part(some, part.first_row, n_total)
    weights = None if part.weights is None else part.weights[sample.rows - part.first_row]
    return [(sample, weights)]


def binning_of(
    samples: list[tuple[PartSample, np.ndarray | None]],
    features: tuple[FeatureInfo, ...],
    is_sample: bool,
    max_bins: int,
) -> Binning:
    """Bins of some features, from samples of the parts, which come in any order."""
    each, weights = zip(*samples, strict=True)
    every = None if weights[0] is None else np.concatenate(weights)
    return find_binning(join_samples(each).table(features), None, is_sample, every, max_bins, 1)


def join_binnings(parts: list[Binning]) -> Binning:
    """Bins of features that follow each other."""
    features = tuple(feature for part in parts for feature in part.features)
    return Binning(features, tuple(ends for part in parts for ends in part.ends))


def bin_part(part: PartRows, binnings: list[Binning]) -> BinnedTable:
    """Bins of a part's rows."""
    table, binning = part.table, join_binnings(binnings)
    bins = [np.empty(table.n_rows, dtype=dtype) for dtype in binning.dtypes]
    binning.bin(table, bins, 1)
    return BinnedTable(binning.features, Columns(bins, table.n_rows))


def values_of(part: PartRows) -> list[np.ndarray | None]:
    """Distinct values of every ordered feature of numbers, and None of others."""
    table = part.table
    return [
        None if column is None or info.is_categorical else np.unique(column[~np.isnan(column)])
        for info, column in zip(table.features, table.columns, strict=True)
    ]


def bins_of_values(
    values: list[np.ndarray | None], features: tuple[FeatureInfo, ...]
) -> tuple[FeatureBins, ...]:
    """Bins for every distinct value."""
    return tuple(
        with_wholeness(
            category_bins(info) if own is None else bin_every_number(own)[0], info.is_whole
        )
        for info, own in zip(features, values, strict=True)
    )


def bin_values(part: PartRows, features: tuple[FeatureBins, ...]) -> BinnedTable:
    """Bins of a part's rows where every value has its own."""
    table, bins = part.table, []
    for info, feature, column in zip(table.features, features, table.columns, strict=True):
        assert column is not None
        if info.is_categorical:
            codes = np.where(column < 0, feature.n_bins, column)
        else:
            assert feature.low is not None
            codes = np.searchsorted(feature.low, column, side="right") - 1
            codes[np.isnan(column)] = feature.n_bins
        bins.append(codes.astype(feature.dtype))
    return BinnedTable(features, Columns(bins, table.n_rows))


# --- rows of a fit ---


def hold_part(
    part: PartRows,
    binned: BinnedTable,
    coarse: BinnedTable | None,
    goal: Goal,
    needed: tuple[int, ...],
    unit_of_one: float | None,
) -> LocalRows:
    """A holder of a part's rows; the goal is what was agreed for all.

    Pairs are screened with coarse bins, if these are others. `unit_of_one` is the grid of weights
    of rows that count as one each, though they stand for several.
    """
    rows = part.with_columns(needed)
    weights = None if goal.weights is None else rows.weights
    counts = None if goal.counts is None else rows.counts
    if unit_of_one is not None:
        assert rows.weights is not None
        weights = on_grid(rows.weights / rows.counts, unit_of_one)
    return LocalRows(
        rows.table,
        part.of(binned),
        goal.of(rows.targets, weights, counts),
        1,
        coarse=None if coarse is None else part.of(coarse),
        first_row=rows.first_row,
    )


class HashedPart(NamedTuple):
    """Bins of a part's rows, hashes of their targets, and how often each is there."""

    binned: BinnedTable
    targets: np.ndarray
    times: np.ndarray | None


def hashed_part(part: PartRows, binned: BinnedTable, target_codes: TargetCodes) -> HashedPart:
    """What hashes of a part's rows are made of."""
    times = times_of(part.counts, part.counts is not None)
    return HashedPart(binned, target_codes.hashes(part.targets), times)


def profiles_of_part(part: HashedPart) -> dict[int, np.ndarray]:
    """What categories hold, summed over a part's rows."""
    return profiles_of_categories(part.binned.columns, part.binned.features, *part[1:])


def join_profiles(parts: list[dict[int, np.ndarray]]) -> dict[int, np.ndarray]:
    """Profiles of all parts."""
    return {number: add([part[number] for part in parts]) for number in parts[0]}


def keys_of_part(part: HashedPart, codes: dict[int, np.ndarray]) -> np.ndarray:
    """Keys that tell columns apart, summed over a part's rows."""
    return np.asarray(keys_of_columns(recoded(part.binned.columns, codes), *part[1:]))


def hashes_of_part(part: HashedPart, codes: dict[int, np.ndarray], keys: np.ndarray) -> np.ndarray:
    """A hash of each row."""
    return np.asarray(hash_rows(recoded(part.binned.columns, codes), keys))


def leaves_of_part(part: PartRows, binned: BinnedTable, tree: TreeArrays) -> np.ndarray:
    """Leaves of a part's rows, by their bins."""
    leaves = leaves_of_bins(tree, table_of_part(part), part.of(binned), 1)
    return leaves.astype(np.min_scalar_type(tree.node_count))


def leaves_in_trees(part: PartRows, trees: tuple[TreeArrays, ...]) -> tuple[int, np.ndarray]:
    """Number of a part's first row, and leaves of its rows in several trees, (n_rows, n_trees)."""
    table = table_of_part(part)
    leaves = [leaves_of(tree, table, 1) for tree in trees]
    most = max(tree.node_count for tree in trees)
    return part.first_row, np.stack(leaves, axis=1).astype(np.min_scalar_type(most))


def sketch_part(
    part: PartRows, binned: BinnedTable, tree: TreeArrays, has_classes: bool
) -> SketchedPart:
    """A part's rows under a finished tree."""
    rows = part.with_columns(tree.features_of_pairs)
    y = sole_target(rows.targets, has_classes)
    assert y is not None
    counts = None if rows.counts is None else rows.counts.astype(np.int32)
    about = tree, rows.table, part.of(binned), y, counts, rows.weights
    return SketchedPart(*about, first_row=rows.first_row)
