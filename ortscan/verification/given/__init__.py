"""What the caller gave, checked: options, inputs, and whether the two models can be called alike."""

__all__: list[str] = []
