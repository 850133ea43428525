"""Code that every floor may use: errors, refusals as values, printable names, abilities of a target, the report.

Nothing here knows a graph.
"""

__all__: list[str] = []
