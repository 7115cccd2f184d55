"""Estimators whose parameters are declared once: name, type, default and what they mean."""

from __future__ import annotations

import inspect
import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar, dataclass_transform

from sklearn.base import BaseEstimator

Class = TypeVar("Class", bound=type)

# In the order of numpydoc; examples are each class's own.
SECTIONS = ("Parameters", "Attributes", "Notes", "References", "Examples")
LISTS = ("Parameters", "Attributes")


class KnownParameters(BaseEstimator):
    """An estimator that reads the names of its parameters once: scikit-learn does at every fit."""

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        names: list[str] = super()._get_param_names()
        return names


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def with_parameters(cls: Class) -> Class:
    """Make an estimator's annotated names its parameters, and complete its docstring.

    The class gets an `__init__` that takes these names, and those of the classes that it inherits
    from, as keywords, and does no more than keep them, as scikit-learn asks. Its docstring gets the
    sections that it lacks, and the parameters and attributes that it does not describe, from the
    class that it inherits from. Parameters get their defaults from the declaration.
    """
    dataclass(kw_only=True, eq=False, repr=False)(cls)  # which changes the class itself
    if cls.__doc__ is not None:  # as it is under python -OO
        cls.__doc__ = _whole_docstring(cls)
    return cls


def _whole_docstring(cls: type) -> str:
    own, inherited = _sections_of(cls.__doc__ or ""), {}
    for base in cls.__mro__[1:]:
        if "__dataclass_fields__" in vars(base):
            inherited = _sections_of(base.__doc__ or "")
            break
    inherited.pop("Examples", None)
    whole = inherited | own
    for title in LISTS:
        entries = _entries_of(inherited.get(title, "")) | _entries_of(own.get(title, ""))
        if title == "Parameters":
            known = inspect.signature(cls).parameters
            entries = {name: _with_default(entries[name], known[name]) for name in known}
        whole[title] = "\n".join(entries.values())
    sections = [
        f"{title}\n{'-' * len(title)}\n{whole[title]}" for title in SECTIONS if whole.get(title)
    ]
    return "\n\n".join([own[""], *sections]) + "\n"


def _sections_of(docstring: str) -> dict[str, str]:
    """The text of each section by its title; what comes before the first has none."""
    start, *rest = re.split(r"^(\w+)\n-{4,}\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    texts = [text.strip("\n") for text in rest[1::2]]
    return {"": start.strip("\n")} | dict(zip(rest[::2], texts, strict=True))


def _entries_of(section: str) -> dict[str, str]:
    """The entries of a list of parameters by name: a line, and the lines below it."""
    entries = re.findall(r"^\S.*(?:\n(?: .*)?$)*", section, flags=re.MULTILINE)
    return {entry.partition(" : ")[0]: entry.rstrip("\n") for entry in entries}


def _with_default(entry: str, parameter: inspect.Parameter) -> str:
    """An entry with the default that its class gives the parameter, if any."""
    first, *lines = entry.split("\n")
    first, default = first.partition(", default=")[0], parameter.default
    if default is not parameter.empty and not first.endswith("optional"):
        first += f", default={json.dumps(default) if isinstance(default, str) else default}"
    return "\n".join([first, *lines])
