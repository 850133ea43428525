"""Format a Report as text for a terminal, as JSON for programs, or as an HTML page.

This package also explains reason codes. It only formats what a report contains: it computes no further facts, and the caller prints
the result.
"""

__all__: list[str] = []
