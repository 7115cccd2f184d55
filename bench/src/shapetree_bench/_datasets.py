"""The paper's datasets: where they come from, what they should hold, and how they are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias
from urllib.error import URLError

import numpy as np
import pandas as pd
from sklearn import datasets as bundled
from sklearn.model_selection import (
    GroupKFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    TimeSeriesSplit,
    train_test_split,
)

# The paper's three folds.
SEEDS = (42, 63, 84)
# Other ways to part rows, and how many folds they have: as in the paper; for few rows, four times
# 5-fold; rows of a group kept together; and in the order of the rows, tested on those that follow.
N_FOLDS = {"random": len(SEEDS), "repeated": 20, "groups": 5, "order": 3}
TARGET = "target"
# In one-hot tables, for methods that take no missing values.
MISSING = -1e9

Table: TypeAlias = pd.DataFrame


class NoDataset(Exception):
    """A dataset that cannot be had; says where it was looked for, and what to do."""


@dataclass(frozen=True)
class Dataset:
    """A dataset, by its shape in the paper and its source.

    Attributes
    ----------
    name, task : str
        The task is "classification" or "regression".
    rows, classes, columns : int
        What the paper says; columns are counted before one-hot encoding, and regression has no
        classes.
    source : str
        `openml:ID`, `uci:ID`, `sklearn:NAME` for what comes with scikit-learn, or `file:PATH` for
        what is only read from the folder of Parquet files, PATH.parquet there.
    target : str
        Name of the target at the source; "" for the last column.
    prepare : function, optional
        What is done to the table of the source, so that it has the paper's columns.
    split : {"random", "repeated", "groups", "order"}
        How rows are parted for training and testing.
    groups : str
        The column whose equal values are kept together.
    """

    name: str
    rows: int
    classes: int
    columns: int
    source: str
    target: str = ""
    prepare: Callable[[Table], Table] | None = None
    split: str = "random"
    groups: str = ""

    @property
    def n_folds(self) -> int:
        return N_FOLDS[self.split]

    @property
    def file(self) -> str:
        """Path in a folder of Parquet files, without the ending."""
        kind, _, path = self.source.partition(":")
        return path if kind == "file" else self.name

    @property
    def task(self) -> str:
        return "classification" if self.classes else "regression"

    def fits_depth(self, depth: int) -> bool:
        """Whether a binary tree of that depth has a leaf for every class, as the paper asks."""
        return self.classes <= 2**depth


def _without(*names: str) -> Callable[[Table], Table]:
    return lambda table: table.drop(columns=list(names), errors="ignore")


def _adult(table: Table) -> Table:
    return table.drop(columns="fnlwgt", errors="ignore").dropna().reset_index(drop=True)


def _complete(table: Table) -> Table:
    ids = [name for name in table if str(name).lower() in ("user_id", "product_id")]
    return table.drop(columns=ids).dropna().reset_index(drop=True)


def _without_constants(table: Table) -> Table:
    return table.loc[:, table.nunique(dropna=False) > 1]


def _covtype(table: Table) -> Table:
    """Wilderness areas and soil types as one column each, instead of one for each value."""
    for kind in ("Wilderness_Area", "Soil_Type"):
        parts = [name for name in table if re.fullmatch(rf"{kind}_?\d+", str(name))]
        if parts:
            codes = table[parts].astype(float).to_numpy().argmax(axis=1)
            table = table.drop(columns=parts)
            table.insert(table.shape[1] - 1, kind, pd.Categorical(codes.astype(str)))
    return table


CATALOGUE = (
    Dataset("adult", 45222, 2, 13, "openml:179", prepare=_adult),
    Dataset("avila", 20867, 12, 10, "uci:459"),
    Dataset("bank", 1372, 2, 4, "openml:1462"),
    Dataset("bean", 13611, 7, 16, "uci:602"),
    Dataset(
        *("bidding", 6321, 2, 9, "uci:562"),
        prepare=_without("Record_ID", "Auction_ID", "Bidder_ID"),
    ),
    Dataset("covtype", 581012, 7, 12, "openml:1596", prepare=_covtype),
    Dataset("electricity", 45312, 2, 8, "openml:151"),
    Dataset("eucalyptus", 736, 5, 19, "openml:188"),
    Dataset("eye-movements", 10936, 3, 27, "openml:1044"),
    Dataset("eye-state", 14980, 2, 14, "openml:1471"),
    Dataset("fault", 1941, 7, 27, "openml:40982"),
    Dataset("gas-drift", 13910, 6, 128, "openml:1476"),
    Dataset("higgs", 11_000_000, 2, 28, "uci:280"),
    Dataset("htru", 17898, 2, 8, "uci:372"),
    Dataset("magic", 13376, 2, 10, "openml:44125"),
    Dataset("mini-boone", 130064, 2, 50, "openml:41150"),
    Dataset("mushroom", 8124, 2, 21, "openml:24", prepare=_without_constants),
    Dataset("occupancy", 20560, 2, 5, "uci:357", prepare=_without("date", "id")),
    Dataset("page", 5473, 5, 10, "openml:30"),
    Dataset("pendigits", 10992, 10, 16, "openml:32"),
    Dataset("raisin", 900, 2, 7, "uci:850"),
    Dataset("rice", 3810, 2, 7, "uci:545"),
    Dataset("room", 10129, 4, 16, "uci:864", prepare=_without("Date", "Time")),
    Dataset("segment", 2310, 7, 18, "openml:36", prepare=_without_constants),
    Dataset("skin", 245057, 2, 3, "openml:1502"),
    Dataset("wilt", 4839, 2, 5, "openml:40983"),
    Dataset("ailerons", 13750, 0, 33, "openml:44137"),
    Dataset("black-friday", 166821, 0, 9, "openml:41540", "Purchase", _complete),
    Dataset("california", 20640, 0, 8, "openml:44025"),
    Dataset("diamonds", 53940, 0, 9, "openml:42225", "price"),
)
# Small ones that come with scikit-learn, to try the benchmark without the others.
BUNDLED = (
    Dataset("breast-cancer", 569, 2, 30, "sklearn:load_breast_cancer"),
    Dataset("iris", 150, 3, 4, "sklearn:load_iris"),
    Dataset("wine", 178, 3, 13, "sklearn:load_wine"),
    Dataset("diabetes", 442, 0, 10, "sklearn:load_diabetes"),
)


def _few_rows(name: str, path: str, rows: int, classes: int, columns: int) -> Dataset:
    return Dataset(name, rows, classes, columns, f"file:{path}", split="repeated")


# Clinical and social tables of few rows, from R's datasets.
FEW_ROWS = (
    _few_rows("kyphosis", "small/kyphosis", 81, 2, 3),
    _few_rows("nodal", "small/nodal", 53, 2, 5),
    _few_rows("VA", "small/VA", 137, 2, 6),
    _few_rows("birthwt", "small/birthwt", 189, 2, 8),
    _few_rows("Pima", "small/Pima", 532, 2, 7),
    _few_rows("Fair", "small/Fair", 601, 2, 8),
    _few_rows("Participation", "small/Participation", 872, 2, 6),
    _few_rows("ToothGrowth", "small/regression/ToothGrowth", 60, 0, 2),
    _few_rows("Prestige", "small/regression/Prestige", 98, 0, 4),
    _few_rows("airquality", "small/regression/airquality", 111, 0, 3),
    _few_rows("birthwt (grams)", "small/regression/birthwt", 189, 0, 8),
    _few_rows("Salaries", "small/regression/Salaries", 397, 0, 5),
)
# Of the paper's, those where random splits reward memorising: rows of one title have one label, and
# rows in time order are like their neighbours.
NOT_RANDOM = (
    Dataset(
        *("eye-movements by title", 10936, 3, 27, "file:eye-movements"),
        split="groups",
        groups="titleNo",
    ),
    Dataset("electricity in time order", 45312, 2, 8, "file:electricity", split="order"),
)
BY_NAME = {dataset.name: dataset for dataset in (*CATALOGUE, *BUNDLED, *FEW_ROWS, *NOT_RANDOM)}

# The paper's three sets for ablations, and those on which its bivariate peers ran out of memory.
ABLATION = ("electricity", "eye-movements", "eye-state")
TOO_LARGE_FOR_PAIRS = ("covtype", "eucalyptus", "higgs")
CLASSIFICATION = tuple(each.name for each in CATALOGUE if each.task == "classification")
GROUPS = {
    "all": tuple(each.name for each in CATALOGUE),
    "classification": CLASSIFICATION,
    "regression": tuple(each.name for each in CATALOGUE if each.task == "regression"),
    "small": tuple(each.name for each in CATALOGUE if each.rows <= 21_000),
    "tiny": tuple(each.name for each in CATALOGUE if each.rows <= 5_500),
    "ablation": ABLATION,
    "bivariate": tuple(name for name in CLASSIFICATION if name not in TOO_LARGE_FOR_PAIRS),
    "bundled": tuple(each.name for each in BUNDLED),
    "few-rows": tuple(each.name for each in FEW_ROWS),
    "not-random": tuple(each.name for each in NOT_RANDOM),
}


def datasets_named(text: str) -> list[Dataset]:
    """Datasets of a list of names and groups, in the catalogue's order."""
    wanted: set[str] = set()
    for name in filter(None, (part.strip() for part in text.split(","))):
        if name not in GROUPS and name not in BY_NAME:
            known = ", ".join([*GROUPS, *BY_NAME])
            raise ValueError(f"--datasets: {name!r} is none of {known}")
        wanted.update(GROUPS.get(name, (name,)))
    return [each for each in BY_NAME.values() if each.name in wanted]


@dataclass
class Rows:
    """A dataset that was read.

    Attributes
    ----------
    X : DataFrame
        Columns of numbers and categories, with missing values.
    y : array
        Class numbers from 0 on, or the target with mean 0 and standard deviation 1.
    source : str
        Where it was read from.
    """

    dataset: Dataset
    X: Table
    y: np.ndarray
    source: str

    @property
    def is_partial(self) -> bool:
        """Whether rows are missing that the paper had."""
        return len(self.y) < self.dataset.rows

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1 if self.dataset.classes else 0

    def difference(self) -> str:
        """How the shape differs from the paper's, or ""."""
        found = (len(self.y), self.n_classes, self.X.shape[1])
        asked = (self.dataset.rows, self.dataset.classes, self.dataset.columns)
        return ", ".join(
            f"{n:,} {word} instead of {m:,}"
            for n, m, word in zip(found, asked, ("rows", "classes", "columns"), strict=True)
            if n != m
        )

    def facts(self) -> tuple[str | int, ...]:
        """Name, rows, classes, columns, whether rows are missing, other differences, source."""
        shape = (len(self.y), self.n_classes, self.X.shape[1])
        return (self.dataset.name, *shape, self.is_partial, self.difference(), self.source)

    @cached_property
    def one_hot(self) -> np.ndarray:
        """Numbers only: a column for each category, and a number far off for missing values."""
        columns: np.ndarray = np.nan_to_num(self.grouped[0], nan=MISSING)
        return columns

    @cached_property
    def grouped(self) -> tuple[np.ndarray, dict[str, list[int]]]:
        """One-hot columns with missing values, and which of them are one categorical feature."""
        parts, groups, n_columns = [], {}, 0
        for name, column in self.X.items():
            is_number = not isinstance(column.dtype, pd.CategoricalDtype)
            part = column.to_frame() if is_number else pd.get_dummies(column)
            if part.shape[1] > 1:
                groups[str(name)] = list(range(n_columns, n_columns + part.shape[1]))
            parts.append(part.to_numpy(dtype=float))
            n_columns += part.shape[1]
        return np.column_stack(parts), groups

    @property
    def groups(self) -> np.ndarray | None:
        """What rows are kept together by, if they are."""
        return self.X[self.dataset.groups].to_numpy() if self.dataset.groups else None

    def folds(self) -> list[Fold]:
        """The paper's folds, or those of another way to part rows, which validate on test rows."""
        n_rows, n_folds = len(self.y), self.dataset.n_folds
        if self.dataset.split == "random":
            return [_fold(n_rows, seed) for seed in SEEDS]
        rows = np.arange(n_rows)
        if self.dataset.split == "groups":
            parts = GroupKFold(n_folds).split(rows, groups=self.groups)
        elif self.dataset.split == "order":
            parts = TimeSeriesSplit(n_folds).split(rows)
        else:
            kind = RepeatedStratifiedKFold if self.dataset.classes else RepeatedKFold
            parts = kind(n_splits=5, n_repeats=n_folds // 5, random_state=0).split(rows, self.y)
        return [Fold(train, test, test) for train, test in parts]


@dataclass(frozen=True)
class Fold:
    """Rows for training, validation and testing: 70, 10 and 20 % in the paper."""

    train: np.ndarray
    validation: np.ndarray
    test: np.ndarray


def _fold(n_rows: int, seed: int) -> Fold:
    train, rest = train_test_split(np.arange(n_rows), train_size=0.7, random_state=seed)
    return Fold(train, *train_test_split(rest, train_size=1 / 3, random_state=seed))


# Reading


def read(dataset: Dataset, data_dir: Path | None, cache: Path) -> Rows:
    """Read a dataset from a folder of Parquet files, from the cache, or from its source.

    Parameters
    ----------
    dataset : Dataset
    data_dir : Path or None
        Holds NAME.parquet, with the target in column `target`.
    cache : Path
        The same; what comes over the network is kept here.

    Raises
    ------
    NoDataset
    """
    for folder in (data_dir, cache):
        if folder is not None and (path := folder / f"{dataset.file}.parquet").exists():
            return _rows(dataset, pd.read_parquet(path), f"{dataset.file}.parquet")
    kind, _, key = dataset.source.partition(":")
    if kind == "file":
        raise NoDataset(f"{dataset.name}: there is no {key}.parquet in {data_dir or cache}")
    if kind == "sklearn":
        return _rows(dataset, _from_sklearn(key), f"scikit-learn, {key}")
    try:
        table = (_from_openml if kind == "openml" else _from_uci)(int(key))
    except (URLError, OSError, TimeoutError) as error:
        folder = data_dir or cache
        raise NoDataset(
            f"{dataset.name}: there is no {dataset.name}.parquet in {folder}, and {kind} "
            f"{key} cannot be reached ({error}); put the file there, or try with a network"
        ) from error
    table = prepared(dataset, table)
    cache.mkdir(parents=True, exist_ok=True)
    table.to_parquet(cache / f"{dataset.name}.parquet")
    return _rows(dataset, table, f"{kind} {key}")


def prepared(dataset: Dataset, table: Table) -> Table:
    """The source's table with the paper's columns, and the target as the last."""
    target = dataset.target or table.columns[-1]
    table = pd.concat([table.drop(columns=target), table[target].rename(TARGET)], axis=1)
    return table if dataset.prepare is None else dataset.prepare(table)


def _from_openml(number: int) -> Table:
    fetched = bundled.fetch_openml(data_id=number, as_frame=True, parser="auto")
    table: Table = pd.concat([fetched.data, fetched.target], axis=1)
    return table


def _from_uci(number: int) -> Table:
    return pd.read_csv(f"https://archive.ics.uci.edu/static/public/{number}/data.csv")


def _from_sklearn(name: str) -> Table:
    table: Table = getattr(bundled, name)(as_frame=True).frame
    return table


def _rows(dataset: Dataset, table: Table, source: str) -> Rows:
    X, y = table.drop(columns=TARGET), table[TARGET]
    for name in X:
        if not pd.api.types.is_numeric_dtype(X[name]):
            X[name] = X[name].astype("category")
    if dataset.task == "regression":
        numbers = y.to_numpy(dtype=float)
        return Rows(dataset, X, (numbers - numbers.mean()) / numbers.std(), source)
    return Rows(dataset, X, pd.factorize(y, sort=True)[0], source)
