"""What estimators of trees and of forests share: their tags, names to show, and model files."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from importlib.metadata import version
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from shapetree._files import PathLike, read_text, write_file
from shapetree._with_parameters import KnownParameters
from shapetree.model_file import PREFIX, Model, NotAModel, read_model, short, write_model
from shapetree.tree._fitted import TreeOrForest
from shapetree.tree._from_estimator import fitted_model

# Characters of a value in a message about a file.
MAX_QUOTED = 100


class HasModelFile(KnownParameters):
    """An estimator of one tree or of many."""

    _fitted: Any
    _family: ClassVar[str]

    def _checked(self) -> Any:
        """What was fitted; an error if nothing was."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which says so in scikit-learn's words
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return self._checked().n_outputs

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return len(self._checked().features)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if the columns had names that are all strings."""
        fitted = self._checked()
        if not fitted.has_names:
            raise AttributeError(f"{fitted.kind} was fitted without feature names")
        return np.array(fitted.feature_names, dtype=object)

    def with_names(
        self, *, features: Any = None, classes: Any = None, target: Any = None, units: Any = None
    ) -> Self:
        """A copy that shows other names for features, classes and the target, and units.

        They appear in texts, rules, explanations, pictures, pages and programs. Programs also read
        rows and return classes under these names. Everything else stays as fitted: `predict`,
        `evaluate` and other methods find columns by the names in `feature_names_in_`, and return
        the labels in `classes_`. Names are kept in pickles and model files, and by `prune`,
        `simplify` and `refine_tree`; `fit` forgets them.

        Parameters
        ----------
        features : list of str, or mapping from str to str, optional
            Names of the features, in the order of the columns; or new names for some of them by
            the names in training, which for arrays are `x0`, `x1` and so on.
        classes : list of str, or mapping from class labels to str, optional
            Names of the classes, in the order of `classes_`, or of some of them by their labels. If
            there are several targets, a list with an item for each.
        target : str, or list of str, optional
            Name of the target; a list if there are several. By default the name of `y` in `fit`.
        units : mapping from str to str, optional
            Units of features or of the target, by name; they are shown next to the names.

        Returns
        -------
        estimator
            A new estimator; this one is not changed. What is not given stays as it is.

        Notes
        -----
        The other steps of a fitted `Pipeline` name the features of its last step. For other names,
        put the copy in its place: ``pipeline.set_params(tree=pipeline["tree"].with_names(...))``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier, export_text
        >>> iris = load_iris()
        >>> tree = ShapeTreeClassifier(max_depth=1).fit(iris.data, iris.target)
        >>> named = tree.with_names(
        ...     features={"x3": "petal width"},
        ...     classes=iris.target_names,
        ...     target="species",
        ...     units={"petal width": "cm"},
        ... )
        >>> print(export_text(named).splitlines()[0])
        Predicts species
        >>> named.rules()[0].premise(), named.predict(iris.data[:1])
        ('petal width (cm) ≤ 0.8', array([0]))
        """
        check_is_fitted(self)
        named = copy(self)
        named._fitted = self._fitted.with_names(features, classes, target, units)
        return named

    def to_json(self, path: PathLike | None = None) -> str:
        """Write what was fitted as JSON, in a format with a published schema.

        Parameters
        ----------
        path : str or path-like, optional
            File to write; an existing one is replaced. By default nothing is written.

        Returns
        -------
        str
            The JSON. `from_json` turns it back into an equal estimator, except that a
            `random_state` object becomes None and other sequences become lists. Of out-of-bag
            predictions of a forest, only the score is written.

        Notes
        -----
        `model_schema` makes the schema, which also says how to predict with a model in another
        language. Later versions of the library will read these models.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from shapetree import ShapeTreeClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> tree = ShapeTreeClassifier(max_depth=2).fit(X, y)
        >>> text = tree.to_json()
        >>> bool((ShapeTreeClassifier.from_json(text).predict(X) == tree.predict(X)).all())
        True
        """
        fitted = fitted_model(self)
        return self._write(fitted, path)

    def _write(self, fitted: TreeOrForest, path: PathLike | None) -> str:
        self._validate_params()
        text = write_model(
            Model(self._file_kind(), self._written_parameters(), fitted), version("shapetree")
        )
        write_file(path, text, "the model")
        return text

    @classmethod
    def from_json(cls, text_or_path: PathLike) -> Self:
        """Make an estimator from a model file.

        Reading runs no code, and refuses anything but a complete and consistent model.

        Parameters
        ----------
        text_or_path : str or path-like
            JSON, which starts with a brace, or the path of a file.

        Returns
        -------
        estimator
            A fitted estimator.
        """
        model = read_model(read_text(text_or_path))
        if model.estimator != cls._file_kind():
            raise ValueError(
                f"the model is a {model.estimator}; use {model.estimator}.from_json or "
                "shapetree.from_json"
            )
        return cls._of_model(model)

    @classmethod
    def _of_model(cls, model: Model) -> Self:
        strange = sorted(set(model.parameters) - set(cls._written_names()))
        if strange:
            raise NotAModel(f"{PREFIX}: {cls.__name__} has no parameter {short(strange[0])}")
        estimator = cls()
        try:
            estimator.set_params(**model.parameters)
            estimator._validate_params()
        except (ValueError, TypeError) as error:
            reason, got, value = str(error).partition(" Got ")
            raise NotAModel(f"{PREFIX}: {reason}{got}{value[:MAX_QUOTED]}") from None
        estimator._fitted = model.fitted
        return estimator

    @classmethod
    def _file_kind(cls) -> str:
        """What files call the estimator: classes derived from ours are written as ours."""
        return f"{cls._family}{'Classifier' if issubclass(cls, ClassifierMixin) else 'Regressor'}"

    def _written_parameters(self) -> dict[str, Any]:
        """Parameters as files have them."""
        return dict(self.get_params(deep=False))

    @classmethod
    def _written_names(cls) -> Collection[str]:
        """Names of parameters that a file may have."""
        return list(cls._get_param_names())
