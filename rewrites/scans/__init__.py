"""Functions that compute the states after all steps in blocks of steps, without a loop over all steps."""

__all__: list[str] = []
