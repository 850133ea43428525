"""The steps of ``optimize`` in order: prepare, rewrite, check and compare a model.

The rewrites themselves are in the package ``rewrites``.
"""

__all__: list[str] = []
