"""Python custom ops, the last resort: finds nodes that need one, and writes their calls. ``ortscan.custom_ops`` runs them."""

__all__: list[str] = []
