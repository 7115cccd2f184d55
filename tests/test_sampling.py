"""Samples of rows: chosen by the hash of a row's number, whoever holds the row."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from shapetree._core.sampling import row_hashes
from shapetree.data import _sampling
from shapetree.data._sampling import first_by_hash, hash_limits, places_up_to, sampled

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
    limit = WORD if n_total <= size else (WORD - 1) // n_total * size
    expected = [row for row in rows if naive_hash(row) <= limit]
    assert sampled(first, n_rows, n_total, size).tolist() == expected


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.integers(0, 400))
def test_holders_of_parts_choose_the_sample_of_all(parts, size):
    n_total = sum(parts)
    starts = np.cumsum([0, *parts[:-1]]).tolist()
    chosen = [sampled(at, n, n_total, size) for at, n in zip(starts, parts, strict=True)]
    assert_array_equal(np.concatenate(chosen), sampled(0, n_total, n_total, size))


def test_places_are_those_of_the_rows_that_are_chosen():
    rows = np.random.default_rng(0).permutation(3_000).astype(np.int32)
    for limit in (0, 2**60, 2**64 - 1):
        expected = [i for i, row in enumerate(rows.tolist()) if naive_hash(row + 7) <= limit]
        assert places_up_to(rows, 7, limit).tolist() == expected


def test_blocks_of_rows_choose_the_sample_of_all(monkeypatch):
    whole = sampled(7, 3_000, 5_000, 900)
    monkeypatch.setattr(_sampling, "ROWS_PER_BLOCK", 128)
    assert_array_equal(sampled(7, 3_000, 5_000, 900), whole)


def test_samples_are_about_as_large_as_asked():
    for n_total in (10_001, 123_456, 10**6):
        assert abs(len(sampled(0, n_total, n_total, 10_000)) - 10_000) < 500


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=9).map(sorted), st.integers(1, 600))
def test_limits_fall_as_rows_become_more(n_rows, size):
    limits = hash_limits(np.array(n_rows), size)
    assert np.all(limits[1:] <= limits[:-1])
    for n, limit in zip(n_rows, limits.tolist(), strict=True):
        assert (limit == WORD - 1) == (n <= size)
        assert abs(limit * n / WORD - min(n, size)) < 1


@given(st.lists(st.integers(0, 1000), unique=True), st.integers(1, 30), st.integers(0, 2**40))
def test_the_rows_with_the_smallest_hashes_are_the_first(rows, size, first_row):
    expected = set(sorted(rows, key=lambda row: naive_hash(first_row + row))[:size])
    places = first_by_hash(np.array(rows, dtype=np.int32), size, first_row)
    assert places.tolist() == [i for i, row in enumerate(rows) if row in expected]


def test_a_row_that_is_there_many_times_may_be_chosen_as_often():
    # None of them may have a hash that is small enough at first.
    for row in range(20):
        assert first_by_hash(np.full(1000, row, dtype=np.int32), 5).shape == (5,)
