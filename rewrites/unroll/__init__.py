"""Unrolls loops, recurrent nodes and Ifs if the target cannot run them or if that is faster."""

__all__: list[str] = []
