"""Score a Spark table with a shape tree: a model file, applied to one batch after another.

    python examples/spark_predict.py model.json rows.parquet predictions.parquet

The tree comes from anywhere: from rows in memory, from Parquet files (`shapetree.from_parquet`) or
from a Dask cluster (`shapetree.dask`), which read the files that Spark writes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def predicted(rows: DataFrame, model: str, kind: str = "string") -> DataFrame:
    """A Spark table with a further column, `prediction`.

    Parameters
    ----------
    rows : pyspark.sql.DataFrame
        With the columns of the model's features; it may have others.
    model : str
        The text of a model file, as `to_json` returns it. Text reaches every worker, wherever it
        runs.
    kind : str, default="string"
        Spark's type of the predictions: "double" for a regressor.
    """
    return rows.mapInPandas(_scorer(model), f"{_ddl(rows)}, prediction {kind}")


def _ddl(rows: DataFrame) -> str:
    return ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in rows.schema)


def _scorer(model: str) -> Callable[[Iterator[pd.DataFrame]], Iterator[pd.DataFrame]]:
    def score(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import shapetree

        tree: Any = shapetree.from_json(model)  # once for all batches of a task
        names = tree.feature_names_in_
        for batch in batches:
            found = tree.predict(batch[names]) if len(batch) else []
            yield batch.assign(prediction=found)

    return score


if __name__ == "__main__":
    from pathlib import Path

    from pyspark.sql import SparkSession

    model_file, source, target = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    text = Path(model_file).read_text(encoding="utf-8")
    predicted(spark.read.parquet(source), text).write.parquet(target)
