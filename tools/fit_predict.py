"""Fit and predict once, to show that an installed package works."""

from sklearn.datasets import load_iris

from shapetree import ShapeTreeClassifier

X, y = load_iris(return_X_y=True)
print("accuracy on iris:", ShapeTreeClassifier().fit(X, y).score(X, y))
