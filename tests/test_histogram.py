"""Histograms sum what their naive twins sum, and siblings are had by subtraction."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import samples
from numpy.testing import assert_allclose, assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.histogram import (
    Targets,
    build_cells,
    build_histograms,
    join_cells,
    room_for_sums,
    sum_nodes,
)
from shapetree._core.search import BinSplit
from shapetree._threads import VISITS_PER_CALL, feature_chunks
from shapetree.data._statistics import Statistics
from shapetree.grow import _histograms
from shapetree.grow._histograms import LevelHistograms
from shapetree.grow._nodes import GrownTree, Level
from shapetree.grow._row_holder import Histograms

SEEDS = st.integers(0, 2**32 - 1)
DTYPES = [np.uint8, np.uint16, np.uint32]
# Of so many bins, cells are found by sorting.
MANY_BINS = 300


class Problem:
    """A sample with three columns of bins, of all dtypes, and rows of some nodes."""

    def __init__(self, sample, rng, n_nodes, most_bins=4):
        self.sample, self.targets = sample, sample.targets
        self.n = len(sample.piece)
        self.n_bins = rng.integers(1, most_bins + 1, 3)
        self.codes = [
            rng.integers(0, b + 1, self.n).astype(dtype)
            for b, dtype in zip(self.n_bins, DTYPES, strict=True)
        ]
        self.columns = Columns(self.codes, self.n)
        self.offsets = np.concatenate([[0], np.cumsum(self.n_bins + 1)])
        at = rng.integers(-1, n_nodes, self.n)
        self.nodes = [rng.permutation(np.flatnonzero(at == node)) for node in range(n_nodes)]

    def places(self, nodes=None):
        """Order of the rows, and where those of each node start and stop in it."""
        nodes = self.nodes if nodes is None else nodes
        stops = np.cumsum([len(rows) for rows in nodes])
        order = np.concatenate(nodes).astype(np.int32)
        return order, stops - [len(rows) for rows in nodes], stops

    def histograms(self, first=0, last=3, n_threads=1, nodes=None):
        order, starts, stops = self.places(nodes)
        n_bins = self.offsets[last] - self.offsets[first]
        sums = np.full((len(starts), n_bins, self.targets.n_channels), np.nan)
        build_histograms(
            self.columns, self.targets, order, starts, stops, self.offsets, sums, first, last,
            n_threads,
        )  # fmt: skip
        return sums

    def cells(self, first=0, last=3, n_threads=1, nodes=None):
        places = self.places(nodes)
        return build_cells(
            self.columns, self.targets, *places, self.offsets, first, last, n_threads
        )

    def naive(self, rows, first=0, last=3):
        sums = np.zeros((self.offsets[-1], self.targets.n_channels))
        for row in rows:
            for code, offset in zip(self.codes, self.offsets[:-1], strict=True):
                sums[offset + code[row]] += self.sample.channels_of([row])
        return sums[self.offsets[first] : self.offsets[last]]


@st.composite
def problems(draw, most_nodes=3, most_bins=4):
    rng = np.random.default_rng(draw(SEEDS))
    return Problem(draw(samples()), rng, int(rng.integers(1, most_nodes + 1)), most_bins)


FEATURES = st.sampled_from([(0, 3), (0, 1), (1, 3), (2, 2)])


@given(problems(), FEATURES)
def test_histograms_equal_their_naive_twin(problem, features):
    expected = [problem.naive(rows, *features) for rows in problem.nodes]
    assert_allclose(problem.histograms(*features), expected, atol=1e-9)


@given(problems(most_bins=MANY_BINS), FEATURES)
def test_cells_are_the_bins_that_hold_rows(problem, features):
    cell_start, n_cells, bin_of_cell, sums = problem.cells(*features)
    for node, rows in enumerate(problem.nodes):
        expected = problem.naive(rows)
        for f in range(*features):
            held, n_rows = np.unique(problem.codes[f][rows], return_counts=True)
            start = cell_start[node, f - features[0]]
            cells = slice(start, start + n_cells[node, f - features[0]])
            assert_array_equal(bin_of_cell[cells], held)
            assert_allclose(sums[cells], expected[problem.offsets[f] + held], atol=1e-9)
            if problem.sample.weights is not None:
                assert_array_equal(sums[cells, -1], n_rows)


@given(problems(most_bins=MANY_BINS))
def test_sums_do_not_depend_on_the_number_of_threads(problem):
    assert_array_equal(problem.histograms(n_threads=1), problem.histograms(n_threads=3))
    for one, other in zip(problem.cells(n_threads=1), problem.cells(n_threads=3), strict=True):
        assert_array_equal(one, other)


@given(problems())
def test_several_nodes_are_summed_as_each_alone(problem):
    together, totals = problem.histograms(), sum_nodes(problem.targets, *problem.places())
    for node, rows in enumerate(problem.nodes):
        assert_array_equal(together[node], problem.histograms(nodes=[rows])[0])
        assert_array_equal(totals[node], sum_nodes(problem.targets, *problem.places([rows]))[0])


@given(problems())
def test_totals_are_the_sum_over_any_feature(problem):
    totals, histograms = sum_nodes(problem.targets, *problem.places()), problem.histograms()
    assert_allclose(totals, [problem.sample.channels_of(rows) for rows in problem.nodes], atol=1e-9)
    for start, stop in zip(problem.offsets, problem.offsets[1:], strict=False):
        assert_allclose(totals, histograms[:, start:stop].sum(axis=1), atol=1e-9)
    for rows, total in zip(problem.nodes, totals, strict=True):
        rows = rows.astype(np.int32)
        assert_allclose(problem.targets.totals(rows), total, atol=1e-9)
        groups = (rows % 3).astype(np.uint8)
        each = [problem.targets.totals(rows[groups == group]) for group in range(4)]
        assert_array_equal(problem.targets.totals_by(rows, groups, 4), each)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("ascends", [True, False])
def test_rows_of_large_tables_are_summed_block_by_block(n_threads, ascends):
    rng, n, n_nodes = np.random.default_rng(0), 200_000, 5
    codes = [rng.integers(0, 4, n).astype(dtype) for dtype in (np.uint8, np.uint8, np.uint16)]
    labels, node_of = rng.integers(0, 2, n), rng.integers(0, n_nodes, n)
    node_of[: n // 2] %= 2  # the others have no row in the first blocks
    order = np.argsort(node_of, kind="stable") if ascends else rng.permutation(n)
    order = order.astype(np.int32)
    stops = np.cumsum(np.bincount(node_of, minlength=n_nodes))
    starts = np.append(0, stops[:-1])
    targets, columns = Targets(labels[:, None], None, None, 2), Columns(codes, n)
    sums = np.full((n_nodes, 12, 2), np.nan)
    offsets = np.array([0, 4, 8, 12])
    build_histograms(columns, targets, order, starts, stops, offsets, sums, 0, 3, n_threads)
    totals = sum_nodes(targets, order, starts, stops, n_threads)
    for node in range(n_nodes):
        rows = order[starts[node] : stops[node]]
        for feature, column in enumerate(codes):
            expected = np.bincount(2 * column[rows] + labels[rows], minlength=8).reshape(4, 2)
            assert_array_equal(sums[node, 4 * feature : 4 * feature + 4], expected)
        assert_array_equal(totals[node], np.bincount(labels[rows], minlength=2))


@given(problems())
def test_targets_may_stand_in_the_order_of_the_rows(problem):
    order, starts, stops = problem.places()
    sample, (labels, values, weights) = problem.sample, (None, None, None)
    if sample.labels is not None:
        labels = sample.labels[order]
    else:
        values = sample.values[order]
    if sample.weights is not None:
        weights = sample.weights[order]
    placed = Targets(labels, values, weights, sample.criterion.n_stats)
    sums = np.empty((len(starts), problem.offsets[-1], placed.n_channels))
    arguments = order, starts, stops, problem.offsets, sums, 0, 3, 1
    build_histograms(problem.columns, placed, *arguments, in_order=True)
    assert_array_equal(sums, problem.histograms())


def four_rows():
    """Two classes, weights, one feature; the arguments of kernels for one node of all rows."""
    labels = np.array([[0], [1], [1], [0]], dtype=np.int32)
    targets = Targets(labels, None, np.array([1.0, 2.0, 3.0, 4.0]), 2)
    return {
        "bins": Columns([np.array([0, 1, 1, 2], dtype=np.uint8)], 4),
        "targets": targets,
        "order": np.arange(4, dtype=np.int32),
        "starts": np.zeros(1, dtype=np.int64),
        "stops": np.full(1, 4),
        "offsets": np.array([0, 3]),
        "first": 0,
        "last": 1,
        "n_threads": 1,
    }


def test_channels_are_statistics_then_rows():
    sums = np.empty((1, 3, 3))
    build_histograms(**four_rows(), histograms=sums)
    assert_array_equal(sums[0], [[1, 0, 1], [0, 5, 2], [4, 0, 1]])


def test_no_rows_give_empty_histograms():
    sums = np.full((1, 3, 3), np.nan)
    nobody = four_rows() | {"stops": np.zeros(1, dtype=np.int64)}
    build_histograms(**nobody, histograms=sums)
    assert not sums.any()
    assert build_cells(**nobody)[1] == 0
    places = {name: nobody[name] for name in ("targets", "order", "starts", "stops")}
    assert not sum_nodes(**places).any()
    assert not nobody["targets"].totals(np.empty(0, dtype=np.int32)).any()


# The nodes of a level


class HeldRows:
    """Rows of a problem's nodes, which notes of which nodes it was asked."""

    call_bytes = 2**21

    def __init__(self, problem, rows_of_node):
        self.problem, self.rows_of_node, self.asked = problem, rows_of_node, []
        self.is_remote = False

    def histograms(self, nodes, first, last, sparse):
        self.asked.append(nodes.tolist())
        rows = [self.rows_of_node[node] for node in nodes]
        if sparse:
            return Histograms(first, last, None, self.problem.cells(first, last, nodes=rows))
        return Histograms(first, last, self.problem.histograms(first, last, nodes=rows))


def statistics_of(rows_of_nodes):
    n_rows = np.array([len(rows) for rows in rows_of_nodes])
    return Statistics(
        n_rows, n_rows.astype(float), np.ones(len(n_rows)), np.zeros((len(n_rows), 1, 1))
    )


def two_levels(problem, families):
    """A tree of parents with all rows of their children below its root.

    A family is a list of its children's rows. Returns the tree, its two levels and who holds rows.
    """
    parents = [np.concatenate(family) for family in families]
    rows_of_node = [
        np.concatenate(parents),
        *parents,
        *(rows for each in families for rows in each),
    ]
    tree = GrownTree(statistics_of(rows_of_node[:1]))
    first, levels = 1, []
    for depth, sizes in ((1, [len(families)]), (2, [len(family) for family in families])):
        last = first + sum(sizes)
        numbers = np.arange(first, last, dtype=np.int32)
        statistics = statistics_of(rows_of_node[first:last])
        level = Level(numbers, statistics, depth, np.zeros_like(numbers), numbers)
        splits = [BinSplit(0, size, np.zeros(2, dtype=np.uint8)) for size in sizes]
        tree.add(list(range(first - len(sizes), first)), splits, level)
        levels.append(level)
        first = last
    return tree, *levels, HeldRows(problem, rows_of_node)


def of_numbers(level, numbers):
    """Some nodes of a level."""
    return level.take(np.isin(level.numbers, numbers))


def as_dense(problem, histograms, node):
    """One node's sums over the bins of the features that histograms hold."""
    if histograms.cells is None:
        return histograms.sums[node]
    first, last = histograms.first, histograms.last
    cell_start, n_cells, bin_of_cell, sums = histograms.cells
    dense = np.zeros((problem.offsets[last] - problem.offsets[first], sums.shape[1]))
    for f in range(first, last):
        start = cell_start[node, f - first]
        cells = slice(start, start + n_cells[node, f - first])
        dense[problem.offsets[f] - problem.offsets[first] + bin_of_cell[cells]] = sums[cells]
    return dense


def sums_of_parts(problem, source, rows, level, keep=False):
    """All sums of the nodes of a level, by their parts; NaN for those left out."""
    sums = np.full((len(level), problem.offsets[-1], problem.targets.n_channels), np.nan)
    for request in source.requests(level, keep):
        found = rows.histograms(*request.asked)
        for some, histograms in source.completed(level, request, found):
            bins = slice(problem.offsets[histograms.first], problem.offsets[histograms.last])
            for i, place in enumerate(some):
                assert np.isnan(sums[place, bins]).all(), "summed twice"
                sums[place, bins] = as_dense(problem, histograms, i)
    return sums


def subtract_always(patch):
    """Let any saved visit be worth a subtraction, and no node be too small for one."""
    patch.setattr(_histograms, "VISITS_PER_DIFFERENCE", 0.0)
    patch.setattr(_histograms, "BINS_PER_CELL", 10**9)
    patch.setattr(_histograms, "ROWS_PER_SUM", 0.0)


@given(
    problems(most_nodes=1), SEEDS, *[st.booleans()] * 3, st.sampled_from([0, 400, 2**26]),
    st.sampled_from([0.0, 0.5]),
)  # fmt: skip
def test_children_that_are_wanted_get_their_histograms(
    problem, seed, exact, keep, is_remote, max_bytes, rows_per_sum
):
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 5, problem.n)
    families = [[np.flatnonzero(at == b) for b in some] for some in ([0, 1], [2, 3, 4])]
    tree, parents, children, rows = two_levels(problem, families)
    with pytest.MonkeyPatch.context() as patch:
        subtract_always(patch)
        patch.setattr(_histograms, "ROWS_PER_SUM", rows_per_sum)
        rows.call_bytes, rows.is_remote = max_bytes, is_remote
        channels = problem.targets.n_channels
        source = LevelHistograms(rows, tree, problem.offsets, channels, exact, whole=False)
        sums_of_parts(problem, source, rows, parents, keep)
        wanted = children.take(rng.random(len(children)) < 0.7)
        if len(wanted) == 0:
            return
        found = sums_of_parts(problem, source, rows, wanted)
    expected = [problem.naive(rows.rows_of_node[number]) for number in wanted.numbers]
    assert_allclose(found, expected, atol=1e-9)


@given(problems(most_nodes=1), SEEDS, st.booleans())
def test_parts_are_the_same_whatever_the_holder_thinks_small(problem, seed, is_remote):
    rng = np.random.default_rng(seed)
    at = rng.integers(0, 3, problem.n)
    tree, parents, _, rows = two_levels(problem, [[np.flatnonzero(at == b)] for b in range(3)])
    found = []
    for limit in (0, 2, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_histograms, "BINS_PER_CELL", limit)
            patch.setattr(_histograms, "ROWS_PER_SUM", limit)
            rows.is_remote = is_remote
            channels = problem.targets.n_channels
            source = LevelHistograms(
                rows, tree, problem.offsets, channels, exact=False, whole=False
            )
            found.append(sums_of_parts(problem, source, rows, parents))
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


def fixed_problem():
    class Fixed:
        piece = np.zeros(9)
        targets = Targets(np.arange(9)[:, None] % 2, None, None, 2)

    return Problem(Fixed, np.random.default_rng(0), 1)


@pytest.mark.parametrize(
    ("wanted", "keep", "asked"),
    [
        # The parent is 1, its children of 5, 3 and 1 rows are 2, 3 and 4.
        ([2, 3, 4], True, [3, 4]),  # the largest by subtraction
        ([2, 3], True, [3, 4]),
        ([2], True, [3, 4]),
        ([3, 4], True, [3, 4]),
        ([4], True, [4]),
        ([2, 3, 4], False, [2, 3, 4]),
        ([2], False, [2]),
    ],
)
def test_rows_are_summed_no_more_often_than_needed(monkeypatch, wanted, keep, asked):
    subtract_always(monkeypatch)
    problem = fixed_problem()
    tree, parents, children, rows = two_levels(
        problem, [[np.arange(5), np.arange(5, 8), np.arange(8, 9)]]
    )
    source = LevelHistograms(rows, tree, problem.offsets, 2, exact=False, whole=False)
    sums_of_parts(problem, source, rows, parents, keep)
    rows.asked.clear()
    sums_of_parts(problem, source, rows, of_numbers(children, wanted))
    assert [sorted(nodes) for nodes in rows.asked] == [asked]


def test_a_largest_child_that_is_too_small_is_summed_itself(monkeypatch):
    subtract_always(monkeypatch)
    problem = fixed_problem()
    tree, parents, children, rows = two_levels(
        problem, [[np.arange(4), np.arange(4, 7), np.arange(7, 9)]]
    )
    source = LevelHistograms(rows, tree, problem.offsets, 2, exact=False, whole=False)
    sums_of_parts(problem, source, rows, parents, keep=True)
    rows.asked.clear()
    sums_of_parts(problem, source, rows, of_numbers(children, [2]))
    assert rows.asked == [[2]]


def test_histograms_of_a_level_that_is_too_large_do_not_wait(monkeypatch):
    subtract_always(monkeypatch)
    monkeypatch.setattr(_histograms, "CALLS_THAT_WAIT", 0)
    problem = fixed_problem()
    tree, parents, _, rows = two_levels(problem, [[np.arange(5), np.arange(5, 9)]])
    source = LevelHistograms(rows, tree, problem.offsets, 2, exact=False, whole=False)
    sums_of_parts(problem, source, rows, parents, keep=True)
    assert not source.kept


@given(st.integers(0, 50), st.sampled_from([0, 1, VISITS_PER_CALL // 7, 10 * VISITS_PER_CALL]))
def test_chunks_cover_every_feature_once(n_features, n_rows):
    covered = [f for first, last in feature_chunks(n_features, n_rows) for f in range(first, last)]
    assert covered == list(range(n_features))


# Refusals


@pytest.mark.parametrize(
    ("labels", "values", "weights", "n_stats", "message"),
    [
        (None, None, None, 2, "either labels or values"),
        ([[0]], [[0.0]], None, 2, "either labels or values"),
        ([0, 1], None, None, 2, "n_rows, n_outputs"),
        ([[]], None, None, 2, "n_rows, n_outputs"),
        ([[2]], None, None, 2, "indices of statistics"),
        ([[-1]], None, None, 2, "indices of statistics"),
        (None, [[1.0]], None, 3, "one statistic more"),
        ([[0]], None, [1.0, 2.0], 2, "weights must be"),
    ],
)
def test_targets_that_do_not_fit_are_refused(labels, values, weights, n_stats, message):
    with pytest.raises(ValueError, match=message):
        Targets(labels, values, weights, n_stats)


def int64s(*numbers):
    return np.array(numbers, dtype=np.int64)


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("order", np.array([0, -1, 1, 2], dtype=np.int32), IndexError, "rows must lie"),
        ("order", np.array([0, 1, 2, 4], dtype=np.int32), IndexError, "rows must lie"),
        ("starts", int64s(-1), ValueError, "must lie in the order"),
        ("starts", int64s(5), ValueError, "must lie in the order"),
        ("stops", int64s(5), ValueError, "must lie in the order"),
        ("stops", int64s(4, 4), ValueError, "a start and a stop"),
        ("n_threads", 0, ValueError, "n_threads must be at least 1"),
        ("first", -1, ValueError, "features out of range"),
        ("last", 2, ValueError, "features out of range"),
        ("offsets", int64s(0, 2), ValueError, "more bins than"),
        ("offsets", int64s(0), ValueError, "features out of range"),
    ],
)
def test_nodes_that_cannot_be_summed_are_refused(name, value, error, message):
    arguments = four_rows() | {name: value}
    with pytest.raises(error, match=message):
        build_cells(**arguments)
    with pytest.raises(error, match=message):
        build_histograms(**arguments, histograms=np.empty((1, 3, 3)))
    if name in ("order", "starts", "stops"):
        places = {name: arguments[name] for name in ("targets", "order", "starts", "stops")}
        with pytest.raises(error, match=message):
            sum_nodes(**places)


@pytest.mark.parametrize("shape", [(2, 3, 3), (1, 2, 3), (1, 3, 2)])
def test_histograms_without_room_are_refused(shape):
    with pytest.raises(ValueError, match="shape does not fit"):
        build_histograms(**four_rows(), histograms=np.empty(shape))


@pytest.mark.parametrize("row", [-1, 4, 2**31 - 1])
def test_totals_of_rows_out_of_range_are_refused(row):
    with pytest.raises(IndexError, match="rows must lie"):
        four_rows()["targets"].totals(np.array([0, row], dtype=np.int32))
    with pytest.raises(IndexError, match="rows must lie"):
        four_rows()["targets"].totals_by(
            np.array([0, row], dtype=np.int32), np.zeros(2, dtype=np.uint8), 1
        )


@pytest.mark.parametrize("groups", [[0], [0, 2]])
def test_totals_by_groups_that_do_not_fit_are_refused(groups):
    rows = np.arange(2, dtype=np.int32)
    with pytest.raises(ValueError, match="groups"):
        four_rows()["targets"].totals_by(rows, np.array(groups, dtype=np.uint8), 2)


@pytest.mark.parametrize(
    ("array", "error"),
    [
        (np.zeros(3, dtype=np.int64), TypeError),
        (np.zeros(3, dtype=">u2"), TypeError),
        (np.zeros(4, dtype=np.uint8), ValueError),
        (np.zeros((3, 1), dtype=np.uint8), ValueError),
        (np.zeros(6, dtype=np.uint8)[::2], ValueError),
    ],
)
def test_columns_that_no_kernel_reads_are_refused(array, error):
    with pytest.raises(error, match="column 1"):
        Columns([None, array], 3)


# --- cells of several holders ---


def made_cells(rng, shape, n_bins, width):
    """Cells with gaps between those of a node and feature and the next."""
    starts, n_cells = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int32)
    bins = []
    for place in np.ndindex(shape):
        own = np.flatnonzero(rng.random(n_bins) < rng.random())
        starts[place], n_cells[place] = len(bins), len(own)
        bins += [*own, *[-7] * rng.integers(0, 3)]
    return starts, n_cells, np.array(bins, dtype=np.int32), rng.normal(size=(len(bins), width))


@given(SEEDS, st.integers(1, 4), st.sampled_from([1, 3, 64, 200]), st.integers(1, 3))
def test_cells_of_several_holders_add_up(seed, n_parts, n_bins, width):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(0, 4, 2))
    parts = [made_cells(rng, shape, n_bins, width) for _ in range(n_parts)]
    starts, n_cells, bins, sums = join_cells(parts)
    assert len(bins) == len(sums) == n_cells.sum()
    assert starts.shape == n_cells.shape == shape
    for place in np.ndindex(shape):
        expected = {}
        for start, n, of_part, values in parts:
            for cell in range(start[place], start[place] + n[place]):
                expected[of_part[cell]] = expected.get(of_part[cell], 0.0) + values[cell]
        cells = slice(starts[place], starts[place] + n_cells[place])
        assert bins[cells].tolist() == sorted(expected)
        for bin_, found in zip(bins[cells], sums[cells], strict=True):
            assert_array_equal(found, expected[bin_])


def test_cells_that_are_not_there_are_refused():
    starts, n_cells, bins, sums = part = made_cells(np.random.default_rng(0), (2, 3), 9, 1)
    for change, match in (
        ([], "nothing to join"),
        ([part, (starts[:1], n_cells[:1], bins, sums)], "same nodes"),
        ([part, (starts, n_cells, bins, sums[1:])], "same nodes"),
        ([(starts + 99, n_cells, bins, sums)], "fewer cells"),
        ([(starts - 99, n_cells, bins, sums)], "fewer cells"),
        ([(starts, n_cells, -1 - bins, sums)], "negative"),
    ):
        with pytest.raises(ValueError, match=match):
            join_cells(change)


def test_room_for_sums_has_one_user_at_a_time():
    one, two = room_for_sums(100, 10, 100), room_for_sums(100, 10, 100)
    one[:], two[:] = 1.0, 2.0
    view, address = one[3, 4:], one.ctypes.data
    del one
    other = room_for_sums(100, 10, 100)
    assert other.ctypes.data != address  # a view needs it yet
    other[:] = 3.0
    assert (view == 1.0).all()
    assert (two == 2.0).all()
    del view
    assert room_for_sums(100, 10, 100).ctypes.data == address
    assert room_for_sums(0, 10, 100).shape == (0, 10, 100)
