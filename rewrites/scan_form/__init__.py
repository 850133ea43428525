"""Rules that simplify the axes, directions, induction variables and packed states of Scans.

The rules for Loops are in ``loop_form``.
"""

__all__: list[str] = []
