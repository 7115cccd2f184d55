"""Fitted trees and forests of every kind, for tests of the model file and of exports."""

import numpy as np
import pandas as pd
from data import make_tree, noisy_classes, noisy_numbers

from shapetree import (
    ShapeForestClassifier,
    ShapeForestRegressor,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    refine_tree,
)

NASTY_NAMES = ['"quoted" \\ name', "🌳 tree", "שם בעברית", "line\nbreak\x00\u2028</script>"]
# Penalties that let even small data grow trees with several levels and with pairs.
EAGER = {
    "segment_penalty": 0.5,
    "leaf_penalty": 0.0,
    "pair_penalty": 0.0,
    "refine_penalty": 0.0,
    "inner_max_leaf_nodes": 5,
    "n_threads": 1,
}


def mixed_table(rng, n_rows=240, missing=0.1):
    """Numbers, whole numbers, texts, truth values and infinite numbers, some of them missing."""
    frame = pd.DataFrame(
        {
            NASTY_NAMES[0]: rng.normal(size=n_rows),
            NASTY_NAMES[1]: rng.choice(["a", "b", "ü", "", '"'], n_rows),
            NASTY_NAMES[2]: rng.integers(-3, 9, n_rows),
            NASTY_NAMES[3]: rng.integers(0, 2, n_rows).astype(bool),
            "level": rng.choice([-np.inf, -1.5, 0.0, 2.0, np.inf], n_rows),
        }
    )
    score = frame.iloc[:, 0] + frame.iloc[:, 1].isin(["a", "ü"]) * frame.iloc[:, 2] / 4
    score += frame.iloc[:, 3] * (frame["level"] > 0) + rng.normal(scale=0.3, size=n_rows)
    for name in NASTY_NAMES[:2]:
        frame.loc[rng.random(n_rows) < missing, name] = None
    return frame, score.to_numpy()


def in_classes(score, labels):
    """Scores as labels, of which all appear about equally often."""
    bounds = np.quantile(score, np.arange(1, len(labels)) / len(labels))
    return np.asarray(labels)[np.searchsorted(bounds, score)]


def of_mixed(labels=None, **params):
    X, score = mixed_table(np.random.default_rng(3))
    params = {"categorical_features": [*X.columns[[1, 3]], "level"], **EAGER} | params
    if labels is None:
        return make_tree(ShapeTreeRegressor, **params).fit(X, score), X, score
    y = in_classes(score, labels)
    return make_tree(ShapeTreeClassifier, **params).fit(X, y), X, y


def of_classes(**params):
    X, y = noisy_classes(np.random.default_rng(0))
    return make_tree(ShapeTreeClassifier, **EAGER | params).fit(X, y), X, y


def of_numbers(**params):
    X, y = noisy_numbers(np.random.default_rng(0))
    return make_tree(ShapeTreeRegressor, **EAGER | params).fit(X, y), X, y


def of_whole_categories(**params):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 6, (240, 3))
    y = (X[:, 0] % 2 + X[:, 1] % 3 + rng.integers(0, 2, 240)) % 3
    return (
        make_tree(ShapeTreeClassifier, categorical_features=[0, 1], **EAGER | params).fit(X, y),
        X,
        y,
    )


def of_huge_categories():
    X = pd.DataFrame({"id": pd.Series([2**70, -(2**64), 3] * 30, dtype=object)})
    y = np.arange(90) % 3
    return make_tree(ShapeTreeClassifier, categorical_features=["id"], **EAGER).fit(X, y), X, y


def of_several_outputs(kind, **params):
    params = EAGER | params
    X, score = mixed_table(np.random.default_rng(7))
    if kind == "numbers":
        y = np.stack([score, -score, np.sin(score)], axis=1)
        return make_tree(ShapeTreeRegressor, **params).fit(X, y), X, y
    if kind == "medians":
        y = np.stack([score, np.sin(score)], axis=1)
        return make_tree(ShapeTreeRegressor, criterion="absolute_error", **params).fit(X, y), X, y
    labels = [["no", "yes"], ["p", "q", "r", "s"]] if kind == "texts" else [[0, 1], [3, 5, 8, 9]]
    y = np.stack([in_classes(score, some) for some in labels], axis=1)
    y = y.astype(object) if kind == "texts" else y
    return make_tree(ShapeTreeClassifier, **params).fit(X, y), X, y


def of_extremes(scale, target_scale, **params):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(200, 3))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    X[:, 0] *= scale
    X[:, 1] /= scale
    X[rng.random(X.shape) < 0.05] = np.inf
    X[rng.random(X.shape) < 0.05] = -np.inf
    return (
        make_tree(ShapeTreeRegressor, **EAGER | params).fit(X, y * target_scale),
        X,
        y * target_scale,
    )


def of_weights():
    X, y = noisy_classes(np.random.default_rng(0))
    weights = np.random.default_rng(1).exponential(size=len(y))
    weights[::7] = 0
    return make_tree(ShapeTreeClassifier, **EAGER).fit(X, y, weights), X, y


def of_one_leaf(kind):
    X = np.zeros((5, 1))
    tree = ShapeTreeRegressor() if kind == "numbers" else ShapeTreeClassifier()
    y = np.arange(5.0) if kind == "numbers" else np.zeros(5, dtype=int)
    return tree.fit(X, y), X, y


def of_missing_column():
    X = pd.DataFrame({"gone": [None] * 60, "there": np.arange(60.0)})
    y = np.arange(60) % 7 < 3
    tree = make_tree(ShapeTreeClassifier, categorical_features=["gone"], **EAGER)
    return tree.fit(X, y), X, y


def refined_elsewhere():
    """Refined for rows with categories that training had not."""
    tree, X, y = of_mixed(["p", "q", "r"], refine=None)
    other = X.assign(**{NASTY_NAMES[1]: np.where(np.arange(len(X)) % 3, X[NASTY_NAMES[1]], "new")})
    return refine_tree(tree, other, y), other, y


def pruned():
    tree, X, y = of_mixed(["p", "q", "r"], max_depth=5, pairs="all")
    inner = [n for n in range(1, tree.tree_.node_count) if not tree.tree_.is_leaf[n]]
    return tree.prune(inner[:2]), X, y


def simplified(kind):
    tree, X, y = of_mixed(None if kind == "numbers" else ["p", "q"], max_depth=5)
    return tree.simplify(), X, y


# What makes a fitted estimator, its training table and its targets.
MAKERS = {
    "whole labels": lambda: of_mixed([-5, 0, 7]),
    "small whole labels": lambda: of_mixed(np.array([0, 200], dtype=np.uint8)),
    "labels of the other byte order": lambda: of_mixed(np.array([1, 2], dtype=">i4")),
    "largest labels": lambda: of_mixed(np.array([0, 2**64 - 1], dtype=np.uint64)),
    "texts": lambda: of_mixed(["", "ü🌳", 'say "no"']),
    "wide texts": lambda: of_mixed(np.array(["a", "b"], dtype="<U99")),
    "truth values": lambda: of_mixed([False, True]),
    "fractional labels": lambda: of_mixed([-1.0, 0.0, 4.0]),
    "short floats": lambda: of_mixed(np.array([0, 2], dtype=np.float16)),
    "objects": lambda: of_mixed(np.array(["a", "b", "c"], dtype=object)),
    "thirty classes": lambda: of_mixed([f"class {i:02d}" for i in range(30)], max_depth=5),
    "entropy": lambda: of_mixed([0, 1, 2], criterion="entropy"),
    "pairs of classes": lambda: of_mixed([0, 1, 2], pairs="all", max_depth=3),
    "pairs of numbers": lambda: of_mixed(pairs="all", max_depth=3),
    "pairs of categories": lambda: of_whole_categories(pairs=[(0, 1)], max_depth=3),
    "whole categories": of_whole_categories,
    "huge categories": of_huge_categories,
    "means": of_mixed,
    "medians": lambda: of_mixed(criterion="absolute_error", max_branches=2),
    "two branches": lambda: of_classes(max_branches=2, max_depth=5),
    "four branches": lambda: of_classes(max_branches=4, max_depth=2),
    "five branches": lambda: of_numbers(max_branches=5, max_depth=2, pairs=2),
    "greedy": lambda: of_classes(refine=None, max_bins=None),
    "shrunk": lambda: of_classes(shrinkage=10.0),
    "shrunk by folds": lambda: of_numbers(shrinkage="cv", max_depth=2),
    "pruned by cost": lambda: of_classes(ccp_alpha=0.01),
    "weights": of_weights,
    "weights by class": lambda: of_mixed(["p", "q"], class_weight={"p": 1.5, "q": 1}),
    "balanced": lambda: of_classes(class_weight="balanced"),
    "an object for randomness": lambda: of_classes(random_state=np.random.RandomState(0)),
    "odd parameters": lambda: of_classes(
        pairs=((0, 1), (1, 3)),
        categorical_features=np.zeros(4, dtype=bool),
        max_leaf_nodes=np.int8(5),
    ),
    "several texts": lambda: of_several_outputs("texts"),
    "several whole labels": lambda: of_several_outputs("labels"),
    "several means": lambda: of_several_outputs("numbers"),
    "several medians": lambda: of_several_outputs("medians"),
    "huge numbers": lambda: of_extremes(1e300, 1e150),
    "tiny numbers": lambda: of_extremes(1e-300, 1e-310),
    "huge numbers in pairs": lambda: of_extremes(1e300, 1e30, pairs="all"),
    "one leaf of classes": lambda: of_one_leaf("classes"),
    "one leaf of numbers": lambda: of_one_leaf("numbers"),
    "a column of nothing": of_missing_column,
    "refined for other rows": refined_elsewhere,
    "pruned by hand": pruned,
    "simplified classes": lambda: simplified("classes"),
    "simplified numbers": lambda: simplified("numbers"),
}


def forest_of_mixed(labels=None, seed=0, n_rows=120, weights=None, dates=False, **params):
    """A forest of a table of all kinds of columns; of a list of lists of labels, for each output.

    Categories are text, truth values and numbers, as in `mixed_table`; with dates beside them.
    """
    rng = np.random.default_rng(seed)
    X, score = mixed_table(rng, n_rows)
    X.columns = ["size", "colour", "count", "is there", "level"]
    if dates:
        day = pd.Timestamp("2020-02-28") + pd.to_timedelta(rng.integers(0, 900, n_rows), "D")
        X["day"], X["moment"] = day, day + pd.to_timedelta(rng.random(n_rows) * 86400, "s")
        X.loc[rng.random(n_rows) < 0.1, "day"] = None
        score = score + (day.day_of_year > 180) + np.sin(day.day_of_year / 20)
    params = {
        "n_estimators": 5,
        "categorical_features": ["colour", "is there", "level"],
        "random_state": seed,
        "max_features": 0.7,
        "n_threads": 1,
    } | params
    if labels is None or labels == "several numbers":
        y = score if labels is None else np.stack([score, -np.sin(score)], axis=1)
        return ShapeForestRegressor(**params).fit(X, y, weights), X, y
    several = labels if isinstance(labels[0], list) else [labels]
    y = np.stack([in_classes(score, some).astype(object) for some in several], axis=1)
    y = y if len(several) > 1 else np.array(y[:, 0].tolist())
    return ShapeForestClassifier(**params).fit(X, y, weights), X, y


# Forests that are fast to make, in the same form.
FORESTS = {
    "two classes": lambda **its: forest_of_mixed(["no", "yes"], **its),
    "classes": lambda **its: forest_of_mixed([3, 5, 8], **its),
    "texts": lambda **its: forest_of_mixed(["", "ü🌳", 'say "no"', "x"], max_branches=3, **its),
    "truth values": lambda **its: forest_of_mixed([False, True], class_weight="balanced", **its),
    "numbers": forest_of_mixed,
    "medians": lambda **its: forest_of_mixed(criterion="absolute_error", **its),
    "pairs of classes": lambda **its: forest_of_mixed([0, 1, 2], pairs="all", max_depth=4, **its),
    "pairs of numbers": lambda **its: forest_of_mixed(pairs="all", max_depth=4, **its),
    "dates": lambda **its: forest_of_mixed(["p", "q", "r"], dates=True, **its),
    "weights": lambda **its: forest_of_mixed(
        ["p", "q"], weights=np.random.default_rng(1).exponential(size=120), **its
    ),
    "frequencies": lambda **its: forest_of_mixed(weights=np.arange(120) % 4, **its),
    "several classes": lambda **its: forest_of_mixed([["n", "y"], ["p", "q", "r"]], **its),
    "several numbers": lambda **its: forest_of_mixed("several numbers", **its),
    "single leaves": lambda **its: forest_of_mixed(["a", "b"], min_samples_leaf=60, **its),
    "one tree": lambda **its: forest_of_mixed(["a", "b"], **its | {"n_estimators": 1}),
    "all rows": lambda **its: forest_of_mixed([1, 2], bootstrap=False, max_features=None, **its),
    "scores": lambda **its: forest_of_mixed(oob_score=True, **its | {"n_estimators": 20}),
}
