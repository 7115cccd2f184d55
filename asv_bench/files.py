"""Fits from Parquet files beside one LightGBM tree in memory: `python -m asv_bench.files`.

The data is like Higgs: 28 columns of float32, two classes. Every measurement is a process of its
own, so that its peak memory is its own; LightGBM has the data in memory before its clock starts.
The answers are those of one run on one machine: compare ratios, not seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from asv_bench.memory import peak_bytes

N_FEATURES = 28
ROWS_A_FILE = 500_000
ROOMY, NARROW = "1GB", "200MB"
WAYS: dict[str, dict[str, Any]] = {
    "greedy, K=2": {"max_branches": 2, "refine": None},
    "greedy, K=3": {"max_branches": 3, "refine": None},
    "refined, K=2": {"max_branches": 2},
    "refined, K=3": {"max_branches": 3},
}


def make_rows(first: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows like those of Higgs: momenta, angles and masses, which tell the classes with noise."""
    rng = np.random.default_rng(first)
    X = np.empty((n_rows, N_FEATURES), dtype=np.float32)
    for j in range(N_FEATURES):
        if j < 21 and j % 3 == 0:
            X[:, j] = rng.gamma(2.0, 0.5, n_rows)
        elif j < 21:
            X[:, j] = rng.normal(size=n_rows)
        else:
            X[:, j] = np.abs(X[:, j - 21] + X[:, j - 20] * X[:, j - 14]) + rng.gamma(
                9.0, 0.1, n_rows
            )
    score = np.sin(2.0 * X[:, 22]) + np.abs(X[:, 25] - 1.0) - 0.7 * (X[:, 27] > 1.4) + 0.4 * X[:, 0]
    y = score + rng.logistic(scale=0.8, size=n_rows) > 1.0
    return X, y.astype(np.int8)


def write_files(folder: Path, n_rows: int) -> None:
    """Write rows to Parquet files, unless they are there."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number, first in enumerate(range(0, n_rows, ROWS_A_FILE)):
        path = folder / f"{number:04}.parquet"
        if path.exists():
            continue
        X, y = make_rows(first, min(ROWS_A_FILE, n_rows - first))
        columns = {f"f{j}": X[:, j] for j in range(N_FEATURES)} | {"y": y}
        pq.write_table(pa.table(columns), path, row_group_size=2**17)


def fit_files(folder: Path, n_rows: int, how: str, memory: str, n_threads: int) -> dict[str, Any]:
    """Time and peak memory of a fit from files."""
    from shapetree import ShapeTreeClassifier, from_parquet

    paths = [folder / f"{i:04}.parquet" for i in range(-(-n_rows // ROWS_A_FILE))]
    before = peak_bytes()
    clock, own = perf_counter(), process_time()
    data = from_parquet(paths, target="y", memory=memory)
    tree = ShapeTreeClassifier(max_depth=6, n_threads=n_threads, **WAYS[how]).fit(data)
    found = {"seconds": perf_counter() - clock, "cpu": process_time() - own}
    digest = hashlib.sha256(tree.to_json().encode()).hexdigest()[:12]
    return found | {"peak": peak_bytes(), "before": before, "tree": digest}


def fit_lightgbm(folder: Path, n_rows: int, n_threads: int) -> dict[str, Any]:
    """Time of one LightGBM tree from a float32 array in memory, binning included."""
    import pyarrow.parquet as pq
    from lightgbm import Dataset, train

    X, y = np.empty((n_rows, N_FEATURES), dtype=np.float32), np.empty(n_rows, dtype=np.int8)
    for number, first in enumerate(range(0, n_rows, ROWS_A_FILE)):
        table = pq.read_table(folder / f"{number:04}.parquet")
        for j in range(N_FEATURES):
            X[first : first + ROWS_A_FILE, j] = table[f"f{j}"][: n_rows - first]
        y[first : first + ROWS_A_FILE] = table["y"][: n_rows - first]
    options = {
        "objective": "binary", "num_leaves": 64, "max_depth": 6, "num_threads": n_threads,
        "verbose": -1,
    }  # fmt: skip
    clock, own = perf_counter(), process_time()
    train(options, Dataset(X, y), num_boost_round=1)
    return {
        "seconds": perf_counter() - clock, "cpu": process_time() - own, "peak": peak_bytes()
    }  # fmt: skip


def apart(what: str, **arguments: Any) -> dict[str, Any]:
    """Measure in a process of its own."""
    given = [str(arguments[name]) for name in sorted(arguments)]
    names = ",".join(sorted(arguments))
    command = [sys.executable, "-m", "asv_bench.files", "--measure", what, names, *given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def measure(what: str, names: str, *given: str) -> dict[str, Any]:
    """What a process of its own does."""
    arguments: dict[str, Any] = dict(zip(names.split(","), given, strict=True))
    arguments["folder"] = Path(arguments["folder"])
    for name in ("n_rows", "n_threads"):
        arguments[name] = int(arguments[name])
    functions = {"files": fit_files, "lightgbm": fit_lightgbm}
    return functions[what](**arguments)


def report(folder: Path, sizes: list[int], ways: list[str], n_threads: int) -> None:
    """Measure and print."""
    took: dict[str, list[float]] = {}
    print("rows\thow\tseconds\tCPU seconds\tover LightGBM\tCPU over LightGBM\tpeak GB\ttree")
    for n_rows in sizes:
        common = {"folder": folder, "n_rows": n_rows, "n_threads": n_threads}
        beside = apart("lightgbm", **common)
        show(n_rows, "LightGBM, in memory", beside, beside)
        for how in ways:
            found = apart("files", how=how, memory=ROOMY, **common)
            show(n_rows, how, found, beside)
            took.setdefault(how, []).append(found["cpu"])
            if n_rows == max(sizes):
                narrow = apart("files", how=how, memory=NARROW, **common)
                show(n_rows, f"{how}, memory={NARROW}", narrow, beside)
                slower = narrow["cpu"] / found["cpu"], narrow["seconds"] / found["seconds"]
                print(
                    f"with {NARROW}, {how} takes {slower[0]:.2f} times the processor time and "
                    f"{slower[1]:.2f} times as long; the same tree: "
                    f"{narrow['tree'] == found['tree']}",
                    flush=True,
                )
    if len(sizes) > 1:
        logs = np.log(sizes)
        for how, seconds in took.items():
            slope = np.polyfit(logs, np.log(seconds), 1)[0]
            print(f"time grows with the rows to the power of {slope:.2f}: {how}")


def show(n_rows: int, how: str, found: dict[str, Any], beside: dict[str, Any]) -> None:
    """Print a line of the report."""
    ratios = [found[clock] / beside[clock] for clock in ("seconds", "cpu")]
    numbers = [found["seconds"], found["cpu"], *ratios, found["peak"] / 1e9]
    told = "\t".join(f"{number:.2f}" for number in numbers)
    print(f"{n_rows}\t{how}\t{told}\t{found.get('tree', '')}", flush=True)


def main() -> None:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000, 11_000_000])
    parser.add_argument("--ways", nargs="+", default=list(WAYS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where to keep the files")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_files(folder, max(given.rows))
        report(folder, given.rows, given.ways, given.threads)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measure(*sys.argv[2:])))
    else:
        main()
