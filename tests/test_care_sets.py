"""With more than two branches, losses by branch do at least as well as the paper's copies of rows.

The paper copies a row to each of its valid branches, those that predict it right, and fits a CART
to the copies.
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import cheapest_shape
from sklearn.tree import DecisionTreeClassifier


def wrong_rows_by_copies(values, is_valid, max_leaf_nodes):
    """Rows that the paper's way sends to a branch that is not valid, and its segments."""
    rows, branches = np.nonzero(is_valid)
    copies = DecisionTreeClassifier(max_leaf_nodes=max_leaf_nodes, random_state=0)
    chosen = copies.fit(values[rows, None], branches).predict(values[:, None])
    in_order = copies.predict(np.unique(values)[:, None])
    n_parts = 1 + np.count_nonzero(in_order[1:] != in_order[:-1])
    return np.count_nonzero(~is_valid[np.arange(len(values)), chosen]), n_parts


def wrong_rows_by_losses(values, is_valid, max_segments):
    """Rows that the exact solution of the reduced problem sends to a branch that is not valid."""
    distinct, bins = np.unique(values, return_inverse=True)
    losses = (~is_valid).astype(float)
    lost = np.zeros((len(distinct), is_valid.shape[1] - 1))
    np.add.at(lost, bins, losses[:, 1:] - losses[:, :1])
    branch_of_bin, lost_of_branches, _ = cheapest_shape(
        np.arange(len(distinct), dtype=np.int32), lost, len(distinct), False, is_valid.shape[1],
        segment_penalty=0.0, category_penalty=0.0, max_segments=max_segments, max_listed=1,
    )  # fmt: skip
    n_wrong = np.count_nonzero(~is_valid[np.arange(len(values)), branch_of_bin[bins]])
    assert sum(lost_of_branches) == pytest.approx(n_wrong - losses[:, 0].sum())
    return n_wrong


@given(
    st.integers(0, 2**32 - 1),
    st.integers(5, 200),
    st.integers(3, 5),
    st.sampled_from([2, 4, 8, 32]),
)
def test_losses_send_no_more_rows_astray_than_copies_do(seed, n_rows, n_branches, max_leaf_nodes):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 40, n_rows).astype(float)
    liked = rng.integers(0, n_branches, 41)
    is_valid = rng.random((n_rows, n_branches)) < 0.4
    is_valid[np.arange(n_rows), liked[values.astype(int)]] |= rng.random(n_rows) < 0.6
    is_valid[~is_valid.any(axis=1), 0] = True
    by_copies, n_parts = wrong_rows_by_copies(values, is_valid, max_leaf_nodes)
    assert wrong_rows_by_losses(values, is_valid, n_parts) <= by_copies
