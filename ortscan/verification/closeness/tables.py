"""A sequence of maps of floats, as ZipMap makes one of the rows of an array, as that array again.

What a number may differ by is seen beside its column's.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["as_table", "is_table"]


def is_table(*sequences: Any) -> bool:
    """Return whether ``sequences`` hold as many maps each, all of them of floats by the same keys."""
    if not all(isinstance(one, list) and one for one in sequences) or len({len(one) for one in sequences}) > 1:
        return False
    maps = [item for one in sequences for item in one]
    if not all(isinstance(item, Mapping) and list(item) == list(maps[0]) for item in maps):
        return False
    return all(isinstance(number, float) for item in maps for number in item.values())


def as_table(value: Any) -> Any:
    """Return the array that a sequence of alike maps of floats holds, with a row for each; anything else as it is."""
    return np.array([list(item.values()) for item in value], np.float64) if is_table(value) else value
