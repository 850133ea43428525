"""Defines the names of the operators that ortscan's library runs."""

__all__ = ["CELL_OPERATOR", "DOMAIN", "LOOP_OPERATOR", "OPERATOR"]

DOMAIN = "ai.ortscan"
OPERATOR, LOOP_OPERATOR, CELL_OPERATOR = "Scan1", "Loop1", "Cell1"
"""The names include the version of the plan format, because a new format needs new operators."""
