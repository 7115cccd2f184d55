"""Check JSON part by part: what it must be, and where it is not.

Time is linear in the file, and memory at most some thirty times its bytes: lists of numbers become
arrays as a whole, and only what is refused is looked at item by item.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from shapetree.model_file._model import SPECIAL, VERSION, Json

PREFIX = "not a shapetree model"
# Least bytes of a file for each list and each object in it, all in all; those of a model have more.
LIST_BYTES, OBJECT_BYTES, SPARE_BYTES = 4, 12, 1000
TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


class NotAModel(ValueError):
    """A file or text that is no model of this library, and why."""


def parse(text: str) -> Any:
    """JSON as Python's objects; no object may have a member twice."""
    if not text.strip():
        raise NotAModel(f"{PREFIX}: it is empty")
    # Lists and objects take many times the memory of their brackets.
    if _has_many_parts(text) and _has_many_parts(TEXT.sub('""', text), len(text)):
        raise NotAModel(f"{PREFIX}: it has more lists and objects than a model of its size")
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_make_object)
    except RecursionError:
        raise NotAModel(f"{PREFIX}: its parts are nested too deeply") from None
    except json.JSONDecodeError as error:
        raise NotAModel(f"{PREFIX}: it is no JSON ({error})") from None
    except NotAModel:
        raise
    except ValueError:  # Python's limit of digits
        raise NotAModel(f"{PREFIX}: a number in it has too many digits") from None


def _has_many_parts(text: str, n_bytes: int | None = None) -> bool:
    least = LIST_BYTES * text.count("[") + OBJECT_BYTES * text.count("{")
    return least > SPARE_BYTES + (len(text) if n_bytes is None else n_bytes)


def _refuse_constant(name: str) -> NoReturn:
    raise NotAModel(f"{PREFIX}: {name} is no number of JSON")


def _make_object(members: list[tuple[str, Any]]) -> Json:
    made = dict(members)
    if len(made) < len(members):
        twice = Counter(name for name, _ in members).most_common(1)[0][0]
        raise NotAModel(f"{PREFIX}: an object has the member {short(twice)} more than once")
    return made


class Part:
    """A part of a file, and where it stands there: its name or its number in another part."""

    __slots__ = ("_above", "_name", "value")

    def __init__(self, value: Any, above: Part | None = None, name: str | int = "") -> None:
        self.value = value
        self._above = above
        self._name = name

    def _where(self) -> str:
        if self._above is None:
            return ""
        above = self._above._where()
        if isinstance(self._name, int):
            return f"{above}[{self._name}]"
        return f"{above}.{self._name}"[-200:] if above else self._name[-200:]

    def refuse(self, reason: str) -> NoReturn:
        """Say what is wrong with this part."""
        raise NotAModel(f"{PREFIX}: {self._where() or 'the file'} {reason}")

    def _members(self) -> Json:
        if not isinstance(self.value, dict):
            self.refuse(f"must be an object, got {short(self.value)}")
        return self.value

    def _list(self, length: int | None = None) -> list[Any]:
        if not isinstance(self.value, list):
            self.refuse(f"must be a list, got {short(self.value)}")
        if length is not None and len(self.value) != length:
            items = "item" if length == 1 else "items"
            self.refuse(f"must have {length} {items}, got {len(self.value)}")
        return self.value

    def optional(self, name: str) -> Part | None:
        """A member of an object, if it has it."""
        members = self._members()
        return Part(members[name], self, name) if name in members else None

    def member(self, name: str) -> Part:
        """A member of an object."""
        try:
            return Part(self.value[name], self, name)
        except (KeyError, TypeError):
            return self.optional(name) or self.refuse(f"lacks the member {name!r}")

    def members(self) -> Iterator[tuple[str, Part]]:
        """All members of an object."""
        return ((name, Part(value, self, name)) for name, value in self._members().items())

    def has_only(self, *names: str) -> None:
        """Refuse an object with other members."""
        members = self._members()
        if not members.keys() <= set(names):
            strange = next(name for name in members if name not in names)
            self.refuse(
                f"has the member {short(strange)}, which version {VERSION} of the format does "
                "not know"
            )

    def each(self) -> Iterator[Part]:
        """The items of a list, one at a time: of a long list they take much memory."""
        return (Part(value, self, i) for i, value in enumerate(self._list()))

    def items(self, length: int | None = None) -> list[Part]:
        """The items of a list."""
        return [Part(value, self, i) for i, value in enumerate(self._list(length))]

    def length(self) -> int:
        """The number of items of a list."""
        return len(self._list())

    def has_length(self, length: int) -> None:
        """Refuse a list of another length."""
        self._list(length)

    def text(self) -> str:
        """A text."""
        if not isinstance(self.value, str):
            self.refuse(f"must be a text, got {short(self.value)}")
        return self.value

    def one_of(self, *choices: str) -> str:
        """One of some texts."""
        if self.text() not in choices:
            words = " or ".join(json.dumps(choice) for choice in choices)
            self.refuse(f"must be {words}, got {short(self.value)}")
        return self.text()

    def boolean(self) -> bool:
        """True or false."""
        if not isinstance(self.value, bool):
            self.refuse(f"must be true or false, got {short(self.value)}")
        return self.value

    def integer(self, low: int, high: int) -> int:
        """A whole number in a range; 2.0 is one, too."""
        is_number = isinstance(self.value, int | float) and not isinstance(self.value, bool)
        if not is_number or not low <= self.value <= high or self.value != int(self.value):
            self.refuse(f"must be a whole number between {low} and {high}, got {short(self.value)}")
        return int(self.value)

    def number(self, low: float = -math.inf, is_finite: bool = True) -> float:
        """A number; infinite or, if there is no lower limit, NaN only if that is allowed."""
        number = math.nan
        if isinstance(self.value, int | float) and not isinstance(self.value, bool):
            try:
                number = float(self.value)
            except OverflowError:
                self.refuse("must be a number that is not so large")
            is_fine = math.isfinite(number) and number >= low
        else:
            is_fine = isinstance(self.value, str) and not is_finite and self.value in SPECIAL
            number = SPECIAL[self.value] if is_fine else math.nan
            is_fine = is_fine and (low == -math.inf or number >= low)
        if not is_fine:
            reach = "a number" if low == -math.inf else f"a number from {low:g} on"
            self.refuse(f"must be {reach}, got {short(self.value)}")
        return number

    def integers(self, low: int, high: int, length: int | None = None) -> np.ndarray:
        """A list of whole numbers in a range."""
        values = self._list(length)
        if not _are_whole(values, low, high):  # some may be written as 2.0
            values = [part.integer(low, high) for part in self.each()]
        return np.array(values, dtype=np.int64)

    def table(self, low: int, high: int, n_lists: int, length: int) -> np.ndarray:
        """Lists of whole numbers, equally long; an array of shape (n_lists, length)."""
        lists = self._list(n_lists)
        if all(type(one) is list and len(one) == length for one in lists):
            values = list(chain.from_iterable(lists))
            if _are_whole(values, low, high):
                return np.array(values, dtype=np.int64).reshape(n_lists, length)
        return np.stack([part.integers(low, high, length) for part in self.items()])

    def numbers(self, length: int | None = None, is_finite: bool = True) -> np.ndarray:
        """A list of numbers."""
        values = self._list(length)
        if not _are_finite(values):
            values = [part.number(is_finite=is_finite) for part in self.each()]
        return np.array(values, dtype=np.float64)

    def ascending(self, length: int | None = None, is_strict: bool = False) -> np.ndarray:
        """A list of numbers in ascending order."""
        numbers, values = self.numbers(length), self._list()
        if not all(map(operator.lt if is_strict else operator.le, values, values[1:])):
            self.refuse("must ascend")
        return numbers


# Python's own functions, because most lists are short.


def _are_finite(values: list[Any]) -> bool:
    """Whether a list holds nothing but finite numbers."""
    try:
        return not set(map(type, values)) - {int, float} and all(map(math.isfinite, values))
    except OverflowError:  # a whole number that is too large
        return False


def _are_whole(values: list[Any], low: int, high: int) -> bool:
    """Whether a list holds nothing but whole numbers in a range, written without a point."""
    if set(map(type, values)) - {int}:
        return False
    return not values or (min(values) >= low and max(values) <= high)


def short(value: Any) -> str:
    """A value for a message, cut short if need be."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        value = value[:50]  # cut further below
    text = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge one"
    return text if len(text) <= 40 else text[:40] + "…"
