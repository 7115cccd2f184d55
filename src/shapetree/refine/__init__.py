"""What happens to a tree after it has grown: refining, pruning and shrinking."""

from shapetree.refine._copies import CopiesOptions
from shapetree.refine._options import RefineOptions
from shapetree.refine._prune import prune_by_cost, prune_nodes, pruning_path, simplify
from shapetree.refine._refine import PairTools, refine
from shapetree.refine._shrink import OF_CLASSES, OF_NUMBERS, Shrinkage, shrink, with_own_classes

__all__ = [
    "OF_CLASSES",
    "OF_NUMBERS",
    "CopiesOptions",
    "PairTools",
    "RefineOptions",
    "Shrinkage",
    "prune_by_cost",
    "prune_nodes",
    "pruning_path",
    "refine",
    "shrink",
    "simplify",
    "with_own_classes",
]
