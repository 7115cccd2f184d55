"""Test accuracy of untuned shape trees beside CART, on a folder of datasets.

    python bench/accuracy.py FOLDER [--depths 3,4,6] [--branches 3]

Every FOLDER/*.parquet is a dataset whose column `target` holds the classes, or a number with more
than 30 distinct values, for which the mean squared error of the standardised target is shown.
Splits are the paper's: 70 % of the rows for training and 20 % for testing, three times. CART gets
categories as one-hot columns, and the better of Gini and entropy on each split. Needs pandas and
pyarrow.
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


def scores(path: Path, depth: int, max_branches: int) -> tuple[float, float]:
    """Mean accuracy (or error) of the shape tree and of CART."""
    X, one_hot, y, is_number = load(path)
    pairs = []
    for train, test in splits(len(y)):
        make = ShapeTreeRegressor if is_number else ShapeTreeClassifier
        tree = make(max_depth=depth, max_branches=max_branches).fit(X.iloc[train], y[train])
        if is_number:
            carts = [DecisionTreeRegressor(max_depth=depth, random_state=0)]
        else:
            carts = [
                DecisionTreeClassifier(max_depth=depth, criterion=criterion, random_state=0)
                for criterion in ("gini", "entropy")
            ]
        predicted = [tree.predict(X.iloc[test])]
        predicted += [cart.fit(one_hot[train], y[train]).predict(one_hot[test]) for cart in carts]
        if is_number:
            pairs.append([np.mean((guess - y[test]) ** 2) for guess in predicted])
        else:
            shares = [100 * np.mean(guess == y[test]) for guess in predicted]
            pairs.append([shares[0], max(shares[1:])])
    ours, cart = np.mean(pairs, axis=0)
    return float(ours), float(cart)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--depths", default="3,4,6")
    parser.add_argument("--branches", type=int, default=3)
    options = parser.parse_args()
    print(f"{'dataset':<20} {'depth':>5} {'shape tree':>10} {'CART':>10}")
    for path in sorted(options.folder.glob("*.parquet")):
        for depth in map(int, options.depths.split(",")):
            ours, cart = scores(path, depth, options.branches)
            print(f"{path.stem:<20} {depth:>5} {ours:>10.4g} {cart:>10.4g}", flush=True)


if __name__ == "__main__":
    main()
