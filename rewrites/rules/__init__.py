"""Rules and nothing else, a folder a phase; ``registry`` has them in the order in which they are tried."""

__all__: list[str] = []
