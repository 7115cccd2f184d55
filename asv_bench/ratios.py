"""Measure shapetree beside other libraries and print the ratios: `python -m asv_bench.ratios`.

All trees have depth 6, all tables 20 features, and everyone runs on one thread. Both sides of a
ratio take turns, so that whatever else the machine does slows both, and the best of several turns
counts. Times are processor times, but for two threads, where the clock on the wall counts.
"""

import argparse
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from operator import ge, le
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

from asv_bench.benchmarks.data import classes, curves
from shapetree import ShapeTreeClassifier

Action = Callable[[], Any]
Clock = Callable[[], float]

SIGNS = {le: "≤", ge: "≥"}
LAYOUT = "{:<44} {:>9} {:>9}  {:<13} {:>6}  {:<7} {}"


@dataclass(frozen=True)
class Effort:
    """How much to measure: turns for each side of a ratio, and a factor on large tables' rows."""

    turns: int
    scale: float

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
        target = f"{SIGNS[self.compare]} {self.target:g}"
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


def shape_tree(max_branches: int, n_threads: int = 1) -> ShapeTreeClassifier:
    """One of our trees."""
    return ShapeTreeClassifier(max_depth=6, max_branches=max_branches, n_threads=n_threads)


def cart() -> DecisionTreeClassifier:
    """One of scikit-learn's trees."""
    return DecisionTreeClassifier(max_depth=6, random_state=0)


# What the table holds


def fits_beside_cart(effort: Effort) -> Iterator[Line]:
    """Fits of up to 100,000 rows beside scikit-learn's."""
    cases = ((100_000, 2, 2, 0.2), (100_000, 2, 3, 0.25), (100_000, 5, 3, 0.5), (5_000, 2, 3, 1))
    for n_rows, n_classes, branches, target in cases:
        data = classes(n_rows, n_classes)
        turns = effort.turns if n_rows > 5_000 else 5 * effort.turns
        times = best_times(
            turns, partial(shape_tree(branches).fit, *data), partial(cart().fit, *data)
        )
        what = f"fit {n_rows:,} rows, {n_classes} classes, K={branches}"
        yield share_of("CART", what, times, target)


def fit_beside_lightgbm(effort: Effort) -> Iterator[Line]:
    """A large fit beside a single tree of LightGBM's, binning included in both."""
    n_rows = effort.rows(1_000_000)
    what = f"fit {n_rows:,} rows, float32, K=2"
    if find_spec("lightgbm") is None:
        yield Skipped(what, "lightgbm is not installed")
        return
    from lightgbm import LGBMClassifier

    theirs = LGBMClassifier(n_estimators=1, num_leaves=64, max_depth=6, n_jobs=1, verbose=-1)
    data = curves(n_rows)
    times = best_times(effort.turns, partial(shape_tree(2).fit, *data), partial(theirs.fit, *data))
    yield share_of("LightGBM tree", what, times, 1)


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


def fit_beside_sgtlearn(effort: Effort) -> Iterator[Line]:
    """A fit beside the paper's authors' library, greedy like ours."""
    what = "fit 100,000 rows, 2 classes, K=2"
    if find_spec("sgtlearn") is None:
        yield Skipped(what, "sgtlearn is not installed")
        return
    from sgtlearn import SGTClassifier

    theirs = SGTClassifier(max_depth=6, inner_max_depth=6, inner_max_leaf_nodes=32, tao_n_runs=0)
    data = make_classification(100_000, 20, n_informative=8, random_state=0)
    times = best_times(effort.turns, partial(shape_tree(2).fit, *data), partial(theirs.fit, *data))
    yield speedup_over("sgtlearn", what, times, 20)


def fit_on_two_threads(effort: Effort) -> Iterator[Line]:
    """Large fits on two threads beside one."""
    data = curves(effort.rows(1_000_000))
    for branches in (2, 3):
        one, two = (partial(shape_tree(branches, threads).fit, *data) for threads in (1, 2))
        what = f"fit {len(data[0]):,} rows, K={branches}, {cores_used(two):.1f} cores"
        times = best_times(effort.turns, two, one, clock=perf_counter)
        yield speedup_over("1 thread", what, times, 1.6)


def cores_used(action: Action) -> float:
    """How many cores an action keeps busy on average."""
    start = process_time()
    time = elapsed(action, perf_counter)
    return (process_time() - start) / time


def growth(effort: Effort) -> Iterator[Line]:
    """How fit time grows with rows: the exponent of a power of N."""
    X, y = curves(effort.rows(5_000_000))
    sizes = [effort.rows(n_rows) for n_rows in (100_000, 500_000, 1_000_000, 5_000_000)]
    fits = [partial(shape_tree(2).fit, X[:n_rows], y[:n_rows]) for n_rows in sizes]
    times = best_times(effort.turns, *fits)
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    ends = np.log(times[-1] / times[0]) / np.log(sizes[-1] / sizes[0])
    first, last = seconds(times[0]), seconds(times[-1])
    what = f"p of fit time N^p, {sizes[0]:,} to {sizes[-1]:,}"
    yield Ratio(f"{what} rows", last, first, "fewest rows", float(slope), 1.05)
    yield Ratio("p from the two ends alone", last, first, "fewest rows", float(ends), 1.05)


def peak_memory(effort: Effort) -> Iterator[Line]:
    """Peak memory of a fit in a process of its own, beside its float64 input."""
    n_rows = effort.rows(1_000_000)
    for n_threads in (1, 2):
        command = [sys.executable, "-m", "asv_bench.memory", str(n_rows), str(n_threads)]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        peak, data = map(int, output.split())
        what = f"peak memory, {n_rows:,} rows, n_threads={n_threads}"
        yield Ratio(what, megabytes(peak), megabytes(data), "float64 input", peak / data, 1.5)


def megabytes(n_bytes: int) -> str:
    """A size as text."""
    return f"{n_bytes / 1e6:.0f} MB"


PARTS: dict[str, Callable[[Effort], Iterator[Line]]] = {
    "fit": fits_beside_cart,
    "lightgbm": fit_beside_lightgbm,
    "predict": predictions_beside_cart,
    "sgtlearn": fit_beside_sgtlearn,
    "threads": fit_on_two_threads,
    "growth": growth,
    "memory": peak_memory,
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m asv_bench.ratios", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, smaller large tables")
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="measure this part only; may be repeated"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the lines here")
    return parser.parse_args()


def main() -> None:
    """Measure, and print each line as soon as it is known."""
    arguments = parse_arguments()
    warnings.simplefilter("ignore")
    effort = Effort(turns=2, scale=0.2) if arguments.quick else Effort(turns=5, scale=1)
    lines = []
    print(LAYOUT.format("depth 6, 20 features", "ours", "other", "", "ratio", "target", "met"))
    for name in arguments.only or PARTS:
        for line in PARTS[name](effort):
            print(line, flush=True)
            lines.append(line.as_dict())
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=2) + "\n")


if __name__ == "__main__":
    main()
