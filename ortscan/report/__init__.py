"""Showing a Report: as text in a terminal, as JSON for programs, as one HTML page; and what every reason code means.

What is shown is read off the report's types; nothing is found out here, and nothing printed.
"""

__all__: list[str] = []
