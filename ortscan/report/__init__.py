"""Showing a Report: as text in a terminal, as JSON for programs, as one HTML page; and what every reason code means."""

__all__: list[str] = []
