"""Check a rewritten model without running it.

The rewritten model must be valid, and its types and shapes must agree with those of the original. The package ``verification`` runs
both models and compares the numbers.
"""

__all__: list[str] = []
