"""How exporters write loops: counted conditions, counters, reads and writes at the number of the step, collected results.

Each idiom is one rule in one file, a module with ``NAME`` and ``check(loop, ctx)``, that makes a Loop plainer and keeps it a Loop;
what is left then is a Scan, or has a reason not to be one.
"""

__all__: list[str] = []
