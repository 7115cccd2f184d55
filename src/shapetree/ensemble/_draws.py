"""Rows that each tree of a forest is grown on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shapetree._core.sampling import row_hashes
from shapetree.data._sums import exact_unit, on_grid
from shapetree.fit._folds import contents_of
from shapetree.fit._training_rows import BinnedRows, TrainingRows

# Most rows that a tree draws for each row that is given: weights may count as many more.
MAX_DRAWS_PER_ROW = 16


class TreeDraw(NamedTuple):
    """What is drawn for a tree.

    Attributes
    ----------
    rows : int32 array
        Ascending, each as often as it was drawn.
    of_features, of_search : int
        Seeds of the features that nodes draw, and of the search.
    """

    rows: np.ndarray
    of_features: int
    of_search: int


@dataclass(frozen=True, eq=False)
class Draws:
    """Draws bootstrap samples: neither the order of the rows matters, nor how they are repeated.

    A row of weight 2 is two rows that are drawn for themselves. Of more than 16 rows for each that
    is given, trees draw that many.

    Attributes
    ----------
    binned : BinnedRows
        All of them in this process.
    n_drawn : int or None
        Rows of each sample; None for all rows, each once.
    seed : int
    """

    binned: BinnedRows
    n_drawn: int | None
    seed: int

    @cached_property
    def _order_and_contents(self) -> tuple[np.ndarray, int]:
        """The rows ordered by their values, if some are drawn, and `contents`."""
        rows, keys = self.binned.rows, contents_of(self.binned)
        # Rows with equal values are interchangeable.
        order = np.empty(0, dtype=np.int32)
        if self.n_drawn is not None:
            own = [] if rows.weights is None or rows.counts is not None else [rows.weights]
            order = np.lexsort((*own, *rows.targets.T, keys)).astype(np.int32)
        with np.errstate(over="ignore"):
            for column in rows.targets.T:
                said = row_hashes(np.ascontiguousarray(column, dtype=np.float64).view(np.int64))
                keys = row_hashes((keys + said).view(np.int64))
            return order, int(keys.sum(dtype=np.uint64))

    @property
    def _order(self) -> np.ndarray:
        return self._order_and_contents[0]

    @cached_property
    def _last_copy(self) -> np.ndarray | None:
        """How many copies there are up to each row of the order, itself included."""
        counts = self.binned.rows.counts
        return None if counts is None else np.cumsum(counts[self._order].astype(np.int64))

    @property
    def rows(self) -> TrainingRows:
        """The rows as trees see them: each of those that are drawn counts as one."""
        rows = self.binned.rows
        if self.n_drawn is None or rows.counts is None:
            return rows
        weights = None
        if rows.weights is not None and rows.counts is not rows.weights:
            weights = rows.weights / rows.counts
            weights = on_grid(weights, exact_unit(float(rows.weights.sum())))
        return replace(rows, weights=weights, counts=None)

    @property
    def contents(self) -> int:
        """A number that is the same for the same rows."""
        return self._order_and_contents[1]

    def prepare(self) -> None:
        """Do what all draws need: threads shall not do it together, nor trees be in memory yet."""
        self._order_and_contents  # noqa: B018
        if self.n_drawn is not None:
            self._last_copy  # noqa: B018

    def random(self, tree: int) -> np.random.Generator:
        """The random numbers of a tree, the same whenever it is grown."""
        return np.random.default_rng([self.seed, tree])

    @property
    def n_in_tree(self) -> int:
        """Rows that each tree has."""
        return len(self.binned.rows.targets) if self.n_drawn is None else self.n_drawn

    def of_tree(self, tree: int) -> TreeDraw:
        """All that is drawn for a tree."""
        random = self.random(tree)
        rows = self.of(random)
        return TreeDraw(rows, int(random.integers(2**63)), int(random.integers(2**31 - 1)))

    def of(self, random: np.random.Generator) -> np.ndarray:
        """Rows of a tree's sample, ascending, each as often as it was drawn."""
        if self.n_drawn is None:
            return np.arange(self.n_in_tree, dtype=np.int32)
        n_rows, last = len(self._order), self._last_copy
        places = random.integers(n_rows if last is None else int(last[-1]), size=self.n_drawn)
        if last is not None:
            places = np.searchsorted(last, places, side="right")
        # In place, as trees that grow at the same time leave little memory.
        places[:] = self._order[places]
        times = np.bincount(places, minlength=n_rows)
        del places
        return np.repeat(np.arange(n_rows, dtype=np.int32), times)

    def left_out(self, tree: int) -> np.ndarray:
        """Which rows a tree has not seen."""
        left_out = np.zeros(len(self.binned.rows.targets), dtype=bool)
        if self.n_drawn is not None:
            left_out[:] = True
            left_out[self.of(self.random(tree))] = False
        return left_out
