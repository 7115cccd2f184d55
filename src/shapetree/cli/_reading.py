"""Files of many formats as tables of Arrow, with a line number for what is wrong in a CSV file."""

from __future__ import annotations

import codecs
import csv
import gzip
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import feather, parquet
from pyarrow import json as arrow_json

from shapetree._core.sampling import row_hashes
from shapetree.cli._arguments import STANDARD
from shapetree.cli._console import Misuse, Problem, listed
from shapetree.data._sources import PARQUET_ENDINGS

# First bytes of files that are often mistaken for CSV or Parquet.
SIGNATURES = {
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF": "a PDF document",
    b"PK\x03\x04": "a zip archive or an Excel workbook; name a workbook .xlsx, or export it as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; export it as CSV",
    b"\x1f\x8b": "compressed; name it .gz",
    b"PAR1": "a Parquet file; name it .parquet",
    b"ARROW1": "a Feather file; name it .feather",
    b"\xff\xfe": "encoded as UTF-16; save it as UTF-8, or use --encoding utf-16",
    b"\xfe\xff": "encoded as UTF-16; save it as UTF-8, or use --encoding utf-16",
    b"{": "JSON; name it .jsonl if each line is a row",
    b"<": "HTML or XML",
}
FEATHER_ENDINGS = (".feather", ".arrow")
JSON_ENDINGS = (".jsonl", ".ndjson")
EXCEL_ENDING, GZIP_ENDING = ".xlsx", ".gz"
# What a stream holds, which has no name, by its first bytes.
STREAM_ENDINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".feather",
    b"PK\x03\x04": ".xlsx",
    b"{": ".jsonl",
}
SEPARATORS = (",", ";", "\t", "|")
# Bytes of a file that are looked at and parsed at a time.
CHUNK = 1 << 20
BLOCK = 1 << 22
# What stands for a missing value in CSV files: as in pandas, plus signs that people use.
MISSING = frozenset(
    (
        *("", "NA", "N/A", "n/a", "#N/A", "#NA", "<NA>", "NaN", "nan", "NULL", "null", "None"),
        *("?", "-", "."),
    )
)
# Text in memory: codes of its distinct values.
TEXT = pa.dictionary(pa.int32(), pa.string())
# Digits that are no plain number: post codes such as 01099, long identifiers, hexadecimal ones.
NO_NUMBERS = r"^[+-]?(0[0-9xX]|[0-9]{16})"


@dataclass(frozen=True)
class FileTable:
    """A file as it is: columns of a CSV file are plain numbers or else text.

    Attributes
    ----------
    path : Path
    rows : pyarrow Table
    separator : str or None
        Separator of the values in a CSV file; None for files whose columns have types.
    """

    path: Path
    rows: pa.Table
    separator: str | None

    def count_copies(self) -> int:
        """Rows that are the same as a row before them, by hashes, which take little memory."""
        hashes = np.zeros(self.rows.num_rows, dtype=np.int64)
        try:
            for column in self.rows.columns:
                hashes = row_hashes(hashes ^ codes_of(encoded(column))).view(np.int64)
        except pa.ArrowException:  # columns of lists and the like
            return 0
        return len(hashes) - len(np.unique(hashes))


def encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    """A column by its distinct values."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    if isinstance(joined, pa.ChunkedArray):  # of no rows
        return pa.array([], joined.type.value_type).dictionary_encode()
    return joined


def codes_of(column: pa.DictionaryArray) -> np.ndarray:
    """Each row's place among the distinct values of a column; -1 for a missing value."""
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def read_file(
    path: Path,
    encoding: str = "utf-8",
    separator: str | None = None,
    texts: Collection[str] = (),
) -> FileTable:
    """Read a file with names of columns, by the ending of its name; CSV if that is another one."""
    with as_file(path) as file:
        return replace(read_local(file, encoding, separator, texts), path=path)


@contextmanager
def as_file(path: Path) -> Iterator[Path]:
    """An ordinary file: the path's own, or a copy of a stream or of what is compressed."""
    with tempfile.TemporaryDirectory() as folder:
        file = _ordinary_file(path, Path(folder))
        try:
            yield file
        except Problem as problem:
            shown = "standard input" if path == STANDARD else str(path)
            raise type(problem)(str(problem).replace(str(file), shown)) from None


def _ordinary_file(path: Path, folder: Path) -> Path:
    try:
        if path == STANDARD:
            return _copied(sys.stdin.buffer, path, folder)
        if path.is_dir():
            raise Problem(f"cannot read {path}: it is a folder")
        if path.is_char_device():
            raise Problem(f"cannot read {path}: it is a device; name a file")
        with open(path, "rb") as stream:
            if not path.is_file() or path.suffix.lower() == GZIP_ENDING:
                return _copied(stream, path, folder)
        return path
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise Problem(f"cannot read {path}: {reason}") from error


def _copied(stream: BinaryIO, path: Path, folder: Path) -> Path:
    """A copy of a stream, unpacked if it is compressed, whose name has the ending of its format."""
    packed = folder / "packed"
    with open(packed, "wb") as file:
        shutil.copyfileobj(stream, file)
    name = path.name if path != STANDARD else "input"
    with open(packed, "rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(packed) if is_packed else open(packed, "rb") as content:
        start = content.read(CHUNK)
        if name.lower().endswith(GZIP_ENDING):
            name = name[: -len(GZIP_ENDING)]
        if "." not in name:
            found = (end for sign, end in STREAM_ENDINGS.items() if start.startswith(sign))
            name += next(found, ".csv")
        copy = folder / name
        with open(copy, "wb") as file:
            file.write(start)
            shutil.copyfileobj(content, file)
    packed.unlink()
    return copy


def read_local(
    path: Path,
    encoding: str,
    separator: str | None,
    texts: Collection[str] = (),
    wanted: Collection[str] | None = None,
) -> FileTable:
    """Read an ordinary file.

    Parameters
    ----------
    path : Path
    encoding : str
    separator : str or None
        Of a CSV file; None to detect it.
    texts : collection of str
        Columns of a CSV file that stay text, even if all their values are numbers.
    wanted : collection of str, optional
        The only columns of a CSV file to keep, as far as it has them.
    """
    with open(path, "rb") as file:
        start = file.read(CHUNK)
    if not start.strip():
        raise Problem(f"{path} is empty")
    ending = path.suffix.lower()
    if ending in (*PARQUET_ENDINGS, *FEATHER_ENDINGS, *JSON_ENDINGS, EXCEL_ENDING):
        table = _read_typed(path, start, ending)
    else:
        table = _read_csv(path, start, encoding, separator, texts, wanted)
    if table.rows.num_rows == 0:
        raise Problem(f"{path} has column names, but no rows")
    return table


def _read_typed(path: Path, start: bytes, ending: str) -> FileTable:
    """Read a file whose columns have types."""
    if ending in PARQUET_ENDINGS:
        kind, read, sign = "a Parquet file", parquet.read_table, b"PAR1"
    elif ending in FEATHER_ENDINGS:
        kind, read, sign = "a Feather file", feather.read_table, b"ARROW1"
    elif ending == EXCEL_ENDING:
        kind, read, sign = "an Excel workbook", _read_excel, b"PK\x03\x04"
    else:
        kind, read, sign = "a file of JSON lines", arrow_json.read_json, b"{"
    if not start.lstrip().startswith(sign):
        raise Problem(f"{path} is not {kind}, though its name says so")
    try:
        table = read(path)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        raise Problem(
            f"{path} is a damaged {kind.split(' ', 1)[1]}: {_first_line(error)}"
        ) from error
    names = _checked_names(path, table.column_names)
    return FileTable(path, table.rename_columns(names), None)


def _read_excel(path: Path) -> pa.Table:
    """The first sheet of a workbook."""
    import pandas as pd

    try:
        frame = pd.read_excel(path)
    except ImportError:
        raise Problem(f"reading {path} needs openpyxl: pip install openpyxl") from None
    columns = {}
    for name, values in frame.items():
        try:
            columns[str(name)] = pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # of several types
            texts = [None if pd.isna(value) else str(value) for value in values]
            columns[str(name)] = pa.array(texts, pa.string())
    return pa.table(columns)


# --- CSV ---


def _read_csv(
    path: Path,
    start: bytes,
    encoding: str,
    separator: str | None,
    texts: Collection[str],
    wanted: Collection[str] | None,
) -> FileTable:
    is_utf8 = _check_encoding(encoding)
    _check_signature(path, start, is_utf8)
    lines_encoding = "utf-8-sig" if is_utf8 else encoding
    separator = _separator(path, lines_encoding) if separator is None else _as_separator(separator)
    header = next(_records(path, lines_encoding, separator), (1, []))[1]
    names = _checked_names(path, header)
    with open(path, "rb") as file:
        n_quotes = sum(piece.count(b'"') for piece in iter(lambda: file.read(CHUNK), b""))
    if n_quotes % 2:
        _check_last_quote(path, lines_encoding, separator)
    kept = [name for name in names if wanted is None or name in wanted]
    # A column to count the rows by, if none is wanted.
    kept = kept or names[:1]
    try:
        columns, late = _columns_of(in_batches(path, encoding, separator, kept), texts)
        if late:
            again = in_batches(path, encoding, separator, late)
            columns |= _columns_of(again, late)[0]
    except (pa.ArrowException, ValueError) as error:
        _check_text(path, encoding)
        _check_lengths(path, lines_encoding, separator, len(header))
        raise Problem(f"cannot read {path} as CSV: {_first_line(error)}") from error
    return FileTable(path, pa.table({name: columns[name] for name in kept if columns}), separator)


def _columns_of(
    batches: Iterator[pa.RecordBatch], texts: Collection[str]
) -> tuple[dict[str, pa.ChunkedArray], list[str]]:
    """Columns as whole numbers, numbers, or codes of text, whichever holds all values first.

    Also the names of those that turn out to be text after some batches have been read as numbers.
    """
    # Arrow would guess types, too, but post codes such as 01099 would become numbers, and the types
    # of files that are read in batches would be those of the first batch.
    parts: dict[str, list[pa.Array]] = {}
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            pieces = parts.setdefault(name, [])
            first_kind = TEXT if name in texts else pa.int64()
            pieces.append(_values(column, pieces[-1].type if pieces else first_kind))
    columns, late = {}, []
    for name, pieces in parts.items():
        kinds = {piece.type for piece in pieces}
        if TEXT in kinds and len(kinds) > 1:
            late.append(name)
        else:
            same = [piece.cast(pieces[-1].type) for piece in pieces]
            columns[name] = pa.chunked_array(same).unify_dictionaries()
    return columns, late


def _values(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Texts as values of a type, or of the next one that holds them all."""
    if kind != TEXT:
        trimmed = pc.utf8_trim_whitespace(texts)
        is_missing = pc.is_in(trimmed, value_set=pa.array(sorted(MISSING)))
        known = pc.if_else(is_missing, pa.scalar(None, pa.string()), trimmed)
        if not pc.any(pc.match_substring_regex(known, NO_NUMBERS)).as_py():
            for number in (kind, pa.float64()):
                try:
                    return known.cast(number)
                except pa.ArrowInvalid:
                    pass
    return texts.dictionary_encode()


def in_batches(
    path: Path, encoding: str, separator: str, wanted: Collection[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file as text, some at a time."""
    lines_encoding = "utf-8-sig" if _check_encoding(encoding) else encoding
    header = next(_records(path, lines_encoding, separator), (1, []))[1]
    columns = {
        name: column
        for name, column in zip(_checked_names(path, header), header, strict=True)
        if wanted is None or name in wanted
    }
    with arrow_csv.open_csv(
        path,
        read_options=arrow_csv.ReadOptions(block_size=BLOCK, encoding=encoding, use_threads=False),
        parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns.values(), pa.string()),
            include_columns=list(columns.values()),
            strings_can_be_null=False,
        ),
    ) as reader:
        for batch in reader:
            yield pa.RecordBatch.from_arrays(batch.columns, names=list(columns))


def give_memory_back() -> None:
    """Return what tables that are gone took to the system, which Arrow would keep for others."""
    pa.default_memory_pool().release_unused()


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


def _check_text(path: Path, encoding: str) -> None:
    """Report the first line that is not in the encoding, if there is one."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(CHUNK), b""):
            try:
                decoder.decode(piece)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise Problem(
                    f"{path} is not in {encoding.upper()} (line {line}); save it as UTF-8, or use "
                    "--encoding, for example --encoding latin-1"
                ) from None
            line += piece.count(b"\n")


def _as_separator(given: str) -> str:
    separator = {"\\t": "\t", "tab": "\t"}.get(given, given)
    if len(separator) != 1 or separator in '"\r\n':
        raise Misuse(f"--separator must be a single character, got {given!r}")
    return separator


def _separator(path: Path, encoding: str) -> str:
    """The separator of the names in the first line, outside quotes."""
    line = next(filter(str.strip, _lines(path, encoding)), "")
    unquoted = "".join(line.split('"')[::2])
    return max(SEPARATORS, key=unquoted.count)


def _lines(path: Path, encoding: str) -> Iterator[str]:
    try:
        with open(path, encoding=encoding, newline="") as file:
            yield from file
    except UnicodeDecodeError:
        _check_text(path, encoding.removesuffix("-sig"))
        raise


def _records(path: Path, encoding: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Records of a CSV file, without empty ones, and the lines that they begin in."""
    reader = csv.reader(_lines(path, encoding), delimiter=separator)
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
