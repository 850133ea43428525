"""The command line, a file per verb. Only this package prints; everything heavy is imported when a verb runs.

A verb reads its arguments, calls ``ortscan.api`` and shows what comes back: no decision about a model is made here.
"""

__all__: list[str] = []
