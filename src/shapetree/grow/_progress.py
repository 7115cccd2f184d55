"""Progress of a fit, for people who wait."""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm.auto import tqdm

# A depth that no tree reaches says nothing of how much there is to do.
DEEPEST = 1000


class Progress:
    """A bar that fills as rows come to their leaves; silent unless `verbose`.

    A row has one step to do for each level down to `max_depth`; one that reaches a leaf early has
    done them all.

    Parameters
    ----------
    verbose : int
    n_rows : int
    max_depth : int or None
        None for unlimited depth: then each row has a single step, to its leaf.
    """

    def __init__(self, verbose: int, n_rows: int, max_depth: int | None) -> None:
        if max_depth is not None and max_depth > DEEPEST:
            max_depth = None
        self._max_depth = max_depth
        self._n_leaves = 0
        self._deepest = 0
        self._bar = tqdm(
            total=n_rows * (1 if max_depth is None else max_depth),
            desc=f"shapetree, {n_rows:,} rows",
            bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}",
            disable=not verbose,
        )

    def split(self, n_rows: int, depth: int) -> None:
        """Note that a node at some depth was split."""
        self._deepest = max(self._deepest, depth + 1)
        if self._max_depth is not None:
            self._bar.update(n_rows)

    def leaf(self, n_rows: int, depth: int) -> None:
        """Note that a node at some depth stays a leaf."""
        self._n_leaves += 1
        self._bar.set_postfix_str(f"depth {self._deepest}, {self._n_leaves} leaves", refresh=False)
        self._bar.update(n_rows if self._max_depth is None else n_rows * (self._max_depth - depth))

    def sweep(self, number: int, objective: float) -> None:
        """Note the penalised loss after a sweep of refinement, or before the first."""
        if not self._bar.disable:
            when = f"after sweep {number}" if number else "before refinement"
            self._bar.write(f"penalised loss {when}: {objective:,.1f}", file=sys.stderr)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()
