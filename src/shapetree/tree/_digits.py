"""Numbers as text: how many digits they have, the same wherever a tree is described.

Thresholds are chosen short when a tree is finished, so they are written exactly, and what is
written is true of every row. What has no short form (means, shares, spreads) is rounded here and
nowhere else. `page/src/words.js` writes a visitor's own numbers in the same way; tests compare.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache

from shapetree.data._moments import FIRST, LAST, READABLE_STEPS, DateKind, read_moment, write_moment

# Significant digits of a rounded number, unless fewer are enough.
DIGITS = 4
# The same for a spread.
SPREAD_DIGITS = 3
# Numbers with at most this many digits are written exactly.
FEW_DIGITS = 6
# Digits that write every float exactly.
ALL_DIGITS = 17
# The same numbers are put into words again and again.
remember = lru_cache(maxsize=8192)
# Decimals are computed with enough digits, whatever precision the caller has set.
_CONTEXT = Context(prec=2 * ALL_DIGITS)


@remember
def exact(number: float, date: DateKind | None = None) -> str:
    """The shortest decimal, or date, that reads back as the number.

    >>> exact(0.1), exact(3.0), exact(1e22), exact(-2.5e-9)
    ('0.1', '3', '1e22', '-2.5e-9')
    """
    if math.isinf(number) or math.isnan(number):
        return str(number)
    if date is not None and FIRST <= number < LAST:
        return write_moment(number, date)
    return _plain(Decimal(repr(float(number))))


def read(text: str, date: DateKind | None = None) -> float:
    """The number that a decimal or a date stands for."""
    return float(text) if date is None else read_moment(text)


@remember
def rounded(number: float, digits: int = DIGITS) -> str:
    """The number to some significant digits, ties away from zero.

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

    >>> at_most(0.15000000223517418, 4), at_most(-1.23456, 3)
    ('0.15', '-1.24')
    """
    return _towards(number, digits, -1)


def at_least(number: float, digits: int) -> str:
    """The least decimal of some significant digits that is not below the number.

    >>> at_least(0.15000000223517418, 4), at_least(-1.23456, 3)
    ('0.1501', '-1.23')
    """
    return _towards(number, digits, 1)


def beyond(number: float, origin: float, date: DateKind | None = None) -> list[str]:
    """Ways to write a number that something must reach from its origin, the shortest first.

    Each is the number itself or a little further from the origin, never by more than a fiftieth
    of the way. If there is no origin (NaN), four digits are enough. The last way is exact. A date
    has more and more of a day's time instead of digits.

    >>> beyond(-122.255, -122.25)
    ['-122.255']
    >>> beyond(2.4000000000000004, 1.4)[0], beyond(0.123456789, 0.1)[0]
    ('2.41', '0.1235')
    """
    written = exact(number, date)
    way = abs(number / 50 - origin / 50)
    if date is not None:
        towards_it = math.ceil if number > origin else math.floor
        moments = [float(step * towards_it(number / step)) for step in READABLE_STEPS]
        close = [exact(at, date) for at in moments if not abs(at - number) > way]
        return list(dict.fromkeys([*close, written]))
    if not math.isfinite(number) or n_digits(written) <= FEW_DIGITS:
        return [written]
    towards = at_least if number > origin else at_most
    least = DIGITS if math.isnan(way) else 1
    texts = [towards(number, digits) for digits in range(least, ALL_DIGITS)]
    near = [text for text in texts if not abs(float(text) - number) > way]
    return list(dict.fromkeys([*near, written]))


def n_digits(text: str) -> int:
    """Significant digits of a number in words, zeros at its end not counted.

    >>> n_digits("0.0120"), n_digits("-1.5e300"), n_digits("1200")
    (2, 2, 2)
    """
    mantissa = text.lstrip("-").split("e")[0]
    return len(mantissa.replace(".", "").strip("0"))


def percent(share: float) -> str:
    """A share in whole percent, with more digits where it would round to 0 or 100 but is not.

    >>> percent(0.8149), percent(0.0016), percent(0.9953), percent(1.0)
    ('81 %', '0.2 %', '99.5 %', '100 %')
    """
    if share <= 0.0 or share >= 1.0:
        return "0 %" if share <= 0.0 else "100 %"
    whole = math.floor(100 * share + 0.5)
    if whole == 0:
        return f"{rounded(100 * share, 1)} %"
    if whole == 100:
        rest = rounded(100 * (1 - share), 1)
        return f"{_plain(_CONTEXT.subtract(Decimal(100), Decimal(rest)))} %"
    return f"{whole} %"


def with_spread(number: float, deviation: float | None) -> tuple[str, str | None]:
    """A number and the spread around it, both in digits that tell them apart.

    >>> with_spread(2023.4187, 0.618), with_spread(3932.8, 3989.4), with_spread(2.5, None)
    (('2023.42', '0.618'), ('3933', '3990'), ('2.5', None))
    """
    if deviation is None or not math.isfinite(deviation) or not math.isfinite(number):
        return rounded(number), None
    digits = DIGITS
    if deviation > 0 and number != 0:
        digits = max(DIGITS, _exponent(number) - _exponent(deviation) + 2)
    return rounded(number, min(digits, ALL_DIGITS)), rounded(deviation, SPREAD_DIGITS)


def number_range(low: float, high: float) -> str:
    """Two numbers, in digits that tell them apart.

    >>> number_range(89.243, 106.11), number_range(5.757, 590.2), number_range(0.01234, 0.01412)
    ('89 to 106', '6 to 590', '0.0123 to 0.0141')
    """
    apart = high - low
    if not 0 < apart < math.inf:
        return f"{rounded(low)} to {rounded(high)}"
    step = _exponent(apart) - 2
    texts = [
        rounded(end, min(max(_exponent(end) - step, 1), ALL_DIGITS)) if end else "0"
        for end in (low, high)
    ]
    return " to ".join(texts)


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
