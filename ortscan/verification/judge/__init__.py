"""Run all cases on both models, compare their outputs, and draw the conclusion."""

__all__: list[str] = []
