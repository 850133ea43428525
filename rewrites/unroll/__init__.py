"""Loops, recurrent nodes and branches that a target lacks, or that are faster unrolled. The target says which."""

__all__: list[str] = []
