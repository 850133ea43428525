"""Rules that simplify Loops and turn them into Scans, or report why that is impossible."""

__all__: list[str] = []
