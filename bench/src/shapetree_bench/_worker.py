"""A process of its own on a core of its own, in which models are fitted."""

from __future__ import annotations

import gc
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from typing import Any

from shapetree_bench._datasets import BY_NAME, Rows, read
from shapetree_bench._methods import METHODS, peer_at
from shapetree_bench._protocols import Cell, Search, Trial, fit_fold, try_trial


@dataclass
class Job:
    """A cell, and what of it is still to be done."""

    cell: Cell
    folds: list[int] = field(default_factory=list)
    n_trials: int = 0
    done: list[Trial] = field(default_factory=list)

    @property
    def n_steps(self) -> int:
        return len(self.folds) if self.folds else max(0, self.n_trials - len(self.done))


# What a worker says: what it begins, what came of it, and that a job is over.
Message = tuple[str, Any, Any]


def work(connection: Connection, core: int | None, data_dir: Path | None, cache: Path) -> None:
    """Do jobs as long as there is someone to give them, and to hear what came of them."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):
        _serve(connection, data_dir, cache)


def _end_with_parent() -> None:
    """A fit of many minutes is of no use once the one who asked for it was killed."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _serve(connection: Connection, data_dir: Path | None, cache: Path) -> None:
    rows: Rows | None = None
    while True:
        job = connection.recv()
        try:
            if rows is None or rows.dataset.name != job.cell.dataset:
                rows = read(BY_NAME[job.cell.dataset], data_dir, cache)
                # What is there stays; to look through it before each fit takes longer than CART.
                gc.collect()
                gc.freeze()
                connection.send(("dataset", rows.facts(), None))
            _do(job, rows, connection)
        except ConnectionError:
            raise
        except Exception as error:
            connection.send(("broken", None, describe(error)))
        connection.send(("end", None, None))


def _do(job: Job, rows: Rows, connection: Connection) -> None:
    cell = job.cell
    method = METHODS[cell.method] if cell.method in METHODS else peer_at(cell.method)
    if cell.protocol != "paper":
        for fold in job.folds:
            _attempt(connection, fold, partial(fit_fold, method, rows, cell, fold))
        return
    search = Search(method, rows, job.done)
    while len(search.done) < job.n_trials:
        trial = search.ask()
        folds = _attempt(connection, trial, partial(try_trial, method, rows, cell, trial))
        search.tell(trial, folds)


def _attempt(connection: Connection, key: Any, do: Callable[[], Any]) -> Any:
    """Do something, and say what comes of it; None if it fails."""
    connection.send(("begin", key, None))
    try:
        answer = do()
    except Exception as error:
        connection.send(("failed", key, describe(error)))
        return None
    connection.send(("done", key, answer))
    return answer


def describe(error: BaseException) -> str:
    """What went wrong, in one line, and where."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {words} ({Path(where.filename).name}, line {where.lineno})"
