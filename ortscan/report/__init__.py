"""Show a Report: as text in a terminal, as JSON for programs, or as an HTML page; and explain every reason code.

Everything shown comes from the report's types. Nothing is computed or printed here.
"""

__all__: list[str] = []
