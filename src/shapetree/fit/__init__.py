"""A fit: from a user's table and parameters to a FittedTree."""

from shapetree.fit._fit import GivenRows, fit_path, fit_tree, refine_fitted, simplify_fitted
from shapetree.fit._identifiers import IdentifierWarning
from shapetree.fit._measure_stability import find_stability
from shapetree.fit._parameters import Parameters
from shapetree.fit._search_options import SearchOptions
from shapetree.fit._teaching import TeacherPredictions

__all__ = [
    "GivenRows",
    "IdentifierWarning",
    "Parameters",
    "SearchOptions",
    "TeacherPredictions",
    "find_stability",
    "fit_path",
    "fit_tree",
    "refine_fitted",
    "simplify_fitted",
]
