"""Both estimators pass every check that scikit-learn has for estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from shapetree import SearchOptions, ShapeTreeClassifier, ShapeTreeRegressor


@parametrize_with_checks(
    [
        ShapeTreeClassifier(),
        ShapeTreeClassifier(max_branches=2, search=SearchOptions(criterion="gini")),
        ShapeTreeClassifier(
            max_bins=None, search=SearchOptions(criterion="entropy", inner_tree="optimal")
        ),
        ShapeTreeRegressor(),
        ShapeTreeRegressor(max_branches=2, max_bins=None),
        ShapeTreeRegressor(objective="absolute_error"),
    ]
)
def test_scikit_learn_finds_nothing_wrong(estimator, check):
    check(estimator)
