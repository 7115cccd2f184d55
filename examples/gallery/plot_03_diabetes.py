"""
A regression tree
=================

How far diabetes has progressed after a year: the target's mean as shades, and leaves with their
value, spread and histogram.
"""

from sklearn.datasets import load_diabetes

from shapetree import ShapeTreeRegressor, plot_tree

data = load_diabetes(as_frame=True, scaled=False)
table = data.data.rename(columns={"s5": "log triglycerides", "s3": "HDL", "bp": "pressure"})
tree = ShapeTreeRegressor(max_depth=3, max_branches=2, max_leaf_nodes=7)
plot_tree(tree.fit(table, data.target), title="Progression of diabetes")
