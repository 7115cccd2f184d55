"""Check JSON part by part: what it must be, and where it is not.

Time is linear in the file, and memory at most some thirty times its bytes: lists of numbers become
arrays as a whole, and only what is refused is looked at item by item.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import Any, NoReturn

import numpy as np

from shapetree.model_file._format import SPECIAL, VERSION, Json

PREFIX = "not a shapetree model"
# Least bytes of a file for each list and each object in it, all in all; those of a model have more.
LIST_BYTES, OBJECT_BYTES, SPARE_BYTES = 4, 12, 1000
# Most characters of a place in the file, which has names of the file's own.
MAX_PLACE = 120
# An unfinished text reaches to the end, so that what is in it is not looked through again.
TEXT = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)


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
        return f"{above}.{self._name}"[-MAX_PLACE:] if above else self._name[-MAX_PLACE:]

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error that names this part and what is wrong with it."""
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

    def has_length(self, length: int) -> int:
        """The number of items of a list, which must be this."""
        return len(self._list(length))

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

    def item(self, number: int) -> Part:
        """An item of a list."""
        return Part(self._list()[number], self, number)

    def together(self) -> AlignedParts:
        """The items of a list, to be read together."""
        return AlignedParts(self._list(), self.item)

    def integers(self, low: int, high: int, length: int | None = None) -> np.ndarray:
        """A list of whole numbers in a range."""
        self._list(length)
        return self.together().integers(low, high)

    def numbers(self, length: int | None = None, is_finite: bool = True) -> np.ndarray:
        """A list of numbers."""
        self._list(length)
        return self.together().numbers(is_finite=is_finite)

    def ascending(self) -> np.ndarray:
        """A list of numbers in ascending order."""
        return AlignedParts([self.value], lambda _: self).ascending_lists().values


Limit = int | np.ndarray


class AlignedParts:
    """Parts that hold the same in many places, such as a member of every node, checked together.

    What is right is read at once; where something is not, the parts are read one by one, and the
    first that is wrong is refused.

    Parameters
    ----------
    values : list
    part : function
        From the number of a part to the part itself.
    """

    __slots__ = ("part", "values")

    def __init__(self, values: list[Any], part: Callable[[int], Part]) -> None:
        self.values = values
        self.part = part

    def __len__(self) -> int:
        return len(self.values)

    def _each(self) -> Iterator[Part]:
        return map(self.part, range(len(self.values)))

    def take(self, numbers: list[int]) -> AlignedParts:
        """Some of them."""
        values = self.values
        return AlignedParts([values[i] for i in numbers], lambda i: self.part(numbers[i]))

    def member(self, name: str) -> AlignedParts:
        """A member of each."""
        try:
            values = [value[name] for value in self.values]
        except (KeyError, TypeError):
            values = [part.member(name).value for part in self._each()]
        return AlignedParts(values, lambda i: self.part(i).member(name))

    def having(self, name: str) -> list[int]:
        """Numbers of those that have a member; all must be objects."""
        return [i for i, value in enumerate(self.values) if name in value]

    def have_only(self, *names: str) -> None:
        """Refuse objects with other members, and what is no object."""
        are_objects = set(map(type, self.values)) <= {dict}
        if not are_objects or not set(chain.from_iterable(self.values)) <= set(names):
            for part in self._each():
                part.has_only(*names)

    def items(self, length: int | None = None) -> AlignedParts:
        """The items of each list, one list after another; each has so many, if that is said."""
        lengths = self._lengths(length)
        owner = np.repeat(np.arange(len(lengths)), lengths)
        first = np.cumsum(lengths) - lengths

        def item(i: int) -> Part:
            number = int(owner[i])
            return self.part(number).item(i - int(first[number]))

        return AlignedParts(list(chain.from_iterable(self.values)), item)

    def _lengths(self, expected: Limit | None = None) -> np.ndarray:
        """Lengths of lists, which must be as expected."""
        if set(map(type, self.values)) <= {list}:
            lengths = np.fromiter(map(len, self.values), np.int64, len(self.values))
            if expected is None or (lengths == expected).all():
                return lengths
        each = np.broadcast_to(-1 if expected is None else expected, len(self)).tolist()
        return np.array(
            [
                part.length() if length < 0 else part.has_length(length)
                for part, length in zip(self._each(), each, strict=True)
            ]
        )

    def booleans(self) -> list[bool]:
        """Each of them true or false."""
        if set(map(type, self.values)) <= {bool}:
            return self.values
        return [part.boolean() for part in self._each()]

    def integers(self, low: Limit, high: Limit) -> np.ndarray:
        """Each of them a whole number in a range, which may be its own."""
        numbers = _whole(self.values)
        if numbers is not None and ((numbers >= low) & (numbers <= high)).all():
            return numbers
        limits = (np.broadcast_to(limit, len(self)).tolist() for limit in (low, high))
        return np.array(
            [part.integer(*its) for part, *its in zip(self._each(), *limits, strict=True)],
            dtype=np.int64,
        )

    def numbers(self, low: float = -math.inf, is_finite: bool = True) -> np.ndarray:
        """Each of them a number, as in `Part.number`."""
        numbers = _finite(self.values)
        if numbers is not None and (numbers >= low).all():
            return numbers
        return np.array([part.number(low, is_finite) for part in self._each()], dtype=np.float64)

    def integer_lists(self, low: Limit, high: Limit, length: Limit | None = None) -> Lists:
        """Each of them a list of whole numbers in a range, which may be its own."""
        lengths = self._lengths(length)
        low, high = (
            np.repeat(limit, lengths) if isinstance(limit, np.ndarray) else limit
            for limit in (low, high)
        )
        return Lists(self.items().integers(low, high), lengths)

    def number_lists(self, length: Limit | None = None, is_finite: bool = True) -> Lists:
        """Each of them a list of numbers."""
        lengths = self._lengths(length)
        return Lists(self.items().numbers(is_finite=is_finite), lengths)

    def ascending_lists(self, length: Limit | None = None, is_strict: bool = False) -> Lists:
        """Each of them a list of numbers in ascending order."""
        lists = self.number_lists(length)
        flat = lists.values
        ascends = flat[:-1] < flat[1:] if is_strict else flat[:-1] <= flat[1:]
        begins = lists.start[(lists.start > 0) & (lists.start < len(flat))]
        ascends[begins - 1] = True  # another list begins
        if not ascends.all():
            wrong = np.searchsorted(lists.start, int(np.argmin(ascends)), side="right") - 1
            self.part(int(wrong)).refuse("must ascend")
        return lists


class Lists:
    """Lists of numbers, one after another in an array.

    Attributes
    ----------
    values : array
    start : int array of shape (n_lists + 1,)
        Where each list starts, and the end.
    """

    __slots__ = ("_ends", "start", "values")

    def __init__(self, values: np.ndarray, lengths: np.ndarray) -> None:
        self.values = values
        self.start = np.append(0, np.cumsum(lengths))
        self._ends = self.start.tolist()

    def __iter__(self) -> Iterator[np.ndarray]:
        return (self.values[start:stop] for start, stop in pairwise(self._ends))

    def sums(self) -> np.ndarray:
        """Sum of each list, of whole numbers."""
        return np.diff(np.append(0, np.cumsum(self.values))[self.start])


def _whole(values: list[Any]) -> np.ndarray | None:
    """Whole numbers as an array, if all are written as such."""
    try:
        return np.array(values, dtype=np.int64) if set(map(type, values)) <= {int} else None
    except OverflowError:
        return None


def _finite(values: list[Any]) -> np.ndarray | None:
    """Finite numbers as an array, if all are that."""
    try:
        numbers = np.array(values, np.float64) if set(map(type, values)) <= {int, float} else None
    except OverflowError:
        return None
    return None if numbers is None or not np.isfinite(numbers).all() else numbers


def short(value: Any) -> str:
    """A value for a message, cut short if need be."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        value = value[:50]  # cut further below
    text = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge one"
    return text if len(text) <= 40 else text[:40] + "…"
