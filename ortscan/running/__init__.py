"""Find out how a model can be run, and run it on onnxruntime, in a subprocess if it may crash; ``verification`` compares."""

__all__: list[str] = []
