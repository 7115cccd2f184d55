"""Strength, criterion and shrinkage chosen from the data: cross-validation on the training rows.

A *trial* is a strength of the penalties together with a criterion. Its trees are fitted without the
rows of one fold and tested on them. All trials see the same folds, so that two of them are compared
row by row, and what both get right or wrong does not count as noise. Unless the user gives a number
of folds, they only tell strengths apart: of criteria, as of other beginnings of a tree, the loss on
all rows tells as much, at less cost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from shapetree.fit._folds import Folds
from shapetree.fit._losses import FoldTest

# What strength="cv" chooses from, and what it prefers.
STRENGTHS = (0.0, 0.3, 1.0, 3.0)
# What users are shown to choose from.
PATH = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
USUAL_STRENGTH = 1.0
# By how many standard errors a trial must be better to be clearly better: one with weaker
# penalties, and any other. Folds have fewer rows, for which simpler trees are better, so they are
# biased against weak penalties.
SURE, SURE_OF_OTHERS = 1.5, 2.5
# Numbers of rows that make a difference to how much is tested.
FEW_ROWS, MANY_ROWS = 2_500, 20_000


@dataclass(frozen=True)
class Trial:
    """A way to fit that is tried out."""

    strength: float
    criterion: str

    def is_stronger(self, other: Trial) -> bool:
        """Whether penalties are higher than another trial's."""
        return self.strength > other.strength


def path_of(strength: Any) -> tuple[float, ...]:
    """The strengths to choose from that a parameter says, ascending."""
    if isinstance(strength, str):
        return STRENGTHS
    try:
        given = np.asarray(strength, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim != 1 or len(given) == 0 or not (np.isfinite(given) & (given >= 0)).all():
        raise ValueError(
            "strength must be a number, 'cv', or a list of strengths to choose from, all of them "
            f"finite and 0 or greater; got {strength!r}"
        )
    return tuple(np.unique(given).tolist())


def usual_of(path: tuple[float, ...]) -> float:
    """The strength of a path that is nearest to the usual one; of two as near, the stronger."""
    return min(reversed(path), key=lambda m: abs(np.log((m + 0.01) / (USUAL_STRENGTH + 0.01))))


# --- trials ---


@dataclass(frozen=True)
class Race:
    """Tests that leave hopeless trials behind.

    Attributes
    ----------
    n_folds : int
        Number of folds that rows are dealt out to.
    n_rivals : tuple of int
        How many trials, beside the usual one, are tested on each further fold after the first;
        folds that are not named are never held out.
    """

    n_folds: int
    n_rivals: tuple[int, ...]


def race_for(n_rows: float, has_pairs: bool) -> Race:
    """Few rows need many tests to tell trials apart; of many rows, few folds tell enough.

    Pairs take long, above all with weak penalties.
    """
    if n_rows <= FEW_ROWS:
        return Race(5, (2, 2, 2, 2))
    if n_rows <= MANY_ROWS and not has_pairs:
        return Race(4, (1, 1))
    return Race(3, (1,))


@dataclass(frozen=True)
class Plan:
    """What to try.

    Attributes
    ----------
    trials : tuple of Trial
        From the weakest penalties to the strongest; the usual criterion first.
    usual : Trial
        The one to prefer unless another is better for sure.
    shrinkages : tuple of float
    race : Race or None
        None to test every trial on every fold.
    """

    trials: tuple[Trial, ...]
    usual: Trial
    shrinkages: tuple[float, ...]
    race: Race | None = None


@dataclass(frozen=True, eq=False)
class Choice:
    """What was chosen, and what that is based on.

    Attributes
    ----------
    trial : Trial
    shrinkage : float
    results : dict or None
        All trials in the form of scikit-learn's `cv_results_`; None if nothing was tried.
    rivals : tuple of str
        Other criteria that may be as good.
    """

    trial: Trial
    shrinkage: float
    results: dict[str, Any] | None = None
    rivals: tuple[str, ...] = ()


# Differences for the rows of some folds, in their order.
Differences = dict[int, np.ndarray]
# Tests trials on folds, all of them at once.
RunTests = Callable[[list[tuple[Trial, int]]], list[FoldTest]]


def choose(plan: Plan, folds: Folds, run: RunTests) -> Choice:
    """Try out what is planned, and choose.

    Parameters
    ----------
    plan : Plan
    folds : Folds
    run : function
    """
    record = Record(plan.trials, folds)
    if plan.race is None:
        record.add(run, plan.trials, range(folds.n_folds))
    else:
        _hold_race(plan.race, plan, record, run)
    chosen = record.choose(plan.usual)
    shrinkage = plan.shrinkages[record.best_shrinkage(chosen)]
    return Choice(chosen, shrinkage, record.results(), record.rival_criteria(chosen, plan.usual))


def _hold_race(race: Race, plan: Plan, record: Record, run: RunTests) -> None:
    """Test strengths on one fold, and those ahead on more; criteria are left to all rows."""
    usual = plan.usual
    _walk(plan, record, run)
    for fold, n_rivals in enumerate(race.n_rivals, start=1):
        ahead = [trial for trial in record.ranked() if record.is_ahead(trial, usual)]
        # What is behind now will hardly be better for sure. But is a tree better than none?
        if not ahead and record.tells(usual) and len(plan.shrinkages) == 1:
            return
        record.add(run, [usual, *ahead[:n_rivals]], [fold])


def _walk(plan: Plan, record: Record, run: RunTests) -> None:
    """Test strengths on the first fold, from the usual one on, both ways until all is lost.

    If weaker penalties are better, stronger ones are not, and need no test.
    """
    usual = plan.usual
    same = [trial for trial in plan.trials if trial.criterion == usual.criterion]
    weaker = [trial for trial in reversed(same) if usual.is_stronger(trial)]
    stronger = [trial for trial in same if trial.is_stronger(usual)]
    record.add(run, [usual, *weaker[:1]], [0])
    ways = [weaker[1:]] if weaker and not record.is_hopeless(weaker[0], usual) else []
    if not (weaker and record.is_ahead(weaker[0], usual)):
        ways.append(stronger)
    while ways := [way for way in ways if way]:
        record.add(run, [way[0] for way in ways], [0])
        ways = [way[1:] for way in ways if not record.is_hopeless(way[0], usual)]


class Record:
    """What is known of trials, and how they compare.

    Parameters
    ----------
    trials : sequence of Trial
    folds : Folds
    """

    def __init__(self, trials: Sequence[Trial], folds: Folds) -> None:
        self._trials = tuple(trials)
        self._folds = folds
        self._found: dict[Trial, dict[int, FoldTest]] = {trial: {} for trial in trials}

    def add(self, run: RunTests, trials: Sequence[Trial], folds: Sequence[int]) -> None:
        """Test trials on folds."""
        wanted = [(trial, fold) for fold in folds for trial in trials]
        for (trial, fold), test in zip(wanted, run(wanted), strict=True):
            self._found[trial][fold] = test

    def ranked(self) -> list[Trial]:
        """The trials that were tested on most folds, the best first; of equals, the stronger."""
        most = max(map(len, self._found.values()))
        tested = [trial for trial in reversed(self._trials) if len(self._found[trial]) == most]
        return sorted(tested, key=lambda trial: -self.score(trial)[0])

    def is_hopeless(self, trial: Trial, usual: Trial) -> bool:
        """Whether the usual trial is better for sure on all folds of another."""
        leads = self._leads(usual, trial)
        return bool(leads) and self._surely(leads, SURE) > 0.0

    def tells(self, trial: Trial) -> bool:
        """Whether a trial's trees are better than none for sure."""
        return self._surely(self._gains(trial), SURE) > 0.0

    def is_ahead(self, trial: Trial, usual: Trial) -> bool:
        """Whether a trial is better than the usual one on the folds that both were tested on."""
        leads = self._leads(trial, usual)
        return bool(leads) and self._surely(leads, 0.0) > 0.0

    def best_shrinkage(self, trial: Trial) -> int:
        """The number of the shrinkage by which a trial's trees lose least."""
        losses = np.sum([test.losses for test in self._found[trial].values()], axis=0)
        return int(losses.argmin())

    def choose(self, usual: Trial) -> Trial:
        """The trial to fit with.

        The usual one, or the one that is better by most, less what may be chance. If no tree is
        better than none for sure, the strongest.
        """
        n_tested = len(self._found[usual])
        finalists = [trial for trial in self._trials if len(self._found[trial]) == n_tested]
        if not any(map(self.tells, finalists)):
            same = [trial for trial in self._trials if trial.criterion == usual.criterion]
            return max(same, key=lambda trial: trial.strength)
        best, most = usual, 0.0
        for trial in reversed(finalists):
            n_errors = SURE if usual.is_stronger(trial) else SURE_OF_OTHERS
            lead = self._surely(self._leads(trial, usual), n_errors)
            if lead > most:
                best, most = trial, lead
        return best

    def rival_criteria(self, chosen: Trial, usual: Trial) -> tuple[str, ...]:
        """Criteria that may be as good as the usual one, if that was chosen."""
        if chosen.criterion != usual.criterion:
            return ()
        others = [
            trial
            for trial in self._trials
            if trial.strength == chosen.strength and trial.criterion != chosen.criterion
        ]
        return tuple(trial.criterion for trial in others if not self.is_hopeless(trial, chosen))

    def _score(self, trial: Trial, fold: int) -> float:
        """Mean score of a trial on a fold; NaN if it was not tested there."""
        test = self._found[trial].get(fold)
        if test is None:
            return np.nan
        weights = self._folds.weights[self._folds.held_out(fold)]
        return float(self._scores(trial, fold) @ weights / weights.sum())

    def _scores(self, trial: Trial, fold: int) -> np.ndarray:
        """Scores of the fold's rows with the shrinkage that suits a trial best."""
        return self._found[trial][fold].scores[self.best_shrinkage(trial)]

    def _gains(self, trial: Trial) -> Differences:
        """What a trial's trees are better by than no tree, for each row."""
        return {fold: test.gains for fold, test in self._found[trial].items()}

    def _leads(self, trial: Trial, other: Trial) -> Differences:
        """What a trial's trees are better by than another's, for each row that both saw."""
        ours, theirs = self._found[trial], self._found[other]
        folds = [fold for fold in ours if fold in theirs]
        return {fold: self._scores(trial, fold) - self._scores(other, fold) for fold in folds}

    def _surely(self, differences: Differences, n_errors: float) -> float:
        """A mean difference minus some standard errors; equal rows count as one."""
        rows = np.concatenate([np.flatnonzero(self._folds.held_out(fold)) for fold in differences])
        values = np.concatenate(list(differences.values()))
        weights, group = self._folds.weights[rows], self._folds.group[rows]
        mean = values @ weights / weights.sum()
        of_groups = np.bincount(group, weights * (values - mean))
        return float(mean - n_errors * np.sqrt(of_groups @ of_groups) / weights.sum())

    def score(self, trial: Trial) -> tuple[float, float]:
        """Mean score of a trial on all rows that it was tested on, and its standard error."""
        scores = {fold: self._scores(trial, fold) for fold in self._found[trial]}
        mean = self._surely(scores, 0.0)
        return mean, mean - self._surely(scores, 1.0)

    def results(self) -> dict[str, Any]:
        """All trials in the form of scikit-learn's `cv_results_`."""
        tests = [list(self._found[trial].values()) for trial in self._trials]
        scores = {
            f"split{fold}_test_score": np.array(
                [self._score(trial, fold) for trial in self._trials]
            )
            for fold in range(max(len(found) for found in tests))
        }
        table: dict[str, Any] = {}
        for name in ("seconds", "n_leaves"):
            values = [[getattr(test, name) for test in found] for found in tests]
            key = "fit_time" if name == "seconds" else name
            table[f"mean_{key}"], table[f"std_{key}"] = _means_and_deviations(values)
        for name in ("strength", "criterion"):
            column = [getattr(trial, name) for trial in self._trials]
            table[f"param_{name}"] = np.ma.MaskedArray(column, mask=False)
        table["params"] = [
            {"strength": trial.strength, "criterion": trial.criterion} for trial in self._trials
        ]
        table |= scores
        by_trial = np.array(list(scores.values())).T
        means, deviations = _means_and_deviations([row[~np.isnan(row)] for row in by_trial])
        table["mean_test_score"], table["std_test_score"] = means, deviations
        table["rank_test_score"] = rankdata(-np.nan_to_num(means, nan=-np.inf), "min").astype(
            np.int32
        )
        return table


def _means_and_deviations(values: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Of each list, NaN if it is empty."""
    means = np.array([np.mean(some) if len(some) else np.nan for some in values])
    return means, np.array([np.std(some) if len(some) else np.nan for some in values])
