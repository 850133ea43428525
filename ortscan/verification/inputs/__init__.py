"""The inputs of a comparison: the caller's inputs, and generated sizes and values for all other inputs."""

__all__: list[str] = []
