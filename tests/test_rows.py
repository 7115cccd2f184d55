"""Rows of nodes: splits send each row where its naive twin does, and lose none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import spreads
from naive_pairs import pair_cuts
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.rows import NodeRows
from shapetree.data._sums import bound_of, exact_unit, local_numbers

SEEDS = st.integers(0, 2**32 - 1)
THREADS = st.sampled_from([1, 2, 5])
# Rows that one thread sends at a time.
BLOCK = 8192


def ints(*numbers):
    return np.array(numbers, dtype=np.int32)


def branches(*numbers):
    return np.array(numbers, dtype=np.uint8)


class NaiveRows:
    """The rows of each node as a list."""

    def __init__(self, rows):
        self.rows = {0: list(rows)}

    def split(self, node, first_child, n_branches, branch_of_row):
        children = [[] for _ in range(n_branches)]
        for row in self.rows[node]:
            children[branch_of_row[row]].append(row)
        self.rows.update(enumerate(children, first_child))


def rows_of(rows, node):
    return rows.order[rows.start[node] : rows.stop[node]].tolist()


class Table:
    """Columns of bins of all dtypes, two columns of numbers, and random splits of them."""

    def __init__(self, rng, n_rows):
        self.rng, self.n_rows = rng, n_rows
        self.codes = [
            rng.integers(0, 6, n_rows).astype(t) for t in (np.uint8, np.uint16, np.uint32)
        ]
        self.bins = Columns(self.codes, n_rows)
        self.numbers = Columns([rng.normal(size=n_rows), rng.normal(size=n_rows)], n_rows)

    def random_split(self):
        """How rows are sent, the number of branches and the branch of every row."""
        n_branches = int(self.rng.integers(1, 6))
        if self.rng.random() < 0.3:
            regions = self.rng.integers(0, n_branches, 2).astype(np.int32)
            slope = np.array([self.rng.normal()])
            cut = np.ones(1), slope, np.zeros(1), ints(-1), ints(-2), regions
            cuts = pair_cuts(self.numbers, 0, 1, np.empty(0), np.empty(0), *cut, 0)
            every = np.arange(self.n_rows, dtype=np.int32)
            return cuts, n_branches, cuts.branches(every, 1)
        feature = int(self.rng.integers(3))
        branch_of_bin = self.rng.integers(0, n_branches, 6).astype(np.uint8)
        return (feature, branch_of_bin), n_branches, branch_of_bin[self.codes[feature]]


def split(rows, table, nodes, first_child, splits, n_threads=1):
    ways, n_branches, _ = zip(*splits, strict=True)
    nodes, first_child, n_branches = ints(*nodes), ints(*first_child), ints(*n_branches)
    rows.split(table.bins, nodes, first_child, n_branches, list(ways), n_threads)


def grow_both(rng, table, rows, naive, n_levels, n_threads):
    """Split some nodes of each level, and compare with the naive twin."""
    level, n_nodes = [0], 1
    for _ in range(n_levels):
        assert rows.sizes(n_nodes) == [len(naive.rows[node]) for node in range(n_nodes)]
        nodes = [node for node in level if rng.random() < 0.8]
        splits = [table.random_split() for _ in nodes]
        if not nodes:
            return
        sizes = [n_branches for _, n_branches, _ in splits]
        first_child = n_nodes + np.cumsum(sizes) - sizes
        split(rows, table, nodes, first_child, splits, n_threads)
        for node, first, one in zip(nodes, first_child.tolist(), splits, strict=True):
            naive.split(node, first, *one[1:])
        level = list(range(n_nodes, n_nodes + sum(sizes)))
        n_nodes += sum(sizes)
        for node in level:
            assert rows_of(rows, node) == naive.rows[node]


@given(SEEDS, st.integers(0, 60), st.sampled_from(["all", "some", "repeated"]), THREADS)
def test_splits_send_rows_as_lists_do(seed, n_rows, kind, n_threads):
    rng = np.random.default_rng(seed)
    table = Table(rng, n_rows)
    chosen = None
    if kind == "some":
        chosen = rng.permutation(n_rows)[: n_rows // 2].astype(np.int32)
    elif kind == "repeated" and n_rows:
        chosen = rng.integers(0, n_rows, 2 * n_rows).astype(np.int32)
    rows = NodeRows(n_rows, chosen)
    naive = NaiveRows(range(n_rows) if chosen is None else chosen.tolist())
    every = sorted(rows.order.tolist())
    grow_both(rng, table, rows, naive, 4, n_threads)
    assert sorted(rows.order.tolist()) == every


@pytest.mark.parametrize("n_rows", [BLOCK, BLOCK + 1, 3 * BLOCK + 17])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_nodes_of_many_blocks_are_split_as_lists_are(n_rows, n_threads):
    rng = np.random.default_rng(n_rows)
    table, rows = Table(rng, n_rows), NodeRows(n_rows)
    grow_both(rng, table, rows, NaiveRows(range(n_rows)), 3, n_threads)
    assert_array_equal(np.sort(rows.order), np.arange(n_rows))


def test_a_node_may_be_split_again():
    """A look ahead sends the rows to children that are then forgotten."""
    table, rows = Table(np.random.default_rng(0), 50), NodeRows(50)
    for _ in range(3):
        one = table.random_split()
        split(rows, table, [0], [1], [one])
        for branch in range(one[1]):
            assert sorted(rows_of(rows, 1 + branch)) == np.flatnonzero(one[2] == branch).tolist()


def test_there_is_room_for_many_nodes():
    table, rows = Table(np.random.default_rng(0), 9), NodeRows(9)
    one = table.random_split()
    split(rows, table, [0], [300], [one])
    held = [row for branch in range(one[1]) for row in rows_of(rows, 300 + branch)]
    assert sorted(held) == list(range(9))


@pytest.mark.parametrize("n_nodes", [-1, 65])
def test_nodes_that_do_not_exist_have_no_size(n_nodes):
    with pytest.raises(IndexError, match="there is no node"):
        NodeRows(3).sizes(n_nodes)


def test_no_nodes_may_be_split():
    rows = NodeRows(4)
    none = ints()
    rows.split(Table(np.random.default_rng(0), 4).bins, none, none, none, [], 1)
    assert_array_equal(rows.order, range(4))


@pytest.mark.parametrize("rows", [[-1], [0, 5], [2**31 - 1]])
def test_rows_that_do_not_exist_are_refused(rows):
    with pytest.raises(IndexError, match="rows must lie between 0 and 4"):
        NodeRows(5, ints(*rows))


def test_rows_that_are_not_whole_numbers_are_refused():
    with pytest.raises(TypeError, match="rows must be whole numbers"):
        NodeRows(5, np.array([0.0, np.nan]))


WAYS = [(0, branches(0, 1, 1)), (0, branches(0, 1, 0))]


def valid_split():
    """Arguments that split the root of five rows, and a node of it."""
    codes = [np.array([0, 1, 2, 1, 0], dtype=np.uint8), np.zeros(5)]
    return {
        "bins": Columns(codes, 5),
        "nodes": ints(1, 2),
        "first_child": ints(4, 6),
        "n_branches": ints(2, 2),
        "ways": WAYS,
        "n_threads": 1,
    }


def other_cuts(n_rows):
    numbers = Columns([np.zeros(n_rows)] * 2, n_rows)
    cut = np.ones(1), np.ones(1), np.zeros(1), ints(-1), ints(-2), ints(0, 1)
    return pair_cuts(numbers, 0, 1, np.empty(0), np.empty(0), *cut, 0)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("n_threads", 0, ValueError, "n_threads must be at least 1"),
        ("nodes", ints(1), ValueError, "every node needs a split"),
        ("nodes", ints(1, -1), IndexError, "there is no node -1"),
        ("nodes", ints(1, 64), IndexError, "there is no node 64"),
        ("nodes", ints(1, 1), ValueError, "node 1 is to be split twice"),
        ("nodes", ints(1, 0), ValueError, "must not share rows"),
        ("first_child", ints(4), ValueError, "every node needs a split"),
        ("first_child", ints(4, 5), ValueError, "node 5 cannot become a child"),
        ("first_child", ints(4, 1), ValueError, "node 1 cannot become a child"),
        ("first_child", ints(2, 4), ValueError, "node 2 cannot become a child"),
        ("first_child", ints(4, 0), ValueError, "which are not the root"),
        ("first_child", ints(4, -3), ValueError, "which are not the root"),
        ("n_branches", ints(2, 0), ValueError, "1 to 254 children"),
        ("n_branches", ints(2, 255), ValueError, "1 to 254 children"),
        ("n_branches", ints(2, 1), IndexError, "a branch is out of range"),
        ("ways", WAYS[:1], ValueError, "every node needs a split"),
        ("ways", [WAYS[0], (2, branches(0, 1, 0))], ValueError, "2 is not a column of bins"),
        ("ways", [WAYS[0], (-1, branches(0, 1, 0))], ValueError, "-1 is not a column of bins"),
        ("ways", [WAYS[0], (1, branches(0, 1, 0))], ValueError, "1 is not a column of bins"),
        ("ways", [WAYS[0], (0, None)], ValueError, "not a column of bins"),
        ("ways", [WAYS[0], (0, branches(0, 1))], ValueError, "every bin needs"),
        ("ways", [WAYS[0], (0, branches(0, 2, 1))], IndexError, "out of range"),
        ("ways", [WAYS[0], (0, branches(0, 255, 1))], IndexError, "out of range"),
        ("ways", [WAYS[0], None], TypeError, "not iterable"),
        ("ways", [WAYS[0], other_cuts(4)], ValueError, "as many rows as bins"),
        ("bins", Columns([np.zeros(4, dtype=np.uint8)], 4), ValueError, "fewer rows of bins"),
    ],
)
def test_splits_that_do_not_fit_are_refused_and_rows_stay_as_they_were(name, value, error, message):
    arguments = valid_split()
    rows = NodeRows(5)
    one = {"nodes": ints(0), "first_child": ints(1), "n_branches": ints(3)}
    rows.split(**arguments | one | {"ways": [(0, branches(0, 1, 2))]})
    before = [rows_of(rows, node) for node in range(len(rows.start))]
    with pytest.raises(error, match=message):
        rows.split(**arguments | {name: value})
    assert [rows_of(rows, node) for node in range(len(before))] == before
    rows.split(**arguments)
    assert [rows_of(rows, node) for node in range(1, 8)] == [
        [0, 4], [1, 3], [2], [0, 4], [], [], [1, 3],
    ]  # fmt: skip


# Spreads


@st.composite
def spread_problems(draw):
    """Targets, weights and centres of some nodes; the sums of what they differ are exact."""
    rng = np.random.default_rng(draw(SEEDS))
    n_rows, n_outputs, n_nodes = rng.integers(1, 30), rng.integers(1, 4), rng.integers(1, 5)
    y = rng.normal(size=(n_rows, n_outputs))
    weights = rng.exponential(size=n_rows) if draw(st.booleans()) else None
    centres = rng.normal(size=(n_nodes, n_outputs))
    at = rng.integers(0, n_nodes, n_rows)
    return y, weights, centres, at, draw(st.booleans())


def spreads_by_nodes(y, weights, centres, at, absolute, order, unit):
    """What the kernel says of nodes 1, 2, ..., to which rows were sent by `at`."""
    n_nodes, n_rows = centres.shape[0], len(y)
    rows = NodeRows(n_rows, order.astype(np.int32))
    bins = Columns([at.astype(np.uint8)], n_rows)
    ways = [(0, np.arange(n_nodes, dtype=np.uint8))]
    rows.split(bins, ints(0), ints(1), ints(n_nodes), ways, 1)
    nodes = np.arange(1, n_nodes + 1, dtype=np.int32)
    return spreads(rows, nodes, 10 * y, y, weights, centres, absolute, unit)


@given(spread_problems(), SEEDS)
def test_spreads_equal_their_naive_twin_in_any_order(problem, seed):
    y, weights, centres, at, absolute = problem
    differences = y - centres[at]
    losses = (np.abs(differences) if absolute else differences**2).sum(axis=1)
    losses = losses if weights is None else losses * weights
    unit = exact_unit(bound_of(local_numbers(losses)))
    order = np.arange(len(y))
    least, greatest, sums = spreads_by_nodes(*problem, order, unit)
    for node in range(len(centres)):
        here = at == node
        if here.any():
            assert_array_equal(least[node], 10 * y[here].min(axis=0))
            assert_array_equal(greatest[node], 10 * y[here].max(axis=0))
        else:
            assert np.all(least[node] == np.inf)
            assert np.all(greatest[node] == -np.inf)
        assert_allclose(sums[node], losses[here].sum(), atol=1e-9)
    shuffled = np.random.default_rng(seed).permutation(order)
    for one, other in zip(
        spreads_by_nodes(*problem, order, unit),
        spreads_by_nodes(*problem, shuffled, unit),
        strict=True,
    ):
        assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("nodes", ints(0, -1), IndexError, "there is no node -1"),
        ("nodes", ints(0, 64), IndexError, "there is no node 64"),
        ("y", np.zeros((2, 2)), ValueError, "every row needs a value"),
        ("standardised", np.zeros((4, 2)), ValueError, "every row needs a value"),
        ("standardised", np.zeros((3, 1)), ValueError, "every row needs a value"),
        ("weights", np.ones(2), ValueError, "every row needs a value and a weight"),
        ("centres", np.zeros((1, 2)), ValueError, "every node needs a centre"),
        ("centres", np.zeros((2, 1)), ValueError, "every node needs a centre"),
        ("unit", 0.0, ValueError, "the unit must be positive"),
        ("unit", np.nan, ValueError, "the unit must be positive"),
    ],
)
def test_spreads_of_what_does_not_fit_are_refused(name, value, error, message):
    arguments = {
        "rows": NodeRows(3),
        "nodes": ints(0, 1),
        "y": np.zeros((3, 2)),
        "standardised": np.zeros((3, 2)),
        "weights": np.ones(3),
        "centres": np.zeros((2, 2)),
        "absolute": False,
        "unit": 1.0,
    }
    spreads(**arguments)
    with pytest.raises(error, match=message):
        spreads(**arguments | {name: value})


def test_rows_cannot_be_fewer_than_none():
    for make in (lambda: NodeRows(-(2**63), ints(0)), lambda: NodeRows(-1)):
        with pytest.raises(ValueError, match="must not be negative"):
            make()
    with pytest.raises(ValueError, match="must not be negative"):
        Columns([None], -(2**63))


def test_rows_may_be_at_several_roots():
    rows = NodeRows(4, np.array([2, 0, 3, 3, 1]), [2, 0, 3])
    assert rows.sizes(3) == [2, 0, 3]
    bins = Columns([np.array([0, 1, 0, 1], dtype=np.uint8)], 4)
    way = (0, np.array([0, 1, 0], dtype=np.uint8))
    nodes, first, both = (np.array(values, dtype=np.int32) for values in ([0, 2], [3, 5], [2, 2]))
    rows.split(bins, nodes, first, both, [way, way], 1)
    found = [rows.order[rows.start[node] : rows.stop[node]].tolist() for node in range(3, 7)]
    assert found == [[2, 0], [], [], [3, 3, 1]]


@pytest.mark.parametrize("sizes", [[], [1, 1], [-1, 4], [3, 1]])
def test_roots_that_do_not_have_all_rows_are_refused(sizes):
    with pytest.raises(ValueError, match="the roots must have all rows"):
        NodeRows(3, None, sizes)
