"""What several tests of the benchmark need."""

import numpy as np
import pandas as pd
from shapetree_bench import _paper as paper
from shapetree_bench._cli import app
from shapetree_bench._datasets import BY_NAME, read
from shapetree_bench._methods import METHODS
from shapetree_bench._protocols import Cell
from shapetree_bench._store import MEASURES, Results
from typer.testing import CliRunner


def invoke(*arguments, code=0):
    outcome = CliRunner().invoke(app, [str(each) for each in arguments])
    assert outcome.exit_code == code, outcome.output
    return outcome.output


def made_up(tmp_path, methods, datasets, depths=paper.DEPTHS, protocols=("untuned",)):
    """Results without any fit."""
    results = Results(tmp_path / "made.sqlite")
    results.begin_run("shapetree-bench run", {"shapetree": "1"})
    rng = np.random.default_rng(0)
    for name in datasets:
        dataset = BY_NAME[name]
        for method in methods:
            for protocol in protocols:
                for depth in depths if METHODS[method].has_depth else [0]:
                    for fold in range(dataset.n_folds):
                        measures = dict.fromkeys(MEASURES, 1.0 + depth) | {
                            "accuracy": 0.8 + 0.01 * depth + 0.02 * rng.random(),
                            "seconds": 0.2,
                            "cart_seconds": 0.1,
                        }
                        if dataset.task == "regression":
                            measures |= {"accuracy": None, "squared_error": 0.5}
                        results.note_fit(Cell(protocol, method, name, depth), fold, measures)
    return results


def rice_with_categories(folder):
    """A dataset of a folder, with a categorical column and missing values."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 300)
    size = rng.normal(size=300)
    size[:20] = np.nan
    table = pd.DataFrame({"kind": kind, "size": size, "noise": rng.normal(size=300)})
    table["target"] = np.where((kind == "a") ^ (np.nan_to_num(size) > 0), "yes", "no")
    table.to_parquet(folder / "rice.parquet")
    return read(BY_NAME["rice"], folder, folder)
