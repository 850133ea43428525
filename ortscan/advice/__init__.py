"""Advice on remaining loops: options and sizes that help. Each candidate is tried on the model and timed before it is reported."""

__all__: list[str] = []
