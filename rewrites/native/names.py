"""What the operators that run loop plans and recurrent nodes are called."""

__all__ = ["CELL_OPERATOR", "DOMAIN", "IR_VERSION", "LOOP_OPERATOR", "OPERATOR"]

DOMAIN = "ai.ortscan"
OPERATOR, LOOP_OPERATOR, CELL_OPERATOR = "Scan1", "Loop1", "Cell1"
"""The format of plans is in the names: another format is another operator."""

IR_VERSION = 10
"""Of models whose functions have overloads."""
