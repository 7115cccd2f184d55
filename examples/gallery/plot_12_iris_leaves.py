"""
A budget of leaves
==================

Irises with four leaves at most: the tree grows where it gains most per leaf.
"""

from sklearn.datasets import load_iris

from shapetree import ShapeTreeClassifier, plot_tree

data = load_iris(as_frame=True)
tree = ShapeTreeClassifier(max_depth=None, max_leaf_nodes=4)
plot_tree(tree.fit(data.data, data.target_names[data.target]), title="Irises in four leaves")
