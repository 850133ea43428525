"""What the Python custom op is called, and the metadata by which a model says that it needs it."""

__all__ = ["DOMAIN", "METADATA", "OPERATOR", "VERSION"]

DOMAIN = "ortscan.python"
OPERATOR = "Call"
VERSION = 1
METADATA = "ortscan.custom_ops"
