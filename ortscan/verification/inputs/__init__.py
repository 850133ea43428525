"""Prepare the inputs of a comparison: read the caller's inputs, and generate values for the others."""

__all__: list[str] = []
