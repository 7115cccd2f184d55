"""A Dask cluster as shapetree uses it: pure functions of parts, answers joined on the workers.

Everything that a worker holds is the result of a task. What is lost with a worker is made again by
Dask, from the tasks before; nothing is pinned to a worker.
"""

from __future__ import annotations

import pickle
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from distributed import CancelledError, Client, Future, TimeoutError, default_client
from distributed.comm.core import CommClosedError

from shapetree.dask._task_values import PartsChange, TaskValue, value_of
from shapetree.data._map_join import Join, MappedParts, Question, joined

# Answers that are joined by one task, and how few are joined in this process: a task takes longer.
JOINED_TOGETHER = 16
FEW = 4
# Bytes of a message to all tasks from which on it is sent once, as a task, and not with every task.
MUCH = 1_000_000
# Bytes that are sent at a time: Dask warns of large graphs.
PIECE = 2_000_000
# Seconds after which a fit that waits looks whether the cluster has workers.
PATIENCE = 30.0


def find_client(client: Client | None) -> Client:
    """The client that was given, or the one that is in use."""
    if client is not None:
        return client
    try:
        return default_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client: start one, such as distributed.Client(), or give it as client"
        ) from None


class Cluster:
    """Runs functions of parts on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._live: dict[Any, Future[Any]] = {}
        self._released: list[Future[Any]] = []
        self._lock = threading.RLock()  # parts may be forgotten while it is held

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # An error's traceback may keep futures alive: let go of all that the workers hold, and of
        # what they have not begun. Dask's own cancel would not do: it fails where one task waits
        # for another that has no other dependents.
        self.release(list(self._live.values()))
        self._release_now()
        if isinstance(error, CancelledError | CommClosedError):
            raise RuntimeError(
                "the Dask scheduler was restarted, or the connection to it was lost, and with it "
                "what this call had computed so far: call it again when the cluster is up. "
                "Collections that were persisted must be persisted again"
            ) from error

    def hold(self, collections: Sequence[Any]) -> list[Future[Any]]:
        """Have the workers compute what was delayed."""
        return self._note(self._client.compute(list(collections)))

    def group(self, function: Callable[..., Any], *columns: list[Any]) -> ClusterParts:
        """Apply a function to each part's own of some columns, the first of which is of futures.

        Parts that stand on one worker are in one task from now on: a task takes Dask as long as a
        small part takes to answer.
        """
        return self.make(self._numbers_by_group(columns[0]), function, *columns)

    def make(
        self,
        numbers: list[list[int]],
        function: Callable[..., Any],
        *columns: ClusterParts | list[Any],
        **shared: Any,
    ) -> ClusterParts:
        """Apply a function to each part's own of some columns, and to what all of them share.

        The results stay on the workers. Numbers are those of the parts in each group.
        """
        grouped = [
            [[column[number] for number in its] for its in numbers]
            if isinstance(column, list)
            else column.futures
            for column in columns
        ]
        n = len(numbers)
        message = self.message(partial(function, **shared), n)
        futures = self.map(_made, keys_of(function, n), [message] * n, *grouped)
        return ClusterParts(self, futures, numbers)

    def map(
        self, task: Callable[..., Any], keys: list[str], *columns: Sequence[Any]
    ) -> list[Future[Any]]:
        """Futures of a task of its own of some columns each."""
        # As a named argument of all tasks, Dask would make large values tasks by themselves, with
        # the argument's name as the key: two such values would be taken for the same.
        futures = self._note(self._client.map(task, *columns, key=keys, pure=False))
        # A client sends no more often than every 10 ms: what can wait comes after what cannot.
        self._release_now()
        return futures

    def message(self, value: Any, n_tasks: int) -> TaskValue | Future[Any]:
        """A value to give to some tasks; if it is large, the result of a task of its own."""
        sent = pickle.dumps(value, protocol=5)
        if len(sent) * n_tasks < MUCH:
            return TaskValue(value)
        name = f"shapetree-message-{uuid.uuid4().hex}"
        pieces = [
            self._client.submit(itself, sent[first : first + PIECE], key=f"{name}-{first}")
            for first in range(0, len(sent), PIECE)
        ]
        return self._client.submit(_whole, pieces, key=name)

    def joined(self, futures: list[Future[Any]], join: Join, finish: Any = None) -> Any:
        """One result of many, joined on the workers some at a time, and gathered.

        A few are joined in this process, unless there is something to finish on a worker.
        """
        if finish is not None or len(futures) > FEW:
            futures = [self.join(futures, join, finish)]
        answer = joined(self.results(futures), join)
        self.release(futures)
        return answer

    def join(self, futures: list[Future[Any]], join: Join, finish: Any) -> Future[Any]:
        """One result of many, joined on the workers, where it stays; the many are released."""
        name, is_one = f"shapetree-join-{uuid.uuid4().hex}", False
        while not is_one:
            groups = [
                futures[at : at + JOINED_TOGETHER] for at in range(0, len(futures), JOINED_TOGETHER)
            ]
            n, is_one = len(groups), len(groups) == 1
            message = self.message((join, finish if is_one else None), n)
            keys = [f"{name}-{len(futures)}-{number}" for number in range(n)]
            many, futures = futures, self.map(_joined, keys, [message] * n, groups)
            self.release(many)
        return futures[0]

    def results(self, futures: Sequence[Future[Any]]) -> list[Any]:
        """Results of all parts, gathered in this process."""
        self._wait_for(futures)
        return [value_of(each) for each in self._client.gather(list(futures))]

    def _numbers_by_group(self, futures: Sequence[Future[Any]]) -> list[list[int]]:
        """Numbers of the parts of each group: as many groups as a worker has threads.

        It is where futures stand now, but what is too much for one goes to another that has less.
        If a worker is lost, all of a group will be made anew.
        """
        self._wait_for(futures)
        where, n_threads = self._client.who_has(futures), self._client.nthreads()
        by_worker: dict[str, list[int]] = {worker: [] for worker in n_threads}
        for number, future in enumerate(futures):
            by_worker.setdefault(next(iter(where[future.key]), ""), []).append(number)
        groups = [
            its[first :: n_threads.get(worker, 1)]
            for worker, its in by_worker.items()
            for first in range(n_threads.get(worker, 1))
        ]
        level_out(groups)
        return [sorted(group) for group in groups if group]

    def _wait_for(self, futures: Sequence[Future[Any]]) -> None:
        """Wait until tasks have ended; warn if there are no workers."""
        for future in futures:
            # Asking the loop of the client costs time, and when one has ended, most others have.
            while not (future.done() or self._has_ended(future)):
                if not self._client.nthreads():
                    warnings.warn(
                        "the Dask cluster has no workers: the fit waits until one comes, or until "
                        "Ctrl-C. If Dask has given up a worker that died, start others, such as by "
                        "cluster.scale(2)",
                        RuntimeWarning,
                        stacklevel=2,
                    )

    def _has_ended(self, future: Future[Any]) -> bool:
        """Whether a task ends before patience does."""
        try:
            future.exception(timeout=PATIENCE)
        except TimeoutError:
            return False
        return True

    def _note(self, futures: Sequence[Future[Any]]) -> list[Future[Any]]:
        with self._lock:
            self._live.update((future.key, future) for future in futures)
        return list(futures)

    def release(self, futures: Sequence[Future[Any]]) -> None:
        """Release futures, so that workers free results that nothing else needs."""
        with self._lock:
            self._released += futures

    def _release_now(self) -> None:
        with self._lock:
            live = [self._live.pop(future.key, None) for future in self._released]
            self._released = []
        for future in live:
            if future is not None:
                future.release()


class ClusterParts:
    """Something that the workers hold of every part; see `shapetree.data._map_join.Parts`.

    Parameters
    ----------
    cluster : Cluster
    futures : list of Future
        Of lists of some parts each, which stand on the same worker.
    numbers : list of lists of int
        Which parts these are.
    """

    def __init__(
        self, cluster: Cluster, futures: list[Future[Any]], numbers: list[list[int]]
    ) -> None:
        self.cluster = cluster
        self.futures = futures
        self.numbers = numbers
        self._changes: list[Callable[..., Any]] = []

    def __del__(self) -> None:
        self.cluster.release(self.futures)

    def make(
        self, function: Callable[..., Any], *columns: ClusterParts | list[Any], **shared: Any
    ) -> ClusterParts:
        """What a function makes of each part, and of its own of some columns."""
        return self.cluster.make(self.numbers, function, self, *columns, **shared)

    def ask(self, of: Callable[..., Any], join: Join, finish: Any = None) -> Any:
        """One answer of all parts."""
        (answers,) = self._answers(Question(of, join))
        return self.cluster.joined(answers, join, finish)

    def find(self, *questions: Question) -> list[Future[Any]]:
        """One answer of all parts to each question, which stays on the workers."""
        each = zip(questions, self._answers(*questions), strict=True)
        return [self.cluster.join(answers, of.join, of.finish) for of, answers in each]

    def _answers(self, *questions: Question) -> list[list[Future[Any]]]:
        """Answers of every list of parts to each question, before which these are changed."""
        own, n = self.futures, len(self.futures)
        change = PartsChange(uuid.uuid4().hex, tuple(self._changes)) if self._changes else None
        messages = [
            (keys_of(each.of, n), self.cluster.message((each.of, each.join, change), n))
            for each in questions
        ]
        if change is not None:
            messages.append((keys_of(_answered, n), self.cluster.message(change, n)))
        # All at once, as a client sends no more often than every 10 ms. What these change to is
        # made of what they hold now, so that no task waits for another.
        keys = [key for keys, _ in messages for key in keys]
        told = [message for _, message in messages for _ in range(n)]
        futures = self.cluster.map(_answered, keys, told, own * len(messages))
        found = [futures[first : first + n] for first in range(0, len(futures), n)]
        if change is not None:
            self.cluster.release(own)
            self.futures, self._changes = found.pop(), []
        return found

    def map(self, make: Callable[..., Any]) -> MappedParts:
        """What a function makes of each part, anew for each question."""
        return MappedParts(self, make)

    def change(self, make: Callable[..., Any]) -> None:
        """Put what a function makes of each part in its place, when the next question comes."""
        self._changes.append(make)

    def results(self) -> list[Any]:
        """What is held of every part, gathered in this process."""
        every = zip(self.numbers, self.cluster.results(self.futures), strict=True)
        found = {
            n: part for numbers, parts in every for n, part in zip(numbers, parts, strict=True)
        }
        return [found[number] for number in range(len(found))]

    def one_by_one(self) -> Iterator[Any]:
        """The same in no particular order, with one of them at a time in this process."""
        for future, numbers in zip(self.futures, self.numbers, strict=True):
            for place in range(len(numbers)):
                taken = self.cluster.map(_taken, keys_of(_taken, 1), [place], [future])
                yield from self.cluster.results(taken)
                self.cluster.release(taken)


def level_out(groups: list[list[Any]]) -> None:
    """Move items from large groups to small ones until their sizes differ by one at most."""
    while True:
        largest, smallest = max(groups, key=len), min(groups, key=len)
        if len(largest) - len(smallest) < 2:
            return
        smallest.append(largest.pop())


# --- tasks ---


def itself(value: Any) -> Any:
    """The value."""
    return value


def _whole(pieces: list[bytes]) -> TaskValue:
    return TaskValue(pickle.loads(b"".join(pieces)))


def _made(message: TaskValue, *columns: Any) -> TaskValue:
    each = zip(*map(value_of, columns), strict=True)
    return TaskValue([message.value(*own) for own in each])


def _taken(place: int, group: TaskValue) -> TaskValue:
    return TaskValue(group.value[place])


def _answered(message: TaskValue, group: TaskValue) -> TaskValue:
    """The answer of some parts, or what these change to."""
    if isinstance(message.value, PartsChange):
        return group.changed(message.value)
    of, join, change = message.value
    parts = group.value if change is None else group.changed(change).value
    return TaskValue(joined([of(part) for part in parts], join))


def _joined(message: TaskValue, parts: list[Any]) -> TaskValue:
    join, finish = message.value
    answer = joined(value_of(parts), join)
    return TaskValue(answer if finish is None else finish(answer))


def keys_of(function: Callable[..., Any], n: int) -> list[str]:
    """Keys of tasks."""
    name = f"shapetree-{name_of(function)}-{uuid.uuid4().hex}"
    return [f"{name}-{number}" for number in range(n)]


def name_of(function: Any) -> str:
    """The name of a question, for those who watch Dask's dashboard."""
    while not hasattr(function, "__name__"):
        function = getattr(function, "then", None) or getattr(function, "func", type(function))
    return str(function.__name__)
