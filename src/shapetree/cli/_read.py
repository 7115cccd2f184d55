"""Reading CSV and Parquet files, with a line number for what is wrong in them."""

from __future__ import annotations

import codecs
import csv
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from shapetree.cli._problems import Misuse, Problem, listed

if TYPE_CHECKING:
    import pyarrow as pa

# First bytes of files that are often mistaken for CSV or Parquet.
SIGNATURES = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive or an Excel workbook; export it as CSV",
    b"\xd0\xcf\x11\xe0": "an Excel workbook; export it as CSV",
    b"\x1f\x8b": "compressed; unpack it first",
    b"PAR1": "a Parquet file; name it .parquet",
    b"\xff\xfe": "encoded as UTF-16; save it as UTF-8, or use --encoding utf-16",
    b"\xfe\xff": "encoded as UTF-16; save it as UTF-8, or use --encoding utf-16",
    b"{": "JSON",
    b"<": "HTML or XML",
}
PARQUET_ENDINGS = (".parquet", ".pq")
SEPARATORS = (",", ";", "\t", "|")
CHUNK = 1 << 20
BLOCK = 1 << 26


@dataclass(frozen=True)
class RawTable:
    """A file as it is: the columns of a CSV file are text.

    Attributes
    ----------
    path : Path
    columns : dict of str to pyarrow arrays
    n_rows : int
    separator : str or None
        Separator of the values in a CSV file; None for Parquet.
    """

    path: Path
    columns: dict[str, pa.ChunkedArray]
    n_rows: int
    separator: str | None

    def count_copies(self) -> int:
        """Rows that are the same as a row before them."""
        import pyarrow as pa

        try:
            rows = pa.table(list(self.columns.values()), list(map(str, range(len(self.columns)))))
            return self.n_rows - rows.group_by(rows.column_names).aggregate([]).num_rows
        except pa.ArrowException:  # columns of lists and the like
            return 0


def read_file(path: Path, encoding: str = "utf-8", separator: str | None = None) -> RawTable:
    """Read a file with a row of names; Parquet by the ending of its name, else CSV."""
    try:
        if path.is_dir():
            raise Problem(f"cannot read {path}: it is a folder")
        if path.is_char_device():
            raise Problem(f"cannot read {path}: it is a device; name a file")
        if path.exists() and not path.is_file():
            return _read_stream(path, encoding, separator)
        with open(path, "rb") as file:
            start = file.read(CHUNK)
    except OSError as error:
        raise Problem(f"cannot read {path}: {error.strerror or error}") from error
    if not start.strip():
        raise Problem(f"{path} is empty")
    if path.suffix.lower() in PARQUET_ENDINGS:
        table = _read_parquet(path, start)
    else:
        table = _read_csv(path, start, encoding, separator)
    if table.n_rows == 0:
        raise Problem(f"{path} has column names, but no rows")
    return table


def _read_stream(path: Path, encoding: str, separator: str | None) -> RawTable:
    """Copy a pipe to a file first, because it can be read only once."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, path.name)
        with open(path, "rb") as stream, open(copy, "wb") as file:
            shutil.copyfileobj(stream, file)
        try:
            return replace(read_file(copy, encoding, separator), path=path)
        except Problem as problem:
            raise type(problem)(str(problem).replace(str(copy), str(path))) from None


def _read_parquet(path: Path, start: bytes) -> RawTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not start.startswith(b"PAR1"):
        raise Problem(f"{path} is not a Parquet file, though its name says so")
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise Problem(f"{path} is a damaged Parquet file: {_first_line(error)}") from error
    names = _checked_names(path, table.column_names)
    return RawTable(path, dict(zip(names, table.columns, strict=True)), table.num_rows, None)


def _read_csv(path: Path, start: bytes, encoding: str, separator: str | None) -> RawTable:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    is_utf8 = _check_encoding(encoding)
    _check_signature(path, start, is_utf8)
    n_quotes = sum(text.count('"') for text in _decoded(path, encoding))
    separator = _separator(path, encoding) if separator is None else _as_separator(separator)
    reader_encoding = "utf-8-sig" if is_utf8 else encoding
    header = next(_records(path, reader_encoding, separator), (1, []))[1]
    names = _checked_names(path, header)
    if n_quotes % 2:
        _check_last_quote(path, reader_encoding, separator)
    try:
        table = arrow_csv.read_csv(
            path,
            read_options=arrow_csv.ReadOptions(block_size=BLOCK, encoding=encoding),
            parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        _check_lengths(path, reader_encoding, separator, len(header))
        raise Problem(f"cannot read {path} as CSV: {_first_line(error)}") from error
    columns = [column.cast(pa.string()) for column in table.columns]
    return RawTable(path, dict(zip(names, columns, strict=True)), table.num_rows, separator)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["unknown error"])[0]


def _checked_names(path: Path, header: list[str]) -> list[str]:
    """Names of columns; those without one are known by their number."""
    names = [name.strip() or f"column {i}" for i, name in enumerate(header, start=1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Problem(f"{path} has several columns of the same name: {listed(twice)}")
    return names


def _check_encoding(encoding: str) -> bool:
    """Refuse unknown encodings; say whether it is UTF-8."""
    try:
        "".encode(encoding)  # base64 and others are known, but none of text
        return codecs.lookup(encoding).name == "utf-8"
    except (LookupError, ValueError):
        raise Misuse(f"--encoding {encoding!r} is unknown; try latin-1 or cp1252") from None


def _check_signature(path: Path, start: bytes, is_utf8: bool) -> None:
    """Refuse files that are not text, judging by their first bytes."""
    if not is_utf8:
        return
    for signature, words in SIGNATURES.items():
        if start.lstrip().startswith(signature):
            raise Problem(f"{path} is not a CSV file: it is {words}")
    if b"\0" in start:
        raise Problem(f"{path} is not a CSV file: it holds binary data")


def _decoded(path: Path, encoding: str) -> Iterator[str]:
    """The text of a file, piece by piece; an error if it is not in the encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with open(path, "rb") as file:
        while True:
            piece = file.read(CHUNK)
            try:
                text = decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise Problem(
                    f"{path} is not in {encoding.upper()} (line {line}); save it as UTF-8, or use "
                    "--encoding, for example --encoding latin-1"
                ) from None
            if not piece:
                return
            line += piece.count(b"\n")
            yield text


def _as_separator(given: str) -> str:
    separator = {"\\t": "\t", "tab": "\t"}.get(given, given)
    if len(separator) != 1 or separator in '"\r\n':
        raise Misuse(f"--separator must be a single character, got {given!r}")
    return separator


def _separator(path: Path, encoding: str) -> str:
    """The separator of the names in the first line, outside quotes."""
    line = next(filter(str.strip, open_text(path, encoding)), "")
    unquoted = "".join(line.split('"')[::2])
    return max(SEPARATORS, key=unquoted.count)


def open_text(path: Path, encoding: str) -> Iterator[str]:
    """Lines of a text file."""
    with open(path, encoding=encoding, newline="") as file:
        yield from file


def _records(path: Path, encoding: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Records of a CSV file, without empty ones, and the lines that they begin in."""
    reader = csv.reader(open_text(path, encoding), delimiter=separator)
    line = 1
    try:
        for record in reader:
            if record:
                yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise Problem(f"{path}, from line {line} on: {error}") from error


def _check_lengths(path: Path, encoding: str, separator: str, n_names: int) -> None:
    """Report the first record that is too long or too short, if there is one."""
    for line, record in _records(path, encoding, separator):
        if len(record) != n_names:
            values = "1 value" if len(record) == 1 else f"{len(record)} values"
            raise Problem(f"{path}, line {line}: {values}, but there are {n_names} columns")


def _check_last_quote(path: Path, encoding: str, separator: str) -> None:
    """Refuse a quote that is never closed: it would swallow the rows after it."""
    line, last = 1, [""]
    for line, last in _records(path, encoding, separator):  # noqa: B007
        pass
    if "\n" in last[-1]:
        raise Problem(f"{path}, line {line}: a quote is never closed")
