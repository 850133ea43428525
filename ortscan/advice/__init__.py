"""What would change what becomes of a loop: options and sizes, each tried on the model and timed before it is said."""

__all__: list[str] = []
