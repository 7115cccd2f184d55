"""Shape functions of pairs are numbered and laid out as TreeArrays keeps them."""

import itertools
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import starts_of, trees
from numpy.testing import assert_array_equal

from shapetree._core.pieces import (
    pieces_of_bins,
    pieces_of_splits,
    thresholds_between,
)
from shapetree._core.search import NO_BRANCH_MARK, BinSplit
from shapetree.data._binning import FeatureBins
from shapetree.data._statistics import Statistics
from shapetree.grow._nodes import GrownTree, Level
from shapetree.grow._splits import number_cuts
from shapetree.tree._arrays import TreeArrays
from shapetree.tree._shape import (
    PairShape,
    ShapeFunction,
    flatten_shapes,
    shape_from_bins,
)

# Pieces of bins


def parting(low, high):
    return thresholds_between(np.array([low]), np.array([high]))[0]


def naive_pieces(branches, bins):
    """Thresholds between bins with rows that go elsewhere, and the branches around them."""
    held = [b for b in range(bins.n_bins) if branches[b] != NO_BRANCH_MARK]
    upper, branch = [], [branches[held[0]]]
    for left, right in itertools.pairwise(held):
        if branches[left] != branches[right]:
            # Values beside a bin may belong to it up to where it ends; see `_find_bins`.
            ends = [
                parting(bins.high[left], bins.low[left + 1]),
                parting(bins.high[right - 1], bins.low[right]),
            ]
            upper.append(float(np.clip(parting(bins.high[left], bins.low[right]), *ends)))
            branch.append(branches[right])
    return [*upper, np.inf], branch


@given(
    st.lists(st.floats(allow_nan=False), min_size=2, max_size=24, unique=True),
    st.data(),
)
def test_pieces_end_between_bins_that_go_elsewhere(values, data):
    values = np.sort(np.array(values))
    values = values[: len(values) // 2 * 2]
    bins = FeatureBins(len(values) // 2, values[::2].copy(), values[1::2].copy())
    marks = st.sampled_from([0, 1, 2, NO_BRANCH_MARK])
    branches = data.draw(st.lists(marks, min_size=bins.n_bins + 1, max_size=bins.n_bins + 1))
    branches[data.draw(st.integers(0, bins.n_bins - 1))] = 1
    found = pieces_of_bins(np.array(branches, dtype=np.uint8), bins.low, bins.high)
    expected = naive_pieces(branches, bins)
    # The same if all bins have branches, and some no rows.
    n_rows = np.array([branch != NO_BRANCH_MARK for branch in branches], dtype=np.int64)
    everywhere = np.array([branch % NO_BRANCH_MARK for branch in branches], dtype=np.uint8)
    told = pieces_of_bins(everywhere, bins.low, bins.high, n_rows)
    for one, other, third in zip(found, told, expected, strict=True):
        assert_array_equal(one, third)
        assert_array_equal(other, third)


def test_thresholds_of_whole_numbers_are_whole():
    low, high = np.array([3.0, 5.0, 9.0]), np.array([4.0, 7.0, 9.0])
    branches = np.array([0, 1, 0, 255], dtype=np.uint8)
    for is_whole, expected in ((False, [4.5, 8.0, np.inf]), (True, [4.0, 8.0, np.inf])):
        shape = shape_from_bins(0, FeatureBins(3, low, high, is_whole), branches, 2, 0)
        assert_array_equal(shape.upper, expected)


@pytest.mark.parametrize(
    ("branches", "n_bins", "message"),
    [([], 0, "bounds"), ([0, 0], 2, "bounds"), ([255, 0], 1, "some bin"), ([0], 0, "some bin")],
)
def test_bins_that_are_no_pieces_are_refused(branches, n_bins, message):
    bounds = np.arange(float(n_bins))
    with pytest.raises(ValueError, match=message):
        pieces_of_bins(np.array(branches, dtype=np.uint8), bounds, bounds)
    with pytest.raises(ValueError, match="bounds"):
        pieces_of_bins(np.zeros(3, dtype=np.uint8), np.zeros(2), np.zeros(2), np.ones(2, int))


# Numbers of cuts


@st.composite
def binary_trees(draw, max_cuts=12):
    """Child below each node's cut, -1 for regions; nodes are cut in any order."""
    low = [-1]
    for _ in range(draw(st.integers(0, max_cuts))):
        regions = [node for node, child in enumerate(low) if child < 0]
        low[draw(st.sampled_from(regions))] = len(low)
        low += [-1, -1]
    return low


def nodes_below(low, node=0):
    """A node and all below it, each before its children and the lower child first."""
    if low[node] < 0:
        return [node]
    return [node, *nodes_below(low, low[node]), *nodes_below(low, low[node] + 1)]


@given(binary_trees())
def test_cuts_and_regions_are_numbered_from_low_to_high(low):
    cuts, regions, cut_low, cut_high = number_cuts(low)
    nodes = nodes_below(low)
    assert cuts == [node for node in nodes if low[node] >= 0]
    assert regions == [node for node in nodes if low[node] < 0]

    def code(node):
        return cuts.index(node) if low[node] >= 0 else -1 - regions.index(node)

    assert cut_low.tolist() == [code(low[node]) for node in cuts]
    assert cut_high.tolist() == [code(low[node] + 1) for node in cuts]


@given(binary_trees())
def test_cuts_lead_to_later_cuts_and_to_regions_to_each_once(low):
    cuts, regions, cut_low, cut_high = number_cuts(low)
    targets = [*cut_low, *cut_high]
    assert sorted(targets) == [*range(-len(regions), 0), *range(1, len(cuts))][: 2 * len(cuts)]
    for target in (cut_low, cut_high):
        assert np.all((target < 0) | (target > np.arange(len(cuts))))


def test_the_numbers_of_an_example():
    # Node 0 is cut into 1 and 2, then 2 into 3 and 4, then 1 into 5 and 6.
    cuts, regions, cut_low, cut_high = number_cuts([1, 5, 3, -1, -1, -1, -1])
    assert cuts == [0, 1, 2]
    assert regions == [5, 6, 3, 4]
    assert cut_low.tolist() == [1, -1, -3]
    assert cut_high.tolist() == [2, -2, -4]


# Flat shape functions


def joined(lists):
    return [entry for entries in lists for entry in entries]


def flatten_one_by_one(shapes):
    """Lists, with one shape function's entries after another's."""
    names = ["feature", "second_feature", "missing_branch", "saw_missing"]
    flat = {name: [] for name in names}
    pieces, uppers, positions = [], [], []
    cuts = {name: [] for name in ("cut_a", "cut_b", "cut_threshold", "cut_low", "cut_high")}
    for shape in shapes:
        is_pair = isinstance(shape, PairShape)
        first, second = (shape.first, shape.second) if is_pair else (-1, -1)
        if isinstance(shape, ShapeFunction):
            first = shape.feature
        missing = (-1, False) if shape is None else (shape.missing_branch, shape.saw_missing)
        for name, entry in zip(names, (first, second, *missing), strict=True):
            flat[name].append(entry)
        branches = [] if shape is None else list(shape.branch_of_piece)
        pieces.append(branches)
        has_bounds = isinstance(shape, ShapeFunction) and shape.upper is not None
        uppers.append(list(shape.upper) if has_bounds else [np.nan] * len(branches))
        for name, lists in cuts.items():
            lists.append(list(getattr(shape, name)) if is_pair else [])
        positions += [list(places) for places in shape.positions] if is_pair else [[], []]
    return flat | {
        "piece_start": starts_of(pieces),
        "piece_upper": joined(uppers),
        "piece_branch": joined(pieces),
        "cut_start": starts_of(cuts["cut_a"]),
        **{name: joined(lists) for name, lists in cuts.items()},
        "position_start": starts_of(positions),
        "position": joined(positions),
    }


@given(trees())
def test_flat_shapes_equal_lists_filled_one_by_one(tree):
    shapes = [tree.shape(node) for node in range(tree.node_count)]
    flat, expected = flatten_shapes(shapes), flatten_one_by_one(shapes)
    assert flat.keys() == expected.keys()
    for name, array in flat.items():
        assert_array_equal(array, expected[name])


@given(trees())
def test_flat_shapes_make_the_tree_that_they_are_from(tree):
    flat = flatten_shapes([tree.shape(node) for node in range(tree.node_count)])
    kept = {field.name: getattr(tree, field.name) for field in fields(TreeArrays)}
    again = TreeArrays(**kept | flat)
    for name in kept:
        assert_array_equal(getattr(again, name), kept[name])


@st.composite
def feature_bins(draw):
    n_bins = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(("real", "whole", "places", "categories")))
    if kind == "categories":
        return FeatureBins(n_bins)
    if kind == "places":
        places = np.arange(n_bins, dtype=np.float64)
        return FeatureBins(n_bins, places, places, has_places=True)
    steps = st.integers(1, 5) if kind == "whole" else st.floats(0.1, 5.0)
    ends = np.cumsum(draw(st.lists(steps, min_size=2 * n_bins, max_size=2 * n_bins)))
    low, high = ends.astype(np.float64).reshape(-1, 2).T
    return FeatureBins(n_bins, low.copy(), high.copy(), is_whole=kind == "whole")


@given(st.lists(feature_bins(), min_size=1, max_size=3), st.data())
def test_splits_laid_out_at_once_equal_their_shape_functions(features, data):
    splits, largest = [], data.draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))
    marks = st.sampled_from((0, 1, 2, NO_BRANCH_MARK))
    for _ in largest:
        feature = data.draw(st.integers(0, len(features) - 1))
        size = features[feature].n_bins + 1
        branches = np.array(data.draw(st.lists(marks, min_size=size, max_size=size)), np.uint8)
        branches[0] %= 3  # some bin holds rows
        splits.append(BinSplit(feature, 3, branches))
    shapes = [
        shape_from_bins(split.feature, features[split.feature], split.branch_of_bin, 3, b)
        for split, b in zip(splits, largest, strict=True)
    ]
    found = pieces_of_splits(splits, np.array(largest, dtype=np.int64), features)
    expected = flatten_shapes(shapes)
    for name, array in found.items():
        assert_array_equal(array, expected[name], err_msg=name)


@given(st.lists(feature_bins(), min_size=1, max_size=3), st.integers(1, 3), st.data())
def test_trees_are_the_same_whether_splits_are_laid_out_or_kept(features, n_trees, data):
    def nodes(n):
        rows = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), np.int64)
        return Statistics(rows, rows.astype(float), np.ones(n), rows[:, None, None] / 4)

    roots = nodes(n_trees)
    kept, laid_out = GrownTree(roots), GrownTree(roots, tuple(features))
    level = kept.roots()
    for depth in (1, 2):
        is_split = np.array(
            data.draw(st.lists(st.booleans(), min_size=len(level), max_size=len(level))), bool
        )
        level, splits = level.take(is_split), []
        for _ in range(len(level)):
            feature = data.draw(st.integers(0, len(features) - 1))
            branches = np.arange(features[feature].n_bins + 1) % 3
            splits.append(BinSplit(feature, data.draw(st.integers(2, 3)), branches.astype("u1")))
        tree = np.repeat(level.tree, [split.n_branches for split in splits])
        numbers = np.arange(kept.n_nodes, kept.n_nodes + len(tree), dtype=np.int32)
        children = Level(numbers, nodes(len(tree)), depth, tree, kept.numbered(tree))
        for grown in (kept, laid_out):
            grown.add(level.numbers.tolist(), splits, children)
        level = children
    for root in range(n_trees):
        one, other = (grown.arrays(tuple(features), 1.0, root) for grown in (kept, laid_out))
        for name in (field.name for field in fields(TreeArrays)):
            assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (BinSplit(1, 2, np.zeros(3, dtype=np.uint8)), "features that exist"),
        (BinSplit(0, 2, np.zeros(2, dtype=np.uint8)), "every bin needs a branch"),
        (BinSplit(0, 2, np.full(3, NO_BRANCH_MARK, dtype=np.uint8)), "some bin must have"),
    ],
)
def test_splits_that_do_not_fit_the_bins_are_refused(split, message):
    bounds = np.arange(2.0)
    with pytest.raises(ValueError, match=message):
        pieces_of_splits([split], np.zeros(1, dtype=np.int64), [FeatureBins(2, bounds, bounds)])


# Missing branches


@pytest.mark.parametrize(("saw_missing", "branch"), [(True, 1), (False, 2)])
def test_the_largest_branch_takes_missing_values_unless_rows_have_decided(saw_missing, branch):
    one = np.ones(1)
    places = (np.empty(0), np.empty(0))
    shape = PairShape(
        0, 1, 3, one, one, one, one, one, np.arange(2), places, missing_branch=1,
        saw_missing=saw_missing,
    )  # fmt: skip
    largest = shape.with_largest_branch(2)
    assert largest.missing_branch == branch
    assert largest.saw_missing == saw_missing
