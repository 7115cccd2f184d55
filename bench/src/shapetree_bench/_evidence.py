"""Evidence: what is kept of results, as a folder of small CSV files that grows with every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pandas as pd

from shapetree_bench import _importance
from shapetree_bench._protocols import PROTOCOLS
from shapetree_bench._store import CELL_COLUMNS, KEYS, Results

DATASET_COLUMNS = ("name", "rows", "classes", "columns", "partial", "difference", "source")
RUN_COLUMNS = ("number", "started", "command", "versions")
Steps = Callable[[pd.DataFrame], pd.Series]
# What makes two runs the same; numbers differ from file to file.
_RUN_KEYS = ["started", "command", "versions"]


@dataclass(frozen=True)
class Evidence:
    """Results to report on.

    Attributes
    ----------
    cells : DataFrame
        Means over folds, a row for each protocol, method, dataset and depth.
    datasets, runs : DataFrame
        What cells are about, and the commands that made them; cells know their revision.
    importance : DataFrame
        Of the hyper-parameters of tuned methods.
    """

    cells: pd.DataFrame
    datasets: pd.DataFrame
    runs: pd.DataFrame
    importance: pd.DataFrame

    @classmethod
    def of(cls, results: Results) -> Self:
        """What a database holds."""
        return cls(
            results.cells(),
            results.table("datasets"),
            results.runs(),
            _importance.importances(results.table("trials")),
        )

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read an SQLite file or a folder of CSV files."""
        if path.is_dir():
            return cls._read_csv(path)
        if not path.exists():
            raise FileNotFoundError(
                f"{path} is neither an SQLite file nor a folder of CSV files; "
                "make one with shapetree-bench run --out"
            )
        results = Results(path)
        found = cls.of(results)
        results.close()
        return found

    @classmethod
    def _read_csv(cls, folder: Path) -> Self:
        # Revisions may look like numbers.
        paths = folder.glob("*.csv")
        found = {path.stem: pd.read_csv(path, dtype={"revision": str}) for path in paths}
        cells = [found[name] for name in PROTOCOLS if name in found]
        if not cells:
            names = ", ".join(f"{name}.csv" for name in PROTOCOLS)
            raise FileNotFoundError(f"{folder} holds none of {names}")
        joined = pd.concat(cells, ignore_index=True).reindex(columns=list(CELL_COLUMNS))
        joined["reason"] = joined["reason"].astype(object).fillna("")
        others = (
            found.get(name, pd.DataFrame()).reindex(columns=list(columns))
            for name, columns in (
                ("datasets", DATASET_COLUMNS),
                ("runs", RUN_COLUMNS),
                ("importance", _importance.COLUMNS),
            )
        )
        return cls(joined, *others)

    def with_newer(self, newer: Evidence) -> Evidence:
        """All of this and all that is newer; of what both have, the newer counts.

        There is one exception: a cell of which less was done, because its run was stopped or had
        fewer trials, does not replace one of which more was done.
        """
        return Evidence(
            _newest(self.cells, newer.cells, KEYS, _steps),
            _newest(self.datasets, newer.datasets, ("name",)),
            _all_runs(self.runs, newer.runs),
            _newest(self.importance, newer.importance, ("method",), lambda t: t["trials"]),
        )

    def write(self, folder: Path) -> list[Path]:
        """Write cells by protocol, datasets, runs and importances, each to a CSV file."""
        folder.mkdir(parents=True, exist_ok=True)
        tables = {name: self.cells[self.cells["protocol"] == name] for name in PROTOCOLS}
        tables["datasets"] = self.datasets.sort_values("name")
        tables["runs"] = self.runs
        tables["importance"] = self.importance
        paths = []
        for name, table in tables.items():
            path = folder / f"{name}.csv"
            if table.empty:
                path.unlink(missing_ok=True)
                continue
            paths.append(path)
            filled = table.dropna(axis="columns", how="all")
            filled.to_csv(path, index=False, float_format="%.5g")
        return paths


def _steps(cells: pd.DataFrame) -> pd.Series:
    """How much was done of each cell: trials of a tuned method, folds of others."""
    return cells["trials"].fillna(cells["folds"] + cells["failed"])


def _newest(
    older: pd.DataFrame, newer: pd.DataFrame, keys: Sequence[str], steps: Steps | None = None
) -> pd.DataFrame:
    """Rows of both; of those with the same keys, the ones with most steps, then the newer ones."""
    both = _stacked(older, newer)
    is_newer = pd.Series(both.index >= len(older), both.index)
    order = is_newer if steps is None else 2 * steps(both) + is_newer
    best = order.groupby([both[key] for key in keys]).transform("max")
    return both[order == best].sort_values(list(keys), kind="stable", ignore_index=True)


def _all_runs(older: pd.DataFrame, newer: pd.DataFrame) -> pd.DataFrame:
    """The runs of both in the order in which they were made, with numbers of their own."""
    runs = _stacked(older, newer).drop_duplicates(_RUN_KEYS)
    runs = runs.sort_values("started", kind="stable", ignore_index=True)
    return runs.assign(number=runs.index + 1)


def _stacked(*tables: pd.DataFrame) -> pd.DataFrame:
    filled = [each for each in tables if len(each)]
    return pd.concat(filled or tables, ignore_index=True)
