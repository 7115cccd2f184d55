"""Shape trees of rows on a Dask cluster: the same trees as in memory, bit for bit."""

try:
    import distributed as _distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        'shapetree.dask needs dask and distributed; install them with pip install "shapetree[dask]"'
    ) from error

from shapetree.dask._estimators import (
    DaskShapeForestClassifier,
    DaskShapeForestRegressor,
    DaskShapeTreeClassifier,
    DaskShapeTreeRegressor,
)

__all__ = [
    "DaskShapeForestClassifier",
    "DaskShapeForestRegressor",
    "DaskShapeTreeClassifier",
    "DaskShapeTreeRegressor",
]
