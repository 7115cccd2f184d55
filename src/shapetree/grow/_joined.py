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
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.histogram import Targets, join_cells
from shapetree.data._binning import BinnedTable
from shapetree.data._sampling import GREATEST_HASH, hash_limits
from shapetree.data._targets import Goal, medians_of
from shapetree.grow._rows import Histograms, Sample
from shapetree.grow._splits import Split

# A method and its arguments. The answer to several is that of each to the next.
Step = tuple[str, tuple[Any, ...]]
Join = Callable[[list[Any]], Any]
# Bytes of histograms that one call asks for: as few calls as memory allows.
CALL_BYTES = 2**27
# Jobs whose questions are asked together; the grids of each may take some memory.
JOBS_TOGETHER = 8

Result = TypeVar("Result")


class Holders(Protocol):
    """Asks all holders of rows the same, and joins their answers."""

    def ask(self, *steps: Step, join: Join, finish: Callable[[Any], Any] | None = None) -> Any:
        """What all holders answer.

        Parameters
        ----------
        steps : tuples of str and tuple
            Methods of `LocalRows` or, after "refined", of `LocalRefinedRows`.
        join : function
            Makes one answer of several. Some may be joined first, and then what comes of that.
        finish : function, optional
            What to make of the one answer, where it is.
        """
        ...

    def tell(self, *steps: Step) -> None:
        """Have all holders do something, one step after another."""
        ...


class Question(NamedTuple):
    """Something to ask all holders, see `Holders.ask`."""

    steps: tuple[Step, ...]
    join: Join
    finish: Callable[[Any], Any] | None


class PartsTogether:
    """Parts that answer the questions of several jobs at once.

    Jobs run in threads. When all of them wait for an answer, their questions are asked in one
    round: a level of the tree then takes as many rounds as a node.

    Parameters
    ----------
    parts : Holders
    """

    def __init__(self, parts: Holders) -> None:
        self._parts = parts
        self._local = local()

    def ask(self, *steps: Step, join: Join, finish: Callable[[Any], Any] | None = None) -> Any:
        """What all holders answer; see `Holders`."""
        meeting = getattr(self._local, "meeting", None)
        if meeting is None:
            return self._parts.ask(*steps, join=join, finish=finish)
        return meeting.ask(Question(steps, join, finish))

    def tell(self, *steps: Step) -> None:
        """Have all holders do something; jobs that run together must not."""
        self._parts.tell(*steps)

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

    def __init__(self, parts: Holders, n_jobs: int) -> None:
        self._parts = parts
        self._n_jobs = n_jobs
        self._waiting: list[tuple[Question, Future[Any]]] = []
        self._error: BaseException | None = None
        self._lock = Lock()

    def ask(self, question: Question) -> Any:
        """The answer to a question, when all others have one, too."""
        answer: Future[Any] = Future()
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
            answers = ask_together(self._parts, questions)
        except BaseException as error:
            for _, waiting in ready:
                waiting.set_exception(error)
            return
        for (_, waiting), answer in zip(ready, answers, strict=True):
            waiting.set_result(answer)


def ask_together(parts: Holders, questions: tuple[Question, ...]) -> list[Any]:
    """Answers to several questions, in one round."""
    if len(questions) == 1:
        question = questions[0]
        return [parts.ask(*question.steps, join=question.join, finish=question.finish)]
    steps = tuple(question.steps for question in questions)
    joins = JoinEach(tuple(question.join for question in questions))
    finishes = FinishEach(tuple(question.finish for question in questions))
    return list(parts.ask(("several", steps), join=joins, finish=finishes))


@dataclass(frozen=True)
class JoinEach:
    """Joins the answers to several questions."""

    joins: tuple[Join, ...]

    def __call__(self, answers: list[list[Any]]) -> list[Any]:
        """Join lists of answers."""
        each = zip(*answers, strict=True)
        return [join(list(own)) for join, own in zip(self.joins, each, strict=True)]


@dataclass(frozen=True)
class FinishEach:
    """What to make of the answers to several questions."""

    finishes: tuple[Callable[[Any], Any] | None, ...]

    def __call__(self, answers: list[Any]) -> list[Any]:
        """Finish a list of answers."""
        return [
            answer if finish is None else finish(answer)
            for finish, answer in zip(self.finishes, answers, strict=True)
        ]


def add(answers: Sequence[Any]) -> Any:
    """Join sums."""
    return np.sum(answers, axis=0)


def add_each(answers: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Join several sums."""
    return [add(each) for each in zip(*answers, strict=True)]


class JoinedRows:
    """Rows of several holders; see `Rows`.

    Parameters
    ----------
    parts : Holders
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
        parts: Holders,
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

    def totals(self, nodes: np.ndarray) -> np.ndarray:
        """Sums of the channels over the rows of each node, (n_nodes, n_channels)."""
        return np.asarray(self.parts.ask(("totals", (nodes,)), join=add))

    def spreads(
        self, nodes: np.ndarray, centres: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Least and greatest target of each node, and how far all lie from a centre in sum."""
        least, greatest, sums = self.parts.ask(("spreads", (nodes, centres)), join=join_spreads)
        return least, greatest, sums

    def sums(self, nodes: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Sums of the targets of each node, (n_nodes, n_outputs), on grids of as many units."""
        return np.asarray(self.parts.ask(("sums", (nodes, units)), join=add))

    def medians(self, nodes: np.ndarray) -> np.ndarray:
        """Medians of the targets of each node, (n_nodes, n_outputs)."""
        return self.medians_of(nodes.tolist(), False)

    def medians_of(self, nodes: list[int], standardised: bool) -> np.ndarray:
        """The same, of targets as they are or centred and scaled."""
        question = "targets_of_nodes", (nodes, standardised)
        return np.asarray(self.parts.ask(question, join=join_targets, finish=medians_of_nodes))

    def histograms(self, nodes: np.ndarray, first: int, last: int, sparse: bool) -> Histograms:
        """Sums over the rows of each node by bin, for the features first..last-1."""
        join = join_sparse if sparse else join_histograms
        found = self.parts.ask(("histograms", (nodes, first, last, sparse)), join=join)
        assert isinstance(found, Histograms)
        return found

    def split(self, nodes: np.ndarray, first_child: np.ndarray, splits: list[Split]) -> None:
        """Send the rows of each node by its split to its children, numbered from the first on."""
        self.parts.tell(("split", (nodes, first_child, splits)))

    def at(self, node: int, n_rows: int) -> JoinedRowsOfNode:
        """The rows of one node, which count as so many."""
        step = "at", (node, n_rows)
        if self.goal.counts is not None:
            n_rows = int(self.parts.ask(step, ("size", ()), join=add))
        return JoinedRowsOfNode(self.parts, n_rows, step)


class JoinedRowsOfNode:
    """Some rows that several holders have between them; see `RowsOfNode`.

    Parameters
    ----------
    parts : Holders
    n_rows : int
    steps : tuples of str and tuple
        What to ask holders to get at the rows.
    """

    def __init__(self, parts: Holders, n_rows: int, *steps: Step) -> None:
        self.n_rows = n_rows
        self._parts = parts
        self._steps = steps

    def _ask(self, name: str, *arguments: Any, join: Join = add) -> Any:
        return self._parts.ask(*self._steps, (name, arguments), join=join)

    def totals(self) -> np.ndarray:
        """Sums of channels."""
        return np.asarray(self._ask("totals"))

    def histogram(self, own_bins: bool = False) -> np.ndarray:
        """Sums of channels by bin, over the bins that pairs are screened with, or all features'."""
        return np.asarray(self._ask("histogram", own_bins))

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
        return np.asarray(self._ask("grids", pairs, group_of_bin, n_groups, None, greatest))

    def sample(
        self, features: tuple[int, ...], max_rows: int, binned: tuple[int, ...] | None = None
    ) -> Sample:
        """All rows, or so many chosen by a hash of their numbers."""
        greatest = GREATEST_HASH if self.n_rows <= max_rows else self._greatest_hash(max_rows)
        sample, whole = self._ask(
            "sample_up_to", tuple(features), binned, greatest, join=join_samples
        )
        assert isinstance(sample, Sample)
        if len(sample.rows) < self.n_rows:
            sample = sample.with_scale(float(whole / sample.weights.sum()))
        return sample

    def branch_counts(self, split: Split) -> np.ndarray:
        """Rows in each branch of a split."""
        return np.asarray(self._ask("branch_counts", split))

    def _greatest_hash(self, size: int) -> int:
        """The greatest hash of the `size` rows whose hashes are smallest."""
        join = partial(join_hashes, size)
        # Of rows up to twice the limit, there are nearly always enough.
        limit = int(hash_limits(np.array([self.n_rows]), 2 * size)[0])
        found = self._ask("hashes", size, limit, join=join)
        if len(found) < size:
            found = self._ask("hashes", size, GREATEST_HASH, join=join)
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
