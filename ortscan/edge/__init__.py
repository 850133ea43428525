"""What stands between a caller and the work: limits of time and memory, and errors of one sentence."""

__all__: list[str] = []
