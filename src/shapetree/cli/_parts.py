"""Folders and patterns of Parquet files, whose rows may be more than fit into memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shapetree import from_parquet
from shapetree.cli._columns import Column, Kind, read_columns
from shapetree.cli._problems import Misuse, Problem, message_of
from shapetree.cli._read import RawTable
from shapetree.data._batches import Batches
from shapetree.data._sampling import sampled

if TYPE_CHECKING:
    import pyarrow as pa

# Rows that tell what columns hold.
SAMPLE_ROWS = 20_000
WILD = "*?["


@dataclass(frozen=True)
class Sample:
    """Some rows of many.

    Attributes
    ----------
    table : RawTable
        About SAMPLE_ROWS rows, or all if there are no more.
    columns : list of Column
        What these hold.
    n_rows : int
        Number of all rows.
    """

    table: RawTable
    columns: list[Column]
    n_rows: int

    @property
    def is_all(self) -> bool:
        """Whether there are no other rows."""
        return self.table.n_rows == self.n_rows


def is_in_parts(path: Path) -> bool:
    """Whether a path stands for several files."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in WILD))


def open_parts(
    path: Path,
    target: str | None = None,
    columns: list[str] | None = None,
    memory: int | str = "1GB",
) -> Batches:
    """The rows of a folder's files, or of those that a pattern names."""
    try:
        return from_parquet(path, target=target, columns=columns, memory=memory)
    except (OSError, ValueError) as error:
        raise Problem(f"cannot read {path}: {message_of(error)}") from error


def sample_parts(path: Path, batches: Batches) -> Sample:
    """Look at some rows, to see what columns hold."""
    import pyarrow as pa

    assert batches.n_rows is not None
    tables: list[pa.Table] = []
    numbers: list[np.ndarray] = []
    first_row = 0
    for _, table in batches.tables(batches.columns):
        rows = sampled(first_row, len(table), batches.n_rows, SAMPLE_ROWS)
        tables.append(table.take(rows - first_row))
        numbers.append(rows)
        first_row += len(table)
    if first_row == 0:
        raise Problem(f"{path} has columns, but no rows")
    joined = pa.concat_tables(tables, promote_options="permissive")
    raw = RawTable(
        path, dict(zip(joined.column_names, joined.columns, strict=True)), len(joined), None
    )
    places = np.concatenate(numbers)
    return Sample(raw, [_checked(column, places) for column in read_columns(raw)], first_row)


def _checked(column: Column, rows: np.ndarray) -> Column:
    """The same column, but for one that counts the rows, which a sample hides."""
    if column.reason is not None or column.kind is not Kind.WHOLE or column.n_missing:
        return column
    assert column.values is not None
    steps = column.values.to_numpy(dtype=np.int64) - rows
    return replace(column, reason="counts the rows") if (steps == steps[0]).all() else column


def check_parquet(data: Path, output: Path | None, endings: tuple[str, ...]) -> Path:
    """Refuse to write predictions of many rows to anything but a Parquet file beside them."""
    if output is None or output.suffix.lower() not in endings:
        raise Misuse(
            f"{data} stands for several files; name a Parquet file for their predictions, such as "
            "-o predictions.parquet"
        )
    if data.is_dir() and data.resolve() in output.resolve().parents:
        raise Misuse(f"{output} would be taken for data, as it is in {data}; choose another folder")
    return output


def predictions_in(path: Path, name: str) -> Any:
    """The column of predictions in a file that has been written."""
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=[name])[name].to_numpy()
