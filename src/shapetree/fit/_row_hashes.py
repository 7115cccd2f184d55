"""Hashes of rows by what they hold, whatever their columns, classes and categories are called."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shapetree._core.columns import Columns
from shapetree._core.sampling import hash_rows, hash_targets, keys_of_columns, row_hashes
from shapetree.data._binning import BinnedTable, FeatureBins


@dataclass(frozen=True)
class TargetCodes:
    """What stands for the targets of rows, whatever their names and units.

    Attributes
    ----------
    values : list of arrays
        The distinct values of each output.
    codes : list of arrays
        Of each value: its rank, or how many rows have it if it is a class.
    """

    values: list[np.ndarray]
    codes: list[np.ndarray]

    @classmethod
    def of(cls, targets: np.ndarray, weights: np.ndarray | None, has_classes: bool) -> TargetCodes:
        """Those of all rows; weights may say how often a row is there."""
        times = weights if weights_are_counts(weights) else None
        found = [np.unique(column, return_inverse=True) for column in targets.T]
        codes = [
            np.bincount(ranks, times) if has_classes else np.arange(len(values))
            for values, ranks in found
        ]
        return cls([values for values, _ in found], codes)

    def hashes(self, targets: np.ndarray) -> np.ndarray:
        """A hash of the targets of each row."""
        each = zip(self.values, self.codes, targets.T, strict=True)
        codes = [codes[np.searchsorted(values, column)] for values, codes, column in each]
        return np.asarray(hash_targets(np.stack(codes, axis=1)))


def hashes_of_rows(
    binned: BinnedTable, targets: np.ndarray, weights: np.ndarray | None, target_codes: TargetCodes
) -> np.ndarray:
    """A hash of each row's bins, the same for rows that are repeated and for weights that say so.

    Targets tell columns and categories apart, wherever these stand and whatever their names are;
    see `keys_of_columns`.

    Parameters
    ----------
    targets : array of shape (n_rows, n_outputs)
    weights : array of shape (n_rows,) or None
    """
    own, times = target_codes.hashes(targets), times_of(weights, weights_are_counts(weights))
    profiles = profiles_of_categories(binned.columns, binned.features, own, times)
    columns = recoded(binned.columns, codes_of_categories(profiles))
    return hash_rows(columns, keys_of_columns(columns, own, times))


def profiles_of_categories(
    columns: Columns,
    features: tuple[FeatureBins, ...],
    targets: np.ndarray,
    times: np.ndarray | None,
) -> dict[int, np.ndarray]:
    """What each category of a feature holds, by the hashes of targets; those of parts add up."""
    mixed = row_hashes(targets.view(np.int64))
    if times is not None:
        mixed = mixed * times
    profiles = {}
    for number, feature in enumerate(features):
        if feature.is_categorical:
            profiles[number] = np.zeros(feature.n_bins + 1, dtype=np.uint64)
            np.add.at(profiles[number], columns.array(number), mixed)
    return profiles


def codes_of_categories(profiles: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
    """For the bins of categorical features, numbers that their names do not decide."""
    codes = {}
    for number, profile in profiles.items():
        ranks = np.unique(profile[:-1], return_inverse=True)[1]
        # Missing values have their own bin.
        codes[number] = np.append(ranks, len(ranks)).astype(np.min_scalar_type(len(ranks)))
    return codes


def recoded(columns: Columns, codes: dict[int, np.ndarray]) -> Columns:
    """Columns with other numbers for the bins of some of them."""
    if not codes:
        return columns
    arrays = [columns.array(number) for number in range(columns.n_columns)]
    for number, table in codes.items():
        arrays[number] = table[arrays[number]]
    return Columns(arrays, columns.n_rows)


def weights_are_counts(weights: np.ndarray | None) -> bool:
    """Whether weights say how often a row is there."""
    return weights is not None and bool((weights == np.rint(weights)).all())


def times_of(weights: np.ndarray | None, are_counts: bool) -> np.ndarray | None:
    """How often each row is there; None if once."""
    if not are_counts:
        return None
    assert weights is not None
    return np.minimum(weights, 2.0**53).astype(np.uint64)
