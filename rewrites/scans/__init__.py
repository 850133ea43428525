"""Write nodes that compute a state after each step in blocks of steps, without a loop over all steps."""

__all__: list[str] = []
