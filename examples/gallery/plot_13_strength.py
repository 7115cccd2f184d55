"""
Score against size
==================

Trees of several strengths for breast cancer: the score on held-out rows against the number of
leaves, and the choice of ``strength="cv"``.
"""

from sklearn.datasets import load_breast_cancer

from shapetree import ShapeTreeClassifier, plot_path

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
tree = ShapeTreeClassifier(strength=[0.1, 0.3, 1, 3, 10], cv=3, resamples=0)
plot_path(tree.strength_path(X, y), title="Breast cancer")
