"""What inputs are fed: what they are used for, what values the models name for them, and the numbers that are made up."""

__all__: list[str] = []
