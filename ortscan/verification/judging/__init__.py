"""Running cases on both models, and the conclusion from what came of them."""

__all__: list[str] = []
