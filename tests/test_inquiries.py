"""Inquiries that go on at once get the answers that each gets alone, in as few rounds as can be."""

from functools import partial

import pytest
from chance import examples
from hypothesis import given
from hypothesis import strategies as st

from shapetree.data._map_join import LocalParts, Question, add, run_inquiries


def multiplied(part, factor):
    """A part's answer."""
    return factor * part


class CountedParts(LocalParts):
    """Parts in this process that count how often they are asked."""

    n_rounds = 0

    def ask(self, of, join, finish=None):
        """One answer of all parts."""
        self.n_rounds += 1
        return super().ask(of, join, finish)


def doubled_sums(factors):
    """Twice the sum of the parts by each factor, which the next one is multiplied with."""
    found = []
    for factor in factors:
        own = partial(multiplied, factor=factor * (found[-1] if found else 1))
        found.append((yield Question(own, add, partial(multiplied, factor=2))))
    return found


def naive_sums(factors, parts):
    found = []
    for factor in factors:
        found.append(2 * sum(parts) * factor * (found[-1] if found else 1))
    return found


@examples(100)
@given(
    st.lists(st.lists(st.integers(-3, 3), max_size=4), max_size=9),
    st.lists(st.integers(-3, 3), min_size=1, max_size=3),
    st.integers(1, 10),
)
def test_inquiries_are_answered_alike_together_and_alone(all_factors, parts, n_at_once):
    asked = CountedParts(parts)
    found = run_inquiries([doubled_sums(factors) for factors in all_factors], asked, n_at_once)
    assert found == [naive_sums(factors, parts) for factors in all_factors]
    alone = [
        run_inquiries([doubled_sums(factors)], LocalParts([sum(parts)]), 1)[0]
        for factors in all_factors
    ]
    assert alone == found
    lengths = list(map(len, all_factors))
    groups = [lengths[first : first + n_at_once] for first in range(0, len(lengths), n_at_once)]
    assert asked.n_rounds == sum(map(max, groups))


def test_an_error_ends_all_inquiries():
    def fails():
        yield Question(partial(multiplied, factor=1), add)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_inquiries([doubled_sums([1, 2, 3]), fails()], LocalParts([1]), 2)
