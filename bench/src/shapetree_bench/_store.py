"""Results of a benchmark while it runs, in one SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from shapetree_bench._protocols import Cell, Measures, Trial, validation_of

# Everything that is measured of a fit, in the order of its columns.
MEASURES = (
    *("accuracy", "macro_f1", "log_loss", "auc", "calibration_error"),
    *("squared_error", "absolute_error", "r2"),
    *("seconds", "cart_seconds", "predict_us", "peak_mb"),
    *("leaves", "nodes", "segments", "regions", "parts", "features", "conditions", "strength"),
)
KEYS = ("protocol", "method", "dataset", "depth")
# What cells of a table say of their folds, beside the means of all measures.
CELL_COLUMNS = (*KEYS, "folds", "failed", "reason", *MEASURES, "accuracy_std", "trials", "revision")

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, started TEXT, command TEXT, versions TEXT);
CREATE TABLE IF NOT EXISTS datasets (
    name TEXT PRIMARY KEY, rows INTEGER, classes INTEGER, columns INTEGER, partial INTEGER,
    difference TEXT, source TEXT);
CREATE TABLE IF NOT EXISTS fits (
    protocol TEXT, method TEXT, dataset TEXT, depth INTEGER, fold INTEGER, run INTEGER,
    status TEXT, reason TEXT, {", ".join(f"{name} REAL" for name in MEASURES)},
    PRIMARY KEY (protocol, method, dataset, depth, fold));
CREATE TABLE IF NOT EXISTS trials (
    method TEXT, dataset TEXT, depth INTEGER, trial INTEGER, run INTEGER,
    status TEXT, reason TEXT, params TEXT, validation REAL, folds TEXT,
    PRIMARY KEY (method, dataset, depth, trial));
"""


class Results:
    """The SQLite file; everything is written at once, so that it can be killed at any time."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")  # safe if killed, if not without power
        self._db.executescript(_SCHEMA)
        self._run = 0

    def close(self) -> None:
        self._db.close()

    def begin_run(self, command: str, versions: dict[str, str]) -> None:
        """Note who makes the results that follow."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        self._run = self._insert("runs", (None, started, command, json.dumps(versions)))

    def _insert(self, table: str, values: Iterable[Any]) -> int:
        row = tuple(values)
        marks = ", ".join("?" * len(row))
        cursor = self._db.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", row)
        return int(cursor.lastrowid or 0)

    def note_dataset(self, facts: tuple[str | int, ...]) -> None:
        """Note what `Rows.facts` says."""
        self._insert("datasets", facts)

    def note_fit(self, cell: Cell, fold: int, measures: Measures) -> None:
        row = (*asdict(cell).values(), fold, self._run, "done", "", *_in_order(measures))
        self._insert("fits", row)

    def note_failure(self, cell: Cell, fold: int, reason: str) -> None:
        row = (*asdict(cell).values(), fold, self._run, "failed", reason, *_in_order({}))
        self._insert("fits", row)

    def note_trial(
        self, cell: Cell, trial: Trial, folds: list[Measures] | None, reason: str = ""
    ) -> None:
        status = "failed" if folds is None else "done"
        validation = validation_of(folds)
        params, measured = json.dumps(trial.params), json.dumps(folds)
        key = (cell.method, cell.dataset, cell.depth, trial.number, self._run)
        self._insert("trials", (*key, status, reason, params, validation, measured))

    def folds_done(self, cell: Cell) -> set[int]:
        """Folds with a result, or with a reason why there is none."""
        found = self._db.execute(
            "SELECT fold FROM fits WHERE (protocol, method, dataset, depth) = (?, ?, ?, ?)",
            tuple(asdict(cell).values()),
        )
        return {fold for (fold,) in found}

    def trials_done(self, cell: Cell) -> list[Trial]:
        found = self._db.execute(
            "SELECT trial, params, validation FROM trials"
            " WHERE (method, dataset, depth) = (?, ?, ?) ORDER BY trial",
            (cell.method, cell.dataset, cell.depth),
        )
        return [Trial(number, json.loads(params), score) for number, params, score in found]

    def forget(self, cell: Cell, only_failures: bool) -> None:
        """Remove what is known of a cell, or its failures, so that it is done again."""
        extra = " AND status = 'failed'" if only_failures else ""
        if cell.protocol == "paper":
            self._db.execute(
                f"DELETE FROM trials WHERE (method, dataset, depth) = (?, ?, ?){extra}",
                (cell.method, cell.dataset, cell.depth),
            )
        else:
            self._db.execute(
                f"DELETE FROM fits WHERE (protocol, method, dataset, depth) = (?, ?, ?, ?){extra}",
                tuple(asdict(cell).values()),
            )

    def take(self, other: Results) -> None:
        """Add all that another file has; what both have is then as there."""
        known = {tuple(run[1:]): run[0] for run in self._db.execute("SELECT * FROM runs")}
        numbers = {}
        for old, *run in other._db.execute("SELECT * FROM runs").fetchall():
            if tuple(run) not in known:
                known[tuple(run)] = self._insert("runs", (None, *run))
            numbers[old] = known[tuple(run)]
        for table in ("fits", "trials"):
            found = other._db.execute(f"SELECT * FROM {table}")
            place = [column[0] for column in found.description].index("run")
            for row in found:
                number = numbers.get(row[place], 0)
                self._insert(table, (*row[:place], number, *row[place + 1 :]))
        for facts in other._db.execute("SELECT * FROM datasets"):
            self.note_dataset(facts)

    # --- reading ---

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_sql_query(f"SELECT * FROM {name}", self._db)

    def runs(self) -> pd.DataFrame:
        """The runs of which there is a result that no later run has replaced."""
        used = pd.concat([self.table(name)["run"] for name in ("fits", "trials")])
        runs = self.table("runs")
        return runs[runs["number"].isin(used)]

    def cells(self) -> pd.DataFrame:
        """One row for each protocol, method, dataset and depth: means over folds."""
        fits = self.table("fits")
        fits["trials"] = np.nan
        chosen = _best_trials(self.table("trials"))
        known = [table for table in (fits, chosen) if len(table)]
        every = pd.concat(known, ignore_index=True) if known else fits
        every["revision"] = every["run"].map(self._revisions())
        return cells_of(every)

    def _revisions(self) -> dict[int, str]:
        """The revision of the code in every run, or the version where that is unknown."""
        runs = self.table("runs")
        versions = dict(zip(runs["number"], map(json.loads, runs["versions"]), strict=True))
        return {n: each.get("revision", each.get("shapetree")) for n, each in versions.items()}


def joined(paths: Iterable[Path]) -> Results:
    """The results of several files as one, in memory; a later file outdoes an earlier one."""
    whole = Results(Path(":memory:"))
    for path in paths:
        results = Results(path)
        whole.take(results)
        results.close()
    return whole


def _in_order(measures: Measures) -> list[float | None]:
    return [measures.get(name) for name in MEASURES]


def _best_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """The folds of the trial that was best on validation rows, for each cell."""
    rows = []
    for (method, dataset, depth), each in trials.groupby(["method", "dataset", "depth"]):
        cell = {"protocol": "paper", "method": method, "dataset": dataset, "depth": depth}
        cell["trials"] = len(each)
        done = each[each["status"] == "done"]
        if done.empty:
            reason = each["reason"].iloc[-1]
            run = each["run"].iloc[-1]
            rows.append(cell | {"fold": 0, "run": run, "status": "failed", "reason": reason})
            continue
        best = done.loc[done["validation"].idxmax()]
        for fold, measures in enumerate(json.loads(best["folds"])):
            known = {name: measures.get(name) for name in MEASURES}
            place = {"fold": fold, "run": best["run"], "status": "done", "reason": ""}
            rows.append(cell | place | known)
    return pd.DataFrame(rows)


def cells_of(fits: pd.DataFrame) -> pd.DataFrame:
    """Means over folds; a cell with a fold that failed has the reason, too."""
    if fits.empty:
        return pd.DataFrame(columns=list(CELL_COLUMNS))
    fits = fits.astype(dict.fromkeys(MEASURES, float))
    groups = fits.groupby(list(KEYS))
    cells = groups[list(MEASURES)].mean()
    cells["accuracy_std"] = groups["accuracy"].std(ddof=0)
    cells["folds"] = groups["status"].agg(lambda each: int((each == "done").sum()))
    cells["failed"] = groups["status"].agg(lambda each: int((each == "failed").sum()))
    cells["reason"] = groups["reason"].agg(lambda each: next(filter(None, each), ""))
    cells["trials"] = groups["trials"].max()
    cells["revision"] = groups["revision"].last()
    return cells.reset_index()[list(CELL_COLUMNS)]
