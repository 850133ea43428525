"""The command line, with a file for each verb.

Only this package prints. Slow modules are imported only when a verb runs.

A verb reads its arguments, calls ``ortscan.api`` and shows the result. It decides nothing about the model.
"""

__all__: list[str] = []
