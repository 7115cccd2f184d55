"""TreeArrays holds a tree or refuses: native code follows its indices."""

import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from naive import trees
from numpy.testing import assert_array_equal

from shapetree._tree import TreeArrays

NAMES = [field.name for field in fields(TreeArrays)]
PER_NODE = [name for name in NAMES if not name.startswith("piece_")]


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


def test_importances_are_shares_of_the_gains(two_splits):
    assert_array_equal(two_splits.feature_importances(3), [0.75, 0.25, 0.0])


@given(trees(max_nodes=1))
def test_a_root_alone_has_no_importances(tree):
    assert_array_equal(tree.feature_importances(2), [0.0, 0.0])


@given(trees())
def test_every_node_is_reached_from_its_parent(tree):
    for node in range(1, tree.node_count):
        assert node in tree.children(tree.parent[node])
        assert tree.depth[node] == len(tree.path_to(node)) - 1


@pytest.mark.parametrize("name", NAMES)
def test_arrays_are_read_only_copies(tree_fields, name):
    given_array = np.array(tree_fields[name])
    tree = TreeArrays(**tree_fields | {name: given_array})
    given_array[...] = 0
    assert_array_equal(getattr(tree, name), np.array(tree_fields[name]))
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


def test_unpickling_checks_the_tree(two_splits):
    rebuild, arguments = two_splits.__reduce__()
    broken = list(arguments)
    broken[NAMES.index("first_child")] = np.array([1, -1, 4, -1, -1, -1])
    with pytest.raises(ValueError, match="children come breadth first"):
        rebuild(*broken)


BREADTH_FIRST = "children come breadth first"
BRANCHES = "between 2 and 254 branches"
EXIST = "branches of pieces and of missing values exist"
STARTS = "pieces start where those before end"


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
def test_arrays_of_another_length_are_refused(tree_fields, name, change):
    with pytest.raises(ValueError, match="arrays of nodes have one entry for each node"):
        TreeArrays(**tree_fields | {name: change(tree_fields[name])})


@pytest.mark.parametrize("name", [name for name in NAMES if name != "value"])
def test_arrays_of_more_dimensions_are_refused(tree_fields, name):
    with pytest.raises(ValueError, match="not a valid tree"):
        TreeArrays(**tree_fields | {name: np.array(tree_fields[name])[:, None]})


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
