"""What happens to a tree after it has grown: refining, pruning and shrinking."""

from shapetree.refine._tao import RefineOptions
from shapetree.refine._tree import fitting_bins, refine

__all__ = ["RefineOptions", "fitting_bins", "refine"]
