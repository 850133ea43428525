"""The way of a model: loaded in an opset, rewritten, checked, compared.

Here is the order of things, and what happens where one fails. What a rewrite does is in ``rewrites``, what a comparison does in
``verification``.
"""

__all__: list[str] = []
