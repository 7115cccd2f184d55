from typing import Any

from numpy.typing import ArrayLike, NDArray

def order_of(values: ArrayLike) -> NDArray[Any]: ...
