"""Names of features, classes and targets, and units, for output.

A fitted model has the names of its training data. Arrays have none, and names such as "MedInc" say
little without a unit, so `with_names` sets others. They change no prediction, and rows are still
read by the names of the training data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shapetree.data._names import MOST_LISTED
from shapetree.data._table import FeatureInfo


@dataclass(frozen=True)
class Names:
    """Names to show; None where those of the training data will do."""

    features: tuple[str, ...] | None = None  # one for each feature
    classes: tuple[tuple[str, ...], ...] | None = None  # one for each class of each output
    targets: tuple[str, ...] | None = None  # one for each output
    # Units of features and targets, by their names.
    units: Mapping[str, str] = field(default_factory=dict)

    def name_features(
        self, features: Sequence[FeatureInfo], with_units: bool
    ) -> tuple[FeatureInfo, ...]:
        """Features under their names to show, with their units if those are asked for."""
        names = self.features or tuple(feature.name for feature in features)
        if with_units:
            names = tuple(map(self._with_unit, names))
        return tuple(
            feature if feature.name == name else replace(feature, name=name)
            for feature, name in zip(features, names, strict=True)
        )

    def name_classes(
        self, classes: Sequence[np.ndarray] | None
    ) -> tuple[tuple[Any, ...], ...] | None:
        """Class labels of each output under their names to show."""
        if classes is None or self.classes is not None:
            return self.classes
        return tuple(tuple(labels.tolist()) for labels in classes)

    def name_targets(self, with_units: bool) -> tuple[str, ...] | None:
        """The targets' names to show, if they have any."""
        if self.targets is None or not with_units:
            return self.targets
        return tuple(map(self._with_unit, self.targets))

    def _with_unit(self, name: str) -> str:
        return f"{name} ({self.units[name]})" if name in self.units else name


@dataclass(frozen=True)
class KnownNames:
    """What a fitted model was fitted to, as far as names refer to it."""

    features: Sequence[str]  # names of the features in training
    classes: Sequence[np.ndarray] | None  # class labels of each output; None for numbers
    n_outputs: int
    kind: str  # "the tree" or "the forest", for error messages


def read_names(
    known: KnownNames, old: Names, features: Any, classes: Any, target: Any, units: Any
) -> Names:
    """Check the names that a user gives for a fitted model, and add them to those it has.

    Units follow features and targets to their new names; what is None stays as it is.
    """
    names = Names(
        features=old.features
        if features is None
        else _feature_names(features, known, old.features or known.features),
        classes=old.classes if classes is None else _class_names(classes, known, old.classes),
        targets=old.targets if target is None else _target_names(target, known.n_outputs),
    )
    before = [*(old.features or known.features), *(old.targets or ())]
    shown = list(names.features or known.features)
    targets = list(names.targets or ())
    kept = {
        new: old.units[name]
        for name, new in zip(before, [*shown, *targets], strict=False)
        if name in old.units
    }
    return replace(names, units={**kept, **_units(units, shown, targets)})


def target_names(y: Any) -> tuple[str, ...] | None:
    """Names of the targets, if `y` is a named column or a table of such."""
    columns = getattr(y, "column_names", getattr(y, "columns", None))
    given = [getattr(y, "name", None)] if columns is None else list(columns)
    names = tuple(name for name in given if isinstance(name, str) and name)
    return names if names and len(names) == len(given) else None


def _feature_names(given: Any, known: KnownNames, shown: Sequence[str]) -> tuple[str, ...]:
    what = f"{known.kind} was fitted on {len(known.features)} features"
    return _one_for_each("features", given, known.features, shown, what)


def _class_names(
    given: Any, known: KnownNames, old: tuple[tuple[str, ...], ...] | None
) -> tuple[tuple[str, ...], ...]:
    if known.classes is None:
        raise ValueError(f"classes was given, but {known.kind} predicts numbers and has no classes")
    n_outputs = len(known.classes)
    if n_outputs > 1:
        is_list = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
        each = list(given) if is_list else []
        if len(each) != n_outputs:
            raise ValueError(f"classes must be a list of names for each of {n_outputs} targets")
    else:
        each = [given]
    names = []
    for output, (its, labels) in enumerate(zip(each, known.classes, strict=True)):
        classes = labels.tolist()
        shown = list(map(str, classes)) if old is None else old[output]
        what = f"there are {len(classes)} classes, {classes}"
        names.append(_one_for_each("classes", its, classes, shown, what))
    return tuple(names)


def _one_for_each(
    parameter: str, given: Any, known: Sequence[Any], shown: Sequence[str], what: str
) -> tuple[str, ...]:
    """Names for all of what is known, in its order; a mapping may leave some as they are shown."""
    if isinstance(given, Mapping):
        every = set(known)
        strange = [each for each in given if each not in every]
        if strange:
            listed = ", ".join(map(repr, known[:MOST_LISTED])) + ", …" * (len(known) > MOST_LISTED)
            raise ValueError(f"{parameter} names {strange[0]!r}, which is not one of {listed}")
        given = [given.get(each, name) for each, name in zip(known, shown, strict=True)]
    names = _texts(given, parameter)
    if len(names) != len(known):
        raise ValueError(
            f"{parameter} has {len(names)} names, but {what}; give one name for each, in this "
            "order, or a mapping to names"
        )
    return _distinct(names, parameter)


def _target_names(given: Any, n_outputs: int) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else _texts(given, "target")
    if len(names) != n_outputs:
        what = "a name" if n_outputs == 1 else f"a list of {n_outputs} names"
        raise ValueError(f"target must be {what}, got {given!r}")
    return _distinct(tuple(map(str, names)), "target")


def _units(given: Any, features: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"units must map names to units, got {given!r}")
    for name, unit in given.items():
        if name not in features and name not in targets:
            names = ", ".join(map(repr, [*features[:MOST_LISTED], *targets]))
            raise ValueError(
                f"units names {name!r}, which is neither a feature nor the target; there are "
                f"{names}"
            )
        if not isinstance(unit, str):
            raise TypeError(f"units must be strings, but that of {name!r} is {unit!r}")
    return {str(name): str(unit) for name, unit in given.items()}


def _texts(given: Any, parameter: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{parameter} must be a list of names, got {given!r}")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"{parameter} must be strings, but one is {name!r}")
    return tuple(map(str, names))


def _distinct(names: tuple[str, ...], parameter: str) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{parameter} must be distinct, but {twice!r} appears more than once")
    return names
