"""Sums and spreads of nodes' rows are those of each row, however many threads sum."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import spreads
from numpy.testing import assert_array_equal

from shapetree._core.histogram import Targets, sum_nodes
from shapetree._core.rows import NodeRows

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.integers(1, 5), st.booleans(), st.booleans())
def test_nodes_sum_up_their_rows(seed, n_threads, has_labels, has_weights):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 40))
    weights = rng.integers(1, 4, n_rows).astype(float) if has_weights else None
    targets = rng.integers(0, 3, (n_rows, 2))
    order = rng.integers(0, n_rows, 30).astype(np.int32)
    ends = np.sort(rng.integers(0, 31, (4, 2)), axis=1)
    starts, stops = ends[:, 0].copy(), ends[:, 1].copy()
    counts = rng.integers(1, 5, n_rows).astype(float) if has_weights and seed % 2 else None
    given = Targets(
        targets if has_labels else None, None if has_labels else targets.astype(float), weights, 3,
        counts=counts,
    )  # fmt: skip
    found = sum_nodes(given, order, starts, stops, n_threads)
    expected = np.zeros((4, 3 + has_weights))
    for node in range(4):
        for row in order[starts[node] : stops[node]]:
            weight = weights[row] if has_weights else 1.0
            if has_labels:
                for label in targets[row]:
                    expected[node, label] += weight
            else:
                expected[node, :3] += weight * np.append(1, targets[row])
            expected[node, 3:] += 1 if counts is None else counts[row]
    assert_array_equal(found, expected)


def test_rows_that_do_not_exist_are_refused():
    targets = Targets([[0], [1]], None, None, 2)
    for wrong in (-1, 2):
        for n_threads in (1, 3):
            with pytest.raises(IndexError, match="between 0 and 1"):
                sum_nodes(
                    targets, np.array([0, 1, wrong], dtype=np.int32), np.array([0]), np.array([3]),
                    n_threads,
                )  # fmt: skip
    with pytest.raises(ValueError, match="n_threads"):
        sum_nodes(targets, np.zeros(2, dtype=np.int32), np.array([0]), np.array([2]), 0)
    with pytest.raises(ValueError, match="in the order"):
        sum_nodes(targets, np.zeros(2, dtype=np.int32), np.array([0]), np.array([3]))


@given(SEEDS, st.booleans(), st.booleans(), st.sampled_from([2, 3, 7]))
def test_spreads_do_not_depend_on_threads(seed, absolute, has_weights, n_threads):
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(1, 50))
    y = rng.integers(-8, 8, (n_rows, 2)).astype(float)
    weights = rng.integers(1, 4, n_rows).astype(float) if has_weights else None
    rows, root, centres = NodeRows(n_rows), np.zeros(1, dtype=np.int32), np.array([[0.5, -1.0]])
    one, other = (
        spreads(rows, root, y, y, weights, centres, absolute, 2.0**-10, n) for n in (1, n_threads)
    )
    for a, b in zip(one, other, strict=True):
        assert_array_equal(a, b)
    off = np.abs(y - centres) if absolute else (y - centres) ** 2
    weight = np.ones(n_rows) if weights is None else weights
    assert_array_equal(one[0][0], y.min(axis=0))
    assert_array_equal(one[1][0], y.max(axis=0))
    assert one[2][0] == (off.sum(axis=1) * weight).sum()


def test_places_cannot_be_written_to():
    rows = NodeRows(5)
    for array in (rows.order, rows.start, rows.stop):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
