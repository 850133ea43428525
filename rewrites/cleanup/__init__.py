"""Simplifies bodies: constant, repeated, loop-invariant and unused work goes. The other computations of a step stay unchanged."""

__all__: list[str] = []
