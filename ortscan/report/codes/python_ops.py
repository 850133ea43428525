"""Why a node without a kernel could not become a call of Python."""

from ortscan.report.codes.code import Code

__all__ = ["TABLE"]

TABLE = (
    Code(
        "PYTHON-OP-OPSET",
        "Calls of Python need a later opset.",
        "What is around a call needs operators of opset 14. Convert the model to opset 14 or later.",
    ),
    Code(
        "PYTHON-OP-RANDOM",
        "A random operator is not called in Python.",
        "Its numbers would not be those of any runtime. There is nothing to be done in ortscan.",
    ),
    Code(
        "PYTHON-OP-RANK",
        "A value whose number of dimensions is not known cannot travel to Python.",
        "Declare the shapes of the model's inputs, or of this value, with names for the sizes that are free.",
    ),
    Code(
        "PYTHON-OP-REFERENCE",
        "onnx's reference does not run the operator either.",
        "A call of Python runs onnx's own reference of an operator. The installed onnx has none for this one, or not with what its "
        "attributes ask for; the report says which.",
    ),
    Code(
        "PYTHON-OP-TYPE",
        "A value is of a type that cannot travel to Python.",
        "Tensors of all types but complex numbers can; sequences, optionals and maps cannot.",
    ),
)
