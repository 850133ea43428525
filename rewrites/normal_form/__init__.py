"""Makes every loop plain: one small rule a file, each a module with ``NAME`` and ``check(loop, ctx)``."""

__all__: list[str] = []
