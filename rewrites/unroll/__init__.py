"""Unrolls loops, recurrent nodes and branches if the target lacks them or if that is faster."""

__all__: list[str] = []
