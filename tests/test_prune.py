"""Smaller trees: the best at their price, or the same predictions with fewer leaves."""

from dataclasses import replace
from fractions import Fraction
from itertools import chain, pairwise, product

import numpy as np
import pytest
from chance import examples
from data import (
    UNRESTRAINED,
    arrays_of,
    data_for,
    distinct_weights,
    make_tree,
    noisy_classes,
    noisy_numbers,
    rows_of_nodes,
    set_tree,
    tree_for,
)
from hypothesis import given
from hypothesis import strategies as st
from naive import path_of_row, trees
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._core.criterion import NodeStatistics
from shapetree.grow._nodes import TreeNode, tree_of
from shapetree.refine._prune import prune_by_cost, prune_nodes, pruning_path, simplify
from shapetree.refine._shrink import Shrinkage, shrink
from shapetree.tree._shape import PairShape, ShapeFunction

seeds = st.integers(0, 2**32 - 1)
VALUES = [np.nan, -np.inf, np.inf, 0.0, 1e300, -1e300, *np.arange(-3, 3.1, 0.25)]


def random_rows(rng, n_rows):
    """Rows for the features of `trees`: two numbers, and categories of which some are unknown."""
    numbers = rng.choice(VALUES, (n_rows, 2)).tolist()
    codes = np.stack([rng.integers(-1, 4, n_rows), rng.integers(-1, 5, n_rows)], axis=1).tolist()
    return [(*two, *others) for two, others in zip(numbers, codes, strict=True)]


def assert_same_arrays(one, other):
    for name, array in arrays_of(one).items():
        assert_array_equal(array, getattr(other, name), err_msg=name, strict=True)


# Pruning by cost


@st.composite
def trees_of_exact_costs(draw, max_nodes=16):
    """Trees whose costs are sums of few powers of two, so that ties are ties in floats, too."""
    tree = draw(trees(max_nodes=max_nodes))
    rng = np.random.default_rng(draw(seeds))
    weight = rng.integers(1, 5, tree.node_count) / 8
    weight[0] = 2.0
    impurity = rng.integers(0, 5, tree.node_count) / 4
    return replace(tree, weighted_n_node_samples=weight, impurity=impurity)


def cost_of(tree, leaves):
    """Impurity of some nodes as leaves, exactly."""
    weight, impurity = tree.weighted_n_node_samples, tree.impurity
    masses = (Fraction(weight[leaf]) * Fraction(impurity[leaf]) for leaf in leaves)
    return sum(masses, Fraction(0)) / Fraction(weight[0])


def leaves_below(tree, node, cut=()):
    """Leaves of the subtree of a node, if some nodes are cut."""
    if tree.is_leaf[node] or node in cut:
        return [node]
    return [leaf for child in tree.children(node) for leaf in leaves_below(tree, child, cut)]


def naive_path(tree):
    """Cut the weakest link as long as there is one, and count everything anew after each cut."""
    cut, alphas, impurities = set(), [Fraction(0)], [cost_of(tree, leaves_below(tree, 0))]
    while 0 not in cut:
        links = {}
        for node in np.flatnonzero(~tree.is_leaf).tolist():
            if not cut & set(tree.path_to(node)):
                leaves = leaves_below(tree, node, cut)
                gain = cost_of(tree, [node]) - cost_of(tree, leaves)
                links[node] = gain / (len(leaves) - 1)
        if not links:
            break
        weakest = min(links, key=links.get)
        cut.add(weakest)
        alphas.append(max(links[weakest], alphas[-1]))
        impurities.append(cost_of(tree, leaves_below(tree, 0, cut)))
    return alphas, impurities


def all_prunings(tree, node=0):
    """Leaves of every subtree that keeps a node."""
    if tree.is_leaf[node]:
        return [[node]]
    parts = product(*(all_prunings(tree, child) for child in tree.children(node)))
    return [[node], *(list(chain(*part)) for part in parts)]


def as_shape_tree(cart):
    """A tree of scikit-learn's, as `TreeArrays`."""
    theirs = cart.tree_
    nodes = [
        TreeNode(NodeStatistics(int(rows), float(weight), float(impurity), value))
        for rows, weight, impurity, value in zip(
            theirs.n_node_samples,
            theirs.weighted_n_node_samples,
            theirs.impurity,
            theirs.value,
            strict=True,
        )
    ]
    for number in np.flatnonzero(theirs.children_left >= 0):
        upper = np.array([theirs.threshold[number], np.inf])
        feature = int(theirs.feature[number])
        children = theirs.children_left[number], theirs.children_right[number]
        nodes[number].shape = ShapeFunction(feature, 2, upper, np.array([0, 1]), 0, False)
        nodes[number].children = [nodes[child] for child in children]
    return tree_of(nodes[0])


@given(trees_of_exact_costs())
def test_the_path_is_that_of_cutting_the_weakest_link_again_and_again(tree):
    alphas, impurities = naive_path(tree)
    path = pruning_path(tree)
    assert_allclose(path.ccp_alphas, np.array(alphas, dtype=float), rtol=1e-14, atol=1e-15)
    assert_allclose(path.impurities, np.array(impurities, dtype=float), rtol=1e-14, atol=1e-15)


@given(trees_of_exact_costs(), st.integers(1, 24).map(lambda n: n / 16))
def test_no_pruning_costs_less_and_of_equals_the_smallest_is_chosen(tree, alpha):
    costs = [
        (cost_of(tree, leaves) + Fraction(alpha) * len(leaves), len(leaves))
        for leaves in all_prunings(tree)
    ]
    pruned = prune_by_cost(tree, alpha)
    ours = cost_of(pruned, np.flatnonzero(pruned.is_leaf)) + Fraction(alpha) * pruned.n_leaves
    assert (ours, pruned.n_leaves) == min(costs)


@given(trees_of_exact_costs(), st.data())
def test_each_price_of_the_path_gives_its_tree(tree, data):
    path = pruning_path(tree)
    step = data.draw(st.integers(0, len(path.ccp_alphas) - 1))
    alpha = path.ccp_alphas[step]
    if alpha > 0:
        pruned = prune_by_cost(tree, alpha)
        last = np.flatnonzero(path.ccp_alphas == alpha)[-1]
        left = cost_of(pruned, np.flatnonzero(pruned.is_leaf))
        assert float(left) == pytest.approx(path.impurities[last], abs=1e-15)


@given(trees())
def test_prices_ascend_from_nothing(tree):
    path = pruning_path(tree)
    assert path.ccp_alphas[0] == 0
    assert np.all(np.diff(path.ccp_alphas) >= 0)
    assert path.impurities[-1] == pytest.approx(tree.impurity[0])


@given(trees())
def test_any_price_leaves_a_root_and_none_the_whole_tree(tree):
    assert prune_by_cost(tree, np.inf).node_count == 1
    assert prune_by_cost(tree, 0) is tree


@given(trees(), st.floats(1e-6, 2), st.floats(1e-6, 2))
def test_pruning_at_a_lower_price_first_makes_no_difference(tree, one, other):
    low, high = sorted([one, other])
    assert_same_arrays(prune_by_cost(prune_by_cost(tree, low), high), prune_by_cost(tree, high))


@pytest.mark.parametrize("alpha", [-1.0, -1e-300, np.nan])
@given(trees(max_nodes=4))
def test_other_prices_are_refused(alpha, tree):
    with pytest.raises(ValueError, match="ccp_alpha must be 0 or greater, got"):
        prune_by_cost(tree, alpha)


def cart_for(criterion, **params):
    """scikit-learn's estimator that knows the criterion."""
    is_class = criterion in ("gini", "entropy")
    kind = DecisionTreeClassifier if is_class else DecisionTreeRegressor
    return kind(criterion=criterion, random_state=0, **params)


def two_branches_for(criterion, **params):
    """A shape tree that is restrained to scikit-learn's splits."""
    restrained = {**UNRESTRAINED, "inner_max_leaf_nodes": 2, "max_branches": 2, **params}
    return tree_for(criterion, **restrained)


def prices_between(path):
    """Prices between those of a path that differ by more than rounding, and one beyond."""
    alphas = np.unique(path.ccp_alphas)
    apart = np.diff(alphas) > 1e-9 * alphas[-1]
    return [*((alphas[:-1] + alphas[1:]) / 2)[apart], 2 * alphas[-1] + 1]


@examples(20)
@given(st.sampled_from(["gini", "entropy", "squared_error"]), seeds)
def test_the_path_of_two_branches_is_that_of_scikit_learn(criterion, seed):
    rng = np.random.default_rng(seed)
    X, y = data_for(criterion, rng, n_rows=150, n_features=3)
    weights = distinct_weights(rng, len(X))
    # Leaves of one row would part numbers that are nearly the same, which only scikit-learn does.
    limits = {"min_samples_leaf": 3}
    ours = pruning_path(two_branches_for(criterion, **limits).fit(X, y, weights).tree_)
    theirs = cart_for(criterion, **limits).cost_complexity_pruning_path(X, y, weights)
    assert_allclose(ours.ccp_alphas, theirs.ccp_alphas, rtol=1e-8, atol=1e-12)
    assert_allclose(ours.impurities, theirs.impurities, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error"])
def test_a_tree_of_two_branches_is_pruned_as_by_scikit_learn(criterion):
    rng = np.random.default_rng(0)
    X, y = data_for(criterion, rng, n_rows=1000)
    weights = distinct_weights(rng, len(X))
    model = two_branches_for(criterion, min_samples_leaf=15)
    tree = model.fit(X, y, weights).tree_
    new_X = rng.uniform(-100, 1100, X.shape).astype(np.float32)
    n_leaves = []
    for alpha in prices_between(pruning_path(tree)):
        cart = cart_for(criterion, ccp_alpha=alpha, min_samples_leaf=15).fit(X, y, weights)
        set_tree(model, prune_by_cost(tree, alpha))
        assert model.tree_.n_leaves == cart.get_n_leaves()
        assert_allclose(model.predict(X), cart.predict(X), rtol=1e-12, atol=1e-12)
        # Thresholds are shorter than scikit-learn's, so that few new rows lie between the two.
        assert np.isclose(model.predict(new_X), cart.predict(new_X), rtol=1e-9).mean() > 0.95
        n_leaves.append(model.tree_.n_leaves)
    assert n_leaves == sorted(set(n_leaves), reverse=True)
    assert len(n_leaves) > 8
    assert n_leaves[-1] == 1


@pytest.mark.parametrize("limits", [{}, {"max_leaf_nodes": 20}, {"min_samples_leaf": 7}])
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "absolute_error"])
def test_trees_of_scikit_learn_are_pruned_as_by_itself_where_prices_tie_too(criterion, limits):
    X, y = data_for(criterion, np.random.default_rng(0), n_rows=200, n_values=40)
    y = np.round(2 * y)
    cart = cart_for(criterion, **limits)
    theirs = cart.cost_complexity_pruning_path(X, y)
    tree = as_shape_tree(cart.fit(X, y))
    ours = pruning_path(tree)
    for alpha in prices_between(theirs):
        left = [
            path.impurities[np.searchsorted(path.ccp_alphas, alpha) - 1] for path in (ours, theirs)
        ]
        assert left[0] == pytest.approx(left[1])
        pruned = prune_by_cost(tree, alpha)
        expected = cart_for(criterion, ccp_alpha=alpha, **limits).fit(X, y)
        assert pruned.n_leaves == expected.get_n_leaves()
        assert_allclose(np.sort(pruned.impurity), np.sort(expected.tree_.impurity))


@pytest.mark.parametrize("criterion", ["gini", "squared_error"])
def test_the_path_of_a_fitted_tree_of_many_branches_gains_ever_more(criterion):
    X, y = data_for(criterion, np.random.default_rng(0))
    model = tree_for(criterion, max_branches=4, leaf_penalty=0.0, segment_penalty=0.5)
    tree = model.fit(X, y).tree_
    assert tree.n_branches.max() > 2
    path = pruning_path(tree)
    alphas, impurities = naive_path(tree)
    assert_allclose(path.ccp_alphas, np.array(alphas, dtype=float), rtol=1e-9, atol=1e-14)
    assert_allclose(path.impurities, np.array(impurities, dtype=float), rtol=1e-9, atol=1e-14)
    assert np.all(np.diff(path.impurities) > 0)


# Pruning of chosen nodes


@given(trees(), st.data(), seeds)
def test_rows_stop_at_the_chosen_nodes(tree, data, seed):
    chosen = data.draw(st.lists(st.integers(0, tree.node_count - 1), max_size=4))
    pruned = prune_nodes(tree, chosen)
    for row in random_rows(np.random.default_rng(seed), 20):
        path = path_of_row(tree, row)
        stop = next((i for i, node in enumerate(path) if node in chosen), len(path) - 1)
        assert_array_equal(pruned.value[path_of_row(pruned, row)], tree.value[path[: stop + 1]])


@given(trees())
def test_leaves_cannot_be_pruned(tree):
    leaves = np.flatnonzero(tree.is_leaf)
    assert_same_arrays(prune_nodes(tree, leaves), tree)
    assert_same_arrays(prune_nodes(tree, iter(leaves.tolist())), tree)
    assert_same_arrays(prune_nodes(tree, []), tree)


@pytest.mark.parametrize("nodes", [[-1], [0, 9], np.array([9]), [2**70]])
def test_nodes_that_do_not_exist_are_refused(nodes):
    tree = three_leaves(ordered([0.0, 1.0, np.inf], [0, 1, 2]), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match=r"nodes must be between 0 and 3, got (-1|9|1\d+)$"):
        prune_nodes(tree, nodes)


@pytest.mark.parametrize(
    "nodes", [[1.0], [True], np.array([True]), "1", ["1"], [None], [[1]], {2.5}]
)
def test_what_is_no_integer_is_refused(nodes):
    tree = three_leaves(ordered([0.0, 1.0, np.inf], [0, 1, 2]), [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="nodes must hold integers, got "):
        prune_nodes(tree, nodes)


@pytest.mark.parametrize("nodes", [1, None, 2.5])
def test_what_is_no_list_is_refused(nodes):
    tree = three_leaves(ordered([0.0, 1.0, np.inf], [0, 1, 2]), [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="nodes must be a list of node indices, got "):
        prune_nodes(tree, nodes)


# Simplification


def same_class(one, other):
    return np.array_equal(one.argmax(axis=-1), other.argmax(axis=-1))


def gini(value):
    return float(np.mean(1 - (value**2).sum(axis=-1)))


CLASSES = {"impurity_of": gini, "same_prediction": same_class}
NUMBERS = {"impurity_of": None, "same_prediction": np.array_equal}


def ordered(upper, branches, missing=0, saw_missing=False):
    """A shape function of feature 0."""
    n_branches = max(*branches, missing) + 1
    return ShapeFunction(0, n_branches, np.array(upper), np.array(branches), missing, saw_missing)


def leaf(value, n_rows=1, weight=1.0, impurity=0.5):
    return TreeNode(NodeStatistics(n_rows, weight, impurity, np.array([np.atleast_1d(value)])))


def split(shape, children, value=None):
    """A node of six rows, with a value of zeros unless told otherwise."""
    zeros = np.zeros_like(children[0].statistics.value[0])
    node = leaf(zeros if value is None else value, 6, 6.0, 3.0)
    node.shape, node.children = shape, children
    return node


def three_leaves(shape, values):
    """A root with three leaves of one, two and three rows."""
    leaves = [leaf(value, n, float(n), n / 4) for n, value in enumerate(values, start=1)]
    return tree_of(split(shape, leaves))


def statistics_of(rows_y, weights, classes):
    """Rows, weight, impurity and value, of rows that must be some."""
    if classes:
        shares = np.bincount(rows_y, weights, minlength=2)[None] / weights.sum()
        return len(rows_y), weights.sum(), gini(shares), shares
    mean = np.average(rows_y, weights=weights)
    variance = np.average((rows_y - mean) ** 2, weights=weights)
    return len(rows_y), weights.sum(), variance, np.array([[mean]])


def count_rows(tree, rows, y, weights, classes):
    """Statistics of the rows that reach each node; None where none does."""
    held = [[] for _ in range(tree.node_count)]
    for number, row in enumerate(rows):
        for node in path_of_row(tree, row):
            held[node].append(number)
    return [statistics_of(y[some], weights[some], classes) if some else None for some in held]


def lacks_its_features(tree, node, row):
    """Whether a row goes where missing values do."""

    def is_missing(side, feature):
        value = row[feature]
        if not isinstance(value, int):
            return np.isnan(value)
        if tree.second_feature[node] < 0:
            return not 0 <= value < np.diff(tree.piece_start)[node]
        places = tree.position[tree.positions(node, side)]
        return not 0 <= value < len(places) or np.isnan(places[value])

    return any(is_missing(side, feature) for side, feature in enumerate(tree.features_of(node)))


@st.composite
def fitted_trees(draw, classes):
    """A random tree with the statistics of random rows, and these rows."""
    tree = draw(trees())
    rng = np.random.default_rng(draw(seeds))
    rows = random_rows(rng, draw(st.integers(1, 40)))
    y, weights = rng.integers(0, 2, len(rows)), rng.integers(1, 4, len(rows)) / 2
    saw_missing = np.zeros(tree.node_count, dtype=bool)
    for row in rows:
        for node in path_of_row(tree, row):
            saw_missing[node] |= lacks_its_features(tree, node, row)
    counted = count_rows(tree, rows, y, weights, classes)
    for node, known in enumerate(counted):
        if known is None:  # a branch that no row takes predicts what its parent does
            counted[node] = (0, 0.0, 0.0, counted[tree.parent[node]][3])
    n_rows, weight, impurity, value = zip(*counted, strict=True)
    tree = replace(
        tree,
        saw_missing=saw_missing,
        n_node_samples=n_rows,
        weighted_n_node_samples=weight,
        impurity=impurity,
        value=value,
    )
    return tree, rows, y, weights


@st.composite
def made_up_trees(draw, classes):
    """Trees whose leaves often predict the same, and whose other nodes anything."""
    tree = draw(trees())
    rng = np.random.default_rng(draw(seeds))
    choices = [[0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [0.2, 0.8]] if classes else [[0.1], [0.7]]
    value = np.array(choices)[rng.integers(len(choices), size=tree.node_count)][:, None]
    weight = rng.choice([0.3, 1.0, 7.0], tree.node_count)
    return replace(tree, value=value, weighted_n_node_samples=weight)


any_made_up = st.booleans().flatmap(lambda c: st.tuples(st.just(c), made_up_trees(c)))
any_fitted = st.booleans().flatmap(lambda c: st.tuples(st.just(c), fitted_trees(c)))


def rules_for(classes):
    return CLASSES if classes else NUMBERS


def takes_a_spare_branch(tree, row):
    """Whether a row takes a branch kept for missing values of which training saw none."""
    path = path_of_row(tree, row)
    return any(
        child - tree.first_child[node] not in tree.piece_branch[tree.pieces(node)]
        and not tree.saw_missing[node]
        for node, child in pairwise(path)
    )


def prediction(tree, row, classes):
    value = tree.value[path_of_row(tree, row)[-1]]
    return value.argmax(axis=-1) if classes else value


@examples(200)
@given(any_made_up, seeds)
def test_predictions_stay_for_any_row_also_with_missing_values(case, seed):
    classes, tree = case
    simple = simplify(tree, **rules_for(classes))
    for row in random_rows(np.random.default_rng(seed), 40):
        if not takes_a_spare_branch(tree, row):
            assert_array_equal(prediction(simple, row, classes), prediction(tree, row, classes))


@examples(200)
@given(any_fitted)
def test_statistics_stay_those_of_the_rows_that_reach_a_node(case):
    classes, (tree, rows, y, weights) = case
    simple = simplify(tree, **rules_for(classes))
    for node, known in enumerate(count_rows(simple, rows, y, weights, classes)):
        n_rows, weight, impurity, value = known or (0, 0.0, 0.0, simple.value[node])
        assert simple.n_node_samples[node] == n_rows
        assert simple.weighted_n_node_samples[node] == weight
        assert_allclose(simple.value[node], value, rtol=1e-12)
        if known:
            assert simple.impurity[node] == pytest.approx(impurity, abs=1e-12)


@given(any_made_up)
def test_simplifying_again_changes_nothing(case):
    classes, tree = case
    simple = simplify(tree, **rules_for(classes))
    assert_same_arrays(simplify(simple, **rules_for(classes)), simple)


def assert_nothing_to_join(tree, node, same_prediction):
    """No children, branches, intervals or regions are left that simplify should have joined."""
    leaves = [child for child in tree.children(node) if tree.is_leaf[child]]
    values = tree.value[leaves]
    for i, value in enumerate(values):
        assert not any(same_prediction(value, other) for other in values[:i])
    branches = tree.piece_branch[tree.pieces(node)]
    missing = {int(tree.missing_branch[node])} if tree.saw_missing[node] else set()
    assert set(branches.tolist()) | missing == set(range(tree.n_branches[node]))
    if not np.isnan(tree.piece_upper[tree.pieces(node)]).any():
        assert np.all(branches[1:] != branches[:-1])
    sides = np.stack([tree.cut_low[tree.cuts(node)], tree.cut_high[tree.cuts(node)]], axis=1)
    ends = branches[-1 - sides[(sides < 0).all(axis=1)]]
    assert len(sides) == 1 or np.all(ends[:, 0] != ends[:, 1])


@examples(200)
@given(any_made_up)
def test_nothing_is_left_to_join(case):
    classes, tree = case
    simple = simplify(tree, **rules_for(classes))
    for node in np.flatnonzero(~simple.is_leaf).tolist():
        assert_nothing_to_join(simple, node, rules_for(classes)["same_prediction"])


def test_leaves_that_all_predict_the_same_leave_their_parent_as_it_is():
    shape = ordered([0.0, 1.0, np.inf], [0, 1, 2])
    simple = simplify(three_leaves(shape, [0.0, 0.0, 0.0]), **NUMBERS)
    assert simple.node_count == 1
    assert simple.n_node_samples[0] == simple.weighted_n_node_samples[0] == 6
    assert simple.impurity[0] == 3
    assert simple.value[0, 0, 0] == 0


def test_equal_values_stay_equal_to_the_last_bit():
    shape = ordered([0.0, 1.0, np.inf], [0, 1, 2])
    leaves = [leaf(0.1) for _ in range(3)]
    assert np.average([0.1] * 3) != 0.1
    for own_value in (0.1 + 1e-17, np.nextafter(0.1, 1)):
        simple = simplify(tree_of(split(shape, leaves, own_value)), **NUMBERS)
        assert simple.node_count == 1
        assert simple.value[0, 0, 0] == 0.1


def test_some_leaves_that_predict_the_same_become_one_branch():
    shape = ordered([0.0, 1.0, 2.0, np.inf], [2, 0, 1, 0], missing=2, saw_missing=True)
    simple = simplify(three_leaves(shape, [5.0, 7.0, 5.0]), **NUMBERS)
    assert_array_equal(simple.n_node_samples, [6, 4, 2])
    assert_array_equal(simple.weighted_n_node_samples, [6, 4, 2])
    assert_array_equal(simple.impurity, [3, (1 * 0.25 + 3 * 0.75) / 4, 0.5])
    assert_array_equal(simple.value.ravel(), [0, 5, 7])
    assert_array_equal(simple.piece_upper, [1, 2, np.inf])
    assert_array_equal(simple.piece_branch, [0, 1, 0])
    assert simple.missing_branch[0] == 0
    assert simple.saw_missing[0]


def test_classes_are_counted_together():
    shape = ordered([0.0, 1.0, np.inf], [0, 1, 2])
    simple = simplify(three_leaves(shape, [[0.2, 0.8], [0.6, 0.4], [1.0, 0.0]]), **CLASSES)
    shares = np.array([(2 * 0.6 + 3 * 1.0) / 5, 2 * 0.4 / 5])
    assert_allclose(simple.value[1:, 0], [[0.2, 0.8], shares])
    assert_allclose(simple.impurity[2], 1 - (shares**2).sum())
    assert_array_equal(simple.piece_upper, [0, np.inf])


def test_categories_keep_a_piece_each():
    shape = ShapeFunction(0, 3, None, np.array([1, 2, 0, 2]), 2, False)
    simple = simplify(three_leaves(shape, [5.0, 7.0, 7.0]), **NUMBERS)
    assert_array_equal(simple.piece_branch, [1, 1, 0, 1])
    assert np.isnan(simple.piece_upper).all()
    assert simple.missing_branch[0] == 1


def pair(low, high, branches, missing=0, saw_missing=False):
    """A shape function of features 0 and 1 whose cut c is at threshold c."""
    n_cuts = len(low)
    return PairShape(
        first=0,
        second=1,
        n_branches=max(*branches, missing) + 1,
        cut_a=np.ones(n_cuts),
        cut_b=np.ones(n_cuts),
        cut_threshold=np.arange(n_cuts, dtype=float),
        cut_low=np.array(low),
        cut_high=np.array(high),
        branch_of_piece=np.array(branches),
        positions=(np.empty(0), np.empty(0)),
        missing_branch=missing,
        saw_missing=saw_missing,
    )


def test_cuts_between_regions_of_one_branch_are_left_out():
    shape = pair([1, 2, -1, -4], [3, -3, -2, -5], [0, 2, 0, 1, 2])
    simple = simplify(three_leaves(shape, [5.0, 7.0, 5.0]), **NUMBERS)
    assert_array_equal(simple.cut_threshold, [0, 3])
    assert_array_equal(simple.cut_low, [-1, -2])
    assert_array_equal(simple.cut_high, [1, -3])
    assert_array_equal(simple.piece_branch, [0, 1, 0])


def test_a_pair_that_only_parts_missing_values_keeps_a_cut():
    shape = pair([1, -1], [-3, -2], [0, 2, 0], missing=1, saw_missing=True)
    simple = simplify(three_leaves(shape, [5.0, 7.0, 5.0]), **NUMBERS)
    assert simple.n_branches[0] == 2
    assert_array_equal(simple.cut_threshold, [0])
    assert_array_equal(simple.piece_branch, [0, 0])


def test_a_branch_that_nothing_leads_to_is_left_out():
    shape = ordered([0.0, 1.0, np.inf], [2, 0, 0], missing=2)
    simple = simplify(three_leaves(shape, [5.0, 6.0, 7.0]), **NUMBERS)
    assert_array_equal(simple.value.ravel(), [0, 5, 7])
    assert_array_equal(simple.piece_upper, [0, np.inf])
    assert_array_equal(simple.piece_branch, [1, 0])
    assert simple.missing_branch[0] == 1


def test_a_branch_for_missing_values_that_training_never_saw_is_left_out():
    shape = ordered([0.0, np.inf], [0, 2], missing=1)
    simple = simplify(three_leaves(shape, [5.0, 6.0, 7.0]), **NUMBERS)
    assert_array_equal(simple.value.ravel(), [0, 5, 7])
    assert simple.missing_branch[0] == 1  # the leaf of three rows
    seen = three_leaves(replace(shape, saw_missing=True), [5.0, 6.0, 7.0])
    assert_same_arrays(simplify(seen, **NUMBERS), seen)


def test_missing_values_that_training_never_saw_keep_a_prediction_that_others_have():
    shape = ordered([0.0, np.inf], [0, 2], missing=1)
    simple = simplify(three_leaves(shape, [5.0, 5.0, 7.0]), **NUMBERS)
    assert_array_equal(simple.value.ravel(), [0, 5, 7])
    assert simple.missing_branch[0] == 0


def test_missing_values_that_training_never_saw_go_to_the_branch_that_is_largest_in_the_end():
    shape = ordered([0.0, 1.0, 2.0, np.inf], [0, 1, 2, 1], missing=3)
    leaves = [leaf(5.0, weight=2.0), leaf(6.0, weight=3.0), leaf(5.0, weight=2.0), leaf(7.0)]
    simple = simplify(tree_of(split(shape, leaves)), **NUMBERS)
    assert_array_equal(simple.weighted_n_node_samples, [6, 4, 3])
    assert simple.missing_branch[0] == 0


def test_a_node_with_one_branch_gives_way_to_its_child():
    below = split(ordered([3.0, np.inf], [1, 0]), [leaf(5.0), leaf(6.0)], 8.0)
    shape = ordered([0.0, np.inf], [1, 1], missing=0)
    root = split(shape, [leaf(7.0), below], 9.0)
    assert_same_arrays(simplify(tree_of(root), **NUMBERS), tree_of(below))


def test_what_becomes_a_leaf_is_joined_with_its_siblings():
    below = split(ordered([3.0, np.inf], [1, 0]), [leaf(5.0), leaf(5.0)], 5.0)
    root = split(ordered([0.0, np.inf], [0, 1]), [leaf(5.0), below], 5.0)
    assert simplify(tree_of(root), **NUMBERS).node_count == 1


@pytest.mark.parametrize("max_branches", [2, 4])
def test_fitted_classifiers_predict_the_same_with_fewer_leaves(max_branches):
    rng = np.random.default_rng(0)
    X, y = noisy_classes(rng, n_rows=600, n_values=40)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = np.nan_to_num(X[:, 3]) % 5
    growth = {"leaf_penalty": 0.0, "segment_penalty": 0.0, "pairs": "all"}
    model = make_tree(
        ShapeTreeClassifier,
        refine=None,
        shrinkage=0,
        criterion="gini",
        max_branches=max_branches,
        categorical_features=[3],
        **growth,
    ).fit(X, y)
    tree = model.tree_
    assert (tree.second_feature >= 0).any()
    new_X = rng.uniform(-10, 60, (2000, X.shape[1]))
    new_X[:, 3] = rng.integers(0, 8, len(new_X))
    new_X[rng.random(new_X.shape) < 0.2] = np.nan
    before = [model.predict(rows) for rows in (X, new_X)]
    set_tree(model, simplify(tree, **CLASSES))
    assert model.tree_.n_leaves < tree.n_leaves
    for rows, expected in zip((X, new_X), before, strict=True):
        assert_array_equal(model.predict(rows), expected)
    assert_array_equal(rows_of_nodes(model, X).sum(axis=1), model.tree_.n_node_samples)
    assert_allclose(model.tree_.impurity, [gini(value) for value in model.tree_.value], atol=1e-12)


def test_fitted_regressors_have_nothing_to_join():
    X, y = noisy_numbers(np.random.default_rng(0))
    tree = ShapeTreeRegressor(refine=None, pairs="all", max_branches=3).fit(X, y).tree_
    assert tree.n_leaves > 3
    assert_same_arrays(simplify(tree, **NUMBERS), tree)


def test_shrunken_trees_predict_the_same_when_simplified():
    rng = np.random.default_rng(0)
    X, y = noisy_classes(rng)
    model = ShapeTreeClassifier(
        refine=None, shrinkage=0, max_branches=3, search=SearchOptions(leaf_penalty=0.0)
    ).fit(X, y)
    set_tree(model, shrink(model.tree_, Shrinkage(20.0)))
    new_X = rng.uniform(-10, 310, (500, X.shape[1]))
    before, n_leaves = model.predict(new_X), model.tree_.n_leaves
    set_tree(model, simplify(model.tree_, **CLASSES))
    assert model.tree_.n_leaves < n_leaves
    assert_array_equal(model.predict(new_X), before)


def test_leaves_of_two_outputs_are_joined_where_both_predict_the_same():
    X, one = noisy_classes(np.random.default_rng(0), n_classes=3)
    y = np.stack([one, (X[:, 1] > 140) * 5], axis=1)
    model = ShapeTreeClassifier(
        refine=None, max_branches=3, search=SearchOptions(leaf_penalty=0.0, criterion="gini")
    ).fit(X, y)
    before, n_leaves = model.predict(X), model.tree_.n_leaves
    set_tree(model, simplify(model.tree_, **CLASSES))
    assert 1 < model.tree_.n_leaves < n_leaves
    assert_array_equal(model.predict(X), before)
