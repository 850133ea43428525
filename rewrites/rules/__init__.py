"""Rules and nothing else, a folder a phase; ``registry`` has them in the order in which they are tried.

A rule is one file with a ``RULE``. What two rules share is no rule, and lives in ``rewrites.edits`` or ``rewrites.analysis``.
"""

__all__: list[str] = []
