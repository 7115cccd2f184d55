"""
Categories and missing values
=============================

How people get to work: towns as chips by branch, skewed distances on a logarithmic axis, and a cell
of its own for those who do not tell their age. The table is made up.
"""

from tables import make_commuters

from shapetree import ShapeTreeClassifier, plot_tree

X, y = make_commuters()
tree = ShapeTreeClassifier(max_depth=3, min_samples_leaf=25)
plot_tree(tree.fit(X, y), title="How people get to work")
