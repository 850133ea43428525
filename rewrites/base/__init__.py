"""Code that all packages may use and that does not depend on graphs.

It contains errors, refusals as values, printable names, abilities of a target, and the report.
"""

__all__: list[str] = []
