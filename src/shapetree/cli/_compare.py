"""A shape tree beside a CART of the same depth, and beside no tree at all, on the same rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from shapetree.cli._columns import Kind
from shapetree.cli._lesson import Lesson
from shapetree.cli._model import Tree
from shapetree.cli._problems import Misuse, suggestion
from shapetree.cli._voice import Head, Voice
from shapetree.tree._scores import scores_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Split:
    """Row numbers to train on and to test on; the same rows if none are held out."""

    train: np.ndarray
    test: np.ndarray
    is_apart: bool
    is_stratified: bool


@dataclass(frozen=True)
class Score:
    """How good a model is, and how large."""

    model: str
    scores: dict[str, float]
    n_leaves: int
    depth: int
    seconds: float | None

    def record(self) -> dict[str, Any]:
        """The same for JSON."""
        return asdict(self)


def split_rows(lesson: Lesson, test_size: float, seed: int, by: str | None = None) -> Split:
    """Hold out rows for the test, the same share of each class if classes are large enough.

    Parameters
    ----------
    lesson : Lesson
    test_size : float
        Share of the rows; 0 for none.
    seed : int
    by : str, optional
        "time=NAME" holds out the latest rows, "group=NAME" all rows of some groups, and
        "stratum=NAME" the same share of the rows of each value of a column.
    """
    rows = np.arange(len(lesson.y))
    way, column = (None, None) if by is None else _split_column(lesson, by)
    if test_size == 0:
        return Split(rows, rows, False, False)
    n_test = int(np.ceil(test_size * len(rows)))
    if n_test < 2 or len(rows) - n_test < 2:
        raise Misuse(f"--test-size {test_size} leaves too few of {len(rows)} rows")
    if column is not None and way in ("time", "group"):
        is_test = _latest(column, n_test) if way == "time" else _groups(column, n_test, seed)
        if min(is_test.sum(), (~is_test).sum()) < 2:
            raise Misuse(f"--split {by} leaves too few rows to train on, or none to test on")
        return Split(rows[~is_test], rows[is_test], True, False)
    strata = lesson.y if column is None else column
    is_stratified = (lesson.is_classification or by is not None) and _can_stratify(strata, n_test)
    if by is not None and not is_stratified:
        raise Misuse(f"--split {by} needs at least 2 rows of each value")
    train, test = train_test_split(
        rows,
        test_size=n_test,
        random_state=seed,
        stratify=strata if is_stratified else None,
    )
    return Split(np.sort(train), np.sort(test), True, is_stratified)


def _split_column(lesson: Lesson, by: str) -> tuple[str, np.ndarray]:
    """How to split, and by which codes or numbers of the rows; missing values have a code of -1."""
    way, _, name = by.partition("=")
    if way not in ("time", "group", "stratum") or not name:
        raise Misuse(f"--split takes time=NAME, group=NAME or stratum=NAME, got {by!r}")
    known = {column.name: column for column in [*lesson.columns, lesson.target]}
    if name not in known:
        raise Misuse(f"--split names {name!r}; {suggestion(name, known)}")
    values = known[name].values
    if values is None:
        raise Misuse(f"--split cannot use {name}: {known[name].reason}")
    codes = values.iloc[lesson.rows].astype("category").cat.codes.to_numpy()
    if way == "time":
        if not (known[name].is_numeric or known[name].kind is Kind.DATE):
            raise Misuse(f"--split time={name} needs dates or numbers; {name} holds text")
        if (codes < 0).any():
            raise Misuse(
                f"--split time={name} needs a time in every row; {(codes < 0).sum()} have none"
            )
    return way, codes


def _latest(times: np.ndarray, n_test: int) -> np.ndarray:
    """The rows from a moment on; all of a moment are on one side."""
    first = np.sort(times)[-n_test]
    # All rows of the first moment are tested, unless none would be left.
    return times >= first if first > times.min() else times > first


def _groups(groups: np.ndarray, n_test: int, seed: int) -> np.ndarray:
    """All rows of some groups, which have about as many rows as are to be tested."""
    names, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    before = np.cumsum(sizes[order]) - sizes[order]
    # The last group is taken if that is nearer to what was asked for.
    return np.isin(groups, names[order][before + sizes[order] / 2 <= n_test])


def _can_stratify(y: np.ndarray, n_test: int) -> bool:
    counts = np.unique(y, return_counts=True)[1]
    return counts.min() >= 2 and min(n_test, len(y) - n_test) >= len(counts)


def compare(lesson: Lesson, split: Split, tree: Tree, seconds: float, seed: int) -> list[Score]:
    """Scores of a fitted shape tree, of CART, and of predicting the same for all rows.

    The tree remembers its own scores if rows were held out.
    """
    encoded = _for_cart(lesson.X, split.train)
    kinds = (
        (DecisionTreeClassifier, DummyClassifier(strategy="prior"))
        if lesson.is_classification
        else (DecisionTreeRegressor, DummyRegressor())
    )
    cart = kinds[0](max_depth=tree.max_depth, random_state=seed)
    cart_seconds = _timed_fit(cart, encoded[split.train], lesson.y[split.train])
    same = kinds[1]
    same_seconds = _timed_fit(same, encoded[split.train], lesson.y[split.train])
    name = "most common class" if lesson.is_classification else "the mean"
    tested = lesson.y[split.test]
    X = lesson.X.iloc[split.test]
    scores = tree.evaluate(X, tested) if split.is_apart else _scores(tree, X, tested)
    return [
        Score("shape tree", scores, tree.get_n_leaves(), tree.get_depth(), seconds),
        Score(
            "CART",
            _scores(cart, encoded[split.test], tested),
            int(cart.get_n_leaves()),
            int(cart.get_depth()),
            cart_seconds,
        ),
        Score(name, _scores(same, encoded[split.test], tested), 1, 0, same_seconds),
    ]


def _timed_fit(model: Any, X: np.ndarray, y: np.ndarray) -> float:
    began = perf_counter()
    model.fit(X, y)
    return perf_counter() - began


def _for_cart(X: pd.DataFrame, train: np.ndarray) -> np.ndarray:
    """Columns as the numbers that CART needs: codes, seconds, and NaN for missing values."""
    import pandas as pd

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
    return np.clip(encoded, np.finfo(np.float32).min, np.finfo(np.float32).max)


def _scores(model: Any, X: Any, y: np.ndarray) -> dict[str, float]:
    return scores_of(y, model.predict(X), hasattr(model, "predict_proba"))


def show_scores(scores: list[Score], n_new: int | None, voice: Voice) -> None:
    """Print a table of scores on so many new rows; None if there are none."""
    where = "On the training rows, which says little about new ones"
    if n_new is not None:
        where = f"On {n_new:,} rows that no model has seen"
    voice.heading(where)
    titles = {
        "accuracy": "accuracy",
        "balanced_accuracy": "balanced",
        "r2": "R²",
        "mean_absolute_error": "mean abs. error",
    }
    heads = [Head("")]
    heads += [Head(titles[name], is_number=True) for name in scores[0].scores]
    fit = "" if scores[0].seconds is None else "fit"
    heads += [Head(title, is_number=True) for title in ("leaves", "depth", fit)]
    decimals = _decimals(scores[0].scores.get("mean_absolute_error", 1.0))
    voice.table(heads, [_cells(score, decimals) for score in scores])


def _decimals(error: float) -> int:
    """Decimals that show four digits of an error."""
    return 0 if error <= 0 else min(max(3 - math.floor(math.log10(error)), 0), 12)


def _cells(score: Score, decimals: int) -> list[str]:
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
