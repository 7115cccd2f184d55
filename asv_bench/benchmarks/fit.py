"""Fits, each as a whole: reading and binning the table, and growing the tree."""

from dataclasses import dataclass, field
from typing import Any

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor

from . import data

Estimator = type[ShapeTreeClassifier] | type[ShapeTreeRegressor]


@dataclass(frozen=True)
class Case:
    """A table's name, and how to fit it."""

    table: str
    estimator: Estimator = ShapeTreeClassifier
    parameters: dict[str, Any] = field(default_factory=dict)


TABLES = {
    "5,000 rows": lambda: data.classes(5_000),
    "2 classes": lambda: data.classes(100_000),
    "5 classes": lambda: data.classes(100_000, 5),
    "26 classes": lambda: data.classes(100_000, 26),
    "numbers": lambda: data.numbers(100_000),
    "10 levels": lambda: data.categories(100_000, 10),
    "1,000 levels": lambda: data.categories(100_000, 1_000),
}

CASES = {
    "2 classes, K=2": Case("2 classes", parameters={"max_branches": 2}),
    "2 classes, K=3": Case("2 classes"),
    "5 classes, K=3": Case("5 classes"),
    "26 classes, K=3": Case("26 classes"),
    "5,000 rows": Case("5,000 rows"),
    "entropy": Case("2 classes", parameters={"search": SearchOptions(criterion="entropy")}),
    "entropy, 5 classes": Case(
        "5 classes", parameters={"search": SearchOptions(criterion="entropy")}
    ),
    "exact": Case("2 classes", parameters={"max_bins": None}),
    "optimal inner tree": Case(
        "2 classes",
        parameters={"search": SearchOptions(inner_tree="optimal", inner_max_leaf_nodes=8)},
    ),
    "squared error": Case("numbers", ShapeTreeRegressor),
    "squared error, exact": Case("numbers", ShapeTreeRegressor, {"max_bins": None}),
    "absolute error": Case("numbers", ShapeTreeRegressor, {"objective": "absolute_error"}),
    "10 levels": Case("10 levels"),
    "1,000 levels": Case("1,000 levels"),
}


class Fit:
    """100,000 rows (or so many as the case says) and 20 features, depth 6, one thread."""

    timeout = 300
    param_names = ("case",)
    params = (tuple(CASES),)

    def setup_cache(self) -> dict[str, data.Labelled]:
        return {name: make() for name, make in TABLES.items()}

    def setup(self, tables: dict[str, data.Labelled], name: str) -> None:
        case = CASES[name]
        self.table = tables[case.table]
        self.estimator = case.estimator(max_depth=6, n_threads=1, random_state=0, **case.parameters)

    def time_fit(self, tables: dict[str, data.Labelled], name: str) -> None:
        self.estimator.fit(*self.table)

    def track_leaves(self, tables: dict[str, data.Labelled], name: str) -> int:
        return self.estimator.fit(*self.table).get_n_leaves()

    track_leaves.unit = "leaves"


class FitMillion:
    """1,000,000 rows and 20 float32 features, depth 6."""

    timeout = 600
    number = 1
    repeat = (3, 5, 20.0)
    warmup_time = 0
    param_names = ("branches", "threads")
    params = ((2, 3), (1, 2))

    def setup_cache(self) -> data.Labelled:
        return data.curves(1_000_000)

    def setup(self, table: data.Labelled, branches: int, threads: int) -> None:
        self.estimator = ShapeTreeClassifier(max_depth=6, max_branches=branches, n_threads=threads)

    def time_fit(self, table: data.Labelled, branches: int, threads: int) -> None:
        self.estimator.fit(*table)

    def peakmem_fit(self, table: data.Labelled, branches: int, threads: int) -> None:
        self.estimator.fit(*table)


PAIR_TABLES = {
    "27 features": (lambda: data.gazes(7_600), 6),
    "7 categories": (lambda: data.prices(31_700), 6),
    "128 features": (lambda: data.sensors(14_000), 4),
}


class FitPairs:
    """All pairs of features screened, one thread."""

    timeout = 300
    param_names = ("table",)
    params = (tuple(PAIR_TABLES),)

    def setup(self, name: str) -> None:
        make, depth = PAIR_TABLES[name]
        self.table = make()
        self.estimator = ShapeTreeClassifier(
            max_depth=depth, pairs="auto", n_threads=1, random_state=0
        )

    def time_fit(self, name: str) -> None:
        self.estimator.fit(*self.table)

    def peakmem_fit(self, name: str) -> None:
        self.estimator.fit(*self.table)

    def track_leaves(self, name: str) -> int:
        return self.estimator.fit(*self.table).get_n_leaves()

    track_leaves.unit = "leaves"


class FitPairsGrowth:
    """So many rows of 128 features, so many pairs of which may interact; linear in both."""

    timeout = 300
    param_names = ("rows", "pairs")
    params = ((14_000, 56_000), (1_000, 8_000))

    def setup(self, rows: int, pairs: int) -> None:
        self.table = data.sensors(rows)
        self.estimator = ShapeTreeClassifier(
            max_depth=4, pairs=data.some_pairs(128, pairs), n_threads=1, random_state=0
        )

    def time_fit(self, rows: int, pairs: int) -> None:
        self.estimator.fit(*self.table)
