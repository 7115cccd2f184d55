"""What an estimator, or a pipeline that ends in one, holds: its fitted tree or forest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar, runtime_checkable

from sklearn.pipeline import Pipeline

from shapetree.tree._fitted import FittedForest, FittedModel, FittedTree, TreeOrForest

Fitted = TypeVar("Fitted", bound=FittedModel)
FittedNow = TypeVar("FittedNow", bound=FittedModel, covariant=True)


@runtime_checkable
class Holds(Protocol[FittedNow]):
    """An estimator, as far as this package needs it."""

    def __fitted_model__(self) -> FittedNow:
        """What was fitted; an error if nothing was."""


HoldsTree: TypeAlias = Holds[FittedTree]
HoldsModel: TypeAlias = Holds[FittedTree] | Holds[FittedForest]


def fitted_tree(estimator: HoldsTree) -> FittedTree:
    """The tree of a fitted estimator, or of a pipeline that ends in one.

    The steps before a pipeline's tree name its features, unless `with_names` did.
    """
    return fitted_of(estimator, FittedTree, "ShapeTreeClassifier or ShapeTreeRegressor")


def fitted_model(estimator: HoldsModel) -> TreeOrForest:
    """The tree or forest of a fitted estimator, or of a pipeline that ends in one."""
    wanted = "ShapeTreeClassifier or ShapeTreeRegressor, a forest of them"
    found = fitted_of(estimator, FittedModel, wanted)
    assert isinstance(found, FittedTree | FittedForest)
    return found


def fitted_of(estimator: HoldsModel, kind: type[Fitted], wanted: str) -> Fitted:
    """What an estimator holds, if it is of a kind, with the feature names of its pipeline."""
    held: object = tree_holder(estimator)
    fitted = None
    if isinstance(held, Holds) and not isinstance(held, type):
        fitted = held.__fitted_model__()
    if isinstance(fitted, kind):
        return _named_by_pipeline(estimator, fitted) if isinstance(estimator, Pipeline) else fitted
    name = held.__name__ if isinstance(held, type) else type(held).__name__
    hint = "; pass one of its estimators_" if isinstance(fitted, FittedForest) else ""
    raise TypeError(
        f"estimator must be a fitted {wanted}, or a Pipeline that ends in one, got "
        f"{'a Pipeline that ends in ' * (held is not estimator)}{name}{hint}"
    )


def tree_holder(estimator: HoldsModel) -> HoldsModel:
    """The estimator itself, or the last step of a pipeline."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def rows_for_tree(estimator: HoldsModel, X: Any) -> Any:
    """Rows as the tree sees them: transformed by the steps before it, if it is in a pipeline."""
    if X is None or not isinstance(estimator, Pipeline) or len(estimator.steps) == 1:
        return X
    return estimator[:-1].transform(X)


def _named_by_pipeline(pipeline: Pipeline, fitted: Fitted) -> Fitted:
    """What a pipeline holds, its features named by the columns that its steps make them of."""
    if fitted.names.features is not None or len(pipeline.steps) == 1:
        return fitted
    if fitted.has_names:
        return fitted.with_names(_without_steps(fitted.feature_names))
    try:
        names: Sequence[str] = pipeline[:-1].get_feature_names_out()
    except (AttributeError, ValueError, TypeError) as error:
        raise ValueError(
            f"the steps of the pipeline before {fitted.kind} do not name its features; use "
            f"pipeline[-1].with_names(features=...) with {len(fitted.features)} names, one for "
            f"each feature that {fitted.kind} sees, and put the result in place of the last step"
        ) from error
    return fitted.with_names(_without_steps(names))


def _without_steps(names: Sequence[str]) -> list[str]:
    """Names without the steps that a ColumnTransformer puts before them, if they still differ."""
    columns = [str(name).rpartition("__")[2] or str(name) for name in names]
    return [
        column if columns.count(column) == 1 else str(name)
        for name, column in zip(names, columns, strict=True)
    ]
