"""Python custom ops, the last resort: which nodes need one, and how a model calls it. What runs them is ``ortscan.custom_ops``."""

__all__: list[str] = []
