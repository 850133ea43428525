"""Whether a model that was rewritten is still one, and has the shapes it had."""

__all__: list[str] = []
