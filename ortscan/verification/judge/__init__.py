"""Runs all cases on both models, compares their outputs, and draws the conclusion."""

__all__: list[str] = []
