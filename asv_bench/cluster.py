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
from time import perf_counter
from typing import Any

import dask.array as da
import numpy as np
import psutil
from distributed import Client, LocalCluster

from asv_bench.files import WAYS, make_rows
from shapetree import ShapeTreeClassifier, _fitting
from shapetree.dask import DaskShapeTreeClassifier, _cluster
from shapetree.grow._joined import JoinedRows
from shapetree.grow._local import LocalRows
from shapetree.refine._joined import LocalParts


@contextmanager
def messages() -> Iterator[list[tuple[str, int]]]:
    """Note what is asked, and the bytes of the answer that reaches the client."""
    noted: list[tuple[str, int]] = []
    before = _cluster.AskedParts.ask

    def ask(self: Any, *steps: Any, **how: Any) -> Any:
        answer = before(self, *steps, **how)
        noted.append((steps[-1][0], len(pickle.dumps(answer, protocol=5))))
        return answer

    _cluster.AskedParts.ask = ask  # type: ignore[method-assign]
    try:
        yield noted
    finally:
        _cluster.AskedParts.ask = before  # type: ignore[method-assign]


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


def bytes_by_question(n_rows: int, n_parts: int, how: str, client: Client) -> None:
    """What reaches the client, by question: it does not grow with the rows."""
    X, y = collections(client, n_rows, n_parts)
    with messages() as noted:
        DaskShapeTreeClassifier(client=client, max_depth=6, n_threads=2, **WAYS[how]).fit(X, y)
    largest, times = Counter[str](), Counter[str]()
    for name, size in noted:
        largest[name] = max(largest[name], size)
        times[name] += 1
    told = ", ".join(f"{name} {times[name]} x {largest[name]:,}" for name in largest)
    print(f"{how}, {n_rows:,} rows in {n_parts} parts: most bytes an answer: {told}", flush=True)


def simulate(n_rows: int, n_parts: int, how: str) -> None:
    """Messages of a fit of many parts: every part is there, but all of them are in this process.

    What a task sends to the next is counted as if each part were on a worker of its own.
    """
    X, y = make_rows(0, n_rows)
    sent: Counter[str] = Counter()

    def counted(answers: list[Any], join: Any) -> Any:
        n_joins = 0
        while len(answers) > 1:
            sent["bytes between workers"] += sum(len(pickle.dumps(each)) for each in answers)
            groups = range(0, len(answers), _cluster.JOINED_TOGETHER)
            answers = [join(answers[at : at + _cluster.JOINED_TOGETHER]) for at in groups]
            n_joins += len(answers)
        sent["tasks"] += n_parts + n_joins
        return answers[0]

    class CountedParts(LocalParts):
        is_told = False

        def ask(self, *steps: Any, join: Any, finish: Any = None) -> Any:
            if self.is_told:
                sent["tasks"] += n_parts  # what was told since the last question, all at once
            self.is_told = False
            each = zip(self._parts, self._places, strict=True)
            answer = counted([place.asked(part, steps) for part, place in each], join)
            sent["rounds"] += 1
            sent["bytes to the client"] += len(pickle.dumps(answer))
            return answer if finish is None else finish(answer)

        def tell(self, *steps: Any) -> None:
            self.is_told = True
            super().tell(*steps)

    def hold(binned: Any, table: Any, goal: Any, n_threads: int, coarse: Any) -> JoinedRows:
        agreed, parts = goal.without_rows(), []
        for rows in np.array_split(np.arange(binned.n_rows), n_parts):
            mask = np.zeros(binned.n_rows, dtype=bool)
            mask[rows] = True
            targets = (goal.labels - goal.starts[:-1])[rows]
            parts.append(
                LocalRows(
                    table.take(mask), binned.take(mask), agreed.of(targets, None), 1,
                    first_row=int(rows[0]),
                )
            )  # fmt: skip
        return JoinedRows(CountedParts(parts), binned, coarse, goal, n_threads)

    before, _fitting.hold_rows = _fitting.hold_rows, hold
    try:
        tree = ShapeTreeClassifier(max_depth=6, n_threads=1, **WAYS[how]).fit(X, y)
    finally:
        _fitting.hold_rows = before
    told = ", ".join(f"{name} {number:,}" for name, number in sorted(sent.items()))
    print(f"{how}, {n_rows:,} rows in {n_parts:,} parts, {tree.get_n_leaves()} leaves: {told}")


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--parts", type=int, default=10)
    parser.add_argument("--how", nargs="*", default=list(WAYS))
    parser.add_argument("--bytes", action="store_true", help="only what reaches the client")
    parser.add_argument("--simulate", action="store_true", help="only messages, of many parts")
    given = parser.parse_args()
    if given.simulate:
        for how in given.how:
            simulate(given.rows, given.parts, how)
        return
    with (
        LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        # Workers import what they need.
        DaskShapeTreeClassifier(client=client).fit(*collections(client, 2_000, 4))
        for how in given.how:
            if given.bytes:
                for n_rows in (given.rows // 100, given.rows // 10, given.rows):
                    bytes_by_question(n_rows, given.parts, how, client)
            else:
                compare(given.rows, given.parts, how, client)


if __name__ == "__main__":
    main()
