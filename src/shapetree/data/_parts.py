"""Parts of the data, each read on its own: what they hold is joined, and then they are encoded.

These are pure functions of a part. The holder of the parts (files, batches, a cluster's partitions)
describes each, joins what comes back, and encodes each by what all of them hold. The result is that
of one table that has the rows of all parts, one part after the other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from shapetree.data._binning import MAX_BINNED_ROWS
from shapetree.data._columns import factorize, sorted_categories
from shapetree.data._labels import find_classes, read_targets
from shapetree.data._open import MAX_ROWS
from shapetree.data._sampling import sampled
from shapetree.data._table import FeatureInfo, Table, encode_table, read_table


@dataclass(frozen=True)
class Reading:
    """How to read parts: names of columns, and whether the targets are classes or numbers."""

    features: tuple[str, ...]
    targets: tuple[str, ...]
    weight: str | None
    categorical_features: Any
    has_classes: bool

    @property
    def columns(self) -> list[str]:
        """All columns that are read."""
        return [*self.features, *self.targets, *([] if self.weight is None else [self.weight])]


class SeenFeature(NamedTuple):
    """A feature, and the part that it was found in.

    It is blank if all values are missing there, so that the part does not show the column's kind.
    """

    info: FeatureInfo
    part: str
    is_blank: bool


@dataclass(frozen=True)
class PartDescription:
    """What some parts hold."""

    n_rows: int
    n_weighted: int  # rows whose weight is not zero
    seen: tuple[SeenFeature, ...]  # none of a part without rows
    # Distinct labels of each output, sorted; None for numbers.
    classes: tuple[np.ndarray, ...] | None
    # The ends of each output's targets; an infinite range for classes.
    least: np.ndarray
    greatest: np.ndarray

    @property
    def features(self) -> tuple[FeatureInfo, ...]:
        """What all parts together say about the features."""
        return tuple(each.info for each in self.seen)


def empty_description(reading: Reading) -> PartDescription:
    """What a part without rows holds."""
    ends = np.full(len(reading.targets), np.inf)
    return PartDescription(0, 0, (), None, ends, -ends)


def read_part(
    X: Any, targets: np.ndarray, weights: np.ndarray | None, reading: Reading, part: str
) -> tuple[Table, PartDescription, np.ndarray]:
    """Read a part's features; the table, what the part holds, and targets or numbers of classes.

    Targets and weights have been checked.
    """
    table, classes = read_table(X, reading.categorical_features), None
    seen = [
        SeenFeature(info, part, _is_blank(info, column))
        for info, column in zip(table.features, table.columns, strict=True)
    ]
    n_weighted = table.n_rows if weights is None else int(np.count_nonzero(weights))
    nothing = np.full(targets.shape[1], np.inf)
    least, greatest = nothing, -nothing
    if reading.has_classes:
        with warnings.catch_warnings():
            # A part may be too small to distinguish classes from numbers.
            warnings.simplefilter("ignore", UserWarning)
            classes, targets = find_classes(targets)
    else:
        least, greatest = targets.min(axis=0), targets.max(axis=0)
    about = table.n_rows, n_weighted, tuple(seen), classes, least, greatest
    return table, PartDescription(*about), targets


def join_descriptions(parts: Sequence[PartDescription]) -> PartDescription:
    """What parts that follow each other hold together."""
    return reduce(_join, parts)


def _join(one: PartDescription, other: PartDescription) -> PartDescription:
    if one.n_rows == 0 or other.n_rows == 0:
        return one if other.n_rows == 0 else other
    n_rows = one.n_rows + other.n_rows
    if n_rows > MAX_ROWS:
        raise ValueError(
            f"there are {n_rows:,} rows or more, but at most {MAX_ROWS:,} are supported"
        )
    classes = None
    if one.classes is not None and other.classes is not None:
        each = zip(one.classes, other.classes, strict=True)
        classes = tuple(np.unique(np.concatenate(labels)) for labels in each)
    return PartDescription(
        n_rows,
        one.n_weighted + other.n_weighted,
        tuple(map(_join_seen, one.seen, other.seen)),
        classes,
        np.minimum(one.least, other.least),
        np.maximum(one.greatest, other.greatest),
    )


def _is_blank(info: FeatureInfo, column: np.ndarray | None) -> bool:
    if info.is_ordered or info.is_date:
        return False  # their types tell
    if info.categories is not None:
        return not info.categories
    assert column is not None
    # The first few rows nearly always suffice.
    return bool(np.isnan(column[:64]).all() and np.isnan(column).all())


def _join_seen(one: SeenFeature, other: SeenFeature) -> SeenFeature:
    """What two parts say about a feature."""
    if one.is_blank or other.is_blank:
        both_blank = one.is_blank and other.is_blank
        is_kept = one.info.is_categorical if both_blank else other.is_blank
        return one if is_kept else other
    known, new = one.info, other.info
    if _kind(known) != _kind(new):
        raise ValueError(
            f"{other.part}: column {new.name!r} holds {_kind(new)}, but {_kind(known)} in "
            f"{one.part}; give it the same type in every part"
        )
    if known.is_ordered and known.categories != new.categories:
        raise ValueError(
            f"{other.part}: column {new.name!r} has other categories, or another order of them, "
            f"than in {one.part}; give it the same ordered categories in every part"
        )
    info = known
    if known.categories != new.categories:
        levels = {*(known.categories or ()), *(new.categories or ())}
        info = replace(known, categories=sorted_categories(levels))
    elif known.date != new.date:
        info = replace(known, date="time")  # one has whole days alone
    elif known.is_whole != new.is_whole:
        info = replace(known, is_whole=False)
    return SeenFeature(info, one.part, False)


def _kind(info: FeatureInfo) -> str:
    """What a column holds, in words."""
    if info.is_ordered:
        return "ordered categories"
    if info.is_categorical:
        return "categories"
    if info.is_date:
        return "moments with a time zone" if info.date == "utc" else "dates without a time zone"
    return "numbers"


def encode_features(
    data: Any, features: Sequence[FeatureInfo], needed: Sequence[int] | None = None
) -> Table:
    """Features of a part, which may have no rows; see `encode_table`."""
    if len(data) > 0:
        return encode_table(data, features, needed)
    wanted = range(len(features)) if needed is None else needed
    columns: list[np.ndarray | None] = [None] * len(features)
    for j in wanted:
        columns[j] = np.empty(0, np.int32 if features[j].is_categorical else np.float64)
    return Table(0, tuple(features), columns, True)


# --- samples for bins ---


class PartSample(NamedTuple):
    """Values of a part's rows that belong to the sample which bins are made of."""

    rows: np.ndarray  # their numbers among all rows
    # Numbers of each feature; None for categories, whose bins are known without.
    columns: list[np.ndarray | None]

    def table(self, features: Sequence[FeatureInfo]) -> Table:
        """The sample as a table, for `find_binning`."""
        return Table(len(self.rows), tuple(features), self.columns, True)


def sample_part(table: Table, first_row: int, n_total: int) -> PartSample:
    """The rows of an encoded part that belong to the sample; all if there are no more than that.

    Its first row has the number `first_row` among all, of which there are `n_total`.
    """
    rows = sampled(first_row, table.n_rows, n_total, MAX_BINNED_ROWS)
    columns = [
        None if column is None or info.is_categorical else column[rows - first_row]
        for info, column in zip(table.features, table.columns, strict=True)
    ]
    return PartSample(rows, columns)


def join_samples(parts: Sequence[PartSample]) -> PartSample:
    """The sample of parts that follow each other."""
    if len(parts) == 1:
        return parts[0]
    columns = [
        None if any(column is None for column in each) else np.concatenate(each)
        for each in zip(*(part.columns for part in parts), strict=True)
    ]
    return PartSample(np.concatenate([part.rows for part in parts]), columns)


# --- targets and weights ---


def read_part_targets(
    frame: nw.DataFrame[Any], reading: Reading
) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets and weights of a part, checked."""
    if len(frame) == 0:
        kind = np.int32 if reading.has_classes else np.float64
        return np.empty(
            (0, len(reading.targets)), kind
        ), None if reading.weight is None else np.empty(0)
    targets = read_targets(_values(frame, reading.targets), reading.has_classes)
    if reading.weight is None:
        return targets, None
    values = _values(frame, (reading.weight,))[:, 0]
    if values.dtype.kind not in "biuf":
        raise ValueError(f"column {reading.weight!r} is to hold weights, but holds no numbers")
    weights = values.astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"column {reading.weight!r} holds weights that are negative or not finite")
    return targets, weights


def _values(frame: nw.DataFrame[Any], names: Sequence[str]) -> np.ndarray:
    """Columns as they are, of shape (n_rows, n_columns)."""
    columns = []
    for name in names:
        column = frame.get_column(name)
        n_missing = int(column.is_null().sum())
        if n_missing:
            raise ValueError(
                f"column {name!r} lacks {n_missing:,} of {len(frame):,} values; leave those rows "
                "out"
            )
        if isinstance(column.dtype, nw.Categorical | nw.Enum | nw.String):
            codes, levels = factorize(column, name)
            columns.append(np.array(levels, dtype=object)[codes])
        else:
            columns.append(column.to_numpy())
    return np.column_stack(columns)


# --- errors ---


@contextmanager
def errors_prefixed_by(part: str) -> Iterator[None]:
    """Begin the message of an error in the block with the name of a part of the data."""
    try:
        yield
    except (ValueError, TypeError, OSError, KeyError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        if message.startswith(part):
            raise
        kind: Callable[[str], Exception] = ValueError
        if isinstance(error, TypeError):
            kind = TypeError
        raise kind(f"{part}: {message}") from error
