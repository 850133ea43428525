"""Advice on loops that are left: options and sizes that help, each tried on the model and timed before it is reported."""

__all__: list[str] = []
