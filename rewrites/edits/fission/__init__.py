"""Parts of a loop stacked over all steps, or made loops of their own."""

__all__: list[str] = []
