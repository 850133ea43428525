"""Why a matrix that takes up outer products was not computed by LinearAttention, or in blocks of steps."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "ATTENTION-BLOCKS",
        "A matrix that takes up outer products cannot be computed in blocks of steps.",
        "A delta rule takes away what its keys find in the matrix, which only the step before tells; so the steps of a block "
        "depend on each other. Target cpu has LinearAttention for it.",
    ),
    Code(
        "ATTENTION-COST",
        "A matrix that takes up outer products is so small, or its rows so short, that the loop is faster.",
        "A few steps, or few numbers, are done as fast one by one as in blocks. onnxruntime's LinearAttention goes row by row, "
        "and for many rows of one to three values that takes longer than a few operators on all of them. A plan of the loop, "
        "where there is one, is faster for all but large matrices. If the real sizes are smaller than was assumed, say so with "
        "--shape.",
    ),
    Code(
        "ATTENTION-DECAY",
        "A matrix that takes up outer products is multiplied by what may be negative, or by more than 1.",
        "In blocks of steps, powers of a constant beyond 1 or -1 may overflow; and of 0 or less, where the last matrix is of "
        "use, zeros may have another sign. LinearAttention takes the logarithms of decays. An Exp, a Sigmoid, a Softmax or "
        "constants are surely not negative; of an input that is not known.",
    ),
    Code(
        "ATTENTION-SHAPE",
        "Sizes of a matrix that takes up outer products are not known.",
        "LinearAttention has the number of heads as an attribute, and by the sizes of keys and values blocks are chosen. One "
        "size, such as that of a batch, may be free; --fix-shape makes others known.",
    ),
    Code(
        "ATTENTION-TARGET",
        "The target lacks the operator for matrices that take up outer products.",
        "LinearAttention is an operator of onnxruntime's own, which target cpu has.",
    ),
    Code(
        "ATTENTION-TYPE",
        "onnxruntime computes LinearAttention in float32 alone; blocks of steps are in float32 or double.",
        "The schema of LinearAttention allows halves, but on a CPU there is no kernel for them. In halves, a product that is "
        "summed up over a block would be rounded otherwise than in the loop.",
    ),
)
