"""Samples of rows: chosen by the hash of a row's number, whoever holds the row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shapetree._core.sampling import row_hashes, rows_below
from shapetree.data._sampling import sampled

WORD = 2**64


def naive_hash(row):
    """Output number `row` of splitmix64 with seed 0."""
    x = (row + 1) * 0x9E3779B97F4A7C15 % WORD
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % WORD
    return x ^ (x >> 31)


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_hashes_equal_their_naive_twin(rows):
    hashes = row_hashes(np.array(rows, dtype=np.int64))
    assert hashes.tolist() == [naive_hash(row) for row in rows]


@given(st.integers(0, 200), st.integers(0, 200), st.integers(1, 500), st.integers(0, 50))
def test_rows_with_small_hashes_are_chosen(first, n_rows, n_total, size):
    rows = range(first, first + n_rows)
    least = WORD if n_total <= size else size * WORD // n_total
    expected = [row for row in rows if naive_hash(row) < least]
    assert sampled(first, n_rows, n_total, size).tolist() == expected


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.integers(0, 400))
def test_holders_of_parts_choose_the_sample_of_all(parts, size):
    n_total = sum(parts)
    starts = np.cumsum([0, *parts[:-1]]).tolist()
    chosen = [sampled(at, n, n_total, size) for at, n in zip(starts, parts, strict=True)]
    assert_array_equal(np.concatenate(chosen), sampled(0, n_total, n_total, size))


def test_samples_are_about_as_large_as_asked():
    for n_total in (10_001, 123_456, 10**6):
        assert abs(len(sampled(0, n_total, n_total, 10_000)) - 10_000) < 500


def test_rows_that_cannot_be_are_refused():
    for first, n_rows in ((-1, 3), (0, -1)):
        with pytest.raises(ValueError, match="out of range"):
            rows_below(first, n_rows, 5)
