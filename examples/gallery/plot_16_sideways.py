"""
From left to right
==================

The same kind of tree, drawn sideways, which suits wide screens and long names.
"""

from sklearn.datasets import load_wine

from shapetree import ShapeTreeClassifier, plot_tree

data = load_wine(as_frame=True)
tree = ShapeTreeClassifier(max_depth=2).fit(data.data, data.target_names[data.target])
plot_tree(tree, direction="right")
