"""Numbers and conditions in words: exact where they are said to be, on the right side elsewhere."""

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, localcontext

import numpy as np
import pytest
from chance import examples
from hypothesis import assume, example, given
from hypothesis import strategies as st
from reader import Reader, Rows

from shapetree.data._table import FeatureInfo
from shapetree.tree._digits import (
    at_least,
    at_most,
    beyond,
    exact,
    n_digits,
    percent,
    rounded,
    with_spread,
)
from shapetree.tree._words import (
    category_words,
    interval,
    join_bounds,
    listing,
    lower_bound,
    readable,
    upper_bound,
    weighted_sum,
)

INF, GREATEST, TINY = math.inf, sys.float_info.max, 5e-324
finite = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.floats(allow_nan=False)
# Floats as data have them, too: few digits, float32, powers.
plain = st.one_of(
    finite,
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-(10**6), 10**6).map(lambda k: k / 100),
    st.builds(lambda m, e: float(f"{m}e{e}"), st.integers(-9999, 9999), st.integers(-330, 304)),
)
few_digits = st.integers(1, 15)


def normal(number):
    """Whether the number has all the digits that floats have."""
    return abs(number) >= sys.float_info.min


# Numbers


@examples(1500)
@given(st.one_of(numbers, plain))
@example(0.0)
@example(-0.0)
@example(TINY)
@example(-TINY)
@example(GREATEST)
@example(-GREATEST)
@example(sys.float_info.min)
@example(2.0**53 + 2)
@example(1e16)
@example(1e17)
@example(0.0001)
@example(0.00001)
def test_exact_reads_back_as_the_same_number(number):
    assert float(exact(number)) == number


def test_exact_reads_back_for_every_pattern_of_bits():
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, 2**64, 20_000, dtype=np.uint64).view(np.float64)
    for number in drawn[~np.isnan(drawn)].tolist():
        assert float(exact(number)) == number


@given(st.one_of(finite, plain))
def test_exact_has_the_digits_of_the_shortest_decimal(number):
    figures = Decimal(repr(number)).normalize().as_tuple().digits
    assert n_digits(exact(number)) == len(figures) * (number != 0)


@given(st.one_of(finite, plain))
def test_numbers_are_written_out_unless_that_is_long(number):
    text = exact(number)
    assert len(text) <= 24
    if number and 1e-4 <= abs(number) < 1e16:
        assert "e" not in text
    assert not text.endswith((".", ".0"))
    assert "e+" not in text


def test_numbers_that_are_not_numbers_are_written_as_python_does():
    assert [exact(INF), exact(-INF), exact(math.nan)] == ["inf", "-inf", "nan"]
    assert [rounded(INF), rounded(-INF), rounded(math.nan)] == ["inf", "-inf", "nan"]
    assert [at_most(INF, 4), at_least(-INF, 4)] == ["inf", "-inf"]


def test_zero_has_no_sign():
    assert {exact(-0.0), rounded(-0.0), at_most(-0.0, 3), at_least(0.0, 3)} == {"0"}


@examples(1000)
@given(st.one_of(finite, plain), few_digits)
@example(GREATEST, 4)
@example(TINY, 4)
@example(0.5, 1)
@example(2.5, 1)
@example(9.9995, 4)
def test_rounded_is_the_nearest_decimal_of_so_many_digits(number, digits):
    assume(number != 0)
    context = Context(prec=digits, rounding=ROUND_HALF_UP)
    assert Decimal(rounded(number, digits)) == context.create_decimal(Decimal(number))
    assert n_digits(rounded(number, digits)) <= digits


@given(st.one_of(finite, plain), st.integers(16, 60))
def test_more_digits_than_a_number_has_change_nothing_but_the_digits_shown(number, digits):
    assert float(rounded(number, max(digits, 17))) == number


@examples(1000)
@given(st.one_of(finite, plain), st.integers(1, 16))
@example(GREATEST, 4)
@example(-GREATEST, 4)
@example(TINY, 1)
@example(0.15000000223517418, 4)
@example(1e22, 3)
def test_at_most_and_at_least_are_on_the_right_side(number, digits):
    below, above = at_most(number, digits), at_least(number, digits)
    assert float(below) <= number <= float(above)
    assert n_digits(below) <= digits
    assert n_digits(above) <= digits


@examples(1000)
@given(st.one_of(finite, plain), few_digits)
@example(0.1, 4)
@example(1.0, 4)
@example(0.99999, 4)
@example(-1.00001, 4)
def test_at_most_and_at_least_are_the_nearest_on_their_side(number, digits):
    assume(normal(number))
    for text, direction, side in (
        (at_most(number, digits), ROUND_FLOOR, -1),
        (at_least(number, digits), ROUND_CEILING, 1),
    ):
        nearest = Context(prec=digits, rounding=direction).create_decimal(Decimal(number))
        said = Decimal(text)
        if said != nearest:
            # A decimal on the other side will do if it reads as the very number.
            assert float(text) == number
            assert side * (said - nearest) < 0


def test_numbers_do_not_depend_on_the_precision_of_decimals_elsewhere():
    number = 0.1234567890123456
    with localcontext(prec=3):
        assert float(exact(number)) == number
        assert rounded(math.pi * 1e10, 7) == "31415930000"
        assert at_most(math.pi * 1e9, 8) == "3141592600"


@given(st.one_of(finite, plain), few_digits)
def test_digits_are_counted_without_zeros_at_either_end(number, digits):
    text = rounded(number, digits)
    figures = Decimal(text).normalize().as_tuple().digits
    assert n_digits(text) == len(figures) * (float(text) != 0 or number != 0)


@given(st.floats(0, 1))
@example(0.0016)
@example(0.995)
@example(0.9953)
@example(0.005859375)
@example(math.nextafter(1, 0))
@example(TINY)
def test_percent_is_nearest_and_never_nothing_or_all_of_what_is_not(share):
    text = percent(share)
    assert text.endswith(" %")
    said = Decimal(text[:-2])
    off = 50 * min(share, 1 - share) if 0 < share < 1 else 0
    if 0.005 <= share < 0.995:
        assert text == f"{int(said)} %"
        off = 0.5
    assert abs(float(said) - 100 * share) <= off * 1.01 + 1e-9
    assert (said == 0) == (share == 0)
    assert (said == 100) == (share == 1)


def test_percent_rounds_halves_up_and_shows_the_digits_it_takes():
    shares = (0.0, 0.125, 0.005, 0.0016, 53 / 32561, 0.995, 0.9953, 0.99996, 1.0)
    assert [percent(share) for share in shares] == [
        *("0 %", "13 %", "1 %", "0.2 %", "0.2 %", "99.5 %", "99.5 %", "99.996 %", "100 %"),
    ]


@given(plain, plain)
def test_what_is_beyond_a_number_is_hardly_farther_and_ends_exactly(number, origin):
    assume(number != origin)
    texts = beyond(number, origin)
    assert float(texts[-1]) == number
    for text in texts:
        reached = float(text)
        assert reached >= number if number > origin else reached <= number
        assert abs(reached - number) <= abs(number / 50 - origin / 50) * (1 + 1e-9)
    assert list(map(n_digits, texts)) == sorted(map(n_digits, texts))


@given(plain, st.floats(1e-300, 1e300))
def test_a_number_is_written_finely_enough_for_its_spread(number, deviation):
    said, spread = with_spread(number, deviation)
    assert spread == rounded(deviation, 3)
    assert abs(Decimal(said) - Decimal(number)) <= max(
        Decimal(deviation) / 10, abs(Decimal(number)) * Decimal("1e-15")
    )


def test_lists_have_commas_and_one_and():
    assert listing([]) == ""
    assert listing(["a"]) == "a"
    assert listing(["a", "b"]) == "a and b"
    assert listing(["a", "b", "c", "d"]) == "a, b, c and d"


# Bounds


def around(*numbers):
    """Numbers with their neighbours, and some that are always there."""
    found = {-INF, -GREATEST, -1.0, -TINY, 0.0, TINY, 1.0, GREATEST, INF}
    for number in numbers:
        found |= {number, math.nextafter(number, INF), math.nextafter(number, -INF)}
    return sorted(found)


def holding(text, name, values):
    """Which values satisfy what is said."""
    rows = Rows([FeatureInfo(name)], {name: values})
    return Reader(rows).premise(text).tolist()


bounds = st.one_of(numbers, plain)


@examples(1500)
@given(bounds, bounds, plain)
@example(0.3, 1.4235, 0.0)
@example(-INF, INF, 0.0)
@example(0.1, math.nextafter(0.1, 1), 0.0)
@example(-TINY, TINY, 0.0)
@example(GREATEST, INF, 0.0)
@example(-INF, GREATEST, 0.0)
@example(math.nextafter(GREATEST, 0), GREATEST, 0.0)
@example(-INF, -GREATEST, 0.0)
@example(-GREATEST, INF, 0.0)
def test_intervals_hold_for_exactly_the_floats_inside(one, other, between):
    low, high = sorted([one, other])
    assume(low < high and low < INF and high > -INF)
    values = around(low, high, between, (low / 2 + high / 2) if abs(low + high) < INF else 0.0)
    if low == -INF and high < INF:
        values.remove(INF)  # `<` a number excludes it in any case
    expected = [low < value <= high or value == low == -INF for value in values]
    assert holding(interval("x", low, high), "x", values) == expected


@examples(500)
@given(bounds)
def test_single_bounds_hold_for_exactly_the_floats_on_their_side(number):
    assume(abs(number) < INF)
    values = around(number)
    lower = join_bounds("x", lower_bound(number), None)
    upper = join_bounds("x", None, upper_bound(number))
    assert holding(lower, "x", values) == [value > number for value in values]
    assert holding(upper, "x", values) == [value <= number for value in values]


def test_bounds_that_are_not_there_are_none():
    assert lower_bound(-INF) is None
    assert upper_bound(INF) is None
    assert interval("x", -INF, INF) == "x is known"


@examples(500)
@given(bounds)
def test_bounds_are_said_in_the_shorter_of_two_ways(number):
    assume(abs(number) < GREATEST)
    after = math.nextafter(number, INF)
    shortest = min(len(exact(number)), len(exact(after)))
    for sign, text in (lower_bound(number), upper_bound(number)):
        assert len(text) == shortest
        assert text == readable(number)
        assert float(text) == (number if sign in ">≤" else after)


@given(plain, plain, st.integers(1, 8))
def test_digits_round_the_bounds_of_numbers(one, other, digits):
    low, high = sorted([one, other])
    assume(low < high)
    text = interval("x", low, high, digits)
    assert text == f"x in ({rounded(low, digits)}, {rounded(high, digits)}]"


@given(st.integers(1, 30), st.data())
def test_categories_are_said_so_that_missing_and_new_ones_are_none(n, data):
    feature = FeatureInfo("c", tuple(f"k{i}" for i in range(n)))
    said = data.draw(st.sets(st.sampled_from(feature.categories), min_size=1))
    words = category_words(feature, tuple(c for c in feature.categories if c in said))
    assume("more" not in words)
    values = [*feature.categories, None, "new"]
    rows = Rows([feature], {"c": values})
    assert Reader(rows).premise(words).tolist() == [value in said for value in values]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ((1.0, 0.5), "x + 0.5·y"),
        ((1.0, -0.5), "x - 0.5·y"),
        ((1.0, -1e-300), "x - 1e-300·y"),
        ((0.0, 1.0), "y"),
        ((1.0, 0.0), "x"),
    ],
)
def test_weighted_sums_leave_out_what_has_no_weight(weights, words):
    assert weighted_sum(weights, ("x", "y")) == words


@given(finite, finite, finite, finite)
def test_weighted_sums_read_back_as_the_same_sums(weight, limit, u, v):
    assume(weight != 0)
    rows = Rows([FeatureInfo("x"), FeatureInfo("y")], {"x": [u], "y": [v]})
    words = join_bounds(weighted_sum((1.0, weight), ("x", "y")), None, upper_bound(limit))
    assert Reader(rows).premise(words)[0] == (u + weight * v <= limit)
