"""Test accuracy of untuned shape trees beside CART, on a folder of datasets.

    python bench/accuracy.py FOLDER [--depths 3,4,6] [--branches 3] [--greedy] [--pairs auto]

Every FOLDER/*.parquet is a dataset whose column `target` holds the classes, or a number with more
than 30 distinct values, for which the mean squared error of the standardised target is shown.
Splits are the paper's: 70 % of the rows for training and 20 % for testing, three times. CART gets
categories as one-hot columns, and the better of Gini and entropy on each split. With --greedy,
trees without refinement stand beside those with it; with --pairs, trees with pairs. The end shows
how these differ from the first on the mean and on the worst classification set. Needs pandas and
pyarrow.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor

SEEDS = (42, 63, 84)


def load(path: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray, bool]:
    """The table, its one-hot form, the target, and whether this is a number."""
    table = pd.read_parquet(path)
    y = table.pop("target")
    is_number = pd.api.types.is_numeric_dtype(y) and y.nunique() > 30
    one_hot = pd.get_dummies(table).astype(float).fillna(-1e9).to_numpy()
    if is_number:
        return table, one_hot, ((y - y.mean()) / y.std(ddof=0)).to_numpy(), True
    return table, one_hot, pd.factorize(y, sort=True)[0], False


def splits(n_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows for training and for testing."""
    for seed in SEEDS:
        train, rest = train_test_split(np.arange(n_rows), train_size=0.7, random_state=seed)
        yield train, train_test_split(rest, train_size=1 / 3, random_state=seed)[1]


def scores(path: Path, depth: int, variants: list[dict[str, Any]]) -> tuple[list[float], bool]:
    """Mean accuracies of each variant of the shape tree and of CART, or else errors."""
    X, one_hot, y, is_number = load(path)
    rows = []
    for train, test in splits(len(y)):
        make = ShapeTreeRegressor if is_number else ShapeTreeClassifier
        trees = [make(max_depth=depth, **params) for params in variants]
        if is_number:
            carts = [DecisionTreeRegressor(max_depth=depth, random_state=0)]
        else:
            carts = [
                DecisionTreeClassifier(max_depth=depth, criterion=criterion, random_state=0)
                for criterion in ("gini", "entropy")
            ]
        predicted = [tree.fit(X.iloc[train], y[train]).predict(X.iloc[test]) for tree in trees]
        predicted += [cart.fit(one_hot[train], y[train]).predict(one_hot[test]) for cart in carts]
        if is_number:
            rows.append([np.mean((guess - y[test]) ** 2) for guess in predicted])
        else:
            shares = [100 * np.mean(guess == y[test]) for guess in predicted]
            rows.append([*shares[: len(trees)], max(shares[len(trees) :])])
    return np.mean(rows, axis=0).tolist(), is_number


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depths", default="3,4,6")
    parser.add_argument("--branches", type=int, default=3)
    parser.add_argument("--greedy", action="store_true")
    parser.add_argument("--pairs", type=lambda text: int(text) if text.isdigit() else text)
    options = parser.parse_args()
    depths = list(map(int, options.depths.split(",")))
    variants: dict[str, dict[str, Any]] = {"shape tree": {"max_branches": options.branches}}
    if options.greedy:
        variants["greedy"] = {"max_branches": options.branches, "refine": None}
    if options.pairs:
        variants["with pairs"] = {"max_branches": options.branches, "pairs": options.pairs}
    print(f"{'dataset':<20} {'depth':>5}" + "".join(f" {name:>10}" for name in [*variants, "CART"]))
    gains: dict[tuple[str, int], list[tuple[float, str]]] = {}
    for path in sorted(options.folder.glob("*.parquet")):
        for depth in depths:
            row, is_number = scores(path, depth, list(variants.values()))
            columns = "".join(f" {score:>10.4g}" for score in row)
            print(f"{path.stem:<20} {depth:>5}{columns}", flush=True)
            if not is_number:
                for name, score in zip(variants, row, strict=False):
                    gains.setdefault((name, depth), []).append((score - row[0], path.stem))
    for (name, depth), each in gains.items():
        if name != "shape tree":
            mean, (worst, dataset) = np.mean([gain for gain, _ in each]), min(each)
            print(f"{name} at depth {depth}: {mean:+.2f} on the mean, {worst:+.2f} on {dataset}")


if __name__ == "__main__":
    main()
