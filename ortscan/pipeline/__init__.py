"""The steps of ``optimize`` in order: prepare, rewrite, check and compare a model. The rewrites themselves are in ``rewrites``."""

__all__: list[str] = []
