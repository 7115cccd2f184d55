"""What the paper reports.

`paper.csv` holds the tables of "Empowering Decision Trees via Shape Function Branching" (NeurIPS
2025) that this benchmark repeats, as its LaTeX source has them: the two tables of means
(`tab:uni_table`, `tab:bi_table`), ShapeCART by dataset (`tab:shapedpdt_acc`, `tab:sdpdt_runtime`),
the ablations (`tab:opt_ablate_acc`, `tab:opt_ablate_time`, `tab:heurabl_acc`,
`tab:heur_abl_time`), regression (`tab:regr_results`) and the importance of hyper-parameters
(`tab:hp_import`). The other models by dataset are in figures and tables that the source leaves out.
"""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files

import pandas as pd

from shapetree_bench._datasets import BY_NAME, CLASSIFICATION, TOO_LARGE_FOR_PAIRS

DEPTHS = (2, 3, 4, 5, 6)
# Rows of the two tables of means: greedy models, and those that look at the whole tree.
BLOCKS = {
    False: (
        ("CART", "SERDT", "HSTree", "SGT-C", "SGT3-C"),
        ("AxTAO", "DPDT", "SPLIT", "SGT-T", "SGT3-T"),
    ),
    True: (("BiCART", "S2GT-C", "S2GT3-C"), ("BiTAO", "S2GT-T", "S2GT3-T")),
}
_MEANS = {False: "mean accuracy, axis-aligned", True: "mean accuracy, bivariate"}


@cache
def _every() -> pd.DataFrame:
    with (files("shapetree_bench") / "paper.csv").open() as file:
        return pd.read_csv(file, keep_default_na=False).astype({"value": float})


@cache
def _values() -> dict[tuple[str, ...], float]:
    columns = ["table", "dataset", "model", "depth", "variant", "value"]
    rows = _every()[columns].itertuples(index=False)
    return {tuple(map(str, key)): float(number) for *key, number in rows}


def table(name: str) -> pd.DataFrame:
    """One of the paper's tables, a row for each number."""
    every = _every()
    return every[every["table"] == name]


def mean(model: str, bivariate: bool, depth: int) -> float:
    """Mean accuracy of a model over all datasets, in percent."""
    return _values()[_MEANS[bivariate], "", model, str(depth), ""]


def value(name: str, dataset: str, model: str, depth: int, variant: str = "") -> float | None:
    """A number of one of the tables by dataset; None where the paper has none."""
    return _values().get((name, dataset, model, str(depth), variant))


def accuracy(dataset: str, model: str, depth: int) -> tuple[float, float] | None:
    """Accuracy on one dataset in percent, and its standard deviation over folds.

    SGT-C has a table of its own; others are only in that of an ablation, for three datasets.
    """
    for name, variant in (("accuracy", ""), ("ablation of the assignment, accuracy", "All")):
        found = value(name, dataset, model, depth, variant)
        if found is not None:
            return found, spread(name, dataset, model, depth, variant)
    return None


def spread(name: str, dataset: str, model: str, depth: int, variant: str = "") -> float:
    """The standard deviation over folds of such a number; NaN where the paper has none."""
    every = table(name)
    found = every[
        (every["dataset"] == dataset)
        & (every["model"] == model)
        & (every["depth"].astype(str) == str(depth))
        & (every["variant"] == variant)
    ]
    return float(pd.to_numeric(found["std"], errors="coerce").max()) if len(found) else math.nan


def datasets(depth: int, bivariate: bool) -> list[str]:
    """The datasets over which the paper takes its means: a leaf for every class is needed."""
    return [
        name
        for name in CLASSIFICATION
        if BY_NAME[name].fits_depth(depth) and not (bivariate and name in TOO_LARGE_FOR_PAIRS)
    ]


def mean_over(model: str, bivariate: bool, depth: int, names: list[str]) -> float:
    """Mean accuracy of a model over some of the datasets, in percent.

    The paper has numbers by dataset only for SGT-C. For other models this is an estimate: their
    mean over all datasets, moved by how much easier these datasets are for SGT-C.
    """
    every = datasets(depth, bivariate)
    scores = {name: _of_shape_cart(name, depth) for name in every}
    shift = sum(scores[name] for name in names) / len(names) - sum(scores.values()) / len(every)
    return mean(model, bivariate, depth) + shift


def _of_shape_cart(dataset: str, depth: int) -> float:
    """SGT-C's accuracy; on the one dataset that its table lacks, what its mean leaves."""
    found = value("accuracy", dataset, "SGT-C", depth)
    if found is not None:
        return found
    names = datasets(depth, bivariate=False)
    others = [value("accuracy", name, "SGT-C", depth) or 0.0 for name in names]
    return mean("SGT-C", False, depth) * len(names) - sum(others)
