"""Shares of classes as targets: rows that are of several classes, each to some degree."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from shapetree._core.sampling import row_hashes
from shapetree.data._labels import find_classes, read_targets
from shapetree.data._open import refuse_lazy
from shapetree.data._sums import exact_unit, on_grid

# Smaller shares count as none: next to others, sums would lose them.
LEAST_SHARE = 2.0**-20
# Shares are shown in as many steps, or in fewer where there are many rows.
MOST_STEPS, MOST_STEPS_OF_ALL = 2**20, 2**30


class ClassShares:
    """How much each row is of each class: a target for classifiers, instead of labels.

    For rows that several raters have judged, and for labels that are known with some probability
    only. A row counts as one row, whatever its shares add up to: they are divided by their sum. To
    make each rater's vote count, give the numbers of votes as `sample_weight`, too: the tree is
    then that of the votes, each of which is a row.

    Parameters
    ----------
    shares : array-like or data frame of shape (n_samples, n_classes)
        Shares, probabilities or numbers of votes: not negative, and not all 0 in any row. Shares of
        less than a millionth of their row count as none.
    classes : array-like of shape (n_classes,), optional
        The class of each column; by default the names of the data frame's columns.
    name : str, optional
        Name of the target.

    Attributes
    ----------
    values : array of shape (n_samples, n_classes)
        The shares, which add up to 1 in each row.
    classes : array of shape (n_classes,)
        Sorted, as are the columns of `values`.

    Examples
    --------
    >>> import numpy as np
    >>> from shapetree import ClassShares, ShapeTreeClassifier
    >>> X = np.arange(40.0)[:, None]
    >>> votes = np.where(X < 20, [[3, 1]], [[0, 4]])  # of four raters for each row
    >>> shares = ClassShares(votes, classes=["benign", "malignant"])
    >>> tree = ShapeTreeClassifier(shrinkage=0, teacher=None).fit(X, shares)
    >>> tree.predict_proba([[5.0], [30.0]])
    array([[0.75, 0.25],
           [0.  , 1.  ]])
    """

    # By which labels are distinguished from shares, where shares are not taken.
    __class_shares__ = True

    def __init__(self, shares: Any, classes: Any = None, name: str | None = None) -> None:
        refuse_lazy(shares, "shares")
        frame = nw.from_native(shares, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            if classes is None:
                # pandas has names that are numbers, which narwhals keeps as they are.
                classes = list(getattr(shares, "columns", frame.columns))
            shares = frame.to_numpy()
        if classes is None:
            raise ValueError(
                "classes must name the class of each column of shares; give a list, or a data "
                "frame whose columns are named by them"
            )
        self.classes, order = _read_classes(classes)
        self.values = _read_shares(shares, self.classes[np.argsort(order)])[:, order]
        self.name = name

    @classmethod
    def _of(cls, values: np.ndarray, classes: np.ndarray, name: str | None) -> ClassShares:
        made = cls.__new__(cls)
        made.values, made.classes, made.name = values, classes, name
        return made

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int]:
        """Number of rows, as labels would have it."""
        return (len(self.values),)

    def __getitem__(self, rows: Any) -> ClassShares:
        """Shares of some rows, by their numbers, a slice or a boolean mask."""
        return self._of(np.atleast_2d(self.values[rows]), self.classes, self.name)

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.classes[:5])) + ", …" * (len(self.classes) > 5)
        return f"<ClassShares of {len(self):,} rows: {names}>"

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            "class shares are no labels; use them as y of a ShapeTreeClassifier, or their `values`"
        )

    @property
    def is_certain(self) -> bool:
        """Whether each row is of a single class."""
        return bool((self.values.max(axis=1) == 1.0).all())

    @property
    def likeliest(self) -> np.ndarray:
        """Number of each row's class with the largest share, of shape (n_rows, 1)."""
        return self.values.argmax(axis=1).astype(np.int32)[:, None]

    def among(self, known: np.ndarray) -> ClassShares:
        """The same shares with a column for each of the classes of a tree."""
        places = {label: place for place, label in enumerate(known.tolist())}
        unseen = [label for label in self.classes.tolist() if label not in places]
        if unseen:
            raise ValueError(
                f"y holds shares of classes that the tree was not fitted on: {unseen}; "
                f"it knows {known.tolist()}"
            )
        values = np.zeros((len(self), len(known)))
        values[:, [places[label] for label in self.classes.tolist()]] = self.values
        return self._of(values, known, self.name)


def _read_classes(classes: Any) -> tuple[np.ndarray, np.ndarray]:
    """Classes, sorted, and the places of the columns in this order."""
    try:
        labels = read_targets(np.asarray(classes) if hasattr(classes, "dtype") else classes, True)
    except (TypeError, ValueError) as error:
        raise type(error)(f"classes must be a list of labels. {error}") from error
    if labels.shape[1] != 1:
        raise ValueError(f"classes must be a list of labels, got shape {labels.shape}")
    (found,), numbers = find_classes(labels)
    if len(found) < len(labels):
        raise ValueError(f"classes must be distinct, got {labels[:, 0].tolist()}")
    if len(found) < 2:
        raise ValueError(f"shares need at least two classes, got only {found.tolist()}")
    return found, np.argsort(numbers[:, 0])


def _read_shares(shares: Any, classes: np.ndarray) -> np.ndarray:
    """Shares that add up to 1 in each row, by columns of some classes."""
    try:
        values = np.array(shares, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"shares must be a table of numbers. {error}") from error
    if values.ndim != 2 or len(values) == 0:
        raise ValueError(
            f"shares must have a row for each row of X and a column for each class, got shape "
            f"{values.shape}"
        )
    if values.shape[1] != len(classes):
        raise ValueError(
            f"shares has {values.shape[1]} columns, but there are {len(classes)} classes: "
            f"{classes.tolist()}"
        )
    is_wrong = ~(np.isfinite(values) & (values >= 0))
    if is_wrong.any():
        row, column = np.argwhere(is_wrong)[0].tolist()
        raise ValueError(
            f"shares must be finite and not negative; row {row} has {values[row, column]} for "
            f"class {classes.tolist()[column]!r}"
        )
    greatest = values.max(axis=1, keepdims=True)
    if (greatest == 0).any():
        row = int(np.argmin(greatest))
        raise ValueError(
            f"shares has no class for row {row}: all its shares are 0. Leave out such rows, or "
            "give all classes the same share"
        )
    values /= greatest  # first, as sums of large numbers may be infinite
    values[values < LEAST_SHARE * values.sum(axis=1, keepdims=True)] = 0.0
    return values / values.sum(axis=1, keepdims=True)


class ShareParts(NamedTuple):
    """Rows as parts, one for each class that a row has a share of, in the order of the rows."""

    row: np.ndarray  # which row each is a part of
    label: np.ndarray  # number of its class (int32)

    @property
    def first(self) -> np.ndarray:
        """The first part of each row."""
        return first_parts(self.row)

    def amounts(self, values: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """What the parts have of each row's total, by shares: numbers of which sums are exact.

        The parts of a row add up to its total, without rounding.
        """
        amounts = totals[self.row] * values[self.row, self.label]
        amounts = np.asarray(on_grid(amounts, exact_unit(float(totals.sum()))))
        first = self.first
        # The largest part takes what rounding has left over.
        left = totals - np.add.reduceat(amounts, first)
        largest = values.argmax(axis=1)
        at = np.flatnonzero(self.label == largest[self.row])
        amounts[at] += left
        return amounts


def parts_of(values: np.ndarray) -> ShareParts:
    """Rows as parts, by their shares of the classes."""
    row, label = np.nonzero(values)
    return ShareParts(row, label.astype(np.int32))


def first_parts(row: np.ndarray) -> np.ndarray:
    """The first part of each row, from the row that each is a part of."""
    return np.flatnonzero(np.diff(row, prepend=-1))


def steps_of(n_rows: int) -> int:
    """In how many steps shares of so many rows are shown: a power of two, for sums are exact."""
    steps = MOST_STEPS
    while steps > 1 and steps * n_rows > MOST_STEPS_OF_ALL:
        steps //= 2
    return steps


def in_steps(amounts: np.ndarray, steps: int) -> np.ndarray:
    """Amounts in whole steps, so that those of a row add up to its total."""
    ends = np.rint(np.cumsum(amounts) * steps).astype(np.int64)
    return np.diff(ends, prepend=0).astype(np.int32)


def drawn_labels(row: np.ndarray, label: np.ndarray, amounts: np.ndarray) -> np.ndarray:
    """One class for each row, drawn by its shares and the row's number, to colour a point by."""
    first = first_parts(row)
    ends = np.cumsum(amounts)
    before = ends[first] - amounts[first]
    totals = np.add.reduceat(amounts, first)
    hashes = row_hashes(row[first].astype(np.int64)).astype(np.float64) / 2.0**64
    place = np.searchsorted(ends, before + hashes * totals, side="right")
    last = np.append(first[1:], len(row)) - 1
    return np.asarray(label[np.minimum(place, last)])
