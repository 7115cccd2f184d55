"""Measure shapetree beside other libraries and print the ratios: `python -m asv_bench.ratios`.

Trees have depth 6 and tables 20 features unless a line says otherwise, ours are as they have grown
but for the lines on refinement, and everyone runs on one thread. Both sides of a ratio take turns,
so that whatever else the machine does slows both, and the best of several turns counts. Times are
processor times, but for two threads, where the clock on the wall counts.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from operator import ge, le
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

import shapetree
from asv_bench.benchmarks.data import (
    Labelled,
    classes,
    curves,
    gazes,
    prices,
    sensors,
    some_pairs,
)
from shapetree import ShapeTreeClassifier

Action = Callable[[], Any]
Clock = Callable[[], float]

SIGNS = {le: "≤", ge: "≥"}
LAYOUT = "{:<44} {:>9} {:>9}  {:<13} {:>6}  {:<7} {}"


@dataclass(frozen=True)
class Effort:
    """How much to measure.

    Attributes
    ----------
    turns : int
        Turns for each side of a ratio.
    scale : float
        Factor on large tables' rows.
    folder : Path or None
        Where further datasets lie.
    """

    turns: int
    scale: float
    folder: Path | None = None

    def rows(self, n_rows: int) -> int:
        """Number of rows to take for a large table."""
        return int(n_rows * self.scale)


@dataclass(frozen=True)
class Ratio:
    """One line of the table.

    Attributes
    ----------
    what : str
    ours, theirs : str
        What was measured, with units.
    other : str
        Whose `theirs` is.
    ratio, target : float
    compare : function
        What the ratio has to be to its target: `le` or `ge`.
    """

    what: str
    ours: str
    theirs: str
    other: str
    ratio: float
    target: float
    compare: Callable[[float, float], bool] = le

    @property
    def met(self) -> bool:
        """Whether the ratio is within its target."""
        return bool(self.compare(self.ratio, self.target))

    def __str__(self) -> str:
        target = f"{SIGNS[self.compare]} {self.target:.3g}"
        met = "yes" if self.met else "NO"
        return LAYOUT.format(
            self.what, self.ours, self.theirs, self.other, f"{self.ratio:.2f}", target, met
        )

    def as_dict(self) -> dict[str, Any]:
        """The line for a JSON file."""
        return {**asdict(self), "compare": SIGNS[self.compare], "met": self.met}


@dataclass(frozen=True)
class Skipped:
    """A line that could not be measured."""

    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.what:<44} skipped: {self.reason}"

    def as_dict(self) -> dict[str, Any]:
        """The line for a JSON file."""
        return {"what": self.what, "skipped": self.reason}


Line = Ratio | Skipped


# Measuring


def elapsed(action: Action, clock: Clock = process_time) -> float:
    """Seconds that an action takes."""
    start = clock()
    action()
    return clock() - start


def best_times(turns: int, *actions: Action, clock: Clock = process_time) -> list[float]:
    """Least seconds of each action; the actions take turns."""
    times = [[elapsed(action, clock) for action in actions] for _ in range(turns)]
    return [min(each) for each in zip(*times, strict=True)]


def seconds(time: float) -> str:
    """A time as text."""
    return f"{time:.2f} s" if time >= 1 else f"{1000 * time:.1f} ms"


def share_of(other: str, what: str, times: list[float], target: float) -> Ratio:
    """Our time as a share of theirs."""
    ours, theirs = times
    return Ratio(what, seconds(ours), seconds(theirs), other, ours / theirs, target)


def speedup_over(other: str, what: str, times: list[float], target: float) -> Ratio:
    """How many times as fast as theirs ours is."""
    ours, theirs = times
    return Ratio(what, seconds(ours), seconds(theirs), other, theirs / ours, target, ge)


def shape_tree(
    max_branches: int, n_threads: int = 1, refine: str | None = None
) -> ShapeTreeClassifier:
    """One of our trees, greedy unless said."""
    return ShapeTreeClassifier(
        max_depth=6, max_branches=max_branches, n_threads=n_threads, refine=refine
    )


def pair_tree(max_depth: int = 6, pairs: Any = "auto") -> ShapeTreeClassifier:
    """One of our trees of pairs, greedy."""
    return ShapeTreeClassifier(max_depth=max_depth, pairs=pairs, n_threads=1, refine=None)


def cart(max_depth: int = 6) -> DecisionTreeClassifier:
    """One of scikit-learn's trees."""
    return DecisionTreeClassifier(max_depth=max_depth, random_state=0)


def exponent(sizes: list[int], times: list[float]) -> float:
    """Power of the size that the times grow with."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def stored(folder: Path, name: str) -> Labelled:
    """Rows for training of a dataset, in the first of the splits of `bench/`."""
    table = pd.read_parquet(folder / f"{name}.parquet")
    y = pd.factorize(table.pop("target"), sort=True)[0]
    train, _ = train_test_split(np.arange(len(y)), train_size=0.7, random_state=42)
    return table.iloc[train], y[train]


# What the table holds


def fits_beside_cart(effort: Effort) -> Iterator[Line]:
    """Fits of 500 to 100,000 rows beside scikit-learn's, greedy and refined."""
    cases = (
        (500, 2, 3, None, 1.0),
        (5_000, 2, 3, None, 0.5),
        (100_000, 2, 3, None, 0.12),
        (100_000, 2, 2, None, 0.2),
        (100_000, 5, 3, None, 0.5),
        (500, 2, 3, "tao", 1.5),
        (2_000, 2, 3, "tao", 1.0),
        (5_000, 2, 3, "tao", 0.8),
        (100_000, 2, 3, "tao", 0.25),
    )
    for n_rows, n_classes, branches, refine, target in cases:
        data = classes(n_rows, n_classes)
        ours = shape_tree(branches, refine=refine)
        times = best_times(
            turns_for(n_rows, effort), partial(ours.fit, *data), partial(cart().fit, *data)
        )
        how = "refined" if refine else "greedy"
        what = f"fit {n_rows:,} rows, {n_classes} classes, K={branches}, {how}"
        yield share_of("CART", what, times, target)


def turns_for(n_rows: int, effort: Effort) -> int:
    """Turns for each side: small tables take many, as they are soon done."""
    return effort.turns if n_rows > 5_000 else 10 * effort.turns


def fit_beside_lightgbm(effort: Effort) -> Iterator[Line]:
    """Large fits beside a single tree of LightGBM's, binning included in both."""
    n_rows = effort.rows(1_000_000)
    what = f"fit {n_rows:,} rows, float32, K=2"
    if find_spec("lightgbm") is None:
        yield Skipped(what, "lightgbm is not installed")
        return
    from lightgbm import LGBMClassifier

    theirs = LGBMClassifier(n_estimators=1, num_leaves=64, max_depth=6, n_jobs=1, verbose=-1)
    data = curves(n_rows)
    for refine, target in ((None, 1.0), ("tao", 0.8)):
        ours = shape_tree(2, refine=refine)
        times = best_times(effort.turns, partial(ours.fit, *data), partial(theirs.fit, *data))
        yield share_of(
            "LightGBM tree", f"{what}, {'refined' if refine else 'greedy'}", times, target
        )


def predictions_beside_cart(effort: Effort) -> Iterator[Line]:
    """Predictions of 100,000 and 1,000,000 rows beside scikit-learn's."""
    X, y = classes(effort.rows(1_000_000))
    train = X[:100_000], y[:100_000]
    ours = {branches: shape_tree(branches).fit(*train) for branches in (2, 3)}
    theirs = cart().fit(*train)
    for dtype in (np.float64, np.float32):
        for n_rows in (100_000, len(X)):
            table = X[:n_rows].astype(dtype)
            for branches, tree in ours.items():
                times = best_times(
                    5 * effort.turns, partial(tree.predict, table), partial(theirs.predict, table)
                )
                what = f"predict {n_rows:,} rows, {dtype.__name__}, K={branches}"
                yield share_of("CART", what, times, 1)
    row = X[:1]
    times = best_times(2_000, partial(ours[3].predict, row), partial(theirs.predict, row))
    yield share_of("CART", "predict one row, K=3", times, 1.2)


def fit_beside_sgtlearn(effort: Effort) -> Iterator[Line]:
    """A fit beside the paper's authors' library, greedy like ours."""
    what = "fit 100,000 rows, 2 classes, K=2"
    if find_spec("sgtlearn") is None:
        yield Skipped(what, "sgtlearn is not installed")
        return
    from sgtlearn import SGTClassifier

    theirs = SGTClassifier(max_depth=6, inner_max_depth=6, inner_max_leaf_nodes=32, tao_n_runs=0)
    data = clusters(100_000)
    times = best_times(effort.turns, partial(shape_tree(2).fit, *data), partial(theirs.fit, *data))
    yield speedup_over("sgtlearn", what, times, 20)


def fit_on_two_threads(effort: Effort) -> Iterator[Line]:
    """Large fits on two threads beside one."""
    data = curves(effort.rows(1_000_000))
    cases: tuple[tuple[str, float, dict[str, Any]], ...] = (
        ("growing", 1.8, {"refine": None}),
        ("growing and refining", 1.7, {}),
        ("pairs, greedy", 1.6, {"refine": None, "pairs": "auto", "max_depth": 3}),
    )
    for name, target, parameters in cases:
        one, two = (
            partial(ShapeTreeClassifier(**{"max_depth": 6, **parameters}, n_threads=n).fit, *data)
            for n in (1, 2)
        )
        what = f"{name}, {len(data[0]):,} rows, {cores_used(two):.1f} cores"
        times = best_times(effort.turns, two, one, clock=perf_counter)
        yield speedup_over("1 thread", what, times, target)


def fit_on_busy_cores(effort: Effort) -> Iterator[Line]:
    """Two threads beside one while other processes keep two cores busy."""
    for n_rows, target, more in ((100_000, 1.3, 1), (5_000, 1.05, 4)):
        data = classes(n_rows)
        one, two = (partial(shape_tree(3, n, "tao").fit, *data) for n in (1, 2))
        with busy_cores(2):
            times = median_times(more * turns_for(n_rows, effort), two, one)
        yield share_of("1 thread", f"fit {n_rows:,} rows, cores busy", times, target)


@contextmanager
def busy_cores(n_cores: int) -> Iterator[None]:
    """Keep some cores busy with other processes, one on each.

    Processes that may change cores leave one of them to us now and then, so that one fit takes
    twice as long as the next, and even a fit beside itself has any ratio from 0.8 to 1.2.
    """
    processes = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(n_cores)
    ]
    if hasattr(os, "sched_setaffinity"):
        for process, core in zip(processes, sorted(os.sched_getaffinity(0)), strict=False):
            os.sched_setaffinity(process.pid, {core})
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def median_times(turns: int, *actions: Action) -> list[float]:
    """Median seconds of each action on the clock; the actions take turns, and turns to go first."""
    times: list[list[float]] = [[] for _ in actions]
    for turn in range(turns):
        pairs = list(zip(actions, times, strict=True))
        for action, its_times in pairs if turn % 2 else reversed(pairs):
            its_times.append(elapsed(action, perf_counter))
    return [float(np.median(each)) for each in times]


def cores_used(action: Action) -> float:
    """How many cores an action keeps busy on average."""
    start = process_time()
    time = elapsed(action, perf_counter)
    return (process_time() - start) / time


def growth(effort: Effort) -> Iterator[Line]:
    """How fit time grows with rows and with nodes: the exponents of powers of N."""
    X, y = curves(effort.rows(5_000_000))
    cases: tuple[tuple[str, tuple[int, ...], dict[str, Any]], ...] = (
        ("greedy", (10_000, 100_000, 1_000_000, 5_000_000), {"refine": None}),
        ("refined", (10_000, 100_000, 1_000_000, 5_000_000), {}),
        ("pairs", (10_000, 100_000, 1_000_000), {"pairs": "auto", "max_depth": 3}),
    )
    for name, all_sizes, parameters in cases:
        sizes = [effort.rows(n_rows) for n_rows in all_sizes]
        tree = ShapeTreeClassifier(**{"max_depth": 6, **parameters}, max_branches=2, n_threads=1)
        fits = [partial(tree.fit, X[:n_rows], y[:n_rows]) for n_rows in sizes]
        times = best_times(min(effort.turns, 2), *fits)
        what = f"p of fit time N^p, {name}, {sizes[0]:,} to {sizes[-1]:,}"
        first, last = seconds(times[0]), seconds(times[-1])
        yield Ratio(what, last, first, "fewest rows", exponent(sizes, times), 1.05)
    yield from growth_with_nodes(effort)


def growth_with_nodes(effort: Effort) -> Iterator[Line]:
    """How fit time grows with the nodes of a tree: the same noisy rows, at several depths."""
    X, y = curves(effort.rows(200_000))
    y = y ^ (np.random.default_rng(0).random(len(y)) < 0.3)
    for how, refine in (("greedy", None), ("refined", "tao")):
        trees = [
            ShapeTreeClassifier(
                max_depth=depth, max_branches=2, strength=0, refine=refine, n_threads=1
            )
            for depth in (4, 6, 8, 10, 12)
        ]
        times = best_times(min(effort.turns, 2), *(partial(tree.fit, X, y) for tree in trees))
        counts = [tree.tree_.node_count for tree in trees]
        what = f"p of fit time n^p, {how}, {counts[0]:,} to {counts[-1]:,} nodes"
        first, last = seconds(times[0]), seconds(times[-1])
        yield Ratio(what, last, first, "fewest nodes", exponent(counts, times), 1.05)


def peak_memory(effort: Effort) -> Iterator[Line]:
    """Peak memory of a fit in a process of its own, beside its float64 input."""
    n_rows = effort.rows(1_000_000)
    for how, target in (("greedy", 1.3), ("refined", 1.5), ("pairs", 1.8)):
        peak, data = memory_of_fit("curves", n_rows, 1, how)
        what = f"peak memory, {n_rows:,} rows, {how}"
        yield Ratio(what, megabytes(peak), megabytes(data), "float64 input", peak / data, target)


def memory_of_fit(table: str, n_rows: int, n_threads: int, how: str) -> tuple[int, int]:
    """Peak bytes of a fit in a process of its own, and bytes of its input."""
    command = [sys.executable, "-m", "asv_bench.memory"]
    command += map(str, (table, n_rows, n_threads, how))
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    peak, data = map(int, output.split())
    return peak, data


def megabytes(n_bytes: int) -> str:
    """A size as text."""
    return f"{n_bytes / 1e6:.0f} MB"


def fits_of_pairs(effort: Effort) -> Iterator[Line]:
    """Fits with pairs beside scikit-learn's and sgtlearn's, what they grow with, and memory."""
    for n_rows, target in ((500, 15), (5_000, 12)):
        data = classes(n_rows)
        ours = ShapeTreeClassifier(max_depth=6, pairs="auto", n_threads=1)
        times = best_times(effort.turns, partial(ours.fit, *data), partial(cart().fit, *data))
        yield share_of("CART", f"pairs, refined, {n_rows:,} rows", times, target)
    tables = [
        ("7,600 x 27, 3 classes", gazes(7_600), 6, 6, 3),
        ("31,700 x 8, 7 categories", prices(31_700), 6, 4, 10),
        ("14,000 x 128, 6 classes", sensors(14_000), 4, 60, None),
    ]
    if effort.folder:
        cases = (("eye-movements", 6, 6, 3), ("electricity", 6, 4, 10), ("gas-drift", 4, 60, None))
        tables += [(name, stored(effort.folder, name), *case) for name, *case in cases]
    for name, (X, y), depth, target, sgt_target in tables:
        what = f"pairs, {name}, depth {depth}"
        columns = pd.get_dummies(pd.DataFrame(X)).astype(float).to_numpy()
        ours = partial(pair_tree(depth).fit, X, y)
        times = best_times(effort.turns, ours, partial(cart(depth).fit, columns, y))
        yield share_of("CART", what, times, target)
        if sgt_target:
            yield pairs_beside_sgtlearn(effort, what, ours, (columns, y), sgt_target)
    yield from growth_of_pairs(effort)
    peak, data = memory_of_fit("sensors", 14_000, 1, "pairs")
    limit = 2 + 200e6 / data
    what = "peak memory, sensors, 14,000 rows, pairs"
    yield Ratio(what, megabytes(peak), megabytes(data), "float64 input", peak / data, limit)


def pairs_beside_sgtlearn(
    effort: Effort, what: str, ours: Action, data: Labelled, target: float
) -> Line:
    """A fit that screens all pairs beside the paper's authors' library, which fits five."""
    if find_spec("sgtlearn") is None:
        return Skipped(what, "sgtlearn is not installed")
    from sgtlearn import SGTClassifier

    theirs = SGTClassifier(max_depth=6, num_partitions=3, pairwise_candidates=5, tao_n_runs=0)
    times = best_times(effort.turns, ours, partial(theirs.fit, *data))
    return speedup_over("sgtlearn", what, times, target)


def growth_of_pairs(effort: Effort) -> Iterator[Line]:
    """How fit time grows with rows, and with the number of pairs that may interact."""
    sizes = [effort.rows(n_rows) for n_rows in (20_000, 40_000, 80_000, 160_000)]
    X, y = gazes(sizes[-1])
    fits = [partial(pair_tree(4).fit, X[:n_rows], y[:n_rows]) for n_rows in sizes]
    yield growth_line("rows", sizes, best_times(effort.turns, *fits))
    counts = [1_000, 2_000, 4_000, 8_000]
    data = sensors(14_000)
    fits = [partial(pair_tree(4, some_pairs(128, count)).fit, *data) for count in counts]
    yield growth_line("pairs", counts, best_times(effort.turns, *fits))


def growth_line(unit: str, sizes: list[int], times: list[float]) -> Ratio:
    """The exponent of the growth of fit time."""
    what = f"p of N^p, {sizes[0]:,} to {sizes[-1]:,} {unit}, depth 4"
    first, last = seconds(times[0]), seconds(times[-1])
    return Ratio(what, last, first, f"fewest {unit}", exponent(sizes, times), 1.05)


def refinement(effort: Effort) -> Iterator[Line]:
    """What refining costs beside growing; and refined fits beside other libraries'."""
    for n_rows, branches in ((100_000, 2), (100_000, 3), (5_000, 3)):
        for kind, make in (("clusters", clusters), ("classes", classes)):
            data = make(n_rows)
            grown, refined = best_times(
                turns_for(n_rows, effort),
                partial(shape_tree(branches).fit, *data),
                partial(shape_tree(branches, refine="tao").fit, *data),
            )
            what = f"refining, {kind}, {n_rows:,} rows, K={branches}"
            yield share_of("growing", what, [refined - grown, grown], 3)
    data = clusters(100_000)
    ours = partial(shape_tree(2, refine="tao").fit, *data)
    what = "refined fit 100,000 rows, 2 classes, K=2"
    yield share_of("CART", what, best_times(effort.turns, ours, partial(cart().fit, *data)), 1)
    if find_spec("sgtlearn") is None:
        yield Skipped(what, "sgtlearn is not installed")
        return
    from sgtlearn import SGTClassifier

    times = (
        best_times(effort.turns, ours),
        best_times(2, partial(SGTClassifier(max_depth=6).fit, *data)),
    )
    yield speedup_over("sgtlearn", what, [time for each in times for time in each], 30)


def choosing(effort: Effort) -> Iterator[Line]:
    """What it costs to have the data choose the strength, beside one default fit."""
    for n_rows, target, pairs, depth in (
        (5_000, 12.0, 0, 6),
        (100_000, 8.0, 0, 6),
        (5_000, 12.0, "auto", 6),
        (5_000, 12.0, "auto", 2),
    ):
        for kind, make in (("clusters", clusters), ("classes", classes)):
            data = make(n_rows)
            usual = ShapeTreeClassifier(max_depth=depth, pairs=pairs, n_threads=1)
            chosen = clone(usual).set_params(strength="cv")
            times = best_times(
                min(2, turns_for(n_rows, effort)),
                partial(chosen.fit, *data),
                partial(usual.fit, *data),
            )
            with_pairs = ", pairs" if pairs else ""
            what = f"strength='cv', depth {depth}, {kind}{with_pairs}, {n_rows:,} rows"
            yield share_of("default", what, times, target)


def clusters(n_rows: int) -> Labelled:
    """Two classes, each of several clusters in eight of twenty dimensions."""
    return make_classification(n_rows, 20, n_informative=8, random_state=0)


def showing(effort: Effort) -> Iterator[Line]:
    """Pictures, pages, words and exports of a tree; ratios are seconds here."""
    X, y = classes(effort.rows(100_000))
    tree = shape_tree(3, refine="tao").fit(X, y)
    rows = X[:10_000]
    actions: dict[str, tuple[Action, float]] = {
        "plot_tree": (partial(_drawn, tree), 3),
        "export_html": (partial(shapetree.export_html, tree), 2),
        "explain, 10,000 rows": (partial(_explained, tree, rows), 2),
    }
    names = ("json", "python", "sql", "js", "dot", "onnx", "text")
    for name in names:
        actions[f"export_{name}"] = (partial(getattr(shapetree, f"export_{name}"), tree), 1)
    for what, (action, target) in actions.items():
        (time,) = best_times(effort.turns, action)
        of = f"{what}, {tree.tree_.node_count} nodes"
        yield Ratio(of, seconds(time), "", "seconds", time, target)
    yield from _scoring(effort)


def _drawn(tree: ShapeTreeClassifier) -> None:
    from matplotlib import pyplot

    shapetree.plot_tree(tree)
    pyplot.close("all")


def _explained(tree: ShapeTreeClassifier, rows: np.ndarray) -> list[str]:
    return [f"{why}. {why.flip}." for why in tree.explain(rows)]


def _scoring(effort: Effort) -> Iterator[Line]:
    """The SQL expression in DuckDB beside `predict`, both on all cores."""
    what = "SQL in DuckDB, 1,000,000 rows, K=3"
    if find_spec("duckdb") is None:
        yield Skipped(what, "duckdb is not installed")
        return
    import duckdb

    X, y = classes(effort.rows(1_000_000))
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    tree = ShapeTreeClassifier(max_depth=6).fit(table[:100_000], y[:100_000])
    database = duckdb.connect()
    database.register("given", table)
    database.execute("CREATE TABLE data AS SELECT * FROM given")
    query = f"SELECT sum({shapetree.export_sql(tree, dialect='duckdb')}) FROM data"
    ours = partial(tree.predict, table)
    times = best_times(
        effort.turns, lambda: database.execute(query).fetchall(), ours, clock=perf_counter
    )
    yield share_of("predict", what, times, np.inf)


PARTS: dict[str, Callable[[Effort], Iterator[Line]]] = {
    "fit": fits_beside_cart,
    "lightgbm": fit_beside_lightgbm,
    "predict": predictions_beside_cart,
    "sgtlearn": fit_beside_sgtlearn,
    "threads": fit_on_two_threads,
    "busy": fit_on_busy_cores,
    "growth": growth,
    "memory": peak_memory,
    "pairs": fits_of_pairs,
    "refine": refinement,
    "choose": choosing,
    "show": showing,
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m asv_bench.ratios", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, smaller large tables")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="measure this part only; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the lines here")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="pairs: also eye-movements, electricity and gas-drift.parquet",
    )
    return parser.parse_args()


def main() -> None:
    """Measure, and print each line as soon as it is known."""
    arguments = parse_arguments()
    warnings.simplefilter("ignore")
    turns, scale = (2, 0.2) if arguments.quick else (5, 1)
    effort = Effort(turns, scale, arguments.data)
    lines = []
    print(
        LAYOUT.format(
            "depth 6, 20 features, if not said", "ours", "other", "", "ratio", "target", "met"
        )
    )
    for name in arguments.only or PARTS:
        for line in PARTS[name](effort):
            print(line, flush=True)
            lines.append(line.as_dict())
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=2) + "\n")


if __name__ == "__main__":
    main()
