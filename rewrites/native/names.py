"""What the operator that runs loop plans is called."""

__all__ = ["DOMAIN", "OPERATOR"]

DOMAIN = "ai.ortscan"
OPERATOR = "Scan1"
"""The format of plans is in the name: another format is another operator."""
