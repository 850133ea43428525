"""What rules are made of: the patch, and changes that several of them share, a folder for each phase.

A change that one rule alone makes stays in its file; what only looks is ``analysis``.
"""

__all__: list[str] = []
