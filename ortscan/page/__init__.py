"""One HTML page that needs nothing else: its style, its few lines of script, and the elements that reports are made of."""

__all__: list[str] = []
