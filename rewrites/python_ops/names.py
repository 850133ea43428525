"""What the Python custom op is called, and the metadata by which a model says that it needs it."""

__all__ = ["DOMAIN", "ELEMENTWISE", "GUARD", "METADATA", "OPERATOR", "VERSION"]

DOMAIN = "ortscan.python"
OPERATOR = "Call"
VERSION = 1
METADATA = "ortscan.custom_ops"

GUARD = "a Python custom op failed (ortscan.InferenceSession raises its exception)"
"""The name of the node that fails where a call has failed; onnxruntime's message shows it."""

ELEMENTWISE = frozenset(
    [
        *("Abs", "Add", "And", "Cos", "Div", "Equal", "Exp", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max"),
        *("Min", "Mul", "Neg", "Not", "Or", "Sin", "Sqrt", "Sub", "Tanh", "Where", "Xor"),
    ]
)
"""The operators that a body may be made of to be run as numpy calls, types permitting."""
