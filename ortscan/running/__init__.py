"""Run a model on onnxruntime. Find out beforehand which inputs it accepts, and if it may crash.

A model that may crash onnxruntime runs in a subprocess. The package ``verification`` compares the outputs of two models.
"""

__all__: list[str] = []
