"""How the cost of a fit grows, as a picture: `python -m asv_bench.curves docs/scale.png`.

Everything is processor time of one thread, so that a busy machine tells the same as an idle one.
Rows, columns, classes and pairs are those of a fit in memory. Workers are simulated, see
`asv_bench.cluster`: of each round, the time of the worker who takes longest counts.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import matplotlib
import numpy as np

from asv_bench.cluster import simulate
from asv_bench.files import make_rows
from shapetree import SearchOptions, ShapeTreeClassifier

matplotlib.use("agg")
import matplotlib.pyplot as plt

KINDS: dict[str, dict[str, Any]] = {"greedy": {"refine": None}, "refined": {}}
COLOURS = {"greedy": "#0072B2", "refined": "#D55E00"}
N_ROWS = 100_000
# About what a task takes of the scheduler, as the documentation of Dask has it.
SECONDS_A_TASK = 0.001

Curve = dict[str, list[float]]


def fit_seconds(X: np.ndarray, y: np.ndarray, **options: Any) -> float:
    """Processor time of a fit, the least of two."""
    took = []
    for _ in range(2):
        start = process_time()
        ShapeTreeClassifier(max_depth=6, max_branches=2, n_threads=1, **options).fit(X, y)
        took.append(process_time() - start)
    return min(took)


def more_classes(X: np.ndarray, n_classes: int) -> np.ndarray:
    """Classes that the features tell with noise."""
    rng = np.random.default_rng(0)
    score = np.sin(2.0 * X[:, 22]) + np.abs(X[:, 25] - 1.0) + 0.4 * X[:, 0]
    score += rng.logistic(scale=0.2, size=len(X))
    return np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def measure(sizes: list[int], cost: Callable[..., float]) -> Curve:
    """Seconds of both kinds of fit for every size."""
    curve: Curve = {"sizes": [float(size) for size in sizes]}
    for kind, options in KINDS.items():
        curve[kind] = [cost(size, **options) for size in sizes]
        print(kind, [f"{seconds:.2f}" for seconds in curve[kind]], flush=True)
    return curve


def all_curves() -> dict[str, Curve]:
    """Measure everything."""
    X, y = make_rows(0, 8 * N_ROWS)
    wide = np.concatenate([X[:N_ROWS], make_rows(1, N_ROWS)[0]], axis=1)
    few, labels = X[:N_ROWS], y[:N_ROWS]
    gini = SearchOptions(criterion="gini")

    def of_workers(n_workers: int, **options: Any) -> float:
        found = simulate(X, y, 32, n_workers, max_branches=2, **options)
        return found.of_workers + found.of_joins

    return {
        "rows": measure(
            [N_ROWS // 2, N_ROWS, 2 * N_ROWS, 4 * N_ROWS, 8 * N_ROWS],
            lambda n, **how: fit_seconds(X[:n], y[:n], **how),
        ),
        "columns": measure(
            [7, 14, 28, 56],
            # Those that tell the classes come first.
            lambda n, **how: fit_seconds(wide[:, np.r_[21:28, 0:21, 28:56][:n]], labels, **how),
        ),
        "classes": measure(
            [2, 4, 8, 16, 32],
            lambda n, **how: fit_seconds(few, more_classes(few, n), search=gini, **how),
        ),
        "columns, with pairs": measure(
            [4, 7, 14, 28],
            lambda n, **how: fit_seconds(
                few[:, np.r_[21:28, 0:21][:n]], labels, pairs="auto", **how
            ),
        ),
        "workers": measure([1, 2, 4, 8, 16, 32], of_workers),
    }


def power_of(curve: Curve, kind: str) -> float:
    """The power of the size with which the time grows."""
    return float(np.polyfit(np.log(curve["sizes"]), np.log(curve[kind]), 1)[0])


def draw(curves: dict[str, Curve], path: Path) -> None:
    """Draw all curves."""
    figure, axes = plt.subplots(1, len(curves), figsize=(3.0 * len(curves), 3.1), sharey=False)
    for axis, (what, curve) in zip(axes, curves.items(), strict=True):
        sizes = curve["sizes"]
        kinds = [kind for kind in KINDS if kind in curve]
        for kind in kinds:
            label = f"{kind}: power {power_of(curve, kind):.2f}"
            axis.plot(sizes, curve[kind], "o-", color=COLOURS[kind], label=label, markersize=4)
        axis.set_xscale("log", base=2)
        axis.set_yscale("log", base=2)
        axis.set_xticks(sizes, [_short(size) for size in sizes])
        seconds = [each for kind in kinds for each in curve[kind]]
        powers = range(
            int(np.floor(np.log2(min(seconds)))), int(np.ceil(np.log2(max(seconds)))) + 1
        )
        axis.set_yticks([2.0**p for p in powers], [f"{2.0**p:g}" for p in powers])
        axis.minorticks_off()
        axis.set_xlabel(what)
        axis.grid(alpha=0.3)
        axis.legend(frameon=False, fontsize=8)
        for side in ("top", "right"):
            axis.spines[side].set_visible(False)
    axes[0].set_ylabel("seconds of one processor")
    axes[-1].set_ylabel("seconds of the slowest worker")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _short(size: float) -> str:
    return f"{size / 1000:g}k" if size >= 1000 else f"{size:g}"


def extrapolate(n_rows: int, n_workers: int, n_parts: int) -> None:
    """Say what a fit of many rows on many workers would take, from two that are small."""
    small, large = 2 * N_ROWS, 8 * N_ROWS
    X, y = make_rows(0, large)
    for kind, options in KINDS.items():
        one, two = (simulate(X[:n], y[:n], 4, 1, max_branches=2, **options) for n in (small, large))
        a_row = (two.of_workers - one.of_workers) / (large - small)
        rows = a_row * n_rows / n_workers
        many = simulate(X[:small], y[:small], n_parts, n_workers, max_branches=2, **options)
        tasks = many.counts["tasks"] * SECONDS_A_TASK
        print(
            f"{kind}, {n_rows:,} rows on {n_workers} workers in {n_parts:,} parts: rows "
            f"{rows:,.0f} s ({1e6 * a_row:.2f} s for a million), joins {many.of_joins:,.1f} s, "
            f"choosing splits {many.of_client:,.1f} s, {many.counts['rounds']} rounds of "
            f"{many.counts['tasks']:,} tasks {tasks:,.0f} s",
            flush=True,
        )


def main() -> None:
    """Measure and draw, or draw what has been measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--measured", type=Path, help="a JSON file to keep the curves in")
    given = parser.parse_args()
    if given.measured is not None and given.measured.exists():
        curves = json.loads(given.measured.read_text())
    else:
        curves = all_curves()
        if given.measured is not None:
            given.measured.write_text(json.dumps(curves))
    draw(curves, given.picture)
    for what, curve in curves.items():
        powers = ", ".join(f"{kind} {power_of(curve, kind):.2f}" for kind in KINDS if kind in curve)
        print(f"time grows with the {what} to the power of: {powers}")
    extrapolate(10**9, 32, 1_000)


if __name__ == "__main__":
    main()
