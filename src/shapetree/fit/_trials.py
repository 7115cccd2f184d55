"""Strength, criterion and shrinkage, tried out on folds of the training rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from numbers import Real
from time import perf_counter
from typing import TypeVar

from sklearn.utils import check_random_state

from shapetree.fit._choice import Choice, Plan, Trial, choose, path_of, race_for, usual_of
from shapetree.fit._folds import hashes_of_rows, make_folds
from shapetree.fit._learning import learn
from shapetree.fit._losses import FoldTest, Loss, LossOfClasses, LossOfNumbers, test_of
from shapetree.fit._parameters import Parameters
from shapetree.fit._rows import BinnedRows, TrainingRows
from shapetree.grow._pair_options import PairOptions
from shapetree.grow._progress import TestProgress
from shapetree.refine import prune_by_cost
from shapetree.tree._arrays import TreeArrays

Result = TypeVar("Result")

N_FOLDS = 5


def choose_trial(binned: BinnedRows, parameters: Parameters, pairs: PairOptions) -> Choice:
    """The strength, criterion and shrinkage asked for, or those that are best on rows held out."""
    rows, n_rows = binned.rows, binned.rows.table.n_rows
    plan = _plan(rows, parameters, len(pairs.pairs) > 0)
    if len(plan.trials) == 1 and len(plan.shrinkages) == 1:
        return Choice(plan.usual, plan.shrinkages[0])
    n_folds = plan.race.n_folds if plan.race else parameters.folds or N_FOLDS
    with TestProgress(parameters.verbose, n_rows) as progress:
        tester = Tester(binned, parameters, pairs, n_folds, plan.shrinkages, progress)
        if tester.folds.are_filled:
            return choose(plan, tester.folds, tester.test)
    if parameters.shrinkage == "cv":
        raise ValueError(
            f"shrinkage='cv' needs at least {n_folds} distinct rows, got {n_rows} sample(s); "
            "give a number"
        )
    return Choice(plan.usual, plan.shrinkages[0])


class Tester:
    """Fits trials and tests them on folds, as many at a time as there are threads.

    Parameters
    ----------
    binned : BinnedRows
    parameters : Parameters
    pairs : PairOptions
    n_folds : int
    shrinkages : sequence of float
    progress : TestProgress
    """

    def __init__(
        self,
        binned: BinnedRows,
        parameters: Parameters,
        pairs: PairOptions,
        n_folds: int,
        shrinkages: Sequence[float],
        progress: TestProgress,
    ) -> None:
        # One seed for all fits, in whatever order they run.
        seed = int(check_random_state(parameters.random_state or 0).randint(2**31 - 1))
        self._parameters = replace(parameters, random_state=seed)
        # Folds are made of all rows' targets and weights.
        binned = replace(binned, rows=binned.rows.here())
        self._binned = binned
        self._pairs = pairs
        self._shrinkages = shrinkages
        self._progress = progress
        rows = binned.rows
        hashes = hashes_of_rows(binned.binned, rows.targets, rows.weights)
        self.folds = make_folds(hashes, rows.strata, rows.weights, n_folds, seed)
        self._loss: Loss = LossOfClasses()
        if rows.classes is None:
            is_absolute = parameters.criterion == "absolute_error"
            self._loss = LossOfNumbers(rows.targets, self.folds.weights, is_absolute)

    def test(self, wanted: list[tuple[Trial, int]]) -> list[FoldTest]:
        """Test trials on folds that they are fitted without."""
        return self._run([partial(self._test, trial, fold) for trial, fold in wanted])

    def trees(self, trials: Sequence[Trial]) -> list[TreeArrays]:
        """Trees of all rows."""
        return self._run([partial(self._fit, trial, self._binned, False) for trial in trials])

    def _run(self, jobs: list[Callable[[int], Result]]) -> list[Result]:
        n_threads = self._parameters.threads
        self._progress.expect(len(jobs))
        each = 1 if len(jobs) > 1 else n_threads
        return _run_together([partial(job, each) for job in jobs], n_threads, self._progress.stop)

    def _fit(self, trial: Trial, binned: BinnedRows, owns_bins: bool, n_threads: int) -> TreeArrays:
        parameters = replace(self._parameters.with_trial(trial), n_threads=n_threads)
        progress = self._progress.of_test()
        outcome = learn(binned, parameters, self._pairs, progress, owns_bins=owns_bins)
        self._progress.tested()
        return prune_by_cost(outcome.tree, parameters.ccp_alpha)

    def _test(self, trial: Trial, fold: int, n_threads: int) -> FoldTest:
        held_out, start = self.folds.held_out(fold), perf_counter()
        tree = self._fit(trial, self._binned.take(~held_out), True, n_threads)
        seconds, new = perf_counter() - start, self._binned.take(held_out)
        leaves, y, weights = new.leaves(tree, n_threads), new.rows.targets, self.folds.weights
        return test_of(tree, leaves, y, weights[held_out], self._loss, self._shrinkages, seconds)


def _plan(rows: TrainingRows, parameters: Parameters, has_pairs: bool) -> Plan:
    """What to try: a single trial if there is nothing to choose."""
    shrinkages = parameters.shrinkages
    if isinstance(parameters.strength, Real):
        usual = Trial(float(parameters.strength), parameters.criterion)
        return Plan((usual,), usual, shrinkages)
    path = path_of(parameters.strength)
    criteria = [parameters.criterion]
    if criteria == ["auto"]:
        usual_criterion = rows.goal(parameters).criterion_name
        criteria = [usual_criterion, "entropy" if usual_criterion == "gini" else "gini"]
    trials = tuple(Trial(strength, criterion) for criterion in criteria for strength in path)
    usual = Trial(usual_of(path), criteria[0])
    race = None if parameters.folds else race_for(rows.total_weight, has_pairs)
    return Plan(trials, usual, shrinkages, race)


def _run_together(
    jobs: Sequence[Callable[[], Result]], n_threads: int, stop: threading.Event
) -> list[Result]:
    """Run jobs in threads; if one fails, or on Ctrl-C, the others are told to stop."""
    if n_threads == 1 or len(jobs) <= 1:
        return [job() for job in jobs]
    with ThreadPoolExecutor(min(n_threads, len(jobs))) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
