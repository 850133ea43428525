"""Code that all packages may use: errors, refusals as values, printable names, abilities of a target, the report.

Nothing here depends on graphs.
"""

__all__: list[str] = []
