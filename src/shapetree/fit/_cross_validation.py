"""Strength, branches and shrinkage chosen by cross-validation on the training rows.

A *trial* is a strength of the penalties together with a number of branches. Its trees are fitted
without the rows of each fold and scored on them. The trial with the best mean score is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils import check_random_state

from shapetree._threads import Result, run_together
from shapetree.fit._folds import Folds, folds_of
from shapetree.fit._learning import learn
from shapetree.fit._parameters import Parameters, path_of
from shapetree.fit._resamples import Evidence
from shapetree.fit._scores import Score
from shapetree.fit._teaching import SoftTargets
from shapetree.fit._training_rows import BinnedRows
from shapetree.grow._progress import TestProgress
from shapetree.refine import Shrinkage, shrink
from shapetree.tree._arrays import TreeArrays

# What users are shown to choose from.
PATH = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Trial:
    """A way to fit that is tried out."""

    strength: float
    max_branches: int

    def of(self, parameters: Parameters) -> Parameters:
        """Parameters to fit with."""
        return replace(parameters, strength=self.strength, max_branches=self.max_branches)


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, and what that is based on.

    Attributes
    ----------
    parameters : Parameters
        With the strength and the number of branches that were chosen.
    results : dict or None
        All trials in the form of scikit-learn's `cv_results_`; None if nothing was tried.
    evidence : Evidence or None
        That there is anything to learn, if resamples were asked.
    soft_targets : SoftTargets or None
        What a teacher makes of the targets.
    """

    parameters: Parameters
    shrinkage: Shrinkage
    results: dict[str, Any] | None = None
    evidence: Evidence | None = None
    soft_targets: SoftTargets | None = None


@dataclass(frozen=True, eq=False)
class Test:
    """How a trial's tree does on the rows of a fold: their scores, by shrinkage."""

    scores: np.ndarray
    n_leaves: int
    seconds: float


def folds_to_choose_by(binned: BinnedRows, parameters: Parameters) -> Folds | None:
    """Folds of the rows, all of which are in this process; None if there is nothing to choose."""
    if isinstance(parameters.strength, Real) and len(parameters.shrinkages) == 1:
        return None
    # Folds are made of all rows' targets and weights.
    here = replace(binned, rows=binned.rows.gather())
    return folds_of(here, parameters.cv, binned.groups, _seed_of(parameters))


def trials_of(parameters: Parameters) -> list[Trial]:
    """What is tried, from the least to the greatest strength."""
    strengths = path_of(parameters.strength)
    # Where leaves are limited, a third branch may be worth its leaf, or not.
    most = parameters.max_branches
    branches = range(2, most + 1) if parameters.max_leaf_nodes and len(strengths) > 1 else (most,)
    return [Trial(strength, n) for strength in strengths for n in branches]


def choose(binned: BinnedRows, parameters: Parameters, folds: Folds | None) -> Choice:
    """The strength and the shrinkage of the parameters, or those that are best on rows held out."""
    if folds is None:
        return Choice(parameters, parameters.shrinkages[0])
    with TestProgress(parameters.verbose, binned.rows.table.n_rows) as progress:
        validation = CrossValidation(binned, parameters, folds, progress)
        record = validation.test(trials_of(parameters))
    best = record.best()
    shrinkage = parameters.shrinkages[record.shrinkage_of(best)]
    return Choice(best.of(parameters), shrinkage, record.results())


class CrossValidation:
    """Fits trials and tests them on folds, as many at a time as there are threads."""

    def __init__(
        self,
        binned: BinnedRows,
        parameters: Parameters,
        folds: Folds,
        progress: TestProgress,
    ) -> None:
        self._parameters = parameters
        self._binned = binned = replace(binned, rows=binned.rows.gather())
        self._progress = progress
        self.folds = folds
        self.score = Score(parameters.objective, binned.rows.targets, self.folds.weights)

    def test(self, trials: Sequence[Trial]) -> Record:
        """Test all trials on all folds."""
        folds = range(len(self.folds))
        # One seed for all fits, in whatever order they run.
        seed = _seed_of(self._parameters)
        jobs = [partial(self._test, trial, seed, fold) for trial in trials for fold in folds]
        found = self._run(jobs)
        n = len(folds)
        tests = {trial: found[i * n : (i + 1) * n] for i, trial in enumerate(trials)}
        return Record(tests, self.folds)

    def trees(self, trials: Sequence[Trial], soft_targets: SoftTargets | None) -> list[TreeArrays]:
        """Trees of all rows, as they are when nothing has to be chosen."""
        seed, owns_bins = self._parameters.random_state, False
        jobs = []
        for trial in trials:
            goes = soft_targets is not None and soft_targets.goes_with(trial.strength)
            arguments = seed, self._binned, owns_bins, soft_targets if goes else None
            jobs.append(partial(self._fit, trial, *arguments))
        return self._run(jobs)

    def _run(self, jobs: Sequence[Callable[[int], Result]]) -> list[Result]:
        n_threads = self._parameters.n_threads
        self._progress.expect(len(jobs))
        each = 1 if len(jobs) > 1 else n_threads
        return run_together([partial(job, each) for job in jobs], n_threads, self._progress.stop)

    def _fit(
        self,
        trial: Trial,
        seed: Any,
        binned: BinnedRows,
        owns_bins: bool,
        soft_targets: SoftTargets | None,
        n_threads: int,
    ) -> TreeArrays:
        parameters = replace(trial.of(self._parameters), random_state=seed, n_threads=n_threads)
        outcome = learn(binned, parameters, self._progress.of_test(), owns_bins, soft_targets)
        self._progress.tested()
        return outcome.tree

    def _test(self, trial: Trial, seed: int, fold: int, n_threads: int) -> Test:
        fitted, held_out = self.folds[fold]
        start = perf_counter()
        tree = self._fit(trial, seed, self._binned.take(fitted), True, None, n_threads)
        seconds, new = perf_counter() - start, self._binned.take(held_out)
        leaves = new.backend.leaves(new, tree, n_threads)
        shrunk = [shrink(tree, each) for each in self._parameters.shrinkages]
        scores = [self.score.of(each.value[leaves], new.rows.targets) for each in shrunk]
        return Test(np.array(scores), tree.n_leaves, seconds)


class Record:
    """What is known of trials, and how they compare.

    Parameters
    ----------
    tests : dict
        Tests of each trial on all folds.
    """

    def __init__(self, tests: dict[Trial, list[Test]], folds: Folds) -> None:
        self._tests = tests
        self._folds = folds

    def best(self, strength: float | None = None) -> Trial:
        """The trial with the best mean score; of equals, the strongest with the fewest branches.

        Of all trials, or of those with some strength.
        """
        return max(
            [trial for trial in self._tests if strength in (None, trial.strength)],
            key=lambda trial: (self.score(trial)[0], trial.strength, -trial.max_branches),
        )

    def shrinkage_of(self, trial: Trial) -> int:
        """The number of the shrinkage with which a trial's trees score best."""
        return int(np.argmax(np.sum([self._sums(trial, fold) for fold in self._numbers], axis=0)))

    def score(self, trial: Trial) -> tuple[float, float]:
        """Mean score of a trial on all rows held out, and its standard error.

        Equal rows, and rows of a group, count as one.
        """
        rows = np.concatenate([np.flatnonzero(held_out) for _, held_out in self._folds])
        which = self.shrinkage_of(trial)
        scores = np.concatenate([test.scores[which] for test in self._tests[trial]])
        weights, group = self._folds.weights[rows], self._folds.group[rows]
        mean = float(scores @ weights / weights.sum())
        of_groups = np.bincount(group, weights * (scores - mean))
        return mean, float(np.sqrt(of_groups @ of_groups) / weights.sum())

    @property
    def _numbers(self) -> range:
        return range(len(self._folds))

    def _sums(self, trial: Trial, fold: int) -> np.ndarray:
        """Scores of a fold's rows in sum, by shrinkage."""
        weights = self._folds.weights[self._folds[fold][1]]
        return np.asarray(self._tests[trial][fold].scores @ weights)

    def results(self) -> dict[str, Any]:
        """All trials in the form of scikit-learn's `cv_results_`."""
        table: dict[str, Any] = {}
        for name, key in (("seconds", "fit_time"), ("n_leaves", "n_leaves")):
            values = [[getattr(test, name) for test in tests] for tests in self._tests.values()]
            table[f"mean_{key}"], table[f"std_{key}"] = np.mean(values, 1), np.std(values, 1)
        for name in ("strength", "max_branches"):
            column = [getattr(trial, name) for trial in self._tests]
            table[f"param_{name}"] = np.ma.MaskedArray(column, mask=False)
        table["params"] = [
            {"strength": trial.strength, "max_branches": trial.max_branches}
            for trial in self._tests
        ]
        weights = [self._folds.weights[held_out].sum() for _, held_out in self._folds]
        scores = np.array(
            [
                [self._sums(trial, fold)[self.shrinkage_of(trial)] for fold in self._numbers]
                for trial in self._tests
            ]
        ) / np.array(weights)
        table |= {f"split{fold}_test_score": scores[:, fold] for fold in self._numbers}
        # Over all rows held out, by which trials are chosen: folds of groups may differ in size.
        table["mean_test_score"] = means = np.array([self.score(trial)[0] for trial in self._tests])
        away = (scores - means[:, None]) ** 2
        table["std_test_score"] = np.sqrt(np.average(away, axis=1, weights=weights))
        table["rank_test_score"] = rankdata(-table["mean_test_score"], "min").astype(np.int32)
        return table


def _seed_of(parameters: Parameters) -> int:
    """The seed of folds, and of the fits on them."""
    return int(check_random_state(parameters.random_state or 0).randint(2**31 - 1))
