"""Lists the operations of loop plans, with their numbers and the element types of their kernels."""

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

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
    "Op",
    "bytes_of",
    "fits",
    "has_kernel",
    "words_of",
]


class Op(IntEnum):
    """The number of an operation.

    Operations that have similar operands, and that iterate over them in a similar way, have consecutive numbers.
    """

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    MAX = 4
    MIN = 5
    GREATER = 6
    LESS = 7
    GREATER_OR_EQUAL = 8
    LESS_OR_EQUAL = 9
    EQUAL = 10
    MOD = 11
    POW = 12

    COPY = 16
    NEG = 17
    ABS = 18
    SQRT = 19
    EXP = 20
    TANH = 21
    SIGMOID = 22
    LOG = 23
    RECIPROCAL = 24
    NOT = 25
    SOFTPLUS = 26
    RELU = 27
    ERF = 28
    FLOOR = 29
    CEIL = 30
    ROUND = 31
    SIGN = 32
    SIN = 33
    COS = 34
    ELU = 35
    LEAKY_RELU = 36
    HARD_SIGMOID = 37
    SOFTSIGN = 38
    GELU = 39
    CAST = 40
    TO_FLOAT16 = 41
    TO_BFLOAT16 = 42

    WHERE = 48
    MUL_ADD = 49
    MUL_SUB = 50
    SUB_MUL = 51
    MUL_ADD_MUL = 52
    SELECT = 53
    MUL_SUB_MUL = 54
    LOG_ADD_EXP = 55

    SUM = 64
    MEAN = 65
    REDUCE_MAX = 66
    REDUCE_MIN = 67
    SUM_OF_SQUARES = 68
    DOT = 69

    LAYER_NORMALIZATION = 72
    SOFTMAX = 73
    LOG_SOFTMAX = 74
    RMS_NORMALIZATION = 75

    GEMM = 80
    MATMUL = 81

    GATHER = 84
    SCATTER = 85
    LOCATE = 86

    ARG_MAX = 88
    ARG_MIN = 89
    TOP_K = 90


FLOAT, UINT8, INT8, INT32, INT64, BOOL, DOUBLE = 1, 2, 3, 6, 7, 9, 11
NARROW: dict[int, np.dtype] = {UINT8: np.dtype("u1"), INT8: np.dtype("i1")}
"""Element types that only inputs of packed matrices may also have. The steps compute such elements as floats."""
NUMPY: dict[int, np.dtype] = {
    FLOAT: np.dtype("<f4"),
    INT32: np.dtype("<i4"),
    INT64: np.dtype("<i8"),
    BOOL: np.dtype("?"),
    DOUBLE: np.dtype("<f8"),
}
_NUMBERS = frozenset(
    {
        *(Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MOD, Op.MAX, Op.MIN),
        *(Op.GREATER, Op.LESS, Op.GREATER_OR_EQUAL, Op.LESS_OR_EQUAL, Op.EQUAL),
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
    """Return True if the operation has a kernel for elements of the type ``dtype``."""
    return op in _KERNELS.get(dtype, ())


def fits(op: Op, target: int, sources: Sequence[int]) -> bool:
    """Return True if an operation supports this combination of element types.

    All types must be equal, except in a CAST. Indices must be INT64.
    """
    if op in (Op.ARG_MAX, Op.ARG_MIN, Op.TOP_K):
        return target == INT64
    if op in (Op.GATHER, Op.SCATTER):
        return sources[0] == target and sources[1] == INT64
    return op == Op.CAST or all(source == target for source in sources)


def bytes_of(dtype: int) -> int:
    """Return the size in bytes of an element of the type ``dtype``."""
    return NUMPY[dtype].itemsize


def words_of(dtype: int) -> int:
    """Return the number of 4-byte words that an element takes in the workspace. A bool takes one word."""
    return max(1, bytes_of(dtype) // 4)
