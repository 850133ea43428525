"""Code that all packages may use and that does not depend on graphs.

It contains errors, reasons why a rule does not apply, printable names, the abilities of a target, and the report.
"""

__all__: list[str] = []
