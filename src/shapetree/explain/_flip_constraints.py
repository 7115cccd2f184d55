"""What a flip may change, and what it should lead to."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from shapetree.data._names import feature_finder
from shapetree.tree._view import TreeView

UP, DOWN = "up", "down"


@dataclass(frozen=True, eq=False)
class FlipConstraints:
    """What a flip may change, and what it should lead to."""

    # What nodes predict: numbers, or numbers that tell different predictions apart. Shape
    # (n_nodes,).
    outcomes: np.ndarray
    # By how much another prediction must differ from a node's. Shape (n_nodes,).
    spreads: np.ndarray
    # The nodes whose predictions are wanted, or a number that predictions should reach; None if any
    # other prediction will do. Shape (n_nodes,).
    goal: np.ndarray | float | None
    frozen: frozenset[int]  # features that cannot change
    moves: Mapping[int, str]  # features that can only go "up" or "down"
    # Whether numbers may leave the range that training has seen, and be fractions where all numbers
    # in training were whole.
    allows_unseen: bool = False

    def may_change(self, feature: int) -> bool:
        """Whether a feature can change at all."""
        return feature not in self.frozen

    def allows_move(self, feature: int, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Whether a feature's numbers may go from old to new ones."""
        if feature not in self.moves:
            return np.ones(new.shape, dtype=bool)
        return new > old if self.moves[feature] == UP else new < old

    def can_be_fulfilled(self, leaf: int) -> bool:
        """Whether any leaf would be wanted instead of this one."""
        every = np.arange(len(self.outcomes))
        return bool(self.is_fulfilled(np.full(len(every), leaf), every).any())

    def is_fulfilled(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Whether new leaves are what the user wants instead of the rows' old ones."""
        if isinstance(self.goal, np.ndarray):
            return self.goal[new] & ~self.goal[old]
        before, after = self.outcomes[old], self.outcomes[new]
        if self.goal is not None:
            return ((before < self.goal) & (after >= self.goal)) | (
                (before > self.goal) & (after <= self.goal)
            )
        return np.abs(after - before) > self.spreads[old]


def read_flip_constraints(
    view: TreeView,
    names: Sequence[str],
    labels: Sequence[np.ndarray] | None,
    fixed: Any,
    only: Any,
    direction: Any,
    target: Any,
    unseen: bool,
) -> FlipConstraints:
    """The constraints that a user's parameters of `explain` describe.

    Names and labels are those of training; those that the view shows are understood, too.
    """
    if not isinstance(unseen, bool | np.bool_):
        raise TypeError(f"unseen must be True or False, got {unseen!r}")
    frozen = set(_features(fixed, "fixed", view, names))
    if only is not None:
        frozen |= set(range(len(names))) - set(_features(only, "only", view, names))
    return FlipConstraints(
        outcomes=_outcomes(view),
        spreads=_spreads(view),
        goal=None if target is None else _goal(view, labels, target),
        frozen=frozenset(frozen),
        moves=_moves(direction, view, names),
        allows_unseen=bool(unseen),
    )


def _outcomes(view: TreeView) -> np.ndarray:
    if view.classes is None and view.n_outputs == 1:
        return np.array([node.prediction[0] for node in view.nodes])
    number: dict[tuple[Any, ...], int] = {}
    return np.array([number.setdefault(node.prediction, len(number)) for node in view.nodes], float)


def _spreads(view: TreeView) -> np.ndarray:
    """Standard deviations of the nodes' targets; 0 for classes and for several outputs."""
    if view.classes is not None or view.n_outputs > 1:
        return np.zeros(len(view.nodes))
    return np.nan_to_num([node.deviation or 0.0 for node in view.nodes])


def _features(given: Any, parameter: str, view: TreeView, names: Sequence[str]) -> list[int]:
    if given is None:
        return []
    is_list = isinstance(given, Iterable) and not isinstance(given, str)
    return [_feature(each, parameter, view, names) for each in (given if is_list else [given])]


def _feature(given: Any, parameter: str, view: TreeView, names: Sequence[str]) -> int:
    shown = [feature.name for feature in view.features]
    return feature_finder(shown if given in shown else names, parameter)(given)


def _moves(given: Any, view: TreeView, names: Sequence[str]) -> dict[int, str]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"direction must map features to 'up' or 'down', got {given!r}")
    moves = {}
    for name, move in given.items():
        feature = _feature(name, "direction", view, names)
        if move not in (UP, DOWN):
            raise ValueError(f"direction must be 'up' or 'down' for {name!r}, got {move!r}")
        if view.features[feature].is_categorical:
            raise ValueError(
                f"direction names {name!r}, which has categories; only numbers can go up or down"
            )
        moves[feature] = move
    return moves


def _goal(view: TreeView, labels: Sequence[np.ndarray] | None, target: Any) -> np.ndarray | float:
    if view.n_outputs > 1:
        raise ValueError(f"target needs a tree of one target, but this one has {view.n_outputs}")
    if labels is not None:
        return _is_class(view, labels[0].tolist(), target)
    if _is_number(target):
        return float(target)
    ends = list(target) if isinstance(target, Sequence) and not isinstance(target, str) else []
    if len(ends) != 2 or not all(end is None or _is_number(end) for end in ends):
        raise TypeError(
            f"target must be a number, or a pair (low, high) for a range, got {target!r}"
        )
    low = -math.inf if ends[0] is None else float(ends[0])
    high = math.inf if ends[1] is None else float(ends[1])
    if low > high:
        raise ValueError(f"target must be a range from low to high, got {target!r}")
    numbers = _outcomes(view)
    return (low <= numbers) & (numbers <= high)


def _is_class(view: TreeView, labels: list[Any], target: Any) -> np.ndarray:
    assert view.classes is not None
    shown = list(view.classes[0])
    is_list = isinstance(target, list | tuple | set | frozenset | np.ndarray)
    numbers = []
    for label in target if is_list else [target]:
        known = labels if label in labels else shown
        if label not in known:
            raise ValueError(f"target is {label!r}, which is not one of the classes {labels}")
        numbers.append(known.index(label))
    return np.isin([int(node.value[0].argmax()) for node in view.nodes], numbers)


def _is_number(value: Any) -> bool:
    return type(value) is not bool and isinstance(value, Real) and value == value
