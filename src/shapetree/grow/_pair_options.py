"""Which pairs of features are looked at, and how closely."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from typing import Any

import numpy as np

from shapetree.data._names import feature_finder
from shapetree.data._open import MAX_ROWS
from shapetree.data._table import FeatureInfo

# Pairs that are fitted on the rows if the user leaves it to us.
AUTO_FITTED = 3
# Most rows of a node that pairs are fitted on, unless every threshold has to be tried.
SAMPLE_ROWS = 20_000
# Most pairs that are screened on grids if the user leaves it to us: those of 200 features. If there
# are more, the paper's filter picks the most promising at each node, from this many of its rows.
MAX_SCREENED = 20_000
# Features whose pairs this filter, or the screen, looks at: time grows with their square.
MAX_PAIRED_FEATURES = 1_000
FILTER_ROWS = 5_000
# Half of the pairs get an inner tree on their grid, but this many for each pair that is fitted.
MIN_FINALISTS_PER_FIT = 2
MAX_FINALISTS_PER_FIT = 10


class PairList:
    """Pairs of features that may interact, the smaller number first; made a part at a time.

    Parameters
    ----------
    features : int array
        Their numbers, ascending.
    listed : int array of shape (n_pairs, 2), optional
        None for all pairs of the features.
    """

    def __init__(self, features: np.ndarray, listed: np.ndarray | None = None) -> None:
        self._features = features
        self._listed = listed
        if listed is None:
            # Of all pairs, those whose first feature has the place f start at `starts[f]`.
            n_with_first = np.arange(len(features) - 1, -1, -1, dtype=np.int64)
            self._starts = np.concatenate([[0], np.cumsum(n_with_first)])
            if len(self) <= MAX_SCREENED:
                self._listed = self.take(np.arange(len(self)))

    def __len__(self) -> int:
        return int(self._starts[-1]) if self._listed is None else len(self._listed)

    def features(self) -> list[int]:
        """The features that are in some pair."""
        if self._listed is not None:
            return np.unique(self._listed).tolist()
        return self._features.tolist() if len(self) else []

    def part(self, first: int, last: int) -> np.ndarray:
        """The pairs first..last-1."""
        if self._listed is not None:
            return self._listed[first:last]
        return self.take(np.arange(first, min(last, len(self))))

    def take(self, numbers: np.ndarray) -> np.ndarray:
        """Pairs by their numbers."""
        if self._listed is not None:
            return np.ascontiguousarray(self._listed[numbers])
        one = np.searchsorted(self._starts, numbers, side="right") - 1
        other = numbers - self._starts[one] + one + 1
        return self._features[np.stack([one, other], axis=1)].astype(np.int32)

    def among(self, features: np.ndarray) -> PairList:
        """Of all pairs of the features, those of some of them, which ascend."""
        return PairList(np.intersect1d(self._features, features))

    def parts(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        """All pairs, some at a time, each time with the number of the first."""
        for first in range(0, len(self), size):
            yield first, self.part(first, first + size)


NO_PAIRS = PairList(np.empty(0, dtype=np.int64), np.empty((0, 2), dtype=np.int32))


@dataclass(frozen=True)
class PairOptions:
    """Which pairs are looked at, and how closely.

    Attributes
    ----------
    max_features : int
        Features whose pairs are looked at in a node: those that gain most alone, if not all.
    n_fitted : int
        How many of these pairs are fitted on the rows of a node.
    n_screened : int
        How many of them are screened on grids; the paper's filter chooses, if not all.
    filter_rows : int
        Rows of a node that this filter looks at.
    n_finalists : int
        How many of these get an inner tree on their grid.
    n_orientations : int
        Orientations of cuts, the two axes included.
    exact : bool
        Whether every row is tried as a threshold, in large nodes, too.
    """

    pairs: PairList
    max_features: int
    n_fitted: int
    n_screened: int
    filter_rows: int
    n_finalists: int
    n_orientations: int
    exact: bool

    @property
    def sample_rows(self) -> int:
        """Rows of a node that pairs are fitted on at most."""
        return MAX_ROWS if self.exact else SAMPLE_ROWS

    def without_pairs(self) -> PairOptions:
        """The same for single features only."""
        return replace(self, pairs=PairList(np.empty(0, dtype=np.int64)))


def pair_options(
    pairs: Any,
    screen: str,
    n_orientations: int,
    exact: bool,
    features: tuple[FeatureInfo, ...],
) -> PairOptions:
    """Options from an estimator's parameters.

    Parameters
    ----------
    pairs : int, "auto", "all" or list of groups of features
    screen : {"grid", "delta"}
    """
    n_features, max_features = len(features), MAX_PAIRED_FEATURES
    if isinstance(pairs, bool | np.bool_):
        raise TypeError(f"pairs must be a number, 'auto', 'all' or a list, got {pairs!r}")
    if isinstance(pairs, str | Integral):
        # All but those with dates, whose weighted sums mean nothing to a reader.
        numbers = [number for number, feature in enumerate(features) if not feature.is_date]
        allowed = NO_PAIRS if pairs == 0 else PairList(np.array(numbers))
    else:
        max_features = n_features
        allowed = PairList(np.arange(n_features), _pairs_in_groups(pairs, features))
    n_all = len(allowed)
    n_fitted, n_screened = min(AUTO_FITTED, n_all), min(MAX_SCREENED, n_all)
    if isinstance(pairs, str) and pairs == "all":
        n_fitted = n_screened = n_all
        max_features, exact = n_features, True
    elif isinstance(pairs, Integral):
        n_fitted, n_screened = int(pairs), n_all
        if n_fitted > n_all:
            warnings.warn(
                f"pairs={n_fitted} is more than the {n_all} pairs of {n_features} features; "
                f"all of them are fitted",
                stacklevel=2,
            )
            n_fitted = n_all
    if screen == "delta":
        n_screened, max_features = n_fitted, n_features
    return PairOptions(
        allowed,
        max_features,
        n_fitted,
        n_screened,
        MAX_ROWS if screen == "delta" else FILTER_ROWS,
        min(
            max(n_screened // 2, MIN_FINALISTS_PER_FIT * n_fitted),
            MAX_FINALISTS_PER_FIT * n_fitted,
        ),
        n_orientations,
        exact,
    )


def _pairs_in_groups(groups: Any, features: tuple[FeatureInfo, ...]) -> np.ndarray:
    """Pairs of features that share a group, each given by name or by index."""
    names = [feature.name for feature in features]
    pairs: set[tuple[int, ...]] = set()
    find = feature_finder(names, "pairs")
    for group in groups:
        if isinstance(group, str | Integral) or len(group) < 2:
            raise ValueError(
                f"pairs must hold pairs or groups of features that may interact, two features or "
                f"more in each, got {group!r}"
            )
        numbers = [find(feature) for feature in group]
        if len(set(numbers)) < len(numbers):
            raise ValueError(f"pairs holds a group that repeats a feature: {group!r}")
        dates = [names[number] for number in numbers if features[number].is_date]
        if dates:
            raise ValueError(
                f"pairs holds {dates[0]!r}, a column of dates, which is split on alone; leave it "
                "out, or pair what shapetree.date_parts makes of it"
            )
        pairs.update(combinations(sorted(numbers), 2))
    if not pairs:
        raise ValueError("pairs is an empty list; give pairs of features, or 0 for none")
    return np.array(sorted(pairs), dtype=np.int32)
