"""Pictures of trees and of their nodes, with matplotlib."""

from shapetree.plot._node import plot_node
from shapetree.plot._picture import Picture
from shapetree.plot._tree import plot_tree

__all__ = ["Picture", "plot_node", "plot_tree"]
