"""Pictures of trees, of their nodes and of their sizes, with matplotlib."""

from shapetree.plot._path import plot_path
from shapetree.plot._picture import Picture
from shapetree.plot._tree import plot_node, plot_tree

__all__ = ["Picture", "plot_node", "plot_path", "plot_tree"]
