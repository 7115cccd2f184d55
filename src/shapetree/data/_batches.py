"""Rows in files or other parts, read a batch at a time: the same columns in every part."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from shapetree._core.sampling import row_hashes
from shapetree.data._fingerprint import Fingerprint
from shapetree.data._open import refuse_lazy
from shapetree.data._parts import errors_prefixed_by
from shapetree.data._sources import (
    BATCH_ROWS,
    NO_TYPE,
    FragmentPart,
    ParquetPart,
    SourcePart,
    TableSource,
    check_pyarrow,
    is_hive_partitioned,
    parquet_files,
)
from shapetree.data._store import bytes_of

MOST_NAMED = 10


@dataclass(frozen=True)
class RowShare:
    """Rows that are set apart to test on, or all others, by a hash of their numbers."""

    test_size: float
    seed: int
    is_test: bool

    def of(self, table: Any, first_row: int) -> Any:
        """Those rows of a batch."""
        frame = nw.from_native(table, eager_only=True)
        return frame[np.flatnonzero(self.mask(first_row, len(frame)))].to_native()

    def count(self, n_rows: int) -> int:
        """How many of so many rows these are."""
        firsts = range(0, n_rows, BATCH_ROWS)
        sizes = ((first, min(BATCH_ROWS, n_rows - first)) for first in firsts)
        return sum(int(np.count_nonzero(self.mask(*each))) for each in sizes)

    def mask(self, first_row: int, n_rows: int) -> np.ndarray:
        """Which rows these are."""
        # Numbers that no row has: samples of the rows are chosen by the hashes of their own.
        numbers = np.arange(first_row, first_row + n_rows, dtype=np.int64) + (
            (1 + self.seed % 2**30) << 32
        )
        is_test = row_hashes(numbers) < np.uint64(self.test_size * 2.0**64)
        return np.asarray(is_test if self.is_test else ~is_test)


class Batches:
    """Rows in parts, with the columns of features, targets and weights.

    `from_parquet` and `from_batches` make these, and `fit` takes them in place of X and y.

    Attributes
    ----------
    features : list of str
        Columns to learn from.
    targets : list of str
        Columns to predict.
    weight : str or None
        Column of row weights.
    memory : int
        Bytes of memory that the rows' bins may take; beyond it, they are kept in a temporary file.
    n_rows : int or None
        Number of rows; None if it is known only when all have been read.
    folders : list of str
        Folders of which all files are read.
    """

    def __init__(
        self,
        parts: Callable[[], Iterable[SourcePart]],
        target: str | Sequence[str] | None,
        weight: str | None,
        columns: Sequence[str] | None,
        memory: int | str,
        can_look_ahead: bool = True,
    ) -> None:
        self._parts = parts
        self._share: RowShare | None = None
        self._is_watched = False
        self._first_pass: Fingerprint | None = None
        self.memory = bytes_of(memory)
        self.folders: list[str] = []
        self._files: list[str] = []
        self._types, self._first, self.n_rows = _look_through(parts(), can_look_ahead, self._files)
        self.targets = [target] if isinstance(target, str) else list(target or ())
        self.weight = weight
        others = [*self.targets, *([] if weight is None else [weight])]
        self.features = [name for name in self._types if name not in others]
        if columns is not None:
            self.features = [columns] if isinstance(columns, str) else list(columns)
        for parameter, names in (
            ("target", self.targets),
            ("weight", [] if weight is None else [weight]),
            ("columns", self.features),
        ):
            _check_names(self._types, names, parameter)
        both = [name for name in self.features if name in others]
        if both:
            raise ValueError(f"columns names {both[0]!r}, which is the target or the weight")
        if not self.features:
            raise ValueError("there is no column to learn from besides the target")

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets."""
        return tuple(self.targets)

    def __repr__(self) -> str:
        rows = "rows" if self.n_rows is None else f"{self.n_rows:,} rows"
        columns = "1 column" if len(self.features) == 1 else f"{len(self.features):,} columns"
        return f"<{rows} in parts, {columns} to learn from>"

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "rows in parts are for fit, predict, predict_proba, apply, evaluate, strength_path and "
            "predict_parquet; read them into a table for anything else"
        )

    @property
    def columns(self) -> list[str]:
        """All columns of the parts."""
        return list(self._types)

    @property
    def _texts(self) -> list[str]:
        return [name for name, kind in self._types.items() if kind == "string"]

    def check_columns(self, names: Sequence[str], parameter: str) -> None:
        """Refuse names that no column has."""
        _check_names(self._types, names, parameter)

    def check_output(self, path: str | os.PathLike[str], what: str) -> None:
        """Refuse to write `what` to a file that rows are read from, or would be read from again."""
        own, is_there = Path(os.path.realpath(path)), os.path.exists(path)
        reason = ""
        if any(is_there and os.path.exists(f) and os.path.samefile(f, path) for f in self._files):
            reason = "the rows are read from this file"
        for folder in self.folders:
            if not reason and Path(os.path.realpath(folder)) in own.parents:
                reason = f"it would be taken for data, as it is in {folder}"
        if reason:
            raise ValueError(f"cannot write {what} to {os.fspath(path)}: {reason}; name another")

    def watched(self) -> Batches:
        """The same rows, of which every pass must give those of the first, in the same order."""
        watched = copy(self)
        watched._is_watched, watched._first_pass = True, None
        return watched

    def tables(
        self, columns: Sequence[str], to_keep: Collection[str] | None = None
    ) -> Iterator[tuple[str, Any]]:
        """All rows with some of the columns, a batch at a time, and the part each is from.

        Columns that are not to be kept as they are, if that is said, may have their text as codes.
        """
        # Of rows that are watched, each pass reads the targets: they tell rows apart.
        beside = [name for name in self.targets if self._is_watched and name not in columns]
        coded = [] if to_keep is None else [name for name in self._texts if name not in to_keep]
        this_pass = Fingerprint(self.targets if self._is_watched else ())
        for part in self._parts():
            with errors_prefixed_by(part.name):
                _check_types(part, self._types, self._first)
                for table in part.tables([*columns, *beside], coded):
                    first_row = this_pass.n_rows
                    frame = nw.from_native(table, eager_only=True)
                    read = frame.iter_columns() if self._is_watched else ()
                    this_pass.add(len(frame), ((column.name, column) for column in read))
                    if self._first_pass is not None and this_pass.n_rows > self._first_pass.n_rows:
                        self._check(this_pass)
                    table = frame.select(list(columns)).to_native() if beside else table
                    if self._share is not None:
                        table = self._share.of(table, first_row)
                    yield part.name, table
        if self._is_watched:
            self._check(this_pass)

    def _check(self, this_pass: Fingerprint) -> None:
        """Refuse rows that are not those of the first pass."""
        self._first_pass = self._first_pass or this_pass
        difference = this_pass.differs_from(self._first_pass)
        if difference is not None:
            raise ValueError(
                f"the rows have changed since they were read first: {difference}. They are read "
                "several times, and must be the same, in the same order, each time. A database "
                "returns them in any order unless the query has an ORDER BY with columns that tell "
                "all rows apart; if that is not possible, store the rows in a file first"
            )

    def split(self, test_size: float = 0.2, seed: int = 0) -> tuple[Batches, Batches]:
        """Set rows apart to test on.

        Rows are chosen by a hash of their numbers, so nothing is copied: all parts are read for
        either share.

        Parameters
        ----------
        test_size : float, default=0.2
            Share of the rows to test on.
        seed : int, default=0
            Which rows these are.

        Returns
        -------
        train, test : Batches

        Examples
        --------
        >>> import pandas as pd
        >>> import shapetree
        >>> rows = pd.DataFrame({"x": range(1000)})
        >>> rows["y"] = rows["x"] > 300
        >>> train, test = shapetree.from_batches([rows[:700], rows[700:]], target="y").split()
        >>> train, test
        (<797 rows in parts, 1 column to learn from>, <203 rows in parts, 1 column to learn from>)
        >>> tree = shapetree.ShapeTreeClassifier().fit(train)
        >>> round(tree.evaluate(test)["accuracy"], 2)
        1.0
        """
        if self._share is not None:
            raise ValueError("these rows are already a share of others; split the original instead")
        if not 0 < test_size < 1:
            raise ValueError(f"test_size must be a share between 0 and 1, got {test_size!r}")
        shares = []
        for is_test in (False, True):
            share = copy(self)
            share._share = RowShare(float(test_size), seed, is_test)
            share.n_rows = None if self.n_rows is None else share._share.count(self.n_rows)
            shares.append(share)
        return shares[0], shares[1]


def from_parquet(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    memory: int | str = "1GB",
) -> Batches:
    """Rows in Parquet files, which may be larger than memory.

    The files are read a batch at a time. One byte is kept of every value: the number of its bin.
    The tree is the same as for the same rows in memory, however they are spread over files.

    Parameters
    ----------
    path : str, path, or list of these
        A file, a folder with files, or a pattern such as `data/2024-*.parquet`. Rows are numbered
        in the order of the files' names, or of the list. Folders in a path that are called like
        year=2024 are columns, unless the files have them, too.
    target : str or list of str, optional
        The column to predict, or several; needed to fit and to evaluate.
    weight : str, optional
        The column of row weights.
    columns : list of str, optional
        The columns to learn from; by default all others.
    memory : int or str, default="1GB"
        How much memory the rows' bins may take, in bytes or like "200MB". Bins beyond it are kept
        in a temporary file, which is removed when the fit ends, however it ends. This is most of
        the memory a fit needs, but not all of it: add 35 to 55 bytes per row.

    Returns
    -------
    Batches
        For `fit` in place of X and y, and for `predict`, `predict_proba`, `apply` and `evaluate`.

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> import shapetree
    >>> folder = tempfile.TemporaryDirectory()
    >>> for month in (1, 2):
    ...     rows = pd.DataFrame({"age": range(20, 70), "height": [170, 180] * 25})
    ...     rows["old"] = rows["age"] >= 50
    ...     rows.to_parquet(os.path.join(folder.name, f"month{month}.parquet"))
    >>> data = shapetree.from_parquet(folder.name, target="old")
    >>> data
    <100 rows in parts, 2 columns to learn from>
    >>> tree = shapetree.ShapeTreeClassifier().fit(data)
    >>> tree.predict(data)[[0, 29, 30, 99]].tolist()
    [False, False, True, True]
    >>> folder.cleanup()
    """
    check_pyarrow("from_parquet")
    files = parquet_files(path)
    if is_hive_partitioned(files):
        import pyarrow.dataset as ds

        dataset = ds.dataset(files, format="parquet", partitioning="hive")
        found = from_batches(dataset, target, weight, columns, memory)
    else:
        found = Batches(lambda: map(ParquetPart, files), target, weight, columns, memory)
    given = [path] if isinstance(path, str | os.PathLike) else path
    found.folders = [os.fspath(each) for each in given if os.path.isdir(each)]
    return found


def from_batches(
    batches: Any,
    target: str | Sequence[str] | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    memory: int | str = "1GB",
) -> Batches:
    """Rows in a pyarrow Dataset, or in tables that can be read again and again.

    Parameters
    ----------
    batches : pyarrow.dataset.Dataset, list of tables, or function
        Tables are pandas, polars or pyarrow tables. Instead of a list, you can give any iterable
        that can be read more than once, or a function that returns an iterator of tables. The rows
        must come in the same order each time: a query of a database needs an ORDER BY.
    target, weight, columns, memory
        As for `from_parquet`.

    Returns
    -------
    Batches
        For `fit` in place of X and y, and for `predict`, `predict_proba`, `apply` and `evaluate`.

    Examples
    --------
    >>> import pandas as pd
    >>> import shapetree
    >>> def by_month():
    ...     for month in range(12):
    ...         yield pd.DataFrame({"month": [month] * 30, "price": [10 + 5 * (month > 6)] * 30})
    >>> data = shapetree.from_batches(by_month, target="price")
    >>> tree = shapetree.ShapeTreeRegressor().fit(data)
    >>> tree.predict(pd.DataFrame({"month": [2, 9]})).tolist()
    [10.0, 15.0]
    """
    if hasattr(batches, "get_fragments"):
        return Batches(
            lambda: (
                FragmentPart(fragment, batches.schema, number)
                for number, fragment in enumerate(batches.get_fragments())
            ),
            target, weight, columns, memory,
        )  # fmt: skip
    refuse_lazy(batches, "batches")
    if hasattr(batches, "to_dict") or hasattr(batches, "column_names"):
        raise TypeError(
            f"batches is a single {type(batches).__name__}; give a list of tables, or give the "
            "table to fit itself"
        )
    if isinstance(batches, Iterator):
        raise TypeError(
            "batches can be read only once; give a list, or a function that returns a new iterator"
        )
    source = batches if callable(batches) else lambda: batches
    return Batches(
        lambda: (TableSource(table, number) for number, table in enumerate(source())),
        target, weight, columns, memory, isinstance(batches, Sequence),
    )  # fmt: skip


def refuse_beside_batches(**given: Any) -> None:
    """Refuse targets and weights beside batches, which have their own."""
    for name, value in given.items():
        if value is not None:
            column = "weight" if name == "sample_weight" else "target"
            raise ValueError(
                f"{name} must not be given with batches: name its column as {column} when you make "
                "them"
            )


def _look_through(
    parts: Iterable[SourcePart], can_look_ahead: bool, files: list[str]
) -> tuple[dict[str, str], str, int | None]:
    """The columns that all parts have, the first part, and how many rows there are.

    Paths of their files are added to a list. Where parts are made when they are needed, only the
    first is looked at.
    """
    types: dict[str, str] = {}
    first, n_rows = "", 0
    for part in parts:
        with errors_prefixed_by(part.name):
            if not first:
                first, types = part.name, part.types()
            _check_types(part, types, first)
            n_rows += part.count()
            if part.path is not None:
                files.append(part.path)
        if not can_look_ahead:
            return types, first, None
    if not first:
        raise ValueError("there is no part with rows")
    return types, first, n_rows


def _check_types(part: SourcePart, types: dict[str, str], first: str) -> None:
    """Refuse a part with other columns than the first."""
    its = part.types()
    for name, kind in types.items():
        if name not in its:
            raise ValueError(f"there is no column {name!r}, which {first} has")
        if kind == NO_TYPE:
            types[name] = its[name]  # the first has no value to tell by
        elif its[name] not in (kind, NO_TYPE):
            raise ValueError(
                f"column {name!r} holds {its[name]}, but {kind} in {first}; give it the same type "
                "in every part"
            )


def _check_names(types: dict[str, str], names: Sequence[str], parameter: str) -> None:
    known = ", ".join(map(repr, list(types)[:MOST_NAMED])) + (", …" * (len(types) > MOST_NAMED))
    for name in names:
        if name not in types:
            raise ValueError(f"{parameter} names the column {name!r}, but the columns are {known}")
