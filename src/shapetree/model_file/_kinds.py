"""Kinds of values in a model file: each tells how to read, write and describe them.

`_format.py` declares a file once, as objects whose members are of these kinds. From a kind follow
the JSON Schema (`schema`), what is written (`write`), and what is read or refused (`read`;
`read_all` of the same part in many places, such as a member of every node).
"""

from __future__ import annotations

import json
import math
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from inspect import cleandoc
from itertools import chain
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from shapetree.data._columns import MAX_EXACT, Level
from shapetree.model_file._check import AlignedParts, Json, Lists, Part, short

# Version of the format. What an older reader would misread or refuse gets another.
VERSION = 1
# Floating-point numbers that JSON has no name for.
SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
INFINITE = ("Infinity", "-Infinity")
INT32 = 2**31 - 1
# Lists and objects inside each other in a parameter.
MAX_NESTING = 8


@dataclass(frozen=True)
class Kind(ABC):
    """What a part of a file may be."""

    @abstractmethod
    def schema(self, known: dict[str, Json]) -> Json:
        """JSON Schema; definitions that it refers to are added to those that are known."""

    @abstractmethod
    def read(self, part: Part) -> Any:
        """What a part says, or `NotAModel`."""

    def read_all(self, parts: AlignedParts) -> Any:
        """What each of many parts says."""
        return [self.read(part) for part in parts]

    def write(self, value: Any) -> Any:
        """A value as JSON has it."""
        return value


@dataclass(frozen=True)
class Text(Kind):
    """A text; if it must match a pattern, `what` says what it is then."""

    pattern: str = ""
    what: str = ""

    def schema(self, known: dict[str, Json]) -> Json:
        return {"type": "string"} | ({"pattern": f"^({self.pattern})$"} if self.pattern else {})

    def read(self, part: Part) -> str:
        if not isinstance(part.value, str):
            part.refuse(f"must be a text, got {short(part.value)}")
        if self.pattern and not re.fullmatch(self.pattern, part.value):
            part.refuse(f"must be {self.what}, got {short(part.value)}")
        return part.value


@dataclass(frozen=True)
class Choice(Kind):
    """One of some texts, or true alone."""

    choices: tuple[str | bool, ...]

    def schema(self, known: dict[str, Json]) -> Json:
        return {"enum": list(self.choices)}

    def read(self, part: Part) -> Any:
        if self.choices != (True,):
            TEXT.read(part)
        if part.value not in self.choices or type(part.value) is not type(self.choices[0]):
            words = " or ".join(json.dumps(choice) for choice in self.choices)
            part.refuse(f"must be {words}, got {short(part.value)}")
        return part.value


@dataclass(frozen=True)
class Boolean(Kind):
    """True or false."""

    def schema(self, known: dict[str, Json]) -> Json:
        return {"type": "boolean"}

    def read(self, part: Part) -> bool:
        if not isinstance(part.value, bool):
            part.refuse(f"must be true or false, got {short(part.value)}")
        return part.value

    def read_all(self, parts: AlignedParts) -> list[bool]:
        return parts.values if parts.are_all(bool) else super().read_all(parts)

    def write(self, value: Any) -> bool:
        return bool(value)


@dataclass(frozen=True)
class Integer(Kind):
    """A whole number in a range; 2.0 is one, too."""

    low: int
    high: int

    def schema(self, known: dict[str, Json]) -> Json:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def read(self, part: Part) -> int:
        value = part.value
        if not _is_number(value) or not self.low <= value <= self.high or value != int(value):
            part.refuse(
                f"must be a whole number between {self.low} and {self.high}, got {short(value)}"
            )
        return int(value)

    def read_all(self, parts: AlignedParts) -> np.ndarray:
        numbers = _array(parts.values, {int}, np.int64)
        if numbers is not None and ((numbers >= self.low) & (numbers <= self.high)).all():
            return numbers
        return np.array(super().read_all(parts), dtype=np.int64)

    def write(self, value: Any) -> int:
        return int(value)


@dataclass(frozen=True)
class Number(Kind):
    """A number, in a range or one of some `special` ones; if `is_positive`, it is not 0."""

    low: float = -math.inf
    high: float = math.inf
    special: tuple[str, ...] = ()
    is_positive: bool = False

    def schema(self, known: dict[str, Json]) -> Json:
        number: Json = {"type": "number"}
        if self.is_positive:
            number["exclusiveMinimum"] = 0
        elif self.low > -math.inf:
            number["minimum"] = self.low
        if self.high < math.inf:
            number["maximum"] = self.high
        return {"anyOf": [number, {"enum": list(self.special)}]} if self.special else number

    def read(self, part: Part) -> float:
        if isinstance(part.value, str) and part.value in self.special:
            return SPECIAL[part.value]
        number = math.nan
        if _is_number(part.value):
            try:
                number = float(part.value)
            except OverflowError:
                part.refuse("must be a number that is not so large")
        if not math.isfinite(number) or not self._has(number):
            part.refuse(f"must be {self._range()}, got {short(part.value)}")
        return number

    def read_all(self, parts: AlignedParts) -> np.ndarray:
        numbers = _array(parts.values, {int, float}, np.float64)
        if numbers is not None and np.isfinite(numbers).all() and self._has(numbers).all():
            return numbers
        return np.array(super().read_all(parts), dtype=np.float64)

    def _has(self, numbers: Any) -> Any:
        is_above = numbers > 0 if self.is_positive else numbers >= self.low
        return is_above & (numbers <= self.high)

    def _range(self) -> str:
        if self.high < math.inf:
            return f"a number {'above' if self.is_positive else 'from'} 0 and up to {self.high:g}"
        if self.is_positive:
            return "positive"
        return "a number" if self.low == -math.inf else f"a number from {self.low:g} on"

    def write(self, value: Any) -> float | int | str:
        """A number; whole ones without a decimal point, those that JSON has no name for as text."""
        number = float(value)
        if not math.isfinite(number):
            return next(text for text, value in SPECIAL.items() if str(value) == str(number))
        is_negative_zero = number == 0 and math.copysign(1, number) < 0
        is_short = abs(number) < MAX_EXACT and number == int(number) and not is_negative_zero
        return int(number) if is_short else number


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _array(values: list[Any], types: set[type], dtype: type[np.generic]) -> np.ndarray | None:
    """Numbers as an array, if all are of some types and not too large for it."""
    try:
        return np.array(values, dtype) if set(map(type, values)) <= types else None
    except OverflowError:
        return None


TEXT = Text()
ANY_NUMBER = Number(special=tuple(SPECIAL))


@dataclass(frozen=True)
class ListOf(Kind):
    """A list of a length, or of at least so many items, which may have to ascend or be distinct.

    Read, it is what the items are read as together.
    """

    item: Kind
    length: int | None = None
    least: int = 0
    ascends: bool = False
    is_strict: bool = False
    are_distinct: bool = False

    def schema(self, known: dict[str, Json]) -> Json:
        schema: Json = {"type": "array", "items": self.item.schema(known)}
        least = self.least if self.length is None else self.length
        if least:
            schema["minItems"] = least
        if self.length is not None:
            schema["maxItems"] = self.length
        return schema | ({"uniqueItems": True} if self.are_distinct else {})

    def read(self, part: Part) -> Any:
        return self.read_all(part.alone()).values

    def read_all(self, parts: AlignedParts) -> Lists:
        lengths = parts.lengths()
        if self.length is not None:
            parts.have_lengths(lengths, self.length)
        if self.least:
            items = "one item" if self.least == 1 else "two items"
            parts.refuse_where(lengths < self.least, f"must have at least {items}")
        lists = Lists(self.item.read_all(parts.items(lengths)), lengths)
        if self.ascends:
            flat = lists.values
            is_wrong = ~(flat[:-1] < flat[1:] if self.is_strict else flat[:-1] <= flat[1:])
            begins = lists.start[(lists.start > 0) & (lists.start < len(flat))]
            is_wrong[begins - 1] = False  # another list begins
            owner = np.searchsorted(lists.start, np.flatnonzero(is_wrong), side="right") - 1
            parts.refuse_where(np.bincount(owner, minlength=len(parts)) > 0, "must ascend")
        if self.are_distinct:
            are_twice = [len(set(its)) < len(its) for its in lists]
            parts.refuse_where(np.array(are_twice, dtype=bool), "must be distinct")
        return lists

    def write(self, value: Any) -> list[Any]:
        if isinstance(value, np.ndarray):
            if value.dtype.kind == "i":
                return value.tolist()  # as any kind writes them
            value = value.tolist()
        write = self.item.write
        return [write(each) for each in value]


class SparseMember(NamedTuple):
    """A member that only some of many objects have: their numbers, and what was read of each."""

    numbers: list[int]
    values: Any

    def each(self) -> dict[int, Any]:
        """What each says, by its number."""
        return dict(zip(self.numbers, self.values, strict=True))


@dataclass(frozen=True)
class Object(Kind):
    """An object with members that it must have, and some that it may have.

    It is read as a dict of these members, or of what each is in all of many objects, which is a
    `SparseMember` if some may not have it. A schema refers to it by its title, if it has one.
    What it means is told in `about`, and then, in lines that begin with their names, its members.
    """

    required: Mapping[str, Kind]
    optional: Mapping[str, Kind] = field(default_factory=dict)
    title: str = ""
    about: str = ""

    def schema(self, known: dict[str, Json]) -> Json:
        members = {**self.required, **self.optional}
        about, *texts = re.split(r"^(\w+): ", cleandoc(self.about), flags=re.MULTILINE)
        meaning = {
            name: " ".join(text.split()) for name, text in zip(texts[::2], texts[1::2], strict=True)
        }
        schema: Json = {
            "type": "object",
            "properties": {
                name: kind.schema(known)
                | ({"description": meaning[name]} if name in meaning else {})
                for name, kind in members.items()
            },
            "required": list(self.required),
            "additionalProperties": False,
        }
        if about:
            schema["description"] = " ".join(about.split())
        if not self.title:
            return schema
        known[self.title] = schema
        return {"$ref": f"#/$defs/{self.title}"}

    def _refuse_others(self, part: Part) -> None:
        for name in part.as_object():
            if name not in self.required and name not in self.optional:
                part.refuse(
                    f"has the member {short(name)}, which version {VERSION} of the format does "
                    "not know"
                )

    def read(self, part: Part) -> Json:
        self._refuse_others(part)
        read = {name: kind.read(part.member(name)) for name, kind in self.required.items()}
        for name, kind in self.optional.items():
            if name in part.value:
                read[name] = kind.read(part.member(name))
        return read

    def read_all(self, parts: AlignedParts) -> Json:
        known = {*self.required, *self.optional}
        if not parts.are_all(dict) or not set(chain.from_iterable(parts.values)) <= known:
            for part in parts:
                self._refuse_others(part)
        read = {name: kind.read_all(parts.member(name)) for name, kind in self.required.items()}
        for name, kind in self.optional.items():
            numbers = parts.having(name)
            read[name] = SparseMember(numbers, kind.read_all(parts.take(numbers).member(name)))
        return read

    def write(self, value: Mapping[str, Any]) -> Json:
        """What is None is left out."""
        kinds = {**self.required, **self.optional}
        return {name: kinds[name].write(its) for name, its in value.items() if its is not None}


@dataclass(frozen=True)
class ByName(Kind):
    """An object with members of any names, and at least so many of them."""

    member: Kind
    least: int = 0

    def schema(self, known: dict[str, Json]) -> Json:
        schema: Json = {"type": "object", "additionalProperties": self.member.schema(known)}
        return schema | ({"minProperties": self.least} if self.least else {})

    def read(self, part: Part) -> Json:
        read = {name: self.member.read(its) for name, its in part.members()}
        if len(read) < self.least:
            part.refuse("must have at least one member")
        return read

    def write(self, value: Mapping[str, Any]) -> Json:
        return {name: self.member.write(its) for name, its in value.items()}


@dataclass(frozen=True)
class OneOf(Kind):
    """An object of one of several kinds, which its member `kind` tells, a `Choice` of each."""

    kinds: tuple[Object, ...]

    def schema(self, known: dict[str, Json]) -> Json:
        return {"oneOf": [kind.schema(known) for kind in self.kinds]}

    def _of(self, name: str) -> Object:
        return next(kind for kind in self.kinds if name in _names_of(kind))

    def read(self, part: Part) -> Json:
        names = tuple(chain.from_iterable(map(_names_of, self.kinds)))
        return self._of(Choice(names).read(part.member("kind"))).read(part)

    def write(self, value: Mapping[str, Any]) -> Json:
        return self._of(value["kind"]).write(value)


def _names_of(kind: Object) -> tuple[str | bool, ...]:
    choice = kind.required["kind"]
    assert isinstance(choice, Choice)
    return choice.choices


@dataclass(frozen=True)
class AnyOf(Kind):
    """An object of one of several kinds; which, only a reader of the rest of the file knows.

    So it is not read here, and it is written as it is.
    """

    kinds: tuple[Object, ...]

    def schema(self, known: dict[str, Json]) -> Json:
        return {"anyOf": [kind.schema(known) for kind in self.kinds]}

    def read(self, part: Part) -> Part:
        return part

    def read_all(self, parts: AlignedParts) -> AlignedParts:
        return parts


@dataclass(frozen=True)
class CategoryOrLabel(Kind):
    """A category or a class label."""

    def schema(self, known: dict[str, Json]) -> Json:
        infinite = Object({"number": Choice(INFINITE)})
        known["level"] = {
            "description": "A text, a number, a truth value, or an infinite number in an object. "
            "Numbers and truth values are compared as numbers: 1, 1.0 and true are the same "
            "category. A text is never the same as a number.",
            "anyOf": [{"type": ["string", "number", "boolean"]}, infinite.schema(known)],
        }
        return {"$ref": "#/$defs/level"}

    def read(self, part: Part) -> Level:
        if isinstance(part.value, dict):
            return SPECIAL[Object({"number": Choice(INFINITE)}).read(part)["number"]]
        if not isinstance(part.value, Level):
            part.refuse(f"must be a text, a number, true or false, got {short(part.value)}")
        if _is_number(part.value):
            Number().read(part)
        return part.value

    def write(self, value: Any) -> Any:
        """A category or label; infinite numbers are put in an object."""
        if isinstance(value, int) and abs(value) > sys.float_info.max:
            raise ValueError("cannot write this model as JSON: a category or label is too large")
        if isinstance(value, float) and not math.isfinite(value):
            return {"number": Number().write(value)}
        return value


@dataclass(frozen=True)
class Parameter(Kind):
    """A parameter of the estimator."""

    nesting: int = 0

    def schema(self, known: dict[str, Json]) -> Json:
        objects = (
            Object({"number": Choice(tuple(SPECIAL))}, about="A number that JSON has no name for."),
            Object({"tuple": ListOf(self)}, about="A tuple."),
            Object(
                {"pairs": ListOf(ListOf(self, 2))},
                about="A mapping, as pairs of a key and a value; keys are no lists or objects.",
            ),
        )
        if "parameter" not in known:
            known["parameter"] = {}  # which the schemas below refer to
            known["parameter"] |= {
                "description": "Texts, numbers, truth values, null and lists stand for themselves. "
                "null also stands for objects that JSON cannot hold, such as random states.",
                "anyOf": [
                    {"type": ["string", "number", "boolean", "null"]},
                    ListOf(self).schema(known),
                    *(kind.schema(known) for kind in objects),
                ],
            }
        return {"$ref": "#/$defs/parameter"}

    def read(self, part: Part) -> Any:
        if self.nesting > MAX_NESTING:
            part.refuse("is nested too deeply")
        inner = Parameter(self.nesting + 1)
        if isinstance(part.value, list):
            return [inner.read(item) for item in part.each()]
        if isinstance(part.value, float):
            return Number().read(part)
        if not isinstance(part.value, dict):
            return part.value
        if len(part.value) != 1:
            part.refuse("must have one member")
        ((kind, content),) = part.members()
        if kind == "number":
            return SPECIAL[Choice(tuple(SPECIAL)).read(content)]
        if kind == "tuple":
            return tuple(inner.read(item) for item in content.each())
        read = {}
        for pair in part.member("pairs").each():
            pair.has_length(2)
            key = inner.read(pair.item(0))
            if isinstance(key, dict | list | tuple):
                pair.item(0).refuse("must be a text, a number, true, false or null")
            read[key] = inner.read(pair.item(1))
        return read

    def write(self, value: Any) -> Any:
        """A parameter as JSON; objects that it cannot hold, such as random states, become null."""
        if value is None or hasattr(value, "get_params"):
            return None
        if isinstance(value, str | bool):
            return value
        if isinstance(value, np.bool_ | Integral):
            return bool(value) if isinstance(value, np.bool_) else int(value)
        if isinstance(value, Real):
            return CategoryOrLabel().write(float(value))
        if isinstance(value, Mapping):
            return {"pairs": [[self.write(key), self.write(its)] for key, its in value.items()]}
        if isinstance(value, tuple):
            return {"tuple": [self.write(item) for item in value]}
        return [self.write(item) for item in value] if isinstance(value, Iterable) else None
