"""What the operator that runs loop plans is called."""

__all__ = ["DOMAIN", "IR_VERSION", "OPERATOR"]

DOMAIN = "ai.ortscan"
OPERATOR = "Scan1"
"""The format of plans is in the name: another format is another operator."""

IR_VERSION = 10
"""Of models whose functions have overloads."""
