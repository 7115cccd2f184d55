"""A fitted model beside a CART of the same depth, and beside no tree at all, on the same rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Column as Heading
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree.cli._console import Console
from shapetree.cli._load_model import Model, size_of
from shapetree.cli._training_data import Split, TrainingData
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.tree._evaluation import scores_of

TITLES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced",
    "r2": "R²",
    "mean_absolute_error": "mean abs. error",
}


@dataclass(frozen=True)
class ModelScore:
    """How good a model is, and how large."""

    model: str
    scores: dict[str, float]
    n_leaves: int
    depth: int
    seconds: float | None

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)


def score_of_model(
    model: Model, scores: dict[str, float], seconds: float | None = None
) -> ModelScore:
    """The row of a tree or forest in the table of scores."""
    name = "shape forest" if isinstance(model, BaseShapeForest) else "shape tree"
    return ModelScore(name, scores, *size_of(model), seconds)


def scores_of_others(
    data: TrainingData, split: Split, depth: int | None, seed: int
) -> list[ModelScore]:
    """Scores of CART, and of predicting the same for all rows."""
    encoded = _for_cart(data.X, split.train)
    cart, same = (
        (DecisionTreeClassifier, DummyClassifier(strategy="prior"))
        if data.is_classification
        else (DecisionTreeRegressor, DummyRegressor())
    )
    names = "CART", "most common class" if data.is_classification else "the mean"
    found = []
    for name, model in zip(names, (cart(max_depth=depth, random_state=seed), same), strict=True):
        began = perf_counter()
        model.fit(encoded[split.train], data.y[split.train])
        seconds = perf_counter() - began
        said = model.predict(encoded[split.test])
        scores = scores_of(data.y[split.test], said, data.is_classification)
        size = (1, 0) if model is same else size_of(model)
        found.append(ModelScore(name, scores, *size, seconds))
    return found


def _for_cart(X: pd.DataFrame, train: np.ndarray) -> np.ndarray:
    """Columns as the numbers that CART needs: codes, seconds, and NaN for missing values."""
    encoded = np.empty(X.shape, dtype=np.float32)
    for j, name in enumerate(X.columns):
        values = X[name]
        if values.dtype.kind == "M":
            since = values - values.iloc[train].min()  # so that single precision tells them apart
            encoded[:, j] = since.dt.total_seconds()
            continue
        if not isinstance(values.dtype, pd.CategoricalDtype):
            encoded[:, j] = values.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
            continue
        known = sorted(values.iloc[train].dropna().unique())
        codes = pd.Categorical(values, categories=known).codes.astype(float)
        encoded[:, j] = np.where(codes < 0, np.nan, codes)
    # CART accepts missing values, but no infinite ones.
    return np.clip(encoded, np.finfo(np.float32).min, np.finfo(np.float32).max, out=encoded)


def show_scores(scores: list[ModelScore], where: str, console: Console) -> None:
    """Print a table of scores, with the rows that they are of in its heading."""
    console.heading(where)
    fit = "" if scores[0].seconds is None else "fit"
    titles = [*(TITLES[name] for name in scores[0].scores), "leaves", "depth", fit]
    headings = [Heading(title, justify="right", no_wrap=True) for title in titles]
    decimals = _decimals(scores[0].scores.get("mean_absolute_error", 1.0))
    console.table([Heading(""), *headings], [_cells(score, decimals) for score in scores])


def _decimals(error: float) -> int:
    """Decimals that show four digits of an error."""
    return 0 if error <= 0 else min(max(3 - math.floor(math.log10(error)), 0), 12)


def _cells(score: ModelScore, decimals: int) -> list[str]:
    cells = [score.model]
    for name, value in score.scores.items():
        if name == "mean_absolute_error":
            cells.append(f"{value:,.{decimals}f}")
        else:
            cells.append(f"{value:z.3f}" if name == "r2" else f"{100 * value:.1f} %")
    return [*cells, f"{score.n_leaves:,}", str(score.depth), _duration(score.seconds)]


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{1000 * seconds:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
