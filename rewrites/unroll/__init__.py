"""Unrolls loops, recurrent nodes and Ifs if the target cannot run them or if the result is faster."""

__all__: list[str] = []
