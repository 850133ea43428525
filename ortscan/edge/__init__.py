"""What stands between a caller and the work: limits of time and memory, and errors of one sentence.

Whatever wraps a verb as a whole goes here; what a verb does, does not.
"""

__all__: list[str] = []
