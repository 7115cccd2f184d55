"""Routing equals walks row by row, and what a branch costs is the loss of the leaf below it."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import branch_of_pair, random_cuts, random_positions
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.pair_cuts import PairCuts
from shapetree._core.routing import LeafLosses, Router

SEEDS = st.integers(0, 2**32 - 1)
N_ROWS = 40


# Random trees over bins, and naive walks through them


class Forest:
    """A random tree over bins and pairs, with rows for it."""

    def __init__(self, seed, n_rows=N_ROWS, max_nodes=14):
        self.rng = rng = np.random.default_rng(seed)
        self.n_rows = n_rows
        dtypes = [np.uint8, np.uint16, np.uint32]
        self.n_bins = [5, 3, 8]
        self.codes = [
            rng.integers(0, n, n_rows).astype(dtype)
            for n, dtype in zip(self.n_bins, dtypes, strict=True)
        ]
        numbers = rng.choice([np.nan, -np.inf, np.inf, -2.0, -1.0, 0.0, 0.5, 2.0], (2, n_rows))
        self.categories = [None, None, 4]
        self.values = [
            numbers[0],
            numbers[1].astype(np.float32),
            rng.integers(-1, 6, n_rows).astype(np.int32),
        ]
        self.columns = Columns(self.values, n_rows)
        self.n_branches, self.first_child, self.feature = [], [], []
        self.branch_of_bin, self.cuts, self.pairs = [], [], []
        self.depth, made = [0], 1
        for node in range(max_nodes):
            if node == made:
                break
            k = int(rng.integers(2, 5)) if made + 4 <= max_nodes and rng.random() < 0.8 else 0
            self.n_branches.append(k)
            self.first_child.append(made if k else -1)
            self.depth.extend([self.depth[node] + 1] * k)
            made += k
            self._add_split(k)

    def _add_split(self, k):
        rng = self.rng
        is_pair = k > 0 and rng.random() < 0.5
        feature = int(rng.integers(3)) if k and not is_pair else -1
        self.feature.append(feature)
        self.branch_of_bin.append(
            rng.integers(0, k, self.n_bins[feature]).astype(np.uint8) if feature >= 0 else None
        )
        pair = cuts = None
        if is_pair:
            first, second = sorted(rng.permutation(3)[:2].tolist())
            a, b, threshold, low, high = zip(
                *random_cuts(rng, int(rng.integers(1, 6))), strict=True
            )
            places = [random_positions(rng, self.categories[f]) for f in (first, second)]
            branch = rng.integers(0, k, len(a) + 1).astype(np.int32)
            missing = int(rng.integers(k))
            # A tree of this one node, as the naive walk through predicted rows reads it.
            pair = first, second, SimpleNamespace(
                cut_start=[0], cut_a=a, cut_b=b, cut_threshold=threshold, cut_low=low,
                cut_high=high, piece_start=[len(branch) * 0], piece_branch=branch,
                missing_branch=[missing], position=np.array(places[0] + places[1]),
                position_start=np.cumsum([0, len(places[0]), len(places[1])]),
            )  # fmt: skip
            cuts = PairCuts(
                self.columns, first, second, *places, *map(np.array, (a, b, threshold)),
                *(np.array(targets, dtype=np.int32) for targets in (low, high)), branch, missing,
            )  # fmt: skip
        self.pairs.append(pair)
        self.cuts.append(cuts)

    @property
    def n_nodes(self):
        return len(self.n_branches)

    def router(self):
        return Router(
            Columns(self.codes, self.n_rows),
            np.array(self.first_child, dtype=np.int32),
            np.array(self.n_branches, dtype=np.int32),
            np.array(self.feature, dtype=np.int32),
            self.branch_of_bin,
            self.cuts,
        )

    def branch(self, node, row):
        if self.pairs[node] is None:
            return self.branch_of_bin[node][self.codes[self.feature[node]][row]]
        first, second, cuts = self.pairs[node]
        values = [
            int(self.values[f][row]) if self.categories[f] else float(self.values[f][row])
            for f in (first, second)
        ]
        return branch_of_pair(cuts, 0, *values)

    def path(self, row, node=0):
        """Nodes that a row passes from a node on."""
        path = [node]
        while self.n_branches[path[-1]]:
            path.append(int(self.first_child[path[-1]] + self.branch(path[-1], row)))
        return path

    def leaf(self, row, node=0):
        return self.path(row, node)[-1]

    def nodes_at(self, depth):
        """Node at some depth that each row passes, or -1."""
        paths = [self.path(row) for row in range(self.n_rows)]
        at = [path[depth] if len(path) > depth else -1 for path in paths]
        return np.array(at, dtype=np.int32)


KINDS = ["labels", "squared", "absolute"]


def random_losses(rng, n_rows, n_nodes, kind, n_outputs, is_weighted):
    """Losses, the leaves' table, and a function that says what a row loses in a leaf.

    With what the losses were made of: targets, and weights of the rows.
    """
    weights = rng.choice([0.25, 0.5, 1.0, 1.3, 7.0], n_rows) if is_weighted else None
    weight = np.ones(n_rows) if weights is None else weights
    if kind == "labels":
        labels = rng.integers(0, 3, (n_rows, n_outputs)).astype(np.int32) + 3 * np.arange(n_outputs)
        table = rng.choice([0.0, 0.0, 0.1, 1.0, 1.2], (n_nodes, 3 * n_outputs))
        losses, targets = LeafLosses(labels, None, weights), labels

        def of(row, leaf):
            return weight[row] * sum(table[leaf, label] for label in labels[row])
    else:
        values = rng.choice([-1.0, 0.0, 0.1, 2.5, 1e9], (n_rows, n_outputs))
        table = rng.choice([-1.0, 0.0, 0.1, 2.5], (n_nodes, n_outputs))
        losses = LeafLosses(None, values, weights, absolute=kind == "absolute")
        targets = values

        def of(row, leaf):
            differences = [abs(values[row, o] - table[leaf, o]) for o in range(n_outputs)]
            return weight[row] * sum(d if kind == "absolute" else d**2 for d in differences)

    return SimpleNamespace(losses=losses, table=table, of=of, targets=targets, weight=weight)


def all_leaves(router, n_rows, n_threads=1):
    """Leaf of each row, sent from the root."""
    rows = np.arange(n_rows, dtype=np.int32)
    return router.leaves(rows, np.zeros_like(rows), n_threads)


def branch_losses(router, at, losses, table, n_branches, n_threads, now=None):
    """What the kernel sums, and writes into arrays that are full of 9s."""
    n_rows = len(at)
    others = np.full((n_rows, n_branches - 1), -9.0)
    cares = np.full(n_rows, 9, dtype=np.uint8)
    now = all_leaves(router, n_rows) if now is None else now
    sums = router.branch_losses(at, now, losses, table, others, cares, n_threads)
    return SimpleNamespace(sums=sums, others=others, cares=cares)


# Leaves


@given(SEEDS)
def test_rows_end_in_the_leaves_that_walks_lead_to(seed):
    forest = Forest(seed)
    found = all_leaves(forest.router(), N_ROWS)
    assert found.dtype == np.int32
    assert_array_equal(found, [forest.leaf(row) for row in range(N_ROWS)])


@given(SEEDS, st.integers(0, 60))
def test_some_rows_can_be_sent_from_any_nodes(seed, n_sent):
    forest = Forest(seed)
    rows = forest.rng.integers(0, N_ROWS, n_sent).astype(np.int32)
    start = forest.rng.integers(0, forest.n_nodes, n_sent).astype(np.int32)
    found = forest.router().leaves(rows, start, 1)
    assert found.dtype == np.int32
    assert_array_equal(found, [forest.leaf(*sent) for sent in zip(rows, start, strict=True)])


@given(SEEDS)
def test_leaves_are_the_same_for_any_number_of_threads(seed):
    forest = Forest(seed)
    router = forest.router()
    rows = forest.rng.integers(0, N_ROWS, 100).astype(np.int32)
    start = forest.rng.integers(0, forest.n_nodes, 100).astype(np.int32)
    for n_threads in (3, 50):
        assert_array_equal(router.leaves(rows, start, 1), router.leaves(rows, start, n_threads))


def test_a_root_alone_is_every_rows_leaf():
    nothing = np.zeros(1, dtype=np.int32)
    codes = Columns([np.array([0, 1, 0], dtype=np.uint8)], 3)
    router = Router(codes, nothing, nothing, nothing, [None], [None])
    assert_array_equal(all_leaves(router, 3, 2), [0, 0, 0])


def test_a_table_without_rows_has_no_leaves():
    router = Forest(0, n_rows=0).router()
    assert all_leaves(router, 0, 2).shape == (0,)
    losses = LeafLosses(np.empty((0, 1)), None, None)
    table = np.empty((router.n_nodes, 1))
    found = branch_losses(router, np.empty(0, np.int32), losses, table, 4, 2)
    assert_array_equal(found.sums, np.zeros((router.n_nodes, 5)))
    assert len(found.others) == len(found.cares) == 0


# Sums over leaves


def random_leaves(rng, n_rows, n_nodes):
    """A leaf for each row; some nodes are no row's."""
    return rng.choice(rng.integers(0, n_nodes, 3), n_rows).astype(np.int32)


@given(SEEDS, st.integers(1, 50), st.sampled_from(KINDS), st.integers(1, 3), st.booleans())
def test_leaves_sum_up_their_rows(seed, n_rows, kind, n_outputs, is_weighted):
    rng = np.random.default_rng(seed)
    given = random_losses(rng, n_rows, 6, kind, n_outputs, is_weighted)
    leaves = random_leaves(rng, n_rows, 6)
    n_columns = given.targets.max() + 1 if kind == "labels" else 1 + n_outputs
    expected, greatest = np.zeros((6, n_columns)), np.zeros((6, n_columns))
    for leaf, targets, weight in zip(leaves, given.targets, given.weight, strict=True):
        if kind == "labels":
            expected[leaf, targets] += weight
        else:
            expected[leaf] += weight * np.append(1.0, targets)
            greatest[leaf] += weight * np.append(1.0, np.abs(targets))
    found = given.losses.sums(leaves, 6)
    assert found.shape == expected.shape
    assert np.all(np.abs(found - expected) <= 1e-14 * (expected + greatest))
    assert_array_equal(given.losses.sums(leaves, 9), np.vstack([found, np.zeros((3, n_columns))]))


@given(SEEDS, st.integers(1, 50), st.sampled_from(KINDS), st.integers(1, 3), st.booleans())
def test_the_total_is_what_rows_lose_in_their_leaves(seed, n_rows, kind, n_outputs, is_weighted):
    rng = np.random.default_rng(seed)
    given = random_losses(rng, n_rows, 6, kind, n_outputs, is_weighted)
    leaves = random_leaves(rng, n_rows, 6)
    expected = sum(given.of(row, leaf) for row, leaf in enumerate(leaves))
    assert_allclose(given.losses.total(leaves, given.table), expected, rtol=1e-12)
    # Columns that no label needs, and lines of no leaf, make no difference.
    wider = np.pad(given.table, [(0, 2), (0, 3)], constant_values=np.nan)
    assert given.losses.total(leaves, given.table) == given.losses.total(leaves, wider)


def test_no_rows_sum_up_to_nothing():
    nowhere = np.empty(0, dtype=np.int32)
    labels = LeafLosses(np.empty((0, 2)), None, None)
    values = LeafLosses(None, np.empty((0, 2)), None)
    assert labels.sums(nowhere, 3).shape == (3, 0)
    assert_array_equal(values.sums(nowhere, 3), np.zeros((3, 3)))
    assert values.sums(nowhere, 0).shape == (0, 3)
    assert labels.total(nowhere, np.empty((0, 0))) == 0.0
    assert values.total(nowhere, np.empty((0, 2))) == 0.0


# Losses of branches


@given(
    SEEDS,
    st.integers(0, 2),
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([1, 5, 15, 16, 17, 31, N_ROWS]),
)
def test_branches_cost_the_loss_of_the_leaf_below(
    seed, depth, kind, n_outputs, is_weighted, n_rows
):
    forest = Forest(seed, n_rows)
    given = random_losses(forest.rng, n_rows, forest.n_nodes, kind, n_outputs, is_weighted)
    at = forest.nodes_at(depth)
    at[forest.rng.random(n_rows) < 0.1] = -1
    found = branch_losses(forest.router(), at, given.losses, given.table, 5, 1)
    sums, greatest = np.zeros((forest.n_nodes, 6)), np.zeros(forest.n_nodes)
    for row, node in enumerate(at):
        if node < 0 or forest.n_branches[node] == 0:
            # Left alone, but they do not care.
            assert set(found.others[row]) == {-9.0}
            assert found.cares[row] == 0
            continue
        k = forest.n_branches[node]
        leaves = [forest.leaf(row, forest.first_child[node] + b) for b in range(k)]
        expected = np.array([given.of(row, leaf) for leaf in leaves])
        added = expected[1:] - expected[0]
        rounding = {"rtol": 1e-12, "atol": 1e-12 * expected.max()}
        assert_allclose(found.others[row, : k - 1], added, **rounding)
        assert_array_equal(found.others[row, k - 1 :], 0.0)
        assert found.cares[row] == found.others[row].any()
        sums[node, : k + 1] += [expected[forest.branch(node, row)], expected[0], *added]
        greatest[node] += expected.max()
    assert found.sums.shape == sums.shape
    assert np.all(np.abs(found.sums - sums) <= 1e-12 * greatest[:, None])


@given(SEEDS, st.sampled_from(KINDS), st.booleans(), st.sampled_from([3, 16, N_ROWS, 150]))
def test_losses_are_the_same_for_any_number_of_threads(seed, kind, is_weighted, n_rows):
    forest = Forest(seed, n_rows)
    router, at = forest.router(), forest.nodes_at(1)
    given = random_losses(forest.rng, n_rows, forest.n_nodes, kind, 2, is_weighted)
    one = branch_losses(router, at, given.losses, given.table, 4, 1)
    for n_threads in (2, 3, 50):
        several = branch_losses(router, at, given.losses, given.table, 4, n_threads)
        for name, expected in vars(one).items():
            assert_array_equal(expected, getattr(several, name))


@given(SEEDS)
def test_branches_that_lead_to_equal_leaves_leave_rows_unmoved(seed):
    forest = Forest(seed)
    losses = LeafLosses(forest.rng.integers(0, 3, (N_ROWS, 1)), None, None)
    table = np.tile([0.1, 0.7, 1.3], (forest.n_nodes, 1))
    found = branch_losses(forest.router(), forest.nodes_at(0), losses, table, 4, 1)
    assert not found.cares.any()
    assert set(found.others[found.others != -9.0]) <= {0.0}
    assert_array_equal(found.sums[:, 0], found.sums[:, 1])
    assert_array_equal(found.sums[:, 2:], 0.0)


def test_a_table_may_have_more_columns_than_there_are_labels():
    root = np.array([1, -1, -1], dtype=np.int32), np.array([2, 0, 0], dtype=np.int32)
    branches = [np.array([0, 1], dtype=np.uint8), None, None]
    columns = Columns([np.array([0, 1, 0], dtype=np.uint8)], 3)
    router = Router(columns, *root, np.array([0, -1, -1], dtype=np.int32), branches, [None] * 3)
    losses = LeafLosses([[1], [0], [1]], None, [1.0, 2.0, 3.0])
    table = np.array([[0, 0, 0], [1, 2, 8], [4, 1, 8.0]])
    at = np.array([0, 0, 0], dtype=np.int32)
    found = branch_losses(router, at, losses, table, 2, 1)
    # Rows lose 2, 2 and 6 in branch 0; the second one takes branch 1, and loses 8.
    assert_array_equal(found.others[:, 0], [-1, 6, -3])
    assert_array_equal(found.sums, [[16, 10, 2], [0, 0, 0], [0, 0, 0]])
    assert_array_equal(found.cares, 1)
    # Rows at a leaf, or at no node.
    at = np.array([1, -1, 2], dtype=np.int32)
    found = branch_losses(router, at, losses, table, 2, 1)
    assert_array_equal(found.others, -9)
    assert_array_equal(found.sums, 0)
    assert_array_equal(found.cares, 0)


def test_a_rows_own_branch_leads_to_the_leaf_it_is_said_to_be_in():
    # The splits below may have changed since the leaves were found.
    columns = Columns([np.array([0, 1, 0], dtype=np.uint8)], 3)
    tree = [[1, -1, 3, -1, -1], [2, 0, 2, 0, 0], [0, -1, 0, -1, -1]]
    ways = [np.array(way, dtype=np.uint8) for way in ([0, 1], [0, 0])]
    router = Router(
        columns, *(np.array(numbers, dtype=np.int32) for numbers in tree),
        [ways[0], None, ways[1], None, None], [None] * 5,
    )  # fmt: skip
    losses = LeafLosses([[0]] * 3, None, None)
    table = np.array([[0.0], [1.0], [0.0], [3.0], [9.0]])
    at, now = np.zeros(3, dtype=np.int32), np.array([1, 4, 1], dtype=np.int32)
    found = branch_losses(router, at, losses, table, 2, 1, now)
    # The row in the middle is in leaf 4, though the split above would send it to leaf 3.
    assert_array_equal(found.others[:, 0], [2, 8, 2])
    assert_array_equal(found.sums[0], [1 + 9 + 1, 3, 12])
    assert_array_equal(found.sums[1:], 0)


# What does not fit


def plain_router(**change):
    """Arguments of a router with one node of two branches over two bins."""
    arguments = {
        "bins": Columns([np.array([0, 1, 0], dtype=np.uint8)], 3),
        "first_child": [1, -1, -1],
        "n_branches": [2, 0, 0],
        "feature": [0, -1, -1],
        "branch_of_bin": [np.array([0, 1], dtype=np.uint8), None, None],
        "cuts": [None, None, None],
    } | change
    for name in ("first_child", "n_branches", "feature"):
        arguments[name] = np.array(arguments[name], dtype=np.int32)
    return Router(**arguments)


def one_cut(n_rows, branch, missing_branch):
    columns = Columns([np.zeros(n_rows), np.zeros(n_rows)], n_rows)
    targets = [np.array(target, dtype=np.int32) for target in ([-1], [-2], branch)]
    return PairCuts(columns, 0, 1, [], [], np.ones(1), np.ones(1), np.ones(1), *targets,
                    missing_branch)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first_child": [1, -1]}, "differ in their numbers of nodes"),
        ({"feature": [0, -1]}, "differ in their numbers of nodes"),
        ({"cuts": [None]}, "differ in their numbers of nodes"),
        ({"branch_of_bin": []}, "differ in their numbers of nodes"),
        ({"first_child": [0, -1, -1]}, "come after their parents"),
        ({"first_child": [-1, -1, -1]}, "come after their parents"),
        ({"first_child": [2, -1, -1]}, "come after their parents"),
        ({"n_branches": [3, 0, 0]}, "come after their parents"),
        ({"n_branches": [2**31 - 1, 0, 0]}, "come after their parents"),
        ({"n_branches": [2, 1, 0]}, "come after their parents"),
        ({"feature": [1, -1, -1]}, "not a column of bins"),
        ({"feature": [-1, -1, -1]}, "not a column of bins"),
        ({"bins": Columns([np.zeros(3)], 3)}, "does not hold bins"),
        ({"bins": Columns([None], 3)}, "does not hold bins"),
        ({"bins": Columns([], 3)}, "does not hold bins"),
        ({"branch_of_bin": [np.array([0], dtype=np.uint8), None, None]}, "every bin needs"),
        ({"branch_of_bin": [np.array([0, 2], dtype=np.uint8), None, None]}, "branches of bins"),
        ({"branch_of_bin": [None, None, None]}, "not a column of bins"),
        ({"cuts": [one_cut(2, [0, 1], 0), None, None]}, "as many rows as bins"),
        ({"cuts": [one_cut(3, [0, 2], 0), None, None]}, "branches of regions exist"),
        ({"cuts": [one_cut(3, [0, -1], 0), None, None]}, "branches of regions exist"),
        ({"cuts": [one_cut(3, [0, 1], 2), None, None]}, "branches of regions exist"),
        ({"cuts": [one_cut(3, [0, 1], -1), None, None]}, "branches of regions exist"),
    ],
)
def test_trees_that_cannot_be_walked_are_refused(change, message):
    plain_router()
    with pytest.raises(ValueError, match=message):
        plain_router(**change)


@pytest.mark.parametrize(
    ("labels", "values", "weights", "message"),
    [
        (None, None, None, "either labels or values"),
        ([[0]], [[0.0]], None, "either labels or values"),
        ([0], None, None, "must be .n_rows, n_outputs."),
        (None, np.empty((3, 0)), None, "must be .n_rows, n_outputs."),
        ([[0], [-1]], None, None, "labels must be columns"),
        ([[0], [2**31 - 1]], None, None, "labels must be columns"),
        ([[0], [1]], None, [1.0], "weights must be"),
    ],
)
def test_targets_that_do_not_fit_are_refused(labels, values, weights, message):
    with pytest.raises(ValueError, match=message):
        LeafLosses(labels, values, weights)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"at": np.zeros(2, dtype=np.int32)}, "numbers of rows"),
        ({"now": np.zeros(2, dtype=np.int32)}, "numbers of rows"),
        ({"others": np.empty((2, 1))}, "numbers of rows"),
        ({"cares": np.empty(4, dtype=np.uint8)}, "numbers of rows"),
        ({"losses": LeafLosses([[0]] * 4, None, None)}, "numbers of rows"),
        ({"losses": LeafLosses([[0], [2], [0]], None, None)}, "line for each node"),
        ({"losses": LeafLosses(None, np.ones((3, 3)), None)}, "line for each node"),
        ({"losses": LeafLosses([[2**31 - 2]] * 3, None, None)}, "line for each node"),
        ({"table": np.zeros((2, 2))}, "line for each node"),
        ({"table": np.zeros((4, 2))}, "line for each node"),
        ({"table": np.zeros((3, 0))}, "line for each node"),
        ({"at": np.array([0, 3, 0], dtype=np.int32)}, "a loss for each branch"),
        ({"at": np.array([0, -2, 0], dtype=np.int32)}, "a loss for each branch"),
        ({"now": np.array([0, 3, 0], dtype=np.int32)}, "a loss for each branch"),
        ({"now": np.array([0, -1, 0], dtype=np.int32)}, "a loss for each branch"),
        ({"others": np.empty((3, 0))}, "the number of branches"),
        ({"n_threads": 0}, "n_threads"),
        ({"n_threads": -1}, "n_threads"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    arguments = {
        "at": np.zeros(3, dtype=np.int32),
        "now": np.ones(3, dtype=np.int32),
        "losses": LeafLosses([[0], [1], [0]], None, None),
        "table": np.zeros((3, 2)),
        "others": np.empty((3, 1)),
        "cares": np.empty(3, dtype=np.uint8),
        "n_threads": 1,
    }
    router = plain_router()
    router.branch_losses(**arguments)
    with pytest.raises(ValueError, match=message):
        router.branch_losses(**arguments | change)


def test_tables_for_no_rows_are_refused_alike():
    # Without rows, there is no label, but a line must have room for one.
    router = plain_router(bins=Columns([np.empty(0, dtype=np.uint8)], 0))
    losses, nowhere = LeafLosses(np.empty((0, 1)), None, None), np.empty(0, dtype=np.int32)
    with pytest.raises(ValueError, match="line for each node"):
        branch_losses(router, nowhere, losses, np.empty((3, 0)), 2, 1)


def test_nodes_with_more_branches_than_there_is_room_for_are_refused():
    ways = [np.array([0, 2], dtype=np.uint8), None, None, None]
    tree = {"first_child": [1, -1, -1, -1], "n_branches": [3, 0, 0, 0], "feature": [0, 0, 0, 0]}
    router = plain_router(**tree, branch_of_bin=ways, cuts=[None] * 4)
    losses, table = LeafLosses([[0]] * 3, None, None), np.zeros((4, 1))
    with pytest.raises(ValueError, match="a loss for each branch"):
        branch_losses(router, np.zeros(3, dtype=np.int32), losses, table, 2, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_threads": 0}, "n_threads must be at least 1"),
        ({"n_threads": -1}, "n_threads must be at least 1"),
        ({"start": np.zeros(1, dtype=np.int32)}, "each row needs a start"),
        ({"start": np.zeros(3, dtype=np.int32)}, "each row needs a start"),
        ({"start": np.array([0, 3], dtype=np.int32)}, "must start at nodes"),
        ({"start": np.array([-1, 0], dtype=np.int32)}, "must start at nodes"),
        ({"rows": np.array([0, 3], dtype=np.int32)}, "rows must lie between 0 and 2"),
        ({"rows": np.array([-1, 0], dtype=np.int32)}, "rows must lie between 0 and 2"),
    ],
)
def test_rows_that_cannot_be_sent_are_refused(change, message):
    rows, start = np.array([0, 2], dtype=np.int32), np.array([0, 1], dtype=np.int32)
    arguments = {"rows": rows, "start": start, "n_threads": 1}
    assert_array_equal(plain_router().leaves(**arguments), [1, 1])
    with pytest.raises((ValueError, IndexError), match=message):
        plain_router().leaves(**arguments | change)


@pytest.mark.parametrize(
    ("leaves", "n_nodes", "message"),
    [
        ([0, 1], 3, "a leaf for each row"),
        ([0, 1, 2, 0], 3, "a leaf for each row"),
        ([0, 1, 2], -1, "a leaf for each row"),
        ([0, 1, 2], 2, "leaves must be nodes"),
        ([0, 1, 2], 0, "leaves must be nodes"),
        ([0, -1, 2], 3, "leaves must be nodes"),
        ([0, 2**31 - 1, 2], 3, "leaves must be nodes"),
    ],
)
@pytest.mark.parametrize("targets", [([[0], [1], [0]], None), (None, np.ones((3, 2)))])
def test_leaves_that_cannot_be_summed_are_refused(targets, leaves, n_nodes, message):
    losses = LeafLosses(*targets, None)
    losses.sums(np.array([0, 1, 2], dtype=np.int32), 3)
    with pytest.raises(ValueError, match=message):
        losses.sums(np.array(leaves, dtype=np.int32), n_nodes)


@pytest.mark.parametrize(
    ("leaves", "shape", "message"),
    [
        ([0, 1], (3, 2), "a leaf for each row"),
        ([0, 1, 2, 0], (3, 2), "a leaf for each row"),
        ([0, 1, 2], (3, 1), "a line for each leaf"),
        ([0, 1, 2], (3, 0), "a line for each leaf"),
        ([0, 1, 2], (2, 2), "lines of the table"),
        ([0, 1, 2], (0, 2), "lines of the table"),
        ([0, -1, 2], (3, 2), "lines of the table"),
        ([0, 2**31 - 1, 2], (3, 2), "lines of the table"),
    ],
)
@pytest.mark.parametrize("targets", [([[0], [1], [0]], None), (None, np.ones((3, 2)))])
def test_leaves_without_lines_have_no_total(targets, leaves, shape, message):
    losses = LeafLosses(*targets, None)
    losses.total(np.array([0, 1, 2], dtype=np.int32), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=message):
        losses.total(np.array(leaves, dtype=np.int32), np.zeros(shape))
