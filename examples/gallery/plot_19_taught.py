"""
A tree taught by a forest
=========================

A hundred trees teach one. Its picture shows the rows, and its fidelity to the forest on rows that
neither has seen.
"""

from sklearn.datasets import load_diabetes

from shapetree import ShapeForestRegressor, ShapeTreeRegressor, plot_tree

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
forest = ShapeForestRegressor(n_estimators=100, random_state=0).fit(X[::2], y[::2])
tree = ShapeTreeRegressor(max_depth=2, teacher=forest).fit(X[::2], y[::2])
print(tree.evaluate(X[1::2], y[1::2]))
plot_tree(tree)
