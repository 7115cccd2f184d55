"""Settings that all tests share."""

import numpy as np
import pytest
from hypothesis import settings

from shapetree._tree import TreeArrays

settings.register_profile("shapetree", deadline=None, max_examples=60)
settings.load_profile("shapetree")


@pytest.fixture
def tree_fields():
    """The arrays of a tree with two splits: node 0 on feature 0, node 2 on category feature 1."""
    return {
        "parent": [-1, 0, 0, 2, 2, 2],
        "depth": [0, 1, 1, 2, 2, 2],
        "first_child": [1, -1, 3, -1, -1, -1],
        "n_branches": [2, 0, 3, 0, 0, 0],
        "feature": [0, -1, 1, -1, -1, -1],
        "missing_branch": [1, -1, 0, -1, -1, -1],
        "saw_missing": [True, False, False, False, False, False],
        "piece_start": [0, 3, 3, 7, 7, 7, 7],
        "piece_upper": [0.5, 2.0, np.inf, np.nan, np.nan, np.nan, np.nan],
        "piece_branch": [0, 1, 0, 2, 1, 0, 1],
        "n_node_samples": [9, 5, 4, 1, 2, 1],
        "weighted_n_node_samples": [9.0, 5.0, 4.0, 1.0, 2.0, 1.0],
        "impurity": [1.0, 0.0, 0.5, 0.0, 0.0, 0.0],
        "gain": [3.0, 0.0, 1.0, 0.0, 0.0, 0.0],
        "value": [[[0.5, 0.5]]] * 6,
    }


@pytest.fixture
def two_splits(tree_fields):
    """A tree with two splits."""
    return TreeArrays(**tree_fields)


@pytest.fixture
def one_split():
    """A tree with one threshold, 0.5, on feature 0."""
    return TreeArrays(
        parent=[-1, 0, 0],
        depth=[0, 1, 1],
        first_child=[1, -1, -1],
        n_branches=[2, 0, 0],
        feature=[0, -1, -1],
        missing_branch=[0, -1, -1],
        saw_missing=[False, False, False],
        piece_start=[0, 2, 2, 2],
        piece_upper=[0.5, np.inf],
        piece_branch=[0, 1],
        n_node_samples=[2, 1, 1],
        weighted_n_node_samples=[2.0, 1.0, 1.0],
        impurity=[1.0, 0.0, 0.0],
        gain=[2.0, 0.0, 0.0],
        value=[[[0.5]], [[0.0]], [[1.0]]],
    )
