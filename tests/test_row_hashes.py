"""Hashes of what rows hold, compared with a naive twin, and what they do not depend on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shapetree._core.columns import Columns
from shapetree._core.sampling import (
    hash_contents,
    hash_rows,
    hash_targets,
    keys_of_columns,
)

seeds = st.integers(0, 2**32 - 1)
WORD = 2**64


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


def bins_of(rng, n_rows, n_columns):
    dtypes = rng.choice([np.uint8, np.uint16, np.uint32], n_columns)
    return [rng.integers(0, 4, n_rows).astype(dtype) for dtype in dtypes]


def hashes_of(columns, targets, times=None):
    bins = Columns(columns, len(targets))
    return hash_rows(bins, keys_of_columns(bins, hash_targets(targets), times))


@given(seeds, st.integers(0, 30), st.integers(1, 4))
def test_hashes_equal_their_naive_twins(seed, n_rows, n_columns):
    rng = np.random.default_rng(seed)
    columns = bins_of(rng, n_rows, n_columns)
    targets = rng.normal(size=(n_rows, 2))
    of_targets = [0] * n_rows
    for bits in targets.view(np.uint64).T.tolist():
        of_targets = [mix(h ^ b) for h, b in zip(of_targets, bits, strict=True)]
    assert hash_targets(targets).tolist() == of_targets
    by_place, by_content = [0] * n_rows, [0] * n_rows
    for codes in [column.tolist() for column in columns]:
        by_place = [mix(h ^ c) for h, c in zip(by_place, codes, strict=True)]
        key = mix(sum(mix((t + c) % WORD) for t, c in zip(of_targets, codes, strict=True)) % WORD)
        by_content = [(h + mix(key ^ c)) % WORD for h, c in zip(by_content, codes, strict=True)]
    rows = np.arange(n_rows, dtype=np.int32)
    assert hash_contents(Columns(columns, n_rows), rows).tolist() == by_place
    assert hashes_of(columns, targets).tolist() == by_content


@given(seeds)
def test_neither_the_order_of_rows_nor_that_of_columns_matters(seed):
    rng = np.random.default_rng(seed)
    columns, targets = bins_of(rng, 50, 4), rng.integers(0, 3, (50, 1))
    hashes = hashes_of(columns, targets)
    assert_array_equal(hashes_of(columns[::-1], targets), hashes)
    order = rng.permutation(50)
    assert_array_equal(hashes_of([c[order] for c in columns], targets[order]), hashes[order])


@given(seeds)
def test_counts_are_as_good_as_repeated_rows(seed):
    rng = np.random.default_rng(seed)
    columns, targets = bins_of(rng, 50, 4), rng.integers(0, 3, (50, 1))
    times = rng.integers(1, 5, 50)
    hashes = hashes_of(columns, targets, times.astype(np.uint64))
    repeated = hashes_of([np.repeat(c, times) for c in columns], np.repeat(targets, times, axis=0))
    assert_array_equal(repeated, np.repeat(hashes, times))


def test_rows_differ_where_their_bins_do():
    # Every row of eight binary columns; in which of them a one stands must be told.
    grid = np.indices([2] * 8).reshape(8, -1).astype(np.uint8)
    targets = np.arange(grid.shape[1], dtype=float)[:, None]
    assert len(np.unique(hashes_of(list(grid), targets))) == grid.shape[1]


def test_zeros_are_equal_whatever_their_sign():
    assert len(set(hash_targets(np.array([[0.0], [-0.0]])).tolist())) == 1


def test_arguments_that_do_not_fit_are_refused():
    bins, targets = Columns([np.zeros(3, np.uint8)], 3), hash_targets(np.zeros((3, 1)))
    with pytest.raises(ValueError, match="every row needs a target"):
        keys_of_columns(bins, targets[:2])
    with pytest.raises(ValueError, match="so many times"):
        keys_of_columns(bins, targets, np.ones(2, np.uint64))
    with pytest.raises(ValueError, match="does not hold bins"):
        keys_of_columns(Columns([np.zeros(3)], 3), targets)
    with pytest.raises(ValueError, match="every column needs a key"):
        hash_rows(bins, targets)
