"""Model files of any estimator."""

from __future__ import annotations

from shapetree._estimators import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._files import PathLike, read_text
from shapetree._model_files import HasModelFile
from shapetree.ensemble import ShapeForestClassifier, ShapeForestRegressor
from shapetree.model_file import read_model
from shapetree.tree._from_estimator import fitted_model, tree_holder

ESTIMATORS = {
    kind._file_kind(): kind
    for kind in (
        ShapeTreeClassifier,
        ShapeTreeRegressor,
        ShapeForestClassifier,
        ShapeForestRegressor,
    )
}


def export_json(estimator: HasModelFile, path: PathLike | None = None) -> str:
    """Write a fitted tree or forest as JSON, which `from_json` turns back into an equal estimator.

    Parameters
    ----------
    estimator : ShapeTreeClassifier, ShapeTreeRegressor, ShapeForestClassifier or \
            ShapeForestRegressor
        A fitted estimator, or a pipeline that ends in one, of which only that is written.
    path : str or path-like, optional
        File to write; an existing one is replaced. By default nothing is written.

    Returns
    -------
    str
        The JSON.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from shapetree import ShapeTreeClassifier, export_json
    >>> X, y = load_iris(return_X_y=True)
    >>> export_json(ShapeTreeClassifier(max_depth=1).fit(X, y))[:39]
    '{"format":"shapetree-model","version":1'
    """
    fitted = fitted_model(estimator)
    held = tree_holder(estimator)
    assert isinstance(held, HasModelFile)
    return held._write(fitted, path)


def from_json(
    text_or_path: PathLike,
) -> ShapeTreeClassifier | ShapeTreeRegressor | ShapeForestClassifier | ShapeForestRegressor:
    """Make an estimator from a model file: a tree or a forest, a classifier or a regressor.

    Parameters
    ----------
    text_or_path : str or path-like
        JSON, which starts with a brace, or the path of a file.

    Returns
    -------
    ShapeTreeClassifier, ShapeTreeRegressor, ShapeForestClassifier or ShapeForestRegressor
        A fitted estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from shapetree import ShapeTreeRegressor, from_json
    >>> X, y = load_diabetes(return_X_y=True)
    >>> tree = ShapeTreeRegressor(max_depth=2).fit(X, y)
    >>> from_json(tree.to_json()).predict(X[:1]) == tree.predict(X[:1])
    array([ True])
    """
    model = read_model(read_text(text_or_path))
    return ESTIMATORS[model.estimator]._of_model(model)
