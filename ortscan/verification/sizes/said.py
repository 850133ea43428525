"""Which sizes to try in place of others, by the numbers in what onnxruntime says against those.

    Pad reflect: post-pad (64) exceeds maximum allowed (1) for axis 1              ->   64 and 65 for each dimension
    Input initial_h must have shape {1,3,128}. Actual:{1,7,128}, sizes 3 and 7     ->   3 for both, 7 for both

Most of them are wrong, and soon tried.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

__all__ = ["LARGEST", "complaint", "rows_by_numbers", "with_size"]

LARGEST = 1 << 17
"""What no size is tried above."""
_Row = tuple[int, ...]
_QUOTED = re.compile(r"'[^']*'")
_NUMBER = re.compile(r"\d+")
_MOST_NUMBERS = 12


def rows_by_numbers(said: str, row: _Row, free: Sequence[int]) -> Iterator[_Row]:
    """Yield other sizes for ``free`` ones of ``row``, which was refused: equal ones, then larger ones, and one more than each."""
    numbers = list(dict.fromkeys(int(number) for number in _NUMBER.findall(_QUOTED.sub("", said))))[:_MOST_NUMBERS]
    for one, other in combinations(free, 2):
        if row[one] != row[other] and row[one] in numbers and row[other] in numbers:
            yield with_size(row, other, row[one])
            yield with_size(row, one, row[other])
    for number in numbers:
        for size in (number, number + 1):
            yield from (with_size(row, place, size) for place in free if row[place] < size <= LARGEST)


def complaint(said: str) -> str:
    """Return the same without its numbers: what is said where a size is still too small, and not where the next node refuses."""
    return _NUMBER.sub("", said)


def with_size(row: _Row, place: int, size: int) -> _Row:
    """Return ``row`` with another size at one place."""
    return (*row[:place], size, *row[place + 1 :])
