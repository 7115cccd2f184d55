"""Whatever arrays the compiled kernels are given, they return or refuse; they never crash.

`make sanitize` runs this file with address and undefined-behaviour sanitizers.
"""

import os
import re
import warnings
from dataclasses import fields
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from data import make_tree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from naive import cell_counts, cheapest_shape, cheapest_shapes, samples, spreads, sum_cells, trees
from naive_pairs import pair_cuts

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._core.assignment import assign
from shapetree._core.binning import (
    Lookups,
    bin_columns,
    find_bins,
    group_values,
    sort_values,
)
from shapetree._core.columns import Columns, deviations, extents
from shapetree._core.criterion import Criterion
from shapetree._core.grid import START, BinGroups, GridScreen, sum_grids
from shapetree._core.histogram import Targets, build_cells, build_histograms, sum_nodes
from shapetree._core.inner_tree import cut_into_pieces
from shapetree._core.oblique import PairFitter, PairSample
from shapetree._core.pair_tree import NodeOptions
from shapetree._core.polish import polish_branches
from shapetree._core.predictor import TreeLayout, find_leaves
from shapetree._core.reduced import (
    count_extra_parts,
    fill_gaps,
    settle_empty_bins,
)
from shapetree._core.routing import LeafLosses, RoutedRows
from shapetree._core.rows import NodeRows
from shapetree._core.search import NodeSearch
from shapetree.data._table import FeatureInfo, Table
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._predictor import leaves_of, paths_to

pytestmark = pytest.mark.filterwarnings("ignore")

REFUSALS = (ValueError, TypeError, IndexError, OverflowError, MemoryError, BufferError)
WRONG_CALL = re.compile("unexpected keyword|positional argument|needs keyword-only")
DTYPES = ["u1", "u2", "u4", "i4", "i8", "f4", "f8", ">f8", ">u2", "?", "c16", "O"]
FLOATS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 5e-324, 1e-300, 0.5, 3.0, 2.0**31, 1e300]
INTEGERS = [-(2**63), -(2**31), -1, 0, 1, 2, 3, 9, 254, 255, 256, 2**31 - 1, 2**31, 2**63 - 1]
THREADS = [-(2**31), -1, 0, 1, 2, 2**40]
ASSIGNMENTS = ["auto", "coordinate_descent", "kmeans", "random"]

# A few in any build; `make sanitize`, where a stray read is seen at once, tries many more.
fuzz = settings(
    max_examples=int(os.environ.get("FUZZ", "30")), suppress_health_check=list(HealthCheck)
)


def survives(call, *args, **kwargs):
    """Call a kernel; give what it returns, or None where it refuses."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*args, **kwargs)
        except REFUSALS as refusal:
            if WRONG_CALL.search(str(refusal)):
                raise
            return None


# Arguments that are almost valid


def cast(values, dtype):
    values = np.asarray(values)
    if values.dtype.kind == "O":
        return values
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return values.astype(dtype)


def poke(array, position, value):
    """Replace one element."""
    if array.size and array.dtype.kind != "O":
        array = array.copy()
        array.flat[position % array.size] = cast(value, array.dtype)
    return array


def unaligned(array):
    """Give the same numbers, one byte off where their type should start."""
    return np.frombuffer(b"\0" + array.tobytes(), array.dtype, offset=1).reshape(array.shape)


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    return np.repeat(array, 2, axis=0)[::2] if array.ndim else array


anything = st.one_of(
    st.none(),
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4).map(
            lambda shape: np.zeros(shape, dtype)
        )
    ),
    arrays(np.float64, st.integers(0, 6), elements=st.sampled_from(FLOATS)),
    arrays(np.int64, st.integers(0, 6), elements=st.sampled_from(INTEGERS)),
)


extremes = st.sampled_from([0.0, 1.0, *FLOATS])


def spoilt_arrays(array):
    """Strategy for arrays a step away from a valid one."""
    position = st.integers(0, 10**6)
    if array.dtype.names:
        field = st.sampled_from(array.dtype.names)
        return st.one_of(field.flatmap(lambda name: spoilt_field(array, name)), anything)
    extremes = st.sampled_from(FLOATS if array.dtype.kind == "f" else INTEGERS)
    pokes = st.builds(poke, st.just(array), position, extremes)
    reshaped = [lambda a: a[:-1], lambda a: a[:0], lambda a: np.concatenate([a, a, a])]
    shapes = [
        strided,
        read_only,
        lambda a: a[::-1],
        lambda a: a[None],
        np.asfortranarray,
    ]
    changes = st.sampled_from(reshaped + shapes if array.ndim else [read_only])
    return st.one_of(
        pokes,
        pokes,
        changes.map(lambda change: change(array)),
        st.sampled_from(DTYPES).map(lambda dtype: cast(array, dtype)),
        anything,
    )


def spoilt_field(array, name):
    """Strategy for structured arrays one field of which is a step away from a valid one."""

    def put(extreme):
        copy = array.copy()
        copy[name][0] = np.array(extreme).astype(copy[name].dtype)
        return copy

    return st.sampled_from(FLOATS if array.dtype[name].kind == "f" else INTEGERS).map(put)


def spoilt(name, value):
    """Strategy for arguments a step away from a valid one."""
    if isinstance(value, np.ndarray):
        return spoilt_arrays(value)
    if name == "n_threads":
        return st.sampled_from(THREADS)
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int):
        return st.sampled_from(INTEGERS)
    if isinstance(value, float):
        return st.sampled_from(FLOATS)
    if isinstance(value, list):
        return st.tuples(st.integers(0, len(value) - 1), anything).map(
            lambda change: [*value[: change[0]], change[1], *value[change[0] + 1 :]]
        )
    if isinstance(value, Criterion):
        return st.sampled_from([None, Criterion("gini", [3]), Criterion("squared_error", [1, 1])])
    if isinstance(value, Targets):
        few, wide = np.zeros((1, 1), dtype=np.int32), np.zeros((50, 3))
        return st.sampled_from([None, Targets(few, None, None, 2), Targets(None, wide, None, 4)])
    if isinstance(value, Columns):
        columns = [np.full(3, 200, dtype=np.uint8), None, np.zeros(3), np.zeros(6)[::2]]
        others = [Columns(columns, 3), Columns([], 3), Columns([None] * 3, 30)]
        return st.sampled_from([None, *others])
    return st.none()


def nearly(draw, **arguments):
    """Spoil up to three of some valid arguments."""
    for _ in range(draw(st.integers(0, 3))):
        name = draw(st.sampled_from(sorted(arguments)))
        arguments[name] = draw(spoilt(name, arguments[name]))
    return arguments


# Kernels over statistics


@fuzz
@given(st.data())
def test_criterion(data):
    arguments = nearly(
        data.draw,
        name=data.draw(st.sampled_from(["gini", "entropy", "squared_error", "absolute_error"])),
        block_sizes=np.array([2, 1]),
        levels=np.array([0.0, 1.0, 2.0]),
    )
    criterion = survives(Criterion, **arguments)
    if criterion is not None and criterion.n_stats < 1000:
        stats = data.draw(spoilt_arrays(np.ones(criterion.n_stats)))
        for method in (criterion.impurity, criterion.weight, criterion.supergradient):
            survives(method, stats)


@fuzz
@given(st.data(), samples(max_pieces=5))
def test_inner_tree(data, sample):
    arguments = nearly(
        data.draw,
        criterion=sample.criterion,
        stats=sample.stats,
        n_rows=sample.n_rows,
        max_leaves=4,
        min_rows=1,
        max_depth=9,
        least_gain=0.0,
    )
    method = data.draw(st.sampled_from(["cart", "optimal"]))
    stops = survives(cut_into_pieces, **arguments, method=method)
    if stops is not None:
        assert stops[-1] == len(arguments["stats"])
        assert np.all(np.diff(stops) > 0)


@fuzz
@given(st.data(), samples(max_pieces=5))
def test_assignment(data, sample):
    arguments = nearly(
        data.draw,
        criterion=sample.criterion,
        stats=sample.stats,
        n_rows=sample.n_rows,
        max_branches=3,
        min_rows=1,
        root_cut=0,
        seed=1,
    )
    kind = data.draw(st.sampled_from(ASSIGNMENTS))
    for k, branch in (survives(assign, **arguments, kind=kind) or {}).items():
        assert branch.max() < k


@fuzz
@given(st.data(), samples(max_pieces=5))
def test_polish(data, sample):
    arguments = nearly(
        data.draw,
        criterion=sample.criterion,
        stats=sample.stats,
        branch=np.arange(sample.n_pieces, dtype=np.uint8) % 3,
        n_branches=3,
        penalty=1.0,
        categorical=False,
        has_missing=False,
        max_parts=data.draw(st.sampled_from([1, 2, 2**30])),
    )
    result = survives(polish_branches, **arguments)
    if result is not None:
        assert result[0].max() < arguments["n_branches"]


@fuzz
@given(st.data(), st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_cheapest_shapes(data, seed, n_branches):
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(0, 6, 4)
    held = [np.flatnonzero(rng.integers(0, 3, n + 1)) for n in n_bins]
    sizes = np.array([len(bins) for bins in held])
    losses = rng.integers(-3, 4, (sizes.sum(), n_branches - 1)) / 2
    for _ in range(data.draw(st.integers(0, 4)) if losses.size else 0):
        losses = poke(losses, data.draw(st.integers(0, 999)), data.draw(extremes))
    limits = {
        "segment_penalty": data.draw(extremes),
        "category_penalty": data.draw(extremes),
        "choice_penalty": 0.0,
        "max_segments": data.draw(st.sampled_from([1, 2, 3, 5, 2**30])),
        "max_listed": data.draw(st.sampled_from([1, 2, 2**30])),
    }
    arguments = nearly(
        data.draw,
        starts=(np.cumsum(sizes) - sizes)[None],
        n_cells=sizes[None].astype(np.int32),
        bin_of_cell=np.concatenate(held).astype(np.int32),
        losses=losses,
        n_bins=n_bins,
        categorical=rng.integers(0, 2, 4).astype(np.uint8),
        n_branches=np.array([n_branches], dtype=np.int32),
        bounds=data.draw(st.sampled_from([np.inf, 0.0, -2.0, np.nan])) * np.ones(1),
        order=rng.permutation(4).astype(np.int32),
        only_best=data.draw(st.booleans()),
        n_threads=1,
        **limits,
    )
    survives(cheapest_shapes, **arguments)
    arguments = nearly(
        data.draw,
        bin_of_cell=held[0].astype(np.int32),
        losses=losses[: sizes[0]],
        n_bins=int(n_bins[0]),
        categorical=data.draw(st.booleans()),
        n_branches=n_branches,
        **{name: limit for name, limit in limits.items() if name != "choice_penalty"},
    )
    found = survives(cheapest_shape, **arguments)
    if found is not None:
        assert found[0].max() < arguments["n_branches"]


@fuzz
@given(st.data())
def test_bins_without_rows(data):
    branches = np.array([0, 2, 255, 1, 0], dtype=np.uint8)
    survives(fill_gaps, data.draw(spoilt_arrays(branches.copy())), data.draw(st.booleans()))
    arguments = nearly(
        data.draw,
        branch_of_bin=branches,
        n_rows=np.array([1, 0, 0, 2, 0]),
        low=np.array([0.0, 1.0, 2.0, 3.0]),
        high=np.array([0.0, 1.0, 2.0, 3.0]),
        largest_branch=1,
    )
    survives(settle_empty_bins, **arguments)
    survives(count_extra_parts, **nearly(data.draw, branch_of_bin=branches, categorical=True))


# Kernels over rows


@fuzz
@given(st.data())
def test_group_values(data):
    values = np.sort(np.arange(9) % 5.0)
    weights = data.draw(st.sampled_from([np.ones(9), None]))
    arguments = nearly(data.draw, values=values, weights=weights, max_bins=3)
    result = survives(group_values, **arguments)
    if result is not None and arguments["max_bins"] > 0:
        assert len(result[0]) == len(result[1]) <= arguments["max_bins"]


@fuzz
@given(st.data(), st.sampled_from([np.float32, np.float64]))
def test_sort_values(data, dtype):
    values = (np.arange(20) % 7 - 3.0).astype(dtype)
    survives(sort_values, **nearly(data.draw, values=values))


@pytest.mark.parametrize("values", [[np.nan], [1.0, np.nan], [0.0, 1.0, 2.0, 3.0, np.nan]])
@pytest.mark.parametrize("max_bins", [1, 3, 9])
def test_group_values_with_missing_values(values, max_bins):
    survives(group_values, np.array(values), None, max_bins)


@fuzz
@given(st.data(), st.sampled_from([np.float32, np.float64]), st.sampled_from([3, 40]))
def test_find_bins(data, dtype, n_rows):
    values = (np.arange(n_rows) * 7 % 23).astype(dtype)
    weights = data.draw(st.sampled_from([np.ones(3), None]))
    rows = data.draw(st.sampled_from([np.arange(3), None]))
    columns = survives(Columns, data.draw(st.sampled_from([[values], [values, None]])), n_rows)
    arguments = nearly(
        data.draw,
        columns=columns,
        features=np.zeros(1, dtype=np.int32),
        rows=rows,
        weights=weights,
        max_bins=3,
        n_threads=1,
    )
    survives(find_bins, **arguments)


@fuzz
@given(st.data(), st.sampled_from([np.float32, np.float64]), st.sampled_from(["u1", "u2", "u4"]))
def test_bin_columns(data, dtype, bin_type):
    values = np.linspace(-2, 9, 7).astype(dtype)
    ends = nearly(data.draw, ends=np.arange(4.0))["ends"]
    lookups = survives(Lookups, [ends], data.draw(st.sampled_from([0, 7, 10**6, -1])))
    arguments = nearly(
        data.draw,
        columns=Columns([values], 7),
        features=np.zeros(1, dtype=np.int32),
        lookups=lookups,
        bins=[np.zeros(7, dtype=bin_type)],
        start=0,
        stop=7,
        n_threads=1,
    )
    survives(bin_columns, **arguments)


@fuzz
@given(st.data())
def test_columns(data):
    columns = [np.zeros(5, dtype=dtype) for dtype in ("u1", "u2", "u4", "i4", "f4", "f8")]
    made = survives(Columns, **nearly(data.draw, arrays=columns, n_rows=5, n_threads=2))
    if made is not None:
        rows = np.arange(3, dtype=np.int32)
        for feature in range(-1, 7):
            cuts = survives(pair_cuts, made, feature, 0, [0.0], [], *one_cut(), 1)
            if cuts is not None:
                survives(cuts.branches, rows, 1)
    bins = Columns(columns[:3], 5)
    order = np.arange(5, dtype=np.int32)[::-1].copy()
    survives(bins.reorder, **nearly(data.draw, order=order, n_threads=2))


@fuzz
@given(st.data(), samples())
def test_targets(data, sample):
    arguments = nearly(
        data.draw,
        labels=sample.labels,
        values=sample.values,
        weights=sample.weights,
        n_stats=sample.criterion.n_stats,
    )
    targets = survives(Targets, **arguments)
    if targets is not None and targets.n_stats < 1000:
        rows = data.draw(spoilt_arrays(np.arange(len(sample.piece), dtype=np.int32)))
        survives(targets.totals, rows)
        groups = data.draw(spoilt_arrays(np.zeros(len(sample.piece), dtype=np.uint8)))
        survives(targets.totals_by, rows, groups, data.draw(st.integers(-1, 300)))


def node_of(sample):
    """Columns of bins for a sample: valid arguments of the kernels over rows."""
    n = len(sample.piece)
    codes = [sample.piece.astype(np.uint8), (np.arange(n) % 4).astype(np.uint16)]
    return codes, np.array([sample.n_pieces, 3])


def are_small(numbers):
    """Whether there is memory for so many of something, and it is soon filled."""
    numbers = np.asarray(numbers)
    return numbers.dtype.kind not in "iuf" or not np.any(cast(numbers, "f8") > 10**5)


def places_of(n):
    """Order of rows, and where those of two nodes start and stop in it."""
    return {
        "order": np.arange(n, dtype=np.int32),
        "starts": np.array([0, n // 2]),
        "stops": np.array([n // 2, n]),
    }


@fuzz
@given(st.data(), samples())
def test_histograms(data, sample):
    codes, n_bins = node_of(sample)
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    common = {
        "bins": survives(Columns, **nearly(data.draw, arrays=codes, n_rows=len(codes[0]))),
        "targets": sample.targets,
        **places_of(len(codes[0])),
        "offsets": offsets,
        "first": 0,
        "last": 2,
        "n_threads": data.draw(st.sampled_from([1, 2])),
    }
    sums = np.empty((2, offsets[-1], sample.targets.n_channels))
    dense = nearly(data.draw, histograms=sums, in_order=data.draw(st.booleans()), **common)
    survives(build_histograms, **dense)
    sparse = nearly(data.draw, **common)
    cells = survives(build_cells, **sparse) if are_small(sparse["offsets"]) else None
    if cells is not None:
        assert np.all(cells[0] + cells[1] <= len(cells[2]))
    of_nodes = nearly(data.draw, targets=sample.targets, **places_of(len(codes[0])))
    survives(sum_nodes, **of_nodes)


@fuzz
@given(st.data(), samples())
def test_search(data, sample):
    codes, n_bins = node_of(sample)
    made = nearly(
        data.draw,
        criterion=sample.criterion,
        n_bins=n_bins,
        categorical=np.array([False, True]),
        inner_max_leaves=3,
        inner_min_rows=1,
        inner_max_depth=9,
        max_parts=data.draw(st.sampled_from([2, 3, 2**30])),
        max_listed=data.draw(st.sampled_from([1, 2, 2**30])),
        per_leaf=data.draw(st.booleans()),
        min_rows=1,
        min_weight=0.0,
    )
    if (survives(np.max, made["n_bins"], initial=0) or 0) > 10**6:
        return
    search = survives(NodeSearch, **made)
    if search is None:
        return
    offsets = np.concatenate([[0], np.cumsum(n_bins + 1)])
    columns, places = Columns(codes, len(codes[0])), places_of(len(codes[0]))
    sums, cells = np.empty((2, offsets[-1], sample.targets.n_channels)), None
    build_histograms(columns, sample.targets, *places.values(), offsets, sums, 0, 2, 1)
    for _ in range(data.draw(st.integers(0, 3))):
        sums = poke(sums, data.draw(st.integers(0, 999)), data.draw(extremes))
    if data.draw(st.booleans()):
        cells = build_cells(columns, sample.targets, *places.values(), offsets, 0, 2, 1)
        names = ("cell_start", "n_cells", "bin_of_cell", "sums")
        cells = tuple(nearly(data.draw, **dict(zip(names, cells, strict=True))).values())
    arguments = nearly(
        data.draw,
        histograms=sums if cells is None else None,
        cells=cells,
        first=0,
        last=2,
        max_branches=np.array([3, 2], dtype=np.int32),
        segment_penalty=np.ones(2),
        category_penalty=np.full(2, 0.5),
        branch_penalty=np.zeros(2),
        seed=np.arange(2, dtype=np.uint64),
        allowed=data.draw(st.sampled_from([None, np.ones((2, 2), dtype=np.uint8)])),
        gains=np.empty((2, 2)),
        penalised_gains=np.empty((2, 2)),
        n_branches=np.empty((2, 2), dtype=np.int32),
        branch_of_bin=np.empty((2, offsets[-1]), dtype=np.uint8),
        n_threads=data.draw(st.sampled_from([1, 2])),
    )
    survives(search.search, **arguments)


@fuzz
@given(st.data(), st.integers(0, 2**32 - 1))
def test_node_rows(data, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 12))
    chosen = data.draw(st.sampled_from([None, np.arange(n, dtype=np.int32)]))
    made = nearly(data.draw, n_rows=n, rows=chosen)
    rows = survives(NodeRows, **made) if are_small(made["n_rows"]) else None
    if rows is None:
        return
    columns = [rng.integers(0, 4, n).astype(t) for t in ("u1", "u2")]
    bins = survives(Columns, **nearly(data.draw, arrays=columns, n_rows=n))
    pair = pair_cuts(Columns([np.zeros(n)] * 2, n), 0, 1, np.empty(0), np.empty(0), *one_cut(), 0)
    branch_of_bin, before = np.array([0, 1, 1, 2], dtype=np.uint8), np.sort(rows.order)
    for first in (1, 4):
        nodes = np.array([0] if first == 1 else [1, 3], dtype=np.int32)
        arguments = nearly(
            data.draw,
            bins=bins,
            nodes=nodes,
            first_child=first + 3 * np.arange(len(nodes), dtype=np.int32),
            n_branches=np.full(len(nodes), 3, dtype=np.int32),
            ways=[
                tuple(nearly(data.draw, feature=first % 2, branch_of_bin=branch_of_bin).values()),
                pair,
            ][: len(nodes)],
            n_threads=data.draw(st.sampled_from([1, 2])),
        )
        if not are_small(arguments["first_child"]):
            continue
        survives(rows.split, **arguments)
        np.testing.assert_array_equal(np.sort(rows.order), before)
    arguments = nearly(
        data.draw,
        rows=rows,
        nodes=np.array([0, 1, 3], dtype=np.int32),
        y=rng.normal(size=(n, 2)),
        standardised=rng.choice(FLOATS, (n, 2)),
        weights=data.draw(st.sampled_from([None, np.ones(n)])),
        centres=rng.normal(size=(3, 2)),
        absolute=data.draw(st.booleans()),
        unit=data.draw(st.sampled_from(FLOATS)),
    )
    survives(spreads, **arguments)


# Pairs


def one_cut():
    """The arrays of a pair's single cut, and of its two regions."""
    numbers = [np.array([number]) for number in (1.0, 0.5, 0.25)]
    targets = [np.array(target, dtype=np.int32) for target in ([-1], [-2], [0, 1])]
    return numbers + targets


@fuzz
@given(st.data(), trees((None, None, 3, 4), max_nodes=5, pair_share=1.0))
def test_pair_cuts(data, tree):
    if tree.node_count == 1:
        return
    cuts = tree.cuts(0)
    places = [tree.position[tree.positions(0, side)] for side in (0, 1)]
    arguments = nearly(
        data.draw,
        columns=Columns(table_columns(), 6),
        first=int(tree.feature[0]),
        second=int(tree.second_feature[0]),
        place_a=places[0],
        place_b=places[1],
        a=tree.cut_a[cuts],
        b=tree.cut_b[cuts],
        threshold=tree.cut_threshold[cuts],
        low=tree.cut_low[cuts],
        high=tree.cut_high[cuts],
        branch=tree.piece_branch[tree.pieces(0)],
        missing_branch=int(tree.missing_branch[0]),
    )
    made = survives(pair_cuts, **arguments)
    if made is not None:
        rows = data.draw(spoilt_arrays(np.arange(6, dtype=np.int32)))
        survives(made.branches, rows, data.draw(st.sampled_from(THREADS)))


def limits(data):
    """Limits of inner trees, almost valid."""
    made = nearly(
        data.draw,
        inner_max_leaves=data.draw(st.sampled_from([1, 2, 3, 4, 32])),
        inner_min_rows=1,
        inner_max_depth=data.draw(st.sampled_from([0, 1, 2, 9])),
        max_parts=data.draw(st.sampled_from([2, 3, 2**30])),
        min_rows=1,
        min_weight=0.0,
    )
    return made | {"assignment": data.draw(st.sampled_from(ASSIGNMENTS))}


def node_options(data):
    """Options of one node's search for pairs, almost valid."""
    given = nearly(
        data.draw,
        max_branches=data.draw(st.sampled_from([2, 3, 254])),
        region_penalty=data.draw(st.sampled_from([0.0, 0.1])),
        branch_penalty=0.0,
        seed=1,
    )
    return NodeOptions(**given)


def all_pairs(n_features=3):
    return np.stack(np.triu_indices(n_features, 1), axis=1).astype(np.int32)


@fuzz
@given(st.data(), samples(max_rows=60))
def test_grid_screen(data, sample):
    codes, n_bins = node_of(sample)
    n = len(codes[0])
    codes.append((np.arange(n) // 2 % 41).astype(np.uint8))
    n_bins = np.append(n_bins, 40)
    total = int(n_bins.sum() + 3)
    made = nearly(
        data.draw,
        criterion=sample.criterion,
        n_bins=n_bins,
        categorical=np.array([False, data.draw(st.booleans()), False]),
        bin_values=np.linspace(-2, 2, total),
        cosines=np.array([1.0, 0.0, 0.7, -0.7, 0.9, -0.4]),
        sines=np.array([0.0, 1.0, 0.7, 0.7, 0.4, 0.9]),
    )
    screen = survives(GridScreen, **made, **limits(data))
    if screen is None:
        return
    histogram = np.zeros((total, sample.targets.n_channels))
    for column, offset in zip(codes, [0, *np.cumsum(n_bins + 1)[:-1]], strict=True):
        for row in range(n):
            histogram[offset + column[row]] += sample.channels_of([row])
    grouped = nearly(data.draw, histogram=histogram, n_threads=1)
    groups = survives(screen.groups, **grouped)
    if groups is None:
        return
    own = nearly(data.draw, **data.draw(st.sampled_from([groups.rough, groups.fine]))._asdict())
    summed = nearly(
        data.draw,
        bins=survives(Columns, **nearly(data.draw, arrays=codes, n_rows=n)),
        targets=sample.targets,
        rows=np.arange(n, dtype=np.int32),
        offsets=np.concatenate([[0], np.cumsum(n_bins + 1)]),
        pairs=all_pairs(),
        n_threads=1,
    )
    survives(sum_grids, groups=BinGroups(**own), **summed)
    cells = np.abs(np.resize(histogram, (3, groups.fine.n_groups**2, sample.targets.n_channels)))
    survives(screen.losses, **nearly(data.draw, cells=cells, noise=1.0, n_threads=1))
    screened = nearly(
        data.draw,
        pairs=all_pairs(),
        cells=cells,
        information=data.draw(st.sampled_from([None, np.array([np.inf, 0.0, -np.inf])])),
    )
    spoilt = nearly(data.draw, n_of_feature=groups.n_of_feature, centres=groups.centres)
    survives(
        screen.screen, groups=groups._replace(**spoilt), node=node_options(data), n_threads=1,
        **screened,
    )  # fmt: skip


def columns_of_pairs(n):
    """A column of each kind that pairs read; some values are missing, infinite or huge."""
    long = np.resize([0.5, -1.0, np.nan, 3.0, np.inf, 1e300, -np.inf, 5e-324], n)
    return [long, np.arange(n, dtype=np.float32)[::-1], np.arange(n, dtype=np.int32) % 5 - 1]


@fuzz
@given(st.data(), samples(max_rows=60))
def test_pair_fitter(data, sample):
    n = len(sample.piece)
    made = nearly(
        data.draw,
        criterion=sample.criterion,
        slopes=np.array([0.0, np.inf, 1.0, -1.0, 0.4, -2.5]),
        exact=data.draw(st.booleans()),
    )
    fitter = survives(PairFitter, **made, **limits(data))
    if fitter is None:
        return
    for _ in range(2):
        arguments = nearly(
            data.draw,
            columns=survives(Columns, **nearly(data.draw, arrays=columns_of_pairs(n), n_rows=n)),
            scales=np.array([1.0, 2.0, 1.0]),
            offsets=np.array([0, 1, 2, 6]),
            positions=np.array([0.0, 0.0, 2.0, np.nan, 0.0, 1.0]),
            targets=sample.targets,
            scale=1.0,
        )
        given = survives(PairSample, **arguments)
        arguments = nearly(
            data.draw,
            given=given,
            pairs=all_pairs(),
            starts=np.array(
                [(data.draw(st.integers(-1, 7)), 0.5, 1), (0, 0.0, 0), (1, 1.0, 1)], START
            ),
            rows=np.arange(n, dtype=np.int32),
            n_threads=1,
        )
        survives(fitter.fit, node=node_options(data), **arguments)


@pytest.mark.parametrize("n", [511, 512, 513, 1300])
@pytest.mark.parametrize("weighted", [False, True])
def test_pair_fitter_on_blocks_of_rows(n, weighted):
    rng = np.random.default_rng(n)
    labels = rng.integers(0, 3, (n, 1)).astype(np.int32)
    targets = Targets(labels, None, rng.random(n) if weighted else None, 3)
    columns = Columns([rng.random(n), rng.integers(0, 4, n).astype(np.float32)], n)
    slopes = np.array([0.0, np.inf, 1.0, -1.0])
    fitter = PairFitter(Criterion("entropy", [3]), slopes)
    for orientation in range(-1, 4):
        start = np.array([(orientation, 0.3, n % 2)], dtype=START)
        given = PairSample(columns, np.ones(2), np.arange(3), np.zeros(2), targets)
        rows, options = np.arange(n, dtype=np.int32), NodeOptions(3, 0.0, 0.0, seed=0)
        fits = fitter.fit(given, rows, all_pairs(2), start, options, 1)
        assert fits.gains[0] > 0


# Trees under refinement


def routed_rows(draw, n=6):
    """A tree of nine nodes with almost valid splits, or None."""
    codes = [(np.arange(n) % 4).astype(np.uint8), (np.arange(n) % 2).astype(np.uint32)]
    columns = Columns(table_columns(n), n)
    targets = [np.array(target, dtype=np.int32) for target in ([1, -1], [-2, -3], [0, 2, 1])]
    numbers = [np.array([1.0, 0.0]), np.array([0.5, 1.0]), np.array([0.25, 0.0])]
    pair = pair_cuts(columns, *draw(st.sampled_from([(0, 1), (0, 2), (2, 3)])), [0.0, 2.0], [1.0],
                    *numbers, *targets, 1)  # fmt: skip
    arguments = nearly(
        draw,
        bins=survives(Columns, **nearly(draw, arrays=codes, n_rows=n)),
        rows=NodeRows(n),
        n_nodes=9,
        max_branches=3,
    )
    # Not the greatest numbers of nodes, which there may be memory for.
    if not isinstance(arguments["n_nodes"], int) or arguments["n_nodes"] > 1000:
        return None
    routed = survives(RoutedRows, **arguments)
    if routed is None:
        return None
    for node, first, feature, ways in [(0, 1, 0, [0, 2, 1, 0]), (1, 4, 1, [1, 0])]:
        split = nearly(
            draw,
            node=node,
            children=np.arange(first, first + 3 - node, dtype=np.int32),
            feature=feature,
            branch_of_bin=np.array(ways, dtype=np.uint8),
        )
        survives(routed.set_bins, **split)
    split = nearly(draw, node=3, children=np.arange(6, 9, dtype=np.int32), cuts=pair)
    survives(routed.set_cuts, **split)
    if draw(st.booleans()):
        survives(routed.set_leaf, **nearly(draw, node=draw(st.integers(0, 8))))
    if draw(st.booleans()):
        survives(routed.send, **nearly(draw, nodes=np.zeros(1, dtype=np.int32), n_threads=1))
    return routed


def leaf_losses(draw, rng):
    """Losses of six rows of almost valid arguments, or None."""
    made = nearly(
        draw,
        labels=rng.integers(0, 3, (6, 2)).astype(np.int32),
        values=None,
        weights=draw(st.sampled_from([None, rng.random(6)])),
        n_columns=3,
        absolute=draw(st.booleans()),
        anchors=None,
    )
    if made["labels"] is None:
        made["values"], made["n_columns"] = rng.choice(FLOATS, (6, 2)), 2
    return survives(LeafLosses, **made)


@fuzz
@given(st.data(), st.integers(0, 2**32 - 1))
def test_routed_rows(data, seed):
    rng = np.random.default_rng(seed)
    routed = routed_rows(data.draw)
    if routed is None:
        return
    losses = leaf_losses(data.draw, rng)
    nodes = rng.choice([0, 1, 2, 3], data.draw(st.integers(0, 3))).astype(np.int32)
    n_threads = data.draw(st.sampled_from([1, 2]))
    table = rng.choice(FLOATS, (routed.n_nodes, data.draw(st.sampled_from([2, 3]))))
    common = {"losses": losses, "n_threads": n_threads}
    survives(routed.leaf_sums, **nearly(data.draw, leaves=nodes, **common))
    survives(routed.leaf_ranges, **nearly(data.draw, leaves=nodes, **common))
    of_nodes = {"table": table, "anchors": np.ones(len(nodes)), **common}
    survives(routed.leaf_totals, **nearly(data.draw, leaves=nodes, **of_nodes))
    survives(routed.piece_counts, **nearly(data.draw, nodes=nodes, n_threads=n_threads))
    survives(routed.pieces_below, **nearly(data.draw, node=0, weights=rng.random(6)))
    level = nearly(data.draw, nodes=np.unique(nodes), **of_nodes)
    found = survives(routed.branch_losses, **level)
    if found is None:
        return
    n_level = len(found[1])
    assert found[0].shape == (n_level, 1 + routed.max_branches)
    cells = nearly(
        data.draw,
        first=0,
        last=n_level,
        offsets=np.array([0, 5, 7]),
        starts=np.arange(2 * n_level).reshape(n_level, 2) * 6,
        n_cells=np.zeros((n_level, 2), dtype=np.int32),
        bin_of_cell=np.zeros(12 * n_level, dtype=np.int32),
        losses=np.zeros((12 * n_level, routed.max_branches - 1)),
        first_feature=0,
        last_feature=2,
        n_threads=n_threads,
        wanted=np.ones(n_level, dtype=np.uint8),
    )
    survives(partial(sum_cells, routed), **cells)
    assert len(routed.care_sets()) == n_level


# Trees


FEATURES = (
    FeatureInfo("a"),
    FeatureInfo("b"),
    FeatureInfo("c", ("p", "q", "r")),
    FeatureInfo("d", ("s", "t", "u", "v")),
)


def table_columns(n=6):
    values = np.array([np.nan, -np.inf, np.inf, 0.0, 1.5, -2.0])
    codes = np.arange(-1, n - 1, dtype=np.int32)
    return [values, values[::-1].astype(np.float32), codes, codes[::-1]]


@fuzz
@given(st.data(), trees(max_nodes=8))
def test_trees_that_pass_their_check_can_be_walked(data, tree):
    arrays_of_tree = {field.name: getattr(tree, field.name) for field in fields(TreeArrays)}
    spoilt_tree = survives(TreeArrays, **nearly(data.draw, **arrays_of_tree))
    if spoilt_tree is None:
        return
    columns = nearly(data.draw, columns=table_columns())["columns"]
    leaves = survives(leaves_of, spoilt_tree, Table(6, FEATURES, columns), 2)
    if leaves is not None:
        survives(paths_to, spoilt_tree, leaves)


TREE_NAMES = [
    "feature",
    "second_feature",
    "first_child",
    "missing_branch",
    *(field.name for field in fields(TreeArrays) if field.name.startswith(("piece_", "cut_"))),
    "position_start",
    "position",
]


@fuzz
@given(st.data(), trees(max_nodes=8), st.booleans())
def test_find_leaves(data, tree, any_columns):
    names = [name for name in TREE_NAMES if any_columns or name.startswith(("cut_", "position"))]
    arrays_of_tree = {name: getattr(tree, name) for name in TREE_NAMES}
    arrays_of_tree |= nearly(data.draw, **{name: arrays_of_tree[name] for name in names})
    columns = Columns(table_columns(), 6)
    if any_columns:
        columns = nearly(data.draw, columns=columns)["columns"]
    layout = survives(TreeLayout, SimpleNamespace(**arrays_of_tree))
    leaves = survives(find_leaves, columns, layout, 2)
    if leaves is not None:
        assert np.all((leaves >= 0) & (leaves < tree.node_count))


@fuzz
@given(st.data(), trees((None, 3), max_nodes=6, pair_share=1.0))
def test_find_leaves_with_any_targets_of_cuts(data, tree):
    arrays_of_tree = {name: getattr(tree, name) for name in TREE_NAMES}
    targets = st.integers(-3, 3)
    for name in ("cut_low", "cut_high", "cut_start", "position_start"):
        if data.draw(st.booleans()):
            shape = arrays_of_tree[name].shape
            moves = data.draw(arrays(np.int64, shape, elements=targets))
            arrays_of_tree[name] = arrays_of_tree[name] + moves
    columns = Columns([np.arange(9.0), np.arange(9, dtype=np.int32) - 2], 9)
    survives(find_leaves, columns, survives(TreeLayout, SimpleNamespace(**arrays_of_tree)), 1)


@fuzz
@given(st.data(), st.booleans())
def test_count_cells(data, has_labels):
    bins = [np.array([0, 1, 2, 3, 1, 0], dtype=kind) for kind in (np.uint8, np.uint16)]
    arguments = nearly(
        data.draw,
        bins=Columns([*bins, None], 6),
        leaves=np.array([1, 3, 4, 5, 5, 1], dtype=np.int32),
        parent=np.array([-1, 0, 0, 2, 2, 2], dtype=np.int32),
        feature=np.array([0, -1, 1, -1, -1, -1], dtype=np.int32),
        bin_start=np.array([0, 4, 8, 8]),
        cell_of_bin=np.array([0, 0, 1, 2, 0, 1, 2, 3], dtype=np.int32),
        cell_start=np.array([0, 3, 3, 7, 7, 7, 7]),
        labels=np.array([0, 1, 2, 0, 1, 2], dtype=np.int32) if has_labels else None,
        targets=None if has_labels else np.arange(6.0),
        n_classes=3 if has_labels else 1,
    )
    found = survives(cell_counts, **arguments)
    if found is not None:
        assert found[0].sum() <= 6 * len(arguments["parent"])


@fuzz
@given(st.data())
def test_deviations_and_extents(data):
    values, counts = np.arange(12.0).reshape(2, 6), np.ones(6)
    survives(deviations, **nearly(data.draw, values=values, counts=counts))
    arguments = nearly(
        data.draw, columns=Columns(table_columns(), 6), features=np.zeros(2, dtype=np.int32)
    )
    survives(extents, **arguments, n_threads=data.draw(st.integers(0, 2)))


# Estimators


@st.composite
def tables(draw, n):
    """Columns of all sorts: constant, missing, infinite, huge, tied, categories."""
    sorts = {
        "constant": st.sampled_from(FLOATS).map(lambda value: np.full(n, value)),
        "tied": arrays(np.float64, n, elements=st.integers(0, 3)),
        "extreme": arrays(np.float64, n, elements=st.sampled_from(FLOATS)),
        "any": arrays(np.float64, n, elements=st.floats()),
        "distinct": st.just(np.arange(n) * 0.1),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(sorts)), min_size=1, max_size=4))
    return np.stack([draw(sorts[sort]) for sort in chosen], axis=1)


@st.composite
def parameters(draw, criteria, n_features):
    """Any parameters that the estimators accept."""
    choices = {
        "criterion": st.sampled_from(criteria),
        "max_depth": st.sampled_from([None, 1, 3]),
        "max_branches": st.sampled_from([2, 3, 5, 254]),
        "min_samples_split": st.sampled_from([2, 5, 0.3, 10**6]),
        "min_samples_leaf": st.sampled_from([1, 3, 0.2, 10**9]),
        "min_impurity_decrease": st.sampled_from([0.0, 0.1]),
        "max_leaf_nodes": st.sampled_from([None, 2, 4]),
        "pairs": st.sampled_from([0, 1, "auto", "all"]),
        "pair_screen": st.sampled_from(["grid", "delta"]),
        "n_orientations": st.sampled_from([2, 3, 8]),
        "pair_penalty": st.sampled_from(["auto", 0.0]),
        "inner_tree": st.sampled_from(["cart", "optimal"]),
        "inner_max_leaf_nodes": st.sampled_from([None, 2, 32]),
        "inner_min_samples_leaf": st.sampled_from([1, 2, 0.1, 2 * 10**9]),
        "inner_max_depth": st.sampled_from([None, 1, 3]),
        "segment_penalty": st.sampled_from(["auto", 0.0, 1.0, 1e300]),
        "leaf_penalty": st.sampled_from([0.0, 1.0]),
        "branch_penalty": st.sampled_from([0.0, 0.01]),
        "assignment": st.sampled_from(ASSIGNMENTS),
        "max_bins": st.sampled_from([None, 2, 5, 255]),
        "categorical_features": st.sampled_from([None, [0], list(range(n_features))]),
        "n_threads": st.sampled_from([1, 2]),
        "random_state": st.just(0),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(choices)), unique=True, max_size=8))
    return {name: draw(choices[name]) for name in {*chosen, "random_state"}}


def fit_and_predict(data, model, criteria, y):
    """Fit on any table; predict on it, on others, and check the shape of what comes back."""
    n = len(y)
    X = data.draw(tables(n))
    weights = data.draw(
        st.one_of(
            st.none(),
            arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1e12])),
        )
    )
    layouts = st.sampled_from([np.ascontiguousarray, np.asfortranarray, strided, unaligned])
    X, y = data.draw(layouts)(X), data.draw(layouts)(y)
    estimator = make_tree(model, **data.draw(parameters(criteria, X.shape[1])))
    try:
        estimator.fit(X, y, weights)
    except REFUSALS as refusal:
        if "not a valid tree" in str(refusal):
            raise
        return None, None
    X_new = poke(X, data.draw(st.integers(0, 99)), data.draw(st.sampled_from(FLOATS)))
    X_new = data.draw(layouts)(X_new)
    predicted = estimator.predict(X_new)
    assert predicted.shape == y.shape
    assert estimator.apply(X_new).shape == (n,)
    assert estimator.decision_path(X_new).shape == (n, estimator.tree_.node_count)
    assert estimator.tree_.n_node_samples[estimator.tree_.is_leaf].min() >= 1
    return estimator, X_new


def target_shapes(n):
    return st.sampled_from([(n,), (n, 1), (n, 2)])


@fuzz
@given(st.data(), st.integers(1, 25))
def test_classifier(data, n):
    shape = data.draw(target_shapes(n).filter(lambda shape: shape != (n, 1)))
    y = data.draw(arrays(np.int64, shape, elements=st.integers(0, 4)))
    estimator, X = fit_and_predict(data, ShapeTreeClassifier, ["gini", "entropy", "log_loss"], y)
    if estimator is not None:
        shares = estimator.predict_proba(X)
        for share in shares if y.ndim == 2 else [shares]:
            np.testing.assert_allclose(share.sum(axis=1), 1.0)


@fuzz
@given(st.data(), st.integers(1, 25))
def test_regressor(data, n):
    shape = data.draw(target_shapes(n).filter(lambda shape: shape != (n, 1)))
    y = data.draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1.0, -1e6, 1e9, 0.1])))
    criteria = ["squared_error", "absolute_error"]
    estimator, X = fit_and_predict(data, ShapeTreeRegressor, criteria, y)
    if estimator is not None:
        predicted = estimator.predict(X)
        assert np.all((predicted >= y.min(axis=0) - 1) & (predicted <= y.max(axis=0) + 1))


@pytest.mark.parametrize("infinite", [-np.inf, np.inf])
def test_a_corner_of_infinite_values_can_be_split_off(infinite):
    X = np.array([[infinite, infinite], [infinite, 0.0], [0.0, infinite], [0.0, 0.0]] * 30)
    y = np.array([1, 0, 0, 0] * 30)
    estimator = ShapeTreeClassifier(pairs="all", random_state=0).fit(X, y)
    np.testing.assert_array_equal(estimator.predict(X), y)
