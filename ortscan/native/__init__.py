"""The native loop engine: a library of the operators ``ai.ortscan::Scan1`` and ``Loop1``, which run loop plans (LOOP_PLANS.md)."""

__all__: list[str] = []
