"""What features, classes and targets are called where a tree is shown.

A tree knows the names that its training data had. Arrays have none, and names such as "MedInc" say
little without a unit, so whoever shows a tree may give better ones. They change no prediction, and
rows are still read by the names that the tree was fitted with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from shapetree.data._table import FeatureInfo


@dataclass(frozen=True)
class Names:
    """Names to show; None where those of the training data will do.

    Attributes
    ----------
    features : tuple of str or None
        One for each feature.
    classes : tuple of tuples of str or None
        One for each class of each output.
    targets : tuple of str or None
        One for each output.
    units : mapping from str to str
        Units of features and targets, by their names.
    """

    features: tuple[str, ...] | None = None
    classes: tuple[tuple[str, ...], ...] | None = None
    targets: tuple[str, ...] | None = None
    units: Mapping[str, str] = field(default_factory=dict)

    def merged(self, given: Names) -> Names:
        """These names, except where others are given."""
        return Names(
            features=given.features or self.features,
            classes=given.classes or self.classes,
            targets=given.targets or self.targets,
            units={**self.units, **given.units},
        )

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


def read_names(
    features: Sequence[FeatureInfo],
    classes: Sequence[np.ndarray] | None,
    known: Names,
    n_outputs: int,
    feature_names: Any,
    class_names: Any,
    target_name: Any,
    units: Any,
) -> Names:
    """Check the names that a user gives for a tree, and add them to those that it knows.

    Parameters
    ----------
    features, classes, known, n_outputs
        What the tree knows.
    feature_names, class_names, target_name, units
        As given by the user.
    """
    given = Names(
        features=_feature_names(feature_names, len(features)),
        classes=_class_names(class_names, classes),
        targets=_target_names(target_name, n_outputs),
    )
    names = known.merged(given)
    shown = [feature.name for feature in names.name_features(features, with_units=False)]
    return replace(names, units={**names.units, **_units(units, shown, names.targets or ())})


def target_names(y: Any) -> tuple[str, ...] | None:
    """Names of the targets, if `y` is a named column or a table of such."""
    columns = getattr(y, "column_names", getattr(y, "columns", None))
    given = [getattr(y, "name", None)] if columns is None else list(columns)
    names = tuple(name for name in given if isinstance(name, str) and name)
    return names if names and len(names) == len(given) else None


def _feature_names(given: Any, n_features: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = _texts(given, "feature_names")
    if len(names) != n_features:
        raise ValueError(
            f"feature_names has {len(names)} names, but the tree was fitted on {n_features} "
            "features; give one name for each"
        )
    return _distinct(names, "feature_names")


def _class_names(
    given: Any, classes: Sequence[np.ndarray] | None
) -> tuple[tuple[str, ...], ...] | None:
    if given is None:
        return None
    if classes is None:
        raise ValueError("class_names was given, but this tree predicts numbers and has no classes")
    if len(classes) == 1:
        return (_names_of(given, classes[0]),)
    if isinstance(given, str | Mapping) or len(given) != len(classes):
        raise ValueError(f"class_names must be a list of names for each of {len(classes)} targets")
    return tuple(_names_of(its, labels) for its, labels in zip(given, classes, strict=True))


def _names_of(given: Any, labels: np.ndarray) -> tuple[str, ...]:
    """Names of one output's classes, in the order of the classes."""
    known = labels.tolist()
    if isinstance(given, Mapping):
        strange = [label for label in given if label not in known]
        if strange:
            raise ValueError(f"class_names names {strange[0]!r}, but the classes are {known}")
        given = [given.get(label, str(label)) for label in known]
    names = _texts(given, "class_names")
    if len(names) != len(known):
        raise ValueError(
            f"class_names has {len(names)} names, but there are {len(known)} classes, {known}; "
            "give one name for each, in this order"
        )
    return _distinct(names, "class_names")


def _target_names(given: Any, n_outputs: int) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = (given,) if isinstance(given, str) else _texts(given, "target_name")
    if len(names) != n_outputs:
        what = "a name" if n_outputs == 1 else f"a list of {n_outputs} names"
        raise ValueError(f"target_name must be {what}, got {given!r}")
    return tuple(map(str, names))


def _units(given: Any, features: Sequence[str], targets: Sequence[str]) -> dict[str, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"units must map names to units, got {given!r}")
    for name, unit in given.items():
        if name not in features and name not in targets:
            known = ", ".join(map(repr, [*features[:10], *targets]))
            raise ValueError(
                f"units names {name!r}, which is neither a feature nor the target; there are "
                f"{known}"
            )
        if not isinstance(unit, str):
            raise TypeError(f"the unit of {name!r} must be a str, got {unit!r}")
    return dict(given)


def _texts(given: Any, parameter: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"{parameter} must be a list of names, got {given!r}")
    return tuple(map(str, given))


def _distinct(names: tuple[str, ...], parameter: str) -> tuple[str, ...]:
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise ValueError(f"{parameter} must be distinct, but {twice!r} appears more than once")
    return names
