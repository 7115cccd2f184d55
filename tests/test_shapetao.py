"""The paper's step of refinement and its naive twin: copies of rows, and a CART for each feature.

The paper copies a row to each of its valid branches, those that predict it right, fits a CART to
the copies, and counts a row as wrong that it sends to a branch that is not valid.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from chance import examples
from data import assert_same_tree
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeClassifier

from shapetree import (
    SearchOptions,
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    from_batches,
    recipes,
    refine_tree,
)
from shapetree._core.reduced import fill_gaps

SEEDS = st.integers(0, 2**32 - 1)


def estimator(name, **params):
    return recipes.estimator(name, random_state=0, **params)


@dataclass
class Node:
    """A node of the naive twin: the branch of each distinct value of a feature."""

    feature: int = -1
    branches: np.ndarray = None
    children: list = field(default_factory=list)
    label: int = 0

    def branch_of(self, bins):
        return self.branches[bins[:, self.feature]]

    def predict(self, bins):
        if not self.children:
            return np.full(len(bins), self.label)
        each = np.array([child.predict(bins) for child in self.children])
        return each[self.branch_of(bins), np.arange(len(bins))]

    def become(self, other):
        self.feature, self.branches = other.feature, other.branches
        self.children, self.label = other.children, other.label


class NaiveSweep:
    """One sweep of TAO by the paper's step, from the deepest nodes to the root."""

    def __init__(self, bins, y, weights, max_leaf_nodes, criterion, price):
        self.bins, self.y, self.weights = bins, y, weights
        self.cart = {"max_leaf_nodes": max_leaf_nodes, "criterion": criterion}
        self.price = price

    def run(self, root):
        depth = self.depth(root)
        for level in range(depth - 1, -1, -1):
            every = np.arange(len(self.y))
            for node, rows in list(self.at(root, every, level)):
                if node.children:
                    self.step(node, rows)
            self.tidy(root, every)

    def depth(self, node):
        return 1 + max(map(self.depth, node.children)) if node.children else 0

    def at(self, node, rows, level):
        if level == 0:
            yield node, rows
            return
        for branch, child in enumerate(node.children):
            yield from self.at(child, rows[node.branch_of(self.bins[rows]) == branch], level - 1)

    def tidy(self, node, rows):
        """Refit leaves, and drop branches that no row takes."""
        if not node.children:
            node.label = int(np.bincount(self.y[rows], self.weights[rows]).argmax())
            return
        taken = node.branch_of(self.bins[rows])
        parts = [rows[taken == branch] for branch in range(len(node.children))]
        for child, part in zip(node.children, parts, strict=True):
            if len(part):
                self.tidy(child, part)
        kept = [branch for branch, part in enumerate(parts) if len(part)]
        if len(kept) == 1:
            node.become(node.children[kept[0]])
        elif len(kept) < len(parts):
            largest = max(range(len(kept)), key=lambda place: len(parts[kept[place]]))
            number = np.full(len(parts), largest)
            number[kept] = range(len(kept))
            node.branches = number[node.branches]
            node.children = [node.children[branch] for branch in kept]

    def n_leaves(self, node):
        return sum(map(self.n_leaves, node.children)) if node.children else 1

    def step(self, node, rows):
        bins, weights = self.bins[rows], self.weights[rows]
        is_valid = np.array([child.predict(bins) for child in node.children]) == self.y[rows]
        is_valid = is_valid.T

        def cost(chosen):
            wrong = weights[~is_valid[np.arange(len(rows)), chosen]].sum()
            used = [self.n_leaves(node.children[branch]) for branch in np.unique(chosen)]
            return wrong + self.price * (sum(used) - 1)

        present = cost(node.branch_of(bins))
        alone = [cost(np.full(len(rows), branch)) for branch in range(len(node.children))]
        to_beat = min(present, *alone) - 1e-6
        cares = is_valid.any(axis=1) & ~is_valid.all(axis=1)
        found = []
        # A node is passed over if all branches together cost too much, even with no row astray.
        least = weights[~is_valid.any(axis=1)].sum() + self.price * (self.n_leaves(node) - 1)
        for feature in range(bins.shape[1] if least < to_beat else 0):
            own = self.shape(bins[cares, feature], is_valid[cares], weights[cares], feature)
            if own is not None:
                found.append((cost(own[bins[:, feature]]), feature, own))
        costs = sorted(each[0] for each in found)
        # Which of equally good features comes first is not the paper's to say.
        assume(len(costs) < 2 or costs[1] - costs[0] > 1e-6 or costs[0] >= to_beat)
        if costs and costs[0] < to_beat:
            _, node.feature, node.branches = min(found, key=lambda each: each[0])
        elif min(alone) <= present + 1e-6:
            assume(sum(abs(each - min(alone)) < 1e-6 for each in alone) == 1)
            node.become(node.children[int(np.argmin(alone))])

    def shape(self, values, is_valid, weights, feature):
        if len(values) == 0:
            return None
        places, branches = np.nonzero(is_valid)
        cart = DecisionTreeClassifier(**self.cart, random_state=0)
        cart.fit(values[places, None], branches, weights[places])
        n_bins = self.bins[:, feature].max() + 1
        of_bin = np.full(n_bins + 1, 255, dtype=np.uint8)
        known = np.unique(values)
        # The commonest copies of each leaf; of equally common branches, the first.
        leaf = cart.apply(values[:, None])
        votes = {each: weights[leaf == each] @ is_valid[leaf == each] for each in np.unique(leaf)}
        of_leaf = {each: int(np.round(own, 9).argmax()) for each, own in votes.items()}
        of_bin[known] = [of_leaf[each] for each in cart.apply(known[:, None])]
        fill_gaps(of_bin, False)
        return of_bin[:-1]


def naive_of(tree, node=0, bins=None):
    """A fitted tree over bins that are the whole numbers from 0 on."""
    if tree.is_leaf[node]:
        return Node(label=int(tree.value[node].argmax()))
    pieces = tree.pieces(node)
    feature = int(tree.feature[node])
    place = np.searchsorted(tree.piece_upper[pieces], np.arange(bins[feature]))
    children = [naive_of(tree, child, bins) for child in tree.children(node)]
    return Node(feature, tree.piece_branch[pieces][place], children)


def noisy(seed, n_rows, n_classes):
    rng = np.random.default_rng(seed)
    bins = rng.integers(0, 12, (n_rows, 3))
    bins = np.column_stack([np.unique(column, return_inverse=True)[1] for column in bins.T])
    clean = (bins[:, 0] % 4 // 2 + 2 * (bins[:, 1] > 5) + (bins[:, 2] == 3)) % n_classes
    y = np.where(rng.random(n_rows) < 0.25, rng.integers(0, n_classes, n_rows), clean)
    # No two sets of rows weigh the same, so that there are no ties.
    return bins, y, 1.0 + rng.random(n_rows)


@pytest.mark.parametrize("n_branches", [2, 3])
@pytest.mark.parametrize("max_depth", [1, 2, 3])
@examples(20)
@given(
    SEEDS,
    st.integers(20, 150),
    st.integers(2, 4),
    st.sampled_from([2, 4, 32]),
    st.sampled_from(["gini", "entropy"]),
    st.sampled_from([0.0, 1.5]),
)
def test_a_sweep_is_that_of_the_naive_twin(
    n_branches, max_depth, seed, n_rows, n_classes, max_leaf_nodes, criterion, price
):
    bins, y, weights = noisy(seed, n_rows, n_classes)
    assume(len(np.unique(y)) == n_classes)
    name = "SGT-T" if n_branches == 2 else "SGT3-T"
    params = {
        "max_depth": max_depth,
        "search__inner_max_leaf_nodes": max_leaf_nodes,
        "search__criterion": criterion,
        "search__refine_penalty": price,
    }
    grown = estimator(name, paper=True, refine=None, **params).fit(bins, y, weights)
    refined = estimator(name, paper=True, search__refine_iter=1, **params).fit(bins, y, weights)
    weights = weights * weights.sum() / (weights**2).sum()  # shares of the evidence
    twin = naive_of(grown.tree_, bins=bins.max(axis=0) + 1)
    NaiveSweep(bins, y, weights, max_leaf_nodes, criterion, price).run(twin)
    np.testing.assert_array_equal(refined.predict(bins), twin.predict(bins))
    wrong = weights[twin.predict(bins) != y].sum()
    leaves = sum(1 for _ in leaves_of(twin))
    assert refined.get_n_leaves() == leaves
    assert refined.refinement_history_[-1] == pytest.approx(wrong + price * (leaves - 1), rel=1e-5)


def leaves_of(node):
    if not node.children:
        yield node
    for child in node.children:
        yield from leaves_of(child)


def test_the_paper_has_other_steps_than_the_exact_one():
    bins, y, _ = noisy(0, 400, 3)
    paper = estimator("SGT3-T", paper=True, max_depth=3, search__inner_max_leaf_nodes=4)
    exact = paper.fit(bins, y).refinement_history_
    step = paper.set_params(search__refine_step="exact").fit(bins, y).refinement_history_
    assert exact[0] == step[0]
    assert step[-1] < exact[-1] < exact[0]


@pytest.mark.parametrize("name", ["SGT-T", "SGT3-T", "S2GT-T", "S2GT3-T"])
def test_the_loss_never_rises_whatever_the_columns(name):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(
        {
            "kind": pd.Categorical(rng.choice(list("abcdef"), 300)),
            "size": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
            "x": rng.normal(size=300),
            "z": rng.normal(size=300),
        }
    )
    y = (X["kind"].isin(["a", "d"]) ^ (X["x"] * X["z"] > 0) ^ (rng.random(300) < 0.25)).astype(int)
    params = {
        "max_depth": 3,
        "search__inner_max_leaf_nodes": 4,
        "search__inner_min_samples_leaf": 3,
    }
    model = estimator(name, paper=True, **params).fit(X, y)
    history = model.refinement_history_
    assert (np.diff(history) <= 0).all()
    assert history[-1] < history[0]
    assert history[-1] == (model.predict(X) != y).sum()
    again = estimator(name, paper=True, n_threads=2, **params)
    assert_same_tree(model, again.fit(X, y))


@pytest.mark.filterwarnings("ignore:pairs=5 is more than")
def test_repeated_rows_are_weights():
    bins, y, _ = noisy(2, 120, 3)
    times = np.random.default_rng(0).integers(1, 4, len(y))
    paper = estimator("S2GT3-T", paper=True, max_depth=2, search__inner_min_samples_leaf=4)
    weighted = paper.fit(bins, y, times).predict_proba(bins)
    repeated = paper.fit(np.repeat(bins, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted, repeated.predict_proba(bins))


@pytest.mark.parametrize("name", ["SGT3-T", "S2GT3-T"])
def test_rows_in_batches_take_the_same_steps(name):
    rng = np.random.default_rng(4)
    X = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")).round(2)
    X["kind"] = pd.Categorical(rng.choice(list("uvw"), 300))
    y = (X["a"] * X["b"] > 0).astype(int) + (X["kind"] == "u") * (rng.random(300) < 0.7)
    table = X.assign(y=y)
    paper = estimator(name, paper=True, max_depth=2, search__inner_max_leaf_nodes=4)
    whole = paper.fit(X, table["y"]).to_json()
    batches = from_batches([table[:90], table[90:110], table[110:]], target="y")
    assert paper.fit(batches).to_json() == whole


def test_pairs_are_those_that_were_considered_when_the_node_grew():
    rng = np.random.default_rng(0)
    X = rng.random((500, 6))
    y = ((X[:, 0] + X[:, 1] > 1) ^ (X[:, 2] > X[:, 3]) ^ (rng.random(500) < 0.2)).astype(int)
    paper = estimator("S2GT-T", paper=True, max_depth=1, pairs=[(0, 1)]).fit(X, y).tree_
    used = set(zip(paper.feature.tolist(), paper.second_feature.tolist(), strict=True))
    assert {pair for pair in used if pair[1] >= 0} <= {(0, 1)}


def test_fitted_trees_and_numbers_can_be_refined_so_too():
    bins, y, _ = noisy(3, 300, 2)
    exact = ShapeTreeClassifier(objective="error", max_parts=None, resamples=0).fit(bins, y)
    exact.set_params(search=SearchOptions(refine_step="inner_tree"))
    assert (refine_tree(exact, bins, y).predict(bins) == y).mean() > 0.5
    numbers = estimator("SGT3-T", task="regression", paper=True, max_depth=2)
    history = numbers.fit(bins, bins[:, 0] % 3 + 0.1 * y).refinement_history_
    assert (np.diff(history) <= 1e-9).all()


@pytest.mark.parametrize("kind", [ShapeTreeClassifier, ShapeTreeRegressor])
def test_limits_of_parts_are_not_the_papers(kind):
    search = SearchOptions(refine_step="inner_tree")
    with pytest.raises(ValueError, match=r"search\.refine_step.*max_parts=None; got max_parts=6"):
        kind(search=search).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="'exact'"):
        kind(search=SearchOptions(refine_step="best")).fit([[0.0], [1.0]], [0, 1])
