"""Two recurrent nodes of opposite directions found, and written as one bidirectional node."""

__all__: list[str] = []
