"""Rules that simplify Scans: axes, directions, induction variables, packed states.

``loop_form`` has the rules on Loops.
"""

__all__: list[str] = []
