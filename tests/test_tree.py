"""TreeArrays holds a tree or refuses: native code follows its indices."""

import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import trees
from numpy.testing import assert_allclose, assert_array_equal

from shapetree.tree._arrays import TreeArrays

NAMES = [field.name for field in fields(TreeArrays) if field.name != "sketches"]
PER_NODE = [name for name in NAMES if not name.startswith(("piece_", "cut_", "position"))]


@pytest.fixture
def tree_fields():
    """The arrays of a tree with two splits: node 0 on feature 0, node 2 on category feature 1."""
    return {
        "parent": [-1, 0, 0, 2, 2, 2],
        "depth": [0, 1, 1, 2, 2, 2],
        "first_child": [1, -1, 3, -1, -1, -1],
        "n_branches": [2, 0, 3, 0, 0, 0],
        "feature": [0, -1, 1, -1, -1, -1],
        "second_feature": [-1] * 6,
        "missing_branch": [1, -1, 0, -1, -1, -1],
        "saw_missing": [True, False, False, False, False, False],
        "piece_start": [0, 3, 3, 7, 7, 7, 7],
        "piece_upper": [0.5, 2.0, np.inf, np.nan, np.nan, np.nan, np.nan],
        "piece_branch": [0, 1, 0, 2, 1, 0, 1],
        "cut_start": [0] * 7,
        "cut_a": [],
        "cut_b": [],
        "cut_threshold": [],
        "cut_low": [],
        "cut_high": [],
        "position_start": [0] * 13,
        "position": [],
        "n_node_samples": [9, 5, 4, 1, 2, 1],
        "weighted_n_node_samples": [8.0, 4.0, 4.0, 1.0, 2.0, 1.0],
        "impurity": [1.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        "value": [[[0.5, 0.5]]] * 6,
    }


@pytest.fixture
def pair_fields(tree_fields):
    """The same tree, but node 0 splits on number 0 and category feature 2, by two cuts."""
    return tree_fields | {
        "second_feature": [2, -1, -1, -1, -1, -1],
        "piece_upper": [np.nan] * 7,
        "cut_start": [0, 2, 2, 2, 2, 2, 2],
        "cut_a": [1.0, 0.0],
        "cut_b": [-0.5, 1.0],
        "cut_threshold": [0.25, 1.5],
        "cut_low": [1, -1],
        "cut_high": [-3, -2],
        "position_start": [0, 0] + [3] * 11,
        "position": [1.0, np.nan, 0.0],
    }


@pytest.fixture
def two_splits(tree_fields):
    """A tree with two splits."""
    return TreeArrays(**tree_fields)


@pytest.fixture
def split_on_a_pair(pair_fields):
    """A tree whose root splits on a pair."""
    return TreeArrays(**pair_fields)


def test_sizes_are_counted(two_splits):
    assert two_splits.node_count == 6
    assert two_splits.n_leaves == 4
    assert two_splits.max_depth == 2
    assert_array_equal(two_splits.is_leaf, [False, True, False, True, True, True])


def test_children_stand_side_by_side(two_splits):
    assert list(two_splits.children(0)) == [1, 2]
    assert list(two_splits.children(2)) == [3, 4, 5]
    assert list(two_splits.children(1)) == []


def test_path_leads_from_the_root(two_splits):
    assert two_splits.path_to(0) == [0]
    assert two_splits.path_to(4) == [0, 2, 4]


def test_pieces_are_those_of_the_node(two_splits):
    assert_array_equal(two_splits.piece_branch[two_splits.pieces(2)], [2, 1, 0, 1])


def test_cuts_are_those_of_the_node(split_on_a_pair):
    assert_array_equal(split_on_a_pair.cut_threshold[split_on_a_pair.cuts(0)], [0.25, 1.5])
    assert split_on_a_pair.cuts(1) == split_on_a_pair.cuts(2) == slice(2, 2)


def test_positions_are_those_of_one_feature_of_the_pair(split_on_a_pair):
    places = [split_on_a_pair.position[split_on_a_pair.positions(0, side)] for side in (0, 1)]
    assert_array_equal(places[0], [])
    assert_array_equal(places[1], [1.0, np.nan, 0.0])
    assert split_on_a_pair.positions(2, 0) == split_on_a_pair.positions(5, 1) == slice(3, 3)


def test_a_node_has_no_feature_or_one_or_two(split_on_a_pair):
    assert [split_on_a_pair.features_of(node) for node in range(3)] == [[0, 2], [], [1]]


def test_used_features_are_those_of_all_nodes(two_splits, split_on_a_pair):
    assert two_splits.used_features == [0, 1]
    assert split_on_a_pair.used_features == [0, 1, 2]


@given(trees())
def test_used_features_are_named_once_and_ascend(tree):
    used = {feature for node in range(tree.node_count) for feature in tree.features_of(node)}
    assert tree.used_features == sorted(used)


def test_importances_are_shares_of_the_gains(two_splits):
    assert_array_equal(two_splits.feature_importances(3), [0.75, 0.25, 0.0])


def test_the_gain_of_a_pair_is_shared_half_and_half(split_on_a_pair):
    assert_array_equal(split_on_a_pair.feature_importances(4), [0.375, 0.25, 0.375, 0.0])


@given(trees())
def test_importances_equal_a_sum_node_by_node(tree):
    gains = [0.0] * 4
    for node in range(tree.node_count):
        features = [f for f in (tree.feature[node], tree.second_feature[node]) if f >= 0]
        for feature in features:
            gains[feature] += tree.gain[node] / len(features)
    shares = np.array(gains) / sum(gains) if sum(gains) > 0 else gains
    assert_allclose(tree.feature_importances(4), shares)


@given(trees(max_nodes=1))
def test_a_root_alone_has_no_importances(tree):
    assert_array_equal(tree.feature_importances(2), [0.0, 0.0])


@given(trees())
def test_every_node_is_reached_from_its_parent(tree):
    for node in range(1, tree.node_count):
        assert node in tree.children(tree.parent[node])
        assert tree.depth[node] == len(tree.path_to(node)) - 1


@pytest.mark.parametrize("name", NAMES)
def test_arrays_are_read_only_copies(pair_fields, name):
    given_array = np.array(pair_fields[name])
    tree = TreeArrays(**pair_fields | {name: given_array})
    given_array[...] = 0
    assert_array_equal(getattr(tree, name), np.array(pair_fields[name]))
    with pytest.raises(ValueError, match="read-only"):
        getattr(tree, name)[0] = 0
    with pytest.raises(AttributeError):
        setattr(tree, name, given_array)


@given(trees())
def test_pickling_keeps_every_array(tree):
    copy = pickle.loads(pickle.dumps(tree))
    for name in NAMES:
        assert_array_equal(getattr(copy, name), getattr(tree, name))
        assert not getattr(copy, name).flags.writeable


@pytest.mark.parametrize(
    ("name", "array", "rule"),
    [
        ("first_child", [1, -1, 4, -1, -1, -1], "children come breadth first"),
        ("cut_low", [0, -1], "cuts lead to later cuts"),
        ("position_start", [0] * 13, "positions start"),
    ],
)
def test_unpickling_checks_the_tree(split_on_a_pair, name, array, rule):
    rebuild, arguments = split_on_a_pair.__reduce__()
    broken = list(arguments)
    broken[NAMES.index(name)] = np.array(array)
    with pytest.raises(ValueError, match=rule):
        rebuild(*broken)


BREADTH_FIRST = "children come breadth first"
BRANCHES = "between 2 and 254 branches"
EXIST = "branches of pieces and of missing values exist"
STARTS = "pieces start where those before end"
SECOND = "a pair's second feature comes after its first"
N_CUTS = "a pair has cuts, one less than regions, and nothing else has"
NUMBERS = "cuts have finite numbers, the first of them 0 or 1"
TARGETS = "cuts lead to later cuts and to regions, to each once"
POSITIONS = "positions start where those before end, and only pairs have them"


@pytest.mark.parametrize(
    ("name", "array", "rule"),
    [
        ("n_branches", [1, 0, 3, 0, 0, 0], BRANCHES),
        ("n_branches", [-2, 0, 3, 0, 0, 0], BRANCHES),
        ("n_branches", [2, 0, 255, 0, 0, 0], BRANCHES),
        ("n_branches", [2, 1, 3, 0, 0, 0], BRANCHES),
        ("n_branches", [2, 0, 2, 0, 0, 0], BREADTH_FIRST),
        ("n_branches", [3, 0, 2, 0, 0, 0], BREADTH_FIRST),
        ("first_child", [2, -1, 3, -1, -1, -1], BREADTH_FIRST),
        ("first_child", [0, -1, 3, -1, -1, -1], BREADTH_FIRST),
        ("first_child", [1, -1, 2**31 - 1, -1, -1, -1], BREADTH_FIRST),
        ("parent", [-1, 0, 0, 2, 2, 1], BREADTH_FIRST),
        ("parent", [0, 0, 0, 2, 2, 2], BREADTH_FIRST),
        ("parent", [-1, 0, 2, 2, 2, 2], BREADTH_FIRST),
        ("feature", [-1, 0, 1, -1, -1, -1], BRANCHES),
        ("depth", [0, 1, 2, 2, 2, 2], "depth grows by one"),
        ("depth", [1, 2, 2, 3, 3, 3], "depth grows by one"),
        ("piece_start", [0, 3, 3, 7, 7, 7], STARTS),
        ("piece_start", [1, 3, 3, 7, 7, 7, 7], STARTS),
        ("piece_start", [0, 4, 3, 7, 7, 7, 7], STARTS),
        ("piece_start", [0, 3, 3, 7, 7, 7, 8], STARTS),
        ("piece_start", [0, 3, 3, 2**62, 7, 7, 7], STARTS),
        ("piece_start", [], STARTS),
        ("piece_upper", [0.5, np.inf], STARTS),
        ("piece_branch", [0, 1], STARTS),
        ("piece_start", [0, 3, 4, 7, 7, 7, 7], "a node that splits has pieces, a leaf has none"),
        ("piece_start", [0, 0, 0, 7, 7, 7, 7], "a node that splits has pieces, a leaf has none"),
        ("piece_branch", [0, 2, 0, 2, 1, 0, 1], EXIST),
        ("piece_branch", [0, -1, 0, 2, 1, 0, 1], EXIST),
        ("missing_branch", [2, -1, 0, -1, -1, -1], EXIST),
        ("missing_branch", [-1, -1, 0, -1, -1, -1], EXIST),
        ("value", [[0.5, 0.5]] * 6, "values have shape"),
    ],
)
def test_arrays_that_are_no_tree_are_refused_with_the_rule(tree_fields, name, array, rule):
    with pytest.raises(ValueError, match=f"not a valid tree: .*{rule}"):
        TreeArrays(**tree_fields | {name: array})


@pytest.mark.parametrize(
    ("name", "array", "rule"),
    [
        ("second_feature", [0, -1, -1, -1, -1, -1], SECOND),
        ("second_feature", [2, -1, 0, -1, -1, -1], SECOND),
        ("second_feature", [2, 3, -1, -1, -1, -1], SECOND),
        ("second_feature", [-1] * 6, N_CUTS),
        ("second_feature", [2, -1, 3, -1, -1, -1], N_CUTS),
        ("cut_start", [0, 2, 2, 2, 2, 2], N_CUTS),
        ("cut_start", [1, 2, 2, 2, 2, 2, 2], N_CUTS),
        ("cut_start", [0, 1, 2, 2, 2, 2, 2], N_CUTS),
        ("cut_start", [0, 1, 1, 1, 1, 1, 1], N_CUTS),
        ("cut_start", [0, 2, 2, 2, 2, 2, 3], N_CUTS),
        ("cut_start", [0, 2, 2, 2**62, 2, 2, 2], N_CUTS),
        ("cut_start", [0, 2, 2, -(2**63), 2**63 - 1, 2, 2], N_CUTS),
        ("cut_start", [], N_CUTS),
        ("cut_a", [1.0], N_CUTS),
        ("cut_b", [1.0, 1.0, 1.0], N_CUTS),
        ("cut_threshold", [], N_CUTS),
        ("cut_low", [1], N_CUTS),
        ("cut_high", [-3, -2, -2], N_CUTS),
        ("cut_a", [0.5, 0.0], NUMBERS),
        ("cut_a", [-1.0, 0.0], NUMBERS),
        ("cut_a", [np.nan, 0.0], NUMBERS),
        ("cut_a", [1.0, np.inf], NUMBERS),
        ("cut_b", [np.nan, 1.0], NUMBERS),
        ("cut_b", [-0.5, -np.inf], NUMBERS),
        ("cut_threshold", [np.inf, 1.5], NUMBERS),
        ("cut_threshold", [0.25, np.nan], NUMBERS),
        ("piece_upper", [0.5, 2.0, np.inf, *[np.nan] * 4], "regions have no upper bound"),
        ("cut_low", [0, -1], TARGETS),  # the cut itself
        ("cut_high", [-3, 0], TARGETS),  # an earlier cut
        ("cut_high", [-3, 1], TARGETS),  # the cut itself
        ("cut_low", [2, -1], TARGETS),  # no such cut
        ("cut_high", [-4, -2], TARGETS),  # no such region
        ("cut_low", [-1, -1], TARGETS),  # a region twice, a cut never
        ("cut_high", [-2, -2], TARGETS),  # a region twice, another never
        ("cut_high", [1, -2], TARGETS),  # a cut twice, a region never
        ("cut_low", [2**31 - 1, -1], TARGETS),
        ("cut_low", [-(2**31), -1], TARGETS),
        ("position_start", [0, 0] + [3] * 10, POSITIONS),
        ("position_start", [1, 1] + [3] * 11, POSITIONS),
        ("position_start", [0, 3, 0] + [3] * 10, POSITIONS),
        ("position_start", [0, 0] + [3] * 10 + [4], POSITIONS),
        ("position_start", [0, 0, 2] + [3] * 10, POSITIONS),
        ("position_start", [], POSITIONS),
        ("position", [1.0, 0.0], POSITIONS),
    ],
)
def test_pairs_that_are_none_are_refused_with_the_rule(pair_fields, name, array, rule):
    with pytest.raises(ValueError, match=f"not a valid tree: .*{rule}"):
        TreeArrays(**pair_fields | {name: array})


def test_a_pair_of_one_region_is_refused(pair_fields):
    one_region = {
        "piece_start": [0, 1, 1, 5, 5, 5, 5],
        "piece_upper": [np.nan] * 5,
        "piece_branch": [0, 2, 1, 0, 1],
        "cut_start": [0] * 7,
        **{name: [] for name in ("cut_a", "cut_b", "cut_threshold", "cut_low", "cut_high")},
    }
    with pytest.raises(ValueError, match=f"not a valid tree: {N_CUTS}"):
        TreeArrays(**pair_fields | one_region)


def test_cuts_of_two_pairs_are_told_apart(pair_fields):
    two_pairs = {
        "second_feature": [2, -1, 3, -1, -1, -1],
        "cut_start": [0, 2, 2, 5, 5, 5, 5],
        "cut_a": [1.0] * 5,
        "cut_b": [1.0] * 5,
        "cut_threshold": [0.0] * 5,
        "cut_low": [1, -1, 2, -1, -3],
        "cut_high": [-3, -2, 1, -2, -4],
    }
    assert TreeArrays(**pair_fields | two_pairs).cuts(2) == slice(2, 5)
    with pytest.raises(ValueError, match=f"not a valid tree: {TARGETS}"):
        TreeArrays(**pair_fields | two_pairs | {"cut_low": [2, -1, 1, -1, -3]})


@given(trees(), st.data())
def test_a_tree_with_another_target_of_a_cut_is_refused(tree, data):
    names = st.sampled_from(["cut_low", "cut_high"])
    if len(tree.cut_a) == 0:
        return
    name, cut = data.draw(names), data.draw(st.integers(0, len(tree.cut_a) - 1))
    broken = getattr(tree, name).copy()
    broken[cut] = data.draw(st.integers(-9, 9).filter(lambda target: target != broken[cut]))
    kept = {other: getattr(tree, other) for other in NAMES}
    with pytest.raises(ValueError, match=f"not a valid tree: {TARGETS}"):
        TreeArrays(**kept | {name: broken})


def test_a_node_among_its_own_children_is_refused():
    itself = {"parent": [-1, 1, 1], "first_child": [-1, 1, -1], "n_branches": [0, 2, 0]}
    split = {"feature": [-1, 0, -1], "piece_start": [0, 0, 1, 1], "piece_upper": [np.inf]}
    others = dict.fromkeys(NAMES, np.zeros(3)) | {"value": np.zeros((3, 1, 1)), "piece_branch": [0]}
    with pytest.raises(ValueError, match="children come after their parents"):
        TreeArrays(**others | itself | split)


def test_a_tree_without_nodes_is_refused():
    nothing = dict.fromkeys(NAMES, np.empty(0)) | {"piece_start": [0], "value": np.empty((0, 1, 1))}
    with pytest.raises(ValueError, match="not a valid tree: there is at least one node"):
        TreeArrays(**nothing)


@pytest.mark.parametrize("change", [lambda a: a[:-1], lambda a: [*a, a[-1]]])
@pytest.mark.parametrize("name", PER_NODE)
def test_arrays_of_another_length_are_refused(pair_fields, name, change):
    with pytest.raises(ValueError, match="arrays of nodes have one entry for each node"):
        TreeArrays(**pair_fields | {name: change(pair_fields[name])})


@pytest.mark.parametrize("name", [name for name in NAMES if name != "value"])
def test_arrays_of_more_dimensions_are_refused(pair_fields, name):
    with pytest.raises(ValueError, match=f"not a valid tree: {name} has one dimension"):
        TreeArrays(**pair_fields | {name: np.array(pair_fields[name])[:, None]})


@pytest.mark.parametrize(
    "upper",
    [
        [2.0, 0.5, np.inf],  # not ascending
        [0.5, 2.0, 3.0],  # a value above the last bound has no piece
        [0.5, np.nan, np.inf],  # neither ordered nor categorical
    ],
)
def test_bounds_of_pieces_ascend_to_infinity(tree_fields, upper):
    with pytest.raises(ValueError, match="not a valid tree"):
        TreeArrays(**tree_fields | {"piece_upper": upper + [np.nan] * 4})


def test_huge_numbers_of_branches_are_refused_before_they_take_memory(tree_fields):
    with pytest.raises(ValueError, match=f"not a valid tree: .*{BRANCHES}"):
        TreeArrays(**tree_fields | {"feature": [0] * 6, "n_branches": [2**31 - 1] * 6})


@given(trees())
def test_other_weights_and_values_leave_the_rest_as_it_is(tree):
    weights, value = tree.weighted_n_node_samples / 3, tree.value + 1
    changed = tree.with_nodes(weights=weights, value=value)
    expected = replace(tree, weighted_n_node_samples=weights, value=value)
    for field in fields(TreeArrays):
        if field.name != "sketches":
            assert_array_equal(getattr(changed, field.name), getattr(expected, field.name))
    assert not changed.value.flags.writeable
    assert changed.sketches is tree.sketches
    for wrong in ({"weights": weights[1:]}, {"value": value[:, 0]}, {"sketches": []}):
        with pytest.raises(ValueError, match="one entry for each node"):
            tree.with_nodes(**wrong)
