"""What applies rules to a model: the engine, the phases before and after it, and the invariants."""

__all__: list[str] = []
