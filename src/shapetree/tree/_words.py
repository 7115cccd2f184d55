"""Numbers and conditions in words, the same wherever a tree is described.

`page/src/words.js` says the same things the same way; tests compare the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

# Significant digits that a rounded number has, unless fewer say it all.
DIGITS = 4
# Digits of thresholds that are looked at; in a sentence, so many are still said exactly.
FEW_DIGITS = 6
# Digits that say every number exactly.
ALL_DIGITS = 17
# Threshold by threshold, the same numbers are put into words again and again.
remember = lru_cache(maxsize=8192)
# Decimals are computed with enough digits, whatever precision the caller has set.
_CONTEXT = Context(prec=2 * ALL_DIGITS)


@remember
def exact(number: float) -> str:
    """The shortest decimal that reads back as the number.

    Examples
    --------
    >>> exact(0.1), exact(3.0), exact(1e22), exact(-2.5e-9)
    ('0.1', '3', '1e22', '-2.5e-9')
    """
    if math.isinf(number) or math.isnan(number):
        return str(number)
    return _plain(Decimal(repr(float(number))))


@remember
def rounded(number: float, digits: int = DIGITS) -> str:
    """The number to some significant digits, ties away from zero.

    Examples
    --------
    >>> rounded(219.9801), rounded(0.000123451), rounded(12345678)
    ('220', '0.0001235', '12350000')
    """
    if not math.isfinite(number):
        return str(number)
    if number == 0:
        return "0"
    return _plain(_to_digits(number, digits))


def at_most(number: float, digits: int) -> str:
    """The greatest decimal of some significant digits that is not above the number.

    Examples
    --------
    >>> at_most(0.15000000223517418, 4), at_most(-1.23456, 3)
    ('0.15', '-1.24')
    """
    return _towards(number, digits, -1)


def at_least(number: float, digits: int) -> str:
    """The least decimal of some significant digits that is not below the number.

    Examples
    --------
    >>> at_least(0.15000000223517418, 4), at_least(-1.23456, 3)
    ('0.1501', '-1.23')
    """
    return _towards(number, digits, 1)


def n_digits(text: str) -> int:
    """Significant digits of a number in words, zeros at its end not counted.

    Examples
    --------
    >>> n_digits("0.0120"), n_digits("-1.5e300"), n_digits("1200")
    (2, 2, 2)
    """
    mantissa = text.lstrip("-").split("e")[0]
    return len(mantissa.replace(".", "").strip("0"))


def readable(threshold: float) -> str:
    """A threshold for people who look at a tree, the same in text, pictures and pages.

    Examples
    --------
    >>> readable(1033.5), readable(0.14234999999999998), readable(0.0723456789)
    ('1033.5', '0.14235', '0.0723457')
    """
    return rounded(threshold, FEW_DIGITS)


def percent(share: float) -> str:
    """A share in whole percent.

    Examples
    --------
    >>> percent(0.8149)
    '81 %'
    """
    return f"{math.floor(100 * share + 0.5)} %"


def listing(words: Sequence[str]) -> str:
    """Words as a list.

    Examples
    --------
    >>> listing(["red"]), listing(["red", "green", "blue"])
    ('red', 'red, green and blue')
    """
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def interval(
    name: str, low: float, high: float, is_whole: bool = False, digits: int | None = None
) -> str:
    """What it means to be above `low` and at most `high`, exactly unless digits are given.

    Examples
    --------
    >>> interval("age", 17.5, math.inf, is_whole=True)
    'age ≥ 18'
    >>> interval("words", 3.5, 5.5, is_whole=True), interval("words", 3.5, 4.5, is_whole=True)
    ('words in [4, 5]', 'words = 4')
    >>> interval("dose", 0.3, 0.14234999999999998 * 10)
    'dose in (0.3, 1.4235)'
    """
    if is_whole and math.isfinite(low) and math.isfinite(high):
        first, last = exact(_next_whole(low)), exact(math.floor(high))
        return f"{name} = {first}" if first == last else f"{name} in [{first}, {last}]"
    return join_bounds(
        name, lower_bound(low, is_whole, digits), upper_bound(high, is_whole, digits)
    )


@remember
def lower_bound(
    low: float, is_whole: bool = False, digits: int | None = None
) -> tuple[str, str] | None:
    """Sign and number of a lower bound, exact unless digits are given; None if there is none."""
    if low == -math.inf:
        return None
    if is_whole:
        return "≥", exact(_next_whole(low))
    if digits is not None:
        return ">", rounded(low, digits)
    after = math.nextafter(low, math.inf)
    return _shorter((">", exact(low)), ("≥", exact(after)))


@remember
def upper_bound(
    high: float, is_whole: bool = False, digits: int | None = None
) -> tuple[str, str] | None:
    """Sign and number of an upper bound, exact unless digits are given; None if there is none."""
    if high == math.inf:
        return None
    if is_whole:
        return "<", exact(_next_whole(high))
    if digits is not None:
        return "≤", rounded(high, digits)
    after = math.nextafter(high, math.inf)
    return _shorter(("≤", exact(high)), ("<", exact(after)))


def join_bounds(name: str, lower: tuple[str, str] | None, upper: tuple[str, str] | None) -> str:
    """One or two bounds of a quantity."""
    if lower is None or upper is None:
        bound = lower or upper
        return f"{name} is any number" if bound is None else f"{name} {bound[0]} {bound[1]}"
    start = "(" if lower[0] == ">" else "["
    end = ")" if upper[0] == "<" else "]"
    return f"{name} in {start}{lower[1]}, {upper[1]}{end}"


def weighted_sum(weights: tuple[str, str], names: tuple[str, str]) -> str:
    """A pair's weighted sum, the first weight being 0 or 1, both given as text.

    Examples
    --------
    >>> weighted_sum(("1", "-0.5"), ("x", "y"))
    'x - 0.5·y'
    """
    (a, b), (first, second) = weights, names
    if a == "0":
        return second
    if b == "0":
        return first
    return f"{first} - {b[1:]}·{second}" if b.startswith("-") else f"{first} + {b}·{second}"


def _next_whole(number: float) -> float:
    """The least whole number above a number, among those that floats have."""
    return max(math.floor(number) + 1, math.nextafter(number, math.inf))


def _shorter(one: tuple[str, str], other: tuple[str, str]) -> tuple[str, str]:
    return other if len(other[1]) < len(one[1]) and other[1] != "inf" else one


@remember
def _towards(number: float, digits: int, side: int) -> str:
    """The number to some digits, rounded to one side."""
    if number == 0 or not math.isfinite(number):
        return exact(number)
    decimal = _to_digits(number, digits)
    if side * (float(decimal) - number) < 0:
        step = Decimal(1).scaleb(_exponent(number) - digits + 1)
        decimal = _CONTEXT.add(decimal, side * step)
    return _plain(decimal)


def _to_digits(number: float, digits: int) -> Decimal:
    context = Context(prec=min(digits, ALL_DIGITS), rounding=ROUND_HALF_UP)
    return context.create_decimal(Decimal(number))


def _exponent(number: float) -> int:
    """Power of ten of the first digit."""
    return Decimal(number).adjusted()


def _plain(decimal: Decimal) -> str:
    """A decimal without needless zeros, in powers of ten only where it would be long."""
    sign, figures, exponent = decimal.normalize(_CONTEXT).as_tuple()
    digits = "".join(map(str, figures))
    if digits == "0":
        return "0"
    point = len(digits) + int(exponent)  # where the decimal point is, counted from the left
    minus = "-" if sign else ""
    if -4 <= point <= 16:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{digits}"
        if point >= len(digits):
            return f"{minus}{digits}{'0' * (point - len(digits))}"
        return f"{minus}{digits[:point]}.{digits[point:]}"
    mantissa = digits[0] + (f".{digits[1:]}" if len(digits) > 1 else "")
    return f"{minus}{mantissa}e{point - 1}"
