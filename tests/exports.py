"""Fitted trees of all kinds, and rows for them that are hard to route."""

import math
import sys
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pandas as pd
from data import make_tree, set_tree
from hypothesis import strategies as st
from naive import trees

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.tree._arrays import TreeArrays

N_TRAIN, N_ROWS = 1500, 10_000
GREATEST = sys.float_info.max
EXTREMES = [math.inf, -math.inf, GREATEST, -GREATEST, 1e300, -1e300, 5e-324, -5e-324, 0.0, -0.0]
MISSING = [None, math.nan]

# Names that are not names elsewhere, that end texts and comments, or that try to run.
NUMBER, FLOAT32, WHOLE = 'say "hi", it\'s `x`', "select", "a\nb\\n */ --"
TEXT, GRADE, FLAG = "naïve ☃ </script>", "$$; DROP TABLE t; ${1}", "\"\"\"__proto__'''"
KINDS = {
    NUMBER: "float64",
    FLOAT32: "float32",
    WHOLE: "int64",
    TEXT: "text",
    GRADE: "grade",
    FLAG: "bool",
}
WORDS = ["it's", 'say "hi"', "back\\slash \\' \\n", "line\nend", "héllo ☃ 🌳", "</script>", "1", ""]


@dataclass(frozen=True, eq=False)
class Case:
    """A fitted tree and rows to predict.

    Attributes
    ----------
    model : estimator
    kinds : dict
        What each column holds: "float64", "float32", "int64", "text", "grade" (whole numbers as
        categories) or "bool".
    columns : dict
        Python values by name.
    """

    model: object
    kinds: dict
    columns: dict

    @property
    def n_rows(self):
        return len(next(iter(self.columns.values())))

    @property
    def rows(self):
        """Each row as a dict."""
        names = list(self.columns)
        return [
            dict(zip(names, row, strict=True)) for row in zip(*self.columns.values(), strict=True)
        ]

    @cached_property
    def table(self):
        dtypes = {"text": object, "grade": object, "bool": object}
        return pd.DataFrame(
            {
                name: pd.Series(values, dtype=dtypes.get(self.kinds[name], self.kinds[name]))
                for name, values in self.columns.items()
            }
        )

    @cached_property
    def predictions(self):
        return self.model.predict(self.table).tolist()

    @cached_property
    def shares(self):
        """Probabilities by row; with several targets, a list for each."""
        shares = self.model.predict_proba(self.table)
        if self.model.n_outputs_ == 1:
            return shares.tolist()
        return [list(row) for row in zip(*(some.tolist() for some in shares), strict=True)]


def reasons_of(model, leaves):
    """For each leaf the features on the path to it, each once."""
    tree, names = model.tree_, list(model.feature_names_in_)
    found = {}
    for leaf in set(leaves):
        path = [j for node in tree.path_to(leaf)[:-1] for j in tree.features_of(node)]
        found[leaf] = [names[j] for j in dict.fromkeys(path)]
    return [found[leaf] for leaf in leaves]


# Training data


def training_table(rng, kinds, n_rows=N_TRAIN):
    """Columns of all kinds; some values are missing, except among whole numbers."""
    columns = {
        "float64": lambda: rng.normal(size=n_rows),
        "float32": lambda: rng.normal(size=n_rows).astype(np.float32),
        "int64": lambda: rng.integers(-20, 20, n_rows),
        "text": lambda: rng.choice(WORDS, n_rows).astype(object),
        "grade": lambda: rng.integers(0, 6, n_rows).astype(object),
        "bool": lambda: rng.choice([True, False], n_rows).astype(object),
    }
    table = pd.DataFrame({name: columns[kind]() for name, kind in kinds.items()})
    for name, kind in kinds.items():
        if kind != "int64":
            gone = rng.random(n_rows) < 0.08
            table.loc[gone, name] = np.nan if kind.startswith("float") else None
    return table


def scores(table, kinds):
    """Numbers that depend on single columns and on pairs of them."""
    parts = []
    for name, kind in kinds.items():
        values = table[name]
        if kind in ("text", "grade", "bool"):
            codes = {value: i for i, value in enumerate(sorted(set(values.dropna()), key=str))}
            parts.append(values.map(codes).fillna(1).astype(float).to_numpy() % 3 - 1)
        else:
            numbers = values.fillna(0.4).astype(float).to_numpy()
            parts.append(np.sin(3 * numbers / numbers.std()))
    total = sum(parts[i] * parts[i - 1] for i in range(len(parts)))
    return total + 0.5 * parts[0] + 0.4 * np.sign(parts[0] + 0.7 * parts[-1])


def fitted(kind, params, labels=None, kinds=KINDS, n_targets=1, seed=0):
    """A model, and the table it was fitted on."""
    rng = np.random.default_rng(seed)
    X = training_table(rng, kinds)
    noise = rng.normal(scale=0.2, size=(n_targets, len(X)))
    targets = [scores(X, kinds) * (1 - 1.5 * i) + noise[i] for i in range(n_targets)]
    if labels is not None:
        shares = np.arange(1, len(labels)) / len(labels)
        targets = [np.array(labels)[np.searchsorted(np.quantile(t, shares), t)] for t in targets]
    y = targets[0] if n_targets == 1 else np.stack(targets, axis=1)
    categorical = [name for name, held in kinds.items() if held in ("text", "grade", "bool")]
    model = make_tree(kind, categorical_features=categorical, n_threads=1, random_state=0, **params)
    return model.fit(X, y), X


# Rows to predict


def thresholds_of(model):
    """Thresholds of each feature, by its number."""
    tree, found = model.tree_, {}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        features = tree.features_of(node)
        if len(features) == 1:
            found.setdefault(features[0], []).extend(tree.piece_upper[tree.pieces(node)].tolist())
            continue
        for cut in range(tree.cuts(node).start, tree.cuts(node).stop):
            weights = float(tree.cut_a[cut]), float(tree.cut_b[cut])
            if weights in [(1.0, 0.0), (0.0, 1.0)]:
                feature = features[weights.index(1.0)]
                found.setdefault(feature, []).append(float(tree.cut_threshold[cut]))
    return {key: [t for t in some if math.isfinite(t)] for key, some in found.items()}


def neighbours(numbers, dtype):
    """The numbers, and those next to them, as a column of that type can hold them."""
    with np.errstate(over="ignore"):
        exact = np.array(numbers, dtype=dtype)
    low, high = dtype(-np.inf), dtype(np.inf)
    return np.concatenate([exact, np.nextafter(exact, low), np.nextafter(exact, high)]).tolist()


def special_values(kind, thresholds):
    """Values on and next to thresholds, extreme, missing and unseen ones."""
    if kind == "float64":
        return MISSING + EXTREMES + neighbours([0.0, *thresholds], np.float64)
    if kind == "float32":
        return MISSING + neighbours([*EXTREMES, *thresholds], np.float32)
    if kind == "int64":
        whole = [math.floor(t) + step for t in thresholds for step in (-1, 0, 1)]
        return [*whole, 0, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
    if kind == "text":
        return [None, "new", "IT'S", "it's ", "0", *WORDS]
    return [None, -1, 77, *range(6)] if kind == "grade" else [None, True, False]


def hard_rows(rng, model, kinds, X, n_rows=N_ROWS):
    """Rows half of whose values are special; many others are on the line of an oblique cut."""
    thresholds = thresholds_of(model)
    columns = {}
    for number, (name, kind) in enumerate(kinds.items()):
        special = special_values(kind, thresholds.get(number, []))
        usual = X[name].astype(object).where(X[name].notna(), None).tolist()
        is_special = rng.random(n_rows) < 0.5
        first, second = rng.integers(len(special), size=n_rows), rng.integers(len(X), size=n_rows)
        columns[name] = [
            special[i] if chosen else usual[j]
            for i, j, chosen in zip(first.tolist(), second.tolist(), is_special, strict=True)
        ]
    put_on_cuts(rng, model, list(kinds.items()), columns)
    return columns


def put_on_cuts(rng, model, kinds, columns):
    """Move some rows onto the lines of oblique cuts, as near as numbers allow."""
    tree, n_rows = model.tree_, len(next(iter(columns.values())))
    for node in np.flatnonzero(tree.second_feature >= 0).tolist():
        (first, kind), (second, other) = (kinds[feature] for feature in tree.features_of(node))
        if kind != "float64" or other not in ("float64", "float32", "int64"):
            continue
        for cut in range(tree.cuts(node).start, tree.cuts(node).stop):
            if tree.cut_a[cut] and tree.cut_b[cut]:
                for row in rng.integers(n_rows, size=30).tolist():
                    v = columns[second][row]
                    if v is not None and abs(v) < 1e9:
                        u = float(tree.cut_threshold[cut]) - float(tree.cut_b[cut]) * v
                        columns[first][row] = math.nextafter(u, rng.choice([-9.0, u, 9.0]))


CATEGORIES = {TEXT: "text", GRADE: "grade", FLAG: "bool"}
NUMBERS = {NUMBER: "float64", "b": "float64", FLOAT32: "float32"}
PAIRS = {"pairs": 10, "pair_penalty": 0.0, "max_depth": 4, "min_samples_leaf": 5}

SPECS = {
    "two branches, text": (
        ShapeTreeClassifier,
        {"max_branches": 2, "max_depth": 6, "refine": None},
        {"labels": WORDS[:6]},
    ),
    "three branches, pairs, refined": (
        ShapeTreeClassifier,
        {"max_branches": 3, **PAIRS},
        {"labels": [-5, 0, 7]},
    ),
    "five branches, pairs, bools": (
        ShapeTreeClassifier,
        {"max_branches": 5, "leaf_penalty": 0.0, "refine": None, **PAIRS},
        {"labels": [False, True]},
    ),
    "pairs of categories": (
        ShapeTreeClassifier,
        {"max_branches": 4, **PAIRS, "pairs": 3},
        {"labels": [-1.0, 0.0, 2.0], "kinds": CATEGORIES},
    ),
    "pairs of numbers": (
        ShapeTreeRegressor,
        {"max_branches": 3, "refine": None, **PAIRS, "pairs": 3},
        {"kinds": NUMBERS},
    ),
    "numbers, refined": (ShapeTreeRegressor, {"max_branches": 4, **PAIRS}, {}),
    "medians, many segments": (
        ShapeTreeRegressor,
        {
            "max_branches": 5,
            "max_parts": None,
            "criterion": "absolute_error",
            "refine": None,
            "segment_penalty": 0.0,
            "leaf_penalty": 0.0,
        },
        {},
    ),
    "unlimited depth": (
        ShapeTreeRegressor,
        {"max_branches": 2, "max_depth": None, "refine": None, "teacher": None},
        {},
    ),
    "two classifications": (
        ShapeTreeClassifier,
        {"max_branches": 3, **PAIRS, "refine": None},
        {"labels": ["no", "yes", "it's"], "n_targets": 2},
    ),
    "two numbers": (
        ShapeTreeRegressor,
        {"max_branches": 3, "refine": None},
        {"n_targets": 2},
    ),
    "one leaf": (ShapeTreeClassifier, {"min_samples_leaf": N_TRAIN}, {"labels": ["a", "b"]}),
}


@cache
def case(name):
    """A case by its name in SPECS."""
    kind, params, options = SPECS[name]
    model, X = fitted(kind, params, **options)
    kinds = options.get("kinds", KINDS)
    columns = hard_rows(np.random.default_rng(1), model, kinds, X)
    return Case(model, kinds, columns)


# Random trees

RANDOM_KINDS = {"u": "float64", "v": "float64", "colour": "text", "shade": "text"}
RANDOM_CATEGORIES = {"colour": ["blue", "green", "red"], "shade": ["dark", "deep", "light", "pale"]}
ODD_NUMBERS = [*MISSING, *EXTREMES, 1e-24, -1e-24, 1e-300, 3e307, -3e307, 2.0**969, -(2.0**1000)]


@cache
def small_model():
    """A model whose tree is there to be replaced, and its table."""
    X = pd.DataFrame(
        {
            "u": np.arange(12.0),
            "v": np.arange(12.0) % 5,
            "colour": np.resize(RANDOM_CATEGORIES["colour"], 12),
            "shade": np.resize(RANDOM_CATEGORIES["shade"], 12),
        }
    )
    return ShapeTreeRegressor(max_depth=1, n_threads=1).fit(X, np.arange(12.0)), X


def chain(depth):
    """A model whose nodes each send the values up to their own number to a leaf."""
    n = 2 * depth + 1
    internal = np.append(np.arange(n - 1) % 2 == 0, False)
    first_child = np.where(internal, np.arange(n) + 1, -1)
    uppers = np.stack([np.arange(depth), np.full(depth, np.inf)], axis=1).ravel()
    starts = np.append(0, np.cumsum(2 * internal))
    model = ShapeTreeRegressor(n_threads=1).fit(pd.DataFrame({"x0": [0.0, 1.0]}), [0.0, 1.0])
    tree = TreeArrays(
        parent=np.append(-1, np.repeat(np.flatnonzero(internal), 2)),
        depth=(np.arange(n) + 1) // 2,
        first_child=first_child,
        n_branches=2 * internal,
        feature=internal - 1,
        second_feature=np.full(n, -1),
        missing_branch=internal * 1 - 1,
        saw_missing=np.zeros(n, dtype=bool),
        piece_start=starts,
        piece_upper=uppers,
        piece_branch=np.tile([0, 1], depth),
        cut_start=np.zeros(n + 1),
        **dict.fromkeys(("cut_a", "cut_b", "cut_threshold", "cut_low", "cut_high"), ()),
        position_start=np.zeros(2 * n + 1),
        position=(),
        n_node_samples=np.ones(n),
        weighted_n_node_samples=np.ones(n),
        impurity=np.zeros(n),
        value=np.arange(n)[:, None, None],
    )
    set_tree(model, tree)
    columns = {"x0": [None, *np.arange(-1, depth + 1, 0.5).tolist()]}
    return Case(model, {"x0": "float64"}, columns)


def staircase(n_cuts):
    """A model of one pair, whose cuts of x and y take turns; each leaves one step of the stairs."""
    steps = np.arange(n_cuts)
    model = ShapeTreeRegressor(n_threads=1, pairs=[(0, 1)]).fit(
        pd.DataFrame({"x": [0.0, n_cuts], "y": [0.0, n_cuts]}), [0.0, 1.0]
    )
    tree = TreeArrays(
        parent=[-1, 0, 0],
        depth=[0, 1, 1],
        first_child=[1, -1, -1],
        n_branches=[2, 0, 0],
        feature=[0, -1, -1],
        second_feature=[1, -1, -1],
        missing_branch=[0, -1, -1],
        saw_missing=np.zeros(3, dtype=bool),
        piece_start=[0, n_cuts + 1, n_cuts + 1, n_cuts + 1],
        piece_upper=np.full(n_cuts + 1, np.nan),
        piece_branch=np.arange(n_cuts + 1) % 2,
        cut_start=[0, n_cuts, n_cuts, n_cuts],
        cut_a=1.0 - steps % 2,
        cut_b=steps % 2,
        cut_threshold=steps,
        cut_low=-1 - steps,
        cut_high=np.append(steps[1:], -1 - n_cuts),
        position_start=np.zeros(7),
        position=(),
        n_node_samples=np.ones(3),
        weighted_n_node_samples=np.ones(3),
        impurity=np.zeros(3),
        value=np.arange(3)[:, None, None],
    )
    set_tree(model, tree)
    rng = np.random.default_rng(0)
    columns = {name: [None, *rng.uniform(-2, n_cuts, 300).tolist()] for name in ("x", "y")}
    return Case(model, dict.fromkeys(("x", "y"), "float64"), columns)


@st.composite
def random_cases(draw, n_rows=400):
    """Random trees, whose cuts are none that fitted trees never have, and random rows."""
    tree = draw(trees(n_values=1))
    model = ShapeTreeRegressor(n_threads=1)
    small, X = small_model()
    model.__dict__.update(small.__dict__)
    owner = np.repeat(np.arange(tree.node_count), np.diff(tree.cut_start))
    # Features 2 and 3 are categorical: they are cut alone. Some cuts are beyond all numbers.
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_alone = (tree.second_feature[owner] >= 2) | ((tree.cut_a == 0) & (tree.cut_b == 0))
    is_alone |= rng.random(len(owner)) < 0.3
    is_extreme = rng.random(len(owner)) < 0.2
    tree = replace(
        tree,
        cut_b=np.where(is_alone, 1 - tree.cut_a, tree.cut_b),
        cut_threshold=np.where(is_extreme, GREATEST, tree.cut_threshold),
    )
    set_tree(model, tree, X)
    numbers = ODD_NUMBERS + np.arange(-3.5, 3.6, 0.125).tolist()
    columns = {
        name: [numbers[i] for i in rng.integers(len(numbers), size=n_rows)] for name in ("u", "v")
    }
    for name, categories in RANDOM_CATEGORIES.items():
        values = [*categories, "new", None]
        columns[name] = [values[i] for i in rng.integers(len(values), size=n_rows)]
    return Case(model, RANDOM_KINDS, columns)
