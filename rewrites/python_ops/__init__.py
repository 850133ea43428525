"""Python custom ops, the last resort: which loops need one, and how a model calls it. What runs them is not here."""

__all__: list[str] = []
