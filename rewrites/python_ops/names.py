"""What the Python custom op is called, and the metadata by which a model says that it needs it."""

__all__ = ["DOMAIN", "GUARD", "METADATA", "OPERATOR", "VERSION"]

DOMAIN = "ortscan.python"
OPERATOR = "Call"
VERSION = 1
METADATA = "ortscan.custom_ops"

GUARD = "a Python custom op failed (ortscan.InferenceSession raises its exception)"
"""The name of the node that fails where a call has failed; onnxruntime's message shows it."""
