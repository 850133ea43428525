"""Defines the name of the Python custom op, and the metadata of models that need it."""

__all__ = ["DOMAIN", "ELEMENTWISE", "GUARD", "METADATA", "OPERATOR", "VERSION"]

DOMAIN = "ortscan.python"
OPERATOR = "Call"
VERSION = 1
METADATA = "ortscan.custom_ops"

GUARD = "a Python custom op failed (ortscan.InferenceSession raises its exception)"
"""The name of the node that fails if a call fails. onnxruntime's error message shows this name."""

ELEMENTWISE = frozenset(
    [
        *("Abs", "Add", "And", "Cos", "Div", "Equal", "Exp", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max"),
        *("Min", "Mul", "Neg", "Not", "Or", "Sin", "Sqrt", "Sub", "Tanh", "Where", "Xor"),
    ]
)
"""The operators that numpy can run in a body if the types allow it."""
