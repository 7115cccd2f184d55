"""Parts of a file of JSON, and how to refuse them: an error says where they are."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, pairwise
from typing import Any, NoReturn, TypeAlias

import numpy as np

from shapetree.tree._shape import starts

Json: TypeAlias = dict[str, Any]

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

    def as_object(self) -> Json:
        """The members of an object, as they are."""
        if not isinstance(self.value, dict):
            self.refuse(f"must be an object, got {short(self.value)}")
        return self.value

    def as_list(self) -> list[Any]:
        """The items of a list, as they are."""
        if not isinstance(self.value, list):
            self.refuse(f"must be a list, got {short(self.value)}")
        return self.value

    def member(self, name: str) -> Part:
        """A member of an object."""
        if name not in self.as_object():
            self.refuse(f"lacks the member {name!r}")
        return Part(self.value[name], self, name)

    def members(self) -> Iterator[tuple[str, Part]]:
        """All members of an object."""
        return ((name, Part(value, self, name)) for name, value in self.as_object().items())

    def item(self, number: int) -> Part:
        """An item of a list."""
        return Part(self.as_list()[number], self, number)

    def each(self) -> Iterator[Part]:
        """The items of a list, one at a time: of a long list they take much memory."""
        return (Part(value, self, i) for i, value in enumerate(self.as_list()))

    def has_length(self, length: int) -> None:
        """Refuse a list of another length."""
        self.alone().have_lengths(self.alone().lengths(), length)

    def alone(self) -> AlignedParts:
        """The part, to be read as many are."""
        return AlignedParts([self.value], lambda _: self)

    def together(self) -> AlignedParts:
        """The items of a list, to be read together."""
        return AlignedParts(self.as_list(), self.item)


Limit: TypeAlias = int | np.ndarray


class AlignedParts:
    """Parts that hold the same in many places, such as a member of every node, read together.

    Time is linear in the file, and memory at most some thirty times its bytes: numbers become
    arrays as a whole, and only what is refused is looked at part by part, by its number.
    """

    __slots__ = ("part", "values")

    def __init__(self, values: list[Any], part: Callable[[int], Part]) -> None:
        self.values = values
        self.part = part

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Part]:
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
            values = [part.member(name).value for part in self]
        return AlignedParts(values, lambda i: self.part(i).member(name))

    def having(self, name: str) -> list[int]:
        """Numbers of those that have a member; all must be objects."""
        return [i for i, value in enumerate(self.values) if name in value]

    def are_all(self, kind: type) -> bool:
        """Whether all are of a type."""
        return set(map(type, self.values)) <= {kind}

    def lengths(self) -> np.ndarray:
        """Lengths of lists."""
        if not self.are_all(list):
            return np.array([len(part.as_list()) for part in self])
        return np.fromiter(map(len, self.values), np.int64, len(self.values))

    def have_lengths(self, lengths: np.ndarray, expected: Limit) -> None:
        """Refuse a list that is not as long as expected."""

        def reason(i: int) -> str:
            length = int(np.broadcast_to(expected, len(self))[i])
            return f"must have {length} {'item' if length == 1 else 'items'}, got {lengths[i]}"

        self.refuse_where(lengths != expected, reason)

    def items(self, lengths: np.ndarray | None = None) -> AlignedParts:
        """The items of each list, one list after another; lengths may be known."""
        start = starts(self.lengths() if lengths is None else lengths)

        def item(i: int) -> Part:
            number = int(np.searchsorted(start, i, side="right")) - 1
            return self.part(number).item(i - int(start[number]))

        return AlignedParts(list(chain.from_iterable(self.values)), item)

    def refuse_where(
        self, is_wrong: Any, reason: str | Callable[[int], str], *path: str | int
    ) -> None:
        """Refuse the first part that is wrong, or what a path of names and numbers leads to in it.

        The reason may be a function of the part's number.
        """
        if is_wrong.any():
            number = int(np.argmax(is_wrong))
            part = self.part(number)
            for step in path:
                part = part.item(step) if isinstance(step, int) else part.member(step)
            part.refuse(reason if isinstance(reason, str) else reason(number))

    def within(self, numbers: np.ndarray, low: Limit, high: Limit) -> np.ndarray:
        """What was read of each, if these are whole numbers in a range, which may be its own."""

        def reason(i: int) -> str:
            least, most = (int(np.broadcast_to(limit, len(self))[i]) for limit in (low, high))
            found = short(numbers[i].item())
            return f"must be a whole number between {least} and {most}, got {found}"

        is_wrong = (numbers < low) | (numbers > high) | (numbers != np.floor(numbers))
        self.refuse_where(is_wrong, reason)
        return numbers


class Lists:
    """Lists, one after another in what all their items were read as; numbers are an array."""

    __slots__ = ("lengths", "start", "values")

    def __init__(self, values: Any, lengths: np.ndarray) -> None:
        self.values = values
        self.lengths = lengths
        self.start = starts(lengths)

    def __iter__(self) -> Iterator[Any]:
        return (self.values[start:stop] for start, stop in pairwise(self.start.tolist()))

    def sums(self) -> np.ndarray:
        """Sum of each list, of whole numbers."""
        return np.diff(np.append(0, np.cumsum(self.values))[self.start])


def short(value: Any) -> str:
    """A value for a message, cut short if need be."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        value = value[:50]  # cut further below
    text = json.dumps(value) if not isinstance(value, int) or abs(value) < 10**30 else "a huge one"
    return text if len(text) <= 40 else text[:40] + "…"
