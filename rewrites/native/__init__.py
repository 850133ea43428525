"""Loop plans: a loop's body as vector operations on known addresses, and the compiler that writes them.

``ortscan/docs/maintainers/loop-plans.md`` describes the format; ``plan.py`` has its tables, ``encoding.py`` its encoding.
"""

__all__: list[str] = []
