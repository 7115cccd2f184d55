"""The example for Spark predicts what the model itself does."""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from needs import is_here

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from spark_predict import _scorer

sys.path.pop(0)


def made():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=200), "b": rng.choice(["x", "y"], 200)})
    labels = np.where((rows["a"] > 0) == (rows["b"] == "x"), "yes", "no")
    return rows, labels, rows["a"] ** 2


def test_batches_are_scored_one_after_another():
    rows, labels, numbers = made()
    for model, y in ((ShapeTreeClassifier(), labels), (ShapeTreeRegressor(), numbers)):
        tree = model.fit(rows, y)
        batches = [rows.iloc[:70].assign(other=1), rows.iloc[:0].assign(other=1), rows.iloc[70:]]
        found = pd.concat(_scorer(tree.to_json())(iter(batches)))
        np.testing.assert_array_equal(found["prediction"], tree.predict(rows))
        assert list(found["a"]) == list(rows["a"])


@pytest.mark.filterwarnings("default")  # of Spark, with a pandas that it does not know yet
def test_local_spark_predicts_what_the_model_does(monkeypatch):
    if not is_here("Java"):
        pytest.skip("needs Java")
    sql = pytest.importorskip("pyspark.sql")
    from spark_predict import predicted

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    rows, labels, _ = made()
    tree = ShapeTreeClassifier().fit(rows, labels)
    spark = sql.SparkSession.builder.master("local[1]").getOrCreate()
    try:
        found = predicted(spark.createDataFrame(rows), tree.to_json()).toPandas()
    finally:
        spark.stop()
    np.testing.assert_array_equal(found["prediction"], tree.predict(rows))
