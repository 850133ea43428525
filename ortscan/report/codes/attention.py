"""Why a matrix that takes up outer products was not computed by LinearAttention."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "ATTENTION-COST",
        "A matrix that takes up outer products is so small, or its rows so short, that the loop is faster.",
        "onnxruntime's LinearAttention goes row by row, and for many rows of one to three values that takes longer than a few "
        "operators on all of them. A plan of the loop, where there is one, is faster for all but large matrices. If the real sizes "
        "are smaller than was assumed, say so with --shape.",
    ),
    Code(
        "ATTENTION-DECAY",
        "A matrix that takes up outer products is multiplied by what may be negative.",
        "LinearAttention takes the logarithms of decays. An Exp, a Sigmoid, a Softmax or constants are surely not negative; of an "
        "input that is not known.",
    ),
    Code(
        "ATTENTION-SHAPE",
        "Sizes of a matrix that takes up outer products are not known.",
        "LinearAttention has the number of heads as an attribute. One size, such as that of a batch, may be free; --fix-shape "
        "makes others known.",
    ),
    Code(
        "ATTENTION-TARGET",
        "The target lacks the operator for matrices that take up outer products.",
        "LinearAttention is an operator of onnxruntime's own, which target cpu has.",
    ),
    Code(
        "ATTENTION-TYPE",
        "onnxruntime computes LinearAttention in float32 alone.",
        "The schema allows halves, but on a CPU there is no kernel for them.",
    ),
)
