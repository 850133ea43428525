"""Reports as a self-contained HTML page: its elements, style and script."""

__all__: list[str] = []
