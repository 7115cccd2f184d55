"""Where rows in parts come from: Parquet files, fragments of a dataset, tables."""

from __future__ import annotations

import glob
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw

from shapetree.data._open import refuse_lazy

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

# Rows that are read at a time, and values that they may hold at most.
BATCH_ROWS = 2**17
BATCH_VALUES = 2**22
PARQUET_ENDINGS = (".parquet", ".pq")
# The type of a column that lacks every value, which goes with any other.
NO_TYPE = "null"


class SourcePart(ABC):
    """A part of the data: a file, a fragment, a table."""

    # The file that the part is read from, if it is one.
    path: str | None = None

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it."""

    @abstractmethod
    def types(self) -> dict[str, str]:
        """Names and types of its columns."""

    @abstractmethod
    def count(self) -> int:
        """How many rows it has."""

    @abstractmethod
    def tables(self, columns: list[str], coded: list[str]) -> Iterator[Any]:
        """Its rows with some of the columns, a batch at a time; one without rows if it has none.

        Columns of text that are named in `coded` may come as codes of a dictionary.
        """


@dataclass(frozen=True)
class ParquetPart(SourcePart):
    """A Parquet file."""

    path: str

    @property
    def name(self) -> str:
        """The file's path."""
        return self.path

    def types(self) -> dict[str, str]:
        """Names and types of its columns, from its footer; those of pandas' index are not meant."""
        import pyarrow.parquet as pq

        return _types(pq.read_schema(self.path))

    def count(self) -> int:
        import pyarrow.parquet as pq

        return int(pq.read_metadata(self.path).num_rows)

    def tables(self, columns: list[str], coded: list[str]) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        # Files have text as codes: Arrow need not look up what it has just written out.
        with pq.ParquetFile(self.path, read_dictionary=coded) as file:
            if file.metadata.num_rows == 0:
                yield file.schema_arrow.empty_table().select(columns)
            for batch in file.iter_batches(_batch_size(columns), columns=columns):
                # Columns come in the file's order.
                yield pa.table(batch).select(columns)


@dataclass(frozen=True)
class FragmentPart(SourcePart):
    """A fragment of a pyarrow Dataset."""

    fragment: ds.Fragment
    schema: pa.Schema
    number: int

    @property
    def path(self) -> str | None:  # type: ignore[override]
        """The fragment's path, if it has one."""
        return getattr(self.fragment, "path", None)

    @property
    def name(self) -> str:
        """The fragment's path, or its number."""
        return self.path or f"part {self.number}"

    def types(self) -> dict[str, str]:
        """Names and types of its columns, those of its path among them."""
        import pyarrow.dataset as ds

        own = _types(self.fragment.physical_schema)
        told = ds.get_partition_keys(self.fragment.partition_expression)
        every = _types(self.schema)
        return {name: own.get(name, kind) for name, kind in every.items() if name in {*own, *told}}

    def count(self) -> int:
        return int(self.fragment.count_rows())

    def tables(self, columns: list[str], coded: list[str]) -> Iterator[Any]:
        import pyarrow as pa

        size, is_empty = _batch_size(columns), True
        for batch in self.fragment.to_batches(self.schema, columns=columns, batch_size=size):
            is_empty = False
            yield pa.table(batch)
        if is_empty:
            yield self.schema.empty_table().select(columns)


@dataclass(frozen=True)
class TableSource(SourcePart):
    """A table in memory, or one that is made when it is needed."""

    table: Any
    number: int

    @property
    def name(self) -> str:
        """The part's number."""
        return f"part {self.number}"

    def types(self) -> dict[str, str]:
        frame = self._frame()
        native = frame.to_native()
        if frame.implementation.is_pyarrow():
            return _types(native.schema)
        if not all(isinstance(name, str) for name in frame.columns):
            raise TypeError("columns must have names that are strings")
        # Objects may be anything, and are looked at when they are read.
        return {
            name: NO_TYPE if isinstance(kind, nw.Object | nw.Unknown) else _plain_type(str(kind))
            for name, kind in frame.schema.items()
        }

    def count(self) -> int:
        return len(self._frame())

    def tables(self, columns: list[str], coded: list[str]) -> Iterator[Any]:
        frame, size = self._frame().select(columns), _batch_size(columns)
        if len(frame) <= size:
            yield frame.to_native()
        else:
            for start in range(0, len(frame), size):
                yield frame[start : start + size].to_native()

    def _frame(self) -> nw.DataFrame[Any]:
        try:
            return nw.from_native(self.table, eager_only=True)
        except TypeError:
            refuse_lazy(self.table, self.name)
            kind = type(self.table).__name__
            raise TypeError(
                f"{self.name} is a {kind}; batches must be pandas, polars or pyarrow tables"
            ) from None


def check_pyarrow(needed_by: str) -> None:
    """Say what to install if Parquet files cannot be read."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'{needed_by} needs pyarrow; install it with pip install "shapetree[parquet]"'
        ) from error


def parquet_files(path: Any) -> list[str]:
    """Paths of all files, in the order of their rows."""
    if not isinstance(path, str | os.PathLike):
        return [file for each in path for file in parquet_files(each)]
    text = os.fspath(path)
    if os.path.isdir(text):
        found = [p for p in Path(text).rglob("*") if p.suffix.lower() in PARQUET_ENDINGS]
        files = sorted(str(p) for p in found if p.is_file() and not p.name.startswith((".", "_")))
        if not files:
            raise FileNotFoundError(f"the folder {text} holds no .parquet file")
        return files
    if os.path.exists(text):
        return [text]
    matched = sorted(glob.glob(text, recursive=True))
    if not matched:
        raise FileNotFoundError(f"there is no file {text}")
    # A pattern may match folders, too, or nothing but these.
    return [each for each in matched if not os.path.isdir(each)] or parquet_files(matched)


def is_hive_partitioned(files: list[str]) -> bool:
    """Whether files are in folders such as year=2024, whose names are values of a column."""
    folders = {name for file in files for name in Path(file).parts[:-1]}
    told = {name.partition("=")[0] for name in folders if "=" in name}
    return bool(told) and not told <= ParquetPart(files[0]).types().keys()


def _batch_size(columns: list[str]) -> int:
    return max(1, min(BATCH_ROWS, BATCH_VALUES // max(1, len(columns))))


def _types(schema: pa.Schema) -> dict[str, str]:
    """Types by the names of columns; those that hold the same values are the same."""
    import pyarrow as pa

    def plain(kind: pa.DataType) -> str:
        if pa.types.is_dictionary(kind):
            order = ", ordered" if kind.ordered else ""
            return f"dictionary of {plain(kind.value_type)}{order}"
        return _plain_type(str(kind))

    names = [field.name for field in schema]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"there are two columns of the name {twice!r}")
    told = json.loads((schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    index = {name for name in told if isinstance(name, str)}
    return {field.name: plain(field.type) for field in schema if field.name not in index}


def _plain_type(kind: str) -> str:
    return "string" if kind in ("large_string", "string_view") else kind
