"""Values that workers hold and send: pickled as one piece, with their size for Dask."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from distributed.sizeof import safe_sizeof

from shapetree._core.columns import Columns
from shapetree.data._table import Table
from shapetree.grow._local import LocalRows
from shapetree.refine._joined_refined_rows import RefinedPart


class PartsChange(NamedTuple):
    """Functions that parts are put through, one after another, and a name that no others have."""

    name: str
    functions: tuple[Callable[..., Any], ...]


class TaskValue:
    """A value on its way between tasks.

    Dask would hand out arrays as views of what came over the network, at any address. Kernels need
    numbers where the machine expects them, so a value is sent as one piece and made anew.

    Parameters
    ----------
    value
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        self._lock = Lock()
        self._changed: tuple[str, TaskValue] | None = None

    def changed(self, change: PartsChange) -> TaskValue:
        """What functions make of a list of parts; two tasks that need it make it once."""
        with self._lock:
            if self._changed is None or self._changed[0] != change.name:
                parts = self.value
                for make in change.functions:
                    parts = [make(part) for part in parts]
                self._changed = change.name, TaskValue(parts)
            return self._changed[1]

    def __reduce_ex__(self, protocol: Any) -> Any:
        sent = pickle.dumps(self.value, protocol=5)
        # As a buffer, Dask sends it without another copy.
        return _task_value, (pickle.PickleBuffer(sent) if protocol >= 5 else sent,)

    def __sizeof__(self) -> int:
        return bytes_of(self.value)


def _task_value(pickled: Any) -> TaskValue:
    return TaskValue(pickle.loads(pickled))


def value_of(thing: Any) -> Any:
    """The value itself, of one or of a list."""
    if isinstance(thing, list):
        return [value_of(each) for each in thing]
    return thing.value if isinstance(thing, TaskValue) else thing


def bytes_of(value: Any) -> int:
    """About how much memory a value takes; what parts share with others is not counted."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, list | tuple):
        return sum(map(bytes_of, value))
    if isinstance(value, dict):
        return sum(map(bytes_of, value.values()))
    if isinstance(value, Columns):
        return sum(bytes_of(value.array(i)) for i in range(value.n_columns))
    if isinstance(value, Table):
        return bytes_of(value.columns)
    if isinstance(value, RefinedPart):
        columns = value.rows.binned.columns
        own = 0 if columns.order is None else bytes_of(columns)
        return bytes_of(value.rows) + own + value.bytes_of_tree
    if isinstance(value, LocalRows):
        return bytes_of(list(vars(value.goal).values())) + 8 * value.n_rows
    if is_dataclass(value):
        return sum(bytes_of(getattr(value, field.name)) for field in fields(value))
    return int(safe_sizeof(value))
