"""The estimators on a Dask cluster: the same parameters, rows on workers, predictions lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from sklearn.base import _fit_context, clone, is_classifier
from sklearn.utils import Bunch, check_consistent_length

from shapetree._base import BaseShapeTree
from shapetree._estimators import ShapeTreeClassifier, ShapeTreeRegressor
from shapetree._files import PathLike
from shapetree._model_files import HasModelFile
from shapetree._with_parameters import with_parameters
from shapetree.dask._backend import DaskRows
from shapetree.dask._cluster import Cluster, find_client
from shapetree.dask._data import check_in_step
from shapetree.dask._lazy import is_lazy, lazily, refuse_lazy
from shapetree.data._labels import read_targets
from shapetree.ensemble import ShapeForestClassifier, ShapeForestRegressor
from shapetree.ensemble._estimators import BaseShapeForest
from shapetree.explain import Explanation
from shapetree.fit import fit_path, fit_tree
from shapetree.tree._evaluation import scores_of
from shapetree.tree._fitted import FittedForest, FittedTree

if TYPE_CHECKING:
    from distributed import Client
    from scipy.sparse import csr_matrix

    Model = HasModelFile
    Base = BaseShapeTree
    ForestBase = BaseShapeForest
else:
    Model = Base = ForestBase = object


class WithClient(Model):
    """What all estimators on a cluster have: a client, and an estimator in memory of their kind."""

    _local: type[Any]
    predict: Any
    _fitted: Any
    n_outputs_: int
    client: Client | None

    def _write(self, fitted: FittedTree | FittedForest, path: PathLike | None) -> str:
        # A model file is read without a client.
        return self.to_local()._write(fitted, path)

    def __sklearn_clone__(self) -> Self:
        # A client is shared, not copied.
        parameters = self.get_params(deep=False)
        client = parameters.pop("client")
        kind: Any = type(self)
        copied = clone(self._local(**parameters)).get_params(deep=False)
        return cast(Self, kind(client=client, **copied))

    def to_local(self) -> Any:
        """An estimator in memory with the same parameters and, if fitted, the same tree."""
        parameters = self.get_params(deep=False)
        del parameters["client"]
        local = self._local(**parameters)
        for name in ("_fitted", "_left_out"):
            if name in vars(self):
                setattr(local, name, vars(self)[name])
        return local

    def apply(self, X: Any) -> Any:
        """The leaf that each row ends up in; lazy for a Dask collection."""
        local = self.to_local()
        return lazily(local, "apply", X, np.int32, "leaf") if is_lazy(X) else local.apply(X)

    def _predicted(self, X: Any, dtype: Any) -> Any:
        """Predictions; of a Dask frame with the names of its targets, if there are several."""
        local = self.to_local()
        if not is_lazy(X):
            return local.predict(X)
        names: Any = "prediction"
        if self.n_outputs_ > 1:
            names = list(self._fitted.names.targets or map(str, range(self.n_outputs_)))
        return lazily(local, "predict", X, dtype, names)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy or R² on some rows.

        Workers predict; predictions, targets and weights come to this process.
        """
        if not is_lazy(X):
            return float(self.to_local().score(X, y, sample_weight))
        predicted, y, *weights = self._gathered(self.predict, X, y, sample_weight)
        # Sums of the same numbers may differ in the last digit if these are stored differently.
        predicted = np.ascontiguousarray(predicted)
        y = np.ascontiguousarray(y).reshape(predicted.shape)
        scores = scores_of(y, predicted, is_classifier(self), *weights)
        return next(iter(scores.values()))

    def _gathered(self, method: Any, X: Any, y: Any, sample_weight: Any) -> list[Any]:
        """What a method makes of rows, their targets, and weights if there are any."""
        check_in_step(X, y, sample_weight)
        wanted = [each for each in (method(X), y, sample_weight) if each is not None]
        with Cluster(find_client(self.client)) as cluster:
            return cluster.results(cluster.hold(wanted))

    def __getstate__(self) -> Any:
        # A client is a connection, which cannot be stored.
        return super().__getstate__() | {"client": None}


class OnDask(WithClient, Base):
    """What the trees on a cluster have beyond those in memory."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree on the workers that hold the rows.

        The tree is the same, bit for bit, as for the same rows in memory, in the order of the
        partitions. If a worker is lost, what it held is computed again.

        Parameters
        ----------
        X : dask DataFrame or Array of shape (n_samples, n_features)
        y : dask Series, DataFrame or Array
            With the same partitions as X.
        sample_weight : dask Series or Array, optional
            With the same partitions as X.

        Returns
        -------
        self
        """
        with Cluster(find_client(self.client)) as cluster:
            rows = DaskRows(cluster, X, y, sample_weight)
            _, parameters = self._taught_parameters(rows, None, None)
            fitted = fit_tree(rows, None, None, parameters, is_classifier(self))
        self._fitted = fitted
        return self

    def strength_path(self, X: Any, y: Any = None, sample_weight: Any = None) -> Bunch:
        """Fit trees for a range of strengths, on the workers that hold the rows.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        Bunch
            The same as for the estimators in memory.
        """
        with Cluster(find_client(self.client)) as cluster:
            rows = DaskRows(cluster, X, y, sample_weight)
            _, parameters = self._taught_parameters(rows, None, None)
            return Bunch(**fit_path(rows, None, None, parameters, is_classifier(self)))

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None) -> dict[str, float]:
        """Score the tree on rows that it was not fitted on, and remember the scores.

        Workers predict; predictions, targets and weights come to this process.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        dict
            `accuracy` and `balanced_accuracy`, or `r2` and `mean_absolute_error`.
        """
        if not is_lazy(X):
            return super().evaluate(X, y, sample_weight)
        fitted = self.__fitted_model__()
        leaves, y, *weights = self._gathered(self.apply, X, y, sample_weight)
        targets = read_targets(y, fitted.classes is not None, fitted.n_outputs)
        check_consistent_length(leaves, targets)
        return self._evaluated(np.asarray(leaves), targets, weights[0] if weights else None)

    def explain(self, X: Any, **options: Any) -> list[Explanation]:
        """Explain the prediction for each row, which is in memory; see `ShapeTreeClassifier`."""
        refuse_lazy(X, "explain")
        return super().explain(X, **options)

    def decision_path(self, X: Any) -> csr_matrix:
        """The nodes that each row passes; for rows in memory."""
        refuse_lazy(X, "decision_path")
        return super().decision_path(X)


@with_parameters
class DaskShapeTreeClassifier(OnDask, ShapeTreeClassifier):
    """A classifier whose rows are on a Dask cluster.

    Parameters
    ----------
    n_threads : int or None
        Number of threads of this process; None for all cores. Those of workers are the cluster's.
    client : distributed.Client, optional
        By default the current one.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from distributed import Client
    >>> from shapetree.dask import DaskShapeTreeClassifier
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> rows = pd.DataFrame({"age": [*range(20, 70)] * 2, "height": [170, 180] * 50})
    >>> rows["old"] = rows["age"] >= 50
    >>> frame = dd.from_pandas(rows, npartitions=4)
    >>> model = DaskShapeTreeClassifier(max_depth=2).fit(frame[["age", "height"]], frame["old"])
    >>> model.predict(frame[["age", "height"]]).compute()[:32].tolist()[28:]
    [False, False, True, True]
    >>> model.to_local()
    ShapeTreeClassifier(max_depth=2)
    >>> client.close()
    """

    client: Any = None

    _local = ShapeTreeClassifier

    def predict(self, X: Any) -> Any:
        """Most probable class of each row; lazy for a Dask collection.

        Classes that are text come as strings of Arrow for a DataFrame.
        """
        return self._predicted(X, np.result_type(*self._labels()))

    def predict_proba(self, X: Any) -> Any:
        """Share of each class; of several outputs, a list. Lazy for a Dask collection.

        For a DataFrame, the columns are the names of the classes, as text.
        """
        local = self.to_local()
        if not is_lazy(X):
            return local.predict_proba(X)
        shares = [
            lazily(local, "predict_proba", X, np.float64, list(map(str, labels.tolist())), output)
            for output, labels in enumerate(self._labels())
        ]
        return shares[0] if len(shares) == 1 else shares

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of each class's share; lazy for a Dask collection."""
        if not is_lazy(X):
            return self.to_local().predict_log_proba(X)
        shares = self.predict_proba(X)
        return np.log(shares) if self.n_outputs_ == 1 else [np.log(each) for each in shares]


@with_parameters
class DaskShapeTreeRegressor(OnDask, ShapeTreeRegressor):
    """A regressor whose rows are on a Dask cluster.

    Parameters
    ----------
    n_threads : int or None
        Number of threads of this process; None for all cores. Those of workers are the cluster's.
    client : distributed.Client, optional
        By default the current one.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from shapetree.dask import DaskShapeTreeRegressor
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> x = np.repeat(np.arange(100.0), 4)
    >>> X, y = da.from_array(x[:, None], chunks=(100, 1)), da.from_array(x >= 50, chunks=100)
    >>> model = DaskShapeTreeRegressor(max_depth=2).fit(X, y)
    >>> model.predict(X).compute()[[0, 399]].tolist()
    [0.0, 1.0]
    >>> client.close()
    """

    client: Any = None

    _local = ShapeTreeRegressor

    def predict(self, X: Any) -> Any:
        """Mean or median of each row's leaf; lazy for a Dask collection."""
        return self._predicted(X, np.float64)


class ForestOnDask(WithClient, ForestBase):
    """What the forests on a cluster have beyond those in memory."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the trees on the workers that hold the rows, a level of many trees at a time.

        The forest is the same, bit for bit, as for the same rows in memory, in the order of the
        partitions. Targets, and a number for each row, come to this process, which draws the trees'
        rows. Out-of-bag predictions are those of the rows that weigh something, in this order.

        Parameters
        ----------
        X : dask DataFrame or Array of shape (n_samples, n_features)
        y : dask Series, DataFrame or Array
            With the same partitions as X.
        sample_weight : dask Series or Array, optional
            With the same partitions as X.

        Returns
        -------
        self
        """
        with Cluster(find_client(self.client)) as cluster:
            return super().fit(DaskRows(cluster, X, y, sample_weight))

    def oob_permutation_importances(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, n_repeats: int = 5
    ) -> Bunch:
        """How much worse predictions of unseen rows get; for rows in memory."""
        refuse_lazy(X, "oob_permutation_importances")
        return super().oob_permutation_importances(X, y, sample_weight, n_repeats=n_repeats)

    def apply(self, X: Any) -> Any:
        """The leaf that each row ends up in, in each tree; lazy for a Dask collection."""
        local = self.to_local()
        if not is_lazy(X):
            return local.apply(X)
        names = list(map(str, range(len(self.__fitted_model__().trees))))
        return lazily(local, "apply", X, np.int32, names)

    def decision_path(self, X: Any) -> tuple[csr_matrix, np.ndarray]:
        """The nodes that each row passes in each tree; for rows in memory."""
        refuse_lazy(X, "decision_path")
        return super().decision_path(X)


@with_parameters
class DaskShapeForestClassifier(ForestOnDask, ShapeForestClassifier):
    """A forest of classifiers whose rows are on a Dask cluster.

    Parameters
    ----------
    n_threads : int or None
        Number of threads of this process; None for all cores. Those of workers are the cluster's.
    client : distributed.Client, optional
        By default the current one.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from distributed import Client
    >>> from shapetree.dask import DaskShapeForestClassifier
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> rows = pd.DataFrame({"age": [*range(20, 70)] * 2, "height": [170, 180] * 50})
    >>> rows["old"] = rows["age"] >= 50
    >>> frame = dd.from_pandas(rows, npartitions=4)
    >>> model = DaskShapeForestClassifier(n_estimators=10, random_state=0)
    >>> model = model.fit(frame[["age", "height"]], frame["old"])
    >>> model.predict(frame[["age", "height"]]).compute()[:32].tolist()[28:]
    [False, False, True, True]
    >>> client.close()
    """

    client: Any = None

    _local = ShapeForestClassifier
    predict = DaskShapeTreeClassifier.predict
    predict_proba = DaskShapeTreeClassifier.predict_proba
    predict_log_proba = DaskShapeTreeClassifier.predict_log_proba


@with_parameters
class DaskShapeForestRegressor(ForestOnDask, ShapeForestRegressor):
    """A forest of regressors whose rows are on a Dask cluster.

    Parameters
    ----------
    n_threads : int or None
        Number of threads of this process; None for all cores. Those of workers are the cluster's.
    client : distributed.Client, optional
        By default the current one.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from shapetree.dask import DaskShapeForestRegressor
    >>> client = Client(processes=False, dashboard_address=":0")
    >>> x = np.repeat(np.arange(100.0), 4)
    >>> X, y = da.from_array(x[:, None], chunks=(100, 1)), da.from_array(x >= 50, chunks=100)
    >>> model = DaskShapeForestRegressor(n_estimators=10, random_state=0).fit(X, y)
    >>> model.predict(X).compute()[[0, 399]].tolist()
    [0.0, 1.0]
    >>> client.close()
    """

    client: Any = None

    _local = ShapeForestRegressor

    def predict(self, X: Any) -> Any:
        """Mean of what the trees' leaves say; lazy for a Dask collection."""
        return self._predicted(X, np.float64)
