"""Comparing methods over datasets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import friedmanchisquare, studentized_range, wilcoxon

# Accuracies in percent that differ by less are a tie, as they would be in the paper's tables.
TIE = 0.1
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Ranks:
    """Mean ranks of methods, and how far apart they have to be (Demšar, 2006).

    Attributes
    ----------
    ranks : Series
        Mean rank of each method, the best first.
    critical_difference : float
        Nemenyi's, at the level of `SIGNIFICANCE`.
    p_value : float
        Friedman's: how likely such ranks are if all methods are equal.
    n_datasets : int
    """

    ranks: pd.Series
    critical_difference: float
    p_value: float
    n_datasets: int

    def cliques(self) -> list[tuple[str, str]]:
        """Longest runs of methods that do not differ: their first and their last."""
        names, ranks = list(self.ranks.index), self.ranks.to_numpy()
        runs = []
        reached = 0
        for i, name in enumerate(names):
            last = int(np.flatnonzero(ranks - ranks[i] <= self.critical_difference).max())
            if last > i and last > reached:
                runs.append((name, names[last]))
                reached = last
        return runs


def rank(scores: pd.DataFrame) -> Ranks | None:
    """Rank methods (columns) on datasets (rows), where a higher score is better."""
    n_datasets, n_methods = scores.shape
    if n_methods < 3 or n_datasets < 3:
        return None
    ranks = scores.rank(axis=1, ascending=False).mean().sort_values()
    quantile = studentized_range.ppf(1 - SIGNIFICANCE, n_methods, np.inf) / np.sqrt(2)
    difference = quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets))
    p_value = friedmanchisquare(*(scores[name] for name in scores)).pvalue
    return Ranks(ranks, float(difference), float(p_value), n_datasets)


@dataclass(frozen=True)
class Duel:
    """On how many datasets one method is better than another, equal, or worse."""

    wins: int
    ties: int
    losses: int
    mean: float
    p_value: float


def duel(ours: pd.Series, theirs: pd.Series) -> Duel | None:
    """Compare accuracies in percent on the datasets that both have."""
    gaps = (ours - theirs).dropna()
    if gaps.empty:
        return None
    is_tie = gaps.abs() < TIE
    differ = gaps[gaps != 0]
    p_value = float(wilcoxon(differ).pvalue) if len(differ) >= 5 else float("nan")
    wins, losses = int((~is_tie & (gaps > 0)).sum()), int((~is_tie & (gaps < 0)).sum())
    return Duel(wins, int(is_tie.sum()), losses, float(gaps.mean()), p_value)
