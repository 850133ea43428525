"""The types of elements that plans have, by ONNX's numbers, and which operations there are for them."""

from collections.abc import Sequence

import numpy as np

from rewrites.native.operations import Op

__all__ = [
    "BOOL",
    "DOUBLE",
    "FLOAT",
    "INT8",
    "INT32",
    "INT64",
    "NARROW",
    "NUMPY",
    "UINT8",
    "bytes_of",
    "fits",
    "has_kernel",
    "words_of",
]

FLOAT, UINT8, INT8, INT32, INT64, BOOL, DOUBLE = 1, 2, 3, 6, 7, 9, 11
NARROW: dict[int, np.dtype] = {UINT8: np.dtype("u1"), INT8: np.dtype("i1")}
"""What an input that is packed may be too; in the steps such numbers are floats."""
NUMPY: dict[int, np.dtype] = {
    FLOAT: np.dtype("<f4"),
    INT32: np.dtype("<i4"),
    INT64: np.dtype("<i8"),
    BOOL: np.dtype("?"),
    DOUBLE: np.dtype("<f8"),
}
_NUMBERS = frozenset(
    {
        *(
            Op.ADD,
            Op.SUB,
            Op.MUL,
            Op.DIV,
            Op.MOD,
            Op.MAX,
            Op.MIN,
            Op.GREATER,
            Op.LESS,
            Op.GREATER_OR_EQUAL,
            Op.LESS_OR_EQUAL,
            Op.EQUAL,
        ),
        *(Op.COPY, Op.CAST, Op.NEG, Op.ABS, Op.NOT, Op.RELU, Op.SIGN, Op.WHERE, Op.SELECT),
        *(Op.MUL_ADD, Op.MUL_SUB, Op.SUB_MUL, Op.MUL_ADD_MUL, Op.MUL_SUB_MUL),
        *(Op.SUM, Op.REDUCE_MAX, Op.REDUCE_MIN, Op.MATMUL),
        *(Op.GATHER, Op.SCATTER, Op.ARG_MAX, Op.ARG_MIN, Op.TOP_K),
    }
)
_KERNELS = {
    FLOAT: frozenset(Op) - {Op.LOCATE},
    INT32: _NUMBERS,
    INT64: _NUMBERS | {Op.LOCATE},
    DOUBLE: _NUMBERS
    | {Op.SQRT, Op.RECIPROCAL, Op.FLOOR, Op.CEIL, Op.ROUND, Op.MEAN, Op.SUM_OF_SQUARES, Op.DOT}
    | {Op.POW, Op.SIN, Op.COS},
    BOOL: frozenset({Op.COPY, Op.CAST, Op.GATHER, Op.SCATTER}),
}


def has_kernel(op: Op, dtype: int) -> bool:
    """Whether there is the operation for elements of a type."""
    return op in _KERNELS.get(dtype, ())


def fits(op: Op, target: int, sources: Sequence[int]) -> bool:
    """Whether an operation gives elements of one type of those of others: all are alike, but for a Cast, and indices are INT64."""
    if op in (Op.ARG_MAX, Op.ARG_MIN, Op.TOP_K):
        return target == INT64
    if op in (Op.GATHER, Op.SCATTER):
        return sources[0] == target and sources[1] == INT64
    return op == Op.CAST or all(source == target for source in sources)


def bytes_of(dtype: int) -> int:
    """Return how many bytes an element has."""
    return NUMPY[dtype].itemsize


def words_of(dtype: int) -> int:
    """Return how many words an element takes in the workspace; bools have one each, so that all sizes are multiples of words."""
    return max(1, bytes_of(dtype) // 4)
