"""How much each hyper-parameter matters, as the paper measures it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestRegressor

COLUMNS = ("method", "parameter", "importance", "trials")
# Fewer trials of a method say nothing.
MIN_TRIALS = 20


def importances(trials: pd.DataFrame) -> pd.DataFrame:
    """Importance of each parameter to a random forest that predicts scores from parameters.

    Scores on test rows are standardised within each method and dataset first.

    Parameters
    ----------
    trials : DataFrame
        The table of trials.

    Returns
    -------
    DataFrame
        Columns `method`, `parameter`, `importance` and `trials`.
    """
    rows = []
    for method, each in trials[trials["status"] == "done"].groupby("method"):
        if len(each) < MIN_TRIALS:
            continue
        params = pd.DataFrame([json.loads(text) for text in each["params"]])
        params["max_depth"] = each["depth"].to_numpy()
        scores = pd.Series([_test_score(text) for text in each["folds"]])
        datasets = each["dataset"].to_numpy()
        means = scores.groupby(datasets).transform("mean")
        spreads = scores.groupby(datasets).transform("std").replace(0.0, np.nan)
        targets = ((scores - means) / spreads).fillna(0.0)
        # Values that are words have no order; two of them need none.
        columns = params.apply(lambda c: c if c.dtype.kind in "if" else pd.factorize(c)[0])
        forest = RandomForestRegressor(200, random_state=0).fit(columns, targets)
        for name, share in zip(columns, forest.feature_importances_, strict=True):
            parameter = str(name).removeprefix("search__")  # as in the paper
            rows.append((str(method), parameter, float(share), len(each)))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _test_score(folds: str) -> float:
    measured = json.loads(folds)
    name, sign = (
        ("accuracy", 1) if measured[0].get("accuracy") is not None else ("squared_error", -1)
    )
    return sign * float(np.mean([fold[name] for fold in measured]))
