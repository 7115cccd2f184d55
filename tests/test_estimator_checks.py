"""Both estimators pass every check that scikit-learn has for estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from shapetree import ShapeTreeClassifier, ShapeTreeRegressor


@parametrize_with_checks(
    [
        ShapeTreeClassifier(),
        ShapeTreeClassifier(criterion="gini", max_branches=2),
        ShapeTreeClassifier(criterion="entropy", max_bins=None, inner_tree="optimal"),
        ShapeTreeRegressor(),
        ShapeTreeRegressor(max_branches=2, max_bins=None),
        ShapeTreeRegressor(criterion="absolute_error"),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
