"""Decision trees whose nodes split on shape functions."""

from shapetree import _start  # isort: skip  # noqa: F401, the first, before what takes time

from importlib.metadata import version

from shapetree._estimators import (
    ShapeTreeClassifier,
    ShapeTreeRegressor,
    refine_tree,
)
from shapetree._json import export_json, from_json
from shapetree._predictions import predict_parquet
from shapetree.data._batches import from_batches, from_parquet
from shapetree.data._dates import date_parts
from shapetree.data._shares import ClassShares
from shapetree.ensemble import ShapeForestClassifier, ShapeForestRegressor
from shapetree.export import (
    SqlExpression,
    export_dot,
    export_html,
    export_js,
    export_onnx,
    export_python,
    export_sql,
    export_text,
)
from shapetree.fit import IdentifierWarning, SearchOptions
from shapetree.model_file import model_schema
from shapetree.plot import plot_node, plot_path, plot_tree

__all__ = [
    "ClassShares",
    "IdentifierWarning",
    "SearchOptions",
    "ShapeForestClassifier",
    "ShapeForestRegressor",
    "ShapeTreeClassifier",
    "ShapeTreeRegressor",
    "SqlExpression",
    "date_parts",
    "export_dot",
    "export_html",
    "export_js",
    "export_json",
    "export_onnx",
    "export_python",
    "export_sql",
    "export_text",
    "from_batches",
    "from_json",
    "from_parquet",
    "model_schema",
    "plot_node",
    "plot_path",
    "plot_tree",
    "predict_parquet",
    "refine_tree",
]
__version__ = version("shapetree")
