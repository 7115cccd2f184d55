"""Random data and parameters, and what must be true of every tree that comes of them.

`make attack` tries thousands; ATTACK=1234:1235 pytest tests/test_attack.py tries one of them.
"""

import os
import pickle

import numpy as np
import pytest
from data import counts_of, make_tree
from numpy.testing import assert_allclose, assert_array_equal

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree.export import export_python, export_text

FIRST, _, LAST = os.environ.get("ATTACK", "0:60").partition(":")
LARGEST = np.finfo(float).max
ODD = [np.inf, -np.inf, LARGEST, -LARGEST, 1e300, -1e300, 5e-324, -5e-324, 0.0, -0.0]


class Attack:
    """Data, weights and parameters from a seed."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng([seed, 17])
        self.n, self.n_features = int(rng.integers(4, 150)), int(rng.integers(1, 5))
        self.X, self.categorical = self.table()
        self.n_outputs = int(rng.choice([1, 1, 1, 2]))
        self.has_classes = bool(rng.random() < 0.5)
        self.y = self.targets()
        self.weights = self.some_weights()
        self.params = self.parameters()

    def table(self):
        rng, shape = self.rng, (self.n, self.n_features)
        kinds = rng.choice(["normal", "few", "whole", "odd", "codes"], self.n_features)
        X = rng.normal(size=shape)
        for j, kind in enumerate(kinds):
            if kind == "few":
                X[:, j] = np.round(X[:, j], 1)
            elif kind in ("whole", "codes"):
                X[:, j] = rng.integers(0, rng.choice([2, 5, 30]), self.n)
            elif kind == "odd":
                is_odd = rng.random(self.n) < 0.5
                X[is_odd, j] = rng.choice(ODD, is_odd.sum())
        if rng.random() < 0.5:
            X[rng.random(shape) < 0.15] = np.nan
        return X, np.flatnonzero(kinds == "codes").tolist()

    def targets(self):
        rng = self.rng
        seen = np.nan_to_num(np.clip(self.X, -9, 9))
        score = np.sin(2 * seen[:, :1]) + seen[:, -1:] % 3 * (seen[:, :1] > 0)
        score = score + rng.normal(scale=0.3, size=(self.n, self.n_outputs))
        if self.has_classes:
            n_classes = rng.integers(1, 7)
            bounds = np.quantile(score, np.arange(1, n_classes) / n_classes)
            labels = np.searchsorted(bounds, score)
            return labels if self.n_outputs > 1 else np.array(list("abcdefg"))[labels[:, 0]]
        score = np.round(score, rng.choice([0, 2, 9])) * rng.choice([1, 1, 1, 1e-300, 1e-9, 1e150])
        if rng.random() < 0.1:
            score = np.where(rng.random(score.shape) < 0.5, 1e-9, score)
        return score if self.n_outputs > 1 else score[:, 0]

    def some_weights(self):
        rng, n = self.rng, self.n
        kind = rng.choice(["none", "whole", "shares", "equal", "wild"])
        weights = {
            "none": lambda: None,
            "whole": lambda: rng.integers(0, 4, n).astype(float),
            "shares": lambda: rng.random(n) * 10.0 ** rng.integers(-12, 13),
            "equal": lambda: np.full(n, rng.choice([1 / n, 0.1, 1e-12, 1e12])),
            "wild": lambda: 10.0 ** rng.uniform(-20, 20, n),
        }[kind]()
        if weights is not None and not weights.any():
            weights[0] = 1.0
        return weights

    def parameters(self):
        rng = self.rng

        def one_of(*values):
            return values[rng.integers(len(values))]

        names = ["gini", "entropy"] if self.has_classes else ["squared_error", "absolute_error"]
        return {
            "criterion": one_of(*names),
            "max_depth": one_of(1, 3, 3, None),
            "max_branches": one_of(2, 3, 3, 8),
            "pairs": one_of(0, 0, "auto", "all"),
            "pair_penalty": one_of("auto", 0.0),
            "leaf_penalty": one_of("auto", 0.0),
            "segment_penalty": one_of("auto", 0.0, 1.0),
            "refine": one_of("tao", "tao", None),
            "refine_penalty": one_of("auto", 0.0, 1.0),
            "inner_tree": one_of("cart", "cart", "optimal"),
            "shrinkage": one_of(0.0, 0.0, 10.0),
            "max_bins": one_of(None, 5, 255),
            "max_leaf_nodes": one_of(None, None, 4),
            "lookahead": one_of(1, 1, 3),
            "categorical_features": self.categorical or None,
            "n_threads": 1,
            "random_state": 0,
        }

    def fit(self, order=None, weights="own", **params):
        """A tree of the rows in some order, which may repeat them."""
        kind = ShapeTreeClassifier if self.has_classes else ShapeTreeRegressor
        order = np.arange(self.n) if order is None else order
        if weights == "own":
            weights = None if self.weights is None else self.weights[order]
        return make_tree(kind, **self.params | params).fit(self.X[order], self.y[order], weights)

    @property
    def evidence(self):
        return np.ones(self.n) if self.weights is None else self.weights

    def columns(self):
        return self.y.reshape(self.n, self.n_outputs)


def outcomes(model, X):
    if isinstance(model, ShapeTreeRegressor):
        return [model.predict(X)]
    shares = model.predict_proba(X)
    return shares if model.n_outputs_ > 1 else [shares]


def assert_same(one, other, X):
    assert one.tree_.node_count == other.tree_.node_count
    assert_array_equal(one.apply(X), other.apply(X))
    for mine, theirs in zip(outcomes(one, X), outcomes(other, X), strict=True):
        assert_array_equal(mine, theirs)


def assert_leaves_say_what_their_rows_are(attack, model):
    leaves, tree = model.apply(attack.X), model.tree_
    counted = attack.evidence > 0
    for leaf in np.flatnonzero(tree.is_leaf):
        rows = counted & (leaves == leaf)
        assert tree.n_node_samples[leaf] == counts_of(attack.evidence)[rows].sum() > 0
        weights = attack.evidence[rows]
        # The least weights are rounded up beside far greater ones.
        least = attack.evidence.max() * 2.0**-44
        assert_allclose(tree.weighted_n_node_samples[leaf], weights.sum(), rtol=1e-9, atol=least)
        is_told = weights.max() > 2.0**20 * least
        for output, column in enumerate(attack.columns().T):
            value, y = tree.value[leaf, output], column[rows]
            if attack.has_classes:
                known = model.classes_ if attack.n_outputs == 1 else model.classes_[output]
                expected = [weights[y == label].sum() / weights.sum() for label in known]
                if is_told:
                    assert_allclose(value[: len(known)], expected, atol=1e-6)
            else:
                assert y.min() <= value[0] <= y.max()
                if attack.params["criterion"] == "squared_error" and is_told:
                    reach = np.abs(y).max()
                    mean = np.average(y / (reach or 1.0), weights=weights / weights.max())
                    assert_allclose(value[0] / (reach or 1.0), mean, rtol=1e-6, atol=1e-6)


def assert_outcomes_hold(attack, model):
    shares = outcomes(model, attack.X)
    assert all(np.isfinite(each).all() for each in shares)
    if attack.has_classes:
        labels = model.predict(attack.X).reshape(attack.n, -1)
        for output, each in enumerate(shares):
            assert_allclose(each.sum(axis=1), 1.0)
            assert each.min() >= 0
            known = model.classes_ if attack.n_outputs == 1 else model.classes_[output]
            assert_array_equal(labels[:, output], known[each.argmax(axis=1)])
    importances = model.feature_importances_
    assert importances.min() >= 0
    assert importances.sum() == pytest.approx(1) or not importances.any()
    history = getattr(model, "refinement_history_", None)
    if history is not None:
        assert (np.diff(history) <= 1e-9 * np.abs(history[:-1])).all()


def assert_paths_hold(attack, model):
    tree, X = model.tree_, attack.X
    passed = model.decision_path(X).toarray().astype(bool)
    assert_array_equal(passed[:, tree.is_leaf].argmax(axis=1), _rank(tree, model.apply(X)))
    assert_array_equal(counts_of(attack.evidence) @ passed, tree.n_node_samples)
    for node in np.flatnonzero(~tree.is_leaf):
        below = passed[:, list(tree.children(node))]
        assert_array_equal(below.sum(axis=1), passed[:, node])


def _rank(tree, leaves):
    return np.searchsorted(np.flatnonzero(tree.is_leaf), leaves)


def assert_words_hold(attack, model):
    """Rules, explanations and source code send rows where the tree sends them."""
    names = [f"x{j}" for j in range(attack.n_features)]
    few = attack.rng.choice(attack.n, min(attack.n, 12), replace=False)
    rows = [dict(zip(names, values, strict=True)) for values in attack.X[few].tolist()]
    leaves, rules = model.apply(attack.X[few]), model.rules()
    module = {}
    exec(export_python(model), module)
    predicted = model.predict(attack.X[few]).tolist()
    for row, leaf, expected, why in zip(
        rows, leaves, predicted, model.explain(attack.X[few]), strict=True
    ):
        assert [rule.leaf for rule in rules if rule.holds(row)] == [leaf]
        assert why.leaf == leaf
        assert all(condition.holds(row) for condition in why.conditions)
        found = module["predict"](row)
        assert (list(found) if isinstance(found, tuple) else found) == expected
    # A single leaf is followed by the reason.
    n_lines = model.tree_.node_count + (model.why_single_leaf_ is not None)
    assert len(export_text(model).splitlines()) == n_lines


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(int(FIRST), int(LAST)))
def test_attack(seed, threads_at_once):
    attack = Attack(seed)
    model = attack.fit()
    if not attack.params["shrinkage"]:
        assert_leaves_say_what_their_rows_are(attack, model)
    assert_outcomes_hold(attack, model)
    assert_paths_hold(attack, model)
    assert_words_hold(attack, model)
    assert_same(model, pickle.loads(pickle.dumps(model)), attack.X)
    text = model.to_json()
    again = type(model).from_json(text)
    assert_same(model, again, attack.X)
    assert again.to_json() == text
    assert_same(model, attack.fit(n_threads=2), attack.X)
    assert_same(model, attack.fit(order=attack.rng.permutation(attack.n)), attack.X)
    weights = attack.weights
    if weights is not None and weights.max() <= 9 and (weights == np.rint(weights)).all():
        repeats = np.repeat(np.arange(attack.n), weights.astype(int))
        pairs_of_columns = zip(attack.columns()[repeats].T, attack.columns().T, strict=True)
        if not attack.has_classes or all(set(a) == set(b) for a, b in pairs_of_columns):
            assert_same(model, attack.fit(order=repeats, weights=None), attack.X)
