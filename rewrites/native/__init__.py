"""Loop plans: the body of a Scan as vector operations over known addresses, and the compiler that writes them.

The format is in ``ortscan/docs/maintainers/loop-plans.md``; ``plan.py`` has its tables, ``encoding.py`` its words.
"""

__all__: list[str] = []
