"""Routing equals walks row by row, and what a branch costs is the loss of the leaf below it."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import branch_of_pair, random_cuts, random_positions, sum_cells
from naive_pairs import pair_cuts
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.routing import LeafLosses, RoutedRows
from shapetree._core.rows import NodeRows

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
            cuts = pair_cuts(
                self.columns, first, second, *places, *map(np.array, (a, b, threshold)),
                *(np.array(targets, dtype=np.int32) for targets in (low, high)), branch, missing,
            )  # fmt: skip
        self.pairs.append(pair)
        self.cuts.append(cuts)

    @property
    def n_nodes(self):
        return len(self.n_branches)

    def routed(self, rows=None, max_branches=4, n_threads=1):
        """The tree with its rows sent down, and where they are."""
        places = NodeRows(self.n_rows, rows)
        routed = RoutedRows(Columns(self.codes, self.n_rows), places, self.n_nodes, max_branches)
        for node in range(self.n_nodes):
            self.give_split(routed, node)
        routed.send(np.zeros(1, dtype=np.int32), n_threads)
        return routed, places

    def children(self, node):
        first = self.first_child[node]
        return list(range(first, first + self.n_branches[node])) if self.n_branches[node] else []

    def give_split(self, routed, node):
        if self.n_branches[node] == 0:
            return
        children = np.array(self.children(node), dtype=np.int32)
        if self.cuts[node] is None:
            routed.set_bins(node, children, self.feature[node], self.branch_of_bin[node])
        else:
            routed.set_cuts(node, children, self.cuts[node])

    def piece(self, node, row):
        """Bin of a row, or number of the region that it is in; the last for missing values."""
        if self.pairs[node] is None:
            return int(self.codes[self.feature[node]][row])
        first, second, cuts = self.pairs[node]
        n_regions = len(cuts.piece_branch)
        numbered = SimpleNamespace(**vars(cuts))
        numbered.piece_branch, numbered.missing_branch = np.arange(n_regions), [n_regions]
        return int(branch_of_pair(numbered, 0, *self.values_of((first, second), row)))

    def values_of(self, features, row):
        return [
            int(self.values[f][row]) if self.categories[f] else float(self.values[f][row])
            for f in features
        ]

    def branch(self, node, row):
        if self.pairs[node] is None:
            return self.branch_of_bin[node][self.codes[self.feature[node]][row]]
        first, second, cuts = self.pairs[node]
        return branch_of_pair(cuts, 0, *self.values_of((first, second), row))

    def path(self, row, node=0):
        """Nodes that a row passes from a node on."""
        path = [node]
        while self.n_branches[path[-1]]:
            path.append(int(self.first_child[path[-1]] + self.branch(path[-1], row)))
        return path

    def leaf(self, row, node=0):
        return self.path(row, node)[-1]

    def nodes_at(self, depth):
        """Split nodes at some depth, in the order of their rows."""
        level = [0]
        for _ in range(depth):
            level = [child for node in level for child in self.children(node)]
        return np.array([node for node in level if self.n_branches[node]], dtype=np.int32)

    def rows_at(self, node):
        """Rows whose walks pass a node."""
        return [row for row in range(self.n_rows) if node in self.path(row)]


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
        losses, targets = LeafLosses(labels, None, weights, 3 * n_outputs), labels

        def of(row, leaf):
            return weight[row] * sum(table[leaf, label] for label in labels[row])
    else:
        values = rng.choice([-1.0, 0.0, 0.1, 2.5, 90.0], (n_rows, n_outputs))
        table = rng.choice([-1.0, 0.0, 0.1, 2.5], (n_nodes, n_outputs))
        losses = LeafLosses(
            None, values, weights, n_outputs, absolute=kind == "absolute",
            anchors=np.full(n_outputs, 3.0 * 2**20),
        )  # fmt: skip
        targets = values

        def of(row, leaf):
            differences = [abs(values[row, o] - table[leaf, o]) for o in range(n_outputs)]
            return weight[row] * sum(d if kind == "absolute" else d**2 for d in differences)

    return SimpleNamespace(losses=losses, table=table, of=of, targets=targets, weight=weight)


# A power of two that no sum of the losses above exceeds.
ANCHOR = 2.0**26


def numbers(*nodes):
    return np.array(nodes, dtype=np.int32)


# Rows that are sent


def assert_rows_are_where_walks_lead(forest, places, rows=None):
    start, stop = places.start, places.stop
    rows = np.arange(forest.n_rows) if rows is None else rows
    assert_array_equal(np.sort(places.order), np.sort(rows))
    for node in range(forest.n_nodes):
        here = places.order[start[node] : stop[node]]
        expected = [row for row in rows if node in forest.path(row)]
        assert_array_equal(np.sort(here), np.sort(expected))
        at = start[node]
        for child in forest.children(node):
            assert start[child] == at
            at = stop[child]
        assert at == stop[node] or not forest.n_branches[node]


@given(SEEDS, st.sampled_from([0, 1, N_ROWS]))
def test_rows_end_in_the_leaves_that_walks_lead_to(seed, n_rows):
    forest = Forest(seed, n_rows)
    _, places = forest.routed()
    assert_rows_are_where_walks_lead(forest, places)
    # Rows of a leaf keep their order.
    for leaf in np.flatnonzero(np.array(forest.n_branches) == 0):
        assert np.all(np.diff(places.order[places.start[leaf] : places.stop[leaf]]) > 0)


@given(SEEDS, st.integers(0, 60))
def test_some_rows_may_count_more_than_once(seed, n_drawn):
    forest = Forest(seed)
    rows = forest.rng.integers(0, N_ROWS, n_drawn).astype(np.int32)
    _, places = forest.routed(rows)
    assert_rows_are_where_walks_lead(forest, places, rows)


@given(SEEDS)
def test_rows_follow_when_splits_change(seed):
    forest = Forest(seed)
    routed, places = forest.routed()
    changed = forest.nodes_at(1)
    for node in changed:
        if forest.feature[node] >= 0:
            forest.branch_of_bin[node] = forest.branch_of_bin[node][::-1].copy()
            forest.give_split(routed, node)
    routed.send(changed, 1)
    assert_rows_are_where_walks_lead(forest, places)


@given(SEEDS)
def test_rows_go_on_in_a_copy_of_where_they_are(seed):
    forest = Forest(seed)
    routed, before = forest.routed()
    order, sizes = before.order.copy(), before.sizes(forest.n_nodes)
    after = before.copy()
    routed.stand_at(after)
    for node in range(forest.n_nodes):
        if forest.feature[node] >= 0:
            forest.branch_of_bin[node] = forest.branch_of_bin[node][::-1].copy()
        forest.give_split(routed, node)
    routed.send(np.zeros(1, dtype=np.int32), 1)
    assert_array_equal(before.order, order)
    assert before.sizes(forest.n_nodes) == sizes
    assert after.sizes(forest.n_nodes) == forest.routed()[1].sizes(forest.n_nodes)
    with pytest.raises(ValueError, match="not those of the tree"):
        routed.stand_at(NodeRows(N_ROWS + 1))


@given(SEEDS)
def test_a_child_can_take_its_parents_place(seed):
    forest = Forest(seed)
    routed, places = forest.routed()
    only = forest.children(0)[0] if forest.n_branches[0] else 0
    if not forest.n_branches[only]:
        return
    routed.set_leaf(only)
    for name in ("first_child", "n_branches", "feature", "branch_of_bin", "cuts", "pairs"):
        getattr(forest, name)[0] = getattr(forest, name)[only]
    forest.give_split(routed, 0)
    routed.send(numbers(0), 1)
    leaves = [forest.leaf(row) for row in range(N_ROWS)]
    for leaf in range(1, forest.n_nodes):
        if forest.n_branches[leaf] == 0 and leaf in leaves:
            here = places.order[places.start[leaf] : places.stop[leaf]]
            assert_array_equal(np.sort(here), np.flatnonzero(np.array(leaves) == leaf))


def test_many_rows_are_sent_alike_by_any_number_of_threads():
    rng = np.random.default_rng(0)
    n_rows = 40_000
    codes = Columns([rng.integers(0, 9, n_rows).astype(np.uint8) for _ in range(2)], n_rows)
    orders = []
    for n_threads in (1, 2, 5):
        places = NodeRows(n_rows)
        routed = RoutedRows(codes, places, 6, 3)
        routed.set_bins(0, numbers(1, 2, 3), 0, np.arange(9, dtype=np.uint8) % 3)
        routed.set_bins(2, numbers(4, 5), 1, np.arange(9, dtype=np.uint8) // 5)
        routed.send(numbers(0), n_threads)
        orders.append((places.order.copy(), places.start.copy(), places.stop.copy()))
    for one, other in zip(orders[0] * 2, orders[1] + orders[2], strict=True):
        assert_array_equal(one, other)
    assert np.all(codes.array(0)[orders[0][0][: orders[0][2][1]]] % 3 == 0)


# Counts


@given(SEEDS, st.booleans())
def test_pieces_are_counted(seed, is_weighted):
    forest = Forest(seed)
    routed, places = forest.routed()
    weights = forest.rng.choice([0.5, 1.0, 2.0], N_ROWS) if is_weighted else None
    node = int(forest.rng.integers(forest.n_nodes))
    n_rows, weighed, pieces = routed.pieces_below(node, weights)
    assert (weighed is None) == (weights is None)
    rows = forest.rows_at(node)
    below = {step for row in rows for step in forest.path(row, node)}
    for other in range(forest.n_nodes):
        here = [row for row in rows if other in forest.path(row, node)]
        assert n_rows[other] == len(here)
        assert weights is None or weighed[other] == weights[here].sum()
        if other in below and forest.n_branches[other]:
            counts = np.bincount([forest.piece(other, row) for row in here])
            assert_array_equal(np.trim_zeros(pieces[other], "b"), counts)
    split = np.flatnonzero(forest.n_branches).astype(np.int32)
    for number, counts in zip(split, routed.piece_counts(split, 2), strict=True):
        expected = np.bincount([forest.piece(number, row) for row in forest.rows_at(number)],
                               minlength=len(counts))  # fmt: skip
        assert_array_equal(counts, expected)
    assert_array_equal(places.order, forest.routed()[1].order)


# Sums over leaves


@given(SEEDS, st.sampled_from(KINDS), st.integers(1, 3), st.booleans())
def test_leaves_sum_up_their_rows(seed, kind, n_outputs, is_weighted):
    forest = Forest(seed)
    given = random_losses(forest.rng, N_ROWS, forest.n_nodes, kind, n_outputs, is_weighted)
    routed, _ = forest.routed()
    nodes = np.arange(forest.n_nodes, dtype=np.int32)
    sums = routed.leaf_sums(nodes, given.losses, 2)
    totals = routed.leaf_totals(nodes, given.losses, given.table, np.full(len(nodes), ANCHOR), 2)
    assert sums.shape == (forest.n_nodes, given.losses.width)
    for node in nodes:
        rows = forest.rows_at(node)
        expected = np.zeros(given.losses.width)
        for row in rows:
            if kind == "labels":
                expected[given.targets[row]] += given.weight[row]
            else:
                expected += given.weight[row] * np.append(1.0, given.targets[row])
        assert_allclose(sums[node], expected, rtol=1e-9, atol=1e-7)
        assert_allclose(totals[node], sum(given.of(row, node) for row in rows), atol=1e-6)
    if kind != "labels":
        ranges = routed.leaf_ranges(nodes, given.losses, 2)
        for node in nodes:
            values = given.targets[forest.rows_at(node)]
            assert_array_equal(ranges[node, 0], values.min(axis=0, initial=np.inf))
            assert_array_equal(ranges[node, 1], values.max(axis=0, initial=-np.inf))


# Losses of branches


def expected_losses(forest, given, nodes):
    """Sums of nodes, and for each the rows that care with what they lose beyond branch 0."""
    sums, cares = np.zeros((len(nodes), 5)), []
    for number, node in enumerate(nodes):
        care = {}
        for row in forest.rows_at(node):
            leaves = [forest.leaf(row, child) for child in forest.children(node)]
            lost = np.array([rounded(given.of(row, leaf)) for leaf in leaves])
            added = np.zeros(3)
            added[: len(lost) - 1] = lost[1:] - lost[0]
            sums[number] += [lost[forest.branch(node, row)], lost[0], *added]
            if added.any():
                care[row] = added
        cares.append(care)
    return sums, cares


def rounded(loss):
    return (loss + ANCHOR) - ANCHOR


@given(
    SEEDS,
    st.integers(0, 2),
    st.sampled_from(KINDS),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from([0, 1, 5, N_ROWS]),
)
def test_branches_cost_the_loss_of_the_leaf_below(
    seed, depth, kind, n_outputs, is_weighted, n_rows
):
    forest = Forest(seed, n_rows)
    given = random_losses(forest.rng, n_rows, forest.n_nodes, kind, n_outputs, is_weighted)
    routed, _ = forest.routed()
    nodes = forest.nodes_at(depth)
    anchors = np.full(len(nodes), ANCHOR)
    sums, n_care, least = routed.branch_losses(nodes, given.losses, given.table, anchors, 1)
    expected, cares = expected_losses(forest, given, nodes)
    # A weighted loss may be rounded twice.
    assert_allclose(sums, expected, atol=1e-6)
    at_best = [sum(min(0.0, *lost) for lost in care.values()) for care in cares]
    assert_allclose(least, at_best, atol=1e-6)
    for (rows, losses), n, care in zip(routed.care_sets(), n_care, cares, strict=True):
        assert len(rows) == n
        found = dict(zip(rows.tolist(), losses, strict=True))
        for row in care.keys() | found.keys():
            close = care.get(row, np.zeros(3))
            assert_allclose(found.get(row, np.zeros(3)), close, atol=1e-7)
    check_cells(forest, routed, n_care)


def check_cells(forest, routed, n_care):
    """Cells are what the care sets lose by bin."""
    offsets = np.cumsum([0, *forest.n_bins])
    room = np.minimum(n_care[:, None], np.diff(offsets))
    starts = room.cumsum().reshape(room.shape) - room
    n_cells = np.full(room.shape, -1, dtype=np.int32)
    bins = np.full(room.sum(), -1, dtype=np.int32)
    losses = np.full((len(bins), 3), np.nan)
    cells = starts, n_cells, bins, losses
    routed.loss_cells(0, len(n_care), offsets, cells, 0, 3, 1)
    for node, (rows, lost) in enumerate(routed.care_sets()):
        for feature, codes in enumerate(forest.codes):
            expected, place = np.unique(codes[rows], return_inverse=True)
            sums = np.zeros((len(expected), 3))
            np.add.at(sums, place, lost)
            cells = slice(starts[node, feature], starts[node, feature] + n_cells[node, feature])
            assert_array_equal(bins[cells], expected)
            assert_array_equal(losses[cells], sums)
    check_some_cells(forest, routed, n_cells, forest.rng.random(len(n_care)) < 0.5)


def check_some_cells(forest, routed, n_cells, wanted):
    """Nodes that are not wanted have no cells and need no room, however many are summed at once."""
    offsets, first = np.cumsum([0, *forest.n_bins]), 0
    wanted, n_care = wanted.view(np.uint8), np.array([len(rows) for rows, _ in routed.care_sets()])
    max_cells = int(forest.rng.integers(0, 60))
    while first < len(wanted):
        last, n_rows, arrays = routed.room_for_cells(first, offsets, wanted, max_cells)
        starts, found, bins, _ = arrays
        assert n_rows == (n_care * wanted)[first:last].sum()
        assert first < last <= len(wanted)
        assert last == first + 1 or len(bins) <= max_cells
        assert len(starts) == len(found) == last - first
        routed.loss_cells(first, last, offsets, arrays, 0, 3, 1, wanted[first:last])
        assert_array_equal(found, n_cells[first:last] * wanted[first:last, None])
        first = last


@pytest.mark.parametrize("n_bins", [3, 60, 700, 70_000])
@pytest.mark.parametrize("n_rows", [1, 20, 300, 20_000])
def test_cells_are_found_among_few_and_many_bins(n_bins, n_rows):
    rng = np.random.default_rng(n_bins + n_rows)
    codes = rng.integers(0, n_bins, n_rows).astype(np.min_scalar_type(n_bins))
    places = NodeRows(n_rows)
    routed = RoutedRows(Columns([codes], n_rows), places, 3, 2)
    routed.set_bins(0, numbers(1, 2), 0, (np.arange(n_bins + 1) % 2).astype(np.uint8))
    routed.send(numbers(0), 1)
    labels = rng.integers(0, 3, (n_rows, 1))
    losses = LeafLosses(labels, None, None, 3)
    table = np.array([[0, 0, 0], [0, 1, 0.5], [1, 0, 0.5]])
    _, n_care, _ = routed.branch_losses(numbers(0), losses, table, np.array([2.0**20]), 1)
    care = labels[:, 0] < 2
    assert n_care == care.sum()
    n_cells = np.zeros((1, 1), dtype=np.int32)
    bins, found = np.empty(n_rows, dtype=np.int32), np.empty((n_rows, 1))
    offsets = np.array([0, n_bins + 1])
    cells = np.zeros((1, 1), int), n_cells, bins, found
    routed.loss_cells(0, 1, offsets, cells, 0, 1, 1)
    expected = np.unique(codes[care])
    assert_array_equal(bins[: n_cells[0, 0]], expected)
    sums = np.bincount(codes[care], 1.0 - 2 * labels[care, 0], minlength=n_bins)
    assert_array_equal(found[: n_cells[0, 0], 0], sums[expected])


@given(SEEDS, st.sampled_from(KINDS), st.booleans())
def test_sums_depend_neither_on_the_order_of_rows_nor_on_threads(seed, kind, is_weighted):
    n_rows = 200
    forest = Forest(seed, n_rows)
    given = random_losses(forest.rng, n_rows, forest.n_nodes, kind, 2, is_weighted)
    nodes = forest.nodes_at(1)
    leaves = np.arange(forest.n_nodes, dtype=np.int32)
    anchors, of_leaves = np.full(len(nodes), ANCHOR), np.full(len(leaves), ANCHOR)
    results = []
    for n_threads, order in [(1, None), (3, forest.rng.permutation(n_rows).astype(np.int32))]:
        routed, _ = forest.routed(order, n_threads=n_threads)
        sums, n_care, _ = routed.branch_losses(nodes, given.losses, given.table, anchors, n_threads)
        totals = routed.leaf_totals(leaves, given.losses, given.table, of_leaves, n_threads)
        weighed = routed.leaf_sums(leaves, given.losses, n_threads)
        check_cells(forest, routed, n_care)
        results.append([sums, n_care, totals, weighed[:, 1:] if kind != "labels" else sums])
    for one, other in zip(*results, strict=True):
        assert_array_equal(one, other)


@given(SEEDS)
def test_branches_that_lead_to_equal_leaves_leave_rows_unmoved(seed):
    forest = Forest(seed)
    losses = LeafLosses(forest.rng.integers(0, 3, (N_ROWS, 1)), None, None, 3)
    table = np.tile([0.1, 0.7, 1.3], (forest.n_nodes, 1))
    routed, _ = forest.routed()
    nodes = forest.nodes_at(0)
    sums, n_care, _ = routed.branch_losses(nodes, losses, table, np.full(len(nodes), ANCHOR), 1)
    assert not n_care.any()
    assert_array_equal(sums[:, 0], sums[:, 1])
    assert_array_equal(sums[:, 2:], 0.0)


@pytest.mark.parametrize("max_branches", [2, 3, 4])
@pytest.mark.parametrize("n_rows", [100, 127, 128, 3000])
def test_features_summed_two_at_a_time_have_the_cells_of_each(max_branches, n_rows):
    rng = np.random.default_rng(max_branches * n_rows)
    # The last feature is alone; one has more bins than bytes can tell, one more than it needs.
    n_bins = np.array([9, 40, 300, 9, 9])
    codes = [rng.integers(0, n, n_rows).astype(np.min_scalar_type(n)) for n in n_bins]
    routed = RoutedRows(Columns(codes, n_rows), NodeRows(n_rows), 1 + max_branches, max_branches)
    children = np.arange(1, 1 + max_branches, dtype=np.int32)
    routed.set_bins(0, children, 0, (np.arange(10) % max_branches).astype(np.uint8))
    routed.send(numbers(0), 1)
    losses = LeafLosses(rng.integers(0, 3, (n_rows, 1)), None, None, 3)
    table = rng.integers(0, 9, (1 + max_branches, 3)) / 8
    routed.branch_losses(numbers(0), losses, table, np.array([2.0**20]), 1)
    offsets = np.cumsum([0, 10, 4000, 301, 10, 10])
    ((care, of_rows),) = routed.care_sets()
    _, _, arrays = routed.room_for_cells(0, offsets, np.ones(1, dtype=np.uint8), 10**6)
    starts, n_cells, bins, found = arrays
    for n_threads in (1, 2):
        routed.loss_cells(0, 1, offsets, arrays, 0, 5, n_threads)
        for feature, its_codes in enumerate(codes):
            cells = slice(starts[0, feature], starts[0, feature] + n_cells[0, feature])
            expected = np.unique(its_codes[care])
            assert_array_equal(bins[cells], expected)
            for branch in range(max_branches - 1):
                sums = np.bincount(its_codes[care], of_rows[:, branch])
                assert_array_equal(found[cells, branch], sums[expected])


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("repeats", [False, True])
def test_rows_are_where_splits_send_them_after_many_changes(n_threads, repeats):
    rng, n_rows = np.random.default_rng(n_threads), 40_000
    codes = rng.integers(0, 8, (3, n_rows)).astype(np.uint8)
    rows = rng.integers(0, n_rows, n_rows).astype(np.int32) if repeats else None
    places = NodeRows(n_rows, rows)
    routed = RoutedRows(Columns(list(codes), n_rows), places, 7, 2)
    given = np.arange(n_rows) if rows is None else rows
    splits = {}

    def is_at(node):
        if node == 0:
            return np.ones(n_rows, dtype=bool)
        parent = (node - 1) // 2
        feature, branch_of_bin = splits[parent]
        return is_at(parent) & (branch_of_bin[codes[feature]] == (node - 1) % 2)

    for step in range(25):
        # First the whole tree, then a node at a time, or two of which one is below the other.
        changed = [0, 1, 2] if step == 0 else sorted({*rng.integers(0, 3, 1 + step % 2).tolist()})
        for node in changed:
            splits[node] = int(rng.integers(3)), rng.integers(0, 2, 8).astype(np.uint8)
            routed.set_bins(node, numbers(2 * node + 1, 2 * node + 2), *splits[node])
        routed.send(numbers(0) if 0 in changed else numbers(*changed), n_threads)
        for node in range(7):
            here = np.sort(places.order[places.start[node] : places.stop[node]])
            assert_array_equal(here, np.sort(given[is_at(node)[given]]))


def test_rows_of_large_leaves_are_sorted_after_some_moves():
    rng, n_rows = np.random.default_rng(0), 20_000
    codes = rng.integers(0, 8, (2, n_rows)).astype(np.uint8)
    places = NodeRows(n_rows, rng.permutation(n_rows).astype(np.int32))
    routed = RoutedRows(Columns(list(codes), n_rows), places, 3, 2)
    for step in range(3):
        routed.set_bins(0, numbers(1, 2), step % 2, np.arange(8, dtype=np.uint8) // 4)
        routed.send(numbers(0), 1)
    for leaf in (1, 2):
        rows = places.order[places.start[leaf] : places.stop[leaf]]
        assert len(rows) > 5_000
        assert np.all(np.diff(rows) > 0)


def test_losses_are_those_of_the_table():
    places, columns = NodeRows(3), Columns([np.array([0, 1, 0], dtype=np.uint8)], 3)
    routed = RoutedRows(columns, places, 3, 2)
    routed.set_bins(0, numbers(1, 2), 0, np.array([0, 1], dtype=np.uint8))
    routed.send(numbers(0), 1)
    losses = LeafLosses([[1], [0], [1]], None, [1.0, 2.0, 3.0], 3)
    table = np.array([[0, 0, 0], [1, 2, 8], [4, 1, 8.0]])
    sums, n_care, _ = routed.branch_losses(numbers(0), losses, table, np.array([64.0]), 1)
    # Rows lose 2, 2 and 6 in branch 0; the second one takes branch 1, and loses 8.
    assert_array_equal(sums, [[16, 10, 2]])
    assert_array_equal(n_care, [3])
    ((rows, others),) = routed.care_sets()
    assert dict(zip(rows.tolist(), others[:, 0], strict=True)) == {0: -1.0, 1: 6.0, 2: -3.0}
    # Once rows are sent again, these are forgotten.
    routed.send(numbers(0), 1)
    assert routed.care_sets() == []


# What does not fit


def plain(n_rows=3):
    """A tree of a node with two branches over two bins."""
    codes = (np.arange(n_rows) % 2).astype(np.uint8)
    routed = RoutedRows(Columns([codes, np.zeros(n_rows)], n_rows), NodeRows(n_rows), 5, 2)
    routed.set_bins(0, numbers(1, 2), 0, np.array([0, 1], dtype=np.uint8))
    routed.send(numbers(0), 1)
    return routed


def one_cut(n_rows, branch, missing_branch):
    columns = Columns([np.zeros(n_rows), np.zeros(n_rows)], n_rows)
    targets = [np.array(target, dtype=np.int32) for target in ([-1], [-2], branch)]
    return pair_cuts(columns, 0, 1, [], [], np.ones(1), np.ones(1), np.ones(1), *targets,
                    missing_branch)  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_nodes": 0}, "out of range"),
        ({"max_branches": 1}, "out of range"),
        ({"max_branches": 255}, "out of range"),
        ({"bins": Columns([np.zeros(3)], 3)}, "does not hold bins"),
        ({"bins": Columns([None], 3)}, "does not hold bins"),
        ({"bins": Columns([], 3)}, "does not hold bins"),
        ({"rows": NodeRows(4)}, "fewer rows of bins"),
    ],
)
def test_rows_that_cannot_be_routed_are_refused(change, message):
    good = {
        "bins": Columns([np.zeros(3, dtype=np.uint8)], 3),
        "rows": NodeRows(3),
        "n_nodes": 3,
        "max_branches": 2,
    }
    RoutedRows(**good)
    with pytest.raises(ValueError, match=message):
        RoutedRows(**good | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node": -1}, "between 0"),
        ({"node": 5}, "between 0"),
        ({"children": numbers(1)}, "number of branches"),
        ({"children": numbers(1, 2, 3)}, "number of branches"),
        ({"children": numbers(0, 1)}, "come after their parents"),
        ({"children": numbers(4, 5)}, "come after their parents"),
        ({"children": numbers(2, 2)}, "children differ"),
        ({"feature": 1}, "not a column of bins"),
        ({"feature": -1}, "not a column of bins"),
        ({"branch_of_bin": np.array([0], dtype=np.uint8)}, "every bin needs"),
        ({"branch_of_bin": np.array([0, 2], dtype=np.uint8)}, "branches of bins exist"),
    ],
)
def test_splits_that_cannot_be_walked_are_refused(change, message):
    good = {
        "node": 0,
        "children": numbers(1, 2),
        "feature": 0,
        "branch_of_bin": np.array([0, 1], dtype=np.uint8),
    }
    plain().set_bins(**good)
    with pytest.raises(ValueError, match=message):
        plain().set_bins(**good | change)


@pytest.mark.parametrize(
    ("cuts", "message"),
    [
        (one_cut(2, [0, 1], 0), "as many rows as bins"),
        (one_cut(3, [0, 2], 0), "branches of regions exist"),
        (one_cut(3, [0, -1], 0), "branches of regions exist"),
        (one_cut(3, [0, 1], 2), "branches of regions exist"),
        (one_cut(3, [0, 1], -1), "branches of regions exist"),
    ],
)
def test_cuts_that_cannot_be_walked_are_refused(cuts, message):
    plain().set_cuts(0, numbers(1, 2), one_cut(3, [0, 1], 1))
    with pytest.raises(ValueError, match=message):
        plain().set_cuts(0, numbers(1, 2), cuts)


def test_a_node_has_one_parent():
    routed = plain()
    routed.set_bins(1, numbers(2, 3), 0, np.array([0, 1], dtype=np.uint8))
    with pytest.raises(ValueError, match="two parents"):
        routed.send(numbers(0), 1)


@pytest.mark.parametrize(
    ("labels", "values", "weights", "n_columns", "message"),
    [
        (None, None, None, 1, "either labels or values"),
        ([[0]], [[0.0]], None, 1, "either labels or values"),
        ([0], None, None, 1, "must be .n_rows, n_outputs."),
        (None, np.empty((3, 0)), None, 0, "must be .n_rows, n_outputs."),
        ([[0], [-1]], None, None, 1, "labels must be columns"),
        ([[0], [2]], None, None, 2, "labels must be columns"),
        ([[0], [1]], None, [1.0], 2, "weights must be"),
        (None, np.ones((3, 2)), None, 1, "a column for each"),
        (np.empty((0, 1)), None, None, 0, "a column for each"),
    ],
)
def test_targets_that_do_not_fit_are_refused(labels, values, weights, n_columns, message):
    with pytest.raises(ValueError, match=message):
        LeafLosses(labels, values, weights, n_columns)


def test_anchors_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="anchors"):
        LeafLosses(None, np.ones((3, 2)), None, 2, anchors=[1.0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": numbers(5)}, "between 0"),
        ({"nodes": numbers(-1)}, "between 0"),
        ({"nodes": numbers(1)}, "leaves have no branches"),
        ({"nodes": numbers(0, 0), "anchors": np.ones(2)}, "order of their rows"),
        ({"losses": LeafLosses([[0]] * 4, None, None, 2)}, "numbers of rows"),
        ({"losses": LeafLosses([[0]] * 3, None, None, 3)}, "line for each node"),
        ({"table": np.zeros((3, 2))}, "line for each node"),
        ({"table": np.zeros((5, 3))}, "line for each node"),
        ({"anchors": np.zeros(0)}, "an anchor"),
        ({"n_threads": 0}, "n_threads"),
        ({"n_threads": -1}, "n_threads"),
    ],
)
def test_levels_that_do_not_fit_are_refused(change, message):
    good = {
        "nodes": numbers(0),
        "losses": LeafLosses([[0], [1], [0]], None, None, 2),
        "table": np.zeros((5, 2)),
        "anchors": np.ones(1),
        "n_threads": 1,
    }
    plain().branch_losses(**good)
    with pytest.raises(ValueError, match=message):
        plain().branch_losses(**good | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"last": 2}, "nodes of the level"),
        ({"first": -1}, "nodes of the level"),
        ({"n_threads": 0}, "n_threads"),
        ({"starts": np.zeros((1, 1), dtype=np.int64)}, "do not fit the nodes"),
        ({"n_cells": np.zeros((2, 2), dtype=np.int32)}, "do not fit the nodes"),
        ({"losses": np.zeros((3, 2))}, "do not fit the nodes"),
        ({"losses": np.zeros((2, 1))}, "do not fit the nodes"),
        ({"starts": np.array([[2, 0]])}, "no room"),
        ({"starts": np.array([[-1, 0]])}, "no room"),
        ({"last_feature": 2}, "does not hold bins"),
        ({"offsets": np.array([0, 1, 2])}, "more bins"),
        ({"offsets": np.array([0, 2])}, "out of range"),
        ({"wanted": np.ones(2, dtype=np.uint8)}, "wanted or not"),
    ],
)
def test_cells_that_do_not_fit_are_refused(change, message):
    routed = plain()
    losses = LeafLosses([[0], [1], [0]], None, None, 2)
    table = np.arange(10.0).reshape(5, 2)
    routed.branch_losses(numbers(0), losses, table, np.array([64.0]), 1)
    good = {
        "first": 0,
        "last": 1,
        "offsets": np.array([0, 2, 4]),
        "starts": np.zeros((1, 2), dtype=np.int64),
        "n_cells": np.zeros((1, 2), dtype=np.int32),
        "bin_of_cell": np.zeros(3, dtype=np.int32),
        "losses": np.zeros((3, 1)),
        "first_feature": 0,
        "last_feature": 1,
        "n_threads": 1,
    }
    sum_cells(routed, **good)
    with pytest.raises(ValueError, match=message):
        sum_cells(routed, **good | change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"first": 2}, "wanted or not"),
        ({"first": -1}, "wanted or not"),
        ({"wanted": np.ones(2, dtype=np.uint8)}, "wanted or not"),
        ({"offsets": np.array([0, 2])}, "needs its bins"),
    ],
)
def test_room_for_cells_of_nothing_is_refused(change, message):
    routed = plain()
    losses = LeafLosses([[0], [1], [0]], None, None, 2)
    routed.branch_losses(numbers(0), losses, np.zeros((5, 2)), np.array([64.0]), 1)
    good = {
        "first": 0,
        "offsets": np.array([0, 2, 4]),
        "wanted": np.ones(1, dtype=np.uint8),
        "max_cells": 9,
    }
    routed.room_for_cells(**good)
    with pytest.raises(ValueError, match=message):
        routed.room_for_cells(**good | change)


def test_other_arguments_that_do_not_fit_are_refused():
    routed = plain()
    labels = LeafLosses([[0], [1], [0]], None, None, 2)
    for call in (
        lambda: routed.send(numbers(5), 1),
        lambda: routed.send(numbers(0), 0),
        lambda: routed.set_leaf(5),
        lambda: routed.pieces_below(-1, None),
        lambda: routed.pieces_below(0, np.ones(2)),
        lambda: routed.piece_counts(numbers(9), 1),
        lambda: routed.leaf_sums(numbers(9), labels, 1),
        lambda: routed.leaf_ranges(numbers(0), labels, 1),
        lambda: routed.leaf_totals(numbers(0), labels, np.zeros((5, 2)), np.ones(2), 1),
    ):
        with pytest.raises(ValueError, match=r"\w"):
            call()
