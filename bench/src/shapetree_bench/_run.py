"""Running a benchmark: what is to be done, by whom, and what is seen of it."""

from __future__ import annotations

import multiprocessing
import os
import platform
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

import shapetree
from shapetree_bench._datasets import BY_NAME, Dataset, NoDataset, read
from shapetree_bench._methods import Method
from shapetree_bench._protocols import ANY_DEPTH, Cell, Trial, can_do, validation_of
from shapetree_bench._store import Results
from shapetree_bench._worker import Job, work

# The paper's time limits, in seconds, of a fit with single features and with pairs.
TIME_LIMIT = 15 * 60
PAIR_TIME_LIMIT = 30 * 60
# Of reading a dataset, once a worker has begun.
READ_LIMIT = 10 * 60
# Limits are of processor time, because other processes may be about. What does not even work gets
# this many times its limit.
PATIENCE = 10
# Seconds in which a worker without a job is to end.
FAREWELL = 5
PACKAGES = (
    *("shapetree", "scikit-learn", "numpy", "pandas", "optuna", "lightgbm", "sgtlearn"),
    *("imodels", "pystreed", "licketysplit", "interpret-core"),
)


@dataclass(frozen=True)
class Order:
    """What is to be run."""

    protocol: str
    datasets: Sequence[Dataset]
    methods: Sequence[Method]
    depths: Sequence[int]
    n_trials: int
    data_dir: Path | None
    cache: Path
    jobs: int = 1
    time_limit: float | None = None

    def cells(self, is_there: set[str]) -> list[Cell]:
        """All cells in the order in which they are done: small datasets first."""
        cells: dict[Cell, None] = {}
        for dataset in sorted(self.datasets, key=lambda each: each.rows * each.columns):
            if dataset.name not in is_there:
                continue
            for depth in self.depths:
                for method in self.methods:
                    if method.is_installed and can_do(self.protocol, method, dataset.task):
                        depth_there = depth if method.has_depth else ANY_DEPTH
                        cell = Cell(self.protocol, method.name, dataset.name, depth_there)
                        cells[cell] = None
        return list(cells)

    def limit(self, method: Method) -> float:
        """Seconds that one fit may take; a trial has one for each fold."""
        if self.time_limit is not None:
            return self.time_limit
        return PAIR_TIME_LIMIT if method.bivariate else TIME_LIMIT


def versions() -> dict[str, str]:
    """Versions of all that takes part, and the revision of shapetree, if that is known."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    try:
        asked = ["git", "-C", str(Path(shapetree.__file__).parent), "rev-parse", "--short", "HEAD"]
        found["revision"] = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        found["revision"] = found["revision"].strip()
    except (OSError, subprocess.CalledProcessError):
        pass
    return found


@dataclass
class Worker:
    """A worker as seen from outside."""

    process: Any
    connection: Connection
    core: int | None
    job: Job | None = None
    key: Any = None
    since: float = 0.0
    worked_before: float = 0.0

    def begin(self, key: Any) -> None:
        """Note when a step begins."""
        self.key, self.since = key, time.monotonic()
        self.worked_before = _processor_seconds(self.process.pid)

    def exceeds(self, limit: float) -> bool:
        """Whether the step has taken longer, in processor time as far as that is known."""
        waited = time.monotonic() - self.since
        worked = _processor_seconds(self.process.pid) - self.worked_before
        return (waited > limit and not worked <= limit) or waited > PATIENCE * limit


def _processor_seconds(process: int) -> float:
    """Processor time that a process has taken; NaN where that is unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Pace:
    """How long things take: seconds for a step of a method, by the size of its table."""

    spent: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    sizes: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, method: str, size: float, seconds: float) -> None:
        for key in (method, ""):
            self.spent[key] += seconds
            self.sizes[key] += size

    def estimate(self, method: str, size: float) -> float | None:
        key = method if self.sizes[method] else ""
        return self.spent[key] / self.sizes[key] * size if self.sizes[key] else None


class Runner:
    """Hands out jobs, notes what comes back, and shows how far it is."""

    def __init__(self, order: Order, results: Results, console: Console) -> None:
        self._order, self._results, self._console = order, results, console
        self._methods = {method.name: method for method in order.methods}
        self._size = {each.name: each.rows * each.columns for each in order.datasets}
        self._context = multiprocessing.get_context("spawn")
        self._pace = Pace()
        self._workers: list[Worker] = []
        self.n_done = self.n_failed = 0

    # --- what is to be done ---

    def available(self) -> set[str]:
        """Names of the datasets that can be read; says which cannot, and why."""
        found = set()
        for dataset in self._order.datasets:
            folder, cache = self._order.data_dir, self._order.cache
            name = f"{dataset.file}.parquet"
            is_local = any(
                where is not None and (where / name).exists() for where in (folder, cache)
            )
            try:
                if not is_local:
                    read(dataset, folder, cache)
                found.add(dataset.name)
            except NoDataset as error:
                self._console.print(f"[yellow]skipped[/] {error}", highlight=False)
        return found

    def jobs(self, cells: Iterable[Cell]) -> list[Job]:
        """What is left of the cells."""
        jobs = [self._job(cell) for cell in cells]
        return [job for job in jobs if job.n_steps]

    def _job(self, cell: Cell) -> Job:
        if cell.protocol == "paper":
            return Job(cell, [], self._order.n_trials, self._results.trials_done(cell))
        done = self._results.folds_done(cell)
        folds = range(BY_NAME[cell.dataset].n_folds)
        return Job(cell, [fold for fold in folds if fold not in done])

    # --- doing it ---

    def run(self, jobs: list[Job]) -> None:
        """Do all jobs; each fit that fails is noted, and nothing stops."""
        waiting = jobs[::-1]
        with _Display(self._console, sum(job.n_steps for job in jobs)) as display:
            cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
            self._workers = [
                self._start(cores[i % len(cores)] if cores else None)
                for i in range(min(self._order.jobs, len(jobs)))
            ]
            try:
                while waiting or any(worker.job for worker in self._workers):
                    for worker in self._workers:
                        if worker.job is None and waiting:
                            self._give(worker, waiting.pop())
                    self._listen(display, waiting)
                    display.show(self._workers, self._left(waiting), self.n_failed)
            finally:
                for worker in self._workers:
                    worker.connection.close()
                    if worker.job is None:  # it ends by itself
                        worker.process.join(FAREWELL)
                    worker.process.kill()

    def _start(self, core: int | None) -> Worker:
        ours, theirs = self._context.Pipe()
        order = self._order
        arguments = (theirs, core, order.data_dir, order.cache)
        # One thread each, also for libraries that ask only once.
        os.environ["OMP_NUM_THREADS"] = "1"
        process = self._context.Process(target=work, args=arguments, daemon=True)
        process.start()
        theirs.close()
        return Worker(process, ours, core)

    def _give(self, worker: Worker, job: Job) -> None:
        worker.job = job
        worker.begin(None)
        worker.connection.send(job)

    def _listen(self, display: _Display, waiting: list[Job]) -> None:
        for ready in wait([worker.connection for worker in self._workers], timeout=1.0):
            worker = next(each for each in self._workers if each.connection is ready)
            try:
                self._hear(worker, worker.connection.recv(), display)
            except EOFError:
                code = worker.process.exitcode
                self._replace(worker, f"the process ended with code {code}", display, waiting)
        for worker in self._workers:
            limit = self._limit(worker)
            if worker.job is not None and worker.exceeds(limit):
                self._replace(worker, f"took longer than {limit:.0f} s", display, waiting)

    def _limit(self, worker: Worker) -> float:
        if worker.job is None:
            return float("inf")
        if worker.key is None:  # it still reads the dataset
            return READ_LIMIT
        # Fits are repeated to be timed only if they are short, so this is the time of one.
        dataset = BY_NAME[worker.job.cell.dataset]
        folds = dataset.n_folds if isinstance(worker.key, Trial) else 1
        return folds * self._order.limit(self._methods[worker.job.cell.method])

    def _hear(self, worker: Worker, message: tuple[str, Any, Any], display: _Display) -> None:
        kind, key, answer = message
        job = worker.job
        if job is None:
            return
        if kind == "dataset":
            self._results.note_dataset(key)
        elif kind == "begin":
            worker.begin(key)
        elif kind in ("done", "failed"):
            seconds = time.monotonic() - worker.since
            self._note(job, key, answer, "" if kind == "done" else answer)
            self._pace.add(job.cell.method, self._size[job.cell.dataset], seconds)
            display.tell(job.cell, key, answer, kind == "done", seconds)
        elif kind == "broken":
            self._give_up(job, answer, display)
        else:
            worker.job = None

    def _note(self, job: Job, key: Any, answer: Any, reason: str) -> None:
        self.n_done += 1
        self.n_failed += bool(reason)
        if isinstance(key, Trial):
            folds = None if reason else answer
            self._results.note_trial(job.cell, key, folds, reason)
            job.done.append(Trial(key.number, key.params, validation_of(folds)))
        else:
            job.folds = [fold for fold in job.folds if fold != key]
            if reason:
                self._results.note_failure(job.cell, key, reason)
            else:
                self._results.note_fit(job.cell, key, answer)

    def _replace(self, worker: Worker, reason: str, display: _Display, waiting: list[Job]) -> None:
        """Note why a worker had to go, and put another in its place."""
        worker.process.kill()
        worker.process.join()
        job, key = worker.job, worker.key
        if job is not None:
            if key is None:
                self._give_up(job, reason, display)
            else:
                self._note(job, key, None, reason)
                display.tell(job.cell, key, reason, False, time.monotonic() - worker.since)
                # Other folds would take as long; other parameters may not.
                if isinstance(key, Trial) and job.n_steps:
                    waiting.append(self._job(job.cell))
                else:
                    self._give_up(job, f"not tried: another fold {reason}", display)
        self._workers[self._workers.index(worker)] = self._start(worker.core)

    def _give_up(self, job: Job, reason: str, display: _Display) -> None:
        """Note a reason for all that is left of a job."""
        for fold in list(job.folds):
            self._note(job, fold, None, reason)
            display.tell(job.cell, fold, reason, False, 0.0)

    def _left(self, waiting: list[Job]) -> float | None:
        """Seconds that are left, as far as one can tell."""
        running = [worker.job for worker in self._workers if worker.job]
        total = 0.0
        for job in (*waiting, *running):
            seconds = self._pace.estimate(job.cell.method, self._size[job.cell.dataset])
            if seconds is None:
                return None
            total += seconds * job.n_steps
        return total / max(1, len(self._workers))


class _Display:
    """A bar and what each worker does, if there is a terminal; a line for each fit otherwise."""

    def __init__(self, console: Console, n_steps: int) -> None:
        self._console = console
        self._progress = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), console=console
        )
        self._bar = self._progress.add_task("fits", total=n_steps)
        self._live = Live(self._progress, console=console, refresh_per_second=4)

    def __enter__(self) -> _Display:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def tell(self, cell: Cell, key: Any, answer: Any, is_done: bool, seconds: float) -> None:
        """Say what came of a fit."""
        self._progress.advance(self._bar)
        what = f"trial {key.number}" if isinstance(key, Trial) else f"fold {key}"
        depth = words_of_depth(cell)
        line = f"{cell.dataset}, {cell.method}, {depth}, {what}: "
        if not is_done:
            self._console.print(f"[red]failed[/] {line}{answer}", highlight=False)
        elif not self._console.is_terminal:
            self._console.print(f"{line}{_score_words(answer)}, {seconds:.1f} s", highlight=False)

    def show(self, workers: Sequence[Worker], left: float | None, n_failed: int) -> None:
        """Renew the display."""
        if not self._console.is_terminal:
            return
        words = "" if not left else f"about {duration(left)} left"
        if n_failed:
            words += f"  [red]{n_failed} failed[/]"
        self._progress.update(self._bar, description=f"fits  {words}")
        table = Table.grid(padding=(0, 2))
        for number, worker in enumerate(workers):
            if worker.job is not None:
                cell = worker.job.cell
                seconds = time.monotonic() - worker.since
                depth = words_of_depth(cell)
                table.add_row(
                    f"[dim]{number}[/]", cell.dataset, cell.method, depth, f"{seconds:.0f} s"
                )
        self._live.update(Group(table, self._progress))


def words_of_depth(cell: Cell) -> str:
    """How a cell's trees are limited."""
    if not cell.depth:
        return "any depth"
    return f"{cell.depth} leaves" if cell.protocol == "leaves" else f"depth {cell.depth}"


def _score_words(answer: Any) -> str:
    measures = answer if isinstance(answer, list) else [answer]
    name = "accuracy" if "accuracy" in measures[0] else "squared_error"
    return f"{name} {sum(each[name] for each in measures) / len(measures):.4f}"


def duration(seconds: float) -> str:
    """A length of time in the two units that say most of it."""
    minutes, hours = seconds / 60, seconds / 3600
    if hours >= 1:
        return f"{int(hours)} h {round(minutes) % 60} min"
    return f"{minutes:.0f} min" if minutes >= 1.5 else f"{seconds:.0f} s"
