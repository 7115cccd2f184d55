"""Decision trees whose nodes split on shape functions."""

from importlib.metadata import version

from shapetree._estimators import ShapeTreeClassifier, ShapeTreeRegressor

__all__ = ["ShapeTreeClassifier", "ShapeTreeRegressor"]
__version__ = version("shapetree")
