"""What counts as missing.

A value is missing if it is None, NaN, or pandas' NA or NaT. In a table's columns it is NaN among
numbers and `MISSING_CODE` among the codes of categories.
"""

from typing import Any

import numpy as np

MISSING_CODE = -1  # a missing category, or one that training has not seen


def is_missing(value: Any) -> bool:
    """Tell whether a single value is missing."""
    return is_missing_type(type(value)) or value != value


def is_missing_type(kind: type) -> bool:
    """Tell whether all values of a type are missing."""
    # By name, as pandas may be absent.
    return kind.__name__ in ("NoneType", "NAType", "NaTType")


def is_known(column: np.ndarray) -> np.ndarray:
    """Which rows of a table's column have a value; codes are integers, numbers are not."""
    return column != MISSING_CODE if column.dtype.kind == "i" else ~np.isnan(column)
