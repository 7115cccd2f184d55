"""Progress of a fit, for people who wait."""

from __future__ import annotations

import sys
import threading

import numpy as np
from tqdm.auto import tqdm

# A depth that no tree reaches says nothing of how much there is to do.
DEEPEST = 1000


class Stopped(Exception):
    """A fit that another one's failure, or Ctrl-C, has ended."""


class Progress:
    """A bar that fills as rows come to their leaves; silent unless `verbose`.

    A row has one step to do for each level down to `max_depth`; one that reaches a leaf early has
    done them all.

    Parameters
    ----------
    max_depth : int or None
        None for unlimited depth: then each row has a single step, to its leaf.
    stop : Event, optional
        Ends the fit when it is set.
    """

    def __init__(
        self,
        verbose: int,
        n_rows: int,
        max_depth: int | None,
        stop: threading.Event | None = None,
    ) -> None:
        if max_depth is not None and max_depth > DEEPEST:
            max_depth = None
        self._max_depth = max_depth
        self._stop = stop
        self._n_leaves = 0
        self._deepest = 0
        self._bar: tqdm | None = None
        if verbose:
            self._bar = tqdm(
                total=n_rows * (1 if max_depth is None else max_depth),
                desc=f"shapetree, {n_rows:,} rows",
                bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}{postfix}",
            )

    def split(self, sizes: np.ndarray, depth: int) -> None:
        """Note that nodes of some depth were split, given their numbers of rows."""
        self._check()
        self._deepest = max(self._deepest, depth + 1)
        if self._bar is not None and self._max_depth is not None:
            self._bar.update(int(sizes.sum()))

    def leaves(self, sizes: np.ndarray, depth: int) -> None:
        """Note that nodes of some depth stay leaves, given their numbers of rows."""
        self._check()
        if self._bar is None or len(sizes) == 0:
            return
        n_rows = int(sizes.sum())
        self._n_leaves += len(sizes)
        self._bar.set_postfix_str(f"depth {self._deepest}, {self._n_leaves} leaves", refresh=False)
        self._bar.update(n_rows if self._max_depth is None else n_rows * (self._max_depth - depth))

    def sweep(self, number: int, objective: float) -> None:
        """Note the penalised loss after a sweep of refinement, or before the first."""
        self._check()
        if self._bar is not None:
            when = f"after sweep {number}" if number else "before refinement"
            self._bar.write(f"penalised loss {when}: {objective:,.1f}", file=sys.stderr)

    def _check(self) -> None:
        if self._stop is not None and self._stop.is_set():
            raise Stopped

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()


class TestProgress:
    """A bar for many fits, such as those that strength and shrinkage are chosen by.

    Parameters
    ----------
    verbose : int
        0 shows nothing.
    what : str
        What the fits are for.
    fits : str
        What they are called.

    Attributes
    ----------
    stop : Event
        Ends all fits that are under way when it is set.
    """

    def __init__(
        self, verbose: int, n_rows: int, what: str = "choosing", fits: str = "test fits"
    ) -> None:
        self.stop = threading.Event()
        self._n_rows = n_rows
        self._lock = threading.Lock()
        self._bar = tqdm(
            total=0,
            desc=f"shapetree, {n_rows:,} rows, {what}",
            bar_format=f"{{desc}}: {{n_fmt}} of {{total_fmt}} {fits}|{{bar}}| {{elapsed}}",
            disable=not verbose,
        )

    def expect(self, n_tests: int) -> None:
        """Note that more fits are coming."""
        self._bar.total = (self._bar.total or 0) + n_tests
        self._bar.refresh()

    def tested(self) -> None:
        """Note that a fit is done."""
        with self._lock:
            self._bar.update(1)

    def of_test(self) -> Progress:
        """The silent progress of one of the fits."""
        return Progress(0, self._n_rows, None, self.stop)

    def __enter__(self) -> TestProgress:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()
