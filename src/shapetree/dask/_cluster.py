"""A Dask cluster as shapetree uses it: pure functions of parts, answers joined on the workers.

Everything that a worker holds is the result of a task. What is lost with a worker is made again by
Dask, from the tasks before; nothing is pinned to a worker.
"""

from __future__ import annotations

import pickle
import threading
import uuid
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from distributed import CancelledError, Client, Future, TimeoutError, default_client
from distributed.comm.core import CommClosedError

from shapetree.dask._held import Held, value_of
from shapetree.grow._joined import Join, Step
from shapetree.refine._joined import PartRows, Place

# Answers that are joined by one task, and how few are joined here: a task would take longer.
JOINED_TOGETHER = 16
FEW = 4
# Bytes of a message from which on it is sent once, as a task, and not with every task.
MUCH = 50_000
# Bytes that are sent at a time: Dask warns of large graphs.
PIECE = 2_000_000
# Seconds after which a fit that waits looks whether anybody works for it.
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
        self._lock = threading.Lock()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        # An error's traceback may keep futures alive: let go of all that the workers hold, and of
        # what they have not begun. Dask's own cancel would not do: it fails where one task waits
        # for another that nobody else wants.
        self.release(list(self._live.values()))
        if isinstance(error, CancelledError | CommClosedError):
            raise RuntimeError(
                "the Dask scheduler was restarted, or the connection to it was lost, and with it "
                "what this call had computed so far: call it again when the cluster is up. "
                "Collections that were persisted must be persisted again"
            ) from error

    def hold(self, collections: Sequence[Any]) -> list[Future[Any]]:
        """Have the workers compute what was delayed."""
        return self._note(self._client.compute(list(collections)))

    def each(self, function: Callable[..., Any], *columns: Sequence[Any], **told: Any) -> Parts:
        """Apply a function to every part; columns hold what is a part's, and the rest is told all.

        The results stay on the workers.
        """
        name = f"shapetree-{function.__name__}-{uuid.uuid4().hex}"
        keys = [f"{name}-{number}" for number in range(len(columns[0]))]
        return Parts(self, self._map(_run, keys, (function, told), *columns))

    def _map(
        self, task: Callable[..., Any], keys: list[str], told: Any, *columns: Sequence[Any]
    ) -> list[Future[Any]]:
        """Futures of a task of what all parts are told, and of what is a part's."""
        # As a named argument of all tasks, Dask would make large values tasks by themselves, with
        # the argument's name as the key: two such values would be taken for the same.
        messages = [self.message(told)] * len(keys)
        return self._note(self._client.map(task, messages, *columns, key=keys, pure=False))

    def message(self, value: Any) -> Held | Future[Any]:
        """A value to give to tasks; if it is large, the result of a task of its own."""
        sent = pickle.dumps(value, protocol=5)
        if len(sent) < MUCH:
            return Held(value)
        name = f"shapetree-message-{uuid.uuid4().hex}"
        pieces = [
            self._client.submit(_itself, sent[first : first + PIECE], key=f"{name}-{first}")
            for first in range(0, len(sent), PIECE)
        ]
        return self._client.submit(_whole, pieces, key=name)

    def joined(self, futures: Sequence[Future[Any]], join: Join, finish: Any = None) -> Any:
        """One result of many, joined on the workers some at a time, and brought here.

        A few are joined here, unless there is something to finish on a worker.
        """
        if finish is None and len(futures) <= FEW:
            return join(self.results(futures))
        return self.joining([futures], join, [finish]).results()[0]

    def joining(
        self, columns: Sequence[Sequence[Future[Any]]], join: Join, finishes: Sequence[Any]
    ) -> Parts:
        """One result of each of several columns, joined on the workers, where it stays."""
        each = zip(columns, finishes, strict=True)
        return Parts(self, [self._join(futures, join, finish) for futures, finish in each])

    def _join(self, futures: Sequence[Future[Any]], join: Join, finish: Any) -> Future[Any]:
        """One future of many."""
        name = f"shapetree-join-{uuid.uuid4().hex}"
        made: list[Future[Any]] = []
        while not made or len(futures) > 1:
            groups = [
                list(futures[at : at + JOINED_TOGETHER])
                for at in range(0, len(futures), JOINED_TOGETHER)
            ]
            keys = [f"{name}-{len(made)}-{number}" for number in range(len(groups))]
            last = finish if len(groups) == 1 else None
            futures = self._map(_joined, keys, (join, last), groups)
            made += futures
        self.release(made[:-1])
        return made[-1]

    def results(self, futures: Sequence[Future[Any]]) -> list[Any]:
        """Results of all parts, brought here."""
        self._wait_for(futures)
        return [value_of(each) for each in self._client.gather(list(futures))]

    def groups(
        self, futures: Sequence[Future[Any]], must_be_level: bool
    ) -> list[list[Future[Any]]]:
        """Futures that stand on the same worker, in as many groups as that has threads.

        If these must be level, what is too much for a worker goes to one that has less. It is where
        futures stand now: if a worker is lost, all of a group will be made anew.
        """
        self._wait_for(futures)
        where, n_threads = self._client.who_has(futures), self._client.nthreads()
        by_worker: dict[str, list[Future[Any]]] = {worker: [] for worker in n_threads}
        for future in futures:
            by_worker.setdefault(next(iter(where[future.key]), ""), []).append(future)
        groups = [
            by_worker[worker][first :: n_threads.get(worker, 1)]
            for worker in by_worker
            for first in range(n_threads.get(worker, 1))
        ]
        if must_be_level:
            level_out(groups)
        return [group for group in groups if group]

    def _wait_for(self, futures: Sequence[Future[Any]]) -> None:
        """Wait until tasks have ended; say so if nobody is there to do them."""
        for future in futures:
            while not self._has_ended(future):
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
        """Let the workers forget what nothing else needs."""
        with self._lock:
            live = [self._live.pop(future.key, None) for future in futures]
        for future in live:
            if future is not None:
                future.release()


class Parts:
    """Something that the workers hold of every part.

    Parameters
    ----------
    cluster : Cluster
    futures : list of Future
    """

    def __init__(self, cluster: Cluster, futures: list[Future[Any]]) -> None:
        self.cluster = cluster
        self.futures = futures

    def __len__(self) -> int:
        return len(self.futures)

    def __del__(self) -> None:
        self.cluster.release(self.futures)

    def each(self, function: Callable[..., Any], *columns: Sequence[Any], **told: Any) -> Parts:
        """Apply a function to what is held of every part."""
        return self.cluster.each(function, self.futures, *columns, **told)

    def joined(self, join: Join, finish: Any = None) -> Any:
        """One result of all parts, brought here."""
        return self.cluster.joined(self.futures, join, finish)

    def results(self) -> list[Any]:
        """What is held of every part, brought here."""
        return self.cluster.results(self.futures)

    def together(
        self,
        function: Callable[..., Any],
        *columns: Sequence[Any],
        must_be_level: bool = False,
        **told: Any,
    ) -> Parts:
        """Apply a function to lists of what is held of parts on the same worker.

        A task takes Dask as long as a small part takes to answer. Parts stay where they are unless
        the lists must be about as long.
        """
        groups = self.cluster.groups(self.futures, must_be_level)
        number_of = {future.key: number for number, future in enumerate(self.futures)}
        grouped = [
            [[column[number_of[future.key]] for future in group] for group in groups]
            for column in columns
        ]
        return self.cluster.each(function, groups, *grouped, **told)


class AskedParts:
    """Rows on workers that are asked and told; see `shapetree.grow._joined.Holders`.

    Parts on the same worker are asked by one task.

    Parameters
    ----------
    rows : Parts
        A `PartRows` of every part.
    """

    def __init__(self, rows: Parts) -> None:
        self._rows = rows.together(hold_together, must_be_level=True)
        self._places = self._rows.each(start_parts)
        self._untold: list[Step] = []

    def ask(self, *steps: Step, join: Join, finish: Any = None) -> Any:
        """What all holders answer."""
        told, self._untold, before = tuple(self._untold), [], self._places.futures
        name = uuid.uuid4().hex
        asked = {"steps": steps, "join": join, "told": told, "name": name}
        answers = self._rows.each(ask_parts, before, **asked)
        if told:
            # The task before has made them: nobody waits for Dask to start one after the other.
            self._places = self._rows.each(tell_parts, before, steps=told, name=name)
        return answers.joined(join, finish)

    def tell(self, *steps: Step) -> None:
        """Have all holders do something, when the next question comes."""
        self._untold += steps


def level_out(groups: list[list[Any]]) -> None:
    """Move items from large groups to small ones until their sizes differ by one at most."""
    while True:
        largest, smallest = max(groups, key=len), min(groups, key=len)
        if len(largest) - len(smallest) < 2:
            return
        smallest.append(largest.pop())


# --- tasks ---


def _itself(value: Any) -> Any:
    return value


def _whole(pieces: list[bytes]) -> Held:
    return Held(pickle.loads(b"".join(pieces)))


def _run(message: Held, *part: Any) -> Held:
    function, told = message.value
    return Held(function(*map(value_of, part), **told))


def _joined(message: Held, parts: list[Any]) -> Held:
    join, finish = message.value
    answer = join(value_of(parts))
    return Held(answer if finish is None else finish(answer))


def hold_together(parts: list[PartRows]) -> list[PartRows]:
    """Parts that are asked together."""
    return parts


def start_parts(parts: list[PartRows]) -> list[Place]:
    """All rows of some parts at the root."""
    return [part.start() for part in parts]


def ask_parts(
    parts: list[PartRows],
    places: list[Place],
    steps: tuple[Step, ...],
    join: Join,
    told: tuple[Step, ...] = (),
    name: str | None = None,
) -> Any:
    """What some parts answer, after they were told some steps."""
    if told:
        places = tell_parts(parts, places, told, name)
    each = zip(parts, places, strict=True)
    answers = [place.asked(part, steps) for part, place in each]
    return join(answers) if len(answers) > 1 else answers[0]


def tell_parts(
    parts: list[PartRows], places: list[Place], steps: tuple[Step, ...], name: str | None = None
) -> list[Place]:
    """Where the rows of some parts are after some steps, which have a name."""
    return [place.told(part, steps, name) for part, place in zip(parts, places, strict=True)]
