"""Rows that several holders have between them, behind the interface of one.

Every answer is a sum over rows, or the least of them, the greatest, or a sample: answers of parts
of the rows are joined to the answer for all, bit for bit, in whatever order they are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Lock, local
from typing import Any

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets, join_cells
from shapetree.data._binning import BinnedTable
from shapetree.data._map_join import ChangingParts, Join, Parts, Question, Questions, Then, add
from shapetree.data._sampling import GREATEST_HASH, hash_limits
from shapetree.data._targets import Goal, medians_of
from shapetree.grow._local import LocalRows, LocalRowsOfNode
from shapetree.grow._rows import Histograms, Result, Sample
from shapetree.grow._splits import Split

# Bytes of histograms that one call asks for: as few calls as memory allows.
CALL_BYTES = 2**27
# Jobs whose questions are asked together; the grids of each may take some memory.
JOBS_TOGETHER = 8


class PartsTogether:
    """Parts that answer the questions of several jobs at once.

    Jobs run in threads. When all of them wait for an answer, their questions are asked in one
    round: a level of the tree then takes as many rounds as a node.

    Parameters
    ----------
    parts : ChangingParts
    """

    def __init__(self, parts: ChangingParts) -> None:
        self._parts = parts
        self._local = local()

    def ask(
        self, of: Callable[..., Any], join: Join, finish: Callable[..., Any] | None = None
    ) -> Any:
        """One answer of all parts; see `Parts`."""
        meeting = getattr(self._local, "meeting", None)
        return (self._parts if meeting is None else meeting).ask(of, join, finish)

    def change(self, make: Callable[..., Any]) -> None:
        """Put what a function makes of each part in its place; jobs that run together must not."""
        self._parts.change(make)

    def together(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Results of jobs that only ask."""
        results: list[Result] = []
        for first in range(0, len(jobs), JOBS_TOGETHER):
            results += self._run(jobs[first : first + JOBS_TOGETHER])
        return results

    def _run(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        if len(jobs) <= 1:
            return [job() for job in jobs]
        meeting = _Meeting(self._parts, len(jobs))

        def run(job: Callable[[], Result]) -> Result:
            self._local.meeting = meeting
            try:
                return job()
            finally:
                self._local.meeting = None
                meeting.leave()

        with ThreadPoolExecutor(len(jobs)) as pool:
            try:
                return list(pool.map(run, jobs))
            except BaseException as error:
                meeting.stop(error)
                raise


class _Meeting:
    """Jobs that wait for each other's questions."""

    def __init__(self, parts: Parts, n_jobs: int) -> None:
        self._parts = parts
        self._n_jobs = n_jobs
        self._waiting: list[tuple[Question, Future[Any]]] = []
        self._error: BaseException | None = None
        self._lock = Lock()

    def ask(
        self, of: Callable[..., Any], join: Join, finish: Callable[..., Any] | None = None
    ) -> Any:
        """The answer to a question, when all others have one, too."""
        question, answer = Question(of, join, finish), Future[Any]()
        with self._lock:
            if self._error is not None:
                raise self._error
            self._waiting.append((question, answer))
            ready = self._taken()
        self._answer(ready)
        return answer.result()

    def leave(self) -> None:
        """A job has ended."""
        with self._lock:
            self._n_jobs -= 1
            ready = self._taken()
        self._answer(ready)

    def stop(self, error: BaseException) -> None:
        """Wake all jobs that wait."""
        with self._lock:
            self._error = error
            waiting, self._waiting = self._waiting, []
        for _, answer in waiting:
            answer.set_exception(error)

    def _taken(self) -> list[tuple[Question, Future[Any]]]:
        """All questions, if everybody waits."""
        if len(self._waiting) < self._n_jobs:
            return []
        waiting, self._waiting = self._waiting, []
        return waiting

    def _answer(self, ready: list[tuple[Question, Future[Any]]]) -> None:
        if not ready:
            return
        questions = tuple(question for question, _ in ready)
        try:
            answers = Questions(questions).ask(self._parts)
        except BaseException as error:
            for _, waiting in ready:
                waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(ready, answers, strict=True):
            waiting.set_result(answer)


def rows_of(part: Any) -> LocalRows:
    """The rows of a part, at the nodes where they are now."""
    rows: LocalRows = part.rows
    return rows


@dataclass(frozen=True)
class PartOfRows:
    """A part of the rows while a tree grows. It never changes: splits make another.

    Attributes
    ----------
    rows : LocalRows
    """

    rows: LocalRows

    def at_roots(self, draws: Sequence[np.ndarray]) -> PartOfRows:
        """The rows that are drawn for several trees, at the roots of these."""
        return PartOfRows(self.rows.at_roots(draws))

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> PartOfRows:
        """The rows at the children of some nodes; see `Rows.split`."""
        rows = self.rows.placed(self.rows.places.copy())
        rows.split(nodes, first_child, splits)
        return PartOfRows(rows)


class JoinedRows:
    """Rows of several holders; see `Rows`.

    Parameters
    ----------
    parts : ChangingParts
        A `PartOfRows` of each.
    binned, coarse : BinnedTable
        The bins of all rows, whose columns need not be there.
    goal : Goal
        That of all rows.
    n_threads : int
        Threads for what is done beside asking.
    """

    call_bytes = CALL_BYTES
    is_far = True

    def __init__(
        self,
        parts: ChangingParts,
        binned: BinnedTable,
        coarse: BinnedTable | None,
        goal: Goal,
        n_threads: int,
    ) -> None:
        self.parts = PartsTogether(parts)
        self.binned = binned
        self.coarse = binned if coarse is None else coarse
        self.goal = goal
        self.n_threads = n_threads

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.binned.n_rows

    def together(self, jobs: Sequence[Callable[[], Result]]) -> list[Result]:
        """Results of jobs that only ask."""
        return self.parts.together(jobs)

    def _ask(
        self, of: Callable[..., Any], join: Join, finish: Callable[..., Any] | None = None
    ) -> Any:
        return self.parts.ask(Then(rows_of, of), join, finish)

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        return np.asarray(self._ask(partial(LocalRows.totals, nodes=nodes), add))

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        of = partial(LocalRows.spreads, nodes=nodes, centres=centres)
        least, greatest, sums = self._ask(of, join_spreads)
        return least, greatest, sums

    def sums(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Sums of the targets of each node, (n_nodes, n_outputs), on grids of as many units."""
        return np.asarray(self._ask(partial(LocalRows.sums, nodes=nodes, units=units), add))

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        return self.medians_of(nodes.tolist(), False)

    def medians_of(self, nodes: list[int], standardised: bool) -> np.ndarray:
        """The same, of targets as they are or centred and scaled."""
        of = partial(LocalRows.targets_of, nodes=nodes, standardised=standardised)
        return np.asarray(self._ask(of, join_targets, medians_of_nodes))

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        join = join_sparse if sparse else join_histograms
        found = self._ask(
            partial(LocalRows.histograms, nodes=nodes, first=first, last=last, sparse=sparse), join
        )
        assert isinstance(found, Histograms)
        return found

    def at_roots(self, draws: Sequence[np.ndarray]) -> JoinedRows:
        """The rows that are drawn for several trees, at the roots of these; see `HeldRows`."""
        self.parts.change(partial(PartOfRows.at_roots, draws=draws))
        return self

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        self.parts.change(
            partial(PartOfRows.split, nodes=nodes, first_child=first_child, splits=splits)
        )

    def at(self, node: int, n_rows: int) -> JoinedRowsOfNode:
        """The rows of one node, which count as so many."""
        at = Then(rows_of, partial(LocalRows.at, node=node, n_rows=n_rows))
        if self.goal.counts is not None:
            n_rows = int(self.parts.ask(Then(at, LocalRowsOfNode.size), add))
        return JoinedRowsOfNode(self.parts, n_rows, at)


class JoinedRowsOfNode:
    """Some rows that several holders have between them; see `RowsOfNode`.

    Parameters
    ----------
    parts : PartsTogether
    n_rows : int
    at : function
        That gets at a part's rows, a `LocalRowsOfNode`.
    """

    def __init__(self, parts: PartsTogether, n_rows: int, at: Callable[..., Any]) -> None:
        self.n_rows = n_rows
        self._parts = parts
        self._at = at

    def _ask(self, of: Callable[..., Any], join: Join = add) -> Any:
        return self._parts.ask(Then(self._at, of), join)

    def totals(self) -> np.ndarray:
        """Sums of channels."""
        return np.asarray(self._ask(LocalRowsOfNode.totals))

    def histogram(self, own_bins: bool = False) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with, or all features'."""
        return np.asarray(self._ask(partial(LocalRowsOfNode.histogram, own_bins=own_bins)))

    def grids(
        self,
        pairs: np.ndarray,
        group_of_bin: np.ndarray,
        n_groups: int,
        max_rows: int | None = None,
    ) -> np.ndarray:
        """Sums of channels by the groups of each pair's features."""
        greatest = None
        if max_rows is not None and max_rows < self.n_rows:
            greatest = self._greatest_hash(max_rows)
        of = partial(
            LocalRowsOfNode.grids,
            pairs=pairs,
            group_of_bin=group_of_bin,
            n_groups=n_groups,
            greatest_hash=greatest,
        )
        return np.asarray(self._ask(of))

    def sample(
        self, features: tuple[int, ...], max_rows: int, binned: tuple[int, ...] | None = None
    ) -> Sample:
        """All rows, or so many chosen by a hash of their numbers."""
        greatest = GREATEST_HASH if self.n_rows <= max_rows else self._greatest_hash(max_rows)
        of = partial(
            LocalRowsOfNode.sample_up_to,
            features=tuple(features),
            binned=binned,
            greatest_hash=greatest,
        )
        sample, whole = self._ask(of, join_samples)
        assert isinstance(sample, Sample)
        if len(sample.rows) < self.n_rows:
            sample = sample.with_scale(float(whole / sample.weights.sum()))
        return sample

    def branch_counts(self, split: Split) -> np.ndarray:
        """Rows in each branch of a split."""
        return np.asarray(self._ask(partial(LocalRowsOfNode.branch_counts, split=split)))

    def _greatest_hash(self, size: int) -> int:
        """The greatest hash of the `size` rows whose hashes are smallest."""
        join = partial(join_hashes, size)
        # Of rows up to twice the limit, there are nearly always enough.
        limit = int(hash_limits(np.array([self.n_rows]), 2 * size)[0])
        hashes = partial(LocalRowsOfNode.hashes, size=size)
        found = self._ask(partial(hashes, greatest_hash=limit), join)
        if len(found) < size:
            found = self._ask(partial(hashes, greatest_hash=GREATEST_HASH), join)
        return int(found.max())


# --- how answers are joined ---


def join_spreads(answers: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Join least and greatest values, and sums."""
    least, greatest, sums = zip(*answers, strict=True)
    return np.min(least, axis=0), np.max(greatest, axis=0), add(sums)


def join_histograms(answers: list[Histograms]) -> Histograms:
    """Join sums by bin."""
    first = answers[0]
    return Histograms(first.first, first.last, add([each.sums for each in answers]))


def join_sparse(answers: list[Histograms]) -> Histograms:
    """Join sums of bins that hold rows."""
    first = answers[0]
    cells = [each.cells for each in answers if each.cells is not None]
    return Histograms(first.first, first.last, None, join_cells(cells))


def join_targets(answers: list[Any]) -> list[tuple[np.ndarray, np.ndarray | None]]:
    """Join targets and weights of nodes' rows."""
    joined = []
    for parts in zip(*answers, strict=True):
        values, weights = zip(*parts, strict=True)
        joined.append(
            (np.concatenate(values), None if weights[0] is None else np.concatenate(weights))
        )
    return joined


def medians_of_nodes(targets: list[tuple[np.ndarray, np.ndarray | None]]) -> np.ndarray:
    """Medians of nodes' targets, (n_nodes, n_outputs)."""
    return np.array([medians_of(values, weights) for values, weights in targets])


def join_hashes(size: int, answers: list[np.ndarray]) -> np.ndarray:
    """The smallest of all hashes, `size` of them at most."""
    hashes = np.concatenate(answers)
    return hashes if len(hashes) <= size else np.partition(hashes, size - 1)[:size]


def join_samples(answers: list[tuple[Sample, float]]) -> tuple[Sample, float]:
    """Samples of rows that follow each other, and the weight of the rows they are from."""
    samples = [sample for sample, _ in answers]
    first, n_rows = samples[0], sum(len(sample.rows) for sample in samples)

    def joined(name: str, n_columns: int) -> Columns:
        arrays = [[getattr(each, name).array(i) for each in samples] for i in range(n_columns)]
        return Columns([np.concatenate(of_parts) for of_parts in arrays], n_rows)

    contents = [sample.content for sample in samples if sample.content is not None]
    sample = Sample(
        first.features,
        joined("columns", first.columns.n_columns),
        joined("bins", first.bins.n_columns),
        Targets.joined([each.targets for each in samples]),
        np.concatenate([each.weights for each in samples]),
        np.concatenate(contents) if contents else None,
        1.0,
    )
    return sample, sum(weight for _, weight in answers)
