"""Rows in parts as a table to learn from: read again whenever their values are needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from tqdm.auto import tqdm

from shapetree._core.columns import extents
from shapetree._core.sampling import row_hashes
from shapetree.data._batches import Batches
from shapetree.data._binning import MAX_BINNED_ROWS, rows_of
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
    read_part_targets,
    sample_part,
)
from shapetree.data._sampling import SCALE_ROWS, hash_limits
from shapetree.data._store import Store, room_for
from shapetree.data._table import FeatureInfo, Table, still_kept


@dataclass(frozen=True, eq=False)
class StoredTable(Table):
    """A table whose values are in parts; its columns are None unless they are needed."""

    batches: Batches = field(kw_only=True)  # where the values are
    kept: np.ndarray | None = None  # which rows of the parts are the table's; None for all
    # Rows that bins can be made of, and the least and the greatest number of each feature,
    # (2, n_features), if all rows have been read already.
    sample: PartSample | None = None
    ends: np.ndarray | None = None
    verbose: int = 0  # whether to show how reading goes
    # The features with all categories of the parts, if some belong to none of the kept rows.
    encoding: tuple[FeatureInfo, ...] | None = None

    def take(self, kept: np.ndarray) -> StoredTable:
        """Keep the rows that a boolean mask marks."""
        columns = iter(rows_of([c for c in self.columns if c is not None], kept, self.store))
        return replace(
            self,
            n_rows=int(np.count_nonzero(kept)),
            columns=[None if column is None else next(columns) for column in self.columns],
            kept=still_kept(self.kept, kept),
            sample=None,
            ends=None,
        )

    def in_memory(self) -> Table:
        """The same rows, with all values in memory."""
        every = self.with_values(range(len(self.features)))
        columns = [None if column is None else np.array(column) for column in every.columns]
        return Table(self.n_rows, self.features, columns, self.has_names)

    def read(self, needed: Iterable[int], what: str) -> Iterator[tuple[int, Table]]:
        """Go through the rows once, batch by batch; see `Table`."""
        needed = list(needed)
        if not needed:
            yield 0, Table(self.n_rows, self.features, [None] * len(self.features), True)
            return
        names = [self.features[j].name for j in needed]
        wanted = [(self.encoding or self.features)[j] for j in needed]
        learnt = tuple(self.features[j] for j in needed)
        n_expected = self.n_rows if self.kept is None else len(self.kept)
        n_read = first_row = 0
        with progress_of(what, n_expected, self.verbose) as bar:
            for part, data in self.batches.tables(names, ()):
                with errors_prefixed_by(part):
                    batch = encode_features(data, wanted)
                n_read += len(data)
                if self.kept is not None:
                    batch = batch.take(self.kept[n_read - len(data) : n_read])
                columns: list[Any] = [None] * len(self.features)
                for j, column in zip(needed, batch.with_features(learnt).columns, strict=True):
                    columns[j] = column
                if batch.n_rows:
                    yield first_row, Table(batch.n_rows, self.features, columns, True)
                first_row += batch.n_rows
                bar.update(len(data))

    def known_values(
        self, features: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """What the first pass found, if all of its rows are the table's."""
        if self.sample is None or self.ends is None:
            return None
        limit = hash_limits(np.array([self.n_rows]), SCALE_ROWS)[0]
        kept = row_hashes(self.sample.rows) <= limit
        columns = [self.sample.columns[feature] for feature in features]
        values = [column[kept] for column in columns if column is not None]
        least, greatest = self.ends[:, list(features)]
        n_kept = int(np.count_nonzero(kept))
        sample = np.array(values, dtype=np.float64).reshape(len(values), n_kept)
        return least, greatest, self.sample.rows[kept], sample

    def with_features(self, features: tuple[FeatureInfo, ...]) -> StoredTable:
        """The same rows, coded by the categories of other features; all others are missing."""
        return replace(self, features=features, encoding=self.encoding or self.features)

    def with_values(self, needed: Iterable[int], what: str = "") -> StoredTable:
        """The table with the values of some features, which may be kept on disk."""
        needed = [j for j in needed if self.columns[j] is None]
        columns = list(self.columns)
        for first, batch in self.read(needed, what or "reading values") if needed else ():
            read = [batch.columns[j] for j in needed]
            if first == 0:
                # All parts have the same types.
                dtypes = [column.dtype for column in read if column is not None]
                room_of = room_for(self.store, self.n_rows, dtypes)
                for j, column in zip(needed, room_of, strict=True):
                    columns[j] = column
            for j, values in zip(needed, read, strict=True):
                room = columns[j]
                assert room is not None
                room[first : first + batch.n_rows] = values
        return replace(self, columns=columns)

    def known_sample(self) -> tuple[np.ndarray, Table]:
        """Rows that bins can be made of and their numbers; they are read first, if need be."""
        sample = self.sample
        if sample is None:
            ordered = [j for j, info in enumerate(self.features) if not info.is_categorical]
            batches = self.read(ordered, "finding bins")
            sample = join_samples(
                [sample_part(batch, first, self.n_rows) for first, batch in batches]
            )
        return sample.rows, sample.table(self.features)


def progress_of(what: str, n_rows: int | None, verbose: int) -> Any:
    """A bar for a pass over all rows, with how many it does in a second."""
    known = "{desc}: {percentage:3.0f}%|{bar}| {elapsed}, {rate_fmt}"
    return tqdm(
        total=n_rows,
        desc=f"shapetree, {what}",
        unit=" rows",
        unit_scale=True,
        bar_format=None if n_rows is None else known,
        disable=not verbose,
    )


# --- the first pass ---


def read_stored(
    batches: Batches, categorical_features: Any, has_classes: bool, verbose: int
) -> tuple[StoredTable, np.ndarray, tuple[np.ndarray, ...] | None, np.ndarray | None]:
    """Learn the features; the table, targets or numbers of classes, classes, and weights."""
    if not batches.targets:
        raise ValueError("there is no target to learn: name its column when you make the batches")
    reading = Reading(
        tuple(batches.features), tuple(batches.targets), batches.weight, categorical_features,
        has_classes,
    )  # fmt: skip
    first_pass, batches = _FirstPass(reading), batches.watched()
    with progress_of("reading rows", batches.n_rows, verbose) as bar:
        for part, data in batches.tables(reading.columns, ()):
            with errors_prefixed_by(part):
                first_pass.add(data, part)
            bar.update(len(data))
    found = first_pass.found
    if found.n_rows == 0:
        raise ValueError("there are no rows to learn from")
    table = StoredTable(
        found.n_rows, found.features, [None] * len(found.features), True,
        batches=batches, store=Store(batches.memory), sample=first_pass.sample(),
        ends=first_pass.ends, verbose=verbose,
    )  # fmt: skip
    return table, first_pass.targets(), found.classes, first_pass.weights()


class _FirstPass:
    """What is kept of the rows as they come in, batch by batch."""

    def __init__(self, reading: Reading) -> None:
        self.found: PartDescription = empty_description(reading)
        self.ends = np.full((2, len(reading.features)), np.nan)
        self._reading = reading
        self._targets: list[np.ndarray] = []
        self._classes: list[tuple[np.ndarray, ...]] = []
        self._weights: list[np.ndarray] = []
        self._samples: list[PartSample] = []

    def add(self, data: Any, part: str) -> None:
        """Look at a batch."""
        frame = nw.from_native(data, eager_only=True)
        if len(frame) == 0:
            return
        reading = self._reading
        X, (targets, weights) = frame.select(reading.features), read_part_targets(frame, reading)
        first_row = self.found.n_rows
        table, described, targets = read_part(X.to_native(), targets, weights, reading, part)
        if described.classes is not None:
            self._classes.append(described.classes)
        self.found = join_descriptions([self.found, described])
        self._note_ends(table)
        self._targets.append(targets)
        if weights is not None:
            self._weights.append(weights)
        # How many rows there are may not be known yet: of those so far, the sample has no fewer.
        self._samples.append(sample_part(table, first_row, self.found.n_rows))
        if sum(len(sample.rows) for sample in self._samples) > 2 * MAX_BINNED_ROWS:
            self._samples = [self.sample()]

    def _note_ends(self, table: Table) -> None:
        ordered = [j for j, info in enumerate(table.features) if not info.is_categorical]
        least, greatest = extents(table.values, np.array(ordered, dtype=np.int32))
        self.ends[0, ordered] = np.fmin(self.ends[0, ordered], least)
        self.ends[1, ordered] = np.fmax(self.ends[1, ordered], greatest)

    def targets(self) -> np.ndarray:
        """Targets of all rows, or the numbers of their classes."""
        if self.found.classes is not None:
            for y, distinct in zip(self._targets, self._classes, strict=True):
                for output, (every, here) in enumerate(
                    zip(self.found.classes, distinct, strict=True)
                ):
                    y[:, output] = np.searchsorted(every, here)[y[:, output]]
        return np.concatenate(self._targets)

    def weights(self) -> np.ndarray | None:
        """Weights of all rows."""
        return np.concatenate(self._weights) if self._weights else None

    def sample(self) -> PartSample:
        """The rows so far that bins are made of."""
        joined = join_samples(self._samples)
        limit = hash_limits(np.array([self.found.n_rows]), MAX_BINNED_ROWS)[0]
        kept = row_hashes(joined.rows) <= limit
        columns = [None if column is None else column[kept] for column in joined.columns]
        return PartSample(joined.rows[kept], columns)


def read_labels(batches: Batches, has_classes: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets of all rows as they are, and weights."""
    if not batches.targets:
        raise ValueError("there is no target: name its column when you make the batches")
    reading = Reading((), tuple(batches.targets), batches.weight, None, has_classes)
    targets, weights = [], []
    for part, data in batches.tables(reading.columns, ()):
        with errors_prefixed_by(part):
            frame = nw.from_native(data, eager_only=True)
            if len(frame):
                its_targets, its_weights = read_part_targets(frame, reading)
                targets.append(its_targets)
                weights.append(its_weights)
    if not targets:
        raise ValueError("there are no rows")
    its = [each for each in weights if each is not None]
    return np.concatenate(targets), np.concatenate(its) if its else None
