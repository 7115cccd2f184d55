"""Forests: many shape trees, each grown on rows and features drawn at random."""

from shapetree.ensemble._estimators import ShapeForestClassifier, ShapeForestRegressor

__all__ = ["ShapeForestClassifier", "ShapeForestRegressor"]
