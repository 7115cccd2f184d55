"""Decision trees whose nodes split on shape functions."""

from importlib.metadata import version

from shapetree._estimators import ShapeTreeClassifier, ShapeTreeRegressor, refine_tree
from shapetree.export import export_text

__all__ = ["ShapeTreeClassifier", "ShapeTreeRegressor", "export_text", "refine_tree"]
__version__ = version("shapetree")
