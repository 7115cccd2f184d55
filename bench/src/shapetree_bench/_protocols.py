"""How a method is fitted to a dataset, and what is measured of it."""

from __future__ import annotations

import ctypes
import gc
import re
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from shapetree_bench._datasets import Fold, Rows
from shapetree_bench._methods import CART, Method
from shapetree_bench._scores import MAIN, scores_of_classes, scores_of_numbers

PROTOCOLS = ("untuned", "cv", "leaves", "paper")
DEPTHS = (2, 3, 4, 5, 6)
# What a cell of the protocol "leaves" has for a depth.
LEAVES = (8, 16, 32)
# The depth of methods that have none.
ANY_DEPTH = 0
N_TRIALS = 50
# Fits that are shorter than this are repeated, and the shortest time counts.
SHORT = 0.1
REPEATS = 3

Measures = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """What is asked for: a method on a dataset at a depth, by a protocol."""

    protocol: str
    method: str
    dataset: str
    depth: int


def can_do(protocol: str, method: Method, task: str) -> bool:
    """Whether the protocol makes sense: only ours choose a strength, not all can be tuned."""
    if task not in method.tasks:
        return False
    if protocol == "cv":
        return method.kind == "ours"
    if protocol == "leaves":
        return method.limits_leaves
    return protocol == "untuned" or method.space is not None


# One fit


def measure(
    method: Method,
    rows: Rows,
    fold: Fold,
    depth: int,
    params: dict[str, Any],
    repeats: int = REPEATS,
) -> tuple[Measures, Measures]:
    """Fit to a fold's training rows; what was measured on test and on validation rows."""
    X, more, owners = method.rows(rows)
    train_X, train_y = _take(X, fold.train), rows.y[fold.train]
    if method.kind == "ours" and rows.groups is not None:
        more = more | {"groups": rows.groups[fold.train]}
    task = rows.dataset.task
    limits = params if "max_leaf_nodes" in params else {"max_depth": depth or max(DEPTHS)}
    cart = partial(_fit_cart, rows, fold, limits)

    def fit() -> Any:
        return method.make(task, depth, **params).fit(train_X, train_y, **more)

    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        peak = _Peak()
        model, seconds, cart_seconds = _timed_in_turns(fit, cart, peak, repeats)
        test, predict_seconds = _timed_prediction(model, _take(X, fold.test), rows)
        valid, _ = _timed_prediction(model, _take(X, fold.validation), rows)
        sizes = method.sizes(model, _take(X, fold.test), owners)
    measures: Measures = _scores(rows, fold.test, test) | dict(sizes)
    measures |= {"seconds": seconds, "cart_seconds": cart_seconds, "peak_mb": peak.megabytes}
    measures["predict_us"] = 1e6 * predict_seconds / len(fold.test)
    if hasattr(model, "strength_"):
        measures["strength"] = float(model.strength_)
    return measures, _scores(rows, fold.validation, valid)


def _take(X: Any, index: np.ndarray) -> Any:
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


def _fit_cart(rows: Rows, fold: Fold, limits: dict[str, Any]) -> Any:
    model = CART.make(rows.dataset.task, ANY_DEPTH, **limits)
    return model.fit(rows.one_hot[fold.train], rows.y[fold.train])


def _timed_in_turns(
    fit: Callable[[], Any], cart: Callable[[], Any], peak: _Peak, repeats: int
) -> tuple[Any, float, float]:
    """The model, and the shortest processor times of a fit and of CART's, which take turns."""
    with peak:
        model, first = _timed(fit)
    ours, carts = [first], [_timed(cart)[1]]
    while len(ours) < repeats and max(ours[0], carts[0]) < SHORT:
        ours.append(_timed(fit)[1])
        carts.append(_timed(cart)[1])
    return model, min(ours), min(carts)


def _timed(do: Callable[[], Any]) -> tuple[Any, float]:
    # Processor time, because other processes may be about, even on this core.
    start = time.process_time()
    result = do()
    return result, time.process_time() - start


def _timed_prediction(model: Any, X: Any, rows: Rows) -> tuple[np.ndarray, float]:
    """Probabilities of all classes, or numbers; and the time that takes."""
    if rows.dataset.task == "regression":
        guess, seconds = _timed(lambda: np.asarray(model.predict(X), dtype=float).ravel())
        return guess, seconds
    if not hasattr(model, "predict_proba"):
        guess, seconds = _timed(lambda: np.asarray(model.predict(X), dtype=int))
        return np.eye(rows.n_classes)[guess], seconds
    proba, seconds = _timed(lambda: np.asarray(model.predict_proba(X)))
    full = np.zeros((len(proba), rows.n_classes))
    full[:, np.asarray(model.classes_, dtype=int)] = proba
    return full, seconds


def _scores(rows: Rows, index: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    score = scores_of_classes if rows.dataset.task == "classification" else scores_of_numbers
    return score(rows.y[index], predicted)


class _Peak:
    """How much memory a process took at most, beyond what it had before; NaN where unknown."""

    megabytes = float("nan")
    _before: float | None = None

    def __enter__(self) -> None:
        gc.collect()
        try:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
            self._before = _status("VmRSS")
        except (OSError, AttributeError):
            self._before = None

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            self.megabytes = max(0.0, _status("VmHWM") - self._before) / 1024


def _status(field: str) -> float:
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    if found is None:
        raise OSError(f"/proc/self/status has no {field}")
    return float(found[1])


# Protocols with one fit for each fold


def params_of(cell: Cell) -> dict[str, Any]:
    """What the protocol sets beside the depth."""
    if cell.protocol == "leaves":
        return {"max_depth": None, "max_leaf_nodes": cell.depth}
    return {"strength": "cv"} if cell.protocol == "cv" else {}


def fit_fold(method: Method, rows: Rows, cell: Cell, fold: int) -> Measures:
    """What was measured on one fold."""
    return measure(method, rows, rows.folds()[fold], cell.depth, params_of(cell))[0]


# The paper's protocol


@dataclass(frozen=True)
class Trial:
    """Parameters to be tried, and their mean score on validation rows once they have one."""

    number: int
    params: dict[str, Any]
    validation: float | None = None


def try_trial(method: Method, rows: Rows, cell: Cell, trial: Trial) -> list[Measures]:
    """What was measured on each fold, with `validation`, of which more is better."""
    name, sign = MAIN[rows.dataset.task]
    measured = []
    for fold in rows.folds():
        # Timed once: there are many trials, and only one of them counts.
        test, valid = measure(method, rows, fold, cell.depth, trial.params, repeats=1)
        measured.append(test | {"validation": sign * valid[name]})
    return measured


def validation_of(folds: list[Measures] | None) -> float | None:
    """The score by which trials are chosen; None for one that failed."""
    return None if folds is None else float(np.mean([each["validation"] for each in folds]))


class Search:
    """Optuna's search in the paper's space; it goes on from trials that are done.

    Attributes
    ----------
    done : list of Trial
    """

    def __init__(self, method: Method, rows: Rows, done: Sequence[Trial]) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        if method.space is None:
            raise ValueError(f"{method.name} has nothing to tune")
        self._space = method.space(rows.dataset.task, len(rows.folds()[0].train))
        self._distributions = {key: _distribution(tried) for key, tried in self._space.items()}
        self.done = list(done)

    def ask(self) -> Trial:
        """What to try next; it depends on nothing but what is done."""
        import optuna

        sampler = optuna.samplers.TPESampler(seed=len(self.done))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials([self._frozen(each) for each in self.done])
        asked = study.ask(self._distributions).params
        params = {
            key: asked[key] if _is_range(tried) else tried[asked[key]]
            for key, tried in self._space.items()
        }
        return Trial(len(self.done), params)

    def tell(self, trial: Trial, folds: list[Measures] | None) -> None:
        """Note what came of a trial."""
        self.done.append(Trial(trial.number, trial.params, validation_of(folds)))

    def _frozen(self, trial: Trial) -> Any:
        import optuna

        params = {
            key: trial.params[key] if _is_range(tried) else tried.index(trial.params[key])
            for key, tried in self._space.items()
        }
        states = optuna.trial.TrialState
        return optuna.trial.create_trial(
            state=states.FAIL if trial.validation is None else states.COMPLETE,
            value=trial.validation,
            params=params,
            distributions=self._distributions,
        )


def _is_range(tried: Any) -> bool:
    return hasattr(tried, "support")


def _distribution(tried: Any) -> Any:
    """A range of integers, or a list of values by their number."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    if _is_range(tried):
        low, high = tried.support()
        return IntDistribution(int(low), int(high))
    return CategoricalDistribution(range(len(tried)))
