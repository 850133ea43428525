"""The operations of loop plans and their numbers."""

from enum import IntEnum

__all__ = ["Op"]


class Op(IntEnum):
    """What an instruction does; in groups by the number and the walk of its operands."""

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
