"""Files of many formats as tables of Arrow, with a line number for what is wrong in a CSV file."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import shutil
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv as arrow_csv
from pyarrow import feather, parquet, types
from pyarrow import json as arrow_json

from shapetree._core.sampling import row_hashes
from shapetree.cli._arguments import STANDARD
from shapetree.cli._console import Misuse, Problem, listed
from shapetree.data._columns import MAX_EXACT
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
GZIP_ENDING, GZIP_SIGNATURE = ".gz", b"\x1f\x8b"
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
# Texts that Arrow takes for numbers or times, but that may name something: post codes (01099),
# long or hexadecimal identifiers, times of day.
NAMES = r"^\s*[+-]?(0[0-9xX]|[0-9]{16}|[0-9]+:)"
# How such codes begin in the bytes of a file, behind a separator.
START_OF_CODE = rb"""[\s"+-]*0[0-9xX]"""


@dataclass(frozen=True)
class FileTable:
    """A file, with the types that Arrow finds; what may name something is text."""

    path: Path
    rows: pa.Table
    separator: str | None  # of the values in a CSV file; None if columns have types

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
    if not types.is_dictionary(column.type):
        column = column.dictionary_encode()
    joined = column.unify_dictionaries().combine_chunks()
    if isinstance(joined, pa.ChunkedArray):  # of no rows
        return pa.array([], joined.type.value_type).dictionary_encode()
    return joined


def codes_of(column: pa.DictionaryArray) -> np.ndarray:
    """Each row's place among the distinct values of a column; -1 for a missing value."""
    return column.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def give_memory_back() -> None:
    """Return what tables that are gone took to the system, which Arrow would keep for others."""
    pa.default_memory_pool().release_unused()


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
            return _copied(sys.stdin.buffer, "input", folder)
        if path.is_dir():
            raise Problem(f"cannot read {path}: it is a folder")
        if path.is_char_device():
            raise Problem(f"cannot read {path}: it is a device; name a file")
        with open(path, "rb") as stream:
            if not path.is_file() or path.suffix.lower() == GZIP_ENDING:
                return _copied(stream, path.name, folder)
        return path
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise Problem(f"cannot read {path}: {reason}") from error


def _copied(stream: Any, name: str, folder: Path) -> Path:
    """A copy of a stream, unpacked if it is compressed, whose name has the ending of its format."""
    content = io.BufferedReader(stream)
    if content.peek(2).startswith(GZIP_SIGNATURE):
        content = io.BufferedReader(gzip.GzipFile(fileobj=content))
    if name.lower().endswith(GZIP_ENDING):
        name = name[: -len(GZIP_ENDING)]
    if "." not in name:
        start = content.peek(CHUNK)
        found = (end for end, form in FORMATS.items() if start.startswith(form.signature))
        name += next(found, ".csv")
    copy = folder / name
    with open(copy, "wb") as file:
        shutil.copyfileobj(content, file)
    return copy


def read_local(
    path: Path,
    encoding: str,
    separator: str | None,
    texts: Collection[str] = (),
    wanted: Collection[str] | None = None,
) -> FileTable:
    """Read an ordinary file.

    Of a CSV file, some columns stay text even if all their values are numbers, and others may be
    left out, if it is known which are wanted.
    """
    with open(path, "rb") as file:
        start = file.read(CHUNK)
    if not start.strip():
        raise Problem(f"{path} is empty")
    form = FORMATS.get(path.suffix.lower())
    if form is not None:
        table = FileTable(path, _read_typed(path, start, form), None)
    else:
        csv_file = open_csv(path, encoding, separator)
        table = FileTable(path, csv_file.read(texts, wanted), csv_file.separator)
    if table.rows.num_rows == 0:
        raise Problem(f"{path} has column names, but no rows")
    return table


# --- files whose columns have types ---


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


class Format(NamedTuple):
    """A format whose columns have types: its name, first bytes, and how to read it."""

    name: str
    signature: bytes
    read: Callable[[Path], pa.Table]


FORMATS = {
    **dict.fromkeys(PARQUET_ENDINGS, Format("a Parquet file", b"PAR1", parquet.read_table)),
    **dict.fromkeys(
        (".feather", ".arrow"), Format("a Feather file", b"ARROW1", feather.read_table)
    ),
    **dict.fromkeys(
        (".jsonl", ".ndjson"), Format("a file of JSON lines", b"{", arrow_json.read_json)
    ),
    ".xlsx": Format("an Excel workbook", b"PK\x03\x04", _read_excel),
}


def _read_typed(path: Path, start: bytes, form: Format) -> pa.Table:
    if not start.lstrip().startswith(form.signature):
        raise Problem(f"{path} is not {form.name}, though its name says so")
    try:
        table = form.read(path)
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:
        what = form.name.split(" ", 1)[1]
        raise Problem(f"{path} is a damaged {what}: {_first_line(error)}") from error
    return table.rename_columns(_checked_names(path, table.column_names))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["unknown error"])[0]


def _checked_names(path: Path, header: list[str]) -> list[str]:
    """Names of columns; those without one are known by their number."""
    names = [name.strip() or f"column {i}" for i, name in enumerate(header, start=1)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Problem(f"{path} has several columns of the same name: {listed(twice)}")
    return names


# --- CSV ---


@dataclass(frozen=True)
class CsvFile:
    """A CSV file, and how it is written."""

    path: Path
    encoding: str
    separator: str
    names: list[str]  # of its columns
    first_line: int  # the line with these names

    def read(self, known_texts: Collection[str], wanted: Collection[str] | None) -> pa.Table:
        """The rows, as Arrow reads them, unless its types hide what they name.

        See `read_local`.
        """
        n_quotes, has_codes = self._count_quotes_and_find_codes()
        if n_quotes % 2:
            self._check_last_quote()
        # A column to count the rows by, if none is wanted.
        kept = [name for name in self.names if wanted is None or name in wanted] or self.names[:1]
        try:
            table = self._typed(kept, known_texts)
            doubtful = [name for name in kept if _is_doubtful(table[name], has_codes)]
            texts = self._typed(doubtful, doubtful) if doubtful else table.select([])
            for name, column in zip(texts.column_names, texts.columns, strict=True):
                if _has_names(column):
                    table = table.set_column(kept.index(name), name, column)
        except (pa.ArrowException, ValueError) as error:
            _check_text(self.path, self.encoding)
            self._check_lengths()
            raise Problem(f"cannot read {self.path} as CSV: {_first_line(error)}") from error
        return table

    def _typed(self, kept: list[str], texts: Collection[str]) -> pa.Table:
        table = arrow_csv.read_csv(
            self.path,
            **self._options(
                include_columns=kept,
                column_types=dict.fromkeys(texts, TEXT),
                null_values=sorted(MISSING),
                true_values=["true", "True", "TRUE"],
                false_values=["false", "False", "FALSE"],
                auto_dict_encode=True,
                auto_dict_max_cardinality=np.iinfo(np.int32).max,
            ),
        )
        if any(types.is_binary(getattr(kind, "value_type", kind)) for kind in table.schema.types):
            raise ValueError("it is not in its encoding")
        return table

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows as text, some at a time."""
        as_text = dict.fromkeys(self.names, pa.string())
        with arrow_csv.open_csv(self.path, **self._options(column_types=as_text)) as reader:
            yield from reader

    def _options(self, **convert: Any) -> dict[str, Any]:
        return {
            "read_options": arrow_csv.ReadOptions(
                block_size=BLOCK,
                encoding=self.encoding,
                use_threads=False,
                column_names=self.names,
                skip_rows_after_names=self.first_line,
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self.separator, newlines_in_values=True
            ),
            "convert_options": arrow_csv.ConvertOptions(strings_can_be_null=False, **convert),
        }

    def _count_quotes_and_find_codes(self) -> tuple[int, bool]:
        """How many quotes there are, and whether a value may be digits that name something."""
        code = re.compile(b"[\n\r" + re.escape(self.separator).encode() + b"]" + START_OF_CODE)
        # Bytes of other encodings tell nothing.
        n_quotes, has_codes, end = 0, "0".encode(self.encoding) != b"0", b""
        with open(self.path, "rb") as file:
            for piece in iter(lambda: file.read(CHUNK), b""):
                n_quotes += piece.count(b'"')
                has_codes = has_codes or code.search(end + piece) is not None
                end = piece[-16:]
        return n_quotes, has_codes

    # --- what is wrong, and in which line ---

    def _check_lengths(self) -> None:
        """Report the first record that is too long or too short, if there is one."""
        n_names = len(self.names)
        for line, record in _records(self.path, self.encoding, self.separator):
            if len(record) != n_names:
                values = "1 value" if len(record) == 1 else f"{len(record)} values"
                raise Problem(
                    f"{self.path}, line {line}: {values}, but there are {n_names} columns"
                )

    def _check_last_quote(self) -> None:
        """Refuse a quote that is never closed: it would swallow the rows after it."""
        line, last = 1, [""]
        for line, last in _records(self.path, self.encoding, self.separator):  # noqa: B007
            pass
        if "\n" in last[-1]:
            raise Problem(f"{self.path}, line {line}: a quote is never closed")


def open_csv(path: Path, encoding: str, separator: str | None) -> CsvFile:
    """Find out how a CSV file is written; without a separator, its first line tells."""
    try:
        "".encode(encoding)  # base64 and others are known, but none of text
        is_utf8 = _is_utf8(encoding)
    except (LookupError, ValueError):
        raise Misuse(f"--encoding {encoding!r} is unknown; try latin-1 or cp1252") from None
    if is_utf8:
        _check_signature(path)
    if separator is None:
        names = next(filter(str.strip, _lines(path, encoding)), "")
        unquoted = "".join(names.split('"')[::2])
        separator = max(SEPARATORS, key=unquoted.count)
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(separator) != 1 or separator in '"\r\n':
        raise Misuse(f"--separator must be a single character, got {separator!r}")
    line, header = next(_records(path, encoding, separator), (1, []))
    return CsvFile(path, encoding, separator, _checked_names(path, header), line)


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name == "utf-8"


def _check_signature(path: Path) -> None:
    """Refuse files that are not text, judging by their first bytes."""
    with open(path, "rb") as file:
        start = file.read(CHUNK)
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


def _lines(path: Path, encoding: str) -> Iterator[str]:
    try:
        with open(
            path, encoding="utf-8-sig" if _is_utf8(encoding) else encoding, newline=""
        ) as file:
            yield from file
    except UnicodeDecodeError:
        _check_text(path, encoding)
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


def _is_doubtful(column: pa.ChunkedArray, has_codes: bool) -> bool:
    """Whether what Arrow takes for numbers, or for times of day, may be the text of something."""
    if types.is_integer(column.type) or types.is_floating(column.type):
        ends = pc.min_max(column).as_py()
        return has_codes or (
            column.null_count < len(column) and max(-ends["min"], ends["max"]) > MAX_EXACT
        )
    return types.is_time(column.type)


def _has_names(column: pa.ChunkedArray) -> bool:
    """Whether some text looks like a number or a time, but names something."""
    return bool(pc.any(pc.match_substring_regex(encoded(column).dictionary, NAMES)).as_py())
