"""Fits on a Dask cluster beside one in memory: `python -m asv_bench.cluster`.

The data is that of `asv_bench.files`. The cluster is local, two workers of one thread each; the fit
in memory has two threads. The answers are those of one run on one machine: compare ratios.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import perf_counter, process_time
from typing import Any

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from asv_bench.files import WAYS, make_rows
from shapetree import ShapeTreeClassifier
from shapetree.dask import DaskShapeTreeClassifier, _cluster
from shapetree.dask._task_values import bytes_of
from shapetree.data._map_join import LocalParts, MappedParts, joined
from shapetree.fit._local_backend import LocalBackend
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._joined_rows import JoinedRows
from shapetree.grow._local import LocalRows


@contextmanager
def messages() -> Iterator[list[tuple[str, int]]]:
    """Note what is asked, and the bytes of the answer that reaches the client."""
    noted: list[tuple[str, int]] = []
    before = _cluster.ClusterParts.ask

    def ask(self: Any, of: Any, *how: Any, **columns: Any) -> Any:
        answer = before(self, of, *how, **columns)
        noted.append((_cluster.name_of(of), len(pickle.dumps(answer, protocol=5))))
        return answer

    _cluster.ClusterParts.ask = ask  # type: ignore[method-assign]
    try:
        yield noted
    finally:
        _cluster.ClusterParts.ask = before  # type: ignore[method-assign]


def cpu_seconds() -> float:
    """Processor time of this process and its workers."""
    here = psutil.Process()
    times = [each.cpu_times() for each in (here, *here.children(recursive=True))]
    return sum(each.user + each.system for each in times)


def collections(client: Client, n_rows: int, n_parts: int) -> tuple[Any, Any]:
    """The rows as Dask arrays, on the workers."""
    size = -(-n_rows // n_parts)
    firsts = range(0, n_rows, size)
    sizes = [min(size, n_rows - first) for first in firsts]
    made = client.map(make_rows, list(firsts), sizes)
    X = [
        da.from_delayed(client.submit(lambda rows: rows[0], part), (n, 28), np.float32)
        for part, n in zip(made, sizes, strict=True)
    ]
    y = [
        da.from_delayed(client.submit(lambda rows: rows[1], part), (n,), np.int8)
        for part, n in zip(made, sizes, strict=True)
    ]
    X, y = da.concatenate(X).persist(), da.concatenate(y).persist()
    y.sum().compute()
    X[::1000].sum().compute()
    return X, y


def compare(n_rows: int, n_parts: int, how: str, client: Client) -> None:
    """Time of a fit on the cluster and in memory, and whether both trees are the same."""
    options = {"max_depth": 6, "n_threads": 2} | WAYS[how]
    X, y = collections(client, n_rows, n_parts)
    size = -(-n_rows // n_parts)
    with messages() as noted:
        clock, cpu = perf_counter(), cpu_seconds()
        far = DaskShapeTreeClassifier(client=client, **options).fit(X, y)
        on_cluster, cpu_of_cluster = perf_counter() - clock, cpu_seconds() - cpu
    del X, y
    each = [make_rows(first, min(size, n_rows - first)) for first in range(0, n_rows, size)]
    local_X, local_y = (np.concatenate(of_parts) for of_parts in zip(*each, strict=True))
    del each
    clock, cpu = perf_counter(), cpu_seconds()
    near = ShapeTreeClassifier(**options).fit(local_X, local_y)
    in_memory, cpu_in_memory = perf_counter() - clock, cpu_seconds() - cpu
    is_same = near.to_json() == far.to_local().to_json()
    print(
        f"{how}, {n_rows:,} rows in {n_parts} parts: cluster {on_cluster:.1f} s, in memory "
        f"{in_memory:.1f} s, ratio {on_cluster / in_memory:.2f}; of processor time "
        f"{cpu_of_cluster:.1f} s and {cpu_in_memory:.1f} s, ratio "
        f"{cpu_of_cluster / cpu_in_memory:.2f}; {len(noted)} rounds, same tree: {is_same}",
        flush=True,
    )


def bytes_by_level(n_rows: int, n_parts: int, how: str, client: Client) -> None:
    """What reaches the client, by question: it does not grow with the rows."""
    X, y = collections(client, n_rows, n_parts)
    with messages() as noted:
        DaskShapeTreeClassifier(client=client, max_depth=6, n_threads=2, **WAYS[how]).fit(X, y)
    by_question: dict[str, list[int]] = {}
    for name, size in noted:
        by_question.setdefault(name, []).append(size)
    levels = ", ".join(f"{size:,}" for size in by_question.pop("histograms"))
    print(f"{how}, {n_rows:,} rows: bytes to the client by level of growth: {levels}", flush=True)
    for name, sizes in by_question.items():
        print(f"    {name}: {len(sizes)} answers of at most {max(sizes):,} bytes", flush=True)


@dataclass
class Simulated:
    """A fit of rows in many parts, as if these were on workers of their own.

    Attributes
    ----------
    tree : ShapeTreeClassifier
    counts : Counter
        Rounds, tasks, and bytes that are sent.
    of_workers : float
        Processor time of the workers' own tasks on the longest way through the fit: of each round,
        that of the worker who takes longest.
    of_joins : float
        The same of joining answers, tree-wise.
    of_client : float
        Processor time of all that is done beside asking.
    """

    tree: ShapeTreeClassifier
    counts: Counter[str]
    of_workers: float
    of_joins: float
    of_client: float

    @property
    def seconds(self) -> float:
        """Time that the fit would take, but for messages."""
        return self.of_workers + self.of_joins + self.of_client


def simulate(
    X: np.ndarray, y: np.ndarray, n_parts: int, n_workers: int | None = None, **options: Any
) -> Simulated:
    """Fit a tree to rows in many parts, all of them in this process.

    What one task sends to the next is counted as if each worker were on its own, by default with
    one part each, and with one thread.
    """
    counts: Counter[str] = Counter()
    clock = {"workers": 0.0, "joins": 0.0, "asking": 0.0}
    n_workers = min(n_workers or n_parts, n_parts)

    def each(function: Any, *columns: list[Any]) -> tuple[list[Any], float]:
        """Results of tasks side by side, and the time of the one that takes longest."""
        took, results = [], []
        for item in zip(*columns, strict=True):
            start = process_time()
            results.append(function(*item))
            took.append(process_time() - start)
        counts["tasks"] += len(results)
        return results, max(took)

    class CountedParts:
        def __init__(self, parts: list[LocalRows]) -> None:
            of_workers = np.array_split(np.arange(n_parts), n_workers)
            self._groups = [LocalParts([parts[number] for number in own]) for own in of_workers]
            self._changes: list[Any] = []

        def ask(self, of: Any, join: Any, finish: Any = None) -> Any:
            def answer(group: LocalParts) -> Any:
                for make in self._changes:  # what was told since the last question, all at once
                    group.change(make)
                return group.ask(of, join)

            start = process_time()
            answers, took = each(answer, self._groups)
            clock["workers"] += took
            self._changes = []
            are_joined = finish is None and len(answers) <= _cluster.FEW
            while not are_joined:
                counts["bytes between workers"] += sum(map(bytes_of, answers))
                groups = [
                    answers[at : at + _cluster.JOINED_TOGETHER]
                    for at in range(0, len(answers), _cluster.JOINED_TOGETHER)
                ]
                answers, took = each(partial(joined, join=join), groups)
                clock["joins"] += took
                are_joined = len(answers) == 1
            counts["rounds"] += 1
            counts["bytes to the client"] += sum(map(bytes_of, answers))
            clock["asking"] += process_time() - start
            whole = joined(answers, join)
            return whole if finish is None else finish(whole)

        def change(self, make: Any) -> None:
            self._changes.append(make)

        def map(self, make: Any) -> MappedParts:
            return MappedParts(self, make)

    def hold(_: LocalBackend, rows: BinnedRows, goal: Any, n_threads: int) -> JoinedRows:
        start = process_time()
        table, binned, coarse = rows.rows.table, rows.binned, rows.coarse
        agreed, parts = goal.without_rows(), []
        for some in np.array_split(np.arange(binned.n_rows), n_parts):
            mask = np.zeros(binned.n_rows, dtype=bool)
            mask[some] = True
            targets = (goal.labels - goal.starts[:-1])[some]
            parts.append(
                LocalRows(
                    table.take(mask), binned.take(mask), agreed.of(targets, None, None), 1,
                    first_row=int(some[0]),
                )
            )  # fmt: skip
        clock["asking"] += process_time() - start
        return JoinedRows(CountedParts(parts), binned, coarse, agreed, n_threads)

    before = LocalBackend.hold
    LocalBackend.hold = hold  # type: ignore[assignment,method-assign]
    start = process_time()
    try:
        tree = ShapeTreeClassifier(max_depth=6, n_threads=1, **options).fit(X, y)
    finally:
        LocalBackend.hold = before  # type: ignore[method-assign]
    of_client = process_time() - start - clock["asking"]
    return Simulated(tree, counts, clock["workers"], clock["joins"], of_client)


def show_simulation(n_rows: int, n_parts: int, n_workers: int, how: str) -> None:
    """Print the messages of a fit of many parts."""
    found = simulate(*make_rows(0, n_rows), n_parts, n_workers, **WAYS[how])
    told = ", ".join(f"{name} {number:,}" for name, number in sorted(found.counts.items()))
    print(
        f"{how}, {n_rows:,} rows in {n_parts:,} parts on {n_workers:,} workers, "
        f"{found.tree.get_n_leaves()} leaves: {told}; "
        f"longest way: workers {found.of_workers:.2f} s, joins {found.of_joins:.2f} s",
        flush=True,
    )


def main() -> None:
    """Measure all that there is to tell of a cluster."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000, help="for the comparison of times")
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--how", nargs="*", default=["greedy, K=2", "refined, K=2"])
    given = parser.parse_args()
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        # Workers import what they need.
        DaskShapeTreeClassifier(client=client).fit(*collections(client, 2_000, 4))
        for how in given.how:
            for n_rows in (10_000, 100_000, 1_000_000):
                bytes_by_level(n_rows, given.parts, how, client)
        for how in given.how:
            compare(given.rows, given.parts, how, client)
    for how in given.how:
        for n_parts, n_workers in ((50, 50), (1_000, 1_000), (1_000, 32)):
            show_simulation(200_000, n_parts, n_workers, how)


if __name__ == "__main__":
    main()
