"""Graphs drawn as SVG: what a loop is, what has become of it.

A picture is plain data, made of a model in ``contents`` and ``regions``, placed in ``layers`` and ``placing``, written in ``svg``.
"""

__all__: list[str] = []
