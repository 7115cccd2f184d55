"""Shape trees beside other packages' trees, on a folder of datasets.

    python bench/peers.py --data FOLDER [--only tao | shapes] [--datasets rice,page] [--skip higgs]

Every FOLDER/*.parquet is a dataset whose column `target` holds the classes; those with more rows
than --max-rows, and those whose target is a number, are left out.

tao: accuracy on the training rows of the AxTAO recipe and of imodels' TAO, both without a penalty
and on the same one-hot columns, and of CART, from which both start.

shapes: shape trees and sgtlearn's trees, both with their defaults but for the depth and the number
of branches K. Accuracy on 30 % of the rows for testing, in three splits; leaves; segments of each
node that splits (maximal runs of the axis that go to one branch; of a categorical feature, its
branches); seconds to fit on one thread. sgtlearn gets the one-hot columns of a categorical feature
as one feature; of its nodes, those count that rows can reach.

Needs pandas, pyarrow, imodels and sgtlearn.
"""

import argparse
import signal
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from accuracy import load
from imodels import TaoTreeClassifier
from sgtlearn import SGTClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from shapetree import ShapeTreeClassifier, recipes

TAO_DEPTHS = (3, 4, 6)
SHAPE_DEPTHS = (4, 6)
SEEDS = (1, 2, 3)
SIZES = ["accuracy", "leaves", "segments", "seconds"]


# Tree alternating optimisation


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer."""

    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def timed_fit(model: Any, *data: Any, **more: Any) -> float:
    start = time.perf_counter()
    model.fit(*data, **more)
    return time.perf_counter() - start


def training_accuracies(name: str, X: np.ndarray, y: np.ndarray, timeout: int) -> Iterator[dict]:
    for depth in TAO_DEPTHS:
        cart, ours = (
            recipes.estimator(recipe, max_depth=depth, n_threads=1) for recipe in ("CART", "AxTAO")
        )
        theirs = TaoTreeClassifier(model_args={"max_depth": depth, "random_state": 0})
        cart.fit(X, y)
        row = {"dataset": name, "depth": depth, "CART": 100 * cart.score(X, y)}
        row["seconds"] = timed_fit(ours, X, y)
        row["AxTAO"] = 100 * ours.score(X, y)
        row["imodels"] = row["imodels seconds"] = np.nan
        try:
            with time_limit(timeout):
                row["imodels seconds"] = timed_fit(theirs, X, y)
            row["imodels"] = 100 * np.mean(theirs.predict(X) == y)
        except TimeoutError:
            pass
        yield row | {"difference": row["AxTAO"] - row["imodels"]}


def compare_tao(paths: list[Path], timeout: int) -> None:
    columns = ["CART", "imodels", "AxTAO", "difference", "seconds", "imodels seconds"]
    print(f"{'accuracy on training rows':<26}" + "".join(f" {name:>15}" for name in columns))
    rows = []
    for path in paths:
        _, one_hot, y, _ = load(path)
        for row in training_accuracies(path.stem, one_hot.astype(np.float32), y, timeout):
            rows.append(row)
            numbers = "".join(f" {row[name]:>15.2f}" for name in columns)
            print(f"{row['dataset']:<20} {row['depth']:>5}{numbers}", flush=True)
    table = pd.DataFrame(rows).dropna()
    print("\nmeans over the sets that imodels finished, and the worst difference")
    means = table.groupby("depth")[columns].mean()
    means["worst"] = table.groupby("depth")["difference"].min()
    print(means.round(2).to_string())
    lost = table[table["difference"] < 0]
    print(f"\nAxTAO is below imodels in {len(lost)} of {len(table)} cases")
    if len(lost):
        print(lost.round(3).to_string(index=False))


# Shape trees


def with_groups(table: pd.DataFrame) -> tuple[np.ndarray, dict[str, list[int]]]:
    """One-hot columns, and which of them are one categorical feature."""
    parts, groups, n_columns = [], {}, 0
    for name, column in table.items():
        is_number = pd.api.types.is_numeric_dtype(column) and column.dtype != bool
        part = column.to_frame() if is_number else pd.get_dummies(column)
        if part.shape[1] > 1:
            groups[str(name)] = list(range(n_columns, n_columns + part.shape[1]))
        parts.append(part.to_numpy(dtype=float))
        n_columns += part.shape[1]
    return np.column_stack(parts), groups


def n_runs(branches: np.ndarray) -> int:
    return 1 + np.count_nonzero(np.diff(branches))


def our_sizes(model: ShapeTreeClassifier) -> tuple[int, list[int]]:
    """Leaves, and the segments of every node that splits."""
    tree = model.tree_
    segments = []
    for node in np.flatnonzero(~tree.is_leaf):
        pieces = tree.pieces(node)
        is_categorical = np.isnan(tree.piece_upper[pieces]).any()
        branches = int(tree.n_branches[node])
        segments.append(branches if is_categorical else n_runs(tree.piece_branch[pieces]))
    return tree.n_leaves, segments


def sgtlearn_sizes(model: SGTClassifier) -> tuple[int, list[int]]:
    """The same; a node that sends all rows to one branch does not split."""
    exported = model.tree_export()
    nodes = {node["id"]: node for node in exported["nodes"]}
    n_leaves, segments, pending = 0, [], [exported["root_index"]]
    while pending:
        node = nodes[pending.pop()]
        if node["is_leaf"]:
            n_leaves += 1
            continue
        branches = np.array(node["bin_to_partition"])
        used = np.unique(branches)
        pending.extend(node["children"][branch] for branch in used)
        if len(used) > 1:
            segments.append(len(used) if node["is_categorical"] else n_runs(branches))
    return n_leaves, segments


def shape_trees(depth: int) -> dict[str, Any]:
    return {
        "K=3": ShapeTreeClassifier(max_depth=depth, n_threads=1),
        "K=2": ShapeTreeClassifier(max_depth=depth, max_branches=2, n_threads=1),
        "sgtlearn K=3": SGTClassifier(max_depth=depth, num_partitions=3),
        "sgtlearn": SGTClassifier(max_depth=depth),
        "sgtlearn greedy": SGTClassifier(max_depth=depth, tao_n_runs=0),
    }


def measure_shapes(path: Path, depth: int) -> pd.DataFrame:
    """What SIZES names, on the mean of all splits; one row for each tree."""
    table, _, y, _ = load(path)
    columns, groups = with_groups(table)
    rows = []
    for seed in SEEDS:
        train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=seed)
        for name, model in shape_trees(depth).items():
            if name.startswith("sgtlearn"):
                seconds = timed_fit(model, columns[train], y[train], feature_dict=groups or None)
                guess, (n_leaves, segments) = model.predict(columns[test]), sgtlearn_sizes(model)
            else:
                seconds = timed_fit(model, table.iloc[train], y[train])
                guess, (n_leaves, segments) = model.predict(table.iloc[test]), our_sizes(model)
            accuracy = 100 * np.mean(guess == y[test])
            rows.append((name, accuracy, n_leaves, np.mean(segments or np.nan), seconds))
    return pd.DataFrame(rows, columns=["tree", *SIZES]).groupby("tree", sort=False).mean()


def compare_shapes(paths: list[Path]) -> None:
    names = list(shape_trees(1))
    for depth in SHAPE_DEPTHS:
        print(f"\n{f'test accuracy, depth {depth}':<26}" + "".join(f" {n:>15}" for n in names))
        measured = []
        for path in paths:
            measured.append(measure_shapes(path, depth))
            numbers = "".join(f" {score:>15.2f}" for score in measured[-1]["accuracy"])
            print(f"{path.stem:<26}{numbers}", flush=True)
        means = sum(measured) / len(measured)
        gaps = pd.DataFrame([each["accuracy"] - each["accuracy"]["sgtlearn"] for each in measured])
        means["worst to sgtlearn"] = gaps.min().to_numpy()
        means["wins, losses"] = [f"{(gap > 0).sum()}, {(gap < 0).sum()}" for _, gap in gaps.items()]
        print(f"\nmeans over {len(measured)} sets\n{means.round(3).to_string()}", flush=True)


def chosen(options: argparse.Namespace) -> list[Path]:
    """Classification sets that are small enough, and asked for."""
    paths = []
    for path in sorted(options.data.glob("*.parquet")):
        wanted = path.stem in options.datasets if options.datasets else True
        if wanted and path.stem not in options.skip:
            _, _, y, is_number = load(path)
            if len(y) <= options.max_rows and not is_number:
                paths.append(path)
    return paths


def main() -> None:
    def names(text: str) -> list[str]:
        return text.split(",")

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=["tao", "shapes"])
    parser.add_argument("--datasets", type=names, default=[])
    parser.add_argument("--skip", type=names, default=[])
    parser.add_argument("--max-rows", type=int, default=20_000)
    parser.add_argument("--timeout", type=int, default=300, help="seconds for a fit of imodels")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    paths = chosen(options)
    with threadpool_limits(1):
        if options.only != "shapes":
            compare_tao(paths, options.timeout)
        if options.only != "tao":
            compare_shapes(paths)


if __name__ == "__main__":
    main()
