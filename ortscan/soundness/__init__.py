"""Whether a model that was rewritten is still one, and has the shapes it had.

Only what can be told without comparing numbers; those are ``verification``'s.
"""

__all__: list[str] = []
