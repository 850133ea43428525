"""What is known of a model without changing it."""

__all__: list[str] = []
