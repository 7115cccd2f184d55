"""What workers do with a part of the data: pure functions, so that Dask can repeat them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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
    EncodedPart,
    PartDescription,
    PartSample,
    Reading,
    description_of,
    distinct_classes,
    empty_description,
    encode_features,
    errors_prefixed_by,
    join_descriptions,
    join_samples,
    sample_part,
)
from shapetree.data._sums import WeightScaling, on_grid
from shapetree.data._table import FeatureInfo, Table, TablePart, read_table
from shapetree.data._targets import Goal
from shapetree.fit._row_hashes import TargetCodes, profiles_of_categories, recoded, times_of
from shapetree.fit._training_rows import importance_by_class, total_of
from shapetree.grow._joined_rows import PartOfRows
from shapetree.grow._local import LocalRows
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of, leaves_of_bins
from shapetree.tree._sketcher import SketchedPart, sole_target

# --- reading ---


class Look(NamedTuple):
    """What some parts hold.

    Attributes
    ----------
    found : PartDescription
    lengths : tuple of int
        Numbers of the parts' rows.
    weight : float or None
        What weights add up to.
    has_names : bool
    prints : tuple of Fingerprint
        Of the parts' rows.
    """

    found: PartDescription
    lengths: tuple[int, ...]
    weight: float | None
    has_names: bool
    prints: tuple[Fingerprint, ...]


def look_at_part(X: Any, y: Any, weights: Any, part: str, reading: Reading, names: Any) -> Look:
    """Read a part, and say what it holds.

    Parameters
    ----------
    X, y, weights
        The part's rows; weights may be None.
    part : str
        What messages call it.
    reading : Reading
    names : list or None
        Columns that X must have.
    """
    with errors_prefixed_by(part):
        _check_columns(X, names)
        _check_steps(X, y, weights)
        own_print = (fingerprint_of(X, y, weights),)
        if len(X) == 0:
            nothing = empty_description(reading), (0,), None if weights is None else 0.0
            return Look(*nothing, False, own_print)
        table = read_table(X, reading.categorical_features)
        targets, own = _read_targets(y, reading.has_classes), _read_weights(weights)
        classes = distinct_classes(targets)[0] if reading.has_classes else None
        found = description_of(table, targets, own, classes, part)
        weight = None if own is None else total_of(own)
        return Look(found, (table.n_rows,), weight, table.has_names, own_print)


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


def join_looks(parts: list[Look]) -> Look:
    """What parts that follow each other hold together."""
    found = join_descriptions([part.found for part in parts])
    weights = [part.weight for part in parts if part.weight is not None]
    return Look(
        found,
        tuple(length for part in parts for length in part.lengths),
        total_of(np.array(weights)) if weights else None,
        any(part.has_names for part in parts),
        tuple(each for part in parts for each in part.prints),
    )


def encode_rows(
    X: Any,
    y: Any,
    weights: Any,
    part: str,
    first_print: Fingerprint,
    reading: Reading,
    found: PartDescription,
) -> EncodedPart:
    """A part as it is learnt from, without rows that weigh nothing."""
    with errors_prefixed_by(part):
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
            return EncodedPart(table, nothing, None if weights is None else np.empty(0))
        targets = _read_targets(y, reading.has_classes)
        if found.classes is not None:
            targets = number_classes(targets, found.classes)
        return with_weight(EncodedPart(table, targets, _read_weights(weights)), None)


def with_weight(part: EncodedPart, factors: list[np.ndarray] | None) -> EncodedPart:
    """The rows of a part that weigh anything."""
    if part.weights is None and factors is None:
        return part
    given, importance = weights_and_importance(part, factors)
    kept = given > 0 if importance is None else given * importance > 0
    if kept.all():
        return part
    own = None if part.weights is None else part.weights[kept]
    return EncodedPart(part.table.take(kept), part.targets[kept], own)


def length_of(part: EncodedPart) -> list[int]:
    """Number of a part's rows, in a list."""
    return [part.table.n_rows]


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


def weights_and_importance(
    part: EncodedPart, factors: list[np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights of a part's rows, and what these are multiplied by for their classes."""
    weights = np.ones(len(part.targets)) if part.weights is None else part.weights
    if factors is None:
        return weights, None
    return weights, importance_by_class(part.targets, factors)


class Weighing(NamedTuple):
    """How a part's rows are weighed, agreed for all.

    Attributes
    ----------
    evidence : WeightScaling
    factors : list of arrays or None
        Weights of the classes of each output, if these have any.
    n_counted : int or None
        How many rows all of them count as, if some count as several.
    """

    evidence: WeightScaling
    factors: list[np.ndarray] | None
    n_counted: int | None


def targets_and_evidence(
    part: EncodedPart, weighing: Weighing | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets and evidence of a part's rows."""
    if weighing is None:
        return part.targets, None
    given, importance = weights_and_importance(part, weighing.factors)
    return part.targets, weighing.evidence.of(given, importance)


def counts_of(part: EncodedPart, weighing: Weighing | None) -> np.ndarray | None:
    """How many rows each of a part counts as; None for one."""
    return None if weighing is None or weighing.n_counted is None else part.weights


def targets_of_part(part: EncodedPart, dtype: Any, weighing: Weighing | None) -> Any:
    """Targets of a part's rows as numbers of some type, their evidence, and their counts."""
    targets, evidence = targets_and_evidence(part, weighing)
    return targets.astype(dtype), evidence, counts_of(part, weighing)


def classes_and_weights(part: EncodedPart) -> tuple[np.ndarray, np.ndarray | None]:
    """Numbers of classes of a part's rows, and the rows' own weights."""
    return part.targets, part.weights


# --- rows that are kept ---


class KeptRows(NamedTuple):
    """Which of a part's rows are kept, and where they stand among all that are.

    Attributes
    ----------
    bits : bytes or None
        A bit for each row; None for all.
    first_row : int
        Number of the first.
    """

    bits: np.ndarray | None
    first_row: int

    def of(self, rows: Any) -> Any:
        """What is kept of an array, of a table, or of bins; None of nothing."""
        if self.bits is None or rows is None:
            return rows
        n_rows = len(rows) if isinstance(rows, np.ndarray) else rows.n_rows
        mask = np.unpackbits(self.bits, count=n_rows).view(bool)
        return rows[mask] if isinstance(rows, np.ndarray) else rows.take(mask)


def table_of_part(
    part: EncodedPart, kept: KeptRows, features: Sequence[int] | None = None
) -> Table:
    """The rows of a part that are kept, with all features or some."""
    table = part.table
    if features is not None:
        wanted = set(features)
        columns = [c if j in wanted else None for j, c in enumerate(table.columns)]
        table = Table(table.n_rows, table.features, columns, table.has_names)
    kept_table: Table = kept.of(table)
    return kept_table


def part_of_table(
    part: EncodedPart, kept: KeptRows, weighing: Weighing | None, needed: tuple[int, ...]
) -> TablePart:
    """The values of some features in a part's rows."""
    counts = kept.of(counts_of(part, weighing))
    return TablePart(table_of_part(part, kept, needed), kept.first_row, counts)


def recode_part(part: EncodedPart, features: tuple[FeatureInfo, ...]) -> EncodedPart:
    """A part whose categories are those of other features; all others are missing."""
    return part._replace(table=part.table.with_features(features))


# --- bins ---

# A sample of rows, and their weights.
WeightedSample = tuple[PartSample, np.ndarray | None]


def sample_of(
    part: EncodedPart, first_row: int, n_total: int, weighing: Weighing | None
) -> WeightedSample:
    """Rows of a part that bins are made of, and their weights."""
    sample = sample_part(part.table, first_row, n_total)
    _, weights = targets_and_evidence(part, weighing)
    return sample, None if weights is None else weights[sample.rows - first_row]


def features_of_sample(sampled: WeightedSample, first: int, last: int) -> WeightedSample:
    """A sample of the features first..last-1."""
    sample, weights = sampled
    return sample._replace(columns=sample.columns[first:last]), weights


def join_weighted(parts: list[WeightedSample]) -> WeightedSample:
    """The sample of some parts, in whatever order: bins do not depend on it."""
    samples, weights = zip(*parts, strict=True)
    return join_samples(samples), None if weights[0] is None else np.concatenate(weights)


def binning_of(
    sampled: WeightedSample, features: tuple[FeatureInfo, ...], is_sample: bool, max_bins: int
) -> Binning:
    """Bins of some features, from a sample of their values."""
    sample, weights = sampled
    return find_binning(sample.table(features), None, is_sample, weights, max_bins, 1)


def join_binnings(parts: list[Binning]) -> Binning:
    """Bins of features that follow each other."""
    features = tuple(feature for part in parts for feature in part.features)
    return Binning(features, tuple(ends for part in parts for ends in part.ends))


def bin_part(part: EncodedPart, binnings: list[Binning]) -> Columns:
    """Bins of a part's rows."""
    table, binning = part.table, join_binnings(binnings)
    bins = [np.empty(table.n_rows, dtype=dtype) for dtype in binning.dtypes]
    binning.bin(table, bins, 1)
    return Columns(bins, table.n_rows)


def values_of(part: EncodedPart) -> list[np.ndarray | None]:
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


def bin_values(part: EncodedPart, features: tuple[FeatureBins, ...]) -> Columns:
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
    return Columns(bins, table.n_rows)


# --- rows of a fit ---


def hold_part(
    part: EncodedPart,
    kept: KeptRows,
    binned: Columns,
    coarse: Columns | None,
    features: tuple[FeatureBins, ...],
    coarse_features: tuple[FeatureBins, ...] | None,
    goal: Goal,
    weighing: Weighing | None,
    needed: tuple[int, ...],
    unit_of_one: float | None,
) -> PartOfRows:
    """A holder of a part's rows.

    Parameters
    ----------
    part : EncodedPart
    kept : KeptRows
    binned, coarse : Columns
        The rows' bins, and those that pairs are screened with; None if they are the same.
    features, coarse_features : tuples of FeatureBins
    goal : Goal
        As it was agreed for all rows.
    weighing : Weighing or None
    needed : tuple of int
        Features whose values are needed.
    unit_of_one : float or None
        Grid of the weights of rows that count as one each, though they stand for several.
    """
    targets, weights = map(kept.of, targets_and_evidence(part, weighing))
    counts = kept.of(counts_of(part, weighing))
    if unit_of_one is not None:
        weights, counts = on_grid(weights / counts, unit_of_one), None
    other = None
    if coarse_features is not None:
        other = kept.of(BinnedTable(coarse_features, binned if coarse is None else coarse))
    return PartOfRows(
        LocalRows(
            table_of_part(part, kept, needed),
            kept.of(BinnedTable(features, binned)),
            goal.of(targets, weights, counts),
            1,
            coarse=other,
            first_row=kept.first_row,
        )
    )


def profiles_of_part(
    binned: Columns,
    part: EncodedPart,
    features: tuple[FeatureBins, ...],
    target_codes: TargetCodes,
    weighing: Weighing | None,
) -> dict[int, np.ndarray]:
    """What categories hold, summed over a part's rows."""
    counts = counts_of(part, weighing)
    times = times_of(counts, counts is not None)
    return profiles_of_categories(binned, features, target_codes.hashes(part.targets), times)


def join_profiles(parts: list[dict[int, np.ndarray]]) -> dict[int, np.ndarray]:
    """Profiles of all parts."""
    return {number: add([part[number] for part in parts]) for number in parts[0]}


def keys_of_part(
    binned: Columns,
    part: EncodedPart,
    codes: dict[int, np.ndarray],
    target_codes: TargetCodes,
    weighing: Weighing | None,
) -> np.ndarray:
    """Keys that tell columns apart, summed over a part's rows."""
    counts = counts_of(part, weighing)
    times = times_of(counts, counts is not None)
    return np.asarray(
        keys_of_columns(recoded(binned, codes), target_codes.hashes(part.targets), times)
    )


def hashes_of_part(binned: Columns, codes: dict[int, np.ndarray], keys: np.ndarray) -> np.ndarray:
    """A hash of each row."""
    return np.asarray(hash_rows(recoded(binned, codes), keys))


def leaves_of_part(
    part: EncodedPart,
    kept: KeptRows,
    binned: Columns,
    features: tuple[FeatureBins, ...],
    tree: TreeArrays,
) -> np.ndarray:
    """Leaves of a part's rows, by their bins."""
    table = table_of_part(part, kept)
    leaves = leaves_of_bins(tree, table, kept.of(BinnedTable(features, binned)), 1)
    return leaves.astype(np.min_scalar_type(tree.node_count))


def leaves_in_trees(part: EncodedPart, kept: KeptRows, trees: tuple[TreeArrays, ...]) -> np.ndarray:
    """Leaves of a part's rows in several trees, (n_rows, n_trees)."""
    table = table_of_part(part, kept)
    leaves = [leaves_of(tree, table, 1) for tree in trees]
    most = max(tree.node_count for tree in trees)
    return np.stack(leaves, axis=1).astype(np.min_scalar_type(most))


def sketch_part(
    part: EncodedPart,
    kept: KeptRows,
    binned: Columns,
    tree: TreeArrays,
    features: tuple[FeatureBins, ...],
    has_classes: bool,
    weighing: Weighing | None,
) -> SketchedPart:
    """A part's rows under a finished tree."""
    targets, weights = map(kept.of, targets_and_evidence(part, weighing))
    counts = kept.of(counts_of(part, weighing))
    y = sole_target(targets, has_classes)
    assert y is not None
    return SketchedPart(
        tree,
        table_of_part(part, kept, tree.features_of_pairs),
        kept.of(BinnedTable(features, binned)),
        y,
        None if counts is None else counts.astype(np.int32),
        weights,
        kept.first_row,
    )
