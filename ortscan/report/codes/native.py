"""Why a loop has no plan for the library of loop plans, or a recurrent node stays with onnxruntime."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "NATIVE-CELL",
        "A recurrent node has what the library's kernel does not.",
        "The kernel takes floats, batches behind the steps, and the activations Tanh, Sigmoid, Relu, HardSigmoid, LeakyRelu, Elu "
        "and Softsign. Other nodes stay with onnxruntime.",
    ),
    Code(
        "NATIVE-COST",
        "onnxruntime's recurrent node is no slower than the library's.",
        "Of wide nodes all time goes into the product with the recurrent weights, which takes as long as it takes to read them.",
    ),
    Code(
        "NATIVE-FORM",
        "The loop, or an operator of its body, is in a form that loop plans do not have.",
        "Plans have Scans along the first axis, and operators whose axes and shapes are constant.",
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
        "Values are floats, doubles, int32, int64 or bools, and each operator has some of these types only.",
    ),
    Code(
        "NATIVE-WEIGHTS",
        "The weights of a recurrent node are not constant.",
        "The kernel reads weights in an order of its own, into which constants are brought once, and others in each run.",
    ),
)
