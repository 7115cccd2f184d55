"""Print a hash of the trees of many models, to know whether a change of the code changes results.

    python tools/hash_trees.py [--each]

The data are made up from a fixed seed. With --each, every model's own hash is printed, too, to be
compared with those of another revision.
"""

import hashlib
import sys
import warnings
from itertools import product

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine

from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
)


def mixed_table(n_rows: int, n_classes: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers, whole numbers, categories and missing values, and a target of all of them."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=list("abcd"))
    X["grade"] = rng.integers(0, 6, n_rows)
    X["site"] = pd.Categorical.from_codes(rng.integers(0, 9, n_rows), list("ABCDEFGHI"))
    signal = np.sin(2 * X.a) + X.b * X.c + 0.3 * X.grade + X.site.cat.codes.isin([1, 4, 6])
    signal = signal.to_numpy(float) + 0.5 * rng.normal(size=n_rows)
    X.loc[rng.random(n_rows) < 0.1, "a"] = np.nan
    X.loc[rng.random(n_rows) < 0.1, "site"] = None
    if n_classes == 0:
        return X, signal
    return X, np.digitize(signal, np.quantile(signal, np.arange(1, n_classes) / n_classes))


def models():
    """Name, estimator and arguments of `fit` of each model."""
    few = {name: load() for name, load in (("iris", load_iris), ("wine", load_wine))}
    few["cancer"] = load_breast_cancer()
    for name, data in few.items():
        for K, pairs in product((2, 3), (0, "auto")):
            tree = ShapeTreeClassifier(max_branches=K, pairs=pairs, random_state=0)
            yield f"{name} K={K} pairs={pairs}", tree, (data.data, data.target)
        yield f"{name} taught=None", ShapeTreeClassifier(teacher=None), (data.data, data.target)
    diabetes = load_diabetes(return_X_y=True)
    for options in ({}, {"pairs": "auto"}, {"objective": "absolute_error"}, {"strength": "cv"}):
        yield f"diabetes {options}", ShapeTreeRegressor(random_state=0, **options), diabetes
    settings = (
        {},
        {"max_depth": 6, "max_branches": 2},
        {"pairs": "auto", "max_depth": 3},
        {"pairs": "auto", "max_depth": 4, "refine": None},
        {"max_depth": None, "max_leaf_nodes": 12},
        {"refine": None, "max_depth": 6},
        {"max_parts": None, "pairs": "auto"},
        {"max_bins": None, "max_depth": 4},
        {"min_samples_leaf": 20, "ccp_alpha": 0.001},
        {"shrinkage": 0, "max_branches": 4},
    )
    for n_rows, n_classes in product((300, 4000), (0, 2, 5)):
        X, y = mixed_table(n_rows, n_classes, n_rows + n_classes)
        weight = np.random.default_rng(1).integers(0, 4, n_rows)
        kind = ShapeTreeClassifier if n_classes else ShapeTreeRegressor
        for options in settings:
            name = f"{n_rows} rows, {n_classes} classes, {options}"
            yield name, kind(random_state=0, **options), (X, y)
        yield f"{n_rows} rows, {n_classes} classes, weights", kind(random_state=0), (X, y, weight)
        if n_classes:
            tree = ShapeTreeClassifier(objective="error", class_weight="balanced", random_state=0)
            yield f"{n_rows} rows, {n_classes} classes, error, balanced", tree, (X, y)
        else:
            tree = ShapeTreeRegressor(objective="absolute_error", random_state=0)
            yield f"{n_rows} rows, absolute error", tree, (X, y)
        forest = ShapeForestClassifier if n_classes else ShapeForestRegressor
        forest = forest(n_estimators=5, random_state=0)
        yield f"{n_rows} rows, {n_classes} classes, forest", forest, (X, y)


def hash_of(estimator, X) -> str:
    """Hash of an estimator's nodes, thresholds, values and predictions."""
    trees = [tree.tree_ for tree in getattr(estimator, "estimators_", [estimator])]
    found = hashlib.blake2b(digest_size=8)
    for tree in trees:
        for name in (
            "feature",
            "first_child",
            "n_branches",
            "value",
            "n_node_samples",
            "piece_upper",
        ):
            found.update(np.ascontiguousarray(getattr(tree, name)).tobytes())
    predict = getattr(estimator, "predict_proba", estimator.predict)
    found.update(np.ascontiguousarray(predict(X)).tobytes())
    return found.hexdigest()


def main() -> None:
    """Print the hash of all, and of each if that is asked for."""
    warnings.simplefilter("ignore")
    total, n_models = hashlib.blake2b(digest_size=8), 0
    for name, estimator, data in models():
        found = hash_of(estimator.fit(*data), data[0])
        total.update(found.encode())
        n_models += 1
        if "--each" in sys.argv[1:]:
            print(found, name, flush=True)
    print(total.hexdigest(), f"{n_models} models")


if __name__ == "__main__":
    main()
