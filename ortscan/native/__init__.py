"""The library of the operators ``ai.ortscan::Scan1`` and ``Loop1``, which run loop plans."""

__all__: list[str] = []
