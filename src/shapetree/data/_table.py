"""The input table: named columns, read as numbers or encoded as categories.

Whatever the caller holds (a NumPy array, nested lists, a pandas, polars or Arrow table) becomes a
list of named columns first. From there one path reads numbers and one path encodes categories, and
training and prediction walk the same two paths.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from shapetree._core.columns import Columns
from shapetree.data._columns import (
    Array,
    ColumnKind,
    Level,
    Values,
    are_whole,
    check_digits,
    factorize,
    has_text_dtype,
    kind_of_column,
    level_codes,
    own_order,
    read_dates,
    read_numbers,
    recode,
    sorted_categories,
)
from shapetree.data._map_join import LocalParts, Parts, join_distinct
from shapetree.data._missing import MISSING_CODE, is_missing
from shapetree.data._moments import DateKind
from shapetree.data._names import feature_finder, is_index
from shapetree.data._open import OpenTable, open_table, open_whole
from shapetree.data._store import Store

# Values from which on a share of new categories is worth a warning.
LEAST_TO_WARN = 10
# Largest share of distinct values for which text among numbers looks like a mistake, and how many
# of the values are named.
MOST_ODD = 0.2
N_ODD_NAMED = 3
# What to do about whole numbers that a float would round.
FOR_ROUNDED = (
    "If they identify rows, leave the column out; if they name groups, make it text or list it in "
    "categorical_features; otherwise divide it or subtract a constant."
)


def count_taken(kept: Array) -> int:
    """How many rows a boolean mask marks, or an array of row numbers names."""
    return int(np.count_nonzero(kept)) if kept.dtype == bool else len(kept)


@dataclass(frozen=True)
class FeatureInfo:
    """What training learns about one feature."""

    name: str  # of the column; "x0", "x1", … if the table has no names
    # The distinct levels seen in training: numbers and booleans in ascending order, then strings in
    # ascending order. None for a numeric feature; none are kept of a feature that the tree does not
    # use.
    categories: tuple[Level, ...] | None = None
    is_whole: bool = False  # whether all numbers in training were whole
    # Whether the categories have an order of their own, in which they stand: shape functions then
    # divide them into segments, not into arbitrary subsets.
    is_ordered: bool = False
    # Whether the column holds dates, and which: whole days, moments without a time zone, or moments
    # in UTC. Its numbers are then seconds since 1970-01-01.
    date: DateKind | None = None
    held_text: bool = False  # whether categories that are no longer kept were text

    @property
    def is_categorical(self) -> bool:
        """Whether the feature has categories rather than numbers."""
        return self.categories is not None

    @property
    def is_date(self) -> bool:
        """Whether its numbers are moments in time."""
        return self.date is not None

    @property
    def is_plain(self) -> bool:
        """Whether it has numbers that are no moments in time."""
        return self.categories is None and self.date is None

    @property
    def is_text(self) -> bool:
        """Whether some of its categories are, or were, text."""
        return self.held_text or any(isinstance(level, str) for level in self.categories or ())

    # Found once, as a prediction for one row would take longer to find them than for all else.

    @cached_property
    def code_of(self) -> dict[Level | None, int]:
        """Positions of the categories."""
        return level_codes(self.categories or ())

    @cached_property
    def are_text(self) -> frozenset[bool]:
        """Whether categories are text; both, if some are."""
        kinds = set(map(type, self.categories or ()))
        return frozenset(issubclass(kind, str) for kind in kinds)

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def without_categories(self) -> "FeatureInfo":
        """The same kind of feature, whose categories are not known."""
        return replace(self, categories=(), held_text=self.is_text) if self.categories else self


@dataclass(frozen=True, eq=False)
class Table:
    """A table, column by column."""

    n_rows: int
    features: tuple[FeatureInfo, ...]
    # A numeric column is float32 or float64, with NaN where a value is missing; it may be a
    # strided, read-only view on the caller's data. A categorical column is contiguous int32:
    # positions in `categories`, with -1 where a value is missing or was not seen in training. None
    # stands for a column that was not asked for.
    columns: list[Array | None]
    has_names: bool = False  # whether the caller's columns have names, all of them strings
    store: Store | None = None  # room for the bins of its rows, if they may not fit into memory

    @cached_property
    def values(self) -> Columns:
        """The columns as kernels read them."""
        return Columns(self.columns, self.n_rows)

    def read(self, needed: Iterable[int], what: str) -> Iterator[tuple[int, "Table"]]:
        """Go through the rows once: the number of each batch's first row, and the batch.

        Only columns that are needed are read; `what` tells those who wait what is done. Here, all
        rows are a batch.
        """
        yield 0, self

    def with_values(self, needed: Iterable[int], what: str = "") -> "Table":
        """The table with the values of some features at hand, as they are here."""
        return self

    def take(self, kept: Array) -> "Table":
        """Rows that a boolean mask marks, or those of some numbers, in their order."""
        columns = [None if column is None else column[kept] for column in self.columns]
        return Table(count_taken(kept), self.features, columns, self.has_names)

    def in_memory(self) -> "Table":
        """The same rows, with all values in this process."""
        return self

    def parts(
        self, needed: Iterable[int], counts: Array | None, what: str = "describing rows"
    ) -> Parts:
        """Parts of the rows, a `TablePart` each, for one question.

        It reads the columns that are needed. Rows may count as several, if there are counts.
        """
        return LocalParts(
            TablePart(
                batch, first, None if counts is None else counts[first : first + batch.n_rows]
            )
            for first, batch in self.read(needed, what)
        )

    def known_sample(self) -> "tuple[Array, Table] | None":
        """Rows that bins can be made of and their numbers, where it is best to read them first."""
        return None

    def known_values(
        self, features: Sequence[int]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
        """Ends of features, and the rows and values of a sample, if they are known already."""
        return None

    def with_seen_categories(self) -> "Table":
        """The same rows, with the features that training on them would learn.

        Categories that no row has are gone, unless they have an order of their own.
        """
        infos = self.features
        coded = [j for j, info in enumerate(infos) if info.is_categorical and not info.is_ordered]
        if not coded:
            return self
        seen = self.parts(coded, None, "finding categories").ask(_seen_codes, join_distinct)
        features = tuple(
            info
            if info.categories is None or info.is_ordered or codes is None
            else replace(info, categories=tuple(info.categories[code] for code in codes.tolist()))
            for info, codes in zip(infos, seen, strict=True)
        )
        return self if features == infos else self.with_features(features)

    def with_features(self, features: tuple[FeatureInfo, ...]) -> "Table":
        """The same rows, coded by the categories of other features; all others are missing."""
        columns = [
            codes
            if codes is None or known.categories is None or new.categories is None
            else recode(codes, known.categories, new.categories)
            for codes, known, new in zip(self.columns, self.features, features, strict=True)
        ]
        return Table(self.n_rows, features, columns, self.has_names)


class TablePart(NamedTuple):
    """Rows that follow each other, the number of the first in the whole table, and their counts.

    These say how many rows each counts as, and are None if each is one.
    """

    table: Table
    first_row: int
    counts: Array | None


def _seen_codes(part: TablePart) -> list[Array | None]:
    """Codes that some row has, ascending, of every column of categories that is there."""
    return [
        np.unique(codes[codes != MISSING_CODE])
        if info.is_categorical and codes is not None
        else None
        for info, codes in zip(part.table.features, part.table.columns, strict=True)
    ]


def still_kept(before: Array | None, kept: Array) -> Array:
    """Which of all rows are kept, if `kept` marks some of those that were kept before.

    None stands for all.
    """
    if before is None:
        return kept
    every = before.copy()
    every[before] = kept
    return every


def read_table(X: Any, categorical_features: Any = "from_dtype", *, min_rows: int = 1) -> Table:
    """Read the table to train on, and learn the features that `encode_table` needs later.

    X is a NumPy array, nested lists, or any eager data frame that narwhals reads; fewer rows than
    `min_rows` are refused. Categorical are the text, category and boolean columns of a data frame
    ("from_dtype"), none (None), or those of some names, of some indices from 0, or of a mask.
    """
    source = open_whole(X, min_rows)
    asked = _asked_categorical(categorical_features, source)
    advice = "List it in categorical_features, or turn it into numbers."
    features: list[FeatureInfo] = []
    columns: list[Array | None] = []
    for j, name in enumerate(source.names):
        if source.numbers is not None and not (asked and asked[j]):
            features.append(FeatureInfo(name, is_whole=are_whole(source.numbers[:, j])))
            columns.append(source.numbers[:, j])
            continue
        values = source.column(j)
        kind = kind_of_column(values, name)
        if kind in (ColumnKind.BOOLEAN, ColumnKind.TEXT) if asked is None else asked[j]:
            info, codes = _learn_categories(values, name)
            if asked is None and has_text_dtype(values):
                _warn_of_odd_texts(info, codes)
            features.append(info)
            columns.append(codes)
        elif kind is ColumnKind.DATE:
            seconds, date = read_dates(values, name)
            features.append(FeatureInfo(name, date=date))
            columns.append(seconds)
        else:
            if kind is ColumnKind.NUMBER:
                check_digits(values, f"Column {name!r}", FOR_ROUNDED)
            numbers = read_numbers(values, name, advice)
            features.append(FeatureInfo(name, is_whole=are_whole(numbers)))
            columns.append(numbers)
    return Table(source.n_rows, tuple(features), columns, source.has_names)


def odd_texts(texts: Sequence[str], are_numbers: Sequence[bool]) -> list[str]:
    """Texts that keep others from being numbers, if these are far more; none otherwise."""
    odd = [text for text, is_number in zip(texts, are_numbers, strict=True) if not is_number]
    return odd if len(odd) <= MOST_ODD * len(texts) else []


def _warn_of_odd_texts(info: FeatureInfo, codes: Array) -> None:
    """Say which texts make categories of a column that otherwise holds numbers."""
    texts = [level for level in info.categories or () if isinstance(level, str)]
    # The first few of many nearly always show that a column holds text.
    if len(texts) < LEAST_TO_WARN or not any(map(_is_number, texts[:100])):
        return
    are_numbers = [_is_number(text) for text in texts]
    odd = odd_texts(texts, are_numbers)
    if not odd:
        return
    # A missing value's code, -1, stands for the last.
    n_rows = int(np.count_nonzero(~np.array([*are_numbers, True])[codes]))
    named = ", ".join(map(repr, odd[:N_ODD_NAMED])) + ", …" * (len(odd) > N_ODD_NAMED)
    warnings.warn(
        f"Column {info.name!r} is read as categories, because {n_rows:,} of {len(codes):,} values "
        f"are no numbers: {named}. If it measures something, turn it into numbers first: put a "
        "number in their place (for '<50', the limit or half of it), or a missing value, as "
        "pandas.to_numeric(…, errors='coerce') does. If these are categories, give the column the "
        "type category.",
        UserWarning,
        stacklevel=2,
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _learn_categories(values: Values, name: str) -> tuple[FeatureInfo, Array]:
    """A feature with the categories of a column, and their codes."""
    codes, levels = factorize(values, name)
    order = own_order(values, name)
    categories = sorted_categories(levels) if order is None else order
    info = FeatureInfo(name, categories, is_ordered=order is not None)
    return info, recode(codes, levels, categories)


def encode_table(
    X: Any,
    features: Sequence[FeatureInfo],
    needed: Iterable[int] | None = None,
    learns_categories: bool = False,
) -> Table:
    """Read a table to predict on, with the features that training has learnt.

    Columns are matched by position. The table may be of another kind than in training: categories
    are compared as Python values, so 1, 1.0 and True are the same category. But a column of numbers
    where training had text, or the other way round, is refused, and where most values are
    categories that training has not seen, a warning says so. Columns that are not needed are not
    touched; features whose categories are not known get those of this table, if that is asked for.
    """
    source = open_table(X)
    if len(source.names) != len(features):
        raise ValueError(
            f"X has {len(source.names)} features, but this tree is expecting "
            f"{len(features)} features as input."
        )
    known = list(features)
    columns: list[Array | None] = [None] * len(features)
    for j in range(len(features)) if needed is None else needed:
        if source.numbers is not None and features[j].is_plain:
            columns[j] = source.numbers[:, j]
        elif learns_categories and features[j].categories == ():
            known[j], columns[j] = _learn_categories(source.column(j), features[j].name)
        else:
            columns[j] = _encode_column(source.column(j), features[j])
    return Table(source.n_rows, tuple(known), columns, source.has_names)


def new_categories(X: Any, table: Table) -> dict[int, dict[int, Any]]:
    """Categories that training has not seen, by feature and row, and what X has been read as."""
    source, found = open_table(X), {}
    for j, column in enumerate(table.columns):
        if column is None or table.features[j].categories is None:
            continue
        unknown = np.flatnonzero(column == MISSING_CODE).tolist()
        if unknown:
            values = source.column(j)[unknown]
            listed = values.to_list() if isinstance(values, nw.Series) else values.tolist()
            found[j] = {
                row: value
                for row, value in zip(unknown, listed, strict=True)
                if not is_missing(value)
            }
    return found


def _encode_column(values: Values, feature: FeatureInfo) -> Array:
    if feature.is_date:
        return _encode_dates(values, feature)
    if feature.categories is None:
        return read_numbers(
            values, feature.name, "It was numeric in training; turn it into numbers."
        )
    codes, levels = factorize(values, feature.name)
    _check_levels(levels, feature)
    recoded = recode(codes, levels, feature.categories, feature.code_of)
    _warn_of_new(codes, levels, recoded, feature)
    return recoded


def _encode_dates(values: Values, feature: FeatureInfo) -> Array:
    """Read a column of dates; refuse what is none, and what may be of another time zone."""
    name = feature.name
    held = "moments with a time zone" if feature.date == "utc" else "dates without a time zone"
    kind = kind_of_column(values, name)
    if kind is not ColumnKind.DATE:
        # A column that lacks every value has no type to tell dates by.
        if kind is ColumnKind.NUMBER:
            found = read_numbers(values, name, "")
            if np.isnan(found).all():
                return found
        holds = (
            "numbers" if kind in (ColumnKind.NUMBER, ColumnKind.BOOLEAN) else "text or categories"
        )
        raise ValueError(
            f"Column {name!r} held {held} in training, but holds {holds} now. Turn it into dates, "
            "for example with pandas.to_datetime."
        )
    seconds, found_kind = read_dates(values, name)
    if (found_kind == "utc") != (feature.date == "utc") and not np.isnan(seconds).all():
        now = "none" if feature.date == "utc" else "one"
        raise ValueError(
            f"Column {name!r} held {held} in training, but has {now} now. Give the column the time "
            "zone it had, or none if it had none."
        )
    return seconds


def _check_levels(levels: list[Level | None], feature: FeatureInfo) -> None:
    """Refuse text where training had numbers, and the other way round."""
    given, known = set(map(type, levels)) - {type(None)}, feature.categories or ()
    if not given or not known:
        return
    was_text = feature.are_text
    if was_text.isdisjoint(issubclass(kind, str) for kind in given):
        first = next(level for level in levels if level is not None)
        held = ("text", "numbers") if was_text == {True} else ("numbers", "text")
        raise ValueError(
            f"Column {feature.name!r} held {held[0]} such as {known[0]!r} in training, but holds "
            f"{held[1]} such as {first!r} now. Turn it into {held[0]}, written as in training."
        )


def _warn_of_new(
    codes: Array, levels: list[Level | None], recoded: Array, feature: FeatureInfo
) -> None:
    """Say that most values are categories that training has not seen."""
    if not (recoded == MISSING_CODE).any():
        return
    is_given = np.array([level is not None for level in levels] + [False])[codes]
    n_given = int(np.count_nonzero(is_given))
    n_new = int(np.count_nonzero(is_given & (recoded == MISSING_CODE)))
    if n_given >= LEAST_TO_WARN and n_new > n_given / 2:
        warnings.warn(
            f"Column {feature.name!r}: {n_new:,} of {n_given:,} values are categories that "
            "training has not seen; they are treated as missing. Check that the column is written "
            "as it was in training.",
            UserWarning,
            stacklevel=2,
        )


def _asked_categorical(categorical_features: Any, source: OpenTable) -> list[bool] | None:
    """Whether each column is categorical, by the parameter; None leaves it to the dtypes."""
    n_features = len(source.names)
    if categorical_features is None:
        return [False] * n_features
    if isinstance(categorical_features, str):
        if categorical_features != "from_dtype":
            raise ValueError(
                "categorical_features must be 'from_dtype', None or an array-like, "
                f"got {categorical_features!r}. For a single column, pass a list."
            )
        return None if source.is_frame else [False] * n_features

    asked = list(categorical_features) if isinstance(categorical_features, Iterable) else [None]
    if asked and all(isinstance(item, bool | np.bool_) for item in asked):
        if len(asked) != n_features:
            raise ValueError(
                f"categorical_features is a mask of length {len(asked)}, "
                f"but X has {n_features} features."
            )
        return [bool(item) for item in asked]
    if not (all(isinstance(item, str) for item in asked) or all(map(is_index, asked))):
        raise TypeError(
            "categorical_features must be 'from_dtype', None, or an array-like of column names "
            "(str), of column indices (int) or of one boolean per column."
        )
    chosen = set(map(feature_finder(source.names, "categorical_features"), asked))
    return [j in chosen for j in range(n_features)]
