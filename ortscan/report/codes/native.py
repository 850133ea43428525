"""Why a loop has no plan for the library of loop plans."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "NATIVE-FORM",
        "The loop, or an operator of its body, is in a form that loop plans do not have.",
        "Plans have Scans along the first axis, and operators whose axes, shapes, bounds and exponents are constant.",
    ),
    Code(
        "NATIVE-LIMIT",
        "The plan would be too large.",
        "A movement of elements that strides cannot tell is written as copies, one for each piece, and there may be only so many.",
    ),
    Code(
        "NATIVE-OPERATOR",
        "The body has an operator that loop plans do not have.",
        "A loop is handed over as a whole or not at all: one operator that the library lacks keeps the loop in onnxruntime.",
    ),
    Code(
        "NATIVE-SHAPE",
        "A shape in the body is not known well enough.",
        "The addresses in a plan are worked out before the model runs. The number of steps may be free, and so may sizes of inputs "
        "such as a batch, by which no axis is cut or joined, and on which all that a step makes depends alike. Fix others with "
        "--fix-shape.",
    ),
    Code(
        "NATIVE-TYPE",
        "A value is of a type that loop plans do not have.",
        "States, scanned, captured and stacked values are 32-bit floats; inside the body there may be bools too.",
    ),
)
