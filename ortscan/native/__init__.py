"""The native loop engine, a library with operators that run loop plans (see loop-plans.md).

The operators are ``ai.ortscan::Scan1`` and ``ai.ortscan::Loop1``.
"""

__all__: list[str] = []
