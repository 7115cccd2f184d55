"""Names and indices that users give: of a table's columns, of features, of nodes."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np

# Names that an error message lists.
MOST_LISTED = 10
MOST_UNLIKE = 5


def column_names(keys: Sequence[Any]) -> tuple[tuple[str, ...], bool]:
    """The names of a data frame's columns, and whether they are names: all of them strings."""
    kinds = sorted({type(key).__qualname__ for key in keys})
    if len(kinds) > 1 and "str" in kinds:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your "
            f"input has {kinds} as feature name / column name types. Convert them all to strings, "
            "by X.columns = X.columns.astype(str) for example."
        )
    return tuple(map(str, keys)), kinds == ["str"]


def check_columns(
    names: Sequence[str],
    has_names: bool,
    known: Sequence[str],
    knows_names: bool,
    needed: Iterable[int],
    reader: str,
) -> None:
    """Refuse a table that lacks columns which a tree needs.

    Of the columns that are known from training, those that are needed must be there. Columns with
    names may be in any order, and there may be further ones. The words are those of scikit-learn,
    by which its own checks know them; `reader` is what they call the reader of the table.
    """
    if has_names and not knows_names:
        warnings.warn(
            f"X has feature names, but {reader} was fitted without feature names", stacklevel=2
        )
    elif knows_names and not has_names:
        warnings.warn(
            f"X does not have valid feature names, but {reader} was fitted with feature names",
            stacklevel=2,
        )
    elif has_names:
        if tuple(names) != tuple(known):
            lacking = {known[j] for j in needed}.difference(names)
            if lacking:
                raise ValueError(_unlike(set(names) - set(known), lacking))
        return
    if len(names) != len(known):
        raise ValueError(
            f"X has {len(names)} features, but {reader} is expecting {len(known)} features as "
            "input."
        )


def _unlike(unseen: set[str], lacking: set[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    for what, names in (
        ("Feature names unseen at fit time:\n", sorted(unseen)),
        ("Feature names seen at fit time, yet now missing:\n", sorted(lacking)),
    ):
        if names:
            message += what + "".join(f"- {name}\n" for name in names[:MOST_UNLIKE])
            message += "- ...\n" if len(names) > MOST_UNLIKE else ""
    return message


def feature_finder(names: Sequence[str], parameter: str) -> Callable[[Any], int]:
    """What finds the index of a feature that a parameter gives by name or by index."""
    # Of equal names, the first counts.
    number_of = dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))

    def find(feature: Any) -> int:
        if isinstance(feature, str):
            if feature not in number_of:
                raise ValueError(
                    f"{parameter} names {str(feature)!r}, which is not a column of X. The columns "
                    f"are {_listed(names)}."
                )
            return number_of[feature]
        if not is_index(feature):
            raise TypeError(f"{parameter} must name features by str or int, got {feature!r}")
        if not 0 <= feature < len(names):
            raise ValueError(
                f"{parameter} has the index {feature}, which is not in the range from 0 to "
                f"{len(names) - 1} of the columns of X."
            )
        return int(feature)

    return find


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:MOST_LISTED]))
    return shown + (", …" if len(names) > MOST_LISTED else "")


def node_number(node: Any, n_nodes: int) -> int:
    """The number of a node that exists."""
    if not is_index(node):
        raise TypeError(f"node must be the number of a node, got {node!r}")
    if not 0 <= node < n_nodes:
        raise ValueError(f"node is {node}, but the tree's nodes are 0 to {n_nodes - 1}")
    return int(node)


def is_index(value: Any) -> bool:
    """Whether a value is a whole number, and not just true or false."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
