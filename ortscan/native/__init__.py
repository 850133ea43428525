"""The native loop engine: a library with the operators ``ai.ortscan::Scan1`` and ``Loop1``, which run loop plans
(loop-plans.md).
"""

__all__: list[str] = []
