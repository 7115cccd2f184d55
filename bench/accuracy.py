"""Test accuracy of untuned shape trees beside CART, on a folder of datasets.

    python bench/accuracy.py FOLDER [--depths 3,4,6] [--branches 3] [--pairs auto]

Every FOLDER/*.parquet is a dataset whose column `target` holds the classes, or a number with more
than 30 distinct values, for which the mean squared error of the standardised target is shown.
Splits are the paper's: 70 % of the rows for training and 20 % for testing, three times. CART gets
categories as one-hot columns, and the better of Gini and entropy on each split. With --pairs, trees
with pairs stand beside those without, and the end shows what they gain on the mean and on the worst
classification set. Needs pandas and pyarrow.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

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


def scores(
    path: Path, depth: int, max_branches: int, pairs: list[int | str]
) -> tuple[list[float], bool]:
    """Mean accuracies of the shape tree with each number of pairs and of CART, or else errors."""
    X, one_hot, y, is_number = load(path)
    rows = []
    for train, test in splits(len(y)):
        make = ShapeTreeRegressor if is_number else ShapeTreeClassifier
        trees = [make(max_depth=depth, max_branches=max_branches, pairs=each) for each in pairs]
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
    parser.add_argument("--pairs", type=lambda text: int(text) if text.isdigit() else text)
    options = parser.parse_args()
    depths = list(map(int, options.depths.split(",")))
    pairs = [0, options.pairs] if options.pairs else [0]
    names = [*["shape tree", "with pairs"][: len(pairs)], "CART"]
    print(f"{'dataset':<20} {'depth':>5}" + "".join(f" {name:>10}" for name in names))
    gains: dict[int, list[tuple[float, str]]] = {depth: [] for depth in depths}
    for path in sorted(options.folder.glob("*.parquet")):
        for depth in depths:
            row, is_number = scores(path, depth, options.branches, pairs)
            columns = "".join(f" {score:>10.4g}" for score in row)
            print(f"{path.stem:<20} {depth:>5}{columns}", flush=True)
            if not is_number:
                gains[depth].append((row[1] - row[0], path.stem))
    if options.pairs:
        for depth, each in gains.items():
            if each:
                mean, (worst, name) = np.mean([gain for gain, _ in each]), min(each)
                print(f"pairs at depth {depth}: {mean:+.2f} on the mean, {worst:+.2f} on {name}")


if __name__ == "__main__":
    main()
