"""Checks of a rewritten model without running it: it must be valid, and its shapes must agree with the original's.

The package ``verification`` runs both models and compares the numbers.
"""

__all__: list[str] = []
