"""What all fitted estimators share: they are written to model files and read from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator, ClassifierMixin

from shapetree._files import PathLike, read_text, write_file
from shapetree.model_file import PREFIX, Model, NotAModel, read_model, short, write_model
from shapetree.tree._fitted import FittedTree
from shapetree.tree._forest import FittedForest, fitted_model

# Characters of a value in a message about a file.
MAX_QUOTED = 100


class HasModelFile(BaseEstimator):
    """An estimator of one tree or of many."""

    _fitted: Any
    _family: ClassVar[str]

    def to_json(
        self,
        path: PathLike | None = None,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Any = None,
        target_name: str | None = None,
        units: Mapping[str, str] | None = None,
    ) -> str:
        """Write what was fitted as JSON, in a format with a published schema.

        Parameters
        ----------
        path : str or path-like, optional
            File to write; an existing one is replaced. By default nothing is written.
        feature_names : list of str, optional
            Names to show for the features, in the order of the columns.
        class_names : list of str, or mapping from class labels to names, optional
            Names to show for the classes, in the order of `classes_`.
        target_name : str, optional
            Name of the target; by default the name of `y` in `fit`.
        units : mapping from str to str, optional
            Units of features or of the target, by name; they are shown next to the names.

        Returns
        -------
        str
            The JSON. `from_json` turns it back into an equal estimator, except that a
            `random_state` object becomes None and other sequences become lists. Of out-of-bag
            predictions of a forest, only the score is written.

        Notes
        -----
        The schema comes with the package: `importlib.resources.files("shapetree") /
        "model.schema.json"`. It also says how to predict with a model in another language. Later
        versions of the library will read these models.

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
        fitted = fitted_model(self, feature_names, class_names, target_name, units)
        return self._write(fitted, path)

    def _write(self, fitted: FittedTree | FittedForest, path: PathLike | None) -> str:
        self._validate_params()
        text = write_model(
            Model(self._file_kind(), self._written_parameters(), fitted), version("shapetree")
        )
        if path is not None:
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
